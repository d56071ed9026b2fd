"""The page about one ledger that an owner shows: what is promised to whom, what is spent, what is left."""

from __future__ import annotations

from typing import Any

from discreet.core import exact, one_line
from discreet.describe import mechanism_name, purpose
from discreet.ledger import Ledger
from discreet.report.budget_plot import odds
from discreet.report.ledger_plot import budget, left
from discreet.report.page import Grid, Heading, Part, page
from discreet.report.plot import Plot

_MOST_CHARGES = 500


def ledger_report(book: Ledger, protects: str, *, everything: bool) -> tuple[str, int]:
    """The page as HTML, and how many plots it has. everything: also memos and what was asked."""
    parts = _parts(book, protects, book.entry(book.length()), everything)
    so_far = str(book.spent().lines()[0])
    promise = f"Everything that is released about these people through this ledger keeps one promise, {book.budget}"
    lead = f"{so_far[:1].upper()}{so_far[1:]}. {promise}, together."
    title = f"The privacy budget of {one_line(book.identity.name)}"
    return page(title, parts, lead=lead), sum(type(part) is Plot for part in parts)


def _parts(book: Ledger, protects: str, last: dict[str, Any], everything: bool) -> list[Part]:
    agrees, promised = not book.rolled_back(), book.budget
    timed = last if last["time"] else (book.latest("charge", most=1) or [book.entry(1)])[0]
    without = "replaced by another person's" if book.identity.neighbours.replace_one else "left out"
    warnings = {
        "NOT PRIVATE: this is a testing ledger. Nothing that was released through it is protected.": book.testing,
        "A rehearsal: the rows are made up, and so is everything here.": book.identity.rehearsal,
        "NOT AS ITS MARK SAYS: this is an older copy of the ledger, or a moved one. More may have been spent than "
        "this page shows; nothing is released until `discreet ledger reconcile`.": not agrees,
    }
    return [
        *(warning for warning, holds in warnings.items() if holds),
        Heading("What is promised, and to whom"),
        "To every person in the table: the chance of any outcome would be about the same if your rows were "
        f"{without}. That holds for everything that is released here, in whatever way it is asked for.",
        protects,
        odds([promised.epsilon], promised.delta),
        Heading("What is spent"),
        budget(book, everything=everything),
        *_allowances(book),
        _charges(book, everything),
        Heading("What is left"),
        left(book) if agrees else "Nothing, until the ledger is reconciled with its mark.",
        Heading("How to check this page"),
        f"It was made from {last['seq']:,} entries, the last of {timed['time']}. The hash of the last entry is "
        f"{last['hash']}: it vouches for all entries before it. With this line anyone can tell later whether the "
        "ledger they are shown goes on from the same entries; `discreet ledger verify` checks every entry, every sum "
        "and every price.",
        f"Ledger {book.id}, {book.identity.neighbours}.",
    ]


def _allowances(book: Ledger) -> list[Part]:
    """The names that have a share of the budget, if there are any: what each has spent, and what it has left."""
    rows = [
        (
            one_line(each.name),
            exact.percent(each.share),
            "–" if each.part is None else exact.percent(each.part, up=True),
            "–" if each.epsilon is None else each.at_most or "0",
            exact.percent(float(each.left)),
        )
        for each in book.allowances()
    ]
    columns = (
        *("allowance", "share of the budget", "spent of the budget"),
        *("epsilon so far, at most", "left of the budget"),
    )
    caption = (
        "The names under which charges are counted. Shares may add up to more than the budget, which is the limit for "
        f"all together, and for charges without a name. Epsilons are what the ledger's books prove at delta "
        f"{exact.shown(book.budget.delta)}, which is little where little was spent."
    )
    return [Grid(columns, rows, caption)] if rows else []


def _charges(book: Ledger, everything: bool) -> Part:
    """The last charges in words; without --everything nothing about columns, questions or memos."""
    count = book.store.count("charge")
    rows = [
        (
            each["entry"],
            each["time"][:10],
            mechanism_name(each["mechanism"]),
            "–" if each["of_budget"] is None else exact.percent(each["of_budget"], up=True),
            each["state"],
            *((purpose(each["asked"], each["memo"], each["mechanism"]),) if everything else ()),
        )
        for each in book.charges(most=_MOST_CHARGES)
    ]
    last = f" The last {len(rows)} of {count:,} are shown." if len(rows) < count else ""
    hidden = "" if everything else " What was asked, and memos, are left out."
    caption = f"The charges, each as a part of the budget.{last}{hidden}" if rows else "There are no charges yet."
    columns = ("entry", "day", "mechanism", "of the budget", "state", *(("what was asked",) if everything else ()))
    return Grid(columns, rows, caption)
