"""A column's unit changes no law: every mechanism on steps of 1/2, 2 or 0.01, by exact laws on neighbouring rows; and
what is refused or accepted because of a unit, before anything is charged."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.audit.divergence import compare, loss
from discreet.audit.laws import Setting, conversation_law, law
from discreet.data import MAX_ROWS, Batch, sum_of
from discreet.guarantee import ORDERS
from discreet.mechanisms import Mechanism
from discreet.rng import SeededRng

F = Fraction
ADD, REPLACE = dp.Neighbours("add-remove"), dp.Neighbours("replace-one")
UNITS = [F(1, 2), F(1), F(2)]
ADDITIVE = [dp.Laplace, dp.Gaussian, dp.mechanisms.ProductLaplace, dp.mechanisms.CoordinateLaplace]


# Selection: two candidates whose scores are sums of numbers with this step.


def scores(unit: Fraction, neighbours: dp.Neighbours) -> Setting:
    score = dp.Number(0, 4 * unit, step=unit)
    return Setting(dp.Domain(x=score, y=score), neighbours)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("neighbours", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("kind", [dp.Exponential, dp.mechanisms.PermuteAndFlip])
def test_a_selection_by_a_sum_attains_its_guarantee_in_every_unit(kind, neighbours, unit):
    setting, best = scores(unit, neighbours), 4 * unit
    leading = [{"x": 0, "y": best}] * 24  # the last row moves the candidate that is far behind
    first = [*leading, {"x": best, "y": 0}]
    second = leading if neighbours is ADD else [*leading, {"x": 0, "y": best}]
    mechanism = kind.of(dp.mechanisms.VectorSum(("x", "y")), epsilon=1, facts=setting.facts(first))
    p, q = law(mechanism, first, setting), law(mechanism, second, setting)
    claimed = mechanism.guarantee(setting.facts(first))
    assert claimed.pure == 1
    assert 1 - 1e-4 < loss(p, q) <= 1
    assert not compare(p, q, claimed).violates


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", [dp.Exponential, dp.mechanisms.PermuteAndFlip])
def test_the_rate_of_a_selection_is_for_one_of_the_columns_unit(kind, unit):
    """Scores 4 and 2 units at rate r: the second is chosen with the probability that the docstring's law gives."""
    setting, rate = scores(unit, ADD), F(1, 3)
    found = law(kind(dp.mechanisms.VectorSum(("x", "y")), rate), [{"x": 4 * unit, "y": 2 * unit}], setting)
    behind = math.exp(-rate * 2 * unit)
    expected = behind / (1 + behind) if kind is dp.Exponential else behind / 2
    assert found.mass[1] == pytest.approx(expected, rel=1e-12)


# Conversations: sums of numbers that are all worth one unit, so that a question about them is a scaled count.

LETTERS = dp.Category("a", "b")


def question(unit: Fraction, letter: str, threshold: Fraction, center: Fraction | None = None) -> dp.mechanisms.IsAbove:
    return dp.mechanisms.IsAbove(
        dp.Sum("x", where=dp.Equals("v", letter)), threshold * unit, None if center is None else center * unit
    )


def one_unit_each(unit: Fraction, neighbours: dp.Neighbours) -> Setting:
    return Setting(dp.Domain(v=LETTERS, x=dp.Number(0, unit, step=unit)), neighbours)


def letters(unit: Fraction, text: str) -> list[dict[str, object]]:
    return [{"v": letter, "x": unit} for letter in text]


def answers(kind, unit, asks, text, *, neighbours=REPLACE, reach=40):
    """The law of the answers when everything is scaled by the unit; the conversation costs 1/1 + 2/2."""
    conversation, setting = kind(unit, 2 * unit, sensitivity=unit), one_unit_each(unit, neighbours)
    rows = letters(unit, text)
    for ask in asks:
        conversation.check(ask, setting.facts(rows))
    assert conversation.guarantee(setting.facts(rows)).pure == 2
    return conversation_law(conversation, asks, rows, setting, reach=reach)


