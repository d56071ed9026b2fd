"""Errors as RFC 9457 problem details: the type is the name of discreet's own class, the detail its own words."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

from discreet import errors

MEDIA = "application/problem+json"
_LONGEST = 8000
"""Characters of a refusal."""

STATUS: dict[type[errors.DiscreetError], int] = {
    errors.KeyRefused: 401,
    errors.BudgetExceeded: 402,  # neither 429 nor 503: clients and proxies repeat those by themselves
    errors.NotPermitted: 403,
    errors.NotFound: 404,
    errors.RequestConflict: 409,
    errors.Cancelled: 409,
    errors.TooLarge: 413,
    errors.ConversationOver: 409,
    errors.UnsupportedQuery: 422,
    errors.SchemaError: 422,
    errors.ParameterError: 422,
    errors.TooBusy: 429,
    errors.ServiceFailed: 500,
    errors.LedgerUnavailable: 503,
    errors.SourceUnavailable: 503,
    errors.LedgerCorrupt: 503,
    errors.LedgerMismatch: 503,
}
_FIELDS = (
    *("asked", "remaining", "fits", "position", "reason", "hint", "argument"),
    *("retry_after", "entry", "expected", "found"),
)


def status_of(error: errors.DiscreetError) -> int:
    """The HTTP status of an error."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def cut(text: str) -> str:
    """A text that may repeat what was sent, at a length that a question never reaches."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def problem(error: Exception, status: int | None = None) -> dict[str, Any]:
    """An error as problem details; whatever is not discreet's own is one fixed sentence.

    status  another than the error's own
    """
    told = error if isinstance(error, errors.DiscreetError) else errors.ServiceFailed()
    status = status or status_of(told)
    if status == 500:
        told = errors.ServiceFailed()
    fields = {name: getattr(told, name) for name in _FIELDS if getattr(told, name, None) is not None}
    name = next(kind.__name__ for kind in type(told).__mro__ if kind.__module__ == errors.__name__)
    head = {"type": name, "title": HTTPStatus(status).phrase, "status": status}
    return {**head, "detail": cut(str(told)), **fields}


def problem_response(error: Exception, status: int | None = None) -> JSONResponse:
    """The reply that says an error."""
    body = problem(error, status)
    headers = {"Cache-Control": "no-store"}
    if body["status"] == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after" in body:
        headers["Retry-After"] = str(body["retry_after"])
    return JSONResponse(body, body["status"], headers, media_type=MEDIA)
