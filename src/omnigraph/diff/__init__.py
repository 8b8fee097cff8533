"""Compare two states of a graph row by row, at a cost proportional to the difference."""
