"""Exact laws of the learners of conjunctions and finite classes on neighbouring tables, and twins that are caught."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit.divergence import compare, loss
from discreet.audit.laws import Setting, _Remembering, law
from discreet.audit.mutants import Mistake, Twin, add_remove_price
from discreet.data import Category, Domain
from discreet.guarantee import Guarantee, Neighbours
from discreet.pac.conjunctions import AllConjunctions, FalsifiedLiterals, GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.finite import FiniteClass, population_size
from discreet.pac.rules import Conjunction, Labels, Literals, Mistakes
from discreet.rng import SeededRng
from tests.search import Pair, climb, start, universe

LABELS = Labels("y", 1)
ONE = Domain(a=Category(0, 1), y=Category(0, 1))
TWO = Domain(a=Category(0, 1), b=Category(0, 1), y=Category(0, 1))
A, AB = Literals("a"), Literals(("a", "b"))


def settings(domain, rows=1):
    unit = "person" if rows > 1 else None
    return [Setting(domain, Neighbours(kind, rows), unit) for kind in ("replace-one", "add-remove")]


def every_rule(k):
    """The conjunctions of at most k literals of two variables, and never."""
    literals = [*((n,) for n in range(4)), *(((i, j) for i in (0, 1) for j in (2, 3)) if k > 1 else ())]
    return [(0, 1), (), *literals]


def people(text):
    """Rows of two variables: "101 110" is a = 1, b = 0, labelled 1; then a = 1, b = 1, labelled 0."""
    return [dict(zip("aby", map(int, each), strict=True)) for each in text.split()]


RULES = tuple(Conjunction(AB, numbers) for numbers in every_rule(2))
ON_ONE = [
    NoisyCounts(A, LABELS, Fraction(3, 2), 1),
    NoisyCounts(A, LABELS, 1, "5/2"),
    GaussianCounts(A, LABELS, 3, 1, "1/2"),
    GaussianCounts(A, LABELS, 2, 2, 1),
    LaplaceCounts(A, LABELS, 2, 1, 1),
    LaplaceCounts(A, LABELS, 3, Fraction(2, 3), "1/2"),
]
ON_TWO = [
    AllConjunctions(AB, LABELS, 2, Fraction(1, 2)),
    AllConjunctions(AB, LABELS, 1, Fraction(1)),
    FiniteClass(RULES, LABELS, Fraction(1, 3)),
]
NAMES = {"ids": lambda each: type(each).__name__}


@dataclass
class Once:
    """A mechanism that asks a table for the same sums once: enumeration runs it hundreds of times."""

    honest: Any
    remembered: dict = field(default_factory=dict)

    def run(self, data, rng):
        if data not in self.remembered:
            self.remembered[data] = _Remembering(data)
        return self.honest.run(self.remembered[data], rng)


def excess(mechanism, pair, setting, reach):
    laws = [law(Once(mechanism), rows, setting, reach=reach) for rows in (pair.first, pair.second)]
    found = compare(*laws, mechanism.guarantee(setting.facts(pair.first or pair.second)))
    return found.found - found.claimed


def searched(mechanism, setting, *, steps, seed, reach=6, most=3):
    begin = start(setting, universe(setting.domain)[:2])
    return climb(
        lambda pair: excess(mechanism, pair, setting, reach),
        begin,
        setting,
        steps=steps,
        rng=SeededRng(seed),
        most=most,
    )


def problems(rows):
    """One mechanism of each kind, under both relations."""
    listed = [(m, s) for m in ON_ONE[::2] for s in settings(ONE, rows)]
    listed += [(m, s) for m in ON_TWO[::2] for s in settings(TWO, rows)]
    names = [f"{type(m).__name__}-{s.neighbours.kind}" for m, s in listed]
    return pytest.mark.parametrize(("mechanism", "setting"), listed, ids=names)


@problems(1)
def test_no_search_over_small_tables_beats_the_price(mechanism, setting):
    assert searched(mechanism, setting, steps=5, seed=3)[1] <= 1e-9


@problems(2)
def test_no_search_beats_the_price_of_two_rows_a_person(mechanism, setting):
    assert searched(mechanism, setting, steps=2, seed=4)[1] <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("mechanism", [*ON_ONE, *ON_TWO], **NAMES)
def test_no_long_search_beats_the_price(mechanism, seed, rows):
    steps = 8 if isinstance(mechanism, GaussianCounts) else 60  # the law of Gaussian noise is listed anew for each draw
    for setting in settings(ONE if mechanism in ON_ONE else TWO, rows):
        assert searched(mechanism, setting, steps=steps, seed=seed, reach=9, most=6)[1] <= 1e-9


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("setting", settings(ONE), ids=lambda each: each.neighbours.kind)
def test_the_pure_prices_of_counts_are_attained(setting, rows):
    """A replaced positive moves both counts of a variable, one of them above and the other below the threshold."""
    replace = setting.neighbours.replace_one
    wide = settings(ONE, rows)[0 if replace else 1] if rows > 1 else setting
    person = {} if rows == 1 else {"person": -1}
    mine = [{"a": 0, "y": 1} | person] * rows
    other = [{"a": 1, "y": 1} | person] * rows if replace else []
    shared = [{"a": 0, "y": 1}] * 5
    mechanism = NoisyCounts(A, LABELS, 1, 3)
    laws = [law(mechanism, [*shared, *each], wide, reach=14) for each in (mine, other)]
    price = float(mechanism.guarantee(wide.facts(shared)).pure)
    assert 0.98 * price < loss(*laws) <= price * (1 + 1e-9)


def against_never(mechanism, setting):
    """Most rows say: never. One more row of label 0 at 11, or of label 1 there, moves the rules apart by 1 or 2."""
    shared = people("000 010 100 110 " * math.ceil(8 / mechanism.rate))
    other = people("111") if setting.neighbours.replace_one else []
    return Pair(tuple(shared), tuple(people("110")), tuple(other))


@pytest.mark.parametrize("mechanism", ON_TWO, **NAMES)
@pytest.mark.parametrize("setting", settings(TWO), ids=lambda each: each.neighbours.kind)
def test_the_price_of_a_selection_is_nearly_attained(mechanism, setting):
    pair = against_never(mechanism, setting)
    laws = [law(mechanism, rows, setting) for rows in (pair.first, pair.second)]
    price = float(mechanism.guarantee(setting.facts(pair.first)).pure)
    assert 0.9 * price < loss(*laws) <= price * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_the_law_of_all_conjunctions_is_the_stated_one(k):
    setting, rate = settings(TWO)[0], Fraction(2, 3)
    rows = people("111 110 011 000 000 101 101")
    table = setting.table(rows)
    wrong = {n: int(table.exact_sum(Mistakes(Conjunction(AB, n), LABELS))) for n in every_rule(k)}
    weights = {numbers: math.exp(-rate * count) for numbers, count in wrong.items()}
    found = law(AllConjunctions(AB, LABELS, k, rate), rows, setting)
    assert set(found.mass) == set(weights)
    for numbers, weight in weights.items():
        assert found.mass[numbers] == pytest.approx(weight / math.fsum(weights.values()), rel=1e-12)


def test_all_conjunctions_and_the_list_of_them_are_one_law():
    setting, rows = settings(TWO)[1], people("111 110 011 001")
    listed = law(FiniteClass(RULES, LABELS, 1), rows, setting).mass
    packed = law(AllConjunctions(AB, LABELS, 2, 1), rows, setting).mass
    for place, rule in enumerate(RULES):
        assert listed[place] == pytest.approx(packed[rule.numbers], rel=1e-12)


# --- twins ------------------------------------------------------------------------------------------------------------


def caught(twin, setting, pair, reach=13):
    laws = [law(twin, rows, setting, reach=reach) for rows in (pair.first, pair.second)]
    facts = setting.facts(pair.first)
    return compare(*laws, twin.guarantee(facts)), compare(*laws, twin.honest.guarantee(facts))


def positives(ones, zeros, *, mine=1):
    """Positive rows of one variable; one person's value is flipped."""
    shared = ({"a": 1, "y": 1},) * ones + ({"a": 0, "y": 1},) * zeros
    return Pair(shared, ({"a": mine, "y": 1},), ({"a": 1 - mine, "y": 1},))


