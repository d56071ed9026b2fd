"""Lab 12: private PAC learning: the game, boxes from interior points, log*, conjunctions, and what breaks."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import discreet as dp
from discreet import report
from discreet.audit.examples import examples
from discreet.data import BitMatrix, Bits, Facts, Whole
from discreet.errors import DiscreetError
from discreet.funds import Funds
from discreet.guarantee import Neighbours
from discreet.method import UNPROVEN, Method
from discreet.pac import all_boxes, box_methods, boxes, conjunction_methods, interior
from discreet.pac.conjunctions import AllConjunctions, Listing, NoisyCounts, PackedRows, deletion
from discreet.pac.greedy import GreedySelection
from discreet.pac.interior import InteriorPoint
from discreet.pac.rules import Labels, Literals

from .kit import (
    BOUND,
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
    number,
    over,
    plot,
    released,
    setting,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

COLUMNS, LABELS = ("x", "z"), Labels("y", "yes")
BITS, POSITIVE, CLASSES = Literals("x"), Labels("y", True), dp.Category(False, True)
SIDE = 256


@dataclass(frozen=True)
class Settings(Checked):
    """The numbers of lab 12."""

    d: int = setting(10, "bits of a row, for conjunctions", least=3, most=40)
    epsilon: float = setting(1.0, "privacy: the largest log-ratio of probabilities", least=0.05, most=20)
    delta: float = setting(1e-6, "privacy: the probability left aside", least=1e-12, most=0.1)
    alpha: float = setting(0.1, "accuracy: the share of the rows that may be labelled wrong", least=0.01, most=0.45)
    beta: float = setting(0.1, "accuracy: the probability that more are", least=1e-4, most=0.5)
    runs: int = setting(1_000, "games that are played with boxes", least=20, most=100_000)
    seed: int = setting(12, "randomness of the invented rows and of the runs", least=0)

    @property
    def budget(self) -> dp.Budget:
        return dp.Budget(str(self.epsilon), str(self.delta))

    @property
    def funds(self) -> Funds:
        return Funds.of(self.budget)

    @property
    def sure(self) -> Fraction:
        return Fraction(str(self.beta))

    @property
    def k(self) -> int:
        """The literals of the target conjunction."""
        return 3


# --- boxes ------------------------------------------------------------------------------------------------------------

TARGET = (60, 190, 40, 160)  # x from, x to, z from, z to


def plane(side: int = SIDE) -> dp.Domain:
    return dp.Domain(x=dp.Number(0, side - 1, step=1), z=dp.Number(0, side - 1, step=1), y=dp.Category("no", "yes"))


@functools.lru_cache(maxsize=8)
def points(n: int, seed: int) -> tuple[dp.Table, Ints, Mask]:
    """Rows in the plane that the target box labels right."""
    codes = np.random.default_rng(seed).integers(0, SIDE, (n, 2))
    a, b, c, d = TARGET
    inside = (codes[:, 0] >= a) & (codes[:, 0] <= b) & (codes[:, 1] >= c) & (codes[:, 1] <= d)
    labels = np.where(inside, "yes", "no").tolist()
    return dp.Table({"x": codes[:, 0], "z": codes[:, 1], "y": labels}, plane(), name="points"), codes, inside


def box_learners(here: Settings, d: int = 2, side: int = SIDE) -> Any:
    """Every method for boxes in d columns; nothing is read."""
    names = tuple(f"x{place}" for place in range(d)) if d != 2 else COLUMNS
    columns = {name: dp.Number(0, side - 1, step=1) for name in names}
    facts = Facts(dp.Domain({**columns, "y": dp.Category("no", "yes")}), Neighbours("replace-one"), None)
    return box_methods(names, LABELS, facts, here.sure, here.funds)


def in_box(box: Any, codes: Ints) -> Mask:
    (low_x, low_z), (high_x, high_z) = box
    return np.asarray(
        (codes[:, 0] >= low_x) & (codes[:, 0] <= high_x) & (codes[:, 1] >= low_z) & (codes[:, 1] <= high_z)
    )


# --- words ------------------------------------------------------------------------------------------------------------

BOX_LINES = report.Grid(
    ("line", "lecture", "discreet"),
    [
        (
            "1",
            "S <- the positive rows (if there are few: answer with the empty box. How?)",
            "a noisy count of the positives decides, and is charged",
        ),
        ("2", "project S on the first axis and sort", "read through one door that returns slices of fixed size"),
        ("3", "the m smallest and the m largest values", "the same, filled up with the far end of the grid"),
        (
            "4",
            "a_1 <- interior point of the m smallest, b_1 <- of the m largest, each with epsilon/4",
            "the same, priced for a replaced value; summed in Renyi currency in many dimensions",
        ),
        ("5", "the same for the second axis", "for every axis"),
        ("6", "answer with [a_1, b_1] x [a_2, b_2]", "the same"),
    ],
    "The lecture's box learner, line by line, and ours beside it: pac.boxes.SlicedBox.",
)

CONJ_LINES = report.Grid(
    ("line", "take 1", "take 2", "discreet"),
    [
        (
            "start",
            "h <- all 2d literals",
            "h <- nothing",
            "AllConjunctions draws from all conjunctions at once, with exact weights, where that is quick",
        ),
        (
            "loop",
            "for every literal: count the positive rows that falsify it, + Lap(2d/epsilon)",
            "J times: exponential mechanism with the score min(negatives falsified - N/k, -positives falsified)",
            "greedy: the same with zCDP; self-deleting: one price for all rounds",
        ),
        (
            "decide",
            "delete it if the noisy count is above (2d/epsilon) ln(2d/beta)",
            "add it; put aside the rows that falsify it",
            "thresholds from exact tails of the discrete noise",
        ),
        (
            "end",
            "answer with h",
            "answer with l_1 and ... and l_J (the notes say l_1 and ... and l_j, slip 8)",
            "the same",
        ),
    ],
    "The lecture's two private learners of conjunctions, and ours.",
)

THEOREMS = report.Grid(
    ("statement", "says", "needs"),
    [
        (
            "the game",
            "P[error_X(h) > alpha] <= beta; privacy always",
            "some rule of the class labels every row of X right (for accuracy only)",
        ),
        (
            "interior point",
            "between the smallest and the largest of m values with probability 1 - beta",
            "m values: about 4 ln(size)/epsilon (exponential), 2^log*(size)/epsilon (pairs of prefixes)",
        ),
        (
            "boxes",
            "at most 2 d m positive rows are wrong, no negative ones",
            "n >= 2 d m / alpha: 4 m / alpha in the plane",
        ),
        (
            "d dimensions",
            "n grows like d^1.5 by zCDP (d^2 by basic composition); d by the exponential mechanism over all boxes",
            "as above",
        ),
        (
            "any class C",
            "exponential mechanism: n >= 2 (ln|C| + ln(1/beta)) / (epsilon alpha), replace-one",
            "time |C|",
        ),
        ("|CONJ_(k,d)|", "the sum over j <= k of C(d, j) 2^j", "nothing"),
        ("deletion", "no row is labelled wrong", "some conjunction labels every row right; no privacy"),
        ("take 1", "n >= 4 d^2 / (alpha epsilon) ln(2d/beta) about", "as the game"),
        ("take 2", "n >= C k^2 ln^2(1/alpha) ln(d) / (alpha epsilon): k instead of d", "as the game"),
    ],
    "Every statement of the lecture, with its constants.",
)


def statements(here: Settings) -> Shown:
    """The lecture's statements and its algorithms."""
    return Shown([THEOREMS, BOX_LINES, CONJ_LINES])


