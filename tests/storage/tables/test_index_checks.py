"""An index whose files are not what was written is not used, and is built again in its place."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import lance
import pytest

from omnigraph.errors import FileDamaged
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.durability import Durability
from omnigraph.storage.filters import Comparison
from omnigraph.storage.indexes import (
    CHECKSUMS,
    build_btree,
    damaged_indexes,
    list_indexes,
    stage_btree_index,
    stage_indexes,
)
from omnigraph.storage.lineage import version_file
from omnigraph.storage.objects import open_store
from omnigraph.storage.stage import stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.storage.tables.rows import commit, make, people

PATH = "nodes/people"
MANY = {f"n{number:05}": number for number in range(2000)}


def indexed(store, branch=None):
    table = make(store, **MANY)
    table = commit(table, stage_btree_index(table, "id"))
    if branch:
        table = store.create_branch(PATH, branch, source_branch=None, source_version=table.version)
    return table


def files_of(root, name):
    return sorted(Path(root.uri, PATH).glob(f"**/_indices/*/{name}"))


def found(table, id="n01234"):
    return table.read(["id"], filter=Comparison("id", "=", id)).column("id").to_pylist()


@pytest.mark.parametrize("branch", [None, "b"])
@pytest.mark.parametrize("name", ["page_data.lance", "page_lookup.lance"])
def test_any_changed_byte_of_an_index_is_noticed(store, root, branch, name):
    indexed(store, branch)
    (file,) = files_of(root, name)
    whole = file.read_bytes()
    positions = random.Random(7).sample(range(len(whole)), 40)
    for position in positions:
        changed = bytearray(whole)
        changed[position] ^= 1 << (position % 8)
        file.write_bytes(changed)
        table = TableStore(root, Durability.NONE).open(PATH, branch)
        assert list(damaged_indexes(table)) == ["id_idx"]
        assert list_indexes(table) == []
        assert found(table) == ["n01234"]


@pytest.mark.parametrize("branch", [None, "b"])
def test_a_damaged_index_is_replaced_by_the_next_one(store, root, branch):
    indexed(store, branch)
    for file in files_of(root, "*.lance"):
        file.write_bytes(b"")
    table = TableStore(root, Durability.NONE).open(PATH, branch)
    table = commit(table, stage_indexes(table, [build_btree(table, "id")]))
    again = TableStore(root, Durability.NONE).open(PATH, branch)
    assert damaged_indexes(again) == {}
    assert [len(index.parts) for index in list_indexes(again)] == [1]
    assert found(again) == ["n01234"]
    grown = commit(again, stage_append(again, people(zoe=1)))
    assert found(compact_with_indexes(grown), "zoe") == ["zoe"]


def test_an_index_that_is_lost_while_it_is_used_is_passed_over(store, root):
    """As one is that was lost after it had been compared, or has no checksums."""
    indexed(store)
    for file in files_of(root, "*"):
        file.unlink()
    table = TableStore(root, Durability.NONE).open(PATH)
    checks = table.lineage.checks
    assert checks is not None
    checks._damage = {str(s.uuid): None for i in _described(table) for s in i.segments}
    assert found(table) == ["n01234"]
    assert list(damaged_indexes(table)) == ["id_idx"]


def _described(table):
    return lance.dataset(table.lineage.uri).describe_indices()


def test_an_index_without_checksums_is_known_by_its_size(store, root):
    indexed(store)
    (checksums,) = files_of(root, CHECKSUMS)
    checksums.unlink()
    assert damaged_indexes(TableStore(root, Durability.NONE).open(PATH)) == {}
    (file,) = files_of(root, "page_data.lance")
    file.write_bytes(file.read_bytes()[:-1])
    table = TableStore(root, Durability.NONE).open(PATH)
    assert list(damaged_indexes(table)) == ["id_idx"]
    assert found(table) == ["n01234"]


def test_indexes_that_the_library_rewrites_have_checksums_too(store, root):
    table = indexed(store)
    table = compact_with_indexes(commit(table, stage_append(table, people(zoe=1))))
    (segment,) = _described(table)[0].segments
    folder = Path(root.uri, PATH, "_indices", segment.uuid)
    assert (folder / CHECKSUMS).is_file()
    lookup = folder / "page_data.lance"
    changed = bytearray(lookup.read_bytes())
    changed[len(changed) // 2] ^= 1
    lookup.write_bytes(changed)
    fresh = TableStore(root, Durability.NONE).open(PATH)
    assert list(damaged_indexes(fresh)) == ["id_idx"]
    assert found(fresh, "zoe") == ["zoe"]


@pytest.fixture
def on_s3(s3_endpoint, monkeypatch):
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return normalise_root(f"s3://{BUCKET}/{uuid.uuid4().hex}")


@pytest.mark.parametrize("how", ["missing", "empty", "half", "flip", "garbage"])
def test_a_damaged_index_on_an_object_store_is_passed_over_and_replaced(on_s3, how):
    made = indexed(TableStore(on_s3, Durability.NONE))
    objects = open_store(on_s3, Durability.NONE)
    folder = made.dataset.describe_indices()[0].segments[0].uuid
    for name in ("page_data.lance", "page_lookup.lance"):
        file = f"{PATH}/_indices/{folder}/{name}"
        whole = objects.read_bytes(file)
        middle = len(whole) // 2
        match how:
            case "missing":
                objects.delete(file)
            case "empty":
                objects.write_bytes(file, b"")
            case "half":
                objects.write_bytes(file, whole[:middle])
            case "flip":
                objects.write_bytes(file, whole[:middle] + b"\xff\x00" + whole[middle + 2 :])
            case "garbage":
                objects.write_bytes(file, random.Random(1).randbytes(len(whole)))
    table = TableStore(on_s3, Durability.NONE).open(PATH)
    assert list(damaged_indexes(table)) == ["id_idx"]
    assert found(table) == ["n01234"]
    commit(table, stage_indexes(table, [build_btree(table, "id")]))
    again = TableStore(on_s3, Durability.NONE).open(PATH)
    assert damaged_indexes(again) == {}
    assert found(again) == ["n01234"]


@pytest.mark.parametrize("how", ["empty", "half", "garbage"])
def test_nothing_on_an_object_store_is_taken_for_a_torn_write(on_s3, how):
    """A store keeps whole objects or none, so whatever cannot be read was acknowledged."""
    store = TableStore(on_s3, Durability.NONE)
    table = make(store, ada=1)
    commit(table, stage_append(table, people(bo=2)))
    objects = open_store(on_s3, Durability.NONE)
    file = f"{PATH}/{version_file(2)}"
    whole = objects.read_bytes(file)
    left = {"empty": b"", "half": whole[: len(whole) // 2], "garbage": b"\x07" * len(whole)}
    objects.write_bytes(file, left[how])
    fresh = TableStore(on_s3, Durability.NONE)
    assert fresh.find_torn(PATH) is None
    with pytest.raises(FileDamaged) as caught:
        fresh.open(PATH)
    assert caught.value.uri == on_s3.join(file)
