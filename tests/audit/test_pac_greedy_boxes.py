"""Exact laws of the box learners on neighbouring tables, and twins that must be caught."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import mutants
from discreet.audit.divergence import compare, loss
from discreet.audit.laws import Law, Setting, law
from discreet.audit.mutants import Mistake, Twin
from discreet.data import Category, Domain, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import Laplace
from discreet.pac import greedy_boxes
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.greedy_boxes import CountedFaces, FaceByFace, GreedyCost
from discreet.pac.rules import BoxRule, Labels, Mistakes
from discreet.rng import SeededRng
from tests.search import climb, start, universe

LABELS = Labels("y", "yes")
CLASSES = Category("no", "yes")
LINE = Domain(x=Number(0, 1, step=1), y=CLASSES)
LONGER = Domain(x=Number(0, 2, step=1), y=CLASSES)
PLANE = Domain(a=Number(0, 1, step=1), b=Number(0, 1, step=1), y=CLASSES)
KINDS = ["replace-one", "add-remove"]


@dataclass(frozen=True)
class Weighed:
    """CountedFaces after the counts said so: one weight, in eighths, and the price of the faces alone."""

    honest: CountedFaces
    eighths: int

    def guarantee(self, facts):
        face = Guarantee.of_bounded_range(self.honest.rate * facts.neighbours.rows, neighbours=facts.neighbours)
        return 2 * len(self.honest.columns) * face

    def run(self, data, rng):
        cost = GreedyCost(self.eighths, greedy_boxes.EIGHTHS)
        rate = self.honest.rate / cost.range(Neighbours(data.facts.neighbours.kind))
        return greedy_boxes.learn_faces(data, self.honest.columns, LABELS, lambda _: (cost, rate), rng)


@dataclass
class Laws:
    """The laws of a mechanism, each multiset of rows enumerated once."""

    mechanism: Any
    setting: Setting
    known: dict[Any, Law]

    def of(self, rows) -> Law:
        key = tuple(sorted(tuple(sorted(row.items())) for row in rows))
        if key not in self.known:
            self.known[key] = law(self.mechanism, rows, self.setting)
        return self.known[key]

    def price(self) -> Guarantee:
        return self.mechanism.guarantee(self.setting.facts(universe(self.setting.domain)[:1]))

    def ratio(self, first, second) -> float:
        return loss(self.of(first), self.of(second)) / float(self.price().pure)


def pairs(setting, size, copies):
    """Every pair of neighbouring tables that share fewer than `size` kinds of rows, each `copies` times.

    Many equal rows leave little to chance, so that one row's effect is seen in full.
    """
    rows = universe(setting.domain)
    for n in range(size):
        for shared in itertools.combinations_with_replacement(rows, n):
            shared = shared * copies
            if setting.neighbours.replace_one:
                for mine, other in itertools.combinations(rows, 2):
                    yield [*shared, mine], [*shared, other]
            else:
                for mine in rows:
                    yield [*shared, mine], list(shared)


def worst(mechanism, setting, size) -> float:
    """The largest loss over the price on all pairs of small tables, none of which may violate the guarantee."""
    laws = Laws(mechanism, setting, {})
    found, price = 0.0, laws.price()
    for first, second in pairs(setting, size, copies=20):
        assert not compare(laws.of(first), laws.of(second), price).violates
        found = max(found, laws.ratio(first, second))
    return found


HONEST = [
    (FaceByFace("x", LABELS, 1, Fraction(1, 2)), 0.999),
    (FaceByFace("x", LABELS, Fraction(5, 2), Fraction(4, 5)), 0.99),
    (Weighed(CountedFaces("x", LABELS, 1, Fraction(1, 2)), 16), 0.9),
    (AllBoxes("x", LABELS, 9, Fraction(3, 5)), 0.999),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("domain", [LINE, pytest.param(LONGER, marks=pytest.mark.slow)], ids=["two values", "three"])
@pytest.mark.parametrize(("mechanism", "near"), HONEST, ids=lambda each: type(each).__name__)
def test_no_pair_of_tables_beats_the_price_and_the_worst_attains_it(mechanism, near, domain, kind):
    assert near < worst(mechanism, Setting(domain, Neighbours(kind)), 2) <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        *((mechanism, LONGER) for mechanism, _ in HONEST),
        (AllBoxes("x", LABELS, 2, Fraction(3, 5)), LONGER),
        (AllBoxes(("a", "b"), LABELS, 2, Fraction(3, 5)), PLANE),
        (FaceByFace(("a", "b"), LABELS, 1, Fraction(1, 2)), PLANE),
        (FaceByFace(("a", "b"), LABELS, 3, Fraction(1, 2)), PLANE),
    ],
    ids=lambda each: type(each).__name__,
)
def test_climbing_finds_no_pair_that_beats_the_price(mechanism, domain, kind):
    setting = Setting(domain, Neighbours(kind))
    laws = Laws(mechanism, setting, {})
    price = laws.price()
    for seed in range(3):
        steps = 25 if len(domain) == 3 and isinstance(mechanism, FaceByFace) else 150
        found, ratio = climb(
            lambda pair: laws.ratio(pair.first, pair.second),
            start(setting, []),
            setting,
            steps=steps,
            rng=SeededRng(seed),
            most=7,
        )
        assert ratio <= 1 + 1e-9
        assert not compare(laws.of(found.first), laws.of(found.second), price).violates


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "mechanism", [FaceByFace("x", LABELS, 2, Fraction(1, 4)), AllBoxes("x", LABELS, 3, Fraction(1, 4))]
)
def test_a_person_of_two_rows_is_priced_as_such(mechanism, kind):
    setting = Setting(LINE, Neighbours(kind, 2), unit="who")
    one = mechanism.guarantee(Setting(LINE, Neighbours(kind)).facts([{"x": 0, "y": "no"}])).pure
    price = mechanism.guarantee(setting.facts([{"x": 0, "y": "no"}]))
    found = 0.0
    shared = [{"x": 1, "y": "no"}] * 12
    mine = [[{**row, "who": -1} for row in held] for held in itertools.combinations_with_replacement(universe(LINE), 2)]
    others = mine if setting.neighbours.replace_one else [[]]
    laws = {}
    for one_side, other_side in itertools.product(mine, others):
        both = []
        for held in (one_side, other_side):
            key = str(held)
            if key not in laws:
                laws[key] = law(mechanism, [*shared, *held], setting)
            both.append(laws[key])
        assert not compare(*both, price).violates
        found = max(found, loss(*both))
    assert found > float(one)  # so charging for one row would be wrong


@pytest.mark.parametrize("kind", KINDS)
def test_the_counts_and_the_faces_together_keep_their_price(kind):
    setting = Setting(LINE, Neighbours(kind))
    mechanism = CountedFaces("x", LABELS, Fraction(2, 5), 2)
    price = mechanism.guarantee(setting.facts([{"x": 0, "y": "no"}]))
    shared, mine = [{"x": 1, "y": "no"}], {"x": 0, "y": "yes"}
    other = [*shared, {"x": 1, "y": "no"}] if setting.neighbours.replace_one else shared
    laws = [law(mechanism, rows, setting, reach=4) for rows in ([*shared, mine], other)]
    assert max(each.missing for each in laws) < 1e-3
    assert not compare(*laws, price).violates
    assert loss(*laws) > 1


# --- twins ------------------------------------------------------------------------------------------------------------


def caught(honest: Any, mistake: Mistake, setting: Setting, ratio: float) -> bool:
    """Whether some pair refutes what the twin claims, with a loss of at least `ratio` times the claim."""
    twin = Laws(Twin(honest, mistake), setting, {})
    claim = twin.price()
    return any(
        twin.ratio(first, second) > ratio and compare(twin.of(first), twin.of(second), claim).violates
        for first, second in pairs(setting, 2, copies=8)
    )


REPLACE = Setting(LINE, Neighbours("replace-one"))
ADD = Setting(LINE, Neighbours("add-remove"))


@pytest.mark.parametrize(
    ("mechanism", "ratio"),
    [
        (FaceByFace("x", LABELS, 1, Fraction(1, 2)), 1.9),
        (FaceByFace("x", LABELS, 2, Fraction(1, 2)), 1.2),
        (AllBoxes("x", LABELS, 2, Fraction(1, 2)), 1.9),
    ],
)
def test_the_rate_of_add_remove_is_caught_under_replace_one(mechanism, ratio):
    assert caught(mechanism, mutants.add_remove_price, REPLACE, ratio)


def _order_by_rows(honest: FaceByFace, data: Any, rng: Any) -> Any:
    """Begins with the upper face if there are more positives than negatives, else with the lower one."""
    negatives, positives = greedy_boxes.class_counts(data, honest.labels).tolist()
    return _ordered(honest, data, rng, upper=positives > negatives)


def _ordered(honest: FaceByFace, data: Any, rng: Any, *, upper: bool) -> Any:
    cost, low, high = GreedyCost.of(honest.weight), 0, 1
    box = greedy_boxes.CurrentBox(honest.columns, (0,), (1,), (2,))
    tally = greedy_boxes.tally_values(data, box, 0, honest.labels)
    for side in (upper, not upper):
        low, high = greedy_boxes.move_face(tally, low, high, side, cost, honest.rate / cost.positive, rng)
        if low > high:
            return greedy_boxes.empty_box(1)
    return np.array([low]), np.array([high])


def _twice(honest: FaceByFace, data: Any, rng: Any) -> Any:
    """Goes along the faces again: the box that both passes leave."""
    (low, high), (lower, higher) = honest.run(data, rng), honest.run(data, rng)
    low, high = np.maximum(low, lower), np.minimum(high, higher)
    return (low, high) if (low <= high).all() else greedy_boxes.empty_box(len(low))


def _at_rows_only(honest: FaceByFace, data: Any, rng: Any) -> Any:
    """Of positions that cost the same, only the one at a row's own value."""
    cost = GreedyCost.of(honest.weight)
    tally = greedy_boxes.tally_values(data, greedy_boxes.CurrentBox(honest.columns, (0,), (1,), (2,)), 0, honest.labels)
    if not len(tally.values):
        return greedy_boxes.empty_box(1)
    cut = np.concatenate([[0], tally.positives.cumsum()])
    kept = tally.negatives.sum() - np.concatenate([[0], tally.negatives.cumsum()])
    place = rng.select(-(cost.positive * cut + cost.negative * kept), honest.rate / cost.positive)
    return np.array([[*tally.values.tolist(), 2][place]]), np.array([1])


