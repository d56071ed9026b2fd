# ruff: noqa: N806
"""Lab 10: noisy projected gradient descent. Iterates, lemmas, theorems 1 to 3, composition, and what breaks."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import discreet as dp
from discreet import composition, report
from discreet.audit.examples import examples
from discreet.audit.mutants import Twin
from discreet.erm.descent import Average, ConstantRate, Descent, propose
from discreet.erm.feasible_sets import Ball, Box
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Absolute, Custom, Hinge
from discreet.erm.nonprivate import Minimum, descend, minimiser, risk_gradient, risk_value
from discreet.erm.risk import Risk
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Guarantee
from discreet.mechanisms import (
    CoordinateLaplace,
    CoordinateLaplaceNoise,
    Gaussian,
    GaussianNoise,
    ProductLaplace,
    calibrate,
)
from discreet.query import VectorSum
from discreet.rng import SeededRng

from . import kit
from .kit import BOUND, DOTS, LINE, SERIES, Check, Scale, Section, Series, Shown, both, number, over, plot, released

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings(kit.Checked):
    """The numbers of lab 10."""

    n: int = kit.setting(2_000, "invented persons", least=50, most=200_000)
    d: int = kit.setting(5, "coordinates of the model", least=2, most=100)
    epsilon: float = kit.epsilon_setting()
    delta: float = kit.delta_setting()
    steps: int = kit.setting(64, "T, the steps of a descent", most=1_000)
    runs: int = kit.setting(12, "independent runs behind each measured mean", least=2, most=1_000)
    seed: int = kit.seed_setting(10)


# --- the invented people ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class People:
    """Rows of length at most 1 with a label, and the hinge loss of a linear rule in the unit ball: G = 1, R0 = 1."""

    x: Floats
    y: npt.NDArray[np.int64]
    data: dp.Matrix
    risk: Risk
    best: Minimum

    def excess(self, w: Floats) -> float:
        return risk_value(self.risk.loss, self.x, self.y, w) - self.best.value


@functools.lru_cache(maxsize=8)
def people(n: int, d: int, seed: int) -> People:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None] * 1.0001
    truth = np.r_[1.0, -0.6, np.zeros(d - 2)]
    y = (x @ truth + 0.25 * rng.normal(size=n) > 0).astype(np.int64)
    data = dp.Matrix(x, y, features=dp.Vector(d, norm=1), target=dp.Category(0, 1))
    risk = Risk(Hinge(), VectorColumn("x", intercept=False), "y", Ball(1))
    return People(x, y, data, risk, minimiser(risk.loss, x, y, risk.feasible))


class Trail(ConstantRate):
    """Average descent that returns every iterate, w_0 to w_T: functions of the same noisy gradients, so as private."""

    NAME: ClassVar[str] = "lab-trail/1"

    def descend(self, gradient: Any, shrink: Any, start: Floats, steps: int, *, smooth: bool) -> Floats:
        rate, trail = float(self.rate), [start]
        for step in range(steps):
            trail.append(shrink(trail[-1] - rate * gradient(trail[-1], step), rate))
        return np.array(trail)

    def expected(self, known: Any, steps: int, variance: float) -> float:
        return Average(self.rate).expected(known, steps, variance)

    @staticmethod
    def best_rate(known: Any, steps: int, variance: float) -> float:
        return Average.best_rate(known, steps, variance)


def proposed(
    budget: dp.Budget, those: People, *, noise: Any = GaussianNoise, steps: int, schedule: Any = Average
) -> Descent:
    """The descent of this many steps with the least noise that the budget admits."""
    funds = Funds.of(budget)
    return propose(those.risk, facts=those.data.facts, funds=funds, noise=noise, schedule=schedule, steps=steps)


# --- words ------------------------------------------------------------------------------------------------------------

LINES = report.Grid(
    ("line", "PGD", "Noisy PGD", "discreet"),
    [
        ("1", "w_0 <- any point of C", "the same", "w_0 <- the centre of C (public)"),
        (
            "2a",
            "g_t <- grad L(w_(t-1); S)",
            "the same",
            "the gradient of each row, shortened to length G and rounded to integers; their exact sum",
        ),
        (
            "2b",
            "",
            "g_t + Lap(b)^d, b = Theta(G sqrt(T d log(1/delta)) / (n epsilon))",
            "plus whole-number Gaussian noise, with the least scale at which T steps fit the budget",
        ),
        (
            "2c",
            "u_t <- w_(t-1) - eta g_t",
            "the same with the noisy gradient",
            "the same; eta is computed from n, d and the budget, never from the rows",
        ),
        ("2d", "w_t <- projection of u_t on C", "the same", "the same"),
        (
            "3",
            "return the mean of w_1, ..., w_T",
            "the same",
            "the mean for losses with corners, an accelerated sequence for smooth ones (Nesterov: error 1/T^2)",
        ),
        (
            "price",
            "not private",
            "T d Laplace mechanisms, strong composition",
            "T Gaussian mechanisms on vectors, added up as Renyi divergences; charged before line 1",
        ),
    ],
    "The lecture's two algorithms, line by line, and ours beside them: erm.descent.Descent.",
)

THEOREMS = kit.theorems(
    ("lemma 1", "|grad f(x)| <= G", "f convex and G-Lipschitz around x (at the edge of C it fails: slip 4)"),
    ("lemma 2", "|P(x) - w| <= |x - w| for every w of C, P the projection on C", "C closed and convex"),
    (
        "lemma 3",
        "L(w_t) - L(w*) <= eta |g_(t+1)|^2 / 2 + (|w_t - w*|^2 - |w_(t+1) - w*|^2) / (2 eta)",
        "L convex",
    ),
    (
        "theorem 1",
        "the mean of the iterates has an excess of at most R G / sqrt T, with eta = R / (G sqrt T)",
        "L convex and G-Lipschitz; R the diameter of C, or the distance of the start from w*",
    ),
    ("lemma 4", "lemma 3 in expectation, with the noisy gradient", "noise of mean 0, independent of the past"),
    (
        "theorem 2",
        "expected excess <= (eta / 2)(G^2 + V) + R^2 / (2 eta T), V the expected squared length of the noise; in the "
        "lecture eta G^2 (1 + T d^2 ln(1/delta) / (n epsilon)^2) + R^2 / (eta T), up to a constant",
        "as theorem 1 and lemma 4",
    ),
    (
        "its T",
        "T = (epsilon n)^2 / (d^2 ln(1/delta)) and eta = R / (G sqrt T) give about G R / sqrt T",
        "T whole and at least 1 (slip 8)",
    ),
    ("option A", "a sum of vectors + Lap(D d / epsilon) on each coordinate is epsilon-private", "rows of length <= D"),
    (
        "option B",
        "Lap(D sqrt(d ln(1/delta)) / epsilon), up to a constant, is (epsilon, delta)-private",
        "strong composition over d coordinates",
    ),
    (
        "theorem 3",
        "Lap(D sqrt(ln(1/delta)) / epsilon) on each coordinate is (epsilon, delta)-private. False with constant 1 "
        "(slip 5). True: scale D / sqrt(2 rho), rho the zCDP of (epsilon, delta)",
        "rows of length <= D",
    ),
    (
        "strong composition",
        "k mechanisms of (epsilon, delta) are (sqrt(2 k ln(1/(k delta))) epsilon + 2 k epsilon^2, 2 k delta) together",
        "epsilon <= 1, k delta < 1 (slip 6)",
    ),
    (
        "its corollary",
        "(e, d) together, if each has (e / (2 sqrt(2 k ln(1/d))), d / (2 k)), up to a constant",
        "e <= 1",
    ),
    (
        "different parameters",
        "(2 sum epsilon_i^2 + sqrt(2 sum epsilon_i^2 ln(1/delta)), delta) together",
        "mechanisms with delta = 0",
    ),
)


def statements(here: Settings) -> Shown:
    """The lecture's statements and its algorithm."""
    return Shown([THEOREMS, LINES])


