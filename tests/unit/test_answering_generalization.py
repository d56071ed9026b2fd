"""From the rows to the population: exact laws of small sessions, an analyst who overfits, and the public numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.answering import generalization
from discreet.answering.generalization import (
    Disclosure,
    by_description,
    by_privacy,
    by_workload,
    distance,
    drift,
    length_of,
    nats,
    rate_of,
)
from discreet.answering.measurement import Measured
from discreet.data import Category, Domain, Facts
from discreet.errors import ParameterError, Unproven
from discreet.guarantee import Guarantee, Neighbours
from discreet.query import Count, Histogram, Sum

FACTS = Facts(Domain(a=Category(0, 1)), Neighbours("replace-one"), 1000)


# The theorem of privacy, on sessions whose law is a small matrix.


def deviation(prior, likelihood, persons):
    """For each transcript its probability and the largest posterior deviation of any question from the population.

    likelihood[x_1, ..., x_n, transcript]; a question is a subset of the values (every other one is a mixture of them).
    """
    values, transcripts = len(prior), likelihood.shape[-1]
    joint = likelihood.copy()
    for person in range(persons):
        shape = [1] * (persons + 1)
        shape[person] = values
        joint = joint * prior.reshape(shape)
    chance = joint.reshape(-1, transcripts).sum(axis=0)
    means = np.zeros((values, transcripts))
    for person in range(persons):
        others = tuple(axis for axis in range(persons) if axis != person)
        means += joint.sum(axis=others) / np.maximum(chance, 1e-300) / persons
    return chance, np.maximum(means - prior[:, None], 0).sum(axis=0)


def hockey_stick(likelihood, persons, epsilon):
    """The delta of the session under replace-one."""
    worst = 0.0
    for person in range(persons):
        rows = np.moveaxis(likelihood, person, 0)
        for one, other in itertools.permutations(range(len(rows)), 2):
            worst = max(worst, np.maximum(rows[one] - math.exp(epsilon) * rows[other], 0).sum(axis=-1).max())
    return worst


def test_the_constant_is_attained_with_one_person():
    """Randomized response on a bit of the right bias: tanh(epsilon/4) exactly, so no smaller constant is true."""
    for epsilon in (0.1, 1.0, 3.0):
        likelihood = np.array([[math.exp(epsilon), 1.0], [1.0, math.exp(epsilon)]]) / (1 + math.exp(epsilon))
        biases = 1 / (1 + np.exp(np.linspace(-epsilon, epsilon, 201)))
        largest = max(deviation(np.array([1 - p, p]), likelihood, 1)[1].max() for p in biases)
        assert largest == pytest.approx(math.tanh(epsilon / 4), rel=1e-3)
        assert largest <= math.tanh(epsilon / 4) * (1 + 1e-12)


def test_no_small_session_exceeds_the_theorem():
    """Random mechanisms on one or two persons with two or three values, at every epsilon and threshold."""
    rng = np.random.default_rng(5)
    tightest = 0.0
    for _ in range(400):
        persons, values, transcripts = rng.integers(1, 3), rng.integers(2, 4), rng.integers(2, 5)
        shape = (values,) * persons + (transcripts,)
        likelihood = np.exp(rng.normal(size=shape) * rng.uniform(0.1, 3))
        likelihood[rng.random(shape) < 0.1] = 0
        likelihood[..., 0] += 0.01
        likelihood /= likelihood.sum(axis=-1, keepdims=True)
        prior = rng.dirichlet(np.ones(values))
        chance, found = deviation(prior, likelihood, persons)
        for epsilon in (0.05, 0.3, 1.0, 2.0):
            delta = hockey_stick(likelihood, persons, epsilon)
            t, slope = math.tanh(epsilon / 4), math.tanh(epsilon / 2)
            for eta in np.unique(found - t)[np.unique(found - t) > 1e-9]:
                exceeds = chance[found >= t + eta - 1e-12].sum()
                allowed = 2 * delta / ((1 + math.exp(epsilon)) * eta * (1 - slope * (t + eta / 2)))
                tightest = max(tightest, exceeds / allowed)
    assert 0.3 < tightest <= 1 + 1e-9


@pytest.mark.parametrize("persons", [1, 2])
@pytest.mark.parametrize(("times", "epsilon"), [(1, 0.5), (6, 0.3), (6, 1.0)])
def test_the_distance_of_a_session_of_randomized_responses_holds_at_every_failure(persons, times, epsilon):
    """Each person's bit, told several times: all transcripts are enumerated."""
    stays = math.exp(epsilon) / (1 + math.exp(epsilon))
    heads = np.arange(times + 1)
    one = np.array([math.comb(times, k) * stays**k * (1 - stays) ** (times - k) for k in heads])
    likelihood = np.array([one[::-1], one])
    if persons == 2:
        likelihood = (likelihood[:, None, :, None] * likelihood[None, :, None, :]).reshape(2, 2, -1)
    rate = times * rate_of(Guarantee.of_pure(str(epsilon), neighbours="replace-one"))
    for p in (0.5, 0.3, 0.1):
        chance, found = deviation(np.array([1 - p, p]), likelihood, persons)
        for failure in (0.3, 0.05, 0.01, 1e-4):
            assert chance[found > distance(rate, failure=failure)].sum() <= failure


