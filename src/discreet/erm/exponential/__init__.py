"""The exponential mechanism over parameters (lecture 9): exact draws, pure privacy.

line          LineExponential: one number, on the grid of its column
grid          GridExponential: a linear model on a grid of a feasible set; the heights of its points in integers.
              CustomLoss: any bounded loss of a user's own, on a grid that is listed
samplers      the points of a grid, how its cells cover the set, and exact draws from a convex function on a grid that
              is too large to list
bounds        what the theorems promise, and the choice of rate and grid
"""
