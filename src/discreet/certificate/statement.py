"""What a certificate says about one entry of a ledger: a function of the entries, of nothing else.

Every field is a whole number, a text, true, false, null, or made of these. Numbers that are not whole are texts:
fractions are exact, decimals are upper bounds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.describe import asked, does
from discreet.errors import LedgerCorrupt, LedgerMismatch, ParameterError, SchemaError
from discreet.funds import ATTO, NANO, NOTHING, Price, price_of
from discreet.guarantee import Budget, Guarantee, Neighbours, renyi_to_epsilon
from discreet.ledger import Ledger
from discreet.ledger.state import Body, answer_text, price_from
from discreet.records import Json, revive

FORMAT = "discreet-certificate/1"
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    ParameterError,
    TypeError,
)  # what `revive` makes of others'
_ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "ended", "reconcile": "ended"}


@dataclass(frozen=True, slots=True)
class Found:
    """The entries that a certificate speaks about."""

    opening: Body
    facts: Body
    body: Body
    end: Body | None
    head: Body

    @property
    def budget(self) -> Budget:
        return Budget(Fraction(self.opening["epsilon"]), Fraction(self.opening["delta"]))

    @property
    def order(self) -> Fraction | None:
        return None if self.opening["order"] is None else Fraction(self.opening["order"])


def in_ledger(ledger: Ledger, entry: object) -> Found:
    """The same as `gathered` of all entries, by looking up the few that matter."""
    with ledger.store.reading() as state:
        head = state.seq
        if type(entry) is not int or not 1 <= entry <= head:
            raise ParameterError(f"the ledger has entries 1 to {head}, found {ascii(entry)[:40]}")
        body = ledger.entry(entry)
        _require_certifiable(body)
        ends = ledger.store.end_of(entry) if body["kind"] == "charge" else None
        last = ends[0] if ends is not None else head + 1
        if body.get("mode") == "conversation":
            reconciled = (seq for seq, _ in ledger.store.latest("reconcile", head) if seq > entry)
            last = min(last, next(reconciled, head + 1))
        return Found(
            ledger.entry(1),
            ledger.entry(state.facts[body["facts_hash"]]),
            body,
            ledger.entry(last) if last <= head else None,
            ledger.entry(head),
        )


def _require_certifiable(body: Body) -> None:
    if body["kind"] not in ("charge", "said"):
        charge = f"; its charge is entry {body['charge']}" if body.get("charge") else ""
        raise ParameterError(
            f"entry {body['seq']} is of kind {body['kind']!r}{charge}: a certificate is of a charge or of a session's "
            "answer"
        )


def gathered(bodies: Sequence[Body], entry: object, head: object) -> Found:
    """The entry and what belongs to it, as it was when `head` was the last entry."""
    if type(entry) is not int or type(head) is not int or not 1 <= entry <= head:
        raise ParameterError(f"the ledger has entries 1 to {len(bodies)}, found {ascii(entry)[:40]}")
    if head > len(bodies):
        raise LedgerMismatch(f"the certificate's head is entry {head}; there are only {len(bodies)} entries")
    body = bodies[entry - 1]
    _require_certifiable(body)
    facts = [each for each in bodies[:entry] if each["kind"] == "facts" and each["facts_hash"] == body["facts_hash"]]
    if not facts:
        raise LedgerCorrupt(entry, "facts that an earlier entry holds", "none")
    talks = body.get("mode") == "conversation"
    ends = (
        each for each in bodies[entry:head] if each.get("charge") == entry or (talks and each["kind"] == "reconcile")
    )
    return Found(bodies[0], facts[-1], body, next(ends, None), bodies[head - 1])


def stated(found: Found, *, with_answer: bool) -> dict[str, Any]:
    """Everything that the certificate says, but for its digest."""
    body, opening, identity = found.body, found.opening, found.opening["identity"]
    asked_record = body["mechanism"] if body["kind"] == "charge" else body["question"]
    answer = _answer(found)
    said = {
        "format": FORMAT,
        "warning": "NOT PRIVATE: a testing ledger" if opening["testing"] else None,
        "rehearsal": identity.get("rehearsal", False) is True,
        "ledger": opening["id"],
        "entry": body["seq"],
        "entry_hash": body["hash"],
        "head": {"entry": found.head["seq"], "hash": found.head["hash"]},
        "time": body["time"],
        "status": _status(found),
        "mechanism": asked_record,
        "does": does(asked_record) if body["kind"] == "charge" else _SAID,
        "asked": asked(asked_record),
        "table": identity["table"],
        "relation": identity["relation"],
        "unit": identity["unit"] or "a row",
        "rows_per_unit": identity["rows"],
        "size": found.facts["facts"]["size"],
        **_edition(found.facts["facts"]),
        "schema_hash": found.facts["facts_hash"],
        "schema": found.facts["facts"],
        **(_priced(found) if body["kind"] == "charge" else _FREE),
        "budget": {"epsilon": opening["epsilon"], "delta": opening["delta"], "covers": _COVERS},
        "accounting": _accounting(found),
        "implementation": _IMPLEMENTATION,
        "code_version": body.get("version", opening["version"]),
        "answer_hash": None if answer is None else hashlib.sha256(answer.encode("utf-8")).hexdigest(),
        "not_protected": _not_protected(found),
    }
    return {**said, "answer": answer} if with_answer else said


def _edition(facts: dict[str, Any]) -> dict[str, str]:
    """The owner's label of the rows that were looked at, if they have one."""
    return {"edition": revive(facts["edition"], {})} if "edition" in facts else {}


