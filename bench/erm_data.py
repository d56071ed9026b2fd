"""The data of the regression benchmarks, the same arrays for every library.

What a library must be told (bounds, norms, means and deviations for standardising) is taken as public, for all alike.
The real data come with scikit-learn; the synthetic ones are made from a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
TARGET_BOUND = 3.0  # of the synthetic linear regression


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to be judged on."""

    x: Floats
    y: Array
    x_test: Floats
    y_test: Array

    @property
    def delta(self) -> float:
        """n^-1.1: with it a row in the clear is no fair answer, and hardly anything stronger is asked in practice."""
        return float(len(self.x) ** -1.1)

    def save(self, path: Path) -> None:
        np.savez(path, x=self.x, y=self.y, x_test=self.x_test, y_test=self.y_test)


def standard(train: Floats, *others: Floats) -> list[Floats]:
    """Standardised by the first, divided by sqrt(d), rows clipped to the unit ball."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation[deviation == 0] = 1
    return [unit_ball((rows - mean) / deviation / np.sqrt(train.shape[1])) for rows in (train, *others)]


def unit_ball(rows: Floats) -> Floats:
    """Every row divided by its norm if that exceeds 1."""
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]


def breast() -> Split:
    """Breast cancer, 30 features: 398 rows to learn from, 171 to be judged on."""
    x, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    train, test = standard(train, test)
    return Split(train, y_train, test, y_test)


def logistic() -> Split:
    """100,000 rows and 50 features in the unit ball, P(y = 1) = sigmoid(20 <x, w>) for a w of length 1."""
    rng = np.random.default_rng(7)
    x = unit_ball(rng.normal(size=(120_000, 50)) / np.sqrt(50))
    w = rng.normal(size=50)
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-20 * x @ (w / np.linalg.norm(w))))).astype(np.int64)
    return _cut(x, y)


def diabetes() -> Split:
    """Diabetes, 10 features, 309 rows to learn from; the target, between 25 and 346, is moved to its middle."""
    x, y = load_diabetes(return_X_y=True)
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0)
    train, test = standard(train, test)
    return Split(train, y_train - 185.5, test, y_test - 185.5)


def linear() -> Split:
    """100,000 rows, 20 features uniform in [-1, 1], noise of half the signal's deviation, target clipped to [-3, 3]."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (120_000, 20))
    w = rng.normal(size=20)
    signal = x @ (w / np.linalg.norm(w))
    y = np.clip(signal + rng.normal(size=len(x)) * signal.std() / 2, -TARGET_BOUND, TARGET_BOUND)
    return _cut(x, y)


def beta() -> Floats:
    """100,000 numbers of [0, 1], most of them small: Beta(1/2, 5)."""
    return np.random.default_rng(1).beta(0.5, 5, 100_000)


def _cut(x: Floats, y: Array, at: int = 100_000) -> Split:
    return Split(x[:at], y[:at], x[at:], y[at:])
