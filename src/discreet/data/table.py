"""Rows in memory: a table of declared columns, and a matrix of features with labels."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Codes
from discreet.data import persons
from discreet.data.columns import float_rows, read
from discreet.data.domain import Category, Domain, Number, Vector, flag
from discreet.data.encoding import encode
from discreet.data.files import Scan, resolved
from discreet.data.grid import grid_rows
from discreet.data.ingest import (
    FIRST_EDITION,
    batches_of,
    checked_domain,
    checked_edition,
    checked_rows,
    describe,
    facts_of,
    file_blocks,
    frame_block,
    identity_of,
    joined,
    stored_type,
)
from discreet.data.rows import Batch, Filter, Slice, Summed, refuse_to_leave, sum_of
from discreet.data.slices import slices_of
from discreet.errors import ParameterError, SchemaError
from discreet.guarantee import Neighbours

_BLOCK = 2**20  # rows of a table in a batch; entries of a matrix in a batch are four times as many


class Table:
    """Rows in memory: Table(frame, domain, neighbours="replace-one", name="people").

    rows        a pandas, polars or pyarrow frame, a dict of sequences, or the path of a .parquet or .csv file. Only
                declared columns are read. A CSV file is text; numbers and booleans are read from what it spells.
    domain      what may be in each column.
    neighbours  "replace-one" (the number of persons is public) or "add-remove" (it is private).
    unit        the column that names the person, when a person may hold several rows; at most rows_per_unit of them are
                kept, by a choice that depends on that person's rows only.
    size        add-remove: a number of persons that the owner declares, for what needs one. replace-one: checked.
    rehearsal   True: the rows are made up (`discreet.rehearsal`); ledgers of real tables refuse them.
    edition     the owner's public label of these rows. Declare a new one whenever rows are added, removed or corrected:
                a session answers only from releases about the same edition. None: no session answers about the rows.
    """

    __slots__ = ("__weakref__", "_codes", "_rows", "facts", "identity", "source")

    def __init__(
        self,
        rows: object,
        domain: Domain,
        *,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        size: int | None = None,
        rehearsal: bool = False,
        edition: str | None = FIRST_EDITION,
    ) -> None:
        domain, edition = checked_domain(domain), checked_edition(edition)
        self.identity = replace(identity_of(name, neighbours, unit, rows_per_unit), rehearsal=flag(rehearsal=rehearsal))
        self.source = resolved(rows) if isinstance(rows, (str, os.PathLike)) else None
        if rehearsal and self.source is not None:
            raise ParameterError("a rehearsal is on made-up rows, and a file may hold real ones: discreet.rehearsal")
        if self.source is None:
            block = frame_block(rows, domain, self.identity)
        else:
            block = joined(file_blocks(Scan(self.source), domain, self.identity))
        self._codes, found = block.codes, checked_rows(block.rows)
        if block.ids is not None:
            keep, found = persons.kept(block.ids, block.order(self.identity), self.identity.neighbours.rows)
            self._codes = {each: codes[keep] for each, codes in block.codes.items()}
        self._rows = len(self._codes[domain.names[0]])
        self.facts = facts_of(domain, self.identity, size=size, persons_found=found, edition=edition)

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        return sum_of(self._batches(), partial)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        return slices_of(self._batches, slices, domain=self.facts.domain, where=where, disjoint=disjoint)

    def _batches(self) -> Iterator[Batch]:
        return batches_of(self._codes, self.facts.domain, rows=self._rows, block=_BLOCK)

    def check_source(self) -> None:
        """Nothing to check: the rows are in memory."""

    def __repr__(self) -> str:
        return describe(self)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


class Matrix:
    """A feature matrix, and labels or targets: Matrix(X, y, features=Vector(d, norm=1), target=Category(0, 1)).

    X       numbers: a numpy array, a pandas, polars or pyarrow frame, or nested lists. Column "x" holds its rows on the
            integer grid of `features` (`discreet.data.grid`).
    y       labels, encoded by `target` into column "y"; both or neither.
    size    as in Table. Every row is one person.
    """

    __slots__ = ("__weakref__", "_codes", "_rows", "facts", "identity", "source")

    def __init__(
        self,
        X: object,  # noqa: N803 - the name that every user of feature matrices expects
        y: object = None,
        *,
        features: Vector,
        target: Category | Number | None = None,
        neighbours: Neighbours | str = "replace-one",
        size: int | None = None,
        name: str = "matrix",
    ) -> None:
        if (y is None) != (target is None):
            raise ParameterError("y and target belong together: give both or neither")
        self.identity = identity_of(name, neighbours, None, None)
        self.source: Path | None = None
        self._codes: dict[str, Any] = {"x": _features(X, features)}
        self._rows = len(self._codes["x"])
        domain = Domain(x=features)
        if target is not None:
            domain = Domain(x=features, y=target)
            self._codes["y"] = encode(read(y, "y"), target, "y").astype(stored_type(target))
            if len(self._codes["y"]) != self._rows:
                raise SchemaError("X and y are not equally long")
        self.facts = facts_of(domain, self.identity, size=size, persons_found=self._rows)

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        return sum_of(self._batches(), partial)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        return slices_of(self._batches, slices, domain=self.facts.domain, where=where, disjoint=disjoint)

    def _batches(self) -> Iterator[Batch]:
        block = _rows_at_once(self._codes["x"].shape[1])
        return batches_of(self._codes, self.facts.domain, rows=self._rows, block=block)

    def check_source(self) -> None:
        """Nothing to check: the rows are in memory."""

    def __repr__(self) -> str:
        return describe(self)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


def _features(rows: object, vector: Vector) -> npt.NDArray[Any]:
    """All rows on the grid, some at a time so that the floats of the whole matrix are never copied."""
    blocks = float_rows(rows, dimension=vector.dimension, block=_rows_at_once(vector.dimension))
    width = np.min_scalar_type(-math.isqrt(vector.bound_squared) - 1)
    units = [grid_rows(block, vector).astype(width) for block in blocks]
    checked_rows(sum(len(each) for each in units))
    return np.concatenate([np.zeros((0, vector.dimension), dtype=width), *units])


def _rows_at_once(dimension: int) -> int:
    return max(1, 4 * _BLOCK // dimension)
