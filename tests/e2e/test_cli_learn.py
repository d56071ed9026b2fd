"""`discreet fit`, `learn` and `suggest-bounds` from outside: what is printed, saved, charged and refused."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tomllib
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import discreet as dp
from discreet import cli, example
from discreet.catalogue import CATALOGUE
from discreet.cli.suggest_bounds import lines_for, rewrite
from discreet.data import Identity
from discreet.estimators.model_words import sheet
from discreet.funds import Price
from discreet.mechanisms import Laplace
from discreet.rule_words import covers

PRICE = ("--epsilon", "0.3", "--delta", "1e-7")
LOGISTIC = ("fit", "people.toml", "logistic", "--target", "limited")
BOX = ("learn", "people.toml", "box", "--target", "sex", "--features", "diseases")
BOUNDS = ("suggest-bounds", "people.toml")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The bundled tables, with a ledger each."""
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    example.write(".")
    for name in ("people", "years"):
        schema = dp.Schema.read(f"{name}.toml")
        identity = Identity(name, dp.Neighbours(schema.neighbours, schema.rows_per_unit or 1), schema.unit)
        dp.Ledger.create(f"{name}.ledger", dp.Budget(1, "1e-6"), identity).close()


@pytest.fixture
def run_json(run):
    def read(*arguments: str):
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return read


def spent(name: str = "people") -> tuple[int, int, int]:
    with dp.Ledger.open(f"{name}.ledger") as ledger:
        found = ledger.spent()
        return found.renyi, found.pure, found.failure


def charges(name: str = "people") -> list[dict]:
    with dp.Ledger.open(f"{name}.ledger") as ledger:
        return [each for each in ledger.entries() if each["kind"] == "charge"]


def words(text: str) -> str:
    return " ".join(text.split())


# Models.


@pytest.mark.parametrize(
    ("kind", "about", "method"),
    [
        ("logistic", ("--target", "limited", "--features", "age", "--radius", "4"), "objective"),
        ("linear", ("--target", "age", "--features", "family"), "exponential"),
        ("mean", ("--target", "visits"), "gaussian"),
        ("median", ("--target", "visits"), "exponential"),
    ],
)
def test_a_method_that_a_plan_lists_is_taken_by_its_name(run_json, kind, about, method):
    fitted = run_json("fit", "people.toml", kind, *about, *PRICE, "--method", method)
    assert fitted["method"].partition(",")[0] == method
    planned = run_json("plan", kind, "--schema", "people.toml", *about, *PRICE, "--size", "5912")
    (row,) = [row for row in planned["methods"] if row["method"] == method]
    assert fitted["bound"].startswith(f"excess risk <= {row['error']:.3g} per row in expectation")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("logistic", "--target", "limited", "--method", "newton"), "--method of logistic is one of auto, descent"),
        (("mean", "--target", "visits", "--method", "rank"), "--method of mean is one of auto, accelerated"),
        (("network", "--target", "sex", "--method", "descent"), "--method is not for network"),
        (("logistic", "--target", "limited", "--method", "exponential"), "dimensions"),
    ],
)
def test_a_method_that_does_not_serve_is_refused_and_costs_nothing(run, arguments, says):
    code, out, err = run("fit", "people.toml", *arguments, *PRICE)
    assert (code, out) == (2, "")
    assert says in err
    assert charges() == []


def test_a_logistic_model_is_printed_with_its_bound_its_price_and_what_is_left(run):
    code, out, err = run("fit", "people.toml", "logistic", "--target", "limited", "--features", "age, health", *PRICE)
    assert (code, err) == (0, "")
    assert re.search(r"^from +age, health$", out, re.MULTILINE)
    assert "The margin of limited = yes" in out
    for name in ("intercept", "age", "health = excellent", "health = poor"):
        assert re.search(rf"^ *{name} +[+-][0-9.e-]+ *$", out, re.MULTILINE), name
    assert "excess risk <=" in out
    assert "objective" in out
    (epsilon,) = re.findall(
        r"\(epsilon ([0-9.]+), delta 1e-07\), replace-one: entry 3 of the ledger of 'people'", words(out)
    )
    assert 0.2 < float(epsilon) <= 0.3  # a part of delta is kept for failures
    (charge,) = charges()
    with dp.Ledger.open("people.ledger") as ledger:
        part, left = ledger.remaining().part_of(Price(**_amounts(charge))), ledger.remaining()
    assert f"price      {dp.exact.percent(part, up=True)} of the budget" in out
    assert f"left       {dp.exact.percent(1 - left.used())} of the budget: about " in out
    assert "accura" not in out
    assert "score" not in out


