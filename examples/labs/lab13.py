"""Lab 13: private multiplicative weights. Thresholds, updates, KL, free questions, the hypothesis, and what breaks."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import discreet as dp
from discreet import report
from discreet.answering.multiplicative_weights import ClassicAnswers, Weights
from discreet.answering.multiplicative_weights_parameters import (
    BETTER,
    LECTURE,
    Classic,
    CountingProblem,
    better_for,
    lecture_for,
    needed,
)
from discreet.audit.divergence import epsilon_at
from discreet.audit.examples import examples
from discreet.audit.laws import Setting, conversation_law, rows
from discreet.audit.mutants import Twin, no_threshold_noise
from discreet.data import Facts
from discreet.errors import ConversationOver, ParameterError
from discreet.funds import Funds
from discreet.guarantee import Neighbours
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, IsAbove
from discreet.rng import SeededRng

from . import kit
from .kit import BOUND, DOTS, LINE, SERIES, Check, Panel, Scale, Section, Series, Shown, number, over, plot

Floats = npt.NDArray[np.float64]
Box = tuple[int, int, int, int]  # first low, first high, second low, second high


@dataclass(frozen=True)
class Settings(kit.Checked):
    """The numbers of lab 13."""

    n: int = kit.setting(90_000, "invented persons, replace-one", least=1_000, most=10**7)
    d: int = kit.setting(12, "values of each of the two columns: |D| = d^2 cells", least=3, most=64)
    epsilon: float = kit.epsilon_setting(most=50)
    delta: float = kit.delta_setting()
    alpha: float = kit.setting(
        0.15, "accuracy: every answer within this fraction of the persons", least=0.001, most=0.9
    )
    beta: float = kit.setting(
        0.05, "accuracy: the probability that any answer of the session is not", least=1e-9, most=0.5
    )
    steps: int = kit.setting(150, "k, the questions of the analyst", least=5, most=5_000)
    runs: int = kit.setting(12, "games that are played with each program", least=1, most=1_000)
    seed: int = kit.seed_setting(13)


# --- the invented people ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class People:
    """Persons in d x d cells, far from uniform, and their counts."""

    table: dp.Table
    counts: npt.NDArray[np.int64]

    def count(self, box: Box) -> int:
        a, b, c, d = box
        return int(self.counts[a : b + 1, c : d + 1].sum())


@functools.lru_cache(maxsize=4)
def people(n: int, d: int, seed: int) -> People:
    rng = np.random.default_rng(seed)
    first = np.where(rng.random(n) < 0.6, rng.normal(0.28, 0.08, n), rng.normal(0.75, 0.1, n))
    second = 0.9 - 0.8 * first + rng.normal(0, 0.07, n)
    codes = [np.clip(np.floor(values * d), 0, d - 1).astype(np.int64) for values in (first, second)]
    domain = dp.Domain(first=dp.Number(0, d - 1, step=1), second=dp.Number(0, d - 1, step=1))
    table = dp.Table({"first": codes[0], "second": codes[1]}, domain, name="invented people")
    counts = np.zeros((d, d), dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    return People(table, counts)


def question(box: Box) -> dp.Count:
    a, b, c, d = box
    return dp.Count(dp.And(dp.Between("first", a, b), dp.Between("second", c, d)))


@functools.lru_cache(maxsize=4)
def boxes(d: int, seed: int, count: int = 400) -> list[Box]:
    """Different random boxes of cells."""
    rng = np.random.default_rng(seed)
    found: dict[Box, None] = {}
    while len(found) < min(count, d * d * (d - 1) // 2):
        a, b, c, e = (*sorted(rng.integers(0, d, 2).tolist()), *sorted(rng.integers(0, d, 2).tolist()))
        if (b - a + 1) * (e - c + 1) < d * d:
            found[a, b, c, e] = None
    return list(found)


def kl(counts: npt.NDArray[np.int64], guessed: Floats) -> float:
    """KL(table || hypothesis)."""
    shares = counts / counts.sum()
    held = shares > 0
    return float(np.sum(shares[held] * np.log(shares[held] / guessed[held])))


def made(here: Settings, method: str) -> Classic:
    """The program of one of the two methods; every number in it is public."""
    problem = CountingProblem(here.n, ("first", "second"), here.d**2)
    if method == LECTURE:
        return lecture_for(problem, str(here.alpha), str(here.beta), here.steps)
    return better_for(problem, str(here.alpha), str(here.beta), here.steps, pure=False)


# --- one game ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """One question: how far the answer was off, its bound, where it came from, KL and its bound afterwards."""

    box: Box
    off: int
    bound: float
    source: str
    kl: float
    potential: float
    tie: bool


@dataclass(frozen=True)
class Game:
    """All questions of an analyst who knows the rows and asks what is worst for the hypothesis."""

    program: Classic
    turns: list[Turn]
    hypotheses: list[Floats]
    engine: Any
    halted: str = ""

    @property
    def updates(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.source == "measurement"]


@functools.lru_cache(maxsize=64)
def game(here: Settings, method: str, twin: str = "", run: int = 0) -> Game:
    """Play it through a testing ledger, with the randomness of this run.

    The twin "flipped" updates the wrong way, "noisy" has six times the noise.
    """
    those, program = people(here.n, here.d, here.seed), made(here, method)
    if twin == "noisy":
        kind = type(program.threshold)
        scales = (program.threshold.threshold_scale * 6, program.threshold.question_scale * 6)
        program = dataclasses.replace(program, threshold=kind(*scales), scale=program.scale * 6)
    rng, turns, kept = np.random.default_rng(here.seed + run), [], []
    with dp.Ledger.in_memory(kit.GENEROUS, those.table, testing=True) as ledger:
        engine = ClassicAnswers(program, those.table, ledger, rng=SeededRng(here.seed + run))
        if twin == "flipped":
            engine.weights = _Flipped(program, those.table.facts)
        waiting, halted = list(boxes(here.d, here.seed)), ""
        kept.append(engine.weights.hypothesis.marginal(("first", "second")))
        for _ in range(min(here.steps, len(waiting))):
            box = _worst(those, engine.weights, waiting, rng)
            before = engine.weights.guess(question(box))
            try:
                said = engine.answer(question(box))
            except ConversationOver as over:
                halted = str(over)
                break
            guessed = engine.weights.hypothesis.marginal(("first", "second"))
            if said.source == "measurement":
                kept.append(guessed)
            off = abs(int(said.value) - those.count(box))
            tie = said.source == "measurement" and int(said.value) == before
            after = kl(those.counts, guessed)
            turns.append(Turn(box, off, said.error_bound, said.source, after, engine.weights.potential, tie))
    return Game(program, turns, kept, engine, halted)


class _Flipped(Weights):
    """The twin that moves away from each answer."""

    def update(self, question: dp.Count, answer: int) -> float:
        return super().update(question, 2 * self.guess(question) - answer)


def _worst(those: People, weights: Weights, waiting: list[Box], rng: np.random.Generator) -> Box:
    """Three times of four the question that is furthest off, otherwise any; never the same twice."""
    if rng.random() < 0.75:
        wrong = those.counts - those.counts.sum() * weights.hypothesis.marginal(("first", "second"))
        gaps = [abs(float(wrong[a : b + 1, c : d + 1].sum())) for a, b, c, d in waiting]
        return waiting.pop(int(np.argmax(gaps)))
    return waiting.pop(int(rng.integers(len(waiting))))


# --- words ------------------------------------------------------------------------------------------------------------

LINES = report.Grid(
    ("line", "lecture", "discreet"),
    [
        ("1", "X^ <- the uniform distribution on D", "the same"),
        (
            "2",
            "at most O(log|D| / alpha^2) times (here 64 ln|D| / alpha^2):",
            "at most ln|D| / (2 gamma^2) times, gamma the gap that an update proves",
        ),
        (
            "2a",
            "threshold alpha/2 + Lap(1/(e0 n))",
            "a whole number of persons + one-sided (geometric) noise, never negative",
        ),
        (
            "2b i",
            "receive a question f",
            "the same; a question that was answered before is answered from the ledger, free",
        ),
        ("2b ii", "v <- Lap(1/(e0 n))", "one-sided noise of another scale"),
        (
            "2b iii",
            "if |f(X) - f(X^)| + v is below the threshold, answer f(X^), free; otherwise answer f(X) + Lap(1/(e0 n))",
            "the same; the noise of the answer is Gaussian and four times smaller than the proof needs",
        ),
        (
            "2c",
            "X^(c) <- X^(c) exp(+- alpha/8 f(c)) for each cell c, normalised",
            "a step that the measured gap justifies: at least 4 gamma, at most so far that the guess equals the answer",
        ),
        ("2d", "continue with 2", "the same; the first yes after the last update ends the program for good (slip 6)"),
        (
            "price",
            "e0 for 2a and 2b (the lecture); in truth 4 e0 (slip 2)",
            "each threshold and each noisy answer is charged before the rows are read",
        ),
    ],
    'The lecture\'s algorithm, line by line (method="lecture"), and ours beside it (method="pmw").',
)

THEOREMS = kit.theorems(
    (
        "the game",
        "k counting questions, each chosen after the answers before; all answers within alpha with probability 1 - "
        "beta",
        "replace-one, n public",
    ),
    ("a table as a distribution", "f(X) = sum over all cells c of X(c) f(c): the expectation of f under X", "nothing"),
    (
        "AboveThreshold",
        "noise of scale b1 on the threshold and b2 on each question: any number of no and the first yes cost 1/b1 + "
        "2/b2 together",
        "questions that one person moves by at most 1",
    ),
    (
        "privacy of a round",
        "e0 for a threshold, its questions and the noisy answer (lecture); 4 e0 in truth (slip 2)",
        "all noises of scale 1/(e0 n)",
    ),
    (
        "privacy of all",
        "sqrt(ln|D| ln(1/delta)) e0 / alpha, up to a constant, for about ln|D| / alpha^2 rounds",
        "strong composition, lab 10",
    ),
    (
        "theorem (PMW)",
        "n >= C sqrt(ln|D| ln(1/delta)) ln k / (alpha^2 epsilon) persons suffice (the notes put ln k under the root, "
        "slip 1)",
        "a constant C; discreet computes n",
    ),
    (
        "noises",
        "with probability 1 - beta all 3k noises are within alpha/8 of the persons",
        "scale at most alpha n / (8 ln(3k/beta))",
    ),
    ("answers", "every answer within 3 alpha / 4", "all noises within alpha/8"),
    ("fact 1", "KL(X || X^) >= 0", "two distributions"),
    ("fact 2", "KL(X || uniform) <= ln|D| (the notes also print |log D|, slip 4)", "nothing"),
    (
        "claim: KL falls",
        "by at least alpha^2/64 at every update (the notes also say alpha^2, slip 3)",
        "step alpha/8, all noises within alpha/8",
    ),
    ("claim: few updates", "at most 64 ln|D| / alpha^2 of them", "facts 1 and 2, KL falls"),
    ("ours", "KL falls by at least 2 gamma^2", "step at least 4 gamma, the truth at least gamma away"),
)


def statements(here: Settings) -> Shown:
    """The statements, the algorithm, and the parameters of both programs."""
    both = [made(here, method) for method in (LECTURE, BETTER)]
    facts = people(here.n, here.d, here.seed).table.facts
    rows_: list[tuple[Any, ...]] = [
        ("threshold asked for, persons", *(float(each.theta) for each in both)),
        ("noise of the threshold, scale", *(float(each.threshold.threshold_scale) for each in both)),
        ("noise of a question, scale", *(float(each.threshold.question_scale) for each in both)),
        ("noise of an answer, scale", *(float(each.scale) for each in both)),
        ("most updates (never more than k)", *(each.updates for each in both)),
        ("an answer from the hypothesis is off by at most, persons", *(each.near for each in both)),
        (
            f"epsilon of all of it at delta {here.delta:g}",
            *(each.guarantee(facts).epsilon(here.delta) for each in both),
        ),
    ]
    caption = (
        f"Both programs for n = {here.n:,}, |D| = {here.d**2}, alpha = {here.alpha:g}, beta = {here.beta:g}, "
        f"k = {here.steps}: public numbers only. A ledger of ({here.epsilon:g}, {here.delta:g}) admits a program "
        "whose epsilon is within it and refuses the others. The testing ledgers of this lab have a larger budget."
    )
    return Shown([THEOREMS, LINES, report.Grid(("", "lecture", "pmw"), rows_, caption)])


# --- the window -------------------------------------------------------------------------------------------------------


def window(here: Settings) -> Shown:
    """How often a threshold says yes, over the distance of the value from it, for both noises at one price."""
    scale, price, runs = Fraction(20), Fraction(3, 20), 60
    kinds: dict[str, AboveThresholdLaplace | AboveThreshold] = {
        "two-sided (lecture)": AboveThresholdLaplace(scale, scale),
        "one-sided": AboveThreshold(scale, scale),
    }
    domain = dp.Domain(x=dp.Number(0, 999, step=1))
    table = dp.Table({"x": np.arange(1000)}, domain, name="a thousand")
    offsets = list(range(-200, 201, 25))
    lines, checks, spans = [], [], {}
    for place, (name, talk) in enumerate(kinds.items()):
        seen, wide = [], float(talk.window("0.05", questions=1))
        with dp.Ledger.in_memory(kit.GENEROUS, table, testing=True) as ledger:
            for offset in offsets:
                ask = IsAbove(dp.Count(dp.Between("x", 0, 499 + offset)), 500)
                said = []
                for run in range(runs):
                    with dp.converse(talk, table, ledger=ledger, rng=SeededRng(here.seed + 1000 * run)) as opened:
                        said.append(opened.ask(ask))
                seen.append((offset, float(np.mean(said))))
        exactly = [(offset, _yes(name, offset, float(scale))) for offset in range(-200, 201, 10)]
        colour = {"color": SERIES[place]}
        lines += [
            Series(f"{name}: exact", exactly, {**LINE, **colour}),
            Series(f"{name}: {runs} runs each", seen, {**DOTS, **colour, "markersize": 4}),
        ]
        spans[name] = wide
        gap = max(abs(y - _yes(name, offset, float(scale))) for offset, y in seen)
        checks.append(
            Check(f"{name}: frequency against the exact law, largest distance", gap, 4.5 * 0.5 / math.sqrt(runs))
        )
        assert talk.guarantee(table.facts).pure == price
    checks.append(
        Check(
            "the window of one-sided noise over that of two-sided noise",
            spans["one-sided"] / spans["two-sided (lecture)"],
            0.75,
        )
    )
    for place, (name, wide) in enumerate(spans.items()):
        for side, height in ((-wide / 2, 0.5), (wide / 2, 0.5)):
            ends = [(side, height - 0.12), (side, height + 0.12)]
            lines.append(
                Series(
                    f"{name}: window" if side < 0 else "",
                    ends,
                    {**LINE, "color": SERIES[place], "linewidth": 3, "linestyle": "-"},
                )
            )
    picture = over(
        "AboveThreshold: how sharp is its edge?",
        f"At one price ({float(price):g}) the window is {number(spans['two-sided (lecture)'])} persons with "
        "two-sided noise "
        f"and {number(spans['one-sided'])} with one-sided noise.",
        "The chance of a yes over the distance of the true count from the threshold, both noises of scale 20. The "
        "window is the range between the thick bars; outside of it the theorem promises the right answer with "
        "probability 0.95. One-sided noise, which is never negative, costs the same and is a little steeper. Its "
        "proved window is less than half as wide, because each of its tails counts on one side only.",
        Scale("true count minus threshold, persons", (-205, 205)),
        Scale("chance of a yes", (-0.03, 1.03), percent=True),
        lines,
    )
    return Shown([picture], checks)


def _yes(name: str, offset: int, scale: float) -> float:
    """P[offset + nu - z >= 0], exactly."""
    reach, q = 1200, math.exp(-1 / scale)
    k = np.arange(0 if name == "one-sided" else -reach, reach + 1)
    mass = q ** np.abs(k)
    mass = mass / mass.sum()
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    return float(
        sum(p * above[int(np.clip(z - offset - k[0], 0, len(above) - 1))] for z, p in zip(k, mass, strict=True))
    )


def three_times(here: Settings) -> Shown:
    """What a threshold of the lecture costs, exactly, over the number of questions that one person raises."""
    setting_ = Setting(dp.Domain(v=dp.Category("a", "b")), Neighbours("replace-one"))
    first, second = rows("v", "a", "b", "b"), rows("v", "a", "a", "b")
    a, b = (dp.Count(dp.Equals("v", level)) for level in "ab")
    honest = AboveThresholdLaplace(2, 2)
    kinds: dict[str, Any] = {
        "the lecture's threshold": honest,
        "a twin without noise on it": Twin(honest, no_threshold_noise),
    }
    counts, lines, worst = [0, 1, 2, 4, 6, 8, 10], [], {}
    for name, talk in kinds.items():
        points = []
        for m in counts:
            asks = [IsAbove(a, 3)] * m + [IsAbove(b, 3)]
            p, q = (conversation_law(talk, asks, table, setting_, reach=26) for table in (first, second))
            points.append((m, epsilon_at(p, q, 0.0) / 0.5))
        lines.append(Series(name, points))
        worst[name] = max(y for _, y in points)
    price = float(honest.guarantee(setting_.facts(first)).pure or 0) / 0.5
    lines += [
        Series("discreet's price, 3 e0", [(m, price) for m in counts], BOUND),
        Series("the lecture's claim, e0", [(m, 1.0) for m in counts], {"marker": None, "color": kit.FAINT}),
    ]
    picture = over(
        "What one threshold costs, exactly",
        f"The largest privacy loss found is {number(worst['the lecture' + chr(39) + 's threshold'])} e0: above the e0 "
        "that the lecture "
        "says, below the 3 e0 that discreet charges.",
        "One person is replaced; m questions that this raises by 1 are answered no, and one that it lowers is "
        "answered yes. "
        "The law of all answers is listed, so the loss is exact (e0 = 1/2). The twin compares with a threshold "
        "that has no "
        "noise: every further question adds to its loss.",
        Scale("m, questions before the last", (-0.3, 10.3)),
        Scale("privacy loss / e0", log=False),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("loss of the lecture's threshold over e0, against 3", worst["the lecture's threshold"], price),
            Check(
                "loss of the lecture's threshold over e0, against 1",
                worst["the lecture's threshold"],
                1,
                "slip 2: a threshold costs 3 e0, the noisy answer one more",
            ),
            Check(
                "loss of the twin over e0, against 3",
                worst["a twin without noise on it"],
                price,
                "a twin that forgets to blur the threshold",
            ),
        ],
    )


# --- KL and updates ---------------------------------------------------------------------------------------------------


def falling(here: Settings) -> Shown:
    """KL(table || hypothesis) after every update, beside the bound that the updates prove, and of a twin."""
    lines, checks, falling_by = [], [], {}
    start = kl(people(here.n, here.d, here.seed).counts, np.full((here.d, here.d), 1 / here.d**2))
    bound = math.log(here.d**2)
    for place, (method, name) in enumerate(((LECTURE, "lecture"), (BETTER, "pmw"))):
        played = game(here, method)
        seen = [(0, start), *((turn + 1, each.kl) for turn, each in enumerate(played.updates))]
        proved = [(0, bound), *((turn + 1, each.potential) for turn, each in enumerate(played.updates))]
        colour = {"color": SERIES[place]}
        lines += [
            Series(f"{name}: KL", seen, {**colour, "markersize": 3}),
            Series(f"{name}: proved to be below", proved, {"marker": None, **colour, "linestyle": ":"}),
        ]
        checks.append(
            Check(
                f"{name}: KL over its bound, at most",
                max(y / z for (_, y), (_, z) in zip(seen, proved, strict=True)),
                1,
            )
        )
        falls = [one - two for (_, one), (_, two) in itertools.pairwise(seen)]
        least = here.alpha**2 / 64 if method == LECTURE else 2 * played.program.gap**2
        falling_by[method] = least
        if falls:
            checks.append(Check(f"{name}: proved fall over the smallest fall of KL", least / min(falls), 1))
            if method == LECTURE:
                checks.append(
                    Check(
                        "lecture: alpha^2 over the smallest fall of KL",
                        here.alpha**2 / min(falls),
                        1,
                        "slip 3: KL falls by alpha^2/64, not alpha^2",
                    )
                )
    flipped = game(here, BETTER, "flipped")
    turned = [(0, start), *((turn + 1, each.kl) for turn, each in enumerate(flipped.updates[:20]))]
    lines.append(Series("pmw, updates reversed", turned, {"color": SERIES[3], "markersize": 3}))
    if len(turned) > 1:
        checks.append(
            Check(
                "updates reversed: KL at the end, against the start",
                turned[-1][1],
                start,
                "a twin that steps away from the answer",
            )
        )
    y = Scale("KL(table || hypothesis)", (-0.1, 1.15 * bound))
    every, few = (max(x for line in part for x, _ in line.points) for part in (lines, lines[2:4]))
    names = [line.label for line in lines]
    tables = [dict(line.points) for line in lines]
    picture = plot(
        "KL falls with every update",
        f"KL starts at {number(start)} of at most ln|D| = {number(bound)}. The lecture's program made "
        f"{len(game(here, LECTURE).updates)} updates, pmw {len(game(here, BETTER).updates)}.",
        "Each point is an update; the lower panel shows the first updates again. The dotted lines are what the updates "
        "prove: ln|D| minus all guaranteed falls. KL is never negative and always below its dotted line. So the "
        "number of updates is limited, whatever is asked: the dotted line may not reach 0. With these settings it "
        f"would after {number(bound / falling_by[LECTURE])} updates of the lecture's program and "
        f"{number(bound / falling_by[BETTER])} of pmw. There are never more updates than questions, here k = "
        f"{here.steps}, so a limit above k begins to matter only when more is asked.",
        ["update", *names],
        [(turn, *(each.get(turn) for each in tables)) for turn in range(int(every) + 1)],
        Panel(Scale("update", (-0.5, every + 0.5)), y, lines, 3.0),
        Panel(Scale("update", (-0.3, few + 2.3)), y, [dataclasses.replace(line, label="") for line in lines], 2.6),
    )
    return Shown([picture], checks)


def step_sizes(here: Settings) -> Shown:
    """The guaranteed fall of KL over the step eta, for a gap of alpha/4: the lecture's step, and the best."""
    gap = here.alpha / 4
    shares = np.linspace(0.001, 1 - gap - 0.001, 200)
    etas = [here.alpha * k / 40 for k in range(1, 71)]

    def fall(eta: float) -> float:
        return float(np.min(eta * (shares + gap) - np.log1p(shares * math.expm1(eta))))

    scale = here.alpha**2
    points = [(eta / here.alpha, fall(eta) / scale) for eta in etas]
    marks = [(1 / 8, fall(here.alpha / 8) / scale), (1.0, fall(here.alpha) / scale)]
    lines = [
        Series("worst fall of KL", points, LINE),
        Series("alpha/8 (lecture) and alpha", marks, {**DOTS, "color": SERIES[1]}),
        Series("proved for alpha/8: 1/64", [(0, 1 / 64), (1.75, 1 / 64)], {**BOUND, "color": kit.FAINT}),
        Series("proved for alpha: 1/8", [(0, 1 / 8), (1.75, 1 / 8)], BOUND),
    ]
    picture = over(
        "How long should a step be?",
        f"With the lecture's step alpha/8 the worst fall is {number(marks[0][1])} alpha^2; with alpha it is "
        f"{number(marks[1][1])} alpha^2.",
        "The worst case over all shares of the hypothesis, for a truth alpha/4 away. The lecture's step is an "
        "eighth of the best: "
        "with step alpha an eighth of the updates suffice.",
        Scale("step / alpha", (0, 1.78)),
        Scale("fall of KL / alpha^2", log=False),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("1/64 over the worst fall at step alpha/8, in alpha^2", 1 / 64 / marks[0][1], 1),
            Check("1/8 over the worst fall at step alpha, in alpha^2", 1 / 8 / marks[1][1], 1),
            Check(
                "1 over the worst fall at any step, in alpha^2",
                1 / max(y for _, y in points),
                1,
                "slip 3: no step makes KL fall by alpha^2",
            ),
        ],
    )


