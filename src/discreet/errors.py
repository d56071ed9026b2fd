"""The exceptions of discreet.

    DiscreetError
    |- ParameterError(ValueError)   a public argument is wrong: what was found and what was expected; argument names it
    |  |- OutOfRange                more or less noise than the samplers draw
    |  |- NothingFits               no amount of noise is within what may be spent
    |  |- Unproven                  no theorem covers this case, so it is not offered
    |  `- NotOffered                this table cannot do what is needed: it only counts, or its rows are too far away
    |- SchemaError                  a column or a level is not declared; names column and kind, never a value
    |- UnsupportedQuery             text, position, reason, hint: never a guess at what was meant
    |- BudgetExceeded               asked, remaining and what would fit, as fields
    |- ConversationOver             what ended it
    |- LedgerMismatch               this ledger is not this table's
    |- SourceUnavailable            the database that holds the rows does not answer now
    |- LedgerUnavailable            the ledger cannot be written now (disk full, locked, read-only)
    |- LedgerCorrupt                entry, expected, found
    |  `- LedgerRolledBack          the file is older than the mark left by its last charge
    |- NotPrivate                   test randomness or a planted mutant on a real ledger
    `- ServiceError                 a service refuses a request, whatever it is about; nothing was spent
       |- KeyRefused                there is no such key, or it was revoked, or it has expired
       |- NotPermitted              the key is good, and not for this
       |- NotFound                  there is nothing there for this key
       |- RequestConflict           the request id was used for something else
       |- TooLarge                  the request, or its answer, is larger than the service allows
       |- TooBusy                   later: the queue is full, or this key asked too much
       |- Cancelled                 the job was cancelled before anything was charged
       |- Unreachable               the service did not answer
       `- ServiceFailed             something went wrong inside; a charge that was made stays

An error is raised before anything is spent, or it does not depend on the rows. No message quotes a value of a row.
Errors that a program may want to act on keep their numbers as fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


class DiscreetError(Exception):
    """Every error that discreet raises on purpose."""


class ParameterError(DiscreetError, ValueError):
    """A public argument is wrong; `argument` is its name, if the message is about one argument."""

    def __init__(self, message: str = "", *, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class OutOfRange(ParameterError):
    """More or less noise than can be drawn; too_much says which."""

    def __init__(self, message: str, *, too_much: bool) -> None:
        super().__init__(message)
        self.too_much = too_much


class NothingFits(ParameterError):
    """No amount of noise makes a mechanism fit what may be spent."""


class Unproven(ParameterError):
    """No theorem covers this case, so it is refused rather than guessed."""


class NotOffered(ParameterError):
    """The dataset cannot do what the mechanism needs. Nothing was spent and nothing was read."""


class SchemaError(DiscreetError):
    """A column or a level is not declared, or a column does not hold what was declared."""


class UndeclaredLevels(SchemaError):
    """A column holds levels that are not declared."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f'column {column!r} holds levels that are not declared; declare them, or other="..." would take them'
        )
        self.column = column


@dataclass(eq=False)
class UnsupportedQuery(DiscreetError):
    """The question is outside the language that is answered."""

    text: str
    position: int
    reason: str
    hint: str

    def __str__(self) -> str:
        return f"{self.reason} (at position {self.position} of the question). {self.hint}"


@dataclass(eq=False)
class BudgetExceeded(DiscreetError):
    """The charge does not fit. Nothing was spent and nothing was read.

    asked and remaining are amounts in the ledger's currencies; fits says in sentences which part of the budget that is,
    which part is left, and what would be admitted instead, if anything would.
    """

    asked: str
    remaining: str
    fits: str

    def __str__(self) -> str:
        return f"this does not fit. {self.fits} In full: it costs {self.asked}; left: {self.remaining}"


class AboveMaxPrice(BudgetExceeded):
    """It could cost more than max_price. Nothing was spent and nothing was read; `fits` says what it would cost, and
    what would be had for less."""

    def __str__(self) -> str:
        return self.fits


@dataclass(eq=False)
class ConversationOver(DiscreetError):
    """The conversation answers no more questions; a new one must be opened and paid."""

    reason: str

    def __str__(self) -> str:
        return f"this conversation is over: {self.reason}"


class LedgerMismatch(DiscreetError):
    """This ledger was opened for another table, relation or unit."""


class SourceUnavailable(DiscreetError):
    """The database that holds the rows does not answer, or not as it did when the table was made."""


class LedgerUnavailable(DiscreetError):
    """The ledger cannot be written now. Nothing was released."""


@dataclass(eq=False)
class LedgerCorrupt(DiscreetError):
    """The ledger's file is damaged or was edited. Nothing is served from it."""

    entry: int | None
    expected: str
    found: str

    def __str__(self) -> str:
        where = "the ledger's file" if self.entry is None else f"entry {self.entry} of the ledger"
        return f"{where} is damaged: expected {self.expected}, found {self.found}"


class LedgerRolledBack(LedgerCorrupt):
    """The ledger is older than its high-water mark, or its mark is not here: perhaps an earlier copy was put back."""

    def __str__(self) -> str:
        return (
            f"the ledger does not agree with its high-water mark: expected {self.expected}, found {self.found}; if "
            "this copy is to be used, run `discreet ledger reconcile`, which can only raise what counts as spent"
        )


class NotPrivate(DiscreetError):
    """Test randomness, or a mechanism planted to be broken, was brought to a real ledger."""


class ServiceError(DiscreetError):
    """A service refuses a request, or could not be asked."""


class KeyRefused(ServiceError):
    """There is no such key, or it was revoked, or it has expired: a service does not say which."""


class NotPermitted(ServiceError):
    """The key is good, and not for this."""


class NotFound(ServiceError):
    """There is nothing there for this key."""


class RequestConflict(ServiceError):
    """The request id was used for something else, or what it was used for was charged and never finished."""


class TooLarge(ServiceError):
    """The request, or its answer, is larger than the service allows."""


class TooBusy(ServiceError):
    """The queue is full, or this key asked too much in a short time; retry_after is in seconds."""

    def __init__(self, message: str = "", *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Cancelled(ServiceError):
    """The job was cancelled before anything was charged."""


class Unreachable(ServiceError):
    """The service did not answer: the address is wrong, or it does not run, or the connection was lost."""


class ServiceFailed(ServiceError):
    """Something went wrong inside the service; a charge that was made stays. That is all that is told about it."""

    def __init__(self, message: str = "something went wrong inside the service; a charge that was made stays") -> None:
        super().__init__(message)


def quietly(work: Callable[[], Result], complaint: str, *, kind: type[DiscreetError] = SchemaError) -> Result:
    """Do work in a foreign library; of its failure only the type survives, since the text may quote a row."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception as error:
        failure = type(error).__name__
    raise kind(f"{complaint} ({failure})")
