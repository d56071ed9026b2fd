"""Where rows are, if they are not in files that this process sees, as a schema names it: the address of a database and
the relation in it, or of files in a store that Spark reads.

Addresses stand in schemas, in messages and in ledgers, so an address holds no password: libpq finds one in PGPASSWORD,
in the file of PGPASSFILE (~/.pgpass), or through a service file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from discreet.core import ParameterError, exact

POSTGRES, DUCKDB = "postgresql://", "duckdb:"
_SECRET = ("password", "sslpassword")
_PGPASS = "~/.pgpass (or PGPASSFILE, PGPASSWORD, a service file)"


def is_address(text: object) -> bool:
    """Whether this names a database rather than a file."""
    return isinstance(text, str) and ("://" in text or text.startswith(DUCKDB))


def require_no_password(address: str, what: str, instead: str = _PGPASS) -> str:
    """The address, if it holds no password; instead: where that belongs."""
    base, _, query = address.partition("?")
    account = base.partition("://")[2].partition("/")[0].rpartition("@")[0]
    keys = [unquote(each.partition("=")[0]).lower() for each in query.split("&")]
    if ":" in account or any(key in _SECRET for key in keys):
        raise ParameterError(
            f"the address of a {what} holds a password, and addresses are stored and shown: put the password into "
            f"{instead} and leave it out of the address"
        )
    return address


def relation_parts(**named: object) -> tuple[str, ...]:
    """The parts of a relation's name: one text, or at most three of them."""
    ((what, given),) = named.items()
    parts = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    if not 1 <= len(parts) <= 3:
        raise ParameterError(f"{what} must be a name, or at most three parts of one, found {len(parts)}")
    for part in parts:
        if "\0" in exact.text(**{what: part}):
            raise ParameterError(f"{what} must be a name, found one with the character NUL")
    return parts


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Parquet files in a store that Spark reads: s3a://BUCKET/visits/*.parquet, hdfs://..., without a password."""

    name: str
    file: ClassVar[None] = None

    @staticmethod
    def of(address: str, engine: str | None) -> StoredFiles | None:
        """The files at an address; None of a database, and without Spark."""
        if engine != "spark" or address.startswith((POSTGRES, DUCKDB)):
            return None
        return StoredFiles(require_no_password(address, "store", "Spark's own settings"))


@dataclass(frozen=True, slots=True)
class DatabaseRows:
    """A relation in a database.

    address   postgresql://... or duckdb:FILE, without a password
    relation  the parts of its name
    version   those of the relation that says which version of the rows it is, if there is one
    """

    address: str
    relation: tuple[str, ...]
    version: tuple[str, ...] | None = None

    @staticmethod
    def of(address: str, relation: object, version: object, folder: Path) -> DatabaseRows:
        """As a schema in this folder names it."""
        if not address.startswith((POSTGRES, DUCKDB)):
            raise ParameterError(
                f"rows are in files, at {POSTGRES}HOST/DATABASE or {DUCKDB}FILE, or in a store that Spark reads "
                f'(s3a://BUCKET/visits/*.parquet, with engine = "spark"); found {address!r}'
            )
        if relation is None:
            raise ParameterError('which table of the database? Add relation = "people"')
        if address.startswith(DUCKDB):
            file = address.removeprefix(DUCKDB)
            address = f"{DUCKDB}{os.path.join(folder, exact.text(data=file))}"
        chosen = None if version is None else relation_parts(version=version)
        return DatabaseRows(require_no_password(address, "database"), relation_parts(relation=relation), chosen)

    @property
    def name(self) -> str:
        """For people."""
        return f"{'.'.join(self.relation)} at {self.address}"

    @property
    def file(self) -> Path | None:
        """The file of the database, if it is one."""
        return Path(self.address.removeprefix(DUCKDB)) if self.address.startswith(DUCKDB) else None
