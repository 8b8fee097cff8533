"""The commits, refs, branches and tags of a graph, as callers name and see them."""
