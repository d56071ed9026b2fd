"""Lab 9: private empirical risk minimisation by the exponential mechanism: four problems, the density, what breaks."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import discreet as dp
from discreet import report
from discreet.audit import mutants
from discreet.audit.attacks import Attack
from discreet.audit.divergence import epsilon_at
from discreet.audit.examples import attempt_line, examples
from discreet.audit.laws import Setting
from discreet.erm import network
from discreet.erm.exponential.bounds import convex_tail, lecture_tail, propose
from discreet.erm.exponential.bounds import promise as promised
from discreet.erm.exponential.grid import GridExponential
from discreet.erm.exponential.line import LineExponential
from discreet.erm.feasible_sets import Ball, Box
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.losses import Absolute, Squared
from discreet.erm.nonprivate import minimiser, risk_value
from discreet.erm.risk import Risk
from discreet.funds import Funds
from discreet.guarantee import Neighbours

from . import kit
from .kit import BOUND, DOTS, LINE, SERIES, Check, Scale, Section, Series, Shown, both, number, over, plot, released

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings(kit.Checked):
    """The numbers of lab 9."""

    n: int = kit.setting(1_000, "invented persons", least=20, most=100_000)
    d: int = kit.setting(3, "largest number of coordinates of a model", least=1, most=4)
    epsilon: float = kit.epsilon_setting()
    beta: float = kit.setting(0.05, "the probability that a bound fails", least=1e-6, most=0.5)
    runs: int = kit.setting(200, "independent releases behind each measured number", least=20, most=20_000)
    seed: int = kit.seed_setting(9)


STEP = Fraction(1, 2**10)


@functools.lru_cache(maxsize=32)
def numbers(n: int, seed: int, step: Fraction = STEP) -> tuple[dp.Table, Floats]:
    """Numbers of people between 0 and 1, most of them small."""
    values = np.floor(np.random.default_rng(seed).beta(1.2, 3.5, n) / float(step)) * float(step)
    return dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step=step)), name="invented numbers"), values


@functools.lru_cache(maxsize=32)
def points(n: int, d: int, seed: int) -> tuple[dp.Matrix, Floats, Floats]:
    """Vectors of length at most 1 with a target in [-1, 1] that is nearly linear in them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None] * 1.0001
    truth = np.array([0.7, -0.4, 0.3, 0.2])[:d]
    y = np.clip(x @ truth + 0.1 * rng.normal(size=n), -1, 1)
    target = dp.Number(-1, 1, step=Fraction(1, 2**12))
    return dp.Matrix(x, y, features=dp.Vector(d, norm=1), target=target), x, y


def line_risk(loss: Any) -> Risk:
    return Risk(loss, Constant(), "x", Box(0, 1))


def plane_risk(loss: Any = None) -> Risk:
    return Risk(loss or Squared(), VectorColumn("x", intercept=False), "y", Ball(1))


def proposed(risk: Risk, facts: Any, epsilon: float) -> LineExponential | GridExponential:
    """The exponential mechanism of this risk with the highest rate that epsilon admits."""
    return propose(risk, facts=facts, funds=Funds.of(dp.Budget(str(epsilon))))


# --- words ------------------------------------------------------------------------------------------------------------

LINES = report.Grid(
    ("line", "lecture", "discreet"),
    [
        ("given", "a table S, a loss in [0, Delta], a set C", "the same; the loss, its bounds and C are public"),
        ("score", "L(w; S), the mean loss", "the sum of the losses, each rounded to a whole number of small units"),
        (
            "draw",
            "w from C with density proportional to exp(-epsilon n L(w; S) / (2 Delta))",
            "a point of a public grid on C with exactly these probabilities, without floating-point numbers",
        ),
        (
            "price",
            "epsilon, because one row moves L by at most Delta / n",
            "rate times the range of one row's effect, computed for this loss, this C and this kind of neighbour",
        ),
        (
            "time",
            "not efficient in general",
            "milliseconds in one dimension, seconds in up to five (convex losses)",
        ),
    ],
    "The lecture's algorithm, line by line, and ours beside it (discreet.erm.exponential).",
)

