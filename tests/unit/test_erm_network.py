"""A network's gradients as integers: exact, cut, each row by itself; and a network that learns."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.data import MAX_ROWS, Facts
from discreet.erm import network as neural
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.network import Network, NeuralDescent, layout, predict_scores, promise, propose, split
from discreet.funds import Funds
from discreet.guarantee import Neighbours
from discreet.mechanisms import GaussianNoise, LaplaceNoise, Mechanism, ProductLaplaceNoise
from discreet.records import canonical, record, revive
from discreet.rng import Rng, SeededRng

LONGEST = 2**29
CLASSES = dp.Category("a", "b", "c")


class Silent(Rng):
    """No noise at all."""

    def gaussian(self, variance, size=None):
        return np.zeros(size, dtype=np.int64)


def mechanism(features=None, *, hidden=(5,), clip=1, noise=None, steps=3, rate=1, seed=7, target="y") -> NeuralDescent:
    features = VectorColumn() if features is None else features
    noise = GaussianNoise(2) if noise is None else noise
    return NeuralDescent(features, target, hidden, Fraction(clip), noise, steps, Fraction(rate), seed)


def matrix(rows: int = 40, *, dimension: int = 6, seed: int = 1, neighbours: str = "replace-one", norm=2) -> dp.Matrix:
    rng = np.random.default_rng(seed)
    return dp.Matrix(
        rng.normal(size=(rows, dimension)),
        rng.choice(["a", "b", "c"], size=rows),
        features=dp.Vector(dimension, norm=norm),
        target=CLASSES,
        neighbours=neighbours,
        size=max(1, rows),
    )


def some_weights(network: Network, seed: int, size: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=network.dimension) * size


def blocks_of(network: Network, data) -> tuple[np.ndarray, np.ndarray]:
    """All rows' integer vectors and labels."""
    found = []

    def keep(batch):
        found.extend(network.blocks(batch))
        return np.zeros(1, dtype=np.int64)

    data.exact_sum(keep)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([labels for _, labels in found])


def layers_at(network: Network, weights: np.ndarray) -> list[np.ndarray]:
    return split(np.rint(weights * 2**15), network.shapes)


def part_of(inputs, signals, row: int) -> list[int]:
    """One row's part of the gradient, written down in Python integers."""
    return [
        int(s) * int(a) for given, signal in zip(inputs, signals, strict=True) for s in signal[row] for a in given[row]
    ]


# --- exactness and independence --------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [(5,), (4, 3), (3, 2, 4)])
def test_dropping_rows_changes_no_other_rows_part(hidden):
    network = Network(mechanism(hidden=hidden), matrix().facts.domain)
    rows, labels = blocks_of(network, matrix(67))
    layers = layers_at(network, some_weights(network, 3))
    whole = [np.hstack(pair) for pair in zip(*network.parts(rows, labels, layers), strict=True)]
    rng = np.random.default_rng(4)
    for kept in [np.arange(1, 67), np.array([30]), *(np.flatnonzero(rng.random(67) < 0.5) for _ in range(20))]:
        some = [np.hstack(pair) for pair in zip(*network.parts(rows[kept], labels[kept], layers), strict=True)]
        assert all(np.array_equal(a[kept], b) for a, b in zip(whole, some, strict=True))


@pytest.mark.parametrize("block", [1, 40, 2**16])
def test_the_sum_is_the_sum_of_the_rows_parts_however_they_are_cut(monkeypatch, block):
    data = matrix(53)
    network = Network(mechanism(hidden=(4, 3)), data.facts.domain)
    weights = some_weights(network, 5)
    inputs, signals = network.parts(*blocks_of(network, data), layers_at(network, weights))
    monkeypatch.setattr(neural, "_BLOCK", block)
    found = data.exact_sum(network.at(weights))
    assert found.dtype == np.int64
    assert found.tolist() == [
        sum(column) for column in zip(*(part_of(inputs, signals, i) for i in range(53)), strict=True)
    ]


