"""The net changes between two snapshots, as Arrow, JSON documents and counts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EntityType, NodeType
from omnigraph.diagnostics import counted, with_hint
from omnigraph.diff.changes import (
    ABSENT,
    Op,
    Side,
    TableChanges,
    row_documents,
    taken_where,
)
from omnigraph.errors import InputError
from omnigraph.storage.changed_rows import Numbers

_ROWS_PER_READ = 4096
_CURSOR_PREFIX = "p1."

_CHANGES = pa.schema(
    [
        pa.field("table_key", pa.utf8(), nullable=False),
        pa.field("kind", pa.utf8(), nullable=False),
        pa.field("type_name", pa.utf8(), nullable=False),
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("op", pa.utf8(), nullable=False),
        pa.field("src", pa.utf8()),
        pa.field("dst", pa.utf8()),
        pa.field("manifest_version", pa.int64(), nullable=False),
        pa.field("row_version", pa.int64()),
    ]
)
_DOCUMENT_COLUMNS = [name for name in _CHANGES.names if not name.endswith("_version")]
"""The columns that a change document has too."""


_Position = tuple[str, str]
"""The table key and id of a change."""


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """The changes that a caller wants. An empty set does not restrict."""

    types: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    ops: frozenset[Op] = frozenset()

    @classmethod
    def parse(
        cls, types: Iterable[str] = (), kinds: Iterable[str] = (), ops: Iterable[str] = ()
    ) -> ChangeFilter:
        """Parse a caller's arguments. Raises `InputError` for an unknown kind or operation."""
        wanted = frozenset(kinds)
        if not wanted <= {"node", "edge"}:
            raise InputError(f"a kind is node or edge, not {', '.join(sorted(wanted))}")
        try:
            known = frozenset(Op(op) for op in ops)
        except ValueError:
            raise InputError("an operation is insert, update or delete") from None
        return cls(frozenset(types), wanted, known)

    def check(self, *catalogs: Catalog) -> None:
        """Raise `InputError` for a type that none of the schemas has."""
        known = {declared.name for catalog in catalogs for declared in catalog}
        for name in sorted(self.types - known):
            raise InputError(with_hint(f"there is no type '{name}'", name, known))

    def wants(self, declared: EntityType) -> bool:
        return (not self.types or declared.name in self.types) and (
            not self.kinds or kind_of(declared) in self.kinds
        )

    def select(self, changes: TableChanges) -> TableChanges:
        if not self.ops or not len(changes):
            return changes
        masks = [changes.mask(op) for op in sorted(self.ops, key=lambda op: op.value)]
        return changes.where(np.logical_or.reduce(masks))


@dataclass(frozen=True)
class Changes:
    """Changed rows by table key and id. Values are read on demand."""

    tables: tuple[TableChanges, ...] = field(default_factory=tuple)
    version: int = 0
    """The graph version after the changes."""

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables)

    def to_arrow(self) -> pa.Table:
        """One row per change: table, id, operation and the endpoints of edges.

        `manifest_version` is the graph version after the changes. `row_version` is the table version
        that wrote the row, if both states are on the same branch of the table.
        """
        found = [self._with_versions(table) for table in self.tables]
        return pa.concat_tables([_CHANGES.empty_table(), *found])

    def _with_versions(self, table: TableChanges) -> pa.Table:
        version = pa.repeat(pa.scalar(self.version, pa.int64()), len(table))
        columns = [*_narrow(table).columns, version, table.row_versions()]
        return pa.Table.from_arrays(columns, schema=_CHANGES)

    def values(self, type_name: str) -> pa.Table:
        """The changed rows of one type: `op`, `id`, and the structs `before` and `after`.

        A struct is null if the row does not exist.
        """
        for table in self.tables:
            if table.declared.name == type_name:
                return pa.table(
                    {
                        "op": table.ops(),
                        "id": table.ids,
                        "before": _structs(table.declared, table.before, table.before_numbers),
                        "after": _structs(table.declared, table.after, table.after_numbers),
                    }
                )
        raise InputError(f"nothing of type '{type_name}' has changed")

    def stats(self) -> dict[str, Any]:
        """The numbers of inserts, updates and deletes, and the affected types."""
        counted = [table.counts() for table in self.tables]
        totals = {op: sum(counts[op] for counts in counted) for op in Op}
        return {
            "inserts": totals[Op.INSERT],
            "updates": totals[Op.UPDATE],
            "deletes": totals[Op.DELETE],
            "types_affected": sorted({t.declared.name for t in self.tables if len(t)}),
        }

    def documents(self, *, rows: bool = False) -> Iterator[dict[str, Any]]:
        """The changes as documents; with `rows`, with their values before and after."""
        for table in self.tables:
            for start in range(0, len(table), _ROWS_PER_READ):
                part = np.zeros(len(table), np.bool_)
                part[start : start + _ROWS_PER_READ] = True
                yield from _documents(table.where(part), rows=rows)

    def after(self, position: _Position | None, limit: int | None) -> Changes:
        """At most `limit` changes after a position."""
        left, found = limit, []
        for table in self.tables:
            key = table.declared.table_key
            if position is not None and key < position[0]:
                continue
            mask = np.ones(len(table), np.bool_)
            if position is not None and key == position[0]:
                mask = pc.greater(table.ids, position[1]).to_numpy(zero_copy_only=False)
            if left is not None:
                mask &= np.cumsum(mask) <= left
                left -= int(mask.sum())
            if mask.any():
                found.append(table.where(mask))
        return Changes(tuple(found), self.version)

    def last_position(self) -> _Position | None:
        if not self.tables:
            return None
        last = self.tables[-1]
        return last.declared.table_key, last.ids[-1].as_py()


