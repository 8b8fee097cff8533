"""What a table commit brings onto the disk, and in which order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph.errors import StoreCallFailed
from omnigraph.faults import FAULT_POINTS
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import insert_exclusively, stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import stage_btree_index
from omnigraph.storage.lineage import version_file
from omnigraph.storage.stage import stage_append, stage_overwrite, stage_restore
from omnigraph.storage.tables import TableStore
from tests.storage.tables.rows import KEYED, commit, make, numbered, people

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from omnigraph.storage.stage import StagedChange
    from omnigraph.storage.table import Table

NOT_NEEDED = ("latest_version_hint.json",)
"""Files that may be lost: the hint is only a hint."""


class Disk:
    """All files below a directory, which of them are new, and the order in which they were synced."""

    def __init__(self, root: str) -> None:
        self.root = Path(root)
        self.synced: list[Path] = []
        self.present_at_sync: dict[Path, set[Path]] = {}
        self._before = self.files()

    def files(self) -> set[Path]:
        return {p.relative_to(self.root) for p in self.root.rglob("*") if p.is_file()}

    def saw(self, _point: object, context: Mapping[str, object]) -> None:
        path = Path(str(context["path"]))
        if path == self.root or self.root in path.parents:
            name = path.relative_to(self.root)
            self.synced.append(name)
            self.present_at_sync.setdefault(name, self.files())

    @property
    def new(self) -> set[Path]:
        return {p for p in self.files() - self._before if p.name not in NOT_NEEDED}

    def check_complete(self) -> None:
        """Every new file was synced, and after it its directory and all those above."""
        assert self.new
        for file in self.new:
            assert file in self.synced, f"{file} was not synced"
            for directory in file.parents:
                position = len(self.synced) - 1 - self.synced[::-1].index(directory)
                assert position > self.synced.index(file), f"{directory} was not synced in time"

    def check_order(self) -> None:
        """What a version names was on the disk before the version existed."""
        version = next(p for p in self.new if p.parent.name == "_versions")
        for file in self.new:
            if file.parent.name not in ("_versions", "_transactions"):
                assert version not in self.present_at_sync[file], f"{version} came before {file}"


@pytest.fixture
def watch(root) -> Iterator[Callable[[], Disk]]:
    point = FAULT_POINTS["durability.after_fsync"]
    traps = []

    def start() -> Disk:
        disk = Disk(root.uri)
        point.set_trap(disk.saw)
        traps.append(disk.saw)
        return disk

    yield start
    for trap in traps:
        point.remove_trap(trap)


@pytest.fixture
def durable(root) -> TableStore:
    return TableStore(root, Durability.FSYNC)


BLOBS = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("pic", pa.large_binary())])


def pictures(**sizes: int) -> pa.Table:
    pics = [os.urandom(size) for size in sizes.values()]
    return pa.table({"id": list(sizes), "pic": pa.array(pics, pa.large_binary())})


STAGED: dict[str, Callable[[Table], StagedChange | None]] = {
    "append": lambda table: stage_append(table, people(cy=3)),
    "delta": lambda table: stage_delta(table, people(ada=10, dee=4), ["bo"]),
    "overwrite": lambda table: stage_overwrite(table, people(cy=3)),
    "index": lambda table: stage_btree_index(table, "id"),
    "restore": lambda table: stage_restore(table, 1),
}


@pytest.mark.parametrize("branch", [None, "b"])
@pytest.mark.parametrize("kind", sorted(STAGED))
def test_a_staged_change_is_on_the_disk_before_its_version_and_its_version_before_the_return(
    durable, watch, kind, branch
):
    table = make(durable, ada=1, bo=2)
    if branch is not None:
        table = durable.create_branch(table.path, branch, source_branch=None, source_version=1)
    disk = watch()
    commit(table, STAGED[kind](table))
    disk.check_complete()
    disk.check_order()


def test_large_values_beside_a_data_file_are_synced_with_it(durable, watch):
    table = durable.create("nodes/pictures", BLOBS)
    disk = watch()
    commit(table, stage_append(table, pictures(small=10, packed=100_000, big=5_000_000)))
    assert sum(p.suffix == ".blob" for p in disk.new) == 2
    disk.check_complete()
    disk.check_order()


def test_a_new_table_is_on_the_disk_when_it_is_returned(durable, watch):
    disk = watch()
    durable.create("nodes/people", KEYED, rows=numbered({"a": 1}, KEYED), config={"a": "b"})
    assert len(disk.new) == 5
    disk.check_complete()


def test_a_new_branch_is_on_the_disk_and_its_ref_comes_last(durable, watch):
    make(durable, ada=1)
    disk = watch()
    durable.create_branch("nodes/people", "b", source_branch=None, source_version=1)
    disk.check_complete()
    files = [path for path in disk.synced if path.suffix]
    assert files[-1] == Path("nodes/people/_refs/branches/b.json")


def test_an_insert_is_on_the_disk_when_it_is_returned(durable, watch):
    table = durable.create("keyed", KEYED, rows=numbered({"a": 1}, KEYED))
    table = commit(table, stage_btree_index(table, "id"))
    disk = watch()
    insert_exclusively(table, numbered({"b": 2}, KEYED))
    disk.check_complete()


def test_a_predecessor_not_known_to_be_synced_is_synced_first(durable, root, watch):
    table = durable.create("keyed", KEYED, rows=numbered({"start": 0}, KEYED))
    careless = TableStore(root, Durability.NONE)
    unsafe = insert_exclusively(careless.open("keyed"), numbered({"a": 1}, KEYED))
    compact_with_indexes(unsafe)
    disk = watch()
    table = durable.open("keyed")
    before = {p for p in disk.files() if p.name not in NOT_NEEDED}
    insert_exclusively(table, numbered({"b": 2}, KEYED))
    version = Path("keyed", version_file(table.version))
    data = {Path("keyed", "data", name) for name in table.files()}
    assert {version, *data} <= set(disk.synced)
    assert disk.present_at_sync[version] <= before | disk._before
    disk.check_complete()
    again = watch()
    insert_exclusively(durable.open("keyed"), numbered({"c": 3}, KEYED))
    assert version not in again.synced


def test_compaction_is_on_the_disk_when_it_returns(durable, watch):
    table = make(durable, ada=1, bo=2)
    table = commit(table, stage_btree_index(table, "id"))
    table = commit(table, stage_append(table, people(cy=3)))
    disk = watch()
    compacted = compact_with_indexes(table)
    disk.check_complete()
    made = [
        disk.synced.index(Path(compacted.lineage.file(version_file(number))).relative_to(disk.root))
        for number in range(table.version + 1, compacted.version + 1)
    ]
    assert len(made) > 1
    assert made == sorted(made)


def test_nothing_is_synced_when_durability_is_switched_off(store, watch):
    disk = watch()
    table = make(store, ada=1, bo=2)
    table = commit(table, stage_delta(table, people(ada=10), ["bo"]))
    assert disk.synced == []
    assert table.version == 2


def test_a_disk_that_cannot_sync_fails_the_change_before_it_exists(durable, monkeypatch):
    table = make(durable, ada=1)
    staged = stage_append(table, people(bo=2))

    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreCallFailed, match="sync"):
        commit(table, staged)
    assert durable.open("nodes/people").version == 1
