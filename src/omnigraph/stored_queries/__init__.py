"""Stored queries: a registry of queries that are invoked by name, checked against the schema."""
