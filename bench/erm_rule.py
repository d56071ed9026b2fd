"""The data on which the public rule for the number of steps and the step size was fixed, before any comparison.

    python -m bench.erm_rule      prints the accuracy of our logistic regression on each

A rule tuned on the data of a comparison would be a secret look at them. None of these appears in bench/erm_accuracy.py:
digits (odd or even; above 4), wine (class 1 or another), iris (class 2 or 1), and synthetic rows whose features shrink
like i^-decay and whose labels are logistic in one direction. The cap of linear regression was fixed on made-up numbers
below, after a first comparison had shown the plain squared loss to be too noisy.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np
from sklearn import linear_model
from sklearn.datasets import load_digits, load_iris, load_wine

import discreet as dp
from bench.erm_accuracy import our_logistic, score
from bench.erm_data import Array, Floats, Split, standard

EPSILONS = (0.1, 1.0, 8.0)
SPLITS, FITS = 4, 4


def problems() -> Iterator[tuple[str, Floats, Array]]:
    """(name, features, labels 0 or 1)."""
    digits, digit = load_digits(return_X_y=True)
    yield "digits: odd or even", digits, digit % 2
    yield "digits: above 4", digits, (digit > 4).astype(np.int64)
    wine, cultivar = load_wine(return_X_y=True)
    yield "wine: class 1", wine, (cultivar == 1).astype(np.int64)
    iris, kind = load_iris(return_X_y=True)
    yield "iris: class 2 or 1", iris[kind > 0], (kind[kind > 0] == 2).astype(np.int64)
    for seed, (n, d, decay) in enumerate(
        ((570, 30, 1.0), (570, 30, 0.0), (3000, 10, 0.5), (14000, 50, 0.5), (1400, 100, 1.0)), 1
    ):
        yield f"synthetic, decay {decay:g}", *synth(n, d, seed, decay)


def synth(n: int, d: int, seed: int, decay: float, margin: float = 10.0) -> tuple[Floats, Array]:
    """Normal features, deviations i^-decay in a random basis; P(y = 1) = sigmoid(margin / 3 * z + 0.3), z standard."""
    rng = np.random.default_rng(seed)
    size = np.arange(1, d + 1.0) ** -decay
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    x = rng.normal(size=(n, d)) * size @ basis
    z = x @ (basis.T @ (rng.normal(size=d) * np.sqrt(size)))
    y = rng.random(n) < 1 / (1 + np.exp(-margin / 3 * z / z.std() - 0.3))
    return x, y.astype(np.int64)


def split(x: Floats, y: Array, seed: int) -> Split:
    """Seven tenths to learn from, standardised as in the comparison."""
    order = np.random.default_rng(seed).permutation(len(x))
    train, test = np.split(order, [int(0.7 * len(x))])
    return Split(*_pair(x, y, train, test))


def _pair(x: Floats, y: Array, train: Array, test: Array) -> tuple[Floats, Array, Floats, Array]:
    learnt, judged = standard(x[train], x[test])
    return learnt, y[train], judged, y[test]


def accuracy(splits: list[Split], epsilon: float) -> float:
    """Of our logistic regression (add-remove, delta = n^-1.1) on the test rows, mean over splits and fits."""
    return statistics.mean(
        score(our_logistic(each, epsilon, each.delta, "add-remove").fit(each.x, each.y), each)
        for each in splits
        for _ in range(FITS)
    )


def made_up_numbers(n: int, d: int, seed: int, decay: float, noise: float) -> tuple[Floats, Floats]:
    """Features in [-1, 1] of deviations i^-decay / 3, a linear target of deviation 1/4 plus noise, in [-1, 1]."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(n, d)) * np.arange(1, d + 1.0) ** -decay / 3, -1, 1)
    z = x @ rng.normal(size=d)
    return x, np.clip((z / z.std() + noise * rng.normal(size=n)) / 4, -1, 1)


def determination(x: Floats, y: Floats, epsilon: float, huber: float | str | None) -> float:
    """R squared of our linear regression on the last fifth of the rows, median over fits."""
    cut, norm = int(0.8 * len(x)), float(np.sqrt(x.shape[1]))
    model = dp.LinearRegression(epsilon=epsilon, delta=1e-6, row_norm=norm, target_bound=1, huber=huber)
    return statistics.median(model.fit(x[:cut], y[:cut]).score(x[cut:], y[cut:]) for _ in range(FITS))


def numbers() -> None:
    """On which the cap of linear regression was fixed: half the target's bound, and a radius of 3 bounds."""
    print("\n| rows | features | cap | epsilon 0.5 | 1 | 2 |\n|---|---|---|---|---|---|")
    for n, d, seed, decay, noise in ((20_000, 10, 1, 0.5, 0.5), (2_000, 5, 2, 0.0, 1.0), (400, 10, 3, 0.5, 0.7)):
        x, y = made_up_numbers(n, d, seed, decay, noise)
        for huber in ("auto", None):
            found = [f"{determination(x, y, epsilon, huber):.3f}" for epsilon in (0.5, 1.0, 2.0)]
            print(f"| {n:,} | {d} | {huber or 'none'} | {' | '.join(found)} |", flush=True)


def main() -> None:
    print("| data | rows | features | not private |" + "".join(f" epsilon {epsilon:g} |" for epsilon in EPSILONS))
    print("|---" * (4 + len(EPSILONS)) + "|")
    for name, x, y in problems():
        splits = [split(x, y, seed) for seed in range(SPLITS)]
        plain = linear_model.LogisticRegression()
        ceiling = statistics.mean(plain.fit(each.x, each.y).score(each.x_test, each.y_test) for each in splits)
        found = [f"{accuracy(splits, epsilon):.3f}" for epsilon in EPSILONS]
        rows, features = splits[0].x.shape
        print(f"| {name} | {rows:,} | {features} | {ceiling:.3f} | {' | '.join(found)} |", flush=True)
    numbers()


if __name__ == "__main__":
    main()