# --- iterates ---------------------------------------------------------------------------------------------------------


def iterates(here: Settings) -> Shown:
    """The path of a descent in the plane, without and with noise, and lemmas 2 and 3 at every step."""
    those = people(here.n, 2, here.seed)
    loss, feasible, best = those.risk.loss, those.risk.feasible, those.best
    steps = min(here.steps, 40)
    rate = 1 / math.sqrt(steps)
    start = np.array([-0.5, -0.6])
    exact_path = descend(loss, those.x, those.y, feasible, start=start, rate=rate, steps=steps)
    noisy = proposed(here.budget, those, steps=steps, schedule=Trail)
    assert isinstance(noisy.schedule, Trail)
    own_rate = float(noisy.schedule.rate)
    centred = descend(loss, those.x, those.y, feasible, start=np.zeros(2), rate=own_rate, steps=steps)
    (noisy_path,) = released(noisy, those.data, runs=1, seed=here.seed)
    nearer, progress, before_projection = [], [], []
    for t in range(steps):
        slope = risk_gradient(loss, those.x, those.y, exact_path[t])
        u = exact_path[t] - rate * slope
        before_projection.append(u)
        nearer.append(
            float(np.linalg.norm(feasible.project(u) - best.w)) / max(1e-12, float(np.linalg.norm(u - best.w)))
        )
        apart = [float((each - best.w) @ (each - best.w)) for each in exact_path[t : t + 2]]
        progress.append(
            those.excess(exact_path[t]) / (rate / 2 * float(slope @ slope) + (apart[0] - apart[1]) / (2 * rate))
        )
    outside = [(float(u[0]), float(u[1])) for u in before_projection if np.linalg.norm(u) > 1]

    def paint(axes: Any) -> None:
        grid = np.linspace(-1.15, 1.15, 47)
        values = np.array(
            [[risk_value(loss, those.x[:2000], those.y[:2000], np.array([a, b])) for a in grid] for b in grid]
        )
        axes.contour(grid, grid, values, 14, colors=[kit.FAINT], linewidths=0.6)
        kit.disc(axes, best.w, "w*, the minimum")

    lines = [
        Series(
            "PGD: w_0, w_1, ...", [(float(a), float(b)) for a, b in exact_path], {"markersize": 3.5, "linewidth": 1.2}
        ),
        Series("Noisy PGD", [(float(a), float(b)) for a, b in noisy_path], {"markersize": 3.5, "linewidth": 1.0}),
        Series("u_t before its projection", outside, {**DOTS, "markersize": 4, "marker": "x", "color": SERIES[3]}),
    ]
    finding = (
        f"After {steps} steps the mean of the exact iterates is "
        f"{number(those.excess(exact_path[1:].mean(axis=0)))} above the "
        f"minimum and that of the noisy ones {number(those.excess(noisy_path[1:].mean(axis=0)))}."
    )
    square = Scale("w, first coordinate", (-1.2, 1.2)), Scale("w, second coordinate", (-1.2, 1.2))
    rows = [(t, *map(float, exact_path[t]), *map(float, noisy_path[t])) for t in range(steps + 1)]
    picture = plot(
        "The iterates and the projection, in the plane",
        finding,
        "Thin lines join points of equal risk; C is the unit disc. The whole noisy path may be shown at "
        f"({here.epsilon:g}, {here.delta:g}), because iterates are functions of the noisy gradients. The two paths "
        "cannot be compared: the exact one begins far from w*, so that steps leave C; the noisy one begins at the "
        "centre, with a step size of its own. Exact descent with that start and that step size ends "
        f"{number(those.excess(centred[1:].mean(axis=0)))} above the minimum; a single noisy run may be luckier.",
        ("t", "exact, first", "exact, second", "noisy, first", "noisy, second"),
        rows,
        kit.Panel(*square, lines, 5.4, paint=paint),
    )
    return Shown(
        [picture],
        [
            Check("lemma 2: distance to w* after the projection over before, at most", max(nearer), 1),
            Check("lemma 3: excess of a step over what the lemma allows, at most", max(progress), 1),
        ],
    )


