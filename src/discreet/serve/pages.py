"""The pages of an analyst, and the door: signing in, asking, history. `router` is all pages of a service.

Questions are posted, never part of an address: addresses stand in the logs of proxies. Every form that may be charged
carries a request id, so that sending it twice is free.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

import discreet as dp
from discreet.serve import views
from discreet.serve.api import outcome
from discreet.serve.model_pages import router as model_router
from discreet.serve.owner_pages import router as owner_router
from discreet.serve.page_kit import Here, PageRoute, Posted, Visitor, add_files, refusal, render
from discreet.serve.service import COOKIE, COOKIE_LIFE, same_site, service_of
from discreet.sql import name_text

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_LIMIT = dp.exact.percent(dp.session.MAX_PRICE)


# The door.


@router.get("/")
def front(request: Request) -> Response:
    """The form for a key; for those who are signed in, their first page."""
    service = service_of(request)
    try:
        who = service.holder(request)
    except dp.errors.KeyRefused:
        return HTMLResponse(render("sign_in.html", title="Sign in"))
    names = service.tables(who)
    if len(names) == 1:
        return RedirectResponse(f"/{'owner/' if who.owner else ''}t/{names[0]}", 303)
    visit = Visitor(request, service, who, service.form_token(request))
    desks = [service.desk(who, name) for name in names]
    tables = [
        {"name": each.name, "people": views.people_of(each), "budget": views.budget(each.budget(who))} for each in desks
    ]
    return visit.page("tables.html", "Tables", "Tables", tables=tables)


@router.post("/sign-in")
def sign_in(request: Request, key: Annotated[str, Form()] = "") -> Response:
    """A cookie for a key."""
    service = service_of(request)
    if not same_site(request):
        raise dp.errors.NotPermitted("this came from another site: sign in on the page itself")
    try:
        who = service.keys.find(key.strip())
    except dp.errors.KeyRefused:
        trouble = "This key is not known here, or was revoked, or has expired."
        return HTMLResponse(render("sign_in.html", title="Sign in", problem=trouble), 401)
    response = RedirectResponse("/", 303)
    secure = service.settings.behind_proxy
    cookie = service.cookie(who)
    response.set_cookie(COOKIE, cookie, COOKIE_LIFE, path="/", secure=secure, httponly=True, samesite="strict")
    return response


@router.post("/sign-out")
def sign_out(visit: Posted) -> Response:
    """The end of a visit."""
    response = HTMLResponse(render("sign_in.html", title="Sign in", said="You are signed out."))
    secure = visit.service.settings.behind_proxy
    response.delete_cookie(COOKIE, path="/", secure=secure, httponly=True, samesite="strict")
    return response


# Asking.


@router.get("/t/{name}")
def ask_page(visit: Here, name: str) -> Response:
    """Where questions are asked."""
    return _desk_page(visit)


@router.post("/t/{name}/price")
def price(visit: Posted, name: str, sql: Annotated[str, Form()] = "") -> Response:
    """What a question would cost."""
    found = price_view(visit, views.bare(sql))
    if visit.partial:
        return HTMLResponse(visit.part("price.html", price=found))
    return _desk_page(visit, sql=sql, price=found)


@router.post("/t/{name}/ask")
async def ask(
    visit: Posted,
    name: str,
    sql: Annotated[str, Form()] = "",
    request: Annotated[str, Form()] = "",
    max_price: Annotated[str | None, Form()] = None,
) -> Response:
    """The answer to a question; above the limit, first the price. No thread waits for the job."""
    desk, bare = visit.desk, views.bare(sql)
    # The same form with another question is another request.
    one = hashlib.sha256(f"{request}\0{bare}".encode()).hexdigest()[:48]
    came: dict[str, Any] | Exception
    try:
        job = await run_in_threadpool(
            lambda: desk.begin_ask(visit.who, bare, request=f"page-{one}", max_price=max_price)
        )
        came = await outcome(job)
    except (dp.errors.DiscreetError, TimeoutError) as error:
        came = error
    return await run_in_threadpool(lambda: _after_ask(visit, sql, request, max_price, came))


def _after_ask(
    visit: Visitor, sql: str, request: str, max_price: str | None, came: dict[str, Any] | Exception
) -> Response:
    """The page, or its part, with what came."""
    shown, more = _answered(visit, views.bare(sql), request, max_price, came)
    if visit.partial:
        fresh = visit.part(
            "after_ask.html", budget=views.budget(visit.desk.budget(visit.who), more), request=secrets.token_urlsafe(16)
        )
        return HTMLResponse(shown + fresh)
    return _desk_page(visit, sql=sql, shown=[shown], more=more)


def _answered(
    visit: Visitor, sql: str, request: str, max_price: str | None, came: dict[str, Any] | Exception
) -> tuple[Markup, dict[str, Any] | None]:
    """The answer, the refusal, or the price above which confirmation is needed; and the reply, if there is one."""
    desk = visit.desk
    at = f"/t/{desk.name}"
    match came:
        case dp.errors.AboveMaxPrice():
            cost, left = price_view(visit, sql) or {}, views.budget(desk.budget(visit.who))["percent"]
            if cost["problem"] is None:
                return visit.part("confirm.html", at=at, sql=sql, request=request, price=cost, left=left), None
            return visit.part("refused.html", problem=cost["problem"]), None
        case dp.errors.DiscreetError():
            return visit.part("refused.html", problem=refusal(came)), None
        case Exception():  # it takes longer than a page waits
            return visit.part("waiting.html", at=at, sql=sql, request=request, max_price=max_price), None
    shown = {**views.answer_view(came), "ways": ways(visit.request, desk.name, came["question"])}
    return visit.part("answer.html", answer=shown, new=True), came


def _desk_page(
    visit: Visitor,
    *,
    sql: str = "",
    price: dict[str, Any] | None = None,
    shown: list[Markup] | None = None,
    more: dict[str, Any] | None = None,
) -> HTMLResponse:
    """The page where questions are asked, with what was just asked."""
    visit.who.require("ask")
    desk = visit.desk
    tables = [(each.name, each.domain) for each in desk.schema.tables]
    return visit.page(
        "desk.html",
        f"Ask about {desk.name}",
        "Ask",
        desk.name,
        at=f"/t/{desk.name}",
        people=views.people_of(desk),
        warning=views.warning(desk.ledger),
        budget=views.budget(desk.budget(visit.who), more),
        request=secrets.token_urlsafe(16),
        sql=sql,
        longest=desk.limits.question,
        price=price,
        shown=shown or [],
        words=views.completions(tables),
        named=name_text(tables[0][0]),
        examples=[each for table in tables[:1] for each in views.examples(*table)],
        tables_of=[{"name": name, "columns": views.columns(domain)} for name, domain in tables],
        **views.promise(desk.ledger, desk.schema),
    )


@router.get("/t/{name}/history")
def history(visit: Here, name: str) -> Response:
    """What this person asked and was told."""
    desk = visit.desk
    visit.who.require("ask")
    entries = [_remembered(each) for each in desk.history(visit.who)]
    return visit.page("history.html", "History", "History", name, at=f"/t/{name}", entries=entries)


def _remembered(each: dict[str, Any]) -> dict[str, Any]:
    """One line of a history."""
    reply, asked = each["reply"], each["kind"] == "ask"
    return {
        "when": each["time"][:10],
        "what": each["what"],
        "sql": each["what"] if asked else "",
        "answer": views.headline(reply) if asked else each["kind"],
        "paid": "free" if reply.get("price", {}).get("nano") == 0 else views.percent_up(reply.get("price")),
        "request": secrets.token_urlsafe(16),
    }


# What is shown.


def price_view(visit: Visitor, sql: str) -> dict[str, Any] | None:
    """What a question would cost, or what is wrong with it; None if there is no question."""
    if not sql:
        return None
    try:
        found = visit.desk.price(visit.who, sql)
    except dp.errors.DiscreetError as error:
        return {"problem": refusal(error)}
    cost = found["price"]
    return {
        "problem": None,
        "free": found["free"],
        "over": found["above_max_price"],
        "fits": found["fits"],
        "percent": views.percent_up(cost),
        "agreed": f"{cost['nano']}/{cost['budget_nano']}",
        "epsilon": "" if cost["epsilon"] is None else f"{cost['epsilon']:.3g}",
        "bound": views.bound_words(found["bound"]),
        "limit": _LIMIT,
    }


def ways(request: Request, table: str, sql: str) -> list[dict[str, str]]:
    """The same question from elsewhere, to be copied; the key is read from the environment."""
    base = str(request.base_url).rstrip("/")
    python = (
        f"import os\nimport discreet as dp\n\nsession = dp.connect({base!r}, key=os.environ['DISCREET_KEY'], "
        f"table={table!r})\nprint(session.ask({sql!r}))"
    )
    body = shlex.quote(json.dumps({"sql": sql}))
    curl = (
        f'curl {shlex.quote(f"{base}/v1/tables/{table}/ask")} \\\n  -H "Authorization: Bearer $DISCREET_KEY" '
        f"-H 'Content-Type: application/json' \\\n  -d {body}"
    )
    return [{"name": "Python", "text": python}, {"name": "curl", "text": curl}]


router.include_router(model_router)
router.include_router(owner_router)
add_files(router)
