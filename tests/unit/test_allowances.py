"""An allowance is a limit for whatever is charged in its name: questions, models, choices, plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import discreet as dp
from discreet import estimators

N = 2_000
RNG = np.random.default_rng(6)
DOMAIN = dp.Domain(
    age=dp.Number(0, 100, step=1),
    sex=dp.Category("F", "M"),
    tall=dp.Category("no", "yes"),
)
ROWS = {
    "age": RNG.integers(0, 100, N),
    "sex": RNG.choice(["F", "M"], N),
    "tall": RNG.choice(["no", "yes"], N),
}


def people() -> dp.Table:
    return dp.Table(ROWS, DOMAIN, name="people")


@pytest.fixture
def ledger():
    found = dp.Ledger.in_memory(dp.Budget(2, "1e-6"), people())
    found.allow("ana", share="1/4")
    return found


MODELS = {
    dp.Mean: ({}, "age"),
    dp.Median: ({}, "age"),
    dp.Quantile: ({"q": 0.9}, "age"),
    dp.LinearRegression: ({}, "age"),
    dp.LogisticRegression: ({}, "sex"),
    dp.MLPClassifier: ({"hidden_layer_sizes": (2,)}, "sex"),
    dp.BoxClassifier: ({}, "sex"),
    dp.ConjunctionClassifier: ({"k": 1}, "sex"),
    dp.RuleClassifier: ({"k": 1, "cuts": 4}, "sex"),
    dp.FiniteClassClassifier: ({"hypotheses": [dp.Equals("tall", "yes"), dp.Equals("tall", "no")]}, "sex"),
}
ALL = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)


def charges(ledger):
    return [body for body in ledger.entries() if body["kind"] == "charge"]


def test_no_estimator_is_without_an_allowance():
    """Whatever takes a ledger; transformers learn from arrays, and tests of their own charge them."""
    takes = [each for each in vars(estimators).values() if isinstance(each, type)]
    assert {each for each in takes if hasattr(each, "fit") and "ledger" in each().get_params()} == {
        *MODELS,
        *(dp.PCA, dp.StandardScaler),
    }


@ALL
def test_a_model_takes_all_that_its_allowance_has_left_and_no_more(ledger, kind):
    more, target = MODELS[kind]
    model = clone(kind(**more, ledger=ledger, allowance="ana"))
    model.fit(people(), target)
    (charge,) = charges(ledger)
    assert charge["allowance"] == model.allowance == "ana"
    found = ledger.spent()
    parts = [found.renyi / found.caps.renyi, *([found.pure / found.caps.pure] if found.pure is not None else [])]
    assert 0.2 < min(parts) <= 0.25  # in whichever book it is cheaper
    assert ledger.allowances()[0].left < 0.05


@ALL
def test_a_share_is_of_what_the_allowance_has_left(ledger, kind):
    more, target = MODELS[kind]
    for _ in range(2):
        kind(**more, ledger=ledger, allowance="ana", epsilon=dp.Share("1/2")).fit(people(), target)
    first, second = (charge["price"]["renyi"] / ledger.spent().caps.renyi for charge in charges(ledger))
    assert 0.1 < first <= 0.125
    assert 0.05 < second <= 0.0626


@ALL
def test_an_unknown_name_is_refused_before_anything(ledger, kind):
    more, _ = MODELS[kind]
    model = kind(**more, ledger=ledger, allowance="bob", epsilon="0.1")
    with pytest.raises(dp.errors.ParameterError, match="the ledger has no allowance called 'bob'"):
        model.fit("no table at all", None)


@ALL
def test_an_allowance_needs_a_ledger(kind):
    more, _ = MODELS[kind]
    with pytest.raises(dp.errors.ParameterError, match="an allowance is a share of a ledger's budget"):
        kind(**more, allowance="ana", epsilon="0.1").fit([[1]], [1])


def test_everything_else_that_is_charged_takes_one(ledger):
    how = {"ledger": ledger, "allowance": "ana", "epsilon": "0.02"}
    rule = dp.BoxClassifier(**how, score_epsilon="0.02").fit(people(), "sex")
    models = [dp.LogisticRegression(**how, score_epsilon="0.02", ridge=each).fit(people(), "sex") for each in (1, 2)]
    rule.score(people(), "sex")
    models[0].score(people(), "sex")
    rule.certify(people(), "sex", epsilon="0.02")
    dp.select_model(models, people(), "sex", **how)
    dp.interior_point(people(), column="age", **how)
    dp.suggest_bounds(people(), "age", **{**how, "epsilon": "0.1"}, coverage="0.2")
    assert [charge["allowance"] for charge in charges(ledger)] == ["ana"] * 9


@pytest.mark.parametrize("method", ["auto", "pmw"])
def test_a_session_binds_all_that_it_charges(ledger, method):
    session = dp.Session(people(), ledger, alpha=0.4, questions=5, method=method, allowance="ana")
    session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F' AND tall = 'yes'")
    if method == "auto":
        session.ask("SELECT MEDIAN(age) FROM people")
        session.answer_all(["SELECT tall, COUNT(*) FROM people GROUP BY tall"], share="1/4")
    session.fit(dp.LogisticRegression(epsilon=dp.Share("1/2")), target="sex")
    assert {charge["allowance"] for charge in charges(ledger)} == {"ana"}


def test_a_session_with_an_unknown_name_is_refused(ledger):
    with pytest.raises(dp.errors.ParameterError, match="no allowance called 'bob'"):
        dp.Session(people(), ledger, allowance="bob")


def test_a_model_with_the_name_of_another_is_not_fitted_in_a_session(ledger):
    ledger.allow("bob", share="1/2")
    with pytest.raises(dp.errors.ParameterError, match="this estimator has the allowance 'bob'"):
        dp.Session(people(), ledger, allowance="ana").fit(dp.Mean(epsilon=1, allowance="bob"), target="age")


def test_a_plan_is_of_what_the_allowance_has_left(ledger):
    dp.release(dp.Gaussian(dp.Count(), 5), people(), ledger=ledger, allowance="ana")
    small = dp.plan("count", ledger=ledger, share="1/2", allowance="ana")
    whole = dp.plan("count", ledger=ledger, share="1/2")
    assert small.rows[0].error > 1.5 * whole.rows[0].error
    within = [dp.Gaussian(dp.Count(), each.rows[0].noise) for each in (small, whole)]
    assert [ledger.admits(each, allowance="ana") for each in within] == [True, False]
    assert "for 'people' to 'ana'" in small.head
    with pytest.raises(dp.errors.ParameterError, match="no allowance called 'bob'"):
        dp.plan("count", ledger=ledger, share="1/2", allowance="bob")
    with pytest.raises(dp.errors.ParameterError, match="give ledger="):
        dp.plan("count", budget=dp.Budget(1), allowance="ana")


def test_what_was_spent_in_a_name_is_told_with_its_epsilon(ledger):
    ledger.allow("bob", share="1/2")
    dp.release(dp.Laplace(dp.Count(), 10), people(), ledger=ledger, allowance="ana")
    dp.release(dp.Laplace(dp.Count(), 5), people(), ledger=ledger)
    ana, bob = ledger.allowances()
    assert (ana.name, bob.name) == ("ana", "bob")
    assert ana.epsilon == pytest.approx(0.1)
    assert [replace(ana, epsilon=each).at_most for each in (0.1, 0.47801, 12.31, 0.0, None)] == [
        "0.1", "0.479", "12.4", "", ""
    ]  # fmt: skip
    assert bob.epsilon == 0
    assert ana.part == ledger.spent().part_of(ledger.price(dp.Laplace(dp.Count(), 10).guarantee(people().facts)))
    assert ana.left == pytest.approx(float(ana.share - ana.part), abs=1e-6)
    assert bob.left == pytest.approx(0.5, abs=1e-6)
    dp.release(dp.Gaussian(dp.Count(), 5), people(), ledger=ledger, allowance="bob")
    assert ledger.allowances()[1].epsilon == pytest.approx(
        dp.Gaussian(dp.Count(), 5).guarantee(people().facts).epsilon("5e-7"), rel=0.3
    )


def test_an_allowance_has_no_more_left_than_its_ledger(ledger):
    ledger.allow("bob", share="1")
    dp.Mean(ledger=ledger, allowance="bob", epsilon=dp.Share("9/10")).fit(people(), "age")
    ana, bob = ledger.allowances()
    assert ana.left == bob.left <= 0.11


def test_what_a_ledger_admits_of_a_share_is_within_the_allowance():
    ledger = dp.Ledger.in_memory(dp.Budget(1), people())
    ledger.allow("ana", share="1/5")
    half = dp.Share("1/2")
    assert ledger.admits(dp.Laplace(dp.Count(), 10), allowance="ana", share=half)
    assert not ledger.admits(dp.Laplace(dp.Count(), 9), allowance="ana", share=half)
    assert ledger.admits(dp.Laplace(dp.Count(), 2), share=half)
