"""Promised excess risks against measured ones: persons with several rows, both relations, sizes that are wrong.

The risk of a promise is a sum of losses over all rows divided by the public size: per row, per person, or per declared
person. A promise is an expectation, so single runs may exceed it. Each case is run a few times, and the mean of these
runs must stay below a multiple that an exponential law, the widest of those behind the theorems, exceeds by chance once
in a million cases. Promises that leave a factor k out are exceeded by more on tables of equal rows.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.erm import output_perturbation, solvers
from discreet.erm.exponential import bounds
from discreet.erm.feasible_sets import Ball, Box, interval
from discreet.erm.features import Constant, Declared
from discreet.erm.losses import Absolute, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.nonprivate import minimiser, risk_value
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.errors import ParameterError
from discreet.mechanisms import calibrate
from discreet.rng import SeededRng

DOMAIN = dp.Domain(
    a=dp.Number(-1, 1, step="1/1024"),
    b=dp.Number(-1, 1, step="1/1024"),
    number=dp.Number(-1, 1, step="1/1024"),
    two=dp.Category(0, 1),
    three=dp.Category(0, 1, 2),
)
TARGETS = {"difference": "number", "margin": "two", "classes": "three"}
VECTORS, POINT = Declared(("a", "b"), norm="3/2", intercept=False), Constant()
SMOOTH = (Squared(), Huber("1/2"), Logistic("1/2"), Logistic(), Softmax(3))
CORNERS = (Absolute(), Pinball("3/10"), Hinge())
ROWS = (1, 2, 5, 20)
KINDS = ("equal", "corners", "persons", "random", "few")
PERSONS = 150
# P[mean of r exponentials of mean 1 > ALLOWED[r]] < 1e-6.
ALLOWED = {1: 14.0, 2: 8.5, 4: 5.5}


@dataclasses.dataclass(frozen=True)
class Case:
    """One problem, and one solver for it."""

    loss: object
    solver: str
    k: int = 1
    relation: str = "replace-one"
    share: Fraction = Fraction(1)  # of the persons that there are, declared under add-remove
    kind: str = "equal"
    regularizer: object = None
    features: object = VECTORS
    epsilon: int = 200
    delta: str = "1e-5"
    box: bool = False

    def __str__(self) -> str:
        return f"{self.loss}, {self.solver}, {self.k} rows, {self.relation} {self.share}, {self.kind}, {self.epsilon}"


def table_of(case: Case, seed: int) -> dp.Table:
    """Persons with up to k rows: those tables at which theorems are tight, and random ones."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(PERSONS), case.k)
    if case.kind == "few":
        ids = np.repeat(np.arange(PERSONS), rng.integers(1, case.k + 1, PERSONS))
    count = len(ids)
    if case.kind == "equal":
        a = b = np.ones(count)
        number, two, three = np.full(count, rng.choice([-1.0, 0.0, 1.0])), np.ones(count, int), np.full(count, 2)
    elif case.kind == "corners":
        a, b, number = (rng.choice([-1.0, 1.0], count) for _ in range(3))
        two, three = rng.integers(0, 2, count), rng.integers(0, 3, count)
    else:
        a, b, number = (rng.uniform(-1, 1, count) for _ in range(3))
        two, three = (a + b > 0).astype(int), rng.integers(0, 3, count)
        if case.kind == "persons":
            first = np.searchsorted(ids, ids)
            a, b, number, two, three = (each[first] for each in (a, b, number, two, three))
    columns = {"id": ids, "a": a, "b": b, "number": number, "two": two, "three": three}
    declared = {} if case.relation == "replace-one" else {"size": max(1, round(PERSONS * case.share))}
    return dp.Table(columns, DOMAIN, unit="id", rows_per_unit=case.k, neighbours=case.relation, **declared)


