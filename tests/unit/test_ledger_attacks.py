"""What was tried against the ledger: failing disks, keys pressed at the wrong moment, copies, forged entries."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
import stat
import threading
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.data import Table
from discreet.errors import (
    ConversationOver,
    DiscreetError,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerRolledBack,
    LedgerUnavailable,
    ParameterError,
)
from discreet.funds import Caps, Price, caps_of, price_of
from discreet.guarantee import Budget, Guarantee, renyi_cap
from discreet.ledger import Ledger, durable
from discreet.ledger.address import Address
from discreet.ledger.charging import Turn
from discreet.ledger.mark import SLOT, mark_file
from discreet.ledger.process import gone, this_process
from discreet.ledger.state import Seen, State, advance, reconciled, row_of
from discreet.records import digest
from discreet.release import Open, converse, release, reopen
from tests.ledger_doubles import (
    CATALOGUE,
    DOMAIN,
    MIXED,
    PURE,
    TENTH,
    Approximate,
    Guess,
    Pure,
    Zcdp,
    edited,
    fill,
    made,
    opening,
    people,
    secret_of,
)

YES = 10**18  # at least every secret
SUFFIXES = ("", "-wal", "-shm", ".secret")


def kinds(ledger: Ledger) -> list[str]:
    return [entry["kind"] for entry in ledger.entries()]


FIRST_WORDS = {"BEGIN IMMEDIATE": "BEGIN ISOLATION LEVEL READ COMMITTED", "INSERT": "INSERT INTO discreet.entries"}


class Connection:
    """A store's connection, with a statement that goes wrong once, the nth time; `after` lets it happen first."""

    def __init__(
        self, ledger: Ledger, statement: str, error: BaseException, *, after: bool = False, nth: int = 1
    ) -> None:
        home = ledger.store.parts.place._home()
        self._real, home.connection = home.connection, self
        if isinstance(ledger.path, Address):
            statement = FIRST_WORDS.get(statement, statement)
        self._statement, self._error, self._after, self._left = statement, error, after, nth

    def execute(self, statement: str, *arguments: Any) -> Any:
        self._left -= statement.startswith(self._statement)
        if self._left or not statement.startswith(self._statement):
            return self._real.execute(statement, *arguments)
        if self._after:
            self._real.execute(statement, *arguments)
        raise self._error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def full(where: Path | Address | None = None) -> Exception:
    """What a store raises when there is no space left."""
    if isinstance(where, Address):
        return psycopg.errors.DiskFull("could not extend file: No space left on device")
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def no_space(monkeypatch) -> None:
    """From now on the file of secrets cannot be rewritten."""

    def refuse(path: Path, text: str) -> None:
        raise LedgerUnavailable(f"{path.name} cannot be written: No space left on device")

    monkeypatch.setattr("discreet.ledger.local.replace_file", refuse)


# The end of a conversation.


def is_over(talk: Open, path: Path | Address | None = None) -> bool:
    """Whether the conversation is over here and, if a path is given, for whoever opens that file."""
    talks = [talk]
    if path is not None:
        talks.append(reopen(talk.conversation, people(), charge=talk.charge, ledger=Ledger.open(path)))
    for each in talks:
        for ask in (YES, 0, YES):
            with pytest.raises(ConversationOver):
                each.ask(ask)
    return True


def test_without_space_for_its_secret_a_last_answer_is_given_once(where, monkeypatch):
    ledger = made(where)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    no_space(monkeypatch)
    assert talk.ask(0) is False
    assert talk.ask(YES) is True
    assert not secret_of(ledger).exists()
    assert kinds(ledger)[-2:] == ["charge", "top"]
    assert is_over(talk, where)


def test_a_last_answer_that_cannot_be_recorded_is_not_given_and_was_the_last(where, monkeypatch):
    ledger = made(where)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    no_space(monkeypatch)
    Connection(ledger, "COMMIT", full(where))
    with pytest.raises(LedgerUnavailable):
        talk.ask(YES)
    assert kinds(ledger)[-1] == "charge"  # no top: the ledger alone does not know
    assert is_over(talk, where)


def test_a_conversation_that_ended_unrecorded_is_over_even_if_its_secret_is_put_back(where):
    ledger = made(where)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    secret = secret_of(ledger)
    held = secret.read_bytes()
    Connection(ledger, "COMMIT", full(where))
    with pytest.raises(LedgerUnavailable):
        talk.ask(YES)
    secret.write_bytes(held)
    assert is_over(talk)


