"""The ledger under copies, other users, interrupted creations, concurrent writers and growth."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import stat
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.answering import transcript
from discreet.answering.transcript import Transcript
from discreet.catalogue import CATALOGUE as OURS
from discreet.certificate import Certificate, certificate, check
from discreet.data import Category, Domain, Number, Table
from discreet.errors import (
    ConversationOver,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerRolledBack,
    LedgerUnavailable,
    ParameterError,
)
from discreet.guarantee import Budget
from discreet.ledger import Ledger, durable, store
from discreet.ledger.mark import MarkFile, mark_file
from discreet.ledger.state import LARGE, State, advance, row_of
from discreet.mechanisms import AboveThreshold, IsAbove, Laplace
from discreet.query import Count, Histogram
from discreet.release import converse, release, reopen
from discreet.session import Session
from tests.ledger_doubles import (
    CATALOGUE,
    DOMAIN,
    MIXED,
    PURE,
    TENTH,
    Guess,
    Pure,
    edited,
    fill,
    forge,
    made,
    people,
    rows_of,
    secret_of,
)

STRANGER = 65534
forked = multiprocessing.get_context("fork")


def kinds(ledger: Ledger) -> list[str]:
    return [entry["kind"] for entry in ledger.entries()]


def in_a_child(work: Any) -> int | None:
    """Run this in a forked process; its exit code."""
    child = forked.Process(target=work)
    child.start()
    child.join(60)
    return child.exitcode


# Copies.


def test_a_copy_made_before_the_first_charge_is_no_second_budget(tmp_path):
    path = tmp_path / "people.ledger"
    made(tmp_path).close()
    shutil.copy(path, tmp_path / "fresh")
    assert fill(Ledger.open(path), TENTH) == 10
    shutil.copy(tmp_path / "fresh", path)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    elsewhere = Ledger.open(path, state_dir=tmp_path / "elsewhere")
    with pytest.raises(LedgerRolledBack, match="the mark that its entries name"):
        release(TENTH, people(), ledger=elsewhere)
    with pytest.raises(LedgerRolledBack):
        elsewhere.verify()


def test_a_ledger_has_its_mark_before_it_can_be_found(tmp_path, monkeypatch):
    seen = []
    link = os.link

    def watched(old: Any, new: Any) -> None:
        marks = [path for path in (tmp_path / "state" / "marks").iterdir() if "." not in path.name]
        seen.append([mark_file(tmp_path / "state", path.name).read() for path in marks])
        link(old, new)

    monkeypatch.setattr(os, "link", watched)
    ledger = made(tmp_path)
    assert [mark.seq for mark in seen[0]] == [2]
    assert {entry["witness"] for entry in ledger.entries()} == {seen[0][0].witness}


def test_a_backup_made_after_adopting_is_counted_once(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    for _ in range(4):
        release(TENTH, people(), ledger=ledger)
    ledger.close()
    moved = Ledger.open(path, state_dir=tmp_path / "elsewhere")
    moved.reconcile(adopt=True)
    assert moved.spent().pure == 4 * 10**8
    moved.close()
    shutil.copy(path, tmp_path / "backup")
    release(TENTH, people(), ledger=moved)
    moved.close()
    shutil.copy(tmp_path / "backup", path)
    back = Ledger.open(path, state_dir=tmp_path / "elsewhere")
    assert back.rolled_back()
    back.reconcile()
    assert back.spent().pure == 5 * 10**8


def test_owners_who_adopt_at_the_same_moment_count_once(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    for _ in range(3):
        release(TENTH, people(), ledger=ledger)
    ledger.close()
    gate = forked.Barrier(4)

    def adopt() -> None:
        own = Ledger.open(path, state_dir=tmp_path / "elsewhere")
        gate.wait(30)
        own.reconcile(adopt=True)

    children = [forked.Process(target=adopt) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * 4
    opened = Ledger.open(path, state_dir=tmp_path / "elsewhere")
    assert opened.spent().pure == 3 * 10**8
    assert kinds(opened).count("reconcile") == 1
    assert fill(opened, TENTH) == 7


def test_a_charge_that_waits_for_the_disk_while_another_copy_is_reconciled_is_counted_there(tmp_path, monkeypatch):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    seen = []
    settle = MarkFile.settle

    def waiting(self: MarkFile, seq: int, *rest: Any, **more: Any) -> None:
        if not seen:  # the charge is committed, and the owner puts an older copy in its place
            seen.append(seq)
            other = Ledger.open(tmp_path / "older")
            other.reconcile()
            seen.append(other.spent().pure)
        settle(self, seq, *rest, **more)

    monkeypatch.setattr(MarkFile, "settle", waiting)
    with pytest.raises(LedgerRolledBack):  # its answer cannot be stored any more
        release(TENTH, people(), ledger=ledger)
    assert seen == [3, 10**8]


def test_a_rollback_refills_no_allowance(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    for name in ("ana", "ben"):
        ledger.allow(name, share="1/2")
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    for _ in range(5):
        release(TENTH, people(), ledger=ledger, allowance="ana")
    ledger.close()
    shutil.copy(tmp_path / "older", path)
    back = Ledger.open(path)
    back.reconcile()
    assert back.spent().pure == 5 * 10**8
    assert back.remaining(allowance="ana").pure == 0
    assert back.remaining(allowance="ben").pure == 5 * 10**8
    back.verify(CATALOGUE)


def test_names_that_the_mark_has_no_room_for_are_charged_all_that_was_lost(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    for number in range(80):  # more than a slot of the mark holds
        ledger.allow(f"analyst {number}", share="1/2")
        release(Pure(Fraction(1, 10**9)), people(), ledger=ledger, allowance=f"analyst {number}")
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    release(TENTH, people(), ledger=ledger, allowance="analyst 7")
    assert mark_file(tmp_path / "state", ledger.id).read().named is None
    ledger.close()
    shutil.copy(tmp_path / "older", path)
    back = Ledger.open(path)
    back.reconcile()
    assert back.remaining(allowance="analyst 7").pure == back.remaining(allowance="analyst 8").pure == 4 * 10**8 - 1


# Neighbours in a shared folder.


def test_nothing_is_written_through_a_file_that_a_neighbour_made(tmp_path, monkeypatch):
    ledger = made(tmp_path)
    monkeypatch.setattr(durable.secrets, "token_hex", lambda size: "foreseen")
    planted = tmp_path / ".people.ledger.secret.foreseen.new"
    for trap in ("a file", "a link"):
        victim = tmp_path / "victim"
        victim.write_text("mine")
        if trap == "a file":
            planted.touch(mode=0o666)
        else:
            planted.symlink_to(victim)
        monkeypatch.setattr("discreet.ledger.local.remove", lambda path: None)  # the neighbour puts it back
        with pytest.raises(LedgerUnavailable, match="cannot be written"):
            converse(Guess(), people(), ledger=ledger)
        assert planted.read_text() in ("", "mine")
        assert victim.read_text() == "mine"
        planted.unlink(missing_ok=True)
    assert not (tmp_path / "people.ledger.secret").exists()


def test_the_lock_of_the_sessions_follows_no_link(tmp_path):
    ledger = made(tmp_path)
    (tmp_path / "people.ledger.asking").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerUnavailable, match="asking"), ledger.store.parts.turns.alone():
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("which", ["ledger", "mark", "secret"])
@pytest.mark.parametrize("how", ["others may read it", "somebody else owns it"])
def test_a_file_that_is_not_its_owners_alone_is_refused(tmp_path, which, how):
    if how == "somebody else owns it" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    ledger = made(tmp_path)
    talk = converse(Guess(), people(), ledger=ledger)
    ledger.close()
    files = {
        "ledger": tmp_path / "people.ledger",
        "mark": mark_file(tmp_path / "state", ledger.id).path,
        "secret": tmp_path / "people.ledger.secret",
    }
    before = files[which].read_bytes()
    if how == "others may read it":
        files[which].chmod(0o640)
    else:
        os.chown(files[which], STRANGER, STRANGER)
    with pytest.raises(LedgerUnavailable, match="others" if "may" in how else "another user"):
        talk.ask(1000)
    if which == "ledger":
        with pytest.raises(LedgerUnavailable):
            Ledger.open(files[which])
    assert files[which].read_bytes() == before
    os.chown(files[which], os.geteuid(), -1)
    files[which].chmod(0o600)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", ".asking"])
@pytest.mark.parametrize("trap", ["a file", "a link"])
def test_a_log_or_a_lock_that_a_neighbour_made_is_refused(tmp_path, suffix, trap):
    ledger = made(tmp_path)
    ledger.close()
    planted = Path(f"{tmp_path / 'people.ledger'}{suffix}")
    planted.unlink(missing_ok=True)
    if trap == "a file":
        planted.touch()
        planted.chmod(0o666)
    else:
        planted.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerUnavailable), ledger.store.parts.turns.alone():
        release(TENTH, people(), ledger=ledger)
    assert not (tmp_path / "elsewhere").exists()
    planted.unlink()
    release(TENTH, people(), ledger=ledger)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_file_is_its_owners_alone_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        ledger = made(tmp_path)
        converse(Guess(), people(), ledger=ledger)
        with ledger.store.parts.turns.alone():
            pass
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 6
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_an_edited_secret_ends_its_conversation(where):
    ledger = made(where)
    talk = converse(Guess(bound=10), people(), ledger=ledger)
    secret = secret_of(ledger)
    held = json.loads(secret.read_text())
    ((key, state),) = held["states"].items()
    held["states"][key] = {**state, "secret": 10**6}
    secret.write_text(json.dumps(held))
    with pytest.raises(ConversationOver):
        talk.ask(100)


def test_what_a_killed_writer_left_of_a_secret_is_removed(tmp_path):
    left = tmp_path / ".people.ledger.secret.0123456789abcdef.new"
    ledger = made(tmp_path)
    left.write_text('{"a noisy threshold": 7}')
    converse(Guess(), people(), ledger=ledger)
    assert not left.exists()


# Creation.


@pytest.mark.parametrize("moment", ["before it has its name", "with both names", "before its rows are claimed"])
def test_an_interrupted_creation_is_in_nobodys_way(tmp_path, monkeypatch, moment):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    table = Table(tmp_path / "people.csv", DOMAIN, name="people")
    place = {
        "before it has its name": "discreet.ledger.sqlite.os.link",
        "with both names": "discreet.ledger.sqlite.remove",
        "before its rows are claimed": "discreet.ledger.ledger.claim",
    }[moment]

    def work() -> None:
        monkeypatch.setattr(place, lambda *arguments: os._exit(7))
        Ledger.create(tmp_path / "people.ledger", PURE, table)

    assert in_a_child(work) == 7
    if moment == "before it has its name":
        assert not (tmp_path / "people.ledger").exists()
        ledger = Ledger.create(tmp_path / "people.ledger", PURE, table)
    else:
        ledger = Ledger.open(tmp_path / "people.ledger")
    ledger.verify(CATALOGUE)
    release(TENTH, table, ledger=ledger)
    assert (tmp_path / "people.csv.discreet.json").exists()
    with pytest.raises(LedgerMismatch, match="has a ledger already"):
        Ledger.create(tmp_path / "second.ledger", PURE, table)


def test_two_ledgers_made_at_once_for_one_file_do_not_both_stay(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    table = Table(tmp_path / "people.csv", DOMAIN, name="people")
    Ledger.create(tmp_path / "first.ledger", PURE, table)
    monkeypatch.setattr("discreet.ledger.ledger.require_unclaimed", lambda source: None)  # the other came in between
    with pytest.raises(LedgerMismatch, match="another ledger"):
        Ledger.create(tmp_path / "second.ledger", PURE, table)
    assert not (tmp_path / "second.ledger").exists()


def test_the_parents_of_the_marks_directory_are_durable(tmp_path, monkeypatch):
    synced = []
    sync = durable.sync_path
    monkeypatch.setattr(durable, "sync_path", lambda path: (synced.append(Path(path)), sync(path)))
    made(tmp_path, state_dir=tmp_path / "a" / "b")
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= set(synced)


# Rows.


def test_a_claimed_file_on_a_disk_that_cannot_be_written_is_released_from(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    table = Table(tmp_path / "people.csv", DOMAIN, name="people")
    ledger = Ledger.create(tmp_path / "people.ledger", PURE, table)

    def refuse(path: Path, text: str) -> bool:
        raise LedgerUnavailable(f"{path.name} cannot be written: Read-only file system")

    monkeypatch.setattr("discreet.ledger.sidecar.create_file", refuse)
    release(TENTH, table, ledger=ledger)
    (tmp_path / "people.csv.discreet.json").unlink()
    with pytest.raises(LedgerUnavailable, match="Read-only"):
        release(TENTH, table, ledger=ledger)
    assert kinds(ledger).count("charge") == 1


def test_an_unreadable_sidecar_is_not_taken_for_another_ledgers(tmp_path):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    table = Table(tmp_path / "people.csv", DOMAIN, name="people")
    ledger = Ledger.create(tmp_path / "people.ledger", PURE, table)
    (tmp_path / "people.csv.discreet.json").unlink()
    (tmp_path / "people.csv.discreet.json").mkdir()
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        release(TENTH, table, ledger=ledger)


def test_rows_with_two_names_get_no_second_ledger(tmp_path):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    Ledger.create(tmp_path / "people.ledger", PURE, Table(tmp_path / "people.csv", DOMAIN, name="people"))
    os.link(tmp_path / "people.csv", tmp_path / "same.csv")
    with pytest.raises(LedgerMismatch, match="several names"):
        Ledger.create(tmp_path / "second.ledger", PURE, Table(tmp_path / "same.csv", DOMAIN, name="people"))


# Locks.


def test_a_forked_child_does_not_keep_the_turn_of_its_parent(where):
    ledger = made(where)
    with ledger.store.parts.turns.alone():
        child = forked.Process(target=time.sleep, args=(30,))
        child.start()
    turned = []

    def ask() -> None:
        with ledger.store.parts.turns.alone():
            turned.append(True)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(10)
    child.kill()
    child.join()
    assert turned == [True]


def test_a_step_of_a_threshold_reads_the_rows_while_others_write(where):
    ledger, other = made(where), None

    class Slow(Table):
        __slots__ = ()

        def exact_sum(self, partial: Any) -> Any:
            if other is not None:
                release(TENTH, people(), ledger=other)  # somebody else, while the rows are read
            return super().exact_sum(partial)

    table = Slow({"age": [30, 41, 52, 63, 74]}, DOMAIN, name="people")
    talk = converse(AboveThreshold(100, 100), table, ledger=ledger)
    other = Ledger.open(where)
    assert talk.ask(IsAbove(Count(), threshold=10**6)) is False
    assert kinds(ledger) == ["open", "facts", "charge", "charge", "answer"]
    assert talk.ask(IsAbove(Count(), threshold=-(10**6))) is True
    with pytest.raises(ConversationOver):
        reopen(AboveThreshold(100, 100), table, charge=talk.charge, ledger=ledger).ask(IsAbove(Count(), 0))
    ledger.verify({**CATALOGUE, **OURS})


def test_a_failure_while_the_rows_are_read_for_a_step_ends_the_conversation(where):
    ledger = made(where)

    class Broken(Table):
        __slots__ = ()

        def exact_sum(self, partial: Any) -> Any:
            raise ValueError("the ages are 30, 41, 52")

    table = Broken({"age": [30, 41, 52, 63, 74]}, DOMAIN, name="people")
    talk = converse(AboveThreshold(100, 100), table, ledger=ledger)
    with pytest.raises(Exception, match="the charge stays") as raised:
        talk.ask(IsAbove(Count(), 0))
    assert raised.value.__context__ is None
    with pytest.raises(ConversationOver):
        talk.ask(IsAbove(Count(), 0))
    assert kinds(ledger)[-1] == "burn"


# Waiting for the disk together.


def test_waiting_charges_share_their_syncs(tmp_path, monkeypatch):
    ledger, table, syncs, before_run = made(tmp_path, Budget(100)), people(), [], []
    sync = os.fdatasync
    marks = mark_file(tmp_path / "state", ledger.id)

    def slow(descriptor: int) -> None:
        syncs.append(descriptor)
        time.sleep(0.02)
        sync(descriptor)

    def run(self: Pure, data: Any, rng: Any) -> int:
        before_run.append(marks.read().seq)
        return int(rng.bits(60))

    monkeypatch.setattr("discreet.ledger.sqlite._sync_data", slow)
    monkeypatch.setattr("discreet.ledger.mark._sync_data", slow)
    monkeypatch.setattr(Pure, "run", run)
    threads = [
        threading.Thread(target=lambda: [release(TENTH, table, ledger=ledger) for _ in range(5)]) for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    charges = [entry["seq"] for entry in ledger.entries() if entry["kind"] == "charge"]
    assert len(charges) == 40
    assert all(seen >= charge for seen, charge in zip(sorted(before_run), charges, strict=True))
    assert len(syncs) < 40 * 3 / 2  # alone, every release syncs three times
    ledger.verify(CATALOGUE)


def test_a_log_that_was_closed_after_the_commit_is_synced_all_the_same(tmp_path, monkeypatch):
    ledger, other = made(tmp_path), Ledger.open(tmp_path / "people.ledger")
    other.spent()  # keeps the log where it is
    synced, settle, sync = [], MarkFile.settle, os.fdatasync

    def forking(self: MarkFile, *rest: Any, **more: Any) -> None:
        ledger.store.rest()  # another thread forks just now
        settle(self, *rest, **more)

    monkeypatch.setattr(MarkFile, "settle", forking)
    monkeypatch.setattr(
        "discreet.ledger.sqlite._sync_data",
        lambda descriptor: (synced.append(os.fstat(descriptor).st_ino), sync(descriptor)),
    )
    release(TENTH, people(), ledger=ledger)
    assert synced == [(tmp_path / "people.ledger-wal").stat().st_ino] * 2
    other.close()


def test_a_sync_that_failed_is_not_believed_the_second_time(tmp_path, monkeypatch):
    ledger = made(tmp_path)
    failing = [True]

    def broken(descriptor: int) -> None:
        if failing:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("discreet.ledger.sqlite._sync_data", broken)
    with pytest.raises(LedgerUnavailable, match="Input/output"):
        release(TENTH, people(), ledger=ledger)
    failing.clear()  # the system tells an error once
    with pytest.raises(LedgerUnavailable, match="lost"):
        release(TENTH, people(), ledger=ledger)
    assert "answer" not in kinds(ledger)
    ledger.close()
    release(TENTH, people(), ledger=ledger)
    ledger.verify(CATALOGUE)


# Growth.


@pytest.fixture
def stored_often(monkeypatch):
    monkeypatch.setattr(store, "FOLD_EVERY", 10)


def rows_read(monkeypatch) -> list[int]:
    """Which entries are folded from now on."""
    seen: list[int] = []
    honest = store.advance
    monkeypatch.setattr(store, "advance", lambda state, row: (seen.append(row.seq), honest(state, row))[1])
    return seen


def test_a_long_ledger_is_not_read_from_its_start(where, stored_often, monkeypatch):
    ledger = made(where, Budget(100))
    ledger.allow("ana", share="1/3")
    for number in range(30):
        release(TENTH, people(), ledger=ledger, request=f"r{number}", allowance="ana" if number % 2 else None)
    talk = converse(Guess(bound=10**9), people(), ledger=ledger)
    for _ in range(6):
        release(TENTH, people(), ledger=ledger)
    spent, left = ledger.spent(), ledger.remaining(allowance="ana")
    ledger.close()
    seen = rows_read(monkeypatch)
    again = Ledger.open(where)
    assert len(seen) < 20
    assert (again.spent(), again.remaining(allowance="ana")) == (spent, left)
    assert release(TENTH, people(), ledger=again, request="r3").replayed  # long before what was read
    with pytest.raises(ParameterError, match="another mechanism"):
        release(Pure(Fraction(1, 20)), people(), ledger=again, request="r4")
    assert reopen(Guess(bound=10**9), people(), charge=talk.charge, ledger=again).ask(0) in (True, False)
    again.verify(CATALOGUE)


def test_a_stored_state_that_no_entry_vouches_for_is_not_believed(where, stored_often, monkeypatch):
    ledger = made(where)
    for _ in range(8):
        release(TENTH, people(), ledger=ledger)
    ledger.close()
    for edit in (lambda stored: {**stored, "spent": {"renyi": 0, "pure": 0, "failure": 0}}, lambda stored: "[" * 10**5):
        ((text,),) = edited(where, "SELECT text FROM kept WHERE name = 'fold'")
        other = edit(json.loads(text))
        other = other if isinstance(other, str) else json.dumps(other, sort_keys=True, separators=(",", ":"))
        edited(where, "UPDATE kept SET text = ? WHERE name = 'fold'", other)
        opened = Ledger.open(where)
        assert opened.spent().pure == 8 * 10**8
        opened.verify(CATALOGUE)
        opened.close()
        edited(where, "UPDATE kept SET text = ? WHERE name = 'fold'", text)


def test_verify_checks_every_stored_digest(where, stored_often):
    bodies: list[dict[str, Any]] = []
    ledger = made(where)
    for _ in range(8):
        release(TENTH, people(), ledger=ledger)
    for entry in ledger.entries():
        bodies.append({key: value for key, value in entry.items() if key not in ("seq", "hash")})
    assert [body["kind"] for body in bodies].count("fold") == 1
    state = State()
    for body in bodies:
        if body["kind"] == "fold":
            break
        advance(state, row_of(state, body))
    with pytest.raises(LedgerCorrupt, match="add up to"):
        advance(state, row_of(state, {**body, "state": "0" * 64}))
    advance(state, row_of(state, body))


def test_a_mechanism_is_priced_once_however_often_it_was_charged(where, monkeypatch):
    ledger = made(where)
    for _ in range(8):
        release(TENTH, people(), ledger=ledger)
    priced = []
    honest = Pure.guarantee
    monkeypatch.setattr(Pure, "guarantee", lambda self, facts: (priced.append(self), honest(self, facts))[1])
    ledger.verify(CATALOGUE)
    assert len(priced) == 1


def test_a_certificate_looks_at_few_entries(where, monkeypatch):
    ledger = made(where, Budget(10))
    for _ in range(40):
        got = release(TENTH, people(), ledger=ledger)
    seen = []
    honest = store._entry
    monkeypatch.setattr(store, "_entry", lambda look, seq: (seen.append(seq), honest(look, seq))[1])
    certificate(ledger, got.entry)
    assert len(seen) < 10


def test_a_long_answer_lies_beside_the_entries(where):
    table = Table({"code": [5] * 20}, Domain(code=Number(0, 2**16, step=1)), name="codes")
    ledger = Ledger.create(where, MIXED, table)
    mechanism = Laplace(Histogram("code"), scale=40)
    got = release(mechanism, table, ledger=ledger, request="r")
    assert max(len(row[4]) for row in rows_of(where)) < LARGE
    again = release(mechanism, table, ledger=Ledger.open(where), request="r")
    assert again.replayed
    assert np.array_equal(again.value, got.value)
    ledger.verify(OURS)
    made_of_it = certificate(ledger, got.entry, with_answer=True)
    for against in (ledger, list(ledger.export(redact=False)), list(ledger.export())):
        assert "is true" in check(made_of_it, against)
    lines = list(ledger.export(redact=False))
    lines[-1] = lines[-1].replace('"answer_text":"', '"answer_text":" ')
    with pytest.raises(LedgerCorrupt, match="answer"):
        check(made_of_it, lines)
    ledger.close()
    edited(where, "UPDATE held SET text = replace(text, '1', '2') WHERE text != ''")
    damaged = Ledger.open(where)
    with pytest.raises(LedgerCorrupt, match="answer"):
        damaged.verify(OURS)
    with pytest.raises(LedgerCorrupt, match="answer"):
        release(mechanism, table, ledger=damaged, request="r")


# What entries tell.


def test_entries_do_not_tell_how_long_a_run_took(where):
    ledger = made(where, now=lambda: "2026-11-16T12:34:56Z")
    release(TENTH, people(), ledger=ledger)
    talk = converse(Guess(bound=1), people(), ledger=ledger)
    assert talk.ask(5) is True
    times = {entry["kind"]: entry["time"] for entry in ledger.entries()}
    assert times["charge"] == times["open"] == "2026-11-16T12:00:00Z"
    assert times["answer"] is None
    assert times["top"] is None
    for whole in (True, False):
        assert "34:56" not in "\n".join(ledger.export(redact=not whole))


# Hostile files.


@pytest.mark.parametrize(
    "body",
    [
        '{"kind":"allow","previous":"PREVIOUS","witness":null,"x":' + "[" * 10**5 + "]" * 10**5 + "}",
        '{"kind":"allow","previous":"PREVIOUS","witness":null,"allowance":"ana","share":"1e-99999999"}',
    ],
    ids=["nested", "exponent"],
)
def test_an_entry_made_to_break_its_reader_is_damage(where, body):
    made(where).close()
    forge(where, 3, body)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(where)


def test_an_entry_before_the_first_is_noticed_when_the_ledger_is_opened(where):
    made(where).close()
    forge(where, -5, "{}")
    with pytest.raises(LedgerCorrupt, match="entry -5"):
        Ledger.open(where)


def test_a_second_ledger_cannot_take_the_id_of_the_first(where):
    with pytest.raises(ParameterError, match="testing"):
        Ledger.create(where, PURE, people(), ledger_id="0" * 32)


def test_a_copy_in_a_folder_that_cannot_be_written_can_be_looked_at(tmp_path, monkeypatch):
    ledger = made(tmp_path)
    release(TENTH, people(), ledger=ledger)  # the log is not in the file yet
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = sorted(path.name for path in tmp_path.iterdir())
    looked = Ledger.open(tmp_path / "people.ledger", look=True)
    looked.verify(CATALOGUE)
    assert looked.spent() == ledger.spent()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_sqlite_that_is_too_old_and_a_disk_without_its_log_are_refused(tmp_path, monkeypatch):
    made(tmp_path).close()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 7, 0))
    with pytest.raises(LedgerUnavailable, match="SQLite"):
        Ledger.open(tmp_path / "people.ledger")
    monkeypatch.undo()
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))

    class Delete(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> Any:
            return super().execute(statement.replace("journal_mode=WAL", "journal_mode=DELETE"), *arguments)

    honest = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: honest(*given, **more, factory=Delete))
    with pytest.raises(LedgerUnavailable, match="delete"):
        Ledger.open(tmp_path / "people.ledger")


@pytest.mark.parametrize("kind", ["EIO", "ENOLCK"])
def test_a_lock_that_cannot_be_had_is_said_in_our_words(tmp_path, monkeypatch, kind):
    ledger = made(tmp_path)

    def refuse(descriptor: int, how: int) -> None:
        raise OSError(5, kind)

    monkeypatch.setattr("discreet.ledger.durable.fcntl.flock", refuse)
    with pytest.raises(LedgerUnavailable):
        release(TENTH, people(), ledger=ledger)
    with pytest.raises(LedgerUnavailable), ledger.store.parts.turns.alone():
        pass


# Sessions.

AGES = {"age": [30] * 400 + [60] * 600, "sex": ["F", "M"] * 500}
SURVEY = Domain(age=Number(0, 120, step=1), sex=Category("F", "M"))


def survey() -> Table:
    return Table(AGES, SURVEY, name="survey")


@pytest.mark.parametrize("question", ["SELECT COUNT(*) FROM survey WHERE age > 40", "SELECT MEDIAN(age) FROM survey"])
def test_a_question_that_was_answered_waits_for_nobody(where, question):
    table = survey()
    ledger = Ledger.create(where, Budget(50, 1e-6), table)
    first = Session(table, ledger, alpha=0.1).ask(question)
    with Ledger.open(where).store.parts.turns.alone():  # somebody else is being answered
        again: list[Any] = []
        asking = threading.Thread(
            target=lambda: again.append(Session(table, ledger, alpha=0.1).ask(question)), daemon=True
        )
        asking.start()
        asking.join(20)
        assert [(each.value, each.source, each.price) for each in again] == [(first.value, "cache", 0)]


def asked_about(number: int) -> str:
    return f"SELECT COUNT(*) FROM survey WHERE age BETWEEN {number} AND {number + 40}"


def test_a_session_does_not_read_a_long_ledger_from_its_start(where, monkeypatch):
    monkeypatch.setattr(transcript, "STORE_EVERY", 10)
    table = survey()
    ledger = Ledger.create(where, Budget(50, 1e-6), table)
    session = Session(table, ledger, alpha=0.1)
    session.ask("SELECT age, COUNT(*) FROM survey GROUP BY age")
    session.answer_all(["SELECT sex, COUNT(*) FROM survey GROUP BY sex"], share="1/20")
    said = {number: session.ask(asked_about(number)) for number in range(40)}
    ledger.close()
    fresh, whole = Ledger.open(where), Ledger.open(where)
    read: list[int] = []
    honest = Transcript._read_said
    monkeypatch.setattr(Transcript, "_read_said", lambda self, body: (read.append(body["seq"]), honest(self, body))[1])
    stored = Session(table, fresh, alpha=0.1)
    for number, answer in said.items():
        again = stored.ask(asked_about(number))
        assert (again.value, again.error_bound, again.source) == (answer.value, answer.error_bound, "cache")
    assert len(read) < 15
    monkeypatch.setattr(Transcript, "_read_stored", lambda self: None)
    from_the_start = Session(table, whole, alpha=0.1)
    for question in (asked_about(50), "SELECT sex, COUNT(*) FROM survey GROUP BY sex"):
        assert from_the_start.price(question) == stored.price(question)
    one, other = stored._answers.transcript, from_the_start._answers.transcript
    for name in ("places", "runs", "tops", "guesses", "saved", "heard", "numbers", "unsaid", "rented", "_places"):
        assert getattr(one, name) == getattr(other, name), name
    assert [each.value.tolist() for each in one.measured] == [each.value.tolist() for each in other.measured]
    assert len(one.measured) >= 2


def test_a_damaged_store_of_a_session_is_no_store(where, monkeypatch):
    monkeypatch.setattr(transcript, "STORE_EVERY", 5)
    table = survey()
    ledger = Ledger.create(where, Budget(50, 1e-6), table)
    session = Session(table, ledger, alpha=0.1)
    session.ask("SELECT age, COUNT(*) FROM survey GROUP BY age")
    expected = [session.ask(asked_about(number)).value for number in range(10)]
    ledger.close()
    assert len(edited(where, "SELECT name FROM kept WHERE name != 'fold'")) == 1
    edited(where, "UPDATE kept SET text = replace(text, '\"seq\":', '\"seq\":1') WHERE name != 'fold'")
    again = Session(table, Ledger.open(where), alpha=0.1)
    assert [again.ask(asked_about(number)).value for number in range(10)] == expected
    assert again._answers.transcript._stored == 0 or again._answers.transcript._seen > 10


# Files of before.

BEFORE = Path(__file__).parents[1] / "fixtures" / "before"


@pytest.fixture
def before(tmp_path) -> Path:
    """A ledger with its mark, certificates and exports, as version 0.1.0 (commit 993c1cf) wrote them."""
    copied = tmp_path / "before"
    shutil.copytree(BEFORE, copied)
    for path in copied.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return copied


def table_of(before: Path, **more: Any) -> Table:
    rows = json.loads((before / "people.json").read_text())
    domain = Domain(age=Number(0, 120, step=1), sex=Category("f", "m"), smoker=Category(False, True))
    return Table(rows, domain, name="people", **more)


def test_a_ledger_and_certificates_of_before_open_and_verify(before):
    ledger = Ledger.open(before / "people.ledger", state_dir=before / "state")
    assert ledger.verify(OURS) == ()
    assert not ledger.rolled_back()
    spent = ledger.spent()
    for name in ("certificate.json", "model_certificate.json"):
        claimed = Certificate.read((before / name).read_text())
        for against in (ledger, (before / "whole.jsonl").read_text().splitlines()):
            assert "is true" in check(claimed, against)
        assert "is true" in check(claimed, (before / "redacted.jsonl").read_text().splitlines())
    table = table_of(before)
    release(Laplace(Count(), scale=100), table, ledger=ledger)
    session = Session(table, ledger, alpha=0.1)
    answer = session.ask("SELECT COUNT(*) FROM people WHERE age >= 40")
    assert answer.price > 0  # of which rows the old measurements are cannot be told: they teach nothing
    ledger.verify(OURS)
    assert ledger.spent().renyi > spent.renyi
    assert ledger.remaining(allowance="ana").renyi > 0


def test_a_ledger_of_before_that_was_moved_still_needs_its_mark(before, tmp_path):
    moved = Ledger.open(before / "people.ledger", state_dir=tmp_path / "elsewhere")
    with pytest.raises(LedgerRolledBack):
        release(Laplace(Count(), scale=100), table_of(before), ledger=moved)