# --- pictures of boxes ------------------------------------------------------------------------------------------------


def one_box(here: Settings) -> Shown:
    """One run of the box learner at its stated size: points, slices, target and learned box."""
    method = box_learners(here).named("basic")
    n, mechanism = method.needed(here.alpha), method.mechanism(here.alpha)
    table, codes, inside = points(n, here.seed)
    (box,) = released(mechanism, table, runs=1, seed=here.seed)
    learned = in_box(box, codes)
    missed, false = int((inside & ~learned).sum()), int((~inside & learned).sum())
    order = np.sort(codes[inside], axis=0)
    cuts = [(int(order[mechanism.count - 1, axis]), int(order[-mechanism.count, axis])) for axis in (0, 1)]

    def paint(axes: Any) -> None:
        from discreet.report.plot import rectangle

        few = slice(0, 700)
        for name, chosen, colour, marker in (("positive", inside, SERIES[0], "+"), ("negative", ~inside, FAINT, ".")):
            shown = codes[few][chosen[few]]
            axes.plot(
                shown[:, 0], shown[:, 1], linestyle="", marker=marker, markersize=3, color=colour, label=name, alpha=0.6
            )
        a, b, c, d = TARGET
        rectangle(axes, [(a, b), (c, d)], fill=False, edgecolor=SERIES[2], linewidth=2, label="target")
        (low_x, low_z), (high_x, high_z) = box
        rectangle(
            axes,
            [(low_x, high_x), (low_z, high_z)],
            fill=False,
            edgecolor=SERIES[1],
            linewidth=2,
            linestyle="--",
            label="learned",
        )
        for place, x in enumerate(cuts[0]):
            axes.plot(
                [x, x],
                [c, d],
                color=SERIES[3],
                linewidth=1,
                linestyle=":",
                label="ends of the slices" if place == 0 else None,
            )
        for z in cuts[1]:
            axes.plot([a, b], [z, z], color=SERIES[3], linewidth=1, linestyle=":")
        axes.set_aspect("equal")

    grow = (0, SIDE - 1)
    picture = plot(
        "A box from four interior points",
        f"From {n:,} rows the learner missed {missed:,} positive rows and took in {false} negative ones.",
        f"The slices hold the {mechanism.count} most extreme positive values of each side, between the target's "
        "face and the dotted line; "
        "an interior point of a slice becomes a face, so the learned box lies inside of the target. 1,500 of the "
        "rows are drawn.",
        ("", "x from", "x to", "z from", "z to"),
        [("target", *TARGET), ("learned", int(box[0][0]), int(box[1][0]), int(box[0][1]), int(box[1][1]))],
        Panel(Scale("x", grow), Scale("z", grow), (), 5.2, paint=paint),
    )
    few = 4 * mechanism.count
    return Shown(
        [picture],
        [
            Check("wrong positive rows, against 4 m", missed, few),
            Check("wrong negative rows", false, 0),
            Check("share of wrong rows, against alpha", (missed + false) / n, here.alpha),
            Check(
                "slip 1: wrong positive rows, against none",
                missed,
                0,
                "slip 1: the 4 m wrong rows are positive ones; the notes say negative",
            ),
        ],
    )