# --- theorem 1 --------------------------------------------------------------------------------------------------------


def powers(most: int) -> list[int]:
    return [2**k for k in range(most.bit_length()) if 2**k <= most]


def theorem_1(here: Settings) -> Shown:
    """Excess risk of PGD over T against R G / sqrt T: on the people, and on the instance that makes it nearly tight."""
    those = people(here.n, here.d, here.seed)
    counts = powers(max(here.steps, 16))
    measured, tight, slipped, last = [], [], [], []
    wide = 10.0
    for T in counts:
        path = descend(
            those.risk.loss, those.x, those.y, Ball(1), start=np.zeros(here.d), rate=1 / math.sqrt(T), steps=T
        )
        measured.append((T, those.excess(path[:-1].mean(axis=0))))
        end = those.excess(path[-1])
        last.append((T, end if end > 0.02 else None))
        line = descend(
            Absolute(),
            np.ones((1, 1)),
            -np.ones(1),
            Box(0, wide),
            start=np.array([wide]),
            rate=wide / math.sqrt(T),
            steps=T,
        )
        tight.append((T, float(line[:-1].mean()) / wide))
        slipped.append((T, (wide + 1) / (2 * math.sqrt(T)) / wide))
    bound = [(T, 1 / math.sqrt(T)) for T in counts]
    lines = [
        Series("theorem 1, R G / sqrt T", bound, BOUND),
        Series("a slope that ends at a wall", tight, {**DOTS, "color": SERIES[1]}),
        Series("the people", [(T, max(y, 1e-6)) for T, y in measured], {**DOTS, "color": SERIES[0]}),
        Series("the people, last iterate", last, {**DOTS, "color": SERIES[2]}),
        Series("with R where R^2 belongs", slipped, {"marker": None, "color": SERIES[3]}),
    ]
    picture = over(
        "Theorem 1: without noise",
        "No run is above R G / sqrt T; the slope that ends at a wall comes within a factor three of it.",
        "In units of R G, R the distance of the start from w*, the mean over w_0 to w_(T-1). The slope is |w| on [0, "
        "10], begun at 10, so R = 10. The lecture's proof writes |w_1 - w*|^2 <= R where R^2 belongs. Taken "
        "literally that would promise (R + 1) / 2 instead of R, and the slope refutes it. 'Sometimes the last point "
        "is better', says the lecture: here it is, without a theorem (below 0.02 it is not drawn).",
        Scale("T, steps"),
        Scale("excess risk / (R G)"),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("the people: excess sqrt T / (R G), at most", max(y * math.sqrt(T) for T, y in measured), 1),
            Check("the slope: excess sqrt T / (R G), at most", max(y * math.sqrt(T) for T, y in tight), 1),
            Check(
                "the slope against the bound with R instead of R^2, ratio",
                max(y / z for (_, y), (_, z) in zip(tight, slipped, strict=True)),
                1,
                "slip 2: |w_1 - w*|^2 is at most R^2, not R",
            ),
        ],
    )


def lemma_4(here: Settings) -> Shown:
    """The progress of a noisy step on average: noise of mean 0 keeps it, noise with a drift does not."""
    those = people(here.n, here.d, here.seed)
    w, rate, runs = np.zeros(here.d), 0.05, 20_000
    toward = (those.best.w - w) / np.linalg.norm(those.best.w - w)
    slope = risk_gradient(those.risk.loss, those.x, those.y, w)
    drawn = SeededRng(here.seed).laplace(Fraction(64), (runs, here.d)) / 64
    excess = those.excess(w)
    points = []
    for drift in (0.0, 0.25, 0.5, 0.75, 1.0):
        noisy = slope + drawn + drift * toward
        u = w - rate * noisy
        after = u / np.maximum(1, np.linalg.norm(u, axis=1))[:, None]
        change = float((w - those.best.w) @ (w - those.best.w)) - ((after - those.best.w) ** 2).sum(axis=1)
        allowed = rate / 2 * (noisy**2).sum(axis=1) + change / (2 * rate)
        points.append((drift, float(allowed.mean() + 5 * allowed.std() / math.sqrt(runs))))
    lines = [
        Series("right side of lemma 4, mean over runs", points),
        Series("left side: excess of w_t", [(drift, excess) for drift, _ in points], BOUND),
    ]
    broken = points[-1][1]
    picture = over(
        "Lemma 4: noise must have mean 0",
        f"With mean 0 the right side is {number(points[0][1])}, above the excess {number(excess)}; with a drift "
        "of 1 it is "
        f"{number(broken)}.",
        f"{runs:,} noisy steps from the centre of C, Laplace noise of scale 1 on every coordinate plus a drift away "
        "from w*. Lemma 4 says that the blue line lies above the black one: true at drift 0, false as soon as the "
        "drift is a little larger.",
        Scale("drift of the noise", (-0.02, 1.02)),
        Scale("risk", log=False),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("mean 0: left side against the right side", excess, points[0][1]),
            Check("drift 1: left side against the right side", excess, broken, "the noise has a mean: lemma 4 needs 0"),
        ],
    )


# --- theorem 2 --------------------------------------------------------------------------------------------------------