def exact_margins(rows, layers) -> list[list[list[int]]]:
    """Every layer's pre-activations in Python integers, from the activations that the network found."""
    inputs, _ = neural._forward(rows, layers)
    exactly = []
    for given, layer in zip(inputs, layers, strict=True):
        weights = [[Fraction(float(w)) for w in unit] for unit in layer]
        exactly.append([[sum(w * int(a) for w, a in zip(unit, row, strict=True)) for unit in weights] for row in given])
    return exactly


def float_margins(rows, layers) -> list[list[list[Fraction]]]:
    inputs, _ = neural._forward(rows, layers)
    found = [given @ layer.T for given, layer in zip(inputs, layers, strict=True)]
    return [[[Fraction(float(m)) for m in row] for row in layer] for layer in found]


def test_pre_activations_are_exact_and_with_weights_off_the_grid_they_would_not_be():
    network = Network(mechanism(hidden=(5, 4)), matrix().facts.domain)
    rows, _ = blocks_of(network, matrix(20))
    on_grid = layers_at(network, some_weights(network, 6))
    assert float_margins(rows, on_grid) == exact_margins(rows, on_grid)
    off_grid = split(some_weights(network, 6) * 2**15, network.shapes)  # the twin: floats, as in a framework
    assert float_margins(rows, off_grid) != exact_margins(rows, off_grid)


def test_the_largest_weights_and_inputs_stay_exact():
    """At the edge of the box every partial sum is below 2^53, and so is every squared signal."""
    network = Network(mechanism(hidden=(300, 200)), matrix().facts.domain)
    layers = [np.full(shape, 2.0**20) for shape in network.shapes]
    layers[-1][1:] *= -1
    rows = np.zeros((2, 7))
    rows[:, 0] = [2.0**16 - 1, -(2.0**16) + 1]
    assert float_margins(rows, layers) == exact_margins(rows, layers)
    inputs, margins = neural._forward(rows, layers)
    signals = neural._backward(
        neural.class_slopes(margins / neural._BIN, np.array([1, 0]), neural._exp_table()), inputs, layers
    )
    assert max(np.abs(signal).max() for signal in signals) <= 2**18
    widest, classes = 2**14, 2**14  # the docstring's table
    assert 2**20 * 2**12 * (widest + 1) < 2**53
    assert classes * 2**18 * 2**20 < 2**53
    assert widest * 2**36 < 2**53
    assert 2**16 * LONGEST < 2**53
    assert MAX_ROWS * LONGEST < 2**62


def test_a_file_is_read_for_the_columns_of_the_network_even_if_it_is_empty():
    domain = dp.Domain(u=dp.Number(0, 1, step="0.1"), other=dp.Number(0, 1, step=1), y=CLASSES)
    network = Network(mechanism(Declared(("u",), 1)), domain)
    seen: list[str] = []
    network.at(network.start())(dp.data.Batch.empty(domain, seen))
    assert set(seen) == {"u", "y"}


# --- sensitivity -----------------------------------------------------------------------------------------------------


DOMAIN = dp.Domain(u=dp.Number(-1, 1, step=1), v=dp.Category("p", "q"), y=dp.Category("a", "b"))
ROWS = [{"u": u, "v": v, "y": y} for u, v, y in itertools.product((-1, 0, 1), ("p", "q"), ("a", "b"))]


def sums(network: Network, weights: np.ndarray, rows: list[dict]) -> np.ndarray:
    table = dp.Table({name: [row[name] for row in rows] for name in DOMAIN}, DOMAIN, neighbours="add-remove")
    return data_sum(network, weights, table)


def data_sum(network: Network, weights: np.ndarray, table) -> np.ndarray:
    return table.exact_sum(network.at(weights)).astype(object)


