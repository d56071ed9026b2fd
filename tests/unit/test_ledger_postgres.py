"""The ledger in PostgreSQL: addresses, rights, lost connections, forks, restored data, several hosts."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import psycopg
import pytest

from discreet.data import Table
from discreet.errors import (
    ConversationOver,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerRolledBack,
    LedgerUnavailable,
    ParameterError,
)
from discreet.guarantee import Budget
from discreet.ledger import Ledger, postgres, process
from discreet.ledger.address import Address
from discreet.ledger.charging import turn
from discreet.release import converse, release, reopen
from tests.ledger_doubles import CATALOGUE, DOMAIN, PURE, TENTH, Guess, Pure, edited, made, people, secret_of
from tests.postgres import Cluster

YES = 10**18  # at least every secret
INSERT = "INSERT INTO discreet.entries(ledger, seq, kind, body, hash) VALUES (%s, %s, %s, %s, %s)"


def kinds(ledger: Ledger) -> list[str]:
    return [entry["kind"] for entry in ledger.entries()]


@contextmanager
def owner_of(address: Address) -> Iterator[psycopg.Connection]:
    with psycopg.connect(address.server, autocommit=True) as owner:
        yield owner


# Addresses.


@pytest.mark.parametrize(
    ("text", "server", "name"),
    [
        ("postgresql://h/db?ledger=people", "postgresql://h/db", "people"),
        ("postgresql://h/db?ledger=people&sslmode=require", "postgresql://h/db?sslmode=require", "people"),
        ("postgresql:///db?host=/run/pg&ledger=a%20b%2Fc", "postgresql:///db?host=/run/pg", "a b/c"),
        ("postgresql://u@h1,h2:5433/db?a=b+c&ledger=%C3%BC", "postgresql://u@h1,h2:5433/db?a=b+c", "ü"),
    ],
)
def test_an_address_is_libpqs_and_the_name_of_the_ledger(text, server, name):
    found = Address.read(text)
    assert (found.server, found.name) == (server, name)
    assert Address.read(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:secret@h/db?ledger=people",
        "postgresql://u:@h/db?ledger=people",
        "postgresql://h/db?ledger=people&password=secret",
        "postgresql://h/db?ledger=people&pass%77ord=secret",
        "postgresql://h/db?sslpassword=secret&ledger=people",
    ],
)
def test_an_address_holds_no_password(text):
    with pytest.raises(ParameterError, match=r"~/\.pgpass") as refused:
        Ledger.open(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://h/db",
        "postgresql://h/db?ledger=",
        "postgresql://h/db?ledger=a&ledger=b",
        "postgresql://h/db?ledger=" + "a" * 201,
        "postgresql://h/db?ledger=a%00b",
        "mysql://h/db?ledger=people",
        "postgres://h/db?ledger=people",
    ],
)
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(ParameterError, match="postgresql://HOST/DATABASE"):
        Ledger.open(text)


def test_without_psycopg_the_extra_is_named(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ParameterError, match=r"pip install discreet\[postgres\]"):
        Ledger.open(address)


def test_what_libpq_does_not_understand_is_refused(address):
    for text in (f"{address}&wrong=1", "postgresql://[h/db?ledger=a"):
        with pytest.raises(ParameterError, match="the address of the ledger cannot be read"):
            Ledger.open(text)


def test_one_database_holds_many_ledgers(address):
    others = [Address(address.server, f"{address.name} {number}") for number in range(3)]
    ledgers = [made(each) for each in others]
    for number, ledger in enumerate(ledgers):
        for count in range(number):
            release(TENTH, people(), ledger=ledger, request=f"r{count}")
    assert [ledger.spent().pure for ledger in ledgers] == [0, 10**8, 2 * 10**8]
    assert len({ledger.id for ledger in ledgers}) == 3
    with pytest.raises(ParameterError, match="exists already"):
        made(others[0])
    with pytest.raises(ParameterError, match="there is no ledger"):
        Ledger.open(address)
    assert [Ledger.exists(each) for each in (address, others[0])] == [False, True]


def test_request_ids_and_memos_may_hold_any_text(address):
    ledger = made(address)
    for request in ("a\0b", "\u2028", "'; DROP TABLE discreet.entries; --", "%s", "\\", "ü" * 200):
        first = release(TENTH, people(), ledger=ledger, request=request, memo=f"{request}\0")
        again = release(TENTH, people(), ledger=Ledger.open(address), request=request, memo="")
        assert (again.value, again.replayed) == (first.value, True)
    ledger.verify(CATALOGUE)


# Creation.


def test_a_database_without_our_tables_is_refused_with_the_command_that_makes_them(cluster):
    cluster.empty_database("bare")
    with pytest.raises(ParameterError, match="discreet ledger init-postgres"):
        made(Address(cluster.server("bare"), "people"))


def test_making_the_tables_again_changes_nothing(address):
    ledger = made(address)
    postgres.init_postgres(address.server)
    release(TENTH, people(), ledger=ledger)
    ledger.verify(CATALOGUE)


def test_of_two_that_make_one_ledger_at_once_one_does(address, monkeypatch):
    monkeypatch.setattr(postgres.PostgresSite, "exists", lambda self: False)  # both have looked
    made(address)
    with pytest.raises(ParameterError, match="just made"):
        made(address)


def test_the_mark_is_there_before_the_ledger(address, tmp_path, monkeypatch):
    def dies(self: Any, rows: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(postgres.PostgresPlace, "_commit", dies)
        with pytest.raises(KeyboardInterrupt):
            made(address)
    assert len([each for each in (tmp_path / "state" / "marks").iterdir() if not each.suffix]) == 1
    assert not Ledger.exists(address)
    release(TENTH, people(), ledger=made(address))


def test_a_file_of_rows_has_one_ledger_wherever_that_is(address, tmp_path):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    table = Table(tmp_path / "people.csv", DOMAIN, name="people")
    Ledger.create(address, PURE, table)
    with pytest.raises(LedgerMismatch, match="has a ledger already"):
        Ledger.create(tmp_path / "second.ledger", PURE, table)


# Append-only: by trigger for everybody, by grants for writers.

CHANGES = ("UPDATE discreet.entries SET body = 'x'", "DELETE FROM discreet.entries", "TRUNCATE discreet.entries")


@pytest.mark.parametrize("statement", [*CHANGES, "UPDATE discreet.held SET text = ''", "DELETE FROM discreet.held"])
def test_a_trigger_refuses_changes_to_everybody(address, statement):
    made(address)
    with owner_of(address) as owner:
        owner.execute("SET session_replication_role = replica")  # switches ordinary triggers off
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)


@pytest.fixture
def roles(cluster, address) -> dict[str, Address]:
    """The same ledger as a writer, an auditor and a stranger see it."""
    with owner_of(address) as owner:
        for name, group in (("writes", "discreet_writer"), ("looks", "discreet_auditor"), ("strange", None)):
            if not owner.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchall():
                owner.execute(f"CREATE ROLE {name} LOGIN" + (f" IN ROLE {group}" if group else ""))
    server = address.server.replace("owner@", "{}@")
    return {name: Address(server.format(name), address.name) for name in ("writes", "looks", "strange")}


def test_a_writer_can_do_all_that_a_ledger_needs_and_nothing_else(roles):
    ledger = made(roles["writes"], Budget(1))
    release(TENTH, people(), ledger=ledger)
    converse(Guess(bound=2), people(), ledger=ledger).ask(5)
    ledger.verify(CATALOGUE)
    with psycopg.connect(roles["writes"].server, autocommit=True) as writer:
        more = ("DROP TABLE discreet.entries", "ALTER TABLE discreet.entries DISABLE TRIGGER ALL")
        for statement in (*CHANGES, *more, "DROP FUNCTION discreet.refuse()", "DROP SCHEMA discreet CASCADE"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                writer.execute(statement)


def test_an_auditor_looks_and_a_stranger_does_not(roles):
    ledger = made(roles["writes"])
    release(TENTH, people(), ledger=ledger)
    seen = Ledger.open(roles["looks"])
    assert seen.spent() == ledger.spent()
    seen.verify(CATALOGUE)
    assert list(seen.export()) == list(ledger.export())
    with pytest.raises(LedgerUnavailable, match="permission denied"):
        release(TENTH, people(), ledger=seen)
    with pytest.raises(LedgerUnavailable, match="permission denied"):
        Ledger.open(roles["strange"])
    assert kinds(ledger) == ["open", "facts", "charge", "answer"]


def test_an_auditor_opens_a_ledger_with_an_orphan_and_burns_nothing(roles):
    made(roles["writes"]).close()

    def work() -> None:
        class Dying(Pure):
            def run(self, data: Any, rng: Any) -> Any:
                os._exit(0)

        release(Dying(Fraction(1, 10)), people(), ledger=Ledger.open(roles["writes"]))

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(60)
    assert kinds(Ledger.open(roles["looks"]))[-1] == "charge"
    assert kinds(Ledger.open(roles["writes"]))[-1] == "burn"


def test_verify_misses_the_trigger(address):
    ledger = made(address)
    with owner_of(address) as owner:
        owner.execute("ALTER TABLE discreet.entries DISABLE TRIGGER append_only")
        try:
            with pytest.raises(LedgerCorrupt, match="triggers"):
                ledger.verify(CATALOGUE)
        finally:
            owner.execute("ALTER TABLE discreet.entries ENABLE ALWAYS TRIGGER append_only")
    ledger.verify(CATALOGUE)


# A server that does not wait for its disk, or cannot be reached.


@pytest.fixture(params=["fsync", "full_page_writes"])
def careless(request, cluster) -> Iterator[str]:
    """A server that was told not to wait for its disk."""
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as owner:
        owner.execute(f"ALTER SYSTEM SET {request.param} = off")
        owner.execute("SELECT pg_reload_conf()")
        while owner.execute(f"SHOW {request.param}").fetchone() != ("off",):
            pass
        yield request.param
        owner.execute(f"ALTER SYSTEM RESET {request.param}")
        owner.execute("SELECT pg_reload_conf()")
        while owner.execute(f"SHOW {request.param}").fetchone() != ("on",):
            pass


def test_a_server_that_does_not_wait_for_its_disk_is_refused_unless_for_testing(address, careless, monkeypatch):
    with pytest.raises(LedgerUnavailable, match=f"{careless} = off"):
        made(address)
    assert not Ledger.exists(address)
    ledger = made(address, testing=True)
    release(TENTH, people(), ledger=ledger)
    other = Address(address.server, f"{address.name} 2")
    with monkeypatch.context() as patched:  # made while the server was careful
        patched.setattr(postgres, "_unsafe", lambda connection: "")
        made(other).close()
    with pytest.raises(LedgerUnavailable, match=f"{careless} = off"):
        release(TENTH, people(), ledger=Ledger.open(other))


def test_commits_wait_for_the_disk_whatever_the_role_prefers(address):
    ledger = made(address)
    ledger.close()
    with owner_of(address) as owner:
        owner.execute("ALTER ROLE owner SET synchronous_commit = off")
        try:
            release(TENTH, people(), ledger=ledger)
            home = ledger.store.parts.place._home()
            assert home.connection.execute("SHOW synchronous_commit").fetchone() == (b"on",)
        finally:
            owner.execute("ALTER ROLE owner RESET synchronous_commit")


def test_a_server_that_is_down_is_said_in_one_sentence(address):
    with pytest.raises(LedgerUnavailable, match=r"cannot be used now: connection.*nothing was released") as refused:
        Ledger.open(Address("postgresql:///db?host=/nowhere", "people"))
    assert "\n" not in str(refused.value)


def test_a_lock_that_another_holds_too_long_is_said(address, monkeypatch):
    ledger = made(address)
    ledger.close()
    monkeypatch.setattr(postgres, "_SESSION", postgres._SESSION.replace("60s", "50ms"))
    with owner_of(address) as owner, owner.transaction():
        owner.execute("SELECT pg_advisory_xact_lock(%s)", (postgres.lock_key("ledger", address.name),))
        with pytest.raises(LedgerUnavailable, match="another process holds its lock"):
            release(TENTH, people(), ledger=ledger)
    release(TENTH, people(), ledger=ledger)


def test_a_writer_without_the_lock_cannot_fork_the_chain(address, monkeypatch):
    ledger = made(address)
    honest = postgres.PostgresRows.append

    def beaten(self: Any, row: Any) -> None:
        with owner_of(address) as owner:
            owner.execute(INSERT, (address.name, row.seq, "charge", "{}", "0" * 64))
        honest(self, row)

    monkeypatch.setattr(postgres.PostgresRows, "append", beaten)
    with pytest.raises(LedgerUnavailable, match="without its lock"):
        release(TENTH, people(), ledger=ledger)


# Lost connections.


def end_session(ledger: Ledger) -> None:
    """End the ledger's session on the server, as a network that fails does."""
    pid = ledger.store.parts.place._home().connection.info.backend_pid
    with owner_of(ledger.path) as owner:
        owner.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


