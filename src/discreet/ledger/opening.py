"""What opening a ledger fixes, and whose ledger it is: declared things only, nothing that comes from rows."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from discreet.core import Budget, Exact, LedgerMismatch, ParameterError, caps_of, digest, exact, record
from discreet.data import Database, Dataset, Identity
from discreet.ledger.mark import MarkFile
from discreet.ledger.process import code_version
from discreet.ledger.state import Body, State, identity_record, price_record
from discreet.ledger.store import Store, mark_of


def opening_body(
    budget: Budget,
    table: Dataset | Database | Identity,
    *,
    testing: bool,
    failure_share: Exact,
    size: int | None,
    ledger_id: str | None,
) -> Body:
    """The body of the first entry: declared things and caps, nothing that comes from rows."""
    if not isinstance(budget, Budget):
        raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}")
    exact.writable(epsilon=budget.epsilon)
    exact.writable(delta=budget.delta)
    share = exact.writable(failure_share=exact.nonnegative(failure_share=failure_share))
    if share >= 1:
        raise ParameterError(f"failure_share must be below 1, found {failure_share!r}")
    identity = table if isinstance(table, Identity) else table.identity
    if size is not None and not (isinstance(table, Identity) and identity.neighbours.replace_one):
        raise ParameterError("size is given only with an identity under replace-one; a table brings its own")
    if ledger_id is not None and not testing:
        raise ParameterError(
            "ledger_id is for testing ledgers: a second ledger of the same id would pass for the first"
        )
    if ledger_id is not None and not re.fullmatch("[0-9a-f]{32}", ledger_id):
        raise ParameterError(f"ledger_id must be 32 hexadecimal digits, found {ledger_id!r}")
    order, caps = caps_of(budget, share)
    return {
        "id": secrets.token_hex(16) if ledger_id is None else ledger_id,
        "epsilon": str(budget.epsilon),
        "delta": str(budget.delta),
        "failure_share": str(share),
        "order": None if order is None else str(order),
        "caps": price_record(caps),
        "identity": identity_record(identity),
        "size": None if size is None else exact.whole(minimum=0, size=size),
        "testing": bool(testing),
        "warning": "NOT PRIVATE" if testing else None,
        "version": code_version(),
    }


def write_opening(store: Store, opening: Body, table: Dataset | Database | Identity, *, marks: MarkFile | None) -> None:
    """Write the first entries: what is fixed, and the facts of the table if there is one.

    marks  where the first mark goes, before the entries can be found; they name it, so that a copy that is used
           elsewhere is known from the start
    """
    with store.writing(against_mark=False) as writer:
        if writer.state.seq:
            raise ParameterError("another program has just made a ledger of this name; Ledger.open opens it")
        writer.witness = None if marks is None else opening["id"][:16]
        writer.append("open", opening)
        for data in datasets_of(table):
            check_table(writer.state, data)
            facts = record(data.facts)
            writer.append("facts", {"facts": facts, "facts_hash": digest(facts)})
        if marks is not None:
            marks.write_first(mark_of(writer.state, writer.witness))


def check_table(state: State, data: Dataset) -> None:
    """LedgerMismatch unless identity, relation and (under replace-one) size are the ledger's.

    A database may have got more tables since its ledger was made: its persons and the other tables are the same.
    """
    expected, found, facts = state.opened.identity, data.identity, data.facts
    for word, ours, theirs in (
        ("the table" if not expected.tables else "the database", expected.name, found.name),
        ("the relation", str(expected.neighbours), str(found.neighbours)),
        ("the unit", expected.unit, found.unit),
        ("a row", _ROW[expected.rehearsal], _ROW[found.rehearsal]),
    ):
        if ours != theirs:
            raise LedgerMismatch(f"{word} of this ledger is {ours!r}, found {theirs!r}")
    if bool(expected.tables) != (facts.table is not None) or bool(expected.tables) != bool(found.tables):
        asked = "ask about a view of its database" if expected.tables else "it is for one table"
        raise LedgerMismatch(f"this ledger is for {_WHAT[bool(expected.tables)]}: {asked}")
    for name, relation in expected.tables:
        if dict(found.tables).get(name) != relation:
            raise LedgerMismatch(f"the table {name!r} of this ledger has {relation}, and the database has not")
    if not found.counts(facts.neighbours):
        raise LedgerMismatch(f"the facts' relation of this ledger is {expected.neighbours}, found {facts.neighbours}")
    if expected.neighbours.replace_one and state.size not in (None, facts.size):
        raise LedgerMismatch(f"this ledger is for {state.size} persons, found {facts.size}: another table")


_WHAT = {True: "several tables of the same persons", False: "one table"}
_ROW = {True: "made up for a rehearsal", False: "about a real person"}
LONGEST_NAME = 200
"""Characters of a request id or of an allowance's name."""
LONGEST_MEMO = 1_000
"""Characters of a memo."""


def storable_text(most: int = LONGEST_NAME, **named: object) -> str:
    """The one keyword argument as non-empty text of at most this many characters that a file can hold."""
    ((name, value),) = named.items()
    found = exact.text(**named)
    if len(found) > most:
        raise ParameterError(f"{name} must be at most {most:,} characters long, found {len(found):,}")
    try:
        found.encode("utf-8")
    except UnicodeEncodeError:
        raise ParameterError(f"{name} must be text that UTF-8 can hold, found {value!r}") from None
    return found


def sources_of(table: Dataset | Database | Identity) -> tuple[Path, ...]:
    """The files that a table, or the tables of a database, were read from."""
    several = getattr(table, "sources", None)
    if several is not None:
        return tuple(several)
    source = getattr(table, "source", None)
    return () if source is None else (source,)


def datasets_of(table: Dataset | Database | Identity) -> tuple[Dataset, ...]:
    """The datasets whose facts are recorded when a ledger is made: one, or each table of a database."""
    match table:
        case Identity():
            return ()
        case Database():
            return tuple(table.view(name) for name in table.tables)
    return (table,)