THEOREMS = kit.theorems(
    ("problem 1", "the mean is the w with the least mean of (w - x_i)^2", "nothing"),
    ("problem 2", "a median is a w with the least mean of |w - x_i|", "nothing"),
    ("problem 3", "linear regression: the w with the least mean of (y_i - <w, x_i>)^2", "nothing"),
    ("neural networks", "training minimises the same kind of mean; it is not convex", "nothing is promised"),
    ("definition 1", "L(w; S) is the mean of l(w; x_i), plus a regulariser, a term of w alone", "one loss per row"),
    (
        "definition 2",
        "l is Delta-bounded; then replacing one row moves L(w; S) by at most Delta / n",
        "l in [0, Delta]",
    ),
    ("definition 3", "l is G-Lipschitz: |l(v; x) - l(w; x)| <= G |v - w|", "a bound on the slope of l"),
    ("its examples", "|w - x| has G = 1; (w - x)^2 has G = the largest |v + w - 2 x|", "C and the rows bounded"),
    ("theorem: privacy", "the draw is epsilon-private", "l in [0, Delta], rate epsilon / (2 Delta)"),
    (
        "theorem: accuracy",
        "with probability 1 - beta the excess is at most r + t, r = 2 d / (epsilon n), t = (2 / (epsilon n)) "
        "(d ln(2 / r) + ln(1 / beta)); that is O(d G R / (epsilon n) log(epsilon n / (d beta)))",
        "G = R = Delta = 1 here; n >= d / epsilon (slip 2)",
    ),
    (
        "the same, general",
        "(a d / n)(1 + ln(n G D / (a d))) + (a / n) ln(1 / beta), a = 1 / rate, D the diameter of C",
        "G-Lipschitz, n G D >= a d",
    ),
    (
        "lemma: GOOD",
        "GOOD, the points of C with excess at most r, contains a ball of radius r / 2",
        "1-Lipschitz, r <= 2 R",
    ),
    ("lemma: BAD", "P[BAD] <= beta, BAD the points of C with excess at least r + t", "as above"),
    (
        "ours, convex losses",
        "rate n excess is no larger than a Gamma(d, 1) variable: the expected excess is at most a d / n, without a "
        "logarithm",
        "convex loss, convex C",
    ),
)


def statements(here: Settings) -> Shown:
    """The lecture's statements and its algorithm."""
    return Shown([THEOREMS, LINES])


# --- four problems ----------------------------------------------------------------------------------------------------


def four_problems(here: Settings) -> Shown:
    """Mean, median, regression and a small network as empirical risk minimisation, privately."""
    table, values = numbers(here.n, here.seed)
    ones, at = np.ones((here.n, 1)), np.linspace(0, 1, 101)
    lines, checks, found = [], [], []
    for place, (name, loss) in enumerate((("mean", Squared()), ("median", Absolute()))):
        risk, best = line_risk(loss), minimiser(loss, ones, values, Box(0, 1))
        mechanism = proposed(risk, table.facts, here.epsilon)
        drawn = released(mechanism, table, runs=40, seed=here.seed)
        excess = [risk_value(loss, ones, values, np.array([w])) - best.value for w in drawn]
        colour = {"color": SERIES[place]}
        curve, spots = ([(float(w), risk_value(loss, ones, values, np.array([w]))) for w in ws] for ws in (at, drawn))
        lines += [
            Series(f"{name}: L(w)", curve, {**LINE, **colour}),
            Series(f"{name}: 40 private draws", spots, {**DOTS, **colour, "markersize": 4}),
        ]
        bound = float(promised(mechanism, table.facts))
        checks.append(Check(f"{name}: mean excess of 40 draws, against its promise", float(np.mean(excess)), bound))
        found.append((name, float(best.w[0]), float(drawn[0]), bound))
    checks.append(_regression(here))
    checks.append(_network(here))
    finding = " ".join(
        f"The {name} is {number(exact)}; one private draw gave {number(drawn)}." for name, exact, drawn, _ in found
    )
    picture = plot(
        "Mean and median as minima",
        finding,
        f"{here.n:,} numbers between 0 and 1. The squared loss is least at the mean, the absolute loss at the "
        "median; each dot is one "
        f"release at epsilon {here.epsilon:g}.",
        ("problem", "exact", "one private draw", "promised expected excess"),
        found,
        kit.Panel(Scale("w", (0, 1)), Scale("L(w)", log=False), lines),
    )
    return Shown([picture], checks)


def _regression(here: Settings) -> Check:
    data, x, y = points(here.n, 2, here.seed)
    mechanism = proposed(plane_risk(), data.facts, here.epsilon)
    best = minimiser(Squared(), x, y, Ball(1))
    drawn = released(mechanism, data, runs=40, seed=here.seed)
    excess = float(np.mean([risk_value(Squared(), x, y, np.array(w)) - best.value for w in drawn]))
    return Check(
        "regression in two dimensions: mean excess of 40 draws", excess, float(promised(mechanism, data.facts))
    )


def _network(here: Settings) -> Check:
    """One hidden layer on rows that no line separates. Its risk is not convex, so only chance is a bound."""
    rng = np.random.default_rng(here.seed)
    x = rng.uniform(-1, 1, (max(2_000, here.n), 2)) / math.sqrt(2)
    y = ((x[:, 0] * x[:, 1]) > 0).astype(np.int64)
    data = dp.Matrix(x, y, features=dp.Vector(2, norm=1), target=dp.Category(0, 1))
    features = VectorColumn("x", intercept=True)
    funds = Funds.of(dp.Budget(str(max(1.0, here.epsilon)), "1e-6"))
    mechanism = network.propose(features, "y", (8,), facts=data.facts, funds=funds, seed=here.seed)
    (weights,) = released(mechanism, data, runs=1, seed=here.seed)
    shapes = network.layout(features, "y", (8,), data.facts.domain)
    rows_ = np.column_stack([x, np.ones(len(x))])
    wrong = float(np.mean(network.predict_scores(np.asarray(weights), rows_, shapes).argmax(axis=1) != y))
    return Check(
        "a network of 8 units on an XOR pattern: share of mistakes, against guessing (there is no theorem)", wrong, 0.5
    )