# --- questions --------------------------------------------------------------------------------------------------------


def free_questions(here: Settings) -> Shown:
    """How many questions were paid, and how far each answer was off."""
    lines, dots, checks, found = [], [], [], {}
    for place, (method, name) in enumerate(((LECTURE, "lecture"), (BETTER, "pmw"))):
        played = game(here, method)
        paid = np.cumsum([turn.source == "measurement" for turn in played.turns])
        colour = {"color": SERIES[place], "marker": None}
        lines.append(Series(f"{name}: paid", [(turn + 1, float(y)) for turn, y in enumerate(paid)], colour))
        errors = [(turn + 1, 100 * each.off / here.n) for turn, each in enumerate(played.turns)]
        dots.append(Series(f"{name}: error", errors, {**DOTS, "color": SERIES[place], "markersize": 3}))
        checks.append(
            Check(f"{name}: error over its own bound, at most", max(each.off / each.bound for each in played.turns), 1)
        )
        share = 0.75 if method == LECTURE else 1.0
        checks.append(
            Check(
                f"{name}: largest error over alpha", max(each.off for each in played.turns) / here.n / here.alpha, share
            )
        )
        checks.append(
            Check(f"{name}: updates over the most that are possible", len(played.updates) / played.program.updates, 1)
        )
        checks.append(
            Check(f"{name}: noisy answers equal to the guess (slip 5)", sum(each.tie for each in played.turns), 0)
        )
        found[name] = (len(played.turns) - len(played.updates), len(played.turns))
    noisy = game(here, BETTER, "noisy")
    checks.append(
        Check(
            "pmw with six times the noise: error over its bound",
            max(each.off / each.bound for each in noisy.turns),
            1,
            "more noise than the promise allows",
        )
    )
    total = max(len(line.points) for line in lines)
    lines.append(Series("every question paid", [(1, 1), (total, total)], {**BOUND, "color": kit.FAINT}))
    dots.append(Series("alpha", [(1, 100 * here.alpha), (total, 100 * here.alpha)], BOUND))
    x = Scale("question", (0, total + 1))
    finding = " ".join(f"{name}: {free} of {asked} questions were free." for name, (free, asked) in found.items())
    rows_ = [
        (turn + 1, *(dict(line.points).get(turn + 1) for line in (*lines[:2], *dots[:2]))) for turn in range(total)
    ]
    picture = plot(
        "How many questions are free",
        finding,
        "Above: the number of questions that were paid, for an analyst who knows the rows and mostly asks what is "
        "worst for the hypothesis. Below: how far each answer was off, in percent of the persons, against alpha.",
        ("question", "lecture: paid", "pmw: paid", "lecture: error, %", "pmw: error, %"),
        rows_,
        Panel(x, Scale("paid questions", log=False), lines, 2.9),
        Panel(x, Scale("error, % of the persons", log=False), dots, 2.9),
    )
    return Shown([picture], checks)


