"""Junction trees: a product of tables over scopes is summed through small tables, never over the whole domain.

Columns that stand in one scope are neighbours. Eliminating them one by one, each leaves a clique: itself and its
neighbours, which become neighbours of each other. The cliques that no other contains, joined by a spanning tree with
the largest intersections (*separators*), have the running intersection property; two waves of messages over the tree
leave in every clique the exact marginal of the whole product. The cost is the size of the cliques' tables, and that
is known from the public sizes before anything is computed.

The order of elimination is the better of two greedy ones: least new neighbours, least table. Both are functions of the
columns and scopes alone, so that the same scopes give the same tree. Messages are in log space.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.core import Floats, ParameterError
from discreet.hypothesis.tensor import Scope, lay

MAX_TREE = 2**24
"""Cells of the largest table that is made to answer from a factored hypothesis."""

Columns = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques, the root first and every other after its parent; separator i is what clique i shares with its parent."""

    cliques: tuple[Scope, ...]
    parents: tuple[int, ...]
    separators: tuple[Scope, ...]
    sets: tuple[frozenset[str], ...]

    @staticmethod
    @lru_cache(maxsize=256)
    def of(columns: Columns, scopes: tuple[Scope, ...], root: Scope) -> JunctionTree:
        """Prim's algorithm: always the clique that shares most columns with one already in the tree."""
        cliques = _cliques(columns, scopes) or ((),)
        sets = [frozenset(clique) for clique in cliques]
        first = next(i for i, clique in enumerate(sets) if clique.issuperset(root))
        order, parents = [first], [-1]
        shared = {i: (len(clique & sets[first]), 0) for i, clique in enumerate(sets) if i != first}
        while shared:
            following = max(shared, key=lambda i: (shared[i][0], -i))
            parents.append(shared.pop(following)[1])
            order.append(following)
            for i in shared:
                common = len(sets[i] & sets[following])
                if common > shared[i][0]:
                    shared[i] = (common, len(order) - 1)
        chosen = tuple(cliques[i] for i in order)
        separators = tuple(
            () if parent < 0 else tuple(name for name in clique if name in chosen[parent])
            for clique, parent in zip(chosen, parents, strict=True)
        )
        return JunctionTree(chosen, tuple(parents), separators, tuple(sets[i] for i in order))

    def holding(self, scope: Iterable[str]) -> int | None:
        """The first clique that has all these columns."""
        wanted = frozenset(scope)
        return next((i for i, clique in enumerate(self.sets) if wanted <= clique), None)


def tree_cells(sizes: Mapping[str, int], scopes: Iterable[Iterable[str]]) -> int:
    """Cells of the largest table that answering needs when these scopes are measured."""
    return max((_cells(clique, sizes) for clique in _cliques(*_key(sizes, scopes))), default=1)


def tree_of(sizes: Mapping[str, int], scopes: Sequence[Scope], root: Scope = ()) -> JunctionTree:
    """A tree with every scope in some clique and the root scope in the first; refused if a table is too large."""
    columns, distinct = _key(sizes, [*scopes, root])
    largest = max(_cliques(columns, distinct), key=lambda clique: _cells(clique, sizes), default=())
    if _cells(largest, sizes) > MAX_TREE:
        raise ParameterError(
            f"the scopes tangle: {f'answering about {list(root)}' if root else 'answering'} needs one table over "
            f"{list(largest)} with {_cells(largest, sizes):,} cells; at most {MAX_TREE:,} are made. "
            "Ask about fewer of these columns together"
        )
    return JunctionTree.of(columns, distinct, root)


def _cells(scope: Scope, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in scope)


def _key(sizes: Mapping[str, int], scopes: Iterable[Iterable[str]]) -> tuple[Columns, tuple[Scope, ...]]:
    sets = {frozenset(scope) for scope in scopes} - {frozenset()}
    mentioned = frozenset().union(*sets)
    unknown = sorted(mentioned - sizes.keys())
    if unknown:
        raise ParameterError(f"the scopes name {unknown}; the columns are {list(sizes)}")
    columns = tuple((name, size) for name, size in sizes.items() if name in mentioned)
    place = {name: i for i, (name, _) in enumerate(columns)}
    return columns, tuple(sorted(tuple(sorted(scope, key=place.__getitem__)) for scope in sets))