# --- the density ------------------------------------------------------------------------------------------------------


def density(here: Settings) -> Shown:
    """The law of the draw on a line, exact and measured, for three values of epsilon."""
    table, _ = numbers(min(here.n, 200), here.seed)
    loss, lines, checks = Absolute(), [], []
    for place, part in enumerate((0.1, 0.3, 1.0)):
        mechanism = proposed(line_risk(loss), table.facts, here.epsilon * part)
        assert isinstance(mechanism, LineExponential)
        sampler = mechanism.sampler(table)
        heights = np.array(sampler.heights(range(2**10 + 1)), dtype=float) * float(sampler.rate)
        mass = np.exp(-(heights - heights.min()))
        mass /= mass.sum()
        drawn = np.array(released(mechanism, table, runs=here.runs, seed=here.seed + place))
        bins = np.linspace(0, 1, 33)
        seen = np.histogram(drawn, bins)[0] / here.runs
        stated = np.histogram(np.arange(2**10 + 1) * float(STEP), bins, weights=mass)[0]
        middles = (bins[1:] + bins[:-1]) / 2
        name, drawn_name = f"epsilon {number(here.epsilon * part)}", f"{here.runs} draws"
        law, spots = kit.points(middles, stated), kit.points(middles, seen)
        lines += both(name, place, law, spots, says="exact law", found=drawn_name, size=3.5)
        far = float(np.abs(np.cumsum(seen) - np.cumsum(stated)).max())
        checks.append(
            Check(
                f"epsilon {number(here.epsilon * part)}: distance of the two distribution functions",
                far,
                math.sqrt(math.log(2e6) / (2 * here.runs)),
            )
        )
    picture = over(
        "The density of the exponential mechanism over C",
        "A smaller epsilon spreads the draw over C; a larger one gathers it at the median.",
        f"The median of {table.facts.size} numbers. Lines: the exact probabilities of 32 bins. Points: the "
        "frequencies of the draws. The bound on the distance of the two distribution functions holds with "
        "probability 1 - 1e-6 (Dvoretzky-Kiefer-Wolfowitz inequality).",
        Scale("w", (0, 1)),
        Scale("probability of a bin", log=False),
        lines,
    )
    return Shown([picture, *_plane_density(here)], checks)


def _plane_density(here: Settings) -> list[Any]:
    """The same in two dimensions, as a map, with draws."""
    data, x, y = points(min(here.n, 100), 2, here.seed)
    mechanism = proposed(plane_risk(), data.facts, here.epsilon)
    drawn = [(float(a), float(b)) for a, b in released(mechanism, data, runs=60, seed=here.seed)]
    grid, rate = np.linspace(-1, 1, 41), float(mechanism.rate)
    value = np.array([[risk_value(Squared(), x, y, np.array([a, b])) for a in grid] for b in grid]) * len(x)
    inside = grid[None, :] ** 2 + grid[:, None] ** 2 <= 1
    law = np.where(inside, np.exp(-rate * (value - value[inside].min())), np.nan)
    best = minimiser(Squared(), x, y, Ball(1))

    def paint(axes: Any) -> None:
        axes.pcolormesh(grid, grid, law, cmap="Blues", shading="nearest")
        kit.disc(axes, best.w, "the minimum")

    lines = [Series("60 private draws", drawn, {**DOTS, "color": SERIES[1], "markersize": 3.5})]
    apart = float(np.mean([np.linalg.norm(np.array(w) - best.w) for w in drawn]))
    finding = f"Sixty private regressions of {len(x)} persons are on average {number(apart)} from the best one."
    ends = (-1.08, 1.08)
    panel = kit.Panel(Scale("w, first coordinate", ends), Scale("w, second coordinate", ends), lines, 5.0, paint=paint)
    rows_ = [(place + 1, *w) for place, w in enumerate(drawn)]
    return [
        plot(
            "The density in the plane",
            finding,
            f"Darker points are more probable at epsilon {here.epsilon:g}. C is the unit disc.",
            ("draw", "first", "second"),
            rows_,
            panel,
        )
    ]


# --- the theorem ------------------------------------------------------------------------------------------------------


