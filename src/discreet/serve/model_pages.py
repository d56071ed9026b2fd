"""The pages of an analyst about models, rules and made-up rows.

What takes long is a job: its line on the page is fetched again until it has ended. A model that was paid for is in the
ledger's replies, so that it can be downloaded as long as there is a ledger.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

import discreet as dp
from discreet.serve import views
from discreet.serve.api import Fit, Learn, Synthetic
from discreet.serve.jobs import CANCELLED, CHARGED, DONE, REFUSED, RUNNING, WAITING, Job
from discreet.serve.page_kit import Here, PageRoute, Posted, Visitor, body_of, refusal

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_MODELS = {
    "logistic": "Logistic regression (a category)",
    "linear": "Linear regression (a number)",
    "network": "Neural network (a category)",
    "mean": "Mean (a number)",
    "median": "Median (a number)",
    "quantile": "Quantile (a number)",
}
_RULES = {
    "rule": "Rule: at most k conditions (a category)",
    "box": "Box: a range of each number (a category)",
    "conjunction": "Conjunction of yes/no columns (a category)",
}
_WITH_FEATURES = "logistic linear network rule box conjunction"
_SAID = {WAITING: "waiting", RUNNING: "running, not charged yet", CHARGED: "running, charged", DONE: "done"}
_LOOKS = {DONE: "good", REFUSED: "bad", CHARGED: "mind"}
_FIELDS = ("kind", "target", "share", "q", "k", "positive", "features")
_FRESH = {"kind": "logistic", "target": "", "share": "1/10", "q": "0.9", "k": "2", "positive": "", "features": []}

_PATIENCE = 60.0  # seconds that a file of rows is waited for

Text = Annotated[str, Form()]


@router.get("/t/{name}/models")
def models(visit: Here, name: str) -> Response:
    """The form for a model or a rule, the jobs that run, and the models that were paid for."""
    return _models(visit, _FRESH)


def _models(visit: Visitor, given: dict[str, Any], **shown: Any) -> HTMLResponse:
    desk = visit.desk
    done = [each for each in desk.history(visit.who) if each["kind"] in ("fit", "learn")]
    jobs = [each for each in desk.jobs.of(visit.who) if each.ticket.kind in ("fit", "learn") and each.state != DONE]
    may = [
        (words, kinds)
        for words, kinds, doing in (("Model", _MODELS, "fit"), ("Rule", _RULES, "learn"))
        if doing in visit.who.may
    ]
    return visit.page(
        "models.html",
        "Models",
        "Models",
        desk.name,
        at=f"/t/{desk.name}",
        budget=views.budget(desk.budget(visit.who)),
        request=secrets.token_urlsafe(16),
        kinds=may,
        given=given,
        columns=[column for each in desk.schema.tables for column in views.columns(each.domain)],
        tables_of=[each.name for each in desk.schema.tables],
        with_features=_WITH_FEATURES,
        jobs=[job_view(each) for each in jobs],
        models=[views.model_view(each) for each in done],
        **shown,
    )


@router.post("/t/{name}/models")
def start(
    visit: Posted,
    name: str,
    kind: Text,
    target: Text,
    share: Text,
    q: Text = "",
    k: Text = "",
    positive: Text = "",
    features: Annotated[list[str] | None, Form()] = None,
    table: Annotated[str | None, Form()] = None,
    request: Text = "",
    agreed: Text = "",
) -> Response:
    """Start a fit or a rule; what costs more than a tenth of the budget is confirmed first."""
    desk = visit.desk
    given = dict(zip(_FIELDS, (kind, target, share, q, k, positive, features or []), strict=True))
    try:
        part = dp.session.part_of_budget(share=share)
        above = views.above_limit(desk.budget(visit.who), part, dp.session.MAX_PRICE)
        if above and agreed != share:
            return _models(visit, given, confirm=above)
        common: dict[str, Any] = {"table": table, "target": target, "features": features, "share": str(part)}
        if kind in _RULES:
            asked = body_of(Learn, kind=kind, positive=positive or None, k=_count(k, kind), **common)
            job = desk.begin_learn(visit.who, asked, request=f"page-{request[:40]}")
        else:
            asked = body_of(Fit, kind=kind, q=q if kind == "quantile" else None, **common)
            job = desk.begin_fit(visit.who, asked, request=f"page-{request[:40]}")
    except dp.errors.DiscreetError as error:
        return _models(visit, given, problem=refusal(error))
    with suppress(TimeoutError, dp.errors.DiscreetError):  # what is quick is there when the page is; else its line says
        job.result(0.5)
    return RedirectResponse(f"/t/{name}/models", 303)


def _count(k: str, kind: str) -> int | None:
    return None if kind == "box" or not k.strip() else dp.exact.whole(k=k)


@router.get("/t/{name}/jobs/{id_}")
def job_line(visit: Here, name: str, id_: str) -> Response:
    """One job's line; when it is done, the whole page shows its model."""
    return _line(visit, name, visit.desk.job(visit.who, id_))


