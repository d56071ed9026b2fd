"""The continual counter: its sensitivity by brute force, its inverse, its figures, and its steps through a ledger."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from discreet.data import Facts, Growth
from discreet.errors import ConversationOver, LedgerMismatch, ParameterError
from discreet.ledger.store import Writer
from discreet.mechanisms import ContinualCounter
from discreet.mechanisms.continual import RESOLUTION, column_norm, inverse_coefficients, root_coefficients
from discreet.rng import SeededRng

PROOF = Path(__file__).parents[2] / "docs" / "proofs" / "continual.md"


def triangle(epochs, resolution):
    root = root_coefficients(epochs, resolution)
    return np.array([[root[i - j] if i >= j else 0 for j in range(epochs)] for i in range(epochs)], dtype=object)


def test_the_rounded_root_never_rises_and_its_square_is_nearly_all_ones():
    for epochs in (1, 2, 12, 365, 2048):
        root = root_coefficients(epochs, RESOLUTION)
        assert root[0] == RESOLUTION
        assert list(root) == sorted(root, reverse=True)
        assert root[-1] > 0
    square = triangle(40, RESOLUTION) @ triangle(40, RESOLUTION) / RESOLUTION**2
    assert np.allclose(np.tril(np.ones((40, 40))), square.astype(float), atol=2e-3)


@pytest.mark.parametrize("resolution", [2, 16, RESOLUTION])
def test_the_inverse_is_exact(resolution):
    epochs = 9
    root = triangle(epochs, resolution)
    inverse = inverse_coefficients(epochs, resolution)
    left = np.array([[inverse[i - j] if i >= j else 0 for j in range(epochs)] for i in range(epochs)], dtype=object)
    one = resolution ** (epochs + 1)
    assert (left @ root).tolist() == [[one if i >= j else 0 for j in range(epochs)] for i in range(epochs)]


# Sensitivity.


def facts(relation, *, rows=1, per_person=None, low=0, high=3):
    domain = dp.Domain(t=dp.Number(1, 5, step=1), v=dp.Number(low, high, step=1))
    growth = None if per_person is None else Growth("t", ("1",), per_person)
    return Facts(domain, dp.Neighbours(relation, rows), 10, growth=growth)


def paid(counter, known):
    """The squared length that the price is for, in the integers of R."""
    variance = (counter.scale / counter._unit(known)) ** 2
    return 2 * variance * Fraction(counter.guarantee(known).renyi[3] / 2).limit_denominator(10**9)


def persons(epochs, rows, weights):
    """What a person of at most so many rows adds to each epoch, in every possible way."""
    places = [(t, w) for t in range(epochs) for w in weights]
    for count in range(rows + 1):
        for chosen in itertools.combinations_with_replacement(places, count):
            added = np.zeros(epochs, dtype=int)
            for t, w in chosen:
                added[t] += w
            yield added


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (-2, 1)])
@pytest.mark.parametrize("rows", [1, 2])
def test_no_person_of_any_table_moves_the_sums_by_more_than_is_paid(low, high, rows):
    counter = ContinualCounter(dp.Sum("v"), "t", 1, 4, scale=1, resolution=8)
    root = triangle(4, 8).astype(int)
    people = list({tuple(each) for each in persons(4, rows, range(low, high + 1))})
    moved = np.array(people) @ root.T
    most = max(int((each**2).sum()) for each in moved)
    assert most == pytest.approx(float(paid(counter, facts("add-remove", rows=rows, low=low, high=high))), rel=1e-6)
    replaced = max(int(((one - moved) ** 2).sum(axis=1).max()) for one in moved)
    claimed = float(paid(counter, facts("replace-one", rows=rows, low=low, high=high)))
    assert 0.45 * claimed <= replaced <= claimed * (1 + 1e-6)


@pytest.mark.parametrize(("rows", "per_person"), [(1, 1), (1, 2), (2, 2), (1, 3), (2, 1)])
def test_no_person_of_a_growing_table_moves_the_sums_by_more_than_is_paid(rows, per_person):
    counter = ContinualCounter(dp.Sum("v"), "t", 1, 5, scale=1, resolution=8)
    root = triangle(5, 8).astype(int)
    most = replaced = 0
    for epochs in itertools.combinations(range(5), per_person):
        for added in itertools.product(range(-rows, 2 * rows + 1), repeat=per_person):  # weights in [-1, 2]
            d = np.zeros(5, dtype=int)
            d[list(epochs)] = added
            most = max(most, int(((root @ d) ** 2).sum()))
        for added in itertools.product((-3 * rows, 0, 3 * rows), repeat=per_person):  # in the same epochs, from -1 to 2
            d = np.zeros(5, dtype=int)
            d[list(epochs)] = added
            replaced = max(replaced, int(((root @ d) ** 2).sum()))
    for relation, found in (("add-remove", most), ("replace-one", replaced)):
        known = facts(relation, rows=rows * per_person, per_person=per_person, low=-1, high=2)
        assert float(paid(counter, known)) == pytest.approx(found, rel=1e-6)


def test_a_wrong_norm_would_be_found():
    """The brute force has power: the last column instead of the first, or one column for two epochs, is too little."""
    root = triangle(5, 8).astype(int)
    assert (root[:, -1] ** 2).sum() < (root[:, 0] ** 2).sum() == column_norm(5, 8, 1)
    assert column_norm(5, 8, 1) * 2 < column_norm(5, 8, 2) == ((root[:, 0] + root[:, 1]) ** 2).sum()


# Figures.


def tree(epochs, rho):
    height = math.ceil(math.log2(epochs)) + 1
    return [math.sqrt(bin(t).count("1") * height / (2 * rho)) for t in range(1, epochs + 1)]


@pytest.mark.parametrize("epochs", [12, 52, 365])
def test_the_figures_of_the_proof_page(epochs):
    """Beside fresh releases, added epochs and a binary tree, for all of a ledger's Renyi budget."""
    known = Facts(dp.Domain(t=dp.Number(1, 400, step=1)), dp.Neighbours("add-remove"), None)
    who = dp.data.Identity("made up", dp.Neighbours("add-remove"), None)
    funds = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), who).funds()
    counter = dp.calibrate(lambda scale: ContinualCounter(dp.Count(), "t", 1, epochs, scale), funds=funds, facts=known)
    rho = float(column_norm(epochs, RESOLUTION, 1) / (2 * (counter.scale * RESOLUTION) ** 2))
    assert rho == pytest.approx(0.0229, rel=2e-3)
    numbers = range(1, epochs + 1)
    inverse = [float(Fraction(each, RESOLUTION**epochs)) for each in inverse_coefficients(epochs, RESOLUTION)]
    ours = [float(counter.scale) * math.sqrt(math.fsum(each * each for each in inverse[:t])) for t in numbers]
    assert ours[-1] == pytest.approx(counter.deviation(epochs), rel=1e-9)
    columns = (
        [math.sqrt(epochs / (2 * rho))] * epochs,
        [math.sqrt(t / (2 * rho)) for t in numbers],
        tree(epochs, rho),
        ours,
    )
    row = next(line for line in PROOF.read_text().splitlines() if line.startswith(f"| {epochs} |"))
    stated = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) / ([\d.]+)", row)]
    for (largest, root_mean), found in zip(stated, columns, strict=True):
        assert max(found) == pytest.approx(largest, abs=0.06)
        assert math.sqrt(math.fsum(each * each for each in found) / epochs) == pytest.approx(root_mean, abs=0.06)