def over_n(here: Settings) -> Shown:
    """Excess risk of the median over n, against the lecture's bound and the one without logarithm."""
    sizes = [n for n in (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000) if n <= 10 * here.n]
    measured, lecture, convex, runs = [], [], [], min(here.runs, 60)
    for n in sizes:
        table, values = numbers(n, here.seed, Fraction(1, 2**20))
        mechanism = proposed(line_risk(Absolute()), table.facts, here.epsilon)
        rate, ones = float(mechanism.rate), np.ones((n, 1))
        best = minimiser(Absolute(), ones, values, Box(0, 1)).value
        drawn = released(mechanism, table, runs=runs, seed=here.seed + n)
        excess = np.array([risk_value(Absolute(), ones, values, np.array([w])) - best for w in drawn])
        measured.append((n, np.maximum(excess, 1e-9)))
        tail = lecture_tail(float(n), 1, 1.0, rate)
        lecture.append((n, None if tail is None else tail.excess(rate, n, here.beta)))
        known = promised(mechanism, table.facts, here.beta)
        convex.append((n, None if known.bound is None else known.bound))
    quantiles = [(n, float(np.quantile(each, 1 - here.beta))) for n, each in measured]
    checks = []
    for name, stated in (("the lecture's bound", lecture), ("the bound for convex losses", convex)):
        beyond = [float(np.mean(each > y)) for (_, each), (_, y) in zip(measured, stated, strict=True) if y is not None]
        allowed = kit.frequency_bound(here.beta, runs)
        checks.append(Check(f"share of the draws above {name}, at most", max(beyond, default=0.0), allowed))
    lines = [
        Series("the lecture, with its logarithm", lecture, {**BOUND, "color": kit.FAINT}),
        Series("convex losses, no logarithm", convex, BOUND),
        Series(f"measured, {100 * (1 - here.beta):g} % quantile", quantiles, DOTS),
    ]
    picture = over(
        "Excess risk over n",
        f"At n = {sizes[-1]:,} the measured quantile is {number(quantiles[-1][1])}. The lecture's bound says "
        f"{number(lecture[-1][1] or math.inf)}, the one for convex losses {number(convex[-1][1] or math.inf)}.",
        f"The median of numbers in [0, 1] at epsilon {here.epsilon:g}: G = 1, C = [0, 1], {runs} draws for each "
        "n. The lecture's "
        "logarithm is not needed for convex losses (slip 4). Each draw may be above a bound with probability "
        "beta, and the "
        "checks allow four standard deviations more.",
        Scale("n, persons"),
        Scale(f"excess risk, probability {1 - here.beta:g}"),
        lines,
    )
    return Shown([picture], checks)


def over_d(here: Settings) -> Shown:
    """Mean excess of a regression over d and n, in units of d G R / (epsilon n)."""
    lines, checks = [], []
    sizes = [n for n in (100, 300, 1000, 3000) if n <= 3 * here.n] or [here.n]
    for d in range(1, here.d + 1):
        seen, stated = [], []
        for n in sizes:
            data, x, y = points(n, d, here.seed)
            mechanism = proposed(plane_risk(), data.facts, here.epsilon)
            best = minimiser(Squared(), x, y, Ball(1)).value
            drawn = released(mechanism, data, runs=min(40, here.runs), seed=here.seed + n)
            seen.append((n, float(np.mean([risk_value(Squared(), x, y, np.array(w)) for w in drawn])) - best))
            stated.append((n, convex_tail(d).excess(float(mechanism.rate), n, None) + 1e-9))
        lines += both(f"d = {d}", d - 1, stated, seen, says="a d / n", found="measured")
        worst = kit.largest_ratio(seen, stated)
        checks.append(Check(f"d = {d}: mean excess over a d / n, at most", worst, 1.1))
    picture = over(
        "Excess risk of a regression over n and d",
        "Every measured mean is below its bound, and both grow with d and fall like 1/n.",
        f"Least squares in the unit ball, rows of length at most 1, epsilon {here.epsilon:g}, means of "
        f"{min(40, here.runs)} draws. a = 1/rate is about 2 Delta / epsilon, so the "
        "line is d G R / (epsilon n) with its constant. (The grid adds a little; the checks allow a tenth.)",
        Scale("n, persons"),
        Scale("mean excess risk"),
        lines,
        height=3.4,
    )
    return Shown([picture], checks)


