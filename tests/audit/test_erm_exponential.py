"""Exact laws of the exponential mechanism's samplers on neighbouring tables, and twins that must be caught.

A sampler tries until an attempt succeeds, so its law is that of one attempt given that it succeeds; one attempt of its
own code is enumerated over every draw.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit import mutants
from discreet.audit.divergence import compare, loss
from discreet.audit.laws import Law, Setting, law
from discreet.audit.mutants import Mistake, Twin
from discreet.data import Category, Domain, Number
from discreet.erm.exponential.grid import CustomLoss, GridExponential, problem_of
from discreet.erm.exponential.line import LineExponential
from discreet.erm.exponential.samplers import CellWeights
from discreet.erm.feasible_sets import Ball, Box
from discreet.erm.features import Constant, Declared
from discreet.erm.losses import Absolute, Hinge, Huber, Pinball, Squared
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import RankQuantile

LEVELS = 4
NUMBERS = Domain(x=Number(0, LEVELS, step=1))
BOTH = [Setting(NUMBERS, Neighbours(kind)) for kind in ("replace-one", "add-remove")]


@dataclass(frozen=True)
class OneAttempt:
    """A mechanism that makes one attempt only, and releases None if it fails."""

    honest: Any

    def guarantee(self, facts):
        return self.honest.guarantee(facts)

    def run(self, data, rng):
        return self.sampler(data).attempt(rng)

    def sampler(self, data):
        if not isinstance(self.honest, GridExponential):
            return self.honest.sampler(data)
        problem = problem_of(self.honest.risk, self.honest.points, data.facts)
        return problem.sampler(data, self.honest.rate * problem.unit)


def given_success(found: Law) -> Law:
    """The law of what is released in the end; what enumeration cuts off are jumps beyond the grid, which all fail."""
    mass = {outcome: p for outcome, p in found.mass.items() if outcome is not None}
    total = math.fsum(mass.values())
    return Law({outcome: p / total for outcome, p in mass.items()}, 1e-12)


def released(mechanism, rows, setting, reach=LEVELS + 1) -> Law:
    return given_success(law(OneAttempt(mechanism), rows, setting, reach=reach))


def people(values):
    return [{"x": value} for value in values]


def pairs(setting, size):
    """Every pair of neighbouring tables of at most `size` rows, up to order."""
    for n in range(size):
        for shared in itertools.combinations_with_replacement(range(LEVELS + 1), n):
            for mine in range(LEVELS + 1):
                if setting.neighbours.replace_one:
                    for other in range(mine):
                        yield people((*shared, mine)), people((*shared, other))
                else:
                    yield people((*shared, mine)), people(shared)


def on_line(loss_, low=0, high=LEVELS, regularizer=None, rate=Fraction(1, 4)):
    return LineExponential(Risk(loss_, Constant(), "x", Box(low, high), regularizer), rate)


LINES = [
    on_line(Absolute()),
    on_line(Pinball("0.8"), 1, 4),
    on_line(Squared(), 1, 3, rate=Fraction(1, 20)),
    on_line(Huber("1.5"), rate=Fraction(1, 10)),
    RankQuantile("x", "1/2", "0.6"),
    RankQuantile("x", "4/5", "0.5"),
]


@pytest.mark.parametrize("setting", BOTH, ids=["replace", "add"])
@pytest.mark.parametrize("mechanism", LINES)
def test_no_pair_of_small_tables_beats_the_price_and_the_worst_comes_near(mechanism, setting):
    worst, laws = 0.0, {}

    def of(rows):
        key = tuple(sorted(row["x"] for row in rows))
        if key not in laws:
            laws[key] = released(mechanism, rows, setting)
        return laws[key]

    price = mechanism.guarantee(setting.facts(people([0]))).pure
    for first, second in pairs(setting, 3):
        found = loss(of(first), of(second))
        assert found <= float(price) * (1 + 1e-9)
        worst = max(worst, found / float(price))
    assert worst > 0.5


@pytest.mark.parametrize("regularizer", [None, Ridge("0.3"), Lasso("0.5")])
def test_the_exact_law_of_a_line_is_the_stated_one(regularizer):
    rows = people([0, 1, 1, 4])
    found = released(on_line(Absolute(), regularizer=regularizer, rate=Fraction(1, 3)), rows, BOTH[0])
    extra = (lambda w: 0.0) if regularizer is None else (lambda w: 4 * 0.3 / 2 * w * w)
    if isinstance(regularizer, Lasso):
        extra = lambda w: 4 * 0.5 * w  # noqa: E731
    weights = [math.exp(-(sum(abs(w - row["x"]) for row in rows) + extra(w)) / 3) for w in range(LEVELS + 1)]
    for w, weight in enumerate(weights):
        assert found.mass[w] == pytest.approx(weight / sum(weights), rel=1e-9)


def test_at_least_half_of_the_attempts_on_a_line_succeed():
    for mechanism in LINES:
        for values in ([], [0, 0, 0], [0, 4, 4, 4, 4], [2] * 9):
            found = law(OneAttempt(mechanism), people(values), BOTH[1], reach=3)
            assert found.mass.get(None, 0.0) <= 0.5


# --- grids ------------------------------------------------------------------------------------------------------------

PLANE = Domain(a=Number(0, 1, step=1), b=Number(0, 1, step=1), y=Number(-1, 1, step=1), c=Category("no", "yes"))
PLANES = [Setting(PLANE, Neighbours(kind)) for kind in ("replace-one", "add-remove")]


def in_plane(loss_, feasible, points=2, rate=Fraction(1, 4), regularizer=None):
    target = "c" if loss_.form == "margin" else "y"
    return GridExponential(Risk(loss_, Declared(("a", "b"), 2, False), target, feasible, regularizer), points, rate)


def corner(a, b, y):
    return {"a": a, "b": b, "y": y, "c": "yes" if y > 0 else "no"}


FAR = (corner(1, 1, 1), corner(1, 1, -1)), (corner(0, 0, 1), corner(0, 0, -1))


@pytest.mark.parametrize(
    ("mechanism", "reach"),
    [
        (in_plane(Squared(), Ball(1), 3, Fraction(1, 20)), 3),
        (in_plane(Squared(), Box(-1, 1), 2, Fraction(1, 20), Lasso("0.1")), 2),
        (in_plane(Hinge(), Box(-1, 1), 2, regularizer=Ridge("0.2")), 2),
        (in_plane(Absolute(), Ball(1), 3, Fraction(1, 3)), 3),
    ],
)
def test_the_exact_law_of_a_grid_is_the_stated_one_and_keeps_its_price(mechanism, reach):
    shared = [corner(0, 1, 1)]
    for setting in PLANES[:1] if mechanism.risk.regularizer else PLANES:  # ridge and lasso need a public size
        for mine, other in FAR:
            first = [*shared, mine]
            second = [*shared, other] if setting.neighbours.replace_one else shared
            laws = []
            for rows in (first, second):
                found = released(mechanism, rows, setting, reach)
                table = setting.table(rows)
                sampler = OneAttempt(mechanism).sampler(table)
                heights = [float(value) for value, _ in sampler.oracle(list(found.mass))]
                weights = [math.exp(-float(sampler.rate) * (height - min(heights))) for height in heights]
                for (_, p), weight in zip(found.mass.items(), weights, strict=True):
                    assert p == pytest.approx(weight / math.fsum(weights), rel=1e-9)
                laws.append(found)
            price = mechanism.guarantee(setting.facts(first))
            assert loss(*laws) <= float(price.pure) * (1 + 1e-9)


def test_a_users_loss_keeps_its_price_whatever_it_returns():
    def wild(points, row):
        return [1e9, -1e9, math.nan, row["x"] / 4][: len(points)] if row["x"] % 2 else 1 / (row["x"] - 2)

    mechanism = GridExponential(CustomLoss(wild, 1, "wild", Box(0, 1)), 4, "1/2")
    for setting in BOTH:
        price = mechanism.guarantee(setting.facts(people([0])))
        worst = 0.0
        for first, second in pairs(setting, 2):
            laws = [law(mechanism, rows, setting) for rows in (first, second)]
            assert not compare(*laws, price).violates
            worst = max(worst, loss(*laws))
        assert worst > 0.3 * float(price.pure)


# --- twins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [on_line(Absolute()), RankQuantile("x", "1/2", "0.5"), on_line(Squared())])
def test_the_rate_of_add_remove_is_caught_under_replace_one(mechanism):
    twin = Twin(mechanism, mutants.add_remove_price)
    price = twin.guarantee(BOTH[0].facts(people([0])))
    assert any(
        compare(*(released(twin.honest, rows, BOTH[0]) for rows in pair), price).violates for pair in pairs(BOTH[0], 4)
    )


def _radius_price(honest: GridExponential, facts) -> Guarantee:
    """Delta = G R: the slope times the radius of the ball, as if that were how far apart two of its points are."""
    slope, norm = 1, honest.risk.features.norm
    return Guarantee.of_bounded_range(
        honest.rate * slope * honest.risk.feasible.radius * norm, neighbours=facts.neighbours
    )


RADIUS = Mistake("charges a ball by its radius instead of its diameter", price=_radius_price)


def test_charging_a_ball_by_its_radius_is_caught():
    setting = Setting(Domain(a=Number(0, 1, step=1), y=Number(-4, 4, step=1)), Neighbours("add-remove"))
    honest = GridExponential(Risk(Absolute(), Declared(("a",), 1, False), "y", Ball(1)), 9, 1)
    twin = Twin(honest, RADIUS)
    shared, mine = [{"a": 1, "y": -4}] * 12, {"a": 1, "y": 4}  # at one end of the ball, and pulling to the other
    laws = [released(honest, rows, setting, reach=9) for rows in ([*shared, mine], shared)]
    assert not compare(*laws, honest.guarantee(setting.facts(shared))).violates
    assert compare(*laws, twin.guarantee(setting.facts(shared))).violates
    assert loss(*laws) > 1.6 * float(twin.guarantee(setting.facts(shared)).pure)


def _gives_up(honest, data, rng):
    """One attempt, then the best point: a limit on the number of attempts."""
    sampler = honest.sampler(data)
    found = sampler.attempt(rng)
    return sampler.segments[0][0] if found is None else found


def _all_of_a_segment(honest, data, rng):
    """Every proposal is kept: segments are as likely as their near ends, which is not their mass."""
    sampler = honest.sampler(data)
    place = rng.select([-base for base in sampler.bases], sampler.rate, [length for *_, length in sampler.segments])
    near, direction, length = sampler.segments[place]
    return near + direction * rng.integers(length)


GIVES_UP = Mistake("gives up after one attempt and returns the best point", run=_gives_up)
KEEPS_ALL = Mistake("keeps every proposal", run=_all_of_a_segment)


def test_a_limit_on_the_attempts_breaks_the_price():
    mechanism = RankQuantile("x", "1/2", Fraction(1, 10))
    price = mechanism.guarantee(BOTH[0].facts(people([0])))
    twin = Twin(mechanism, GIVES_UP)
    worst = 0.0
    for pair in pairs(BOTH[0], 4):
        worst = max(worst, loss(*(law(twin, rows, BOTH[0], reach=LEVELS + 1) for rows in pair)) / float(price.pure))
    assert worst > 1.05


@pytest.mark.parametrize("mistake", [GIVES_UP, KEEPS_ALL], ids=lambda mistake: mistake.label)
def test_a_sampler_that_skips_its_correction_has_another_law(mistake):
    mechanism, rows = on_line(Absolute(), rate=Fraction(1, 3)), people([0, 0, 1])
    honest = released(mechanism, rows, BOTH[0])
    bent = law(Twin(mechanism, mistake), rows, BOTH[0], reach=LEVELS + 1)
    assert sum(abs(p - bent.mass[w]) for w, p in honest.mass.items()) > 0.01


def _weighed_by_size(honest, data, rng):
    """A cell as likely as its number of points at the lowest height, not as what its plane counts for."""
    sampler = OneAttempt(honest).sampler(data)
    offer = CellWeights(sampler.cells)
    offer.counts = [math.prod(count for _, count in cell.sides) for cell in sampler.cells]
    sampler._weights = offer
    return sampler.attempt(rng)


def test_the_wrong_mass_of_cells_is_another_law():
    setting = Setting(Domain(a=Number(0, 1, step=1), y=Number(-4, 4, step=1)), Neighbours("replace-one"))
    mechanism = GridExponential(Risk(Squared(), Declared(("a",), 1, False), "y", Box(-1, 1)), 17, 4)
    rows = [{"a": 1, "y": y} for y in (1, -1, 0)]
    honest = released(mechanism, rows, setting, reach=17)
    bent = given_success(law(Twin(mechanism, Mistake("cells by size", run=_weighed_by_size)), rows, setting, reach=17))
    assert sum(abs(p - bent.mass[w]) for w, p in honest.mass.items()) > 0.2
