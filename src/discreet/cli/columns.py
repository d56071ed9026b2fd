"""Declared columns: how they are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import discreet as dp
from discreet.cli.kit import one_line
from discreet.data import column_record


def clipping(summed: Iterable[str], domain: dp.Domain) -> list[dict[str, Any]]:
    """How each column is read that a question adds up: its bounds and its step, and a note for people.

    Values are read on the declared grid, and moved into it if they lie beyond. How many do is a question about the
    rows, so the bound of a sum or an average does not include it. Steps of 1 are what people expect: others are said.
    """
    found = []
    for name in summed:
        given = column_record(name, domain.column(name))
        about = {key: given[key] for key in ("column", "low", "high", "step")}
        low, high, step = (f"{each:,}" if type(each) is int else f"{each:,.12g}" for each in list(about.values())[1:])
        steps, rounded = (
            (f" in steps of {step}", ", what lies between as the step below") if about["step"] != 1 else ("", "")
        )
        note = (
            f"{one_line(name)} is read between {low} and {high}{steps}: what lies beyond counts as the "
            f"bound{rounded}, and ± does not include that"
        )
        found.append({**about, "note": note})
    return found
