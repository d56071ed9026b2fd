"""The pictures of the documentation: the plots of `discreet.report` from fixed public or made-up numbers.

python docs/pictures.py     writes docs/pictures/*.svg, and numbers.md with what they show and their numbers
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import discreet as dp
from discreet import report
from discreet.estimators.rules import LearnedRule
from discreet.pac import BoxRule
from discreet.rehearsal import made_up
from discreet.report.plot import Panel, Plot, Scale, Series, draw, shown

HERE = Path(__file__).parent / "pictures"
BUDGET = dp.Budget(1, 1e-6)


def budget() -> Plot:
    """A ledger of made-up people: prices do not depend on the rows."""
    domain = dp.Domain(age=dp.Number(0, 120, step=1), visits=dp.Number(0, 50, step=1), sex=dp.Category("F", "M"))
    table = made_up(domain, name="people", people=1_000)
    clock = iter(f"2026-03-02T{hour:02d}:00:00Z" for hour in range(24))
    with tempfile.TemporaryDirectory() as folder:
        where = {"state_dir": folder, "now": lambda: next(clock)}
        with dp.Ledger.create(Path(folder) / "people.ledger", BUDGET, table, **where) as ledger:
            for mechanism, memo in (
                (dp.Laplace(dp.Count(dp.Between("age", 65, 120)), 20), "people of 65 and more"),
                (dp.Gaussian(dp.Histogram("age"), 25), "people of each age"),
                (dp.Laplace(dp.Sum("visits"), 500), "visits in all"),
                (dp.Gaussian(dp.Histogram(["sex", "visits"]), 12), "visits by sex"),
                (dp.Exponential(dp.Histogram("age"), Fraction(1, 10)), "the most frequent age"),
            ):
                dp.release(mechanism, table, ledger=ledger, memo=memo)
            return report.budget(ledger, everything=True)


def box() -> Plot:
    domain = dp.Domain(age=dp.Number(0, 120, step=1), visits=dp.Number(0, 50, step=1))
    rule = BoxRule(("age", "visits"), (54, 3), (81, 50))
    learned = LearnedRule(rule, domain, rule.sentence(domain))
    return report.box(learned, truth={"age": (55, 80), "visits": (3, 50)})


def neighbours() -> Plot:
    """The law of one noisy count on two tables that differ in one person."""
    scale, middle = 10, 312
    places = range(middle - 40, middle + 42)

    def chance(count: int, at: int) -> float:
        q = math.exp(-1 / scale)
        return (1 - q) / (1 + q) * q ** abs(at - count)

    lines = [
        Series(name, [(at, chance(count, at)) for at in places], {"marker": None})
        for name, count in (("without Ann: 312 smokers", middle), ("with Ann: 313 smokers", middle + 1))
    ]
    alt = (
        "Each number is nearly as likely with Ann as without her: the chances differ by at most a factor e^0.1 = 1.11."
    )
    caption = "A count of smokers plus discrete Laplace noise of scale 10, which is epsilon = 0.1."
    rows = tuple((at, chance(middle, at), chance(middle + 1, at)) for at in places if at % 10 == 2)
    drawn = draw(Panel(Scale("published number", (272, 353)), Scale("chance", (0, 0.055)), lines, 2.6), alt=alt)
    return Plot("One count, with and without Ann", alt, caption, ("published", "without Ann", "with Ann"), rows, drawn)


def questions() -> Plot:
    """A session as `make bench` measured one: 100,000 made-up persons, every answer within 1,000 of them."""
    measured = json.loads((HERE.parents[1] / "bench" / "parts" / "pmw_curves.json").read_text())["grids"][0]
    (ours,) = (row for row in measured["rows"] if row[0] == "ours")
    points = [
        (int(n.replace(",", "")), float(share)) for n, share in zip(measured["columns"][1:10], ours[1:10], strict=True)
    ]
    return report.questions([(number, 1_000, None, share) for number, share in points], budget=BUDGET)


PICTURES: dict[str, Callable[[], Plot]] = {
    "neighbours": neighbours,
    "odds": lambda: report.odds(delta=1e-6),
    "noise-range": lambda: report.noise_range(size=5_912),
    "risk": lambda: report.risk("logistic", d=5),
    "questions": questions,
    "box": box,
    "sample-sizes": report.sample_sizes,
    "budget": budget,
}


def written(found: dict[str, Plot]) -> str:
    """What every picture shows, and its numbers, as markdown."""
    return "\n".join(line for name, plot in found.items() for line in _section(name, plot))


def _section(name: str, plot: Plot) -> Iterator[str]:
    yield from (f"## {plot.title}", "", f"![{plot.alt}]({name}.svg)", "", plot.alt, "", plot.caption, "")
    yield f"| {' | '.join(plot.columns)} |"
    yield f"|{'---|' * len(plot.columns)}"
    yield from (f"| {' | '.join(map(shown, row))} |" for row in plot.rows)
    yield ""


def main() -> None:
    HERE.mkdir(exist_ok=True)
    found = {name: make() for name, make in PICTURES.items()}
    for name, plot in found.items():
        plot.save(HERE / f"{name}.svg")
    head = "# The pictures in words and numbers\n\nWritten by `python docs/pictures.py`.\n\n"
    (HERE / "numbers.md").write_text(head + written(found), encoding="utf-8")


if __name__ == "__main__":
    main()
