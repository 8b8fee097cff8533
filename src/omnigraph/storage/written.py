"""Rows that several processes write for one change, in files no version names yet.

A task that writes some describes them in a form that can be sent; the committer joins the descriptions to
one staged change. Files that no commit will name are removed again.
Tests: tests/storage/tables/test_written.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal

import lance
import numpy as np
import pyarrow as pa
from lance import LanceOperation

from omnigraph.errors import StorageError
from omnigraph.storage.delta import Ids, delete_at, find_targets, rewriting, write_upserts
from omnigraph.storage.lineage import Lineage
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.refs import tree_of
from omnigraph.storage.scan import ROW_ADDRESS
from omnigraph.storage.stage import RowCounts, StagedChange, write_rows
from omnigraph.storage.table import Table

WriteKind = Literal["append", "delta", "overwrite"]

_NONE: Final[Set[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows in their own files. `known` of them replace rows at the addresses in `replaces`.

    The other addresses there are those of `removed` rows, which nothing replaces. An overwrite
    replaces everything; `known` are the rows whose id was there before.
    """

    fragments: tuple[str, ...]
    rows: int
    known: int
    replaces: pa.Array
    removed: int = 0


@dataclass(frozen=True, slots=True)
class ShrunkFragments:
    """Fragments that lost rows, and those that lost all of them."""

    removed: tuple[int, ...]
    fragments: tuple[str, ...]


def write_part(table: Table, rows: pa.Table, kind: WriteKind, deletes: Ids = ()) -> WrittenRows:
    """Write a part of the rows of a change; no other part has a row of the same id.

    A delta may delete rows as well.
    """
    nothing, removed = pa.array([], pa.uint64()), 0
    if kind == "delta":
        targets = find_targets(table, rows, deletes)
        written = write_upserts(table, rows, targets)
        known, removed = targets.counts.updated, targets.counts.deleted
        replaces = targets.found.column(ROW_ADDRESS).combine_chunks()
    else:
        written, replaces = write_rows(table, rows), nothing
        overwrites = kind == "overwrite" and table.row_count() > 0
        known = table.lookup(rows.column("id").combine_chunks()).num_rows if overwrites else 0
    stored = sum(fragment.physical_rows for fragment in written)
    if stored != rows.num_rows:
        raise StorageError(
            f"only {stored} of {rows.num_rows} rows for '{table.lineage.name}' were stored"
        )
    return WrittenRows(tuple(map(_described, written)), stored, known, replaces, removed)


def by_fragment(parts: Iterable[WrittenRows]) -> list[pa.Array]:
    """The addresses of all replaced rows, those of one fragment together."""
    addresses = np.sort(np.concatenate([_no_addresses(), *(p.replaces.to_numpy() for p in parts)]))
    if not addresses.size:
        return []
    _, starts = np.unique(addresses >> np.uint64(32), return_index=True)
    return [pa.array(same) for same in np.split(addresses, starts[1:])]


def shrink(table: Table, addresses: pa.Array) -> ShrunkFragments:
    """The fragments without the rows at these addresses, which are all that they lose."""
    removed, left = delete_at(table, addresses)
    return ShrunkFragments(tuple(removed), tuple(map(_described, left)))


def stage_written(
    table: Table,
    kind: WriteKind,
    parts: Sequence[WrittenRows],
    shrunk: Sequence[ShrunkFragments] = (),
) -> StagedChange:
    """The parts as one change of the table they were written for."""
    fragments = [_fragment(text) for part in parts for text in part.fragments]
    rows, known = sum(p.rows for p in parts), sum(p.known for p in parts)
    before = table.row_count()
    operation: LanceOperation.BaseOperation
    match kind:
        case "append":
            counts, after = RowCounts(inserted=rows), before + rows
            operation = LanceOperation.Append(fragments)
        case "overwrite":
            counts, after = RowCounts(inserted=rows, deleted=before), rows
            operation = LanceOperation.Overwrite(table.dataset.lance_schema, fragments)
        case "delta":
            gone = sum(part.removed for part in parts)
            counts = RowCounts(inserted=rows - known, updated=known, deleted=gone)
            after = before + rows - known - gone
            removed = [number for s in shrunk for number in s.removed]
            updated = [_fragment(text) for s in shrunk for text in s.fragments]
            operation = rewriting(table, removed, updated, fragments)
    return StagedChange(kind, table.lineage, table.version, counts, after, operation)


def remove_written(
    objects: ObjectStore, lineage: Lineage, fragments: Iterable[str], *, besides: Set[str] = _NONE
) -> None:
    """Remove files that no commit names and none ever will, those in `besides` excepted."""
    for path in _files(lineage, fragments):
        if os.path.basename(path) in besides:
            continue
        objects.delete(path)
        objects.delete_prefix(os.path.splitext(path)[0])


def move_written(
    objects: ObjectStore, source: Lineage, target: Lineage, fragments: Iterable[str]
) -> None:
    """Bring files to another line of versions of the table they were written for."""
    for path in _files(source, fragments):
        here, there = f"{_folder(source)}/data/", f"{_folder(target)}/data/"
        beside = os.path.splitext(path)[0]
        for file in [*objects.list_dir(beside), path]:
            objects.rename_text(file, there + file.removeprefix(here))


def _files(lineage: Lineage, fragments: Iterable[str]) -> list[str]:
    """The data files of described fragments, as paths in the graph."""
    folder = _folder(lineage)
    return [f"{folder}/data/{file.path}" for text in fragments for file in _fragment(text).files]


def _folder(lineage: Lineage) -> str:
    if lineage.branch is None:
        return lineage.path
    return f"{lineage.path}/{tree_of(lineage.branch)}"


def _described(fragment: lance.FragmentMetadata) -> str:
    return json.dumps(fragment.to_json())


def _fragment(text: str) -> lance.FragmentMetadata:
    return lance.FragmentMetadata.from_json(text)


def _no_addresses() -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.zeros(0, np.uint64)
