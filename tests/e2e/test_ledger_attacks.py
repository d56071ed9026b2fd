"""What was tried against the ledger from several processes and at the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.release import converse, release
from tests.ledger_doubles import CATALOGUE, Guess, Pure, people

ROOT = Path(__file__).parents[2]
BOUND = 10**18
IMPORTS = (
    "import os, signal, sys, time\n"
    "from fractions import Fraction\n"
    "from discreet.errors import DiscreetError\n"
    "from discreet.guarantee import Budget\n"
    "from discreet.ledger import Ledger\n"
    "from discreet.release import converse, release, reopen\n"
    "from tests.ledger_doubles import Guess, Pure, people\n"
    "signal.alarm(60)\n"  # whoever waits for somebody who is gone ends by himself
    "folder, table = sys.argv[1], people()\n"
    "say = lambda *words: os.write(1, (' '.join(map(str, words)) + '\\n').encode())\n"
    "def ended(children): return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]\n"
)
# Children wait at a pipe that their parent closes when all have started; a step says that it runs.
STEP = (
    "start, go = os.pipe()\n"
    "class Said(Guess):\n"
    "    def step(self, state, ask, data, rng):\n"
    "        say('step')\n"
    "        time.sleep(0.3)\n"  # long enough for the others to come in, if they could
    "        return Guess.step(self, state, ask, data, rng)\n"
    "def asked(talk):\n"
    "    try: say('answer', talk.ask(10**18))\n"
    "    except DiscreetError as error: say(type(error).__name__)\n"
    "def child(work):\n"
    "    pid = os.fork()\n"
    "    if pid: return pid\n"
    "    signal.alarm(60)\n"
    "    os.close(go)\n"
    "    try:\n"
    "        os.read(start, 1)\n"
    "        work()\n"
    "        os._exit(0)\n"
    "    finally: os._exit(1)\n"
)
COPIES = (
    IMPORTS
    + STEP
    + (
        "def work(number):\n"
        "    ledger = Ledger.open(f'{folder}/copy{number}.ledger')\n"
        "    asked(reopen(Said(bound=10**18), table, charge=int(sys.argv[2]), ledger=ledger))\n"
        "children = [child(lambda: work(number)) for number in range(4)]\n"
        "os.close(go)\n"
        "assert ended(children) == [0] * 4\n"
    )
)
# Parent and children share a ledger that was open before the fork; the parent opens and closes it meanwhile.
FORKED = (
    IMPORTS
    + STEP
    + (
        "ledger = Ledger.create(f'{folder}/people.ledger', Budget(1), table)\n"
        "small = Pure(Fraction(1, 10**6))\n"
        "def charge(times, close):\n"
        "    for _ in range(times):\n"
        "        got = release(small, table, ledger=ledger)\n"
        "        say(got.entry, got.hash)\n"
        "        if close: ledger.close()\n"
        "charge(2, False)\n"
        "children = [child(lambda: charge(25, False)) for _ in range(3)]\n"
        "os.close(go)\n"
        "charge(25, True)\n"
        "assert ended(children) == [0] * 3\n"
        "charge(2, False)\n"
        "ledger.verify()\n"
    )
)
# The parent closes the ledger, and asks too, while a child that was forked from it is inside its step.
CLOSED_MEANWHILE = (
    IMPORTS
    + STEP
    + (
        "inside, entered = os.pipe()\n"
        "class Stopped(Said):\n"
        "    def step(self, state, ask, data, rng):\n"
        "        if os.getpid() != parent:\n"
        "            os.write(entered, b'.')\n"
        "            time.sleep(0.3)\n"
        "        return Said.step(self, state, ask, data, rng)\n"
        "parent = os.getpid()\n"
        "ledger = Ledger.create(f'{folder}/people.ledger', Budget(1), table)\n"
        "talk = converse(Stopped(bound=10**18), table, ledger=ledger)\n"
        "children = [child(lambda: asked(talk))]\n"
        "os.close(go)\n"
        "os.read(inside, 1)\n"
        "ledger.spent()\n"
        "ledger.close()\n"
        "asked(talk)\n"
        "assert ended(children) == [0]\n"
        "ledger.verify()\n"
    )
)


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def lines_of(code: str, *arguments: str) -> list[str]:
    """What a process with this code prints; the process and its children end by themselves."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_of_copies_with_their_secrets_under_one_mark_one_process_gets_the_last_answer(tmp_path):
    ledger = Ledger.create("people.ledger", Budget(1), people())
    talk = converse(Guess(bound=BOUND), people(), ledger=ledger)
    ledger.close()
    for number in range(4):
        for end in ("", ".secret"):
            shutil.copy(f"people.ledger{end}", f"copy{number}.ledger{end}")
    found = Counter(lines_of(COPIES, str(tmp_path), str(talk.charge)))
    assert found == {"step": 1, "answer True": 1, "LedgerRolledBack": 3}


def test_every_charge_before_and_after_a_fork_is_recorded(tmp_path):
    got = [tuple(line.split()) for line in lines_of(FORKED, str(tmp_path))]
    ledger = Ledger.open("people.ledger")
    entries = list(ledger.entries())
    assert len(got) == 2 + 25 + 3 * 25 + 2
    assert set(got) == {(str(each["seq"]), each["hash"]) for each in entries if each["kind"] == "charge"}
    assert [each["kind"] for each in entries].count("answer") == len(got)
    assert ledger.spent().pure == len(got) * 1000
    ledger.verify(CATALOGUE)


def test_a_parent_that_closes_the_ledger_does_not_let_itself_into_its_childs_turn(tmp_path):
    found = Counter(lines_of(CLOSED_MEANWHILE, str(tmp_path)))
    assert found == {"step": 1, "answer True": 1, "ConversationOver": 1}
    kinds = [each["kind"] for each in Ledger.open("people.ledger").entries()]
    assert (kinds.count("charge"), kinds.count("top")) == (1, 1)


# The command line.


@pytest.mark.parametrize("epsilon", ["1e250", "1e-250", "123456789e240"])
def test_an_epsilon_of_many_digits_is_printed_in_a_few(run, epsilon):
    more = ("--name", "people", "--neighbours", "replace-one", "--size", "5", "--yes")
    code, out, err = run("ledger", "create", "p.ledger", "--epsilon", epsilon, *more)
    assert (code, err) == (0, "")
    assert len(out) < 400  # in full it would be longer than that
    assert Ledger.open("p.ledger").budget == Budget(Fraction(epsilon))
    code, out, err = run("ledger", "verify", "p.ledger")
    assert (code, err) == (0, "")
    code, out, err = run("ledger", "show", "p.ledger")
    assert (code, err) == (0, "")
    assert "nan" not in out
    assert "inf" not in out


def test_a_memo_of_several_lines_is_one_line_of_the_table(run):
    ledger = Ledger.create("p.ledger", Budget(1), people())
    memo = "first\n9  2026-01-01T00:00:00Z  laplace/1  0.1  none  answered\r\nthird\u2028fourth\x0b\x0cfifth\x85sixth"
    for text in (memo, "plain", "\n\n"):
        release(Pure(Fraction(1, 10)), people(), ledger=ledger, memo=text)
    ledger.close()
    code, out, err = run("ledger", "show", "p.ledger")
    assert (code, err) == (0, "")
    rows = out[out.index("what was asked") :].splitlines()[2:]
    assert [line.split()[0] for line in rows if line[:7].strip()] == ["3", "5", "7"]  # the rest goes on in its column
    flat = " ".join(out.split())
    assert "first 9 2026" in flat
    assert "fifth sixth" in flat
