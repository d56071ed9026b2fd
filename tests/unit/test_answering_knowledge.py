"""What a session remembers and tells: measurements and their errors, questions and their meaning, the population."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import discreet as dp
from discreet.answering import adaptive
from discreet.answering.adaptive import MANNER, last_fit, newest
from discreet.answering.generalization import Disclosures, length_of, rate_of
from discreet.answering.linear_query import linear, meaning
from discreet.answering.measurement import BetaPlace, Measured, SetErrors, group_cells, interval, noise_bound, read_off
from discreet.catalogue import CATALOGUE
from discreet.funds import ATTO, NANO
from discreet.hypothesis import QUICK
from discreet.ledger.state import State, advance, row_of
from discreet.query import Among, And, Bins, Count, Equals, GroupCount, Histogram, Not, Sum
from tests.ledger_doubles import TENTH, Approximate, opening

N = 2000
DOMAIN = dp.Domain(
    age=dp.Number(0, 9, step=1),
    sex=dp.Category("F", "M"),
    region=dp.Category("N", "S", "E", "W"),
    smoker=dp.Number(0, 1, step=1),
)
PLENTY = dp.Budget(10**6, 1e-6)


def columns():
    order = np.arange(N)
    sex, region = np.where(order % 10 < 3, "F", "M"), np.array(list("NSEW"))[order // 3 % 4]
    return {"age": order // 7 % 10, "sex": sex, "region": region, "smoker": order % 7 // 5}


ROWS = columns()
PEOPLE = dp.Table(ROWS, DOMAIN, name="people")
TURNED = dp.Table(ROWS, dp.Domain(**{**dict(DOMAIN), "sex": dp.Category("M", "F")}), name="people")


def opened(budget=PLENTY, **terms):
    return dp.Session(
        PEOPLE, dp.Ledger.in_memory(budget, PEOPLE), **{"alpha": "0.1", "beta": "0.2", "max_price": 1, **terms}
    )


def charges(session):
    return [body for body in session.ledger.entries() if body["kind"] == "charge"]


def measured(query, value, *, kind="gaussian", scale=1.0, order=1, taken=1):
    place = BetaPlace(order, taken)
    return Measured(query, kind, scale, 1.0, np.asarray(value, dtype=np.float64), place=place)


def allowed(order, taken=1, beta=0.2):
    """What a charge with these places may fail with, written out."""
    first, last = (1 / (1 + 0.75 * math.log(place)) for place in (order, order + taken))
    return beta * (first - last)


# What was heard.


def heard(session):
    return Disclosures(session.ledger, session.table.facts, session._answers.transcript, CATALOGUE)


def test_each_measured_number_has_a_length_and_each_charge_a_rate():
    session = opened()
    noisy = [dp.Gaussian(Histogram("region"), scale=20), dp.Gaussian(Count(Equals("sex", "F")), scale=30)]
    for each in noisy:
        dp.release(each, PEOPLE, ledger=session.ledger)
    told = heard(session).at(1)
    lengths = [length_of(each, float(N)) for each in session._answers.transcript.measured]
    assert told.nats == pytest.approx(sum(lengths))
    assert min(lengths) > 1
    assert told.rate == pytest.approx(sum(rate_of(each.guarantee(PEOPLE.facts)) for each in noisy))
    dp.converse(session._answers.calibration.threshold(1), PEOPLE, ledger=session.ledger, memo=MANNER)
    assert heard(session).at(1).nats == told.nats
    assert told.rate < heard(session).at(1).rate < math.inf


def test_a_model_has_no_length_but_a_rate():
    session = opened()
    session.fit(dp.Mean(epsilon=1, method="exponential"), target="age")
    told = heard(session).at(1)
    assert told.nats == math.inf
    assert 0 < told.rate < math.inf


def test_a_quantile_has_no_length_but_a_rate():
    session = opened()
    session.ask("SELECT MEDIAN(age) FROM people")
    told = heard(session).at(1)
    assert (told.nats, told.questions) == (math.inf, 4)
    assert 0 < told.rate < math.inf


def test_every_group_is_a_question_of_its_own():
    session = opened(sample=True)
    session.ask("SELECT sex, region, COUNT(*) FROM people GROUP BY sex, region")
    assert heard(session).at(1).questions == 8 + 1
    session.ask("SELECT COUNT(*) FROM people WHERE age = 3 AND smoker = 1")
    assert heard(session).at(4).questions == 8 + 1 + 4


def test_a_mechanism_that_is_not_in_the_catalogue_has_no_rate_and_no_length():
    session = opened()
    dp.release(TENTH, PEOPLE, ledger=session.ledger)
    told = heard(session).at(1)
    assert (told.rate, told.nats) == (math.inf, math.inf)


@pytest.mark.parametrize("memo", ["", "another/1"])
def test_a_threshold_of_another_manner_has_no_length(memo):
    session = opened()
    dp.converse(session._answers.calibration.threshold(1), PEOPLE, ledger=session.ledger, memo=memo)
    told = heard(session).at(1)
    assert told.nats == math.inf
    assert 0 < told.rate < math.inf


@pytest.mark.parametrize("conversation", [False, True])
def test_what_was_told_under_another_declaration_has_no_rate_and_no_length(conversation):
    session = opened()
    if conversation:
        dp.converse(session._answers.calibration.threshold(1), TURNED, ledger=session.ledger, memo=MANNER)
    else:
        dp.release(dp.Gaussian(Histogram("sex"), scale=30), TURNED, ledger=session.ledger)
    told = heard(session).at(1)
    assert (told.rate, told.nats) == (math.inf, math.inf)


def test_the_limit_of_the_rate_is_that_of_the_budget_however_much_is_spent():
    session = opened(dp.Budget(3, 1e-6))
    books = session.ledger.spent()
    limit = books.caps.renyi / NANO / float(books.order)
    assert heard(session).at(1).limit == limit
    session.ask("SELECT COUNT(*) FROM people WHERE age = 3")
    assert heard(session).at(1).limit == limit
    pure = opened(dp.Budget(3))
    pure.ask("SELECT COUNT(*) FROM people WHERE age = 3")
    assert heard(pure).at(1).limit == pytest.approx(9 / 2)


def test_what_may_fail_counts_as_the_whole_cap_and_only_then():
    session = opened()
    session.ask("SELECT COUNT(*) FROM people WHERE age = 3")
    assert heard(session).at(1).may_fail == 0
    dp.release(Approximate(Fraction(1), Fraction(1, 10**8)), PEOPLE, ledger=session.ledger)
    assert heard(session).at(1).may_fail == session.ledger.spent().caps.failure / ATTO > 0


# Errors that hold for all sets of cells at once.


def written_out(kind, scale, *, copies, cells, columns, count, failure):
    """t(T, c) of the theorem, from its text."""
    spent = math.log(2 * 2**columns * count * (count + 1) * math.comb(cells, count) / failure)
    if kind == "gaussian":
        normal = norm.isf(math.exp(-spent)) * scale * math.sqrt(copies * count) + 1
        return min(scale * math.sqrt(2 * copies * count * spent), normal)
    q, rates = math.exp(-1 / scale), np.linspace(1e-6, 1 - 1e-6, 200_001) / scale
    moment = (1 - q) ** 2 / ((1 - q * np.exp(rates)) * (1 - q * np.exp(-rates)))
    return float(np.min((spent + copies * count * np.log(moment)) / rates))


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize(("cells", "columns", "copies"), [(12, 2, 1), (12, 3, 4), (4, 2, 3), (7, 0, 1)])
def test_the_error_of_a_set_of_cells_is_that_of_the_theorem(kind, cells, columns, copies):
    whole = measured(Histogram("age"), np.zeros(cells * copies), kind=kind, scale=6.0)
    counts = np.arange(2, cells + 1)
    found = SetErrors(whole, cells=cells, columns=columns, failure=0.01).of(counts)
    expected = [
        written_out(kind, 6.0, copies=copies, cells=cells, columns=columns, count=int(count), failure=0.01)
        for count in counts
    ]
    assert found == pytest.approx(expected, rel=1e-3)


AGES = np.bincount(ROWS["age"], minlength=10)


def test_a_sum_is_read_off_a_marginal_with_its_weights_though_the_total_is_public():
    exact = measured(Histogram("age"), AGES)
    for question, truth in (
        (Sum("age"), ROWS["age"].sum()),
        (Sum("age", Not(Equals("age", 9))), ROWS["age"][ROWS["age"] < 9].sum()),
        (Count(Not(Equals("age", 9))), np.sum(ROWS["age"] < 9)),
    ):
        form = linear(question, DOMAIN)
        value, error = read_off(exact, form, DOMAIN, failure=0.01, total=float(N))
        assert value == truth
        assert error > 0


def test_only_whole_groups_are_counted():
    young = Among("age", [0, 1, 2])
    groups = measured(Histogram("region", young), [10, 20, 30, 40])

    def cells(where):
        return group_cells(groups, linear(Count(where), DOMAIN), DOMAIN)

    assert cells(And(young, Equals("region", "S"))).tolist() == [1]
    assert cells(And(young, Among("region", ["N", "W"]))).tolist() == [0, 3]
    assert cells(And(Among("age", [0, 1]), Equals("region", "S"))) is None
    assert cells(And(Among("age", [0, 1, 2, 3]), Equals("region", "S"))) is None
    assert cells(Equals("region", "S")) is None
    half = Count(And(Among("age", [0, 1]), Equals("region", "S")))
    assert interval(groups, half, DOMAIN, failure=0.01, total=float(N)) is None


# Memory.


def test_a_count_is_also_the_count_of_the_others():
    session = opened()
    women, men = Count(Equals("sex", "F")), Count(Equals("sex", "M"))
    dp.release(dp.Gaussian(women, scale=20), PEOPLE, ledger=session.ledger)
    memory = session._answers.knowledge
    memory.catch_up()
    low, high = memory.interval(women)
    assert abs((low + high) / 2 - 600) < 200  # ten standard deviations
    assert memory.interval(men) == (pytest.approx(N - high), pytest.approx(N - low))


def test_of_many_sums_of_groups_those_with_the_least_noise_are_looked_at():
    young = Among("age", [0, 1, 2, 3, 4])
    memory, half = opened()._answers.knowledge, Count(young)
    for order in range(40, 0, -1):
        memory.learn(measured(Histogram("region", young), [250] * 4, scale=float(order), order=order))
    found = memory.about(half)
    assert {one.scale for one, _ in found} == {float(order) for order in range(1, 33)}
    assert all(groups.tolist() == [0, 1, 2, 3] for _, groups in found)
    low, high = memory.interval(half)
    assert low <= 1000 <= high


@pytest.mark.parametrize("orders", [(1, 2), (2, 1)])
def test_where_measurements_contradict_each_other_the_newest_counts(orders):
    memory, question = opened()._answers.knowledge, Count(Equals("sex", "F"))
    for order in orders:
        memory.learn(measured(question, {1: 500, 2: 900}[order], scale=3.0, order=order))
    error = noise_bound("gaussian", 3.0, copies=1, log_sets=0.0, failure=allowed(2))
    low, high = memory.interval(question)
    assert (float(low), float(high)) == (900 - error, 900 + error)


def test_only_the_numbers_that_contradict_each_other_are_taken_from_the_newest():
    memory, question = opened()._answers.knowledge, Histogram("sex")
    for order, value in ((1, [600, 900]), (2, [600, 1400])):
        memory.learn(measured(question, value, scale=3.0, order=order))
    low, high = memory.interval(question)
    first, second = (
        noise_bound("gaussian", 3.0, copies=1, log_sets=math.log(2), failure=allowed(order) / 32 * 31)
        for order in (1, 2)
    )
    assert first < second
    assert low[0] >= 600 - first
    assert high[0] <= 600 + first
    assert 1400 - second <= low[1] < high[1] <= 1400 + second


def test_the_hypothesis_is_fitted_to_every_marginal_at_once():
    whole, one = measured(Histogram("age"), AGES), measured(Count(Equals("age", 3)), 200)
    for many in range(1, 9):
        assert last_fit([whole] * many) == many
        assert last_fit([one] * 20 + [whole] * many) == 20 + many
    assert last_fit([whole] * 10 + [one]) == 10
    assert last_fit([whole] * 10 + [one, whole]) == 12
    assert last_fit([]) == 0


def test_a_session_guesses_from_the_newest_marginal():
    """Eight of them, since the first few are fitted to at once whatever they are."""
    session = opened()
    for known, name in enumerate((*DOMAIN.names, *DOMAIN.names), 1):
        dp.release(dp.Gaussian(Histogram(name), scale=1), PEOPLE, ledger=session.ledger)
        session._answers.knowledge.catch_up()
        session._answers.fitted()
        assert session._answers._fitted[QUICK][0] == known


def test_a_guess_is_fitted_to_all_marginals_and_the_newest_counts(monkeypatch):
    whole, counts = measured(Histogram("age"), AGES), [measured(Count(Equals("age", 3)), at) for at in range(50)]
    ranges = measured(GroupCount([Bins("age", [0, 4], [0, 1])]), [100, 100])
    for cells, taken in ((50 * len(AGES), 50), (40 * len(AGES), 40), (0, 32)):  # a count has as many as its column
        monkeypatch.setattr(adaptive, "_CELLS", cells)
        held = newest([*counts[:20], whole, ranges, *counts[20:]], PEOPLE.facts.domain)
        assert held[:2] == [whole, ranges]
        assert held[2:] == counts[-taken:]
    assert newest([whole, counts[0]], PEOPLE.facts.domain) == [whole, counts[0]]


def test_a_guess_in_a_domain_that_is_not_kept_whole_is_fitted_to_few_counts():
    wide = dp.Domain({f"x{i}": dp.Category(levels=range(20)) for i in range(4)})
    counts = [measured(Count(Equals("x0", 3)), at) for at in range(50)]
    assert newest(counts, wide) == counts[-32:]


# What cannot be paid.


def test_an_average_of_which_only_half_fits_costs_nothing():
    session = opened(dp.Budget(5, 1e-6), alpha="0.05")
    calibration = session._answers.calibration
    women = Equals("sex", "F")
    total, count = (
        calibration.price(calibration.purchase([part], 1).of([part])) for part in (Sum("age", women), Count(women))
    )
    session.ledger.allow("poor", share=Fraction(total + count // 2, session.ledger.spent().caps.renyi))
    poor = dp.Session(PEOPLE, session.ledger, alpha="0.05", beta="0.2", allowance="poor", max_price=1)
    with pytest.raises(dp.BudgetExceeded):
        poor.ask("SELECT AVG(age) FROM people WHERE sex = 'F'")
    assert charges(poor) == []
    assert poor.ask("SELECT SUM(age) FROM people WHERE sex = 'F'").price > 0


def test_an_alpha_for_which_not_even_one_count_fits_is_refused_with_one_that_fits():
    budget = dp.Budget("0.05", 1e-9)
    with pytest.raises(dp.errors.ParameterError, match="not even one count fits") as refused:
        opened(budget, alpha="0.01")
    would = str(refused.value).split("alpha=")[-1].split()[0]
    assert opened(budget, alpha=would).ask("SELECT COUNT(*) FROM people WHERE sex = 'F'").price > 0


# Meaning.


def test_a_sum_and_a_count_over_the_same_cells_are_two_questions():
    ones = Equals("smoker", 1)
    total, count = Sum("smoker", ones), Count(ones)
    forms = [linear(each, DOMAIN) for each in (total, count)]
    assert np.array_equal(forms[0].place, forms[1].place)
    assert np.array_equal(forms[0].weight, forms[1].weight)
    assert meaning(total, DOMAIN) != meaning(count, DOMAIN)
    session = opened()
    assert session.ask(count).source == "direct"
    assert session.ask(total).source != "cache"
    assert session.ask(total).source == "cache"


# The ledger.


def test_a_redacted_export_does_not_say_what_was_asked():
    session = opened()
    session.ask("SELECT COUNT(*) FROM people WHERE smoker = 1")
    session.ask("SELECT MEDIAN(age) FROM people")
    told = {"said": [], "charge": []}
    for line in session.ledger.export():
        body = json.loads(line)
        told.get(body["kind"], []).append(body)
    assert [len(each) for each in told.values()] == [2, 2]
    assert not any({"meaning", "question"} & set(body) for body in told["said"])
    assert not any(word in json.dumps(told) for word in ("smoker", '"age"', "quantiles:"))
    whole = "".join(session.ledger.export(redact=False))
    assert "quantiles:" in whole
    assert '"column":"age"' in whole


TEXTS = {"facts_hash": "0" * 64, "meaning": "cells:1", "manner": MANNER, "answer": "[]", "question": None}


def folded(said):
    state = State()
    for body in (opening(dp.Budget(1)), {"kind": "said", "time": "now", "witness": None, **said}):
        advance(state, row_of(state, {**body, "previous": state.hash}))
    return state


@pytest.mark.parametrize("key", ["facts_hash", "meaning", "manner", "answer"])
@pytest.mark.parametrize("forged", [3, None, ["cells:1"]])
def test_a_said_entry_without_its_texts_is_corrupt(key, forged):
    assert folded(TEXTS).seq == 2
    with pytest.raises(dp.errors.LedgerCorrupt, match="text"):
        folded({**TEXTS, key: forged})


@pytest.mark.parametrize("key", ["facts_hash", "meaning", "manner", "answer"])
def test_a_said_entry_that_lacks_a_text_is_corrupt(key):
    with pytest.raises(dp.errors.LedgerCorrupt):
        folded({name: text for name, text in TEXTS.items() if name != key})
