"""Fits, rules, bounds and synthetic rows, as work for a desk's thread. Everything that can be wrong with what is asked
is found before the charge; what comes back is a model's file, which is public, and a receipt.

An analyst's code never runs here: an estimator is named, its parameters are plain values.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import discreet as dp
from discreet import rule_words
from discreet.answering import answer_record
from discreet.modelling import (
    FITS,
    RULES,
    SERVES,
    check_kind,
    features_of,
    fit_estimator,
    plan_record,
    rule_features,
    rule_learner,
    shape_of,
    take_cost,
    with_positive,
    write_rows,
)
from discreet.plan import MODELS, check_numbers
from discreet.serve.jobs import Job
from discreet.serve.settings import Limits

FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}

_DIGITS = 100

Work = Callable[[dp.Session, Job], dict[str, Any]]


def one_table(session: dp.Session, table: str | None) -> dp.Session:
    """The session about one table of a schema that may have several."""
    return session if session.database is None or table is None else session.on(table)


def left_of(session: dp.Session) -> dict[str, Any]:
    """What is left for a session, as JSON."""
    left, cap = session.budget()
    return {"nano": left, "budget_nano": cap, "percent_of_budget": 100 * left / cap if cap else None}


def columns_known(session: dp.Session) -> dict[str, list[list[str]]]:
    """Which columns rows follow together, and which were measured besides; none of several tables."""
    known = ((), ()) if session.database is not None else session.known()
    together, left_out = ([list(scope) for scope in scopes] for scopes in known)
    return {"columns_known_together": together, "columns_left_out": left_out}


def receipt(session: dp.Session, made: Any, entry: int, job: Job, *, replayed: bool) -> dict[str, Any]:
    """What a release cost, and what is left. made: its guarantee."""
    price = session.ledger.price(made.guarantee)
    spent = session.ledger.spent()
    part = spent.part_of(price)
    return {
        "guarantee": str(made),
        "epsilon": made.epsilon(made.budget.delta),
        "delta": float(made.budget.delta),
        "entry": entry,
        "entries": list(job.acting.charges),
        "replayed": replayed,
        "price": {
            "nano": 0 if replayed else spent.caps.in_first(price) or 0,
            "percent_of_budget": 0.0 if replayed else None if part is None else 100 * float(part),
        },
        "left": left_of(session),
        "request": job.ticket.request,
    }


def pays(session: dp.Session, *, again: bool) -> None:
    """Ask the ledger as a new program would: what was released and stored before is given back, free, to anybody who
    asks the same; again: it is not."""
    from discreet.estimators import forget, pay_again

    forget(session.ledger)
    if again:
        pay_again(session.ledger)


def named_estimator(name: str, parameters: dict[str, Any]) -> Any:
    """The estimator of this name with these parameters, none of which is longer than everybody can compute with."""
    from discreet.estimators import estimator_named

    for each, value in parameters.items():
        if type(value) is str and len(value) > _DIGITS:
            raise dp.errors.TooLarge(f"{each} has at most {_DIGITS} characters here")
    return estimator_named(name, parameters)


def check_work(made: Any, limits: Limits) -> None:
    """Refuse a model that would hold its table for long."""
    from discreet.estimators import widths

    given = made.get_params(deep=False)
    units = sum(widths(given["hidden_layer_sizes"])) if "hidden_layer_sizes" in given else 0
    steps = dp.exact.whole(max_iter=given.get("max_iter") or 1)
    for what, found, most in (("hidden units", units, limits.units), ("steps", steps, limits.steps)):
        if found > most:
            raise dp.errors.TooLarge(f"a model has at most {most:,} {what} here, found {found:,}")


def fit(asked: dict[str, Any], limits: Limits) -> Work:
    """A fit: `kind` with the options of `discreet fit`, or `estimator` with its parameters."""
    asked = dict(asked)
    table, target, features, again = (asked.pop(name) for name in ("table", "target", "features", "again"))
    kind, estimator, parameters = (asked.pop(name) for name in ("kind", "estimator", "parameters"))
    if (kind is None) == (estimator is None):
        raise dp.errors.ParameterError(
            f"say which model: kind, one of {', '.join(FITS)}; or estimator and its parameters"
        )
    if kind is not None and kind not in FITS:
        raise dp.errors.ParameterError(f"kind must be one of {', '.join(FITS)}; found {kind!r}")
    if estimator is not None and any(value is not None for value in asked.values()):
        raise dp.errors.ParameterError("an estimator says all of it in its parameters: leave the other options out")

    def work(session: dp.Session, job: Job) -> dict[str, Any]:
        about = one_table(session, table)
        domain, columns = about.table.facts.domain, features
        if estimator is not None:
            made = named_estimator(estimator, parameters or {})
        else:
            options = dict(asked)
            cost = take_cost(options)
            columns = features_of(kind, domain, target, features)
            chosen = {name: options[name] for name in (*SERVES, "method")}
            made = fit_estimator(kind, domain, target, columns, cost, chosen)
        check_work(made, limits)
        pays(about, again=again)
        model = about.fit(made, target=target, features=columns)
        paid = receipt(about, model.guarantee_, model.entry_, job, replayed=model.replayed_)
        return {"model": model.model_record(), "said": model.description(), "words": str(model), **paid}

    return work


def file_of(table: str, reply: dict[str, Any]) -> str:
    """The file of the model in this reply."""
    from discreet.estimators.model_file import ordered, pretty

    said = {each: reply[each] for each in ("guarantee", "epsilon", "delta", "entry", "price")}
    return pretty(ordered(reply["model"], {"table": table, **reply["said"], **said})) + "\n"


def learn(asked: dict[str, Any], schema: Any, redeclared: Callable[[dp.Schema], Any]) -> Work:
    """A rule, as `discreet learn` learns it. redeclared: the rows under another declaration of the target."""
    asked = dict(asked)
    table, target, features, again = (asked.pop(name) for name in ("table", "target", "features", "again"))
    kind, positive, k, certify = (asked.pop(name) for name in ("kind", "positive", "k", "certify"))
    if kind not in RULES:
        raise dp.errors.ParameterError(f"kind must be one of {', '.join(RULES)}; found {kind!r}")
    chosen = {**take_cost(asked), "method": asked["method"] or "auto", "alpha": asked["alpha"]}
    epsilon = None if certify is None else dp.Budget(certify).epsilon
    own = schema.table_schema(table)
    declared = with_positive(own, target, positive)
    columns = rule_features(kind, declared.domain, target, features)
    learner = rule_learner(kind, columns, k, chosen)

    def work(session: dp.Session, job: Job) -> dict[str, Any]:
        about = one_table(session, table)
        if declared.domain != own.domain:
            about = dp.Session(redeclared(declared), session.ledger, allowance=job.ticket.allowance)
            job.wait_for_grid()
        pays(about, again=again)
        with job.counting_conjunctions():
            model = about.fit(learner, target=target, features=columns)
        bought: dict[str, Any] | None = None
        try:  # the rule is paid for, and is told whatever happens to its certificate
            if epsilon is not None:
                found = model.certify(about.table, target, epsilon=epsilon)
                bought = {"rows": found.rows, "error": found.error, "probability": 1 - found.beta, "entry": found.entry}
        except dp.DiscreetError as error:
            bought = {"refused": str(error)}
        paid = receipt(about, model.guarantee_, model.entry_, job, replayed=model.replayed_)
        said = rule_words.record(kind, model, target, declared.domain)
        return {"model": model.model_record(), "said": said, "words": str(model), "certificate": bought, **paid}

    return work


def suggest(asked: dict[str, Any]) -> Work:
    """Bounds of a column, found among its rows."""
    asked = dict(asked)
    table, column, coverage, again = (asked.pop(name) for name in ("table", "column", "coverage", "again"))
    cost = take_cost(asked)

    def work(session: dp.Session, job: Job) -> dict[str, Any]:
        about = one_table(session, table)
        pays(about, again=again)
        rows: Any = about.table
        whose: dict[str, Any] = {"allowance": job.ticket.allowance, "ledger": about.ledger}
        found = dp.suggest_bounds(rows, column, coverage=coverage, **whose, **cost)
        bounds = {name: dp.data.plain(getattr(found.number, name)) for name in ("low", "high", "step")}
        paid = receipt(about, found.guarantee, found.entry, job, replayed=found.replayed)
        return {"column": column, **bounds, "promise": found.promise, **paid}

    return work


def synthetic(asked: dict[str, Any], most: int) -> Work:
    """Made-up rows, drawn from what was released; with a share, tables are measured for them first."""
    rows, how = asked["rows"], asked["format"]
    if how not in FORMATS:
        raise dp.errors.ParameterError(f"format must be one of {', '.join(FORMATS)}; found {how!r}")
    if rows > most:
        raise dp.errors.TooLarge(f"at most {most:,} rows are drawn at a time here, found {rows:,}")
    tables = [dp.Histogram(tuple(columns)) for columns in asked["measure"]]
    if tables and asked["share"] is None:
        raise dp.errors.ParameterError("measure needs share: the tables are bought for that much of what is left")

    def work(session: dp.Session, job: Job) -> dict[str, Any]:
        about = one_table(session, asked["table"])
        dp.session.synthetic_rows(rows, about.table.facts.domain)  # before anything is bought for them
        answers: list[dp.Answer] = []
        share = asked["share"]
        if tables:
            answers, share = about.answer_all(tables, share=share), None
        frame = about.synthetic(rows, share=share, seed=asked["seed"], backend="pyarrow")
        file = io.BytesIO()
        write_rows(frame, how, file, rehearsal=about.ledger.identity.rehearsal)
        job.attachment = (FORMATS[how], file.getvalue())
        return {
            "rows": rows,
            "columns": list(frame.column_names),
            **columns_known(about),
            "measured": [answer_record(each)["error_bound"] for each in answers],
            "entries": list(job.acting.charges),
            "left": left_of(about),
            "request": job.ticket.request,
            "job": job.id,
        }

    return work


def planned(asked: dict[str, Any], session: dp.Session, name: str) -> dict[str, Any]:
    """A plan, with this session's ledger: of what is left under this name, or for an epsilon."""
    about = one_table(session, asked["table"])
    kind, numbers = asked["kind"], dict(asked["numbers"])
    check_numbers(kind, numbers)
    epsilon, delta, share, target = (asked[each] for each in ("epsilon", "delta", "share", "target"))
    if (epsilon is None) == (share is None):
        raise dp.errors.ParameterError("say what it may cost: either epsilon (and delta), or share of what is left")
    facts = about.table.facts
    if kind in MODELS and target is not None:
        columns = features_of(kind, facts.domain, target, asked["features"]) or ()
        check_kind(kind, facts.domain, target)
        shape = shape_of(kind, facts.domain, target, len(columns), asked["radius"], asked["huber"])
        numbers |= {"domain": facts.domain, "target": target, "features": columns, **shape}
    how = {"size": facts.size, "alpha": asked["alpha"], "beta": asked["beta"] or "0.05", **numbers}
    how["pass_seconds"] = about.table.offers.pass_seconds
    if share is not None:
        owner = about.ledger.identity.rehearsal
        whose = {"ledger": about.ledger, "share": share, "allowance": None if owner else name}
        return plan_record(dp.plan(kind, neighbours=facts.neighbours, **whose, **how))
    return plan_record(dp.plan(kind, budget=dp.Budget(epsilon, delta or 0), neighbours=facts.neighbours, **how))


def in_words(kind: str, asked: dict[str, Any]) -> str:
    """What was asked, for the history and for the same request id."""
    given = {name: value for name, value in sorted(asked.items()) if value is not None and value not in ([], {})}
    return f"{kind} {' '.join(f'{name}={value!r}' for name, value in given.items() if value is not False)}"
