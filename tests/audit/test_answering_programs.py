"""Exact laws of whole short sessions on neighbouring tables, against what the ledger charged, and broken sessions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.answering import BETTER, LECTURE
from discreet.answering.adaptive import AdaptiveAnswers
from discreet.audit import attacks_on_sessions as attacks
from discreet.audit.attacks_on_sessions import (
    BITS,
    BOTH,
    DIFFERENT,
    LETTERS,
    NOT_A,
    NOT_B,
    RENTER,
    A,
    B,
    C,
    SessionAttack,
    asking,
    toy,
)
from discreet.audit.divergence import hockey_stick
from discreet.audit.laws import Setting, conversation_law, law, rows
from discreet.audit.programs import program_law, pure_finding
from discreet.data import Category, Domain, Number
from discreet.guarantee import Budget, Neighbours
from discreet.ledger import Ledger
from discreet.mechanisms import AboveThreshold, IsAbove, Laplace
from discreet.query import Equals, Sum
from discreet.release import converse, release
from discreet.rng import SeededRng
from tests import search
from tests.audit import mistakes
from tests.audit.evidence import renyi_finding, unexplained_step


def letters(word):
    return rows("v", *word)


def rows_of_bits(*words):
    return rows("ab", *words)


AAB, ABB = letters("aab"), letters("abb")
ENOUGH, LITTLE = Budget(40), Budget(45)
ADDED = Setting(BITS.domain, Neighbours("add-remove"))
FOUR, THREE = rows_of_bits("11", "11", "00", "00"), rows_of_bits("11", "00", "00")
CHANGED = rows_of_bits("11", "10", "00", "00")


def laws(honest, asked, first, second, setting=LETTERS, *, budget=ENOUGH, slip=None, reach=5, least=1e-4, size=None):
    program = asking(honest, asked, slip)
    how = {"budget": budget, "reach": reach, "least": least, "size": size}
    return [program_law(program, held, setting, **how) for held in (first, second)]


# The machinery.


def test_the_law_of_a_program_with_one_release_is_that_of_the_mechanism():
    def program(visit):
        visit.ask(lambda: release(Laplace(A, 1), visit.table, ledger=visit.ledger, rng=visit.rng).value)

    found = program_law(program, AAB, LETTERS, budget=ENOUGH, reach=12)
    expected = law(Laplace(A, 1), AAB, LETTERS, reach=12)
    assert {seen.noted[0]: mass for seen, mass in found.mass.items()} == pytest.approx(expected.mass)
    assert {seen.spent.pure for seen in found.mass} == {10**9}


def test_the_law_of_a_program_with_a_threshold_is_that_of_the_conversation():
    asks = [IsAbove(A, 1), IsAbove(B, 2)]

    def program(visit):
        talk = converse(AboveThreshold(1, 1), visit.table, ledger=visit.ledger, rng=visit.rng)
        for ask in asks:
            if visit.ask(talk.ask, ask):
                return

    found = program_law(program, AAB, LETTERS, budget=ENOUGH, reach=8)
    expected = conversation_law(AboveThreshold(1, 1), asks, AAB, LETTERS, reach=8)
    assert {seen.noted: mass for seen, mass in found.mass.items()} == pytest.approx(expected.mass)


@pytest.mark.parametrize(
    ("honest", "asked", "rows", "setting"),
    [
        pytest.param(toy(BETTER, size=3, updates=1), (B, A), AAB, LETTERS, id="pmw"),
        pytest.param(RENTER, (BOTH, DIFFERENT), FOUR, BITS, id="rent or buy", marks=pytest.mark.slow),
    ],
)
def test_paths_that_meet_give_the_same_law_as_paths_that_do_not(honest, asked, rows, setting):
    program = asking(honest, asked)
    met, apart = (
        program_law(program, rows, setting, budget=Budget(25), reach=1, merge=merge) for merge in (True, False)
    )
    assert met.mass == pytest.approx(apart.mass)


def test_a_refusal_is_seen_and_costs_nothing():
    def program(visit):
        for scale in (Fraction(1, 100), 1):
            visit.ask(
                lambda each=scale: release(Laplace(A, each), visit.table, ledger=visit.ledger, rng=visit.rng).value
            )

    found = program_law(program, AAB, LETTERS, budget=Budget(2), reach=3)
    assert {seen.noted[0] for seen in found.mass} == {"BudgetExceeded"}
    assert {seen.spent.pure for seen in found.mass} == {10**9}


def test_a_planted_release_has_its_value_in_both_worlds_and_is_not_in_the_claim():
    def program(visit):
        visit.plant(Laplace(A, 1), 7)

    p, q = (program_law(program, rows, LETTERS, budget=ENOUGH, reach=3) for rows in (AAB, ABB))
    assert p.mass == q.mass == {next(iter(p.mass)): 1.0}
    assert next(iter(p.mass)).spent.pure == 0


# Honest sessions: along every path P(seen) <= e^charged Q(seen).


@pytest.mark.parametrize(
    ("honest", "asked"),
    [(toy(BETTER, size=3), (B, A)), (toy(LECTURE, size=3), (A,)), (toy(BETTER, size=3, updates=0), (B, A, NOT_A))],
    ids=["pmw", "lecture", "thresholds"],
)
def test_no_outcome_of_a_program_tells_more_than_was_charged_in_it(honest, asked):
    p, q = laws(honest, asked, AAB, ABB, least=5e-4)
    found = pure_finding(p, q)
    assert not found.violates
    assert found.ratio > 0.35  # the attack is not far from what is promised
    assert unexplained_step([p, q]) == ()


@pytest.mark.parametrize(
    ("setting", "first", "second", "size"),
    [
        pytest.param(BITS, FOUR, CHANGED, None, id="replace-one"),
        pytest.param(ADDED, FOUR, THREE, 4, id="add-remove", marks=pytest.mark.slow),
    ],
)
def test_no_outcome_of_a_session_that_rents_and_buys_tells_more_than_was_charged_in_it(setting, first, second, size):
    p, q = laws(RENTER, (BOTH, DIFFERENT), first, second, setting, budget=LITTLE, size=size, least=3e-4)
    found = pure_finding(p, q)
    assert not found.violates
    assert found.ratio > 0.3
    assert unexplained_step([p, q]) == ()
    told = {word for seen in (*p.mass, *q.mass) for word in str(seen.noted).split("'")}
    assert {"hypothesis", "measurement"} <= told  # a threshold was opened, and said both


def test_with_gaussian_answers_the_divergence_is_within_the_books():
    budget = Budget(30, Fraction(1, 100))
    order = float(Ledger.in_memory(budget, LETTERS.table(AAB), testing=True).spent().order)
    p, q = laws(toy(BETTER, size=3, updates=1, kind="gaussian"), (A,), AAB, ABB, budget=budget, least=1e-6)
    found = renyi_finding(p, q, order)
    assert not found.violates
    assert found.ratio > 0.2
    assert max(hockey_stick(p, q, 30)[0], hockey_stick(q, p, 30)[0]) <= 0.01


def test_a_new_session_for_every_question_is_the_same_program():
    """The ledger is the state: nothing that the future depends on was in the session that is gone."""

    def asked(again):
        def program(visit):
            answers = RENTER.answers(visit)
            for question in (BOTH, DIFFERENT):
                visit.ask((again(visit) if again else answers).answer, question)

        return program_law(program, FOUR, BITS, budget=LITTLE, reach=3, least=1e-2).mass

    assert asked(lambda visit: AdaptiveAnswers(visit.table, visit.ledger, RENTER.terms, rng=visit.rng)) == asked(None)


@pytest.mark.slow
def test_a_person_with_two_rows_is_paid_for_in_a_session():
    setting = Setting(BITS.domain, Neighbours("add-remove", 2), unit="who")
    honest = replace(RENTER, past=(("a", (4, 4)), ("b", (4, 4))))
    shared = rows_of_bits("11", "11", "11", "00", "00")
    mine = tuple({**row, "who": -1} for row in rows_of_bits("11", "11"))
    p, q = laws(honest, (BOTH, DIFFERENT), shared, (*shared, *mine), setting, budget=Budget(30), size=6)
    assert 0.4 < pure_finding(p, q).ratio <= 1
    assert unexplained_step([p, q]) == ()


@pytest.mark.slow
def test_a_sum_in_a_session_tells_no_more_than_was_charged():
    domain = Domain(x=Number(-1, 2, step=1), b=Category(0, 1))
    honest = replace(RENTER, past=(("x", (1, 1, 1, 1)), ("b", (2, 2))))
    rows = [{"x": x, "b": b} for x, b in ((2, 1), (0, 0), (-1, 0), (2, 1), (-1, 1))]
    setting, asked = Setting(domain, Neighbours("replace-one")), (Sum("x", Equals("b", 1)),)
    p, q = laws(honest, asked, (*rows[:3], rows[3]), (*rows[:3], rows[4]), setting, budget=Budget(30), reach=8)
    assert 0.4 < pure_finding(p, q).ratio <= 1
    assert unexplained_step([p, q]) == ()


# Broken sessions.


@pytest.mark.slow  # `discreet audit` runs the same, and a quick test runs that
@pytest.mark.parametrize(
    "attack", attacks.session_attacks(), ids=lambda each: f"{type(each.honest).__name__}, {each.mistake.label}"
)
def test_every_planted_mistake_is_caught_where_the_honest_session_passes(attack):
    assert not attack.finding().violates
    assert attack.finding(attack.mistake).violates


def test_the_noise_of_a_question_may_not_be_used_for_its_answer():
    """Noise that is never negative, added to a count below its guess: the lowest values show who is not there."""
    honest = toy(BETTER, size=3, updates=1)
    attack = SessionAttack(
        honest, LETTERS, letters("bbc"), letters("abc"), mistakes.reused_noise, (A,), ENOUGH, least=1e-5
    )
    assert attack.finding(attack.mistake).violates


def test_a_guess_after_a_yes_without_budget_is_no_breach():
    """The yes is in the ledger for all to see, and paid: what the guess breaks is the promise about answers."""
    honest = toy(BETTER, size=3, updates=2)

    def program(visit):
        answers = honest.answers(visit)
        mistakes.guess_without_budget.plant(honest, answers)
        visit.plant(Laplace(C, Fraction(1, 33)), 1)  # of 40: what is left pays for a threshold and for no answer
        for question in (B, A):
            visit.ask(answers.answer, question)

    p, q = (program_law(program, rows, LETTERS, budget=ENOUGH, reach=5, least=1e-5) for rows in (AAB, ABB))
    assert {seen.spent.pure for seen in p.mass} == {6 * 10**9}
    assert 0.5 < pure_finding(p, q).ratio <= 1


def test_one_sided_noise_inside_the_distance_is_caught_and_two_sided_is_not_a_breach():
    """With Laplace noise on both sides the proof goes through: a yes is moved by 2 away from the guess, on either
    side. With noise that is never negative there is nothing to move on the lower side."""
    first, second = letters("b" * 9), letters("b" * 8 + "a")
    for method, caught in ((BETTER, True), (LECTURE, False)):
        honest = toy(method, size=9, theta=3, updates=0)
        attack = SessionAttack(
            honest, LETTERS, first, second, attacks.inside_distance, (A,), ENOUGH, reach=6, least=1e-5
        )
        assert attack.finding(attack.mistake).violates is caught


@pytest.mark.slow
def test_keeping_the_first_thresholds_noise_breaks_nothing_as_long_as_every_threshold_is_paid():
    """Known from the sparse vector technique: one threshold noise serves any number of yes, if each is paid."""
    honest = toy(BETTER, size=3, updates=1)
    attack = SessionAttack(honest, LETTERS, AAB, ABB, mistakes.kept_threshold, (A, B), ENOUGH)
    assert not attack.finding(attack.mistake).violates


def test_where_rows_decide_what_is_done_the_entries_show_it():
    more = rows_of_bits("11", "11", "11", "00")
    for slip in (None, attacks.peeks, attacks.true_update):
        found = laws(RENTER, (BOTH,), FOUR, more, BITS, budget=LITTLE, slip=slip, reach=2, least=1e-2)
        assert (unexplained_step(found) == ()) is (slip is None)


# Searches.


def ratio(honest, asked, pair, setting, *, persons, budget, least=1e-4, size=None):
    """How near the claim comes to being broken; -1 for tables that the program is not for."""
    if setting.neighbours.replace_one and len(pair.first) != persons:
        return -1.0
    p, q = laws(honest, asked, pair.first, pair.second, setting, budget=budget, least=least, size=size)
    found = pure_finding(p, q)
    assert not found.violates, (asked, pair)
    return found.ratio


@pytest.mark.slow
@pytest.mark.parametrize("method", [BETTER, LECTURE])
def test_no_search_over_tables_and_questions_beats_the_charges_of_a_program(method):
    rng, sets = SeededRng(1), (A, B, C, NOT_A, NOT_B)
    honest, asked, best = toy(method, size=3, updates=1), [B, A], 0.0
    pair = search.Pair(letters("ab"), letters("a"), letters("b"))
    for _ in range(6):
        tried = [sets[rng.integers(len(sets))] if rng.integers(2) else each for each in asked]
        scored = lambda each, now=tuple(tried): ratio(honest, now, each, LETTERS, persons=3, budget=ENOUGH)  # noqa: E731
        found = search.climb(scored, pair, LETTERS, steps=2, rng=rng, most=2)
        if found[1] >= best:
            (pair, best), asked = found, tried
    assert best > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "size"), [(BITS, None), (ADDED, 4)], ids=["replace-one", "add-remove"])
def test_no_search_over_tables_beats_the_charges_of_a_session_that_rents_and_buys(setting, size):
    rng, pair = SeededRng(4), search.Pair(FOUR[:3], FOUR[3:], CHANGED[1:2] if size is None else ())
    for past in ((("a", (2, 2)), ("b", (2, 2))), (("a", (0, 4)), ("b", (1, 3)))):
        for asked in ((BOTH, DIFFERENT), (DIFFERENT, BOTH)):
            honest = replace(RENTER, past=past)
            scored = lambda each, now=asked, who=honest: ratio(  # noqa: E731
                who, now, each, setting, persons=4, budget=LITTLE, size=size
            )
            assert search.climb(scored, pair, setting, steps=3, rng=rng, most=4)[1] > 0.1
