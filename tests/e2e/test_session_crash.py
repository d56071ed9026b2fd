"""A session that is killed goes on from its ledger: what it said stays said, what it paid stays paid, nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys

import discreet as dp
from discreet.catalogue import CATALOGUE

WORKER = """
import json, sys
import discreet as dp
from tests.e2e.test_session_crash import QUESTIONS, people

folder = sys.argv[1]
ledger = dp.Ledger.open(f"{folder}/people.ledger", state_dir=folder)
session = dp.Session(people(), ledger, alpha=0.05)
for question in QUESTIONS:
    answer = session.ask(question)
    print(json.dumps([question, answer.value, answer.error_bound, answer.source]), flush=True)
"""

DOMAIN = dp.Domain(age=dp.Number(0, 9, step=1), sex=dp.Category("F", "M"), town=dp.Category("a", "b", "c"))
QUESTIONS = [
    f"SELECT COUNT(*) FROM people WHERE age >= {age} AND {rest}"
    for age in range(1, 10)
    for rest in ("sex = 'F'", "town = 'a'", "town IN ('a', 'b') AND sex = 'M'", "NOT (sex = 'F' AND town = 'c')")
]


def people() -> dp.Table:
    n = 20_000
    return dp.Table(
        {
            "age": [i * i % 10 for i in range(n)],
            "sex": ["FM"[i // 7 % 2] for i in range(n)],
            "town": ["abc"[i // 3 % 3] for i in range(n)],
        },
        DOMAIN,
        name="people",
    )


def killed_after(folder, seconds: float) -> list[list[object]]:
    """What a worker printed before it was killed."""
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        worker.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        worker.kill()
    printed, _ = worker.communicate()
    return [json.loads(line) for line in printed.splitlines() if line.endswith("]")]


def test_a_killed_session_goes_on_with_the_same_answers(tmp_path):
    dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(2, 1e-6), people(), state_dir=tmp_path).close()
    heard: dict[str, list[object]] = {}
    for seconds in (1.5, 2.0, 2.5, 60.0):
        for question, value, bound, source in killed_after(tmp_path, seconds):
            if question in heard:
                assert [value, bound, source] == [*heard[question], "cache"]
            heard.setdefault(question, [value, bound])
    assert set(heard) == set(QUESTIONS)
    ledger = dp.Ledger.open(tmp_path / "people.ledger", state_dir=tmp_path)
    assert ledger.verify(CATALOGUE) == ()
    spent = ledger.spent()
    session = dp.Session(people(), ledger, alpha=0.05)
    assert [[answer.value, answer.error_bound] for answer in map(session.ask, QUESTIONS)] == list(heard.values())
    assert ledger.spent() == spent


def test_two_sessions_that_ask_the_same_at_once_pay_once(tmp_path):
    dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(2, 1e-6), people(), state_dir=tmp_path).close()
    run = [sys.executable, "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    heard = [[json.loads(line)[:3] for line in worker.communicate()[0].splitlines()] for worker in workers]
    assert heard[0] == heard[1]
    assert len(heard[0]) == len(QUESTIONS)
    ledger = dp.Ledger.open(tmp_path / "people.ledger", state_dir=tmp_path)
    asked = [body["meaning"] for body in ledger.entries() if body["kind"] == "said"]
    assert len(asked) == len(set(asked))


def test_a_lost_secret_costs_a_new_threshold_and_nothing_else(tmp_path):
    """The threshold's noise lives beside the ledger; without it the conversation is over, for everybody."""
    ledger = dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(5, 1e-6), people(), state_dir=tmp_path)
    table = people()
    for columns in (("age",), ("sex",), ("town",)):
        dp.release(dp.Gaussian(dp.Histogram(columns), scale=20), table, ledger=ledger)
    session = dp.Session(table, ledger, alpha=0.1)
    session._answers.transcript.saved = 10**12  # as if so much had been rented
    for question in QUESTIONS[:12]:
        session.ask(question)
    opened = [body for body in ledger.entries() if body.get("mode") == "conversation"]
    assert opened
    for secret in tmp_path.glob("*.secret*"):
        secret.unlink()
    before = ledger.spent().renyi
    again = dp.Session(table, ledger, alpha=0.1)
    assert again.ask(QUESTIONS[0]).source == "cache"
    answers = [again.ask(question) for question in QUESTIONS[12:20]]
    assert sum(answer.price for answer in answers) == ledger.spent().renyi - before
