"""A desk: what an analyst is told, what is charged in whose name, and what the same request gets."""

from __future__ import annotations

import json
import threading
import time

import pytest

import discreet as dp
from discreet.answering import answer_from
from discreet.certificate import read_export
from discreet.errors import (
    BudgetExceeded,
    Cancelled,
    DiscreetError,
    NotFound,
    NotPermitted,
    ParameterError,
    RequestConflict,
    ServiceFailed,
    TooBusy,
    TooLarge,
    UnsupportedQuery,
)
from discreet.ledger import REPLY, Acting, acting_as, answer_text, charging
from discreet.serve.desk import Desk, OpenSchema
from discreet.serve.jobs import CANCELLED, RUNNING, WAITING, Job, Jobs, Ticket
from discreet.serve.keys import Keys
from discreet.serve.settings import Limits
from tests.serving import COUNT, GROUPS, house

FIT = dict.fromkeys(
    ("kind", "features", "method", "q", "hidden", "radius", "huber", "estimator", "parameters", "table")
) | {"again": False, "epsilon": None, "delta": None, "share": None, "target": "age"}


@pytest.fixture
def made(tmp_path):
    return house(tmp_path)


@pytest.fixture
def desk(made):
    found = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings(limits=Limits(waiting_each=2, waiting=3)))
    yield found
    assert found.close(30)


@pytest.fixture
def who(made):
    keys = Keys(made.keys_file)
    return {name: keys.find(text) for name, text in made.keys.items()}


def ask(desk, holder, sql, **given):
    return desk.begin_ask(holder, sql, **given).result(60)


def charges(desk):
    return [body for body in desk.ledger.entries() if body["kind"] == "charge"]


def test_what_is_public_has_columns_and_the_promise(desk):
    about = desk.about()
    assert (about["name"], about["size"], about["epsilon"]) == ("people", 2000, "2")
    (table,) = about["tables"]
    assert [column["column"] for column in table["columns"]] == ["age", "sex", "town", "pay"]
    assert "Protected" in about["protects"]


def test_an_answer_is_charged_to_the_analyst_and_says_who_it_was(desk, who):
    before = desk.budget(who["ana"])
    told = ask(desk, who["ana"], COUNT)
    (charge,) = charges(desk)
    assert charge["allowance"] == "ana"
    assert charge["who"] == f"ana, key {who['ana'].id}"
    assert charge["by"] == {"key": who["ana"].id}
    assert told["entries"] == [charge["seq"]]
    assert told["price"]["nano"] == charge["price"]["renyi"] > 0
    after = desk.budget(who["ana"])
    assert before["left_nano"] - after["left_nano"] == told["price"]["nano"]
    assert desk.budget(who["bob"])["spent_percent"] == 0
    answer = answer_from(told)
    assert (answer.value, answer.error_bound, answer.price) == (
        told["value"],
        told["error_bound"],
        told["price"]["nano"],
    )
    assert str(answer) == told["words"]


def test_a_price_is_what_is_charged_and_costs_nothing(desk, who):
    price = desk.price(who["ana"], GROUPS)
    assert not charges(desk)
    assert ask(desk, who["ana"], GROUPS)["price"]["nano"] == price["price"]["nano"]
    again = desk.price(who["bob"], GROUPS)
    assert again["free"]
    assert ask(desk, who["bob"], GROUPS)["price"]["nano"] == 0
    assert len(charges(desk)) == 1


def test_the_same_request_id_gets_the_same_reply_and_is_charged_once(desk, who, made):
    first = ask(desk, who["ana"], COUNT, request="r1")
    assert ask(desk, who["ana"], COUNT, request="r1") == first
    with pytest.raises(RequestConflict, match="something else"):
        ask(desk, who["ana"], GROUPS, request="r1")
    other = ask(desk, who["bob"], COUNT, request="r1")  # another key: another request
    assert other["price"]["nano"] == 0 < first["price"]["nano"]
    again = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings())  # as after a crash
    assert ask(again, who["ana"], COUNT, request="r1") == first
    assert again.close()
    assert len(charges(desk)) == 1


