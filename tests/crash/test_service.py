"""A service whose processes are killed while analysts ask: every paid answer is charged once, within the allowance."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tests.crash.service import Storm, Told, asked, judged, prepared, serving, verdict
from tests.postgres import Cluster
from tests.serving import Process

SHARE = Fraction(1, 60)
STOPPED = {0, -signal.SIGTERM}
"""How a service ends that was asked to: uvicorn repeats the signal when all is finished."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    cluster = Cluster()
    try:
        yield cluster.database()
    finally:
        cluster.close()


def stormed(
    folder: Path,
    server: str | None,
    *,
    analysts: int,
    processes: int,
    seconds: float,
    every: float,
    price: str = "0.2%",
) -> Storm:
    """Analysts ask for some seconds, while one process after the other is killed and started again.

    A slow machine goes on until enough was answered, for two minutes at most.
    """
    made = prepared(folder, server, analysts, SHARE)
    running = [serving(made, price) for _ in range(processes)]
    storm, draw, end = Storm([each.port for each in running], made.keys), random.Random(3), time.monotonic() + seconds
    kills = 0
    with storm.blowing():
        while (now := time.monotonic()) < end or (storm.statuses[200] < 4 * analysts and now < end + 120):
            time.sleep(every * (0.5 + draw.random()))
            struck = running[kills % processes]
            struck.kill()
            struck.start()
            kills += 1
    codes = [each.stop()[0] for each in running]
    wrong, kinds = verdict(storm, made, SHARE)
    print(f"{kills} kills; {dict(storm.statuses)}; {dict(kinds)}")
    assert wrong == []
    assert set(codes) <= STOPPED
    assert kills >= 1
    assert kinds["answer"] >= analysts  # it did work meanwhile
    assert storm.statuses[200] > kinds["answer"]  # and much of it was free
    return storm


def test_a_service_that_is_killed_charges_every_answer_once(tmp_path):
    stormed(tmp_path / "desk", None, analysts=6, processes=1, seconds=6, every=3)


def test_two_services_on_one_database_share_one_budget(tmp_path, server):
    stormed(tmp_path / "two", server, analysts=6, processes=2, seconds=6, every=3)


@pytest.mark.slow
@pytest.mark.parametrize(("store", "processes"), [("sqlite", 1), ("sqlite", 2), ("postgres", 1), ("postgres", 2)])
def test_fifty_analysts_for_a_minute(tmp_path, server, store, processes):
    place = tmp_path / f"fifty{processes}"
    where = server if store == "postgres" else None
    storm = stormed(place, where, analysts=50, processes=processes, seconds=60, every=6, price="0.5%")
    assert storm.statuses[402]  # allowances were used up, to the last unit that a question fits into


# Copies that are put back.


def spend(process: Process, number: int) -> tuple[int | str, bytes]:
    sql = f"SELECT COUNT(*) FROM people WHERE age = {number}"
    return asked(process.port, process.house.keys["a0"], f"r{number}", sql)


def test_a_ledger_that_is_put_back_is_refused_by_the_service_that_runs_and_by_a_new_one(tmp_path):
    folder = tmp_path / "desk"
    process = serving(prepared(folder, None, 1, Fraction(1, 2)))
    first = spend(process, 1)
    assert first[0] == 200
    shutil.copy2(folder / "people.ledger", tmp_path / "yesterday")
    assert spend(process, 2)[0] == 200
    assert process.stop()[0] in STOPPED
    shutil.copy2(tmp_path / "yesterday", folder / "people.ledger")
    with pytest.raises(RuntimeError, match="does not agree with its mark"):
        process.start()


def test_a_database_that_is_put_back_is_refused_until_the_owner_reconciles(tmp_path):
    cluster = Cluster()
    try:
        folder = tmp_path / "desk"
        process = serving(prepared(folder, cluster.database(), 1, Fraction(1, 2)))
        first = spend(process, 1)
        assert first[0] == 200
        cluster.stop()
        shutil.copytree(cluster.data, tmp_path / "yesterday")
        cluster.start()
        while (second := spend(process, 2))[0] == 503:  # it connects again by itself
            time.sleep(0.1)
        assert second[0] == 200
        cluster.stop(signal.SIGQUIT)
        cluster.restore(tmp_path / "yesterday")
        cluster.start()
        while (status := spend(process, 3))[0] == 503 and b"LedgerUnavailable" in status[1]:
            time.sleep(0.1)
        assert status[0] == 503
        assert json.loads(status[1])["type"] == "LedgerRolledBack"
        process.kill()
        with pytest.raises(RuntimeError, match="does not agree with its mark"):
            process.start()
    finally:
        cluster.close()


# The judge sees what is wrong.


def entry(seq: int, kind: str, **more: object) -> dict:
    return {"seq": seq, "kind": kind, **more}


def charge(seq: int, analyst: str, request: str, price: int = 5) -> dict:
    return entry(seq, "charge", allowance=analyst, by={"request": request}, price={"renyi": price})


def told(analyst: str, request: str, entries: list[int], price: int, status: int = 200, value: int = 1) -> Told:
    reply = {"entries": entries, "price": {"nano": price}, "value": value}
    return Told(analyst, request, status, json.dumps(reply).encode())


ENTRIES = [charge(1, "ana", "r1"), entry(2, "answer", charge=1), charge(3, "bob", "r2"), entry(4, "answer", charge=3)]
TOLD = [told("ana", "r1", [1], 5), told("bob", "r2", [3], 5), told("bob", "r3", [], 0)]
CAPS = {"ana": Fraction(5), "bob": Fraction(5)}


def test_the_judge_is_content_with_what_is_right():
    assert judged(TOLD, ENTRIES, CAPS) == []


@pytest.mark.parametrize(
    ("replies", "entries", "caps"),
    [
        ([*TOLD, told("ana", "r4", [9], 5)], ENTRIES, CAPS),
        ([*TOLD, told("ana", "r4", [], 5)], ENTRIES, CAPS),
        ([*TOLD, told("ana", "r4", [1], 5)], ENTRIES, CAPS),
        ([*TOLD, told("bob", "r1", [1], 5)], ENTRIES, CAPS),
        ([*TOLD, told("ana", "r1", [1], 5, value=2)], ENTRIES, CAPS),
        ([*TOLD, told("ana", "r5", [], 0, status=500)], ENTRIES, CAPS),
        (TOLD, ENTRIES[:-1], CAPS),
        (TOLD, [*ENTRIES, entry(5, "answer", charge=1)], CAPS),
        (TOLD, [*ENTRIES, charge(5, "ana", "r6", 1)], CAPS),
        (TOLD, ENTRIES, {**CAPS, "ana": Fraction(9, 2)}),
        ([*TOLD, told("ana", "r7", [], 0, status=402)], ENTRIES, {**CAPS, "ana": Fraction(10)}),
    ],
    ids=[
        *("a charge that is not there", "a price without a charge", "a charge given twice", "another's charge"),
        *("different bytes", "a failure", "an answer that is not stored", "two answers", "an allowance passed by one"),
        *("an allowance passed by a half", "a refusal although there is room"),
    ],
)
def test_the_judge_sees_each_wrong(replies, entries, caps):
    assert judged(replies, entries, caps)