def theorem_2(here: Settings) -> Shown:
    """Excess risk over T with its minimum, for Gaussian noise and for the lecture's Laplace noise on coordinates."""
    those = people(here.n, here.d, here.seed)
    counts = [T for T in powers(1024) if 8 * here.steps >= T]
    kinds: dict[str, tuple[Any, dp.Budget]] = {
        "Gaussian": (GaussianNoise, here.budget),
        "coordinates, strong": (CoordinateLaplaceNoise, here.budget),
        "coordinates, basic": (CoordinateLaplaceNoise, dp.Budget(here.budget.epsilon)),
    }
    far = [*counts, *(T for T in powers(2**14) if counts[-1] < T)]
    without = [(T, 1 / math.sqrt(T)) for T in far]
    lines = [Series("without noise, R G / sqrt T", without, {**BOUND, "color": kit.FAINT})]
    checks, best = [], {}
    for place, (name, (noise, budget)) in enumerate(kinds.items()):
        stated, seen = [], []
        for T in far:
            mechanism = proposed(budget, those, noise=noise, steps=T)
            variance = here.d * mechanism.noise.variance() / here.n**2
            known = those.risk.constants(those.data.facts)
            stated.append((T, mechanism.schedule.expected(known, T, variance)))
            if T in counts:
                values = released(mechanism, those.data, runs=here.runs, seed=here.seed + T)
                seen.append((T, float(np.mean([those.excess(w) for w in values]))))
        lines += both(name, place, stated, seen, says="promised", found="measured")
        worst = kit.largest_ratio(seen, stated[: len(seen)])
        checks.append(Check(f"{name}: mean excess over theorem 2, at most", worst, 1))
        best[name] = min(stated, key=lambda point: point[1])
    finding = " ".join(
        f"{name}: of these T the promise is least at {T:,}, where it is {number(y)}." for name, (T, y) in best.items()
    )
    picture = over(
        "Theorem 2: more steps, more noise for each",
        finding,
        f"n = {here.n:,}, d = {here.d}, means of {here.runs} runs up to T = {counts[-1]}. All T steps share one "
        "budget, so the noise of each step grows with T. With basic composition (delta = 0) its standard deviation "
        "grows like T, and the promise has a minimum. With strong composition and for the Gaussian it grows like "
        "sqrt T, and the promise falls to a floor, from which more steps only cost time.",
        Scale("T, steps"),
        Scale("excess risk"),
        lines,
        height=3.8,
    )
    return Shown([picture], checks)


def lecture_T(here: Settings) -> Shown:  # noqa: N802
    """Slip 8: the lecture's T over n, the whole number of steps that can be made of it, and the excess there."""
    sizes = [n for n in (10, 20, 50, 100, 200, 500, 1000, 2000) if n <= here.n]
    wanted, whole, stated, seen = [], [], [], []
    for n in sizes:
        T = here.epsilon**2 * n**2 / (here.d**2 * math.log(1 / here.delta))
        steps = min(512, max(1, math.floor(T)))
        those = people(n, here.d, here.seed)
        mechanism = proposed(here.budget, those, noise=CoordinateLaplaceNoise, steps=steps)
        variance = here.d * mechanism.noise.variance() / n**2
        values = released(mechanism, those.data, runs=here.runs, seed=here.seed + n)
        wanted.append((n, T))
        whole.append((n, float(steps)))
        stated.append((n, mechanism.schedule.expected(those.risk.constants(those.data.facts), steps, variance)))
        seen.append((n, float(np.mean([those.excess(w) for w in values]))))
    least = wanted[0]
    picture = plot(
        "The lecture's T is not always a number of steps",
        f"At n = {least[0]} the lecture's T is {number(least[1])}: less than one step.",
        "Above: T = (epsilon n)^2 / (d^2 ln(1/delta)), and the steps that are made: at least 1, here at most 512. "
        "Below: the mean excess of the lecture's Noisy PGD with these steps, and what theorem 2 promises for them. "
        "Where T is below 1 the promise is larger than any excess can be.",
        ("n", "the lecture's T", "steps", "promised", "measured"),
        [(n, y, z, a, b) for (n, y), (_, z), (_, a), (_, b) in zip(wanted, whole, stated, seen, strict=True)],
        kit.Panel(
            Scale("n, persons"),
            Scale("T"),
            [
                Series("the lecture's T", wanted),
                Series("steps that are made", whole, DOTS),
                kit.level("one step", 1, (sizes[0], sizes[-1])),
            ],
            2.7,
            columns=3,
        ),
        kit.Panel(
            Scale("n, persons"),
            Scale("excess risk"),
            both("Noisy PGD", 0, stated, seen, says="promised", found="measured"),
            2.6,
        ),
    )
    return Shown(
        [picture],
        [
            Check("mean excess over theorem 2 at these steps, at most", kit.largest_ratio(seen, stated), 1),
            Check(
                f"one step over the lecture's T at n = {least[0]}",
                1 / least[1],
                1,
                "slip 8: T must be whole and at least 1",
            ),
        ],
    )


def over_epsilon(here: Settings) -> Shown:
    """What epsilon buys: the excess of a private model over epsilon, and the odds that the same epsilon concedes."""
    those, epsilons = people(here.n, here.d, here.seed), [0.03, 0.1, 0.3, 1.0, 3.0]
    stated, seen = [], []
    for epsilon in epsilons:
        mechanism = proposed(dp.Budget(str(epsilon), str(here.delta)), those, steps=here.steps)
        variance = here.d * mechanism.noise.variance() / here.n**2
        stated.append(
            (epsilon, mechanism.schedule.expected(those.risk.constants(those.data.facts), here.steps, variance))
        )
        values = released(mechanism, those.data, runs=here.runs, seed=here.seed)
        seen.append((epsilon, float(np.mean([those.excess(w) for w in values]))))
    path = descend(
        those.risk.loss,
        those.x,
        those.y,
        Ball(1),
        start=np.zeros(here.d),
        rate=1 / math.sqrt(here.steps),
        steps=here.steps,
    )
    bare = those.excess(path[:-1].mean(axis=0))
    lines = [
        *both("Gaussian", 0, stated, seen, says="promised", found="measured"),
        kit.level("measured without noise", bare, (epsilons[0], epsilons[-1]), color=kit.FAINT),
    ]
    picture = kit.bargain(
        f"The mean excess falls from {number(seen[0][1])} at epsilon {epsilons[0]:g} to {number(seen[-1][1])} at "
        f"epsilon {epsilons[-1]:g}; without noise it is {number(bare)}.",
        f"T = {here.steps} Gaussian steps, n = {here.n:,}, d = {here.d}. From some epsilon on more of it buys nothing, "
        "because the steps and not the noise decide.",
        "excess risk",
        epsilons,
        lines,
    )
    return Shown([picture], [Check("mean excess over its promise, at most", kit.largest_ratio(seen, stated), 1)])


