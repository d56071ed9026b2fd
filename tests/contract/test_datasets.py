"""One suite over every dataset: the same rows give the same integers, however they are stored, cut or ordered."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.answering.averaged_weights import Together
from discreet.data import Category, Domain, Identity, Matrix, Number, ParquetTable, Slice, Table, Text, Vector
from discreet.errors import ParameterError, SchemaError
from discreet.guarantee import Neighbours
from discreet.person_rows import PersonKey, PersonNumber, PersonRows
from discreet.query import (
    Among,
    And,
    Between,
    Count,
    Equals,
    Fixed,
    GroupCount,
    GroupSum,
    Histogram,
    KeyCount,
    Missing,
    Not,
    Of,
    OfPersons,
    Or,
    Persons,
    Sum,
    VectorSum,
)
from tests.elsewhere import Elsewhere

ROWS = 257
DOMAIN = Domain(
    {
        "age": Number(0, 100, step=1),
        "größe": Number("0.5", "2.5", step="0.05", missing=True),
        "sex": Category("F", "M", other="X", missing="?"),
        "smoker": Category(True, False),
        "wealth": Number(-(10**12), 10**12, step="0.01"),
        "anything": Number.any(),
        "city": Text(length=3, missing=True),
    }
)


def columns(seed=1):
    """Python columns with ties, clamping, missing values and undeclared levels."""
    rng = np.random.default_rng(seed)
    heights = np.round(rng.uniform(0, 3, ROWS), 2).tolist()
    return {
        "age": rng.integers(-5, 110, ROWS).tolist(),
        "größe": [None if place % 11 == 0 else height for place, height in enumerate(heights)],
        "sex": rng.choice(np.array(["F", "M", "other", None], dtype=object), ROWS).tolist(),
        "smoker": (rng.random(ROWS) < 0.3).tolist(),
        "wealth": np.round(rng.normal(0, 1e11, ROWS), 2).tolist(),
        "anything": rng.normal(0, 1e6, ROWS).tolist(),
        "city": rng.choice(np.array(["Rome", "Rom", "rom", "it's", None], dtype=object), ROWS).tolist(),
        "person": rng.integers(0, 90, ROWS).tolist(),
        "undeclared": ["never read"] * ROWS,
    }


def ordered(rows, order):
    return {name: [column[place] for place in order] for name, column in rows.items()}


def written(rows, folder, ending):
    path = folder / f"rows{len(list(folder.iterdir()))}.{ending}"
    if ending == "csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        parquet.write_table(pa.table(rows), path, row_group_size=100)
    return path


MAKERS = {
    "dict": lambda rows, folder, **more: Table(rows, DOMAIN, **more),
    "pandas": lambda rows, folder, **more: Table(pd.DataFrame(rows), DOMAIN, **more),
    "polars": lambda rows, folder, **more: Table(pl.DataFrame(rows), DOMAIN, **more),
    "pyarrow": lambda rows, folder, **more: Table(pa.table(rows), DOMAIN, **more),
    "csv": lambda rows, folder, **more: Table(written(rows, folder, "csv"), DOMAIN, **more),
    "parquet": lambda rows, folder, **more: Table(str(written(rows, folder, "parquet")), DOMAIN, **more),
    "parquet by 7": lambda rows, folder, **more: ParquetTable(
        written(rows, folder, "parquet"), DOMAIN, batch_rows=7, threads=1, **more
    ),
    "parquet by 100": lambda rows, folder, **more: ParquetTable(
        written(rows, folder, "parquet"), DOMAIN, batch_rows=100, unit_memory=5000, **more
    ),
}

MAKERS["elsewhere"] = lambda rows, folder, **more: Elsewhere(rows, DOMAIN, values=False, **more)
MAKERS["elsewhere by 1"] = lambda rows, folder, **more: Elsewhere(rows, DOMAIN, part=1, values=False, **more)

EACH = PersonRows(
    [PersonKey("sex", "sex")],
    [
        PersonNumber("n", "sum", Fixed(1), 3),
        PersonNumber("wealth sum", "sum", Of("wealth"), 3),
        PersonNumber("first", "least", "age", 3),
        PersonNumber("many", "different", "größe", 3),
    ],
    Between("age", 20, 80),
)
QUERIES = [
    Count(),
    Count(Between("größe", 1, 2)),
    Count(And(Among("sex", ["F", "X"]), Not(Or(Missing("größe"), Equals("smoker", True))))),
    Histogram(("sex", "smoker")),
    Histogram("größe", Between("age", 20, 80)),
    KeyCount(("age", "größe", "wealth")),
    KeyCount("anything", Equals("sex", "M")),
    KeyCount(("sex", "city")),
    Count(Missing("city")),
    Sum("wealth", Not(Missing("city"))),
    Count(Equals("city", "Rom")),
    Histogram(("sex", "smoker"), Or(Missing("größe"), Not(Among("city", ["it'", "rom", "Z"])))),
    Sum("wealth"),
    Sum("größe", Missing("sex")),
    VectorSum(("age", "größe")),
    VectorSum(("age", "wealth"), Equals("smoker", False)),
    GroupCount(("sex", "größe"), Between("age", 20, 80)),
    GroupSum(("sex",), Of("age")),
    Persons(where=Between("age", 20, 80)),
    Persons(("sex",)),
    OfPersons(EACH, Histogram("n")),
    OfPersons(EACH, GroupSum(("sex",), Of("wealth sum"), Between("first", 20, 60))),
    Together((Persons(("sex",)),)),
    Together((Persons(("sex",)), Sum("wealth"), Histogram("sex"))),
    Together((Count(), GroupSum(("sex",), Of("age")), Persons())),
]
SLICES = [
    [Slice("age", "low", 20), Slice("age", "high", 20), Slice("größe", "low", 30), Slice("wealth", "high", 5)],
    [Slice("anything", "high", 3), Slice("age", "low", 0), Slice("age", "low", 400)],
]


def transcript(data):
    """Every exact answer of a dataset, comparable with ==."""
    sums = [data.exact_sum(query) for query in QUERIES]
    slices = [
        data.exact_slices(each, where=where, disjoint=disjoint)
        for each in SLICES
        for where in (None, Among("sex", ["F", "M"]))
        for disjoint in (False, True)
    ]
    return (
        [found if isinstance(found, Counter) else (found.shape, found.tolist()) for found in sums],
        [[values.tolist() for values in found] for found in slices],
    )


@pytest.fixture(scope="module")
def expected():
    return transcript(Table(columns(), DOMAIN))


@pytest.mark.parametrize("kind", MAKERS)
def test_every_dataset_gives_the_same_integers(kind, tmp_path, expected):
    assert transcript(MAKERS[kind](columns(), tmp_path)) == expected


@pytest.mark.parametrize("kind", ["pandas", "parquet by 7"])
def test_the_order_of_the_rows_does_not_matter(kind, tmp_path, expected):
    order = np.random.default_rng(2).permutation(ROWS)
    assert transcript(MAKERS[kind](ordered(columns(), order), tmp_path)) == expected


@pytest.mark.parametrize("kept", [0, 300, 1000])
@pytest.mark.parametrize("kind", ["dict", "parquet by 7"])
def test_slices_that_take_several_passes_are_the_same(kind, kept, tmp_path, expected, monkeypatch):
    """Rows kept in memory for disjoint slices are bounded; 0: one pass for each slice."""
    monkeypatch.setattr("discreet.data.slices._KEPT", kept)
    assert transcript(MAKERS[kind](columns(), tmp_path)) == expected


@pytest.mark.parametrize("kind", MAKERS)
def test_every_dataset_keeps_the_same_rows_of_a_person(kind, tmp_path):
    order = np.random.default_rng(3).permutation(ROWS)
    reference = Table(columns(), DOMAIN, unit="person", rows_per_unit=2, name="people")
    data = MAKERS[kind](ordered(columns(), order), tmp_path, unit="person", rows_per_unit=2, name="people")
    every = KeyCount(DOMAIN.names)
    assert data.exact_sum(every) == reference.exact_sum(every)
    assert transcript(data)[0] == transcript(reference)[0]
    assert data.facts == reference.facts
    assert data.facts.size == len(set(columns()["person"]))
    assert data.exact_sum(Count()) == sum(min(2, count) for count in Counter(columns()["person"]).values())


@pytest.mark.parametrize("kind", ["dict", "pandas", "parquet by 7", "parquet by 100"])
def test_text_and_whole_identifiers_name_the_same_persons(kind, tmp_path):
    rows = columns()
    spelled = rows | {"person": [f"person {each}" for each in rows["person"]]}
    every = KeyCount(DOMAIN.names)
    found = [MAKERS[kind](each, tmp_path, unit="person", rows_per_unit=3).exact_sum(every) for each in (rows, spelled)]
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", MAKERS)
def test_facts_and_identity_are_declared_and_not_read(kind, tmp_path):
    data = MAKERS[kind](columns(), tmp_path, neighbours="add-remove", name="people", size=1000)
    assert (data.facts.domain, data.facts.neighbours, data.facts.size) == (DOMAIN, Neighbours("add-remove"), 1000)
    assert data.identity == Identity("people", Neighbours("add-remove"), None)
    assert (data.source is None) == (kind in ("dict", "pandas", "polars", "pyarrow", "elsewhere", "elsewhere by 1"))
    assert MAKERS[kind](columns(), tmp_path).facts.size == ROWS


@pytest.mark.parametrize("kind", MAKERS)
def test_an_empty_add_remove_table_answers_like_any_other(kind, tmp_path):
    rows = {name: column[:0] for name, column in columns().items()}
    if kind.startswith("parquet"):
        path = tmp_path / "rows.parquet"
        parquet.write_table(pa.table(columns()).slice(0, 0), path)
        make = ParquetTable if " " in kind else Table
        data = make(path, DOMAIN, neighbours="add-remove", unit="person", rows_per_unit=2)
        with pytest.raises(SchemaError, match="empty"):
            make(path, DOMAIN)
    else:
        data = MAKERS[kind](rows, tmp_path, neighbours="add-remove", unit="person", rows_per_unit=2)
        with pytest.raises(SchemaError, match="empty"):
            MAKERS[kind](rows, tmp_path)
    assert transcript(data) == transcript(Table(rows, DOMAIN, neighbours="add-remove"))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_question_that_does_not_fit_is_refused_before_a_row_is_read(kind, tmp_path):
    data = MAKERS[kind](columns(), tmp_path)
    for wrong in ([Slice("sex", "low", 1)], [Slice("agee", "low", 1)]):
        with pytest.raises((ParameterError, SchemaError)):
            data.exact_slices(wrong, disjoint=False)
    with pytest.raises(ParameterError, match="grid"):
        data.exact_slices([Slice("age", "low", 1)], where=Equals("age", 0.5), disjoint=False)
    with pytest.raises(SchemaError, match="Did you mean 'age'"):
        data.exact_sum(lambda batch: batch["agee"])


@pytest.mark.parametrize("fault", [("age", "text"), ("age", None), ("smoker", "maybe")])
@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_wrong_with_a_row_is_said_at_ingest(kind, fault, tmp_path):
    name, value = fault
    rows = columns()
    rows[name] = [value] * ROWS
    with pytest.raises(SchemaError, match=repr(name)):
        MAKERS[kind](rows, tmp_path)


def features():
    rng = np.random.default_rng(4)
    return rng.normal(size=(ROWS, 5)), rng.integers(0, 3, ROWS)


MATRICES = {
    "numpy": lambda rows: rows,
    "fortran": np.asfortranarray,
    "lists": lambda rows: rows.tolist(),
    "pandas": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(rows, schema=list("abcde"), orient="row"),
    "pyarrow": lambda rows: pa.table(dict(zip("abcde", rows.T, strict=True))),
}


def matrix_transcript(rows, labels):
    data = Matrix(rows, labels, features=Vector(5, norm=2), target=Number(0, 2, step=1))
    sums = [VectorSum("x"), VectorSum("x", Equals("y", 1)), Sum("y"), Histogram("y")]
    slices = data.exact_slices([Slice("y", "high", 10), Slice("y", "low", 100)], disjoint=True)
    return [data.exact_sum(query).tolist() for query in sums], [each.tolist() for each in slices]


@pytest.mark.parametrize("kind", MATRICES)
def test_every_matrix_gives_the_same_integers_in_any_order(kind):
    rows, labels = features()
    order = np.random.default_rng(5).permutation(ROWS)
    expected = matrix_transcript(rows, labels)
    assert matrix_transcript(MATRICES[kind](rows), labels) == expected
    assert matrix_transcript(MATRICES[kind](rows[order]), labels[order].tolist()) == expected


def test_dropping_a_row_of_a_matrix_changes_no_other_row_s_contribution():
    rows, labels = features()

    def total(chosen):
        data = Matrix(
            rows[chosen], labels[chosen], features=Vector(5, norm=2), target=Category(0, 1, 2), neighbours="add-remove"
        )
        return data.exact_sum(VectorSum("x"))

    everything = np.arange(ROWS)
    for place in range(0, ROWS, 16):
        assert np.array_equal(total(everything) - total(np.delete(everything, place)), total(everything[[place]]))
