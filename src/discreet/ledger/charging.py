"""Charges, answers and turns of conversations: how `release` and `converse` write in a ledger. Nobody else does.

Every function here is one write transaction: it sees all that was written before it, and is durable when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from discreet.core import (
    ConversationOver,
    Guarantee,
    Json,
    LedgerUnavailable,
    ParameterError,
    Price,
    canonical,
    code_version,
)
from discreet.data import Dataset
from discreet.ledger.acting import Acting
from discreet.ledger.ledger import Ledger
from discreet.ledger.opening import check_table, sources_of
from discreet.ledger.sidecar import claim
from discreet.ledger.state import Body, State, answer_text, price_from, price_record
from discreet.ledger.store import Store, Writer


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge: its entry, the entry's hash, its price; and the stored answer if its request was answered before."""

    entry: int
    hash: str
    price: Price
    stored: str | None = None


@dataclass(frozen=True, slots=True)
class Purchase:
    """What is to be charged: a mechanism's record and guarantee, on a table, and what the caller says about it.

    within   the limits that the mechanism was calibrated to, where they depend on what was left: with them the same
             mechanism is found again
    lasting  of a table that grows: it is about later epochs, too
    """

    mechanism: Json
    guarantee: Guarantee
    data: Dataset
    mode: str
    allowance: str | None = None
    request: str | None = None
    memo: str = ""
    within: Json = None
    lasting: bool = False

    @property
    def epochs(self) -> tuple[str, ...] | None:
        """Which epochs of a table that grows it is about; None: all of them, later ones too."""
        growth = self.data.facts.growth
        return None if growth is None or self.lasting else growth.epochs


@dataclass(frozen=True, slots=True)
class Stored:
    """What the ledger knows of a request id: its charge, and what became of it.

    mechanism, facts_hash, within  as they were charged
    answer                         the released value as text; None: there is none
    burned                         its run was interrupted and there will never be an answer
    """

    entry: int
    hash: str
    price: Price
    mechanism: Json
    facts_hash: str
    within: Json
    answer: str | None
    burned: bool

    @property
    def pending(self) -> bool:
        """Whether a living process runs it now."""
        return self.answer is None and not self.burned


def stored(ledger: Ledger, request: str) -> Stored | None:
    """The charge with this request id, if there is one. Charges of processes that are gone are burned first."""
    known = _requested(ledger, request)
    if known is not None and known.pending:
        ledger.store.burn_orphans()
        with ledger.store.writing(marked=False):
            pass  # burns what this process abandoned
        known = _requested(ledger, request)
    return known


def _requested(ledger: Ledger, request: str) -> Stored | None:
    with ledger.store.reading():
        charge = ledger.store.charge_of(request)
        if charge is None:
            return None
        end = ledger.store.end_of(charge["seq"])
    return Stored(
        entry=charge["seq"],
        hash=charge["hash"],
        price=price_from(charge["price"]),
        mechanism=charge["mechanism"],
        facts_hash=charge["facts_hash"],
        within=charge.get("within"),
        answer=answer_text(end) if end is not None and end["kind"] == "answer" else None,
        burned=end is not None and end["kind"] != "answer",
    )


def charge(ledger: Ledger, purchase: Purchase, *, made: list[Receipt] | None = None) -> Receipt:
    """Record a charge if it fits; or find the answer of an earlier charge with the same request id.

    made  gets the receipt of a new charge before that is durable: an interrupt may come before it is returned
    """
    price, facts_hash = ledger.price(purchase.guarantee), ledger.recorded(purchase.data.facts)[1]
    request = purchase.request
    with ledger.store.writing() as writer:
        check_table(writer.state, purchase.data)
        known = None if request is None else _requested(ledger, request)
        if request is None or known is None:
            receipt = _new_charge(ledger, writer, purchase, price)
            if made is not None:
                made.append(receipt)
            return receipt
    if known.pending:  # is its process still there?
        known = stored(ledger, request) or known
    return _replayed(known, purchase.mechanism, facts_hash)


