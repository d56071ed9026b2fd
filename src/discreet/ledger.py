"""The ledger: an append-only, hash-chained, durable record of every charge against one table of people.

    ledger = Ledger.create("people.ledger", Budget(1, 1e-6), table)     # or Ledger.open, Ledger.in_memory
    ledger.spent(), ledger.remaining(), ledger.admits(mechanism)

Creating a ledger fixes for good the relation, one Renyi order, the caps of two books (Renyi at that order, pure
epsilon) and a cap on summed failures. A charge is admitted if after adding it at least one book is within its cap and
the failures are within theirs; mechanisms may be chosen after seeing earlier answers (docs/proofs/filter.md). The
promise to the people in the table is the budget, whatever was asked and by whom.

`release` and `converse` (release.py) are the only callers of the methods under "For release.py". The order is: check
what is public, charge, make the charge durable, move the high-water mark, run, store the answer, return it. There are
no refunds. The parts:

    ledger_state.py   what the entries add up to          price.py     integers in two books
    ledger_store.py   transactions on one SQLite file     mark.py      how far the ledger had come
    secret_file.py    open conversations' thresholds      process.py   who is still running
    sidecar.py        which ledger a file belongs to      answers.py   answers as text

The table's identity is declared (name, relation, unit) and never computed from rows: a fingerprint of the rows would be
a membership test. For tables read from a file the sidecar prevents a second ledger; for frames in memory nobody can
know.
"""

from __future__ import annotations

import functools
import getpass
import importlib.metadata
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet import exact
from discreet.data import Dataset, Facts, Identity
from discreet.domain import AnyNumber, Category, Domain, Number, Vector
from discreet.errors import (
    BudgetExceeded,
    ConversationOver,
    DiscreetError,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerUnavailable,
    ParameterError,
)
from discreet.exact import Exact
from discreet.guarantee import Budget, Guarantee, Neighbours
from discreet.ledger_state import Asked, Body, Header, State, identity_record, price_from, price_record
from discreet.ledger_store import Store, Writer, utc_now
from discreet.mark import state_directory
from discreet.mechanism import Conversation, Mechanism
from discreet.price import NOTHING, Books, Price, amounts, caps_of, price_of, remaining_books, spent_books
from discreet.process import gone, this_process
from discreet.records import Json, canonical, digest, record, revive
from discreet.sidecar import claim, sidecar