_SAID = "An answer of a session, made of what was released before it: it adds nothing to what was released."
_IMPLEMENTATION = (
    "discreet: a charge is durable before the rows are read; sums are integers, and so is the noise, drawn exactly "
    "from the operating system's randomness; an answer is stored before it is given."
)
_COVERS = "everything that was or will be released through this ledger, together, by anybody"
_FREE: dict[str, Any] = {
    "alone": {"epsilon": "0", "delta": "0", "priced_again": True},
    "original": {"pure_epsilon": "0", "renyi_order": None, "renyi": "0", "failure": "0"},
    "price": NOTHING.record(),
}


def _status(found: Found) -> str:
    if found.body["kind"] == "said":
        return "said"
    talks = found.body["mode"] == "conversation"
    if found.end is None:
        return "a conversation that may still answer" if talks else "charged, not answered yet"
    word = _ENDS[found.end["kind"]]
    if word == "burned":
        return "burned: it was charged and its answer was never given"
    return f"a conversation that has {word}" if talks else word


def _answer(found: Found) -> str | None:
    """The stored answer's text; a conversation's answers are not stored."""
    if found.body["kind"] == "said":
        return answer_text(found.body)
    return answer_text(found.end) if found.end is not None and found.end["kind"] == "answer" else None


def _priced(found: Found) -> dict[str, Any]:
    """What this charge alone promises, computed again from its record; from its price if that cannot be done."""
    budget, order = found.budget, found.order
    charged = price_from(found.body["price"])
    guarantee = _guarantee(found)
    if guarantee is None:
        epsilon, pure, renyi, failure = _from_price(charged, budget, order)
    else:
        _agree(found.body["seq"], price_of(guarantee, order), charged)
        epsilon, pure, failure = guarantee.epsilon(budget.delta), guarantee.pure, guarantee.failure
        renyi = math.inf if order is None else guarantee.at(float(order))
    return {
        "alone": {
            "epsilon": _decimal(epsilon),
            "delta": found.opening["delta"],
            "priced_again": guarantee is not None,
        },
        "original": {
            "pure_epsilon": None if pure is None else str(pure),
            "renyi_order": found.opening["order"],
            "renyi": _decimal(renyi),
            "failure": str(failure),
        },
        "price": charged.record(),
    }


