"""kill -9 at random points: what clients received is never more than what is recorded, and the file opens again."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.ledger.address import Address
from discreet.ledger.answer_codec import decode
from tests.e2e.ledger_worker import PRICE
from tests.ledger_doubles import CATALOGUE, people

ROOT = Path(__file__).parents[2]


def orders(seed: int, count: int) -> list[dict]:
    """When each child dies. A release and a conversation are about two thousand lines of code."""
    draw = random.Random(seed)
    kinds = ("working", "seconds", "working", "opening")
    after = {
        "working": lambda: draw.randrange(1, 2500),
        "opening": lambda: draw.randrange(1, 3000),
        "seconds": lambda: draw.uniform(0.001, 0.1),
    }
    return [{kind: after[kind]()} for kind in (kinds * count)[:count]]


def settled(where: Path | Address) -> None:
    """Wait until the server has noticed which of its clients died: one may have died while it committed."""
    if isinstance(where, Address):
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
        with psycopg.connect(where.server, autocommit=True) as owner:
            while owner.execute(others, ("discreet",)).fetchone() != (0,):
                time.sleep(0.01)


def check(where: Path | Address, notes: Path) -> Counter:
    """Open the ledger again and compare it with everything that any client wrote down."""
    settled(where)
    ledger = Ledger.open(where)
    ledger.verify(CATALOGUE)
    entries = list(ledger.entries())
    answers = {entry["charge"]: decode(entry["answer"]) for entry in entries if entry["kind"] == "answer"}
    charges = {entry["seq"]: entry for entry in entries if entry["kind"] == "charge"}
    tops = Counter(entry["charge"] for entry in entries if entry["kind"] == "top")
    received = [json.loads(line) for line in notes.read_text().splitlines() if line.endswith("}")]
    for note in received:
        assert note["entry"] in charges
        if note["kind"] == "release":
            assert answers[note["entry"]] == note["value"]
    yes = Counter(note["entry"] for note in received if note["kind"] == "turn" and note["value"])
    assert all(count == 1 for count in tops.values())
    assert all(yes[charge] <= tops[charge] for charge in yes)
    paid_for = {note["entry"] for note in received}
    assert ledger.spent().pure >= len(paid_for) * PRICE * 10**9
    assert ledger.spent().pure == len(charges) * PRICE * 10**9
    closed = set(answers) | {entry["charge"] for entry in entries if entry["kind"] in ("burn", "top")}
    assert all(seq in closed or entry["mode"] == "conversation" for seq, entry in charges.items())
    ledger.close()
    return Counter(entry["kind"] for entry in entries)


def crash(tmp_path: Path, where: Path | Address, seed: int, count: int) -> None:
    notes = tmp_path / "received"
    Ledger.create(where, Budget(1, 1e-6), people()).close()
    notes.touch()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.e2e.ledger_worker", str(where), str(notes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as worker:
        for order in orders(seed, count):
            worker.stdin.write(json.dumps(order) + "\n")
            worker.stdin.flush()
            assert worker.stdout.readline().strip() == "done", order
            kinds = check(where, notes)
        worker.stdin.close()
    assert kinds["burn"] >= count // 20  # releases were interrupted
    assert kinds["answer"] >= count // 8  # and others were not


def test_what_is_recorded_is_never_less_than_what_was_received(tmp_path, where):
    crash(tmp_path, where, seed=1, count=40)


@pytest.mark.slow
def test_what_is_recorded_is_never_less_than_what_was_received_in_two_hundred_crashes(tmp_path, where):
    crash(tmp_path, where, seed=2, count=200)