# --- four noises ------------------------------------------------------------------------------------------------------


def noises(here: Settings) -> Shown:
    """The standard deviation that each noise needs for one vector sum at the same (epsilon, delta)."""
    funds, pure = Funds.of(here.budget), Funds.of(dp.Budget(here.budget.epsilon))
    dimensions = [1, 2, 4, 8, 16, 32, 64]
    kinds: dict[str, tuple[Any, Funds]] = {
        "A: coordinates, basic": (CoordinateLaplace, pure),
        "B: coordinates, strong": (CoordinateLaplace, funds),
        "theorem 3: L2 norm": (ProductLaplace, funds),
        "Gaussian": (Gaussian, funds),
    }
    query, lines, last = VectorSum("x"), [], {}
    for name, (kind, pot) in kinds.items():
        points = []
        for d in dimensions:
            facts = dp.Matrix(np.zeros((1, d)), [0], features=dp.Vector(d, norm=1), target=dp.Category(0, 1)).facts
            mechanism = calibrate(functools.partial(kind, query), funds=pot, facts=facts, precision=10)
            points.append((d, math.sqrt(mechanism.noise.variance())))
            last[name] = mechanism
        lines.append(Series(name, points))
    data = dp.Matrix(np.zeros((1, 64)), [0], features=dp.Vector(64, norm=1), target=dp.Category(0, 1))
    checks = []
    for name, mechanism in last.items():
        values = np.array(released(mechanism, data, runs=100, seed=here.seed))
        spread = float(values.std()) / math.sqrt(mechanism.noise.variance())
        checks.append(Check(f"{name}: measured deviation in 64 dimensions over the stated one", spread, 1.05))
    final = {line.label: line.points[-1][1] for line in lines}
    picture = over(
        "Four noises at equal privacy",
        f"In 64 dimensions at ({here.epsilon:g}, {here.delta:g}): "
        + ", ".join(f"{name} {number(float(y or 0))}" for name, y in final.items())
        + ".",
        "One sum of vectors of length at most 1: replacing a row moves it by at most 2. All four have the same "
        "price, so the standard deviation on each coordinate is the whole comparison. A grows like d. B grows like "
        "sqrt d as soon as strong composition is better than basic. Theorem 3 first grows like sqrt d, where basic "
        "composition is better, and then no more. The Gaussian does not grow at all.",
        Scale("d, coordinates", ticks=dimensions),
        Scale("standard deviation"),
        lines,
    )
    return Shown([picture], checks)


def exact_delta(d: int, shift: int, scale: float, epsilon: float) -> float:
    """delta(epsilon) of discrete Laplace noise on d coordinates, each moved by `shift`: losses convolved, exactly."""
    reach, q = int(40 * scale) + 2 * shift, math.exp(-1 / scale)
    k = np.arange(-reach, reach + 1)
    losses = np.abs(k - shift) - np.abs(k) + shift
    one = np.bincount(losses, weights=(1 - q) / (1 + q) * q ** np.abs(k), minlength=2 * shift + 1)
    total = one
    for _ in range(d - 1):
        total = np.convolve(total, one)
    value = (np.arange(len(total)) - d * shift) / scale
    return float((total * np.maximum(0.0, -np.expm1(epsilon - value))).sum())


def theorem_3(here: Settings) -> Shown:
    """The true delta of the lecture's scale for theorem 3, and of ours, over the dimension."""
    epsilon, delta, shift = min(here.epsilon, 4.0), here.delta, 3
    lecture, ours = [], []
    for d in (1, 2, 4, 8, 16, 32, 64, 96):
        squared = d * shift**2
        wrong = math.sqrt(squared * math.log(1 / delta)) / epsilon
        right = _priced_scale(d, shift, epsilon, delta, wrong)
        lecture.append((d, exact_delta(d, shift, wrong, epsilon)))
        ours.append((d, exact_delta(d, shift, right, epsilon)))
    lines = [
        Series("the lecture's scale, D sqrt(ln(1/delta)) / epsilon", [(d, y) for d, y in lecture if y > 0]),
        Series("discreet's scale", [(d, y) for d, y in ours if y > 0]),
        Series("the delta that was promised", [(d, delta) for d, _ in lecture], BOUND),
    ]
    worst, worst_ours = max(y for _, y in lecture), max(y for _, y in ours)
    deltas = [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2]
    printed = [(x, epsilon + epsilon**2 / math.log(1 / x)) for x in deltas]
    proved = [(x, math.sqrt(2) * epsilon + 2 * epsilon**2 / math.log(1 / x)) for x in deltas]
    at_delta = 2 * epsilon**2 / math.log(1 / delta) + math.sqrt(2) * epsilon
    ticks = [d for d, _ in lecture]
    picture = plot(
        "Theorem 3 with constant 1 is false",
        f"The lecture's noise promises delta = {delta:g} at epsilon = {epsilon:g} and has up to {number(worst)}; "
        f"ours has at most {number(worst_ours)}.",
        "Above: the exact delta, by adding up the privacy losses of all coordinates, for neighbours that differ "
        "equally in each of them. In few dimensions it is 0, which a logarithmic axis cannot show. Below: the "
        "epsilon that the proof arrives at, as printed, and with the factors 2 of its own composition theorem, which "
        "the proof drops (slip 7). The right scale is D / sqrt(2 rho), rho the zCDP of (epsilon, delta).",
        ("d", "the lecture's scale: delta", "discreet's scale: delta"),
        [(d, y, z) for (d, y), (_, z) in zip(lecture, ours, strict=True)],
        kit.Panel(Scale("d, coordinates", ticks=ticks, log=True), Scale("true delta"), lines, 3.1, columns=1),
        kit.Panel(
            Scale("delta", ticks=deltas, log=True),
            Scale("epsilon of the proof", log=False),
            [
                Series("with the factors 2", proved),
                Series("as printed", printed),
                kit.level("epsilon that is claimed", epsilon, (deltas[0], deltas[-1])),
            ],
            2.6,
            columns=3,
        ),
    )
    return Shown(
        [picture],
        [
            Check("discreet's scale: true delta", worst_ours, delta),
            Check("the lecture's scale: true delta", worst, delta, "slip 5: the constant 1 of theorem 3 is too small"),
            Check(
                "epsilon by the proof's composition theorem", at_delta, epsilon, "slip 7: the factors 2 were dropped"
            ),
        ],
    )


