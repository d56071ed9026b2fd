"""Sessions that answer questions: where answers come from, what they cost, and that the ledger is all they remember."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.answering.linear_query import meaning, scope_of
from discreet.ledger import charging
from discreet.query import Among, And, Between, Count, Equals, Histogram, Missing, Not, Or, Sum

DOMAIN = dp.Domain(
    age=dp.Number(0, 90, step=10),
    sex=dp.Category("F", "M"),
    region=dp.Category("N", "S", "E", "W"),
    visits=dp.Number(0, 5, step=1, missing=True),
)
N = 20_000


def rows(n=N, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 10, n) * 10
    visits = np.minimum(5, rng.poisson(age / 30)).astype(object)
    visits[rng.random(n) < 0.1] = None
    return {
        "age": age,
        "sex": np.where(rng.random(n) < 0.4, "F", "M"),
        "region": rng.choice(["N", "S", "E", "W"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "visits": visits.tolist(),
    }


ROWS = rows()
AGE, SEX, REGION = ROWS["age"], ROWS["sex"], ROWS["region"]
VISITS = np.array([np.nan if each is None else each for each in ROWS["visits"]])


def table(**declared):
    return dp.Table(ROWS, DOMAIN, **{"name": "people", **declared})


def opened(budget=None, *, on=None, **terms):
    people = on or table()
    ledger = dp.Ledger.in_memory(budget or dp.Budget(1, 1e-6), people)
    return dp.Session(people, ledger, **{"alpha": 0.02, "max_price": 1, **terms})


def charges(session):
    return [body for body in session.ledger.entries() if body["kind"] == "charge"]


# Where answers come from.


def test_the_first_question_is_paid_and_the_same_question_is_free_with_the_same_bytes():
    session = opened()
    first = session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    assert first.source == "direct"
    assert first.price > 0
    spent = session.ledger.spent()
    again = session.ask("SELECT COUNT(*) FROM people WHERE NOT (sex = 'M')")
    assert (again.value, again.error_bound, again.source, again.price) == (first.value, first.error_bound, "cache", 0)
    assert session.ledger.spent() == spent


def test_an_answer_of_zero_is_an_answer():
    everybody_young = {name: values[:1000] for name, values in ROWS.items()}
    everybody_young["age"] = np.zeros(1000, dtype=int)
    people = dp.Table(everybody_young, DOMAIN, name="people")
    session = opened(dp.Budget(10**12, 1e-6), on=people, alpha="0.001")
    first = session.ask("SELECT COUNT(*) FROM people WHERE age >= 50")
    assert first.value == 0
    assert session.ask("SELECT COUNT(*) FROM people WHERE age >= 50").source == "cache"


@pytest.mark.parametrize(("each", "worth"), [("1", 1), ("3", 3)])
def test_a_sum_to_which_every_row_adds_the_same_is_public_where_their_number_is(each, worth):
    """Everything that was measured speaks of it, so that it took longer the longer the session was."""
    text = f"SELECT SUM(CASE WHEN sex IN ('F', 'M') THEN {each} ELSE 0 END) FROM people"
    answer = opened().ask(text)
    assert (answer.value, answer.error_bound, answer.source, answer.price) == (worth * N, 0, "public", 0)
    assert opened(on=table(neighbours="add-remove", size=N)).ask(text).price > 0
    some = text.replace("'F', 'M'", "'F'")
    assert opened().ask(some).price > 0


def test_the_number_of_all_rows_is_public_under_replace_one_and_only_there():
    answer = opened().ask("SELECT COUNT(*) FROM people")
    assert (answer.value, answer.error_bound, answer.source, answer.price) == (N, 0, "public", 0)
    hidden = opened(on=table(neighbours="add-remove", size=N)).ask("SELECT COUNT(*) FROM people")
    assert hidden.source == "direct"
    assert hidden.price > 0


def test_a_marginal_answers_the_questions_about_its_columns():
    session = opened()
    session.ask("SELECT region, COUNT(*) FROM people GROUP BY region")
    spent = session.ledger.spent()
    for region in "NSEW":
        answer = session.ask(f"SELECT COUNT(*) FROM people WHERE region = '{region}'")
        assert (answer.source, answer.price) == ("hypothesis", 0)
        assert answer.error_bound <= 0.02 * N
    assert session.ledger.spent() == spent


def test_the_price_is_in_the_ledger_and_zero_only_if_nothing_was_charged():
    session = opened()
    for question in (
        "SELECT COUNT(*) FROM people WHERE age >= 50",
        "SELECT AVG(visits) FROM people WHERE region = 'N'",
        "SELECT COUNT(*) FROM people WHERE age >= 50 AND sex = 'F'",
        "SELECT region, sex, COUNT(*) FROM people GROUP BY region, sex",
        "SELECT COUNT(*) FROM people WHERE region = 'N'",
    ):
        before = session.ledger.spent().renyi
        assert session.ask(question).price == session.ledger.spent().renyi - before


# What an answer says.


def test_a_group_by_is_a_histogram_with_one_bound_for_all_groups():
    session = opened()
    answer = session.ask("SELECT region, sex, COUNT(*) FROM people WHERE age >= 30 GROUP BY region, sex")
    assert list(answer.value) == [(region, sex) for region in "NSEW" for sex in "FM"]
    assert len(charges(session)) == 1
    frame = answer.frame()
    assert frame.columns.tolist()[:3] == ["region", "sex", "COUNT(*)"]
    assert frame["COUNT(*)"].tolist() == list(answer.value.values())
    assert answer.fraction["N", "F"] == answer.value["N", "F"] / N


def test_a_sum_is_in_the_columns_unit_and_an_average_is_a_quotient_of_intervals():
    session = opened(dp.Budget(10**9, 1e-6), alpha="0.0001", beta=1e-6)
    inside = REGION == "N"
    total = session.ask("SELECT SUM(visits) FROM people WHERE region = 'N'")
    assert abs(total.value - np.nansum(VISITS[inside])) <= total.error_bound <= 0.0001 * N * 5
    mean = session.ask("SELECT AVG(visits) FROM people WHERE region = 'N'")
    assert abs(mean.value - np.nanmean(VISITS[inside])) <= mean.error_bound < 0.01
    assert mean.unit == "visits"


def test_an_average_lies_between_the_values_that_it_averages():
    session = opened(alpha=0.05)
    for where, least in (("visits >= 4", 4), ("age >= 80 AND visits >= 3", 3), ("region = 'W' AND sex = 'F'", 0)):
        answer = session.ask(f"SELECT AVG(visits) FROM people WHERE {where}")
        assert least <= answer.value <= 5
        assert answer.error_bound <= 5 - least or math.isinf(answer.error_bound)
    assert session.ask("SELECT SUM(visits) FROM people WHERE age = 90").value >= 0


def test_half_an_average_is_never_paid_for():
    session = opened(dp.Budget("0.08", 1e-9), alpha="0.02")
    with pytest.raises(dp.BudgetExceeded, match=r"With alpha=0.* this question would fit"):
        [session.ask(f"SELECT AVG(visits) FROM people WHERE age >= {age}") for age in range(10, 90, 10)]
    assert {len(body["mechanism"].get("queries", [1, 2])) for body in charges(session)} == {2}


def test_the_order_of_the_groups_does_not_matter_to_what_is_asked():
    session = opened()
    first = session.ask("SELECT region, sex, COUNT(*) FROM people GROUP BY region, sex")
    again = session.ask("SELECT sex, region, COUNT(*) FROM people GROUP BY sex, region")
    assert again.source == "cache"
    assert {(region, sex): count for (sex, region), count in again.value.items()} == first.value
    assert list(again.value)[:2] == [("F", "N"), ("F", "S")]


def test_groups_of_a_part_answer_for_their_parts_and_counts_for_the_rest():
    session = opened()
    groups = session.ask(Histogram(("sex",), Among("age", [10, 30, 50, 70])))
    one = session.ask(Count(And(Among("age", [10, 30, 50, 70]), Equals("sex", "F"))))
    assert (one.source, one.price) == ("hypothesis", 0)
    assert abs(one.value - groups.value["F"]) <= one.error_bound
    alone = opened()
    many = alone.ask(Count(Or(Between("age", 0, 60), Equals("sex", "F"), Equals("region", "N"))))
    others = alone.ask(Count(Not(Or(Between("age", 0, 60), Equals("sex", "F"), Equals("region", "N")))))
    assert (others.source, others.price) == ("hypothesis", 0)
    assert many.value + others.value == N


def test_the_average_of_nobody_is_known_to_lie_in_the_declared_interval():
    nobody = {
        name: [value for value, keep in zip(values, AGE < 50, strict=True) if keep] for name, values in ROWS.items()
    }
    session = opened(on=dp.Table(nobody, DOMAIN, name="people"), beta=1e-6)  # seldom surely nobody
    found = session.ask("SELECT AVG(visits) FROM people WHERE age >= 80")
    visits = DOMAIN["visits"]
    assert found.intervals == [((float(visits.low), float(visits.high)),)]
    assert math.isfinite(found.error_bound)


def test_a_median_is_within_its_ranks_and_remembered():
    session = opened()
    got = session.ask("SELECT MEDIAN(age) FROM people")
    below, upto = np.sum(got.value > AGE), np.sum(got.value >= AGE)
    assert max(below - N / 2, N / 2 - upto) <= 0.1 * N  # five times the bound: it fails with probability < 1e-9
    again = session.ask("SELECT QUANTILE_DISC(age, 0.5) FROM people")
    assert (again.value, again.source, again.price) == (got.value, "cache", 0)
    low, high = got.intervals[0][0]
    assert low <= np.median(AGE) <= high
    assert 0 < got.ranks <= 0.02 * N
    some = session.ask("SELECT sex, MEDIAN(age) FROM people WHERE age >= 20 GROUP BY sex", max_price=1)
    assert set(some.value) == {"F", "M"}


# Other tables.


def test_a_file_larger_than_memory_is_asked_the_same_way(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table({name: list(values) for name, values in ROWS.items()}), tmp_path / "people.parquet")
    people = dp.ParquetTable(tmp_path / "people.parquet", DOMAIN, name="people")
    session = opened(on=people)
    for _ in range(2):
        answer = session.ask("SELECT COUNT(*) FROM people WHERE age >= 50 AND sex = 'F'")
        assert abs(answer.value - np.sum((AGE >= 50) & (SEX == "F"))) < 0.1 * N
    assert answer.source == "cache"
    assert abs(session.ask("SELECT MEDIAN(age) FROM people").value - np.median(AGE)) <= 20


def test_columns_too_fine_to_be_listed_are_answered_from_the_rows():
    fine = dp.Domain(x=dp.Number(0, 1, step="1e-9"), y=dp.Number(0, 1, step="1e-9"), z=dp.Category("a", "b"))
    x = np.random.default_rng(1).random(5000).round(9)
    session = opened(on=dp.Table({"x": x, "y": x[::-1], "z": ["a"] * 5000}, fine, name="people"))
    answer = session.ask("SELECT COUNT(*) FROM people WHERE x >= 0.5 AND y < 0.25")
    assert answer.source == "direct"
    assert abs(answer.value - np.sum((x >= 0.5) & (x[::-1] < 0.25))) < 0.1 * 5000
    assert session.ask("SELECT COUNT(*) FROM people WHERE x >= 0.5 AND y < 0.25").source == "cache"
    assert session.ask("SELECT z, COUNT(*) FROM people WHERE x < 0.5 GROUP BY z").price > 0
    assert session.ask("SELECT COUNT(*) FROM people WHERE z = 'a'").price > 0
    assert len(session.synthetic(3)) == 3


def test_many_columns_that_tangle_are_still_answered():
    """Ten columns in pairs: no junction tree of these is small. What does not fit is left out of the hypothesis."""
    wide = dp.Domain({f"c{i}": dp.Number(0, 9, step=1) for i in range(10)})
    rng = np.random.default_rng(2)
    rows = {name: rng.integers(0, 10, 20_000) for name in wide}
    session = opened(dp.Budget(10, 1e-6), on=dp.Table(rows, wide, name="people"))
    names = list(wide)
    for i, one in enumerate(names):
        for other in names[i + 1 :: 2]:
            answer = session.ask(Count(And(Equals(one, 3), Equals(other, 4))))
            truth = np.sum((rows[one] == 3) & (rows[other] == 4))
            assert abs(answer.value - truth) < 0.1 * 20_000
    assert session._answers.fitted().left_out


# The promise.


def worst_error(session, questions, truths):
    """The largest error as a part of its bound."""
    worst = 0.0
    for question, truth in zip(questions, truths, strict=True):
        answer = session.ask(question)
        worst = max(worst, abs(answer.value - truth) / max(answer.error_bound, 1e-9))
        assert answer.error_bound <= 0.02 * N + 1e-6
    return worst


@pytest.mark.parametrize("declared", [{}, {"neighbours": "add-remove", "size": N}], ids=["replace-one", "add-remove"])
def test_answers_are_within_their_bounds(declared):
    """A bound fails with probability 0.05 for the session; three sessions all fail with probability 1e-4 at most, and
    in fact far below, since each failure takes noise at five standard deviations."""
    questions, truths = [], []
    for low in (10, 30, 50, 70):
        for sex in "FM":
            questions.append(Count(And(Between("age", low, 90), Equals("sex", sex))))
            truths.append(np.sum((low <= AGE) & (sex == SEX)))
        questions.append(Count(And(Between("age", low, 90), Among("region", ("N", "W")))))
        truths.append(np.sum((low <= AGE) & np.isin(REGION, ["N", "W"])))
    questions.append(Count(Missing("visits")))
    truths.append(np.isnan(VISITS).sum())
    sessions = [worst_error(opened(on=table(**declared)), questions, truths) for _ in range(3)]
    assert min(sessions) <= 1


def test_a_pure_ledger_answers_with_laplace_noise():
    session = opened(dp.Budget(3), alpha=0.05)
    answer = session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    assert answer.error_bound <= 0.05 * N
    assert {body["mechanism"]["name"] for body in charges(session)} == {"laplace/1"}
    session.ask("SELECT region, COUNT(*) FROM people GROUP BY region")
    session.ask("SELECT MEDIAN(age) FROM people")


# The population.


def test_a_sample_has_a_bound_for_its_population_that_grows_with_what_was_told():
    session = opened(alpha=0.02, beta=0.0005, sample=True)
    first = session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    assert first.error_bound / N < first.population < 0.05
    for low in range(10, 90, 10):
        last = session.ask(Count(And(Between("age", low, 90), Equals("sex", "F"))))
    assert first.population < last.population < 0.2
    assert opened().ask("SELECT COUNT(*) FROM people WHERE sex = 'F'").population is None
    with pytest.raises(dp.errors.Unproven, match="add-remove"):
        opened(on=table(neighbours="add-remove", size=N), sample=True)


# Thresholds.


def a_question(rng):
    ages = rng.choice(10, size=5, replace=False) * 10
    regions = rng.choice(["N", "S", "E", "W"], size=2, replace=False)
    return Count(And(Among("age", ages.tolist()), Among("region", regions.tolist()), Equals("sex", "F")))


def test_a_threshold_is_opened_when_it_is_worth_its_price_and_then_answers_free():
    """As if so much had been rented. Nothing was measured about the three columns together, but they are independent,
    as the hypothesis believes."""
    session = opened(dp.Budget(5, 1e-6), alpha=0.05)
    for columns in (("age", "region"), ("sex",)):
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    session._answers.transcript.saved = 10**12
    rng = np.random.default_rng(3)
    answers = [session.ask(a_question(rng)) for _ in range(40)]
    thresholds = [body for body in charges(session) if body["mode"] == "conversation"]
    assert len(thresholds) == 1
    free = [each for each in answers if each.source == "hypothesis"]
    assert len(free) >= 30
    assert all(each.error_bound == 0.05 * N for each in free)
    assert sum(each.price > 0 for each in free) <= 1  # the question that opened the threshold paid for it
    assert sum(each.price for each in answers) == sum(body["price"]["renyi"] for body in charges(session)[2:])


def test_no_threshold_is_opened_before_as_much_was_rented():
    session = opened(dp.Budget(5, 1e-6), alpha=0.05, questions=10**9)
    for columns in (("age", "region"), ("sex",)):
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    rng = np.random.default_rng(3)
    for _ in range(30):
        session.ask(a_question(rng))
    assert {body["mode"] for body in charges(session)} == {"release"}
    assert session._answers.transcript.saved > 0


def test_after_a_threshold_has_fired_the_next_one_must_be_saved_for_again():
    session = opened(dp.Budget(50, 1e-6), alpha=0.05)
    for columns in (("age",), ("visits",)):  # which depend on each other, unlike the hypothesis believes
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    session._answers.transcript.saved = 10**12
    answers = [session.ask(Count(And(Between("age", 0, age), Among("visits", [0])))) for age in range(10, 80, 10)]
    assert "measurement" in {answer.source for answer in answers}
    assert session._answers.transcript.saved < 10**12
    assert len([body for body in charges(session) if body["mode"] == "conversation"]) == 1


def test_a_threshold_is_never_more_than_half_of_what_is_left():
    session = opened(dp.Budget("0.5", 1e-6), alpha=0.012)
    session.ask(Histogram(("age",)))
    session.ask(Histogram(("sex",)))
    session._answers.transcript.saved = 10**12
    session.ask(Count(And(Equals("sex", "F"), Between("age", 50, 90))))
    assert {body["mode"] for body in charges(session)} == {"release"}


def test_a_threshold_above_max_price_is_not_opened_and_the_question_is_answered_alone():
    session = opened(dp.Budget(5, 1e-6), alpha=0.05)
    for columns in (("age", "region"), ("sex",)):
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    answers = session._answers
    answers.transcript.saved = 10**12
    threshold = answers.calibration.price(answers.calibration.threshold(answers.transcript.next_order))
    assert answers.worth_opening()
    answers.most = Fraction(threshold - 1, answers.calibration.cap)
    assert session.ask(a_question(np.random.default_rng(3))).source == "direct"
    assert {body["mode"] for body in charges(session)} == {"release"}


def with_two_tables(**terms):
    """A session that knows two tables, so that its guess about all three columns is good, and has saved much."""
    session = opened(dp.Budget(5, 1e-6), alpha=0.05, **terms)
    for columns in (("age", "region"), ("sex",)):
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    session._answers.catch_up()
    session._answers.transcript.saved = 10**12
    return session


def test_a_marginal_steps_back_if_it_and_a_threshold_are_above_max_price_together():
    """Each of them alone is within it. Before, the question was refused."""
    session, question = with_two_tables(), a_question(np.random.default_rng(3))
    answers = session._answers
    scope, calibration = scope_of(question, DOMAIN), answers.calibration
    answers.transcript.rented[scope] = 10**12  # as if much had been paid for single counts of it
    threshold = calibration.price(calibration.threshold(answers.transcript.next_order))
    marginal = calibration.price(answers.inquire([question])[0].marginal(0, Fraction(10**30)))
    assert [type(each).__name__ for each in answers.bill([question])] == ["AboveThreshold", "Gaussian"]
    assert session.price(question) > threshold + marginal * Fraction(99, 100)
    session._most = answers.most = Fraction(max(threshold, marginal) + min(threshold, marginal) // 2, calibration.cap)
    told = session.price(question)
    assert threshold < told <= session._most * calibration.cap
    assert session.ask(question).price <= told


def test_a_threshold_steps_back_if_not_even_a_count_fits_beside_it():
    session, question = with_two_tables(), a_question(np.random.default_rng(3))
    answers = session._answers
    threshold = answers.calibration.price(answers.calibration.threshold(answers.transcript.next_order))
    session._most = answers.most = Fraction(threshold + 1, answers.calibration.cap)
    told = session.price(question)
    assert told < threshold
    assert session.ask(question).source == "direct"


def test_a_threshold_that_answered_for_its_price_is_followed_by_another_at_once():
    session = with_two_tables()
    answers = session._answers
    session.ask(a_question(np.random.default_rng(3)))
    answers.catch_up()
    assert (answers.transcript.runs, answers.transcript.passed) == (1, 1)
    charging.end(session.ledger, answers.transcript.open_run.entry)
    answers.catch_up()
    answers.transcript.saved = 0
    assert not answers.worth_opening()
    answers.transcript.passed = 10**6
    assert answers.worth_opening()


def test_the_price_of_a_threshold_is_no_rent_of_the_question_that_opened_it():
    session, question = with_two_tables(), a_question(np.random.default_rng(3))
    answer = session.ask(question)
    assert (answer.source, answer.price > 0) == ("hypothesis", True)
    session._answers.catch_up()
    assert not session._answers.transcript.rented.get(scope_of(question, DOMAIN), 0)


# The ledger is the state.


def test_another_session_on_the_same_ledger_knows_everything(tmp_path):
    people = table()
    ledger = dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(1, 1e-6), people, state_dir=tmp_path / "state")
    session = dp.Session(people, ledger, alpha=0.02)
    asked = ["SELECT COUNT(*) FROM people WHERE age >= 50", "SELECT region, COUNT(*) FROM people GROUP BY region"]
    first = [session.ask(each) for each in asked]
    rows_before = session.synthetic(50, seed=1)
    ledger.close()

    opened_again = dp.Ledger.open(tmp_path / "people.ledger", state_dir=tmp_path / "state")
    other = dp.Session(people, opened_again, alpha=0.02)
    spent = opened_again.spent()
    again = [other.ask(each) for each in asked]
    assert [each.value for each in again] == [each.value for each in first]
    assert {each.source for each in again} == {"cache"}
    assert other.synthetic(50, seed=1).equals(rows_before)
    assert opened_again.spent() == spent


def test_a_stricter_session_does_not_take_the_looser_answers():
    session = opened(dp.Budget(10, 1e-6))
    session.ask("SELECT COUNT(*) FROM people WHERE age >= 50")
    strict = dp.Session(session.table, session.ledger, alpha=0.005)
    answer = strict.ask("SELECT COUNT(*) FROM people WHERE age >= 50")
    assert answer.price > 0
    assert answer.error_bound <= 0.005 * N
    loose = dp.Session(session.table, session.ledger, alpha=0.1)
    assert loose.ask("SELECT COUNT(*) FROM people WHERE age >= 50").source == "cache"


def test_a_release_made_outside_any_session_is_a_measurement_too():
    session = opened()
    dp.release(dp.Gaussian(dp.Histogram("region"), scale=20), session.table, ledger=session.ledger)
    answer = session.ask("SELECT COUNT(*) FROM people WHERE region = 'S'")
    assert (answer.source, answer.price) == ("hypothesis", 0)
    assert abs(answer.value - np.sum(REGION == "S")) < 20 * 12


def test_when_the_budget_is_spent_the_answer_is_budget_exceeded_and_never_a_guess():
    session = opened(dp.Budget("0.05", 1e-9), alpha=0.02)
    asked = [
        Count(And(Between("age", low, 90), Equals("region", region))) for low in range(10, 100, 10) for region in "NSEW"
    ]
    session.ask(asked[0])
    with pytest.raises(dp.BudgetExceeded):
        [session.ask(each) for each in asked]
    cached = session.ask(Count(And(Between("age", 10, 90), Equals("region", "N"))))
    assert cached.source == "cache"


def test_declared_scopes_get_equal_shares():
    session = opened(alpha=None, scopes=4)
    prices = [
        session.ask(Histogram(columns)).price
        for columns in (("age",), ("sex", "region"), ("visits",), ("age", "region"))
    ]
    cap = session.ledger.spent().caps.renyi
    assert all(0.24 * cap < price <= 0.25 * cap + 1 for price in prices)
    assert session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'").price == 0
    with pytest.raises(dp.errors.ParameterError, match="scopes are used up"):
        session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F' AND visits = 2")


# The classic programs.


@pytest.mark.parametrize("method", ["pmw", "lecture"])
def test_private_multiplicative_weights_answers_sql(method):
    """A budget in millions, so that these few people are enough for the theorem."""
    session = opened(dp.Budget(10**7, 1e-6), alpha="0.1", questions=50, method=method)
    with pytest.raises(dp.errors.ParameterError, match="nothing was measured yet"):
        session.synthetic(5)
    truths = {"sex = 'F'": np.sum(SEX == "F"), "region = 'W'": np.sum(REGION == "W"), "age >= 50": np.sum(AGE >= 50)}
    answers = {where: session.ask(f"SELECT COUNT(*) FROM people WHERE {where}") for where in truths}
    assert {answer.source for answer in answers.values()} <= {"hypothesis", "measurement"}
    assert "measurement" in {answer.source for answer in answers.values()}
    for where, answer in answers.items():
        assert abs(answer.value - truths[where]) <= answer.error_bound <= 0.1 * N
    assert session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'").source == "cache"
    assert len(session.synthetic(5)) == 5
    with pytest.raises(dp.errors.ParameterError, match="counts"):
        session.ask("SELECT SUM(visits) FROM people")
    with pytest.raises(dp.errors.ParameterError, match="auto"):
        session.ask("SELECT MEDIAN(age) FROM people")


@pytest.mark.parametrize("method", ["pmw", "lecture"])
def test_a_theorem_that_does_not_fit_the_budget_is_refused_with_what_would(method):
    with pytest.raises(dp.errors.ParameterError, match="alpha"):
        opened(method=method)
    with pytest.raises(dp.errors.Unproven, match="auto"):
        opened(method=method, on=table(neighbours="add-remove", size=N))


def test_answers_belong_to_the_declaration_they_were_given_under():
    """The same codes mean something else once the levels are declared in another order."""
    session = opened()
    session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    turned = dp.Domain(**{**dict(DOMAIN), "sex": dp.Category("M", "F")})
    other = dp.Session(dp.Table(ROWS, turned, name="people"), session.ledger, alpha=0.02)
    answer = other.ask("SELECT COUNT(*) FROM people WHERE sex = 'M'")
    assert answer.price > 0
    assert abs(answer.value - np.sum(SEX == "M")) < 0.1 * N


# Workloads.


def test_a_workload_is_one_charge_and_its_answers_are_remembered():
    session = opened()
    questions = [
        "SELECT age, COUNT(*) FROM people GROUP BY age",
        "SELECT region, sex, COUNT(*) FROM people GROUP BY region, sex",
        "SELECT COUNT(*) FROM people WHERE age >= 50 AND sex = 'F'",
        "SELECT AVG(visits) FROM people WHERE region = 'N'",
    ]
    answers = session.answer_all(questions, share="1/2")
    assert len(charges(session)) == 1
    assert sum(answer.price for answer in answers) == session.ledger.spent().renyi
    cap = session.ledger.spent().caps.renyi
    assert 0.49 * cap < session.ledger.spent().renyi <= 0.5 * cap
    assert abs(answers[2].value - np.sum((AGE >= 50) & (SEX == "F"))) <= 5 * answers[2].error_bound
    again = [session.ask(question) for question in questions]
    assert [each.value for each in again] == [each.value for each in answers]
    assert {each.source for each in again} == {"cache"}
    assert session.ask("SELECT COUNT(*) FROM people WHERE age = 30").price == 0  # read off what was released
    once_more = session.answer_all([*questions, "SELECT COUNT(*) FROM people"])
    assert [each.price for each in once_more] == [0] * 5
    assert once_more[-1].error_bound == 0
    assert len(charges(session)) == 1


def test_a_workload_in_a_pure_ledger():
    session = opened(dp.Budget(2), alpha=0.1)
    answers = session.answer_all([Histogram("region"), Count(Equals("sex", "F"))])
    assert all(answer.error_bound < 200 for answer in answers)


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ([], "at least one"),
        (["SELECT MEDIAN(age) FROM people"], "one by one"),
        ("SELECT COUNT(*) FROM people", "in a list"),
        (None, "in a list"),
        ([3], "a question is SQL"),
    ],
)
def test_a_workload_that_is_none_is_refused(questions, words):
    session = opened()
    with pytest.raises(dp.errors.ParameterError, match=words):
        session.answer_all(questions)
    assert charges(session) == []


def test_declared_scopes_count_all_rows_too():
    session = opened(on=table(neighbours="add-remove", size=N), alpha=None, scopes=3)
    answer = session.ask("SELECT COUNT(*) FROM people")
    assert answer.price > 0
    assert abs(answer.value - N) <= 3 * answer.error_bound


@pytest.mark.parametrize("where", ["sex = 'F'", "sex = 'F' OR sex = 'M'"])
@pytest.mark.parametrize(("scopes", "alpha"), [(1, None), (2, None), (2, "0.3")])
def test_an_average_takes_one_of_the_declared_scopes_and_what_its_price_says(scopes, alpha, where):
    people = table(neighbours="add-remove", size=N)
    session = opened(dp.Budget(10, 1e-6), on=people, alpha=alpha, scopes=scopes)
    average = f"SELECT AVG(age) FROM people WHERE {where}"  # its count is about a part of the columns of its sum
    price = int(session.price(average))
    assert session.ask(average).price == price == session.ledger.spent().renyi
    assert len(charges(session)) == 1
    assert price <= Fraction(session.ledger.spent().caps.renyi, scopes)


def test_no_scope_is_paid_for_a_question_that_needs_more_than_are_left():
    session = opened(dp.Budget(10, 1e-6), alpha="0.3", scopes=2, max_price=3)
    assert session.ask("SELECT region, COUNT(*) FROM people GROUP BY region").price > 0
    with pytest.raises(dp.errors.DiscreetError):
        session.ask("SELECT SUM(age), SUM(visits) FROM people")
    assert len(charges(session)) == 1


def test_declared_scopes_with_an_alpha_answer_as_well_as_they_were_measured():
    session = opened(alpha="0.0005", scopes=20)
    answer = session.ask(Count(And(Equals("sex", "F"), Equals("region", "N"))))
    assert answer.price > 0
    assert 0.0005 * N < answer.error_bound < 0.05 * N
    assert session.ask(Count(And(Equals("sex", "M"), Equals("region", "N")))).price == 0


def test_a_threshold_that_somebody_else_opened_by_our_name_is_left_alone():
    session = opened(dp.Budget(5, 1e-6), alpha=0.05)
    for columns in (("age", "region"), ("sex",)):
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    dp.converse(
        dp.mechanisms.AboveThreshold(10, 20, sensitivity="1/2"),
        session.table,
        ledger=session.ledger,
        memo="rent-or-buy/2",
    )
    rng = np.random.default_rng(3)
    assert {session.ask(a_question(rng)).source for _ in range(5)} <= {"direct", "hypothesis", "measurement"}


# Synthetic rows.


def test_synthetic_rows_are_of_the_domain_and_look_like_the_table():
    session = opened(dp.Budget(100, 1e-6), alpha=0.01)
    session.ask(Histogram(("age", "visits")))
    session.ask(Histogram(("sex", "region")))
    spent = session.ledger.spent()
    frame = session.synthetic(20_000, seed=5)
    assert frame.columns.tolist() == ["age", "sex", "region", "visits"]
    assert session.ledger.spent() == spent
    assert abs((frame["sex"] == "F").mean() - np.mean(SEX == "F")) < 0.05
    assert abs(frame["visits"].isna().mean() - np.isnan(VISITS).mean()) < 0.05
    again = dp.Table(frame.to_dict("list") | {"visits": [None if v != v else v for v in frame["visits"]]}, DOMAIN)
    assert again.facts.size == 20_000


# Meaning.


def test_questions_that_mean_the_same_are_the_same():
    old = Count(Between("age", 50, 90))
    assert meaning(old, DOMAIN) == meaning(Count(Not(Between("age", 0, 40))), DOMAIN)
    assert meaning(old, DOMAIN) == meaning(
        Count(And(Between("age", 50, 90), Or(Equals("sex", "F"), Equals("sex", "M")))), DOMAIN
    )
    assert meaning(old, DOMAIN) != meaning(Count(Between("age", 60, 90)), DOMAIN)
    assert meaning(Count(Equals("sex", "F")), DOMAIN) != meaning(Count(Equals("region", "N")), DOMAIN)
    assert meaning(Sum("visits"), DOMAIN) != meaning(Sum("age"), DOMAIN)
    assert meaning(Histogram(("sex", "region")), DOMAIN) != meaning(Histogram(("region", "sex")), DOMAIN)


# What is refused, before anything is spent.


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: opened(alpha=0.00001), "alpha=.* would"),
        (lambda: opened(alpha=2), "alpha"),
        (lambda: opened(beta=0), "beta"),
        (lambda: opened(method="magic"), "method must be one of"),
        (lambda: opened(price="1%"), "a price or an alpha, not both"),
        (lambda: opened(alpha=None, price="101%"), "at most the whole budget"),
        (lambda: opened(alpha=None, price="1%", method="pmw"), "need alpha="),
        (lambda: opened(alpha=None, method="pmw").ask("SELECT COUNT(*) FROM people"), "needs alpha="),
        (lambda: opened(on=table(neighbours="add-remove")), "declare a size near it"),
        (lambda: opened(scopes=0), "scopes"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(make, words):
    with pytest.raises(dp.errors.ParameterError, match=words):
        make()


def test_a_contradiction_is_refused_and_costs_nothing():
    session = opened()
    with pytest.raises(dp.errors.UnsupportedQuery, match="no row of the declared domain"):
        session.ask("SELECT COUNT(*) FROM people WHERE age < 20 AND age > 50")
    with pytest.raises(dp.errors.ParameterError, match="never true"):
        session.ask(Count(Or()))
    assert charges(session) == []


def test_a_column_that_is_not_declared_is_named_with_its_neighbours():
    session = opened()
    with pytest.raises(dp.DiscreetError, match="region"):
        session.ask("SELECT COUNT(*) FROM people WHERE regoin = 'N'")
    assert charges(session) == []
