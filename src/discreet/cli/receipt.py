"""What a release cost and what is left, for people and for programs; files that are sure before anything is spent."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from discreet.cli.options import Opened, Output
from discreet.describe import one_line
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.estimators.base import FitGuarantee
    from discreet.funds import Books, Price

_LINE = 100


@dataclass(frozen=True, slots=True)
class Receipt:
    """One charge: what it promises, its entry in the ledger, its price, and what was left after it.

    part      which part of the budget it took: of the book that decides (`ledger.price.Books.counting`)
    more      about how many releases like this one still fit
    whose     the allowance under which it is counted, and of which `left` and `more` are; None: of the whole budget
    replayed  nothing was charged now: this is the stored release of that entry
    """

    guarantee: FitGuarantee
    unit: str | None
    entry: int
    hash: str
    price: Price
    left: Books
    part: Fraction | None
    more: int
    whose: str | None = None
    replayed: bool = False

    def record(self) -> dict[str, Any]:
        """Everything as plain numbers and texts; amounts are integers in nano-units, failures in units of 1e-18."""
        amounts = {"renyi_nano": self.price.renyi, "pure_nano": self.price.pure, "failure_atto": self.price.failure}
        left = {"renyi_nano": self.left.renyi, "pure_nano": self.left.pure, "failure_atto": self.left.failure}
        return {
            "guarantee": {
                "epsilon": self.guarantee.epsilon(self.guarantee.budget.delta),
                "delta": float(self.guarantee.budget.delta),
                "neighbours": str(self.guarantee.neighbours),
                "unit": self.unit or "a row",
            },
            "entry": self.entry,
            "entry_hash": self.hash,
            "price": {**amounts, "percent_of_budget": None if self.part is None else 100 * float(self.part)},
            "left": {**left, "percent_of_budget": 100 * float(1 - self.left.used())},
            "more_like_this": self.more,
            "allowance": self.whose,
            "replayed": self.replayed,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The same for people, as names and sentences."""
        return [
            ("guarantee", str(self.guarantee)),
            ("price", self.took()),
            ("left", f"{self._left()}: about {self.more:,} more like this"),
        ]

    def _left(self) -> str:
        whose = "" if self.whose is None else f" for {one_line(self.whose)}"
        return f"{shown(1 - self.left.used())} of the budget{whose}"

    def took(self) -> str:
        """Which part of the budget it took."""
        if self.replayed:
            return f"free: this is the stored release of entry {self.entry}; --again pays for a new one"
        return "none in the book that decides" if self.part is None else f"{shown(self.part)} of the budget"


def receipt(
    found: Opened, guarantee: FitGuarantee, entry: int, allowance: str | None, *, replayed: bool = False
) -> Receipt:
    """The receipt of an entry that was just charged, or given back."""
    from discreet.funds import NOTHING

    ledger = found.ledger
    charge = ledger.entry(entry)
    left, price = ledger.remaining(allowance=allowance), ledger.price(guarantee.guarantee)
    again: Any = SimpleNamespace(guarantee=lambda facts: guarantee.guarantee)  # another release with the same price
    more = left.how_many(again, facts=found.table.facts)
    paid = NOTHING if replayed else price
    unit, part = ledger.identity.unit, left.part_of(paid)
    return Receipt(guarantee, unit, entry, charge["hash"], paid, left, part, more, allowance, replayed)


def shown(part: Fraction) -> str:
    """A part as a percentage for the eye."""
    return f"{100 * float(part):.3g} %"


Lines = Sequence[tuple[str, object]]


def facts_about(output: Output, lines: Lines) -> None:
    """Names and sentences in two columns; a sentence is wrapped under itself."""
    if output.as_json:
        return
    wide = max(len(name) for name, _ in lines) + 2
    for name, text in lines:
        rest = " " * wide
        wrapped = textwrap.wrap(
            one_line(text), max(wide + 12, output.console.width), initial_indent=rest, subsequent_indent=rest
        )
        unwrapped(output, "\n".join([name.ljust(wide) + wrapped[0][wide:], *wrapped[1:]]))


def unwrapped(output: Output, text: str) -> None:
    """A line that somebody may copy: the terminal may break it, we do not."""
    if not output.as_json:
        output.console.print(text, soft_wrap=True)


Write = Callable[[dict[str, Any]], None]


@contextmanager
def reserved(path: Path | None, *, force: bool) -> Iterator[Write]:
    """A way to write one JSON file, found to work now. What fails before it is used leaves no file and the old one.

    Without force the file must be new, and its name is taken at once.
    """
    if path is None:
        if force:
            raise ParameterError("--force goes with --save")
        yield lambda record: None
        return
    place = regular(path)
    taken = _taken(place, force=force)
    try:
        yield lambda record: _written(taken, place, record)
    finally:
        if taken != place or (place.exists() and not place.stat().st_size):
            taken.unlink(missing_ok=True)


def regular(path: Path) -> Path:
    """The file that a path stands for, links followed: a link keeps pointing to what is written.

    What is there and is no plain file (a device, a pipe, a folder) is refused: it would be replaced by one.
    """
    place = Path(os.path.realpath(path))
    if place.is_symlink() or (place.exists() and not place.is_file()):  # a link that is left leads in a circle
        raise ParameterError(f"{path} is there, and is not a plain file: choose another name; nothing was spent")
    return place


def _taken(path: Path, *, force: bool) -> Path:
    """The file that is written to: the new one itself, or with force one beside it that will replace it."""
    taken = path.with_name(f".{path.name}.{os.getpid()}") if force else path
    try:
        taken.open("x").close()
    except FileExistsError:
        raise ParameterError(f"{path.name} is there already: choose another name, or --force to replace it") from None
    except OSError as error:
        raise ParameterError(f"{path} cannot be written ({error.strerror}): nothing was spent") from None
    return taken


def _written(taken: Path, path: Path, record: dict[str, Any]) -> None:
    try:
        taken.write_text(pretty(record) + "\n", encoding="utf-8")
    except OSError:  # half a model is none
        taken.unlink(missing_ok=True)
        raise
    if taken != path:
        os.replace(taken, path)


def pretty(value: Any, indent: str = "") -> str:
    """JSON for people: what fits on a line is on one."""
    flat = json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if not isinstance(value, (dict, list)) or len(indent) + len(flat) <= _LINE:
        return flat
    if isinstance(value, list):
        if not any(isinstance(each, (dict, list)) for each in value):
            return flat
        parts = [f"{inner}{pretty(each, inner)}" for each in value]
        return "[\n" + ",\n".join(parts) + f"\n{indent}]"
    named = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {pretty(each, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(named) + f"\n{indent}}}"
