"""Running totals of a table that grows: one price, paid once, for the totals of all epochs.

A count released afresh every month costs a release every month; counts of single months, added up, gather the noise of
all of them. A continual counter [DNPR10; CSS11] pays once and its noise hardly grows. Here it is the matrix mechanism
with the square root of the all-ones triangle [FHU23, HUU23]: A = L R with R = L = the Toeplitz triangle of the
coefficients C(2j, j) / 4^j. R x plus noise is released, epoch by epoch, and the totals are A R^-1 of that.

Everything summed is an integer: R is rounded to whole multiples of 1/resolution, which loses nothing that shows (the
inverse is taken of the rounded R, so the totals have no bias), and its columns have exact integer norms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from discreet.core import Exact, Guarantee, Neighbours, ParameterError, Rng, exact
from discreet.data import Dataset, Facts, Needs, epoch_code, epoch_column
from discreet.mechanisms.noise import FINE, LAWS, GaussianNoise
from discreet.query import And, Count, Equals, Sensitivity, Sum

MAX_EPOCHS = 2048
"""Epochs of one counter: months for 170 years, days for five and a half."""

RESOLUTION = 2**12
"""One over the step that R is rounded to."""

State = Sequence[Any]


@lru_cache(maxsize=64)
def root_coefficients(epochs: int, resolution: int) -> tuple[int, ...]:
    """C(2j, j) / 4^j, j = 0 .. epochs - 1, in whole multiples of 1/resolution, rounded to the nearest: never rising."""
    found, central = [], 1
    for j in range(epochs):
        found.append(round(Fraction(central * resolution, 4**j)))
        central = central * 2 * (2 * j + 1) // (j + 1)
    return tuple(found)


@lru_cache(maxsize=64)
def column_norm(epochs: int, resolution: int, columns: int) -> int:
    """The squared length of the sum of R's first columns, which no other sum of as many different columns exceeds."""
    root = root_coefficients(epochs, resolution)
    entries = (sum(root[max(0, row - columns + 1) : row + 1]) for row in range(epochs))
    return sum(entry * entry for entry in entries)