def many_games(here: Settings) -> Shown:
    """The game, many times with fresh randomness: the largest error and the share of free questions in each."""
    lines, free, checks = [], [], []
    for place, (method, name) in enumerate(((LECTURE, "lecture"), (BETTER, "pmw"))):
        played = [game(here, method, run=run) for run in range(here.runs)]
        worst = sorted(max(turn.off for turn in each.turns) / here.n for each in played)
        share = sorted(1 - len(each.updates) / len(each.turns) for each in played)
        dots = {**DOTS, "color": SERIES[place]}
        lines.append(Series(f"{name}: largest error", [(run + 1, y) for run, y in enumerate(worst)], dots))
        free.append(Series(f"{name}: free questions", [(run + 1, y) for run, y in enumerate(share)], dots))
        lost = sum(y > here.alpha for y in worst) / here.runs
        checks.append(
            Check(f"{name}: share of games with an error above alpha", lost, kit.frequency_bound(here.beta, here.runs))
        )
        checks.append(Check(f"{name}: games that stopped early", sum(bool(each.halted) for each in played), 0))
    x = (0.5, here.runs + 0.5)
    lines.append(kit.level("alpha", here.alpha, x))
    picture = plot(
        f"The game, {here.runs} times",
        f"In {here.runs} games of {here.steps} questions the largest error was "
        f"{number(100 * max(y or 0 for _, y in lines[0].points))} % (lecture) and "
        f"{number(100 * max(y or 0 for _, y in lines[1].points))} % (pmw); alpha is {100 * here.alpha:g} %.",
        "The same table, fresh noise and a fresh analyst in each game. Each series is sorted by size, so the same "
        "place in two series is not the same game. An analyst who knows the rows and asks mostly where the guess is "
        "furthest off is the worst possible one. The bound must hold even then. The theorem "
        f"promises that all answers of a game are within alpha with probability {1 - here.beta:g}.",
        ("game", "lecture: largest error", "pmw: largest error", "lecture: free", "pmw: free"),
        [(run + 1, *(dict(line.points)[run + 1] for line in (*lines[:2], *free))) for run in range(here.runs)],
        Panel(Scale("game", x), Scale("largest error", (0, 1.2 * here.alpha), percent=True), lines, 2.6, columns=3),
        Panel(Scale("game", x), Scale("free questions", (0, 1.05), percent=True), free, 2.4),
    )
    return Shown([picture], checks)


