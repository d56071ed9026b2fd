"""Stored models: the same fit through the same ledger, asked again by another process, comes back free.

A process can die, or its output can be lost, after the answer of a charge was stored. So every release of an estimator
about a table has a request id in the ledger:

    the digest of  what is asked (the estimator and the parameters that decide its problem),
                   what it is about (target, features),
                   the facts of the table, with their edition,
                   the version of discreet, and k

where k is how many times this `Ledger` object was asked for the same. A program that is run again asks in the same
order and gets the same models; the second fit of one program is another one, and is paid for. A run that was
interrupted has no answer: its id is passed over.

Arrays have no request ids: nothing tells the rows of one array from those of another (the folds of a cross-validation
have the same size and declaration). Nor has anything that holds somebody's function. A ledger in memory ends with its
process, so it has nobody to ask again.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core import Json, Share, code_version, digest, record
from discreet.data import Facts
from discreet.ledger import Ledger, charging
from discreet.ledger.charging import Stored
from discreet.mechanisms import Mechanism

_PREFIX = "fit:"


class Untold(Exception):
    """A value that cannot be told from others by what is public about it."""


def told(value: Any) -> Json:
    """A public value as JSON, equal for equal values; Untold if it holds a function or anything unknown."""
    match value:
        case None | bool() | int() | str() | Fraction():
            return record(value)
        case float() | np.generic():
            return f"{type(value).__name__} {value!r}"
        case Share(part=part):
            return ["share", record(part)]
        case list() | tuple():
            return [told(each) for each in value]
        case np.ndarray():
            return told(value.tolist())
        case Mapping():
            return [[told(key), told(each)] for key, each in value.items()]
    if dataclasses.is_dataclass(value) and not hasattr(value, "stated_record") and hasattr(type(value), "NAME"):
        fields = {each.name: told(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {"name": type(value).NAME, "fields": fields}  # type: ignore[union-attr]
    raise Untold


@dataclass(slots=True)
class _Order:
    """What a ledger object was asked so far. fresh: whatever is stored is passed over."""

    asked: Counter[str] = field(default_factory=Counter)
    running: set[str] = field(default_factory=set)
    fresh: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_ORDERS: weakref.WeakKeyDictionary[Ledger, _Order] = weakref.WeakKeyDictionary()
_ORDERS_LOCK = threading.Lock()


def _order(ledger: Ledger) -> _Order:
    with _ORDERS_LOCK:
        return _ORDERS.setdefault(ledger, _Order())


def forget(ledger: Ledger) -> None:
    """From now on fits through this ledger object count from the start, as those of a new program."""
    with _ORDERS_LOCK:
        _ORDERS.pop(ledger, None)


def pay_again(ledger: Ledger) -> None:
    """From now on every fit through this ledger object is a new one: nothing stored is given back."""
    _order(ledger).fresh = True


@dataclass(frozen=True, slots=True)
class Request:
    """What one fit asks of its ledger. `base` is its digest without k."""

    ledger: Ledger
    base: str

    @staticmethod
    def of(ledger: Ledger | None, problem: Any, about: Any, facts: Facts) -> Request | None:
        """The request of a fit; None if it cannot be told from others, or if nobody could ask again."""
        if ledger is None or ledger.path is None or problem is None or about is None:
            return None
        try:
            asked = [told(problem), told(about)]
        except Untold:
            return None
        return Request(ledger, digest([*asked, ledger.recorded(facts)[1], code_version()]))

    def fresh(self) -> bool:
        """Whether nobody has charged the next fit before."""
        return self.ledger.store.charge_of(self._id(_order(self.ledger).asked[self.base])) is None

    def stored(self) -> Stored | None:
        """The answered charge that the next fit gets back, if there is one."""
        for _, found in self._next():
            return found if found is not None and found.answer is not None else None
        return None

    @contextmanager
    def taken(self, mechanism: Mechanism) -> Iterator[str]:
        """The id for releasing this mechanism: of its stored charge, or a new one. The fit counts if all goes well."""
        order, same = _order(self.ledger), digest(record(mechanism))
        with order.lock:
            place, request = next(
                (place, self._id(place))
                for place, found in self._next()
                if self._id(place) not in order.running and (found is None or digest(found.mechanism) == same)
            )
            order.running.add(request)
        try:
            yield request
            order.asked[self.base] = max(order.asked[self.base], place + 1)
        finally:
            order.running.discard(request)

    def _next(self) -> Iterator[tuple[int, Stored | None]]:
        """The places from this fit's on, each with its charge; without those that are burned or shall not be used."""
        order = _order(self.ledger)
        place = order.asked[self.base]
        while True:
            found = charging.stored(self.ledger, self._id(place))
            if found is None or not (found.burned or order.fresh):
                yield place, found
            place += 1

    def _id(self, place: int) -> str:
        return _PREFIX + digest([self.base, place])
