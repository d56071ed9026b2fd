"""Certificates: what they say, that every field is checked, and what an export can and cannot prove."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest

import discreet as dp
from discreet.certificate import Certificate, Evidence, certificate, check, complete, read_export
from discreet.data import Dataset, Facts
from discreet.erm.descent import Average, Descent
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import Constant
from discreet.erm.losses import Custom
from discreet.erm.risk import Risk
from discreet.errors import DiscreetError, LedgerCorrupt, LedgerMismatch, ParameterError
from discreet.guarantee import Guarantee, renyi_to_epsilon
from discreet.ledger import Ledger
from discreet.mechanisms import GaussianNoise
from discreet.query import Between, Count
from discreet.records import digest, record
from discreet.rehearsal import made_up
from discreet.release import converse, release
from discreet.rng import Rng, SeededRng
from discreet.session import Session
from tests.ledger_doubles import DOMAIN, MIXED, Failing, Guess, Pure, made, people

OLDER = dp.Laplace(Count(Between("age", 60, 120)), 40)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    """Entries 3 and 4 are a count, 5 is a conversation, closed by 6."""
    book = Ledger.in_memory(MIXED, people())
    release(OLDER, people(), ledger=book, memo="the memo")
    converse(dp.mechanisms.AboveThreshold(100, 200, 1), people(), ledger=book).close()
    return book


@pytest.fixture(scope="module")
def count(ledger) -> Certificate:
    return certificate(ledger, 3, with_answer=True)


def edited(claimed: Certificate, path: tuple[Any, ...], value: Any) -> Certificate:
    """The certificate with one field changed, and its digest made right again."""
    said = claimed.record
    del said["digest"]
    place = said
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return Certificate.of(said)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and value:
        for key, each in enumerate(value):
            yield from leaves(each, (*path, key))
    else:
        yield path, value


def another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else "another" if value is None else f"{value} "


# What it says.


def test_a_certificate_says_what_was_released_and_what_is_promised(ledger, count):
    said = count.record
    assert said["format"] == "discreet-certificate/1"
    assert (said["ledger"], said["entry"], said["table"]) == (ledger.id, 3, "people")
    assert said["asked"] == "how many rows where 60 <= age <= 120"
    assert "Laplace noise" in said["does"]
    assert said["mechanism"] == record(OLDER)
    assert said["original"]["pure_epsilon"] == "1/40"
    guarantee = OLDER.guarantee(people().facts)
    assert said["alone"] == {"epsilon": repr(guarantee.epsilon(1e-6)), "delta": "1/1000000", "priced_again": True}
    assert said["price"]["pure_nano"] == 25_000_000
    assert said["budget"]["epsilon"] == "1"
    assert (said["relation"], said["unit"], said["rows_per_unit"], said["size"]) == ("replace-one", "a row", 1, 5)
    assert said["schema_hash"] == digest(record(people().facts)) == digest(said["schema"])
    assert said["head"]["entry"] == 6
    assert (said["warning"], said["rehearsal"], said["status"]) == (None, False, "answered")
    assert "the memo" not in count.text


def test_the_answer_is_in_it_only_if_asked_for(ledger, count):
    without = certificate(ledger, 3).record
    stored = next(each["answer"] for each in ledger.entries() if each["kind"] == "answer")
    assert without["answer_hash"] == hashlib.sha256(stored.encode()).hexdigest() == count.record["answer_hash"]
    assert "answer" not in without
    assert count.record["answer"] == stored


def test_the_same_entry_and_head_make_the_same_bytes(ledger):
    assert certificate(ledger, 3) == certificate(ledger, 3)
    assert Certificate.read(certificate(ledger, 3).to_json()) == certificate(ledger, 3)


def test_what_is_not_protected_follows_from_the_relation_and_the_unit():
    several = people(neighbours="add-remove", unit="person", rows_per_unit=3)
    book = Ledger.in_memory(MIXED, several)
    release(dp.Laplace(Count(), 40), several, ledger=book)
    said = certificate(book, 3).record
    assert (said["relation"], said["unit"], said["rows_per_unit"], said["size"]) == ("add-remove", "person", 3, None)
    words = " ".join(said["not_protected"])
    assert "How many persons" not in words
    assert "under two values of 'person'" in words
    row_by_row = " ".join(certificate(_once(people()), 3).record["not_protected"])
    assert "How many persons" in row_by_row
    assert "if somebody has several" in row_by_row


def _once(table: dp.Table, **more: Any) -> Ledger:
    book = Ledger.in_memory(MIXED, table, **more)
    release(OLDER, table, ledger=book)
    return book


def test_a_testing_ledger_and_a_rehearsal_say_so():
    testing = _once(people(), testing=True)
    release(OLDER, people(), ledger=testing, rng=SeededRng(1))
    said = certificate(testing, 5).record
    assert said["warning"].startswith("NOT PRIVATE")
    assert said["not_protected"][0].startswith("Everything")
    assert str(certificate(testing, 5)).startswith("NOT PRIVATE")
    check(certificate(testing, 5), testing.export())
    check(certificate(testing, 5), testing.export(redact=False))
    assert certificate(_once(made_up(DOMAIN, name="people", people=5)), 3).record["rehearsal"] is True


def test_a_burned_charge_and_a_conversation_say_what_became_of_them():
    book = Ledger.in_memory(MIXED, people())
    with pytest.raises(DiscreetError):
        release(Failing(), people(), ledger=book)
    talk = converse(Guess(), people(), ledger=book)
    burned, still = certificate(book, 3), certificate(book, 5)
    assert burned.record["status"].startswith("burned")
    assert burned.record["answer_hash"] is None
    assert still.record["status"] == "a conversation that may still answer"
    talk.close()
    assert certificate(book, 5).record["status"] == "a conversation that has ended"
    for each in (burned, still, certificate(book, 5)):  # also the one that was made before the end
        check(each, book)


def test_a_sessions_answer_has_a_certificate_of_price_nothing():
    table = people([20 + each % 60 for each in range(400)])
    book = Ledger.in_memory(dp.Budget(10, 1e-6), table)
    Session(table, book, alpha="0.2").ask("SELECT COUNT(*) FROM people WHERE age >= 65")
    (said,) = (each["seq"] for each in book.entries() if each["kind"] == "said")
    made_of = certificate(book, said)
    assert made_of.record["price"] == {"renyi_nano": 0, "pure_nano": 0, "failure_atto": 0}
    assert made_of.record["asked"] == "how many rows where 65 <= age <= 120"
    assert made_of.record["answer_hash"] is not None
    for against in (book, book.export(), book.export(redact=False)):
        check(made_of, against)


def test_a_mechanism_of_somebody_elses_is_certified_by_its_price():
    book = Ledger.in_memory(MIXED, people())
    release(Pure(Fraction(1, 10)), people(), ledger=book)
    said = certificate(book, 3).record
    assert said["alone"]["priced_again"] is False
    assert 0.1 <= float(said["alone"]["epsilon"]) < 0.1000001
    assert said["does"] == "not one of discreet's own mechanisms"
    check(certificate(book, 3), book)


def test_a_fitted_model_is_certified_like_any_release():
    table = people([20 + each % 60 for each in range(400)])
    book = Ledger.in_memory(dp.Budget(10, 1e-6), table)
    dp.Median(epsilon=1, ledger=book).fit(table, "age")
    said = certificate(book, 3).record
    assert said["asked"] == "the 1/2-quantile of age"
    assert said["alone"]["priced_again"] is True


def test_only_charges_and_answers_of_sessions_have_certificates(ledger):
    for entry in (1, 2, 4, 6):
        with pytest.raises(ParameterError, match=f"entry {entry} is of kind"):
            certificate(ledger, entry)
    for entry in (0, 7, -1, True, "3"):
        with pytest.raises(ParameterError, match="entries 1 to 6"):
            certificate(ledger, entry)  # type: ignore[arg-type]


def test_a_release_makes_its_own_certificate_and_not_anothers(ledger):
    book, other = Ledger.in_memory(MIXED, people()), Ledger.in_memory(MIXED, people())
    got = release(OLDER, people(), ledger=book)
    assert certificate(book, got) == certificate(book, 3)
    release(OLDER, people(), ledger=other)
    with pytest.raises(LedgerMismatch, match="another ledger"):
        certificate(other, got)


def test_a_ledger_behind_its_mark_certifies_nothing(tmp_path):
    book = made(tmp_path, MIXED, state_dir=tmp_path / "state")
    release(OLDER, people(), ledger=book)
    (tmp_path / "state" / "marks" / book.id).unlink()
    with pytest.raises(LedgerMismatch, match="mark"):
        certificate(book, 3)
    with pytest.raises(LedgerCorrupt):
        check(Certificate.of({}), book)


# Checking.


def test_a_true_certificate_is_found_true_also_after_later_charges():
    book = _once(people())
    early = certificate(book, 3)
    release(OLDER, people(), ledger=book)
    found = check(Certificate.read(early.to_json()), book)
    assert found.startswith("The certificate of entry 3 is true")
    assert "not signed" in found
    assert "high-water mark" in check(early, book.export(redact=False))


def test_every_changed_field_is_found_and_named(ledger, count):
    exported, redacted = list(ledger.export(redact=False)), list(ledger.export())
    fields = [each for each in leaves(count.record) if each[0] not in (("digest",), ("format",))]
    assert len(fields) > 50
    for path, value in fields:
        claimed = edited(count, path, another(value))
        name = ".".join(each if isinstance(each, str) else str(each + 1) for each in path)
        for against in (ledger, exported):
            with pytest.raises(DiscreetError) as refused:
                check(claimed, against)
            assert name in str(refused.value) or path in (("ledger",), ("entry",), ("head", "entry")), path
        if path[:2] != ("mechanism", "query"):
            with pytest.raises(DiscreetError):
                check(claimed, redacted)


def test_a_field_too_many_or_too_few_is_named(ledger, count):
    for key in count.record.keys() - {"digest", "format", "answer", "ledger", "entry", "head"}:
        without = {name: value for name, value in count.record.items() if name not in (key, "digest")}
        with pytest.raises(LedgerMismatch, match=f"{key} is absent"):
            check(Certificate.of(without), ledger)
    with pytest.raises(LedgerMismatch, match="extra is 1, expected absent"):
        check(edited(count, ("extra",), 1), ledger)


def test_a_digest_that_is_not_its_own_is_named(ledger, count):
    said = {**count.record, "digest": "0" * 64}
    with pytest.raises(LedgerMismatch, match="digest"):
        check(Certificate.read(json.dumps(said)), ledger)


def test_an_epsilon_may_differ_in_its_last_bit_only(ledger, count):
    epsilon = float(count.record["alone"]["epsilon"])
    check(edited(count, ("alone", "epsilon"), repr(epsilon * (1 + 2e-16))), ledger)
    with pytest.raises(LedgerMismatch, match=r"alone.epsilon"):
        check(edited(count, ("alone", "epsilon"), repr(epsilon * (1 - 1e-9))), ledger)


def test_a_certificate_of_another_ledger_is_refused(count):
    with pytest.raises(LedgerMismatch, match="this certificate is of the ledger"):
        check(count, _once(people()))


@pytest.mark.parametrize(
    "text", ["", "no", "[]", "{}", '{"format": "discreet-certificate/2"}', "[" * 100_000, '{"format": NaN}']
)
def test_what_is_no_certificate_is_refused(text):
    with pytest.raises(ParameterError, match="no certificate"):
        Certificate.read(text)


@pytest.mark.parametrize("key", ["asked", "epsilon", "name"])
def test_a_certificate_in_which_a_key_stands_twice_is_refused(ledger, count, key):
    for text in (count.text, count.to_json()):
        twice = text.replace(f'"{key}":', f'"{key}": "what a person reads first", "{key}":', 1)
        assert twice != text
        with pytest.raises(ParameterError, match=f"no certificate: the key '{key}' occurs twice"):
            Certificate.read(twice)
        with pytest.raises(ParameterError, match="twice"):
            check(Certificate(twice), ledger)


def test_a_certificate_is_printed_without_computing_what_it_claims(count):
    with pytest.raises(ParameterError, match="digits"):
        str(edited(count, ("alone", "delta"), "1e-99999999"))


@pytest.mark.parametrize(
    ("place", "value"), [("alone", None), ("alone", {}), ("schema", 3), ("does", 7), ("schema", None)]
)
def test_what_is_printed_of_a_foreign_certificate_is_its_sentence_or_a_refusal(count, place, value):
    with pytest.raises(LedgerCorrupt, match="another shape"):
        str(edited(edited(count, ("asked",), ""), (place,), value))


def test_check_takes_a_certificate_and_a_ledger_or_lines(ledger, count):
    with pytest.raises(ParameterError, match="Certificate"):
        check(count.text, ledger)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="splitlines"):
        check(count, "\n".join(ledger.export()))


# Exports.


def test_a_redacted_export_says_what_it_cannot_show(ledger, count):
    found = check(count, ledger.export())
    assert "Not checked: what the export leaves out" in found
    assert "leaves out" not in check(count, ledger.export(redact=False))


def test_a_redacted_export_cannot_tell_queries_of_one_price_apart_and_the_ledger_can(ledger, count):
    other = edited(count, ("mechanism", "query", "where", "low"), "61/1")
    other = edited(other, ("asked",), "how many rows where 61 <= age <= 120")
    check(other, ledger.export())
    for against in (ledger, ledger.export(redact=False)):
        with pytest.raises(LedgerMismatch, match=r"mechanism.query.where.low"):
            check(other, against)


def forged(claimed: Certificate, mechanism: Any, redacted: list[str]) -> Certificate:
    """The certificate that follows from a redacted export and a record of one's own: every field is made to fit."""
    said = edited(claimed, ("mechanism",), mechanism)
    bodies = complete(read_export(redacted)[0], said)
    return Certificate.of(Evidence.among(bodies, said.record["entry"], len(bodies)).statement())


