"""What a budget buys, before anything is spent: promised accuracy, or the size that an accuracy needs.

A plan reads public numbers only: a budget, a relation, how many people, how many cells or candidates. Every row is one
method with the noise that `calibrate` finds for it (the very mechanism that would be released), the error that its
theorem promises with probability 1 - beta, and the name of that theorem.

    dp.plan("histogram", budget=dp.Budget(1, 1e-6), size=20_000, cells=121)
    dp.plan("box", ledger=ledger, share="1/3", d=2, bits=16)     # a third of what is left there
    dp.plan("linear", ledger=ledger, share="1/3", domain=people.facts.domain, target="age", features=["visits"])

A model may be planned for declared columns, as in the last line: then it is the very problem that the estimator solves,
in the units of the target. Without them it is that of d features in units where the bounds are 1.

What is left in a ledger is not an (epsilon, delta) but an amount in each of its books. So rows of such a plan are
calibrated by the test that a charge would meet, "within this share of every book", and by no (epsilon, delta).

KINDS is the list; their rows are made in `plans.py` of `mechanisms`, `erm`, `pac` and `answering`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet import exact
from discreet.data import Category, Domain, Facts
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours, Share

if TYPE_CHECKING:
    from discreet.funds import Books
    from discreet.ledger import Ledger

IMAGINED = "a row of the plan only"
"""Said of a method that cannot be run at this size: a row to compare with."""

PURE = "it has no pure guarantee: give the budget a delta > 0"


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
    taken    a model: whether its estimator takes this method unasked, method="auto"
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
    taken: bool = False

    @property
    def imagined(self) -> bool:
        return IMAGINED in self.theorem or IMAGINED in self.assuming


@dataclass(frozen=True, slots=True)
class Left:
    """A share of what is left in a ledger at one moment: what a charge must stay within, in every book.

    either  all that the ledger admits, in whichever book: a share is of the Renyi book, if anything is left there
    """

    ledger: Ledger
    share: Share
    either: bool = False
    allowance: str | None = None

    def remaining(self) -> Books:
        """What is left of the ledger, or of the allowance's share of it."""
        return self.ledger.remaining(allowance=self.allowance)

    @property
    def funds(self) -> Funds:
        """What a charge must stay within; the ledger admits it too, for its books have that much left."""
        return self.ledger.funds(share=None if self.either else self.share, allowance=self.allowance)

    def __str__(self) -> str:
        left, part = self.remaining(), "all" if self.share.part == 1 else str(self.share.part)
        caps = left.share(self.share.part)
        books = [f"pure epsilon {_shown(Fraction(caps.pure, 10**9))}"] if caps.pure else []
        if caps.renyi:
            books.insert(0, f"Renyi divergence {_shown(Fraction(caps.renyi, 10**9))} at order {left.order}")
        whose = repr(self.ledger.identity.name) + (f" to {self.allowance!r}" if self.allowance else "")
        return f"{part} of what is left for {whose} ({' or '.join(books) or 'nothing'})"


@dataclass(frozen=True, slots=True)
class Model:
    """What a model is planned for: declared columns, or none; radius and huber as its estimator takes them."""

    domain: Domain | None = None
    target: str | None = None
    features: tuple[str, ...] = ()
    radius: Fraction | None = None
    huber: Fraction | None = None

    def check(self, kind: str, numbers: Iterable[str]) -> None:
        """Whether this kind takes what is given."""
        given = [name for name in _TAKEN_BY if getattr(self, name) not in (None, ())]
        for name in given:
            if kind not in _TAKEN_BY[name]:
                raise ParameterError(
                    f"{name}= is for {' and '.join(_TAKEN_BY[name])}, not for a plan of {kind!r}", argument=name
                )
        if ("domain" in given) != ("target" in given) or ("features" in given and "domain" not in given):
            raise ParameterError(f"domain= and target= belong together, found {' and '.join(given)}")
        if self.domain is not None and "d" in numbers:
            raise ParameterError("d= is counted from the columns when domain= is given: leave it out")


