"""A session: one table and its ledger, so that neither has to be named again.

    session = Session(table, ledger, alpha=0.02, beta=0.05)
    session.ask("SELECT COUNT(*) FROM people WHERE age >= 65 AND sex = 'F'")
    session.answer_all(["SELECT region, COUNT(*) FROM people GROUP BY region", ...])
    session.synthetic(10_000)
    session.fit(LogisticRegression(epsilon=1, delta=1e-6), features=["age", "sex"], target="smoker")

alpha fixes the noise and so the price of an answer; the ledger fixes how many answers there are. What was asked,
measured and answered is in the ledger alone (`answering.transcript`): another session on it knows as much. Answers
are about the edition of the rows that the table declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

from discreet.core import BudgetExceeded, Exact, ParameterError, Rng, Unproven, UnsupportedQuery, exact
from discreet.data import Dataset, DistinctRows, Domain
from discreet.ledger import Ledger, check_table
from discreet.query import EVERYTHING, Count, Histogram, Question, Sum, is_question

if TYPE_CHECKING:
    from discreet.answering import AdaptiveAnswers, Answer, Disclosures, Hypothesis, Make, Transcript
    from discreet.sql import Select

MAX_SYNTHETIC = 2**25
"""Values, rows times columns, that are drawn at a time: they are held in memory as Python objects."""

_LEAST_BETA = Fraction(1, 10**100)

METHODS = ("auto", "pmw", "lecture")


class Strategy(Protocol):
    """How a session answers linear queries: the default one, or a classic program.

    remembered  the answers, if all of these were given before or are public; free, and waits for no other session
    require     refuses now if what the queries need together does not fit
    price       what answering them could cost, at most
    hypothesis  what synthetic rows are drawn from; None before anything was measured
    """

    @property
    def transcript(self) -> Transcript: ...
    def remembered(self, queries: Sequence[Question]) -> list[Answer] | None: ...
    def require(self, queries: Sequence[Question]) -> None: ...
    def answer(self, query: Question) -> Answer: ...
    def price(self, queries: Sequence[Question]) -> int: ...
    def hypothesis(self) -> Hypothesis | None: ...


class Session:
    """A table of people and the ledger that counts what is released about them.

    alpha      how near every answer shall be, as a fraction of the persons; needed to ask, unless scopes are declared
    beta       the probability that any bound of the whole session fails
    questions  how many questions are planned: a guide for thresholds, the limit of "pmw" and "lecture" (10,000 there)
    scopes     how many different sets of columns will be asked about, if that is known: each gets an equal share of
               the ledger when it is first asked about
    method     "auto": what was measured answers free, the rest is rented or bought (`answering.adaptive`); "pmw" and
               "lecture": private multiplicative weights with a theorem on the number of updates
    sample     True: the owner states that the rows are a random sample, so that answers bound the population too, with
               probability 1 - beta - 0.05; replace-one only. A small beta makes that bound smaller
    allowance  the name under which the ledger counts these charges, those of `fit` too: its share is the limit then;
               None: the whole budget is
    max_price  a part of the budget: a question that could cost more is refused, by `ask`; "auto" without scopes only
    rng        for testing ledgers only
    """

    __slots__ = (
        *("_allowance", "_answers", "_disclosures", "_most", "_rng", "_rows", "_sample", "_terms"),
        *("ledger", "method", "table"),
    )

    def __init__(
        self,
        table: Dataset,
        ledger: Ledger,
        *,
        alpha: Exact | None = None,
        beta: Exact = 0.05,
        questions: int | None = None,
        scopes: int | None = None,
        method: str = "auto",
        sample: bool = False,
        allowance: str | None = None,
        max_price: Exact | None = None,
        rng: Rng | None = None,
    ) -> None:
        from discreet.answering import SessionTerms

        if not isinstance(ledger, Ledger):
            raise ParameterError(f"ledger must be a Ledger, found a {type(ledger).__name__}")
        if not all(hasattr(table, name) for name in ("facts", "identity", "exact_sum")):
            raise ParameterError(f"table must be a Table or another dataset, found a {type(table).__name__}")
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(METHODS)}; found {method!r}")
        if not isinstance(sample, bool):
            raise ParameterError(f"sample must be True or False, found {sample!r}")
        if sample and not table.facts.neighbours.replace_one:
            raise Unproven("a bound for the population needs the number of persons, which add-remove keeps private")
        if max_price is not None and (method != "auto" or scopes is not None):
            raise ParameterError('max_price needs method="auto" without scopes: only there is a price known before')
        if allowance is not None:
            ledger.remaining(allowance=exact.text(allowance=allowance))  # refuses unknown names
        with ledger.store.reading() as state:
            check_table(state, table)
        self.table, self.ledger, self.method = table, ledger, method
        sure = exact.probability(beta=beta)
        if sure < _LEAST_BETA:  # it is split over everything ever answered: floats must not take a part of it for 0
            raise ParameterError(f"beta must be at least {exact.shown(_LEAST_BETA)}, found {exact.shown(sure)}")
        self._terms = SessionTerms(
            None if alpha is None else exact.probability(alpha=alpha),
            sure,
            None if questions is None else exact.whole(questions=questions),
            None if scopes is None else exact.whole(scopes=scopes),
        )
        self._most = None if max_price is None else exact.positive(max_price=max_price)
        self._sample, self._allowance, self._rng = sample, allowance, rng
        self._rows = DistinctRows(table)
        self._answers: Strategy | None = None
        self._disclosures: Disclosures | None = None
        if alpha is not None or scopes is not None:
            self._answering()

    # Asking.

    def ask(self, question: str | Count | Sum | Histogram) -> Answer:
        """One answer. Everything that can be wrong with the question is found before anything is spent."""
        select = self._read(question)
        answering = self._answering()
        if _is_quantile(select):
            if self._most is not None:
                raise _no_forecast()
            return self._finished(self._quantile(select, str(question)))
        parts, make = self._parts(select, question)
        known = answering.remembered(parts)
        if known is not None:  # nobody has to wait for what was answered before
            return self._finished(make(known))
        with answering.transcript.alone():
            answering.require(parts)
            if self._most is not None:
                self._refuse_above(self._most, answering.price(parts))
            return self._finished(make([answering.answer(part) for part in parts]))

    def answer_all(
        self, questions: Sequence[str | Count | Sum | Histogram], *, share: Exact = 1, again: bool = False
    ) -> list[Answer]:
        """Answers to questions that are all known now: one release and one charge, for this share of what is left.

        Noisy marginals, a noisy histogram of everything, the questions themselves or averaged multiplicative weights:
        whichever has the least proven bound at the public sizes. Later questions of the session profit from it too.

        again  release them once more, even if what was released before answers them as well
        """
        answering = self._adaptive("a workload is answered")
        if isinstance(questions, str) or is_question(questions) or not isinstance(questions, Iterable):
            raise ParameterError(f"answer_all takes several questions in a list, found a {type(questions).__name__}")
        parts = []
        for question in questions:
            select = self._read(question)
            if _is_quantile(select):
                raise ParameterError("a workload is made of counts, sums and averages; ask for quantiles one by one")
            parts.append(self._parts(select, question))
        part = exact.positive(share=share)
        if part > 1:
            raise ParameterError(f"share must be at most 1, found {share!r}")
        queries = [query for needed, _ in parts for query in needed]
        with answering.transcript.alone():
            answers = iter(answering.answer_all(queries, share=part, again=again))
        return [self._finished(make([next(answers) for _ in needed])) for needed, make in parts]

    def check(self, question: str | Count | Sum | Histogram) -> None:
        """Refuse, with the reason, what cannot be asked. Looks at public things only and spends nothing."""
        select = self._read(question)
        if not _is_quantile(select):
            self._parts(select, question)

    def price(self, question: str | Count | Sum | Histogram) -> int:
        """What `ask` would charge for this question now, at most, in nano-units of the ledger's first book.

        Free, and nothing is written: it follows from the question, the declaration and what was released before.
        """
        select = self._read(question)
        if _is_quantile(select):
            raise _no_forecast()
        return self._answering().price(self._parts(select, question)[0])

    def more_like(self, answer: Answer) -> int | None:
        """About how many more answers at this price fit into what is left; after a free one, how many counts of
        something new. None where the next price is not known."""
        left, _ = self.budget()
        if answer.price:
            return left // answer.price
        if self.method != "auto" or self._terms.alpha is None:
            return None
        answering = self._adaptive("a price is known")
        count = answering.calibration.alone(Count(), answering.transcript.next_order)
        return left // answering.calibration.price(count)

    def budget(self) -> tuple[int, int]:
        """What is left for this session and what the whole budget was, in nano-units of the ledger's first book."""
        left = self.ledger.remaining(allowance=self._allowance)
        if left.caps.renyi is None:
            return left.pure or 0, left.caps.pure
        return left.renyi or 0, left.caps.renyi

    def known(self) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """The largest sets of columns that synthetic rows follow; and those that were measured too, but that the
        hypothesis leaves out, since together with the others they would take too large a table."""
        followed, left_out = self._adaptive("what rows know is told").scopes()
        return _largest(followed), _largest(left_out)

    def measured_by(self, tables: Sequence[Histogram]) -> list[int]:
        """The entries of the charges that measured these tables, each the last one."""
        known = self._adaptive("what was measured is told").measured_scopes()
        last = (max((entry for entry, scope in known if {*table.columns} <= {*scope}), default=0) for table in tables)
        return sorted({entry for entry in last if entry})

    def tangled(self, tables: Sequence[Histogram]) -> list[tuple[str, ...]]:
        """Which of these tables synthetic rows could not follow, with what is known and the others, if they were
        measured now. Looks at public sizes only."""
        return list(self._adaptive("what rows can follow is told").tangled(tables))

    def synthetic(
        self, rows: int, *, share: Exact | None = None, seed: int | None = None, backend: str = "pandas"
    ) -> Any:
        """A frame of made-up rows drawn from the hypothesis, which is made of what was released.

        Values are levels and numbers of the declared domain. What the session knows about is alike in these rows and in
        the table, up to the bounds of its answers; what was never measured is spread evenly.

        share  measure tables for them first, for this share of what is left (`choose_tables`). None: free, if anything
               was measured before; else a tenth of the budget is spent on it
        """
        from discreet.answering import frame_of

        domain, answering = self.table.facts.domain, self._answering()
        wanted = synthetic_rows(rows, domain)
        if share is not None or (self.method == "auto" and answering.hypothesis() is None):
            self.choose_tables(share)
        hypothesis = answering.hypothesis()
        if hypothesis is None:
            raise ParameterError("nothing was measured yet: ask questions first, then draw synthetic rows")
        columns = {}
        for name, drawn in hypothesis.sample(wanted, seed=seed).items():
            labels = {code: domain.column(name).label(code) for code in set(drawn.tolist())}
            columns[name] = [labels[code] for code in drawn.tolist()]
        return frame_of(columns, backend)

    def choose_tables(self, share: Exact | None = None) -> tuple[int, int]:
        """Measure the tables that synthetic rows need most: every column alone, pairs that connect them all, and some
        triples, chosen privately. The entry of the charge, and what was paid now: the same share again is free.

        share  of what is left; None: a tenth of the budget, or what is left if that is less
        """
        answering = self._adaptive("tables are chosen")
        part: Fraction | None = None if share is None else exact.positive(share=share)
        if part is not None and part > 1:
            raise ParameterError(f"share must be at most 1, found {share!r}")
        with answering.transcript.alone():
            left, cap = self.budget()
            name = "a tenth of the budget" if part is None else str(part)
            return answering.choose_tables(
                min(Fraction(1), Fraction(cap, 10 * max(1, left))) if part is None else part, name
            )

    # Learning.

    def fit(self, estimator: Any, *, target: str, features: Sequence[str] | None = None) -> Any:
        """Fit an estimator to columns of the table, charge the ledger, and return the estimator.

        Features are scaled by their declared bounds, categories become 0/1 coordinates; all declared columns but the
        target unless they are named. The estimator's ledger parameter becomes the session's, and so does its allowance.
        """
        if not (hasattr(estimator, "set_params") and "ledger" in estimator.get_params(deep=False)):
            raise ParameterError(f"estimator must be one of discreet's, found a {type(estimator).__name__}")
        if estimator.ledger is not None and estimator.ledger.id != self.ledger.id:
            raise ParameterError("this estimator has another ledger: a session charges its own")
        theirs, ours = estimator.get_params(deep=False).get("allowance"), self._allowance
        if ours is not None and theirs not in (None, ours):
            raise ParameterError(f"this estimator has the allowance {theirs!r}: a session charges its own, {ours!r}")
        estimator.set_params(ledger=self.ledger, **({} if ours is None else {"allowance": ours}))
        named = {} if features is None else {"features": features}
        return estimator.fit(self.table, target, **named)

    def __repr__(self) -> str:
        return f"Session({self.table!r}, {self.ledger!r})"

    # Inside.

    def _answering(self) -> Strategy:
        """What answers, by the session's method; made when the first question needs it."""
        from discreet.answering import AdaptiveAnswers, ClassicAnswers, program

        if self._answers is not None:
            return self._answers
        alpha, beta, rows, facts = self._terms.alpha, self._terms.beta, self._rows, self.table.facts
        if alpha is None and self._terms.scopes is None:
            raise ParameterError("to ask questions give the session alpha=, the fraction that answers may be off by")
        if self.method == "auto":
            self._answers = AdaptiveAnswers(rows, self.ledger, self._terms, allowance=self._allowance, rng=self._rng)
        else:
            questions, delta = self._terms.questions or 10_000, self.ledger.budget.delta
            made = program(self.method, facts, alpha=alpha, beta=beta, questions=questions, delta=delta)  # type: ignore[arg-type]
            self._answers = ClassicAnswers(made, rows, self.ledger, allowance=self._allowance, rng=self._rng)
        return self._answers

    def _adaptive(self, what: str) -> AdaptiveAnswers:
        """What answers, if it can do this."""
        if self.method != "auto":
            raise ParameterError(f'{what} by a session with method="auto"')
        return cast("AdaptiveAnswers", self._answering())

    def _read(self, question: object) -> Select | Question:
        """What is asked: a query as it is, a text as SQL."""
        if is_question(question):
            return question
        if not isinstance(question, str):
            raise ParameterError(f"a question is SQL, a Count, a Sum or a Histogram; found {type(question).__name__}")
        from discreet.sql import parse

        return parse(question, self.table.facts.domain, table=self.table.identity.name)

    def _parts(self, select: Select | Question, question: object) -> tuple[list[Question], Make]:
        """The linear queries that a question consists of, and what makes its answer of theirs."""
        from discreet.answering import put_together

        return put_together(select, self.table.facts, question if isinstance(question, str) else "")

    def _quantile(self, select: Select, text: str) -> Answer:
        """A quantile of a whole column, by the exponential mechanism on ranks, within alpha * size ranks."""
        from discreet.answering import quantile

        if select.where != EVERYTHING:
            raise UnsupportedQuery(
                text,
                max(0, text.upper().find("WHERE")),
                "a quantile is answered for a whole column, without WHERE",
                "Leave WHERE out, or ask how many rows lie below some values: COUNT(*) ... AND column <= 40.",
            )
        answering, column = self._adaptive("quantiles are answered"), str(select.column)
        answer = quantile(answering, self.table, column, select.probability or Fraction(1, 2))
        return replace(answer, value=float(answer.value), unit=f"{column}; the bound in ranks", ranks=True)

    def _refuse_above(self, part: Fraction, price: int) -> None:
        _, cap = self.budget()
        if price > part * cap:
            left = self.ledger.remaining(allowance=self._allowance)
            book = "pure epsilon" if left.caps.renyi is None else "Renyi"
            more = f"{100 * price / cap:.3g} % of the budget, and {float(100 * part):.3g} % was allowed"
            asked = f"up to {book} {exact.shown(Fraction(price, 10**9))}"
            raise BudgetExceeded(asked, left.amounts(), f"The answer could cost up to {more}: nothing was spent.")

    def _finished(self, answer: Answer) -> Answer:
        """The answer with the bound for the population: its own, and how far the rows may be from the population."""
        answer = replace(answer, testing=self.ledger.testing)
        if not self._sample or answer.fraction is None:
            return answer
        from discreet.answering import FAILURE, Disclosures, drift
        from discreet.catalogue import CATALOGUE

        facts = self.table.facts
        if self._disclosures is None:
            self._disclosures = Disclosures(self.ledger, facts, self._answering().transcript, CATALOGUE)
        told = self._disclosures.at(len(answer.value) if answer.groups else 1)
        away = drift(facts, told, beta=float(self._terms.beta), failure=FAILURE, random_sample=True)
        return replace(answer, population=min(1.0, answer.error_bound / max(1, facts.size or 1) + away.fraction))


def synthetic_rows(rows: object, domain: Domain) -> int:
    """The number of rows to draw, if so many of this domain fit in memory."""
    wanted, most = exact.whole(rows=rows), MAX_SYNTHETIC // len(domain)
    if wanted > most:
        found = exact.shown(Fraction(wanted))
        raise ParameterError(f"rows must be at most {most:,} at a time for {len(domain)} columns, found {found}")
    return wanted


def _largest(scopes: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Each set once, without those that lie inside another."""
    return [one for one in dict.fromkeys(scopes) if one and not any(set(one) < set(other) for other in scopes)]


def _no_forecast() -> ParameterError:
    from discreet.answering import NO_FORECAST

    return ParameterError(NO_FORECAST)


def _is_quantile(select: Select | Question) -> TypeGuard[Select]:
    return getattr(select, "kind", "") == "quantile"
