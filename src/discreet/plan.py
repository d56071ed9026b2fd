"""What a budget buys, before anything is spent: promised accuracy, or the size that an accuracy needs.

A plan reads public numbers only: a budget, a relation, how many people, how many cells or candidates. Every row is one
method with the noise that `calibrate` finds for it (the very mechanism that would be released), the error that its
theorem promises with probability 1 - beta, and the name of that theorem. Learners add their own kinds to KINDS.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.data import Facts
from discreet.domain import Category, Domain, Number, Vector
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Neighbours
from discreet.mechanism import Mechanism, calibrate, within
from discreet.mechanisms.additive import CoordinateLaplace, Gaussian, Laplace, ProductLaplace
from discreet.mechanisms.selection import Exponential, PermuteAndFlip
from discreet.mechanisms.threshold import AboveThreshold, AboveThresholdLaplace
from discreet.query import Count, Equals, Histogram, Query, VectorSum


@dataclass(frozen=True, slots=True)
class Row:
    """One method: its noise, the error promised with probability 1 - beta, and the theorem it rests on.

    noise    the scale (for a selection: one over its rate; for a threshold: the threshold's scale)
    error    in persons (or in the units of the sum), over all coordinates at once; for a learner its excess risk, for a
             learner of rules the rows that it labels wrong
    alpha    the error as a fraction of `size`, when a size is given
    needed   the size for which the error is the alpha that was asked for, when one is given
    refusal  why this method promises nothing here; the numbers are None then
    assuming what the promise supposes about the rows, or whom it compares with
    """

    method: str
    theorem: str
    noise: Fraction | None = None
    error: float | None = None
    alpha: float | None = None
    needed: int | None = None
    refusal: str = ""
    mechanism: Any = None
    assuming: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """All methods side by side, the smallest promised error first."""

    kind: str
    budget: Budget
    neighbours: Neighbours
    beta: Fraction
    rows: tuple[Row, ...]
    size: int | None = None
    alpha: Fraction | None = None

    def __str__(self) -> str:
        how = "in expectation" if self.kind in LEARNERS else f"with probability {float(1 - self.beta):g}"
        head = f"{self.kind}: {self.budget}, {self.neighbours}, each promise {how}"
        refused = [f"{row.method}: {row.refusal}" for row in self.rows if row.refusal]
        return "\n".join([head, *_table(self), *_assumptions(self), *refused])


@dataclass(frozen=True, slots=True)
class Asked:
    """The public numbers of one plan."""

    budget: Budget
    facts: Facts
    beta: Fraction
    alpha: Fraction | None
    numbers: dict[str, int]

    def number(self, name: str) -> int:
        if name not in self.numbers:
            raise ParameterError(f"this plan needs {name}=, a whole number")
        return exact.whole(**{name: self.numbers[name]})


def plan(
    kind: str,
    *,
    budget: Budget,
    neighbours: Neighbours | str = "replace-one",
    size: int | None = None,
    alpha: exact.Exact | None = None,
    beta: exact.Exact = 0.05,
    **numbers: int,
) -> Plan:
    """Promised accuracy for a budget, and with alpha the size that it needs; no data, nothing spent.

    kind     "count" | "histogram" (cells=) | "vector" (d=) | "select" (candidates=) | "threshold" (questions=), or a
             learner: "mean" | "median" | "linear" (d=) | "logistic" (d=), whose promise is its mean excess risk; or a
             learner of rules: "interior" (bits=), "box" (d=, bits=), "conjunction" (d=, k=), "rule" (conditions=, k=),
             "finite" (hypotheses=), whose promise is the share of rows that it labels wrong; or "questions"
             (questions=, bits= or cells=): so many counts, chosen one by one, about a domain of 2^bits or so many cells
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(sorted(KINDS))}; found {kind!r}")
    if not isinstance(budget, Budget):
        raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}")
    needs, rows_of = KINDS[kind]
    if set(numbers) - set(needs):
        takes = ", ".join(f"{name}=" for name in needs) or "no other number"
        raise ParameterError(f"a plan for {kind!r} takes {takes}; found {', '.join(sorted(numbers))}")
    relation = Neighbours.of(neighbours)
    facts = Facts(Domain(it=Category("no", "yes")), relation, None if size is None else exact.whole(size=size))
    wanted = None if alpha is None else exact.probability(alpha=alpha)
    asked = Asked(budget, facts, exact.probability(beta=beta), wanted, numbers)
    by_size = size is None or (kind in RULES and wanted is not None)
    rows = sorted(rows_of(asked), key=_order_by_size if by_size else _order)
    return Plan(kind, budget, relation, asked.beta, tuple(rows), size, wanted)


