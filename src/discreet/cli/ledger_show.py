"""What `discreet ledger show` says: the budget as a bar, the books, the allowances, the last charges and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet import exact
from discreet.cli.front import Output
from discreet.ledger.price import Books
from discreet.ledger.state import price_from
from discreet.wording import asked, one_line

if TYPE_CHECKING:
    from discreet.ledger import Ledger

_ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "closed"}
_NARROW = 76  # below this many columns every charge gets lines of its own instead of a row


def summary(found: Ledger) -> dict[str, Any]:
    """Everything that is shown, as JSON. Amounts are integers: nano-units of epsilon and Renyi, 1e-18 of failure;
    `used` and `of_budget` are fractions of the budget, in the book that decides (`Books.counting`)."""
    entries = list(found.entries())
    ends = {each["charge"]: each["kind"] for each in entries if each["kind"] in _ENDS}
    spent, left = found.spent(), found.remaining()
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
        "allowances": {each["allowance"]: each["share"] for each in entries if each["kind"] == "allow"},
        "allowance_use": _allowances(entries, spent),
        "reconciled": [each["seq"] for each in entries if each["kind"] == "reconcile"],
        "entries": len(entries),
        "answers": sum(each["kind"] == "said" for each in entries),
        "charges": [_charge(each, ends, spent) for each in entries if each["kind"] == "charge"],
        "questions": [
            {"entry": each["seq"], "time": each["time"], "asked": asked(each["question"])}
            for each in entries
            if each["kind"] == "said"
        ],
    }


def _charge(body: dict[str, Any], ends: dict[int, str], spent: Books) -> dict[str, Any]:
    part = spent.part_of(price_from(body["price"]))
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
        "state": _ENDS.get(ends.get(body["seq"], ""), "open"),
        "memo": body["memo"],
    }


def _allowances(entries: Sequence[dict[str, Any]], spent: Books) -> dict[str, float | None]:
    """How much of the budget was used in each name."""
    used: dict[str, float | None] = {each["allowance"]: 0.0 for each in entries if each["kind"] == "allow"}
    for each in entries:
        if each["kind"] == "charge" and each["allowance"] is not None:
            part, before = spent.part_of(price_from(each["price"])), used[each["allowance"]]
            used[each["allowance"]] = None if part is None or before is None else before + float(part)
    return used


def display(found: Ledger, shown: dict[str, Any], output: Output, *, last: int | None) -> None:
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
    for name, share in shown["allowances"].items():
        used = shown["allowance_use"][name]
        output.say(f"allowance  {one_line(name)}: {_share(used)} used of {_share(float(exact.number(share=share)))}")
    for seq in shown["reconciled"]:
        output.say(f"reconciled in entry {seq}: spending was raised to what a mark proved")
    _display_charges(shown["charges"], output, last, narrow=width < _NARROW)
    _display_questions(shown["questions"], output, last)


def _display_charges(charges: list[dict[str, Any]], output: Output, last: int | None, *, narrow: bool) -> None:
    shown = charges if last is None else charges[-last:]
    rest = "" if len(shown) == len(charges) else f", the last {len(shown)} (--all shows all)"
    output.say(f"charges    {len(charges)}{rest}")
    rows = [
        (str(each["entry"]), each["time"][:10], _share(each["of_budget"]), each["state"], _what(each)) for each in shown
    ]
    if narrow:
        for entry, day, part, state, what in rows:
            output.say(f"  {entry}  {day}  {part}  {state}: {what}")
    elif rows:
        output.table(("entry", "day", "budget", "state", "what was asked"), rows)


def _display_questions(questions: list[dict[str, Any]], output: Output, last: int | None) -> None:
    if not questions:
        return
    shown = questions if last is None else questions[-last:]
    rest = "" if len(shown) == len(questions) else f", the last {len(shown)} (--all shows all)"
    output.say(f"answers    {len(questions)} given by sessions, from the charges above{rest}")
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
