"""The parameters of classic private multiplicative weights: the lecture's, and better ones. All public, no data.

    lecture   two-sided noise, threshold alpha/2, step alpha/8, at most 64 ln|D| / alpha^2 updates at 4 e0 each
    pmw       one-sided noise, the step that the measured gap proves, at most ln|D| / (2 gamma^2) updates

Theorem.   Replace-one, n persons of one row each, n public, k counting questions, however they are chosen. With
           probability 1 - beta every answer is within alpha (lecture: 3 alpha/4) of the truth and the program never
           halts before the k-th, if its thresholds and answers fit the budget. On that event KL(table || hypothesis)
           starts at no more than ln|D|, never is negative, and falls at each update by at least alpha^2/64 (lecture),
           2 gamma^2 (pmw). If the table is declared anew meanwhile, or its rows become another edition, questions,
           thresholds and updates are counted on: the bounds hold with the same beta, but the program may halt early.
Reference. Lecture 13; proof: docs/proofs/multiplicative_weights.md, rounding guesses to whole persons included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Unproven, digest, exact, record
from discreet.data import Facts
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, Gaussian, GaussianNoise, Laplace, LaplaceNoise
from discreet.query import Count

LECTURE, BETTER = "lecture", "pmw"

ROUNDING = Fraction(501, 1000)
"""Persons: a guess is rounded by at most half a person; a thousandth more than pays for the hypothesis's floats."""

_SPLIT = (Fraction(9, 20), Fraction(1, 2), Fraction(1, 20))  # of beta: thresholds, questions, noisy answers
_SHARP = 4  # a Gaussian answer is this many times as sharp as the proof needs: it costs 2 % more than a blunt one
_CHOICES = 20  # gaps that are compared at once
_LARGEST = 2**50


@dataclass(frozen=True, slots=True)
class CountingProblem:
    """The public numbers of a problem: n, the columns of the hypothesis and |D|, the product of their sizes."""

    size: int
    columns: tuple[str, ...]
    cells: int


@dataclass(frozen=True, slots=True)
class Classic:
    """The public parameters of one program. Distances are in persons.

    theta      what a threshold is asked: is |count - guess| at least this?
    kind       of the answers' noise, "gaussian" or "laplace", and its scale
    On the good event, of probability 1 - beta:
    near       a guess that is given is at most this far from the truth
    error      a noisy answer is at most this far from the truth
    far        a guess that is not given is at least this far from the truth
    updates    the largest number of them
    """

    NAME: ClassVar[str] = "classic/1"
    method: str
    size: int
    columns: tuple[str, ...]
    cells: int
    alpha: Fraction
    beta: Fraction
    questions: int
    threshold: AboveThreshold | AboveThresholdLaplace
    theta: Fraction
    kind: str
    scale: Fraction
    near: int
    error: int
    far: Fraction
    updates: int

    @property
    def thresholds(self) -> int:
        """How many are ever opened: one for each update and one more, each for at least one question."""
        return min(self.updates + 1, self.questions)

    @property
    def gap(self) -> float:
        """gamma: a guess that is not given was at least this share of the persons off before it was rounded."""
        return float((self.far - ROUNDING) / self.size)

    @property
    def start(self) -> float:
        """ln|D|, which KL(table || hypothesis) does not exceed at the start."""
        return math.log(self.cells)

    @property
    def manner(self) -> str:
        """What the ledger knows the program by."""
        return f"{self.method} {digest(record(self))[:32]}"

    def measurement(self, question: Count) -> Gaussian | Laplace:
        return Gaussian(question, self.scale) if self.kind == "gaussian" else Laplace(question, self.scale)

    def guarantee(self, facts: Facts) -> Guarantee:
        """Of all thresholds and all noisy answers together."""
        answers = self.updates * self.measurement(Count()).guarantee(facts)
        return self.thresholds * self.threshold.guarantee(facts) + answers

    def step(self, share: float, guess: int, answer: int) -> tuple[float, float]:
        """The exponent of an update (signed) and how far KL(table || hypothesis) falls by it at least.

        share   of the hypothesis that satisfies the question           guess    the same in whole persons
        answer  the noisy count. One that equals the guess moves down: on the good event there is none.
        """
        sign = 1 if answer > guess else -1
        if self.method == LECTURE:
            return sign * float(self.alpha) / 8, float(self.alpha) ** 2 / 64
        gap = max(self.gap, (sign * (answer - self.size * share) - self.error) / self.size)
        eta, drop = projection(share if sign > 0 else 1 - share, gap, size=self.size)
        return sign * eta, drop