def persons_needed(here: Settings, method: str, k: int, epsilon: float | None = None) -> float:
    """The least n at which a program for k questions fits the budget."""
    facts = Facts(dp.Domain(x=dp.Number(0, here.d**2 - 1, step=1)), Neighbours("replace-one"), None)
    funds = Funds.of(here.budget if epsilon is None else dp.Budget(str(epsilon), str(here.delta)))

    def make(n: int) -> Classic:
        problem = CountingProblem(n, ("x",), here.d**2)
        if method == LECTURE:
            return lecture_for(problem, str(here.alpha), str(here.beta), k)
        return better_for(problem, str(here.alpha), str(here.beta), k, pure=False)

    return float(needed(make, lambda program: funds.admits(program.guarantee(facts))) or math.inf)


def sizes(here: Settings) -> Shown:
    """The persons needed, over the number of questions: computed, and by the lecture's two formulas."""
    # From here on the lecture's program is not limited by k: it has room for all updates that are possible.
    start = 10 ** math.ceil(math.log10(64 * math.log(here.d**2) / here.alpha**2))
    counts = [10, 1_000, start, 10**3 * start, 10**6 * start, 10**9 * start]
    found = {method: {k: persons_needed(here, method, k) for k in counts} for method in (LECTURE, BETTER)}

    def grown(k: int, power: float) -> float:
        ratio = math.log(3 * k / here.beta) / math.log(3 * start / here.beta)
        return float(found[LECTURE][start] * ratio**power)

    root = [(math.log10(k), grown(k, 0.5)) for k in counts[2:]]
    lines = [
        Series("lecture, computed", [(math.log10(k), y) for k, y in found[LECTURE].items()]),
        Series("pmw, computed", [(math.log10(k), y) for k, y in found[BETTER].items()]),
        Series("growing like log k", [(math.log10(k), grown(k, 1)) for k in counts[2:]], BOUND),
        Series("growing like sqrt(log k)", root, {"marker": None, "color": SERIES[3]}),
    ]
    last, fast = found[LECTURE][counts[-1]], found[BETTER]
    formula = math.sqrt(math.log(here.d**2) * math.log(1 / here.delta)) * math.log(counts[-1])
    constant = last / (formula / (here.alpha**2 * here.epsilon))
    picture = over(
        "How many persons k questions take",
        f"pmw needs {number(fast[counts[2]])} persons for {counts[2]:,} questions and {number(fast[counts[-1]])} "
        "for a billion times as many.",
        "At the budget, alpha and beta of this lab. The theorem's n has log k under the root. The derivation has it "
        "outside, and the computed sizes of the lecture's own program grow like that, once k is above the largest "
        f"number of updates. At the right end the constant C of the theorem is {number(constant)} for the lecture's "
        "program.",
        Scale("number of questions, k = 10^x", (0.5, math.log10(counts[-1]) + 0.5)),
        Scale("persons needed", log=True),
        lines,
    )
    return Shown(
        [picture],
        [
            Check("lecture: persons for the most questions over growth like log k", last / grown(counts[-1], 1), 1.02),
            Check(
                "lecture: the same over growth like sqrt(log k)",
                last / grown(counts[-1], 0.5),
                1,
                "slip 1: log k does not belong under the root",
            ),
        ],
    )


