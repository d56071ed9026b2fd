"""Ledger: making one, opening one, looking at it, and the owner's work. The package's docstring says what it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

from discreet.core import (
    NOTHING,
    WIDE,
    Books,
    Budget,
    BudgetExceeded,
    Caps,
    DiscreetError,
    Exact,
    Funds,
    Guarantee,
    Json,
    LedgerCorrupt,
    LedgerMismatch,
    Neighbours,
    ParameterError,
    Price,
    Share,
    Sheet,
    Shown,
    canonical,
    digest,
    exact,
    price_of,
    record,
    remaining_books,
    revive,
    spent_books,
)
from discreet.data import Column, Database, Dataset, Domain, Facts, GrowingTable, Growth, Identity
from discreet.ledger import summary
from discreet.ledger.address import Address, place_of, state_directory
from discreet.ledger.durable import os_errors
from discreet.ledger.local import FileSite, memory_parts
from discreet.ledger.opening import (
    check_identity,
    new_store,
    opening_body,
    require_first_come,
    require_first_epoch,
    sources_of,
    storable_text,
)
from discreet.ledger.place import Site
from discreet.ledger.sidecar import claim, disown, require_claimed, require_unclaimed, sidecar_path
from discreet.ledger.state import REPLY, AllowanceUse, Body, Header, State, price_from, price_record
from discreet.ledger.store import Store, new_witness, utc_now
from discreet.mechanisms import Conversation, Mechanism

_FACTS_CLASSES: dict[str, type] = {each.NAME: each for each in (Facts, Growth, Domain, Neighbours, *get_args(Column))}


class Ledger(Shown):
    """One budget for one table; the package's docstring says how it works."""

    def __init__(self, store: Store, epochs: tuple[str, ...] | None = None) -> None:
        """For `create`, `open` and `in_memory`, which are the ways to get a ledger.

        epochs  of a table that grows: what is spent and left is said of their persons (`about`); None: of everybody
        """
        if not isinstance(store, Store):
            raise ParameterError("use Ledger.open(path) for a ledger that exists, Ledger.create(...) for a new one")
        with store.reading() as state:
            self._header: Header = state.opened
        self.store, self._epochs = store, epochs
        self._known_facts: dict[str, Facts] = {}
        self._last_facts: tuple[Facts | None, tuple[Json, str]] = (None, (None, ""))

    # Making and opening.

    @staticmethod
    def create(
        path: str | os.PathLike[str] | Address,
        budget: Budget,
        table: Dataset | Database | GrowingTable | Identity,
        *,
        testing: bool = False,
        failure_share: Exact = Fraction(1, 2),
        size: int | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        ledger_id: str | None = None,
        now: Callable[[], str] = utc_now,
    ) -> Ledger:
        """A new ledger for a table, for a database, or for an identity alone (facts come with the first release).

        path           a new file, or an address: postgresql://HOST/DATABASE?ledger=NAME
        testing        accepts seeded randomness and planted mutants; the ledger says NOT PRIVATE wherever it appears
        failure_share  the part of delta that is kept for mechanisms that hold outside an event of small probability
        size           with an identity: the public number of persons, if it is to be fixed now
        """
        opening = opening_body(
            budget, table, testing=testing, failure_share=failure_share, size=size, ledger_id=ledger_id
        )
        site, sources = site_of(path, state_dir), sources_of(table)
        if site.exists():
            raise ParameterError(f"{site.where.name} exists already; Ledger.open opens a ledger")
        for source in sources:
            require_unclaimed(source)
        site.build(opening, table, now)
        made = Ledger(Store(site.parts(), now=now))
        try:
            for source in sources:
                claim(source, made.id, getattr(table, "source_epochs", {}).get(source))
        except BaseException:  # the disk failed, or another ledger was made for these rows at the same moment
            made.close()
            left = [source for source in sources if not disown(source, made.id)]
            if not left:
                site.discard()
            raise
        return made

    @staticmethod
    def in_memory(
        budget: Budget,
        table: Dataset | Database | GrowingTable | Identity,
        *,
        testing: bool = False,
        failure_share: Exact = Fraction(1, 2),
    ) -> Ledger:
        """A ledger that lives as long as this process: for one fit, for tests. It does not claim the table's file."""
        opening = opening_body(budget, table, testing=testing, failure_share=failure_share, size=None, ledger_id=None)
        for source in sources_of(table):
            if sidecar_path(source).exists():
                raise LedgerMismatch(f"{source.name} has a ledger already: open that one")
        return Ledger(new_store(memory_parts(), opening, table))

    @staticmethod
    def open(
        path: str | os.PathLike[str] | Address, *, state_dir: str | os.PathLike[str] | None = None, look: bool = False
    ) -> Ledger:
        """The ledger in this file or at this address; charges of processes that are gone are burned.

        A ledger behind its mark opens, so that it can be looked at and reconciled, but refuses to be charged.

        look  only look: nothing is written now, not even that
        """
        site = site_of(path, state_dir)
        with os_errors(f"{site.where.name} cannot be opened"):
            if not site.exists():
                raise ParameterError(f"there is no ledger at {site.where.name}")
        parts = site.parts(look=look)
        ledger = Ledger(Store(parts))
        if not look and not ledger.rolled_back() and parts.place.writable:
            ledger.store.burn_orphans()
        return ledger

    @staticmethod
    def exists(path: str | os.PathLike[str] | Address) -> bool:
        """Whether there is a ledger in this file or at this address."""
        return site_of(path, None).exists()

    def close(self) -> None:
        """Close the file; the next use opens it again. A ledger in memory is lost."""
        self.store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Looking.

    @property
    def path(self) -> Path | Address | None:
        """The ledger's file, or its address in PostgreSQL; None in memory."""
        return self.store.parts.path

    @property
    def failure_share(self) -> Fraction:
        """The part of delta that is kept for mechanisms that hold outside an event of small probability."""
        return self._header.failure_share

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
            return None if state.current_facts is None else self.facts_with(state.current_facts)

    @property
    def epochs(self) -> tuple[str, ...]:
        """The epochs of a table that grows, in their order."""
        with self.store.reading() as state:
            return () if state.epochs is None else tuple(state.epochs.own)

    def about(self, facts: Facts) -> Ledger:
        """This ledger as those see it whose rows have these facts: of a table that grows, what they have spent and left
        is what the persons of these epochs have."""
        growth = facts.growth
        return self if growth is None or not growth.apart else Ledger(self.store, growth.epochs)

    def spent(self) -> Books:
        """The sums in both books, with the caps; of a table that grows, of the persons who have paid most."""
        return self.spent_on(self._epochs)

    def spent_on(self, epochs: tuple[str, ...] | None) -> Books:
        """The same for the persons of some epochs; None: of all."""
        with self.store.reading() as state:
            return spent_books(state.spent_on(epochs), self._header.caps, self._header.order, self.budget)

    @property
    def caps(self) -> Caps:
        """The caps of both books, which never change."""
        return self._header.caps

    def remaining(self, *, allowance: str | None = None) -> Books:
        """What is left in both books, and under an allowance if one is named. `.how_many(mechanism)` counts on."""
        with self.store.reading() as state:
            spent = state.spent_on(self._epochs)
            left = remaining_books(spent, self._header.caps, self._header.order, self.facts, self.budget)
            if allowance is None:
                return left
            named = state.allowance(allowance)
            caps = self._header.caps.share(named.share)
            return left.at_most(remaining_books(named.spent, caps, self._header.order, None))

    def allowances(self) -> list[AllowanceUse]:
        """What was spent under each allowance and what is left of it, in the order in which they were made."""
        with self.store.reading() as state:
            uses, spent, delta = [], self.spent(), self.budget.delta * (1 - self.failure_share)
            for name, each in state.allowances.items():
                left = max(Fraction(0), 1 - self.remaining(allowance=name).used())
                epsilon = each.spent.epsilon(self._header.order, delta)
                uses.append(AllowanceUse(name, each.share, spent.part_of(each.spent), left, epsilon))
            return uses

    def funds(self, *, share: Share | None = None, allowance: str | None = None) -> Funds:
        """What one release may cost now, as a value; the charge decides whether it is still there.

        share      this share of what is left, in the Renyi book if anything is left there; None: all, in either book
        allowance  of what is left under this name
        """
        with self.store.reading() as state:
            self.store.check_mark(state)
            left = self.remaining(allowance=allowance)
        caps = Caps(left.renyi, left.pure or 0, left.failure) if share is None else left.share(share.part)
        return Funds(self._header.order, caps)

    def admits(
        self,
        mechanism: Mechanism | Conversation,
        *,
        facts: Facts | None = None,
        allowance: str | None = None,
        share: Share | None = None,
    ) -> bool:
        """Whether a charge for this mechanism would be admitted now. Reads no rows and spends nothing.

        share  only if the charge is also within this share of what is left, of the allowance if one is named
        """
        facts = facts or self.facts
        if facts is None:
            raise ParameterError("the ledger has no facts yet: pass facts=table.facts")
        price = self.price(mechanism.guarantee(facts))
        with self.store.reading() as state:
            self.store.check_mark(state)
            if share is not None and not price.within(self.remaining(allowance=allowance).share(share.part)):
                return False
            return state.admits(price, allowance, None if getattr(mechanism, "lasting", False) else self._epochs)

    def refusal(self, price: Price, allowance: str | None) -> BudgetExceeded:
        """The error that says what is left, of a charge with this price that is not admitted."""
        left = self.remaining(allowance=allowance)
        whose = "" if allowance is None else f" under the allowance {allowance!r}"
        return BudgetExceeded(asked=str(price), remaining=f"{left.amounts()}{whose}", fits=left.fits(price))

    def price(self, guarantee: Guarantee) -> Price:
        """What a charge with this guarantee costs here, in integers."""
        if not self.identity.counts(guarantee.neighbours):
            raise LedgerMismatch(
                f"this ledger counts {self.identity.neighbours}; the guarantee is about {guarantee.neighbours}"
            )
        return price_of(guarantee, self._header.order)

    def entries(self, *, after: int = 0) -> Iterator[Body]:
        """All entries in order, or those after one, each checked: public parameters, prices, answers; never rows."""
        return self.store.entries(after=after)

    def fold(self) -> Iterator[tuple[Body, State]]:
        """All entries in order, each with the sums after it: one State, which the next entry changes."""
        return self.store.fold()

    def length(self) -> int:
        """How many entries there are."""
        with self.store.reading() as state:
            return state.seq

    def latest(self, kind: str, *, most: int | None = None, before: int | None = None) -> list[Body]:
        """The newest entries of a kind, oldest of them first; all of them unless `most` says otherwise.

        before  only those that are older than this entry
        """
        length = self.length()
        return self.store.latest(kind, length if most is None else most, length + 1 if before is None else before)

    def entry(self, seq: int) -> Body:
        """One entry, checked against the one before it."""
        return self.store.entry(seq)

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else self.path.name
        warning = "NOT PRIVATE (testing), " if self.testing else ""
        warning += "REHEARSAL, " if self.identity.rehearsal else ""
        return f"<Ledger {where}: {warning}{self.identity.name!r}, {self.identity.neighbours}, {self.budget}>"

    def sheet(self, shown: dict[str, Any] | None = None, *, width: int = WIDE + 4) -> Sheet:
        """What is promised, spent and left, and what was asked last. shown: a `summary`; width: of the screen."""
        return summary.sheet(self, self.summary(last=summary.LAST) if shown is None else shown, width=width)

    def summary(self, *, last: int | None = None) -> dict[str, Any]:
        """The same as JSON, with this many of the newest charges and answers; None: with all of them."""
        return summary.summary(self, last=last)

    def charges(self, *, most: int | None = None, before: int | None = None) -> list[dict[str, Any]]:
        """The newest charges, or those before an entry, as a `summary` lists them."""
        return summary.charges(self, most=most, before=before)

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

    def add_epoch(self, table: GrowingTable) -> str:
        """Add the last epoch of a table that grows: its rows are all there, and never change again. Its label.

        Its persons begin with the whole budget, if nobody is in two epochs; where persons return there is one budget.
        """
        if not isinstance(table, GrowingTable) or not table.epochs:
            raise ParameterError("add_epoch takes a GrowingTable that has the new epoch as its last one")
        label, data = table.epochs[-1], table.newest()
        facts, facts_hash = self.recorded(data.facts)
        with self.store.writing() as writer:
            known = writer.state.epochs
            if known is None:
                raise LedgerMismatch("the table of this ledger does not grow: Ledger.grow declares that it does")
            if label in known.own:
                raise ParameterError(f"the ledger has the epoch {label} already")
            if table.epochs[:-1] != tuple(known.own):
                found = f"{', '.join(known.own) or 'none'}, and the table has {', '.join(table.epochs)}"
                raise LedgerMismatch(f"an epoch is added after those that the ledger has: {found}")
            check_identity(writer.state, data)
            require_first_come(writer.state, data.facts, new=1)
            # After all else that can be refused, and sidecars that are there first: a refusal leaves none behind.
            sources = sorted(table.sources, key=lambda each: not sidecar_path(each).exists())
            for source in sources if self.path is not None else ():
                claim(source, self.id, table.source_epochs[source], first=next(iter(known.own), label))
            if facts_hash not in writer.state.facts:
                writer.append("facts", {"facts": facts, "facts_hash": facts_hash})
            writer.append("epoch", {"epoch": label, "facts_hash": facts_hash, "size": data.facts.size})
        return label

    def grow(self, table: GrowingTable) -> str:
        """Declare that the table of this ledger grows from here on, by new persons: what it was is its first epoch.

        Nobody of the first epoch may have rows in a later one: these begin with the whole budget. Its label.

        table  that epoch alone: the rows that the ledger is for, in the file that it has claimed
        """
        if not isinstance(table, GrowingTable) or len(table.epochs) != 1:
            raise ParameterError("grow takes a GrowingTable of one epoch: the rows that the ledger is for")
        (label,) = table.epochs
        with self.store.writing() as writer:
            if writer.state.epochs is not None:
                raise ParameterError("the table of this ledger grows already")
            if writer.state.opened.identity.tables:
                raise ParameterError("several tables of the same persons do not grow: docs/growing.md")
            require_first_epoch(writer.state, table)
            for source in table.sources if self.path is not None else ():
                require_claimed(source, self.id)
            writer.append("grow", {"epoch": storable_text(epoch=label)})
            self._header = writer.state.opened
        return label

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
        with self.store.writing(against_mark=False) as writer:
            try:
                writer.check_mark()
            except LedgerCorrupt:
                mark = writer.readable_mark()
            else:
                return
            if mark is None and not adopt:
                raise LedgerMismatch(
                    "there is no readable mark here, so nothing shows what this ledger has spent elsewhere; "
                    "reconcile(adopt=True), or `discreet ledger reconcile --adopt`, if this is its newest copy"
                )
            writer.witness, writer.resets_mark = (mark.witness if mark else new_witness()), True
            nothing = {"proved": price_record(NOTHING), "mark_witness": None, "allowances": {}}
            writer.append("reconcile", nothing if mark is None else mark.proves(writer.state))

    def verify(self, catalogue: Mapping[str, type] | None = None) -> tuple[int, ...]:
        """Read everything again from the disk and check it; LedgerCorrupt names the entry that is wrong.

        SQLite's own checks, the chain, every column against its body, every sum and cap, the mark; with the catalogue
        also every charge: its record is revived and priced again. Returns the charges whose mechanisms the catalogue
        does not know, and which were therefore not priced again.
        """
        self.store.refold()
        unknown: list[int] = []
        prices: dict[tuple[str, str], Price | None] = {}  # each mechanism is priced once under the same facts
        for body in self.entries() if catalogue is not None else ():
            if body["kind"] == "charge":
                key = (digest(body["mechanism"]), body["facts_hash"])
                if key not in prices:
                    prices[key] = self._price_again(body, catalogue or {})
                expected, charged = prices[key], price_from(body["price"])
                if expected is None:
                    unknown.append(body["seq"])
                elif not expected.agrees(charged):
                    raise LedgerCorrupt(body["seq"], f"the price {expected}", str(charged))
        return tuple(unknown)

    def _price_again(self, body: Body, catalogue: Mapping[str, type]) -> Price | None:
        """The price of a recorded charge; None if the catalogue does not know its mechanism."""
        if not all(name in catalogue for name in _names(body["mechanism"])):
            return None
        facts = self.facts_with(body["facts_hash"])
        try:
            return self.price(revive(body["mechanism"], catalogue).guarantee(facts))
        except (DiscreetError, TypeError, AttributeError) as error:
            raise LedgerCorrupt(body["seq"], "a record that can be priced again", str(error)) from None

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

    def __reduce__(self) -> tuple[Callable[[str], Ledger], tuple[str]]:
        if self.path is None:
            raise ParameterError("a ledger in memory cannot be pickled: the copy would be a second budget")
        return partial(Ledger.open, state_dir=str(self.store.parts.state_dir)), (str(self.path),)

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
        if facts_hash not in self._known_facts:
            with self.store.reading() as state:
                body = self.store.entry(state.facts[facts_hash])
            self._known_facts[facts_hash] = revive(body["facts"], _FACTS_CLASSES)
        return self._known_facts[facts_hash]


