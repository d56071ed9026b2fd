"""What a redacted export keeps to itself, and what verifying does not know."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.certificate import read_export
from discreet.erm.descent import propose
from discreet.erm.feasible_sets import interval
from discreet.erm.features import Constant
from discreet.erm.losses import Custom
from discreet.erm.risk import Risk
from discreet.errors import LedgerCorrupt
from discreet.ledger import Ledger
from discreet.ledger.state import GENESIS, chained
from discreet.records import canonical
from discreet.rng import SeededRng
from tests.examples import MECHANISMS, table
from tests.ledger_doubles import Pure, people
from tests.unit.test_answering_adaptive import charges, opened

DOMAIN = dp.Domain(age=dp.Number(0, 99, step=1), town=dp.Category("Canary Wharf", "elsewhere"))


def asked():
    table = dp.Table({"age": [30, 70] * 50, "town": ["elsewhere"] * 100}, DOMAIN, name="people")
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    old = dp.Between("age", 65, 99) & dp.Equals("town", "Canary Wharf")
    dp.release(dp.Laplace(dp.Count(old), 40), table, ledger=ledger, memo="a secret memo", request="a secret request")
    dp.Session(table, ledger, alpha="0.9").ask("SELECT COUNT(*) FROM people WHERE age >= 65")
    dp.Mean(epsilon="0.1", ledger=ledger).fit(table, "age")
    return ledger


def test_what_was_asked_by_whom_is_nowhere_in_a_redacted_export():
    lines = "\n".join(line for line in asked().export() if json.loads(line)["kind"] != "facts")
    for word in ("Canary", "age", "town", "secret", "COUNT"):
        assert word not in lines


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
def test_a_redacted_charge_of_any_mechanism_names_no_column_and_no_level(mechanism):
    data = table("replace-one")
    ledger = dp.Ledger.in_memory(dp.Budget(1000, 0.9), data.identity, testing=True)
    dp.release(mechanism, data, ledger=ledger, rng=SeededRng(1))
    (line,) = (line for line in ledger.export() if json.loads(line)["kind"] == "charge")
    told = list(texts(json.loads(line)["mechanism"]))
    assert all(re.fullmatch("-?[0-9]+/[0-9]+", each) for each in told), (
        told
    )  # a level "1/2" is spelled with a backslash
    assert json.loads(line)["mechanism"]["name"] == type(mechanism).NAME  # what it was, and its numbers, are public


def texts(value):
    """Every text inside a record but the names of records."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from () if key == "name" else texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("charge", {"memo", "request", "who", "process", "nonce"}),
        ("said", {"meaning", "question", "nonce"}),
    ],
)
def test_a_redacted_entry_has_no_field_that_tells_who_asked_or_what(kind, secret):
    ledger = asked()
    of_kind = ([json.loads(line) for line in ledger.export(redact=cut)] for cut in (True, False))
    seen, whole = ([body for body in bodies if body["kind"] == kind] for bodies in of_kind)
    assert len(seen) == len(whole) > 0
    for cut, body in zip(seen, whole, strict=True):
        assert set(body) - set(cut) >= secret & set(body)
    assert secret <= set().union(*whole)


def test_a_guessed_question_cannot_be_confirmed_by_its_hash():
    ledger = asked()
    for line, whole in zip(ledger.export(), ledger.export(redact=False), strict=True):
        seen, known = json.loads(line), json.loads(whole)
        if seen["kind"] in ("charge", "said"):
            guess = {key: value for key, value in {**known, **seen}.items() if key not in ("hash", "seq", "nonce")}
            assert "nonce" not in seen
            assert chained(known["previous"], canonical(guess).encode()) != known["hash"]
            right = {**guess, "nonce": known["nonce"], "mechanism": known.get("mechanism")}
            if seen["kind"] == "said":
                del right["mechanism"]
            assert chained(known["previous"], canonical(right).encode()) == known["hash"]  # so the nonce decides


def test_a_release_with_somebody_s_own_function_is_sound_and_not_priced_again():
    table = dp.Table({"age": [30, 70] * 50, "town": ["elsewhere"] * 100}, DOMAIN, name="people")
    ledger = dp.Ledger.in_memory(dp.Budget(5, "1e-6"), table)
    own = Custom(lambda w, row: w - row["age"] / 100, bound=Fraction(1, 2), dimension=1, label="mine")
    risk = Risk(own, Constant(), "", interval(0, 1))
    mechanism = propose(risk, facts=table.facts, funds=dp.Funds.of(dp.Budget(1, "1e-6")))
    got = dp.release(mechanism, table, ledger=ledger)
    assert ledger.verify(CATALOGUE) == (got.entry,)


def test_a_redacted_export_names_no_column_of_a_learned_rule():
    session = opened(dp.Budget(10, 1e-6))
    dp.BoxClassifier(epsilon=1, ledger=session.ledger).fit(session.table, "sex", features=["age"])
    (whole,) = (each["mechanism"] for each in charges(session))
    assert "age" in json.dumps(whole)
    assert any("age" in value for value in whole.values() if isinstance(value, list))
    lines = [line for line in session.ledger.export() if json.loads(line)["kind"] == "charge"]
    for word in ("age", "sex", '"F"', '"M"'):
        assert word not in "".join(lines)


def rehashed(bodies: list[dict[str, Any]]) -> list[str]:
    """An export in which every entry has the hash it claims, whatever it says."""
    lines, last = [], GENESIS
    for body in bodies:
        inner = {key: value for key, value in body.items() if key not in ("seq", "hash")} | {"previous": last}
        last = chained(last, canonical(inner).encode())
        lines.append(canonical({**inner, "seq": body["seq"], "hash": last}))
    return lines


def test_an_export_whose_charges_exceed_the_caps_is_damaged_though_its_hashes_are_right():
    book = Ledger.in_memory(dp.Budget(1), people())
    for _ in range(2):
        dp.release(Pure(Fraction(1, 2)), people(), ledger=book)
    bodies = [json.loads(line) for line in book.export(redact=False)]
    assert read_export(rehashed(bodies))[1] is True
    last = next(body for body in reversed(bodies) if body["kind"] == "charge")
    last["price"]["pure"] += 1
    with pytest.raises(LedgerCorrupt, match=f"entry {last['seq']} .*within the caps"):
        read_export(rehashed(bodies))
