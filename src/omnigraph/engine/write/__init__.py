"""How the engine changes a graph: rows become staged table changes, then one commit."""
