"""Empirical risk minimisation (lectures 9 and 10): the problem, its private solvers, and what they promise.

    the problem            losses          the loss of a row, and everything that a solver asks about it
                           features        from a row to an integer vector, by public rules
                           feasible_sets   Ball, Box, BallBox: where a solution may lie
                           risk            Risk: loss, features, target, set and regularizer; the constants of theorems
                           A solver, and any other package, imports the names of these four from here.

    gradient descent       gradient        one pass over the rows: the exact integer sum of their gradients
                           descent         Descent: noisy projected gradient descent, and its schedules: how it moves,
                                           and the theorem about it
                           network         NeuralDescent: the same for a neural network

    exponential mechanism  exponential/    LineExponential for one number, GridExponential for up to five

    perturbation           objective_perturbation   the minimiser of the objective plus a random linear term
                           output_perturbation      the minimiser plus noise

    ranges                 ranged          objective perturbation in a range of the target that is released before; a
                                           solver, with numbers in ranges that are released before

    moments                noisy_moments   linear regression from noisy sums of products

    without noise          nonprivate      the minimiser itself, for public rows: what solutions are measured against

    scores                 scoring         queries that count the right predictions of public models

Every solver has `propose`, the mechanism with the least noise that the funds admit, and `promise`, the excess risk that
its theorem states; `solvers` compares them. All of both is public. Proofs: docs/proofs.
"""

from discreet.erm.feasible_sets import Ball, BallBox, Box, FeasibleSet, interval
from discreet.erm.features import STEPS, Constant, Declared, Features, Ranged, VectorColumn, blocks
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
    RangedHuber,
    ScalarLoss,
    Softmax,
    Squared,
    Targets,
)
from discreet.erm.risk import Constants, Lasso, Regularizer, Ridge, Risk, checked_risk, public_size
