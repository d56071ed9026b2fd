"""Exact laws of the interior point routines on all small lists of values, and twins that must be caught.

What is compared are whole transcripts (how many digits, which prefix, which end), of which the released point is a
function. The three steps are enumerated apart, by the routines' own code, and multiplied; that this is the law of the
mechanism itself is a test of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import mutants
from discreet.audit.divergence import EPSILONS, compare, hockey_stick, loss
from discreet.audit.laws import Law, Setting, _branches, collect, law
from discreet.audit.mutants import Mistake, Twin
from discreet.data import Domain, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import GaussianNoise, LaplaceNoise, stable
from discreet.pac.interior import (
    NOWHERE,
    BinarySearch,
    Ending,
    InteriorPoint,
    MinRank,
    PairPrefix,
    PrefixSearch,
    code_bits,
    digits_apart,
    moved,
)
from discreet.pac.rules import sorted_column
from discreet.rng import SeededRng
from tests.search import climb, start

REPLACE, ADD = Neighbours("replace-one"), Neighbours("add-remove")
BOTH = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
REACH = 40


# --- laws -------------------------------------------------------------------------------------------------------------


def enumerated(run, reach=REACH) -> Law:
    return collect(_branches(run, reach))


def point_law(routine, values, size, reach=REACH) -> Law:
    held = np.array(values, dtype=np.int64)
    return enumerated(lambda rng: routine.point(held, size, rng), reach)


@functools.cache
def fullest_law(ending: Ending, apart: tuple[int, ...], count: int, dropped: int) -> Law:
    return enumerated(lambda rng: ending.fullest(np.array(apart, dtype=np.int64), count, dropped, rng))


@functools.cache
def side_law(ending: Ending, margin: int) -> Law:
    return enumerated(lambda rng: ending.side(margin, rng))


def first_step(routine, values, size) -> Law:
    held = np.array(values, dtype=np.int64)
    if isinstance(routine, PairPrefix):
        reach = 12 if isinstance(routine.inner, PairPrefix) else REACH  # 18 scales
        return enumerated(lambda rng: routine.shared(held, size, rng), reach)
    return enumerated(lambda rng: routine.shared(held, size, rng))


def transcript_law(routine, values, size, only=None) -> Law:
    """The law of (digits, prefix, end), step by step; with `only`, after another number of digits just that number."""
    values = tuple(sorted(values))
    held = np.array(values, dtype=np.int64)
    bits, apart = code_bits(size), digits_apart(held[:-1], held[1:])
    outcomes = []
    for shared, p in first_step(routine, values, size).mass.items():
        if only not in (None, shared):
            outcomes.append((shared, p))
            continue
        dropped = bits - min(shared + 1, bits)
        counts = tuple(np.where(apart > dropped, dropped + 1, 0).tolist())  # what decides, for the cache
        for found, q in fullest_law(routine.ending, counts, len(values), dropped).mass.items():
            if found is None or dropped == 0:
                prefix = None if found is None else values[found[0]]
                outcomes.append(((shared, prefix, None), p * q))
                continue
            begin, end = found
            for right, r in side_law(routine.ending, len(values) - end - begin).mass.items():
                outcomes.append(((shared, values[begin] >> dropped, right), p * q * r))
    return collect(outcomes)


def lists(size, most):
    for count in range(most + 1):
        yield from itertools.combinations_with_replacement(range(size), count)


def pairs(neighbours, size, most):
    """Every pair of neighbouring lists of at most `most` values, a person having at most neighbours.rows of them."""
    held = [each for each in lists(size, neighbours.rows) if each]
    for shared in lists(size, most - 1):
        for mine in held:
            if len(shared) + len(mine) > most:
                continue
            others = itertools.takewhile(lambda other, mine=mine: other != mine, held)
            for other in others if neighbours.replace_one else [()]:
                if len(shared) + len(other) <= most:
                    yield tuple(sorted(shared + mine)), tuple(sorted(shared + other))


@dataclass(frozen=True)
class Worst:
    """The worst of many comparisons: found / claimed, the largest loss, and the widest range of losses of a pair."""

    ratio: float
    loss: float
    range: float


def spread(p: Law, q: Law) -> float:
    losses = [math.log(mass / q.mass[outcome]) for outcome, mass in p.mass.items() if q.mass.get(outcome, 0.0) > 0]
    return max(losses) - min(losses) if losses else 0.0


def worst(law_of, guarantee: Guarantee, listed) -> Worst:
    """Compare laws pair by pair; a ratio above 1 is a violation, small deltas apart."""
    epsilons = [*EPSILONS, *([] if guarantee.pure is None else [float(guarantee.pure)])]
    claimed = [(each, guarantee.delta(each)) for each in epsilons]
    remembered = functools.cache(law_of)
    ratio, largest, widest = 0.0, 0.0, 0.0
    for first, second in listed:
        p, q = remembered(first), remembered(second)
        largest, widest = max(largest, loss(p, q)), max(widest, spread(p, q))
        for epsilon, promised in claimed:
            found = max(hockey_stick(p, q, epsilon)[0], hockey_stick(q, p, epsilon)[0])
            ratio = max(ratio, found / promised if found > 1e-9 else 0.0)
    return Worst(ratio, largest, widest)


# --- no pair of small lists beats the price ---------------------------------------------------------------------------

PURE = [MinRank("0.5"), MinRank("1.3"), BinarySearch(LaplaceNoise("1.5"))]


@BOTH
@pytest.mark.parametrize("routine", PURE, ids=["ranks", "ranks, steep", "search"])
@pytest.mark.parametrize("rows", [1, 2])
def test_the_pure_routines_keep_their_price_on_all_lists_and_attain_it(routine, neighbours, rows):
    relation = Neighbours(neighbours.kind, rows)
    price = routine.guarantee(relation, 4)
    most, reach = (3, 9) if isinstance(routine, BinarySearch) else (3 + rows, REACH)
    found = worst(lambda values: point_law(routine, values, 4, reach), price, pairs(relation, 4, most))
    assert found.ratio <= 1 + 1e-9
    assert found.loss <= float(price.pure) * (1 + 1e-9)
    if isinstance(routine, MinRank):
        assert 0.999 * float(price.pure) < found.range <= float(price.pure) * (1 + 1e-9)
    else:
        assert found.loss > 0.7 * float(price.pure)


@BOTH
def test_a_search_with_gaussian_noise_keeps_its_price(neighbours):
    routine = BinarySearch(GaussianNoise(1))
    price = routine.guarantee(neighbours, 4)
    found = worst(lambda values: point_law(routine, values, 4, 8), price, pairs(neighbours, 4, 2))
    assert 0.1 < found.ratio <= 1 + 1e-9


def test_a_domain_that_is_no_power_of_two_keeps_its_price():
    for routine in PURE[:2]:
        price = routine.guarantee(ADD, 5)
        found = worst(lambda values, routine=routine: point_law(routine, values, 5), price, pairs(ADD, 5, 3))
        assert 0.999 * float(price.pure) < found.range <= float(price.pure) * (1 + 1e-9)
    search = PrefixSearch("0.3", 2, 2, 3, 4, 2)
    price = search.guarantee(ADD, 5)
    assert worst(lambda values: transcript_law(search, values, 5), price, pairs(ADD, 5, 3)).ratio <= 1 + 1e-9


def prefix(first, second, third, bound, heavy, light):
    """The pure epsilons of the steps under add-remove, one row a person."""
    return PrefixSearch(first, 1 / Fraction(second), bound, 1 / Fraction(third), heavy, light)


PREFIXES = [prefix("0.5", "0.7", "0.4", 2, 4, 2), prefix("1", "1", "1", 3, 2, 1), prefix("0.2", "1.5", "0.8", 1, 8, 3)]
PAIRED = [
    PairPrefix(MinRank("0.4"), 0, 0, Fraction(10, 7), 2, Fraction(5, 2)),
    PairPrefix(MinRank("1"), 1, 1, 1, 3, 1),
    PairPrefix(MinRank("0.5"), 0, 1, 2, 2, 2),
]


@BOTH
@pytest.mark.parametrize("routine", PREFIXES)
def test_prefix_search_keeps_its_price_on_all_lists(routine, neighbours):
    for size, most in ((4, 3), (8, 2)):
        price = routine.guarantee(neighbours, size)
        found = worst(functools.partial(_transcript, routine, size), price, pairs(neighbours, size, most))
        assert (0.3 if neighbours.replace_one else 0.9) < found.ratio <= 1 + 1e-9


@BOTH
@pytest.mark.parametrize("routine", PAIRED[:2])
def test_pair_prefix_keeps_its_price_on_all_lists(routine, neighbours):
    price = routine.guarantee(neighbours, 4)
    found = worst(functools.partial(_transcript, routine, 4), price, pairs(neighbours, 4, 4))
    assert found.ratio <= 1 + 1e-9
    assert found.ratio > (0.3 if neighbours.replace_one else 0.9)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("routine", [*PREFIXES, *PAIRED])
def test_the_prefix_routines_keep_their_price_on_more_lists(routine, neighbours):
    for size, most in ((4, 5), (8, 4)):
        price = routine.guarantee(neighbours, size)
        assert worst(functools.partial(_transcript, routine, size), price, pairs(neighbours, size, most)).ratio <= 1


@pytest.mark.slow
@BOTH
def test_a_pair_prefix_inside_a_pair_prefix_keeps_its_price(neighbours):
    inner = PairPrefix(MinRank("0.4"), 0, 0, Fraction(10, 7), 1, Fraction(2, 3))
    routine = PairPrefix(inner, 0, 0, Fraction(10, 7), 2, Fraction(5, 2))
    price = routine.guarantee(neighbours, 4)
    found = worst(functools.partial(_transcript, routine, 4), price, pairs(neighbours, 4, 4))
    assert 0.3 < found.ratio <= 1 + 1e-9


def _point(routine, size, values):
    return point_law(routine, values, size)


def _transcript(routine, size, values):
    return transcript_law(routine, values, size)


@pytest.mark.parametrize("routine", [PREFIXES[0], PAIRED[0]])
@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_two_rows_a_person_keep_the_price_of_two_rows(routine, kind):
    relation = Neighbours(kind, 2)
    price = routine.guarantee(relation, 4)
    found = worst(functools.partial(_transcript, routine, 4), price, pairs(relation, 4, 3))
    assert found.ratio <= 1 + 1e-9
    assert found.ratio > (0.3 if relation.replace_one else 0.99)


# --- the mechanism itself ---------------------------------------------------------------------------------------------

QUARTERS = Domain(x=Number(0, 3, step=1))


def people(values):
    return [{"x": value} for value in values]


@pytest.mark.parametrize("routine", [PREFIXES[0], PREFIXES[2], PAIRED[0]])
@pytest.mark.parametrize("values", [(), (2,), (0, 3)])
def test_the_steps_multiply_to_the_law_of_the_mechanism(routine, values):
    apart = transcript_law(routine, values, 4)
    pushed: dict[int, float] = {}
    for (shared, found, right), p in apart.mass.items():
        dropped = 2 - min(shared + 1, 2)
        end = NOWHERE if found is None else ((found + 1) << dropped) - 1 if right else found << dropped
        pushed[end] = pushed.get(end, 0.0) + p
    whole = law(InteriorPoint("x", routine), people(values), Setting(QUARTERS, ADD), reach=12)
    assert whole.mass.keys() == pushed.keys()
    for point, p in pushed.items():
        assert whole.mass[point] == pytest.approx(p, abs=2 * whole.missing + 1e-12)


@BOTH
@pytest.mark.parametrize("routine", [MinRank("0.6"), PREFIXES[0], PAIRED[0]], ids=["ranks", "prefix", "pairs"])
def test_no_climb_finds_a_pair_of_tables_that_beats_the_price(routine, neighbours):
    setting = Setting(Domain(x=Number(0, 7, step=1)), neighbours)
    price = InteriorPoint("x", routine).guarantee(setting.facts(people([0])))
    claimed = price.delta(float(price.pure))

    @functools.cache
    def of(values):
        return point_law(routine, values, 8) if isinstance(routine, MinRank) else transcript_law(routine, values, 8)

    def excess(pair):
        p, q = (of(tuple(sorted(int(row["x"]) for row in rows))) for rows in (pair.first, pair.second))
        return max(hockey_stick(p, q, float(price.pure))[0], hockey_stick(q, p, float(price.pure))[0]) - claimed

    _, found = climb(excess, start(setting, people([0, 3])), setting, steps=40, rng=SeededRng(5), most=4)
    assert found <= 1e-9


# --- twins ------------------------------------------------------------------------------------------------------------


def on(routine):
    return InteriorPoint("x", routine)


def caught(twin, setting, first, second, reach=REACH):
    """found / claimed of a twin on two tables."""
    laws = [law(twin, rows, setting, reach=reach) for rows in (first, second)]
    honest = compare(*laws, twin.honest.guarantee(setting.facts(first)))
    return compare(*laws, twin.guarantee(setting.facts(first))), honest


def test_ranks_priced_for_add_remove_are_caught_under_replace_one():
    setting = Setting(QUARTERS, REPLACE)
    twin = Twin(on(MinRank("0.5")), mutants.add_remove_price)
    claimed = float(twin.guarantee(setting.facts(people([0]))).pure)
    laws = functools.partial(_point, twin.honest.routine, 4)
    found = worst(laws, twin.honest.guarantee(setting.facts(people([0]))), pairs(REPLACE, 4, 4))
    assert found.loss > 1.4 * claimed
    assert found.range == pytest.approx(2 * claimed, rel=1e-6)


def test_the_first_step_priced_for_add_remove_is_caught_under_replace_one():
    routine = prefix("0.5", "0.7", "0.4", 2, 1, 1)
    claimed = 0.5 * moved(ADD).range
    found = worst(
        lambda values: first_step(routine, values, 8),
        Guarantee.of_bounded_range(1, neighbours=REPLACE),
        pairs(REPLACE, 8, 3),
    )
    assert found.loss > 1.2 * claimed
    assert found.range == pytest.approx(2 * claimed, rel=1e-6)


class Lenient(Ending):
    """Shows bins with count + noise >= bound."""

    def fullest(self, apart: Any, count: int, dropped: int, rng: Any) -> Any:
        return _fullest(self, apart, count, dropped, rng, passing=lambda noisy: noisy >= self.bound)


def _fullest(ending, apart, count, dropped, rng, *, passing, order=lambda starts: range(len(starts))):
    starts = [0, *(np.flatnonzero(apart > dropped) + 1).tolist()] if count else []
    stops = [*starts[1:], count]
    bins = [(starts[i], stops[i]) for i in order(starts)]
    noisy = [stop - start + rng.truncated_laplace(ending.scale, ending.bound) for start, stop in bins]
    passed = [(n, place) for place, n in enumerate(noisy) if passing(n)]
    return bins[max(passed, key=lambda each: (each[0], -each[1]))[1]] if passed else None


def _with_ending(kind):
    def run(honest, data, rng):
        routine, values = honest.routine, sorted_column(data, honest.column)
        apart = digits_apart(values[:-1], values[1:])
        ending = kind(routine.scale, routine.bound, routine.side_scale)
        size = data.facts.domain.column(honest.column).size
        return ending.transcript(values, apart, routine.shared(values, size, rng), size, rng).point

    return run


LENIENT = Mistake("passes prefixes with count + noise >= bound", run=_with_ending(Lenient))


def test_passing_at_the_bound_is_caught():
    setting = Setting(QUARTERS, ADD)
    honest = on(prefix("0.1", "1", "0.1", 3, 4, 2))
    found, _ = caught(Twin(honest, LENIENT), setting, people([3]), people([]))
    assert found.violates
    assert found.ratio == pytest.approx(1 + math.e, rel=0.01)
    true, _ = caught(Twin(honest, Mistake("none")), setting, people([3]), people([]))
    assert not true.violates


def _one_row_price(honest, facts):
    single = honest.guarantee(facts_with(facts, Neighbours(facts.neighbours.kind)))
    several = honest.guarantee(facts)
    return Guarantee(facts.neighbours, several.renyi, several.pure, single.failure)


def facts_with(facts, neighbours):
    return type(facts)(facts.domain, neighbours, facts.size)


ONE_ROW = Mistake("charges one row's failure for a person with several", price=_one_row_price)


@pytest.mark.parametrize(("epsilon", "ratio"), [("0.6", 2.82), ("1", 3.72)])
def test_the_failure_of_one_row_is_caught_for_a_person_with_two(epsilon, ratio):
    setting = Setting(QUARTERS, Neighbours("add-remove", 2), unit="who")
    mine = [{"x": 3, "who": 1}, {"x": 3, "who": 1}]
    found, honest = caught(Twin(on(prefix("0.1", epsilon, "0.1", 3, 4, 2)), ONE_ROW), setting, mine, [])
    assert found.violates
    assert found.ratio == pytest.approx(ratio, rel=0.02)
    assert 0.99 < honest.ratio <= 1


def _pairs_as_added(honest, facts):
    routine = honest.routine
    inner = routine.inner.guarantee(ADD, code_bits(4) + 1)
    return inner + routine.ending.guarantee(facts.neighbours)


PAIRS_AS_ADDED = Mistake("prices the pairs as if values were only added to them", price=_pairs_as_added)
ADDED_INSIDE = PairPrefix(MinRank(2), 0, 0, 1, 3, 1)


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([((2, 3, 3, 3, 3), (3, 3, 3, 3))], id="one"),
        pytest.param(list(pairs(ADD, 4, 5)), id="all", marks=pytest.mark.slow),
    ],
)
def test_an_inner_routine_priced_for_add_remove_is_caught(listed):
    facts = Setting(QUARTERS, ADD).facts(people([0]))
    twin = Twin(on(ADDED_INSIDE), PAIRS_AS_ADDED)
    claimed = float(ADDED_INSIDE.inner.guarantee(ADD, 3).pure)
    assert twin.guarantee(facts).pure == twin.honest.guarantee(facts).pure - Fraction(claimed)
    honest = Guarantee.of_bounded_range(ADDED_INSIDE.inner.guarantee(REPLACE, 3).pure, neighbours=ADD)
    found = worst(lambda values: first_step(ADDED_INSIDE, values, 4), honest, listed)
    assert found.loss > 1.5 * claimed
    assert found.ratio <= 1 + 1e-9


def _arrived(honest, data, rng):
    """The bins in the order in which somebody of theirs came first, which wins ties."""
    routine = honest.routine
    seen = data.exact_gather(lambda batch: batch.stored(honest.column)).tolist()
    bins = list(dict.fromkeys(seen))
    noisy = [seen.count(each) + rng.truncated_laplace(routine.scale, routine.bound) for each in bins]
    passed = [(n, -place) for place, n in enumerate(noisy) if n > routine.bound]
    return bins[-max(passed)[1]] if passed else NOWHERE


ARRIVED = Mistake("breaks ties by the order of arrival", run=_arrived)


def test_ties_by_the_order_of_arrival_are_caught():
    setting = Setting(Domain(x=Number(0, 1, step=1)), ADD)
    scale, bound = Fraction(1), stable.least_bound(Fraction(1), Fraction(1, 20), 1)
    honest = on(PrefixSearch("0.001", scale, bound, 1000, 0, 0))
    second = people([0, 0, 0, 0, 1, 1, 1])
    first = [*people([1]), *second]
    found, _ = caught(Twin(honest, ARRIVED), setting, first, second)
    assert found.violates
    laws = [law(Twin(honest, ARRIVED), rows, setting) for rows in (first, second)]
    assert hockey_stick(*laws, 1.0)[0] == pytest.approx(0.2838, abs=1e-3)
    true, _ = caught(Twin(honest, Mistake("none")), setting, first, second, reach=0)
    assert not true.violates


def _somewhere(honest, data, rng):
    """A point of the data when no prefix passes."""
    values = sorted_column(data, honest.column)
    found = honest.routine.transcript(values, 4, rng)
    return found.point if found.prefix is not None or len(values) == 0 else int(values[0])


def test_a_constant_that_depends_on_the_values_is_caught():
    setting = Setting(QUARTERS, ADD)
    honest = on(prefix("0.1", "1", "0.1", 3, 4, 2))
    found, _ = caught(Twin(honest, Mistake("returns the smallest value", run=_somewhere)), setting, people([3]), [])
    assert found.violates
    assert found.found > 0.9


def test_the_end_decided_with_the_noise_of_add_remove_is_caught_under_replace_one():
    """Under replace-one a value may move from below the prefix to above it: u - v by 2."""
    routine = PrefixSearch(Fraction(1, 20), 4, 12, Fraction(1, 2), 26, 0)
    p, q = (transcript_law(routine, (2,) * 26 + outside, 8, only=1) for outside in ((0, 0, 7), (0, 0, 0)))
    honest = routine.guarantee(REPLACE, 8)
    believed = (
        Guarantee.of_bounded_range(Fraction(1, 10), neighbours=REPLACE)
        + stable.price(routine.scale, routine.bound, REPLACE)
        + Guarantee.of_laplace(1, scale=routine.side_scale, neighbours=REPLACE)
    )
    epsilon = float(believed.pure)
    assert hockey_stick(p, q, epsilon)[0] > 1.5 * believed.delta(epsilon)
    for each in (*EPSILONS, float(honest.pure)):
        assert max(hockey_stick(p, q, each)[0], hockey_stick(q, p, each)[0]) <= honest.delta(each)