def farthest(network: Network, weights: np.ndarray) -> tuple[list[int], list[int]]:
    """The squared lengths of all that one row more, and one row replaced, can do to a table of two rows."""
    base = sums(network, weights, [ROWS[0]])
    ones = [sums(network, weights, [ROWS[0], row]) for row in ROWS]
    added = [sum((one - base) ** 2) for one in ones]
    replaced = [sum((one - other) ** 2) for one, other in itertools.combinations(ones, 2)]
    return added, replaced


@pytest.mark.parametrize("hidden", [(3,), (3, 2)])
@pytest.mark.parametrize("clip", [Fraction(1, 1000), Fraction(1, 3), Fraction(20)])
def test_no_neighbour_moves_the_sum_by_more_than_the_sensitivity(hidden, clip):
    network = Network(mechanism(Declared(("u", "v"), 1), hidden=hidden, clip=clip), DOMAIN)
    one, two = (network.sensitivity(Facts(DOMAIN, Neighbours(kind), 2)) for kind in ("add-remove", "replace-one"))
    for weights in (network.start(), some_weights(network, 1), np.clip(some_weights(network, 2, 1e6), -32, 32)):
        added, replaced = farthest(network, weights)
        assert max(added) <= one.l2_squared == LONGEST**2
        assert max(replaced) <= two.l2_squared == 4 * LONGEST**2


def test_the_sensitivity_is_attained_and_that_of_add_remove_is_not_enough_for_replace_one():
    network = Network(mechanism(Declared(("u", "v"), 1), hidden=(3,), clip=Fraction(1, 10)), DOMAIN)
    added, replaced = farthest(network, some_weights(network, 1))
    assert max(added) > 0.999 * LONGEST**2
    assert max(replaced) > 2 * LONGEST**2


def test_without_the_cut_a_row_would_move_the_sum_by_more(monkeypatch):
    monkeypatch.setattr(neural, "_cut", lambda inputs, signals, raw: [np.trunc(signal * raw) for signal in signals])
    network = Network(mechanism(Declared(("u", "v"), 1), hidden=(3,), clip=Fraction(1, 10)), DOMAIN)
    assert max(farthest(network, some_weights(network, 1))[0]) > 100 * LONGEST**2


def test_several_rows_a_person_move_the_sum_by_several_clips():
    network = Network(mechanism(Declared(("u", "v"), 1)), DOMAIN)
    one = network.sensitivity(Facts(DOMAIN, Neighbours("add-remove"), 5))
    three = network.sensitivity(Facts(DOMAIN, Neighbours("add-remove", 3), 5))
    replaced = network.sensitivity(Facts(DOMAIN, Neighbours("replace-one", 3), 5))
    assert (three.l2_squared, replaced.l2_squared) == (9 * LONGEST**2, 36 * LONGEST**2)
    assert (three.l1, three.linf) == (3 * one.l1, 3 * LONGEST)
    assert one.l1 == math.isqrt(network.dimension * LONGEST**2)


def test_a_row_is_kept_if_and_only_if_its_exact_length_is_within_the_clip():
    """2^58 + 1 is 2^58 in floats; the last test is in integers."""
    signals = [np.array([2.0**52, 2.0**52 - 1, 2.0**52 - 1, 2.0**60, 0.0]), np.array([0.0, 1.0, 1.0, 0.0, 0.0])]
    lengths = [np.array([64.0] * 5), np.array([64.0, 64.0, 65.0, 64.0, 64.0])]
    assert ((2.0**52 - 1) * 64.0 + 65.0) == 2.0**58
    assert neural._within(signals, lengths).tolist() == [True, True, False, False, True]


def test_a_row_that_is_still_too_long_counts_as_nothing(monkeypatch):
    monkeypatch.setattr(neural, "_within", lambda signals, inputs: np.arange(len(signals[0])) > 0)
    network = Network(mechanism(), matrix().facts.domain)
    _, signals = network.parts(*blocks_of(network, matrix(5)), layers_at(network, some_weights(network, 1)))
    assert all((signal[0] == 0).all() and (signal[1:] != 0).any() for signal in signals)


