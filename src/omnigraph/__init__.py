"""OmniGraph: a typed property graph with branches and history.

This module is the public interface; everything behind it may change. Names are imported when they
are first used, so that importing the package is cheap.
"""

from omnigraph._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from omnigraph import errors, spark
    from omnigraph.analytics.run import Analysis
    from omnigraph.api.branches import Branches, Tags
    from omnigraph.api.graph import Graph, init, open
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.api.maintenance import Maintenance
    from omnigraph.api.protocol import GraphAtProtocol, GraphProtocol
    from omnigraph.api.reading import Blobs
    from omnigraph.api.schema import Schema
    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.catalog.model import Catalog
    from omnigraph.client.graph import connect
    from omnigraph.diff.diff import Diff
    from omnigraph.diff.feed import CommitChanges, EntityChange
    from omnigraph.embedding.embed import EmbedResult
    from omnigraph.errors import OmnigraphError
    from omnigraph.history.commits import Commit, Receipt
    from omnigraph.history.refs import Ref
    from omnigraph.history.tags import Tag
    from omnigraph.load.run import LoadResult
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair import RepairReport
    from omnigraph.maintenance.status import GraphStatus
    from omnigraph.maintenance.verify_report import VerifyReport
    from omnigraph.merge.merger import AppliedCommit, MergeResult
    from omnigraph.mutation.run import MutationResult
    from omnigraph.progress import Progress
    from omnigraph.read.budget import CancelToken, QueryBudget
    from omnigraph.read.entities import Blob
    from omnigraph.read.explain import Explanation
    from omnigraph.read.result import Result
    from omnigraph.read.view import ReadView
    from omnigraph.schema.apply import SchemaApplyResult
    from omnigraph.spark.choice import Spark
    from omnigraph.versioning.audit import RecordedAudit

__all__ = [
    "Analysis",
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
    "connect",
    "errors",
    "init",
    "open",
    "spark",
]

_MODULES = {
    "Analysis": "omnigraph.analytics.run",
    "AppliedCommit": "omnigraph.merge.merger",
    "Blob": "omnigraph.read.entities",
    "Blobs": "omnigraph.api.reading",
    "Branches": "omnigraph.api.branches",
    "CancelToken": "omnigraph.read.budget",
    "Catalog": "omnigraph.catalog.model",
    "CleanupReport": "omnigraph.maintenance.cleanup",
    "Commit": "omnigraph.history.commits",
    "CommitChanges": "omnigraph.diff.feed",
    "Diff": "omnigraph.diff.diff",
    "EmbedResult": "omnigraph.embedding.embed",
    "EntityChange": "omnigraph.diff.feed",
    "Explanation": "omnigraph.read.explain",
    "Graph": "omnigraph.api.graph",
    "GraphAt": "omnigraph.api.graph_at",
    "GraphAtProtocol": "omnigraph.api.protocol",
    "GraphProtocol": "omnigraph.api.protocol",
    "GraphStatus": "omnigraph.maintenance.status",
    "IndexReport": "omnigraph.maintenance.indexes",
    "LoadResult": "omnigraph.load.run",
    "Maintenance": "omnigraph.api.maintenance",
    "MergeResult": "omnigraph.merge.merger",
    "MigrationPlan": "omnigraph.catalog.migrate",
    "MutationResult": "omnigraph.mutation.run",
    "OmnigraphError": "omnigraph.errors",
    "OptimizeReport": "omnigraph.maintenance.optimize",
    "Progress": "omnigraph.progress",
    "QueryBudget": "omnigraph.read.budget",
    "ReadView": "omnigraph.read.view",
    "Receipt": "omnigraph.history.commits",
    "RecordedAudit": "omnigraph.versioning.audit",
    "Ref": "omnigraph.history.refs",
    "RepairReport": "omnigraph.maintenance.repair",
    "Result": "omnigraph.read.result",
    "Schema": "omnigraph.api.schema",
    "SchemaApplyResult": "omnigraph.schema.apply",
    "Spark": "omnigraph.spark.choice",
    "Tag": "omnigraph.history.tags",
    "Tags": "omnigraph.api.branches",
    "VerifyReport": "omnigraph.maintenance.verify_report",
    "connect": "omnigraph.client.graph",
    "init": "omnigraph.api.graph",
    "open": "omnigraph.api.graph",
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in ("errors", "spark"):
        return import_module(f"omnigraph.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
