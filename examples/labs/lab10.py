# ruff: noqa: N806
"""Lab 10: noisy projected gradient descent. Iterates, lemmas, theorems 1 to 3, composition, and what breaks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
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

from .kit import (
    BOUND,
    DOTS,
    FAINT,
    LINE,
    SERIES,
    Check,
    Checked,
    Lab,
    Panel,
    Scale,
    Section,
    Series,
    Shown,
    Worlds,
    histogram_plot,
    number,
    over,
    plot,
    released,
    setting,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings(Checked):
    """The numbers of lab 10."""

    n: int = setting(2_000, "invented persons", least=50, most=200_000)
    d: int = setting(5, "coordinates of the model", least=2, most=100)
    epsilon: float = setting(1.0, "privacy: the largest log-ratio of probabilities", least=0.01, most=20)
    delta: float = setting(1e-6, "privacy: the probability left aside", least=1e-12, most=0.1)
    steps: int = setting(64, "T, the steps of a descent", most=1_000)
    runs: int = setting(12, "independent runs behind each measured mean", least=2, most=1_000)
    seed: int = setting(10, "randomness of the invented rows and of the runs", least=0)

    @property
    def budget(self) -> dp.Budget:
        return dp.Budget(str(self.epsilon), str(self.delta))


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
            "each row's gradient cut to length G and rounded to integers; their exact sum",
        ),
        (
            "2b",
            "",
            "g_t + Lap(b)^d, b = Theta(G sqrt(T d log(1/delta)) / (n epsilon))",
            "+ discrete Gaussian noise, its scale found by bisection on the exact price of T steps",
        ),
        (
            "2c",
            "u_t <- w_(t-1) - eta g_t",
            "the same with the noisy gradient",
            "the same; eta from (n, d, budget), never from the rows",
        ),
        ("2d", "w_t <- projection of u_t on C", "the same", "the same"),
        (
            "3",
            "return the mean of w_1, ..., w_T",
            "the same",
            "the mean (corners), or Nesterov's sequence (smooth losses: error 1/T^2 instead of 1/sqrt T)",
        ),
        (
            "price",
            "not private",
            "T d Laplace mechanisms, strong composition",
            "T Gaussian mechanisms on vectors, Renyi composition; charged before line 1",
        ),
    ],
    "The lecture's two algorithms, line by line, and ours beside them: erm.descent.Descent.",
)

THEOREMS = report.Grid(
    ("statement", "says", "needs"),
    [
        (
            "lemma 1",
            "|grad f(x)| <= G",
            "f convex and G-Lipschitz in a neighbourhood of x (the lecture omits the last words)",
        ),
        ("lemma 2", "|P(x) - w| <= |x - w| for every w of C, P the projection on C", "C closed and convex"),
        ("lemma 3", "L(w_t) - L(w*) <= eta |g_(t+1)|^2 / 2 + (|w_t - w*|^2 - |w_(t+1) - w*|^2) / (2 eta)", "L convex"),
        (
            "theorem 1",
            "L(mean) - L(w*) <= R G / sqrt T at eta = R / (G sqrt T)",
            "L convex, G-Lipschitz, |w_0 - w*| <= R",
        ),
        ("lemma 4", "lemma 3 in expectation, with the noisy gradient", "noise of mean 0, independent of the past"),
        ("theorem 2", "E excess <= (eta / 2)(G^2 + V) + R^2 / (2 eta T), V = E |noise|^2", "as theorem 1, and lemma 4"),
        (
            "theorem 3",
            "a vector sum + Laplace noise of scale D / sqrt(2 rho) on every coordinate is (epsilon, delta)-DP, "
            "rho the zCDP of (epsilon, delta)",
            "rows of L2 norm at most D",
        ),
        (
            "strong composition",
            "k times (epsilon, delta) is (sqrt(2 k ln(1/(k delta))) epsilon + 2 k epsilon^2, 2 k delta)",
            "epsilon <= 1, k delta < 1",
        ),
        ("different parameters", "(2 sum epsilon_i^2 + sqrt(2 sum epsilon_i^2 ln(1/delta)), delta)", "pure mechanisms"),
    ],
    "Every statement of the lecture, with its constants.",
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
        axes.contour(grid, grid, values, 14, colors=[FAINT], linewidths=0.6)
        turn = np.linspace(0, 2 * np.pi, 200)
        axes.plot(np.cos(turn), np.sin(turn), color=FAINT, linewidth=1.6, label="the edge of C")
        axes.plot(*best.w, marker="*", markersize=13, linestyle="", color=SERIES[2], label="w*, the minimum")
        axes.set_aspect("equal")

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
        "Contours of the risk of a linear rule on the invented people (hinge loss), C the unit disc. The whole noisy "
        f"path is released at ({here.epsilon:g}, {here.delta:g}): iterates are functions of the noisy gradients.",
        ("t", "exact, first", "exact, second", "noisy, first", "noisy, second"),
        rows,
        Panel(*square, lines, 5.4, paint=paint),
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
    measured, tight, slipped = [], [], []
    wide = 10.0
    for T in counts:
        path = descend(
            those.risk.loss, those.x, those.y, Ball(1), start=np.zeros(here.d), rate=1 / math.sqrt(T), steps=T
        )
        measured.append((T, those.excess(path[:-1].mean(axis=0))))
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
        Series("with R where R^2 belongs", slipped, {"marker": None, "color": SERIES[3]}),
    ]
    picture = over(
        "Theorem 1: without noise",
        "No run is above R G / sqrt T; the slope that ends at a wall comes within a factor three of it.",
        "Everything in units of R G; the slope is |w| on [0, 10], begun at 10, so R = 10. The lecture's proof writes "
        "|w_1 - w*|^2 <= R where R^2 belongs. Taken literally that would promise (R + 1) / 2 instead of R, and this "
        "instance refutes it.",
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
        f"{runs:,} noisy steps from the centre of C, Laplace noise of scale 1 on every coordinate plus a drift "
        "away from "
        "w*. Lemma 4 says that the line lies above the excess: true at drift 0, lost as the drift grows.",
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
    lines = [Series("without noise, R G / sqrt T", [(T, 1 / math.sqrt(T)) for T in counts], {**BOUND, "color": FAINT})]
    checks, best = [], {}
    for place, (name, (noise, budget)) in enumerate(kinds.items()):
        stated, seen = [], []
        for T in counts:
            mechanism = proposed(budget, those, noise=noise, steps=T)
            variance = here.d * mechanism.noise.variance() / here.n**2
            known = those.risk.constants(those.data.facts)
            stated.append((T, mechanism.schedule.expected(known, T, variance)))
            values = released(mechanism, those.data, runs=here.runs, seed=here.seed + T)
            seen.append((T, float(np.mean([those.excess(w) for w in values]))))
        colour = {"color": SERIES[place]}
        lines += [
            Series(f"{name}: promised", stated, {**LINE, **colour}),
            Series(f"{name}: measured", seen, {**DOTS, **colour}),
        ]
        checks.append(
            Check(
                f"{name}: mean excess over theorem 2, at most",
                max(y / z for (_, y), (_, z) in zip(seen, stated, strict=True)),
                1,
            )
        )
        best[name] = min(stated, key=lambda point: point[1])
    finding = " ".join(
        f"{name}: the promise is least at T = {T}, where it is {number(y)}." for name, (T, y) in best.items()
    )
    wanted = here.epsilon**2 * here.n**2 / (here.d**2 * math.log(1 / here.delta))
    picture = over(
        "Theorem 2: more steps, more noise for each",
        finding,
        f"n = {here.n:,}, d = {here.d}, means of {here.runs} runs. A step costs budget, so at a fixed (epsilon, "
        "delta) the noise of "
        "each grows with T. With basic composition (delta = 0) its deviation grows like T, and the promise has a "
        "minimum; "
        "with strong composition like sqrt T, and the promise falls to a floor. The lecture's T = epsilon^2 n^2 / "
        f"(d^2 ln(1/delta)) is {number(wanted)} here"
        + ("." if wanted >= 1 else ", which is no number of steps (slip 8): T must be whole and at least 1."),
        Scale("T, steps"),
        Scale("excess risk"),
        lines,
        height=3.8,
    )
    return Shown([picture], checks)


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
        "One sum of vectors of length at most 1, replace-one: a replacement moves it by at most 2. The price is "
        "equal, so "
        "the deviation of the noise on each coordinate is the whole comparison: A grows like d, B like sqrt d, "
        "theorem 3 "
        "and the Gaussian do not grow.",
        Scale("d, coordinates", ticks=dimensions),
        Scale("deviation of the noise"),
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
    picture = over(
        "Theorem 3 with constant 1 is false",
        f"The lecture's noise promises delta = {delta:g} at epsilon = {epsilon:g} and has up to {number(worst)}; "
        f"ours has at most {number(worst_ours)}.",
        "Exact, by convolving the privacy losses of all coordinates, for neighbours whose difference is spread "
        "evenly. The "
        "proof drops the factors 2 of its own composition theorem (slip 7): with them it gives "
        f"{number(2 * epsilon**2 / math.log(1 / delta) + math.sqrt(2) * epsilon)} instead of {epsilon:g}. The "
        "right scale is "
        "D / sqrt(2 rho), rho the zCDP of (epsilon, delta).",
        Scale("d, coordinates", ticks=[1, 2, 4, 8, 16, 32, 64, 96]),
        Scale("true delta"),
        lines,
        columns=1,
    )
    return Shown(
        [picture],
        [
            Check("discreet's scale: true delta", worst_ours, delta),
            Check("the lecture's scale: true delta", worst, delta, "slip 5: the constant 1 of theorem 3 is too small"),
            Check(
                "epsilon by the proof's own composition theorem",
                2 * epsilon**2 / math.log(1 / delta) + math.sqrt(2) * epsilon,
                epsilon,
                "slip 7: the factors 2 were dropped",
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
    kept = [name for name in ("basic", "strong", "concentrated", "renyi", "optimal") if name in found]
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
        "basic: sums. strong: the lecture's. concentrated: the lecture's form for different parameters with the "
        "constant of "
        "zCDP. renyi: what a ledger of discreet charges. optimal: the exact answer for equal parameters; no line "
        "can be below it.",
        Scale("k, mechanisms"),
        Scale("epsilon of all of them"),
        lines,
        columns=3,
    )
    return Shown([picture, _refusals()], checks)


def _refusals() -> report.Grid:
    """Strong composition outside of its hypotheses (slip 6)."""

    def said(call: Callable[[], Any]) -> str:
        try:
            return f"epsilon {call().epsilon:.3g}"
        except ParameterError as error:
            return f"refused: {error}"

    rows = [
        ("epsilon 0.1, delta 1e-9, 100 times", said(lambda: composition.strong("0.1", delta="1e-9", times=100))),
        ("epsilon 2, delta 1e-9, 100 times", said(lambda: composition.strong(2, delta="1e-9", times=100))),
        ("epsilon 0.1, delta 0.01, 100 times", said(lambda: composition.strong("0.1", delta="0.01", times=100))),
    ]
    return report.Grid(
        ("strong composition of", "says"), rows, "Slip 6: strong composition needs epsilon <= 1 and k delta < 1."
    )


# --- the remaining slips ----------------------------------------------------------------------------------------------


def slips(here: Settings) -> Shown:
    """Slips 1, 3 and 4, each with the numbers that show it."""
    those = people(here.n, here.d, here.seed)
    loss, w = those.risk.loss, np.zeros(here.d)
    whole = risk_gradient(loss, those.x, those.y, w)
    swapped_x, swapped_y = those.x.copy(), those.y.copy()
    worst = int(np.argmax(np.linalg.norm(those.x, axis=1)))
    swapped_y[worst] = 1 - swapped_y[worst]
    moved = float(np.linalg.norm(whole - risk_gradient(loss, swapped_x, swapped_y, w)))
    ends = np.array([those.risk.feasible.project(9 * sign * np.eye(here.d)[0]) for sign in (1, -1)])
    steep, cut = _edge_subgradient(), _cut_length()
    checks = [
        Check(
            "slip 3: 2G/n against the length of the gradient",
            float(np.linalg.norm(whole)),
            2 / here.n,
            "slip 3: its length is at most G",
        ),
        Check("the length of the gradient against G", float(np.linalg.norm(whole)), 1),
        Check("one replaced row moves the gradient, against 2G/n", moved, 2 / here.n),
        Check("the distance from the start to w*, against the radius", float(np.linalg.norm(those.best.w)), 1),
        Check(
            "slip 1: the distance of two points of C, against the radius",
            float(np.linalg.norm(ends[0] - ends[1])),
            1,
            "slip 1: R is a diameter in lecture 10 and a radius in lecture 9",
        ),
        Check(
            "slip 4: the length of a subgradient of f(w) = w on [-1, 1] at its end, against G = 1",
            steep,
            1,
            "slip 4: at the edge of C a subgradient may have any length",
        ),
        Check("slip 4: the same gradient as discreet sums it, against G = 1", cut, 1),
    ]
    return Shown(["The slips that need no picture, as numbers:"], checks)


def _edge_subgradient() -> float:
    """The longest of some slopes g for which f(v) >= f(1) + g (v - 1) holds on all of C = [-1, 1], f(w) = w."""
    v = np.linspace(-1, 1, 2_001)
    return max(g for g in (1.0, 10.0, 1e3, 1e6) if np.all(v >= 1 + g * (v - 1)))


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
    worlds = Worlds.of(
        twin, (chosen.first, chosen.second), chosen.setting, chosen.look, runs=max(600, 50 * here.runs), seed=here.seed
    )
    found = worlds.epsilon()
    picture = histogram_plot(
        "Watch epsilon be exceeded",
        f"The twin claims epsilon {number(twin_price)}; its releases prove at least {number(found)}.",
        f"Two neighbouring tables of two persons, {len(worlds.first):,} releases each. The twin draws the same "
        "noise as the "
        f"honest descent of eight steps, whose price is {number(honest_price)}, and charges one step. The bound "
        "from the runs "
        "is wrong with probability at most 1e-6.",
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


LAB = Lab(
    10,
    "Lab 10: noisy projected gradient descent",
    "Train a model by gradient steps, add noise to every gradient, and know in advance how far from the best "
    "model it ends.",
    Settings(),
    [
        Section(
            "The problem and the algorithm",
            "A linear rule is to be fitted to a table of people. Its risk L(w) is the mean loss of the rows; the "
            "best rule in "
            "the feasible set C is w*. The excess risk of a rule is L(w) - L(w*). Gradient descent looks at the "
            "rows once per step, "
            "only through the mean of their gradients. Noise on that mean makes each step private, and T steps "
            "cost T times "
            "what one costs, by a composition theorem.\n\n"
            "R is the distance from the start to w*, G the length of the longest gradient of one row, eta the "
            "step size.",
            statements,
        ),
        Section(
            "Iterates and projection",
            "In two dimensions the whole run can be seen. A step that leaves C is brought back to the nearest "
            "point of C, and "
            "lemma 2 says that this brings it nearer to w*, too. Lemma 3 is about each step: where the excess is "
            "large, "
            "the next iterate is much nearer to w*. Both are checked at every step of the run.",
            iterates,
        ),
        Section(
            "Without noise: theorem 1",
            "Lemma 3 summed over T steps telescopes. What is left is R G / sqrt T.",
            theorem_1,
        ),
        Section(
            "With noise: lemma 4",
            "Noise that is independent of the past and has mean 0 changes nothing in expectation. Noise with a "
            "drift does.",
            lemma_4,
        ),
        Section(
            "Excess risk over T: theorem 2",
            "More steps bring the descent nearer to w*, but each needs more noise, because all of them share one "
            "budget. The "
            "promise has a minimum, and it is known before anything is spent.",
            theorem_2,
        ),
        Section(
            "Four noises at equal privacy",
            "The lecture improves its own noise twice: from basic to strong composition, and then from pricing "
            "every coordinate "
            "by the whole norm to pricing the vector. The Gaussian halves the variance once more.",
            noises,
        ),
        Section(
            "Theorem 3 and its constant",
            "The last version adds Laplace noise of scale D sqrt(ln(1/delta)) / epsilon. Is that enough? The "
            "privacy loss of all "
            "coordinates together is a sum of independent numbers, so its law can be computed exactly.",
            theorem_3,
        ),
        Section(
            "Composition",
            "How much do k releases cost together? Each line is a theorem; the lowest is exact.",
            compositions,
        ),
        Section(
            "More slips of the lecture",
            "The lecture's sentences, taken literally, against numbers from the invented people.",
            slips,
        ),
        Section(
            "An attack on a broken twin",
            "A twin of the descent has one mistake: it pays for one step and takes eight. An attacker who knows "
            "both tables looks at "
            "the released model and guesses which table it came from. Guessing better than the claim allows "
            "refutes the claim.",
            attack,
        ),
    ],
)
