"""Learners of rules: what they share, rules for ordinary tables, and the best of a finite list of hypotheses.

A fit is: read the rows and the declarations (whatever is wrong is said here, before the charge), list the methods with
their proven sizes, take one by public numbers alone, charge it, run it, and keep the rule. A rule knows the declared
columns, so it predicts for any rows, and that is no release about them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet import pac, query
from discreet.core import Budget, DiscreetError, Funds, Json, ParameterError, exact, record
from discreet.data import Batch, Dataset, Domain, Mask
from discreet.estimators import input as reading
from discreet.estimators import model_file
from discreet.estimators.base import (
    FitGuarantee,
    PrivateEstimator,
    Task,
    Terms,
    refuse,
    release_fixed,
    require_parameters,
    terms_of,
)
from discreet.estimators.input import Examples
from discreet.mechanisms import Laplace
from discreet.method import USELESS, Methods, Offer, choose
from discreet.query import Combining, alone


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A rule that was learned: prints as a sentence, says of any rows whether it holds.

    domain  the declared columns that it speaks about
    """

    rule: pac.Rule
    domain: Domain
    sentence: str

    def holds(self, batch: Batch) -> Mask:
        return self.rule.mask(batch)

    def __str__(self) -> str:
        return self.sentence


def of_part(offer: Offer, data: Dataset) -> Offer:
    """A promise about wrong rows of a whole table, as one about the part of it that is here.

    Under add-remove, and where somebody may have no row, it holds if there are as many rows as the size, and says so.
    """
    share, promise, bound = reading.share_of(data), offer.promise, offer.promise.bound
    if bound is None:
        return offer
    if bound > USELESS * share:
        promise = replace(promise, bound=None, reason="too few of the table's rows are here")
    elif data.facts.everybody:
        promise = replace(promise, bound=float(bound / share))
    else:
        enough = f"there are {data.facts.size:,} rows or more"
        supposed = f"{promise.condition} and {enough}" if promise.condition else f"if {enough}"
        promise = replace(promise, condition=supposed)
    return replace(offer, promise=promise)


