"""What a session promises, in numbers: which failure each measurement and run may have, and who keeps to it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.answering import adaptive
from discreet.answering.adaptive import MANNER
from discreet.answering.averaged_weights import AveragedWeights
from discreet.answering.calibration import Calibration, SessionTerms
from discreet.answering.measurement import BetaPlace, levelled_bound, noise_bound
from discreet.answering.transcript import SEVERAL, WIDE
from discreet.answering.workload import answers
from discreet.catalogue import CATALOGUE
from discreet.ledger import charging
from discreet.ledger.answer_codec import decode
from discreet.mechanisms import AboveThreshold, IsFar
from discreet.query import Among, And, Count, Equals, Histogram, Or, Sum
from discreet.records import record, revive
from discreet.release import Open
from tests.pac_game import assert_honest

N = 2000
A = 200  # persons, for alpha = 1/10
BETA = Fraction(1, 5)
DOMAIN = dp.Domain(
    age=dp.Number(0, 9, step=1),
    left=dp.Category("n", "y"),
    right=dp.Category("n", "y"),
    region=dp.Category("N", "S", "E", "W"),
)
PLENTY = dp.Budget(10**6, 1e-6)
BOTH = Count(And(Equals("left", "y"), Equals("right", "y")))
ALIKE = 703  # rows with both: the product of the halves says 500, and 3 more than A are missing


def columns():
    """Half of the rows have left, half have right; they go together more often than independent ones would."""
    left = np.repeat(["y", "n"], N // 2)
    right = np.concatenate(
        [np.repeat(["y", "n"], [ALIKE, N // 2 - ALIKE]), np.repeat(["n", "y"], [ALIKE, 1000 - ALIKE])]
    )
    order = np.arange(N)
    return {"age": order % 10, "left": left, "right": right, "region": np.array(list("NSEW"))[order // 3 % 4]}


ROWS = columns()
PEOPLE = dp.Table(ROWS, DOMAIN, name="people")
TURNED = dp.Table(ROWS, dp.Domain(**{**dict(DOMAIN), "region": dp.Category("W", "E", "S", "N")}), name="people")
PERSONS, KEPT = 700, 1750  # of several rows: 3, 3, 3, 1, 3, 3, 3, 1 ...


def opened(budget=PLENTY, *, on=PEOPLE, **terms):
    ledger = dp.Ledger.in_memory(budget, on)
    return dp.Session(on, ledger, **{"alpha": "0.1", "beta": BETA, "max_price": 1, **terms})


def calibration_of(budget=PLENTY, on=PEOPLE, alpha="0.1", beta=BETA):
    return Calibration(on.facts, dp.Ledger.in_memory(budget, on), SessionTerms(Fraction(alpha), beta))


def charged(session):
    """The mechanisms that were charged, as they were recorded."""
    return [revive(body["mechanism"], CATALOGUE) for body in session.ledger.entries() if body["kind"] == "charge"]


def measure(session, *queries, scale=1):
    for query in queries:
        dp.release(dp.Gaussian(query, scale=scale), session.table, ledger=session.ledger)


def with_halves(**terms):
    """A session that knows how many have left and right, but not how many have both, and opens a threshold at once."""
    session = opened(**terms)
    measure(session, Histogram("left"), Histogram("right"))
    session._answers.transcript.saved = 10**12
    return session


def allowed(order, taken=1, beta=BETA):
    """What a charge with these places may fail with, written out."""
    first, last = (1 / (1 + 0.75 * math.log(place)) for place in (order, order + taken))
    return float(beta) * (first - last)


def of_gaussian(scale, failure, numbers=1):
    return noise_bound("gaussian", float(scale), copies=1, log_sets=math.log(numbers), failure=float(failure))


# Thresholds.


@pytest.mark.parametrize("number", [1, 2, 3, 10])
def test_the_threshold_that_is_asked_for_leaves_room_for_its_own_noise(number):
    calibration = calibration_of()
    conversation = calibration.threshold(number)
    place, failure = BetaPlace(number, number), allowed(number, number)
    steps = math.ceil(float(conversation.threshold_scale) * -math.log(float(failure)))
    assert calibration.window == A
    assert calibration.theta(conversation, place) == A - steps
    assert 0 < calibration.theta(conversation, place) + conversation.z_bound(Fraction(failure)) == A


def test_every_question_to_a_threshold_carries_the_theta_of_its_run(monkeypatch):
    asked = []
    real = Open.ask
    monkeypatch.setattr(Open, "ask", lambda self, ask: asked.append((self.conversation, ask)) or real(self, ask))
    session = with_halves()
    session._answers.catch_up()
    order = session._answers.transcript.next_order
    session.ask(BOTH)
    assert order == 1 + 2 * SEVERAL
    (conversation, ask) = asked[0]
    assert ask == IsFar(BOTH, ask.guess, A - conversation.z_bound(Fraction(allowed(order, order))), worth=1)
    assert abs(ask.guess[0] - N / 4) <= 10
    assert [each for each in charged(session) if isinstance(each, AboveThreshold)] == [conversation]


def test_a_guess_that_is_just_too_far_off_is_rarely_given():
    """Without the room the threshold would fail in two of five runs, and with the failure of all its places it may."""
    runs = 60
    given = [with_halves().ask(BOTH) for _ in range(runs)]
    assert {answer.source for answer in given} <= {"hypothesis", "measurement"}
    guessed = [answer for answer in given if answer.source == "hypothesis"]
    assert_honest(sum(abs(answer.value - ALIKE) > answer.error_bound for answer in guessed), runs, allowed(17, 17))


def test_no_guess_is_given_when_the_threshold_ended_meanwhile(monkeypatch):
    session = with_halves(alpha="0.2")
    real = adaptive.reopen

    def ended_elsewhere(conversation, table, *, charge, ledger, rng):
        charging.end(ledger, charge)
        return real(conversation, table, charge=charge, ledger=ledger, rng=rng)

    monkeypatch.setattr(adaptive, "reopen", ended_elsewhere)
    answer = session.ask(BOTH)
    assert answer.source == "direct"
    assert isinstance(charged(session)[-1], dp.Gaussian)
    assert session._answers.transcript.open_run is None


@pytest.mark.parametrize(("memo", "taken"), [(MANNER, 1), (MANNER + WIDE, 2)])
def test_a_threshold_takes_one_place_if_it_was_opened_before_and_doubles_them_now(memo, taken):
    """Its noise was calibrated to the failure of those places, and so is the distance that is asked for."""
    session = opened()
    session.ask(Count(Equals("age", 3)))
    answers = session._answers
    dp.converse(answers.calibration.threshold(2), PEOPLE, ledger=session.ledger, memo=memo)
    answers.knowledge.catch_up()
    assert answers.transcript.open_run.place == BetaPlace(2, taken)
    assert answers.transcript.next_order == 2 + taken
    again = dp.Session(PEOPLE, session.ledger, alpha="0.1", beta=BETA)._answers.transcript
    again.catch_up()
    assert again.open_run == answers.transcript.open_run


def test_a_reconciled_ledger_has_no_open_threshold(tmp_path):
    ledger = dp.Ledger.create(tmp_path / "people.ledger", PLENTY, PEOPLE, state_dir=tmp_path / "here")
    session = dp.Session(PEOPLE, ledger, alpha="0.1")
    dp.converse(session._answers.calibration.threshold(1), PEOPLE, ledger=ledger, memo=MANNER)
    session._answers.knowledge.catch_up()
    assert session._answers.transcript.open_run.place == BetaPlace(1)
    ledger.close()
    elsewhere = dp.Ledger.open(tmp_path / "people.ledger", state_dir=tmp_path / "there")
    elsewhere.reconcile(adopt=True)
    transcript = dp.Session(PEOPLE, elsewhere, alpha="0.1")._answers.transcript
    transcript.catch_up()
    assert (transcript.runs, transcript.open_run) == (1, None)


# The schedule of failures.


def test_all_places_of_the_series_share_beta():
    calibration = calibration_of()
    for order, taken in ((1, 1), (2, 1), (7, 1), (1, SEVERAL), (30, SEVERAL)):
        assert calibration.failure(order, taken) == pytest.approx(allowed(order, taken))
        assert calibration.failure(order, taken) == pytest.approx(sum(map(allowed, range(order, order + taken))))
    assert sum(calibration.failure(place) for place in range(1, 10_000)) <= BETA
    assert calibration.failure(1, 10**9) <= BETA
    assert calibration.may_fail(BetaPlace(3, SEVERAL, Fraction(1, 2))) == pytest.approx(allowed(3, SEVERAL) / 2)


def test_whatever_was_charged_has_a_place_in_the_order():
    session = opened()
    transcript, table = session._answers.transcript, session.table
    measure(session, Histogram("region"))
    burned = dp.Gaussian(Count(Equals("age", 3)), scale=50)
    purchase = charging.Purchase(record(burned), burned.guarantee(table.facts), table, "release")
    charging.burn(session.ledger, charging.charge(session.ledger, purchase), "the run failed")
    session.ask("SELECT MEDIAN(age) FROM people")
    session.answer_all([Histogram("left"), Histogram("right")], share="1/100000")
    transcript.catch_up()
    parts = len(charged(session)[-1].queries)
    assert parts in (1, 2)  # two marginals, or one histogram of both
    third = 1 + SEVERAL + 1 + SEVERAL  # after the histogram, the burned count and the median
    shared = BetaPlace(third, SEVERAL, Fraction(1, parts))
    assert [each.place for each in transcript.measured] == [BetaPlace(1, SEVERAL), *([shared] * parts)]
    order = third + 2 * SEVERAL  # a workload's readings have places of their own
    assert transcript.next_order == order
    question = Count(And(Equals("age", 3), Equals("region", "N"), Equals("left", "y")))
    session.ask(question)
    transcript.catch_up()
    assert transcript.measured[-1].place == BetaPlace(order)
    bought = charged(session)[-1]
    assert bought == session._answers.calibration.purchase([question], order).of([question])
    failure = allowed(order)
    assert of_gaussian(bought.scale, failure) <= A - 0.5 < of_gaussian(bought.scale * Fraction(51, 50), failure)


def test_the_second_quantile_has_the_failure_of_the_second_measurement():
    session = opened()
    for each in ("0.5", "0.9"):
        session.ask(f"SELECT QUANTILE_DISC(age, {each}) FROM people")
    failures = [session._answers.calibration.failure(order, SEVERAL) for order in (1, 1 + SEVERAL)]
    rates = [math.log(3 * 10 / failure) / A for failure in failures]
    assert [float(each.rate) for each in charged(session)] == pytest.approx(rates, rel=1e-6)
    assert rates[1] / rates[0] > 1.1


def test_the_interval_of_a_measurement_has_the_failure_of_its_order():
    session = opened()
    questions = [Count(Among("region", pair)) for pair in (("N", "S"), ("N", "E"), ("N", "W"))]
    measure(session, *questions, scale=40)
    session._answers.knowledge.catch_up()
    for order, question in enumerate(questions, 1):
        low, high = session._answers.knowledge.interval(question)
        assert (high - low) / 2 == pytest.approx(of_gaussian(40, allowed(order)))


def test_a_workload_has_the_failure_of_its_run():
    session = opened()
    for number, question in enumerate([Count(Equals("age", 3)), Count(Equals("region", "N"))], 1):
        (answer,) = session.answer_all([question], share="1/1000000000")
        released = decode(next(b["answer"] for b in reversed(list(session.ledger.entries())) if b["kind"] == "answer"))
        readings = allowed(2 + (number - 1) * (1 + SEVERAL), SEVERAL)  # the count itself has one place
        ((_, bound),) = answers([question], charged(session)[-1], released, PEOPLE.facts, beta=Fraction(readings))
        assert answer.error_bound == pytest.approx(float(bound) + 0.5, abs=1e-5)
        assert answer.error_bound > 10
        session._answers.knowledge.catch_up()
        assert session._answers.transcript.next_order == 1 + number * (1 + SEVERAL)


def test_averaged_weights_take_places_too():
    session = opened()
    mechanism = AveragedWeights((Count(Equals("left", "y")),), 1, Fraction(1, 2), Fraction(1, 10), N)
    dp.release(mechanism, PEOPLE, ledger=session.ledger)
    session._answers.knowledge.catch_up()
    assert session._answers.transcript.next_order == 1 + SEVERAL


@pytest.mark.parametrize("order", [1, 4])
def test_a_histogram_keeps_a_part_of_its_failure_for_sets_of_cells(order):
    question, own = Histogram(("age", "left"), Equals("right", "y")), allowed(order, SEVERAL) * 31 / 32
    bought = calibration_of().purchase([question], order).of([question])
    reach = A - 0.5
    noises = (float(bought.scale), 1.02 * float(bought.scale))
    bounds = [levelled_bound(noise, 21, own, 20) for noise in noises]  # 20 groups, and the rest
    assert bounds[0] <= reach < bounds[1]
    assert of_gaussian(bought.scale, own, 20) > reach, "without a rest the noise would have to be smaller"


def test_parts_of_one_charge_share_its_failure():
    parts, failure = (BOTH, Sum("age", Equals("left", "y"))), allowed(5, SEVERAL) / 2
    bought = calibration_of().purchase(parts, 5).of(parts)
    for scale, worth in zip(bought.scales, (1, 9), strict=True):
        reach = A * worth - 0.5
        assert of_gaussian(scale, failure) <= reach < of_gaussian(scale * Fraction(51, 50), failure)


def test_a_session_with_a_smaller_beta_pays_for_what_a_larger_one_was_told():
    loose = opened()
    strict = dp.Session(loose.table, loose.ledger, alpha="0.1", beta="0.01", max_price=1)
    # More than A from 0 and from N, so that the interval is as wide as its noise; too many cells for a marginal.
    part = And(Among("age", [0, 2, 4, 6, 8]), Equals("left", "y"))
    question = Count(Or(part, And(Among("region", ["N", "S"]), Equals("right", "y"))))
    for each in (question, "SELECT MEDIAN(age) FROM people"):
        assert loose.ask(each).price > 0
        assert loose.ask(each).source == "cache"
        assert strict.ask(each).price > 0
        assert strict.ask(each).source == loose.ask(each).source == "cache"


# Whose measurements, whose answers.


def test_what_was_measured_and_said_under_another_declaration_is_not_this_session_s():
    session = opened(on=TURNED)
    measure(session, Histogram("region"))
    session.ask("SELECT region, COUNT(*) FROM people WHERE age = 3 GROUP BY region")
    dp.converse(session._answers.calibration.threshold(1), TURNED, ledger=session.ledger, memo=MANNER)
    other = dp.Session(PEOPLE, session.ledger, alpha="0.1", beta=BETA)
    transcript = other._answers.transcript
    transcript.catch_up()
    assert (transcript.measured, transcript._said, transcript.open_run) == ([], {}, None)
    assert (transcript.next_order, transcript.runs) == (2 * SEVERAL + 2, 1), (
        "one beta covers what was promised before, too"
    )
    again = other.ask("SELECT region, COUNT(*) FROM people WHERE age = 3 GROUP BY region")
    assert again.source == "direct"


# Persons with several rows.


def of_several(relation):
    rows = [(person, place) for person in range(PERSONS) for place in range(1 if person % 4 == 3 else 3)]
    codes = np.arange(len(rows))
    held = {"id": [person for person, _ in rows], "age": codes % 10, "region": np.array(list("NSEW"))[codes // 3 % 4]}
    left = np.where(codes % 2 == 0, "y", "n")
    whole = {**held, "left": left, "right": np.where(codes % 5 == 0, "y", "n")}
    declared = {"size": PERSONS} if relation == "add-remove" else {}
    return dp.Table(whole, DOMAIN, name="people", neighbours=relation, unit="id", rows_per_unit=3, **declared), whole


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_persons_with_several_rows_have_no_public_number_of_rows(relation):
    """beta = 1e-7: the bounds may be asserted."""
    table, _ = of_several(relation)
    session = opened(on=table, beta="0.0000001")
    assert session._answers.calibration.total is None
    answer = session.ask("SELECT COUNT(*) FROM people")
    assert answer.source == "direct"
    assert answer.unit == "rows"
    assert abs(answer.value - KEPT) <= answer.error_bound <= 0.1 * PERSONS


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_sum_over_persons_with_several_rows_is_promised_in_the_largest_value_of_one_row(relation):
    table, whole = of_several(relation)
    session = opened(on=table, beta="0.0000001")
    question = Sum("age", Equals("left", "y"))
    assert session._answers.calibration.worth(question) == 9
    answer = session.ask(question)
    assert abs(answer.value - whole["age"][whole["left"] == "y"].sum()) <= answer.error_bound <= 0.1 * PERSONS * 9


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_threshold_for_persons_with_several_rows_is_priced_for_all_of_them(relation):
    """Columns that are independent: the guess is near, and the bound of every answer holds."""
    table, whole = of_several(relation)
    session = opened(on=table, beta="0.0000001", alpha="0.5")
    measure(session, Histogram("left"), Histogram("right"), Histogram("age"))
    session._answers.transcript.saved = 10**12
    inside = whole["right"] == "y"
    counted = session.ask(BOTH)
    summed = session.ask(Sum("age", Equals("right", "y")))
    assert abs(counted.value - np.sum(inside & (whole["left"] == "y"))) <= counted.error_bound <= 0.5 * PERSONS
    assert abs(summed.value - whole["age"][inside].sum()) <= summed.error_bound <= 0.5 * PERSONS * 9
    (threshold,) = [each for each in charged(session) if isinstance(each, AboveThreshold)]
    assert threshold.sensitivity == 3
    price = next(body["price"]["pure"] for body in session.ledger.entries() if body.get("mode") == "conversation")
    epsilon = 3 / threshold.threshold_scale + 6 / threshold.question_scale
    assert price == math.ceil(epsilon * 10**9)


# The question that a threshold is asked.


def test_a_sum_counts_for_as_much_as_its_largest_value_in_a_threshold():
    total = int(ROWS["age"].sum())
    assert IsFar(Sum("age"), [total], 5).moved(PEOPLE.facts) == 9
    assert IsFar(Sum("age"), [total], 5, worth=9).moved(PEOPLE.facts) == 1
    session = opened()
    talk = dp.converse(AboveThreshold(1, 1), PEOPLE, ledger=session.ledger)
    with pytest.raises(dp.errors.ParameterError, match="sensitivity 9"):
        talk.ask(IsFar(Sum("age"), [total], 5))
    assert talk.ask(IsFar(Sum("age"), [total], 10**6, worth=9)) is False
    talk.close()


def test_a_far_cell_counts_wherever_it_is():
    true = [int(np.sum(ROWS["region"] == each)) for each in "NSEW"]
    for place in range(4):
        for away in (-40, 40):
            guess = [each + away * (place == here) + 1 for here, each in enumerate(true)]
            furthest = 39 if away < 0 else 41
            assert IsFar(Histogram("region"), guess, 10).margin(PEOPLE) == furthest - 10


@pytest.mark.parametrize("guess", [[], [500], [500] * 3, [500] * 5])
def test_a_guess_has_one_number_for_each_of_the_query_s(guess):
    with pytest.raises(dp.errors.ParameterError, match="guess must have 4 numbers"):
        AboveThreshold(1, 1).check(IsFar(Histogram("region"), guess, 10), PEOPLE.facts)


# Declared anew.


def declared_anew(**changed):
    return dp.Table(ROWS, dp.Domain({**DOMAIN, **changed}), name="people")


def test_what_a_new_declaration_leaves_alone_stays_known():
    session = opened()
    first = session.ask("SELECT COUNT(*) FROM people WHERE region = 'N'")
    groups = session.ask("SELECT left, COUNT(*) FROM people GROUP BY left")
    middle = session.ask("SELECT MEDIAN(age) FROM people")
    spent = session.ledger.spent()
    turned = dp.Session(declared_anew(right=dp.Category("y", "n")), session.ledger, alpha="0.1", beta=BETA)
    assert turned.ask("SELECT COUNT(*) FROM people WHERE region = 'N'").value == first.value
    assert turned.ask("SELECT left, COUNT(*) FROM people GROUP BY left").value == groups.value
    assert turned.ask("SELECT MEDIAN(age) FROM people").value == middle.value
    assert session.ledger.spent() == spent
    assert turned.known()[0] == session.known()[0] != []


def test_a_column_that_is_declared_otherwise_is_asked_about_anew():
    session = opened()
    session.ask("SELECT MEDIAN(age) FROM people")
    session.ask("SELECT SUM(age) FROM people WHERE left = 'y'")
    session.ask("SELECT left, COUNT(*) FROM people WHERE age >= 3 GROUP BY left")
    coarse = dp.Session(declared_anew(age=dp.Number(0, 10, step=2)), session.ledger, alpha="0.1", beta=BETA)
    assert coarse.known() == ([], [])
    for question in (
        "SELECT MEDIAN(age) FROM people",
        "SELECT SUM(age) FROM people WHERE left = 'y'",
        "SELECT left, COUNT(*) FROM people WHERE age >= 4 GROUP BY left",
    ):
        assert coarse.ask(question).price > 0


def test_with_several_rows_a_person_nothing_is_known_after_a_new_declaration():
    """Which rows of a person are kept depends on all declared columns."""
    table, whole = of_several("replace-one")
    session = opened(on=table)
    assert session.ask("SELECT COUNT(*) FROM people WHERE region = 'N'").price > 0
    domain = dp.Domain({**DOMAIN, "right": dp.Category("y", "n")})
    other = dp.Table(whole, domain, name="people", unit="id", rows_per_unit=3)
    again = dp.Session(other, session.ledger, alpha="0.1", beta=BETA)
    assert again.ask("SELECT COUNT(*) FROM people WHERE region = 'N'").price > 0


def test_after_many_thresholds_a_place_still_has_a_failure_of_its_own():
    """Every threshold doubles the places; the difference of two weights would be 0 in floats after fifty."""
    table = dp.Table({"a": [0, 1] * 500}, dp.Domain(a=dp.Category(0, 1)), name="many", neighbours="replace-one")
    ledger = dp.Ledger.in_memory(dp.Budget(50, "1e-6"), table)
    calibration = Calibration(table.facts, ledger, SessionTerms(Fraction(1, 20), Fraction(1, 20)))
    for place in (2**20, 2**46, 2**50, 2**60, 2**200):
        exactly = 0.05 * 0.75 / place / (1 + 0.75 * math.log(place)) ** 2
        assert exactly * (1 - 1e-5) <= calibration.failure(place) <= exactly
        assert calibration.threshold(place).threshold_scale > 0
        assert calibration.price(calibration.alone(Count(), place)) > 0
    assert (
        sum(calibration.failure(place) for place in range(1, 200))
        + sum(calibration.failure(200 * 2**k, 200 * 2**k) for k in range(100))
        < 0.05
    )


def test_a_threshold_for_fewer_rows_than_a_person_has_is_not_taken_for_one_of_a_session():
    table, _ = of_several("add-remove")
    session = opened(on=table, alpha="0.5")
    answers = session._answers
    dp.converse(AboveThreshold(10, 10), table, ledger=session.ledger, memo=MANNER + WIDE)
    answers.catch_up()
    assert (answers.transcript.open_run, answers.transcript.places) == (None, 0)
    dp.converse(AboveThreshold(10, 10, sensitivity=3), table, ledger=session.ledger, memo=MANNER + WIDE)
    answers.catch_up()
    assert answers.transcript.open_run.place == BetaPlace(1, 1)
