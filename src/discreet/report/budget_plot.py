"""What a budget means to the people in a table and to those who ask: odds, noise. Public numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import discreet as dp
from discreet.core import Exact, ParameterError, exact
from discreet.drawing import FAINT
from discreet.report.plot import Panel, Plot, Scale, Series, draw, listed, several, shown

_PRIORS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_CURVE = tuple(step / 100 for step in range(101))


def posterior(prior: float, epsilon: float) -> float:
    """The most certainty that an attacker with this prior certainty gets from an epsilon-DP release.

    Theorem.   By Bayes the odds after are those before times P[output | one row] / P[output | another] <= e^epsilon.
    """
    return 1 / (1 + (1 - prior) / prior * math.exp(-epsilon)) if prior else 0.0


def odds(epsilons: Sequence[Exact] = (0.1, 0.5, 1, 3), delta: Exact = 0) -> Plot:
    """How sure an attacker can become: certainty before, and the most after everything that was released.

    With delta the release is within these bounds outside an event of probability delta, in which nothing is promised.
    """
    values, fails = several(epsilons=epsilons), exact.nonnegative(delta=delta)
    if fails >= 1:
        raise ParameterError(f"delta must be below 1, found {delta!r}", argument="delta")
    names = [f"epsilon {exact.shown(each)}" for each in values]
    certainties = [[posterior(prior, float(each)) for each in values] for prior in _PRIORS]
    half = certainties[_PRIORS.index(0.5)]
    sure = listed([f"{100 * most:.1f} % sure at {name}" for most, name in zip(half, names, strict=True)])
    right = listed([f"{100 * most:.0f} at {name}" for most, name in zip(half, names, strict=True)])
    alt = f"An attacker who knows all other rows and thinks a secret 50 % likely can become at most {sure}, however "
    alt += "they ask."
    caption = (
        "What an attacker can infer about one person from everything that is released together, if they know all the "
        "others. What follows from the others' rows is not counted: it would be learned without this person. Of 100 "
        "people about each of whom they could only toss a coin, they guess 50 right without the "
        f"releases, and with them on average at most {right}. The dotted diagonal is an attacker who learns nothing."
    )
    if fails:
        event = f"an event of probability at most delta = {exact.shown(fails)}"
        caption += f" These bounds hold outside {event}; inside it nothing is promised."
    lines = [
        Series(name, [(prior, posterior(prior, float(each))) for prior in _CURVE], {"markevery": (10 + 2 * place, 20)})
        for place, (name, each) in enumerate(zip(names, values, strict=True))
    ]
    diagonal = {"color": FAINT, "linestyle": ":", "linewidth": 1.2, "label": "nothing is released"}
    frame = Panel(
        Scale("certainty before", (0, 1), percent=True),
        Scale("most certainty after", (0, 1.02), percent=True),
        lines,
        height=3.6,
        columns=3,
        paint=lambda axes: axes.plot(_CURVE, _CURVE, **diagonal),
    )
    rows = [[prior, *most] for prior, most in zip(_PRIORS, certainties, strict=True)]
    return Plot(
        "How sure can an attacker become?",
        alt,
        caption,
        ("certainty before", *(f"most after, {name}" for name in names)),
        tuple(tuple(f"{100 * cell:.1f} %" for cell in row) for row in rows),
        draw(frame, alt=alt),
    )


def noise_range(
    epsilons: Sequence[Exact] = (0.01, 0.03, 0.1, 0.3, 1, 3),
    size: int | None = None,
    kinds: Sequence[str] = ("Laplace", "Gaussian"),
    *,
    delta: Exact = Fraction(1, 10**6),
    neighbours: dp.Neighbours | str = "replace-one",
) -> Plot:
    """Within how many persons of the truth one count is released, in 95 of 100 cases, for each kind of noise."""
    values = several(most=40, epsilons=epsilons)
    unknown = set(kinds) - {"Laplace", "Gaussian"}
    if unknown or not kinds:
        raise ParameterError(f"kinds are Laplace and Gaussian, found {', '.join(sorted(unknown)) or 'none'}")
    plans = [dp.plan("count", budget=dp.Budget(each, delta), neighbours=neighbours, size=size) for each in values]
    errors = {kind: [next(row.error for row in each.rows if row.method == kind) for each in plans] for kind in kinds}
    parts = [
        [None if error is None else exact.percent(error / size, up=True) for error in errors[kind]]
        for kind in kinds
        if size
    ]
    middle = min(range(len(values)), key=lambda place: abs(math.log(values[place])))
    near = [f"± {shown(errors[kind][middle])} persons with {kind} noise" for kind in kinds if errors[kind][middle]]
    alt = (
        f"The noise range (95 %) of one count shrinks as epsilon grows: at epsilon {exact.shown(values[middle])} it "
        f"is {listed(near) or 'nothing, for no kind fits'}."
    )
    fails = exact.shown(exact.nonnegative(delta=delta))
    caption = (
        f"One count that is released with all of the budget, {dp.Neighbours.of(neighbours)}, delta {fails}. "
        "In 95 of 100 releases the noise is at most this; it does not depend on the number of persons"
        + (f", so among {size:,} it is a share of them that the table gives. " if size else ". ")
        + "For a single count Laplace noise is smaller; Gaussian noise is better when many are released together."
    )
    numbers = [float(each) for each in values]
    frame = Panel(
        Scale("epsilon", ticks=numbers if len(values) <= 8 else None),
        Scale("noise range (95 %), persons"),
        [Series(f"{kind} noise", list(zip(numbers, errors[kind], strict=True))) for kind in kinds],
    )
    shares = [f"{kind}, of {size:,} persons" for kind in kinds if size]
    columns = ("epsilon", *(f"{kind}, ± persons" for kind in kinds), *shares)
    rows = tuple(zip(numbers, *errors.values(), *parts, strict=True))
    return Plot("How exact is a count?", alt, caption, columns, rows, draw(frame, alt=alt))
