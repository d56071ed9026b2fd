"""What is declared about a table, in words: whose rows they are, how many, its columns. Never the rows themselves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.data.domain import in_words
from discreet.data.rows import Facts, Identity
from discreet.display import Paragraph, Sheet, one_line


def people(facts: Facts, identity: Identity) -> str:
    """Whose rows these are and how many, in a phrase."""
    rows = f", at most {facts.neighbours.rows} rows each" if facts.neighbours.rows > 1 else ""
    unit = "each row is a person" if identity.unit is None else f"a person is a {one_line(identity.unit)}{rows}"
    size = "how many is private" if facts.size is None else f"{facts.size:,} persons"
    if facts.size is not None and not facts.neighbours.replace_one:
        size = f"how many is private, declared {facts.size:,}"
    edition = "" if facts.edition is None else f", edition {one_line(facts.edition)}"
    return f"{size}, {unit}, {facts.neighbours.kind}{edition}"


def sheet(facts: Facts, identity: Identity) -> Sheet:
    """A table's declaration."""
    made_up = " (a rehearsal: made-up rows)" if identity.rehearsal else ""
    within = "" if facts.table is None else f"{one_line(facts.table)} of "
    head = f"{within}{one_line(identity.name)}{made_up}: {people(facts, identity)}"
    return Sheet.of(Paragraph(head, "bold"), *facts.domain.sheet().blocks)


def plain(value: Any) -> Any:
    """A number or a level as JSON has it."""
    if type(value) is Fraction:
        return int(value) if value.denominator == 1 else float(value)
    return value.item() if hasattr(value, "item") else value


def column_record(name: str, column: Any) -> dict[str, Any]:
    """A column's declaration as JSON."""
    given: dict[str, Any] = {}
    if column.categorical:
        given = {"levels": list(column.levels), "other": column.other, "missing": column.missing}
    elif column.bounded or column.calendar or hasattr(column, "length"):
        keys = ("length",) if hasattr(column, "length") else ("low", "high", "step")
        given = {**{key: plain(getattr(column, key)) for key in keys}, "missing": column.missing or None}
    kept = {key: value for key, value in given.items() if value is not None}
    return {"column": name, "kind": in_words(column)[0], **kept}
