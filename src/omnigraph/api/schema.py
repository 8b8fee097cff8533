"""The schema of a graph: its source, its types, and changing it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from omnigraph.api.arguments import commit_argument, optional_text
from omnigraph.api.handle import GraphHandle
from omnigraph.graph.gate import Action
from omnigraph.versioning.branch_names import MAIN

if TYPE_CHECKING:
    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.catalog.model import Catalog
    from omnigraph.history.refs import Ref
    from omnigraph.progress import Progress
    from omnigraph.schema import SchemaApplyResult
    from omnigraph.spark.choice import EngineArgument


class HasSchema(GraphHandle):
    """A handle with the group `schema`."""

    @property
    def schema(self) -> Schema:
        """The accepted schema of the graph.

        >>> graph.schema
        <schema: 2 node types, 2 edge types>
        """
        return Schema(self)


class Schema:
    """The accepted schema of a graph."""

    def __init__(self, graph: HasSchema) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        from omnigraph.diagnostics import counted

        types = self.catalog
        nodes, edges = (
            counted(len(types.nodes), "node type"),
            counted(len(types.edges), "edge type"),
        )
        return f"<schema: {nodes}, {edges}>"

    def __str__(self) -> str:
        return self.source

    @property
    def source(self) -> str:
        """The schema as text, comments included; without them, what a restricted handle sees of it.

        >>> graph.schema.source.startswith("node Person")
        True
        """
        from omnigraph.language.schema.excerpt import schema_excerpt
        from omnigraph.language.syntax import Source

        source = self._graph._core.schemas.contract().source
        if not self._graph._view.hides_names:
            return source
        shown = {found.name: frozenset(found.properties) for found in self.catalog}
        return schema_excerpt(Source("<schema>", source), shown)

    @property
    def catalog(self) -> Catalog:
        """The types with their properties and constraints, as this handle sees them.

        >>> list(graph.schema.catalog.nodes["Person"].properties)
        ['born', 'email', 'name', 'photo']
        """
        return self._graph._view.restrict(self._graph._core.schemas.contract().catalog)

    def _repr_svg_(self) -> str:
        return self.diagram("svg")

    def diagram(self, format: Literal["mermaid", "svg"] = "mermaid") -> str:
        """The schema as a Mermaid class diagram, which GitHub renders, or as an SVG picture.

        >>> print(graph.schema.diagram())
        classDiagram
            class Note {
        ...
        """
        from omnigraph.pictures.schema import diagram

        return diagram(self.catalog, format)

    def plan(self, new: str | Path, *, allow_data_loss: bool = False) -> MigrationPlan:
        """The steps that lead to another schema, unsupported ones included. Changes nothing.

        `new` is schema text or the path of a `.pg` file.

        >>> len(graph.schema.plan(graph.schema.source).steps)
        0
        """
        from omnigraph.read.source_files import schema_source
        from omnigraph.schema import SchemaApplication

        self._graph._require_whole("plan a schema change")
        application = SchemaApplication(self._graph._core.parts)
        return application.plan(schema_source(new), allow_data_loss=allow_data_loss)

    def apply(
        self,
        new: str | Path,
        *,
        allow_data_loss: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        queries: Sequence[str | Path] = (),
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> SchemaApplyResult:
        """Change the schema as one commit on `main`, which must be the only branch.

        Dropped data stays readable at earlier commits until cleanup; with `allow_data_loss` it is
        deleted at once. Raises `UnsupportedMigration`, `SchemaApplyBlocked` while other branches
        exist, `QueriesBroken` when one of `queries` does not fit the new schema, and
        `SchemaViolated` with all stored rows that violate it.

        >>> graph.schema.apply(graph.schema.source + "node City { name: String @key }").applied
        True
        """
        from omnigraph.commit.keys import keyed_request, keyed_text
        from omnigraph.progress import SILENT
        from omnigraph.read.source_files import query_source, schema_source
        from omnigraph.schema import SchemaApplication, SchemaApplyOptions
        from omnigraph.spark.choice import chosen_engine

        handle = self._graph
        core = handle._writable("apply a schema")
        handle._allow(Action.SCHEMA_APPLY, target_branch=MAIN)
        handle._require_whole("apply a schema")
        desired = schema_source(new)
        if core.read_policy is not None:
            from omnigraph.catalog.compile import compile_schema

            core.read_policy.check_reads(compile_schema(desired))
        options = SchemaApplyOptions(
            request=keyed_request(
                idempotency_key, "schema_apply", keyed_text(desired.text), allow_data_loss
            ),
            allow_data_loss=allow_data_loss,
            actor=handle.actor,
            message=optional_text("message", message),
            expected_head=commit_argument("expected_head", expected_head),
            engine=chosen_engine(engine),
            queries=tuple(query_source(query) for query in queries),
            progress=progress or SILENT,
        )
        return SchemaApplication(core.parts).apply(desired, options)

    def _restate(self, source: str) -> None:
        """Store another text of the accepted schema, for clusters, whose files have comments."""
        from omnigraph.read.source_files import schema_source
        from omnigraph.schema import SchemaApplication

        core = self._graph._writable("store a schema text")
        self._graph._allow(Action.SCHEMA_APPLY, target_branch=MAIN)
        self._graph._require_whole("store a schema text")
        SchemaApplication(core.parts).restate(schema_source(source))


def accepted_catalog(handle: GraphHandle) -> Catalog:
    """The accepted schema, whatever the handle sees of it: for a server that checks what it serves."""
    return handle._core.contract().catalog


def restricted_catalog(handle: GraphHandle) -> Catalog | None:
    """The schema as a handle sees it; None if no type or property of it is hidden."""
    view = handle._view
    return view.restrict(accepted_catalog(handle)) if view.hides_names else None
