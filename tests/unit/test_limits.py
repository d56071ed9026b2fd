"""Limits that follow from public sizes, and hostile files: refused in one sentence, before anything is spent."""

from __future__ import annotations

import functools
import math
import operator
import random
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import predicate as predicate_module
from discreet import report
from discreet.answering import adaptive, calibration
from discreet.answering.averaged_weights import AveragedWeights
from discreet.answering.linear_query import MAX_WORK, all_cells, linear
from discreet.answering.measurement import Layers, Measured, SetErrors, covers
from discreet.answering.workload import Marginals
from discreet.errors import DiscreetError, ParameterError, SchemaError
from discreet.mechanisms import CoordinateLaplace, ProductLaplace
from discreet.rng import SeededRng
from discreet.schema import Schema
from discreet.session import MAX_SYNTHETIC, synthetic_rows
from tests.property.test_odd_declarations import alarm

RELATIONS = ["replace-one", "add-remove"]


def opened(domain, rows, relation="replace-one", budget=(50, 1e-6), size=None, **terms):
    declared = size if relation == "replace-one" else size or len(next(iter(rows.values())))
    table = dp.Table(rows, domain, name="people", neighbours=relation, size=declared)
    ledger = dp.Ledger.in_memory(dp.Budget(*budget), table, testing=True)
    return dp.Session(table, ledger, **({"alpha": 0.2, "rng": SeededRng(3)} | terms))


# Purchases that do not cover their question.


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "question",
    [
        "SELECT site, COUNT(*) FROM people GROUP BY site",
        "SELECT site, COUNT(*) FROM people WHERE site = 'main' GROUP BY site",
        "SELECT COUNT(*) FROM people WHERE site = 'main'",
    ],
)
def test_declared_scopes_answer_about_a_category_of_one_level_and_charge_once(relation, question):
    domain = dp.Domain(site=dp.Category("main"), age=dp.Number(0, 9, step=1))
    session = opened(domain, {"site": ["main"] * 100, "age": [1] * 100}, relation, alpha=None, scopes=5, max_price=1)
    first = session.ask(question)
    found = sum(first.value.values()) if isinstance(first.value, dict) else first.value
    assert abs(found - 100) <= first.error_bound
    assert (first.price == 0) == (relation == "replace-one")  # the number of all rows is public there
    left = session.budget()
    again = session.ask(question)
    assert (again.price, again.value, session.budget()) == (0, first.value, left)


def test_a_purchase_that_does_not_cover_its_question_is_refused_before_the_charge(monkeypatch):
    session = opened(dp.Domain(age=dp.Number(0, 9, step=1)), {"age": [1] * 100})
    monkeypatch.setattr(adaptive.AdaptiveAnswers, "_purchase", lambda *_: dp.Gaussian(dp.Count(), 5))
    with pytest.raises(ParameterError, match="does not cover the question"):
        session.ask("SELECT COUNT(*) FROM people WHERE age = 3")
    assert session.ledger.spent().renyi == 0


def test_what_covers_a_question():
    domain = dp.Domain(a=dp.Number(0, 3, step=1), b=dp.Category("x"))
    three = dp.Count(dp.Equals("a", 3))
    assert covers(dp.Histogram("a"), three, domain)
    assert covers(dp.Count(dp.Between("a", 3, 3)), three, domain)
    assert not covers(dp.Count(), three, domain)
    assert not covers(dp.Histogram("b"), three, domain)
    assert not covers(dp.Count(), dp.Histogram("b"), domain)
    assert not covers(dp.mechanisms.KeyCount("a"), three, domain)


# Sums that are 0 whatever the rows are, and searches that end.


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_sum_of_nothing_but_zeros_is_public_and_returns(relation):
    session = opened(dp.Domain(visits=dp.Number(0, 3, step=1)), {"visits": [0] * 50 + [2] * 50}, relation)
    text = "SELECT SUM(visits) FROM people WHERE visits = 0"
    with alarm():
        assert session.price(text) == 0
        answer = session.ask(text)
        assert (answer.value, answer.error_bound, answer.source, answer.price) == (0, 0, "public", 0)
        assert session.ask(dp.Sum("visits", dp.Equals("visits", 0))).source == "public"
        assert session.answer_all([text])[0].value == 0
        assert session.ledger.spent().renyi == 0
        average = session.ask("SELECT AVG(visits) FROM people WHERE visits = 0")
    assert average.value == 0


