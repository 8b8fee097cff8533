"""Change the schema of a graph: migrate its tables and publish the new schema in one commit."""

from omnigraph.schema.apply import SchemaApplication, SchemaApplyOptions, SchemaApplyResult

__all__ = ["SchemaApplication", "SchemaApplyOptions", "SchemaApplyResult"]
