"""Replies kept in the ledger: the same request id of the same key gets the same bytes, free, also after a crash.

A reply is a saying of the manner `REPLY`: no charge, durable, part of the chain. Its meaning is the digest of the key
and the request id, which is looked up by an index. A request that was charged and has no reply belongs to a process
that ended in between. If its charge was answered, asking again is free, because sessions and fits find stored
answers. If it was burned, the request says so: nobody pays twice without knowing.

What was told before under another id, a model for example, is not kept twice: of the new reply that is kept in which
it differs.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from discreet.core import LedgerUnavailable, ParameterError, RequestConflict, digest
from discreet.ledger import REPLY, Body, Ledger, answer_text, charging
from discreet.serve.jobs import Ticket

_ID = re.compile(r"[A-Za-z0-9._~-]{1,64}")
_RECORD = "reply/1"


def checked_id(request: str | None) -> str | None:
    """The id of a request, if it is one."""
    if request is not None and not _ID.fullmatch(request):
        raise ParameterError("a request id has at most 64 letters, digits and . _ ~ -", argument="request")
    return request


class Replies:
    """The replies in one ledger, and the charges behind requests. Follows the ledger entry by entry."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock, self._seen = threading.Lock(), 0
        self._charges: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._ends: dict[int, str] = {}
        self._by_name: dict[str, list[int]] = defaultdict(list)
        self._whole: dict[str, int] = {}
        self.catch_up()

    def catch_up(self) -> None:
        """Read the new entries."""
        with self._lock:
            for body in self.ledger.entries(after=self._seen):
                match body["kind"]:
                    case "charge" if (by := body.get("by")) is not None:
                        self._charges[by["key"], by.get("request", "")].append(body["seq"])
                    case "answer" | "burn":
                        self._ends[body["charge"]] = body["kind"]
                    case "said" if body["manner"] == REPLY:
                        told = body["question"]
                        self._by_name[told["analyst"]].append(body["seq"])
                        if "differs_from" not in told:
                            self._whole[digest([told["kind"], told["what"]])] = body["seq"]
                self._seen = body["seq"]

    def find(self, ticket: Ticket, what: str) -> dict[str, Any] | None:
        """The reply to this request, if there is one; RequestConflict if the id was used for something else, or for
        something that was charged and will never be answered."""
        if ticket.request is None:
            return None
        for seq in self.ledger.store.said(_meaning(ticket))[-1:]:  # the first one, if two processes raced
            body = self.ledger.entry(seq)
            told = body["question"]
            if (told["kind"], told["what"]) != (ticket.kind, what):
                raise RequestConflict("this request id was used for something else: take a new one")
            return self._reply(body)
        self._refuse_burned(ticket)
        return None

    def _refuse_burned(self, ticket: Ticket) -> None:
        """Refuse a request that was charged, if its charge is burned or runs elsewhere."""
        self.catch_up()
        if not (charged := self._charges.get((ticket.holder.id, ticket.request or ""), [])):
            return
        self.ledger.store.burn_orphans()
        self.catch_up()
        ends = {seq: self._ends.get(seq) for seq in charged}
        if any(end is None and self.ledger.entry(seq)["mode"] == "release" for seq, end in ends.items()):
            raise LedgerUnavailable("this request is being run now, by a process that is alive: try again later")
        burned = [seq for seq, end in ends.items() if end == "burn"]
        if burned:
            raise RequestConflict(
                f"this request was charged (entry {burned[-1]}) and its run was interrupted: the charge stays; take a "
                "new request id to pay again"
            )

    def keep(self, ticket: Ticket, what: str, reply: dict[str, Any]) -> int:
        """Keep a reply, durably; how many bytes that took. Without a request id it is kept for the history alone."""
        with self.ledger.store.reading() as state:
            facts_hash = state.current_facts
        if facts_hash is None:  # nothing was ever charged, and the ledger was made without its table
            return 0
        told: dict[str, Any] = {
            "name": _RECORD,
            "analyst": ticket.holder.name,
            "key": ticket.holder.id,
            "kind": ticket.kind,
            "what": what,
            "request": ticket.request,
        }
        whole = self._whole.get(digest([ticket.kind, what]))
        old = {} if whole is None else self._reply(self.ledger.entry(whole))
        if _text(_filled(old, repeat(0))) == _text(_filled(reply, repeat(0))):
            pairs = enumerate(zip(_leaves(old), _leaves(reply), strict=True))
            reply = {str(place): new for place, (was, new) in pairs if _text(was) != _text(new)}
            told["differs_from"] = whole
        text = _text(reply)
        charging.say(self.ledger, charging.Saying(facts_hash, told, _meaning(ticket), REPLY, text), keep={})
        return len(what) + len(text)

    def _reply(self, body: Body) -> dict[str, Any]:
        """A reply that was kept, whole."""
        found: dict[str, Any] = json.loads(answer_text(body))
        whole = body["question"].get("differs_from")
        if whole is None:
            return found
        old = self._reply(self.ledger.entry(whole))
        leaves = (found.get(str(place), leaf) for place, leaf in enumerate(_leaves(old)))
        return dict(_filled(old, leaves))

    def history(self, name: str, *, most: int) -> list[dict[str, Any]]:
        """The last replies to an analyst, newest first."""
        self.catch_up()
        found = []
        for seq in reversed(self._by_name.get(name, [])[-most:]):
            body = self.ledger.entry(seq)
            told = {key: body["question"][key] for key in ("kind", "what", "request")}
            found.append({"entry": seq, "time": body["time"], **told, "reply": self._reply(body)})
        return found


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _leaves(value: Any) -> list[Any]:
    """What stands in the members of an object and of the objects in it, in order."""
    return [leaf for below in value.values() for leaf in _leaves(below)] if isinstance(value, dict) else [value]


def _filled(shape: Any, leaves: Iterator[Any]) -> Any:
    """An object with the same members and other leaves."""
    return {name: _filled(each, leaves) for name, each in shape.items()} if isinstance(shape, dict) else next(leaves)


def _meaning(ticket: Ticket) -> str:
    return digest([REPLY, ticket.holder.id, ticket.request or ticket.who])
