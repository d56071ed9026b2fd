"""What is done to a ledger while processes die and disks fail, and what must hold when it is done again.

An operation prepares a folder, acts on it in a process of its own, and says what it was told. Every answer that it says
was delivered: it has left the process, and nothing may undo its charge.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.errors import ParameterError
from discreet.estimators import Mean

DOMAIN = dp.Domain(age=dp.Number(0, 120, step=1), town=dp.Category("north", "south"))
ROWS = [(i * i % 97, ("north", "south")[i % 2]) for i in range(60)]
TENTH = dp.Laplace(dp.Count(), scale=10)
THRESHOLD = dp.mechanisms.AboveThreshold(40, 80)
NEVER, SURELY = dp.mechanisms.IsAbove(dp.Count(), 10**6), dp.mechanisms.IsAbove(dp.Count(), -(10**6))
QUESTIONS = [f"SELECT COUNT(*) FROM people WHERE age >= {age}" for age in (20, 50, 80)]

FREE_AGAIN = ("requests", "ask", "workload", "quantile", "fit")
"""Operations that pay nothing for an answer that was stored before the process died, and get the same one."""

Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with rows, a ledger beside nothing else, and the marks: three folders, so that each needs its sync."""

    root: str

    @property
    def ledger(self) -> Path:
        return Path(self.root, "books", "people.ledger")

    @property
    def state(self) -> Path:
        return Path(self.root, "state")

    @property
    def rows(self) -> Path:
        return Path(self.root, "rows", "people.csv")

    def make(self) -> None:
        for folder in (self.ledger.parent, self.rows.parent):
            folder.mkdir(parents=True)
        self.rows.write_text("age,town\n" + "".join(f"{age},{town}\n" for age, town in ROWS))

    def open(self) -> dp.Ledger:
        return dp.Ledger.open(self.ledger, state_dir=self.state)

    def create(self, table: dp.Table) -> dp.Ledger:
        return dp.Ledger.create(self.ledger, dp.Budget(100, 1e-6), table, state_dir=self.state)

    def from_file(self) -> dp.Table:
        """The rows in their file, whose sidecar names the ledger."""
        return dp.Table(self.rows, DOMAIN, name="people")

    def in_memory(self) -> dp.Table:
        """The same rows, from nowhere: no sidecar."""
        ages, towns = zip(*ROWS, strict=True)
        return dp.Table({"age": list(ages), "town": list(towns)}, DOMAIN, name="people")


class Operation:
    """One thing to do, in the middle of which a process dies. Subclasses say what.

    behind  the folder is prepared so that the ledger has to be reconciled first
    """

    name = ""
    behind = False

    def table(self, place: Place) -> dp.Table:
        return place.in_memory()

    def prepare(self, place: Place) -> None:
        """A ledger with one charge, so that every copy of it is one of a ledger in use."""
        place.make()
        with place.create(self.table(place)) as ledger:
            dp.release(TENTH, self.table(place), ledger=ledger)

    def begin(self, place: Place) -> dp.Ledger:
        return place.open()

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        raise NotImplementedError

    def mend(self, ledger: dp.Ledger) -> None:
        """What an owner does first with a ledger that is behind its mark."""

    def check(self, ledger: dp.Ledger, notes: list[dict[str, Any]]) -> None:
        """What else must hold before the operation is done again."""


class Release(Operation):
    """Two counts of a table in a file."""

    name = "release"

    def table(self, place: Place) -> dp.Table:
        return place.from_file()

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        table = self.table(place)
        for _ in range(2):
            _said(say, dp.release(TENTH, table, ledger=ledger))


class Crowd(Operation):
    """Three counts of a table in memory, for processes that run side by side."""

    name = "crowd"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        table = self.table(place)
        for _ in range(3):
            _said(say, dp.release(TENTH, table, ledger=ledger))


class Long(Operation):
    """Fifty counts in one process: long enough for SQLite to move its log into the file in between."""

    name = "long"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        table = self.table(place)
        for _ in range(50):
            _said(say, dp.release(TENTH, table, ledger=ledger))


class Requests(Operation):
    """Two counts with request ids; an id whose run was interrupted is given up for another."""

    name = "requests"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        table = self.table(place)
        for request in ("first", "second"):
            _said(say, self._asked(request, table, ledger), key=request)

    def _asked(self, request: str, table: dp.Table, ledger: dp.Ledger) -> dp.Released[Any]:
        for more in range(5):
            try:
                return dp.release(TENTH, table, ledger=ledger, request=f"{request}{more or ''}")
            except ParameterError:
                burned = {body["charge"] for body in ledger.entries() if body["kind"] == "burn"}
                if not any(
                    body.get("request") == f"{request}{more or ''}" and body["seq"] in burned
                    for body in ledger.entries()
                ):
                    raise
        raise AssertionError("an id is burned once for each death, and there was one")