# The description, on weights that must sum to the failure and no more.


def test_the_weights_of_all_descriptions_sum_to_less_than_the_failure():
    """Of question j there are j patterns' sizes, so 1/(j(j+1)) times j/(j+1) is spent on it: 0.645 of the failure."""
    persons, failure, length = 1000, 0.02, 3.0
    spent = 0.0
    for asked in range(1, 80):
        for tops in range(asked):
            hoeffding = (
                -2 * persons * by_description(Disclosure(asked, tops, length), persons=persons, failure=failure) ** 2
            )
            spent += 2 * math.comb(asked - 1, tops) * math.exp(length + hoeffding)
    assert spent == pytest.approx(failure * sum(1 / (asked + 1) ** 2 for asked in range(1, 80)), rel=1e-6)


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0])
@pytest.mark.parametrize("guess", [0.0, 0.5, -17.3])
def test_the_code_of_whole_numbers_is_one(scale, guess):
    values = np.arange(-200_000, 200_001).astype(float)
    lengths = math.log(math.pi * scale + 1) + np.log1p(((values - guess) / scale) ** 2)
    tail = 2 * scale**2 / 199_000 / (math.pi * scale + 1)
    assert (0.6 if guess == 0 else 0.3) < np.exp(-lengths).sum() + tail <= 1 + 1e-9
    assert nats(values[:50], guess=guess, scale=scale) == pytest.approx(lengths[:50].sum())


def test_a_measured_count_or_marginal_is_as_long_as_its_possible_numbers_suggest():
    """About ln(pi n / 2) for a count among n; for cells that all hold about n / C, ln(pi n / C) each."""
    count = Measured(Count(), "gaussian", 30.0, 1.0, np.array(50_100.0))
    assert length_of(count, 100_000) == pytest.approx(math.log(math.pi * 50_000 + 1), abs=1e-4)
    far = Measured(Count(), "gaussian", 30.0, 1.0, np.array(-200.0))
    assert length_of(far, 100_000) == pytest.approx(math.log(math.pi * 50_000 + 1) + math.log(2), abs=0.01)
    cells = Measured(Histogram(("a", "b")), "gaussian", 30.0, 1.0, np.full((10, 20), 480.0))
    assert length_of(cells, 100_000) == pytest.approx(200 * math.log(math.pi * 500), rel=1e-3)
    total = Measured(Sum("a"), "laplace", 5.0, 0.5, np.array(0.0))
    assert length_of(total, 100_000) == pytest.approx(math.log(math.pi * 10 + 1))


