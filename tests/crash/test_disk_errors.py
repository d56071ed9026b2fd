"""A call that fails gives an error of ours, and a process that goes on afterwards has forgotten nothing it answered."""

from __future__ import annotations

import pytest

from tests.crash.harness import ERRORS, Harness, spread, wrong
from tests.crash.layer import CHANGES
from tests.crash.operations import OPERATIONS

QUICK = {"release": 8, "conversation": 16, "create": 10}
"""How many failures of which operations are in the quick part."""
MOST = 100
"""How many failures of each operation are in the whole, evenly spaced."""


def failures(harness: Harness, name: str) -> list[tuple[int, str, bool]]:
    """Which call fails, how, and whether all later ones do."""
    return [
        (at, error, forever)
        for error, (_, kinds) in ERRORS.items()
        for forever in (False, True)
        for at in range(1, len(harness.calls(name, kinds)) + 1)
    ]


@pytest.mark.parametrize("name", QUICK)
def test_a_call_that_fails_loses_nothing(harness, name):
    chosen = spread(failures(harness, name), QUICK[name])
    failed = [harness.fail(name, at, error, forever=forever) for at, error, forever in chosen]
    assert not any(failed), wrong(failed)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_any_call_that_fails_loses_nothing(harness, name):
    chosen = spread(failures(harness, name), MOST)
    failed = [harness.fail(name, at, error, forever=forever) for at, error, forever in chosen]
    assert not any(failed), wrong(failed)


def test_a_program_that_ignores_errors_is_noticed(harness):
    assert any(harness.lie("requests", at) for at in range(1, len(harness.calls("requests", CHANGES)) + 1))
