"""Classifiers in released ranges of columns: their price, what they learn of wide declarations, how they predict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import discreet as dp
from discreet.data import Batch
from discreet.erm import Ball, Declared, Logistic, Ranged, Risk
from discreet.erm.ranged import RangedFeatures, columns_of
from discreet.errors import ParameterError
from discreet.mechanisms import RankQuantile

RNG = np.random.default_rng(9)
N = 6000
A, B, C = RNG.normal(50, 3, N), RNG.exponential(2, N), RNG.choice(["u", "v"], N)
LABELS = np.where(A - 50 + 2 * (B - 2) + 2 * (C == "u") + RNG.logistic(size=N) > 1, "yes", "no")
# With many columns Gaussian noise is about as short as pure noise.
SAME = {f"same{place}": np.full(N, "u") for place in range(12)}


def table(width=1, **more):
    """The columns' values, in declared ranges that are so many times wider."""
    domain = dp.Domain(
        a=dp.Number(30 - 500 * (width - 1), 70 + 100 * (width - 1), step="1/100"),
        b=dp.Number(0, 20 * width, step="1/100"),
        c=dp.Category("u", "v"),
        y=dp.Category("no", "yes"),
        **{name: dp.Category("u", "v") for name in SAME},
    )
    return dp.Table({**SAME, "a": A, "b": np.minimum(B, 20), "c": C, "y": LABELS}, domain, name="made up", **more)


def fitted(rows, epsilon=1, delta=1e-6, **given):
    ledger = dp.Ledger.in_memory(dp.Budget(epsilon, delta), rows)
    return dp.LogisticRegression(epsilon=epsilon, delta=delta, ledger=ledger, **given).fit(rows, "y")


def accuracy(model):
    return np.mean(model.predict({**SAME, "a": A, "b": np.minimum(B, 20), "c": C}) == LABELS)


def test_a_model_learns_from_columns_that_are_declared_forty_times_too_wide():
    tight, wide = fitted(table()), fitted(table(40))
    assert (tight.method_, wide.method_) == ("scaled", "scaled")
    assert accuracy(tight) > 0.8
    assert accuracy(wide) > 0.74
    assert accuracy(fitted(table(40), method="objective")) < 0.7


def test_the_price_does_not_depend_on_the_ranges_and_is_that_of_all_parts():
    rows = table()
    model = fitted(rows)
    whole, inner = model.mechanism_, model.mechanism_.inner
    for middle, half in ((0, 1), (2000, 64), (4000, 2**20)):
        features = whole.features(np.array([middle, half] * 2, dtype=float))
        assert features.bound_l1(rows.facts.domain) == inner.risk.features.bound_l1(rows.facts.domain)
        moved = replace(inner, risk=replace(inner.risk, features=features))
        assert moved.guarantee(rows.facts) == inner.guarantee(rows.facts)
    parts = [each.guarantee(rows.facts) for each in (*whole.medians, *whole.distances)]
    assert whole.guarantee(rows.facts) == sum(parts[1:], inner.guarantee(rows.facts) + parts[0])
    assert dp.Funds.of(dp.Budget(1, 1e-6)).admits(whole.guarantee(rows.facts))


def test_rows_in_ranges_are_cut_and_no_longer_than_declared_ones():
    rows = table()
    features = Ranged(("a", "b", "c"), 2, True, (("a", 2000, 256), ("b", 200, 128)))
    vectors = np.empty((N, 5))
    batch = next(iter(rows._batches(lambda batch: None)))
    assert isinstance(batch, Batch)
    features.fill(batch, slice(0, N), vectors)
    squares = np.square(vectors).sum(axis=1)
    assert squares.max() <= features.bound_squared(rows.facts.domain)
    assert np.abs(vectors).sum(axis=1).max() <= features.bound_l1(rows.facts.domain)
    scaled = np.clip((np.floor(A * 100 - 3000 + 1e-6) - 2000) / 256, -1, 1)
    assert vectors[:, 0] * float(features.unit(rows.facts.domain)) == pytest.approx(scaled, abs=0.01)
    assert (np.abs(scaled) == 1).any()


def test_a_saved_model_predicts_the_same_and_its_own_coefficients_are_those_of_the_columns(tmp_path):
    model = fitted(table(40))
    model.save(tmp_path / "model.json")
    again = dp.load(tmp_path / "model.json")
    rows = {**SAME, "a": A, "b": np.minimum(B, 20), "c": C}
    assert again.predict_proba(rows) == pytest.approx(model.predict_proba(rows))
    (first, _), inside = model.encoding_.features.range_of("a", model.encoding_.domain["a"]), {"b": [2.0], "c": ["u"]}
    inside |= {name: ["u"] for name in SAME}
    middle = float(model.encoding_.domain["a"].low + first * model.encoding_.domain["a"].step)
    near, far = (model.decision_function({"a": [middle + x], **inside})[0] for x in (0, 0.5))
    assert far - near == pytest.approx(0.5 * model.original_coef_[0, 0], abs=0.02 * abs(far - near) + 1e-3)


def test_few_people_pure_noise_and_given_radii_keep_the_declared_ranges():
    assert fitted(table(), epsilon="0.01").method_ == "descent"
    assert fitted(table(), radius=5).method_ in ("descent", "objective")
    assert fitted(table(), fit_intercept=False).method_ in ("descent", "objective")
    with pytest.raises(ParameterError, match="declared columns of numbers"):
        dp.LogisticRegression(epsilon=1, row_norm=1, classes=(0, 1), method="scaled").fit(np.eye(2), [0, 1])


def test_columns_with_missing_numbers_or_levels_have_no_range():
    number, may_miss = dp.Number(0, 9, step=1), dp.Number(0, 9, step=1, missing=True)
    domain = dp.Domain(a=number, b=may_miss, c=dp.Category("u", "v"), y=dp.Category("no", "yes"))
    risk = Risk(Logistic(), Declared(("a", "b", "c"), 2), "y", Ball(1))
    assert columns_of(risk, domain) == ["a"]


def test_parts_that_do_not_belong_together_are_refused():
    honest = fitted(table()).mechanism_
    with pytest.raises(ParameterError, match="distances must be"):
        RangedFeatures(honest.medians, honest.distances[:1], honest.inner)
    with pytest.raises(ParameterError, match="declared features"):
        RangedFeatures((RankQuantile("y", "1/2", 1),), (RankQuantile("y", "3/4", 1),), honest.inner)
    with pytest.raises(ParameterError, match="ranges must be of"):
        Ranged(("a",), 1, True, (("b", 0, 1),))
