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
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, get_args

import numpy as np

from discreet.answering.answer import Answer
from discreet.answering.averaged_weights import AveragedWeights
from discreet.answering.chosen_tables import ChosenPart, ChosenTables
from discreet.answering.linear_query import scope_of
from discreet.answering.measurement import BetaPlace, Measured
from discreet.answering.residual_marginals import ResidualMarginals, ResidualPart
from discreet.answering.workload import Marginals
from discreet.core import Json, LedgerCorrupt, ParameterError, canonical, digest, record, revive
from discreet.data import Facts
from discreet.hypothesis import Scope
from discreet.ledger import Body, Ledger, answer_text, charging, decode, encode
from discreet.mechanisms import (
    KINDS,
    AboveThreshold,
    AboveThresholdLaplace,
    GroupQuantiles,
    Noisy,
    RankQuantile,
    StableGaussian,
)
from discreet.query import (
    Among,
    And,
    Between,
    Bins,
    Cases,
    Choose,
    Equals,
    Fixed,
    Lookup,
    Missing,
    Not,
    Of,
    Or,
    PersonKey,
    PersonNumber,
    PersonRows,
    Plus,
    Power,
    Question,
    Times,
    WithRest,
    is_question,
)

_READ: dict[str, Any] = {
    kind.NAME: kind
    for kind in (
        *(AboveThreshold, AboveThresholdLaplace, AveragedWeights, Marginals, RankQuantile),
        *(ChosenTables, ResidualMarginals),
        *(GroupQuantiles, *KINDS.values()),
        *get_args(Question),
        *(Among, And, Missing, Not, Or),
        *(Bins, Cases, Choose, Fixed, Lookup, Of, Plus, Power, Times, WithRest),
        *(PersonKey, PersonNumber, PersonRows),
    )
}
# The comparisons that thousands of measured questions are made of are few: each is one object.
_READ |= {kind.NAME: lru_cache(maxsize=4096, typed=True)(kind) for kind in (Between, Equals)}
_QUESTIONS = {kind.NAME for kind in get_args(Question)}
_ADDITIVE = {kind.NAME for kind in KINDS.values()}
_REQUEST = "session:"
_WORKLOADS = (Marginals.NAME, ResidualMarginals.NAME, AveragedWeights.NAME)

Additive = Noisy | ResidualPart | ChosenPart
"""What a charge measures, one number or table of it."""

_COUNTS = ("places", "runs", "tops", "guesses", "saved", "passed", "heard")

WIDE = ": wide"
"""What a session adds to its manner in the memo of a threshold that takes as many places as its own number: it doubles
how many are taken. Thresholds of before, without it, have one."""

SEVERAL = 8
"""Places of the series that splits beta which a charge takes that measures several numbers: they share its failure."""

_SAID = 64  # answers that are kept as objects; all of them are in the ledger

STORE_EVERY = 1000
"""Entries between two stored transcripts."""


@dataclass(frozen=True, slots=True)
class Run:
    """A threshold that a session opened, and its places in the series that splits beta."""

    entry: int
    conversation: AboveThreshold | AboveThresholdLaplace
    place: BetaPlace


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request id of a session, and the charge that has it already, if its answer was stored and never said."""

    name: str
    stored: charging.Stored | None

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


@dataclass(frozen=True, slots=True)
class PendingPart:
    """One query of a charge that has no stored answer yet: with its noise, its place in the series that splits beta,
    and whether what it measures holds for the session's rows and declaration."""

    noisy: Additive
    place: BetaPlace
    holds: bool