@pytest.mark.parametrize("unit", UNITS)
def test_a_conversation_about_sums_attains_its_price_in_every_unit(unit):
    asks = [question(unit, "a", F(2)), question(unit, "b", F(2))]
    p, q = (answers(dp.mechanisms.AboveThreshold, unit, asks, text) for text in ("abb", "aab"))
    assert 2 * (1 - 1e-4) < loss(p, q) <= 2


@pytest.mark.parametrize("unit", [F(1, 2), F(2)])
@pytest.mark.parametrize("center", [None, F(5, 3)])
@pytest.mark.parametrize("kind", [dp.mechanisms.AboveThreshold, dp.mechanisms.AboveThresholdLaplace])
def test_scaling_rows_thresholds_and_noise_together_changes_no_answer(kind, center, unit):
    def asked(scale):
        return [question(scale, "a", F(2), center), question(scale, "b", F(3, 2), center)]

    found, expected = (answers(kind, scale, asked(scale), "aab", reach=24).mass for scale in (unit, F(1)))
    assert found.keys() == expected.keys()
    assert all(found[each] == pytest.approx(expected[each], rel=1e-12) for each in expected)


@pytest.mark.parametrize("unit", UNITS)
def test_a_margin_is_counted_in_the_units_of_the_column(unit):
    domain = dp.Domain(x=dp.Number(0, 8 * unit, step=unit))
    table = dp.Table({"x": [float(3 * unit), float(8 * unit)]}, domain)
    assert dp.mechanisms.IsAbove(dp.Sum("x"), 1).margin(table) == 11 * unit - 1
    assert dp.mechanisms.IsAbove(dp.Sum("x"), 1, center=20 * unit).margin(table) == 9 * unit - 1


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", [dp.mechanisms.AboveThreshold, dp.mechanisms.AboveThresholdLaplace])
def test_a_question_moves_by_units_and_not_by_steps(kind, unit):
    facts = Setting(dp.Domain(x=dp.Number(0, 3 * unit, step=unit)), ADD).facts([])
    ask = dp.mechanisms.IsAbove(dp.Sum("x"), 5)
    kind(10, 20, sensitivity=3 * unit).check(ask, facts)
    with pytest.raises(dp.errors.ParameterError, match="sensitivity"):
        kind(10, 20, sensitivity=3 * unit - F(1, 1000)).check(ask, facts)


@pytest.mark.parametrize("kind", [dp.mechanisms.AboveThreshold, dp.mechanisms.AboveThresholdLaplace])
def test_a_monotone_conversation_takes_counts_without_a_center_and_nothing_else(kind):
    facts = Setting(dp.Domain(v=LETTERS, x=dp.Number(0, 1, step=1)), ADD).facts([])
    count, total = dp.Count(dp.Equals("v", "a")), dp.Sum("x")
    cheap, full = kind(10, 20, monotone=True), kind(10, 20)
    cheap.check(dp.mechanisms.IsAbove(count, 5), facts)
    for ask in (
        dp.mechanisms.IsAbove(count, 5, center=3),
        dp.mechanisms.IsAbove(total, 5),
        dp.mechanisms.IsAbove(total, 5, center=3),
    ):
        full.check(ask, facts)
        with pytest.raises(dp.errors.ParameterError, match="monotone"):
            cheap.check(ask, facts)


def test_a_center_would_break_the_price_of_a_monotone_conversation():
    """What the refusal is for: one more row raises the count and lowers the distance from a center above it."""
    setting = one_unit_each(F(1), ADD)
    asks = [
        dp.mechanisms.IsAbove(dp.Count(dp.Equals("v", "a")), 2),
        dp.mechanisms.IsAbove(dp.Count(dp.Equals("v", "a")), 2, center=3),
    ]
    cheap = dp.mechanisms.AboveThreshold(1, 2, monotone=True)
    p, q = (conversation_law(cheap, asks, letters(F(1), text), setting, reach=40) for text in ("a", "aa"))
    assert loss(p, q) > 1.5 == cheap.guarantee(setting.facts([])).pure


# Additive noise.

CENTS = Setting(dp.Domain(x=dp.Number(0, 1, step="0.01")), ADD)


