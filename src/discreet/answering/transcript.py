"""What a ledger says was measured, asked and answered: the whole state of a session.

A session keeps nothing of its own. Its measurements are charges with answers, its thresholds are conversations, and
every answer that is not public anyway is a `said` entry, so that the same question gets the same bytes again, free, as
long as the bound of that answer is good enough for the asker. Two sessions on one ledger share all of it, and a session
that was killed goes on where it stopped. Releases that somebody made outside any session are measurements too, if they
are counts, sums or histograms with Laplace or Gaussian noise, made from the same edition of the rows.

A charge says by its facts which edition of the rows it is about (`Facts.edition`, declared by the owner). Only charges
and answers about the session's own edition teach it anything. Those about another edition, and those without one (an
array that was handed to an estimator, a fold, an entry written before there were editions), count and teach nothing.

`manner` names the rules by which a session answers and states its bounds; answers are shared within a manner.

A table may be declared anew while its ledger goes on (bounds were bought for a column, say). What was measured and said
before still holds where every column that the question mentions is declared as it was: such columns have the same
codes in the same rows. Not where persons have several rows: which of them are kept depends on all declared columns.
Orders, runs, tops and guesses are counted over all declarations and editions, so that one beta covers everything that
was ever answered.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.answering.averaged_weights import AveragedWeights
from discreet.answering.linear_query import Question, mentioned, scope_of
from discreet.answering.measurement import Measured
from discreet.answering.workload import Marginals
from discreet.data import Facts, Floats
from discreet.erm.exponential.line import RankQuantile
from discreet.errors import LedgerCorrupt, ParameterError
from discreet.hypothesis import Scope
from discreet.ledger import Body, Ledger, answer_text, charging, decode, encode
from discreet.ledger.charging import Stored
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, Gaussian, Laplace
from discreet.query import Among, And, Between, Count, Equals, Histogram, Missing, Not, Or, Sum
from discreet.records import Json, canonical, digest, record, revive

_PREDICATES = (Among, And, Between, Equals, Missing, Not, Or)
_READ: dict[str, type] = {
    each.NAME: each
    for each in (
        AboveThreshold,
        AboveThresholdLaplace,
        AveragedWeights,
        Count,
        Gaussian,
        Histogram,
        Laplace,
        Marginals,
        RankQuantile,
        Sum,
        *_PREDICATES,
    )
}
_REQUEST = "session:"
Threshold = AboveThreshold | AboveThresholdLaplace
Asked = Question | RankQuantile


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """An answer to one question.

    value   numbers in the question's units, of the shape of its answer; whole where the question counts
    bound   with probability 1 - beta of the session every number is within this of the truth, all at once
    source  "cache", "hypothesis", "measurement", "direct" or "public"
    price   what was charged for it, in nano-units of the ledger's first book; 0: nothing
    missed  for a question that was paid for: whether the hypothesis had been wrong about it; None if it had no guess
    """

    value: Any
    bound: float
    source: str
    price: int = 0
    missed: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """An answer that was given, and to which question."""

    entry: int
    question: Asked
    beta: Fraction
    given: Given


@dataclass(frozen=True, slots=True)
class Run:
    """A threshold that a session opened, and its number among the runs."""

    entry: int
    conversation: Threshold
    number: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request id of a session, and the charge that has it already, if its answer was stored and never said."""

    name: str
    stored: Stored | None

    @property
    def mechanism(self) -> Any:
        """The mechanism that was charged."""
        assert self.stored is not None
        return revive(self.stored.mechanism, _READ)

    @property
    def value(self) -> Any:
        """What it released."""
        assert self.stored is not None
        assert self.stored.answer is not None
        return decode(self.stored.answer)


