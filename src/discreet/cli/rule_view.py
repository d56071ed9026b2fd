"""How a learned rule is shown by `discreet learn`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.cli.kit import Lines, OpenTable, one_line
from discreet.cli.price_view import Payment


def show(at: OpenTable, schema: Path, made: dict[str, Any], paid: Payment, others: Lines) -> None:
    """Print the rule, the command that asks how many people it is about, and what is known about it."""
    from discreet.sql import name_text

    output, target, bought = at.output, made["target"], made["certificate"]
    output.say(f"{one_line(target['column'])} = {one_line(target['positive'])} where")
    output.say(f"    {one_line(made['sentence'])}")
    question = f"SELECT COUNT(*) FROM {name_text(at.schema.name)}{' WHERE ' if made['sql'] else ''}{made['sql']}"
    quoted = shlex.quote(question) if any(sign in question for sign in '"$`\\!') else f'"{question}"'
    rehearse = " --rehearse" if output.rehearsal else ""
    output.copyable(f"discreet ask {shlex.quote(str(schema))} {quoted}{rehearse}")
    covered = f"{dp.exact.percent(made['covers'])} of the declared values (not of the people)"
    *price, left = paid.lines()
    certified = [] if bought is None else [("certificate", bought["said"]), ("its price", bought["cost"])]
    hint = ("hint", "a box has two sides for each column: one or two --features need much less noise")
    hints = [hint] if made["rule"] == "box" and len(made["columns"]) > 2 else []
    known = [("covers", covered), ("promise", made["promise"]), ("method", made["method"])]
    output.facts([*known, *price, *certified, left, *hints, *others])
