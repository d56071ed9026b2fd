"""A hypothesis over ranges of values: within a range every value is as likely as the next.

Where all that was measured about a column are counts of the same ranges of its values, the distribution of maximum
entropy is even within a range, and a table over ranges says all of it. A domain of columns with thousands of values is
then as small as the ranges are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from discreet.core import Codes, Floats
from discreet.hypothesis.dense import Dense
from discreet.hypothesis.graphical_model import Factored
from discreet.hypothesis.tensor import Linear, Scope, generator, uniform


class Coarse:
    """A hypothesis over ranges of the codes of some columns, as one over their codes.

    inner   over the ranges                 starts  the first code of every range, for the columns that have ranges
    sizes   of all columns, in codes
    """

    __slots__ = ("inner", "sizes", "starts")

    def __init__(self, inner: Dense | Factored, starts: Mapping[str, Codes], sizes: Mapping[str, int]) -> None:
        self.inner, self.starts, self.sizes = inner, dict(starts), dict(sizes)

    def _lengths(self, name: str) -> Codes:
        return np.diff(self.starts[name], append=self.sizes[name])

    def marginal(self, scope: Iterable[str]) -> Floats:
        columns: Scope = tuple(scope)
        table = self.inner.marginal(columns)
        for axis, name in enumerate(columns):
            if name in self.starts:
                lengths = self._lengths(name)
                each = table / lengths.reshape([-1 if place == axis else 1 for place in range(table.ndim)])
                table = np.repeat(each, lengths, axis=axis)
        return table

    def mean(self, form: Linear) -> Floats:
        """The answer to a question if one row is drawn."""
        return form.of(self.marginal(form.scope))

    def sample(self, rows: int, seed: int | None = None) -> dict[str, Codes]:
        """Independent rows, as codes of the columns."""
        drawn, rng = self.inner.sample(rows, seed), generator(rows, None if seed is None else seed + 1)
        for name, starts in self.starts.items():
            within = np.floor(uniform(rng, rows) * self._lengths(name)[drawn[name]])
            drawn[name] = starts[drawn[name]] + within.astype(np.int64)
        return drawn


Hypothesis = Dense | Factored | Coarse