@pytest.mark.parametrize(
    "query",
    [
        {"name": "count/1", "column": ["what somebody would like to have asked"]},
        {"name": "count/1", "where": {"name": "equals/1", "column": "weather"}},
        {"name": "count/1", "where": {"name": "a-rule-of-nobody/1", "columns": ["weather"]}},
    ],
)
def test_a_record_that_no_version_can_read_is_refused_where_only_its_price_could_speak_for_it(ledger, count, query):
    redacted = list(ledger.export())
    false = forged(count, {"name": "laplace/1", "query": query, "scale": "40/1"}, redacted)
    assert false.record["alone"]["priced_again"] is False
    with pytest.raises(LedgerMismatch, match="cannot be priced again, so a redacted export proves nothing"):
        check(false, redacted)
    for where in ({"name": "equals/1", "column": "age", "value": "1/0"}, [[[]]], "age"):
        with pytest.raises(DiscreetError):
            check(edited(count, ("mechanism", "query", "where"), where), redacted)


def test_what_was_asked_must_follow_from_the_certificates_own_record(ledger, count):
    for against in (ledger.export(), ledger.export(redact=False), ledger):
        with pytest.raises(LedgerMismatch, match="asked is 'how is the weather'"):
            check(edited(count, ("asked",), "how is the weather"), against)


