"""Private scaling and projection, pipelines whose steps leak, sparse matrices, and labels of reference minimisers."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA as ExactPCA  # noqa: N811
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.preprocessing import StandardScaler as ExactScaler

import discreet as dp
from discreet.erm.feasible_sets import Ball
from discreet.erm.losses import Logistic, Softmax, Squared
from discreet.erm.nonprivate import minimiser, risk_gradient, risk_value
from discreet.errors import BudgetExceeded, ParameterError
from discreet.estimators import input as reading

NO_NOISE = 10**15
RNG = np.random.default_rng(7)
X = RNG.normal([3.0, -1.0, 5.0], [1.0, 0.2, 2.0], (4_000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])
LABELS = (X[:, 0] + X[:, 2] > 8).astype(int)
BOUNDS = [(-2, 8), (-3, 4), (-4, 14)]
INSIDE = np.clip(X, *np.array(BOUNDS, dtype=float).T)


def scaler(**changed):
    return dp.StandardScaler(**{"bounds": BOUNDS, "epsilon": 1, "delta": 1e-6, **changed})


def projection(**changed):
    return dp.PCA(**{"n_components": 2, "bounds": BOUNDS, "epsilon": 1, "delta": 1e-6, **changed})


def logistic(**changed):
    return dp.LogisticRegression(
        **{"epsilon": 1, "row_norm": 3, "classes": (0, 1), "method": "descent", "max_iter": 5, **changed}
    )


# --- the scaler -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0, 1e-9])
def test_without_noise_the_scaler_is_scikit_learns(relation, delta):
    ours = scaler(epsilon=NO_NOISE, delta=delta, neighbours=relation, size=None).fit(X)
    exact = ExactScaler().fit(INSIDE)
    assert ours.mean_ == pytest.approx(exact.mean_, abs=1e-3)
    assert ours.scale_ == pytest.approx(exact.scale_, rel=1e-3)
    assert ours.transform(X) == pytest.approx(exact.transform(INSIDE), abs=1e-2)
    assert ours.inverse_transform(ours.transform(X)) == pytest.approx(INSIDE)


def test_with_noise_means_are_off_by_about_what_is_stated():
    found = [scaler().fit(X) for _ in range(60)]
    half = np.array([(high - low) / 2 for low, high in BOUNDS])
    off = np.array([(each.mean_ - INSIDE.mean(axis=0)) / half for each in found])
    stated = found[0].noise_ / len(X)
    assert 0.7 * stated < off.std() < 1.35 * stated
    assert found[0].guarantee_.epsilon(1e-6) <= 1 + 1e-9
    assert found[0].guarantee_.epsilon(1e-6) > 0.95  # nothing is left unused


def test_a_column_without_spread_is_scaled_by_its_bounds():
    flat = scaler(bounds=(0, 10)).fit(np.full((500, 2), 4.0))
    assert flat.scale_ == pytest.approx([5.0, 5.0])
    assert np.isfinite(flat.transform(np.full((3, 2), 4.0))).all()


def test_no_rows_are_an_ordinary_table_under_add_remove():
    empty = scaler(neighbours="add-remove", size=100, bounds=(0, 1)).fit(np.zeros((0, 2)))
    assert np.isfinite([*empty.mean_, *empty.scale_]).all()
    with pytest.raises(ParameterError, match="no rows"):
        scaler(bounds=(0, 1)).fit(np.zeros((0, 2)))


def test_values_beyond_the_bounds_count_as_the_bounds():
    """So a wild row moves no more than any other: the release is priced for the declared bounds."""
    wild = np.vstack([X, np.full((1, 3), 1e9)])
    moved = scaler(epsilon=NO_NOISE).fit(wild).mean_ - scaler(epsilon=NO_NOISE).fit(np.vstack([X, X[:1]])).mean_
    widths = np.array([high - low for low, high in BOUNDS])
    assert (np.abs(moved) <= widths / len(wild) + 1e-3).all()


# --- the projection ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_without_noise_the_components_are_those_of_the_scaled_rows(relation):
    ours = projection(epsilon=NO_NOISE, neighbours=relation).fit(X)
    scaled = dp.DeclaredScaler(BOUNDS).fit(X).transform(X)
    exact = ExactPCA(2).fit(scaled)
    along = np.abs((ours.components_ * exact.components_).sum(axis=1))
    assert along == pytest.approx([1, 1], abs=1e-3)
    assert ours.explained_variance_ == pytest.approx(exact.explained_variance_, rel=0.01)
    assert ours.transform(X).shape == (len(X), 2)
    assert ours.get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_with_noise_the_first_component_is_found_and_the_price_is_the_budget():
    along = RNG.uniform(-1, 1, (4_000, 1)) * [0.9, -0.7, 0.1] + RNG.normal(0, 0.05, (4_000, 3))
    ours = projection(bounds=(-1, 1)).fit(along)
    assert abs(float(ours.components_[0] @ ExactPCA(1).fit(along).components_[0])) > 0.99
    assert 0.95 < ours.guarantee_.epsilon(1e-6) <= 1 + 1e-9


def test_the_vector_of_products_is_never_longer_than_it_is_priced_for():
    from discreet.estimators.moments import _products, _symmetric

    rows = RNG.normal(size=(2_000, 4))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    for counted, most in ((False, math.sqrt(2)), (True, math.sqrt(3))):
        lengths = np.linalg.norm(_products(rows, counted), axis=1)
        assert lengths.max() <= most + 1e-12
        assert lengths.max() > 0.99 * most
    second = _symmetric(_products(rows, False).sum(axis=0)[4:], 4)
    assert second == pytest.approx(rows.T @ rows)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n_components": None}, "n_components must be given"),
        ({"n_components": 4}, "at most the number of features, 3"),
        ({"n_components": 0}, "n_components"),
        ({"row_norm": -1}, "row_norm"),
        ({"bounds": None}, "bounds must be given"),
        ({"epsilon": None}, "epsilon must be given"),
    ],
)
def test_wrong_parameters_are_named_before_anything_is_spent(changed, words):
    with pytest.raises(ParameterError, match=words):
        projection(**changed).fit(X)


# --- pipelines --------------------------------------------------------------------------------------------------------

LEAKING = [
    ExactScaler(),
    MinMaxScaler(),
    ExactPCA(2),
    SimpleImputer(),
    FeatureUnion([("one", Normalizer()), ("two", ExactScaler())]),
    ColumnTransformer([("scaled", MinMaxScaler(), [0])], remainder="passthrough"),
    make_pipeline(Normalizer(), ExactScaler()),
    OneHotEncoder(),
    OneHotEncoder(categories=[[0, 1]] * 3, handle_unknown="ignore", min_frequency=5),
]


@pytest.mark.parametrize("step", LEAKING, ids=lambda step: type(step).__name__)
def test_a_step_that_is_fitted_to_the_rows_is_refused(step):
    with pytest.raises(ParameterError, match=rf"{type(step).__name__}, is fitted to the rows: an unpaid release"):
        make_pipeline(clone(step), logistic()).fit(X, LABELS)


def test_an_encoder_of_declared_levels_learns_nothing_and_is_taken():
    rows = RNG.integers(0, 3, (400, 3))
    declared = ColumnTransformer([("levels", OneHotEncoder(categories=[[0, 1]] * 2, handle_unknown="ignore"), [0, 1])])
    assert make_pipeline(declared, logistic()).fit(rows, LABELS[:400]).predict(rows).shape == (400,)
    declared.transformers[0][1].handle_unknown = "error"
    with pytest.raises(ParameterError, match="unpaid release"):
        make_pipeline(declared, logistic()).fit(np.minimum(rows, 1), LABELS[:400])


def test_rows_come_back_from_all_of_their_components():
    ours = projection(n_components=3, epsilon=NO_NOISE).fit(X)
    assert ours.inverse_transform(ours.transform(X)) == pytest.approx(INSIDE)


def test_a_lazy_frame_is_asked_to_be_collected():
    polars = pytest.importorskip("polars")
    with pytest.raises(ParameterError, match="X is a lazy frame, whose rows are not read yet: collect it first"):
        logistic().fit(polars.DataFrame(X).lazy(), LABELS)


def test_a_leaking_step_before_a_private_transformer_or_inside_a_search_is_refused_too():
    with pytest.raises(ParameterError, match="unpaid release"):
        make_pipeline(ExactScaler(), scaler(bounds=(-3, 3)), logistic()).fit(X, LABELS)
    search = GridSearchCV(make_pipeline(SelectKBest(k=2), logistic()), {"logisticregression__epsilon": [1]}, cv=2)
    with pytest.raises((ParameterError, ValueError), match="unpaid release"):
        search.set_params(error_score="raise").fit(X, LABELS)


FREE = [
    Normalizer(),
    FunctionTransformer(np.tanh),
    PolynomialFeatures(2),
    dp.DeclaredScaler(BOUNDS),
    "passthrough",
    FeatureUnion([("one", Normalizer()), ("two", dp.DeclaredScaler(BOUNDS))]),
]


@pytest.mark.parametrize("step", FREE, ids=lambda step: getattr(step, "__class__", str).__name__)
def test_a_step_that_learns_nothing_is_taken(step):
    make_pipeline(step if isinstance(step, str) else clone(step), logistic(row_norm=5)).fit(X, LABELS)


def test_a_private_pipeline_spends_shares_of_one_ledger_and_learns():
    table = dp.Matrix(X, LABELS, features=dp.Vector(3, norm=30), target=dp.Category(0, 1), name="people")
    ledger = dp.Ledger.in_memory(dp.Budget(2, 1e-6), table)
    steps = make_pipeline(
        scaler(epsilon=dp.Share("1/4"), delta=0, ledger=ledger),
        dp.PCA(n_components=2, bounds=(-3, 3), epsilon=dp.Share("1/3"), ledger=ledger),
        dp.LogisticRegression(epsilon=None, ledger=ledger, row_norm=2, classes=(0, 1)),
    )
    steps.fit(X, LABELS)
    charges = [body for body in ledger.entries() if body["kind"] == "charge"]
    assert [body["memo"] for body in charges] == ["StandardScaler", "PCA", "LogisticRegression"]
    assert float(np.mean(steps.predict(X) == LABELS)) > 0.85
    assert ledger.spent().renyi > 0.98 * ledger.spent().caps.renyi
    with pytest.raises(BudgetExceeded):
        scaler(epsilon=1, delta=1e-6, ledger=ledger).fit(X)


def test_a_part_of_the_table_is_divided_by_its_own_size():
    """Fewer rows than the ledger's table has: a training set, under replace-one."""
    table = dp.Matrix(X, LABELS, features=dp.Vector(3, norm=30), target=dp.Category(0, 1), name="people")
    ledger = dp.Ledger.in_memory(dp.Budget(NO_NOISE, 1e-6), table)
    half = scaler(epsilon=NO_NOISE / 4, delta=1e-9, ledger=ledger, size=len(X)).fit(X[: len(X) // 2])
    assert half.mean_ == pytest.approx(INSIDE[: len(X) // 2].mean(axis=0), abs=1e-3)
    two = projection(epsilon=NO_NOISE / 4, delta=1e-9, ledger=ledger, size=len(X)).fit(X[: len(X) // 2])
    scaled = dp.DeclaredScaler(BOUNDS).fit(X).transform(X[: len(X) // 2])
    assert two.mean_ == pytest.approx(scaled.mean(axis=0), abs=1e-3)


# --- sparse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [csr_array, csc_matrix, coo_array])
def test_a_sparse_matrix_is_what_its_dense_form_is(make):
    thin = np.where(RNG.random((200, 3)) < 0.7, 0.0, X[:200])
    dense, sparse = (logistic(epsilon=NO_NOISE, row_norm=5).fit(rows, LABELS[:200]) for rows in (thin, make(thin)))
    assert sparse.coef_ == pytest.approx(dense.coef_)
    assert (sparse.predict(make(thin)) == dense.predict(thin)).all()
    assert dp.DeclaredScaler((-5, 15)).fit(make(thin)).transform(make(thin)).shape == thin.shape


def test_a_sparse_matrix_too_large_to_write_out_is_refused_without_its_number_of_rows(monkeypatch):
    monkeypatch.setattr(reading, "MOST_DENSE", 100)
    with pytest.raises(ParameterError, match="sparse and needs more than 1 GiB") as error:
        logistic().fit(csr_array(X), LABELS)
    assert str(len(X)) not in str(error.value)


# --- labels of the reference minimiser --------------------------------------------------------------------------------


def test_labels_of_minus_one_and_one_are_understood():
    rows, codes = X / 20, LABELS
    signs = 2 * codes - 1
    first, second, third = (minimiser(Logistic(1), rows, y, Ball(5)) for y in (codes, signs, codes.astype(bool)))
    assert first.value == second.value == third.value
    assert (first.w == second.w).all()
    assert risk_value(Logistic(1), rows, signs, first.w) == risk_value(Logistic(1), rows, codes, first.w)
    assert (risk_gradient(Logistic(1), rows, signs, first.w) == risk_gradient(Logistic(1), rows, codes, first.w)).all()
    assert first.gap < 1e-9


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (Logistic(1), [0, 2]),
        (Logistic(1), [1, 2]),
        (Logistic(1), [-1, 0]),
        (Logistic(1), [0.5, 1]),
        (Softmax(3), [0, 3]),
    ],
)
def test_other_labels_are_refused(loss, y):
    with pytest.raises(ParameterError, match="labels of a loss of"):
        minimiser(loss, np.ones((2, 2)), np.array(y), Ball(1))


def test_numbers_are_no_labels():
    assert minimiser(Squared(), np.ones((2, 1)), np.array([-1.0, 0.3]), Ball(1)).value == pytest.approx(0.4225)


def test_a_transformer_is_cloned_with_its_parameters():
    made = clone(projection(row_norm=1))
    assert made.get_params()["row_norm"] == 1
    assert dataclasses.is_dataclass(made)


@pytest.mark.parametrize("made", [dp.StandardScaler, lambda **how: dp.PCA(n_components=2, **how)])
def test_a_fitted_transformer_shows_itself_and_is_kept_by_pickle_not_by_a_model_file(made, tmp_path):
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    fitted = made(epsilon=1, delta=1e-6, bounds=(-1, 1)).fit(rows)
    assert "3 features" in str(fitted)
    assert "epsilon 1" in fitted._repr_html_()
    with pytest.raises(dp.errors.ParameterError, match="pickle"):
        fitted.save(tmp_path / "model.json")
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(rows), fitted.transform(rows))


# --- what is refused, and how -----------------------------------------------------------------------------------------


def test_missing_parameters_are_named_all_at_once():
    with pytest.raises(ParameterError, match=r"StandardScaler needs 2 parameters.*epsilon.*; bounds"):
        dp.StandardScaler().fit(X)
    with pytest.raises(ParameterError, match=r"PCA needs 3 parameters.*epsilon.*; bounds.*; n_components"):
        dp.PCA().fit(X)


@pytest.mark.parametrize("make", [scaler, projection, logistic])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_several_rows_per_person_are_refused_for_arrays_before_anything_is_charged(make, relation):
    several = dp.Neighbours(relation, 5)
    with pytest.raises(ParameterError, match="each row of an array is a person, but the relation is"):
        make(neighbours=several).fit(X, LABELS)


def test_labels_that_are_no_numbers_are_refused_by_the_reference_minimiser():
    with pytest.raises(ParameterError, match="must be 0 and 1, or -1 and 1; found others"):
        minimiser(Logistic(), X[:3], np.array(["a", "b", "a"]), Ball(1))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_longest_rows_keep_their_length(relation):
    """The moments of a row at a corner of the bounds are as long as the theorem says: none of them is cut."""
    corners = np.array([[-1.0, 1.0], [1.0, 1.0]] * 500)
    found = dp.PCA(n_components=2, bounds=(-1, 1), epsilon=NO_NOISE, delta=1e-9, neighbours=relation).fit(corners)
    assert found.mean_ == pytest.approx([0, 1], abs=1e-2)
    assert found.explained_variance_ == pytest.approx([1, 0], abs=1e-2)