@dataclass(frozen=True, repr=False)
class Diff:
    """The net changes between two states of a graph."""

    from_target: str
    to_target: str
    from_commit: str
    to_commit: str
    changes: Changes

    def __len__(self) -> int:
        return len(self.changes)

    def __repr__(self) -> str:
        stats = self.stats()
        counts = ", ".join(counted(stats[f"{op.value}s"], op.value) for op in Op)
        return f"<Diff {self.from_target} → {self.to_target}: {counts}>"

    def to_arrow(self) -> pa.Table:
        return self.changes.to_arrow()

    def values(self, type_name: str) -> pa.Table:
        return self.changes.values(type_name)

    def stats(self) -> dict[str, Any]:
        return self.changes.stats()

    def to_json(
        self,
        *,
        rows: bool = False,
        stat: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """The document of a diff. With a `limit`, `next_cursor` continues after the last change."""
        head = {
            "from": self.from_target,
            "to": self.to_target,
            "from_commit": self.from_commit,
            "to_commit": self.to_commit,
        }
        if stat:
            return head | {"stats": self.stats()}
        page = self.changes.after(None if cursor is None else _parse_cursor(cursor), limit)
        rest = self.changes.after(page.last_position(), 1) if len(page) else page
        return {
            **head,
            "changes": list(page.documents(rows=rows)),
            "stats": self.stats(),
            "next_cursor": _cursor(page.last_position()) if len(rest) else None,
        }


def kind_of(declared: EntityType) -> str:
    return "node" if isinstance(declared, NodeType) else "edge"


def _narrow(table: TableChanges) -> pa.Table:
    declared = table.declared
    src, dst = table.endpoints()
    same = (declared.table_key, kind_of(declared), declared.name)
    constants = [pa.repeat(pa.scalar(text), len(table)) for text in same]
    return pa.table([*constants, table.ids, table.ops(), src, dst], names=_DOCUMENT_COLUMNS)


def _structs(declared: EntityType, side: Side, numbers: Numbers) -> pa.Array:
    there = numbers != ABSENT
    rows = side.read(numbers[there], declared.columns).combine_chunks()
    columns = [rows.column(name).combine_chunks() for name in rows.column_names]
    fields = [field.with_nullable(True) for field in rows.schema]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return taken_where(structs, there)


def _documents(table: TableChanges, *, rows: bool) -> Iterator[dict[str, Any]]:
    declared = table.declared
    before = row_documents(declared, table.before, table.before_numbers) if rows else None
    after = row_documents(declared, table.after, table.after_numbers) if rows else None
    for number, change in enumerate(_narrow(table).to_pylist()):
        src, dst = change.pop("src"), change.pop("dst")
        if src is not None:
            change["endpoints"] = {"src": src, "dst": dst}
        if before is not None and after is not None:
            change |= {"before": before[number], "after": after[number]}
        yield change


def _cursor(position: _Position | None) -> str | None:
    if position is None:
        return None
    text = json.dumps(position, ensure_ascii=False, separators=(",", ":")).encode()
    return _CURSOR_PREFIX + base64.urlsafe_b64encode(text).decode().rstrip("=")


def _parse_cursor(text: str) -> _Position:
    """Raises `InputError` for an invalid cursor."""
    body = text.removeprefix(_CURSOR_PREFIX)
    try:
        match json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))):
            case [str(key), str(id)]:
                return key, id
    except ValueError:
        pass
    raise InputError(f"'{text}' is not a valid diff cursor; pass a next_cursor of the same diff")
