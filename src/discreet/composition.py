"""The composition theorems of lecture 10, each as a function to call, compare and invert.

Forward: parameters of each mechanism -> the promise of all of them together, as a `Bound`. Backward (`..._share`): the
promise wanted -> the largest parameters each mechanism may have, found by bisection on the forward function, so that
a share is right because the theorem says so and not because a second formula was derived from it.

    basic        sums                                                          any (epsilon, delta)
    strong       lecture 10, equal parameters                                  epsilon <= 1, delta > 0, times delta < 1
    different    lecture 10, different parameters                              pure mechanisms
    concentrated the same with the constant that zCDP gives                    pure mechanisms
    zcdp         sum of rho, converted at the best order                       zCDP mechanisms
    gaussian     sum of squares of mu, exact                                   Gaussian mechanisms
    optimal      the exact answer for equal parameters                         any (epsilon, delta)

Every theorem allows a mechanism to be chosen after seeing the answers of the earlier ones, as long as its parameters
were fixed before. Parameters that are themselves chosen on the way need a ledger. This module teaches and checks; the
library itself composes with `Guarantee`, which `compare` shows beside the theorems.

Rounding. epsilon is rounded up and a share down, by SLACK of the terms (as in `guarantee`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.core import (
    SLACK,
    Budget,
    Exact,
    Guarantee,
    ParameterError,
    exact,
    float_up,
    gaussian_to_delta,
    gaussian_to_epsilon,
    log_fraction,
    renyi_to_epsilon,
)

_UNIT = 2.0**-53
_LOST = 2.0**-1021  # a probability below this is not a float


@dataclass(frozen=True, slots=True)
class Bound:
    """Everything together is (epsilon, delta)-DP by the theorem of this name; note says why there is no such bound."""

    name: str
    epsilon: float
    delta: float
    note: str = ""


def basic(epsilon: Exact, *, delta: Exact = 0, times: int) -> Bound:
    """The sums.

    Theorem.   k mechanisms, each (epsilon, delta)-DP, are (k epsilon, k delta)-DP together.
    Reference. [DKMMN06]; [DR14] Thm 3.16.
    """
    each, fails, k = exact.nonnegative(epsilon=epsilon), exact.nonnegative(delta=delta), exact.whole(times=times)
    return Bound("basic", float_up(k * each), float_up(k * fails))


def basic_share(epsilon: Exact, *, delta: Exact = 0, times: int) -> Budget:
    """What each of k mechanisms may spend so that by `basic` together they keep (epsilon, delta): exact k-th parts."""
    whole, k = Budget(exact.positive(epsilon=epsilon), exact.nonnegative(delta=delta)), exact.whole(times=times)
    return Budget(whole.epsilon / k, whole.delta / k)


def strong(epsilon: Exact, *, delta: Exact, times: int) -> Bound:
    """Strong composition, as lecture 10 states it.

    Theorem.   k mechanisms, each (epsilon, delta)-DP, are together
               (sqrt(2 k ln(1 / (k delta))) epsilon + 2 k epsilon^2, 2 k delta)-DP.
    Edges.     Needs epsilon <= 1 (the proof uses e^epsilon - 1 <= 2 epsilon), delta > 0 and k delta < 1 (the
               logarithm); the lecture leaves the last to the reader. It says nothing once 2 k delta >= 1.
    Reference. Lecture 10; [DRV10] Thm III.3 with slack k delta.
    """
    each, fails, k = exact.nonnegative(epsilon=epsilon), exact.nonnegative(delta=delta), exact.whole(times=times)
    if each > 1:
        raise ParameterError(f"strong composition needs epsilon <= 1, found {epsilon!r}")
    if fails == 0:
        raise ParameterError("strong composition needs delta > 0, found 0; for pure mechanisms use `different`")
    if k * fails >= 1:
        raise ParameterError(f"strong composition needs times * delta < 1, found {times!r} * {delta!r} = {k * fails}")
    value, size = float_up(each), -log_fraction(k * fails)
    return Bound("strong", _up(math.sqrt(2 * k * size) * value + 2 * k * value * value), float_up(2 * k * fails))


def strong_share(epsilon: Exact, *, delta: Exact, times: int) -> Budget:
    """What each of k mechanisms may spend so that by `strong` together they keep (epsilon, delta).

    Theorem.   Each gets delta / (2k) and the largest epsilon_0 <= 1 that `strong` admits; if epsilon <= 1 that is at
               least epsilon / (2 sqrt(2 k ln(2 / delta))): the constant behind the lecture's corollary.
    """
    whole, k = Budget(exact.positive(epsilon=epsilon), exact.probability(delta=delta)), exact.whole(times=times)
    part = whole.delta / (2 * k)
    each = _largest(lambda x: strong(x, delta=part, times=k).epsilon <= whole.epsilon, ceiling=1.0)
    return Budget(each, part)


def different(epsilons: Sequence[Exact], *, delta: Exact) -> Bound:
    """Strong composition with different parameters, as lecture 10 states it.

    Theorem.   Mechanisms that are epsilon_1-, ..., epsilon_k-DP are together
               (2 sum epsilon_i^2 + sqrt(2 sum epsilon_i^2 ln(1/delta)), delta)-DP, for every 0 < delta < 1.
    Reference. Lecture 10; it follows from `concentrated`, which is never larger.
    """
    squares, allowed = _squares(epsilons), exact.probability(delta=delta)
    epsilon = 2 * squares + math.sqrt(2 * squares * -log_fraction(allowed))
    return Bound("different", _up(epsilon), float_up(allowed))


def concentrated(epsilons: Sequence[Exact], *, delta: Exact) -> Bound:
    """Strong composition with different parameters, with the constant of zCDP.

    Theorem.   Mechanisms that are epsilon_1-, ..., epsilon_k-DP are together
               (sum epsilon_i^2 / 2 + sqrt(2 sum epsilon_i^2 ln(1/delta)), delta)-DP, for every 0 < delta < 1.
    Reference. [BS16] Prop. 1.3, 1.4 and Lemma 1.7.
    """
    allowed = exact.probability(delta=delta)
    return Bound("concentrated", _concentrated(_squares(epsilons), allowed), float_up(allowed))


def concentrated_share(epsilon: Exact, *, delta: Exact, times: int) -> Budget:
    """The pure epsilon of each of k mechanisms so that by `concentrated` together they keep (epsilon, delta)."""
    whole, k = Budget(exact.positive(epsilon=epsilon), exact.probability(delta=delta)), exact.whole(times=times)
    return Budget(_largest(lambda x: _concentrated(k * x * x, whole.delta) <= whole.epsilon))


def zcdp(rhos: Sequence[Exact], *, delta: Exact) -> Bound:
    """Zero-concentrated composition.

    Theorem.   Mechanisms that are rho_1-, ..., rho_k-zCDP are together (sum rho_i)-zCDP, and rho-zCDP implies
               (epsilon, delta)-DP with epsilon = min over a > 1 of a rho + ln(1 - 1/a) - (ln delta + ln a) / (a - 1).
    Edges.     The minimum is searched over all real orders; any order is a valid bound, so searching cannot err.
    Reference. [BS16] Lemma 1.7; [CKS20] Prop. 12.
    """
    total, allowed = sum((exact.nonnegative(rho=rho) for rho in rhos), Fraction(0)), exact.probability(delta=delta)
    return Bound("zcdp", _best_order(float_up(total), allowed), float_up(allowed))


def zcdp_share(epsilon: Exact, *, delta: Exact, times: int) -> Fraction:
    """The rho that each of k mechanisms may have so that by `zcdp` together they keep (epsilon, delta)."""
    whole, k = Budget(exact.positive(epsilon=epsilon), exact.probability(delta=delta)), exact.whole(times=times)
    return _largest(lambda rho: _best_order(rho, whole.delta) <= whole.epsilon) / k


def gaussian(mus: Sequence[Exact], *, delta: Exact) -> Bound:
    """Gaussian composition, exact: the least epsilon that is true.

    Theorem.   Gaussian mechanisms with mu_i = L2 sensitivity / standard deviation are together as private as one with
               mu = sqrt(sum mu_i^2), whose profile is known in closed form (`Guarantee.of_gaussian`).
    Reference. [DRS22] Cor. 3.3; [BW18] Thm 8.
    """
    squares, allowed = sum((exact.nonnegative(mu=mu) ** 2 for mu in mus), Fraction(0)), exact.probability(delta=delta)
    return Bound("gaussian", gaussian_to_epsilon(_up(math.sqrt(squares)), allowed), float_up(allowed))


def gaussian_share(epsilon: Exact, *, delta: Exact, times: int) -> Fraction:
    """The mu that each of k Gaussian mechanisms may have so that together they keep (epsilon, delta)."""
    whole, k = Budget(exact.positive(epsilon=epsilon), exact.probability(delta=delta)), exact.whole(times=times)
    total = _largest(lambda mu: gaussian_to_delta(mu, whole.epsilon) <= whole.delta)
    return exact.number(mu=float(total) / math.sqrt(k) * (1 - SLACK))


def optimal(epsilon: Exact, *, delta: Exact = 0, times: int, total: Exact) -> Bound:
    """The exact answer for k mechanisms with equal parameters, at a total delta: no smaller epsilon is true.

    Theorem.   k mechanisms, each (epsilon, delta)-DP, are together (e, 1 - (1-delta)^k (1 - h(e)))-DP for every e >= 0,
               where h(e) = sum over l of P(l) max(0, 1 - exp(e - (k - 2l) epsilon)) is the hockey-stick divergence of
               k randomized responses, P(l) = C(k, l) exp((k-l) epsilon) / (1 + exp(epsilon))^k; and some k mechanisms
               are no better. The theorem is usually stated for the corners e = (k - 2i) epsilon of this curve.
    Edges.     total must be at least 1 - (1-delta)^k: below it nothing is true.
    Reference. [KOV15] Thm 3.3.
    """
    each, fails, k = exact.nonnegative(epsilon=epsilon), exact.nonnegative(delta=delta), exact.whole(times=times)
    allowed = exact.nonnegative(total=total)
    if fails >= 1 or allowed >= 1:
        raise ParameterError(f"delta and total must be below 1, found {delta!r} and {total!r}")
    spare = _spare(fails, k, allowed)
    if spare < 0:
        raise ParameterError(f"total must be at least 1 - (1-delta)^times, found {total!r} for {times!r} of {delta!r}")
    return Bound("optimal", _responses_epsilon(float_up(each), k, spare), float_up(allowed))


def optimal_share(epsilon: Exact, *, delta: Exact, times: int) -> Budget:
    """What each of k mechanisms may spend so that by `optimal` together they keep (epsilon, delta).

    As in `strong_share` each gets delta / (2k), which leaves half of delta for the composition.
    """
    whole, k = Budget(exact.positive(epsilon=epsilon), exact.probability(delta=delta)), exact.whole(times=times)
    part = whole.delta / (2 * k)
    spare = _spare(part, k, whole.delta)
    return Budget(_largest(lambda x: _responses_epsilon(x, k, spare) <= whole.epsilon), part)


def compare(epsilon: Exact, *, delta: Exact, times: int, total: Exact | None = None) -> list[Bound]:
    """What each theorem says about k mechanisms, each (epsilon, delta)-DP: loosest first, those that do not apply last.

    total  the delta of the theorems that can choose it; by default 2 k delta, which is what `strong` promises. `basic`
           and `strong` state their own delta. "renyi" is what `Guarantee` makes of them, "optimal" the truth.
    The theorems about pure mechanisms are applied outside an event of probability k delta (`Guarantee.of_approximate`).
    """
    k, fails = exact.whole(times=times), exact.nonnegative(delta=delta)
    allowed = 2 * k * fails if total is None else exact.number(total=total)
    if not k * fails < allowed < 1:
        raise ParameterError(
            f"total must lie between times * delta = {float(k * fails):g} and 1, found {float(allowed):g}"
            + (" (by default total is 2 * times * delta)" if total is None else "")
        )
    one = Guarantee.of_approximate(epsilon, delta=delta, neighbours="replace-one")  # the relation plays no part here
    parts, spare = [epsilon] * k, allowed - k * fails
    rows = [
        _row("basic", lambda: basic(epsilon, delta=delta, times=k), k * fails),
        _row("strong", lambda: strong(epsilon, delta=delta, times=k), 2 * k * fails),
        _row("different", lambda: different(parts, delta=spare), allowed),
        _row("concentrated", lambda: concentrated(parts, delta=spare), allowed),
        Bound("renyi", (one * k).epsilon(allowed), float_up(allowed)),
        optimal(epsilon, delta=delta, times=k, total=allowed),
    ]
    return sorted(rows, key=lambda row: (row.epsilon == math.inf, -row.epsilon))


def _row(name: str, theorem: Callable[[], Bound], total: Fraction) -> Bound:
    """The theorem's row at this total delta, or the reason why there is none."""
    try:
        return Bound(name, theorem().epsilon, float_up(total))
    except ParameterError as reason:
        return Bound(name, math.inf, float_up(total), str(reason))