def _amounts(charge: dict) -> dict:
    return {key: charge["price"][key] for key in ("renyi", "pure", "failure")}


def test_without_features_all_columns_serve_and_are_named(run):
    code, out, _ = run("fit", "people.toml", "logistic", "--target", "sex", "--share", "1/4")
    every = [name for name in dp.Schema.read("people.toml").domain.names if name != "sex"]
    assert code == 0
    assert f"from {', '.join(every)} (all that can serve" in words(out)


def test_json_has_plain_numbers_and_says_where_it_was_charged(run_json):
    found = run_json("fit", "people.toml", "linear", "--target", "age", "--features", "family,sex", "--share", "1/3")
    (charge,) = charges()
    assert (found["entry"], found["entry_hash"]) == (charge["seq"], charge["hash"])
    assert found["price"]["renyi_nano"] == charge["price"]["renyi"] == spent()[0]
    assert 33 < found["price"]["percent_of_budget"] < 33.34
    assert found["left"]["percent_of_budget"] == pytest.approx(100 - found["price"]["percent_of_budget"])
    assert found["more_like_this"] == 2
    assert found["guarantee"]["neighbours"] == "replace-one"
    assert found["table"] == "people"
    assert [each["column"] for each in found["features"]] == ["family", "sex"]


def test_a_mean_has_a_noise_range_and_a_quantile_is_a_value_of_the_grid(run, run_json):
    out = run("fit", "people.toml", "mean", "--target", "visits", "--epsilon", "0.05")[1]
    assert re.search(r"^mean of visits +[0-9.]+$", out, re.MULTILINE)
    assert "noise range (95 %)  0.507" in out  # Laplace of scale 50 / 0.05, over 5,912
    found = run_json("fit", "people.toml", "quantile", "--target", "age", "--q", "0.9", "--epsilon", "0.1")
    assert found["q"] == 0.9
    assert float(found["value"]).is_integer()
    assert found["noise_range_95"] is None
    assert "0.5" not in run("fit", "people.toml", "median", "--target", "age", "--epsilon", "0.1")[1].splitlines()[0]


def test_how_many_more_is_what_the_ledger_says_of_the_same_fit(run_json):
    found = run_json("fit", "people.toml", "mean", "--target", "visits", "--epsilon", "0.05")
    with dp.Ledger.open("people.ledger") as ledger:
        assert found["more_like_this"] == ledger.remaining().how_many(Laplace(dp.Sum("visits"), 50 * 20)) > 0


# What is saved is the model.

MIXED = dp.Domain(
    hours=dp.Number(-10, 10, step="0.5", missing=True),
    town=dp.Category("north", "south", other="elsewhere", missing="unknown"),
    old=dp.Category(False, True),
    pay=dp.Number(100, 300, step=1),
    mood=dp.Category("low", "middle", "high"),
)


def _mixed(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "hours": rng.uniform(-12, 12, rows),
            "town": rng.choice(["north", "south", "west", "east"], rows).astype(object),
            "old": rng.random(rows) < 0.5,
            "pay": rng.integers(90, 310, rows),
            "mood": rng.choice(["low", "middle", "high"], rows),
        }
    )
    frame.loc[:20, "hours"] = None
    frame.loc[15:30, "town"] = None
    return frame


def _fitted(estimator, target: str, rows: int = 300):
    table = dp.Table(_mixed(rows), MIXED, name="mixed")
    ledger = dp.Ledger.in_memory(dp.Budget(100, 1e-6), table.identity)
    return dp.Session(table, ledger).fit(estimator, target=target, features=["hours", "town", "old"])


def _counted(declared: dict, row: dict) -> tuple[object, bool]:
    """A row's value as the file says that it is read, and whether it is missing."""
    value = row[declared["column"]]
    missing = value is None or value != value
    if declared["kind"] == "category":
        if missing:
            return declared["missing"], False
        return (value if value in declared["levels"] else declared["other"]), False
    low, high, step = (declared[key] for key in ("low", "high", "step"))
    if missing:
        assert declared["missing"]
        return (low + high) / 2, True
    return low + math.floor((min(max(value, low), high) - low) / step) * step, False


def _coordinate(saved: dict, about: dict, row: dict) -> float:
    declared = next(each for each in saved["features"] if each["column"] == about["column"])
    value, missing = _counted(declared, row)
    if "level" in about:
        return float(value == about["level"])
    return float(missing) if "missing" in about else value


def _sums(saved: dict, row: dict) -> list[float]:
    return [
        each["intercept"] + sum(one["value"] * _coordinate(saved, one, row) for one in each["coefficients"])
        for each in saved["outputs"]
    ]


