"""The benchmarks' bookkeeping: what was measured is never lost, and a peer that is better is said to be."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from bench import comparisons, gather, part, picture, run
from bench.comparisons import Across, Down, Earlier, Ratio, number, wrong
from bench.part import Grid, Part
from bench.suites import SUITES, Suite, chosen

LINES = ["", "## Durability", "", "Some words.", "", "| what | ours, ms |", "|---|---|", "| one charge | 1,234.5 |"]
MEASURED = Part("erm_growth", "2026-01-02 03:04:05", 7.0, 2, {"discreet": "0.1.0"})


def _ratio(value: float) -> Ratio:
    return Ratio("noise", "Noise", "a million", "time", "1 ms", "opendp", "2 ms", value)


def test_a_part_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    part.write(LINES, MEASURED, tmp_path)
    found, text = part.read("erm_growth", tmp_path)
    assert found.grids == [Grid("Durability", ["what", "ours, ms"], [["one charge", "1,234.5"]])]
    assert dataclasses.replace(found, grids=[]) == MEASURED
    assert "Measured on 2026-01-02 03:04:05 UTC, in 7 s, with discreet 0.1.0." in text
    assert not list(tmp_path.glob(".*"))


def test_a_suite_that_fails_keeps_its_old_part_and_the_others_go_on(tmp_path: Path) -> None:
    part.write(LINES, MEASURED, tmp_path)
    ran = []

    def measure(suite: Suite) -> str:
        ran.append(suite.name)
        return "exit code 1" if suite.name == "erm_growth" else ""

    assert run.each_of(chosen(["noise", "erm_growth", "pac_boxes"]), measure, tmp_path) == {"erm_growth": "exit code 1"}
    assert ran == ["noise", "erm_growth", "pac_boxes"]
    text = gather.text(tmp_path)
    assert "| one charge | 1,234.5 |" in text
    assert "exit code 1); this was measured on 2026-01-02.**" in text


def test_a_suite_that_failed_without_an_old_part_is_named_in_the_results(tmp_path: Path) -> None:
    run.each_of(chosen(["erm_growth"]), lambda _: "exit code -9", tmp_path)
    assert "exit code -9); there are no figures of it" in gather.text(tmp_path)


def test_a_later_success_takes_the_mark_away(tmp_path: Path) -> None:
    part.note_failure("erm_growth", "exit code 1", tmp_path)
    part.write(LINES, MEASURED, tmp_path)
    assert part.read("erm_growth", tmp_path)[0].failed == ""


def test_two_files_of_different_runs_are_noticed(tmp_path: Path) -> None:
    part.write(LINES, MEASURED, tmp_path)
    figures = (tmp_path / "erm_growth.json").read_text()
    part.write(LINES, dataclasses.replace(MEASURED, measured="2026-02-03 04:05:06"), tmp_path)
    (tmp_path / "erm_growth.json").write_text(figures)
    assert "different runs" in part.read("erm_growth", tmp_path)[0].failed


@pytest.mark.parametrize(
    ("cell", "found"),
    [("1,234.5", 1234.5), ("0.901 ± 0.034", 0.901), ("-7e+07 (-2e+15)", -7e7), ("-", None), ("", None)],
)
def test_the_first_number_of_a_cell_is_its_figure(cell: str, found: float | None) -> None:
    assert number(cell) == found


def test_the_best_peer_is_compared_and_a_missing_one_is_not() -> None:
    grid = Grid(
        "Fits",
        ["what", "ours, ms", "a, ms", "b, ms"],
        [["x", "4", "2", "8"], ["y", "4", "-", "8"], ["z", "4", "-", "-"]],
    )
    found = list(Across("s", "fit of {what}", "time", "ours, ms", ("a, ms", "b, ms")).of(grid))
    assert [(each.what, each.peer, each.value, each.verdict) for each in found] == [
        ("fit of x", "a", 2.0, "peer better"),
        ("fit of y", "b", 0.5, "ours better"),
    ]


def test_of_an_accuracy_the_wrong_shares_are_compared() -> None:
    grid = Grid("Rules", ["ours", "theirs"], [["0.9", "0.95"], ["1.0000", "0.8"], ["0.5", "-3e+06"]])
    found = [each.value for each in Across("s", "x", "accuracy", "ours", ("theirs",), wrong).of(grid)]
    assert found == pytest.approx([2.0, 0.0, 0.5 / 3000001])


def test_rows_and_pairs_of_figures_are_compared_with_the_least_of_the_peers() -> None:
    grid = Grid("AIM", ["", "seconds"], [["ours, add-remove", "0.1"], ["AIM, fit 1", "50"], ["AIM, fit 2", "20"]])
    (found,) = Down("s", "x", "time", "ours", "AIM", "seconds", "opendp").of(grid)
    assert found.value == pytest.approx(0.005)
    columns = ["table", "epsilon", "ours, add-remove", "best peer's largest / mean"]
    grid = Grid("Known", columns, [["M", "1", "62 / 3.25 (86; 110; 0.62 s)", "86 / 12.3 (clipped; AIM 1,271 / 5.6)"]])
    (largest,), (mean,) = (Earlier("s", "x", "error", place).of(grid) for place in (0, 1))
    assert (largest.best, largest.peer, mean.best, mean.peer) == ("86", "clipped", "5.6", "AIM")
    assert (largest.value, mean.value) == pytest.approx((62 / 86, 3.25 / 5.6))


def test_a_renamed_column_is_an_error_and_not_a_lost_comparison() -> None:
    with pytest.raises(ValueError, match="no column"):
        list(
            Across("s", "x", "time", "ours, ms", ("theirs, ms",)).of(Grid("", ["ours, s", "theirs, ms"], [["1", "2"]]))
        )


def test_only_a_tenth_either_way_is_called_even() -> None:
    assert [_ratio(value).verdict for value in (0.9, 0.92, 1.09, 1.12, math.inf)] == [
        "ours better",
        "about even",
        "about even",
        "peer better",
        "peer better",
    ]


def test_accuracies_that_differ_by_more_than_their_spread_are_not_called_even() -> None:
    grid = Grid("", ["ours", "theirs"], [["0.809 ± 0.002", "0.821 ± 0.001"], ["0.819 ± 0.002", "0.821 ± 0.001"]])
    found = [each.verdict for each in Across("s", "x", "accuracy", "ours", ("theirs",), wrong).of(grid)]
    assert found == ["peer better", "about even"]


def test_a_family_is_all_its_suites_and_an_unknown_name_is_refused() -> None:
    assert {suite.name.split("_")[0] for suite in chosen(["pmw"])} == {"pmw"}
    assert [suite.name for suite in chosen(["tables"])] == ["tables"]
    assert chosen([]) == list(SUITES)
    with pytest.raises(SystemExit, match="no suite 'pm'"):
        chosen(["pm"])


def test_every_rule_is_about_a_suite_that_exists() -> None:
    assert {rule.suite for rule in comparisons.RULES} <= {suite.name for suite in SUITES}


def test_the_committed_results_are_what_the_committed_parts_say() -> None:
    assert gather.text() == gather.RESULTS.read_text()
    found = [each for each in comparisons.ratios(known for known, _ in gather.known()) if not each.floor]
    drawn = gather.PICTURE.read_text()
    assert all(f"{each.shown}  {each.peer}".replace("<", "&lt;") in drawn for each in found)


def test_the_picture_has_a_row_for_each_comparison_and_the_same_bytes_again() -> None:
    found = [_ratio(value) for value in (0.0, 0.01, 1.0, 3.0, 1000.0)]
    drawn = picture.drawn(found, "in words")
    assert drawn.count(">a million: time<") == len(found)
    assert "in words" in drawn
    assert drawn == picture.drawn(found, "in words")