_FACTS_CLASSES: dict[str, type] = {
    each.NAME: each for each in (Facts, Domain, Neighbours, Category, Number, AnyNumber, Vector)
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge: its entry, the entry's hash, its price; and the stored answer if its request was answered before."""

    entry: int
    hash: str
    price: Price
    stored: str | None = None


class Ledger:
    """One budget for one table. See the module's docstring."""

    def __init__(self, store: Store) -> None:
        """For `create`, `open` and `in_memory`, which are the ways to get a ledger."""
        with store.reading() as state:
            self._header: Header = state.opened
        self._store = store
        self._known_facts: dict[str, Facts] = {}
        self._last_facts: tuple[Facts | None, tuple[Json, str]] = (None, (None, ""))

    # Making and opening.

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        budget: Budget,
        table: Dataset | Identity,
        *,
        testing: bool = False,
        failure_share: Exact = Fraction(1, 2),
        size: int | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        ledger_id: str | None = None,
        now: Callable[[], str] = utc_now,
    ) -> Ledger:
        """A new ledger in a new file, for a table, or for its identity alone (facts come with the first release).

        testing        accepts seeded randomness and planted mutants; the ledger says NOT PRIVATE wherever it appears
        failure_share  the part of delta that is kept for mechanisms that hold outside an event of small probability
        size           with an identity: the public number of persons, if it is to be fixed now
        """
        opening = _opening(budget, table, testing=testing, failure_share=failure_share, size=size, ledger_id=ledger_id)
        store = Store(Path(os.path.abspath(path)), state_dir=state_directory(state_dir), now=now)
        store.create()
        try:
            source = _source(table)
            if source is not None:
                claim(source, opening["id"], new=True)
            return _opened(store, opening, table)
        except BaseException:
            store.discard()
            raise

    @staticmethod
    def in_memory(
        budget: Budget, table: Dataset | Identity, *, testing: bool = False, failure_share: Exact = Fraction(1, 2)
    ) -> Ledger:
        """A ledger that lives as long as this process: for one fit, for tests. It does not claim the table's file."""
        opening = _opening(budget, table, testing=testing, failure_share=failure_share, size=None, ledger_id=None)
        source = _source(table)
        if source is not None and sidecar(source).exists():
            raise LedgerMismatch(f"{source.name} has a ledger already: open that one")
        store = Store(None, state_dir=Path())
        store.create()
        return _opened(store, opening, table)

    @staticmethod
    def open(path: str | os.PathLike[str], *, state_dir: str | os.PathLike[str] | None = None) -> Ledger:
        """The ledger in this file, after checking every entry; charges of processes that are gone are burned.

        A ledger behind its mark opens, so that it can be looked at and reconciled, but refuses to be charged.
        """
        where = Path(os.path.abspath(path))
        if not where.is_file():
            raise ParameterError(f"there is no ledger at {where.name}")
        ledger = Ledger(Store(where, state_dir=state_directory(state_dir)))
        if not ledger.rolled_back():
            ledger._burn_orphans()
        return ledger

    def close(self) -> None:
        """Close the file; the next use opens it again. A ledger in memory is lost."""
        self._store.close()

    # Looking.

    @property
    def path(self) -> Path | None:
        """The ledger's file; None in memory."""
        return self._store.path

    @property
    def id(self) -> str:
        return self._header.id

    @property
    def budget(self) -> Budget:
        return self._header.budget

    @property
    def identity(self) -> Identity:
        return self._header.identity

    @property
    def testing(self) -> bool:
        """True: test randomness is accepted, and nothing released through this ledger is private."""
        return self._header.testing

    @property
    def facts(self) -> Facts | None:
        """The table's public facts as last recorded; None before the first release of a ledger made without a table."""
        with self._store.reading() as state:
            return None if state.current_facts is None else self._facts(state, state.current_facts)

    def spent(self) -> Books:
        """The sums in both books, with the caps."""
        with self._store.reading() as state:
            return spent_books(state.spent, self._header.caps, self._header.order)

    def remaining(self, *, allowance: str | None = None) -> Books:
        """What is left in both books, and under an allowance if one is named. `.how_many(mechanism)` counts on."""
        with self._store.reading() as state:
            return self._remaining(state, allowance)

    def admits(
        self, mechanism: Mechanism | Conversation, *, facts: Facts | None = None, allowance: str | None = None
    ) -> bool:
        """Whether a charge for this mechanism would be admitted now. Reads no rows and spends nothing."""
        facts = facts or self.facts
        if facts is None:
            raise ParameterError("the ledger has no facts yet: pass facts=table.facts")
        price = self.price(mechanism.guarantee(facts))
        with self._store.reading() as state:
            self._store.check_mark(state)
            return state.admits(price, allowance)

    def price(self, guarantee: Guarantee) -> Price:
        """What a charge with this guarantee costs here, in integers."""
        if guarantee.neighbours != self.identity.neighbours:
            raise LedgerMismatch(
                f"this ledger counts {self.identity.neighbours}; the guarantee is about {guarantee.neighbours}"
            )
        return price_of(guarantee, self._header.order)

    def entries(self) -> Iterator[Body]:
        """All entries in order, each checked: public parameters, prices and released answers, never rows."""
        for row, body in self._store.entries():
            yield {"seq": row.seq, "hash": row.hash.decode("ascii"), **body}

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else self.path.name
        warning = "NOT PRIVATE (testing), " if self.testing else ""
        return f"<Ledger {where}: {warning}{self.identity.name!r}, {self.identity.neighbours}, {self.budget}>"

    # The owner's work.

    def allow(self, name: str, *, share: Exact) -> None:
        """Give a name a share of every cap, for fairness among analysts; together they still cannot exceed the caps.

        Naming it again changes the share; what was spent under the name stays spent. The privacy promise is the budget.
        """
        part = exact.positive(share=share)
        if part > 1:
            raise ParameterError(f"share must be at most 1, found {share!r}")
        with self._store.writing() as writer:
            writer.append("allow", {"allowance": storable_text(name=name), "share": str(part)})

    def rolled_back(self) -> bool:
        """Whether the file is behind its high-water mark, or the mark is damaged: charges are refused then."""
        with self._store.reading() as state:
            try:
                self._store.check_mark(state)
            except LedgerCorrupt:
                return True
            return False

    def reconcile(self) -> None:
        """Accept a file that is behind its mark, counting as spent all that the mark proves. Never lowers anything."""
        if not self.rolled_back():
            return
        with self._store.writing(against_mark=False) as writer:
            mark = self._store.readable_mark(writer.state)
            writer.witness, writer.resets_mark = (mark.witness if mark else None), True
            proved = price_record(mark.spent if mark else NOTHING)
            writer.append("reconcile", {"proved": proved, "mark_witness": writer.witness})

    def verify(self, catalogue: Mapping[str, type] | None = None) -> None:
        """Read everything again from the disk and check it; LedgerCorrupt names the entry that is wrong.

        SQLite's own checks, the chain, every column against its body, every sum and cap, the mark; with the catalogue
        also every charge: its record is revived and priced again.
        """
        self._store.refold()
        for body in self.entries() if catalogue is not None else ():
            if body["kind"] == "charge":
                _check_price(body, self._facts_with(body["facts_hash"]), catalogue or {}, self._header.order)

    def export(self, *, redact: bool = True) -> Iterator[str]:
        """Every entry as a line of JSON; redacted, without memos, request ids, who asked, and what was queried."""
        warning = {"warning": "NOT PRIVATE"} if self.testing else {}
        for body in self.entries():
            yield canonical({**(_redacted(body) if redact else body), **warning})

    # For release.py.

    def check_table(self, data: Dataset) -> None:
        """LedgerMismatch unless this ledger is this table's."""
        with self._store.reading() as state:
            _check_table(state, data)

    def charge(
        self,
        mechanism: Json,
        guarantee: Guarantee,
        data: Dataset,
        *,
        mode: str,
        allowance: str | None,
        request: str | None,
        memo: str,
    ) -> Receipt:
        """Record a charge, durably, if it fits; or find the answer of an earlier charge with the same request id."""
        price, (facts, facts_hash) = self.price(guarantee), self._recorded(data.facts)
        if request is not None:
            self._burn_orphans()
        with self._store.writing() as writer:
            state = writer.state
            _check_table(state, data)
            if request is not None and request in state.requests:
                return self._replayed(state.requests[request], digest(mechanism), facts_hash)
            if not state.admits(price, allowance):
                raise self._exceeded(state, price, allowance)
            if data.source is not None:
                claim(data.source, self.id, new=False)
            if facts_hash not in state.facts:
                writer.append("facts", {"facts": facts, "facts_hash": facts_hash})
            asked = {"mode": mode, "mechanism": mechanism, "facts_hash": facts_hash, "price": price_record(price)}
            named = {"allowance": allowance, "request": request, "memo": memo}
            entry = writer.append("charge", {**asked, **named, **_provenance()})
            return Receipt(entry, state.hash, price)

    def answer(self, receipt: Receipt, text: str) -> None:
        """Store a charge's answer. If that fails nothing is released; the charge stays, and is burned later."""
        self._finish("answer", receipt, {"answer": text})

    def burn(self, receipt: Receipt, reason: str) -> None:
        """Record that a charge will never be answered. It stays spent."""
        self._finish("burn", receipt, {"reason": reason})

    def begin(self, receipt: Receipt, secret: Json) -> None:
        """Keep the secret state of a conversation that was just charged, durably."""
        with self._store.writing():
            self._store.secrets.keep(receipt.hash, secret)

    @contextmanager
    def turn(self, charge: int) -> Iterator[Turn]:
        """One turn of an open conversation; nobody else can write to the ledger meanwhile."""
        with self._store.writing() as writer:
            charge_hash = writer.state.conversations.get(charge)
            if charge_hash is None:
                raise ConversationOver("it has ended; open a new one")
            secret = self._store.secrets.get(charge_hash)
            if secret is None:
                raise ConversationOver("its secret state is not beside the ledger; open a new one")
            yield Turn(self._store, writer, charge, charge_hash, secret)

    def end(self, charge: int) -> None:
        """Close a conversation, if it is open."""
        with self._store.writing() as writer:
            charge_hash = writer.state.conversations.get(charge)
            if charge_hash is not None:
                self._store.secrets.keep(charge_hash, None)
                writer.append("close", {"charge": charge})

    def conversation(self, charge: int) -> Body:
        """The entry that charged a conversation."""
        body, _ = self._store.entry(charge)
        if body["kind"] != "charge" or body["mode"] != "conversation":
            raise ParameterError(f"entry {charge} is not the charge of a conversation")
        return body

    # Copies: a ledger is one thing, and a copy of it is itself.

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[[str, str], Ledger], tuple[str, str]]:
        if self.path is None:
            raise ParameterError("a ledger in memory cannot be pickled: the copy would be a second budget")
        return _unpickled, (str(self.path), str(self._store.state_dir))

    # Inside.

    def _finish(self, kind: str, receipt: Receipt, fields: Body) -> None:
        try:
            with self._store.writing(durable_mark=False) as writer:
                writer.append(kind, {"charge": receipt.entry, **fields})
        except DiscreetError:
            self._store.abandon(receipt.entry, receipt.hash)
            raise

    def _burn_orphans(self) -> None:
        """Burn the charges whose process is gone."""
        with self._store.reading() as state:
            orphans = {charge: found for charge, found in state.pending.items() if gone(found.process)}
        if not orphans:
            return
        with self._store.writing() as writer:
            for charge, found in orphans.items():
                if writer.state.pending.get(charge) == found:
                    writer.append(
                        "burn", {"charge": charge, "reason": "its process ended before the answer was stored"}
                    )

    def _replayed(self, asked: Asked, mechanism: str, facts: str) -> Receipt:
        if asked.mechanism != mechanism:
            raise ParameterError("this request id was used for another mechanism")
        if asked.facts != facts:
            raise ParameterError("this request id was used for a table with other facts")
        if asked.burned:
            raise ParameterError(
                "this request was charged, but its run was interrupted: use a new request id and pay again"
            )
        if asked.answer is None:
            raise LedgerUnavailable("this request is being run now, by a process that is alive: try again later")
        charge, charge_hash = self._store.entry(asked.charge)
        answer, _ = self._store.entry(asked.answer)
        return Receipt(asked.charge, charge_hash, price_from(charge["price"]), answer["answer"])

    def _remaining(self, state: State, allowance: str | None) -> Books:
        facts = None if state.current_facts is None else self._facts(state, state.current_facts)
        caps, order = self._header.caps, self._header.order
        left = remaining_books(state.spent, caps, order, facts)
        if allowance is None:
            return left
        named = state.allowance(allowance)
        return left.at_most(remaining_books(named.spent, caps.share(named.share), order, facts))

    def _exceeded(self, state: State, price: Price, allowance: str | None) -> BudgetExceeded:
        left = self._remaining(state, allowance)
        whose = "" if allowance is None else f" under the allowance {allowance!r}"
        return BudgetExceeded(
            asked=str(price), remaining=f"{amounts(left.renyi, left.pure, left.failure)}{whose}", fits=left.fits()
        )

    def _recorded(self, facts: Facts) -> tuple[Json, str]:
        """The facts' record and its hash; the last one is remembered, since a table keeps its facts."""
        known, found = self._last_facts
        if known is not facts:
            found = (record(facts), digest(record(facts)))
            self._last_facts = (facts, found)
        return found

    def _facts_with(self, facts_hash: str) -> Facts:
        with self._store.reading() as state:
            return self._facts(state, facts_hash)

    def _facts(self, state: State, facts_hash: str) -> Facts:
        if facts_hash not in self._known_facts:
            body, _ = self._store.entry(state.facts[facts_hash])
            self._known_facts[facts_hash] = revive(body["facts"], _FACTS_CLASSES)
        return self._known_facts[facts_hash]


