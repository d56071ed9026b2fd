"""`discreet predict`: what a saved model says about the rows of a file. Needs neither the table nor its ledger."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import click

from discreet.cli.files import reserved
from discreet.cli.kit import FILE, JSON, Command, Output, ParameterError, one_line

STDOUT = Path("-")


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.argument("rows", type=FILE)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="predictions.csv; - prints CSV.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@JSON
def predict(model: Path, rows: Path, out: Path, force: bool, as_json: bool) -> None:
    """Predict with a saved MODEL for the rows of a file.

    MODEL is a file that `fit --save`, `learn --save` or `model.save` wrote. ROWS is a CSV or Parquet file with the
    features as columns, and others if you like. One line is written for each row, in their order: the prediction, and
    the probability of each class where the model has them. Nothing is charged: a released model is public, and the rows
    are yours. For example:

    \b
        discreet predict age.json rows.csv --out predictions.csv
        discreet predict income.json rows.parquet --out -
    """
    from discreet.estimators.loading import load, predictions

    if out == STDOUT and as_json:
        raise ParameterError("--out - prints predictions, --json a summary: give --out a file")
    if out != STDOUT and out.suffix.lower() != ".csv":
        raise ParameterError(f"--out must end in .csv, or be - for CSV on the screen; found {out.name!r}")
    output, loaded = Output(as_json=as_json), load(model)
    parts = predictions(loaded, rows)
    if out == STDOUT:
        _write(parts, sys.stdout)
        return
    with reserved(out, force=force) as draft:
        with output.working("predicting"), draft.part.open("w", encoding="utf-8", newline="") as file:
            count = _write(parts, file)
        draft.keep()
    output.say(f"{one_line(out.name)}: {count:,} predictions by a {type(loaded).__name__}")
    output.say(f"what it promises: {loaded.guarantee_}")
    output.result({"file": str(out), "rows": count, "model": loaded.KIND, "guarantee": str(loaded.guarantee_)})


def _write(parts: Iterable[dict[str, list[Any]]], file: IO[str]) -> int:
    """Write the predictions as CSV and return their number."""
    writer, count = csv.writer(file, lineterminator="\n"), 0
    for part in parts:
        if not count:
            writer.writerow(part)
        writer.writerows(zip(*part.values(), strict=True))
        count += len(part["prediction"])
    return count
