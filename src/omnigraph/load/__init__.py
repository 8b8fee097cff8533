"""Loads: sources, splits, records, typed rows, validation, staged rows, one commit.

`run` is the entry. Every split goes through the same steps, in this process or in Spark tasks.
"""
