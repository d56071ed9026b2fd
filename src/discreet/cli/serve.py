"""`discreet serve`: one process that owns rows and ledgers, and answers over HTTP and a page."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.analyst import PLACE, keys_option
from discreet.cli.kit import Command, Output, ParameterError

_NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart")


@click.command(cls=Command)
@click.argument("places", nargs=-1, type=PLACE, metavar="[FOLDER_OR_SCHEMA]...")
@click.option("--demo", type=PLACE, help="If it is new, make this folder with the bundled people and two keys.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65_535), help="0: any that is free.")
@click.option("--socket", type=PLACE, help="Listen at this Unix socket instead.")
@click.option("--behind-proxy", is_flag=True, help="A proxy with TLS stands in front: any --host may be bound.")
@click.option("--time-grid", default=0.25, show_default=True, type=click.FloatRange(0, 60), help="Seconds; 0: no grid.")
@click.option("--rehearsal", is_flag=True, help="Everybody may ask made-up rows, without a key.")
@click.option("--price", help="What a question costs, as a part of the budget.  [default: 1%]")
@click.option("--beta", default="0.05", show_default=True, help="Probability that any bound ever given fails.")
@click.option("--log", type=PLACE, help="File of the access log.  [default: the error stream]")
@click.option("--max-cells", type=click.IntRange(1, 1_000_000), help="Numbers of one answer.  [default: 10,000]")
@click.option("--max-rate", type=click.IntRange(1), help="Requests per key and minute.  [default: 600]")
@keys_option
def serve(places: tuple[Path, ...], demo: Path | None, keys_path: Path | None, **options: Any) -> None:
    """Serve tables to analysts, who never see rows.

    They ask by plain HTTP, on a page, or with a Python client.

    FOLDER_OR_SCHEMA names schemas, each with its rows and its ledger (a file, or an address in PostgreSQL); a folder
    stands for every .toml file in it. `discreet analyst add` makes keys. Nothing else is needed: the ledgers are the
    state. Ctrl-C, or SIGTERM, finishes the running answer, refuses new ones and ends.

    The service listens at this machine alone. For others put a proxy with TLS in front: docs/service.md.

    \b
        discreet serve people.toml
        discreet serve --demo discreet-demo
        discreet serve tables/ --port 9000 --rehearsal --log access.jsonl
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ParameterError(f"{', '.join(missing)} are missing: pip install 'discreet[service]'")
    _require_loopback(options["host"], proxied=options["behind_proxy"])
    output = Output()
    if demo is not None:
        places = (*places, demo)
        _make_demo(demo, output)
    if not places:
        raise ParameterError("serve what? Name schemas or folders; --demo discreet-demo makes one to try")
    _run(_settings(places, keys_path, demo is not None, options), options, output)


def _settings(places: tuple[Path, ...], keys_path: Path | None, demo: bool, options: dict[str, Any]) -> Any:
    from discreet.serve.settings import Limits, Settings

    schemas = Settings.schemas_in(places)
    keys = keys_path or Settings.keys_beside(schemas)
    if not keys.exists():
        raise ParameterError(f"there are no keys at {keys.name}: `discreet analyst add {places[0]} NAME` makes one")
    given = {"cells": options["max_cells"], "requests": options["max_rate"]}
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    alike = {name: options[name] for name in ("time_grid", "price", "beta", "behind_proxy", "log")}
    return Settings(schemas, keys, rehearsal=options["rehearsal"] or demo, limits=limits, **alike)


def _run(settings: Any, options: dict[str, Any], output: Output) -> None:
    """Open the tables, then listen until a signal ends it."""
    import asyncio

    import uvicorn

    from discreet.serve.app import create_app
    from discreet.serve.settings import PATIENCE

    with output.working("opening ledgers and rows"):
        app = create_app(settings)
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold rows
    service = app.state.service

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                output.say(f"discreet serves {', '.join(service.desks)} at {at}; Ctrl-C ends it")
                sys.stdout.flush()

        def handle_exit(self, sig: int, frame: Any) -> None:
            service.stopping = True
            threading.Thread(target=service.close, daemon=True).start()
            super().handle_exit(sig, frame)

    place = {"uds": str(options["socket"])} if options["socket"] else {"host": options["host"], "port": options["port"]}
    config = uvicorn.Config(
        app,
        **place,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(PATIENCE),
        http="h11",
        h11_max_incomplete_event_size=16_384,  # of all headers
        proxy_headers=False,
        lifespan="on",
    )
    sockets = None
    at = options["socket"]
    if not options["socket"]:
        sockets = [config.bind_socket()]
        at = f"http://{options['host']}:{sockets[0].getsockname()[1]}"
    for each in (signal.SIGINT, signal.SIGTERM):  # the server repeats the signal that ended it
        signal.signal(each, lambda number, frame: None)
    asyncio.run(Server(config).serve(sockets))
    service.close()
    output.say("ended: what was charged is in the ledgers")


def _require_loopback(host: str, *, proxied: bool) -> None:
    """Refuse an address that others reach, unless a proxy with TLS stands in front: keys would travel in the clear."""
    try:
        safe = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        safe = False
    if not safe and not proxied:
        raise ParameterError(
            f"--host {host} is not this machine alone, and keys would travel in the clear: put a proxy with TLS in "
            "front and say --behind-proxy"
        )


def _make_demo(folder: Path, output: Output) -> None:
    """The bundled people in a new folder, with a ledger and a key for each role, which are shown once."""
    from discreet import example
    from discreet.serve.keys import OWNER, Keys
    from discreet.serve.settings import Settings

    if folder.exists():
        more = f"`discreet analyst add {folder} NAME` makes more"
        output.say(f"{folder.name} is there already; its keys were shown when it was made, {more}")
        return
    folder.mkdir(mode=0o700, parents=True)
    path = example.write_people(folder)
    schema = dp.Schema.read(path)
    assert schema.ledger is not None
    with dp.Ledger.create(schema.ledger, dp.Budget(1, "1e-6"), schema.table()) as ledger:
        keys = Keys(Settings.keys_beside([path]))
        made = [
            keys.add_analyst({schema.name: ledger}, "ana", share="1/2"),
            keys.add_analyst({schema.name: ledger}, "olga", role=OWNER),
        ]
    output.say(f"{folder.name}: the bundled people, (epsilon 1, delta 1e-6), and two keys, shown now and never again")
    for each in made:
        output.copyable(f"{each['role']:8}{each['key']}")
