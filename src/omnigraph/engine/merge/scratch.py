"""Rows that a merge will write: in memory, and beyond a budget in a scratch file mapped into memory."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from omnigraph.limits import MERGE_MEMORY_BYTES
from omnigraph.settings import read_settings
from omnigraph.temporary import TemporaryFolder


class ScratchRows:
    """Rows of one table in the order they were added."""

    def __init__(self, table_key: str, schema: pa.Schema) -> None:
        self._key = table_key
        self._schema = schema
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._spilled: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._held.append(rows)
            self._held_bytes += rows.nbytes
        if self._held_bytes > MERGE_MEMORY_BYTES:
            self._spill()

    def table(self) -> pa.Table:
        """All rows. Those in files stay readable: a file that is mapped outlives its name."""
        return pa.concat_tables([self._schema.empty_table(), *self._spilled, *self._held])

    def _spill(self) -> None:
        name = re.sub(r"[:/\\]", "-", self._key)
        prefix = f"omnigraph-merge-{name}-"
        folder = read_settings().merge_staging_dir
        with TemporaryFolder(prefix, folder) as place:
            path = Path(place) / "rows.arrow"
            with pa.ipc.new_file(str(path), self._schema) as file:
                for rows in self._held:
                    file.write_table(rows)
            self._spilled.append(pa.ipc.open_file(pa.memory_map(str(path))).read_all())
        self._held, self._held_bytes = [], 0
