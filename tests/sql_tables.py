"""Made-up rows put into real databases: DuckDB in this process, PostgreSQL beside it."""

from __future__ import annotations

import datetime as dt
import secrets
from decimal import Decimal

import duckdb
import psycopg
import pyarrow as pa

from discreet.data.sql_table import SqlTable

TYPES = {
    bool: "boolean",
    int: "bigint",
    float: "numeric(22,4)",
    Decimal: "numeric(22,4)",
    str: "text",
    dt.date: "date",
    dt.datetime: "timestamp",
}


def kind_of(values) -> str:
    """The type of a column; its rows are of one kind."""
    return next((TYPES[type(each)] for each in values if each is not None), "text")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def stored(value):
    """Floats as the decimals that their owner typed."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def load(connection, rows, relation, version="1") -> None:
    """A table of these rows, and beside it a table that says which version they are."""
    columns = ", ".join(f"{quoted(name)} {kind_of(values)}" for name, values in rows.items())
    connection.execute(f"CREATE TABLE {quoted(relation)}({columns})")
    if isinstance(connection, psycopg.Connection):
        with connection.cursor().copy(f"COPY {quoted(relation)} FROM STDIN") as copy:
            for line in zip(*rows.values(), strict=True):
                copy.write_row(tuple(map(stored, line)))
    else:
        _insert(connection, relation, {name: [*map(stored, values)] for name, values in rows.items()})
    connection.execute(f"CREATE TABLE {quoted(relation + '_version')} AS SELECT '{version}' AS version")


def _insert(connection, relation, rows) -> None:
    """By Arrow, if it holds these entries: line by line takes twenty times as long."""
    try:
        given = pa.table(rows)
    except (pa.ArrowException, OverflowError):
        marks = ", ".join("?" * len(rows))
        connection.executemany(f"INSERT INTO {quoted(relation)} VALUES ({marks})", [*zip(*rows.values(), strict=True)])
        return
    connection.register("given", given)
    connection.execute(f"INSERT INTO {quoted(relation)} SELECT * FROM given")
    connection.unregister("given")


class Databases:
    """Both databases; `tables` makes a SqlTable of the same rows in each."""

    def __init__(self, cluster) -> None:
        self.duck = duckdb.connect()
        self.address = cluster.server("postgres")
        self.postgres = psycopg.connect(self.address, autocommit=True, prepare_threshold=None)

    def tables(self, rows, domain, relation="", **more):
        relation = relation or f"people_{secrets.token_hex(5)}"
        declared = {"version": f"{relation}_version", "size": len(next(iter(rows.values()))), **more}
        for connection in (self.duck, self.postgres):
            load(connection, rows, relation)
        return [SqlTable(where, relation, domain, **declared) for where in (self.duck, self.address)]

    def close(self) -> None:
        self.postgres.close()
        self.duck.close()
