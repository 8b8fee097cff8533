"""Spark: sessions, and kernels run as tasks. Knows nothing of graphs.

Only this package imports pyspark, and nobody imports it before a call needs Spark.
"""
