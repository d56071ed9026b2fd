"""Damaged files: what can happen to a few bytes, and whether the ledger believes what it finds."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.errors import DiscreetError
from tests.crash.judge import Unsound
from tests.crash.operations import ROWS, TENTH, Place

SECTOR = 512
SHARP = dp.mechanisms.AboveThreshold(40, Fraction(1, 40))
"""A threshold whose questions have no noise worth mentioning: its "yes" tells the secret exactly."""


def _flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _byte(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def _digit(data: bytearray, rng: random.Random) -> None:
    """Another digit for a digit: what a careless edit does."""
    digits = [at for at, byte in enumerate(data) if 48 <= byte < 58]
    data[rng.choice(digits or [0])] = rng.randrange(48, 58)


def _last_digit(data: bytearray, rng: random.Random) -> None:
    """The same at the end of the file, where a short file has its number."""
    digits = [at for at, byte in enumerate(data) if 48 <= byte < 58]
    data[rng.choice(digits[-3:] or [0])] = rng.randrange(48, 58)


def _sectors(data: bytearray) -> list[int]:
    return list(range(0, len(data), SECTOR))


def _zero(data: bytearray, rng: random.Random) -> None:
    at = rng.choice(_sectors(data))
    data[at : at + SECTOR] = bytes(len(data[at : at + SECTOR]))


def _noise(data: bytearray, rng: random.Random) -> None:
    at = rng.choice(_sectors(data))
    data[at : at + SECTOR] = rng.randbytes(len(data[at : at + SECTOR]))


def _swap(data: bytearray, rng: random.Random) -> None:
    one, other = rng.choice(_sectors(data)), rng.choice(_sectors(data))
    kept = bytes(data[one : one + SECTOR])
    data[one : one + SECTOR] = bytes(data[other : other + SECTOR])
    data[other : other + SECTOR] = kept


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _more(data: bytearray, rng: random.Random) -> None:
    data.extend(rng.randbytes(rng.randrange(1, 5000)))


def _empty(data: bytearray, rng: random.Random) -> None:
    data.clear()


def _blank(data: bytearray, rng: random.Random) -> None:
    data[:] = bytes(len(data))


KINDS: dict[str, Callable[[bytearray, random.Random], None]] = {
    "flipped bit": _flip,
    "other byte": _byte,
    "other digit": _digit,
    "other last digit": _last_digit,
    "zero sector": _zero,
    "random sector": _noise,
    "swapped sectors": _swap,
    "cut off": _cut,
    "more bytes": _more,
    "empty": _empty,
    "all zeros": _blank,
}


@dataclass(frozen=True, slots=True)
class Sound:
    """What a process left in a folder while it ran, with a log that is not yet in the file; and when it had ended."""

    running: Path
    ended: Path
    entries: list[dict[str, Any]]
    spent: tuple[int | None, int | None]
    conversation: int
    threshold: int

    def file(self, what: str) -> tuple[Path, str]:
        """Where one of the FILES lies: a folder, and the path below it."""
        (mark,) = (each for each in (self.ended / "state" / "marks").iterdir() if not each.suffix)
        paths = {
            "ledger": "books/people.ledger",
            "log": "books/people.ledger-wal",
            "secret": "books/people.ledger.secret",
            "mark": f"state/marks/{mark.name}",
            "turns": f"state/marks/{mark.name}.turns",
            "sidecar": "rows/people.csv.discreet.json",
        }
        return self.running if what == "log" else self.ended, paths[what]


FILES = ("ledger", "log", "secret", "mark", "turns", "sidecar")


def sound(work: Path) -> Sound:
    """A ledger of a table in a file, with two answers and an open conversation."""
    place, running, ended = Place(str(work / "made")), work / "running", work / "ended"
    place.make()
    table = place.from_file()
    with dp.Ledger.create(place.ledger, dp.Budget(10**4, 1e-6), table, state_dir=place.state) as ledger:
        for request in ("one", "two"):
            dp.release(TENTH, table, ledger=ledger, request=request)
        charge = dp.converse(SHARP, table, ledger=ledger).charge
        shutil.copytree(place.root, running, ignore=shutil.ignore_patterns("*-shm"))
        entries, spent = list(ledger.entries()), ledger.spent()
    shutil.copytree(place.root, ended)
    with place.open() as ledger:
        talk, threshold = dp.reopen(SHARP, table, charge=charge, ledger=ledger), len(ROWS)
        while not talk.ask(dp.mechanisms.IsAbove(dp.Count(), threshold)):
            threshold -= 1
    shutil.rmtree(place.root)
    return Sound(running, ended, entries, (spent.renyi, spent.pure), charge, threshold)


def outcome(before: Sound, root: Path, *, from_file: bool) -> str:
    """What becomes of a damaged folder: "noticed" by an error of ours, or "harmless"; Unsound if it is believed.

    from_file  the table is read from its file, so that the sidecar counts (which takes longer)
    """
    place = Place(str(root))
    try:
        with place.open() as ledger:
            _unchanged(before, ledger)
            table = place.from_file() if from_file else place.in_memory()
            if ledger.rolled_back():
                return "noticed"
            dp.release(TENTH, table, ledger=ledger)
            _conversation(before, ledger, table)
            ledger.verify(CATALOGUE)
            if ledger.spent().pure != before.spent[1] + 10**8:  # type: ignore[operator]
                raise Unsound("a release on a damaged ledger does not add its price")
    except DiscreetError:
        return "noticed"
    return "harmless"


def _unchanged(before: Sound, ledger: dp.Ledger) -> None:
    """The entries are those that were written; of those after the last charge some may be missing."""
    if ledger.rolled_back():
        return
    entries = list(ledger.entries())
    mine = [body for body in entries if body["kind"] != "burn"]
    if mine != before.entries[: len(mine)]:
        raise Unsound("entries are believed that were not written")
    spent = ledger.spent()
    if (spent.renyi, spent.pure) != before.spent:
        raise Unsound(f"spent {spent.renyi}, {spent.pure} is believed, and it was {before.spent}")


def _conversation(before: Sound, ledger: dp.Ledger, table: dp.Table) -> None:
    """An open conversation has the threshold that was drawn, or is over."""
    talk = dp.reopen(SHARP, table, charge=before.conversation, ledger=ledger)
    if talk.ask(dp.mechanisms.IsAbove(dp.Count(), before.threshold + 1)) or not talk.ask(
        dp.mechanisms.IsAbove(dp.Count(), before.threshold)
    ):
        raise Unsound("a conversation goes on with another threshold")