@pytest.mark.parametrize(("moment", "ask"), [("keep", YES), ("keep", 0), ("_end", YES)])
def test_a_key_pressed_after_the_step_ends_the_conversation_whatever_the_answer_was(where, monkeypatch, moment, ask):
    ledger = made(where)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Turn, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            talk.ask(ask)
    assert is_over(talk, where)


def test_no_space_to_close_a_conversation_still_closes_it(where, monkeypatch):
    ledger = made(where)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    no_space(monkeypatch)
    Connection(ledger, "COMMIT", full(where))
    with pytest.raises(LedgerUnavailable):
        talk.close()
    assert is_over(talk, where)


ANSWER = "canary-answer-77"


@dataclass(frozen=True, slots=True)
class Telling(Guess):
    """A guess whose answers are easy to find in a frame."""

    def step(self, state: Any, ask: Any, data: Any, rng: Any) -> tuple[Any, Any]:
        after, answer = Guess.step(self, state, ask, data, rng)
        return after, f"{ANSWER} {answer}"


@pytest.mark.parametrize(
    "trouble", ["a commit that fails", "a key at the commit", "a key in the turn", "a failing step"]
)
def test_an_error_of_ask_knows_neither_the_secret_nor_the_answer(where, monkeypatch, trouble):
    ledger = made(where)
    talk = converse(Telling(bound=YES), people(), ledger=ledger)
    (state,) = ledger.store.secrets.all().values()
    if trouble == "a key in the turn":

        def interrupted(self: Turn, state: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Turn, "keep", interrupted)
    elif trouble != "a failing step":
        Connection(ledger, "COMMIT", full(where) if trouble == "a commit that fails" else KeyboardInterrupt())
    with pytest.raises((DiscreetError, KeyboardInterrupt)) as raised:
        talk.ask(-1 if trouble == "a failing step" else YES)
    error = raised.value
    assert isinstance(error, KeyboardInterrupt) == ("key" in trouble)
    assert error.__cause__ is None
    assert error.__context__ is None
    seen, trace = [repr(error)], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            seen += [repr(value) for value in trace.tb_frame.f_locals.values()]
        trace = trace.tb_next
    assert len(seen) > 1
    assert not [text for text in seen if str(state["secret"]) in text or ANSWER in text or "Turn" in text]


def test_reconcile_ends_the_conversations_of_a_restored_ledger(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    ledger.close()
    (tmp_path / "backup").mkdir()
    for end in SUFFIXES:
        if Path(f"{path}{end}").exists():
            shutil.copy(f"{path}{end}", tmp_path / "backup" / f"{path.name}{end}")
    assert talk.ask(YES) is True
    ledger.close()
    for held in (tmp_path / "backup").iterdir():
        shutil.copy(held, tmp_path / held.name)
    back = Ledger.open(path)
    again = reopen(Guess(bound=YES), people(), charge=talk.charge, ledger=back)
    with pytest.raises(LedgerRolledBack):
        again.ask(YES)
    back.reconcile()
    assert is_over(again, path)
    back.verify(CATALOGUE)


# Copies, links, other directories.


def test_of_two_copies_under_one_mark_one_gives_the_last_answer_and_the_other_runs_no_step(tmp_path, monkeypatch):
    """The second is asked while the first is inside its step, and waits for it at the mark."""
    ledger, outcomes, steps, waiting = made(tmp_path), [], [], threading.Event()

    @dataclass(frozen=True, slots=True)
    class Met(Guess):
        def step(self, state: Any, ask: Any, data: Any, rng: Any) -> tuple[Any, bool]:
            steps.append(threading.current_thread().name)
            if len(steps) == 1:
                second.start()
                assert waiting.wait(60)
            return Guess.step(self, state, ask, data, rng)

    first = converse(Met(bound=YES), people(), ledger=ledger)
    ledger.close()
    for end in ("", ".secret"):
        shutil.copy(tmp_path / f"people.ledger{end}", tmp_path / f"copy.ledger{end}")
    copied = Ledger.open(tmp_path / "copy.ledger")
    other = reopen(Met(bound=YES), people(), charge=first.charge, ledger=copied)
    flock = fcntl.flock

    def lock(descriptor: int, how: int) -> None:
        if threading.current_thread() is second:
            waiting.set()
        flock(descriptor, how)

    def ask_other() -> None:
        try:
            outcomes.append(other.ask(YES))
        except DiscreetError as error:
            outcomes.append(type(error))

    second = threading.Thread(target=ask_other, name="second", daemon=True)
    monkeypatch.setattr(fcntl, "flock", lock)
    assert first.ask(YES) is True
    second.join(60)
    assert outcomes == [LedgerRolledBack]
    assert steps == [threading.main_thread().name]
    with pytest.raises(LedgerRolledBack):
        other.ask(YES)


def test_an_answer_is_not_stored_in_a_copy_that_fell_behind_while_it_was_computed(tmp_path, monkeypatch):
    path, copied = tmp_path / "people.ledger", tmp_path / "copy.ledger"
    ledger = made(tmp_path)

    def run(self: Pure, data: Any, rng: Any) -> int:
        if self.label:
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copied}{end}")
            release(TENTH, people(), ledger=Ledger.open(copied))
        return 1

    monkeypatch.setattr(Pure, "run", run)
    with pytest.raises(LedgerRolledBack):
        release(Pure(Fraction(1, 10), "copied meanwhile"), people(), ledger=ledger)
    assert kinds(ledger)[-1] == "charge"


