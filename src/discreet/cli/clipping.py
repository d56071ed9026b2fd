"""What the bound of a sum or an average is not about: values are read on the declared grid, moved into it if they lie
beyond, and how many did is a question about the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.cli.model_view import declared
from discreet.describe import one_line

if TYPE_CHECKING:
    from discreet.data import Domain


def clipped(question: str, domain: Domain, table: str) -> dict[str, Any] | None:
    """The column that a question adds up, its bounds and its step, and a note for people; None for other questions."""
    from discreet.sql import parse

    select = parse(question, domain, table=table)
    if select.kind not in ("sum", "average") or select.column is None:
        return None
    about = declared(select.column, domain.column(select.column))
    found = {key: about[key] for key in ("column", "low", "high", "step")}
    return {**found, "note": _note(**found)}


def _note(column: str, low: float, high: float, step: float) -> str:
    """Whole numbers in steps of 1 are what people expect: other steps are said."""
    steps = "" if step == 1 else f" in steps of {_number(step)}"
    rounded = "" if step == 1 else ", what lies between as the step below"
    return (
        f"{one_line(column)} is read between {_number(low)} and {_number(high)}{steps}: what lies beyond counts as the "
        f"bound{rounded}, and ± does not include that"
    )


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.12g}"