def _rows() -> list[dict]:
    return _mixed(80).to_dict("records")


def _record(kind: str, model, target: str) -> dict:
    from discreet.estimators.model_words import record

    assert kind == model.KIND
    assert model.target_.names == (target,)
    return json.loads(json.dumps(record(model)))


def test_a_saved_linear_model_predicts_what_the_model_does():
    model = _fitted(dp.LinearRegression(epsilon=50, delta=1e-7), "pay")
    saved = _record("linear", model, "pay")
    assert [_sums(saved, row)[0] for row in _rows()] == pytest.approx(model.predict(_mixed(80)), rel=1e-4)


def test_a_saved_logistic_model_predicts_what_the_model_does_and_with_what_probability():
    model = _fitted(dp.LogisticRegression(epsilon=50, delta=1e-7), "mood")
    saved = _record("logistic", model, "mood")
    classes = [each["class"] for each in saved["outputs"]]
    for row, predicted in zip(_rows(), model.predict(_mixed(80)), strict=True):
        sums = _sums(saved, row)  # of coefficients with as many digits as people read: two may be a tie
        assert sums[classes.index(predicted)] == pytest.approx(max(sums), rel=1e-4, abs=1e-4)
    domain = dp.Domain({**MIXED, "mood": dp.Category("low", "high", other="high")})
    table = dp.Table(_mixed(300), domain, name="mixed")
    ledger = dp.Ledger.in_memory(dp.Budget(100, 1e-6), table.identity)
    two = dp.LogisticRegression(epsilon=50, delta=1e-7, ledger=ledger).fit(table, "mood", features=["hours", "town"])
    saved = _record("logistic", two, "mood")
    margins = [_sums(saved, row)[0] for row in _rows()]
    assert (saved["outputs"][0]["positive"], saved["outputs"][0]["negative"]) == ("high", "low")
    chances = [(1 + math.exp(m)) / (3 + math.exp(m)) if m >= 0 else 2 / (3 + math.exp(-m)) for m in margins]
    assert chances == pytest.approx(two.predict_proba(_mixed(80))[:, 1], rel=1e-4)
    assert "(1 + e^m) / (3 + e^m)" in saved["how_to_use"]


def test_a_saved_network_predicts_what_the_network_does():
    model = _fitted(dp.MLPClassifier((3,), epsilon=50, delta=1e-7), "mood")
    saved = _record("network", model, "mood")

    def scaled(about: dict, row: dict) -> float:
        value = _coordinate(saved, about, row)
        if "level" in about or "missing" in about:
            return value
        declared = next(each for each in saved["features"] if each["column"] == about["column"])
        return 2 * (value - declared["low"]) / (declared["high"] - declared["low"]) - 1

    found = []
    for row in _rows():
        values = np.array([scaled(each, row) for each in saved["inputs"]])
        for place, layer in enumerate(saved["layers"]):
            values = (np.tanh(values) if place else values) @ layer["weights"] + layer["intercepts"]
        found.append(saved["classes"][int(values.argmax())])
    assert found == model.predict(_mixed(80)).tolist()


def test_a_model_is_saved_with_everything_and_can_be_read_by_people(run):
    fit = ("fit", "people.toml", "linear", "--target", "age", "--features", "family,health", "--share", "1/4")
    code, out, _ = run(*fit, "--save", "age.json")
    assert code == 0
    assert re.search(r"^saved +age.json$", out, re.MULTILINE)
    text = Path("age.json").read_text()
    saved = json.loads(text)
    assert '{"column": "family", "kind": "number", "low": 1, "high": 15, "step": 1}' in text
    assert max(map(len, text[: text.index('"state"')].splitlines())) < 600  # what people read comes first
    assert saved["guarantee"]["unit"] == "a row"
    assert (saved["table"], saved["model"], saved["discreet"]) == ("people", "linear", dp.__version__)
    assert (saved["entry"], saved["entry_hash"]) == (charges()[0]["seq"], charges()[0]["hash"])
    before = spent()
    code, _, err = run(*fit, "--save", "age.json")
    assert (code, spent()) == (2, before)
    assert "age.json exists already" in err
    assert Path("age.json").read_text() == text
    assert run(*fit, "--save", "age.json", "--force")[0] == 0
    assert json.loads(Path("age.json").read_text())["entry"] == saved["entry"]  # the stored one, free
    assert run(*fit, "--save", "age.json", "--force", "--again")[0] == 0
    assert json.loads(Path("age.json").read_text())["entry"] > saved["entry"]
    assert sorted(each for each in os.listdir() if "age" in each) == ["age.json"]


