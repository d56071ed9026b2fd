"""What a schema tells a plan: who is protected, how many there are, and numbers that follow from declared columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError
from discreet.plan import MODELS

if TYPE_CHECKING:
    from discreet.data import Column, Domain
    from discreet.ledger import Ledger
    from discreet.schema import Schema


@dataclass(frozen=True, slots=True)
class Told:
    """What a schema says about people and columns; nothing without one.

    model  of a model with a target: what it is planned for, exactly as `discreet fit` would fit it
    """

    schema: Schema | None
    numbers: dict[str, int]
    from_columns: str
    model: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        path: Path | None,
        kind: str,
        features: str | None,
        target: str | None,
        radius: str | None = None,
        huber: str | None = None,
    ) -> Told:
        from discreet.schema import Schema

        if path is None:
            if features is not None or target is not None:
                raise ParameterError("--features and --target are columns of a schema: give --schema people.toml")
            return Told(None, {}, "")
        schema = Schema.read(path)
        if target is not None:
            schema.domain.column(target)
        if kind in MODELS and target is not None:
            return Told(schema, {}, "", _model(kind, schema.domain, target, features, radius, huber))
        names = [name for name in schema.domain.names if name != target]
        if features is not None:
            names = [name.strip() for name in features.split(",")]
        columns = {name: schema.domain.column(name) for name in names}
        read = _READ.get(kind)
        numbers = {} if read is None else read(schema, columns)
        shown = ", ".join(f"{name} {value:,}" for name, value in numbers.items())
        about = ", ".join(columns) if len(columns) <= 4 else f"{len(columns)} columns"
        return Told(schema, numbers, f"from {path.name} ({about}): {shown}" if shown else "")

    def ledger(self) -> Ledger | None:
        """The ledger that the schema names, if it is there."""
        from discreet.ledger import Ledger

        where = None if self.schema is None else self.schema.ledger
        return None if where is None or not where.exists() else Ledger.open(where)


def _model(
    kind: str, domain: Domain, target: str, features: str | None, radius: str | None, huber: str | None
) -> dict[str, Any]:
    from discreet.cli.fit import check_kind, features_of, shape_of

    columns = features_of(kind, domain, target, features)
    check_kind(kind, domain, target)
    shape = shape_of(kind, domain, target, len(columns or ()), radius, huber)
    return {"domain": domain, "target": target, "features": columns or (), **shape}


def _cells(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    return {"cells": math.prod(column.size for column in columns.values())}


def _candidates(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    return {"candidates": _cells(schema, columns)["cells"]}


def _coordinates(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    """As an estimator encodes them: a category has a coordinate for each level."""
    from discreet.erm.features import Declared

    return {"d": Declared(tuple(columns), 1, False).dimension(schema.domain)}


def _bits(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    return {"bits": max(1, *((column.size - 1).bit_length() for column in columns.values()))}


def _box(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    from discreet.data import Number

    wrong = [name for name, column in columns.items() if not isinstance(column, Number)]
    if wrong:
        raise ParameterError(f"a box is about numbers, and {wrong[0]!r} is none: name numbers with --features")
    return {"d": len(columns), **_bits(schema, columns)}


def _bounds(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    from discreet.data import AnyNumber

    if len(columns) != 1:
        raise ParameterError("this plan is about one column: name it with --features")
    (column,) = columns.values()
    return {} if isinstance(column, AnyNumber) else _bits(schema, columns)


def _booleans(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    from discreet.pac.rules import Literals

    literals = Literals(tuple(columns))
    literals.check(schema.domain)
    return {"d": literals.variables(schema.domain)}


def _conditions(schema: Schema, columns: dict[str, Column]) -> dict[str, int]:
    from discreet.pac.rules import Thresholds

    return {"conditions": Thresholds(tuple(columns)).size(schema.domain)}


_READ: dict[str, Callable[[Schema, dict[str, Column]], dict[str, int]]] = {
    "bounds": _bounds,
    "box": _box,
    "conjunction": _booleans,
    "histogram": _cells,
    "interior": _bounds,
    "linear": _coordinates,
    "logistic": _coordinates,
    "network": _coordinates,
    "questions": _cells,
    "rule": _conditions,
    "select": _candidates,
    "workload": _cells,
}
"""How the numbers of a kind follow from declared columns."""
