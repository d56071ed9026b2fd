"""create_app: the routes, the errors and what stands before them, as one ASGI application."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from discreet.core import (
    DiscreetError,
    KeyRefused,
    NotFound,
    NotPermitted,
    ParameterError,
    TooLarge,
    code_version,
    one_line,
)
from discreet.serve import api
from discreet.serve.guard import AccessLog, Guard
from discreet.serve.problems import problem_response
from discreet.serve.service import Service
from discreet.serve.settings import Settings

_BY_STATUS: dict[int, type[DiscreetError]] = {401: KeyRefused, 403: NotPermitted, 404: NotFound, 413: TooLarge}
PAGES = "discreet.serve.pages"


def create_app(settings: Settings) -> FastAPI:
    """The application of a service: opens ledgers and rows now, and closes them when the server shuts down."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(
        title="discreet",
        version=code_version(),
        summary="Questions about private tables, within one budget that cannot be overspent.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(api.router)
    if importlib.util.find_spec(PAGES) is not None:
        app.include_router(importlib.import_module(PAGES).router)
    app.add_api_route("/healthz", healthz, methods=["GET"], include_in_schema=False)
    app.add_api_route("/readyz", readyz, methods=["GET"], include_in_schema=False)
    for kind, handler in ((DiscreetError, refused), (RequestValidationError, misshapen), (HTTPException, unrouted)):
        app.add_exception_handler(kind, handler)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, failed)
    log = AccessLog(settings.log, sys.stderr)
    app.add_middleware(Guard, limits=settings.limits, grid=settings.time_grid, log=log)
    return app


async def healthz() -> Response:
    """The process runs; nothing is said about tables."""
    return JSONResponse({"up": True, "version": code_version()})


async def readyz(request: Request) -> Response:
    """Whether questions are taken: not while the service stops, nor if a ledger does not agree with its mark."""
    service: Service = request.app.state.service
    ready = not service.stopping and not await run_in_threadpool(service.damaged)
    return JSONResponse({"ready": ready}, 200 if ready else 503)


async def refused(request: Request, error: DiscreetError) -> Response:
    return problem_response(error)


async def misshapen(request: Request, error: RequestValidationError) -> Response:
    """What is wrong with a body, by the places of its members; nothing of what was sent is repeated."""
    places = [f"{_place(each['loc'])}: {each['msg']}" for each in error.errors()[:5]]
    return problem_response(ParameterError(one_line(f"the request is not as expected. {'; '.join(places)}")))


def _place(where: Any) -> str:
    known = [str(each) for each in where if isinstance(each, int) or str(each).isidentifier()]
    return ".".join(known)[:100] or "body"


async def unrouted(request: Request, error: HTTPException) -> Response:
    kind = _BY_STATUS.get(error.status_code, ParameterError)
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    said = kind(words.get(error.status_code, "the request is not as expected"))
    return problem_response(said, error.status_code)


async def failed(request: Request, error: Exception) -> Response:
    return problem_response(error)
