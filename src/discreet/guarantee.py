"""What is promised: the neighbour relation, a budget, and the guarantee of a release.

A `Guarantee` bounds the privacy loss of one release in every currency that composes by addition:

    renyi     the Renyi divergence at each order of the grid ORDERS (ledgers outlive code: the grid never changes);
              each is computed when it is first asked for, since a ledger asks for one of them;
    pure      the divergence at order infinity, the epsilon of pure differential privacy, kept exact;
    failure   everything above holds outside an event of this probability. Precisely: for neighbours with output laws
              P and Q, P = (1-f) P' + f P'' and Q = (1-f) Q' + f Q'', and the bounds are about P' and Q' (for each
              direction, with one decomposition for all of them);
    gaussian  mu, when the release is exactly as private as telling N(0, 1) from N(mu, 1): adds in squares, and is
              forgotten when added to anything that is not Gaussian.

Only `epsilon` and `delta` leave these currencies, each by the best of three theorems: the tight Renyi conversion at
every order, pure privacy, and the exact Gaussian profile. They speak of this guarantee alone. A sequence of
mechanisms chosen while looking at earlier answers needs the ledger, which fixes one order beforehand (`choose_order`).

Rounding. Every float here is an upper bound. A curve's values are raised by SLACK = 1e-12 of themselves, far more than
its evaluation loses (each formula below is arranged so that nothing cancels), and by the smallest normal float, for
underflow; sums round up; a conversion is raised by SLACK of the sum of the absolute values of its terms; caps are
lowered likewise. A float that stands for an exact number is read as its shortest decimal, as everywhere in discreet:
of_pure(0.1).epsilon(0) is 0.1 and means one tenth. (Its multiples may then fall short by a unit in the last place; a
ledger adds a whole nano-unit to every Renyi price.)
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, overload

from discreet import exact
from discreet.display import Pairs, Sheet, Shown, round_up
from discreet.errors import ParameterError
from discreet.exact import Exact

ORDERS: tuple[float, ...] = (
    *(1.25, 1.5, 1.75),
    *(float(order) for order in range(2, 65)),
    *(72.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 224.0, 256.0, 320.0, 384.0, 448.0, 512.0),
    *(768.0, 1024.0, 1536.0, 2048.0, 4096.0),
)

SLACK = 1e-12
_TINY = sys.float_info.min
_HUGE = 1e300  # nothing promised beyond this is told apart from nothing promised
_KINDS = ("replace-one", "add-remove")
_DEEPEST = 100  # sums of sums of curves that are not computed yet
_DELTAS = (1e-5, 1e-6, 1e-9)  # that are shown
_USUAL = 1e-6


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which two tables must be hard to tell apart.

    kind  "replace-one": one person's rows are replaced by others; the number of persons is public.
          "add-remove": one person's rows are added or removed; the number of persons is private.
    rows  a person holds at most this many rows.
    """

    NAME: ClassVar[str] = "neighbours/1"
    kind: str
    rows: int = 1

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ParameterError(f'neighbours must be "replace-one" or "add-remove", found {self.kind!r}')
        object.__setattr__(self, "rows", exact.whole(rows=self.rows))

    @staticmethod
    def of(value: Neighbours | str) -> Neighbours:
        """The relation itself, or the one-row relation of this name."""
        return value if isinstance(value, Neighbours) else Neighbours(value)

    @property
    def replace_one(self) -> bool:
        return self.kind == "replace-one"

    def __str__(self) -> str:
        return self.kind if self.rows == 1 else f"{self.kind} ({self.rows} rows per person)"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Budget:
    """The promise (epsilon, delta): P[M(D) in E] <= e^epsilon P[M(D') in E] + delta for neighbours D, D' and events E.

    Edges.     epsilon > 0 and 0 <= delta < 1, exact; delta = 0 is pure differential privacy.
    Reference. [DMNS06], [DKMMN06].
    """

    NAME: ClassVar[str] = "budget/1"
    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exact, delta: Exact = 0) -> None:
        exact.freeze(self, epsilon=exact.positive(epsilon=epsilon), delta=_below_one(delta=delta))

    def __str__(self) -> str:
        return f"(epsilon {exact.shown(self.epsilon)}, delta {exact.shown(self.delta)})"

    def odds(self) -> str:
        """What it means to an attacker who knows all other rows: from even odds to at most e^epsilon : 1."""
        rest = 0.0 if self.epsilon > 30 else 100 / (1 + math.exp(self.epsilon))
        places = 0 if rest >= 5 else next((each for each in range(1, 12) if rest * 10**each >= 1), 12)
        sure = f"{100 - rest:.{places}f} : {rest:.{places}f}" if rest else "as good as sure"
        who = "an attacker who knows all other rows and thinks 50 : 50 about a person"
        return f"after all releases, {who} may come to think {sure}."

    def __repr__(self) -> str:
        return f"Budget({exact.shown(self.epsilon)}, {exact.shown(self.delta)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Share:
    """A part of what a ledger has left, where an epsilon is asked for: Mean(epsilon=Share("1/3"), ...)."""

    part: Fraction

    def __init__(self, part: Exact) -> None:
        exact.freeze(self, part=exact.writable(share=exact.positive(share=part)))
        if self.part > 1:
            raise ParameterError(f"share must be at most 1, found {exact.shown(self.part)}")

    def __str__(self) -> str:
        return f"{self.part} of what is left"

    def __repr__(self) -> str:
        return f'Share("{self.part}")'


