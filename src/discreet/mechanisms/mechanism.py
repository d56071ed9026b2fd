"""What a mechanism is, and how the least noise that fits is found.

A mechanism is a frozen value that says what it costs (`guarantee`) and how to run (`run`); both read the same fields.
A conversation is a mechanism that answers adaptively: it is charged when it is opened, for everything it will ever say.
Neither knows a ledger, and nothing in the library but `release` and `converse` calls `run`, `begin` or `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

from discreet.core import Funds, Guarantee, NothingFits, OutOfRange, ParameterError, Rng, exact
from discreet.data import Dataset, Facts


@runtime_checkable
class Mechanism(Protocol):
    """Public parameters of a randomized algorithm, with its theorem.

    guarantee  what one run costs on any table with these facts; raises if the parameters do not fit the facts.
    run        draws the release. The result is made of ints, floats, texts, None, tuples and integer or float arrays,
               so that it can be stored and returned again byte for byte. It never raises because of the rows.

    Three methods are optional. needs(facts) says what a run asks of the rows (`data.Needs`); a table that cannot do
    that refuses before the charge; a mechanism without it is taken to need everything. A mechanism that sums a query
    with many numbers has numbers(facts): how many a run holds at once; too many are refused before the charge
    (`query.require_numbers`). A mechanism that adds noise to numbers has noise_range(probability, facts): the distance
    that one number's noise keeps with this probability, in the column's units; `Released.noise_range` and plans ask for
    it.
    """

    def guarantee(self, facts: Facts) -> Guarantee: ...
    def run(self, data: Dataset, rng: Rng) -> Any: ...


@runtime_checkable
class Conversation(Protocol):
    """Public parameters of an adaptive algorithm, with its theorem.

    check  raises if this question is not covered by the guarantee; looks at public things only.
    begin  draws the secret state: a JSON value.
    step   answers one question; the new state None means that this answer was the last.

    needs(facts, ask), optional as for a mechanism, says what this question asks of the rows; needs(facts), what opening
    the conversation does.
    """

    def guarantee(self, facts: Facts) -> Guarantee: ...
    def check(self, ask: Any, facts: Facts) -> None: ...
    def begin(self, data: Dataset, rng: Rng) -> Any: ...
    def step(self, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]: ...


@runtime_checkable
class Looking(Protocol):
    """A conversation that reads the rows before its turn, so that nobody waits for that with the ledger locked.

    look  the question with the exact numbers that it needs of the rows; `step` then reads none
    """

    def look(self, ask: Any, data: Dataset) -> Any: ...


@runtime_checkable
class Stepwise(Looking, Protocol):
    """A conversation whose questions have numbers, 1, 2, ...: each is asked once, in this order.

    Every answer is recorded in the ledger; the same question again gets the recorded answer. `look` fails for public
    reasons only: it reads rows by queries of our own, so that a failure leaves the conversation open.

    place    the number of a question
    lasting  the price covers rows that arrive later, too
    """

    lasting: bool

    def place(self, ask: Any, facts: Facts) -> int: ...


Priced = TypeVar("Priced", bound=Mechanism | Conversation)
Made = TypeVar("Made")


def calibrate(
    make: Callable[[Fraction], Priced], *, funds: Funds, facts: Facts, times: int = 1, precision: int = 20
) -> Priced:
    """The mechanism with the least noise that is within the funds.

    make   builds the mechanism from its noise: a scale, a standard deviation, one over an epsilon; more noise must
           never cost more.
    funds  `ledger.funds()`, or `Funds.of(budget)`.
    times  how many releases like this one the funds pay for together.

    Theorem.   The result is admitted, and `make` with 1 - 2^-precision times its noise is not, or is less than the
               samplers draw. Both are checked by evaluation, not by a formula that could be loose.
    """
    if not isinstance(funds, Funds):
        raise ParameterError(f"funds must be ledger.funds() or Funds.of(budget), found {funds!r}")

    def fits(noise: Fraction) -> bool:
        """Whether less noise should be tried: this much is admitted, or is more than can be drawn."""
        try:
            return funds.admits(times * make(noise).guarantee(facts))
        except OutOfRange as error:
            return error.too_much

    mechanism = make(exact.least(fits, *_bracket(fits), lambda low, high: high - low <= high / 2**precision))
    with suppress(OutOfRange):
        if funds.admits(times * mechanism.guarantee(facts)):
            return mechanism
    raise NothingFits(
        "no amount of noise fits: nothing is left of the budget, or it is too small for this mechanism, or the "
        "mechanism has no such guarantee at all (a Gaussian needs delta > 0)"
    )


def admitted(makers: Iterable[Callable[[], Made]], *, telling: int = -1) -> list[Made]:
    """What those of several ways make that are not refused; an error if all are: the refusal at the place `telling`."""
    made, refused = list[Made](), list[ParameterError]()
    for make in makers:
        try:
            made.append(make())
        except ParameterError as error:
            refused.append(error)
    if not made:
        raise refused[telling]
    return made


def _bracket(fits: Callable[[Fraction], bool]) -> tuple[Fraction, Fraction]:
    """Noises (low, high), high twice low, of which high fits and low does not; low = high if all fit, or none does."""
    one, two, end = Fraction(1), Fraction(2), Fraction(2**400)
    if not fits(one):
        return exact.bracket(fits, one, two, limit=end) or (end, end)
    parts = exact.bracket(lambda times: not fits(1 / times), one, two, limit=end) or (end, end)
    return 1 / parts[1], 1 / parts[0]
