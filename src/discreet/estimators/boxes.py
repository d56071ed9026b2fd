"""Boxes: the positive class is where every number lies between two bounds. Lecture 12 in d dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from discreet import exact
from discreet.data import Column, Domain, Number
from discreet.estimators import input as reading
from discreet.estimators.base import Task, Terms, refuse, terms_of
from discreet.estimators.input import Examples, number_examples
from discreet.estimators.rule_base import LearnedRule, RuleLearner, of_part, wanted
from discreet.method import choose
from discreet.pac import BoxRule, box_methods, sample_size


@dataclass(kw_only=True, repr=False, eq=False)
class BoxClassifier(RuleLearner):
    """Learns a box a_1 <= x_1 <= b_1 and ... and a_d <= x_d <= b_d under differential privacy.

    Everything that decides privacy is given, never read from the rows:

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    bounds          one pair (low, high) for all features or a list of pairs; values beyond are moved to the bound
    step            values are rounded down to steps of this from low, one for all features or a list; (high - low) /
                    100,000 unless it is given
    classes         the two labels, the last is the positive one; "public" states that the labels in y are no secret
    method          "auto", or a name that `discreet plan box` lists. auto goes face by face, which is accurate where
                    negatives lie around the box and stands wrong labels, and promises nothing (on a small declared
                    grid of one or two features it goes through all boxes, and promises to be near the best)
    alpha           a share of wrong rows that is wanted as a promise, for labels that some box makes without error:
                    auto then takes the method with the smallest proven number of rows, if there are as many. None: no
                    promise is wanted. Where labels may be wrong, such a promise says nothing, and its methods do worse
    beta            each promise may fail with this probability
    neighbours, size, ledger, allowance  as in LinearRegression; under add-remove `size` is a public number of rows
    score_epsilon   with a ledger: what a call of `score` may cost

    Learned: box_ (prints as a sentence), bounds_ (low and high of each feature), classes_, method_, promise_ (what
    is promised, or why nothing is), guarantee_, mechanism_, entry_ (in the ledger), replayed_, n_features_in_,
    feature_names_in_.

    From a table: fit(table, "sick", features=["age", "income"]) with its ledger; bounds and steps are its declaration,
    and all declared Numbers are features unless some are named.

    `sample_size` says before how many rows a promise takes, `certify` pays for a count of the mistakes afterwards.
    """

    bounds: Any = None
    step: Any = None
    alpha: Any = None

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> BoxClassifier:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse(refused)
        terms = terms_of(self)
        alpha, beta = wanted(self.alpha), exact.probability(beta=self.beta)
        rows = self._examples(terms, X, y, features)
        fit = Task.of(terms, rows.data, about=rows.about)
        methods = box_methods(rows.columns, rows.labels, rows.facts, beta, fit.funds)
        offer = of_part(choose(methods, self.method, rows.facts.size, alpha=alpha), rows.data)
        rule = BoxRule(rows.columns, *(tuple(map(int, codes)) for codes in fit.learn(self, offer).value))
        self.rule_ = LearnedRule(rule, rows.features, rule.sentence(rows.facts.domain))
        self.from_table_ = reading.is_table(X)
        return self

    _words: ClassVar[str] = "a Number"

    @staticmethod
    def _takes(column: Column) -> bool:
        return column.bounded

    def _array_examples(self, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
        return number_examples(self, terms, x, y, reset=reset)

    @property
    def box_(self) -> LearnedRule:
        """The learned box."""
        check_is_fitted(self, "rule_")
        return self.rule_

    @property
    def bounds_(self) -> dict[str, tuple[float, float]]:
        """Low and high of every feature, in its own values; empty if the box is."""
        box, domain = self.box_.rule, self.box_.domain
        assert isinstance(box, BoxRule)
        if box.is_empty:
            return {}
        sides = zip(box.columns, box.low, box.high, strict=True)
        return {name: (_value(domain, name, low), _value(domain, name, high)) for name, low, high in sides}

    @staticmethod
    def sample_size(
        alpha: Any,
        beta: Any = 0.05,
        *,
        d: int,
        bits: int = 17,
        epsilon: Any,
        delta: Any = 0,
        neighbours: Any = "replace-one",
        method: str = "auto",
    ) -> int:
        """How many rows make the error at most alpha with probability 1 - beta, in d features of 2^bits values."""
        return sample_size("box", alpha, beta, epsilon, delta, neighbours, method, d=d, bits=bits)


def _value(domain: Domain, name: str, code: int) -> float:
    column = domain.column(name)
    assert isinstance(column, Number)
    return float(column.value(code))
