"""A value that stands in one row is in nothing that a service writes, sends or logs, whatever is asked and however it
fails."""

from __future__ import annotations

import re
import time

import pytest

from discreet import remote
from tests.serving import COUNT, GROUPS, Local, Process, house

CANARY = "Canary-4f7a91"
GRID = 0.5  # seconds
ROUTES = ("", "/budget", "/known", "/history", "/spending", "/entries", "/export?everything=true", "/report", "/export")
BODIES = {
    "ask": [{"sql": COUNT}, {"sql": GROUPS}, {"sql": "SELECT COUNT(*) FROM people WHERE town = 'elsewhere'"}],
    "price": [{"sql": "SELECT AVG(pay) FROM people"}, {"sql": "SELECT MEDIAN(age) FROM people WHERE age > 80"}],
    "workload": [{"questions": [GROUPS, COUNT], "share": "1/20"}],
    "fit": [{"kind": "mean", "target": "pay", "epsilon": "0.05"}, {"kind": "mean", "target": "town", "epsilon": "1"}],
    "learn": [{"kind": "rule", "target": "sex", "features": ["town", "age"], "epsilon": "0.05"}],
    "suggest-bounds": [{"column": "pay", "epsilon": "0.1"}],
    "synthetic": [{"rows": 200, "share": "1/10"}],
    "plan": [{"kind": "mean", "target": "pay", "share": "1/4"}],
}


def parts(canary: str) -> tuple[str, ...]:
    return (canary, canary.lower(), canary[:9], canary.encode().hex())


def test_a_planted_value_is_nowhere(tmp_path):
    made = house(tmp_path, secret=CANARY)
    heard: list[bytes] = []
    with Process(made, "--time-grid", "0", "--rehearsal") as desk:
        for name, bodies in BODIES.items():
            for at, body in enumerate(bodies):
                named = {"Idempotency-Key": f"{name}{at}"}
                heard.append(desk.post(f"/v1/tables/people/{name}", body, **named)[1])
        for key in ("ana", "olga"):
            session = remote._Line(desk.url, made.keys[key], 60, 60)
            for route in ROUTES:
                heard.append(session.send("GET", f"/v1/tables/people{route}")[1])
        heard.append(session.send("GET", "/v1/openapi.json")[1])
        heard.append(session.send("POST", "/v1/tables/people/rehearsal/ask", {"sql": GROUPS})[1])
        (made.folder / "people.csv").write_text("age,sex\n1,2\n")  # the rows change under the service
        heard.append(desk.post("/v1/tables/people/ask", {"sql": "SELECT COUNT(*) FROM people WHERE age > 97"})[1])
        _, said = desk.stop()
        heard.append(said.encode())
    assert len(heard) > 25
    everything = b"\n".join(heard)
    for path in (path for folder in (made.folder, made.state) for path in folder.rglob("*") if path.is_file()):
        if path.name != "people.csv":
            everything += path.read_bytes()
    assert b"COUNT" in everything
    for each in parts(CANARY):
        assert each.encode() not in everything, each
    assert not re.search(rb"Traceback|File \"", everything)


@pytest.mark.parametrize("failing", ["exact_distinct", "check_source"])
def test_a_failure_in_the_middle_says_nothing_about_rows(tmp_path, monkeypatch, failing):
    made = house(tmp_path, secret=CANARY)
    with Local(made) as desk:
        table = desk.service.desks["people"].table

        def fail(*given, **named):
            raise ValueError(f"the row of {CANARY}")

        monkeypatch.setattr(type(table), failing, fail)
        got = desk.ask(GROUPS, request="broken")
        assert got.status_code in (409, 500)
        assert CANARY not in got.text
        monkeypatch.undo()
        again = desk.ask(GROUPS, request="broken")
        if failing == "exact_distinct":  # it was charged: the request says so, and is not paid twice
            assert (again.status_code, again.json()["type"]) == (409, "RequestConflict")
        assert CANARY not in "".join(map(str, desk.house.log()))


def test_replies_take_as_many_steps_of_the_grid_with_a_row_as_without(tmp_path):
    """Two tables that differ in one row: the same questions take the same numbers of steps."""
    steps = []
    for name, secret in (("one", "north"), ("two", CANARY)):
        folder = tmp_path / name
        folder.mkdir()
        with Local(house(folder, rows=300, secret=secret), time_grid=GRID) as desk:
            desk.ask(COUNT)
            taken = []
            for at in range(6):
                began = time.monotonic()
                desk.ask(f"SELECT COUNT(*) FROM people WHERE town = 'south' AND age >= {at}")
                taken.append(int((time.monotonic() - began) / GRID))
            steps.append(sorted(taken)[:4])  # a machine under load may be late once
    assert steps[0] == steps[1]
