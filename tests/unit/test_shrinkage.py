"""Empirical Bayes with known variances: what is believed of noisy columns and interactions."""

import numpy as np
import pytest

from discreet.hypothesis.residuals import ResidualFit, centred
from discreet.hypothesis.shrinkage import Interaction, interactions, mixed, shrunk_columns


def noisy_columns(truth, noise, seed):
    rng = np.random.default_rng(seed)
    return [table + (each := rng.normal(scale=noise, size=len(table))) - each.mean() for table in truth]


def test_a_posterior_adds_up_and_follows_what_all_tables_share():
    """Nine tables prefer the first point clearly; the tenth cannot tell, and follows them."""
    logs = np.array([[0.0, -8.0, -8.0]] * 9 + [[0.0, 0.0, 0.0]])
    posterior = mixed(logs)
    assert posterior.sum(axis=1) == pytest.approx(1.0)
    assert posterior[9, 0] > 0.9


def test_columns_without_noise_stay_and_noisy_ones_add_up_and_are_not_negative():
    truth = [np.array([900.0, 90, 9, 1]), np.array([250.0, 250, 250, 250]), np.array([1000.0])]
    assert all(np.array_equal(a, b) for a, b in zip(shrunk_columns(truth, [0.0] * 3, 1000.0), truth, strict=True))
    for seed in range(20):
        found = shrunk_columns(noisy_columns(truth, 60.0, seed), [3600.0] * 3, 1000.0)
        assert all(table.min() >= 0 and table.sum() == pytest.approx(1000.0) for table in found)


@pytest.mark.parametrize("noise", [5.0, 60.0, 400.0])
def test_columns_are_nearer_to_the_truth_than_clipped_measurements(noise):
    truth = [np.array([700.0, 250, 40, 8, 2, 0, 0]), np.array([150.0, 140, 160, 150, 130, 120, 150])]
    before, after = [], []
    for seed in range(60):
        measured = noisy_columns(truth, noise, seed)
        found = shrunk_columns(measured, [noise**2] * 2, 1000.0)
        before.append(sum(((np.maximum(a, 0) - b) ** 2).sum() for a, b in zip(measured, truth, strict=True)))
        after.append(sum(((a - b) ** 2).sum() for a, b in zip(found, truth, strict=True)))
    assert np.mean(after) < (1.02 if noise == 5.0 else 0.9) * np.mean(before)


def test_noise_larger_than_the_table_leaves_even_columns():
    found = shrunk_columns(noisy_columns([np.array([40.0, 30, 30])], 1e7, 1), [1e14], 100.0)[0]
    assert found.sum() == pytest.approx(100.0)
    assert found.max() < 60


def made_up(effect, noise, seed, tables=10):
    rng = np.random.default_rng(seed)
    shares = np.outer(*rng.dirichlet(np.ones(6), size=2)) * 2000
    truth = [centred(rng.normal(size=(6, 6)) * effect * np.sqrt(shares * 2000 / 36)) for _ in range(tables)]
    return truth, [
        Interaction(each + centred(rng.normal(scale=noise, size=(6, 6))), shares, noise**2) for each in truth
    ]


@pytest.mark.parametrize(("effect", "noise", "most"), [(0.0, 20.0, 0.05), (0.2, 20.0, 0.6), (2.0, 20.0, 1.0)])
def test_interactions_are_believed_as_far_as_they_exceed_the_noise(effect, noise, most):
    before, after = 0.0, 0.0
    for seed in range(20):
        truth, measured = made_up(effect, noise, seed)
        found = interactions(measured, 2000.0)
        before += sum(((one.apart - each) ** 2).sum() for one, each in zip(measured, truth, strict=True))
        after += sum(((centred(one) - each) ** 2).sum() for one, each in zip(found, truth, strict=True))
    assert after < most * before


def test_one_strong_table_among_weak_ones_is_kept():
    _truth, measured = made_up(0.0, 20.0, 5)
    strong = centred(np.eye(6) * 300)
    measured[3] = Interaction(measured[3].apart + strong, measured[3].expected + 50, 400.0)
    found = interactions(measured, 2000.0)
    assert np.abs(centred(found[3]) - strong).mean() < 25
    assert all(np.abs(each).mean() < 5 for place, each in enumerate(found) if place != 3)


def test_paths_through_a_third_column_help_where_columns_have_a_common_cause(monkeypatch):
    rng, sizes = np.random.default_rng(6), dict.fromkeys("abcdefgh", 5)
    kind = rng.integers(0, 2, size=4000)
    weights = rng.dirichlet(np.ones(5), size=(8, 2))
    codes = {
        name: (rng.random(4000)[:, None] > weights[place, kind].cumsum(axis=1)).sum(axis=1).clip(0, 4)
        for place, name in enumerate(sizes)
    }
    pairs = [(a, b) for a in sizes for b in sizes if a < b]
    truth = {pair: np.histogram2d(codes[pair[0]], codes[pair[1]], bins=5)[0] for pair in pairs}
    measured = {(): (np.array(4000.0), 1.0)}
    measured |= {(a,): (centred(np.bincount(codes[a], minlength=5).astype(float)), 1.0) for a in sizes}
    measured |= {pair: (centred(truth[pair] + rng.normal(scale=60, size=(5, 5))), 3600.0) for pair in pairs}

    def error():
        fitted = ResidualFit.shrunk(measured, sizes, total=4000.0)
        return np.mean([np.abs(fitted.marginal(pair) - truth[pair]).mean() for pair in pairs])

    with_paths = error()
    monkeypatch.setattr(ResidualFit, "_paths", lambda self, believed: {})
    assert with_paths < 0.9 * error()
