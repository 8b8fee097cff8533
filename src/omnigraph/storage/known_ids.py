"""What this process knows of the ids in small files it has written, so that look-ups pass over them.

No index covers a file that was just written, and a look-up by id has to scan it, with some dozens of
others before they are folded. A file never changes: rows are at most deleted from it. So an id that was
not written into it is not there in any version or branch of the table.
Tests: tests/storage/tables/test_known_ids.py.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import pyarrow as pa

from omnigraph.limits import KNOWN_FILES, SMALL_WRITE_ROWS
from omnigraph.storage.filters import And, Comparison, Filter, In


class KnownIds:
    """Ids by the files they were written to, of the latest small files. Thread-safe."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._lock = Lock()

    def learn(self, files: str, ids: pa.ChunkedArray) -> None:
        """Note what was written. Files with many rows are left to the indexes."""
        if len(ids) > SMALL_WRITE_ROWS:
            return
        known = frozenset(ids.to_pylist())
        with self._lock:
            self._ids[files] = known
            while len(self._ids) > KNOWN_FILES:
                self._ids.popitem(last=False)

    def lack(self, files: str, wanted: frozenset[str]) -> bool:
        """Whether it is certain that none of the ids is in these files."""
        known = self._ids.get(files)
        return known is not None and known.isdisjoint(wanted)


def wanted_ids(filter: Filter | None) -> frozenset[str] | None:
    """The ids of which a row must have one to satisfy a filter; None if it asks for others too."""
    match filter:
        case Comparison("id", "=", str() as value):
            return frozenset([value])
        case In("id", values):
            return frozenset(value for value in values if isinstance(value, str))
        case And(parts):
            return next((found for part in parts if (found := wanted_ids(part)) is not None), None)
        case _:
            return None
