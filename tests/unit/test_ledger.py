"""The ledger alone: integers, books, the chain, the mark, the file."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from discreet.data import Domain, Identity, Number, Table
from discreet.errors import BudgetExceeded, LedgerMismatch, LedgerUnavailable, ParameterError
from discreet.funds import Caps, Price, caps_of, price_of
from discreet.guarantee import Budget, Guarantee, Neighbours
from discreet.ledger import Ledger
from discreet.ledger.charging import Purchase, charge
from discreet.ledger.state import State, advance, row_of
from discreet.records import record
from discreet.release import converse, release
from tests.ledger_doubles import (
    CATALOGUE,
    DOMAIN,
    MIXED,
    PURE,
    TENTH,
    Approximate,
    Guess,
    Pure,
    Zcdp,
    fill,
    made,
    opening,
    people,
    rows_of,
)

# Prices and books.


def test_ten_charges_of_a_tenth_fill_a_budget_of_one():
    ledger = Ledger.in_memory(PURE, people())
    for _ in range(10):
        release(Pure(0.1), people(), ledger=ledger)
    before = ledger.spent()
    with pytest.raises(BudgetExceeded) as refused:
        release(Pure(0.1), people(), ledger=ledger)
    assert ledger.spent() == before
    assert before.pure == 10**9
    assert refused.value.fits == "It takes 10 % of the budget, and 0 % is left. Nothing fits any more."
    assert "pure epsilon 0.1" in refused.value.asked


def test_a_pure_price_is_exact_and_rounded_up_once():
    of = lambda epsilon: price_of(Guarantee.of_pure(epsilon, neighbours="replace-one"), None)  # noqa: E731
    assert of("0.1") == Price(None, 10**8, 0)
    assert of(Fraction(1, 3)).pure == 333_333_334
    assert of(Fraction(1, 10**9)).pure == 1
    assert of(Fraction(10**9 + 1, 10**18)).pure == 2


@pytest.mark.parametrize("epsilon", [5e-324, 1e-320, Fraction(1, 10**400), 1e-12])
def test_the_smallest_charge_costs_one_unit(epsilon):
    ledger = Ledger.in_memory(MIXED, people())
    for count in range(1, 4):
        release(Pure(epsilon), people(), ledger=ledger)
        assert ledger.spent().pure == count
        assert ledger.spent().renyi >= count


def test_a_renyi_price_is_above_the_float_it_stands_for():
    guarantee = Guarantee.of_zcdp(Fraction(1, 7), neighbours="replace-one")
    price = price_of(guarantee, Fraction(23))
    assert 1 <= price.renyi - Fraction(guarantee.at(23.0)) * 10**9 < 2
    assert price.pure is None


def test_huge_prices_are_integers_or_infinite_and_never_wrap():
    of = lambda epsilon: price_of(Guarantee.of_pure(epsilon, neighbours="replace-one"), Fraction(23))  # noqa: E731
    assert of(10**300).pure == 10**309
    assert of(10**300).renyi >= of(10**200).renyi > 10**200
    assert of(Fraction(10**5000)).pure is None


def test_caps_are_rounded_down_and_follow_from_the_budget():
    order, caps = caps_of(Budget(Fraction(10**9 * 3 + 1, 3 * 10**9), 1e-6), Fraction(1, 2))
    assert (order, caps.pure, caps.failure) == (23, 10**9, 5 * 10**11)
    assert 0.5274 < caps.renyi / 10**9 < 0.5275
    assert caps_of(Budget(1), Fraction(1, 2)) == (None, Caps(None, 10**9, 0))


def test_a_share_of_delta_for_failures_costs_little():
    whole = caps_of(MIXED, Fraction(0))[1].renyi
    half = caps_of(MIXED, Fraction(1, 2))[1].renyi
    assert whole == pytest.approx(0.53583e9, rel=1e-4)
    assert 0.94 < half / whole < 1


def test_either_book_admits_and_both_are_charged():
    ledger = Ledger.in_memory(MIXED, people())
    assert fill(ledger, TENTH) == 10  # 7 by the Renyi book, then by the pure one
    assert ledger.spent().renyi > ledger.spent().caps.renyi
    assert not ledger.admits(Pure(Fraction(1, 10**9)))
    assert not ledger.admits(Zcdp(Fraction(1, 10**9)))


def test_many_small_releases_fit_by_the_renyi_book_beyond_the_pure_one():
    ledger = Ledger.in_memory(MIXED, people())
    small = Pure(Fraction(1, 20))
    promised = ledger.remaining().how_many(small)
    assert promised == fill(ledger, small) > 20
    assert ledger.spent().pure > ledger.spent().caps.pure
    assert ledger.remaining().how_many(small) == 0


def test_an_infinite_price_closes_its_book_for_good():
    ledger = Ledger.in_memory(MIXED, people())
    release(Zcdp(Fraction(1, 100)), people(), ledger=ledger)
    assert ledger.spent().pure is None
    assert ledger.remaining().pure == 0
    assert fill(ledger, TENTH) < 7


def test_without_delta_there_is_only_the_pure_book():
    ledger = Ledger.in_memory(PURE, people())
    assert ledger.remaining().renyi is None
    assert not ledger.admits(Zcdp(Fraction(1, 10**6)))
    assert not ledger.admits(Approximate(Fraction(1, 10), Fraction(1, 10**18)))
    assert "Renyi" not in str(ledger.remaining())


def test_failures_add_up_to_their_cap_and_no_further():
    ledger = Ledger.in_memory(MIXED, people())
    one = Approximate(Fraction(1, 1000), Fraction(1, 10**7))
    assert ledger.remaining().how_many(one) == 5 == fill(ledger, one)
    assert ledger.admits(Pure(Fraction(1, 1000)))


def test_a_million_tiny_charges_lose_nothing():
    state = State()
    advance(state, row_of(state, opening(Budget(1))))
    price, count = Price(None, 1, 0), 1_000_000
    for _ in range(count):
        assert state.admits(price)
        state.spent = state.spent + price
    assert state.spent.pure == count


def test_five_thousand_charges_on_disk_lose_nothing(tmp_path):
    """A hundred to a transaction, to spare the disk; the slow test makes each one durable by itself."""
    ledger = made(tmp_path, MIXED)
    body = _one_charge(ledger)
    ledger.close()
    ledger = Ledger.open(tmp_path / "people.ledger")
    for _ in range(50):
        with ledger.store.writing() as writer:
            for _ in range(100):
                writer.append("charge", body)
    ledger.close()
    again = Ledger.open(tmp_path / "people.ledger")
    assert again.spent().pure == 5001 * body["price"]["pure"]
    assert again.spent().renyi == 5001 * body["price"]["renyi"]


@pytest.mark.slow
def test_five_thousand_durable_charges_lose_nothing(tmp_path):
    ledger, table = made(tmp_path, MIXED), people()
    mechanism = Pure(Fraction(1, 10**6))
    purchase = Purchase(record(mechanism), mechanism.guarantee(table.facts), table, "release")
    price = ledger.price(purchase.guarantee)
    for _ in range(5000):
        charge(ledger, purchase)
    ledger.close()
    again = Ledger.open(tmp_path / "people.ledger")
    assert (again.spent().pure, again.spent().renyi) == (5000 * price.pure, 5000 * price.renyi)


def _one_charge(ledger: Ledger) -> dict:
    """The fields of a charge that was made."""
    release(Pure(Fraction(1, 10**6)), people(), ledger=ledger)
    (body,) = [entry for entry in ledger.entries() if entry["kind"] == "charge"]
    return {key: value for key, value in body.items() if key not in ("seq", "hash")}


# Allowances.


def test_an_allowance_is_a_share_of_every_cap():
    ledger = Ledger.in_memory(PURE, people())
    ledger.allow("ana", share=Fraction(3, 10))
    for _ in range(3):
        release(TENTH, people(), ledger=ledger, allowance="ana")
    with pytest.raises(BudgetExceeded, match="ana"):
        release(TENTH, people(), ledger=ledger, allowance="ana")
    assert ledger.remaining(allowance="ana").pure == 0
    assert ledger.remaining().pure == 7 * 10**8
    ledger.allow("ana", share=Fraction(1, 2))
    assert ledger.remaining(allowance="ana").how_many(TENTH) == 2


def test_allowances_together_cannot_exceed_the_budget():
    ledger = Ledger.in_memory(PURE, people())
    for name in ("ana", "bob"):
        ledger.allow(name, share=0.8)
    for _ in range(8):
        release(TENTH, people(), ledger=ledger, allowance="ana")
    assert ledger.remaining(allowance="bob").how_many(TENTH) == 2


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan"), None])
def test_a_share_outside_zero_to_one_is_refused(share):
    with pytest.raises(ParameterError, match="share"):
        Ledger.in_memory(PURE, people()).allow("ana", share=share)


# The table it belongs to.


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "others"}, "others"),
        ({"neighbours": "add-remove"}, "add-remove"),
        ({"unit": "person", "rows_per_unit": 1}, "person"),
        ({"unit": "person", "rows_per_unit": 2}, "2 rows per person"),
    ],
)
def test_another_table_is_refused_before_anything_is_spent(change, says):
    ledger = Ledger.in_memory(PURE, people())
    with pytest.raises(LedgerMismatch, match=says):
        release(TENTH, people(**change), ledger=ledger)
    assert ledger.spent().pure == 0


def test_another_size_under_replace_one_is_another_table():
    ledger = Ledger.in_memory(PURE, people())
    with pytest.raises(LedgerMismatch, match="5 persons, found 2"):
        release(TENTH, people([1, 2]), ledger=ledger)


def test_facts_may_change_with_the_domain_and_are_recorded_once():
    ledger, table = Ledger.in_memory(PURE, people()), people()
    narrower = type(table)({"age": [1, 2, 3, 4, 5]}, Domain(age=Number(0, 60, step=1)), name="people")
    for each in (narrower, narrower, table):
        release(TENTH, each, ledger=ledger)
    kinds = [entry["kind"] for entry in ledger.entries()]
    assert kinds.count("facts") == 2
    assert ledger.facts == narrower.facts
    ledger.verify(CATALOGUE)


def test_a_ledger_can_be_made_before_there_is_a_table(where):
    identity = Identity("people", Neighbours("replace-one"), None)
    ledger = Ledger.create(where, PURE, identity, size=5)
    assert ledger.facts is None
    with pytest.raises(ParameterError, match="facts"):
        ledger.admits(TENTH)
    assert ledger.admits(TENTH, facts=people().facts)
    with pytest.raises(LedgerMismatch):
        release(TENTH, people([1]), ledger=ledger)
    release(TENTH, people(), ledger=ledger)
    assert ledger.facts == people().facts


def test_a_file_has_one_ledger(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("age\n30\n40\n")
    table = Table(source, DOMAIN, name="people")
    first = Ledger.create(tmp_path / "first.ledger", PURE, table)
    with pytest.raises(LedgerMismatch, match="already"):
        Ledger.create(tmp_path / "second.ledger", PURE, table)
    assert not (tmp_path / "second.ledger").exists()
    with pytest.raises(LedgerMismatch, match="already"):
        Ledger.in_memory(PURE, table)
    other = Ledger.create(tmp_path / "other.ledger", PURE, table.identity)
    with pytest.raises(LedgerMismatch, match="another ledger"):
        release(TENTH, table, ledger=other)
    (tmp_path / "link.csv").symlink_to(source)
    linked = Table(tmp_path / "link.csv", DOMAIN, name="people")
    with pytest.raises(LedgerMismatch, match="already"):
        Ledger.create(tmp_path / "third.ledger", PURE, linked)
    release(TENTH, table, ledger=first)


def test_headers_and_sidecars_of_tables_that_differ_in_a_row_are_equal_bytes(tmp_path):
    found = []
    for last in (74, 75):
        folder = tmp_path / str(last)
        folder.mkdir()
        (folder / "people.csv").write_text(f"age\n30\n41\n{last}\n")
        table = Table(folder / "people.csv", DOMAIN, name="people")
        ledger = Ledger.create(
            folder / "people.ledger", MIXED, table, ledger_id="0" * 32, testing=True, now=lambda: "2026-01-01T00:00:00Z"
        )
        rows = rows_of(folder / "people.ledger")
        ledger.close()
        sidecar = (folder / "people.csv.discreet.json").read_bytes()
        found.append((rows, sidecar, (folder / "people.ledger").read_bytes()))
    assert found[0] == found[1]


def test_a_creation_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    source = tmp_path / "people.csv"
    source.write_text("age\n30\n40\n")
    table = Table(source, DOMAIN, name="people")

    def full(*arguments, **more):
        raise LedgerUnavailable("no space left")

    monkeypatch.setattr("discreet.ledger.mark.MarkFile.write_first", full)
    with pytest.raises(LedgerUnavailable):
        Ledger.create(tmp_path / "people.ledger", PURE, table)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["people.csv"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"path": "nowhere/people.ledger"}, "nowhere"),
        ({"failure_share": 1}, "failure_share"),
        ({"failure_share": -0.5}, "failure_share"),
        ({"size": 5}, "size"),
        ({"ledger_id": "../../etc", "testing": True}, "ledger_id"),
        ({"ledger_id": "0" * 32}, "ledger_id"),
        ({"budget": Budget(10**4500)}, "4000 digits"),
        ({"failure_share": Fraction(1, 10**4500)}, "4000 digits"),
        ({"budget": 1.0}, "Budget"),
    ],
)
def test_a_ledger_is_not_made_from_wrong_arguments(tmp_path, changes, says):
    arguments = {"path": "people.ledger", "budget": PURE, "table": people(), **changes}
    with pytest.raises(ParameterError, match=says):
        Ledger.create(tmp_path / arguments.pop("path"), arguments.pop("budget"), arguments.pop("table"), **arguments)
    assert list(tmp_path.iterdir()) == []


def test_every_file_is_for_its_owner_only(tmp_path):
    ledger = made(tmp_path)
    converse(Guess(), people(), ledger=ledger)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"people.ledger", "people.ledger-wal", "people.ledger.secret", ledger.id}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


# What is shown.


def test_an_export_leaves_out_what_was_said_unless_told(where):
    ledger = made(where)
    release(Pure(Fraction(1, 10), "label"), people(), ledger=ledger, request="canary-id", memo="canary-memo")
    redacted, whole = "\n".join(ledger.export()), "\n".join(ledger.export(redact=False))
    assert "canary" not in redacted
    assert "canary-id" in whole
    assert "canary-memo" in whole
    assert [json.loads(line)["seq"] for line in redacted.splitlines()] == [1, 2, 3, 4]


def test_a_whole_export_can_be_checked_by_hand():
    import hashlib

    ledger = Ledger.in_memory(PURE, people())
    release(TENTH, people(), ledger=ledger)
    previous = "0" * 64
    for line in ledger.export(redact=False):
        body = json.loads(line)
        claimed = body.pop("hash")
        body.pop("seq")
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256((previous + text).encode()).hexdigest() == claimed
        previous = claimed


def test_a_testing_ledger_says_so_everywhere(where):
    ledger = made(where, testing=True)
    assert "NOT PRIVATE" in repr(ledger)
    assert all("NOT PRIVATE" in line for line in ledger.export())
    assert Ledger.open(where).testing
    assert "NOT PRIVATE" not in repr(Ledger.in_memory(PURE, people()))


def test_books_speak_in_decimals():
    ledger = Ledger.in_memory(MIXED, people())
    release(TENTH, people(), ledger=ledger)
    assert "pure epsilon: 0.1 of 1 spent" in str(ledger.spent())
    assert "pure epsilon: 0.9 of 1 left" in str(ledger.remaining())
    with pytest.raises(ParameterError, match="remaining"):
        ledger.spent().how_many(TENTH)
    assert not math.isnan(ledger.remaining().failure)
