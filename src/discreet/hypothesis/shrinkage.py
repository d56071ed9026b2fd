"""Empirical Bayes for noisy tables whose variances are known exactly: how much of what was measured is believed.

Everything here is a function of released numbers, and public. Two families of priors, each with one number that says
how large effects are; the number is not chosen but learnt from all tables of a kind together.

    columns        the shares of a column are Dirichlet with concentration a: from nearly one value to evenly spread
    interactions   what a table says beyond its smaller parts is normal in every cell, with mean b times what paths
                   through other columns say (0 if there are none), and variance s^2 e n / cells: e is what the smaller
                   parts lead one to expect in the cell, n the number of rows; s = 1 is as large as an even cell

The numbers a and (s, b) have a distribution of their own over a grid, the one under which the measured tables are most
likely (the nonparametric maximum likelihood estimator [KW56], by expectation maximisation, with one table's weight
spread evenly). An estimate is the mean of the posterior. Where noise is small the posterior is where the measurement
is; where noise exceeds what tables of this kind show, it stays at what the smaller parts say.

That the variance of an interaction grows with e was preferred to e^2 on tables of bench/public_tables.py, CHOSEN_ON,
and on made-up mixtures, with 1,000 to 20,000 rows; it made the mean error 1 to 2 % smaller, and the paths made it up to
14 % smaller. Nothing proved depends on them.

What was tried and is not here, on 31 tables of those kinds, all pairs of 8 columns, epsilon .1 and 1, mean error:
factors common to all pairs in place of paths, 1 % smaller; priors under which neighbouring levels are alike, none
smaller; a second release whose scales follow the first, 2 to 5 % smaller at epsilon 1 and none at .1; gamma priors in
place of normal ones, so that no count is believed to be negative, 1 % smaller at epsilon 1 and none at .1. Pairs that
are not measured at all make it 15 % smaller at .1 where rows are few: that is the price of a bound no worse than plain
noise's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.data import Floats

_CONCENTRATIONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
_SIZES = (0.0, *np.geomspace(0.02, 5, 14).tolist())
_PATHS = (0.0, 0.1, 0.25, 0.5, 1.0)
_FAR = 8.0  # deviations above 0 from which on a count is what was measured
_LEAST = 1e-9


def mixed(log_likelihoods: Floats) -> Floats:
    """The posterior of every table over the points of the grid, under the distribution that fits all of them best.

    log_likelihoods  a line for each table
    """
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    tables, points = likelihoods.shape
    weights = np.full(points, 1 / points)
    for _ in range(30):
        posterior = likelihoods * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + 1 / points) / (tables + 1)
    posterior = likelihoods * weights
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


# Columns.


def shrunk_columns(counts: Sequence[Floats], variances: Sequence[float], rows: float) -> list[Floats]:
    """Estimated counts of some columns, none below 0, each with the sum `rows`.

    counts  measured, with this sum; variances: of the independent noises before their mean was taken off
    """
    laws = [
        _Column.of(len(each), math.sqrt(variance * (1 - 1 / len(each))), rows) if len(each) > 1 else None
        for each, variance in zip(counts, variances, strict=True)
    ]
    found = [np.array(each) for each in counts]
    noisy = [(place, law) for place, law in enumerate(laws) if law is not None]
    if noisy:
        posteriors = mixed(np.array([law.log_likelihood(found[place]) for place, law in noisy]))
        for (place, law), posterior in zip(noisy, posteriors, strict=True):
            found[place] = law.estimate(found[place], posterior)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """The posterior of a count given its measurement, tabulated for every concentration.

    at      measured values, up to _FAR deviations       means  of the count, a line for each concentration
    logs    of the likelihood of those values, up to a term that no concentration changes
    """

    levels: int
    noise: float
    rows: float
    at: Floats
    means: Floats
    logs: Floats

    @staticmethod
    def of(levels: int, noise: float, rows: float) -> _Column | None:
        """None if there is no noise to speak of."""
        from scipy.special import betainc

        if noise <= 1e-6 * rows:
            return None
        steps = np.concatenate([np.geomspace(1e-3, 1 / 8, 16), np.arange(1, 129) / 8]) * noise
        edges = np.unique(np.minimum([0.0, *steps, *(rows * np.geomspace(1e-4, 1, 48))], min(rows, 16 * noise)))
        middles, at = (edges[1:] + edges[:-1]) / 2, np.arange(-12, _FAR + 0.05, 0.1) * noise
        closeness = -0.5 * ((at[:, None] - middles) / noise) ** 2
        near = np.exp(closeness - closeness.max(axis=1, keepdims=True))
        masses = [np.diff(betainc(a, a * (levels - 1), edges / rows)) + 1e-300 for a in _CONCENTRATIONS]
        means = np.array([near @ (mass * middles) / (near @ mass) for mass in masses])
        return _Column(levels, noise, rows, at, means, np.array([np.log(near @ mass) for mass in masses]))

    def log_likelihood(self, counts: Floats) -> Floats:
        """For every concentration; the cells of a column add up, so one of them says nothing new."""
        from scipy.special import betaln

        near = counts[counts <= _FAR * self.noise]
        shares = np.clip(counts[counts > _FAR * self.noise] / self.rows, 1e-9, 1 - 1e-6)
        found = []
        for a, logs in zip(_CONCENTRATIONS, self.logs, strict=True):
            others = a * (self.levels - 1)
            dense = (a - 1) * np.log(shares) + (others - 1) * np.log1p(-shares) - betaln(a, others)
            found.append(np.interp(near, self.at, logs).sum() + dense.sum())
        return np.array(found) * (1 - 1 / self.levels)

    def estimate(self, counts: Floats, posterior: Floats) -> Floats:
        """The posterior means, moved by one number so that they add up."""
        means = posterior @ self.means
        low, high = -self.rows - 20 * self.noise, self.rows + 20 * self.noise
        for _ in range(60):
            middle = (low + high) / 2
            if self._means(counts - middle, means).sum() > self.rows:
                low = middle
            else:
                high = middle
        estimated = self._means(counts - high, means)
        return np.asarray(estimated * (self.rows / max(float(estimated.sum()), _LEAST)))

    def _means(self, counts: Floats, means: Floats) -> Floats:
        return np.where(counts > _FAR * self.noise, counts, np.interp(counts, self.at, means))


# Interactions.


@dataclass(frozen=True, slots=True, eq=False)
class Interaction:
    """What a table was measured to say beyond its smaller parts.

    apart     the measured residual, less the expected one
    expected  in every cell, by the smaller parts: not negative
    variance  of the independent noises on every cell before their means were taken off
    paths     what other columns say about it, with noise of its own; None if nothing does
    """

    apart: Floats
    expected: Floats
    variance: float
    paths: Floats | None = None


def interactions(measured: Sequence[Interaction], rows: float) -> list[Floats]:
    """The believed part of each."""
    if not measured:
        return []
    several = any(one.paths is not None for one in measured)
    points = [(size, share) for share in (_PATHS if several else (0.0,)) for size in _SIZES]
    posteriors = mixed(np.array([[_log_likelihood(one, rows, *point) for point in points] for one in measured]))
    found = []
    for one, posterior in zip(measured, posteriors, strict=True):
        believed = np.zeros(one.apart.shape)
        for weight, (size, share) in zip(posterior.tolist(), points, strict=True):
            if weight > 1e-6:
                prior, mean = _prior(one, rows, size), share * _paths(one)
                believed += weight * (mean + prior / (prior + one.variance) * (one.apart - mean))
        found.append(believed)
    return found


def _prior(one: Interaction, rows: float, size: float) -> Floats:
    return np.asarray(size**2 * rows / one.expected.size * one.expected)


def _paths(one: Interaction) -> Floats | float:
    return 0.0 if one.paths is None else one.paths


def _log_likelihood(one: Interaction, rows: float, size: float, share: float) -> float:
    """As if the cells were independent, each with its part of the free numbers."""
    free: float = math.prod(1 - 1 / length for length in one.apart.shape)
    if free == 0 or one.variance <= 0:
        return 0.0
    variance = (_prior(one, rows, size) + one.variance) * free
    squares = (one.apart - share * _paths(one)) ** 2
    total: float = np.sum(squares / variance + np.log(variance)).item()
    return -0.5 * free * total
