"""Plans for counting questions: the sizes of the literature's formulas, with the ledger's prices; no data."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import pytest
from scipy.stats import norm

from discreet import exact
from discreet.answering.calibration import Calibration, SessionTerms
from discreet.answering.multiplicative_weights_parameters import BETTER, LECTURE
from discreet.answering.workload import methods
from discreet.data import Category, Domain, Facts, Identity
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.ledger import Ledger
from discreet.plan import plan as planned
from discreet.plan import questions as planned_questions
from discreet.plan.problems import Problem
from discreet.plan.questions import AUTO, AVERAGED, TABLE
from discreet.query import Among, Count, Equals, Histogram

BUDGET = Budget(1, 1e-6)
EACH = "Gaussian for each"
FACTS = Facts(Domain(it=Category("no", "yes")), Neighbours("replace-one"), None)
RHO = 0.02436  # the zCDP that (1, 1e-6) allows


def rows(kind="questions", *, budget=BUDGET, relation="replace-one", **more):
    return planned(kind, budget=budget, neighbours=relation, **more).rows


@functools.cache
def plan(**more):
    return {row.method: row for row in rows(**more)}


def slow(*row):
    return pytest.param(*row, marks=pytest.mark.slow)


def slow_but(*quick):
    """Marks all rows of a table slow but these."""
    return lambda table: [row if place in quick else slow(*row) for place, row in enumerate(table)]


# Persons at (1, 1e-6), beta 0.05, by hand with a zCDP of 0.02436 (k, log2|D|, alpha, pmw, lecture, averaged, each).
# By hand an iteration of the lecture costs (4 e0)^2/2 = 8 e0^2 in zCDP. The ledger charges 3 e0 for the threshold, e0
# for the count, one after the other: (9 + 1)/2 e0^2, so it needs sqrt(5/8) = 0.79 of the persons.
TABLES = [
    (10**6, 20, 0.1, 4.3e5, 7.7e6, 1.2e5, 2.5e5),
    (10**6, 20, 0.05, 1.8e6, 3.1e7, 5.1e5, 4.9e5),
    (10**6, math.log2(10**7), 0.1, 4.6e5, 8.3e6, 1.3e5, 2.5e5),
    (10**9, 20, 0.1, 5.3e5, 1.1e7, 1.5e5, 9.4e6),
    (10**9, 20, 0.01, 5.9e7, 1.1e9, 1.8e7, 9.4e7),
]


@pytest.mark.parametrize(("k", "bits", "alpha", "pmw", "lecture", "averaged", "each"), slow_but(0, 3)(TABLES))
def test_the_table_of_sizes_is_reproduced(k, bits, alpha, pmw, lecture, averaged, each):
    found = plan(questions=k, cells=round(2**bits), alpha=alpha)
    assert found[BETTER].needed == pytest.approx(pmw, rel=0.03)
    assert found[LECTURE].needed == pytest.approx(math.sqrt(5 / 8) * lecture, rel=0.04)
    assert found[AVERAGED].needed == pytest.approx(averaged, rel=0.04)
    assert found[EACH].needed == pytest.approx(each, rel=0.02)


@pytest.mark.parametrize(
    ("cells", "alpha", "updates"), slow_but(0)([(2**20, 0.1, 2515), (2**20, 0.05, 10_060), (10**7, 0.1, 2924)])
)
def test_the_numbers_of_updates_are_reproduced(cells, alpha, updates):
    """Never more than by hand, and at most 3 % fewer."""
    assert 0.97 * updates <= plan(questions=10**6, cells=cells, alpha=alpha)[BETTER].mechanism.updates <= updates


# Up to how many cells a noisy histogram needs fewer persons than averaged weights, a million questions: alpha, cells.
# By hand with the normal quantile.
@pytest.mark.parametrize(("alpha", "cells"), [(0.1, 5e5), (0.05, 2e6), (0.01, 7e7)])
def test_up_to_which_domain_a_noisy_histogram_wins(alpha, cells):
    below, above = (rows("workload", questions=10**6, cells=int(part * cells), alpha=alpha) for part in (0.7, 1.2))
    below, above = ({row.method: row for row in each} for each in (below, above))
    assert bool(above[TABLE].refusal) == (cells > 2**22)  # more numbers are not released at once
    if not above[TABLE].refusal:
        assert below[TABLE].needed < below[AVERAGED].needed
        assert above[TABLE].needed > above[AVERAGED].needed


def test_sizes_agree_with_the_closed_forms():
    k, cells, alpha, beta = 10**6, 2**20, 0.1, 0.05
    found = plan(questions=k, bits=20, alpha=alpha)
    log_cells, updates = math.log(cells), found[BETTER].mechanism.updates
    first, second = math.log(updates / (0.45 * beta)), math.log(k / (0.5 * beta))
    better = 2 / alpha**2 * (math.sqrt(first) + math.sqrt(2 * second)) ** 2 * math.sqrt(log_cells / RHO)
    assert found[BETTER].needed == pytest.approx(better, rel=0.03)  # sharp answers cost 2 %
    e0 = math.sqrt(RHO / 5 / (64 * log_cells / alpha**2))
    assert found[LECTURE].needed == pytest.approx(8 * math.log(3 * k / beta) / (alpha * e0), rel=0.01)


@pytest.mark.parametrize("method", [BETTER, *(slow(each) for each in (LECTURE, EACH, AVERAGED, TABLE))])
def test_the_size_that_is_needed_promises_the_alpha_that_was_asked_for(method):
    needed = plan(questions=10**5, bits=16, alpha=0.1)[method].needed
    row = plan(questions=10**5, bits=16, size=needed)[method]
    least = 0.074 if method == LECTURE else 0.0985  # the lecture's answers are within three quarters of alpha
    assert least < row.alpha < 0.1005
    assert row.error == pytest.approx(row.alpha * needed)


def crossover(cells, *, budget, beta, alpha=None, size=None):
    wanted = None if alpha is None else exact.probability(alpha=alpha)
    sure, relation = exact.probability(beta=beta), Neighbours("replace-one")
    problem = Problem("questions", budget, relation, None, wanted, sure, Funds.of(budget), {})
    return planned_questions.crossover(problem, cells, size)


# Questions from which on pmw beats a Gaussian for each, |D| = 2^20: alpha, k*.
@pytest.mark.parametrize(("alpha", "questions"), slow_but(0)([(0.1, 3.0e6), (0.05, 1.3e7), (0.01, 3.9e8)]))
def test_the_crossovers_are_reproduced(alpha, questions):
    found = crossover(2**20, alpha=alpha, beta=0.05, budget=BUDGET)
    assert found == pytest.approx(questions, rel=0.03)


def test_the_crossover_is_where_the_rows_cross_and_is_printed():
    at = crossover(2**20, alpha=0.1, beta=0.05, budget=BUDGET)
    before, after = (plan(questions=k, bits=20, alpha=0.1) for k in (int(0.97 * at), int(1.03 * at)))
    assert before[BETTER].needed > before[EACH].needed
    assert after[BETTER].needed < after[EACH].needed
    assert f"{at:.1e} questions" in after[BETTER].assuming


def test_a_crossover_for_a_size_is_where_the_alphas_cross():
    size = plan(questions=10**6, bits=20, alpha=0.1)[BETTER].needed
    at = crossover(2**20, size=size, beta=0.05, budget=BUDGET)
    before, after = (plan(questions=k, bits=20, size=size) for k in (int(0.9 * at), int(1.1 * at)))
    assert before[BETTER].alpha > before[EACH].alpha
    assert after[BETTER].alpha < after[EACH].alpha


def test_a_pure_budget_has_laplace_noise_and_a_crossover_much_earlier():
    found = plan(budget=Budget(1), questions=10**5, bits=20, alpha=0.1)
    assert found[BETTER].needed < found["Laplace for each"].needed
    assert found[BETTER].mechanism.kind == "laplace"
    assert crossover(2**20, alpha=0.1, beta=0.05, budget=Budget(1)) < 10**5
    assert found[BETTER].mechanism.guarantee(FACTS).pure <= 1


@pytest.mark.parametrize(("bits", "size"), [(20, 3.6e5), (10, 1.1e4)])
def test_a_noisy_histogram_is_for_small_domains(bits, size):
    """By hand with the normal quantile; of discrete noise, with weights of a half, half a person more is proved."""
    found = plan(questions=10**6, bits=bits, alpha=0.05)[TABLE]
    by_hand = math.sqrt(2**bits / (4 * RHO)) * norm.isf(0.05 / (2 * 10**6)) / 0.05
    assert by_hand == pytest.approx(size, rel=0.02)
    assert 1 <= found.needed / by_hand < 1.01
    assert "in advance" in found.assuming


def test_a_noisy_histogram_beats_averaged_weights_up_to_some_domain():
    small, large = (plan(questions=10**6, cells=cells, alpha=0.1) for cells in (2**18, 2**20))
    assert small[TABLE].needed < small[AVERAGED].needed
    assert large[TABLE].needed > large[AVERAGED].needed


def test_programs_of_the_plan_fit_the_budget_and_one_person_less_does_not():
    for method in (BETTER, LECTURE):
        row = plan(questions=10**5, bits=16, alpha=0.1)[method]
        assert row.mechanism.size == row.needed
        assert row.mechanism.guarantee(FACTS).within(BUDGET)
        assert f"at most {row.mechanism.updates:,} updates" in row.theorem


@pytest.mark.parametrize("relation", ["add-remove", Neighbours("replace-one", 3)])
def test_without_a_public_number_of_rows_the_weights_promise_nothing(relation):
    found = plan(relation=relation, questions=1000, bits=10, size=10**6)
    assert all("public" in found[method].refusal for method in (BETTER, LECTURE, AVERAGED))
    assert found[AUTO].alpha < 1
    assert found[EACH].alpha < 1
    assert found[TABLE].alpha < 1


def test_a_noisy_histogram_of_a_public_total_is_summed_from_the_middle():
    """Replace-one has twice the squared sensitivity; a public total halves every weight."""
    known, unknown = (plan(relation=each, questions=99, bits=10, size=10**6) for each in ("replace-one", "add-remove"))
    assert known[TABLE].error == pytest.approx(unknown[TABLE].error / math.sqrt(2), rel=1e-3)


def test_a_domain_beyond_memory_is_planned_and_marked():
    found = plan(questions=10**6, bits=100, alpha=0.1)
    assert "plan only" in found[BETTER].assuming
    assert "cells" in found[TABLE].refusal
    assert found[BETTER].needed == pytest.approx(
        math.sqrt(5) * plan(questions=10**6, bits=20, alpha=0.1)[BETTER].needed, rel=0.1
    )


def test_a_size_that_promises_nothing_says_so():
    for row in plan(questions=10**8, bits=20, size=50).values():
        assert "no alpha below 1" in row.refusal
        assert row.error is None
    found = plan(questions=10**8, bits=20, size=50, alpha=0.1)
    assert all(row.needed > 50 and row.error is None and not row.refusal for row in found.values())


# auto.


def paid_by_hand(size, alpha, budget=BUDGET, beta=0.05):
    """Counts one after the other, as a session pays for them, until a ledger refuses."""
    facts = Facts(Domain(it=Category("no", "yes")), Neighbours("replace-one"), size)
    ledger = Ledger.in_memory(budget, Identity("people", facts.neighbours, None))
    calibration = Calibration(facts, ledger, SessionTerms(Fraction(repr(alpha)), Fraction(repr(beta))))
    left, count = calibration.left(), 0
    while left >= 0:
        count += 1
        left -= calibration.price(calibration.alone(Count(Equals("it", "yes")), count))
    return count - 1


@pytest.mark.parametrize("budget", [BUDGET, Budget(1)])
def test_auto_pays_for_as_many_counts_as_a_session_would(budget):
    size, alpha = 20_000, 0.02
    by_hand = paid_by_hand(size, alpha, budget)
    row = plan(budget=budget, questions=10, bits=10, size=size, alpha=alpha)[AUTO]
    said = int(row.assuming.split("pays for ")[1].split(" counts")[0].replace(",", ""))
    assert 0.98 * by_hand - 1 <= said <= by_hand
    assert 10 < said < 1000


def test_auto_promises_the_alpha_at_which_all_questions_are_paid():
    size, questions = 20_000, 200
    row = plan(questions=questions, bits=10, size=size)[AUTO]
    assert row.error == pytest.approx(row.alpha * size)
    assert paid_by_hand(size, row.alpha) >= questions
    assert paid_by_hand(size, 0.98 * row.alpha) < questions
    wanted = plan(questions=questions, bits=10, alpha=0.03)[AUTO]
    assert wanted.needed == pytest.approx(row.error / 0.03, rel=0.01)
    assert row.error > plan(questions=questions, bits=10, size=size)[EACH].error  # it knows no number of questions


def test_more_charges_than_a_ledger_has_nano_units_do_not_fit():
    assert "nano-units" in plan(questions=10**9, bits=20, size=10**9)[AUTO].refusal


def test_laplace_noise_stands_beside_gaussian_noise():
    found = plan(questions=1000, bits=10, size=10**6)
    assert found[EACH].error < found["Laplace for each"].error
    few = plan(questions=1, bits=10, size=10**6)
    assert few[EACH].error > few["Laplace for each"].error
    assert "delta > 0" in plan(budget=Budget(1), questions=10, bits=10, size=10**6)[EACH].refusal


# Workloads and made-up rows.


def test_a_planned_workload_is_what_choosing_a_way_finds():
    """Two columns, all of their tables: what `workload.methods` prove for real questions."""
    domain = Domain(a=Category(*range(6)), b=Category(*range(10)))
    size = 10_000
    facts = Facts(domain, Neighbours("replace-one"), size)
    halves = [Count(Among("a", (0, 1, 2)) & Among("b", tuple(range(each, each + 5)))) for each in range(5)]
    questions = [*halves, Histogram("a"), Histogram("b")]
    numbers = len(halves) + 16
    listed = methods(questions, facts, funds=Funds.of(BUDGET), beta=0.05)
    ways = {way.name: way.promise(size).bound for way in listed}
    found = {row.method: row for row in rows("workload", questions=numbers, cells=60, size=size, marginals=1, each=60)}
    assert found[TABLE].error == found["marginals"].error  # one marginal over everything is the histogram
    half = 0.5  # a sum of discrete noise reaches up to one person further than normal noise, in a plan half of that
    assert 0.5 * found[TABLE].error < ways["histogram, gaussian noise"] <= found[TABLE].error + half
    assert ways["weights"] == pytest.approx(found[AVERAGED].error, rel=0.05)


def test_several_marginals_cost_their_number():
    one, four = (
        {row.method: row for row in rows("workload", questions=10, bits=20, size=10**6, marginals=m, each=50)}
        for m in (1, 4)
    )
    assert four["marginals"].error == pytest.approx(2 * one["marginals"].error, abs=0.5 + 1e-3)
    with pytest.raises(ParameterError, match="each="):
        rows("workload", questions=10, bits=20, size=10**6, marginals=3)


def test_made_up_rows_follow_their_hypothesis_and_nothing_else_is_promised():
    drawn, hypothesis = rows("synthetic", questions=100, rows=10_000, alpha=0.01)
    assert drawn.error == pytest.approx(math.sqrt(math.log(2 * 100 / 0.05) / 20_000))
    assert drawn.needed == math.ceil(math.log(2 * 100 / 0.05) / (2 * 0.01**2))
    assert "not proved" in hypothesis.refusal
    with pytest.raises(ParameterError, match="rows="):
        rows("synthetic", questions=100)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"questions": 10}, "bits="),
        ({"questions": 10, "bits": 3, "cells": 8}, "one of the two"),
        ({"bits": 3}, "questions="),
        ({"questions": 0, "bits": 3}, "questions"),
        ({"questions": 10**31, "bits": 3}, "questions"),
        ({"questions": 10, "cells": 1}, "cells"),
        ({"questions": 10, "bits": 2**21}, "bits"),
    ],
)
def test_wrong_numbers_are_named(numbers, words):
    with pytest.raises(ParameterError, match=words):
        rows(alpha=0.1, **numbers)


def test_a_plan_needs_a_size_or_an_alpha():
    with pytest.raises(ParameterError, match="size="):
        rows(questions=10, bits=3)
