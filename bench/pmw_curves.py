"""Budget curves: what a long session has spent after so many questions, by five ways to answer them.

    python -m bench.pmw_curves            prints markdown and draws docs/curves.svg
    python -m bench.pmw_curves 500        so many questions only, and no picture

Every way promises the same: all answers within alpha of the persons, at once, with probability 1 - beta. Questions are
drawn from a pool of counts, evenly or by Zipf's law. What is spent is shown as a share of one budget, (1, 1e-6): in the
ledger's Renyi book, or in its pure book for Laplace noise. A share above 1 means that the budget does not pay for it;
ours stops there, and the questions that it refuses are counted.

    laplace   every question is answered by Laplace noise, also when it comes again
    cache     Gaussian noise; a question that means the same as an earlier one gets its answer, free
    lecture   the lecture's private multiplicative weights (and the cache)
    pmw       the same with better constants
    ours      a Session as it is by default

lecture and pmw start only if the budget pays for their worst case: they get an ample one. Ours is run several times;
the run with the middle end is shown, and the ends of all of them.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.special import ndtri

import discreet as dp
from discreet.answering.linear_query import meaning
from discreet.answering.multiplicative_weights import ClassicAnswers
from discreet.answering.multiplicative_weights_parameters import Classic, better, lecture
from discreet.catalogue import CATALOGUE
from discreet.data import DistinctRows, Facts, IntArray
from discreet.errors import BudgetExceeded, ConversationOver
from discreet.funds import Price
from discreet.mechanisms import Mechanism
from discreet.query import Count, Predicate
from discreet.records import Json, revive

PERSONS, ALPHA, BETA = 100_000, Fraction(1, 100), Fraction(1, 20)
BUDGET = dp.Budget(1, 1e-6)
AMPLE = dp.Budget(10**6, 1e-6)
POOL, QUESTIONS, RUNS = 4_000, 16_000, 3
PICTURE = Path(__file__).parents[1] / "docs" / "curves.svg"
DOMAIN = dp.Domain(
    age=dp.Number(0, 5, step=1),
    visits=dp.Number(0, 5, step=1),
    region=dp.Category("N", "E", "S", "W", "abroad"),
    health=dp.Category("excellent", "good", "fair", "poor"),
    plan=dp.Category("free", "basic", "family", "full"),
)
Curve = list[float]
"""The share of the budget that is spent after question 1, 2, ...; infinite once a question was refused."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One way to answer one workload."""

    curve: Curve
    seconds: float
    worst: float | None = None  # the largest error, in parts of what was promised
    refused: int = 0  # questions that the budget did not pay for
    runs: tuple[str, ...] = ()  # how each of several runs ended


# Rows and questions, made up.