def _guarantee(found: Found) -> Guarantee | None:
    """The mechanism's guarantee by its record; None if the record is not one that this version can read."""
    from discreet.catalogue import CATALOGUE

    try:
        mechanism = revive(found.body["mechanism"], CATALOGUE)
        guarantee = mechanism.guarantee(revive(found.facts["facts"], CATALOGUE))
    except _UNREADABLE:
        return None
    return guarantee if isinstance(guarantee, Guarantee) else None


def readable(question: Json, facts: Json) -> bool:
    """Whether this is the record of a question that can be asked about a table with these facts."""
    from discreet.catalogue import CATALOGUE

    try:
        asks = revive(question, CATALOGUE)
        looked_at = asks.guarantee if hasattr(asks, "guarantee") else asks.sensitivity  # a quantile is a mechanism
        looked_at(revive(facts, CATALOGUE))
    except (SchemaError, *_UNREADABLE):
        return False
    return True


def _from_price(
    charged: Price, budget: Budget, order: Fraction | None
) -> tuple[float, Fraction | None, float, Fraction]:
    """Epsilon, pure epsilon, Renyi value and failure as the ledger counted them: rounded up."""
    pure = None if charged.pure is None else Fraction(charged.pure, NANO)
    failure = Fraction(charged.failure, ATTO)
    renyi = math.inf if charged.renyi is None else math.nextafter(charged.renyi / NANO, math.inf)
    left = budget.delta - failure
    proved = [math.inf if pure is None or left < 0 else math.nextafter(float(pure), math.inf)]
    if order is not None and left > 0 and renyi < math.inf:
        proved.append(renyi_to_epsilon(float(order), renyi, left))
    return min(proved), pure, renyi, failure


def _agree(entry: int, again: Price, charged: Price) -> None:
    """The price is what the mechanism costs; the Renyi float may differ in its last bits."""
    near = again.renyi is charged.renyi
    if again.renyi is not None and charged.renyi is not None:
        near = abs(again.renyi - charged.renyi) <= 1 + again.renyi // 10**12
    if not near or (again.pure, again.failure) != (charged.pure, charged.failure):
        raise LedgerCorrupt(entry, f"the price {again}", str(charged))


def _accounting(found: Found) -> str:
    order = "" if found.order is None else f", and of Renyi divergences at order {found.order}"
    return (
        f"Central model: one trusted holder of the rows. Sums of pure epsilon{order}; each charge was admitted only "
        "while one of the sums, and the sum of the failures, stayed within the cap that follows from the budget. "
        "Mechanisms may be chosen after seeing earlier answers. What is computed from released answers costs nothing."
    )


def _not_protected(found: Found) -> list[str]:
    """What the promise does not cover, in sentences."""
    identity = found.opening["identity"]
    relation = Neighbours(identity["relation"], identity["rows"])
    own = (
        "The rows of one person together, if somebody has several: each row counts as a person of its own."
        if identity["unit"] is None
        else f"One person under two values of {identity['unit']!r}: each value counts as a person of its own."
    )
    return [
        *(["Everything: a testing ledger accepts noise that can be foreseen."] if found.opening["testing"] else []),
        *(["How many persons there are: replace-one makes that number public."] if relation.replace_one else []),
        own,
        "Several persons together, such as a family: the promise for k persons is about k times weaker.",
        "What follows about a person from facts about everybody: it could be learned without that person's rows.",
        "What is released about the same people without this ledger: such losses add up.",
        "What the schema declares: the columns, their bounds and levels.",
        "What was asked, when, and what it cost.",
        "How long an answer took, where somebody can measure it.",
        "The rows themselves, from whoever can read their file or run programs on them.",
    ]


def _decimal(value: float) -> str | None:
    return None if value == math.inf else repr(value)
