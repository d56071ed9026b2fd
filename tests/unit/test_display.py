"""Public things show themselves: as text, in HTML that no name can break, as frames and as pictures. Never a row."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib.figure
import pytest

import discreet as dp
from discreet.answering.answer import Answer
from discreet.display import CellTable, Pairs, Sheet, number, round_up
from discreet.errors import ParameterError

HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" and 'single' & more",
    "\u202eright to left\u202c",
    "עברית",
    "a" * 400,
    "two\nlines\r\x1b[31m",
    "</td></table><img src=x onerror=alert(1)>",
    "`tick` {brace} $math$ %s",
]
CANARY = 7654321
DOMAIN = dp.Domain(
    {
        **{name: dp.Number(0, 10, step=1) for name in HOSTILE},
        "town": dp.Category(*HOSTILE, other="elsewhere", missing="nobody knows"),
        "pay": dp.Number(0, 10**7, step=1),
    }
)


class Tags(HTMLParser):
    """Which tags a text opens and closes, and with which attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def shown(value) -> Tags:
    """What a notebook shows of it: plain tags, all closed."""
    found = Tags(value._repr_html_())
    assert found.open == []
    assert found.tags <= {"div", "p", "strong", "bdi", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert found.attributes <= {"class", "scope", "style"}
    return found


@pytest.fixture(scope="module")
def table():
    rows = {name: [1, 2, 3] * 20 for name in HOSTILE}
    towns = [*HOSTILE[:4], None, "x"] * 10
    return dp.Table({**rows, "town": towns, "pay": [CANARY] * 60}, DOMAIN, name="<b>people</b>")


@pytest.fixture(scope="module")
def ledger(table):
    made = dp.Ledger.in_memory(dp.Budget(50, "1e-6"), table)
    made.allow(HOSTILE[0], share="1/4")
    dp.release(dp.Laplace(dp.Count(dp.Equals("town", HOSTILE[0])), 2), table, ledger=made, memo=HOSTILE[6])
    dp.release(dp.Gaussian(dp.Histogram(["town"]), 2), table, ledger=made, allowance=HOSTILE[0])
    return made


@pytest.fixture(scope="module")
def public(table, ledger):
    """One of everything that shows itself."""
    session = dp.Session(table, ledger)
    plan = dp.plan("histogram", budget=dp.Budget(1, 1e-6), size=20_000, cells=121)
    released = dp.release(dp.Laplace(dp.Count(), 2), table, ledger=ledger)
    model = session.fit(dp.LogisticRegression(epsilon=1), target="town", features=[HOSTILE[0], HOSTILE[4]])
    name = '"' + HOSTILE[0] + '"'
    asked = {
        "one": session.ask(dp.Count(dp.Equals("town", HOSTILE[0]))),
        "groups": session.ask(dp.Histogram(["town"])),
        "sum": session.ask(dp.Sum(HOSTILE[0])),
        "several": session.ask(f'SELECT town, COUNT(*), AVG({name}) FROM "<b>people</b>" GROUP BY town'),
        "median": session.ask(f'SELECT MEDIAN({name}) FROM "<b>people</b>"'),
    }
    return {
        **asked,
        "plan": plan,
        "row": plan.rows[0],
        "guarantee": released.guarantee,
        "released": released,
        "fit guarantee": model.guarantee_,
        "promise": model.promise_,
        "spent": ledger.spent(),
        "left": ledger.remaining(),
        "price": released.price,
        "ledger": ledger,
        "table": table,
        "domain": DOMAIN,
        "schema": dp.Schema("<i>people</i>", DOMAIN),
        "session": session,
        "certificate": dp.certificate(ledger, released),
        "model": model,
    }


NAMES = [
    *("one", "groups", "sum", "several", "median", "plan", "row", "guarantee", "released", "fit guarantee", "promise"),
    *("spent", "left", "price", "ledger", "table", "domain", "schema", "session", "certificate", "model"),
]


@pytest.mark.parametrize("name", NAMES)
def test_everything_public_shows_itself_in_words_and_in_a_notebook(public, name):
    value = public[name]
    text, short = str(value), repr(value)
    if name == "model":  # scikit-learn's own box is before ours
        ours = value.sheet().html()
        assert value._repr_html_().endswith(ours)
        found = Tags(ours)
    else:
        found = shown(value)
    assert text.strip()
    assert found.words.strip()
    for said in (text, short, found.words):
        assert "Fraction(" not in said
        assert "\x1b" not in said
        assert "\u202e" not in said or name == "domain"  # the repr of a domain is code that makes it again
        assert str(CANARY) not in said
        assert "_nano" not in said
    if name not in ("domain", "model"):  # that of a model is scikit-learn's
        assert "\n" not in short
        assert len(short) < 700


@pytest.mark.parametrize("name", ["table", "domain", "schema", "groups", "several", "ledger", "model"])
def test_hostile_names_are_text_and_nothing_else(public, name):
    value = public[name]
    page = value.sheet().html() if name == "model" else value._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert html.escape("<script>alert(1)</script>") in page
    assert "\u202e" not in page


def test_a_table_shows_what_is_declared_and_no_row(table):
    assert "elsewhere (everything else)" in " ".join(shown(table).words.split())
    assert "0 to 10000000 in steps of 1" in str(table)
    assert repr(table) == (
        "<Table '<b>people</b>': 10 columns, 60 persons, each row is a person, replace-one, edition 1>"
    )


def test_what_is_shown_is_what_the_command_line_shows(public):
    answer = public["groups"]
    assert str(answer) == answer.sheet().text()
    assert str(answer).startswith(f"10 groups, each ± {int(answer.error_bound):,} persons, all at once")


# Frames.


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", ["one", "groups", "sum", "several", "median"])
def test_a_frame_has_the_bounds_beside_the_numbers(public, name, backend):
    answer = public[name]
    frame = answer.frame(backend)
    columns = list(frame.column_names if backend == "pyarrow" else frame.columns)
    values = {each: list(frame[each].to_pylist() if backend == "pyarrow" else frame[each]) for each in columns}
    estimated = [each for each in columns if f"{each} ±" in columns]
    assert estimated
    for each in estimated:
        for value, near, low, high in zip(
            *(values[f"{each}{end}"] for end in ("", " ±", " low", " high")), strict=True
        ):
            assert low <= value <= high
            assert near == pytest.approx(max(value - low, high - value))
    assert len(values[columns[0]]) == len(answer.rows)


def test_a_frame_of_another_library_is_refused(public):
    with pytest.raises(ParameterError, match="no frame can be made by 'excel'"):
        public["one"].frame("excel")


# Pictures.


def made(keys, values, intervals=None):
    rows = list(zip(keys, values, strict=True))
    ends = [(None, (value - 1, value + 1)) for value in values] if intervals is None else intervals
    return Answer(dict(rows), 1.0, "direct", groups=("x",), columns=("x", "count"), rows=rows, intervals=ends)


def axes_of(answer):
    figure = answer.plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    return figure.axes


def test_categories_are_bars_with_intervals(public):
    (axes,) = axes_of(made(["a", "b", None], [3, 10, 5]))
    assert len(axes.patches) == 3
    assert len(axes.collections) == 3  # the intervals
    assert [each.get_text() for each in axes.get_yticklabels()] == ["a", "b", "missing"]
    assert len(axes_of(public["several"])) == 2


@pytest.mark.parametrize(
    "keys",
    [[3, 1, 2], [0.5, 2.5, 1.5], ["2026-01", "2026-03", "2026-02"], ["2026-01-05", "2026-01-07", "2026-01-06"]],
)
def test_numbers_and_dates_are_a_line_within_a_band(keys):
    (axes,) = axes_of(made(keys, [3, 10, 5]))
    (line,) = axes.lines
    assert len(axes.collections) == 1
    assert not axes.patches
    assert sorted(line.get_xdata()) == list(line.get_xdata())
    assert axes.get_xlabel() == "x"


def test_hostile_labels_are_drawn_as_they_are(public):
    (axes,) = axes_of(public["groups"])
    labels = [each.get_text() for each in axes.get_yticklabels()]
    assert labels[0] == HOSTILE[0]
    assert max(map(len, labels)) <= 28


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ParameterError, match="300 groups are too many bars"):
        made([f"k{each}" for each in range(300)], range(300)).plot()
    with pytest.raises(ParameterError, match="nothing to draw"):
        made([], []).plot()


