"""What one atomic write brings to the tables of a graph, before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

WriteMode = Literal["append", "delta", "overwrite"]


def _no_ids() -> pa.Array:
    return pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The rows one write brings to one table, under property names, and the ids it removes.

    A strict write looked at rows it changes: it means something else on any other version of the
    table than the one it was prepared on.
    """

    table_key: str
    mode: WriteMode
    rows: pa.Table
    deletes: pa.Array = field(default_factory=_no_ids)
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """All table writes of one atomic write, and the other tables its checks looked at."""

    writes: tuple[TableWrite, ...]
    reads: frozenset[str] = frozenset()
