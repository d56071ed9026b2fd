"""The primitives: each is a frozen value with one theorem, a price and a way to run.

additive    integer noise on a sum: Laplace, Gaussian, ProductLaplace, CoordinateLaplace
selection   one candidate by its score: Exponential, PermuteAndFlip
threshold   adaptive yes/no questions for one price: AboveThreshold, AboveThresholdLaplace
stable      counts over a domain too large to list: StableHistogram, StableMode
"""
