"""Every method for a problem side by side, and which of them `method="auto"` takes: public numbers only.

A promise that assumes perfect labels is worth nothing where labels may be wrong, and the methods that make it suffer
from wrong labels most. So auto takes one only if a promise is asked for (`alpha`), and otherwise the robust learner:

                 alpha given                                     no alpha
boxes            the smallest proven size, if there are as       all boxes, where the declared grid is small;
                 many rows; otherwise face by face               otherwise face by face
conjunctions     the same; otherwise the practical greedy        all conjunctions, if that is quick; or the greedy
rules            the same                                        the practical greedy
finite lists     the exponential mechanism                       the same
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.data import Facts
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.pac import all_boxes, all_conjunctions, boxes, conjunctions, finite, greedy, greedy_boxes
from discreet.pac.finite import Predictions
from discreet.pac.methods import Method, Offer, Refused, listed
from discreet.pac.rules import Labels, Literals, Rule, Thresholds, ordered

Methods = list[Method | Refused]

SMALL_GRID = 64
"""So many values of each of at most two columns are a grid on which all boxes may be gone through unasked."""

QUICK = 5.0
"""Seconds that going through all conjunctions may take unasked."""

USEFUL = 0.05
"""The error of which is said how many rows are proven to reach it, where none was asked for."""

PRACTICAL_BOX, PRACTICAL_RULE = greedy_boxes.NAME, "practical"


def box_methods(
    columns: Sequence[str], labels: Labels, facts: Facts, beta: Fraction, funds: Funds, method: str = "auto"
) -> Methods:
    """Every method for boxes; if one is named, perhaps not those that are listed after it."""
    found: Methods = []
    for module in (greedy_boxes, all_boxes, boxes):  # the quick ones first
        found += module.methods(tuple(columns), labels, facts=facts, beta=beta, funds=funds)
        if any(each.name == method for each in found):
            break
    return found


def unasked_boxes(methods: Methods, columns: Sequence[str], facts: Facts) -> Methods:
    """Without going through all boxes, unless the declared grid itself is small."""
    small = len(columns) <= 2 and all(ordered(facts.domain, name).points <= SMALL_GRID for name in columns)
    return [each for each in methods if small or each.name != all_boxes.NAME]


def conjunction_methods(
    literals: Literals, labels: Labels, k: int, facts: Facts, beta: Fraction, funds: Funds, method: str = "auto"
) -> Methods:
    """Every method for conjunctions of at most k literals; if one is named, perhaps not those listed after it."""
    found = conjunctions.methods(literals, labels, k, facts=facts, beta=beta, funds=funds)
    if any(each.name == method for each in found):
        return found
    return [*found, *rule_methods(literals, labels, k, facts, beta, funds)]


def unasked_conjunctions(methods: Methods, literals: Literals, k: int, facts: Facts) -> Methods:
    """Without going through all conjunctions, unless that is quick."""
    quick = all_conjunctions.estimate(literals.variables(facts.domain), k, facts).seconds <= QUICK
    return [each for each in methods if quick or each.name != conjunctions.EXACT]


def rule_methods(
    conditions: Literals | Thresholds, labels: Labels, k: int, facts: Facts, beta: Fraction, funds: Funds
) -> Methods:
    """Every method for rules of at most k conditions."""

    def practical() -> Method:
        made = greedy.practical(conditions, labels, k, facts=facts, funds=funds)
        return Method.unproven(PRACTICAL_RULE, float(beta), lambda: made)

    proven = greedy.methods(conditions, labels, k, facts=facts, beta=beta, funds=funds)
    return [*proven, *listed([(PRACTICAL_RULE, practical)])]


def finite_methods(
    hypotheses: Iterable[Rule] | Predictions, labels: Labels, facts: Facts, beta: Fraction, funds: Funds
) -> Methods:
    """The one method for a finite list."""
    return finite.methods(hypotheses, labels, facts=facts, beta=beta, funds=funds)


def auto(methods: Methods, facts: Facts, alpha: float | None, practical: str) -> Offer:
    """The method to take, by the rule of the module's docstring.

    methods    those that may be taken unasked
    alpha      the error that is wanted as a promise, if one is
    practical  the robust method without a proof
    """
    applying = [each for each in methods if isinstance(each, Method)]
    if not applying:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in methods if isinstance(each, Refused))
        raise ParameterError(f"no method applies. {reasons}")
    proven = min(applying, key=lambda each: each.needed(USEFUL if alpha is None else alpha))
    if alpha is not None and facts.size is not None and proven.needed(alpha) <= facts.size:
        return proven.offer(facts.size)
    robust = [each for each in applying if each.best_of] if alpha is None else []
    robust += [each for each in applying if each.name == practical]
    found = (*robust, proven)[0].offer(facts.size)
    if found.promise.alpha is not None or facts.size is None or found.method != practical:
        return found
    wanted = USEFUL if alpha is None else alpha
    size = f"{proven.needed(wanted):,} rows ({proven.name}) are proven to make the error at most {wanted:.3g}"
    asked = f"none was asked for; with alpha={wanted:g} " if alpha is None else ""
    return replace(found, promise=replace(found.promise, reason=f"{asked}{size}, {_supposing(proven)}"))


def _supposing(method: Method) -> str:
    return f"if {method.assuming}" if method.assuming else f"more than that of the best of {method.best_of}"
