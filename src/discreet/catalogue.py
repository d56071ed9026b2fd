"""Every class whose records a ledger may hold, by name: one literal dictionary, on top of everything.

A name with its version never changes meaning. To change what a record means, add a class under the next version and
keep the old one readable.
"""

from __future__ import annotations

from discreet.answering import AveragedWeights, Marginals
from discreet.data import AnyNumber, Bits, Category, Domain, Facts, Number, Vector, Whole
from discreet.erm.descent import Descent
from discreet.erm.exponential.grid import GridExponential
from discreet.erm.exponential.line import LineExponential
from discreet.erm.feasible_sets import Ball, BallBox, Box
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.losses import Absolute, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.network import NeuralDescent
from discreet.erm.output_perturbation import OutputPerturbation
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.erm.schedules import Accelerated, Average, Last, StronglyConvex
from discreet.erm.scoring import LinearRule, ModelRule, RightPredictions, SmallMisses
from discreet.guarantee import Budget, Neighbours
from discreet.mechanisms import (
    Above,
    AboveThreshold,
    AboveThresholdLaplace,
    CoordinateLaplace,
    CoordinateLaplaceNoise,
    Exponential,
    Far,
    Gaussian,
    GaussianNoise,
    Laplace,
    LaplaceNoise,
    PermuteAndFlip,
    ProductLaplace,
    ProductLaplaceNoise,
    RankQuantile,
    StableHistogram,
    StableMode,
)
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.all_conjunctions import AllConjunctions
from discreet.pac.boxes import ReorderSlice, SlicedBox
from discreet.pac.conjunctions import GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.finite import FiniteClass, Predictions
from discreet.pac.greedy import GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.greedy_boxes import CountedFaces, FaceByFace
from discreet.pac.interior import BinarySearch, InteriorPoint, MinRank, PairPrefix, PrefixSearch
from discreet.pac.rank_bounds import RankBounds
from discreet.pac.rules import BoxRule, Conjunction, FunctionRule, Labels, Literals, Mistakes, Thresholds, Where
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
    "absolute/1": Absolute,
    "accelerated-descent/1": Accelerated,
    "all-boxes/1": AllBoxes,
    "all-conjunctions/1": AllConjunctions,
    "among/1": Among,
    "and/1": And,
    "any-number/1": AnyNumber,
    "average-descent/1": Average,
    "averaged-weights/1": AveragedWeights,
    "ball-box/1": BallBox,
    "ball/1": Ball,
    "between/1": Between,
    "binary-search/1": BinarySearch,
    "bits/1": Bits,
    "box-rule/1": BoxRule,
    "box/1": Box,
    "budget/1": Budget,
    "category/1": Category,
    "conjunction/1": Conjunction,
    "constant-feature/1": Constant,
    "coordinate-laplace-noise/1": CoordinateLaplaceNoise,
    "coordinate-laplace/1": CoordinateLaplace,
    "count/1": Count,
    "counted-faces/1": CountedFaces,
    "declared-features/1": Declared,
    "descent/1": Descent,
    "domain/1": Domain,
    "equals/1": Equals,
    "exponential/1": Exponential,
    "face-by-face/1": FaceByFace,
    "facts/1": Facts,
    "far/1": Far,
    "finite-class/1": FiniteClass,
    "function-rule/1": FunctionRule,
    "gaussian-counts/1": GaussianCounts,
    "gaussian-noise/1": GaussianNoise,
    "gaussian/1": Gaussian,
    "greedy-selection/1": GreedySelection,
    "grid-exponential/1": GridExponential,
    "hinge/1": Hinge,
    "histogram/1": Histogram,
    "huber/1": Huber,
    "interior-point/1": InteriorPoint,
    "key-count/1": KeyCount,
    "labels/1": Labels,
    "laplace-counts/1": LaplaceCounts,
    "laplace-noise/1": LaplaceNoise,
    "laplace/1": Laplace,
    "lasso/1": Lasso,
    "last-descent/1": Last,
    "line-exponential/1": LineExponential,
    "linear-rule/1": LinearRule,
    "literals/1": Literals,
    "logistic/1": Logistic,
    "marginals/1": Marginals,
    "min-rank/1": MinRank,
    "missing/1": Missing,
    "mistakes/1": Mistakes,
    "model-rule/1": ModelRule,
    "neighbours/1": Neighbours,
    "neural-descent/1": NeuralDescent,
    "noisy-counts/1": NoisyCounts,
    "not/1": Not,
    "number/1": Number,
    "or/1": Or,
    "output-perturbation/1": OutputPerturbation,
    "pair-prefix/1": PairPrefix,
    "permute-and-flip/1": PermuteAndFlip,
    "pinball/1": Pinball,
    "predictions/1": Predictions,
    "prefix-search/1": PrefixSearch,
    "product-laplace-noise/1": ProductLaplaceNoise,
    "product-laplace/1": ProductLaplace,
    "rank-bounds/1": RankBounds,
    "rank-quantile/1": RankQuantile,
    "reorder-slice-box/1": ReorderSlice,
    "ridge/1": Ridge,
    "right-predictions/1": RightPredictions,
    "risk/1": Risk,
    "self-deleting-greedy/1": SelfDeleting,
    "sliced-box/1": SlicedBox,
    "small-misses/1": SmallMisses,
    "softmax/1": Softmax,
    "squared/1": Squared,
    "stable-histogram/1": StableHistogram,
    "stable-mode/1": StableMode,
    "strongly-convex-descent/1": StronglyConvex,
    "sum/1": Sum,
    "thresholds/1": Thresholds,
    "vector-feature/1": VectorColumn,
    "vector-sum/1": VectorSum,
    "vector/1": Vector,
    "weighed-greedy/1": WeighedGreedy,
    "where-rule/1": Where,
    "whole/1": Whole,
}