def test_the_scale_of_add_remove_is_caught_under_replace_one():
    """Both counts of a variable move: the loss is twice what was charged."""
    setting = settings(ONE)[0]
    twin = Twin(NoisyCounts(A, LABELS, 1, 4), add_remove_price)
    claimed, honest = caught(twin, setting, positives(0, 7))
    assert claimed.violates
    assert not honest.violates
    laws = [law(twin, rows, setting, reach=13) for rows in (positives(0, 7).first, positives(0, 7).second)]
    assert loss(*laws) == pytest.approx(2 * float(twin.guarantee(setting.facts(people("111"))).pure), rel=0.02)


def test_the_price_of_add_remove_is_caught_under_replace_one_for_centred_counts():
    claimed, fair = caught(
        Twin(GaussianCounts(A, LABELS, 1, 1, 2), add_remove_price), settings(ONE)[0], positives(0, 3), 8
    )
    assert claimed.violates
    assert not fair.violates


def _without_total(honest, facts):
    return Guarantee.of_pure(honest.literals.variables(facts.domain) / honest.scale, neighbours=facts.neighbours)


NO_TOTAL = Mistake("forgets that the number of positives is told, too", price=_without_total)


def test_forgetting_the_number_of_positives_is_caught():
    setting, honest = settings(ONE)[1], LaplaceCounts(A, LABELS, 2, 1, 1)
    pair = Pair(({"a": 0, "y": 1},) * 6, ({"a": 0, "y": 1},), ())
    claimed, fair = caught(Twin(honest, NO_TOTAL), setting, pair, 16)
    assert claimed.violates
    assert not fair.violates


