"""Conjunctions: the positive class is where all of at most k literals hold. Lecture 12's second learner."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.core import ParameterError, exact
from discreet.data import Batch, Column
from discreet.estimators import input as reading
from discreet.estimators.base import Task, Terms, refuse, terms_of
from discreet.estimators.input import Examples, bit_examples, predicted_bits
from discreet.estimators.rule_base import LearnedRule, RuleLearner, of_part, wanted
from discreet.method import choose
from discreet.pac import AllConjunctions, Conjunction, Literals, conjunction_methods, sample_size


@dataclass(kw_only=True, repr=False, eq=False)
class ConjunctionClassifier(RuleLearner):
    """Learns a conjunction such as `v2 and not v5 and v6` of booleans under differential privacy.

    Everything that decides privacy is given, never read from the rows:

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    k               how many literals the conjunction that makes the labels has, at most
    classes         the two labels, the last is the positive one; "public" states that the labels in y are no secret
    method          "auto", or a name that `discreet plan conjunction` lists. auto goes through all conjunctions, which
                    is near the best whatever the labels, if that is estimated to take a few seconds; otherwise it takes
                    the practical greedy, which stands wrong labels and promises nothing
    alpha           a share of wrong rows that is wanted as a promise: auto then takes the method with the smallest
                    proven number of rows, if there are as many; most assume labels without error. None: none is wanted
    beta            each promise may fail with this probability
    verbose         say how long it will take before all conjunctions are gone through, on the error stream
    neighbours, size, ledger, allowance  as in LinearRegression; under add-remove `size` is a public number of rows
    score_epsilon   with a ledger: what a call of `score` may cost

    Learned: rule_ (prints as a sentence), classes_, method_, promise_ (what is promised, or why nothing is),
    guarantee_, mechanism_, entry_ (in the ledger), replayed_, n_features_in_, feature_names_in_.

    Features are booleans, or numbers that are 0 or 1. From a table: fit(table, "sick", features=["smoker", "tall"])
    with its ledger; features are Categories of two levels, of which the second means true.
    """

    k: int | None = None
    alpha: Any = None
    verbose: bool = False

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> ConjunctionClassifier:  # noqa: N803
        """Fit to booleans (X, y) in an array or a frame, or to a table and the name of its target column."""
        refuse(refused)
        terms = terms_of(self)
        alpha, beta = wanted(self.alpha), exact.probability(beta=self.beta)
        most, verbose = how_many(self.k), reading.flag(self, "verbose")
        rows = self._examples(terms, X, y, features)
        literals, facts = Literals(rows.columns), rows.facts
        if most > (there := literals.variables(facts.domain)):
            raise ParameterError(f"k must be at most the number of features, {there}; found {most}")
        fit = Task.of(terms, rows.data, about=rows.about)
        methods = conjunction_methods(literals, rows.labels, most, facts, beta, fit.funds)
        offer = of_part(choose(methods, self.method, facts.size, alpha=alpha), rows.data)
        if verbose and isinstance(offer.mechanism, AllConjunctions):
            print(f"going through {offer.mechanism.estimate(facts)}", file=sys.stderr)
        rule = Conjunction(literals, tuple(map(int, fit.learn(self, offer).value)))
        self.rule_ = LearnedRule(rule, rows.features, rule.sentence(rows.facts.domain, rows.names))
        self.from_table_ = reading.is_table(X)
        return self

    _words: ClassVar[str] = "a Category of two levels, the second meaning true"

    @staticmethod
    def _takes(column: Column) -> bool:
        return column.binary

    def _array_examples(self, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
        return bit_examples(self, terms, x, y, reset=reset)

    def _seen(self, x: Any) -> Batch:
        return super()._seen(x) if self.from_table_ else predicted_bits(self, x, self.rule_.domain)

    @staticmethod
    def sample_size(
        alpha: Any,
        beta: Any = 0.05,
        *,
        d: int,
        k: int,
        epsilon: Any,
        delta: Any = 0,
        neighbours: Any = "replace-one",
        method: str = "auto",
    ) -> int:
        """How many rows make the error at most alpha with probability 1 - beta, for k of d booleans."""
        return sample_size("conjunction", alpha, beta, epsilon, delta, neighbours, method, d=d, k=k)


def how_many(k: Any) -> int:
    """The number of conditions, which is never read from the rows."""
    if k is None:
        raise ParameterError("k must be given: how many conditions the rule that makes the labels has, at most")
    return exact.whole(k=k)
