"""What `fit` and `learn` share: fit an estimator for one charge, save its record, show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.cli.files import pretty, reserved
from discreet.cli.options import OpenTable
from discreet.cli.price_view import Payment, receipt
from discreet.ledger import code_version


def train(
    at: OpenTable,
    estimator: Any,
    target: str,
    columns: Sequence[str] | None,
    *,
    save: Path | None,
    force: bool,
    record: Callable[[Any], dict[str, Any]],
    show: Callable[[dict[str, Any], Payment], None],
    text: str,
) -> None:
    """Fit and charge, write the record to a file if that is wanted, and show it; shown also if it cannot be written,
    since it is paid for.

    record  what a fitted model is, without what it cost
    show    prints a record with its receipt
    """
    with reserved(save, force=force) as draft:
        with at.output.working(text):
            session = dp.Session(at.table, at.ledger, allowance=at.allowance)
            model = session.fit(estimator, target=target, features=columns)
        made = record(model)
        paid = receipt(at, model.guarantee_, model.entry_, replayed=model.replayed_)
        whole = {"table": at.schema.name, **made, **paid.record(), "discreet": code_version()}
        try:
            draft.write(pretty(at.output.marked(whole)) + "\n")
        finally:
            show(made, paid)
            at.output.result(whole)


def source_line(columns: Sequence[str], chosen: bool) -> tuple[str, str]:
    """Which columns a model was learned from, as a line of the result."""
    return "from", f"{', '.join(columns)}{'' if chosen else ' (all that can serve: --features chooses)'}"
