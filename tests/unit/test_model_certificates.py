"""A fitted model says what it promises in a certificate: with a ledger, alone, and after pickling."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import discreet as dp
from discreet.certificate import certificate, check
from discreet.rehearsal import made_up

DOMAIN = dp.Domain(x=dp.Number(0, 1, step="0.01"), y=dp.Category("no", "yes"))


def test_a_model_with_a_ledger_has_the_certificate_of_its_entry(tmp_path):
    table = made_up(DOMAIN, name="people")
    ledger = dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(1, "1e-6"), table)
    model = dp.Session(table, ledger).fit(dp.LogisticRegression(epsilon="0.5", delta="1e-7"), target="y")
    made = pickle.loads(pickle.dumps(model)).guarantee_.certificate(ledger)
    assert made == certificate(ledger, model.entry_)
    assert check(model.guarantee_.certificate(), ledger)  # as of the release: it needs no ledger
    assert made.record["rehearsal"] is True
    assert "true to the entries" in check(made, ledger)


@pytest.mark.parametrize("copied", [False, True])
def test_a_fit_alone_has_a_certificate_too_also_after_pickling(copied):
    model = dp.Mean(epsilon=1, bounds=(0, 1)).fit(np.linspace(0, 1, 50))
    found = pickle.loads(pickle.dumps(model)) if copied else model
    said = found.guarantee_.certificate().record
    assert (said["budget"]["epsilon"], said["status"]) == ("1", "answered")
    assert float(said["alone"]["epsilon"]) == pytest.approx(1)
    assert said["size"] == 50


def test_choices_and_paid_bounds_have_certificates():
    x = np.linspace(-1, 1, 200).reshape(-1, 1)
    y = x[:, 0] > 0
    box = dp.BoxClassifier(epsilon=1, bounds=(-1, 1), step="0.25", classes=(False, True)).fit(x, y)
    paid = box.certify(x, y, epsilon=1, beta="0.01")
    for found in (box.guarantee_, paid.guarantee):
        assert found.certificate().record["relation"] == "replace-one"
