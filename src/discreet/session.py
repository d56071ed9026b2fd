"""A session: one table and its ledger, so that neither has to be named again.

    session = Session(table, ledger)
    session.ask("SELECT COUNT(*) FROM people WHERE age >= 65 AND sex = 'F'")
    session.answer_all(["SELECT region, COUNT(*) FROM people GROUP BY region", ...])
    session.synthetic(10_000)
    session.fit(LogisticRegression(epsilon=1, delta=1e-6), features=["age", "sex"], target="smoker")

A price, or alpha, fixes the noise of an answer; the ledger fixes how many answers there are. What was asked,
measured and answered is in the ledger alone (`answering.transcript`): another session on it knows as much. Answers
are about the edition of the rows that the table declares.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, cast

from discreet.core import (
    AboveMaxPrice,
    Cost,
    Exact,
    Pairs,
    ParameterError,
    Priced,
    Rng,
    Sheet,
    Shown,
    Unproven,
    exact,
    one_line,
)
from discreet.data import JOIN, Database, Dataset, DistinctRows, Domain, declaration_sheet, is_dataset
from discreet.ledger import Ledger, check_table
from discreet.query import Count, Histogram, KeyCount, OfPersons, Question, Sum, is_question

if TYPE_CHECKING:
    from discreet.answering import AdaptiveAnswers, Answer, Assembly, Disclosures, Hypothesis, Ranked, Transcript
    from discreet.sql import Known, Statement

MAX_SYNTHETIC = 2**25
"""Values, rows times columns, that are drawn at a time: they are held in memory as Python objects."""

Weights = Sequence[Exact] | None
_NO_PRICE = 'only method="auto" answers for a price: the others need alpha='

METHODS = ("auto", "pmw", "lecture")

PRICE = Fraction(1, 100)
"""What a question costs if nobody says: this part of the budget."""

MAX_PRICE = Fraction(1, 10)
"""What costs more than this part of the budget is refused, unless a larger max_price says that it may."""


class Strategy(Protocol):
    """How a session answers linear queries: the default one, or a classic program.

    remembered    the answers, if all of these were given before or are public; free, and waits for no other session
    answer_parts  the answers to the parts of one question, by at most one charge; the first has the price
    bill          what answering them could buy, at most
    hypothesis    what synthetic rows are drawn from; None before anything was measured
    """

    @property
    def transcript(self) -> Transcript: ...
    def remembered(self, queries: Sequence[Question], weights: Weights = None) -> list[Answer] | None: ...
    def answer_parts(self, queries: Sequence[Question], weights: Weights = None) -> list[Answer]: ...
    def bill(self, queries: Sequence[Question], weights: Weights = None) -> Sequence[Priced]: ...
    def hypothesis(self) -> Hypothesis | None: ...


class Session(Shown):
    """A table of people, or a database of several tables, and the ledger that counts what is released about them.

    price      what a question may cost, as a part of the budget: "1%", 0.01 or 1/100. Its bound is what this buys. The
               default, 1 %, holds unless alpha or scopes are given
    alpha      the other way to say it: how near every answer shall be, as a fraction of the persons
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
    max_price  a part of the budget: any request that could cost more is refused
    rng        for testing ledgers only
    """

    __slots__ = (
        *("_allowance", "_answers", "_disclosures", "_known", "_most", "_rng", "_rows", "_sample", "_terms"),
        *("_given", "_root", "_sessions", "database", "ledger", "method", "table"),
    )

    def __init__(
        self,
        table: Dataset | Database,
        ledger: Ledger,
        *,
        price: Exact | None = None,
        alpha: Exact | None = None,
        beta: Exact = 0.05,
        questions: int | None = None,
        scopes: int | None = None,
        method: str = "auto",
        sample: bool = False,
        allowance: str | None = None,
        max_price: Exact = MAX_PRICE,
        rng: Rng | None = None,
    ) -> None:
        from discreet.answering import SessionTerms

        self.database, self._sessions = None, dict[tuple[str, ...], Session]()
        self._root: Session | None = None  # of a session for an allowance: the one it shares its reading with
        if isinstance(table, Database):
            self.database, table = table, table.view(table.persons or table.tables[0])
        self._given: dict[str, Any] = {
            **{"price": price, "alpha": alpha, "beta": beta, "questions": questions, "scopes": scopes},
            **{"method": method, "sample": sample, "allowance": allowance, "max_price": max_price, "rng": rng},
        }
        if not isinstance(ledger, Ledger):
            raise ParameterError(f"ledger must be a Ledger, found a {type(ledger).__name__}")
        if not is_dataset(table):
            raise ParameterError(f"table must be a Table or another dataset, found a {type(table).__name__}")
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(METHODS)}; found {method!r}")
        if not isinstance(sample, bool):
            raise ParameterError(f"sample must be True or False, found {sample!r}")
        if sample and not table.facts.neighbours.replace_one:
            raise Unproven("a bound for the population needs the number of persons, which add-remove keeps private")
        if price is not None and (alpha is not None or method != "auto"):
            raise ParameterError("a session has a price or an alpha, not both" if alpha is not None else _NO_PRICE)
        if allowance is not None:
            ledger.remaining(allowance=exact.text(allowance=allowance))  # refuses unknown names
        with ledger.store.reading() as state:
            check_table(state, table)
        self.table, self.ledger, self.method = table, ledger.about(table.facts), method
        sure = exact.probability(exact.TINY, beta=beta)  # it is split over everything ever answered
        self._terms = SessionTerms(
            None if alpha is None else exact.probability(alpha=alpha),
            sure,
            None if questions is None else exact.whole(questions=questions),
            None if scopes is None else exact.whole(scopes=scopes),
            self._price_of(price, alpha, scopes),
        )
        self._most = part_of_budget(max_price=max_price)
        self._sample, self._allowance, self._rng = sample, allowance, rng
        self._rows, self._known = DistinctRows(table), self._catalogue()
        self._answers: Strategy | None = None
        self._disclosures: Disclosures | None = None
        if alpha is not None or scopes is not None:
            self._answering()

    def _price_of(self, price: Exact | None, alpha: Exact | None, scopes: int | None) -> Fraction | None:
        """The part of the budget that a question may cost, if the session is not told otherwise how to answer."""
        if price is not None:
            part = part_of_budget(price=price)
            if part > 1:
                raise ParameterError(f"price must be at most the whole budget, found {price!r}", argument="price")
            return part
        return PRICE if alpha is None and scopes is None and self.method == "auto" else None

    def _catalogue(self) -> list[Known]:
        """The tables that a question in SQL may be about."""
        from discreet.sql import Known

        if self.database is not None:
            known = self.database.catalogue.items()
            all_of_them, one = self.database.persons, self.database.identity.neighbours.replace_one
            size = self.database.size if one else None
            sizes = {name: size if name == all_of_them else None for name, _ in known}
            return [
                Known(name, each.domain, each.key, each.rows_per_unit, name == all_of_them, sizes[name])
                for name, each in known
            ]
        facts, identity = self.table.facts, self.table.identity
        return [Known(facts.table or identity.name, facts.domain, identity.unit, facts.neighbours.rows)]

    # Several tables.

    def on(self, *tables: str) -> Session:
        """The session about one table of the database, or about tables that are joined by the person."""
        if self.database is None:
            raise ParameterError("this session is about one table; Session(database, ledger) is about several")
        view = self.database.view(tables)
        if tables not in self._sessions and self._root is not None and self._allowance is not None:
            self._sessions[tables] = self._root.on(*tables).for_allowance(self._allowance)
        elif tables not in self._sessions:
            self._sessions[tables] = Session(view, self.ledger, **self._given)
            self._sessions[tables]._known = self._known
        return self._sessions[tables]

    def for_allowance(self, name: str) -> Session:
        """A session with the same table, ledger and terms that charges this allowance. What was read of the ledger is
        shared: the sessions of many analysts read each entry once. They are used one at a time, like this one."""
        self.ledger.remaining(allowance=exact.text(allowance=name))  # refuses unknown names
        made = copy.copy(self)
        made._allowance, made._given, made._sessions = name, {**self._given, "allowance": name}, {}
        made._disclosures, made._root = None, self._root or self
        made._answers = self._adaptive("an allowance is charged").for_allowance(name) if self.method == "auto" else None
        return made

    def about(self, question: object) -> Session:
        """The session of the tables that a question names; without a database it is this one."""
        if self.database is None:
            return self
        if not isinstance(question, str):
            raise ParameterError(f"which table is it about? session.on({self.database.tables[0]!r}).ask(...)")
        return self.on(*self._statement(question).tables)

    def _require_one_table(self, what: str) -> None:
        if self.database is not None:
            table = self.database.tables[0]
            raise ParameterError(f"of several tables, {what} for one, or for a join: session.on({table!r})")

    # Asking.

    def ask(self, question: str | Count | Sum | Histogram, *, max_price: Exact | None = None) -> Answer:
        """One answer. Everything that can be wrong with the question is found before anything is spent.

        max_price  the session's, unless it is given here
        """
        from discreet.answering import drawn

        if self.database is not None:
            return self.about(question).ask(question, max_price=max_price)
        asked, most = self._assembly(question), self._most if max_price is None else part_of_budget(max_price=max_price)
        if asked.unlisted is not None:
            return self._unlisted(asked, asked.unlisted, most)
        known = self._remembered(asked)
        if known is not None:  # nobody has to wait for what was answered before
            return known
        shared, ranked = self._sharing(asked), self._ranked(asked)
        answering, weights = shared._answering(), asked.weights(pure=self.ledger.caps.renyi is None)
        with answering.transcript.alone():
            bill = shared._bill(asked)
            cost = self._cost(bill)
            self._refuse_above(most, cost, () if ranked else asked.questions)
            self._refuse_in_part(bill, of_all=bool(ranked))
            parts = answering.answer_parts(asked.questions, weights) if asked.questions else []
            draws = drawn(shared._adaptive("quantiles are answered"), ranked) if ranked else []
            return self._finished(asked.answer(parts, draws), cost)

    def remembered(self, question: str | Count | Sum | Histogram) -> Answer | None:
        """The answer, if the same was answered before or is public: it is free, reads no rows, writes nothing and waits
        for nobody. None: `ask` may know it all the same, or buy it."""
        session = self.about(question)
        asked = session._assembly(question)
        return None if asked.unlisted is not None else session._remembered(asked)

    def _remembered(self, asked: Assembly) -> Answer | None:
        from discreet.answering import drawn

        shared, ranked = self._sharing(asked), self._ranked(asked)
        weights = asked.weights(pure=self.ledger.caps.renyi is None)
        known = shared._answering().remembered(asked.questions, weights) if asked.questions else []
        draws = drawn(shared._adaptive("quantiles are answered"), ranked, buy=False) if ranked else []
        return None if known is None or None in draws else self._finished(asked.answer(known, draws))

    def answer_all(
        self, questions: Sequence[str | Count | Sum | Histogram], *, share: Exact | None = None, again: bool = False
    ) -> list[Answer]:
        """Answers to questions that are all known now: one release and one charge, for this share of what is left; a
        tenth, or max_price if that is less, unless a share is stated.

        Noisy marginals, a noisy histogram of everything, the questions themselves or averaged multiplicative weights:
        whichever has the least proven bound at the public sizes. Later questions of the session profit from it too.

        again  release them once more, even if what was released before answers them as well
        """
        if self.database is not None and questions and not isinstance(questions, str):
            about = {self.about(question) for question in questions}
            if len(about) > 1:
                raise ParameterError("questions that are answered together are about one table, or one join")
            return about.pop().answer_all(questions, share=share, again=again)
        answering = self._adaptive("a workload is answered")
        if isinstance(questions, str) or is_question(questions) or not isinstance(questions, Iterable):
            raise ParameterError(f"answer_all takes several questions in a list, found a {type(questions).__name__}")
        asked = [self._assembly(question) for question in questions]
        if any(each.quantiles or each.unlisted is not None for each in asked):
            raise ParameterError("a workload is made of counts, sums and averages; ask for other things one by one")
        part = min(MAX_PRICE, self._most) if share is None else exact.positive(share=share)
        if part > 1:
            raise ParameterError(f"share must be at most 1, found {share!r}")
        queries = [query for each in asked for query in each.questions]
        with answering.transcript.alone():
            answers = iter(answering.answer_all(queries, share=part, again=again))
        return [self._finished(each.answer([next(answers) for _ in each.questions])) for each in asked]

    def summed(self, question: str | Count | Sum | Histogram) -> list[str]:
        """The numbers whose values a question adds up, each once: they are read within their declared bounds."""
        session = self.about(question)
        sums = [each for each in session._assembly(question).questions if not each.counting]
        names = dict.fromkeys(name for each in sums for name in summed_columns(each))
        return [name for name in names if session.table.facts.domain.column(name).bounded]

    def check(self, question: str | Count | Sum | Histogram) -> None:
        """Refuse, with the reason, what cannot be asked. Looks at public things only and spends nothing."""
        self.about(question)._assembly(question)

    def cells(self, question: str | Count | Sum | Histogram) -> int:
        """How many numbers are counted, drawn or shown for the answer: known before anything is priced."""
        session = self.about(question)
        asked, domain = session._assembly(question), session.table.facts.domain
        counted = sum(math.prod(each.shape(domain)) for each in asked.questions)
        groups = math.prod(len(key.labels) for key in asked.statement.keys)
        return max(counted + len(asked.quantiles) * groups, len(asked.statement.outputs) * groups)

    def parts(self, question: str | Count | Sum | Histogram) -> list[Question]:
        """The linear queries that a question is made of, each once; public, and spends nothing."""
        return list(self.about(question)._assembly(question).questions)

    def price(self, question: str | Count | Sum | Histogram) -> Cost:
        """What `ask` would charge for this question now, at most: printed, which part of the budget that is and the
        epsilon that it would be by itself; as a number, nano-units of the ledger's first book.

        Free, and nothing is written: it follows from the question, the declaration and what was released before.
        """
        session = self.about(question)
        asked = session._assembly(question)
        if asked.unlisted is not None:
            return session._keys_cost(asked.unlisted)[1]
        return session._cost(session._sharing(asked)._bill(asked))

    def _keys_cost(self, keys: KeyCount) -> tuple[Fraction, Cost]:
        """What part of the budget keys that nobody listed are shown for, and what that is now."""
        from discreet.answering import keys_price, stable_keys

        answering, part = self._adaptive("keys that nobody listed are shown"), self._terms.price or PRICE
        told = keys_price(answering, keys, part=part)
        free = not (told.price.renyi or told.price.pure)
        return part, self._cost([] if free else [stable_keys(keys, self.table.facts, self.ledger, part=part)])

    def _unlisted(self, asked: Assembly, keys: KeyCount, most: Fraction) -> Answer:
        """The groups of a text that are common enough."""
        from discreet.answering import ask_unknown_keys

        part, cost = self._keys_cost(keys)
        self._refuse_above(most, cost)
        found = ask_unknown_keys(self._adaptive("keys that nobody listed are shown"), keys, part=part)
        return replace(self._finished(asked.shown_keys(found), cost), note=found.note)

    def _sharing(self, asked: Assembly) -> Session:
        """The session whose price is what each quantile of a question may cost, and its counts and sums together: they
        are charged one after another, and no question costs more than the price."""
        many = len(asked.quantiles) + bool(asked.questions)
        if self._terms.price is None or many < 2:
            return self
        shared = copy.copy(self)
        shared._terms, shared._answers = replace(self._terms, price=self._terms.price / many), None
        return shared

    def _bill(self, asked: Assembly) -> list[Priced]:
        """What would be bought to answer a question."""
        from discreet.answering import needed_draws

        ranked, bill = self._ranked(asked), list[Priced]()
        if asked.questions:
            bill += self._answering().bill(asked.questions, asked.weights(pure=self.ledger.caps.renyi is None))
        return [*bill, *(needed_draws(self._adaptive("quantiles are answered"), ranked) if ranked else ())]

    def _cost(self, bill: Sequence[Priced]) -> Cost:
        """What these cost together."""
        guarantees = [each.guarantee(self.table.facts) for each in bill]
        prices = [self.ledger.price(each) for each in guarantees]
        caps = self.ledger.caps
        nano = sum(caps.in_first(each) or 10**30 for each in prices)
        delta, whole = self.ledger.budget.delta, functools.reduce(operator.add, guarantees) if guarantees else None
        return Cost(nano, cap=caps.first, delta=delta, guarantee=whole)

    def more_like(self, answer: Answer) -> int | None:
        """About how many more answers at this price fit into what is left; after a free one, how many counts of
        something new. None where the next price is not known."""
        if self.method != "auto" or self._terms.scopes is not None:
            return self.budget()[0] // answer.price if answer.price else None
        answering = self._adaptive("a price is known")
        return answering.forecast(answer.price or answering.count_price())

    def budget(self) -> tuple[int, int]:
        """What is left for this session and what the whole budget was, in nano-units of the ledger's first book."""
        left = self.ledger.remaining(allowance=self._allowance)
        return left.caps.in_first(left) or 0, left.caps.first

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
        the table, up to the bounds of its answers; what was never measured is spread evenly, and so are numbers and
        dates within the ranges that `choose_tables` counts them in.

        share  measure tables for them first, for this share of what is left (`choose_tables`). None: free, if anything
               was measured before; else a tenth of the budget is spent on it
        """
        from discreet.answering import frame_of

        self._require_one_table("rows are drawn")
        domain, answering = self.table.facts.domain, self._answering()
        wanted, sown = synthetic_rows(rows, domain), None if seed is None else exact.whole(0, seed=seed)
        frame_of({}, backend)  # a library that is not there is said before anything is spent
        if share is not None or (self.method == "auto" and answering.hypothesis() is None):
            self.choose_tables(share)
        hypothesis = answering.hypothesis()
        if hypothesis is None:
            raise ParameterError("nothing was measured yet: ask questions first, then draw synthetic rows")
        columns = {}
        for name, drawn in hypothesis.sample(wanted, seed=sown).items():
            labels = {code: domain.column(name).label(code) for code in set(drawn.tolist())}
            columns[name] = [labels[code] for code in drawn.tolist()]
        return frame_of(columns, backend)

    def choose_tables(self, share: Exact | None = None) -> tuple[int, int]:
        """Measure the tables that synthetic rows need most: every column alone, pairs that connect them, and some
        triples where there are many rows, chosen privately; numbers and dates are counted in ranges. The entry of the
        charge, and what was paid now: the same share again is free.

        share  of what is left; None: a tenth of the budget, or what is left if that is less
        """
        self._require_one_table("tables are chosen")
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

        An estimator that says what it may spend (epsilon, a number or a Share) spends that; one that does not would
        spend all that is left, which is refused if it is more than max_price.

        Features are scaled by their declared bounds, categories become 0/1 coordinates; all declared columns but the
        target unless they are named. The estimator's ledger parameter becomes the session's, and so does its allowance.
        """
        self._require_one_table("a model is fitted")
        if not (hasattr(estimator, "set_params") and "ledger" in estimator.get_params(deep=False)):
            raise ParameterError(f"estimator must be one of discreet's, found a {type(estimator).__name__}")
        if estimator.ledger is not None and estimator.ledger.id != self.ledger.id:
            raise ParameterError("this estimator has another ledger: a session charges its own")
        theirs, ours = estimator.get_params(deep=False).get("allowance"), self._allowance
        if ours is not None and theirs not in (None, ours):
            raise ParameterError(f"this estimator has the allowance {theirs!r}: a session charges its own, {ours!r}")
        if estimator.epsilon is None:
            self._refuse_all_that_is_left()
        if features is not None and "features" not in inspect.signature(estimator.fit).parameters:
            raise ParameterError(f"a {type(estimator).__name__} is about one column, its target: leave features out")
        estimator.set_params(ledger=self.ledger, **({} if ours is None else {"allowance": ours}))
        named = {} if features is None else {"features": features}
        return estimator.fit(self.table, target, **named)

    def _refuse_all_that_is_left(self) -> None:
        """Refuse a fit of which nobody said what it may cost, if what is left is more than max_price."""
        left, cap = self.budget()
        if left > self._most * cap:
            part = exact.percent(Fraction(left, cap))
            words = f"This would spend all that is left, {part} of the budget: nothing was spent. Say what it may cost"
            words += f': epsilon=Share("1/10") or a number; or max_price="{part.replace(" ", "")}" for the session.'
            raise AboveMaxPrice(part, self.ledger.remaining(allowance=self._allowance).amounts(), words)

    def __repr__(self) -> str:
        return f"Session({(self.table if self.database is None else self.database)!r}, {self.ledger!r})"

    def sheet(self) -> Sheet:
        """The table, the terms of the answers, and the remaining budget."""
        left, cap = self.budget()
        alpha, whose = self._terms.alpha, "" if self._allowance is None else f" for {one_line(self._allowance)}"
        near = [] if alpha is None else [("answers", f"within {exact.percent(alpha)} of the people")]
        if self._terms.price is not None:
            near = [("answers", f"for {exact.percent(self._terms.price)} of the budget each")]
        remaining = f"{exact.percent(Fraction(left, cap)) if cap else '-'} of the budget{whose}"
        promise = f"all bounds hold at once with probability {float(1 - self._terms.beta):g}"
        terms = [*near, ("bounds", promise), ("method", self.method), ("left", remaining)]
        about = (
            declaration_sheet(self.table.facts, self.table.identity) if self.database is None else self.database.sheet()
        )
        return Sheet.of(*about.blocks, Pairs([("ledger", repr(self.ledger)), *terms]))

    # Inside.

    def _answering(self) -> Strategy:
        """What answers, by the session's method; made when the first question needs it."""
        from discreet.answering import AdaptiveAnswers, ClassicAnswers, EpochAnswers, program

        if self._answers is not None:
            return self._answers
        alpha, beta, rows, facts = self._terms.alpha, self._terms.beta, self._rows, self.table.facts
        if self.method == "auto":
            named = functools.partial(AdaptiveAnswers, allowance=self._allowance, most=self._most, rng=self._rng)
            growth = facts.growth
            if growth is None or not growth.apart or len(growth.epochs) == 1:
                self._answers = named(rows, self.ledger, self._terms)
            else:
                self._answers = EpochAnswers(growth.epochs, self.ledger, lambda block: self._about(block, named))
        else:
            if alpha is None:
                raise ParameterError(f'method="{self.method}" needs alpha=, the fraction that answers may be off by')
            questions, delta = self._terms.questions or 10_000, self.ledger.budget.delta
            made = program(self.method, facts, alpha=alpha, beta=beta, questions=questions, delta=delta)
            self._answers = ClassicAnswers(made, rows, self.ledger, allowance=self._allowance, rng=self._rng)
        return self._answers

    def _about(self, epochs: tuple[str, ...], make: Callable[..., AdaptiveAnswers]) -> AdaptiveAnswers:
        """What answers about a block of the table's epochs, which its persons alone pay for."""
        table: Any = self.table
        rows = self._rows if epochs == table.facts.growth.epochs else DistinctRows(table.over(*epochs))
        return make(rows, self.ledger.about(rows.facts), self._terms)

    def _adaptive(self, what: str) -> AdaptiveAnswers:
        """What answers, if it can do this; about several epochs of a table that grows, about all of them in one."""
        if self.method != "auto":
            raise ParameterError(f'{what} by a session with method="auto"')
        found: Any = self._answering()
        return cast("AdaptiveAnswers", getattr(found, "whole", found))

    def _assembly(self, question: object) -> Assembly:
        """What is asked, by a query or in SQL, as the parts that its answer is made of."""
        from discreet.answering import Assembly, asked_directly

        facts = self.table.facts
        if is_question(question):
            return Assembly(asked_directly(question, facts), facts)
        if not isinstance(question, str):
            raise ParameterError(f"a question is SQL, a Count, a Sum or a Histogram; found {type(question).__name__}")
        return Assembly(self._statement(question), facts, question)

    def _statement(self, text: str) -> Statement:
        """What a question in SQL asks."""
        found = _read(text, tuple(self._known))
        mine = self.table.facts.table
        if self.database is None and mine is not None and {*mine.split(JOIN)} != {*JOIN.join(found.tables).split(JOIN)}:
            raise ParameterError(f"this session is about {mine}, and the question about {' and '.join(found.tables)}")
        return found

    def _ranked(self, asked: Assembly) -> list[Ranked]:
        """The quantiles that a question asks for."""
        from discreet.answering import Ranked

        return [Ranked(each.column, each.probability, asked.keys, each.where) for each in asked.quantiles]

    def _refuse_above(self, most: Fraction, cost: Cost, parts: Sequence[Question] = ()) -> None:
        """Refuse what could cost more than this part of the budget, with what would be had for that."""
        if cost <= most * cost.cap:
            return
        left = self.ledger.remaining(allowance=self._allowance)
        limit = exact.percent(most)
        less = ""
        if self.method == "auto" and self._terms.scopes is None:
            near = "" if len(parts) != 1 else f", within ± {self._bound_for(most, parts):,.4g}"
            less = f' A session with price="{limit.replace(" ", "")}" answers it for that{near}.'
        words = f"This could cost up to {cost}, more than max_price, which is {limit}: nothing was spent.{less}"
        raise AboveMaxPrice(str(cost), left.amounts(), words)

    def _refuse_in_part(self, bill: Sequence[Priced], *, of_all: bool) -> None:
        """Refuse several charges that do not fit together: the first would be paid for no answer.

        of_all  some are for quantiles: all epochs of a table that grows pay these, and the new ones alone for counts
        """
        growth = self.table.facts.growth
        if len(bill) < 2 or (growth is not None and growth.apart and not of_all):
            return
        price = functools.reduce(operator.add, (self.ledger.price(each.guarantee(self.table.facts)) for each in bill))
        if not price.within(self.ledger.funds(allowance=self._allowance).caps):
            raise self.ledger.refusal(price, self._allowance)

    def bound(self, question: str | Count | Sum | Histogram) -> dict[str, Any] | None:
        """How near the answer would be if it were bought now, known before: ± this much, in its unit. For counts and
        sums for a price; None for what depends on the rows, as the bound of an average or of a quantile does."""
        session = self.about(question)
        asked, price = session._assembly(question), session._terms.price
        unit = asked.plain_unit()
        if unit is None or price is None:
            return None
        return {"error_bound": session._bound_for(price, asked.questions), "unit": unit}

    def _bound_for(self, part: Fraction, parts: Sequence[Question]) -> float:
        """How near the numbers of a question of one part would be for this part of the budget."""
        from discreet.answering import Calibration

        terms = replace(self._terms, alpha=None, price=min(part, Fraction(1)))
        shop = Calibration(self.table.facts, self.ledger, terms, allowance=self._allowance)
        order = self._answering().transcript.next_order
        (near,) = shop.purchase(parts, order).wanted
        return near

    def _finished(self, answer: Answer, cost: Cost | None = None) -> Answer:
        """The answer with its cost and with the bound for the population: its own, and how far the rows may be from the
        population.

        cost  what was expected; if another price was charged, its epsilon is not known
        """
        paid = cost if cost is not None and cost == answer.price else self._cost([])
        if paid != answer.price:
            paid = Cost(answer.price, cap=paid.cap, delta=paid.delta)
        answer = replace(answer, testing=self.ledger.testing, price=paid, size=self.table.facts.size)
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


@functools.lru_cache(maxsize=16)
def _read(text: str, known: tuple[Known, ...]) -> Statement:
    """What a question in SQL asks: a price, an answer and its next session read it once."""
    from discreet.sql import parse_about

    return parse_about(text, known)


def summed_columns(query: Any) -> Sequence[str]:
    """The columns whose values a query adds up."""
    if isinstance(query, OfPersons):
        return [name for each in query.made.numbers if not isinstance(each.of, str) for name in each.of.columns]
    return query.value.columns if hasattr(query, "value") else (query.column,)


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


def part_of_budget(**named: object) -> Fraction:
    """The one keyword argument as a part of the budget: "1%", 0.01 or "1/100"."""
    ((name, value),) = named.items()
    if isinstance(value, str) and value.strip().endswith("%"):
        return exact.positive(**{name: value.strip().removesuffix("%").strip()}) / 100
    return exact.positive(**named)
