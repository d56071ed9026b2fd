"""What stands before every route, as plain ASGI: sizes and slowness of bodies, how many at once, headers, the time at
which replies leave, and the access log.

Replies leave at multiples of the time grid after their request came. How long a reply took depends on rows; on the
grid, all that shows is how many steps it took. A random delay would average out, a grid does not.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TextIO

from discreet.core import ParameterError, ServiceError, TooBusy, TooLarge
from discreet.serve.problems import problem_response
from discreet.serve.settings import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_AT_ONCE = ("/healthz", "/readyz", "/static/")
_LARGEST_HEAD = 16_384


class HeadersTooLarge(TooLarge):
    """The headers of a request are too long; said as TooLarge."""


class AccessLog:
    """One line of JSON for each request: never a question, an answer, a query string or anything else that was sent."""

    def __init__(self, path: Path | None, stream: TextIO) -> None:
        self._path, self._stream, self._lock = path, stream, threading.Lock()

    def write(self, **fields: Any) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = json.dumps({"time": now, **fields}) + "\n"
        with self._lock:
            if self._path is None:
                self._stream.write(line)
                self._stream.flush()
                return
            with self._path.open("a", encoding="utf-8") as file:  # opened anew, so that it may be moved away
                file.write(line)

    def failure(self, error: Exception) -> None:
        """Say on the error stream that a request failed inside: the class alone, since a traceback may show values."""
        with self._lock:
            self._stream.write(f"a request failed inside the service: {type(error).__name__}\n")
            self._stream.flush()


class Guard:
    """Wraps the application."""

    def __init__(self, app: App, limits: Limits, grid: float, log: AccessLog) -> None:
        self._app, self._limits, self._grid, self._log = app, limits, grid, log
        self._now, self._arriving = 0, list[asyncio.Timeout]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, state = time.monotonic(), scope.setdefault("state", {})
        status, started = 500, False

        async def leave(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message = {**message, "headers": _with_headers(message.get("headers", []))}
                if self._grid and not scope["path"].startswith(_AT_ONCE):
                    await asyncio.sleep((began - time.monotonic()) % self._grid)
            await send(message)

        try:
            body = await self._whole_body(scope, receive)
            await self._work(scope, _again(body, receive), leave)
        except HeadersTooLarge as error:
            await problem_response(error, 431)(scope, receive, leave)
        except ServiceError as error:
            await problem_response(error)(scope, receive, leave)
        except ParameterError as error:
            await problem_response(error, 408)(scope, receive, leave)
        except Exception as error:  # nothing of it leaves the process; a reply that began is cut off
            self._log.failure(error)
            if not started:
                await problem_response(error, 500)(scope, receive, leave)
        finally:
            if "leave" in state:
                state["leave"]()
            if scope["path"] not in ("/healthz", "/readyz"):
                self._log.write(
                    key=state.get("key"),
                    method=scope["method"] if scope["method"] in _METHODS else "other",
                    route=getattr(scope.get("route"), "path", None),
                    table=state.get("table"),
                    status=status,
                    price=state.get("price"),
                    entries=state.get("entries"),
                )

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application work on a request whose body is there, unless it works on too many."""
        if self._now >= self._limits.concurrent:
            raise TooBusy("too many requests are worked on: try again later", retry_after=1)
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1

    def _admit(self, arriving: asyncio.Timeout) -> None:
        """One more body is on its way. Of too many the oldest is given up: whoever sends at once gets through, however
        many others never finish."""
        self._arriving.append(arriving)
        if len(self._arriving) > self._limits.arriving:
            oldest = self._arriving.pop(0)
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())

    async def _whole_body(self, scope: Scope, receive: Receive) -> bytes:
        """The body, if it is not too large and does not take too long."""
        most, seconds = self._limits.body, self._limits.slow
        large = TooLarge(f"a body has at most {most:,} bytes here")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _LARGEST_HEAD:
            raise HeadersTooLarge(f"the headers of a request have at most {_LARGEST_HEAD:,} bytes here")
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(not value.isdigit() or len(value) > 18 or int(value) > most for value in lengths):
            raise large
        found = bytearray()
        try:
            async with asyncio.timeout(seconds) as arriving:
                self._admit(arriving)
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ParameterError("the connection was lost before the body was there")
                    found += message.get("body", b"")
                    if len(found) > most:
                        raise large
                    if not message.get("more_body", False):
                        return bytes(found)
        except TimeoutError:
            words = f"the body took more than {seconds:g} seconds to arrive, or too many others are arriving"
            raise ParameterError(words) from None
        finally:
            self._arriving = [each for each in self._arriving if each is not arriving]


_METHODS = ("GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS")


def _again(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the whole body once, and then what comes."""
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message


def _with_headers(found: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    names = {name.lower() for name, _ in found}
    added = [*HEADERS, (b"content-security-policy", POLICY), (b"cache-control", b"no-store")]
    return [*found, *(pair for pair in added if pair[0] not in names)]
