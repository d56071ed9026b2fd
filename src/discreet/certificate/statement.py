"""What a certificate says about one entry of a ledger: a function of the entries, of nothing else.

Every field is a whole number, a text, true, false, null, or made of these. Numbers that are not whole are texts:
fractions are exact, decimals are upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.core import Guarantee, LedgerCorrupt, LedgerMismatch, ParameterError, SchemaError, price_of, revive
from discreet.describe import asked
from discreet.ledger import Body, Ledger, answer_text, large, price_from, text_hash

FORMAT = "discreet-certificate/1"
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, ParameterError, TypeError)  # `revive` of foreign records
_BURNED = "burned: it was charged and its answer was never given"
_ENDED = ("ended", "a conversation that has ended")
_STATUS: dict[str | None, tuple[str, str]] = {
    None: ("charged, not answered yet", "a conversation that may still answer"),
    "answer": ("answered", "a conversation that has answered"),
    "burn": (_BURNED, _BURNED),
    **dict.fromkeys(("top", "close", "reconcile"), _ENDED),
}
"""By the kind of the entry that ended a charge: the state of a release, and of a conversation."""


def catalogue() -> Mapping[str, type]:
    """Every class that a record may name; imported when a record is read, since it imports every learner."""
    from discreet.catalogue import CATALOGUE

    return CATALOGUE


@dataclass(frozen=True, slots=True)
class Evidence:
    """The entries that a certificate speaks about.

    end   the entry that ended the charge, if it was ended          head  the last entry when the evidence was gathered
    """

    opening: Body
    facts: Body
    body: Body
    end: Body | None
    head: Body

    @staticmethod
    def of(ledger: Ledger, entry: object) -> Evidence:
        """The same as `among` all entries, by looking up the few that matter."""
        with ledger.store.reading() as state:
            head = state.seq
            if type(entry) is not int or not 1 <= entry <= head:
                raise ParameterError(f"the ledger has entries 1 to {head}, found {ascii(entry)[:40]}")
            body = _certifiable(ledger.entry(entry))
            end = ledger.store.end_of(entry) if body["kind"] == "charge" else None
            if body.get("mode") == "conversation":
                after = [each for each in ledger.latest("reconcile") if each["seq"] > entry]
                end = min([*after, *([] if end is None else [end])], key=lambda each: int(each["seq"]), default=None)
            facts = ledger.entry(state.facts[body["facts_hash"]])
            return Evidence(ledger.entry(1), facts, body, end, ledger.entry(head))

    @staticmethod
    def among(bodies: Sequence[Body], entry: object, head: object) -> Evidence:
        """The entry and what belongs to it, as it was when `head` was the last entry."""
        if type(entry) is not int or type(head) is not int or not 1 <= entry <= head:
            raise ParameterError(f"the ledger has entries 1 to {len(bodies)}, found {ascii(entry)[:40]}")
        if head > len(bodies):
            raise LedgerMismatch(f"the certificate's head is entry {head}; there are only {len(bodies)} entries")
        body = _certifiable(bodies[entry - 1])
        facts = [each for each in bodies[:entry] if each["kind"] == "facts"]
        facts = [each for each in facts if each["facts_hash"] == body["facts_hash"]]
        if not facts:
            raise LedgerCorrupt(entry, "facts that an earlier entry holds", "none")
        kinds = ("reconcile",) if body.get("mode") == "conversation" else ()
        ends = (each for each in bodies[entry:head] if each.get("charge") == entry or each["kind"] in kinds)
        return Evidence(bodies[0], facts[-1], body, next(ends, None), bodies[head - 1])

    def without_answer(self) -> Evidence:
        """The same without a long answer's text, of which the certificate needs the hash alone."""
        end = None if self.end is None else {key: each for key, each in self.end.items() if key != "answer_text"}
        return replace(self, end=end)

    def statement(self, *, with_answer: bool = False) -> dict[str, Any]:
        """Everything that the certificate says, but for its digest."""
        from discreet.catalogue import does

        body, opening, identity = self.body, self.opening, self.opening["identity"]
        charged = body["kind"] == "charge"
        asked_record, order = body["mechanism"] if charged else body["question"], opening["order"]
        ended_by = None if self.end is None else self.end["kind"]
        facts, answered = self.facts["facts"], self.end if charged else body
        if answered is not None and "answer" not in answered:  # a conversation's answers are not stored
            answered = None
        said = {
            "format": FORMAT,
            "warning": "NOT PRIVATE: a testing ledger" if opening["testing"] else None,
            "rehearsal": identity.get("rehearsal", False) is True,
            "ledger": opening["id"],
            "entry": body["seq"],
            "entry_hash": body["hash"],
            "head": {"entry": self.head["seq"], "hash": self.head["hash"]},
            "time": body["time"],
            "status": _STATUS[ended_by][body["mode"] == "conversation"] if charged else "said",
            "mechanism": asked_record,
            "does": does(asked_record) if charged else _SAID,
            "asked": asked(asked_record),
            "table": identity["table"],
            "relation": identity["relation"],
            "unit": identity["unit"] or "a row",
            "rows_per_unit": identity["rows"],
            "size": facts["size"],
            **({"edition": revive(facts["edition"], {})} if "edition" in facts else {}),
            "schema_hash": self.facts["facts_hash"],
            "schema": facts,
            **(self._prices() if charged else _FREE),
            "budget": {"epsilon": opening["epsilon"], "delta": opening["delta"], "covers": _COVERS},
            "accounting": _ACCOUNTING.format("" if order is None else f", and of Renyi divergences at order {order}"),
            "implementation": _IMPLEMENTATION,
            "code_version": body.get("version", opening["version"]),
            "answer_hash": None if answered is None else large(answered) or text_hash(answer_text(answered)),
            "not_protected": _not_protected(opening),
        }
        if with_answer:
            said["answer"] = None if answered is None else answer_text(answered)
        return said

    def _prices(self) -> dict[str, Any]:
        """What this charge alone promises, computed again from its record; from its price if that cannot be done."""
        order = None if self.opening["order"] is None else Fraction(self.opening["order"])
        charged, delta = price_from(self.body["price"]), Fraction(self.opening["delta"])
        try:
            mechanism = revive(self.body["mechanism"], catalogue())
            guarantee = mechanism.guarantee(revive(self.facts["facts"], catalogue()))
        except _UNREADABLE:
            guarantee = None
        priced_again = isinstance(guarantee, Guarantee)
        if not priced_again:
            epsilon, pure, renyi, failure = charged.alone(order, delta)
        else:
            again = price_of(guarantee, order)
            if not again.agrees(charged):
                raise LedgerCorrupt(self.body["seq"], f"the price {again}", str(charged))
            epsilon, pure, failure = guarantee.epsilon(delta), guarantee.pure, guarantee.failure
            renyi = math.inf if order is None else guarantee.at(float(order))
        return {
            "alone": {
                "epsilon": None if epsilon == math.inf else repr(epsilon),
                "delta": self.opening["delta"],
                "priced_again": priced_again,
            },
            "original": {
                "pure_epsilon": None if pure is None else str(pure),
                "renyi_order": self.opening["order"],
                "renyi": None if renyi == math.inf else repr(renyi),
                "failure": str(failure),
            },
            "price": charged.record(),
        }


