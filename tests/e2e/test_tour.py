"""The tour: one run in this process that many facts are read from, its parts, and from outside what stops it."""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import discreet_tour as touring
import numpy as np
import pyarrow.parquet as pq
import pytest
from discreet_tour import folder, models, page, questions
from discreet_tour.analyst import Interview, drill, sql, upper_half
from discreet_tour.screen import Line, Screen, percent, price, program
from discreet_tour.stage import real, rehearsal
from discreet_tour.truth import Truth, apart, best_model, huber
from rich.console import Console

import discreet as dp
from discreet import cli, example
from discreet.catalogue import CATALOGUE
from discreet.certificate import Certificate, check
from discreet.session import Session

SIZE = 5912


@dataclass(frozen=True)
class Toured:
    """What a run left behind."""

    folder: Path
    state: Path
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return " ".join(self.out.split())


def discreet(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    code = 0
    try:
        cli.main()
    except SystemExit as stopped:
        code = stopped.code
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def toured(tmp_path_factory) -> Toured:
    """The whole tour on 40 columns."""
    return taken(tmp_path_factory.mktemp("tour"), "40", "--long")


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Toured:
    """The tour as it is told by default, on 80 columns."""
    return taken(tmp_path_factory.mktemp("short"), "80")


def taken(where: Path, columns: str, *options: str) -> Toured:
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_STATE", str(where / "state"))
        patch.setenv("COLUMNS", columns)
        patch.chdir(where)
        patch.setattr(sys, "argv", ["discreet", "tour", *options])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
    return Toured(where / "discreet-tour", where / "state", code, out.getvalue(), err.getvalue())


@pytest.fixture
def ledger(toured, monkeypatch) -> dp.Ledger:
    """The ledger that the tour left."""
    monkeypatch.setenv("DISCREET_STATE", str(toured.state))
    return dp.Ledger.open(toured.folder / "people.ledger")


@pytest.fixture(scope="module")
def schema(tmp_path_factory) -> dp.Schema:
    return dp.Schema.read(folder.write(tmp_path_factory.mktemp("people")))


@pytest.fixture(scope="module")
def truth(schema) -> Truth:
    return Truth(schema.data, schema.domain)


@pytest.fixture
def desk(schema, truth):
    table = schema.table()
    return real(schema, dp.Ledger.in_memory(touring.BUDGET, table), table, truth)


# The whole of it.


def test_the_tour_runs_to_its_end_on_40_columns_and_is_silent_on_the_error_stream(toured):
    assert (toured.code, toured.err) == (0, "")
    for part in ("What is protected", "The plan, before anything is spent", "Models and rules", "Questions in SQL"):
        assert part in toured.text
    for part in ("Synthetic rows", "refused, and costs nothing", "The ledger was verified", "What next"):
        assert part in toured.text
    too_long = [line for line in toured.out.splitlines() if len(line) > 40 and not line.startswith("  discreet ")]
    assert too_long == []
    assert "\x1b" not in toured.out


def test_the_short_tour_has_40_lines_shows_an_attack_and_ends_with_the_page(short):
    assert (short.code, short.err) == (0, "")
    lines = short.out.rstrip().splitlines()
    assert len(lines) <= 40
    assert "report.html" in " ".join(lines[-2:])
    assert (short.folder / "report.html").is_file()
    for part in ("true errors", "synthetic rows, free", "refused", "certain: 4, caught", "learned: ", "spent [###"):
        assert part in short.text
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_STATE", str(short.state))
        with dp.Ledger.open(short.folder / "people.ledger") as ledger:
            assert ledger.verify(CATALOGUE) is not None


def test_what_next_can_be_typed_where_the_program_is_not_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/discreet", "tour"])
    assert program() == ".venv/bin/discreet"
    monkeypatch.setattr(sys, "argv", ["/somewhere/my discreet/__main__.py", "tour"])
    assert shlex.split(program()) == [sys.executable, "-m", "discreet"]
    (tmp_path / "discreet").touch(mode=0o755)
    assert program() == "discreet"


def test_the_plan_comes_before_the_first_charge(toured):
    out = toured.out
    assert (
        out.index("The plan") < out.index("Models and rules") < out.index("Questions in SQL") < out.index("The books")
    )


def test_the_tour_says_whose_rows_these_are_and_what_is_invented(toured):
    assert "These are real people, and their rows have been public for decades" in toured.text
    assert "no function of the library returns an exact answer" in toured.text
    assert "The programme is invented, the people are real" in toured.text


def test_each_result_has_an_answer_a_promise_a_true_error_and_a_price(toured):
    results = toured.out[toured.out.index("Models and rules") : toured.out.index("Synthetic rows")]
    found = [results.count(f"  {word}: ") for word in ("private answer", "promised", "true error", "price")]
    assert found[1:] == [found[1]] * 3  # the line of all questions has no answer of its own
    assert found[0] == found[1] - 1 == len(models.STEPS) + 1 + len(questions.DRILLS) + len(questions.HALVES)


def test_hundreds_of_questions_are_answered_most_of_them_free(toured):
    asked, free = map(int, re.search(r"(\d+) questions, (\d+) of them free", toured.text).groups())
    assert asked >= 300
    assert free > asked / 2


def test_the_ledger_that_is_left_verifies_and_is_spent_but_for_a_little(ledger):
    assert ledger.verify(CATALOGUE) == ()
    spent = ledger.spent()
    assert 0.75 * spent.caps.renyi < spent.renyi < spent.caps.renyi


def test_what_does_not_fit_is_refused_and_what_fits_is_answered_in_the_folder(toured, monkeypatch, capsys):
    assert "this does not fit" in toured.text
    monkeypatch.setenv("DISCREET_STATE", str(toured.state))
    monkeypatch.chdir(toured.folder.parent)
    found = re.findall(r"^  (discreet .*)$", toured.out, re.MULTILINE)
    assert any(each.startswith("discreet ask") for each in found)
    for command in found:
        if "YOUR" not in command:
            code, out, err = discreet(monkeypatch, capsys, *shlex.split(command)[1:])
            assert code == 0, err
            assert out


def test_synthetic_rows_have_the_declared_columns_and_values(toured, schema):
    with (toured.folder / "synthetic.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == SIZE
    assert list(rows[0]) == list(schema.domain.names)
    assert {row["health"] for row in rows} <= set(schema.domain["health"].levels)


def test_the_certificate_is_of_the_logistic_regression_and_true_to_the_ledger(toured, ledger):
    made = Certificate.read((toured.folder / "certificate.json").read_text())
    assert "limited" in str(made)
    assert "is true to the entries" in check(made, ledger)


def test_the_report_needs_nothing_from_outside(toured):
    page = (toured.folder / "report.html").read_text()
    assert "<script" not in page
    assert re.findall(r'(?:src|href|action|data)\s*=\s*"(?!#)[^"]*"', page) == []
    assert "url(http" not in page
    assert "@import" not in page
    assert page.count("<svg") == 7
    assert "True error" in page


def test_the_radius_is_said_to_be_a_public_choice_wherever_it_is_promised_with(toured):
    page = (toured.folder / "report.html").read_text()
    for radius in ("2.3", "46"):
        said = f"on average, among coefficients of length at most {radius}, a public choice"
        assert toured.text.count(said) == 2  # in the plan and in the results
        assert said in page


def test_the_star_of_the_report_has_a_curve_for_its_own_fit(desk, schema):
    fitted = models.logistic(desk)
    told = page.Told(schema, desk.ledger, {"logistic": fitted}, [], [], 0.0, SIZE)
    rows = page._risk(told).rows
    (star,) = [row for row in rows if row[3] is not None]
    (curve,) = [row for row in rows if row[:2] == star[:2] and row[3] is None]
    assert star[1:] == (SIZE, None, fitted.measured)
    # A ledger prices at one order; by itself, in few dimensions, a fit takes pure noise, which promises more.
    assert 0.4 < curve[2] / float(fitted.model.promise_) < 1.1


def test_nothing_of_the_workplace_is_in_what_the_tour_leaves(toured):
    for name in ("certificate.json", "report.html", "people.toml"):
        assert str(toured.folder.parent) not in (toured.folder / name).read_text()


@pytest.mark.slow
def test_a_second_tour_takes_another_folder_and_leaves_the_first_alone(toured, monkeypatch, capsys):
    monkeypatch.setenv("DISCREET_STATE", str(toured.state))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(toured.folder.parent)
    before = {each.name: each.read_bytes() for each in toured.folder.iterdir()}
    code, out, err = discreet(monkeypatch, capsys, "tour", "--no-report")
    assert (code, err) == (0, "")
    assert "In discreet-tour-2:" in out
    assert {each.name: each.read_bytes() for each in toured.folder.iterdir()} == before
    assert not (toured.folder.parent / "discreet-tour-2" / "report.html").exists()
    assert max(map(len, out.splitlines())) <= 120


# What stops it.


def interrupted(desk):
    """A step that is stopped by Ctrl-C when it comes to the people."""
    if desk.truth is not None:
        raise KeyboardInterrupt
    return models.logistic(desk)


def test_ctrl_c_is_one_sentence_and_code_130_and_the_ledger_verifies(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(models, "STEPS", (models.logistic, interrupted))
    code, _, err = discreet(monkeypatch, capsys, "tour", "--folder", "mine")
    assert code == 130
    assert len(err.strip().splitlines()) == 1
    left = dp.Ledger.open(tmp_path / "mine" / "people.ledger")
    assert left.verify(CATALOGUE) == ()
    assert 0 < left.spent().renyi < left.spent().caps.renyi


@pytest.mark.slow
@pytest.mark.parametrize("after", ["What is protected", "The plan", "Models and rules", "Questions in SQL"])
def test_ctrl_c_from_outside_leaves_a_folder_that_works(tmp_path, after):
    environment = {**os.environ, "DISCREET_STATE": str(tmp_path / "state"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "tour"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        for line in running.stdout:
            if line.startswith(after):
                break
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert running.returncode == 130, err
    assert len(err.strip().splitlines()) == 1
    found = tmp_path / "discreet-tour" / "people.ledger"
    if found.exists():
        subprocess.run(
            [*command[:-1], "ledger", "verify", str(found)], env=environment, check=True, capture_output=True
        )


def test_without_matplotlib_the_tour_says_how_to_get_the_report_and_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = io.StringIO()
    touring._report(
        Screen(Console(file=out, width=200, markup=False), Console(file=out)), tmp_path, None, None, {}, None
    )
    assert "pip install 'discreet[report]'" in out.getvalue()
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_said_before_anything_is_written(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyarrow" else name)
    code, out, err = discreet(monkeypatch, capsys, "tour")
    assert (code, out) == (2, "")
    assert "pyarrow is not installed: pip install 'discreet[sql]'" in err
    assert list(tmp_path.iterdir()) == []


# True errors come from the file.


def test_when_the_library_answers_nonsense_the_shown_true_error_says_so(monkeypatch, desk, truth):
    asked = Session.ask

    def nonsense(self, question):
        got = asked(self, question)
        return replace(got, value=got.value + 100_000)

    monkeypatch.setattr(Session, "ask", nonsense)
    interview = Interview(questions.session_of(desk), truth, reserve=0)
    interview.hear(drill(truth.domain, ("sex", "limited"), 0), lambda asked: None)
    assert [each.error > 90_000 for each in interview.asked] == [True] * 6
    assert "worst 10" in questions._line("what", "", "", interview.asked).error


def test_when_a_model_is_nonsense_its_shown_error_says_so(truth):
    never = SimpleNamespace(bounds_={})
    assert models._box_error(never, truth)[0] == truth.share("programme", "yes")
    features = ["age", "diseases", "health"]
    nonsense = SimpleNamespace(coef_=np.array([[-9.0, -9, 0, 0, 0, 0]]), intercept_=np.array([50.0]), radius="2.3")
    excess, words = models._logistic_error(nonsense, truth, features)
    assert excess > 10
    assert f"excess risk {excess:.2g}" in words
    assert (
        models._linear_error(
            SimpleNamespace(coef_=np.zeros(2), intercept_=1000.0, radius=46), truth, ["family", "diseases"]
        )[0]
        > 1000
    )


def test_the_best_models_have_no_excess_risk(truth):
    features = ["family", "diseases"]
    vectors, age = models._vectors(truth, features), truth.columns["age"]
    best = best_model(vectors, lambda predicted: huber(predicted - age, 32.5), radius=46)
    model = SimpleNamespace(coef_=best[:-1], intercept_=best[-1] * vectors[0, -1], radius=46)
    assert abs(models._linear_error(model, truth, features)[0]) < 1e-6


def test_without_a_bend_and_a_radius_the_best_line_is_least_squares(truth):
    vectors, age = models._vectors(truth, ["family", "diseases"]), truth.columns["age"]
    found = best_model(vectors, lambda predicted: huber(predicted - age, 1e9), radius=1e9)
    assert np.allclose(found, np.linalg.lstsq(vectors, age, rcond=None)[0], rtol=1e-3)


def test_pairs_are_ranked_as_by_comparing_each_pair():
    rng = np.random.default_rng(0)
    scores, yes = rng.integers(0, 8, 60).astype(float), rng.random(60) < 0.3
    pairs = [(a > b) + (a == b) / 2 for a in scores[yes] for b in scores[~yes]]
    assert models.roc_auc_score(yes, scores) == pytest.approx(np.mean(pairs))


def test_true_counts_are_those_of_the_file_read_as_declared(truth, schema):
    rows = pq.read_table(schema.data).to_pylist()
    assert truth.size == len(rows) == SIZE
    for conditions in (
        (("site", "=", 2), ("health", "=", "good")),
        (("age", ">=", 40), ("sex", "=", "F")),
        (("visits", ">=", 50),),  # what is above the bound counts as the bound
        (("income", ">=", 7500),),
    ):
        true = sum(
            all(row[name] == at if sign == "=" else row[name] >= at for name, sign, at in conditions) for row in rows
        )
        assert truth.count(conditions) == true > 0
    assert truth.groups(("site", "sex")) == Counter((row["site"], row["sex"]) for row in rows)
    assert truth.median("age") == sorted(row["age"] for row in rows)[SIZE // 2]


def test_a_price_of_nothing_is_free_and_small_parts_keep_their_digits():
    assert [price(0), price(0.1234), percent(0.00017), percent(0)] == ["free", "12.3 %", "0.017 %", "0.0 %"]


def test_distributions_are_apart_by_what_would_have_to_move():
    assert apart(Counter(a=3, b=1), Counter(a=1, b=3)) == 0.5
    assert apart(Counter(a=2), Counter(a=5)) == 0
    assert apart(Counter(a=1), Counter(b=1)) == 1


# Its parts.


def test_the_plan_prices_and_promises_what_the_people_are_then_charged_and_told(schema, desk):
    rehearsed = models.box(rehearsal(schema, touring.BUDGET, SIZE)).line
    charged = models.box(desk).line
    assert (rehearsed.price, rehearsed.promised) == (charged.price, charged.promised)
    assert rehearsed.error == ""
    assert desk.spent() == pytest.approx(float(models.BOX), rel=1e-3)


def test_a_part_of_the_budget_is_the_same_however_much_was_spent_before(desk):
    for _ in range(2):
        before = desk.spent()
        part = desk.share(Fraction(1, 5))
        learner = dp.BoxClassifier(epsilon=part, method="exhaustive")
        desk.fit(learner, features=["age", "visits"], target="programme")
        assert desk.spent() - before == pytest.approx(0.2, rel=1e-3)


def test_a_drill_goes_on_only_where_there_are_enough_people(truth):
    investigation, asked = drill(truth.domain, ("site", "sex"), least=1_000), []
    found, conditions = None, next(investigation)
    while found is None:
        asked.append(conditions)
        try:
            conditions = investigation.send(truth.count(conditions))
        except StopIteration as done:
            found = done.value
    large = [site for site in range(1, 7) if truth.count((("site", "=", site),)) >= 1_000]
    assert [each[0][2] for each in asked if len(each) == 2] == [site for site in large for _ in "FM"]
    assert found.endswith(truth.most(("site", "sex")).split(": ")[1])


def test_halving_finds_the_true_median_when_answers_are_exact(truth):
    for column, by in questions.HALVES:
        investigation = upper_half(truth.domain, column, by, SIZE, SIZE)
        found, conditions = None, next(investigation)
        while found is None:
            try:
                conditions = investigation.send(truth.count(conditions))
            except StopIteration as done:
                found = done.value
        assert f"{column} >= {truth.median(column):,}:" in found


def test_an_interview_stops_at_the_reserve(desk, truth):
    interview = Interview(questions.session_of(desk), truth, reserve=1.0)
    assert "stopped" in interview.hear(drill(truth.domain, ("sex",), 0), lambda asked: None)
    assert interview.asked == []
    assert desk.spent() == 0


def test_questions_are_sql_with_quoted_levels():
    asked = sql((("health", "=", "good"), ("age", ">=", 40)))
    assert asked == "SELECT COUNT(*) FROM people WHERE health = 'good' AND age >= 40"


def test_the_programme_invites_exactly_those_in_its_box(truth):
    (young, old), (few, _) = folder.INVITED["age"], folder.INVITED["visits"]
    age, visits = truth.columns["age"], truth.columns["visits"]
    assert ((truth.columns["programme"] == "yes") == ((age >= young) & (age <= old) & (visits >= few))).all()
    original = pq.read_table(example.HERE / "people.parquet")
    assert set(truth.columns) - set(original.column_names) == {"programme"}


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path):
    wanted = tmp_path / "tour"
    assert folder.free_folder(wanted) == wanted
    wanted.mkdir()
    assert folder.free_folder(wanted) == wanted
    (wanted / "people.ledger").write_text("somebody's")
    assert folder.free_folder(wanted) == tmp_path / "tour-2"
    (tmp_path / "tour-2").write_text("a file")
    assert folder.free_folder(wanted) == tmp_path / "tour-3"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_results_fit_the_width_and_lose_nothing(width):
    out = io.StringIO()
    line = Line("what was asked about them", "an answer of several words", "± 295", "worst 12, mean 3", "free")
    Screen(Console(file=out, width=width), Console(file=out)).results([line, line])
    assert max(map(len, out.getvalue().splitlines())) <= width
    words = re.findall(r"[\w±]+", out.getvalue())
    for cell in ("several", "±", "295", "worst", "mean", "free"):
        assert words.count(cell) == 2