# Through a ledger.

DOMAIN = dp.Domain(t=dp.Number(1, 12, step=1), v=dp.Number(0, 9, step=1))
ROWS = {"t": [1, 1, 2, 3, 3, 3], "v": [1, 2, 3, 4, 5, 6]}


def counting(tmp_path, *, epochs=3, scale="0.1", budget=10**6):
    table = dp.Table(ROWS, DOMAIN, name="made up")
    ledger = dp.Ledger.create(tmp_path / "made.ledger", dp.Budget(budget, "1e-6"), table, state_dir=tmp_path / "state")
    counter = ContinualCounter(dp.Sum("v"), "t", 1, epochs, scale)
    return counter, table, ledger, dp.converse(counter, table, ledger=ledger)


def test_the_totals_are_near_the_truth_and_a_step_again_is_free(tmp_path):
    counter, table, ledger, talk = counting(tmp_path)
    spent = ledger.spent().renyi
    totals = [talk.ask(t)["total"] for t in (1, 2, 3)]
    for place, (total, truth) in enumerate(zip(totals, (3, 6, 21), strict=True), 1):
        assert abs(total - truth) <= counter.bound(place, table.facts, Fraction(1, 10**6))
    assert [talk.ask(t)["total"] for t in (3, 1, 2)] == [totals[2], totals[0], totals[1]]
    assert ledger.spent().renyi == spent
    assert ledger.verify(dp.catalogue.CATALOGUE) == ()
    assert not (tmp_path / "made.ledger.secret").exists() or "sums" not in (tmp_path / "made.ledger.secret").read_text()


