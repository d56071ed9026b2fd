"""The main job, end to end, on made-up people: a plan, a ledger, releases of every kind, a refusal, the books.

The people are made up here from a fixed seed, so the tour may also print what no user of a private table can see: the
true answer beside the private one. It computes it from its own list of rows; nothing in the library returns it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.noise import SeededRng

PEOPLE = 20_000
_QUOTED = '"made-up people"'
BUDGET = dp.Budget(epsilon=1, delta=1e-6)
DOMAIN = dp.Domain(
    age=dp.Number(0, 120, step=1),
    visits=dp.Number(0, 50, step=1),
    sex=dp.Category("F", "M"),
    program=dp.Category("no", "yes"),
    town=dp.Category(*(f"town {number:02d}" for number in range(40)), other="elsewhere"),
)


def made_up_people() -> dict[str, list[Any]]:
    """Columns of a table in which older people visit more often, most towns are small, and a program takes everybody
    from 55 to 80 with at least three visits."""
    rng = SeededRng(2026)
    age = 18 + rng.integers(40, PEOPLE) + rng.integers(38, PEOPLE)
    visits = rng.geometric(Fraction(2), PEOPLE) + (age > 60) * rng.geometric(Fraction(3), PEOPLE)
    town, sex = rng.geometric(Fraction(9), PEOPLE), rng.integers(2, PEOPLE)
    return {
        "age": age.tolist(),
        "visits": visits.clip(0, 50).tolist(),
        "sex": ["FM"[each] for each in sex],
        "program": [("no", "yes")[each] for each in ((age >= 55) & (age <= 80) & (visits >= 3)).astype(int)],
        "town": [f"town {each:02d}" for each in town],
    }


def tour(console: Console) -> None:
    """Everything, in under a minute; files go to a temporary folder."""
    people = made_up_people()
    console.rule("discreet: a tour on made-up people")
    console.print(
        f"{PEOPLE:,} people who do not exist, so that the true answers may stand beside the private ones.\n"
        "A row is a person; replace-one: how many there are is public, what each of them is like is not.\n"
    )
    console.print("Before anything is spent: what would one count cost, and how exact would it be?", style="bold")
    console.print(str(dp.plan("count", budget=dp.Budget(Fraction(1, 10)), size=PEOPLE, alpha=0.001)), markup=False)
    with tempfile.TemporaryDirectory() as folder:
        table = dp.Table(people, DOMAIN, neighbours="replace-one", name="made-up people")
        ledger = dp.Ledger.create(Path(folder) / "people.ledger", BUDGET, table, state_dir=Path(folder))
        console.print(f"\nA ledger with the budget {BUDGET}, for all of what follows together.", style="bold")
        _releases(console, table, ledger, people)
        _model(console, table, ledger, people)
        _rule(console, table, ledger, people)
        _questions(console, table, ledger, people)
        _conversation(console, table, ledger, people)
        _refusal(console, table, ledger)
        ledger.verify(CATALOGUE)
        console.print("\nThe ledger was verified: every entry, every price, nothing missing.", style="bold")
        console.print(f"spent: {ledger.spent()}\nleft:  {ledger.remaining()}")


def _releases(console: Console, table: dp.Table, ledger: dp.Ledger, people: dict[str, list[Any]]) -> None:
    shown = Shown(
        "question", "private answer", "noise range (95 %)", "true answer", "price", caption=f"prices of {_left(ledger)}"
    )
    old = dp.Between("age", 65, 120)
    towns = Counter(people["town"])
    women = sum(sex == "F" for sex in people["sex"])
    questions: list[tuple[str, Any, Any]] = [
        ("how many are 65 or older?", dp.Laplace(dp.Count(old), 60), sum(age >= 65 for age in people["age"])),
        ("how many are women?", dp.Gaussian(dp.Count(dp.Equals("sex", "F")), 60), women),
        ("how many visits in all?", dp.Laplace(dp.Sum("visits"), 2_000), sum(people["visits"])),
        ("in which town do most live?", dp.Exponential(dp.Histogram("town"), Fraction(1, 40)), "town 00"),
    ]
    for text, mechanism, truth in questions:
        got = dp.release(mechanism, table, ledger=ledger, memo=text)
        index = isinstance(mechanism, dp.Exponential)
        answer = DOMAIN["town"].level(got.value) if index else f"{got.value:,}"  # type: ignore[union-attr]
        width = "exact or a near rival" if index else f"± {got.noise_range(0.95):,.0f}"
        shown.add_row(text, str(answer), width, str(truth if index else f"{truth:,}"), _price(got))
    histogram = dp.release(dp.Gaussian(dp.Histogram("town"), 60), table, ledger=ledger, memo="people a town")
    worst = max(
        abs(int(count) - towns[level] if level != "elsewhere" else 0)
        for count, level in zip(histogram.value, DOMAIN["town"].levels, strict=True)  # type: ignore[union-attr]
    )
    width = f"± {histogram.noise_range(0.95):,.0f} each"
    shown.add_row(
        "people in each of 41 towns", "41 counts, one price", width, f"worst off by {worst}", _price(histogram)
    )
    console.print(shown)


def _price(got: dp.Released) -> str:
    return "-" if got.price.renyi is None else f"{got.price.renyi / 10**9:.6f}"


def _left(ledger: dp.Ledger) -> str:
    left = ledger.remaining()
    return (
        "-"
        if left.renyi is None
        else f"{left.renyi / 10**9:.4f} in all, the budget in Renyi divergence of order {left.order}"
    )


def _model(console: Console, table: dp.Table, ledger: dp.Ledger, people: dict[str, list[Any]]) -> None:
    console.print("\nA model from the same budget: visits as a linear function of age and sex", style="bold")
    model = dp.Session(table, ledger).fit(
        dp.LinearRegression(epsilon="0.4", delta="1e-7"), features=["age", "sex"], target="visits"
    )
    slope = dict(zip(model.feature_names_out_, model.original_coef_, strict=True))["age"]
    age, visits = np.array(people["age"], float), np.array(people["visits"], float)
    predicted = model.predict({"age": people["age"], "sex": people["sex"]})
    best = np.polyfit(age, visits, 1)
    console.print(
        f"  private: {slope:+.3f} visits a year of age (least squares on the true rows: {best[0]:+.3f})\n"
        f"  promised: {model.bound_}\n"
        f"  true mean squared error {np.mean((predicted - visits) ** 2):.2f}, of the best line "
        f"{np.mean((np.polyval(best, age) - visits) ** 2):.2f}"
    )


def _rule(console: Console, table: dp.Table, ledger: dp.Ledger, people: dict[str, list[Any]]) -> None:
    console.print("\nA rule from the same budget: who is in the program?", style="bold")
    learner = dp.BoxClassifier(epsilon="0.3", delta="1e-8", method="faces")
    rule = dp.Session(table, ledger).fit(learner, features=["age", "visits"], target="program")
    guessed = rule.predict({"age": people["age"], "visits": people["visits"]})
    wrong = np.mean(guessed != np.array(people["program"]))
    console.print(
        f"  learned: {rule.box_}\n  true:    55 <= age <= 80 and visits >= 3\n"
        f"  wrong on {wrong:.2%} of the people; certified for a price of its own, without looking: "
        f"{rule.certify(table, 'program', epsilon='0.02', beta='0.05')}"
    )


def _questions(console: Console, table: dp.Table, ledger: dp.Ledger, people: dict[str, list[Any]]) -> None:
    console.print("\nSQL questions, each chosen after the answers before it, from the same budget:", style="bold")
    session = dp.Session(table, ledger, alpha="0.03", beta="0.05", questions=300)
    seen: list[tuple[Any, int]] = []

    def ask(condition: str, where: Any) -> int:
        answer = session.ask(f"SELECT COUNT(*) FROM {_QUOTED} WHERE {condition}")
        seen.append((answer, sum(where)))
        return int(answer.value)

    age, visits, sex = people["age"], people["visits"], people["sex"]
    groups = session.ask(f"SELECT town, sex, COUNT(*) FROM {_QUOTED} GROUP BY town, sex")
    for town, one in sorted(groups.value, key=groups.value.get, reverse=True)[:40]:
        ask(
            f"town = '{town}' AND sex = '{one}'",
            (t == town and s == one for t, s in zip(people["town"], sex, strict=True)),
        )
    for one in "FM":  # who visits often? a search that goes on where the last answer points to
        low, high = 0, 120
        while high - low > 1:
            middle = (low + high) // 2
            older = ask(
                f"age >= {middle} AND sex = '{one}'", (a >= middle and s == one for a, s in zip(age, sex, strict=True))
            )
            low, high = (middle, high) if older > PEOPLE // 8 else (low, middle)
        for least in range(0, 21):
            ask(
                f"visits >= {least} AND age >= {low} AND sex = '{one}'",
                (v >= least and a >= low and s == one for v, a, s in zip(visits, age, sex, strict=True)),
            )
    free = sum(answer.price == 0 for answer, _ in seen)
    off = max(abs(answer.value - truth) for answer, truth in seen)
    shown = seen[-1]
    console.print(
        f"  {len(seen) + 1} questions, {free} of them free; each within {0.03 * PEOPLE:.0f} of the truth with "
        f"probability 95 % for all at once; the worst was off by {off}\n"
        f"  the last: {shown[0].value} ± {shown[0].error_bound:.0f} (true: {shown[1]}), from {shown[0].source}\n"
        f"  three synthetic rows, free: {session.synthetic(3, seed=0, backend='pyarrow').to_pylist()}"
    )


def _conversation(console: Console, table: dp.Table, ledger: dp.Ledger, people: dict[str, list[Any]]) -> None:
    console.print("\nAny number of yes/no questions for one price, until the first yes:", style="bold")
    with dp.converse(dp.AboveThreshold(30, 60), table, ledger=ledger) as talk:
        for limit in range(121):
            if talk.ask(dp.Above(dp.Count(dp.Between("age", 0, limit)), PEOPLE // 2)):
                break
    truth = sorted(people["age"])[PEOPLE // 2]
    console.print(
        f"  half of them are at most about {limit} years old (true: {truth}), found with {limit + 1} questions"
    )


def _refusal(console: Console, table: dp.Table, ledger: dp.Ledger) -> None:
    console.print("\nA question that does not fit is refused before anything is read:", style="bold")
    try:
        dp.release(dp.Laplace(dp.Histogram("age"), 1), table, ledger=ledger)
    except dp.BudgetExceeded as refused:
        console.print(f"  {refused}")
