"""What every page has: who visits, the templates, refusals for people, and the files beside the pages.

Pages are made from templates that escape every text; column names, levels and questions are somebody else's. Each form
is a plain form: it posts, and a whole page comes back. Where scripts run, htmx sends the same form and puts the part
that comes back into the page: the header HX-Request says which of the two is wanted.

Three fences against forged forms: the cookie is SameSite=Strict, the browser says where a request came from
(`service.same_site`), and a form that changes something carries a token bound to its cookie.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel, ValidationError

from discreet import errors
from discreet.serve import views
from discreet.serve.desk import Desk
from discreet.serve.keys import Key
from discreet.serve.problems import problem, status_of
from discreet.serve.service import Service, service_of

_INCOMPLETE = "the form is not complete, or not one of this page"
_HERE = Path(__file__).parent
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_FILES = {each.name: each.read_bytes() for each in (_HERE / "static").iterdir() if each.suffix in _KINDS}
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_COMMON: dict[str, Any] = {"who": None, "links": [], "token": str, "problem": None, "confirm": None, "said": ""}
"""What templates show unless a page says otherwise: nothing."""

_TITLES = {
    errors.UnsupportedQuery: "Not answered",
    errors.BudgetExceeded: "Does not fit",
    errors.TooBusy: "Too busy",
    errors.TooLarge: "Too large",
    errors.NotPermitted: "Not for this key",
    errors.NotFound: "Not found",
    errors.ServiceFailed: "It failed",
}


def render(template: str, **values: Any) -> Markup:
    """A template with these values, all texts escaped."""
    return Markup(_TEMPLATES.get_template(template).render({**_COMMON, **values}))


@dataclass(frozen=True, slots=True)
class Visitor:
    """One request of a person who is signed in.

    token  what a form must carry that was made for this person's cookie
    """

    request: Request
    service: Service
    who: Key
    token: str

    @property
    def partial(self) -> bool:
        """Whether a script asks, which wants a part of the page instead of a whole one."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def desk(self) -> Desk:
        """The desk of the table that the address names, if this person may see it."""
        name = self.request.path_params["name"]
        found = self.service.desk(self.who, name)
        self.request.state.table = name
        return found

    def part(self, template: str, **values: Any) -> Markup:
        """A part of a page."""
        field = Markup('<input type="hidden" name="token" value="{}">').format(self.token)
        return render(template, who=self.who, token=lambda: field, **values)

    def page(self, template: str, title: str, here: str, table: str | None = None, **values: Any) -> HTMLResponse:
        """A whole page. here: which of the links it is; table: what the links are about."""
        links = [{"name": name, "href": href, "here": name == here} for name, href in self._links(table)]
        return HTMLResponse(self.part(template, title=title, links=links, table=table, **values))

    def _links(self, table: str | None) -> list[tuple[str, str]]:
        several = [("Tables", "/")] if len(self.service.tables(self.who)) > 1 else []
        if self.who.owner:
            about = (
                [] if table is None else [("Spending", f"/owner/t/{table}"), ("Entries", f"/owner/t/{table}/entries")]
            )
            return [*several, *about, ("Keys", "/owner/keys")]
        pages = (("Ask", ""), ("History", "/history"), ("Known", "/known"), ("Models", "/models"))
        return [*several, *([] if table is None else [(name, f"/t/{table}{path}") for name, path in pages])]


def visit_of(request: Request) -> Visitor:
    """The visit of a request, by its cookie; KeyRefused if there is none."""
    service = service_of(request)
    return Visitor(request, service, service.holder(request), service.form_token(request))


def posted_by(visit: Annotated[Visitor, Depends(visit_of)], token: Annotated[str, Form()] = "") -> Visitor:
    """The visit of a form; NotPermitted if the form is not one of ours."""
    visit.service.check_form(visit.request, token)
    return visit


def owned_by(visit: Annotated[Visitor, Depends(visit_of)]) -> Visitor:
    """The visit of an owner."""
    visit.who.require_owner()
    return visit


def changed_by(visit: Annotated[Visitor, Depends(posted_by)]) -> Visitor:
    """The visit of an owner's form."""
    visit.who.require_owner()
    return visit


Here = Annotated[Visitor, Depends(visit_of)]
Posted = Annotated[Visitor, Depends(posted_by)]
Owned = Annotated[Visitor, Depends(owned_by)]
Changed = Annotated[Visitor, Depends(changed_by)]


# Refusals.


def refusal(error: errors.DiscreetError) -> dict[str, Any]:
    """An error for people: its title, what is wrong, what would do, and the place in the question."""
    told = problem(error)
    title = next((words for kind, words in _TITLES.items() if isinstance(error, kind)), "Refused")
    found: dict[str, Any] = {"title": title, "reason": views.sentence(told["detail"]), "hint": "", "marked": None}
    found["unspent"] = told["status"] not in (409, 500, 503)  # of a request that goes on, or failed inside, who knows
    if "position" in told:
        found |= {"reason": views.sentence(told["reason"]), "hint": told["hint"]}
        found["marked"] = views.MarkedText.at(getattr(error, "text", ""), told["position"])
    return found


def error_page(request: Request, error: errors.DiscreetError) -> Response:
    """What a browser gets where there is nothing else to show."""
    script = request.headers.get("hx-request") == "true"
    if isinstance(error, errors.KeyRefused):
        return Response(headers={"HX-Redirect": "/"}) if script else RedirectResponse("/", 303)
    told = refusal(error)
    if script:
        return HTMLResponse(render("refused.html", problem=told))
    return HTMLResponse(render("error.html", title=told["title"], words=told["reason"]), status_of(error))


def body_of(form: type[BaseModel], **fields: Any) -> dict[str, Any]:
    """The fields of a form, as the HTTP interface takes them."""
    try:
        return form.model_validate(fields).model_dump()
    except ValidationError:
        raise errors.ParameterError(_INCOMPLETE) from None


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError:
                return error_page(request, errors.ParameterError(_INCOMPLETE))
            except errors.DiscreetError as error:
                return error_page(request, error)

        return handled


# Files.


def add_files(router: APIRouter) -> None:
    """The scripts, the style sheets and the icon: a fixed list, no path of a request is looked up on the disk."""
    router.add_api_route("/static/{name}", static_file, methods=["GET"])
    router.add_api_route("/favicon.ico", favicon, methods=["GET"])


def static_file(request: Request, name: str) -> Response:
    """A file of the page; 304 if the browser has it already."""
    if name not in _FILES:
        raise errors.NotFound("there is no such file")
    tag = f'"{hashlib.sha256(_FILES[name]).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(_FILES[name], media_type=_KINDS[Path(name).suffix], headers=headers)


def favicon() -> Response:
    """The icon, for browsers that ask for it by themselves."""
    return RedirectResponse("/static/favicon.svg", 308)