def gamma_tail(here: Settings) -> Shown:
    """The tail of rate n excess, by the exact law of three tables, against exp(-x)."""
    lines, worst = [], 0.0
    grid = np.linspace(0, 8, 81)
    step = Fraction(1, 2**12)
    for name, values in (
        ("all at one end", np.zeros(9)),
        ("spread", np.linspace(0, 1, 9)),
        ("two groups", np.repeat([0.1, 0.9], [5, 4])),
    ):
        table = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step=step)), name=name)
        mechanism = LineExponential(line_risk(Absolute()), 5)
        sampler = mechanism.sampler(table)
        gaps = np.array(sampler.heights(range(2**12 + 1)), dtype=float) * float(sampler.rate)
        gaps -= gaps.min()
        mass = np.exp(-gaps) / np.exp(-gaps).sum()
        tail = [(float(s), float(mass[gaps > s].sum())) for s in grid]
        lines.append(Series(name, [(s, y) for s, y in tail if y > 1e-5], LINE))
        kappa = 2 * 5 * 9 * float(step)  # what the width of a cell may add, twice
        worst = max(worst, max(y / math.exp(kappa - s) for s, y in tail))
    lines.append(Series("exp(-x), the Gamma(1, 1) tail", [(float(s), math.exp(-float(s))) for s in grid], BOUND))
    picture = over(
        "Convex losses need no logarithm",
        "No table has a heavier tail than exp(-x). A table whose values are all at one end attains it.",
        "P[rate n excess > x] for the median of nine numbers, by the exact law on 4,097 points. The curve of the "
        "table at one end lies under the bound. In d dimensions the bound is the tail of a Gamma(d, 1) variable.",
        Scale("x = rate n excess", (0, 8)),
        Scale("probability", log=True, ends=(1e-4, 1.2)),
        lines,
    )
    return Shown([picture], [Check("slip 4: exact tail over exp(-x), with the width of a cell, at most", worst, 1)])


# --- what breaks ------------------------------------------------------------------------------------------------------


def one_row(here: Settings) -> Shown:
    """Why bounds are needed: one row, bounded and unbounded, and how far it moves L and the minimum."""
    _, values = numbers(min(here.n, 200), here.seed)
    n, far = len(values), 100.0
    at = np.linspace(0, 1, 201)

    def risk(rows_: Floats) -> Floats:
        return np.asarray(((at[:, None] - rows_[None, :]) ** 2).mean(axis=1))

    kept, wild = np.r_[values[1:], 1.0], np.r_[values[1:], far]
    base = risk(values)
    moved, blown = float(np.abs(risk(kept) - base).max()), float(np.abs(risk(wild) - base).max())
    lowered = risk(wild) - float(risk(wild).min()) + float(base.min())
    curves = {"L(w; S)": base, "one row replaced by 1": risk(kept), f"one row replaced by {far:g}": lowered}
    lines = [Series(name, kit.points(at, curve), LINE) for name, curve in curves.items()]
    picture = over(
        "The influence of one row must be bounded",
        f"A row in [0, 1] moves L by at most {number(moved)} of the allowed Delta/n = {number(1 / n)}; a row at "
        f"{far:g} moves it by {number(blown)}.",
        f"The squared loss of {n} numbers. The third curve is shifted down to fit: its minimum is at the mean of the "
        f"table with the outlier, {number(float(wild.mean()))}. discreet moves every value into its declared bounds "
        "when the table is read.",
        Scale("w", (0, 1)),
        Scale("L(w)", log=False),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("one bounded row moves L by, against Delta/n", moved, 1 / n),
            Check("one unbounded row moves L by, against Delta/n", blown, 1 / n, "the loss is not bounded"),
        ],
    )


def radius(here: Settings) -> Shown:
    """Slip 1: Delta <= G R does not follow; the exact epsilon of a ball that is charged by its radius."""
    w = np.linspace(-1, 1, 2_001)
    rest = 12 * np.abs(w + 4)  # twelve persons far to the left, so that the draw is near the left end
    claims = (0.25, 0.5, 1.0, 1.5, 2.0)
    found: dict[str, list[tuple[float, float]]] = {"2 G R, the diameter": [], "G R, the radius": []}
    for claimed in claims:
        for into, bound in zip(found.values(), (2.0, 1.0), strict=True):
            rate = claimed / (2 * bound)
            logs = [-rate * (rest + np.abs(w - x)) for x in (-4, 4)]  # the thirteenth person is replaced
            laws = [each - np.logaddexp.reduce(each) for each in logs]
            into.append((claimed, float(np.abs(laws[0] - laws[1]).max())))
    lines = [
        *(Series(f"Delta = {name}", values) for name, values in found.items()),
        Series("the claimed epsilon", [(claimed, claimed) for claimed in claims], BOUND),
    ]
    right, wrong = (max(y / x for x, y in values) for values in found.values())
    swing = float(np.ptp(np.abs(w - 4)))
    picture = over(
        "Delta is G times the diameter",
        f"A draw that is charged with Delta = G R has up to {number(wrong)} times the epsilon that it claims.",
        "The exact law on two neighbouring tables of thirteen persons, absolute loss (G = 1), C the ball [-1, 1] of "
        "radius R = 1. One person moves from the far left to the far right.",
        Scale("claimed epsilon", (0, 2.1)),
        Scale("exact epsilon", log=False),
        lines,
    )
    slip = "slip 1: a G-Lipschitz loss varies by up to 2 G R on a ball of radius R"
    return Shown(
        [picture],
        [
            Check("how far |w - 4| varies over C, against 2 G R", swing, 2),
            Check("how far |w - 4| varies over C, against G R", swing, 1, slip),
            Check("Delta = 2 G R: exact over claimed epsilon, at most", right, 1),
            Check("Delta = G R: exact over claimed epsilon, at most", wrong, 1, slip),
        ],
    )