@pytest.mark.parametrize("question", [{"name": "weather/1", "columns": ["rain"]}, {"name": "count/1", "columns": [1]}])
def test_a_sessions_answer_is_to_a_question_about_its_table(question):
    table = people([20 + each % 60 for each in range(400)])
    book = Ledger.in_memory(dp.Budget(10, 1e-6), table)
    Session(table, book, alpha="0.2").ask("SELECT COUNT(*) FROM people WHERE age >= 65")
    said = certificate(book, next(each["seq"] for each in book.entries() if each["kind"] == "said"))
    assert "an answer of a session costs nothing" in check(said, book.export())
    undeclared = record(Count(Between("height", 60, 120)))
    for stranger in (question, undeclared):
        with pytest.raises(LedgerMismatch, match="no question about the table"):
            check(edited(said, ("mechanism",), stranger), book.export())


def test_the_words_about_the_price_are_about_what_was_done(ledger, count):
    own = Ledger.in_memory(MIXED, people())
    release(Pure(Fraction(1, 10)), people(), ledger=own)
    for book, claimed, says in (
        (ledger, count, "the price computed again from the mechanism and the schema"),
        (own, certificate(own, 3), "the price as it was charged: it was not computed again"),
    ):
        for against in (book, book.export(), book.export(redact=False)):
            assert says in check(claimed, against)


