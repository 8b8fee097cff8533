"""OmniGraph: a typed property graph with branches and history.

This module is the public interface; everything behind it may change. Names are imported when they
are first used, so that importing the package is cheap.
"""

from omnigraph._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from omnigraph import errors
    from omnigraph.api.blobs import Blobs
    from omnigraph.api.branches import Branches
    from omnigraph.api.graph import Graph, init, open
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.api.maintenance import Maintenance
    from omnigraph.api.protocol import GraphAtProtocol, GraphProtocol
    from omnigraph.api.schema import Schema
    from omnigraph.api.tags import Tags
    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.catalog.model import Catalog
    from omnigraph.engine.compare.diff import Diff
    from omnigraph.engine.compare.feed import CommitChanges, EntityChange
    from omnigraph.engine.embedding.embed import EmbedResult
    from omnigraph.engine.history.commits import Commit, Receipt
    from omnigraph.engine.history.refs import Ref
    from omnigraph.engine.history.tags import Tag
    from omnigraph.engine.maintain.cleanup import CleanupReport
    from omnigraph.engine.maintain.indexes import IndexReport
    from omnigraph.engine.maintain.optimize import OptimizeReport
    from omnigraph.engine.maintain.repair import RepairReport
    from omnigraph.engine.maintain.status import GraphStatus
    from omnigraph.engine.maintain.verify_report import VerifyReport
    from omnigraph.engine.merge.merger import AppliedCommit, MergeResult
    from omnigraph.engine.read.budget import CancelToken, QueryBudget
    from omnigraph.engine.read.entities import Blob
    from omnigraph.engine.read.explain import Explanation
    from omnigraph.engine.read.result import Result
    from omnigraph.engine.read.view import ReadView
    from omnigraph.engine.schema.apply import SchemaApplyResult
    from omnigraph.engine.write.mutation import MutationResult
    from omnigraph.errors import OmnigraphError
    from omnigraph.load.run import LoadResult
    from omnigraph.progress import Progress
    from omnigraph.spark.choice import Spark
    from omnigraph.versioning.audit import RecordedAudit

__all__ = [
    "AppliedCommit",
    "Blob",
    "Blobs",
    "Branches",
    "CancelToken",
    "Catalog",
    "CleanupReport",
    "Commit",
    "CommitChanges",
    "Diff",
    "EmbedResult",
    "EntityChange",
    "Explanation",
    "Graph",
    "GraphAt",
    "GraphAtProtocol",
    "GraphProtocol",
    "GraphStatus",
    "IndexReport",
    "LoadResult",
    "Maintenance",
    "MergeResult",
    "MigrationPlan",
    "MutationResult",
    "OmnigraphError",
    "OptimizeReport",
    "Progress",
    "QueryBudget",
    "ReadView",
    "Receipt",
    "RecordedAudit",
    "Ref",
    "RepairReport",
    "Result",
    "Schema",
    "SchemaApplyResult",
    "Spark",
    "Tag",
    "Tags",
    "VerifyReport",
    "__version__",
    "errors",
    "init",
    "open",
]

_MODULES = {
    "AppliedCommit": "omnigraph.engine.merge.merger",
    "Blob": "omnigraph.engine.read.entities",
    "Blobs": "omnigraph.api.blobs",
    "Branches": "omnigraph.api.branches",
    "CancelToken": "omnigraph.engine.read.budget",
    "Catalog": "omnigraph.catalog.model",
    "CleanupReport": "omnigraph.engine.maintain.cleanup",
    "Commit": "omnigraph.engine.history.commits",
    "CommitChanges": "omnigraph.engine.compare.feed",
    "Diff": "omnigraph.engine.compare.diff",
    "EmbedResult": "omnigraph.engine.embedding.embed",
    "EntityChange": "omnigraph.engine.compare.feed",
    "Explanation": "omnigraph.engine.read.explain",
    "Graph": "omnigraph.api.graph",
    "GraphAt": "omnigraph.api.graph_at",
    "GraphAtProtocol": "omnigraph.api.protocol",
    "GraphProtocol": "omnigraph.api.protocol",
    "GraphStatus": "omnigraph.engine.maintain.status",
    "IndexReport": "omnigraph.engine.maintain.indexes",
    "LoadResult": "omnigraph.load.run",
    "Maintenance": "omnigraph.api.maintenance",
    "MergeResult": "omnigraph.engine.merge.merger",
    "MigrationPlan": "omnigraph.catalog.migrate",
    "MutationResult": "omnigraph.engine.write.mutation",
    "OmnigraphError": "omnigraph.errors",
    "OptimizeReport": "omnigraph.engine.maintain.optimize",
    "Progress": "omnigraph.progress",
    "QueryBudget": "omnigraph.engine.read.budget",
    "ReadView": "omnigraph.engine.read.view",
    "Receipt": "omnigraph.engine.history.commits",
    "RecordedAudit": "omnigraph.versioning.audit",
    "Ref": "omnigraph.engine.history.refs",
    "RepairReport": "omnigraph.engine.maintain.repair",
    "Result": "omnigraph.engine.read.result",
    "Schema": "omnigraph.api.schema",
    "SchemaApplyResult": "omnigraph.engine.schema.apply",
    "Spark": "omnigraph.spark.choice",
    "Tag": "omnigraph.engine.history.tags",
    "Tags": "omnigraph.api.tags",
    "VerifyReport": "omnigraph.engine.maintain.verify_report",
    "init": "omnigraph.api.graph",
    "open": "omnigraph.api.graph",
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name == "errors":
        return import_module("omnigraph.errors")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
