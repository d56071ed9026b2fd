"""What a redacted export keeps to itself, and what verifying does not know."""

from __future__ import annotations

import json
from fractions import Fraction

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.erm.descent import propose
from discreet.erm.features import Constant
from discreet.erm.losses import Custom
from discreet.erm.risk import Risk
from discreet.erm.sets import interval
from discreet.ledger.state import chained
from discreet.records import canonical

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
    mechanism = propose(risk, facts=table.facts, admits=dp.within(dp.Budget(1, "1e-6"), facts=table.facts))
    got = dp.release(mechanism, table, ledger=ledger)
    assert ledger.verify(CATALOGUE) == (got.entry,)
