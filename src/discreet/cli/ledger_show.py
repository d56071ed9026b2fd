"""What `discreet ledger show` says: the budget as a bar, the books, the allowances, the last charges and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.cli.options import Output
from discreet.describe import asked, one_line
from discreet.funds import Books
from discreet.ledger.allowances import allowances
from discreet.ledger.state import price_from

if TYPE_CHECKING:
    from discreet.ledger import Ledger

_ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "closed"}
_NARROW = 76  # below this many columns every charge gets lines of its own instead of a row


def summary(found: Ledger, *, last: int | None = None) -> dict[str, Any]:
    """Everything that is shown, as JSON. Amounts are integers: nano-units of epsilon and Renyi, 1e-18 of failure;
    `used` and `of_budget` are fractions of the budget, in the book that decides (`Books.counting`).

    last  only so many charges and answers, the newest: what they are is looked up from the end of the ledger
    """
    spent, left, named = found.spent(), found.remaining(), allowances(found)
    return {
        "ledger": found.id,
        "warning": "NOT PRIVATE" if found.testing else None,
        "agrees_with_its_mark": not found.rolled_back(),
        "table": found.identity.name,
        "neighbours": str(found.identity.neighbours),
        "unit": found.identity.unit,
        "size": None if found.facts is None else found.facts.size,
        "edition": None if found.facts is None else found.facts.edition,
        "epsilon": str(found.budget.epsilon),
        "delta": str(found.budget.delta),
        "order": None if spent.order is None else str(spent.order),
        "used": float(spent.used()),
        "book": spent.counting(),
        "spent": {"renyi_nano": spent.renyi, "pure_nano": spent.pure, "failure_atto": spent.failure},
        "left": {"renyi_nano": left.renyi, "pure_nano": left.pure, "failure_atto": left.failure},
        "caps": {"renyi_nano": spent.caps.renyi, "pure_nano": spent.caps.pure, "failure_atto": spent.caps.failure},
        "allowances": {each.name: str(each.share) for each in named},
        "allowance_use": {each.name: None if each.part is None else float(each.part) for each in named},
        "allowance_left": {each.name: float(each.left) for each in named},
        "allowance_epsilon": {each.name: each.epsilon for each in named},
        "reconciled": [each["seq"] for each in found.latest("reconcile")],
        "entries": found.length(),
        "charged": found.store.count("charge"),
        "answers": found.store.count("said"),
        "charges": [_charge(each, found, spent) for each in found.latest("charge", most=last)],
        "questions": [
            {"entry": each["seq"], "time": each["time"], "asked": asked(each["question"])}
            for each in found.latest("said", most=last)
        ],
    }


def _charge(body: dict[str, Any], found: Ledger, spent: Books) -> dict[str, Any]:
    part, end = spent.part_of(price_from(body["price"])), found.store.end_of(body["seq"])
    return {
        "entry": body["seq"],
        "time": body["time"],
        "mechanism": body["mechanism"].get("name", "without a name"),
        "asked": asked(body["mechanism"]),
        "of_budget": None if part is None else float(part),
        "renyi_nano": body["price"]["renyi"],
        "pure_nano": body["price"]["pure"],
        "failure_atto": body["price"]["failure"],
        "allowance": body["allowance"],
        "state": "open" if end is None else _ENDS[end["kind"]],
        "memo": body["memo"],
    }


def display(found: Ledger, shown: dict[str, Any], output: Output) -> None:
    """The summary for the eye."""
    if output.as_json:
        return
    width = output.console.width
    if shown["warning"]:
        output.say(f"{shown['warning']}: a testing ledger")
    if not shown["agrees_with_its_mark"]:
        output.say("NOT AS ITS MARK SAYS: an older copy, or a moved one; nothing is released until `ledger reconcile`")
    unit = "a row is a person" if shown["unit"] is None else f"a person is a {one_line(shown['unit'])}"
    size = "" if shown["size"] is None else f", {shown['size']:,} persons"
    output.say(f"table      {one_line(shown['table'])} ({shown['neighbours']}, {unit}{size})")
    if shown["edition"] is not None:
        output.say(f"edition    {one_line(shown['edition'])}")
    output.say(f"promise    {found.budget}")
    output.say(f"budget     {_bar(shown['used'], min(40, width - 32))} {_share(shown['used'])} used", style="bold")
    for line in str(found.spent()).split("; "):
        output.say(f"           {line}")
    for each in allowances(found):
        so_far = f" (epsilon so far at most {each.at_most})" if each.at_most else ""
        use = _share(None if each.part is None else float(each.part))
        output.say(
            f"allowance  {one_line(each.name)}: {use} used{so_far} of {_share(float(each.share))}, "
            f"{_share(float(each.left))} left"
        )
    for seq in shown["reconciled"]:
        output.say(f"reconciled in entry {seq}: spending was raised to what a mark proved")
    _display_charges(shown["charges"], shown["charged"], output, narrow=width < _NARROW)
    _display_questions(shown["questions"], shown["answers"], output)


def _rest(shown: list[dict[str, Any]], count: int) -> str:
    return "" if len(shown) == count else f", the last {len(shown)} (--all shows all)"


def _display_charges(shown: list[dict[str, Any]], count: int, output: Output, *, narrow: bool) -> None:
    output.say(f"charges    {count}{_rest(shown, count)}")
    rows = [
        (str(each["entry"]), each["time"][:10], _share(each["of_budget"]), each["state"], _what(each)) for each in shown
    ]
    if narrow:
        for entry, day, part, state, what in rows:
            output.say(f"  {entry}  {day}  {part}  {state}: {what}")
    elif rows:
        output.table(("entry", "day", "budget", "state", "what was asked"), rows)


def _display_questions(shown: list[dict[str, Any]], count: int, output: Output) -> None:
    if not shown:
        return
    output.say(f"answers    {count} given by sessions, from the charges above{_rest(shown, count)}")
    for each in shown:
        output.say(f"  {each['entry']}  {one_line(each['asked'])}")


def _what(charge: dict[str, Any]) -> str:
    memo = f" [{one_line(charge['memo'])}]" if charge["memo"] and charge["memo"] not in charge["asked"] else ""
    name = f" in the name of {one_line(charge['allowance'])}" if charge["allowance"] else ""
    words = f"{one_line(charge['asked'])} ({one_line(charge['mechanism'])})" if charge["asked"] else charge["mechanism"]
    return f"{one_line(words)}{name}{memo}"


def _bar(used: float, width: int) -> str:
    full = min(width, round(used * width))
    return f"[{'#' * full}{'.' * (width - full)}]"


def _share(part: float | None) -> str:
    if part is None:
        return "-"
    return f"{100 * part:.3g} %" if part < 0.9995 else f"{100 * part:.0f} %"
