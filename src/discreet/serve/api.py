"""/v1: the HTTP interface. Requests are small JSON objects, replies are a desk's plain values, errors are problems.

What may take long is a job. A request waits `Prefer: wait=SECONDS` for it (10 unless it says otherwise, at most 60) and
gets the result, or 202 and the job's address.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from discreet.errors import NotFound, TooBusy
from discreet.serve.desk import Desk
from discreet.serve.jobs import DONE, Job
from discreet.serve.keys import MAY, Key
from discreet.serve.service import Holder, Owner, service_of

router = APIRouter(prefix="/v1")
TableName = Annotated[str, Path(max_length=64)]
RequestId = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
Prefer = Annotated[str | None, Header(max_length=200)]
Most = Annotated[int, Query(ge=1, le=200)]
Amount = Annotated[str | None, Field(max_length=100)]  # a number, exact: of so few digits everybody can compute
_WAIT, _LONGEST = 10.0, 60.0
_PIECE = 2**16


class Asked(BaseModel):
    """A body: exactly these members."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Question(Asked):
    sql: str = Field(description="One question in SQL.", examples=["SELECT COUNT(*) FROM people WHERE age >= 50"])
    max_price: Amount = Field(None, description="Refuse what could cost more than this part of the budget.")


class Workload(Asked):
    questions: list[str] = Field(description="Questions that are answered together, by one release.")
    share: Amount = Field(None, description="Of what is left, as 1/10.")


class Costing(Asked):
    """What a release may cost: an epsilon (and a delta), or a share of what is left."""

    table: str | None = Field(None, description="Of a schema with several tables: this one.")
    epsilon: Amount = None
    delta: Amount = None
    share: Amount = Field(None, description="Of what is left, as 1/4.")
    again: bool = Field(False, description="Pay for a new release, even if the same was released before.")


class Fit(Costing):
    kind: str | None = Field(None, description="logistic, linear, network, mean, median or quantile.")
    target: str
    features: list[str] | None = None
    method: str | None = None
    q: Amount = None
    hidden: int | None = Field(None, ge=1, le=4096)
    radius: Amount = None
    huber: Amount = None
    estimator: str | None = Field(None, description="Instead of kind: an estimator by its name, with parameters.")
    parameters: dict[str, Any] | None = None


class Learn(Costing):
    kind: str = Field(description="box, conjunction or rule.")
    target: str
    features: list[str] | None = None
    positive: str | None = None
    k: int | None = Field(None, ge=1, le=16)
    method: str | None = None
    alpha: Amount = None
    certify: Amount = Field(None, description="Also pay this epsilon for a bound on the rule's mistakes.")


class Suggest(Costing):
    column: str
    coverage: Amount = None


class Synthetic(Asked):
    table: str | None = None
    rows: int = Field(ge=1)
    format: str = "csv"
    share: Amount = Field(None, description="Measure tables for this share of what is left first.")
    measure: list[list[str]] = Field([], description="With share: these sets of columns.")
    seed: int | None = Field(None, ge=0, lt=2**63)


class Planning(Asked):
    kind: str
    table: str | None = None
    epsilon: Amount = None
    delta: Amount = None
    share: Amount = None
    alpha: Amount = None
    beta: Amount = None
    target: str | None = None
    features: list[str] | None = None
    radius: Amount = None
    huber: Amount = None
    numbers: dict[str, int] = {}


class NewKey(Asked):
    name: str
    share: Amount = None
    may: list[str] = list(MAY)
    tables: list[str] | None = None
    expires: float | None = Field(None, description="Seconds since 1970.")


def told(request: Request, reply: Any, status: int = 200) -> Response:
    """A reply in JSON: the same value is always the same bytes."""
    if isinstance(reply, dict):
        price = reply.get("price")
        request.state.price = price.get("nano") if isinstance(price, dict) else None
        request.state.entries = reply.get("entries")
    text = json.dumps(reply, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text, status, media_type="application/json")


async def outcome(job: Job, seconds: float = _LONGEST) -> dict[str, Any]:
    """What came out of a job; TimeoutError if it has not ended by then."""
    async with asyncio.timeout(seconds):
        await job.ending()
    return job.result(0)


