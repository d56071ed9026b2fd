"""A power cut at any moment forgets nothing that was answered: neither the ledger nor its mark.

An operation is recorded once, call by call; then the power is cut after every call, on a disk that loses, keeps or
tears what was not synced (`disk`), and what is left is judged.
"""

from __future__ import annotations

import pytest

from tests.crash.disk import DATA, NAMES
from tests.crash.harness import Harness, wrong
from tests.crash.operations import OPERATIONS
from tests.crash.twins import DEAF

QUICK = {"release": 7, "conversation": 15, "create": 9, "adopt": 15}
"""After how many calls of which operations the power is cut in the quick part."""
MOST = 60
"""After how many calls of each operation it is cut in the whole, evenly spaced in the longest; each in ten ways."""


def cuts(harness: Harness, name: str, *, names=NAMES, data=DATA, processes: int = 1, wait: int = 0, twin=None, **more):
    """What is wrong after each cut, or ""."""
    recording = harness.record(name, processes=processes, wait=wait, twin=twin)
    return (found for each in names for found in harness.cuts(recording, each, data, **more))


@pytest.mark.parametrize("name", QUICK)
def test_a_power_cut_loses_nothing(harness, name):
    found = list(cuts(harness, name, data=("lost", "torn"), most=QUICK[name]))
    assert not any(found), wrong(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_power_cut_at_any_moment_loses_nothing(harness, name):
    found = list(cuts(harness, name, most=MOST))
    assert not any(found), wrong(found)


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_power_cut_while_several_processes_write_loses_nothing(harness, rounds):
    """Syncs take five milliseconds, so that processes wait for each other's."""
    data = ("lost",) if rounds == 1 else DATA
    for _ in range(rounds):
        found = list(cuts(harness, "crowd", data=data, processes=3, wait=5000, most=20 if rounds == 1 else MOST))
        assert not any(found), wrong(found)


@pytest.mark.parametrize(
    ("forgotten", "name"),
    [
        ("the log", "release"),
        ("the mark", "release"),
        ("the secret", "conversation"),
        ("the folders", "conversation"),
        ("the folders", "create"),
    ],
)
def test_a_missing_sync_is_noticed(harness, forgotten, name):
    """The recording is right, and the disk does not hear its syncs of one file: a sync that nobody calls for."""
    assert any(cuts(harness, name, names=("strict",), data=("lost",), deaf=DEAF[forgotten]))


@pytest.mark.parametrize(("twin", "name"), [("nothing syncs", "requests"), ("SQLite does not sync", "long")])
def test_a_process_that_does_not_sync_is_noticed(harness, twin, name):
    assert any(cuts(harness, name, names=("strict",), data=("lost", "some"), twin=twin))
