"""What this process knows of small files it has written, so that look-ups pass over them.

No index covers a file that was just written, and a look-up has to scan it, with some dozens of others
before they are folded. A file never changes: rows are at most deleted from it. So a value that was not
written into it is not there in any version or branch of the table.
Tests: tests/storage/tables/test_known_values.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Final

import pyarrow as pa

from omnigraph.limits import KNOWN_FILES, SMALL_WRITE_ROWS
from omnigraph.storage.filters import And, Comparison, Filter, In, Or

_COLUMNS: Final = ("id", "src", "dst")
"""The columns that look-ups ask for by value."""

_Values = Mapping[str, frozenset[object]]


class KnownValues:
    """Ids and ends of edges by the files they were written to, the latest small ones. Thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _Values] = OrderedDict()
        self._lock = Lock()

    def learn(self, files: str, rows: pa.Table) -> None:
        """Note what was written. Files with many rows are left to the indexes."""
        if rows.num_rows > SMALL_WRITE_ROWS:
            return
        # Texts are equal here exactly when they are in the store, which cannot be said of numbers.
        texts = [f.name for f in rows.schema if f.name in _COLUMNS and pa.types.is_string(f.type)]
        values = {name: frozenset(rows.column(name).to_pylist()) for name in texts}
        if not values:
            return
        with self._lock:
            self._files[files] = values
            while len(self._files) > KNOWN_FILES:
                self._files.popitem(last=False)

    def may_match(self, files: str, filter: Filter) -> bool:
        """Whether rows in these files may satisfy a filter, as far as it is known."""
        values = self._files.get(files)
        return values is None or _may_match(values, filter)


def asks_for_values(filter: Filter | None) -> bool:
    """Whether some files can be passed over because of a filter at all."""
    return filter is not None and not _may_match(dict.fromkeys(_COLUMNS, frozenset()), filter)


def _may_match(values: _Values, filter: Filter) -> bool:
    match filter:
        case Comparison(column, "=", value) if column in values:
            return value in values[column]
        case In(column, wanted) if column in values:
            return not values[column].isdisjoint(wanted)
        case And(parts):
            return all(_may_match(values, part) for part in parts)
        case Or(parts):
            return any(_may_match(values, part) for part in parts)
        case _:
            return True
