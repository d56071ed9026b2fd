"""The primitives: each is a frozen value with one theorem, a price and a way to run.

    mechanism   what a mechanism and a conversation are; calibrate, the least noise that fits
    promise     what a theorem says about the error, as a sentence: Promise
    noise       the laws of integer noise: what they cost, how they are drawn, how far they reach
    additive    integer noise on a sum: Laplace, Gaussian, ProductLaplace, CoordinateLaplace, ZeroSumLaplace
    rank        a quantile of a column: RankQuantile; Unimodal, the exact sampler behind it
    group_quantiles   the same in groups, for the price of one: GroupQuantiles
    selection   one candidate by its score: Exponential, PermuteAndFlip
    threshold   adaptive yes/no questions for one price: AboveThreshold, AboveThresholdLaplace
    continual   running totals over the epochs of a table that grows: ContinualCounter
    stable      counts over a domain too large to list: StableGaussian, StableHistogram, StableMode

Other packages import from here, not from the modules. What a mechanism is written with is here too: Guarantee,
Neighbours, Rng, Sensitivity and the checks of what the samplers can draw.
"""

from discreet.core import Guarantee, Neighbours, Rng, checked_rate, checked_scale, checked_variance
from discreet.mechanisms.additive import (
    KINDS,
    CoordinateLaplace,
    Gaussian,
    Laplace,
    Noisy,
    ProductLaplace,
    ZeroSumLaplace,
    free_groups,
    in_units,
    noisy_by,
)
from discreet.mechanisms.continual import MAX_EPOCHS, ContinualCounter
from discreet.mechanisms.group_quantiles import DRAWS, GroupQuantiles
from discreet.mechanisms.mechanism import Conversation, Looking, Mechanism, Stepwise, admitted, calibrate
from discreet.mechanisms.noise import (
    FINE,
    LAWS,
    NOISES,
    ZERO_SUM,
    CoordinateLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    ProductLaplaceNoise,
    SphericalNoise,
    VectorNoise,
    ZeroSumNoise,
    checked_noise,
    gaussian_reach,
)
from discreet.mechanisms.promise import Promise, unit_of, wrong_rows
from discreet.mechanisms.rank import ColumnSums, PowerSums, RankQuantile, Unimodal, first, rank_needs
from discreet.mechanisms.selection import Exponential, PermuteAndFlip
from discreet.mechanisms.stable import StableGaussian, StableHistogram, StableMode, least_bound, least_gaussian_bound
from discreet.mechanisms.threshold import AboveThreshold, AboveThresholdLaplace, IsAbove, IsFar
from discreet.query import KeyCount, Sensitivity, VectorSum, of_persons, person_range
