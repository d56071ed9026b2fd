"""Many processes at one ledger: the budget is spent once, and a conversation ends once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from discreet.errors import LedgerCorrupt
from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.ledger.address import Address
from discreet.mechanisms import AboveThreshold
from discreet.release import converse
from tests.ledger_doubles import CATALOGUE, people

ROOT = Path(__file__).parents[2]
IMPORTS = (
    "import os, sys, time\n"
    "from fractions import Fraction\n"
    "from discreet.errors import BudgetExceeded, ConversationOver, DiscreetError\n"
    "from discreet.ledger import Ledger\n"
    "from discreet.mechanisms import AboveThreshold, IsAbove\n"
    "from discreet.query import Count\n"
    "from discreet.release import release, reopen\n"
    "from tests.ledger_doubles import Pure, people\n"
    "path, start, table = sys.argv[1], sys.argv[2], people()\n"
    "def ready():\n"
    "    os.write(1, b'ready\\n')\n"
    "    last = time.monotonic() + 100\n"
    "    while not os.path.exists(start):\n"
    "        if time.monotonic() > last: os._exit(3)\n"  # the test is gone: do not wait for ever
    "        time.sleep(0.001)\n"
)
# Fifty processes are forked from one that has imported the library and touched no ledger.
FIFTY = IMPORTS + (
    "children = []\n"
    "for _ in range(50):\n"
    "    children.append(os.fork())\n"
    "    if children[-1]: continue\n"
    "    ready()\n"
    "    try:\n"
    "        release(Pure(Fraction(1, 10)), table, ledger=Ledger.open(path))\n"
    "        os.write(1, b'answer\\n')\n"
    "    except BudgetExceeded: os.write(1, b'refused\\n')\n"
    "    except DiscreetError: os.write(1, b'failed\\n')\n"
    "    os._exit(0)\n"
    "assert [os.waitpid(child, 0)[1] for child in children] == [0] * 50\n"
)
HAMMER = IMPORTS + (
    "ready()\n"
    "ledger = Ledger.open(path)\n"
    "for charge in map(int, sys.argv[3].split(',')):\n"
    "    talk = reopen(AboveThreshold(2, 2), table, charge=charge, ledger=ledger)\n"
    "    try:\n"
    "        while True:\n"
    "            if talk.ask(IsAbove(Count(), threshold=8)): print('top', charge)\n"
    "    except ConversationOver: print('over', charge)\n"
)


def together(tmp_path: Path, where: Path | Address, code: str, *arguments: str, starts: int, ready: int) -> list[str]:
    """Start the processes, wait until all are ready, let them go at once, and return what they print."""
    start = tmp_path / "start"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", code, str(where), str(start), *arguments]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(starts)]
    for process in running:
        assert [process.stdout.readline().strip() for _ in range(ready)] == ["ready"] * ready
    start.touch()
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * starts
    return [line for output in outputs for line in output.splitlines()]


def test_of_fifty_processes_that_ask_for_a_tenth_exactly_ten_succeed(tmp_path, where):
    Ledger.create(where, Budget(1), people()).close()
    outcomes = Counter(together(tmp_path, where, FIFTY, starts=1, ready=50))
    assert outcomes == {"answer": 10, "refused": 40}
    ledger = Ledger.open(where)
    ledger.verify(CATALOGUE)
    assert ledger.spent().pure == 10**9


# Transactions as they are by default: neither the ledger's lock nor the mark with its turns.
UNLOCKED = (
    "from discreet.ledger import postgres, store\n"
    "postgres._WRITE = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE'\n"
    "store.Store._witness = lambda self: None\n"
)


def test_without_the_lock_the_primary_key_still_keeps_the_chain_in_one_piece(tmp_path, address):
    Ledger.create(address, Budget(1), people()).close()
    outcomes = Counter(together(tmp_path, address, UNLOCKED + FIFTY, starts=1, ready=50))
    assert outcomes["answer"] <= 10
    assert outcomes.total() == 50
    with psycopg.connect(address.server) as owner:
        count = "SELECT count(*), count(DISTINCT seq), max(seq) FROM discreet.entries WHERE ledger = %s"
        assert len(set(owner.execute(count, (address.name,)).fetchone())) == 1
    assert Ledger.open(address, look=True).spent().pure <= 10**9


def test_default_transactions_overspend_and_the_race_notices(tmp_path, cluster):
    address = Address(cluster.database(), "people")
    with psycopg.connect(address.server) as owner:
        owner.execute("ALTER TABLE discreet.entries DROP CONSTRAINT entries_pkey")
    Ledger.create(address, Budget(1), people()).close()
    outcomes = Counter(together(tmp_path, address, UNLOCKED + FIFTY, starts=1, ready=50))
    with psycopg.connect(address.server) as owner:
        count = "SELECT count(*) FILTER (WHERE kind = 'charge'), count(*) - count(DISTINCT seq) FROM discreet.entries"
        charges, forks = owner.execute(count).fetchone()
    assert outcomes["answer"] > 10 or charges > 10 or forks
    with pytest.raises(LedgerCorrupt):
        Ledger.open(address, look=True).verify(CATALOGUE)


def test_two_processes_hammering_one_conversation_get_at_most_one_top(tmp_path, where):
    ledger = Ledger.create(where, Budget(100), people())
    charges = [converse(AboveThreshold(2, 2), people(), ledger=ledger).charge for _ in range(12)]
    lines = Counter(together(tmp_path, where, HAMMER, ",".join(map(str, charges)), starts=2, ready=1))
    tops = Counter(entry["charge"] for entry in ledger.entries() if entry["kind"] == "top")
    assert tops == dict.fromkeys(charges, 1)
    for charge in charges:
        assert lines[f"top {charge}"] == 1
        assert lines[f"over {charge}"] == 2
