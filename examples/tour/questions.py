"""Which questions the tour asks: five tables in one release, then hundreds of questions one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import discreet as dp

from .analyst import Asked, Interview, Investigation, cost, drill, free, mean, upper_half, worst
from .screen import Line, percent, price
from .stage import Desk
from .truth import Truth

ALPHA, BETA = Fraction(1, 20), Fraction(1, 20)
"""Every answer within this part of the people, and all at once but with this probability."""
ABOUT = 330  # questions, as a guide for the session and for a bar
RESERVE = 0.06  # of the budget: for the refusal, and for the reader's own questions
TABLES = Fraction(20, 100)  # of the budget
DRILLS = (
    ("site", "coinsurance", "health"),
    ("health", "limited", "sex"),
    ("coinsurance", "health", "sex"),
    ("site", "health", "limited"),
    ("coinsurance", "limited", "sex"),
)
HALVES = (("age", "health"), ("visits", "coinsurance"), ("income", "site"))
_LEAST = Fraction(1, 100)  # of the people: smaller groups are not drilled into
_LARGE = Fraction(1, 8)  # of the people: about smaller groups an answer within ALPHA says little


@dataclass(frozen=True, slots=True)
class Answered:
    """All of it. tables: what the tables cost, as a part of the budget."""

    session: dp.Session
    lines: list[Line]
    asked: list[Asked]
    tables: float


def session_of(desk: Desk) -> dp.Session:
    return dp.Session(desk.table, desk.ledger, alpha=ALPHA, beta=BETA, questions=ABOUT)


def tables(desk: Desk, session: dp.Session) -> Line:
    """A workload that is known in advance is one release; the questions after it profit from it."""
    before = desk.spent()
    answers = session.answer_all([_grouped_by(names) for names in DRILLS], share=desk.share(TABLES).part)
    bounds, about = [answer.error_bound for answer in answers], "about " if desk.truth is None else ""
    off = [] if desk.truth is None else _off(desk.truth, answers)
    return Line(
        f"{len(DRILLS)} tables in one release: {'; '.join(', '.join(names) for names in DRILLS)}",
        f"{sum(len(answer.value) for answer in answers)} counts",
        f"{about}± {min(bounds):.0f} to {max(bounds):.0f}",
        f"worst {max(off)}, mean {sum(off) / len(off):.0f}" if off else "",
        percent(desk.spent() - before),
    )


def cells(domain: dp.Domain) -> int:
    """How many different people the tables can tell apart."""
    return domain.project(sorted({name for names in DRILLS for name in names})).size


def _grouped_by(names: Sequence[str]) -> str:
    return f"SELECT {', '.join(names)}, COUNT(*) FROM people GROUP BY {', '.join(names)}"


def _off(truth: Truth, answers: Sequence[Any]) -> list[int]:
    """By how many people each count of each table is off."""
    found = []
    for names, answer in zip(DRILLS, answers, strict=True):
        true = truth.groups(names)
        found += [abs(count - true[group]) for group, count in answer.value.items()]
    return found


def ask(desk: Desk, truth: Truth, tell: Callable[[int, str], None]) -> Answered:
    """The tables, then every investigation; `tell` hears how many questions there were and how they went."""
    session, before = session_of(desk), desk.spent()
    lines = [tables(desk, session)]
    paid, interview = desk.spent() - before, Interview(session, truth, reserve=RESERVE)
    for what, investigation, true in _investigations(desk, truth):
        start = len(interview.asked)
        found = interview.hear(investigation, lambda asked: tell(len(asked), _so_far(asked)))
        lines.append(_line(what, found, true, interview.asked[start:]))
    lines.append(_line("all of them", "", "", interview.asked))
    return Answered(session, lines, interview.asked, paid)


def _investigations(desk: Desk, truth: Truth) -> list[tuple[str, Investigation, str]]:
    """What is looked into, how, and what it would find without privacy."""
    domain, size = desk.table.facts.domain, desk.size
    found = []
    for names in DRILLS:
        found.append((f"drill down: {', '.join(names)}", drill(domain, names, float(_LEAST * size)), truth.most(names)))
    for column, by in HALVES:
        investigation = upper_half(domain, column, by, size, float(_LARGE * size))
        found.append(
            (f"search by halving: {column}, then by {by}", investigation, f"half have {truth.median(column):,} or more")
        )
    return found


def _so_far(asked: Sequence[Asked]) -> str:
    return f"{free(asked)} free, worst error {worst(asked)}"


def _line(what: str, found: str, true: str, asked: Sequence[Asked]) -> Line:
    return Line(
        f"{what} ({len(asked)} questions, {free(asked)} free)",
        found,
        f"± {max((each.bound for each in asked), default=0):.0f}",
        f"worst {worst(asked)}, mean {mean(asked):.0f}{'; true: ' if true else ''}{true}",
        price(cost(asked)),
    )