def test_without_matplotlib_the_extra_is_named():
    program = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "from discreet.answering.answer import Answer\n"
        "one = Answer(3, 1.0, 'direct', columns=('count',), rows=[(3,)], intervals=[((2, 4),)])\n"
        "print(one)\n"
        "one.plot()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stdout == "3 ± 1 persons\n"
    assert "pip install discreet[report]" in ran.stderr


# Numbers and blocks.


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1613430.0, "1,613,430"),
        (0, "0"),
        (0.0, "0"),
        (1234567, "1,234,567"),
        (0.1 + 0.2, "0.3"),
        (-2.5, "-2.5"),
        (1e20, "1e+20"),
        (1e-9, "1e-09"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "words"), [(0.12341, "0.124"), (1234.1, "1,240"), (0.01, "0.01"), (99999, "100,000")]
)
def test_bounds_are_rounded_up(value, words):
    assert round_up(value) == words


def test_a_long_table_is_cut_and_says_so():
    sheet = Sheet.of(CellTable(("n",), [(each,) for each in range(1500)]))
    assert "... and 500 rows more" in sheet.text()
    assert "... and 500 rows more" in sheet.html()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_screen(public, width):
    for name in ("table", "ledger", "plan", "groups", "guarantee"):
        lines = public[name].sheet().text(width).splitlines()
        copied = [line for line in lines if len(line) > width]
        assert not [line for line in copied if not re.search(r"\S{20}", line)]


def test_pairs_of_nothing_are_nothing():
    assert Sheet.of(Pairs([])).text() == ""


def test_numbers_are_never_broken_on_a_narrow_screen():
    titles = ["sex", *(f"{name}(income, 0.{place})" for place in (25, 5, 75) for name in ("QUANTILE", "FROM", "TO"))]
    row = ["F", "5,000", "0", "19,500", "7,000", "12,500", "12,500", "10,000", "16,000", "30,000"]
    table = Sheet.of(CellTable(titles, [row], numeric=range(1, 10)))
    for width in (200, 120, 90, 80, 79, 60, 30):
        text = table.text(width)
        assert all(number in text.replace("\n", " ").split() for number in row)
        assert max(map(len, text.splitlines())) <= width
