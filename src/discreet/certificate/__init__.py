"""Release certificates: what one entry of a ledger promises, for people who do not have the ledger.

    made = certificate(ledger, released)           # or the number of an entry
    print(made.to_json())
    check(Certificate.read(text), ledger)          # or against the lines of `discreet ledger export`

A certificate is a function of the ledger's entries up to its head, the last entry at the time it was made, so a holder
of the ledger can make it again and compare every field: that is what `check` does. It is not signed. Its digest finds
damage, and is a short name for it; anybody can make another certificate with another digest. What it proves and what it
does not: docs/certificates.md.

Numbers that are not whole are texts: fractions are exact, decimals are rounded up.

statement.py has what a certificate says, a function of the entries it speaks about; export.py reads what
`discreet ledger export` writes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.certificate.export import read_export, shape_errors
from discreet.certificate.statement import FORMAT, Evidence, catalogue, readable
from discreet.core import Json, LedgerMismatch, ParameterError, Sentence, canonical, digest, exact, unique_keys
from discreet.ledger import Body, Ledger

_ROUNDED = ("alone.epsilon", "original.renyi")  # floats: another machine may differ in their last bits


class Charged(Protocol):
    """Something that a ledger charged: the number of its entry, and the entry's hash."""

    @property
    def entry(self) -> int: ...
    @property
    def hash(self) -> str: ...


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Sentence):
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
            parsed = json.loads(text, object_pairs_hook=unique_keys)
            spelled = canonical(parsed)
        except ParameterError as error:
            raise ParameterError(f"this is no certificate: {error}") from None
        except (ValueError, RecursionError):
            raise ParameterError("this is no certificate: it is not JSON") from None
        found = parsed.get("format") if type(parsed) is dict else None
        if found != FORMAT:
            raise ParameterError(f"this is no certificate: expected the format {FORMAT!r}, found {_short(found)}")
        return Certificate(spelled)

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.text, object_pairs_hook=unique_keys))

    def to_json(self) -> str:
        """For files and eyes; the digest is of the canonical spelling (sorted keys, no spaces) without itself."""
        return json.dumps(self.record, indent=2, ensure_ascii=True)

    @shape_errors()  # whoever wrote it may have written anything
    def __str__(self) -> str:
        said = self.record
        warning = f"{said['warning']}. " if said["warning"] else ""
        alone, what = said["alone"], said["asked"] or said["does"].rstrip(".")
        what = f"{said['schema']['table']}, {what}" if "table" in said["schema"] else what
        epsilon = "nothing" if alone["epsilon"] is None else f"epsilon {float(alone['epsilon']):.4g}"
        return (
            f"{warning}entry {said['entry']} of the ledger of {said['table']!r}: {what}. Alone it promises {epsilon} "
            f"at delta {exact.shown(exact.number(delta=alone['delta']))}. Its state: {said['status']}"
        )


def certificate(ledger: Ledger, charge: int | Charged, *, with_answer: bool = False) -> Certificate:
    """The certificate of a charge (a release, a fitted model, a conversation) or of an answer that a session gave.

    charge       what `release` returned, a model's `guarantee_`, or the number of an entry
    with_answer  put the released value in it, and not only its digest
    """
    if ledger.rolled_back():
        raise LedgerMismatch("this ledger does not agree with its high-water mark: reconcile it, then certify")
    entry_hash = getattr(charge, "hash", None)
    evidence = Evidence.of(ledger, getattr(charge, "entry", charge))
    if isinstance(entry_hash, str) and evidence.body["hash"] != entry_hash:
        raise LedgerMismatch("this was released through another ledger")
    return Certificate.of(evidence.statement(with_answer=with_answer))


def check(claimed: Certificate, against: Ledger | Iterable[str]) -> str:
    """Compare every field with a ledger, or with the lines of an export; says what was checked and what was not.

    LedgerMismatch names the first fields that differ; LedgerCorrupt says that the ledger or the export is damaged.
    """
    if not isinstance(claimed, Certificate):
        raise ParameterError(f"expected a Certificate, found a {type(claimed).__name__}: Certificate.read(text)")
    if isinstance(against, Ledger):
        against.verify()
        return _compare(claimed, list(against.entries()), _IN_THE_LEDGER)
    if isinstance(against, str):
        raise ParameterError("expected a Ledger or the lines of an export, found one text: give text.splitlines()")
    bodies, whole = read_export(against)
    with shape_errors():
        if whole:
            return _compare(claimed, bodies, _IN_THE_EXPORT)
        return _compare(claimed, complete(bodies, claimed), _IN_THE_REDACTED_EXPORT)


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