class Transcript:
    """Follows a ledger, for a table with these facts and a session of this manner.

    What was learned about this edition of the rows:

    measured  everything measured so far, in the order of the charges
    rented    for each scope what was paid for single numbers of it
    saved     what a threshold would have made needless since the hypothesis was last wrong
    passed    how many answers the last threshold gave, if the hypothesis was not found wrong without one since
    heard     how many numbers were said
    answers   everything that was said, in order; without `carries` only
    open_run  the threshold that is open now, if any; None too once it turned out to be over, its secret lost
    unsaid    the charges that a session made and of which no answer was said

    What is counted whatever the rows and the declaration were, so that failures add up to one beta:

    places      how many places of the series that splits beta are taken: one by a number or a quantile, `SEVERAL` by
                what measures several numbers, and as many again by a workload for its own readings; by a threshold as
                many as its first place says, so that it doubles them
    runs        how many thresholds were opened
    tops        how many thresholds have fired; `thresholds` are the entries of all of them
    guesses     how many answers of this manner came from the hypothesis
    numbers     the place of each quantile, and that of each workload's readings, by entry
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
        self.answers: list[Answer] = []
        self.rented: dict[Scope, int] = defaultdict(int)
        self.places = self.saved = self.passed = self.heard = self.runs = self.tops = self.guesses = 0
        self.open_run: Run | None = None
        self.thresholds: set[int] = set()
        self.unsaid: set[int] = set()
        self.numbers: dict[int, int] = {}
        self._pending: dict[int, list[PendingPart]] = {}
        self._places: list[tuple[int, int, int]] = []  # of each measurement: entry, part of it, order
        self._said: dict[str, Answer] = {}
        self._kept: dict[str, frozenset[str] | None] = {}
        self._seen = self._stored = 0
        self._hash = ledger.recorded(facts)[1]
        self._name = f"transcript/2 {manner} {self._hash}"

    def catch_up(self) -> bool:
        """Read the new entries; the first time, those after the stored transcript. Whether there were any."""
        before = self._seen
        if before == 0 and self.carries:
            with self.ledger.store.reading():  # one look at the ledger for all of it
                self._read_stored()
        for body in self.ledger.entries(after=self._seen):
            match body["kind"]:
                case "charge":
                    self._read_charge(body)
                case "answer":
                    parts = self._pending.pop(body["charge"], [])
                    for part, (one, value) in enumerate(zip(parts, _values(body) if parts else (), strict=True)):
                        if one.holds:
                            self._learn(one.noisy, value, entry=body["charge"], place=one.place, part=part)
                case "burn" | "top" | "close":
                    self._pending.pop(body["charge"], None)
                    self.unsaid.discard(body["charge"])
                    self.tops += body["kind"] == "top" and body["charge"] in self.thresholds
                    if self.open_run is not None and self.open_run.entry == body["charge"]:
                        self.open_run = None
                case "reconcile":
                    self.open_run = None
                case "said":
                    self._read_said(body)
            self._seen = body["seq"]
        return self._seen != before

    def said(self, meaning: str) -> Answer | None:
        """The last answer to the question with this meaning, looked up in the ledger once."""
        if meaning not in self._said:
            for seq in self.ledger.store.said(meaning):
                body = self.ledger.entry(seq)
                answer = self._held(body) if body["manner"] == self.manner and seq <= self._seen else None
                if answer is not None:
                    if len(self._said) >= _SAID:
                        del self._said[next(iter(self._said))]
                    self._said[meaning] = answer
                    break
        return self._said.get(meaning)

    def say(
        self,
        question: Question | RankQuantile | GroupQuantiles,
        meaning: str,
        beta: Fraction,
        answer: Answer,
        *,
        made_from: int | None = None,
    ) -> Answer:
        """Record an answer, durably, and return it; made_from: the entry of the charge that was made for it."""
        self.say_all([(question, meaning, answer)], beta, made_from=made_from)
        return answer

    def say_all(
        self,
        answers: Iterable[tuple[Question | RankQuantile | GroupQuantiles, str, Answer]],
        beta: Fraction,
        *,
        made_from: int | None = None,
    ) -> None:
        """Record many answers in one durable write."""
        sayings = []
        for question, meaning, one in answers:
            even = one.errors is None or bool(np.all(one.errors == one.error_bound))
            apart = () if even else (np.asarray(one.errors, dtype=np.float64),)
            text = encode((str(beta), one.value, float(one.error_bound), one.source, one.price, one.missed, *apart))
            sayings.append(charging.Saying(self._hash, record(question), meaning, self.manner, text, made_from))
        keep = {}
        if self.carries and self._seen - self._stored >= STORE_EVERY:
            keep, self._stored = {self._name: self._stored_text()}, self._seen
        charging.say(self.ledger, *sayings, keep=keep)

    def asked(self, terms: Json, what: Json) -> SessionRequest:
        """The request id for releasing this under these terms; with what was released under it and never said.

        The id is made of what is asked, the terms, the facts and k, the number of earlier releases of the same that are
        finished: their answer was said, or they never had one.
        """
        base = digest([self.manner, terms, self._hash, what])
        for place in itertools.count():
            name = f"{_REQUEST}{digest([base, place])}"
            stored = charging.stored(self.ledger, name)
            if stored is None or (stored.answer is not None and stored.entry in self.unsaid):
                return SessionRequest(name, stored)
        raise AssertionError("counting has no end")

    def alone(self) -> AbstractContextManager[object]:
        """Keeps other sessions from asking through this ledger, so that two which ask the same at once pay once."""
        return self.ledger.store.parts.turns.alone()

    @property
    def seen(self) -> int:
        """The last entry that was read."""
        return self._seen

    @property
    def next_order(self) -> int:
        """The first place that the next charge will get."""
        return self.places + 1

    def _take(self, places: int) -> int:
        """Take the next places; the first of them."""
        first, self.places = self.next_order, self.places + places
        return first

    def _holds(self, facts_hash: str, question: Any) -> bool:
        """Whether what was learned about a question under the facts with this hash holds here: the rows are of the same
        edition, and every column that it mentions is declared as it was."""
        if facts_hash == self._hash:
            return True
        if not self.carries or self.ledger.identity.unit is not None:
            return False
        if facts_hash not in self._kept:
            before, now = self.ledger.facts_with(facts_hash), self.facts
            same = frozenset(name for name in now.domain if now.domain[name] == before.domain.get(name))
            about = (before.edition, before.table, before.growth) == (now.edition, now.table, now.growth)
            self._kept[facts_hash] = same if about else None
        kept = self._kept[facts_hash]
        names = (question.column,) if isinstance(question, RankQuantile) else question.scope
        return kept is not None and kept.issuperset(names)

    # One entry each.

    def _read_charge(self, body: Body) -> None:
        """What a charge measures or opens, and which numbers that gets."""
        seq, name = body["seq"], body["mechanism"]["name"]
        if body["mode"] == "conversation":
            ours = body["memo"] in (self.manner, self.manner + WIDE)
            if not ours or name != self.threshold.NAME:  # type: ignore[attr-defined]
                return
            conversation = revive(body["mechanism"], _READ)
            # If a session can ask it: another program may have opened a threshold by this name.
            if conversation.sensitivity >= self.facts.neighbours.rows and not conversation.monotone:
                self.runs += 1
                self.thresholds.add(seq)
                place = BetaPlace(self.next_order, 1 if body["memo"] == self.manner else self.next_order)
                self._take(place.taken)
                if body["facts_hash"] == self._hash:
                    self.open_run, self.passed = Run(seq, conversation, place), 0
            return
        if name in (RankQuantile.NAME, GroupQuantiles.NAME, StableGaussian.NAME):
            self.numbers[seq] = self._take(1 if name == RankQuantile.NAME else SEVERAL)
        parts = additive_parts(body["mechanism"])
        if parts:
            places = places_of(parts, self.next_order)
            self._take(places[0].taken)
            holds = (self._holds(body["facts_hash"], noisy.query) for noisy in parts)
            self._pending[seq] = list(map(PendingPart, parts, places, holds))
        if name in _WORKLOADS:
            self.numbers[seq] = self._take(SEVERAL)
        if (body["request"] or "").startswith(_REQUEST):
            self.unsaid.add(seq)

    def _read_said(self, body: Body) -> None:
        self.unsaid.discard(body.get("made_from", 0))
        if body["manner"] != self.manner:
            return
        answer: Answer | None = _spoken(body)
        assert answer is not None
        self.guesses += answer.source == "hypothesis"
        self._said.pop(body["meaning"], None)
        if body["facts_hash"] != self._hash or not self.carries or answer.price:  # else the question is not read
            answer = self._held(body)
            if answer is None:
                return
            if not self.carries:
                self.answers.append(answer)
        self.heard += int(np.size(answer.value))
        rented = answer.price and answer.source != "hypothesis"  # such a price is a threshold's
        if rented and is_question(answer.question) and not answer.question.marginal:
            self.rented[scope_of(answer.question, self.facts.domain)] += answer.price
        if answer.source == "measurement":
            self.saved = 0  # a threshold has ended here
        elif answer.missed:
            self.saved = self.passed = 0  # one would have
        elif answer.missed is not None and answer.source == "hypothesis":
            self.passed += 1
        elif answer.missed is not None:
            self.saved += answer.price

    def _held(self, body: Body) -> Answer | None:
        """An answer that was said; None if it is about other rows or another declaration."""
        try:
            question = revive(body["question"], _READ)
            return _spoken(body, question) if self._holds(body["facts_hash"], question) else None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _another_text(body) from None

    # A stored transcript, so that a new session does not read a long ledger from its start.

    def _stored_text(self) -> str:
        """The transcript as text: measurements by their entries, sayings as their sums."""
        run = self.open_run
        state: Any = {
            "seq": self._seen,
            "hash": self.ledger.entry(self._seen)["hash"],
            "counts": [getattr(self, name) for name in _COUNTS],
            "open_run": None if run is None else [run.entry, run.place.order, run.place.taken],
            "thresholds": sorted(self.thresholds),
            "unsaid": sorted(self.unsaid),
            "numbers": [[entry, number] for entry, number in self.numbers.items()],
            "rented": [[list(scope), amount] for scope, amount in self.rented.items()],
            "pending": [
                [entry, parts[0].place.order, [one.holds for one in parts]] for entry, parts in self._pending.items()
            ],
            "measured": self._places,
        }
        return canonical({"check": digest(state), "state": state})

    def _read_stored(self) -> None:
        """Load the stored transcript, if it is as it was written and the ledger still has the entry it ends with."""
        try:
            stored = json.loads(self.ledger.store.kept(self._name) or "{}")
            state = stored["state"] if digest(stored["state"]) == stored["check"] else None
        except (KeyError, RecursionError, TypeError, ValueError):
            return
        if state is None or state["seq"] > self.ledger.length():
            return
        if self.ledger.entry(state["seq"])["hash"] != state["hash"]:
            return
        for name, count in zip(_COUNTS, state["counts"], strict=True):
            setattr(self, name, count)
        self.thresholds, self.unsaid = set(state["thresholds"]), set(state["unsaid"])
        self.numbers = dict(state["numbers"])
        self.rented.update({tuple(scope): amount for scope, amount in state["rented"]})
        if state["open_run"] is not None:
            entry, *place = state["open_run"]
            self.open_run = Run(entry, revive(self.ledger.entry(entry)["mechanism"], _READ), BetaPlace(*place))
        for entry, order, holds in state["pending"]:
            parts = additive_parts(self.ledger.entry(entry)["mechanism"])
            self._pending[entry] = list(map(PendingPart, parts, places_of(parts, order), holds))
        for entry, group in itertools.groupby(state["measured"], key=lambda place: place[0]):
            parts, end = additive_parts(self.ledger.entry(entry)["mechanism"]), self.ledger.store.end_of(entry)
            assert end is not None
            values = _values(end)
            for _, part, order in group:
                place = places_of(parts, order)[part]
                self._learn(parts[part], values[part], entry=entry, place=place, part=part)
        self._seen = self._stored = state["seq"]

    def _learn(self, noisy: Additive, value: Any, *, entry: int, place: BetaPlace, part: int) -> None:
        measure = partial(Measured.of, noisy) if isinstance(noisy, Noisy) else noisy.measured
        learned = measure(value, self.facts, entry=entry, place=place)
        if learned is not None:
            self.measured.append(learned)
            self._places.append((entry, part, place.order))


def _values(answer: Body) -> Sequence[Any]:
    """What a release measured: one value, or one for each of its questions."""
    released = decode(answer_text(answer))
    return released if isinstance(released, tuple) else (released,)


def _spoken(body: Body, question: Question | RankQuantile | GroupQuantiles | None = None) -> Answer:
    """The answer of a saying."""
    try:
        beta, value, bound, source, price, missed, *apart = decode(answer_text(body))
        errors = apart[0] if apart else np.full(np.shape(value), bound)
        told = {"missed": missed, "question": question, "beta": Fraction(beta), "errors": errors}
        told["entry"] = body.get("made_from") if source in ("direct", "measurement") else None
        return Answer(value, bound, source, price, **told)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        raise _another_text(body) from None


def _another_text(body: Body) -> LedgerCorrupt:
    return LedgerCorrupt(body["seq"], "an answer as a session writes it", "another text")


def places_of(parts: Sequence[Additive], order: int) -> list[BetaPlace]:
    """The places from this one on of a charge that measures these parts: they share its failure evenly."""
    several = len(parts) > 1 or parts[0].query.groups  # type: ignore[union-attr]
    return [BetaPlace(order, SEVERAL if several else 1, Fraction(1, len(parts)))] * len(parts)


def additive_parts(stored: Any) -> Sequence[Additive]:
    """The counts, sums and histograms that a charge measured, each with its noise; none if it is another mechanism."""
    if stored["name"] == Marginals.NAME:
        return revive(stored, _READ).parts  # type: ignore[no-any-return]
    if stored["name"] == ResidualMarginals.NAME:
        return revive(stored, _READ).residual_parts  # type: ignore[no-any-return]
    if stored["name"] == ChosenTables.NAME:
        return revive(stored, _READ).chosen_parts  # type: ignore[no-any-return]
    if stored["name"] not in _ADDITIVE:
        return ()
    known = stored["query"].get("name") in _QUESTIONS
    return (revive(stored, _READ),) if known else ()
