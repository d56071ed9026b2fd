"""A query as a linear function of the rows: a tensor over its scope, the columns that it mentions.

Count, Sum and Histogram have one form (`Linear`). Number the cells of the scope; `place` says which number of the
answer a row in that cell adds to (-1: none), `weight` how much it adds, in the query's units. With the marginal of a
table over the scope (how many rows are in each cell) the answer is

    answer[p] = sum over cells with place p of weight[cell] * marginal[cell],

whether the table is the true one or a guess. Nothing here looks at rows.

Two queries *mean the same* if they have this form in common over the columns that matter: a cell-by-cell comparison
over the declared domain, never over the rows. Queries about too many cells are not listed; they mean the same only if
they are written alike.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Json, ParameterError, canonical, digest, record
from discreet.data import Batch, Codes, Domain
from discreet.hypothesis import Linear, Scope
from discreet.query import EVERYTHING, Count, Not, OfPersons, Persons, Question

MAX_CELLS = 2**22
"""Cells of a scope that are listed; a query about more can only be answered from the rows."""

MAX_WORK = 2**26
"""Cells times comparisons of a condition that are looked at to list a query; the same holds for more."""


MAX_GROUPS_WORK = 2**18
"""Groups times cells up to which what is known about each group alone is looked up."""


def scope_of(query: Question, domain: Domain) -> Scope:
    """The columns that a query mentions, in the domain's order."""
    mentioned = query.scope
    return tuple(name for name in domain.names if name in mentioned)


def linear(query: Question, domain: Domain) -> Linear | None:
    """The query's form over the columns that matter; None if what it mentions has more cells than are listed."""
    cells = _listed_cells(query, domain)
    return None if cells is None else next(form for most, form in _FORMS if cells <= most)(query, domain)


def _listed_cells(query: Question, domain: Domain) -> int | None:
    """How many cells are listed for a query; None if they are not."""
    if isinstance(query, Persons | OfPersons):  # a person's rows are not added up
        return None
    columns = [domain.column(name) for name in scope_of(query, domain)]
    cells = math.prod(column.size for column in columns)
    listed = all(column.listed for column in columns) and cells <= MAX_CELLS and cells * query.atoms <= MAX_WORK
    return cells if listed else None


def require_linear(query: Question, domain: Domain) -> Linear:
    """The same, or a refusal."""
    form = linear(query, domain)
    if form is None:
        raise ParameterError(f"{query!r} has too many cells to be listed")
    return form


def _form(query: Any, domain: Domain) -> Linear:
    scope, outputs = list(scope_of(query, domain)), query.shape(domain)
    shape = [domain.column(name).size for name in scope]
    batch = all_cells(tuple(scope), domain)
    inside, place, weight = query.rows(domain).mask(batch), query.places(batch), query.weights(batch)
    place, weight = np.where(inside, place, -1), np.where(inside, weight, 0.0)
    return _reduced(Linear(tuple(scope), tuple(shape), outputs, place, weight))


def _reduced(form: Linear) -> Linear:
    """The same form without the columns that do not matter."""
    scope, shape = list(form.scope), list(form.shape)
    tables: list[npt.NDArray[Any]] = [table.reshape(shape) for table in (form.place, form.weight)]
    for axis in reversed(range(len(scope))):
        first = [np.take(table, [0], axis=axis) for table in tables]
        if all((table == one).all() for table, one in zip(tables, first, strict=True)):
            tables = [np.take(one, 0, axis=axis) for one in first]
            del scope[axis], shape[axis]
    return Linear(tuple(scope), tuple(shape), form.outputs, tables[0].ravel(), tables[1].ravel())


_TIERS = ((2**12, 2**5), (2**16, 2**4), (MAX_CELLS, 2**4))
_FORMS = [(most, functools.lru_cache(maxsize=held)(_form)) for most, held in _TIERS]
"""By the cells of a query how many forms are remembered: 16 bytes per cell, at most a gigabyte in all.

A query is a tree of small objects. Those that outlive some questions make Python's garbage collector look at all
objects of the process sooner, so the caches of queries are only as large as a few questions need."""


def all_cells(scope: Scope, domain: Domain) -> Batch:
    """One made-up row for every cell of a scope."""
    shape = tuple(domain.column(name).size for name in scope)

    def codes(name: str) -> Codes:
        axis = scope.index(name)
        own = np.arange(shape[axis]).reshape([-1 if place == axis else 1 for place in range(len(shape))])
        return np.broadcast_to(own, shape).ravel()

    return Batch(domain, math.prod(shape), codes)


@functools.lru_cache(maxsize=32)
def meaning(query: Question, domain: Domain) -> str:
    """A text that two queries share only if they have the same answer on every table with this domain."""
    form = linear(query, domain)
    if form is None:
        return f"text:{digest(record(query))}"
    return _hashed(form, query.groups, "" if query.counting else getattr(query, "column", "value"))


@functools.lru_cache(maxsize=16)
def meaning_of_others(query: Count, domain: Domain) -> str:
    """The meaning of the count of all other rows: of the same cells, those that the query does not count."""
    others, form = Count(Not(query.where)), linear(query, domain)
    if form is None or _listed_cells(others, domain) is None:
        return meaning(others, domain)
    counted = form.place < 0
    return _hashed(replace(form, place=np.where(counted, 0, -1), weight=counted.astype(np.float64)))


def _hashed(form: Linear, groups: Sequence[str] = (), unit: str = "") -> str:
    about: dict[str, Json] = {"groups": list(groups), "scope": list(form.scope), "unit": unit}
    if int(form.place.max(initial=-1)) + 1 != math.prod(
        form.outputs
    ):  # the cells do not say how many numbers there are
        about["shape"] = list(form.outputs)
    hashed = hashlib.sha256(canonical(about).encode())
    hashed.update(form.place.astype(np.int64).tobytes())
    hashed.update(form.weight.tobytes())
    return f"cells:{hashed.hexdigest()}"


@functools.lru_cache(maxsize=16)
def group_meanings(query: Question, domain: Domain) -> tuple[str, ...]:
    """For each number of a grouped count the meaning of the count of that group alone; none where there are many."""
    form = linear(query, domain)
    numbers = math.prod(query.shape(domain))
    if form is None or not query.counting or not query.groups or numbers * form.cells > MAX_GROUPS_WORK:
        return ()
    masks = (form.place == number for number in range(numbers))
    alone = (replace(form, outputs=(), place=np.where(mask, 0, -1), weight=mask.astype(np.float64)) for mask in masks)
    return tuple(_hashed(_reduced(one)) for one in alone)


def constant(query: Question, domain: Domain) -> bool | None:
    """True if every row of the domain satisfies the condition, False if none does, None if it depends or is unknown."""
    if query.where == EVERYTHING:
        return True
    form = linear(Count(query.where), domain)
    if form is None:
        return None
    inside = form.place >= 0
    return True if inside.all() else None if inside.any() else False
