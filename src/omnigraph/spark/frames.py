"""Types of a graph as Spark data frames, and data frames into a graph: `omnigraph.spark` for its users.

Tests: tests/spark/test_data_source.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from omnigraph.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "omnigraph"
ENDPOINTS = {"src": "from", "dst": "to"}
"""What a load calls the columns of edges that a read returns."""

Loaded = TypeVar("Loaded", covariant=True)


class _Readable(Protocol):
    @property
    def uri(self) -> str: ...

    @property
    def branch(self) -> str: ...


class _Loadable(Protocol[Loaded]):
    def load(
        self,
        source: object,
        mode: str,
        *,
        branch: str | None = None,
        load_id: str | None = None,
        strict: bool = False,
        message: str | None = None,
        engine: SparkSession,
    ) -> Loaded: ...


def nodes(
    graph: _Readable,
    type: str,
    *,
    columns: Sequence[str] = (),
    filter: str | None = None,
    at: str | None = None,
    session: SparkSession | None = None,
) -> DataFrame:
    """The nodes of a type as a data frame with `id` and properties: vertices, as GraphFrames takes them.

    `columns` picks properties, `filter` is a condition as in `Graph.scan`, and `at` the text of a ref; without
    it every action reads the newest state. `session` is by default the active one.

    >>> og.spark.nodes(graph, "Person", columns=["name"]).columns
    ['id', 'name']
    """
    return _read(graph, type, ["id"], columns, filter, at, session)


def edges(
    graph: _Readable,
    type: str,
    *,
    columns: Sequence[str] = (),
    filter: str | None = None,
    at: str | None = None,
    session: SparkSession | None = None,
) -> DataFrame:
    """The edges of a type as a data frame with `id`, `src`, `dst` and properties, as GraphFrames takes them.

    The arguments are those of `nodes`.

    >>> og.spark.edges(graph, "Knows", columns=["since"]).columns
    ['id', 'src', 'dst', 'since']
    """
    return _read(graph, type, ["id", "src", "dst"], columns, filter, at, session)


def write(
    frame: DataFrame,
    graph: _Loadable[Loaded],
    type: str,
    mode: str = "append",
    *,
    branch: str | None = None,
    load_id: str | None = None,
    strict: bool = True,
    message: str | None = None,
) -> Loaded:
    """Load a data frame of any size into one type, as Spark tasks and one commit. Returns the load's result.

    `mode` and the other arguments are those of `Graph.load`. The endpoints of edges are in `src` and
    `dst`, or in `from` and `to`.

    >>> frame = session.createDataFrame([("cy@x.org", "Cy")], ["email", "name"])
    >>> og.spark.write(frame, graph, "Person").rows_loaded
    {'node:Person': 1}
    """
    present = set(frame.columns)
    for read, loaded in ENDPOINTS.items():
        if read in present and loaded not in present:
            frame = frame.withColumnRenamed(read, loaded)
    return graph.load(
        {type: frame},
        mode,
        branch=branch,
        load_id=load_id,
        strict=strict,
        message=message,
        engine=frame.sparkSession,
    )


def _read(
    graph: _Readable,
    type: str,
    first: Sequence[str],
    columns: Sequence[str],
    filter: str | None,
    at: str | None,
    session: SparkSession | None,
) -> DataFrame:
    from omnigraph.spark.session import open_session

    if graph.uri.startswith("http"):
        raise InputError("Spark tasks read a graph from its storage, not through a server")
    names = [*first, *(name for name in columns if name not in first)] if columns else None
    given: Mapping[str, Any] = {
        "graph": graph.uri,
        "type": type,
        "branch": graph.branch if at is None else None,
        "at": at,
        "columns": None if names is None else ",".join(names),
        "filter": filter,
    }
    reader = (session or open_session()).read.format(FORMAT)
    return reader.options(**{name: text for name, text in given.items() if text is not None}).load()
