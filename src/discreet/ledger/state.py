"""What a ledger's entries add up to: one function that folds them, and recomputes everything it reads.

An entry is a row (seq, kind, request, charge, body, hash). The body is canonical JSON and holds everything; the other
columns repeat parts of it. hash = SHA-256(hash of the entry before + body), so an entry vouches for all entries before
it. The kinds:

    open       the ledger's id, budget, failure share, order, caps, identity of the table, size if public, testing flag
    facts      the public facts of the table, and their hash
    allow      a named share of every cap
    charge     a mechanism's record, the facts' hash, its price in both books; mode "release" or "conversation"
    answer     the released value of a charge
    burn       a charge that will never be answered; it stays spent
    top        a conversation's last answer was given
    close      a conversation was ended by its owner
    step       an answer of a conversation that answers step by step: number, what was asked, answer
    epoch      of a table that grows: an epoch was added, with the facts of its rows
    grow       the table of this ledger grows from here on: what it was so far is its first epoch
    said       an answer as an analyst got it, made of what was released before; it costs nothing
    reconcile  raises what counts as spent to at least what a high-water mark proves, and ends all conversations
    fold       the digest of the state that all entries before it add up to: `folded` reads a stored copy of that state

`advance(state, row)` is the only way a state changes. It is deterministic, looks at nothing but its arguments, and
raises LedgerCorrupt with the entry's number at the first disagreement: a broken chain, a column that contradicts its
body, a cap that does not follow from the budget, a charge that was not admissible, an answer to no charge.

A stored copy of the state, bound to a fold entry by its digest, saves reading a long ledger from its start. It is a
cache: `verify` folds everything again and compares every digest on the way. Request ids are not in it; they are looked
up where the entries lie.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.core import NOTHING, Budget, Caps, LedgerCorrupt, Neighbours, ParameterError, Price, canonical, digest
from discreet.data import Identity

GENESIS = "0" * 64
REPLY = "service/1"
"""The manner of a saying that is the reply of a service to one request, kept so that the same request gets it again."""
Body = dict[str, Any]


class Row(NamedTuple):
    """One entry as it is stored; bytes, because a damaged file may hold anything."""

    seq: int
    kind: bytes
    request: bytes | None
    charge: int | None
    body: bytes
    hash: bytes

    @property
    def hash_text(self) -> str:
        return printable(self.hash)


@dataclass(frozen=True, slots=True)
class Header:
    """What opening a ledger fixed."""

    id: str
    budget: Budget
    failure_share: Fraction
    order: Fraction | None
    caps: Caps
    identity: Identity
    testing: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """A charge that is being run: by which process, and the hash of its entry."""

    process: Body
    hash: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """A named share of every cap, and what was spent under that name."""

    share: Fraction
    spent: Price = NOTHING


@dataclass(frozen=True, slots=True)
class AllowanceUse:
    """A name's share of the budget.

    part     what was spent under the name, as a part of the whole budget; None if it has no price in the book that
             decides
    left     what may still be spent under the name, as a part of the whole budget: no more than the ledger has left
    epsilon  what the ledger's books prove of the releases under this name together, at the ledger's delta: at most
             this. One order of the Renyi book proves much for much that was spent, and little for little. None: nothing
    """

    name: str
    share: Fraction
    part: Fraction | None
    left: Fraction
    epsilon: float | None

    @property
    def at_most(self) -> str:
        """The epsilon with three digits, rounded up; empty if there is none, or nothing was spent."""
        if not self.epsilon:
            return ""
        unit = 10.0 ** (math.floor(math.log10(self.epsilon)) - 2)
        return f"{math.ceil(self.epsilon / unit * (1 - 1e-12)) * unit:.3g}"


@dataclass(frozen=True, slots=True)
class Epochs:
    """What was spent on a table that grows: in all of its epochs, later ones too, and in each.

    per_person  the most epochs that a person has rows in
    common      what everybody pays for, those who arrive later too
    own         what was spent on each epoch by itself, in the order in which the epochs were added
    sizes       under replace-one the number of persons: of the epoch, or up to the epoch where persons return

    Where nobody is in two epochs a person pays common and the own of one epoch. Where persons return, everything is
    common.
    """

    per_person: int
    common: Price = NOTHING
    own: Mapping[str, Price] = field(default_factory=dict)
    sizes: Mapping[str, int | None] = field(default_factory=dict)

    def spent(self, epochs: Iterable[str] | None = None) -> Price:
        """The most that a person of these epochs has paid; None: of all."""
        most = NOTHING
        for epoch in self.own if epochs is None else epochs:
            most = most.joined(self.own.get(epoch, NOTHING))
        return self.common + most

    def charged(self, price: Price, epochs: Iterable[str] | None) -> Epochs:
        """After a charge about these epochs; None: about all of them, later ones too."""
        if epochs is None or self.per_person > 1:
            return replace(self, common=self.common + price)
        return replace(self, own={**self.own, **{epoch: self.own[epoch] + price for epoch in epochs}})

    def grown(self, epoch: str, size: int | None, spent: Price = NOTHING) -> Epochs:
        """After an epoch was added."""
        return replace(self, own={**self.own, epoch: spent}, sizes={**self.sizes, epoch: size})

    def raised(self, proved: Price, seen: Epochs) -> Epochs:
        """After a reconciliation: docs/proofs/filter.md, where a mark proves the most that a person has paid.

        What a person of an epoch paid under the mark is at most `proved`; what this copy added since comes on top.
        """
        common = (proved + self.common.less(seen.common)).joined(self.common)
        own = {}
        for epoch, spent in self.own.items():
            most = common + spent.less(seen.own.get(epoch, NOTHING))
            own[epoch] = most.joined(self.common + spent).less(common)
        return replace(self, common=common, own=own)

    def record(self) -> Body:
        own = {epoch: [price_record(spent), self.sizes[epoch]] for epoch, spent in self.own.items()}
        return {"per_person": self.per_person, "common": price_record(self.common), "own": [*own.items()]}

    @staticmethod
    def read(stored: Any) -> Epochs:
        own = {epoch: price_from(spent) for epoch, (spent, _) in stored["own"]}
        sizes = {epoch: size for epoch, (_, size) in stored["own"]}
        return Epochs(stored["per_person"], price_from(stored["common"]), own, sizes)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was spent, in all and in each name, when a mark last saw the ledger."""

    spent: Price = NOTHING
    allowances: Mapping[str, Allowance] = field(default_factory=dict)
    epochs: Epochs | None = None


