"""What `discreet ledger show` says: the budget as a bar, the books, the allowances, the last charges and answers."""

from __future__ import annotations

from typing import Any

import discreet as dp
from discreet.cli.kit import Output, one_line
from discreet.cli.price_view import cost
from discreet.describe import asked
from discreet.ledger import price_from

ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "closed"}


def charges(book: dp.Ledger, *, most: int | None) -> list[dict[str, Any]]:
    """The newest charges; `of_budget` is the price as a fraction of the budget, in the book that decides."""
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
            "state": "open" if (end := book.store.end_of(body["seq"])) is None else ENDS[end["kind"]],
            "memo": body["memo"],
        }
        for body in book.latest("charge", most=most)
        for price in [price_from(body["price"])]
    ]


def summary(book: dp.Ledger, *, last: int | None = None) -> dict[str, Any]:
    """Everything that is shown, as JSON. Amounts are integers: nano-units of epsilon and Renyi, 1e-18 of failure;
    `used` and `of_budget` are fractions of the budget, in the book that decides (`Books.counting`).

    last  the number of newest charges and answers, looked up from the end of the ledger; None: all of them
    """
    spent, named = book.spent(), book.allowances()
    return {
        "ledger": book.id,
        "warning": "NOT PRIVATE" if book.testing else None,
        "agrees_with_its_mark": not book.rolled_back(),
        "table": book.identity.name,
        "tables": {name: each.rows for name, each in book.identity.tables},
        "neighbours": str(book.identity.neighbours),
        "unit": book.identity.unit,
        "size": None if book.facts is None else book.facts.size,
        "edition": None if book.facts is None else book.facts.edition,
        "epsilon": str(book.budget.epsilon),
        "delta": str(book.budget.delta),
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


def display(book: dp.Ledger, shown: dict[str, Any], output: Output) -> None:
    """Print the summary for people."""
    if output.as_json:
        return
    if shown["warning"]:
        output.say(f"{shown['warning']}: a testing ledger")
    if not shown["agrees_with_its_mark"]:
        output.say("NOT AS ITS MARK SAYS: an older copy, or a moved one; nothing is released until `ledger reconcile`")
    unit = "a row is a person" if shown["unit"] is None else f"a person is a {one_line(shown['unit'])}"
    size = "" if shown["size"] is None else f", {shown['size']:,} persons"
    kept = [
        f"{one_line(name)}, {rows} row{'' if rows == 1 else 's'} per person" for name, rows in shown["tables"].items()
    ]
    output.say(
        f"{'tables    ' if kept else 'table     '} {one_line(shown['table'])} ({shown['neighbours']}, {unit}{size})"
    )
    for table in kept:
        output.say(f"           {table}")
    if shown["edition"] is not None:
        output.say(f"edition    {one_line(shown['edition'])}")
    output.say(f"promise    {book.budget}")
    used, width = book.spent().used(), min(40, output.width - 32)
    full = min(width, round(used * width))
    output.say(f"budget     [{'#' * full}{'.' * (width - full)}] {dp.exact.percent(used, up=True)} used", style="bold")
    for line in book.spent().lines():
        output.say(f"           {line}")
    for each in book.allowances():
        so_far = f" (epsilon so far at most {each.at_most})" if each.at_most else ""
        output.say(
            f"allowance  {one_line(each.name)}: {cost(each.part)} used{so_far} of {dp.exact.percent(each.share)}, "
            f"{dp.exact.percent(float(each.left))} left"
        )
    for seq in shown["reconciled"]:
        output.say(f"reconciled in entry {seq}: spending was raised to what a mark proved")
    _display_charges(shown["charges"], shown["charged"], output)
    if shown["questions"]:
        rest = _rest(shown["questions"], shown["answers"])
        output.say(f"answers    {shown['answers']} given by sessions, from the charges above{rest}")
    for each in shown["questions"]:
        output.say(f"  {each['entry']}  {_of_table(each)}{one_line(each['asked'])}")


def _of_table(shown: dict[str, Any]) -> str:
    """Which of several tables an entry is about."""
    return "" if shown["table"] is None else f"{one_line(shown['table'])}: "


def _rest(shown: list[dict[str, Any]], count: int) -> str:
    return "" if len(shown) == count else f", the last {len(shown)} (--all shows all)"


def _display_charges(shown: list[dict[str, Any]], count: int, output: Output) -> None:
    output.say(f"charges    {count}{_rest(shown, count)}")
    rows = []
    for each in shown:
        memo = f" [{one_line(each['memo'])}]" if each["memo"] and each["memo"] not in each["asked"] else ""
        name = f" in the name of {one_line(each['allowance'])}" if each["allowance"] else ""
        words = f"{one_line(each['asked'])} ({one_line(each['mechanism'])})" if each["asked"] else each["mechanism"]
        what = f"{_of_table(each)}{one_line(words)}{name}{memo}"
        rows.append((str(each["entry"]), each["time"][:10], cost(each["of_budget"]), each["state"], what))
    if output.wide and rows:
        output.table(("entry", "day", "budget", "state", "what was asked"), rows)
    for entry, day, part, state, what in rows if not output.wide else ():
        output.say(f"  {entry}  {day}  {part}  {state}: {what}")