def _compare(claimed: Certificate, bodies: Sequence[Body], words: str) -> str:
    said = claimed.record
    own, head = said.pop("digest", None), said.get("head")
    if bodies[0]["id"] != said.get("ledger"):
        raise LedgerMismatch(f"this certificate is of the ledger {_short(said.get('ledger'))}, not {bodies[0]['id']}")
    evidence = Evidence.among(bodies, said.get("entry"), head.get("entry") if type(head) is dict else None)
    expected = json.loads(canonical(evidence.statement(with_answer="answer" in said)))
    price = _PRICED if expected["alone"]["priced_again"] else _AS_CHARGED
    if expected["status"] == "said":
        price = _NO_PRICE
    if words == _IN_THE_REDACTED_EXPORT and price == _AS_CHARGED and expected["mechanism"]["name"] in catalogue():
        # Nothing but its price ties the certificate's record to a redacted entry: a record without one could say
        # anything. Mechanisms under other names are not discreet's, and no version can read them.
        raise LedgerMismatch(
            f"the certificate's record of {_short(expected['mechanism']['name'])} in entry {expected['entry']} cannot "
            "be priced again, so a redacted export proves nothing about it: check it against the ledger or an export "
            "with --everything"
        )
    differing = list(_differences(said, expected, "")) or _differences(own, digest(said), "digest")
    shown = [f"{name} is {_short(theirs)}, expected {_short(ours)}" for name, theirs, ours in differing]
    if shown:
        more = f"; and {len(shown) - 3} more" if len(shown) > 3 else ""
        raise LedgerMismatch(f"the certificate is not what the entries say: {'; '.join(shown[:3])}{more}")
    return f"The certificate of entry {said['entry']} is true to the entries. {words.format(price=price)}"


_ABSENT = object()


def _differences(said: Any, expected: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ, each by its whole name. Floats may come from two machines."""
    if type(said) is not type(expected):
        yield path, said, expected
    elif type(said) is dict:
        for key in sorted(said.keys() | expected.keys()):
            place = f"{path}.{key}" if path else key
            yield from _differences(said.get(key, _ABSENT), expected.get(key, _ABSENT), place)
    elif type(said) is list and len(said) == len(expected):
        for number, (one, other) in enumerate(zip(said, expected, strict=True), 1):
            yield from _differences(one, other, f"{path}.{number}")
    elif said != expected:
        try:
            near = path in _ROUNDED and math.isclose(float(said), float(expected), rel_tol=1e-12)
            if not near or repr(float(said)) != said:
                yield path, said, expected
        except ValueError:
            yield path, said, expected


def complete(bodies: list[Body], claimed: Certificate) -> list[Body]:
    """A redacted export with the certificate's own mechanism or question, if that fits what the export shows of it."""
    entry, mechanism = claimed.record.get("entry"), claimed.record.get("mechanism")
    if type(entry) is not int or not 1 <= entry <= len(bodies) or bodies[entry - 1]["kind"] not in _ASKED:
        return bodies
    body = bodies[entry - 1]
    shown = body["mechanism"] if body["kind"] == "charge" else {}
    if type(mechanism) is not dict or not _shows(shown, mechanism):
        raise LedgerMismatch(f"the certificate's mechanism is not the one that entry {entry} of the export shows")
    known = (each for each in bodies if each["kind"] == "facts" and each["facts_hash"] == body["facts_hash"])
    facts = next((each["facts"] for each in known), None)
    if body["kind"] == "said" and not readable(mechanism, facts):
        raise LedgerMismatch(f"the certificate's mechanism is no question about the table of entry {entry}")
    return [*bodies[: entry - 1], {**body, _ASKED[body["kind"]]: mechanism}, *bodies[entry:]]


_ASKED = {"charge": "mechanism", "said": "question"}


def _shows(redacted: Json, whole: Json) -> bool:
    """Whether the first is the second with some keys left out."""
    if type(redacted) is dict and type(whole) is dict:
        return all(key in whole and _shows(each, whole[key]) for key, each in redacted.items())
    if type(redacted) is list and type(whole) is list:
        return len(redacted) == len(whole) and all(map(_shows, redacted, whole))
    return type(redacted) is type(whole) and redacted == whole


def _short(value: object) -> str:
    """A foreign value in a message: short, and on one line."""
    text = "absent" if value is _ABSENT else ascii(value)
    return text if len(text) <= 70 else text[:67] + "..."