class RenyiCurve(Sequence[float]):
    """The values of a Renyi curve at ORDERS, each computed when it is first looked at.

    Equal to the tuple of its values, and pickled as such.
    """

    __slots__ = ("_known", "_value", "depth")

    def __init__(self, value: Callable[[int], float], depth: int = 0) -> None:
        self._value, self._known, self.depth = value, dict[int, float](), depth

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[float]: ...
    def __getitem__(self, place: int | slice) -> float | Sequence[float]:
        if isinstance(place, slice):
            return tuple(self)[place]
        at = range(len(ORDERS))[place]
        if at not in self._known:
            self._known[at] = _at_least_zero(self._value(at))
        return self._known[at]

    def __len__(self) -> int:
        return len(ORDERS)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (RenyiCurve, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    @staticmethod
    def of(curves: Sequence[Sequence[float]], value: Callable[..., float]) -> RenyiCurve:
        """At every order this function of the curves' values there. A long chain of sums is computed on the way, so
        that no value is reached through more calls than Python allows."""
        depth = 1 + max(getattr(curve, "depth", 0) for curve in curves)
        if depth > _DEEPEST:
            curves, depth = [tuple(curve) for curve in curves], 1
        return RenyiCurve(lambda place: value(*(curve[place] for curve in curves)), depth)


def _at_least_zero(value: float) -> float:
    if not value >= 0:
        raise ParameterError(f"a Renyi curve has numbers >= 0, found {value!r}")
    return value


@dataclass(frozen=True, slots=True, repr=False)
class Guarantee(Shown):
    """An upper bound on the privacy loss of a release; see the module's docstring for its four parts.

    Theorem.   If A has guarantee a and, for every output of A, B has guarantee b, then (A, B) has guarantee a + b.
    Edges.     math.inf and None stand for "no such bound"; a failure of 1 or more promises nothing.
    Reference. [Mironov17] Prop. 1; [DRS22] Cor. 3.3 for Gaussians; failures: docs/proofs/composition.md.
    """

    neighbours: Neighbours
    renyi: Sequence[float] = field(repr=False)
    pure: Fraction | None
    failure: Fraction = Fraction(0)
    gaussian: float | None = None

    def __post_init__(self) -> None:
        if len(self.renyi) != len(ORDERS):
            raise ParameterError(
                f"a Renyi curve is {len(ORDERS)} numbers >= 0, one for each order, found {self.renyi!r}"
            )
        if isinstance(self.renyi, tuple):
            for value in self.renyi:
                _at_least_zero(value)
        if self.gaussian is not None and not self.gaussian >= 0:
            raise ParameterError(f"gaussian must be a number >= 0 or None, found {self.gaussian!r}")
        if self.pure is not None:
            object.__setattr__(self, "pure", exact.nonnegative(pure=self.pure))
        object.__setattr__(self, "failure", exact.nonnegative(failure=self.failure))

    def __repr__(self) -> str:
        proved = f"{_shown(self.epsilon(_USUAL))} at delta {_USUAL:g}"
        if self.pure is not None:
            proved = f"{_shown(self.pure)} (pure)"
        return f"<Guarantee: epsilon {proved}, {self.neighbours}{self._failing}>"

    @property
    def _failing(self) -> str:
        return f", outside an event of probability {_shown(self.failure)}" if self.failure else ""

    def sheet(self) -> Sheet:
        """The epsilon that is proved for some deltas."""
        pure = "none" if self.pure is None else f"{_shown(self.pure)}{self._failing}"
        rows = [(f"epsilon at delta {delta:g}", _shown(self.epsilon(delta))) for delta in _DELTAS]
        return Sheet.of(Pairs([("pure epsilon", pure), *rows, ("neighbours", self.neighbours)]))

    # Constructors: one for each theorem that prices a mechanism.

    @staticmethod
    def nothing(neighbours: Neighbours | str) -> Guarantee:
        """The guarantee of a release that does not look at the data: zero, the neutral element of +."""
        return Guarantee(Neighbours.of(neighbours), (0.0,) * len(ORDERS), Fraction(0), gaussian=0.0)

    @staticmethod
    def of_curve(
        curve: Callable[[float], float],
        *,
        neighbours: Neighbours | str,
        pure: Exact | None = None,
        failure: Exact = 0,
    ) -> Guarantee:
        """A Renyi curve, order -> value, right to within SLACK; with `pure`, capped by randomized response (`of_pure`).

        With a failure, curve and pure must hold for the same decomposition of the two laws.
        """
        relation, fails = Neighbours.of(neighbours), exact.nonnegative(failure=failure)
        if pure is None:
            return Guarantee(relation, RenyiCurve(lambda place: _raised(curve(ORDERS[place]))), None, fails)
        epsilon = exact.nonnegative(pure=pure)
        if epsilon == 0:
            return replace(Guarantee.nothing(relation), failure=fails)
        half, limit = float_up(epsilon / 2), float_up(epsilon)

        def capped(place: int) -> float:
            order = ORDERS[place]
            return min(limit, _raised(min(curve(order), _two_sided(order, shift=half, step=half))))

        return Guarantee(relation, RenyiCurve(capped), epsilon, fails)

    @staticmethod
    def of_pure(epsilon: Exact, *, neighbours: Neighbours | str) -> Guarantee:
        """Pure epsilon-DP.

        Theorem.   Every epsilon-DP pair is a post-processing of randomized response with that epsilon, so its Renyi
                   divergence is at most ln((e^(a epsilon) + e^((1-a) epsilon)) / (1 + e^epsilon)) / (a - 1), attained.
        Reference. [KOV15]; [BS16] Prop. 3.3.
        """
        return Guarantee.of_curve(_no_curve, neighbours=neighbours, pure=exact.nonnegative(epsilon=epsilon))

    @staticmethod
    def of_bounded_range(eta: Exact, *, neighbours: Neighbours | str) -> Guarantee:
        """A privacy loss whose range (max - min over outputs) is at most eta, as of the exponential mechanism.

        Theorem.   eta-bounded range is eta-DP and its Renyi divergence of order a is at most a eta^2 / 8.
        Reference. [DR19]; [CR21].
        """
        bound = exact.nonnegative(eta=eta)
        eighth = float_up(bound * bound / 8)
        return Guarantee.of_curve(lambda order: order * eighth, neighbours=neighbours, pure=bound)

    @staticmethod
    def of_zcdp(rho: Exact, *, neighbours: Neighbours | str) -> Guarantee:
        """rho-zCDP: the Renyi divergence of order a is at most a rho. Discrete Gaussian noise is of this kind.

        Reference. [BS16] Def. 1.1; [CKS20] Thm 4.
        """
        rate = exact.nonnegative(rho=rho)
        if rate == 0:
            return Guarantee.of_pure(0, neighbours=neighbours)
        slope = float_up(rate)
        return Guarantee.of_curve(lambda order: order * slope, neighbours=neighbours)

    @staticmethod
    def of_gaussian(mu: Exact, *, neighbours: Neighbours | str) -> Guarantee:
        """Exactly a continuous Gaussian, N(0, 1) against N(mu, 1): mu is L2 sensitivity over standard deviation.

        Theorem.   delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu); Renyi a mu^2 / 2.
        Edges.     Not for discrete Gaussian noise: that is of_zcdp(mu^2 / 2).
        Reference. [BW18] Thm 8.
        """
        separation = exact.nonnegative(mu=mu)
        base = Guarantee.of_zcdp(separation * separation / 2, neighbours=neighbours)
        return replace(base, gaussian=float_up(separation))

    @staticmethod
    def of_approximate(epsilon: Exact, *, delta: Exact, neighbours: Neighbours | str) -> Guarantee:
        """(epsilon, delta)-DP and nothing more: pure epsilon outside an event of probability delta.

        Theorem.   Laws P, Q that are (epsilon, delta)-close both ways decompose as (1-delta) P' + delta P'' and
                   (1-delta) Q' + delta Q'' with P', Q' epsilon-close both ways.
        Reference. [KOV15]; [MV16].
        """
        fails = _below_one(delta=delta)
        close = exact.nonnegative(epsilon=epsilon)
        return Guarantee.of_curve(_no_curve, neighbours=neighbours, pure=close, failure=fails)

    @staticmethod
    def of_laplace(shift: int, *, scale: Exact, neighbours: Neighbours | str) -> Guarantee:
        """Integers with L1 sensitivity `shift` plus discrete Laplace noise, P[k] proportional to e^(-|k|/scale).

        Theorem.   (shift/scale)-DP. With q = e^(-1/scale) and r = q^(2a-1), the Renyi divergence of order a is
                   ln(A e^((a-1) shift/scale) + B e^(-a shift/scale)) / (a - 1), A = (1-qr) / ((1+q)(1-r)), B = 1 - A,
                   attained by moving one coordinate by `shift`.
        Reference. docs/proofs/discrete_laplace_renyi.md; [GRS12]; continuous form [Mironov17] Prop. 6.
        """
        moved, width = exact.whole(minimum=0, shift=shift), exact.positive(scale=scale)
        half, step = float_up(moved / width / 2), float_up(1 / width / 2)
        curve = _no_curve if moved == 0 else lambda order: _two_sided(order, shift=half, step=step)
        return Guarantee.of_curve(curve, neighbours=neighbours, pure=moved / width)

    @staticmethod
    def of_product_laplace(
        l2_squared: int, *, l1: int, scale: Exact, dimension: int, neighbours: Neighbours | str
    ) -> Guarantee:
        """Integer vectors with squared L2 sensitivity `l2_squared` and L1 sensitivity `l1`, plus independent discrete
        Laplace noise of this scale in each of `dimension` coordinates (lecture 10, Theorem 3, with a right constant).

        Theorem.   (l1/scale)-DP. Let n = min(dimension, l1, l2_squared) and R_a(x) be of_laplace's curve, continued to
                   real shifts x. The Renyi divergence of order a is at most n R_a(sqrt(l2_squared / n)), which is at
                   most a l2_squared / (2 scale^2), and at most R_a(l1).
        Reference. docs/proofs/discrete_laplace_renyi.md.
        """
        squared, moved = exact.whole(minimum=0, l2_squared=l2_squared), exact.whole(minimum=0, l1=l1)
        width, parts = exact.positive(scale=scale), min(exact.whole(dimension=dimension), squared, moved)
        if moved == 0 or squared == 0:
            return Guarantee.of_pure(0, neighbours=neighbours)
        step, together = float_up(1 / width / 2), float_up(moved / width / 2)
        each = math.sqrt(float_up(Fraction(squared, parts) / width**2)) / 2

        def curve(order: float) -> float:
            spread = parts * _two_sided(order, shift=max(each, step), step=step)
            return min(spread, _two_sided(order, shift=together, step=step))

        return Guarantee.of_curve(curve, neighbours=neighbours, pure=moved / width)

    # Composition.

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        if self.neighbours != other.neighbours:
            raise ParameterError(
                f"a guarantee for {self.neighbours} cannot be added to one for {other.neighbours}: replace-one and "
                "add-remove values, or values for different numbers of rows per person, are not comparable and cannot "
                "be converted in Renyi currency; price every mechanism for one relation"
            )
        return Guarantee(
            self.neighbours,
            RenyiCurve.of((self.renyi, other.renyi), _sum_up),
            None if self.pure is None or other.pure is None else self.pure + other.pure,
            self.failure + other.failure,
            None if self.gaussian is None or other.gaussian is None else _hypot_up(self.gaussian, other.gaussian),
        )

    def __mul__(self, times: int) -> Guarantee:
        """The guarantee of this many runs."""
        runs = exact.whole(minimum=0, times=times)
        if runs <= 1:
            return self if runs == 1 else Guarantee.nothing(self.neighbours)
        factor = float_up(Fraction(runs))
        return Guarantee(
            self.neighbours,
            RenyiCurve.of((self.renyi,), lambda value: _product_up(value, factor)),
            None if self.pure is None else self.pure * runs,
            self.failure * runs,
            None if self.gaussian is None else _product_up(self.gaussian, _sqrt_up(factor)),
        )

    __rmul__ = __mul__

    # Conversion.

    def at(self, order: float) -> float:
        """The bound in the book of this order: one of ORDERS, or math.inf for pure."""
        if order == math.inf:
            return math.inf if self.pure is None else float_up(self.pure)
        if order not in ORDERS:
            raise ParameterError(f"order must be one of ORDERS or infinity, found {order!r}")
        return self.renyi[ORDERS.index(order)]

    def epsilon(self, delta: Exact) -> float:
        """The least epsilon that is proved for this delta; math.inf if none is.

        Theorem.   The release is (epsilon(delta), delta)-DP.
        Edges.     delta < failure proves nothing; delta = failure leaves only the pure guarantee.
        Reference. docs/proofs/composition.md; [CKS20] Prop. 12; [BW18] Thm 8.
        """
        left = _below_one(delta=delta) - self.failure
        if left < 0:
            return math.inf
        proved = [self.at(math.inf)]
        if left > 0:
            proved += _renyi_to_epsilons(ORDERS, self.renyi, left)
            if self.gaussian is not None:
                proved.append(gaussian_to_epsilon(self.gaussian, left))
        return min(proved)

    def delta(self, epsilon: Exact) -> float:
        """The least delta that is proved for this epsilon; 1 if none is.

        Theorem.   The release is (epsilon, delta(epsilon))-DP.
        """
        promised = exact.nonnegative(epsilon=epsilon)
        proved = [1.0]
        if self.pure is not None and self.pure <= promised:
            proved.append(0.0)
        else:
            proved += (renyi_to_delta(order, value, promised) for order, value in zip(ORDERS, self.renyi, strict=True))
            if self.gaussian is not None:
                proved.append(gaussian_to_delta(self.gaussian, promised))
        return min(1.0, _sum_up(min(proved), float_up(self.failure)))

    def within(self, budget: Budget) -> bool:
        """Whether this alone keeps the promise; exact when the pure guarantee decides."""
        proved = self.epsilon(budget.delta)
        return proved < math.inf and exact.number(epsilon=proved) <= budget.epsilon


# Conversions at one order.


def _shown(value: Fraction | float) -> str:
    """Four digits, rounded up; "unbounded" if nothing is proved."""
    return "unbounded" if value == math.inf else round_up(value, 4)


def renyi_to_epsilon(order: float, value: float, delta: Exact) -> float:
    """The least epsilon >= 0 such that a Renyi divergence `value` of this order proves (epsilon, delta)-DP.

    Theorem.   epsilon = value + ln(1 - 1/a) - (ln delta + ln a) / (a - 1); and 0 if sqrt(value / 2) <= delta.
    Reference. [CKS20] Prop. 12 (solved for epsilon, [ALCKS21] Lemma 1); Pinsker's inequality, as divergences
               increase with the order.
    """
    return _renyi_to_epsilons((order,), (value,), exact.probability(delta=delta))[0]


def _renyi_to_epsilons(orders: Sequence[float], values: Sequence[float], allowed: Fraction) -> list[float]:
    """`renyi_to_epsilon` at several orders: what depends on delta alone is computed once."""
    log_allowed, pinsker = log_fraction(allowed), 2 * allowed**2
    found = []
    for order, value in zip(orders, values, strict=True):
        terms = (value, math.log1p(-1 / order), -log_allowed / (order - 1), -math.log(order) / (order - 1))
        epsilon = math.inf if value > _HUGE else max(0.0, _above(terms))
        found.append(0.0 if epsilon < math.inf and Fraction(value) <= pinsker else epsilon)
    return found


def renyi_to_delta(order: float, value: float, epsilon: Exact) -> float:
    """The least delta such that a Renyi divergence `value` of this order proves (epsilon, delta)-DP.

    Theorem.   delta = min(1, sqrt(value / 2), e^((a-1)(value - epsilon)) (1 - 1/a)^a / (a - 1)).
    Reference. [CKS20] Prop. 12; Pinsker's inequality.
    """
    promised = min(_float(exact.nonnegative(epsilon=epsilon)), _HUGE)
    if value > _HUGE:
        return 1.0
    ratio = order - 1
    terms = (ratio * value, -ratio * promised, order * math.log1p(-1 / order), -math.log(ratio))
    return min(1.0, _raised(math.sqrt(value / 2)), _exp_up(_above(terms)))


def renyi_cap(order: float, *, epsilon: Exact, delta: Exact) -> float:
    """The largest Renyi divergence of this order that proves (epsilon, delta)-DP by [CKS20] Prop. 12; rounded down."""
    promised, allowed = min(_float(exact.nonnegative(epsilon=epsilon)), _HUGE), exact.probability(delta=delta)
    ratio = order - 1
    terms = (promised, log_fraction(allowed) / ratio, math.log(ratio) / ratio, -order * math.log1p(-1 / order) / ratio)
    return -_above(tuple(-term for term in terms))


def choose_order(budget: Budget, failure_share: Exact = 0) -> tuple[float, float] | None:
    """The order that a ledger's Renyi book fixes for this budget, and the book's cap; None if there is no such book.

    Of delta, the part failure_share is kept for failures; the rest, delta_conv, pays the conversion.
    Theorem.   With R(a) = epsilon + (ln delta_conv + ln(a-1) - a ln(1 - 1/a)) / (a-1), charges whose divergences at
               order a sum to at most R(a) are (epsilon, delta_conv)-DP together. The order of ORDERS with the
               largest R(a) / a admits the most zCDP.
    Edges.     None if delta = 0, or if epsilon is so small that R(a) <= 0 on all of ORDERS: then only the pure book.
    Reference. docs/proofs/composition.md; [FZ21].
    """
    share = _below_one(failure_share=failure_share)
    if budget.delta == 0:
        return None
    conversion = (1 - share) * budget.delta
    caps = {order: renyi_cap(order, epsilon=budget.epsilon, delta=conversion) for order in ORDERS}
    best = max(ORDERS, key=lambda order: caps[order] / order)
    return (best, caps[best]) if caps[best] > 0 else None


# The exact Gaussian. With z = epsilon/mu - mu/2, phi the density and M = (1 - Phi) / phi the Mills ratio of N(0, 1),
# delta = phi(z) (M(z) - M(z + mu)): no large number is ever subtracted from another, however large mu or small delta.


def gaussian_to_epsilon(mu: float, delta: Exact) -> float:
    """The least epsilon >= 0 for which N(0, 1) against N(mu, 1) is (epsilon, delta)-close; by bisection over z."""
    target = log_fraction(exact.probability(delta=delta))
    if mu > math.sqrt(_HUGE):
        return math.inf
    low, width = -mu / 2, 1.0
    if mu == 0 or _log_gaussian_delta(mu, low) <= target:
        return 0.0
    while _log_gaussian_delta(mu, low + width) > target:
        width *= 2
    high = low + width
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if _log_gaussian_delta(mu, middle) > target else (low, middle)
    return _above((mu * high, mu * mu / 2))


def gaussian_to_delta(mu: float, epsilon: Exact) -> float:
    """The least delta for which N(0, 1) against N(mu, 1) is (epsilon, delta)-close."""
    promised = _float(exact.nonnegative(epsilon=epsilon))
    if mu == 0:
        return 0.0
    if mu > math.sqrt(_HUGE):
        return 1.0
    z = -_above((-min(promised / mu, math.sqrt(_HUGE)), mu / 2))
    return min(1.0, _exp_up(_log_gaussian_delta(mu, z)))


def _log_gaussian_delta(mu: float, z: float) -> float:
    """ln delta at epsilon = mu (z + mu/2) >= 0, rounded up."""
    from scipy.special import erfcx, ndtr

    def mills(x: float) -> float:
        return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))

    def fall(x: float) -> float:  # -M'(x) = 1 - x M(x), at most 1 / (1 + x^2) for x >= 0
        direct = 1 - x * mills(x) + SLACK * abs(x) * mills(x)
        return min(direct, 1 / (1 + x * x)) if x > 0 else direct

    log_density = -z * z / 2 - math.log(2 * math.pi) / 2
    if z < -1:  # then mu > 2 and the subtracted term is small
        return min(0.0, math.log(float(ndtr(-z)) - math.exp(log_density) * mills(z + mu)) + SLACK)
    # M is completely monotone, so -M' is convex and the trapezoid lies above its integral.
    trapezoid = mu * (fall(z) + fall(z + mu)) / 2
    difference = trapezoid if mu < 1e-5 else mills(z) - mills(z + mu) + 4e-15 * mills(z)
    return _above((log_density, math.log(max(difference, _TINY))))


