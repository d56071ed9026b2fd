"""Fitted models as files: JSON that anybody can read and that runs no code.

    {"format": "discreet-model/1", "model": "logistic", "discreet": "0.2.0",
     "state": {...}, "digest": "...", "privacy_certificate": {...}, ...}

`state` is what predicting takes, to the last bit, and what is promised; `digest` is of the state, and finds damage. The
certificate says what the release promises to the people in the table. Whatever else stands there is for readers.

Reading trusts nothing: a file of another format, a key that is missing or one too many, a number that is not finite, an
array of another shape, a record of a class that is no declaration or rule is a ParameterError, and nothing is made.
A file says what somebody wrote in it. Whether a model is the one that was released, its certificate and the ledger say.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from discreet.certificate import Certificate
from discreet.core import (
    Budget,
    DiscreetError,
    Floats,
    Guarantee,
    Neighbours,
    ParameterError,
    Share,
    code_version,
    record,
    revive,
    unique_keys,
)
from discreet.data import Domain
from discreet.mechanisms import Promise

FORMAT = "discreet-model/1"
_LARGEST = 2**28  # bytes
_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(32|64)|<U[1-9][0-9]{0,4}|object")
_LABELS = (str, int, float, bool)
_HASH = re.compile(r"[0-9a-f]{64}")

State = dict[str, Any]


def pretty(value: Any, indent: str = "") -> str:
    """JSON for people: what fits on a line is on one, and so is every list of texts."""
    flat, inner = json.dumps(value, ensure_ascii=False, allow_nan=False), indent + "  "
    if type(value) is dict and len(indent) + len(flat) > _LINE:
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {pretty(each, inner)}" for key, each in value.items()]
    elif type(value) is list and len(indent) + len(flat) > _LINE and {dict, list} & set(map(type, value)):
        lines = [pretty(each, inner) for each in value]
    elif type(value) is list and {*map(type, value)} <= {int, float, type(None)}:
        return textwrap.fill(flat, _LINE - len(indent), subsequent_indent=f"{indent} ")
    else:
        return flat
    return flat[0] + "\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}{flat[-1]}"


_LINE = 100


# Whole files.


def whole(kind: str, state: State, certificate: Certificate) -> dict[str, Any]:
    """The members of a file that loading reads."""
    return {
        "format": FORMAT,
        "model": kind,
        "discreet": code_version(),
        "state": state,
        "digest": _digest(state),
        "privacy_certificate": certificate.record,
    }


def _digest(state: State) -> str:
    spelled = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(spelled.encode("ascii")).hexdigest()


def read(path: str | os.PathLike[str]) -> tuple[str, State, Certificate]:
    """The kind of the model in a file, its state and its certificate."""
    where = Path(path)
    return read_members(_members(where), where.name)


def read_members(found: dict[str, Any], name: str) -> tuple[str, State, Certificate]:
    """The same, of the members of a file by this name."""
    if found.get("format") != FORMAT:
        shown = ascii(found.get("format"))[:60]
        raise ParameterError(f"{name} is no model: expected the format {FORMAT!r}, found {shown}")
    kind, state, said = found.get("model"), found.get("state"), found.get("privacy_certificate")
    if type(kind) is not str or type(state) is not dict or type(said) is not dict:
        raise ParameterError(f"{name} is no model: model, state or privacy_certificate are missing")
    try:
        damaged = found.get("digest") != _digest(state)
    except (ValueError, RecursionError):
        damaged = True
    if damaged:
        raise ParameterError(f"{name} is damaged: its state is not what its digest says")
    try:
        return kind, state, Certificate.read(json.dumps(said))
    except DiscreetError as error:
        raise ParameterError(f"{name}: {error}") from None


def _members(where: Path) -> dict[str, Any]:
    if not os.path.isfile(where):  # False of a name that no file can have, too
        raise ParameterError(f"there is no model at {where.name!a}")
    if where.stat().st_size > _LARGEST:
        raise ParameterError(f"{where.name} has more than {_LARGEST:,} bytes: it is no model")
    try:
        written = where.read_text(encoding="utf-8")
        found = json.loads(written, object_pairs_hook=unique_keys, parse_constant=_refuse_constant)
    except ParameterError as error:
        raise ParameterError(f"{where.name} is no model: {error}") from None
    except (OSError, ValueError, RecursionError):
        raise ParameterError(f"{where.name!a} is no model: it is not JSON") from None
    if type(found) is not dict:
        raise ParameterError(f"{where.name} is no model: expected an object, found a {type(found).__name__}")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


def ordered(members: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """A file with its format first, then what people read, then the rest."""
    first = {key: members[key] for key in ("format", "model", "discreet")}
    return {**first, **words, **members}


def write(path: str | os.PathLike[str], members: dict[str, Any], *, force: bool) -> None:
    """Write a new file; with force also over an old one."""
    try:
        with Path(path).open("w" if force else "x", encoding="utf-8") as file:
            file.write(pretty(members) + "\n")
    except FileExistsError:
        raise ParameterError(f"{Path(path).name} exists already: choose another name, or force=True") from None
    except OSError as error:
        raise ParameterError(f"{os.fspath(path)!r} cannot be written: {error.strerror}") from None


# Parts of a state.


def wrong(what: str, found: object) -> NoReturn:
    raise ParameterError(f"the model's {what} is not as expected, found {ascii(found)[:60]}")


def keys(state: object, *names: str) -> State:
    """An object with exactly these members."""
    if not isinstance(state, dict) or set(state) != set(names):
        wrong(f"state, of the members {', '.join(names)},", sorted(state) if isinstance(state, dict) else state)
    return state


def floats(found: object, *shape: int | None) -> Floats:
    """An array of finite numbers of this shape; None is any length."""
    try:
        made = np.array(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        wrong("numbers", found)
    fits = made.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, made.shape, strict=True))
    if not fits or not np.isfinite(made).all() or not _plain_numbers(found):
        wrong(f"numbers, of the shape {shape},", found)
    return made


def _plain_numbers(found: object) -> bool:
    """Whether there are numbers and nothing else: numpy reads texts and booleans too."""
    if isinstance(found, list):
        return all(map(_plain_numbers, found))
    return type(found) in (int, float)


def number(found: object) -> float:
    return float(floats(found))


def count(found: object, least: int = 0) -> int:
    if type(found) is not int or not least <= found < 2**62:
        wrong("whole number", found)
    return found


def text(found: object) -> str:
    if not isinstance(found, str):
        wrong("text", found)
    return found


def optional(found: object, read: Callable[[Any], Any]) -> Any:
    return None if found is None else read(found)


def many(found: object, read: Callable[[Any], Any]) -> list[Any]:
    if not isinstance(found, list):
        wrong("list", found)
    return [read(each) for each in found]


def labels(classes: npt.NDArray[Any]) -> State:
    """Classes with their type, so that predictions have it again."""
    return {"dtype": str(classes.dtype), "labels": classes.tolist()}


def labels_from(found: object) -> npt.NDArray[Any]:
    state = keys(found, "dtype", "labels")
    listed = many(state["labels"], lambda each: each)
    if not _DTYPE.fullmatch(text(state["dtype"])) or any(type(each) not in _LABELS for each in listed):
        wrong("classes", found)
    try:
        made = np.array(listed, dtype=np.dtype(state["dtype"]))
    except (TypeError, ValueError, OverflowError):
        wrong("classes", found)
    if made.tolist() != listed or not 2 <= len(set(listed)) == len(listed) or made.dtype != state["dtype"]:
        wrong("classes", found)
    return made


def revived(found: object, kinds: Mapping[str, type], kind: type) -> Any:
    """The value of this class whose record this is; its parts are of these classes."""
    try:
        made = revive(found, kinds)  # type: ignore[arg-type]
    except (DiscreetError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        wrong(kind.__name__.lower(), found)
    if not isinstance(made, kind):
        wrong(kind.__name__.lower(), found)
    return made


def declarations() -> dict[str, type]:
    """The classes that declare columns."""
    from discreet.catalogue import CATALOGUE

    return {name: kind for name, kind in CATALOGUE.items() if kind.__module__.startswith("discreet.data.")}


def domain_from(found: object) -> Domain:
    made: Domain = revived(found, declarations(), Domain)
    return made


def public(value: object) -> Any:
    """A parameter as JSON, or None if it is no plain value; `parameter_from` reads it."""
    match value:
        case None | bool() | int() | str() | Fraction():
            return record(value)
        case float() | np.floating():
            return {"float": repr(float(value))}
        case np.generic():
            return public(value.item())
        case Share(part=part):
            return {"share": str(part)}
        case list() | tuple():
            return [public(each) for each in value]
    return None


def parameter_from(found: object) -> Any:
    if isinstance(found, list):
        return [parameter_from(each) for each in found]
    if isinstance(found, dict):
        return _odd_parameter(found)
    return revived(found, {}, object)


def _odd_parameter(found: dict[str, Any]) -> Any:
    try:
        if set(found) == {"float"} and math.isfinite(value := float(text(found["float"]))):
            return value
        if set(found) == {"share"}:
            return Share(text(found["share"]))
    except ValueError:
        pass
    wrong("parameter", found)


# What is promised.


def promise(made: Promise) -> State:
    return asdict(made)


def promise_from(found: object) -> Promise:
    names = ("bound", "theorem", "reason", "beta", "per", "condition", "best_of", "measure")
    state = keys(found, *names)
    texts = {name: text(state[name]) for name in names if name not in ("bound", "beta")}
    return Promise(bound=optional(state["bound"], number), beta=optional(state["beta"], number), **texts)  # type: ignore[arg-type]


def guarantee(made: Guarantee, budget: Budget, scope: str, entry: int, entry_hash: str) -> State:
    """What a fit promises; an infinite number of the curve is null."""
    return {
        "neighbours": record(made.neighbours),
        "renyi": [None if each == math.inf else each for each in made.renyi],
        "pure": record(made.pure),
        "failure": record(made.failure),
        "gaussian": made.gaussian,
        "budget": record(budget),
        "scope": scope,
        "entry": entry,
        "hash": entry_hash,
    }


def guarantee_from(found: object) -> tuple[Guarantee, Budget, str, int, str]:
    names = ("neighbours", "renyi", "pure", "failure", "gaussian", "budget", "scope", "entry", "hash")
    state = keys(found, *names)
    neighbours = revived(state["neighbours"], {Neighbours.NAME: Neighbours}, Neighbours)
    budget = revived(state["budget"], {Budget.NAME: Budget}, Budget)
    curve = tuple(math.inf if each is None else number(each) for each in many(state["renyi"], lambda each: each))
    pure = optional(state["pure"], lambda each: revived(each, {}, Fraction))
    failure = revived(state["failure"], {}, Fraction)
    if not _HASH.fullmatch(text(state["hash"])):
        wrong("hash", state["hash"])
    try:
        made = Guarantee(neighbours, curve, pure, failure, optional(state["gaussian"], number))
    except DiscreetError:
        wrong("guarantee", state["renyi"])
    return made, budget, text(state["scope"]), count(state["entry"], 1), state["hash"]