def site_of(path: str | os.PathLike[str] | Address, state_dir: str | os.PathLike[str] | None) -> Site:
    """Where a ledger is or will be, and the directory of its mark."""
    where, marks = place_of(path), state_directory(state_dir)
    if isinstance(where, Path):
        return FileSite(where, marks)
    from discreet.ledger.postgres import PostgresSite

    return PostgresSite(where, marks)


def _redacted(body: Body) -> Body:
    """An entry without what somebody asked and who it was.

    The nonce goes too: with it, whoever guesses the rest of an entry could confirm the guess by the entry's hash.
    """
    if body["kind"] not in ("charge", "said"):
        return {key: value for key, value in body.items() if key not in ("who", "process")}
    secret = {"memo", "request", "who", "by", "process", "meaning", "question", "nonce"}
    if body.get("manner") == REPLY:  # the answer of a service has the names of columns and groups in it
        secret |= {"answer", "answer_text"}
    kept = {key: value for key, value in body.items() if key not in secret}
    if body["kind"] == "charge":
        fields = body["mechanism"].items()
        kept["mechanism"] = {key: _shallow(each) for key, each in fields if key == "name" or not _tells(each)}
    return kept


def _shallow(value: Json) -> Json:
    """A field of a mechanism without what a query says: nested records keep their names only."""
    if type(value) is dict:
        return {"name": value.get("name")}
    return list(map(_shallow, value)) if type(value) is list else value


def _tells(value: Json) -> bool:
    """Whether a field has text of its own (a column, a level, somebody's label) beside numbers and records."""
    if type(value) is list:
        return any(map(_tells, value))
    return type(value) is str and type(revive(value, {})) is not Fraction


def _names(stored: Json) -> Iterator[object]:
    """The names of a record and of all records in it."""
    if type(stored) is dict:
        yield stored.get("name")
        stored = list(stored.values())
    for each in stored if type(stored) is list else ():
        yield from _names(each)
