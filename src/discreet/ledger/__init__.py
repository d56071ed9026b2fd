"""The ledger: an append-only, hash-chained, durable record of every charge against one table of people.

    ledger = Ledger.create("people.ledger", Budget(1, 1e-6), table)     # or Ledger.open, Ledger.in_memory
    ledger.spent(), ledger.remaining(), ledger.admits(mechanism)

Creating a ledger fixes for good the relation, one Renyi order, the caps of two books (Renyi at that order, pure
epsilon) and a cap on summed failures. A charge is admitted if after adding it at least one book is within its cap and
the failures are within theirs; mechanisms may be chosen after seeing earlier answers (docs/proofs/filter.md). The
promise to the people in the table is the budget, whatever was asked and by whom.

A ledger is looked at through book.py and charged by `release` and `converse`, through charging.py. The order is: check
what is public, charge, make the charge durable, move the high-water mark, run, store the answer, return it. There are
no refunds. The parts:

    book.py       Ledger: making, opening, looking        charging.py      charges, answers, turns of conversations
    opening.py    what opening fixes for good             price.py         integers in two books
    state.py      what the entries add up to              allowances.py    what was spent in each name
    store.py      transactions: the rules that all places of entries share
    place.py      what a ledger needs of the outside; the files below are one such outside, parts.py puts it together
    sqlite.py     where entries lie                       mark.py          how far the ledger had come, and whose turn
    process.py    who is still running                    secret_file.py   open conversations' thresholds
    asking.py     one session at a time                   sidecar.py       which ledger a file of rows belongs to
    durable.py    files that survive a power cut          answers.py       answers as text

The table's identity is declared (name, relation, unit) and never computed from rows: a fingerprint of the rows would be
a membership test. For tables read from a file the sidecar prevents a second ledger; for frames in memory nobody can
know.
"""

from discreet.ledger.ledger import Ledger
from discreet.ledger.state import Body, answer_text, large, price_from, text_hash

__all__ = ["Body", "Ledger", "answer_text", "large", "price_from", "text_hash"]
