"""The reading calls of a remote graph, of its newest state and of one commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from omnigraph.api.arguments import (
    names_argument,
    only_one,
    optional_text,
    staleness_argument,
    text_argument,
)
from omnigraph.api.statements import branch_statement, listed_branches
from omnigraph.client import documents
from omnigraph.client.handle import (
    RemoteHandle,
    budget_fields,
    named_source,
    refuse_engine,
    refuse_view,
    typed_params,
)
from omnigraph.client.streams import ARROW, arrow_batches, export_lines
from omnigraph.errors import EmbeddedOnly, EntityNotFound, InputError, QueryCancelled
from omnigraph.wire import documents07 as v07
from omnigraph.wire.values import untagged

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.analytics.run import Analysis
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.catalog.model import Catalog
    from omnigraph.client.blobs import RemoteBlobsAt
    from omnigraph.history.refs import Ref
    from omnigraph.progress import Progress
    from omnigraph.read.budget import CancelToken, QueryBudget
    from omnigraph.read.explain import Explanation
    from omnigraph.read.result import Result
    from omnigraph.read.view import ReadView
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.commits import CommitId


class RemoteReads(RemoteHandle):
    """Calls that read a graph behind a server."""

    def at(self, ref: Ref) -> RemoteGraphAt:
        """The graph as of a commit, a branch, a tag or a time, with the same reading calls."""
        named = self._ref("ref", ref)
        return RemoteGraphAt(self, self._get("/snapshot", v07.SnapshotOutput, ("snapshot", named)))

    def query(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
    ) -> Result:
        """Run a query on the newest state of a branch, or on the state that `at` names."""
        refuse_view(view)
        statement = branch_statement(source)
        if statement is not None:
            graph = cast("GraphProtocol", self)
            return listed_branches(graph, statement, branch, name, params, at)
        self._check_staleness(max_staleness, at)
        return self._query(self._target(branch, at), source, params, name, budget, cancel, exact)

    def explain(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
        analyze: bool = False,
    ) -> Explanation:
        """Show the plan of a query, with the rows expected of each step."""
        refuse_view(view)
        target = self._target(branch, at)
        return self._explain(target, source, params, name, budget, cancel, exact, analyze)

    def get(
        self,
        type: str,
        id: str,
        *,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
    ) -> dict[str, Any] | None:
        """One node or edge by id, or None."""
        self._check_staleness(max_staleness, at)
        return self._entity(self._target(branch, at), type, id)

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
    ) -> pa.RecordBatchReader:
        """Stream the rows of one type as Arrow batches."""
        self._check_staleness(max_staleness, at)
        target = self._target(branch, at)
        return self._scan(target, type, columns, where, params, budget, cancel)

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        types: Iterable[str] = (),
        branch: str | None = None,
        at: Ref | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> int:
        """Write rows as JSON lines to a path, a URI or a binary stream, and return how many."""
        return self._export(self._target(branch, at), target, format, types, engine, progress)

    def export_batches(
        self, *, types: Iterable[str] = (), branch: str | None = None, at: Ref | None = None
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """All rows, as pairs of a type name and an Arrow batch."""
        only_one(branch=branch, at=at)
        state = self.at(self._on(branch) if at is None else at)
        return state.export_batches(types=types)

    def _check_staleness(self, max_staleness: float | None, at: Ref | None) -> None:
        """The server always reads the newest state, which is new enough."""
        only_one(max_staleness=max_staleness, at=at)
        staleness_argument(max_staleness)

    # -- requests ---------------------------------------------------------------------------

    def _query(
        self,
        target: Mapping[str, str],
        source: str | Path,
        params: Mapping[str, object] | None,
        name: str | None,
        budget: QueryBudget | None,
        cancel: CancelToken | None,
        exact: bool,
    ) -> Result:
        body, text = self._read_body(target, source, params, name, budget, exact)
        with named_source(text, "<query>"):
            reply = self._call(
                "POST", "/query", body=body, accept=ARROW, cancelled=_cancelled(cancel)
            )
        return documents.results_of(reply.content)

    def _explain(
        self,
        target: Mapping[str, str],
        source: str | Path,
        params: Mapping[str, object] | None,
        name: str | None,
        budget: QueryBudget | None,
        cancel: CancelToken | None,
        exact: bool,
        analyze: bool,
    ) -> Explanation:
        body, text = self._read_body(target, source, params, name, budget, exact)
        body["analyze"] = analyze
        with named_source(text, "<query>"):
            reply = self._call("POST", "/explain", body=body, cancelled=_cancelled(cancel))
        return documents.explanation_of(reply.json(v07.ExplainOutput))

    def _read_body(
        self,
        target: Mapping[str, str],
        source: str | Path,
        params: Mapping[str, object] | None,
        name: str | None,
        budget: QueryBudget | None,
        exact: bool,
    ) -> tuple[dict[str, Any], Any]:
        from omnigraph.read.source_files import query_source

        text = query_source(source)
        body = {
            "query": text.text,
            "name": optional_text("name", name),
            "typed_params": typed_params(params),
            "budget": budget_fields(budget),
            "exact": exact,
            **target,
        }
        return body, text

    def _entity(self, target: Mapping[str, str], type: str, id: str) -> dict[str, Any] | None:
        path = entity_path(type, id)
        query = [*target.items(), ("typed", "true")]
        try:
            found = self._call("GET", path, query=query).json(v07.EntityOutput)
        except EntityNotFound:
            return None
        return cast("dict[str, Any]", untagged(found.typed))

    def _scan(
        self,
        target: Mapping[str, str],
        type: str,
        columns: Sequence[str] | None,
        where: str | None,
        params: Mapping[str, object] | None,
        budget: QueryBudget | None,
        cancel: CancelToken | None,
    ) -> pa.RecordBatchReader:
        body = {
            "type": text_argument("type", type),
            "columns": None if columns is None else list(names_argument("columns", columns)),
            "where": optional_text("where", where),
            "typed_params": typed_params(params),
            "budget": budget_fields(budget),
            **target,
        }
        stop = _cancelled(cancel)
        return arrow_batches(self._transport, "POST", "/scan", body=body, cancelled=stop)

    def _export(
        self,
        target: Mapping[str, str],
        out: str | Path | BinaryIO,
        format: str,
        types: Iterable[str],
        engine: EngineArgument,
        progress: Progress | None,
    ) -> int:
        refuse_engine(engine)
        if format == "parquet":
            raise EmbeddedOnly(
                "export with format='parquet'", "use export_batches, or format='jsonl'"
            )
        if format != "jsonl":
            raise InputError(f"unknown export format '{format}'; use jsonl or parquet")
        body = {"type_names": list(names_argument("types", types)), **target}
        return export_lines(self._transport, body, out)


def _cancelled(cancel: CancelToken | None) -> Any:
    if cancel is None:
        return None
    if cancel.is_cancelled:
        raise QueryCancelled
    return lambda: cancel.is_cancelled


def entity_path(type: str, id: str) -> str:
    from omnigraph.client.addresses import path_segment

    if not isinstance(type, str):
        raise InputError(f"type must be the name of a type, not a {_kind(type)}")
    if not isinstance(id, str):
        raise InputError(f"id must be the text of an id, not a {_kind(id)}")
    return f"/entities/{path_segment(type)}/{path_segment(id)}"


def _kind(value: object) -> str:
    return value.__class__.__name__


class RemoteGraphAt:
    """A graph behind a server at one commit. Its answers stay the same."""

    def __init__(self, graph: RemoteReads, document: v07.SnapshotOutput) -> None:
        self._graph = graph
        self._document = document
        self._catalog: Catalog | None = None

    @property
    def branch(self) -> str:
        """The branch the commit was found on."""
        return self._document.branch

    @property
    def number(self) -> int:
        """The number of the commit on its branch."""
        return self._document.manifest_version

    @property
    def commit_id(self) -> CommitId:
        """The id of the commit."""
        return cast("CommitId", self._document.graph_commit_id)

    @property
    def catalog(self) -> Catalog:
        """The schema of that time, under the names of today."""
        if self._catalog is None:
            asked = (("compiled", "true"), ("snapshot", self.commit_id))
            found = self._graph._get("/schema", v07.SchemaOutput, *asked)
            self._catalog = documents.catalog_of(found)
        return self._catalog

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of every type."""
        tables = self._document.tables
        return {table.table_key.partition(":")[2]: table.row_count for table in tables}

    def __repr__(self) -> str:
        return f"RemoteGraphAt({self.commit_id!r}, branch={self.branch!r}, number={self.number})"

    def to_json(self) -> dict[str, Any]:
        """Every table and its version."""
        import msgspec

        found: dict[str, Any] = msgspec.to_builtins(self._document)
        return {name: found[name] for name in ("branch", "manifest_version", "tables")}

    @property
    def _target(self) -> dict[str, str]:
        return {"snapshot": self.commit_id}

    def query(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
    ) -> Result:
        """Run a query on this state."""
        refuse_view(view)
        return self._graph._query(self._target, source, params, name, budget, cancel, exact)

    def explain(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
        analyze: bool = False,
    ) -> Explanation:
        """Show the plan of a query on this state."""
        refuse_view(view)
        return self._graph._explain(
            self._target, source, params, name, budget, cancel, exact, analyze
        )

    def get(self, type: str, id: str) -> dict[str, Any] | None:
        """One node or edge, or None."""
        return self._graph._entity(self._target, type, id)

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of one type as Arrow batches."""
        return self._graph._scan(self._target, type, columns, where, params, budget, cancel)

    def analyze(
        self,
        algorithm: str,
        params: Mapping[str, object] | None = None,
        *,
        nodes: Iterable[str] = (),
        edges: Iterable[str] = (),
        directed: bool | None = None,
        weight: str | None = None,
        top: int | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
    ) -> Analysis:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._graph._transport  # noqa: B018 - a closed handle is refused at once
        raise EmbeddedOnly("analyze")

    @property
    def blobs(self) -> RemoteBlobsAt:
        """The blobs of this state."""
        from omnigraph.client.blobs import RemoteBlobsAt

        return RemoteBlobsAt(self._graph, self._target)

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        types: Iterable[str] = (),
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> int:
        """Write this state as JSON lines to a path, a URI or a stream; returns the number of rows."""
        return self._graph._export(self._target, target, format, types, engine, progress)

    def export_batches(self, *, types: Iterable[str] = ()) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of this state, as pairs of a type name and an Arrow batch."""
        from omnigraph.export.run import select_types

        wanted = select_types(self.catalog, names_argument("types", types))

        def batches() -> Iterator[tuple[str, pa.RecordBatch]]:
            for declared in wanted:
                for batch in self.scan(declared.table_key):
                    yield declared.name, batch

        return batches()
