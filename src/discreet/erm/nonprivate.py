"""Solvers without privacy, on plain arrays: what a private solution is measured against.

For public or made-up data only. Nothing here knows a dataset, a ledger or noise, and nothing here may be told about
people: an exact minimiser shows the rows it was computed from.

    risk_value       L(w): the mean loss of the rows plus the regularizer
    risk_gradient    its gradient, or a subgradient where it has corners
    descend          projected gradient descent as lecture 10 writes it, with every iterate
    minimiser        the least value over a feasible set, with a proof of how close it is
    accelerated      the solver behind it for smooth risks; it sees gradients only

X holds the rows' vectors; y numbers, or the codes of the classes (for two classes 0 and 1, 1 the positive one).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.arrays import Floats
from discreet.erm.feasible_sets import Ball, BallBox, Box, FeasibleSet, shrink
from discreet.erm.losses import Custom, Hinge, Loss, Pinball, Softmax
from discreet.erm.risk import Lasso, Ridge
from discreet.errors import ParameterError

Labels = npt.NDArray[np.int64] | Floats
Regularizer = Ridge | Lasso | None
Gradient = Callable[[Floats], Floats]


def risk_value(loss: Loss, X: Floats, y: Labels, w: Floats, regularizer: Regularizer = None) -> float:  # noqa: N803
    """The mean loss of the rows at w, plus the regularizer; of no rows the regularizer alone."""
    if isinstance(loss, Custom):
        raise ParameterError("a custom gradient has no value")
    extra = 0.0 if regularizer is None else regularizer.value(w)
    if not len(X):
        return extra
    if isinstance(loss, Softmax):
        return float(loss.value(_margins(loss, X, w), y.astype(np.int64)).mean()) + extra
    return float(loss.value(_missed(loss, X, y, w)).mean()) + extra


def risk_gradient(loss: Loss, X: Floats, y: Labels, w: Floats, regularizer: Regularizer = None) -> Floats:  # noqa: N803
    """The gradient of `risk_value` at w; at a corner one of the subgradients."""
    if isinstance(loss, Custom):
        raise ParameterError("the gradient of a custom loss is its own function of single rows")
    strength = 0.0 if regularizer is None else float(regularizer.strength)
    extra = strength * (np.sign(w) if isinstance(regularizer, Lasso) else w)
    if not len(X):
        return np.asarray(extra)
    if isinstance(loss, Softmax):
        missed = loss.probability(_margins(loss, X, w))
        missed[np.arange(len(X)), y.astype(np.int64)] -= 1
        return np.asarray((missed.T @ X).ravel() / len(X) + extra)
    slopes = loss.slope(_missed(loss, X, y, w))
    return np.asarray(X.T @ (slopes * _sign(loss, y)) / len(X) + extra)


def descend(
    loss: Loss,
    X: Floats,  # noqa: N803
    y: Labels,
    feasible: FeasibleSet,
    *,
    start: Floats,
    rate: float,
    steps: int,
    regularizer: Regularizer = None,
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


def minimiser(loss: Loss, X: Floats, y: Labels, feasible: FeasibleSet, regularizer: Regularizer = None) -> Minimum:  # noqa: N803
    """The least value of `risk_value` over the feasible set, to about the last digits of a float.

    One dimension: bisection on the subgradient, to neighbouring floats. Smooth losses: `accelerated`, the gap from the
    gradient mapping. Losses with corners: an interior-point method, the gap from its dual solution.
    """
    width = X.shape[1]
    dimension = width * loss.classes if isinstance(loss, Softmax) else width
    start = _inside(feasible, dimension)
    if dimension == 1:
        return _bisected(loss, X, y, feasible, regularizer)
    if loss.curvature() is not None:
        return _smoothly(loss, X, y, feasible, regularizer, start)
    w, gap = _by_barrier(_pieces(loss, X, y, regularizer), feasible, start)
    return Minimum(w, risk_value(loss, X, y, w, regularizer), gap)


def _margins(loss: Softmax, X: Floats, w: Floats) -> Floats:  # noqa: N803
    return np.asarray(X @ w.reshape(loss.classes, X.shape[1]).T)


def _missed(loss: Loss, X: Floats, y: Labels, w: Floats) -> Floats:  # noqa: N803
    """The number u that the loss of a row depends on."""
    margins = X @ w
    return np.asarray(margins - y if loss.form == "difference" else _sign(loss, y) * margins)


def _sign(loss: Loss, y: Labels) -> Floats:
    return np.ones(len(y)) if loss.form == "difference" else np.asarray(2.0 * y - 1.0, dtype=np.float64)


# --- one dimension ----------------------------------------------------------------------------------------------------


def _bisected(loss: Loss, X: Floats, y: Labels, feasible: FeasibleSet, regularizer: Regularizer) -> Minimum:  # noqa: N803
    far = 2 * feasible.reach(1)
    low, high = (float(feasible.project(np.array([end]))[0]) for end in (-far, far))

    def slope(w: float) -> float:
        return float(risk_gradient(loss, X, y, np.array([w]), regularizer)[0])

    steepest = max(abs(slope(low)), abs(slope(high)))
    low, high = exact.narrow(lambda w: slope(w) >= 0, low, high)
    values = {w: risk_value(loss, X, y, np.array([w]), regularizer) for w in (low, high)}
    best = min(values, key=values.__getitem__)
    return Minimum(np.array([best]), values[best], steepest * (high - low))


# --- smooth risks -----------------------------------------------------------------------------------------------------


def _smoothly(
    loss: Loss,
    X: Floats,  # noqa: N803
    y: Labels,
    feasible: FeasibleSet,
    regularizer: Regularizer,
    start: Floats,
) -> Minimum:
    ridge = regularizer if isinstance(regularizer, Ridge) else None
    shrinkage = float(regularizer.strength) if isinstance(regularizer, Lasso) else 0.0
    curve, strength = loss.curvature(), 0.0 if ridge is None else float(ridge.strength)
    assert curve is not None
    steepest = curve * float(np.linalg.norm(X, 2)) ** 2 / max(1, len(X)) + strength
    rate = 1 / max(1e-300, steepest * (1 + 1e-9))
    enough = 1e-15 * max(1.0, risk_value(loss, X, y, start, regularizer)) / feasible.diameter(len(start))
    best, since = (math.inf, start), 0

    def step(ahead: Floats, slope: Floats) -> tuple[Floats, Floats]:
        found = shrink(feasible, ahead - rate * slope, rate * shrinkage)
        return found, (ahead - found) / rate

    def satisfied(found: Floats, pull: Floats) -> bool:
        nonlocal best, since
        size = float(np.linalg.norm(pull))
        since = 0 if size < best[0] / 2 else since + 1
        best = min(best, (size, found), key=lambda each: each[0])
        return size <= enough or since > 5_000  # not halved for so long: these are the last digits

    accelerated(lambda w: risk_gradient(loss, X, y, w, ridge), step, start, satisfied, limit=100_000)
    size, w = best
    return Minimum(w, risk_value(loss, X, y, w, regularizer), size * feasible.diameter(len(w)))


def accelerated(
    gradient: Gradient,
    step: Callable[[Floats, Floats], tuple[Floats, Floats]],
    start: Floats,
    satisfied: Callable[[Floats, Floats], bool],
    *,
    limit: int,
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
        found, pull = step(ahead, gradient(ahead))
        if satisfied(found, pull):
            return found, True
        if float(pull @ (found - w)) > 0:
            momentum = 1.0
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = found + (momentum - 1) / grown * (found - w)
        w, momentum = found, grown
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


def _pieces(loss: Loss, X: Floats, y: Labels, regularizer: Regularizer) -> _Pieces:  # noqa: N803
    rows, width = X.shape
    weight, ridge = np.full(rows, 1 / max(1, rows)), 0.0
    if isinstance(loss, Hinge):
        one, one_at, two, two_at = -_sign(loss, y)[:, None] * X, np.ones(rows), 0 * X, np.zeros(rows)
    else:
        up, down = (float(1 - loss.q), -float(loss.q)) if isinstance(loss, Pinball) else (1.0, -1.0)
        one, one_at, two, two_at = up * X, np.asarray(-up * y), down * X, np.asarray(-down * y)
    if isinstance(regularizer, Ridge):
        ridge = float(regularizer.strength)
    if isinstance(regularizer, Lasso):
        weight = np.concatenate([weight, np.full(width, float(regularizer.strength))])
        one, two = np.concatenate([one, np.eye(width)]), np.concatenate([two, -np.eye(width)])
        one_at, two_at = np.concatenate([one_at, np.zeros(width)]), np.concatenate([two_at, np.zeros(width)])
    return _Pieces(weight, one, one_at, two, two_at, ridge)


def _by_barrier(problem: _Pieces, feasible: FeasibleSet, start: Floats) -> tuple[Floats, float]:
    """Interior-point method: each maximum c max(a, b) becomes the least of c t - m log((t - a)(t - b)) over t, the set
    a barrier of weight m; m falls to nothing. m / (t - a) is the share of `a` in the dual solution: as the last Newton
    step predicts it, for the step itself may be finer than floats resolve."""
    w, best, bound = start, start, -math.inf
    for weight in _falling(problem.value(start)):
        before = math.inf
        for _ in range(60):
            soft = _softened(problem, w, weight)
            step, decrement = _newton_step(problem, soft, feasible, w, weight)
            if not decrement > 1e-12 or before / 2 < decrement < 0.1:  # the floats hold no more
                break
            before = decrement
            step = step / (1 + math.sqrt(decrement)) if decrement > 0.1 else step
            while not _strictly_inside(feasible, w + step):
                step = step / 2
            w = w + step
        bound = max(bound, problem.lower_bound(soft.predicted(problem, step), feasible))
        best = min(best, w, key=problem.value)
        if problem.value(best) - bound <= 1e-14 * max(1.0, problem.value(best)):
            break
    return best, max(0.0, problem.value(best) - bound)


def _falling(scale: float) -> Iterator[float]:
    weight = max(scale, 1e-3)
    while weight > 1e-16 * max(scale, 1e-3):
        yield weight
        weight /= 4


@dataclass(frozen=True, slots=True)
class _Softened:
    """The softened maxima at a point: the share of the first part in each, and how fast it grows with that part."""

    share: Floats
    stiffness: Floats

    def predicted(self, problem: _Pieces, step: Floats) -> Floats:
        """The shares after a step, were they linear."""
        grown = self.share + self.stiffness * ((problem.one - problem.two) @ step)
        return np.clip(grown, 0, problem.weight)


def _softened(problem: _Pieces, w: Floats, weight: float) -> _Softened:
    first, second = problem.heights(w)
    half, soft = (first - second) / 2, weight / problem.weight
    root = np.hypot(soft, half)
    above = np.where(half > 0, soft + soft**2 / (root + np.abs(half)), soft + root - half)  # t - first, no cancelling
    falls = np.where(half > 0, soft**2 / (root * (root + np.abs(half))), 1 - half / root)  # 1 - d(t - mean)/d half
    return _Softened(weight / above, weight * falls / above**2 / 2)


def _newton_step(
    problem: _Pieces, soft: _Softened, feasible: FeasibleSet, w: Floats, weight: float
) -> tuple[Floats, float]:
    """The step, and its squared length in the metric of the barrier."""
    wall_slope, wall_curve = _wall(feasible, w)
    slope = soft.share @ problem.one + (problem.weight - soft.share) @ problem.two
    slope = slope + problem.ridge * w + weight * wall_slope
    turn = problem.one - problem.two
    curve = (turn * soft.stiffness[:, None]).T @ turn + problem.ridge * np.eye(len(w)) + weight * wall_curve
    size = 1 / np.sqrt(np.diag(curve))  # brings the diagonal to 1: curvatures differ by many orders
    step = -size * np.linalg.lstsq(curve * np.outer(size, size), size * slope, rcond=1e-18)[0]
    return np.asarray(step), -float(step @ slope) / weight


def _wall(feasible: FeasibleSet, w: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian of -log of the distances to the walls of the set."""
    slope, curve = np.zeros(len(w)), np.zeros((len(w), len(w)))
    if not isinstance(feasible, Ball):
        low, high = _sides(feasible, len(w))
        slope += 1 / (high - w) - 1 / (w - low)
        curve += np.diag(1 / (high - w) ** 2 + 1 / (w - low) ** 2)
    if not isinstance(feasible, Box):
        left = float(feasible.radius) ** 2 - float(w @ w)
        slope += 2 * w / left
        curve += 2 / left * np.eye(len(w)) + 4 / left**2 * np.outer(w, w)
    return slope, curve


