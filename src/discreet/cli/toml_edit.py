"""New bounds in a schema file: one column's section is rewritten, everything else stays as its owner wrote it.

Whether that works on this file is found out before anything is spent: the text with trial bounds is parsed again, and
must say the same as before about everything but the column.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.data import Number

_REPLACED = ("kind", "low", "high", "step")


def lines_for(name: str, number: Number) -> list[str]:
    """The section of a column, to paste."""
    import json

    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    head = f"[columns.{name if bare else json.dumps(name, ensure_ascii=False)}]"
    return [head, *_bounds(number), *(["missing = true"] if number.missing else [])]


def _bounds(number: Number) -> list[str]:
    from discreet.data import spell

    return ['kind = "number"', *(f"{key} = {spell(getattr(number, key))}" for key in ("low", "high", "step"))]


def rewritten(text: str, name: str, number: Number) -> str:
    """The schema's text with this declaration of the column; ParameterError if its section is not found."""
    lines = text.splitlines(keepends=True)
    heads = [place for place, line in enumerate(lines) if line.lstrip().startswith("[")]
    start = next((place for place in heads if _is_head(lines[place], name)), None)
    if start is None:
        raise ParameterError(
            f"--write needs a section [columns.{name}] of its own in the schema: paste the lines instead"
        )
    end = next((place for place in heads if place > start), len(lines))
    kept = [line for line in lines[start + 1 : end] if line.partition("=")[0].strip() not in _REPLACED]
    head = lines[start] if lines[start].endswith("\n") else lines[start] + "\n"
    made = "".join([*lines[:start], head, *(f"{line}\n" for line in _bounds(number)), *kept, *lines[end:]])
    _check(text, made, name, number)
    return made


def _is_head(line: str, name: str) -> bool:
    try:
        return tomllib.loads(line) == {"columns": {name: {}}}
    except tomllib.TOMLDecodeError:  # a line of a list, say
        return False


def _check(before: str, after: str, name: str, number: Number) -> None:
    """Nothing but the column's bounds is different."""
    one, other = _parsed(before), _parsed(after)
    given = {key: value for key, value in one["columns"][name].items() if key not in _REPLACED}
    expected = {**given, "kind": "number", "low": number.low, "high": number.high, "step": number.step}
    one["columns"][name] = expected
    if one != other:
        raise ParameterError(f"the section of {name!r} cannot be rewritten as it is: paste the lines instead")


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Fraction)
    except tomllib.TOMLDecodeError:
        return {"columns": {}}


def beside(path: Path) -> Path:
    """A new file beside the schema, which can be renamed to it: found to be writable before anything is spent."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.open("x").close()
        shutil.copymode(path, new)
    except OSError as error:
        raise ParameterError(f"{path.name} cannot be rewritten ({error.strerror}): nothing was spent") from None
    return new


def difference(before: str, after: str, name: str) -> list[str]:
    """What changed, as a diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, f"{name}, new", lineterm="", n=1)
    return list(lines)
