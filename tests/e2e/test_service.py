"""`discreet serve` as a process: the client against the library, kills, a graceful stop, what is not started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request

import pytest

import discreet as dp
from discreet import cli, errors
from discreet.ledger import Address
from discreet.serve.keys import Keys
from tests.serving import COUNT, GROUPS, Process, house, until

QUESTIONS = [
    COUNT,
    GROUPS,
    "SELECT sex, AVG(pay), COUNT(*) FROM people GROUP BY sex",
    "SELECT MEDIAN(age) FROM people",
    "SELECT sex, town, COUNT(*) AS people FROM people WHERE age < 30 GROUP BY sex, town ORDER BY people DESC",
    "SELECT COUNT(*) FROM people",
]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    made = house(tmp_path_factory.mktemp("service"))
    with Process(made, "--time-grid", "0.01", "--max-rate", "100000") as found:
        yield found


@pytest.fixture
def session(running):
    return dp.connect(running.url, key=running.house.keys["ana"])


@pytest.fixture
def local(running):
    """A session beside the service, on the same ledger, under the same allowance."""
    schema = dp.Schema.read(running.house.schemas[0])
    return dp.Session(schema.table(), running.house.ledger(), allowance="ana")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_remote_answer_is_a_local_answer(session, local, question):
    """A notebook moves by changing one line: prices before, answers, how they print, and frames are the same."""
    price = local.price(question)
    assert session.price(question) == price
    assert str(session.price(question)) == str(price)
    there = session.ask(question)
    here = local.ask(question)
    for name in ("value", "error_bound", "columns", "rows", "intervals", "groups", "unit", "fraction", "ranks", "size"):
        assert getattr(there, name) == getattr(here, name), name
    assert str(there) == str(here)
    assert repr(there) == repr(here)
    assert there._repr_html_() == here._repr_html_()
    assert there.frame().equals(here.frame())
    assert there.price == price
    assert session.price(question) == 0
    again = session.ask(question)
    assert (again.value, again.price, again.source) == (here.value, here.price, here.source)
    assert session.budget() == local.budget()


def test_a_remote_workload_is_answered_together(session, local):
    before, asked = session.budget()[0], ["SELECT pay, COUNT(*) FROM people GROUP BY pay", COUNT]
    answers = session.answer_all(asked, share="1/20")
    assert sum(each.price for each in answers) == before - session.budget()[0] > 0
    for there, here in zip(answers, local.answer_all(asked, share="1/20"), strict=True):
        assert (there.value, there.error_bound) == (here.value, here.error_bound)


def test_a_remote_model_is_the_stored_model(session, local):
    model = session.fit(dp.LogisticRegression(epsilon="1/10"), target="sex", features=["age", "pay"])
    rows = {"age": [10, 50, 90], "pay": [100, 500, 900]}
    charge = local.ledger.entry(model.entry_)
    assert (charge["allowance"], charge["kind"]) == ("ana", "charge")
    here = local.fit(dp.LogisticRegression(epsilon="1/10"), target="sex", features=["age", "pay"])
    assert here.replayed_  # the same release, given back
    assert model.predict_proba(rows).tolist() == here.predict_proba(rows).tolist()
    assert model.guarantee_.certificate().record["entry"] == here.guarantee_.certificate().record["entry"]
    with pytest.raises(errors.ParameterError, match="without its ledger"):
        model.fit(local.table, "sex")


def test_remote_rules_bounds_plans_rows_and_history(session):
    rule = session.learn("rule", target="sex", features=["age"], epsilon="0.05")
    assert rule.predict({"age": [3, 70]}).shape == (2,)
    assert rule.certified_ is None
    sure = session.learn("rule", target="sex", features=["age"], epsilon="0.05", certify="0.02")
    assert sure.certified_["error"] is not None
    assert session.certificate(sure.certified_["entry"])["alone"]["epsilon"] == "0.02"
    found = session.suggest_bounds("pay", epsilon="0.2")
    assert found["low"] <= found["high"]
    assert session.plan("mean", target="age", share="1/10")["methods"]
    frame = session.synthetic(50, seed=1, share="1/10")
    assert list(frame.columns) == ["age", "sex", "town", "pay"]
    assert set(frame["sex"]) <= {"F", "M"}
    assert frame["age"].dtype.kind == "i"
    assert session.synthetic(50, seed=1).equals(frame)
    history = session.history()
    assert {each["kind"] for each in history} >= {"ask", "fit", "learn", "suggest", "synth", "workload"}
    assert session.certificate(history[0]["reply"].get("entry") or history[-1]["reply"]["entries"][0])
    assert "people" in str(session)
    assert "left" in session._repr_html_()


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda s: s.ask("SELECT * FROM people"), errors.UnsupportedQuery),
        (lambda s: s.ask("SELECT COUNT(*) FROM people WHERE agee > 3"), errors.UnsupportedQuery),
        (lambda s: s.ask(dp.Count()), errors.ParameterError),
        (lambda s: s.ask(COUNT, request="not an id"), errors.ParameterError),
        (lambda s: s.answer_all(COUNT), errors.ParameterError),
        (lambda s: s.fit(dp.Mean(), target="age"), errors.ParameterError),
        (lambda s: s.fit(dp.Mean(epsilon=dp.Share("2")), target="age"), errors.ParameterError),
        (lambda s: s.fit(dp.Mean(epsilon=1), target="nothing"), errors.SchemaError),
        (lambda s: s.fit(dp.Mean(epsilon=99), target="age"), errors.BudgetExceeded),
        (lambda s: s.synthetic(10**9), errors.TooLarge),
        (lambda s: s.synthetic(9, share="1/20", backend="excel"), errors.ParameterError),
        (lambda s: s.fit(dp.Mean(epsilon="0.01"), target="age", features=["sex"]), errors.ParameterError),
        (lambda s: s.certificate(1), errors.NotFound),
    ],
)
def test_a_remote_refusal_is_the_librarys_own_error(session, ask, kind):
    before = session.budget()
    with pytest.raises(kind):
        ask(session)
    assert session.budget() == before


def test_a_wrong_key_address_or_table_is_said_at_once(running, monkeypatch):
    monkeypatch.delenv("DISCREET_KEY", raising=False)
    with pytest.raises(errors.KeyRefused):
        dp.connect(running.url, key="dk_00000000_" + "A" * 43)
    with pytest.raises(errors.ParameterError, match="DISCREET_KEY"):
        dp.connect(running.url)
    with pytest.raises(errors.ParameterError, match="in the clear"):
        dp.connect("http://desk.example", key="x")
    with pytest.raises(errors.ParameterError, match=r"tables \['people'\].*found 'staff'"):
        dp.connect(running.url, key=running.house.keys["ana"], table="staff")
    with pytest.raises(errors.Unreachable):
        dp.connect("http://127.0.0.1:9", key="x")
    monkeypatch.setenv("DISCREET_KEY", running.house.keys["bob"])
    assert dp.connect(running.url).you["name"] == "bob"


@pytest.mark.parametrize("url", [None, 3, "http://[::1", "desk.example", "https://", "ftp://desk.example"])
def test_what_is_no_address_is_refused_in_discreets_words(url):
    with pytest.raises(errors.ParameterError, match="a service's address is"):
        dp.connect(url, key="x")


@pytest.mark.parametrize("key", [3, " ", "dk_1\ndk_2", "dk_1…", "\ud800"])
def test_what_is_no_key_is_neither_sent_nor_shown(key):
    with pytest.raises(errors.ParameterError, match="wants a key") as refused:
        dp.connect("http://127.0.0.1:9", key=key)
    assert str(key).strip() not in str(refused.value).replace("dk_...", "") or not str(key).strip()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/é", "http://127.0.0.1:none", f"https://{'x' * 300}"])
def test_an_address_that_no_request_can_be_sent_to_answers_nothing(url, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(errors.Unreachable, match="did not answer"):
        dp.connect(url, key="x")


@pytest.mark.parametrize("said", ["[]", "null", "7", "{}", '{"tables": 3, "you": {"name": "x"}}', '{"tables": ["a"]}'])
def test_a_service_of_somebody_else_is_no_service_of_discreet(said, monkeypatch):
    monkeypatch.setattr("discreet.remote._Line.send", lambda *given: (200, said.encode(), ""))
    with pytest.raises(errors.Unreachable, match="no service of discreet"):
        dp.connect("http://127.0.0.1:9", key="x")


def test_the_tables_of_a_key_are_named_if_none_is_meant(monkeypatch):
    for tables, words in ((["a", "b"], r"tables \['a', 'b'\]: table= says which"), ([], "tables none")):
        said = json.dumps({"tables": tables, "you": {"name": "x"}}).encode()
        monkeypatch.setattr("discreet.remote._Line.send", lambda *given, said=said: (200, said, ""))
        with pytest.raises(errors.ParameterError, match=words):
            dp.connect("http://127.0.0.1:9", key="x")


def test_the_client_needs_neither_duckdb_nor_scikit_learn(running):
    script = f"""
