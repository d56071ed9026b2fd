"""Conjunctions: the positive class is where all of at most k literals hold. Lecture 12's second learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.estimators.input import bit_examples, flag
from discreet.estimators.rules import LearnedRule, RuleLearner, how_many
from discreet.pac import Conjunction, Literals, conjunction_methods


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

    `sample_size` says before how many rows a promise takes, for k of d booleans.
    """

    KIND: ClassVar[str] = "conjunction"
    NEEDS: ClassVar[tuple[str, ...]] = ("k", "classes")
    SIZED_BY: ClassVar[dict[str, int | None]] = {"d": None, "k": None}

    k: int | None = None
    alpha: Any = None
    verbose: bool = False

    _takes: ClassVar[str] = "binary"

    def _methods(self, rows: Any, beta: Any, funds: Any) -> Any:
        flag(self, "verbose")
        literals, facts = Literals(rows.columns), rows.facts
        most = how_many(self.k, literals.variables(facts.domain), "features")
        return conjunction_methods(literals, rows.labels, most, facts, beta, funds)

    def _learned(self, value: Any, rows: Any) -> LearnedRule:
        rule = Conjunction(Literals(rows.columns), tuple(map(int, value)))
        return LearnedRule(rule, rows.features, rule.sentence(rows.facts.domain, rows.names))

    def _array_examples(self, terms: Any, x: Any, y: Any, *, reset: bool) -> Any:
        return bit_examples(self, terms, x, y, reset=reset)
