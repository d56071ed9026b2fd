"""`discreet predict` from outside: a saved model says what the model says, without the table and without the ledger."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import discreet as dp
from discreet import example

FIT = ("fit", "people.toml", "logistic", "--target", "limited", "--features", "age,diseases,health", "--share", "1/4")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))


@pytest.fixture
def saved(run):
    """A model of the bundled people, in a folder without them."""
    example.write(".")
    assert run("ledger", "create", "people.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    assert run(*FIT, "--save", "limited.json")[0] == 0
    shutil.copy("people.parquet", "rows.parquet")
    for name in ("people.ledger", "people.parquet", "people.toml"):
        Path(name).unlink()
    return dp.load("limited.json")


def test_the_predictions_are_those_of_the_model(run, saved):
    code, out, err = run("predict", "limited.json", "rows.parquet", "--out", "found.csv")
    assert (code, err) == (0, "")
    assert "found.csv: 5,912 predictions by a LogisticRegression" in out
    assert "entry 3 of the ledger of 'people'" in " ".join(out.split())
    with Path("found.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["prediction", "probability of no", "probability of yes"]
    table = parquet.read_table("rows.parquet")
    assert [row["prediction"] for row in rows] == saved.predict(table).tolist()
    assert [float(row["probability of yes"]) for row in rows] == saved.predict_proba(table)[:, 1].tolist()


def test_rows_of_a_csv_file_are_read_as_declared(run, saved):
    Path("rows.csv").write_text("extra,health,diseases,age\nx,good,3,50\ny,poor,60,99\n")
    code, out, _ = run("predict", "limited.json", "rows.csv", "--out", "-")
    found = list(csv.DictReader(out.splitlines()))
    assert code == 0
    asked = {"health": ["good", "poor"], "diseases": [3, 60], "age": [50, 65]}
    assert [row["prediction"] for row in found] == saved.predict(asked).tolist()
    summary = json.loads(run("predict", "limited.json", "rows.csv", "--out", "found.csv", "--json")[1])
    assert (summary["rows"], summary["model"]) == (2, "logistic")


def test_a_model_of_arrays_takes_columns_by_name_or_by_place(run):
    x, y = np.linspace(-1, 1, 60).reshape(-1, 1), np.linspace(-1, 1, 60)
    model = dp.LinearRegression(epsilon=5, row_norm=1, target_bound=1).fit(x, y)
    model.save("line.json")
    Path("rows.csv").write_text("anything\n-1\n0.5\n")
    code, out, _ = run("predict", "line.json", "rows.csv", "--out", "-")
    assert code == 0
    assert [float(each) for each in out.split()[1:]] == model.predict([[-1], [0.5]]).tolist()
    Path("rows.csv").write_text("anything\nmuch\n")
    code, _, err = run("predict", "line.json", "rows.csv", "--out", "-")
    assert (code, "must hold numbers in every row" in err) == (2, True)
    assert "much" not in err


def test_a_file_without_rows_is_predicted_as_the_names_of_the_columns(run, saved):
    Path("rows.csv").write_text("health,diseases,age\n")
    code, out, _ = run("predict", "limited.json", "rows.csv", "--out", "p.csv")
    assert (code, "p.csv: 0 predictions" in out) == (0, True)
    head, _ = run("predict", "limited.json", "rows.csv", "--out", "-")[1].split("\n")
    assert Path("p.csv").read_text() == f"{head}\n"
    assert head.split(",")[0] == "prediction"
    assert len(head.split(",")) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.json", "rows.csv", "--out", "p.csv"], "there is no model at 'nowhere.json'"),
        (["rows.csv", "rows.csv", "--out", "p.csv"], "is no model"),
        (["limited.json", "nowhere.csv", "--out", "p.csv"], "there is no file"),
        (["limited.json", "rows.csv", "--out", "p.txt"], "--out must end in .csv"),
        (["limited.json", "rows.csv", "--out", "rows.csv"], "exists already"),
        (["limited.json", "other.csv", "--out", "p.csv"], "there is no column 'age' in the data"),
        (["limited.json", "odd.csv", "--out", "p.csv"], "levels that are not declared"),
    ],
)
def test_what_cannot_be_predicted_is_said_and_no_file_is_left(run, saved, arguments, says):
    Path("rows.csv").write_text("health,diseases,age\ngood,3,50\n")
    Path("other.csv").write_text("health,diseases\ngood,3\n")
    Path("odd.csv").write_text("health,diseases,age\nsplendid,3,50\n")
    code, out, err = run("predict", *arguments)
    assert code in (1, 2)
    assert out == ""
    assert says in " ".join(err.split())
    assert "splendid" not in err
    assert not Path("p.csv").exists()


def test_a_mean_predicts_nothing(run):
    dp.Mean(epsilon=1, bounds=(0, 1)).fit([0.5] * 30).save("mean.json")
    Path("rows.csv").write_text("x\n1\n")
    code, _, err = run("predict", "mean.json", "rows.csv", "--out", "-")
    assert (code, "is one number" in err) == (2, True)