def test_a_request_whose_run_was_interrupted_says_so_and_is_not_paid_twice(desk, who):
    ticket = Ticket(who["ana"], "ask", "r9")
    broken = dp.mechanisms.Laplace(dp.Count(), 40)
    with acting_as(Acting(ticket.who, ticket.by)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(broken), "run", lambda *given: 1 / 0)
        with pytest.raises(dp.DiscreetError, match="charge stays"):
            dp.release(broken, desk.table, ledger=desk.ledger, allowance="ana")
    with pytest.raises(RequestConflict, match=r"entry 5.*new request id"):
        ask(desk, who["ana"], COUNT, request="r9")
    assert len(charges(desk)) == 1
    ask(desk, who["ana"], COUNT, request="r10")


@pytest.mark.parametrize("request_id", ["", "a b", "x" * 65, "ä", "a/b", "a\n"])
def test_a_request_id_is_plain(desk, who, request_id):
    with pytest.raises(ParameterError, match="request id"):
        ask(desk, who["ana"], COUNT, request=request_id)
    assert not charges(desk)


def test_an_allowance_holds_for_everything_together(desk, who):
    desk.begin_workload(who["ana"], [GROUPS], share="1/2").result(60)
    desk.begin_fit(who["ana"], {**FIT, "kind": "mean", "share": "1/2"}).result(60)
    asked = {"table": None, "column": "pay", "coverage": None, "again": False, "epsilon": None, "delta": None}
    desk.begin_suggest(who["ana"], {**asked, "share": "1/2"}).result(60)
    rows = {"table": None, "rows": 5, "format": "csv", "share": "1/2", "measure": [], "seed": 1}
    job = desk.begin_synthetic(who["ana"], rows)
    assert job.result(120)["rows"] == 5
    assert job.attachment is not None
    left = desk.budget(who["ana"])
    assert {charge["allowance"] for charge in charges(desk)} == {"ana"}
    assert left["left_percent"] + left["spent_percent"] == pytest.approx(25, abs=0.01)
    with pytest.raises(BudgetExceeded, match="'ana'"):
        desk.begin_fit(who["ana"], {**FIT, "kind": "mean", "epsilon": "0.5"}).result(60)
    desk.begin_fit(who["bob"], {**FIT, "kind": "mean", "epsilon": "0.1"}).result(60)  # not bob's


def test_the_same_fit_is_free_for_everybody_unless_it_is_wanted_again(desk, who):
    first = desk.begin_fit(who["ana"], {**FIT, "kind": "mean", "epsilon": "0.1"}).result(60)
    same = desk.begin_fit(who["bob"], {**FIT, "kind": "mean", "epsilon": "0.1"}).result(60)
    assert (first["replayed"], same["replayed"]) == (False, True)
    assert same["model"]["state"] == first["model"]["state"]
    again = desk.begin_fit(who["bob"], {**FIT, "kind": "mean", "epsilon": "0.1", "again": True}).result(60)
    assert not again["replayed"]
    assert [charge["allowance"] for charge in charges(desk)] == ["ana", "bob"]


RULE = dict.fromkeys(("table", "delta", "share", "method", "alpha")) | {
    **{"kind": "rule", "target": "sex", "features": ["age"], "positive": "F", "k": 1, "again": False},
    **{"epsilon": "0.4", "certify": "0.01"},
}


def test_a_rule_that_is_paid_for_is_told_whatever_happens_to_its_certificate(desk, who):
    told = desk.begin_learn(who["ana"], RULE | {"certify": "0.9"}).result(60)
    assert [told["entry"]] == told["entries"] == [charge["seq"] for charge in charges(desk)]
    assert "this does not fit" in told["certificate"]["refused"]
    again = desk.begin_learn(who["ana"], RULE).result(60)
    assert (again["model"]["state"], again["price"]["nano"]) == (told["model"]["state"], 0)
    assert again["entries"] == [again["certificate"]["entry"]] == [charges(desk)[-1]["seq"]]
    assert len(charges(desk)) == 2