def test_another_mechanism_than_a_redacted_export_shows_is_refused(ledger, count):
    with pytest.raises(LedgerMismatch, match="mechanism"):
        check(edited(count, ("mechanism", "scale"), "41/1"), ledger.export())


def test_an_export_with_an_edited_or_missing_line_is_damaged(ledger, count):
    lines = list(ledger.export(redact=False))
    for place in range(len(lines) - 1):
        with pytest.raises((LedgerCorrupt, ParameterError)):
            check(count, [*lines[:place], *lines[place + 1 :]])
    for redact in (False, True):
        lines = list(ledger.export(redact=redact))
        for place, line in enumerate(lines):
            body = json.loads(line)
            if body["kind"] == "charge" and redact:
                continue
            body["time"] = "2000-01-01T00:00:00Z"
            with pytest.raises(LedgerCorrupt, match=f"entry {place + 1}"):
                check(count, [*lines[:place], json.dumps(body), *lines[place + 1 :]])


def test_a_price_that_was_lowered_in_a_redacted_export_is_found(ledger, count):
    lines = list(ledger.export())
    cheaper = lines[2].replace('"pure":25000000', '"pure":24000000')
    assert cheaper != lines[2]
    with pytest.raises(LedgerCorrupt, match="price"):
        check(count, [*lines[:2], cheaper, *lines[3:]])


