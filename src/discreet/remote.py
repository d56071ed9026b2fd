"""A session with a table that a service holds: the face of `discreet.Session`, over HTTP.

    session = dp.connect("https://desk.example", key="dk_...")
    session.ask("SELECT COUNT(*) FROM people WHERE age >= 50")

Everything that is paid carries a request id of its own. If a reply is lost, the same request is sent again with the
same id: it is answered from what was stored, and nothing is paid twice. Errors are discreet's own, with the service's
words. Only the standard library talks to the network; redirects are refused, since they would carry the key away.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import os
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.core import (
    Cost,
    Exact,
    Pairs,
    Paragraph,
    ParameterError,
    Share,
    Sheet,
    Shown,
    Unreachable,
    errors,
    one_line,
)

if TYPE_CHECKING:
    from discreet.answering import Answer

KEY = "DISCREET_KEY"
"""The environment variable that a key is taken from, unless it is given."""

_ATTEMPTS = 4
_LARGEST = 2**28  # bytes of a reply
_GONE = (ConnectionError, TimeoutError, http.client.HTTPException, urllib.error.URLError, ValueError)


def connect(
    url: str, *, key: str | None = None, table: str | None = None, patience: float = 600.0, timeout: float = 90.0
) -> RemoteSession:
    """A session with a service.

    key       an analyst's key; by default what the environment variable DISCREET_KEY says
    table     which of its tables; not needed if there is one
    patience  seconds to wait for a job, or for a service that is busy
    timeout   seconds to wait for one reply
    """
    given = os.environ.get(KEY) if key is None else key
    if not isinstance(given, str) or not (given := given.strip()) or not (given.isascii() and given.isprintable()):
        raise ParameterError(f"a service wants a key, dk_...: key=, or the environment variable {KEY}")
    line = _Line(_checked_url(url), given, patience, timeout)
    told = line.call("GET", "/v1/tables")
    try:
        tables, you = [*told["tables"]], {"name": told["you"]["name"], **told["you"]}
    except (KeyError, TypeError):
        raise Unreachable(f"this is no service of discreet at {url}: its reply has other members") from None
    name: Any = tables[0] if table is None and len(tables) == 1 else table
    if name not in tables:
        raise ParameterError(f"this key is for the tables {tables or 'none'}: table= says which, found {name!r}")
    return RemoteSession(line, name, you)


def _checked_url(url: str) -> str:
    """The address without a slash at its end, if a key may be sent there."""
    parts, here = urllib.parse.urlsplit(""), False
    with suppress(ValueError):
        parts = urllib.parse.urlsplit(url if isinstance(url, str) else "")
        here = parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ParameterError(f"a service's address is https://HOST or http://127.0.0.1:PORT, found {url!r}")
    if parts.scheme == "http" and not here:
        raise ParameterError("a key is not sent in the clear: use https://, or http:// to this machine")
    return url.rstrip("/")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Line:
    """Requests to one service."""

    url: str
    key: str = field(repr=False)
    patience: float
    timeout: float
    opener: Any = field(default_factory=lambda: urllib.request.build_opener(_NoRedirects), repr=False)

    def call(self, method: str, path: str, body: Any = None, request: str | None = None, question: str = "") -> Any:
        """The reply as JSON. A job is waited for; a lost connection, or a busy service, is asked again."""
        deadline, attempt = time.monotonic() + self.patience, 0
        while True:
            try:
                return self._waited(method, path, body, request, question, deadline)
            except errors.TooBusy as busy:
                if time.monotonic() + busy.retry_after > deadline:
                    raise
                time.sleep(busy.retry_after)
            except Unreachable:
                attempt += 1
                if attempt == _ATTEMPTS or (method == "POST" and request is None):
                    raise
                time.sleep(0.25 * 2**attempt)

    def _waited(self, method: str, path: str, body: Any, request: str | None, question: str, deadline: float) -> Any:
        headers = {"Prefer": "wait=30"} | ({} if request is None else {"Idempotency-Key": request})
        status, data, where = self.send(method, path, body, headers)
        while status == 202:
            if time.monotonic() > deadline:
                raise Unreachable("the job takes longer than this session's patience: ask again with the same request")
            status, data, _ = self.send("GET", where, None, {"Prefer": "wait=30"})
            if status == 404:  # the service was started again: what became of the request is in its ledger
                status, data, where = self.send(method, path, body, headers)
        found = _parsed(data)
        if status >= 400:
            raise error_from(found, question)
        return found

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, str]:
        """One request: its status, its bytes and where a job is."""
        data = None if body is None else json.dumps(body).encode("utf-8")
        named = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        asked = urllib.request.Request(self.url + path, data, named, method=method)
        try:
            with self.opener.open(asked, timeout=self.timeout) as reply:
                return reply.status, _read(reply), reply.headers.get("Location", "")
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, _read(refused), ""
        except _GONE as lost:
            raise Unreachable(f"the service at {self.url} did not answer ({type(lost).__name__})") from None


def _read(reply: Any) -> bytes:
    data: bytes = reply.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise Unreachable(f"a reply has more than {_LARGEST:,} bytes")
    return data


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Unreachable("this is no service of discreet: its reply is not JSON") from None


# Errors.

_MAKERS: dict[str, Callable[[dict[str, Any], str], errors.DiscreetError]] = {
    "BudgetExceeded": lambda told, _: errors.BudgetExceeded(told["asked"], told["remaining"], told["fits"]),
    "AboveMaxPrice": lambda told, _: errors.AboveMaxPrice(told["asked"], told["remaining"], told["fits"]),
    "UnsupportedQuery": lambda told, text: errors.UnsupportedQuery(
        text, told["position"], told["reason"], told["hint"]
    ),
    "TooBusy": lambda told, _: errors.TooBusy(told["detail"], retry_after=int(told["retry_after"])),
    "ConversationOver": lambda told, _: errors.ConversationOver(told["reason"]),
    "LedgerCorrupt": lambda told, _: errors.LedgerCorrupt(told.get("entry"), told["expected"], told["found"]),
    "LedgerRolledBack": lambda told, _: errors.LedgerRolledBack(told.get("entry"), told["expected"], told["found"]),
}
_PLAIN = ("SchemaError", "LedgerMismatch", "LedgerUnavailable", "NotPrivate", "NothingFits", "Unproven")


def error_from(told: Any, question: str = "") -> errors.DiscreetError:
    """The error that problem details say: discreet's own class, with the same words."""
    try:
        name, detail = str(told["type"]), str(told["detail"])
        if name in _MAKERS:
            return _MAKERS[name](told, question)
    except (KeyError, TypeError, ValueError):
        return errors.ServiceFailed("the service refused this, and did not say why")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and (issubclass(kind, errors.ServiceError) or name in _PLAIN):
        made: errors.DiscreetError = kind(detail)
        return made
    if name in ("ParameterError", "OutOfRange"):
        return ParameterError(detail, argument=told.get("argument"))
    return errors.SchemaError(detail) if name == "UndeclaredLevels" else errors.ServiceFailed(detail)