# Curves.


def _no_curve(order: float) -> float:
    return math.inf


@functools.lru_cache(maxsize=2**15)  # a session prices the same few mechanisms again and again
def _two_sided(order: float, *, shift: float, step: float) -> float:
    """The Renyi divergence between discrete Laplace noise and itself moved by m >= 1.

    shift is y = m / (2 scale), step is t = 1 / (2 scale); y = t is randomized response with epsilon = 2y.
    With b = 2a - 1 and k = tanh t / tanh bt the moment is E = e^-y (cosh by + k sinh by). Then
    E - 1 = e^-y (2 sinh(ay) sinh((a-1)y) + (k sinh by - sinh y)) is a sum of positive terms, the second equal to
    y (tanh t / t) (g(by, bt) - g(y, t)) with g(y, t) = (sinh y / y) (t / tanh t) - 1.
    Proof: docs/proofs/discrete_laplace_renyi.md.
    """
    b, step = 2 * order - 1, max(step, _TINY)
    if b * shift > 100:  # sinh and cosh are equal to within e^-200
        return 2 * shift + math.log1p((math.tanh(step) / math.tanh(b * step) - 1) / 2) / (order - 1)
    rise = _sinh_ratio(b * shift, b * step) - _sinh_ratio(shift, step)
    excess = 2 * math.sinh(order * shift) * math.sinh((order - 1) * shift) + shift * (math.tanh(step) / step) * rise
    return math.log1p(math.exp(-shift) * excess) / (order - 1)