@pytest.mark.parametrize("clip", [Fraction(1, 2**40), Fraction(1, 50), Fraction(3), Fraction(2**40)])
def test_every_rows_part_is_within_the_clip_in_python_integers(clip):
    network = Network(mechanism(hidden=(4, 3), clip=clip), matrix().facts.domain)
    rows, labels = blocks_of(network, matrix(30))
    rows[0], rows[1] = 0, np.eye(7)[2]  # no input at all, and the shortest there is
    for seed, size in ((1, 0.1), (2, 3.0), (3, 100.0)):
        weights = np.clip(some_weights(network, seed, size), -32, 32)
        inputs, signals = network.parts(rows, labels, layers_at(network, weights))
        assert max(sum(x * x for x in part_of(inputs, signals, i)) for i in range(30)) <= LONGEST**2


# --- the gradient is the gradient ------------------------------------------------------------------------------------


def float_parts(rows: np.ndarray, labels: np.ndarray, layers: list[np.ndarray], clip: float) -> np.ndarray:
    """Back-propagation in floats, row by row, with every row's gradient written down and cut."""
    found = []
    for row, label in zip(rows, labels, strict=True):
        inputs = [row]
        for layer in layers[:-1]:
            inputs.append(np.append(np.tanh(layer @ inputs[-1]), 1.0))
        margins = layers[-1] @ inputs[-1]
        grown = np.exp(margins - margins.max())
        signal = grown / grown.sum() - np.eye(len(margins))[label]
        gradients = [np.outer(signal, inputs[-1])]
        for given, below, layer in zip(inputs[:0:-1], inputs[-2::-1], layers[::-1], strict=False):
            signal = (layer[:, :-1].T @ signal) * (1 - given[:-1] ** 2)
            gradients.insert(0, np.outer(signal, below))
        flat = np.concatenate([gradient.ravel() for gradient in gradients])
        found.append(flat * min(1.0, clip / np.linalg.norm(flat)))
    return np.array(found)


@pytest.mark.parametrize("hidden", [(5,), (4, 3), (3, 4, 2)])
@pytest.mark.parametrize("clip", [Fraction(1, 4), Fraction(3), Fraction(1000)])
def test_the_integer_gradient_is_back_propagation_up_to_rounding(hidden, clip):
    data = matrix(25)
    network = Network(mechanism(hidden=hidden, clip=clip), data.facts.domain)
    weights = np.rint(some_weights(network, 8, 0.5) * 2**15) / 2**15
    rows, labels = blocks_of(network, data)
    inputs, signals = network.parts(rows, labels, layers_at(network, weights))
    exactly = np.array([part_of(inputs, signals, i) for i in range(25)], dtype=float) * float(network.unit)
    floats = float_parts(rows / 2**12, labels, split(weights, network.shapes), float(clip))
    fineness = float(network.unit) * sum(  # what cutting every signal to a whole number can do to a row's part
        math.sqrt(len(layer)) * np.sqrt((given**2).sum(axis=1)).max()
        for layer, given in zip(split(weights, network.shapes), inputs, strict=True)
    )
    lengths = np.linalg.norm(floats, axis=1)
    assert np.linalg.norm(exactly - floats, axis=1).max() < 0.003 * lengths.max() + fineness
    assert fineness < 0.001 * float(clip)
    assert (lengths < 0.999 * float(clip)).any() or clip < 1


