"""Every example of the README runs, in order, in an empty folder; every link of the documentation leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readme_runs_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "0.025" in printed
    assert "the median number of visits is about" in printed


def test_the_page_about_learning_runs_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "learning.md").read_text(), re.DOTALL)
    exec(compile(block, "learning.md", "exec"), {})
    assert "excess risk <=" in capsys.readouterr().out


def test_the_page_about_rules_runs_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "rules.md").read_text(), re.DOTALL)
    exec(compile(block, "rules.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "v4 and not v18" in printed
    assert "with probability 0.99" in printed


def test_the_page_about_questions_runs_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "questions.md").read_text(), re.DOTALL)
    exec(compile(block, "questions.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "source='direct'" in printed
    assert "source='hypothesis', price=0, " in printed
    assert "pmw" in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_proof_page_that_the_code_names_exists():
    for source in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"docs/proofs/[a-z_0-9]+\.md", source.read_text()):
            assert (ROOT / name).exists(), (source.name, name)
