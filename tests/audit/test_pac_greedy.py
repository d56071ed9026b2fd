"""Exact laws of the greedy learners on neighbouring tables: everything that is drawn, not only what is released.

Two boolean columns make four literals and "none". Every transcript of up to five draws is enumerated by running the
mechanism's own code, under both relations, for persons of one and of two rows, and the worst pair of tables is looked
for by climbing. What the hazard lemma claims is compared at every epsilon, not only at the one that is charged.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import mutants
from discreet.audit.divergence import EPSILONS, _one_way, compare, hockey_stick, loss
from discreet.audit.laws import Law, Row, Setting, _Remembering, law
from discreet.audit.mutants import Mistake, Twin
from discreet.data import Category, Domain
from discreet.guarantee import Neighbours
from discreet.pac import greedy as greedy_module
from discreet.pac import hazard_lemma
from discreet.pac.greedy import Falsified, GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.rules import Labels, Literals
from discreet.rng import SeededRng
from tests.search import Pair, climb, start

TOY = Domain(a=Category(0, 1), b=Category(0, 1), y=Category("-", "+"))
LITERALS, LABELS = Literals(("a", "b")), Labels("y", "+")
ADD, REPLACE = (Setting(TOY, Neighbours(kind)) for kind in ("add-remove", "replace-one"))
PERSONS = [Setting(TOY, Neighbours(kind, 2), unit="who") for kind in ("add-remove", "replace-one")]
BOTH = [ADD, REPLACE]
NAMES = ["add", "replace"]
FAILURE = Fraction(1, 1000)


@dataclass
class Whole:
    """A mechanism that releases its whole transcript, and asks its table for each sum once."""

    honest: Any
    seen: list[Any] = field(default_factory=list)

    def guarantee(self, facts):
        return self.honest.guarantee(facts)

    def run(self, data, rng):
        if not self.seen or self.seen[0] is not data:
            self.seen = [data, _Remembering(data)]
        drawn = self.honest.transcript if hasattr(self.honest, "transcript") else self.honest.run
        return drawn(self.seen[1], rng)


def row(text: str) -> dict[str, Any]:
    """Three letters: two bits and a sign."""
    return {"a": int(text[0]), "b": int(text[1]), "y": text[2]}


def rows(*texts: str) -> list[dict[str, Any]]:
    return [row(text) for text in texts]


def laws(mechanism, pair: Pair, setting: Setting, reach: int = 6) -> tuple[Law, Law]:
    first, second = (law(Whole(mechanism), each, setting, reach=reach) for each in (pair.first, pair.second))
    return first, second


Steps = tuple[int, int, int]


def steps(gone: Sequence[Row], come: Sequence[Row]) -> Steps:
    """Pairs, single steps up and steps down of the change from one person's rows to others."""
    fewer, more = sum(each["y"] == "+" for each in gone), sum(each["y"] == "-" for each in come)
    return min(fewer, more), abs(fewer - more), len(gone) - fewer + len(come) - more


@functools.cache
def claimed(rate: Fraction, chain: Steps) -> tuple[tuple[float, float], ...]:
    """What the hazard lemma claims for a chain at several epsilons, where that is not vanishingly small."""
    pairs, singles, downs = chain
    points = ((e, hazard_lemma.chain_delta(rate, e, pairs=pairs, singles=singles, downs=downs)) for e in EPSILONS)
    return tuple((epsilon, delta) for epsilon, delta in points if delta > 1e-7)


def one_way(p: Law, q: Law, rate: Fraction, chain: Steps) -> float:
    """The largest found / claimed; the pure claim where there are only steps down."""
    if chain[:2] == (0, 0):
        return _one_way(p, q) / float(max(1, chain[2]) * rate)
    return max(hockey_stick(p, q, epsilon)[0] / delta for epsilon, delta in claimed(rate, chain))