def _squares(epsilons: Sequence[Exact]) -> float:
    return float_up(sum((exact.nonnegative(epsilon=each) ** 2 for each in epsilons), Fraction(0)))


def _concentrated(squares: float, delta: Fraction) -> float:
    return _up(squares / 2 + math.sqrt(2 * squares * -log_fraction(delta)))


def _best_order(rho: float, delta: Fraction) -> float:
    """epsilon of rho-zCDP at delta, minimised over the order by ternary search in ln(order - 1)."""
    if rho == 0:
        return 0.0

    def epsilon(position: float) -> float:
        order = 1 + math.exp(position)
        return renyi_to_epsilon(order, _up(order * rho), delta)

    low, high = -20.0, 40.0
    for _ in range(60):
        third = (high - low) / 3
        low, high = (low, high - third) if epsilon(low + third) < epsilon(high - third) else (low + third, high)
    return epsilon(low + (high - low) / 2)


def _spare(delta: Fraction, times: int, total: Fraction) -> float:
    """What total leaves for the responses, 1 - (1 - total) / (1 - delta)^times, rounded down."""
    taken, failed = math.log1p(-min(float(total), 1 - 2**-53)), times * math.log1p(-float(delta))
    return -math.expm1(taken - failed - 1e-15 * (taken + failed))  # both are negative and right to a few units in 1e-16