def test_a_session_that_ended_between_two_releases_is_replaced(address):
    ledger = made(address)
    release(TENTH, people(), ledger=ledger)
    end_session(ledger)
    release(TENTH, people(), ledger=ledger)
    end_session(ledger)
    assert ledger.spent().pure == 2 * 10**8


def test_a_session_that_ends_while_a_mechanism_runs_costs_nothing_more(address, monkeypatch):
    ledger = made(address)
    monkeypatch.setattr(Pure, "run", lambda self, data, rng: end_session(ledger) or 7)
    assert release(TENTH, people(), ledger=ledger, request="r").value == 7
    assert kinds(ledger) == ["open", "facts", "charge", "answer"]


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("moment", ["before the insert", "after the insert", "before the commit", "after the commit"])
def test_a_connection_lost_at_any_moment_charges_once_or_not_at_all(address, monkeypatch, moment, nth):
    """The nth write of a release (1: its charge, 2: its answer) loses its connection."""
    ledger, left = made(address), [nth]
    when, _, what = moment.partition(" the ")
    statement = {"insert": "INSERT INTO discreet.entries", "commit": "COMMIT"}[what]
    place = ledger.store.parts.place
    real = place._connected()
    execute = type(real).execute

    def lossy(self: Any, query: Any, *arguments: Any, **more: Any) -> Any:
        if not str(query).startswith(statement):
            return execute(self, query, *arguments, **more)
        left[0] -= 1
        if left[0]:
            return execute(self, query, *arguments, **more)
        if when == "after":
            done = execute(self, query, *arguments, **more)
            if what == "insert":
                end_session(ledger)
                return done
            self.close()
            raise psycopg.OperationalError("the connection was lost")
        end_session(ledger)
        return execute(self, query, *arguments, **more)

    monkeypatch.setattr(type(real), "execute", lossy)
    arrived = moment == "after the commit"
    if arrived:  # decided by looking for the entry: nothing happened, as far as anybody can see
        first = release(TENTH, people(), ledger=ledger, request="r")
        assert not first.replayed
    else:
        with pytest.raises(LedgerUnavailable):
            release(TENTH, people(), ledger=ledger, request="r")
    monkeypatch.setattr(type(real), "execute", execute)
    assert kinds(ledger).count("charge") == (1 if arrived or nth == 2 else 0)
    if arrived:
        assert release(TENTH, people(), ledger=ledger, request="r").value == first.value
    elif nth == 1:
        assert not release(TENTH, people(), ledger=ledger, request="r").replayed
    else:
        with pytest.raises(ParameterError, match="interrupted"):
            release(TENTH, people(), ledger=ledger, request="r")
    assert kinds(ledger).count("charge") == 1
    ledger.verify(CATALOGUE)