def test_the_search_for_the_largest_noise_ends():
    with alarm(), pytest.raises(ParameterError, match="does not depend on the rows"):
        calibration._largest(lambda scale: 0.0, 5.0)


@pytest.mark.parametrize("power", [0.8, 1.0, 1.3])
def test_the_bracket_changes_no_result_of_the_search(power, monkeypatch):
    for reach in (0.01, 3.0, 1e9):
        error = lambda scale: 7.3 * scale**power  # noqa: E731
        fast = calibration._largest(error, reach)
        with monkeypatch.context() as slow:
            slow.setattr(calibration, "_bracket", lambda *_: (0.0, math.inf))
            assert calibration._largest(error, reach) == fast


# Set errors of many sizes at once.


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_one_bound_for_a_block_of_sizes_is_at_least_that_of_each(kind):
    rng = random.Random(4)
    for _ in range(30):
        cells = rng.choice([3, 10, 1000, 50_000])
        measured = Measured(dp.Histogram("a"), kind, rng.choice([0.3, 5.0, 400.0]), 1.0, np.zeros(cells * 2))
        sets = SetErrors(measured, cells=cells, columns=2, failure=0.01)
        least = rng.randint(1, cells)
        most = min(cells, least + rng.randint(0, 20))
        together = sets.of(np.array([least]), np.array([most]))[0]
        assert together >= sets.of(np.arange(least, most + 1)).max() * (1 - 1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_sum_over_a_fine_grid_has_the_bound_of_its_single_layers_and_little_more(kind):
    """The integral of t(T, c(h)) dh, layer by layer, against the blocks of it that are taken."""
    domain = dp.Domain(x=dp.Number(-700, 3000, step=1))
    form = linear(dp.Sum("x"), domain)
    measured = Measured(dp.Histogram("x"), kind, 4.0, 1.0, np.zeros(3701))
    sets = SetErrors(measured, cells=3701, columns=1, failure=0.01)
    exactly = sets.of(np.arange(1, 701)).sum() + sets.of(np.arange(1, 3001)).sum()
    layers = Layers.of(form, total_known=True)
    assert len(layers.place) < 2000
    assert exactly * (1 - 1e-9) <= float(layers.errors(sets)) <= 1.01 * exactly


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_price_of_a_sum_over_a_million_values_returns(delta):
    session = opened(dp.Domain(x=dp.Number(0, 10**6, step=1)), {"x": [1] * 100}, budget=(50, delta))
    with alarm():
        assert session.price("SELECT SUM(x) FROM people") > 0
        assert session.price("SELECT AVG(x) FROM people WHERE x > 10") > 0


def test_a_condition_of_many_clauses_over_many_cells_is_not_listed_but_priced_and_answered():
    domain = dp.Domain({name: dp.Number(0, 120, step=1) for name in "abc"})
    session = opened(domain, {name: [5] * 100 for name in "abc"})
    clauses = [f"(a >= {each % 90} AND b <> {each % 60} AND c <= {100 - each % 70})" for each in range(120)]
    text = "SELECT COUNT(*) FROM people WHERE " + " OR ".join(clauses)
    where = session._statement(text).where
    assert where.atoms * 121**3 > MAX_WORK
    assert linear(dp.Count(where), domain) is None
    with alarm():
        price = session.price(text)
        answer = session.ask(text)
    assert 0 < answer.price <= price
    assert abs(answer.value - 100) <= answer.error_bound


# How many numbers are released at once.

WIDE = dp.Domain(x=dp.Number(0, 2**12, step=1), y=dp.Number(0, 2**11, step=1))
TABLE = {"x": [1] * 9, "y": [1] * 9}
CELLS = dp.Histogram(("x", "y"))
DENSE = [
    dp.Laplace(CELLS, 5),
    dp.Gaussian(CELLS, 5),
    ProductLaplace(CELLS, 5),
    CoordinateLaplace(CELLS, 5),
    dp.Exponential(CELLS, 1),
    dp.mechanisms.PermuteAndFlip(CELLS, 1),
    Marginals([dp.Count(), CELLS], [5, 5]),
    Marginals([dp.Histogram("x")] * 1200, [5] * 1200),
]


@pytest.mark.parametrize("mechanism", DENSE, ids=lambda each: type(each).__name__)
def test_more_numbers_than_memory_holds_are_refused_before_the_charge(mechanism):
    table = dp.Table(TABLE, WIDE, name="people", neighbours="add-remove")
    ledger = dp.Ledger.in_memory(dp.Budget(10**6, 1e-6), table)
    mechanism.guarantee(table.facts)  # ledgers hold such releases: they can still be priced
    with pytest.raises(ParameterError, match=r"at once, more than 4,194,304"):
        dp.release(mechanism, table, ledger=ledger)
    assert ledger.spent().pure == 0


def test_averaged_weights_over_too_many_cells_are_refused():
    table = dp.Table(TABLE, WIDE, name="people")
    with pytest.raises(ParameterError):
        AveragedWeights([CELLS], 10, 1, 3, 9).guarantee(table.facts)


def test_a_session_refuses_too_many_groups_free():
    session = opened(WIDE, TABLE, alpha=0.9)
    for ask in (session.ask, session.check, session.price, lambda each: session.answer_all([each])):
        with pytest.raises(DiscreetError, match=r"4,194,304|too many"):
            ask(CELLS)
        with pytest.raises(DiscreetError, match=r"4,194,304|too many"):
            ask("SELECT x, y, COUNT(*) FROM people GROUP BY x, y")
    assert session.ledger.spent().renyi == 0


def test_synthetic_rows_beyond_memory_are_refused():
    session = opened(dp.Domain(age=dp.Number(0, 9, step=1)), {"age": [1] * 100})
    session.ask("SELECT age, COUNT(*) FROM people GROUP BY age")
    with pytest.raises(ParameterError, match=r"rows must be at most 33,554,432 at a time for 1 columns, found 1e\+10"):
        session.synthetic(10**10)
    assert len(session.synthetic(20)) == 20
    assert synthetic_rows(MAX_SYNTHETIC // 2, WIDE) == MAX_SYNTHETIC // 2


# Many values in one condition.


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (dp.Number(-5, 5, step="0.25", missing=True), [0, Fraction(1, 4), -5, 5, "2.5"]),
        (dp.Number("0.1", "1.3", step="0.3"), ["0.1", "1.3", 1]),
        (dp.Category("a", "b", "c", missing="?"), ["a", "c", "c"]),
        (dp.Category(0, 1, 2), [2, True, False]),
        (dp.Category(True, False), [1, True]),
    ],
)
def test_many_values_at_once_have_the_codes_of_each_alone(column, values):
    domain = dp.Domain(v=column)
    batch, among = all_cells(("v",), domain), dp.Among("v", values)
    wanted = {predicate_module._code(domain, "v", each) for each in among.values}
    assert set(np.flatnonzero(among.mask(batch)).tolist()) == wanted


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        (dp.Number(0, 5, step=1), [1, 2, 6], "6"),
        (dp.Number(0, 5, step=1), [1, "0.5"], "0.5"),
        (dp.Number(0, 5, step=1), [1, "x"], "x"),
        (dp.Category("a", missing="?"), ["a", "?"], "missing"),
        (dp.Category("a"), ["a", "b"], "'b' is not a declared level"),
        (dp.Number.any(), [1], "no single value"),
    ],
)
def test_the_first_of_many_values_that_is_not_declared_is_named(column, values, said):
    with pytest.raises(ParameterError, match=said):
        dp.Count(dp.Among("v", values)).sensitivity(dp.data.Facts(dp.Domain(v=column), dp.Neighbours("add-remove"), 5))


