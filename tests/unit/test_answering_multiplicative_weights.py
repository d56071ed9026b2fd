"""Classic private multiplicative weights: parameters, updates, the fall of KL, and the program over a ledger."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from discreet.answering import multiplicative_weights, multiplicative_weights_parameters
from discreet.answering.multiplicative_weights import ClassicAnswers, Weights
from discreet.answering.multiplicative_weights_parameters import (
    BETTER,
    LECTURE,
    CountingProblem,
    better,
    better_for,
    least_alpha,
    lecture,
    needed,
    projection,
)
from discreet.data import Domain, Facts, Number, Table
from discreet.errors import BudgetExceeded, ConversationOver, ParameterError, SchemaError, Unproven
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.ledger import Ledger
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, Gaussian
from discreet.query import Among, And, Between, Count, Equals, Histogram, Not, Sum
from discreet.records import record
from discreet.release import release
from discreet.rng import SeededRng
from tests.statistical.test_answering_multiplicative_weights import (
    BUDGET,
    CELLS,
    counts_of,
    kl,
    made,
    people,
    program,
    simulated,
    subset,
)

METHODS = (BETTER, LECTURE)
FACTS = Facts(Domain(x=Number(0, 63, step=1)), Neighbours("replace-one"), 20_000)


def both(facts=FACTS, alpha=0.1, beta=0.05, questions=1000, **more):
    return [lecture(facts, alpha, beta, questions, **more), better(facts, alpha, beta, questions, delta=1e-6, **more)]


# Parameters.


def test_the_lecture_has_its_own_numbers():
    found = lecture(FACTS, Fraction(1, 10), 0.05, 10**6)
    assert found.theta == 1000  # alpha n / 2
    assert isinstance(found.threshold, AboveThresholdLaplace)
    assert found.threshold.threshold_scale == found.threshold.question_scale == found.scale
    assert found.updates == math.floor(64 * math.log(64) / 0.01)
    assert (found.near, found.error, found.far) == (1499, 250, 500)  # below 3 alpha/4, alpha/8, alpha/4


def test_one_outer_iteration_of_the_lecture_costs_four_times_its_epsilon():
    found = lecture(FACTS, 0.1, 0.05, 1000)
    e0 = 1 / found.scale
    assert found.threshold.guarantee(FACTS).pure == 3 * e0
    assert found.measurement(Count()).guarantee(FACTS).pure == e0
    assert found.guarantee(FACTS).pure == (3 * found.thresholds + found.updates) * e0


@pytest.mark.parametrize("questions", [1, 10, 10**4, 10**9])
def test_the_lecture_takes_the_most_noise_for_which_3k_noises_are_within_an_eighth(questions):
    found = lecture(FACTS, 0.1, 0.05, questions)

    def fails(scale):
        q = math.exp(-1 / scale)
        return 3 * questions * 2 * q ** (found.error + 1) / (1 + q)

    assert fails(float(found.scale)) <= 0.05 < fails(float(found.scale) * 1.0001)


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize(("size", "alpha", "questions"), [(20_000, 0.1, 1000), (500, 0.3, 7), (10**7, 0.01, 10**9)])
def test_the_better_one_keeps_its_failures_within_beta(size, alpha, questions, pure):
    found = better_for(CountingProblem(size, ("x",), 64), alpha, 0.05, questions, pure=pure)
    above_z = found.near + 1 - int(found.theta)  # Z: a guess that is given is at most theta + Z - 1 off
    above_nu = int(found.theta - found.far)  # N: one that is not is at least theta - N off
    failures = found.thresholds * math.exp(-(above_z + 1) / float(found.threshold.threshold_scale))
    failures += questions * math.exp(-(above_nu + 1) / float(found.threshold.question_scale))
    q = math.exp(-1 / float(found.scale))
    laplace, gaussian = 2 * q ** (found.error + 1) / (1 + q), 2 * norm.sf((found.error + 0.5) / float(found.scale))
    failures += found.updates * (laplace if pure else gaussian)
    assert 0.99 * 0.05 <= failures <= 0.05
    assert found.near <= alpha * size
    assert 0 < found.error < found.far  # so the sign of a noisy answer is right
    assert found.error == found.far - 1 if pure else 4 * found.error < found.far
    assert found.updates == min(questions, math.floor(math.log(64) / (2 * found.gap**2)))
    assert found.thresholds == min(found.updates + 1, questions)
    assert found.kind == ("laplace" if pure else "gaussian")


def test_the_better_one_needs_a_fraction_of_the_lectures_updates_and_budget():
    slow, fast = both(alpha=0.1, questions=10**6)
    assert 20 * fast.updates < slow.updates
    one, other = (each.guarantee(FACTS).epsilon(1e-6) for each in (fast, slow))
    assert 4 * one < other


def test_a_program_is_made_by_its_name():
    terms = {"alpha": 0.1, "beta": 0.05, "questions": 1000, "delta": 1e-6}
    assert [multiplicative_weights_parameters.program(method, FACTS, **terms) for method in (LECTURE, BETTER)] == both()
    assert multiplicative_weights_parameters.program(BETTER, FACTS, **{**terms, "delta": 0}).kind == "laplace"
    with pytest.raises(ParameterError, match='"pmw" or "lecture"'):
        multiplicative_weights_parameters.program("auto", FACTS, **terms)


def test_programs_are_records_and_differ_in_them():
    known = [each.manner for each in (*both(), *both(questions=999), *both(beta=0.04))]
    assert len(set(known)) == len(known)
    assert record(both()[0])["name"] == "classic/1"
    assert both()[0].manner == both()[0].manner


@pytest.mark.parametrize("relation", [Neighbours("add-remove"), Neighbours("replace-one", 2)])
def test_only_replace_one_with_one_row_a_person_is_proved(relation):
    for make in (lambda facts: lecture(facts, 0.1, 0.05, 10), lambda facts: better(facts, 0.1, 0.05, 10, delta=0)):
        with pytest.raises(Unproven, match='method="auto"'):
            make(Facts(FACTS.domain, relation, 100))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 0.05, 10), "alpha"),
        ((1, 0.05, 10), "alpha"),
        ((0.1, 0, 10), "beta"),
        ((0.1, 0.05, 0), "questions"),
        ((0.1, 0.05, 10**31), "questions"),
        ((1e-5, 0.05, 10), "persons"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    for make in (lambda: lecture(FACTS, *arguments), lambda: better(FACTS, *arguments, delta=1e-6)):
        with pytest.raises(ParameterError, match=words):
            make()


def test_columns_without_cells_are_named_and_may_be_left_out():
    facts = Facts(Domain(x=Number(0, 3, step=1), y=Number.any()), Neighbours("replace-one"), 20_000)
    with pytest.raises(ParameterError, match="'y'"):
        lecture(facts, 0.1, 0.05, 10)
    assert lecture(facts, 0.1, 0.05, 10, columns=["x"]).cells == 4
    with pytest.raises((ParameterError, SchemaError), match="z"):
        lecture(facts, 0.1, 0.05, 10, columns=["z"])


# Sizes and alphas.


@pytest.mark.parametrize("method", METHODS)
def test_the_needed_size_is_the_least_that_fits(method):
    facts = Facts(FACTS.domain, FACTS.neighbours, None)
    funds = Funds.of(Budget(1, 1e-6))

    def fits(program):
        return funds.admits(program.guarantee(facts))

    def make(size):
        return made(method, size, cells=64, alpha=0.1, questions=10**4)

    found = needed(make, fits)
    assert fits(make(found))
    assert not fits(make(found - 1))
    alpha = least_alpha(lambda wanted: made(method, found, cells=64, alpha=wanted, questions=10**4), fits)
    assert 0.0995 < alpha < 0.1005


def test_a_budget_for_which_nothing_fits_has_no_size_and_no_alpha():
    assert needed(lambda size: made(BETTER, size), lambda program: False) is None
    assert least_alpha(lambda alpha: made(BETTER, 100, alpha=alpha), lambda program: False) is None


# The fall of KL.


def table_and_guess(rng, cells, n):
    """A random table, as counts, and a random hypothesis, as logarithms; some of them extreme."""
    shares = rng.dirichlet(np.full(cells, rng.choice([0.05, 0.3, 3.0])))
    return rng.multinomial(n, shares), rng.normal(0, rng.choice([0.1, 1.0, 4.0]), cells)


def hypothesis(found, logs):
    weights = Weights(found, Facts(Domain(x=Number(0, len(logs) - 1, step=1)), FACTS.neighbours, found.size))
    if logs.any():
        weights.hypothesis.multiply(("x",), logs)
    return weights


@pytest.mark.parametrize("method", METHODS)
def test_kl_is_nonnegative_and_starts_at_no_more_than_the_logarithm_of_the_domain(method):
    rng = np.random.default_rng(1)
    found = made(method, 20_000, cells=16)
    for _ in range(50):
        counts, logs = table_and_guess(rng, 16, found.size)
        weights = hypothesis(found, np.zeros(16))
        assert 0 <= kl(counts, weights) <= found.start + 1e-12
        weights.hypothesis.multiply(("x",), logs)
        assert kl(counts, weights) >= 0


@pytest.mark.parametrize("method", METHODS)
def test_kl_falls_at_each_update_as_proved_on_random_instances(method):
    rng = np.random.default_rng(2)
    found, seen = made(method, 3000, cells=16, alpha=0.2, questions=1000), 0
    least = found.gap**2 * 2 if method == BETTER else float(found.alpha) ** 2 / 64
    while seen < 300:
        counts, logs = table_and_guess(rng, 16, found.size)
        cells = np.flatnonzero(rng.random(16) < 0.5)
        weights = hypothesis(found, logs)
        if len(cells) in (0, 16) or abs(counts[cells].sum() - weights.guess(subset(cells))) < found.far:
            continue
        before, seen = kl(counts, weights), seen + 1
        noise = int(rng.choice([-found.error, 0, found.error, rng.integers(-found.error, found.error + 1)]))
        answer = min(max(int(counts[cells].sum()) + noise, 0), found.size)
        promised = weights.update(subset(cells), answer)
        assert promised >= least * (1 - 1e-9)
        assert before - kl(counts, weights) >= promised * (1 - 1e-9)


def fall(found, share, truth, noise, *, eta=None, flipped=False):
    """Of KL by one update, over what is promised; share and truth of the persons that satisfy the question."""
    guess, count = round(share * found.size), round(truth * found.size)
    if abs(count - guess) < found.far:
        return math.inf
    step, _ = found.step(share, guess, count + noise)
    step = (math.copysign(eta, step) if eta else step) * (-1 if flipped else 1)
    change = step * count / found.size - math.log1p(share * math.expm1(step))
    return change / (2 * found.gap**2 if found.method == BETTER else float(found.alpha) ** 2 / 64)


def worst_fall(found, rng, **twin):
    """Hill-climbed over the share, the truth and the noise within its bound."""

    def move(point, width):
        share = min(max(point[0] + rng.normal(0, width), 1e-9), 1 - 1e-9)
        truth = min(max(point[1] + rng.normal(0, width), 0.0), 1.0)
        return share, truth, int(np.clip(point[2] + rng.normal(0, width) * found.size, -found.error, found.error))

    best = math.inf
    for _ in range(12):
        point = (rng.random(), rng.random(), 0)
        value = fall(found, *point, **twin)
        for step in range(400):
            other = move(point, 0.3 * 0.985**step)
            found_value = fall(found, *other, **twin)
            if found_value < value:
                point, value = other, found_value
        best = min(best, value)
    return best


@pytest.mark.parametrize(("size", "alpha"), [(200, 0.2), (20_000, 0.05), (400, 0.9)])
@pytest.mark.parametrize("method", METHODS)
def test_no_instance_makes_kl_fall_less_than_proved(method, size, alpha):
    worst = worst_fall(made(method, size, alpha=alpha, cells=64), np.random.default_rng(3))
    assert worst >= 1 - 1e-9
    if method == BETTER and alpha < 0.1:
        assert worst < 1.05  # Hoeffding's step is tight for small gaps


def test_the_lecture_steps_by_an_eighth_of_alpha_towards_the_answer():
    found = lecture(FACTS, 0.1, 0.05, 1000)
    for answer, step in ((6001, 0.0125), (5999, -0.0125), (6000, -0.0125)):
        assert found.step(0.3, 6000, answer) == pytest.approx((step, 0.01 / 64))


def test_a_flipped_sign_makes_kl_rise():
    for found in both():
        assert worst_fall(found, np.random.default_rng(4), flipped=True) < 0


def test_the_lectures_step_in_the_better_program_needs_eight_times_the_updates():
    found = better(FACTS, 0.1, 0.05, 10**6, delta=1e-6)
    worst = worst_fall(found, np.random.default_rng(5), eta=0.1 / 8)
    assert 1 / 10 < worst < 1 / 7


def test_a_projection_falls_between_hoeffding_and_the_divergence_of_two_coins():
    for share, gap in itertools.product([1e-12, 0.01, 0.3, 0.5, 0.9], [1e-4, 0.03, 0.09]):
        eta, drop = projection(share, gap, size=10**6)
        x = share + gap
        coins = x * math.log(x / share) + (1 - x) * math.log((1 - x) / (1 - share))
        assert 2 * gap * gap <= drop <= coins * (1 + 1e-9)
        assert drop == pytest.approx(coins, rel=1e-6)
        assert eta >= 4 * gap


@pytest.mark.parametrize("share", [0.0, 1.0, 1e-300, 0.5, 1 - 1e-16])
def test_a_projection_is_finite_wherever_it_starts(share):
    for gap in (1e-9, 0.5, 1.0):
        assert all(math.isfinite(each) for each in projection(share, gap, size=1000))


# Running over a ledger.


def ledger_for(table, budget=BUDGET, **more):
    return Ledger.in_memory(budget, table, testing=True, **more)


def ask(engine, cells):
    return engine.answer(subset(cells))


def worst(engine, counts, rng):
    """The worst of some random sets for the hypothesis as it is; every other time any set."""
    sets = [np.flatnonzero(rng.random(CELLS) < 0.5) for _ in range(2 + 30 * int(rng.integers(2)))]
    sets = [each for each in sets if 0 < len(each) < CELLS]
    return max(sets, key=lambda each: abs(counts[each].sum() - engine.weights.guess(subset(each))))


@pytest.mark.parametrize("method", METHODS)
def test_the_engine_says_what_the_program_says_with_the_same_randomness(method):
    found = program(method)
    table = people(found.size, seed=1)
    counts, rng = counts_of(table), np.random.default_rng(6)
    engine = ClassicAnswers(found, table, ledger_for(table), rng=SeededRng(1))
    questions = []
    for _ in range(40):
        questions.append(worst(engine, counts, rng))
        ask(engine, questions[-1])
    told = [(int(said.value), said.source) for said in engine.transcript.answers]
    distinct = list(dict.fromkeys(tuple(each) for each in questions))
    assert told == simulated(found, table, SeededRng(1), [list(each) for each in distinct])
    assert engine.weights.updates == sum(source == "measurement" for _, source in told) > 0
    assert {source for _, source in told} == {"measurement", "hypothesis"}


@pytest.mark.parametrize("method", METHODS)
def test_only_what_is_opened_is_charged(method):
    found = program(method)
    table = people(found.size, seed=1)
    ledger = ledger_for(table)
    engine = ClassicAnswers(found, table, ledger, rng=SeededRng(1))
    assert ledger.spent().pure == 0
    counts, rng = counts_of(table), np.random.default_rng(6)
    given = [ask(engine, worst(engine, counts, rng)) for _ in range(40)]
    threshold = ledger.price(found.threshold.guarantee(table.facts)).renyi
    answer = ledger.price(found.measurement(Count()).guarantee(table.facts)).renyi
    measured = sum(each.source == "measurement" for each in given)
    assert ledger.spent().renyi == engine.transcript.runs * threshold + measured * answer
    assert sum(each.price for each in given) == ledger.spent().renyi
    assert engine.transcript.runs in (measured, measured + 1)
    bounds = {"hypothesis": found.near, "measurement": found.error}
    assert all(each.error_bound == bounds[each.source] for each in given if each.source != "cache")


def test_the_same_question_is_free_and_public_ones_cost_nothing():
    found = program(BETTER)
    table = people(found.size, seed=1)
    ledger = ledger_for(table)
    engine = ClassicAnswers(found, table, ledger, rng=SeededRng(1))
    assert (int(engine.answer(Count()).value), engine.answer(Count()).source) == (found.size, "public")
    assert int(engine.answer(Count(And(Equals("x", 1), Equals("x", 2)))).value) == 0
    assert ledger.spent().pure == 0
    first = ask(engine, [0, 1])
    spent, asked = ledger.spent(), engine.asked
    again = engine.answer(Count(Between("x", 0, 1)))
    assert (int(again.value), again.error_bound, again.source, again.price) == (
        int(first.value),
        first.error_bound,
        "cache",
        0,
    )
    assert (ledger.spent(), engine.asked) == (spent, asked)


def test_a_program_goes_on_where_it_stopped(tmp_path):
    found = program(BETTER)
    table = people(found.size, seed=1)
    counts, rng = counts_of(table), np.random.default_rng(6)
    ledger = Ledger.create(tmp_path / "people.ledger", BUDGET, table, testing=True)
    engine = ClassicAnswers(found, table, ledger, rng=SeededRng(1))
    asked = [worst(engine, counts, rng) for _ in range(15) if ask(engine, worst(engine, counts, rng))]
    given = [ask(engine, each) for each in asked]
    shares = engine.weights.hypothesis.marginal(("x",))
    ledger.close()
    with Ledger.open(tmp_path / "people.ledger") as opened:
        spent = opened.spent()
        other = ClassicAnswers(found, table, opened, rng=SeededRng(2))
        assert (other.asked, other.weights.updates) == (engine.asked, engine.weights.updates)
        assert other.weights.potential == engine.weights.potential
        assert other.transcript.open_run == engine.transcript.open_run
        np.testing.assert_array_equal(other.weights.hypothesis.marginal(("x",)), shares)
        assert [int(ask(other, each).value) for each in asked] == [int(each.value) for each in given]
        assert opened.spent() == spent


def exhausted(method, budget=BUDGET, **changed):
    """A program whose thresholds fire always, after three updates."""
    found = program(method)
    broken = replace(found, **{"theta": Fraction(-(10**9)), "updates": 3, **changed})
    table = people(found.size, seed=1)
    engine = ClassicAnswers(broken, table, ledger_for(table, budget), rng=SeededRng(1))
    for cell in range(3):
        assert ask(engine, [cell]).source == "measurement"
    return engine


@pytest.mark.parametrize("method", METHODS)
def test_the_top_after_the_last_update_ends_the_program_for_good(method):
    engine = exhausted(method)
    with pytest.raises(ConversationOver, match="updates"):
        ask(engine, [3])
    spent = engine.ledger.spent()
    for again in (engine, ClassicAnswers(engine.program, engine.table, engine.ledger, rng=SeededRng(2))):
        with pytest.raises(ConversationOver, match="thresholds"):
            ask(again, [3])
        assert ask(again, [0]).source == "cache"
    assert engine.ledger.spent() == spent
    assert engine.transcript.runs == engine.program.thresholds == 4


def test_more_questions_than_were_declared_are_refused_and_cached_ones_do_not_count():
    found = program(BETTER)
    few = replace(found, questions=3)
    table = people(found.size, seed=1)
    engine = ClassicAnswers(few, table, ledger_for(table), rng=SeededRng(1))
    for cell in (0, 1, 0, 1, 2, 2):
        ask(engine, [cell])
    for again in (engine, ClassicAnswers(few, table, engine.ledger, rng=SeededRng(1))):
        with pytest.raises(ConversationOver, match="3 questions"):
            ask(again, [3])


def test_a_failed_promise_is_seen_and_ends_the_program():
    engine = exhausted(BETTER, Budget(1000, 1e-6), updates=500, questions=500)
    for said in list(engine.transcript.answers):  # the same answers again and again, which contradict the falls
        for _ in range(200):
            engine.weights.update(said.question, engine.program.size)
    assert engine.weights.potential < 0
    with pytest.raises(ConversationOver, match="beta"):
        ask(engine, [4, 5])


def test_a_top_without_budget_is_never_answered_by_the_guess():
    engine = exhausted(BETTER, Budget(40, 1e-6), updates=50, questions=50)
    table, ledger = engine.table, engine.ledger
    threshold = ledger.price(engine.program.threshold.guarantee(table.facts)).renyi
    answer = ledger.price(engine.program.measurement(Count()).guarantee(table.facts)).renyi
    left = ledger.remaining()  # to be spent but for a threshold and half an answer
    scale = math.sqrt(float(left.order) / 2 / ((left.renyi - threshold - answer // 2) / 1e9))
    release(Gaussian(Count(), Fraction(scale)), table, ledger=ledger, rng=SeededRng(9))
    with pytest.raises(BudgetExceeded):
        ask(engine, [5])
    assert engine.transcript.tops == engine.transcript.runs == 4
    assert engine.weights.updates == 3
    with pytest.raises(BudgetExceeded):
        ask(engine, [5])
    assert ask(engine, [0]).source == "cache"


def test_answers_are_whole_persons_between_none_and_all():
    engine = exhausted(LECTURE, Budget(40, 1e-6), updates=50, questions=50)
    given = [int(ask(engine, [cell]).value) for cell in range(CELLS)]
    assert min(float(each.value) for each in engine.transcript.measured) < 0  # a noisy count of nobody
    assert min(given) == 0
    assert max(given) <= engine.program.size


def test_releases_made_elsewhere_do_not_touch_a_program():
    found = program(BETTER)
    table = people(found.size, seed=1)
    ledger = ledger_for(table)
    engine = ClassicAnswers(found, table, ledger, rng=SeededRng(1))
    ask(engine, [0])
    before = engine.weights.updates, engine.transcript.runs
    release(Gaussian(Count(Equals("x", 5)), 10_000), table, ledger=ledger, rng=SeededRng(9))
    other = ClassicAnswers(made(BETTER, found.size, alpha=0.8), table, ledger, rng=SeededRng(1))
    engine.answer(Count(Equals("x", 0)))
    assert (engine.weights.updates, engine.transcript.runs) == before
    assert (other.weights.updates, other.transcript.runs) == (0, 0)


def test_a_threshold_whose_secret_is_gone_is_replaced_and_paid():
    found = program(BETTER)
    table = people(found.size, seed=1)
    ledger = ledger_for(table)
    engine = ClassicAnswers(found, table, ledger, rng=SeededRng(1))
    given = [ask(engine, [cell]) for cell in range(3)]
    assert engine.transcript.open_run is not None
    ledger.store.secrets._memory.clear()
    runs = engine.transcript.runs
    again = ask(engine, [1, 2, 4])
    assert (engine.transcript.runs, again.price > 0) == (runs + 1, True)
    assert given[0].price > 0


@pytest.mark.parametrize("method", METHODS)
def test_an_alpha_below_what_the_budget_can_give_is_refused_with_one_that_fits(method):
    table = people(program(method).size, seed=1)
    ledger = ledger_for(table)
    wanted = made(method, program(method).size, alpha=0.02)
    with pytest.raises(
        ParameterError, match=r"alpha=0\.02 is below what the budget can give.*alpha=0\.\d+ would"
    ) as got:
        ClassicAnswers(wanted, table, ledger)
    assert ledger.spent().pure == 0
    offered = float(str(got.value).rsplit("alpha=", 1)[1].split()[0])
    ClassicAnswers(made(method, program(method).size, alpha=offered * 1.002), table, ledger)


def test_noisy_answers_count_in_what_must_fit():
    found = program(BETTER)
    table = people(found.size, seed=1)
    with pytest.raises(ParameterError, match="noisy answers do not fit"):
        ClassicAnswers(replace(found, scale=Fraction(1, 2)), table, ledger_for(table))


def test_an_answer_that_another_session_overtook_updates_nothing(monkeypatch):
    engine = exhausted(BETTER, Budget(40, 1e-6), updates=50, questions=50)
    other = ClassicAnswers(engine.program, engine.table, engine.ledger, rng=SeededRng(2))

    def overtaken(*arguments, **more):
        monkeypatch.setattr(multiplicative_weights, "release", release)
        assert ask(other, [7]).source == "measurement"
        return release(*arguments, **more)

    monkeypatch.setattr(multiplicative_weights, "release", overtaken)
    assert ask(engine, [5]).source == "direct"
    assert ask(other, [5]).source == "cache"
    assert engine.weights.updates == other.weights.updates == 4
    assert engine.weights.potential == other.weights.potential
    assert engine.transcript.tops == 5


def test_wrong_questions_and_tables_are_refused_before_anything_is_spent():
    found = program(BETTER)
    table = people(found.size, seed=1)
    ledger = ledger_for(table)
    engine = ClassicAnswers(found, table, ledger, rng=SeededRng(1))
    for question in (Sum("x"), Histogram("x")):
        with pytest.raises(ParameterError, match="counts"):
            engine.answer(question)
    with pytest.raises((ParameterError, SchemaError)):
        engine.answer(Count(Equals("y", 1)))
    with pytest.raises(ParameterError):
        engine.answer(Count(Equals("x", 10**6)))
    with pytest.raises(ParameterError, match="other facts"):
        ClassicAnswers(made(BETTER, found.size + 1), table, ledger)
    assert ledger.spent().pure == 0


def test_a_domain_that_cannot_be_held_is_refused_and_columns_may_be_named():
    wide = Domain(x=Number(0, CELLS - 1, step=1), y=Number(0, 10**9, step=1))
    n = program(BETTER).size
    table = Table({"x": [0] * n, "y": [0] * n}, wide, neighbours="replace-one", name="people")
    ledger = ledger_for(table, Budget(100, 1e-6))
    with pytest.raises(ParameterError, match=r"cells.*method=\"auto\""):
        ClassicAnswers(better(table.facts, 0.5, 0.05, 5, delta=1e-6), table, ledger)
    narrow = ClassicAnswers(better(table.facts, 0.5, 0.05, 5, delta=1e-6, columns=["x"]), table, ledger)
    assert narrow.answer(Count(Not(Equals("x", 1)))).source == "hypothesis"
    with pytest.raises(ParameterError, match="column"):
        narrow.answer(Count(Equals("y", 1)))
    assert isinstance(narrow.program.threshold, AboveThreshold)


def test_a_program_shows_its_potential():
    engine = exhausted(BETTER)
    assert "3 of at most 3 updates, potential" in repr(engine)
    assert engine.weights.potential <= engine.program.start - 3 * 2 * engine.program.gap**2


def test_several_columns_are_one_domain():
    domain = Domain(x=Number(0, 3, step=1), y=Number(0, 2, step=1))
    found = better(Facts(domain, Neighbours("replace-one"), 4000), 0.25, 0.05, 100, delta=1e-6)
    weights = Weights(found, Facts(domain, Neighbours("replace-one"), 4000))
    question = Count(And(Among("x", [0, 1]), Equals("y", 2)))
    assert weights.guess(question) == round(4000 / 6)
    weights.update(question, 3500)
    assert weights.share(question) > 0.6
    assert weights.share(Count(Equals("y", 2))) > 0.6
