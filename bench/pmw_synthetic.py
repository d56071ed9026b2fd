"""Train on synthetic rows, test on real ones: beside opendp's AIM and MST, on tables that no constant was chosen on.

    python -m bench.pmw_synthetic              prints markdown; AIM and MST take minutes
    python -m bench.pmw_synthetic fair 1       one table, one epsilon

KEEP_PEERS=1 measures ours again; what AIM and MST reached in the part there is stays, with its date.

Of each table four rows of five are released from, under add-remove and delta 1e-6, with the whole budget; as many
synthetic rows are drawn, a logistic regression without privacy is trained on them, and its accuracy is that on the
fifth rows. Ours is `session.synthetic(n, share=1)`, untouched: no table is named. AIM is told to answer all pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import peers
from bench.pmw_unseen import BINNED, DELTA, NEW, Codes, in_time, job_of, kept_peers, table_of

EPSILONS = ("0.1", "1", "3")
TARGETS = {
    **{name: BINNED[name] for name in NEW},
    "anes96": "vote",
    "attrition": "Attrition",
    "credit": "Status",
    "fair": "affairs",
}
FEATURES, RUNS = 6, 20


def section(names: Sequence[str] = tuple(TARGETS), epsilons: Sequence[str] = EPSILONS) -> list[str]:
    """The section of bench/RESULTS.md."""
    peer = peers.find("aim")
    title = "## Train on synthetic rows, test on real ones"
    if peer.missing:
        return ["", title, "", f"**{peer.missing}: it also has the rows**"]
    kept, when = kept_peers("pmw_synthetic")
    head = [
        "",
        title,
        "",
        "Accuracy on rows kept apart of a logistic regression that was trained on synthetic rows; in brackets trained",
        f"on the real ones, and the share of the commoner answer. Ours: mean of {RUNS} runs; AIM and MST (opendp",
        f"{peer.version}): one (-: not measured).{when} No constant was chosen on these tables; attrition and credit",
        "were in view when it was settled from how many rows on triples are measured, and those of voters when it was",
        "settled that Gaussian noise keeps a tree of pairs however few the rows.",
        "",
        "| table, target | epsilon | ours | AIM | MST |",
        "|---|---|---|---|---|",
    ]
    with threadpool_limits(1):
        cells = ((name, epsilon) for name in names for epsilon in epsilons)
        return [*head, *(_line(name, epsilon, kept.get((name, epsilon))) for name, epsilon in cells)]


def _line(name: str, epsilon: str, theirs: list[str] | None) -> str:
    print(f"{name}, epsilon {epsilon} ...", file=sys.stderr, flush=True)
    target, (everything, every_size) = TARGETS[name], table_of(name, 9)
    sizes = {column: every_size[column] for column in (*list(every_size)[:FEATURES], target)}
    codes = {column: everything[column] for column in sizes}
    kept = np.random.default_rng(7).permutation(len(codes[target])) % 5 == 0
    train, test = ({column: each[side] for column, each in codes.items()} for side in (~kept, kept))
    real = accuracy(train, test, sizes, target)
    usual = float(np.mean(test[target] == np.bincount(train[target]).argmax()))
    ours = np.mean([accuracy(drawn(train, sizes, epsilon), test, sizes, target) for _ in range(RUNS)])
    if theirs is None:
        jobs = [job_of(sizes, 2, epsilon, each, rows=len(train[target])) for each in ("AIM", "MST")]
        theirs = [_judged(in_time(train, job), test, sizes, target) for job in jobs]
    return f"| {name}, {target} ({real:.3f}, {usual:.3f}) | {epsilon} | {ours:.3f} | {' | '.join(theirs)} |"


def _judged(answer: dict[str, Any], test: Codes, sizes: dict[str, int], target: str) -> str:
    """The accuracy of a peer's rows, which may be all that was kept of them."""
    if not answer:
        return "-"
    found = answer.get("accuracy") or accuracy(_codes(answer["synthetic"]), test, sizes, target)
    return f"{float(found):.3f}"


def _codes(rows: dict[str, list[int]]) -> Codes:
    return {name: np.array(column, dtype=np.int64) for name, column in rows.items()}


def drawn(codes: Codes, sizes: dict[str, int], epsilon: str) -> Codes:
    """As many synthetic rows as there are, for the whole budget of one ledger."""
    domain = dp.Domain({column: dp.Category(levels=range(size)) for column, size in sizes.items()})
    rows = len(next(iter(codes.values())))
    people = dp.Table(codes, domain, neighbours="add-remove", size=rows)
    ledger = dp.Ledger.in_memory(dp.Budget(epsilon, DELTA), people, failure_share=0)
    frame = dp.Session(people, ledger, scopes=1).synthetic(rows, share=1)
    return {name: np.asarray(frame[name], dtype=np.int64) for name in sizes}


def accuracy(train: Codes, test: Codes, sizes: dict[str, int], target: str) -> float:
    from sklearn.linear_model import LogisticRegression

    if len(set(train[target].tolist())) < 2:
        return float(np.mean(test[target] == train[target][0]))
    features = [
        np.concatenate([np.eye(size)[side[name]] for name, size in sizes.items() if name != target], axis=1)
        for side in (train, test)
    ]
    model = LogisticRegression(max_iter=300).fit(features[0], train[target])
    return float(np.mean(model.predict(features[1]) == test[target]))


if __name__ == "__main__":
    print("\n".join(section(sys.argv[1:2] or tuple(TARGETS), sys.argv[2:] or EPSILONS)))