@dataclass(frozen=True, slots=True)
class Plan:
    """All methods side by side, the smallest promised error first; what can only be imagined after the others.

    units   of a model's promises: what its errors are measured in
    radius  of its feasible set: its coefficients are no longer than this, and neither are those that it is compared to
    """

    kind: str
    budget: Budget
    neighbours: Neighbours
    beta: Fraction
    rows: tuple[Row, ...]
    size: int | None = None
    alpha: Fraction | None = None
    numbers: tuple[tuple[str, int], ...] = ()
    left: Left | None = None
    units: str = ""
    radius: Fraction | None = None

    @property
    def taken(self) -> Row | None:
        """What the estimator of a model takes unasked."""
        return next((row for row in self.rows if row.taken), None)

    @property
    def promising(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.refusal)

    @property
    def refused(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.refusal)

    @property
    def head(self) -> str:
        """What was asked, in a sentence."""
        how = "in expectation" if KINDS[self.kind].expected else f"with probability {float(1 - self.beta):g}"
        return f"{self.kind}: {self.left or self.budget}, {self.neighbours}, each promise {how}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Titles, and the rows that promise something, without the columns that are empty in all of them."""
        named = self.alpha is not None and self.kind != "interior"
        columns: list[tuple[str, Callable[[Row], str | Fraction | float | None]]] = [
            ("method", lambda row: row.method),
            ("fit takes", lambda row: "this" if row.taken else None),
            ("noise", lambda row: row.noise),
            (f"{KINDS[self.kind].error} <=", lambda row: row.error),
            ("of them" if self.size is None else f"of {self.size:,}", lambda row: row.alpha),
            (f"size for {float(self.alpha or 0):g}" if named else "size", lambda row: row.needed),
            ("rests on", lambda row: row.theorem),
        ]
        shown = [(title, cell) for title, cell in columns if any(cell(row) is not None for row in self.promising)]
        return [title for title, _ in shown], [[_shown(cell(row)) for _, cell in shown] for row in self.promising]

    def notes(self) -> list[str]:
        """What the promises suppose, each assumption once; then why the other methods promise nothing."""
        supposed = [row for row in self.promising if row.assuming]
        known = dict.fromkeys(row.assuming for row in supposed)
        assumed = [f"{', '.join(row.method for row in supposed if row.assuming == each)}: {each}" for each in known]
        taken = {row.method: " (fit takes this)" for row in self.refused if row.taken}
        return [*assumed, *(f"{row.method}{taken.get(row.method, '')}: {row.refusal}" for row in self.refused)]

    def __str__(self) -> str:
        titles, rows = self.table()
        lines = [titles, *rows] if rows else []
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        body = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([self.head, *([f"units: {self.units}"] if self.units else []), *body, *self.notes()])


@dataclass(frozen=True, slots=True)
class Asked:
    """The public numbers of one plan. With `left` the budget is the ledger's, of which this much may be spent."""

    budget: Budget
    facts: Facts
    beta: Fraction
    alpha: Fraction | None
    numbers: dict[str, int]
    left: Left | None = None
    model: Model = Model()

    def number(self, name: str) -> int:
        if name not in self.numbers:
            raise ParameterError(f"this plan needs {name}=, a whole number")
        return exact.whole(**{name: self.numbers[name]})

    @property
    def funds(self) -> Funds:
        """What one release may cost."""
        return Funds.of(self.budget) if self.left is None else self.left.funds

    @property
    def pure(self) -> bool:
        """Whether only pure epsilons count: without a delta, or with nothing left in the Renyi book."""
        return self.funds.pure

    def admits(self, mechanism: Any) -> bool:
        """The test "this alone is within the funds"."""
        return self.funds.admits(mechanism.guarantee(self.facts))

    def with_domain(self, domain: Domain) -> Facts:
        return Facts(domain, self.facts.neighbours, self.facts.size)


