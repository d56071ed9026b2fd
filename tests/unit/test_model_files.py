"""Fitted models leave the house: as JSON files and as pickles they predict to the last bit, have their certificate, and
hold no ledger. Files that somebody else made are read strictly, and run no code."""

from __future__ import annotations

import copy
import io
import json
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import discreet as dp
from discreet.certificate import check
from discreet.errors import ParameterError
from discreet.estimators.loading import MODELS
from discreet.rehearsal import made_up

DOMAIN = dp.Domain(
    age=dp.Number(0, 100, step=1),
    pay=dp.Number(0, 1000, step="0.5", missing=True),
    town=dp.Category("north", "south", other="elsewhere", missing="unknown"),
    **{"odd <b>name</b>": dp.Category(False, True)},
    mood=dp.Category("low", "middle", "high"),
    sick=dp.Category("no", "yes"),
)
TABLE = made_up(DOMAIN, people=400, name="people")
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (60, 3))
NUMBERS = X @ [0.5, -0.2, 0.1]
SIGNS = NUMBERS > 0
COST = {"epsilon": 2, "delta": "1e-6"}
ROWS = pd.DataFrame(
    {
        "age": [3.7, 250, -9, 50],
        "pay": [np.nan, 12.3, 999.9, 5000],
        "town": ["north", None, "Paris", "south"],
        "odd <b>name</b>": [True, False, True, True],
        "mood": ["low", "high", "middle", "low"],
        "sick": ["no", "no", "yes", "yes"],
    }
)


def on_arrays():
    ones = (SIGNS & (X[:, 1] > 0)).astype(int)
    bits = np.column_stack([SIGNS, X[:, 1] > 0, X[:, 2] > 0])
    labels = np.where(SIGNS, "yes", "no")
    several = np.array([2.5, 7.0, 9.5])[np.digitize(NUMBERS, (-0.1, 0.1))] * 2
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    return {
        "linear": (dp.LinearRegression(epsilon=1, row_norm=2, target_bound=(-1, 2)), X, NUMBERS, X),
        "linear frame": (
            dp.LinearRegression(epsilon=1, row_norm="7/3", target_bound=1, ridge=0.1),
            named,
            NUMBERS,
            named,
        ),
        "logistic": (dp.LogisticRegression(epsilon=1, row_norm=2, classes=("no", "yes")), X, labels, X),
        "logistic cap": (dp.LogisticRegression(epsilon=1, row_norm=2, classes="public", cap=1), X, SIGNS, X),
        "logistic floats": (dp.LogisticRegression(epsilon=1, row_norm=2, classes="public"), X, several, X),
        "network": (dp.MLPClassifier((4, 3), **COST, row_norm=1, classes=(0, 1)), X, ones, X),
        "mean": (dp.Mean(epsilon=1, bounds=(-1, 1)), NUMBERS, None, None),
        "median": (dp.Median(epsilon=1, bounds=(-1, 1)), NUMBERS, None, None),
        "quantile": (dp.Quantile("0.9", epsilon=1, bounds=(-1, 1)), NUMBERS, None, None),
        "box": (dp.BoxClassifier(epsilon=3, bounds=(-1, 1), classes=(False, True)), X, SIGNS, X),
        "conjunction": (dp.ConjunctionClassifier(epsilon=3, k=2, classes=(0, 1)), bits, ones, bits),
        "rule": (dp.RuleClassifier(epsilon=3, k=2, bounds=(-1, 1), classes=(0, 1)), X, ones, X),
        "finite": (dp.FiniteClassClassifier(epsilon=3, hypotheses="columns", classes=(0, 1)), bits, ones, bits),
    }


