"""A graph at one commit: the reading calls, and nothing that changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from omnigraph.api.arguments import (
    names_argument,
    optional_text,
    parameters_argument,
    rows_argument,
    text_argument,
)
from omnigraph.api.core import GraphCore
from omnigraph.read.view import ReadView
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.analytics.run import Analysis, AnalysisOptions, Computed
    from omnigraph.catalog.model import Catalog
    from omnigraph.history.commits import Receipt
    from omnigraph.language.query.ast import QueryFile
    from omnigraph.language.syntax import Source
    from omnigraph.progress import Progress
    from omnigraph.read.budget import CancelToken, QueryBudget
    from omnigraph.read.entities import Blob, BlobLocation
    from omnigraph.read.explain import Explanation
    from omnigraph.read.reader import ReadRequest
    from omnigraph.read.result import Result
    from omnigraph.spark.choice import EngineArgument


class GraphAt:
    """A graph at one commit. Its answers stay the same, whatever is committed later.

    >>> graph.at("main~1").get("Person", "ada@x.org") is None
    True
    """

    def __init__(
        self,
        snapshot: Snapshot,
        core: GraphCore,
        view: ReadView,
        *,
        limit: ReadView = ReadView.ALL,
        is_newest: bool = False,
    ) -> None:
        # `limit` is what the policy shows, within which a call may have a view of its own.
        # `is_newest` says that a branch was asked for, not the commit it happens to be at.
        self._snapshot = snapshot
        self._core = core
        self._view = view
        self._limit = limit
        self._is_newest = is_newest

    # -- what it is -------------------------------------------------------------------------

    @property
    def branch(self) -> str:
        """The branch the commit was found on.

        >>> graph.at("main~1").branch
        'main'
        """
        return self._snapshot.branch

    @property
    def number(self) -> int:
        """The number of the commit on its branch.

        >>> graph.at("main~1").number
        1
        """
        return self._snapshot.version

    @property
    def commit_id(self) -> CommitId:
        """The id of the commit.

        >>> graph.at("main").commit_id == graph.head().id
        True
        """
        return self._snapshot.commit_id

    @property
    def catalog(self) -> Catalog:
        """The schema of that time, under the names of today.

        >>> sorted(graph.at(1).catalog.nodes)
        ['Note', 'Person']
        """
        return self._view.restrict(self._snapshot.catalog)

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of every type.

        >>> graph.at("main").counts
        {'Knows': 1, 'Wrote': 1, 'Note': 1, 'Person': 2}
        """
        from omnigraph.read.view import visible_counts

        return visible_counts(self._snapshot, self._core.tables, self._view)

    def __repr__(self) -> str:
        return f"GraphAt({self.commit_id!r}, branch={self.branch!r}, number={self.number})"

    def to_json(self) -> dict[str, Any]:
        """The document that `omnigraph snapshot --json` prints: every table and its version.

        >>> graph.at("main").to_json()["branch"]
        'main'
        """
        from omnigraph.read.view import visible_tables

        return self._snapshot.to_json() | {
            "tables": visible_tables(self._snapshot, self._core.tables, self._view)
        }

    # -- reading ----------------------------------------------------------------------------

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
        """Run a query on this state. The arguments are those of `Graph.query`.

        >>> graph.at("main").query("team.gq", {"name": "Ada"}, name="friends_of")["friend"]
        <pyarrow.lib.ChunkedArray object at ...>
        ...
        """
        from omnigraph.read.source_files import query_source
        from omnigraph.read.text_statements import chosen_settings, leading_statements, limited

        text, mode = query_source(source), None
        file = leading_statements(text)
        if file is not None:
            chosen = chosen_settings(file)
            if chosen:
                from omnigraph.read.budget import QueryBudget, TraversalMode

                if "traversal_mode" in chosen:
                    mode = TraversalMode(chosen["traversal_mode"])
                budget = limited(budget or QueryBudget.from_environment(), chosen)
                exact = chosen.get("exact", "true" if exact else "false") == "true"
            if file.statement is not None:
                return self._statement(file, text, chosen, name, view)
        reading = self._reading(source, name, view, budget, cancel, exact)
        if mode is not None:
            reading = replace(reading, mode=mode)
        return self._core.reader.run(reading, params or {})

    def _statement(
        self,
        file: QueryFile,
        text: Source,
        chosen: dict[str, int | str],
        name: str | None,
        view: ReadView | None,
    ) -> Result:
        """The answer of a statement that stands alone in a text."""
        from omnigraph.errors import QuerySelectionError
        from omnigraph.language.query.file_statements import Explain, Show
        from omnigraph.read.result import Result
        from omnigraph.read.text_statements import explained_rows, shown_settings

        statement = file.statement
        if name is not None:
            raise QuerySelectionError("a statement has no name; leave --name out")
        if isinstance(statement, Show):
            word, (table, types) = "show", shown_settings(statement, chosen)
        elif isinstance(statement, Explain):
            span = statement.query.span
            query = text.text[span.start : span.end]
            word, (table, types) = "explain", explained_rows(self.explain(query, view=view))
        else:
            message = "branch statements do not run as a query; use the branch commands"
            raise QuerySelectionError(message)
        target = None if self._is_newest else self.commit_id
        branch = self.branch if target is None else None
        return Result(word, table, types, branch=branch, snapshot=target, commit_id=self.commit_id)

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
        """Show the plan of a query on this state. The arguments are those of `Graph.explain`.

        >>> graph.at("main").explain("team.gq", name="friends_of")
        friends_of ...
        """
        reading = self._reading(source, name, view, budget, cancel, exact)
        return self._core.reader.explain(reading, params or {}, analyze=analyze)

    def get(self, type: str, id: str) -> dict[str, Any] | None:
        """One node or edge, or None. The arguments are those of `Graph.get`.

        >>> graph.at("main").get("Note", "n1")["text"]
        'Pump 2 fails in cold water'
        """
        from omnigraph.read.entities import get_entity

        return get_entity(self._snapshot, self._core.tables, type, id, self._view)

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
        """The rows of one type as Arrow batches. The arguments are those of `Graph.scan`.

        >>> graph.at("main").scan("Person", columns=["name"]).read_all().num_rows
        2
        """
        from omnigraph.read.scan import scan_type

        return scan_type(
            self._snapshot,
            self._core.tables,
            type,
            columns=None if columns is None else names_argument("columns", columns),
            where=optional_text("where", where),
            params=params or {},
            view=self._view,
            budget=budget,
            cancel=cancel,
        )

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
        """Run a graph algorithm on this state. The arguments are those of `Graph.analyze`.

        >>> graph.at("main").analyze("components", top=0).columns
        ['type', 'id', 'component']
        """
        from omnigraph.analytics.run import AnalysisOptions

        options = AnalysisOptions(
            algorithm=text_argument("algorithm", algorithm),
            parameters=parameters_argument(params),
            nodes=names_argument("nodes", nodes),
            edges=names_argument("edges", edges),
            directed=directed,
            weight=optional_text("weight", weight),
        )
        rows_argument("top", top)
        return self._analyze(options, top, budget, cancel)

    def _analyze(
        self,
        options: AnalysisOptions,
        top: int | None,
        budget: QueryBudget | None,
        cancel: CancelToken | None,
    ) -> Analysis:
        return self._analysis_of(self._compute(options, budget, cancel), top, None)

    def _compute(
        self, options: AnalysisOptions, budget: QueryBudget | None, cancel: CancelToken | None
    ) -> Computed:
        from omnigraph.analytics.run import compute, plan_analysis
        from omnigraph.read.budget import QueryBudget

        meter = (budget or QueryBudget.from_environment()).start(cancel)
        plan = plan_analysis(self.catalog, options)
        target = None if self._is_newest else self.commit_id
        core = self._core
        return compute(core.reader, core.tables, self._snapshot, target, self._view, plan, meter)

    def _analysis_of(
        self, computed: Computed, top: int | None, receipt: Receipt | None
    ) -> Analysis:
        from omnigraph.analytics.run import result_of

        target = None if self._is_newest else self.commit_id
        found = result_of(computed, self._snapshot, target, top)
        found.receipt = receipt
        return found

    @property
    def blobs(self) -> BlobsAt:
        """The blobs of this state.

        >>> graph.at("main").blobs.read("Person", "ada@x.org", "photo")
        b'a portrait'
        """
        return BlobsAt(self)

    # -- data out ---------------------------------------------------------------------------

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        types: Iterable[str] = (),
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> int:
        """Write this state to a file, a directory or a stream, and return the number of rows.

        The arguments are those of `Graph.export`.

        >>> graph.at("main").export("backup.jsonl")
        5
        """
        from omnigraph.export.run import export_snapshot
        from omnigraph.progress import SILENT
        from omnigraph.spark.choice import chosen_engine

        return export_snapshot(
            self._snapshot,
            self._core.tables,
            target,
            format=format,
            types=names_argument("types", types),
            engine=chosen_engine(engine),
            progress=progress or SILENT,
            view=self._view,
        )

    def export_batches(self, *, types: Iterable[str] = ()) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of this state, as pairs of a type name and an Arrow batch.

        >>> {name for name, batch in graph.at("main").export_batches(types=["Note"])}
        {'Note'}
        """
        from omnigraph.export.run import export_batches

        wanted = names_argument("types", types)
        return export_batches(self._snapshot, self._core.tables, wanted, self._view)

    def _reading(
        self,
        source: str | Path,
        name: str | None,
        view: ReadView | None,
        budget: QueryBudget | None,
        cancel: CancelToken | None,
        exact: bool,
    ) -> ReadRequest:
        from omnigraph.read.budget import QueryBudget
        from omnigraph.read.reader import ReadRequest

        query_name = optional_text("name", name)
        seen_as = self._view if view is None else self._limit.within(view)
        meter = (budget or QueryBudget.from_environment()).start(cancel)
        plan = self._core.reader.compile(source, query_name, self._snapshot.catalog, seen_as)
        meter.check()
        target = None if self._is_newest else self.commit_id
        return ReadRequest(plan, self._snapshot, target, seen_as, meter, exact)


class BlobsAt:
    """The blobs of a graph at one commit."""

    def __init__(self, graph: GraphAt) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        return f"<blobs of {self._graph!r}>"

    def open(self, type: str, id: str, property: str) -> Blob:
        """One blob: its size, and its bytes in parts. Raises `EntityNotFound` or `BlobMissing`.

        >>> graph.at("main").blobs.open("Person", "ada@x.org", "photo").size
        10
        """
        from omnigraph.read.entities import open_blob

        names = {"type": type, "id": id, "property": property}
        checked = [text_argument(name, value) for name, value in names.items()]
        graph = self._graph
        return open_blob(graph._snapshot, graph._core.tables, *checked, view=graph._view)

    def read(
        self, type: str, id: str, property: str, *, offset: int = 0, length: int | None = None
    ) -> bytes:
        """The bytes of one blob, or a part of them.

        >>> graph.at("main").blobs.read("Person", "ada@x.org", "photo", offset=2, length=8)
        b'portrait'
        """
        return self.open(type, id, property).read(offset, length)


def entity_document(state: GraphAt, type: str, id: str) -> dict[str, Any] | None:
    """One node or edge with the values that an export shows, or None. Raises `UnknownType`."""
    from omnigraph.read.entities import find_type, read_entity

    key = find_type(state.catalog, type).table_key
    return read_entity(state._snapshot, state._core.tables, key, id, state._view)


def node_documents(state: GraphAt, type: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Nodes by id, as JSON values without blobs and vectors. An id that is not visible is left out."""
    from omnigraph.read.entities import read_nodes

    return read_nodes(state._snapshot, state._core.tables, type, ids, state._view)


def blob_location(state: GraphAt, type: str, id: str, property: str) -> BlobLocation:
    """Where a blob is, without reading it. Raises `EntityNotFound` or `BlobMissing`."""
    from omnigraph.read.entities import locate_blob

    return locate_blob(state._snapshot, state._core.tables, type, id, property, view=state._view)


def scan_groups(state: GraphAt, type: str) -> tuple[tuple[int, ...], ...]:
    """The fragments of a type in groups that tasks read. Raises `UnknownType`."""
    from omnigraph.read.entities import VisibleRows, find_type
    from omnigraph.spark.tasks import fragment_groups

    shown = find_type(state.catalog, type)
    table = VisibleRows(state._snapshot, state._core.tables, shown, state._view).table()
    return () if table is None else fragment_groups(table)


def scan_group(
    state: GraphAt,
    type: str,
    group: Sequence[int],
    columns: Sequence[str] | None,
    where: str | None,
    params: Mapping[str, object],
) -> pa.RecordBatchReader:
    """The rows of one group of fragments, as `scan` returns them."""
    from omnigraph.read.scan import scan_type

    return scan_type(
        state._snapshot,
        state._core.tables,
        type,
        columns=columns,
        where=where,
        params=params,
        view=state._view,
        fragments=group,
    )
