"""The exact law of everything an analyst sees of a whole program: releases, conversations, sessions, on made-up rows.

A program is a function of a `Visit`: a fresh table, a fresh testing ledger and a source of randomness. It asks what it
likes, looks at the answers, asks on; what it notes, and every entry of the ledger, is what the analyst sees. It is run
from the start once for every draw that has to be decided, so what is measured is the code that users run.

Two paths meet again when all that the future can depend on is equal: what was seen, the secrets of conversations, and
the draws since the last entry, which may still be in somebody's hands. A threshold's noise is forgotten once it has
said no, so the work grows with what was seen and not with every number that was drawn.

Claims. The ledger's charges are part of what is seen, and pure epsilons add up along every path: P(seen) <= e^spent
Q(seen) for every outcome, with what was spent *in that outcome* (`pure_finding`). At the ledger's one order the Renyi
divergence of the laws is at most the most that was spent on any path (`renyi_finding`). Both count what was cut off
against the finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.audit.divergence import Finding
from discreet.audit.laws import Atom, Branching, Law, Row, Setting, collect, countable
from discreet.core import NANO, NOTHING, Budget, BudgetExceeded, ConversationOver, Price, Rng, canonical
from discreet.data import Table
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, Laplace
from discreet.release import release

Program = Callable[["Visit"], None]

_NOT_SEEN = {"hash", "id", "nonce", "previous", "process", "time", "version", "who", "witness"}
"""Fields of entries that differ in any two runs."""


class Outcome(NamedTuple):
    """One outcome: what the program noted, the ledger's entries, and what was charged for what was not planted."""

    noted: tuple[Hashable, ...]
    entries: tuple[str, ...]
    spent: Price


