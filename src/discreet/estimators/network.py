"""A small neural network: tanh layers and a softmax, by noisy gradient descent with every row's gradient cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from discreet.core import Floats, ParameterError, exact
from discreet.erm import Softmax, network
from discreet.estimators import model_file
from discreet.estimators.base import Task, refuse, require_parameters, terms_of
from discreet.estimators.input import Encoding, class_rows, is_table, predicted_vectors, projected
from discreet.estimators.linear import PrivateClassifier
from discreet.method import Offer


@dataclass(kw_only=True, repr=False, eq=False)
class MLPClassifier(PrivateClassifier):
    """A neural network classifier under differential privacy.

    hidden_layer_sizes  the widths of the layers of tanh units
    seed                of the first weights, which are public and the same for every table

    epsilon, delta, row_norm, classes, neighbours, size, ledger, allowance and score_epsilon are those of
    LogisticRegression.
    Steps, rate and clip follow a public rule, `erm.network.propose`. early_stopping and warm_start are refused.

    Learned: coefs_, intercepts_ (one for each layer, as in scikit-learn), classes_, guarantee_, promise_ (nothing is
    promised: a network's risk is not convex), method_, mechanism_, entry_, replayed_, n_iter_, n_features_in_,
    feature_names_in_.
    """

    KIND: ClassVar[str] = "network"
    NEEDS: ClassVar[tuple[str, ...]] = ("row_norm", "classes")

    hidden_layer_sizes: Any = field(default=(32,), kw_only=False)
    row_norm: Any = None
    classes: Any = None
    seed: int = 0
    early_stopping: bool = False
    warm_start: bool = False

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> MLPClassifier:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse({**refused, "early_stopping": self.early_stopping, "warm_start": self.warm_start})
        require_parameters(self, table=is_table(X))
        terms, hidden, seed = terms_of(self), widths(self.hidden_layer_sizes), exact.whole(0, seed=self.seed)
        rows = class_rows(self, terms, X, y, features, intercept=True)
        fit, facts = Task.of(terms, rows.data, about=rows.about), rows.data.facts
        mechanism = network.propose(rows.features, rows.target, hidden, facts=facts, funds=fit.funds, seed=seed)
        got = fit.learn(self, Offer("descent", mechanism, network.promise(mechanism, facts)))
        self.encoding_, self.norm_, self.n_iter_ = rows.encoding, float(rows.norm), mechanism.steps
        self.shapes_ = network.layout(rows.features, rows.target, hidden, facts.domain)
        self._keep(np.asarray(got.value, dtype=np.float64))
        return self

    def _keep(self, weights: Floats) -> None:
        self.weights_ = weights
        layers = network.split(self.weights_, self.shapes_)
        self.coefs_ = [layer[:, :-1].T for layer in layers]
        self.intercepts_ = [layers[0][:, -1] * (self.norm_ / 2), *(layer[:, -1] * 1.0 for layer in layers[1:])]

    def _learned_state(self) -> model_file.State:
        return {
            "weights": self.weights_.tolist(),
            "shapes": [list(shape) for shape in self.shapes_],
            "norm": self.norm_,
            "steps": self.n_iter_,
            "encoding": None if self.encoding_ is None else self.encoding_.record(),
            "classes": model_file.labels(self.classes_),
        }

    def _restore_learned(self, state: object) -> None:
        found = model_file.keys(state, "weights", "shapes", "norm", "steps", "encoding", "classes")
        self.classes_ = model_file.labels_from(found["classes"])
        self.encoding_ = model_file.optional(found["encoding"], Encoding.from_record)
        self.n_iter_, self.norm_ = model_file.count(found["steps"], 1), model_file.number(found["norm"])
        pairs = [
            tuple(model_file.many(each, lambda side: model_file.count(side, 1)))
            for each in model_file.many(found["shapes"], lambda each: each)
        ]
        width = self.n_features_in_ if self.encoding_ is None else len(self.encoding_.names)
        ends = [width + 1, *(pair[0] + 1 for pair in pairs[:-1])]
        if not pairs or [pair[1:] for pair in pairs] != [(end,) for end in ends] or pairs[-1][0] != len(self.classes_):
            model_file.wrong("shapes", found["shapes"])
        if not self.norm_ > 0:
            model_file.wrong("norm", self.norm_)
        self.shapes_ = tuple(pairs)
        self._keep(model_file.floats(found["weights"], sum(high * wide for high, wide in pairs)))

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """The margin of the positive class over the other, or one for each class."""
        margins = self._margins(X)
        return margins[:, 1] - margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The class of each row: any rows, this is no release about them."""
        largest = self._margins(X).argmax(axis=1)
        return self.classes_[largest]

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The softmax of the margins."""
        margins = self._margins(X)
        return Softmax(margins.shape[1]).probability(margins)

    def _margins(self, x: Any) -> Floats:
        check_is_fitted(self, "weights_")
        inside = projected(predicted_vectors(self, x), self.norm_)  # as in the fit: it is not linear beyond
        whole = np.column_stack([inside, np.full(len(inside), self.norm_ / 2)])
        return network.predict_scores(self.weights_, whole, self.shapes_)


def widths(sizes: Any) -> tuple[int, ...]:
    """The widths of the hidden layers, as they were given."""
    if isinstance(sizes, (str, bytes)):
        raise ParameterError(f"hidden_layer_sizes must be a tuple of widths, found {sizes!r}")
    try:
        listed = tuple(sizes)
    except TypeError:
        listed = (sizes,)
    if not listed:
        raise ParameterError("hidden_layer_sizes must have at least one width, found none")
    return tuple(exact.whole(hidden_layer_sizes=each) for each in listed)