def discrete_gaussian_deviation(sigma: float) -> float:
    weights = {k: math.exp(-k * k / (2 * sigma**2)) for k in range(-100, 101)}
    return math.sqrt(sum(k * k * p for k, p in weights.items()) / sum(weights.values()))


def discrete_laplace_deviation(scale: float) -> float:
    q = math.exp(-1 / scale)
    return math.sqrt(2 * q) / (1 - q)


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize("unit", [F(1, 100), F(1, 2), F(3)])
def test_the_scale_of_noise_is_in_the_columns_unit_and_not_in_steps(kind, unit):
    setting = Setting(dp.Domain(x=dp.Number(0, 100 * unit, step=unit)), ADD)
    found = law(kind(dp.Sum("x"), 2 * unit), [{"x": 50 * unit}], setting, reach=100)
    mean = math.fsum(p * value for value, p in found.mass.items())
    deviation = math.sqrt(math.fsum(p * (value - mean) ** 2 for value, p in found.mass.items()))
    steps = discrete_gaussian_deviation(2) if kind is dp.Gaussian else discrete_laplace_deviation(2)
    assert mean == pytest.approx(50 * unit)
    assert deviation == pytest.approx(steps * unit, rel=1e-9)


@pytest.mark.parametrize("kind", ADDITIVE)
def test_noise_of_one_unit_costs_the_same_in_cents_and_in_units(kind):
    """The sum of a number in [0, 1] moves by 1: scale 1 is epsilon 1, or rho = 1/2, whatever the step is."""
    found = kind(dp.Sum("x"), 1).guarantee(CENTS.facts([]))
    assert found.pure == (None if kind is dp.Gaussian else 1)
    if kind is dp.Gaussian:
        assert found.renyi == pytest.approx([order / 2 for order in ORDERS], rel=1e-9)


def test_gaussian_noise_on_cents_attains_its_zcdp_and_stays_within_it():
    """Rows 0.02 apart, scale 0.02: one standard deviation, rho = 1/2, on laws of two hundred steps."""
    setting = Setting(dp.Domain(x=dp.Number(0, "0.02", step="0.01")), ADD)
    mechanism = dp.Gaussian(dp.Sum("x"), "0.02")
    p, q = law(mechanism, [{"x": F(2, 100)}], setting, reach=100), law(mechanism, [], setting, reach=100)
    claimed = mechanism.guarantee(setting.facts([]))
    for order in (2.0, 3.0, 4.0):
        shared = [each for each in p.mass if q.mass.get(each, 0.0) > 1e-80]
        moment = math.fsum(p.mass[each] ** order * q.mass[each] ** (1 - order) for each in shared)
        assert math.log(moment) / (order - 1) == pytest.approx(claimed.at(order), rel=1e-6)
    assert not compare(p, q, claimed).violates


# Stable histograms: what is released does not depend on the order in which the rows arrive.

WORDS = dp.Domain(v=dp.Category("c", "a", "b"), n=dp.Number(0, 3, step=1))


@pytest.mark.parametrize("order", list(itertools.permutations(["c", "a", "b"])))
def test_bins_come_in_the_order_of_their_labels_whatever_the_order_of_arrival(tmp_path, order):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"v": list(order) * 4, "n": [3, 1] * 6}), path)
    table = dp.ParquetTable(path, WORDS, batch_rows=1)
    batches = []
    table.exact_sum(lambda batch: (batches.append(batch.rows), np.zeros(1, dtype=np.int64))[1])
    assert batches.count(1) == 12
    certain = dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount(("v", "n")), F(1, 10**6), 1)  # its noise is 0
    assert certain.run(table, SeededRng(1)) == tuple(((v, n), 2) for v in ("c", "a", "b") for n in (1, 3))
    noisy = dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount("v"), 2, 2)
    whole = dp.Table({"v": list(order) * 4, "n": [3, 1] * 6}, WORDS)
    assert [noisy.run(table, SeededRng(seed)) for seed in range(9)] == [
        noisy.run(whole, SeededRng(seed)) for seed in range(9)
    ]
    assert dp.mechanisms.StableMode(dp.mechanisms.StableHistogram(dp.mechanisms.KeyCount("v"), F(1, 10**6), 1)).run(
        table, SeededRng(1)
    ) == ("c",)