def test_a_ledger_with_two_names_is_refused(tmp_path):
    path, link = tmp_path / "people.ledger", tmp_path / "link.ledger"
    ledger = made(tmp_path)
    os.link(path, link)
    with pytest.raises(LedgerUnavailable, match="hard links"):
        Ledger.open(link)
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="hard links"):
        release(TENTH, people(), ledger=ledger)
    link.unlink()
    release(TENTH, people(), ledger=ledger)
    assert ledger.spent().pure == 10**8


def test_a_link_that_leads_to_a_ledger_is_that_ledger(tmp_path):
    ledger = made(tmp_path)
    (tmp_path / "link.ledger").symlink_to(tmp_path / "people.ledger")
    linked = Ledger.open(tmp_path / "link.ledger")
    for each in (ledger, linked, ledger):
        release(TENTH, people(), ledger=each)
    assert linked.spent().pure == 3 * 10**8


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_relative_state_directory_stays_where_it_was_when_the_process_moves(tmp_path, monkeypatch, how):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("DISCREET_STATE", "marks" if how == "environment" else str(tmp_path / "unused"))
    ledger = Ledger.create("p.ledger", PURE, people(), state_dir="marks" if how == "argument" else None)
    ledger.close()
    shutil.copy("p.ledger", "older")
    release(TENTH, people(), ledger=ledger)
    ledger.close()
    shutil.copy("older", "p.ledger")
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(LedgerRolledBack):
        release(TENTH, people(), ledger=ledger)
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("damage", ["removed", "emptied", "overwritten", "both checksums"])
def test_an_older_copy_without_a_readable_mark_is_taken_only_at_its_owners_word(tmp_path, damage):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    release(TENTH, people(), ledger=ledger)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    for _ in range(3):
        release(TENTH, people(), ledger=ledger)
    ledger.close()
    shutil.copy(tmp_path / "older", path)
    mark = mark_file(tmp_path / "state", ledger.id).path
    whole = bytearray(mark.read_bytes())
    if damage == "removed":
        mark.unlink()
    else:
        for slot in (0, 1):
            whole[slot * SLOT] ^= 1
        mark.write_bytes({"emptied": b"", "overwritten": b"x" * len(whole), "both checksums": whole}[damage])
    back = Ledger.open(path)
    before = back.spent()
    with pytest.raises(LedgerMismatch, match="adopt"):
        back.reconcile()
    assert "reconcile" not in kinds(back)
    with pytest.raises(LedgerCorrupt):
        release(TENTH, people(), ledger=back)
    back.reconcile(adopt=True)
    assert back.spent() == before
    release(TENTH, people(), ledger=back)
    back.verify(CATALOGUE)


