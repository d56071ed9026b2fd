"""Answers as text, and back: what a ledger stores of a release so that it can return it again, byte for byte.

Texts, whole numbers below 2^63, True, False, None and lists are themselves. Everything else is an object with one key
that says what it is: {"float": "0.1"}, {"int": "0x..."}, {"fraction": "1/3"}, {"tuple": [...]}, {"dict": [[key, value],
...]}, {"array": [dtype, shape, "values"]}. Floats are written by `repr`, which every reader turns back into the same
bits. A numpy scalar becomes the Python number it holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError
from discreet.records import Json, canonical

if TYPE_CHECKING:
    import numpy as np

_SMALL = 2**63


def encode(value: object) -> str:
    """The canonical text of an answer."""
    return canonical(_pack(value))


def decode(text: str) -> Any:
    """The answer whose text this is."""
    return _unpack(json.loads(text))


def _pack(value: object) -> Json:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if -_SMALL <= value < _SMALL else {"int": hex(value)}
    if isinstance(value, float):
        return {"float": repr(float(value))}
    if isinstance(value, Fraction):
        return {"fraction": f"{value.numerator}/{value.denominator}"}
    if isinstance(value, tuple):
        return {"tuple": [_pack(each) for each in value]}
    if isinstance(value, list):
        return [_pack(each) for each in value]
    if isinstance(value, Mapping):
        return {"dict": [[_key(key), _pack(each)] for key, each in value.items()]}
    return _pack_numpy(value)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ParameterError("the keys of an answer must be texts")
    return key


def _pack_numpy(value: object) -> Json:
    import numpy as np

    if isinstance(value, np.generic):
        return _pack(value.item())
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufO":
        raise ParameterError(f"a {type(value).__name__} cannot be stored as an answer")
    flat = value.ravel().tolist()
    if value.dtype.kind == "O" and not all(type(each) is int for each in flat):
        raise ParameterError("an array of objects can be stored only if they are whole numbers")
    spell: Callable[[Any], str] = repr if value.dtype.kind == "f" else (lambda each: format(int(each), "x"))
    return {"array": [value.dtype.str.lstrip("<>=|"), list(value.shape), " ".join(map(spell, flat))]}


def _unpack(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_unpack(each) for each in stored]
    if not isinstance(stored, dict):
        return stored
    ((kind, held),) = stored.items()
    return _UNPACKERS[kind](held)


def _unpack_array(held: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    dtype, shape, values = held
    if dtype.startswith("f"):
        return np.array([float(each) for each in values.split()], dtype=dtype).reshape(shape)
    return np.array([int(each, 16) for each in values.split()], dtype=dtype).reshape(shape)


_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda held: int(held, 16),
    "float": float,
    "fraction": Fraction,
    "tuple": lambda held: tuple(_unpack(each) for each in held),
    "dict": lambda held: {key: _unpack(each) for key, each in held},
    "array": _unpack_array,
}
