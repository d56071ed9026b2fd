"""Labelled rows for the benchmarks of rule learners, made from fixed seeds: the same arrays for every library."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.erm_data import Split

ROWS = 10_000
BITS = (3, 17, 41)  # the variables of the conjunction, counted from 0
Words = npt.NDArray[np.uint64]


def box(dimension: int, low: float, high: float, seed: int = 0) -> Split:
    """Uniform points of a cube, positive inside a smaller one."""
    rng = np.random.default_rng([11, seed])
    x = rng.random((2 * ROWS, dimension))
    return _halved(x, ((x >= low) & (x <= high)).all(axis=1))


def conjunction(chance: float, dimension: int = 50, seed: int = 0) -> Split:
    """Independent bits, positive where three of them are set."""
    rng = np.random.default_rng([12, seed])
    x = rng.random((2 * ROWS, dimension)) < chance
    return _halved(x.astype(np.float64), x[:, BITS].all(axis=1))


SETTINGS = {
    "box, d = 2": lambda seed: box(2, 0.2, 0.75, seed),
    "box, d = 10": lambda seed: box(10, 0.03, 0.97, seed),
    "3 of 50 bits, P(bit) = .8": lambda seed: conjunction(0.8, seed=seed),
    "3 of 50 bits, P(bit) = .5": lambda seed: conjunction(0.5, seed=seed),
}


def packed_bits(rows: int, dimension: int, seed: int = 0) -> tuple[Words, npt.NDArray[np.bool_]]:
    """Fair bits, made packed (d, words), and the label v1 and not v2 and v3; whole words of rows."""
    rng = np.random.default_rng([13, seed])
    words = rng.integers(0, 2**64, size=(dimension, rows // 64), dtype=np.uint64)
    positive = words[0] & ~words[1] & words[2]
    return words, np.unpackbits(positive.view(np.uint8), bitorder="little").astype(bool)


def _halved(x: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_]) -> Split:
    y = positive.astype(np.int64)
    return Split(x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:])