def plain(risk: Risk, data: dp.Table) -> tuple[np.ndarray, np.ndarray]:
    """The rows as the model sees them, and the targets, as floats."""
    seen = []

    def look(batch):
        rows = np.empty((batch.rows, risk.features.dimension(batch.domain)))
        risk.features.fill(batch, slice(0, batch.rows), rows)
        column, codes = batch.domain[risk.target], batch[risk.target]
        targets = codes if isinstance(column, dp.Category) else codes * float(column.step) + float(column.low)
        seen.append((rows * float(risk.features.unit(batch.domain)), targets))
        return np.zeros(1, dtype=np.int64)

    data.exact_sum(look)
    return np.concatenate([rows for rows, _ in seen]), np.concatenate([targets for _, targets in seen])


def offer(case: Case, data: dp.Table):
    """The risk, the mechanism and its promise; None if it promises nothing or does not apply."""
    target = TARGETS[case.loss.form]
    feasible = interval(-1, 1) if case.features is POINT else Box(-1, 1) if case.box else Ball("3/2")
    risk = Risk(case.loss, case.features, target, feasible, case.regularizer)
    funds = dp.Funds.of(dp.Budget(case.epsilon, case.delta))
    try:
        if case.solver == "rank":
            q = case.loss.q if isinstance(case.loss, Pinball) else Fraction(1, 2)
            found = calibrate(lambda noise: bounds.RankQuantile(target, q, 1 / noise), funds=funds, facts=data.facts)
            promised = bounds.promise(found, data.facts)
            return risk, found, promised.bound and promised.bound * (2 if isinstance(case.loss, Absolute) else 1)
        made = solvers.methods(risk, data.facts, funds, steps=40).named(case.solver).offer(data.facts.size)
    except ParameterError:
        return None
    return risk, made.mechanism, made.promise.bound


def measured(case: Case, runs: int, seed: int) -> float | None:
    """The mean excess risk of some runs as a multiple of the promise; None if nothing is promised.

    With more rows than were declared the promise's condition does not hold; the mean loss per row is near it still.
    """
    data = table_of(case, seed)
    made = offer(case, data)
    if made is None or made[2] is None:
        return None
    risk, mechanism, bound = made
    rows, targets = plain(risk, data)
    per = Fraction(len(rows), data.facts.size)
    scaled = case.regularizer and type(case.regularizer)(case.regularizer.strength / per)
    least = minimiser(case.loss, rows, targets, risk.feasible, scaled).value
    rng = SeededRng(seed)
    found = [np.atleast_1d(mechanism.run(data, rng)) for _ in range(runs)]
    excess = np.mean([risk_value(case.loss, rows, targets, w, scaled) - least for w in found])
    unit = per if len(rows) <= case.k * data.facts.size else Fraction(case.k)
    return float(excess) * float(unit) / bound


QUICK = [
    # All rows equal, for every schedule and output perturbation, with several rows per person.
    *(Case(Huber("1/2"), solver, k) for solver in ("accelerated", "average", "last", "output") for k in (5, 20)),
    *(Case(Squared(), solver, 5) for solver in ("last", "laplace", "gaussian")),
    *(Case(Logistic(), "last", 20, kind=kind) for kind in KINDS),
    Case(Softmax(3), "accelerated", 20),
    Case(Squared(), "accelerated", 20, features=POINT),
    Case(Absolute(), "average", 20, kind="corners"),
    Case(Hinge(), "average", 5, regularizer=Lasso("1/50")),
    Case(Absolute(), "strongly-convex", 5, regularizer=Ridge(2)),
    Case(Huber("1/2"), "output", 20, regularizer=Ridge(2), delta="0"),
    Case(Huber("1/2"), "output", 20, regularizer=Ridge(2), box=True),
    *(Case(Squared(), "exponential", k, features=POINT, epsilon=20) for k in (1, 20)),
    Case(Huber("1/2"), "exponential", 5, epsilon=20),
    Case(Pinball("3/10"), "rank", 5, features=POINT, kind="random"),
    # The same by another relation, with a size that is declared.
    *(Case(Squared(), "last", k, "add-remove", share) for k in (1, 5) for share in (Fraction(1, 3), Fraction(3))),
    *(Case(Logistic("1/2"), "accelerated", 1, "add-remove", Fraction(n, 5), "persons") for n in (2, 5, 20)),
    Case(Huber("1/2"), "output", 2, "add-remove", kind="few"),
]


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_no_promise_is_exceeded(case):
    ratio = measured(case, 2, seed=7)
    assert ratio is not None, "this case is here because it promises something"
    assert ratio <= ALLOWED[2]