def hazard_ratio(mechanism: Any, pair: Pair, setting: Setting, rate: Fraction) -> float:
    """The larger of both directions; above 1 the hazard lemma is refuted."""
    p, q = laws(mechanism, pair, setting)
    there, back = steps(pair.mine, pair.other), steps(pair.other, pair.mine)
    return max(one_way(p, q, rate, there), one_way(q, p, rate, back))


# --- twins of the self-deleting greedy --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bent:
    """The self-deleting process again, with a place for each mistake.

    old     for which lines of the counts (0 negative, 1 positive rows) nothing is put aside
    scores  what is drawn from, given the counts and the threshold of the round, in units of 1/parts
    rounds  the thresholds, given all rows
    """

    honest: SelfDeleting
    old: tuple[int, ...] = ()
    scores: Callable[[SelfDeleting, Any, int], Any] = SelfDeleting.scores
    parts: int = 1
    rounds: Callable[[SelfDeleting, int], Sequence[int]] = lambda honest, _: honest.thresholds

    def run(self, data, rng):
        chosen, drawn = (), []
        whole = data.exact_sum(Falsified(LITERALS, LABELS, ()))
        for threshold in self.rounds(self.honest, int(whole[:, -1].sum())):
            for _ in range(self.honest.repeats):
                left = data.exact_sum(Falsified(LITERALS, LABELS, chosen))
                counts = np.array([(whole if line in self.old else left)[line] for line in (0, 1)])
                found = rng.select(self.scores(self.honest, counts, threshold), self.honest.rate / self.parts)
                drawn.append(None if found == LITERALS.size(TOY) else found)
                if drawn[-1] is not None:
                    chosen = tuple(dict.fromkeys((*chosen, found)))
                    break
        return tuple(drawn)


def _mistake(label: str, **bend: Any) -> Mistake:
    return Mistake(label, run=lambda honest, data, rng: Bent(honest, **bend).run(data, rng))


def _null_by_rows(honest, counts, threshold):
    """The more negative rows are left, the more "none" weighs."""
    return np.append(honest.scores(counts, threshold)[:-1], counts[0, -1] - honest.null)


def _half_of_the_negatives(honest, counts, threshold):
    """The lecture's threshold, a share of the negative rows left (here half), in half rows; the schedule is used for
    "none"."""
    negative, positive = counts[:, :-1]
    return np.append(np.minimum(2 * negative - counts[0, -1], -2 * positive), -2 * threshold)


def _additive(honest, counts, threshold):
    negative, positive = counts[:, :-1]
    return np.append(negative - positive - threshold, -honest.null)