def facts_about_kl(here: Settings) -> Shown:
    """Facts 1 and 2: KL of random pairs is never negative, and at most ln|D| from uniform; slip 4, its misprint."""
    rng = np.random.default_rng(here.seed)
    values = [2, 3, 4, 6, 8, 12, 16, 24, 32]
    spread, point, least = [], [], math.inf
    for d in values:
        cells = d * d
        uniform = np.full(cells, 1 / cells)
        pairs = [rng.dirichlet(np.full(cells, 0.3), 2) + 1e-12 for _ in range(50)]
        least = min(least, *(float(np.sum(x * np.log(x / y))) for x, y in pairs))
        those = people(here.n, d, here.seed)
        spread.append((d, kl(those.counts.reshape(-1), uniform)))
        alone = np.zeros(cells, dtype=np.int64)
        alone[0] = here.n
        point.append((d, kl(alone, uniform)))
    bound = [(d, 2 * math.log(d)) for d in values]
    misread = [(d, math.log(d)) for d in values]
    picture = over(
        "Facts 1 and 2: where KL starts",
        f"The smallest KL of {50 * len(values)} random pairs is {number(least)}; a table of equal rows starts at "
        "ln|D| exactly.",
        "KL(X || uniform) for two columns of d values, |D| = d^2 cells. The notes print |log D| in two places. D is "
        "a set, so only log|D| makes sense; the logarithm of the number of values of one column, for example, is "
        "exceeded.",
        Scale("d, values of a column", ticks=values),
        Scale("KL(X || uniform)", (0, 8)),
        [
            Series("the invented people", spread),
            Series("all persons in one cell", point, {**DOTS, "color": SERIES[1]}),
            Series("ln|D|", bound, BOUND),
            Series("ln d, another reading of |log D|", misread, {"marker": None, "color": SERIES[3]}),
        ],
    )
    return Shown(
        [picture],
        [
            Check("fact 1: minus the smallest KL of random pairs, against 0", -least, 0),
            Check("fact 2: KL from uniform over ln|D|, at most", kit.largest_ratio([*spread, *point], bound * 2), 1),
            Check(
                "KL from uniform over ln d, at most",
                kit.largest_ratio(point, misread),
                1,
                "slip 4: |log D| should read log|D|",
            ),
        ],
    )


