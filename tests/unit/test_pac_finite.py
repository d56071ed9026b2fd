"""How many rows make a promise of lecture 12 true: as many as are said, and not one fewer."""

from __future__ import annotations

import math

import pytest

from discreet.pac.finite import agnostic_excess, agnostic_population_size, empirical_size, population_size

CASES = [
    (math.log(size), alpha, beta, rate)
    for size in (3, 10**6)
    for alpha, beta in ((0.1, 0.05), (0.013, 1e-6))
    for rate in (0.07, 1.3)
]


@pytest.mark.parametrize(("log_class", "alpha", "beta", "rate"), CASES)
def test_the_weight_of_the_wrong_hypotheses_is_at_most_beta_from_so_many_rows_on(log_class, alpha, beta, rate):
    """|C| hypotheses with more than alpha n mistakes weigh |C| e^(-rate alpha n) beside the right one's 1."""
    rows = empirical_size(log_class, alpha, beta, rate)
    assert log_class - rate * alpha * rows <= math.log(beta) < log_class - rate * alpha * (rows - 1)


@pytest.mark.parametrize(("log_class", "alpha", "beta", "rate"), CASES)
def test_the_chance_of_a_hypothesis_wrong_about_the_population_is_at_most_beta(log_class, alpha, beta, rate):
    rows = population_size(log_class, alpha, beta, rate)
    assert log_class + rows * math.log1p(alpha * math.expm1(-rate)) <= math.log(beta)
    assert log_class - (rows - 1) * alpha * -math.expm1(-rate) > math.log(beta)


@pytest.mark.parametrize(("log_class", "alpha", "beta", "rate"), CASES)
def test_an_agnostic_promise_pays_for_the_sample_and_for_the_selection(log_class, alpha, beta, rate):
    rows = agnostic_population_size(log_class, alpha, beta, rate)

    def failures(n: int) -> tuple[float, float]:
        """ln of: some empirical error is alpha/4 off; the selection is alpha/2 off; each may be beta/2."""
        return math.log(2) + log_class - 2 * n * (alpha / 4) ** 2, log_class - rate * n * alpha / 2

    assert max(failures(rows)) <= math.log(beta / 2)
    assert max(failures(rows - 1)) > math.log(beta / 2)


@pytest.mark.parametrize(("log_class", "alpha", "beta", "rate"), CASES)
def test_the_excess_of_a_selection_is_the_least_that_holds(log_class, alpha, beta, rate):
    excess = agnostic_excess(log_class, beta, rate)
    assert log_class - rate * excess <= math.log(beta) <= log_class - rate * excess * (1 - 1e-8)