HONEST = _mistake("makes none")
POSITIVES_STAY = _mistake("does not put positive rows aside", old=(1,))
NEGATIVES_STAY = _mistake("does not put negative rows aside", old=(0,))
NULL_BY_ROWS = _mistake('weighs "none" by the rows', scores=_null_by_rows)
SHARE_OF_NEGATIVES = _mistake("compares with a share of the rows left", scores=_half_of_the_negatives, parts=2)
ADDITIVE = _mistake("adds up both counts instead of taking the minimum", scores=_additive)
ROUNDS_BY_ROWS = _mistake(
    "has as many rounds as the private number of rows asks for",
    rounds=lambda honest, n: honest.thresholds[: 1 + n // 2],
)


SCHEDULES = [  # thresholds, repeats, null, rate
    ((1, 0, 1), 1, -1, Fraction(1)),
    ((-2, 2, -1), 1, 0, Fraction(3, 10)),
    ((2, -3), 2, 1, Fraction(2)),
    ((0, 3, -1, 1), 1, -2, Fraction(1, 2)),
]


def self_deleting(thresholds, repeats, null, rate, most=None):
    return SelfDeleting(LITERALS, LABELS, thresholds, repeats, null, rate, FAILURE, most)


def attacked(setting: Setting, schedule: int, moves: int) -> float:
    """The worst ratio that climbing finds; the stated price is compared on every pair on the way."""
    mechanism = self_deleting(*SCHEDULES[schedule])
    begin = start(setting, rows("01+", "10-")[: schedule % 3])
    price = mechanism.guarantee(setting.facts(begin.first))

    def score(pair: Pair) -> float:
        assert not compare(*laws(mechanism, pair, setting), price).violates
        return hazard_ratio(mechanism, pair, setting, mechanism.rate)

    return climb(score, begin, setting, steps=moves, rng=SeededRng(schedule), most=3)[1]


@pytest.mark.parametrize("setting", [*BOTH, *PERSONS], ids=lambda setting: str(setting.neighbours))
def test_no_pair_of_small_tables_beats_the_hazard_lemma(setting):
    found = attacked(setting, 0, 5)
    assert 0.4 < found <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("schedule", range(len(SCHEDULES)))
@pytest.mark.parametrize("setting", [*BOTH, *PERSONS], ids=lambda setting: str(setting.neighbours))
def test_a_longer_search_does_not_either(setting, schedule):
    found = attacked(setting, schedule, 40)
    assert 0.3 < found <= 1 + 1e-9


def test_the_pure_direction_is_attained():
    mechanism = self_deleting((9,), 1, -40, Fraction(1, 2))
    pair = Pair((), (row("01-"),), ())
    assert hazard_ratio(mechanism, pair, ADD, mechanism.rate) == pytest.approx(1, abs=1e-3)


def test_stopping_after_so_many_conditions_is_priced_too():
    mechanism = self_deleting((1, 0, 1), 1, -1, Fraction(1), most=1)
    pair = Pair((row("10+"),), (row("01-"),), ())
    p, q = laws(mechanism, pair, ADD)
    assert 0.3 < hazard_ratio(mechanism, pair, ADD, mechanism.rate) <= 1 + 1e-9
    assert {sum(drawn is not None for drawn in transcript) for transcript in (*p.mass, *q.mass)} == {0, 1}


def test_the_twins_without_a_mistake_have_the_honest_law():
    mechanism, table = self_deleting((2, -1), 2, 1, Fraction(1, 2)), rows("01+", "10-", "11-")
    honest, bent = (law(Whole(each), table, ADD) for each in (mechanism, Twin(mechanism, HONEST)))
    assert honest.mass == pytest.approx(bent.mass, abs=1e-12)


@pytest.mark.parametrize(
    ("mistake", "schedule", "pair", "setting", "least"),
    [
        (POSITIVES_STAY, ((-9,) * 4, 1, -3, 1), Pair((), (row("01+"),), ()), ADD, 3.5),
        (NEGATIVES_STAY, ((9,) * 4, 1, 0, "3/10"), Pair((), (row("01-"),), ()), ADD, 3.2),
        (NULL_BY_ROWS, ((-2, 2, -1), 1, 1, "3/10"), Pair((), (row("01-"),), ()), ADD, 1.9),
        (SHARE_OF_NEGATIVES, ((0, 2, 0, -2, 0), 1, 0, "3/10"), Pair((row("01+"),), (row("01-"),), ()), ADD, 1.05),
        (ADDITIVE, ((-2, 2, -1), 1, 0, "3/10"), Pair((row("01+"),), (row("01-"),), (row("01+"),)), REPLACE, 1.2),
        (ROUNDS_BY_ROWS, ((0, 0, 0), 1, 0, "3/10"), Pair((row("01+"),), (row("01-"),), ()), ADD, 1e4),
    ],
    ids=lambda each: each.label if isinstance(each, Mistake) else "",
)
def test_a_broken_twin_is_caught(mistake, schedule, pair, setting, least):
    honest = self_deleting(*schedule[:3], Fraction(schedule[3]))
    assert hazard_ratio(Twin(honest, mistake), pair, setting, honest.rate) > least
    if len(honest.thresholds) < 5:  # five draws of the honest one are left to the others
        assert hazard_ratio(honest, pair, setting, honest.rate) <= 1 + 1e-9


def test_one_rows_claim_for_a_person_of_two_is_caught():
    mechanism = self_deleting((6,), 1, -6, Fraction(1))
    pair = Pair((), tuple({**row("01-"), "who": -1} for _ in range(2)), ())
    p, q = laws(mechanism, pair, PERSONS[0])
    assert one_way(p, q, mechanism.rate, (0, 0, 1)) > 1.9
    assert one_way(p, q, mechanism.rate, (0, 0, 2)) <= 1 + 1e-9


# --- each round paid for ----------------------------------------------------------------------------------------------


def greedy(rounds=2, rate=Fraction(1, 2), k=2):
    return GreedySelection(LITERALS, LABELS, k, rounds, rate)


def weighed(rounds=2, rate=Fraction(1, 2), scale=Fraction(1, 2)):
    return WeighedGreedy(LITERALS, LABELS, rounds, rate, scale)


@pytest.mark.parametrize("setting", [*BOTH, *PERSONS], ids=lambda setting: str(setting.neighbours))
@pytest.mark.parametrize("k", [1, 3])
def test_no_pair_of_small_tables_beats_the_price_of_greedy_selection(setting, k):
    mechanism = greedy(k=k)
    price = mechanism.guarantee(setting.facts(rows("01+")))

    def score(pair: Pair) -> float:
        p, q = laws(mechanism, pair, setting)
        assert not compare(p, q, price).violates
        return loss(p, q) / float(price.pure)

    found = climb(score, start(setting, rows("01+", "10-")), setting, steps=25, rng=SeededRng(k), most=4)[1]
    assert 0.2 < found <= 1 + 1e-9


@pytest.mark.parametrize("setting", BOTH, ids=NAMES)
def test_one_rounds_losses_span_no_more_than_its_range(setting):
    mechanism = greedy(rounds=1, rate=Fraction(1))
    price = float(mechanism.guarantee(setting.facts(rows("01+"))).pure)

    def score(pair: Pair) -> float:
        p, q = laws(mechanism, pair, setting)
        losses = [math.log(p.mass[each] / q.mass[each]) for each in p.mass]
        return (max(losses) - min(losses)) / price

    found = climb(score, start(setting, rows("01+")), setting, steps=60, rng=SeededRng(3), most=4)[1]
    assert 0.9 < found <= 1 + 1e-9


def _replaced(mechanism, steps_=60):
    """Losses of replace-one pairs that climbing finds, and the worst pair."""
    return climb(
        lambda pair: loss(*laws(mechanism, pair, REPLACE)),
        start(REPLACE, rows("01+")),
        REPLACE,
        steps=steps_,
        rng=SeededRng(3),
        most=4,
    )


def test_the_rate_of_add_remove_is_caught_under_replace_one():
    twin = Twin(greedy(rounds=1, rate=Fraction(1)), mutants.add_remove_price)
    pair, found = _replaced(twin.honest)
    price = twin.guarantee(REPLACE.facts(pair.first))
    assert found > 1.2 * float(price.pure)
    assert compare(*laws(twin.honest, pair, REPLACE), price).violates


def test_rounds_by_the_private_number_of_rows_are_caught():
    def counted(honest, data, rng):
        rows_left = data.exact_sum(Falsified(LITERALS, LABELS, ()))[:, -1].sum()
        return greedy(rounds=1 + int(rows_left) // 2).transcript(data, rng)

    twin = Twin(greedy(), Mistake("counts its rounds from the rows", run=counted))
    p, q = (law(twin, rows(*texts), ADD) for texts in (("01+", "10-"), ("01+",)))
    assert compare(p, q, twin.guarantee(ADD.facts(rows("01+")))).violates


@pytest.mark.parametrize("setting", BOTH, ids=NAMES)
def test_no_pair_beats_the_price_of_weighed_greedy(setting):
    mechanism = weighed(rounds=1)
    price = mechanism.guarantee(setting.facts(rows("01+")))

    def score(pair: Pair) -> float:
        p, q = laws(mechanism, pair, setting, reach=4)
        assert not compare(p, q, price).violates
        return loss(p, q) / float(price.pure)

    found = climb(score, start(setting, rows("01+", "10-")), setting, steps=8, rng=SeededRng(1), most=4)[1]
    assert 0.5 < found <= 1 + 1e-9


def _weighed(honest: WeighedGreedy, data, rng, *, exact_counts: bool = False, divided: bool = True):
    """One round of weighed greedy, again."""
    counts = data.exact_sum(Falsified(LITERALS, LABELS, ()))
    noisy = counts[:, -1] + (0 if exact_counts else rng.laplace(honest.scale, 2))
    weight = 3
    scores = np.append(counts[0, :-1] - weight * counts[1, :-1], 0)
    return tuple(noisy.tolist()), rng.select(scores, honest.rate / (weight if divided else 1))


@pytest.mark.parametrize(
    ("bend", "caught"),
    [({}, False), ({"exact_counts": True}, True), ({"divided": False}, True)],
    ids=["none", "counts exactly", "does not divide by the weight"],
)
def test_broken_twins_of_weighed_greedy_are_caught(bend, caught):
    mistake = Mistake("bent", run=lambda honest, data, rng: _weighed(honest, data, rng, **bend))
    twin = Twin(weighed(rounds=1, rate=Fraction(1), scale=Fraction(1, 2)), mistake)
    price = twin.guarantee(ADD.facts(rows("01+")))
    pairs = [(rows(*shared, mine), rows(*shared)) for shared in ((), ("10+",)) for mine in ("01+",)]
    found = [compare(*(law(twin, each, ADD, reach=5) for each in pair), price).violates for pair in pairs]
    assert any(found) is caught


def test_every_schedule_of_two_draws_keeps_the_lemma_on_every_pair_of_two_rows():
    texts = ["".join(each) for each in itertools.product("01", "01", "+-")]
    worst = 0.0
    for thresholds, null in (((1, 1), 0), ((-1, 2), -1), ((0, -2), 1)):
        mechanism = self_deleting(thresholds, 1, null, Fraction(7, 10))
        for shared, mine in itertools.product(texts[:4], texts):
            pair = Pair((row(shared),), (row(mine),), ())
            worst = max(worst, hazard_ratio(mechanism, pair, ADD, mechanism.rate))
    assert 0.5 < worst <= 1 + 1e-9


class _WithoutCounts:
    """The rounds of weighed greedy alone: the noisy counts are drawn as zeros, and the weights do not look at them."""

    def __init__(self, honest: WeighedGreedy) -> None:
        self.honest = honest

    def run(self, data, rng):
        class Quiet:
            def laplace(self, scale, size):
                return np.zeros(size, dtype=np.int64)

            select = rng.select

        return self.honest.transcript(data, Quiet())[1]


@pytest.mark.parametrize("setting", BOTH, ids=NAMES)
def test_the_rounds_of_weighed_greedy_cost_what_they_are_priced_for_whatever_the_weights(setting, monkeypatch):
    monkeypatch.setattr(greedy_module, "falling_weights", lambda negative, positive, rounds: (3, 1)[:rounds])
    mechanism = weighed(rounds=2, rate=Fraction(1))
    price = float(2 * mechanism.rate * (2 if setting.neighbours.replace_one else 1))
    worst = 0.0
    for shared in itertools.product(("00+", "01-", "11+"), repeat=2):
        for mine, other in (("01+", "10+"), ("01+", "10-"), ("01-", "10-"), ("11+", "00-")):
            pair = (rows(*shared, mine), rows(*shared, other) if setting.neighbours.replace_one else rows(*shared))
            worst = max(worst, loss(*(law(_WithoutCounts(mechanism), each, setting) for each in pair)))
    assert 0.4 * price < worst <= price * (1 + 1e-9)
