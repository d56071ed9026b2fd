"""What every estimator shares: which budget, one charge, and what is learned about it.

Parameters are stored by the constructor as they are and checked at the top of `fit`, before anything is charged. A fit
is one release: a mechanism is built from public numbers alone, charged, and run once.

    epsilon, delta  what this fit alone may cost; delta = 0 is pure differential privacy
    ledger          where it is charged. Without one the fit has a budget of its own, and `guarantee_` says "this fit
                    alone": it does not know what else was released about the same people
    allowance       the name under which the ledger counts it; None: the whole budget is its limit
    epsilon=None    with a ledger: all that is left there; Share("1/3"): a third of what is left there. With an
                    allowance: of what is left under its name

A fit to a table through a ledger file that was charged and answered before comes back free: `replay`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from discreet.certificate import Certificate, Evidence, certificate
from discreet.core import (
    FAILING,
    Budget,
    Caps,
    Exact,
    Funds,
    Guarantee,
    Neighbours,
    ParameterError,
    Sentence,
    Share,
    Sheet,
    caps_of,
    exact,
    record,
)
from discreet.data import Dataset
from discreet.estimators import model_file, model_words
from discreet.estimators.pipelines import refuse_leaking_steps
from discreet.estimators.replay import Request
from discreet.ledger import Ledger, price_from
from discreet.mechanisms import Mechanism
from discreet.method import Offer
from discreet.release import Released, release

_AT_HOME = ("ledger", "allowance")  # parameters that stay with the rows


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """The parameters that every estimator has; see the module's docstring and `LinearRegression`."""

    epsilon: Any = None
    delta: Any = 0
    neighbours: Any = "replace-one"
    size: int | None = None
    ledger: Any = None
    allowance: Any = None

    KIND: ClassVar[str] = ""
    NEEDS: ClassVar[tuple[str, ...]] = ()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise is drawn from the operating system; there is no seed
        tags.input_tags.sparse = True  # written out in memory
        return tags

    # A fitted model is public, and leaves the house without the ledger.

    def __getstate__(self) -> Any:
        """What is pickled and copied: of a fitted model everything but its ledger, which stays with the rows."""
        state = super().__getstate__()
        if "guarantee_" in state and state.get("ledger") is not None:
            state = {**state, "ledger": None, "exported_": True}
        return state

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the fitted model to a JSON file, with its certificate: `discreet.load` reads it anywhere.

        force  replace an existing file
        """
        model_file.write(path, model_file.ordered(self.model_record(), self.description()), force=force)

    def model_record(self) -> dict[str, Any]:
        """What a file of this model holds: JSON that `discreet.load` reads."""
        check_is_fitted(self, "guarantee_")
        guarantee, names = self.guarantee_, getattr(self, "feature_names_in_", None)
        fields = (guarantee.budget, guarantee.scope, guarantee.entry, guarantee.hash)
        state = {
            "parameters": self.public_parameters(),
            "features": getattr(self, "n_features_in_", None),
            "names": None if names is None else [str(each) for each in names],
            "target": None if (target := getattr(self, "target_", None)) is None else record(target),
            "method": self.method_,
            "promise": model_file.promise(self.promise_),
            "guarantee": model_file.guarantee(guarantee.guarantee, *fields),
            "entry": self.entry_,
            "learned": self._learned_state(),
        }
        return model_file.whole(self.KIND, state, guarantee.certificate())

    def public_parameters(self) -> dict[str, Any]:
        """The parameters as plain values, without those that stay with the rows; None is what is no plain value."""
        given = self.get_params(deep=False).items()
        return {name: model_file.public(value) for name, value in given if name not in _AT_HOME}

    def restore(self, state: model_file.State, certificate: Certificate) -> None:
        """Take over what a file says, in a new estimator; ParameterError if anything is not as it should be."""
        parts = ("parameters", "features", "names", "target", "method", "promise", "guarantee", "entry", "learned")
        model_file.keys(state, *parts)
        given = model_file.keys(state["parameters"], *(set(self.get_params(deep=False)) - set(_AT_HOME)))
        self.set_params(**{name: model_file.parameter_from(each) for name, each in given.items()})
        if (features := model_file.optional(state["features"], lambda each: model_file.count(each, 1))) is not None:
            self.n_features_in_ = features
        if state["names"] is not None:
            names = model_file.many(state["names"], model_file.text)
            if len(names) != features:
                model_file.wrong("feature names", names)
            self.feature_names_in_ = np.array(names, dtype=object)
        self.target_ = model_file.optional(state["target"], model_file.domain_from)
        self.method_, self.promise_ = model_file.text(state["method"]), model_file.promise_from(state["promise"])
        guarantee, budget, scope, entry, entry_hash = model_file.guarantee_from(state["guarantee"])
        self.entry_ = model_file.optional(state["entry"], lambda each: model_file.count(each, 1))
        alone = self.entry_ is None
        self.guarantee_ = FitGuarantee(guarantee, budget, scope, entry, entry_hash, alone, carried=certificate)
        self.replayed_ = False
        self.mechanism_: Mechanism | None = None
        self._restore_learned(state["learned"])
        self.exported_ = True

    def _learned_state(self) -> model_file.State:
        """What predicting takes, as JSON."""
        raise ParameterError(f"a {type(self).__name__} cannot be written to a file")

    def _restore_learned(self, state: object) -> None:
        """Set what `_learned_state` says."""
        raise ParameterError(f"a {type(self).__name__} cannot be read from a file")

    # How it shows itself.

    def sheet(self, lines: model_words.Lines | None = None, width: int | None = None) -> Sheet:
        """The fitted model: what was learned, what is promised about it, and what it cost, or other last lines."""
        check_is_fitted(self, "guarantee_")
        return model_words.sheet(self, lines, width)

    def description(self) -> dict[str, Any]:
        """The fitted model as JSON for people and programs of any language, in the units of its columns."""
        check_is_fitted(self, "guarantee_")
        return model_words.record(self)

    def __str__(self) -> str:
        return self.sheet().text() if hasattr(self, "guarantee_") else repr(self)

    @property
    def _repr_html_(self) -> Any:
        """scikit-learn's own box, with what was learned below it."""
        box = super()._repr_html_
        return box if not hasattr(self, "guarantee_") else lambda: f"{box()}{self.sheet().html()}"