def _certifiable(body: Body) -> Body:
    if body["kind"] not in ("charge", "said"):
        charge = f"; its charge is entry {body['charge']}" if body.get("charge") else ""
        raise ParameterError(
            f"entry {body['seq']} is of kind {body['kind']!r}{charge}: a certificate is of a charge or of a session's "
            "answer"
        )
    return body


_SAID = "An answer of a session, made of what was released before it: it adds nothing to what was released."
_IMPLEMENTATION = (
    "discreet: a charge is durable before the rows are read; sums are integers, and so is the noise, drawn exactly "
    "from the operating system's randomness; an answer is stored before it is given."
)
_ACCOUNTING = (
    "Central model: one trusted holder of the rows. Sums of pure epsilon{}; each charge was admitted only while one of "
    "the sums, and the sum of the failures, stayed within the cap that follows from the budget. Mechanisms may be "
    "chosen after seeing earlier answers. What is computed from released answers costs nothing."
)
_COVERS = "everything that was or will be released through this ledger, together, by anybody"
_FREE: dict[str, Any] = {
    "alone": {"epsilon": "0", "delta": "0", "priced_again": True},
    "original": {"pure_epsilon": "0", "renyi_order": None, "renyi": "0", "failure": "0"},
    "price": {"renyi_nano": 0, "pure_nano": 0, "failure_atto": 0},
}


def readable(question: Any, facts: Any) -> bool:
    """Whether this is the record of a question that can be asked about a table with these facts."""
    try:
        asks = revive(question, catalogue())
        looked_at = asks.guarantee if hasattr(asks, "guarantee") else asks.sensitivity  # a quantile is a mechanism
        looked_at(revive(facts, catalogue()))
    except (SchemaError, *_UNREADABLE):
        return False
    return True


def _not_protected(opening: Body) -> list[str]:
    """What the promise does not cover, in sentences."""
    unit, replace_one = opening["identity"]["unit"], opening["identity"]["relation"] == "replace-one"
    own = "The rows of one person together, if somebody has several: each row counts as a person of its own."
    if unit is not None:
        own = f"One person under two values of {unit!r}: each value counts as a person of its own."
    return [
        *(["Everything: a testing ledger accepts noise that can be foreseen."] if opening["testing"] else []),
        *(["How many persons there are: replace-one makes that number public."] if replace_one else []),
        own,
        "Several persons together, such as a family: the promise for k persons is about k times weaker.",
        "What follows about a person from facts about everybody: it could be learned without that person's rows.",
        "What is released about the same people without this ledger: such losses add up.",
        "What the schema declares: the columns, their bounds and levels.",
        "What was asked, when, and what it cost.",
        "How long an answer took, where somebody can measure it.",
        "The rows themselves, from whoever can read their file or run programs on them.",
    ]
