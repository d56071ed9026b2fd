"""A table of wrong inputs: each gives the documented error, names what is wrong, and spends nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet as dp

DOMAIN = dp.Domain(
    {
        "age": dp.Number(0, 120, step=1),
        "sex": dp.Category("F", "M"),
        "pay": dp.Number(-10, 10, step="0.5", missing=True),
        'it\'s "quoted"; drop': dp.Category(0, 1),
        "größe": dp.Number(0, 1, step="0.25"),
    }
)
ROWS = {
    "age": [30, 70],
    "sex": ["F", "M"],
    "pay": [1.0, None],
    'it\'s "quoted"; drop': [0, 1],
    "größe": [0.5, 1],
}
TABLE = dp.Table(ROWS, DOMAIN, name="people")
OTHER = dp.Table(ROWS, DOMAIN, name="other people")
ADDED = dp.Table(ROWS, DOMAIN, name="people", neighbours="add-remove")
SHORT = dp.Table({name: column[:1] for name, column in ROWS.items()}, DOMAIN, name="people")
COUNT = dp.Count(dp.Between("age", 65, 120))


def ledger(budget=None, **more):
    return dp.Ledger.in_memory(budget or dp.Budget(1, 1e-6), TABLE, **more)


def ask(mechanism, table=TABLE, **more):
    return lambda book: dp.release(mechanism() if callable(mechanism) else mechanism, table, ledger=book, **more)


def frame(**changed):
    return lambda book: dp.Table({**ROWS, **changed}, DOMAIN)


P, S = dp.errors.ParameterError, dp.errors.SchemaError
BAD = {
    # scales and rates
    "scale zero": (ask(lambda: dp.Laplace(COUNT, 0)), P, "scale must be > 0"),
    "scale negative": (ask(lambda: dp.Laplace(COUNT, -3)), P, "scale must be > 0"),
    "scale nan": (ask(lambda: dp.Laplace(COUNT, float("nan"))), P, "scale must be a finite number"),
    "scale infinite": (ask(lambda: dp.Laplace(COUNT, float("inf"))), P, "scale must be a finite number"),
    "scale text": (ask(lambda: dp.Laplace(COUNT, "wide")), P, "scale must be a finite number"),
    "scale none": (ask(lambda: dp.Laplace(COUNT, None)), P, "scale must be a number"),
    "scale bool": (ask(lambda: dp.Laplace(COUNT, True)), P, "scale must be a number"),
    "scale list": (ask(lambda: dp.Laplace(COUNT, [1])), P, "scale must be a number"),
    "scale complex": (ask(lambda: dp.Laplace(COUNT, 1j)), P, "scale must be a number"),
    "scale subnormal": (ask(dp.Laplace(COUNT, 5e-324)), P, "scale must lie between"),
    "scale huge": (ask(dp.Laplace(COUNT, 1e300)), P, "scale must lie between"),
    "gaussian scale subnormal": (ask(dp.Gaussian(COUNT, 1e-310)), P, "variance must lie between"),
    "rate zero": (ask(lambda: dp.Exponential(dp.Histogram("age"), 0)), P, "rate must be > 0"),
    "rate huge": (ask(dp.mechanisms.PermuteAndFlip(dp.Histogram("age"), 1e300)), P, "rate must lie between"),
    "stable bound fractional": (
        ask(lambda: dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount("age"), 1, 2.5)),
        P,
        "bound must be a whole",
    ),
    "stable keys wrong": (
        ask(lambda: dp.mechanisms.StableHistogram(dp.Histogram("age"), 1, 5)),
        P,
        "keys must be a KeyCount",
    ),
    "threshold scale zero": (ask(lambda: dp.mechanisms.AboveThreshold(0, 1)), P, "threshold_scale must be > 0"),
    "monotone not a flag": (
        ask(lambda: dp.mechanisms.AboveThreshold(1, 1, monotone="yes")),
        P,
        "monotone must be True or False",
    ),
    "monotone under replace-one": (
        lambda book: dp.converse(dp.mechanisms.AboveThreshold(9, 9, monotone=True), TABLE, ledger=book),
        P,
        "add-remove only",
    ),
    "not a mechanism": (ask("Laplace"), P, "mechanism"),
    "a query is not a mechanism": (ask(COUNT), P, "mechanism"),
    "noise on keys": (ask(lambda: dp.Laplace(dp.mechanisms.KeyCount("age"), 9)), P, "StableHistogram"),
    "noise on nothing": (ask(lambda: dp.Laplace("age", 9)), P, "expected a query"),
    "scores of nothing": (ask(lambda: dp.Exponential(None, 9)), P, "expected a query"),
    "scores that may not fit": (
        lambda book: dp.Exponential(dp.mechanisms.VectorSum(("x", "y")), 1).guarantee(
            dp.data.Facts(
                dp.Domain(x=dp.Number(0, 2**60, step=1), y=dp.Number(0, 1, step=1)), dp.Neighbours("add-remove"), None
            )
        ),
        P,
        "coarser step",
    ),
    "a conversation is not released": (ask(dp.mechanisms.AboveThreshold(9, 9)), P, "converse"),
    # columns and values
    "unknown column": (ask(lambda: dp.Laplace(dp.Count(dp.Equals("aeg", 3)), 9)), S, "Did you mean 'age'"),
    "unknown column in histogram": (ask(lambda: dp.Laplace(dp.Histogram("sexx"), 9)), S, "Did you mean 'sex'"),
    "unknown level": (ask(lambda: dp.Laplace(dp.Count(dp.Equals("sex", "f")), 9)), P, "Did you mean 'F'"),
    "off the grid": (ask(lambda: dp.Laplace(dp.Count(dp.Between("age", 64.5, 70)), 9)), P, "64 and 65"),
    "outside the bounds": (ask(lambda: dp.Laplace(dp.Count(dp.Between("age", 65, 130)), 9)), P, "120"),
    "interval upside down": (ask(lambda: dp.Laplace(dp.Count(dp.Between("age", 70, 65)), 9)), P, "low"),
    "interval of a category": (ask(lambda: dp.Laplace(dp.Count(dp.Between("sex", 0, 1)), 9)), P, "sex"),
    "nan in a predicate": (ask(lambda: dp.Laplace(dp.Count(dp.Equals("age", float("nan"))), 9)), P, "finite"),
    "no values among": (ask(lambda: dp.Laplace(dp.Count(dp.Among("sex", ())), 9)), P, ""),
    "a sum of a category": (ask(lambda: dp.Laplace(dp.Sum("sex"), 9)), P, "sex"),
    "a histogram of nothing": (ask(lambda: dp.Laplace(dp.Histogram(()), 9)), P, "column"),
    "the same column twice": (ask(lambda: dp.Laplace(dp.Histogram(("age", "age")), 9)), P, "age"),
    "a lambda for a predicate": (ask(lambda: dp.Laplace(dp.Count(lambda row: True), 9)), P, ""),
    # domains
    "bounds equal": (lambda book: dp.Number(3, 3, step=1), P, "low must be < high"),
    "bounds swapped": (lambda book: dp.Number(5, 3, step=1), P, "low must be < high"),
    "step zero": (lambda book: dp.Number(0, 3, step=0), P, "step must be > 0"),
    "step does not divide": (lambda book: dp.Number(0, 10, step=3), P, "whole number"),
    "bound infinite": (lambda book: dp.Number(0, float("inf"), step=1), P, "high must be a finite"),
    "too many codes": (lambda book: dp.Number(0, 10**30, step=1), P, "at most 2"),
    "no levels": (lambda book: dp.Category(), P, "at least one level"),
    "level twice": (lambda book: dp.Category("a", "a"), P, "distinct"),
    "level a float": (lambda book: dp.Category(0.5), P, "Number"),
    "levels as a set": (lambda book: dp.Category({"a", "b"}), P, "one by one"),
    "date without a date": (lambda book: dp.Date("soon", "later"), P, "low must be a date"),
    "date the wrong way round": (lambda book: dp.Date("1975-01-01", "1974-01-01"), P, "low must be <= high"),
    "text of no length": (lambda book: dp.Text(length=0), P, "length"),
    "database of nothing": (lambda book: dp.Database([]), P, "at least one table"),
    "empty domain": (lambda book: dp.Domain(), P, "at least one column"),
    "column name empty": (lambda book: dp.Domain({"": dp.Category("a")}), P, "non-empty"),
    "column not declared properly": (lambda book: dp.Domain(age=(0, 120)), P, "age"),
    "vector of no dimension": (lambda book: dp.Vector(0, norm=1), P, "dimension"),
    # ingest
    "column absent": (lambda book: dp.Table({"age": [1]}, DOMAIN), S, "sex"),
    "level not declared": (frame(sex=["F", "X"]), S, "other="),
    "null where none may be": (frame(age=[1, None]), S, "missing"),
    "nan where none may be": (frame(age=[1.0, float("nan")]), S, "missing"),
    "text in a number": (frame(age=["1", "2"]), S, "age"),
    "mixed types": (frame(age=[1, "x"]), S, "age"),
    "columns of unequal length": (frame(age=[1, 2, 3]), S, ""),
    "empty under replace-one": (lambda book: dp.Table({name: [] for name in ROWS}, DOMAIN), S, "empty"),
    "unknown relation": (lambda book: dp.Table(ROWS, DOMAIN, neighbours="swap"), P, "replace-one"),
    "rows a person zero": (lambda book: dp.Table(ROWS, DOMAIN, unit="sex", rows_per_unit=0), P, "rows_per_unit"),
    "unit absent": (lambda book: dp.Table(ROWS, DOMAIN, unit="person", rows_per_unit=2), S, "person"),
    "no such file": (lambda book: dp.Table("nowhere.parquet", DOMAIN), P, "nowhere"),
    "a number for a table": (lambda book: dp.Table(3, DOMAIN), P, ""),
    "declared size is wrong": (lambda book: dp.Table(ROWS, DOMAIN, size=3), P, "size"),
    # matrices
    "matrix with nan": (lambda book: dp.Matrix([[float("nan")]], features=dp.Vector(1, norm=1)), S, "NaN"),
    "matrix of text": (lambda book: dp.Matrix([["x"]], features=dp.Vector(1, norm=1)), S, ""),
    "matrix too wide": (lambda book: dp.Matrix([[1.0, 2.0]], features=dp.Vector(1, norm=1)), P, "1 columns"),
    # budgets and ledgers
    "a ledger from a path": (lambda book: dp.Ledger("people.ledger"), P, "Ledger.open"),
    "a dict for a domain": (lambda book: dp.Table(ROWS, {"age": dp.Number(0, 1, step=1)}), P, "Domain"),
    "a text for a domain": (lambda book: dp.Domain("age"), P, "Domain(age=Number(...))"),
    "a type for a column": (lambda book: dp.Domain(name=str), P, "never read from the rows"),
    "no pure guarantee, no delta": (
        lambda book: dp.release(dp.Gaussian(COUNT, 9), TABLE, ledger=ledger(dp.Budget(1))),
        dp.BudgetExceeded,
        "Laplace",
    ),
    "a failure, no delta": (
        lambda book: dp.release(
            dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount("age"), 99, 999), TABLE, ledger=ledger(dp.Budget(1))
        ),
        dp.BudgetExceeded,
        "nothing for failures",
    ),
    "calibrate to a budget": (
        lambda book: dp.calibrate(lambda s: dp.Laplace(COUNT, s), funds=dp.Budget(1), facts=book.facts),
        P,
        "Funds.of(budget",
    ),
    "a plan for a number": (lambda book: dp.plan("count", budget=0.5), P, "budget must be a Budget"),
    "a plan with a number too many": (lambda book: dp.plan("count", budget=dp.Budget(1), cell=3), P, "takes no other"),
    "epsilon zero": (lambda book: dp.Budget(0), P, "epsilon must be > 0"),
    "epsilon negative": (lambda book: dp.Budget(-1), P, "epsilon must be > 0"),
    "epsilon infinite": (lambda book: dp.Budget(float("inf")), P, "epsilon must be a finite"),
    "epsilon nan": (lambda book: dp.Budget(float("nan")), P, "epsilon must be a finite"),
    "epsilon of 5000 digits": (lambda book: dp.Ledger.in_memory(dp.Budget(10**5000), TABLE), P, "4000 digits"),
    "epsilon with a huge exponent": (lambda book: dp.Budget("1e999999999"), P, "4000 digits"),
    "share of 5000 digits": (lambda book: book.allow("ana", share=Fraction(1, 10**5000)), P, "4000 digits"),
    "delta one": (lambda book: dp.Budget(1, 1), P, "delta"),
    "delta negative": (lambda book: dp.Budget(1, -1e-9), P, "delta"),
    "budget is a number": (lambda book: dp.Ledger.in_memory(1.0, TABLE), P, "Budget"),
    "over the budget": (ask(dp.Laplace(COUNT, "0.1")), dp.BudgetExceeded, "left"),
    "another table's ledger": (ask(dp.Laplace(COUNT, 9), OTHER), dp.errors.LedgerMismatch, "people"),
    "another relation's ledger": (ask(dp.Laplace(COUNT, 9), ADDED), dp.errors.LedgerMismatch, "add-remove"),
    "another size": (ask(dp.Laplace(COUNT, 9), SHORT), dp.errors.LedgerMismatch, "2"),
    "a frame instead of a table": (ask(dp.Laplace(COUNT, 9), pd.DataFrame(ROWS)), P, "Table"),
    "no ledger": (lambda book: dp.release(dp.Laplace(COUNT, 9), TABLE, ledger=None), P, "ledger"),
    "unknown allowance": (ask(dp.Laplace(COUNT, 9), allowance="nobody"), P, "nobody"),
    "share above one": (lambda book: book.allow("ana", share=2), P, "share"),
    "memo not text": (ask(dp.Laplace(COUNT, 9), memo=3), P, "memo"),
    "request not text": (ask(dp.Laplace(COUNT, 9), request=3), P, "request"),
    "seeded randomness": (ask(dp.Laplace(COUNT, 9), rng=dp.rng.SeededRng(1)), dp.errors.NotPrivate, "testing"),
    "ledger file absent": (lambda book: dp.Ledger.open("no-such.ledger"), P, "no-such"),
    # guarantees and plans
    "relations added": (
        lambda book: (
            dp.Guarantee.of_pure(1, neighbours="replace-one") + dp.Guarantee.of_pure(1, neighbours="add-remove")
        ),
        P,
        "cannot be",
    ),
    "strong composition out of range": (lambda book: dp.composition.strong(2, delta=1e-6, times=3), P, "epsilon <= 1"),
    "unknown plan": (lambda book: dp.plan("everything", budget=dp.Budget(1)), P, "kind must be one of"),
    "plan without its number": (lambda book: dp.plan("histogram", budget=dp.Budget(1)), P, "cells"),
    "plan with beta one": (lambda book: dp.plan("count", budget=dp.Budget(1), beta=1), P, "beta"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_reason_and_nothing_is_spent(name):
    act, error, says = BAD[name]
    book = ledger()
    before = book.spent()
    with pytest.raises(error) as raised:
        act(book)
    assert says in str(raised.value)
    assert book.spent() == before


def test_there_are_at_least_sixty_of_them():
    assert len(BAD) >= 60


@pytest.mark.parametrize("epsilon", [1e-9, "0.001", 1, 50, 10**6, 10**30, Fraction(1, 10**15)])
def test_any_finite_positive_epsilon_is_accepted(epsilon):
    book = ledger(dp.Budget(epsilon, 1e-6))
    assert book.budget.epsilon == dp.exact.number(value=epsilon)


def test_odd_names_and_huge_values_are_ordinary():
    book = ledger()
    odd = dp.Laplace(dp.Count(dp.And(dp.Equals('it\'s "quoted"; drop', 1), dp.Equals("größe", 1))), 20)
    assert isinstance(dp.release(odd, TABLE, ledger=book, memo="\N{SNOWMAN}' --").value, int)
    huge = dp.Table({**ROWS, "age": np.array([1e300, -np.inf])}, DOMAIN, name="people")
    assert isinstance(dp.release(dp.Laplace(COUNT, 20), huge, ledger=book).value, int)