def _responses_epsilon(epsilon: float, times: int, delta: float) -> float:
    """The least e >= 0 with h(e) <= delta for k randomized responses, in one pass from the largest loss down.

    With e_i = (k - 2i) epsilon, S = sum_{l<=i} P(l) and T = sum_{l<=i} P(l) exp(e_i - e_l), h(e) = S - exp(e - e_i) T
    between e_{i+1} and e_i; this is solved for e in the first such interval whose lower end has h > delta.

    Rounding. ln P(i) is a sum of i terms, kept in two floats; `doubt` bounds what its terms are off by, so that every
    P(l) is right to a factor 1 + doubt. S is taken so much larger, T smaller, with the roundings of their own sums: h
    comes out no less than it is, and e with it. At the upper end e_i, h is at most delta, as the last turn has found.
    """
    if delta <= 0:
        return _up(times * epsilon)
    log_mass, rest = -times * math.log1p(math.exp(-epsilon)), 0.0
    doubt, above, shifted, fade = 8 * _UNIT * -log_mass + 1e-12, 0.0, 0.0, math.exp(-2 * epsilon)
    for i in range(times // 2 + 1):
        mass = math.exp(log_mass + rest)
        above, shifted = above + mass, shifted * fade + mass
        most = above * (1 + doubt + 2 * i * _UNIT) + times * _LOST
        least = shifted * (1 - doubt - 8 * i * _UNIT)
        if most - least * fade * (1 - 4 * _UNIT) > delta:
            solved = (times - 2 * i) * epsilon + min(0.0, math.log((most - delta) / least) if least > 0 else 0.0)
            return max(0.0, solved) * (1 + SLACK) + SLACK
        ratio = math.log((times - i) / (i + 1))
        step = ratio - epsilon
        doubt += 2 * _UNIT * (1 + abs(ratio) + abs(step))
        total = log_mass + step
        rest += (log_mass - (total - (total - log_mass))) + (step - (total - log_mass))
        log_mass = total
    return 0.0


def _largest(fits: Callable[[float], bool], *, ceiling: float = 1e9) -> Fraction:
    """The largest float up to the ceiling that fits, by bisection; fits must never turn from false to true."""
    low, high = 0.0, 1e-300
    while high < ceiling and fits(high):
        low, high = high, min(ceiling, high * 1024)
    if high == ceiling and fits(ceiling):
        return exact.number(share=ceiling)
    while high - low > low * 1e-14:
        middle = low + (high - low) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return exact.number(share=low)


def _up(value: float) -> float:
    return value * (1 + SLACK)
