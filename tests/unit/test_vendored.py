"""The files of others that the page loads are those whose hashes are written down, and name no outside address."""

import hashlib
import re
from pathlib import Path

import discreet.serve

STATIC = Path(discreet.serve.__file__).parent / "static"
ROW = re.compile(r"\| `([^`]+)` \| .* \| `([0-9a-f]{64})` \|")


def test_vendored_files_have_the_hashes_that_are_written_down():
    listed = dict(ROW.findall((STATIC / "VENDORED.md").read_text()))
    assert set(listed) == {"htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css"}
    for name, expected in listed.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == expected, name


def test_every_vendored_file_has_its_licence():
    assert "Zero-Clause BSD" in (STATIC / "htmx.LICENSE.txt").read_text()
    assert "The MIT License" in (STATIC / "uPlot.LICENSE.txt").read_text()


def test_our_own_files_name_no_outside_address_and_have_no_inline_script():
    templates = STATIC.parent / "templates"
    for path in [*templates.glob("*.html"), STATIC / "page.js", STATIC / "page.css"]:
        text = path.read_text()
        assert not re.search(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text.replace("http://www.w3.org/", "")), path.name
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son[a-z]+=|\sstyle=|<style|javascript:", text), path.name
        assert "|safe" not in text.replace(" ", ""), path.name
