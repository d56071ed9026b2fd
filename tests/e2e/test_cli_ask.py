"""`discreet ask` and `discreet synth` from outside: answers, prices, prompts, files, and all that can be wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import select
import shlex
import shutil
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dp
from discreet import cli, example
from discreet.answering.answer import Answer
from discreet.answering.answer_words import LITTLE, headline, little
from discreet.cli.ask import questions_in
from discreet.cli.ask_prompt import Prompt, completion, keep
from discreet.cli.ask_session import AnswerView, AskSession, caret, clipping
from discreet.cli.kit import OpenTable
from discreet.cli.price_view import Remaining
from discreet.cli.synth import lines_of
from discreet.data import Table
from discreet.data.domain import in_words
from discreet.funds import Cost
from discreet.session import part_of_budget

POOR = "SELECT COUNT(*) FROM people WHERE age >= 50 AND health = 'poor'"
OLD = "SELECT COUNT(*) FROM people WHERE age >= 40"
HEALTH = "SELECT health, COUNT(*) FROM people GROUP BY health"
SYNTH = ["synth", "people.toml", "10", "--out", "rows.csv", "--share", "1/3"]
ANSWER = re.compile(r"^([\d,]+) ± ([\d,]+) persons \(([\d.]+) % ± ([\d.]+) % of the people\)$", re.MULTILINE)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The bundled tables with a ledger each, and the marks of these."""
    where = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_STATE", str(where / "state"))
        example.write(where / "here")
        patch.chdir(where / "here")
        created()
        created(schema="years.toml")
    return where


