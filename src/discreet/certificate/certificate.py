"""Release certificates: what one entry of a ledger promises, for people who do not have the ledger.

    made = certificate(ledger, released.entry)
    print(made.to_json())
    check(Certificate.read(text), ledger)          # or against the lines of `discreet ledger export`

A certificate is a function of the ledger's entries up to its head, the last entry at the time it was made, so
whoever has the ledger can make it again and compare every field: that is what `check` does. It is not signed. Its
digest finds damage, and is a short name for it; anybody can make another certificate with another digest. What it
proves and what it does not: docs/certificates.md.

Numbers that are not whole are texts: fractions are exact, decimals are rounded up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from discreet import exact
from discreet.certificate.export import different, of_an_export, read_export
from discreet.certificate.statement import FORMAT, gathered, in_ledger, readable, stated
from discreet.errors import LedgerMismatch, ParameterError
from discreet.ledger import Ledger
from discreet.ledger.state import Body
from discreet.records import Json, canonical, digest

_ROUNDED = ("alone.epsilon", "original.renyi")  # floats: another machine may differ in their last bits


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate; `record` is what it says."""

    text: str

    @staticmethod
    def of(said: dict[str, Any]) -> Certificate:
        """A certificate that says this; the digest is added."""
        return Certificate(canonical({**said, "digest": digest(said)}))

    @staticmethod
    def read(text: str) -> Certificate:
        """The certificate in this text. Whether it is true is for `check` to say."""
        try:
            found = json.loads(text, object_pairs_hook=different)
            spelled = canonical(found)
        except (ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, ParameterError) else "it is not JSON"
            raise ParameterError(f"this is no certificate: {why}") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            what = found.get("format") if isinstance(found, dict) else None
            raise ParameterError(f"this is no certificate: expected the format {FORMAT!r}, found {_short(what)}")
        return Certificate(spelled)

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.text, object_pairs_hook=different))

    def to_json(self) -> str:
        """For files and eyes; the digest is of the canonical spelling (sorted keys, no spaces) without itself."""
        return json.dumps(self.record, indent=2, ensure_ascii=True)

    def __str__(self) -> str:
        said = self.record
        warning = f"{said['warning']}. " if said["warning"] else ""
        alone, what = said["alone"], said["asked"] or said["does"].rstrip(".")
        epsilon = "nothing" if alone["epsilon"] is None else f"epsilon {float(alone['epsilon']):.4g}"
        return (
            f"{warning}entry {said['entry']} of the ledger of {said['table']!r}: {what}. Alone it promises {epsilon} "
            f"at delta {exact.shown(exact.number(delta=alone['delta']))}. Its state: {said['status']}"
        )


def certificate(ledger: Ledger, entry: int, *, with_answer: bool = False) -> Certificate:
    """The certificate of a charge (a release, a fitted model, a conversation) or of an answer that a session gave.

    with_answer  put the released value in it, and not only its digest
    """
    if ledger.rolled_back():
        raise LedgerMismatch("this ledger does not agree with its high-water mark: reconcile it, then certify")
    return Certificate.of(stated(in_ledger(ledger, entry), with_answer=with_answer))


def certified_by(ledger: Ledger, entry: int, entry_hash: str) -> Certificate:
    """The certificate of an entry with this hash; another ledger is refused."""
    made = certificate(ledger, entry)
    if made.record["entry_hash"] != entry_hash:
        raise LedgerMismatch("this was released through another ledger")
    return made


def check(claimed: Certificate, against: Ledger | Iterable[str]) -> str:
    """Compare every field with a ledger, or with the lines of an export; says what was checked and what was not.

    LedgerMismatch names the first fields that differ; LedgerCorrupt says that the ledger or the export is damaged.
    """
    if not isinstance(claimed, Certificate):
        raise ParameterError(f"expected a Certificate, found a {type(claimed).__name__}: Certificate.read(text)")
    if isinstance(against, Ledger):
        against.verify()
        return _checked(claimed, list(against.entries()), _IN_THE_LEDGER)
    if isinstance(against, str):
        raise ParameterError("expected a Ledger or the lines of an export, found one text: give text.splitlines()")
    bodies, whole = read_export(against)
    with of_an_export():
        if whole:
            return _checked(claimed, bodies, _IN_THE_EXPORT)
        return _checked(claimed, _filled_in(bodies, claimed), _IN_THE_REDACTED_EXPORT)


_NEVER = (
    "who made the certificate (it is not signed), that the program was discreet's own, and that the rows were what the "
    "schema says."
)
_IN_THE_LEDGER = (
    "Checked: every entry, hash and sum of the ledger and its high-water mark; that it has this entry and this head; "
    f"every field of the certificate, {{price}}. Not checked: {_NEVER}"
)
_IN_THE_EXPORT = (
    "Checked: every entry, hash and sum of the export; that it has this entry and this head; every field of the "
    "certificate, {price}. Not checked: that the export goes as far as the ledger does, and the ledger's high-water "
    f"mark; {_NEVER}"
)
_IN_THE_REDACTED_EXPORT = (
    "Checked: that the exported entries name each other's hashes without a gap, and that those from which nothing was "
    "left out have the hash they claim; that they contain this entry and this head; every field of the certificate as "
    "far as the export shows it, {price}; that its words about what was asked follow from its own record. Not checked: "
    "what the export leaves out, that is, what was asked, for which there is the certificate's word only, and so "
    "whether this entry has the hash it claims (an export with --everything shows it, and so does the ledger); that "
    f"the export goes as far as the ledger does, the sums, the high-water mark; {_NEVER}"
)
_PRICED = "the price computed again from the mechanism and the schema"
_AS_CHARGED = "the price as it was charged: it was not computed again, since this version cannot read the mechanism"
_NO_PRICE = "that an answer of a session costs nothing"


