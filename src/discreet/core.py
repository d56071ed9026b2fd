"""The bottom storey in one import: what every other module is built from.

    arrays     the array types                               errors     the exception tree
    exact      exact numbers, checks of arguments, searches  guarantee  Neighbours, Budget, Share, Guarantee
    funds      Price, Cost, Caps, Funds, Books                     records    frozen values as canonical JSON
    rng        the exact samplers                            display    how public things show themselves

A module that needs several of these imports them from here.
"""

from discreet import errors, exact
from discreet.arrays import WORD, Codes, Floats, IntArray, Ints, Mask, Words, packed, unpacked
from discreet.display import (
    EMPTY,
    NO_BOUND,
    WIDE,
    Block,
    CellTable,
    Pairs,
    Paragraph,
    Sentence,
    Sheet,
    Shown,
    number,
    one_line,
    round_up,
    rounded,
)
from discreet.errors import (
    AboveMaxPrice,
    BudgetExceeded,
    Cancelled,
    ConversationOver,
    DiscreetError,
    KeyRefused,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerRolledBack,
    LedgerUnavailable,
    NotFound,
    NothingFits,
    NotOffered,
    NotPermitted,
    NotPrivate,
    OutOfRange,
    ParameterError,
    RequestConflict,
    SchemaError,
    ServiceError,
    ServiceFailed,
    SourceUnavailable,
    TooBusy,
    TooLarge,
    UndeclaredLevels,
    Unproven,
    Unreachable,
    UnsupportedQuery,
    quietly,
)
from discreet.exact import Exact, percent, whole
from discreet.funds import (
    ATTO,
    FAILING,
    NANO,
    NOTHING,
    Books,
    Caps,
    Cost,
    Funds,
    Price,
    Priced,
    caps_of,
    price_of,
    remaining_books,
    spent_books,
)
from discreet.guarantee import (
    ORDERS,
    SLACK,
    Budget,
    Guarantee,
    Neighbours,
    Share,
    float_up,
    gaussian_to_delta,
    gaussian_to_epsilon,
    log_fraction,
    renyi_to_epsilon,
)
from discreet.records import Json, canonical, code_version, digest, record, revive, unique_keys
from discreet.rng import Rng, SeededRng, checked_rate, checked_scale, checked_variance