def on_the_table():
    features = ["age", "pay", "town", "odd <b>name</b>"]
    listed = [dp.Between("age", 50, 100), dp.Not(dp.Equals("town", "north")), dp.Missing("pay")]
    return {
        "linear": (dp.LinearRegression(epsilon="1/2"), "age", ["town", "sick", "pay"]),
        "logistic": (dp.LogisticRegression(epsilon=dp.Share("1/9")), "sick", features),
        "several": (dp.LogisticRegression(**COST), "mood", features),
        "network": (dp.MLPClassifier((5,), **COST), "mood", features),
        "mean": (dp.Mean(epsilon=0.5), "age", None),
        "median": (dp.Median(epsilon=0.5), "age", None),
        "quantile": (dp.Quantile(0.25, epsilon=0.5), "age", None),
        "box": (dp.BoxClassifier(epsilon=1), "sick", ["age"]),
        "conjunction": (dp.ConjunctionClassifier(epsilon=1, k=1), "sick", ["odd <b>name</b>"]),
        "rule": (dp.RuleClassifier(epsilon=1, k=2), "sick", features),
        "finite": (dp.FiniteClassClassifier(epsilon=1, hypotheses=listed), "sick", features),
    }


def fitted(name, place):
    if place == "arrays":
        model, x, y, rows = on_arrays()[name]
        return (model.fit(x) if y is None else model.fit(x, y)), rows
    model, target, features = on_the_table()[name]
    ledger = dp.Ledger.in_memory(dp.Budget(100, "1e-4"), TABLE)
    return dp.Session(TABLE, ledger).fit(model, target=target, features=features), ROWS


def learned(model, rows):
    """Everything that a model says, as bytes and in words."""
    if hasattr(model, "value_"):
        return repr((model.value_, model.noise_range_)).encode()
    found = [model.predict(rows)]
    found += [model.predict_proba(rows), model.decision_function(rows)] if hasattr(model, "predict_proba") else []
    return b"".join(
        str(each.dtype).encode() + (each.tobytes() if each.dtype != object else repr(each).encode()) for each in found
    )


CASES = [*((name, "arrays") for name in on_arrays()), *((name, "table") for name in on_the_table())]


@pytest.mark.parametrize(("name", "place"), CASES)
def test_a_model_in_a_file_is_the_model_to_the_last_bit(name, place, tmp_path):
    model, rows = fitted(name, place)
    model.save(tmp_path / "m.json")
    again = dp.load(tmp_path / "m.json")
    assert type(again) is type(model)
    assert learned(again, rows) == learned(model, rows)
    assert again.guarantee_ == model.guarantee_
    assert again.promise_ == model.promise_
    assert (again.method_, again.entry_) == (model.method_, model.entry_)
    assert str(again) == str(model)
    assert again.guarantee_.certificate() == model.guarantee_.certificate()
    again.save(tmp_path / "again.json")  # and once more
    states = [json.loads((tmp_path / each).read_text())["state"] for each in ("m.json", "again.json")]
    assert states[0] == states[1]


@pytest.mark.parametrize(("name", "place"), CASES)
@pytest.mark.parametrize("way", ["pickle", "joblib", "deepcopy"])
def test_a_pickled_model_predicts_without_the_ledger(name, place, way):
    model, rows = fitted(name, place)
    again = copied(model, way)
    assert learned(again, rows) == learned(model, rows)
    assert again.ledger is None
    assert again.guarantee_.certificate() == model.guarantee_.certificate()
    if place == "table":
        with pytest.raises(ParameterError, match="without its ledger: it predicts, and neither fits nor charges"):
            again.fit(TABLE, "sick")
        assert model.ledger is not None  # of the model itself


def copied(model, way):
    if way == "joblib":
        stream = io.BytesIO()
        joblib.dump(model, stream)
        stream.seek(0)
        return joblib.load(stream)
    return pickle.loads(pickle.dumps(model)) if way == "pickle" else copy.deepcopy(model)


def test_every_kind_of_model_is_among_the_cases():
    assert {fitted(*case)[0].KIND for case in CASES} == set(MODELS)


