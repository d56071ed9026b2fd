"""Lab 12: private PAC learning: the game, boxes from interior points, log*, conjunctions, and what breaks."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import discreet as dp
from discreet import report
from discreet.audit.examples import examples
from discreet.data import BitMatrix, Bits, Facts, Whole
from discreet.funds import Funds
from discreet.guarantee import Neighbours
from discreet.method import UNPROVEN, Method
from discreet.pac import all_boxes, box_methods, boxes, conjunction_methods, interior
from discreet.pac.conjunctions import AllConjunctions, Listing, NoisyCounts, PackedRows, deletion
from discreet.pac.greedy import GreedySelection
from discreet.pac.interior import InteriorPoint
from discreet.pac.rules import Labels, Literals

from . import kit
from .kit import BOUND, LINE, SERIES, Check, Panel, Scale, Section, Series, Shown, number, over, plot, released

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

COLUMNS, LABELS = ("x", "z"), Labels("y", "yes")
BITS, POSITIVE, CLASSES = Literals("x"), Labels("y", True), dp.Category(False, True)
SIDE = 256


@dataclass(frozen=True)
class Settings(kit.Checked):
    """The numbers of lab 12."""

    n: int = kit.setting(0, "rows of a game with boxes; 0: the number that the theorem states", least=0, most=10**6)
    d: int = kit.setting(10, "bits of a row, for conjunctions", least=3, most=40)
    epsilon: float = kit.epsilon_setting(least=0.05)
    delta: float = kit.delta_setting()
    alpha: float = kit.setting(0.1, "accuracy: the share of the rows that may be labelled wrong", least=0.01, most=0.45)
    beta: float = kit.setting(0.1, "accuracy: the probability that more rows are", least=1e-4, most=0.5)
    runs: int = kit.setting(1_000, "games that are played with boxes", least=20, most=100_000)
    seed: int = kit.seed_setting(12)

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
def points(n: int, seed: int, flipped: float = 0.0) -> tuple[dp.Table, Ints, Mask]:
    """Rows in the plane that the target box labels right, but for this share of them."""
    codes = np.random.default_rng(seed).integers(0, SIDE, (n, 2))
    a, b, c, d = TARGET
    inside = (codes[:, 0] >= a) & (codes[:, 0] <= b) & (codes[:, 1] >= c) & (codes[:, 1] <= d)
    inside ^= np.random.default_rng(seed + 1).random(n) < flipped
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
        ("2", "project S on the first axis and sort", "the same"),
        (
            "3",
            "the m smallest and the m largest values",
            "the same; a slice that is too short is filled up with the far end of the grid",
        ),
        (
            "4",
            "a_1 <- interior point of the m smallest, b_1 <- of the m largest, each with epsilon/4",
            "the same, priced for a replaced value; in many dimensions the prices add up as Renyi divergences",
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
            "greedy: the same with zCDP; self-deleting (a row that falsifies the chosen literal is deleted, so it is "
            "noticed only once): one price for all rounds",
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
            "answer with l_1 and ... and l_J (the notes print l_j, slip 8)",
            "the same",
        ),
    ],
    "The lecture's two private learners of conjunctions, and ours.",
)

THEOREMS = kit.theorems(
    (
        "the game",
        "P[error_X(h) > alpha] <= beta, error_X(h) the share of rows that h labels wrong; privacy for every table",
        "accuracy only: some rule of the class labels every row right",
    ),
    ("the real PAC model", "the same error on fresh rows, up to alpha", "n >= a number from the VC dimension"),
    (
        "interior point",
        "a value between the smallest and the largest of m values, with probability 1 - beta. Lecture: m about "
        "(1/epsilon) ln^2(1/delta) log*|D|",
        "m values; ours: 4 ln|D| / epsilon (exponential), 2^log*|D| / epsilon (pairs of prefixes), about",
    ),
    ("box: privacy", "four routines of (epsilon/4, delta/4) are (epsilon, delta) together", "basic composition"),
    (
        "box: accuracy",
        "the box lies in the target; at most 4 m positive rows are wrong, no negative ones (the notes say 4 m "
        "negative, slip 1)",
        "n >= 4 m / alpha, all four routines succeed",
    ),
    (
        "d dimensions",
        "n grows like d^1.5 by strong composition (d^2 by basic)",
        "n >= 2 d m / alpha",
    ),
    (
        "all boxes",
        "exponential mechanism: n about d ln|D| / (alpha epsilon) (lecture), 2 (2 d ln|D| + ln(1/beta)) / (alpha "
        "epsilon) (exactly, slip 3)",
        "time |D|^(2d)",
    ),
    (
        "any class C",
        "n >= ln|C| / (epsilon alpha) (lecture); n >= 2 (ln|C| + ln(1/beta)) / (epsilon alpha) (exactly)",
        "replace-one; time |C|",
    ),
    ("|CONJ_(k,d)|", "the sum over j <= k of C(d, j) 2^j; the lecture writes d^k (slip 4)", "nothing"),
    ("deletion: lemma", "a literal that is deleted is not in the target", "the target labels every row right"),
    (
        "its conclusions",
        "the target's literals are all kept, so no negative and no positive row is wrong",
        "no privacy",
    ),
    (
        "take 1: privacy",
        "2d counts + Lap(2d / epsilon) are epsilon-private",
        "replace-one; epsilon / 2 under add-remove (slip 5)",
    ),
    (
        "take 1: accuracy",
        "n >= (8 d^2 / (alpha epsilon)) ln(2d / beta) (lecture); half of it suffices, since of v and not v only one "
        "can survive by mistake (slip 5)",
        "as the game",
    ),
    (
        "take 2: lemma",
        "in every round some literal has score 0: true on all positives, false on a 1/k of the negatives that are left",
        "as the game",
    ),
    (
        "take 2: accuracy",
        "at most J Delta positive and 2 k Delta negative rows are wrong; Delta = ln(d) / epsilon in the lecture, J "
        "times as much in truth (slip 6)",
        "J >= 2 k ln(n) (lecture); 2 k ln(2 / alpha) suffices (slip 7)",
    ),
    (
        "take 2: size",
        "n >= (1 / (alpha epsilon)) k^2 ln^2(n) ln(d), up to a constant; k^1.5 by strong composition",
        "as the game",
    ),
)


def statements(here: Settings) -> Shown:
    """The lecture's statements and its algorithms."""
    return Shown([THEOREMS, BOX_LINES, CONJ_LINES])


