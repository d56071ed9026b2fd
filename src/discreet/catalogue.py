"""Every class whose records a ledger may hold, by name: one literal dictionary, on top of everything.

A name with its version never changes meaning. To change what a record means, add a class under the next version and
keep the old one readable.
"""

from __future__ import annotations

from discreet.data import Facts
from discreet.domain import AnyNumber, Category, Domain, Number, Vector
from discreet.guarantee import Budget, Neighbours
from discreet.mechanisms.additive import CoordinateLaplace, Gaussian, Laplace, ProductLaplace
from discreet.mechanisms.selection import Exponential, PermuteAndFlip
from discreet.mechanisms.stable import StableHistogram, StableMode
from discreet.mechanisms.threshold import Above, AboveThreshold, AboveThresholdLaplace
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

CATALOGUE: dict[str, type] = {
    "above-threshold-laplace/1": AboveThresholdLaplace,
    "above-threshold/1": AboveThreshold,
    "above/1": Above,
    "among/1": Among,
    "and/1": And,
    "any-number/1": AnyNumber,
    "between/1": Between,
    "budget/1": Budget,
    "category/1": Category,
    "coordinate-laplace/1": CoordinateLaplace,
    "count/1": Count,
    "domain/1": Domain,
    "equals/1": Equals,
    "exponential/1": Exponential,
    "facts/1": Facts,
    "gaussian/1": Gaussian,
    "histogram/1": Histogram,
    "key-count/1": KeyCount,
    "laplace/1": Laplace,
    "missing/1": Missing,
    "neighbours/1": Neighbours,
    "not/1": Not,
    "number/1": Number,
    "or/1": Or,
    "permute-and-flip/1": PermuteAndFlip,
    "product-laplace/1": ProductLaplace,
    "stable-histogram/1": StableHistogram,
    "stable-mode/1": StableMode,
    "sum/1": Sum,
    "vector-sum/1": VectorSum,
    "vector/1": Vector,
}
