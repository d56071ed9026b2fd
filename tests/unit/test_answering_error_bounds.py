"""What a session's bounds are made of: every part of beta is paid for once, and every part of an error is counted."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import discreet as dp
from discreet.answering import generalization
from discreet.answering.adaptive import MANNER, AdaptiveAnswers
from discreet.answering.calibration import Calibration, SessionTerms
from discreet.answering.measurement import BetaPlace, Measured, SetErrors
from discreet.answering.transcript import SEVERAL
from discreet.answering.workload import Marginals, answers, readings_of
from discreet.answering.workload import bound as promised
from discreet.mechanisms import ZeroSumNoise
from discreet.query import Count, Equals, Histogram, Sum
from tests.unit.test_noise_tails import laplace, number

DOMAIN = dp.Domain(
    town=dp.Category("n", "s", "e", "w"),
    sex=dp.Category("F", "M"),
    age=dp.Number(0, 90, step=10),
    pay=dp.Number(-3, 8, step="0.5"),
)
BETA = Fraction(1, 20)


def people(n: int = 4000, relation: str = "replace-one") -> dp.Table:
    rng = np.random.default_rng(2)
    rows = {
        "town": rng.choice(list("nsew"), n),
        "sex": rng.choice(["F", "M"], n),
        "age": rng.integers(0, 10, n) * 10,
        "pay": rng.integers(-6, 17, n) / 2,
    }
    return dp.Table(rows, DOMAIN, name="people", neighbours=relation, size=n if relation == "add-remove" else None)


def calibration(alpha: str = "1/50", epsilon: object = 20) -> Calibration:
    """Of a ledger with delta = 0: Laplace noise, whose tails are exact."""
    table = people()
    return Calibration(table.facts, dp.Ledger.in_memory(dp.Budget(epsilon), table), SessionTerms(Fraction(alpha), BETA))


# Beta.


def test_all_charges_share_beta_however_many_there_are():
    """w(1) = 1, and the sum up to place M is 1 - w(M + 1)."""
    found = calibration()
    spent = math.fsum(found.failure(order) for order in range(1, 5001))
    assert float(BETA) * 0.85 < spent <= float(BETA) * (1 - 1 / (1 + 0.75 * math.log(5001)))


def test_a_no_of_a_threshold_means_nearer_than_was_asked_for():
    found = calibration()
    for number_ in (1, 2, 9):
        conversation = found.threshold(number_)
        theta = found.theta(conversation, BetaPlace(number_, number_))
        assert theta > 0
        assert theta + conversation.z_bound(Fraction(found.failure(number_, number_))) == found.window


@pytest.mark.parametrize("order", [1, 5])
@pytest.mark.parametrize(
    "question", [Count(Equals("sex", "F")), Histogram(("town", "sex")), Histogram("town"), Sum("pay")], ids=repr
)
def test_the_noise_of_a_question_alone_is_within_its_bound_for_all_its_numbers_at_once(question, order):
    """A histogram has 31/32 of the failure for its own numbers, and the union over all of them."""
    found = calibration()
    mechanism, unit = found.purchase([question], order).of([question]), question.unit(found.facts)
    reach = math.floor(found.near(question) / float(unit) - 0.5)
    numbers = math.prod(question.shape(DOMAIN)) if isinstance(question, Histogram) else 1
    grouped = isinstance(question, Histogram)
    share = number(Fraction(found.failure(order, SEVERAL) * 31 / 32 if grouped else found.failure(order)))
    steps = mechanism.scale / unit

    def tail(scale):
        """Of groups that make up all rows one is implied by the others."""
        return (
            number(Fraction(ZeroSumNoise(scale, numbers - 1).tail(reach + 1))) if grouped else laplace(reach + 1, scale)
        )

    assert 2 * numbers * tail(steps) <= share < 2 * numbers * tail(steps * Fraction(101, 100))


@pytest.mark.parametrize("part", [1, Fraction(1, 7)])
def test_the_alpha_that_is_offered_is_one_for_which_a_count_fits(part):
    found = calibration(epsilon=2)
    cap = int(part * found.left())
    alpha = found.alpha_for(cap, 1)
    offered = Calibration(found.facts, found.ledger, SessionTerms(Fraction(str(alpha)), BETA))
    women = [Count(Equals("sex", "F"))]
    assert offered.price(offered.purchase(women, 1).of(women)) <= cap
    better = Calibration(found.facts, found.ledger, SessionTerms(Fraction(str(alpha * 0.9)), BETA))
    assert better.price(better.purchase(women, 1).of(women)) > cap


def test_a_quantile_is_within_its_ranks_whatever_point_of_the_grid_it_is():
    """P[some of three draws misses by A rows] <= 3 points e^(-rate A); of the outer ones, of half the rate, by 2 A."""
    table = people()
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(20), table), alpha="1/50", beta=BETA)
    session.ask("SELECT MEDIAN(pay) FROM people", max_price=1)
    (charge,) = (body for body in session.ledger.entries() if body["kind"] == "charge")
    rate, points, ranks = Fraction(charge["mechanism"]["rate"]), 23, Fraction(1, 50) * 4000
    failure = float(BETA) * (1 - 1 / (1 + 0.75 * math.log(1 + SEVERAL)))
    assert 3 * points * math.exp(-rate * ranks) == pytest.approx(failure, rel=1e-6)
    outer, reach = Fraction(charge["mechanism"]["outer"]), charge["mechanism"]["reach"]
    assert outer == rate / 2
    assert 3 * points * math.exp(-outer * (reach - 1)) > failure >= 3 * points * math.exp(-outer * reach)


# The parts of an error.


def opened() -> tuple[AdaptiveAnswers, dp.Table]:
    table = people()
    ledger = dp.Ledger.in_memory(dp.Budget(20), table)
    return AdaptiveAnswers(table, ledger, SessionTerms(Fraction(1, 50), BETA)), table


@pytest.mark.parametrize("value", [10.5, 11.49, 3999.7, -4.2, 4003.0])
def test_a_workloads_answer_is_within_its_bound_after_it_is_rounded_and_cut(value):
    made, _ = opened()
    for question, unit in ((Count(Equals("sex", "F")), 1.0), (Sum("pay"), 0.5)):
        given = made.read(question, np.array(value), np.array(3.0))
        for truth in (value - 3, value + 3):
            possible = isinstance(question, Sum) or 0 <= truth <= 4000
            assert not possible or abs(float(given.value) - truth) <= given.error_bound
        assert given.error_bound <= 3.0 + unit / 2


def test_a_free_answer_is_within_its_bound_of_both_ends_of_what_is_known():
    made, _ = opened()
    made.answer(Histogram(("town", "sex")))
    for question in (Count(Equals("sex", "F")), Count(Equals("town", "n")), Histogram("town"), Histogram("sex")):
        given = made.answer(question)
        low, high = made.knowledge.interval(question)
        assert np.all(given.value - low <= given.error_bound)
        assert np.all(high - given.value <= given.error_bound)


def test_a_workloads_bound_is_for_all_its_numbers_at_once():
    table = people()
    questions = [Histogram("town"), Histogram("sex"), Count(Equals("sex", "F"))]
    scale = Fraction(9)
    found = promised(questions, Marginals(questions, [scale] * 3, "laplace"), table.facts, beta=BETA)
    assert 2 * 7 * laplace(math.floor(found) + 1, scale) <= number(BETA) < 2 * 7 * laplace(math.floor(found), scale)


def test_what_a_hypothesis_moves_an_answer_by_is_in_its_bound():
    """Two tables that contradict each other: the answer is between them, and the truth may be at either's far end."""
    table = people()
    questions = [Histogram("sex"), Histogram(("town", "sex"))]
    mechanism = Marginals(questions, [40, 40], "laplace")
    apart = (np.array([2300, 1700]), np.array([[450, 550], [460, 540], [440, 560], [450, 550]]))
    readings = readings_of(questions, mechanism, table.facts, BETA)
    given = answers(questions, mechanism, apart, table.facts, beta=BETA)
    for reading, read, (value, bound) in zip(readings, apart, given, strict=True):
        assert reading.itself
        for side in (-1, 1):
            assert np.all(np.abs(read + side * reading.error - value) <= bound + 1e-9)
    assert any(np.abs(read - value).max() > 5 for read, (value, _) in zip(apart, given, strict=True))