def good_and_bad(here: Settings) -> Shown:
    """The two sets of the proof, by the exact law on a fine grid: the size of GOOD and the probability of BAD."""
    rng, lines, checks, sizes = np.random.default_rng(here.seed), [], [], []
    side = np.linspace(-1, 1, 121)
    for place, d in enumerate((1, 2)):
        grid = np.stack(np.meshgrid(*[side] * d), axis=-1).reshape(-1, d)
        grid = grid[np.linalg.norm(grid, axis=1) <= 1]
        good, bad = [], []
        for n in (5, 10, 20, 50, 100, 200):
            r = 2 * d / (n * here.epsilon)
            if r > 2:
                continue
            rows_ = rng.normal(0.6, 0.25, (n, d))
            rows_ /= np.maximum(1, np.linalg.norm(rows_, axis=1))[:, None]
            excess = np.mean([np.linalg.norm(grid - row, axis=1) for row in rows_], axis=0)
            excess -= excess.min()
            weight = np.exp(-here.epsilon * n / 2 * excess)
            t = 2 / (here.epsilon * n) * (d * math.log(2 / r) + math.log(1 / here.beta))
            good.append((n, float(np.mean(excess <= r)) / (r / 2) ** d))
            bad.append((n, float(weight[excess >= r + t].sum() / weight.sum())))
        lines.append(Series(f"d = {d}", [(n, y if y > 1e-9 else None) for n, y in bad], {"color": SERIES[place]}))
        sizes.append(Series(f"d = {d}", good, {"color": SERIES[place]}))
        checks.append(Check(f"d = {d}: P[BAD], against beta", max((y for _, y in bad), default=0.0), here.beta))
        least = min((y for _, y in good), default=1.0)
        checks.append(Check(f"d = {d}: share of a ball of radius r / 2 in C over the share of GOOD", 1 / least, 1))
    ends = (5.0, 200.0)
    lines.append(kit.level("beta", here.beta, ends))
    sizes.append(kit.level("1, what the proof uses", 1, ends))
    picture = plot(
        "Inside the proof: GOOD and BAD",
        "GOOD is larger than the ball that the proof puts into it, and BAD is less likely than beta.",
        "The loss is the distance |w - x| in the unit ball, so G = R = 1. Above: the exact probability of BAD, the "
        "points with excess at least r + t (left out where it is 0). Below: the volume of GOOD, the "
        "points with excess at most r, over that of a ball of radius r / 2. Points where r > 2 are left out: there "
        "is no such ball (slip 2).",
        ("d", "n", "P[BAD]", "volume of GOOD over that of the ball"),
        [
            (place + 1, n, y, z)
            for place in (0, 1)
            for (n, y), (_, z) in zip(lines[place].points, sizes[place].points, strict=True)
        ],
        kit.Panel(Scale("n, persons"), Scale("P[BAD]"), lines, 2.7, columns=3),
        kit.Panel(Scale("n, persons"), Scale("volume ratio"), sizes, 2.5, columns=3),
    )
    return Shown([picture], checks)


def over_epsilon(here: Settings) -> Shown:
    """What epsilon buys: the excess of the median over epsilon, and the odds that the same epsilon concedes."""
    epsilons, runs = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0], min(here.runs, 40)
    table, values = numbers(here.n, here.seed, Fraction(1, 2**20))
    ones = np.ones((here.n, 1))
    best, seen, stated = minimiser(Absolute(), ones, values, Box(0, 1)).value, [], []
    for epsilon in epsilons:
        mechanism = proposed(line_risk(Absolute()), table.facts, epsilon)
        drawn = released(mechanism, table, runs=runs, seed=here.seed)
        seen.append(
            (epsilon, float(np.mean([risk_value(Absolute(), ones, values, np.array([w])) for w in drawn])) - best)
        )
        stated.append((epsilon, float(promised(mechanism, table.facts))))
    lines = both("median", 0, stated, seen, says="promised mean excess", found=f"mean of {runs} draws")
    low, high = stated[0], stated[-1]
    picture = kit.bargain(
        f"The promised excess falls from {number(low[1])} at epsilon {low[0]:g} to {number(high[1])} at epsilon "
        f"{high[0]:g}.",
        f"for the median of {here.n:,} numbers in [0, 1] a hundred times the epsilon buys a hundredth of the excess, "
        "until the excess is as large as it can be.",
        "excess risk",
        epsilons,
        lines,
    )
    return Shown([picture], [Check("mean excess over its promise, at most", kit.largest_ratio(seen, stated), 1)])


