"""Rule learners: held-out accuracy beside what a user would take from diffprivlib, and speed on a million rows.

    python -m bench.pac              prints markdown
    python -m bench.pac accuracy     one part: accuracy, boxes or conjunctions

diffprivlib's figure is the best of a menu of trees, forests and naive Bayes, chosen on the test rows; ours is the default
of the classifier. The floor of a speed is one read of the same integers.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import pac_data, peers
from discreet.data import BitMatrix
from discreet.pac import choose
from discreet.pac.labels import Labels
from discreet.pac.methods import Method, alone
from discreet.pac.conditions import Literals

EPSILONS = (0.1, 1.0)
FITS, PEER_FITS = 20, 3
MENU = (
    *({"what": "tree", "depth": depth} for depth in (5, 8, 12)),
    *({"what": "forest", "trees": trees, "depth": depth} for trees, depth in ((10, 5), (10, 8), (1, 8), (30, 10))),
    {"what": "bayes"},
)
BUDGET = dp.Budget(1, 1e-6)
ROWS, SIDES, VARIABLES = 1_000_000, 100, 1_000


def section(parts: tuple[str, ...] = ("accuracy", "boxes", "conjunctions")) -> list[str]:
    """The section of bench/RESULTS.md."""
    made = {"accuracy": accuracy, "boxes": boxes, "conjunctions": conjunctions}
    with threadpool_limits(1):
        return ["", "## Learning rules", *(line for part in parts for line in made[part]())]


def accuracy() -> list[str]:
    peer = peers.find("diffprivlib")
    lines = [
        "",
        f"Held-out accuracy, {pac_data.ROWS:,} rows to learn from, replace-one; ours: delta 1e-6, mean (worst) of {FITS} "
        f"fits on fresh rows; diffprivlib: pure, the best of a menu of {len(MENU)}, mean of {PEER_FITS}.",
        *peers.named(peer),
        "",
        "| rows | epsilon | ours | method | promised error | ours, ms | diffprivlib | which |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, make in pac_data.SETTINGS.items():
        for epsilon in EPSILONS:
            print(f"{name}, epsilon {epsilon:g} ...", file=sys.stderr, flush=True)
            best, which = _peer(peer, make(0), epsilon)
            lines.append(f"| {name} | {epsilon:g} | {_ours(name, make, epsilon)} | {best} | {which} |")
    return lines


def _ours(name: str, make: Callable[[int], Any], epsilon: float) -> str:
    scores, seconds, fitted = [], [], None
    for seed in range(FITS):
        split = make(seed)
        start = time.perf_counter()
        fitted = _model(name, epsilon).fit(split.x, split.y)
        seconds.append(time.perf_counter() - start)
        scores.append(float(np.mean(fitted.predict(split.x_test) == split.y_test)))
    assert fitted is not None
    promised = "none" if fitted.error_bound_.alpha is None else f"{fitted.error_bound_.alpha:.3f}"
    mean = f"{statistics.mean(scores):.4f} ({min(scores):.4f})"
    return f"{mean} | {fitted.method_} | {promised} | {1e3 * statistics.median(seconds):.0f}"


def _model(name: str, epsilon: float) -> Any:
    common = {"epsilon": epsilon, "delta": 1e-6, "classes": (0, 1)}
    if name.startswith("box"):
        return dp.BoxClassifier(bounds=(0, 1), **common)
    return dp.ConjunctionClassifier(k=3, **common)


def _peer(peer: peers.Peer, split: Any, epsilon: float) -> tuple[str, str]:
    answers = peer.ask(split, [{**job, "epsilon": epsilon, "times": PEER_FITS} for job in MENU])
    scored = [(statistics.mean(each["scores"]), job) for each, job in zip(answers, MENU, strict=True) if each]
    if not scored:
        return "-", "-"
    best, job = max(scored, key=lambda pair: pair[0])
    return f"{best:.4f}", " ".join(str(value) for value in job.values())


def boxes() -> list[str]:
    """Every box learner on a million rows with a hundred columns."""
    rng = np.random.default_rng(14)
    domain = dp.Domain({f"x{i + 1}": dp.Number(0, 2**16 - 1, step=1) for i in range(SIDES)} | {"y": dp.Category(0, 1)})
    columns = {f"x{i + 1}": rng.integers(0, 2**16, ROWS) for i in range(SIDES)}
    inside = np.ones(ROWS, dtype=bool)
    for codes in columns.values():
        inside &= (codes > 300) & (codes < 2**16 - 300)
    table = dp.Table({**columns, "y": inside.astype(np.int64)}, domain, name="cube")
    names, labels = tuple(columns), Labels("y", 1)
    del columns
    floor = _best_of(3, lambda: table.exact_sum(lambda batch: np.array([batch.stored(name).max() for name in names])))
    found = choose.box_methods(
        names, labels, facts=table.facts, beta=Fraction(1, 20), spend=alone(BUDGET, facts=table.facts)
    )
    lines = [
        "",
        f"Boxes, {ROWS:,} rows in memory, {SIDES} columns of 2^16 values, replace-one, {BUDGET}; reading all codes once: "
        f"{floor:.2f} s.",
        "",
        "| method | seconds | ns a row and column | times the read | promised error | true error |",
        "|---|---|---|---|---|---|",
    ]
    for method in found:
        if not isinstance(method, Method) or method.name == "exhaustive":
            continue
        print(f"boxes by {method.name} ...", file=sys.stderr, flush=True)
        offer = method.offer(ROWS)
        seconds, (low, high) = _released(offer.mechanism, table)
        error = _box_error(table, names, low, high)
        promised = "none" if offer.promise.alpha is None else f"{offer.promise.alpha:.3f}"
        each = 1e9 * seconds / ROWS / SIDES
        lines.append(
            f"| {method.name} | {seconds:.1f} | {each:.1f} | {seconds / floor:.0f} | {promised} | {error:.4f} |"
        )
    return lines


def _box_error(table: dp.Table, names: tuple[str, ...], low: Any, high: Any) -> float:
    """The true share of mistakes: the rows are made up here."""

    def wrong(batch: Any) -> Any:
        kept = np.ones(batch.rows, dtype=bool)
        for name, first, last in zip(names, low, high, strict=True):
            kept &= (batch.stored(name) >= first) & (batch.stored(name) <= last)
        return np.array([np.count_nonzero(kept != (batch.stored("y") == 1))])

    return float(table.exact_sum(wrong)[0]) / ROWS


def conjunctions() -> list[str]:
    """Every conjunction learner on a million rows with a thousand variables, packed."""
    rows = ROWS // 64 * 64
    words, positive = pac_data.packed_bits(rows, VARIABLES)
    data = BitMatrix.of_words(words, positive, rows=rows, target=dp.Category(False, True))
    floor = _best_of(3, lambda: np.bitwise_xor.reduce(words, axis=None))
    literals, labels = Literals("x"), Labels("y", True)
    one_pass = _best_of(3, lambda: data.exact_sum(lambda batch: _pass(literals, labels, batch)))
    lines = [
        "",
        f"Conjunctions, {rows:,} rows of {VARIABLES:,} variables, packed ({words.nbytes / 2**20:.0f} MB), replace-one, "
        f"{BUDGET}; reading all words once: {floor * 1e3:.0f} ms; one count of all literals among positives and "
        f"negatives: {one_pass * 1e3:.0f} ms, {1e9 * one_pass / rows / (2 * VARIABLES):.4f} ns a row and literal, "
        f"{one_pass / floor:.1f} times the read.",
        "",
        "| method, k | seconds | times the read | promised error | rule |",
        "|---|---|---|---|---|",
    ]
    for k in (1, 3):
        found = choose.conjunction_methods(
            literals, labels, k, facts=data.facts, beta=Fraction(1, 20), spend=alone(BUDGET, facts=data.facts)
        )
        for method in found:
            if not isinstance(method, Method) or (method.name == "exact") != (k == 1):
                continue  # three of a thousand are 1.3e9 conjunctions: seen on 10^4 rows instead
            print(f"conjunctions by {method.name} ...", file=sys.stderr, flush=True)
            offer = method.offer(rows)
            seconds, numbers = _released(offer.mechanism, data)
            promised = "none" if offer.promise.alpha is None else f"{offer.promise.alpha:.3f}"
            said = " and ".join(literals.said(data.facts.domain, number) for number in sorted(set(numbers))[:6])
            more = f" and {len(set(numbers)) - 6} more" if len(set(numbers)) > 6 else ""
            lines.append(
                f"| {method.name}, {k} | {seconds:.2f} | {seconds / floor:.0f} | {promised} | {said}{more} |"
            )
    return lines


def _pass(literals: Literals, labels: Labels, batch: Any) -> Any:
    positive = labels.mask(batch)
    return literals.falsified(batch, (~positive, positive))


def _released(mechanism: Any, data: Any) -> tuple[float, Any]:
    """Seconds of one release, charge included, and what it released."""
    ledger = dp.Ledger.in_memory(dp.Budget(2, 1e-5), data.identity)
    start = time.perf_counter()
    got = dp.release(mechanism, data, ledger=ledger)
    return time.perf_counter() - start, got.value


def _best_of(times: int, act: Callable[[], object]) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    asked = tuple(sys.argv[1:])
    print("\n".join(section(asked) if asked else section()))