def test_a_copy_charges_nothing_and_scores_nothing(tmp_path):
    model, _ = fitted("logistic", "table")
    rule, _ = fitted("rule", "table")
    linear, _ = fitted("linear", "table")
    for found in (model, rule, linear):
        found.save(tmp_path / f"{found.KIND}.json")
        for again in (pickle.loads(pickle.dumps(found)), dp.load(tmp_path / f"{found.KIND}.json")):
            with pytest.raises(ParameterError, match="ledger"):
                again.score(ROWS, ROWS["sick"])
    with pytest.raises(ParameterError, match="without its ledger"):
        dp.load(tmp_path / "rule.json").certify(TABLE, "sick", epsilon=1)
    assert clone(model).ledger is model.ledger  # an estimator, and not a copy of what was fitted


def test_the_certificate_in_a_file_is_true_to_the_ledger(tmp_path):
    ledger = dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(4, "1e-6"), TABLE)
    model = dp.Session(TABLE, ledger).fit(dp.LogisticRegression(epsilon=1), target="sick", features=["age"])
    model.save(tmp_path / "m.json")
    dp.Session(TABLE, ledger).fit(dp.Mean(epsilon=1), target="age")
    again = dp.load(tmp_path / "m.json")
    assert "true to the entries" in check(again.guarantee_.certificate(), ledger)
    assert again.guarantee_.certificate(ledger).record["head"]["entry"] == ledger.length()
    assert again.guarantee_.certificate().record["entry"] == model.entry_


def test_a_file_is_not_replaced_unless_asked(tmp_path):
    model, _ = fitted("mean", "arrays")
    model.save(tmp_path / "m.json")
    with pytest.raises(ParameterError, match="exists already"):
        model.save(tmp_path / "m.json")
    model.save(tmp_path / "m.json", force=True)
    with pytest.raises(ParameterError, match=r"nowhere/m\.json' cannot be written: No such file or directory"):
        model.save(tmp_path / "nowhere" / "m.json")


def test_functions_are_not_written_to_files(tmp_path):
    listed = [lambda row: row["age"] > 50, lambda row: True]
    ledger = dp.Ledger.in_memory(dp.Budget(100), TABLE)
    model = dp.FiniteClassClassifier(epsilon=1, hypotheses=listed, ledger=ledger).fit(TABLE, "sick", features=["age"])
    with pytest.raises(ParameterError, match="holds code, which no file of a model does"):
        model.save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


