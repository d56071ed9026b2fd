"""Who may talk to a service: keys of analysts and of owners, in one file.

A key is `dk_` and eight hexadecimal digits, its id, then 256 random bits. It is shown once; the file has its SHA-256.
With so many random bits there is nothing to guess, so no slow hash is needed. Hashes are compared in constant time, and
a key with an unknown id costs the same work. The file belongs to one user (0600) and is replaced whole and durably: the
command line changes it while a service runs, and the service reads it again when it has changed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.core import Exact, KeyRefused, NotPermitted, ParameterError, exact
from discreet.ledger import Ledger
from discreet.ledger.durable import FileLock, create_file, read_own, replace_file

OWNER, ANALYST = "owner", "analyst"
MAY = ("ask", "fit", "learn", "synth", "suggest")
"""What an analyst may be allowed to do."""

_KEY = re.compile(r"dk_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,63}")
_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_LARGEST = 2**22  # bytes of the file
_LATEST = 253_402_300_799  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class Key:
    """Who holds a key, as the service knows it: never the key itself.

    name     of the analyst; the allowance in every ledger has the same name, so two keys of a name share it
    role     "owner" or "analyst"; "guest" has no key and may rehearse
    tables   the tables it is for; None: all of the service
    may      what an analyst may do, of `MAY`
    share    of every budget, as it was given with this key
    made, expires, revoked  seconds since 1970; None: never
    """

    id: str
    name: str
    role: str
    hash: str
    may: tuple[str, ...] = MAY
    tables: tuple[str, ...] | None = None
    share: str | None = None
    made: int = 0
    expires: int | None = None
    revoked: int | None = None

    @property
    def owner(self) -> bool:
        return self.role == OWNER

    def alive(self, now: float) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def reaches(self, table: str) -> bool:
        """Whether the key is for this table."""
        return self.tables is None or table in self.tables

    def manages(self, other: Key) -> bool:
        """Whether an owner with this key sees and revokes another key: one that is for no table beyond its own."""
        return self.tables is None or (other.tables is not None and set(other.tables) <= set(self.tables))

    def require(self, what: str) -> None:
        """Refuse what this key may not do."""
        if self.owner:
            raise NotPermitted("the key of an owner asks nothing: an analyst's key does")
        if what not in self.may:
            raise NotPermitted(f"this key may not {what}: it may {', '.join(self.may) or 'nothing'}")

    def require_owner(self) -> None:
        if not self.owner:
            raise NotPermitted("this is for the key of an owner")

    def record(self, now: float) -> dict[str, Any]:
        """What an owner sees of it."""
        shown = {name: getattr(self, name) for name in ("id", "name", "role", "share", "made", "expires", "revoked")}
        tables = None if self.tables is None else list(self.tables)
        return {**shown, "may": list(self.may), "tables": tables, "alive": self.alive(now)}


GUEST = Key("00000000", "guest", "guest", "", may=("ask",))
"""Who comes without a key: asks made-up rows, where that is allowed."""


class Keys:
    """The keys in a file. now: the time, in seconds since 1970."""

    def __init__(self, path: str | os.PathLike[str], *, now: Callable[[], float] = time.time) -> None:
        self.path, self.now = Path(path), now
        self._held: dict[str, Key] = {}
        self._stamp: tuple[int, ...] | None = None
        self._lock = threading.Lock()
        self.read()

    def read(self) -> dict[str, Key]:
        """All keys by their ids, as the file has them now."""
        with self._lock:
            try:
                found = os.stat(self.path, follow_symlinks=False)
            except FileNotFoundError:
                self._held, self._stamp = {}, None
                return self._held
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._held, self._stamp = _parse(self.path), stamp
            return self._held

    def check(
        self,
        name: str,
        *,
        role: str = ANALYST,
        may: Iterable[str] = MAY,
        tables: Iterable[str] | None = None,
        share: Exact | None = None,
        expires: float | None = None,
    ) -> Key:
        """The key that `add` would make, without an id; ParameterError if something is wrong with it."""
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.strip():
            raise ParameterError(f"a name has at most 64 letters, digits and . _ @ + - or spaces, found {name!r}")
        if role not in (OWNER, ANALYST):
            raise ParameterError(f"role must be owner or analyst, found {role!r}")
        allowed = tuple(dict.fromkeys(may)) if role == ANALYST else ()
        for each in allowed:
            if each not in MAY:
                raise ParameterError(f"may is of {', '.join(MAY)}; found {each!r}", argument="may")
        part = None if share is None else Fraction(exact.positive(share=share))
        if part is not None and part > 1:
            raise ParameterError(f"share must be at most 1, found {share!r}", argument="share")
        now = self.now()
        if expires is not None and not now < expires <= _LATEST:  # also refuses NaN
            raise ParameterError("a key must expire in the future, and before the year 10000", argument="expires")
        return Key(
            *("", name, role, "", allowed),
            tables=None if tables is None else tuple(tables),
            share=None if part is None else str(part),
            made=int(now),
            expires=None if expires is None else int(expires),
        )

    def add(self, name: str, **given: Any) -> tuple[Key, str]:
        """Make a key; it and its text, which is told now and never again. given: as for `check`."""
        return self._add(self.check(name, **given))

    def _add(self, made: Key) -> tuple[Key, str]:
        secret = secrets.token_urlsafe(32)
        with self._changing() as held:
            id_ = next(new for new in iter(lambda: secrets.token_hex(4), "") if new not in held)
            held[id_] = replace(made, id=id_, hash=_hash(secret))
        return held[id_], f"dk_{id_}_{secret}"

    def add_analyst(self, ledgers: Mapping[str, Ledger], name: str, **given: Any) -> dict[str, Any]:
        """Make a key, and for an analyst the allowance of the same name in every ledger that the key is for; `key` is
        its text. The allowances come first: a key is never without the limit that holds it.

        given  as for `check`; without a share it is as it was, or all of each budget for a new name
        """
        made = self.check(name, **given)
        for table in made.tables or ():
            if table not in ledgers:
                raise ParameterError(f"there is no table {table!r} here: {', '.join(ledgers)}", argument="tables")
        for table, ledger in ledgers.items() if made.role == ANALYST else ():
            known = {each.name for each in ledger.allowances()}
            if made.reaches(table) and (made.share is not None or name not in known):
                ledger.allow(name, share=Fraction(made.share or 1))
        key, text = self._add(made)
        return {**key.record(self.now()), "key": text}

    def revoke(self, name_or_id: str, by: Key | None = None) -> list[Key]:
        """Revoke the key with this id, or all keys of this name: those that were not revoked before.

        by  the owner who asks for it over HTTP: keys that it does not manage are not there
        """
        with self._changing() as held:
            found = [key for key in held.values() if name_or_id in (key.id, key.name)]
            found = [key for key in found if by is None or by.manages(key)]
            if not found:
                raise ParameterError(f"there is no key of {name_or_id!r}")
            ended = [replace(key, revoked=int(self.now())) for key in found if key.revoked is None]
            held.update({key.id: key for key in ended})
        return ended

    def find(self, text: str) -> Key:
        """The holder of this key; KeyRefused if there is none, or it is revoked or expired."""
        match = _KEY.fullmatch(text)
        id_, secret = match.groups() if match else ("", text[:256])
        known = self.read().get(id_)
        expected = _NOBODY if known is None else known.hash
        same = hmac.compare_digest(expected, _hash(secret))
        if not same or known is None or not known.alive(self.now()):
            raise KeyRefused("a key is needed: this one is not known here, or was revoked, or has expired")
        return known

    def holder(self, id_: str) -> Key | None:
        """The living key with this id, if there is one: for a cookie, which was made with the key itself."""
        known = self.read().get(id_)
        return known if known is not None and known.alive(self.now()) else None

    def cookie_secret(self) -> bytes:
        """The secret that signs cookies: a file beside the keys, made once, so that several processes share it."""
        path = self.path.with_name(f".{self.path.name}.cookies")
        create_file(path, secrets.token_hex(32))
        return read_own(path)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """The keys under the lock of their file; on leaving the block they are written, unless there was an error."""
        with FileLock(self.path.with_name(f".{self.path.name}.lock"), "the lock of the keys"):
            held = dict(self.read())
            yield held
            rows = [json.dumps(asdict(key)) for key in held.values()]
            replace_file(self.path, '{"format": "discreet-keys/1", "keys": [\n' + ",\n".join(rows) + "\n]}\n")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _parse(path: Path) -> dict[str, Key]:
    wrong = f"{path.name} is no file of keys: `discreet analyst add` makes one"
    try:
        text = read_own(path)
        found = json.loads(text) if len(text) <= _LARGEST else None
        if type(found) is not dict or found.get("format") != "discreet-keys/1":
            raise ParameterError(wrong)
        keys = [Key(**{**each, "may": tuple(each["may"]), "tables": _tuple(each["tables"])}) for each in found["keys"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ParameterError(wrong) from None
    return {key.id: key for key in keys}


def _tuple(found: list[str] | None) -> tuple[str, ...] | None:
    return None if found is None else tuple(found)
