"""A session: a table, its ledger, and nothing else to remember."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Plain

import discreet as dp

DOMAIN = dp.Domain(age=dp.Number(18, 90, step=1), sex=dp.Category("F", "M"), smoker=dp.Category("no", "yes"))
AGE = np.arange(200) % 73 + 18
ROWS = {"age": AGE, "sex": ["F", "M"] * 100, "smoker": np.where(AGE > 50, "yes", "no")}


def opened(budget=None, **declared):
    table = dp.Table(ROWS, DOMAIN, **{"name": "people", **declared})
    return dp.Session(table, dp.Ledger.in_memory(budget or dp.Budget(10**16, 1e-6), table))


def charges(session):
    return [body["memo"] for body in session.ledger.entries() if body["kind"] == "charge"]


def test_a_fit_is_charged_to_the_ledger_of_the_session():
    session = opened()
    given = dp.LogisticRegression(epsilon=10**15, max_iter=200)
    found = session.fit(given, features=["age", "sex"], target="smoker")
    assert found is given
    assert found.ledger is session.ledger
    assert charges(session) == ["LogisticRegression"]
    assert np.mean(found.predict(ROWS) == ROWS["smoker"]) > 0.9


def test_numbers_of_a_column_need_no_features():
    session = opened()
    assert session.fit(dp.Mean(epsilon=10**15), target="age").value_ == pytest.approx(AGE.mean())
    assert session.fit(dp.Median(epsilon=10**15), target="age").value_ in np.unique(AGE)
    assert charges(session) == ["Mean", "Median"]


def test_all_declared_columns_but_the_target_are_features_unless_they_are_named():
    found = opened().fit(dp.LogisticRegression(epsilon=1, max_iter=2), target="smoker")
    assert found.feature_names_in_.tolist() == ["age", "sex"]


def test_two_fits_share_one_budget():
    session = opened(dp.Budget(1))
    session.fit(dp.Mean(epsilon="0.6"), target="age")
    with pytest.raises(dp.BudgetExceeded):
        session.fit(dp.Mean(epsilon="0.5"), target="age")
    rest = dp.Session(session.table, session.ledger, max_price="40%")
    assert rest.fit(dp.Mean(), target="age").guarantee_.epsilon(0) == pytest.approx(0.4, rel=1e-5)


def test_an_estimator_with_another_ledger_is_refused():
    session, other = opened(), opened()
    with pytest.raises(dp.errors.ParameterError, match="another ledger"):
        session.fit(dp.Mean(epsilon=1, ledger=other.ledger), target="age")
    assert charges(session) == charges(other) == []


@pytest.mark.parametrize("estimator", [Plain(), "mean", dp.DeclaredScaler((0, 1))])
def test_only_estimators_that_know_a_ledger_are_fitted(estimator):
    session = opened()
    with pytest.raises(dp.errors.ParameterError, match="one of discreet's"):
        session.fit(estimator, target="smoker")
    assert charges(session) == []


def test_a_session_needs_a_table_and_its_own_ledger():
    session = opened()
    with pytest.raises(dp.errors.ParameterError, match="a Ledger"):
        dp.Session(session.table, "people.ledger")
    with pytest.raises(dp.errors.ParameterError, match="a Table"):
        dp.Session(ROWS, session.ledger)
    with pytest.raises(dp.errors.LedgerMismatch):
        dp.Session(dp.Table(ROWS, DOMAIN, name="others"), session.ledger)


def test_a_session_prints_no_rows():
    assert "Session(<Table 'people'" in repr(opened())


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_number_of_rows_is_private_where_a_person_may_have_several(neighbours):
    domain = dp.Domain(x=dp.Category("a", "b"))
    columns = {"id": [at // 3 for at in range(600)], "x": ["a", "b", "b"] * 200}
    table = dp.Table(columns, domain, name="t", unit="id", rows_per_unit=3, neighbours=neighbours)
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(40, "1e-6"), table), price="5%", beta="1e-6")
    for question, truth in (("COUNT(*)", 600), ("COUNT(*) FILTER (WHERE x = 'a' OR x = 'b')", 600)):
        found = session.ask(f"SELECT {question} FROM t")
        assert abs(found.value - truth) <= found.error_bound
        assert found.source != "public"
    groups = session.ask("SELECT x, COUNT(*) FROM t GROUP BY x")
    assert all(abs(groups.value[level] - truth) <= groups.error_bound for level, truth in (("a", 200), ("b", 400)))
    assert groups.error_bound > 0


@pytest.mark.parametrize("wrong", [{"backend": "excel"}, {"backend": None}, {"seed": "one"}, {"seed": -1}, {"rows": 0}])
def test_what_is_wrong_with_synthetic_rows_is_found_before_tables_are_paid_for(wrong):
    rows = dp.Table(
        {"v": [1, 2, 3] * 50, "w": [*"xyz"] * 50}, dp.Domain(v=dp.Number(0, 9, step=1), w=dp.Category(*"xyz"))
    )
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), rows)
    with pytest.raises(dp.errors.ParameterError):
        dp.Session(rows, ledger).synthetic(**{"rows": 5, "share": "1/10", **wrong})
    assert ledger.spent().used() == 0


@pytest.mark.parametrize("kind", [dp.Mean, dp.Median])
def test_features_of_a_model_of_one_column_are_refused_in_words(kind):
    rows = dp.Table(
        {"v": [1, 2, 3] * 50, "w": [*"xyz"] * 50}, dp.Domain(v=dp.Number(0, 9, step=1), w=dp.Category(*"xyz"))
    )
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), rows)
    with pytest.raises(dp.errors.ParameterError, match="leave features out"):
        dp.Session(rows, ledger).fit(kind(epsilon="0.1"), target="v", features=["w"])
