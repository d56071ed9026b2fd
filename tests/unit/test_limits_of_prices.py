"""Mistakes that could once be made without any test noticing: limits of prices, shares, redaction, exports, drafts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.certificate import certificate, check, read_export
from discreet.data import Dataset, Facts
from discreet.errors import LedgerCorrupt
from discreet.guarantee import Guarantee, renyi_to_epsilon
from discreet.ledger import Ledger
from discreet.ledger.state import GENESIS, chained
from discreet.records import canonical
from discreet.rng import Rng
from discreet.schema import draft
from tests.ledger_doubles import MIXED, Pure, people
from tests.unit.test_answering_adaptive import charges, opened

AVERAGE = "SELECT AVG(visits) FROM people WHERE sex = 'F'"


# What an answer may cost.


@pytest.mark.parametrize("budget", [dp.Budget(1, 1e-6), dp.Budget(1)], ids=["renyi", "pure"])
def test_a_limit_between_one_half_of_an_average_and_both_refuses_it(budget):
    session = opened(budget, alpha=0.1)
    price, (_, cap) = session.price(AVERAGE), session.budget()
    limited = dp.Session(session.table, session.ledger, alpha=0.1, max_price=Fraction(price - 1, cap))
    with pytest.raises(dp.BudgetExceeded, match="nothing was spent"):
        limited.ask(AVERAGE)
    assert charges(session) == []
    just = dp.Session(session.table, session.ledger, alpha=0.1, max_price=Fraction(price, cap))
    answer = just.ask(AVERAGE)
    assert answer.price <= price
    assert len(charges(session)) == 2  # an average is two charges, so a limit on the first alone is none


def test_a_limit_is_a_part_of_the_whole_budget_also_when_half_is_spent():
    session = opened(dp.Budget(1), alpha=0.1)
    dp.release(Pure(Fraction(1, 2)), session.table, ledger=session.ledger)
    question = "SELECT COUNT(*) FROM people WHERE sex = 'F'"
    price, (left, cap) = session.price(question), session.budget()
    assert left <= cap / 2
    limited = dp.Session(session.table, session.ledger, alpha=0.1, max_price=Fraction(price, cap))
    assert limited.ask(question).price == price


def test_an_average_of_which_one_half_fits_is_refused_and_nothing_is_charged():
    session = opened(dp.Budget(1), alpha=0.1)
    whole = session.price(AVERAGE)
    left = whole - whole // 4
    dp.release(Pure(1 - Fraction(left, 10**9)), session.table, ledger=session.ledger)
    before = list(session.ledger.entries())
    assert session.budget()[0] == left
    with pytest.raises(dp.BudgetExceeded):
        session.ask(AVERAGE)
    assert list(session.ledger.entries()) == before
    counted = session.ask("SELECT COUNT(visits) FROM people WHERE sex = 'F'")
    assert 0 < counted.price <= left  # one half did fit


# What a share of the budget is.


@pytest.mark.parametrize("part", ["1/3", "1/8"])
def test_a_share_is_of_what_is_left_for_failures_too(part):
    numbers = dp.Table({"x": list(range(1000))}, dp.Domain(x=dp.Number(0, 2**20, step=1)), name="people")
    book = Ledger.in_memory(MIXED, numbers)
    left = book.remaining().failure
    dp.interior_point(numbers, column="x", epsilon=dp.Share(part), method="prefix", ledger=book)
    used = left - book.remaining().failure
    assert 0 < used <= left * Fraction(part)
    assert used > left * Fraction(part) * Fraction(9, 10)


# What an export keeps to itself, and what it must add up to.


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


# What a certificate promises of a mechanism that it cannot read.


@dataclass(frozen=True, slots=True)
class Sometimes:
    """Costs rho, and the whole promise with some probability."""

    NAME: ClassVar[str] = "toy-sometimes/1"
    rho: Fraction
    failure: Fraction

    def guarantee(self, facts: Facts) -> Guarantee:
        free = Guarantee.of_approximate(Fraction(1, 10**6), delta=self.failure, neighbours=facts.neighbours)
        return Guarantee.of_zcdp(self.rho, neighbours=facts.neighbours) + free

    def run(self, data: Dataset, rng: Rng) -> Any:
        return rng.bits(60)


def test_the_probability_of_failing_is_taken_off_delta_before_epsilon_is_computed():
    book = Ledger.in_memory(MIXED, people())
    failure = Fraction(4, 10**7)
    mechanism = Sometimes(Fraction(1, 1000), failure)
    dp.release(mechanism, people(), ledger=book)
    said = certificate(book, 3).record
    assert said["alone"]["priced_again"] is False
    assert Fraction(said["original"]["failure"]) == failure
    order, renyi = float(Fraction(said["original"]["renyi_order"])), float(said["original"]["renyi"])
    epsilon = float(said["alone"]["epsilon"])
    assert epsilon == renyi_to_epsilon(order, renyi, MIXED.delta - failure)
    assert epsilon > renyi_to_epsilon(order, renyi, MIXED.delta)
    assert epsilon >= mechanism.guarantee(people().facts).epsilon(MIXED.delta)  # never less than what is proved
    check(certificate(book, 3), book)


# What a draft reads.


def test_a_draft_of_parquet_reads_the_footer_alone(tmp_path):
    path = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"age": [1, 2, 3] * 100, "sex": ["F", "M", "F"] * 100}), path)
    before = draft(path)
    _damage_values(path)
    with pytest.raises(OSError, match=r"."):
        pyarrow.parquet.read_table(path)
    assert draft(path) == before


def _damage_values(path: Path) -> None:
    """Flip every bit between the first four bytes and the footer."""
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + bytes(byte ^ 0xFF for byte in content[4:footer]) + content[footer:])


@pytest.mark.parametrize(
    "spelled", ["1e1_000_000_000", "1e\u0669\u0669\u0669\u0669\u0669\u0669\u0669\u0669\u0669", "1e-_9999999"]
)
def test_a_number_with_a_huge_exponent_is_refused_at_once_however_it_is_spelled(spelled):
    with pytest.raises(dp.ParameterError):
        dp.Budget(spelled)


def test_a_record_that_divides_by_zero_has_no_words():
    from discreet.describe import asked

    assert asked({"name": "laplace/1", "scale": "1/0", "query": {"name": "count/1"}}) == ""
