"""Every figure that the README and the page beside other libraries show is the one in bench/RESULTS.md.

`tests/unit/test_bench.py` compares that file with the measurements; here its figures are read again, rounded as the
pages round them, and put beside what the pages say. A figure in a table of theirs that nobody compares fails too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.suites import UNSEEN as UNSEEN_TABLES

from discreet import example
from discreet.schema import Schema

ROOT = Path(__file__).parents[2]
README, COMPARISON = ROOT / "README.md", ROOT / "docs" / "comparison.md"
RESULTS = (ROOT / "bench" / "RESULTS.md").read_text()


BESIDE_PEERS = 7
"""So many columns has the table of comparisons with peers."""


def cells(line: str) -> list[str]:
    return [each.strip() for each in line.strip().strip("|").split("|")]


def rows(text: str) -> list[list[str]]:
    """The rows of all tables of a text, without their heads."""
    found = [cells(line) for line in text.splitlines() if line.startswith("|")]
    return [each for each in found if not set("".join(each)) <= set("-:")]


def measured(*begins: str) -> list[str]:
    """The one row of the results that begins with these cells."""
    (found,) = (each for each in rows(RESULTS) if each[: len(begins)] == list(begins))
    return found


def compared(suite: str, what: str, measure: str) -> tuple[float, float]:
    """Ours and the best peer's."""
    wanted = [suite, what, measure]
    ((ours, peer),) = ((each[3], each[4]) for each in rows(RESULTS) if each[:3] == wanted and len(each) == BESIDE_PEERS)
    return number(ours), number(peer)


def number(text: str) -> float:
    return float(re.match(r"-?[\d,.]+", text)[0].replace(",", ""))


def shown(page: Path, begins: str) -> list[str]:
    """The row of a page's table, without the marks of what is better and the notes."""
    (found,) = (each for each in rows(page.read_text()) if each[0].startswith(begins))
    return [re.sub(r" ?[¹²]", "", each.replace("**", "")) for each in found[1:]]


# The README.

LAPLACE = compared("noise", "a million of discrete Laplace, scale 10", "time")
LOGISTIC = "logistic, synthetic, 100,000 rows, 50 features"
SPEED = compared("erm_speed", LOGISTIC, "time")
MEMORY = compared("memory", "logistic, 100,000 rows, 50 features", "memory")
BITS = compared("pac_accuracy", "3 of 50 bits, P(bit) = .8, epsilon 0.1", "accuracy")
BOX = compared("pac_accuracy", "box, d = 10, epsilon 1", "accuracy")
LARGEST, MEAN = (
    compared("pmw_peers", "table S beside AIM, epsilon 1", f"{each} error") for each in ("largest", "mean")
)
ALL_LARGEST, ALL_MEAN = (
    compared("pmw_tables", "pairs and triples of table S, epsilon 1", f"{each} error") for each in ("largest", "mean")
)
FIT = [f"{ms / 1000:.2f} s, {mb:.0f} MB" for ms, mb in zip(SPEED, MEMORY, strict=True)]
TABLES = f"{ALL_LARGEST[0]:.0f} / {ALL_MEAN[0]:.1f}"

UNSEEN = {each[0]: each for each in rows((ROOT / "bench" / "parts" / "unseen_incomes.md").read_text())}
OURS, ADASSP = (" / ".join(f"{number(UNSEEN[each][place]):.3f}" for each in ("0.1", "1", "8")) for place in (1, 2))

PARTS = ROOT / "bench" / "parts"
PAIRS = {(each[0], each[1]): each[2:] for each in rows((PARTS / "pmw_pairs.md").read_text())}
CREDIT, ATTRITION = PAIRS["credit", "1"], PAIRS["attrition", "1"]
FURTHER = {each[0]: each[2:] for each in rows((PARTS / "pmw_pairs_further.md").read_text()) if each[1] == "1"}
CHOSEN_BY_SIZE = [
    ", ".join(FURTHER[name][place].split(" (")[0] for name in ("voters", "mortgages", "hearts")) for place in (0, 3, 4)
]
CLASSES = [
    next(each for each in rows((PARTS / f"unseen_{name}.md").read_text()) if each[0] == "1")
    for name in ("levels", "stops")
]
OURS_RIGHT, PEER_RIGHT = (", ".join(f"{number(each[place]):.3f}" for each in CLASSES) for place in (4, 6))

EACH_UNSEEN = [(PARTS / f"unseen_{name}.md").read_text() for names in UNSEEN_TABLES.values() for name in names]
CELLS = 2 * sum(re.match(r"[\d.]+$", each[0]) is not None for text in EACH_UNSEEN for each in rows(text))
LOST = sum(len(re.findall(r"^- epsilon", text, re.MULTILINE)) for text in EACH_UNSEEN)

IN_README = {
    f"models on {len(EACH_UNSEEN)} tables that nothing was chosen on": [
        f"in {CELLS - LOST} of {CELLS} cells",
        f"in {LOST} cells Opacus or diffprivlib is ahead",
    ],
    "all pairs of 8 columns of `credit`": [
        CREDIT[0].split(" (")[0],
        f"{CREDIT[3]} (AIM), {CREDIT[4]} (MST), {CREDIT[2]} (ResidualPlanner in floats)",
    ],
    "the same of `attrition`": [ATTRITION[0].split(" (")[0], f"{ATTRITION[3]} (AIM), {ATTRITION[4]} (MST)"],
    "the same of `voters`": [CHOSEN_BY_SIZE[0], f"{CHOSEN_BY_SIZE[1]} (AIM), {CHOSEN_BY_SIZE[2]} (MST)"],
    "logistic regression on `levels` and `stops`": [OURS_RIGHT, f"{PEER_RIGHT} (diffprivlib, best of a grid)"],
    "linear regression on `incomes`": [OURS, f"{ADASSP} (AdaSSP)"],
    "a conjunction of 3 in 50 bits": [f"{BITS[0]:.3f}, with a promise", f"{BITS[1]:.3f} (diffprivlib)"],
    "a million discrete Laplace draws": [f"{LAPLACE[0] / 1000:.2f} s", f"{LAPLACE[1] / 1000:.1f} s (opendp)"],
}


