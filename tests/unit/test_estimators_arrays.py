"""Arrays as input: no rows are an ordinary table under add-remove, and no error tells how many rows there are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import discreet as dp

ROWS, NUMBERS, LABELS = np.ones((1, 2)), np.zeros(1), np.zeros(1, dtype=int)
MANY, MARKS = np.full((41, 2), 0.625), np.arange(41) % 2
FITTED = [dp.LogisticRegression(epsilon=1, row_norm=2, classes=(0, 1), max_iter=2).fit(MANY, MARKS) for _ in "ab"]
LINES = [dp.LinearRegression(epsilon=1, row_norm=2, target_bound=1, max_iter=2).fit(MANY, MARKS) for _ in "ab"]


def logistic(**more):
    return dp.LogisticRegression(row_norm=2, classes=(0, 1), **more)


def linear(**more):
    return dp.LinearRegression(row_norm=2, target_bound=1, **more)


LEARNERS = {
    "logistic": lambda n, given: logistic(**given).fit(ROWS[:n], LABELS[:n]),
    "softmax": lambda n, given: logistic(**given).set_params(classes=(0, 1, 2)).fit(ROWS[:n], LABELS[:n]),
    "linear": lambda n, given: linear(**given).fit(ROWS[:n], NUMBERS[:n]),
    "squared": lambda n, given: linear(huber=None, **given).fit(ROWS[:n], NUMBERS[:n]),
    "output": lambda n, given: linear(method="output", **given).fit(ROWS[:n], NUMBERS[:n]),
    "network": lambda n, given: dp.MLPClassifier((2,), row_norm=2, classes=(0, 1), **given).fit(ROWS[:n], LABELS[:n]),
    "select": lambda n, given: dp.select_model(FITTED, ROWS[:n], LABELS[:n], **given),
    "select a line": lambda n, given: dp.select_model(LINES, ROWS[:n], NUMBERS[:n], **given),
    "mean": lambda n, given: dp.Mean(bounds=(0, 1), **given).fit(NUMBERS[:n]),
    "mean, laplace": lambda n, given: dp.Mean(bounds=(0, 1), method="laplace", **given).fit(NUMBERS[:n]),
    "median": lambda n, given: dp.Median(bounds=(0, 1), **given).fit(NUMBERS[:n]),
    "scaled": lambda n, given: make_pipeline(dp.DeclaredScaler((0, 1)), logistic(**given)).fit(ROWS[:n], LABELS[:n]),
    "pandas": lambda n, given: logistic(**given).fit(pd.DataFrame(ROWS[:n], columns=["a", "b"]), LABELS[:n]),
    "polars": lambda n, given: logistic(**given).fit(pl.DataFrame(ROWS[:n], schema=["a", "b"]), LABELS[:n]),
    "pyarrow": lambda n, given: logistic(**given).fit(pa.table({"a": ROWS[:n, 0], "b": ROWS[:n, 1]}), LABELS[:n]),
}


def book_of(relation):
    people = dp.Matrix(ROWS, features=dp.Vector(2, norm=1), neighbours=relation, name="people")
    return dp.Ledger.in_memory(dp.Budget(50, 1e-6), people)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_rows_are_charged_for_like_one_row_under_add_remove(name):
    charged = []
    for count in (0, 1):
        book = book_of("add-remove")
        given = {"epsilon": 1, "delta": 1e-6, "neighbours": "add-remove", "size": 20, "ledger": book}
        LEARNERS[name](count, given)
        charged.append([(each["mechanism"], each["price"]) for each in book.entries() if each["kind"] == "charge"])
    assert charged[0] == charged[1]
    assert len(charged[0]) == 1


def test_a_charged_score_is_refused_alike_for_no_rows_and_for_one():
    given = {"epsilon": 1, "neighbours": "add-remove", "size": 20, "ledger": book_of("add-remove")}
    model = logistic(score_epsilon=1, max_iter=2, **given).fit(ROWS, LABELS)
    told = []
    for count in (0, 1):
        with pytest.raises(dp.errors.ParameterError) as raised:
            model.score(ROWS[:count], LABELS[:count])
        told.append(str(raised.value))
    assert told[0] == told[1]


def test_no_rows_are_refused_where_their_number_is_public():
    with pytest.raises(dp.errors.ParameterError, match="no rows"):
        logistic(epsilon=1).fit(ROWS[:0], LABELS[:0])


def test_a_model_predicts_nothing_for_no_rows():
    assert FITTED[0].predict(ROWS[:0]).shape == (0,)
    assert dp.DeclaredScaler((0, 1)).fit(ROWS[:0]).transform(ROWS[:0]).shape == (0, 2)


# --- errors -----------------------------------------------------------------------------------------------------------

P = dp.errors.ParameterError
WORDS = MANY.astype(object)
WORDS[7, 1] = "0.625 pounds"
THINGS = MANY.astype(object)
THINGS[7, 1] = {"secret": 0.625}
WRONG = {
    "one dimension": (MANY[:, 0], MARKS, P, "Reshape your data"),
    "a series": (pd.Series(MANY[:, 0]), MARKS, P, "Reshape your data"),
    "three dimensions": (MANY[:, :, None], MARKS, P, "3 dimensions"),
    "a number": (0.625, MARKS, P, "0 dimensions"),
    "no columns": (MANY[:, :0], MARKS, P, "0 feature"),
    "text": (WORDS, MARKS, P, "must hold numbers"),
    "things": (THINGS, MARKS, TypeError, "must hold numbers"),
    "ragged": ([[0.625, 1], [0.625]], MARKS, P, "equal length"),
    "complex": (MANY * 1j, MARKS, P, "Complex data not supported"),
    "complex list": ((MANY * 1j).tolist(), MARKS, P, "must hold numbers"),
    "not a number": (np.where(MARKS[:, None] == 0, np.nan, MANY), MARKS, P, "NaN"),
    "no target": (MANY, None, P, "requires y"),
    "two targets": (MANY, np.zeros((41, 2)), P, "2 columns"),
    "cube of targets": (MANY, np.zeros((41, 2, 2)), P, "3 dimensions"),
    "infinite target": (MANY, np.where(MARKS == 0, np.inf, 1), P, "infinity"),
    "target of things": (MANY, THINGS[:, 1], P, "numbers"),
    "ragged target": (MANY, [[1], [0.625, 1]], P, "equal length"),
    "a longer target": (MANY, np.zeros(43), P, "not equally long"),
}


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", WRONG)
def test_errors_about_arrays_quote_no_row_and_count_none_nor_does_their_context(name, relation):
    rows, target, kind, says = WRONG[name]
    with pytest.raises(kind, match=says) as raised:
        logistic(epsilon=1, neighbours=relation, size=41 if relation == "add-remove" else None).fit(rows, target)
    error: BaseException | None = raised.value
    while error is not None:
        assert not any(secret in str(error) for secret in ("41", "43", "0.625", "pounds"))
        error = error.__cause__ or error.__context__
    assert raised.value.__context__ is None


@pytest.mark.parametrize("values", [["0.625 pounds"], [{"secret": 1}], [[0.625, 1], [0.625]], MANY, MANY[:, 0] * 1j])
def test_errors_about_one_column_quote_no_row_and_count_none(values):
    with pytest.raises((dp.errors.ParameterError, TypeError)) as raised:
        dp.Mean(epsilon=1, bounds=(0, 1)).fit(values)
    assert not any(secret in str(raised.value) for secret in ("41", "0.625", "pounds"))
    assert raised.value.__context__ is None


def test_the_width_and_the_names_of_columns_are_said():
    named = pd.DataFrame(MANY, columns=["a", "b"])
    model = logistic(epsilon=1, max_iter=2).fit(named, MARKS)
    with pytest.raises(dp.errors.ParameterError, match="names should match") as raised:
        model.predict(named.rename(columns={"a": "other"}))
    assert raised.value.__context__ is None
    with pytest.raises(dp.errors.ParameterError, match="1 features"):
        FITTED[0].predict(MANY[:, :1])


def test_a_nullable_frame_is_read_like_a_plain_one():
    frame = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [True, False]})
    fitted = logistic(epsilon=1, max_iter=2, neighbours="add-remove", size=20).fit(frame, [0, 1])
    assert fitted.n_features_in_ == 2
    with pytest.raises(dp.errors.ParameterError, match="NaN"):
        logistic(epsilon=1).fit(frame.assign(a=pd.array([1, None], dtype="Int64")), [0, 1])
