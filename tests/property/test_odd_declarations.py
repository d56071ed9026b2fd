"""Sessions over odd declarations: every question is answered within its bound or refused free, and each ends.

The alarm is a protection of the suite, not a measurement: a question that never returns would hang it.
"""

from __future__ import annotations

import random
import signal
from contextlib import contextmanager

import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.rng import SeededRng

ROWS = 60


@contextmanager
def alarm(seconds=120):
    def rung(*_):
        raise AssertionError(f"a question did not return within {seconds} s")

    before = signal.signal(signal.SIGALRM, rung)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def numbers(rng):
    return rng.choice(
        [
            dp.Number(0, 3, step=1),
            dp.Number(-3, -1, step=1, missing=True),
            dp.Number(-1, 1, step=1),
            dp.Number(0, 1, step="0.0001"),
            dp.Number(0, 10**5, step=1, missing=rng.random() < 0.5),
            dp.Number(-(10**5), 10**5, step=3 * 10**4 - 10**4),
            dp.Number(0, 10**12, step=1),
            dp.Number("-0.5", "0.5", step="0.5"),
        ]
    )


def categories(rng):
    return rng.choice(
        [
            dp.Category("main"),
            dp.Category("main", missing="?"),
            dp.Category("main", other="else"),
            dp.Category(True, False),
            dp.Category(0, 1, 2),
        ]
    )


def entries(rng, column):
    """Rows of a column: all equal, all missing, or mixed."""
    codes = [rng.randrange(column.size) for _ in range(rng.choice([1, 1, 5]))]
    if column.missing_code is not None and rng.random() < 0.3:
        codes = [column.missing_code]
    chosen = [rng.choice(codes) for _ in range(ROWS)]
    return [None if code == column.missing_code else _entry(column, code) for code in chosen]


def _entry(column, code):
    return column.value(code) if isinstance(column, dp.Category) else float(column.value(code))


def literal(value):
    if isinstance(value, bool):
        return str(value).upper()
    return f"'{value}'" if isinstance(value, str) else str(value)


def questions(rng, domain):
    """Of each column: counts, groups, sums, averages and medians; the conditions hold always, never or rarely."""
    for name, column in domain.items():
        yield f"SELECT {name}, COUNT(*) FROM people GROUP BY {name}"
        yield f"SELECT COUNT({name}) FROM people"
        values = [code for code in {0, column.size // 2, column.size - 1} if code != column.missing_code]
        codes = rng.sample(values, min(2, len(values)))
        for code in codes:
            found = column.value(code) if isinstance(column, dp.Category) else column.label(code)
            where = f"WHERE {name} = {literal(found)}"
            yield f"SELECT COUNT(*) FROM people {where}"
            if isinstance(column, dp.Number):
                yield f"SELECT SUM({name}) FROM people {where}"
                yield f"SELECT AVG({name}) FROM people {where}"
        if isinstance(column, dp.Number):
            yield f"SELECT SUM({name}) FROM people"
            yield f"SELECT AVG({name}) FROM people"
            yield f"SELECT MEDIAN({name}) FROM people"
            yield f"SELECT SUM({name}) FROM people WHERE {name} IN (0)"


def truths(text, domain, table):
    """The exact answer of a count, a sum or a table; None of anything else."""
    from discreet.sql import parse

    statement = parse(text, domain, table="people")
    if statement.quantiles or len(statement.questions) > 1:
        return None
    (query,) = statement.questions
    found = table.exact_sum(query)
    if query.groups:
        return found.ravel().tolist()
    return int(found) if query.counting else float(int(found) * query.unit(table.facts))


@pytest.mark.parametrize("seed", range(24))
def test_a_session_over_an_odd_declaration_answers_or_refuses_free(seed):
    rng = random.Random(seed)
    domain = dp.Domain(a=numbers(rng), b=categories(rng), c=rng.choice([numbers, categories])(rng))
    relation = rng.choice(["add-remove", "replace-one"])
    rows = {name: entries(rng, column) for name, column in domain.items()}
    size = ROWS if relation == "add-remove" else None
    table = dp.Table(rows, domain, name="people", neighbours=relation, size=size)
    ledger = dp.Ledger.in_memory(dp.Budget(2000, rng.choice([0, 1e-6])), table, testing=True)
    terms = rng.choice([{"alpha": 0.2}, {"alpha": 0.2}, {"scopes": 3}, {"scopes": 3, "alpha": 0.2}])
    session = dp.Session(table, ledger, beta=1e-6, rng=SeededRng(seed), max_price=1, **terms)
    asked = list(questions(rng, domain))
    rng.shuffle(asked)
    answered = 0
    for text in asked[:14]:
        with alarm():
            answered += one(session, ledger, table, text, priced="scopes" not in terms and "MEDIAN" not in text)
    assert answered


def one(session, ledger, table, text, *, priced):
    before = session.budget()[0]
    try:
        most = session.price(text) if priced else None
        answer = session.ask(text)
    except DiscreetError:
        assert session.budget()[0] == before, text  # whatever is refused is refused before the charge
        return 0
    assert before - session.budget()[0] == answer.price
    assert most is None or answer.price <= most
    truth = truths(text, table.facts.domain, table)
    if truth is not None:
        found = list(answer.value.values()) if isinstance(answer.value, dict) else [answer.value]
        for mine, real in zip(found, truth if isinstance(truth, list) else [truth], strict=True):
            assert abs(mine - real) <= answer.error_bound + 1e-6 * abs(real), (text, answer)
    after = session.budget()[0]
    session.ask(text)
    assert session.budget()[0] == after or "AVG" in text, text  # the same question again is free
    return 1