def _new_charge(ledger: Ledger, writer: Writer, purchase: Purchase, price: Price) -> Receipt:
    """Write a charge, if it fits."""
    state, (facts, facts_hash), actor = writer.state, ledger.recorded(purchase.data.facts), Acting.now()
    if not state.admits(price, purchase.allowance, purchase.epochs):
        raise ledger.about(purchase.data.facts).refusal(price, purchase.allowance)
    first = next(iter(state.epochs.own if state.epochs is not None else ()), None)
    for source in sources_of(purchase.data) if ledger.path is not None else ():
        claim(source, ledger.id, getattr(purchase.data, "source_epochs", {}).get(source), first=first)
    actor.before_charge()
    if facts_hash not in state.facts:
        writer.append("facts", {"facts": facts, "facts_hash": facts_hash})
    body: Body = {
        "mode": purchase.mode,
        "mechanism": purchase.mechanism,
        "facts_hash": facts_hash,
        "price": price_record(price),
        "allowance": purchase.allowance,
        "request": purchase.request,
        "memo": purchase.memo,
        "who": actor.who,
        "version": code_version(),
        "process": ledger.store.parts.alive.name(),
    }
    if purchase.within is not None:
        body["within"] = purchase.within
    if purchase.lasting:
        body["lasting"] = True
    if actor.by is not None:
        body["by"] = actor.by
    entry = writer.append("charge", body)
    actor.charges.append(entry)
    return Receipt(entry, state.hash, price)


def answer(ledger: Ledger, receipt: Receipt, text: str) -> None:
    """Store a charge's answer. If that fails nothing is released; the charge stays, and is burned later."""
    _finish(ledger, "answer", receipt, {"answer": text})


def burn(ledger: Ledger, receipt: Receipt, reason: str) -> None:
    """Record that a charge will never be answered. It stays spent."""
    _finish(ledger, "burn", receipt, {"reason": reason})


def keep_secret(ledger: Ledger, receipt: Receipt, secret: Json, *, stepwise: bool = False) -> None:
    """Keep the secret state of a conversation that was just charged. stepwise: with the number of its steps."""
    held = {"number": 0, "state": secret, "answer": None} if stepwise else secret
    with ledger.store.writing():
        ledger.store.secrets.keep(receipt.hash, held)


@dataclass(frozen=True, slots=True)
class Saying:
    """An answer as it was given, so that the same question gets it again.

    meaning  what two questions share if they are the same          manner  by what rules it was answered
    facts_hash  of the facts of the table: under another declaration the same codes mean something else
    made_from   the entry of the charge that was made for this answer, if one was: a charge that was answered and from
                which no saying is made belongs to a process that died before it could tell anybody
    """

    facts_hash: str
    question: Json
    meaning: str
    manner: str
    answer: str
    made_from: int | None = None


def say(ledger: Ledger, *sayings: Saying, keep: Mapping[str, str]) -> None:
    """Record answers, in one write; nothing is charged. keep: texts to be kept beside the entries, a cache."""
    with ledger.store.writing(marked=False) as writer:
        for name, text in keep.items():
            writer.keep(name, text)
        for each in sayings:
            fields = {name: getattr(each, name) for name in Saying.__slots__}
            writer.append("said", {key: held for key, held in fields.items() if (key, held) != ("made_from", None)})


@contextmanager
def turn(ledger: Ledger, entry: int) -> Iterator[Turn]:
    """One turn of the open conversation that this entry charged; nobody else can write to the ledger meanwhile.

    Whatever goes wrong inside ends the conversation: an error that shows only at the last answer would be that answer.
    """
    with ledger.store.writing() as writer:
        charge_hash = _open_conversation(ledger, writer.state, entry)
        secret = ledger.store.secrets.get(charge_hash)
        if secret is None:
            raise ConversationOver("its secret state is not beside the ledger; open a new one")
        try:
            yield Turn(ledger.store, writer, entry, charge_hash, secret)
        except BaseException:
            ledger.store.end_conversation(charge_hash)
            raise


def taken_step(ledger: Ledger, entry: int, number: int) -> str | None:
    """The answer of a step that was taken before."""
    for body in ledger.latest("step"):
        if (body["of"], body["number"]) == (entry, number):
            return answer_text(body)
    return None


def require_next(ledger: Ledger, entry: int, number: int) -> None:
    """Refuse a step that is not the next one of an open conversation; ConversationOver if it has ended."""
    with ledger.store.reading() as state:
        _open_conversation(ledger, state, entry)
        _require_next(state, entry, number)