def random_case(rng: np.random.Generator) -> Case:
    loss = rng.choice(np.array([*SMOOTH, *CORNERS], dtype=object))
    point = loss.form == "difference" and rng.random() < 0.2
    ranks = ("rank",) if point and isinstance(loss, (Absolute, Pinball)) else ()
    exponential = ("exponential",) if point or isinstance(loss, Squared) else ()
    solver = str(rng.choice([*solvers.descent.SCHEDULES, "gaussian", "laplace", "output", *ranks, *exponential]))
    penalties = (None,) if solver == "rank" else (None, Ridge("1/10"), Ridge(2), Lasso("1/50"))
    relation = str(rng.choice(["replace-one", "add-remove"]))
    return Case(
        loss,
        solver,
        int(rng.choice(ROWS)),
        relation,
        Fraction(1) if relation == "replace-one" else Fraction(int(rng.choice([2, 3, 6, 9, 18])), 6),
        str(rng.choice(KINDS)),
        rng.choice(np.array(penalties, dtype=object)),
        POINT if point else VECTORS,
        int(rng.choice([20, 200, 2000])),
        str(rng.choice(["1e-5", "0"])),
        bool(rng.random() < 0.2),
    )


@pytest.mark.slow
def test_of_a_thousand_random_fits_none_exceeds_its_promise_beyond_chance():
    rng, found = np.random.default_rng(18), {}
    while len(found) < 250:
        case = random_case(rng)
        ratio = measured(case, 4, seed=int(rng.integers(2**31)))
        if ratio is not None:
            found[case] = ratio
    assert {str(case): ratio for case, ratio in found.items() if ratio > ALLOWED[4]} == {}
    assert np.mean(list(found.values())) < 1
    seen = {(case.k, case.relation) for case in found}
    assert len(seen) == 2 * len(ROWS)


def test_output_perturbation_keeps_its_promise_for_persons_of_many_rows():
    """All rows are (1, 0), fifty for each person; only the noise is drawn again and again, the solution is the same."""
    k, persons, strength = 50, 2000, Fraction(1, 2)
    columns = {"id": np.repeat(np.arange(persons), k), "a": np.ones(k * persons), "number": np.zeros(k * persons)}
    data = dp.Table(columns, DOMAIN.project(["a", "number"]), unit="id", rows_per_unit=k)
    risk = Risk(Huber("1/2"), Declared(("a",), norm=1), "number", Ball(3), Ridge(strength))
    mechanism = output_perturbation.propose(risk, facts=data.facts, funds=dp.Funds.of(dp.Budget(1)))
    least = dataclasses.replace(mechanism.noise, scale=Fraction(1, 2**10))
    still = output_perturbation.OutputPerturbation(risk, mechanism.ridge, mechanism.tolerance, mechanism.step, least)
    solution = still.run(data, SeededRng(3))
    rng, step = SeededRng(4), mechanism.step
    noise = np.array([mechanism.noise.draw((2,), unit=step, rng=rng) for _ in range(1000)]) * float(step)
    (row,), (target,) = (each[:1] for each in plain(risk, data))
    scaled = Ridge(strength / k)
    found = [risk_value(risk.loss, row[None], target[None], risk.feasible.project(solution + z), scaled) for z in noise]
    excess = k * (np.mean(found) - minimiser(risk.loss, row[None], target[None], risk.feasible, scaled).value)
    assert excess <= 1.2 * output_perturbation.promise(mechanism, data.facts).bound