@pytest.mark.parametrize("step", [None, Fraction(1, 50), Fraction(1, 2**20)])
def test_released_weights_predict_what_the_integer_network_computes(step):
    rng = np.random.default_rng(2)
    features, labels = rng.normal(size=(30, 4)), rng.choice(["a", "b", "c"], size=30)
    vector = dp.Vector(4, norm=3, step=step)
    data = dp.Matrix(features, labels, features=vector, target=CLASSES)
    network = Network(mechanism(hidden=(6,)), data.facts.domain)
    weights = some_weights(network, 9, 0.5)
    rows, _ = blocks_of(network, data)
    assert 2**14 <= math.isqrt(int((rows**2).sum(axis=1).max())) < 2**16
    margins = neural._forward(rows, layers_at(network, weights))[1] / 2**27
    real = rows / 2.0**network.lift * float(vector.step)
    found = predict_scores(network.released(weights), real, network.shapes)
    assert found.shape == (30, 3)
    assert np.abs(found - margins).max() < 0.01


def test_without_noise_it_learns_exclusive_or():
    rng = np.random.default_rng(3)
    corners = rng.integers(0, 2, size=(400, 2)) * 2 - 1
    features = corners * 0.6 + rng.normal(size=(400, 2)) * 0.1
    data = dp.Matrix(
        features, (corners[:, 0] == corners[:, 1]).astype(int), features=dp.Vector(2, norm=1), target=dp.Category(0, 1)
    )
    solver = mechanism(hidden=(8,), clip=3, steps=150, rate=Fraction(3, 2))
    weights = solver.run(data, Silent())
    length = np.linalg.norm(features, axis=1, keepdims=True)
    rows = np.column_stack([features / np.maximum(1, length), np.full(400, 0.5)])
    scores = predict_scores(weights, rows, layout(VectorColumn(), "y", (8,), data.facts.domain))
    assert (scores.argmax(axis=1) == (corners[:, 0] == corners[:, 1])).mean() > 0.98


def test_without_noise_it_learns_digits():
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    features, order = features / 16, np.random.default_rng(0).permutation(len(labels))
    train, test = order[:1437], order[1437:]
    data = dp.Matrix(features[train], labels[train], features=dp.Vector(64, norm=4), target=dp.Category(*range(10)))
    weights = mechanism(hidden=(32,), clip=3, steps=120).run(data, Silent())
    length = np.linalg.norm(features[test], axis=1, keepdims=True)
    rows = np.column_stack([features[test] * np.minimum(1, 4 / length), np.full(len(test), 2.0)])
    scores = predict_scores(weights, rows, layout(VectorColumn(), "y", (32,), data.facts.domain))
    assert (scores.argmax(axis=1) == labels[test]).mean() > 0.92


# --- the mechanism ---------------------------------------------------------------------------------------------------


class Recording(SeededRng):
    """Test randomness that remembers what was drawn."""

    def __init__(self) -> None:
        super().__init__(5)
        self.drawn: list[tuple[Fraction, int]] = []

    def gaussian(self, variance, size=None):
        self.drawn.append((variance, math.prod(size)))
        return super().gaussian(variance, size)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_every_step_that_is_drawn_is_charged(relation):
    solver, data, rng = mechanism(steps=5, hidden=(4, 3)), matrix(neighbours=relation), Recording()
    found = solver.run(data, rng)
    network = Network(solver, data.facts.domain)
    moved = network.sensitivity(data.facts).l2_squared
    assert [count for _, count in rng.drawn] == [network.dimension] * 5
    drawn = sum(float(moved / (2 * variance)) for variance, _ in rng.drawn)
    assert solver.guarantee(data.facts).at(2.0) == pytest.approx(2 * drawn)
    assert solver.guarantee(data.facts).at(2.0) == pytest.approx(2 * 5 * (4 if relation == "replace-one" else 1) / 8)
    assert (found.shape, found.dtype) == ((network.dimension,), np.float64)


def test_all_the_noise_that_is_drawn_is_added_at_every_step():
    """On an empty table the weights move by the noise and nothing else."""
    drawn: list[np.ndarray] = []

    class Remembering(SeededRng):
        def gaussian(self, variance, size=None):
            drawn.append(super().gaussian(variance, size))
            return drawn[-1]

    solver, empty = mechanism(steps=4, rate=Fraction(1, 50)), matrix(0, neighbours="add-remove")
    network = Network(solver, empty.facts.domain)
    found = solver.run(empty, Remembering(3))
    moved = float(network.unit) / 50 * sum(drawn)
    assert len(drawn) == 4
    assert np.allclose(found, network.released(network.start() - moved), rtol=1e-9, atol=1e-12)
    assert np.abs(moved).max() > 0.01


