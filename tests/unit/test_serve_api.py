"""The HTTP interface, over ASGI: who gets in where, problems, jobs, the time grid, limits and the access log."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import re
import threading
import time

import pytest

import discreet as dp
from discreet import errors
from discreet.remote import error_from
from discreet.serve.guard import AccessLog, Guard
from discreet.serve.jobs import Ticket
from discreet.serve.keys import Keys
from discreet.serve.problems import STATUS, problem
from discreet.serve.settings import Limits
from tests.serving import COUNT, GROUPS, Local, house

OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/v1/openapi.json")}
GUESTS = {"/v1/tables/{table}/rehearsal/ask", "/v1/tables/{table}/rehearsal/price"}
OWNERS = {
    *(f"/v1/tables/{{table}}/{name}" for name in ("spending", "entries", "verify", "report", "export")),
    *("/v1/keys", "/v1/keys/{id_}"),
}


@pytest.fixture
def desk(tmp_path):
    with Local(house(tmp_path)) as found:
        yield found


def routes(app):
    """Every method and path of /v1, as the OpenAPI document has them."""
    for path, ways in app.openapi()["paths"].items():
        if path.startswith("/v1"):
            yield from ((method.upper(), path) for method in ways)


def filled(path: str) -> str:
    return path.replace("{table}", "people").replace("{entry}", "5").replace("{id_}", "0")


def test_every_route_without_a_key_is_refused(desk):
    asked = 0
    for method, path in routes(desk.app):
        if path in GUESTS:
            continue
        for key in (None, "dk_00000000_" + "A" * 43):
            got = desk.call(method, filled(path), key=key, json={} if method == "POST" else None)
            assert (got.status_code, got.json()["type"]) == (401, "KeyRefused"), (method, path)
            assert got.headers["www-authenticate"] == "Bearer"
        asked += 1
    assert asked >= 20


def test_every_route_of_the_owner_refuses_an_analyst(desk):
    found = {path for _, path in routes(desk.app)}
    assert found >= OWNERS
    for method, path in routes(desk.app):
        if path in OWNERS:
            body = {"name": "eve"} if method == "POST" else None
            got = desk.call(method, filled(path), json=body)
            assert (got.status_code, got.json()["type"]) == (403, "NotPermitted"), (method, path)
            assert desk.call(method, filled(path), key="olga", json=body).status_code != 403


def test_rehearsals_are_closed_unless_the_owner_opens_them(desk, tmp_path):
    assert desk.call("POST", "/v1/tables/people/rehearsal/ask", key=None, json={"sql": COUNT}).status_code == 404


def test_a_rehearsal_needs_no_key_and_touches_neither_rows_nor_ledger(tmp_path):
    with Local(house(tmp_path), rehearsal=True) as desk:
        before = desk.service.desks["people"].ledger.length()
        got = desk.call("POST", "/v1/tables/people/rehearsal/ask", key=None, json={"sql": COUNT})
        price = desk.call("POST", "/v1/tables/people/rehearsal/price", key=None, json={"sql": COUNT})
        assert (got.status_code, price.status_code) == (200, 200)
        assert desk.service.desks["people"].ledger.length() == before
        for _ in range(105):  # its budget ends, and a new rehearsal begins
            sql = f"SELECT COUNT(*) FROM people WHERE pay >= {_ % 90 * 10} AND age >= {_ % 7}"
            assert desk.call("POST", "/v1/tables/people/rehearsal/ask", key=None, json={"sql": sql}).status_code == 200


def test_a_problem_has_the_class_and_the_words_of_the_library(desk):
    got = desk.ask("SELECT * FROM people")
    assert (got.status_code, got.headers["content-type"]) == (422, "application/problem+json")
    table = desk.service.desks["people"].table
    with pytest.raises(errors.UnsupportedQuery) as local:
        dp.Session(table, desk.service.desks["people"].ledger).ask("SELECT * FROM people")
    assert got.json()["detail"] == str(local.value)
    assert (got.json()["type"], got.json()["position"]) == ("UnsupportedQuery", 7)


@pytest.mark.parametrize(
    "error",
    [
        errors.BudgetExceeded("1", "2", "words"),
        errors.AboveMaxPrice("1", "2", "words"),
        errors.UnsupportedQuery("SELECT", 3, "a reason", "a hint"),
        errors.TooBusy("later", retry_after=7),
        errors.ParameterError("wrong", argument="share"),
        errors.Unproven("no theorem"),
        errors.NothingFits("nothing"),
        errors.SchemaError("a column"),
        errors.LedgerUnavailable("full"),
        errors.LedgerMismatch("another"),
        errors.LedgerCorrupt(3, "this", "that"),
        errors.LedgerRolledBack(3, "this", "that"),
        errors.ConversationOver("done"),
        *(kind("said") for kind in (errors.KeyRefused, errors.NotPermitted, errors.NotFound, errors.TooLarge)),
        *(kind("said") for kind in (errors.RequestConflict, errors.Cancelled)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_back_as_itself(error):
    told = json.loads(json.dumps(problem(error)))
    made = error_from(told, "SELECT")
    assert type(made) is type(error)
    assert str(made) == str(error)
    assert vars(made).items() >= vars(error).items()


def test_every_error_has_a_status_and_whatever_else_is_one_sentence():
    kinds = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.DiscreetError)
    ]
    for kind in kinds:
        known = any(each in STATUS for each in kind.__mro__)
        client = kind in (errors.Unreachable, errors.ServiceError, errors.DiscreetError, errors.NotPrivate)
        assert known or client, kind
    for error in (RuntimeError("86753090"), errors.DiscreetError("86753090")):
        assert problem(error)["status"] == 500
        assert "8675" not in json.dumps(problem(error))


def test_a_refusal_does_not_repeat_without_end_what_was_sent(desk):
    got = desk.call("POST", "/v1/keys", key="olga", json={"name": "x" * 60_000})
    assert got.status_code == 422
    assert len(got.json()["detail"]) < 9000


def test_a_failure_inside_a_route_is_one_sentence(desk, monkeypatch):
    monkeypatch.setattr(type(desk.service.desks["people"]), "about", lambda self: 1 / 0)
    got = desk.call("GET", "/v1/tables/people")
    assert (got.status_code, got.json()["type"]) == (500, "ServiceFailed")
    assert "division" not in got.text
    assert got.headers["x-content-type-options"] == "nosniff"


def test_what_an_analyst_sent_is_not_printed_when_something_fails(tmp_path, monkeypatch):
    printed = io.StringIO()
    monkeypatch.setattr("sys.stderr", printed)

    def fails(self):
        raise RuntimeError("SECRET")

    with Local(house(tmp_path)) as desk:
        monkeypatch.setattr(type(desk.service.desks["people"]), "about", fails)
        assert desk.call("GET", "/v1/tables/people").status_code == 500
        assert printed.getvalue() == "a request failed inside the service: RuntimeError\n"
        assert desk.house.log()[-1]["status"] == 500


def test_a_refusal_for_which_nobody_waits_any_more_is_not_printed(desk, capfd, caplog):
    gate = threading.Event()

    def refused(job):
        gate.wait(30)
        raise errors.SchemaError("column 'SECRET'")

    async def leaves_early():
        job = desk.service.desks["people"].jobs.submit(ticket, refused)
        waiting = asyncio.ensure_future(job.ending())
        await asyncio.sleep(0.05)
        waiting.cancel()
        gate.set()
        with pytest.raises(errors.SchemaError):
            await asyncio.to_thread(job.result, 30)
        await asyncio.sleep(0.05)
        del job, waiting
        gc.collect()

    ticket = Ticket(desk.service.keys.find(desk.house.keys["ana"]), "ask")
    asyncio.run(leaves_early())
    gc.collect()
    assert "SECRET" not in caplog.text + "".join(capfd.readouterr())


def test_the_same_id_gets_the_same_bytes_and_another_key_does_not_see_it(desk):
    first, again = (desk.ask(GROUPS, request="one") for _ in range(2))
    assert first.content == again.content
    other = desk.ask(GROUPS, key="bob", request="one")
    assert other.json()["price"]["nano"] == 0
    assert other.content != first.content
    assert desk.ask(COUNT, request="one").status_code == 409


def test_a_job_is_invisible_to_others_and_its_rows_are_fetched_by_its_owner(desk):
    got = desk.call("POST", "/v1/tables/people/synthetic", json={"rows": 7, "share": "1/10", "seed": 3})
    job = got.json()["job"]
    for path in (f"/v1/tables/people/jobs/{job}", f"/v1/tables/people/jobs/{job}/rows"):
        assert desk.call("GET", path, key="bob").status_code == 404
        assert desk.call("GET", path, key="olga").status_code == 404
        assert desk.call("GET", path).status_code == 200
    assert desk.call("DELETE", f"/v1/tables/people/jobs/{job}", key="bob").status_code == 404
    text = desk.call("GET", f"/v1/tables/people/jobs/{job}/rows").text
    assert text.splitlines()[0] == "age,sex,town,pay"
    assert len(text.splitlines()) == 8


def test_long_work_is_a_job_that_can_be_cancelled_before_it_is_charged(desk, monkeypatch):
    gate, answer = threading.Event(), dp.Session.ask
    monkeypatch.setattr(dp.Session, "ask", lambda *given, **named: (gate.wait(30), answer(*given, **named))[1])
    headers = {"Prefer": "wait=0", "Idempotency-Key": "long"}
    body = {"sql": COUNT}
    got = desk.call("POST", "/v1/tables/people/ask", json=body, headers=headers)
    assert got.status_code == 202
    where = got.headers["location"]
    assert desk.call("GET", where).status_code == 202
    assert desk.call("DELETE", where).json()["cancelled"]
    gate.set()
    ended = desk.call("GET", where, headers={"Prefer": "wait=20"})
    assert (ended.status_code, ended.json()["type"]) == (409, "Cancelled")
    assert desk.service.desks["people"].ledger.spent().renyi == 0
    monkeypatch.undo()
    assert (
        desk.call("POST", "/v1/tables/people/ask", json=body, headers=headers | {"Prefer": "wait=30"}).status_code
        == 200
    )


def test_an_allowance_that_is_spent_is_402_with_its_fields(desk):
    last = None
    for at in range(40):
        last = desk.ask(f"SELECT COUNT(*) FROM people WHERE pay >= {at * 10} AND age >= {at}")
        if last.status_code != 200:
            break
    assert last is not None
    assert (last.status_code, last.json()["type"]) == (402, "BudgetExceeded")
    assert {"asked", "remaining", "fits"} <= last.json().keys()
    assert "'ana'" in last.json()["remaining"]
    assert desk.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'", key="bob").status_code == 200


def test_replies_leave_on_a_grid(tmp_path):
    with Local(house(tmp_path), time_grid=0.5) as desk:
        desk.ask(GROUPS)
        for path in ("/v1/tables", "/v1/tables/people/budget", "/nowhere"):
            began = time.monotonic()
            desk.call("GET", path)
            assert time.monotonic() - began >= 0.5
        began = time.monotonic()
        for _ in range(3):
            desk.call("GET", "/healthz", key=None)
        assert time.monotonic() - began < 60  # it waits for no grid; how fast it is depends on the machine


def test_requests_and_prices_of_a_key_are_limited_before_anything_is_spent(tmp_path):
    with Local(house(tmp_path), limits=Limits(requests=5)) as desk:
        codes = [desk.ask(COUNT).status_code for _ in range(7)]
        assert codes[:5] == [200] * 5
        assert codes[6] == 429
        got = desk.ask(COUNT)
        assert (got.json()["type"], got.headers["retry-after"]) == ("TooBusy", "5")
        assert desk.ask(COUNT, key="bob").status_code == 200


def test_one_key_does_not_take_every_place(tmp_path, monkeypatch):
    gate, answer = threading.Event(), dp.Session.ask
    monkeypatch.setattr(dp.Session, "ask", lambda *given, **named: (gate.wait(30), answer(*given, **named))[1])

    async def several():
        send, body = desk._call, {"sql": COUNT}
        asked = [
            asyncio.ensure_future(send("POST", "/v1/tables/people/ask", "ana", {"json": dict(body)})) for _ in range(2)
        ]
        inside = desk.service.rates._inside
        while inside.total() < 2:
            await asyncio.sleep(0.01)
        codes = [(await send("GET", "/v1/tables", name, {})).status_code for name in ("ana", "bob")]
        gate.set()
        return codes, [(await each).status_code for each in asked]

    with Local(house(tmp_path), limits=Limits(concurrent_each=2)) as desk:
        assert asyncio.run(several()) == ([429, 200], [200, 200])
        assert desk.service.rates._inside.total() == 0
        assert desk.call("GET", "/v1/tables").status_code == 200


def test_bodies_that_never_end_do_not_keep_others_out(desk):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def never():
        await asyncio.Event().wait()

    async def whole():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ask(guard, receive):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        await guard(scope, receive, send)
        return sent[0]["status"]

    async def attack():
        guard = Guard(app, Limits(arriving=2, concurrent=1, slow=60), 0.0, AccessLog(None, io.StringIO()))
        slow = [asyncio.ensure_future(ask(guard, never)) for _ in range(4)]
        await asyncio.sleep(0.05)
        honest = [await ask(guard, whole) for _ in range(3)]
        done = [each.result() for each in slow if each.done()]
        for each in slow:
            each.cancel()
        return done, honest

    done, honest = asyncio.run(attack())
    assert honest == [200] * 3
    assert done[:2] == [408, 408]


def test_the_work_of_pricing_is_limited_too(tmp_path):
    with Local(house(tmp_path), limits=Limits(pricing=0.001)) as desk:
        desk.call("POST", "/v1/tables/people/price", json={"sql": GROUPS})
        got = desk.call("POST", "/v1/tables/people/price", json={"sql": GROUPS})
        assert got.status_code == 429
        assert "seconds of pricing in a minute" in got.json()["detail"]
        assert not desk.service.desks["people"].ledger.spent().renyi


def test_headers_forbid_scripts_frames_and_caches(desk):
    for got in (desk.call("GET", "/v1/tables"), desk.call("GET", "/nowhere"), desk.ask("x")):
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in got.headers["content-security-policy"]
        assert "unsafe" not in got.headers["content-security-policy"]
        assert "server" not in got.headers


def test_the_access_log_has_no_question_and_no_answer(desk):
    told = desk.ask(GROUPS, request="logged").json()
    desk.call("GET", "/v1/tables/people/history?most=7&x=%0aforged")
    desk.call("GET", "/v1/tables/%0d%0aforged/budget")
    lines = desk.house.log()
    assert {line["status"] for line in lines} == {200, 404}
    allowed = {"time", "key", "method", "route", "table", "status", "price", "entries"}
    assert all(line.keys() == allowed for line in lines)
    text = (desk.house.folder / "access.jsonl").read_text()
    for secret in ("SELECT", "town", "north", "logged", "forged", "most=7", str(told["rows"][0][1])):
        assert not re.search(rf"\b{re.escape(secret)}\b", text), secret
    assert lines[0]["entries"] == told["entries"]
    assert lines[0]["price"] == told["price"]["nano"]


def test_health_says_nothing_of_tables_and_readiness_ends_with_the_service(desk):
    assert "people" not in desk.call("GET", "/healthz", key=None).text
    assert desk.call("GET", "/readyz", key=None).status_code == 200
    desk.service.stopping = True
    assert desk.call("GET", "/readyz", key=None).status_code == 503
    got = desk.ask(COUNT)
    assert (got.status_code, got.json()["type"]) == (429, "TooBusy")


def test_closing_has_one_deadline_for_all_tables_and_all_calls(tmp_path):
    with Local(house(tmp_path, "people", "staff")) as desk:
        gate, begun = threading.Event(), [threading.Event() for _ in range(2)]
        ticket = Ticket(desk.service.keys.find(desk.house.keys["ana"]), "fit")
        for each, event in zip(desk.service.desks.values(), begun, strict=True):
            each.jobs.submit(ticket, lambda job, event=event: (event.set(), gate.wait(30), {})[2])
        assert all(event.wait(30) for event in begun)
        given = []
        for each in desk.service.desks.values():
            each.close = lambda patience, close=each.close: (given.append(patience), close(patience))[1]
        assert not desk.service.close(0.2)
        assert not desk.service.close(30)  # the first call has set the deadline
        assert sum(given) <= 0.2
        gate.set()
        for each in desk.service.desks.values():
            assert each.close(30)


def test_keys_are_made_and_revoked_over_http_and_work_at_once(desk):
    made = desk.call("POST", "/v1/keys", key="olga", json={"name": "eve", "share": "1/10", "may": ["ask"]})
    assert made.status_code == 201
    key = made.json()["key"]
    assert desk.ask(COUNT, key=key).status_code == 200
    assert key not in desk.call("GET", "/v1/keys", key="olga").text
    assert desk.call("DELETE", f"/v1/keys/{made.json()['id']}", key="olga").json() == {"revoked": [made.json()["id"]]}
    assert desk.ask(COUNT, key=key).status_code == 401
    assert desk.call("DELETE", "/v1/keys/olga", key="olga").status_code == 403


def test_a_key_for_one_table_does_not_reach_another(tmp_path):
    made = house(tmp_path, "people", "staff")
    made.add("tim", share="1/10", tables=("staff",))
    with Local(made) as desk:
        assert desk.call("GET", "/v1/tables", key="tim").json()["tables"] == ["staff"]
        assert desk.call("GET", "/v1/tables/people", key="tim").status_code == 404
        assert desk.ask(COUNT, key="tim").status_code == 404
        body = {"sql": "SELECT COUNT(*) FROM staff WHERE age > 3"}
        assert desk.call("POST", "/v1/tables/staff/ask", key="tim", json=body).status_code == 200
        assert desk.call("GET", "/v1/tables", key="ana").json()["tables"] == ["people", "staff"]


def test_a_table_without_an_allowance_of_the_analyst_is_not_listed(tmp_path):
    made = house(tmp_path, "people", "staff")
    keys = Keys(made.keys_file)
    with made.ledger("people") as ledger:  # the key is for all tables, and staff came later
        made.keys["eve"] = keys.add_analyst({"people": ledger}, "eve", share="1/10")["key"]
    with Local(made) as desk:
        assert desk.call("GET", "/v1/tables", key="eve").json()["tables"] == ["people"]
        assert desk.call("GET", "/v1/tables", key="olga").json()["tables"] == ["people", "staff"]


def test_an_owner_for_one_table_manages_keys_for_that_table_alone(tmp_path):
    made = house(tmp_path, "people", "staff")
    made.add("oto", role="owner", tables=("people",))
    made.add("sam", share="1/10", tables=("staff",))
    made.add("pam", share="1/10", tables=("people",))
    with Local(made) as desk:
        refused = desk.call("POST", "/v1/keys", key="oto", json={"name": "eve", "tables": ["staff"]})
        assert (refused.status_code, refused.json()["type"]) == (422, "ParameterError")
        assert refused.json()["detail"].endswith(" here: people")
        new = desk.call("POST", "/v1/keys", key="oto", json={"name": "eve", "share": "1/10"}).json()
        assert new["tables"] == ["people"]
        assert desk.call("GET", "/v1/tables/staff", key=new["key"]).status_code == 404
        assert "eve" not in {each.name for each in desk.service.desks["staff"].ledger.allowances()}
        names = {each["name"] for each in desk.call("GET", "/v1/keys", key="oto").json()["keys"]}
        assert names == {"oto", "pam", "eve"}
        for name in ("ana", "sam"):  # for all tables, and for the other one
            assert desk.call("DELETE", f"/v1/keys/{name}", key="oto").status_code == 422
            assert desk.call("GET", "/v1/tables/staff", key=name).status_code == 200
        assert desk.call("DELETE", "/v1/keys/pam", key="oto").status_code == 200
        assert desk.call("GET", "/v1/tables", key="pam").status_code == 401
        assert desk.call("POST", "/v1/keys", key="olga", json={"name": "zoe"}).json()["tables"] is None


def test_a_plan_a_rule_and_bounds_over_http(desk):
    plan = desk.call("POST", "/v1/tables/people/plan", json={"kind": "mean", "target": "age", "share": "1/4"})
    assert plan.json()["methods"]
    rule = {"kind": "rule", "target": "sex", "features": ["age"], "epsilon": "0.1", "certify": "0.05"}
    got = desk.call("POST", "/v1/tables/people/learn", json=rule, headers={"Prefer": "wait=60"})
    assert got.status_code == 200, got.text
    assert len(got.json()["entries"]) == 2
    bounds = desk.call("POST", "/v1/tables/people/suggest-bounds", json={"column": "pay", "epsilon": "0.2"})
    assert bounds.status_code == 200, bounds.text
    assert bounds.json()["low"] <= bounds.json()["high"]
    for body in ({"column": "town", "epsilon": "0.2"}, {"column": "pay"}, {"column": "nothing", "epsilon": "1"}):
        assert desk.call("POST", "/v1/tables/people/suggest-bounds", json=body).status_code == 422


def test_the_openapi_document_names_every_route(desk):
    document = desk.call("GET", "/v1/openapi.json", key=None).json()
    assert "/v1/tables/{table}/ask" in document["paths"]
    assert document["info"]["version"] == dp.__version__
