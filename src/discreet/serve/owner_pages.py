"""The pages of an owner: what every analyst spent, the entries of the ledger, its check, the report, and the keys."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

import discreet as dp
from discreet.serve import views
from discreet.serve.keys import MAY
from discreet.serve.page_kit import Changed, Owned, PageRoute, Visitor, refusal

router = APIRouter(prefix="/owner", route_class=PageRoute, include_in_schema=False)

_LOOKS = {"answered": "good", "open": "mind", "burned": "bad", "ended": "", "closed": ""}
_PAGE = 50
_DAY = 86_400
_FRESH = {"name": "", "share": "1/4", "days": "365"}


@router.get("/t/{name}")
def spending(visit: Owned, name: str) -> Response:
    """What every analyst spent and has left."""
    return _spending(visit)


def _spending(visit: Visitor, verified: Markup | None = None) -> HTMLResponse:
    desk = visit.desk
    found = desk.spending(visit.who)
    used, lines = Fraction(found["used"]), desk.ledger.spent().lines()
    mark = "This ledger does not agree with its mark: an older copy, or a moved one. Nothing is released before that is"
    mark += " settled by `discreet ledger reconcile`."
    return visit.page(
        "owner.html",
        f"Spending of {desk.name}",
        "Spending",
        desk.name,
        at=f"/owner/t/{desk.name}",
        people=views.people_of(desk),
        warning=views.warning(desk.ledger) if found["agrees_with_its_mark"] else mark,
        spent={
            "percent": dp.exact.percent(used, up=True),
            "part": float(used),
            "words": views.sentence(lines[0]),
        },
        analysts=[_analyst(each) for each in found["analysts"]],
        verified=verified,
        **views.promise(desk.ledger, desk.schema),
    )


def _analyst(each: dict[str, Any]) -> dict[str, Any]:
    """One analyst's line."""
    share, spent = Fraction(each["share"]), each["spent_percent"]
    epsilon = each["epsilon_so_far"]
    return {
        "name": each["name"],
        "share": dp.exact.percent(share),
        "spent": "–" if spent is None else dp.exact.percent(spent / 100, up=True),
        "left": dp.exact.percent(each["left_percent"] / 100),
        "epsilon": "–" if epsilon is None else f"{epsilon:.3g}",
        "part": 0.0 if spent is None else spent / 100 / float(share),
    }


@router.post("/t/{name}/verify")
def verify(visit: Changed, name: str) -> Response:
    """Whether every entry, sum and price of the ledger is sound."""
    desk = visit.desk
    try:
        found = desk.verify(visit.who)
    except dp.errors.LedgerCorrupt as error:
        shown = visit.part("verified.html", sound=False, words=views.sentence(str(error)))
    else:
        others = len(found["not_priced_again"])
        strange = f" ({others:,} by mechanisms that are not discreet's own, not priced again)" if others else ""
        shown = visit.part("verified.html", sound=True, words=f"{found['entries']:,} entries, all sound{strange}.")
    return HTMLResponse(shown) if visit.partial else _spending(visit, shown)


@router.get("/t/{name}/entries")
def entries(visit: Owned, name: str, before: Annotated[int | None, Query(ge=1, lt=2**63)] = None) -> Response:
    """The charges of the ledger, newest first, a page at a time."""
    desk = visit.desk
    found = desk.entries(visit.who, most=_PAGE + 1, before=before)
    at, count = f"/owner/t/{name}", desk.ledger.store.count("charge")
    return visit.page(
        "entries.html",
        f"Entries of {name}",
        "Entries",
        name,
        words=f"{count:,} charge{'' if count == 1 else 's'}, newest first",
        entries=[_entry(name, each) for each in found[:_PAGE]],
        newest="" if before is None else f"{at}/entries",
        older=f"{at}/entries?before={found[_PAGE - 1]['entry']}" if len(found) > _PAGE else "",
    )