@lru_cache(maxsize=1024)
def _cliques(columns: Columns, scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Largest cliques of the better elimination order, each in the order of the columns."""
    place = {name: i for i, (name, _) in enumerate(columns)}
    logs = [math.log(size) for _, size in columns]
    masks = [sum(1 << place[name] for name in scope) for scope in scopes]
    orders = [eliminate(masks, logs, by_fill=by_fill) for by_fill in (True, False)]
    best = min(orders, key=lambda cliques: sorted((_weight(mask, logs) for mask in cliques), reverse=True))
    return tuple(tuple(columns[i][0] for i in _bits(mask)) for mask in best)


def eliminate(scopes: list[int], logs: list[float], *, by_fill: bool) -> list[int]:
    """Cliques, as bit sets, that greedy elimination leaves; those inside another are dropped."""
    near = [0] * len(logs)
    for scope in scopes:
        for i in _bits(scope):
            near[i] |= scope
    score: dict[int, tuple[float, float, int]] = {}
    stale, cliques = (1 << len(logs)) - 1, list[int]()
    left = stale
    while left:
        for i in _bits(stale & left):
            # How many pairs of neighbours of a column are not yet neighbours of each other, twice.
            fill = sum((near[i] & ~near[j]).bit_count() for j in _bits(near[i]))
            weight = round(_weight(near[i], logs), 9)
            score[i] = (fill, weight, i) if by_fill else (weight, fill, i)
        chosen = min(score.values())[2]
        del score[chosen]
        clique, bit = near[chosen], 1 << chosen
        if not any(clique | other == other for other in cliques):
            cliques.append(clique)
        left &= ~bit
        stale = 0
        for i in _bits(clique & ~bit):
            near[i] = (near[i] | clique) & ~bit
            stale |= near[i]
    return cliques


def _weight(mask: int, logs: list[float]) -> float:
    return sum(logs[i] for i in _bits(mask))


def _bits(mask: int) -> list[int]:
    places = []
    while mask:
        low = mask & -mask
        places.append(low.bit_length() - 1)
        mask ^= low
    return places


def root_share(tree: JunctionTree, sizes: Mapping[str, int], logs: Mapping[Scope, Floats]) -> Floats:
    """The marginal of the normalised product over the columns of the root clique."""
    return _shares(_collected(tree, sizes, logs)[0][0])


def all_shares(tree: JunctionTree, sizes: Mapping[str, int], logs: Mapping[Scope, Floats]) -> list[Floats]:
    """The marginals of the normalised product over the columns of every clique."""
    tables, sent = _collected(tree, sizes, logs)
    for i in range(1, len(tables)):
        parent, separator = tree.parents[i], tree.separators[i]
        whole = _log_sum(tables[parent], tree.cliques[parent], separator)
        back = whole - np.where(np.isneginf(sent[i]), 0.0, sent[i])  # what the rest of the tree says
        tables[i] += lay(back, separator, tree.cliques[i])
    return [_shares(table) for table in tables]


def _collected(
    tree: JunctionTree, sizes: Mapping[str, int], logs: Mapping[Scope, Floats]
) -> tuple[list[Floats], list[Floats]]:
    """Tables after the wave towards the root, and the messages that each clique sent to its parent."""
    tables = [np.zeros([sizes[name] for name in clique]) for clique in tree.cliques]
    for scope, log in logs.items():
        home = tree.holding(scope)
        assert home is not None
        tables[home] += lay(log, scope, tree.cliques[home])
    sent = [np.zeros(())] * len(tables)
    for i in reversed(range(1, len(tables))):
        parent = tree.parents[i]
        sent[i] = _log_sum(tables[i], tree.cliques[i], tree.separators[i])
        tables[parent] += lay(sent[i], tree.separators[i], tree.cliques[parent])
    return tables, sent


def _log_sum(table: Floats, columns: Scope, kept: Scope) -> Floats:
    """log of the sum of exp(table) over the columns that are not kept."""
    summed = tuple(axis for axis, name in enumerate(columns) if name not in kept)
    if not summed:
        return table.copy()
    top = table.max(axis=summed, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):  # the log of 0 is -inf: an impossible cell
        added: Floats = np.asarray(np.log(np.exp(table - top).sum(axis=summed)))
    return np.asarray(added + top.reshape(added.shape))


def _shares(table: Floats) -> Floats:
    shares: Floats = np.exp(table - table.max())
    return np.asarray(shares / shares.sum())
