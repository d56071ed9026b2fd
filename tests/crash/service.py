"""A service under fire: analysts who ask at once while its processes are killed, and the judge of what they were told.

A client asks until it has a reply that ends its request: it repeats a request id over lost connections and restarts.
The judge has the replies of all clients and the entries of the ledger, and nothing else.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.ledger.address import Address
from tests.serving import House, Process

REGIONS = 20
SCHEMA = """
name = "people"
data = "people.csv"
ledger = "{ledger}"
neighbours = "replace-one"
each_row_is_a_person = true

[columns.age]
kind = "number"
low = 0
high = 120
step = 1

[columns.sex]
kind = "category"
levels = ["F", "M"]

[columns.region]
kind = "number"
low = 0
high = {regions}
step = 1
"""
ENDS = {200, 402, 409, 422}
"""Statuses after which a client does not repeat its request."""


@dataclass(frozen=True)
class Told:
    """What one client was told about one request: the status and the bytes of the reply."""

    analyst: str
    request: str
    status: int
    body: bytes
    seconds: float = 0.0

    @property
    def reply(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def prepared(folder: Path, server: str | None, analysts: int, share: Fraction, rows: int = 2_000) -> House:
    """A folder with rows, a schema, a ledger, in a file or in a database, and one key for each analyst."""
    made, draw = House.new(folder), random.Random(7)
    made.state = folder.with_suffix(".state")
    drawn = [(draw.randrange(121), draw.choice("FM"), draw.randrange(REGIONS)) for _ in range(rows)]
    ledger = "people.ledger" if server is None else str(Address(server, folder.name))
    schema = SCHEMA.format(ledger=ledger, regions=REGIONS)
    made.table("people", schema, "age,sex,region", drawn, dp.Budget(1, "1e-6"))
    made.add(*(f"a{place}" for place in range(analysts)), share=share)
    return made


def serving(made: House, price: str = "0.2%", grid: float = 0.01) -> Process:
    """A process of the service, for many who ask often."""
    return Process(made, "--price", price, "--time-grid", str(grid), "--max-rate", "1000000")


# The clients.


@dataclass
class Storm:
    """Analysts who ask the service at these ports, until `ended` is set."""

    ports: Sequence[int]
    keys: dict[str, str]
    told: list[Told] = field(default_factory=list)
    statuses: Counter[object] = field(default_factory=Counter)
    ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def blowing(self) -> Iterator[None]:
        """The clients ask inside the block; on leaving it they end their last requests."""
        named = enumerate(self.keys.items())
        clients = [threading.Thread(target=self._client, args=(place, *each)) for place, each in named]
        for each in clients:
            each.start()
        try:
            yield
        finally:
            self.ended.set()
            for each in clients:
                each.join()

    def _client(self, place: int, analyst: str, key: str) -> None:
        draw, past = random.Random(place), list[tuple[str, str]]()
        for number in itertools.count():
            if self.ended.is_set():
                return
            if past and draw.random() < 0.2:
                request, sql = draw.choice(past)  # the same again: the same bytes, free
            else:
                request, sql = f"{analyst}-{number}", self._question(draw)
                past.append((request, sql))
            self._ended_request(analyst, key, request, sql, draw)

    def _question(self, draw: random.Random) -> str:
        if draw.random() < 0.5:  # one of twelve that all analysts ask: paid once, then free
            return f"SELECT COUNT(*) FROM people WHERE age >= {10 * draw.randrange(12)}"
        low, region = draw.randrange(100), draw.randrange(REGIONS)
        return f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {low + 15} AND region <= {region}"

    def _ended_request(self, analyst: str, key: str, request: str, sql: str, draw: random.Random) -> None:
        """Ask until a reply ends the request."""
        began = time.perf_counter()
        while True:
            status, body = asked(draw.choice(self.ports), key, request, sql)
            with self._lock:
                self.statuses[status] += 1
                if isinstance(status, int):
                    self.told.append(Told(analyst, request, status, body, time.perf_counter() - began))
            if status in ENDS or (self.ended.is_set() and not isinstance(status, int)):
                return
            time.sleep(0.02 + 0.1 * draw.random())


def asked(port: int, key: str, request: str, sql: str) -> tuple[int | str, bytes]:
    """The status and the body of one question; the name of the error if the connection was lost."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": request}
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("POST", "/v1/tables/people/ask", json.dumps({"sql": sql}), headers)
            with connection.getresponse() as reply:
                return reply.status, reply.read()
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__, b""


# The judge.


def judged(told: Sequence[Told], entries: Sequence[dict[str, Any]], caps: dict[str, Fraction]) -> list[str]:
    """What is wrong: nothing, if every paid answer was charged once, to the right analyst, and within the allowance,
    and who was refused had no room for a question.

    entries  the bodies of the ledger
    caps     what each analyst may spend, in the nano-units of the Renyi book
    """
    charges = {each["seq"]: each for each in entries if each["kind"] == "charge"}
    answered = Counter(each["charge"] for each in entries if each["kind"] == "answer")
    wrong = [f"the service failed: {each.body!r}" for each in told if each.status >= 500 and each.status != 503]
    wrong += [f"charge {seq} has {times} answers" for seq, times in answered.items() if times > 1]
    replies, owners = defaultdict[tuple[str, str], set[bytes]](set), defaultdict[int, set[tuple[str, str]]](set)
    for each in told:
        if each.status != 200:
            continue
        replies[each.analyst, each.request].add(each.body)
        reply = each.reply
        for seq in reply["entries"]:
            owners[seq].add((each.analyst, each.request))
            charge = charges.get(seq)
            if charge is None:
                wrong.append(f"{each.request} was told of a charge {seq} that is not there")
            elif charge["allowance"] != each.analyst or charge["by"]["request"] != each.request:
                wrong.append(f"{each.request} was told of charge {seq}, which is another's")
            elif not answered[seq]:
                wrong.append(f"{each.request} has an answer that the ledger does not have")
        paid = sum(charges[seq]["price"]["renyi"] for seq in reply["entries"] if seq in charges)
        if paid != reply["price"]["nano"]:
            wrong.append(f"{each.request} was told a price of {reply['price']['nano']}, and charged {paid}")
    wrong += [f"{request} got different replies" for (_, request), found in replies.items() if len(found) > 1]
    wrong += [f"charge {seq} was given to {len(found)} requests" for seq, found in owners.items() if len(found) > 1]
    spent = Counter[str]()
    for each in charges.values():
        spent[each["allowance"]] += each["price"]["renyi"]
    wrong += [f"{name} spent {spent[name]} of {cap}" for name, cap in caps.items() if spent[name] > cap]
    dearest = max((each["price"]["renyi"] for each in charges.values()), default=0)
    refused = {each.analyst for each in told if each.status == 402}
    wrong += [f"{name} was refused with room for a question" for name in refused if caps[name] - spent[name] >= dearest]
    return wrong


def verdict(storm: Storm, made: House, share: Fraction) -> tuple[list[str], Counter[str]]:
    """Open the ledger as a new process does, verify it, and judge; the kinds of entries beside."""
    with made.ledger() as ledger:
        ledger.verify(CATALOGUE)
        entries, cap = list(ledger.entries()), ledger.spent().caps.renyi
        assert cap is not None
        return judged(storm.told, entries, dict.fromkeys(storm.keys, share * cap)), Counter(e["kind"] for e in entries)
