"""The desks and the keys of one process, who holds a request, and what is checked before a service starts."""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import re
import stat
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from discreet.core import (
    KeyRefused,
    NotFound,
    NotPermitted,
    ParameterError,
    ServiceFailed,
    TooBusy,
    code_version,
)
from discreet.ledger import state_directory
from discreet.schema import read_schema
from discreet.serve.desk import Desk, OpenSchema
from discreet.serve.jobs import Job
from discreet.serve.keys import GUEST, Key, Keys
from discreet.serve.settings import PATIENCE, Limits, Settings

COOKIE = "discreet"
COOKIE_LIFE = 8 * 3600
_TABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SAFE = ("GET", "HEAD")


class Rates:
    """How much each key took in the last minute: requests, seconds of processor time for prices, and bytes of replies
    that the ledger keeps, paid or free. Each is a leaky bucket: full after the limit at once, empty after a minute.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock = limits, threading.Lock()
        self._most = {"requests": limits.requests, "seconds of pricing": limits.pricing, "bytes kept": limits.kept}
        self._levels: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        self._inside: Counter[str] = Counter()

    def request(self, key: Key) -> None:
        """Count a request; TooBusy if this key took too much of anything."""
        for what, most in self._most.items():
            if self.take(key, what, float(what == "requests")) > most:
                raise TooBusy(f"this key took more than {most:,g} {what} in a minute", retry_after=5)

    def enter(self, key: Key) -> Callable[[], None]:
        """Count a request that is worked on, until what comes back is called; TooBusy if there are too many."""
        most = self._limits.concurrent_each
        with self._lock:
            if self._inside[key.id] >= most:
                raise TooBusy(f"{most} requests of this key are worked on: wait for one of them", retry_after=1)
            self._inside[key.id] += 1
        return lambda: self._leave(key)

    def _leave(self, key: Key) -> None:
        with self._lock:
            self._inside[key.id] -= 1

    def take(self, key: Key, what: str, amount: float) -> float:
        """Count an amount; how much it is now."""
        most = self._most[what]
        with self._lock:
            level, then = self._levels[key.id, what]
            now = time.monotonic()
            kept = max(0.0, level - (now - then) * most / 60) + amount
            # What was refused does not count, so that a client that goes on asking is served again.
            self._levels[key.id, what] = (min(kept, 2 * most + amount), now)
            return kept


class Service:
    """One process: its desks by name, its keys, its settings. `begin` opens everything, `close` ends it gracefully."""

    COOKIE = COOKIE

    def __init__(self, settings: Settings) -> None:
        check_start(settings)
        self.settings, self.keys = settings, Keys(settings.keys)
        self.rates = Rates(settings.limits)
        self.stopping, self._deadline = False, math.inf
        self._secret = self.keys.cookie_secret()
        self.desks: dict[str, Desk] = {}
        self.rehearsals: dict[str, Desk] = {}
        self._renewing = threading.Lock()
        for path in settings.schemas:
            found = OpenSchema.at(path, settings.state_dir)
            name = found.schema.name
            if not _TABLE.fullmatch(name) or name in self.desks:
                words = "a table of a service has a name of its own, of letters, digits and _ . -"
                raise ParameterError(f"{path.name}: {words}; found {name!r}")
            if found.ledger.rolled_back():
                raise ParameterError(f"the ledger of {name} does not agree with its mark: `discreet ledger reconcile`")
            self.desks[name] = Desk(
                found, settings, meter=self.rates.take, alive=lambda key: self.keys.holder(key.id) is not None
            )
            if settings.rehearsal:
                self._rehearse(name)

    def close(self, patience: float = PATIENCE) -> bool:
        """Refuse what is new, finish what runs; whether all of it ended in time, which is counted from the first
        call."""
        self.stopping = True
        self._deadline = min(self._deadline, time.monotonic() + patience)
        desks = [*self.desks.values(), *self.rehearsals.values()]
        for desk in desks:  # what waits at any of them is refused now
            desk.close(0)
        ended = [desk.close(max(0.0, self._deadline - time.monotonic())) for desk in desks]
        return all(ended)

    def desk(self, holder: Key, name: str) -> Desk:
        """The desk of a table that this key is for."""
        if name not in self.desks or not holder.reaches(name):
            raise NotFound("there is no such table for this key")
        return self.desks[name]

    def rehearsal(self, name: str) -> Desk:
        """The desk of made-up rows."""
        if name not in self.rehearsals:
            raise NotFound("there is no rehearsal of such a table here")
        return self.rehearsals[name]

    def tables(self, holder: Key) -> list[str]:
        """The tables that a key is for; for an analyst, those in whose ledger the name has an allowance."""
        return [name for name, desk in self.desks.items() if holder.reaches(name) and desk.counts(holder)]

    def greeting(self, holder: Key) -> dict[str, Any]:
        """Who the holder is here, and the tables there are."""
        you = {"name": holder.name, "role": holder.role, "may": list(holder.may)}
        return {"tables": self.tables(holder), "you": you, "version": code_version()}

    def damaged(self) -> bool:
        """Whether a ledger does not agree with its mark: nothing is charged there."""
        return any(desk.ledger.rolled_back() for desk in self.desks.values())

    def guest_price(self, table: str, sql: str) -> dict[str, Any]:
        """A price on made-up rows, for everybody."""
        return self._guest(table).price(GUEST, sql)

    def begin_guest_ask(self, table: str, sql: str) -> Job:
        """The job of a question about made-up rows, for everybody; when their budget is nearly spent, a new rehearsal
        begins first."""
        desk = self._guest(table)
        price = desk.price(GUEST, sql)
        if not price["fits"] and not price["above_max_price"]:
            with self._renewing:
                if self.rehearsals[table] is desk:
                    self._rehearse(table)
            desk.close()
        return self.rehearsals[table].begin_ask(GUEST, sql)

    def _rehearse(self, name: str) -> None:
        """Begin a rehearsal, with rows and a ledger of its own."""
        real = self.desks[name]
        made_up = OpenSchema.rehearsal(real.schema, real.ledger.budget, real.size)
        self.rehearsals[name] = Desk(made_up, self.settings, meter=self.rates.take)

    def _guest(self, table: str) -> Desk:
        self.rates.request(GUEST)
        return self.rehearsal(table)

    # Keys, for an owner.

    def list_keys(self, holder: Key) -> list[dict[str, Any]]:
        """The keys that this owner manages, without their hashes."""
        holder.require_owner()
        now = self.keys.now()
        return [key.record(now) for key in self.keys.read().values() if holder.manages(key)]

    def add_key(self, holder: Key, name: str, *, tables: Iterable[str] | None = None, **given: Any) -> dict[str, Any]:
        """Make a key of an analyst and its allowance; `key` is told now and never again. An owner for some tables
        makes keys for these."""
        holder.require_owner()
        ledgers = {each: self.desks[each].ledger for each in self.tables(holder)}
        named = ledgers if tables is None and holder.tables is not None else tables
        return self.keys.add_analyst(ledgers, name, tables=named, **given)

    def revoke_key(self, holder: Key, name_or_id: str) -> list[str]:
        """Revoke a key by its id, or all of a name; the ids."""
        holder.require_owner()
        found = [key for key in self.keys.read().values() if name_or_id in (key.id, key.name)]
        if any(key.owner for key in found if holder.manages(key)):
            raise NotPermitted("keys of owners are revoked on the command line: `discreet analyst revoke`")
        return [key.id for key in self.keys.revoke(name_or_id, by=holder)]

    # Who holds a request.

    def holder(self, request: Request) -> Key:
        """The holder of the key that a request brings, in its Authorization header or by its cookie."""
        if self.stopping:
            raise TooBusy("the service is stopping: ask again when it runs", retry_after=10)
        given = request.headers.getlist("authorization")
        if given:
            kind, _, text = given[0].partition(" ")
            if len(given) > 1 or kind.lower() != "bearer":
                raise KeyRefused("a key is sent once, as: Authorization: Bearer KEY")
            try:
                found = self.keys.find(text.strip())
            except ParameterError:  # the file of keys is damaged: an owner's business
                raise ServiceFailed() from None
        else:
            found = self._by_cookie(request)
        request.state.key = found.id
        if not hasattr(request.state, "leave"):  # the guard calls it when the reply has left
            request.state.leave = self.rates.enter(found)
        self.rates.request(found)
        return found

    def _by_cookie(self, request: Request) -> Key:
        value = request.cookies.get(COOKIE)
        if value is None:
            raise KeyRefused("a key is needed: send it as Authorization: Bearer KEY, or sign in")
        if request.method not in _SAFE and not same_site(request):
            raise NotPermitted("this came from another site: sign in and ask from the page itself")
        id_, _, rest = value.partition(".")
        expires, _, sign = rest.partition(".")
        known = self.keys.holder(id_)
        expected = self._sign(id_, expires, "" if known is None else known.hash)
        good = hmac.compare_digest(sign.encode("utf-8", "replace"), expected.encode("ascii"))
        if not good or known is None or not expires.isascii() or not expires.isdigit() or int(expires) < time.time():
            raise KeyRefused("you are signed out: sign in with your key")
        return known

    def cookie(self, key: Key) -> str:
        """The value of the cookie that stands for a key, for some hours."""
        expires = str(int(time.time()) + COOKIE_LIFE)
        return f"{key.id}.{expires}.{self._sign(key.id, expires, key.hash)}"

    def form_token(self, request: Request) -> str:
        """What every form carries that is made for the cookie of this request: another site cannot read it."""
        value = f"form.{request.cookies.get(COOKIE, '')}".encode("utf-8", "replace")
        return hmac.new(self._secret, value, hashlib.sha256).hexdigest()

    def check_form(self, request: Request, token: str) -> None:
        """Refuse a form that was not made for the cookie of this request."""
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.form_token(request).encode("ascii")):
            raise NotPermitted("this form is not from a page that you have open: open the page again")

    def _sign(self, id_: str, expires: str, key_hash: str) -> str:
        text = f"{id_}.{expires}.{key_hash}".encode("utf-8", "replace")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def same_site(request: Request) -> bool:
    """Whether a request comes from the service's own page, as far as a browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] == request.headers.get("host")


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def holder_of(request: Request) -> Key:
    return service_of(request).holder(request)