class Conversation(Operation):
    """A threshold: opened, answered "no" twice, then "yes"."""

    name = "conversation"
    noes = 2

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        table = self.table(place)
        talk = dp.converse(THRESHOLD, table, ledger=ledger)
        say(opened=talk.charge)
        for turn in range(self.noes):
            say(turn=turn, conversation=talk.charge, value=talk.ask(NEVER))
        say(turn=self.noes, conversation=talk.charge, value=talk.ask(SURELY))

    def check(self, ledger: dp.Ledger, notes: list[dict[str, Any]]) -> None:
        """A conversation goes on until its "yes" was asked for; after that it may be over, and says no second one."""
        opened = [note["opened"] for note in notes if "opened" in note]
        for charge in opened:
            said = [note["value"] for note in notes if note.get("conversation") == charge]
            talk = dp.reopen(THRESHOLD, Place("").in_memory(), charge=charge, ledger=ledger)
            try:
                assert talk.ask(NEVER) is False
            except dp.errors.ConversationOver:
                assert len(said) >= self.noes, "a conversation is over before its last answer was asked for"
                continue
            assert True not in said, "a conversation answers after its last answer"
            assert talk.ask(SURELY) is True


class Ask(Operation):
    """Three questions of a session."""

    name = "ask"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        session = dp.Session(self.table(place), ledger, alpha=0.1)
        for question in QUESTIONS:
            answer = session.ask(question)
            say(key=question, value=[answer.value, answer.error_bound])


class Workload(Operation):
    """Two questions that are answered together."""

    name = "workload"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        session = dp.Session(self.table(place), ledger, alpha=0.1)
        answers = session.answer_all(QUESTIONS[:2], share=0.25)
        say(key="workload", value=[[answer.value, answer.error_bound] for answer in answers])


class Quantile(Operation):
    """A median."""

    name = "quantile"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        answer = dp.Session(self.table(place), ledger, alpha=0.2).ask("SELECT MEDIAN(age) FROM people")
        say(key="median", value=[answer.value, answer.error_bound])


class Fit(Operation):
    """An estimator, on a table in a file."""

    name = "fit"

    def table(self, place: Place) -> dp.Table:
        return place.from_file()

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        fitted = Mean(epsilon=0.1, ledger=ledger).fit(self.table(place), "age")
        say(key="mean", charge=fitted.entry_, value=float(fitted.value_))


class Create(Operation):
    """A new ledger for a table in a file."""

    name = "create"

    def table(self, place: Place) -> dp.Table:
        return place.from_file()

    def prepare(self, place: Place) -> None:
        place.make()

    def begin(self, place: Place) -> dp.Ledger:
        return place.create(self.table(place))

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        say(created=ledger.id)


class Reconcile(Operation):
    """An older copy was put back, and its owner reconciles it: everything counts once."""

    name = "reconcile"
    behind = True

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        older = Path(place.root, "older")
        shutil.copytree(place.ledger.parent, older)
        with place.open() as ledger:
            dp.release(TENTH, self.table(place), ledger=ledger)
        shutil.rmtree(place.ledger.parent)
        older.rename(place.ledger.parent)

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        self.mend(ledger)
        say(reconciled=ledger.spent().pure)

    def mend(self, ledger: dp.Ledger) -> None:
        ledger.reconcile()

    def check(self, ledger: dp.Ledger, notes: list[dict[str, Any]]) -> None:
        later = sum("went_on" in note for note in notes)
        assert ledger.spent().pure == (2 + later) * 10**8, (
            f"a reconciliation counts what was spent, and that once; found {ledger.spent().pure}"
        )


class Adopt(Reconcile):
    """The mark is lost, and the owner says that this is the newest copy."""

    name = "adopt"

    def prepare(self, place: Place) -> None:
        Operation.prepare(self, place)
        with place.open() as ledger:
            dp.release(TENTH, self.table(place), ledger=ledger)
        shutil.rmtree(place.state)

    def mend(self, ledger: dp.Ledger) -> None:
        ledger.reconcile(adopt=True)


class Allow(Operation):
    """An allowance for an analyst."""

    name = "allow"

    def act(self, ledger: dp.Ledger, place: Place, say: Say) -> None:
        ledger.allow("ana", share=0.25)
        say(allowed="ana")

    def check(self, ledger: dp.Ledger, notes: list[dict[str, Any]]) -> None:
        if any("allowed" in note for note in notes):
            ledger.remaining(allowance="ana")


def _said(say: Say, got: dp.Released[Any], **more: Any) -> None:
    say(charge=got.entry, hash=got.hash, value=got.value, **more)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        *(Release(), Requests(), Conversation(), Ask(), Workload(), Quantile(), Fit()),
        *(Create(), Reconcile(), Adopt(), Allow(), Crowd(), Long()),
    )
}