class RemoteSession(Shown):
    """A table that a service holds, asked in an analyst's name. The methods are those of `Session`.

    name   of the table             you  the name, the role and the rights of the key
    """

    def __init__(self, line: _Line, name: str, you: dict[str, Any]) -> None:
        self._line, self.name, self.you = line, name, you
        self._about: dict[str, Any] | None = None

    def _at(self, what: str = "") -> str:
        return f"/v1/tables/{urllib.parse.quote(self.name, safe='')}{what}"

    def _get(self, what: str = "") -> dict[str, Any]:
        found: dict[str, Any] = self._line.call("GET", self._at(what))
        return found

    def _post(self, what: str, body: dict[str, Any], request: str | None, question: str = "") -> dict[str, Any]:
        path = self._at(what)
        found: dict[str, Any] = self._line.call("POST", path, body, request or secrets.token_hex(16), question)
        return found

    # Asking.

    def ask(self, question: str, *, max_price: Exact | None = None, request: str | None = None) -> Answer:
        """One answer. request: an id of the caller's choice; the same one gets the same answer again, free."""
        from discreet.answering import answer_from

        body = {"sql": _text(question), "max_price": None if max_price is None else str(max_price)}
        return answer_from(self._post("/ask", body, request, question))

    def price(self, question: str) -> Cost:
        """What `ask` would charge for this question now, at most. Free."""
        from discreet.answering import cost_from

        told = self._post("/price", {"sql": _text(question)}, None, question)
        return cost_from(told["price"])

    def check(self, question: str) -> None:
        """Refuse, with the reason, what cannot be asked. Spends nothing."""
        self.price(question)

    def answer_all(
        self, questions: Sequence[str], *, share: Exact | None = None, request: str | None = None
    ) -> list[Answer]:
        """Answers to questions that are all known now: one release and one charge, for this share of what is left."""
        from discreet.answering import answer_from

        if isinstance(questions, str):
            raise ParameterError("answer_all takes several questions in a list, found a str")
        body = {"questions": [_text(each) for each in questions], "share": None if share is None else str(share)}
        return [answer_from(each) for each in self._post("/workload", body, request)["answers"]]

    def budget(self) -> tuple[int, int]:
        """What is left for this key and what the whole budget was, in nano-units of the ledger's first book."""
        told = self._get("/budget")
        return told["left_nano"], told["budget_nano"]

    def history(self, most: int = 50) -> list[dict[str, Any]]:
        """What was asked and told under this name, newest first."""
        found: list[dict[str, Any]] = self._line.call("GET", self._at(f"/history?most={int(most)}"))
        return found

    def known(self) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """The largest sets of columns that synthetic rows follow; and those that were measured and are left out."""
        told = self._get("/known")
        together, left_out = told["columns_known_together"], told["columns_left_out"]
        return [tuple(each) for each in together], [tuple(each) for each in left_out]

    def about(self) -> dict[str, Any]:
        """What is public about the table."""
        if self._about is None:
            self._about = self._get()
        return self._about

    def plan(self, kind: str, **given: Any) -> dict[str, Any]:
        """Every method for one kind of release side by side, before anything is spent; as `POST /plan` takes it."""
        return self._post("/plan", {"kind": kind, **given}, None)

    def certificate(self, entry: int) -> dict[str, Any]:
        """The certificate of a charge of this analyst."""
        return self._get(f"/certificates/{int(entry)}")

    # Learning.

    def fit(
        self,
        estimator: Any,
        *,
        target: str,
        features: Sequence[str] | None = None,
        table: str | None = None,
        again: bool = False,
        request: str | None = None,
    ) -> Any:
        """Fit an estimator to columns of the table, there, and return the fitted model, here.

        The estimator says what it may cost, by epsilon: a number, or a Share of what is left. It is not changed. The
        model predicts, and has its promise and its certificate.
        """
        from discreet.estimators.loading import load_record

        if estimator.ledger is not None:
            raise ParameterError("this estimator has a ledger of its own: a service charges the one that it holds")
        if estimator.epsilon is None:
            raise ParameterError('say what the fit may cost: epsilon=Share("1/10") or a number')
        body: dict[str, Any] = {
            "estimator": type(estimator).__name__,
            "parameters": {k: v for k, v in estimator.public_parameters().items() if getattr(estimator, k) is not None},
            "target": target,
            "features": None if features is None else list(features),
            "table": table,
            "again": again,
        }
        lost = [name for name, value in body["parameters"].items() if value is None]
        if lost:
            raise ParameterError(f"{lost[0]} is no plain value, and does not travel to a service")
        return load_record(self._post("/fit", body, request)["model"])

    def learn(self, kind: str, *, target: str, request: str | None = None, **given: Any) -> Any:
        """Learn a rule, of the kind box, conjunction or rule, and return the model. given: features, positive, k,
        method, alpha, certify, and what it may cost: epsilon (and delta), or share. What certify bought is in
        `certified_`: how many rows there are, the bound, the probability and the entry; or why it was refused."""
        from discreet.estimators.loading import load_record

        body = {"kind": kind, "target": target, **{name: _spelled(value) for name, value in given.items()}}
        told = self._post("/learn", body, request)
        model = load_record(told["model"])
        model.certified_ = told["certificate"]
        return model

    def suggest_bounds(self, column: str, *, request: str | None = None, **given: Any) -> dict[str, Any]:
        """Bounds of a column, found among its rows: low, high and step, what is promised, and what it cost."""
        body = {"column": column, **{name: _spelled(value) for name, value in given.items()}}
        return self._post("/suggest-bounds", body, request)

    def synthetic(
        self,
        rows: int,
        *,
        share: Exact | None = None,
        seed: int | None = None,
        backend: str = "pandas",
        table: str | None = None,
        request: str | None = None,
    ) -> Any:
        """A frame of made-up rows, drawn there from what was released. share: as for `Session.synthetic`."""
        from discreet.answering import frame_of

        frame_of({}, backend)
        body = {"rows": rows, "format": "csv", "share": None if share is None else str(share), "seed": seed}
        told = self._post("/synthetic", {**body, "table": table}, request)
        status, data, _ = self._line.send("GET", self._at(f"/jobs/{told['job']}/rows"))
        if status != 200:
            raise error_from(_parsed(data))
        return self._frame(data.decode("utf-8"), backend, table)

    def _frame(self, text: str, backend: str, table: str | None) -> Any:
        """The rows as a frame, with values as they are declared: numbers are numbers, what is missing is None."""
        import csv

        from discreet.answering import frame_of

        names, *lines = csv.reader(io.StringIO(text, newline=""))
        found = next(each for each in self.about()["tables"] if table in (None, each["name"]))
        kinds = {each["column"]: each for each in found["columns"]}
        columns = {
            name: [_value(kinds.get(name, {}), line[place]) for line in lines] for place, name in enumerate(names)
        }
        return frame_of(columns, backend)

    # How it shows itself.

    def __repr__(self) -> str:
        return f"RemoteSession({self.name!r} at {self._line.url}, as {self.you['name']!r})"

    def sheet(self) -> Sheet:
        """The table, who is protected, and what is left."""
        about, told = self.about(), self._get("/budget")
        head = Paragraph(f"{one_line(self.name)} at {self._line.url}", "bold")
        columns = "; ".join(
            f"{each['name']}: {', '.join(column['column'] for column in each['columns'])}" for each in about["tables"]
        )
        return Sheet.of(head, Pairs([("columns", columns), ("left", told["words"]), ("protects", about["protects"])]))


def _text(question: object) -> str:
    if not isinstance(question, str):
        raise ParameterError(f"a question to a service is SQL, found {type(question).__name__}")
    return question


def _spelled(value: Any) -> Any:
    """An option as the service takes it: numbers as text, so that they are exact."""
    if isinstance(value, Share):
        raise ParameterError("a share is given as share=, not as an epsilon")
    plain = value is None or isinstance(value, (str, bool, int, list))
    return value if plain else list(value) if isinstance(value, tuple) else str(value)


def _value(declared: dict[str, Any], text: str) -> Any:
    """A value of a CSV file as its column declares it."""
    levels = {str(level): level for level in declared.get("levels", ())}
    if text in levels or text in (declared.get("other"), declared.get("missing")):
        return levels.get(text, text)
    if text == "":
        return None
    if declared.get("kind") != "number":
        return text
    return int(text) if text.lstrip("-").isdigit() else float(text)