def _priced_scale(d: int, shift: int, epsilon: float, delta: float, start: float) -> float:
    """The least whole scale at which discreet's price of product Laplace noise is within (epsilon, delta)."""
    scale = max(1, math.floor(start / 2))

    def price(scale: int) -> float:
        return Guarantee.of_product_laplace(
            d * shift**2, l1=d * shift, scale=Fraction(scale), dimension=d, neighbours="replace-one"
        ).epsilon(delta)

    while price(scale) > epsilon:
        scale += max(1, scale // 50)
    return float(scale)


# --- composition ------------------------------------------------------------------------------------------------------


def compositions(here: Settings) -> Shown:
    """The epsilon of k equal mechanisms by each theorem, and where strong composition has nothing to say."""
    each, part = here.epsilon / 20, here.delta / 2_000
    counts = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    found: dict[str, list[tuple[int, float]]] = {}
    for k in counts:
        for bound in composition.compare(each, delta=part, times=k, total=here.delta):
            if math.isfinite(bound.epsilon):
                found.setdefault(bound.name, []).append((k, bound.epsilon))
    kept = [name for name in ("basic", "strong", "different", "concentrated", "renyi", "optimal") if name in found]
    lines = [Series(name, found[name]) for name in kept]
    at = {name: dict(found[name])[100] for name in kept}
    truth = dict(found["optimal"])
    checks = [
        Check(f"the truth against {name}, ratio at most", max(truth[k] / y for k, y in found[name]), 1)
        for name in kept
        if name != "optimal"
    ]
    picture = over(
        "What k mechanisms cost together",
        f"A hundred mechanisms of ({each:g}, {part:g}): "
        + ", ".join(f"{name} {number(y)}" for name, y in at.items())
        + ".",
        "basic: sums. strong and different: the lecture's two theorems. concentrated: the second one with the "
        "constant of zCDP. renyi: what a ledger of discreet charges. optimal: the exact answer for equal parameters, "
        "so no theorem can be below it.",
        Scale("k, mechanisms"),
        Scale("epsilon of all of them"),
        lines,
        columns=3,
    )
    return Shown([picture], checks)


def outside(here: Settings) -> Shown:
    """Slip 6: what the formula of strong composition says where its hypotheses fail, against basic and optimal."""
    k, part = 100, 1e-9
    epsilons = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]

    def formula(epsilon: float) -> float:
        return math.sqrt(2 * k * math.log(1 / (k * part))) * epsilon + 2 * k * epsilon**2

    compared = [composition.compare(each, delta=part, times=k, total=2 * k * part) for each in epsilons]
    truth = [
        (x, next(b.epsilon for b in found if b.name == "optimal")) for x, found in zip(epsilons, compared, strict=True)
    ]
    lines = [
        Series("the formula", [(x, formula(x)) for x in epsilons]),
        Series("basic", [(x, k * x) for x in epsilons]),
        Series("optimal", [(x, y if math.isfinite(y) else None) for x, y in truth]),
    ]
    deltas = [1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 1e-2, 3e-2]
    below = [
        Series("2 k delta, the delta that is promised", [(x, 2 * k * x) for x in deltas]),
        kit.level("1, the largest probability", 1, (deltas[0], deltas[-1])),
    ]
    picture = plot(
        "Strong composition outside of its hypotheses",
        f"A hundred mechanisms: at epsilon 3 the formula says {number(formula(3.0))} where adding up says "
        f"{number(300)}.",
        "The lecture states strong composition for epsilon, delta <= 1. Above (delta = 1e-9): from about epsilon 0.5 "
        "on the formula is worse than adding up. Below (k = 100): from delta = 0.005 on the promised delta is at "
        "least 1, so nothing is promised, and from 0.01 on the logarithm in the formula is negative. discreet "
        "refuses both.",
        ("epsilon", "formula", "basic", "optimal"),
        [(x, formula(x), k * x, y) for x, y in truth],
        kit.Panel(Scale("epsilon of each", ticks=epsilons, log=True), Scale("epsilon of all"), lines, 2.8, columns=3),
        kit.Panel(Scale("delta of each"), Scale("delta of all"), below, 2.4),
    )
    return Shown(
        [picture],
        [
            Check(
                "exact epsilon over the formula where epsilon <= 1", max(y / formula(x) for x, y in truth if x <= 1), 1
            ),
            Check("epsilon 3: the formula over basic", formula(3.0) / 300, 1, "slip 6: the theorem needs epsilon <= 1"),
            Check("k delta = 1: the promised delta", 2.0, 1, "slip 6: the theorem needs k delta < 1"),
            Check("both cases that discreet does not refuse", float(_accepted()), 0),
        ],
    )


def _accepted() -> int:
    """How many compositions outside of the hypotheses are not refused."""
    count = 0
    for epsilon, delta in (("2", "1e-9"), ("0.1", "0.01")):
        try:
            composition.strong(epsilon, delta=delta, times=100)
            count += 1
        except ParameterError:
            pass
    return count


# --- the remaining slips ----------------------------------------------------------------------------------------------


