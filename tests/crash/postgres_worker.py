"""A client that goes on whatever happens to the server: python -m tests.crash.postgres_worker ADDRESS NOTES STOP.

It releases under request ids and holds conversations until the file STOP is there. After an error it asks the same
request again; a request that was interrupted after its charge is given up, and the next one is paid. Every answer that
it gets is written down, unbuffered.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from discreet.errors import ConversationOver, LedgerUnavailable, ParameterError
from discreet.ledger import Ledger
from discreet.release import converse, release
from tests.e2e.ledger_worker import PRICE, note
from tests.ledger_doubles import Guess, Pure, people


def opened(address: str) -> Ledger:
    while True:
        try:
            return Ledger.open(address)
        except LedgerUnavailable:
            time.sleep(0.05)


def work(address: str, received: int, stop: str) -> None:
    ledger, table, number = opened(address), people(), 0
    while not os.path.exists(stop):
        request = f"{os.getpid()} {number}"
        try:
            got = release(Pure(PRICE), table, ledger=ledger, request=request)
            note(received, kind="release", entry=got.entry, value=got.value, request=request)
            number += 1
            if number % 3 == 0:
                talk(ledger, table, received)
        except LedgerUnavailable:
            time.sleep(0.02)
        except ParameterError:  # charged, and interrupted before there was an answer
            number += 1


def talk(ledger: Ledger, table: Any, received: int) -> None:
    open_now = converse(Guess(bound=3, epsilon=PRICE), table, ledger=ledger)
    for guess in range(3):
        try:
            note(received, kind="turn", entry=open_now.charge, value=open_now.ask(guess))
        except ConversationOver:
            return


if __name__ == "__main__":
    work(sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), sys.argv[3])
