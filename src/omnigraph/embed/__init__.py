"""Vectors for texts, from whichever provider is configured. Knows nothing of graphs or storage."""
