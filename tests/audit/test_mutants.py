"""Broken twins say so, run on a testing ledger, and are refused by a real one; the shipped attack passes."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.audit import attack, attacks, mutants
from discreet.audit.mutants import Mistake, Twin
from tests.audit import mistakes

TABLE = dp.Table({"v": ["a", "b", "b"]}, dp.Domain(v=dp.Category("a", "b")), name="made up")
TWIN = Twin(dp.Laplace(dp.Count(dp.Equals("v", "a")), 10), mutants.halved_noise)
TALKING = Twin(dp.mechanisms.AboveThreshold(10, 10), mutants.never_stops)
ASK = dp.mechanisms.IsAbove(dp.Count(dp.Equals("v", "a")), -1000)


def test_a_real_ledger_refuses_a_broken_twin_and_nothing_is_spent():
    ledger = dp.Ledger.in_memory(dp.Budget(5), TABLE)
    with pytest.raises(dp.errors.NotPrivate, match="broken"):
        dp.release(TWIN, TABLE, ledger=ledger)
    with pytest.raises(dp.errors.NotPrivate, match="broken"):
        dp.converse(TALKING, TABLE, ledger=ledger)
    assert ledger.spent().pure == 0


def test_a_testing_ledger_runs_it_and_says_not_private():
    ledger = dp.Ledger.in_memory(dp.Budget(5), TABLE, testing=True)
    got = dp.release(TWIN, TABLE, ledger=ledger, rng=dp.rng.SeededRng(1))
    assert got.testing
    assert "NOT PRIVATE" in str(got)
    assert "NOT PRIVATE" in repr(ledger)
    with dp.converse(TALKING, TABLE, ledger=ledger, rng=dp.rng.SeededRng(1)) as talk:
        assert [talk.ask(ASK) for _ in range(3)] == [True, True, True]  # a sound one stops at the first
    assert all("NOT PRIVATE" in line for line in ledger.export())
    assert '"mutant/1"' in "".join(ledger.export(redact=False))


def test_the_attack_that_users_run_passes_and_would_not_if_a_mechanism_were_broken():
    named = ("Laplace", "Gaussian", "Exponential", "AboveThreshold")  # all of them: tests/contract, tests/e2e
    results = [result for name in named for result in attack(only=name)]
    assert all(result.passed for result in results)
    assert {result.name for result in results} == set(named)
    broken = attacks()[0]
    assert broken.finding(broken.mistake).violates
    harmless = Mistake("changes nothing")
    assert not broken.finding(harmless).violates


def test_every_mistake_has_its_own_words():
    planted = [*vars(mutants).values(), *vars(mistakes).values()]
    labels = [value.label for value in planted if isinstance(value, Mistake)]
    assert len(labels) == len(set(labels)) >= 16