def test_a_word_of_adoption_does_not_outweigh_a_mark_that_can_be_read(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    for _ in range(3):
        release(TENTH, people(), ledger=ledger)
    ledger.close()
    shutil.copy(tmp_path / "older", path)
    back = Ledger.open(path)
    back.reconcile(adopt=True)
    assert back.spent().pure == 3 * 10**8
    assert fill(back, TENTH) == 7


def test_sums_too_long_for_the_mark_are_marked_as_closed_books(tmp_path):
    ledger = made(tmp_path, Budget(10**3000))
    for _ in range(2):
        release(Pure(Fraction(10**2500)), people(), ledger=ledger)
    mark = mark_file(tmp_path / "state", ledger.id)
    assert len(mark.path.read_bytes()) == 2 * SLOT
    assert mark.read().spent == Price(None, None, 0)
    assert not Ledger.open(tmp_path / "people.ledger").rolled_back()


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff", b'{"ledger": null}'])
def test_a_sidecar_that_names_no_ledger_belongs_to_another(tmp_path, damage):
    source = tmp_path / "people.csv"
    source.write_text("age\n30\n40\n")
    table = Table(source, DOMAIN, name="people")
    ledger = Ledger.create(tmp_path / "people.ledger", PURE, table.identity, size=2)
    (tmp_path / "people.csv.discreet.json").write_bytes(damage)
    with pytest.raises(LedgerMismatch, match="another ledger"):
        release(TENTH, table, ledger=ledger)
    assert ledger.spent().pure == 0


# Keys pressed at the wrong moment.


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN", "SELECT", "INSERT", "COMMIT"])
@pytest.mark.parametrize("after", [False, True])
def test_a_key_pressed_anywhere_in_a_transaction_leaves_none_open(where, statement, after):
    ledger = made(where)
    release(TENTH, people(), ledger=ledger)
    Connection(ledger, statement, KeyboardInterrupt(), after=after)
    with pytest.raises(KeyboardInterrupt):
        release(TENTH, people(), ledger=ledger)
    connection = ledger.store.parts.place._home().connection
    if isinstance(where, Address):
        assert connection.closed or connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    else:
        assert not connection.in_transaction
    other = Ledger.open(where)
    for each in (ledger, other, ledger):
        release(TENTH, people(), ledger=each)
    ledger.verify(CATALOGUE)
    assert ledger.spent().pure == kinds(ledger).count("charge") * 10**8
    assert kinds(ledger).count("charge") == (5 if statement == "COMMIT" and after else 4)


@pytest.mark.parametrize("statement", ["INSERT", "COMMIT"])
def test_a_key_pressed_while_an_answer_is_stored_burns_the_request(where, statement):
    ledger = made(where)
    Connection(ledger, statement, KeyboardInterrupt(), nth=2)  # the first is the charge's
    with pytest.raises(KeyboardInterrupt):
        release(TENTH, people(), ledger=ledger, request="r")
    assert kinds(ledger)[-1] == "charge"
    for _ in range(2):
        with pytest.raises(ParameterError, match="interrupted"):
            release(TENTH, people(), ledger=ledger, request="r")
    release(TENTH, people(), ledger=ledger, request="another")
    assert kinds(ledger)[2:] == ["charge", "burn", "charge", "answer"]
    with pytest.raises(ParameterError, match="interrupted"):
        release(TENTH, people(), ledger=Ledger.open(where), request="r")


def test_a_charge_whose_mark_could_not_be_moved_is_burned_with_the_next_write(where, monkeypatch):
    ledger = made(where)

    def refuse(*arguments: Any, **more: Any) -> None:
        raise LedgerUnavailable("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("discreet.ledger.mark.MarkFile.settle", refuse)
        with pytest.raises(LedgerUnavailable):
            release(TENTH, people(), ledger=ledger, request="r")
    assert kinds(ledger)[-1] == "charge"
    with pytest.raises(ParameterError, match="interrupted"):
        release(TENTH, people(), ledger=ledger, request="r")
    ledger.allow("ana", share=1)
    assert kinds(ledger)[2:] == ["charge", "burn", "allow"]
    ledger.verify(CATALOGUE)


@pytest.mark.parametrize("error", [full, lambda where: KeyboardInterrupt()])
def test_an_append_that_fails_leaves_no_trace_in_what_is_remembered(where, error):
    ledger = made(where)
    release(TENTH, people(), ledger=ledger)
    before = ledger.spent()
    Connection(ledger, "INSERT", error(where))
    with pytest.raises((LedgerUnavailable, KeyboardInterrupt)):
        release(TENTH, people(), ledger=ledger, request="r")
    assert ledger.spent() == before
    assert not release(TENTH, people(), ledger=ledger, request="r").replayed
    ledger.verify(CATALOGUE)
    assert ledger.spent().pure == 2 * 10**8


# Small files.


def test_a_ledger_in_memory_leaves_nothing_beside_the_file_it_releases_from(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("age\n30\n40\n")
    table = Table(source, DOMAIN, name="people")
    memory = Ledger.in_memory(PURE, table)
    release(TENTH, table, ledger=memory)
    with converse(Guess(), table, ledger=memory) as talk:
        talk.ask(0)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
    Ledger.create(tmp_path / "people.ledger", PURE, table)


@pytest.mark.parametrize("call", ["fsync", "link"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_small_file_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch, call, error):
    def refuse(*arguments: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises((LedgerUnavailable, KeyboardInterrupt)):
            durable.create_file(tmp_path / "small", "text")
    assert list(tmp_path.iterdir()) == []
    assert durable.create_file(tmp_path / "small", "text")
    assert not durable.create_file(tmp_path / "small", "other")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"small": "text"}


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_small_file_that_cannot_be_replaced_stays(tmp_path, monkeypatch, call):
    durable.replace_file(tmp_path / "small", "old")

    def refuse(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(LedgerUnavailable, match="No space"):
            durable.replace_file(tmp_path / "small", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"small": "old"}


@pytest.mark.parametrize(("write", "call"), [(durable.create_file, "link"), (durable.replace_file, "replace")])
def test_a_small_file_is_durable_before_it_has_its_name_and_the_name_afterwards(tmp_path, monkeypatch, write, call):
    order, fsync, name = [], os.fsync, getattr(os, call)

    def synced(descriptor: int) -> None:
        what = os.fstat(descriptor)
        order.append("folder" if stat.S_ISDIR(what.st_mode) else f"file of {what.st_size}")
        fsync(descriptor)

    def named(*arguments: Any) -> None:
        order.append("name")
        name(*arguments)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, call, named)
    write(tmp_path / "small", "text")
    assert order.index("file of 4") < order.index("name")
    assert order[-1] == "folder"


# Prices and sums.


def test_a_failure_is_rounded_up_and_its_cap_down():
    of = lambda delta: price_of(Guarantee.of_approximate(1, delta=delta, neighbours="replace-one"), None)  # noqa: E731
    assert of(Fraction(3, 2 * 10**18)).failure == 2
    assert of(Fraction(1, 10**30)).failure == 1
    assert of(Fraction(2, 10**18)).failure == 2
    assert caps_of(Budget(1, Fraction(10**12 + 1, 10**18)), Fraction(1, 2))[1].failure == 5 * 10**11


def test_a_renyi_cap_is_a_unit_below_the_float_it_stands_for():
    order, caps = caps_of(MIXED, Fraction(1, 2))
    whole = Fraction(renyi_cap(float(order), epsilon=MIXED.epsilon, delta=MIXED.delta / 2)) * 10**9
    assert 1 <= whole - caps.renyi < 2


def test_a_share_of_the_caps_is_rounded_down_in_every_book():
    assert Caps(5, 10, 20).share(Fraction(1, 3)) == Caps(1, 3, 6)
    assert Caps(None, 2, 1).share(Fraction(1, 3)) == Caps(None, 0, 0)
    assert Caps(3, 6, 9).share(Fraction(1, 3)) == Caps(1, 2, 3)


def test_a_closed_book_stays_closed_whatever_is_taken_out_or_joined():
    assert Price(None, 5, 3).less(Price(2, None, 4)) == Price(None, 5, 0)
    assert Price(7, None, 3).less(Price(2, 1, 1)) == Price(5, None, 2)
    assert Price(None, 5, 3).joined(Price(2, 6, 1)) == Price(None, 6, 3)
    assert Price(1, 5, 3).joined(Price(2, None, 4)) == Price(2, None, 4)
    assert Price(1, 5, 3).less(Price(2, 6, 4)) == Price(0, 0, 0)


def test_reconciling_never_lowers_what_is_spent_nor_opens_a_book():
    state = State(spent=Price(10, 20, 3), witnessed={"w": Seen(Price(10, 20, 3)), "early": Seen(Price(4, 5, 1))})
    assert reconciled(state, Price(1, 1, 0), "w") == Price(10, 20, 3)
    assert reconciled(state, Price(12, 30, 4), "w") == Price(12, 30, 4)
    assert reconciled(state, Price(4, 5, 1), "early") == Price(10, 20, 3)
    assert reconciled(state, Price(6, 6, 1), "early") == Price(12, 21, 3)
    assert reconciled(state, Price(1, 1, 1), None) == Price(11, 21, 4)
    assert reconciled(state, Price(1, 1, 1), "nobody") == Price(11, 21, 4)
    assert reconciled(state, Price(None, 20, 3), "w") == Price(None, 20, 3)
    closed = State(spent=Price(None, 20, 3), witnessed={"w": Seen(Price(5, 20, 3))})
    assert reconciled(closed, Price(5, 20, 3), "w") == Price(None, 20, 3)


def test_a_reconciled_ledger_keeps_its_closed_book(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = made(tmp_path, MIXED)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    release(Zcdp(Fraction(1, 100)), people(), ledger=ledger)
    spent = ledger.spent()
    ledger.close()
    shutil.copy(tmp_path / "older", path)
    back = Ledger.open(path)
    back.reconcile()
    assert back.spent() == spent
    assert back.spent().pure is None


# Forged entries.


def bodies_of(ledger: Ledger) -> list[dict[str, Any]]:
    """The bodies of all entries, as they were hashed."""
    return [{key: value for key, value in each.items() if key not in ("seq", "hash")} for each in ledger.entries()]


def folded(bodies: list[dict[str, Any]]) -> State:
    """What these bodies add up to, each chained to the one before."""
    state = State()
    for body in bodies:
        advance(state, row_of(state, {**body, "previous": state.hash}))
    return state


@pytest.mark.parametrize(
    "caps", [{"renyi": 1.01}, {"renyi": 1 + 1e-8}, {"pure": 1.01}, {"pure": 0.99}, {"failure": 1.01}, {"failure": 0.99}]
)
def test_caps_that_do_not_follow_from_the_budget_are_refused_by_the_fold(caps):
    first = opening(MIXED)
    forged = {name: int(first["caps"][name] * factor) for name, factor in caps.items()}
    folded([first])
    with pytest.raises(LedgerCorrupt, match="caps"):
        folded([{**first, "caps": {**first["caps"], **forged}}])


def test_a_renyi_cap_may_differ_in_its_last_bits_and_may_be_lower():
    first = opening(MIXED)
    renyi = first["caps"]["renyi"]
    for stored in (0, renyi - 10, renyi + 2):
        assert folded([{**first, "caps": {**first["caps"], "renyi": stored}}]).opened.caps.renyi == stored
    with pytest.raises(LedgerCorrupt, match="caps"):
        folded([{**first, "caps": {**first["caps"], "renyi": renyi + 3}}])
    with pytest.raises(LedgerCorrupt, match="caps"):  # a Renyi book where the budget has none
        folded([{**opening(PURE), "caps": {**opening(PURE)["caps"], "renyi": 1}}])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "a new request id"),
        ({"request": "s", "facts_hash": "0" * 64}, "facts that an earlier entry holds"),
        ({"request": "s", "allowance": "bob"}, "an allowance that an earlier entry made"),
        ({"request": "s", "price": {"renyi": None, "pure": 6 * 10**8, "failure": 0}}, "within the caps"),
    ],
)
def test_a_charge_that_refers_to_nothing_or_to_itself_is_refused_by_the_fold(change, says):
    ledger = Ledger.in_memory(PURE, people())
    ledger.allow("ana", share=Fraction(1, 2))
    release(TENTH, people(), ledger=ledger, request="r", allowance="ana")
    bodies = bodies_of(ledger)
    assert folded([*bodies, {**bodies[3], "request": "s"}]).spent.pure == 2 * 10**8
    with pytest.raises(LedgerCorrupt, match=says) as found:
        folded([*bodies, {**bodies[3], **change}])
    assert found.value.entry == 6


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_another_size_is_refused_by_the_fold_where_the_size_is_public(relation):
    first, facts = bodies_of(Ledger.in_memory(PURE, people(neighbours=relation)))
    other = {**facts["facts"], "size": 6}
    body = {**facts, "facts": other, "facts_hash": digest(other)}
    if relation == "add-remove":
        folded([first, facts, body])
        return
    with pytest.raises(LedgerCorrupt, match=r"size 5.*size 6"):
        folded([first, facts, body])


def forged_charge(ledger: Ledger, price: dict[str, Any]) -> int:
    """Append the last charge again with another price, as somebody could who knows the format."""
    body = [each for each in bodies_of(ledger) if each["kind"] == "charge"][-1]
    with ledger.store.writing() as writer:
        return writer.append("charge", {**body, "request": None, "price": {**body["price"], **price}})


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        ({}, True),
        ({"renyi": 1}, True),
        ({"renyi": -1}, True),
        ({"renyi": 2}, False),
        ({"renyi": -2}, False),
        ({"renyi": None}, False),
        ({"pure": 1}, False),
        ({"pure": -1}, False),
        ({"failure": 1}, False),
        ({"failure": -1}, False),
    ],
)
def test_verify_finds_a_price_that_is_not_the_mechanisms(change, sound):
    ledger = Ledger.in_memory(MIXED, people())
    release(Approximate(Fraction(1, 10), Fraction(1, 10**9)), people(), ledger=ledger)
    price = bodies_of(ledger)[2]["price"]
    seq = forged_charge(ledger, {name: None if by is None else price[name] + by for name, by in change.items()})
    ledger.verify()
    if sound:
        ledger.verify(CATALOGUE)
        return
    with pytest.raises(LedgerCorrupt, match="the price") as found:
        ledger.verify(CATALOGUE)
    assert found.value.entry == seq


