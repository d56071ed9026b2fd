"""GridSearchCV with one ledger on disk: every fit and every score is charged to it, from every process."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import discreet as dp

RNG = np.random.default_rng(9)
X = RNG.choice([-10.0, 10.0], size=(200, 2))
LABELS = (X[:, 0] > 0).astype(int)


def opened(tmp_path, budget):
    rows = dp.Matrix(X, features=dp.Vector(2, norm=1), name="persons")
    return dp.Ledger.create(tmp_path / "persons.ledger", budget, rows)


def search(book, **more):
    model = dp.LogisticRegression(
        epsilon="0.5", row_norm=1.5, classes=(0, 1), ledger=book, size=200, score_epsilon="0.25", method="descent"
    )
    pipeline = make_pipeline(dp.DeclaredScaler((-10, 10)), model)
    grid = {"logisticregression__max_iter": [1, 5]}
    return GridSearchCV(pipeline, grid, cv=KFold(3), error_score="raise", **more)


def memos(book):
    return [body["memo"] for body in book.entries() if body["kind"] == "charge"]


@pytest.mark.parametrize("processes", [1, 2])
def test_every_fit_and_every_score_is_charged_to_the_real_ledger(tmp_path, processes):
    book = opened(tmp_path, dp.Budget(100))
    found = search(book, n_jobs=processes).fit(X, LABELS)
    assert memos(book).count("LogisticRegression") == 2 * 3 + 1
    assert memos(book).count("score") == 2 * 3
    wanted = 7 * 500_000_000 + 6 * 250_000_000
    assert wanted * 0.999 <= book.spent().pure <= wanted
    assert found.best_estimator_[-1].ledger.path == book.path
    assert len(found.predict(X)) == 200
    book.verify()


def test_a_search_that_the_ledger_cannot_pay_stops_and_spends_no_more(tmp_path):
    book = opened(tmp_path, dp.Budget(2))
    with pytest.raises(dp.BudgetExceeded):
        search(book).fit(X, LABELS)
    assert book.spent().pure <= 2 * 10**9


def test_a_search_without_a_paid_score_is_refused(tmp_path):
    book = opened(tmp_path, dp.Budget(100))
    asked = search(book)
    asked.estimator.set_params(logisticregression__score_epsilon=None)
    with pytest.raises(dp.errors.ParameterError, match="score_epsilon"):
        asked.fit(X, LABELS)
    assert "score" not in memos(book)


def test_models_are_chosen_with_one_charge_where_a_search_pays_for_every_score(tmp_path):
    book = opened(tmp_path, dp.Budget(100))
    models = [
        dp.LogisticRegression(
            epsilon=1, row_norm=15, classes=(0, 1), ledger=book, size=200, method="descent", max_iter=steps
        ).fit(X[:100], LABELS[:100])
        for steps in (1, 5)
    ]
    found = dp.select_model(models, X[100:], LABELS[100:], epsilon=1, ledger=book, size=200)
    assert found.model in models
    assert len(memos(book)) == 3
