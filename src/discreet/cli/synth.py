"""`discreet synth`: made-up rows drawn from what was released.

The file is opened under another name before anything is bought and gets its own when it is whole: nothing is paid for
rows that cannot be written, and half a file is never left behind. The rows of a rehearsal have a column more that says
so, in front, since a file has no other place for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import click

import discreet as dp
from discreet.cli.files import regular, reserved
from discreet.cli.kit import Command, OpenTable, ParameterError, again_option, allowance_option, one_line, table_options
from discreet.cli.price_view import Remaining
from discreet.modelling import write_rows

STDOUT = Path("-")
_BETWEEN = "everything between columns that are not known together"


@click.command(cls=Command)
@table_options
@click.argument("rows", type=click.IntRange(min=1))
@click.option(
    "--out", default="-", type=click.Path(path_type=Path), help="rows.csv or rows.parquet; else CSV is printed."
)
@click.option("--measure", multiple=True, metavar="COLUMNS", help="Buy this table first: age,sex. May be repeated.")
@click.option(
    "--share", help="Of the remaining budget, for all tables, such as 1/3. Without --measure it chooses them."
)
@click.option("--beta", default="0.05", show_default=True, help="With --measure: the probability that a bound fails.")
@allowance_option
@again_option
@click.option(
    "--seed", type=click.IntRange(min=0), help="Draw the same rows again, as long as nothing else is released."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def synth(
    schema: Path, rows: int, out: Path, measure: tuple[str, ...], share: str | None, force: bool, **place: Any
) -> None:
    """Write synthetic rows that resemble the people of SCHEMA.

    The rows are drawn from the most even table that agrees with everything measured through this ledger: they are
    free, and reveal nothing that was not released. Columns that were measured together go together in these rows;
    everything else is spread evenly. If nothing was measured yet, a tenth of the budget buys tables that are chosen
    privately: every column (numbers and dates in ranges), pairs that connect them, and some triples; --share buys
    such tables for another share of what is left. --measure names the tables to buy. No alpha is needed: --share
    fixes the price, and the accuracy of the tables follows from it. The same command again finds its tables measured
    already and is free; --again measures them once more.

    \b
        discreet synth people.toml 5000 --out new.csv
        discreet synth people.toml 5000 --out rows.csv --measure age,sex --measure sex,health,limited --share 1/3
        discreet synth people.toml 5 --out - --seed 1
    """
    beta, again, seed = (place.pop(name) for name in ("beta", "again", "seed"))
    if measure and share is None:
        raise ParameterError("--measure age,sex needs --share 1/3: the tables are bought for that much of what is left")
    if again and not measure:
        raise ParameterError("--again goes with --measure: rows are drawn anew every time, and are free")
    if out == STDOUT and place["as_json"]:
        raise ParameterError("--out - prints rows, --json a summary: give --out a file")
    _check_place(out, force=force)
    at = OpenTable.open(schema, **place)
    dp.session.synthetic_rows(rows, at.schema.domain)  # before anything is bought for them
    tables = [dp.Histogram(columns) for columns in dict.fromkeys(map(_columns, measure))]
    for name in {name for table in tables for name in table.columns}:
        at.schema.domain.column(name)  # names near misses

    def draw(file: IO[bytes], kind: str) -> dict[str, Any]:
        """Buy the tables, then write the rows."""
        session, answers, chosen = _measure(at, tables, beta, share=share, again=again)
        with at.output.working(f"drawing {rows:,} rows"):
            frame = session.synthetic(rows, seed=seed, backend="pyarrow")
            write_rows(frame, kind, file, rehearsal=at.output.rehearsal)
        return _summary(at, session, tables, answers, frame.column_names, chosen)

    if out == STDOUT:
        for line in lines_of(draw(sys.stdout.buffer, "csv")):
            click.echo(f"{at.output.mark}{line}", err=True)
        return
    with reserved(out, force=force) as draft:
        with draft.part.open("wb") as file:
            summary = draw(file, out.suffix.lower()[1:])
        draft.keep()
    for line in (f"{one_line(out.name)}: {rows:,} made-up rows", *lines_of(summary)):
        at.output.say(line)
    at.output.result({"file": str(out), "rows": rows, **summary})


def _check_place(out: Path, *, force: bool) -> None:
    """Refuse a place where rows may not be put."""
    if out == STDOUT:
        return
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise ParameterError(f"--out must end in .csv or .parquet, or be - for CSV on the screen; found {out.name!r}")
    if not out.parent.is_dir():
        raise ParameterError(f"there is no folder {str(out.parent)!r} for {out.name}")
    place = regular(out)
    if not place.parent.is_dir():
        raise ParameterError(f"{out.name} is a link into {str(place.parent)!r}, and there is no such folder")
    if place.exists() and not force:
        raise ParameterError(f"{out.name} exists already: choose another name, or --force to overwrite it")


def _columns(given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ParameterError(
            f"--measure takes different columns with commas between them, such as age,sex; found {given!r}"
        )
    return names


def _measure(
    at: OpenTable, tables: list[dp.Histogram], beta: str, *, share: str | None, again: bool
) -> tuple[dp.Session, list[dp.Answer], tuple[int, int] | None]:
    """Buy the tables as one workload, or some that are chosen privately, if a share was given or nothing is known yet:
    then also the entry of that charge and its price. The session is one with a plan of scopes: it needs no alpha, as
    shares and rows do not; nothing is asked through that plan."""
    session = dp.Session(at.table, at.ledger, scopes=1, beta=beta, allowance=at.allowance)
    if not tables:
        if share is None and session.known()[0]:
            return session, [], None
        with at.output.working("choosing and measuring tables"):
            return session, [], session.choose_tables(share)
    with at.output.working(f"measuring {len(tables)} tables"):
        if tangled := session.tangled(tables):
            raise ParameterError(
                f"rows cannot follow {_named(tangled)} together with the other tables: that would take too large a "
                "hypothesis. Measure fewer columns, or tables that share fewer of them; nothing was spent"
            )
        return session, session.answer_all(tables, share=share or "1", again=again), None


def _named(tables: Sequence[Sequence[str]]) -> str:
    return "; ".join(one_line(", ".join(columns)) for columns in tables)


def _summary(
    at: OpenTable,
    session: dp.Session,
    tables: Sequence[dp.Histogram],
    answers: Sequence[dp.Answer],
    drawn: list[str],
    chosen: tuple[int, int] | None,
) -> dict[str, Any]:
    """What the rows know, and what was paid for it. Columns without bounds are not drawn."""
    together, left_out = session.known()
    known = {name for scope in together for name in scope}
    left, cap = session.budget()
    measured = zip((table.columns for table in tables), answers, strict=True)
    return {
        "columns_known_together": [list(scope) for scope in together],
        "columns_left_out": [list(scope) for scope in left_out],
        "columns_spread_evenly": [name for name in drawn if name not in known],
        "columns_not_drawn": [name for name in at.schema.domain if name not in drawn],
        "measured": [{"columns": list(columns), "error_bound": answer.error_bound} for columns, answer in measured],
        "measured_by": session.measured_by(tables) if chosen is None else [chosen[0]],
        "price_nano": sum(answer.price for answer in answers) if chosen is None else chosen[1],
        "left_nano": left,
        "budget_nano": cap,
    }


def lines_of(summary: dict[str, Any]) -> list[str]:
    """The summary for people."""
    left = Remaining(summary["left_nano"], summary["budget_nano"])
    stored = " and ".join(f"entry {entry}" for entry in summary["measured_by"])
    free = f"free: this is the stored release of {stored}" if stored else "free: made of what was released before"
    cost = f"paid: {left.cost(summary['price_nano'])} of the budget" if summary["price_nano"] else free
    left_out, even, missing = (summary[f"columns_{which}"] for which in ("left_out", "spread_evenly", "not_drawn"))
    return [
        *(
            f"measured: {_named([each['columns']])}, each count ± {int(each['error_bound']):,}"
            for each in summary["measured"]
        ),
        f"known together: {_named(summary['columns_known_together'])}",
        *([f"measured, but too large a hypothesis to follow: {_named(left_out)}"] if left_out else []),
        f"spread evenly: {_named([even]) + ', and ' if even else ''}{_BETWEEN}",
        *([f"not in the rows, since without bounds or levels: {_named([missing])}"] if missing else []),
        f"{cost}; {left}",
    ]
