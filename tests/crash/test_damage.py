"""Damage to any file of a ledger is noticed or does not matter: no sum, entry or threshold is believed that was not
written."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

import discreet.ledger.state
from tests.crash.damage import FILES, KINDS, Sound, outcome, sound
from tests.crash.harness import TALLY
from tests.crash.judge import Unsound


@pytest.fixture(scope="module")
def before(work: Path) -> Sound:
    made = work / "damage"
    made.mkdir()
    return sound(made)


def damaged(before: Sound, work: Path, file: str, kind: str, seed: int) -> str:
    """The outcome of one damage."""
    root, (folder, name) = work / "damaged", before.file(file)
    shutil.copytree(folder, root)
    try:
        path = root / name
        data = bytearray(path.read_bytes())
        KINDS[kind](data, random.Random(f"{file} {kind} {seed}"))
        path.write_bytes(data)
        TALLY["damages", file] += 1
        return outcome(before, root, from_file=file == "sidecar")
    finally:
        shutil.rmtree(root)


@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", FILES)
def test_damage_is_noticed_or_does_not_matter(before, work, file, rounds):
    seeds = range(rounds if file != "sidecar" else -(-rounds // 4))  # which needs the table's file, and is tiny
    found = Counter(damaged(before, work, file, kind, seed) for kind in KINDS for seed in seeds)
    assert found["noticed"] or file == "turns"  # which nothing relies on
    assert set(found) <= {"noticed", "harmless"}


def test_a_ledger_that_checks_no_hashes_is_noticed(work, monkeypatch):
    monkeypatch.setattr(discreet.ledger.state, "chained", lambda previous, body: "0" * 64)
    made = work / "twin"
    made.mkdir()
    before, believed = sound(made), 0
    for seed in range(40):
        try:
            damaged(before, work, "ledger", "other digit", seed)
        except Unsound:
            believed += 1
    shutil.rmtree(made)
    assert believed