# --- pictures of boxes ------------------------------------------------------------------------------------------------


def one_box(here: Settings) -> Shown:
    """One run of the box learner at its stated size: points, slices, target and learned box."""
    method = box_learners(here).named("basic")
    n, mechanism = here.n or method.needed(here.alpha), method.mechanism(here.alpha)
    table, codes, inside = points(n, here.seed)
    (box,) = released(mechanism, table, runs=1, seed=here.seed)
    learned = in_box(box, codes)
    missed, false = int((inside & ~learned).sum()), int((~inside & learned).sum())
    order = np.sort(codes[inside], axis=0)
    cuts = [(int(order[mechanism.count - 1, axis]), int(order[-mechanism.count, axis])) for axis in (0, 1)]

    def paint(axes: Any) -> None:
        from discreet.report.plot import rectangle

        few = slice(0, 700)
        for name, chosen, colour, marker in (
            ("positive", inside, SERIES[0], "+"),
            ("negative", ~inside, kit.FAINT, "."),
        ):
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
        "an interior point of a slice becomes a face, and then the learned box lies inside the target. 700 of the rows "
        "are drawn.",
        ("", "x from", "x to", "z from", "z to"),
        [("target", *TARGET), ("learned", int(box[0][0]), int(box[1][0]), int(box[0][1]), int(box[1][1]))],
        Panel(Scale("x", grow), Scale("z", grow), (), 5.2, paint=paint),
    )
    return Shown(
        [picture],
        [
            Check("wrong positive rows, against 4 m", missed, 4 * mechanism.count),
            Check("wrong negative rows", false, 0),
            Check("share of wrong rows, against alpha", (missed + false) / n, here.alpha),
        ],
    )


