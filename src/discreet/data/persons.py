"""Several rows a person: which rows are kept.

A person may hold many rows; at most k of them are kept. Which ones is a function of that person's rows, as the declared
columns encode them, and of the declared name of the table only, never of anybody else's rows or of the order of the
file: a person's rows are ordered by a keyed 64-bit mix of their codes and the first k are kept. The key is derived from
the name, so that the choice looks random and two tables choose differently. Equal rows are interchangeable.

A person is known by an identifier: a whole number, used exactly, or a text, used through a keyed 128-bit hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Words
from discreet.data.columns import Values
from discreet.errors import SchemaError

_MASK = 2**64 - 1


def key_of(name: str) -> bytes:
    """The public key of a table with this declared name."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16, person=b"discreet-rows/1").digest()


def row_order(columns: Iterable[npt.NDArray[Any]], key: bytes) -> Words:
    """The keyed mix of each row's codes: the order in which a person's rows are kept."""
    mixed = np.array(int.from_bytes(key[:8], "little"), dtype=np.uint64)
    for column in columns:
        mixed = _mix(mixed ^ _mix(column.astype(np.int64).view(np.uint64)))
    return mixed


def person_ids(parts: Sequence[Values], key: bytes, unit: str) -> tuple[Words, Words]:
    """Two words for each row that are equal exactly (for text: but for a hash collision) for rows of one person."""
    high = np.zeros(sum(len(part.data) for part in parts), dtype=np.uint64)
    low = high.copy()
    for part in parts:
        if part.null.any():
            raise SchemaError(f"column {unit!r} names the person, and it has missing values")
        here: Any = slice(None) if part.where is None else part.where
        high[here], low[here] = _ids(part, key, unit)
    return high, low


def _ids(values: Values, key: bytes, unit: str) -> tuple[Words, Words]:
    if values.kind == "nothing":
        empty = np.zeros(len(values.data), dtype=np.uint64)
        return empty, empty
    if values.kind == "text":
        pairs = _pairs(_hash(text.encode("utf-8", "surrogatepass"), key) for text in values.texts)[values.data]
        return pairs[:, 0], pairs[:, 1]
    if values.data.dtype == object and all(_is_whole(entry) for entry in values.data):
        pairs = _pairs(_wide(int(entry), key) for entry in values.data)
        return pairs[:, 0], pairs[:, 1]
    if values.kind == "whole":
        return (values.data < 0).astype(np.uint64), values.data.view(np.uint64)
    raise SchemaError(f"column {unit!r} names the person: it must hold whole numbers or text")


def _pairs(digests: Iterable[bytes]) -> Words:
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _hash(data: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16, key=key, person=b"discreet-unit/1").digest()


def _is_whole(entry: Any) -> bool:
    """Of a whole number, fraction or decimal."""
    if isinstance(entry, Decimal):
        return bool(entry.is_finite() and entry == entry.to_integral_value())
    return bool(entry % 1 == 0)


def _wide(number: int, key: bytes) -> bytes:
    """A whole number of any size: exact in 64 bits and a sign, hashed beyond."""
    if -(2**63) <= number < 2**64:
        return int(number < 0).to_bytes(8, "little") + (number & _MASK).to_bytes(8, "little")
    return _hash(str(number).encode(), key)


def kept(ids: tuple[Words, Words], order: Words, limit: int) -> tuple[npt.NDArray[np.bool_], int]:
    """Which rows are among the first `limit` of their person, and how many persons there are."""
    high, low = ids
    by_person = np.lexsort((order, low, high))
    high, low = high[by_person], low[by_person]
    starts = np.ones(len(by_person), dtype=bool)
    starts[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    places = np.arange(len(by_person))
    rank = places - np.maximum.accumulate(np.where(starts, places, 0))
    keep = np.zeros(len(by_person), dtype=bool)
    keep[by_person] = rank < limit
    return keep, int(starts.sum())


def partition(ids: tuple[Words, Words], parts: int) -> npt.NDArray[np.int64]:
    """A part in 0 .. parts - 1 for each row, the same for all rows of a person."""
    return (_mix(ids[0] ^ _mix(ids[1])) % np.uint64(parts)).astype(np.int64)


def _mix(words: Words) -> Words:
    """The finalizer of splitmix64: a fixed permutation of the 64-bit words."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))