def _weight_by_rows(honest: CountedFaces, data: Any, rng: Any) -> Any:
    """A light weight where positives are at least as many as negatives, a heavy one elsewhere: by exact counts."""
    negatives, positives = greedy_boxes.class_counts(data, honest.labels).tolist()
    return Weighed(honest, 16 if positives >= negatives else 512).run(data, rng)


def _faces_alone(honest: CountedFaces, facts: Any) -> Guarantee:
    return Weighed(honest, 16).guarantee(facts)


ORDER = Mistake("begins with the face that the rows suggest", run=_order_by_rows)
TWICE = Mistake("goes along the faces twice for the price of once", run=_twice)
AT_ROWS = Mistake("puts a face at a row's own value among positions of equal cost", run=_at_rows_only)
WEIGHT = Mistake("takes the weight from exact counts", price=_faces_alone, run=_weight_by_rows)


@pytest.mark.parametrize("setting", [REPLACE, ADD], ids=KINDS)
@pytest.mark.parametrize(
    ("mistake", "rate", "ratio"),
    [(ORDER, Fraction(1, 20), 2.0), (TWICE, Fraction(1, 2), 1.9), (AT_ROWS, Fraction(1, 2), 10.0)],
)
def test_a_step_that_is_not_paid_for_is_caught(mistake: Mistake, rate: Fraction, ratio: float, setting: Setting):
    assert caught(FaceByFace("x", LABELS, 1, rate), mistake, setting, ratio)