def test_an_unfitted_model_has_nothing_to_save(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        dp.Mean(epsilon=1).save(tmp_path / "m.json")


# Files that somebody else made.


def changed(saved, path, value):
    """The file with another value at a path, and the digest that belongs to it."""
    from discreet.estimators import model_file

    place = saved
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    saved["digest"] = model_file._digest(saved["state"])
    return saved


HOSTILE = [
    ("logistic", ("format",), "discreet-model/2", "expected the format"),
    ("logistic", ("format",), ["discreet-model/1"], "expected the format"),
    ("logistic", ("model",), "Exploit", "a model of this version is one of"),
    ("logistic", ("model",), "__class__", "a model of this version is one of"),
    ("logistic", ("model",), "network", "not as expected"),
    ("logistic", ("model",), None, "is no model"),
    ("logistic", ("state", "more"), 1, "not as expected"),
    ("logistic", ("state", "learned", "coefficients"), [[1.0]], "of the shape"),
    ("logistic", ("state", "learned", "coefficients"), [["1", "2", "3"]], "of the shape"),
    ("logistic", ("state", "learned", "coefficients"), [[True, 2.0, 3.0]], "of the shape"),
    ("logistic", ("state", "learned", "coefficients"), {"a": 1}, "not as expected"),
    ("logistic", ("state", "learned", "intercept"), [1.0, 2.0], "of the shape"),
    ("logistic", ("state", "learned", "cap"), "-1", "cap must be > 0"),
    ("logistic", ("state", "learned", "classes", "dtype"), "O", "classes"),
    ("logistic", ("state", "learned", "classes", "dtype"), "V8,<i4", "classes"),
    ("logistic", ("state", "learned", "classes", "labels"), ["no"], "classes"),
    ("logistic", ("state", "learned", "classes", "labels"), ["no", "no"], "classes"),
    ("logistic", ("state", "learned", "classes", "labels"), ["no", ["yes"]], "classes"),
    ("logistic", ("state", "learned", "steps"), -1, "whole number"),
    ("logistic", ("state", "features"), 10**40, "whole number"),
    ("logistic", ("state", "names"), ["a"], "feature names"),
    ("logistic", ("state", "parameters", "ledger"), "people.ledger", "not as expected"),
    ("logistic", ("state", "parameters", "epsilon"), {"name": "count/1"}, "parameter"),
    ("logistic", ("state", "guarantee", "renyi"), [0.1], "guarantee"),
    ("logistic", ("state", "guarantee", "renyi"), "all", "list"),
    ("logistic", ("state", "guarantee", "hash"), "x", "hash"),
    ("logistic", ("state", "guarantee", "pure"), "1/0", "fraction"),
    ("logistic", ("state", "guarantee", "budget"), {"name": "domain/1"}, "budget"),
    ("logistic", ("state", "promise"), {"bound": 1}, "not as expected"),
    ("logistic", ("privacy_certificate",), KeyError, "is no model"),
    ("logistic", ("privacy_certificate", "format"), "x", "no certificate"),
    ("network", ("state", "learned", "shapes"), [[4, 4], [3, 5], [2, 99]], "shapes"),
    ("network", ("state", "learned", "shapes"), [], "shapes"),
    ("network", ("state", "learned", "norm"), -1.0, "norm"),
    ("network", ("state", "learned", "weights"), [1.0], "of the shape"),
    ("mean", ("state", "learned", "value"), None, "not as expected"),
    ("box", ("state", "learned", "rule"), {"name": "function-rule/1", "label": "x", "function": "os.system"}, "object"),
    ("box", ("state", "learned", "rule"), {"name": "laplace/1"}, "object"),
    ("box", ("state", "learned", "rule", "columns"), ["nowhere"], "rule"),
    ("box", ("state", "learned", "domain"), {"name": "domain/1", "columns": []}, "domain"),
    ("box", ("state", "learned", "domain"), {"name": "risk/1"}, "domain"),
    ("box", ("state", "learned", "from_table"), 1, "rule"),
]


@pytest.mark.parametrize(("name", "path", "value", "says"), HOSTILE, ids=lambda each: str(each)[:40])
def test_a_file_that_is_not_as_it_should_be_is_refused(name, path, value, says, tmp_path):
    model, _ = fitted(name, "arrays")
    model.save(tmp_path / "m.json")
    saved = changed(json.loads((tmp_path / "m.json").read_text()), path, value)
    (tmp_path / "m.json").write_text(json.dumps(saved))
    with pytest.raises(ParameterError, match=says):
        dp.load(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("[]", "expected an object"),
        ("{", "not JSON"),
        ('{"format": "discreet-model/1", "format": "discreet-model/1"}', "twice"),
        ('{"format": "discreet-model/1", "state": NaN}', "not JSON"),
        ('{"format": "discreet-model/1", "state": ' + "[" * 100_000, "not JSON"),
        ("\x80\x04\x95", "not JSON"),
        (
            '{"format": "discreet-model/1", "model": "mean", "state": {"a": 1e999}, "privacy_certificate": {}}',
            "damaged",
        ),
    ],
)
def test_what_is_no_model_is_refused(text, says, tmp_path):
    (tmp_path / "m.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ParameterError, match=says):
        dp.load(tmp_path / "m.json")


def test_a_pickle_and_a_missing_file_are_refused(tmp_path):
    (tmp_path / "m.json").write_bytes(pickle.dumps(print))
    for name in ("m.json", "none.json", "", "a\0b"):
        with pytest.raises(ParameterError, match="no model"):
            dp.load(tmp_path / name if name else tmp_path)


def test_a_bit_that_was_changed_is_found(tmp_path):
    model, _ = fitted("mean", "arrays")
    model.save(tmp_path / "m.json")
    saved = json.loads((tmp_path / "m.json").read_text())
    saved["state"]["learned"]["value"] += 1e-12
    (tmp_path / "m.json").write_text(json.dumps(saved))
    with pytest.raises(ParameterError, match="damaged"):
        dp.load(tmp_path / "m.json")
