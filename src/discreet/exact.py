"""Exact public numbers: how a user's argument becomes a Fraction, and the few checks every parameter needs.

What fixes privacy (a scale, a variance, an epsilon, a bound, a step) is stored as an int or a Fraction. A float is read
as the decimal its owner typed, `Fraction(repr(x))`: 0.1 means one tenth, not the binary number next to it, so ten
charges of 0.1 are exactly 1. Each check takes its argument by keyword, so the name in the message is the name in the
caller's signature; the error carries it as its field `argument` too.

`least` and `most` search by bisection for the number at which a condition begins or ceases to hold; `bracket` finds
the two numbers between which they search.
"""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from discreet.errors import ParameterError

Exact = int | float | str | Fraction | Decimal
Searched = TypeVar("Searched", int, float, Fraction)


_DIGITS = 4_000  # a ledger must spell its numbers, and Python spells at most 4,300 digits
TINY = Fraction(1, 10**100)  # a probability of which floats take no part for 0
_EXPONENT = re.compile(r"[eE][+-]?[0_]*([\d_]+)")  # as Fraction reads it: underscores, and digits of any script


def number(**named: object) -> Fraction:
    """The one keyword argument as an exact finite number."""
    ((name, value),) = named.items()
    if isinstance(value, (str, Decimal)):
        spelled = str(value)
        exponent = _EXPONENT.search(spelled)
        if len(spelled) > _DIGITS or (exponent is not None and len(exponent[1]) > 3):
            raise ParameterError(f"{name} must have fewer than {_DIGITS} digits", argument=name)
    return _number(name, value)


def writable(**named: Fraction) -> Fraction:
    """The one keyword argument, if a ledger can spell it."""
    ((name, value),) = named.items()
    if max(abs(value.numerator), value.denominator) >= 10**_DIGITS:
        raise ParameterError(f"{name} must have fewer than {_DIGITS} digits", argument=name)
    return value


def _number(name: str, value: object) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or value is None:
        raise ParameterError(f"{name} must be a number, found {value!r}", argument=name)
    if isinstance(value, numbers.Integral):
        return Fraction(operator.index(value))
    try:
        if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
            return Fraction(repr(float(value)))
        if isinstance(value, (str, Decimal, numbers.Rational)):
            return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ParameterError(f"{name} must be a finite number, found {value!r}", argument=name) from None
    raise ParameterError(f"{name} must be a number, found {value!r} ({type(value).__name__})", argument=name)


def positive(**named: object) -> Fraction:
    """The one keyword argument, exact and > 0."""
    ((name, value),) = named.items()
    found = number(**named)
    if found <= 0:
        raise ParameterError(f"{name} must be > 0, found {value!r}", argument=name)
    return found


def moderate(**named: object) -> Fraction:
    """The one keyword argument, exact and between 2^-100 and 2^100: products of several such numbers are floats."""
    (name,) = named
    found = positive(**named)
    if not Fraction(1, 2**100) <= found <= 2**100:
        raise ParameterError(
            f"{name} must lie between 2**-100 and 2**100, found {shown(found)}: use other units", argument=name
        )
    return found


def nonnegative(**named: object) -> Fraction:
    """The one keyword argument, exact and >= 0."""
    ((name, value),) = named.items()
    found = number(**named)
    if found < 0:
        raise ParameterError(f"{name} must be >= 0, found {value!r}", argument=name)
    return found


def probability(least: Fraction = Fraction(0), **named: object) -> Fraction:
    """The one keyword argument, exact and strictly between 0 and 1; and not below `least`."""
    ((name, value),) = named.items()
    found = number(**named)
    if not 0 < found < 1:
        raise ParameterError(f"{name} must lie strictly between 0 and 1, found {value!r}", argument=name)
    if found < least:
        raise ParameterError(f"{name} must be at least {shown(least)}, found {shown(found)}", argument=name)
    return found


def shown(value: Fraction) -> str:
    """A number for the eye: a few digits, whatever its size."""
    if value == 0 or Fraction(1, 10**300) < abs(value) < 10**300:
        return f"{float(value):g}"
    size = math.floor((abs(value.numerator).bit_length() - value.denominator.bit_length()) * math.log10(2))
    return f"about {'-' if value < 0 else ''}1e{size}"


