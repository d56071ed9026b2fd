"""Declared columns: how they are read, and as the target and the features of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import discreet as dp
from discreet.cli.kit import ParameterError, one_line
from discreet.data.declaration import column_record

LEVELS_OR_BOUNDS = "levels, or a number with bounds"


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


def chosen_columns(
    domain: dp.Domain, target: str, features: str | None, serves: Callable[[dp.data.Column], bool], words: str
) -> list[str]:
    """The features: those that are named, or all but the target that can serve; words say what that takes."""
    domain.column(target)
    serving = [name for name in domain.names if name != target and serves(domain.column(name))]
    if features is None:
        if not serving:
            raise ParameterError(f"no column but the target {target!r} has {words}", argument="features")
        return serving
    named = [features] if features in domain else [each.strip() for each in features.split(",")]
    for name in named:
        column = domain.column(name)
        if name == target:
            raise ParameterError(f"the features must not contain the target {target!r}", argument="features")
        if name not in serving:
            having = ", ".join(serving) or "no column has"
            raise ParameterError(f"column {name!r} is declared {column!r}: a feature needs {words}: {having}")
    if len(set(named)) < len(named):
        raise ParameterError(f"a column is named twice: {features}", argument="features")
    return named


def categories(domain: dp.Domain, target: str) -> str:
    """Which other columns are categories, as a hint."""
    found = [name for name in domain.names if name != target and not domain.column(name).ordered]
    return f"Categories of this table: {', '.join(found)}" if found else "This table has no other categories"