def test_a_condition_with_very_many_values_is_answered():
    domain = dp.Domain(x=dp.Number(0, 10**6, step=1), town=dp.Category(*map(str, range(3000))))
    session = opened(domain, {"x": [7] * 100, "town": ["5"] * 100}, alpha=0.5)
    with alarm():
        assert session.ask(dp.Count(dp.Among("x", range(200_000)))).value > 0
        assert session.ask(dp.Count(dp.Among("town", map(str, range(2000))))).value > 0


@pytest.mark.parametrize("depth", [300, 1000, 5000])
def test_a_condition_that_is_nested_too_deep_is_refused_free(depth):
    session = opened(dp.Domain(age=dp.Number(0, 9, step=1)), {"age": [1] * 100})
    chain = functools.reduce(operator.or_, [dp.Equals("age", each % 10) for each in range(depth)])
    for ask in (session.ask, session.price, session.check, lambda each: session.answer_all([each])):
        with pytest.raises(ParameterError, match="nested too deep"):
            ask(dp.Count(chain))
    with pytest.raises(ParameterError, match="nested too deep"):
        dp.release(dp.Laplace(dp.Count(chain), 5), session.table, ledger=session.ledger, rng=SeededRng(1))
    assert session.ledger.spent().renyi == 0
    flat = dp.Or(*(dp.Equals("age", each % 10) for each in range(depth)))
    assert session.ask(dp.Count(flat)).value == 100