import sys, discreet as dp
session = dp.connect({running.url!r}, key={running.house.keys["ana"]!r})
answer = session.ask({COUNT!r})
session.price({GROUPS!r}), session.budget(), str(answer), session.history()
print([name for name in ("duckdb", "sklearn", "pyarrow", "pandas", "fastapi", "sqlite3") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in ("[]", "['sqlite3']")  # the ledger's own module, of the standard library


def test_the_same_request_after_a_kill_gets_the_same_bytes(tmp_path):
    made = house(tmp_path)
    with Process(made, "--time-grid", "0") as desk:
        path, body = "/v1/tables/people/ask", {"sql": GROUPS}
        first = desk.post(path, body, **{"Idempotency-Key": "before"})
        assert first[0] == 200
        desk.kill()
        desk.start()
        assert desk.post(path, body, **{"Idempotency-Key": "before"}) == first
        assert json.loads(desk.post(path, body)[1])["price"]["nano"] == 0
        assert desk.stop()[0] == 0
    made.ledger().verify()
    assert len([each for each in made.ledger().entries() if each["kind"] == "charge"]) == 1


def test_a_client_goes_on_when_the_service_was_killed_and_started_again(tmp_path):
    made = house(tmp_path)
    with Process(made, "--time-grid", "0") as desk:
        session = dp.connect(desk.url, key=made.keys["ana"])
        port = desk.url.rpartition(":")[2]
        session.ask(COUNT)
        desk.kill()
        again = threading.Timer(0.5, lambda: None)
        desk.options = (*desk.options, "--port", port)
        again.start()
        desk.start()
        assert session.ask(COUNT).price == 0


def test_a_stop_finishes_what_runs_and_refuses_the_rest(tmp_path):
    made = house(tmp_path)
    with Process(made, "--time-grid", "0") as desk:
        urllib.request.urlopen(f"{desk.url}/healthz", timeout=30).close()
        code, said = desk.stop()
    assert (code, "ended" in said) == (0, True)
    assert "Traceback" not in said


def test_a_service_on_postgresql_is_the_same(tmp_path, address):
    made = house(tmp_path, ledger=str(address))
    with Process(made, "--time-grid", "0") as desk:
        first = desk.post("/v1/tables/people/ask", {"sql": GROUPS}, **{"Idempotency-Key": "pg"})
        assert first[0] == 200, first
        desk.kill()
        desk.start()
        assert desk.post("/v1/tables/people/ask", {"sql": GROUPS}, **{"Idempotency-Key": "pg"}) == first
    ledger = dp.Ledger.open(Address.read(str(address)), state_dir=made.state)
    ledger.verify()
    assert ledger.allowances()[0].name == "ana"


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["discreet", *map(str, words)])
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code or 0
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda made: (made.folder / "people.csv").chmod(0o644), "chmod 600"),
        (lambda made: (made.folder / "people.ledger").chmod(0o640), "chmod 600"),
        (lambda made: made.keys_file.chmod(0o604), "chmod 600"),
        (lambda made: made.keys_file.unlink(), "there are no keys"),
        (lambda made: (made.folder / "people.toml").write_text("name = 3"), "people.toml"),
        (lambda made: (made.folder / "people.ledger").unlink(), "no ledger"),
        (lambda made: (made.state / "marks").rename(made.state / "other"), "mark"),
    ],
)
def test_it_does_not_start_where_something_is_open_or_wrong(tmp_path, monkeypatch, capsys, change, words):
    made = house(tmp_path)
    change(made)
    monkeypatch.setenv("DISCREET_STATE", str(made.state))
    code, _, err = run(monkeypatch, capsys, "serve", made.schemas[0])
    assert code in (1, 2)
    assert words in err


