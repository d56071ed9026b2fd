"""Every method for a problem side by side, and which of them `method="auto"` takes: public numbers only.

boxes          the smallest proven size for the error that is accepted as a promise; if it is more than there are
               rows, face by face. Going through all boxes counts only where the declared grid itself is small.
conjunctions   the smallest proven size; going through all conjunctions counts only if that is quick.
rules          the smallest proven size; if it is more than there are rows, the practical greedy.
finite lists   the exponential mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.data import Facts
from discreet.errors import ParameterError
from discreet.pac import allboxes, boxes, conjunctions, enumeration, faces, finite, greedy
from discreet.pac.columns import ordered, points
from discreet.pac.conditions import Literals, Thresholds
from discreet.pac.finite import Predictions
from discreet.pac.labels import Labels, Rule
from discreet.pac.methods import USELESS, Method, Offer, Refused, Spend, listed

Methods = list[Method | Refused]

SMALL_GRID = 64
"""So many values of each of at most two columns are a grid on which all boxes may be gone through unasked."""

QUICK = 20.0
"""Seconds that going through all conjunctions may take unasked."""

PRACTICAL_BOX, PRACTICAL_RULE = faces.NAME, "practical"

UNPROVEN = 2**62
"""The size that a method without a theorem needs."""


def box_methods(
    columns: Sequence[str], labels: Labels, facts: Facts, beta: Fraction, spend: Spend, method: str = "auto"
) -> Methods:
    """Every method for boxes; if one is named, perhaps not those that are listed after it."""
    found: Methods = []
    for module in (faces, allboxes, boxes):  # the quick ones first
        found += module.methods(tuple(columns), labels, facts=facts, beta=beta, spend=spend)
        if any(each.name == method for each in found):
            break
    return found


def unasked_boxes(methods: Methods, columns: Sequence[str], facts: Facts) -> Methods:
    """Without going through all boxes, unless the declared grid itself is small."""
    small = len(columns) <= 2 and all(points(ordered(facts.domain, name)) <= SMALL_GRID for name in columns)
    return [each for each in methods if small or each.name != allboxes.NAME]


def conjunction_methods(
    literals: Literals, labels: Labels, k: int, facts: Facts, beta: Fraction, spend: Spend, method: str = "auto"
) -> Methods:
    """Every method for conjunctions of at most k literals; if one is named, perhaps not those listed after it."""
    found = conjunctions.methods(literals, labels, k, facts=facts, beta=beta, spend=spend)
    if any(each.name == method for each in found):
        return found
    return [*found, *rule_methods(literals, labels, k, facts, beta, spend)]


def unasked_conjunctions(methods: Methods, literals: Literals, k: int, facts: Facts) -> Methods:
    """Without going through all conjunctions, unless that is quick."""
    quick = enumeration.estimate(literals.variables(facts.domain), k, facts).seconds <= QUICK
    return [each for each in methods if quick or each.name != conjunctions.EXACT]


def rule_methods(
    conditions: Literals | Thresholds, labels: Labels, k: int, facts: Facts, beta: Fraction, spend: Spend
) -> Methods:
    """Every method for rules of at most k conditions."""

    def practical() -> Method:
        made = greedy.practical(conditions, labels, k, facts=facts, spend=spend)
        return Method(PRACTICAL_RULE, "none", "", float(beta), lambda alpha: UNPROVEN, lambda alpha: made)

    proven = greedy.methods(conditions, labels, k, facts=facts, beta=beta, spend=spend)
    return [*proven, *listed([(PRACTICAL_RULE, practical)])]


def finite_methods(
    hypotheses: Iterable[Rule] | Predictions, labels: Labels, facts: Facts, beta: Fraction, spend: Spend
) -> Methods:
    """The one method for a finite list."""
    return finite.methods(hypotheses, labels, facts=facts, beta=beta, spend=spend)


def auto(methods: Methods, facts: Facts, alpha: float, practical: str) -> Offer:
    """The smallest proven size if there are as many rows, otherwise the practical method, otherwise any.

    methods    those that may be taken unasked
    alpha      the error that is accepted as a promise
    practical  the method that is taken without one
    """
    applying = [each for each in methods if isinstance(each, Method)]
    if not applying:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in methods if isinstance(each, Refused))
        raise ParameterError(f"no method applies. {reasons}")
    proven = min(applying, key=lambda each: each.needed(alpha))
    if facts.size is not None and proven.needed(alpha) <= facts.size:
        return proven.offer(facts.size)
    found = offered(next((each for each in applying if each.name == practical), proven), facts)
    if found.promise.alpha is not None or facts.size is None:
        return found
    reason = f"the smallest proven size for an error of {alpha:.3g} is {proven.needed(alpha):,} rows ({proven.name})"
    return replace(found, promise=replace(found.promise, reason=reason))


def offered(method: Method, facts: Facts) -> Offer:
    """The mechanism of a method for this size, and what it promises."""
    found = method.offer(facts.size)
    if method.needed(USELESS) < UNPROVEN:
        return found
    return replace(
        found, promise=replace(found.promise, reason=f"nothing is proved about the error of {method.name!r}")
    )
