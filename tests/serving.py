"""A service for tests: a folder with small tables, their ledgers and keys; in this process, or as one of its own."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import discreet as dp
from discreet.serve.app import create_app
from discreet.serve.keys import Keys
from discreet.serve.settings import Settings

SCHEMA = """
name = "{name}"
data = "{name}.csv"
ledger = "{ledger}"
neighbours = "replace-one"
each_row_is_a_person = true

[columns.age]
kind = "number"
low = 0
high = 99
step = 1

[columns.sex]
kind = "category"
levels = ["F", "M"]

[columns.town]
kind = "category"
levels = ["north", "south", "<script>alert(1)</script>"]
other = "elsewhere"

[columns.pay]
kind = "number"
low = 0
high = 1000
step = 10
"""
TOWNS = ("north", "south", "south")
COUNT = "SELECT COUNT(*) FROM people WHERE age >= 50"
GROUPS = "SELECT town, COUNT(*) FROM people GROUP BY town"


@dataclass
class House:
    """A folder with schemas, rows and ledgers, and the keys that were made for it. state: where the marks are."""

    folder: Path
    schemas: list[Path] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    state: Path = Path()

    def __post_init__(self) -> None:
        self.state = self.folder.parent / "marks of the house"

    @staticmethod
    def new(folder: Path) -> House:
        folder.mkdir(mode=0o700, parents=True)
        return House(folder)

    def table(
        self, name: str, schema: str, columns: str, rows: Iterable[Sequence[Any]], budget: dp.Budget | None = None
    ) -> None:
        """A table with its rows, its schema and its ledger."""
        (self.folder / f"{name}.toml").write_text(schema)
        with (self.folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([columns.split(","), *rows])
        (self.folder / f"{name}.csv").chmod(0o600)
        self.opened(self.folder / f"{name}.toml", budget or dp.Budget(2, "1e-6"))

    def opened(self, path: Path, budget: dp.Budget) -> None:
        """A ledger for a schema whose rows are there."""
        path.chmod(0o600)
        schema = dp.Schema.read(path)
        assert schema.ledger is not None
        dp.Ledger.create(schema.ledger, budget, schema.table(), state_dir=self.state).close()
        self.schemas.append(path)

    @property
    def keys_file(self) -> Path:
        return self.folder / "keys.json"

    def ledger(self, name: str = "people") -> dp.Ledger:
        schema = dp.Schema.read(self.folder / f"{name}.toml")
        assert schema.ledger is not None
        return dp.Ledger.open(schema.ledger, state_dir=self.state)

    def add(self, *names: str, **given: Any) -> str:
        """A key of each name, the last one's text; given: as for `Keys.add_analyst`."""
        ledgers = {path.stem: self.ledger(path.stem) for path in self.schemas}
        for name in names:
            self.keys[name] = Keys(self.keys_file).add_analyst(ledgers, name, **given)["key"]
        for each in ledgers.values():
            each.close()
        return self.keys[names[-1]]

    def settings(self, **given: Any) -> Settings:
        quick: dict[str, Any] = {"time_grid": 0.0, "job_grid": 0.0, "log": self.folder / "access.jsonl"}
        quick["state_dir"] = self.state
        return Settings(tuple(self.schemas), self.keys_file, **{**quick, **given})

    def log(self) -> list[dict[str, Any]]:
        path = self.folder / "access.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def house(tmp_path: Path, *names: str, ledger: str | None = None, rows: int = 2000, secret: str = "north") -> House:
    """A new folder with these tables, `people` unless they are named; secret: the town of one row."""
    made = House.new(tmp_path / "house")
    lines = [(at * 7 % 100, "FM"[at % 2], ("north", "south")[at % 3 > 0], at % 90 * 10) for at in range(rows - 1)]
    for name in names or ("people",):
        schema = SCHEMA.format(name=name, ledger=ledger or f"{name}.ledger")
        made.table(name, schema, "age,sex,town,pay", [*lines, (86, "F", secret, 777)])
    made.add("ana", "bob", share="1/4")
    made.add("olga", role="owner")
    return made


class Local:
    """The application in this process, asked over ASGI."""

    def __init__(self, made: House, **given: Any) -> None:
        self.house, self.app = made, create_app(made.settings(**given))
        self.service = self.app.state.service

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *error: object) -> None:
        assert self.service.close(30)

    def call(self, method: str, path: str, *, key: str | None = "ana", **given: Any) -> httpx.Response:
        """One request, with the key of this name; None: without one."""
        return asyncio.run(self._call(method, path, key, given))

    async def _call(self, method: str, path: str, key: str | None, given: dict[str, Any]) -> httpx.Response:
        headers = dict(given.pop("headers", {}))
        if key is not None:
            headers.setdefault("Authorization", f"Bearer {self.house.keys.get(key, key)}")
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://desk.test", timeout=120) as client:
            return await client.request(method, path, headers=headers, **given)

    def ask(self, sql: str = COUNT, *, key: str = "ana", request: str | None = None, **given: Any) -> httpx.Response:
        named = {} if request is None else {"Idempotency-Key": request}
        return self.call("POST", "/v1/tables/people/ask", key=key, json={"sql": sql, **given}, headers=named)


class Process:
    """`discreet serve` as a process of its own, on a port that is free; `start` again after `kill` or `stop`."""

    def __init__(self, made: House, *options: str) -> None:
        self.house, self.options, self.url, self.port = made, options, "", 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "discreet", "serve", *map(str, self.house.schemas), "--port", str(self.port)]
        command += ["--log", str(self.house.folder / "access.jsonl"), *self.options]
        there = {**os.environ, "DISCREET_STATE": str(self.house.state)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=there)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if " at http://" not in line:
            self.process.kill()
            raise RuntimeError(f"{line}{self.process.communicate()[1]}")
        self.url = line.partition(" at ")[2].partition(";")[0].strip()
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """As a power cut would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> tuple[int, str]:
        """Gracefully; its exit code, and what it said."""
        self.process.terminate()
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out + err

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def post(self, path: str, body: Any, key: str = "ana", **headers: str) -> tuple[int, bytes]:
        named = {"Authorization": f"Bearer {self.house.keys.get(key, key)}", "Content-Type": "application/json"}
        asked = urllib.request.Request(self.url + path, json.dumps(body).encode(), {**named, **headers})
        try:
            with urllib.request.urlopen(asked, timeout=120) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()


def until(true: Any, seconds: float = 60.0) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.02)