GROWING = """
name = "visits"
data = "{epoch}.csv"
ledger = "visits.ledger"
each_row_is_a_person = true
[epochs]
column = "month"
[columns.month]
kind = "date"
low = 2026-01-01
high = 2026-12-01
step = "month"
[columns.age]
kind = "number"
low = 0
high = 120
step = 1
"""


def test_it_does_not_start_where_others_may_read_an_epoch(tmp_path, monkeypatch, capsys):
    made = house(tmp_path)
    path, rows = made.folder / "visits.toml", made.folder / "2026-01.csv"
    path.write_text(GROWING)
    rows.write_text("age\n30\n40\n")
    rows.chmod(0o600)
    schema = dp.Schema.read(path)
    with dp.Ledger.create(schema.ledger, dp.Budget(1), schema.growing_identity, state_dir=made.state) as ledger:
        ledger.add_epoch(schema.grown(["2026-01"]))
    rows.chmod(0o644)
    monkeypatch.setenv("DISCREET_STATE", str(made.state))
    code, _, err = run(monkeypatch, capsys, "serve", path)
    assert code == 1
    assert "2026-01.csv, may be used by others" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "in the clear"),
        (["--host", "192.0.2.1"], "in the clear"),
        (["--time-grid", "-1"], "time-grid"),
        (["--port", "70000"], "port"),
    ],
)
def test_options_that_would_be_unsafe_are_refused(tmp_path, monkeypatch, capsys, options, words):
    code, _, err = run(monkeypatch, capsys, "serve", house(tmp_path).schemas[0], *options)
    assert code == 2
    assert words in err