def test_the_failures_of_all_sets_of_cells_of_all_columns_are_one_failure():
    """The union that the theorem of `measured` is about, added up: every choice of columns, every number of cells."""
    sizes, scale, failure = (4, 2), 7.0, 0.01
    measured = Measured(Histogram(("town", "sex")), "gaussian", scale, 1.0, np.zeros(sizes))
    spent = 0.0
    for kept in itertools.product((0, 1), repeat=len(sizes)):
        cells = math.prod(size for size, keep in zip(sizes, kept, strict=True) if keep)
        copies, counts = math.prod(sizes) / cells, np.arange(1, cells + 1)
        errors = SetErrors(measured, cells=cells, columns=len(sizes), failure=failure).of(counts)
        for count, error in zip(counts.tolist(), errors.tolist(), strict=True):
            deviation = scale * math.sqrt(copies * count)
            tails = math.exp(-((error / deviation) ** 2) / 2), norm.sf((error - 1) / deviation)
            spent += math.comb(cells, count) * 2 * min(tails)
    assert failure / 2 < spent <= failure


@pytest.mark.parametrize("rows", [1, 3])
def test_a_sum_is_counted_in_the_largest_contribution_of_one_row_whatever_rows_a_person_has(rows):
    table = people()
    facts = dp.data.Facts(DOMAIN, dp.Neighbours("replace-one", rows), 4000)
    found = Calibration(facts, dp.Ledger.in_memory(dp.Budget(20), table), SessionTerms(Fraction(1, 50), BETA))
    assert found.worth(Sum("age")) * Sum("age").unit(facts) == 90
    assert found.worth(Count()) == found.worth(Histogram("town")) == 1
    assert found.threshold(1).sensitivity == rows