# Comparing.


def _checked(claimed: Certificate, bodies: Sequence[Body], words: str) -> str:
    said = claimed.record
    own, head = said.pop("digest", None), said.get("head")
    if bodies[0]["id"] != said.get("ledger"):
        raise LedgerMismatch(f"this certificate is of the ledger {_short(said.get('ledger'))}, not {bodies[0]['id']}")
    found = gathered(bodies, said.get("entry"), head.get("entry") if isinstance(head, dict) else None)
    expected = json.loads(canonical(stated(found, with_answer="answer" in said)))
    price = _price_words(expected)
    if words == _IN_THE_REDACTED_EXPORT and price == _AS_CHARGED:
        _refuse_unreadable(expected)
    differing = list(_differences(said, expected, "")) or _differences(own, digest(said), "digest")
    shown = [f"{name} is {_short(theirs)}, expected {_short(ours)}" for name, theirs, ours in differing]
    if shown:
        more = f"; and {len(shown) - 3} more" if len(shown) > 3 else ""
        raise LedgerMismatch(f"the certificate is not what the entries say: {'; '.join(shown[:3])}{more}")
    return f"The certificate of entry {said['entry']} is true to the entries. {words.format(price=price)}"


def _price_words(expected: dict[str, Any]) -> str:
    """What was done about the price."""
    if expected["status"] == "said":
        return _NO_PRICE
    return _PRICED if expected["alone"]["priced_again"] else _AS_CHARGED


def _refuse_unreadable(expected: dict[str, Any]) -> None:
    """Nothing but its price ties the certificate's record to a redacted entry: a record without one could say anything.

    Mechanisms under other names are somebody else's, which no version can read.
    """
    from discreet.catalogue import CATALOGUE

    name = expected["mechanism"]["name"]
    if name in CATALOGUE:
        raise LedgerMismatch(
            f"the certificate's record of {_short(name)} in entry {expected['entry']} cannot be priced again, so a "
            "redacted export proves nothing about it: check it against the ledger or an export with --everything"
        )


_ABSENT = object()


def _differences(said: Any, expected: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ, each by its whole name."""
    if isinstance(said, dict) and isinstance(expected, dict):
        for key in sorted(said.keys() | expected.keys()):
            place = f"{path}.{key}" if path else key
            yield from _differences(said.get(key, _ABSENT), expected.get(key, _ABSENT), place)
    elif isinstance(said, list) and isinstance(expected, list) and len(said) == len(expected):
        for number, (one, other) in enumerate(zip(said, expected, strict=True), 1):
            yield from _differences(one, other, f"{path}.{number}")
    elif type(said) is not type(expected) or (said != expected and not (path in _ROUNDED and _near(said, expected))):
        yield path, said, expected


def _near(one: str, other: str) -> bool:
    """Two floats that may come from two machines."""
    try:
        return repr(float(one)) == one and math.isclose(float(one), float(other), rel_tol=1e-12)
    except ValueError:
        return False


def _filled_in(bodies: list[Body], claimed: Certificate) -> list[Body]:
    """A redacted export with the certificate's own mechanism or question, if that fits what the export shows of it."""
    said = claimed.record
    entry, mechanism = said.get("entry"), said.get("mechanism")
    if type(entry) is not int or not 1 <= entry <= len(bodies) or bodies[entry - 1]["kind"] not in _FILLED:
        return bodies
    body = bodies[entry - 1]
    shown = body["mechanism"] if body["kind"] == "charge" else {}
    if not isinstance(mechanism, dict) or not _shows(shown, mechanism):
        raise LedgerMismatch(f"the certificate's mechanism is not the one that entry {entry} of the export shows")
    if body["kind"] == "said" and not readable(mechanism, _facts_of(bodies, body)):
        raise LedgerMismatch(f"the certificate's mechanism is no question about the table of entry {entry}")
    return [*bodies[: entry - 1], {**body, _FILLED[body["kind"]]: mechanism}, *bodies[entry:]]


def _facts_of(bodies: Sequence[Body], body: Body) -> Json:
    found = (each for each in bodies if each["kind"] == "facts" and each["facts_hash"] == body["facts_hash"])
    return next((each["facts"] for each in found), None)


_FILLED = {"charge": "mechanism", "said": "question"}


def _shows(redacted: Json, whole: Json) -> bool:
    """Whether the first is the second with some keys left out."""
    if isinstance(redacted, dict) and isinstance(whole, dict):
        return all(key in whole and _shows(each, whole[key]) for key, each in redacted.items())
    if isinstance(redacted, list) and isinstance(whole, list):
        return len(redacted) == len(whole) and all(map(_shows, redacted, whole))
    return type(redacted) is type(whole) and redacted == whole


def _short(value: object) -> str:
    """Somebody's value in a message: short, and on one line."""
    if value is _ABSENT:
        return "absent"
    text = ascii(value)
    return text if len(text) <= 70 else text[:67] + "..."