def percent(part: Fraction | float, *, up: bool = False) -> str:
    """A part as a percentage with three digits, rounded down; or up, so that spending never looks smaller than it is.

    A Fraction is rounded exactly. A float is read as its first seven digits, so that neither its last bits nor a
    nano-unit of a budget moves the third digit.
    """
    hundredfold = 100 * (part if isinstance(part, Fraction) else Fraction(f"{part:.7g}"))
    places = next((each for each in range(12) if hundredfold * 10**each >= 100), 12)
    digits = (math.ceil if up else math.floor)(hundredfold * 10**places)
    if not places or digits < 0:
        return f"{digits // 10**places:,} %"
    padded = str(digits).rjust(places + 1, "0")
    return f"{padded[:-places]}.{padded[-places:]}".rstrip("0").rstrip(".") + " %"


def whole(minimum: int = 1, **named: object) -> int:
    """The one keyword argument as an int of at least `minimum`."""
    ((name, value),) = named.items()
    found = number(**named)
    if found.denominator != 1 or found < minimum:
        raise ParameterError(f"{name} must be a whole number >= {minimum}, found {value!r}", argument=name)
    return int(found)


def text(**named: object) -> str:
    """The one keyword argument as non-empty text."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or not value:
        raise ParameterError(f"{name} must be non-empty text, found {value!r}", argument=name)
    return value


def freeze(value: object, /, **fields: object) -> None:
    """Set the fields of a frozen dataclass from its own constructor, once."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)


def convert(value: object, /, **checks: Callable[..., object]) -> None:
    """Replace fields of a frozen dataclass, from its own constructor, by what these checks return for them."""
    for name, check in checks.items():
        object.__setattr__(value, name, check(**{name: getattr(value, name)}))


def floor_sqrt(value: Fraction) -> int:
    """The largest integer whose square is at most value >= 0, exactly."""
    return math.isqrt(math.floor(value))


def ceil_sqrt(value: Fraction) -> int:
    """The smallest integer whose square is at least value >= 0, exactly."""
    root = floor_sqrt(value)
    return root if root * root >= value else root + 1


def root_up(value: Fraction) -> Fraction:
    """The square root of value > 0, rounded up by less than one part in 2^40."""
    inside = value.numerator * value.denominator * 4**40
    return Fraction(ceil_sqrt(Fraction(inside)), value.denominator * 2**40)


def narrow(
    holds: Callable[[Searched], bool],
    low: Searched,
    high: Searched,
    close: Callable[[Searched, Searched], bool] = lambda low, high: False,
) -> tuple[Searched, Searched]:
    """Halve the interval (low, high) around the place where a condition begins to hold, and goes on to hold.

    The condition does not hold at low and holds at high: neither is tried, and the returned ends are such again.
    `close(low, high)` says when to stop; without it the ends become neighbouring integers or neighbouring floats.
    """
    while not close(low, high):
        middle = (low + high) // 2 if isinstance(high, int) and isinstance(low, int) else (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def least(
    holds: Callable[[Searched], bool],
    low: Searched,
    high: Searched,
    close: Callable[[Searched, Searched], bool] = lambda low, high: False,
) -> Searched:
    """The least number at which a condition holds that holds at high, not at low, and changes once between them."""
    return narrow(holds, low, high, close)[1]


def most(
    holds: Callable[[Searched], bool],
    low: Searched,
    high: Searched,
    close: Callable[[Searched, Searched], bool] = lambda low, high: False,
) -> Searched:
    """The largest number at which a condition holds that holds at low, not at high, and changes once between them."""
    return narrow(lambda middle: not holds(middle), low, high, close)[0]


def bracket(
    holds: Callable[[Searched], bool], low: Searched, high: Searched, *, limit: Searched, factor: int = 2
) -> tuple[Searched, Searched] | None:
    """Ends for `least`: (low, high) if the condition holds at high, else the same with high times the factor.

    None if it holds at no such number up to the limit.
    """
    while not holds(high):
        low, high = high, high * factor
        if high > limit:
            return None
    return low, high
