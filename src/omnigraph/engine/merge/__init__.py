"""Bringing the changes of one state of a graph into another, row by row, or saying why not."""