Holder = Annotated[Key, Depends(holder_of)]


async def owner_of(found: Holder) -> Key:
    found.require_owner()
    return found


Owner = Annotated[Key, Depends(owner_of)]


def check_start(settings: Settings) -> None:
    """Refuse to start where others could read the rows or the keys, or where a backup of the ledger would bring back
    its mark too."""
    marks = state_directory(settings.state_dir)
    for path in settings.schemas:
        schema = read_schema(path)
        for source in schema.sources:
            _require_own(source, "the rows")
        if isinstance(schema.ledger, Path):
            _require_own(schema.ledger, "the ledger")
            folder = schema.ledger.resolve().parent
            if marks.resolve().is_relative_to(folder) and not Path.home().resolve().is_relative_to(folder):
                raise ParameterError(
                    f"the mark of {schema.ledger.name} would lie in the ledger's own folder, where a restored copy of "
                    "the folder brings an older mark with it: set DISCREET_STATE to another place"
                )
    _require_own(settings.keys, "the keys")


def _require_own(path: Path, what: str) -> None:
    """Refuse a file that others than its owner may use."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise NotPermitted(f"{what}, {path.name}, may be used by others than their owner: chmod 600 {path}")
    if found.st_uid != os.geteuid():
        raise NotPermitted(f"{what}, {path.name}, belong to another user than the one who runs the service")
