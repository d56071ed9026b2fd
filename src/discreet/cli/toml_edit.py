"""New bounds in a schema file: one column's section is rewritten, everything else stays as its owner wrote it.

Whether that works on this file is found out before anything is spent: the text with trial bounds is parsed again, and
must say the same as before about everything but the column.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.data import spell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.data import Number

_BOUNDS = ("low", "high", "step")


def lines_for(name: str, number: Number) -> list[str]:
    """The section of a column, to paste."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    head = f"[columns.{name if bare else json.dumps(name, ensure_ascii=False)}]"
    return [head, *_bounds(number), *(["missing = true"] if number.missing else [])]


def _bounds(number: Number) -> list[str]:
    return ['kind = "number"', *(f"{key} = {spell(getattr(number, key))}" for key in _BOUNDS)]


def rewrite(text: str, name: str, number: Number) -> str:
    """The schema's text with this declaration of the column; ParameterError if its section is not found."""
    lines = text.splitlines(keepends=True)
    heads = [place for place, line in enumerate(lines) if line.lstrip().startswith("[")]
    start = next((place for place in heads if _parse(lines[place]) == {"columns": {name: {}}}), None)
    if start is None:
        raise ParameterError(
            f"--write needs a section [columns.{name}] of its own in the schema: paste the lines instead"
        )
    end = next((place for place in heads if place > start), len(lines))
    kept = [line for line in lines[start + 1 : end] if line.partition("=")[0].strip() not in ("kind", *_BOUNDS)]
    head = lines[start] if lines[start].endswith("\n") else lines[start] + "\n"
    changed = "".join([*lines[:start], head, *(f"{line}\n" for line in _bounds(number)), *kept, *lines[end:]])
    expected = _parse(text)
    expected["columns"][name] |= {"kind": "number", **{key: getattr(number, key) for key in _BOUNDS}}
    if _parse(changed) != expected:
        raise ParameterError(f"the section of {name!r} cannot be rewritten as it is: paste the lines instead")
    return changed


def _parse(text: str) -> dict[str, Any]:
    """The text as TOML, with exact numbers; no columns if it is none, as a line of a list."""
    try:
        return tomllib.loads(text, parse_float=Fraction)
    except tomllib.TOMLDecodeError:
        return {"columns": {}}


def difference(before: str, after: str, name: str) -> list[str]:
    """What changed, as a diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, f"{name}, new", lineterm="", n=1)
    return list(lines)