def _raw_gaussian(honest, data, rng):
    counts = data.exact_sum(FalsifiedLiterals(honest.literals, honest.labels))
    noisy = counts + rng.gaussian(honest.scale**2, len(counts))
    return tuple(np.flatnonzero(noisy <= honest.threshold).tolist())


def _raw_price(share):
    def price(honest, facts):
        moved = FalsifiedLiterals(honest.literals, honest.labels).sensitivity(facts)
        return Guarantee.of_zcdp(share * moved.l2_squared / (2 * honest.scale**2), neighbours=facts.neighbours)

    return price


ROOT_D = Mistake(
    "takes sqrt d for the L2 sensitivity of 2d counts", price=_raw_price(Fraction(1, 2)), run=_raw_gaussian
)
ROOT_2D = Mistake("adds Gaussian noise to the 2d counts", price=_raw_price(Fraction(1)), run=_raw_gaussian)


def test_the_l2_sensitivity_sqrt_d_is_caught_under_replace_one():
    setting, pair = settings(ONE)[0], positives(1, 4)
    honest = NoisyCounts(A, LABELS, 1, 3)
    assert not caught(Twin(honest, ROOT_2D), setting, pair, 8)[0].violates
    assert caught(Twin(honest, ROOT_D), setting, pair, 8)[0].violates


@pytest.mark.parametrize("honest", ON_TWO, **NAMES)
def test_the_rate_of_add_remove_is_caught_under_replace_one(honest):
    setting = settings(TWO)[0]
    pair = against_never(honest, setting)
    claimed, fair = caught(Twin(honest, add_remove_price), setting, pair)
    assert claimed.violates
    assert not fair.violates
    laws = [law(honest, rows, setting) for rows in (pair.first, pair.second)]
    assert loss(*laws) > 1.8 * float(Twin(honest, add_remove_price).guarantee(setting.facts(pair.first)).pure)


def _exact_counts(honest, data, rng):
    counts = data.exact_sum(FalsifiedLiterals(honest.literals, honest.labels))
    return tuple(np.flatnonzero(counts <= honest.threshold).tolist())


EXACT_COUNTS = Mistake("compares the threshold with exact counts", run=_exact_counts)


@pytest.mark.parametrize("honest", ON_ONE, **NAMES)
def test_comparing_exact_counts_is_caught(honest):
    for setting in settings(ONE):
        at = math.floor(honest.threshold)
        pair = positives(0, at)
        pair = pair if setting.neighbours.replace_one else Pair(pair.shared, pair.other, ())
        claimed, _ = caught(Twin(honest, EXACT_COUNTS), setting, pair)
        assert claimed.violates
        assert claimed.found == pytest.approx(1)


def _one_row(honest, facts):
    single = honest.guarantee(type(facts)(facts.domain, Neighbours(facts.neighbours.kind), facts.size))
    return Guarantee(facts.neighbours, single.renyi, single.pure, single.failure, single.gaussian)


ONE_ROW = Mistake("charges a person of two rows for one", price=_one_row)