def plan(
    kind: str,
    *,
    budget: Budget | None = None,
    ledger: Ledger | None = None,
    share: Share | exact.Exact | None = 1,
    allowance: str | None = None,
    neighbours: Neighbours | str | None = None,
    size: int | None = None,
    alpha: exact.Exact | None = None,
    beta: exact.Exact = 0.05,
    domain: Domain | None = None,
    target: str | None = None,
    features: Sequence[str] = (),
    radius: exact.Exact | None = None,
    huber: exact.Exact | None = None,
    **numbers: int,
) -> Plan:
    """Promised accuracy for a budget, and with alpha the size that it needs; no data, nothing spent.

    kind     what is wanted; `discreet plan` lists the kinds and the numbers that each of them needs
    budget   what may be spent; or ledger= and share=: this share of what is left there (None: all, in either book)
    allowance  with a ledger: of what is left under this name
    size     the public number of persons; with a ledger its own
    alpha    a wanted error, as a fraction; for a model its excess risk, for declared columns in the target's units
    domain   for a model: the declaration of a table; with target= and features= (all others unless they are named)
    radius   for linear and logistic: how long the coefficients may be, and huber= for linear, as the estimator has them
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(sorted(KINDS))}; found {kind!r}")
    found = KINDS[kind]
    if set(numbers) - set(found.numbers):
        takes = ", ".join(f"{name}=" for name in found.numbers) or "no other number"
        raise ParameterError(f"a plan for {kind!r} takes {takes}; found {', '.join(sorted(numbers))}")
    left, relation, size = _whose(budget, ledger, share, allowance, neighbours, size)
    facts = Facts(Domain(it=Category("no", "yes")), relation, None if size is None else exact.whole(size=size))
    model = Model(domain, target, tuple(features), *_lengths(radius, huber))
    model.check(kind, numbers)
    wanted = None
    if alpha is not None:  # in a target's own units it is no fraction
        wanted = exact.probability(alpha=alpha) if domain is None else exact.positive(alpha=alpha)
    promised = left.ledger.budget if left is not None else budget
    assert promised is not None
    asked = Asked(promised, facts, exact.probability(beta=beta), wanted, numbers, left, model)
    by_size = size is None or kind == "interior" or (kind in RULES and wanted is not None)
    rows = sorted(found.rows(asked), key=functools.partial(_order, by_size))
    told = _measured(kind, asked) if kind in MODELS else {"numbers": tuple(numbers.items())}
    return Plan(kind, promised, relation, asked.beta, tuple(rows), size, wanted, left=left, **told)


def _lengths(radius: exact.Exact | None, huber: exact.Exact | None) -> tuple[Fraction | None, Fraction | None]:
    return (
        None if radius is None else exact.moderate(radius=radius),
        None if huber is None else exact.positive(huber=huber),
    )


def _whose(
    budget: Budget | None,
    ledger: Ledger | None,
    share: Share | exact.Exact | None,
    allowance: str | None,
    neighbours: Neighbours | str | None,
    size: int | None,
) -> tuple[Left | None, Neighbours, int | None]:
    """What may be spent, which relation, how many: from the arguments, or from a ledger."""
    from discreet.ledger import Ledger

    if ledger is None:
        if allowance is not None:
            raise ParameterError("an allowance is a share of a ledger's budget: give ledger=")
        if not isinstance(budget, Budget):
            raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}")
        return None, Neighbours.of(neighbours or "replace-one"), size
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"ledger must be a Ledger, found a {type(ledger).__name__}")
    if budget is not None:
        raise ParameterError("give a budget, or a ledger and a share of what is left there, not both")
    relation = ledger.identity.neighbours
    if neighbours is not None and Neighbours.of(neighbours) != relation:
        raise ParameterError(f"this ledger counts {relation}, found neighbours={str(neighbours)!r}")
    with ledger.store.reading() as state:
        ledger.store.check_mark(state)
    known = None if ledger.facts is None else ledger.facts.size
    part = share if isinstance(share, Share) else Share(1 if share is None else share)
    left = Left(ledger, part, either=share is None, allowance=allowance)
    left.remaining()  # refuses unknown names
    return left, relation, known if size is None else size


def _order(by_size: bool, row: Row) -> tuple[bool, float]:
    """The best first: by the size that is needed, or by the error."""
    if by_size and row.needed is not None:
        return row.imagined, row.needed
    return row.imagined, math.inf if row.error is None else row.error


def _shown(value: str | Fraction | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{float(value):,.0f}" if value >= 1000 else f"{float(value):.4g}"


# The kinds. Their rows are made elsewhere, and brought in when they are asked for.


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of plan: what it is about, the numbers that it needs or may be given, and what makes its rows.

    error     what an error is measured in          expected   whether the promise is about the expectation
    """

    about: str
    rows: Callable[[Asked], list[Row]]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    error: str = "error"
    expected: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*self.needs, *self.may)