@dataclass(frozen=True, slots=True, repr=False)
class FitGuarantee(Sentence):
    """What a fit promises, and about what: this fit alone, or an entry of a ledger that counts everything."""

    guarantee: Guarantee
    budget: Budget
    scope: str
    entry: int = field(repr=False)
    hash: str = field(repr=False, compare=False)
    alone: bool = field(default=False, repr=False, compare=False)
    evidence: Evidence | None = field(default=None, repr=False, compare=False)
    carried: Certificate | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(got: Released, budget: Budget, terms: Terms, ledger: Ledger, what: str) -> FitGuarantee:
        """What a release promises: `what` alone, or as an entry of the ledger that the terms name."""
        evidence = Evidence.of(ledger, got.entry).without_answer()
        alone = terms.ledger is None
        scope = f"this {what} alone" if alone else f"entry {got.entry} of the ledger of {terms.name!r}"
        return FitGuarantee(got.guarantee, budget, scope, got.entry, got.hash, alone, evidence)

    def certificate(self, ledger: Ledger | None = None) -> Certificate:
        """What this promises, to whom and what not, for people who do not have the ledger: docs/certificates.md.

        ledger  where it was charged, if the certificate shall speak of its last entry; else it is as of the release
        """
        if ledger is not None and not self.alone:
            return certificate(ledger, self)
        if self.carried is not None:
            return self.carried
        assert self.evidence is not None
        return Certificate.of(self.evidence.statement())

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
    """The checked public parameters that say what a fit may cost and where it is charged.

    problem  all parameters that decide what is released
    """

    budget: Budget | None
    share: Share | None
    ledger: Ledger | None
    neighbours: Neighbours
    size: int | None
    allowance: str | None
    problem: Any

    @property
    def name(self) -> str:
        """What the rows are called: the table of the ledger, if there is one."""
        return "rows" if self.ledger is None else self.ledger.identity.name


_WORDS = {
    "epsilon": "epsilon, what the fit may cost: a number > 0, or with a ledger a Share, or None for all that is left",
    "row_norm": "row_norm, the length that rows are scaled down to: d features in [-1, 1] have length at most sqrt(d)",
    "target_bound": "target_bound, a number Y for targets in [-Y, Y] or a pair (low, high), to which they are moved",
    "classes": 'classes, the labels that may occur, say (0, 1), or "public" if the labels in y are no secret',
    "bounds": "bounds, a pair (low, high), or one for each feature; values beyond are moved to the bound",
    "n_components": "n_components, how many directions are kept",
    "k": "k, how many conditions the rule that makes the labels has, at most",
}
"""What each parameter is that is never read from the rows."""


