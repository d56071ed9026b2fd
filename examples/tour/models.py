"""Two regressions, a rule and a box from one budget: each a function of a desk that returns a line of results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import discreet as dp

from .folder import INVITED, invitation
from .screen import Line, percent
from .stage import Desk
from .truth import Floats, Truth, best_model, capped_logistic, huber

LOGISTIC, LINEAR, RULE, BOX = (Fraction(part, 100) for part in (12, 14, 10, 8))
"""Which part of the budget each may cost."""
_BETA = Fraction(1, 20)
_CERTIFICATE, _DOUBT = "0.03", Fraction(1, 100)  # a paid count of mistakes: its epsilon, and how often it may be wrong


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model with its line, and what it measured: the excess risk, or the share of mistakes; None in a rehearsal."""

    line: Line
    model: Any
    measured: float | None


def logistic(desk: Desk) -> Fitted:
    """Who has physical limitations? The radius, how long the coefficients may be, is a public choice."""
    features, before = ["age", "diseases", "health"], desk.spent()
    model = desk.fit(
        dp.LogisticRegression(epsilon=desk.share(LOGISTIC), radius="2.3"), features=features, target="limited"
    )
    slope = _slopes(model)
    answer = (
        f"score {10 * slope['age']:+.2g} for ten years of age, {10 * slope['diseases']:+.2g} for ten points of "
        f"diseases, {slope['health = poor'] - slope['health = excellent']:+.2g} for poor instead of excellent health"
    )
    measured, error = (None, "") if desk.truth is None else _logistic_error(model, desk.truth, features)
    what = "logistic regression: limited, from age, diseases, health"
    return Fitted(Line(what, answer, _excess(model), error, _price(desk, before)), model, measured)


def linear(desk: Desk) -> Fitted:
    """How old are people with such a family and so many diseases?"""
    features, before = ["family", "diseases"], desk.spent()
    model = desk.fit(dp.LinearRegression(epsilon=desk.share(LINEAR), radius=46), features=features, target="age")
    slope = _slopes(model)
    family, diseases = slope["family"], slope["diseases"]
    answer = f"{family:+.2g} years for one more in the family, {diseases:+.2g} for a point of diseases"
    measured, error = (None, "") if desk.truth is None else _linear_error(model, desk.truth, features)
    what = "linear regression: age, from family and diseases"
    return Fitted(Line(what, answer, _excess(model), error, _price(desk, before)), model, measured)


def rule(desk: Desk) -> Fitted:
    """Who calls their health excellent? Nothing is promised before, so a certificate is bought after."""
    domain, before = desk.table.facts.domain, desk.spent()
    features = ["age", "income", "schooling", "family", "diseases", "limited"]
    table = desk.reading(dp.Domain({**{name: domain[name] for name in domain}, "health": _EXCELLENT}))
    learner = dp.RuleClassifier(epsilon=desk.share(RULE), k=2, ledger=desk.ledger)
    model = learner.fit(table, "health", features=features)
    bought = model.certify(table, "health", epsilon=_CERTIFICATE, beta=_DOUBT)
    within = f"a certificate, paid afterwards, counts the mistakes to within {bought.rows - bought.mistakes} people"
    promised, measured, error = f"nothing before; {within}", None, ""
    if desk.truth is not None:
        promised = f"certified: wrong on at most {percent(bought.error or 1)}, with probability {1 - bought.beta:g}"
        measured, error = _rule_error(model, desk.truth)
    what = f"a rule of two conditions: health is excellent, from {len(features)} columns"
    return Fitted(Line(what, str(model.rule_), promised, error, _price(desk, before)), model, measured)


def box(desk: Desk) -> Fitted:
    """Whom does the invented programme invite? Over all boxes at once: near the best, without any assumption."""
    before = desk.spent()
    model = desk.fit(
        dp.BoxClassifier(epsilon=desk.share(BOX), method="exhaustive", beta=_BETA),
        features=list(INVITED),
        target="programme",
    )
    sure = f"with probability {float(1 - _BETA):g}"
    promised = f"wrong on at most {percent(float(model.promise_))} more than the best box, {sure}"
    measured, error = (None, "") if desk.truth is None else _box_error(model, desk.truth)
    what = "a box: the invented programme, from age and visits"
    return Fitted(Line(what, str(model.box_), promised, error, _price(desk, before)), model, measured)


