"""Spark: sessions, kernels run as tasks, and types of a graph as data frames.

Only this package imports pyspark, and only when a call needs Spark.
"""

from omnigraph.spark.frames import edges, nodes, write

__all__ = ["edges", "nodes", "write"]