@pytest.mark.parametrize("setting", [REPLACE, ADD], ids=KINDS)
def test_weights_from_exact_counts_are_caught(setting):
    honest = CountedFaces("x", LABELS, 1, Fraction(1, 2))
    shared = [{"x": 1, "y": "no"}] * 16 + [{"x": 0, "y": "yes"}] * 15
    mine, other = [{"x": 1, "y": "yes"}], [{"x": 0, "y": "no"}] if setting.neighbours.replace_one else []
    twin = Laws(Twin(honest, WEIGHT), setting, {})
    laws = [twin.of([*shared, *held]) for held in (mine, other)]
    assert compare(*laws, twin.price()).violates
    assert loss(*laws) > 1.3 * float(twin.price().pure)
    fair = Laws(Weighed(honest, 16), setting, {})
    assert not compare(*(fair.of([*shared, *held]) for held in (mine, other)), fair.price()).violates


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_with_half_of_its_noise_is_caught(kind):
    setting = Setting(LINE, Neighbours(kind))
    honest = Laplace(Mistakes(BoxRule(("x",), (0,), (0,)), LABELS), 2)
    price = honest.guarantee(setting.facts([{"x": 0, "y": "no"}]))
    mine: Callable[[str], list[dict[str, Any]]] = lambda label: [{"x": 0, "y": label}]  # noqa: E731
    other = mine("yes") if setting.neighbours.replace_one else []
    for mechanism, violates in ((honest, False), (Twin(honest, mutants.halved_noise), True)):
        laws = [law(mechanism, rows, setting, reach=60) for rows in (mine("no"), other)]
        assert compare(*laws, price).violates is violates