def _strictly_inside(feasible: FeasibleSet, w: Floats) -> bool:
    if not isinstance(feasible, Ball):
        low, high = _sides(feasible, len(w))
        if not (np.all(w > low) and np.all(w < high)):
            return False
    return isinstance(feasible, Box) or float(w @ w) < float(feasible.radius) ** 2


def _inside(feasible: FeasibleSet, dimension: int) -> Floats:
    """A point of the interior."""
    feasible.span(dimension)  # says what is wrong if the set has another dimension
    if isinstance(feasible, Ball):
        return np.zeros(dimension)
    low, high = _sides(feasible, dimension)
    middle = (low + high) / 2
    if isinstance(feasible, Box):
        return np.asarray(middle)
    return np.asarray(middle * min(1.0, float(feasible.radius) / 2 / max(1e-300, float(np.linalg.norm(middle)))))


def _farthest(feasible: FeasibleSet, direction: Floats) -> Floats:
    """The point of the set that is farthest in this direction."""
    length = float(np.linalg.norm(direction))
    if length == 0:
        return feasible.project(direction)
    if isinstance(feasible, Ball):
        return direction * (float(feasible.radius) / length)
    low, high = _sides(feasible, len(direction))
    corner = np.where(direction > 0, high, np.where(direction < 0, low, feasible.project(0 * direction)))
    if isinstance(feasible, Box) or feasible.contains(corner):
        return np.asarray(corner)
    # The farthest point is clip(t * direction) at the t where it leaves the ball: past that the ball binds.
    large, radius = float(np.abs(corner).max() / np.abs(direction[direction != 0]).min()), feasible.radius
    times = exact.most(lambda t: float(np.linalg.norm(np.clip(t * direction, low, high))) <= radius, 0.0, large)
    return np.clip(times * direction, low, high)


def _sides(feasible: Box | BallBox, dimension: int) -> tuple[Floats, Floats]:
    low, high = ([float(side) for side in sides] for sides in (feasible.low, feasible.high))
    return np.broadcast_to(low, (dimension,)), np.broadcast_to(high, (dimension,))