def game(here: Settings) -> Shown:
    """The PAC game, many times: the share of wrong rows at the stated size, at a twentieth of it, and on fresh rows."""
    method = box_learners(here).named("basic")
    n, mechanism = method.needed(here.alpha), method.mechanism(here.alpha)
    small = max(40, n // 40)
    lines, checks = [], []
    fresh = points(20_000, here.seed + 99)
    games = (("stated size", n, here.runs), ("a fortieth of it", small, min(200, here.runs)))
    for place, (name, size, runs) in enumerate(games):
        table, codes, inside = points(size, here.seed)
        drawn = released(mechanism, table, runs=runs, seed=here.seed + 7)
        errors = np.array([np.mean(in_box(box, codes) != inside) for box in drawn])
        lost = float(np.mean(errors > here.alpha))
        grid = np.linspace(0, max(0.3, 2 * here.alpha), 61)
        lines.append(
            Series(
                f"{name}, n = {size:,}",
                [(float(x), float(np.mean(errors > x))) for x in grid],
                {**LINE, "color": SERIES[place]},
            )
        )
        reason = "" if place == 0 else "too few rows: the theorem says nothing"
        checks.append(
            Check(
                f"{name}: share of {runs:,} games that are lost",
                lost,
                here.beta + 4 * math.sqrt(here.beta / runs),
                reason,
            )
        )
        if place == 0:
            beyond = float(np.mean([np.mean(in_box(box, fresh[1]) != fresh[2]) for box in drawn[:100]]))
            checks.append(Check("mean error on 20,000 fresh rows of the same law", beyond, here.alpha + 0.02))
    lines.append(Series("beta", [(0, here.beta), (max(0.3, 2 * here.alpha), here.beta)], BOUND))
    x = Scale("error", (0, max(0.3, 2 * here.alpha)), percent=True)
    picture = over(
        f"The game, {here.runs:,} times",
        f"At n = {n:,} {number(100 * checks[0].measured)} % of the games had an error above alpha = "
        f"{here.alpha:g}; at most {100 * here.beta:g} % are promised. "
        f"At n = {small:,} {number(100 * checks[2].measured)} % had.",
        "How often the share of wrong rows was above x. The promise is about one point of the curve: at x = "
        "alpha it lies below beta.",
        x,
        Scale("games with a larger error", (-0.02, 1.02), percent=True),
        lines,
    )
    known = boxes.population_size(2, str(here.alpha), str(here.beta))
    words = (
        "The real PAC model asks for a small error on fresh rows of the same law, too. A box in the plane that "
        "is right about its rows is within "
        f"alpha of its error on fresh ones from n = {known:,} on, with probability 1 - beta (VC bound)."
    )
    return Shown([picture, words], checks)


def dimensions(here: Settings) -> Shown:
    """Rows needed over d: basic composition, zCDP, a price without d, and the exponential mechanism over all boxes."""
    counts = [1, 2, 4, 8, 16, 32]
    found: dict[str, list[tuple[int, float | None]]] = {}
    names = {
        "basic": "basic",
        "zcdp": "zcdp",
        "reorder-slice": "reorder-slice",
        all_boxes.NAME: "all boxes (time |D|^2d)",
    }
    for d in counts:
        learners = box_learners(here, d)
        for name, says in names.items():
            method = learners.find(name)
            size = method.needed(here.alpha) if isinstance(method, Method) else UNPROVEN
            found.setdefault(says, []).append((d, float(size) if size < UNPROVEN else None))
    lines = [Series(name, values) for name, values in found.items()]
    grown = {name: _growth(values) for name, values in found.items()}
    picture = over(
        "Rows for a box in d dimensions",
        "From 8 to 32 columns the rows grow like "
        + ", ".join(f"d^{power:.2f} ({name})" for name, power in grown.items() if power)
        + ".",
        f"Rows for alpha = {here.alpha:g} at ({here.epsilon:g}, {here.delta:g}), columns of {SIDE} values. The "
        "class exercise asks why d^1.5: 2d interior points cost sqrt(2d) times one of them by strong composition, and "
        "each may miss m rows. reorder-slice is a learner whose price does not depend on d.",
        Scale("d, columns", ticks=counts),
        Scale("rows needed"),
        lines,
    )
    checks = [
        Check("power of d by basic composition", grown["basic"] or 0, 2.15),
        Check("power of d by zCDP", grown["zcdp"] or 0, 1.65),
        Check("power of d by reordered slices", grown["reorder-slice"] or 0, 1.15),
    ]
    return Shown([picture], checks)


def _growth(values: Sequence[tuple[int, float | None]]) -> float | None:
    """The power of d between 8 and 32."""
    known = dict(values)
    low, high = known.get(8), known.get(32)
    return None if not low or not high else math.log(high / low) / math.log(4)


# --- interior points --------------------------------------------------------------------------------------------------


def log_star(here: Settings) -> Shown:
    """Values needed for an interior point, over the bits of the domain; and the success at that size, measured."""
    counts = [4, 8, 16, 32, 64, 256, 1024, 2**14, 2**20, 2**30, 2**40]
    names = {
        "exponential": "exponential: log",
        "binary-search": "binary search: sqrt(log)",
        "prefix": "prefix: log log",
        "pair-prefix": "pairs of prefixes: 2^log*",
    }
    found: dict[str, list[tuple[int, float | None]]] = {says: [] for says in names.values()}
    for bits in counts:
        facts = Facts(dp.Domain(x=Whole(bits)), Neighbours("replace-one"), None)
        methods = interior.methods(facts=facts, column="x", beta=here.sure, funds=here.funds)
        for name, says in names.items():
            method = methods.find(name)
            found[says].append((bits, float(method.needed(here.alpha)) if isinstance(method, Method) else None))
    lines = [Series(name, values) for name, values in found.items()]
    slow, fast = found["exponential: log"], found["pairs of prefixes: 2^log*"]
    checks = []
    if fast[0][1] and fast[-1][1]:
        checks.append(Check("pairs of prefixes: 2^40 bits over 4 bits", fast[-1][1] / fast[0][1], 5))
    checks += _success(here)
    picture = over(
        "log* against log",
        "From a domain of 2^4 points to one of 2^(2^40) the exponential mechanism's values grow by "
        f"{number((slow[-1][1] or 0) / (slow[0][1] or 1))} times, those of "
        f"pairs of prefixes by {number((fast[-1][1] or 0) / (fast[0][1] or 1))} times.",
        f"How many values make an interior point likely (beta = {here.beta:g}) at ({here.epsilon:g}, "
        f"{here.delta:g}). log*(x) is how often the logarithm can "
        "be taken until 1 is reached: 5 for every number that can be written down. Prefix search has better "
        "constants up to there.",
        Scale("bits of the domain", ticks=[4, 32, 1024, 2**20, 2**40]),
        Scale("values needed"),
        lines,
    )
    return Shown([picture], checks)


def _success(here: Settings) -> list[Check]:
    """Each routine at exactly its size, on values that stand close together in a large domain."""
    facts = Facts(dp.Domain(x=dp.Number(0, 2**16 - 1, step=1)), Neighbours("replace-one"), None)
    methods = interior.methods(facts=facts, column="x", beta=here.sure, funds=here.funds)
    runs, checks = 150, []
    for name in ("exponential", "binary-search", "prefix"):
        method = methods.named(name)
        mechanism: InteriorPoint = method.mechanism(here.alpha)
        size = method.needed(here.alpha)
        values = 40_000 + np.random.default_rng(here.seed).integers(0, 30, size)
        table = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 2**16 - 1, step=1)), name="values")
        drawn = np.array(released(mechanism, table, runs=runs, seed=here.seed))
        failed = float(np.mean((drawn < values.min()) | (drawn > values.max())))
        checks.append(
            Check(
                f"{name} at its {size} values: share of {runs} points outside",
                failed,
                here.beta + 4 * math.sqrt(here.beta / runs),
            )
        )
    return checks


