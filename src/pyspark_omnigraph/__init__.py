"""`format("omnigraph")` of Spark. PySpark looks for modules of such names and registers `DefaultSource`.

PySpark imports this module whenever a session first looks for a data source, so it loads nothing of
OmniGraph until it is used. Each method runs in a Python process that PySpark starts for it, without a Spark
session. Tests: tests/spark/test_data_source.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """One node or edge type of a graph, as a table, a stream of changes, or a target."""

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    def schema(self) -> StructType:
        from pyspark_omnigraph.options import SourceOptions
        from pyspark_omnigraph.rows import spark_schema

        return spark_schema(SourceOptions.of(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_omnigraph.changes import ChangeTableReader
        from pyspark_omnigraph.options import SourceOptions
        from pyspark_omnigraph.rows import TypeReader

        options = SourceOptions.of(self.options)
        return (ChangeTableReader if options.changes else TypeReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_omnigraph.changes import ChangeStreamReader
        from pyspark_omnigraph.options import SourceOptions

        return ChangeStreamReader(SourceOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_omnigraph.options import SourceOptions
        from pyspark_omnigraph.writing import TypeWriter

        return TypeWriter(SourceOptions.of(self.options, writes=True), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_omnigraph.options import SourceOptions
        from pyspark_omnigraph.writing import StreamWriter

        return StreamWriter(SourceOptions.of(self.options, writes=True), overwrite)
