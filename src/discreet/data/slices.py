"""The most extreme rows of columns: the second door, `exact_slices`, for any stream of batches.

Overlapping slices need the keys alone and one pass. Disjoint slices need whole rows, because equal keys are ordered by
the row, and what one slice takes the next must not see; rows are read again when too many would have to be kept.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Mask, ParameterError
from discreet.data.domain import Domain
from discreet.data.rows import Batch, Filter, Slice

Batches = Callable[[], Iterable[Batch]]


def slices_of(
    batches: Batches, slices: Sequence[Slice], *, domain: Domain, where: Filter | None, disjoint: bool
) -> list[Codes]:
    """The slices of a stream of batches that can be read again: `batches()` begins it anew.

    Order.     "low": by (key, row), "high": by (-key, row), where the key is the code of the slice's column and the row
               is the tuple of all its codes in the domain's order, without those of a Text, which mean nothing outside
               their dataset. Rows that compare equal are equal in all that a slice can show, so the result
               does not depend on the order or the cutting of the rows. Rows whose key is missing, or that `where`
               refuses, are in no slice; a slice is shorter than its count when there are not enough rows.
    Disjoint.  The rows of each slice are removed, as a multiset, before the next slices are taken.
    Passes.    One, if slices overlap: their keys are all that matters. Otherwise one for each group of slices whose
               rows fit in memory; the groups depend on the counts and the domain alone.
    """
    if where is not None:
        where.check(domain)
    for each in slices:
        if not (domain.column(each.column).ordered and domain.column(each.column).coded):
            raise ParameterError(f"column {each.column!r} has no order: a slice needs a Number")
    return _disjoint(batches, slices, domain, where) if disjoint else _overlapping(batches(), slices, where)


_BLOCK = 2**16  # codes that are partitioned at a time: once a block is full, few of the others pass
_KEPT = 2**24  # numbers that the rows kept for a group of disjoint slices may be


def _overlapping(batches: Iterable[Batch], slices: Sequence[Slice], where: Filter | None) -> list[Codes]:
    """Every slice from all rows: only keys are kept."""
    kept = [np.zeros(0, dtype=np.int64) for _ in slices]
    for batch in batches:
        here = None if where is None else where.mask(batch)
        keys: dict[str, npt.NDArray[Any]] = {}
        for place, each in enumerate(slices):
            if each.column not in keys:
                codes, missing = batch.stored(each.column), batch.domain.column(each.column).missing_code
                present = here if missing is None else codes != missing if here is None else here & (codes != missing)
                keys[each.column] = codes if present is None else codes[present]
            kept[place] = _extreme([kept[place], keys[each.column]], each)
    return [np.sort(codes)[:: 1 if each.side == "low" else -1] for codes, each in zip(kept, slices, strict=True)]


def _extreme(parts: Iterable[npt.NDArray[Any]], wanted: Slice) -> Codes:
    """The `count` most extreme codes of all parts, in no order."""
    low, count = wanted.side == "low", wanted.count
    kept = np.zeros(0, dtype=np.int64)
    for part in parts:
        for start in range(0, len(part), max(_BLOCK, 4 * count)) if count else ():
            block = part[start : start + max(_BLOCK, 4 * count)]
            if len(kept) == count:
                block = block[block < int(kept.max())] if low else block[block > int(kept.min())]
            kept = np.concatenate([kept, block.astype(np.int64, copy=False)])
            if len(kept) > count:
                kept = np.partition(kept, count - 1 if low else -count)
                kept = kept[:count].copy() if low else kept[-count:].copy()
    return kept


# Disjoint slices. A row is a place, in a batch or among kept rows; its columns are functions of places.

_Columns = Sequence[Callable[[Codes], Codes]]


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Rows that may be in a slice: signed keys, numbers in the stream, and all their codes, a line for each column."""

    key: Codes
    number: Codes
    codes: Codes

    def of(self, places: Codes) -> _Kept:
        return _Kept(self.key[places], self.number[places], self.codes[:, places])

    def with_more(self, more: _Kept) -> _Kept:
        pairs = ((self.key, more.key), (self.number, more.number), (self.codes, more.codes))
        return _Kept(*(np.concatenate(pair, axis=-1) for pair in pairs))

    def first(self, count: int, gone: Codes) -> _Kept:
        """The first rows in the slice's order, without those of these numbers."""
        left = np.flatnonzero(~np.isin(self.number, gone)) if len(gone) else np.arange(len(self.key))
        return self.of(_first(left, self.key[left], count, [line.__getitem__ for line in self.codes]))

    def last(self) -> Codes:
        """The places of the rows that come last in the slice's order; they are equal."""
        tied = np.arange(len(self.key))
        for line in (self.key, *self.codes):
            tied = tied[line[tied] == line[tied].max()]
        return tied


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where an earlier slice ended: at the last row it took, of whose copies it took `taken`. No row: it took all."""

    wanted: Slice
    code: int = 0
    row: tuple[int, ...] | None = None
    taken: int = 0

    @staticmethod
    def of(wanted: Slice, rows: _Kept) -> _Cut:
        if len(rows.key) < wanted.count:
            return _Cut(wanted)
        last = rows.last()
        return _Cut(wanted, abs(int(rows.key[last[0]])), tuple(rows.codes[:, last[0]].tolist()), len(last))


def _disjoint(batches: Batches, slices: Sequence[Slice], domain: Domain, where: Filter | None) -> list[Codes]:
    """Group by group: one pass keeps for each slice of the group the first rows that may be in it.

    Why it is enough to keep the first c_1 + ... + c_j rows of order j, of those that earlier groups left: the earlier
    slices of the group remove at most c_1 + ... + c_(j-1) of them, and removing rows never changes the order of others.
    What earlier groups took is seen from their cuts: of the rows alive when a slice was taken, it took those before its
    last row, and so many of those equal to it; the other rows before it were gone already.
    """
    cuts: list[_Cut] = []
    found: list[Codes] = []
    # Consecutive slices whose kept rows are at most _KEPT numbers together; a slice alone is always allowed.
    groups: list[list[Slice]] = []
    width, counted, numbers = sum(column.width for column in domain.values() if not column.free), 0, 0
    for each in slices:
        counted += each.count
        numbers += counted
        if groups and numbers * width <= _KEPT:
            groups[-1].append(each)
        else:
            groups.append([each])
            counted = numbers = each.count
    for group in groups:
        kept = _pass(batches(), group, cuts, where)
        gone = np.zeros(0, dtype=np.int64)
        for each, rows in zip(group, kept, strict=True):
            taken = rows.first(each.count, gone)
            gone = np.concatenate([gone, taken.number])
            found.append(np.abs(np.sort(taken.key)))
            if each.count:
                cuts.append(_Cut.of(each, taken))
    return found


def candidates_of(batches: Iterable[Batch], slices: Sequence[Slice], where: Filter | None) -> dict[str, Codes]:
    """The rows of some batches that may be in any of these slices of all rows, as codes; each row once.

    Lemma.     Let every part of the rows keep, for slice j, its first c_1 + ... + c_j rows in the order of slice j. The
               slices of what all parts keep, disjoint or not, are the slices of all rows.
    Proof.     A row of slice j is among the first c_1 + ... + c_j of all rows in order j, as `_disjoint` says, so it is
               among those of its part. A row that is in no slice may be left out: what each slice takes before it stays
               the same.
    """
    rest = iter(batches)
    first = next(rest)
    names = [name for name, column in first.domain.items() if not column.free]
    found = _pass(itertools.chain([first], rest), slices, (), where)
    number = np.concatenate([np.zeros(0, dtype=np.int64), *(each.number for each in found)])
    codes = np.concatenate([np.zeros((len(names), 0), dtype=np.int64), *(each.codes for each in found)], axis=1)
    _, once = np.unique(number, return_index=True)
    return dict(zip(names, codes[:, once], strict=True))


def _pass(batches: Iterable[Batch], group: Sequence[Slice], cuts: Sequence[_Cut], where: Filter | None) -> list[_Kept]:
    """For each slice of the group, the first rows in its order that earlier groups left."""
    keep = [sum(each.count for each in group[: place + 1]) for place in range(len(group))]
    kept: list[_Kept | None] = [None] * len(group)
    copies = Counter[tuple[int, ...]]()
    for cut in cuts:
        if cut.row is not None:
            copies[cut.row] += cut.taken
    read = 0
    for batch in batches:
        alive = np.ones(batch.rows, dtype=bool) if where is None else where.mask(batch).copy()
        lines = [batch.stored(name) for name, column in batch.domain.items() if not column.free]
        flat = [line for each in lines for line in (each.T if each.ndim == 2 else [each])]
        columns: _Columns = [lambda places, line=line: line[places].astype(np.int64) for line in flat]  # type: ignore[misc]
        _bury(alive, batch, columns, cuts, copies)
        for place, each in enumerate(group):
            more = _candidates(batch, columns, alive, each, keep[place], kept[place], read)
            if (old := kept[place]) is not None:
                both = old.with_more(more) if len(more.key) else old
                more = both if len(both.key) <= keep[place] else both.first(keep[place], both.number[:0])
            kept[place] = more
        read += batch.rows
    return [rows for rows in kept if rows is not None]


def _bury(alive: Mask, batch: Batch, columns: _Columns, cuts: Sequence[_Cut], copies: Counter[tuple[int, ...]]) -> None:
    """Mark the rows that earlier slices took; of the rows equal to a last row, as many as are still in `copies`."""
    equal: dict[tuple[int, ...], Codes] = {}
    for cut in cuts:
        codes, missing = batch.stored(cut.wanted.column), batch.domain.column(cut.wanted.column).missing_code
        if cut.row is None:
            alive &= False if missing is None else codes == missing
            continue
        near = np.flatnonzero(alive & (codes <= cut.code if cut.wanted.side == "low" else codes >= cut.code))
        if missing is not None:
            near = near[codes[near] != missing]
        at = codes[near] == cut.code
        alive[near[~at]] = False
        tied = near[at]  # which of these hold a row before the cut's, and which an equal one, column by column
        for column, code in zip(columns, cut.row, strict=True):
            value = column(tied)
            alive[tied[value < code]] = False
            tied = tied[value == code]
        equal[cut.row] = tied
    for row, places in equal.items():
        taken = places[alive[places]][: copies[row]]
        alive[taken] = False
        copies[row] -= len(taken)


def _candidates(
    batch: Batch, columns: _Columns, alive: Mask, wanted: Slice, keep: int, kept: _Kept | None, read: int
) -> _Kept:
    """The first `keep` rows of the batch, without those that cannot come before what is kept already."""
    codes, missing = batch.stored(wanted.column), batch.domain.column(wanted.column).missing_code
    places = np.flatnonzero(alive if missing is None else alive & (codes != missing))
    key = codes[places].astype(np.int64)
    key = key if wanted.side == "low" else -key
    limit = int(kept.key.max()) if kept is not None and 0 < keep == len(kept.key) else None
    if len(key) > keep > 0:
        nearest = int(_extreme([key], Slice(wanted.column, "low", keep)).max())
        limit = nearest if limit is None else min(nearest, limit)
    if limit is not None:
        near = key <= limit
        places, key = places[near], key[near]
    chosen = np.sort(_first(places, key, keep, columns))
    signed = codes[chosen].astype(np.int64) * (1 if wanted.side == "low" else -1)
    return _Kept(signed, chosen + read, np.stack([column(chosen) for column in columns]))


def _first(places: Codes, key: Codes, count: int, columns: _Columns) -> Codes:
    """The first `count` of these places in the order (key, row), in no order: ties are decided column by column."""
    if len(places) <= count or count == 0:
        return places[:count]
    chosen, tied, wanted = [], places, count
    for column in (None, *columns):
        value = key if column is None else column(tied)
        cut = np.partition(value, wanted - 1)[wanted - 1]
        before = value < cut
        chosen.append(tied[before])
        tied, wanted = tied[value == cut], wanted - int(np.count_nonzero(before))
        if len(tied) == wanted:
            break
    return np.concatenate([*chosen, tied[:wanted]])
