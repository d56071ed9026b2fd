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

    problems    what is asked: public numbers, columns, what may be spent; methods for single releases: counts, sums,
                histograms, selections, thresholds
    models      the problems of the estimators and their methods (`erm.solvers`, `erm.location`), and their units
    questions   ways to answer counting questions: sessions, workloads, made-up rows

The methods for rules are those of `pac`. KINDS is the list of kinds; a plan prints the list of methods that a
fit chooses from.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.core import (
    WIDE,
    Budget,
    CellTable,
    Funds,
    Neighbours,
    Pairs,
    Paragraph,
    ParameterError,
    Share,
    Sheet,
    Shown,
    exact,
)
from discreet.data import Domain
from discreet.ledger import Ledger
from discreet.method import LARGEST, UNPROVEN, USELESS, Method, Methods, Offer, Refused, choose
from discreet.plan.problems import IMAGINED, MODELS, Left, Model, Problem, in_cell, release_methods

MOST_PEOPLE = 10**30  # of which floats take parts
PURE = "it has no pure guarantee: give the budget a delta > 0"


@dataclass(frozen=True, slots=True, repr=False)
class PlanRow(Shown):
    """One method: its noise, the error promised with probability 1 - beta, and the theorem it rests on.

    noise    the scale (for a selection: one over its rate; for a threshold: the threshold's scale)
    error    in persons (or in the units of the sum), over all coordinates at once; for a learner its excess risk, for a
             learner of rules the rows that it labels wrong
    alpha    the error as a fraction of `size`, when a size is given
    needed   the size for which the error is the alpha that was asked for, when one is given
    refusal  why this method promises nothing here; the numbers are None then
    assuming what the promise supposes about the rows, or whom it compares with
    taken    a model: whether its estimator takes this method by default, method="auto"
    imagined it cannot be run at this size: a row to compare with
    passes   a model: about how often the rows are read, which far tables (docs/engines.md) make dear
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
    imagined: bool = False
    passes: int | None = None

    def __repr__(self) -> str:
        found = self.refusal or ", ".join(f"{name} {in_cell(each)}" for name, each in self._numbers())
        return f"<PlanRow {self.method}: {found}>"

    def _numbers(self) -> list[tuple[str, Fraction | float | None]]:
        sizes = (("of them", self.alpha), ("size", self.needed), ("passes", self.passes))
        named = (("noise", self.noise), ("error", self.error), *sizes)
        return [(name, each) for name, each in named if each is not None]

    def sheet(self) -> Sheet:
        known: list[tuple[str, object]] = [(name, in_cell(each)) for name, each in self._numbers()]
        words = (("rests on", self.theorem), ("assuming", self.assuming), ("refused", self.refusal))
        taken = [("fit takes", "this")] if self.taken else []
        return Sheet.of(Pairs([("method", self.method), *taken, *known, *(each for each in words if each[1])]))


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """All methods side by side, the smallest promised error first; what can only be imagined after the others.

    units   of a model's promises: what its errors are measured in
    radius  of its feasible set: its coefficients are no longer than this, and neither are those that it is compared to
    """

    kind: str
    budget: Budget
    neighbours: Neighbours
    beta: Fraction
    rows: tuple[PlanRow, ...]
    size: int | None = None
    alpha: Fraction | None = None
    numbers: tuple[tuple[str, int], ...] = ()
    left: Left | None = None
    units: str = ""
    radius: Fraction | None = None

    @property
    def taken(self) -> PlanRow | None:
        """What the estimator of a model takes by default."""
        return next((row for row in self.rows if row.taken), None)

    @property
    def promising(self) -> tuple[PlanRow, ...]:
        return tuple(row for row in self.rows if not row.refusal)

    @property
    def refused(self) -> tuple[PlanRow, ...]:
        return tuple(row for row in self.rows if row.refusal)

    @property
    def head(self) -> str:
        """What was asked, in a sentence."""
        how = "in expectation" if KINDS[self.kind].expected else f"with probability {float(1 - self.beta):g}"
        return f"{self.kind}: {self.left or self.budget}, {self.neighbours}, each promise {how}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Titles, and the rows that promise something, without the columns that are empty in all of them."""
        named = self.alpha is not None and self.kind != "interior"
        columns: list[tuple[str, Callable[[PlanRow], str | Fraction | float | None]]] = [
            ("method", lambda row: row.method),
            ("fit takes", lambda row: "this" if row.taken else None),
            ("noise", lambda row: row.noise),
            (f"{KINDS[self.kind].error} <=", lambda row: row.error),
            ("of them" if self.size is None else f"of {self.size:,}", lambda row: row.alpha),
            (f"size for {float(self.alpha or 0):g}" if named else "size", lambda row: row.needed),
            ("passes", lambda row: row.passes),
            ("rests on", lambda row: row.theorem),
        ]
        shown = [(title, cell) for title, cell in columns if any(cell(row) is not None for row in self.promising)]
        return [title for title, _ in shown], [[in_cell(cell(row)) for _, cell in shown] for row in self.promising]

    def notes(self) -> list[str]:
        """What the promises suppose, each assumption once; then why the other methods promise nothing."""
        supposed = [row for row in self.promising if row.assuming]
        known = dict.fromkeys(row.assuming for row in supposed)
        assumed = [f"{', '.join(row.method for row in supposed if row.assuming == each)}: {each}" for each in known]
        taken = {row.method: " (fit takes this)" for row in self.refused if row.taken}
        return [*assumed, *(f"{row.method}{taken.get(row.method, '')}: {row.refusal}" for row in self.refused)]

    def __repr__(self) -> str:
        methods = f"{len(self.promising)} methods" if len(self.promising) != 1 else "one method"
        return f"<Plan {self.head}; {methods}>"

    def sheet(self, about: str = "") -> Sheet:
        """The methods that promise something as a table, then what they suppose, and why the others do not."""
        titles, rows = self.table()
        return Sheet.of(
            self.head,
            *(Paragraph(each, "dim") for each in (about, f"units: {self.units}" if self.units else "") if each),
            CellTable(titles, rows, narrow=WIDE) if rows else "No method promises anything here.",
            *(Paragraph(note, "dim") for note in self.notes()),
        )


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
    pass_seconds: float = 0.0,
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
    pass_seconds  what a pass over the rows costs: a far table's `offers.pass_seconds`, by which fit chooses, too
    """
    check_numbers(kind, numbers)
    left, relation, size = _whose(budget, ledger, share, allowance, neighbours, size)
    if size is not None and exact.whole(size=size) > MOST_PEOPLE:
        raise ParameterError(f"size must be at most 10**30, found {exact.shown(Fraction(size))}", argument="size")
    model = Model(
        domain,
        target,
        tuple(features),
        None if radius is None else exact.moderate(radius=radius),
        None if huber is None else exact.positive(huber=huber),
        pass_seconds,
    )
    model.check(kind, numbers)
    wanted = None
    if alpha is not None:  # in a target's own units it is no fraction
        wanted = exact.probability(exact.TINY, alpha=alpha) if domain is None else exact.positive(alpha=alpha)
    promised = left.ledger.budget if left is not None else budget
    assert promised is not None
    problem = Problem(
        kind,
        promised,
        relation,
        None if size is None else exact.whole(size=size),
        wanted,
        exact.probability(exact.TINY, beta=beta),
        Funds.of(promised) if left is None else left.funds,
        numbers,
        left,
        model,
    )
    methods = _methods(problem)
    if kind in MODELS:
        from discreet.plan import models

        found = [_row(problem, methods.find(name), methods) for name in models.names(kind) or methods.names]
        taken = models.taken(problem, methods, {row.method: row.needed for row in found if row.needed is not None})
        found = [replace(row, taken=row.method == taken, passes=models.passes(problem, row)) for row in found]
        described = models.described(problem)
    else:
        found, described = [_row(problem, method, methods) for method in methods], {"numbers": tuple(numbers.items())}
    by_size = size is None or kind == "interior" or (kind in RULES and wanted is not None)
    rows = tuple(sorted(found, key=functools.partial(_order, by_size)))
    return Plan(kind, promised, relation, problem.beta, rows, size, wanted, left=left, **described)


def check_numbers(kind: str, numbers: Iterable[str]) -> None:
    """Refuse a kind that there is not, and numbers that its plan does not take."""
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(sorted(KINDS))}; found {kind!r}")
    takes = KINDS[kind].numbers
    if unknown := set(numbers) - set(takes):
        known, found = ", ".join(f"{name}=" for name in takes) or "no other number", ", ".join(sorted(unknown))
        raise ParameterError(f"a plan for {kind!r} takes {known} beside budget=, size= and alpha=; found {found}")


def numbers_of(kind: str, domain: Domain, names: Sequence[str]) -> dict[str, int]:
    """The numbers of a plan of this kind that follow from declared columns."""
    columns = [domain.column(name) for name in names]
    bits = {"bits": max(1, *((column.size - 1).bit_length() for column in columns))}
    if kind in ("bounds", "interior"):
        if len(columns) != 1:
            raise ParameterError("this plan is about one column: name it with --features")
        return {} if not columns[0].bounded and columns[0].ordered else bits
    if kind in ("box", "conjunction", "rule"):
        from discreet import pac

        if kind == "rule":
            return {"conditions": pac.Thresholds(tuple(names)).size(domain)}
        if kind == "conjunction":
            literals = pac.Literals(tuple(names))
            literals.check(domain)
            return {"d": literals.variables(domain)}
        for name in (name for name in names if not domain.column(name).bounded):
            raise ParameterError(f"a box is about numbers, and {name!r} is none: name numbers with --features")
        return {"d": len(columns), **bits}
    if kind in ("linear", "logistic", "network"):
        from discreet.plan import models

        return {"d": models.dimension(names, domain)}
    counted = {"histogram": "cells", "questions": "cells", "workload": "cells", "select": "candidates"}
    return {counted[kind]: math.prod(column.size for column in columns)} if kind in counted else {}


def method_names(kind: str) -> tuple[str, ...]:
    """What a plan of a model lists, and `method=` of its estimator takes; none if it has one method."""
    from discreet.plan import models

    return models.names(kind)


def quick_bound(
    kind: str, budget: Budget, neighbours: Neighbours, size: int, numbers: Mapping[str, Any]
) -> float | None:
    """The bound of the method that the estimator of a model takes by default, or None where nothing is promised.

    For many points of a plot, since a plan of all methods takes seconds for each. numbers: may hold the radius, too
    """
    from discreet.plan import models

    given = dict(numbers)
    model, funds = Model(radius=given.pop("radius", None)), Funds.of(budget)
    problem = Problem(kind, budget, neighbours, size, None, Fraction(1, 20), funds, given, model=model)
    try:
        return choose(models.methods(problem), "auto", size).promise.bound
    except ParameterError:
        return None


def _whose(
    budget: Budget | None,
    ledger: Ledger | None,
    share: Share | exact.Exact | None,
    allowance: str | None,
    neighbours: Neighbours | str | None,
    size: int | None,
) -> tuple[Left | None, Neighbours, int | None]:
    """What may be spent, which relation, how many: from the arguments, or from a ledger."""
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
    if ledger.identity.tables:
        if neighbours is None:
            raise ParameterError("this ledger has several tables: neighbours= says which rows of a person one has")
        relation = Neighbours.of(neighbours)
    if neighbours is not None and (Neighbours.of(neighbours) != relation or not ledger.identity.counts(relation)):
        raise ParameterError(f"this ledger counts {relation}, found neighbours={str(neighbours)!r}")
    with ledger.store.reading() as state:
        ledger.store.check_mark(state)
    known = None if ledger.facts is None else ledger.facts.size
    part = share if isinstance(share, Share) else Share(1 if share is None else share)
    left = Left(ledger, part, either=share is None, allowance=allowance)
    left.remaining()  # refuses unknown names
    return left, relation, known if size is None else size


# From methods to rows. Learners are imported when a plan needs them, so that `import discreet` stays quick.


def _methods(problem: Problem) -> Methods:
    """Every method for this problem: what a fit chooses from."""
    match KINDS[problem.kind].family:
        case "model":
            from discreet.plan import models

            return models.methods(problem)
        case "questions":
            from discreet.plan import questions

            return questions.methods(problem)
        case "release":
            return release_methods(problem)
    from discreet import pac

    given = problem.neighbours, problem.size, problem.beta, problem.funds
    if problem.kind == "bounds":
        return pac.bounds_methods(problem.number("bits") if "bits" in problem.numbers else None, *given)
    if problem.kind == "interior" and problem.alpha is not None:
        raise ParameterError("an interior point is found or not: a plan for it takes no alpha")
    if problem.kind != "interior" and problem.size is None and problem.alpha is None:
        raise ParameterError("a plan for a learner needs size=, or alpha= to find the size", argument="size")
    return pac.methods(problem.kind, problem.number, *given)


def _row(problem: Problem, method: Method | Refused, methods: Methods) -> PlanRow:
    if isinstance(method, Refused):
        pure = method.code == "budget" and problem.funds.pure
        return PlanRow(method.name, "", refusal=PURE if pure else method.reason)
    kind, size, claim = KINDS[problem.kind], problem.size, method.claim
    rule, model = claim.measure == "wrong rows", claim.measure == "excess risk"
    if rule and not method.proven:
        return PlanRow(method.name, "", refusal="nothing is proved; auto takes it unless asked for a proof")
    needed = _needed(problem, method)
    if model and size is None and problem.alpha is not None:  # the error is that at the size which alpha needs
        if needed is None:
            return _row(problem, _nowhere(method), methods)
        size = needed
    try:
        offer = Offer(method.name, None, method.promise(size)) if rule else method.offer(size)
    except ParameterError as refused:
        return PlanRow(method.name, "", refusal=str(refused))
    promise, bound = offer.promise, None if problem.kind == "interior" else offer.promise.bound
    error, alpha, refusal, theorem = bound, None, "", promise.theorem
    if bound is not None and size is not None and kind.shared:
        error, alpha = (bound * size, bound) if rule else (bound, bound / size)
    if bound is None and (needed is None or model):
        refusal = f"it promises something from {method.needed(USELESS):,} rows on" if rule else promise.reason
    if rule:
        theorem += f"; {IMAGINED}" if method.imagined else "" if method.name in methods.usual() else "; by name only"
    best_of = f"more wrong rows than by the best of {claim.best_of}" if claim.best_of else ""
    assuming, imagined = best_of or promise.condition, bool(method.imagined)
    noise, mechanism = offer.noise, offer.mechanism
    return PlanRow(method.name, theorem, noise, error, alpha, needed, refusal, mechanism, assuming, imagined=imagined)


def _needed(problem: Problem, method: Method) -> int | None:
    """The size for the wanted alpha; for a point that is found or not, and for bounds, whatever alpha is."""
    alpha = problem.alpha
    if alpha is None and KINDS[problem.kind].always:
        alpha = Fraction(1)
    size = UNPROVEN if alpha is None else method.needed(alpha if method.claim.measure == "error" else float(alpha))
    return None if size >= UNPROVEN else size


def _nowhere(method: Method) -> Refused:
    """Why no size is enough."""
    try:
        reason = method.promise(LARGEST).reason
    except ParameterError as refused:
        return Refused.of(method.name, refused)
    return Refused(method.name, reason or f"no size up to {LARGEST:,} is enough within its limit of steps")


def _order(by_size: bool, row: PlanRow) -> tuple[bool, float]:
    """The best first: by the size that is needed, or by the error."""
    if by_size and row.needed is not None:
        return row.imagined, row.needed
    return row.imagined, math.inf if row.error is None else row.error


# The kinds.


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of plan: what it is about, and the numbers that it needs or may be given.

    family    where its methods are from: "release", "model", "rule" or "questions"
    error     what an error is measured in
    shared    whether the error is also shown as a share of the size
    always    whether a size is shown where no alpha was asked for
    """

    family: str
    about: str
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    error: str = "error"
    shared: bool = True
    always: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*self.needs, *self.may)

    @property
    def expected(self) -> bool:
        """Whether the promise is about the expectation."""
        return self.family == "model"