class Transcript:
    """Follows a ledger, for a table with these facts and a session of this manner.

    What was learned about this edition of the rows:

    measured  everything measured so far, in the order of the charges
    rented    for each scope what was paid for single numbers of it
    saved     what a threshold would have made needless since the hypothesis was last wrong
    heard     how many numbers were said
    answers   everything that was said, in order; without `carries` only
    open_run  the threshold that is open now, if any
    unsaid    the charges that a session made and of which no answer was said

    What is counted whatever the rows and the declaration were, so that failures add up to one beta:

    charged     how many numbers or tables were measured
    runs        how many thresholds were opened; with `carries`, and workloads answered
    tops        how many thresholds have fired; `thresholds` are the entries of all of them
    guesses     how many answers of this manner came from the hypothesis
    numbers     the number of each quantile among the measurements, and of each workload among the runs, by entry
    """

    def __init__(
        self, ledger: Ledger, facts: Facts, *, manner: str, threshold: type = AboveThreshold, carries: bool = False
    ) -> None:
        """carries: what was learned under another declaration counts where that says the same."""
        if facts.edition is None:
            raise ParameterError(
                "these rows have no edition, so nothing could be learned about them: a session answers about a Table "
                'or ParquetTable of its owner, with edition="..."'
            )
        self.ledger, self.facts, self.manner, self.threshold, self.carries = ledger, facts, manner, threshold, carries
        self.measured: list[Measured] = []
        self.charged = 0
        self.answers: list[Said] = []
        self.rented: dict[Scope, int] = defaultdict(int)
        self.saved = self.heard = 0
        self.runs = self.tops = self.guesses = 0
        self.open_run: Run | None = None
        self.thresholds: set[int] = set()
        self.unsaid: set[int] = set()
        self.numbers: dict[int, int] = {}
        self._pending: dict[int, list[tuple[Question, Gaussian | Laplace, int, bool]]] = {}
        self._places: list[tuple[int, int, int]] = []  # of each measurement: entry, part of it, order
        self._said: dict[str, Said] = {}
        self._kept: dict[str, frozenset[str] | None] = {}
        self._seen = self._stored = 0
        self._hash = ledger.recorded(facts)[1]

    def catch_up(self) -> None:
        """Read the new entries; the first time, those after the stored transcript."""
        if self._seen == 0 and self.carries:
            with self.ledger.store.reading():  # one look at the ledger for all of it
                self._read_stored()
        for body in self.ledger.entries(after=self._seen):
            fold = _FOLDS.get(body["kind"])
            if fold is not None:
                fold(self, body)
            self._seen = body["seq"]

    def said(self, meaning: str) -> Said | None:
        """The last answer to the question with this meaning, looked up in the ledger once."""
        if meaning not in self._said:
            for seq in self.ledger.store.said(meaning):
                body = self.ledger.entry(seq)
                noted = self._held(body) if body["manner"] == self.manner and seq <= self._seen else None
                if noted is not None:
                    self._said[meaning] = noted
                    break
        return self._said.get(meaning)

    def say(
        self, question: Asked, meaning: str, beta: Fraction, given: Given, *, made_from: int | None = None
    ) -> Given:
        """Record an answer, durably, and return it; made_from: the entry of the charge that was made for it."""
        self.say_all([(question, meaning, given)], beta, made_from=made_from)
        return given

    def say_all(
        self, answers: Iterable[tuple[Asked, str, Given]], beta: Fraction, *, made_from: int | None = None
    ) -> None:
        """Record many answers in one durable write."""
        sayings = [
            charging.Saying(self._hash, record(question), meaning, self.manner, _text(beta, given), made_from)
            for question, meaning, given in answers
        ]
        keep = {}
        if self.carries and self._seen - self._stored >= STORE_EVERY:
            keep, self._stored = {self._name: self._stored_text()}, self._seen
        charging.say(self.ledger, *sayings, keep=keep)

    def asked(self, terms: Json, what: Json) -> Request:
        """The request id for releasing this under these terms; with what was released under it and never said.

        The id is made of what is asked, the terms, the facts and k, the number of earlier releases of the same that are
        finished: their answer was said, or they never had one.
        """
        base = digest([self.manner, terms, self._hash, what])
        for place in itertools.count():
            name = f"{_REQUEST}{digest([base, place])}"
            found = charging.stored(self.ledger, name)
            if found is None or (found.answer is not None and found.entry in self.unsaid):
                return Request(name, found)
        raise AssertionError("counting has no end")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other session asks through this ledger: two that ask the same at once shall pay once."""
        with self.ledger.store.parts.turns.alone():
            yield

    def forget_run(self) -> None:
        """The open threshold turned out to be over: its secret is not beside the ledger."""
        self.open_run = None

    @property
    def next_order(self) -> int:
        """The number that the next measurement will get."""
        return self.charged + 1

    def _holds(self, facts_hash: str, question: Asked) -> bool:
        """Whether what was learned about a question under the facts with this hash holds here."""
        if facts_hash == self._hash:
            return True
        if not self.carries or self.ledger.identity.unit is not None:
            return False
        if facts_hash not in self._kept:
            self._kept[facts_hash] = _declared_alike(self.ledger.facts_with(facts_hash), self.facts)
        kept = self._kept[facts_hash]
        if kept is None:
            return False
        names = (question.column,) if isinstance(question, RankQuantile) else mentioned(question)
        return kept.issuperset(names)

    # One entry each.

    def _charge(self, body: Body) -> None:
        if body["mode"] == "conversation":
            self._note_run(body)
            return
        self._note_parts(body)
        if (body["request"] or "").startswith(_REQUEST):
            self.unsaid.add(body["seq"])

    def _note_parts(self, body: Body) -> None:
        """What a charge measures, and which numbers that gets."""
        if body["mechanism"]["name"] == RankQuantile.NAME:
            self.charged += 1
            self.numbers[body["seq"]] = self.charged
        if self.carries and body["mechanism"]["name"] in (Marginals.NAME, AveragedWeights.NAME):
            self.runs += 1
            self.numbers[body["seq"]] = self.runs
        parts = additive_parts(body["mechanism"])
        if parts:
            self._pending[body["seq"]] = [
                (*part, self.charged + place, self._holds(body["facts_hash"], part[0]))
                for place, part in enumerate(parts, 1)
            ]
            self.charged += len(parts)

    def _note_run(self, body: Body) -> None:
        """A threshold of this manner, if a session can ask it: somebody may have opened another one by this name."""
        if body["memo"] != self.manner or body["mechanism"]["name"] != self.threshold.NAME:  # type: ignore[attr-defined]
            return
        conversation = revive(body["mechanism"], _READ)
        if conversation.sensitivity >= self.facts.neighbours.rows and not conversation.monotone:
            self.runs += 1
            self.thresholds.add(body["seq"])
            if body["facts_hash"] == self._hash:
                self.open_run = Run(body["seq"], conversation, self.runs)

    def _answer(self, body: Body) -> None:
        parts = self._pending.pop(body["charge"], None)
        if parts is None:
            return
        for part, ((question, mechanism, order, holds), value) in enumerate(zip(parts, _values(body), strict=True)):
            if holds:
                self._learn(question, mechanism, value, entry=body["charge"], order=order, part=part)

    def _ended(self, body: Body) -> None:
        self._pending.pop(body["charge"], None)
        self.unsaid.discard(body["charge"])
        self.tops += body["kind"] == "top" and body["charge"] in self.thresholds
        if self.open_run is not None and self.open_run.entry == body["charge"]:
            self.open_run = None

    def _reconciled(self, body: Body) -> None:
        self.open_run = None

    def _note_said(self, body: Body) -> None:
        self.unsaid.discard(body.get("made_from", 0))
        if body["manner"] != self.manner:
            return
        given = _spoken(body)[1]
        self.guesses += given.source == "hypothesis"
        self._said.pop(body["meaning"], None)
        if body["facts_hash"] == self._hash and self.facts.edition is not None and self.carries and not given.price:
            self._count(given)  # nearly all of them: what was asked need not be read
            return
        noted = self._held(body)
        if noted is not None:
            self._count(given, noted.question)
            if not self.carries:
                self.answers.append(noted)

    def _held(self, body: Body) -> Said | None:
        """An answer that was said; None if it is about other rows or another declaration."""
        beta, given = _spoken(body)
        try:
            question = revive(body["question"], _READ)
            return Said(body["seq"], question, beta, given) if self._holds(body["facts_hash"], question) else None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _another_text(body) from None

    def _count(self, given: Given, question: Asked | None = None) -> None:
        """Add an answer up; what it was about matters if it was paid."""
        self.heard += int(np.size(given.value))
        if given.price and isinstance(question, (Count, Sum)):
            self.rented[scope_of(question, self.facts.domain)] += given.price
        if given.missed or given.source == "measurement":
            self.saved = 0  # a threshold would have ended here, or has
        elif given.missed is not None:
            self.saved += given.price

    # A stored transcript, so that a new session does not read a long ledger from its start.

    @property
    def _name(self) -> str:
        return f"transcript {self.manner} {self._hash}"

    def _stored_text(self) -> str:
        """The transcript as text: measurements by their entries, sayings as their sums."""
        run = self.open_run
        held: Any = {
            "seq": self._seen,
            "hash": self.ledger.entry(self._seen)["hash"],
            "counts": [getattr(self, name) for name in _COUNTS],
            "open_run": None if run is None else [run.entry, run.number],
            "thresholds": sorted(self.thresholds),
            "unsaid": sorted(self.unsaid),
            "numbers": [[entry, number] for entry, number in self.numbers.items()],
            "rented": [[list(scope), amount] for scope, amount in self.rented.items()],
            "pending": [[entry, [part[2:] for part in parts]] for entry, parts in self._pending.items()],
            "measured": self._places,
        }
        return canonical({"check": digest(held), "state": held})

    def _read_stored(self) -> None:
        """Load the stored transcript, if the ledger still has the entry that it ends with."""
        text = self.ledger.store.kept(self._name)
        held = None if text is None else _checked_state(text)
        if held is None or held["seq"] > self.ledger.length() or self.ledger.entry(held["seq"])["hash"] != held["hash"]:
            return
        for name, count in zip(_COUNTS, held["counts"], strict=True):
            setattr(self, name, count)
        self.thresholds, self.unsaid, self.numbers = set(held["thresholds"]), set(held["unsaid"]), dict(held["numbers"])
        self.rented.update({tuple(scope): amount for scope, amount in held["rented"]})
        if held["open_run"] is not None:
            entry, number = held["open_run"]
            self.open_run = Run(entry, revive(self.ledger.entry(entry)["mechanism"], _READ), number)
        for entry, rest in held["pending"]:
            parts = additive_parts(self.ledger.entry(entry)["mechanism"])
            self._pending[entry] = [(*part, order, holds) for part, (order, holds) in zip(parts, rest, strict=True)]
        self._read_measured(held["measured"])
        self._seen = self._stored = held["seq"]

    def _read_measured(self, places: Sequence[tuple[int, int, int]]) -> None:
        for entry, group in itertools.groupby(places, key=lambda place: place[0]):
            parts, end = additive_parts(self.ledger.entry(entry)["mechanism"]), self.ledger.store.end_of(entry)
            assert end is not None
            values = _values(end)
            for _, part, order in group:
                question, mechanism = parts[part]
                self._learn(question, mechanism, values[part], entry=entry, order=order, part=part)

    def _learn(
        self, question: Question, mechanism: Gaussian | Laplace, value: Any, *, entry: int, order: int, part: int
    ) -> None:
        self.measured.append(measured(question, mechanism, value, self.facts, entry=entry, order=order))
        self._places.append((entry, part, order))


STORE_EVERY = 1000
"""Entries between two stored transcripts."""

_COUNTS = ("charged", "runs", "tops", "guesses", "saved", "heard")


def _checked_state(text: str) -> Any:
    """What was stored, if it is as it was written: a cache that is damaged is no cache."""
    try:
        held = json.loads(text)
        return held["state"] if digest(held["state"]) == held["check"] else None
    except (KeyError, RecursionError, TypeError, ValueError):
        return None


def _values(answer: Body) -> Sequence[Any]:
    """What a release measured: one value, or one for each of its questions."""
    released = decode(answer_text(answer))
    return released if isinstance(released, tuple) else (released,)


def _spoken(body: Body) -> tuple[Fraction, Given]:
    """The doubt and the answer of a saying."""
    try:
        beta, value, bound, source, price, missed = decode(answer_text(body))
        return Fraction(beta), Given(value, bound, source, price, missed)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        raise _another_text(body) from None


def _another_text(body: Body) -> LedgerCorrupt:
    return LedgerCorrupt(body["seq"], "an answer as a session writes it", "another text")


def _declared_alike(before: Facts, now: Facts) -> frozenset[str] | None:
    """The columns that are declared as they were; None if the rows were another edition, or had none."""
    if before.edition != now.edition:
        return None
    return frozenset(name for name in now.domain if name in before.domain and before.domain[name] == now.domain[name])


def _text(beta: Fraction, given: Given) -> str:
    return encode((str(beta), given.value, float(given.bound), given.source, given.price, given.missed))


def measured(
    question: Question, mechanism: Gaussian | Laplace, value: Any, facts: Facts, *, entry: int, order: int
) -> Measured:
    """A released answer with what is public about its noise."""
    kind = "gaussian" if isinstance(mechanism, Gaussian) else "laplace"
    numbers: Floats = np.asarray(value, dtype=np.float64)
    return Measured(question, kind, float(mechanism.scale), float(question.unit(facts)), numbers, entry, order)


def additive_parts(stored: Any) -> Sequence[tuple[Question, Gaussian | Laplace]]:
    """The questions that a charge measured, each with its noise; none if it is another mechanism."""
    if stored["name"] == Marginals.NAME:
        together = revive(stored, _READ)
        noisy = Gaussian if together.kind == "gaussian" else Laplace
        pairs = zip(together.queries, together.scales, strict=True)
        return [(query, noisy(query, scale)) for query, scale in pairs]
    if stored["name"] not in (Gaussian.NAME, Laplace.NAME) or stored["query"].get("name") not in _READ:
        return ()
    mechanism = revive(stored, _READ)
    return ((mechanism.query, mechanism),) if isinstance(mechanism.query, (Count, Sum, Histogram)) else ()


_FOLDS = {
    "charge": Transcript._charge,
    "answer": Transcript._answer,
    "burn": Transcript._ended,
    "top": Transcript._ended,
    "close": Transcript._ended,
    "reconcile": Transcript._reconciled,
    "said": Transcript._note_said,
}
