"""Every mechanism of the catalogue through the same questions: record, docstring, price, neighbours, draws, rows.

The examples are in `discreet.audit.examples` (the first test says which mechanism has none) and `tests/examples.py`.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.answering.averaged_weights import Together
from discreet.audit.mutants import with_noise
from discreet.catalogue import CATALOGUE
from discreet.data import Needs, Offers
from discreet.erm.objective_perturbation import ObjectivePerturbation
from discreet.erm.output_perturbation import OutputPerturbation
from discreet.erm.ranged import RangedFeatures, RangedRegression
from discreet.errors import NotOffered, OutOfRange
from discreet.mechanisms import Conversation, Mechanism, Stepwise
from discreet.pac.boxes import ReorderSlice
from discreet.pac.greedy import SelfDeleting
from discreet.records import canonical, record, revive
from discreet.rng import SeededRng
from tests.elsewhere import Elsewhere
from tests.examples import (
    ADDITIVE,
    CASES,
    CONVERSATIONS,
    FEW,
    OLD,
    RATES,
    RELATIONS,
    SELECTIONS,
    STABLE,
    STEPWISE,
    Recording,
    columns,
    facts,
    kinds,
    nobody,
    table,
)


def name(mechanism) -> str:
    return type(mechanism).__name__


CONVERSATION_KINDS = tuple(type(each) for each in CONVERSATIONS)

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
released = pytest.mark.parametrize(
    "case", [each for each in CASES if not isinstance(each.mechanism, Conversation)], ids=lambda case: case.name
)
stepwise = pytest.mark.parametrize("counter", STEPWISE, ids=lambda counter: type(counter.query).__name__)
spoken = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=name)
related = pytest.mark.parametrize("relation", RELATIONS)


@pytest.fixture
def mechanism(case):
    return case.mechanism


def drawn(mechanism, data, seed=5):
    """What a testing ledger gives for this seed, as plain tuples."""
    ledger = dp.Ledger.in_memory(dp.Budget(1000, 0.9), data.identity, testing=True)
    return plain(dp.release(mechanism, data, ledger=ledger, rng=SeededRng(seed)).value)


def plain(value):
    if isinstance(value, (tuple, list)):
        return tuple(plain(each) for each in value)
    return tuple(value.ravel().tolist()) if isinstance(value, np.ndarray) else value


def test_every_mechanism_of_the_catalogue_has_an_example():
    assert {type(each.mechanism) for each in FEW} == kinds()
    assert len(kinds()) >= 33


def written_mechanisms():
    """The record names of all classes in the source that have a price and can be run or begun."""
    for path in sorted((Path(__file__).parents[2] / "src" / "discreet").rglob("*.py")):
        for kind in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)):
            methods = {each.name for each in kind.body if isinstance(each, ast.FunctionDef)}
            if "guarantee" in methods and methods & {"run", "begin"}:
                fields = [each for each in kind.body if isinstance(each, ast.AnnAssign) and each.value is not None]
                yield from (each.value.value for each in fields if ast.unparse(each.target) == "NAME")


def test_every_mechanism_that_is_written_is_in_the_catalogue():
    named = set(written_mechanisms())
    assert len(named) >= 33
    assert named <= set(CATALOGUE)


def test_every_class_of_the_catalogue_stands_under_its_own_name():
    assert {key: kind.NAME for key, kind in CATALOGUE.items()} == {key: key for key in CATALOGUE}
    assert list(CATALOGUE) == sorted(CATALOGUE)


@every
def test_a_mechanism_is_its_record(mechanism):
    text = canonical(record(mechanism))
    assert revive(json.loads(text), CATALOGUE) == mechanism
    assert canonical(record(revive(json.loads(text), CATALOGUE))) == text
    assert "." not in text, "no floats in a record"


@every
def test_a_mechanism_is_frozen_hashable_and_printable(mechanism):
    assert hash(mechanism) == hash(dataclasses.replace(mechanism)) == hash(revive(record(mechanism), CATALOGUE))
    assert type(mechanism).__name__ in repr(mechanism)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, dataclasses.fields(mechanism)[0].name, None)


@every
def test_the_docstring_carries_theorem_accuracy_and_reference(mechanism):
    for section in ("Theorem.", "Accuracy.", "Edges.", "Reference."):
        assert section in (type(mechanism).__doc__ or "")


# The price.


@related
@every
def test_the_price_is_native_to_the_relation_and_the_same_for_neighbours(case, mechanism, relation):
    changed = copy.deepcopy(case.rows)
    for held in changed.values():
        held[-1] = held[0]
    first, second = case.table(relation), case.table(relation, changed)
    assert first.facts == second.facts
    found = mechanism.guarantee(first.facts)
    assert found.neighbours.kind == relation
    assert found == mechanism.guarantee(second.facts)
    assert found.epsilon(Fraction(1, 10**6) + found.failure) < float("inf")


@related
@every
def test_a_person_of_two_rows_costs_more_than_one_of_one(case, mechanism, relation):
    if isinstance(mechanism, ReorderSlice) and case in FEW:  # promises nothing to a person of two rows at this noise
        with pytest.raises(OutOfRange):
            mechanism.guarantee(case.facts(relation, rows=2))
        return
    one, two = (mechanism.guarantee(case.facts(relation, rows=rows)) for rows in (1, 2))
    assert two.neighbours == dp.Neighbours(relation, 2)
    if isinstance(mechanism, CONVERSATION_KINDS):
        assert two.pure == one.pure  # the question's sensitivity is declared, and each question is held to it
        return
    if one.pure is None:  # Gaussian noise: the divergence grows with the square, but for that of a Jacobian
        # ... and that of ranks where their pure price is less.
        times = 1.9 if isinstance(mechanism, (ObjectivePerturbation, RangedFeatures)) else 4
        assert all(more >= times * less * (1 - 1e-9) for less, more in zip(one.renyi, two.renyi, strict=True))
    else:
        rounding = 0  # the minimiser of OutputPerturbation is rounded, which costs the same for one row and for two
        if isinstance(mechanism, OutputPerturbation):
            rounding = 2 * (mechanism.tolerance + mechanism.step) / mechanism.noise.scale
        inner = mechanism.inner if isinstance(mechanism, RangedRegression) else mechanism
        if isinstance(inner, ObjectivePerturbation):  # grid and blur cost the same, too
            apart = 4 * (inner.tolerance + inner.step) + inner.grid
            rounding = 4 * inner.grid / inner.noise.scale + apart / inner.blur.scale
        assert two.pure >= 2 * one.pure - rounding
    if one.failure and not isinstance(mechanism, SelfDeleting):  # whose failure is a parameter
        assert two.failure > 2 * one.failure


@related
@every
def test_more_noise_never_costs_more(case, mechanism, relation):
    noisier = with_noise(mechanism, Fraction(2))
    assert noisier != mechanism, "no field holds noise: name it scale, rate or noise, or list it in audit/mutants.py"
    loud, quiet = (each.guarantee(case.facts(relation)) for each in (mechanism, noisier))
    assert all(q <= p for p, q in zip(loud.renyi, quiet.renyi, strict=True))
    at = Fraction(1, 100) + max(loud.failure, quiet.failure)
    assert quiet.epsilon(at) < loud.epsilon(at)
    if loud.pure is not None:
        assert quiet.pure < loud.pure


@related
@released
def test_the_noise_is_drawn_from_the_fields_that_are_priced(case, mechanism, relation):
    """Four times the noise in the fields of `with_noise`, which the price follows: the draws follow, too."""
    usual, quieter = Recording(), Recording()
    mechanism.run(case.table(relation), usual)
    with_noise(mechanism, Fraction(4)).run(case.table(relation), quieter)
    (kind, before), (same, after) = usual.drawn[0], quieter.drawn[0]
    assert kind == same
    assert after < before if kind in RATES else after > before


@every
def test_a_mechanism_refuses_columns_that_are_not_there(mechanism):
    other = dp.data.Facts(dp.Domain(z=dp.Number(0, 1, step=1)), dp.Neighbours("replace-one"), 10)
    if isinstance(mechanism, CONVERSATION_KINDS):
        with pytest.raises((dp.errors.SchemaError, dp.errors.ParameterError)):
            mechanism.check(dp.mechanisms.IsAbove(dp.Count(OLD), 5), other)
        return
    with pytest.raises((dp.errors.SchemaError, dp.errors.ParameterError)):
        mechanism.guarantee(other)


# The rows.


@related
@released
def test_a_release_runs_on_every_relation_and_on_an_empty_table(case, mechanism, relation):
    assert isinstance(mechanism, Mechanism)
    usual = drawn(mechanism, case.table(relation))
    if relation == "add-remove":
        found = drawn(mechanism, case.table(relation, case.nobody()))
        assert type(found) is type(usual) or isinstance(mechanism, dp.mechanisms.StableMode)  # a mode may be nothing


@released
@related
def test_every_backend_and_every_order_of_the_rows_gives_the_same_release(case, mechanism, relation, tmp_path):
    held = copy.deepcopy(case.rows)
    order = np.random.default_rng(8).permutation(case.size)
    shuffled = {key: [values[place] for place in order] for key, values in held.items()}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(shuffled), path)
    tables = [
        dp.Table(held, case.domain, neighbours=relation, size=case.size),
        dp.Table(shuffled, case.domain, neighbours=relation, size=case.size),
        dp.ParquetTable(path, case.domain, neighbours=relation, size=case.size, batch_rows=77),
        Elsewhere(shuffled, case.domain, neighbours=relation, size=case.size),
    ]
    first, *others = (drawn(mechanism, each) for each in tables)
    assert all(other == first for other in others)


@every
@related
def test_a_mechanism_says_what_it_needs_and_is_refused_for_nothing_where_that_is_not_offered(case, mechanism, relation):
    """Every door that a run goes through is among its needs; each is refused before the charge where it is closed."""
    data = Watched(case.rows, case.domain, neighbours=relation, size=case.size)
    needs = mechanism.needs(data.facts)
    assert isinstance(needs, Needs)
    if isinstance(mechanism, Stepwise):
        steps(mechanism, data, SeededRng(3))
    elif not isinstance(mechanism, CONVERSATION_KINDS):
        mechanism.run(data, SeededRng(3))
    stated = {type(query) for query in needs.queries}
    assert needs.functions or data.summed <= stated | {type(Together(()))}
    assert needs.slices or not data.sliced
    assert needs.gathers or not data.gathered
    assert not data.gathered or data.gathered <= needs.moved(data.facts) + 2**10  # a last word is not full
    closed = Closed(case.rows, case.domain, neighbours=relation, size=case.size)
    ledger = dp.Ledger.in_memory(dp.Budget(1000, 0.9), closed.identity, testing=True)
    if isinstance(mechanism, CONVERSATION_KINDS):
        with dp.converse(mechanism, closed, ledger=ledger, rng=SeededRng(1)) as talk:
            before = list(ledger.entries())
            with pytest.raises(NotOffered, match="answers nothing only"):
                talk.ask(dp.mechanisms.IsAbove(dp.Count(), 5))
            assert list(ledger.entries()) == before
        return
    door = dp.converse if isinstance(mechanism, Stepwise) else dp.release
    with pytest.raises(NotOffered):
        door(mechanism, closed, ledger=ledger, rng=SeededRng(1))
    assert not [body for body in ledger.entries() if body["kind"] == "charge"]


class Watched(dp.Table):
    """A table that notes which doors are used."""

    __slots__ = ("gathered", "sliced", "summed")

    def __init__(self, *given, **more):
        self.summed, self.sliced, self.gathered = set(), False, 0
        super().__init__(*given, **more)

    def exact_sum(self, query):
        self.summed.add(type(query))
        return super().exact_sum(query)

    def exact_slices(self, slices, **more):
        self.sliced = True
        return super().exact_slices(slices, **more)

    def exact_gather(self, take):
        found = super().exact_gather(take)
        self.gathered = max(
            self.gathered, sum(len(f"{each:b}") for each in found) // 8 if found.dtype == object else found.nbytes
        )
        return found


class Closed(dp.Table):
    """A table that does nothing at all, and says so."""

    offers = Offers("nothing", functions=False, slices=False, gather_limit=0)

    def exact_sum(self, query):
        raise AssertionError("the rows were read")

    exact_slices = exact_gather = exact_sum


# Conversations.


@spoken
def test_a_conversation_refuses_questions_it_was_not_paid_for(conversation):
    assert isinstance(conversation, Conversation)
    conversation.check(dp.mechanisms.IsAbove(dp.Count(OLD), 5), facts("replace-one"))
    with pytest.raises(dp.errors.ParameterError, match="sensitivity"):
        conversation.check(dp.mechanisms.IsAbove(dp.Sum("pay"), 5), facts("replace-one"))
    with pytest.raises(dp.errors.ParameterError, match="Count or a Sum"):
        dp.mechanisms.IsAbove(dp.Histogram("sex"), 5)


@spoken
@related
def test_a_conversation_counts_every_row_of_a_person(conversation, relation):
    """A person of k rows moves a count by k: a question is admitted up to the declared sensitivity, no further."""
    most = int(conversation.sensitivity)
    conversation.check(dp.mechanisms.IsAbove(dp.Count(OLD), 5), facts(relation, rows=most))
    for ask in (dp.mechanisms.IsAbove(dp.Count(OLD), 5), dp.mechanisms.IsFar(dp.Count(OLD), (3,), 5)):
        with pytest.raises(dp.errors.ParameterError, match="sensitivity"):
            conversation.check(ask, facts(relation, rows=most + 1))


@spoken
@related
def test_a_conversation_answers_about_an_empty_table(conversation, relation):
    data = table(relation, nobody() if relation == "add-remove" else columns(1))
    state = conversation.begin(data, SeededRng(1))
    after, answer = conversation.step(state, dp.mechanisms.IsAbove(dp.Count(OLD), 10**6), data, SeededRng(1))
    assert answer is False
    assert json.loads(json.dumps(after)) == state


@spoken
def test_what_a_conversation_draws_is_what_is_charged(conversation):
    data, rng = table("replace-one"), Recording()
    state = conversation.begin(data, rng)
    conversation.step(state, dp.mechanisms.IsAbove(dp.Count(OLD), 9), data, rng)
    (_, threshold), (_, question) = rng.drawn  # in steps of the sensitivity
    assert conversation.guarantee(data.facts).pure == 1 / threshold + 2 / question


# Conversations that answer step by step.


def steps(counter, data, rng, state=None, places=None):
    """The answers to these epochs, all of them unless said, and the state after them."""
    state, said = counter.begin(data, rng) if state is None else state, []
    for place in places or range(1, counter.epochs + 1):
        state, answer = counter.step(state, counter.epoch(place, data.facts), data, rng)
        said.append(answer)
    return said, state


@stepwise
@related
def test_a_counter_adds_up_exactly_but_for_its_noise(counter, relation):
    """The totals minus the truth are the same whatever the rows are: post-processed noise, and nothing else."""
    off = []
    for rows in (columns(), {**columns(), "age": [3] * 300}):
        data = table(relation, rows)
        said, state = steps(counter, data, SeededRng(4))
        assert state is None
        assert [answer["deviation"] for answer in said] == [
            counter.deviation(place) for place in range(1, counter.epochs + 1)
        ]
        truth, unit = 0, counter.query.unit(data.facts)
        for place, answer in enumerate(said, 1):
            where = dp.And(counter.query.where, dp.Equals("age", counter.epoch(place, data.facts)))
            truth += int(data.exact_sum(dataclasses.replace(counter.query, where=where))) * unit
            off.append(answer["total"] - float(truth))
    first, second = off[: counter.epochs], off[counter.epochs :]
    assert first == pytest.approx(second, abs=1e-6 * float(counter.scale))


@stepwise
@related
def test_a_counter_answers_about_an_empty_table(counter, relation):
    data = table(relation, nobody() if relation == "add-remove" else columns(1))
    said, state = steps(counter, data, SeededRng(1))
    assert state is None
    assert len(said) == counter.epochs


@stepwise
def test_a_counter_takes_its_steps_in_their_order(counter):
    data, rng = table("replace-one"), SeededRng(1)
    assert isinstance(counter, Stepwise)
    _, state = steps(counter, data, rng, places=[1])
    assert json.loads(json.dumps(state)) == state
    for wrong in (1, 3):
        with pytest.raises(dp.errors.ParameterError, match="number 2"):
            steps(counter, data, rng, state, [wrong])
    for nowhere in (counter.epochs + int(counter.first), -1, "x"):
        with pytest.raises(dp.errors.ParameterError):
            counter.check(nowhere, data.facts)


@stepwise
def test_what_a_counter_draws_is_what_is_charged(counter):
    """One Gaussian for each epoch when it opens, and none later; the price follows from it and from R's columns."""
    data, rng = table("add-remove"), Recording()
    steps(counter, data, rng)
    ((kind, variance),) = rng.drawn
    assert kind == "gaussian"
    one = counter.query.sensitivity(data.facts).linf
    root = dp.mechanisms.continual.root_coefficients(counter.epochs, counter.resolution)
    moved = one * one * sum(each * each for each in root)
    assert counter.guarantee(data.facts).renyi[3] == pytest.approx(2 * float(moved / (2 * variance)))  # order 2


