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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.core import NOTHING, Budget, Caps, LedgerCorrupt, Neighbours, ParameterError, Price, canonical, digest
from discreet.data import Identity

GENESIS = "0" * 64
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
class Seen:
    """What was spent, in all and in each name, when a mark last saw the ledger."""

    spent: Price = NOTHING
    allowances: Mapping[str, Allowance] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    """The fold of the entries up to seq.

    allowances  replaced, never changed in place: what `witnessed` holds of it stays as it was
    requests    the request ids of the entries that were folded here: all of them, unless a stored state was read
    folded      the last fold entry
    witness     the mark that the last entry names
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

    @property
    def opened(self) -> Header:
        if self.header is None:
            raise LedgerCorrupt(None, "an open entry", "no entries: the ledger's creation was interrupted")
        return self.header

    def admits(self, price: Price, allowance: str | None = None) -> bool:
        """Whether after adding the price the sums are within the caps, and within the allowance's share of them."""
        caps = self.opened.caps
        if not (self.spent + price).within(caps):
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
        return {
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
            state.witnessed[state.witness] = Seen(state.spent, state.allowances)
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
    identity = Identity(who["table"], relation, who["unit"], who.get("rehearsal", False) is True, tables)
    state.header = Header(body["id"], budget, share, order, caps, identity, body["testing"] is True)
    state.size = body["size"]


def fold_facts(state: State, row: Row, body: Body) -> None:
    facts_hash = digest(body["facts"])
    _require(facts_hash == body["facts_hash"], row.seq, f"facts with hash {facts_hash}", f"hash {body['facts_hash']}")
    if state.opened.identity.neighbours.replace_one:
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
    _require(state.admits(price, allowance), row.seq, "a charge within the caps", price)
    state.spent = state.spent + price
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


def fold_end(state: State, row: Row, body: Body) -> None:
    ended = state.conversations.pop(body["charge"], None)
    _require(ended, row.seq, "the end of an open conversation", f"one of entry {body['charge']}")


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
    state.spent = reconciled(state, price_from(body["proved"]), body["mark_witness"])
    for name, stored in body.get("allowances", {}).items():  # entries from before version 0.2 have none
        named = state.allowances[name]
        state.allow(name, named.share, named.spent.joined(price_from(stored)))
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
    state.witnessed = {
        name: Seen(price_from(spent), _allowances_from(named)) for name, (spent, named) in stored["witnessed"].items()
    }
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
}