def test_a_file_that_cannot_be_written_is_found_before_anything_is_spent(run):
    fit = ("fit", "people.toml", "mean", "--target", "age", "--epsilon", "0.1", "--save", "nowhere/age.json")
    code, _, err = run(*fit)
    assert (code, spent()) == (2, (0, 0, 0))
    assert "cannot be written" in err


def test_what_is_no_plain_file_is_not_replaced_and_a_link_is_followed(run, tmp_path):
    fit = ("fit", "people.toml", "mean", "--target", "visits", "--epsilon", "0.05", "--force", "--save")
    os.mkfifo("pipe.json")
    Path("device.json").symlink_to("/dev/full")
    for name in ("pipe.json", "device.json", "/dev/full"):
        code, out, err = run(*fit, name)
        assert (code, out) == (2, "")
        assert "not a plain file" in err
    assert stat.S_ISFIFO(os.stat("pipe.json").st_mode)
    assert stat.S_ISCHR(os.stat("device.json").st_mode)
    assert charges() == []
    for name, there in (("new.json", False), ("old.json", True)):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        if there:
            (tmp_path / "elsewhere" / name).write_text("old")
        Path(name).symlink_to(tmp_path / "elsewhere" / name)
        assert run(*fit, name)[0] == 0
        assert Path(name).is_symlink()
        assert json.loads((tmp_path / "elsewhere" / name).read_text())["model"] == "mean"
    assert sorted(os.listdir("elsewhere")) == ["new.json", "old.json"]


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("classes", [3, 12])
def test_no_number_of_a_model_of_many_classes_is_broken(width, classes):
    towns = [f"town number {each}" for each in range(classes)]
    model = SimpleNamespace(
        KIND="logistic",
        target_=dp.Domain(town=dp.Category(*towns)),
        classes_=np.array(towns),
        encoding_=None,
        feature_names_in_=["age", "health = excellent"],
        coef_=np.array([[-0.00123, 12.34]] * classes),
        intercept_=np.array([-0.743 - each for each in range(classes)]),
        promise_="none",
        method_="descent",
    )
    out = sheet(model, [], width).text(width)
    assert max(map(len, out.splitlines())) <= width
    assert out.count("-0.00123") == out.count("+12.3") == classes
    assert (
        out.count("intercept") == out.count("health = excellent") == (1 if classes == 3 and width == 100 else classes)
    )
    for each, intercept in zip(towns, model.intercept_, strict=True):
        assert each in out
        assert f"{intercept:+.3g}" in out


# Rules.


def test_a_rule_is_printed_in_words_and_as_a_question(run, run_json):
    learn = ("learn", "people.toml", "box", "--target", "health", "--positive", "excellent")
    code, out, err = run(*learn, "--features", "age,diseases", "--epsilon", "0.15")
    assert (code, err) == (0, "")
    assert "health = excellent where" in out
    assert re.search(r'^discreet ask people.toml "SELECT COUNT\(\*\) FROM people WHERE .*"$', out, re.MULTILINE)
    assert "at most 4.10% of these rows more are wrong than by the best of all boxes" in words(out)
    assert "method     exhaustive" in out
    assert re.search(r"^covers +[0-9.e-]+ % of the declared values", out, re.MULTILINE)
    assert "about " in out
    assert "accura" not in out
    found = run_json("learn", "people.toml", "rule", "--target", "limited", "--k", "3", "--share", "1/3")
    assert found["method"] == "practical"
    assert found["target"]["positive"] == "yes"
    assert found["certificate"] is None
    assert 0 <= found["covers"] <= 1
    assert len(charges()) == 2
    with dp.Ledger.open("people.ledger") as ledger:
        assert ledger.verify(CATALOGUE) == ()


def test_the_question_of_a_rule_can_be_asked(run, run_json):
    learn = ("learn", "people.toml", "rule", "--target", "sex", "--positive", "F", "--share", "1/5")
    found = run_json(*learn)
    question = f"SELECT COUNT(*) FROM people{' WHERE ' if found['sql'] else ''}{found['sql']}"
    code, _, err = run("ask", "people.toml", question, "--alpha", "0.1")
    assert (code, err) == (0, "")


SMALL = dp.Domain(
    x=dp.Number(0, 1, step="0.25"),
    y=dp.Number(1, 3, step=1, missing=True),
    day=dp.Date("1974-01-01", "1974-03-31", step="month", missing=True),
    hour=dp.Timestamp("1974-01-01", "1974-01-01 01:59:59", step="hour"),
    town=dp.Category("north", "south", other="else", missing="unknown"),
    old=dp.Category(False, True),
    sex=dp.Category("F", "M", missing="M"),
)


