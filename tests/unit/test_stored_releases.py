"""What was charged, answered and stored comes back free to whoever asks the same again; and only then."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

import discreet as dp
from discreet.answering.transcript import Transcript
from discreet.catalogue import CATALOGUE
from discreet.certificate import certificate, check, read_export
from discreet.estimators import base, replay
from discreet.ledger import charging
from discreet.ledger.answer_codec import decode
from tests.ledger_doubles import Failing

N = 3_000
RNG = np.random.default_rng(5)
ROWS = {
    "age": RNG.integers(0, 100, N),
    "income": RNG.integers(0, 50, N),
    "sex": RNG.choice(["F", "M"], N),
    "tall": RNG.choice(["no", "yes"], N),
}
COLUMNS = {
    "age": dp.Number(0, 100, step=1),
    "income": dp.Number(0, 50, step=1),
    "sex": dp.Category("F", "M"),
    "tall": dp.Category("no", "yes"),
}


def people(**columns) -> dp.Table:
    return dp.Table(ROWS, dp.Domain({**COLUMNS, **columns}), name="people")


@pytest.fixture
def path(where):
    dp.Ledger.create(where, dp.Budget(20, "1e-6"), people()).close()
    return where


def spent(path):
    with dp.Ledger.open(path) as ledger:
        found = ledger.spent()
        return found.renyi, found.pure, found.failure


def charges(path):
    with dp.Ledger.open(path) as ledger:
        return [body for body in ledger.entries() if body["kind"] == "charge"]


class Died(BaseException):
    """What happens to a process."""


def dying(*args, **kwargs):
    raise Died


# Sessions.

MEDIAN = "SELECT MEDIAN(age) FROM people"
WORKLOAD = [
    "SELECT sex, tall, COUNT(*) FROM people GROUP BY sex, tall",
    "SELECT COUNT(*) FROM people WHERE age >= 50 AND sex = 'F'",
]


def asked_median(session):
    return session.ask(MEDIAN)


def asked_together(session):
    return session.answer_all(WORKLOAD, share="1/4")


def asked_weights(session):
    return session.answer_all([dp.Count(dp.Equals("sex", "F") & dp.Equals("tall", "yes"))], share="1/4")


KINDS = {
    "median": (asked_median, {"alpha": 0.05}),
    "workload": (asked_together, {"alpha": 0.05}),
    "count": (lambda session: session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'"), {"alpha": 0.05}),
    "sum": (lambda session: session.ask("SELECT SUM(income) FROM people WHERE sex = 'F'"), {"alpha": 0.05}),
    "table": (
        lambda session: session.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex"),
        {"scopes": 3, "max_price": 1},
    ),
}


def values(answer):
    return [values(each) for each in answer] if isinstance(answer, list) else (answer.value, answer.error_bound)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_was_stored_and_never_said_is_free(path, monkeypatch, kind):
    ask, terms = KINDS[kind]
    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(charging, "say", dying)
        with pytest.raises(Died):
            ask(dp.Session(people(), ledger, **terms))
    paid = spent(path)
    assert paid > (0, 0, 0)
    with dp.Ledger.open(path) as ledger:
        dp.release(dp.Laplace(dp.Count(), 100), people(), ledger=ledger)  # what is left is another number now
    before = spent(path)
    with dp.Ledger.open(path) as ledger:
        found = ask(dp.Session(people(), ledger, **terms))
        assert sum(each.price for each in (found if isinstance(found, list) else [found])) == 0
    assert spent(path) == before
    with dp.Ledger.open(path) as ledger:
        assert values(ask(dp.Session(people(), ledger, **terms))) == values(found)
    assert spent(path) == before


def test_a_workload_is_read_again_from_the_mechanism_and_the_run_that_were_charged(path, monkeypatch):
    """As if nothing had happened: the same bytes as a twin that was not interrupted would have said."""
    said = []
    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(Transcript, "say_all", lambda self, answers, beta, made_from: said.extend(answers) or dying())
        with pytest.raises(Died):
            asked_together(dp.Session(people(), ledger, alpha=0.05))
    with dp.Ledger.open(path) as ledger:
        session = dp.Session(people(), ledger, alpha=0.05)
        session.answer_all(["SELECT tall, COUNT(*) FROM people GROUP BY tall"], share="1/10")  # the next run
        found = asked_together(session)
        entry = next(body["seq"] for body in ledger.entries() if body["kind"] == "charge")
        makers = [body.get("made_from") for body in ledger.entries() if body["kind"] == "said"]
    assert list(found[0].value.values()) == np.ravel(said[0][2].value).tolist()
    assert [each.error_bound for each in found] == pytest.approx([given.error_bound for _, _, given in said], rel=1e-6)
    assert (found[1].value, makers.count(entry)) == (int(said[1][2].value), 2)


def test_a_workload_that_was_answered_by_averaged_weights_is_read_again(path, monkeypatch):
    from discreet.answering import adaptive
    from discreet.method import choose

    def weights(methods, name, size):
        return choose(methods, "weights", size)

    monkeypatch.setattr(adaptive, "choose", weights)
    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(charging, "say", dying)
        with pytest.raises(Died):
            asked_weights(dp.Session(people(), ledger, alpha=0.05))
    before = spent(path)
    assert charges(path)[0]["mechanism"]["name"] == "averaged-weights/1"
    with dp.Ledger.open(path) as ledger:
        (found,) = asked_weights(dp.Session(people(), ledger, alpha=0.05))
    assert (found.price, spent(path)) == (0, before)


@pytest.mark.parametrize(
    ("terms", "share", "table"),
    [
        ({"alpha": 0.05}, "1/5", {}),
        ({"alpha": 0.06}, "1/4", {}),
        ({"alpha": 0.05, "beta": 0.01}, "1/4", {}),
        ({"alpha": 0.05}, "1/4", {"tall": dp.Category("no", "yes", "very")}),
    ],
)
def test_another_share_other_terms_and_other_columns_are_other_workloads(path, monkeypatch, terms, share, table):
    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(charging, "say", dying)
        with pytest.raises(Died):
            asked_together(dp.Session(people(), ledger, alpha=0.05))
    before = spent(path)
    with dp.Ledger.open(path) as ledger:
        given = dp.Session(people(**table), ledger, **terms).answer_all(WORKLOAD, share=share)
        assert given[0].price > 0
    assert spent(path) > before


def test_a_workload_whose_run_was_interrupted_is_paid_again_once(path, monkeypatch):
    from discreet.answering.workload import Marginals

    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(Marginals, "run", dying)
        with pytest.raises(KeyboardInterrupt):
            asked_together(dp.Session(people(), ledger, alpha=0.05))
    burned = spent(path)
    with dp.Ledger.open(path) as ledger:
        asked_together(dp.Session(people(), ledger, alpha=0.05))
    assert spent(path) > burned
    first, second = charges(path)
    assert first["request"] != second["request"]


def test_a_finished_workload_may_be_bought_again(path):
    with dp.Ledger.open(path) as ledger:
        session = dp.Session(people(), ledger, alpha=0.05)
        first = session.answer_all(WORKLOAD, share="1/4")
        assert session.answer_all(WORKLOAD, share="1/4")[0].price == 0
        again = session.answer_all(WORKLOAD, share="1/4", again=True)
        assert min(first[0].price, again[0].price) > 0
    assert len({each["request"] for each in charges(path)}) == 2


def test_a_noisy_answer_of_a_classic_program_is_not_bought_twice(path, monkeypatch):
    terms = {"alpha": 0.2, "method": "pmw", "questions": 20}
    question = "SELECT COUNT(*) FROM people WHERE sex = 'F' AND tall = 'yes'"
    table = dp.Table({"sex": ["F"] * N, "tall": ["yes"] * N}, dp.Domain(sex=COLUMNS["sex"], tall=COLUMNS["tall"]),
                     name="people")  # fmt: skip
    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(charging, "say", dying)
        with pytest.raises(Died):  # the even guess is far off
            dp.Session(table, ledger, **terms).ask(question)
    before = charges(path)
    assert [body["mode"] for body in before] == ["conversation", "release"]
    with dp.Ledger.open(path) as ledger:
        answer = dp.Session(table, ledger, **terms).ask(question)
        assert (answer.price, answer.source) == (0, "direct")
        assert abs(answer.value - N) <= answer.error_bound
    assert charges(path) == before


def test_answers_that_earlier_versions_said_are_still_read(path, monkeypatch):
    """They do not name their charge, and their charges have no request ids."""
    say_all, question = Transcript.say_all, KINDS["count"][0]
    with monkeypatch.context() as patch, dp.Ledger.open(path) as ledger:
        patch.setattr(Transcript, "say_all", lambda self, answers, beta, made_from: say_all(self, answers, beta))
        first = question(dp.Session(people(), ledger, alpha=0.05))
        (said,) = [body for body in ledger.entries() if body["kind"] == "said"]
        assert "made_from" not in said
    with dp.Ledger.open(path) as ledger:
        assert values(question(dp.Session(people(), ledger, alpha=0.05))) == values(first)
        ledger.verify()


# Models.

ESTIMATORS = {
    "mean": lambda **more: (dp.Mean(**more), ("age",)),
    "median": lambda **more: (dp.Median(**more), ("age",)),
    "quantile": lambda **more: (dp.Quantile(0.9, **more), ("age",)),
    "linear": lambda **more: (dp.LinearRegression(**more), ("age",)),
    "logistic": lambda **more: (dp.LogisticRegression(**more), ("sex",)),
    "network": lambda **more: (dp.MLPClassifier((2,), **more), ("sex",)),
    "box": lambda **more: (dp.BoxClassifier(**more), ("sex",)),
    "conjunction": lambda **more: (dp.ConjunctionClassifier(k=1, **more), ("sex",)),
    "rule": lambda **more: (dp.RuleClassifier(k=1, cuts=4, **more), ("sex",)),
    "finite": lambda **more: (dp.FiniteClassClassifier(hypotheses=[dp.Equals("tall", "yes"), dp.Between("age", 0, 9)],
                                                       **more), ("sex",)),
}  # fmt: skip
COSTS = {"epsilon": {"epsilon": "0.5", "delta": "1e-8"}, "share": {"epsilon": dp.Share("1/10")}}


def fitted(path, kind, **more):
    with dp.Ledger.open(path) as ledger:
        estimator, target = ESTIMATORS[kind](ledger=ledger, **more)
        return estimator.fit(people(), *target)


def told(model):
    """What is public about a fitted model."""
    names = ("value_", "noise_range_", "coef_", "intercept_", "coefs_", "rule_", "promise_", "promise_", "method_")
    found = [repr(getattr(model, name, None)) for name in (*names, "method_", "n_iter_", "mechanism_", "entry_")]
    return [*found, str(model.guarantee_)]


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_program_that_is_run_again_gets_its_stored_model_free(path, kind, cost):
    first = fitted(path, kind, **COSTS[cost])
    with dp.Ledger.open(path) as ledger:
        dp.release(dp.Laplace(dp.Count(), 100), people(), ledger=ledger)  # what is left is another number now
    before = spent(path)
    second = fitted(path, kind, **COSTS[cost])
    assert (first.replayed_, second.replayed_, spent(path)) == (False, True, before)
    assert told(second) == told(first)


def test_all_that_was_left_is_replayed_too(path):
    first = fitted(path, "mean")
    assert fitted(path, "mean").replayed_  # nothing is left, and nothing is needed
    assert first.guarantee_.entry == fitted(path, "mean").entry_


def test_a_model_whose_process_died_after_the_answer_was_stored_is_free(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(base.FitGuarantee, "of", dying)
        with pytest.raises(Died):
            fitted(path, "linear", **COSTS["share"])
    before = spent(path)
    assert before > (0, 0, 0)
    assert fitted(path, "linear", **COSTS["share"]).replayed_
    assert spent(path) == before


def test_the_same_process_that_was_interrupted_gets_its_model_too(path, monkeypatch):
    with dp.Ledger.open(path) as ledger:
        estimator = dp.Mean(ledger=ledger, **COSTS["epsilon"])
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["discreet.release"], "Released", dying)
            with pytest.raises(Died):
                estimator.fit(people(), "age")
        assert estimator.fit(people(), "age").replayed_
        assert not estimator.fit(people(), "age").replayed_


def test_a_run_that_was_interrupted_is_paid_again_and_then_stored(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(dp.Laplace, "run", dying)
        with pytest.raises(KeyboardInterrupt):
            fitted(path, "mean", epsilon="0.5")
    burned = spent(path)
    assert not fitted(path, "mean", epsilon="0.5").replayed_
    assert spent(path) > burned
    assert fitted(path, "mean", epsilon="0.5").replayed_


def test_the_second_fit_of_one_program_is_another_one_and_the_program_has_both_back(path):
    def program():
        with dp.Ledger.open(path) as ledger:
            model = dp.Mean(epsilon="0.5", ledger=ledger)
            return [model.fit(people(), "age").value_ for _ in range(3)]

    first, paid = program(), spent(path)
    assert len(charges(path)) == 3
    assert (program(), spent(path)) == (first, paid)


def test_two_models_of_one_program_come_back_in_any_order(path):
    one, other = fitted(path, "mean", epsilon="0.5"), fitted(path, "median", epsilon="0.5")
    again, before = fitted(path, "median", epsilon="0.5"), fitted(path, "mean", epsilon="0.5")
    assert (again.value_, before.value_) == (other.value_, one.value_)


@pytest.mark.parametrize(
    ("more", "target", "features", "columns"),
    [
        ({"epsilon": "0.6"}, "age", None, {}),
        ({"epsilon": dp.Share("1/10")}, "age", None, {}),
        ({"ridge": 1}, "age", None, {}),
        ({"method": "output"}, "age", None, {}),
        ({"radius": 2.5}, "age", None, {}),
        ({}, "income", None, {}),
        ({}, "age", ["income"], {}),
        ({}, "age", None, {"income": dp.Number(0, 60, step=1)}),
    ],
)
def test_another_problem_is_not_confused_with_a_stored_one(path, more, target, features, columns):
    fitted(path, "linear", epsilon="0.5")
    with dp.Ledger.open(path) as ledger:
        model = dp.LinearRegression(**{"epsilon": "0.5", **more}, ledger=ledger)
        assert not model.fit(people(**columns), target, features=features).replayed_
    assert len(charges(path)) == 2


def test_who_wants_a_new_model_says_so(path):
    first = fitted(path, "mean", epsilon="0.5")
    with dp.Ledger.open(path) as ledger:
        replay.pay_again(ledger)
        model = dp.Mean(epsilon="0.5", ledger=ledger).fit(people(), "age")
    assert not model.replayed_
    assert model.entry_ > first.entry_


def test_arrays_are_never_replayed(path):
    """Nothing tells the rows of two arrays apart."""
    rows, labels = RNG.choice([-1.0, 1.0], size=(N, 2)), RNG.integers(0, 2, N)
    for _ in range(2):
        with dp.Ledger.open(path) as ledger:
            models = (
                dp.LogisticRegression(epsilon="0.1", row_norm=2, classes=(0, 1), ledger=ledger, size=N),
                dp.BoxClassifier(epsilon="0.1", bounds=(-1, 1), step=1, classes=(0, 1), ledger=ledger, size=N),
                dp.ConjunctionClassifier(epsilon="0.1", k=1, classes=(0, 1), ledger=ledger, size=N),
            )
            fits = [model.fit((rows > 0) if place == 2 else rows, labels) for place, model in enumerate(models)]
            fits.append(dp.Mean(epsilon="0.1", bounds=(0, 1), ledger=ledger).fit(labels))
            assert not any(each.replayed_ for each in fits)
            point = dp.interior_point([1] * N, bits=3, epsilon="0.1", ledger=ledger)
            assert not point.replayed
    assert [body["request"] for body in charges(path)] == [None] * 10


def test_folds_are_never_replayed(tmp_path):
    rows = RNG.choice([-1.0, 1.0], size=(60, 2))
    labels = (rows[:, 0] > 0).astype(int)
    table = dp.Matrix(rows, features=dp.Vector(2, norm=1), name="persons")
    dp.Ledger.create(tmp_path / "persons.ledger", dp.Budget(500), table).close()
    for _ in range(2):
        with dp.Ledger.open(tmp_path / "persons.ledger") as ledger:
            how = {"row_norm": 1.5, "classes": (0, 1), "size": 60, "score_epsilon": "1", "method": "descent"}
            model = dp.LogisticRegression(epsilon="1", ledger=ledger, **how)
            GridSearchCV(model, {"max_iter": [1, 2]}, cv=KFold(3), error_score="raise").fit(rows, labels)
    found = charges(tmp_path / "persons.ledger")
    assert len(found) == 2 * (2 * 3 * 2 + 1)
    assert {body["request"] for body in found} == {None}


def test_somebodys_functions_are_never_replayed(path):
    """Two functions may have one name."""
    for answer in ("F", "M"):
        with dp.Ledger.open(path) as ledger:
            listed = [lambda row, answer=answer: answer, lambda row: "F"]
            model = dp.FiniteClassClassifier(epsilon="0.5", hypotheses=listed, ledger=ledger).fit(people(), "sex")
            assert not model.replayed_


def test_scores_certificates_choices_points_and_bounds_come_back_free(path):
    def program():
        with dp.Ledger.open(path) as ledger:
            how = {"epsilon": "0.5", "ledger": ledger, "score_epsilon": "0.1"}
            rule = dp.BoxClassifier(**how).fit(people(), "sex")
            models = [dp.LogisticRegression(**how, ridge=ridge).fit(people(), "sex") for ridge in (1, 2)]
            return (
                rule.score(people(), "sex"),
                models[0].score(people(), "sex"),
                rule.certify(people(), "sex", epsilon="0.1").mistakes,
                dp.select_model(models, people(), "sex", epsilon=dp.Share("1/10"), ledger=ledger).index,
                dp.interior_point(people(), column="age", epsilon="0.5", ledger=ledger).value,
                dp.suggest_bounds(people(), "age", epsilon="0.5", ledger=ledger, coverage="0.5").number,
            )

    first, paid = program(), spent(path)
    assert len(charges(path)) == 9
    assert (program(), spent(path)) == (first, paid)


def test_a_stored_model_of_another_mechanism_is_passed_over(path, monkeypatch):
    """The code chooses otherwise now, say: then it is a new fit, under the next id."""
    first, look = fitted(path, "mean", epsilon="0.5"), charging.stored

    def other(ledger, request):
        found = look(ledger, request)
        return found if found is None else replace(found, mechanism={"name": "other/1"})

    monkeypatch.setattr(charging, "stored", other)
    second = fitted(path, "mean", epsilon="0.5")
    assert not second.replayed_
    assert second.entry_ > first.entry_


def test_threads_of_one_program_get_different_places(path):
    """The place of a fit that runs now is taken."""
    with dp.Ledger.open(path) as ledger:
        asked = replay.Request.of(ledger, "problem", "about", people().facts)
        mechanism = dp.Laplace(dp.Count(), 10)
        with asked.taken(mechanism) as first, asked.taken(mechanism) as second:
            assert first != second


def test_a_planted_mechanism_is_never_told_from_others():
    with pytest.raises(replay.Untold):
        replay.told([1, lambda row: row])
    assert replay.told({"a": [1.5, Fraction(1, 2), dp.Share("1/3"), np.float64(2)]}) == replay.told(
        {"a": (1.5, Fraction(1, 2), dp.Share("1/3"), np.float64(2))}
    )
    assert len({repr(replay.told(each)) for each in (1, True, "1", 1.0, None, [1], Fraction(1, 2))}) == 7


# What a ledger knows of a request.


def test_what_is_stored_under_a_request_id(path):
    with dp.Ledger.open(path) as ledger:
        assert charging.stored(ledger, "r") is None
        mechanism = dp.Laplace(dp.Count(), 10)
        got = dp.release(mechanism, people(), ledger=ledger, request="r", within={"pure": 1})
        found = charging.stored(ledger, "r")
        assert (found.entry, found.hash, found.price) == (got.entry, got.hash, got.price)
        assert (decode(found.answer), found.burned, found.pending) == (got.value, False, False)
        assert found.within == {"pure": 1}
        assert found.facts_hash == ledger.recorded(people().facts)[1]


def test_a_request_whose_run_failed_is_burned(path):
    with dp.Ledger.open(path) as ledger:
        with pytest.raises(dp.DiscreetError):
            dp.release(Failing(), people(), ledger=ledger, request="r")
        found = charging.stored(ledger, "r")
        assert (found.answer, found.burned, found.pending) == (None, True, False)


def test_a_ledger_with_requests_limits_and_makers_is_exported_and_verified(path):
    fitted(path, "linear", **COSTS["share"])
    with dp.Ledger.open(path) as ledger:
        asked_together(dp.Session(people(), ledger, alpha=0.05))
        assert ledger.verify(CATALOGUE) == ()
        everything, redacted = list(ledger.export(redact=False)), list(ledger.export())
        assert read_export(everything)[1]
        assert not read_export(redacted)[1]
        assert not any("fit:" in line or "session:" in line for line in redacted)
        for body in [body for body in ledger.entries() if body["kind"] in ("charge", "said")]:
            for against in (ledger, everything, redacted):
                check(certificate(ledger, body["seq"]), against)  # raises if anything differs
