"""Where a ledger and its mark are. A ledger in PostgreSQL has libpq's own URI, with the ledger's name as `ledger=`.

    postgresql://ledgers.example/discreet?ledger=people
    postgresql:///discreet?host=/run/postgresql&ledger=people

Addresses stand in schemas, in messages and in pickles, so an address holds no password: libpq finds one in PGPASSWORD,
in the file of PGPASSFILE (~/.pgpass), or through a service file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from discreet.core import LedgerUnavailable, ParameterError
from discreet.data import POSTGRES, require_no_password

_LONGEST = 200  # characters of a ledger's name


@dataclass(frozen=True, slots=True)
class Address:
    """Where a ledger is: a database as libpq names it, and the name of the ledger there."""

    server: str
    name: str

    def __str__(self) -> str:
        return f"{self.server}{'&' if '?' in self.server else '?'}ledger={quote(self.name, safe='')}"

    @staticmethod
    def read(text: str) -> Address:
        """The address that this text spells."""
        if not text.startswith(POSTGRES):
            raise ParameterError(f"a ledger is a file, or in PostgreSQL at {POSTGRES}HOST/DATABASE?ledger=NAME")
        base, _, query = text.partition("?")
        words = [each.partition("=") for each in query.split("&") if each]
        require_no_password(text, "ledger")
        names = [unquote(value) for key, _, value in words if key == "ledger"]
        if len(names) != 1 or not 0 < len(names[0]) <= _LONGEST or not names[0].isprintable():
            raise ParameterError(
                f"the address of a ledger ends in ?ledger=NAME, once, with a name of at most {_LONGEST} printable "
                f"characters: {POSTGRES}HOST/DATABASE?ledger=people"
            )
        rest = "&".join(f"{key}={value}" for key, _, value in words if key != "ledger")
        return Address(f"{base}?{rest}" if rest else base, names[0])


def state_directory(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Where marks are kept: as given, or DISCREET_STATE, or discreet/ in the user's state directory."""
    chosen = os.environ.get("DISCREET_STATE") or None if chosen is None else chosen
    if chosen is not None:
        return Path(os.path.abspath(chosen))  # the process may change its directory later
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return Path(os.path.abspath(base) if base else Path.home() / ".local" / "state") / "discreet"
    except RuntimeError:
        raise LedgerUnavailable("there is no home directory for high-water marks: set DISCREET_STATE") from None


def place_of(where: str | os.PathLike[str] | Address) -> Path | Address:
    """The file or the address that a caller names."""
    if isinstance(where, Address):
        return where
    text = os.fspath(where)
    return Address.read(text) if "://" in text else Path(os.path.realpath(text))