# Numbers that floats do not hold.


def test_terms_and_sizes_that_floats_do_not_hold_are_refused_free():
    domain, rows = dp.Domain(age=dp.Number(0, 9, step=1)), {"age": [1] * 100}
    for terms in ({"scopes": 1, "alpha": None}, {"alpha": 0.2}, {"method": "pmw"}):
        with pytest.raises(ParameterError, match="beta must be at least"):
            opened(domain, rows, beta="1e-350", **terms)
    with pytest.raises(ParameterError, match="size must be at most 2,147,483,647"):
        opened(domain, rows, "add-remove", size=10**320)
    huge = opened(dp.Domain(x=dp.Number(-(10**300), 10**300, step=10**299)), {"x": [0] * 100}, size=100, alpha=0.9)
    huge.ask("SELECT COUNT(*) FROM people WHERE x = 0")
    wider = opened(
        dp.Domain(x=dp.Number(-(10**300), 10**300, step=10**299)), {"x": [0]}, "add-remove", size=2**31 - 1, alpha=0.9
    )
    with pytest.raises(ParameterError, match="floats cannot hold"):
        wider.ask("SELECT SUM(x) FROM people")


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_probability_that_floats_take_for_0_is_refused_wherever_it_is_given(name):
    rows = {"age": [*range(10)] * 10, "sex": ["F", "M"] * 50}
    table = dp.Table(rows, dp.Domain(age=dp.Number(0, 9, step=1), sex=dp.Category("F", "M")), name="people")
    ledger, tiny = dp.Ledger.in_memory(dp.Budget(5, 1e-6), table), {name: "1e-350"}
    doors = [lambda: dp.BoxClassifier(epsilon=1, ledger=ledger, **tiny).fit(table, "sex", features=["age"])]
    doors += [lambda: dp.ConjunctionClassifier.sample_size(**{"alpha": 0.1, **tiny}, d=5, k=2, epsilon=1)]
    doors += [lambda: dp.plan("count", budget=dp.Budget(1), **tiny)]
    doors += [lambda: report.sample_sizes([1], **tiny)]
    if name == "beta":
        doors += [lambda: dp.suggest_bounds(table, column="age", epsilon=1, ledger=ledger, **tiny)]
        doors += [lambda: dp.interior_point([1, 2, 3], column=dp.Number(0, 9, step=1), epsilon=1, **tiny)]
    for door in doors:
        with pytest.raises(ParameterError, match=f"{name} must be at least 1e-100"):
            door()
    assert ledger.spent().pure == ledger.spent().renyi == 0


@pytest.mark.parametrize("kind", ["count", "mean", "select", "keys"])
def test_a_plan_for_more_persons_than_floats_hold_is_refused(kind):
    numbers = {"candidates": 3} if kind == "select" else {}
    with pytest.raises(ParameterError, match=r"size must be at most 10\*\*30"):
        dp.plan(kind, budget=dp.Budget(1, "1e-6"), size=10**400, **numbers)
    assert dp.plan(kind, budget=dp.Budget(1, "1e-6"), size=10**30, **numbers).rows


