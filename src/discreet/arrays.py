"""The array types of the package, each named once, and booleans as bits of words.

    Floats    float64
    Ints      int64
    Codes     int64, the codes of a column's values
    Mask      booleans
    Words     unsigned 64-bit words
    IntArray  sums: int64, or Python integers as objects where 64 bits may not hold them

`discreet.data` exports them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
IntArray = NDArray[Any]

WORD = 64
_CACHED = 2**16  # words that are worked on together, so that they stay in the cache


def packed(mask: Mask) -> Words:
    """Booleans, along the last axis, as bits of words; the last word is filled with zeros."""
    filled = np.packbits(mask, axis=-1, bitorder="little")
    missing = -filled.shape[-1] % (WORD // 8)
    if missing:
        filled = np.pad(filled, [(0, 0)] * (filled.ndim - 1) + [(0, missing)])
    return np.ascontiguousarray(filled).view("<u8")


def unpacked(words: Words, rows: int) -> Mask:
    """The first `rows` bits along the last axis."""
    found = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(found, axis=-1, count=rows, bitorder="little").astype(np.bool_, copy=False)


def common_ones(lines: Words, mask: Words) -> Ints:
    """How many ones each line has in common with the mask."""
    found = np.empty(len(lines), dtype=np.int64)
    together = max(1, _CACHED // max(1, len(mask)))
    both = np.empty((together, len(mask)), dtype=np.uint64)
    ones = np.empty(both.shape, dtype=np.uint8)
    for start in range(0, len(lines), together):
        part = lines[start : start + together]
        np.bitwise_and(part, mask, out=both[: len(part)])
        np.bitwise_count(both[: len(part)], out=ones[: len(part)])
        found[start : start + together] = ones[: len(part)].sum(axis=1, dtype=np.uint32)
    return found