def test_all_levels_of_the_rate_together_fail_as_often_as_they_may(monkeypatch):
    shares = {}
    monkeypatch.setattr(generalization, "distance", lambda rate, failure, may_fail: shares.setdefault(rate, failure))
    for level in range(-200, 201):
        by_privacy(Disclosure(1, rate=0.01 * 2.0**level, limit=0.01), beta=0.0, failure=0.04)
    assert len(shares) == 401
    assert 0.99 * 0.04 < 2 * sum(shares.values()) <= 0.04  # twice: with and without mechanisms that may fail


# An analyst who fits his last question to the sample.


def overfitted(persons, attributes, tell, rng):
    """Asks how often each attribute agrees with a label, then how often a vote weighed by those answers does.

    Nothing has to do with anything: the population's answer is 1/2. Returns the last question's answer on the sample.
    """
    agrees = rng.integers(0, 2, (persons, attributes), dtype=np.int8)
    answers = tell(agrees.mean(axis=0))
    score = (2 * agrees.astype(np.float32) - 1) @ (answers - 0.5).astype(np.float32)
    return float(np.mean(score > 0))


def test_an_analyst_who_reuses_the_sample_breaks_the_naive_bound_but_not_the_description():
    """He is told one bit for each attribute, and no more than that."""
    rng, persons, attributes = np.random.default_rng(6), 400, 300
    naive = by_workload(attributes + 1, persons=persons, failure=1e-3)
    told = Disclosure(attributes + 1, 0, nats=attributes * math.log(2))
    ours = by_description(told, persons=persons, failure=1e-3)
    for _ in range(20):
        found = overfitted(persons, attributes, lambda means: means > 0.5, rng) - 0.5
        assert naive < found < ours < 1


def test_an_analyst_who_reuses_the_sample_breaks_the_naive_bound_but_not_that_of_privacy():
    """Gaussian answers (floats will do in a game) whose noise is four times the sampling error."""
    rng, persons, attributes, scale = np.random.default_rng(8), 2000, 3000, 80.0
    rate = attributes / (2 * scale**2)
    naive = by_workload(attributes + 1, persons=persons, failure=1e-3)
    ours = distance(rate, failure=1e-3)
    tell = lambda means: means + rng.normal(0, scale / persons, means.shape)  # noqa: E731
    found = [overfitted(persons, attributes, tell, rng) - 0.5 for _ in range(5)]
    assert naive < min(found)
    assert max(found) < ours < 1


# Public numbers.


@pytest.mark.parametrize(
    ("persons", "questions", "tops", "values", "expected"),
    [(430_000, 10**6, 17, 101, 0.0192), (430_000, 10**6, 100, 101, 0.0420), (44_834, 2000, 17, 1001, 0.0515)],
)
def test_the_description_s_figures(persons, questions, tops, values, expected):
    told = Disclosure(questions, tops, nats=tops * math.log(values))
    assert by_description(told, persons=persons, failure=0.05) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.0244, 0.1746), (0.0066, 0.0913), (3.2e-4, 0.0202), (1e-4, 0.0113), (1e-5, 0.0036)]
)
def test_the_distance_s_figures(rate, expected):
    """Almost half of what tanh(epsilon/2) gives: 0.317, 0.169, 0.0375, 0.0210, 0.0067."""
    assert distance(rate, failure=0.025) == pytest.approx(expected, abs=1e-4)


def test_a_workload_that_was_fixed_has_hoeffding_s_bound():
    assert by_workload(1000, persons=10**5, failure=0.05) == pytest.approx(math.sqrt(math.log(40_000) / 2e5), rel=1e-6)


