"""Plots and pages: numbers are those of plans and ledgers, texts stay texts, nothing comes from outside."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

from discreet import report
from discreet.data import AnyNumber, Category, Domain, Facts, Identity, Number
from discreet.errors import ParameterError
from discreet.estimators.rules import LearnedRule
from discreet.exact import percent
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, Laplace
from discreet.pac import sample_size
from discreet.pac.rules import BoxRule
from discreet.plan import plan
from discreet.query import Count, Equals, Histogram
from discreet.rehearsal import made_up
from discreet.release import release
from discreet.report import budget_plot, ledger_plot, plot, sample_size_plot, session_plot

DOMAIN = Domain(age=Number(0, 120, step=1), visits=Number(0, 50, step=1))
TEASED = '<script>alert("$x^2$")</script> & café 漢字 \x00\n end'


@pytest.fixture(scope="module")
def table():
    return made_up(DOMAIN, name="people", people=50)


def ledger_of(table, charges=(), *, budget=None, memo=""):
    found = Ledger.in_memory(budget or Budget(1, Fraction(1, 10**6)), table)
    for each in charges:
        release(each, table, ledger=found, memo=memo)
    return found


def well_formed(found: report.Plot) -> ET.Element:
    """Every plot is a document with its alternative text, and its rows fit its columns."""
    root = ET.fromstring(found.svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == found.alt
    assert all((found.title, found.caption, found.alt.endswith(".")))
    assert all(len(row) == len(found.columns) for row in found.rows)
    return root


def texts(found: report.Plot) -> str:
    return " ".join(
        "".join(each.itertext()) for each in ET.fromstring(found.svg).iter("{http://www.w3.org/2000/svg}text")
    )


# What a budget means.


def test_the_odds_are_bayes():
    found = report.odds((1, 3))
    row = dict(zip(found.columns, next(row for row in found.rows if row[0] == "50.0 %"), strict=True))
    assert row["most after, epsilon 3"] == "95.3 %"
    assert row["most after, epsilon 1"] == "73.1 %"
    assert "73.1 % sure at epsilon 1 and 95.3 % sure at epsilon 3" in found.alt
    assert "73 at epsilon 1" in found.caption
    assert "probability" not in found.caption
    well_formed(found)


@pytest.mark.parametrize("prior", [0.001, 0.3, 0.5, 0.97])
def test_a_posterior_multiplies_the_odds_by_at_most_the_ratio(prior):
    after = budget_plot.posterior(prior, 0.7)
    assert after / (1 - after) == pytest.approx(math.exp(0.7) * prior / (1 - prior))


def test_certainties_at_the_ends_stay_there():
    assert budget_plot.posterior(0, 5) == 0
    assert budget_plot.posterior(1, 5) == 1


def test_delta_is_said_to_be_outside_the_bounds():
    assert "outside an event of probability at most delta = 1e-06" in report.odds((1,), 1e-6).caption


def test_the_noise_range_is_the_plans():
    found = report.noise_range((0.1, 1), size=5_912, delta=1e-6)
    for row, epsilon in zip(found.rows, (0.1, 1), strict=True):
        errors = {each.method: each.error for each in plan("count", budget=Budget(epsilon, 1e-6), size=5_912).rows}
        assert row[:3] == (epsilon, errors["Laplace"], errors["Gaussian"])
        assert row[3] == percent(errors["Laplace"] / 5_912, up=True)
    assert "± 3 persons with Laplace noise" in found.alt
    well_formed(found)


def test_a_kind_that_is_refused_leaves_a_gap():
    found = report.noise_range((1,), delta=0)
    assert found.rows == ((1.0, 3.0, None),)
    assert "Gaussian" not in found.alt


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: report.odds(()),
        lambda: report.odds("1"),
        lambda: report.odds((0,)),
        lambda: report.odds(range(1, 9)),
        lambda: report.odds((1,), delta=1),
        lambda: report.noise_range((1,), kinds=("Cauchy",)),
        lambda: report.noise_range((1,), kinds=()),
        lambda: report.risk("count"),
        lambda: report.risk("logistic", d=2, measured=[(1, 2)]),
        lambda: report.risk("logistic"),
        lambda: report.risk("logistic", d=2, sizes=(0.5,)),
        lambda: report.sample_sizes((1,), learners={}),
        lambda: report.sample_sizes((1,), learners={"it": ("count", {})}),
        lambda: report.sample_sizes((1,), learners={"it": ("finite", {})}),
        lambda: report.sample_sizes((1,), learners={"it": ("finite", {"hypotheses": 9, "d": 2})}),
        lambda: report.questions([], budget=Budget(1)),
        lambda: report.questions([(1, 2, 3)], budget=Budget(1)),
        lambda: report.questions([(1, 2, None, 0.1)], budget=1),
        lambda: report.budget("people.ledger"),
        lambda: report.left(None),
        lambda: report.box("a box"),
        lambda: report.page("title", [7]),
        lambda: report.page("title", [report.Grid(("one", "two"), [(1, 2, 3)])]),
    ],
)
def test_a_wrong_argument_is_said(wrong):
    with pytest.raises(ParameterError):
        wrong()


# Learning.


def test_the_risk_is_what_the_plan_promises_and_measured_points_are_drawn():
    found = report.risk("logistic", d=3, epsilons=(1,), sizes=(20_000,), measured=[(1, 5_000, 0.01), (1, 9, -1.0)])
    taken = plan("logistic", budget=Budget(1, 1e-6), size=20_000, d=3).taken
    assert taken.method == "objective"
    assert found.rows[0] == (1.0, 20_000, taken.error, None)
    assert found.rows[1:] == ((1.0, 5_000, None, 0.01), (1.0, 9, None, -1.0))
    assert "Measured: between -1 and 0.01" in found.alt
    assert "measured" in texts(found)
    well_formed(found)


def test_the_radius_is_part_of_the_risk_that_is_promised():
    found = report.risk("logistic", d=3, epsilons=(1,), sizes=(20_000,), radius="3.5")
    taken = plan("logistic", budget=Budget(1, 1e-6), size=20_000, d=3, radius="3.5").taken
    assert found.rows[0] == (1.0, 20_000, taken.error, None)
    assert taken.error < report.risk("logistic", d=3, epsilons=(1,), sizes=(20_000,)).rows[0][2]
    assert "a public choice: all coefficients of length at most 3.5 for rows of norm 1" in found.caption
    assert "radius = 3.5" in found.title
    for kind, numbers in (("median", {}), ("finite", {"hypotheses": 9})):
        with pytest.raises(ParameterError, match="radius= is for linear and logistic"):
            report.risk(kind, radius=3, **numbers)


def test_needed_sizes_fall_with_the_radius():
    learners = {"short": ("logistic", {"d": 2, "radius": 2}), "long": ("logistic", {"d": 2})}
    short, long = (row[1] for row in report.sample_sizes((1,), learners=learners).rows)
    assert short < long / 2


def test_the_risk_of_a_rule_is_the_plans_share_of_wrong_rows():
    found = report.risk("finite", hypotheses=100, epsilons=(1,), sizes=(50, 5_000))
    (best,) = plan("finite", budget=Budget(1, 1e-6), size=5_000, hypotheses=100).rows
    assert found.rows[1][2] == best.alpha
    assert "share of wrong rows" in found.columns[2]
    assert "with probability 0.95" in found.caption


def test_where_nothing_is_promised_the_caption_says_so():
    found = report.risk("logistic", d=5, epsilons=(0.1,), sizes=(100,))
    assert found.rows == ((0.1, 100, None, None),)
    assert "(1 of 1) nothing is promised" in found.caption
    assert "At none of these sizes" in found.alt
    well_formed(found)


def test_a_bound_that_grows_with_the_size_is_explained():
    assert sample_size_plot._grows({(Fraction(1), 10): 0.1, (Fraction(1), 100): 0.2})
    assert not sample_size_plot._grows({(Fraction(1), 10): 0.2, (Fraction(1), 100): None, (Fraction(2), 10): 0.3})


def test_needed_sizes_are_the_plans():
    learners = {
        "finite": ("finite", {"hypotheses": 50}),
        "questions": ("questions", {"questions": 10, "bits": 8}),
        "logistic": ("logistic", {"d": 2}),
    }
    found = report.sample_sizes((1,), learners=learners)
    sizes = {row[0]: row[1] for row in found.rows}
    assert sizes["finite"] == sample_size("finite", 0.05, 0.05, 1, 1e-6, "replace-one", "auto", hypotheses=50)
    rows = plan("questions", budget=Budget(1, 1e-6), alpha=0.05, questions=10, bits=8).rows
    assert sizes["questions"] == min(row.needed for row in rows if row.needed is not None)
    excess = sample_size_plot._cached_excess(
        "logistic", Budget(1, 1e-6), Neighbours("replace-one"), sizes["logistic"], (("d", 2),)
    )
    assert excess <= 0.05
    assert "Left out" not in found.caption
    assert f"{sizes['finite']:,} for finite" in found.alt
    well_formed(found)


def test_a_learner_that_refuses_is_left_out_and_named():
    learners = {"finite": ("finite", {"hypotheses": 50}), "<logistic>": ("logistic", {"d": 2})}
    found = report.sample_sizes((1,), alpha=1e-7, learners=learners)
    assert found.rows[1] == ("<logistic>", None)
    assert "nothing is promised with these budgets: <logistic>." in found.caption
    assert "logistic" not in texts(found)
    with pytest.raises(ParameterError, match="no learner promises 1e-07"):
        report.sample_sizes((1,), alpha=1e-7, learners={"far": ("logistic", {"d": 2})})


# Boxes.


def box_of(low, high, domain=DOMAIN):
    rule = BoxRule(tuple(domain.names)[: len(low)], low, high)
    return LearnedRule(rule, domain, rule.sentence(domain))


def test_a_box_is_drawn_with_its_numbers_and_the_true_one():
    found = report.box(box_of((54, 3), (81, 50)), truth={"age": (55, 80), "visits": (3, 50)})
    assert found.rows[0] == ("age", 54.0, 81.0, 0.0, 120.0, 55.0, 80.0)
    assert "54 <= age <= 81 and visits >= 3" in found.alt
    assert "55 <= age <= 80" in found.alt
    assert {"54", "81", "3", "learned", "true"} <= set(texts(found).split())
    well_formed(found)


def test_a_fitted_classifier_is_taken_as_its_box():
    class Fitted:
        box_ = box_of((1, 2), (3, 4))

    assert report.box(Fitted()) == report.box(Fitted.box_)


def test_an_empty_box_one_feature_and_two_of_three():
    assert "calls no row positive" in report.box(box_of((1, 1), (0, 0))).caption
    well_formed(report.box(box_of((5,), (9,), Domain(age=Number(0, 10, step=1)))))
    three = box_of((1, 2, 3), (4, 5, 6), Domain(a=Number(0, 9, step=1), b=Number(0, 9, step=1), c=Number(0, 9, step=1)))
    found = report.box(three, ("a", "c"))
    assert "Not drawn: b" in found.caption
    assert len(found.rows) == 3
    with pytest.raises(ParameterError, match="one or two of a, b, c"):
        report.box(three)


def test_a_box_without_declared_bounds_or_with_half_a_truth_is_refused():
    rule = BoxRule(("x",), (1,), (2,))
    with pytest.raises(ParameterError, match="'x' has none"):
        report.box(LearnedRule(rule, Domain(x=AnyNumber()), "x"))
    with pytest.raises(ParameterError, match=r"truth needs \(low, high\) for 'visits'"):
        report.box(box_of((1, 2), (3, 4)), truth={"age": (1, 2)})


# Ledgers.


def test_the_last_point_of_a_budget_is_what_is_spent(table):
    mechanisms = [Laplace(Count(), 20), Gaussian(Histogram("age"), 25), Laplace(Count(), 50), Laplace(Count(), 50)]
    ledger = ledger_of(table, mechanisms)
    found = ledger_plot.steps(ledger)
    assert found[-1].books == ledger.spent()
    assert [each.label for each in found] == ["laplace", "gaussian", "laplace", "laplace"]
    picture = report.budget(ledger)
    assert picture.rows[-1][3] == percent(float(ledger.spent().used()), up=True)
    assert picture.rows[0][picture.columns.index("decided by")] == "Renyi book"
    assert picture.rows[-1][picture.columns.index("pure book")] == "closed"
    assert "laplace × 2" in texts(picture)
    assert "by 4 charges" in picture.alt
    well_formed(picture)


def test_a_pure_ledger_has_one_book(table):
    ledger = ledger_of(table, [Laplace(Count(), 4)], budget=Budget(1))
    found = report.budget(ledger)
    assert found.columns == ("entry", "time", "charge", "used after it", "pure book", "decided by")
    assert found.rows[0][3:] == ("25 %", "25 %", "pure book")
    assert "25 % of the budget" in found.alt


def test_an_empty_ledger_says_so(table):
    found = report.budget(ledger_of(table))
    assert found.rows == ()
    assert "nothing was charged yet" in found.alt
    assert "nothing was charged yet" in texts(found)
    well_formed(found)


def test_many_charges_are_a_thinned_curve_that_ends_where_the_ledger_does(table, monkeypatch):
    monkeypatch.setattr(ledger_plot, "MOST_ROWS", 20)
    monkeypatch.setattr(ledger_plot, "MOST_POINTS", 30)
    ledger = ledger_of(table, [(Laplace, Gaussian)[turn % 2](Count(), 300 + turn) for turn in range(60)])
    found = report.budget(ledger)
    assert len(found.rows) == 20
    assert found.rows[-1][3] == percent(float(ledger.spent().used()), up=True)
    assert "20 of 60 charges" in found.caption
    assert "Renyi book" in texts(found)
    well_formed(found)


@pytest.mark.parametrize(("count", "most"), [(0, 5), (5, 5), (6, 5), (10_000, 400)])
def test_thinning_keeps_the_ends(count, most):
    kept = plot.thinned(range(count), most)
    assert len(kept) == min(count, most)
    assert kept == sorted(set(kept))
    assert count == 0 or (kept[0], kept[-1]) == (0, count - 1)


def test_what_a_mark_proved_is_in_the_budget(table, tmp_path):
    path = tmp_path / "people.ledger"
    ledger = Ledger.create(path, Budget(1), table)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    release(Laplace(Count(), 10), table, ledger=ledger)
    ledger.close()
    shutil.copy(tmp_path / "older", path)
    again = Ledger.open(path)
    again.reconcile()
    release(Laplace(Count(), 5), table, ledger=again)
    found = ledger_plot.steps(again)
    assert [each.label for each in found] == ["reconciled", "laplace"]
    assert found[-1].books == again.spent()
    assert found[-1].used == pytest.approx(0.3)


def test_memos_are_told_only_if_everything_is(table):
    ledger = ledger_of(table, [Laplace(Count(), 20)], memo=TEASED)
    quiet, loud = report.budget(ledger), report.budget(ledger, everything=True)
    assert "script" not in quiet.svg + str(quiet.rows) + quiet.alt
    assert '<script>alert("$x^2$")</script> & café 漢字 end' in loud.rows[0]
    assert "<script>alert" in texts(loud)
    assert "<script" not in loud.svg
    well_formed(loud)


def test_what_is_left_fits_and_a_little_less_noise_does_not(table):
    ledger = ledger_of(table, [Laplace(Count(), 2)])
    found = report.left(ledger, counts=(1, 200))
    assert "± " in found.alt
    facts = Facts(Domain(it=Category("no", "yes")), ledger.identity.neighbours, 50)
    one = found.rows[0][1]
    wide, tight = (Laplace(Count(Equals("it", "yes")), scale) for scale in (one / 2, one / 4))
    assert ledger.admits(wide, facts=facts)
    assert not ledger.admits(tight, facts=facts)
    assert found.rows[1][2] < found.rows[1][1]  # many counts: Gaussian noise is the smaller
    well_formed(found)


def test_a_ledger_that_is_used_up_buys_nothing(table):
    ledger = ledger_of(table, [Laplace(Count(), 1)], budget=Budget(1))
    found = report.left(ledger)
    assert found.alt == "Nothing more fits."
    assert {cell for row in found.rows for cell in row[1:]} == {None}
    well_formed(found)


# Questions.


def test_simpler_ways_to_answer_are_the_plans():
    asked = [(number, 200.0, number % 7, 0.01 * number) for number in range(1, 13)]
    found = report.questions(asked, budget=Budget(1, 1e-6))
    last = dict(zip(found.columns, found.rows[-1], strict=True))
    rows = plan("questions", budget=Budget(1, 1e-6), size=10**6, questions=12, bits=10).rows
    assert last["Gaussian on each, ± persons"] == next(row.error for row in rows if row.method == "Gaussian for each")
    (laplace,) = (row for row in plan("count", budget=Budget(Fraction(1, 12)), beta=Fraction(1, 240)).rows if row.error)
    assert last["Laplace on each, ± persons"] == pytest.approx(laplace.error, rel=0.1)
    assert (last["questions"], last["spent"], last["true error"]) == (12, "12 %", 5.0)
    assert "After 12 questions the session had spent 12 % of the budget and promised ± 200 persons" in found.alt
    assert "largest true error was 6" in found.alt
    well_formed(found)


def test_the_largest_true_error_is_found_among_all_questions_also_when_few_are_drawn(monkeypatch):
    monkeypatch.setattr(session_plot, "MOST_POINTS", 3)
    found = report.questions([(number, 50, 40 * (number == 7), 0.1) for number in range(1, 21)], budget=Budget(1))
    assert "largest true error was 40" in found.alt
    assert "A true error of 0 is drawn at one half" in found.caption


def test_a_question_paid_alone_costs_what_its_noise_costs():
    facts = Facts(Domain(it=Category("no", "yes")), Neighbours("replace-one"), None)
    share = session_plot._price(Laplace, Budget(1, 1e-6), facts, 16_000, Fraction(1, 20), 1_000)
    assert share == pytest.approx(math.log(16_000 / 0.05) / 1_000, rel=0.01)
    for kind in (Laplace, Gaussian):
        price = session_plot._price(kind, Budget(1, 1e-6), facts, 50, Fraction(1, 20), 100)
        scale = session_plot._largest(
            lambda scale, kind=kind: kind(ledger_plot.COUNT, scale).noise_range(1 - 0.05 / 50, facts) <= 100
        )
        assert Funds.of(Budget(1, 1e-6)).admits(kind(ledger_plot.COUNT, scale).guarantee(facts))
        assert 0 < price < 1
    assert session_plot._price(Laplace, Budget(1), facts, 5, Fraction(1, 20), math.inf) is None


def test_a_pure_budget_is_compared_with_laplace_alone_and_bounds_may_be_missing():
    well_formed(report.questions([(1, math.inf, None, 0)], budget=Budget(1)))
    found = report.questions([(1, math.inf, None, 0), (2, 30, None, 0.5)], budget=Budget(1))
    assert not any("Gaussian" in name for name in found.columns)
    assert found.rows[0][1] == math.inf
    assert "true error" not in found.alt
    well_formed(found)


# The picture as a document.


def test_the_same_numbers_give_the_same_bytes(table):
    assert report.odds((1, 2)).svg == report.odds((1, 2)).svg
    assert not re.search(r"20\d\d-\d\d|Matplotlib|metadata", report.odds((1, 2)).svg)


def test_every_colour_of_a_picture_has_a_dark_one():
    for found in (report.odds(), report.box(box_of((54, 3), (81, 40)), truth={"age": (1, 2), "visits": (1, 2)})):
        drawn = re.sub(r"<style>.*?</style>", "", found.svg)
        for use, colour in set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", drawn)):
            assert f"[style*='{use}: {colour}']" in plot.DARK, (use, colour)
        assert "stroke: #" not in "".join(re.findall(r"<defs>.*?</defs>", drawn, re.DOTALL))


def test_lines_differ_without_colour():
    looks = [plot.series(place) for place in range(len(plot.SERIES))]
    assert len({(str(look["linestyle"]), look["marker"]) for look in looks}) == len(plot.SERIES)
    assert len(set(plot.SERIES)) == len(plot.MARKERS) == len(plot.SERIES)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"pip install discreet\[report\]"):
        report.odds((1,))


def test_a_plot_is_saved_as_a_file(tmp_path):
    found = report.odds((1,))
    found.save(tmp_path / "odds.svg")
    assert ET.parse(tmp_path / "odds.svg").getroot().get("aria-label") == found.alt


@pytest.mark.parametrize(
    ("value", "says"),
    [(None, "–"), ("x", "x"), (1234, "1,234"), (0.0123456, "0.01235"), (12345.6, "12,346"), (math.inf, "no bound")],
)
def test_numbers_for_the_eye(value, says):
    assert plot.shown(value) == says


# Pages.


class Read(HTMLParser):
    """Counts tags, and keeps attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def whole(table):
    ledger = ledger_of(table, [Laplace(Count(), 20)], memo=TEASED)
    parts = [
        "One <b>paragraph</b>.\n\nAnother.",
        report.odds((1,)),
        report.odds((1,)),
        report.budget(ledger, everything=True),
        report.Grid(("<i>name</i>", "number"), [(TEASED, 3), ("plain", None)], "A <u>caption</u>"),
    ]
    return report.page("People & <others>", parts, lead="<em>lead</em>")