# --- conjunctions -----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def bits(n: int, d: int, k: int, seed: int) -> tuple[BitMatrix, Mask, Mask]:
    """Random bits, labelled by v_1 and not v_2 and v_3 ..."""
    rng = np.random.default_rng(seed)
    rows = rng.random((n, d)) < 0.7
    labels = np.ones(n, dtype=bool)
    for variable in range(k):
        labels &= rows[:, variable] ^ bool(variable % 2)
    return BitMatrix(rows, labels, target=CLASSES), rows, labels


def says(literals: Sequence[int], rows: Mask) -> Mask:
    """What a conjunction says about rows; literal 2 v is bit v, literal 2 v + 1 its negation."""
    said = np.ones(len(rows), dtype=bool)
    for each in literals:
        said &= rows[:, each // 2] ^ bool(each % 2)
    return said


def conjunction_learners(here: Settings, n: int) -> Any:
    facts = Facts(dp.Domain(x=Bits(here.d), y=CLASSES), Neighbours("replace-one"), n)
    return conjunction_methods(BITS, POSITIVE, here.k, facts, here.sure, here.funds)


VERSIONS = {
    "exact": "step 0: exponential mechanism",
    "lecture-counts": "take 1: noisy counts",
    "greedy-basic": "take 2: one literal at a time",
    "counts": "discreet: better counts",
}


def three_versions(here: Settings) -> Shown:
    """The share of games won over n, for the lecture's three learners and a better one, with the n that each states."""
    sizes = [30, 60, 120, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]
    runs, lines, checks, stated, starts = 24, [], [], [], {}
    learners = conjunction_learners(here, 1_000)
    for place, (name, title) in enumerate(VERSIONS.items()):
        method = learners.named(name)
        mechanism, needed = method.mechanism(here.alpha), method.needed(here.alpha)
        won = []
        for n in [*sizes, needed]:
            data, rows, labels = bits(n, here.d, here.k, here.seed)
            drawn = released(mechanism, data, runs=runs, seed=here.seed + n)
            won.append((n, float(np.mean([np.mean(says(each, rows) != labels) <= here.alpha for each in drawn]))))
        curve = sorted(won)
        lines.append(Series(title, curve, {"color": SERIES[place], "markersize": 4}))
        stated.append((title, needed, next((n for n, share in curve if share >= 1 - here.beta), None)))
        starts[title] = needed
        lost = 1 - won[-1][1]
        checks.append(
            Check(
                f"{title}: share of games lost at its n = {needed:,}", lost, here.beta + 4 * math.sqrt(here.beta / runs)
            )
        )

    def paint(axes: Any) -> None:
        for place, needed in enumerate(starts.values()):
            axes.axvline(needed, color=SERIES[place], linewidth=1, linestyle=":")

    picture = plot(
        "The n at which each version starts to win",
        " ".join(
            f"{title} states n = {needed:,} and wins from about {seen or 0:,} on." for title, needed, seen in stated
        ),
        f"The target has {here.k} literals of {here.d} variables; {runs} games for each n; won: at most alpha = "
        f"{here.alpha:g} of the rows are wrong. Dotted: "
        "the n of each theorem. Proofs are about the worst table, so they start later than these tables need.",
        ("version", "stated n", f"first n with {100 * (1 - here.beta):g} % won"),
        stated,
        Panel(
            Scale("n, rows", log=True),
            Scale("games won", (-0.03, 1.03), percent=True),
            lines,
            3.6,
            columns=1,
            paint=paint,
        ),
    )
    return Shown([picture], checks)


def deletion_run(here: Settings) -> Shown:
    """The lecture's example of the deletion algorithm, without privacy."""
    words = ("010101", "010110", "111101", "111111", "000000", "101101", "111101", "000101")
    labels = (1, 0, 1, 0, 0, 1, 1, 1)
    rows = np.array([[digit == "1" for digit in word] for word in words])
    left = set(range(12))
    steps = [("start", "all 12 literals", 12)]
    for word, row, label in zip(words, rows, labels, strict=True):
        if label:
            left -= {2 * v + int(bit) for v, bit in enumerate(row)}
            steps.append((word, _named(left), len(left)))
    found = deletion(rows, np.array(labels, dtype=bool))
    wrong = int((says(found, rows) != np.array(labels, dtype=bool)).sum())
    grid = report.Grid(
        ("positive row", "literals left", "how many"),
        steps,
        "Every positive row deletes the literals that it falsifies.",
    )
    return Shown(
        [grid], [Check("rows that the result labels wrong", wrong, 0), Check("literals of the result", len(found), 3)]
    )


def _named(literals: Sequence[int] | set[int]) -> str:
    return " and ".join(("not " if each % 2 else "") + f"v{each // 2 + 1}" for each in sorted(literals))


# --- slips ------------------------------------------------------------------------------------------------------------


def lost_logarithm(here: Settings) -> Shown:
    """Slips 3 and 4: the exact failure of the exponential mechanism at the lecture's n and at the right one."""
    lecture: list[tuple[int, float]] = []
    right: list[tuple[int, float]] = []
    class_sizes = []
    dims = [d for d in (3, 4, 5, 6, 8, 10) if d <= max(here.d, 6)]
    rate = Fraction(str(here.epsilon)) / 2
    for d in dims:
        k = min(here.k, d)
        size = sum(math.comb(d, j) * 2**j for j in range(k + 1))
        class_sizes.append((d, size, d**k))
        for into, n in (
            (lecture, math.ceil(math.log(d**k) / (here.epsilon * here.alpha))),
            (right, math.ceil(2 * (math.log(size) + math.log(1 / here.beta)) / (here.epsilon * here.alpha))),
        ):
            into.append(
                (
                    d,
                    max(
                        _exact_failure(rows, AllConjunctions(BITS, POSITIVE, k, rate), here.alpha)
                        for rows in _hard_tables(n, d, k, here)
                    ),
                )
            )
    lines = [
        Series("n = ln(d^k) / (epsilon alpha), the lecture", lecture),
        Series("n = 2 (ln|C| + ln(1/beta)) / (epsilon alpha)", right),
        Series("beta", [(d, here.beta) for d in dims], BOUND),
    ]
    worst = max(y for _, y in lecture)
    grid = report.Grid(("d", "|CONJ_(3,d)|", "d^3"), class_sizes, "Slip 4: the class is larger than d^k.")
    picture = over(
        "What the lecture's n lacks",
        "At the lecture's n the learner is wrong on more than alpha of the rows with probability up to "
        f"{number(worst)}.",
        "The exact probability, by listing all conjunctions with their weights, on the worst of three tables. "
        "The lecture's n lacks the factor 2 of replace-one, "
        "the term ln(1/beta), and counts d^k conjunctions.",
        Scale("d, variables", ticks=dims),
        Scale("probability of failure", (0, 1), log=False),
        lines,
        columns=1,
    )
    return Shown(
        [picture, grid],
        [
            Check("exact failure at the right n", max(y for _, y in right), here.beta),
            Check(
                "exact failure at the lecture's n", worst, here.beta, "slip 3: a factor 2 and ln(1/beta) are missing"
            ),
            Check(
                "|CONJ| over d^k, at the largest d",
                class_sizes[-1][1] / class_sizes[-1][2],
                1,
                "slip 4: |CONJ| is the sum over j <= k of C(d, j) 2^j",
            ),
        ],
    )


def _hard_tables(n: int, d: int, k: int, here: Settings) -> list[BitMatrix]:
    """Random rows, and all-positive rows in which every variable is false for just more than alpha of them."""
    falsified = min(n // d, math.ceil(here.alpha * n) + 1)
    edge = np.ones((n, d), dtype=bool)
    for variable in range(d):
        edge[variable * falsified : (variable + 1) * falsified, variable] = False
    random = [bits(n, d, k, here.seed + place)[0] for place in (0, 1)]
    return [*random, BitMatrix(edge, np.ones(n, dtype=bool), target=CLASSES)]


def _exact_failure(rows: BitMatrix, mechanism: AllConjunctions, alpha: float) -> float:
    found = PackedRows.of(rows, BITS, POSITIVE)
    levels, counts = Listing(found, mechanism.k, lambda done: None).histogram()
    weights = counts * np.exp(-float(mechanism.rate) * (levels - levels.min()))
    return float(weights[levels > alpha * (found.negatives + found.positives)].sum() / weights.sum())


def take_one_price(here: Settings) -> Shown:
    """Slip 5: the noise Lap(2d/epsilon) is right for replace-one and twice too much for add-remove."""
    scale = Fraction(2 * here.d) / Fraction(str(here.epsilon))
    counts = NoisyCounts(BITS, POSITIVE, scale, Fraction(0))
    prices = {
        kind: float(counts.guarantee(Facts(dp.Domain(x=Bits(here.d), y=CLASSES), Neighbours(kind), 1000)).pure or 0)
        for kind in ("replace-one", "add-remove")
    }
    d, log = here.d, math.log(2 * here.d / here.beta)
    lecture_n = 8 * d**2 / (here.alpha * here.epsilon) * log
    needed = conjunction_learners(here, 1_000).named("counts").needed(here.alpha)
    grid = report.Grid(
        ("", "value"),
        [
            ("price under replace-one", prices["replace-one"]),
            ("price under add-remove", prices["add-remove"]),
            ("the lecture's n, 8 d^2 ln(2d/beta) / (alpha epsilon)", lecture_n),
            ("discreet's n, counts through differences", needed),
        ],
        f"Noise Lap(2d/epsilon) on each of the 2d counts, d = {d}. A row falsifies exactly d of the 2d literals, "
        "so it moves d counts by 1; a replaced row moves at most 2d.",
    )
    return Shown(
        [grid],
        [
            Check("price under replace-one, against epsilon", prices["replace-one"], here.epsilon),
            Check("price under add-remove, against epsilon/2", prices["add-remove"], here.epsilon / 2),
            Check("discreet's n over half of the lecture's", 2 * needed / lecture_n, 1),
            _survivors(here),
        ],
    )


def _survivors(here: Settings) -> Check:
    """How many literals outlive take 1 by mistake: v and not v cannot both be falsified by few of the positive rows."""
    method = conjunction_learners(here, 1_000).named("lecture-counts")
    n = max(1_000, method.needed(here.alpha) // 20)
    data, _, _ = bits(n, here.d, here.k, here.seed)
    drawn = released(method.mechanism(here.alpha), data, runs=20, seed=here.seed)
    most = max(len(set(each) - {2 * v + v % 2 for v in range(here.k)}) for each in drawn)
    return Check(f"take 1 at n = {n:,}: literals that survive by mistake, against d", most, here.d)


def take_two(here: Settings) -> Shown:
    """Slips 6 and 7: the score lost in a round against ln(d)/epsilon, and the error over the number of rounds."""
    n = 20_000
    data, rows, labels = bits(n, here.d, here.k, here.seed)
    few, few_rows, few_labels = bits(400, here.d, here.k, here.seed)
    enough = math.ceil(2 * here.k * math.log(2 / here.alpha))
    rounds = sorted({1, 2, 4, 8, enough, 2 * enough, math.ceil(2 * here.k * math.log(n))})
    errors, lost = [], []
    for count in rounds:
        # epsilon / J for each round; a selection at rate r costs 2 r under replace-one.
        mechanism = GreedySelection(BITS, POSITIVE, here.k, count, Fraction(str(here.epsilon)) / count / 2)
        drawn = released(mechanism, data, runs=12, seed=here.seed + count)
        errors.append((count, float(np.mean([np.mean(says(each, rows) != labels) for each in drawn]))))
        tried = released(mechanism, few, runs=12, seed=here.seed + count)
        lost.append((count, max(_lost_score(each, few_rows, few_labels, here.k) for each in tried)))
    delta = math.log(2 * here.d) / here.epsilon
    every = here.beta / (12 * len(rounds))  # so that the bound holds for all of these runs at once
    lines = [
        Series("largest score lost in a round", [(count, max(y, 0.1)) for count, y in lost]),
        Series(
            "ln(2d)/epsilon, the lecture's Delta",
            [(count, delta) for count in rounds],
            {"marker": None, "color": SERIES[3]},
        ),
        Series(
            "J times 2 ln((2d+1) J/b)/epsilon",
            [(count, 2 * count * math.log((2 * here.d + 1) * count / every) / here.epsilon) for count in rounds],
            BOUND,
        ),
    ]
    below = [Series("mean error", errors), Series("alpha", [(rounds[0], here.alpha), (rounds[-1], here.alpha)], BOUND)]
    x = Scale("J, rounds", ticks=rounds)
    stated = dict(lines[2].points)
    picture = plot(
        "Take 2: how much a round loses, and how many rounds it takes",
        f"A round loses up to {number(max(y for _, y in lost))} rows of score; ln(2d)/epsilon would be "
        f"{number(delta)}. With J = {enough} rounds the mean error is {number(dict(errors)[enough])}.",
        "Above, 400 rows, where it matters: each of J selections has epsilon/J, so its score is off by J times "
        "more than the notes say. "
        "Below: J = 2 k ln(2/alpha) "
        "rounds are enough, and J need not grow with n; more rounds only divide the budget further. b is beta "
        "divided by the number of runs.",
        ("J", "largest score lost", "mean error"),
        [(count, y, z) for (count, y), (_, z) in zip(lost, errors, strict=True)],
        Panel(x, Scale("rows of score"), lines, 3.1, columns=1),
        Panel(x, Scale("error", log=False, percent=True), below, 2.6),
    )
    return Shown(
        [picture],
        [
            Check("score lost over J times the bound, at most", max(y / (stated[count] or 1) for count, y in lost), 1),
            Check(
                "score lost over ln(2d)/epsilon, at most",
                max(y for _, y in lost) / delta,
                1,
                "slip 6: Delta lacks the factor J",
            ),
            Check(f"slip 7: mean error with J = {enough} rounds, against alpha", dict(errors)[enough], here.alpha),
        ],
    )


def _lost_score(literals: Sequence[int], rows: Mask, labels: Mask, k: int) -> float:
    """The largest distance of a drawn literal's score from the best one's, over the rounds."""
    alive, worst = np.ones(len(rows), dtype=bool), 0.0
    both = np.stack([~rows, rows], axis=2).reshape(len(rows), -1)  # falsified: literal 2 v where the bit is false
    for each in literals:
        negative, positive = (both[alive & chosen].sum(axis=0) for chosen in (~labels, labels))
        scores = np.minimum(negative - (alive & ~labels).sum() / k, -positive)
        worst = max(worst, float(scores.max() - scores[each]))
        alive &= ~both[:, each]
    return worst


# --- attack -----------------------------------------------------------------------------------------------------------


def attack(here: Settings) -> Shown:
    """The learners of this lecture and a broken twin of each: exact epsilons on neighbouring tables."""
    wanted = ("InteriorPoint", "SlicedBox", "AllBoxes", "NoisyCounts", "GreedySelection", "AllConjunctions")
    bars, checks, rows_ = [], [], []
    for each in examples():
        if each.name not in wanted:
            continue
        try:
            honest, broken = each.finding(), each.finding(each.mistake)
        except DiscreetError:  # pragma: no cover - every attack of the list runs
            continue
        bars.append((broken.claimed, broken.found))
        rows_.append((each.name, honest.claimed, honest.found, each.mistake.label, broken.claimed, broken.found))
        checks.append(Check(f"{each.name}: certain epsilon", honest.found, honest.claimed))
        checks.append(
            Check(
                f"{each.name}, twin: certain epsilon", broken.found, broken.claimed, f"a twin that {each.mistake.label}"
            )
        )
    top = 6.0

    def paint(axes: Any) -> None:
        for place, (claimed, found) in enumerate(bars):
            first = place == 0
            axes.barh(place, min(found, top), color=SERIES[1], height=0.5, label="certain" if first else None)
            axes.plot(
                [claimed] * 2,
                [place - 0.35, place + 0.35],
                color=SERIES[0],
                linewidth=2.5,
                label="claimed" if first else None,
            )
        axes.set_yticks(range(len(bars)), [row[0] for row in rows_])

    picture = plot(
        "Watch epsilon be exceeded",
        f"All {len(bars)} twins exceed their claims, no honest learner does.",
        "The exact law on two neighbouring tables; bars are cut at 6. SlicedBox's twin is slip 2: it prices its "
        "interior points for added values, "
        "where an added row pushes another one out of the slice, which is a replacement. NoisyCounts' twin "
        "compares exact counts.",
        ("learner", "honest: claimed", "honest: certain", "the twin", "twin: claimed", "twin: certain"),
        rows_,
        Panel(Scale("epsilon", (0, top * 1.02)), Scale("", (-0.6, len(bars) - 0.4)), (), 3.4, paint=paint),
    )
    return Shown([picture], checks)


LAB = Lab(
    12,
    "Lab 12: private PAC learning",
    "Learn a rule that labels most rows right (a box in the plane, a conjunction of bits) without showing any "
    "single row.",
    Settings(),
    [
        Section(
            "The game and the algorithms",
            "A table holds n labelled rows. Suppose that some rule of a class C labels all of them right. A "
            "learner must find a rule that is wrong on at most alpha "
            "of the rows, except with probability beta; and it must be private for every table, also for one "
            "that no rule of C explains.\n\n"
            "Without privacy boxes are easy: the smallest box around the positive rows. Its faces are rows, so "
            "it shows persons. The private learner replaces each "
            "face by an interior point: any value between the smallest and the largest of a slice of rows.",
            statements,
        ),
        Section(
            "A box from interior points",
            "Four slices, four interior points, one box. It lies inside of the target, so it may miss positive "
            "rows and takes in no negative ones.",
            one_box,
        ),
        Section(
            "The game, many times",
            "A theorem about probabilities is tested by repetition.",
            game,
        ),
        Section(
            "log* against log",
            "How many values does an interior point take? It depends on the size of the domain, and hardly so "
            "for the best methods.",
            log_star,
        ),
        Section(
            "More dimensions",
            "The class exercise: how do the rows grow with the number of columns?",
            dimensions,
        ),
        Section(
            "Conjunctions without privacy",
            "Start with all literals and delete those that a positive row falsifies. The lecture's own run:",
            deletion_run,
        ),
        Section(
            "Three private versions",
            "Step 0 weighs all conjunctions at once and needs the fewest rows, in time d^k. Take 1 counts, with "
            "noise, how many positive rows falsify each literal. Take 2 "
            "chooses one literal at a time. From which n on does each win?",
            three_versions,
        ),
        Section(
            "The lecture's sizes",
            "The exponential mechanism's n in the lecture is ln|C| / (epsilon alpha), with |C| = d^k.",
            lost_logarithm,
        ),
        Section(
            "The noise of take 1",
            "Slip 5 is about the relation: is a neighbouring table one with a row replaced, or with a row more?",
            take_one_price,
        ),
        Section(
            "The rounds of take 2",
            "Slips 6 and 7 are about J, the number of rounds: how much it costs, and how large it must be.",
            take_two,
        ),
        Section(
            "Attacks on broken twins",
            "Each twin has one mistake. The law of its outputs is listed on two neighbouring tables; an event "
            "that is too likely on one of them refutes the claim.",
            attack,
        ),
    ],
)