def few_people(here: Settings) -> Shown:
    """Slip 2: the lecture's r + t below n = d / epsilon, where its proof does not hold, against measured excess."""
    epsilon, shares = 0.001, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    beta, formula, seen, ours = 0.5, [], [], []
    for share in shares:
        n = round(share / epsilon)
        table, values = numbers(n, here.seed)
        ones = np.ones((n, 1))
        rate = epsilon / 2  # the lecture's, Delta = 1
        mechanism = LineExponential(line_risk(Absolute()), Fraction(str(rate)))
        best = minimiser(Absolute(), ones, values, Box(0, 1)).value
        drawn = released(mechanism, table, runs=60, seed=here.seed)
        excess = float(
            np.quantile([risk_value(Absolute(), ones, values, np.array([w])) - best for w in drawn], 1 - beta)
        )
        # r + t with G = R = 1 and C = [0, 1], whose diameter is 1 where the lecture's ball has 2.
        formula.append((share, 2 / (n * epsilon) * (1 + math.log(n * epsilon) + math.log(1 / beta))))
        tail = lecture_tail(float(n), 1, 1.0, rate)
        ours.append((share, None if tail is None else tail.excess(rate, n, beta)))
        seen.append((share, excess))
    lowest = min(y for _, y in formula)
    lines = [
        Series("the formula r + t, wherever it leads", formula, {"color": SERIES[3], "markersize": 4}),
        Series("general bound for C = [0, 1], n >= 2 d / epsilon", ours, {**BOUND, "marker": "o", "markersize": 4}),
        Series("measured median of the excess", seen, {**DOTS, "color": SERIES[0]}),
    ]
    picture = over(
        "Few people: the theorem needs n >= d / epsilon",
        f"Below n = d / epsilon the formula falls to {number(lowest)}: less than any excess can be.",
        "The median of a few numbers at epsilon 0.001, beta = 1/2. The proof puts a ball of radius r / 2, r = 2 d / "
        "(epsilon n), into C, so it needs r <= 2 R: n >= d / epsilon if R = 1, as in the formula. C = [0, 1] has R = "
        "1/2, so the general bound needs n >= 2 d / epsilon. discreet promises nothing below that.",
        Scale("n epsilon / d"),
        Scale("excess risk", (max(-60.0, lowest * 1.1), 9), log=False),
        lines,
        columns=1,
    )
    worst = max(y - z for (_, y), (_, z) in zip(seen, formula, strict=True))
    good = [y / z for (_, y), (_, z) in zip(seen, ours, strict=True) if z is not None]
    return Shown(
        [picture],
        [
            Check("measured excess minus the formula, at most 0", worst, 0, "slip 2: the proof needs n >= d / epsilon"),
            Check("measured excess over the general bound, where n >= 2 d / epsilon", max(good, default=0.0), 1),
        ],
    )


def twenty_four(here: Settings) -> Shown:
    """Slip 3: the exponent epsilon n / 24 is private for small Delta only; exact epsilons over Delta."""
    right: list[tuple[float, float]] = []
    wrong: list[tuple[float, float]] = []
    for wide in (1, 2, 4, 8, 12, 16, 24, 48):
        for rate, into in ((Fraction(1, 2 * wide), right), (Fraction(1, 24), wrong)):
            domain = dp.Domain(x=dp.Number(0, wide, step=Fraction(wide, 2)))
            risk = Risk(Absolute(), Constant(), "x", Box(0, wide))
            attack = Attack(
                LineExponential(risk, rate),
                Setting(domain, Neighbours("replace-one")),
                tuple({"x": x} for x in (wide, wide, wide, 0)),
                tuple({"x": x} for x in (wide, wide, wide, wide)),
                mutants.add_remove_price,
                attempt=attempt_line,
                reach=4,
            )
            into.append((wide, epsilon_at(attack.law(attack.first), attack.law(attack.second), 0.0)))
    lines = [
        Series("rate epsilon / (2 Delta)", right),
        Series("rate epsilon / 24", wrong),
        Series("epsilon, claimed", [(wide, 1.0) for wide, _ in right], BOUND),
    ]
    worst = max(y for _, y in wrong)
    picture = over(
        "The exponent epsilon n / 24",
        f"With 24 in place of 2 Delta the exact epsilon is up to {number(worst)} of a claimed 1.",
        "Exact, on two tables of four persons with values in [0, Delta], absolute loss. One copy of the notes "
        "reads 24 where 2 Delta "
        "belongs: too much noise for Delta < 12, too little above.",
        Scale("Delta, the bound of the loss", ticks=[1, 2, 4, 8, 16, 48]),
        Scale("exact epsilon"),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("rate epsilon / (2 Delta): exact epsilon", max(y for _, y in right), 1),
            Check("rate epsilon / 24: exact epsilon", worst, 1, "slip 3: 24 is printed where 2 Delta belongs"),
        ],
    )