def _order(row: Row) -> float:
    return math.inf if row.error is None else row.error


def _order_by_size(row: Row) -> float:
    return _order(row) if row.needed is None else row.needed


def _count(asked: Asked) -> list[Row]:
    return _additive(asked, asked.facts, Count(Equals("it", "yes")), 1, (Laplace, Gaussian))


def _histogram(asked: Asked) -> list[Row]:
    cells = asked.number("cells")
    facts = _with(asked, Domain(it=Number(0, max(1, cells - 1), step=1)))
    return _additive(asked, facts, Histogram("it"), cells, (Laplace, Gaussian))


def _questions(asked: Asked) -> list[Row]:
    from discreet.pmw import plans

    return plans.rows(asked)


def _vector(asked: Asked) -> list[Row]:
    dimension = asked.number("d")
    facts = _with(asked, Domain(it=Vector(dimension, norm=1)))
    kinds = (CoordinateLaplace, ProductLaplace, Gaussian)
    return _additive(asked, facts, VectorSum("it"), dimension, kinds)


def _additive(asked: Asked, facts: Facts, query: Query, cells: int, kinds: Sequence[Any]) -> list[Row]:
    """Noise of each kind on all coordinates at once: the error is a union bound over them."""
    rows = []
    for kind in kinds:
        theorem = f"{kind.__name__}, theorem and accuracy"
        row = _calibrated(asked, kind.__name__, theorem, functools.partial(kind, query), facts)
        if row.mechanism is not None:
            inside = 1 - asked.beta / cells
            row = _promising(asked, row, row.mechanism.noise_range(inside, facts))
        rows.append(row)
    return rows


def _select(asked: Asked) -> list[Row]:
    candidates = asked.number("candidates")
    facts = _with(asked, Domain(it=Number(0, max(1, candidates - 1), step=1)))
    rows = []
    for kind in (Exponential, PermuteAndFlip):
        row = _calibrated(
            asked,
            kind.__name__,
            f"{kind.__name__}, accuracy: best - score <= ln(m/beta) / rate",
            functools.partial(_selecting, kind),
            facts,
        )
        if row.noise is not None:
            row = _promising(asked, row, float(row.noise) * math.log(candidates / asked.beta))
        rows.append(row)
    return rows


def _selecting(kind: Any, noise: Fraction) -> Any:
    return kind(Histogram("it"), 1 / noise)


def _questioning(kind: Any, sensitivity: int, noise: Fraction) -> Any:
    return kind(noise, 2 * noise, sensitivity=sensitivity)


def _threshold(asked: Asked) -> list[Row]:
    """The window inside which a yes or a no may be wrong, over all questions of one conversation."""
    questions = asked.number("questions")
    rows = []
    for kind in (AboveThreshold, AboveThresholdLaplace):
        row = _calibrated(
            asked,
            kind.__name__,
            f"{kind.__name__}, accuracy over {questions} questions",
            functools.partial(_questioning, kind, Count().sensitivity(asked.facts).linf),
            asked.facts,
        )
        if row.mechanism is not None:
            row = _promising(asked, row, float(row.mechanism.window(asked.beta, questions=questions)))
        rows.append(row)
    return rows