def _entry(name: str, each: dict[str, Any]) -> dict[str, Any]:
    """One charge."""
    return {
        "entry": each["entry"],
        "day": each["time"][:10] or "–",
        "who": each["allowance"] or each["who"],
        "what": each["what"],
        "cost": "–" if each["of_budget"] is None else dp.exact.percent(each["of_budget"], up=True),
        "state": each["state"],
        "look": _LOOKS.get(each["state"], ""),
        "certificate": f"/owner/t/{name}/certificates/{each['entry']}",
    }


@router.get("/t/{name}/certificates/{entry}")
def certificate(visit: Owned, name: str, entry: int) -> Response:
    """The certificate of one charge in words, and as a file that others can check."""
    desk = visit.desk
    file = f"/v1/tables/{name}/certificates/{entry}"
    return visit.page(
        "certificate.html",
        f"Certificate of entry {entry}",
        "Entries",
        name,
        entry=entry,
        lines=views.certificate_lines(desk.certificate(visit.who, entry)),
        file=file,
        file_name=f"{name}-{entry}.json",
        at=f"/owner/t/{name}",
    )


# Keys.


@router.get("/keys")
def keys(visit: Owned) -> Response:
    """Who has a key."""
    return _keys(visit)


@router.post("/keys")
def add_key(
    visit: Changed,
    name: Annotated[str, Form()],
    share: Annotated[str, Form()],
    may: Annotated[list[str] | None, Form()] = None,
    tables: Annotated[list[str] | None, Form()] = None,
    days: Annotated[str, Form()] = "",
    another: Annotated[str, Form()] = "",
) -> Response:
    """Make a key, and show it once."""
    given = {"name": name, "share": share, "days": days}
    try:
        held = [each for each in visit.service.list_keys(visit.who) if each["name"] == name.strip() and each["alive"]]
        if held and not another:  # also when a browser sends the form again
            again = f"there is a key of {name.strip()} already: tick below to make another one"
            raise dp.errors.ParameterError(again)
        ends = visit.service.keys.now() + dp.exact.whole(days=days) * _DAY if days.strip() else None
        part = str(dp.session.part_of_budget(share=share))
        made = visit.service.add_key(
            visit.who, name.strip(), share=part, may=may or [], tables=tables or None, expires=ends
        )
    except dp.errors.DiscreetError as error:
        return _keys(visit, problem=refusal(error)["reason"], given=given)
    return _keys(visit, added={"name": name, "secret": made["key"]})


@router.post("/keys/{id_}/revoke")
def revoke_key(visit: Changed, id_: str) -> Response:
    """Revoke a key, from the next request on."""
    ended = visit.service.revoke_key(visit.who, id_)
    return _keys(visit, said=f"Key {', '.join(ended)} is revoked: its next request is refused." if ended else "")


def _keys(visit: Visitor, **shown: Any) -> HTMLResponse:
    found = visit.service.list_keys(visit.who)
    names = visit.service.tables(visit.who)
    return visit.page(
        "keys.html",
        "Keys",
        "Keys",
        names[0] if len(names) == 1 else None,
        keys=[_key(each) for each in reversed(found)],
        tables=names,
        doings=MAY,
        **{"added": None, "given": _FRESH, **shown},
    )


def _key(each: dict[str, Any]) -> dict[str, Any]:
    """One key, without its secret."""
    owner, ends = each["role"] == "owner", each["expires"]
    state = "revoked" if each["revoked"] is not None else "" if each["alive"] else "expired"
    return {
        "id": each["id"],
        "name": each["name"],
        "may": "owner: looks, and manages keys" if owner else ", ".join(each["may"]),
        "share": "–" if owner or each["share"] is None else each["share"],
        "ends": "never" if ends is None else datetime.datetime.fromtimestamp(ends, datetime.UTC).date().isoformat(),
        "state": state,
        "revocable": not owner and not state,
    }