class Turn:
    """One turn of a conversation, inside the ledger's write lock."""

    def __init__(self, store: Store, writer: Writer, charge: int, charge_hash: str, secret: Json) -> None:
        self.secret = secret
        self._store, self._writer = store, writer
        self._charge, self._hash = charge, charge_hash

    def keep(self, secret: Json) -> None:
        """The state after this turn: None ends the conversation for everybody; an equal state writes nothing."""
        if secret is None:
            self._end("top", {})
        elif canonical(secret) != canonical(self.secret):
            self._store.secrets.keep(self._hash, secret)

    def burn(self, reason: str) -> None:
        """End the conversation because its step failed."""
        self._end("burn", {"reason": reason})

    def _end(self, kind: str, fields: Body) -> None:
        self._store.secrets.keep(self._hash, None)
        self._writer.append(kind, {"charge": self._charge, **fields})


def storable_text(**named: object) -> str:
    """The one keyword argument as non-empty text that a file can hold."""
    ((name, value),) = named.items()
    found = exact.text(**named)
    try:
        found.encode("utf-8")
    except UnicodeEncodeError:
        raise ParameterError(f"{name} must be text that UTF-8 can hold, found {value!r}") from None
    return found


def _unpickled(path: str, state_dir: str) -> Ledger:
    return Ledger.open(path, state_dir=state_dir)