def test_a_step_out_of_its_order_is_refused_and_changes_nothing(tmp_path):
    _, _, ledger, talk = counting(tmp_path)
    talk.ask(1)
    entries = ledger.length()
    for wrong in (3, 4, 0, "x"):
        with pytest.raises(ParameterError):
            talk.ask(wrong)
    assert ledger.length() == entries
    talk.ask(2)


def test_another_process_goes_on(tmp_path):
    counter, table, ledger, talk = counting(tmp_path)
    first = talk.ask(1)
    ledger.close()
    again = dp.Ledger.open(tmp_path / "made.ledger", state_dir=tmp_path / "state")
    there = dp.reopen(counter, table, charge=talk.charge, ledger=again)
    assert there.ask(1) == first
    there.ask(2)


def test_a_lost_or_older_state_ends_it(tmp_path):
    _, _, _, talk = counting(tmp_path)
    secret = tmp_path / "made.ledger.secret"
    talk.ask(1)
    older = secret.read_bytes()
    talk.ask(2)
    secret.write_bytes(older)
    with pytest.raises(ConversationOver, match="older copy"):
        talk.ask(3)
    secret.unlink()
    with pytest.raises(ConversationOver, match="not beside"):
        talk.ask(3)
    assert talk.ask(2)["total"]  # what was said stays


def test_an_answer_that_was_drawn_before_a_crash_is_the_answer(tmp_path, monkeypatch):
    """The state is durable, the entry is not: the next attempt gives the same answer, not another draw."""
    counter, _, ledger, talk = counting(tmp_path)

    append, seen = Writer.append, []

    def dies(self, kind, fields):
        if kind == "step":
            seen.append(fields["answer"])
            raise OSError("the machine died")
        return append(self, kind, fields)

    monkeypatch.setattr(Writer, "append", dies)
    with pytest.raises(dp.DiscreetError):
        talk.ask(1)
    monkeypatch.undo()
    other = dp.Table({"t": [1] * 6, "v": [9] * 6}, DOMAIN, name="made up")  # even if the rows were others meanwhile
    got = dp.reopen(counter, other, charge=talk.charge, ledger=ledger).ask(1)
    assert [dp.ledger.encode(got)] == seen


def test_rows_that_cannot_be_read_leave_it_open(tmp_path):
    counter, _, ledger, talk = counting(tmp_path)

    class Broken(dp.Table):
        def exact_sum(self, query):
            raise OSError("a secret that is in a row")

    broken = dp.reopen(counter, Broken(ROWS, DOMAIN, name="made up"), charge=talk.charge, ledger=ledger)
    with pytest.raises(dp.DiscreetError, match="can be asked again") as caught:
        broken.ask(1)
    assert "secret" not in str(caught.value)
    assert talk.ask(1)


def test_a_table_of_another_edition_is_not_gone_on_with(tmp_path):
    counter, _, ledger, talk = counting(tmp_path)
    later = dp.Table(ROWS, DOMAIN, name="made up", edition="2")
    with pytest.raises(LedgerMismatch):
        dp.reopen(counter, later, charge=talk.charge, ledger=ledger)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ContinualCounter(dp.Histogram("v"), "t", 1, 3, 1),
        lambda: ContinualCounter(dp.Count(), "t", 1, 0, 1),
        lambda: ContinualCounter(dp.Count(), "t", 1, 5000, 1),
        lambda: ContinualCounter(dp.Count(), "t", 1, 3, 0),
        lambda: ContinualCounter(dp.Count(), "t", 1, 100, 1, resolution=2),
        lambda: ContinualCounter(dp.Count(), "t", 5, 9, 1).guarantee(facts("add-remove")),
        lambda: ContinualCounter(dp.Count(), "v", 0, 3, 1).guarantee(facts("add-remove", per_person=1)),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_paid(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_dates_are_epochs(tmp_path):
    domain = dp.Domain(month=dp.Date("2026-01-01", "2027-12-01", step="month"))
    table = dp.Table({"month": ["2026-02-03", "2026-02-20", "2026-03-01"]}, domain, name="made up")
    ledger = dp.Ledger.in_memory(dp.Budget(10**6, "1e-6"), table, testing=True)
    talk = dp.converse(
        ContinualCounter(dp.Count(), "month", "2026-02", 12, "0.01"), table, ledger=ledger, rng=SeededRng(1)
    )
    assert [round(talk.ask(each)["total"]) for each in ("2026-02", "2026-03-01", "2026-04-01")] == [2, 3, 3]