def game(here: Settings) -> Shown:
    """The PAC game, many times: at the stated size, at a fortieth of it, and with labels that no box explains."""
    method = box_learners(here).named("basic")
    n, mechanism = here.n or method.needed(here.alpha), method.mechanism(here.alpha)
    reason = "" if n >= method.needed(here.alpha) else "fewer rows than the theorem needs"
    small, few = max(40, n // 40), min(200, here.runs)
    wide = max(0.3, 2 * here.alpha)
    grid = np.linspace(0, wide, 61)
    lines, checks, kinds = [], [], []
    fresh = points(20_000, here.seed + 99)
    games = (
        (f"n = {n:,}, " + ("as given" if here.n else "as stated"), n, 0.0, here.runs, reason),
        (f"n = {small:,}, a fortieth", small, 0.0, few, "too few rows: the theorem says nothing"),
        (f"n = {n:,}, noisy labels", n, here.alpha + 0.05, few, "no box labels every row right: nothing is promised"),
    )
    for place, (name, size, flipped, runs, why) in enumerate(games):
        table, codes, inside = points(size, here.seed, flipped)
        drawn = released(mechanism, table, runs=runs, seed=here.seed + 7)
        said = [in_box(box, codes) for box in drawn]
        errors = np.array([np.mean(each != inside) for each in said])
        curve = [(float(x), float(np.mean(errors > x))) for x in grid]
        lines.append(Series(name, curve, {**LINE, "color": SERIES[place]}))
        lost = float(np.mean(errors > here.alpha))
        bound = kit.frequency_bound(here.beta, runs)
        checks.append(Check(f"{name}: share of {runs:,} games that are lost", lost, bound, why))
        if place == 0:
            beyond = float(np.mean([np.mean(in_box(box, fresh[1]) != fresh[2]) for box in drawn[:100]]))
            checks.append(Check("mean error on 20,000 fresh rows, against alpha + 0.02", beyond, here.alpha + 0.02))
            kinds = [(int((inside & ~each).sum()), int((~inside & each).sum())) for each in said]
    lines.append(kit.level("beta", here.beta, (0, wide)))
    lines.append(Series("alpha", [(here.alpha, 0), (here.alpha, 1)], {**BOUND, "color": kit.FAINT}))
    most, allowed = 4 * mechanism.count, kit.frequency_bound(here.beta, here.runs)
    won = [(positive, negative) for positive, negative in kinds if positive <= most]
    ends = np.linspace(0, 1.15 * most, 41)
    spread = [(float(x), float(np.mean([positive > x for positive, _ in kinds]))) for x in ends]
    below = [
        Series("wrong positive rows", spread, LINE),
        Series("wrong negative rows", [(float(x), float(np.mean([y > x for _, y in kinds]))) for x in ends], LINE),
        Series("4 m", [(most, 0), (most, 1)], BOUND),
    ]
    checks += [
        Check("share of games at the stated size with a wrong negative row", _share(y > 0 for _, y in kinds), allowed),
        Check(
            "wrong positive rows in the median game, against none",
            float(np.median([positive for positive, _ in won])),
            0,
            "slip 1: the 4 m wrong rows are positive ones; the notes say negative",
        ),
    ]
    known = boxes.population_size(2, str(here.alpha), str(here.beta))
    x = Scale("error", (0, wide), percent=True)
    picture = plot(
        f"The game, {here.runs:,} times",
        f"At n = {n:,} {number(100 * checks[0].measured)} % of the games had an error above alpha = {here.alpha:g}; "
        f"at most {100 * here.beta:g} % are promised. At n = {small:,} {number(100 * checks[2].measured)} % had.",
        "Above: how often the share of wrong rows was larger than x. The promise is about one point: the blue curve "
        f"must be below beta where it meets the line of alpha. In the third game {100 * (here.alpha + 0.05):g} % of "
        "the labels are flipped. Below: which rows were wrong at the stated size (how often more than x of them). "
        "The real PAC model asks for a small error on fresh rows, too: a rule is within alpha of its error on them "
        f"from n = {known:,} on, with probability 1 - beta (VC bound).",
        ("error", *(line.label for line in lines[:3])),
        [(float(at), *(dict(line.points)[float(at)] for line in lines[:3])) for at in grid],
        Panel(x, Scale("games with a larger error", (-0.02, 1.02), percent=True), lines, 3.2),
        Panel(Scale("x, rows", (0, 1.15 * most)), Scale("games with more", (-0.02, 1.02), percent=True), below, 2.5),
    )
    return Shown([picture], checks)


def _share(events: Iterable[bool]) -> float:
    return float(np.mean(list(events) or [False]))


def dimensions(here: Settings) -> Shown:
    """Rows needed over d: basic composition, zCDP, a price without d, and the exponential mechanism over all boxes."""
    counts = [1, 2, 4, 8, 16, 32]
    found: dict[str, list[tuple[int, float | None]]] = {}
    names = {
        "basic": "basic composition",
        "zcdp": "zCDP",
        "reorder-slice": "reordered slices",
        all_boxes.NAME: "all boxes",
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
        "class exercise asks why d^1.5: by strong composition 2d interior points cost sqrt(2d) times as much as one, "
        "and each may miss m rows. Reordered slices (each slice is taken away before the next one is cut, and its size "
        "is random) have a price that does not depend on d. Drawing from all boxes takes "
        "the fewest rows and time |D|^(2d).",
        Scale("d, columns", ticks=counts),
        Scale("rows needed"),
        lines,
    )
    checks = [
        Check("power of d by basic composition", grown["basic composition"] or 0, 2.15),
        Check("power of d by zCDP", grown["zCDP"] or 0, 1.65),
        Check("power of d by reordered slices", grown["reordered slices"] or 0, 1.15),
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
    powers = [2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 40]
    names = {
        "exponential": "exponential: log",
        "binary-search": "binary search: sqrt(log)",
        "prefix": "prefix: log log",
        "pair-prefix": "pairs of prefixes: 2^log*",
    }
    found: dict[str, list[tuple[int, float | None]]] = {says: [] for says in names.values()}
    for power in powers:
        facts = Facts(dp.Domain(x=Whole(2**power)), Neighbours("replace-one"), None)
        methods = interior.methods(facts=facts, column="x", beta=here.sure, funds=here.funds)
        for name, says in names.items():
            method = methods.find(name)
            size = float(method.needed(here.alpha)) if isinstance(method, Method) else None
            found[says].append((power, size))
    lines = [Series(name, values) for name, values in found.items()]
    slow, fast = found["exponential: log"], found["pairs of prefixes: 2^log*"]
    checks = []
    if fast[0][1] and fast[-1][1]:
        checks.append(
            Check(
                "pairs of prefixes: growth from 2^4 to 2^(2^40) points, against 2^(6 - 3)", fast[-1][1] / fast[0][1], 8
            )
        )
    checks += _success(here)
    picture = over(
        "log* against log",
        "From a domain of 2^4 points to one of 2^(2^40) the exponential mechanism's values grow by "
        f"{number((slow[-1][1] or 0) / (slow[0][1] or 1))} times, those of "
        f"pairs of prefixes by {number((fast[-1][1] or 0) / (fast[0][1] or 1))} times.",
        f"How many values make an interior point likely (beta = {here.beta:g}) at ({here.epsilon:g}, "
        f"{here.delta:g}). The axis is doubly logarithmic: a domain of 2^(2^40) points has numbers of 2^40 bits. "
        "log*(x) is how often the logarithm can be taken until 1 is reached: at most 6 here. Prefix search has "
        "better constants up to there.",
        Scale("j, for a domain of 2^(2^j) points", (1, 41)),
        Scale("values needed", ticks=[10, 1e3, 1e5, 1e7, 1e9, 1e11], log=True),
        lines,
    )
    return Shown([picture], checks)


def _success(here: Settings) -> list[Check]:
    """Each routine at exactly its size, on values that are close together in a large domain."""
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
                kit.frequency_bound(here.beta, runs),
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
            Check(f"{title}: share of games lost at its n = {needed:,}", lost, kit.frequency_bound(here.beta, runs))
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
        "the n of each theorem. A theorem is about the worst table, so its n is larger than these tables need.",
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
    ]
    worst = max(y for _, y in lecture)
    ends = (dims[0], dims[-1])
    above = [*lines[:2], kit.level("beta", here.beta, ends)]
    below = [
        Series("|CONJ_(3,d)|", [(d, float(size)) for d, size, _ in class_sizes]),
        Series("d^3, the lecture", [(d, float(size)) for d, _, size in class_sizes]),
    ]
    picture = plot(
        "What the lecture's n lacks",
        "At the lecture's n the learner is wrong on more than alpha of the rows with probability up to "
        f"{number(worst)}.",
        "Above: the exact probability, by listing all conjunctions with their weights, on the worst of three tables. "
        "The lecture's n lacks the factor 2 of replace-one and the term ln(1/beta) (slip 3), and it counts d^k "
        "conjunctions. Below: the size of the class for k = 3 (slip 4).",
        ("d", "failure at the lecture's n", "failure at the right n", "|CONJ|", "d^k"),
        [
            (d, y, z, float(size), float(power))
            for (d, y), (_, z), (_, size, power) in zip(lecture, right, class_sizes, strict=True)
        ],
        Panel(
            Scale("d, variables", ticks=dims, log=True),
            Scale("probability of failure", (-0.02, 0.6)),
            above,
            2.8,
            columns=1,
        ),
        Panel(Scale("d, variables", ticks=dims, log=True), Scale("size of the class"), below, 2.4),
    )
    return Shown(
        [picture],
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
    """Slip 5: the loss of Lap(2d/epsilon) on all counts under both relations; how many literals survive by mistake."""
    exactly: dict[str, list[tuple[float, float | None]]] = {"replace-one": [], "add-remove": []}
    dims = list(range(1, 9))
    for d in dims:
        scale = Fraction(2 * d) / Fraction(str(here.epsilon))
        rows = np.array(list(itertools.product((False, True), repeat=d)))
        counts = np.stack([~rows, rows], axis=2).reshape(len(rows), -1).astype(int)  # literals that each row falsifies
        moves = {"replace-one": np.abs(counts[:, None] - counts[None]).sum(axis=2), "add-remove": counts.sum(axis=1)}
        for name, moved in moves.items():
            exactly[name].append((d, float(moved.max() / scale)))
        mechanism = NoisyCounts(BITS, POSITIVE, scale, Fraction(0))
        for name in exactly:
            facts = Facts(dp.Domain(x=Bits(d), y=CLASSES), Neighbours(name), 1000)
            assert abs(float(mechanism.guarantee(facts).pure or 0) - (exactly[name][-1][1] or 0)) < 1e-9
    missed = _missed(here)
    losses = [(d, y, z) for (d, y), (_, z) in zip(exactly["replace-one"], exactly["add-remove"], strict=True)]
    ends, upto = (dims[0], dims[-1]), (missed[0][0], missed[-1][0])
    one = 4 * here.d / here.epsilon * math.log(2 * here.d / here.beta)  # the most rows that one literal may get wrong
    lecture_n = 8 * here.d**2 / (here.alpha * here.epsilon) * math.log(2 * here.d / here.beta)
    needed = conjunction_learners(here, 1_000).named("counts").needed(here.alpha)
    picture = plot(
        "Take 1: what its noise costs, and what it keeps",
        f"Under add-remove the noise costs half of epsilon. At most {number(max(y for _, y in missed))} positive "
        f"rows were wrong; the lecture allows {number(2 * here.d * one)}.",
        "Above: the largest privacy loss over all pairs of neighbours, positive rows of d bits, Lap(2d / epsilon) on "
        "each of the 2d counts. A row falsifies exactly d literals, so adding one moves d counts by 1 and replacing "
        f"one moves up to 2d. Below: the most positive rows that were wrong in 20 runs, d = {here.d}. The lecture lets "
        "all 2d literals survive by mistake. Of v and not v at least one is falsified by half of the positive rows, "
        f"so d literals are enough. A logarithmic axis has no 0: points with no wrong row are only in the table. "
        f"The lecture's n is {number(lecture_n)}, discreet's {needed:,}.",
        ("d", "loss, replace-one", "loss, add-remove", "n, rows", "wrong positive rows, at most"),
        [(*one, *other) for one, other in itertools.zip_longest(losses, missed, fillvalue=(None, None))],
        Panel(
            Scale("d, bits", (0.7, 8.3)),
            Scale("exact privacy loss", (0, 1.1 * here.epsilon)),
            [
                *(Series(name, values) for name, values in exactly.items()),
                kit.level("epsilon", here.epsilon, ends),
                kit.level("epsilon / 2", here.epsilon / 2, ends, color=kit.FAINT),
            ],
            2.8,
        ),
        Panel(
            Scale("n, rows"),
            Scale("wrong positive rows"),
            [
                Series("measured, at most", [(n, y or None) for n, y in missed]),
                kit.level("d literals", here.d * one, upto),
                kit.level("2d literals, the lecture", 2 * here.d * one, upto, color=kit.FAINT),
            ],
            2.6,
            columns=3,
        ),
    )
    largest = {name: max(y or 0 for _, y in values) for name, values in exactly.items()}
    slip = "slip 5: Lap(2d / epsilon) is twice the noise that add-remove needs"
    return Shown(
        [picture],
        [
            Check("replace-one: largest loss, against epsilon", largest["replace-one"], here.epsilon),
            Check("add-remove: largest loss, against epsilon / 2", largest["add-remove"], here.epsilon / 2),
            Check("epsilon over the largest loss under add-remove", here.epsilon / largest["add-remove"], 1, slip),
            Check("wrong positive rows, against d literals", max(y for _, y in missed), here.d * one),
            Check("discreet's n over half of the lecture's", 2 * needed / lecture_n, 1),
        ],
    )


def _missed(here: Settings) -> list[tuple[float, float]]:
    """The most positive rows that take 1 labels wrong in 20 runs, over n."""
    method = conjunction_learners(here, 1_000).named("lecture-counts")
    stated, found = method.needed(here.alpha), []
    for n in sorted({max(500, stated // part) for part in (40, 20, 10, 5, 1)}):
        data, rows, labels = bits(n, here.d, here.k, here.seed)
        drawn = released(method.mechanism(here.alpha), data, runs=20, seed=here.seed)
        found.append((float(n), float(max(int((labels & ~says(each, rows)).sum()) for each in drawn))))
    return found


def over_k(here: Settings) -> Shown:
    """The rows that each learner of conjunctions states, over k: basic composition, zCDP, one price for all rounds."""
    names = {
        "greedy-basic": "take 2, basic composition",
        "greedy": "take 2, zCDP",
        "self-deleting": "one price for all rounds",
        "exact": "step 0, all conjunctions",
    }
    counts = [1, 2, 3, 4, 6, 8]
    d = 40
    found: dict[str, list[tuple[float, float | None]]] = {title: [] for title in names.values()}
    for k in counts:
        facts = Facts(dp.Domain(x=Bits(d), y=CLASSES), Neighbours("replace-one"), None)
        methods = conjunction_methods(BITS, POSITIVE, k, facts, here.sure, here.funds)
        for name, title in names.items():
            method = methods.find(name)
            size = float(method.needed(here.alpha)) if isinstance(method, Method) else math.inf
            found[title].append((k, size if size < UNPROVEN else None))
    at = {title: dict(values).get(8) for title, values in found.items()}
    basic, better = at["take 2, basic composition"], at["take 2, zCDP"]
    one_price, exact = at["one price for all rounds"], at["step 0, all conjunctions"]
    powers = ", ".join(
        f"k^{math.log((dict(values)[8] or 1) / (dict(values)[2] or 1)) / math.log(4):.1f} ({name})"
        for name, values in found.items()
    )
    picture = over(
        "Rows over the length of the conjunction",
        "For 8 literals of 40 variables: " + ", ".join(f"{name} {number(y)}" for name, y in at.items() if y) + ".",
        f"The n of each theorem at alpha = {here.alpha:g}. By strong composition J rounds cost about sqrt J times as "
        "much as one, so take 2 needs k^1.5 rows instead of k^2, besides logarithms. A learner that puts settled "
        "rows aside pays one price for all rounds: the efficient learner of the lecture's last remark. Its rows grow "
        f"like those of step 0, with a constant that is {number((one_price or 0) / (exact or 1))} times as large; "
        f"step 0 takes time d^k. From k = 2 to 8 the rows grow like {powers}.",
        Scale("k, literals", ticks=counts),
        Scale("rows needed"),
        [Series(name, values) for name, values in found.items()],
    )
    return Shown(
        [picture],
        [
            Check("k = 8: zCDP over basic composition", (better or math.inf) / (basic or 1), 1),
            Check("k = 8: one price over zCDP", (one_price or math.inf) / (better or 1), 1),
            Check("k = 8: step 0 over one price", (exact or math.inf) / (one_price or 1), 1),
        ],
    )


def over_epsilon(here: Settings) -> Shown:
    """What epsilon buys: the rows that a box and a conjunction take over epsilon, and the odds that it concedes."""
    epsilons = [0.1, 0.3, 1.0, 3.0]
    found: dict[str, list[tuple[float, float | None]]] = {"a box in the plane": [], "a conjunction, step 0": []}
    for epsilon in epsilons:
        there = dataclasses.replace(here, epsilon=epsilon)
        sizes = (box_learners(there).named("basic"), conjunction_learners(there, 1_000).named("exact"))
        for into, method in zip(found.values(), sizes, strict=True):
            into.append((epsilon, float(method.needed(here.alpha))))
    first = found["a box in the plane"]
    picture = kit.bargain(
        f"A box takes {number(first[0][1] or 0)} rows at epsilon {epsilons[0]:g} and {number(first[-1][1] or 0)} at "
        f"epsilon {epsilons[-1]:g}.",
        f"the rows that suffice for an error of at most {100 * here.alpha:g} % with probability {1 - here.beta:g}. A "
        "larger epsilon buys the same rule from fewer people.",
        "rows needed",
        epsilons,
        [Series(name, values) for name, values in found.items()],
    )
    product = [x * (y or 0) for x, y in first]
    return Shown([picture], [Check("box: rows times epsilon, largest over smallest", max(product) / min(product), 1.5)])


def take_two(here: Settings) -> Shown:
    """Slips 6 and 7: the score lost in a round against ln(d)/epsilon, and the error over the number of rounds."""
    n = 20_000
    data, rows, labels = bits(n, here.d, here.k, here.seed)
    few, few_rows, few_labels = bits(400, here.d, here.k, here.seed)
    enough = math.ceil(2 * here.k * math.log(2 / here.alpha))
    rounds = sorted({1, 2, 4, 8, enough, 2 * enough, math.ceil(2 * here.k * math.log(n))})
    errors, lost = [], []
    prefixes = np.zeros(enough)
    for count in rounds:
        # epsilon / J for each round; a selection at rate r costs 2 r under replace-one.
        mechanism = GreedySelection(BITS, POSITIVE, here.k, count, Fraction(str(here.epsilon)) / count / 2)
        drawn = released(mechanism, data, runs=12, seed=here.seed + count)
        errors.append((count, float(np.mean([np.mean(says(each, rows) != labels) for each in drawn]))))
        if count == enough:
            ways = [[np.mean(says(each[:j], rows) != labels) for j in range(1, enough + 1)] for each in drawn]
            prefixes = np.mean(ways, axis=0)
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
    short = [(j + 1, float(y)) for j, y in enumerate(prefixes)]
    below = [
        Series("J rounds, l_1 and ... and l_J", errors),
        Series(f"l_1 and ... and l_j of J = {enough} rounds", short, {"marker": None}),
        kit.level("alpha", here.alpha, (rounds[0], rounds[-1])),
    ]
    x = Scale("J, rounds", ticks=rounds)
    stated = dict(lines[2].points)
    picture = plot(
        "Take 2: how much a round loses, and how many rounds it takes",
        f"A round loses up to {number(max(y for _, y in lost))} rows of score; ln(2d)/epsilon would be "
        f"{number(delta)}. With J = {enough} rounds the mean error is {number(dict(errors)[enough])}.",
        "Above, 400 rows, where it matters: each of J selections has epsilon/J, so its score is off by J times "
        "more than the notes say. "
        "Below: J = 2 k ln(2/alpha) "
        "rounds are enough, and J need not grow with n; more rounds only divide the budget further. The dashed line "
        "stops the conjunction at l_j, as the notes print it (slip 8). b is beta divided by the number of runs.",
        ("J", "largest score lost", "mean error"),
        [(count, y, z) for (count, y), (_, z) in zip(lost, errors, strict=True)],
        Panel(x, Scale("rows of score"), lines, 3.1, columns=1),
        Panel(x, Scale("error", log=False, percent=True), below, 2.6, columns=1),
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
            Check(
                "mean error of l_1 alone, against alpha",
                short[0][1],
                here.alpha,
                "slip 8: the hypothesis is l_1 and ... and l_J, not l_j",
            ),
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
    names = ("InteriorPoint", "SlicedBox", "AllBoxes", "NoisyCounts", "GreedySelection", "AllConjunctions")
    return kit.twins(
        (each for each in examples() if each.name in names),
        "Every twin exceeds its claim, and no correct learner does.",
        "SlicedBox is the box learner. Its twin is slip 2: it prices its interior points for an added value, but an "
        "added row pushes another one out of the slice, so one value of the slice is replaced. AllConjunctions is "
        "step 0, NoisyCounts take 1 (its twin compares exact counts), GreedySelection take 2. Exact probabilities on "
        "two neighbouring tables.",
        {"SlicedBox": "slip 2: "},
        by_mistake=False,
    )


LAB = kit.Lab(
    12,
    "Lab 12: private PAC learning",
    "Learn a rule that labels most rows right (a box in the plane, a conjunction of bits) without revealing any "
    "single row.",
    Settings(),
    [
        Section(
            "The game and the algorithms",
            "A table holds n labelled rows; a row with the label yes is a positive row. Suppose that some rule of a "
            "class C labels all rows right. A learner must find a rule that is wrong on at most alpha of the rows, "
            "except with probability beta. It must be private for every table, also for one that no rule of C "
            "explains.\n\nWithout privacy boxes are easy: return the smallest box around the positive rows. But each "
            "of its four faces touches a row, so the box reveals persons. The private learner replaces each face by "
            "an interior point: any value between the smallest and the largest of a slice of rows.\n\n"
            "The second class are conjunctions. The rows are d bits v_1 to v_d, a literal is v_i or not v_i, and a "
            "conjunction is an 'and' of at most k literals. A row falsifies a literal that is false on it.",
            statements,
        ),
        Section(
            "A box from interior points",
            "Four slices, four interior points, one box. If all four interior points succeed (probability at least 1 - "
            "beta), the box lies inside the target and contains no negative rows. It may miss positive ones.",
            one_box,
        ),
        Section(
            "The game, many times",
            "A theorem about probabilities is tested by repetition. Two hypotheses are dropped: enough rows, and a "
            "box that labels all of them right.",
            game,
        ),
        Section(
            "log* against log",
            "How many values does a private interior point take? That depends on the size of the domain, but for the "
            "best methods hardly at all.",
            log_star,
        ),
        Section(
            "More dimensions",
            "The class exercise: how does the number of rows grow with the number of columns?",
            dimensions,
        ),
        Section(
            "Conjunctions without privacy",
            "Start with all literals and delete those that a positive row falsifies. The lecture's own run:",
            deletion_run,
        ),
        Section(
            "Three private versions",
            "Step 0 weighs all conjunctions at once; it needs the fewest rows and time d^k. Take 1 counts, with "
            "noise, how many positive rows falsify each literal. Take 2 chooses one literal at a time. From which n "
            "on does each of them win the game?",
            three_versions,
        ),
        Section(
            "The lecture's sizes",
            "In the lecture the exponential mechanism needs n = ln|C| / (epsilon alpha) rows, with |C| = d^k.",
            lost_logarithm,
        ),
        Section(
            "The noise of take 1",
            "Slip 5 is about the neighbours: does a neighbouring table have one row replaced, or one row more? It is "
            "also about the number of literals that can survive by mistake.",
            take_one_price,
        ),
        Section(
            "The rounds of take 2",
            "Slips 6, 7 and 8 are about J, the number of rounds: how much they cost, how many are needed, and which "
            "literals make the answer.",
            take_two,
        ),
        Section(
            "Better composition",
            "The lecture ends with two remarks: strong composition turns k^2 into k^1.5, and an efficient learner "
            "needs almost as few rows as the exponential mechanism.",
            over_k,
        ),
        Section(
            "What epsilon buys",
            "Epsilon is paid in odds about single persons. Here it buys a smaller table:",
            over_epsilon,
        ),
        Section(
            "Attacks on broken twins",
            "Each twin has one mistake. The probabilities of its outputs are listed for two neighbouring tables; an "
            "event that is too likely on one of them refutes the claim.",
            attack,
        ),
    ],
    words=(
        (
            "exponential mechanism",
            "draws a rule with probability proportional to exp(-rate times its mistakes); see lab 9",
        ),
        (
            "composition",
            "the total price of several mechanisms; see lab 10",
        ),
        (
            "zCDP",
            "a promise of one number rho that suits Gaussian noise: the rhos of several mechanisms add up, and the "
            "total converts into an (epsilon, delta) as strong composition gives it, or better",
        ),
        ("loss, privacy loss", "the logarithm of the ratio of the two probabilities of an outcome; epsilon bounds it"),
        (
            "VC dimension",
            "the largest number of points that the rules of a class can label in all possible ways: 4 for boxes in the "
            "plane",
        ),
        ("|D|", "the number of values of a column"),
        ("log*(x)", "how often the logarithm must be taken until the result is at most 1: 4 for 65,536"),
        ("prefix", "the first digits of a number; the best interior-point methods search for a common prefix"),
        ("VC bound", "the textbook bound on how far the error on a sample is from the error on fresh rows"),
        ("score, J, Delta", "of take 2: how good a literal is, the number of rounds, the score that a round may lose"),
    ),
)
