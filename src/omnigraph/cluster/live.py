"""The graphs of a cluster as they are: what an open graph says, and the calls that create and change one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from msgspec import Struct, structs

from omnigraph.api.graph import Graph, init, open
from omnigraph.cluster.documents import Change, Diagnostics, MigrationPreview
from omnigraph.cluster.ledger import GraphObservation, now, text_digest
from omnigraph.cluster.plan import ClusterPlan
from omnigraph.cluster.resources import Desired
from omnigraph.cluster.store import ClusterStore
from omnigraph.errors import (
    BranchLocked,
    BranchLockLost,
    ConstraintError,
    LanguageError,
    OmnigraphError,
    RecoveryPending,
    SchemaApplyBlocked,
    SchemaApplyRunning,
    SchemaError,
)

_REJECTIONS: Final = (
    BranchLocked,
    ConstraintError,
    LanguageError,
    RecoveryPending,
    SchemaApplyBlocked,
    SchemaApplyRunning,
    SchemaError,
)
"""What the engine raises before it changes a graph's schema."""


class LiveGraph(Struct, frozen=True):
    """A graph as it was found. `error` says why one that exists does not open."""

    exists: bool
    manifest_version: int | None = None
    schema_digest: str | None = None
    error: str | None = None

    @property
    def opens(self) -> bool:
        return self.schema_digest is not None

    def observation(
        self, store: ClusterStore, graph_id: str, desired_digest: str | None
    ) -> GraphObservation:
        """What the ledger keeps of it."""
        matches = None
        if self.schema_digest is not None and desired_digest is not None:
            matches = self.schema_digest == desired_digest
        return GraphObservation(
            address=f"graph.{graph_id}",
            graph_uri=store.graph_uri(graph_id),
            observed_at=now(),
            exists=self.exists,
            manifest_version=self.manifest_version,
            schema_digest=self.schema_digest,
            desired_schema_digest=desired_digest,
            schema_matches_desired=matches,
            error=self.error,
        )


def look_at(store: ClusterStore, graph_id: str, *, recover: bool = False) -> LiveGraph:
    """A graph as it is. With `recover`, the engine first completes or undoes what was interrupted."""
    try:
        if not store.has_graph(graph_id):
            return LiveGraph(exists=False)
        with open(store.graph_uri(graph_id), read_only=not recover) as graph:
            return LiveGraph(True, graph.head().number, text_digest(graph.schema.source))
    except OmnigraphError as error:
        return LiveGraph(exists=True, error=str(error))


def create(store: ClusterStore, graph_id: str, schema: str, actor: str | None) -> int:
    """Create a graph; its manifest version. Raises `OmnigraphError`."""
    with init(store.graph_uri(graph_id), schema, actor=actor) as graph:
        return graph.head().number


def open_for_change(store: ClusterStore, graph_id: str, actor: str | None) -> Graph:
    """Open a graph to change its schema. Raises `OmnigraphError`."""
    return open(store.graph_uri(graph_id), actor=actor)


def migrate(graph: Graph, schema: str) -> int:
    """Change the schema of a graph; its manifest version. Dropped data stays in its history.

    Raises `OmnigraphError`.
    """
    if not graph.schema.apply(schema, message="cluster apply").applied:
        graph.schema._restate(schema)
    return graph.head().number


def was_rejected(error: OmnigraphError) -> bool:
    """Whether a failed schema change has left the graph as it was."""
    return isinstance(error, _REJECTIONS) and not isinstance(error, BranchLockLost)


def other_branches(store: ClusterStore, graph_id: str) -> list[str]:
    """The branches of a graph besides main. Raises `OmnigraphError`."""
    with open(store.graph_uri(graph_id), read_only=True) as graph:
        return sorted(name for name in graph.branches if name != graph.branch)


def preview(store: ClusterStore, graph_id: str, schema: str) -> MigrationPreview:
    """What a schema change would do. Raises `OmnigraphError`."""
    with open(store.graph_uri(graph_id), read_only=True) as graph:
        plan = graph.schema.plan(schema)
        return MigrationPreview(plan.supported, [step.to_json() for step in plan.steps])


def with_previews(
    store: ClusterStore, desired: Desired, made: ClusterPlan, found: Diagnostics
) -> ClusterPlan:
    """A plan with the migration of every schema that changes."""

    def previewed(change: Change) -> Change:
        if change.kind != "schema" or change.operation != "update":
            return change
        text = desired.resources[change.resource].text or ""
        try:
            return structs.replace(change, migration=preview(store, change.graph_id, text))
        except OmnigraphError as error:
            found.warning("schema_preview_unavailable", change.resource, str(error))
            return change

    return replace(made, changes=tuple(map(previewed, made.changes)))
