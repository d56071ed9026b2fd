"""The ledger's file: the chain, damage, the high-water mark, no space, several threads and processes."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import (
    BudgetExceeded,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerRolledBack,
    LedgerUnavailable,
    ParameterError,
)
from discreet.funds import Price
from discreet.ledger import Ledger
from discreet.ledger.charging import turn
from discreet.ledger.mark import SLOT, Mark, mark_file
from discreet.ledger.state import State, advance, row_of
from discreet.release import converse, release
from tests.ledger_doubles import (
    CATALOGUE,
    DOMAIN,
    MIXED,
    PURE,
    TENTH,
    Failing,
    Guess,
    Pure,
    edited,
    fill,
    made,
    opening,
    people,
    rows_of,
)

# The chain.


@pytest.mark.parametrize("column", ["kind", "request", "charge", "body", "hash"])
def test_an_edited_column_is_named_with_its_entry(where, column):
    ledger = made(where)
    for count in range(4):
        release(TENTH, people(), ledger=ledger, request=f"r{count}")
    ledger.close()
    value = {"charge": 99, "request": b"x"}.get(column, "x")
    edited(where, f"UPDATE entries SET {column} = ? WHERE seq = 5", value)
    with pytest.raises(LedgerCorrupt) as found:
        Ledger.open(where)
    assert found.value.entry == 5


def test_a_removed_entry_is_named(where):
    ledger = made(where)
    for _ in range(4):
        release(TENTH, people(), ledger=ledger)
    edited(where, "DELETE FROM entries WHERE seq = 4")
    with pytest.raises(LedgerCorrupt) as found:
        ledger.verify()
    assert found.value.entry == 4


def test_a_rewritten_price_with_a_recomputed_chain_is_found_by_the_mark_or_the_catalogue(where, tmp_path):
    ledger = made(where)
    release(TENTH, people(), ledger=ledger)
    ledger.close()
    state, rows = State(), []
    for row in rows_of(where):
        body = {**json.loads(row[4]), "previous": state.hash}
        if body["kind"] == "charge":
            body["price"] = {"failure": 0, "pure": 1, "renyi": None}
        rows.append(row_of(state, body))
        advance(state, rows[-1])
    for row in rows:
        edited(
            where, "UPDATE entries SET body = ?, hash = ? WHERE seq = ?", row.body.decode(), row.hash.decode(), row.seq
        )
    forged = Ledger.open(where)
    assert forged.rolled_back()
    with pytest.raises(LedgerRolledBack):
        release(TENTH, people(), ledger=forged)
    elsewhere = Ledger.open(where, state_dir=tmp_path / "elsewhere")
    elsewhere.reconcile(adopt=True)
    with pytest.raises(LedgerCorrupt, match="price"):
        elsewhere.verify(CATALOGUE)


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("answer", {"charge": 7, "answer": "1"}, "pending charge"),
        ("answer", {"charge": 7, "answer": 1}, "text"),
        ("burn", {"charge": 7, "reason": ""}, "pending charge"),
        ("top", {"charge": 7}, "open conversation"),
        ("allow", {"allowance": "ana", "share": "2"}, "share"),
        ("allow", {"allowance": "ana", "share": "1/0"}, "well-formed"),
        ("open", {}, "first entry"),
        ("gift", {}, "known kind"),
        ("facts", {"facts": {"size": 5}, "facts_hash": "0"}, "hash"),
    ],
)
def test_entries_that_make_no_sense_are_refused_by_the_fold(kind, fields, expected):
    state = State()
    advance(state, row_of(state, opening(PURE)))
    body = {**fields, "kind": kind, "previous": state.hash, "time": "now", "witness": None}
    with pytest.raises(LedgerCorrupt, match=expected):
        advance(state, row_of(state, body))


def test_a_charge_beyond_the_caps_is_refused_by_the_fold():
    ledger = Ledger.in_memory(PURE, people())
    release(TENTH, people(), ledger=ledger)
    bodies = [{key: value for key, value in each.items() if key not in ("seq", "hash")} for each in ledger.entries()]
    for pure, refused in ((10**9, None), (10**9 + 1, "caps"), (0, "at least one unit"), (-1, "well-formed")):
        state = State()
        for body in bodies[:2]:
            advance(state, row_of(state, body))
        charge = {**bodies[2], "price": {"renyi": None, "pure": pure, "failure": 0}}
        if refused is None:
            advance(state, row_of(state, charge))
        else:
            with pytest.raises(LedgerCorrupt, match=refused):
                advance(state, row_of(state, charge))


def test_a_flipped_byte_is_found_or_changes_nothing(tmp_path):
    ledger = made(tmp_path)
    for count in range(6):
        release(TENTH, people(), ledger=ledger, request=f"r{count}", memo="m" * 40)
    expected, spent = list(ledger.entries()), ledger.spent()
    ledger.close()
    path = tmp_path / "people.ledger"
    whole = path.read_bytes()
    starts = {whole.find(b'"previous":"' + entry["previous"].encode()) + 20: entry["seq"] for entry in expected}
    outcomes = {"named": 0, "found": 0, "without effect": 0}
    named, unwritable = {}, []
    for position in [*range(0, 120), *range(120, len(whole), 61), *starts]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 8)
        copied = tmp_path / "copy.ledger"
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copied}{suffix}").unlink(missing_ok=True)
        copied.write_bytes(damaged)
        copied.chmod(0o600)
        try:
            opened = Ledger.open(copied)
            assert list(opened.entries()) == expected
            assert opened.spent() == spent
            assert not opened.rolled_back()
            outcomes["without effect"] += 1
        except LedgerCorrupt as error:
            outcomes["found" if error.entry is None else "named"] += 1
            named[position] = error.entry
        except LedgerUnavailable:  # SQLite's header: a file of a later version is not written
            unwritable.append(position)
    assert {position: named.get(position) for position in starts} == starts
    assert all(position < 100 for position in unwritable)
    assert min(outcomes.values()) > 0, outcomes


def test_files_that_are_no_ledgers_are_refused(tmp_path):
    for name, content in {"empty": b"", "text": b"hello" * 1000, "zeros": bytes(8192)}.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
        with pytest.raises(LedgerCorrupt):
            Ledger.open(tmp_path / name)
    edited(tmp_path / "other.db", "CREATE TABLE entries(x)")
    (tmp_path / "other.db").chmod(0o600)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(tmp_path / "other.db")
    with pytest.raises(ParameterError, match=r"nowhere\.ledger"):
        Ledger.open(tmp_path / "nowhere.ledger")
    with pytest.raises(ParameterError, match="exists already"):
        Ledger.create(tmp_path / "text", PURE, people())


# The high-water mark.


def _copied(path: Path, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    return {end: Path(f"{path}{end}").read_bytes() for end in suffixes if Path(f"{path}{end}").exists()}


@pytest.mark.parametrize("manner", ["with its log", "without its log", "over the newer log"])
def test_an_older_copy_is_refused_and_reconcile_only_raises(tmp_path, manner):
    path = tmp_path / "people.ledger"
    code = (
        "import sys; from discreet.ledger import Ledger; from discreet.release import release; "
        "from tests.ledger_doubles import *; import os\n"
        f"ledger = Ledger.open({str(path)!r})\n"
        "for _ in range(int(sys.argv[1])): release(Pure(Fraction(1, 10)), people(), ledger=ledger)\n"
        "os._exit(0)"  # the log stays: nobody closes the file
    )
    made(tmp_path).close()
    _python(code, "3")
    older = _copied(path, ("", "-wal"))
    _python(code, "4")
    if manner != "over the newer log":
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
    path.write_bytes(older[""])
    if manner == "with its log":
        Path(f"{path}-wal").write_bytes(older["-wal"])
        Path(f"{path}-wal").chmod(0o600)
    opened = Ledger.open(path)
    if manner == "over the newer log":  # the log alone holds everything since the file was made
        assert opened.spent().pure == 7 * 10**8
        return
    assert opened.rolled_back()
    assert opened.spent().pure == (3 * 10**8 if manner == "with its log" else 0)
    for attempt in (
        lambda: release(TENTH, people(), ledger=opened),
        lambda: opened.allow("ana", share=1),
        lambda: opened.admits(TENTH),
        opened.verify,
    ):
        with pytest.raises(LedgerRolledBack):
            attempt()
    opened.reconcile()
    assert opened.spent().pure == 7 * 10**8
    opened.verify(CATALOGUE)
    assert fill(opened, TENTH) == 3


def _python(code: str, *arguments: str) -> str:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_copy_used_elsewhere_is_counted_on_top_of_what_the_mark_proves(tmp_path):
    here, there = tmp_path / "people.ledger", tmp_path / "there.ledger"
    ledger = made(tmp_path)
    for _ in range(2):
        release(TENTH, people(), ledger=ledger)
    ledger.close()
    shutil.copy(here, there)
    copied = Ledger.open(there, state_dir=tmp_path / "elsewhere")
    copied.reconcile(adopt=True)
    release(TENTH, people(), ledger=copied)  # two and one here
    copied.close()
    for _ in range(3):
        release(TENTH, people(), ledger=ledger)  # five here
    ledger.close()
    shutil.copy(there, here)
    back = Ledger.open(here)
    assert back.rolled_back()
    back.reconcile()
    assert back.spent().pure == 6 * 10**8


def test_a_branch_of_the_same_length_is_refused(tmp_path):
    here, there = tmp_path / "people.ledger", tmp_path / "there.ledger"
    ledger = made(tmp_path)
    ledger.close()
    shutil.copy(here, there)
    copied = Ledger.open(there, state_dir=tmp_path / "elsewhere")
    copied.reconcile(adopt=True)
    ledger.allow("ana", share=1)
    for each in (ledger, copied):
        release(TENTH, people(), ledger=each)
        each.close()
    assert len(rows_of(here)) == len(rows_of(there))
    shutil.copy(there, here)
    with pytest.raises(LedgerRolledBack):
        release(TENTH, people(), ledger=Ledger.open(here))


def test_two_copies_under_one_mark_cannot_both_go_on(tmp_path):
    ledger = made(tmp_path)
    ledger.close()
    shutil.copy(tmp_path / "people.ledger", tmp_path / "copy.ledger")
    copied = Ledger.open(tmp_path / "copy.ledger")
    release(TENTH, people(), ledger=copied)
    with pytest.raises(LedgerRolledBack):
        release(TENTH, people(), ledger=ledger)


def test_a_file_moved_over_an_open_ledger_is_noticed(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    release(TENTH, people(), ledger=ledger)
    os.replace(tmp_path / "older", path)
    with pytest.raises(LedgerRolledBack):
        release(TENTH, people(), ledger=ledger)


def test_a_damaged_mark_is_refused_until_it_is_reconciled(where, tmp_path):
    ledger = made(where)
    for _ in range(3):
        release(TENTH, people(), ledger=ledger)
    mark = mark_file(tmp_path / "state", ledger.id).path
    whole = mark.read_bytes()
    assert len(whole) == 2 * SLOT
    for slot in (0, 1):  # a torn write of either slot leaves the other
        torn = bytearray(whole)
        torn[slot * SLOT + 10] ^= 1
        mark.write_bytes(torn)
        assert not ledger.rolled_back()
    mark.write_bytes(b"x" * len(whole))
    with pytest.raises(LedgerCorrupt, match="mark"):
        release(TENTH, people(), ledger=ledger)
    before = ledger.spent()
    with pytest.raises(LedgerMismatch, match="adopt"):
        ledger.reconcile()
    ledger.reconcile(adopt=True)
    assert ledger.spent() == before
    release(TENTH, people(), ledger=ledger)


def test_a_mark_never_goes_down_and_a_ledger_without_its_mark_is_refused(where, tmp_path):
    ledger = made(where)
    release(TENTH, people(), ledger=ledger)
    marks = mark_file(tmp_path / "state", ledger.id)
    high = marks.read()
    with marks.held() as held:
        held.commit(Mark(1, "0" * 64, Price(0, 0, 0), "w"))
    marks.settle(1, lambda: None, marked=True)
    assert marks.read() == high
    with marks.held() as held:
        held.commit(high)
    release(TENTH, people(), ledger=ledger)
    high = marks.read()
    marks.path.unlink()
    with pytest.raises(LedgerRolledBack, match="none in this state directory"):
        release(TENTH, people(), ledger=ledger)
    with pytest.raises(LedgerRolledBack):
        ledger.verify()
    before = ledger.spent()
    with pytest.raises(LedgerMismatch, match="adopt"):
        ledger.reconcile()
    ledger.reconcile(adopt=True)
    assert ledger.spent() == before
    release(TENTH, people(), ledger=ledger)
    assert marks.read().seq == high.seq + 3
    assert marks.read().spent.pure == 3 * 10**8


def test_the_mark_is_written_before_the_mechanism_runs(where, tmp_path):
    ledger = made(where)
    marks = mark_file(tmp_path / "state", ledger.id)
    seen = []

    class Watching(type(people())):
        __slots__ = ()

        def exact_sum(self, partial):
            seen.append((marks.read().seq, len(rows_of(where))))
            return super().exact_sum(partial)

    with pytest.raises(Exception, match="the charge stays"):
        release(Failing(), Watching({"age": [1, 2, 3, 4, 5]}, DOMAIN, name="people"), ledger=ledger)
    assert seen == [(3, 3)]


def test_a_mark_that_cannot_be_written_means_nothing_is_released(where, tmp_path):
    ledger = made(where)
    release(TENTH, people(), ledger=ledger)
    mark = mark_file(tmp_path / "state", ledger.id).path
    held = mark.read_bytes()
    mark.unlink()
    mark.mkdir()
    with pytest.raises(LedgerUnavailable, match="mark"):
        release(TENTH, people(), ledger=ledger, request="again")
    mark.rmdir()
    mark.write_bytes(held)
    mark.chmod(0o600)
    release(TENTH, people(), ledger=ledger)
    kinds = [entry["kind"] for entry in ledger.entries()]
    assert kinds.count("answer") == 2


# No space, no permission.


def test_no_space_left_is_refused_and_nothing_is_released(tmp_path):
    ledger = made(tmp_path, MIXED)
    small = Pure(Fraction(1, 10**6))
    release(small, people(), ledger=ledger)
    home = ledger.store.parts.place._home()
    pages = home.connection.execute("PRAGMA page_count").fetchone()[0]
    home.connection.execute(f"PRAGMA max_page_count={pages + 2}")
    answers, refused = 0, 0
    while not refused:
        try:
            release(small, people(), ledger=ledger, memo="m" * 500)
            answers += 1
        except LedgerUnavailable:
            refused += 1
    ledger.close()
    again = Ledger.open(tmp_path / "people.ledger")
    kinds = [entry["kind"] for entry in again.entries()]
    assert kinds.count("answer") == answers + 1 <= kinds.count("charge")
    again.verify(CATALOGUE)
    release(small, people(), ledger=again)


def test_a_limit_on_the_files_size_is_refused_and_nothing_is_released(tmp_path):
    made(tmp_path, MIXED).close()
    code = (
        "import resource, sys; from discreet.ledger import Ledger; from discreet.release import release\n"
        "from discreet.errors import LedgerUnavailable; from tests.ledger_doubles import *\n"
        f"ledger = Ledger.open({str(tmp_path / 'people.ledger')!r}); answers = 0; table = people()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "try:\n"
        "    for _ in range(500):\n"
        "        release(Pure(Fraction(1, 10**6)), table, ledger=ledger); answers += 1\n"
        "except LedgerUnavailable: print(answers)\n"
    )
    answers = int(_python(code))
    assert answers > 5
    again = Ledger.open(tmp_path / "people.ledger")
    assert again.spent().pure >= answers * 1000
    again.verify(CATALOGUE)
    assert [entry["kind"] for entry in again.entries()].count("answer") == answers


def test_a_locked_ledger_is_unavailable(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.ledger.sqlite.BUSY_SECONDS", 0.05)
    ledger = made(tmp_path)
    other = sqlite3.connect(tmp_path / "people.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="locked"):
        release(TENTH, people(), ledger=ledger)
    other.execute("ROLLBACK")
    other.close()
    assert ledger.spent().pure == 0
    release(TENTH, people(), ledger=ledger)


def test_log_and_mark_are_durable_before_the_mechanism_runs_and_the_answer_before_it_is_given(tmp_path, monkeypatch):
    ledger, order = made(tmp_path), []
    ledger.allow("ana", share=1)  # tables and log are there
    synced = os.fdatasync
    for module, word in (("mark", "mark"), ("sqlite", "log")):
        monkeypatch.setattr(
            f"discreet.ledger.{module}._sync_data",
            lambda descriptor, word=word: (order.append(word), synced(descriptor)),
        )
    monkeypatch.setattr(Pure, "run", lambda self, data, rng: order.append("run") or 1)
    release(TENTH, people(), ledger=ledger)
    assert order == ["log", "mark", "run", "log"]
    connection = ledger.store.parts.place._home().connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (1,)  # checkpoints sync too


# Threads, processes, copies.


def test_threads_share_one_ledger_and_one_budget(where):
    ledger, table, outcomes = made(where), people(), []

    def ask():
        try:
            release(TENTH, table, ledger=ledger)
            outcomes.append("answer")
        except BudgetExceeded:
            outcomes.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("answer"), outcomes.count("refused")) == (10, 5)


def test_a_forked_child_spends_from_the_same_budget(where):
    code = (
        "import os; from discreet.ledger import Ledger; from discreet.release import release\n"
        "from discreet.errors import LedgerUnavailable; from discreet.guarantee import Budget\n"
        "from tests.ledger_doubles import *\n"
        f"ledger = Ledger.create({str(where)!r}, Budget(1), people())\n"
        "memory = Ledger.in_memory(Budget(1), people()); tenth = Pure(Fraction(1, 10))\n"
        "release(tenth, people(), ledger=ledger)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    release(tenth, people(), ledger=ledger)\n"
        "    try: memory.spent()\n"
        "    except LedgerUnavailable: os._exit(0)\n"
        "    os._exit(1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "release(tenth, people(), ledger=ledger); ledger.verify(); print(ledger.spent().pure)\n"
    )
    assert int(_python(code)) == 3 * 10**8


def test_a_closed_ledger_opens_again_unless_it_was_in_memory(where):
    ledger = made(where)
    ledger.close()
    release(TENTH, people(), ledger=ledger)
    memory = Ledger.in_memory(PURE, people())
    memory.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        memory.spent()


def test_a_turn_of_a_conversation_cannot_charge_the_ledger(where):
    ledger = made(where)
    talk = converse(Guess(), people(), ledger=ledger)
    with turn(ledger, talk.charge), pytest.raises(LedgerUnavailable, match="turn"):
        release(TENTH, people(), ledger=ledger)
    assert ledger.spent().pure == 10**8


def test_a_ledger_pickles_as_its_path_and_copies_as_itself(where):
    ledger = made(where)
    again = pickle.loads(pickle.dumps(ledger))
    release(TENTH, people(), ledger=again)
    assert ledger.spent().pure == 10**8
    assert copy.deepcopy(ledger) is ledger is copy.copy(ledger)
    with pytest.raises(ParameterError, match="second budget"):
        pickle.dumps(Ledger.in_memory(PURE, people()))


def test_a_charge_of_a_process_that_is_gone_is_burned_on_opening(where):
    made(where).close()
    code = (
        "import os; from discreet.ledger import Ledger; from discreet.release import release\n"
        "from tests.ledger_doubles import *\n"
        "class Dying(Pure):\n"
        "    def run(self, data, rng): os._exit(0)\n"
        f"ledger = Ledger.open({str(where)!r})\n"
        "release(Dying(Fraction(1, 10)), people(), ledger=ledger, request='r')\n"
    )
    _python(code)
    ledger = Ledger.open(where)
    assert [entry["kind"] for entry in ledger.entries()][-2:] == ["charge", "burn"]
    assert ledger.spent().pure == 10**8
    with pytest.raises(ParameterError, match="interrupted"):
        release(TENTH, people(), ledger=ledger, request="r")