def ties(here: Settings) -> Shown:
    """Slip 5: how often an update finds a = f(X^), over the size of the noise; never while the noises are small."""
    n = 400
    quarter = max(2, round(here.alpha * n / 8))
    free, kept = [], []
    scales = [quarter * part for part in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]
    for scale in scales:
        reach, q = 12 * max(quarter, math.ceil(scale)), math.exp(-1 / scale)
        k = np.arange(-reach, reach + 1)
        law = q ** np.abs(k) / (q ** np.abs(k)).sum()
        cut = np.where(np.abs(k) <= quarter, law, 0)  # all noises within alpha/8, as the proof supposes
        gaps = range(-8 * quarter, 8 * quarter + 1)
        free.append((scale / quarter, max(_tie(gap, k, law, 4 * quarter) for gap in gaps)))
        kept.append(max(_tie(gap, k, cut / cut.sum(), 4 * quarter) for gap in gaps))
    picture = over(
        "Can the noisy answer equal the guess?",
        "While all noises are within alpha/8 it cannot. With noise of scale alpha it happens with probability "
        f"{number(free[-1][1])}.",
        "The exact probability, for the worst gap between truth and guess, that a question causes an update and that "
        f"its noisy answer equals the guess ({n} persons). The lecture does not say which update is due then. It "
        "need not: when the noises are as small as the proof supposes, an update needs a gap above alpha/4, and the "
        "answer is within alpha/8 of the truth.",
        Scale("scale of the noise / (alpha n / 8)", ticks=[0.25, 0.5, 1, 2, 4, 8]),
        Scale("probability of a tie", log=True),
        [Series("all noises allowed", [(x, y if y > 0 else None) for x, y in free])],
    )
    return Shown(
        [picture],
        [
            Check("noises within alpha/8: probability of a tie", max(kept), 0),
            Check(
                "noise of scale alpha: probability of a tie",
                free[-1][1],
                0,
                "slip 5: the lecture does not treat a = f(X^)",
            ),
        ],
    )


def _tie(gap: int, k: npt.NDArray[np.int64], law: Floats, threshold: int) -> float:
    """P[|gap| + v >= threshold + z] P[the noise of the answer = -gap]: truth minus guess is the gap."""
    above = np.cumsum(law[::-1])[::-1]  # P[v >= k]
    start = threshold + k - abs(gap) - k[0]
    yes = float(np.sum(law * np.where(start < len(k), above[np.clip(start, 0, len(k) - 1)], 0.0)))
    place = -gap - int(k[0])
    return yes * float(law[place]) if 0 <= place < len(law) else 0.0


def over_epsilon(here: Settings) -> Shown:
    """What epsilon buys: persons needed over epsilon for k questions, and the odds that the same epsilon concedes."""
    epsilons = [0.1, 0.3, 1.0, 3.0]
    found = {
        name: [(epsilon, persons_needed(here, method, here.steps, epsilon)) for epsilon in epsilons]
        for method, name in ((LECTURE, "lecture"), (BETTER, "pmw"))
    }
    fast = dict(found["pmw"])
    picture = kit.bargain(
        f"For {here.steps} questions within {100 * here.alpha:g} % pmw needs {number(fast[0.1])} persons at epsilon "
        f"0.1, {number(fast[1.0])} at 1 and {number(fast[3.0])} at 3.",
        "the persons that make all answers accurate. They are about in proportion to 1 / (alpha^2 epsilon): from "
        f"epsilon 0.1 to 1 the same accuracy needs {number(fast[0.1] / fast[1.0])} times fewer people. Or the same "
        "people get about three times smaller errors.",
        "persons needed",
        epsilons,
        [Series(name, values) for name, values in found.items()],
    )
    product = [x * y for x, y in found["pmw"]]
    words = (
        "So what does the number epsilon buy? It is a rate of exchange between two kinds of certainty. On one side is "
        "what an observer learns about the group: the error of a single count falls like 1 / (epsilon n), the error "
        "of any number of questions like 1 / sqrt(epsilon n). On the other side is what the observer learns about "
        "one person because that person's row is in the table: the odds change by at most a factor e^epsilon. "
        "Epsilon 0.1 moves 50 % to at most 52.5 %, epsilon 1 to 73 %, epsilon 3 to 95 %. With more people the same "
        "accuracy costs less epsilon, so each person concedes less."
    )
    return Shown(
        [picture, words], [Check("pmw: persons times epsilon, largest over smallest", max(product) / min(product), 1.5)]
    )


# --- the hypothesis ---------------------------------------------------------------------------------------------------