def _everything():
    """All possible rows of the small domain."""
    from discreet.data import Batch

    sizes = [SMALL.column(name).size for name in SMALL.names]
    codes = dict(zip(SMALL.names, (each.ravel() for each in np.indices(sizes)), strict=True))
    return Batch(SMALL, int(np.prod(sizes)), codes.__getitem__)


def _asked(learned) -> np.ndarray:
    from discreet.rule_words import sql
    from discreet.sql import parse

    condition = sql(learned)
    text = f"SELECT COUNT(*) FROM small{' WHERE ' if condition else ''}{condition}"
    return parse(text, SMALL, table="small").where.mask(_everything())


def _learned(rule):
    from discreet.estimators.rules import LearnedRule

    return LearnedRule(rule, SMALL, rule.sentence(SMALL))


def test_the_condition_of_every_rule_of_two_conditions_means_the_rule():
    from discreet.pac.rules import Conjunction, Thresholds

    conditions = Thresholds(SMALL.names, 8)
    rows, count = _everything(), conditions.size(SMALL)
    assert count > 20
    for one in range(count):
        for other in range(one + 1):
            rule = Conjunction(conditions, (one, other))
            assert (_asked(_learned(rule)) == rule.mask(rows)).all(), rule.sentence(SMALL)
            assert covers(_learned(rule)) == Fraction(int(rule.mask(rows).sum()), rows.rows), rule.sentence(SMALL)


def test_the_condition_of_every_box_and_conjunction_means_the_rule():
    from discreet.pac.rules import BoxRule, Conjunction, Literals
    from discreet.rule_words import sentence

    rows = _everything()
    sides = [(low, high) for low in range(3) for high in range(3)]
    boxes = [BoxRule(("x", "y"), (a[0], b[0]), (a[1] + 2, b[1])) for a in sides for b in sides]
    boxes += [BoxRule(("day", "hour"), (a[0], low), (a[1], high)) for a in sides for low in (0, 1) for high in (0, 1)]
    literals = Literals(("old", "sex"))
    pairs = [(one, other) for one in range(4) for other in range(4)]
    for rule in [*boxes, *(Conjunction(literals, pair) for pair in pairs), Conjunction(literals, ())]:
        assert (_asked(_learned(rule)) == rule.mask(rows)).all(), rule.sentence(SMALL)
        assert covers(_learned(rule)) == Fraction(int(rule.mask(rows).sum()), rows.rows), rule.sentence(SMALL)
    assert covers(_learned(Conjunction(literals, (), never=True))) == 0
    assert sentence(_learned(Conjunction(literals, (0, 3)))) == "old = True and sex = F"
    assert sentence(_learned(Conjunction(literals, (0, 1)))) == "never"


def test_a_positive_level_becomes_the_last_of_two_classes():
    from discreet.modelling import with_positive

    schema = dp.Schema("small", SMALL)

    def classes(target, positive):
        return with_positive(schema, target, positive).domain[target]

    assert classes("town", "north") == dp.Category("not north", "north", other="not north", missing="not north")
    assert classes("town", "unknown") == dp.Category("not unknown", "unknown", other="not unknown", missing="unknown")
    assert classes("old", "false") == dp.Category(True, False)
    assert classes("sex", "F") == dp.Category("M", "F", missing="M")
    assert classes("sex", None) == SMALL["sex"]
    with pytest.raises(dp.errors.ParameterError, match="takes every value that is not declared"):
        classes("town", "else")
    with pytest.raises(dp.errors.ParameterError, match="Did you mean 'north'"):
        classes("town", "nort")
    with pytest.raises(dp.errors.ParameterError, match="--positive which of them"):
        classes("town", None)


def test_a_certificate_is_charged_for_itself(run_json):
    found = run_json(*BOX, "--epsilon", "0.1", "--certify", "0.05", "--save", "box.json")
    bought = found["certificate"]
    assert [each["seq"] for each in charges()] == [found["entry"], bought["entry"]]
    assert bought["probability"] == 0.95
    assert bought["guarantee"]["epsilon"] == pytest.approx(0.05)
    assert 0 < bought["rows"] <= 5912
    assert json.loads(Path("box.json").read_text())["certificate"] == bought
    assert found["left"]["renyi_nano"] == dp.Ledger.open("people.ledger").remaining().renyi


def test_a_rule_is_kept_when_its_certificate_is_too_dear(run):
    code, out, err = run(*BOX, "--epsilon", "0.1", "--certify", "3", "--save", "box.json")
    assert code == 3
    assert "sex = M where" in out
    assert "does not fit" in err or "this release costs" in err
    assert json.loads(Path("box.json").read_text())["certificate"] is None
    assert len(charges()) == 1