@router.post("/t/{name}/jobs/{id_}/cancel")
def cancel(visit: Posted, name: str, id_: str) -> Response:
    """Cancel a job, if nothing was charged yet."""
    job = visit.desk.job(visit.who, id_)
    job.cancel()
    return _line(visit, name, job)


def _line(visit: Visitor, name: str, job: Job) -> Response:
    at = f"/t/{name}"
    if not visit.partial:
        return RedirectResponse(f"{at}/models", 303)
    if job.state == DONE:
        return Response(headers={"HX-Redirect": f"{at}/models"})
    return HTMLResponse(visit.part("job.html", job=job_view(job), at=at))


def job_view(job: Job) -> dict[str, Any]:
    """A job for people."""
    state, problem = job.state, None
    if state in (REFUSED, CANCELLED):
        try:
            job.result(0)
        except dp.errors.DiscreetError as error:
            problem = refusal(error)
    return {
        "id": job.id,
        "what": job.what,
        "state": _SAID.get(state, state),
        "look": _LOOKS.get(state, ""),
        "over": state in (DONE, REFUSED, CANCELLED),
        "cancellable": state in (WAITING, RUNNING),
        "progress": job.progress,
        "problem": problem,
    }


@router.get("/t/{name}/models/{entry}")
def model_file(visit: Here, name: str, entry: int) -> Response:
    """The file of a model that this person paid for."""
    found, text = visit.desk.model(visit.who, entry)
    headers = {"Content-Disposition": f'attachment; filename="{views.model_view(found)["file"]}"'}
    return Response(text, media_type="application/json", headers=headers)


# What is known, and rows made of it.


@router.get("/t/{name}/known")
def known(visit: Here, name: str) -> Response:
    """What was measured already, by anybody, and made-up rows that follow it."""
    return _known(visit, {"rows": "1000", "format": "csv", "share": ""})


def _known(visit: Visitor, given: dict[str, str], **shown: Any) -> HTMLResponse:
    desk = visit.desk
    found = desk.known()
    return visit.page(
        "known.html",
        "Known",
        "Known",
        desk.name,
        at=f"/t/{desk.name}",
        scopes=found["columns_known_together"],
        asked=list(dict.fromkeys(each["asked"] for each in reversed(found["questions"])))[: views.MOST_KNOWN],
        most_rows=desk.limits.rows,
        may_draw="synth" in visit.who.may,
        tables_of=[each.name for each in desk.schema.tables],
        given=given,
        request=secrets.token_urlsafe(16),
        **shown,
    )


@router.post("/t/{name}/synthetic")
def synthetic(
    visit: Posted,
    name: str,
    rows: Text,
    format: Text = "csv",
    share: Text = "",
    table: Annotated[str | None, Form()] = None,
    request: Text = "",
    agreed: Text = "",
) -> Response:
    """A file of made-up rows; with a share, tables are measured for them first."""
    desk, given = visit.desk, {"rows": rows, "format": format, "share": share}
    try:
        part = dp.session.part_of_budget(share=share) if share.strip() else None
        if part is None and not desk.known()["columns_known_together"]:
            raise dp.errors.ParameterError("nothing was measured yet: say which share may be spent on measuring")
        above = None if part is None else views.above_limit(desk.budget(visit.who), part, dp.session.MAX_PRICE)
        if above and agreed != share:
            return _known(visit, given, confirm=above)
        wanted = {"table": table, "rows": dp.exact.whole(rows=rows), "format": format}
        asked = body_of(Synthetic, **wanted, share=None if part is None else str(part))
        job = desk.begin_synthetic(visit.who, asked, request=f"page-{request[:40]}")
        job.result(_PATIENCE)
    except TimeoutError:
        late = dp.errors.TooBusy("it takes longer than a minute: try again, what was paid is not paid twice")
        return _known(visit, given, problem=refusal(late))
    except dp.errors.DiscreetError as error:
        return _known(visit, given, problem=refusal(error))
    kind, text = job.attachment or ("text/plain", b"")
    headers = {"Content-Disposition": f'attachment; filename="{name}-made-up.{format}"'}
    return Response(text, media_type=kind, headers=headers)
