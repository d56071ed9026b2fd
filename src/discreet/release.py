"""The only door to the rows: charge first, then run, then store, then return.

    got = release(Laplace(Count(), scale=40), table, ledger=ledger)
    got.value, got.guarantee.epsilon(1e-6), got.noise_range(0.95)

    with converse(AboveThreshold(...), table, ledger=ledger) as talk:
        talk.ask(IsAbove(Count(...), threshold=100))

Everything that can be wrong with public arguments is found before the charge and costs nothing. After the charge
neither the type, the text nor the occurrence of an error depends on the rows: whatever goes wrong inside a mechanism
becomes one fixed error, without a cause and without a traceback into frames that hold rows. There are no refunds.

Nothing else in the library calls `run`, `begin` or `step`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from discreet.core import (
    NOTHING,
    DiscreetError,
    Guarantee,
    Json,
    LedgerMismatch,
    NotOffered,
    NotPrivate,
    Pairs,
    ParameterError,
    Price,
    Rng,
    Sheet,
    canonical,
    digest,
    one_line,
    record,
)
from discreet.data import EVERYTHING, Dataset, Facts, Needs, is_dataset, needs_of, snapshot_of
from discreet.ledger import LONGEST_MEMO, Acting, Ledger, charging, check_table, decode, encode, storable_text
from discreet.ledger.charging import Purchase
from discreet.mechanisms import Conversation, Looking, Mechanism, Stepwise
from discreet.query import TOO_DEEP, require_numbers

Result = TypeVar("Result")
_FAILED = "the mechanism failed after it was charged; the charge stays"


@dataclass(frozen=True, slots=True, repr=False)
class Released:
    """A released value and everything public about it.

    entry, hash  the charge in the ledger            price     what it cost there; nothing if replayed
    replayed     the stored answer of an earlier     testing   True: test randomness was allowed, NOT PRIVATE
                 charge with the same request id
    """

    value: Any
    guarantee: Guarantee
    mechanism: Mechanism
    facts: Facts
    entry: int
    hash: str
    price: Price
    replayed: bool = False
    testing: bool = False

    def noise_range(self, probability: float = 0.95) -> float:
        """Within which distance of the exact answer the value lies with this probability, as far as the noise goes."""
        stated = getattr(self.mechanism, "noise_range", None)
        if stated is None:
            raise ParameterError(
                f"{type(self.mechanism).__name__} adds no noise to a number: its docstring has its accuracy"
            )
        return float(stated(probability, self.facts))

    def __repr__(self) -> str:
        return f"<Released {one_line(self)}: entry {self.entry}, {self.guarantee!r}>"

    def _repr_html_(self) -> str:
        what = [("released", self), ("by", type(self.mechanism).__name__), ("price", self.price), ("entry", self.entry)]
        replayed = [("replayed", "the stored answer of that entry, free")] if self.replayed else []
        return Sheet.of(Pairs([*what, *replayed]), *self.guarantee.sheet().blocks).html()

    def __str__(self) -> str:
        return f"{self.value}{' (NOT PRIVATE: a testing ledger)' if self.testing else ''}"


def release(
    mechanism: Mechanism,
    data: Dataset,
    *,
    ledger: Ledger,
    allowance: str | None = None,
    request: str | None = None,
    memo: str = "",
    within: Json = None,
    rng: Rng | None = None,
) -> Released:
    """Charge the ledger, run the mechanism on the data once, store the answer and return it.

    allowance  the name under which the ledger counts the charge; unknown names are refused
    request    an id of the caller's choice: the same id with the same mechanism returns the stored answer, free; at
               most 200 characters, as the allowance's name
    memo       a note for the ledger's owner, at most 1,000 characters
    within     the limits that the mechanism was calibrated to, as `estimators.base` records them
    rng        for testing ledgers only
    """
    source = _checked(mechanism, Mechanism, data, ledger, rng)
    guarantee, stored = _priced(mechanism, data)
    named = None if request is None else storable_text(request=request)
    purchase = Purchase(stored, guarantee, data, "release", _allowance(allowance), named, _memo(memo), within)
    receipt, text = _run(mechanism, data, source, ledger, purchase)
    return Released(
        value=decode(text),
        guarantee=guarantee,
        mechanism=mechanism,
        facts=data.facts,
        entry=receipt.entry,
        hash=receipt.hash,
        price=receipt.price if receipt.stored is None else NOTHING,
        replayed=receipt.stored is not None,
        testing=ledger.testing,
    )


def _run(
    mechanism: Mechanism, data: Dataset, source: Rng, ledger: Ledger, purchase: Purchase
) -> tuple[charging.Receipt, str]:
    """Charge the ledger, run what was charged and store its answer; or find the answer of the same request.

    Whatever interrupts this from the moment of the charge on, the charge is burned, not left pending: it is noted in
    `made` before it is durable, so that there is no instant in which it exists and nobody here knows of it.
    """
    made: list[charging.Receipt] = []
    try:
        receipt = charging.charge(ledger, purchase, made=made)
        if receipt.stored is not None:
            return receipt, receipt.stored
        text, stopped = _guarded(lambda: encode(_on_one_snapshot(data, lambda: mechanism.run(data, source))))
        if text is not None:
            charging.answer(ledger, receipt, text)
            return receipt, text
        charging.burn(ledger, receipt, "the run failed")
    except BaseException:
        for receipt in made:
            ledger.store.abandon(receipt.entry, receipt.hash)
        raise
    raise DiscreetError(_FAILED) if stopped is None else stopped


def converse(
    conversation: Conversation,
    data: Dataset,
    *,
    ledger: Ledger,
    allowance: str | None = None,
    memo: str = "",
    rng: Rng | None = None,
) -> Open:
    """Open a conversation: charged now, for everything it will ever say."""
    source = _checked(conversation, Conversation, data, ledger, rng)
    guarantee, stored = _priced(conversation, data)
    lasting = data.facts.growth is not None and getattr(conversation, "lasting", False)
    named = _allowance(allowance)
    purchase = Purchase(stored, guarantee, data, "conversation", named, memo=_memo(memo), lasting=lasting)
    receipt = charging.charge(ledger, purchase)
    drawn, stopped = _guarded(lambda: (_json(_on_one_snapshot(data, lambda: conversation.begin(data, source))),))
    if drawn is None:
        charging.burn(ledger, receipt, "the conversation could not begin")
        raise DiscreetError(_FAILED) if stopped is None else stopped
    charging.keep_secret(ledger, receipt, drawn[0], stepwise=isinstance(conversation, Stepwise))
    return Open(conversation, data, ledger, receipt.entry, guarantee, source)


def reopen(conversation: Conversation, data: Dataset, *, charge: int, ledger: Ledger, rng: Rng | None = None) -> Open:
    """Go on with a conversation that was opened earlier, here or in another process: `charge` is its entry. Free."""
    source = _checked(conversation, Conversation, data, ledger, rng)
    guarantee, stored = _priced(conversation, data)
    body = charging.conversation_charge(ledger, charge)
    if body["mechanism"] != stored:
        raise ParameterError(f"entry {charge} charged another conversation")
    same = body["facts_hash"] == digest(record(data.facts))
    if not same and not (body.get("lasting") and ledger.facts_with(body["facts_hash"]).lasting == data.facts.lasting):
        raise LedgerMismatch("the table's facts are not those that the conversation was charged for")
    return Open(conversation, data, ledger, charge, guarantee, source)


@dataclass(frozen=True, slots=True)
class Open:
    """An open conversation. It ends with its last answer, with `close`, or when a step fails; for everybody."""

    conversation: Conversation
    data: Dataset = field(repr=False)
    ledger: Ledger
    charge: int
    guarantee: Guarantee
    _rng: Rng = field(repr=False)

    def ask(self, ask: Any) -> Any:
        """One answer; ConversationOver if there are no more."""
        self.conversation.check(ask, self.data.facts)
        _offered(needs_of(self.conversation, self.data.facts, ask), self.data)
        answer, failure = self._stepped_to(ask) if isinstance(self.conversation, Stepwise) else self._asked(ask)
        if failure is not None:
            raise failure
        return decode(answer)

    def _asked(self, ask: Any) -> tuple[str, BaseException | None]:
        """The answer's text, or what went wrong, without the frames it came through: they know the secret.

        The rows are read before the turn, where the conversation can do that: the ledger is not locked meanwhile.
        """
        looked, stopped = _guarded(lambda: (_on_one_snapshot(self.data, lambda: self._looked(ask)),))
        stepped: tuple[Json, str] | None = None
        try:
            with charging.turn(self.ledger, self.charge) as turn:
                if looked is not None:
                    stepped, stopped = _guarded(lambda: self._stepped(turn.secret, looked[0]))
                if stepped is None:
                    turn.burn("a step failed")
                else:
                    turn.keep(stepped[0])
        except (DiscreetError, *_INTERRUPTS) as error:
            return "", _bare(error)
        except Exception:
            return "", DiscreetError(_FAILED)
        if stepped is None:
            return "", DiscreetError(_FAILED) if stopped is None else stopped
        return stepped[1], None

    def _stepped_to(self, ask: Any) -> tuple[str, BaseException | None]:
        """The same of a conversation that answers step by step: recorded, so that the same step is free again.

        A step fails for public reasons only, and then leaves the conversation as it was.
        """
        conversation: Any = self.conversation
        number = conversation.place(ask, self.data.facts)
        known = charging.taken_step(self.ledger, self.charge, number)
        if known is not None:
            return known, None
        charging.require_next(self.ledger, self.charge, number)
        looked, stopped = _guarded(lambda: (self._looked(ask),))
        if looked is None:
            return "", DiscreetError(_UNREAD) if stopped is None else stopped
        try:
            return charging.take_step(
                self.ledger, self.charge, number, lambda state: self._stepped(state, looked[0])
            ), None
        except (DiscreetError, *_INTERRUPTS) as error:
            return "", _bare(error)
        except Exception:
            return "", DiscreetError(_UNREAD)

    def _looked(self, ask: Any) -> Any:
        return self.conversation.look(ask, self.data) if isinstance(self.conversation, Looking) else ask

    def _stepped(self, secret: Json, ask: Any) -> tuple[Json, str]:
        step = functools.partial(self.conversation.step, secret, ask, self.data, self._rng)
        state, answer = _on_one_snapshot(self.data, step)
        return _json(state), encode(answer)

    def close(self) -> None:
        """End the conversation. Its charge stays."""
        charging.end(self.ledger, self.charge)

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _checked(mechanism: object, kind: Any, data: Dataset, ledger: Ledger, rng: Rng | None) -> Rng:
    """The randomness to use, after checking that the arguments are what they should be and belong together."""
    if not isinstance(mechanism, kind):
        hint = "; open it with converse" if isinstance(mechanism, Conversation) else ""
        raise ParameterError(f"expected a {kind.__name__.lower()}, found {type(mechanism).__name__}{hint}")
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"ledger must be a Ledger, found {type(ledger).__name__}")
    if not is_dataset(data):
        raise ParameterError(f"data must be a Table or another dataset, found {type(data).__name__}")
    source = Rng() if rng is None else rng
    if not isinstance(source, Rng):
        raise ParameterError(f"rng must be an Rng, found {type(source).__name__}")
    if not ledger.testing and (not source.private or getattr(mechanism, "broken", False)):
        word = "seeded randomness" if not source.private else "a mechanism that is planted to be broken"
        raise NotPrivate(f"{word} is for testing ledgers only")
    with ledger.store.reading() as state:
        check_table(state, data)
    data.check_source()
    return source


def _priced(mechanism: Mechanism | Conversation, data: Dataset) -> tuple[Guarantee, Json]:
    """What the mechanism promises on this table, and its record; both read public things only."""
    try:
        guarantee = mechanism.guarantee(data.facts)
    except RecursionError:
        raise ParameterError(TOO_DEEP) from None
    if not isinstance(guarantee, Guarantee):
        raise ParameterError(f"a guarantee must be a Guarantee, found {type(guarantee).__name__}")
    if (numbers := getattr(mechanism, "numbers", None)) is not None:
        require_numbers(numbers(data.facts))
    _offered(needs_of(mechanism, data.facts), data)
    try:
        stored = record(mechanism)
        canonical(stored)
    except ParameterError:
        raise
    except ValueError:
        raise ParameterError("a number of this mechanism has too many digits to be recorded") from None
    except RecursionError:
        raise ParameterError(TOO_DEEP) from None
    return guarantee, stored


def _offered(needs: Needs, data: Dataset) -> None:
    """The dataset can do what the run needs; decided by public numbers alone."""
    refusal = EVERYTHING.refusal if (offers := getattr(data, "offers", None)) is None else offers.refusal
    if (reason := refusal(needs, data.facts)) is not None:
        raise NotOffered(reason)


def _on_one_snapshot(data: Dataset, run: Callable[[], Result]) -> Result:
    """What a run finds when all its sums are of the same rows."""
    try:
        with snapshot_of(data):
            return run()
    finally:
        Acting.now().after_rows()


def _allowance(allowance: object) -> str | None:
    return None if allowance is None else storable_text(allowance=allowance)


def _memo(memo: object) -> str:
    return storable_text(LONGEST_MEMO, memo=memo) if memo != "" else ""


def _json(value: Any) -> Json:
    canonical(value)
    return value  # type: ignore[no-any-return]


def _bare(error: BaseException) -> BaseException:
    """The error without its history."""
    error.__cause__, error.__context__ = None, None
    return error.with_traceback(None)


_UNREAD = "the step could not be taken, and nothing was released: the same step can be asked again"
_INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def _guarded(run: Callable[[], Result]) -> tuple[Result | None, BaseException | None]:
    """The result, or None if anything went wrong; and if somebody interrupted it, an interrupt of the same kind.

    The error itself is dropped here, with its text, its cause and the frames it came through: they may hold rows. So
    may an exit's code: it becomes 1.
    """
    try:
        return run(), None
    except Exception:
        return None, None
    except SystemExit:
        return None, SystemExit(1)
    except GeneratorExit:
        return None, GeneratorExit()
    except BaseException:
        return None, KeyboardInterrupt()