@pytest.mark.parametrize("begins", IN_README)
def test_a_figure_of_the_readme_is_the_one_that_was_measured(begins):
    assert shown(README, begins) == IN_README[begins]


def test_no_row_of_the_readme_has_a_figure_that_nobody_compares():
    table = README.read_text().split("## Beside other libraries")[1]
    with_figures = [each[0] for each in rows(table)[1:] if re.search(r"\d", "".join(each[1:]))]
    assert len(with_figures) == len(IN_README)
    assert all(any(row.startswith(begins) for begins in IN_README) for row in with_figures)


def test_the_tally_of_comparisons_is_the_one_that_was_counted():
    all_of_them, ours, even, peers = map(
        int,
        re.search(
            r"^Of (\d+) comparisons ours is better in (\d+), about even in (\d+), a peer is better in (\d+)\.$",
            RESULTS,
            re.MULTILINE,
        ).groups(),
    )
    verdicts = [each[6] for each in rows(RESULTS) if len(each) == BESIDE_PEERS][1:]
    counted = [verdicts.count(each) for each in ("", "about even", "**peer better**")]
    assert [ours, even, peers] == counted
    assert all_of_them == sum(counted)
    said = " ".join(README.read_text().split())
    assert f"Of {all_of_them} comparisons discreet is better in {ours}, a peer in {peers}:" in said
    beside = " ".join(COMPARISON.read_text().split())
    assert f"all {all_of_them} comparisons, with the {peers} that a peer wins" in beside


def test_the_people_and_persons_that_the_readme_counts_are_there(tmp_path):
    said = README.read_text()
    example.write(tmp_path)
    people = Schema.read(tmp_path / "people.toml").table().facts.size
    assert f"on {people:,} real people" in said


# The page beside other libraries.


def test_the_figures_of_the_comparison_page_are_those_that_were_measured():
    ours = "discreet", "diffprivlib", "opendp", "Opacus", "SmartNoise"
    laplace = dict(zip(ours, shown(COMPARISON, "a million discrete Laplace draws"), strict=False))
    both = [laplace["discreet"], f"{laplace['opendp']} (opendp)"]
    assert both == IN_README["a million discrete Laplace draws"]
    tables = dict(zip(ours, shown(COMPARISON, "all pairs and triples"), strict=False))
    assert tables["discreet"] == TABLES
    assert shown(COMPARISON, "the same of `voters`")[0] == CHOSEN_BY_SIZE[0]
    aim, everything = f"{LARGEST[1]:.0f} / {MEAN[1]:.1f}", f"{ALL_LARGEST[1]:.0f} / {ALL_MEAN[1]:.1f}"
    assert tables["opendp"].startswith(f"{aim} (AIM), {everything} (all marginals")
    fit = dict(zip(ours, shown(COMPARISON, "logistic regression, 100,000 rows"), strict=False))
    _, _, _, _, opacus_ms, _ = measured(LOGISTIC)
    opacus_mb = measured("logistic, 100,000 rows, 50 features")[3]
    assert (fit["discreet"], fit["diffprivlib"]) == tuple(FIT)
    assert fit["Opacus"] == f"{number(opacus_ms) / 1000:.1f} s, {number(opacus_mb):.0f} MB"
    small = dict(zip(ours, shown(COMPARISON, "logistic regression, 398 rows"), strict=False))
    delta = compared("erm_breast", "breast cancer, 398 rows, epsilon 1.0", "accuracy")
    pure = compared("erm_breast", "breast cancer, 398 rows, pure, epsilon 1.0", "accuracy")
    assert small["discreet"] == f"{delta[0]:.3f} / {pure[0]:.3f}"
    assert (small["Opacus"], small["diffprivlib"]) == (f"{delta[1]:.3f} / -", f"- / {pure[1]:.3f}")
    rules = dict(zip(ours, shown(COMPARISON, "rules; accuracy on 3 of 50 bits"), strict=False))
    promised = measured("3 of 50 bits, P(bit) = .8", "0.1")[4]
    assert rules["discreet"].startswith(f"{BITS[0]:.3f} (promised error {float(promised):.2f}) / {BOX[0]:.3f} ")
    assert rules["diffprivlib"].startswith(f"{BITS[1]:.3f} / {BOX[1]:.3f} ")


def test_the_sentence_about_when_to_take_another_library_has_the_measured_figures():
    said = " ".join(COMPARISON.read_text().split())
    ratios = [
        number(each[5])
        for each in rows(RESULTS)
        if each[0] == "erm_speed" and each[1].startswith(("logistic", "linear"))
    ]
    assert f"{min(ratios):.0f} to {max(ratios):.0f} times as fast in three quarters of the memory" in said
    assert all(
        1.25 <= number(each[5]) <= 1.45 for each in rows(RESULTS) if each[0] == "memory" and "features" in each[1]
    )
