"""The hypothesis of private multiplicative weights: answers and updates beside one read of the same bytes.

    python -m bench.pmw_cells             prints markdown
    python -m bench.pmw_cells factored    one part: dense or factored

The floor is the faster of numpy's sum and BLAS's dot product over as many float64 as there are cells, measured in turn
with what stands beside it. One thread, and its own processor time: the machine may be shared.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from discreet.answering.linear_query import Question, linear
from discreet.data import Category, Domain, Number
from discreet.hypothesis import Dense, Linear, tree_cells
from discreet.hypothesis.graphical_model import Factored
from discreet.query import Among, And, Between, Count, Equals, Histogram

POWERS = (6, 7, 8)
ROUNDS = {6: (15, 20), 7: (7, 5), 8: (4, 3)}  # how often in turn, and how many calls in a row each time
COLUMNS, VALUES, ANSWERS = 40, 6, 21


def section(parts: tuple[str, ...] = ("dense", "factored")) -> list[str]:
    """The section of bench/RESULTS.md."""
    made = {"dense": dense, "factored": factored}
    with threadpool_limits(1):
        return ["", "## The hypothesis", *(line for part in parts for line in made[part]())]


def dense() -> list[str]:
    lines = [
        "",
        "Dense, float64: one read of all weights, then answers and updates, medians, ns for each cell of the domain "
        "(not only of those asked about). An update multiplies the cells that the question is about; `every cell` has "
        "no exponent that is 0. After an update an answer also adds up what changed.",
        "",
        "| cells | what | its cells | read | answer | / read | update | / read | answer after an update | / read |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for power in POWERS:
        domain = _domain(power)
        sizes = {name: domain.column(name).size for name in domain.names}
        hypothesis, bytes_read = Dense(sizes), np.ones(10**power)
        for what, question in _questions(domain).items():
            print(f"dense, 10^{power}, {what} ...", file=sys.stderr, flush=True)
            lines.append(_dense_line(power, what, question, domain, hypothesis, bytes_read))
    return lines


def _domain(power: int) -> Domain:
    """A column of 100 values among columns of 10."""
    names = [f"c{i + 1}" for i in range(power - 2)]
    columns = {name: Category(*range(10)) for name in names}
    return Domain({"c1": columns["c1"], "age": Number(0, 99, step=1), **columns})


def _questions(domain: Domain) -> dict[str, Question]:
    last, middle = domain.names[-1], domain.names[len(domain.names) // 2]
    some = (Among(name, (1, 2, 4, 7, 9)) for name in ("c1", middle, last))
    return {
        "first column": Count(Equals("c1", 3)),
        "last column": Count(Equals(last, 3)),
        "three columns": Count(And(*some)),
        "a range": Count(Between("age", 20, 59)),
        "every cell, by three columns": Histogram(("c1", middle, last)),
    }


def _dense_line(
    power: int, what: str, question: Question, domain: Domain, hypothesis: Dense, bytes_read: np.ndarray
) -> str:
    form = linear(question, domain)
    assert form is not None
    ways = itertools.cycle(_ways(form))
    acts: dict[str, Callable[[], object]] = {
        "sum": bytes_read.sum,
        "dot": lambda: bytes_read @ bytes_read,
        "answer": lambda: hypothesis.mean(form),
        "update": lambda: hypothesis.multiply(form.scope, next(ways)),
        "answer after an update": lambda: hypothesis.mean(form),
    }
    times: dict[str, list[float]] = {name: [] for name in acts}
    rounds, calls = ROUNDS[power]
    for _ in range(rounds):
        for name in ("sum", "dot", "answer"):
            times[name] += [_seconds(acts[name]) for _ in range(calls)]
        for _ in range(calls):
            for name in ("update", "answer after an update"):
                times[name].append(_seconds(acts[name]))
    found = {name: statistics.median(each) * 1e9 / 10**power for name, each in times.items()}
    read, share = min(found["sum"], found["dot"]), np.count_nonzero(form.weight) / form.cells
    timed = (f"{found[name]:.2f} | {found[name] / read:.2f}" for name in list(acts)[2:])
    return f"| 10^{power} | {what} | {share:.1%} | {read:.2f} | {' | '.join(timed)} |"


def _ways(form: Linear) -> tuple[np.ndarray, np.ndarray]:
    """Exponents of an update up and of one down again, different in every cell of a histogram."""
    up = form.spread(np.linspace(0.05, 0.15, int(np.prod(form.outputs))))
    return up, -up


def factored() -> list[str]:
    sizes = {f"c{i + 1}": VALUES for i in range(COLUMNS)}
    names = list(sizes)
    shapes = {
        "pairs of neighbours": [(names[i], names[i + 1]) for i in range(COLUMNS - 1)],
        "triples of neighbours": [tuple(names[i : i + 3]) for i in range(COLUMNS - 2)],
        "every column with the first": [(names[0], name) for name in names[1:]],
        "a ring of pairs": [(names[i], names[(i + 1) % COLUMNS]) for i in range(COLUMNS)],
    }
    lines = [
        "",
        f"Factored, {COLUMNS} columns of {VALUES} values, {VALUES**COLUMNS:.1e} cells; medians of {ANSWERS}, ms. "
        "Calibration: the first answer after an update, all messages of the tree. Inside: a count about columns of "
        "one clique. Across: about two columns that no clique has both of.",
        "",
        "| scopes measured | largest table | first tree | calibration | inside | across, first | across, again | "
        "10,000 rows |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for what, scopes in shapes.items():
        print(f"factored, {what} ...", file=sys.stderr, flush=True)
        lines.append(_factored_line(what, sizes, scopes))
    return lines


def _factored_line(what: str, sizes: dict[str, int], scopes: list[tuple[str, ...]]) -> str:
    rng = np.random.default_rng(17)
    tables = {scope: rng.normal(size=[sizes[name] for name in scope]) for scope in scopes}
    built = _seconds(lambda: Factored(sizes, tables))
    hypothesis = Factored(sizes, tables)
    inside, first = scopes[len(scopes) // 2], list(sizes)[1]
    times: dict[str, list[float]] = {name: [] for name in ("calibration", "inside", "first", "again", "rows")}
    for repeat in range(ANSWERS):
        pair = (first, list(sizes)[-2 - repeat % (COLUMNS // 2)])
        hypothesis.multiply(inside, tables[inside])
        times["calibration"].append(_seconds(lambda: hypothesis.mean(_count(inside, sizes))))
        times["inside"].append(_seconds(lambda: hypothesis.mean(_count(inside, sizes))))
        across = _count(pair, sizes)
        times["first"].append(_seconds(lambda across=across: hypothesis.mean(across)))
        times["again"].append(_seconds(lambda across=across: hypothesis.mean(across)))
        times["rows"].append(_seconds(lambda repeat=repeat: hypothesis.sample(10_000, seed=repeat)))
    shown = " | ".join(f"{1e3 * statistics.median(each):.2f}" for each in times.values())
    return f"| {what} | {tree_cells(sizes, scopes):,} | {1e3 * built:.1f} | {shown} |"


def _count(scope: tuple[str, ...], sizes: dict[str, int]) -> Linear:
    shape = tuple(sizes[name] for name in scope)
    half = np.arange(np.prod(shape)) % 2
    return Linear(scope, shape, (), -half, 1.0 - half)


def _seconds(act: Callable[[], object]) -> float:
    start = time.thread_time()
    act()
    return time.thread_time() - start


if __name__ == "__main__":
    asked = tuple(sys.argv[1:])
    print("\n".join(section(asked) if asked else section()))
