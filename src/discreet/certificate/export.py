"""Reading what `discreet ledger export` writes: a foreign text, checked as far as it can be.

An entry's hash is of the hash before it and its whole body, so an export from which nothing was left out is checked
as a ledger is. In a redacted one the entries after a redacted entry still name its hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from discreet.core import DiscreetError, LedgerCorrupt, ParameterError, canonical, unique_keys
from discreet.ledger.state import GENESIS, Body, State, advance, chained, large, row_of, text_hash


@contextmanager
def shape_errors() -> Iterator[None]:
    """An export and a certificate are foreign texts of any shape: whatever that breaks is LedgerCorrupt."""
    try:
        yield
    except DiscreetError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise LedgerCorrupt(None, "a text as `discreet ledger` writes it", "another shape") from None


def read_export(lines: Iterable[str]) -> tuple[list[Body], bool]:
    """The entries of an export and whether nothing was left out of them; LedgerCorrupt at the first disagreement.

    An entry's hash is of the hash before it and its whole body. A redacted entry cannot be hashed again, but the entry
    after it names its hash. As long as nothing was left out, the sums are checked too.
    """
    bodies: list[Body] = []
    state, whole, last = State(), True, GENESIS
    with shape_errors():
        for number, line in enumerate((line for line in lines if line.strip()), 1):
            try:
                body = json.loads(line, object_pairs_hook=unique_keys)
                texts = [body[key] for key in ("kind", "hash", "previous")]
                entry = type(body["seq"]) is int and all(type(each) is str for each in texts)
            except ParameterError as twice:
                raise LedgerCorrupt(number, "every key once", str(twice)) from None
            except (ValueError, RecursionError, TypeError, KeyError):
                entry = False
            if not entry:
                raise ParameterError(f"line {number} is no entry of a ledger: `discreet ledger export` writes them")
            if body["seq"] != number or body["previous"] != last:
                raise LedgerCorrupt(number, "the entry that follows the one before it", "another: lines are missing")
            added = ("seq", "hash") if body["kind"] == "open" else ("seq", "hash", "warning", "answer_text")
            written = {key: value for key, value in body.items() if key not in added}
            same = chained(last, canonical(written).encode("ascii")) == body["hash"]
            redacted = body["kind"] in ("charge", "said") and not {"memo", "question"} & body.keys()
            if not same and not redacted:
                raise LedgerCorrupt(number, "an entry with the hash it claims", "an edited one")
            if large(body) not in (None, text_hash(str(body.get("answer_text")))):
                raise LedgerCorrupt(number, "the answer whose hash the entry has", "another or none")
            whole, last = whole and same, body["hash"]
            if whole:
                advance(state, row_of(state, written))
            bodies.append(body)
    if not bodies or bodies[0]["kind"] != "open":
        raise ParameterError("this is no export of a ledger: `discreet ledger export` writes one")
    return bodies, whole
