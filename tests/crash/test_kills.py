"""A process that is killed at any file-system call forgets nothing that it answered, and what it did can be done again.

Each run forks a process, kills it (SIGKILL, from inside the call) and judges the files it left: `judge.judge`.
"""

from __future__ import annotations

import random

import pytest

from tests.crash.harness import Harness
from tests.crash.judge import Unsound
from tests.crash.operations import OPERATIONS

QUICK = {"release": 8, "requests": 4, "conversation": 4, "create": 4, "adopt": 4, "ask": 16}
"""Of which operations every n-th call is taken in the quick part."""


def points(harness: Harness, name: str) -> list[tuple[int, str]]:
    """Before every call, and in the middle of every write."""
    calls = harness.prepared(name).calls
    modes = [
        (at, mode) for at, call in enumerate(calls, 1) for mode in ("kill", "half") if mode == "kill" or call[0] == "w"
    ]
    return [*modes, (len(calls), "after")]


@pytest.mark.parametrize("name", QUICK)
def test_a_kill_at_a_call_loses_nothing(harness, name):
    for at, mode in points(harness, name)[:: QUICK[name]]:
        harness.kill(name, at, mode)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_at_any_call_loses_nothing(harness, name):
    for at, mode in points(harness, name):
        harness.kill(name, at, mode)


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_processes_that_are_killed_side_by_side_lose_nothing(harness, rounds):
    rng = random.Random(rounds)
    for _ in range(rounds):
        harness.crowd(rng)


def test_a_process_that_answers_before_it_stores_is_noticed(harness):
    harness.kill("requests", 10**6, "kill", twin="answers too early")  # there is no such call: nothing is wrong yet
    caught = 0
    for at, mode in points(harness, "requests")[::2]:
        try:
            harness.kill("requests", at, mode, twin="answers too early")
        except Unsound:
            caught += 1
    assert caught