_release = functools.partial(Kind, "release")
_model = functools.partial(Kind, "model", error="excess risk", shared=False)
_rule = functools.partial(Kind, "rule", error="wrong rows")
_questions = functools.partial(Kind, "questions", needs=("questions",))

KINDS: dict[str, Kind] = {
    "count": _release("how many rows satisfy a condition"),
    "sum": _release("the sum of a column whose values lie in [0, 1]"),
    "average": _release("the mean of such a column, its error with probability 1 - beta", shared=False),
    "histogram": _release("the number of rows in each cell", ("cells",)),
    "keys": _release("the same for cells that cannot be listed: only those of many people appear"),
    "vector": _release("the sum of vectors of norm 1 in d dimensions", ("d",)),
    "select": _release("the best of several candidates, by a count", ("candidates",)),
    "threshold": _release("yes or no to several questions, until the first yes", ("questions",)),
    "mean": _model("the mean of values in [0, 1], by its squared error"),
    "median": _model("the median of values in [0, 1], by the absolute loss"),
    "quantile": _model("the percent % quantile of values in [0, 1]", ("percent",)),
    "linear": _model("linear regression, d features of norm 1, targets in [-1, 1]", ("d",)),
    "logistic": _model("logistic regression on d features of norm 1", ("d",)),
    "network": _model("a neural network on d features: private, but no bound is proved", ("d",)),
    "bounds": Kind(
        "rule",
        "bounds for a column without any (or of whole numbers below 2^bits)",
        (),
        ("bits",),
        "rows beyond",
        always=True,
    ),
    "interior": Kind(
        "rule", "a point between the smallest and the largest of whole numbers below 2^bits", ("bits",), always=True
    ),
    "box": _rule("a box in d columns of 2^bits values", ("d", "bits")),
    "conjunction": _rule("at most k of d booleans or their opposites, joined by and", ("d", "k")),
    "rule": _rule("at most k of the conditions, joined by and", ("conditions", "k")),
    "finite": _rule("the best of a list of hypotheses", ("hypotheses",)),
    "questions": _questions("counts, each chosen after the answers before it", may=("bits", "cells")),
    "workload": _questions(
        "counts that are all known in advance; also marginals of `each` cells",
        may=("bits", "cells", "marginals", "each"),
    ),
    "synthetic": _questions("synthetic rows: counts of them", may=("rows",), shared=False),
}
"""Every kind of plan."""

RULES = ("box", "conjunction", "finite", "interior", "rule")
