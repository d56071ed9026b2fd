"""The faces of the learners of rules: what they recover, what they promise, what they cost, and how the rules read."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import discreet as dp
from discreet.data import BitMatrix
from discreet.estimators.boxes import BoxClassifier
from discreet.estimators.conjunctions import ConjunctionClassifier
from discreet.estimators.input import Part, declared_numbers
from discreet.estimators.rules import FiniteClassClassifier, RuleClassifier, of_part, sentence
from discreet.mechanisms import Promise
from discreet.method import Offer
from discreet.pac.rules import BoxRule, Conjunction, Labels, Literals, Thresholds
from tests.pac_game import assert_honest, clopper_pearson_lower, clopper_pearson_upper, failures, mistakes, most_losses

LITTLE_NOISE = 1000
RNG = np.random.default_rng(12)
X = RNG.random((400, 2)).round(4)
Y = ((X >= 0.25) & (X <= 0.75)).all(axis=1).astype(int)
BITS = RNG.random((400, 6)) < 0.7
TARGET = (BITS[:, 1] & ~BITS[:, 4] & BITS[:, 5]).astype(int)


def box(**changed):
    given = {"epsilon": LITTLE_NOISE, "bounds": (0, 1), "classes": (0, 1), "method": "faces"}
    return BoxClassifier(**{**given, **changed})


def conjunction(**changed):
    given = {"epsilon": LITTLE_NOISE, "k": 3, "classes": (0, 1), "method": "exact"}
    return ConjunctionClassifier(**{**given, **changed})


def rule(**changed):
    given = {
        "epsilon": LITTLE_NOISE,
        "k": 4,
        "cuts": 101,
        "bounds": (0, 1),
        "classes": (0, 1),
        "method": "practical",
    }
    return RuleClassifier(**{**given, **changed})


def finite(**changed):
    return FiniteClassClassifier(**{"epsilon": LITTLE_NOISE, "hypotheses": "columns", "classes": (0, 1), **changed})


MAKERS = {
    "box": (box, X, Y),
    "conjunction": (conjunction, BITS, TARGET),
    "rule": (rule, X, Y),
    "finite": (finite, BITS, TARGET),
}
EACH = pytest.mark.parametrize(("make", "rows", "labels"), MAKERS.values(), ids=MAKERS)


def rule_of(model):
    return model.box_ if isinstance(model, BoxClassifier) else model.rule_


DOMAIN = dp.Domain(
    age=dp.Number(18, 90, step=1),
    sex=dp.Category("F", "M"),
    smoker=dp.Category("no", "yes"),
    region=dp.Category("north", "south", "east"),
    pay=dp.Number(0, 100, step="0.5", missing=True),
    sick=dp.Category("no", "yes"),
)
AGE = RNG.integers(18, 91, 500)
SEX, SMOKER = RNG.choice(["F", "M"], 500), RNG.choice(["no", "yes"], 500)
PEOPLE = {
    "age": AGE,
    "sex": SEX,
    "smoker": SMOKER,
    "region": RNG.choice(["north", "south", "east"], 500),
    "pay": [None if place % 5 == 0 else float(place % 100) for place in range(500)],
    "sick": np.where((AGE >= 30) & (AGE <= 60) & (SEX == "F"), "yes", "no"),
}


def table(people=PEOPLE, **declared):
    return dp.Table(people, DOMAIN, **{"name": "people", **declared})


def ledger(data=None, budget=None, **more):
    """A ledger in memory for 400 persons in arrays, or for a table."""
    rows = BitMatrix(BITS, TARGET, target=dp.Category(0, 1), name="persons") if data is None else data
    return dp.Ledger.in_memory(budget or dp.Budget(10**5, 1e-6), rows, **more)


# What is recovered, and how it reads.


def test_little_noise_recovers_a_box_and_it_reads_as_a_sentence():
    found = box().fit(X, Y)
    assert found.score(X, Y) > 0.99
    low, high = found.box_.rule.low, found.box_.rule.high
    assert (
        str(found.box_)
        == f"{low[0] / 1e5:g} <= x1 <= {high[0] / 1e5:g} and {low[1] / 1e5:g} <= x2 <= {high[1] / 1e5:g}"
    )
    assert found.predict([[0.5, 0.5], [0.5, 0.9], [2, 0.5]]).tolist() == [1, 0, 0]


def test_little_noise_recovers_a_conjunction_and_it_reads_as_a_sentence():
    found = conjunction().fit(BITS, TARGET)
    assert str(found.rule_) == "v2 and not v5 and v6"
    assert found.score(BITS, TARGET) == 1
    named = conjunction().fit(pd.DataFrame(BITS, columns=list("abcdef")), TARGET)
    assert str(named.rule_) == "b and not e and f"


def test_little_noise_recovers_a_rule_and_conditions_on_one_column_are_joined():
    people = table()
    found = rule(k=3, bounds=None, classes=None, ledger=ledger(people)).fit(people, "sick", features=["age", "sex"])
    assert re.fullmatch(r"(29|30|31) <= age <= (59|60|61) and sex = F", str(found.rule_))
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.predict({"age": [35, 35, 70], "sex": ["F", "M", "F"]}).tolist() == ["yes", "no", "no"]


def test_a_rule_in_words():
    conditions = Thresholds(["age", "region", "smoker"], cuts=73)
    numbers = {conditions.in_words(DOMAIN, each): each for each in range(conditions.size(DOMAIN))}

    def said(*words, never=False):
        return sentence(Conjunction(conditions, tuple(numbers[each] for each in words), never), DOMAIN)

    assert said() == "always"
    assert said(never=True) == "never"
    assert said("age >= 30", "age <= 60", "age >= 20") == "30 <= age <= 60"
    assert said("age >= 30", "age <= 30") == "age = 30"
    assert said("age <= 30", "age >= 31") == "never"
    assert said("region != north", "age >= 40") == "age >= 40 and region != north"
    assert said("region != north", "region != south") == "region = east"
    assert said("smoker = yes", "smoker != yes") == "never"
    assert said("age <= 40", "region = east") == "age <= 40 and region = east"


def test_little_noise_chooses_the_right_hypothesis_from_columns_functions_and_rules():
    columns = finite().fit(BITS, BITS[:, 3])
    assert (columns.index_, str(columns.rule_)) == (3, "x4")
    assert (columns.predict(BITS) == BITS[:, 3]).all()

    def broken(row):
        raise ValueError(row)

    def left(row):
        return int(row[0] < 0.5)

    functions = finite(hypotheses=[broken, lambda row: 1, left]).fit(X, X[:, 0] < 0.5)
    assert (functions.index_, str(functions.rule_)) == (2, "left")
    assert functions.score(X, X[:, 0] < 0.5) == 1
    people = table()
    listed = [
        dp.Equals("sex", "M"),
        BoxRule(["age"], [12], [42]),
        lambda row: "yes" if 30 <= row["age"] <= 60 and row["sex"] == "F" else "no",
        dp.Between("age", 30, 60) & dp.Equals("sex", "F") & dp.Equals("region", "north"),
    ]
    rules_ = finite(hypotheses=listed, classes=None, ledger=ledger(people)).fit(people, "sick")
    assert (rules_.index_, str(rules_.rule_)) == (2, "hypothesis 2")
    assert rules_.predict(pl.DataFrame(PEOPLE, strict=False)).tolist() == PEOPLE["sick"].tolist()
    assert "sick" not in rules_.feature_names_in_


def test_a_function_over_a_table_never_sees_the_target():
    people, seen = table(), set()
    finite(hypotheses=[lambda row: seen.update(row) or "no"], classes=None, ledger=ledger(people)).fit(people, "sick")
    assert seen == set(DOMAIN) - {"sick"}


@pytest.mark.parametrize("method", ["basic", "zcdp", "search", "prefix", "reorder-slice", "faces", "exhaustive"])
def test_every_method_for_boxes_can_be_named(method):
    found = box(epsilon=50, delta=1e-6, method=method, step=Fraction(1, 63)).fit(X, Y)
    assert found.method_ == method
    assert set(found.predict(X)) <= {0, 1}


@pytest.mark.parametrize(
    "method", ["lecture-counts", "counts", "exact", "greedy-basic", "greedy", "self-deleting", "practical"]
)
def test_every_method_for_conjunctions_can_be_named(method):
    found = conjunction(epsilon=50, delta=1e-6, method=method).fit(BITS, TARGET)
    assert found.method_ == method
    assert set(found.predict(BITS)) <= {0, 1}


# What is promised.


def test_auto_takes_a_theorem_where_it_is_good_enough_and_says_so():
    many, labels = np.repeat(X, 60, axis=0), np.repeat(Y, 60)
    fits = [box(epsilon=1, delta=1e-6, method="auto", alpha=0.05).fit(many, labels) for _ in range(5)]
    for found in fits:
        assert found.method_ == "search"
        assert found.promise_.bound <= 0.05
        assert "if a box" in str(found.promise_)
    # Each fit may break its promise with probability 0.05; all five do with probability below 1e-6.
    assert any(1 - found.score(many, labels) <= found.promise_.bound for found in fits)


def test_auto_goes_face_by_face_where_no_theorem_is_good_enough_and_says_what_it_would_take():
    found = box(epsilon=1, delta=1e-6, method="auto", alpha=0.05).fit(X, Y)
    assert found.method_ == "faces"
    assert found.promise_.bound is None
    assert "are proven to make the error at most 0.05" in str(found.promise_)


def test_without_a_wanted_promise_auto_goes_face_by_face_however_many_rows_there_are():
    many = np.repeat(X, 60, axis=0)
    found = box(epsilon=1, delta=1e-6, method="auto").fit(many, np.repeat(Y, 60))
    assert found.method_ == "faces"
    assert "none was asked for; with alpha=0.05" in str(found.promise_)


@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_more_rows_with_wrong_labels_do_not_spoil_what_auto_learns(rows):
    rng = np.random.default_rng(rows)
    points = rng.uniform(0, 100, (rows, 2))
    truth = ((points > 20) & (points < 75)).all(axis=1)
    noisy = truth ^ (rng.random(rows) < 0.05)
    learned = BoxClassifier(epsilon=1, delta=1e-6, bounds=(0, 100), step="0.1", classes=(False, True))
    assert np.mean(learned.fit(points, noisy).predict(points) == truth) > 0.95
    conditions = RuleClassifier(epsilon=1, delta=1e-6, k=4, bounds=(0, 100), step="0.1", classes=(False, True))
    assert np.mean(conditions.fit(points, noisy).predict(points) == truth) > 0.93


def test_a_box_has_its_bounds_in_the_features_own_values():
    found = box(epsilon=50, method="faces").fit(X, Y)
    low, high = found.bounds_["x1"]
    assert 0 <= low <= high <= 1


def test_auto_goes_through_all_boxes_of_a_small_declared_grid():
    found = box(epsilon=1, method="auto", step=Fraction(1, 50)).fit(np.repeat(X, 10, axis=0), np.repeat(Y, 10))
    assert found.method_ == "exhaustive"
    assert found.promise_.bound <= 0.05


def test_auto_goes_through_all_conjunctions_when_that_is_quick():
    found = conjunction(epsilon=1, method="auto").fit(BITS, TARGET)
    assert found.method_ == "exact"
    assert found.promise_.bound <= 0.05
    wide = RNG.random((400, 300)) < 0.5
    far = conjunction(epsilon=1, delta=1e-6, method="auto", k=4).fit(wide, wide[:, 0])
    assert far.method_ == "practical"
    assert far.promise_.bound is None


def test_verbose_says_how_long_all_conjunctions_take(capsys):
    conjunction(verbose=True).fit(BITS, TARGET)
    assert "going through 234 conjunctions of 6 variables" in capsys.readouterr().err
    conjunction().fit(BITS, TARGET)
    conjunction(verbose=True, method="counts").fit(BITS, TARGET)
    assert capsys.readouterr().err == ""


def test_a_promise_without_a_theorem_says_so():
    assert "nothing is proved about the mistakes of 'practical'" in str(rule(method="practical").fit(X, Y).promise_)


def test_a_promise_about_a_part_of_a_table_is_about_its_rows():
    offer = Offer("one", None, Promise(0.01, "theorem", beta=0.05, condition="if the labels are right"))
    part = Part(BitMatrix(BITS[:100], TARGET[:100], target=dp.Category(0, 1)), 400)
    assert of_part(offer, part).promise.bound == pytest.approx(0.04)
    small = Part(BitMatrix(BITS[:4], TARGET[:4], target=dp.Category(0, 1)), 400)
    assert of_part(offer, small).promise.bound is None
    whole = BitMatrix(BITS, TARGET, target=dp.Category(0, 1))
    assert of_part(offer, whole) == offer


def test_under_add_remove_a_promise_supposes_as_many_rows_as_were_declared():
    found = conjunction(epsilon=1, neighbours="add-remove", size=400).fit(BITS, TARGET)
    assert "if there are 400 rows or more: at most" in str(found.promise_)
    unknown = conjunction(epsilon=1, neighbours="add-remove").fit(BITS, TARGET)
    assert "private and none is declared" in str(unknown.promise_)


@EACH
def test_add_remove_needs_no_size(make, rows, labels):
    found = make(epsilon=1, delta=1e-6, neighbours="add-remove", method="auto").fit(rows, labels)
    assert str(found.guarantee_).endswith("add-remove: this fit alone")
    assert found.promise_.bound is None


# What it costs.


@EACH
def test_a_fit_costs_what_was_asked_and_is_charged_once(make, rows, labels):
    book = ledger()
    found = make(epsilon=1, ledger=book).fit(rows, labels)
    charges = [body for body in book.entries() if body["kind"] == "charge"]
    assert [body["seq"] for body in charges] == [found.entry_]
    assert charges[0]["memo"] == type(found).__name__
    assert 0.99 < found.guarantee_.epsilon(0) <= 1
    assert f"entry {found.entry_} of the ledger of 'persons'" in str(found.guarantee_)


@pytest.mark.parametrize("method", ["zcdp", "prefix", "reorder-slice"])
@pytest.mark.parametrize("with_ledger", [False, True])
def test_what_may_fail_is_within_its_delta_with_and_without_a_ledger(method, with_ledger):
    book = ledger(budget=dp.Budget(1, 1e-6)) if with_ledger else None
    found = box(epsilon=1, delta=1e-6, method=method, ledger=book).fit(X, Y)
    assert 0.9 < found.guarantee_.epsilon(1e-6) <= 1


@EACH
def test_an_epsilon_that_the_ledger_does_not_have_is_refused_and_costs_nothing(make, rows, labels):
    book = ledger(budget=dp.Budget("0.5"))
    before = book.spent()
    found = make(epsilon=1, ledger=book)
    with pytest.raises(dp.BudgetExceeded):
        found.fit(rows, labels)
    assert book.spent() == before
    with pytest.raises(NotFittedError):
        found.predict(rows)


def test_without_an_epsilon_all_that_is_left_is_spent():
    book = ledger(budget=dp.Budget(2))
    conjunction(epsilon=1, ledger=book).fit(BITS, TARGET)
    found = conjunction(epsilon=None, ledger=book).fit(BITS, TARGET)
    assert found.guarantee_.epsilon(0) == pytest.approx(1, rel=1e-5)


@EACH
def test_score_is_exact_without_a_ledger_and_charged_with_one(make, rows, labels):
    found = make().fit(rows, labels)
    right = np.mean(found.predict(rows) == labels)
    assert found.score(rows, labels) == right
    book = ledger()
    found = make(ledger=book).fit(rows, labels)
    before = book.spent()
    with pytest.raises(dp.errors.ParameterError, match="score_epsilon"):
        found.score(rows, labels)
    assert book.spent() == before
    found.set_params(score_epsilon=40)
    assert found.score(rows, labels) == pytest.approx(np.mean(found.predict(rows) == labels), abs=2 / 400)
    assert book.spent().pure - before.pure == 40 * 10**9


def test_a_charged_score_needs_a_public_number_of_rows():
    rows = BitMatrix(BITS, TARGET, target=dp.Category(0, 1), name="persons", neighbours="add-remove")
    book = ledger(rows)
    found = conjunction(ledger=book, neighbours="add-remove", score_epsilon=1).fit(BITS, TARGET)
    with pytest.raises(dp.errors.ParameterError, match="public number of rows"):
        found.score(BITS, TARGET)


@EACH
def test_a_certificate_bounds_the_mistakes_and_costs_its_epsilon(make, rows, labels):
    alone = make().fit(rows, labels)
    wrong = int(np.sum(alone.predict(rows) != labels))
    found = alone.certify(rows, labels, epsilon=20, beta=1e-6)
    assert wrong <= found.rows <= wrong + 3
    assert found.error == found.rows / 400
    assert str(found.guarantee).endswith("this certificate alone")
    assert found.entry is None
    assert str(found).startswith(f"wrong on at most {found.rows} rows (")
    book = ledger()
    charged = make(ledger=book).fit(rows, labels)
    before = book.spent().pure
    again = charged.certify(rows, labels, epsilon="0.5")
    assert book.spent().pure - before == 5 * 10**8
    assert again.entry == charged.entry_ + 2
    assert f"entry {again.entry} of the ledger" in str(again)


def test_a_certificate_on_a_part_is_about_the_rows_that_are_there():
    book = ledger()
    found = conjunction(ledger=book, size=400).fit(BITS[:100], TARGET[:100])
    certified = found.certify(BITS[:100], 1 - TARGET[:100], epsilon=20, beta=1e-6)
    assert certified.error == 1
    assert 100 <= certified.rows <= 103


def test_a_certificate_under_add_remove_is_a_number_of_rows():
    found = conjunction(neighbours="add-remove").fit(BITS, TARGET)
    assert found.certify(BITS, TARGET, epsilon=20).error is None


# Rows.


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (X, np.zeros(400)),
        (X, np.ones(400)),
        (np.full((400, 2), 0.5), Y),
        (X[:1], Y[:1]),
        (X[:2] * 1e300, Y[:2]),
    ],
    ids=["no positives", "no negatives", "constant columns", "one person", "beyond the bounds"],
)
@pytest.mark.parametrize("make", [box, rule])
def test_odd_numbers_are_ordinary_results(make, rows, labels):
    for method in ("auto", "faces" if make is box else "practical"):
        found = make(epsilon=1, delta=1e-6, method=method).fit(rows, labels)
        assert len(found.predict(rows)) == len(rows)
        assert found.promise_.bound is None
        assert found.promise_.reason
    assert str(rule_of(found))


@pytest.mark.parametrize("labels", [np.zeros(400), np.ones(400), TARGET])
@pytest.mark.parametrize("rows", [BITS, np.ones((400, 6)), np.zeros((400, 6))], ids=["bits", "ones", "zeros"])
def test_odd_booleans_are_ordinary_results(rows, labels):
    for make in (conjunction, finite):
        found = make(epsilon=1, method="auto").fit(rows, labels)
        assert len(found.predict(rows)) == 400
        assert str(found.rule_)
    found = conjunction(epsilon=1, method="auto").fit(rows[:1], labels[:1])
    assert found.promise_.bound is None


def test_points_outside_the_bounds_are_moved_to_them():
    wide = box(bounds=(0, 1)).fit(np.where(X > 0.9, 50, X), Y)
    assert wide.predict([[0.5, 0.5], [1e9, 0.5]]).tolist() == [1, 0]
    edge = box(bounds=(0, 0.5), step="0.001").fit(X, (X >= 0.5).all(axis=1))
    assert edge.predict([[7, 9], [0.2, 0.2]]).tolist() == [1, 0]


def test_bounds_and_steps_are_one_for_all_or_one_for_each():
    same = declared_numbers((0, 1), None, 2)
    assert same == [dp.Number(0, 1, step="0.00001")] * 2
    each = declared_numbers([(0, 1), (-10, 10)], [Fraction(1, 10), 1], 2)
    assert each == [dp.Number(0, 1, step="0.1"), dp.Number(-10, 10, step=1)]
    assert declared_numbers(np.array([[0, 1], [2, 4]]), "0.5", 2) == [
        dp.Number(0, 1, step="0.5"),
        dp.Number(2, 4, step="0.5"),
    ]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_their_feature_names(kind):
    frame = kind({"age": X[:, 0], "y": X[:, 1]})
    found = box().fit(frame, Y)
    assert found.feature_names_in_.tolist() == ["age", "y"]
    assert "<= age <=" in str(found.box_)
    assert found.score(frame, Y) > 0.99
    with pytest.raises(ValueError, match="feature names"):
        found.predict(kind({"age": X[:, 0], "z": X[:, 1]}))


def test_labels_of_any_kind_come_back_as_they_were_and_the_last_class_is_positive():
    words = np.array(["in", "out"])[1 - Y]
    found = box(classes=("out", "in")).fit(X, words)
    assert found.classes_.tolist() == ["out", "in"]
    assert (found.predict(X) == words).mean() > 0.99
    assert conjunction(classes="public").fit(BITS, TARGET.astype(bool)).predict(BITS).dtype == bool


# From a table.


def test_a_session_fits_every_learner_to_its_table():
    people = table()
    session = dp.Session(people, ledger(people))
    boxed = session.fit(BoxClassifier(epsilon=LITTLE_NOISE, method="faces"), target="sick", features=["age"])
    assert str(boxed.box_).startswith(("29", "30"))
    literal = session.fit(ConjunctionClassifier(epsilon=LITTLE_NOISE, k=1), target="sick")
    assert literal.feature_names_in_.tolist() == ["sex", "smoker"]
    assert str(literal.rule_) in ("never", "not sex", "sex", "always")
    everything = session.fit(RuleClassifier(epsilon=LITTLE_NOISE, k=3, cuts=73), target="sick")
    assert everything.feature_names_in_.tolist() == ["age", "sex", "smoker", "region", "pay"]
    assert len(everything.predict(pd.DataFrame(PEOPLE))) == 500
    chosen = FiniteClassClassifier(epsilon=LITTLE_NOISE, hypotheses=[dp.Equals("sex", "F"), dp.Equals("sex", "M")])
    assert session.fit(chosen, target="sick").index_ == 0


def test_a_box_takes_the_numbers_of_a_table_and_a_missing_one_is_in_no_box():
    people = table()
    found = box(bounds=None, classes=None, ledger=ledger(people)).fit(people, "sick")
    assert found.feature_names_in_.tolist() == ["age", "pay"]
    assert found.predict({"age": [45], "pay": [None]}).tolist() == ["no"]


def test_a_file_and_a_frame_give_the_same_mechanism(tmp_path):
    pl.DataFrame(PEOPLE, strict=False).write_parquet(tmp_path / "people.parquet")
    read = dp.ParquetTable(tmp_path / "people.parquet", DOMAIN, name="people", batch_rows=100)
    for make in (box, rule):
        found = [
            make(bounds=None, classes=None, ledger=ledger(data)).fit(data, "sick", features=["age"])
            for data in (table(), read)
        ]
        assert found[0].mechanism_ == found[1].mechanism_
        assert [model.score_epsilon for model in found] == [None, None]


def test_a_model_of_a_table_is_judged_on_a_table_with_the_same_columns():
    people = table()
    found = rule(k=3, bounds=None, classes=None, ledger=ledger(people), score_epsilon=40).fit(
        people, "sick", features=["age", "sex"]
    )
    right = np.mean(found.predict(PEOPLE) == PEOPLE["sick"])
    assert found.score(people, "sick") == pytest.approx(right, abs=2 / 500)
    assert found.certify(people, "sick", epsilon=20, beta=1e-6).rows == pytest.approx(500 * (1 - right), abs=3)
    with pytest.raises(dp.errors.ParameterError, match="judged on a table"):
        found.certify(X, Y, epsilon=1)
    wider = dp.Domain({**DOMAIN, "age": dp.Number(0, 120, step=1)})
    other = dp.Table(PEOPLE, wider, name="people")
    with pytest.raises(dp.errors.ParameterError, match="not declared as those"):
        found.certify(other, "sick", epsilon=1)


def test_a_model_of_arrays_is_judged_on_arrays():
    people, found = table(), conjunction().fit(BITS, TARGET)
    found.set_params(ledger=ledger(people))
    with pytest.raises(dp.errors.ParameterError, match="judged on arrays"):
        found.certify(people, "sick", epsilon=1)


def test_several_rows_a_person_cost_more_noise_and_are_not_counted_exactly():
    twice = {name: np.repeat(np.asarray(values, dtype=object), 2) for name, values in PEOPLE.items()}
    people = table({**twice, "person": np.repeat(np.arange(500), 2)}, unit="person", rows_per_unit=2)
    book = ledger(people)
    for make, more in ((box, {}), (rule, {"k": 2})):
        found = make(epsilon=1, bounds=None, classes=None, ledger=book, score_epsilon=1, **more).fit(
            people, "sick", features=["age"]
        )
        assert 0.99 < found.guarantee_.epsilon(0) <= 1
        assert found.guarantee_.neighbours.rows == 2
        with pytest.raises(dp.errors.ParameterError, match="one row a person"):
            found.score(people, "sick")
        assert found.certify(people, "sick", epsilon=40, beta=1e-6).rows >= 0


# Clones, pickles.


@EACH
def test_a_clone_shares_the_ledger_and_nothing_else(make, rows, labels):
    book = ledger()
    given = make(ledger=book)
    copy = clone(given)
    assert copy.ledger is book
    assert copy.get_params() == given.get_params()


@EACH
def test_a_fitted_model_survives_a_pickle(make, rows, labels):
    found = make().fit(rows, labels)
    again = pickle.loads(pickle.dumps(found))
    assert (again.predict(rows) == found.predict(rows)).all()
    assert str(rule_of(again)) == str(rule_of(found))
    assert again.mechanism_ == found.mechanism_
    assert again.promise_ == found.promise_


def old(row):
    return "yes" if row["age"] > 50 else "no"


def test_a_model_of_functions_over_a_table_is_pickled_with_them():
    people = table()
    found = finite(hypotheses=[old], classes=None, ledger=ledger(people)).fit(people, "sick")
    again = pickle.loads(pickle.dumps(found.set_params(ledger=None)))
    assert again.predict(PEOPLE).tolist() == np.where(AGE > 50, "yes", "no").tolist()


def test_a_fitted_model_holds_no_rows():
    canary = 0.8137512
    found = box(epsilon=1).fit(np.full((400, 2), canary), Y)
    assert np.float64(canary).tobytes() not in pickle.dumps(found)


# The harness for the game of lecture 12 counts what it says.


class Guess:
    """Learns the right rule in all but one of `lucky` runs."""

    labels = Labels("y", 1)

    def __init__(self, lucky):
        self.runs, self.lucky = 0, lucky

    def run(self, data, rng):
        self.runs += 1
        return (2, 9, 10) if self.runs % self.lucky else (3,)


def test_the_harness_counts_mistakes_and_lost_games():
    data = BitMatrix(BITS, TARGET, target=dp.Category(0, 1))
    right = Conjunction(Literals("x"), (2, 9, 10))
    wrong = Conjunction(Literals("x"), (3,))
    assert mistakes(right, data, Guess.labels) == 0
    assert mistakes(wrong, data, Guess.labels) == int(np.sum(~BITS[:, 1] != (TARGET == 1)))
    lost = failures(Guess(5), data, lambda value: Conjunction(Literals("x"), value), 0.1, 20, dp.rng.Rng())
    assert lost == 4
    each = failures(Guess(5), lambda run: data, lambda value: Conjunction(Literals("x"), value), 0.1, 20, dp.rng.Rng())
    assert each == 4


def test_the_harness_convicts_only_what_is_proved():
    allowed = most_losses(200, 0.05)
    assert_honest(allowed, 200, 0.05)
    with pytest.raises(AssertionError, match="runs lost"):
        assert_honest(allowed + 1, 200, 0.05)
    assert clopper_pearson_upper(0, 100, 0.95) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert clopper_pearson_upper(100, 100, 0.95) == 1
    assert clopper_pearson_lower(100, 100, 0.95) == pytest.approx(0.05 ** (1 / 100))
    assert clopper_pearson_lower(0, 100, 0.95) == 0


@EACH
def test_nobody_at_all_is_an_ordinary_table_under_add_remove(make, rows, labels):
    nobody, unlabelled = rows[:0], labels[:0]
    found = make(epsilon=1, delta=1e-6, neighbours="add-remove", size=100, method="auto").fit(nobody, unlabelled)
    assert str(found.guarantee_).endswith("add-remove: this fit alone")
    assert str(found.rule_)
    assert set(found.predict(rows[:20])) <= set(found.classes_)
    with pytest.raises(dp.errors.ParameterError, match="no rows"):
        make(epsilon=1, delta=1e-6, method="auto").fit(nobody, unlabelled)
