"""Changing the schema of a graph: what a plan does to tables, and the protocol that applies it."""

from omnigraph.engine.schema.apply import SchemaApplication, SchemaApplyOptions, SchemaApplyResult

__all__ = ["SchemaApplication", "SchemaApplyOptions", "SchemaApplyResult"]
