"""The public guess of the table: a probability distribution over the product of the domain's columns.

A dense one has a weight for every cell; a factored one is the exponential of a sum of tables over scopes. Both answer
and change alike:

    marginal(scope), marginals(scopes), mean(form)    shares of cells; the answer to a question on one row drawn
    multiply(scope, exponents)                        times exp(exponents) over the cells of a scope, normalised
    sample(rows, seed), copy(), cells, sizes

Which one is decided by the public sizes alone. Everything here is a function of what was released: floats are fine,
and the same calls give the same bytes.

    tensor.py            tables over scopes: linear forms, checks, sums over large tensors
    dense.py             one weight for every cell
    graphical_model.py   tables over scopes, summed through a junction tree (junction_tree.py); start, the uniform guess
    coarse.py            one over ranges of values, as one over values
    max_entropy.py       the hypothesis that agrees with everything measured
    residuals.py         the least squares fit to marginals, however their scopes tangle
"""

from discreet.hypothesis.coarse import Coarse, Hypothesis
from discreet.hypothesis.dense import MAX_DENSE, Dense
from discreet.hypothesis.junction_tree import MAX_TREE, tree_cells
from discreet.hypothesis.max_entropy import QUICK, THOROUGH, Effort, FittedHypothesis, fit, listed_sizes, tangled
from discreet.hypothesis.residuals import ResidualFit, centred, parts_of_scopes, spread_over, summed_to
from discreet.hypothesis.shrinkage import shrunk_columns
from discreet.hypothesis.tensor import Axes, Linear, Scope