def attack(here: Settings) -> Shown:
    """Three mechanisms of this lecture and a broken twin of each: exact epsilons."""
    names = ("LineExponential", "RankQuantile", "GridExponential")
    return kit.twins(
        (each for each in examples() if each.name in names),
        "The certain epsilon of each twin is above the epsilon that it claims.",
        "LineExponential draws in one dimension, GridExponential in several, RankQuantile draws a quantile. Each twin "
        "charges less than one person can change; the exact probabilities on two neighbouring tables prove it.",
        {},
        by_mistake=False,
    )


LAB = kit.Lab(
    9,
    "Lab 9: private empirical risk minimisation",
    "Means, medians, regressions and networks are all solutions of one problem: find the point with the least mean "
    "loss. A random draw that prefers good points solves it privately.",
    Settings(),
    [
        Section(
            "One problem with many names",
            "A loss l(w; x) says how badly a point w fits a row x. The empirical risk L(w; S) is the mean loss over "
            "the n rows of the table S. Solutions come from a set C of allowed points, and the excess risk of w is "
            "L(w; S) minus the least value on C.\n\n"
            "The exponential mechanism draws w from C with density proportional to exp(-rate n L(w; S)): good points "
            "are likely, and the number called rate says how much likelier. One person changes n L by at most the "
            "range of one loss. So the probability of each outcome changes by at most a bounded factor, and that is "
            "what epsilon measures.\n\n"
            "With losses in [0, Delta] the rate is epsilon / (2 Delta). A replaced row changes exp(-rate n L(w; S)) by "
            "a factor of at most e^(rate Delta) at every w. The normalising constant, the integral of this function "
            "over C, changes by at most the same factor. Their ratio, the density, changes by at most e^(2 rate "
            "Delta): that is where the 2 comes from.",
            statements,
        ),
        Section(
            "Four problems",
            "The lecture's examples, each solved privately: a mean, a median, a regression and a small network. "
            "The network's risk is not convex; "
            "no theorem bounds its excess, and the lab compares it with guessing.",
            four_problems,
        ),
        Section(
            "The density over C",
            "The probability of each point is known exactly, so the draws can be compared with it. Epsilon decides "
            "how narrow the density is.",
            density,
        ),
        Section(
            "The theorem: excess risk over n",
            "The lecture's bound has a logarithm. It comes from comparing the volume of all of C with that of a "
            "small ball around the minimum. Convex losses do not need it.",
            over_n,
        ),
        Section(
            "Inside the proof",
            "The proof compares two sets: GOOD, where the excess is at most r, and BAD, where it is at least r + t. "
            "GOOD is large enough that the draw misses BAD.",
            good_and_bad,
        ),
        Section(
            "d G R / (epsilon n)",
            "In d dimensions the draw has to hit a small ball around the minimum, and the volume of a ball of radius "
            "r falls like r^d. The excess therefore grows in proportion to d.",
            over_d,
        ),
        Section(
            "No logarithm for convex losses",
            "Slip 4 is a gift: for convex losses the probability that rate n excess is above x is at most exp(-x) in "
            "one dimension, so the lecture's logarithm can be dropped.",
            gamma_tail,
        ),
        Section(
            "Without a bound on one row",
            "Definition 2 asks for a bounded loss. Without a bound one person decides where the minimum is.",
            one_row,
        ),
        Section(
            "Radius or diameter",
            "The lecture takes Delta <= G R for a G-Lipschitz loss on a ball of radius R. But two points of that "
            "ball can be 2 R apart, so the loss can vary by 2 G R.",
            radius,
        ),
        Section(
            "Too few people",
            "The proof needs a ball of radius r / 2 that fits into C. With few people r is larger than C.",
            few_people,
        ),
        Section(
            "A misprinted constant",
            "One copy of the notes prints the density exp(-epsilon n L / 24) where exp(-epsilon n L / (2 Delta)) "
            "belongs.",
            twenty_four,
        ),
        Section(
            "What epsilon buys",
            "Epsilon is paid in odds about single persons and buys accuracy. Both sides of the bargain in one picture:",
            over_epsilon,
        ),
        Section(
            "Attacks on broken twins",
            "Each twin draws with the right probabilities and charges too little. Two neighbouring tables and the "
            "exact probabilities of the draws prove it.",
            attack,
        ),
    ],
    words=(
        ("<w, x>", "the inner product w_1 x_1 + ... + w_d x_d; |w| is the length of a vector"),
        (
            "Delta",
            "the bound on the loss of one row: l in [0, Delta]. It is a size, and not the probability delta",
        ),
        ("convex", "shaped like a bowl: no point between two others lies above the line that joins them"),
        ("Lipschitz", "G-Lipschitz: nowhere steeper than G"),
        ("R, D", "the radius and the diameter of C: D = 2 R for a ball"),
        ("rate, a", "the factor in the exponent of the density, and a = 1 / rate"),
        ("promise", "a bound that a theorem gives in advance, from public numbers alone"),
    ),
)
