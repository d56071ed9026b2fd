"""The keys of a service: `discreet analyst` add, list and revoke. They are changed while the service runs, too."""

from __future__ import annotations

import datetime
import re
import time
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.kit import JSON, CommandGroup, Output, ParameterError

PLACE = click.Path(path_type=Path)
_SPANS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
_MAY = "ask,fit,learn,synth,suggest"


keys_option = click.option(
    "--keys", "keys_path", type=PLACE, help="File of keys.  [default: keys.json beside the first schema]"
)


@click.group(cls=CommandGroup)
def analyst() -> None:
    """Make, list and revoke the keys of a service.

    A key says what an analyst may do, and how much of each budget they may spend.

    PLACE is a schema, or a folder with schemas, as for `discreet serve`. An analyst has an allowance of the same name
    in every ledger there: it holds for questions, workloads, models, rules, bounds and synthetic rows together.

    \b
        discreet analyst add people.toml ana --share 1/4
        discreet analyst list people.toml
        discreet analyst revoke people.toml ana
    """


@analyst.command()
@click.argument("place", type=PLACE)
@click.argument("name")
@click.option("--share", help="Share of each budget, as 1/4.  [default: as before; all of it for a new name]")
@click.option("--may", default=_MAY, show_default=True, help="What the key may be used for.")
@click.option("--tables", metavar="A,B", help="Only these tables.  [default: all of the service]")
@click.option("--expires", help="After this time: 12h, 30d, 8w, or at a day: 2030-12-31.  [default: never]")
@click.option("--owner", is_flag=True, help="A key of an owner: sees all spending and makes keys, asks nothing.")
@keys_option
@JSON
def add(place: Path, name: str, owner: bool, keys_path: Path | None, as_json: bool, **given: Any) -> None:
    """Make a key for NAME and show it, once. The service accepts it from the next request on.

    A second key of the same name shares the allowance: add the new one, hand it over, revoke the old one by its id.

    \b
        discreet analyst add people.toml ana --share 1/4 --may ask,fit --expires 90d
        discreet analyst add people.toml olga --owner
    """
    from discreet.serve.keys import ANALYST, OWNER, Keys

    found, keys_file = _schemas(place, keys_path)
    if owner and given["share"] is not None:
        raise ParameterError("an owner asks nothing and has no share: leave out --share or --owner")
    made = Keys(keys_file).add_analyst(
        {schema.name: dp.Ledger.open(schema.ledger) for schema in found},
        name,
        role=OWNER if owner else ANALYST,
        share=given["share"],
        may=_listed(given["may"]) or (),
        tables=_listed(given["tables"]),
        expires=_moment(given["expires"]),
    )
    output = Output(as_json=as_json)
    output.say(f"{made['role']} {name}, key {made['id']}: shown now and never again")
    output.copyable(made["key"])
    output.result(made)


@analyst.command("list")
@click.argument("place", type=PLACE)
@keys_option
@JSON
def list_(place: Path, keys_path: Path | None, as_json: bool) -> None:
    """The keys, and what was spent under each name.

    \b
        discreet analyst list people.toml
    """
    from discreet.serve.keys import Keys

    found, keys_file = _schemas(place, keys_path)
    keys, output = Keys(keys_file), Output(as_json=as_json)
    records = [key.record(keys.now()) for key in keys.read().values()]
    output.table(
        ("name", "key", "role", "may", "state"),
        [(each["name"], each["id"], each["role"], ", ".join(each["may"]), _state(each)) for each in records],
    )
    used = {schema.name: dp.Ledger.open(schema.ledger, look=True).allowances() for schema in found}
    rows = [
        (
            table,
            each.name,
            dp.exact.percent(each.share),
            "-" if each.part is None else dp.exact.percent(each.part, up=True),
            each.at_most or "0",
        )
        for table, uses in used.items()
        for each in uses
    ]
    if rows:
        output.table(("table", "name", "may use", "used", "epsilon so far, at most"), rows)
    spent = {
        table: {
            each.name: {
                "share": str(each.share),
                "used": None if each.part is None else float(each.part),
                "epsilon": each.epsilon,
            }
            for each in uses
        }
        for table, uses in used.items()
    }
    output.result({"keys": records, "spent": spent})


@analyst.command()
@click.argument("place", type=PLACE)
@click.argument("name")
@keys_option
def revoke(place: Path, name: str, keys_path: Path | None) -> None:
    """Revoke all keys of NAME, or one key by its id.

    The service refuses them from the next request on. What was spent stays spent, and the allowance stays in the
    ledger.

    \b
        discreet analyst revoke people.toml ana
    """
    from discreet.serve.keys import Keys

    _, keys_file = _schemas(place, keys_path)
    ended = Keys(keys_file).revoke(name)
    words = ", ".join(f"{key.id} of {key.name}" for key in ended) or "none: they were revoked before"
    Output().say(f"revoked: {words}")


def _schemas(place: Path, keys_path: Path | None) -> tuple[list[Any], Path]:
    """The schemas at a place, each with a ledger that is there; and the file of the keys."""
    from discreet.schema import read_with_ledger, require_ledger
    from discreet.serve.settings import Settings

    paths = Settings.schemas_in([place])
    found = []
    for path in paths:
        schema, where = read_with_ledger(path)
        require_ledger(schema, where, path)
        found.append(schema)
    return found, keys_path or Settings.keys_beside(paths)


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(each.strip() for each in text.split(",") if each.strip())


def _moment(text: str | None) -> float | None:
    """The time that --expires says, in seconds since 1970."""
    if text is None:
        return None
    if (span := re.fullmatch("([0-9]{1,5})([hdw])", text)) is not None:
        return time.time() + int(span[1]) * _SPANS[span[2]]
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        raise ParameterError(f"--expires is 12h, 30d, 8w or a day as 2030-12-31; found {text!r}") from None
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp()


def _state(record: dict[str, Any]) -> str:
    if record["revoked"] is not None:
        return "revoked"
    if record["expires"] is None:
        return "good"
    day = datetime.datetime.fromtimestamp(record["expires"], datetime.UTC).date().isoformat()
    return f"good until {day}" if record["alive"] else f"expired {day}"