# Sums that are too large for 64 bits.


@pytest.mark.parametrize("power", range(24, 62))
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_are_in_int64_only_if_no_table_can_wrap_them(power, sign):
    largest = 2**power + 1
    column = dp.Number(*sorted((0, sign * largest)), step=1)
    domain = dp.Domain(x=column, y=dp.Number(0, 1, step=1))
    for query in (dp.Sum("x"), dp.mechanisms.VectorSum(("y", "x")), dp.mechanisms.VectorSum("x")):
        made = query.partial(Batch.empty(domain)).dtype
        assert made in (np.dtype(np.int64), np.dtype(object))
        if made == np.int64:
            assert MAX_ROWS * largest < 2**63


@pytest.mark.parametrize("largest", [2**31, 2**31 + 1, 2**44, 2**61])
def test_sums_over_many_batches_are_exact_beyond_64_bits(largest):
    """One batch that comes again and again: 2^31 rows, without the memory for them."""
    rows, times = 2**18, 2**13
    codes = np.full(rows, largest, dtype=np.int64)
    batch = Batch(dp.Domain(x=dp.Number(0, largest, step=1)), rows, lambda name: codes)
    once = dp.Sum("x").partial(batch)
    assert int(once) == rows * largest
    assert int(sum_of([batch] * times, lambda _: once)) == times * rows * largest


WEALTH = dp.Domain(x=dp.Number(-(10**12), 10**12, step="0.01"), v=LETTERS)


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize("query", [dp.Sum("x"), dp.mechanisms.VectorSum("x")], ids=["scalar", "vector"])
def test_a_sum_of_contributions_beyond_32_bits_is_released(kind, query):
    table = dp.Table({"x": [1e12, 1e12, -7.25], "v": ["a", "a", "b"]}, WEALTH)
    ledger = dp.Ledger.in_memory(dp.Budget(100, 1e-6), table, testing=True)
    released = dp.release(kind(query, 10**12), table, ledger=ledger, rng=SeededRng(3))
    value = released.value if isinstance(query, dp.Sum) else released.value[0]
    assert isinstance(value, float)
    assert abs(value - (2e12 - 7.25)) <= 40e12
    assert isinstance(query, dp.Sum) or released.value.shape == (1,)


@pytest.mark.parametrize("kind", ADDITIVE)
def test_a_large_sum_in_a_whole_unit_is_released_as_an_exact_integer(kind):
    domain = dp.Domain(x=dp.Number(0, 2**60, step=1))
    table = dp.Table({"x": [2**60, 2**60, 2**60 - 1]}, domain, neighbours="add-remove")
    ledger = dp.Ledger.in_memory(dp.Budget(10**18), table, testing=True)
    released = kind(dp.Sum("x"), F(1, 10**6)).run(table, SeededRng(1))
    assert (type(released), released) == (int, 3 * 2**60 - 1)
    if kind is not dp.Gaussian:  # pure
        kept = dp.release(kind(dp.Sum("x"), 1000), table, ledger=ledger, rng=SeededRng(1))
        assert type(kept.value) is int


@pytest.mark.parametrize("kind", [dp.Exponential, dp.mechanisms.PermuteAndFlip])
def test_scores_beyond_64_bits_are_refused_before_the_charge(kind):
    domain = dp.Domain(x=dp.Number(0, 2**32, step=1), y=dp.Number(0, 1, step=1))
    table = dp.Table({"x": [1], "y": [1]}, domain)
    refused_before_the_charge(kind(dp.mechanisms.VectorSum(("x", "y")), F(1, 2**40)), table, "64 bits")


def refused_before_the_charge(mechanism: Mechanism, table: dp.data.Dataset, says: str) -> None:
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table)
    before = len(list(ledger.entries()))
    with pytest.raises(dp.errors.ParameterError, match=says):
        dp.release(mechanism, table, ledger=ledger)
    assert len(list(ledger.entries())) == before