def test_verify_believes_sqlites_own_check(tmp_path):
    path = tmp_path / "people.ledger"
    made(tmp_path).close()
    damaged = bytearray(path.read_bytes())
    damaged[39] = 1  # the number of free pages: nothing that we read depends on it
    path.write_bytes(damaged)
    ledger = Ledger.open(path)
    assert kinds(ledger) == ["open", "facts"]
    with pytest.raises(LedgerCorrupt, match="sound SQLite file"):
        ledger.verify()


@pytest.mark.parametrize("column", ["body", "hash", "kind"])
def test_a_stored_answer_that_was_changed_under_an_open_ledger_is_not_served(where, column):
    ledger = made(where)
    got = release(TENTH, people(), ledger=ledger, request="r")
    release(TENTH, people(), ledger=ledger)
    ((body,),) = edited(where, "SELECT body FROM entries WHERE seq = 4")
    assert str(got.value) in body
    changed = body.replace(str(got.value), "7") if column == "body" else "0"
    edited(where, f"UPDATE entries SET {column} = ? WHERE seq = 4", changed)
    with pytest.raises(LedgerCorrupt) as found:
        release(TENTH, people(), ledger=ledger, request="r")
    assert found.value.entry == 4
    with pytest.raises(LedgerCorrupt):
        ledger.store.entry(4)


