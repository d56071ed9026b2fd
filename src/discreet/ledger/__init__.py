"""The ledger: an append-only, hash-chained, durable record of every charge against one table of people.

    ledger = Ledger.create("people.ledger", Budget(1, 1e-6), table)     # or Ledger.open, Ledger.in_memory
    ledger = Ledger.open("postgresql://ledgers.example/discreet?ledger=people")
    ledger.spent(), ledger.remaining(), ledger.admits(mechanism)

Creating a ledger fixes the relation, one Renyi order, the caps of two books (Renyi at that order, pure epsilon) and a
cap on summed failures. A charge is admitted if after adding it at least one book is within its cap and the failures are
within theirs; mechanisms may be chosen after seeing earlier answers (docs/proofs/filter.md). The promise to the people
in the table is the budget, whatever was asked and by whom.

A ledger is looked at through ledger.py and charged by `release` and `converse`, through charging.py. The order is:
check what is public, charge, make the charge durable, move the high-water mark, run, store the answer, return it. There
are no refunds. The parts:

    ledger.py     Ledger: making, opening, looking        charging.py      charges, answers, turns of conversations
    opening.py    what opening fixes                      answer_codec.py  answers as text
    state.py      what the entries add up to
    store.py      transactions: the rules that all places of entries share
    place.py      what a ledger needs of its environment; there are two, a file and a database
    local.py      the parts on this machine: session lock, secrets
    sqlite.py     entries in a file                       postgres.py      entries in a database, for several processes
    address.py    where a ledger and its mark are         mark.py          how far the ledger had come, and whose turn
    process.py    which process still runs                sidecar.py       which ledger a file of rows belongs to
    acting.py     in whose name charges are made          durable.py       files that survive a power cut, and locks

The table's identity is declared (name, relation, unit) and never computed from rows: a fingerprint of the rows would be
a membership test. For tables read from a file the sidecar prevents a second ledger; for frames in memory no program
can know.
"""

from discreet.ledger.acting import Acting, acting_as
from discreet.ledger.address import Address, place_of, state_directory
from discreet.ledger.answer_codec import decode, encode
from discreet.ledger.ledger import Ledger
from discreet.ledger.opening import LONGEST_MEMO, check_table, storable_text
from discreet.ledger.sidecar import sidecar_path
from discreet.ledger.state import REPLY, Body, answer_text, large, price_from, text_hash