def test_a_key_does_what_it_may_and_nothing_else(desk, made):
    keys = Keys(made.keys_file)
    only = keys.find(made.add("eve", share="1/10", may=("ask",)))
    owner = keys.find(made.keys["olga"])
    ask(desk, only, COUNT)
    rows = {"table": None, "rows": 5, "format": "csv", "share": None, "measure": [], "seed": None}
    for begin in (
        lambda: desk.begin_fit(only, {**FIT, "kind": "mean", "epsilon": "0.1"}),
        lambda: desk.begin_synthetic(only, rows),
        lambda: desk.spending(only),
        lambda: desk.verify(only),
        lambda: desk.report(only),
        lambda: desk.entries(only),
        lambda: list(desk.export(only)),
        lambda: ask(desk, owner, COUNT),
        lambda: desk.price(owner, COUNT),
    ):
        with pytest.raises(NotPermitted):
            begin()
    assert len(charges(desk)) == 1


def test_an_owner_sees_spending_entries_and_a_sound_ledger(desk, who):
    ask(desk, who["ana"], COUNT)
    told = desk.spending(who["olga"])
    assert [each["name"] for each in told["analysts"]] == ["ana", "bob"]
    assert told["analysts"][0]["spent_percent"] == pytest.approx(1, abs=0.01)
    (entry,) = desk.entries(who["olga"])
    assert entry["who"].startswith("ana, key ")
    assert desk.verify(who["olga"])["sound"]
    assert desk.certificate(who["olga"], entry["entry"])["entry"]
    assert desk.certificate(who["ana"], entry["entry"])
    with pytest.raises(NotFound):
        desk.certificate(who["bob"], entry["entry"])
    with pytest.raises(NotFound):
        desk.certificate(who["ana"], 999)
    assert "<html" in desk.report(who["olga"])


def test_an_export_without_everything_has_neither_questions_nor_names_and_can_be_checked(desk, who):
    ask(desk, who["ana"], GROUPS, request="secret")
    redacted, whole = (list(desk.export(who["olga"], everything=each)) for each in (False, True))
    for word in ("SELECT", "town", "south", "secret", who["ana"].id):
        assert word in "".join(whole)
        assert word not in "".join(line for line in redacted if '"kind":"facts"' not in line), word
    assert len(read_export(redacted)[0]) == len(read_export(whole)[0]) == desk.ledger.length()
    assert read_export(whole)[1]


def test_what_was_told_before_is_not_kept_twice(desk, who, made):
    """Of the same model under other ids the ledger keeps the differences; each id still gets its own bytes."""
    fit = {**FIT, "kind": "mean", "epsilon": "0.1"}
    first = desk.begin_fit(who["ana"], fit, request="one").result(60)
    second = desk.begin_fit(who["bob"], fit, request="two").result(60)
    assert second["replayed"]
    assert second["model"]["state"] == first["model"]["state"]
    *_, kept, short = (each for each in desk.ledger.entries() if each.get("manner") == REPLY)
    assert 4 * len(answer_text(short)) < len(answer_text(kept))
    assert short["question"]["differs_from"] == kept["seq"]
    after = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings())  # as after a crash
    for held in (desk, after):
        again = held.begin_fit(who["bob"], fit, request="two").result(60)
        assert json.dumps(again) == json.dumps(second)
        assert held.history(who["bob"])[0]["reply"] == second
    assert after.close()