@dataclass(kw_only=True, repr=False, eq=False)
class RuleLearner(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """What the learners of rules share: the fit, and what a fitted one does; the rule is `rule_`.

    A learner says which columns of a table it takes (`_takes`, a key of `input.TAKEN`), reads arrays
    (`_array_examples`), lists the methods for its problem (`_methods`), and makes a rule of what was released
    (`_learned`).
    """

    classes: Any = None
    method: str = "auto"
    beta: Any = 0.05
    score_epsilon: Any = None

    SIZED_BY: ClassVar[dict[str, int | None]] = {}
    """The numbers that `sample_size` takes, each with what it is unless it is given."""

    _takes: ClassVar[str] = "listed"

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> Self:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse(refused)
        require_parameters(self, table=reading.is_table(X))
        terms, alpha = terms_of(self), getattr(self, "alpha", None)
        wanted = None if alpha is None else float(exact.probability(exact.TINY, alpha=alpha))
        beta = exact.probability(exact.TINY, beta=self.beta)
        rows = self._examples(terms, X, y, features)
        fit = Task.of(terms, rows.data, about=rows.about)
        listed = self._methods(rows, beta, fit.funds)
        offer = of_part(choose(listed, exact.text(method=self.method), rows.facts.size, alpha=wanted), rows.data)
        if getattr(self, "verbose", False) and hasattr(offer.mechanism, "estimate"):
            print(f"going through {offer.mechanism.estimate(rows.facts)}", file=sys.stderr)
        self.rule_ = self._learned(fit.learn(self, offer).value, rows)
        self.from_table_ = rows.table
        return self

    def _learned_state(self) -> model_file.State:
        learned = self.rule_
        return {
            "rule": _recordable(learned.rule),
            "domain": record(learned.domain),
            "sentence": learned.sentence,
            "from_table": self.from_table_,
            "classes": model_file.labels(self.classes_),
        }

    def _restore_learned(self, state: object) -> None:
        found = model_file.keys(state, "rule", "domain", "sentence", "from_table", "classes")
        self.classes_, domain = model_file.labels_from(found["classes"]), model_file.domain_from(found["domain"])
        rule = model_file.revived(found["rule"], _RULES, object)
        if type(found["from_table"]) is not bool or len(self.classes_) != 2 or not isinstance(rule, _RULE_CLASSES):
            model_file.wrong("rule", found["rule"])
        self.rule_, self.from_table_ = (
            LearnedRule(rule, domain, model_file.text(found["sentence"])),
            found["from_table"],
        )
        try:  # a rule about columns or codes that are not declared fails on no rows, too
            holds = self.rule_.holds(Batch.empty(domain))
        except (DiscreetError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            model_file.wrong("rule", found["rule"])
        if holds.shape != (0,):
            model_file.wrong("rule", found["rule"])

    def _methods(self, rows: Examples, beta: Fraction, funds: Funds) -> Methods:
        raise NotImplementedError

    def _learned(self, value: Any, rows: Examples) -> LearnedRule:
        raise NotImplementedError

    def _array_examples(self, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
        return reading.number_examples(self, terms, x, y, reset=reset)

    def _examples(self, terms: Terms, x: Any, y: Any, features: Any, *, reset: bool = True) -> Examples:
        """Private labelled rows, of arrays or of a table."""
        if reading.is_table(x):
            return reading.table_examples(self, terms, x, y, features, self._takes, reset=reset)
        reading.refuse_features(features)
        return self._array_examples(terms, x, y, reset=reset)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The class of each row, the last one where the rule holds: any rows, this is no release about them."""
        check_is_fitted(self, "rule_")
        return self.classes_[self.rule_.holds(reading.predicted_batch(self, X, self.rule_.domain)).astype(np.int64)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of right predictions: exact and not private without a ledger; with one a charged, noisy count."""
        if self.ledger is None and not getattr(self, "exported_", False):
            return float(super().score(X, y, sample_weight=sample_weight))
        check_is_fitted(self, "rule_")
        refuse({"sample_weight": sample_weight})
        if self.score_epsilon is None or self.ledger is None:
            raise ParameterError(
                "score looks at private rows and this model has a ledger: set score_epsilon for a charged, noisy count "
                "of right predictions, call certify, or score on public rows with sklearn.metrics"
            )
        epsilon, terms = exact.positive(score_epsilon=self.score_epsilon), terms_of(self)
        relation = self.ledger.identity.neighbours
        if not relation.replace_one or relation.rows > 1:
            raise ParameterError("a charged score needs a public number of rows: replace-one, with one row a person")
        rows = self._judged(terms, X, y)
        assert rows.facts.size is not None
        mechanism = Laplace(pac.Mistakes(self.rule_.rule, rows.labels), 1 / epsilon)
        mistakes = release_fixed(terms, rows.data, mechanism, table=rows.table, memo="score").value
        return float(np.clip(1 - mistakes / float(rows.facts.size * reading.share_of(rows.data)), 0.0, 1.0))

    def certify(self, X: Any, y: Any, *, epsilon: Any, beta: Any = 0.05) -> Certified:  # noqa: N803
        """Pay epsilon for a bound on the rule's mistakes on private rows; charged to the ledger, if there is one."""
        check_is_fitted(self, "rule_")
        terms, budget = terms_of(self), Budget(exact.positive(epsilon=epsilon))
        allowed, rows = exact.probability(exact.TINY, beta=beta), self._judged(terms, X, y)
        mechanism = pac.noisy_mistakes(self.rule_.rule, rows.labels, epsilon=budget.epsilon, facts=rows.facts)
        charge = release_fixed(
            terms, rows.data, mechanism, table=rows.table, memo="certificate", alone=budget, what="certificate"
        )
        got = pac.bound_of(charge.released, mechanism, rows.facts, beta=allowed)
        several = rows.facts.neighbours.rows > 1  # then the number of rows is private
        known = None if several or got.error is None else min(1.0, float(got.error / reading.share_of(rows.data)))
        replayed = charge.released.replayed
        return Certified(got.mistakes, got.rows, known, float(allowed), charge.guarantee, charge.entry, replayed)

    @classmethod
    def sample_size(
        cls,
        alpha: Any,
        beta: Any = 0.05,
        *,
        epsilon: Any,
        delta: Any = 0,
        neighbours: Any = "replace-one",
        method: str = "auto",
        **numbers: int,
    ) -> int:
        """How many rows make the error at most alpha with probability 1 - beta, in a problem of this size.

        numbers  d and bits of a box, d and k of a conjunction, conditions and k of a rule, hypotheses of a finite class
        """
        given = {**cls.SIZED_BY, **numbers}
        if set(given) != set(cls.SIZED_BY) or None in given.values():
            raise ParameterError(
                f"a sample size of a {cls.KIND} needs {', '.join(cls.SIZED_BY)}; found {list(numbers)}"
            )
        return pac.sample_size(cls.KIND, alpha, beta, epsilon, delta, neighbours, method, **given)

    def _judged(self, terms: Terms, x: Any, y: Any) -> Examples:
        """Private rows that the rule is judged by: declared as those of the fit were."""
        if reading.is_table(x) != self.from_table_:
            kind = "a table is judged on a table" if self.from_table_ else "arrays is judged on arrays"
            raise ParameterError(f"a model that was fitted from {kind}")
        features = list(self.feature_names_in_) if self.from_table_ else None
        rows = self._examples(terms, x, y, features, reset=False)
        if rows.features != self.rule_.domain:
            raise ParameterError("these columns are not declared as those that the model was fitted to")
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(frozen=True, slots=True)
class Certified:
    """A paid bound on the mistakes of a rule on private rows, whatever the rows are.

    mistakes  the noisy number of mistakes, which may be below zero
    rows      no more rows are labelled wrong, with probability 1 - beta
    error     the same as a share of the rows; None if their number is private
    """

    mistakes: int
    rows: int
    error: float | None
    beta: float
    guarantee: FitGuarantee
    entry: int | None
    replayed: bool = False

    def __str__(self) -> str:
        return f"{pac.bound_in_words(self.rows, self.error, self.beta)}. Cost: {self.guarantee}"


_RULE_CLASSES = (pac.BoxRule, pac.Conjunction, pac.Where)
_RULES: dict[str, type] = {
    each.NAME: each
    for each in (
        *_RULE_CLASSES,
        *(pac.Literals, pac.Thresholds),
        *(query.Among, query.And, query.Between, query.Equals, query.Missing, query.Not, query.Or),
    )
}
"""The classes of which a file may make a rule."""


def _recordable(rule: pac.Rule) -> Json:
    if not isinstance(rule, _RULE_CLASSES):
        raise ParameterError(
            f"a rule that is a {type(rule).__name__} holds code, which no file of a model does: pickle the model"
        )
    return record(rule)


def how_many(k: Any, there: int, what: str) -> int:
    """The number of conditions, which is never read from the rows; there are so many of them."""
    if k is None:
        raise ParameterError("k must be given: how many conditions the rule that makes the labels has, at most")
    if (most := exact.whole(k=k)) > there:
        raise ParameterError(f"k must be at most the number of {what}, {there}; found {most}")
    return most


@dataclass(kw_only=True, repr=False, eq=False)
class RuleClassifier(RuleLearner):
    """Learns a rule such as `30 <= age <= 60 and sex = F` under differential privacy.

    A rule is a conjunction of conditions x >= a, x <= b on numbers and x = level, x != level on categories.

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    k               how many conditions the rule that makes the labels has, at most
    cuts            how many public values of each number conditions may speak about, evenly spaced
    bounds, step    arrays: as in BoxClassifier
    classes         the two labels, the last is the positive one; "public" states that the labels in y are no secret
    method          "auto", or a name that `discreet plan rule` lists. auto takes the practical greedy: k conditions,
                    and it stands wrong labels, but promises nothing
    alpha           a share of wrong rows that is wanted as a promise, for labels that k conditions make without error:
                    auto then takes the method with the smallest proven number of rows, if there are as many (it may
                    use more than k conditions). None: no promise is wanted
    beta            each promise may fail with this probability
    neighbours, size, ledger, allowance  as in LinearRegression; under add-remove `size` is a public number of rows
    score_epsilon   with a ledger: what a call of `score` may cost

    Learned: rule_ (prints as a sentence), classes_, method_, promise_ (what is promised, or why nothing is),
    guarantee_, mechanism_, entry_ (in the ledger), replayed_, n_features_in_, feature_names_in_.

    From a table: fit(table, "sick", features=["age", "sex"]) with its ledger; bounds and levels are its declaration.

    `sample_size` says before how many rows a promise takes, for k of this number of conditions.
    """

    KIND: ClassVar[str] = "rule"
    NEEDS: ClassVar[tuple[str, ...]] = ("k", "bounds", "classes")
    SIZED_BY: ClassVar[dict[str, int | None]] = {"conditions": None, "k": None}

    k: int | None = None
    cuts: int = pac.CUTS
    bounds: Any = None
    step: Any = None
    alpha: Any = None

    def _conditions(self, rows: Examples) -> pac.Thresholds:
        return pac.Thresholds(rows.columns, exact.whole(minimum=2, cuts=self.cuts))

    def _methods(self, rows: Examples, beta: Fraction, funds: Funds) -> Methods:
        conditions = self._conditions(rows)
        most = how_many(self.k, conditions.size(rows.facts.domain), "conditions")
        return pac.rule_methods(conditions, rows.labels, most, rows.facts, beta, funds)

    def _learned(self, value: Any, rows: Examples) -> LearnedRule:
        rule = pac.Conjunction(self._conditions(rows), tuple(map(int, value)))
        return LearnedRule(rule, rows.features, sentence(rule, rows.facts.domain))


@dataclass(kw_only=True, repr=False, eq=False)
class FiniteClassClassifier(RuleLearner):
    """Chooses one of finitely many hypotheses under differential privacy, by the exponential mechanism.

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    hypotheses      "columns": X is the matrix of their predictions, a column of booleans for each, true for the
                    positive class; or a list of functions from a row to a label, asked for one row at a time; or, for a
                    table, also a list of predicates and rules, true for the positive class
    classes         the two labels, the last is the positive one; "public" states that the labels in y are no secret
    beta            each promise may fail with this probability
    neighbours, size, ledger, allowance  as in LinearRegression; under add-remove `size` is a public number of rows
    score_epsilon   with a ledger: what a call of `score` may cost

    A function gets the features of one row, as an array, or of a table as a dict of its columns' values. Where it fails
    it predicts the negative class. It must be public, and must not remember earlier rows.

    Learned: index_ (which hypothesis), rule_ (prints as its name), classes_, method_, promise_ (what is promised if
    one hypothesis is right about every row, or why nothing is), guarantee_, mechanism_, entry_ (in the ledger),
    replayed_, n_features_in_, feature_names_in_.

    `sample_size` says before how many rows a promise takes, for this number of hypotheses.
    """

    KIND: ClassVar[str] = "finite"
    NEEDS: ClassVar[tuple[str, ...]] = ("classes",)
    SIZED_BY: ClassVar[dict[str, int | None]] = {"hypotheses": None}

    hypotheses: Any = None

    def _methods(self, rows: Examples, beta: Fraction, funds: Funds) -> Methods:
        rules = self._rules(rows) if rows.table else pac.Predictions("x")
        return pac.finite_methods(rules, rows.labels, facts=rows.facts, beta=beta, funds=funds)

    def _learned(self, value: Any, rows: Examples) -> LearnedRule:
        listed, place = hypotheses_of(self.hypotheses), int(value)
        self.index_ = place
        chosen = self._rules(rows)[place] if rows.table else pac.Conjunction(pac.Literals("x"), (2 * place,))
        if listed is None:
            words = reading.feature_names(self, self.n_features_in_)[place]
        else:
            words = _name(listed[place], place) if callable(listed[place]) else chosen.sentence(rows.facts.domain)
        return LearnedRule(chosen, rows.features, words)

    def _rules(self, rows: Examples) -> tuple[pac.Rule, ...]:
        """The hypotheses about a table's columns."""
        rules: list[pac.Rule] = []
        for place, each in enumerate(hypotheses_of(self.hypotheses) or ()):
            if isinstance(each, Combining):
                if beyond := [name for name in each.columns if name not in rows.columns]:
                    raise ParameterError(
                        f"hypothesis {place} speaks about {beyond[0]!r}, which is not among the features"
                    )
                rules.append(pac.Where(each))  # type: ignore[arg-type]
            elif callable(each):
                rules.append(pac.FunctionRule(_name(each, place), _OnFeatures(each, rows.columns, self.classes_[-1])))
            else:
                rules.append(each)  # a rule, or refused by the learner
        return tuple(rules)

    def _examples(self, terms: Terms, x: Any, y: Any, features: Any, *, reset: bool = True) -> Examples:
        if reading.is_table(x) and hypotheses_of(self.hypotheses) is None:
            raise ParameterError('hypotheses="columns" is for arrays of predictions, found a table')
        return super()._examples(terms, x, y, features, reset=reset)

    def _array_examples(self, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
        listed = hypotheses_of(self.hypotheses)
        for each in listed or ():
            if not callable(each):
                raise ParameterError(
                    f"on arrays a hypothesis is a function from a row to a label, found a {type(each).__name__}; "
                    "predicates and rules speak about the declared columns of a table"
                )
        bits = None if listed is None else lambda rows: self._asked(listed, rows)
        return reading.bit_examples(self, terms, x, y, reset=reset, bits=bits)

    def _asked(self, functions: list[Callable[[Any], Any]], rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What every function says of every row, one row at a time."""
        positive = self.classes_[-1]
        said = [[_says(function, row.copy(), positive) for function in functions] for row in rows]
        return np.array(said, dtype=np.bool_).reshape(len(rows), len(functions))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The class of each row: any rows, this is no release about them."""
        check_is_fitted(self, "rule_")
        if self.from_table_ or (listed := hypotheses_of(self.hypotheses)) is None:
            return super().predict(X)
        rows = reading.predicted_floats(self, X)
        return self.classes_[self._asked([listed[self.index_]], rows)[:, 0].astype(np.int64)]


def hypotheses_of(given: Any) -> list[Any] | None:
    """The listed hypotheses; None for the columns of X."""
    if isinstance(given, str) and given == "columns":
        return None
    if not isinstance(given, (list, tuple)) or not given:
        raise ParameterError(
            'hypotheses must be "columns" (X holds their predictions) or a list of functions, predicates or rules, '
            f"found {given!r}"
        )
    return list(given)


@dataclass(frozen=True, slots=True)
class _OnFeatures:
    """A function from a row's features to a label, as a condition on a row of a table, which holds the target too."""

    function: Callable[[Any], Any]
    columns: tuple[str, ...]
    positive: Any

    def __call__(self, row: dict[str, Any]) -> bool:
        return _says(self.function, {name: row[name] for name in self.columns}, self.positive)


def _name(function: Any, place: int) -> str:
    """A function's own name, if it has one that tells it from the others."""
    name = getattr(function, "__name__", "")
    return name if name and name != "<lambda>" else f"hypothesis {place}"


def _says(function: Callable[[Any], Any], row: Any, positive: Any) -> bool:
    """Whether a function calls a row positive; where it fails it does not."""
    found = alone(function, row, None)
    return bool(isinstance(found, (str, int, float, bool, np.generic)) and found == positive)


def sentence(rule: pac.Conjunction, domain: Domain) -> str:
    """A conjunction of conditions on columns in words, those on one column joined: `30 <= age <= 60 and sex = F`."""
    asked: dict[str, list[tuple[int, int, bool]]] = {name: [] for name in rule.conditions.columns}
    for number in rule.numbers:
        name, first, last, inside = rule.conditions.meaning(domain, number)
        asked[name].append((first, last, inside))
    parts = [_about(name, domain, conditions) for name, conditions in asked.items() if conditions]
    if rule.never or None in parts:
        return "never"
    return " and ".join(part for part in parts if part is not None) or "always"


def _about(name: str, domain: Domain, asked: list[tuple[int, int, bool]]) -> str | None:
    """The conditions on one column as one phrase, levels by the shorter list; None if nothing satisfies them."""
    column = domain.column(name)
    if not column.categorical:
        low, high = max(first for first, _, _ in asked), min(last for _, last, _ in asked)
        return pac.interval_in_words(name, pac.ordered(domain, name), low, high) if low <= high else None
    kept = [code for code in range(column.size) if all((code == first) == inside for first, _, inside in asked)]
    if len(kept) == 1:
        return f"{name} = {column.label(kept[0])}"
    others = [f"{name} != {column.label(code)}" for code in range(column.size) if code not in kept]
    return " and ".join(others) if kept else None
