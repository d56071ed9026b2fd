"""What was spent under each allowance of a ledger, and what is left of it: for its owner's eye."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.funds import NANO, Books, Price, remaining_books, spent_books
from discreet.guarantee import renyi_to_epsilon
from discreet.ledger.ledger import Ledger
from discreet.ledger.state import Header


@dataclass(frozen=True, slots=True)
class AllowanceUse:
    """A name's share of the budget.

    part     what was spent under the name, as a part of the whole budget; None if it has no price in the book that
             decides
    left     what may still be spent under the name, as a part of the whole budget: no more than the ledger has left
    epsilon  what the ledger's books prove of the releases under this name together, at the ledger's delta: at most
             this. One order of the Renyi book proves much for much that was spent, and little for little. None: nothing
    """

    name: str
    share: Fraction
    part: Fraction | None
    left: Fraction
    epsilon: float | None

    @property
    def at_most(self) -> str:
        """The epsilon with three digits, rounded up; empty if there is none, or nothing was spent."""
        if not self.epsilon:
            return ""
        unit = 10.0 ** (math.floor(math.log10(self.epsilon)) - 2)
        return f"{math.ceil(self.epsilon / unit * (1 - 1e-12)) * unit:.3g}"


def allowances(ledger: Ledger) -> list[AllowanceUse]:
    """Every allowance, in the order in which they were made."""
    with ledger.store.reading() as state:
        header, spent, named = state.opened, state.spent, dict(state.allowances)
    whole = spent_books(spent, header.caps, header.order)
    return [
        AllowanceUse(
            name,
            each.share,
            whole.part_of(each.spent),
            _left(spent, each.share, each.spent, header),
            _epsilon(each.spent, header),
        )
        for name, each in named.items()
    ]


def _left(spent: Price, share: Fraction, spent_in_name: Price, header: Header) -> Fraction:
    """The part of the whole budget that a charge in this name may still take, in the book that decides."""
    whole = remaining_books(spent, header.caps, header.order, None)
    found: Books = whole.at_most(remaining_books(spent_in_name, header.caps.share(share), header.order, None))
    return max(Fraction(0), 1 - found.used())


def _epsilon(spent: Price, header: Header) -> float | None:
    """The least epsilon that either book proves, at the ledger's delta."""
    found = [] if spent.pure is None else [float(Fraction(spent.pure, NANO))]
    if spent.renyi and header.order is not None:
        delta = header.budget.delta * (1 - header.failure_share)
        found.append(renyi_to_epsilon(float(header.order), float(Fraction(spent.renyi, NANO)), delta))
    return min(found, default=None)
