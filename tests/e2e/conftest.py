"""What the tests of the command line share."""

from __future__ import annotations

import io
import sys

import pytest

from discreet import cli
from discreet.cli.shipped import load

load("tour")  # so that tests can import discreet_tour


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process: its exit code, output and errors. stdin: what a pipe says to it."""

    def discreet(*arguments, stdin=None, columns=None):
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.StringIO(stdin) if isinstance(stdin, str) else stdin)
        code = 0
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
        return code, *capsys.readouterr()

    return discreet