@dataclass(slots=True)
class State:
    """The fold of the entries up to seq.

    allowances  replaced, never changed in place: what `witnessed` holds of it stays as it was
    requests    the request ids of the entries that were folded here: all of them, unless a stored state was read
    folded      the last fold entry
    witness     the mark that the last entry names
    epochs      of a table that grows: what was spent on its epochs; `spent` is the most that a person has paid
    scopes      of a table that grows: which epochs the facts of each hash are about
    steps       of open conversations that answer step by step: how many steps were taken
    """

    seq: int = 0
    hash: str = GENESIS
    header: Header | None = None
    spent: Price = NOTHING
    size: int | None = None
    facts: dict[str, int] = field(default_factory=dict)
    current_facts: str | None = None
    allowances: dict[str, Allowance] = field(default_factory=dict)
    pending: dict[int, Pending] = field(default_factory=dict)
    conversations: dict[int, str] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    witnessed: dict[str, Seen] = field(default_factory=dict)
    folded: int = 0
    witness: str | None = None
    epochs: Epochs | None = None
    scopes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)

    @property
    def opened(self) -> Header:
        if self.header is None:
            raise LedgerCorrupt(None, "an open entry", "no entries: the ledger's creation was interrupted")
        return self.header

    def spent_on(self, epochs: Iterable[str] | None) -> Price:
        """What was spent; of a table that grows: by the persons of these epochs at most (None: of all)."""
        return self.spent if self.epochs is None else self.epochs.spent(epochs)

    def admits(self, price: Price, allowance: str | None = None, epochs: Iterable[str] | None = None) -> bool:
        """Whether after adding the price the sums are within the caps, and within the allowance's share of them.

        epochs  of a table that grows: which ones the price is about; None: all of them, later ones too
        """
        caps = self.opened.caps
        if not (self.spent_on(epochs) + price).within(caps):
            return False
        if allowance is None:
            return True
        named = self.allowance(allowance)
        return (named.spent + price).within(caps.share(named.share))

    def allowance(self, name: str) -> Allowance:
        if name not in self.allowances:
            raise ParameterError(f"the ledger has no allowance called {name!r}; allow(name, share=) makes one")
        return self.allowances[name]

    def allow(self, name: str, share: Fraction, spent: Price) -> None:
        """Set an allowance; the mapping is replaced, not changed."""
        self.allowances = {**self.allowances, name: Allowance(share, spent)}

    def record(self) -> Body:
        """The state as JSON, without what its own header and the place of the entries say."""
        plain = ("seq", "hash", "size", "facts", "current_facts", "folded")
        grown: Body = {} if not self.steps else {"steps": {str(seq): count for seq, count in self.steps.items()}}
        if self.epochs is not None:  # only then: stored states of before say the same
            grown |= {"epochs": self.epochs.record(), "scopes": {each: [*held] for each, held in self.scopes.items()}}
            grown["seen"] = {name: held.record() for name, seen in self.witnessed.items() if (held := seen.epochs)}
        return {
            **grown,
            **{name: getattr(self, name) for name in plain},
            "spent": price_record(self.spent),
            "allowances": _allowances_record(self.allowances),
            "pending": {str(seq): [each.process, each.hash] for seq, each in self.pending.items()},
            "conversations": {str(seq): each for seq, each in self.conversations.items()},
            "witnessed": {
                name: [price_record(seen.spent), _allowances_record(seen.allowances)]
                for name, seen in self.witnessed.items()
            },
        }


