# ruff: noqa: N803
"""Solvers without privacy, on plain arrays: what a private solution is measured against.

For public or made-up data only. Nothing here knows a dataset, a ledger or noise, and nothing here may be told about
people: an exact minimiser shows the rows it was computed from.

    risk_value       L(w): the mean loss of the rows plus the regularizer
    risk_gradient    its gradient, or a subgradient where it has corners
    descend          projected gradient descent as lecture 10 writes it, with every iterate
    minimiser        the least value over a feasible set, with a proof of how close it is
    accelerated      the solver behind it for smooth risks; it sees gradients only

X holds the rows' vectors; y numbers, or the codes of the classes: for two classes 0 and 1 (or booleans), or -1 and 1 as
lectures write them, 1 the positive one; for m classes 0 to m - 1. Other labels are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.core import Floats, ParameterError, exact
from discreet.erm import FeasibleSet, Loss, Regularizer, ScalarLoss, Targets

Gradient = Callable[[Floats], Floats]
Step = Callable[[Floats, Floats], tuple[Floats, Floats]]  # of a point and the gradient there


def risk_value(loss: Loss, X: Floats, y: Targets, w: Floats, regularizer: Regularizer | None = None) -> float:
    """The mean loss of the rows at w, plus the regularizer; of no rows the regularizer alone."""
    values = loss.row_values(_margins(X, w), targets(loss, y))
    return (float(values.mean()) if len(X) else 0.0) + (regularizer or Regularizer()).value(w)


def risk_gradient(loss: Loss, X: Floats, y: Targets, w: Floats, regularizer: Regularizer | None = None) -> Floats:
    """The gradient of `risk_value` at w; at a corner one of the subgradients."""
    slopes = loss.row_slopes(_margins(X, w), targets(loss, y))
    penalty = (regularizer or Regularizer()).gradient(w)
    return np.asarray((slopes.T @ X).ravel() / max(1, len(X)) + penalty)


def targets(loss: Loss, y: Targets) -> Targets:
    """The targets as the loss reads them: of two classes the codes 0 and 1, also where y says -1 and 1."""
    if loss.form not in ("margin", "classes") or not len(y):
        return y
    found, classes = np.asarray(y), max(2, loss.margins)
    codes = found.astype(np.float64) if found.dtype.kind in "biuf" else np.full(len(found), np.nan)
    if classes == 2 and codes.min() == -1:
        codes = np.where(codes == -1, 0.0, np.where(codes == 1, 1.0, np.nan))
    if not (np.isin(codes, np.arange(classes))).all():
        raise ParameterError(
            f"the labels of a loss of {classes} classes must be "
            f"{'0 and 1, or -1 and 1' if classes == 2 else f'0 to {classes - 1}'}; found others",
            argument="y",
        )
    return codes.astype(np.int64)


def _margins(X: Floats, w: Floats) -> Floats:
    """One column for each margin; w holds their coordinates one after the other."""
    return np.asarray(X @ w.reshape(-1, X.shape[1]).T) if X.shape[1] else np.zeros((len(X), 1))


def descend(
    loss: Loss,
    X: Floats,
    y: Targets,
    feasible: FeasibleSet,
    *,
    start: Floats,
    rate: float,
    steps: int,
    regularizer: Regularizer | None = None,
) -> Floats:
    """Projected gradient descent (lecture 10): the iterates w_0 = start, w_1, ..., w_T, one a row.

    g_t = grad L(w_(t-1)), u_t = w_(t-1) - rate * g_t, w_t = projection of u_t. The lecture returns the mean of
    w_1, ..., w_T, here `descend(...)[1:].mean(axis=0)`.

    Theorem.   L convex with gradients of length at most G, R >= |w_0 - w*|, rate = R / (G sqrt T): the mean of w_0 to
               w_(T-1) has excess risk at most R G / sqrt T; with R the diameter of the set so has that of w_1 to w_T.
    Reference. Lecture 10, theorem 1.
    """
    iterates = [np.asarray(start, dtype=np.float64)]
    for _ in range(steps):
        gradient = risk_gradient(loss, X, y, iterates[-1], regularizer)
        iterates.append(feasible.project(iterates[-1] - rate * gradient))
    return np.array(iterates)


@dataclass(frozen=True, slots=True)
class Minimum:
    """A point of the feasible set and its value, which exceeds the least value by at most `gap` (floats allowing)."""

    w: Floats
    value: float
    gap: float


def minimiser(
    loss: Loss, X: Floats, y: Targets, feasible: FeasibleSet, regularizer: Regularizer | None = None
) -> Minimum:
    """The least value of `risk_value` over the feasible set, to about the last digits of a float.

    One dimension: bisection on the subgradient, to neighbouring floats. Smooth losses: `accelerated`, the gap from the
    gradient mapping. Losses with corners: an interior-point method, the gap from its dual solution.
    """
    dimension, penalty, y = X.shape[1] * loss.margins, regularizer or Regularizer(), targets(loss, y)

    def value(w: Floats) -> float:
        return risk_value(loss, X, y, w, penalty)

    start = _inside(feasible, dimension)
    if dimension == 1:
        return _bisected(value, lambda w: risk_gradient(loss, X, y, w, penalty), feasible)
    if loss.curvature() is not None:
        w, gap = _smoothly(loss, X, y, feasible, penalty, start)
    else:
        w, gap = _by_barrier(_pieces(loss, X, y, penalty), feasible, start)
    return Minimum(w, value(w), gap)


def _bisected(value: Callable[[Floats], float], gradient: Gradient, feasible: FeasibleSet) -> Minimum:
    far = 2 * feasible.reach(1)
    low, high = (float(feasible.project(np.array([end]))[0]) for end in (-far, far))

    def slope(w: float) -> float:
        return float(gradient(np.array([w]))[0])

    steepest = max(abs(slope(low)), abs(slope(high)))
    low, high = exact.narrow(lambda w: slope(w) >= 0, low, high)
    best = min((np.array([end]) for end in (low, high)), key=value)
    return Minimum(best, value(best), steepest * (high - low))


# --- smooth risks -----------------------------------------------------------------------------------------------------


def _smoothly(
    loss: Loss, X: Floats, y: Targets, feasible: FeasibleSet, penalty: Regularizer, start: Floats
) -> tuple[Floats, float]:
    ridge, lasso = (penalty, 0.0) if penalty.ridge else (Regularizer(), float(penalty.lasso))
    steepest = (loss.curvature() or 0.0) * float(np.linalg.norm(X, 2)) ** 2 / max(1, len(X)) + float(penalty.ridge)
    rate = 1 / max(1e-300, steepest * (1 + 1e-9))
    diameter = feasible.diameter(len(start))
    enough = 1e-15 * max(1.0, risk_value(loss, X, y, start, penalty)) / diameter
    best, since = (math.inf, start), 0

    def step(ahead: Floats, slope: Floats) -> tuple[Floats, Floats]:
        end = feasible.shrink(ahead - rate * slope, rate * lasso)
        return end, (ahead - end) / rate

    def satisfied(end: Floats, pull: Floats) -> bool:
        nonlocal best, since
        size = float(np.linalg.norm(pull))
        since = 0 if size < best[0] / 2 else since + 1
        best = min(best, (size, end), key=lambda pair: pair[0])
        return size <= enough or since > 5_000  # not halved for this long: these are the last digits

    accelerated(lambda w: risk_gradient(loss, X, y, w, ridge), step, start, satisfied, limit=100_000)
    return best[1], best[0] * diameter


def accelerated(
    gradient: Gradient, step: Step, start: Floats, satisfied: Callable[[Floats, Floats], bool], *, limit: int
) -> tuple[Floats, bool]:
    """Accelerated descent with restarts: momentum is added to every step, and dropped whenever it points uphill.

    step       from a point and the gradient there to the least point of a quadratic upper bound on the risk, and the
               pull of that step: minus the slope that it found, with what the set and the regularizer add to it
    satisfied  of a new point and the pull that led there: whether to end; after `limit` gradients it ends anyway

    Returns the last point and whether it satisfied.
    Reference. [BT09]; restarts [OC15].
    """
    w = ahead = start
    momentum = 1.0
    for _ in range(limit):
        end, pull = step(ahead, gradient(ahead))
        if satisfied(end, pull):
            return end, True
        if float(pull @ (end - w)) > 0:
            momentum = 1.0
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = end + (momentum - 1) / grown * (end - w)
        w, momentum = end, grown
    return w, False


# --- risks with corners -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pieces:
    """sum_i weight_i max(<one_i, w> + one_at_i, <two_i, w> + two_at_i) + (ridge / 2) |w|^2."""

    weight: Floats
    one: Floats
    one_at: Floats
    two: Floats
    two_at: Floats
    ridge: float

    def heights(self, w: Floats) -> tuple[Floats, Floats]:
        return self.one @ w + self.one_at, self.two @ w + self.two_at

    def value(self, w: Floats) -> float:
        return float(self.weight @ np.maximum(*self.heights(w))) + self.ridge / 2 * float(w @ w)

    def lower_bound(self, share: Floats, feasible: FeasibleSet) -> float:
        """The least value over the set after each maximum gave way to a mean of its two parts: weak duality."""
        other = self.weight - share
        at = float(share @ self.one_at + other @ self.two_at)
        slope = share @ self.one + other @ self.two
        w = feasible.project(-slope / self.ridge) if self.ridge else _farthest(feasible, -slope)
        return at + float(slope @ w) + self.ridge / 2 * float(w @ w)


def _pieces(loss: Loss, X: Floats, y: Targets, penalty: Regularizer) -> _Pieces:
    """The mean loss as a sum of maxima; lasso adds one for each coordinate."""
    assert isinstance(loss, ScalarLoss)
    rows, width = X.shape
    shift, sign = (np.broadcast_to(part, (rows,)) for part in loss.miss(y))
    weight, lasso = np.full(rows, 1 / max(1, rows)), float(penalty.lasso)
    lines = ((slope * sign[:, None] * X, slope * shift + height) for slope, height in loss.pieces)
    (one, one_at), (two, two_at) = lines
    if lasso:
        weight = np.concatenate([weight, np.full(width, lasso)])
        one, two = np.concatenate([one, np.eye(width)]), np.concatenate([two, -np.eye(width)])
        one_at, two_at = (np.concatenate([at, np.zeros(width)]) for at in (one_at, two_at))
    return _Pieces(weight, one, one_at, two, two_at, float(penalty.ridge))


def _by_barrier(problem: _Pieces, feasible: FeasibleSet, start: Floats) -> tuple[Floats, float]:
    """Interior-point method: each maximum c max(a, b) becomes the least of c t - m log((t - a)(t - b)) over t, the set
    a barrier of weight m; m falls to nothing. m / (t - a) is the share of `a` in the dual solution: as the last Newton
    step predicts it, for the step itself may be finer than floats resolve."""
    w, best, bound = start, start, -math.inf
    largest = max(problem.value(start), 1e-3)
    weight, turn = largest, problem.one - problem.two
    while weight > 1e-16 * largest:
        before = math.inf
        for _ in range(60):
            share, stiffness = _softened(problem, w, weight)
            step, decrement = _newton_step(problem, share, stiffness, feasible, w, weight)
            if not decrement > 1e-12 or before / 2 < decrement < 0.1:  # the floats hold no more
                break
            before = decrement
            step = step / (1 + math.sqrt(decrement)) if decrement > 0.1 else step
            while not _strictly_inside(feasible, w + step):
                step = step / 2
            w = w + step
        predicted = np.clip(share + stiffness * (turn @ step), 0, problem.weight)  # the shares, were they linear
        bound = max(bound, problem.lower_bound(predicted, feasible))
        best = min(best, w, key=problem.value)
        if problem.value(best) - bound <= 1e-14 * max(1.0, problem.value(best)):
            break
        weight /= 4
    return best, max(0.0, problem.value(best) - bound)


def _softened(problem: _Pieces, w: Floats, weight: float) -> tuple[Floats, Floats]:
    """The softened maxima at a point: the share of the first part in each, and how fast it grows with that part."""
    first, second = problem.heights(w)
    half, soft = (first - second) / 2, weight / problem.weight
    root = np.hypot(soft, half)
    above = np.where(half > 0, soft + soft**2 / (root + np.abs(half)), soft + root - half)  # t - first, no cancelling
    falls = np.where(half > 0, soft**2 / (root * (root + np.abs(half))), 1 - half / root)  # 1 - d(t - mean)/d half
    return weight / above, weight * falls / above**2 / 2


def _newton_step(
    problem: _Pieces, share: Floats, stiffness: Floats, feasible: FeasibleSet, w: Floats, weight: float
) -> tuple[Floats, float]:
    """The step, and its squared length in the metric of the barrier: -log of the distances to the walls of the set."""
    turn, eye = problem.one - problem.two, np.eye(len(w))
    slope = share @ problem.one + (problem.weight - share) @ problem.two + problem.ridge * w
    curve = (turn * stiffness[:, None]).T @ turn + problem.ridge * eye
    if feasible.box is not None:
        low, high = feasible.corners()
        slope = slope + weight * (1 / (high - w) - 1 / (w - low))
        curve += weight * np.diag(1 / (high - w) ** 2 + 1 / (w - low) ** 2)
    if feasible.ball is not None:
        room = float(feasible.ball) ** 2 - float(w @ w)
        slope = slope + weight * 2 * w / room
        curve += weight * (2 / room * eye + 4 / room**2 * np.outer(w, w))
    size = 1 / np.sqrt(np.diag(curve))  # brings the diagonal to 1: curvatures differ by many orders
    step = -size * np.linalg.lstsq(curve * np.outer(size, size), size * slope, rcond=1e-18)[0]
    return np.asarray(step), -float(step @ slope) / weight


def _strictly_inside(feasible: FeasibleSet, w: Floats) -> bool:
    low, high = feasible.corners()
    in_ball = feasible.ball is None or float(w @ w) < float(feasible.ball) ** 2
    return in_ball and bool(np.all(w > low) and np.all(w < high))


def _inside(feasible: FeasibleSet, dimension: int) -> Floats:
    """A point of the interior."""
    feasible.span(dimension)  # says what is wrong if the set has another dimension
    middle = np.zeros(dimension)
    if feasible.box is not None:
        middle = np.broadcast_to(np.add(*feasible.corners()) / 2, (dimension,))
    half = math.inf if feasible.ball is None else float(feasible.ball) / 2
    return np.asarray(middle * min(1.0, half / max(1e-300, float(np.linalg.norm(middle)))))


def _farthest(feasible: FeasibleSet, direction: Floats) -> Floats:
    """The point of the set that is farthest in this direction."""
    length, radius = float(np.linalg.norm(direction)), feasible.ball
    if length == 0:
        return feasible.project(direction)
    if feasible.box is None:
        return direction * (float(radius or 0) / length)
    low, high = feasible.corners()
    corner = np.where(direction > 0, high, np.where(direction < 0, low, feasible.project(0 * direction)))
    if radius is None or feasible.contains(corner):
        return np.asarray(corner)
    # The farthest point is clip(t * direction) at the t where it leaves the ball: past that the ball binds.
    large = float(np.abs(corner).max() / np.abs(direction[direction != 0]).min())
    times = exact.most(lambda t: float(np.linalg.norm(np.clip(t * direction, low, high))) <= radius, 0.0, large)
    return np.clip(times * direction, low, high)