def test_a_history_is_ones_own(desk, who):
    ask(desk, who["ana"], COUNT)
    ask(desk, who["ana"], GROUPS, request="g")
    assert [(each["what"], each["request"]) for each in desk.history(who["ana"])] == [(GROUPS, "g"), (COUNT, None)]
    assert desk.history(who["bob"]) == []
    assert len(desk.known()["questions"]) == 2


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT * FROM people", UnsupportedQuery),
        ("SELECT COUNT(*) FROM people WHERE age >= " + "0" * 5000, TooLarge),
        ("SELECT age, pay, town, COUNT(*) FROM people GROUP BY age, pay, town", TooLarge),
        ("SELECT COUNT(*) FROM visits", UnsupportedQuery),
        ("", UnsupportedQuery),
    ],
)
def test_what_is_refused_costs_nothing(desk, who, sql, kind):
    for refused in (desk.price, desk.begin_ask):
        with pytest.raises(kind):
            refused(who["ana"], sql)
    assert not charges(desk)


def test_the_numbers_of_a_workload_are_counted_together(made, who):
    desk = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings(limits=Limits(cells=17)))
    with pytest.raises(TooLarge, match="a workload has at most 17 numbers here, this one 24"):
        desk.begin_workload(who["ana"], [GROUPS] * 3, share="1/10")
    assert desk.begin_workload(who["ana"], [GROUPS] * 2, share="1/10").result(60)["answers"]
    assert desk.close()


def test_rows_that_do_not_fit_in_memory_are_refused_before_tables_are_bought_for_them(made, who):
    wide = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings(limits=Limits(rows=10**9)))
    asked = {"table": None, "rows": 10**9, "format": "csv", "share": "1/2", "measure": [["sex"]], "seed": None}
    with pytest.raises(ParameterError, match="rows must be at most"):
        wide.begin_synthetic(who["ana"], asked).result(60)
    assert not charges(wide)
    assert wide.close()


def test_what_could_cost_more_than_a_tenth_is_refused_unless_it_is_allowed(tmp_path, made, who):
    dear = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings(price="20%"))
    with pytest.raises(dp.errors.AboveMaxPrice):
        ask(dear, who["ana"], COUNT)
    assert ask(dear, who["ana"], COUNT, max_price="25%")["price"]["percent_of_budget"] > 10
    assert dear.close()


# Jobs.


def test_jobs_of_one_table_run_one_at_a_time_and_the_queue_has_an_end(who):
    jobs, gate, running = Jobs("t", most=3, most_each=2), threading.Event(), []

    def work(job: Job):
        running.append(job.id)
        gate.wait(30)
        return {"is": "done"}

    first = jobs.submit(Ticket(who["ana"], "ask"), work)
    second = jobs.submit(Ticket(who["ana"], "ask"), work)
    with pytest.raises(TooBusy, match="this key"):
        jobs.submit(Ticket(who["ana"], "ask"), work)
    third = jobs.submit(Ticket(who["bob"], "ask"), work)
    with pytest.raises(TooBusy, match="wait for this table"):
        jobs.submit(Ticket(who["bob"], "ask"), work)
    assert second.state == WAITING
    with pytest.raises(dp.errors.NotFound):
        jobs.find(who["bob"], first.id)
    assert jobs.find(who["ana"], first.id) is first
    gate.set()
    assert second.result(30) == third.result(30) == {"is": "done"}
    assert jobs.close()
    assert len(running) == 3


def test_a_job_is_cancelled_while_it_waits_or_runs_and_not_once_it_is_charged(desk, who):
    jobs, gate, begun = Jobs("t"), threading.Event(), threading.Event()

    def uncharged(job: Job):
        begun.set()
        gate.wait(30)
        job.acting.before_charge()
        raise AssertionError("it was charged")

    running, waiting = (jobs.submit(Ticket(who["ana"], "fit"), uncharged) for _ in range(2))
    begun.wait(30)
    assert running.state == RUNNING
    assert waiting.cancel()
    assert running.cancel()
    gate.set()
    for each in (running, waiting):
        with pytest.raises(Cancelled):
            each.result(30)
        assert each.state == CANCELLED

    def paid(job: Job):
        job.acting.before_charge()
        return {"cancelled": job.cancel()}

    charged = jobs.submit(Ticket(who["ana"], "fit"), paid)
    assert charged.result(30) == {"cancelled": False}
    assert jobs.close()


