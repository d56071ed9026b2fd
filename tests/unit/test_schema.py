"""Schemas: what a file declares becomes a domain and a table, and a draft knows nothing about the rows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import example
from discreet.data import AnyNumber
from discreet.schema import FILL_IN, draft

WHOLE = """
name = "people"
data = "people.csv"
ledger = "people.ledger"
neighbours = "add-remove"
each_row_is_a_person = true
size = 1000

[columns.age]
kind = "number"
low = 0
high = 120
step = 1

[columns.weight]
kind = "number"
low = 0.1
high = 0.4
step = 0.1
missing = true

[columns."home town"]
kind = "category"
levels = ["north", "south", 3, true]
other = "elsewhere"
missing = "unknown"

[columns.income]
kind = "any number"
"""


def written(folder, text=WHOLE):
    path = folder / "people.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_kind_of_column_is_read_exactly(tmp_path):
    found = dp.Schema.read(written(tmp_path))
    assert found.domain["age"] == dp.Number(0, 120, step=1)
    assert found.domain["weight"] == dp.Number(Fraction(1, 10), Fraction(4, 10), step=Fraction(1, 10), missing=True)
    assert found.domain["home town"] == dp.Category("north", "south", 3, True, other="elsewhere", missing="unknown")
    assert found.domain["income"] == AnyNumber()
    assert (found.name, found.neighbours, found.unit, found.size) == ("people", "add-remove", None, 1000)
    assert (found.data, found.ledger) == (tmp_path / "people.csv", tmp_path / "people.ledger")


def test_a_table_is_what_the_schema_says(tmp_path):
    (tmp_path / "people.csv").write_text("age,weight,home town,income\n30,0.2,north,10.5\n40,,east,-3\n")
    table = dp.Schema.read(written(tmp_path)).table()
    assert table.identity.name == "people"
    assert table.facts.size == 1000
    assert table.facts.neighbours == dp.Neighbours("add-remove")
    assert table.source == (tmp_path / "people.csv").resolve()


def test_a_unit_needs_its_rows(tmp_path):
    text = WHOLE.replace("each_row_is_a_person = true", 'unit = "person"\nrows_per_unit = 5')
    found = dp.Schema.read(written(tmp_path, text))
    assert (found.unit, found.rows_per_unit) == ("person", 5)
    assert "A person is identified by 'person', with at most 5 rows" in found.protects()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("each_row_is_a_person = true", "", "say who is protected"),
        ("each_row_is_a_person = true", "each_row_is_a_person = false", "say who is protected"),
        ("each_row_is_a_person = true", 'each_row_is_a_person = true\nunit = "x"\nrows_per_unit = 2', "say who"),
        ("each_row_is_a_person = true", 'unit = "x"', "say who is protected"),
        ("high = 120", "", r"\[columns.age\] needs high"),
        ("high = 120", "hgih = 120", "Did you mean 'high'"),
        ("high = 120", f'high = "{FILL_IN}"', "still say FILL IN: columns.age.high"),
        ("high = 120", "high = 0", r"\[columns.age\]"),
        ("high = 120", "high = inf", "not TOML"),
        ("high = 120", 'high = "tall"', "high must be a finite number"),
        ('"north", "south", 3, true', f'"north", "{FILL_IN}"', "still say FILL IN: columns.home town.levels"),
        ('"north", "south", 3, true', "1.5", "level"),
        ('levels = ["north", "south", 3, true]', 'levels = "north"', "needs levels"),
        ('kind = "any number"', 'kind = "date"', "needs low, high"),
        ('kind = "any number"', 'kind = "day"', 'needs a kind, one of "number", .*"text"; found \'day\''),
        ('kind = "any number"', 'kind = "text"\nlength = 0', "length must be a whole number"),
        ("high = 120", f'high = 0\nstep = 1\n[columns.new]\nkind = "{FILL_IN}"\n[columns.other]', "low must be < high"),
        ('kind = "any number"', "", "found None"),
        ('neighbours = "add-remove"', 'neighbours = "swap"', "swap"),
        ('name = "people"', "name = 3", "name must be non-empty text"),
        ("size = 1000", "size = 0", "size must be a whole number"),
        ("size = 1000", "seize = 1000", "Did you mean 'size'"),
        ('name = "people"', "name =", "not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_the_line_that_would_do(tmp_path, old, new, says):
    with pytest.raises(dp.errors.SchemaError, match=says):
        dp.Schema.read(written(tmp_path, WHOLE.replace(old, new)))


def test_a_missing_schema_and_missing_rows_are_said(tmp_path):
    with pytest.raises(dp.errors.ParameterError, match=r"there is no schema at nothing\.toml"):
        dp.Schema.read(tmp_path / "nothing.toml")
    found = dp.Schema.read(written(tmp_path, WHOLE.replace('data = "people.csv"', "")))
    with pytest.raises(dp.errors.ParameterError, match="where are the rows"):
        found.table()
    with pytest.raises(dp.errors.ParameterError, match="there is no file"):
        found.table(tmp_path / "nothing.csv")


def test_a_schema_without_columns_is_refused(tmp_path):
    with pytest.raises(dp.errors.SchemaError, match="no column is declared"):
        dp.Schema.read(written(tmp_path, 'name = "people"\neach_row_is_a_person = true\n'))


def test_a_draft_is_the_same_whatever_the_rows_are(tmp_path):
    columns = {"age": ([1, 2], [70, 80]), "name": (["canary", "b"], ["c", "d"]), "old": ([True, True], [False, True])}
    texts = []
    for place in (0, 1):
        table = pa.table({key: values[place] for key, values in columns.items()})
        pq.write_table(table, tmp_path / "people.parquet")
        texts.append(draft(tmp_path / "people.parquet"))
    assert texts[0] == texts[1]
    assert "canary" not in texts[0]


def test_a_draft_of_csv_reads_the_header_alone(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b'age,"home ""town"""\n' + b"\xff canary that is neither UTF-8 nor a row\n" * 10_000)
    text = draft(path)
    assert "canary" not in text
    assert '[columns."home \\"town\\""]' in text


