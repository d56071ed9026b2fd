"""What analysts ask (questions.sql), put to a ledger of epsilon 10 with real noise; duckdb computes the truth.

Every true number must lie in the interval that is stated beside the answer. All intervals hold at once with probability
1 - beta, so beta = 1e-6 instead of 0.05 is also the rate of false alarms of this file. The intervals are somewhat wider
for it, and a test shows that they still tell these people from half of them.
"""

from __future__ import annotations

import datetime
import re
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import discreet as dp
from discreet import example
from discreet.errors import UnsupportedQuery

EPOCH = datetime.date(1970, 1, 1)
CUT = re.compile(r" HAVING .*$| LIMIT \d+$")

REFUSED = {
    "SELECT * FROM people LIMIT 5": ("*", "SELECT * is not answered"),
    "SELECT MAX(income) FROM people": ("MAX", "one person's value would be seen"),
    "SELECT DISTINCT income FROM people": ("DISTINCT", "rows are not shown"),
    "SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)": (
        "SELECT AVG",
        "its exact result would be seen",
    ),
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.city = b.city": ("JOIN", "a join of a table with itself"),
    "SELECT person, COUNT(*) FROM visits GROUP BY person": ("person", "'person' names persons"),
    "SELECT MIN(age) FROM people": ("MIN", "one person's value would be seen"),
}
"""Where each refused question goes wrong, and the reason."""


def questions(kind):
    """The questions of the sections of questions.sql that are answered, or refused."""
    text = (Path(__file__).parent / "questions.sql").read_text(encoding="utf-8")
    sections = [section for section in text.split("-- # ")[1:] if section.startswith(kind)]
    return [line.removesuffix(";") for section in sections for line in section.split("\n")[1:] if line]


def truth(folder):
    """The two tables in duckdb as the library reads them: within their declared bounds, rounded down to the step."""
    connection = duckdb.connect(config={"threads": 1})
    grid = "LEAST(visits, 50) AS visits, income // 500 * 500 AS income, LEAST(spending, 2000) // 10 * 10 AS spending"
    connection.execute(f"CREATE TABLE people AS SELECT * REPLACE ({grid}) FROM '{folder}/clinic_people.parquet'")
    connection.execute(f"CREATE TABLE visits AS SELECT * FROM '{folder}/visits.parquet'")
    return connection


def keep_five(folder):
    """Visits of which nobody has more than five: of more the library keeps five at random, and nobody learns which."""
    every, kept = f"'{folder}/visits.parquet'", f"{folder}/kept.parquet"
    some = f"SELECT * FROM {every} QUALIFY row_number() OVER (PARTITION BY person ORDER BY day) <= 5"
    duckdb.execute(f"COPY ({some}) TO '{kept}'")
    Path(kept).replace(f"{folder}/visits.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clinic")
    example.write_clinic(made)
    keep_five(made)
    return made


@pytest.fixture(scope="module")
def session(folder):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DISCREET_STATE", str(folder / "state"))
        clinic = dp.DatabaseSchema.read(folder / "clinic.toml").database()
        ledger = dp.Ledger.create(folder / "clinic.ledger", dp.Budget(10, 1e-6), clinic)
        yield dp.Session(clinic, ledger, beta=1e-6)


@pytest.fixture(scope="module")
def answers(session):
    """Each question with what it was said to cost, and its answer."""
    return {text: (session.price(text), session.ask(text)) for text in questions("answered")}


def number(value):
    """A value of duckdb as a number; a date as days since 1970, as in an answer's intervals."""
    return (value - EPOCH).days if isinstance(value, datetime.date) else float(value)


def label(value):
    """A key of a group as both sides can say it."""
    return str(value)[:10] if isinstance(value, datetime.date) else value


def outside(connection, text, answer):
    """The numbers of an answer whose interval does not hold the truth, and the groups that are missing.

    What HAVING and LIMIT choose depends on the noise: the truth is that of all groups. Of cities, which nobody listed,
    only those of many rows are shown. Groups without rows have no truth beside the count 0.
    """
    rows = connection.execute(CUT.sub("", text)).fetchall()
    numbers = [place for place in range(len(answer.columns)) if any(line[place] for line in answer.intervals)]
    keys = [place for place in range(len(answer.columns)) if place not in numbers]
    true = {tuple(label(row[place]) for place in keys): row for row in rows}
    shown = {tuple(row[place] for place in keys): line for row, line in zip(answer.rows, answer.intervals, strict=True)}
    partly = CUT.search(text) or "city" in text
    found = [] if partly else [(key, "missing") for key in true.keys() - shown.keys()]
    for key, line in shown.items():
        for place in numbers:
            value = true[key][place] if key in true else 0 if "COUNT" in answer.columns[place] else None
            if value is not None and not line[place][0] - 1e-6 <= number(value) <= line[place][1] + 1e-6:
                found.append((key, answer.columns[place], value, line[place]))
    return found


def test_every_answered_question_has_the_truth_in_its_intervals(folder, answers):
    with closing(truth(folder)) as connection:
        for text, (_, answer) in answers.items():
            assert (text, outside(connection, text, answer)) == (text, [])
            assert answer.rows


def test_the_intervals_are_narrow_enough_to_be_wrong_about_half_of_the_people(folder, answers):
    with closing(truth(folder)) as connection:
        connection.execute("DELETE FROM people WHERE person % 2 = 1")
        connection.execute("DELETE FROM visits WHERE person % 2 = 1")
        wrong = [text for text, (_, answer) in answers.items() if outside(connection, text, answer)]
    totals = [text for text in answers if re.search(r"COUNT|SUM", text)]
    assert len(set(totals) & set(wrong)) >= len(totals) * 3 // 4


def test_each_costs_what_was_said_and_at_most_a_hundredth(session, answers):
    for said, answer in answers.values():
        assert answer.price <= said
        assert said.percent <= 1
    assert sum(answer.price for _, answer in answers.values()) <= session.ledger.spent().renyi


def test_the_common_cities_are_shown(answers):
    shown = answers["SELECT city, COUNT(*) FROM visits GROUP BY city"][1].value
    assert {*example.CITIES[:5]} <= {*shown} <= {*example.CITIES}


@pytest.mark.parametrize("text", questions("refused"))
def test_a_refusal_is_free_and_says_where_and_why(session, text):
    before = [*session.ledger.entries()]
    word, reason = REFUSED[text]
    for ask in (session.check, session.price, session.ask):
        with pytest.raises(UnsupportedQuery) as refused:
            ask(text)
        assert refused.value.position == text.index(word)
        assert reason in refused.value.reason
        assert refused.value.hint
    assert [*session.ledger.entries()] == before


def test_nothing_else_is_in_the_file():
    assert len(questions("answered")) == 54 + 13
    assert {*REFUSED} == {*questions("refused")}


def test_several_quantiles_and_averages_share_one_price(session):
    text = "SELECT limited, MEDIAN(income), QUANTILE(income, 0.9), AVG(diseases), COUNT(*) FROM people GROUP BY limited"
    said = session.price(text)
    answer = session.ask(text)
    assert 0 < answer.price <= said
    assert said.percent <= 1
    assert session.ask(text).price == 0
    assert session.ask(text).rows == answer.rows