@pytest.mark.parametrize("kind", ADDITIVE)
def test_the_sum_of_a_vector_of_several_numbers_is_refused_before_the_charge(kind):
    matrix = dp.Matrix([[0.1, 0.2, 0.3]], features=dp.Vector(3, norm=1))
    refused_before_the_charge(kind(dp.Sum("x"), 1), matrix, "use VectorSum")
    facts = matrix.facts
    with pytest.raises(dp.errors.ParameterError, match="use VectorSum"):
        dp.mechanisms.AboveThreshold(1, 2).check(dp.mechanisms.IsAbove(dp.Sum("x"), 1), facts)


def test_the_sum_of_a_vector_of_one_number_is_a_sum():
    matrix = dp.Matrix([[0.5], [0.25]], features=dp.Vector(1, norm=1, step="0.25"))
    assert dp.Laplace(dp.Sum("x"), F(1, 10**6)).run(matrix, SeededRng(1)) == 0.75


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize(("high", "step"), [("1e-270", "1e-280"), ("1e-250", "1e-251"), (10**280, 10**270)])
def test_a_unit_that_floats_cannot_hold_is_refused_before_the_charge(kind, high, step):
    column = dp.Number(0, high, step=step)
    table = dp.Table({"x": [0]}, dp.Domain(x=column))
    refused_before_the_charge(kind(dp.Sum("x"), column.high), table, "floats cannot hold")


# Plans and calibration.


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_a_plan_for_several_rows_a_person_gives_conversations_that_take_counts(kind):
    neighbours = dp.Neighbours(kind, 5)
    made = dp.plan("threshold", budget=dp.Budget(1), neighbours=neighbours, questions=100)
    facts = dp.data.Facts(dp.Domain(v=LETTERS), neighbours, 10 if kind == "replace-one" else None)
    assert len(made.rows) == 2
    for row in made.rows:
        row.mechanism.check(dp.mechanisms.IsAbove(dp.Count(dp.Equals("v", "a")), 5), facts)
        assert row.mechanism.sensitivity == 5
        assert 1 - 1e-5 < row.mechanism.guarantee(facts).pure <= 1
        one = dp.plan("threshold", budget=dp.Budget(1), neighbours=kind, questions=100)
        (alone,) = [each for each in one.rows if each.method == row.method]
        assert row.error == pytest.approx(5 * alone.error, rel=1e-2)


STRANGE = [("1e-10", "1e-17"), (10**25, 10**20), (10**80, 10**79)]


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize(("high", "step"), STRANGE, ids=["tiny", "large", "huge"])
def test_calibrate_finds_the_noise_in_any_unit(kind, high, step):
    facts = dp.data.Facts(dp.Domain(x=dp.Number(0, high, step=step)), ADD, None)
    budget = dp.Budget(1, 1e-6) if kind is dp.Gaussian else dp.Budget(1)
    funds = dp.Funds.of(budget)
    found = dp.calibrate(lambda scale: kind(dp.Sum("x"), scale), funds=funds, facts=facts)
    assert funds.admits(found.guarantee(facts))
    assert not funds.admits(kind(dp.Sum("x"), found.scale * (1 - F(1, 2**19))).guarantee(facts))
    # One row moves the sum by `high`: epsilon 1 is that scale, and rho = 0.02436 is (1, 1e-6).
    expected = 1 / math.sqrt(2 * 0.02436) if kind is dp.Gaussian else 1
    assert float(found.scale / F(high)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("kind", [dp.Exponential, dp.mechanisms.PermuteAndFlip])
@pytest.mark.parametrize(("high", "step"), STRANGE, ids=["tiny", "large", "huge"])
def test_calibrate_finds_the_rate_in_any_unit(kind, high, step):
    column = dp.Number(0, high, step=step)
    facts = dp.data.Facts(dp.Domain(x=column, y=column), ADD, None)
    funds = dp.Funds.of(dp.Budget(1))
    found = dp.calibrate(lambda noise: kind(dp.mechanisms.VectorSum(("x", "y")), 1 / noise), funds=funds, facts=facts)
    assert 1 - 1e-5 < found.guarantee(facts).pure <= 1
