"""What a ledger shows: the promise, what is spent, the allowances, the last charges and answers.

summary  all of it as JSON, for programs
sheet    the same for people: `str(ledger)`, `discreet ledger show`, and a notebook
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.core import EMPTY, WIDE, CellTable, Pairs, Paragraph, Sheet, exact, one_line
from discreet.describe import asked, mechanism_name, purpose
from discreet.ledger.state import price_from

Ledger = Any
"""A `discreet.Ledger`, which imports this module."""

LAST = 10
"""Charges and answers that are shown unless all are wanted."""

_ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "closed"}
_BAR = 40


def _cost(part: Fraction | float | None) -> str:
    """A part of the budget that is spent or charged; "-" if the book that decides does not know it."""
    return EMPTY if part is None else exact.percent(part, up=True)


def charges(book: Ledger, *, most: int | None, before: int | None = None) -> list[dict[str, Any]]:
    """The newest charges, or those before an entry; `of_budget` is the price as a fraction of the budget, in the book
    that decides, `what` a charge in words."""
    spent = book.spent()
    return [
        {
            "entry": body["seq"],
            "time": body["time"],
            "table": book.facts_with(body["facts_hash"]).table,
            "mechanism": body["mechanism"].get("name", "without a name"),
            "asked": asked(body["mechanism"]),
            "of_budget": None if (part := spent.part_of(price)) is None else float(part),
            **price.record(),
            "allowance": body["allowance"],
            "who": body["who"],
            "hash": body["hash"],
            "state": "open" if (end := book.store.end_of(body["seq"])) is None else _ENDS[end["kind"]],
            "memo": body["memo"],
            "what": purpose(asked(body["mechanism"]), body["memo"], body["mechanism"].get("name", "without a name")),
        }
        for body in book.latest("charge", most=most, before=before)
        for price in [price_from(body["price"])]
    ]


def epochs(book: Ledger) -> list[dict[str, Any]]:
    """Of a table that grows: each epoch, its public number of persons, and how much of their budget is used."""
    with book.store.reading() as state:
        known = state.epochs
    return [
        {"epoch": epoch, "persons": known.sizes[epoch], "used": float(book.spent_on((epoch,)).used())}
        for epoch in known.own
    ]


def summary(book: Ledger, *, last: int | None = None) -> dict[str, Any]:
    """Everything that is shown, as JSON. Amounts are integers: nano-units of epsilon and Renyi, 1e-18 of failure;
    `used` and `of_budget` are fractions of the budget, in the book that decides (`Books.counting`).

    last  the number of newest charges and answers, looked up from the end of the ledger; None: all of them
    """
    spent, named = book.spent(), book.allowances()
    several = bool(book.identity.tables) or book.identity.epochs is not None  # tables, or epochs of one
    return {
        **({} if book.identity.epochs is None else {"epochs": epochs(book), "epochs_per_person": book.identity.epochs}),
        "ledger": book.id,
        "warning": "NOT PRIVATE" if book.testing else None,
        "agrees_with_its_mark": not book.rolled_back(),
        "table": book.identity.name,
        "tables": {name: each.rows for name, each in book.identity.tables},
        "neighbours": str(book.identity.neighbours),
        "unit": book.identity.unit,
        "size": None if book.facts is None else _size(book),
        "edition": None if book.facts is None or several else book.facts.edition,
        "epsilon": str(book.budget.epsilon),
        "delta": str(book.budget.delta),
        "epsilon_so_far": spent.epsilon,
        "order": None if spent.order is None else str(spent.order),
        "used": float(spent.used()),
        "book": spent.counting(),
        "spent": spent.record(),
        "left": book.remaining().record(),
        "caps": spent.caps.record(),
        "allowances": {each.name: str(each.share) for each in named},
        "allowance_use": {each.name: None if each.part is None else float(each.part) for each in named},
        "allowance_left": {each.name: float(each.left) for each in named},
        "allowance_epsilon": {each.name: each.epsilon for each in named},
        "reconciled": [each["seq"] for each in book.latest("reconcile")],
        "entries": book.length(),
        "charged": book.store.count("charge"),
        "answers": book.store.count("said"),
        "charges": charges(book, most=last),
        "questions": [
            {
                "entry": each["seq"],
                "time": each["time"],
                "table": book.facts_with(each["facts_hash"]).table,
                "asked": asked(each["question"]),
            }
            for each in book.latest("said", most=last)
        ],
    }


def _size(book: Ledger) -> int | None:
    """The public number of persons; of a table that grows, those of all epochs."""
    grown = [] if book.identity.epochs is None else [each["persons"] for each in epochs(book)]
    if not grown or None in grown:
        return book.facts.size  # type: ignore[no-any-return]
    return sum(grown) if book.identity.epochs == 1 else grown[-1]  # type: ignore[no-any-return]


def sheet(book: Ledger, known: dict[str, Any], *, width: int) -> Sheet:
    """A `summary` for people."""
    mark = "NOT AS ITS MARK SAYS: an older copy, or a moved one; nothing is released until `ledger reconcile`"
    return Sheet.of(
        f"{known['warning']}: a testing ledger" if known["warning"] else "",
        "" if known["agrees_with_its_mark"] else mark,
        Paragraph(_bar(book, width), "bold"),
        Pairs(_promise(book, known)),
        *_epochs(known),
        *_allowances(book),
        *(f"reconciled in entry {seq}: spending was raised to what a mark proved" for seq in known["reconciled"]),
        f"charges    {known['charged']}{_rest(known['charges'], known['charged'])}",
        _charges(known["charges"]) if known["charges"] else "",
        *_answers(known),
    )


def _bar(book: Ledger, width: int) -> str:
    used, wide = book.spent().used(), max(8, min(_BAR, width - 32))
    full = min(wide, round(used * wide))
    return f"[{'#' * full}{'.' * (wide - full)}] {exact.percent(used, up=True)} of the budget is used"


def _promise(book: Ledger, known: dict[str, Any]) -> list[tuple[str, object]]:
    unit = "a row is a person" if known["unit"] is None else f"a person is a {one_line(known['unit'])}"
    unit = f"persons are named by {one_line(known['unit'])}" if known["tables"] else unit
    size = "" if known["size"] is None else f", {known['size']:,} persons"
    return [
        ("spent", book.spent().lines()[0]),
        ("promise", f"{book.budget} for everything that is ever released here, together"),
        ("tables" if known["tables"] else "table", f"{one_line(known['table'])} ({known['neighbours']}, {unit}{size})"),
        *(("", f"{name}, {rows} row{'' if rows == 1 else 's'} per person") for name, rows in known["tables"].items()),
        *([] if known["edition"] is None else [("edition", known["edition"])]),
        *(("books", line) for line in book.spent().lines()[1:]),
    ]


def _epochs(known: dict[str, Any]) -> list[str | CellTable]:
    """The epochs of a table that grows."""
    if "epochs" not in known:
        return []
    if known["epochs_per_person"] > 1:
        labels = ", ".join(each["epoch"] for each in known["epochs"]) or "none yet"
        return [f"epochs     {labels}; the first {known['epochs_per_person']} of a person count, for one budget"]
    rows = [
        (each["epoch"], EMPTY if each["persons"] is None else f"{each['persons']:,}", _cost(each["used"]))
        for each in known["epochs"]
    ]
    head = "epochs     each has a budget of its own: nobody is in two of them"
    return [head, CellTable(("epoch", "persons", "used"), rows, numeric=(1, 2))] if rows else ["epochs     none yet"]


def _allowances(book: Ledger) -> list[CellTable]:
    """The analysts and their shares, if there are any."""
    rows = [
        (
            each.name,
            exact.percent(each.share),
            _cost(each.part),
            f"at most {each.at_most}" if each.at_most else "0" if each.epsilon == 0 else EMPTY,
            exact.percent(float(each.left)),
        )
        for each in book.allowances()
    ]
    titles = ("allowance", "may use", "used", "epsilon so far", "left")
    return [CellTable(titles, rows, numeric=range(1, 5), narrow=WIDE)] if rows else []


def _charges(shown: list[dict[str, Any]]) -> CellTable:
    rows = []
    for each in shown:
        name = f", in the name of {one_line(each['allowance'])}" if each["allowance"] else ""
        words, by = purpose(each["asked"], each["memo"], each["mechanism"]), mechanism_name(each["mechanism"])
        what = f"{_of_table(each)}{words}{'' if words == by else f' ({by})'}{name}"
        rows.append((str(each["entry"]), each["time"][:10], _cost(each["of_budget"]), each["state"], what))
    return CellTable(("entry", "day", "budget", "state", "what was asked"), rows, numeric=(2,), narrow=WIDE)


def _answers(known: dict[str, Any]) -> list[str | CellTable]:
    if not known["questions"]:
        return []
    rest = _rest(known["questions"], known["answers"])
    head = f"answers    {known['answers']} given by sessions, from the charges above{rest}"
    rows = [(str(each["entry"]), f"{_of_table(each)}{one_line(each['asked'])}") for each in known["questions"]]
    return [head, CellTable(("entry", "what was answered"), rows)]


def _of_table(shown: dict[str, Any]) -> str:
    """Which of several tables an entry is about."""
    return "" if shown["table"] is None else f"{one_line(shown['table'])}: "


def _rest(shown: list[dict[str, Any]], count: int) -> str:
    return "" if len(shown) == count else f", the last {len(shown)} (--all shows all)"