def projection(share: float, gap: float, *, size: int) -> tuple[float, float]:
    """How far to move a set of this share up, if the truth is known to be at least share + gap; and the fall of KL.

    Theorem.   Multiplying the set by e^eta lowers KL by eta x - ln(1 - share + share e^eta), x >= share + gap the
               truth: concave in eta, for x = share + gap largest at logit(x) - logit(share), where it is the KL of two
               coins, Bernoulli(x) and Bernoulli(share), and at least 2 gap^2 at eta = 4 gap (Hoeffding). The eta taken
               is between the two: it stops short of the first where that would leave less than half a person outside.
    """
    eta, target = 4 * gap, min(share + gap, 1 - 0.5 / size)
    if not 0 < share < 1:
        return eta, 2 * gap * gap
    if target > share:
        eta = max(eta, _logit(target) - _logit(share))
    return eta, eta * (share + gap) - float(np.logaddexp(math.log1p(-share), math.log(share) + eta))


def _logit(share: float) -> float:
    return math.log(share) - math.log1p(-share)


# The two programs.


def lecture(
    facts: Facts, alpha: Exact, beta: Exact, questions: int, *, columns: Sequence[str] | None = None
) -> Classic:
    """The lecture's program for a table with these facts."""
    return lecture_for(posed(facts, columns), alpha, beta, questions)


def better(
    facts: Facts, alpha: Exact, beta: Exact, questions: int, *, delta: Exact, columns: Sequence[str] | None = None
) -> Classic:
    """The same with better constants. Answers have Gaussian noise, or Laplace noise if delta = 0."""
    return better_for(posed(facts, columns), alpha, beta, questions, pure=exact.nonnegative(delta=delta) == 0)


def program(
    method: str,
    facts: Facts,
    *,
    alpha: Exact,
    beta: Exact,
    questions: int,
    delta: Exact,
    columns: Sequence[str] | None = None,
) -> Classic:
    """One of the two, by its name."""
    if method not in (BETTER, LECTURE):
        raise ParameterError(f'method must be "{BETTER}" or "{LECTURE}", found {method!r}')
    if method == LECTURE:
        return lecture(facts, alpha, beta, questions, columns=columns)
    return better(facts, alpha, beta, questions, delta=delta, columns=columns)


def lecture_for(problem: CountingProblem, alpha: Exact, beta: Exact, questions: int) -> Classic:
    """Threshold alpha/2, and the most noise for which all of up to 3k noises are within alpha/8."""
    wanted, sure, asked = _checked(problem, alpha, beta, questions)
    persons = wanted * problem.size
    if persons < 8:
        raise ParameterError(f"alpha * size must be at least 8 persons, found {float(persons):g}")
    noise = math.floor(persons / 8)
    scale = _down(LaplaceNoise.scale_for(noise, float(sure) / (3 * asked)))
    threshold, theta, near = AboveThresholdLaplace(scale, scale), persons / 2, math.ceil(persons / 2 + 2 * noise) - 1
    updates = min(asked, math.floor(64 * math.log(problem.cells) / float(wanted) ** 2))
    declared = (problem.size, problem.columns, problem.cells, wanted, sure, asked)
    return Classic(
        LECTURE, *declared, threshold, theta, "laplace", scale, near, noise, persons / 2 - 2 * noise, updates
    )