def _wait(prefer: str | None) -> float:
    for part in (prefer or "").split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "wait" and value.isascii() and value.isdigit() and len(value) < 6:
            return min(float(value), _LONGEST)
    return _WAIT


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request about a table: who asks, and the desk of the table.

    id, prefer  of a request that may be charged: its id, and how long its job is waited for
    """

    request: Request
    who: Key
    desk: Desk
    id: str | None = None
    prefer: str | None = None

    async def tell(self, work: Callable[..., Any], *given: Any, **named: Any) -> Response:
        """What this work gives, which may block."""
        return told(self.request, await run_in_threadpool(work, *given, **named))

    async def finish(self, begin: Callable[..., Job], *given: Any, **named: Any) -> Response:
        """The result of the job that this begins, if it ends in time, else its address."""
        job = await run_in_threadpool(begin, self.who, *given, **named, request=self.id)
        try:
            return told(self.request, await outcome(job, _wait(self.prefer)))
        except TimeoutError:
            return JSONResponse(job.record(), 202, {"Location": f"/v1/tables/{self.desk.name}/jobs/{job.id}"})


async def table_request(request: Request, who: Holder, table: TableName) -> TableRequest:
    request.state.table = table if table in service_of(request).desks else None
    return TableRequest(request, who, service_of(request).desk(who, table))


async def owners_request(request: Request, who: Owner, table: TableName) -> TableRequest:
    return await table_request(request, who, table)


async def paid_request(asked: About, id_: RequestId = None, prefer: Prefer = None) -> TableRequest:
    return replace(asked, id=id_, prefer=prefer)


About = Annotated[TableRequest, Depends(table_request)]
Owned = Annotated[TableRequest, Depends(owners_request)]
Ordered = Annotated[TableRequest, Depends(paid_request)]


@router.get("/tables")
async def list_tables(request: Request, who: Holder) -> Response:
    """The tables that this key is for."""
    return told(request, service_of(request).greeting(who))


@router.get("/tables/{table}")
async def about(asked: About) -> Response:
    """What is public about a table: columns, who is protected, the promise."""
    return await asked.tell(asked.desk.about)


@router.get("/tables/{table}/budget")
async def budget(asked: About) -> Response:
    """What is left for this key."""
    return await asked.tell(asked.desk.budget, asked.who)


@router.get("/tables/{table}/known")
async def known(asked: About) -> Response:
    """What was measured already: questions about it are free."""
    return await asked.tell(asked.desk.known)


@router.get("/tables/{table}/history")
async def history(asked: About, most: Most = 50) -> Response:
    """What this analyst asked and was told, newest first."""
    return await asked.tell(asked.desk.history, asked.who, most=most)


@router.post("/tables/{table}/price")
async def price(asked: About, body: Question) -> Response:
    """What a question would cost, at most. Free. By POST, so that no question stands in a proxy's log."""
    return await asked.tell(asked.desk.price, asked.who, body.sql)


@router.post("/tables/{table}/ask")
async def ask(asked: Ordered, body: Question) -> Response:
    """The answer to a question, charged before rows are read. The same Idempotency-Key gets the same bytes, free."""
    return await asked.finish(asked.desk.begin_ask, body.sql, max_price=body.max_price)


@router.post("/tables/{table}/workload")
async def workload(asked: Ordered, body: Workload) -> Response:
    """Answers to several questions by one release, for a share of what is left."""
    return await asked.finish(asked.desk.begin_workload, body.questions, share=body.share)


@router.post("/tables/{table}/plan")
async def plan(asked: About, body: Planning) -> Response:
    """Every method for one kind of release side by side, before anything is spent."""
    return await asked.tell(asked.desk.plan, asked.who, body.model_dump())


@router.post("/tables/{table}/fit")
async def fit(asked: Ordered, body: Fit) -> Response:
    """A model of columns of the table, for one charge. `model` is its file, which `discreet.load` reads."""
    return await asked.finish(asked.desk.begin_fit, body.model_dump())


@router.post("/tables/{table}/learn")
async def learn(asked: Ordered, body: Learn) -> Response:
    """A rule that reads as a sentence, for one charge."""
    return await asked.finish(asked.desk.begin_learn, body.model_dump())


@router.post("/tables/{table}/suggest-bounds")
async def suggest_bounds(asked: Ordered, body: Suggest) -> Response:
    """Bounds of a column, found among its rows, for one charge."""
    return await asked.finish(asked.desk.begin_suggest, body.model_dump())


@router.post("/tables/{table}/synthetic")
async def synthetic(asked: Ordered, body: Synthetic) -> Response:
    """Made-up rows drawn from what was released; `job` is where they are fetched: /jobs/JOB/rows."""
    return await asked.finish(asked.desk.begin_synthetic, body.model_dump())


