"""Every citation key leads to an entry of docs/references.md, and every entry is cited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "references.md"
KEY = re.compile(r"\[([A-Z][A-Za-z]+\d\d)(?:, [\w. ]+)?\]")
ENTRY = re.compile(r"^\[(\w+)\] (.+?)\. \*(.+?)[.?]?\* (.+?)\b((?:19|20)\d\d)\.$", re.DOTALL)


def entries(text: str) -> dict[str, re.Match[str]]:
    paragraphs = [each.replace("\n", " ").strip() for each in text.split("\n\n") if each.startswith("[")]
    return {each[1 : each.index("]")]: ENTRY.match(each) for each in paragraphs}


def cited() -> dict[str, list[str]]:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), ROOT / "README.md"]
    files += [page for page in (ROOT / "docs").rglob("*.md") if page != PAGE and "_build" not in page.parts]
    keys: dict[str, list[str]] = {}
    for file in files:
        for key in KEY.findall(file.read_text()):
            keys.setdefault(key, []).append(file.name)
    return keys


def test_every_key_that_is_cited_has_an_entry_and_every_entry_is_cited():
    assert set(cited()) == set(entries(PAGE.read_text()))


@pytest.mark.parametrize("key", entries(PAGE.read_text()))
def test_an_entry_has_authors_title_venue_and_the_year_of_its_key(key):
    entry = entries(PAGE.read_text())[key]
    assert entry is not None, "authors. *title.* venue, year."
    assert entry[5].endswith(key[-2:])
    initials = "".join(re.findall(r"(?:^|, |\. )([A-Z])[\w'ó-]+", re.sub(r"\b[A-Z]\.(-[A-Z]\.)? ?", "", entry[2])))
    if len(initials) == 1:  # one author: the key begins with the name
        assert entry[2].split()[-1].startswith(key[:3])
    else:
        assert initials[:2] in (key[:2], key[0] + key[1].upper())


def test_the_entries_are_sorted():
    keys = list(entries(PAGE.read_text()))
    assert keys == sorted(keys)