def require_parameters(asked: PrivateEstimator, *, table: bool) -> None:
    """Refuse a fit that lacks several parameters, with all of them in one message.

    One alone is refused where it is read, and so is an allowance, first. A table brings bounds, classes and lengths.
    """
    needed = [name for name in asked.NEEDS if not table or name == "k"]
    missing = ["epsilon"] if asked.epsilon is None and asked.ledger is None else []
    missing += [name for name in needed if getattr(asked, name) is None]
    if len(missing) < 2 or asked.allowance is not None:
        return
    listed = "; ".join(_WORDS[name] for name in missing)
    raise ParameterError(f"{type(asked).__name__} needs {len(missing)} parameters, from public knowledge: {listed}")


_DIVISIONS = (Fraction(0), Fraction(1, 2), FAILING)
"""How much of delta mechanisms take for their failures."""


_ELSEWHERE = {"ledger", "allowance", "epsilon", "delta", "neighbours", "size", "score_epsilon", "verbose"}
"""Parameters that do not say what is released about a table, or that the checked terms say better."""


def terms_of(asked: PrivateEstimator, problem: Any = None) -> Terms:
    """Check the parameters that every estimator has; an error here costs nothing.

    problem  what is asked, of a function that is no estimator
    """
    if getattr(asked, "exported_", False):
        raise ParameterError(
            f"this {type(asked).__name__} is a copy of a fitted model, without its ledger: it predicts, and neither "
            "fits nor charges. Make a new one with ledger=... to fit again"
        )
    ledger, allowance, epsilon = asked.ledger, asked.allowance, asked.epsilon
    refuse_leaking_steps(asked)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError(f"ledger must be a Ledger or None, found a {type(ledger).__name__}")
    if not isinstance(asked.neighbours, (str, Neighbours)):
        raise ParameterError(f'neighbours must be "replace-one" or "add-remove", found {asked.neighbours!r}')
    if allowance is not None:
        if ledger is None:
            raise ParameterError("an allowance is a share of a ledger's budget: give ledger=")
        ledger.remaining(allowance=exact.text(allowance=allowance))  # refuses unknown names
    size = None if asked.size is None else exact.whole(size=asked.size)
    if (score := getattr(asked, "score_epsilon", None)) is not None:
        exact.positive(score_epsilon=score)
    share, budget = epsilon if isinstance(epsilon, Share) else None, None
    if share is None and epsilon is not None:
        budget = Budget(epsilon, asked.delta)
    elif ledger is None and share is not None:
        raise ParameterError("a share is of what a ledger has left: give ledger=, or a number as epsilon")
    elif ledger is None:
        raise ParameterError("epsilon must be given: a number > 0, or with a ledger None for all that is left there")
    elif exact.nonnegative(delta=asked.delta) != 0:
        raise ParameterError("delta goes with a number as epsilon: otherwise the ledger's own budget decides")
    if problem is None:
        given = asked.get_params(deep=False).items()
        problem = [type(asked).__name__, {name: value for name, value in given if name not in _ELSEWHERE}]
    cost = [share, allowance] if budget is None else [budget.epsilon, budget.delta]
    return Terms(budget, share, ledger, Neighbours.of(asked.neighbours), size, allowance, [problem, cost])


@dataclass(frozen=True, slots=True)
class Charge:
    """A release that was charged: what came out, and what is promised about it."""

    released: Released
    guarantee: FitGuarantee
    entry: int | None

    @property
    def value(self) -> Any:
        return self.released.value


