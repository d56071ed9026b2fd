"""The public guess of the table: a probability distribution over the product of the domain's columns.

Dense (`dense.py`) has a weight for every cell; factored (`factored.py`) is the exponential of a sum of tables over
scopes. Both answer and change alike:

    marginal(scope), marginals(scopes), mean(form)    shares of cells; the answer to a question on one row drawn
    multiply(scope, exponents)                        times exp(exponents) over the cells of a scope, normalised
    sample(rows, seed), copy(), cells, sizes

Which one is decided by the public sizes alone. Everything here is a function of what was released: floats are fine,
and the same calls give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.hypothesis.axes import cells_of, checked_sizes
from discreet.hypothesis.dense import MAX_DENSE, Dense
from discreet.hypothesis.graphical_model import Factored
from discreet.hypothesis.junction_tree import MAX_TREE, tree_cells

__all__ = ["MAX_DENSE", "MAX_TREE", "Dense", "Factored", "Hypothesis", "start", "tree_cells"]

Hypothesis = Dense | Factored


def start(sizes: Mapping[str, int]) -> Hypothesis:
    """The uniform hypothesis: dense if the domain is small enough for that."""
    checked = checked_sizes(sizes)
    return Dense(checked) if cells_of(checked, checked) <= MAX_DENSE else Factored(checked)