def better_for(problem: CountingProblem, alpha: Exact, beta: Exact, questions: int, *, pure: bool) -> Classic:
    """The cheapest split of alpha between the gap that forces an update and the thresholds' noise."""
    wanted, sure, asked = _checked(problem, alpha, beta, questions)
    persons = math.floor(wanted * problem.size)
    if persons < 3:
        raise ParameterError(f"alpha * size must be at least 3 persons, found {float(wanted * problem.size):g}")

    def cost(far: int) -> float:
        """What is minimized: the sum of the epsilons, or twice the zCDP. Prices come from the guarantees."""
        split = _Split.of(problem, persons, sure, asked, pure, far)
        power, runs = 1 if pure else 2, min(split.updates + 1, asked)
        epsilon = 1 / split.threshold_scale + 2 / split.question_scale
        return runs * epsilon**power + split.updates / split.scale**power

    low, high, width = 2, persons, persons  # about where the cost is least: the best of some points, then around it
    while width > 1:
        width = max(1, (high - low) // _CHOICES)
        far = min(range(low, high + 1, width), key=cost)
        low, high = max(low, far - width), min(high, far + width)
    split = _Split.of(problem, persons, sure, asked, pure, far)
    threshold = AboveThreshold(_down(split.threshold_scale), _down(split.question_scale))
    declared = (problem.size, problem.columns, problem.cells, wanted, sure, asked)
    kind, scale, theta = "laplace" if pure else "gaussian", _down(split.scale), Fraction(split.theta)
    bounds = (persons, split.error, Fraction(far), split.updates)
    return Classic(BETTER, *declared, threshold, theta, kind, scale, *bounds)


def remade(program: Classic, alpha: Fraction) -> Classic:
    """The same program for another alpha."""
    problem = CountingProblem(program.size, program.columns, program.cells)
    if program.method == LECTURE:
        return lecture_for(problem, alpha, program.beta, program.questions)
    return better_for(problem, alpha, program.beta, program.questions, pure=program.kind == "laplace")


@dataclass(frozen=True, slots=True)
class _Split:
    """What follows from a gap, in persons: with z <= Z and nu <= N a given guess is at most theta + Z - 1 = A off, one
    that is not given at least theta - N = gap."""

    updates: int
    theta: int
    threshold_scale: float
    question_scale: float
    error: int
    scale: float

    @staticmethod
    def of(problem: CountingProblem, persons: int, beta: Fraction, questions: int, pure: bool, far: int) -> _Split:
        gamma = float((far - ROUNDING) / problem.size)
        updates = min(questions, math.floor(math.log(problem.cells) / (2 * gamma * gamma)))
        for_z, for_nu, for_answers = (float(part * beta) for part in _SPLIT)
        log_z = math.log(min(updates + 1, questions) / for_z)
        log_nu = math.log(questions / for_nu)
        room = persons + 3 - far  # (Z + 1) + (N + 1)
        first = room * math.sqrt(log_z) / (math.sqrt(log_z) + math.sqrt(2 * log_nu))
        beyond_z = min(max(1, round(first)), room - 1)  # Z + 1: P[z >= Z + 1] = exp(-(Z + 1) / scale)
        failure = for_answers / max(1, updates)
        error = far - 1 if pure else max(1, (far - 1) // _SHARP)
        return _Split(
            updates,
            persons + 2 - beyond_z,
            beyond_z / log_z,
            (room - beyond_z) / log_nu,
            error,
            (LaplaceNoise if pure else GaussianNoise).scale_for(error, failure),
        )


def posed(facts: Facts, columns: Sequence[str] | None = None) -> CountingProblem:
    """The problem of a table with these facts, if the theorem covers it."""
    relation = facts.neighbours
    if not relation.replace_one or relation.rows != 1 or facts.size is None:
        raise Unproven(
            f"a bound on the number of updates is proved for replace-one with one row a person, where the number of "
            f'rows is public; found {relation}. method="auto" answers these too'
        )
    names = facts.domain.names if columns is None else tuple(name for name in facts.domain.names if name in columns)
    if columns is not None and set(columns) - set(names):
        facts.domain.column(next(name for name in columns if name not in names))  # says what is near
    for name in names:
        if not facts.domain.column(name).listed:
            raise ParameterError(
                f"column {name!r} is declared {facts.domain.column(name)!r}: a hypothesis has no cells for it; name "
                "the columns that will be asked about"
            )
    if facts.size < 1 or not names:
        raise ParameterError(f"a hypothesis needs a column and a person, found {len(names)} and {facts.size}")
    return CountingProblem(facts.size, tuple(names), math.prod(facts.domain.column(name).size for name in names))


def _checked(problem: CountingProblem, alpha: Exact, beta: Exact, questions: int) -> tuple[Fraction, Fraction, int]:
    if problem.cells < 2:
        raise ParameterError("a domain of one cell has no questions")
    asked = exact.whole(questions=questions)
    if asked > 10**30:
        raise ParameterError(f"questions must be at most 10**30, found {questions!r}")
    return exact.probability(alpha=alpha), exact.probability(beta=beta), asked


def _down(scale: float) -> Fraction:
    """A scale with few digits, not above this one nor above what is drawn."""
    return max(Fraction(math.floor(min(scale * (1 - 1e-12), 2**45) * 2**20), 2**20), Fraction(1, 2**20))


# How many persons, how small an alpha.


def needed(make: Callable[[int], Classic], fits: Callable[[Classic], bool]) -> int | None:
    """The least number of persons for which the program that `make` builds fits; None if there is none below 2^50."""
    fitting = partial(_fits, make, fits)
    ends = exact.bracket(fitting, 0, 1, limit=_LARGEST)
    return None if ends is None else exact.least(fitting, *ends)


def least_alpha(make: Callable[[Fraction], Classic], fits: Callable[[Classic], bool]) -> Fraction | None:
    """About the least alpha for which the program that `make` builds fits, three digits; None if there is none."""
    low, high = -40.0, math.log(0.999)
    if not _fits(make, fits, _digits(high)):
        return None
    close = lambda low, high: high - low <= 5e-4  # noqa: E731
    return _digits(exact.least(lambda logarithm: _fits(make, fits, _digits(logarithm)), low, high, close))


def _digits(logarithm: float) -> Fraction:
    """e to this power with four digits, rounded up."""
    value = math.exp(logarithm)
    digits = 10 ** (4 - math.ceil(math.log10(value)))
    return min(Fraction(math.ceil(value * digits), digits), Fraction(999, 1000))


def _fits(make: Callable[[Any], Classic], fits: Callable[[Classic], bool], number: Any) -> bool:
    try:
        return fits(make(number))
    except ParameterError:
        return False