def test_a_commit_that_nobody_can_ask_about_is_burned_if_it_arrived(address, monkeypatch):
    ledger = made(address)
    place = ledger.store.parts.place
    real = place._connected()
    execute = type(real).execute

    def lossy(self: Any, query: Any, *arguments: Any, **more: Any) -> Any:
        done = execute(self, query, *arguments, **more)
        if query == "COMMIT":
            self.close()
            raise psycopg.OperationalError("the connection was lost")
        return done

    with monkeypatch.context() as patched:
        patched.setattr(type(real), "execute", lossy)
        patched.setattr(type(place), "_arrived", lambda self, row: False)  # the server stays away
        with pytest.raises(LedgerUnavailable):
            release(TENTH, people(), ledger=ledger, request="r")
    with pytest.raises(ParameterError, match="interrupted"):
        release(TENTH, people(), ledger=ledger, request="r")
    assert kinds(ledger) == ["open", "facts", "charge", "burn"]


def test_a_commit_is_decided_only_after_its_own_transaction_has_ended(address):
    ledger = made(address)
    place, row = ledger.store.parts.place, None
    with owner_of(address) as slow:
        slow.execute("BEGIN")
        slow.execute("SELECT pg_advisory_xact_lock(%s)", (postgres.lock_key("ledger", address.name),))
        with place.look() as rows:
            row = rows.row(2)._replace(seq=3)
        slow.execute(INSERT, (address.name, 3, "x", "{}", row.hash.decode()))
        decided: list[bool] = []
        asking = threading.Thread(target=lambda: decided.append(place._arrived(row)), daemon=True)
        asking.start()
        asking.join(0.3)
        assert not decided
        slow.execute("COMMIT")
        asking.join(10)
    assert decided == [True]


