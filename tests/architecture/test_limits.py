"""The figures of `tools/house.py` count what they say; `make check` holds `discreet` to their limits."""

from __future__ import annotations

import subprocess
import sys

from tests.architecture.house import ROOT, build

SMALL = '''"""A docstring
of two lines."""

# a comment
import math


def f(x):
    """No code."""
    return _g(x)  # a comment behind code


def _g(x):
    y = math.sqrt(x)

    return _h(y) + _h(x)


def _h(x):
    return (
        x
    )


LIMIT = 3
"""What it limits."""
'''


def test_code_lines_are_without_blanks_comments_and_docstrings(tmp_path):
    made = build(tmp_path, {"small.py": SMALL})
    assert made.code() == 11
    assert {each.name: each.lines for each in made.functions} == {"f": 1, "_g": 2, "_h": 3}


def test_a_private_helper_that_is_named_once_has_one_caller(tmp_path):
    assert [each.name for each in build(tmp_path, {"small.py": SMALL}).once_called()] == ["_g"]


def test_isinstance_is_counted(tmp_path):
    assert build(tmp_path, {"a.py": "isinstance(1, int)\nx.isinstance()\n# isinstance(\n"}).isinstances() == 1


def test_the_script_says_which_limit_is_broken(tmp_path):
    build(tmp_path, {"errors.py": "from discreet import cli\n", "cli.py": "def main():\n    return 0\n"})
    script = [sys.executable, str(ROOT / "tools" / "house.py"), "--details", str(tmp_path / "discreet")]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert "imports that point up" in printed
    assert "discreet.errors -> discreet.cli" in printed
    assert "above the limit" in printed
