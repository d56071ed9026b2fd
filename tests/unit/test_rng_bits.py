"""Which bits of a random word decide what: the sign of a noise is no part of the number that gives its magnitude."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.rng import Rng, SeededRng

F = Fraction
NARROW, WIDE, SPLIT = F(100), F(2**20), F(2**40)  # 31 bits, 52 bits, 52 bits and low bits apart


class Given(Rng):
    """Gives the words it was told to give first; every later byte is 01010101, which decides all."""

    def __init__(self, words: np.ndarray) -> None:
        self.first = [words.tobytes()]

    def _bytes(self, count: int) -> bytes:
        if not self.first:
            return b"\x55" * count
        made = self.first.pop()
        assert len(made) == count
        return made


def random_words(wide: bool, count: int = 64) -> np.ndarray:
    made = SeededRng(3).words(count)
    return made.astype("<u8") if wide else (made >> np.uint64(32)).astype("<u4")


def seen(words: np.ndarray, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    variables, spare = Given(words)._exponentials(len(words), wide=wide)
    return np.asarray(variables.known), np.asarray(spare)


@pytest.mark.parametrize("wide", [False, True], ids=["31 bits", "52 bits"])
def test_no_bit_is_both_in_the_number_and_in_the_sign(wide):
    words = random_words(wide)
    known, spare = seen(words, wide)
    numbers, signs = [], []
    for bit in range(64 if wide else 32):
        flipped, sign = seen(words ^ words.dtype.type(1 << bit), wide)
        moved, turned = flipped != known, sign != spare
        assert moved.all() or not moved.any()
        assert turned.all() or not turned.any()
        numbers += [bit] if moved.all() else []
        signs += [bit] if turned.all() else []
    assert len(numbers) == (52 if wide else 31)
    assert len(signs) == 1
    assert not set(numbers) & set(signs)


@pytest.mark.parametrize("wide", [False, True], ids=["31 bits", "52 bits"])
def test_the_number_takes_every_value_with_either_sign(wide):
    """Its bits are distinct bits of the word, so it is uniform; its lowest bit and the sign take all four pairs."""
    bits = 52 if wide else 31
    zeros = np.zeros(1, dtype="<u8" if wide else "<u4")
    values = {int(seen(zeros ^ zeros.dtype.type(1 << bit), wide)[0][0]) for bit in range(64 if wide else 32)} - {0}
    assert values == {1 << bit for bit in range(bits)}
    known, spare = seen(random_words(wide), wide)
    assert {(int(w) & 1, bool(s)) for w, s in zip(known, spare, strict=True)} == {
        (low, sign) for low in (0, 1) for sign in (False, True)
    }


@pytest.mark.parametrize("scale", [NARROW, WIDE, SPLIT], ids=["31 bits", "52 bits", "split"])
def test_turning_the_sign_leaves_the_magnitude(scale):
    """Whatever bit turns the sign of a noise, and nothing else, turns it for every word; there is exactly one."""
    wide = scale > 2**10
    words = random_words(wide)
    magnitude, sign, kept = Given(words)._two_sided(len(words), scale)
    assert kept.all()
    assert {-1, 1} == set(sign.tolist())
    turning = []
    for bit in range(64 if wide else 32):
        other, turned, _ = Given(words ^ words.dtype.type(1 << bit))._two_sided(len(words), scale)
        if (turned != sign).any():
            assert (turned == -sign).all()
            assert other.tolist() == magnitude.tolist()
            turning.append(bit)
    assert len(turning) == 1


@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(5), F(2000)])
def test_the_sign_says_nothing_about_the_magnitude(scale):
    """100,000 draws: of either sign the same share is even, up to six standard deviations."""
    drawn = SeededRng(4).laplace(scale, 100_000)
    for part in (0, 1):
        plus = int(((drawn > 0) & (drawn % 2 == part)).sum())
        minus = int(((drawn < 0) & (drawn % 2 == part)).sum())
        assert abs(plus - minus) <= 6 * (plus + minus) ** 0.5 + 1


def test_the_coin_of_a_comparison_is_the_first_31_bits_alone():
    """The bit that would be a sign is not looked at."""
    words = random_words(wide=False)
    x = np.full(len(words), 0.7)
    coins = [Given(each)._exceeds(x, lambda _: F(7, 10)).tolist() for each in (words, words ^ words.dtype.type(1))]
    assert coins[0] == coins[1]
    assert set(coins[0]) == {True, False}
