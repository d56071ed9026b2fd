"""Ledger: making one, opening one, looking at it, and the owner's work. The package's docstring says what it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from discreet import exact
from discreet.data import Dataset, Facts, Identity
from discreet.domain import AnyNumber, Bits, Category, Domain, Number, Vector, Whole
from discreet.errors import LedgerCorrupt, LedgerMismatch, LedgerUnavailable, ParameterError
from discreet.exact import Exact
from discreet.guarantee import Budget, Guarantee, Neighbours, Share
from discreet.ledger.mark import state_directory
from discreet.ledger.opening import opening_body, source_of, storable_text, write_opening
from discreet.ledger.price import NOTHING, Books, Price, price_of, remaining_books, spent_books
from discreet.ledger.sidecar import claim, sidecar
from discreet.ledger.state import Body, Header, State, price_from, price_record
from discreet.ledger.store import Store, utc_now
from discreet.mechanism import Conversation, Mechanism
from discreet.records import Json, canonical, digest, record, revive

_FACTS_CLASSES: dict[str, type] = {
    each.NAME: each for each in (Facts, Domain, Neighbours, Category, Number, AnyNumber, Vector, Bits, Whole)
}


class Ledger:
    """One budget for one table; the package's docstring says how it works."""

    def __init__(self, store: Store) -> None:
        """For `create`, `open` and `in_memory`, which are the ways to get a ledger."""
        if not isinstance(store, Store):
            raise ParameterError("use Ledger.open(path) for a ledger that exists, Ledger.create(...) for a new one")
        with store.reading() as state:
            self._header: Header = state.opened
        self.store = store
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
        opening = opening_body(
            budget, table, testing=testing, failure_share=failure_share, size=size, ledger_id=ledger_id
        )
        store = Store(Path(os.path.realpath(path)), state_dir=state_directory(state_dir), now=now)
        store.create()
        source, claimed = source_of(table), False
        try:
            store.begin()
            if source is not None:
                claim(source, opening["id"], new=True)
                claimed = True
            write_opening(store, opening, table)
            return Ledger(store)
        except BaseException:
            store.discard()
            if source is not None and claimed:
                sidecar(source).unlink(missing_ok=True)
            raise

    @staticmethod
    def in_memory(
        budget: Budget, table: Dataset | Identity, *, testing: bool = False, failure_share: Exact = Fraction(1, 2)
    ) -> Ledger:
        """A ledger that lives as long as this process: for one fit, for tests. It does not claim the table's file."""
        opening = opening_body(budget, table, testing=testing, failure_share=failure_share, size=None, ledger_id=None)
        source = source_of(table)
        if source is not None and sidecar(source).exists():
            raise LedgerMismatch(f"{source.name} has a ledger already: open that one")
        store = Store(None, state_dir=Path())
        store.begin()
        write_opening(store, opening, table)
        return Ledger(store)

    @staticmethod
    def open(
        path: str | os.PathLike[str], *, state_dir: str | os.PathLike[str] | None = None, look: bool = False
    ) -> Ledger:
        """The ledger in this file, after checking every entry; charges of processes that are gone are burned.

        A ledger behind its mark opens, so that it can be looked at and reconciled, but refuses to be charged.

        look  only look: nothing is written now, not even that
        """
        where = Path(os.path.realpath(path))
        try:
            found = where.is_file()
        except OSError as error:
            raise LedgerUnavailable(f"{where.name} cannot be opened: {error.strerror}") from None
        if not found:
            raise ParameterError(f"there is no ledger at {where.name}")
        ledger = Ledger(Store(where, state_dir=state_directory(state_dir)))
        if not look and not ledger.rolled_back():
            ledger.store.burn_orphans()
        return ledger

    def close(self) -> None:
        """Close the file; the next use opens it again. A ledger in memory is lost."""
        self.store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Looking.

    @property
    def path(self) -> Path | None:
        """The ledger's file; None in memory."""
        return self.store.path

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
        with self.store.reading() as state:
            return None if state.current_facts is None else self._facts(state, state.current_facts)

    def spent(self) -> Books:
        """The sums in both books, with the caps."""
        with self.store.reading() as state:
            return spent_books(state.spent, self._header.caps, self._header.order)

    def remaining(self, *, allowance: str | None = None) -> Books:
        """What is left in both books, and under an allowance if one is named. `.how_many(mechanism)` counts on."""
        with self.store.reading() as state:
            facts = None if state.current_facts is None else self._facts(state, state.current_facts)
            left = remaining_books(state.spent, self._header.caps, self._header.order, facts)
            if allowance is None:
                return left
            named = state.allowance(allowance)
            caps = self._header.caps.share(named.share)
            return left.at_most(remaining_books(named.spent, caps, self._header.order, facts))

    def admits(
        self,
        mechanism: Mechanism | Conversation,
        *,
        facts: Facts | None = None,
        allowance: str | None = None,
        share: Share | None = None,
    ) -> bool:
        """Whether a charge for this mechanism would be admitted now. Reads no rows and spends nothing.

        share  only if the charge is also within this share of what is left
        """
        facts = facts or self.facts
        if facts is None:
            raise ParameterError("the ledger has no facts yet: pass facts=table.facts")
        price = self.price(mechanism.guarantee(facts))
        with self.store.reading() as state:
            self.store.check_mark(state)
            if share is not None:
                left = remaining_books(state.spent, self._header.caps, self._header.order, None)
                if not price.within(left.share(share.part)):
                    return False
            return state.admits(price, allowance)

    def price(self, guarantee: Guarantee) -> Price:
        """What a charge with this guarantee costs here, in integers."""
        if guarantee.neighbours != self.identity.neighbours:
            raise LedgerMismatch(
                f"this ledger counts {self.identity.neighbours}; the guarantee is about {guarantee.neighbours}"
            )
        return price_of(guarantee, self._header.order)

    def entries(self, *, after: int = 0) -> Iterator[Body]:
        """All entries in order, or those after one, each checked: public parameters, prices, answers; never rows."""
        for row, body in self.store.entries_after(after) if after else self.store.entries():
            yield {"seq": row.seq, "hash": row.hash.decode("ascii"), **body}

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else self.path.name
        warning = "NOT PRIVATE (testing), " if self.testing else ""
        warning += "REHEARSAL, " if self.identity.rehearsal else ""
        return f"<Ledger {where}: {warning}{self.identity.name!r}, {self.identity.neighbours}, {self.budget}>"

    # The owner's work.

    def allow(self, name: str, *, share: Exact) -> None:
        """Give a name a share of every cap, for fairness among analysts; together they still cannot exceed the caps.

        Naming it again changes the share; what was spent under the name stays spent. The privacy promise is the budget.
        """
        part = exact.writable(share=exact.positive(share=share))
        if part > 1:
            raise ParameterError(f"share must be at most 1, found {share!r}")
        with self.store.writing() as writer:
            writer.append("allow", {"allowance": storable_text(name=name), "share": str(part)})

    def rolled_back(self) -> bool:
        """Whether the file is behind its high-water mark, or the mark is damaged: charges are refused then."""
        with self.store.reading() as state:
            try:
                self.store.check_mark(state)
            except LedgerCorrupt:
                return True
            return False

    def reconcile(self, *, adopt: bool = False) -> None:
        """Accept a file that its mark contradicts, counting as spent all that the mark proves. Never lowers anything.

        All open conversations end. A mark that is damaged or not here proves nothing: then `adopt=True` says that this
        is the newest copy of the ledger, which nobody but its owner can know.
        """
        if not self.rolled_back():
            return
        with self.store.writing(against_mark=False) as writer:
            mark = self.store.readable_mark(writer)
            if mark is None and not adopt:
                raise LedgerMismatch(
                    "there is no readable mark here, so nothing shows what this ledger has spent elsewhere; "
                    "reconcile(adopt=True), or `discreet ledger reconcile --adopt`, if this is its newest copy"
                )
            writer.witness, writer.resets_mark = (mark.witness if mark else None), True
            proved = price_record(mark.spent if mark else NOTHING)
            writer.append("reconcile", {"proved": proved, "mark_witness": writer.witness})

    def verify(self, catalogue: Mapping[str, type] | None = None) -> tuple[int, ...]:
        """Read everything again from the disk and check it; LedgerCorrupt names the entry that is wrong.

        SQLite's own checks, the chain, every column against its body, every sum and cap, the mark; with the catalogue
        also every charge: its record is revived and priced again. Returns the charges whose mechanisms the catalogue
        does not know, and which were therefore not priced again.
        """
        self.store.refold()
        unknown = []
        for body in self.entries() if catalogue is not None else ():
            if body["kind"] == "charge":
                assert catalogue is not None
                if all(name in catalogue for name in _names(body["mechanism"])):
                    _check_price(body, self.facts_with(body["facts_hash"]), catalogue, self._header.order)
                else:
                    unknown.append(body["seq"])
        return tuple(unknown)

    def export(self, *, redact: bool = True) -> Iterator[str]:
        """Every entry as a line of JSON; redacted, without memos, request ids, who asked, and what was queried."""
        warning = {"warning": "NOT PRIVATE"} if self.testing else {}
        for body in self.entries():
            yield canonical({**(_redacted(body) if redact else body), **warning})

    # Copies: a ledger is one thing, and a copy of it is itself.

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[[str, str], Ledger], tuple[str, str]]:
        if self.path is None:
            raise ParameterError("a ledger in memory cannot be pickled: the copy would be a second budget")
        return _unpickled, (str(self.path), str(self.store.state_dir))

    # Facts.

    def recorded(self, facts: Facts) -> tuple[Json, str]:
        """The facts' record and its hash; the last one is remembered, since a table keeps its facts."""
        known, found = self._last_facts
        if known is not facts:
            found = (record(facts), digest(record(facts)))
            self._last_facts = (facts, found)
        return found

    def facts_with(self, facts_hash: str) -> Facts:
        """The facts that an entry names by their hash."""
        with self.store.reading() as state:
            return self._facts(state, facts_hash)

    def _facts(self, state: State, facts_hash: str) -> Facts:
        if facts_hash not in self._known_facts:
            body, _ = self.store.entry(state.facts[facts_hash])
            self._known_facts[facts_hash] = revive(body["facts"], _FACTS_CLASSES)
        return self._known_facts[facts_hash]


