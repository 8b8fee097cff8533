"""An open graph and all its operations, a module per kind of them."""

from omnigraph.engine.graph.whole import Graph, init, open

__all__ = ["Graph", "init", "open"]
