"""The rows of a load until it is decided: in memory, and beyond a budget in scratch files.

Scratch files are Arrow files mapped into memory, so that rows read back look like any others and
cost no memory of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.limits import LOAD_MEMORY_BYTES
from omnigraph.temporary import TemporaryFolder


class RowStore:
    """Placed rows by table key, in the order they were added."""

    def __init__(self, scratch: Path | None = None, budget: int = LOAD_MEMORY_BYTES) -> None:
        self._scratch = scratch
        self._budget = budget
        self._folder: TemporaryFolder | None = None
        self._declared: dict[str, EntityType] = {}
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._held_bytes = 0
        self._files: dict[str, list[Path]] = {}

    def __enter__(self) -> RowStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the scratch files. Tables handed out stay readable where files can be unlinked."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def add(self, declared: EntityType, rows: pa.RecordBatch) -> None:
        if rows.num_rows == 0:
            return
        key = declared.table_key
        self._declared[key] = declared
        self._held.setdefault(key, []).append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes > self._budget:
            self._spill()

    def tables(self) -> Mapping[str, pa.Table]:
        """All rows by table key; types without rows are absent."""
        return {key: self._table(key) for key in sorted(self._declared)}

    def _table(self, key: str) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        for path in self._files.get(key, ()):
            batches += pa.ipc.open_file(pa.memory_map(str(path))).read_all().to_batches()
        return pa.Table.from_batches([*batches, *self._held.get(key, ())])

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = TemporaryFolder("omnigraph-load-", self._scratch)
        number = sum(map(len, self._files.values()))
        for key, batches in self._held.items():
            path = Path(self._folder.name) / f"{number}.arrow"
            number += 1
            with pa.ipc.new_file(str(path), batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
            self._files.setdefault(key, []).append(path)
        self._held.clear()
        self._held_bytes = 0
