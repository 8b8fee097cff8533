"""How long the basic steps of storage take here. Prints; asserts nothing.

python -m tests.storage.tables.measure [directory]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.storage.compact import compact_with_indexes, small_fragments
from omnigraph.storage.delta import insert_exclusively, stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import stage_btree_index
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.rows import KEYED, PEOPLE, numbered

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph.storage.stage import StagedChange
    from omnigraph.storage.table import Table

ROUNDS = 30


def milliseconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return (time.perf_counter() - start) * 1e3


def show(label: str, times: list[float]) -> None:
    ordered = sorted(times)
    p95 = ordered[int(len(ordered) * 0.95)]
    print(f"{label:<58} p50 {statistics.median(times):8.2f} ms   p95 {p95:8.2f} ms")


def ids(count: int) -> list[str]:
    dice = random.Random(count)
    return [f"{dice.getrandbits(80):020x}" for _ in range(count)]


class Growing:
    """A table that moves on with every step that is measured."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def change(self, stage: Callable[[Table], StagedChange | None]) -> None:
        staged = stage(self.table)
        assert staged is not None
        self.table = commit_staged(self.table, staged, operation_id="op", writer_kind="Measure")


def measure_changes(store: TableStore, label: str, rows: int) -> None:
    known = ids(rows)
    content = numbered(dict.fromkeys(known, 1))
    growing = Growing(store.create(f"nodes/{label}", PEOPLE, rows=content))
    growing.change(lambda t: stage_btree_index(t, "id"))
    fresh = iter(f"new{n}" for n in range(10**6))
    dice = random.Random(1)

    def upsert(count: int) -> Callable[[Table], StagedChange | None]:
        chosen: dict[str, int | None] = dict.fromkeys(dice.sample(known, count), 2)
        return lambda t: stage_delta(t, numbered(chosen), [])

    steps: dict[str, Callable[[], Any]] = {
        "append 1 new row": lambda: lambda t: stage_append(t, numbered({next(fresh): 1})),
        "delta: replace 1 row": lambda: upsert(1),
        "delta: replace 1,000 rows": lambda: upsert(1_000),
    }
    for name, step in steps.items():
        times = []
        for _ in range(ROUNDS):
            change = step()
            times.append(milliseconds(partial(growing.change, change)))
            if small_fragments(growing.table, 10_000) > 64:
                growing.table = compact_with_indexes(growing.table)
        show(f"{label}, {rows:,} rows: {name}", times)
        growing.table = compact_with_indexes(growing.table)
    wanted = pa.array(dice.sample(known, 1_000))
    for count in (1, 100, 1_000):
        part = wanted.slice(0, count)
        growing.table.lookup(part, ["id", "_rowid"])
        times = [milliseconds(partial(growing.table.lookup, part)) for _ in range(ROUNDS)]
        show(f"{label}, {rows:,} rows: look up {count:,} ids", times)


def measure_inserts(store: TableStore, label: str) -> None:
    table = store.create(f"keyed-{label}", KEYED, rows=numbered({"start": 0}, KEYED))
    staged = stage_btree_index(table, "id")
    assert staged is not None
    table = commit_staged(table, staged, operation_id="op", writer_kind="Measure")
    times = []
    for number in range(200):
        rows = numbered({f"{number}-{part}": 1 for part in range(4)}, KEYED)
        opened = store.open(table.path)
        times.append(milliseconds(partial(insert_exclusively, opened, rows)))
        if small_fragments(store.open(table.path), 1_024) > 32:
            compact_with_indexes(store.open(table.path))
    show(f"{label}: insert 4 rows by key, compacted every 32", times)


def main(directory: str) -> None:
    for durability in Durability:
        store = TableStore(normalise_root(f"{directory}/{durability.value}"), durability)
        measure_changes(store, durability.value, 100_000)
        measure_inserts(store, durability.value)
    store = TableStore(normalise_root(f"{directory}/large"), Durability.FSYNC)
    measure_changes(store, "fsync-large", 1_000_000)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1] if len(sys.argv) > 1 else scratch)