def gradient_lengths(here: Settings) -> Shown:
    """Slip 3: the length of the gradient, and how far replacing one row moves it, over n."""
    sizes = [n for n in (50, 100, 200, 500, 1000, 2000, 5000) if n <= max(200, here.n)]
    length, moved = [], []
    for n in sizes:
        those, w = people(n, here.d, here.seed), np.zeros(here.d)
        whole = risk_gradient(those.risk.loss, those.x, those.y, w)
        shifts = []
        for row in np.argsort(-np.linalg.norm(those.x, axis=1))[:20]:
            labels = those.y.copy()
            labels[row] = 1 - labels[row]
            shifts.append(float(np.linalg.norm(whole - risk_gradient(those.risk.loss, those.x, labels, w))))
        length.append((n, float(np.linalg.norm(whole))))
        moved.append((n, max(shifts)))
    bound = [(n, 2 / n) for n in sizes]
    picture = over(
        "The length of the gradient, and what one row changes",
        f"At n = {sizes[-1]:,} the gradient has length {number(length[-1][1])}, and one row moves it by "
        f"{number(moved[-1][1])}.",
        "The lecture says that the norm of the gradient is at most 2 G / n. That is how far replacing one row moves "
        "it; the gradient itself has a length of up to G (here G = 1), whatever n is. The longest of twenty "
        "replacements is drawn.",
        Scale("n, persons"),
        Scale("length"),
        [
            Series("length of the gradient", length, {**DOTS, "color": SERIES[0]}),
            kit.level("G", 1, (sizes[0], sizes[-1]), color=kit.FAINT),
            Series("one row replaced: how far it moves", moved, {**DOTS, "color": SERIES[1]}),
            Series("2 G / n", bound, BOUND),
        ],
    )
    return Shown(
        [picture],
        [
            Check("length of the gradient, against G", max(y for _, y in length), 1),
            Check("move by one row over 2 G / n, at most", kit.largest_ratio(moved, bound), 1),
            Check(
                "length of the gradient over 2 G / n, at most",
                kit.largest_ratio(length, bound),
                1,
                "slip 3: 2 G / n bounds the change by one row, not the length",
            ),
        ],
    )


def two_radii(here: Settings) -> Shown:
    """Slip 1: R is the diameter in lecture 10 and the radius in lecture 9; theorem 1 with the wrong one is false."""
    counts, found, worst = powers(256), {}, {}
    for name, R in (("R = 2, the diameter", 2.0), ("R = 1, the radius", 1.0)):
        ratios = []
        for T in counts:
            path = descend(
                Absolute(), np.ones((1, 1)), -np.ones(1), Box(-1, 1), start=np.ones(1), rate=R / math.sqrt(T), steps=T
            )
            ratios.append((T, float(path[:-1].mean()) + 1))
        found[name] = ratios
        worst[name] = max(y * math.sqrt(T) / R for T, y in ratios)
    lines = []
    for place, ((name, seen), R) in enumerate(zip(found.items(), (2, 1), strict=True)):
        lines += both(name, place, [(T, R / math.sqrt(T)) for T in counts], seen, says="R G / sqrt T", found="measured")
    picture = over(
        "R is a diameter here",
        f"With the radius for R the excess is up to {number(worst['R = 1, the radius'])} times what theorem 1 would "
        "promise.",
        "The slope |w + 1| on C = [-1, 1], begun at 1: G = 1, and the start is a diameter away from w*. In lecture 9 "
        "the letter R was the radius of C, in this one it is the diameter. discreet starts at the centre, a radius "
        "away.",
        Scale("T, steps"),
        Scale("excess risk"),
        lines,
    )
    slip = "slip 1: R is the diameter of C in this lecture"
    return Shown(
        [picture],
        [
            Check("R the diameter: excess sqrt T / (R G), at most", worst["R = 2, the diameter"], 1),
            Check("R the radius: excess sqrt T / (R G), at most", worst["R = 1, the radius"], 1, slip),
        ],
    )


def edge(here: Settings) -> Shown:
    """Slip 4: at the edge of C a subgradient may have any length; a cut gradient may not."""
    v = np.linspace(-1, 1, 2_001)
    slopes = (1.0, 3.0, 10.0, 1e6)
    valid = [g for g in slopes if np.all(v >= 1 + g * (v - 1) - 1e-9)]
    lines = [Series("f(w) = w", [(-1, -1), (1, 1)], BOUND)]
    lines += [Series(f"slope {g:g}", [(1 - 2 / g, -1), (1, 1)], LINE) for g in slopes[1:3]]
    inside = [g for g in slopes if np.all(v >= g * v - 1e-9)]
    picture = over(
        "Lemma 1 fails at the edge of C",
        f"At w = 1 every slope of {number(1)} or more is a subgradient of f(w) = w on [-1, 1].",
        "A subgradient at a point is the slope of a line through it that lies nowhere above f on C. At the edge C "
        "ends, so steep lines do not meet f again: the proof of lemma 1 looks at the point x + grad f(x), which is "
        "outside of C. discreet shortens every gradient to length G, so that nothing rests on the lemma.",
        Scale("w", (-1, 1.05)),
        Scale("value", (-1.05, 1.1)),
        lines,
        columns=3,
    )
    return Shown(
        [picture],
        [
            Check("the longest subgradient at w = 0, against G = 1", max(inside), 1),
            Check(
                "the longest that was tried at w = 1", max(valid), 1, "slip 4: at the edge a subgradient may be longer"
            ),
            Check("a gradient of a million as discreet sums it, against G = 1", _cut_length(), 1),
        ],
    )


def _cut_length() -> float:
    """The length of one row's gradient of a million, as a descent with bound 1 adds it up."""
    steep = Custom(lambda w, row: [1e6], bound=Fraction(1), dimension=1, label="a subgradient at the edge")
    domain = dp.Domain(it=dp.Number(0, 1, step=1))
    passed = pass_over(Risk(steep, Constant(), "it", Ball(1)), domain)
    summed = passed.oracle(dp.Table({"it": [1]}, domain))(np.ones(1))
    return float(np.linalg.norm(summed * float(passed.unit)))


# --- attack -----------------------------------------------------------------------------------------------------------


