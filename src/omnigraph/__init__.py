"""OmniGraph: a typed property graph with branches and history.

This module is the public interface; everything behind it may change. The names that need the
storage libraries are loaded when they are first used, and so are all others: the command answers
signals only when this is done.
"""

from omnigraph._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from omnigraph import errors
    from omnigraph.engine.compare.diff import Diff
    from omnigraph.engine.compare.feed import CommitChanges
    from omnigraph.engine.graph import Graph, init, open
    from omnigraph.engine.graph.at_commit import GraphAt
    from omnigraph.engine.merge.run import AppliedCommit, MergeResult
    from omnigraph.engine.read.budget import CancelToken, QueryBudget
    from omnigraph.engine.read.explain import Explanation
    from omnigraph.engine.read.view import ReadView
    from omnigraph.engine.receipts import Receipt
    from omnigraph.engine.result import Result
    from omnigraph.engine.write.load import LoadResult
    from omnigraph.engine.write.mutation import MutationResult
    from omnigraph.errors import OmnigraphError
    from omnigraph.versioning.snapshot import Snapshot

__all__ = [
    "AppliedCommit",
    "CancelToken",
    "CommitChanges",
    "Diff",
    "Explanation",
    "Graph",
    "GraphAt",
    "LoadResult",
    "MergeResult",
    "MutationResult",
    "OmnigraphError",
    "QueryBudget",
    "ReadView",
    "Receipt",
    "Result",
    "Snapshot",
    "__version__",
    "errors",
    "init",
    "open",
]

_LATE = {
    "AppliedCommit": "omnigraph.engine.merge.run",
    "CancelToken": "omnigraph.engine.read.budget",
    "CommitChanges": "omnigraph.engine.compare.feed",
    "Diff": "omnigraph.engine.compare.diff",
    "Explanation": "omnigraph.engine.read.explain",
    "Graph": "omnigraph.engine.graph",
    "GraphAt": "omnigraph.engine.graph.at_commit",
    "LoadResult": "omnigraph.engine.write.load",
    "MergeResult": "omnigraph.engine.merge.run",
    "MutationResult": "omnigraph.engine.write.mutation",
    "OmnigraphError": "omnigraph.errors",
    "QueryBudget": "omnigraph.engine.read.budget",
    "ReadView": "omnigraph.engine.read.view",
    "Receipt": "omnigraph.engine.receipts",
    "Result": "omnigraph.engine.result",
    "Snapshot": "omnigraph.versioning.snapshot",
    "init": "omnigraph.engine.graph",
    "open": "omnigraph.engine.graph",
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name == "errors":
        return import_module("omnigraph.errors")
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")