@pytest.fixture(autouse=True)
def folder(prepared, tmp_path, monkeypatch):
    """A copy of that, nobody else's state, a screen of 100 columns without colour."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def created(budget=None, schema="people.toml"):
    declared = dp.Schema.read(schema)
    declared.ledger.unlink(missing_ok=True)
    Path(f"{declared.data}.discreet.json").unlink(missing_ok=True)
    dp.Ledger.create(declared.ledger, budget or dp.Budget(1, "1e-6"), declared.table()).close()


def spent():
    with dp.Ledger.open("people.ledger") as ledger:
        return ledger.spent()


def sound(path="people.ledger"):
    with dp.Ledger.open(path) as ledger:
        return ledger.verify() == ()


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# One question.


def test_an_answer_has_its_bound_its_price_and_what_is_left(run):
    code, out, err = run("ask", "people.toml", OLD)
    assert (code, err) == (0, "")
    value, bound, share, near = (float(each.replace(",", "")) for each in ANSWER.search(out).groups())
    assert 0 < bound <= 118  # 1 % of the budget buys this
    assert share == pytest.approx(100 * value / 5912, rel=0.01)
    assert 100 * bound / 5912 <= near <= 2.01
    paid = r"^paid: 1 % of the budget \(by itself epsilon 0\.\d+\); left: 99 %"
    assert re.search(rf"{paid}, about 99 more questions like this$", out, re.M)
    assert "all answers at once with probability 95 %" in out
    code, again, _ = run("ask", "people.toml", f"{OLD} ;")
    assert ANSWER.search(again).group() == ANSWER.search(out).group()
    assert re.search(r"^free: asked before; left: [\d.]+ %, about \d+ more paid counts$", again, re.M)


def test_json_says_everything_in_plain_numbers(run):
    found = json.loads(run("ask", "people.toml", OLD, "--json")[1])
    assert found["question"] == OLD
    assert found["fraction"] == found["value"] / 5912
    assert found["error_bound_fraction"] == found["error_bound"] / 5912
    assert found["source"] == "direct"
    price, left = found["price"], found["left"]
    assert price["nano"] == spent().renyi == left["budget_nano"] - left["nano"]
    assert price["percent_of_budget"] == 100 * price["nano"] / left["budget_nano"] == pytest.approx(1, rel=1e-3)
    assert 0 < price["epsilon"] < 0.2
    assert price["delta"] == 1e-6
    assert found["more_like_this"] == left["nano"] // price["nano"] == 99
    assert found["tells_little"] is None
    again = json.loads(run("ask", "people.toml", OLD, "--json")[1])
    assert (again["value"], again["source"], again["price"]["nano"]) == (found["value"], "cache", 0)


def test_a_group_by_is_a_table_with_one_bound(run):
    code, out, _ = run("ask", "people.toml", HEALTH, "--alpha", "0.03")
    assert code == 0
    assert re.search(r"^4 groups, each ± \d+ persons, all at once$", out, re.M)
    for name in ("excellent", "good", "fair", "poor"):
        assert re.search(rf"{name} +[\d,]+ +[\d.]+ %", out)
    found = json.loads(run("ask", "people.toml", HEALTH, "--alpha", "0.03", "--json")[1])
    assert [each["group"]["health"] for each in found["groups"]] == ["excellent", "good", "fair", "poor"]
    assert found["groups"][0]["count"] > 2000  # of 3,500 or so: more than ten bounds away
    assert found["error_bound"] <= 0.03 * 5912


def test_a_bound_that_is_larger_than_the_answer_is_said(run):
    question = "SELECT COUNT(*) FROM people WHERE age = 65 AND visits = 50"
    found = json.loads(run("ask", "people.toml", question, "--json")[1])
    small = found["error_bound"] > found["value"]  # nearly always: there is nobody
    assert (found["tells_little"] is not None) == small
    assert ("this tells little" in run("ask", "people.toml", question)[1]) == small


def shown(value, bound, **more):
    rows = [(key, each) for key, each in value.items()] if isinstance(value, dict) else [(value,)]
    ends = [(*(None for _ in row[1:]), (row[-1] - bound, row[-1] + bound)) for row in rows]
    cost = Cost(10**6, cap=10**9, delta=Fraction(0))
    named = {"columns": (*more.get("groups", ()), "it"), "rows": rows, "intervals": ends}
    answer = Answer(value, bound, "direct", cost, **named, **more)
    return AnswerView("?", answer, Remaining(9 * 10**8, 10**9, None, 900), 1000)


def test_what_tells_little_is_what_is_below_its_bound():
    assert little(shown(10, 10.5).answer) == LITTLE
    assert little(shown(-10, 10.5, unit="income").answer) == LITTLE
    assert little(shown(10, 10.0).answer) == ""
    assert little(shown(10, 50.0, unit="age", ranks=50.0).answer) == ""
    table = {"a": 5, "b": 50, "c": 7}
    assert (
        little(shown(table, 20.0, groups=("x",)).answer)
        == "the bound is larger than 2 of the 3 counts: those tell little"
    )


def test_no_bound_is_words_for_people_and_null_for_programs():
    found = shown(3.5, math.inf, unit="visits")
    assert "no bound" in headline(found.answer)
    assert found.record()["error_bound"] is None
    assert json.loads(json.dumps(found.record(), allow_nan=False))["value"] == 3.5


def test_no_bound_is_not_called_a_large_one():
    found = shown(3.5, math.inf, unit="visits")
    assert little(found.answer) == ""
    assert found.record()["tells_little"] == "no bound: there may be nobody to average over"


def test_one_more_question_is_one():
    assert str(Remaining(1, 10, None, 1)).endswith("about 1 more question like this")
    assert str(Remaining(1, 10, None, 2)).endswith("about 2 more questions like this")
    assert str(Remaining(1, 10, None, 1, ("paid count", "paid counts"))).endswith("about 1 more paid count")
    assert str(Remaining(1, 10, None, 1000, ("paid count", "paid counts"))).endswith("about 1,000 more paid counts")


def test_what_an_average_was_put_together_from_was_not_asked_before(run):
    women = "FROM people WHERE sex = 'F'"
    run("ask", "people.toml", f"SELECT COUNT(*) {women}")
    run("ask", "people.toml", f"SELECT AVG(visits) {women}")
    out = run("ask", "people.toml", f"SELECT AVG(visits) {women}")[1]
    assert "free: known from earlier answers; left" in " ".join(out.split())
    assert "free: asked before" in run("ask", "people.toml", f"SELECT COUNT(*) {women}")[1]


def test_a_sum_and_an_average_say_that_clipping_is_not_in_their_bound(run):
    said = "visits is read between 0 and 50: what lies beyond counts as the bound, and ± does not include that"
    for what in ("SUM(visits)", "AVG(visits)"):
        question = f"SELECT {what} FROM people WHERE sex = 'F'"
        assert said in " ".join(run("ask", "people.toml", question)[1].split())
        found = json.loads(run("ask", "people.toml", question, "--json")[1])["clipped"]
        assert found == [{"column": "visits", "low": 0, "high": 50, "step": 1, "note": said}]
    assert "is read between" not in run("ask", "people.toml", OLD)[1]
    assert json.loads(run("ask", "people.toml", OLD, "--json")[1])["clipped"] == []


def test_steps_other_than_1_are_said_with_the_bounds():
    domain = dp.Domain(pay=dp.Number(-1000, "130000.5", step="0.5"))
    (found,) = clipping(["pay"], domain)
    assert found["note"] == (
        "pay is read between -1,000 and 130,000.5 in steps of 0.5: what lies beyond counts as the bound, what lies "
        "between as the step below, and ± does not include that"
    )


def test_a_bound_is_never_shown_as_less_than_it_is():
    assert "± 0.124" in headline(shown(3.5, 0.12341, unit="visits").answer)
    assert "± 1,240" in headline(shown(3.5, 1234.1, unit="visits").answer)
    assert "± 12 persons" in headline(shown(3, 12.9).answer)  # both are whole


def test_averages_and_medians_are_in_their_own_units(run):
    code, out, _ = run("ask", "people.toml", "SELECT AVG(visits) FROM people WHERE sex = 'F'", "--max-price", "50%")
    assert code == 0
    assert re.search(r"^[\d.]+ ± [\d.]+ \(visits\)$", out, re.M)
    code, out, _ = run("ask", "people.toml", "SELECT MEDIAN(age) FROM people")
    assert re.search(r"^\d+ \(age; true value between \d+ and \d+; ± [\d,]+ ranks\)$", out, re.M)
    assert "tells little" not in out


def test_the_rows_of_a_sample_bound_the_population_too(run):
    out = run("ask", "people.toml", OLD, "--sample")[1]
    assert re.search(r"^± [\d.]+ % of the population", out, re.M)
    assert json.loads(run("ask", "people.toml", OLD, "--sample", "--json")[1])["population_bound_fraction"] > 0.02


def test_an_allowance_is_what_is_left_for_its_name(run):
    with dp.Ledger.open("people.ledger") as ledger:
        ledger.allow("ana", share="1/4")
    out = run("ask", "people.toml", OLD, "--allowance", "ana")[1]
    assert 20 < float(re.search(r"left for ana: ([\d.]+) %", out).group(1)) < 25
    assert run("ask", "people.toml", OLD, "--allowance", "bob")[0] == 2


def test_several_rows_a_person_are_counted_as_rows(run):
    code, out, _ = run("ask", "years.toml", "SELECT COUNT(*) FROM years WHERE age >= 40", "--alpha", "0.1")
    assert code == 0
    assert re.search(r"^[\d,]+ ± \d+ rows$", out, re.M)


# Several questions.


def test_a_file_is_asked_one_after_the_other_or_together(run):
    Path("q.sql").write_text(f"-- two; of them\n{OLD};\nSELECT COUNT(*) FROM people\n  WHERE sex = 'F';\n")
    code, out, _ = run("ask", "people.toml", "--file", "q.sql")
    assert code == 0
    assert out.count("\npaid: ") == 2
    assert f"> {OLD}\n" in out
    Path("more.sql").write_text("\n".join(f"SELECT COUNT(*) FROM people WHERE visits >= {n}" for n in range(1, 9)))
    before = spent().renyi
    found = json.loads(run("ask", "people.toml", "--file", "more.sql", "--together", "--share", "1/3", "--json")[1])
    prices = [each["price"]["nano"] for each in found["answers"]]
    assert len(prices) == 8
    assert (
        prices[0] == sum(prices) == spent().renyi - before <= (found["answers"][0]["left"]["budget_nano"] - before) / 3
    )
    assert found["answers"][1]["cost"] == "paid together with the others"


def test_a_wrong_question_in_a_file_is_said_with_its_line_and_does_not_stop_the_others(run):
    text = f"-- a comment\n{OLD};\n\nSELECT COUNT(*)\nFROM people\n  WHERE agee = 3; {POOR}\n;"
    Path("q.sql").write_text(text)
    code, out, err = run("ask", "people.toml", "--file", "q.sql")
    assert code == 2
    assert out.count("> SELECT") == len(ANSWER.findall(out)) == 2
    assert err.startswith("q.sql, line 6: \n SELECT COUNT(*) FROM people WHERE agee = 3\n")
    assert "Did you mean 'age'?" in err
    code, out, err = run("ask", "people.toml", "--file", "q.sql", "--json")
    first, wrong, last = json.loads(out)["answers"]
    assert (code, err, first["question"], last["question"]) == (2, "", OLD, POOR)
    assert (wrong["line"], wrong["type"]) == (6, "UnsupportedQuery")
    assert wrong["question"][wrong["position"] :].startswith("agee")
    assert "agee" in wrong["error"]


def test_errors_are_json_too_in_one_shape(run):
    for question, code, kind in (
        ("SELECT COUNT(*) FROM people WHERE agee = 3", 2, "UnsupportedQuery"),
        (HEALTH, 3, "AboveMaxPrice"),
    ):
        dear = ("--max-price", "0.01%") if kind == "AboveMaxPrice" else ()
        found = run("ask", "people.toml", question, "--json", *dear)
        assert (found[0], found[2]) == (code, "")
        alone = json.loads(found[1])
        piped = json.loads(run("ask", "people.toml", "--json", *dear, stdin=f"{question}\n")[1])
        assert alone == piped
        assert (alone["type"], alone["question"]) == (kind, question)
        assert set(alone) == {"question", "error", "type", "position", "hint"}
    code, out, err = run("ask", "people.toml", OLD, "--ledger", "new.ledger", "--json")
    assert (code, err, json.loads(out)["type"]) == (2, "", "ParameterError")


def test_what_was_paid_for_is_shown_when_the_budget_ends_in_a_file(run):
    lines = [f"SELECT COUNT(*) FROM people WHERE {name} >= 5" for name in ("visits", "diseases", "schooling", "family")]
    Path("q.sql").write_text("\n".join([*lines, HEALTH, "SELECT site, COUNT(*) FROM people GROUP BY site"]))
    dear = ["--price", "30%", "--max-price", "30%"]
    code, out, err = run("ask", "people.toml", "--file", "q.sql", "--json", *dear)
    assert code == 3
    answers = json.loads(out)["answers"]
    paid = [each for each in answers if "error" not in each]
    assert (len(answers), err) == (6, "")
    assert 1 <= len(paid) < 6
    assert sum(each["price"]["nano"] for each in paid) == spent().renyi
    refused = [each for each in answers if "error" in each]
    assert {each["type"] for each in refused} == {"BudgetExceeded"}
    assert all(f"line {answers.index(each) + 1}" == f"line {each['line']}" for each in refused)
    assert "does not fit" in refused[0]["error"]


def test_a_pipe_is_answered_line_by_line(run):
    code, out, _ = run("ask", "people.toml", stdin=f"{OLD};\n\n-- a comment\n{OLD}\n")
    assert code == 0
    assert out.count(f"> {OLD}\n") == 2
    lines = run("ask", "people.toml", "--json", stdin=f"{OLD}\n{POOR}\n")[1].splitlines()
    assert [json.loads(line)["question"] for line in lines] == [OLD, POOR]


def test_a_refused_line_of_a_pipe_does_not_stop_the_others(run):
    wrong = ["SELECT MAX(age) FROM people", "SELECT COUNT(*) FROM people WHERE agee = 3"]
    code, out, err = run("ask", "people.toml", stdin="\n".join([wrong[0], OLD, wrong[1], POOR, ""]))
    assert code == 2
    assert out.count("> SELECT") == len(ANSWER.findall(out)) == 2
    assert f" {wrong[0]}\n        ^\n'MAX' is not answered: one" in err
    assert f" {wrong[1]}\n" in err
    assert "Did you mean 'age'?" in err


def test_what_does_not_fit_does_not_stop_a_pipe_and_programs_read_why(run):
    run("ask", "people.toml", OLD)
    before = spent()
    wrong = "SELECT COUNT(*) FROM people WHERE agee = 3"
    code, out, err = run("ask", "people.toml", "--json", "--max-price", "0.01%", stdin=f"{POOR}\n{wrong}\n{OLD}\n")
    assert (code, err) == (3, "")
    dear, refused, answered = map(json.loads, out.splitlines())
    assert (dear["type"], dear["question"], dear["position"]) == ("AboveMaxPrice", POOR, None)
    assert "more than --max-price" in dear["error"]
    assert "could cost up to 1 % of the budget" in dear["hint"]
    assert 'A session with price="0.01%" answers it for that, within' in dear["hint"]
    assert (refused["type"], refused["question"]) == ("UnsupportedQuery", wrong)
    assert (refused["error"], refused["position"]) == ("column 'agee' is not declared", wrong.index("agee"))
    assert "age" in refused["hint"]
    assert "error" not in answered
    assert answered["cost"] == "free: asked before"
    assert spent() == before


def test_a_pipe_that_is_no_text_is_said(run):
    lines = f"{OLD}\n".encode() * 200 + b"\xff\n"  # more than is read at once
    code, out, err = run("ask", "people.toml", stdin=io.TextIOWrapper(io.BytesIO(lines), encoding="utf-8"))
    assert code == 2
    assert ANSWER.search(out)
    assert "not a text in UTF-8" in err


def test_questions_of_a_file_end_with_a_line_or_a_semicolon(tmp_path):
    file = tmp_path / "q.sql"
    file.write_text("a\n\n  b  \n-- c\n")
    assert [(each.text, each.line()) for each in questions_in(file)] == [("a", 1), ("b", 3)]
    file.write_text("a\nb; c = 'x;y' ;\n;\n-- d;\nit's; \nlast one")
    found = questions_in(file)
    assert [(each.text, each.line()) for each in found] == [("a b", 1), ("c = 'x;y'", 2), ("it's", 5), ("last one", 6)]
    assert [found[0].line(place) for place in range(3)] == [1, 1, 2]
    file.write_text("a\n\n-- c\nb\nc;")
    assert [questions_in(file)[0].line(place) for place in range(5)] == [1, 1, 4, 4, 5]
    for text in ("", "-- nothing\n;"):
        file.write_text(text)
        with pytest.raises(dp.errors.ParameterError, match="no question"):
            questions_in(file)


# The prompt.


@pytest.fixture
def prompt(capsys):
    """Lines go in, what is printed comes out."""

    def talk(*lines, rehearse=False, **terms):
        given = iter(lines)

        def read(_):
            try:
                line = next(given)
            except StopIteration:
                raise EOFError from None
            if line is KeyboardInterrupt:
                raise line
            return line

        found = OpenTable.open(Path("people.toml"), data_path=None, ledger_path=None, rehearse=rehearse, as_json=False)
        terms = {"alpha": None, "price": None, "scopes": None, "beta": "0.05", "allowance": None, **terms}
        made = Prompt(AskSession(found, terms), read)
        made.greet()
        while made.turn():
            pass
        return capsys.readouterr().out

    return talk


def test_the_prompt_answers_tells_prices_and_remembers(prompt):
    out = prompt("\\history", f"\\price {OLD}", OLD + ";", "", f"\\price {OLD}", "\\history", "\\left", "\\quit", POOR)
    assert out.startswith(
        "people: a table of 5,912 people, 13 columns, edition 1. A question costs at most 1 % of the budget."
    )
    said = re.search(r"^at most (1 % of the budget .*)$", out, re.M).group(1)
    assert f"paid: {said}; left:" in out
    assert re.search(r"about \d+ more questions like this", out)
    assert "nothing was asked yet" in out
    assert "free: known already" in out
    assert out.count(ANSWER.search(out).group()) == 2  # when it was asked, and in the history with its price:
    assert re.search(rf"> {re.escape(OLD)} [\d,]+ ± .*; paid: {re.escape(said)}", " ".join(out.split()))
    assert "Renyi at order" in out
    assert sound()


def test_the_prompt_describes_the_columns_and_itself(prompt):
    out = prompt("\\columns", "\\help", "\\nonsense", "\\price")
    for words in (
        "0 to 65 in steps of 1",
        "excellent, good, fair, poor",
        "or missing",
        "\\history",
        "needs a question",
    ):
        assert words in out
    assert "there is no \\nonsense here" in out


@pytest.mark.parametrize("word", ["quit", "exit", "QUIT;", "\\quit", "\\q"])
def test_the_prompt_is_left_and_asked_for_help_in_plain_words_too(prompt, word):
    out = prompt("help", word, OLD)
    assert "what was asked and answered at this prompt" in out
    assert not ANSWER.search(out)
    assert "a question begins with" not in out


def test_errors_and_an_interrupted_line_do_not_end_the_prompt(prompt):
    wrong = "SELECT COUNT(*) FROM people WHERE agee = 3;"
    out = prompt("SELECT MAX(age) FROM people;", KeyboardInterrupt, wrong, f"{OLD};")
    assert "\n SELECT MAX(age) FROM people\n        ^\n" in out
    assert "Did you mean 'age'?" in out
    assert ANSWER.search(out)


def test_a_question_of_several_lines_is_one(prompt):
    """A pasted question is not asked as it stands after its first line."""
    out = prompt("SELECT COUNT(*) FROM people", "", "-- the old ones", "  WHERE age >= 40;", "\\history")
    assert "the question goes on: end it with a semicolon" in out
    assert len(ANSWER.findall(out)) == 1
    assert f"> {OLD}" in out
    assert spent().renyi > 0


def test_several_questions_on_one_line_are_several(prompt):
    out = prompt(f"{OLD}; {POOR}; SELECT", "nonsense", KeyboardInterrupt, "\\history")
    assert out.count("> SELECT COUNT(*) FROM people WHERE") == 2
    assert "nonsense" not in out


def test_what_no_semicolon_ended_is_not_asked(prompt):
    out = prompt(OLD)
    assert "not asked, since no semicolon ended it" in " ".join(out.split())
    assert spent().renyi == 0


def test_whole_questions_are_remembered(run, capsys):
    lines, kept = iter(["SELECT COUNT(*) FROM people", "WHERE age >= 40;", "\\left", "\\quit"]), []
    found = OpenTable.open(Path("people.toml"), data_path=None, ledger_path=None, rehearse=False, as_json=False)
    terms = {"alpha": None, "price": None, "scopes": None, "beta": "0.05", "allowance": None}
    made = Prompt(AskSession(found, terms), lambda _: next(lines), kept.append)
    while made.turn():
        pass
    assert kept == [f"{OLD};", "\\left"]


def test_an_interrupted_question_stays_charged_and_the_prompt_goes_on(prompt, monkeypatch):
    real = Table.exact_sum

    def interrupted(*arguments, **named):
        monkeypatch.setattr(Table, "exact_sum", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "exact_sum", interrupted)
    out = prompt("SELECT AVG(visits) FROM people WHERE sex = 'F';", f"{OLD};", "\\left")
    assert "stopped: what was charged before stays charged" in out
    assert ANSWER.search(out)
    assert sound()
    with dp.Ledger.open("people.ledger") as ledger:
        kinds = [body["kind"] for body in ledger.entries()]
    assert kinds.count("burn") == 1
    assert kinds.count("charge") == kinds.count("answer") + 1


def test_a_prompt_opens_on_a_terminal_and_keeps_its_lines_to_its_user(folder):
    """Through a real terminal: the prompt, Ctrl-D, and the file of old lines."""
    import pty

    process, terminal = pty.fork()
    if process == 0:
        environment = {**os.environ, "TERM": "dumb"}
        program = "from discreet.cli import main; import sys; sys.argv = ['discreet', 'ask', 'people.toml']; main()"
        os.execve(sys.executable, [sys.executable, "-c", program], environment)
    seen = b""
    for line in (b"\\left\n", b"\x04", None):
        seen += _until_prompt(terminal, last=line is None)
        if line is not None:
            os.write(terminal, line)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    os.close(terminal)
    assert seen.count(b"people> ") == 2
    assert b"left: 100 % of the budget" in seen
    kept = folder.parent / "state" / "questions"
    assert kept.read_text() == "\\left\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def _until_prompt(terminal, *, last):
    seen = b""
    while last or not seen.endswith(b"people> "):
        assert select.select([terminal], [], [], 60)[0], seen  # rather than wait for ever
        try:
            found = os.read(terminal, 65536)
        except OSError:  # the other end was closed
            return seen
        if not found:
            return seen
        seen += found
    return seen


def test_old_lines_are_few_and_private(tmp_path):
    path = tmp_path / "new" / "questions"
    keep(path, [str(number) for number in range(1500)])
    assert path.read_text().splitlines() == [str(number) for number in range(500, 1500)]
    path.chmod(0o644)
    keep(path, ["one"])
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("one\n", 0o600)


def test_columns_are_completed_and_described():
    domain = dp.Domain(Age=dp.Number(0, 1, step=0.5, missing=True), ages=dp.Category("x", other="y", missing="z"))
    assert [completion("ag", number, domain) for number in range(3)] == ["Age", "ages", None]
    assert in_words(domain["Age"]) == ("number", "0 to 1 in steps of 0.5, or missing")
    assert in_words(domain["ages"]) == ("category", "x, y (everything else), z (missing)")
    assert in_words(dp.Number.any()) == ("any number", "without bounds")


# Wrong use.


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("place", [0, 30, 300, 599])
def test_a_caret_stands_under_the_place(width, place):
    text = "".join(chr(ord("a") + number % 26) for number in range(600))
    shown, sign, reason = caret(dp.errors.UnsupportedQuery(text, place, "no", "Try."), width).split("\n")
    assert max(len(shown), len(sign)) <= width
    assert shown[len(sign) - 1] == text[place]
    assert reason == "no. Try."


def test_a_caret_counts_wide_signs_and_drops_control_signs():
    shown, sign, _ = caret(dp.errors.UnsupportedQuery("名前\x1b[2J\n= ?", 8, "no", "Try."), 80).split("\n")
    assert shown == " 名前 [2J = ?"
    assert len(sign) == len(" 名前 [2J = ") + 2


def test_a_reason_that_ends_with_a_mark_gets_no_second_one():
    for reason, said in (("no", "no. Try."), ("no.", "no. Try."), ("this?", "this? Try.")):
        assert caret(dp.errors.UnsupportedQuery("a", 0, reason, "Try."), 40).split("\n")[2] == said


def test_a_level_that_is_not_declared_is_one_sentence_and_then_a_hint(run):
    err = run("ask", "people.toml", "SELECT COUNT(*) FROM people WHERE health = 'xyz'")[2]
    assert "'xyz' is not a declared level. Declared: Category('excellent', 'good', 'fair', 'poor'). Ask with" in err
    err = run("ask", "people.toml", "SELECT COUNT(*) FROM people WHERE health = 'Poor'")[2]
    assert "'Poor' is not a declared level. Did you mean 'poor'? Ask with" in err


def test_a_question_that_is_not_understood_is_shown_with_its_place(run):
    code, out, err = run("ask", "people.toml", "SELECT COUNT(*) FROM people HAVING age > 3")
    assert (code, out) == (2, "")
    assert err.startswith(f" SELECT COUNT(*) FROM people HAVING age > 3\n{'':36}^\ncolumn 'age' is selected but not")
    assert spent().renyi == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ask", "nowhere.toml", OLD], 2, "there is no schema at nowhere.toml"),
        (["ask", "draft.toml", OLD], 2, "still say FILL IN: columns.age.low"),
        (["ask", "people.toml", "SELECT COUNT(*) FROM people WHERE agee > 3"], 2, "Did you mean 'age'?"),
        (["ask", "people.toml", OLD, "--ledger", "new.ledger"], 2, "there is no ledger at new.ledger"),
        (["ask", "people.toml", OLD, "--ledger", "years.ledger"], 1, "'years', found 'people'"),
        (["ask", "people.toml", OLD, "--data", "gone.parquet"], 2, "gone.parquet"),
        (["ask", "people.toml", OLD, "--alpha", "0.0001"], 2, "alpha=0.00"),
        (["ask", "people.toml", OLD, "--alpha", "much"], 2, "alpha must be a finite number"),
        (["ask", "people.toml", OLD, "--beta", "2"], 2, "beta"),
        (["ask", "people.toml", OLD, "--method", "guess"], 2, "--method"),
        (["ask", "people.toml", OLD, "--method", "pmw"], 2, "needs alpha="),
        (["ask", "people.toml", OLD, "--method", "pmw", "--alpha", "0.02"], 2, "cells"),
        (["ask", "people.toml", OLD, "--max-price", "0.01%"], 3, "could cost up to"),
        (["ask", "people.toml", OLD, "--max-price", "1%%"], 2, "max_price must be"),
        (["ask", "people.toml", OLD, "--max-price", "1%", "--scopes", "3"], 3, "could cost up to 33"),
        (["ask", "people.toml", OLD, "--scopes", "3"], 3, "more than max_price, which is 10 %"),
        (["ask", "people.toml", OLD, "--price", "much"], 2, "price must be"),
        (["ask", "people.toml", OLD, "--price", "1%", "--alpha", "0.02"], 2, "not both"),
        (["ask", "people.toml", OLD, "--price", "20%"], 3, "could cost up to 20 % of the budget"),
        (["ask", "people.toml", OLD, "--file", "people.toml"], 2, "not both"),
        (["ask", "people.toml", "--file", "nowhere.sql"], 2, "no file nowhere.sql"),
        (["ask", "people.toml", "--file", "people.parquet"], 2, "not a text"),
        (["ask", "people.toml", "--file", "people.toml", "--together"], 2, "--share 1/3"),
        (["ask", "people.toml", OLD, "--together", "--share", "1/3"], 2, "--file"),
        (["ask", "people.toml", OLD, "--share", "1/3"], 2, "--together"),
        (["synth", "people.toml", "10", "--out", "rows.csv", "--share", "2"], 2, "at most 1"),
        (["synth", "people.toml", "10", "--out", "rows.csv", "--measure", "age,sex"], 2, "--share"),
        ([*SYNTH, "--measure", "agee"], 2, "'age'"),
        ([*SYNTH, "--measure", "age,age"], 2, "different"),
        ([*SYNTH, "--measure", "age,"], 2, "commas"),
        (["synth", "people.toml", "10", "--out", "rows.csv", "--measure", "age", "--share", "2"], 2, "at most 1"),
        ([*SYNTH, "--measure", "age,income,spending,visits"], 2, "numbers at once"),
        (
            [*SYNTH, "--measure", "age,income,visits", "--measure", "spending,age"],
            2,
            "rows cannot follow age, spending",
        ),
        (["synth", "people.toml", "0", "--out", "rows.csv"], 2, "ROWS"),
        ([*SYNTH, "--measure", "sex", "--seed", "-1"], 2, "--seed"),
        (["synth", "people.toml", "900000000", *SYNTH[3:], "--measure", "sex"], 2, "rows must be at most"),
        (["synth", "people.toml", "10", "--out", "rows.txt"], 2, ".csv or .parquet"),
        (["synth", "people.toml", "10", "--out", "gone/rows.csv"], 2, "no folder"),
        (["synth", "people.toml", "10", "--out", "here.csv"], 2, "--force"),
        (["synth", "people.toml", "10", "--out", "-", "--json"], 2, "--json"),
    ],
)
def test_wrong_use_is_said_costs_nothing_and_leaves_nothing(run, arguments, code, says):
    Path("here.csv").write_text("somebody's work")
    Path("draft.toml").write_text(Path("people.toml").read_text().replace("low = 0", 'low = "FILL IN"'))
    before = sorted(os.listdir())
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert says in err
    assert "Traceback" not in err
    assert spent().renyi == 0
    assert set(os.listdir()) - set(before) <= {"people.ledger.asking"}
    assert Path("here.csv").read_text() == "somebody's work"


def test_over_budget_is_exit_code_3_and_nothing_is_spent(run):
    assert run("ask", "people.toml", OLD, "--alpha", "0.0035", "--yes")[0] == 0
    before = spent()
    code, out, err = run("ask", "people.toml", POOR, "--alpha", "0.0025", "--yes")
    assert (code, out) == (3, "")
    coarser = re.search(r"With alpha=(0\.\d+) this question would fit", err).group(1)
    assert float(coarser) > 0.0025
    assert spent() == before
    assert sound()


def test_a_price_limit_reads_as_people_write_it():
    assert {part_of_budget(price=each) for each in ("1%", "1 %", "0.01", "1/100", 0.01)} == {Fraction(1, 100)}
    for text in ("-1%", "0", "one", "%", "1%%", "-0.5"):
        with pytest.raises(dp.errors.ParameterError, match="price"):
            part_of_budget(price=text)


def test_ctrl_c_in_a_question_leaves_a_sound_ledger(run, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "exact_sum", interrupted)
    code, out, err = run("ask", "people.toml", OLD)
    assert (code, out) == (130, "")
    assert "what was charged stays charged" in err
    assert spent().renyi > 0
    assert sound()


def test_a_reader_who_leaves_is_exit_code_141_and_the_ledger_is_sound():
    program = (
        f"from discreet.cli import main; import sys; sys.argv = ['discreet', 'ask', 'people.toml', {OLD!r}]; main()"
    )
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        [sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (found.returncode, found.stderr) == (141, "")
    assert sound()


def test_forty_columns_are_enough(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    long = "SELECT health, COUNT(*) FROM people WHERE age BETWEEN 10 AND 60 AND sex = 'F' GROUP BY health"
    Path("q.sql").write_text(long)
    code, out, _ = run("ask", "people.toml", "--file", "q.sql", "--rehearse")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 40
    assert "excellent" in out
    assert "\x1b" not in out
    err = run("ask", "people.toml", f"{long} HAVING agee = 'poor'")[2]
    assert max(map(len, err.splitlines()[:2])) <= 40
    assert "HAVING" in err.splitlines()[0]


# Rehearsals.


def test_a_rehearsal_is_marked_on_every_line_and_touches_nothing_real(run):
    Path("people.parquet").unlink()
    before = digest("people.ledger")
    Path("q.sql").write_text(f"{OLD}\n{HEALTH}\n")
    for arguments in (
        ["ask", "people.toml", OLD],
        ["ask", "people.toml", "--file", "q.sql"],
        ["synth", "people.toml", "10", "--out", "rows.csv", "--measure", "age,sex", "--share", "1/3"],
    ):
        code, out, err = run(*arguments, "--rehearse")
        assert (code, err) == (0, "")
        assert all(line.startswith("rehearsal | ") for line in out.splitlines())
    assert json.loads(run("ask", "people.toml", OLD, "--rehearse", "--json")[1])["rehearsal"] is True
    assert json.loads(run("ask", "people.toml", "--rehearse", "--json", stdin=OLD)[1])["rehearsal"] is True
    assert json.loads(run("ask", "people.toml", "SELECT agee", "--rehearse", "--json")[1])["rehearsal"] is True
    rows = list(csv.DictReader(io.StringIO(Path("rows.csv").read_text())))
    assert {row["rehearsal"] for row in rows} == {"True"}
    assert digest("people.ledger") == before
    assert sound("people.rehearsal.ledger")


def test_a_prompt_in_a_rehearsal_is_marked(prompt):
    out = prompt(f"{OLD};", "\\columns", "SELECT;", rehearse=True)
    assert all(line.startswith("rehearsal | ") for line in out.splitlines() if line)


# Synthetic rows.


def test_rows_are_bought_and_written_in_one_command(run):
    code, out, err = run(
        "synth", "people.toml", "4000", "--out", "rows.csv", "--measure", "health", "--measure", "sex,age", "--share",
        "1/2", "--seed", "1",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "rows.csv: 4,000 made-up rows" in out
    assert "known together: health; age, sex" in out
    assert re.search(
        r"spread evenly: site, coinsurance, income, [a-z, ]+ and everything between", " ".join(out.split())
    )
    assert re.search(r"measured: sex, age, each count ± \d+", out)
    paid = float(re.search(r"paid: ([\d.]+) % of the budget", out).group(1))
    assert 40 < paid <= 50
    rows = list(csv.DictReader(io.StringIO(Path("rows.csv").read_text())))
    assert len(rows) == 4000
    assert list(rows[0]) == list(dp.Schema.read("people.toml").domain.names)
    share = sum(row["health"] == "excellent" for row in rows) / 4000
    assert 0.4 < share < 0.7  # of the people it is 0.54; an even spread has 0.25
    assert not list(Path().glob("*.part"))


def test_without_named_tables_a_tenth_of_the_budget_chooses_them(run):
    code, out, err = run("synth", "people.toml", "500", "--out", "rows.csv", "--seed", "1")
    assert (code, err) == (0, "")
    paid = float(re.search(r"paid: ([\d.]+) % of the budget", out).group(1))
    assert 9 < paid <= 10
    found = json.loads(run("synth", "people.toml", "5", "--out", "more.csv", "--json")[1])
    assert found["price_nano"] == 0
    known = {name for scope in found["columns_known_together"] for name in scope}
    assert {"age", "sex", "health"} <= known
    assert max(map(len, found["columns_known_together"])) >= 2
    charged = spent()
    for price in (True, False):  # another share is another purchase, and the same one again is none
        again = run("synth", "people.toml", "5", "--share", "1/5", "--seed", "3")
        assert again[0] == 0
        assert len(again[1].splitlines()) == 6
        assert (spent() != charged) == price
        charged = spent()


def test_rows_of_what_is_known_are_free_and_the_same_for_a_seed(run):
    run("ask", "people.toml", HEALTH)
    before = spent()
    assert run("synth", "people.toml", "50", "--out", "one.csv", "--seed", "7")[0] == 0
    code, out, err = run("synth", "people.toml", "50", "--out", "-", "--seed", "7")
    assert code == 0
    assert out == Path("one.csv").read_text()
    assert "free: made of what was released before" in err
    found = json.loads(run("synth", "people.toml", "50", "--out", "one.parquet", "--seed", "7", "--json")[1])
    assert found["columns_known_together"] == [["health"]]
    assert "age" in found["columns_spread_evenly"]
    assert found["price_nano"] == 0
    assert spent() == before
    import pyarrow.parquet

    frame = pyarrow.parquet.read_table("one.parquet")
    assert frame.column("health").to_pylist() == [row["health"] for row in csv.DictReader(io.StringIO(out))]


def test_a_column_without_bounds_is_not_drawn_and_that_is_said(run):
    text = Path("people.toml").read_text().replace('"people.ledger"', '"other.ledger"')
    head, _, tail = text.partition("[columns.spending]")
    Path("other.toml").write_text(f'{head}[columns.spending]\nkind = "any number"\n')
    assert "low = 0" in tail
    arguments = ["--rehearse", "--measure", "sex", "--share", "1/3"]
    out = run("synth", "other.toml", "5", "--out", "rows.csv", *arguments)[1]
    assert "not in the rows, since without bounds or levels: spending" in " ".join(out.split())
    assert "spending" not in Path("rows.csv").read_text()


def test_a_file_is_overwritten_only_by_force(run):
    Path("rows.csv").write_text("somebody's work")
    arguments = ["synth", "people.toml", "5", "--out", "rows.csv", "--measure", "sex", "--share", "1/10"]
    assert run(*arguments)[0] == 2
    assert spent().renyi == 0
    assert run(*arguments, "--force")[0] == 0
    assert len(Path("rows.csv").read_text().splitlines()) == 6


def test_what_is_no_plain_file_is_refused_and_a_link_is_followed(run, tmp_path):
    arguments = ["synth", "people.toml", "5", "--measure", "sex", "--share", "1/10", "--force", "--out"]
    os.mkfifo("pipe.csv")
    Path("device.csv").symlink_to("/dev/full")
    Path("circle.csv").symlink_to("circle.csv")
    for name in ("pipe.csv", "device.csv", "circle.csv"):
        code, out, err = run(*arguments, name)
        assert (code, out) == (2, "")
        assert "not a plain file" in err
    assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)
    assert Path("device.csv").is_symlink()
    assert spent().renyi == 0
    Path("lost.csv").symlink_to("gone/rows.csv")
    assert "no such folder" in run(*arguments, "lost.csv")[2]
    (tmp_path / "real.csv").write_text("old")
    Path("link.csv").symlink_to(tmp_path / "real.csv")
    assert run(*arguments, "link.csv")[0] == 0
    assert Path("link.csv").is_symlink()
    assert len((tmp_path / "real.csv").read_text().splitlines()) == 6


def test_nothing_but_what_is_between_columns_may_be_spread_evenly(tmp_path):
    summary = {
        "budget_nano": 10, "price_nano": 0, "left_nano": 10, "columns_known_together": [["a"], ["b"]],
        "columns_left_out": [], "columns_spread_evenly": [], "columns_not_drawn": [], "measured_by": [], "measured": [],
    }  # fmt: skip
    told = lines_of(summary)
    assert "spread evenly: everything between columns that are not known together" in told
    told = lines_of({**summary, "columns_spread_evenly": ["c", "d"]})
    assert "spread evenly: c, d, and everything between columns that are not known together" in told


def test_every_example_of_the_help_runs(run):
    for command in ("ask", "synth"):
        lines = [line.strip() for line in run(command, "--help")[1].splitlines()]
        examples = [line for line in lines if line.startswith("discreet ")]
        assert len(examples) >= 2
        for line in examples:
            code, out, err = run(*shlex.split(line)[1:])
            assert (code, bool(out)) == (0, True), (line, err)


def test_groups_of_which_no_number_is_known_are_answered_in_json_too():
    """Which groups have a number is known after the charge alone: 1 over a count that may be 0 has none."""
    nothing = Answer(
        {"F": None, "M": None},
        math.inf,
        "direct",
        Cost(10**6, cap=10**9, delta=Fraction(0)),
        groups=("sex",),
        columns=("sex", "it"),
        rows=[("F", None), ("M", None)],
        intervals=[(None, None)] * 2,
    )
    found = AnswerView("?", nothing, Remaining(9 * 10**8, 10**9, None, 900), 1000).record()
    assert [group["values"] for group in found["groups"]] == [{"it": None}] * 2


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_output_that_cannot_show_a_sign_shows_its_number(monkeypatch, more):
    """The charge is made before anything is shown: ± on an ASCII terminal is no error."""
    out = io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["discreet", "ask", "people.toml", HEALTH, *more])
    cli.main()
    text = out.buffer.getvalue().decode("ascii")
    assert more or "\\xb1" in text
    assert "excellent" in text
