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

from discreet.core import Json, ParameterError, canonical

if TYPE_CHECKING:
    import numpy as np

_SMALL = 2**63


def encode(value: object) -> str:
    """The canonical text of an answer."""
    return canonical(_pack(value))


def decode(text: str) -> Any:
    """The answer whose text this is."""
    return _unpack(json.loads(text))


def _pack(value: Any) -> Json:
    for kind, pack in _PACKERS.items():
        if isinstance(value, kind):
            return pack(value)
    import numpy as np

    if isinstance(value, np.generic):
        return _pack(value.item())
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufO":
        raise ParameterError(f"a {type(value).__name__} cannot be stored as an answer")
    flat = value.ravel().tolist()
    if value.dtype.kind == "O" and not all(type(each) is int for each in flat):
        raise ParameterError("an array of objects can be stored only if they are whole numbers")
    spelled = map(repr, flat) if value.dtype.kind == "f" else [f"{each:x}" for each in flat]
    return {"array": [value.dtype.str.lstrip("<>=|"), list(value.shape), " ".join(spelled)]}


def _pack_mapping(value: Mapping[Any, object]) -> Json:
    if not all(isinstance(key, str) for key in value):
        raise ParameterError("the keys of an answer must be texts")
    return {"dict": [[key, _pack(each)] for key, each in value.items()]}


_PACKERS: dict[Any, Callable[[Any], Json]] = {
    (bool, str, type(None)): lambda value: value,
    int: lambda value: int(value) if -_SMALL <= value < _SMALL else {"int": hex(value)},
    float: lambda value: {"float": repr(float(value))},
    Fraction: lambda value: {"fraction": f"{value.numerator}/{value.denominator}"},
    tuple: lambda value: {"tuple": list(map(_pack, value))},
    list: lambda value: list(map(_pack, value)),
    Mapping: _pack_mapping,
}


def _unpack(stored: Any) -> Any:
    if type(stored) is list:
        return list(map(_unpack, stored))
    if type(stored) is not dict:
        return stored
    ((kind, held),) = stored.items()
    return _UNPACKERS[kind](held)


def _unpack_array(held: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    dtype, shape, values = held
    spelled = values.split()
    numbers = [float(each) for each in spelled] if dtype.startswith("f") else [int(each, 16) for each in spelled]
    return np.array(numbers, dtype=dtype).reshape(shape)


_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda held: int(held, 16),
    "float": float,
    "fraction": Fraction,
    "tuple": lambda held: tuple(map(_unpack, held)),
    "dict": lambda held: {key: _unpack(each) for key, each in held},
    "array": _unpack_array,
}
