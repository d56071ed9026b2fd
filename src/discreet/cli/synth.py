"""`discreet synth`: made-up rows drawn from what was released.

The file is opened under another name before anything is bought and gets its own when it is whole: nothing is paid for
rows that cannot be written, and half a file is never left behind. The rows of a rehearsal have a column more that says
so, in front, since a file has no other place for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from discreet.cli.options import Opened, again_option, allowance_option, opened, percent, table_options
from discreet.cli.receipt import regular
from discreet.describe import one_line
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.answering.answer import Answer
    from discreet.session import Session

STDOUT = Path("-")
_BETWEEN = "everything between columns that are not known together"


@click.command()
@table_options
@click.argument("rows", type=click.IntRange(min=1))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="rows.csv or rows.parquet; - prints CSV.")
@click.option("--measure", multiple=True, metavar="COLUMNS", help="Buy this table first: age,sex. May be repeated.")
@click.option("--share", help="With --measure: for so much of what is left, all tables together, as 1/3.")
@click.option("--beta", default="0.05", show_default=True, help="With --measure: the probability that a bound fails.")
@allowance_option
@again_option
@click.option("--seed", type=int, help="The same rows again, as long as nothing else is released.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def synth(
    schema: Path,
    data_path: Path | None,
    ledger_path: Path | None,
    rehearse: bool,
    as_json: bool,
    rows: int,
    out: Path,
    measure: tuple[str, ...],
    share: str | None,
    beta: str,
    allowance: str | None,
    again: bool,
    seed: int | None,
    force: bool,
) -> None:
    """Write ROWS made-up rows that are like the people of SCHEMA, as far as anything was released about them.

    The rows are drawn from the most even table that agrees with everything measured through this ledger: they are free,
    and tell nothing that was not released. Columns that were measured together go together in these rows; everything
    else is spread evenly. --measure buys tables of columns first, so that there is something to know. No alpha is
    needed: --share fixes the price, and how near the tables are follows from it. The same command again finds its
    tables measured already and is free; --again measures them once more.

    \b
        discreet synth people.toml 5000 --out rows.csv --measure age,sex --measure sex,health,limited --share 1/3
        discreet synth people.toml 5 --out - --seed 1
    """
    if bool(measure) == (share is None):
        raise ParameterError(
            "--measure age,sex and --share 1/3 go together: the tables are bought for that much of what is left"
        )
    if again and not measure:
        raise ParameterError("--again goes with --measure: rows are drawn anew every time, and are free")
    if out == STDOUT and as_json:
        raise ParameterError("--out - prints rows, --json a summary: give --out a file")
    place = _checked_place(out, force=force)
    quiet = as_json or out == STDOUT
    where: dict[str, Any] = {"data_path": data_path, "ledger_path": ledger_path, "allowance": allowance}
    found = opened(schema, rehearse=rehearse, as_json=quiet, **where)
    from discreet.session import synthetic_rows

    synthetic_rows(rows, found.schema.domain)  # before anything is bought
    with _written(place) as file:
        bought = _measured(found, measure, share, {"beta": beta, "allowance": allowance}, again)
        with found.output.working(f"drawing {rows:,} rows"):
            frame = bought.session.synthetic(rows, seed=seed, backend="pyarrow")
            _write(frame.add_column(0, "rehearsal", [[True] * rows]) if rehearse else frame, out, file)
    summary = _summary(bought, found, frame.column_names)
    if out == STDOUT:
        for line in _lines(bought, summary):
            click.echo(f"rehearsal | {line}" if rehearse else line, err=True)
        return
    found.output.say(f"{one_line(out.name)}: {rows:,} made-up rows")
    for line in _lines(bought, summary):
        found.output.say(line)
    found.output.result({"file": str(out), "rows": rows, **summary})


# What is bought.


@dataclass(frozen=True, slots=True)
class Bought:
    """The tables that were asked for, each with its answer."""

    session: Session
    tables: list[tuple[tuple[str, ...], Answer]]


def _measured(found: Opened, measure: Sequence[str], share: str | None, how: dict[str, Any], again: bool) -> Bought:
    """Buy the tables as one workload. The session is one with a plan of scopes: it needs no alpha, as shares and rows
    do not; nothing is asked through that plan."""
    from discreet.query import Histogram
    from discreet.session import Session

    session = Session(found.table, found.ledger, scopes=1, **how)
    tables = list(dict.fromkeys(_columns(each) for each in measure))
    for columns in tables:
        for name in columns:
            found.schema.domain.column(name)  # names near misses
    if not tables:
        if not session.known()[0]:
            raise ParameterError(
                "no column was measured yet, so there is nothing to draw rows from: add --measure age,sex --share 1/3 "
                "with columns of this table, or `discreet ask` questions first"
            )
        return Bought(session, [])
    with found.output.working(f"measuring {len(tables)} tables"):
        wanted = [Histogram(columns) for columns in tables]
        _refuse_tangled(session.tangled(wanted))
        answers = session.answer_all(wanted, share=share or "1", again=again)
    return Bought(session, list(zip(tables, answers, strict=True)))


def _refuse_tangled(tables: Sequence[Sequence[str]]) -> None:
    if tables:
        raise ParameterError(
            f"rows cannot follow {_named(tables)} together with the other tables: that would take too large a "
            "hypothesis. Measure fewer columns, or tables that share fewer of them; nothing was spent"
        )


def _named(tables: Sequence[Sequence[str]]) -> str:
    return "; ".join(one_line(", ".join(columns)) for columns in tables)


def _columns(given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ParameterError(f"--measure takes different columns with commas between them, as age,sex; found {given!r}")
    return names


def _summary(bought: Bought, found: Opened, drawn: Sequence[str]) -> dict[str, Any]:
    """What the rows know, and what was paid for it. Columns without bounds are not drawn."""
    from discreet.query import Histogram

    together, left_out = bought.session.known()
    known = {name for scope in together for name in scope}
    left, cap = bought.session.budget()
    return {
        "columns_known_together": [list(scope) for scope in together],
        "columns_left_out": [list(scope) for scope in left_out],
        "columns_spread_evenly": [name for name in drawn if name not in known],
        "columns_not_drawn": [name for name in found.schema.domain if name not in drawn],
        "measured": [{"columns": list(one), "error_bound": answer.error_bound} for one, answer in bought.tables],
        "measured_by": bought.session.measured_by([Histogram(one) for one, _ in bought.tables]),
        "price_nano": sum(answer.price for _, answer in bought.tables),
        "left_nano": left,
        "budget_nano": cap,
    }


def _lines(bought: Bought, summary: dict[str, Any]) -> list[str]:
    cap = summary["budget_nano"]
    price = percent(summary["price_nano"], cap)
    stored = " and ".join(f"entry {entry}" for entry in summary["measured_by"])
    free = f"free: this is the stored release of {stored}" if stored else "free: made of what was released before"
    cost = f"paid: {price} of the budget" if summary["price_nano"] else free
    left_out, even, missing = (summary[f"columns_{which}"] for which in ("left_out", "spread_evenly", "not_drawn"))
    return [
        *(f"measured: {_named([one])}, each count ± {int(answer.error_bound):,}" for one, answer in bought.tables),
        f"known together: {_named(summary['columns_known_together'])}",
        *([f"measured, but too large a hypothesis to follow: {_named(left_out)}"] if left_out else []),
        f"spread evenly: {_named([even]) + ', and ' if even else ''}{_BETWEEN}",
        *([f"not in the rows, since without bounds: {_named([missing])}"] if missing else []),
        f"{cost}; left: {percent(summary['left_nano'], cap)}",
    ]


# The file.


def _checked_place(out: Path, *, force: bool) -> Path:
    """The file to write, links followed, if rows may be put there."""
    if out == STDOUT:
        return out
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise ParameterError(f"--out must end in .csv or .parquet, or be - for CSV on the screen; found {out.name!r}")
    if not out.parent.is_dir():
        raise ParameterError(f"there is no folder {str(out.parent)!r} for {out.name}")
    place = regular(out)
    if not place.parent.is_dir():
        raise ParameterError(f"{out.name} is a link into {str(place.parent)!r}, and there is no such folder")
    if place.exists() and not force:
        raise ParameterError(f"{out.name} is there already: choose another name, or --force to overwrite it")
    return place


@contextmanager
def _written(out: Path) -> Iterator[IO[bytes]]:
    """Where to write; the file gets its name at the end, if nothing went wrong."""
    if out == STDOUT:
        yield sys.stdout.buffer
        return
    part = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)


def _write(frame: Any, out: Path, file: IO[bytes]) -> None:
    if out.suffix.lower() == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(frame, file)
        return
    import csv
    import io

    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(frame.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in frame.columns), strict=True))
        text.flush()
    finally:
        text.detach()
