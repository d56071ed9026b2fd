"""A question as a linear function of the rows: a tensor over its scope, the columns that it mentions.

Count, Sum and Histogram have one form. Number the cells of the scope; `place` says which number of the answer a row in
that cell adds to (-1: none), `weight` how much it adds, in the query's units. With the marginal of a table over the
scope (how many rows are in each cell) the answer is

    answer[p] = sum over cells with place p of weight[cell] * marginal[cell],

whether the table is the true one or a guess. Nothing here looks at rows.

Two questions *mean the same* if they have this form in common over the columns that matter: a cell-by-cell comparison
over the declared domain, never over the rows. Questions about too many cells are not listed; they mean the same only if
they are written alike.
"""

from __future__ import annotations

import functools
import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data import Batch, Category, Domain, Floats, IntArray, Number
from discreet.errors import ParameterError
from discreet.hypothesis import Linear
from discreet.query import EVERYTHING, Count, Histogram, Sum
from discreet.records import canonical, digest, record

MAX_CELLS = 2**22
"""Cells of a scope that are listed; a question about more can only be answered from the rows."""

MAX_WORK = 2**26
"""Cells times comparisons of a condition that are looked at to list a question; the same holds for more."""

Question = Count | Sum | Histogram


def scope_of(question: Question, domain: Domain) -> tuple[str, ...]:
    """The columns that a question mentions, in the domain's order."""
    mentions = mentioned(question)
    return tuple(name for name in domain.names if name in mentions)


def mentioned(question: Question) -> frozenset[str]:
    """The columns that a question mentions."""
    summed = (question.column,) if isinstance(question, Sum) else ()
    return frozenset((*question.where.columns, *_grouped(question), *summed))


def cells_of(scope: tuple[str, ...], domain: Domain) -> int | None:
    """How many cells a scope has; None if one of its columns cannot be listed."""
    columns = [domain.column(name) for name in scope]
    if not all(isinstance(column, (Category, Number)) for column in columns):
        return None
    return math.prod(column.size for column in columns)


def linear(question: Question, domain: Domain) -> Linear | None:
    """The question's form over the columns that matter; None if what it mentions has more cells than are listed."""
    cells = cells_of(scope_of(question, domain), domain)
    if cells is None or cells > MAX_CELLS or cells * question.where.atoms > MAX_WORK:
        return None
    return _small(question, domain) if cells <= 2**12 else _large(question, domain)


@functools.lru_cache(maxsize=4096)
def _small(question: Question, domain: Domain) -> Linear:
    return _listed(question, domain)


@functools.lru_cache(maxsize=16)
def _large(question: Question, domain: Domain) -> Linear:
    return _listed(question, domain)


def _listed(question: Question, domain: Domain) -> Linear:
    scope = scope_of(question, domain)
    batch = all_cells(scope, domain)
    shape = tuple(domain.column(name).size for name in scope)
    inside = question.where.mask(batch)
    place, outputs = _places(question, batch, domain)
    weight = _weights(question, batch, domain)
    held = np.where(inside, weight, 0.0)
    return _reduced(Linear(scope, shape, outputs, np.where(inside, place, -1), held))


def all_cells(scope: tuple[str, ...], domain: Domain) -> Batch:
    """One made-up row for every cell of a scope."""
    shape = tuple(domain.column(name).size for name in scope)
    codes = dict(zip(scope, np.indices(shape).reshape(len(shape), math.prod(shape)), strict=True))
    return Batch(domain, math.prod(shape), codes.__getitem__)


@functools.lru_cache(maxsize=65536)
def meaning(question: Question, domain: Domain) -> str:
    """A text that two questions share only if they have the same answer on every table with this domain."""
    form = linear(question, domain)
    if form is None:
        return f"text:{digest(record(question))}"
    what: dict[str, Any] = {
        "groups": [] if not isinstance(question, Histogram) else list(question.columns),
        "scope": list(form.scope),
        "unit": str(question.column) if isinstance(question, Sum) else "",
    }
    hashed = hashlib.sha256(canonical(what).encode())
    hashed.update(form.place.astype(np.int64).tobytes())
    hashed.update(form.weight.tobytes())
    return f"cells:{hashed.hexdigest()}"


def constant(question: Question, domain: Domain) -> bool | None:
    """True if every row of the domain satisfies the condition, False if none does, None if it depends or is unknown."""
    if question.where == EVERYTHING:
        return True
    form = linear(Count(question.where), domain)
    if form is None:
        return None
    inside = form.place >= 0
    return True if inside.all() else False if not inside.any() else None


def nothing(question: Question, domain: Domain) -> bool:
    """Whether every row of the domain adds 0 to a sum, so that it is 0 whatever the rows are."""
    if not isinstance(question, Sum):
        return False
    form = linear(question, domain)
    return form is not None and not form.weight.any()


def _grouped(question: Question) -> tuple[str, ...]:
    return question.columns if isinstance(question, Histogram) else ()


def _places(question: Question, batch: Batch, domain: Domain) -> tuple[IntArray, tuple[int, ...]]:
    place = np.zeros(batch.rows, dtype=np.int64)
    if not isinstance(question, Histogram):
        return place, ()
    outputs = question.shape(domain)
    for name, size in zip(question.columns, outputs, strict=True):
        place = place * size + batch[name]
    return place, outputs


def _weights(question: Question, batch: Batch, domain: Domain) -> Floats:
    if not isinstance(question, Sum):
        return np.ones(batch.rows)
    column = domain.column(question.column)
    if not isinstance(column, Number):
        raise ParameterError(f"column {question.column!r} is declared {column!r}: it has no bounded sum")
    found: Floats = _values(column)[batch[question.column]]
    return found


def _values(column: Number) -> Floats:
    """The values of a grid as floats, each the nearest one; a missing value is worth 0."""
    unit, codes = column.unit, np.arange(column.steps + 1)
    low, step = int(column.low / unit) * unit.numerator, int(column.step / unit) * unit.numerator
    if max(abs(low) + step * column.steps, unit.denominator) < 2**53:  # both sides of the quotient are exact
        values = (low + step * codes) / np.float64(unit.denominator)
    else:
        values = np.array([float(column.value(code)) for code in codes.tolist()])
    return np.append(values, [0.0] * column.missing)


def _reduced(form: Linear) -> Linear:
    """The same question without the columns that do not matter to it."""
    scope, shape = list(form.scope), list(form.shape)
    tables: list[npt.NDArray[Any]] = [form.place.reshape(form.shape), form.weight.reshape(form.shape)]
    for axis in reversed(range(len(scope))):
        first = [np.take(table, [0], axis=axis) for table in tables]
        if all((table == one).all() for table, one in zip(tables, first, strict=True)):
            tables = [np.take(one, 0, axis=axis) for one in first]
            del scope[axis], shape[axis]
    place, weight = tables
    return Linear(tuple(scope), tuple(shape), form.outputs, place.ravel(), weight.ravel())
