"""The commands that need no ledger, run from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


def discreet(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from discreet.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def test_a_plan_is_a_table_with_its_theorems():
    found = discreet(
        "plan", "histogram", "--epsilon", "0.5", "--delta", "1e-6", "--size", "20000", "--number", "cells=121"
    )
    assert found.returncode == 0
    assert re.search(r"^ *Laplace +4 +31 ", found.stdout, re.MULTILINE)
    assert "Gaussian" in found.stdout
    assert found.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "histogram", "--epsilon", "0.5"], "cells"),
        (["plan", "everything", "--epsilon", "1"], "kind must be one of"),
        (["plan", "count", "--epsilon", "0"], "epsilon must be > 0"),
        (["plan", "count", "--epsilon", "1", "--number", "cells"], "NAME=N"),
        (["plan", "count"], "--epsilon"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(arguments, says):
    found = discreet(*arguments)
    assert found.returncode == 2
    assert says in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.slow  # a quick test runs the same attacks
def test_the_audit_passes_and_names_the_twins_it_caught():
    found = discreet("audit", COLUMNS="160")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "NOT CAUGHT" not in found.stdout
    assert "every broken twin was caught" in found.stdout


def test_help_of_every_command_works():
    commands = [
        "plan",
        "audit",
        "tour",
        "ledger",
        *(f"ledger {name}" for name in ("create", "show", "verify", "export")),
    ]
    for command in commands:
        found = discreet(*command.split(), "--help")
        assert found.returncode == 0
        assert "Usage:" in found.stdout
