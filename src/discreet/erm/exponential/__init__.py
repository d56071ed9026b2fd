"""The exponential mechanism over parameters: on a line, on a grid, for losses of one's own."""