@router.get("/tables/{table}/jobs/{id_}/rows")
async def rows(asked: About, id_: str) -> Response:
    """The rows that a job has drawn, as a stream of CSV or Parquet."""
    job = asked.desk.job(asked.who, id_)
    if job.state != DONE or job.attachment is None:
        raise NotFound("there are no rows of this job: draw them again, which is free")
    media, data = job.attachment
    pieces = (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    headers = {"Content-Disposition": "attachment", "Content-Length": str(len(data))}
    return StreamingResponse(pieces, 200, headers, media_type=media)


@router.get("/tables/{table}/jobs/{id_}")
async def job_state(asked: About, id_: str, prefer: Prefer = None) -> Response:
    """The state of a job; when it has ended, its result or its refusal."""
    job = asked.desk.job(asked.who, id_)
    try:
        return told(asked.request, await outcome(job, _wait(prefer) if prefer else 0.05))
    except TimeoutError:
        return JSONResponse(job.record(), 202)


@router.delete("/tables/{table}/jobs/{id_}")
async def cancel_job(asked: About, id_: str) -> Response:
    """Cancel a job before it is charged; `cancelled` says whether that came in time."""
    job = asked.desk.job(asked.who, id_)
    return told(asked.request, {**job.record(), "cancelled": job.cancel()})


@router.get("/tables/{table}/certificates/{entry}")
async def certificate(asked: About, entry: int) -> Response:
    """The certificate of a charge of this analyst; an owner's key gets any."""
    return await asked.tell(asked.desk.certificate, asked.who, entry)


@router.post("/tables/{table}/rehearsal/price")
async def rehearse_price(request: Request, table: TableName, body: Question) -> Response:
    """A price on made-up rows, without a key, if the owner allows rehearsals."""
    return told(request, await run_in_threadpool(service_of(request).guest_price, table, body.sql))


@router.post("/tables/{table}/rehearsal/ask")
async def rehearse(request: Request, table: TableName, body: Question) -> Response:
    """An answer about made-up rows, without a key, if the owner allows rehearsals."""
    job = await run_in_threadpool(service_of(request).begin_guest_ask, table, body.sql)
    try:
        return told(request, await outcome(job))
    except TimeoutError:
        raise TooBusy("the made-up rows are busy: try again later", retry_after=10) from None


# The owner.


@router.get("/tables/{table}/spending")
async def spending(asked: Owned) -> Response:
    """What every analyst has spent and has left."""
    return await asked.tell(asked.desk.spending, asked.who)


@router.get("/tables/{table}/entries")
async def entries(asked: Owned, most: Most = 50) -> Response:
    """The last charges, with who made them and what was asked."""
    return await asked.tell(asked.desk.entries, asked.who, most=most)


@router.get("/tables/{table}/export")
async def export(asked: Owned, everything: bool = False) -> Response:
    """Every entry of the ledger as a line of JSON; without `everything` neither questions nor memos."""
    lines = asked.desk.export(asked.who, everything=everything)
    return StreamingResponse((f"{line}\n" for line in lines), media_type="application/x-ndjson")


@router.post("/tables/{table}/verify")
async def verify(asked: Owned) -> Response:
    """Check every entry, every sum, every price and the mark."""
    return await asked.tell(asked.desk.verify, asked.who)


@router.get("/tables/{table}/report")
async def report(asked: Owned) -> Response:
    """The page of `discreet report`: one HTML file that needs nothing else."""
    text = await run_in_threadpool(asked.desk.report, asked.who)
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


@router.get("/keys")
async def list_keys(request: Request, who: Owner) -> Response:
    """All keys, without their secrets."""
    return told(request, {"keys": service_of(request).list_keys(who)})


@router.post("/keys")
async def add_key(request: Request, who: Owner, body: NewKey) -> Response:
    """Make a key of an analyst; it is told in this reply and never again."""
    service = service_of(request)
    made = await run_in_threadpool(lambda: service.add_key(who, **body.model_dump()))
    return told(request, made, 201)


@router.delete("/keys/{id_}")
async def revoke_key(request: Request, who: Owner, id_: str) -> Response:
    """Revoke a key, from the next request on."""
    ended = await run_in_threadpool(service_of(request).revoke_key, who, id_)
    return told(request, {"revoked": ended})