def _open_conversation(ledger: Ledger, state: State, entry: int) -> str:
    """The hash of an open conversation's charge."""
    charge_hash = state.conversations.get(entry)
    if charge_hash is None or ledger.store.ended(charge_hash):
        raise ConversationOver("it has ended; open a new one")
    return charge_hash


def _require_next(state: State, entry: int, number: int) -> None:
    done = state.steps.get(entry, 0)
    if number != done + 1:
        found = f"the next step is number {done + 1}, found {number}"
        raise ParameterError(f"{found}: steps are taken in their order, each once")


def take_step(ledger: Ledger, entry: int, number: int, step: Callable[[Json], tuple[Json, str]]) -> str:
    """Take one step of a conversation that answers step by step; its answer.

    step  from the secret state to the new one, None after the last step, and the answer's text

    The secret state holds its number and the last answer. It is durable before the step is recorded: if the process
    dies between the two, the state is one step ahead, and the next attempt records that answer instead of another. A
    state that is behind the ledger was put back from a copy; its noise was used already, so the conversation is over.
    A failure before the record leaves everything as it was: the same noise meets the same rows again.
    """
    with ledger.store.writing() as writer:
        charge_hash = _open_conversation(ledger, writer.state, entry)
        _require_next(writer.state, entry, number)
        held: Any = ledger.store.secrets.get(charge_hash)
        ahead = -1 if type(held) is not dict else held["number"] - number
        if ahead not in (-1, 0) or held is None:
            raise ConversationOver("its secret state is not beside the ledger, or is an older copy; open a new one")
        if ahead == -1:
            after, text = step(held["state"])
            held = {"number": number, "state": after, "answer": text}
            ledger.store.secrets.keep(charge_hash, held)
        writer.append("step", {"of": entry, "number": number, "answer": held["answer"]})
        if held["state"] is None:
            writer.append("top", {"charge": entry})
    if held["state"] is None:
        with ledger.store.writing():  # after the end is durable: until then the state has the last answer
            ledger.store.end_conversation(charge_hash)
    return str(held["answer"])


class Turn:
    """One turn of a conversation, inside the ledger's write lock."""

    def __init__(self, store: Store, writer: Writer, entry: int, charge_hash: str, secret: Json) -> None:
        self.secret = secret
        self._store, self._writer = store, writer
        self._entry, self._hash = entry, charge_hash

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
        self._store.end_conversation(self._hash)
        self._writer.append(kind, {"charge": self._entry, **fields})


def end(ledger: Ledger, entry: int) -> None:
    """Close a conversation, if it is open."""
    with ledger.store.writing() as writer:
        charge_hash = writer.state.conversations.get(entry)
        if charge_hash is not None:
            ledger.store.end_conversation(charge_hash)
            writer.append("close", {"charge": entry})


def conversation_charge(ledger: Ledger, entry: int) -> Body:
    """The charge of a conversation, as it was recorded."""
    body = ledger.store.entry(entry)
    if body["kind"] != "charge" or body["mode"] != "conversation":
        raise ParameterError(f"entry {entry} is not the charge of a conversation")
    return body


def _finish(ledger: Ledger, kind: str, receipt: Receipt, fields: Body) -> None:
    try:
        with ledger.store.writing(marked=False) as writer:
            if receipt.entry in writer.state.pending or receipt.entry in writer.state.conversations:
                writer.append(kind, {"charge": receipt.entry, **fields})
            elif kind == "answer":  # another host took this process for gone
                raise LedgerUnavailable(f"the charge of entry {receipt.entry} was burned meanwhile; nothing is given")
    except BaseException:
        ledger.store.abandon(receipt.entry, receipt.hash)
        raise


def _replayed(known: Stored, mechanism: Json, facts_hash: str) -> Receipt:
    if canonical(known.mechanism) != canonical(mechanism):
        raise ParameterError("this request id was used for another mechanism")
    if known.facts_hash != facts_hash:
        raise ParameterError("this request id was used for a table with other facts")
    if known.burned:
        raise ParameterError("this request was charged and its run was interrupted: use a new request id and pay again")
    if known.answer is None:
        raise LedgerUnavailable("this request is being run now, by a process that is alive: try again later")
    return Receipt(known.entry, known.hash, known.price, known.answer)
