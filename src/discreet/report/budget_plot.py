"""What a budget means to the people in a table and to those who ask: odds, noise. Public numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Budget, Neighbours
from discreet.plan import plan
from discreet.report.plot import (
    FAINT,
    Plot,
    draw,
    legend,
    listed,
    logarithmic,
    percent,
    percent_axis,
    series,
    shown,
    split,
)

_PRIORS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_CURVE = tuple(step / 100 for step in range(101))
MOST_LINES = 6


def posterior(prior: float, epsilon: float) -> float:
    """The most certainty that an attacker with this prior certainty gets from an epsilon-DP release.

    Theorem.   By Bayes the odds after are those before times P[output | one row] / P[output | another] <= e^epsilon.
    """
    if prior == 0:
        return 0.0
    return 1 / (1 + (1 - prior) / prior * math.exp(-epsilon))


def odds(epsilons: Sequence[Exact] = (0.1, 0.5, 1, 3), delta: Exact = 0) -> Plot:
    """How sure an attacker can become: certainty before, and the most after everything that was released.

    With delta the release is within these bounds outside an event of probability delta, in which nothing is promised.
    """
    found = several(epsilons=epsilons)
    fails = exact.nonnegative(delta=delta)
    if fails >= 1:
        raise ParameterError(f"delta must be below 1, found {delta!r}")
    names = [f"epsilon {exact.shown(each)}" for each in found]
    rows = tuple(tuple(map(_sure, (p, *(posterior(p, float(each)) for each in found)))) for p in _PRIORS)
    half = [posterior(0.5, float(each)) for each in found]
    alt = "An attacker who holds a secret for 50 % likely can become at most " + listed(
        [f"{_sure(most)} sure at {name}" for most, name in zip(half, names, strict=True)]
    )
    alt += ", whatever they know already and however they ask."
    right = listed([f"{100 * most:.0f} at {name}" for most, name in zip(half, names, strict=True)])
    caption = (
        "What somebody can infer about one person from everything that is released together, if they know all the "
        "others. Of 100 people about each of whom they could only toss a coin, they guess 50 right without the "
        f"releases, and with them on average at most {right}. The dotted diagonal is an attacker who learns nothing."
        + _with_delta(fails)
    )

    def paint(axes: Any) -> None:
        axes.plot(_CURVE, _CURVE, color=FAINT, linestyle=":", linewidth=1.2, label="nothing is released")
        for place, each in enumerate(found):
            curve = [posterior(prior, float(each)) for prior in _CURVE]
            axes.plot(_CURVE, curve, label=names[place], markevery=(10 + 2 * place, 20), **series(place))
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="certainty before", ylabel="most certainty after")
        percent_axis(axes.xaxis)
        percent_axis(axes.yaxis)
        legend(axes, columns=3)

    columns = ("certainty before", *(f"most after, {name}" for name in names))
    return Plot("How sure can an attacker become?", alt, caption, columns, rows, draw(paint, alt=alt, heights=(3.6,)))


def _sure(certainty: float) -> str:
    return f"{100 * certainty:.1f} %"


def _with_delta(delta: Fraction) -> str:
    if delta == 0:
        return ""
    return (
        f" These bounds hold outside an event of probability at most delta = {exact.shown(delta)}; inside it nothing "
        "is promised."
    )


def noise_range(
    epsilons: Sequence[Exact] = (0.01, 0.03, 0.1, 0.3, 1, 3),
    size: int | None = None,
    kinds: Sequence[str] = ("Laplace", "Gaussian"),
    *,
    delta: Exact = Fraction(1, 10**6),
    neighbours: Neighbours | str = "replace-one",
) -> Plot:
    """Within how many persons of the truth one count is released, in 95 of 100 cases, for each kind of noise."""
    found = several(most=40, epsilons=epsilons)
    unknown = set(kinds) - {"Laplace", "Gaussian"}
    if unknown or not kinds:
        raise ParameterError(f"kinds are Laplace and Gaussian, found {', '.join(sorted(unknown)) or 'none'}")
    plans = [plan("count", budget=Budget(each, delta), neighbours=neighbours, size=size) for each in found]
    errors = [{row.method: row.error for row in each.rows} for each in plans]
    shares = () if size is None else tuple(f"{kind}, of {size:,} persons" for kind in kinds)
    rows = tuple(
        (float(each), *(by[kind] for kind in kinds), *(_share(by[kind], size) for kind in kinds if size is not None))
        for each, by in zip(found, errors, strict=True)
    )
    near = min(range(len(found)), key=lambda place: abs(math.log(found[place])))
    ranges = [f"± {shown(errors[near][kind])} persons with {kind} noise" for kind in kinds if errors[near][kind]]
    alt = (
        f"The noise range (95 %) of one count shrinks as epsilon grows: at epsilon {exact.shown(found[near])} it "
        f"is {listed(ranges) or 'nothing, for no kind fits'}."
    )
    fails = exact.nonnegative(delta=delta)
    caption = (
        f"One count that is released with all of the budget, {Neighbours.of(neighbours)}, delta {exact.shown(fails)}. "
        "In 95 of 100 releases the noise is at most this; it does not depend on how many persons there are"
        + (f", so among {size:,} it is a share of them that the table gives. " if size else ". ")
        + "For a single count Laplace noise is the smaller; Gaussian noise pays when many are released together."
    )

    def paint(axes: Any) -> None:
        for place, kind in enumerate(kinds):
            points = [(float(each), by[kind]) for each, by in zip(found, errors, strict=True)]
            axes.plot(*split((x, y) for x, y in points if y is not None), label=f"{kind} noise", **series(place))
        logarithmic(axes.xaxis, map(float, found) if len(found) <= 8 else None)
        logarithmic(axes.yaxis)
        axes.set(xlabel="epsilon", ylabel="noise range (95 %), persons")
        legend(axes)

    columns = ("epsilon", *(f"{kind}, ± persons" for kind in kinds), *shares)
    return Plot("How exact is a count?", alt, caption, columns, rows, draw(paint, alt=alt))


def _share(error: float | None, size: int | None) -> str | None:
    return None if error is None or not size else percent(error / size)


def several(most: int = MOST_LINES, **named: Sequence[Exact]) -> list[Fraction]:
    """The one keyword argument as different positive numbers, the smallest first, and not more than can be drawn."""
    ((name, values),) = named.items()
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= most:
        raise ParameterError(f"{name} must be a list of 1 to {most} numbers, found {values!r}")
    return sorted({exact.positive(**{name: value}) for value in values})