# Exact numbers.


def test_a_float_is_read_as_the_decimal_that_was_typed():
    assert dp.Laplace(dp.Count(), 0.1).scale == Fraction(1, 10)
    assert dp.Laplace(dp.Count(), 0.1) == dp.Laplace(dp.Count(), "0.1")


def test_the_pure_price_of_a_rational_scale_is_exact():
    assert dp.Laplace(dp.Count(OLD), 30).guarantee(facts("replace-one")).pure == Fraction(1, 30)
    assert dp.Laplace(dp.Sum("pay"), 30).guarantee(facts("replace-one")).pure == Fraction(1, 2)
    assert dp.Laplace(dp.Sum("pay"), 30).guarantee(facts("add-remove")).pure == Fraction(1, 3)
    assert dp.mechanisms.AboveThreshold(10, 20).guarantee(facts("replace-one")).pure == Fraction(1, 5)


@related
@pytest.mark.parametrize("mechanism", [*ADDITIVE, *SELECTIONS, *STABLE], ids=name)
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
    elif kind == "zero-sum":  # a row that moves, or enters
        assert found.pure == 2 * moved.linf / drawn
    elif kind in ("select", "flips"):  # the rate that is drawn with is one for integer steps, as the range is
        assert found.pure == moved.range * drawn
    else:
        each = moved.linf * 3 if isinstance(mechanism, dp.mechanisms.CoordinateLaplace) else moved.l1
        assert found.pure == each / drawn
