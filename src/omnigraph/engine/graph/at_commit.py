"""A graph as one commit left it: everything that can be asked of it, and nothing that changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from omnigraph.catalog.model import Catalog
from omnigraph.engine.graph.parameters import joined_parameters
from omnigraph.engine.read.budget import QueryBudget
from omnigraph.engine.read.reader import Reader, Reading
from omnigraph.engine.read.view import ReadView
from omnigraph.errors import InputError
from omnigraph.progress import SILENT, Progress
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.engine.blobs import Blob
    from omnigraph.engine.export.snapshot import SnapshotExport
    from omnigraph.engine.read.explain import Explanation
    from omnigraph.engine.result import Result
    from omnigraph.versioning.branch_names import BranchName
    from omnigraph.versioning.commits import CommitId


class GraphAt:
    """A graph at one commit. Its answers stay the same, whatever is committed later."""

    def __init__(
        self, snapshot: Snapshot, reader: Reader, tables: TableStore, *, is_newest: bool = False
    ) -> None:
        """`is_newest` says that a branch was asked for, and not the commit it happens to be at."""
        self.snapshot = snapshot
        self._reader = reader
        self._tables = tables
        self._is_newest = is_newest

    @property
    def branch(self) -> BranchName:
        """The branch the commit was found on."""
        return self.snapshot.branch

    @property
    def version(self) -> int:
        """The number of the commit on its branch."""
        return self.snapshot.version

    @property
    def commit_id(self) -> CommitId:
        return self.snapshot.commit_id

    @property
    def catalog(self) -> Catalog:
        """The schema of then, under the names of today and with what was added since."""
        return self.snapshot.catalog

    def __repr__(self) -> str:
        place = f"branch={self.branch!r}, version={self.version}"
        return f"{type(self).__name__}({self.commit_id!r}, {place})"

    # -- questions --------------------------------------------------------------------------

    def query(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        exact: bool = False,
        **more: object,
    ) -> Result:
        """Run a read. The arguments are those of `Graph.query`."""
        reading = self._reading(query, name, view, budget, exact)
        return self._reader.run(reading, joined_parameters(params, more))

    def explain(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        exact: bool = False,
        analyze: bool = False,
        **more: object,
    ) -> Explanation:
        """The steps a read takes. The arguments are those of `Graph.explain`."""
        reading = self._reading(query, name, view, budget, exact)
        return self._reader.explain(reading, joined_parameters(params, more) if analyze else None)

    def entity(self, table_key: str, id: str) -> dict[str, Any] | None:
        """One node or edge, or None.

        A document with `id`, for an edge `src` and `dst`, and every property; values as exported.
        """
        from omnigraph.engine.entities import read_entity

        return read_entity(self.snapshot, self._tables, table_key, id)

    def open_blob(self, type_name: str, id: str, property: str) -> Blob:
        """One blob of a node or edge: its size, and its bytes in parts."""
        from omnigraph.engine.blobs import open_blob

        return open_blob(self.snapshot, self._tables, type_name, id, property)

    # -- rows as files ----------------------------------------------------------------------

    def export(
        self,
        out: TextIO,
        *,
        types: Sequence[str] = (),
        tables: Sequence[str] = (),
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
        parts_in: str | Path | None = None,
    ) -> int:
        """Write JSON lines. The arguments are those of `Graph.export`."""
        export = self._export([*types, *tables], progress, engine, spark, master)
        return export.to_lines(out, None if parts_in is None else Path(parts_in))

    def export_parquet(
        self,
        folder: str | Path,
        *,
        types: Sequence[str] = (),
        tables: Sequence[str] = (),
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> int:
        """Write Parquet files. The arguments are those of `Graph.export_parquet`."""
        return self._export([*types, *tables], progress, engine, spark, master).to_parquet(
            Path(folder)
        )

    def _reading(
        self,
        query: str | Path,
        name: str | None,
        view: ReadView,
        budget: QueryBudget | None,
        exact: bool,
    ) -> Reading:
        if name is not None and not isinstance(name, str):
            raise InputError(
                "the second argument is the name of a query; parameters come third or as keywords"
            )
        meter = (budget or QueryBudget.from_environment()).start()
        plan = self._reader.compile(query, name, self.catalog, view)
        meter.check()
        target = None if self._is_newest else self.commit_id
        return Reading(plan, self.snapshot, target, view, meter, exact)

    def _export(
        self,
        wanted: Sequence[str],
        progress: Progress,
        engine: str | None,
        spark: SparkSession | None,
        master: str | None,
    ) -> SnapshotExport:
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.export.snapshot import SnapshotExport

        choice = chosen_engine(engine, spark, master)
        return SnapshotExport(self.snapshot, self._tables, wanted, choice, progress)
