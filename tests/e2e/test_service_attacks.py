"""Attacks on a running service, in one table: each is refused as documented, as a problem, and nothing is charged."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from discreet.catalogue import CATALOGUE
from discreet.serve.keys import Keys
from discreet.serve.service import Service
from discreet.serve.settings import Limits
from tests.serving import COUNT, Local, Process, house

ASK = "/v1/tables/people/ask"
BODY = {"sql": "SELECT COUNT(*) FROM people WHERE age >= 51 AND pay < 300"}
SQL = [
    case.partition("\n")[0] for case in (Path(__file__).parent / "sql_cases" / "refused.txt").read_text().split("\n\n")
]
DEEP = "(" * 1000 + "age > 3" + ")" * 1000


@dataclass(frozen=True)
class Attack:
    """One request and the status that it must get.

    key      the name of a key in the house, or its text; None: no Authorization header
    raw      bytes that are sent as they are; KEY in them is ana's key
    """

    name: str
    status: int | tuple[int, ...]
    method: str = "POST"
    path: str = ASK
    key: str | None = "ana"
    body: Any = field(default_factory=lambda: BODY)
    headers: tuple[tuple[str, str], ...] = ()
    text: bytes | None = None
    raw: bytes | None = None


def at(name: str) -> str:
    return f"/v1/tables/people/{name}"


def sent(name: str, status: int, body: Any, path: str = ASK) -> Attack:
    return Attack(name, status, body=body, path=path)


def raw(name: str, status: int | tuple[int, ...], text: str) -> Attack:
    return Attack(name, status, raw=text.replace("\n", "\r\n").encode())


HEAD = f"POST {ASK} HTTP/1.1\nHost: desk\nAuthorization: Bearer KEY\nContent-Type: application/json\n"
FIT = {"kind": "mean", "target": "age", "epsilon": "0.1"}
RULE = {"kind": "rule", "target": "sex", "epsilon": "0.1"}


def named(estimator: str, target: str, **parameters: Any) -> dict[str, Any]:
    return {"estimator": estimator, "target": target, "parameters": {"epsilon": "0.1", "delta": "1e-9", **parameters}}


ATTACKS = [
    # Work that would hold the table, numbers that nobody can compute with, tables that are not there.
    sent(
        "a network of thousands of units", 413, {**FIT, "kind": "network", "target": "sex", "hidden": 4096}, at("fit")
    ),
    sent(
        "a network named by its class", 413, named("MLPClassifier", "sex", hidden_layer_sizes=[3000, 3000]), at("fit")
    ),
    sent("layers that are no widths", 422, named("MLPClassifier", "sex", hidden_layer_sizes=[[]]), at("fit")),
    sent("two hundred thousand steps", 413, named("LinearRegression", "age", max_iter=200_000), at("fit")),
    sent("steps that are no number", 422, named("LinearRegression", "age", max_iter="many"), at("fit")),
    sent(
        "a score's price that is half a character",
        422,
        named("BoxClassifier", "sex", score_epsilon="\ud800"),
        at("fit"),
    ),
    sent("an alpha that a float takes for 0", 422, {**RULE, "alpha": "1e-400"}, at("learn")),
    sent("a beta that a float takes for 0", 422, named("BoxClassifier", "sex", beta="1e-400"), at("fit")),
    sent("features of an estimator that has none", 422, {**named("Mean", "age"), "features": ["sex"]}, at("fit")),
    sent("an epsilon that no float holds", 402, named("LinearRegression", "age", epsilon=10**400), at("fit")),
    sent("a parameter of four hundred digits", 413, named("LinearRegression", "age", epsilon="9" * 400), at("fit")),
    sent("an epsilon of four hundred digits", 422, {"kind": "logistic", "epsilon": "9" * 400}, at("plan")),
    sent("an alpha of three thousand digits", 422, {**RULE, "alpha": "1/" + "3" * 3000}, at("learn")),
    sent("a fit of a table that is not there", 422, {**FIT, "table": "visits"}, at("fit")),
    sent("rows of a table that is not there", 422, {"rows": 2, "table": "visits"}, at("synthetic")),
    sent(
        "bounds in a table that is not there",
        422,
        {"column": "pay", "epsilon": "0.1", "table": "x"},
        at("suggest-bounds"),
    ),
    sent("a plan for a table that is not there", 422, {"kind": "count", "epsilon": "0.1", "table": "x"}, at("plan")),
    # Keys.
    Attack("no key", 401, key=None),
    Attack("an empty key", 401, key=""),
    Attack("the scheme alone", 401, key=None, headers=(("Authorization", "Bearer"),)),
    Attack("another scheme", 401, key=None, headers=(("Authorization", "Basic YW5hOmFuYQ=="),)),
    Attack("a key that is cut off", 401, key="ana[:-1]"),
    Attack("a key that is cut to its id", 401, key="ana[:12]"),
    Attack("a key that is too long", 401, key="ana+A"),
    Attack("a key with another end", 401, key="ana!"),
    Attack("the secret without the id", 401, key="ana[12:]"),
    Attack("the id of one and the secret of another", 401, key="ana[:12]+bob[12:]"),
    Attack("an unknown id", 401, key="dk_00000000_" + "A" * 43),
    Attack("a key in capitals", 401, key="ana.upper"),
    Attack("a key of ten thousand characters", (401, 431), key="x" * 10_000),
    Attack("two keys at once", 401, headers=(("Authorization", "Bearer dk_00000000_" + "A" * 43),)),
    Attack("a key in the query", 401, key=None, path=ASK + "?key=KEY&access_token=KEY"),
    Attack("a key in the body", 422, body={**BODY, "key": "KEY"}),
    Attack("a key as a cookie", 401, key=None, headers=(("Cookie", "discreet=KEY"), ("Sec-Fetch-Site", "same-origin"))),
    Attack("a name that a proxy would set", 401, key=None, headers=(("X-Forwarded-User", "olga"),)),
    Attack("a revoked key", 401, key="rita"),
    Attack("a revoked key and an id that it used before", 401, key="rita", headers=(("Idempotency-Key", "used"),)),
    Attack("an expired key", 401, key="tom"),
    Attack("a key of another table", 404, key="tim"),
    Attack("a key of another table looks", 404, "GET", "/v1/tables/people", key="tim", body=None),
    Attack("an owner asks", 403, key="olga"),
    Attack("an owner prices", 403, key="olga", path=at("price")),
    Attack("a key that may only ask fits", 403, key="eve", path=at("fit"), body=FIT),
    Attack("a key that may only ask learns", 403, key="eve", path=at("learn"), body={**FIT, "kind": "box"}),
    Attack("a key that may only ask draws rows", 403, key="eve", path=at("synthetic"), body={"rows": 3}),
    Attack(
        "a key that may only ask looks for bounds", 403, key="eve", path=at("suggest-bounds"), body={"column": "pay"}
    ),
    # Owners' things.
    *(
        Attack(f"an analyst at {name}", 403, "GET", at(name), body=None)
        for name in ("spending", "entries", "report", "export", "export?everything=true")
    ),
    Attack("an analyst verifies", 403, path=at("verify"), body=None),
    Attack("an analyst lists keys", 403, "GET", "/v1/keys", body=None),
    Attack("an analyst makes a key", 403, path="/v1/keys", body={"name": "mallory", "share": "1"}),
    Attack("an analyst revokes a key", 403, "DELETE", "/v1/keys/bob", body=None),
    Attack("an owner makes an owner", 422, path="/v1/keys", key="olga", body={"name": "two", "role": "owner"}),
    Attack("an owner revokes an owner", 403, "DELETE", "/v1/keys/olga", key="olga", body=None),
    Attack("a name with a tag", 422, path="/v1/keys", key="olga", body={"name": "<script>alert(1)</script>"}),
    Attack("a name with a line", 422, path="/v1/keys", key="olga", body={"name": "a\nb"}),
    # Cookies from elsewhere.
    *(
        Attack(f"ana's cookie from elsewhere: {dict(more)}", 403, key=None, headers=(("Cookie", "ana"), *more))
        for more in (
            (("Sec-Fetch-Site", "cross-site"),),
            (("Sec-Fetch-Site", "same-site"),),
            (("Origin", "https://evil.example"),),
            (("Origin", "null"),),
            (("Referer", "https://evil.example/"),),
            (("Origin", "https://desk.evil.example"), ("Host", "desk")),
        )
    ),
    Attack(
        "olga's cookie makes a key from elsewhere",
        403,
        path="/v1/keys",
        key=None,
        body={"name": "mallory"},
        headers=(("Cookie", "olga"), ("Sec-Fetch-Site", "cross-site")),
    ),
    Attack(
        "olga's cookie revokes from elsewhere",
        403,
        "DELETE",
        "/v1/keys/ana",
        key=None,
        body=None,
        headers=(("Cookie", "olga"), ("Sec-Fetch-Site", "cross-site")),
    ),
    Attack(
        "a form from elsewhere",
        403,
        key=None,
        text=b'{"sql": "SELECT COUNT(*) FROM people WHERE age > 1"}',
        headers=(("Cookie", "ana"), ("Content-Type", "text/plain"), ("Origin", "https://evil.example")),
    ),
    *(
        Attack(
            f"a cookie with {what}",
            401,
            key=None,
            headers=(("Cookie", f"ana {what}"), ("Sec-Fetch-Site", "same-origin")),
        )
        for what in (
            "another signature",
            "another holder",
            "a later end",
            "no signature",
            "rubbish",
            "a revoked holder",
        )
    ),
    # Paths.
    *(
        Attack(f"the path {path}", status, "GET", path, body=None)
        for path, status in (
            ("/v1/tables/../keys", 404),
            ("/v1/tables/%2e%2e%2fkeys", 404),
            ("/v1/tables/people%2f..%2fkeys", 404),
            ("//v1//tables", 404),
            ("/v1/tables/people%00", 404),
            ("/v1/tables/" + "x" * 5000, 422),
            ("/static/../../keys.json", 404),
            ("/static/%2e%2e/%2e%2e/keys.json", 404),
            ("/../../etc/passwd", 404),
            ("/keys.json", 404),
            ("/people.csv", 404),
            ("/people.ledger", 404),
            ("/v1/tables/people.csv", 404),
            ("/v1/tables/nothing", 404),
            ("/v1/tables/<script>", 404),
            ("/docs", 404),
            ("/v1/tables/PEOPLE", 404),
        )
    ),
    *(
        Attack(f"the entry {entry}", status, "GET", at(f"certificates/{entry}"), body=None)
        for entry, status in (
            ("0", 404),
            ("-1", 404),
            ("1", 404),
            ("99999999999999999999", 404),
            ("x", 422),
            ("1e3", 422),
        )
    ),
    Attack("the certificate of another", 404, "GET", at("certificates/BOBS"), body=None),
    Attack("the job of another", 404, "GET", at("jobs/BOBJOB"), body=None),
    Attack("the rows of another", 404, "GET", at("jobs/BOBJOB/rows"), body=None),
    Attack("another's job is cancelled", 404, "DELETE", at("jobs/BOBJOB"), body=None),
    Attack("a job that never was", 404, "GET", at("jobs/..%2f..%2fkeys"), body=None),
    # Methods.
    *(
        Attack(f"the method {method}", 405, method, body=None)
        for method in ("GET", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS")
    ),
    Attack("a method that is none", (400, 405), "BREW", body=None),
    Attack(
        "a preflight from elsewhere",
        405,
        "OPTIONS",
        body=None,
        key=None,
        headers=(("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")),
    ),
    # Bodies.
    *(
        Attack(f"the body {number}, {text[:20]!r}", (400, 422), text=text)
        for number, text in enumerate(
            (
                b"",
                b"{",
                b"[]",
                b"null",
                b"7",
                b'"SELECT"',
                b'{"sql"}',
                b"\xff\xfe",
                b'{"sql": "\xff"}',
                b"[" * 20_000,
                b'{"sql":' * 5000,
                b'{"sql": NaN}',
                b'{"sql": 7}',
                b'{"sql": null}',
                b'{"sql": ["SELECT"]}',
                b"sql=SELECT",
                b'{"sql": {"$ne": 1}}',
                b'{"max_price": "1"}',
                b'{"sql": "SELECT COUNT(*) FROM people", "extra": 1}',
                b'{"sql": "SELECT COUNT(*) FROM people WHERE age > 9", "sql": "SELECT * FROM people"}',
            )
        )
    ),
    Attack("a body of 70 kB", 413, text=b"x" * 70_000),
    Attack("a body of 5 MB", (413, 0), text=b"x" * 5_000_000),
    raw("a length that lies", 413, HEAD + "Content-Length: 99999999999\n\n{"),
    raw("a length that is none", 400, HEAD + "Content-Length: many\n\n{}"),
    raw("a negative length", 400, HEAD + "Content-Length: -5\n\n{}"),
    raw("two lengths", 400, HEAD + "Content-Length: 2\nContent-Length: 80\n\n{}"),
    raw("pieces without end", 413, HEAD + "Transfer-Encoding: chunked\n\n" + ("4000\n" + "x" * 0x4000 + "\n") * 5),
    raw("a length and pieces", (400, 422), HEAD + "Content-Length: 4\nTransfer-Encoding: chunked\n\n0\n\n"),
    # Headers and the log.
    raw("a header with a line in it", (400, 422), HEAD + "Idempotency-Key: a\n b\nContent-Length: 2\n\n{}"),
    raw("a header without a name", 400, HEAD + ": x\n\n"),
    raw("a header of 100 kB", (400, 431), HEAD + f"X-Long: {'x' * 100_000}\nContent-Length: 2\n\n{{}}"),
    raw("no request at all", 400, "\x16\x03\x01\x02 hello\n\n"),
    raw("a request without a version", 400, f"POST {ASK}\n\n"),
    Attack("an id with a slash", 422, headers=(("Idempotency-Key", "../../x"),)),
    Attack("an id of 65 characters", 422, headers=(("Idempotency-Key", "x" * 65),)),
    Attack("an id of 300 characters", 422, headers=(("Idempotency-Key", "x" * 300),)),
    Attack("an empty id", 422, headers=(("Idempotency-Key", ""),)),
    Attack("an id that was used for something else", 409, headers=(("Idempotency-Key", "mine"),)),
    Attack("an id that forges a line of the log", 422, headers=(("Idempotency-Key", '{"status":200}'),)),
    Attack("a path that forges a line of the log", 404, "GET", "/%0a%7b%22status%22%3a200%7d", body=None),
    # Questions.
    *(Attack(f"SQL {number}: {sql[:50]}", 422, body={"sql": sql}) for number, sql in enumerate(SQL[::6])),
    *(
        Attack(f"hostile SQL: {sql[:60]}", status, body={"sql": sql})
        for sql, status in (
            ("", 422),
            ("SELECT COUNT(*) FROM people; DROP TABLE people", 422),
            ("SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people", 422),
            ("SELECT COUNT(*) FROM read_csv('people.csv')", 422),
            ("ATTACH 'people.ledger' AS x", 422),
            ("COPY people TO '/tmp/x'", 422),
            ("SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(age) FROM people)", 422),
            ("SELECT COUNT(*) FROM people WHERE town = '<img src=x onerror=alert(1)>'", 422),
            ("SELECT COUNT(*) FROM people WHERE \x00", 422),
            ("SELECT COUNT(*) FROM people WHERE age > 1e99999", 422),
            (f"SELECT COUNT(*) FROM people WHERE {DEEP}", 422),
            ("SELECT age, " + "COUNT(*), " * 390 + "COUNT(*) FROM people GROUP BY age", 413),
            ("SELECT COUNT(*) FROM people WHERE age > " + "9" * 4000, 413),
            ("x" * 60_000, 413),
            ("SELECT age, pay, town, sex, COUNT(*) FROM people GROUP BY age, pay, town, sex", 413),
        )
    ),
    # Parameters.
    sent("a price that is none", 422, {**BODY, "max_price": "cheap"}),
    sent("a price below nothing", 422, {**BODY, "max_price": "-1"}),
    *(
        sent(f"a workload with {body}"[:150], status, body, at("workload"))
        for body, status in (
            ({"questions": []}, 422),
            ({"questions": COUNT}, 422),
            ({"questions": [COUNT] * 201}, 413),
            ({"questions": [BODY["sql"]], "share": "2"}, 422),
            ({"questions": [BODY["sql"]], "share": "0"}, 422),
            ({"questions": [BODY["sql"]], "share": "nan"}, 422),
            ({"questions": [BODY["sql"]], "share": "1e999999999"}, 422),
            ({"questions": ["SELECT MEDIAN(age) FROM people"], "share": "1/9"}, 422),
        )
    ),
    *(
        sent(f"a fit with {more}", 422, {**FIT, **more}, at("fit"))
        for more in (
            {"epsilon": "inf"},
            {"epsilon": "-1"},
            {"epsilon": "0"},
            {"epsilon": None},
            {"share": "1/9"},
            {"kind": "eval"},
            {"target": "nothing"},
            {"target": "__class__"},
            {"kind": "network", "hidden": 10**9},
            {"features": ["age"]},
            {"kind": None, "epsilon": None, "estimator": "os.system", "parameters": {}},
            {"kind": None, "epsilon": None, "estimator": "FiniteClassClassifier", "parameters": {"epsilon": 1}},
            {"kind": None, "epsilon": None, "estimator": "Mean", "parameters": {"epsilon": 1, "ledger": "x"}},
            {"kind": None, "epsilon": None, "estimator": "Mean", "parameters": {"epsilon": 1, "allowance": "bob"}},
            {"kind": None, "epsilon": None, "estimator": "Mean", "parameters": {"epsilon": {"__import__": "os"}}},
            {"allowance": "bob"},
            {"ledger": "other.ledger"},
        )
    ),
    sent("a fit that costs more than there is", 402, {**FIT, "epsilon": "50"}, at("fit")),
    *(
        sent(f"rows with {more}", status, {"rows": 3, **more}, at("synthetic"))
        for more, status in (
            ({"rows": 10**12}, 413),
            ({"rows": 0}, 422),
            ({"rows": -5}, 422),
            ({"rows": "all"}, 422),
            ({"format": "exe"}, 422),
            ({"measure": [["age"]]}, 422),
            ({"seed": -1}, 422),
            ({"share": "3"}, 422),
            ({"path": "/tmp/x"}, 422),
        )
    ),
    sent("a plan of something else", 422, {"kind": "__class__", "share": "1/9"}, at("plan")),
    sent(
        "a plan with a huge number",
        422,
        {"kind": "histogram", "share": "1/9", "numbers": {"cells": 10**400}},
        at("plan"),
    ),
    *(
        sent(
            f"a plan whose numbers name its {name}",
            422,
            {"kind": "count", "share": "1/9", "numbers": {name: 5}},
            at("plan"),
        )
        for name in ("ledger", "size", "domain", "neighbours")
    ),
    sent(
        "a plan of a rule that takes long to count",
        422,
        {"kind": "conjunction", "share": "1/9", "numbers": {"d": 10**9, "k": 10**8}},
        at("plan"),
    ),
    sent(
        "a plan without features",
        422,
        {"kind": "linear", "share": "1/9", "target": "age", "features": []},
        at("plan"),
    ),
    sent("a rule of another kind", 422, {**FIT, "kind": "tree"}, at("learn")),
    sent("a rule of 99 conditions", 422, {**FIT, "kind": "rule", "target": "sex", "k": 99}, at("learn")),
    sent("a rehearsal that nobody allowed", 404, BODY, at("rehearsal/ask")),
    Attack("a history without end", 422, "GET", at("history?most=100000"), body=None),
]


@dataclass
class Besieged:
    """The running service, and what attackers know."""

    desk: Process
    facts: dict[str, str]

    def key(self, said: str | None) -> str | None:
        """A key as an attack describes it."""
        if said is None:
            return None
        keys = self.desk.house.keys
        if said == "ana!":
            return keys["ana"][:-1] + ("A" if keys["ana"][-1] != "A" else "B")
        if said == "ana.upper":
            return keys["ana"].upper()
        parts = [re.fullmatch(r"(ana|bob)\[(-?\d*):(-?\d*)\]", part) for part in said.split("+")]
        if all(parts):
            numbers = [[int(each) if each else None for each in part.groups()[1:]] for part in parts if part]
            return "".join(keys[part[1]][slice(*ends)] for part, ends in zip(parts, numbers, strict=True) if part)
        return keys["ana"] + "A" if said == "ana+A" else keys.get(said, said)

    def cookie(self, said: str) -> str:
        """The cookie that an attack describes."""
        name, _, how = said.partition(" ")
        if name not in self.desk.house.keys:
            return said.replace("KEY", self.desk.house.keys["ana"])
        id_, end, sign = self.facts[f"cookie {name}"].split(".")
        changed = {
            "": (id_, end, sign),
            "another signature": (id_, end, "0" * 64),
            "another holder": (self.facts["cookie olga"].split(".")[0], end, sign),
            "a later end": (id_, str(int(end) + 10**6), sign),
            "no signature": (id_, end, ""),
            "rubbish": ("ä", "-1", "\x01"),
            "a revoked holder": tuple(self.facts["cookie rita"].split(".")),
        }
        return f"discreet={'.'.join(changed[how])}"

    def send(self, attack: Attack) -> tuple[int, dict[str, str], bytes]:
        where = urlsplit(self.desk.url)
        if attack.raw is not None:
            return self.send_raw(attack.raw.replace(b"KEY", self.desk.house.keys["ana"].encode()))
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        path = attack.path.replace("KEY", self.desk.house.keys["ana"])
        for name, value in self.facts.items():
            path = path.replace(name, value)
        data = (
            attack.text
            if attack.text is not None
            else None
            if attack.body is None
            else json.dumps(attack.body).encode()
        )
        connection.putrequest(attack.method, path, skip_host=any(name == "Host" for name, _ in attack.headers))
        key = self.key(attack.key)
        given = [] if key is None else [("Authorization", f"Bearer {key}")]
        kinds = (
            [] if any(name == "Content-Type" for name, _ in attack.headers) else [("Content-Type", "application/json")]
        )
        for name, value in (*given, *kinds, *attack.headers):
            said = self.cookie(value) if name == "Cookie" else value
            connection.putheader(name, said.encode("latin-1", "replace"))
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders()
        try:
            if data is not None:
                connection.send(data)
        except OSError:
            pass  # it was refused before it was sent
        try:
            reply = connection.getresponse()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        except OSError:
            return 0, {}, b""
        finally:
            connection.close()

    def send_raw(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        where = urlsplit(self.desk.url)
        with socket.create_connection((where.hostname, where.port), timeout=60) as line:
            line.sendall(data)
            reply = http.client.HTTPResponse(line)
            reply.begin()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()


@pytest.fixture(scope="module")
def siege(tmp_path_factory):
    made = house(tmp_path_factory.mktemp("siege"), "people", "staff")
    made.add("eve", share="1/10", may=("ask",))
    made.add("tim", share="1/10", tables=("staff",))
    made.add("rita", share="1/10")
    made.add("tom", share="1/10", expires=time.time() + 2)
    end = time.monotonic() + 2.1
    with Process(made, "--time-grid", "0", "--max-rate", "1000000") as desk:
        facts = {}
        for name in ("ana", "olga", "rita"):
            shell = Service.__new__(Service)  # signs as the running service does
            shell._secret = (made.folder / ".keys.json.cookies").read_bytes()
            facts[f"cookie {name}"] = Service.cookie(shell, Keys(made.keys_file).find(made.keys[name]))
        status, told = desk.post(ASK, {"sql": COUNT}, **{"Idempotency-Key": "mine"})
        assert status == 200, told
        assert desk.post(ASK, {"sql": COUNT}, "rita", **{"Idempotency-Key": "used"})[0] == 200
        status, told = desk.post(ASK, {"sql": "SELECT COUNT(*) FROM people WHERE pay > 500"}, "bob")
        facts["BOBS"] = str(json.loads(told)["entries"][0])
        status, told = desk.post(at("synthetic"), {"rows": 3}, "bob")
        assert status == 200, told
        facts["BOBJOB"] = json.loads(told)["job"]
        Keys(made.keys_file).revoke("rita")
        time.sleep(max(0.0, end - time.monotonic()))  # until tom's key has expired
        yield Besieged(desk, facts)


def test_there_are_at_least_eighty_attacks_and_no_two_have_a_name():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 80


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_refused_and_nothing_is_charged(siege, attack):
    ledger = siege.desk.house.ledger()
    before = (ledger.spent().renyi, ledger.length())
    status, headers, body = siege.send(attack)
    allowed = attack.status if isinstance(attack.status, tuple) else (attack.status,)
    assert status in allowed, (status, body[:300])
    assert (ledger.spent().renyi, ledger.length()) == before
    assert "access-control-allow-origin" not in headers
    assert not [key for key in siege.desk.house.keys.values() if key.encode() in body]
    if attack.raw is None and status:
        assert headers["content-type"] == "application/problem+json"
        assert headers["x-content-type-options"] == "nosniff"
        told = json.loads(body)
        assert told["status"] == status
        assert "Traceback" not in told["detail"]
        assert "<script>" not in told["type"]


def test_the_log_has_one_whole_line_for_each_request_and_no_secret(siege):
    text = (siege.desk.house.folder / "access.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert all(
        line.keys() == {"time", "key", "method", "route", "table", "status", "price", "entries"} for line in lines
    )
    for secret in (*siege.desk.house.keys.values(), "SELECT", "forge", "evil", "<script>", "script"):
        assert secret not in text


def test_the_service_still_answers_and_its_ledgers_are_sound(siege):
    assert siege.desk.post(ASK, {"sql": COUNT})[0] == 200
    assert siege.desk.process.poll() is None
    for name in ("people", "staff"):
        siege.desk.house.ledger(name).verify()


def test_a_body_that_comes_slowly_is_refused(tmp_path):
    async def slowly():
        for sign in b'{"sql": "SELECT COUNT(*) FROM people"}':
            yield bytes([sign])
            await asyncio.sleep(0.1)

    with Local(house(tmp_path), limits=Limits(slow=0.5)) as desk:
        got = desk.call("POST", ASK, content=slowly(), headers={"Content-Type": "application/json"})
        assert (got.status_code, got.json()["type"]) == (408, "ParameterError")
        assert not desk.service.desks["people"].ledger.spent().renyi


def test_more_requests_at_once_than_the_limit_are_refused(tmp_path):
    with Local(house(tmp_path), limits=Limits(concurrent=0)) as desk:
        assert desk.ask().status_code == 429


def test_bytes_that_are_kept_for_a_key_have_a_limit(tmp_path):
    """Free questions with ids of their own make the ledger longer: not without end."""
    with Local(house(tmp_path), limits=Limits(kept=4_000)) as desk:
        assert desk.ask(COUNT).status_code == 200
        replies = [desk.ask(COUNT + " " * at, request=f"free{at}") for at in range(40)]
        refused = next(each for each in replies if each.status_code != 200)
        assert (refused.status_code, refused.json()["type"]) == (429, "TooBusy")
        assert "bytes kept" in refused.json()["detail"]
        assert desk.ask(COUNT, key="bob").status_code == 200


def test_everything_at_once_at_two_services_stays_within_the_allowance(tmp_path, address):
    """Questions, workloads, models, rules, bounds and rows in one name, at two processes on one PostgreSQL."""
    made = house(tmp_path, ledger=str(address))
    made.add("eve", share="1/20")
    works: list[tuple[str, dict[str, Any]]] = [
        ("ask", {"sql": "SELECT COUNT(*) FROM people WHERE age >= {at} AND sex = 'F'"}),
        ("workload", {"questions": ["SELECT COUNT(*) FROM people WHERE age = {at}"], "share": "1/3"}),
        ("fit", {"kind": "mean", "target": "age", "epsilon": "0.0{at}", "again": True}),
        ("learn", {"kind": "rule", "target": "sex", "epsilon": "0.0{at}", "again": True}),
        ("suggest-bounds", {"column": "pay", "epsilon": "0.2{at}", "again": True}),
        ("synthetic", {"rows": 5, "share": "1/4"}),
    ]
    given = [
        (path, json.loads(json.dumps(body).replace("{at}", str(10 + at)))) for at in range(8) for path, body in works
    ]
    grid = ("--time-grid", "0")
    with Process(made, *grid) as one, Process(made, *grid) as two, ThreadPoolExecutor(12) as pool:
        posts = [
            pool.submit((one, two)[place % 2].post, at(path), body, "eve") for place, (path, body) in enumerate(given)
        ]
        statuses = Counter(each.result()[0] for each in posts)
    assert set(statuses) <= {200, 402, 422, 429}, statuses
    assert statuses[200]
    assert statuses[402]
    with made.ledger() as ledger:
        ledger.verify(CATALOGUE)
        use = next(each for each in ledger.allowances() if each.name == "eve")
        cap = ledger.spent().caps.renyi
        charged = sum(each["price"]["renyi"] for each in ledger.entries() if each["kind"] == "charge")
        assert {each["allowance"] for each in ledger.entries() if each["kind"] == "charge"} == {"eve"}
        assert cap is not None
        assert 0 < charged <= use.share * cap
