"""Where a graph is kept: text objects through one adapter, and tables, the only part that knows Lance.

Nothing here knows what a commit or a branch of the graph means; that is `omnigraph.versioning`.
"""