# Bounds.


def test_bounds_are_printed_as_lines_of_the_schema(run, run_json):
    code, out, err = run("suggest-bounds", "people.toml", "spending", "--epsilon", "0.2", "--coverage", "0.9")
    assert (code, err) == (0, "")
    (section,) = re.findall(r'\[columns.spending\]\nkind = "number"\n(?:\w+ = .*\n){3}', out)
    found = tomllib.loads(section)["columns"]["spending"]
    assert 0 <= found["low"] < found["high"] <= 2000
    assert "with probability 0.95 at most 5.00% of the rows plus" in words(out)
    assert "% of the budget" in out
    given = run_json("suggest-bounds", "people.toml", "schooling", "--share", "1/4")
    assert given["toml"].endswith("\nmissing = true")
    assert given["written"] is False


def test_bounds_are_written_into_the_schema_and_the_ledger_goes_on(run):
    text = Path("people.toml").read_text()
    loose = re.sub(
        r"(\[columns.income\][^\n]*\n).*?\n\n", r'\1kind = "any number"   # who knows\n\n', text, flags=re.DOTALL
    )
    Path("people.toml").write_text(loose)
    code, out, err = run("suggest-bounds", "people.toml", "income", "--epsilon", "0.5", "--write")
    assert (code, err) == (0, "")
    assert '-kind = "any number"   # who knows' in out
    assert '+kind = "number"' in out
    after = Path("people.toml").read_text()
    assert after.count("#") == loose.count("#") - 1
    assert "# of the family, dollars of the 1970s" in after
    before, now = (dp.Schema.read(_file(each)).domain for each in (loose, after))
    assert isinstance(now["income"], dp.Number)
    assert {name: now[name] for name in now if name != "income"} == {
        name: before[name] for name in before if name != "income"
    }
    assert run("fit", "people.toml", "mean", "--target", "income", "--epsilon", "0.05")[0] == 0
    assert [each for each in os.listdir() if each.startswith(".people")] == []


def _file(text: str) -> Path:
    path = Path("copy.toml")
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "section",
    [
        'columns.income = {kind = "any number"}',
        '[columns]\nincome = {kind = "any number"}',
        '[columns]\n[columns.income]\nkind = """\\\n  any \\\n  number"""\nmissing = false',
    ],
)
def test_a_schema_that_cannot_be_rewritten_is_refused_before_anything_is_spent(run, section):
    head = 'name = "people"\ndata = "people.parquet"\nledger = "people.ledger"\neach_row_is_a_person = true\n'
    Path("people.toml").write_text(f"{head}{section}\n")
    before = Path("people.toml").read_text()
    code, _, err = run("suggest-bounds", "people.toml", "income", "--epsilon", "0.5", "--write")
    assert code == 2
    assert "paste the lines instead" in err
    assert spent() == (0, 0, 0)
    assert Path("people.toml").read_text() == before
    assert run("suggest-bounds", "people.toml", "income", "--epsilon", "0.5")[0] == 0  # printed they can be