class Visit:
    """One run of a program."""

    def __init__(self, table: Table, ledger: Ledger, rng: _Path) -> None:
        self.table, self.ledger, self.rng = table, ledger, rng
        self._noted: list[Hashable] = []
        self._entries: list[str] = []
        self._last, self._before = 0, NOTHING

    def note(self, what: Any) -> None:
        """Something that the analyst sees besides the ledger."""
        self._noted.append(countable(what))

    def ask(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        """Note what this call gives, or which refusal; the refusal's type is the answer then."""
        try:
            answer = ask(*arguments)
        except (BudgetExceeded, ConversationOver) as refusal:
            self.note(type(refusal).__name__)
            return type(refusal)
        self.note(answer)
        return answer

    def plant(self, mechanism: Gaussian | Laplace, value: Any) -> None:
        """A release of the past that happened to give this value, in the query's integers.

        Its noise is fixed, in both worlds: laws are then conditional on it, and its charge is not in the claim.
        """
        truth = self.table.exact_sum(mechanism.query)
        noise = np.asarray(value, dtype=np.int64) - truth
        self._before += release(mechanism, self.table, ledger=self.ledger, rng=_Fixed(noise)).price

    # What the search looks at.

    def seen(self) -> Outcome:
        self._read()
        books = self.ledger.spent()
        spent = Price(books.renyi, books.pure, books.failure).less(self._before)
        return Outcome(tuple(self._noted), tuple(self._entries), spent)

    def moment(self) -> tuple[int, int]:
        """Changes whenever the analyst or the ledger learns something."""
        with self.ledger.store.reading() as state:
            return len(self._noted), state.seq

    def state(self) -> Hashable:
        """What the future may depend on, but for the draws of this moment."""
        self._read()
        secrets = tuple(map(canonical, self.ledger.store.secrets.all().values()))
        return tuple(self._noted), tuple(self._entries), secrets

    def _read(self) -> None:
        for body in self.ledger.entries(after=self._last):
            self._entries.append(canonical({key: value for key, value in body.items() if key not in _NOT_SEEN}))
            self._last = body["seq"]


def program_law(
    program: Program,
    rows: Sequence[Row],
    setting: Setting,
    *,
    budget: Budget,
    reach: int,
    size: int | None = None,
    least: float = 0.0,
    merge: bool = True,
) -> Law:
    """The law of all that is seen when this program is run on these made-up rows with this budget.

    size   under add-remove: the number of persons that the owner declares
    least  paths of smaller probability are cut off, and counted as missing
    merge  False: for programs that keep secrets elsewhere than in the ledger's conversations
    """
    table = setting.table(rows, size=size)

    def walk(path: tuple[int, ...]) -> _Stop:
        """Run the program along a path, to its end or to the first draw that the path does not decide."""
        rng = _Path(path, reach)
        rng.visit = visit = Visit(table, Ledger.in_memory(budget, table, testing=True), rng)
        try:
            program(visit)
        except (_Undecided, KeyboardInterrupt):  # `release` turns whatever interrupts a mechanism into the latter
            if rng.next is None:
                raise
        if rng.next is None:
            return _Stop(path, visit.seen(), None)
        return _Stop(path, rng.stopped if merge else path, rng.next)

    finished: list[tuple[Hashable, float]] = []
    alive = [(walk(()), 1.0)]
    while alive:
        finished += [(stop.key, p) for stop, p in alive if stop.atoms is None]
        met: dict[Hashable, tuple[_Stop, float]] = {}
        for stop, p in alive:
            if stop.atoms is not None:
                first, so_far = met.get(stop.key, (stop, 0.0))
                met[stop.key] = (first, so_far + p)
        alive = [
            (walk((*stop.path, place)), p * chance)
            for stop, p in met.values()
            for place, (_, chance) in enumerate(stop.atoms or ())
            if p * chance > least
        ]
    return collect(finished)


@dataclass(frozen=True, slots=True)
class _Stop:
    """Where a path leads: to the end (no atoms; the key is what was seen), or to a draw that it does not decide."""

    path: tuple[int, ...]
    key: Hashable
    atoms: Sequence[Atom] | None


class _Undecided(BaseException):
    """A draw that the path does not decide."""


class _Path(Branching):
    """Follows a path to its end and stops there; notes what is drawn at one and the same moment."""

    def __init__(self, path: Sequence[int], reach: int) -> None:
        super().__init__(path, reach)
        self.visit: Visit | None = None
        self.next: Sequence[Atom] | None = None
        self.stopped: Hashable = None
        self._drawn: list[Any] = []
        self._moment: Hashable = None

    def _follow(self, atoms: Sequence[Atom]) -> Any:
        assert self.visit is not None
        moment = self.visit.moment()
        if moment != self._moment:
            self._moment, self._drawn = moment, []
        if self.next is not None or len(self.widths) == len(self.path):
            if self.next is None:
                self.next, self.stopped = atoms, (self.visit.state(), tuple(self._drawn))
            raise _Undecided
        value = super()._follow(atoms)
        self._drawn.append(value)
        return value


class _Fixed(Rng):
    """Noise that is known in advance."""

    private: ClassVar[bool] = False

    def __init__(self, noise: Any) -> None:
        self._noise = noise

    def laplace(self, scale: Fraction, size: Any = None) -> Any:
        return self._noise

    def gaussian(self, variance: Fraction, size: Any = None) -> Any:
        return self._noise


# What was found.


def pure_finding(p: Law, q: Law) -> Finding:
    """The outcome that tells most, against what was charged in it: it violates the claim, or comes nearest to it."""

    def finding(outcome: Any, here: Law, there: Law) -> Finding:
        ratio = here.mass[outcome] / (there.mass.get(outcome, 0.0) + there.missing)
        claimed = math.inf if outcome.spent.pure is None else outcome.spent.pure / NANO
        return Finding(0.0, max(0.0, math.log(ratio)) if ratio > 0 else 0.0, claimed, "loss")

    findings = [finding(outcome, *pair) for pair in ((p, q), (q, p)) for outcome in pair[0].mass]
    return max(findings, key=lambda one: (one.violates, one.ratio, one.found), default=Finding(0, 0, 0, "loss"))