def test_bounds_grow_with_what_was_told_and_shrink_with_what_may_fail():
    base = Disclosure(100, 3, nats=20.0, rate=0.003, limit=0.02)
    more = [
        Disclosure(200, 3, nats=20.0, rate=0.003, limit=0.02),
        Disclosure(100, 4, nats=20.0, rate=0.003, limit=0.02),
        Disclosure(100, 3, nats=21.0, rate=0.003, limit=0.02),
    ]
    for each in more:
        assert by_description(each, persons=5000, failure=0.01) > by_description(base, persons=5000, failure=0.01)
    rates = [by_privacy(Disclosure(1, rate=0.02 * 2.0**-k, limit=0.02), beta=0.0, failure=0.01) for k in range(12)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 5 * rates[-1]
    for bound in (
        lambda failure: by_privacy(base, beta=1e-5, failure=failure),
        lambda failure: by_description(base, persons=5000, failure=failure),
        lambda failure: by_workload(7, persons=5000, failure=failure),
    ):
        assert bound(0.001) > bound(0.01) > bound(0.1)
    assert distance(0.003, failure=0.01, may_fail=1e-3) > distance(0.003, failure=0.01)
    assert by_description(base, persons=20_000, failure=0.01) == pytest.approx(
        by_description(base, persons=5000, failure=0.01) / 2
    )


def test_the_session_s_own_failure_is_added_to_the_bound_of_privacy():
    told = Disclosure(1, rate=0.02, limit=0.02)
    plain = by_privacy(told, beta=0.0, failure=0.01)
    assert by_privacy(told, beta=1e-4, failure=0.01) == pytest.approx(plain + 0.01)


def test_the_smaller_bound_is_printed_with_its_source_and_in_counts():
    few = drift(FACTS, Disclosure(10, 1, nats=5.0, rate=0.1), beta=1e-5, failure=0.05, random_sample=True)
    assert few.source == "description"
    assert few.fraction == by_description(Disclosure(10, 1, nats=5.0), persons=1000, failure=0.05 / 3)
    assert few.count == 1000 * few.fraction
    long = drift(
        FACTS, Disclosure(10, 1, nats=500.0, rate=1e-3, limit=1e-3), beta=1e-5, failure=0.05, random_sample=True
    )
    assert (long.source, long.fraction < 0.1) == ("privacy", True)
    nothing = drift(FACTS, Disclosure(10, 1, nats=math.inf), beta=0.05, failure=0.05, random_sample=True)
    assert (nothing.fraction, nothing.count) == (1.0, 1000.0)


def test_a_person_s_rows_are_one_question_of_a_person():
    several = Facts(FACTS.domain, Neighbours("replace-one", 4), 1000)
    told = Disclosure(10, 1, nats=5.0)
    one, four = (drift(each, told, beta=0.01, failure=0.05, random_sample=True) for each in (FACTS, several))
    assert (four.fraction, four.count) == (one.fraction, 4 * one.count)


def test_what_is_not_proven_is_refused():
    told = Disclosure(10)
    with pytest.raises(Unproven, match="random_sample"):
        drift(FACTS, told, beta=0.01, failure=0.05, random_sample=False)
    for size in (None, 1000):
        with pytest.raises(Unproven, match="number of persons"):
            drift(
                Facts(FACTS.domain, Neighbours("add-remove"), size),
                told,
                beta=0.01,
                failure=0.05,
                random_sample=True,
            )
    assert by_privacy(told, beta=0.01, failure=0.05) == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Disclosure(0),
        lambda: Disclosure(3, 3),
        lambda: Disclosure(3, -1),
        lambda: Disclosure(3, nats=-1.0),
        lambda: Disclosure(3, nats=math.nan),
        lambda: Disclosure(3, rate=-1.0),
        lambda: Disclosure(3, limit=0.0),
        lambda: Disclosure(3, may_fail=2.0),
        lambda: by_workload(0, persons=10, failure=0.05),
        lambda: by_workload(1, persons=10, failure=0),
        lambda: by_workload(1, persons=10, failure=1),
        lambda: by_privacy(Disclosure(1, rate=0.1), beta=1.0, failure=0.05),
        lambda: nats(np.zeros(3), guess=0.0, scale=0.0),
    ],
)
def test_numbers_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_the_rate_of_a_guarantee_bounds_its_curve():
    assert rate_of(Guarantee.of_zcdp("0.01", neighbours="replace-one")) == pytest.approx(0.01)
    assert 0 < rate_of(Guarantee.of_pure("0.2", neighbours="replace-one")) <= 0.2**2 / 2 * (1 + 1e-6)