def test_an_export_that_ends_before_the_head_does_not_do(ledger, count):
    with pytest.raises(LedgerMismatch, match="head is entry 6; there are only 4"):
        check(count, list(ledger.export())[:4])


@pytest.mark.parametrize("lines", [[], [""], ["no"], ["[]"], ['{"seq": 1}'], ["[" * 100_000]])
def test_what_is_no_export_is_refused(count, lines):
    with pytest.raises(ParameterError, match="export"):
        check(count, lines)


def test_an_export_of_another_shape_is_damaged_and_no_crash(ledger, count):
    lines = list(ledger.export())
    body = json.loads(lines[2])
    for key in ("price", "facts_hash", "mode", "mechanism", "time"):
        without = json.dumps({name: value for name, value in body.items() if name != key})
        with pytest.raises(DiscreetError):
            check(count, [*lines[:2], without, *lines[3:]])


@pytest.mark.parametrize("redact", [True, False])
def test_an_export_in_which_a_key_stands_twice_is_damaged(ledger, count, redact):
    lines = list(ledger.export(redact=redact))
    for place, line in enumerate(lines):
        twice = line.replace('"time":', '"time":"1999-01-01T00:00:00Z","time":', 1)
        with pytest.raises(LedgerCorrupt, match=f"entry {place + 1} .*'time' occurs twice"):
            read_export([*lines[:place], twice, *lines[place + 1 :]])


def test_reading_an_export_tells_whether_it_is_whole(ledger):
    assert read_export(ledger.export())[1] is False
    assert read_export(ledger.export(redact=False))[1] is True


def test_a_mechanism_with_somebodys_function_is_certified_by_its_price():
    table = people([20 + each % 60 for each in range(400)])
    book = Ledger.in_memory(MIXED, table)
    risk = Risk(Custom(lambda w, row: w, bound=1, dimension=1, label="mine"), Constant(), "", Ball(1))
    release(Descent(risk, GaussianNoise(100), 3, Average(Fraction(1, 10))), table, ledger=book)
    said = certificate(book, 3).record
    assert said["alone"]["priced_again"] is False
    assert 0 < float(said["alone"]["epsilon"]) < 1
    for against in (book, book.export(redact=False)):
        assert "it was not computed again" in check(certificate(book, 3), against)
    with pytest.raises(LedgerMismatch, match="the ledger or an export with --everything"):
        check(certificate(book, 3), book.export())


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


def test_a_record_that_divides_by_zero_has_no_words():
    from discreet.describe import asked

    assert asked({"name": "laplace/1", "scale": "1/0", "query": {"name": "count/1"}}) == ""
