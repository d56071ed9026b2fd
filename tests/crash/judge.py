"""What must hold after a kill, a power cut, a disk error, or damage: nothing that was answered is forgotten."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.errors import DiscreetError
from discreet.funds import NOTHING
from discreet.ledger.answer_codec import decode
from discreet.ledger.state import price_from
from tests.crash.operations import FREE_AGAIN, Operation, Place

Notes = list[dict[str, Any]]


class Unsound(AssertionError):
    """Something that must hold does not."""


@dataclass(frozen=True, slots=True)
class Book:
    """What a ledger's entries say."""

    charges: dict[int, dict[str, Any]]
    answers: dict[int, Any]
    tops: Counter[int]
    closed: set[int]


def notes_in(path: Path) -> Notes:
    """The notes that were written whole."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def book_of(ledger: dp.Ledger) -> Book:
    entries = list(ledger.entries())
    return Book(
        {body["seq"]: body for body in entries if body["kind"] == "charge"},
        {body["charge"]: decode(body["answer"]) for body in entries if body["kind"] == "answer"},
        Counter(body["charge"] for body in entries if body["kind"] == "top"),
        {body["charge"] for body in entries if body["kind"] in ("answer", "burn", "top", "close")},
    )


def judge(operation: Operation, place: Place, notes: Notes, *, before: int, bought: int) -> None:
    """Raise Unsound unless the ledger is whole, holds everything that was delivered, and the operation works again.

    before  how many answered charges the prepared folder has
    bought  how many the operation adds when nothing disturbs it
    """
    for note in notes:
        if "raw" in note:
            raise Unsound(f"an error that is not ours, {note['raw']}")
    try:
        if _never_made(operation, place, notes):
            return
        with place.open() as ledger:
            if not any("reconciled" in note for note in notes):
                operation.mend(ledger)
            if ledger.rolled_back():
                raise Unsound("the ledger is behind its mark")
            _whole(ledger)
            _holds(book_of(ledger), notes, before)
            operation.check(ledger, notes)
        again = _again(operation, place)
        with place.open() as ledger:
            _whole(ledger)
            _holds(book_of(ledger), [*notes, *again], before)
            if operation.name in FREE_AGAIN:
                _paid_once(book_of(ledger), notes, again, before + bought)
    except DiscreetError as error:
        raise Unsound(f"{type(error).__name__}: {error}") from error
    except Unsound:
        raise
    except AssertionError as error:
        raise Unsound(str(error)) from error


def refuses_older(operation: Operation, place: Place, older: Path, notes: Notes) -> None:
    """Raise Unsound if a copy of the ledger from before the operation passes although something was delivered since:
    the mark must be as durable as the charge."""
    if operation.behind or not any("value" in note or "opened" in note for note in notes):
        return
    for each in place.ledger.parent.iterdir():
        each.unlink()
    for each in older.iterdir():
        if not each.name.endswith("-shm"):
            (place.ledger.parent / each.name).write_bytes(each.read_bytes())
            (place.ledger.parent / each.name).chmod(0o600)
    with place.open() as ledger:
        if not ledger.rolled_back():
            raise Unsound("an older copy of the ledger is taken for the newest: the mark forgot a delivered answer")


def _never_made(operation: Operation, place: Place, notes: Notes) -> bool:
    """Whether a creation was interrupted before there was a ledger; then it can be made now."""
    if operation.name != "create" or place.ledger.exists():
        return False
    if any("created" in note for note in notes):
        raise Unsound("a ledger that was made is not there")
    with operation.begin(place) as ledger:
        dp.release(dp.Laplace(dp.Count(), scale=10), operation.table(place), ledger=ledger)
        _whole(ledger)
    return True


def _whole(ledger: dp.Ledger) -> None:
    """The file verifies, its sums are those of its charges, and no charge is left open."""
    if unknown := ledger.verify(CATALOGUE):
        raise Unsound(f"charges that could not be priced again: {unknown}")
    book = book_of(ledger)
    if not any(body["kind"] == "reconcile" for body in ledger.entries()):
        spent, total = ledger.spent(), NOTHING
        for body in book.charges.values():
            total = total + price_from(body["price"])
        if (spent.renyi, spent.pure, spent.failure) != (total.renyi, total.pure, total.failure):
            raise Unsound(f"spent {spent} is not the sum of the charges, {total}")
    if any(count > 1 for count in book.tops.values()):
        raise Unsound("a conversation has two last answers")
    left = [seq for seq, body in book.charges.items() if body["mode"] == "release" and seq not in book.closed]
    if left:
        raise Unsound(f"charges {left} are open although their process is gone")


def _holds(book: Book, notes: Notes, before: int) -> None:
    """Everything that was delivered is charged, and stored as it was delivered."""
    for note in notes:
        if "hash" in note:
            charge = note["charge"]
            if charge not in book.charges or book.charges[charge]["hash"] != note["hash"]:
                raise Unsound(f"an answer was delivered and its charge, entry {charge}, is not in the ledger")
            if charge not in book.answers or book.answers[charge] != note["value"]:
                raise Unsound(f"the answer to entry {charge} is not stored as it was delivered")
        if "opened" in note and note["opened"] not in book.charges:
            raise Unsound(f"a conversation was opened and its charge, entry {note['opened']}, is not in the ledger")
        if note.get("value") is True and not book.tops[note["conversation"]]:
            raise Unsound("a conversation gave its last answer and the ledger does not know")
    keys = {note["key"] for note in notes if "key" in note}
    if len(book.answers) < before + len(keys):
        raise Unsound(f"{len(keys)} answers were delivered, {len(book.answers) - before} are stored")


def _again(operation: Operation, place: Place) -> Notes:
    """Do everything again, undisturbed."""
    said: Notes = []
    if operation.name == "create":
        with place.open() as ledger:
            dp.release(dp.Laplace(dp.Count(), scale=10), operation.table(place), ledger=ledger)
        return said
    with operation.begin(place) as ledger:
        operation.act(ledger, place, lambda **note: said.append(note))
    return said


def _paid_once(book: Book, notes: Notes, again: Notes, answered: int) -> None:
    """What was delivered is the same again, and nothing that was answered was bought twice."""
    told = {note["key"]: note["value"] for note in notes if "key" in note}
    for note in again:
        if note["value"] != told.get(note["key"], note["value"]):
            raise Unsound(f"{note['key']!r} was answered twice, differently")
    extra = sum("went_on" in note for note in notes)
    if len(book.answers) != answered + extra:
        raise Unsound(f"{len(book.answers) - extra} answered charges, where an undisturbed run has {answered}")
