"""Noisy gradient descent on a neural network (lectures 9 and 10): every row's gradient is cut to a length, in integers.

A network of tanh layers and a softmax is not convex, so nothing is promised about the minimum; what is private about it
needs no convexity, only that one row moves the sum of the gradients by a known length. A row's part of the gradient of
layer l is an outer product, (signal of l) x (input of l), so the row's squared length is the sum over the layers of
|signal|^2 |input|^2, known before any gradient is written down: the signals are scaled, not the gradients.

All of it is integers, as in `discreet.erm.gradient`, so a row's part depends on that row and on public numbers alone:

1. The weights are put on a public grid. Pre-activations are integer dot products, exact in the floats of BLAS.
2. tanh and exp are public tables of integers, indexed by the integer pre-activation.
3. Going back, a signal is an integer matrix product, divided by a power of two and cut towards zero, times the slope.
4. The signals of a row are scaled so that its length is within the clip, and cut towards zero. Then the length is
   tested in exact integers; a row that is still too long would count as 0.
5. signals^T inputs is summed by BLAS, exactly, over blocks of rows, and over blocks in int64.

    integer               worth                  at most                     so that
    weight                2^-15                  2^20                        (box: weights of at most 32)
    input of layer 1      2^-12                  2^16, the row's length      its dot products are below 2^53
    activation            2^-12                  2^12, widths <= 2^14        their dot products are below 2^47
    signal before 4.      2^-15                  2^18                        going back stays below 2^52, |signal|^2 too
    row's part after 4.   clip / 2^29            2^29, the part's length     a block is below 2^53, all rows 2^60

docs/proofs/clipped_network.md has the proof.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Funds, Guarantee, ParameterError, Rng, SeededRng, exact
from discreet.data import Batch, Dataset, Domain, Facts, Floats, IntArray, Ints, Mask, Needs
from discreet.erm import STEPS, Features, blocks, public_size
from discreet.erm.gradient import class_slopes, lengths
from discreet.mechanisms import GaussianNoise, Noise, ProductLaplaceNoise, Promise, Sensitivity, calibrate, of_persons

Shapes = tuple[tuple[int, int], ...]

_ONE = 2**12  # what an activation of 1 is
_WEIGHT = 2**15  # what a weight of 1 is
_BOX = 32  # no weight is larger
_LOUDEST = 2**18  # no signal of one unit is larger before rows are cut
_LONGEST = 2**29  # the clip
_WIDEST = 2**14  # units of a layer
_DEEPEST = 16  # hidden layers
_MOST_WEIGHTS = 2**26
_EXP = 2**20  # what exp(0) is
_BIN = 2**15  # integer pre-activations that share an entry of a table: 2^-12 of a unit
_BLOCK = 2**16  # entries of a layer in a block of rows

_CLIP = Fraction(3)
_SLOWEST, _FASTEST = Fraction(1, 2**40), Fraction(1)  # rate
_FEWEST, _MOST = 50, 400  # steps
_WORK = 2**33  # rows times weights that all steps together may read, beyond the first 100 steps
_SHAKEN = 0.2  # how far noise moves a weight


@dataclass(frozen=True, slots=True)
class NeuralDescent:
    """Release the weights of a network after `steps` noisy gradient steps, each row's gradient cut to length `clip`.

    features  how a row becomes a vector (`discreet.erm.features`); target: a Category
    hidden    the widths of the layers of tanh units
    rate      what a step multiplies the noisy mean gradient by
    seed      of the first weights, which are public: they are the same for every table

    Theorem.   The sums of the cut gradients of neighbours differ by |d|_2 <= clip (add-remove) or 2 clip (replace-one),
               whatever the weights; k rows per person: k times. If the noise on one such sum has guarantee g, the
               release has guarantee steps * g: adaptive composition, then post-processing.
    Accuracy.  Nothing is promised: the risk of a network is not convex.
    Edges.     Weights stay within 32 in absolute value, for rows scaled to a bound between 8 and 16. At most 16 hidden
               layers of at most 2^14 units, 2^26 weights in all. Rows are cut to a grid of about clip / 2^17.
    Reference. Lecture 10; clipping [ACGMMTZ16]; norms without gradients [Goodfellow 2015]; the integers:
               docs/proofs/clipped_network.md.
    """

    NAME: ClassVar[str] = "neural-descent/1"
    features: Features
    target: str
    hidden: tuple[int, ...]
    clip: Fraction
    noise: Noise
    steps: int
    rate: Fraction
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.features, Features):
            raise ParameterError(f"features must be VectorColumn, Declared or Constant, found {self.features!r}")
        if not isinstance(self.noise, Noise):
            raise ParameterError(f"noise must be one of discreet.mechanisms.noise, found {self.noise!r}")
        exact.text(target=self.target)
        exact.freeze(
            self,
            hidden=_layer_widths(self.hidden),
            clip=_moderate("clip", exact.positive(clip=self.clip)),
            steps=exact.whole(steps=self.steps),
            rate=_moderate("rate", exact.positive(rate=self.rate)),
            seed=exact.whole(0, seed=self.seed),
        )

    def guarantee(self, facts: Facts) -> Guarantee:
        public_size(facts)
        network = Network(self, facts.domain)
        moved, size, kind = network.sensitivity(facts), network.dimension, facts.neighbours
        return self.steps * self.noise.guarantee(moved, unit=network.unit, dimension=size, neighbours=kind)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=self.steps)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        network = Network(self, data.facts.domain)
        pace = float(self.rate * network.unit / public_size(data.facts))
        weights = network.start()
        for _ in range(self.steps):
            noise = self.noise.draw((network.dimension,), unit=network.unit, rng=rng)
            noisy = data.exact_sum(network.at(weights)) + noise
            weights = np.clip(weights - pace * noisy, -_BOX, _BOX)
        return network.released(weights)


class Network:
    """The integer passes of a network: what one row adds to the sum of the gradients, and the sum over a batch.

    unit    what one integer of the sum is worth: clip / 2^29
    shapes  (units, inputs) of each layer; hidden layers hand on one more input, constantly 1
    lift    the power of two that a row's integers are multiplied by so that their bound is in [2^15, 2^16)
    """

    def __init__(self, mechanism: NeuralDescent, domain: Domain) -> None:
        self.features, self.target, self.domain = mechanism.features, mechanism.target, domain
        self.shapes = layout(mechanism.features, mechanism.target, mechanism.hidden, domain)
        self.dimension = sum(units * inputs for units, inputs in self.shapes)
        self.lift = 16 - math.isqrt(mechanism.features.bound_squared(domain)).bit_length()
        self.unit = mechanism.clip / _LONGEST
        self.raw = float(Fraction(1, _ONE * STEPS) / self.unit)  # a product of a signal and an input, in units
        self.seed = mechanism.seed

    def sensitivity(self, facts: Facts) -> Sensitivity:
        added, replaced = (lengths(times**2 * _LONGEST**2, self.dimension) for times in (1, 2))
        return of_persons(facts.neighbours, added=added, replaced=replaced)

    def start(self) -> Floats:
        """Public weights: uniform and so large that pre-activations are about 1; 0 for the last layer."""
        rng, layers = SeededRng(self.seed), []
        for place, (units, inputs) in enumerate(self.shapes[:-1]):
            length = 8.0 if place == 0 else math.sqrt(inputs)
            uniform = rng.integers(2**16 + 1, units * inputs) * 2.0**-15 - 1.0
            layers.append(uniform * math.sqrt(3) / length)
        return np.concatenate([*layers, np.zeros(math.prod(self.shapes[-1]))])

    def released(self, weights: Floats) -> Floats:
        """The weights for rows in the units of the features: only the first layer's change."""
        scaled, first = weights.copy(), math.prod(self.shapes[0])
        scaled[:first] *= float(Fraction(2) ** self.lift / _ONE / self.features.unit(self.domain))
        return scaled

    def at(self, weights: Floats) -> Callable[[Batch], IntArray]:
        """The function of a batch whose sum is the sum of the cut gradients at these weights."""
        return functools.partial(self._summed, split(np.rint(weights * _WEIGHT), self.shapes))

    def _summed(self, layers: list[Floats], batch: Batch) -> IntArray:
        total = np.zeros(self.dimension, dtype=np.int64)
        for rows, labels in self.blocks(batch):
            inputs, signals = self.parts(rows, labels, layers)
            sums = [(signal.T @ given).ravel() for signal, given in zip(signals, inputs, strict=True)]
            total += np.concatenate(sums).astype(np.int64)
        return total

    def parts(self, rows: Floats, labels: Ints, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """For each layer the rows' inputs and their signals, scaled so that every row's part is within the clip."""
        inputs, margins = _forward(rows, layers)
        signals = _backward(class_slopes(margins / _BIN, labels, _exp_table()), inputs, layers)
        return inputs, _cut(inputs, signals, self.raw)

    def blocks(self, batch: Batch) -> Iterator[tuple[Floats, Ints]]:
        """Rows' integer vectors as exact floats with their labels, some at a time, at least once."""
        most = max(1, _BLOCK // max(max(shape) for shape in self.shapes))
        for rows, part in blocks(self.features, batch, most):
            labels = batch.stored(self.target)[part].astype(np.int64)
            yield (np.trunc(rows * 2.0**self.lift) if self.lift else rows.copy()), labels


def layout(features: Features, target: str, hidden: tuple[int, ...], domain: Domain) -> Shapes:
    """The shapes of the layers' matrices, (units, inputs), first layer first: public."""
    column = domain.column(target)
    if not column.categorical or column.size < 2:
        raise ParameterError(f"a network needs a target with at least 2 declared classes; {target!r} is {column!r}")
    if column.size > _WIDEST:
        raise ParameterError(f"a network has at most {_WIDEST} classes; {target!r} has {column.size}")
    widths = (features.dimension(domain), *hidden, column.size)
    shapes = tuple((widths[i + 1], widths[i] + (i > 0)) for i in range(len(widths) - 1))
    if sum(map(math.prod, shapes)) > _MOST_WEIGHTS:
        raise ParameterError(f"a network has at most 2**26 weights, these layers have {sum(map(math.prod, shapes))}")
    return shapes


def split(weights: Floats, shapes: Shapes) -> list[Floats]:
    """The flat weights as one matrix for each layer."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(weights, ends), shapes, strict=True)]


def predict_scores(weights: Floats, rows: Floats, shapes: Shapes) -> Floats:
    """The softmax's margins, one column for each class, for public rows: the coordinates that `features.names` lists,
    in the units of the features (the intercept too)."""
    *hidden, last = split(np.asarray(weights, dtype=np.float64), shapes)
    active = np.asarray(rows, dtype=np.float64)
    for layer in hidden:
        active = np.column_stack([np.tanh(active @ layer.T), np.ones(len(active))])
    return np.asarray(active @ last.T)


def promise(mechanism: NeuralDescent, facts: Facts) -> Promise:
    return Promise(None, f"{mechanism.steps} noisy steps on a network", "the risk of a neural network is not convex")


def propose(
    features: Features, target: str, hidden: tuple[int, ...], *, facts: Facts, funds: Funds, seed: int = 0
) -> NeuralDescent:
    """The descent with the least noise that is admitted; clip, steps and rate by a public rule.

    Let the noise of a step have the deviation v on each coordinate of the mean gradient. T steps of a rate r move each
    weight by noise of deviation r v sqrt(T), which the rule makes 1/5; with delta > 0, v grows like sqrt(T), so this
    fixes the sum of the rates, r T, and T is taken so that r is 1/k, k rows per person, within 50 to 400 (100 for the
    largest tables); r is never more than 1/k, where descents begin to oscillate: the mean gradient is a sum over up to
    k n rows divided by n. The numbers were fixed on scikit-learn's digits and on two kinds of made-up rows, a network's
    classes and shells of a normal law.
    """
    fastest = _FASTEST / facts.neighbours.rows

    def least(kind: type[Noise], steps: int) -> NeuralDescent:
        start = functools.partial(NeuralDescent, features, target, hidden, _CLIP)
        return calibrate(lambda scale: start(kind(scale), steps, fastest, seed), funds=funds, facts=facts)

    def deviation(mechanism: NeuralDescent) -> float:
        """Of the noise on one coordinate of the mean gradient."""
        return math.sqrt(mechanism.noise.variance()) / public_size(facts)

    shapes = layout(features, target, _layer_widths(hidden), facts.domain)
    work = public_size(facts) * facts.neighbours.rows * sum(map(math.prod, shapes))
    most = min(_MOST, max(100, _WORK // work))
    try:
        one = deviation(least(GaussianNoise, 1))
        best = least(GaussianNoise, min(most, max(_FEWEST, math.ceil(_SHAKEN / (one * fastest)))))
    except ParameterError:  # there is no delta
        best = least(ProductLaplaceNoise, _FEWEST)
    rate = Fraction(f"{_SHAKEN / deviation(best) / math.sqrt(best.steps):.6g}")
    return dataclasses.replace(best, rate=min(fastest, max(_SLOWEST, rate)))


def _forward(rows: Floats, layers: list[Floats]) -> tuple[list[Floats], Floats]:
    """The inputs of every layer, and the margins of the classes."""
    table, inputs = _tanh_table(), [rows]
    for layer in layers[:-1]:
        bins = inputs[-1] @ layer.T
        bins *= 1 / _BIN
        bins += _BIN
        active = np.empty((len(rows), len(layer) + 1))
        active[:, :-1] = table[np.clip(bins, 0, 2 * _BIN - 1, out=bins).astype(np.int32)]
        active[:, -1] = _ONE
        inputs.append(active)
    return inputs, inputs[-1] @ layers[-1].T


def _backward(missed: Floats, inputs: list[Floats], layers: list[Floats]) -> list[Floats]:
    """The signals of every layer, first layer first. The slope of tanh is 1 - tanh^2, in integers of STEPS."""
    signals = [missed]
    for active, layer in zip(reversed(inputs[1:]), reversed(layers[1:]), strict=True):
        back = signals[0] @ layer[:, :-1]
        back *= 1 / _WEIGHT
        np.clip(np.trunc(back, out=back), -_LOUDEST, _LOUDEST, out=back)
        back *= STEPS - np.floor(active[:, :-1] ** 2 * (STEPS / _ONE**2))
        back *= 1 / STEPS
        signals.insert(0, np.trunc(back, out=back))
    return signals


def _cut(inputs: list[Floats], signals: list[Floats], raw: float) -> list[Floats]:
    """Signals whose products with the inputs are at most _LONGEST long in each row, cut towards zero.

    An input shorter than 8 counts as 8, so that squared signals stay below 2^53. The factor is a float, which privacy
    does not rest on: `_within` tests what came of it.
    """
    lengths = [np.maximum(_squares(given), 64.0) for given in inputs]
    whole = _total([_squares(signal) for signal in signals], lengths)
    factor = np.minimum(raw, _LONGEST * (1 - 2.0**-30) / np.sqrt(np.maximum(whole, 1.0)))
    scaled = [np.trunc(signal * factor[:, None]) for signal in signals]
    kept = _within([_squares(signal) for signal in scaled], lengths)
    for signal in scaled:
        signal[~kept] = 0.0
    return scaled


def _within(signals: list[Floats], inputs: list[Floats]) -> Mask:
    """Whether rows of these squared lengths have a part of at most _LONGEST, in exact integers.

    If the float total is at most 2^58, each signal's is at most 2^52 and so exact, and int64 holds the exact total.
    """
    plausible = _total(signals, inputs) <= _LONGEST**2
    pairs = zip((np.where(plausible, signal, 0.0) for signal in signals), inputs, strict=True)
    exactly = sum(signal.astype(np.int64) * given.astype(np.int64) for signal, given in pairs)
    return np.asarray(plausible & (exactly <= _LONGEST**2), dtype=bool)


def _total(signals: list[Floats], inputs: list[Floats]) -> Floats:
    return np.asarray(sum(signal * given for signal, given in zip(signals, inputs, strict=True)))


def _squares(rows: Floats) -> Floats:
    """The rows' sums of squares: exact if below 2^53, whatever the order of the additions, and at least 2^53 if not."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


@functools.lru_cache(maxsize=1)
def _tanh_table() -> Floats:
    """tanh in integers, for pre-activations from -8 to 8 in bins of 2^-12."""
    return np.asarray(np.rint(np.tanh((np.arange(-_BIN, _BIN) + 0.5) * 2.0**-12) * _ONE))


@functools.lru_cache(maxsize=1)
def _exp_table() -> Floats:
    """exp(-distance) in integers, for distances from 0 to 16 in bins of 2^-12."""
    return np.asarray(np.rint(np.exp(-np.arange(2**16) * 2.0**-12) * _EXP))


def _layer_widths(hidden: object) -> tuple[int, ...]:
    if not isinstance(hidden, (tuple, list)) or not 1 <= len(hidden) <= _DEEPEST:
        raise ParameterError(f"hidden must be a tuple of 1 to {_DEEPEST} widths, found {hidden!r}")
    widths = tuple(exact.whole(hidden=width) for width in hidden)
    if max(widths) > _WIDEST:
        raise ParameterError(f"a hidden layer has at most {_WIDEST} units, found {max(widths)}")
    return widths


def _moderate(name: str, value: Fraction) -> Fraction:
    if not _SLOWEST <= value <= 1 / _SLOWEST:
        raise ParameterError(f"{name} must lie between 2**-40 and 2**40, found {exact.shown(value)}")
    return value