def people(seed: int = 1) -> dp.Table:
    """Dependent columns: a hidden kind of person, and ages that decide about visits and health."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, PERSONS, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(rng.binomial(5, 0.25 + 0.15 * kind), 0, 5)
    health = np.clip(rng.binomial(3, 0.1 + 0.12 * age), 0, 3)
    visits = np.minimum(rng.poisson(0.4 + 0.5 * health + 0.2 * age), 5)
    region = (kind + rng.choice(5, PERSONS, p=[0.5, 0.2, 0.15, 0.1, 0.05])) % 5
    plan = (kind + rng.choice(4, PERSONS, p=[0.6, 0.2, 0.1, 0.1])) % 4
    levels = {name: np.array(DOMAIN[name].levels) for name in ("region", "health", "plan")}  # type: ignore[union-attr]
    rows = {
        "age": age,
        "visits": visits,
        "region": levels["region"][region],
        "health": levels["health"][health],
        "plan": levels["plan"][plan],
    }
    return dp.Table(rows, DOMAIN, name="people")


def pool(seed: int = 2) -> list[Count]:
    """Different counts: conditions on one to three columns, ranges of numbers and sets of levels."""
    rng, found = np.random.default_rng(seed), dict[str, Count]()
    while len(found) < POOL:
        columns = rng.choice(list(DOMAIN.names), rng.choice([1, 2, 3], p=[0.1, 0.4, 0.5]), replace=False)
        question = Count(dp.And(*(_condition(rng, str(name)) for name in sorted(columns))))
        found.setdefault(meaning(question, DOMAIN), question)
    return list(found.values())


def _condition(rng: np.random.Generator, name: str) -> Predicate:
    column = DOMAIN[name]
    if isinstance(column, dp.Number):
        low, high = sorted(rng.integers(0, column.size, 2).tolist())
        return dp.Between(name, low, high if (low, high) != (0, column.size - 1) else high - 1)
    levels = rng.permutation(np.array(column.levels))[: rng.integers(1, column.size)]  # type: ignore[union-attr]
    return dp.Among(name, sorted(map(str, levels)))


def workload(kind: str, questions: int, seed: int = 3) -> list[Count]:
    """Questions from the pool, evenly or with probability in proportion to 1 / rank."""
    weights = np.ones(POOL) if kind == "uniform" else 1 / np.arange(1, POOL + 1)
    chosen = np.random.default_rng(seed).choice(POOL, questions, p=weights / weights.sum())
    asked = pool()
    return [asked[place] for place in chosen.tolist()]


# Five ways to answer.


class Meter:
    """Reads a ledger and says what its charges would take of BUDGET."""

    def __init__(self, ledger: dp.Ledger, facts: Facts) -> None:
        self.ledger, self.facts = ledger, facts
        self.reference = dp.Ledger.in_memory(BUDGET, ledger.identity)
        self.share, self._seen = 0.0, 0
        self._known: dict[str, float] = {}

    def read(self) -> float:
        for body in self.ledger.entries(after=self._seen):
            self._seen = body["seq"]
            if body["kind"] == "charge":
                self.share += self._price(body["mechanism"])
        return self.share

    def _price(self, recorded: Json) -> float:
        key = repr(recorded)
        if key not in self._known:
            mechanism: Mechanism = revive(recorded, CATALOGUE)
            price = self.reference.price(mechanism.guarantee(self.facts))
            self._known[key] = renyi_share(price, self.reference)
        return self._known[key]


def renyi_share(price: Price, ledger: dp.Ledger) -> float:
    caps = ledger.spent().caps
    return math.inf if price.renyi is None or not caps.renyi else price.renyi / caps.renyi


def laplace(table: dp.Table, asked: Sequence[Count]) -> Drawn:
    """Every question anew: pure epsilons add up."""
    scale = Fraction(int(ALPHA * PERSONS)) / Fraction(math.log(len(asked) / float(BETA))).limit_denominator(1000)
    ledger = dp.Ledger.in_memory(BUDGET, table)
    price = ledger.price(dp.Laplace(Count(), scale).guarantee(table.facts)).pure or 0
    return Drawn([price * (place + 1) / ledger.spent().caps.pure for place in range(len(asked))], 0.0)


def cache(table: dp.Table, asked: Sequence[Count]) -> Drawn:
    """New questions by Gaussian noise, released as long as the budget lasts; then only priced."""
    reach = float(ALPHA * PERSONS) - 0.5
    scale = Fraction(math.floor(-reach / float(ndtri(float(BETA) / (2 * len(asked)))) * 1024), 1024)
    ledger, rows = dp.Ledger.in_memory(BUDGET, table), DistinctRows(table)
    each = renyi_share(ledger.price(dp.Gaussian(Count(), scale).guarantee(table.facts)), ledger)
    said, curve, worst, refused, start = set[str](), Curve(), 0.0, 0, time.perf_counter()
    for question in asked:
        key = meaning(question, DOMAIN)
        if key not in said and not refused:
            try:
                got = dp.release(dp.Gaussian(question, scale), rows, ledger=ledger)
                worst = max(worst, abs(float(got.value) - int(rows.exact_sum(question))) / reach)
            except BudgetExceeded:
                refused = 1
        elif key not in said:
            refused += 1
        said.add(key)
        curve.append(each * len(said))
    return Drawn(curve, time.perf_counter() - start, worst, refused)


def classic(make: Callable[[Facts, int], Classic]) -> Callable[[dp.Table, Sequence[Count]], Drawn]:
    """A program with a theorem on its updates."""

    def answered(table: dp.Table, asked: Sequence[Count]) -> Drawn:
        ledger = dp.Ledger.in_memory(AMPLE, table)
        answers = ClassicAnswers(make(table.facts, len(asked)), DistinctRows(table), ledger)
        return _held_against_the_truth(table, ledger, asked, lambda question: int(answers.answer(question).value))

    return answered


def ours(table: dp.Table, asked: Sequence[Count]) -> Drawn:
    """The run with the middle end; one that refused more questions is worse than one that refused fewer."""
    runs = sorted((our_run(table, asked) for _ in range(RUNS)), key=lambda each: (each.refused, each.curve[-1]))
    worst = max(each.worst or 0.0 for each in runs)
    return replace(runs[RUNS // 2], worst=worst, runs=tuple(map(_ended, runs)))


def _ended(run: Drawn) -> str:
    return f"{run.refused:,} questions refused" if run.refused else f"{run.curve[-1]:.3g}, all answered"


def our_run(table: dp.Table, asked: Sequence[Count]) -> Drawn:
    ledger = dp.Ledger.in_memory(BUDGET, table)
    talk = dp.Session(table, ledger, alpha=ALPHA, beta=BETA, questions=len(asked))
    return _held_against_the_truth(table, ledger, asked, lambda question: int(talk.ask(question).value))


def _held_against_the_truth(
    table: dp.Table, ledger: dp.Ledger, asked: Sequence[Count], answer: Callable[[Count], int]
) -> Drawn:
    rows, meter, curve = DistinctRows(table), Meter(ledger, table.facts), Curve()
    worst, seconds, refused = 0.0, 0.0, 0
    for question in asked:
        start = time.perf_counter()
        try:
            found = answer(question)
            worst = max(worst, abs(found - int(rows.exact_sum(question))) / float(ALPHA * PERSONS))
        except (BudgetExceeded, ConversationOver):
            refused += 1
        seconds += time.perf_counter() - start
        curve.append(math.inf if refused else meter.read())
    return Drawn(curve, seconds, worst, refused)


WAYS: dict[str, Callable[[dp.Table, Sequence[Count]], Drawn]] = {
    "laplace": laplace,
    "cache": cache,
    "lecture": classic(lambda facts, questions: lecture(facts, ALPHA, BETA, questions)),
    "pmw": classic(lambda facts, questions: better(facts, ALPHA, BETA, questions, delta=BUDGET.delta)),
    "ours": ours,
}


# Showing it.


def section(questions: int = QUESTIONS, *, picture: Path | None = PICTURE) -> list[str]:
    """The section of bench/RESULTS.md."""
    table = people()
    found = {kind: {way: run(table, workload(kind, questions)) for way, run in WAYS.items()} for kind in KINDS}
    if picture is not None:
        picture.write_text(drawing({kind: {way: each.curve for way, each in found[kind].items()} for kind in found}))
    return [
        "",
        "## What a long session spends",
        "",
        f"{PERSONS:,} made-up persons, five columns ({DOMAIN.size:,} cells), a pool of {POOL:,} counts with 1 to 3 "
        f"conditions; every answer within {float(ALPHA):g} of the persons with probability {float(1 - BETA):g}, "
        f"replace-one. Shares of the budget {BUDGET}: above 1 it does not pay. Picture: docs/curves.svg.",
        *(line for kind in KINDS for line in _table(kind, found[kind])),
    ]


KINDS = ("uniform", "zipf")


def _table(kind: str, found: dict[str, Drawn]) -> list[str]:
    length = len(found["ours"].curve)
    places = [each for each in (1, 10, 100, 500, 1000, 2000, 4000, 8000, 16000) if each < length] + [length]
    lines = [
        "",
        f"| {kind}: questions | {' | '.join(f'{place:,}' for place in places)} | refused | largest error / promised |",
        f"|---|{'---|' * (len(places) + 2)}",
    ]
    for way, each in found.items():
        shares = " | ".join("-" if math.isinf(share := each.curve[at - 1]) else f"{share:.3g}" for at in places)
        worst = "-" if each.worst is None else f"{each.worst:.2f}"
        lines.append(f"| {way} | {shares} | {each.refused:,} | {worst} |")
    ends = "; ".join(found["ours"].runs)
    return [*lines, "", f"- ours, {RUNS} runs: {ends}", *crossovers({way: each.curve for way, each in found.items()})]


def crossovers(curves: dict[str, Curve]) -> list[str]:
    """From which question on one way has spent less than another, and where each passes the whole budget."""
    lines = []
    for one, other in (
        ("ours", "cache"),
        ("ours", "laplace"),
        ("ours", "lecture"),
        ("ours", "pmw"),
        ("pmw", "laplace"),
    ):
        since = _for_good(curves[one], curves[other])
        lines.append(f"- {one} has spent less than {other} " + ("never" if since is None else f"from {since:,} on"))
    for way, curve in curves.items():
        over = next((place + 1 for place, share in enumerate(curve) if share > 1), None)
        lines.append(f"- {way}: " + ("the budget lasts" if over is None else f"the budget ends at question {over:,}"))
    return lines


def _for_good(one: Curve, other: Curve) -> int | None:
    """The first question from which on `one` is below `other` to the end."""
    below = [a < b for a, b in zip(one, other, strict=True)]
    if not below[-1]:
        return None
    return len(below) - next((place for place, each in enumerate(reversed(below)) if not each), len(below)) + 1


# A picture without a library: two panels, questions across, shares upwards, both by their logarithms.

_COLOURS = {"laplace": "#b0413e", "cache": "#c58b2a", "lecture": "#6b6f76", "pmw": "#7a5c99", "ours": "#1f6f8b"}
_WIDE, _HIGH, _LEFT, _TOP = 330, 250, 62, 34
_LEAST, _MOST = 1e-4, 1e4


def drawing(found: dict[str, dict[str, Curve]]) -> str:
    """An SVG document."""
    width, height = _LEFT + len(found) * (_WIDE + 40), _TOP + _HIGH + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for place, (kind, curves) in enumerate(found.items()):
        parts += _panel(kind, curves, _LEFT + place * (_WIDE + 40))
    return "\n".join([*parts, "</svg>", ""])


def _panel(kind: str, curves: dict[str, Curve], left: int) -> Iterator[str]:
    length = len(next(iter(curves.values())))
    for power in range(round(math.log10(_LEAST)), round(math.log10(_MOST)) + 1):
        y = _y(10.0**power)
        yield _line(left, y, left + _WIDE, y, "#000" if power == 0 else "#ddd")
        yield f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for power in range(math.floor(math.log10(length)) + 1):
        x = _x(10**power, length, left)
        yield _line(x, _TOP, x, _TOP + _HIGH, "#ddd")
        yield f'<text x="{x:.1f}" y="{_TOP + _HIGH + 15}" text-anchor="middle">{10**power:,}</text>'
    yield f'<text x="{left}" y="{_TOP - 14}" font-weight="bold">{kind}: share of the budget spent</text>'
    yield f'<text x="{left + _WIDE / 2}" y="{_TOP + _HIGH + 32}" text-anchor="middle">questions</text>'
    for way, curve in curves.items():
        drawn = [at for at in _places(length) if curve[at - 1] < math.inf]
        points = " ".join(f"{_x(at, length, left):.1f},{_y(curve[at - 1]):.1f}" for at in drawn)
        yield f'<polyline points="{points}" fill="none" stroke="{_COLOURS[way]}" stroke-width="2"/>'
        x, y = _x(drawn[-1], length, left) + 3, _y(curve[drawn[-1] - 1]) + 4
        yield f'<text x="{x:.1f}" y="{y:.1f}" fill="{_COLOURS[way]}">{way}</text>'
    yield from _marks(curves, length, left)


def _marks(curves: dict[str, Curve], length: int, left: int) -> Iterator[str]:
    """A ring where a way passes the whole budget, a dot where ours falls below the cache for good."""
    for way, curve in curves.items():
        over = next((place + 1 for place, share in enumerate(curve) if share > 1), None)
        if over is not None:
            yield _circle(_x(over, length, left), _y(1.0), "white", _COLOURS[way])
    since = _for_good(curves["ours"], curves["cache"])
    if since is not None and math.isfinite(curves["ours"][since - 1]):
        yield _circle(_x(since, length, left), _y(curves["ours"][since - 1]), _COLOURS["ours"], "black")


def _circle(x: float, y: float, fill: str, stroke: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'


def _places(length: int) -> IntArray:
    return np.unique(np.geomspace(1, length, 300).round().astype(np.int64))


def _x(place: int, length: int, left: int) -> float:
    return left + _WIDE * math.log(place) / math.log(max(2, length))


def _y(share: float) -> float:
    inside = math.log(min(max(share, _LEAST), _MOST) / _LEAST) / math.log(_MOST / _LEAST)
    return _TOP + _HIGH * (1 - inside)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    print("\n".join(section(given[0], picture=None) if given else section()))
