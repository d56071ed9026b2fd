"""`discreet audit` from outside: what it prints beside what is claimed, and what happens when a claim is beaten."""

from __future__ import annotations

import json
import math

import pytest

import discreet as dp
from discreet import audit as auditing
from discreet.audit import Attack, Result, attacks, examples, mutants
from discreet.audit.divergence import Finding, claims, compare, epsilon_at, epsilon_finding, hockey_stick
from discreet.audit.laws import Law, law
from discreet.audit.mutants import Mistake, Twin
from discreet.guarantee import Guarantee


def test_every_line_has_the_epsilon_that_is_certain_beside_the_one_that_is_claimed(run):
    code, out, err = run("audit", "--only", "laplace")
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    assert "Laplace (replace-one): at least 2.00 of 2.00 claimed" in said
    twin = "a twin that draws half of the noise it is priced for: at least 4.00 of 2.00 claimed: caught"
    assert twin in said
    assert "every broken twin was caught" in said


def test_a_wide_terminal_gets_a_table_and_a_narrow_one_lines(run):
    wide = run("audit", "--only", "Exponential", columns="140")[1]
    assert "epsilon at least" in wide
    assert "caught" in wide
    narrow = run("audit", "--only", "Exponential", columns="40")[1]
    assert max(map(len, narrow.splitlines())) <= 40
    assert "at least 1.89 of 2.00" in " ".join(narrow.split())


def test_json_has_the_numbers(run):
    code, out, err = run("audit", "--only", "StableMode", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    (attack,) = found["attacks"]
    assert found["passed"] is attack["passed"] is attack["twin"]["caught"] is True
    assert attack["epsilon_at_least"] <= attack["epsilon_claimed"] == 1
    assert 0.02 < attack["delta"] < 0.03
    assert attack["twin"]["epsilon_at_least"] > 1.5


def test_an_unknown_name_is_answered_with_the_known_ones(run):
    code, out, err = run("audit", "--only", "Cauchy")
    assert (code, out) == (2, "")
    assert "Laplace" in err
    assert "Descent" in err


HARMLESS = Mistake("changes nothing")


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("columns", "word"), [("140", "NOT CAUGHT"), ("60", "NOT CAUGHT")])
def test_a_twin_that_is_not_caught_is_exit_code_1(run, monkeypatch, as_json, columns, word):
    first = examples()[0]
    missed = Attack(first.honest, first.setting, first.first, first.second, HARMLESS)
    monkeypatch.setattr(auditing, "attacks", lambda: (missed,))
    code, out, err = run("audit", *(["--json"] if as_json else []), columns=columns)
    assert code == 1
    assert err == "discreet: the audit failed for Laplace\n"
    assert json.loads(out)["passed"] is False if as_json else word in out


@pytest.mark.parametrize("columns", ["140", "60"])
def test_a_claim_that_is_beaten_is_exit_code_1(run, monkeypatch, columns):
    first = examples()[0]
    broken = Twin(first.honest, mutants.halved_noise)
    beaten = Attack(
        broken, first.setting, first.first, first.second, Mistake("is broken", run=lambda h, d, r: h.run(d, r))
    )
    monkeypatch.setattr(auditing, "attacks", lambda: (beaten,))
    code, out, err = run("audit", columns=columns)
    assert code == 1
    assert "BEATEN" in out
    assert "the audit failed for Twin" in err


# The numbers behind the lines.


def test_the_largest_epsilon_that_is_ruled_out_is_where_the_hockey_stick_meets_delta():
    p = Law({"a": 0.6, "b": 0.3, "c": 0.1}, 1e-15)
    q = Law({"a": 0.3, "b": 0.3, "c": 0.4}, 1e-15)
    assert epsilon_at(p, q, 0) == pytest.approx(math.log(4))
    for delta in (0.01, 0.05, 0.1, 0.2, 0.29):
        found = epsilon_at(p, q, delta)
        sticks = [max(hockey_stick(*pair, found + shift)[0] for pair in ((p, q), (q, p))) for shift in (-1e-6, 1e-6)]
        assert sticks[0] > delta > sticks[1]
    assert epsilon_at(p, q, 0.3) == 0.0


def test_what_was_cut_off_counts_against_the_finding():
    whole, cut = Law({"a": 0.9, "b": 0.1}, 1e-15), Law({"b": 0.9}, 0.1)
    assert epsilon_at(whole, cut, 0) == pytest.approx(math.log(9))  # all that was cut off may have been "a"
    assert epsilon_at(whole, cut, 0.5) == pytest.approx(math.log(4))


@pytest.mark.slow
def test_both_ways_of_comparing_laws_catch_the_same_twins():
    for each in attacks():
        if not isinstance(each, Attack) or not each.exact or each.attempt:
            continue
        for mechanism in (each.honest, Twin(each.honest, each.mistake)):
            p, q = (law(mechanism, rows, each.setting, reach=each.reach) for rows in (each.first, each.second))
            claimed = mechanism.guarantee(each.setting.facts(each.first))
            assert epsilon_finding(p, q, claimed).violates == compare(p, q, claimed).violates


def test_a_pure_claim_is_shown_first_and_one_without_it_at_the_worst_delta():
    pure = claims(Guarantee.of_pure(2, neighbours="replace-one"))
    assert pure[0] == (2.0, 0.0)
    gaussian = claims(Guarantee.of_zcdp("1/2", neighbours="replace-one"))
    assert all(0 < delta < 1 for _, delta in gaussian)
    failing = claims(Guarantee.of_approximate(1, delta="1/10", neighbours="replace-one"))
    assert failing[0] == (1.0, 0.1)


def test_the_bound_from_runs_is_below_the_claim_and_catches_a_tenth_of_the_noise():
    """False alarms have probability 1e-6; in forty trials the twin's bound was 3.19 to 3.21, and 2 is claimed."""
    one_step = next(each for each in examples() if each.look and each.name == "Descent")
    honest, broken = one_step.finding(), one_step.finding(one_step.mistake)
    assert not honest.violates
    assert honest.claimed == broken.claimed == 2
    assert honest.found > 0.5  # the attack is not asleep
    assert broken.violates


def test_a_result_passes_only_if_the_honest_one_keeps_and_the_twin_breaks_its_claim():
    kept, beaten = Finding(1, 0.9, 1, "epsilon"), Finding(1, 1.1, 1, "epsilon")
    assert Result("it", "replace-one", kept, "a mistake", beaten).passed
    assert not Result("it", "replace-one", kept, "a mistake", kept).passed
    assert not Result("it", "replace-one", beaten, "a mistake", beaten).passed


LEARNED = [each for each in examples() if each.look or each.attempt]


def test_planted_mistakes_of_learners_are_refused_by_a_real_ledger():
    table = dp.Table({"value": [1, -1]}, dp.Domain(value=dp.Number(-1, 1, step=2)), name="made up")
    ledger = dp.Ledger.in_memory(dp.Budget(50), table)
    for each in LEARNED:
        with pytest.raises(dp.errors.NotPrivate, match="broken"):
            dp.release(Twin(each.honest, each.mistake), table, ledger=ledger)
    assert ledger.spent().pure == 0


def test_the_runs_of_a_network_catch_a_tenth_of_its_noise():
    """In forty trials the twin's bound was 3.01 to 3.21, and 2.24 is claimed."""
    network = next(each for each in examples() if each.name == "NeuralDescent")
    honest, broken = network.finding(), network.finding(network.mistake)
    assert not honest.violates
    assert broken.violates