def test_a_child_forked_inside_a_transaction_leaves_the_parents_session_alone(address):
    ledger = made(address)
    talk = converse(Guess(), people(), ledger=ledger)
    with turn(ledger, talk.charge):
        child = os.fork()
        if not child:
            code = 1
            try:
                place = ledger.store.parts.place
                assert os.getpid() not in place._homes
                Ledger.open(address, look=True).spent()
                ledger.store.parts.place.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    for _ in range(2):
        release(TENTH, people(), ledger=ledger)
    ledger.verify(CATALOGUE)


# Data that were put back, and copies.


def forget_after(address: Address, seq: int) -> None:
    """What a superuser can do who switches the trigger off."""
    edited(address, "DELETE FROM entries WHERE seq > ?", seq)


def test_entries_that_a_superuser_deleted_are_missed_and_counted(address):
    ledger = made(address)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    for _ in range(3):
        release(TENTH, people(), ledger=ledger)
    forget_after(address, 5)
    for each in (ledger, Ledger.open(address)):
        for attempt in (lambda: release(TENTH, people(), ledger=each), lambda: talk.ask(YES), each.verify):  # noqa: B023
            with pytest.raises(LedgerRolledBack):
                attempt()
    back = Ledger.open(address)
    back.reconcile()
    assert back.spent().pure == 4 * 10**8
    back.verify(CATALOGUE)
    with pytest.raises(ConversationOver):
        reopen(Guess(bound=YES), people(), charge=talk.charge, ledger=back).ask(YES)


