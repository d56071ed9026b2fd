"""discreet: learn from private data under differential privacy.

Exact integer noise, guarantees that are theorems with constants, and one durable budget that cannot be overspent. Start
with `docs/how_it_works.md`; `release` is the way out for every answer.
"""

import importlib
from typing import TYPE_CHECKING, Any

from discreet import composition, data, mechanisms
from discreet.certificate import Certificate, certificate
from discreet.core import Budget, BudgetExceeded, DiscreetError, Funds, Guarantee, Neighbours, Share, errors
from discreet.data import (
    Category,
    Database,
    Date,
    Domain,
    FilesTable,
    GrowingTable,
    Matrix,
    Number,
    ParquetTable,
    Processes,
    Spark,
    SparkTable,
    Table,
    Text,
    Timestamp,
    Vector,
)
from discreet.ledger import Ledger
from discreet.mechanisms import ContinualCounter, Exponential, Gaussian, Laplace, calibrate
from discreet.plan import plan
from discreet.query import Among, And, Between, Count, Equals, Histogram, Missing, Not, Or, Persons, Sum
from discreet.release import Released, converse, release, reopen
from discreet.running import Running
from discreet.schema import DatabaseSchema, Schema
from discreet.session import Session

if TYPE_CHECKING:
    from discreet.answering import Answer
    from discreet.data.sql_table import SqlTable
    from discreet.estimators import (
        PCA,
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
        StandardScaler,
        interior_point,
        load,
        select_model,
        suggest_bounds,
    )
    from discreet.remote import connect

__version__ = "0.2.0"

_LATER = {
    "Answer": "discreet.answering",
    "SqlTable": "discreet.data.sql_table",
    "connect": "discreet.remote",
}

__all__ = [
    "PCA",
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
    "ContinualCounter",
    "Count",
    "Database",
    "DatabaseSchema",
    "Date",
    "DeclaredScaler",
    "DiscreetError",
    "Domain",
    "Equals",
    "Exponential",
    "FilesTable",
    "FiniteClassClassifier",
    "Funds",
    "Gaussian",
    "GrowingTable",
    "Guarantee",
    "Histogram",
    "Laplace",
    "Ledger",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "Matrix",
    "Mean",
    "Median",
    "Missing",
    "Neighbours",
    "Not",
    "Number",
    "Or",
    "ParquetTable",
    "Persons",
    "Processes",
    "Quantile",
    "Released",
    "RuleClassifier",
    "Running",
    "Schema",
    "Session",
    "Share",
    "Spark",
    "SparkTable",
    "SqlTable",
    "StandardScaler",
    "Sum",
    "Table",
    "Text",
    "Timestamp",
    "Vector",
    "calibrate",
    "certificate",
    "composition",
    "connect",
    "converse",
    "data",
    "errors",
    "interior_point",
    "load",
    "mechanisms",
    "plan",
    "release",
    "reopen",
    "select_model",
    "suggest_bounds",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Estimators bring scikit-learn and answers bring SQL, which take a second to import: only when asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER.get(name, "discreet.estimators")), name)
