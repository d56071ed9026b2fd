"""The exponential mechanism over parameters (lecture 9): exact draws, pure privacy.

line          LineExponential: one number, on the grid of its column
grid          GridExponential: a linear model on a grid of a feasible set; the heights of its points in integers
custom        CustomLoss: any bounded loss of a user's own, on a grid that is listed
grid_points   the points of a grid, in exact numbers and in integers, and how its cells cover the set
cell_sampler  exact draws from a convex function on a grid that is too large to list
bounds        what the theorems promise, and the choice of rate and grid
"""