@pytest.fixture
def frail(cluster) -> Iterator[Cluster]:
    """A server of this test alone, since it will be stopped."""
    made = Cluster()
    yield made
    made.close()


def test_a_failover_to_a_stale_standby_is_refused(frail):
    address = Address(frail.database("db"), "people")
    ledger = made(address)
    release(TENTH, people(), ledger=ledger)
    frail.stop()
    stale = Cluster(copy_of=frail.data)
    try:
        frail.start()
        second = release(TENTH, people(), ledger=ledger, request="r")  # which the standby never gets
        standby = Ledger.open(Address(stale.server("db"), "people"))
        assert standby.spent().pure == 10**8
        with pytest.raises(LedgerUnavailable, match="standby"):
            standby.allow("ana", share=1)
        with psycopg.connect(stale.dsn("postgres"), autocommit=True) as owner:
            owner.execute("SELECT pg_promote()")
        for each in (standby, Ledger.open(Address(stale.server("db"), "people"))):
            with pytest.raises(LedgerRolledBack):
                release(TENTH, people(), ledger=each, request="r")
        assert release(TENTH, people(), ledger=ledger, request="r").value == second.value
        standby.reconcile()  # the first server is lost; its spending is not
        assert standby.spent().pure == 2 * 10**8
        with pytest.raises(LedgerRolledBack):
            release(TENTH, people(), ledger=ledger)
    finally:
        stale.close()


def test_an_older_data_directory_put_back_is_refused(frail, tmp_path):
    address = Address(frail.database(), "people")
    ledger = made(address)
    release(TENTH, people(), ledger=ledger)
    frail.stop()
    shutil.copytree(frail.data, tmp_path / "yesterday", symlinks=True)
    frail.start()
    release(TENTH, people(), ledger=ledger)
    frail.stop(signal.SIGQUIT)
    frail.restore(tmp_path / "yesterday")
    frail.start()
    for each in (ledger, Ledger.open(address)):
        with pytest.raises(LedgerRolledBack):
            release(TENTH, people(), ledger=each)
    back = Ledger.open(address)
    back.reconcile()
    assert back.spent().pure == 2 * 10**8


