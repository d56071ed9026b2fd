"""What opening a ledger fixes, and whose ledger it is: declared things only, nothing that comes from rows."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from discreet.core import Budget, Exact, LedgerMismatch, ParameterError, caps_of, code_version, digest, exact, record
from discreet.data import Database, Dataset, Facts, GrowingTable, Identity
from discreet.ledger.place import Parts
from discreet.ledger.sidecar import sidecar_path
from discreet.ledger.state import Body, State, identity_record, price_record
from discreet.ledger.store import Store, mark_of, utc_now


def opening_body(
    budget: Budget,
    table: Dataset | Database | GrowingTable | Identity,
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
    if identity.epochs is not None and size is not None:
        raise ParameterError("a table that grows has no fixed size: each epoch brings its own")
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


def new_store(
    parts: Parts,
    opening: Body,
    table: Dataset | Database | GrowingTable | Identity,
    now: Callable[[], str] = utc_now,
) -> Store:
    """A new ledger with its first entries: what is fixed, and the facts of the table if there is one.

    The first mark is made before the entries can be found; they name it, so that a copy that is used elsewhere is known
    from the start.
    """
    store, marks = Store(parts, now=now), parts.witness(opening["id"])
    with store.writing(against_mark=False) as writer:
        if writer.state.seq:
            raise ParameterError("another program has just made a ledger of this name; Ledger.open opens it")
        writer.witness = None if marks is None else opening["id"][:16]
        writer.append("open", opening)
        for label, size, facts in getattr(table, "epoch_facts", ()):
            stored = record(facts)
            writer.append("facts", {"facts": stored, "facts_hash": digest(stored)})
            writer.append("epoch", {"epoch": label, "facts_hash": digest(stored), "size": size})
        for data in datasets_of(table):
            check_table(writer.state, data)
            facts = record(data.facts)
            writer.append("facts", {"facts": facts, "facts_hash": digest(facts)})
        if marks is not None:
            marks.write_first(mark_of(writer.state, writer.witness))
    return store


def check_table(state: State, data: Dataset) -> None:
    """LedgerMismatch unless identity, relation, (under replace-one) size and the files of an edition are the ledger's.

    A database may have got more tables since its ledger was made: its persons and the other tables are the same.
    """
    expected, facts = state.opened.identity, data.facts
    check_identity(state, data)
    if state.epochs is not None or facts.growth is not None:
        _check_epochs(state, facts)
    elif expected.neighbours.replace_one and state.size not in (None, facts.size):
        raise LedgerMismatch(
            f"this ledger is for {state.size} persons, found {facts.size}: another table. If people arrived since, "
            "declare that the table grows: docs/growing.md"
        )
    files = [] if facts.growth is not None or facts.table is not None else sources_of(data)
    new = [file for file in files if not sidecar_path(file).exists()]
    if 0 < len(new) < len(files) and digest(record(facts)) in state.facts:
        raise LedgerMismatch(
            f"the file {new[0].name!r} came to those that the ledger has of edition {facts.edition!r}: these are other "
            "rows. Declare another edition, so that no earlier answer passes for one about them"
        )


def check_identity(state: State, data: Dataset) -> None:
    """LedgerMismatch unless identity and relation are the ledger's."""
    expected, found, facts = state.opened.identity, data.identity, data.facts
    for word, ours, theirs in (
        ("the table" if not expected.tables else "the database", expected.name, found.name),
        ("the relation", str(expected.neighbours), str(found.neighbours)),
        ("the unit", expected.unit, found.unit),
        ("a row", _ROW[expected.rehearsal], _ROW[found.rehearsal]),
        ("the most epochs of a person", expected.epochs, found.epochs),
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


def _check_epochs(state: State, facts: Facts) -> None:
    """LedgerMismatch unless these are epochs that the ledger knows, as they were when they were added.

    Looks at public things only: labels, the numbers of persons under replace-one. Of epochs that were closed without a
    public number nothing can be compared: their owner keeps them as they are.
    """
    known, growth = state.epochs, facts.growth
    if known is None or growth is None:
        words = ("does not grow", "grows") if known is None else ("grows", "is declared as one that does not")
        raise LedgerMismatch(f"the table of this ledger {words[0]}, and this one {words[1]}: docs/growing.md")
    if growth.per_person != known.per_person:
        found = f"{known.per_person}, found {growth.per_person}"
        raise LedgerMismatch(f"a person of this ledger has rows in at most this many epochs: {found}")
    new = [epoch for epoch in growth.epochs if epoch not in known.own]
    if new or not growth.epochs:
        raise LedgerMismatch(f"the ledger has no epoch {', '.join(new) or 'yet'}: `ledger add` adds one")
    if growth.epochs != tuple(epoch for epoch in known.own if epoch in growth.epochs):
        raise LedgerMismatch(f"the epochs of this ledger are in the order {', '.join(known.own)}")
    if growth.apart:
        size = None if facts.size is None else sum(known.sizes[epoch] or 0 for epoch in growth.epochs)
    elif growth.epochs != tuple(known.own)[: len(growth.epochs)]:
        raise LedgerMismatch("persons return to this table: it is asked about from its first epoch on")
    else:
        size = known.sizes[growth.epochs[-1]]
    if facts.neighbours.replace_one and size != facts.size:
        raise LedgerMismatch(
            f"the epochs {', '.join(growth.epochs)} had {size} persons when they were added, found {facts.size}: a "
            "closed epoch never changes; rows that are new belong to a new epoch"
        )
    require_first_come(state, facts)


def require_first_come(state: State, facts: Facts, *, new: int = 0) -> None:
    """LedgerMismatch unless all epochs before were read, as they were when they were added: they decide who is new.

    new  how many of the last epochs the ledger does not have yet
    """
    known, growth = state.epochs, facts.growth
    assert known is not None
    assert growth is not None
    last = [*known.own].index(growth.epochs[-1]) + 1 if not new else len(known.own)
    read, expected = growth.read[: len(growth.read) - new], tuple(known.sizes.items())[:last]
    if read != expected or [epoch for epoch, _ in growth.read[-1:]] != [growth.epochs[-1]]:
        raise LedgerMismatch(
            f"who belongs to {growth.epochs[-1]} is decided by all epochs before it: the ledger has {_listed(expected)}"
            f", and {_listed(read)} was read. Closed epochs never change; make the GrowingTable of all and take over()"
        )


def _listed(epochs: Iterable[tuple[str, int | None]]) -> str:
    return ", ".join(epoch if size is None else f"{epoch} ({size} persons)" for epoch, size in epochs) or "none"


def require_first_epoch(state: State, table: GrowingTable) -> None:
    """LedgerMismatch unless this table of one epoch is the one that a ledger is for whose table did not grow so far."""
    expected, found, facts = state.opened.identity, table.identity, table.facts
    if found != replace(expected, epochs=1):
        what = f"{expected.name!r}, {expected.neighbours}, unit {expected.unit}"
        raise LedgerMismatch(f"this ledger is for {what}; found {found.name!r}, {found.neighbours}, unit {found.unit}")
    if expected.neighbours.replace_one and state.size != facts.size:
        raise LedgerMismatch(f"this ledger is for {state.size} persons, found {facts.size} in {table.epochs[0]}")


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


def sources_of(table: Dataset | Database | GrowingTable | Identity) -> tuple[Path, ...]:
    """The files that a table, or the tables of a database, were read from."""
    several = getattr(table, "sources", None)
    if several is not None:
        return tuple(several)
    source = getattr(table, "source", None)
    return () if source is None else (source,)


def datasets_of(table: Dataset | Database | GrowingTable | Identity) -> tuple[Dataset, ...]:
    """The datasets whose facts are recorded when a ledger is made: one, or each table of a database."""
    match table:
        case Identity() | GrowingTable():
            return ()
        case Database():
            return tuple(table.view(name) for name in table.tables)
    return (table,)