def test_a_page_holds_everything_and_refers_to_nothing(whole):
    found = Read(whole)
    names = {name for name, _ in found.attributes}
    assert not names & {"src", "srcset", "data", "action", "poster", "xmlns", "onclick", "onload"}
    assert all(value.startswith("#") for name, value in found.attributes if name in ("href", "xlink:href"))
    assert all(value.startswith("#plot-") for value in re.findall(r"url\(([^)]*)\)", whole))
    assert not set(found.tags) & {"script", "link", "iframe", "img", "object", "embed", "base"}
    assert not re.search(r"https?:|//[a-z]|@import", whole)


def test_every_text_of_a_page_stays_text(whole):
    found = Read(whole)
    assert not set(found.tags) & {"b", "i", "u", "em", "others", "script"}
    said = "".join(found.texts)
    for text in ("One <b>paragraph</b>.", "<em>lead</em>", "A <u>caption</u>", "<i>name</i>", '<script>alert("$x^2$")'):
        assert text in said
    assert "<title>People &amp; &lt;others&gt;</title>" in whole


def test_a_page_is_made_of_figures_with_captions_and_tables(whole):
    tags = Read(whole).tags
    assert (tags.count("svg"), tags.count("details"), tags.count("figure"), tags.count("figcaption")) == (3, 3, 4, 4)
    assert tags.count("table") == 4
    assert tags.count("h1") == tags.count("main") == 1
    assert tags.count("p") == 3
    assert 'lang="en"' in whole
    assert "prefers-color-scheme" in whole
    assert "@media print" in whole