def _learner(kind: str, asked: Asked) -> list[Row]:
    from discreet.erm.plans import rows  # learners are on top of plans

    return rows(kind, asked)


def _rules(kind: str, asked: Asked) -> list[Row]:
    from discreet.pac.plans import rows

    return rows(kind, asked)


LEARNERS = ("linear", "logistic", "mean", "median")
RULES = ("box", "conjunction", "finite", "interior", "rule")

KINDS: dict[str, tuple[tuple[str, ...], Callable[[Asked], list[Row]]]] = {
    "box": (("d", "bits"), functools.partial(_rules, "box")),
    "conjunction": (("d", "k"), functools.partial(_rules, "conjunction")),
    "count": ((), _count),
    "finite": (("hypotheses",), functools.partial(_rules, "finite")),
    "histogram": (("cells",), _histogram),
    "interior": (("bits",), functools.partial(_rules, "interior")),
    "linear": (("d",), functools.partial(_learner, "linear")),
    "logistic": (("d",), functools.partial(_learner, "logistic")),
    "mean": ((), functools.partial(_learner, "mean")),
    "median": ((), functools.partial(_learner, "median")),
    "rule": (("conditions", "k"), functools.partial(_rules, "rule")),
    "select": (("candidates",), _select),
    "questions": (("questions", "bits", "cells"), _questions),
    "threshold": (("questions",), _threshold),
    "vector": (("d",), _vector),
}
"""Each kind: the numbers it needs, and the function that makes its rows."""


def _with(asked: Asked, domain: Domain) -> Facts:
    return Facts(domain, asked.facts.neighbours, asked.facts.size)


def _calibrated(asked: Asked, method: str, theorem: str, make: Callable[[Fraction], Mechanism], facts: Facts) -> Row:
    try:
        mechanism = calibrate(make, admits=within(asked.budget, facts=facts))
    except ParameterError as refused:
        pure = "it has no pure guarantee: give the budget a delta > 0"
        return Row(method, theorem, refusal=pure if asked.budget.delta == 0 else str(refused))
    noise = next(
        getattr(mechanism, field) for field in ("scale", "threshold_scale", "rate") if hasattr(mechanism, field)
    )
    return Row(method, theorem, 1 / noise if hasattr(mechanism, "rate") else noise, mechanism=mechanism)


def _promising(asked: Asked, row: Row, error: float) -> Row:
    alpha = None if asked.facts.size is None else error / asked.facts.size
    needed = None if asked.alpha is None else math.ceil(error / asked.alpha)
    return Row(row.method, row.theorem, row.noise, error, alpha, needed, mechanism=row.mechanism)


def _table(found: Plan) -> list[str]:
    """The rows that promise something, without the columns that are empty in all of them."""
    promising = [row for row in found.rows if not row.refusal]
    rules, named = found.kind in RULES, found.alpha is not None and found.kind != "interior"
    columns: list[tuple[str, Callable[[Row], str | Fraction | float | None]]] = [
        ("method", lambda row: row.method),
        ("noise", lambda row: row.noise),
        ("wrong rows <=" if rules else "error <=", lambda row: row.error),
        ("of them" if found.size is None else f"of {found.size:,}", lambda row: row.alpha),
        (f"size for {float(found.alpha or 0):g}" if named else "size", lambda row: row.needed),
        ("rests on", lambda row: row.theorem),
    ]
    shown = [(title, cell) for title, cell in columns if any(cell(row) is not None for row in promising)]
    lines = [[title for title, _ in shown], *([_shown(cell(row)) for _, cell in shown] for row in promising)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(shown))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _assumptions(found: Plan) -> list[str]:
    """What the promises suppose, each assumption once."""
    supposed = [row for row in found.rows if row.assuming and not row.refusal]
    known = dict.fromkeys(row.assuming for row in supposed)
    return [f"{', '.join(row.method for row in supposed if row.assuming == each)}: {each}" for each in known]


def _shown(value: str | Fraction | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{float(value):,.0f}" if value >= 1000 else f"{float(value):.4g}"
