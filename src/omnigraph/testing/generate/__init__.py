"""Hypothesis strategies for random valid schemas and for random queries that fit a schema."""

from omnigraph.testing.generate.queries import query_files
from omnigraph.testing.generate.schemas import schemas

__all__ = ["query_files", "schemas"]