def advance(state: State, row: Row) -> Body:
    """Add one entry to the state, or raise LedgerCorrupt; returns the entry's body."""
    body = checked_body(state, row)
    kind = body["kind"]
    if (kind == "open") != (row.seq == 1):
        raise LedgerCorrupt(row.seq, "open as the first entry and nowhere else", str(kind))
    if kind not in _FOLDS:
        raise LedgerCorrupt(row.seq, "a known kind of entry", str(kind))
    try:
        _FOLDS[kind](state, row, body)
        state.seq, state.hash = row.seq, row.hash.decode("ascii")
        state.witness = body["witness"]
        if state.witness is not None:
            state.witnessed[state.witness] = Seen(state.spent, state.allowances, state.epochs)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        raise LedgerCorrupt(row.seq, f"a well-formed {kind} entry", "another shape") from None
    return body


def row_of(state: State, body: Body) -> Row:
    """The row that appends this body after the state's last entry."""
    text = canonical(body).encode("ascii")
    return Row(state.seq + 1, *_columns(body), text, chained(state.hash, text).encode("ascii"))


def _columns(body: Body) -> tuple[bytes, bytes | None, int | None]:
    """What the columns kind, request and charge repeat of a body."""
    request = body.get("request")
    return body["kind"].encode("ascii"), None if request is None else request.encode("utf-8"), body.get("charge")


def chained(previous: str, body: bytes) -> str:
    """The hash of an entry."""
    return hashlib.sha256(previous.encode("ascii") + body).hexdigest()