@pytest.mark.parametrize("rate", [0.011, 0.5, 0.999, 1.0, 1.001, 37.0])
def test_a_population_s_bound_is_for_a_level_that_was_not_exceeded(rate, monkeypatch):
    seen = []
    monkeypatch.setattr(generalization, "distance", lambda level, **_: seen.append(level) or 0.1)
    generalization.by_privacy(generalization.Disclosure(questions=5, rate=rate, limit=1.0), beta=0.05, failure=0.05)
    assert rate <= seen[0] < 2 * rate


@pytest.mark.parametrize(("sensitivity", "taken"), [(1, False), (2, True), (3, True)])
def test_a_threshold_that_was_paid_for_fewer_rows_than_a_person_has_is_not_asked(sensitivity, taken):
    """Somebody may have opened it by the session's own name; its questions would be refused, one after the other."""
    rows = {
        "town": list("nsew") * 4,
        "sex": ["F", "M"] * 8,
        "age": [10] * 16,
        "pay": [1.0] * 16,
        "who": [*range(8)] * 2,
    }
    table = dp.Table(rows, DOMAIN, name="people", unit="who", rows_per_unit=2)
    ledger = dp.Ledger.in_memory(dp.Budget(20), table)
    with dp.converse(dp.mechanisms.AboveThreshold(30, 30, sensitivity=sensitivity), table, ledger=ledger, memo=MANNER):
        made = AdaptiveAnswers(table, ledger, SessionTerms(Fraction(1, 2), BETA))
        made.knowledge.catch_up()
        assert (made.transcript.open_run is not None) is taken
        assert made.transcript.runs == taken
