"""The greedy learners at exactly the sizes that they ask for: they lose no more often than they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.data import BitMatrix, Bits, Category, Domain, Facts, Number, Table
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.pac.greedy import GreedySelection, methods, practical
from discreet.pac.rules import Conjunction, Labels, Literals, Thresholds
from discreet.rng import SeededRng
from tests.pac_game import assert_honest, failures, mistakes

BITS, LABELS = Literals("x"), Labels("y", 1)
BETA = Fraction(1, 5)
FAMILIES = ["independent", "correlated", "clustered", "rare"]


def planted(family: str, n: int, d: int, k: int, seed: int, kind: str) -> BitMatrix:
    """Rows labelled by k literals.

    independent  fair bits                          correlated  all bits lean on one hidden number
    clustered    half of the rows are copies of     rare        nearly every row satisfies every target literal, so
                 a few positive ones                            negative rows are few, and each falsifies one literal
    """
    rng = np.random.default_rng(seed)
    target, signs = rng.choice(d, k, replace=False), rng.random(k) < 0.5
    bits = rng.random((n, d)) < 0.5
    if family == "correlated":
        bits = rng.normal(size=(n, 1)) + rng.normal(size=(n, d)) > 0
        signs[:] = signs[0]
    if family == "clustered":
        centres = rng.random((3, d)) < 0.5
        centres[:, target] = signs
        bits[: n // 2] = centres[rng.integers(3, size=n // 2)]
    if family == "rare":
        bits[:, target] = signs
        wrong = rng.random(n) < 0.4
        spoiled = rng.integers(k, size=n)
        bits[np.arange(n)[wrong], target[spoiled[wrong]]] ^= True
    labels = (bits[:, target] == signs).all(axis=1)
    return BitMatrix(bits, labels.astype(int), target=Category(0, 1), neighbours=kind, size=n)


def played(
    method: str, family: str, d: int, k: int, alpha: float, kind: str, budget: Budget, runs: int, part=1.0
) -> int:
    """Lost games at the size that the method asks for (or a part of it)."""
    asked = Facts(Domain(x=Bits(d), y=Category(0, 1)), Neighbours(kind), None)
    funds = Funds.of(budget)
    n = max(1, int(part * methods(BITS, LABELS, k, facts=asked, beta=BETA, funds=funds).named(method).needed(alpha)))
    data = planted(family, n, d, k, 7 * d + k, kind)
    found = methods(BITS, LABELS, k, facts=data.facts, beta=BETA, funds=funds)
    mechanism = found.named(method).mechanism(alpha)
    return failures(mechanism, data, lambda got: Conjunction(BITS, got), alpha, runs, SeededRng(k))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["greedy-basic", "greedy", "self-deleting"])
def test_at_the_stated_size_it_loses_no_more_than_beta(method, family):
    runs = 25
    assert_honest(played(method, family, 12, 2, 0.2, "replace-one", Budget(4, "1e-3"), runs), runs, float(BETA))


@pytest.mark.parametrize("method", ["greedy-basic", "greedy", "self-deleting"])
def test_with_far_fewer_rows_it_loses_nearly_always(method):
    """So the games can be lost."""
    assert played(method, "clustered", 12, 3, 0.1, "replace-one", Budget(4, "1e-3"), 20, part=0.01) > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["greedy-basic", "greedy", "self-deleting"])
@pytest.mark.parametrize(("d", "k", "alpha"), [(30, 1, 0.1), (60, 4, 0.1), (200, 3, 0.05)])
def test_the_matrix_of_dimensions_targets_and_families(method, family, d, k, alpha, kind):
    runs = 20
    assert_honest(played(method, family, d, k, alpha, kind, Budget(1, "1e-6"), runs), runs, float(BETA))


def test_a_target_without_conditions_is_learned_too():
    """All rows are positive: what is learned must keep them."""
    bits = np.random.default_rng(2).random((20_000, 10)) < 0.5
    data = BitMatrix(bits, np.ones(20_000, dtype=int), target=Category(0, 1))
    funds = Funds.of(Budget(1, "1e-6"))
    for each in methods(BITS, LABELS, 2, facts=data.facts, beta=BETA, funds=funds):
        offered = each.offer(20_000)
        assert offered.promise.bound < 0.2
        lost = failures(
            offered.mechanism, data, lambda got: Conjunction(BITS, got), offered.promise.bound, 10, SeededRng(1)
        )
        assert_honest(lost, 10, float(BETA))


def test_losing_one_condition_of_the_score_is_noticed():
    """A score without its positive part drops the promise: the harness sees it."""

    class Careless(GreedySelection):
        def transcript(self, data, rng):
            counts = data.exact_sum(lambda batch: BITS.falsified(batch, (~LABELS.mask(batch),)))[0]
            return tuple(rng.select(counts, self.rate) for _ in range(self.rounds))

    data = planted("independent", 3_000, 12, 2, 5, "replace-one")
    lost = failures(
        Careless(BITS, LABELS, 2, 12, 1), data, lambda got: Conjunction(BITS, got), 0.2, 10, SeededRng(1), labels=LABELS
    )
    with pytest.raises(AssertionError, match="lost"):
        assert_honest(lost, 10, float(BETA))


# --- below every theorem: ordinary tables -----------------------------------------------------------------------------

DOMAIN = Domain(
    a=Number(0, 100, step=1),
    b=Number(-10, 10, step="0.1"),
    c=Number(0, 1000, step=1),
    f=Category("p", "q", "r"),
    h=Category("no", "yes"),
    y=Category(0, 1),
)
TESTS = Thresholds(("a", "b", "c", "f", "h"))


def people(n: int, seed: int, noise: float) -> tuple[Table, Table]:
    """A planted rule of three conditions: rows with wrong labels to learn from, and clean ones to judge by."""
    rng = np.random.default_rng(seed)
    total = n + 4_000
    columns = {
        "a": rng.uniform(0, 100, total),
        "b": rng.normal(0, 4, total).clip(-10, 10),
        "c": 1000 * rng.random(total) ** 2,
        "f": rng.choice(["p", "q", "r"], total, p=[0.5, 0.3, 0.2]),
        "h": rng.choice(["no", "yes"], total),
    }
    true = (columns["a"] >= 30) & (columns["b"] <= 2) & (columns["f"] != "q")
    given = true ^ (rng.random(total) < noise)
    parts = []
    for where, labels in ((slice(n), given), (slice(n, None), true)):
        part = {name: values[where] for name, values in columns.items()}
        parts.append(Table({**part, "y": labels[where].astype(int)}, DOMAIN, neighbours="replace-one"))
    return parts[0], parts[1]


@pytest.mark.parametrize(
    ("n", "epsilon", "noise", "least"), [(2_000, 1, 0.05, 0.93), (10_000, 1, 0.05, 0.98), (10_000, "0.1", 0.0, 0.93)]
)
def test_practical_rules_are_right_about_rows_not_seen(n, epsilon, noise, least):
    right = []
    for seed in range(4):
        train, test = people(n, seed, noise)
        funds = Funds.of(Budget(epsilon, "1e-6"))
        found = practical(TESTS, LABELS, 4, facts=train.facts, funds=funds).run(train, SeededRng(seed))
        right.append(1 - mistakes(Conjunction(TESTS, found), test, LABELS) / 4_000)
    assert np.mean(right) > least
