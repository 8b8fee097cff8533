"""Hypothesis strategies for random valid schemas and for random queries that fit a schema."""

from omnigraph.testing.generate.clauses import Range
from omnigraph.testing.generate.queries import mutation_queries, query_files, read_queries
from omnigraph.testing.generate.schemas import schemas

__all__ = ["Range", "mutation_queries", "query_files", "read_queries", "schemas"]