# Several hosts.


@contextmanager
def another_host(monkeypatch, state: Any = None) -> Iterator[None]:
    """What this process looks like from another machine, with a state directory of its own if one is given."""
    with monkeypatch.context() as patched:
        patched.setattr(process, "_boot_id", lambda: "another boot")
        process._process_name.cache_clear()
        if state is not None:
            patched.setenv("DISCREET_STATE", str(state))
        yield
    process._process_name.cache_clear()


def test_a_charge_that_runs_on_another_host_is_not_burned_until_its_session_ends(address, monkeypatch):
    ledger, seen = made(address), []

    def run(self: Pure, data: Any, rng: Any) -> int:
        for ends in (False, True):
            if ends:
                end_session(ledger)
            with another_host(monkeypatch):
                seen.append(kinds(Ledger.open(address))[-1])
        return 7

    monkeypatch.setattr(Pure, "run", run)
    with pytest.raises(LedgerUnavailable, match="burned meanwhile"):
        release(TENTH, people(), ledger=ledger)
    assert seen == ["charge", "burn"]
    assert kinds(ledger) == ["open", "facts", "charge", "burn"]
    ledger.verify(CATALOGUE)


def test_another_host_needs_the_owners_word_and_the_first_stops_then(address, tmp_path, monkeypatch):
    ledger = made(address)
    release(TENTH, people(), ledger=ledger)
    with another_host(monkeypatch, tmp_path / "there"):
        there = Ledger.open(address)
        with pytest.raises(LedgerRolledBack, match="none in this state directory"):
            release(TENTH, people(), ledger=there)
        there.reconcile(adopt=True)
        release(TENTH, people(), ledger=there)
    with pytest.raises(LedgerRolledBack, match="mark of another host"):
        release(TENTH, people(), ledger=ledger)
    assert ledger.rolled_back()
    ledger.reconcile()
    release(TENTH, people(), ledger=ledger)
    assert ledger.spent().pure == 3 * 10**8
    with another_host(monkeypatch, tmp_path / "there"), pytest.raises(LedgerRolledBack, match="mark of another host"):
        release(TENTH, people(), ledger=there)
    ledger.verify(CATALOGUE)


def test_a_database_set_back_is_refused_by_the_host_that_saw_less_too(address, tmp_path, monkeypatch):
    """The first host wrote after the second, and its last charge is lost with its answer."""
    ledger = made(address)
    with another_host(monkeypatch, tmp_path / "there"):
        there = Ledger.open(address)
        there.reconcile(adopt=True)
        release(TENTH, people(), ledger=there)
    ledger.reconcile()
    for _ in range(2):
        release(TENTH, people(), ledger=ledger)
    forget_after(address, ledger.length() - 2)
    for host in (False, True):
        with another_host(monkeypatch, tmp_path / "there" if host else None), pytest.raises(LedgerRolledBack):
            release(TENTH, people(), ledger=Ledger.open(address))


def test_a_moved_mark_takes_its_conversations_along(address, tmp_path, monkeypatch):
    ledger = made(address)
    talk = converse(Guess(bound=YES), people(), ledger=ledger)
    ledger.close()
    shutil.move(tmp_path / "state", tmp_path / "there")
    with another_host(monkeypatch, tmp_path / "there"):
        there = reopen(Guess(bound=YES), people(), charge=talk.charge, ledger=Ledger.open(address))
        assert there.ask(0) is False
    with pytest.raises(LedgerRolledBack, match="none in this state directory"):
        talk.ask(YES)


def test_secrets_are_not_in_the_database(address):
    ledger = made(address)
    converse(Guess(bound=YES), people(), ledger=ledger)
    (state,) = ledger.store.secrets.all().values()
    assert str(state["secret"]) in secret_of(ledger).read_text()
    with owner_of(address) as owner:
        tables = "SELECT relname FROM pg_class WHERE relnamespace = 'discreet'::regnamespace AND relkind = 'r'"
        for (table,) in owner.execute(tables).fetchall():
            text = owner.execute(f"SELECT string_agg(row_to_json(t)::text, ' ') FROM discreet.{table} t").fetchone()[0]
            assert str(state["secret"]) not in (text or "")