def _source(table: Dataset | Identity) -> Path | None:
    return None if isinstance(table, Identity) else table.source


def _opening(
    budget: Budget,
    table: Dataset | Identity,
    *,
    testing: bool,
    failure_share: Exact,
    size: int | None,
    ledger_id: str | None,
) -> Body:
    """The body of the first entry: declared things and caps, nothing that comes from rows."""
    if not isinstance(budget, Budget):
        raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}")
    share = exact.nonnegative(failure_share=failure_share)
    if share >= 1:
        raise ParameterError(f"failure_share must be below 1, found {failure_share!r}")
    identity = table if isinstance(table, Identity) else table.identity
    order, caps = caps_of(budget, share)
    fixed = exact.whole(minimum=0, size=size) if size is not None else None
    opening: Body = {
        "id": secrets.token_hex(16) if ledger_id is None else ledger_id,
        "epsilon": str(budget.epsilon),
        "delta": str(budget.delta),
        "failure_share": str(share),
        "order": None if order is None else str(order),
        "caps": {"renyi": caps.renyi, "pure": caps.pure, "failure": caps.failure},
        "identity": identity_record(identity),
        "size": fixed if identity.neighbours.replace_one else None,
        "testing": bool(testing),
        "warning": "NOT PRIVATE" if testing else None,
        "version": _version(),
    }
    return opening


