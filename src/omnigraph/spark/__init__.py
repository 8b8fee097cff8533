"""Spark: sessions, and kernels run as tasks. Knows nothing of graphs.

Only this package imports pyspark, and only when a call needs Spark.
"""
