"""What a redacted export keeps to itself, and what verifying does not know."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.erm.descent import propose
from discreet.erm.feasible_sets import interval
from discreet.erm.features import Constant
from discreet.erm.losses import Custom
from discreet.erm.risk import Risk
from discreet.ledger.state import chained
from discreet.records import canonical
from discreet.rng import SeededRng
from tests.examples import MECHANISMS, table

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
