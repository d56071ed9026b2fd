"""The problem in one import: `losses`, `features`, `feasible_sets` and the `risk` that is made of them.

A solver, or whatever else needs several of these, imports them from here.
"""

from discreet.erm.feasible_sets import Ball, BallBox, Box, FeasibleSet, interval
from discreet.erm.features import STEPS, Constant, Declared, Features, VectorColumn, blocks
from discreet.erm.losses import (
    Absolute,
    Below,
    CentredHuber,
    CentredSquared,
    Custom,
    Hinge,
    Huber,
    IntegerLoss,
    Logistic,
    Loss,
    Pinball,
    ScalarLoss,
    Softmax,
    Squared,
    Targets,
)
from discreet.erm.risk import Constants, Lasso, Regularizer, Ridge, Risk, public_size