def test_the_first_weights_are_public_and_the_same_for_every_table():
    first, second = (Network(mechanism(), matrix(seed=seed).facts.domain).start() for seed in (1, 2))
    assert np.array_equal(first, second)
    other = Network(mechanism(seed=8), matrix().facts.domain).start()
    assert not np.array_equal(first, other)
    assert np.abs(first).max() <= 1
    assert (split(first, Network(mechanism(), matrix().facts.domain).shapes)[-1] == 0).all()


def test_a_mechanism_is_its_record():
    catalogue = {each.NAME: each for each in (NeuralDescent, VectorColumn, GaussianNoise)}
    text = canonical(record(mechanism(hidden=(4, 3), clip=Fraction(1, 3))))
    assert revive(json.loads(text), catalogue) == mechanism(hidden=(4, 3), clip=Fraction(1, 3))
    assert "." not in text
    assert isinstance(mechanism(), Mechanism)
    assert hash(mechanism()) == hash(dataclasses.replace(mechanism()))
    for section in ("Theorem.", "Accuracy.", "Edges.", "Reference."):
        assert section in (NeuralDescent.__doc__ or "")


def test_the_layout_says_what_each_layer_is():
    domain = matrix().facts.domain
    assert layout(VectorColumn(), "y", (5, 4), domain) == ((5, 7), (4, 6), (3, 5))
    assert layout(Constant(), "y", (2,), domain) == ((2, 1), (3, 3))
    parts = split(np.arange(5 * 7 + 4 * 6 + 3 * 5), layout(VectorColumn(), "y", (5, 4), domain))
    assert [part.shape for part in parts] == [(5, 7), (4, 6), (3, 5)]
    assert [int(part[0, 0]) for part in parts] == [0, 35, 59]


def test_an_empty_table_one_class_and_huge_noise_are_ordinary():
    empty = matrix(0, neighbours="add-remove")
    assert np.isfinite(mechanism().run(empty, SeededRng(1))).all()
    one = dp.Matrix([[1.0, 0.0]], ["a"], features=dp.Vector(2, norm=1), target=CLASSES)
    loud = mechanism(noise=GaussianNoise(2**20), rate=2**40)
    found = loud.run(one, SeededRng(1))
    network = Network(loud, one.facts.domain)
    assert np.isfinite(found).all()
    assert np.abs(split(found, network.shapes)[-1]).max() == 32


