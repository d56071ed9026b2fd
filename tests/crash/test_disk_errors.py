"""A call that fails gives an error of ours, and a process that goes on afterwards has forgotten nothing it answered."""

from __future__ import annotations

import pytest

from tests.crash.harness import ERRORS, Harness
from tests.crash.judge import Unsound
from tests.crash.layer import CHANGES
from tests.crash.operations import OPERATIONS

QUICK = {"release": 16, "conversation": 8, "create": 12}
"""Of which operations every n-th call fails in the quick part."""


def failures(harness: Harness, name: str, every: int = 1) -> list[tuple[int, str, bool]]:
    """Which call fails, how, and whether all later ones do."""
    return [
        (at, error, forever)
        for error, (_, kinds) in ERRORS.items()
        for at in range(1, len(harness.calls(name, kinds)) + 1, every)
        for forever in (False, True)
    ]


@pytest.mark.parametrize("name", QUICK)
def test_a_call_that_fails_loses_nothing(harness, name):
    for at, error, forever in failures(harness, name, QUICK[name]):
        harness.fail(name, at, error, forever=forever)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in ("long", "workload")])
def test_any_call_that_fails_loses_nothing(harness, name):
    for at, error, forever in failures(harness, name):
        harness.fail(name, at, error, forever=forever)


def test_a_program_that_ignores_errors_is_noticed(harness):
    caught = 0
    for at in range(1, len(harness.calls("requests", CHANGES)) + 1):
        try:
            harness.lie("requests", at)
        except Unsound:
            caught += 1
    assert caught
