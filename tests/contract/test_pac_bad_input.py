"""Wrong inputs to the learners of rules: each gives the documented error, names what is wrong, and spends nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.estimators.boxes import BoxClassifier
from discreet.estimators.conjunctions import ConjunctionClassifier
from discreet.estimators.rules import FiniteClassClassifier, RuleClassifier

RNG = np.random.default_rng(3)
X = RNG.random((50, 2))
BITS = RNG.random((50, 4)) < 0.5
Y = RNG.integers(0, 2, 50)
CANARY = "zq81"
NAN, INFINITE = X.copy(), X.copy()
NAN[3, 1], INFINITE[3, 1] = np.nan, np.inf
DOMAIN = dp.Domain(
    age=dp.Number(0, 120, step=1),
    sex=dp.Category("F", "M"),
    region=dp.Category("a", "b", "c"),
    sick=dp.Category("no", "yes"),
)
PEOPLE = dp.Table(
    {"age": [30] * 50, "sex": ["F", "M"] * 25, "region": ["a"] * 50, "sick": ["no", "yes"] * 25}, DOMAIN, name="persons"
)


def box(book, **changed):
    return BoxClassifier(**{"epsilon": 1, "bounds": (0, 1), "classes": (0, 1), "ledger": book, **changed})


def conjunction(book, **changed):
    return ConjunctionClassifier(**{"epsilon": 1, "k": 2, "classes": (0, 1), "ledger": book, **changed})


def rule(book, **changed):
    given = {"epsilon": 1, "k": 2, "cuts": 8, "bounds": (0, 1), "classes": (0, 1), "ledger": book}
    return RuleClassifier(**{**given, **changed})


def finite(book, **changed):
    given = {"epsilon": 1, "hypotheses": "columns", "classes": (0, 1), "ledger": book}
    return FiniteClassClassifier(**{**given, **changed})


def fitted(book):
    return box(None, method="faces").fit(X, Y).set_params(ledger=book)


P, S, V = dp.errors.ParameterError, dp.errors.SchemaError, ValueError
BAD = {
    # labels
    "no classes": (lambda book: box(book, classes=None).fit(X, Y), P, "classes must be declared"),
    "one class": (lambda book: box(book, classes=(0,)).fit(X, Y), P, "at least two"),
    "three classes": (lambda book: conjunction(book, classes=(0, 1, 2)).fit(BITS, Y), P, "Name two classes"),
    "three public classes": (lambda book: box(book, classes="public").fit(X, np.arange(50) % 3), P, "found 3"),
    "classes twice": (lambda book: rule(book, classes=(0, 0)).fit(X, Y), P, "distinct"),
    "a label outside, box": (lambda book: box(book, classes=(0, 2)).fit(X, Y), P, "not declared"),
    "a label outside, conjunction": (lambda book: conjunction(book, classes=(0, 2)).fit(BITS, Y), P, "not declared"),
    "a label outside, rule": (lambda book: rule(book, classes=("no", "yes")).fit(X, Y), P, "'y' holds"),
    "a label outside, finite": (lambda book: finite(book, classes=(1, 2)).fit(BITS, Y), P, "not declared"),
    "labels of text": (lambda book: box(book).fit(X, [CANARY] * 50), P, "'y' holds"),
    "continuous labels": (lambda book: box(book, classes="public").fit(X, X[:, 0]), V, "Unknown label type"),
    # features
    "a box of text": (lambda book: box(book).fit(pd.DataFrame({"a": [CANARY] * 50}), Y), P, "column 'a'"),
    "a box of nan": (lambda book: box(book).fit(NAN, Y), P, "NaN or infinite"),
    "a box of infinities": (lambda book: box(book).fit(INFINITE, Y), P, "NaN or infinite"),
    "no features": (lambda book: box(book).fit(X[:, :0], Y), V, "0 feature"),
    "no boolean features": (lambda book: conjunction(book).fit(BITS[:, :0], Y), V, "0 feature"),
    "no rows": (lambda book: box(book).fit(X[:0], Y[:0]), V, "no rows"),
    "one dimension": (lambda book: conjunction(book).fit(BITS[:, 0], Y), V, "2D"),
    "unequal lengths": (lambda book: rule(book).fit(X, Y[:9]), V, "not equally long"),
    "numbers for booleans": (lambda book: conjunction(book).fit(X, Y), P, "booleans, or numbers that are 0 or 1"),
    "twos for booleans": (lambda book: conjunction(book).fit(BITS * 2, Y), P, "booleans, or numbers that are 0 or 1"),
    "nan for booleans": (lambda book: conjunction(book).fit(np.where(BITS, np.nan, 0), Y), P, "NaN or infinite"),
    "predictions that are numbers": (lambda book: finite(book).fit(X, Y), P, "booleans, or numbers that are 0 or 1"),
    "features of an array": (lambda book: box(book).fit(X, Y, features=["a"]), P, "features names"),
    # bounds and steps
    "no bounds": (lambda book: box(book, bounds=None).fit(X, Y), P, "bounds must be given"),
    "no bounds of a rule": (lambda book: rule(book, bounds=None).fit(X, Y), P, "bounds must be given"),
    "bounds reversed": (lambda book: box(book, bounds=(1, 0)).fit(X, Y), P, "low < high"),
    "bounds equal": (lambda book: box(book, bounds=(1, 1)).fit(X, Y), P, "low < high"),
    "bounds a number": (lambda book: box(book, bounds=1).fit(X, Y), P, "a pair"),
    "bounds infinite": (lambda book: box(book, bounds=(0, np.inf)).fit(X, Y), P, "finite"),
    "bounds nan": (lambda book: box(book, bounds=(np.nan, 1)).fit(X, Y), P, "finite"),
    "bounds of text": (lambda book: box(book, bounds="ab").fit(X, Y), P, "finite number"),
    "bounds for three": (lambda book: box(book, bounds=[(0, 1)] * 3).fit(X, Y), P, "one for each of 2, found 3"),
    "a pair among numbers": (lambda book: box(book, bounds=[(0, 1), 3]).fit(X, Y), P, "a pair"),
    "a step that does not fit": (lambda book: box(book, step=0.3).fit(X, Y), P, "whole number"),
    "step zero": (lambda book: box(book, step=0).fit(X, Y), P, "step must be > 0"),
    "steps for three": (lambda book: box(book, step=[1, 1, 1]).fit(X, Y), P, "one for each of 2, found 3"),
    "a step too small": (lambda book: box(book, step=1e-30).fit(X, Y), P, "2**62"),
    # k, cuts, alpha, beta, method
    "no k": (lambda book: conjunction(book, k=None).fit(BITS, Y), P, "k must be given"),
    "k zero": (lambda book: conjunction(book, k=0).fit(BITS, Y), P, "k must be a whole number >= 1"),
    "k above d": (lambda book: conjunction(book, k=5).fit(BITS, Y), P, "at most the number of features, 4; found 5"),
    "k a half": (lambda book: conjunction(book, k=1.5).fit(BITS, Y), P, "k must be a whole number"),
    "k above the conditions": (lambda book: rule(book, k=29).fit(X, Y), P, "at most the number of conditions, 28"),
    "cuts one": (lambda book: rule(book, cuts=1).fit(X, Y), P, "cuts must be a whole number >= 2"),
    "alpha one": (lambda book: box(book, alpha=1).fit(X, Y), P, "alpha must lie strictly"),
    "beta zero": (lambda book: box(book, beta=0).fit(X, Y), P, "beta must lie strictly"),
    "beta of text": (lambda book: finite(book, beta="small").fit(BITS, Y), P, "beta"),
    "unknown method, box": (lambda book: box(book, method="tree").fit(X, Y), P, "method must be one of auto, faces"),
    "unknown method, conjunction": (lambda book: conjunction(book, method="tree").fit(BITS, Y), P, "practical"),
    "method a number": (lambda book: rule(book, method=3).fit(X, Y), P, "method must be non-empty text"),
    "a method that needs delta": (lambda book: box(book, method="zcdp").fit(X, Y), P, "delta > 0"),
    "all boxes in three columns": (
        lambda book: box(book, method="exhaustive").fit(np.column_stack([X, X[:, 0]]), Y),
        P,
        "a row of the plan only",
    ),
    "all of too many conjunctions": (
        lambda book: conjunction(book, k=30, method="exact").fit(RNG.random((50, 90)) < 0.5, Y),
        P,
        "going through all conjunctions is refused",
    ),
    "verbose a word": (lambda book: conjunction(book, verbose="yes").fit(BITS, Y), P, "True or False"),
    "no hypotheses": (lambda book: finite(book, hypotheses=None).fit(BITS, Y), P, "hypotheses must be"),
    "an empty list": (lambda book: finite(book, hypotheses=[]).fit(BITS, Y), P, "hypotheses must be"),
    "another word": (lambda book: finite(book, hypotheses="rows").fit(BITS, Y), P, '"columns"'),
    "a predicate for an array": (
        lambda book: finite(book, hypotheses=[dp.Equals("sex", "F")]).fit(X, Y),
        P,
        "a function from a row to a label",
    ),
    # what every estimator checks
    "no epsilon": (lambda book: box(None, epsilon=None).fit(X, Y), P, "epsilon must be given"),
    "epsilon zero": (lambda book: box(book, epsilon=0).fit(X, Y), P, "epsilon must be > 0"),
    "delta one": (lambda book: conjunction(book, delta=1).fit(BITS, Y), P, "delta"),
    "a path for a ledger": (lambda book: box("persons.ledger").fit(X, Y), P, "ledger must be a Ledger"),
    "unknown relation": (lambda book: rule(book, neighbours="swap").fit(X, Y), P, "replace-one"),
    "the ledger's relation": (
        lambda book: box(book, neighbours="add-remove").fit(X, Y),
        dp.errors.LedgerMismatch,
        "add-remove",
    ),
    "fewer rows than the ledger's": (
        lambda book: conjunction(book).fit(BITS[:9], Y[:9]),
        dp.errors.LedgerMismatch,
        "50 persons",
    ),
    "more rows than the size": (lambda book: conjunction(book, size=20).fit(BITS, Y), P, "size=20"),
    **{
        f"{name}, {kind}": (
            lambda book, make=make, rows=rows, name=name, value=value: make(book).fit(rows, Y, **{name: value}),
            P,
            f"{name} is refused",
        )
        for kind, make, rows in (
            ("box", box, X),
            ("conjunction", conjunction, BITS),
            ("rule", rule, X),
            ("finite", finite, BITS),
        )
        for name, value in (("sample_weight", X[:, 0]), ("class_weight", "balanced"), ("warm_start", True))
    },
    # tables
    "a table without its ledger": (lambda book: box(None, bounds=None).fit(PEOPLE, "sick"), P, "its ledger"),
    "a table with a size": (lambda book: box(book, bounds=None, size=50).fit(PEOPLE, "sick"), P, "size belongs"),
    "no such target": (lambda book: box(book, bounds=None, classes=None).fit(PEOPLE, "sik"), S, "sick"),
    "no such feature": (
        lambda book: box(book, bounds=None, classes=None).fit(PEOPLE, "sick", features=["aeg"]),
        S,
        "age",
    ),
    "a box in a category": (
        lambda book: box(book, bounds=None, classes=None).fit(PEOPLE, "sick", features=["sex"]),
        P,
        "must be a Number",
    ),
    "a literal with three levels": (
        lambda book: conjunction(book, classes=None).fit(PEOPLE, "sick", features=["region"]),
        P,
        "a Category of two levels",
    ),
    "a literal that is a number": (
        lambda book: conjunction(book, classes=None).fit(PEOPLE, "sick", features=["age"]),
        P,
        "a Category of two levels",
    ),
    "the target among the features": (
        lambda book: rule(book, bounds=None, classes=None).fit(PEOPLE, "sick", features=["age", "sick"]),
        P,
        "must not contain the target",
    ),
    "a target with three levels": (
        lambda book: box(book, bounds=None, classes=None).fit(PEOPLE, "region"),
        P,
        "found 3",
    ),
    "a target that is a number": (
        lambda book: rule(book, bounds=None, classes=None).fit(PEOPLE, "age"),
        P,
        "need a Category",
    ),
    "other classes than declared": (
        lambda book: box(book, bounds=None, classes=("a", "b")).fit(PEOPLE, "sick"),
        P,
        "are not those",
    ),
    "columns of a table": (lambda book: finite(book, classes=None).fit(PEOPLE, "sick"), P, "for arrays of predictions"),
    "a rule that is none": (
        lambda book: finite(book, classes=None, hypotheses=[3]).fit(PEOPLE, "sick"),
        P,
        "must be a rule",
    ),
    "a predicate off the domain": (
        lambda book: finite(book, classes=None, hypotheses=[dp.Equals("sex", "X")]).fit(PEOPLE, "sick"),
        P,
        "not a declared level",
    ),
    # scores and certificates
    "a fit whose score has a price that is none": (
        lambda book: box(book, score_epsilon="\ud800").fit(X, Y),
        P,
        "score_epsilon",
    ),
    "a score without its epsilon": (lambda book: fitted(book).score(X, Y), P, "score_epsilon"),
    "a score with weights": (lambda book: fitted(book).score(X, Y, sample_weight=Y), P, "sample_weight is refused"),
    "a score of labels outside": (
        lambda book: fitted(book).set_params(score_epsilon=1).score(X, Y + 1),
        P,
        "not declared",
    ),
    "a certificate for nothing": (lambda book: fitted(book).certify(X, Y, epsilon=0), P, "epsilon must be > 0"),
    "a certificate that is sure": (lambda book: fitted(book).certify(X, Y, epsilon=1, beta=0), P, "beta"),
    "a certificate of narrow rows": (lambda book: fitted(book).certify(X[:, :1], Y, epsilon=1), V, "features"),
    "a certificate above the budget": (
        lambda book: fitted(book).certify(X, Y, epsilon=11),
        dp.BudgetExceeded,
        "left",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_reason_and_nothing_is_spent(name):
    act, error, says = BAD[name]
    book = dp.Ledger.in_memory(dp.Budget(10), PEOPLE)
    before = book.spent()
    with pytest.raises(error) as raised:
        act(book)
    assert says in str(raised.value)
    assert CANARY not in str(raised.value)
    assert book.spent() == before


def test_a_prediction_refuses_rows_that_are_not_like_those_of_the_fit():
    found = conjunction(None).fit(BITS, Y)
    with pytest.raises(dp.errors.ParameterError, match="0 or 1"):
        found.predict(BITS * 2)
    with pytest.raises(ValueError, match="features"):
        found.predict(BITS[:, :2])
    with pytest.raises(dp.errors.ParameterError, match="NaN or infinite"):
        fitted(None).predict(NAN)
    model = rule(dp.Ledger.in_memory(dp.Budget(10), PEOPLE), classes=None, bounds=None).fit(PEOPLE, "sick")
    with pytest.raises(dp.errors.ParameterError, match="named columns"):
        model.predict(X)
    with pytest.raises(dp.errors.SchemaError, match="region"):
        model.predict({"age": [1], "sex": ["F"]})


def test_an_unknown_argument_of_fit_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected"):
        box(None).fit(X, Y, sample_wieght=1)
