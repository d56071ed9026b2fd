"""Mechanisms with their tables: what the contract tests run over.

A mechanism is a class of the catalogue that has the methods of `Mechanism` or `Conversation`. Each has an example in
`discreet.audit.examples`, on a few made-up rows (a test names the one that has none), and every contract is tested of
it. Here are more, on one table of 300 rows of all kinds: huge numbers, missing values, many routines.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dp
from discreet.answering import AveragedWeights, ChosenTables, Marginals, ResidualMarginals
from discreet.audit import examples
from discreet.catalogue import CATALOGUE
from discreet.erm.descent import Descent, Last
from discreet.erm.exponential.grid import GridExponential
from discreet.erm.exponential.line import LineExponential
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, Declared
from discreet.erm.losses import Absolute, Huber, Logistic, RangedHuber, Squared
from discreet.erm.network import NeuralDescent
from discreet.erm.noisy_moments import NoisyMoments
from discreet.erm.objective_perturbation import ObjectivePerturbation
from discreet.erm.output_perturbation import OutputPerturbation
from discreet.erm.ranged import RangedFeatures, RangedRegression
from discreet.erm.risk import Risk
from discreet.mechanisms import (
    Conversation,
    CoordinateLaplaceNoise,
    GaussianNoise,
    GroupQuantiles,
    LaplaceNoise,
    Mechanism,
    ProductLaplaceNoise,
    RankQuantile,
)
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.boxes import ReorderSlice, SlicedBox
from discreet.pac.conjunctions import AllConjunctions, GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.finite import FiniteClass
from discreet.pac.greedy import GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.greedy_boxes import CountedFaces, FaceByFace
from discreet.pac.interior import BinarySearch, InteriorPoint, MinRank, PairPrefix, PrefixSearch
from discreet.pac.rank_bounds import RankBounds
from discreet.pac.rules import BoxRule, Labels, Literals, Mistakes, Thresholds
from discreet.query import Bins, Cases, GroupCount, GroupSum, Of, Times
from discreet.rng import SeededRng

ROWS = 300
RELATIONS = ("replace-one", "add-remove")

DOMAIN = dp.Domain(
    age=dp.Number(0, 9, step=1),
    sex=dp.Category("F", "M", other="1/2"),
    pay=dp.Number(-5, 10, step="0.5"),
    wealth=dp.Number(0, 100_000_000, step="0.01"),  # contributions beyond 2^31: summed in Python integers
    a=dp.Number(0, 20, step=1, missing=True),
    fine=dp.Number(0, 2**22, step=1),
    p=dp.Category(0, 1),
    q=dp.Category(0, 1),
    r=dp.Category("no", "yes"),
    town=dp.Category("u", "v", "w"),
    y=dp.Category("-", "+"),
)


def columns(rows: int = ROWS) -> dict[str, list[Any]]:
    """Made-up rows in which a box and a conjunction explain the label."""
    rng = np.random.default_rng(3)
    a, fine, age = (rng.integers(0, top, rows) for top in (21, 2**22, 10))
    p, q, r = rng.integers(0, 2, (3, rows))
    positive = (a >= 4) & (a <= 15) & (fine > 2**20) & (p == 1)
    return {
        "age": age.tolist(),
        "sex": ["FMX"[each % 3] for each in age],
        "pay": (rng.integers(-10, 21, rows) / 2).tolist(),
        "wealth": (rng.integers(0, 10**10, rows) / 100).tolist(),
        "a": [None if place % 17 == 0 else int(each) for place, each in enumerate(a)],
        "fine": fine.tolist(),
        "p": p.tolist(),
        "q": q.tolist(),
        "r": ["no" if each == 0 else "yes" for each in r],
        "town": ["uvw"[each % 3] for each in range(rows)],
        "y": ["+" if each else "-" for each in positive],
    }


@dataclass(frozen=True)
class Case:
    """A mechanism, and rows that it can be run on."""

    mechanism: Any
    domain: dp.Domain
    rows: dict[str, list[Any]]

    @property
    def name(self) -> str:
        return type(self.mechanism).__name__

    @property
    def size(self) -> int:
        return len(next(iter(self.rows.values())))

    def table(self, relation: str, rows: dict[str, list[Any]] | None = None) -> dp.Table:
        """These rows, or the made-up ones; the declared size is the same whatever they are, but for replace-one."""
        held = self.rows if rows is None else rows
        return dp.Table(held, self.domain, neighbours=relation, size=None if relation == "replace-one" else self.size)

    def nobody(self) -> dict[str, list[Any]]:
        return {name: [] for name in self.domain}

    def facts(self, relation: str, *, rows: int = 1) -> dp.data.Facts:
        """What is public about a table of as many persons with at most `rows` rows each."""
        return dp.data.Facts(self.domain, dp.Neighbours(relation, rows), self.size)


def table(relation: str, rows: dict[str, list[Any]] | None = None) -> dp.Table:
    return Case(None, DOMAIN, columns()).table(relation, rows)


def nobody() -> dict[str, list[Any]]:
    return {name: [] for name in DOMAIN}


def facts(relation: str, *, rows: int = 1) -> dp.data.Facts:
    return Case(None, DOMAIN, columns()).facts(relation, rows=rows)


OLD = dp.Between("age", 5, 9)
BOX, LABELS, LITERALS = ("a", "fine"), Labels("y", "+"), Literals(("p", "q", "r"))
CONDITIONS = Thresholds(("a", "fine", "town"), 16)
RULES = (BoxRule(("a",), (3,), (9,)), BoxRule(("a",), (0,), (20,)))

ADDITIVE: tuple[Any, ...] = (
    dp.Laplace(dp.Count(OLD), 4),
    dp.Laplace(dp.Sum("pay", where=dp.Equals("sex", "1/2")), "7.5"),
    dp.Laplace(dp.Histogram(("age", "sex")), Fraction(5, 3)),
    dp.Gaussian(dp.mechanisms.VectorSum(("age", "pay")), 12.25),
    dp.mechanisms.ProductLaplace(dp.mechanisms.VectorSum(("age", "pay")), 12),
    dp.mechanisms.CoordinateLaplace(dp.Histogram("sex"), 3),
    dp.Laplace(dp.Sum("wealth"), 10**9),
    dp.Gaussian(dp.Sum("wealth"), 10**9),
    dp.mechanisms.ProductLaplace(dp.mechanisms.VectorSum(("wealth", "pay")), 10**9),
    dp.Laplace(Mistakes(RULES[0], LABELS), 10),
    dp.Gaussian(GroupSum(["sex", Bins("age", (0, 4), (0, 1))], Times(Of("age"), Of("pay"))), 30),
    dp.Laplace(GroupCount([Cases([OLD])]), 4),
    dp.mechanisms.ZeroSumLaplace(dp.Histogram("town", dp.Equals("r", "yes")), Fraction(7, 2)),
    dp.mechanisms.ZeroSumLaplace(dp.Histogram("town"), 3),
)
SELECTIONS: tuple[Any, ...] = (
    dp.Exponential(dp.mechanisms.VectorSum(("age", "pay")), 0.1),
    dp.mechanisms.PermuteAndFlip(dp.mechanisms.VectorSum(("age", "pay")), 0.1),
    dp.Exponential(dp.Histogram("age"), 0.1),
    dp.mechanisms.PermuteAndFlip(dp.Histogram("age", where=dp.Not(OLD)), "1/7"),
)
STABLE: tuple[Any, ...] = (
    dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount(("age", "sex")), 2, 20),
    dp.mechanisms.StableMode(dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount("sex"), 2, 20)),
)
MODELS: tuple[Any, ...] = (
    Descent(Risk(Logistic(), Declared(("age", "pay"), 16), "y", Ball(2)), GaussianNoise(40), 3, Last(Fraction(1, 10))),
    Descent(Risk(Huber(1), Constant(), "age", interval(0, 9)), LaplaceNoise(9), 2, Last(1)),
    OutputPerturbation(
        Risk(Huber(1), Constant(), "age", interval(0, 9)), 1, "1/10000", "1/4096", ProductLaplaceNoise("1/50")
    ),
    ObjectivePerturbation(
        Risk(Logistic("1/2"), Declared(("age", "pay"), 2), "y", Ball(20)),
        *("1/4", GaussianNoise(20), "1/65536", "1/65536", "1/65536", GaussianNoise("1/64")),
    ),
    RangedRegression(
        *(RankQuantile("pay", "1/2", Fraction(1, 10)), RankQuantile("pay", "3/4", Fraction(1, 10))),
        ObjectivePerturbation(
            Risk(RangedHuber("1/4", -1, 1), Declared(("age",), 1), "pay", Ball(3)),
            *("1/4", ProductLaplaceNoise(20), "1/65536", "1/65536", "1/65536", ProductLaplaceNoise("1/64")),
        ),
    ),
    RangedFeatures(
        (RankQuantile("age", "1/2", Fraction(1, 10)),),
        (RankQuantile("age", "3/4", Fraction(1, 10)),),
        Descent(
            Risk(Logistic(), Declared(("age", "pay"), 16), "y", Ball(2)), GaussianNoise(40), 3, Last(Fraction(1, 10))
        ),
    ),
    NoisyMoments(Risk(Squared(), Declared(("age",), 1), "pay", Ball(20)), GaussianNoise(2**36)),
    NeuralDescent(Declared(("age", "pay"), 16), "y", (2,), Fraction(1), CoordinateLaplaceNoise(30), 2, Fraction(1), 3),
    LineExponential(Risk(Squared(), Constant(), "pay", interval(0, 5)), Fraction(1, 500)),
    RankQuantile("a", "1/3", Fraction(1, 10)),
    GroupQuantiles("a", "2/3", Fraction(1, 10), "1/20", 5, ("sex",), OLD),
    RankBounds("fine", "0.96", "0.2"),
    GridExponential(Risk(Absolute(), Declared(("age",), 9, False), "pay", Ball(1)), 5, Fraction(1, 50)),
)
WORKLOADS: tuple[Any, ...] = (
    Marginals([dp.Histogram(("sex", "town")), dp.Count(OLD), dp.Sum("pay")], [3, 2, 40]),
    Marginals([dp.Histogram("sex"), dp.Sum("wealth")], [3, 10**9], "laplace"),
    ChosenTables(("sex", "town", "age"), 4, "1/8", 1, "laplace"),
    ResidualMarginals([("sex", "town")], [3, 4, 5, 6], 64),
    AveragedWeights([dp.Histogram("sex"), dp.Count(dp.Equals("town", "u"))], 4, "1/2", "1/20", ROWS),
)
LEARNERS: tuple[Any, ...] = (
    InteriorPoint("a", MinRank("0.2")),
    InteriorPoint("fine", BinarySearch(GaussianNoise(20))),
    InteriorPoint("fine", PrefixSearch("0.2", 5, 40, 5, 60, 20)),
    InteriorPoint("fine", PairPrefix(MinRank("0.2"), 10, 10, 5, 40, 5)),
    SlicedBox(BOX, LABELS, MinRank("0.5"), 20, 5, 10),
    ReorderSlice(
        BOX, LABELS, MinRank("0.02"), count=10, spread=500, slack="0.016", rounds=4, few_scale=5, threshold=60
    ),
    FaceByFace(BOX, LABELS, 3, "0.5"),
    CountedFaces(BOX, LABELS, 10, "0.5"),
    AllBoxes(BOX, LABELS, 8, "0.2"),
    NoisyCounts(LITERALS, LABELS, 5, 10),
    GaussianCounts(LITERALS, LABELS, 5, 3, 20),
    LaplaceCounts(LITERALS, LABELS, 5, 2, 20),
    AllConjunctions(LITERALS, LABELS, 2, "0.2"),
    GreedySelection(CONDITIONS, LABELS, 3, 4, "0.2"),
    SelfDeleting(CONDITIONS, LABELS, (40, 30, 20), 2, 5, "0.1", "1e-6"),
    WeighedGreedy(CONDITIONS, LABELS, 3, "0.2", 10),
    FiniteClass(RULES, LABELS, "0.2"),
)
CONVERSATIONS: tuple[Any, ...] = (
    dp.mechanisms.AboveThreshold(10, 20),
    dp.mechanisms.AboveThresholdLaplace(10, 20, sensitivity=2),
)
STEPWISE: tuple[Any, ...] = (
    dp.mechanisms.ContinualCounter(dp.Count(dp.Equals("sex", "F")), "age", 2, 6, scale=4),
    dp.mechanisms.ContinualCounter(dp.Sum("pay"), "age", 0, 10, scale="2.5", resolution=64),
    dp.mechanisms.ContinualCounter(dp.Sum("wealth"), "age", 0, 3, scale=10**9),
)

MECHANISMS = (*ADDITIVE, *SELECTIONS, *STABLE, *MODELS, *WORKLOADS, *LEARNERS)
MANY = [Case(each, DOMAIN, columns()) for each in (*MECHANISMS, *CONVERSATIONS, *STEPWISE)]
FEW = [
    Case(
        each.honest,
        each.setting.domain,
        {name: [row[name] for row in (*each.first, *each.second)] for name in each.setting.domain},
    )
    for each in examples()
]
CASES = (*MANY, *{each.mechanism: each for each in FEW}.values())


def kinds() -> set[type]:
    """The mechanisms and conversations of the catalogue."""
    return {
        kind for kind in CATALOGUE.values() if _has_methods_of(Mechanism, kind) or _has_methods_of(Conversation, kind)
    }


def _has_methods_of(protocol: type, kind: type) -> bool:
    wanted = [name for name, value in vars(protocol).items() if not name.startswith("_") and callable(value)]
    return all(callable(getattr(kind, name, None)) for name in wanted)


class Recording(SeededRng):
    """Test randomness that remembers which noise was drawn, and of which size."""

    def __init__(self, seed: int = 5) -> None:
        super().__init__(seed)
        self.drawn: list[tuple[str, Fraction]] = []

    def laplace(self, scale: Fraction, size: Any = None) -> Any:
        self.drawn.append(("laplace", scale))
        return super().laplace(scale, size)

    def geometric(self, scale: Fraction, size: Any = None) -> Any:
        self.drawn.append(("geometric", scale))
        return super().geometric(scale, size)

    def gaussian(self, variance: Fraction, size: Any = None) -> Any:
        self.drawn.append(("gaussian", variance))
        return super().gaussian(variance, size)

    def spherical(self, scale: Fraction, dimension: int) -> Any:
        self.drawn.append(("spherical", scale))
        return super().spherical(scale, dimension)

    def truncated_laplace(self, scale: Fraction, bound: int, size: Any = None) -> Any:
        self.drawn.append(("truncated", scale))
        return super().truncated_laplace(scale, bound, size)

    def zero_sum_laplace(self, scale: Fraction, size: int) -> Any:
        before = [*self.drawn, ("zero-sum", scale)]
        noise, self.drawn = super().zero_sum_laplace(scale, size), before  # not the draws that it is made of
        return noise

    def select(self, scores: Any, rate: Fraction, counts: Any = None) -> int:
        self.drawn.append(("select", rate))
        return super().select(scores, rate, counts)

    def flips(self, gaps: Any, rate: Fraction) -> Any:
        self.drawn.append(("flips", rate))
        return super().flips(gaps, rate)

    def bernoulli_exp(self, x: Fraction, size: Any = None) -> Any:
        self.drawn.append(("coin", x))
        return super().bernoulli_exp(x, size)


RATES = {"select", "flips", "coin"}
"""Draws that are quieter for a smaller number."""