def test_a_filled_in_draft_is_a_schema(tmp_path):
    pq.write_table(pa.table({"age": [1], "weight": [1.5], "town": ["n"], "old": [True]}), tmp_path / "people.parquet")
    text = draft(tmp_path / "people.parquet")
    filled = (
        text.replace('each_row_is_a_person = "FILL IN"', "each_row_is_a_person = true")
        .replace('levels = ["FILL IN"]', 'levels = ["n"]')
        .replace('low = "FILL IN"', "low = 0")
        .replace('high = "FILL IN"', "high = 2")
        .replace('step = "FILL IN"', "step = 0.5")
    )
    with pytest.raises(dp.errors.SchemaError, match=r"each_row_is_a_person, columns\.age\.low"):
        dp.Schema.read(written(tmp_path, text))
    found = dp.Schema.read(written(tmp_path, filled))
    assert found.table().facts.size == 1
    assert found.domain["old"] == dp.Category(False, True)
    assert found.domain["weight"] == dp.Number(0, 2, step="0.5")


def test_odd_column_names_survive_a_draft(tmp_path):
    names = ['a "b"', "ü ñ", "x.y", "tab\there", "back\\slash", "", "\x7f"]
    pq.write_table(pa.table([[True]] * len(names), names=names), tmp_path / "odd.parquet")
    text = draft(tmp_path / "odd.parquet").replace('"FILL IN"', "true")
    assert "# A column without a name is left out" in text
    assert dp.Schema.read(written(tmp_path, text)).domain.names == (*names[:5], names[6])


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("age;sex;town", "seem to be separated by ';': separate them by commas"),
        ("age\tsex", "seem to be separated by"),
        ("age,sex,age", "names the column 'age' twice: give every column a name of its own"),
        ("", "has no header line"),
    ],
)
def test_a_header_that_does_not_name_the_columns_is_refused(tmp_path, header, complaint):
    (tmp_path / "people.csv").write_text(header + ("\n1,2,3\n" if header else ""))
    with pytest.raises(dp.errors.SchemaError, match=complaint):
        draft(tmp_path / "people.csv")


def test_the_bundled_people_are_as_their_schemas_say(tmp_path):
    path = example.write(tmp_path)
    people = dp.Schema.read(path).table()
    years = dp.Schema.read(tmp_path / "years.toml").table()
    assert people.facts.size == years.facts.size == 5912
    assert people.facts.neighbours == dp.Neighbours("replace-one")
    assert years.facts.neighbours == dp.Neighbours("replace-one", 5)
    assert set(people.facts.domain.names) | {"year"} == set(years.facts.domain.names)


def test_files_that_are_there_stay(tmp_path):
    (tmp_path / "people.toml").write_text("mine")
    assert example.write(tmp_path).read_text() == "mine"


def test_the_person_s_number_is_not_in_the_people():
    names = pq.read_schema(example.HERE / "people.parquet").names
    assert "person" not in names
    assert "person" in pq.read_schema(example.HERE / "years.parquet").names


def test_what_a_name_says_to_a_terminal_is_not_printed(tmp_path):
    odd = "x\x1b[31m\u202e\x9b"
    pq.write_table(pa.table([[True]], names=[odd]), tmp_path / "people.parquet")
    text = draft(tmp_path / "people.parquet")
    assert not {"\x1b", "\u202e", "\x9b"} & set(text)
    found = dp.Schema.read(written(tmp_path, text.replace('"FILL IN"', "true")))
    assert found.domain.names == (odd,)
    assert not {"\x1b", "\u202e", "\x9b"} & set(found.protects())


def test_the_name_of_a_file_adds_no_line_to_its_draft(tmp_path):
    path = tmp_path / 'people"\nneighbours = "add-remove"\n.csv'
    path.write_text("age\n")
    lines = draft(path).splitlines()
    assert sum(line.startswith("neighbours = ") for line in lines) == 1


def test_a_number_of_a_thousand_digits_is_refused_at_once(tmp_path):
    with pytest.raises(dp.errors.SchemaError, match="not TOML"):
        dp.Schema.read(written(tmp_path, WHOLE.replace("high = 120", "high = 1.0e99999999")))


def test_a_draft_of_csv_has_lines_for_every_kind(tmp_path):
    (tmp_path / "people.csv").write_text("age,town\n")
    text = draft(tmp_path / "people.csv")
    for word in ("low", "levels", "any number", "size = 5000", "add a line of names above it"):
        assert word in text
    with pytest.raises(
        dp.errors.SchemaError, match=r"FILL IN: each_row_is_a_person, columns\.age\.kind, columns\.town\.kind"
    ):
        dp.Schema.read(written(tmp_path, text))


def test_a_draft_of_parquet_reads_the_footer_alone(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [1, 2, 3] * 100, "sex": ["F", "M", "F"] * 100}), path)
    before = draft(path)
    _damage_values(path)
    with pytest.raises(OSError, match=r"."):
        pq.read_table(path)
    assert draft(path) == before


def _damage_values(path: Path) -> None:
    """Flip every bit between the first four bytes and the footer."""
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + bytes(byte ^ 0xFF for byte in content[4:footer]) + content[footer:])