def test_identifiers_are_unique_although_a_plot_comes_twice(whole):
    names = [value for name, value in Read(whole).attributes if name == "id"]
    assert names
    assert len(names) == len(set(names))
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', whole))
    assert used == set(names)


def test_headings_nest():
    plain = report.page("It", [report.odds((1,))])
    parted = report.page("It", [report.Heading("First"), report.odds((1,))])
    assert "<h2>How sure" in plain
    assert "<h2>First</h2>" in parted
    assert "<h3>How sure" in parted


def test_a_page_is_not_written_over_another_unless_told(tmp_path):
    report.write_page(tmp_path / "it.html", "one")
    with pytest.raises(ParameterError, match=r"it\.html exists already"):
        report.write_page(tmp_path / "it.html", "two")
    assert (tmp_path / "it.html").read_text() == "one"
    report.write_page(tmp_path / "it.html", "two", force=True)
    assert (tmp_path / "it.html").read_text() == "two"


# The pictures of the documentation.

DOCS = Path(__file__).parents[2] / "docs"


def drawn():
    there = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    module = importlib.util.module_from_spec(there)
    there.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    ["odds", "noise-range", "risk", "questions", "box", pytest.param("sample-sizes", marks=pytest.mark.slow), "budget"],
)
def test_a_picture_of_the_documentation_is_what_the_code_draws(name):
    module = drawn()
    found = module.PICTURES[name]()
    stored = ET.parse(DOCS / "pictures" / f"{name}.svg").getroot()
    assert stored.get("aria-label") == found.alt
    assert module.written({name: found}) in (DOCS / "pictures" / "numbers.md").read_text()


def test_the_list_of_pictures_is_the_folder():
    assert {path.stem for path in (DOCS / "pictures").glob("*.svg")} == set(drawn().PICTURES)


def test_the_identity_of_a_ledger_without_facts_is_enough():
    ledger = Ledger.in_memory(Budget(1), Identity("people", Neighbours("add-remove"), None))
    assert "± 3 persons on one count" in report.left(ledger).alt
