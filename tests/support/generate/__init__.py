"""Hypothesis strategies for random valid schemas and for random queries that fit a schema."""

from tests.support.generate.clauses import Range
from tests.support.generate.queries import mutation_queries, query_files, read_queries
from tests.support.generate.schemas import schemas

__all__ = ["Range", "mutation_queries", "query_files", "read_queries", "schemas"]
