"""Keys of a service: shown once, stored hashed, found in constant work, expired and revoked at the next request."""

from __future__ import annotations

import json
import stat

import pytest

from discreet.errors import KeyRefused, LedgerUnavailable, NotPermitted, ParameterError
from discreet.serve import keys as module
from discreet.serve.keys import MAY, Keys


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(tmp_path, clock):
    return Keys(tmp_path / "keys.json", now=clock)


def test_a_key_is_found_again_and_its_text_is_not_in_the_file(keys):
    key, text = keys.add("ana", share="1/4", may=("ask",))
    assert keys.find(text) == key
    stored = keys.path.read_text()
    assert text not in stored
    assert text.split("_", 2)[2] not in stored
    assert key.hash in stored
    assert (key.name, key.role, key.may, key.share) == ("ana", "analyst", ("ask",), "1/4")


def test_a_key_has_256_random_bits_and_no_two_are_alike(keys):
    made = [keys.add("ana")[1] for _ in range(20)]
    assert len(set(made)) == 20
    assert all(len(text.split("_", 2)[2]) == 43 for text in made)  # 32 bytes in base64


def test_the_file_is_its_owners_alone_and_a_file_of_others_is_refused(keys):
    _, text = keys.add("ana")
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    keys.path.chmod(0o644)
    with pytest.raises(LedgerUnavailable, match="others"):
        Keys(keys.path)
    keys.path.chmod(0o600)
    assert Keys(keys.path, now=keys.now).find(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: "dk_",
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
        lambda text: text.replace("dk_", "DK_"),
        lambda text: "dk_00000000_" + text.split("_", 2)[2],
        lambda text: text.split("_", 2)[2],
        lambda text: text.upper(),
        lambda text: text + "\n",
        lambda text: "x" * 100_000,
        lambda text: "dk_\udcff",
    ],
)
def test_what_is_not_a_key_is_refused(keys, change):
    _, text = keys.add("ana")
    with pytest.raises(KeyRefused):
        keys.find(change(text))


def test_an_unknown_id_costs_the_same_comparison(keys, monkeypatch):
    _, text = keys.add("ana")
    compared, hashed, digest = [], [], module._hash
    monkeypatch.setattr(module.hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or a == b)
    monkeypatch.setattr(module, "_hash", lambda secret: hashed.append(len(secret)) or digest(secret))
    keys.find(text)
    with pytest.raises(KeyRefused):
        keys.find("dk_00000000_" + text.split("_", 2)[2])
    assert compared == [(64, 64)] * 2
    assert hashed == [43, 43]


def test_a_key_expires(keys, clock):
    _, text = keys.add("ana", expires=clock.now + 10)
    keys.find(text)
    clock.now += 10
    with pytest.raises(KeyRefused):
        keys.find(text)
    with pytest.raises(ParameterError, match="future"):
        keys.add("ana", expires=clock.now)


def test_a_revoked_key_is_refused_by_a_process_that_read_the_file_before(keys):
    key, text = keys.add("ana")
    running = Keys(keys.path, now=keys.now)
    assert running.find(text) == key
    (ended,) = keys.revoke("ana")
    assert ended.id == key.id
    for each in (keys, running):
        with pytest.raises(KeyRefused):
            each.find(text)
        assert each.holder(key.id) is None


def test_two_keys_of_a_name_are_revoked_one_by_one_or_together(keys):
    (old, old_text), (_, new_text) = keys.add("ana"), keys.add("ana")
    keys.revoke(old.id)
    keys.find(new_text)
    with pytest.raises(KeyRefused):
        keys.find(old_text)
    assert [key.name for key in keys.revoke("ana")] == ["ana"]
    assert keys.revoke("ana") == []
    with pytest.raises(ParameterError, match="no key"):
        keys.revoke("nobody")


def test_a_second_process_adds_to_what_the_first_wrote(keys):
    other = Keys(keys.path, now=keys.now)
    _, one = keys.add("ana")
    _, two = other.add("bob")
    assert keys.find(two).name == "bob"
    assert other.find(one).name == "ana"


@pytest.mark.parametrize(
    "given",
    [
        {"name": ""},
        {"name": "a" * 65},
        {"name": "<b>"},
        {"name": "a\nb"},
        {"name": " ana"},
        {"name": "ana", "role": "king"},
        {"name": "ana", "may": ("read",)},
        {"name": "ana", "share": "2"},
        {"name": "ana", "share": "0"},
        {"name": "ana", "expires": float("nan")},
        {"name": "ana", "expires": float("inf")},
        {"name": "ana", "expires": 253_402_300_800},
    ],
)
def test_what_cannot_be_a_holder_is_refused_and_nothing_is_written(keys, given):
    with pytest.raises(ParameterError):
        keys.add(**given)
    assert not keys.path.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "discreet-keys/2", "keys": []}', "x", '{"keys": 3}', "[" * 9999]
)
def test_a_damaged_file_lets_nobody_in(keys, text):
    keys.add("ana")
    keys.path.write_text(text)
    with pytest.raises(ParameterError, match="no file of keys"):
        Keys(keys.path)
    with pytest.raises(ParameterError):
        keys.find("dk_00000000_" + "A" * 43)


def test_rights_are_checked_by_name(keys):
    analyst, _ = keys.add("ana", may=("ask",), tables=("people",))
    owner, _ = keys.add("olga", role="owner")
    analyst.require("ask")
    for what in set(MAY) - {"ask"}:
        with pytest.raises(NotPermitted, match=what):
            analyst.require(what)
    with pytest.raises(NotPermitted, match="owner"):
        analyst.require_owner()
    with pytest.raises(NotPermitted, match="analyst"):
        owner.require("ask")
    owner.require_owner()
    assert analyst.reaches("people")
    assert not analyst.reaches("visits")
    assert owner.reaches("visits")
    assert "hash" not in json.dumps(analyst.record(0))