def _noise(kind: str, asked: Asked) -> list[Row]:
    from discreet.mechanisms.plans import rows

    return rows(kind, asked)


def _learner(kind: str, asked: Asked) -> list[Row]:
    from discreet.erm.plans import rows  # learners are on top of plans

    return rows(kind, asked)


def _measured(kind: str, asked: Asked) -> dict[str, Any]:
    from discreet.erm.posed import told

    return told(kind, asked)


def _rules(kind: str, asked: Asked) -> list[Row]:
    from discreet.pac.plans import rows

    return rows(kind, asked)


def _answers(kind: str, asked: Asked) -> list[Row]:
    from discreet.answering.plans import rows

    return rows(asked, kind)


def _kind(make: Callable[[str, Asked], list[Row]], name: str, about: str, *needs: str, **more: Any) -> tuple[str, Kind]:
    return name, Kind(about, functools.partial(make, name), needs, **more)


_RISK: dict[str, Any] = {"error": "excess risk", "expected": True}
_WRONG: dict[str, Any] = {"error": "wrong rows"}
_DOMAIN: dict[str, Any] = {"may": ("bits", "cells")}

KINDS: dict[str, Kind] = dict(
    (
        _kind(_noise, "count", "how many rows satisfy a condition"),
        _kind(_noise, "sum", "the sum of a column whose values lie in [0, 1]"),
        _kind(_noise, "average", "the mean of such a column, its error with probability 1 - beta"),
        _kind(_noise, "histogram", "how many rows there are in each of so many cells", "cells"),
        _kind(_noise, "keys", "the same for cells that nobody can list: only those of many people appear"),
        _kind(_noise, "vector", "the sum of vectors of norm 1 in d dimensions", "d"),
        _kind(_noise, "select", "the best of so many candidates, by a count", "candidates"),
        _kind(_noise, "threshold", "yes or no to so many questions, until the first yes", "questions"),
        _kind(_learner, "mean", "the mean of values in [0, 1], by its squared error", **_RISK),
        _kind(_learner, "median", "the median of values in [0, 1], by the absolute loss", **_RISK),
        _kind(_learner, "quantile", "the percent % quantile of values in [0, 1]", "percent", **_RISK),
        _kind(_learner, "linear", "linear regression, d features of norm 1, targets in [-1, 1]", "d", **_RISK),
        _kind(_learner, "logistic", "logistic regression on d features of norm 1", "d", **_RISK),
        _kind(_learner, "network", "a neural network on d features: private, but no bound is proved", "d", **_RISK),
        _kind(
            _rules, "bounds", "bounds for a column without any (or of so many bits)", may=("bits",), error="rows beyond"
        ),
        _kind(_rules, "interior", "a point between the smallest and the largest value of so many bits", "bits"),
        _kind(_rules, "box", "a box in d columns of 2^bits values", "d", "bits", **_WRONG),
        _kind(_rules, "conjunction", "at most k of d booleans or their opposites, joined by and", "d", "k", **_WRONG),
        _kind(_rules, "rule", "at most k of so many conditions, joined by and", "conditions", "k", **_WRONG),
        _kind(_rules, "finite", "the best of so many hypotheses", "hypotheses", **_WRONG),
        _kind(_answers, "questions", "counts, each chosen after the answers before it", "questions", **_DOMAIN),
        _kind(
            _answers,
            "workload",
            "counts that are all known beforehand; also so many marginals of `each` cells",
            "questions",
            may=("bits", "cells", "marginals", "each"),
        ),
        _kind(_answers, "synthetic", "made-up rows: so many counts of them", "questions", may=("rows",)),
    )
)
"""Every kind of plan."""

MODELS = ("mean", "median", "quantile", "linear", "logistic", "network")
_REGRESSIONS = ("linear", "logistic", "network")
_TAKEN_BY: dict[str, tuple[str, ...]] = {
    "domain": MODELS,
    "target": MODELS,
    "features": _REGRESSIONS,
    "radius": ("linear", "logistic"),
    "huber": ("linear",),
}
"""Models, and what they may be planned for."""

RULES = ("box", "conjunction", "finite", "interior", "rule")
