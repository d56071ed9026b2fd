"""Every mechanism through the same questions: record, docstring, price, neighbours, exact numbers."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.mechanism import Conversation, Mechanism
from discreet.noise import SeededRng
from discreet.records import canonical, record, revive

DOMAIN = dp.Domain(
    age=dp.Number(0, 9, step=1),
    sex=dp.Category("F", "M", other="1/2"),
    pay=dp.Number(-5, 10, step="0.5"),
    wealth=dp.Number(0, 100_000_000, step="0.01"),  # contributions beyond 2^31: summed in Python integers
)
OLD = dp.Between("age", 5, 9)
MECHANISMS = [
    dp.Laplace(dp.Count(OLD), 4),
    dp.Laplace(dp.Sum("pay", where=dp.Equals("sex", "1/2")), "7.5"),
    dp.Laplace(dp.Histogram(("age", "sex")), Fraction(5, 3)),
    dp.Gaussian(dp.VectorSum(("age", "pay")), 12.25),
    dp.ProductLaplace(dp.VectorSum(("age", "pay")), 12),
    dp.CoordinateLaplace(dp.Histogram("sex"), 3),
    dp.Laplace(dp.Sum("wealth"), 10**9),
    dp.Gaussian(dp.Sum("wealth"), 10**9),
    dp.ProductLaplace(dp.VectorSum(("wealth", "pay")), 10**9),
    dp.Exponential(dp.VectorSum(("age", "pay")), 0.1),
    dp.PermuteAndFlip(dp.VectorSum(("age", "pay")), 0.1),
    dp.Exponential(dp.Histogram("age"), 0.1),
    dp.PermuteAndFlip(dp.Histogram("age", where=dp.Not(OLD)), "1/7"),
    dp.StableHistogram(dp.KeyCount(("age", "sex")), 2, 20),
    dp.StableMode(dp.StableHistogram(dp.KeyCount("sex"), 2, 20)),
]
CONVERSATIONS = [dp.AboveThreshold(10, 20), dp.AboveThresholdLaplace(10, 20, sensitivity=2)]
EVERY = MECHANISMS + CONVERSATIONS
RELATIONS = ["replace-one", "add-remove"]


def table(relation: str, *, last: int = 3) -> dp.Table:
    columns = {"age": [1, 7, 7, last], "sex": ["F", "M", "F", "X"], "pay": [0.5, 9, -5, 2], "wealth": [1, 2, 3, 1e9]}
    return dp.Table(columns, DOMAIN, neighbours=relation)


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
def test_a_mechanism_is_its_record(mechanism):
    text = canonical(record(mechanism))
    assert revive(json.loads(text), CATALOGUE) == mechanism
    assert canonical(record(revive(json.loads(text), CATALOGUE))) == text
    assert "." not in text.replace("0.1.0", ""), "no floats in a record"


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
def test_a_mechanism_is_frozen_hashable_and_printable(mechanism):
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))
    assert type(mechanism).__name__ in repr(mechanism)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, dataclasses.fields(mechanism)[0].name, None)


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
def test_the_docstring_carries_theorem_accuracy_and_reference(mechanism):
    for section in ("Theorem.", "Accuracy.", "Edges.", "Reference."):
        assert section in (type(mechanism).__doc__ or "")


def test_every_class_of_the_catalogue_stands_under_its_own_name():
    assert {name: kind.NAME for name, kind in CATALOGUE.items()} == {name: name for name in CATALOGUE}
    assert list(CATALOGUE) == sorted(CATALOGUE)
    assert {type(each) for each in EVERY} <= set(CATALOGUE.values())


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: type(m).__name__)
def test_the_price_is_native_to_the_relation_and_the_same_for_neighbours(mechanism, relation):
    first, second = table(relation), table(relation, last=9)
    assert first.facts == second.facts
    found = mechanism.guarantee(first.facts)
    assert found.neighbours.kind == relation
    assert found == mechanism.guarantee(second.facts)
    assert found.epsilon(Fraction(1, 10**6) + found.failure) < float("inf")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_more_noise_never_costs_more(mechanism, relation):
    facts = table(relation).facts
    field = next(name for name in ("scale", "rate", "histogram") if hasattr(mechanism, name))
    if field == "histogram":
        quieter = dataclasses.replace(mechanism, histogram=dataclasses.replace(mechanism.histogram, scale=4))
    else:
        factor = 2 if field == "scale" else Fraction(1, 2)
        quieter = dataclasses.replace(mechanism, **{field: getattr(mechanism, field) * factor})
    loud, quiet = mechanism.guarantee(facts), quieter.guarantee(facts)
    assert all(q <= p for p, q in zip(loud.renyi, quiet.renyi, strict=True))
    if loud.pure is not None:
        assert quiet.pure < loud.pure


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_release_runs_on_every_relation_and_on_an_empty_table(mechanism, relation):
    assert isinstance(mechanism, Mechanism)
    mechanism.run(table(relation), SeededRng(1))
    if relation == "add-remove":
        empty = dp.Table({"age": [], "sex": [], "pay": [], "wealth": []}, DOMAIN, neighbours=relation)
        mechanism.run(empty, SeededRng(1))


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda m: type(m).__name__)
def test_a_conversation_refuses_questions_it_was_not_paid_for(conversation):
    assert isinstance(conversation, Conversation)
    facts = table("replace-one").facts
    conversation.check(dp.Above(dp.Count(OLD), 5), facts)
    with pytest.raises(dp.ParameterError, match="sensitivity"):
        conversation.check(dp.Above(dp.Sum("pay"), 5), facts)
    with pytest.raises(dp.ParameterError, match="Count or a Sum"):
        dp.Above(dp.Histogram("sex"), 5)


def test_a_float_is_read_as_the_decimal_that_was_typed():
    assert dp.Laplace(dp.Count(), 0.1).scale == Fraction(1, 10)
    assert dp.Laplace(dp.Count(), 0.1) == dp.Laplace(dp.Count(), "0.1")


def test_the_pure_price_of_a_rational_scale_is_exact():
    facts = table("replace-one").facts
    assert dp.Laplace(dp.Count(OLD), 30).guarantee(facts).pure == Fraction(1, 30)
    assert dp.Laplace(dp.Sum("pay"), 30).guarantee(facts).pure == Fraction(1, 2)
    assert dp.Laplace(dp.Sum("pay"), 30).guarantee(table("add-remove").facts).pure == Fraction(1, 3)
    assert dp.AboveThreshold(10, 20).guarantee(facts).pure == Fraction(1, 5)


class Recording(SeededRng):
    """Test randomness that remembers what was drawn."""

    def __init__(self) -> None:
        super().__init__(5)
        self.drawn: list[tuple[str, Fraction]] = []

    def laplace(self, scale, size=None):
        self.drawn.append(("laplace", scale))
        return super().laplace(scale, size)

    def geometric(self, scale, size=None):
        self.drawn.append(("geometric", scale))
        return super().geometric(scale, size)

    def gaussian(self, variance, size=None):
        self.drawn.append(("gaussian", variance))
        return super().gaussian(variance, size)

    def truncated_laplace(self, scale, bound, size=None):
        self.drawn.append(("truncated", scale))
        return super().truncated_laplace(scale, bound, size)

    def select(self, scores, rate, counts=None):
        self.drawn.append(("select", rate))
        return super().select(scores, rate, counts)

    def flips(self, gaps, rate):
        self.drawn.append(("flips", rate))
        return super().flips(gaps, rate)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_what_is_drawn_is_what_is_charged(mechanism, relation):
    """The price follows from the noise that was really drawn and the query's sensitivity: from nothing else."""
    data, rng = table(relation), Recording()
    mechanism.run(data, rng)
    ((kind, drawn),) = rng.drawn
    inner = getattr(mechanism, "histogram", mechanism)
    query = getattr(inner, "query", None) or getattr(inner, "score", None) or inner.keys
    moved, found = query.sensitivity(data.facts), mechanism.guarantee(data.facts)
    if kind == "gaussian":
        assert found.renyi[3] == pytest.approx(2 * float(moved.l2_squared / (2 * drawn)))  # order 2
    elif kind == "truncated":
        assert found.pure == (2 if relation == "replace-one" else 1) / drawn
    elif kind in ("select", "flips"):  # the rate that is drawn with is one for integer steps, as the range is
        assert found.pure == moved.range * drawn
    else:
        each = moved.linf * 3 if isinstance(mechanism, dp.CoordinateLaplace) else moved.l1
        assert found.pure == each / drawn


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda m: type(m).__name__)
def test_what_a_conversation_draws_is_what_is_charged(conversation):
    data, rng = table("replace-one"), Recording()
    state = conversation.begin(data, rng)
    conversation.step(state, dp.Above(dp.Count(OLD), 9), data, rng)
    (_, threshold), (_, question) = rng.drawn  # in steps of the sensitivity
    assert conversation.guarantee(data.facts).pure == 1 / threshold + 2 / question
