"""A store that cannot keep a graph safely is found out, and nothing is left of the attempt."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.errors import StoreCallFailed, UnsafeStore
from omnigraph.storage.durability import Durability
from omnigraph.storage.memory_objects import MemoryObjects
from omnigraph.storage.objects import open_store, probe_hard_links, probe_store
from omnigraph.storage.uris import normalise_root
from tests.contract.objects.moto_server import environment_for
from tests.contract.objects.places import open_place
from tests.contract.objects.stub_server import stub_server
from tests.support.faults import recording


def left_in(place):
    if place.root.kind == "local":
        return os.listdir(place.root.uri)
    return [path for path in ("", "__probe") if open_place(place).exists(path)]


def without_links(monkeypatch):
    def link(source, target, **options):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)


def test_a_safe_store_passes_and_nothing_stays(place, store):
    probe_store(store, place.root)
    assert left_in(place) == []


def test_objects_that_were_there_stay(place, store):
    store.write_text("__probe/other", "x")
    store.write_text("a", "x")
    probe_store(store, place.root)
    assert store.list_dir("__probe") == ["__probe/other"]
    assert store.list_dir("") == ["a"]


def test_several_may_probe_one_place_at_once(place):
    store = open_place(place)
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(probe_store, store, place.root) for _ in range(16)]:
            future.result()
    assert left_in(place) == []


class TestUnsafe:
    @pytest.mark.parametrize(
        ("ignored", "check"),
        [
            ("if-none-match", "refuse to create twice"),
            ("if-match", "refuse to replace a change"),
        ],
    )
    def test_a_server_that_ignores_a_condition(self, ignored, check, monkeypatch):
        with stub_server(ignored=frozenset({ignored})) as stub:
            for name, value in environment_for(stub.endpoint).items():
                monkeypatch.setenv(name, value)
            root = normalise_root("s3://bucket/g")
            with pytest.raises(UnsafeStore, match="does not honour conditional put") as caught:
                probe_store(open_store(root, Durability.FSYNC), root)
            assert caught.value.check == check
            assert caught.value.uri == "s3://bucket/g"
            assert check in str(caught.value)
            assert stub.objects == {}

    def test_a_directory_without_hard_links(self, local_place, monkeypatch):
        without_links(monkeypatch)
        with pytest.raises(UnsafeStore, match="hard links") as caught:
            probe_store(open_place(local_place), local_place.root)
        assert caught.value.check == "create if absent"
        assert left_in(local_place) == []


@pytest.mark.parametrize(
    ("method", "answers", "check"),
    [
        ("write_text_if_absent", [False], "create if absent"),
        ("read_text_versioned", [("b", "1")], "read back"),
        ("write_text_if_match", [None], "replace if unchanged"),
        ("read_text", ["d"], "refuse to replace a change"),
    ],
)
def test_any_other_outcome_is_named_too(memory_place, monkeypatch, method, answers, check):
    def answer(self, *arguments):
        return answers.pop(0)

    monkeypatch.setattr(MemoryObjects, method, answer)
    with pytest.raises(UnsafeStore, match="does not honour conditional put") as caught:
        probe_store(open_place(memory_place), memory_place.root)
    assert caught.value.check == check


def test_a_store_that_fails_is_not_called_unsafe(monkeypatch):
    for name, value in environment_for("http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("omnigraph.storage.remote_objects._REPEAT", {"max_retries": 0})
    root = normalise_root("s3://bucket/g")
    with pytest.raises(StoreCallFailed, match="storage create failed"):
        probe_store(open_store(root, Durability.FSYNC), root)


def test_a_failing_removal_does_not_hide_the_reason(memory_place, monkeypatch):
    def fail(self, path):
        raise StoreCallFailed("delete", path, "no")

    monkeypatch.setattr(MemoryObjects, "delete_prefix", fail)
    monkeypatch.setattr(MemoryObjects, "write_text_if_absent", lambda self, path, text: True)
    with pytest.raises(UnsafeStore, match="refuse to create twice"):
        probe_store(open_place(memory_place), memory_place.root)


class TestHardLinks:
    """The part that is repeated whenever a graph is opened for writing."""

    def test_a_place_with_hard_links_passes_unchanged_and_unsynced(self, place):
        if place.root.kind == "local":
            os.mkdir(place.root.uri)
        with recording() as record:
            probe_hard_links(place.root)
        assert left_in(place) == []
        assert record.hits == ()

    def test_a_place_without_is_refused(self, local_place, monkeypatch):
        without_links(monkeypatch)
        with pytest.raises(UnsafeStore, match="hard links"):
            probe_hard_links(local_place.root)
        assert left_in(local_place) == []
