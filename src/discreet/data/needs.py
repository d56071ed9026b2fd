"""What a mechanism needs of a dataset and what a dataset offers: two public values, compared before the charge.

A table that only counts cannot sum a gradient, and rows that are far away cannot all be fetched. Whether a run is
possible is therefore decided from public numbers, by `Offers.refusal`, before anything is spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.data.rows import Facts

_MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class Needs:
    """What one run asks of the rows, on any table with the same facts.

    queries    the queries that are summed, where they are known in advance: a dataset may look at their types
    functions  True: functions of a row are summed that only the library's own code computes (gradients, ranks)
    slices     True: the most extreme rows of columns are taken
    gathers    bytes of each row that are gathered, at most; 0: nothing is gathered
    at_most    bytes that are gathered of all rows together, if that is known; 0: it is not
    passes     about how often all rows are read; None: not known in advance
    fixed      True: what is released later is priced on the rows being the same until then
    """

    queries: tuple[Any, ...] = ()
    functions: bool = False
    slices: bool = False
    gathers: int = 0
    at_most: int = 0
    passes: int | None = 1
    fixed: bool = False

    def moved(self, facts: Facts) -> int | None:
        """Bytes that are gathered, at most; None if the number of rows is private and no size is declared."""
        if not self.gathers:
            return 0
        whole = None if facts.size is None else self.gathers * facts.size * facts.neighbours.rows
        if self.at_most:
            return self.at_most if whole is None else min(whole, self.at_most)
        return whole


NEEDS_ALL = Needs(functions=True, slices=True, gathers=2**10, passes=None, fixed=True)
"""What a mechanism needs that does not say it."""


def needs_of(mechanism: object, facts: Facts, *ask: Any) -> Needs:
    """What the mechanism says that it, or one question to it, needs; everything if it says nothing."""
    stated = getattr(mechanism, "needs", None)
    return NEEDS_ALL if stated is None else stated(facts, *ask)


@dataclass(frozen=True, slots=True)
class Offers:
    """What a dataset can do with its rows.

    words         what it answers, for the sentence of a refusal
    functions     whether it sums any function of a row
    slices        whether it takes the most extreme rows
    gather_limit  bytes that `exact_gather` moves at most; None: the rows are on this machine already
    pass_seconds  about how long a pass takes before its first row is read: what `auto` weighs
    fixed         whether rows that change are noticed and refused
    """

    words: str = "every sum"
    functions: bool = True
    slices: bool = True
    gather_limit: int | None = None
    pass_seconds: float = 0.0
    fixed: bool = True

    def answers(self, query: Any, facts: Facts) -> bool:
        """Whether it sums this query: any query, if it sums every function of a row."""
        return self.functions

    def refusal(self, needs: Needs, facts: Facts) -> str | None:
        """Why a run with these needs is not possible here; None if it is."""
        refused = [type(query).__name__ for query in needs.queries if not self.answers(query, facts)]
        if refused:
            return f"this table answers {self.words} only; a {refused[0]} of this kind is not among them"
        if needs.functions and not self.functions:
            return f"this table answers {self.words} only; this needs sums of other functions of a row"
        if needs.slices and not self.slices:
            return f"this table answers {self.words} only; this needs the most extreme rows of a column"
        if needs.fixed and not self.fixed:
            changed = "rows of this table may change unnoticed between two steps, and a person could count in both"
            return f"{changed}: take files (FilesTable), or declare version= (SqlTable)"
        return self._too_much(needs, facts)

    def _too_much(self, needs: Needs, facts: Facts) -> str | None:
        if self.gather_limit is None or not needs.gathers:
            return None
        moved, limit = needs.moved(facts), f"{self.gather_limit // _MEGABYTE:,} MB (gather_limit)"
        if moved is None:
            return (
                f"this moves up to {needs.gathers} bytes of every row here, of a number that is private: declare size="
            )
        if moved > self.gather_limit:
            return f"this moves up to {-(-moved // _MEGABYTE):,} MB of rows here, more than {limit}"
        return None


EVERYTHING = Offers()
"""What rows on this machine offer."""
