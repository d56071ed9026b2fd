"""What GROUP BY costs, with and without WHERE: beside one count of the same bound, as many counts, and plain noise on
the histogram."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import discreet as dp
from discreet.answering import Calibration, SessionTerms
from discreet.answering.transcript import SEVERAL
from discreet.mechanisms import KINDS, NOISES
from discreet.query import EVERYTHING, Count, Equals, Histogram

PERSONS = 32_561
GROUPS = (2, 5, 20, 100)
ALPHA = Fraction(1, 250)
BETA = Fraction(1, 20)


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    return [
        "",
        "## What GROUP BY costs",
        "",
        f"The first question of a ledger of epsilon 1, {PERSONS:,} persons, every number within "
        f"{float(ALPHA) * PERSONS:.0f} persons with the bounds of a session (beta 0.05). Prices are in percent of the "
        "budget; plain noise is on every cell of the histogram, Gaussian, or Laplace where delta is 0, with the same "
        "part of beta and a union over the groups.",
        "",
        "| delta | relation | WHERE | groups | one count | GROUP BY | times one count | as many counts | plain noise |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            row
            for delta in ("1e-6", "0")
            for relation in ("replace-one", "add-remove")
            for some in (False, True)
            for row in _rows(delta, relation, some)
        ),
    ]


def _rows(delta: str, relation: str, some: bool) -> Iterator[str]:
    """some: of the rows that a condition on another column chooses."""
    columns = {**{f"g{k}": k for k in GROUPS}, "kind": 3}
    domain = dp.Domain({name: dp.Category(*map(str, range(k))) for name, k in columns.items()})
    rows = {name: np.arange(PERSONS) % k for name, k in columns.items()}
    where = Equals("kind", "0") if some else EVERYTHING
    table = dp.Table(
        {name: codes.astype(str) for name, codes in rows.items()}, domain, neighbours=relation, size=PERSONS
    )
    ledger = dp.Ledger.in_memory(dp.Budget(1, delta), table)
    shop = Calibration(table.facts, ledger, SessionTerms(ALPHA, BETA))
    for k in GROUPS:
        one = shop.price(shop.alone(Count(Equals(f"g{k}", "0")), 1))
        grouped = shop.price(shop.alone(Histogram(f"g{k}", where), 1))
        counts = sum(shop.price(shop.alone(Count(Equals(f"g{k}", "0")), 1 + place)) for place in range(k))
        reach = math.floor(float(ALPHA) * PERSONS - 0.5)
        noise = NOISES[shop.kind].scale_for(reach, shop.failure(1, SEVERAL) / k)
        plain = shop.price(KINDS[shop.kind](Histogram(f"g{k}", where), Fraction(noise).limit_denominator(2**20)))
        prices = (f"{100 * price / shop.cap:.3g}" for price in (one, grouped))
        rest = (f"{100 * price / shop.cap:.3g}" for price in (counts, plain))
        setting = f"{delta} | {relation} | {'yes' if some else 'no'} | {k}"
        yield f"| {setting} | {' | '.join(prices)} | {grouped / one:.2f} | {' | '.join(rest)} |"