def test_a_cancelled_question_charges_nothing(desk, who, monkeypatch):
    begun, gate = threading.Event(), threading.Event()
    answer = dp.Session.ask

    def slowly(self, *given, **named):
        begun.set()
        gate.wait(30)
        return answer(self, *given, **named)

    monkeypatch.setattr(dp.Session, "ask", slowly)
    job = desk.begin_ask(who["ana"], COUNT, request="late")
    begun.wait(30)
    assert job.cancel()
    gate.set()
    with pytest.raises(Cancelled):
        job.result(30)
    assert not charges(desk)
    assert ask(desk, who["ana"], COUNT, request="late")["entries"]


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_found_in_rows_is_written_on_the_grid(made, who, monkeypatch, fails):
    """Whatever others see of it, a free price or the next job's begin, they see after this moment."""
    desk = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings(time_grid=0.5))
    written = []
    for name in ("answer", "burn"):
        write = getattr(charging, name)
        monkeypatch.setattr(
            charging, name, lambda *given, write=write: (written.append(time.monotonic()), write(*given))
        )
    if fails:
        monkeypatch.setattr(dp.Table, "exact_distinct", lambda *given: 1 // 0)
    job = desk.begin_ask(who["ana"], GROUPS)
    if fails:
        with pytest.raises(DiscreetError):
            job.result(30)
    else:
        job.result(30)
    assert written
    assert min(written) - job._began >= 0.5
    assert desk.close()


def test_the_id_of_a_cancelled_job_is_free_again(made, who, monkeypatch):
    desk = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings())
    gate, answer = threading.Event(), dp.Session.ask
    monkeypatch.setattr(dp.Session, "ask", lambda *given, **named: (gate.wait(30), answer(*given, **named))[1])
    running = desk.begin_ask(who["bob"], GROUPS)
    waiting = desk.begin_ask(who["ana"], GROUPS, request="two")
    assert waiting.cancel()
    again = desk.begin_ask(who["ana"], GROUPS, request="two")
    assert again is not waiting
    gate.set()
    assert running.result(30)["rows"] == again.result(30)["rows"]
    assert desk.close()


def test_what_goes_wrong_inside_is_one_sentence(who):
    jobs = Jobs("t")

    def fails(job: Job):
        raise RuntimeError("row 7 says 86753090")

    with pytest.raises(ServiceFailed) as failed:
        jobs.submit(Ticket(who["ana"], "ask"), fails).result(30)
    assert "8675" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert jobs.close()


def test_the_same_request_twice_at_once_is_one_job(desk, who, monkeypatch):
    gate, answer = threading.Event(), dp.Session.ask
    monkeypatch.setattr(dp.Session, "ask", lambda *given, **named: (gate.wait(30), answer(*given, **named))[1])
    jobs = [desk.begin_ask(who["ana"], COUNT, request="twice") for _ in range(2)]
    assert jobs[0] is jobs[1]
    with pytest.raises(RequestConflict):
        desk.begin_ask(who["ana"], GROUPS, request="twice")
    gate.set()
    jobs[0].result(30)
    assert len(charges(desk)) == 1


def test_another_question_under_an_id_that_came_at_the_same_time_is_a_conflict(desk, who, monkeypatch):
    gate, answer = threading.Event(), dp.Session.ask
    monkeypatch.setattr(dp.Session, "ask", lambda *given, **named: (gate.wait(30), answer(*given, **named))[1])
    find, first = desk.replies.find, []

    def meanwhile(ticket, what):
        if not first:
            first.append(None)
            first.append(desk.begin_ask(who["ana"], COUNT, request="both"))
        return find(ticket, what)

    monkeypatch.setattr(desk.replies, "find", meanwhile)
    with pytest.raises(RequestConflict):
        desk.begin_ask(who["ana"], GROUPS, request="both")
    gate.set()
    assert first[1].result(30)["question"] == COUNT


