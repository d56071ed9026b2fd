"""Rules for ordinary tables, and the best of a finite list of hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from discreet.core import ParameterError, exact
from discreet.data import Batch, Category, Column, Domain, Number
from discreet.estimators import input as reading
from discreet.estimators.base import Task, Terms, refuse, terms_of
from discreet.estimators.conjunctions import how_many
from discreet.estimators.input import Examples, bit_examples, feature_names, number_examples, predicted_bits
from discreet.estimators.rule_base import LearnedRule, RuleLearner, of_part, wanted
from discreet.method import choose
from discreet.pac import (
    CUTS,
    Conjunction,
    FunctionRule,
    Literals,
    Predictions,
    Rule,
    Thresholds,
    Where,
    finite,
    interval_in_words,
    rule_methods,
    sample_size,
)
from discreet.query import Combining, alone


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
    """

    k: int | None = None
    cuts: int = CUTS
    bounds: Any = None
    step: Any = None
    alpha: Any = None

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> RuleClassifier:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse(refused)
        terms = terms_of(self)
        alpha, beta = wanted(self.alpha), exact.probability(beta=self.beta)
        most, cuts = how_many(self.k), exact.whole(minimum=2, cuts=self.cuts)
        rows = self._examples(terms, X, y, features)
        conditions = Thresholds(rows.columns, cuts)
        if most > (there := conditions.size(rows.facts.domain)):
            raise ParameterError(f"k must be at most the number of conditions, {there}; found {most}")
        fit = Task.of(terms, rows.data, about=rows.about)
        methods = rule_methods(conditions, rows.labels, most, rows.facts, beta, fit.funds)
        offer = of_part(choose(methods, self.method, rows.facts.size, alpha=alpha), rows.data)
        rule = Conjunction(conditions, tuple(map(int, fit.learn(self, offer).value)))
        self.rule_ = LearnedRule(rule, rows.features, sentence(rule, rows.facts.domain))
        self.from_table_ = reading.is_table(X)
        return self

    _words: ClassVar[str] = "a Number or a Category"

    @staticmethod
    def _takes(column: Column) -> bool:
        return column.listed

    def _array_examples(self, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
        return number_examples(self, terms, x, y, reset=reset)

    @staticmethod
    def sample_size(
        alpha: Any,
        beta: Any = 0.05,
        *,
        conditions: int,
        k: int,
        epsilon: Any,
        delta: Any = 0,
        neighbours: Any = "replace-one",
        method: str = "auto",
    ) -> int:
        """How many rows make the error at most alpha with probability 1 - beta, for k of so many conditions."""
        return sample_size("rule", alpha, beta, epsilon, delta, neighbours, method, conditions=conditions, k=k)


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
    """

    hypotheses: Any = None

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> FiniteClassClassifier:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse(refused)
        terms, beta = terms_of(self), exact.probability(beta=self.beta)
        listed = hypotheses_of(self.hypotheses)
        rows = self._examples(terms, X, y, features)
        rules = _rules(listed or [], rows, self.classes_) if reading.is_table(X) else Predictions("x")
        fit = Task.of(terms, rows.data, about=rows.about)
        methods = finite.methods(rules, rows.labels, facts=rows.facts, beta=beta, funds=fit.funds)
        offer = of_part(choose(methods, self.method, rows.facts.size), rows.data)
        self.index_ = int(fit.learn(self, offer).value)
        chosen = (
            Conjunction(Literals("x"), (2 * self.index_,)) if isinstance(rules, Predictions) else rules[self.index_]
        )
        self.rule_ = LearnedRule(chosen, rows.features, self._called(listed, chosen, rows))
        self.from_table_ = reading.is_table(X)
        return self

    def _called(self, listed: list[Any] | None, chosen: Any, rows: Examples) -> str:
        """What the chosen hypothesis is called: a column's name, a function's, or the sentence of a rule."""
        if listed is None:
            return feature_names(self, self.n_features_in_)[self.index_]
        function = callable(listed[self.index_])
        return _name(listed[self.index_], self.index_) if function else str(chosen.sentence(rows.facts.domain))

    _words: ClassVar[str] = "a Number or a Category"

    @staticmethod
    def _takes(column: Column) -> bool:
        return column.listed

    def _examples(self, terms: Terms, x: Any, y: Any, features: Any, *, reset: bool = True) -> Examples:
        if reading.is_table(x) and hypotheses_of(self.hypotheses) is None:
            raise ParameterError('hypotheses="columns" is for arrays of predictions, found a table')
        return super()._examples(terms, x, y, features, reset=reset)

    def _array_examples(self, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
        listed = hypotheses_of(self.hypotheses)
        if listed is None:
            return bit_examples(self, terms, x, y, reset=reset)
        functions = _functions(listed)
        return bit_examples(self, terms, x, y, reset=reset, bits=lambda rows: self._asked(functions, rows))

    def _asked(self, functions: list[Callable[[Any], Any]], rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """What every function says of every row, one row at a time."""
        positive = self.classes_[-1]
        found = [[_says(function, row.copy(), positive) for function in functions] for row in rows]
        return np.array(found, dtype=np.bool_).reshape(len(rows), len(functions))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The class of each row: any rows, this is no release about them."""
        check_is_fitted(self, "rule_")
        listed = hypotheses_of(self.hypotheses)
        if self.from_table_ or listed is None:
            return super().predict(X)
        rows = reading.predicted_floats(self, X)
        return self.classes_[self._asked([_functions(listed)[self.index_]], rows)[:, 0].astype(np.int64)]

    def _seen(self, x: Any) -> Batch:
        return super()._seen(x) if self.from_table_ else predicted_bits(self, x, self.rule_.domain)

    @staticmethod
    def sample_size(
        alpha: Any,
        beta: Any = 0.05,
        *,
        hypotheses: int,
        epsilon: Any,
        delta: Any = 0,
        neighbours: Any = "replace-one",
    ) -> int:
        """How many rows make the error at most alpha with probability 1 - beta, for so many hypotheses."""
        return sample_size("finite", alpha, beta, epsilon, delta, neighbours, "auto", hypotheses=hypotheses)


def hypotheses_of(given: Any) -> list[Any] | None:
    """The listed hypotheses; None for the columns of X."""
    if isinstance(given, str) and given == "columns":
        return None
    found = list(given) if isinstance(given, (list, tuple)) else []
    if not found:
        raise ParameterError(
            'hypotheses must be "columns" (X holds their predictions) or a list of functions, predicates or rules, '
            f"found {given!r}"
        )
    return found


def _functions(listed: list[Any]) -> list[Callable[[Any], Any]]:
    for each in listed:
        if not callable(each):
            raise ParameterError(
                f"on arrays a hypothesis is a function from a row to a label, found a {type(each).__name__}; "
                "predicates and rules speak about the declared columns of a table"
            )
    return listed


def _rules(listed: list[Any], rows: Examples, classes: Any) -> tuple[Rule, ...]:
    """Hypotheses about a table's columns."""
    return tuple(_rule(each, place, rows, classes) for place, each in enumerate(listed))


def _rule(each: Any, place: int, rows: Examples, classes: Any) -> Rule:
    if isinstance(each, Combining):
        beyond = [name for name in each.columns if name not in rows.columns]
        if beyond:
            raise ParameterError(f"hypothesis {place} speaks about {beyond[0]!r}, which is not among the features")
        return Where(each)  # type: ignore[arg-type]
    if not callable(each):
        return each  # type: ignore[no-any-return]  # a rule, or refused by the learner
    return FunctionRule(_name(each, place), _OnFeatures(each, rows.columns, classes[-1]))


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


def sentence(rule: Conjunction, domain: Domain) -> str:
    """A conjunction of conditions on columns in words, those on one column joined: `30 <= age <= 60 and sex = F`."""
    conditions = rule.conditions
    assert isinstance(conditions, Thresholds)
    asked: dict[str, list[tuple[int, int, bool]]] = {}
    for number in rule.numbers:
        name, first, last, inside = conditions.meaning(domain, number)
        asked.setdefault(name, []).append((first, last, inside))
    parts = [_about(name, domain, asked[name]) for name in conditions.columns if name in asked]
    if rule.never or None in parts:
        return "never"
    return " and ".join(part for part in parts if part is not None) or "always"


def _about(name: str, domain: Domain, asked: list[tuple[int, int, bool]]) -> str | None:
    """The conditions on one column as one phrase; None if nothing satisfies them."""
    column = domain.column(name)
    if isinstance(column, Category):
        kept = [code for code in range(column.size) if all((code == first) == inside for first, _, inside in asked)]
        return _levels(name, column, kept)
    assert isinstance(column, Number)
    low, high = max(first for first, _, _ in asked), min(last for _, last, _ in asked)
    return interval_in_words(name, column, low, high) if low <= high else None


def _levels(name: str, column: Category, kept: list[int]) -> str | None:
    """Which levels are left, said by the shorter list."""
    if not kept:
        return None
    if len(kept) == 1:
        return f"{name} = {column.label(kept[0])}"
    return " and ".join(f"{name} != {column.label(code)}" for code in range(column.size) if code not in kept)