def _opened(store: Store, opening: Body, table: Dataset | Identity) -> Ledger:
    """Write the first entries and hand out the ledger."""
    with store.writing(against_mark=False) as writer:
        writer.append("open", opening)
        if not isinstance(table, Identity):
            _check_table(writer.state, table)
            facts = record(table.facts)
            writer.append("facts", {"facts": facts, "facts_hash": digest(facts)})
    return Ledger(store)


def _check_table(state: State, data: Dataset) -> None:
    """LedgerMismatch unless identity, relation and (under replace-one) size are the ledger's."""
    expected, found = state.opened.identity, data.identity
    for word, ours, theirs in (
        ("the table", expected.name, found.name),
        ("the relation", str(expected.neighbours), str(found.neighbours)),
        ("the facts' relation", str(expected.neighbours), str(data.facts.neighbours)),
        ("the unit", expected.unit, found.unit),
    ):
        if ours != theirs:
            raise LedgerMismatch(f"{word} of this ledger is {ours!r}, found {theirs!r}")
    if expected.neighbours.replace_one and state.size not in (None, data.facts.size):
        raise LedgerMismatch(f"this ledger is for {state.size} persons, found {data.facts.size}: another table")


def _check_price(body: Body, facts: Facts, catalogue: Mapping[str, type], order: Fraction | None) -> None:
    """Revive a charge's mechanism and price it again; the Renyi float may differ in its last bits."""
    try:
        expected = price_of(revive(body["mechanism"], catalogue).guarantee(facts), order)
    except ParameterError as error:
        raise LedgerCorrupt(body["seq"], "a mechanism that this version of discreet knows", str(error)) from None
    found = price_from(body["price"])
    same = (expected.pure, expected.failure) == (found.pure, found.failure)
    if not same or not _nearly(expected.renyi, found.renyi):
        raise LedgerCorrupt(body["seq"], f"the price {expected}", str(found))


def _nearly(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1 + one // 10**12


def _redacted(body: Body) -> Body:
    kept = {key: value for key, value in body.items() if key not in ("memo", "request", "who", "process")}
    if body["kind"] == "charge":
        kept["mechanism"] = {key: _shallow(value) for key, value in body["mechanism"].items()}
    return kept


def _shallow(value: Json) -> Json:
    """A field of a mechanism without what a query says: nested records keep their names only."""
    if isinstance(value, dict):
        return {"name": value.get("name")}
    return [_shallow(each) for each in value] if isinstance(value, list) else value


def _provenance() -> Body:
    return {"who": _who(), "process": this_process(), "version": _version()}


@functools.cache
def _version() -> str:
    try:
        return importlib.metadata.version("discreet")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@functools.cache
def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
