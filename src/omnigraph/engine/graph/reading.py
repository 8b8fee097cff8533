"""Questions to a graph, and its rows as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.read.budget import QueryBudget
from omnigraph.engine.read.view import ReadView
from omnigraph.progress import SILENT, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.engine.read.explain import Explanation
    from omnigraph.engine.result import Result


class Reads(GraphHandle):
    """What is asked of a graph."""

    def query(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        exact: bool = False,
        **more: object,
    ) -> Result:
        """Run a read on the newest state of a branch, or on an earlier one with `at`.

        `query` is query text or the path of a query file; `name` picks one of several queries in
        it. Parameters come as a mapping, or as keywords where their names are not taken here.
        With `exact`, the nearest of very many vectors are not looked for through an index.
        """
        return self._seen(branch, at).query(
            query, name, params, view=view, budget=budget, exact=exact, **more
        )

    def explain(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        exact: bool = False,
        analyze: bool = False,
        **more: object,
    ) -> Explanation:
        """The steps a read takes, with the rows expected of each. Takes what `query` takes.

        With `analyze` the read is run, and every step also says how many rows it left and how long
        it took.
        """
        return self._seen(branch, at).explain(
            query, name, params, view=view, budget=budget, exact=exact, analyze=analyze, **more
        )

    def export(
        self,
        out: TextIO,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        types: Sequence[str] = (),
        tables: Sequence[str] = (),
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
        parts_in: str | Path | None = None,
    ) -> int:
        """Write the graph as JSON lines that load back into an equal graph; returns the rows.

        `at` is a version, a commit or a branch, as for `Graph.at`; without it the newest state.

        `engine` says where it runs, `spark` and `master` on which session, as for `load`. The text is
        the same. On Spark, parts of it wait in the folder `parts_in`, which executors have to see;
        without it in the folder for temporary files.
        """
        return self._seen(branch, at).export(
            out,
            types=types,
            tables=tables,
            progress=progress,
            engine=engine,
            spark=spark,
            master=master,
            parts_in=parts_in,
        )

    def export_parquet(
        self,
        folder: str | Path,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        types: Sequence[str] = (),
        tables: Sequence[str] = (),
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> int:
        """Write the graph to a new folder, a Parquet file per type; returns the rows.

        The folder loads back into an equal graph. The other arguments are those of `export`. On
        Spark a large type is written to several files, and executors have to see the folder's place.
        """
        return self._seen(branch, at).export_parquet(
            folder,
            types=types,
            tables=tables,
            progress=progress,
            engine=engine,
            spark=spark,
            master=master,
        )