# Wrong use.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fit", "people.toml", "logistic", *PRICE), "Missing option '--target'"),
        (("fit", "people.toml", "forest", "--target", "sex", *PRICE), "'forest' is not one of 'logistic'"),
        (("fit", "nobody.toml", "mean", "--target", "age", *PRICE), "there is no schema at nobody.toml"),
        (("fit", "people.toml", "logistic", "--target", "limted", *PRICE), "Did you mean 'limited'"),
        (("fit", "people.toml", "mean", "--target", "agee", *PRICE), "Did you mean 'age'"),
        ((*LOGISTIC, "--features", "age,disease", *PRICE), "Did you mean 'diseases'"),
        ((*LOGISTIC, "--features", "age,age", *PRICE), "twice"),
        ((*LOGISTIC, "--features", "age,limited", *PRICE), "must not contain the target"),
        ((*LOGISTIC, "--features", "", *PRICE), "column '' is not declared"),
        (("fit", "people.toml", "logistic", "--target", "age", *PRICE), "linear, mean, median and quantile are for"),
        (("fit", "people.toml", "network", "--target", "age", *PRICE), "Categories of this table: site, coinsurance"),
        (("fit", "people.toml", "linear", "--target", "sex", *PRICE), "linear is for numbers, logistic is for"),
        (("fit", "people.toml", "linear", "--target", "schooling", *PRICE), "only rows that have a value"),
        (("fit", "people.toml", "mean", "--target", "schooling", *PRICE), "never missing"),
        (("fit", "people.toml", "mean", "--target", "age", "--features", "sex", *PRICE), "leave --features out"),
        (("fit", "people.toml", "quantile", "--target", "age", *PRICE), "which quantile?"),
        (("fit", "people.toml", "quantile", "--target", "age", "--q", "1.5", *PRICE), "q must"),
        ((*LOGISTIC, "--q", "0.5", *PRICE), "--q is for quantile"),
        ((*LOGISTIC, "--huber", "1", *PRICE), "--huber is for linear"),
        ((*LOGISTIC, "--radius", "-1", *PRICE), "radius must"),
        ((*LOGISTIC, "--force", *PRICE), "--force goes with --save"),
        (LOGISTIC, "either --epsilon 0.5 (and --delta 1e-7), or --share 1/3"),
        ((*LOGISTIC, *PRICE, "--share", "1/2"), "either --epsilon"),
        ((*LOGISTIC, "--share", "3/2"), "at most 1"),
        ((*LOGISTIC, "--share", "half"), "must be a finite number"),
        ((*LOGISTIC, "--epsilon", "0"), "epsilon must be > 0"),
        ((*LOGISTIC, *PRICE, "--ledger", "none.ledger"), "there is no ledger at none.ledger yet"),
        (
            ("learn", "people.toml", "box", "--target", "sex", "--features", "age,health", *PRICE),
            "a feature needs bounds, as numbers have: age, income, schooling",
        ),
        ((*BOX, "--k", "2", *PRICE), "--k is for conjunction and rule"),
        ((*BOX, "--positive", "W", *PRICE), "'W' is not a declared level"),
        ((*BOX, "--method", "best", *PRICE), "best"),
        ((*BOX, "--certify", "-1", *PRICE), "epsilon must be > 0"),
        (("learn", "people.toml", "rule", "--target", "health", *PRICE), "excellent, good, fair, poor"),
        (("learn", "people.toml", "rule", "--target", "age", *PRICE), "a rule is learned for a category"),
        (("learn", "people.toml", "conjunction", "--target", "sex", "--features", "site", *PRICE), "serve: limited."),
        (("learn", "people.toml", "conjunction", "--target", "sex", "--k", "2", *PRICE), "k must be at most"),
        ((*BOUNDS, "sex", *PRICE), "bounds are for numbers"),
        ((*BOUNDS, "spendin", *PRICE), "Did you mean 'spending'"),
        ((*BOUNDS, "spending", "--epsilon", "0.01"), "too few rows"),
        ((*BOUNDS, "spending", "--coverage", "0.99", "--epsilon", "0.1"), "ask for a coverage of at most"),
        ((*BOUNDS, "spending", "--write", "--rehearse", *PRICE), "made-up people"),
        (
            ("fit", "years.toml", "mean", "--target", "visits", *PRICE),
            "a person may have several: ask a session for AVG",
        ),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2_and_costs_nothing(run, arguments, says):
    code, out, err = run(*arguments)
    assert code == 2
    assert says in err
    assert out == ""
    assert "Traceback" not in err
    assert spent() == spent("years") == (0, 0, 0)


@pytest.mark.parametrize("command", [LOGISTIC, BOX, (*BOUNDS, "spending")])
def test_what_the_budget_does_not_allow_is_refused_with_exit_code_3(run, command):
    save = () if command[0] == "suggest-bounds" else ("--save", "kept.json")
    code, _, err = run(*command, "--epsilon", "2", "--delta", "1e-5", *save)
    assert code == 3
    assert "left" in err
    assert spent() == (0, 0, 0)
    assert not Path("kept.json").exists()


def test_an_interrupted_fit_stays_charged_and_the_ledger_is_sound(run, monkeypatch):
    def stopped(mechanism, data, rng):
        raise KeyboardInterrupt

    monkeypatch.setattr(Laplace, "run", stopped)
    code, _, err = run("fit", "people.toml", "mean", "--target", "age", "--epsilon", "0.1", "--save", "age.json")
    assert code == 130
    assert "what was charged stays charged" in err
    assert spent()[1] == 100_000_000
    assert not Path("age.json").exists()
    with dp.Ledger.open("people.ledger") as ledger:
        assert ledger.verify() is not None
        assert [each["kind"] for each in ledger.entries()][-1] == "burn"


def test_a_rule_is_shown_when_its_certificate_is_interrupted(run, monkeypatch):
    def stopped(mechanism, data, rng):
        raise KeyboardInterrupt

    monkeypatch.setattr(Laplace, "run", stopped)
    code, out, _ = run(*BOX, "--epsilon", "0.1", "--certify", "0.05")
    assert code == 130
    assert "sex = M where" in out
    assert len(charges()) == 2


