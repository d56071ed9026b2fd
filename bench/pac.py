"""Rule learners: held-out accuracy beside what a user would take from diffprivlib, and speed on a million rows.

    python -m bench.pac accuracy     prints markdown; one of: accuracy, boxes, conjunctions, parquet

diffprivlib's figure is the best of a menu of trees, forests and naive Bayes, chosen on the test rows; ours is the
default of the classifier. The floor of a speed is one read of the same integers.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import pac_data, peers
from bench.erm_growth import Found, apart, measured
from discreet.data import BitMatrix
from discreet.funds import Funds
from discreet.method import Method
from discreet.pac import Labels, Literals, box_methods, conjunction_methods
from discreet.pac.conjunctions import estimate

EPSILONS = (0.1, 1.0)
FITS, PEER_FITS = 20, 3
MENU = (
    *({"what": "tree", "depth": depth} for depth in (5, 8, 12)),
    *({"what": "forest", "trees": trees, "depth": depth} for trees, depth in ((10, 5), (10, 8), (1, 8), (30, 10))),
    {"what": "bayes"},
)
BUDGET = dp.Budget(1, 1e-6)
ROWS, SIDES, VARIABLES = 1_000_000, 100, 1_000


def section(name: str) -> list[str]:
    """One part of bench/RESULTS.md."""
    parts = {"accuracy": accuracy, "boxes": boxes, "conjunctions": conjunctions, "parquet": parquet}
    with threadpool_limits(1):
        return parts[name]()


def accuracy() -> list[str]:
    peer = peers.find("diffprivlib")
    lines = [
        "## Learning rules: accuracy",
        "",
        f"Held-out accuracy, {pac_data.ROWS:,} rows to learn from, replace-one; ours: delta 1e-6, mean (worst) of "
        f"{FITS} fits on fresh rows; diffprivlib: pure, the best of a menu of {len(MENU)}, mean of {PEER_FITS}.",
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
    promised = "none" if fitted.promise_.bound is None else f"{fitted.promise_.bound:.3f}"
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
    found = box_methods(names, labels, facts=table.facts, beta=Fraction(1, 20), funds=Funds.of(BUDGET))
    lines = [
        "## Learning rules: boxes, a million rows",
        "",
        f"Boxes, {ROWS:,} rows in memory, {SIDES} columns of 2^16 values, replace-one, {BUDGET}; reading all codes "
        f"once: {floor:.2f} s.",
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
        promised = "none" if offer.promise.bound is None else f"{offer.promise.bound:.3f}"
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
        "## Learning rules: conjunctions, a million rows",
        "",
        f"Conjunctions, {rows:,} rows of {VARIABLES:,} variables, packed ({words.nbytes / 2**20:.0f} MB), replace-one, "
        f"{BUDGET}; reading all words once: {floor * 1e3:.0f} ms; one count of all literals among positives and "
        f"negatives: {one_pass * 1e3:.0f} ms, {1e9 * one_pass / rows / (2 * VARIABLES):.4f} ns a row and literal, "
        f"{one_pass / floor:.1f} times the read.",
        "",
        "| method, k | seconds | times the read | promised error | rule |",
        "|---|---|---|---|---|",
    ]
    for method in _conjunction_methods(literals, labels, 3, data):
        if method.name != "exact":
            lines.append(_conjunction_line(method, 3, literals, data, floor))
    few, positive = pac_data.packed_bits(10_048, VARIABLES)
    data = BitMatrix.of_words(few, positive, rows=10_048, target=dp.Category(False, True))
    (exact,) = (each for each in _conjunction_methods(literals, labels, 2, data) if each.name == "exact")
    floor = _best_of(3, lambda: np.bitwise_xor.reduce(few, axis=None))
    lines.append(_conjunction_line(exact, 2, literals, data, floor).replace("exact, 2", "exact, 2, on 10,048 rows"))
    guesses = [f"k = {k}: {estimate(VARIABLES, k, data.facts)}" for k in (2, 3)]
    return [
        *lines,
        "",
        f"What going through all conjunctions of those 10,048 rows says before it starts: {'; '.join(guesses)}.",
    ]


def _conjunction_methods(literals: Literals, labels: Labels, k: int, data: BitMatrix) -> list[Method]:
    funds = Funds.of(BUDGET)
    found = conjunction_methods(literals, labels, k, facts=data.facts, beta=Fraction(1, 20), funds=funds)
    return [each for each in found if isinstance(each, Method)]


def _conjunction_line(method: Method, k: int, literals: Literals, data: BitMatrix, floor: float) -> str:
    print(f"conjunctions by {method.name} ...", file=sys.stderr, flush=True)
    offer = method.offer(data.facts.size)
    seconds, numbers = _released(offer.mechanism, data)
    promised = "none" if offer.promise.bound is None else f"{offer.promise.bound:.3f}"
    said = " and ".join(literals.in_words(data.facts.domain, number) for number in sorted(set(numbers))[:6])
    more = f" and {len(set(numbers)) - 6} more" if len(set(numbers)) > 6 else ""
    return f"| {method.name}, {k} | {seconds:.2f} | {seconds / floor:.0f} | {promised} | {said}{more} |"


STREAMED, WIDTH = 10_000_000, 6
_STREAM_BLOCK = 500_000


def parquet() -> list[str]:
    """Boxes and rules from a file of ten million rows, each in a process of its own."""
    lines = [
        "## Learning rules: from a file",
        "",
        f"From a Parquet file of {STREAMED:,} rows, {WIDTH} numbers and a label, {BUDGET}:",
        "",
        "| learner | seconds | peak memory, MB (before the fit) | true error |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        apart(_write_rows, path)
        size = Path(path).stat().st_size / 2**20
        for name in ("faces", "zcdp", "self-deleting"):
            print(f"{name} from Parquet ...", file=sys.stderr, flush=True)
            (seconds, peak, before), error = apart(_streamed, path, name)
            lines.append(f"| {name} | {seconds:.0f} | {peak:,.0f} ({before:,.0f}) | {error:.5f} |")
    return [
        *lines,
        "",
        f"The file is {size:,.0f} MB; its numbers are {STREAMED * (WIDTH * 8 + 1) / 2**20:,.0f} MB.",
    ]


def _write_rows(path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(15)
    names = [f"x{i + 1}" for i in range(WIDTH)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(STREAMED // _STREAM_BLOCK):
            x = rng.random((_STREAM_BLOCK, WIDTH)).round(3)
            y = ((x[:, 0] >= 0.1) & (x[:, 1] <= 0.8) & (x[:, 2] >= 0.25)).astype(np.int8)
            writer.write_table(pa.table({**dict(zip(names, x.T, strict=True)), "y": y}, schema=schema))


def _streamed(path: str, method: str) -> tuple[Found, float]:
    names = [f"x{i + 1}" for i in range(WIDTH)]
    domain = dp.Domain({**{name: dp.Number(0, 1, step="0.001") for name in names}, "y": dp.Category(0, 1)})
    table = dp.ParquetTable(path, domain)
    ledger = dp.Ledger.in_memory(dp.Budget(2, 1e-5), table)
    common = {"epsilon": 1, "delta": 1e-6, "ledger": ledger, "method": method}
    learner = dp.RuleClassifier(k=3, **common) if method == "self-deleting" else dp.BoxClassifier(**common)
    found = measured(lambda: learner.fit(table, "y"))
    rng = np.random.default_rng(16)
    x = rng.random((200_000, WIDTH)).round(3)
    truth = (x[:, 0] >= 0.1) & (x[:, 1] <= 0.8) & (x[:, 2] >= 0.25)
    guessed = learner.predict(dict(zip(names, x.T, strict=True)))
    return found, float(np.mean(guessed != truth))


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
    print("\n".join(section(sys.argv[1])))
