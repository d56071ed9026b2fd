"""Records: public values as canonical JSON, and back.

A record is what a ledger stores of a mechanism, a query, a predicate or a domain. It must mean the same in ten years,
so it holds ints, texts, booleans, nulls, lists and named objects; no floats and no pickles.

- A dataclass with a class attribute NAME = "laplace/1" becomes {"name": "laplace/1", field: ...}. A name with its
  version never changes meaning: a new meaning is a new version.
- A value that holds a function cannot be read back; it says what to store instead by a method `stated_record`.
- A Fraction becomes the text "p/q". A text that could be taken for one, or that starts with a backslash, is written
  with one backslash before it, so every text comes back as it was.
- `canonical` is the one spelling of a record: sorted keys, no spaces, ASCII.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.errors import ParameterError

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]

_FRACTION = re.compile(r"-?[0-9]+/[0-9]+\Z")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def record(value: object) -> Json:
    """The value as JSON that `revive` turns back into an equal value."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, str):
        return f"\\{value}" if value.startswith("\\") or _FRACTION.match(value) else value
    if isinstance(value, (tuple, list)):
        return [record(each) for each in value]
    stated = getattr(value, "stated_record", None)
    if stated is not None:
        return dict(stated())
    name = getattr(type(value), "NAME", None)
    if dataclasses.is_dataclass(value) and isinstance(name, str):
        fields = {field.name: record(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if "name" in fields:
            raise ParameterError(f"a {type(value).__name__} cannot be a record: its field `name` is the record's own")
        return {"name": name, **fields}
    raise ParameterError(f"a {type(value).__name__} cannot be part of a record")


def revive(json_value: Json, catalogue: Mapping[str, type]) -> Any:
    """The value whose record this is; classes are found by name in the catalogue."""
    if isinstance(json_value, str):
        if json_value.startswith("\\"):
            return json_value[1:]
        return Fraction(json_value) if _FRACTION.match(json_value) else json_value
    if isinstance(json_value, list):
        return tuple(revive(each, catalogue) for each in json_value)
    if isinstance(json_value, dict):
        name = json_value.get("name")
        if not isinstance(name, str) or name not in catalogue:
            raise ParameterError(f"no class of this version of discreet is called {name!r}")
        return catalogue[name](**{key: revive(each, catalogue) for key, each in json_value.items() if key != "name"})
    return json_value


def canonical(json_value: Json) -> str:
    """The one spelling of a JSON value."""
    return _ENCODER.encode(json_value)


@functools.cache
def code_version() -> str:
    """The version of discreet that runs in this process: what a ledger, a certificate or a model file was made by."""
    try:
        return importlib.metadata.version("discreet")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without duplicate keys, which are ambiguous: people read the first value, parsers keep the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ParameterError(f"the key {ascii(twice)[:70]} occurs twice")
    return members


def digest(json_value: Json) -> str:
    """SHA-256 of the canonical spelling, in hexadecimal."""
    return hashlib.sha256(canonical(json_value).encode("ascii")).hexdigest()