def checked_body(state: State, row: Row) -> Body:
    """The parsed body, after checking its place in the chain and every column against it."""
    if row.seq != state.seq + 1:
        raise LedgerCorrupt(state.seq + 1, f"entry {state.seq + 1}", f"entry {row.seq}")
    expected = chained(state.hash, row.body if type(row.body) is bytes else b"")
    if row.hash != expected.encode("ascii"):
        raise LedgerCorrupt(row.seq, f"hash {expected}", f"hash {printable(row.hash)}")
    try:
        body = dict(json.loads(str(row.body, "ascii")))
        columns = (*_columns(body), body["previous"])
        body["witness"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LedgerCorrupt(row.seq, "a body that is a JSON object with kind and previous", "another text") from None
    if columns != (row.kind, row.request, row.charge, state.hash):
        raise LedgerCorrupt(row.seq, "columns equal to the body", "columns that differ from it")
    return body


def printable(value: object) -> str:
    """A column as text, whatever a damaged file holds there."""
    return value.decode("ascii", "replace") if type(value) is bytes else repr(value)


def price_record(price: Price | Caps) -> Body:
    return {"renyi": price.renyi, "pure": price.pure, "failure": price.failure}


def price_from(stored: Any) -> Price:
    """The price whose record this is; anything but integers >= 0 and nulls is refused."""
    price = Price(stored["renyi"], stored["pure"], stored["failure"])
    amounts = [each for each in (price.renyi, price.pure) if each is not None]
    if not all(type(each) is int and each >= 0 for each in (*amounts, price.failure)):
        raise ValueError("an amount is a whole number >= 0, or null if it is not a failure")
    return price


def identity_record(identity: Identity) -> Body:
    """The identity as JSON; spelled out here because its field `name` would hide the record's name."""
    relation = identity.neighbours
    extra: Body = {"rehearsal": True} if identity.rehearsal else {}
    if identity.tables:
        extra["tables"] = [[name, each.rows] for name, each in identity.tables]
    if identity.epochs is not None:
        extra["epochs"] = identity.epochs
    return {"table": identity.name, "relation": relation.kind, "rows": relation.rows, "unit": identity.unit, **extra}


_FRACTION = re.compile("[0-9]{1,4000}(/[0-9]{1,4000})?")


def _fraction(text: str) -> Fraction:
    """A fraction spelled as a ledger spells it; a text such as 1e99999999 would take for ever."""
    if not _FRACTION.fullmatch(text):
        raise ValueError("a fraction is p or p/q")
    return Fraction(text)


def _require(right: object, seq: int, expected: str, found: object = "another") -> None:
    if not right:
        raise LedgerCorrupt(seq, expected, str(found))


def fold_open(state: State, row: Row, body: Body) -> None:
    budget = Budget(_fraction(body["epsilon"]), _fraction(body["delta"]))
    share = _fraction(body["failure_share"])
    order = None if body["order"] is None else _fraction(body["order"])
    stored = price_from(body["caps"])  # whole numbers
    caps, most = Caps(stored.renyi, body["caps"]["pure"], stored.failure), Caps.of(order, budget, share)
    # The Renyi cap is a float rounded down: another machine may differ in its last bits, and not by more than that.
    near = caps.renyi is None
    if caps.renyi is not None and most.renyi is not None:
        near = 0 <= caps.renyi <= most.renyi + 2 + most.renyi // 10**11
    same = (caps.pure, caps.failure) == (most.pure, most.failure)
    _require(near and same, row.seq, f"caps {most}", f"caps {caps}")
    _require(re.fullmatch("[0-9a-f]{32}", body["id"]), row.seq, "an id of 32 hexadecimal digits")
    who = body["identity"]
    relation = Neighbours(who["relation"], who["rows"])
    tables = tuple((name, Neighbours(relation.kind, rows)) for name, rows in who.get("tables", ()))
    identity = Identity(
        who["table"], relation, who["unit"], who.get("rehearsal", False) is True, tables, who.get("epochs")
    )
    state.header = Header(body["id"], budget, share, order, caps, identity, body["testing"] is True)
    state.size = body["size"]
    if identity.epochs is not None:
        _require(type(identity.epochs) is int and identity.epochs >= 1, row.seq, "a number of epochs")
        state.epochs = Epochs(identity.epochs)


def fold_facts(state: State, row: Row, body: Body) -> None:
    facts_hash = digest(body["facts"])
    _require(facts_hash == body["facts_hash"], row.seq, f"facts with hash {facts_hash}", f"hash {body['facts_hash']}")
    growth = body["facts"].get("growth")
    _require((growth is not None) == (state.epochs is not None), row.seq, "facts of a table that grows, or not")
    if growth is not None:
        state.scopes[facts_hash] = tuple(growth["epochs"])
    elif state.opened.identity.neighbours.replace_one:
        size = body["facts"]["size"]
        _require(state.size in (None, size), row.seq, f"size {state.size}", f"size {size}")
        state.size = size
    state.facts[facts_hash] = row.seq
    state.current_facts = facts_hash


def fold_allow(state: State, row: Row, body: Body) -> None:
    share = _fraction(body["share"])
    _require(0 < share <= 1, row.seq, "a share in (0, 1]", str(share))
    before = state.allowances.get(body["allowance"], Allowance(share))
    state.allow(body["allowance"], share, before.spent)


def fold_charge(state: State, row: Row, body: Body) -> None:
    price, allowance, request = price_from(body["price"]), body["allowance"], body["request"]
    _require(0 not in (price.renyi, price.pure), row.seq, "a price of at least one unit", "a price of 0")
    known = body["facts_hash"] in state.facts
    _require(known, row.seq, "facts that an earlier entry holds", f"hash {body['facts_hash']}")
    fresh = request is None or request not in state.requests
    _require(fresh, row.seq, "a new request id", "one that was charged already")
    _require(allowance is None or allowance in state.allowances, row.seq, "an allowance that an earlier entry made")
    epochs = None if state.epochs is None or body.get("lasting") is True else state.scopes[body["facts_hash"]]
    _require(state.admits(price, allowance, epochs), row.seq, "a charge within the caps", price)
    if state.epochs is None:
        state.spent = state.spent + price
    else:
        state.epochs = state.epochs.charged(price, epochs)
        state.spent = state.epochs.spent()
    if allowance is not None:
        named = state.allowances[allowance]
        state.allow(allowance, named.share, named.spent + price)
    if body["mode"] == "conversation":
        state.conversations[row.seq] = row.hash.decode("ascii")
        return
    process = {key: body["process"][key] for key in ("pid", "start", "boot", "space")}
    if "instance" in body["process"]:  # of a place that several hosts reach
        process["instance"] = body["process"]["instance"]
    state.pending[row.seq] = Pending(process, row.hash.decode("ascii"))
    if request is not None:
        state.requests.add(request)


def fold_answer(state: State, row: Row, body: Body) -> None:
    _check_answer(row.seq, body["answer"])
    pending = state.pending.pop(body["charge"], None)
    _require(pending, row.seq, "an answer to a pending charge", f"one to entry {body['charge']}")


def fold_burn(state: State, row: Row, body: Body) -> None:
    charge = body["charge"]
    ended = state.pending.pop(charge, None) or state.conversations.pop(charge, None)
    _require(ended, row.seq, "the end of a pending charge or an open conversation", f"one of entry {charge}")
    state.steps = {seq: count for seq, count in state.steps.items() if seq != charge}


def fold_end(state: State, row: Row, body: Body) -> None:
    ended = state.conversations.pop(body["charge"], None)
    state.steps = {seq: count for seq, count in state.steps.items() if seq != body["charge"]}
    _require(ended, row.seq, "the end of an open conversation", f"one of entry {body['charge']}")


def fold_step(state: State, row: Row, body: Body) -> None:
    _check_answer(row.seq, body["answer"])
    _require(body["of"] in state.conversations, row.seq, "a step of an open conversation", f"one of {body['of']}")
    steps = state.steps.get(body["of"], 0) + 1
    _require(body["number"] == steps, row.seq, f"step {steps}", f"step {body['number']}")
    state.steps = {**state.steps, body["of"]: steps}


def fold_epoch(state: State, row: Row, body: Body) -> None:
    label, scope, epochs = body["epoch"], state.scopes.get(body["facts_hash"]), state.epochs
    if epochs is None:
        raise LedgerCorrupt(row.seq, "an epoch of a table that grows", "one of another table")
    known = (*epochs.own, label) if epochs.per_person > 1 else (label,)
    _require(label not in epochs.own and scope == known, row.seq, "an epoch that is new, with its facts")
    state.epochs = epochs.grown(label, body["size"])


def fold_grow(state: State, row: Row, body: Body) -> None:
    _require(state.epochs is None and not state.opened.identity.tables, row.seq, "a table that did not grow before")
    state.header = replace(state.opened, identity=replace(state.opened.identity, epochs=1))
    state.epochs = Epochs(1).grown(body["epoch"], state.size, state.spent)
    state.scopes = dict.fromkeys(state.facts, (body["epoch"],))


def fold_said(state: State, row: Row, body: Body) -> None:
    _require(all(type(body[key]) is str for key in ("facts_hash", "meaning", "manner")), row.seq, "texts")
    _check_answer(row.seq, body["answer"])


def _check_answer(seq: int, answer: Any) -> None:
    held = type(answer) is dict and re.fullmatch("[0-9a-f]{64}", answer["sha256"]) and type(answer["bytes"]) is int
    _require(held or type(answer) is str, seq, "an answer that is text, or the hash of one")


LARGE = 2**16
"""Bytes: a longer answer lies beside the entries, and its entry has the hash of it."""


def detached(fields: Body, hold: Callable[[str, str], None]) -> Body:
    """The fields of an entry; if their answer is long its text is held by its hash, which the entry has instead."""
    text = fields.get("answer")
    if text is None or len(text) <= LARGE:
        return fields
    hold(text_hash(text), text)
    return {**fields, "answer": {"sha256": text_hash(text), "bytes": len(text.encode("utf-8"))}}


def large(body: Body) -> str | None:
    """The hash of the entry's answer, if that lies beside the entries."""
    answer = body.get("answer")
    return str(answer["sha256"]) if type(answer) is dict else None


def read_answer(seq: int, body: Body, held: Callable[[str], str | None]) -> Body:
    """The body with the text of a long answer, checked against its hash. held: a text by its hash."""
    answer_hash = large(body)
    if answer_hash is not None:
        text = held(answer_hash)
        right = text is not None and text_hash(text) == answer_hash
        _require(right, seq, f"an answer with hash {answer_hash}", "another or none")
        body["answer_text"] = text
    return body


def answer_text(body: Body) -> str:
    """The answer of an entry as it was stored; the reader of a long one has put it into the body."""
    return str(body["answer_text"] if large(body) else body["answer"])


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def fold_reconcile(state: State, row: Row, body: Body) -> None:
    proved, witness = price_from(body["proved"]), body["mark_witness"]
    if state.epochs is None:
        state.spent = reconciled(state, proved, witness)
    else:
        state.epochs = state.epochs.raised(proved, seen_by(state, witness).epochs or Epochs(state.epochs.per_person))
        state.spent = state.epochs.spent()
    for name, stored in body.get("allowances", {}).items():  # entries from before version 0.2 have none
        named = state.allowances[name]
        state.allow(name, named.share, named.spent.joined(price_from(stored)))
    state.steps = {}
    state.conversations.clear()  # the ends of some may be among the entries that were lost


def fold_fold(state: State, row: Row, body: Body) -> None:
    if body["format"] == FORMAT:
        _require(body["state"] == digest(state.record()), row.seq, "the digest of what the entries add up to")
    state.folded = row.seq


def reconciled(state: State, proved: Price, witness: str | None) -> Price:
    """What counts as spent once a mark's sums are known: all of the mark's, and what it has not seen of the ledger's.

    The mark's sums contain everything up to the last entry that its own witness wrote; what others added after that
    entry (on a copy of the file, elsewhere) comes on top. Never less than before, never less than the mark.
    """
    return (proved + state.spent.less(seen_by(state, witness).spent)).joined(state.spent)


def seen_by(state: State, witness: str | None) -> Seen:
    """What the mark of this name has seen of the ledger; nothing if its name is not here."""
    return Seen() if witness is None else state.witnessed.get(witness, Seen())


# Stored states.

FORMAT = 1


def folded(opening: Row, text: str, row: Callable[[int], Row | None]) -> State | None:
    """The state after a fold entry, from its stored text; None if the text is not what that entry vouches for.

    row  an entry by its number
    """
    try:
        stored, state = json.loads(text), State()
        fold = row(stored["seq"] + 1)
        if fold is None:
            return None
        advance(state, opening)
        body = checked_body(State(seq=stored["seq"], hash=stored["hash"]), fold)
        if body["kind"] != "fold" or body["format"] != FORMAT or body["state"] != digest(stored):
            return None
    except (LedgerCorrupt, ValueError, TypeError, KeyError, RecursionError):
        return None
    state.seq, state.hash, state.folded = stored["seq"], stored["hash"], stored["folded"]
    state.spent, state.size = price_from(stored["spent"]), stored["size"]
    state.facts, state.current_facts = dict(stored["facts"]), stored["current_facts"]
    state.allowances = _allowances_from(stored["allowances"])
    state.pending = {int(seq): Pending(process, found) for seq, (process, found) in stored["pending"].items()}
    state.conversations = {int(seq): found for seq, found in stored["conversations"].items()}
    seen = {name: Epochs.read(held) for name, held in stored.get("seen", {}).items()}
    state.witnessed = {
        name: Seen(price_from(spent), _allowances_from(named), seen.get(name))
        for name, (spent, named) in stored["witnessed"].items()
    }
    state.steps = {int(seq): count for seq, count in stored.get("steps", {}).items()}
    if "epochs" in stored:
        state.epochs = Epochs.read(stored["epochs"])
        state.scopes = {facts_hash: tuple(held) for facts_hash, held in stored["scopes"].items()}
        grown = replace(state.opened.identity, epochs=state.epochs.per_person)
        state.header = replace(state.opened, identity=grown)
    advance(state, fold)
    return state


def _allowances_record(allowances: Mapping[str, Allowance]) -> Body:
    return {name: [str(each.share), price_record(each.spent)] for name, each in allowances.items()}


def _allowances_from(stored: Any) -> dict[str, Allowance]:
    return {name: Allowance(_fraction(share), price_from(spent)) for name, (share, spent) in stored.items()}


_FOLDS: dict[str, Callable[[State, Row, Body], None]] = {
    "open": fold_open,
    "facts": fold_facts,
    "allow": fold_allow,
    "charge": fold_charge,
    "answer": fold_answer,
    "burn": fold_burn,
    "top": fold_end,
    "close": fold_end,
    "reconcile": fold_reconcile,
    "fold": fold_fold,
    "said": fold_said,
    "step": fold_step,
    "epoch": fold_epoch,
    "grow": fold_grow,
}
