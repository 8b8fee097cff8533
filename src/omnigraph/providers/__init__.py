"""Vectors of texts from an embedding provider. Independent of graphs and storage."""
