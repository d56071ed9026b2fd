"""A value that stands in one row only must be found nowhere: not in a file, an answer, an error or a representation."""

from __future__ import annotations

import json
import traceback

import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.ledger import Address
from tests.ledger_doubles import edited

CANARY, NUMBER = "Canary-4f7a91", 86753090
DOMAIN = dp.Domain(
    name=dp.Category("ann", "bob", other="somebody"), pay=dp.Number(0, 100_000_000, step=1), sex=dp.Category("F", "M")
)
MECHANISMS = [
    dp.Laplace(dp.Count(dp.Equals("sex", "F")), 50),
    dp.Gaussian(dp.Histogram("name"), 50),
    dp.Laplace(dp.Sum("pay"), 10**10),
    dp.Exponential(dp.Histogram("name"), "0.01"),
    dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount("pay"), 100, 2000),
]


def rows():
    return {
        "name": ["ann", "bob", CANARY] * 10,
        "pay": [10, 20, NUMBER] * 10,
        "sex": ["F", "M", "F"] * 10,
        "secret": [CANARY] * 30,
    }


def found_in(text: str) -> list[str]:
    return [canary for canary in (CANARY, CANARY.lower(), str(NUMBER), "8675309", hex(NUMBER)[2:]) if canary in text]


def test_no_artefact_holds_a_value_of_a_row(tmp_path, where):
    import duckdb  # noqa: F401 - the file below is read through it
    import pandas as pd

    source = tmp_path / "input" / "people.parquet"
    source.parent.mkdir()
    pd.DataFrame(rows()).to_parquet(source)
    kinds = [dp.Table(source, DOMAIN, name="people"), dp.ParquetTable(source, DOMAIN, name="people", batch_rows=7)]
    ledger = dp.Ledger.create(where, dp.Budget(5, 1e-6), kinds[0])
    shown = []
    for table in kinds:
        shown += [repr(table), str(table), repr(table.facts)]
        for mechanism in MECHANISMS:
            got = dp.release(mechanism, table, ledger=ledger, memo="a question")
            shown += [repr(got.mechanism), repr(got.guarantee), str(got.price), repr(ledger)]
        with dp.converse(dp.mechanisms.AboveThreshold(50, 50), table, ledger=ledger) as talk:
            talk.ask(dp.mechanisms.IsAbove(dp.Count(dp.Equals("sex", "F")), 10_000))
            shown.append(repr(talk))
    ledger.verify(CATALOGUE)
    shown += list(ledger.export(redact=False))
    sidecars = [path for path in source.parent.iterdir() if path != source]
    assert sidecars
    for path in tmp_path.rglob("*"):
        if path.is_file() and path != source:
            shown.append(path.read_bytes().decode("latin-1"))
    for table in ("entries", "held", "kept") if isinstance(where, Address) else ():
        shown += map(str, edited(where, f"SELECT * FROM {table} WHERE ledger != ''"))
    assert len(shown) > 40
    assert not [hit for text in shown for hit in found_in(text)]


@pytest.mark.parametrize(
    "declared",
    [
        {"name": dp.Category("ann", "bob")},
        {"name": dp.Number(0, 1, step=1)},
        {"pay": dp.Category(10, 20)},
        {"secret": dp.Number(0, 1, step=1)},
        {"secret": dp.Category("x")},
    ],
)
def test_errors_at_ingest_name_the_column_and_never_the_value(declared):
    with pytest.raises(dp.errors.SchemaError) as raised:
        dp.Table(rows(), dp.Domain(declared))
    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value.args)
    assert next(iter(declared)) in str(raised.value)
    assert not found_in(told)


def test_a_mechanism_that_fails_after_the_charge_tells_nothing():
    class Bad:
        NAME = "bad/1"

        def stated_record(self):
            return {"name": "bad/1"}

        def guarantee(self, facts):
            return dp.Guarantee.of_pure(1, neighbours=facts.neighbours)

        def run(self, data, rng):
            raise ValueError(f"{data.exact_sum(dp.Sum('pay'))} {CANARY}")

    table = dp.Table(rows(), DOMAIN, name="people")
    ledger = dp.Ledger.in_memory(dp.Budget(5, 1e-6), table)
    with pytest.raises(dp.DiscreetError) as raised:
        dp.release(Bad(), table, ledger=ledger)
    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value.args)
    assert not found_in(told)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert ledger.spent().pure == 10**9
    assert not found_in(json.dumps(list(ledger.export(redact=False))))
