"""Plans for learners of rules: how many rows every method needs, and what it promises for a size. No data.

    bounds        bits or nothing: a column of so many bits, or one without bounds
    interior      bits         a point between the smallest and the largest of values of so many bits
    box           d, bits      a box in d columns of 2^bits values
    conjunction   d, k         at most k literals of d booleans
    rule          conditions, k   at most k of so many conditions
    finite        hypotheses   the best of so many hypotheses

Every number is for the relation and the budget that are asked for, and with the assumption that its method states.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.data import AnyNumber, Bits, Category, Column, Domain, Facts, Number, Whole
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.mechanisms import calibrate
from discreet.pac import all_boxes, all_conjunctions, choose, conjunctions
from discreet.pac.finite import FiniteClass, Predictions, empirical_size
from discreet.pac.interior import methods as interior
from discreet.pac.methods import USELESS, Method, Refused, named
from discreet.pac.rank_bounds import RankBounds
from discreet.pac.rules import Labels, Literals
from discreet.plan import IMAGINED, Asked, Row

Methods = list[Method | Refused]

MOST_BITS = 2**20
"""Values of more bits are nobody's."""

NUMBER_BITS = 61
"""A column of a table has at most so many bits."""

MOST_COLUMNS = 10_000

_LABELS = Labels("y", "yes")
_TARGET = Category("no", "yes")


@dataclass(frozen=True, slots=True)
class Posed:
    """A problem that public numbers describe: every method for it, and those that are taken unasked."""

    methods: Methods
    unasked: Methods


def rows(kind: str, asked: Asked) -> list[Row]:
    """One row for each method: the rows that it labels wrong, or how many it needs, or why it does not apply."""
    if kind == "bounds":
        return [_bounds(asked)]
    if kind == "interior" and asked.alpha is not None:
        raise ParameterError("an interior point is found or not: a plan for it takes no alpha")
    if kind != "interior" and asked.facts.size is None and asked.alpha is None:
        raise ParameterError("a plan for a learner needs size=, or alpha= to find the size", argument="size")
    row = _interior_row if kind == "interior" else _row
    posed = _POSED[kind](asked)
    unasked = {each.name for each in posed.unasked}
    return [row(each if each.name in unasked else _by_name(each), asked) for each in posed.methods]


def needed(
    kind: str, alpha: Any, beta: Any, epsilon: Any, delta: Any, neighbours: Any, method: str, **numbers: Any
) -> int:
    """How many rows make the error at most alpha with probability 1 - beta, by one method or by the best."""
    wanted, sure = float(exact.probability(alpha=alpha)), exact.probability(beta=beta)
    facts = Facts(Domain(y=_TARGET), Neighbours.of(neighbours), None)
    posed = _POSED[kind](Asked(Budget(epsilon, delta), facts, sure, None, numbers))
    if method != "auto":
        return named(posed.methods, method).needed(wanted)
    sizes = [each.needed(wanted) for each in posed.unasked if isinstance(each, Method)]
    if not sizes:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in posed.methods if isinstance(each, Refused))
        raise ParameterError(f"no method applies. {reasons}")
    return min(sizes)


def _by_name(method: Method | Refused) -> Method | Refused:
    """A method that auto never takes here, and says so."""
    if isinstance(method, Refused) or method.theorem.endswith(IMAGINED):
        return method
    return replace(method, theorem=f"{method.theorem}; by name only")


def _row(method: Method | Refused, asked: Asked) -> Row:
    if isinstance(method, Refused):
        return Row(method.name, "", refusal=method.reason)
    if not method.proven:
        return Row(method.name, "", refusal="nothing is proved; auto takes it unless asked for a proof")
    size = asked.facts.size
    wanted = None if asked.alpha is None else method.needed(float(asked.alpha))
    promised = None if size is None else method.alpha(size)
    refusal = ""
    if promised is None and wanted is None:
        refusal = f"it promises something from {method.needed(USELESS):,} rows on"
    error = None if promised is None or size is None else promised * size
    supposed = f"more wrong rows than by the best of {method.best_of}" if method.best_of else f"if {method.assuming}"
    return Row(method.name, method.theorem, None, error, promised, wanted, refusal, assuming=supposed)


def _interior_row(method: Method | Refused, asked: Asked) -> Row:
    """An interior point is found or not: there is no error, only a number of values."""
    if isinstance(method, Refused):
        return Row(method.name, "", refusal=method.reason)
    return Row(method.name, method.theorem, needed=method.needed(USELESS))


