"""kill -9 of a PostgreSQL server and of its clients at random moments: nothing that was answered is forgotten, no
charge is answered twice, and the chain verifies."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.ledger.address import Address
from discreet.release import release
from tests.crash.harness import TALLY
from tests.e2e.ledger_worker import PRICE
from tests.e2e.test_ledger_crash import check
from tests.ledger_doubles import Guess, Pure, people
from tests.postgres import Cluster

ROOT = Path(__file__).parents[2]


@pytest.fixture
def frail(cluster) -> Iterator[Cluster]:
    """A server of this test alone, since it will be killed."""
    made = Cluster()
    yield made
    made.close()


def started(address: Address, notes: Path, stop: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.crash.postgres_worker", str(address), str(notes), str(stop)]
    return subprocess.Popen(command, env=environment)


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_servers_and_clients_that_are_killed_lose_nothing_and_give_nothing_twice(frail, tmp_path, kills):
    draw = random.Random(kills)
    address = Address(frail.database(), "people")
    Ledger.create(address, Budget(1, 1e-6), people()).close()
    notes, stop = tmp_path / "notes", tmp_path / "stop"
    notes.touch()
    workers = [started(address, notes, stop) for _ in range(3)]
    while notes.stat().st_size < 1000:  # all of them are at work
        assert workers[0].poll() is None
        time.sleep(0.01)
    for number in range(kills):
        time.sleep(draw.uniform(0.02, 0.4))
        if number % 2:
            chosen = draw.randrange(len(workers))
            workers[chosen].kill()
            workers[chosen].wait()
            workers[chosen] = started(address, notes, stop)
        else:
            frail.kill()
            time.sleep(draw.uniform(0, 0.2))
            frail.start()
        TALLY["kills", "PostgreSQL clients" if number % 2 else "PostgreSQL servers"] += 1
    before = notes.stat().st_size
    while notes.stat().st_size < before + 1000:  # they still get answers
        time.sleep(0.01)
    stop.touch()
    assert [worker.wait(60) for worker in workers] == [0] * len(workers)
    kinds = check(address, notes)
    received = [json.loads(line) for line in notes.read_text().splitlines() if line.endswith("}")]
    told = {note["request"]: note["value"] for note in received if note["kind"] == "release"}
    assert len(told) == len({note["entry"] for note in received if note["kind"] == "release"})
    ledger = Ledger.open(address)
    spent = ledger.spent()
    for request in draw.sample(sorted(told), 10):
        again = release(Pure(PRICE), people(), ledger=ledger, request=request)
        assert (again.value, again.replayed) == (told[request], True)
    assert ledger.spent() == spent
    assert kinds["answer"] >= len(told) > 20


# Two processes on one ledger; the first is killed at one of its moments inside a conversation.
TALKING = (
    "import os, sys\n"
    "from discreet.ledger import Ledger, charging\n"
    "from discreet.release import converse, reopen\n"
    "from tests.ledger_doubles import Guess, people\n"
    "address, moment = sys.argv[1:]\n"
    "talk = converse(Guess(bound=10**18), people(), ledger=Ledger.open(address))\n"
    "print(talk.charge, flush=True)\n"
    "if moment == 'between two questions': talk.ask(0); os.kill(os.getpid(), 9)\n"
    "if moment == 'in a step': Guess.step = lambda *arguments: os.kill(os.getpid(), 9)\n"
    "if moment == 'before it is recorded': charging.Turn.keep = lambda *arguments: os.kill(os.getpid(), 9)\n"
    "if moment == 'after its secret went': charging.Writer.append = lambda *arguments: os.kill(os.getpid(), 9)\n"
    "talk.ask(10**18)\n"
)


@pytest.mark.parametrize(
    "moment", ["between two questions", "in a step", "before it is recorded", "after its secret went"]
)
def test_a_conversation_whose_process_is_killed_goes_on_or_is_over_and_costs_once(where, moment):
    from discreet.errors import ConversationOver
    from discreet.release import reopen

    ledger = Ledger.create(where, Budget(1), people())
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", TALKING, str(where), moment]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert done.returncode == -9, done.stderr
    talk = reopen(Guess(bound=10**18), people(), charge=int(done.stdout), ledger=ledger)
    answers = []
    try:
        for guess in (0, 10**18, 10**18):
            answers.append(talk.ask(guess))
    except ConversationOver:
        pass
    assert answers == ([] if moment == "after its secret went" else [False, True])
    assert Counter(entry["kind"] for entry in ledger.entries())["charge"] == 1
    assert ledger.spent().pure == 10**8
