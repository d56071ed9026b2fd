"""A process that is killed at any file-system call forgets nothing that it answered, and what it did can be done again.

Each run forks a process, kills it (SIGKILL, from inside the call) and judges the files it left: `judge.judge`.
"""

from __future__ import annotations

import random

import pytest

from tests.crash.harness import Harness, spread, wrong
from tests.crash.operations import OPERATIONS

QUICK = {"release": 8, "requests": 12, "conversation": 12, "create": 8, "adopt": 8, "ask": 5}
"""How many kills of which operations are in the quick part."""
MOST = 120
"""How many kills of each operation are in the whole: at every call of most of them, evenly spaced in the longest."""


def points(harness: Harness, name: str) -> list[tuple[int, str]]:
    """Before every call, and in the middle of every write."""
    calls = harness.prepared(name).calls
    modes = [
        (at, mode) for at, call in enumerate(calls, 1) for mode in ("kill", "half") if mode == "kill" or call[0] == "w"
    ]
    return [*modes, (len(calls), "after")]


@pytest.mark.parametrize("name", QUICK)
def test_a_kill_at_a_call_loses_nothing(harness, name):
    killed = [harness.kill(name, at, mode) for at, mode in spread(points(harness, name), QUICK[name])]
    assert not any(killed), wrong(killed)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_at_any_call_loses_nothing(harness, name):
    killed = [harness.kill(name, at, mode) for at, mode in spread(points(harness, name), MOST)]
    assert not any(killed), wrong(killed)


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_processes_that_are_killed_side_by_side_lose_nothing(harness, rounds):
    rng = random.Random(rounds)
    killed = [harness.crowd(rng) for _ in range(rounds)]
    assert not any(killed), wrong(killed)


def test_a_process_that_answers_before_it_stores_is_noticed(harness):
    twin = "answers too early"
    assert not harness.kill("requests", 10**6, "kill", twin=twin)  # there is no such call: nothing is wrong yet
    assert any(harness.kill("requests", at, mode, twin=twin) for at, mode in points(harness, "requests")[::2])
