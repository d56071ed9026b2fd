"""A class name stands for one thing: no two modules define it."""

from __future__ import annotations

from tests.architecture.house import build, discreet


def test_no_class_name_is_defined_twice():
    assert discreet().repeated_classes() == {}


def test_a_doubled_class_is_caught_whether_public_or_private(tmp_path):
    files = {
        "a.py": "class Answer: ...\nclass _Row: ...\n",
        "b/c.py": "class Answer: ...\n",
        "d.py": "class _Row: ...\nclass Other: ...\n",
    }
    assert build(tmp_path, files).repeated_classes() == {
        "Answer": ["discreet.a", "discreet.b.c"],
        "_Row": ["discreet.a", "discreet.d"],
    }