@dataclass(frozen=True, slots=True)
class Task:
    """One release about a dataset: what it may cost, where it is charged, and what it asks of its ledger.

    Whether the ledger has as much left as the funds say is decided by the charge: BudgetExceeded if not.

    within   the limits as the charge records them, if they depend on what is left
    request  what is asked of the ledger, if that can be asked again
    """

    terms: Terms
    data: Dataset
    funds: Funds
    within: Any = None
    request: Request | None = None

    @staticmethod
    def of(terms: Terms, data: Dataset, *, about: Any = None) -> Task:
        """The fit of an estimator; its own budget is read as a new ledger would read it.

        about  of a table: what is learned about it beside the parameters, so that the same can be asked again. The
               limits of a stored release are those that it was charged with, so that the same mechanism is found
        """
        request = Request.of(terms.ledger, terms.problem, about, data.facts)
        if terms.ledger is None:
            assert terms.budget is not None
            return Task(terms, data, Funds.of(terms.budget), request=request)
        if terms.budget is not None:
            return Task(terms, data, Funds(*caps_of(terms.budget, terms.ledger.failure_share)), request=request)
        with terms.ledger.store.reading():  # one look for both
            funds = terms.ledger.about(data.facts).funds(share=terms.share, allowance=terms.allowance)
            fresh = request is None or request.fresh()
        stored = None if request is None or fresh else request.stored()
        if stored is not None and stored.within is not None:
            then = price_from(stored.within)
            funds = Funds(funds.order, Caps(then.renyi, then.pure or 0, then.failure))
        limits = {"renyi": funds.caps.renyi, "pure": funds.caps.pure, "failure": funds.caps.failure}
        return Task(terms, data, funds, limits, request)

    def release(self, mechanism: Mechanism, *, memo: str, what: str = "release") -> Charge:
        """Charge and run the mechanism, or get back what this request released before. what: it is called this.

        Without a ledger there is a new one for this mechanism alone, whose delta is divided as the mechanism needs it.
        """
        terms, ledger = self.terms, self.terms.ledger
        if ledger is None:
            assert self.funds.budget is not None
            guarantee = mechanism.guarantee(self.data.facts)
            fitting = (share for share in _DIVISIONS if self.funds.keeping(share).admits(guarantee))
            share = next(fitting, _DIVISIONS[0])  # if none fits the charge says so
            ledger = Ledger.in_memory(self.funds.budget, self.data.identity, failure_share=share)
        how: dict[str, Any] = {"ledger": ledger, "allowance": terms.allowance, "memo": memo}
        if self.request is None:
            got = release(mechanism, self.data, **how)
        else:
            with self.request.taken(mechanism) as request:
                got = release(mechanism, self.data, request=request, within=self.within, **how)
        promised = FitGuarantee.of(got, terms.budget or ledger.budget, terms, ledger, what)
        return Charge(got, promised, None if terms.ledger is None else got.entry)

    def learn(self, estimator: Any, offer: Offer) -> Released:
        """Charge and run what was chosen; what is public about it becomes the estimator's."""
        charge = self.release(offer.mechanism, memo=type(estimator).__name__, what="fit")
        estimator.guarantee_, estimator.entry_ = charge.guarantee, charge.entry
        estimator.replayed_, estimator.mechanism_ = charge.released.replayed, offer.mechanism
        estimator.method_, estimator.promise_ = offer.method, offer.promise
        return charge.released


def release_fixed(
    terms: Terms,
    data: Dataset,
    mechanism: Mechanism,
    *,
    table: bool,
    memo: str,
    alone: Budget | None = None,
    what: str = "release",
) -> Charge:
    """Release a mechanism that is fixed by its parameters.

    table  whether the rows are those of a table, so that the same can be asked again
    alone  its budget, where the terms have no ledger
    """
    budget = alone if terms.ledger is None else terms.ledger.budget
    assert budget is not None
    request = Request.of(terms.ledger, memo, mechanism if table else None, data.facts)
    task = Task(replace(terms, budget=alone), data, Funds.of(budget), request=request)
    return task.release(mechanism, memo=memo, what=what)


REFUSED = {
    "sample_weight": "sample_weight is refused: a person whose row counts more needs more noise for everybody",
    "class_weight": "class_weight is refused: weights by class frequency are read from the labels, an unpaid release",
    "warm_start": "warm_start is refused: every fit starts from public numbers, or its promise is not about it alone",
    "early_stopping": "early_stopping is refused: stopping by looking at the rows is an unpaid release",
}


def refuse(asked: dict[str, Any]) -> None:
    """An error for arguments that other libraries have and that cannot be kept private here."""
    for name, value in asked.items():
        if name not in REFUSED:
            raise TypeError(f"fit() got an unexpected keyword argument {name!r}")
        if value is not None and value is not False:
            raise ParameterError(REFUSED[name])