def test_the_same_id_at_two_processes_is_charged_once(desk, who, made, monkeypatch):
    other = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings())
    gate, begun, answer = threading.Event(), threading.Event(), dp.Session.ask

    def slowly(self, *given, **named):
        if threading.current_thread() is desk.jobs._thread:
            begun.set()
            gate.wait(30)
        return answer(self, *given, **named)

    monkeypatch.setattr(dp.Session, "ask", slowly)
    fit = {**FIT, "kind": "mean", "epsilon": "0.1", "again": True}
    waiting = desk.begin_ask(who["ana"], GROUPS)  # holds the queue
    begun.wait(30)
    behind = desk.begin_fit(who["ana"], fit, request="both")
    first = other.begin_fit(who["ana"], fit, request="both").result(60)
    gate.set()
    waiting.result(30)
    assert behind.result(60) == first
    assert len([each for each in charges(desk) if each["by"].get("request") == "both"]) == 1
    assert other.close()


def test_what_another_process_answered_meanwhile_under_the_same_id_is_told_in_the_same_bytes(
    desk, who, made, monkeypatch
):
    other, answer = Desk(OpenSchema.at(made.schemas[0], made.state), made.settings()), dp.Session.ask

    def late(self, *given, **named):
        if threading.current_thread() is desk.jobs._thread:
            told.append(ask(other, who["ana"], COUNT, request="both"))
        return answer(self, *given, **named)

    told = []
    monkeypatch.setattr(dp.Session, "ask", late)
    assert [ask(desk, who["ana"], COUNT, request="both")] == told
    assert told[0]["entries"] == [each["seq"] for each in charges(desk)]
    assert other.close()


def test_a_charge_is_refused_if_another_process_charged_the_same_request_meanwhile(desk, who, monkeypatch):
    ticket, answer = Ticket(who["ana"], "ask", "raced"), dp.Session.ask

    def raced(self, *given, **named):
        with acting_as(Acting(ticket.who, ticket.by)):
            dp.release(dp.mechanisms.Laplace(dp.Count(), 40), desk.table, ledger=desk.ledger, allowance="ana")
        return answer(self, *given, **named)

    monkeypatch.setattr(dp.Session, "ask", raced)
    with pytest.raises(dp.errors.LedgerUnavailable, match="another process"):
        ask(desk, who["ana"], COUNT, request="raced")
    assert len(charges(desk)) == 1


@pytest.mark.parametrize("running", [False, True])
def test_a_job_of_a_key_that_was_revoked_meanwhile_charges_nothing(made, who, monkeypatch, running):
    keys = Keys(made.keys_file)
    found = OpenSchema.at(made.schemas[0], made.state)
    desk = Desk(found, made.settings(), alive=lambda key: keys.holder(key.id) is not None)
    begun, gate, answer = threading.Event(), threading.Event(), dp.Session.ask

    def slowly(self, *given, **named):
        begun.set()
        gate.wait(30)
        return answer(self, *given, **named)

    monkeypatch.setattr(dp.Session, "ask", slowly)
    jobs = [] if running else [desk.begin_ask(who["bob"], COUNT)]
    jobs.append(desk.begin_ask(who["ana"], GROUPS))
    begun.wait(30)
    keys.revoke("ana")
    gate.set()
    with pytest.raises(Cancelled, match="revoked"):
        jobs[-1].result(30)
    assert [each["allowance"] for each in charges(desk)] == ([] if running else ["bob"])
    assert jobs[-1].state == CANCELLED
    assert desk.close()


def test_a_cached_answer_does_not_wait_for_the_rows(desk, who, monkeypatch):
    ask(desk, who["ana"], COUNT)
    gate, answer = threading.Event(), dp.Session.ask
    monkeypatch.setattr(dp.Session, "ask", lambda *given, **named: (gate.wait(30), answer(*given, **named))[1])
    slow = desk.begin_ask(who["bob"], GROUPS)
    assert ask(desk, who["ana"], COUNT)["source"] == "cache"  # while the other one waits
    assert slow.state in (RUNNING, WAITING)
    gate.set()
    slow.result(30)
