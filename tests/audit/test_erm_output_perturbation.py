"""Attacks on output perturbation: exact laws where one person moves the minimiser as far as it can be moved.

Huber losses far from their bend are lines: every person pulls with the whole weight, so the theorem is attained, and a
price that is too low is seen at once. Twins: the price of add-remove under replace-one, a tolerance that is not paid,
and a fixed point where no certificate was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.audit.divergence import compare, loss
from discreet.audit.laws import law
from discreet.audit.mutants import Mistake, Twin, add_remove_price
from discreet.audit.sampled import epsilon_lower_bound
from discreet.erm import output_perturbation
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.losses import Huber, Logistic
from discreet.erm.output_perturbation import OutputPerturbation
from discreet.erm.risk import Ridge, Risk
from discreet.mechanisms import GaussianNoise, LaplaceNoise, ProductLaplaceNoise
from discreet.rng import SeededRng

DOMAIN = dp.Domain(value=dp.Number(-1, 1, step=2))
RISK = Risk(Huber("1/8"), Constant(), "value", interval(-8, 8))
STEP = Fraction(1, 16)
# Two people, lambda = 1, G = 1/4: a replacement moves the minimiser by 1/4, four steps; the noise has that scale.
SCALE = Fraction(1, 4)
TOLERANCE = Fraction(1, 16)


@dataclass(frozen=True)
class Two:
    """Made-up people whose declared number is two."""

    relation: str = "replace-one"

    def table(self, rows):
        return dp.Table({"value": [row["value"] for row in rows]}, DOMAIN, neighbours=self.relation, size=2)


def people(*values):
    return [{"value": value} for value in values]


def perturbed(noise=ProductLaplaceNoise, tolerance="1/1000", ridge=1, scale=SCALE, risk=RISK):
    return OutputPerturbation(risk, ridge, tolerance, STEP, noise(scale))


PAIRS = {
    "replace-one": (people(1, -1), people(-1, -1)),
    "add-remove": (people(1), people()),
}


def found(mechanism, relation="replace-one", reach=50):
    setting = Two(relation)
    first, second = PAIRS[relation]
    p, q = (law(mechanism, rows, setting, reach=reach) for rows in (first, second))
    return p, q, compare(p, q, mechanism.guarantee(setting.table(first).facts))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", [ProductLaplaceNoise, LaplaceNoise, GaussianNoise])
def test_the_worst_neighbours_keep_the_guarantee(noise, relation):
    assert not found(perturbed(noise), relation)[2].violates


def test_the_attack_is_as_strong_as_the_theorem():
    p, q, _ = found(perturbed())
    claimed = float(perturbed().guarantee(Two().table(PAIRS["replace-one"][0]).facts).pure)
    assert loss(p, q) == pytest.approx(1, rel=1e-3)  # four steps, noise of scale four
    assert claimed == pytest.approx((4 + 2 * 16 / 1000 + 1) / 4, abs=1 / 4)  # and what tolerance and rounding cost


def at(solution, honest, data, rng):
    """What is released of this solution."""
    noise = honest.noise.draw((1,), unit=honest.step, rng=rng)
    noisy = np.rint(solution / float(honest.step)).astype(np.int64) + noise
    return honest.risk.feasible.project(noisy * float(honest.step))


def solved(honest, data, tolerance=1e-9):
    return output_perturbation._solved(
        output_perturbation._Known(honest.risk, honest.ridge, data.facts), data, tolerance
    )


def _as_far_as_allowed(honest, data, rng):
    """A solver that keeps its tolerance, and no more: it errs away from the middle of the two solutions."""
    solution = solved(honest, data)
    return at(solution + float(honest.tolerance) * np.sign(solution + 1 / 8), honest, data, rng)


def _without_tolerance(honest, facts):
    return perturbed(tolerance="1e-6").guarantee(facts)


SLOPPY = Mistake("uses all of its tolerance", run=_as_far_as_allowed)
UNPAID = Mistake("uses all of its tolerance and does not pay for it", run=_as_far_as_allowed, price=_without_tolerance)


def test_a_solver_that_uses_all_of_its_tolerance_keeps_the_guarantee():
    p, q, worst = found(Twin(perturbed(tolerance=TOLERANCE), SLOPPY))
    assert not worst.violates
    assert loss(p, q) == pytest.approx((4 + 2) / 4, rel=1e-2)  # and needs it


def test_a_tolerance_that_is_not_paid_is_caught():
    assert found(Twin(perturbed(tolerance=TOLERANCE), UNPAID))[2].violates


@pytest.mark.parametrize("noise", [ProductLaplaceNoise, GaussianNoise])
def test_the_price_of_add_remove_under_replace_one_is_caught(noise):
    worst = found(Twin(perturbed(noise), add_remove_price))[2]
    if noise is ProductLaplaceNoise:
        assert worst.violates
    else:  # the slack of converting Renyi divergences hides a factor two at few epsilons; the order 1.25 sees it
        p, q, _ = found(perturbed(noise))
        claimed = Twin(perturbed(noise), add_remove_price).guarantee(Two().table(PAIRS["replace-one"][0]).facts)
        honest = perturbed(noise).guarantee(Two().table(PAIRS["replace-one"][0]).facts)
        assert claimed.at(1.25) < kullback_leibler(p, q) <= honest.at(1.25)


def kullback_leibler(p, q):
    """A lower bound, for what was cut off is left out; any order above 1 is at least this."""
    return sum(mass * np.log(mass / q.mass[outcome]) for outcome, mass in p.mass.items() if outcome in q.mass)


def _fixed_point(honest, data, rng):
    """One step; if it certifies nothing, noise around a fixed point of the set."""
    known = output_perturbation._Known(honest.risk, honest.ridge, data.facts)
    rows, start = output_perturbation._FineRows(known, data), honest.risk.feasible.centre(1)
    end = start - rows.gradient(start) / rows.smoothness
    certified = np.abs(end - start).max() <= float(honest.tolerance) / 2 * float(known.strength) / rows.smoothness
    return at(end if certified else np.array([2.0]), honest, data, rng)


def test_a_fixed_point_where_no_certificate_was_found_is_caught():
    """The certificate holds for one of two neighbours only; no tolerance pays for that."""
    twin = Twin(perturbed(tolerance=TOLERANCE), Mistake("releases a fixed point uncertified", run=_fixed_point))
    assert found(twin)[2].violates


def test_an_uncertified_solution_does_not_change_the_price_of_ours(monkeypatch):
    """With no fast solver at all the descent reaches the tolerance: the same law."""
    whole = found(perturbed())[0]
    monkeypatch.setattr(output_perturbation, "_FAST", 0)
    assert found(perturbed())[0].mass.keys() == whole.mass.keys()
    assert not found(perturbed())[2].violates


def test_several_rows_a_person_are_priced_as_a_whole():
    def table(values):
        ids = [0, 0, 1, 1][: len(values)]
        return dp.Table({"value": values, "id": ids}, DOMAIN, unit="id", rows_per_unit=2, size=2)

    mechanism = perturbed()

    class Persons:
        def table(self, rows):
            return table([row["value"] for row in rows])

    p, q = (law(mechanism, rows, Persons(), reach=50) for rows in (people(1, 1, -1, -1), people(-1, -1, -1, -1)))
    claimed = mechanism.guarantee(table([1, 1, -1, -1]).facts)
    assert not compare(p, q, claimed).violates
    assert loss(p, q) == pytest.approx(2, rel=1e-2)  # both rows moved it
    one_row = perturbed().guarantee(Two().table(people(1, -1)).facts)
    assert float(one_row.pure) < loss(p, q)  # the price of one row would not have covered it


def canaries(mechanism, relation, *, present, runs=4000):
    """The coordinate along a canary row in many releases."""
    others = [[0.3, 0.2], [-0.2, 0.4], [0.1, -0.1]]
    features, labels = [*others, [1.0, 0.0]], [0, 1, 1, 1]
    if not present:
        features, labels = (features, [0, 1, 1, 0]) if relation == "replace-one" else (others, labels[:3])
    data = dp.Matrix(
        features, labels, features=dp.Vector(2, norm=1), target=dp.Category(0, 1), neighbours=relation, size=4
    )
    rng = SeededRng(3 + present)
    return data.facts, [float(mechanism.run(data, rng)[0]) for _ in range(runs)]


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_canary_row_of_a_classifier_is_not_seen_better_than_promised(relation):
    """A loss capped at a tenth is a line for all margins below ln 9: this canary pulls with its full weight."""
    risk = Risk(Logistic("1/10"), VectorColumn(intercept=False), "y", Ball(20), Ridge("1/50"))
    mechanism = OutputPerturbation(risk, 0, "1/100", "1/1000", ProductLaplaceNoise("1.2"))
    facts, first = canaries(mechanism, relation, present=True)
    _, second = canaries(mechanism, relation, present=False)
    claimed = mechanism.guarantee(facts).epsilon(0)
    lower = epsilon_lower_bound(first, second)
    assert lower <= claimed
    if relation == "replace-one":  # and so well that half of the price is refuted, though two coordinates are paid for
        assert lower > add_remove_price.price(mechanism, facts).epsilon(0)
