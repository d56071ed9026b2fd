"""Reconstruction [DN03] through the public interface, with the whole budget: who has the secret bit?

Every person has a number that everybody knows and a bit that nobody should. The bits are fair coins, so a guesser who
sees nothing is right about half of them, and by (epsilon, delta)-privacy under replace-one nobody is right about a
person with probability above (e^epsilon + delta) / (1 + e^epsilon). The number of right guesses is then at most
binomial with that probability, up to terms of order delta. What the noise of these releases leaves is far below: an
honest run that fails here has probability below 1e-6.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms import calibrate
from discreet.query import Among, And, Count, Equals, Histogram
from discreet.rng import Rng, SeededRng

EPSILON, DELTA = 1, 1e-6
PERSONS = 160
AT_MOST = (math.e**EPSILON + DELTA) / (1 + math.e**EPSILON)


class Silent(Rng):
    """The twin's randomness: all noise is 0. Only a testing ledger takes it."""

    private = False

    def gaussian(self, variance, size=None):
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    def laplace(self, scale, size=None):
        return self.gaussian(scale, size)

    def geometric(self, scale, size=None):
        return self.gaussian(scale, size)


def secrets(seed):
    return SeededRng(seed).integers(2, size=PERSONS)


def people(bits):
    domain = dp.Domain(id=dp.Number(0, PERSONS - 1, step=1), bit=dp.Category(0, 1))
    return dp.Table({"id": list(range(PERSONS)), "bit": bits.tolist()}, domain, name="people")


def ledger_for(table):
    return dp.Ledger.in_memory(dp.Budget(EPSILON, DELTA), table, testing=True)


def some_with_the_bit(chosen):
    return Count(And(Among("id", np.flatnonzero(chosen).tolist()), Equals("bit", 1)))


def spent_whole(ledger):
    left = ledger.remaining()
    return left.renyi < left.caps.renyi / 100


def solved(chosen, answers):
    """Least squares; above a half, or above the median where there are too few answers for a solution."""
    found = np.linalg.lstsq(np.asarray(chosen, dtype=float), np.asarray(answers, dtype=float), rcond=None)[0]
    return found > (0.5 if len(answers) >= PERSONS else np.median(found))


def by_releases(bits, rng, *, seed):
    """Many random subset sums, each with as much noise as lets all of them fit."""
    table = people(bits)
    ledger, asked = ledger_for(table), PERSONS + 40
    each = ledger.funds().share(Fraction(1, asked))
    scale = calibrate(lambda noise: dp.Gaussian(Count(), noise), funds=each, facts=table.facts).scale
    chosen = SeededRng(seed).integers(2, size=(asked, PERSONS))
    answers = [
        dp.release(dp.Gaussian(some_with_the_bit(each), scale), table, ledger=ledger, rng=rng).value for each in chosen
    ]
    assert spent_whole(ledger)
    return solved(chosen, answers)


def by_a_session(bits, rng, *, seed):
    """One scope is declared, so the whole ledger goes into the marginal over all numbers and bits; what is stored of it
    anybody may read, and random subset sums are free after that."""
    table = people(bits)
    ledger = ledger_for(table)
    session = dp.Session(table, ledger, scopes=1, max_price=1, rng=rng)
    chosen = SeededRng(seed).integers(2, size=(5, PERSONS))
    sources = [session.ask(some_with_the_bit(each)).source for each in chosen]
    assert sources == ["direct"] + ["hypothesis"] * 4
    assert spent_whole(ledger)
    return stored_marginal(ledger) @ [-1, 1] > 0


def stored_marginal(ledger):
    """What the ledger's entries say was released."""
    from discreet.answering.transcript import Transcript

    transcript = Transcript(ledger, ledger.facts, manner="")
    transcript.catch_up()
    (only,) = transcript.measured
    assert only.query == Histogram(("id", "bit"))
    return only.value


@pytest.mark.parametrize("attack", [by_releases, by_a_session])
def test_the_whole_budget_does_not_buy_the_secret_bits(attack):
    bits = secrets(7)
    right = int((attack(bits, SeededRng(11), seed=3) == bits).sum())
    assert right <= AT_MOST * PERSONS


@pytest.mark.parametrize("attack", [by_releases, by_a_session])
def test_the_same_attack_finds_nearly_every_bit_if_the_noise_is_left_out(attack):
    bits = secrets(8)
    right = int((attack(bits, Silent(), seed=4) == bits).sum())
    assert right >= 0.97 * PERSONS


def test_a_session_that_is_asked_until_it_refuses_tells_no_more():
    """Small subsets, so that nothing is known without asking: rented counts, until the ledger is empty."""
    bits, table = secrets(9), people(secrets(9))
    ledger = ledger_for(table)
    session = dp.Session(table, ledger, alpha=0.4, max_price=1, rng=SeededRng(5))
    chosen, answers = [], []
    for each in SeededRng(6).integers(2, size=(60, PERSONS)):
        try:
            answers.append(session.ask(some_with_the_bit(each)).value)
        except dp.BudgetExceeded:
            break
        chosen.append(each)
    assert len(answers) > 3
    assert int((solved(chosen, answers) == bits).sum()) <= AT_MOST * PERSONS