# Files.

CSV = dp.Domain(a=dp.Number(0, 9, step=1), b=dp.Category("x", other="o"))


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_last_line_that_is_too_long_is_not_dropped_in_silence(tmp_path, end):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        file.write(f"a,b\n1,x\n3,{'y' * (34 * 2**20)}{end}")
    with pytest.raises(SchemaError, match="a line of more than 2,097,152 bytes"):
        dp.Table(path, CSV, neighbours="add-remove")


def test_long_lines_within_the_limit_and_files_of_many_lines_are_read_whole(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + f"3,{'y' * 2**20}\n" * 20)  # more than one chunk of the check
    assert dp.Table(path, CSV).facts.size == 20
    path.write_text("a,b\n" + "1,x\n" * 5 + "2,x")
    assert dp.Table(path, CSV).facts.size == 6


def test_a_header_without_an_end_is_refused_without_reading_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a" * 3 * 2**20)
    with pytest.raises(SchemaError):
        dp.Table(path, CSV)


@pytest.mark.parametrize("name", ["a\0b.csv", "a\0b.parquet", "x" * 5000 + ".csv"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(ParameterError, match="no file"):
        dp.Table(name, CSV)
    with pytest.raises(ParameterError, match="no file"):
        dp.ParquetTable(name, CSV)


HEAD = 'name = "p"\neach_row_is_a_person = true\n'
COLUMN = '[columns.a]\nkind = "category"\nlevels = ["x", "y"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 10**5 + "]" * 10**5, "nested too deep"),
        ("x = " + "{a=" * 10**5 + "1" + "}" * 10**5, "nested too deep"),
        ("columns" + ".a" * 10**5 + " = 1", "more than 64 parts"),
        ("[" + '"a" . ' * 10**5 + "b]\nx = 1", "more than 64 parts"),
        (HEAD + "columns" + ".a" * 60 + " = 1", "kind"),
        ("x = '" + "a" * 10**6 + "'", "has no line 'x'"),
        (HEAD + 'ledger = "a\\u0000b"\n' + COLUMN, "ledger names no file"),
        (HEAD + 'data = "a\\u0000b"\n' + COLUMN, "data names no file"),
        (HEAD + f'ledger = "{"x" * 300}"\n' + COLUMN, "ledger names no file"),
        (
            HEAD + "".join(f'[columns.c{each}]\nkind = "any number"\n' for each in range(10**5)),
            "at most 10,000 columns",
        ),
        (HEAD + "size = " + "9" * 400 + "\n" + COLUMN, "size|digits|TOML"),
        (HEAD + 'edition = ""\n' + COLUMN, "edition"),
    ],
    ids=["lists", "tables", "dots", "quotes", "deep", "word", "ledger", "data", "long", "columns", "size", "edition"],
)
def test_a_hostile_schema_ends_in_one_sentence(tmp_path, text, said):
    path = tmp_path / "p.toml"
    path.write_text(text)
    (tmp_path / "rows.csv").write_text("a\nx\ny\n")
    with alarm(), pytest.raises(DiscreetError, match=said):
        Schema.read(path).table(tmp_path / "rows.csv")


def test_a_schema_that_is_a_folder_or_not_text_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="cannot be read"):
        Schema.read(tmp_path)
    with pytest.raises(ParameterError, match="cannot be read"):
        Schema.read("a\0b.toml")
    (tmp_path / "p.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="not TOML"):
        Schema.read(tmp_path / "p.toml")


def test_a_table_of_very_many_columns_is_refused_and_of_many_is_read(tmp_path):
    with pytest.raises(SchemaError, match="at most 10,000 columns"):
        dp.Table({}, dp.Domain({f"c{each}": dp.Category("x") for each in range(10_001)}))
    names = [f"c{each}" for each in range(2000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
    with alarm():
        assert dp.Table(path, dp.Domain({name: dp.Category("x", "y") for name in names})).facts.size == 1
