"""Boxes: the positive class is where every number lies between two bounds. Lecture 12 in d dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from discreet.estimators.rules import LearnedRule, RuleLearner
from discreet.pac import BoxRule, box_methods, ordered


@dataclass(kw_only=True, repr=False, eq=False)
class BoxClassifier(RuleLearner):
    """Learns a box a_1 <= x_1 <= b_1 and ... and a_d <= x_d <= b_d under differential privacy.

    Everything that decides privacy is given, never read from the rows:

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    bounds          one pair (low, high) for all features, a list of pairs, or a dict from column names to pairs; values
                    beyond are moved to the bound
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

    `sample_size` says before how many rows a promise takes in d features of 2^bits values (17 bits unless given),
    `certify` pays for a count of the mistakes afterwards.
    """

    KIND: ClassVar[str] = "box"
    NEEDS: ClassVar[tuple[str, ...]] = ("bounds", "classes")
    SIZED_BY: ClassVar[dict[str, int | None]] = {"d": None, "bits": 17}

    bounds: Any = None
    step: Any = None
    alpha: Any = None

    _takes: ClassVar[str] = "bounded"

    def _methods(self, rows: Any, beta: Any, funds: Any) -> Any:
        return box_methods(rows.columns, rows.labels, rows.facts, beta, funds)

    def _learned(self, value: Any, rows: Any) -> LearnedRule:
        rule = BoxRule(rows.columns, *(tuple(map(int, codes)) for codes in value))
        return LearnedRule(rule, rows.features, rule.sentence(rows.facts.domain))

    @property
    def box_(self) -> LearnedRule:
        """The learned box."""
        check_is_fitted(self, "rule_")
        return self.rule_

    @property
    def bounds_(self) -> dict[str, tuple[float, float]]:
        """Low and high of every feature, in its own values; empty if the box is."""
        box: Any = self.box_.rule
        domain = self.box_.domain
        return {
            name: (float(ordered(domain, name).value(low)), float(ordered(domain, name).value(high)))
            for name, low, high, _ in box.intervals(domain) or ()
        }
