"""The example notebook runs from top to bottom, shows what it promises to show, and is stored without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.kernels import executed

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


def test_there_is_a_notebook():
    assert [each.name for each in NOTEBOOKS] == ["first_questions.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_as_its_writer_writes_it(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert nbformat.writes(notebook).rstrip("\n") == path.read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.filterwarnings("ignore")  # of zmq and asyncio
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_public_things(path, tmp_path, monkeypatch):
    for name in ("DISCREET_STATE", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ran = executed(nbformat.read(path, as_version=4), tmp_path)
    shown = [output for cell in ran.cells for output in cell.get("outputs", [])]
    kinds = [kind for output in shown for kind in output.get("data", {})]
    assert kinds.count("image/png") >= 2  # plots
    assert kinds.count("text/html") >= 6  # tables
    texts = "".join(str(output.get("data", {}).get("text/html", "")) + output.get("text", "") for output in shown)
    for words in ("persons", "±", "epsilon so far", "of the budget", "limited", "is not answered"):
        assert words in texts
    assert "Fraction(" not in texts
