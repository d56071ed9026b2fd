"""release, converse and reopen: the order of things, what is stored, what an error may say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import traceback
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from discreet.data import Domain, Number, ParquetTable, Table
from discreet.errors import (
    BudgetExceeded,
    ConversationOver,
    DiscreetError,
    LedgerMismatch,
    LedgerUnavailable,
    NotPrivate,
    ParameterError,
)
from discreet.guarantee import Budget, Guarantee
from discreet.ledger import Ledger, charging
from discreet.ledger.answer_codec import decode, encode
from discreet.ledger.charging import turn
from discreet.ledger.process import gone, this_process
from discreet.release import converse, release, reopen
from discreet.rng import SeededRng
from tests.ledger_doubles import DOMAIN, Broken, Everything, Failing, Guess, Pure, people

TENTH = Pure(Fraction(1, 10))


@pytest.fixture(params=["on disk", "in memory"])
def ledger(request, tmp_path):
    if request.param == "in memory":
        return Ledger.in_memory(Budget(1), people())
    return Ledger.create(tmp_path / "people.ledger", Budget(1), people())


def kinds(ledger: Ledger) -> list[str]:
    return [entry["kind"] for entry in ledger.entries()]


# Releases.


def test_a_release_is_charged_then_answered_and_says_everything_public(ledger):
    got = release(TENTH, people(), ledger=ledger, memo="first")
    assert kinds(ledger) == ["open", "facts", "charge", "answer"]
    charge, answer = list(ledger.entries())[2:]
    assert (got.entry, got.hash) == (3, charge["hash"])
    assert decode(answer["answer"]) == got.value
    assert got.guarantee.pure == Fraction(1, 10)
    assert got.price == ledger.price(got.guarantee)
    assert charge["memo"] == "first"
    assert not got.replayed


def test_a_release_can_state_its_noise_range(ledger):
    @dataclass(frozen=True)
    class Ranged(Pure):
        def noise_range(self, probability, facts):
            return probability + facts.size

    assert release(Ranged(Fraction(1, 10)), people(), ledger=ledger).noise_range(0.5) == 5.5
    with pytest.raises(ParameterError, match="adds no noise to a number"):
        release(TENTH, people(), ledger=ledger).noise_range(0.5)


def test_the_same_request_returns_the_stored_answer_free(ledger):
    first = release(Everything(), people(), ledger=ledger, request="r")
    spent = ledger.spent()
    again = release(Everything(), people(), ledger=ledger, request="r")
    assert (again.replayed, again.entry, again.hash) == (True, first.entry, first.hash)
    assert (first.price.pure, again.price.pure) == (10**8, 0)
    assert encode(again.value) == encode(first.value)
    assert ledger.spent() == spent
    assert release(Everything(), people(), ledger=ledger, request="other").entry != first.entry


def test_a_request_id_belongs_to_one_mechanism_and_one_set_of_facts(ledger):
    release(TENTH, people(), ledger=ledger, request="r")
    with pytest.raises(ParameterError, match="another mechanism"):
        release(Pure(Fraction(1, 5)), people(), ledger=ledger, request="r")
    narrower = Table({"age": [1, 2, 3, 4, 5]}, Domain(age=Number(0, 60, step=1)), name="people")
    with pytest.raises(ParameterError, match="other facts"):
        release(TENTH, narrower, ledger=ledger, request="r")


def test_a_request_that_is_being_run_is_not_run_twice(ledger):
    inside, go_on = threading.Event(), threading.Event()

    @dataclass(frozen=True)
    class Slow(Pure):
        def run(self, data, rng):
            inside.set()
            go_on.wait(20)
            return 7

    slow = Slow(Fraction(1, 10))
    thread = threading.Thread(target=release, args=(slow, people()), kwargs={"ledger": ledger, "request": "r"})
    thread.start()
    inside.wait(20)
    with pytest.raises(LedgerUnavailable, match="being run"):
        release(slow, people(), ledger=ledger, request="r")
    go_on.set()
    thread.join()
    assert release(slow, people(), ledger=ledger, request="r").value == 7
    assert ledger.spent().pure == 10**8


def test_a_failure_after_the_charge_says_nothing_and_the_charge_stays(ledger):
    with pytest.raises(DiscreetError) as raised:
        release(Failing(), people(), ledger=ledger, request="r")
    assert type(raised.value) is DiscreetError
    assert str(raised.value) == "the mechanism failed after it was charged; the charge stays"
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    frames = [frame.name for frame in traceback.extract_tb(raised.tb)]
    assert frames[1:] == ["release", "_run"]  # frames that hold no rows and nothing drawn from them
    assert kinds(ledger)[-2:] == ["charge", "burn"]
    assert ledger.spent().pure == 10**8
    with pytest.raises(ParameterError, match="interrupted"):
        release(Failing(), people(), ledger=ledger, request="r")


def test_an_interrupted_run_stays_charged(ledger):
    with pytest.raises(KeyboardInterrupt) as raised:
        release(Failing(interrupt=True), people(), ledger=ledger)
    assert raised.value.__context__ is None
    assert kinds(ledger)[-2:] == ["charge", "burn"]


def test_an_answer_that_cannot_be_stored_is_a_failed_run(ledger):
    @dataclass(frozen=True)
    class Odd(Pure):
        def run(self, data, rng):
            return object()

    with pytest.raises(DiscreetError, match="the charge stays"):
        release(Odd(Fraction(1, 10)), people(), ledger=ledger)
    assert kinds(ledger)[-1] == "burn"


def test_what_does_not_fit_is_refused_before_the_rows_are_read(ledger):
    @dataclass(frozen=True)
    class Reading(Pure):
        def run(self, data, rng):
            raise AssertionError("the rows were read")

    with pytest.raises(BudgetExceeded) as refused:
        release(Reading(2), people(), ledger=ledger)
    assert refused.value.asked == "pure epsilon 2, Renyi none, failure 0"
    assert refused.value.fits == (
        "It takes 200 % of the budget, and 100 % is left. What would fit: pure epsilon at most 1."
    )
    assert kinds(ledger) == ["open", "facts"]


def test_test_randomness_and_mutants_are_for_testing_ledgers(ledger):
    for mechanism, rng in ((TENTH, SeededRng(1)), (Broken(), None)):
        with pytest.raises(NotPrivate, match="testing"):
            release(mechanism, people(), ledger=ledger, rng=rng)
    with pytest.raises(NotPrivate, match="seeded"):
        converse(Guess(), people(), ledger=ledger, rng=SeededRng(1))
    assert ledger.spent().pure == 0
    testing = Ledger.in_memory(Budget(1), people(), testing=True)
    same = [release(TENTH, people(), ledger=testing, rng=SeededRng(1)) for _ in range(2)]
    assert same[0].value == same[1].value
    assert "NOT PRIVATE" in str(same[0])
    assert release(Broken(), people(), ledger=testing).value == 0


@dataclass(frozen=True)
class _Unrecorded:
    def guarantee(self, facts):
        return Guarantee.of_pure(1, neighbours=facts.neighbours)

    def run(self, data, rng):
        return 0


@dataclass(frozen=True)
class _OtherRelation(_Unrecorded):
    NAME: ClassVar[str] = "toy-other/1"

    def guarantee(self, facts):
        return Guarantee.of_pure(1, neighbours="add-remove")


@dataclass(frozen=True)
class _NoGuarantee(_Unrecorded):
    NAME: ClassVar[str] = "toy-none/1"

    def guarantee(self, facts):
        return 1.0


@pytest.mark.parametrize(
    ("mechanism", "changes", "error", "says"),
    [
        ("Laplace", {}, ParameterError, "expected a mechanism, found str"),
        (Guess(), {}, ParameterError, "converse"),
        (_Unrecorded(), {}, ParameterError, "record"),
        (_NoGuarantee(), {}, ParameterError, "Guarantee"),
        (_OtherRelation(), {}, LedgerMismatch, "add-remove"),
        (TENTH, {"request": ""}, ParameterError, "request"),
        (TENTH, {"request": 7}, ParameterError, "request"),
        (TENTH, {"request": "\ud800"}, ParameterError, "UTF-8"),
        (TENTH, {"memo": None}, ParameterError, "memo"),
        (TENTH, {"allowance": "nobody"}, ParameterError, "nobody"),
        (TENTH, {"rng": 3}, ParameterError, "rng"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_spent(ledger, mechanism, changes, error, says):
    with pytest.raises(error, match=says):
        release(mechanism, people(), ledger=ledger, **changes)
    assert kinds(ledger) == ["open", "facts"]


def test_a_ledger_and_a_table_are_needed(ledger):
    with pytest.raises(ParameterError, match="Ledger"):
        release(TENTH, people(), ledger=None)
    with pytest.raises(ParameterError, match="Table"):
        release(TENTH, {"age": [1]}, ledger=ledger)


# Conversations.


def ask_until_yes(talk, guesses) -> list[bool]:
    found = []
    for guess in guesses:
        found.append(talk.ask(guess))
        if found[-1]:
            break
    return found


def test_a_conversation_is_charged_once_and_ends_with_its_top(ledger):
    talk = converse(Guess(bound=50), people(), ledger=ledger)
    spent = ledger.spent()
    answers = ask_until_yes(talk, range(50))
    assert answers[-1] is True
    assert not any(answers[:-1])
    assert ledger.spent() == spent
    assert kinds(ledger) == ["open", "facts", "charge", "top"]
    with pytest.raises(ConversationOver, match="ended"):
        talk.ask(0)


def test_a_conversation_keeps_its_secret_until_it_ends(ledger):
    talk = converse(Guess(bound=10**9), people(), ledger=ledger)
    again = reopen(Guess(bound=10**9), people(), charge=talk.charge, ledger=ledger)
    with turn(ledger, talk.charge) as taken:
        secret = taken.secret["secret"]
    assert [talk.ask(secret - 1), again.ask(secret - 1), again.ask(secret)] == [False, False, True]
    with pytest.raises(ConversationOver):
        talk.ask(secret)


def test_leaving_the_block_closes_the_conversation(ledger):
    with converse(Guess(bound=10**9), people(), ledger=ledger) as talk:
        talk.ask(0)
    assert kinds(ledger)[-1] == "close"
    talk.close()
    assert kinds(ledger).count("close") == 1


def test_a_question_outside_the_guarantee_is_refused_and_the_conversation_goes_on(ledger):
    talk = converse(Guess(bound=10**9), people(), ledger=ledger)
    with pytest.raises(ParameterError, match="whole number"):
        talk.ask("many")
    assert talk.ask(0) is False


def test_a_failing_step_ends_the_conversation_and_says_nothing(ledger):
    talk = converse(Guess(), people(), ledger=ledger)
    with pytest.raises(DiscreetError) as raised:
        talk.ask(-1)
    assert str(raised.value) == "the mechanism failed after it was charged; the charge stays"
    assert raised.value.__context__ is None
    assert kinds(ledger)[-1] == "burn"
    with pytest.raises(ConversationOver):
        talk.ask(1000)


def test_a_state_that_changes_is_kept_and_ends_in_time(ledger):
    talk = converse(Guess(bound=10**9, limit=3), people(), ledger=ledger)
    assert [talk.ask(0) for _ in range(3)] == [False] * 3
    assert kinds(ledger)[-1] == "top"
    with pytest.raises(ConversationOver):
        talk.ask(0)


def test_two_conversations_do_not_share_a_secret(ledger):
    talks = [converse(Guess(bound=2), people(), ledger=ledger) for _ in range(2)]
    assert talks[0].ask(1) is True
    assert talks[1].ask(1) is True
    assert kinds(ledger).count("top") == 2


def test_only_the_same_conversation_can_be_reopened(ledger):
    talk = converse(Guess(), people(), ledger=ledger)
    with pytest.raises(ParameterError, match="another conversation"):
        reopen(Guess(bound=7), people(), charge=talk.charge, ledger=ledger)
    with pytest.raises(ParameterError, match="not the charge of a conversation"):
        reopen(Guess(), people(), charge=1, ledger=ledger)
    with pytest.raises(ParameterError, match="no entry 99"):
        reopen(Guess(), people(), charge=99, ledger=ledger)
    narrower = Table({"age": [1, 2, 3, 4, 5]}, Domain(age=Number(0, 60, step=1)), name="people")
    with pytest.raises(LedgerMismatch, match="facts"):
        reopen(Guess(), narrower, charge=talk.charge, ledger=ledger)


@pytest.mark.parametrize("damage", ["missing", "of another ledger", "not JSON", "a list"])
def test_a_lost_secret_ends_the_conversation(tmp_path, damage):
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(1), people())
    talk = converse(Guess(), people(), ledger=ledger)
    secret = tmp_path / "people.ledger.secret"
    held = {"0" * 64: {"secret": 1, "asked": 0}}
    if damage == "missing":
        secret.unlink()
    else:
        secret.write_text({"of another ledger": json.dumps(held), "not JSON": "{", "a list": "[1]"}[damage])
    with pytest.raises(ConversationOver, match="secret"):
        talk.ask(1000)
    assert converse(Guess(), people(), ledger=ledger).ask(1000) is True


def test_the_top_is_on_disk_before_it_is_returned(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(1), people())
    talk = converse(Guess(), people(), ledger=ledger)

    def lost(self, *arguments, **more):
        raise LedgerUnavailable("the high-water mark cannot be written")

    monkeypatch.setattr("discreet.ledger.mark.MarkFile.settle", lost)
    with pytest.raises(LedgerUnavailable):
        talk.ask(1000)
    monkeypatch.undo()
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    with pytest.raises(ConversationOver):
        talk.ask(1000)


def test_a_conversation_that_cannot_begin_stays_charged(ledger):
    @dataclass(frozen=True)
    class Unable(Guess):
        def begin(self, data, rng):
            return {1, 2}

    with pytest.raises(DiscreetError, match="the charge stays"):
        converse(Unable(), people(), ledger=ledger)
    assert kinds(ledger)[-2:] == ["charge", "burn"]


# Answers as text.


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -5,
        2**63,
        -(7**2000),
        0.1,
        -0.0,
        float("inf"),
        "text \N{SNOWMAN} \x00",
        Fraction(-1, 3),
        (),
        (1, (2.5, None)),
        [1, [2]],
        {"b": 1, "a": {"x": (1,)}},
    ],
)
def test_an_answer_comes_back_equal_and_of_the_same_type(value):
    back = decode(encode(value))
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array(5),
        np.zeros((0, 3)),
        np.array([0.1, -0.0, np.nan, -np.inf]),
        np.array([1.5], dtype=np.float32),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([True, False]),
        np.array([2**100, -1], dtype=object),
        np.arange(10, dtype=">i4")[::2],
    ],
    ids=repr,
)
def test_an_array_comes_back_with_its_type_shape_and_bits(array):
    back = decode(encode(array))
    assert (back.dtype, back.shape) == (array.dtype.newbyteorder("="), array.shape)
    np.testing.assert_array_equal(back, array)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(back), np.signbit(array))


def test_numpy_scalars_become_python_numbers():
    assert repr(decode(encode((np.int64(3), np.float64(0.1), np.bool_(True))))) == "(3, 0.1, True)"


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, b"x", np.array(["a"]), np.array([None]), 1j])
def test_what_is_not_made_of_numbers_and_texts_is_no_answer(value):
    with pytest.raises(ParameterError):
        encode(value)


# Rows and secrets stay where they are.


def test_a_threshold_is_found_nowhere_but_in_the_secret_file(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(1), people())
    talk = converse(Guess(bound=10**18), people(), ledger=ledger)
    talk.ask(0)
    with turn(ledger, talk.charge) as taken:
        secret = str(taken.secret["secret"]).encode()
    holders = {path.name for path in tmp_path.rglob("*") if path.is_file() and secret in path.read_bytes()}
    assert holders == {"people.ledger.secret"}
    assert secret.decode() not in "".join(ledger.export(redact=False)) + repr(talk)
    talk.close()
    assert not any(secret in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_row_is_found_in_no_artefact(tmp_path, capfd):
    canary = 707_123_456_789
    domain = Domain(pay=Number(0, 10**12, step=1))
    source = tmp_path / "data" / "people.csv"
    source.parent.mkdir()
    source.write_text(f"pay\n1\n{canary}\n3\n")
    table = Table(source, domain, name="people")
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(1), table)

    @dataclass(frozen=True)
    class Leaking(Pure):
        def run(self, data, rng):
            rows = data.exact_sum(lambda batch: np.array([int(batch["pay"].max())]))
            raise ValueError(f"the largest is {rows}")

    release(TENTH, table, ledger=ledger)
    with pytest.raises(DiscreetError) as raised:
        release(Leaking(Fraction(1, 10)), table, ledger=ledger)
    talk = converse(Guess(), table, ledger=ledger)
    talk.ask(0)
    shown = [repr(ledger), str(ledger.spent()), repr(talk), "".join(traceback.format_exception(raised.value))]
    shown += [*ledger.export(redact=False), *capfd.readouterr()]
    spellings = (str(canary).encode(), f"{canary:x}".encode(), canary.to_bytes(8, "little"), canary.to_bytes(8, "big"))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != source]
    assert len(files) >= 5
    for content in [path.read_bytes() for path in files] + [text.encode() for text in shown]:
        assert not any(spelling in content for spelling in spellings)


def test_a_file_that_changed_is_refused_before_the_charge(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [30, 41]}), path)
    table = ParquetTable(path, DOMAIN, name="people")
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(1), table, state_dir=tmp_path)
    pq.write_table(pa.table({"age": [30, 41, 50]}), path)
    with pytest.raises(LedgerMismatch, match="changed"):
        release(Pure(Fraction(1, 10)), table, ledger=ledger)
    assert ledger.spent().pure == 0


# Interrupts.


@dataclass(frozen=True, slots=True)
class Stopped:
    """Costs a tenth and is stopped by something that is no error; it holds rows."""

    NAME: ClassVar[str] = "toy-stopped/1"
    kind: ClassVar[type[BaseException]] = KeyboardInterrupt

    def guarantee(self, facts):
        return Guarantee.of_pure(Fraction(1, 10), neighbours=facts.neighbours)

    def run(self, data, rng):
        raise self.kind(int(data.exact_sum(lambda batch: np.array([int(batch["age"].sum())]))[0]))

    def check(self, ask, facts):
        return

    def begin(self, data, rng):
        return 1

    def step(self, state, ask, data, rng):
        return self.run(data, rng)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_stays_what_it_was_without_what_it_held(ledger, monkeypatch, kind):
    monkeypatch.setattr(Stopped, "kind", kind)

    def asked():
        with converse(Stopped(), people(), ledger=ledger) as talk:
            talk.ask(1)

    for stopped in (lambda: release(Stopped(), people(), ledger=ledger), asked):
        with pytest.raises(kind) as raised:
            stopped()
        assert type(raised.value) is kind
        assert raised.value.args in ((), (1,))
        assert raised.value.__cause__ is raised.value.__context__ is None
        assert not {"run", "_guarded"} & {frame.name for frame in traceback.extract_tb(raised.tb)}
    assert kinds(ledger).count("burn") == 2


def test_a_key_pressed_right_after_the_charge_burns_it(ledger, monkeypatch):
    """Between the charge and the run: it is not "being run now" for as long as this process lives."""
    charge = charging.charge

    def pressed(*args, **kwargs):
        charge(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(charging, "charge", pressed)
        with pytest.raises(KeyboardInterrupt):
            release(TENTH, people(), ledger=ledger, request="r")
    with pytest.raises(ParameterError, match="its run was interrupted"):
        release(TENTH, people(), ledger=ledger, request="r")
    release(TENTH, people(), ledger=ledger, request="s")
    assert kinds(ledger)[-4:] == ["charge", "burn", "charge", "answer"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say which processes have ended")
def test_a_process_that_died_is_gone_before_its_parent_notices():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        stat = Path(f"/proc/{child.pid}/stat")
        start = stat.read_text().rpartition(")")[2].split()[19]
        named = {**this_process(), "pid": child.pid, "start": start}
        assert not gone(named)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is dead, and nobody has reaped it
        assert stat.exists()
        assert gone(named)
    finally:
        child.kill()
        child.communicate()


# Sizes of what a caller says.


@pytest.mark.parametrize(("name", "most"), [("memo", 1_000), ("request", 200), ("allowance", 200)])
def test_texts_have_a_longest_length_that_is_found_before_the_charge(ledger, name, most):
    ledger.allow("a" * 200, share=1)
    release(TENTH, people(), ledger=ledger, **{name: "a" * most})
    before = kinds(ledger)
    with pytest.raises(ParameterError, match=f"{name} must be at most {most:,} characters long, found {most + 1:,}"):
        release(TENTH, people(), ledger=ledger, **{name: "a" * (most + 1)})
    assert kinds(ledger) == before


def test_the_name_of_an_allowance_has_a_longest_length(ledger):
    with pytest.raises(ParameterError, match="name must be at most 200 characters"):
        ledger.allow("a" * 201, share=1)