def _bounds(asked: Asked) -> Row:
    """Two quantiles by ranks, as far out as they are sure to lie among the rows: `suggest_bounds`."""
    theorem = "exponential mechanism on ranks, twice"
    column: Column = AnyNumber()
    if "bits" in asked.numbers:
        bits = asked.number("bits")
        if bits > NUMBER_BITS:
            raise ParameterError(f"bits must be at most {NUMBER_BITS}, found {bits}")
        column = Number(0, 2**bits - 1, step=1)
    facts = Facts(Domain(x=column), asked.facts.neighbours, asked.facts.size)
    try:
        found = calibrate(lambda noise: RankBounds("x", Fraction(1, 2), 1 / noise), funds=asked.funds, facts=facts)
    except ParameterError as refused:
        return Row("ranks", theorem, refusal=str(refused))
    missed = found.missed(facts, float(asked.beta))
    least, beyond, size = 4 * missed, 2 * missed + 1, asked.facts.size
    needed = least if asked.alpha is None else max(least, math.ceil(beyond / asked.alpha))
    if size is not None and size < least:
        return Row("ranks", theorem, refusal=f"{least:,} rows are needed to find bounds among them, found {size:,}")
    share = None if size is None else beyond / size
    return Row("ranks", theorem, 1 / found.rate, float(beyond), share, needed, mechanism=found, assuming=_BEYOND)


_BEYOND = "so many rows lie below the low bound at most, and as many above the high one"


# The problems, from their numbers.


def _stated(asked: Asked, **columns: Column) -> tuple[Facts, Funds]:
    return Facts(Domain(**columns, y=_TARGET), asked.facts.neighbours, asked.facts.size), asked.funds


def _interior(asked: Asked) -> Posed:
    facts, funds = _stated(asked, x=Whole(asked.number("bits")))
    found = interior.methods(facts=facts, column="x", beta=asked.beta, funds=funds)
    return Posed(found, [each for each in found if each.name in interior.USUAL])


def _box(asked: Asked) -> Posed:
    count, bits = asked.number("d"), asked.number("bits")
    if bits > MOST_BITS or count > MOST_COLUMNS:
        raise ParameterError(f"bits must be at most {MOST_BITS} and d at most {MOST_COLUMNS}, found {bits} and {count}")
    column = Number(0, 2**bits - 1, step=1) if bits <= NUMBER_BITS else Whole(bits)
    columns = {f"x{place + 1}": column for place in range(count)}
    facts, funds = _stated(asked, **columns)
    found = choose.box_methods(tuple(columns), _LABELS, facts, asked.beta, funds)
    shown = [_marked(each) if count > 2 and each.name == all_boxes.NAME else each for each in found]
    return Posed(shown, choose.unasked_boxes(found, tuple(columns), facts))


def _conjunction(asked: Asked) -> Posed:
    facts, funds = _stated(asked, x=Bits(asked.number("d")))
    literals, k = Literals("x"), asked.number("k")
    found = choose.conjunction_methods(literals, _LABELS, k, facts, asked.beta, funds)
    shown = [_imagined(k, facts, asked.beta, funds) if _too_long(each) else each for each in found]
    return Posed(shown, choose.unasked_conjunctions(found, literals, k, facts))


def _rule(asked: Asked) -> Posed:
    conditions, k = asked.number("conditions"), asked.number("k")
    if k > conditions:
        raise ParameterError(f"k must be at most the number of conditions, {conditions}; found {k}")
    facts, funds = _stated(asked, x=Bits(-(-conditions // 2)))  # an odd number is rounded up
    found = choose.rule_methods(Literals("x"), _LABELS, k, facts, asked.beta, funds)
    return Posed(found, found)


def _finite(asked: Asked) -> Posed:
    facts, funds = _stated(asked, x=Bits(asked.number("hypotheses")))
    found = choose.finite_methods(Predictions("x"), _LABELS, facts, asked.beta, funds)
    return Posed(found, found)


_POSED: dict[str, Callable[[Asked], Posed]] = {
    "box": _box,
    "conjunction": _conjunction,
    "finite": _finite,
    "interior": _interior,
    "rule": _rule,
}

# Going through all boxes or conjunctions when that would take too long: a row to compare with.


def _marked(method: Method | Refused) -> Method | Refused:
    return replace(method, theorem=f"{method.theorem}; {IMAGINED}") if isinstance(method, Method) else method


def _too_long(method: Method | Refused) -> bool:
    return isinstance(method, Refused) and method.name == conjunctions.EXACT and "refused" in method.reason


def _imagined(k: int, facts: Facts, beta: Fraction, funds: Funds) -> Method:
    """The size of the exponential mechanism over all conjunctions: its price is that over any two hypotheses."""
    literals = Literals("x")
    count, found = (
        literals.variables(facts.domain),
        all_conjunctions.estimate(literals.variables(facts.domain), k, facts),
    )
    chosen = calibrate(lambda noise: FiniteClass(Predictions("x"), _LABELS, 1 / noise), funds=funds, facts=facts)
    log_class, rate = math.log(all_conjunctions.conjunctions(count, k)), float(chosen.rate)

    def refuse(alpha: float) -> Any:
        raise ParameterError(f"{IMAGINED}: {found}")

    return Method(
        conjunctions.EXACT,
        f"exponential mechanism over all; {IMAGINED}",
        "",
        float(beta),
        lambda alpha: empirical_size(log_class, alpha, float(beta), rate),
        refuse,
        best_of=conjunctions.best_of(k),
    )
