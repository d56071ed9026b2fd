"""discreet: learn from private data under differential privacy.

Exact integer noise, guarantees that are theorems with constants, and one durable budget that cannot be overspent. Start
with `docs/how_it_works.md`; `release` is the way out for every answer.
"""

import importlib
from typing import TYPE_CHECKING, Any

from discreet import composition, exact, rng
from discreet.certificate import Certificate, certificate
from discreet.data import Category, Dataset, Domain, Facts, Matrix, Number, ParquetTable, Table, Vector
from discreet.errors import (
    BudgetExceeded,
    ConversationOver,
    DiscreetError,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerRolledBack,
    LedgerUnavailable,
    NotPrivate,
    ParameterError,
    SchemaError,
    Unproven,
    UnsupportedQuery,
)
from discreet.funds import Funds
from discreet.guarantee import Budget, Guarantee, Neighbours, Share
from discreet.ledger import Ledger
from discreet.mechanisms import (
    Above,
    AboveThreshold,
    AboveThresholdLaplace,
    CoordinateLaplace,
    Exponential,
    Far,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    ProductLaplace,
    StableHistogram,
    StableMode,
    calibrate,
)
from discreet.plan import plan
from discreet.query import (
    Among,
    And,
    Between,
    Count,
    Equals,
    Histogram,
    KeyCount,
    Missing,
    Not,
    Or,
    Sum,
    VectorSum,
)
from discreet.release import Released, converse, release, reopen
from discreet.schema import Schema
from discreet.session import Session

if TYPE_CHECKING:
    from discreet.answering.answer import Answer
    from discreet.estimators import (
        BoxClassifier,
        ConjunctionClassifier,
        DeclaredScaler,
        FiniteClassClassifier,
        LinearRegression,
        LogisticRegression,
        Mean,
        Median,
        MLPClassifier,
        Quantile,
        RuleClassifier,
        interior_point,
        select,
        suggest_bounds,
    )

__version__ = "0.2.0"

__all__ = [
    "Above",
    "AboveThreshold",
    "AboveThresholdLaplace",
    "Among",
    "And",
    "Answer",
    "Between",
    "BoxClassifier",
    "Budget",
    "BudgetExceeded",
    "Category",
    "Certificate",
    "ConjunctionClassifier",
    "ConversationOver",
    "CoordinateLaplace",
    "Count",
    "Dataset",
    "DeclaredScaler",
    "DiscreetError",
    "Domain",
    "Equals",
    "Exponential",
    "Facts",
    "Far",
    "FiniteClassClassifier",
    "Funds",
    "Gaussian",
    "Guarantee",
    "Histogram",
    "KeyCount",
    "Laplace",
    "Ledger",
    "LedgerCorrupt",
    "LedgerMismatch",
    "LedgerRolledBack",
    "LedgerUnavailable",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "Matrix",
    "Mean",
    "Median",
    "Missing",
    "Neighbours",
    "Not",
    "NotPrivate",
    "Number",
    "Or",
    "ParameterError",
    "ParquetTable",
    "PermuteAndFlip",
    "ProductLaplace",
    "Quantile",
    "Released",
    "RuleClassifier",
    "Schema",
    "SchemaError",
    "Session",
    "Share",
    "StableHistogram",
    "StableMode",
    "Sum",
    "Table",
    "Unproven",
    "UnsupportedQuery",
    "Vector",
    "VectorSum",
    "calibrate",
    "certificate",
    "composition",
    "converse",
    "exact",
    "interior_point",
    "plan",
    "release",
    "reopen",
    "rng",
    "select",
    "suggest_bounds",
]


_ESTIMATORS = (
    "BoxClassifier",
    "ConjunctionClassifier",
    "DeclaredScaler",
    "FiniteClassClassifier",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "Mean",
    "Median",
    "Quantile",
    "RuleClassifier",
    "interior_point",
    "select",
    "suggest_bounds",
)
_LATER = {"Answer": "discreet.answering.answer", **dict.fromkeys(_ESTIMATORS, "discreet.estimators")}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Estimators bring scikit-learn and answers bring SQL, which take a second to import: only when asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
