"""Questions as analysts write them who know other databases (dialects.sql), put to a ledger with real noise.

As in test_questions: duckdb computes the truth, which must lie in every stated interval; beta = 1e-6 is the rate of
false alarms. What is refused is refused free, at its place, with its reason.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import UnsupportedQuery
from tests.e2e import test_questions
from tests.e2e.test_questions import outside, truth

folder, session = test_questions.folder, test_questions.session  # the same clinic, with a ledger of its own


def lines(kind):
    text = (Path(__file__).parent / "dialects.sql").read_text(encoding="utf-8")
    (section,) = [section for section in text.split("-- # ")[1:] if section.startswith(kind)]
    return [tuple(line.split(" == ")) for line in section.split("\n")[1:] if line]


@pytest.fixture(scope="module")
def connection(folder):
    with closing(truth(folder)) as found:
        yield found


@pytest.mark.parametrize("line", lines("answered"), ids=lambda line: line[0])
def test_the_truth_is_in_every_interval(session, connection, line):
    said = session.price(line[0])
    answer = session.ask(line[0])
    assert answer.rows
    assert answer.price <= said
    assert outside(connection, line[-1], answer) == []


@pytest.mark.parametrize("line", lines("refused"), ids=lambda line: line[0])
def test_a_refusal_is_free_and_says_where_and_why(session, line):
    question, word, reason = line
    before = [*session.ledger.entries()]
    for ask in (session.check, session.price, session.ask):
        with pytest.raises(UnsupportedQuery) as refused:
            ask(question)
        assert reason in refused.value.reason
        assert refused.value.position == question.index(word)
        assert refused.value.hint
    assert [*session.ledger.entries()] == before


def test_the_file_has_sixty_questions_that_are_answered():
    assert len(lines("answered")) >= 60
