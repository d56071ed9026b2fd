"""Imports point down, wherever they stand; there is no cycle; each optional library belongs to one module.

The layers are a literal list in `tools/house.py`. Every rule is also tried on a made-up package that breaks it.
"""

from __future__ import annotations

import pytest

from tests.architecture.house import build, discreet, house


def test_every_module_has_one_layer():
    packages = [package for layer in house.LAYERS for package in layer]
    assert len(packages) == len(set(packages))
    assert set(packages) == {name.split(".")[1] for name in discreet().modules if "." in name}
    assert not [edge for edge in discreet().upward() if edge[1] == "no layer"]


def test_imports_point_down():
    assert discreet().upward() == []


def test_no_modules_import_each_other():
    assert discreet().cycles() == []


def test_each_library_is_imported_by_its_own_module_alone():
    assert discreet().stray_libraries() == []


LAZY = "def f():\n    from discreet.cli import main\n"
TYPED = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from discreet.cli import main\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"errors.py": "import discreet.cli\n"}, ("discreet.errors", "discreet.cli")),
        ({"errors.py": "from discreet import cli\n"}, ("discreet.errors", "discreet.cli")),
        ({"errors.py": LAZY}, ("discreet.errors", "discreet.cli")),
        ({"errors.py": TYPED}, ("discreet.errors", "discreet.cli")),
        ({"erm/descent.py": "from ..cli import main\n"}, ("discreet.erm.descent", "discreet.cli")),
        ({"erm/__init__.py": "from .. import cli\n"}, ("discreet.erm", "discreet.cli")),
        (
            {"erm/risk.py": "from discreet.pac import rule\n", "pac/__init__.py": ""},
            ("discreet.erm.risk", "discreet.pac"),
        ),
        ({"release.py": "import discreet\n"}, ("discreet.release", "discreet")),
        ({"attic.py": ""}, ("discreet.attic", "no layer")),
    ],
    ids=[
        "import",
        "from",
        "inside a function",
        "for types",
        "relative",
        "of a package",
        "sideways",
        "face",
        "no layer",
    ],
)
def test_an_import_that_points_up_is_caught(tmp_path, files, expected):
    assert build(tmp_path, {"cli/__init__.py": "def main(): ...\n", **files}).upward() == [expected]


def test_imports_that_point_down_are_allowed(tmp_path):
    files = {
        "errors.py": "",
        "erm/risk.py": "from discreet import errors\n",
        "erm/descent.py": "from discreet.erm.risk import Risk\n",
        "cli/__init__.py": "import discreet\nfrom discreet.erm import descent\n",
    }
    made = build(tmp_path, files)
    assert made.upward() == made.cycles() == []


def test_a_cycle_held_open_by_a_lazy_import_is_caught(tmp_path):
    files = {
        "erm/a.py": "from discreet.erm import b\n",
        "erm/b.py": "from discreet.erm import c\n",
        "erm/c.py": "def f():\n    from discreet.erm.a import g\n",
        "erm/d.py": "from discreet.erm import a\n",
    }
    assert build(tmp_path, files).cycles() == [["discreet.erm.a", "discreet.erm.b", "discreet.erm.c"]]


def test_a_library_in_a_second_module_is_caught(tmp_path):
    files = {
        "data/files.py": "import pyarrow.parquet\n",
        "data/filesystem.py": "def f():\n    import pyarrow.csv\n",
        "report/plot.py": "from matplotlib import figure\n",
    }
    assert build(tmp_path, files).stray_libraries() == [("discreet.data.filesystem", "pyarrow")]