def attack(here: Settings) -> Shown:
    """A descent of eight steps and a twin that pays for one: the epsilon that runs prove, against the price."""
    chosen = next(each for each in examples() if isinstance(each.honest, Descent) and each.honest.steps == 8)
    twin = Twin(chosen.honest, chosen.mistake)
    facts = chosen.setting.facts(chosen.first)
    honest_price, twin_price = (float(each.guarantee(facts).pure or 0) for each in (chosen.honest, twin))
    assert chosen.look is not None
    worlds = kit.Worlds.of(
        twin, (chosen.first, chosen.second), chosen.setting, chosen.look, runs=max(600, 50 * here.runs), seed=here.seed
    )
    found = worlds.epsilon()
    picture = kit.histogram_plot(
        "Watch epsilon be exceeded",
        f"The twin claims epsilon {number(twin_price)}; its releases prove at least {number(found)}.",
        f"Two neighbouring tables of two persons, {len(worlds.first):,} releases each. The twin adds the same noise "
        f"as the correct descent of eight steps, whose price is {number(honest_price)}, and charges for one step. "
        "The epsilon that the runs prove is wrong with probability at most 1e-6.",
        worlds,
        "the released model",
    )
    return Shown(
        [picture],
        [
            Check("epsilon proved, against the honest price", found, honest_price),
            Check("epsilon proved, against the twin's claim", found, twin_price, f"a twin that {chosen.mistake.label}"),
        ],
    )


LAB = kit.Lab(
    10,
    "Lab 10: noisy projected gradient descent",
    "Train a model by gradient steps with noise on every gradient, and know in advance how close to the best model "
    "it ends.",
    Settings(),
    [
        Section(
            "The problem and the algorithm",
            "A linear rule is fitted to a table of people. The risk L(w) of a rule w is the mean loss over the rows "
            "(here the hinge loss, max(0, 1 - y <w, x>) with labels y of -1 and 1). The best rule in the set C of "
            "allowed rules is w*, and the excess risk of w is L(w) - L(w*).\n\n"
            "Gradient descent reads the rows once per step, and only through the mean of their gradients. Noise on "
            "that mean makes each step private. A composition theorem says what T steps cost together: T times the "
            "price of one, or less.\n\n"
            "R is the distance from the start to w*, G the length of the longest gradient of one row, eta the step "
            "size.",
            statements,
        ),
        Section(
            "Iterates and projection",
            "In two dimensions the whole run can be seen. A step that leaves C is brought back to the nearest point "
            "of C. Lemma 2 says that this also brings it nearer to w*. Lemma 3 is about each step: if the excess is "
            "large, the next iterate is much nearer to w*. Both are checked at every step of the run.",
            iterates,
        ),
        Section(
            "Without noise: theorem 1",
            "Add up lemma 3 over T steps: the distances cancel except for the first and the last. What remains is R "
            "G / sqrt T.",
            theorem_1,
        ),
        Section(
            "With noise: lemma 4",
            "Noise that is independent of the past and has mean 0 changes nothing in expectation. Noise with a drift "
            "does.",
            lemma_4,
        ),
        Section(
            "Excess risk over T: theorem 2",
            "More steps bring the descent nearer to w*. But all steps share one budget, so each needs more noise. "
            "The best T is known before anything is spent.",
            theorem_2,
        ),
        Section(
            "The lecture's T",
            "Theorem 2 is used with T = (epsilon n)^2 / (d^2 ln(1/delta)) steps.",
            lecture_T,
        ),
        Section(
            "Four noises at equal privacy",
            "The lecture improves its own noise twice: first by strong composition instead of basic, then by pricing "
            "the length of the vector instead of each coordinate. In many dimensions the Gaussian is better still.",
            noises,
        ),
        Section(
            "Theorem 3 and its constant",
            "The last version adds Laplace noise of scale D sqrt(ln(1/delta)) / epsilon to each coordinate. Is that "
            "enough? The privacy loss, the logarithm of the ratio of the two probabilities, is a sum over the "
            "coordinates, so its distribution can be computed exactly.",
            theorem_3,
        ),
        Section(
            "Composition",
            "How much do k releases cost together? Each line is a theorem. The lowest line is the exact answer.",
            compositions,
        ),
        Section(
            "Outside of strong composition",
            "A theorem says nothing where its hypotheses fail. What does its formula say there?",
            outside,
        ),
        Section(
            "The gradient and 2 G / n",
            "The noise of a step has to hide one row. It need not hide the whole gradient.",
            gradient_lengths,
        ),
        Section(
            "Radius or diameter",
            "The same letter has two meanings in lectures 9 and 10.",
            two_radii,
        ),
        Section(
            "At the edge of C",
            "Lemma 1 says that a G-Lipschitz function has gradients of length at most G.",
            edge,
        ),
        Section(
            "What epsilon buys",
            "Epsilon is paid in odds about single persons and buys accuracy. Both sides of the bargain in one picture:",
            over_epsilon,
        ),
        Section(
            "An attack on a broken twin",
            "A twin of the descent has one mistake: it pays for one step and takes eight. An attacker who knows both "
            "tables looks at the released model and guesses which table it came from. If the guesses are better than "
            "the claimed epsilon allows, the claim is refuted.",
            attack,
        ),
    ],
    words=(
        ("<w, x>, |w|", "the inner product w_1 x_1 + ... + w_d x_d, and the length (L2 norm) of a vector"),
        ("convex, Lipschitz", "convex: shaped like a bowl. G-Lipschitz: nowhere steeper than G"),
        (
            "gradient, subgradient",
            "the slope of a function in each direction; at a corner, any slope that lies below it",
        ),
        ("composition", "the total price of several mechanisms. Basic composition adds epsilons and deltas"),
        ("Renyi divergence", "a distance between two distributions that adds up over releases without loss"),
        ("zCDP, rho", "a promise about all Renyi divergences at once; rho converts into (epsilon, delta)"),
        ("Theta(.), O(.)", "up to a constant that the lecture leaves open"),
        ("promise", "a bound that a theorem gives in advance, from public numbers alone"),
    ),
)