def test_under_add_remove_a_size_must_be_declared():
    data = dp.Matrix([[1.0]], ["a"], features=dp.Vector(1, norm=1), target=CLASSES, neighbours="add-remove")
    with pytest.raises(dp.errors.ParameterError, match="public size"):
        mechanism().guarantee(data.facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": ()}, "hidden must be"),
        ({"hidden": 5}, "hidden must be"),
        ({"hidden": (2,) * 17}, "1 to 16 widths"),
        ({"hidden": (0,)}, "whole number >= 1"),
        ({"hidden": (2.5,)}, "whole number"),
        ({"hidden": (2**14 + 1,)}, "at most 16384"),
        ({"clip": 0}, "clip must be > 0"),
        ({"clip": Fraction(2) ** 41}, "clip must lie between"),
        ({"rate": -1}, "rate must be > 0"),
        ({"rate": Fraction(1, 2**41)}, "rate must lie between"),
        ({"steps": 0}, "steps must be"),
        ({"seed": -1}, "seed must be"),
        ({"target": ""}, "target must be"),
        ({"noise": 3}, "noise must be"),
        ({"features": "x"}, "features must be"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(dp.errors.ParameterError, match=message):
        dataclasses.replace(mechanism(), **change)


@pytest.mark.parametrize("column", [dp.Number(0, 1, step=1), dp.Category("only")])
def test_a_target_without_two_classes_is_refused_before_the_charge(column):
    domain = dp.Domain(x=dp.Vector(2, norm=1), y=column)
    with pytest.raises(dp.errors.ParameterError, match="at least 2 declared classes"):
        mechanism().guarantee(Facts(domain, Neighbours("replace-one"), 5))


def test_a_network_that_no_memory_holds_is_refused_before_the_charge():
    with pytest.raises(dp.errors.ParameterError, match=r"at most 2\*\*26 weights"):
        mechanism(hidden=(2**14, 2**14)).guarantee(matrix().facts)


def test_laplace_noise_gives_a_pure_guarantee():
    facts = matrix().facts
    found = mechanism(noise=LaplaceNoise(1000)).guarantee(facts)
    network = Network(mechanism(), facts.domain)
    assert found.pure == 3 * Fraction(network.sensitivity(facts).l1) * network.unit / 1000


# --- the rule --------------------------------------------------------------------------------------------------------


def proposed(size: int, budget: dp.Budget) -> NeuralDescent:
    facts = Facts(matrix().facts.domain, Neighbours("replace-one"), size)
    return propose(VectorColumn(), "y", (8,), facts=facts, funds=Funds.of(budget))


@pytest.mark.parametrize(
    ("size", "budget"), [(200, dp.Budget(1, "1e-5")), (10**6, dp.Budget(1, "1e-5")), (50_000, dp.Budget(1))]
)
def test_a_proposal_is_admitted_and_follows_the_rule(size, budget):
    found = proposed(size, budget)
    facts = Facts(matrix().facts.domain, Neighbours("replace-one"), size)
    assert found.guarantee(facts).within(budget)
    assert 50 <= found.steps <= 400
    shaken = float(found.rate) * math.sqrt(found.steps * found.noise.variance()) / size
    assert shaken <= 0.2001
    assert shaken == pytest.approx(0.2, rel=1e-4) or found.rate == 1
    assert found.rate <= 1
    assert isinstance(found.noise, GaussianNoise if budget.delta else ProductLaplaceNoise)


def test_the_largest_tables_get_a_hundred_steps():
    assert proposed(10**9, dp.Budget(1, "1e-5")).steps == 100
    assert proposed(10**5, dp.Budget(1, "1e-5")).steps == 400


def test_more_people_or_more_budget_allow_longer_descents():
    total = [
        float(each.rate * each.steps)
        for each in (
            proposed(200, dp.Budget(1, "1e-5")),
            proposed(2000, dp.Budget(1, "1e-5")),
            proposed(2000, dp.Budget(2, "1e-5")),
        )
    ]
    assert total == sorted(total)
    assert total[0] < total[1] < total[2]


def test_a_tiny_budget_is_an_ordinary_proposal():
    budget = dp.Budget("1e-3", "1e-5")
    assert proposed(2, budget).guarantee(Facts(matrix().facts.domain, Neighbours("replace-one"), 2)).within(budget)


def test_nothing_is_promised_and_the_reason_is_said():
    found = promise(mechanism(), matrix().facts)
    assert found.bound is None
    assert math.isinf(float(found))
    assert "not convex" in str(found)
    assert "nothing" in str(found)


def test_a_network_is_released_through_a_ledger():
    data = matrix(60)
    ledger = dp.Ledger.in_memory(dp.Budget(2, "1e-5"), data)
    solver = propose(VectorColumn(), "y", (3,), facts=data.facts, funds=ledger.funds())
    got = dp.release(solver, data, ledger=ledger, request="net")
    again = dp.release(solver, data, ledger=ledger, request="net")
    assert np.array_equal(got.value, again.value)
    assert got.value.shape == (3 * 7 + 3 * 4,)
    assert not ledger.admits(solver)