def heat_maps(here: Settings) -> Shown:
    """The table and the hypothesis, as heat maps, at the start, on the way and at the end."""
    those, played = people(here.n, here.d, here.seed), game(here, BETTER)
    steps = sorted({0, len(played.hypotheses) // 4, len(played.hypotheses) - 1})
    maps = [
        ("the table (secret)", those.counts / here.n),
        *((f"after {step} updates", played.hypotheses[step]) for step in steps),
    ]
    top = float(max(each.max() for _, each in maps[:1]))

    def paint(axes: Any) -> None:
        for place, (name, shares) in enumerate(maps):
            left, bottom = (place % 2) * 1.12, -(place // 2) * 1.22
            edges = np.linspace(0, 1, here.d + 1)
            axes.pcolormesh(left + edges, bottom + edges, shares.T, cmap="Blues", vmin=0, vmax=top, rasterized=False)
            axes.text(left, bottom + 1.03, name)
        axes.set_axis_off()
        axes.set_aspect("equal")

    seen = [(name, kl(those.counts, shares)) for name, shares in maps[1:]]
    finding = ", ".join(f"{name} KL is {number(y)}" for name, y in seen) + "."
    picture = plot(
        "The hypothesis finds the table",
        finding[0].upper() + finding[1:],
        "Two columns of the invented people: the first from left to right, the second from bottom to top. Darker cells "
        "hold more persons. The hypothesis may be shown, because it is a function of the noisy answers alone.",
        ("map", "KL(table || map)"),
        seen,
        Panel(Scale("", (0, 2.14)), Scale("", (-1.24, 1.16)), (), 5.4, paint=paint),
    )
    return Shown([picture], [Check("KL at the end, against the start", seen[-1][1], seen[0][1])])


def synthetic(here: Settings) -> Shown:
    """Rows drawn from the hypothesis: counts of boxes that were asked, and of boxes that never were."""
    those, played = people(here.n, here.d, here.seed), game(here, BETTER)
    drawn = played.engine.weights.hypothesis.sample(20_000, seed=here.seed)
    counts = np.zeros((here.d, here.d), dtype=np.int64)
    np.add.at(counts, (drawn["first"], drawn["second"]), 1)
    asked = {turn.box for turn in played.turns}
    groups: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for box in boxes(here.d, here.seed):
        a, b, c, d = box
        groups[box in asked].append((those.count(box) / here.n, float(counts[a : b + 1, c : d + 1].sum()) / 20_000))
    lines = [
        Series("boxes that were asked", groups[True], {**DOTS, "markersize": 3}),
        Series("boxes that never were", groups[False], {**DOTS, "markersize": 3}),
        Series("equal", [(0, 0), (1, 1)], {**BOUND, "color": kit.FAINT}),
        Series("alpha above and below", [(0, here.alpha), (1 - here.alpha, 1)], BOUND),
        Series("", [(here.alpha, 0), (1, 1 - here.alpha)], BOUND),
    ]
    worst = {kind: max((abs(x - y) for x, y in points), default=0.0) for kind, points in groups.items()}
    slack = math.sqrt(math.log(2 * 400 / 1e-6) / (2 * 20_000))
    rows_ = [("asked" if kind else "not asked", *point) for kind, points in groups.items() for point in points[:100]]
    picture = plot(
        "A synthetic database",
        f"Counts in 20,000 synthetic rows are off by at most {number(worst[True])} for boxes that were asked and "
        f"{number(worst[False])} for the others.",
        "Each point is a box of cells: its share of the table, and its share of rows drawn from the final "
        "hypothesis. An answer from the hypothesis was within alpha when it was given; later updates may have moved "
        "it a little. Nothing is promised about boxes that were never asked.",
        ("box", "share of the table", "share of the synthetic rows"),
        rows_,
        Panel(Scale("share of the table", (0, 1)), Scale("share of the synthetic rows", (0, 1)), lines, 4.6),
    )
    final = played.hypotheses[-1]
    last = max(
        (
            abs(those.count(t.box) / here.n - float(final[t.box[0] : t.box[1] + 1, t.box[2] : t.box[3] + 1].sum()))
            for t in played.turns[-10:]
        ),
        default=0.0,
    )
    return Shown(
        [picture],
        [
            Check(
                "the last ten questions: error of the final hypothesis over alpha",
                last / here.alpha,
                1,
                "" if last <= here.alpha else "an update after the answer moved it",
            ),
            Check(
                "synthetic rows against the hypothesis, largest distance",
                _apart(counts / 20_000, final, boxes(here.d, here.seed)),
                slack,
            ),
        ],
    )


def _apart(one: Floats, other: Floats, every: Sequence[Box]) -> float:
    return max(abs(float((one - other)[a : b + 1, c : d + 1].sum())) for a, b, c, d in every)


# --- the end of a program, and the attack -----------------------------------------------------------------------------


def last_update(here: Settings) -> Shown:
    """Slip 6: after the last update. Two programs that go on anyway: one overspends, the other errs; ours stops."""
    those = people(here.n, here.d, here.seed)
    full = made(here, BETTER)
    program = dataclasses.replace(full, updates=2)
    errors, refused, charged = [], 0, 0
    with dp.Ledger.in_memory(kit.GENEROUS, those.table, testing=True) as ledger:
        engine = ClassicAnswers(program, those.table, ledger, rng=SeededRng(here.seed))
        waiting, rng = list(boxes(here.d, here.seed)), np.random.default_rng(0)
        for turn in range(10):
            box = _worst(those, engine.weights, waiting, rng)
            stale = abs(engine.weights.guess(question(box)) - those.count(box)) / here.n
            errors.append((turn + 1, stale))
            try:
                engine.answer(question(box))
            except (ConversationOver, ParameterError):
                refused += 1
        charged = sum(1 for body in ledger.entries() if body["kind"] == "charge")
    counts = [1, 2, 3, 5, 8, 12, 20]
    costs = [(m, dataclasses.replace(full, updates=m).guarantee(those.table.facts).epsilon(here.delta)) for m in counts]
    claimed, after = dict(costs)[2], [(turn, y) for turn, y in errors if turn > 2]
    picture = plot(
        "Three ways to continue after the last update",
        f"A program with two updates costs epsilon {number(claimed)}. Twenty updates cost {number(costs[-1][1])}. "
        f"Answers from the hypothesis after two updates are off by up to {number(100 * max(y for _, y in after))} % "
        "of the persons.",
        "The lecture does not say what follows the last update. Above: a program that goes on measuring has a higher "
        "price than it claims. Below: the error of the guess before each question. The first two questions "
        "that find it far off are measured and use up both updates. A program that then goes on answering "
        "from its hypothesis is off by more than alpha wherever a point is above the line. discreet refuses "
        f"instead: the first yes after the last update ends the program for good. So it refused {refused} of 10 "
        "questions here, also those that the guess would have answered within alpha.",
        ("question", "error of the hypothesis"),
        errors,
        Panel(
            Scale("updates", (0, 21)),
            Scale("epsilon", log=False),
            [Series("what the updates cost", costs), kit.level("claimed for two updates", claimed, (0, 21))],
            2.5,
            paint=lambda axes: axes.set_xticks(range(0, 21, 5)),
        ),
        Panel(
            Scale("question", (0.5, 10.5)),
            Scale("error of the guess", (0, 1.1 * max(y for _, y in errors)), percent=True),
            [Series("before the question is answered", errors), kit.level("alpha", here.alpha, (0.5, 10.5))],
            2.5,
            paint=lambda axes: axes.set_xticks(range(1, 11)),
        ),
    )
    return Shown(
        [picture],
        [
            Check("charges of a program with two updates", charged, program.thresholds + program.updates),
            Check(
                "epsilon of 20 updates, against the claim for two",
                costs[-1][1],
                claimed,
                "slip 6: a twin that goes on measuring",
            ),
            Check(
                "error of the hypothesis after two updates, against alpha",
                max(y for _, y in after),
                here.alpha,
                "slip 6: a twin that goes on without measuring",
            ),
        ],
    )


def attack(here: Settings) -> Shown:
    """The published wrong variants of AboveThreshold: the exact epsilon of each against its claim."""
    return kit.twins(
        (each for each in examples() if isinstance(each.honest, AboveThreshold)),
        "All of these wrong variants of AboveThreshold exceed their claim; the correct one does not in any of the "
        "attacks.",
        "Each bar is the epsilon that the exact probabilities of a broken twin prove on two neighbouring tables. "
        "Several of these variants were published as private. They are collected in [LSL17]: M. Lyu, D. Su, N. Li, "
        "Understanding the sparse vector technique for differential privacy, PVLDB 10(6), 2017.",
        {},
        by_mistake=True,
    )


LAB = kit.Lab(
    13,
    "Lab 13: private multiplicative weights",
    "Answer any number of questions, each chosen after the answers before, and pay only for those that teach "
    "something new.",
    Settings(),
    [
        Section(
            "The game and the algorithm",
            "An analyst asks counting questions about a table X of n persons: what share of them is in this set? The "
            "next question may depend on all answers so far. The curator must be within alpha every time, and may "
            "not spend more than (epsilon, delta) in all.\n\n"
            "D is the set of all possible rows, here d^2 cells. The curator keeps a hypothesis X^, a public guess of "
            "the whole table, and answers from it where it is good enough. A noisy threshold decides whether it is, "
            "and as long as it says no ('not far off') nothing more is paid. Only where the guess is far off is the "
            "table measured, with noise, and the guess corrected.\n\n"
            "Two programs play this game: the lecture's, and ours, called pmw, which has the same idea and better "
            "constants.",
            statements,
        ),
        Section(
            "AboveThreshold and its window",
            "A threshold answers yes or no, with noise on both sides of the comparison. Near the threshold the "
            "answer may be wrong. The window is the range of counts in which it may be.",
            window,
        ),
        Section(
            "The price of a threshold",
            "Any number of no and the first yes have one price together. The lecture says e0 for noise of scale "
            "1/(e0 n). (e0 is the epsilon of a single release with this noise; on counts the scale is 1/e0 persons.) "
            "For a small table all sequences of answers can be listed with their probabilities, so the true price "
            "can be computed.",
            three_times,
        ),
        Section(
            "Facts 1 and 2",
            "KL(X || X^), the sum over all cells c of X(c) ln(X(c) / X^(c)), measures how far the hypothesis is from "
            "the table. It is never negative, and from the uniform hypothesis it is at most ln|D|.",
            facts_about_kl,
        ),
        Section(
            "KL falls with every update",
            "If every update makes KL fall by a fixed amount, there are few updates, because KL starts at no more "
            "than ln|D| and cannot become negative. That is the heart of the proof.",
            falling,
        ),
        Section(
            "The length of a step",
            "An update multiplies the probabilities of the cells of the question by e^eta or e^(-eta). A longer step "
            "moves the guess further, until it overshoots.",
            step_sizes,
        ),
        Section(
            "How many questions are free",
            "The same analyst plays against both programs. Most questions to pmw are answered from the hypothesis.",
            free_questions,
        ),
        Section(
            "The game, many times",
            "The theorem is about a probability, so the game is repeated.",
            many_games,
        ),
        Section(
            "How many persons it takes",
            "The theorem's n, computed for both programs over the number of questions. More questions cost only a "
            "logarithm.",
            sizes,
        ),
        Section(
            "When the answer equals the guess",
            "The lecture updates upwards if the noisy answer a is above f(X^), and downwards if it is below. What if "
            "they are equal?",
            ties,
        ),
        Section(
            "The hypothesis as a heat map",
            "With two columns the hypothesis can be drawn.",
            heat_maps,
        ),
        Section(
            "The synthetic database",
            "The hypothesis is a distribution, so rows can be drawn from it. This synthetic table is free, because "
            "it is computed from answers that were already paid.",
            synthetic,
        ),
        Section(
            "After the last update",
            "The proof leaves room for a fixed number of updates. What must happen when the threshold says yes once "
            "more?",
            last_update,
        ),
        Section(
            "What epsilon buys",
            "The last question of all four labs. Epsilon is paid in odds about single persons. Here it buys accuracy "
            "for any number of questions:",
            over_epsilon,
        ),
        Section(
            "Attacks on broken twins",
            "AboveThreshold has been published with mistakes more often than any other mechanism. Each twin has one "
            "such mistake. The exact probabilities of its answers show the epsilon that it really has.",
            attack,
        ),
    ],
    words=(
        ("f(X), f(X^)", "the share of the persons in the set of a question f, in the table and in the hypothesis"),
        ("e0", "the epsilon of one release with noise of scale 1/(e0 n) on shares"),
        ("composition", "the total price of several mechanisms; see lab 10"),
        ("gamma", "the distance of truth and guess that an update of pmw proves"),
        ("free", "answered from the hypothesis: nothing is charged"),
        ("loss, privacy loss", "the logarithm of the ratio of two probabilities of an outcome; epsilon bounds it"),
        ("KL", "KL(X || X^), how far the hypothesis is from the table; 0 if and only if they agree"),
        (
            "AboveThreshold",
            "a mechanism that says whether a count is above a threshold, with noise on both; any number of no and the "
            "first yes have one price",
        ),
        ("curator", "the program that holds the table and answers; the analyst asks"),
        ("testing ledger", "a ledger for invented rows only: exact answers may be looked at"),
        ("monotone", "of questions: one person moves all of them in the same direction"),
    ),
)