def test_the_mark_must_not_lie_beside_the_ledger(tmp_path, monkeypatch, capsys):
    made = house(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(made.folder / "state"))
    assert "DISCREET_STATE" in run(monkeypatch, capsys, "serve", made.schemas[0])[2]


# The command line.


def test_analysts_are_added_listed_and_revoked(tmp_path, monkeypatch, capsys):
    made = house(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(made.state))
    place = made.schemas[0]
    code, out, _ = run(monkeypatch, capsys, "analyst", "add", place, "eve", "--share", "1/8", "--may", "ask,fit")
    assert code == 0
    text = next(word for word in out.split() if word.startswith("dk_"))
    key = Keys(made.keys_file).find(text)
    assert (key.name, key.may, key.share) == ("eve", ("ask", "fit"), "1/8")
    assert {each.name: str(each.share) for each in made.ledger().allowances()}["eve"] == "1/8"
    code, out, _ = run(monkeypatch, capsys, "analyst", "list", place, "--json")
    listed = json.loads(out)
    assert {each["name"] for each in listed["keys"]} == {"ana", "bob", "olga", "eve"}
    assert listed["spent"]["people"]["eve"] == {"share": "1/8", "used": 0.0, "epsilon": 0.0}
    assert text not in out
    code, out, _ = run(monkeypatch, capsys, "analyst", "list", made.folder)
    assert "epsilon so far" in out
    assert run(monkeypatch, capsys, "analyst", "revoke", place, "eve")[0] == 0
    with pytest.raises(errors.KeyRefused):
        Keys(made.keys_file).find(text)
    assert run(monkeypatch, capsys, "analyst", "revoke", place, "nobody")[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("a/b",),
        ("eve", "--share", "3"),
        ("eve", "--may", "everything"),
        ("eve", "--expires", "soon"),
        ("eve", "--expires", "2001-01-01"),
        ("eve", "--tables", "nothing"),
        ("eve", "--owner", "--share", "1/2"),
    ],
)
def test_a_key_that_cannot_be_is_refused_and_leaves_no_allowance(tmp_path, monkeypatch, capsys, words):
    made = house(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(made.state))
    code, _, err = run(monkeypatch, capsys, "analyst", "add", made.schemas[0], *words)
    assert code == 2, err
    assert [each.name for each in made.ledger().allowances()] == ["ana", "bob"]


def test_a_demonstration_makes_a_folder_with_two_keys_and_serves_it(tmp_path):
    there = {**os.environ, "DISCREET_STATE": str(tmp_path / "marks")}
    command = [sys.executable, "-m", "discreet", "serve", "--demo", str(tmp_path / "demo"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=there) as process:
        assert process.stdout is not None
        lines = []
        until(lambda: lines.append(process.stdout.readline()) or " at http://" in lines[-1])
        url = lines[-1].partition(" at ")[2].partition(";")[0].strip()
        words = " ".join(lines).split()
        session = dp.connect(url, key=words[words.index("analyst") + 1])
        assert session.ask("SELECT COUNT(*) FROM people WHERE age >= 50").price > 0
        process.terminate()
        assert "ended" in process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "demo").iterdir())
