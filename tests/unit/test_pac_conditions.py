"""Conditions on rows and packed booleans: counted as by hand, cut any way, and never told."""

from __future__ import annotations

import copy
import pickle
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import arrays
from discreet.data import Batch, BitMatrix, Bits, Category, Domain, Number, Table, common_ones, packed, unpacked
from discreet.data import matrix as matrix_module
from discreet.errors import ParameterError, SchemaError
from discreet.pac.rules import Conjunction, Labels, Literals, Mistakes, Thresholds
from discreet.query import Histogram

ROWS, VARIABLES = 203, 5
CLASSES = Category("no", "yes")
LABELS = Labels("y", "yes")
BITS = Literals("x")


def booleans(rows=ROWS, variables=VARIABLES, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((rows, variables)) < 0.4, np.where(rng.random(rows) < 0.3, "yes", "no")


def matrix(rows, labels, **more):
    return BitMatrix(rows, labels, target=CLASSES, **more)


def falsified(data, conditions=BITS):
    def counted(batch):
        positive = LABELS.mask(batch)
        return conditions.falsified(batch, (positive, ~positive))

    return data.exact_sum(counted).tolist()


def by_hand(rows, labels):
    """How many rows of each label falsify v1, not v1, v2, ..."""
    groups = (rows[labels == "yes"], rows[labels == "no"])
    return [[int(count) for v in group.T for count in ((~v).sum(), v.sum())] for group in groups]


# --- packing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 200])
def test_packing_and_unpacking_are_inverse_and_fill_with_zeros(rows):
    mask = booleans(rows)[0].T
    words = packed(mask)
    assert words.dtype == np.uint64
    assert words.shape == (VARIABLES, -(-rows // 64))
    assert np.array_equal(unpacked(words, rows), mask)
    assert int(np.bitwise_count(words).sum()) == mask.sum()


@pytest.mark.parametrize("cached", [1, 7, 2**16])
def test_common_ones_are_counted_whatever_fits_the_cache(cached, monkeypatch):
    monkeypatch.setattr(arrays, "_CACHED", cached)
    rows, _ = booleans(500, 9)
    mask = rows[:, 0] ^ rows[:, 1]
    assert common_ones(packed(rows.T), packed(mask)).tolist() == (rows & mask[:, None]).sum(axis=0).tolist()
    assert common_ones(np.zeros((3, 0), dtype=np.uint64), np.zeros(0, dtype=np.uint64)).tolist() == [0, 0, 0]


# --- BitMatrix: what every dataset must do ----------------------------------------------------------------------------

KINDS = {
    "booleans": lambda rows: rows,
    "floats": lambda rows: rows.astype(float),
    "bytes": lambda rows: rows.astype(np.uint8),
    "fortran": np.asfortranarray,
    "lists": lambda rows: rows.tolist(),
    "pandas": lambda rows: pd.DataFrame(rows),
    "polars": lambda rows: pl.DataFrame(rows, schema=list("abcde"), orient="row"),
    "pyarrow": lambda rows: pa.table(dict(zip("abcde", rows.T, strict=True))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_of_booleans_gives_the_same_integers(kind):
    rows, labels = booleans()
    data = matrix(KINDS[kind](rows), labels)
    assert falsified(data) == by_hand(rows, labels)
    assert data.facts.domain == Domain(x=Bits(VARIABLES), y=CLASSES)
    assert data.facts.size == ROWS
    assert data.exact_sum(Histogram("y")).tolist() == [(labels == "no").sum(), (labels == "yes").sum()]


def test_the_order_of_the_rows_and_the_cuts_do_not_matter(monkeypatch):
    rows, labels = booleans(1000)
    expected = by_hand(rows, labels)
    order = np.random.default_rng(1).permutation(1000)
    assert falsified(matrix(rows[order], labels[order])) == expected
    monkeypatch.setattr(matrix_module, "_BLOCK", 128)
    assert falsified(matrix(rows, labels)) == expected


def test_a_table_of_two_level_columns_counts_the_same_as_a_matrix():
    rows, labels = booleans()
    names = list("abcde")
    domain = Domain({name: Category("off", "on") for name in names} | {"y": CLASSES})
    columns = {name: np.where(v, "on", "off").tolist() for name, v in zip(names, rows.T, strict=True)}
    table = Table(columns | {"y": labels.tolist()}, domain)
    literals = Literals(names)
    assert falsified(table, literals) == falsified(matrix(rows, labels))
    for numbers in [(), (0,), (1,), (2, 5, 8), (0, 1)]:
        expected = Mistakes(Conjunction(BITS, numbers), LABELS)
        found = Mistakes(Conjunction(literals, numbers), LABELS)
        assert table.exact_sum(found) == matrix(rows, labels).exact_sum(expected)


def test_an_empty_add_remove_matrix_answers_with_zeros():
    data = matrix(np.zeros((0, 3), dtype=bool), [], neighbours="add-remove")
    assert falsified(data) == [[0] * 6] * 2
    with pytest.raises(SchemaError, match="empty"):
        matrix(np.zeros((0, 3), dtype=bool), [])


@pytest.mark.parametrize(
    ("rows", "labels", "error", "words"),
    [
        (np.zeros((3, 0)), ["no"] * 3, ParameterError, "at least one column"),
        (np.zeros(3), ["no"] * 3, ParameterError, "at least one column"),
        ([[0, 2], [1, 0]], ["no"] * 2, SchemaError, "0 or 1"),
        ([[0, float("nan")], [1, 0]], ["no"] * 2, SchemaError, "0 or 1"),
        ([["a", "b"]], ["no"], SchemaError, "numbers"),
        (np.zeros((3, 2)), ["no"] * 2, SchemaError, "equally long"),
        (np.zeros((2, 2)), ["no", "perhaps"], SchemaError, "'y'"),
    ],
)
def test_what_is_wrong_with_booleans_is_said_at_ingest(rows, labels, error, words):
    with pytest.raises(error, match=words):
        matrix(rows, labels)


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_packed_rows_are_neither_pickled_nor_copied(leave):
    with pytest.raises(TypeError, match="private rows"):
        leave(matrix(*booleans()))


def test_no_value_of_a_row_is_printed():
    canary = 86753.25
    rows, labels = booleans()
    data = matrix(rows, labels)
    said = repr(data) + str(data) + repr(data.facts) + repr(next(iter(data._batches(lambda batch: None))))
    wrong = rows.astype(float)
    wrong[7, 2] = canary
    for bad, answers in ((wrong, labels), (rows, [*labels[:-1], "Canary-4f7a91"])):
        try:
            matrix(bad, answers)
        except SchemaError as error:
            said += "".join(traceback.format_exception(error))
    assert "0 or 1" in said
    assert "'y'" in said
    assert not any(word in said for word in ("86753", "Canary-4f7a91", "True", "False"))


# --- literals ---------------------------------------------------------------------------------------------------------


def test_a_group_of_no_rows_falsifies_nothing_and_no_group_gives_no_line():
    rows, labels = booleans()
    data = matrix(rows, labels)
    nobody = data.exact_sum(lambda batch: BITS.falsified(batch, (np.zeros(batch.rows, dtype=bool),)))
    assert nobody.tolist() == [[0] * (2 * VARIABLES)]
    assert data.exact_sum(lambda batch: BITS.falsified(batch, ())).shape == (0, 2 * VARIABLES)


def test_dropping_a_row_changes_no_other_row_s_contribution():
    rows, labels = booleans(130)
    everything = np.array(falsified(matrix(rows, labels)))
    for place in (0, 63, 64, 129):
        rest = np.delete(np.arange(130), place)
        without = np.array(falsified(matrix(rows[rest], labels[rest])))
        assert np.array_equal(everything - without, falsified(matrix(rows[[place]], labels[[place]])))


def test_columns_that_are_no_booleans_are_refused():
    domain = Domain(a=Category("off", "on", "broken"), b=Number(0, 1, step=1), c=Category("off", "on"), y=CLASSES)
    for name in ("a", "b"):
        with pytest.raises(ParameterError, match="two levels"):
            Literals((name, "c")).check(domain)
    for wrong in ((), ("c", "c")):
        with pytest.raises(ParameterError, match="distinct"):
            Literals(wrong)
    Literals("c").check(domain)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ((2, 9, 10), "v2 and not v5 and v6"),
        ((10, 2, 9, 2), "v2 and not v5 and v6"),
        ((), "always"),
        ((0, 1), "never"),
        ((3, 4, 2), "never"),
    ],
)
def test_a_conjunction_reads_as_a_sentence(numbers, sentence):
    assert Conjunction(BITS, numbers).sentence(Domain(x=Bits(6), y=CLASSES)) == sentence


def test_a_conjunction_speaks_of_its_columns_or_of_given_names():
    domain = Domain(smoker=Category("no", "yes"), tall=Category("no", "yes"))
    rule = Conjunction(Literals(("smoker", "tall")), (0, 3))
    assert rule.sentence(domain) == "smoker and not tall"
    assert rule.sentence(domain, ["a", "b"]) == "a and not b"
    with pytest.raises(ParameterError, match=r"numbered 0 \.\. 3"):
        Conjunction(Literals(("smoker", "tall")), (4,)).check(domain)


# --- thresholds -------------------------------------------------------------------------------------------------------

MIXED = Domain(
    age=Number(0, 9, step=1), size=Number(0, 1000, step=1, missing=True), sex=Category("F", "M", "X"), y=CLASSES
)


def people(seed=0, rows=150):
    rng = np.random.default_rng(seed)
    sizes = [None if place % 7 == 0 else int(value) for place, value in enumerate(rng.integers(0, 1001, rows))]
    columns = {
        "age": rng.integers(0, 10, rows).tolist(),
        "size": sizes,
        "sex": rng.choice(["F", "M", "X"], rows).tolist(),
    }
    return Table(columns | {"y": rng.choice(["no", "yes"], rows).tolist()}, MIXED)


def test_thresholds_count_what_their_conditions_refuse():
    conditions, data = Thresholds(("age", "size", "sex"), cuts=5), people()
    size = conditions.size(MIXED)
    assert size == 2 * 4 + 2 * 4 + 2 * 3

    def one_by_one(batch: Batch):
        positive = LABELS.mask(batch)
        refused = [~conditions.holds(batch, (number,)) for number in range(size)]
        return np.array([[np.count_nonzero(each & group) for each in refused] for group in (positive, ~positive)])

    assert falsified(data, conditions) == data.exact_sum(one_by_one).tolist()


def test_every_condition_says_and_means_the_same():
    conditions = Thresholds(("age", "sex"), cuts=256)
    said = [conditions.in_words(MIXED, number) for number in range(conditions.size(MIXED))]
    assert said[:3] == ["age >= 1", "age <= 0", "age >= 2"]
    assert said[17:] == ["age <= 8", "sex = F", "sex != F", "sex = M", "sex != M", "sex = X", "sex != X"]
    assert len(set(said)) == len(said)
    assert conditions.meaning(MIXED, 17) == ("age", 0, 8, True)
    assert conditions.meaning(MIXED, 19) == ("sex", 0, 0, False)


def test_a_missing_number_satisfies_no_condition_on_it():
    data = people()
    conditions = Thresholds("size", cuts=3)

    def unsatisfied(batch: Batch):
        missing = batch.stored("size") == MIXED.column("size").missing_code
        held = [conditions.holds(batch, (number,)) for number in range(conditions.size(MIXED))]
        return np.array([np.count_nonzero(each & missing) for each in held])

    assert data.exact_sum(unsatisfied).tolist() == [0] * 4


def test_conditions_on_a_very_fine_number_are_counted_exactly():
    """Codes beyond 2^53 are not numbers that floats hold: who falsifies a condition is who does not satisfy it."""
    fine = Number(0, 2**61 - 1, step=1)
    middle = (2**61 - 1) // 2
    domain = Domain(x=fine, y=Category("-", "+"))
    rows = Table({"x": [middle - 1, middle, middle + 1] * 5, "y": ["-"] * 15}, domain)
    conditions = Thresholds("x", 3)

    def both_ways(batch):
        everybody = np.ones(batch.rows, dtype=bool)
        counted = conditions.falsified(batch, (everybody,))[0]
        assert counted.tolist() == [
            int(np.count_nonzero(~conditions.holds(batch, [number]))) for number in range(conditions.size(domain))
        ]
        return counted

    assert 0 < rows.exact_sum(both_ways).max() < 15 + 1
