"""How two states of a graph differ, row by row, at a cost that follows the difference."""
