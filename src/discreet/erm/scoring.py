"""Public rules that predict for a row, and how well they do on private rows: sums of bounded integers.

    LinearRule         a linear model with integer weights, so margins of integer rows are exact integers
    ModelRule          any other fitted model: it is asked for one row at a time, so no row sees another
    RightPredictions   how many rows each rule predicts right
    SmallMisses        minus the clamped squared misses of each rule

What a row adds depends on that row and on the public rules alone. The rows are those of the integer grid: features
beyond their norm are judged as their projection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.core import ParameterError
from discreet.data import Batch, Domain, Facts, Floats, IntArray
from discreet.erm.features import STEPS, Declared, VectorColumn, blocks
from discreet.query import Sensitivity, alone, of_persons

_FINE = 2**30  # the longest row of integer weights: times rows of 2^15 every sum of products is below 2^53


@dataclass(frozen=True, slots=True)
class LinearRule:
    """Margins <weights, x> + bias in integers, one for each class (or one for two classes, or the predicted number).

    unit  what one integer of a weight is worth; a margin is in steps of unit * features.unit.
    """

    NAME: ClassVar[str] = "linear-rule/1"
    features: VectorColumn | Declared
    weights: tuple[tuple[int, ...], ...]
    biases: tuple[int, ...]
    unit: Fraction

    @staticmethod
    def of(coef: Any, intercept: Any, features: VectorColumn | Declared, domain: Domain) -> LinearRule:
        """The rule of a linear model, its coefficients rounded to 2^-30 of their length; features without intercept."""
        coef, intercept = np.atleast_2d(coef), np.atleast_1d(intercept)
        longest = float(np.sqrt((coef * coef).sum(axis=1)).max())
        unit = Fraction(2) ** math.ceil(math.log2(longest)) / _FINE if longest > 0 else Fraction(1)
        step = float(unit * features.unit(domain))
        biases = np.clip(np.rint(intercept / step), -(2.0**51), 2.0**51)
        weights = np.rint(coef / float(unit)).astype(np.int64)
        return LinearRule(features, tuple(map(tuple, weights.tolist())), tuple(map(int, biases)), unit)

    def check(self, domain: Domain) -> None:
        """Every margin is an exact float: below 2^53, whatever the row and the order of its additions."""
        squared = self.features.bound_squared(domain)
        for weights, bias in zip(self.weights, self.biases, strict=True):
            if math.isqrt(squared * sum(weight * weight for weight in weights)) + abs(bias) >= 2**53 - 1:
                raise ParameterError("margins of this rule do not fit 53 bits: take a coarser step for the features")

    def classes(self, batch: Batch) -> npt.NDArray[np.int64]:
        """The code of the predicted class of every row."""
        margins = self._margins(batch)
        return (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)

    def numbers(self, batch: Batch) -> Floats:
        """The predicted number of every row."""
        return np.asarray(self._margins(batch)[:, 0] * float(self.unit * self.features.unit(batch.domain)))

    def _margins(self, batch: Batch) -> Floats:
        weights = np.array(self.weights, dtype=np.float64).T
        parts = [rows @ weights for rows, _ in blocks(self.features, batch)]
        return np.asarray(np.concatenate(parts) + np.array(self.biases, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class ModelRule:
    """A fitted model that predicts for one row at a time, from the Vector column "x"; the ledger knows its label only.

    Slow, and the owner vouches that `predict` does not remember earlier rows.
    """

    NAME: ClassVar[str] = "model-rule/1"
    label: str
    model: Any = field(default=None, compare=False)

    def check(self, domain: Domain) -> None:
        """A model is asked for one row at a time: nothing to check."""

    def classes(self, batch: Batch) -> npt.NDArray[np.int64]:
        """The code of the predicted class of every row; -1, never right, where the model fails."""
        codes = {label: code for code, label in enumerate(getattr(self.model, "classes_", ()))}
        labels = (label if isinstance(label, (str, int, float)) else None for label in self._predictions(batch))
        return np.array([codes.get(label, -1) for label in labels], dtype=np.int64)

    def numbers(self, batch: Batch) -> Floats:
        """The predicted number of every row; NaN where the model fails."""
        numbers = (value if isinstance(value, (int, float)) else math.nan for value in self._predictions(batch))
        return np.array(list(numbers), dtype=np.float64)

    def stated_record(self) -> dict[str, Any]:
        return {"name": self.NAME, "label": self.label}

    def _predictions(self, batch: Batch) -> Iterator[Any]:
        for row in batch.domain.column("x").plain(batch["x"], batch.rows):
            predicted = alone(
                lambda row: np.asarray(self.model.predict(row)).ravel()[0], np.asarray(row).reshape(1, -1), None
            )
            yield predicted.item() if isinstance(predicted, np.generic) else predicted


Rule = LinearRule | ModelRule


@dataclass(frozen=True, slots=True)
class RightPredictions:
    """For each rule the number of rows whose class it predicts.

    Theorem.   A row adds 0 or 1 to each of k rules. add-remove: |d|_1 <= k, |d|_2^2 <= k, |d|_inf <= 1, range <= 1.
               replace-one: the same norms, range <= 2. One rule has range 0.
    """

    NAME: ClassVar[str] = "right-predictions/1"
    rules: tuple[Rule, ...]
    target: str
    monotone: ClassVar[bool] = True

    def partial(self, batch: Batch) -> IntArray:
        labels = batch[self.target]
        return np.array([np.count_nonzero(rule.classes(batch) == labels) for rule in self.rules], dtype=np.int64)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        if not facts.domain.column(self.target).categorical:
            raise ParameterError(f"the target {self.target!r} has no classes")
        return _sensitivity(self.rules, 1, facts)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True, slots=True)
class SmallMisses:
    """For each rule minus the sum over rows of min(1, ((prediction - target) / largest)^2), in steps of 2^-15.

    Theorem.   A row adds a number of [-S, 0], S = 2^15, to each of k rules. add-remove: |d|_1 <= k S, |d|_2^2 <= k S^2,
               |d|_inf <= S, range <= S. replace-one: the same norms, range <= 2 S. One rule has range 0.
    """

    NAME: ClassVar[str] = "small-misses/1"
    rules: tuple[Rule, ...]
    target: str
    largest: Fraction
    monotone: ClassVar[bool] = False

    def partial(self, batch: Batch) -> IntArray:
        column = batch.domain.column(self.target)
        assert column.bounded
        truth = batch[self.target].astype(np.float64) * float(column.step) + float(column.low)
        misses = np.zeros(len(self.rules), dtype=np.int64)
        for place, rule in enumerate(self.rules):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                share = (rule.numbers(batch) - truth) / float(self.largest)
            cut = np.clip(np.nan_to_num(share, nan=1.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
            misses[place] = np.floor(cut * cut * STEPS).astype(np.int64).sum()
        return -misses

    def sensitivity(self, facts: Facts) -> Sensitivity:
        if not facts.domain.column(self.target).bounded:
            raise ParameterError(f"the target {self.target!r} has no bounds")
        return _sensitivity(self.rules, STEPS, facts)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1, STEPS)


def _sensitivity(rules: tuple[Rule, ...], most: int, facts: Facts) -> Sensitivity:
    for rule in rules:
        rule.check(facts.domain)
    count, spread = len(rules), most if len(rules) > 1 else 0
    added, replaced = (Sensitivity(count * most, count * most**2, most, times * spread) for times in (1, 2))
    return of_persons(facts.neighbours, added=added, replaced=replaced)
