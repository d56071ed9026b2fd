"""What every estimator shares: whose rows, which budget, one charge, and what is learned about it.

Parameters are stored by the constructor as they are and checked at the top of `fit`, before anything is charged. A fit
is one release: a mechanism is built from public numbers alone, charged, and run once.

    epsilon, delta  what this fit alone may cost; delta = 0 is pure differential privacy
    ledger          where it is charged. Without one the fit has a budget of its own, and `guarantee_` says "this fit
                    alone": it does not know what else was released about the same people
    epsilon=None    with a ledger: all that is left there
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet import exact
from discreet.data import Dataset, Facts
from discreet.erm.promise import Promise
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Budget, Guarantee, Neighbours
from discreet.ledger import Ledger
from discreet.mechanism import Mechanism
from discreet.release import Released, release

Admits = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class FitGuarantee:
    """What a fit promises, and about what: this fit alone, or an entry of a ledger that counts everything."""

    guarantee: Guarantee
    budget: Budget
    scope: str

    @property
    def neighbours(self) -> Neighbours:
        return self.guarantee.neighbours

    def epsilon(self, delta: Exact) -> float:
        """The least epsilon that is proved for this delta."""
        return self.guarantee.epsilon(delta)

    def delta(self, epsilon: Exact) -> float:
        """The least delta that is proved for this epsilon."""
        return self.guarantee.delta(epsilon)

    def __str__(self) -> str:
        proved = self.epsilon(self.budget.delta)
        return f"(epsilon {proved:.6g}, delta {exact.shown(self.budget.delta)}), {self.neighbours}: {self.scope}"


@dataclass(frozen=True, slots=True)
class Terms:
    """The checked public parameters that say what a fit may cost and where it is charged."""

    budget: Budget | None
    ledger: Ledger | None
    neighbours: Neighbours
    size: int | None

    @property
    def name(self) -> str:
        """What the rows are called: the table of the ledger, if there is one."""
        return "rows" if self.ledger is None else self.ledger.identity.name


def terms_of(estimator: Any) -> Terms:
    """Check the parameters that every estimator has; an error here costs nothing."""
    ledger = estimator.ledger
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError(f"ledger must be a Ledger or None, found a {type(ledger).__name__}")
    if estimator.epsilon is None and ledger is None:
        raise ParameterError("epsilon must be given: a number > 0, or None with a ledger for all that is left there")
    if estimator.epsilon is None and exact.nonnegative(delta=estimator.delta) != 0:
        raise ParameterError("delta goes with epsilon: with epsilon=None the ledger's own budget decides")
    budget = None if estimator.epsilon is None else Budget(estimator.epsilon, estimator.delta)
    size = None if estimator.size is None else exact.whole(size=estimator.size)
    if not isinstance(estimator.neighbours, (str, Neighbours)):
        raise ParameterError(f'neighbours must be "replace-one" or "add-remove", found {estimator.neighbours!r}')
    return Terms(budget, ledger, Neighbours.of(estimator.neighbours), size)


def admission(terms: Terms, facts: Facts) -> Admits:
    """The test "this mechanism is within what the fit may cost": by public numbers, in the currency of a ledger.

    A budget of its own is that of a new ledger with the same share for failures; whether the real ledger has as much
    left is decided by its charge, which raises BudgetExceeded if not.
    """
    if terms.budget is None:
        assert terms.ledger is not None
        ledger = terms.ledger
    else:
        ledger = alone(terms, facts)
    return lambda mechanism: ledger.admits(mechanism, facts=facts)


def alone(terms: Terms, facts: Facts) -> Ledger:
    """A ledger in memory for this fit and nothing else; no part of delta is kept for failures unless a ledger does."""
    assert terms.budget is not None
    share = 0 if terms.ledger is None else next(terms.ledger.entries())["failure_share"]
    return Ledger.in_memory(terms.budget, _Declared(facts, terms.name).identity, failure_share=share)