@pytest.mark.parametrize("honest", [ON_ONE[0], ON_TWO[0]], **NAMES)
def test_the_price_of_one_row_is_caught_with_two(honest):
    replace = settings(ONE if honest in ON_ONE else TWO, 2)[0]
    domain = replace.domain
    mine, other = (
        ({"a": 0, "b": 1, "y": 0}, {"a": 0, "b": 1, "y": 1}) if domain is TWO else ({"a": 0, "y": 1}, {"a": 1, "y": 1})
    )
    shared = people("000 010 100 110 " * 40) if domain is TWO else [{"a": 0, "y": 1}] * 5
    pair = Pair(tuple(shared), ({**mine, "person": -1},) * 2, ({**other, "person": -1},) * 2)
    claimed, fair = caught(Twin(honest, ONE_ROW), replace, pair)
    assert claimed.violates
    assert not fair.violates


# --- the promise about the distribution -------------------------------------------------------------------------------


def samples(n, cells):
    """Every way to put n rows in so many cells."""
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in samples(n - first, cells - 1):
            yield (first, *rest)


POINTS = list(itertools.product((0, 1), repeat=2))


def errors_of(target):
    """For each rule and point: does the rule contradict the target there?"""
    says = np.array(
        [[all(x[number // 2] != number % 2 for number in numbers) for x in POINTS] for numbers in every_rule(2)]
    )
    return says != says[every_rule(2).index(target)]


def failure_given(counts, target, probabilities, *, alpha, rate):
    """The probability, given how many rows are at each point, that the learned rule errs more than alpha."""
    wrong = errors_of(target)
    weights = np.exp(-float(rate) * (wrong @ np.array(counts)))
    return weights[wrong @ np.array(probabilities) > alpha].sum() / weights.sum()


def failure_of(probabilities, target, *, n, alpha, rate):
    """The exact probability, over n independent rows and the mechanism, that the learned rule errs more than alpha."""
    failed = 0.0
    for counts in samples(n, len(POINTS)):
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        chance = ways * math.prod(p**c for p, c in zip(probabilities, counts, strict=True))
        failed += chance * failure_given(counts, target, probabilities, alpha=alpha, rate=rate)
    return failed


@pytest.mark.parametrize("target", [(0, 2), (1,), ()])
@pytest.mark.parametrize("probabilities", [(0.25, 0.25, 0.25, 0.25), (0.1, 0.2, 0.3, 0.4), (0.79, 0.07, 0.07, 0.07)])
def test_the_exact_failure_probability_is_below_the_bound(probabilities, target):
    worst = 0.0
    for n, alpha, rate in ((6, 0.25, 1.0), (12, 0.2, 0.5), (14, 0.06, 2.0), (8, 0.3, 4.0)):
        bound = len(every_rule(2)) * (1 - alpha * (1 - math.exp(-rate))) ** n
        found = failure_of(probabilities, target, n=n, alpha=alpha, rate=rate)
        assert found <= bound
        worst = max(worst, found / bound)
    assert worst > 0.02


def test_at_the_stated_size_the_exact_failure_probability_is_below_beta():
    rate, alpha, beta = 2.0, 0.25, 0.2
    n = population_size(math.log(len(every_rule(2))), alpha, beta, rate)
    assert n == 19
    for probabilities in ((0.26, 0.26, 0.26, 0.22), (0.4, 0.26, 0.26, 0.08)):
        for target in ((0, 2), (1, 3)):
            assert 1e-4 < failure_of(probabilities, target, n=n, alpha=alpha, rate=rate) <= beta


def test_the_formula_of_these_tests_is_the_law_of_the_mechanism():
    setting, counts, target, rate = settings(TWO)[0], (3, 1, 2, 1), (2,), Fraction(1, 2)
    probabilities, alpha = (0.25, 0.25, 0.25, 0.25), 0.3
    rows = [{"a": a, "b": b, "y": b} for (a, b), count in zip(POINTS, counts, strict=True) for _ in range(count)]
    found = law(AllConjunctions(AB, LABELS, 2, rate), rows, setting).mass
    bad = errors_of(target) @ np.array(probabilities) > alpha
    failed = math.fsum(found[numbers] for numbers, fails in zip(every_rule(2), bad, strict=True) if fails)
    assert failed == pytest.approx(failure_given(counts, target, probabilities, alpha=alpha, rate=rate), rel=1e-12)
