"""Replies kept in the ledger: the same request id of the same key gets the same bytes, free, also after a crash.

A reply is a saying of the manner `REPLY`: no charge, durable, part of the chain. Its meaning is the digest of the key
and the request id, which is looked up by an index. A request that was charged and has no reply belongs to a process
that ended in between. If its charge was answered, asking again is free, because sessions and fits find stored
answers. If it was burned, the request says so: nobody pays twice without knowing.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from typing import Any

from discreet.core import Json, LedgerUnavailable, ParameterError, RequestConflict, digest
from discreet.ledger import REPLY, Ledger, answer_text, charging
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
                        self._by_name[body["question"]["analyst"]].append(body["seq"])
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
            found: dict[str, Any] = json.loads(answer_text(body))
            return found
        self._refuse_burned(ticket)
        return None

    def _refuse_burned(self, ticket: Ticket) -> None:
        """Refuse a request that was charged, if its charge is burned or runs elsewhere."""
        self.catch_up()
        charged = self._charges.get((ticket.holder.id, ticket.request or ""), [])
        if not charged:
            return
        self.ledger.store.burn_orphans()
        self.catch_up()
        ends = {seq: self._ends.get(seq) for seq in charged}
        if None in ends.values() and self._is_release(charged):
            raise LedgerUnavailable("this request is being run now, by a process that is alive: try again later")
        burned = [seq for seq, end in ends.items() if end == "burn"]
        if burned:
            raise RequestConflict(
                f"this request was charged (entry {burned[-1]}) and its run was interrupted: the charge stays; take a "
                "new request id to pay again"
            )

    def _is_release(self, charged: list[int]) -> bool:
        return any(self.ledger.entry(seq)["mode"] == "release" for seq in charged if seq not in self._ends)

    def keep(self, ticket: Ticket, what: str, reply: dict[str, Any]) -> None:
        """Keep a reply, durably. Without a request id it is kept for the history alone."""
        with self.ledger.store.reading() as state:
            facts_hash = state.current_facts
        if facts_hash is None:  # nothing was ever charged, and the ledger was made without its table
            return
        told: Json = {
            "name": _RECORD,
            "analyst": ticket.holder.name,
            "key": ticket.holder.id,
            "kind": ticket.kind,
            "what": what,
            "request": ticket.request,
        }
        text = json.dumps(reply, separators=(",", ":"), allow_nan=False)
        charging.say(self.ledger, charging.Saying(facts_hash, told, _meaning(ticket), REPLY, text), keep={})

    def history(self, name: str, *, most: int) -> list[dict[str, Any]]:
        """The last replies to an analyst, newest first."""
        self.catch_up()
        found = []
        for seq in reversed(self._by_name.get(name, [])[-most:]):
            body = self.ledger.entry(seq)
            told = {key: body["question"][key] for key in ("kind", "what", "request")}
            found.append({"entry": seq, "time": body["time"], **told, "reply": json.loads(answer_text(body))})
        return found


def _meaning(ticket: Ticket) -> str:
    return digest([REPLY, ticket.holder.id, ticket.request or ticket.who])