# Rehearsals, narrow terminals, several rows per person.


@pytest.mark.parametrize(
    "command",
    [
        (*LOGISTIC, "--features", "age,health", "--share", "1/3", "--save", "kept.json"),
        (
            "learn",
            "people.toml",
            "rule",
            "--target",
            "health",
            "--positive",
            "poor",
            "--share",
            "1/3",
            "--save",
            "kept.json",
        ),
        (*BOUNDS, "age", "--share", "1/2"),
    ],
)
def test_a_rehearsal_marks_every_line_needs_no_rows_and_spends_nothing(run, command):
    Path("people.parquet").unlink()
    before = Path("people.ledger").read_bytes()
    for _ in range(2):
        code, out, err = run(*command, "--rehearse", *(["--force"] if "--save" in command else []))
        assert (code, err) == (0, "")
        assert all(line.startswith("rehearsal | ") for line in out.splitlines())
    assert Path("people.ledger").read_bytes() == before
    if "--save" in command:
        assert json.loads(Path("kept.json").read_text())["rehearsal"] is True


def test_forty_columns_are_enough(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    outputs = [
        run(*LOGISTIC, "--features", "age,health", "--epsilon", "0.1")[1],
        run("fit", "people.toml", "mean", "--target", "admissions", "--epsilon", "0.05")[1],
        run(*BOX, "--epsilon", "0.05", "--certify", "0.05", "--rehearse")[1],
        run(*BOUNDS, "spending", "--epsilon", "0.1")[1],
    ]
    for out in outputs:
        lines = [line for line in out.splitlines() if "discreet ask" not in line]
        assert len(lines) > 5
        assert max(map(len, lines)) <= 40
        assert "…" not in out


def test_several_rows_a_person_are_protected_together(run_json):
    fit = ("fit", "years.toml", "logistic", "--target", "limited", "--features", "age", "--share", "1/4")
    found = run_json(*fit)
    assert found["guarantee"]["neighbours"] == "replace-one (5 rows per person)"
    assert found["guarantee"]["unit"] == "person"
    learn = ("learn", "years.toml", "rule", "--target", "limited", "--features", "age", "--share", "1/4")
    bought = run_json(*learn, "--certify", "0.05")["certificate"]
    assert bought["error"] is None  # how many rows there are is private


@pytest.mark.parametrize("command", ["fit", "learn", "suggest-bounds"])
def test_the_examples_of_the_help_run(run, command):
    text = cli.commands.commands[command].get_help(click.Context(cli.commands.commands[command], info_name=command))
    examples = re.findall(r"^ +(discreet .*)$", text, re.MULTILINE)
    assert len(examples) >= 2
    for each in examples:
        code, out, err = run(*each.split()[1:])
        assert (code, err) == (0, ""), each
        assert "of the budget" in out


def test_bounds_are_written_through_a_link_and_the_link_stays(tmp_path, monkeypatch):
    example.write(tmp_path / "real")
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    schema = tmp_path / "real" / "people.toml"
    schema.write_text(
        schema.read_text().replace('kind = "number"\nlow = 0\nhigh = 2000\nstep = 10', 'kind = "any number"')
    )
    (tmp_path / "link.toml").symlink_to(schema)
    monkeypatch.chdir(tmp_path / "real")
    for line in (
        "ledger create people.toml --epsilon 5 --delta 1e-6",
        "suggest-bounds ../link.toml spending --epsilon 1 --write --data people.parquet --ledger people.ledger",
    ):
        found = CliRunner().invoke(cli.commands, line.split())
        assert found.exit_code == 0, (found.output, found.exception)
    assert (tmp_path / "link.toml").is_symlink()
    assert 'kind = "any number"' not in schema.read_text()


@pytest.mark.parametrize("size", ["1e-50", "25e-21", "1e50", "0.1"])
def test_bounds_of_any_size_are_written_as_the_schema_reads_them(tmp_path, size):
    """Whether bounds have more than thirty decimals is known after the charge alone: rows near 0 have such bounds."""
    high = Fraction(size)
    number = dp.Number(-high, high, step=high / 1000)
    head = 'name = "t"\nneighbours = "replace-one"\neach_row_is_a_person = true\n'
    text = rewrite(f'{head}[columns.w]\nkind = "any number"\n', "w", number)
    (tmp_path / "t.toml").write_text(text)
    assert dp.Schema.read(tmp_path / "t.toml").domain["w"] == number
    (tmp_path / "pasted.toml").write_text("\n".join([head, *lines_for("w", number), *lines_for("日 😀", number)]))
    assert dp.Schema.read(tmp_path / "pasted.toml").domain["日 😀"] == number
