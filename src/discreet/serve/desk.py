"""A desk: one schema, its rows, its ledger and the sessions of its analysts. Nothing else in the service touches rows.

Two threads' worth of state, so that what is free stays quick while rows are read:

    the reader  a session that never reads rows: prices, cached answers, what is known. Behind a lock, for moments
    the payer   a session on the one thread of `jobs.Jobs`, where everything runs that may read rows or charge

Each follows the ledger once for all analysts: `Session.for_allowance` gives every analyst a session that shares what
was read. An analyst's name is the allowance that the ledger counts under, for everything that the analyst does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.answering import answer_record, cost_record
from discreet.catalogue import CATALOGUE
from discreet.core import (
    Cancelled,
    LedgerUnavailable,
    NotFound,
    RequestConflict,
    TooLarge,
    code_version,
)
from discreet.describe import asked
from discreet.ledger import REPLY
from discreet.modelling import persons_of
from discreet.schema import DatabaseSchema, read_with_ledger, require_ledger
from discreet.serve import models
from discreet.serve.jobs import Job, Jobs, Ticket
from discreet.serve.keys import Key
from discreet.serve.replies import Replies, checked_id
from discreet.serve.settings import Settings

HISTORY = 200
"""Answers that a history has, at most."""


@dataclass(frozen=True, slots=True)
class OpenSchema:
    """What a desk works with: a declaration, its rows, and their ledger.

    read  the rows under a declaration of one table
    """

    schema: Any
    table: Any
    ledger: dp.Ledger
    read: Callable[[dp.Schema], Any]

    @staticmethod
    def at(path: Path, state_dir: Path | None = None) -> OpenSchema:
        """The schema in a file, its ledger and its rows: in this order, cheapest first."""
        schema, where = read_with_ledger(path)
        require_ledger(schema, where, path)
        ledger = dp.Ledger.open(where, state_dir=state_dir)
        table = schema.database() if isinstance(schema, DatabaseSchema) else schema.table()
        return OpenSchema(schema, table, ledger, dp.Schema.table)

    @staticmethod
    def rehearsal(schema: Any, budget: dp.Budget, size: int | None) -> OpenSchema:
        """Made-up rows of a schema, and a ledger in memory."""
        people = () if size is None else (size,)
        table = schema.rehearsal(*people)
        ledger = dp.Ledger.in_memory(budget, table)
        return OpenSchema(schema, table, ledger, lambda declared: declared.rehearsal(*people))


class Desk:
    """One schema with its rows and its ledger, and everybody who asks.

    meter  called with a key, the name of a limit per minute and the amount that was taken of it
    alive  whether a key is still good: asked when its job begins and before each charge
    """

    def __init__(
        self,
        found: OpenSchema,
        settings: Settings,
        *,
        meter: Callable[[Key, str, float], object] = lambda key, what, amount: None,
        alive: Callable[[Key], bool] = lambda key: True,
    ) -> None:
        self.schema, self.table, self.ledger, self._read = found.schema, found.table, found.ledger, found.read
        self.name: str = found.schema.name
        self.limits = limits = settings.limits
        self.jobs = Jobs(self.name, most=limits.waiting, most_each=limits.waiting_each, grid=settings.job_grid)
        self._ask_grid = settings.time_grid
        self.replies = Replies(self.ledger)
        self._meter, self._alive = meter, alive
        self._reader, self._payer = (
            dp.Session(self.table, self.ledger, price=settings.price, beta=settings.beta) for _ in range(2)
        )
        self._readers: dict[str, dp.Session] = {}
        self._payers: dict[str, dp.Session] = {}
        self._reading, self._beginning = threading.Lock(), threading.Lock()
        self._running: dict[tuple[str, str], tuple[str, Job]] = {}

    def close(self, patience: float = 30.0) -> bool:
        """Refuse new work, let the running job end, and close the ledger; whether it ended in time."""
        ended = self.jobs.close(patience)
        if ended and self.ledger.path is not None:
            self.ledger.close()
        return ended

    # Public things.

    def about(self) -> dict[str, Any]:
        """The declaration: tables and columns, who is protected, the promise. Nothing comes from rows."""
        schema, ledger = self.schema, self.ledger
        facts = ledger.facts
        return {
            "name": self.name,
            "protects": schema.protects(),
            "relation": str(ledger.identity.neighbours),
            "unit": ledger.identity.unit,
            "size": self.size,
            "epsilon": str(ledger.budget.epsilon),
            "delta": str(ledger.budget.delta),
            "edition": None if facts is None else facts.edition,
            "warning": "NOT PRIVATE" if ledger.testing else None,
            "rehearsal": ledger.identity.rehearsal,
            "tables": [
                {
                    "name": each.name,
                    "unit": each.unit,
                    "rows_per_unit": each.rows_per_unit,
                    "columns": [dp.data.column_record(name, each.domain.column(name)) for name in each.domain.names],
                }
                for each in schema.tables
            ],
            "limits": {name: getattr(self.limits, name) for name in ("question", "questions", "cells", "rows")},
            "version": code_version(),
        }

    @property
    def size(self) -> int | None:
        """The public number of persons."""
        return persons_of(self.table)

    def known(self) -> dict[str, Any]:
        """What was measured already, so that questions about it are free, and the last questions that were answered."""
        questions = [
            {"entry": each["seq"], "asked": asked(each["question"])}
            for each in self.ledger.latest("said", most=HISTORY)
            if each["manner"] != REPLY
        ]
        with self._reading:
            return {**models.columns_known(self._reader), "questions": questions}

    # An analyst.

    def budget(self, holder: Key) -> dict[str, Any]:
        """What is left for this holder, and what it has spent; of an owner, of the whole budget."""
        name = None if holder.owner else holder.name
        left = self.ledger.remaining(allowance=name)
        use = next((each for each in self.ledger.allowances() if each.name == name), None)
        spent = self.ledger.spent()
        part = spent.used() if use is None else use.part
        rest = max(Fraction(0), 1 - left.used()) if use is None else use.left
        return {
            "allowance": name,
            "share": None if use is None else str(use.share),
            "spent_percent": None if part is None else 100 * float(part),
            "left_percent": 100 * float(rest),
            "left_nano": left.caps.in_first(left) or 0,
            "budget_nano": left.caps.first,
            "epsilon_so_far": spent.epsilon if use is None else use.epsilon,
            "epsilon": str(self.ledger.budget.epsilon),
            "delta": str(self.ledger.budget.delta),
            "words": f"{dp.exact.percent(float(rest))} of the budget",
        }

    def counts(self, holder: Key) -> bool:
        """Whether the ledger has an allowance of this analyst; an owner needs none."""
        with self.ledger.store.reading() as state:
            return holder.owner or holder.name in state.allowances

    def price(self, holder: Key, sql: str) -> dict[str, Any]:
        """What a question would cost now, at most, and whether it is free. Reads no rows, charges nothing."""
        holder.require("ask")
        self._check_question(sql)
        with self._priced(holder) as session:
            self._check_cells(session, sql)
            cost = session.price(sql)
            left, cap = session.budget()
            above = cost > dp.session.MAX_PRICE * cap
            bound = session.bound(sql) if cost else None
        return {
            "bound": bound,
            "price": cost_record(cost),
            "free": not cost,
            "above_max_price": above,
            "fits": cost <= left,
        }

    def begin_ask(self, holder: Key, sql: str, *, request: str | None = None, max_price: str | None = None) -> Job:
        """The job of a question; its result is the answer, as `answering.answer_record` writes it, and what it cost.
        Ended already, if the answer is free and was given before; the same request id finds it again."""
        holder.require("ask")
        self._check_question(sql)

        def at_once(ticket: Ticket) -> dict[str, Any] | None:
            with self._priced(holder) as session:
                self._check_cells(session, sql)
                answer = session.remembered(sql)
                return None if answer is None else self._told(session, sql, answer, ticket, [])

        def work(session: dp.Session, job: Job) -> dict[str, Any]:
            answer = session.ask(sql, max_price=max_price)
            return self._told(session, sql, answer, job.ticket, job.acting.charges)

        return self.begin(Ticket(holder, "ask", checked_id(request)), sql, work, at_once)

    def begin_workload(
        self, holder: Key, questions: Sequence[str], *, share: str | None = None, request: str | None = None
    ) -> Job:
        """The job of several questions that are answered by one release, for a share of what is left."""
        holder.require("ask")
        if len(questions) > self.limits.questions:
            raise TooLarge(f"a workload has at most {self.limits.questions:,} questions, found {len(questions):,}")
        for sql in questions:
            self._check_question(sql)
        with self._priced(holder) as session:
            self._check_cells(session, *questions)

        def work(session: dp.Session, job: Job) -> dict[str, Any]:
            answers = session.answer_all(list(questions), share=share)
            pairs = zip(questions, answers, strict=True)
            return {
                "answers": [{"question": sql, **answer_record(answer)} for sql, answer in pairs],
                "entries": list(job.acting.charges),
                "left": models.left_of(session),
                "request": job.ticket.request,
            }

        what = "; ".join(questions) + (f" (share {share})" if share else "")
        return self.begin(Ticket(holder, "workload", checked_id(request)), what, work)

    def begin_fit(self, holder: Key, asked: dict[str, Any], *, request: str | None = None) -> Job:
        """The job of a fit; `asked` has the members of `api.Fit`."""
        holder.require("fit")
        what = self._words("fit", asked)
        return self.begin(Ticket(holder, "fit", checked_id(request)), what, models.fit(asked, self.limits))

    def begin_learn(self, holder: Key, asked: dict[str, Any], *, request: str | None = None) -> Job:
        """The job of a rule; `asked` has the members of `api.Learn`."""
        holder.require("learn")
        work = models.learn(asked, self.schema, self._read)
        return self.begin(Ticket(holder, "learn", checked_id(request)), self._words("learn", asked), work)

    def begin_suggest(self, holder: Key, asked: dict[str, Any], *, request: str | None = None) -> Job:
        """The job of bounds that are looked for; `asked` has the members of `api.Suggest`."""
        holder.require("suggest")
        what = self._words("suggest-bounds", asked)
        return self.begin(Ticket(holder, "suggest", checked_id(request)), what, models.suggest(asked))

    def begin_synthetic(self, holder: Key, asked: dict[str, Any], *, request: str | None = None) -> Job:
        """The job of synthetic rows; its attachment has them. `asked` has the members of `api.Synthetic`."""
        holder.require("synth")
        work, what = models.synthetic(asked, self.limits.rows), self._words("synth", asked)
        return self.begin(Ticket(holder, "synth", checked_id(request)), what, work, file=True)

    def plan(self, holder: Key, asked: dict[str, Any]) -> dict[str, Any]:
        """Every method for one kind of release side by side, for a share of what is left or an epsilon. No rows."""
        holder.require("ask")
        self.schema.table_schema(asked["table"])
        with self._priced(holder) as session:
            return models.planned(asked, session, holder.name)

    def history(self, holder: Key, *, most: int = HISTORY) -> list[dict[str, Any]]:
        """What this analyst asked and was told, newest first, under any key of the same name."""
        return self.replies.history(holder.name, most=min(most, HISTORY))

    def model(self, holder: Key, entry: int) -> tuple[dict[str, Any], str]:
        """A model that this analyst paid for, as the history has it, and its file."""
        for each in self.history(holder):
            if each["entry"] == entry and "model" in each["reply"]:
                return each, models.file_of(self.name, each["reply"])
        raise NotFound("there is no such model of this key")

    def job(self, holder: Key, id_: str) -> Job:
        """A job of this holder."""
        return self.jobs.find(holder, id_)

    # The owner.

    def spending(self, holder: Key) -> dict[str, Any]:
        """What every analyst has spent and has left, and the whole."""
        holder.require_owner()
        whole = self.ledger.summary(last=0)
        whole.pop("charges"), whole.pop("questions")
        analysts = [
            {
                "name": each.name,
                "share": str(each.share),
                "spent_percent": None if each.part is None else 100 * float(each.part),
                "left_percent": 100 * float(each.left),
                "epsilon_so_far": each.epsilon,
            }
            for each in self.ledger.allowances()
        ]
        return {"analysts": analysts, **whole}

    def entries(self, holder: Key, *, most: int = HISTORY, before: int | None = None) -> list[dict[str, Any]]:
        """The last charges, or the last before an entry, with who made them and what was asked, newest first."""
        holder.require_owner()
        return self.ledger.charges(most=most, before=before)[::-1]

    def export(self, holder: Key, *, everything: bool = False) -> Iterator[str]:
        """Every entry as a line of JSON."""
        holder.require_owner()
        return self.ledger.export(redact=not everything)

    def verify(self, holder: Key) -> dict[str, Any]:
        """Check every entry, every sum, every price and the mark; LedgerCorrupt names what is wrong."""
        holder.require_owner()
        unknown = self.ledger.verify(CATALOGUE)
        length = self.ledger.length()
        return {"entries": length, "sound": True, "not_priced_again": list(unknown)}

    def certificate(self, holder: Key, entry: int) -> dict[str, Any]:
        """The certificate of a charge: of any for an owner, of an own one for an analyst."""
        nothing = NotFound(f"there is no charge of this key in entry {entry}")
        if not 1 <= entry <= self.ledger.length():
            raise nothing
        body = self.ledger.entry(entry)
        if not holder.owner and (body["kind"] != "charge" or body["allowance"] != holder.name):
            raise nothing
        found: dict[str, Any] = dp.certificate(self.ledger, entry).record
        return found

    def report(self, holder: Key) -> str:
        """The page about the ledger that `discreet report` writes, as HTML."""
        from discreet.report import ledger_report

        holder.require_owner()
        return ledger_report(self.ledger, self.schema.protects(), everything=True)[0]

    # Inside.

    def begin(
        self,
        ticket: Ticket,
        what: str,
        work: models.Work,
        at_once: Callable[[Ticket], dict[str, Any] | None] | None = None,
        file: bool = False,
    ) -> Job:
        """The job of a request: the running one with the same id, the kept reply, or a new one.

        at_once  tries to answer without the queue
        file     the work makes a file, which no reply keeps: it is made again, from what was charged then
        """
        with self._beginning:
            if (running := self._under(ticket, what)) is not None:
                return running
        kept = self.replies.find(ticket, what)
        if kept is not None and not file:
            return Job.ended(ticket, kept)
        quick = None if at_once is None else at_once(ticket)
        if quick is not None:
            if ticket.request is not None:
                self._keep(ticket, what, quick)
            return Job.ended(ticket, quick)
        return self._submit(ticket, what, work, file=file)

    def _submit(self, ticket: Ticket, what: str, work: models.Work, *, file: bool) -> Job:
        def run(job: Job) -> dict[str, Any]:
            start = self.ledger.length()
            job.checked = lambda: self._check_charge(job, start)
            self._check_alive(ticket)
            kept = self.replies.find(ticket, what)  # another process may have answered since
            if kept is not None and not file:
                return kept
            reply = work(self._session_of(self._payers, self._payer, ticket.holder), job)
            if not (file or job.acting.charges) and (kept := self.replies.find(ticket, what)) is not None:
                return kept  # it paid while this one waited for the ledger's turn: the same id gets the same bytes
            if ticket.request is not None or job.acting.charges:
                self._keep(ticket, what, reply)
            return reply

        with self._beginning:
            if (running := self._under(ticket, what)) is not None:  # it came meanwhile
                return running
            job = self.jobs.submit(ticket, run, grid=self._ask_grid if ticket.kind == "ask" else None)
            job.what = what
            if ticket.request is not None:
                self._running[ticket.holder.id, ticket.request] = f"{ticket.kind} {what}", job
        return job

    def _under(self, ticket: Ticket, what: str) -> Job | None:
        """The job that runs under the id of this request, as far as its owner may know; RequestConflict if it is
        another one. Inside the lock `_beginning`."""
        self._running = {place: each for place, each in self._running.items() if not each[1].over}
        known = self._running.get((ticket.holder.id, ticket.request or ""))
        if known is not None and known[0] != f"{ticket.kind} {what}":
            raise RequestConflict("this request id is being used for something else: take a new one")
        return None if known is None else known[1]

    def _words(self, kind: str, asked: dict[str, Any]) -> str:
        """What is asked, if it is about a table of this schema."""
        self.schema.table_schema(asked["table"])
        return models.in_words(kind, asked)

    def _keep(self, ticket: Ticket, what: str, reply: dict[str, Any]) -> None:
        self._meter(ticket.holder, "bytes kept", self.replies.keep(ticket, what, reply))

    def _check_alive(self, ticket: Ticket) -> None:
        if not self._alive(ticket.holder):
            raise Cancelled("the key was revoked or has expired; nothing more is charged for it")

    def _check_charge(self, job: Job, start: int) -> None:
        """Refuse a charge whose key has ended, or whose request another process has charged since this job began.
        It runs inside the transaction of the charge, so that of two processes one is refused."""
        self._check_alive(job.ticket)
        if job.ticket.request is None:
            return
        for body in self.ledger.entries(after=start):
            if body["kind"] == "charge" and body.get("by") == job.ticket.by and body["seq"] not in job.acting.charges:
                raise LedgerUnavailable("another process runs this request now: ask again later with the same id")

    def _session_of(self, sessions: dict[str, dp.Session], root: dp.Session, holder: Key) -> dp.Session:
        if self.ledger.identity.rehearsal:
            return root
        if holder.name not in sessions:
            sessions[holder.name] = root.for_allowance(holder.name)
        return sessions[holder.name]

    @contextmanager
    def _priced(self, holder: Key) -> Iterator[dp.Session]:
        """The reader's session of this holder, for what reads no rows; the time it takes is metered."""
        with self._reading:
            began = time.thread_time()
            try:
                yield self._session_of(self._readers, self._reader, holder)
            finally:
                self._meter(holder, "seconds of pricing", time.thread_time() - began)

    def _check_question(self, sql: str) -> None:
        if len(sql) > self.limits.question:
            raise TooLarge(f"a question has at most {self.limits.question:,} characters here, found {len(sql):,}")

    def _check_cells(self, session: dp.Session, *questions: str) -> None:
        cells, one = sum(map(session.cells, questions)), "an answer" if len(questions) == 1 else "a workload"
        if cells > self.limits.cells:
            raise TooLarge(f"{one} has at most {self.limits.cells:,} numbers here, this one {cells:,}: ask for fewer")

    def _told(
        self, session: dp.Session, sql: str, answer: dp.Answer, ticket: Ticket, charges: Sequence[int]
    ) -> dict[str, Any]:
        """An answer as it is sent."""
        return {
            "question": sql,
            **answer_record(answer),
            "words": str(answer),
            "entries": list(charges),
            "left": models.left_of(session),
            "more_like_this": session.more_like(answer),
            "request": ticket.request,
        }