def _sinh_ratio(y: float, t: float) -> float:
    """(sinh y / y) (t / tanh t) - 1 for y >= t > 0, without cancellation."""
    above, below = _sinh_excess(y), _sinh_excess(t)
    tangent = (2 * math.sinh(t / 2) ** 2 - below) / (1 + below)
    return above + tangent + above * tangent


def _sinh_excess(y: float) -> float:
    """sinh(y) / y - 1, y > 0."""
    if y > 1:
        return math.sinh(y) / y - 1
    total, term = 0.0, 1.0
    for k in range(2, 20, 2):
        term *= y * y / (k * (k + 1))
        total += term
    return total


# Rounding.


def _below_one(**named: object) -> Fraction:
    ((name, value),) = named.items()
    found = exact.nonnegative(**named)
    if found >= 1:
        raise ParameterError(f"{name} must be below 1, found {value!r}")
    return found


def _float(value: Fraction) -> float:
    """The nearest float, or infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def float_up(value: Fraction) -> float:
    """The float next to the value whose shortest decimal is at least the value."""
    found = _float(value)
    return found if found == math.inf or Fraction(repr(found)) >= value else math.nextafter(found, math.inf)


def log_fraction(value: Fraction) -> float:
    """ln of an exact number in (0, 1), to within 1e-14 of itself however small it is."""
    if value > Fraction(1, 2):
        return math.log1p(-float(1 - value))
    halvings = max(0, value.denominator.bit_length() - value.numerator.bit_length() - 1)
    return math.log(float(value * 2**halvings)) - halvings * math.log(2)


def _above(terms: tuple[float, ...]) -> float:
    """The sum of the terms, raised by SLACK of their absolute values."""
    return math.fsum(terms) + SLACK * math.fsum(map(abs, terms))


def _raised(value: float) -> float:
    return value * (1 + SLACK) + _TINY


def _exp_up(exponent: float) -> float:
    return math.inf if exponent > 700 else _raised(math.exp(exponent))


def _sum_up(left: float, right: float) -> float:
    return left + right if left == 0 or right == 0 else math.nextafter(left + right, math.inf)


def _product_up(value: float, factor: float) -> float:
    return 0.0 if value == 0 else math.nextafter(value * factor, math.inf)


def _sqrt_up(value: float) -> float:
    return math.nextafter(math.sqrt(value), math.inf)


def _hypot_up(left: float, right: float) -> float:
    return max(left, right) if left == 0 or right == 0 else math.nextafter(math.hypot(left, right), math.inf)