STEPS = (logistic, linear, rule, box)
_EXCELLENT = dp.Category("not excellent", "excellent", other="not excellent")


def _slopes(model: Any) -> dict[str, float]:
    """The coefficients on the columns' own scale, by the names of the coordinates."""
    return dict(zip(model.feature_names_out_, np.ravel(model.original_coef_).tolist(), strict=True))


def _excess(model: Any) -> str:
    among = f"among coefficients of length at most {model.radius}, a public choice"
    return f"excess risk at most {float(model.promise_):.3g} per {model.promise_.per} on average, {among}"


def _price(desk: Desk, before: float) -> str:
    return percent(desk.spent() - before)


# The true errors, from the file.


def _vectors(truth: Truth, features: list[str]) -> Floats:
    """The rows with the constant that an intercept multiplies."""
    rows = truth.vectors(features)
    return np.column_stack([rows, np.full(len(rows), math.sqrt(len(features)) / 2)])


def _predicted(model: Any, vectors: Floats) -> Floats:
    return np.asarray(vectors[:, :-1] @ np.ravel(model.coef_) + float(np.ravel(model.intercept_)[0]))


def _logistic_error(model: Any, truth: Truth, features: list[str]) -> tuple[float, str]:
    vectors, limited = _vectors(truth, features), truth.columns["limited"] == "yes"
    sign = np.where(limited, 1.0, -1.0)

    def loss(margins: Floats) -> tuple[Floats, Floats]:
        losses, slopes = capped_logistic(sign * margins)
        return losses, sign * slopes

    private, best = _predicted(model, vectors), vectors @ best_model(vectors, loss, radius=float(model.radius))
    excess = float(np.mean(loss(private)[0]) - np.mean(loss(best)[0]))
    right, most = (percent(float(roc_auc_score(limited, each))) for each in (private, best))
    return excess, f"excess risk {excess:.2g}; ranks {right} of pairs right, the best {most}"


def _linear_error(model: Any, truth: Truth, features: list[str]) -> tuple[float, str]:
    vectors, age = _vectors(truth, features), truth.columns["age"]
    bend = float(truth.domain["age"].high) / 2  # type: ignore[union-attr]

    def loss(predicted: Floats) -> tuple[Floats, Floats]:
        return huber(predicted - age, bend)

    private, best = _predicted(model, vectors), vectors @ best_model(vectors, loss, radius=float(model.radius))
    excess = float(np.mean(loss(private)[0]) - np.mean(loss(best)[0]))
    explained, most = (1 - float(np.mean((each - age) ** 2) / np.var(age)) for each in (private, best))
    return excess, f"excess risk {excess:.2g}; explains {percent(explained)} of the variance, the best {percent(most)}"


def _rule_error(model: Any, truth: Truth) -> tuple[float, str]:
    """The rule is read from its sentence's own conditions by predict: a public rule, applied to public rows."""
    said = model.predict({name: truth.columns[name] for name in model.feature_names_in_})
    really = np.where(truth.columns["health"] == "excellent", "excellent", "not excellent")
    wrong, guess = float(np.mean(said != really)), 1 - truth.share("health", "excellent")
    return wrong, f"wrong on {percent(wrong)}; always saying the same: {percent(min(guess, 1 - guess))}"


def _box_error(model: Any, truth: Truth) -> tuple[float, str]:
    inside = np.full(truth.size, bool(model.bounds_))
    for name, (low, high) in model.bounds_.items():
        inside &= (truth.columns[name] >= low) & (truth.columns[name] <= high)
    wrong = float(np.mean(inside != (truth.columns["programme"] == "yes")))
    return wrong, f"wrong on {percent(wrong)}; true: {invitation()}"
