"""The receipt of a commit, as the write that made it returned it."""

from omnigraph.api.graph import Graph
from omnigraph.history.commits import Receipt, receipt_of
from omnigraph.history.refs import find_commit


def receipt_of_commit(graph: Graph, commit_id: str) -> Receipt:
    record = find_commit(graph._core.parts, graph._bound, commit_id)
    return receipt_of(record, graph.schema.catalog)