def test_a_log_replaced_under_an_open_ledger_is_noticed(tmp_path):
    ledger, log = made(tmp_path), tmp_path / "people.ledger-wal"
    release(TENTH, people(), ledger=ledger)
    shutil.copy(log, tmp_path / "log")
    os.replace(tmp_path / "log", log)
    with pytest.raises(LedgerRolledBack, match="others in their place"):
        release(TENTH, people(), ledger=ledger)


# Which process it was.

NOBODY = 2**22 + 1  # above the highest id that Linux gives


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"pid": NOBODY}, True),
        ({"start": "1"}, True),
        ({"boot": "another"}, True),
        ({"space": 1}, False),
        ({"space": 1, "pid": NOBODY}, False),
        ({"space": 1, "boot": "another"}, True),
    ],
)
def test_a_process_is_gone_only_if_that_is_certain(change, expected):
    assert gone({**this_process(), **change}) is expected


def test_a_process_of_somebody_else_runs_if_it_started_when_it_says(monkeypatch):
    def forbidden(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert not gone(this_process())
    assert gone({**this_process(), "start": "1"})


@pytest.mark.parametrize("trouble", ["a folder in the way", "a folder that is not writable"])
def test_a_secret_that_can_neither_be_rewritten_nor_removed_keeps_no_conversation_open(where, monkeypatch, trouble):
    ledger = made(where)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    if trouble == "a folder in the way":
        secret_of(ledger).with_name(f".{secret_of(ledger).name}.new").mkdir()
    else:
        no_space(monkeypatch)

        def refuse(path: Path, **more: Any) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(Path, "unlink", refuse)
    assert talk.ask(0) is False
    assert talk.ask(YES) is True
    assert is_over(talk, where)