def _unpickled(path: str, state_dir: str) -> Ledger:
    return Ledger.open(path, state_dir=state_dir)


def _check_price(body: Body, facts: Facts, catalogue: Mapping[str, type], order: Fraction | None) -> None:
    """Revive a charge's mechanism and price it again; the Renyi float may differ in its last bits."""
    try:
        expected = price_of(revive(body["mechanism"], catalogue).guarantee(facts), order)
    except (ParameterError, TypeError, AttributeError) as error:
        raise LedgerCorrupt(body["seq"], "a record that can be priced again", str(error)) from None
    found = price_from(body["price"])
    same = (expected.pure, expected.failure) == (found.pure, found.failure)
    if not same or not _nearly(expected.renyi, found.renyi):
        raise LedgerCorrupt(body["seq"], f"the price {expected}", str(found))


def _nearly(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1 + one // 10**12


def _redacted(body: Body) -> Body:
    """An entry without what somebody asked and who it was.

    The nonce goes too: with it, whoever guesses the rest of an entry could confirm the guess by the entry's hash.
    """
    if body["kind"] not in ("charge", "said"):
        return {key: value for key, value in body.items() if key not in ("who", "process")}
    secret = ("memo", "request", "who", "process", "meaning", "question", "nonce")
    kept = {key: value for key, value in body.items() if key not in secret}
    if body["kind"] == "charge":
        fields = body["mechanism"].items()
        kept["mechanism"] = {key: _shallow(each) for key, each in fields if key == "name" or not _tells(each)}
    return kept


def _shallow(value: Json) -> Json:
    """A field of a mechanism without what a query says: nested records keep their names only."""
    if isinstance(value, dict):
        return {"name": value.get("name")}
    return [_shallow(each) for each in value] if isinstance(value, list) else value


def _tells(value: Json) -> bool:
    """Whether a field has text of its own (a column, a level, somebody's label) beside numbers and records."""
    if isinstance(value, list):
        return any(map(_tells, value))
    return isinstance(value, str) and not isinstance(revive(value, {}), Fraction)


def _names(stored: Json) -> Iterator[object]:
    """The names of a record and of all records in it."""
    if isinstance(stored, dict):
        yield stored.get("name")
    for each in stored.values() if isinstance(stored, dict) else stored if isinstance(stored, list) else ():
        yield from _names(each)
