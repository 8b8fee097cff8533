"""The reading calls of a graph, and its blobs: bytes that are too large for query results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from omnigraph.api.graph_at import GraphAt
from omnigraph.api.handle import GraphHandle
from omnigraph.api.statements import branch_statement, listed_branches

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.history.refs import Ref
    from omnigraph.progress import Progress
    from omnigraph.read.budget import CancelToken, QueryBudget
    from omnigraph.read.entities import Blob
    from omnigraph.read.explain import Explanation
    from omnigraph.read.result import Result
    from omnigraph.read.view import ReadView
    from omnigraph.spark.choice import EngineArgument


class HasBlobs(GraphHandle):
    """A handle with the group `blobs`."""

    @property
    def blobs(self) -> Blobs:
        """The blobs of the graph.

        >>> graph.blobs.read("Person", "ada@x.org", "photo")
        b'a portrait'
        """
        return Blobs(self)


class Blobs:
    """Reads the blobs of a graph."""

    def __init__(self, graph: HasBlobs) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        return f"<blobs of {self._graph!r}>"

    def open(
        self,
        type: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        at: Ref | None = None,
    ) -> Blob:
        """One blob: its size, and its bytes in parts. Raises `EntityNotFound` or `BlobMissing`.

        >>> graph.blobs.open("Person", "ada@x.org", "photo").size
        10
        """
        return self._graph._state(branch, at).blobs.open(type, id, property)

    def read(
        self,
        type: str,
        id: str,
        property: str,
        *,
        offset: int = 0,
        length: int | None = None,
        branch: str | None = None,
        at: Ref | None = None,
    ) -> bytes:
        """The bytes of one blob, or a part of them. Raises `BlobRangeError` past its end.

        >>> graph.blobs.read("Person", "ada@x.org", "photo", length=1)
        b'a'
        """
        return self.open(type, id, property, branch=branch, at=at).read(offset, length)


class Reads(GraphHandle):
    """Calls that read a graph."""

    def at(self, ref: Ref) -> GraphAt:
        """The graph as of a commit, a branch, a tag or a time, with the same reading calls.

        Raises `CommitNotFound`, `BranchNotFound`, `AmbiguousRef`, or `HistoryRemoved` when cleanup
        has deleted that state.

        >>> graph.at("main~1").query("query q() { match { $p: Person } return { $p.name } }")
        0 rows from snapshot ...
        """
        return self._at("ref", ref)

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
        """Run a query on the newest state of a branch, or on the state that `at` names.

        `source` is query text or the path of a `.gq` file; `name` picks one of several queries.
        `budget` limits rows, bytes and time; `cancel` stops the query from another thread. With
        `exact`, vector search compares every vector instead of using an index. `max_staleness`
        replaces that of the handle, see `open`. Raises `LanguageError` with the position of a
        mistake, `ParameterError`, `QueryBudgetExceeded`.

        >>> graph.query("team.gq", {"name": "Ada"}, name="friends_of").to_dicts()
        [{'friend': 'Bo'}]
        """
        statement = branch_statement(source)
        if statement is not None:
            graph = cast("GraphProtocol", self)
            return listed_branches(graph, statement, branch, name, params, at)
        return self._state(branch, at, max_staleness).query(
            source, params, name=name, view=view, budget=budget, cancel=cancel, exact=exact
        )

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
        """Show the plan of a query, with the rows expected of each step.

        With `analyze` the query runs, and each step shows its actual rows and time. The other
        arguments are those of `query`.

        >>> graph.explain("team.gq", {"name": "Ada"}, name="friends_of", analyze=True)
        friends_of ...
        """
        return self._state(branch, at).explain(
            source,
            params,
            name=name,
            view=view,
            budget=budget,
            cancel=cancel,
            exact=exact,
            analyze=analyze,
        )

    def get(
        self,
        type: str,
        id: str,
        *,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
    ) -> dict[str, Any] | None:
        """One node or edge by id, or None: `id`, for an edge `src` and `dst`, then its properties.

        A node's id is the value of its `@key`. Raises `UnknownType`.

        >>> graph.get("Person", "ada@x.org")["name"]
        'Ada'
        """
        return self._state(branch, at, max_staleness).get(type, id)

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
        """Stream the rows of one type as Arrow batches.

        `columns` picks `id`, `src`, `dst` and properties; without it all of them come but blobs.
        `where` is a condition as in `update … where`, with its parameters in `params`.

        >>> graph.scan("Person", columns=["name"], where='email = "bo@x.org"').read_all().to_pylist()
        [{'name': 'Bo'}]
        """
        return self._state(branch, at, max_staleness).scan(
            type, columns=columns, where=where, params=params, budget=budget, cancel=cancel
        )

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
        """Write rows in a form that `load` reads back, and return how many.

        `target` is a path, an `s3://` URI or a binary stream. With format `parquet` it is a new
        directory that gets a file for each type. `types` limits the export to some types.

        >>> graph.export("backup.jsonl")
        5
        >>> graph.export("backup", format="parquet", types=["Person"])
        2
        """
        return self._state(branch, at).export(
            target, format=format, types=types, engine=engine, progress=progress
        )

    def export_batches(
        self,
        *,
        types: Iterable[str] = (),
        branch: str | None = None,
        at: Ref | None = None,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """All rows, as pairs of a type name and an Arrow batch.

        >>> sum(batch.num_rows for name, batch in graph.export_batches())
        5
        """
        return self._state(branch, at).export_batches(types=types)