@lru_cache(maxsize=64)
def inverse_coefficients(epochs: int, resolution: int) -> tuple[int, ...]:
    """The Toeplitz triangle A R^-1, R the integers of `root_coefficients`, times resolution^(epochs + 1): exact."""
    root, one = root_coefficients(epochs, resolution), resolution ** (epochs + 1)
    found: list[int] = []
    for n in range(epochs):
        rest = one - sum(c * m for c, m in zip(root[1 : n + 1], reversed(found), strict=True))
        found.append(rest // resolution)  # without a rest
    return tuple(found)


@dataclass(frozen=True, slots=True, repr=False)
class EpochSum:
    """The exact sum of an epoch's rows. Private: it lives from the reading of the rows to the step."""

    place: int
    value: int


@dataclass(frozen=True, slots=True, init=False)
class ContinualCounter:
    """The running totals of a Count or a Sum over epochs, from the first one on, for one price.

    query       what is counted or summed
    column      the column that holds the epoch of a row: numbers or dates, one grid step for each epoch
    first       the first epoch
    epochs      how many there are at most: all of them are paid now
    scale       the standard deviation of the first total, in the query's units; that of the last is larger by
                `deviation`: 1.4 times for 12 epochs, 1.5 for 52, 1.7 for 365
    resolution  R is rounded to multiples of 1/resolution

    A step gets an epoch and gives {"sum": what was released, "total": the running total, "deviation": its standard
    deviation}. Steps go in the order of the epochs, each once.

    Theorem.   x_t is the exact sum of epoch t, y_t = sum over j of c_j x_(t-j) + z_t with c_j the rounded coefficients
               and z_t discrete Gaussian, s = resolution scale / unit. All y together are (D/(2 s^2))-zCDP. Let G(m) be
               the squared length of the sum of R's first m columns, a the most that a row adds, b what its replacement
               moves within an epoch. A table that grows, at most k rows of a person in each of at most m epochs: D =
               k^2 a^2 G(m) under add-remove, k^2 max(a, b)^2 G(m) under replace-one, where a person's epochs stay. Any
               other table, at most k rows of a person: D = k^2 a^2 G(1) under add-remove; under replace-one twice that
               if all rows add numbers of one sign, else four times. It is not pure.
    Accuracy.  The totals are exact but for the noise sum over i of l_(t-i) z_i, l = A R^-1: mean 0, standard deviation
               `deviation`; all totals are within `bound` at once with probability 1 - beta.
    Edges.     The order of the epochs and their number are public, and so is when a step was taken. Rows outside the
               epochs count in none. Rows that arrive late belong to a later epoch. An epoch that never came, while a
               later one did, is empty on all neighbours: its step is taken with the sum 0.
    Reference. [FHU23], [HUU23], [DMRST22], [CKS20] theorem 14; proof: docs/proofs/continual.md.
    """

    NAME: ClassVar[str] = "continual-counter/1"
    lasting: ClassVar[bool] = True
    query: Count | Sum
    column: str
    first: Any
    epochs: int
    scale: Fraction
    resolution: int

    def __init__(
        self, query: Count | Sum, column: str, first: Any, epochs: int, scale: Exact, resolution: int = RESOLUTION
    ) -> None:
        if not isinstance(query, (Count, Sum)):
            raise ParameterError(f"a running total is of a Count or a Sum, found {type(query).__name__}")
        if exact.whole(epochs=epochs) > MAX_EPOCHS:
            raise ParameterError(f"epochs must be at most {MAX_EPOCHS:,}, found {epochs}")
        begins = Equals(column, first)
        given = {"epochs": int(epochs), "resolution": exact.whole(resolution=resolution)}
        noise = exact.positive(scale=scale)
        exact.freeze(self, query=query, column=begins.column, first=begins.value, scale=noise, **given)
        if root_coefficients(self.epochs, self.resolution)[-1] == 0:
            raise ParameterError(f"resolution must be larger for {epochs} epochs, found {resolution}")

    # The price.

    def guarantee(self, facts: Facts) -> Guarantee:
        moved = self._moved(facts)
        return self._noise.guarantee(moved, unit=self._unit(facts), dimension=self.epochs, neighbours=facts.neighbours)

    def _moved(self, facts: Facts) -> Sensitivity:
        """The theorem's D, as an l2 norm."""
        self._last(facts)
        growth, relation = facts.growth, facts.neighbours
        if growth is not None and growth.column != self.column:
            raise ParameterError(
                f"the epochs of this table are in {growth.column!r}: running totals go by them, found {self.column!r}"
            )
        added, replaced = (
            self._of(self.epoch(1, facts)).sensitivity(replace(facts, neighbours=Neighbours(kind), growth=None)).linf
            for kind in ("add-remove", "replace-one")
        )
        columns = 1 if growth is None else growth.per_person  # the most epochs of a person
        rows = relation.rows // columns  # of a person in an epoch
        norm = rows * rows * column_norm(self.epochs, self.resolution, min(columns, self.epochs))
        if not relation.replace_one:
            squared = added * added * norm
        elif growth is not None:
            squared = max(added, replaced) ** 2 * norm
        else:  # `replaced` is about rows that may add nothing: it is `added` only if all add numbers of one sign
            squared = (2 if replaced == added else 4) * added * added * norm
        return Sensitivity(l1=squared, l2_squared=squared, linf=squared, range=squared)

    @property
    def _noise(self) -> GaussianNoise:
        return GaussianNoise(self.scale)

    def _unit(self, facts: Facts) -> Fraction:
        """What one integer of R x is worth, in the units of `scale`."""
        return self.query.unit(facts) / self.resolution

    # Epochs.

    def _of(self, epoch: Any) -> Count | Sum:
        """The query about the rows of one epoch, as its column spells it or as a value."""
        return replace(self.query, where=And(self.query.where, Equals(self.column, epoch)))

    def _last(self, facts: Facts) -> int:
        """The code of the last epoch; refuses a declaration that has fewer."""
        column = epoch_column(facts.domain, self.column)
        last = epoch_code(facts.domain, self.column, self.first) + self.epochs - 1
        most = column.size - (column.missing_code is not None)
        if last >= most:
            there = f"{most - last + self.epochs - 1} from {self.first} on"
            raise ParameterError(f"column {self.column!r} has fewer than {self.epochs} epochs: {there}")
        return last

    def place(self, ask: Any, facts: Facts) -> int:
        """The number of an epoch, from 1 on."""
        code, last = epoch_code(facts.domain, self.column, ask), self._last(facts)
        place = code - (last - self.epochs)
        if not 1 <= place <= self.epochs:
            raise ParameterError(f"this counter was paid for {self.epochs} epochs from {self.first} on, found {ask}")
        return place

    def epoch(self, place: int, facts: Facts) -> str:
        """The epoch with this number, as its column spells it."""
        return epoch_column(facts.domain, self.column).text(self._last(facts) - self.epochs + place)

    def never_came(self, epoch: str, facts: Facts) -> bool:
        """Whether a later epoch is there and this one is not. Epochs come in their order, so nobody will be in it: its
        sum is 0 on every table with these facts, and its step adds noise alone."""
        growth = facts.growth
        if growth is None or epoch in dict(growth.read):
            return False
        code, last = (epoch_code(facts.domain, self.column, each) for each in (epoch, growth.epochs[-1]))
        return code < last

    # The conversation.

    def check(self, ask: Any, facts: Facts) -> None:
        label = self.epoch(self.place(ask, facts), facts)
        if facts.growth is not None and label not in facts.growth.epochs and not self.never_came(label, facts):
            raise ParameterError(f"these rows are of the epochs {', '.join(facts.growth.epochs)}; found {label}")

    def needs(self, facts: Facts, ask: Any = None) -> Needs:
        """What every step needs: known when the counter opens, so a table that cannot do it is refused for nothing.

        A person is in the epochs of one table: rows that moved between two steps would be counted in both.
        """
        return Needs(queries=(self._of(self.epoch(1, facts)),), fixed=True)

    def look(self, ask: Any, data: Dataset) -> EpochSum:
        """The rows of an epoch, added up."""
        place = self.place(ask, data.facts)
        query = self._of(self.epoch(place, data.facts))
        return EpochSum(place, int(data.exact_sum(query)))

    def begin(self, data: Dataset, rng: Rng) -> State:
        """[epochs done, the open sums, what was released]: the open sums are noise at first.

        At any one time the open sums and what was released are R x + z of the rows so far: no more than is paid for.
        """
        noise = self._noise.draw((self.epochs,), unit=self._unit(data.facts), rng=rng)
        return [0, [int(each) for each in noise], []]

    def step(self, state: State, ask: Any, data: Dataset, rng: Rng) -> tuple[State | None, dict[str, Any]]:
        done, open_sums, released = state
        seen = ask if isinstance(ask, EpochSum) else self.look(ask, data)
        if seen.place != done + 1:
            raise ParameterError(f"the next epoch is number {done + 1}, found {seen.place}")
        root = root_coefficients(self.epochs, self.resolution)
        sums = [each + c * seen.value for each, c in zip(open_sums, root[: len(open_sums)], strict=True)]
        said = [*released, sums[0]]
        after = None if seen.place == self.epochs else [seen.place, sums[1:], said]
        return after, {"sum": sums[0], "total": self.total(said, data.facts), "deviation": self.deviation(seen.place)}

    # What follows from the releases.

    def total(self, released: Sequence[int], facts: Facts) -> int | float:
        """The running total after these releases, in the query's units: unbiased, exact but for the noise."""
        place = len(released)
        inverse = inverse_coefficients(place, self.resolution)
        whole = sum(weight * sum_ for weight, sum_ in zip(reversed(inverse), released, strict=True))
        return float(Fraction(whole, self.resolution ** (place + 1)) * self.query.unit(facts))

    def deviation(self, place: int) -> float:
        """The standard deviation of the total after this many epochs, rounded up; in the query's units."""
        inverse = inverse_coefficients(place, self.resolution)
        squares = Fraction(sum(weight * weight for weight in inverse), self.resolution ** (2 * place))
        return math.nextafter(math.sqrt(squares) * float(self.scale) * (1 + 2**-50), math.inf)

    def bound(self, place: int, facts: Facts, beta: Exact = Fraction(1, 20)) -> float:
        """With probability 1 - beta no total of any epoch is further off than its bound, in the query's units."""
        fine = self.scale / self._unit(facts) >= FINE
        law = LAWS["fine" if fine else "sub-gaussian"](Fraction(self.deviation(place)))
        return float(law.quantile(float(exact.probability(beta=beta) / self.epochs)))
