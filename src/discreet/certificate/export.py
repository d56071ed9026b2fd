"""Reading what `discreet ledger export` writes: somebody's text, checked as far as it can be.

An entry's hash is of the hash before it and its whole body, so an export from which nothing was left out is checked
as a ledger is. In a redacted one the entries after a redacted entry still name its hash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet.errors import DiscreetError, LedgerCorrupt, ParameterError
from discreet.ledger.state import GENESIS, Body, Row, State, advance, chained, large, text_hash
from discreet.records import canonical


def different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, if no key stands in it twice: of such a key a person reads the first value, a program the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ParameterError(f"the key {ascii(twice)[:70]} stands there twice")
    return found


def read_export(lines: Iterable[str]) -> tuple[list[Body], bool]:
    """The entries of an export and whether nothing was left out of them; LedgerCorrupt at the first disagreement.

    An entry's hash is of the hash before it and its whole body. A redacted entry cannot be hashed again, but the entry
    after it names its hash. As long as nothing was left out, the sums are checked too.
    """
    with of_an_export():
        bodies, whole = _folded(lines)
    if not bodies or bodies[0]["kind"] != "open":
        raise ParameterError("this is no export of a ledger: `discreet ledger export` writes one")
    return bodies, whole


@contextmanager
def of_an_export() -> Iterator[None]:
    """An export is somebody's text, and may have any shape: whatever that breaks is LedgerCorrupt."""
    try:
        yield
    except DiscreetError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise LedgerCorrupt(None, "an export as `discreet ledger export` writes it", "another shape") from None


def _folded(lines: Iterable[str]) -> tuple[list[Body], bool]:
    bodies: list[Body] = []
    state, whole, last = State(), True, GENESIS
    for number, line in enumerate((line for line in lines if line.strip()), 1):
        body = _parsed(line, number)
        if body["seq"] != number or body["previous"] != last:
            raise LedgerCorrupt(number, "the entry that follows the one before it", "another: lines are missing")
        text = canonical(_hashed(body)).encode("ascii")
        same = chained(last, text) == body["hash"]
        redacted = body["kind"] in ("charge", "said") and not {"memo", "question"} & body.keys()
        if not same and not redacted:
            raise LedgerCorrupt(number, "an entry with the hash it claims", "an edited one")
        if large(body) not in (None, text_hash(str(body.get("answer_text")))):
            raise LedgerCorrupt(number, "the answer whose hash the entry has", "another or none")
        whole, last = whole and same, body["hash"]
        if whole:
            _check_numbers(body, number)
            advance(state, _row(body, text))
        bodies.append(body)
    return bodies, whole


_NUMBERS = {"open": ("epsilon", "delta", "failure_share", "order"), "allow": ("share",)}
_FRACTION = re.compile("[0-9]{1,4000}(/[0-9]{1,4000})?")


def _check_numbers(body: Body, number: int) -> None:
    """Fractions spelled as a ledger spells them, before one is made: a text such as 1e99999999 would take for ever."""
    for key in _NUMBERS.get(body["kind"], ()):
        if body[key] is not None and not _FRACTION.fullmatch(body[key]):
            raise LedgerCorrupt(number, f"{key} as whole numbers, p or p/q", "another spelling")


def _row(body: Body, text: bytes) -> Row:
    request = None if body.get("request") is None else str(body["request"]).encode("utf-8")
    return Row(
        body["seq"], body["kind"].encode("ascii"), request, body.get("charge"), text, body["hash"].encode("ascii")
    )


def _parsed(line: str, number: int) -> Body:
    try:
        body = json.loads(line, object_pairs_hook=different)
        if type(body["seq"]) is int and all(type(body[key]) is str for key in ("kind", "hash", "previous")):
            return dict(body)
    except ParameterError as twice:
        raise LedgerCorrupt(number, "every key once", str(twice)) from None
    except (ValueError, RecursionError, TypeError, KeyError):
        pass
    raise ParameterError(f"line {number} is no entry of a ledger: `discreet ledger export` writes them")


def _hashed(body: Body) -> Body:
    """What the hash is of: the body without what the export adds."""
    added = ("seq", "hash") if body["kind"] == "open" else ("seq", "hash", "warning", "answer_text")
    return {key: value for key, value in body.items() if key not in added}
