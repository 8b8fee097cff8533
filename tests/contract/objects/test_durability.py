"""What is synced, in which order, and when it is left out."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path
from threading import Barrier

import pytest

from omnigraph.errors import InputError, StoreCallFailed
from omnigraph.settings import read_settings
from omnigraph.storage import durability
from omnigraph.storage.durability import DiskSync, Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import normalise_root
from tests.support.faults import recording


@pytest.fixture
def root(tmp_path):
    return normalise_root(str(tmp_path / "graph"))


@pytest.fixture
def store(root):
    return open_store(root, Durability.FSYNC)


def synced(record):
    """The paths that were synced, in order; unfinished files are shown as `#`."""
    paths = [str(h.context["path"]) for h in record.hits if h.name == "durability.after_fsync"]
    return [Path(path).name if "#" not in path else "#" for path in paths]


def age(*directories):
    """Make a directory look as if it had not changed for a while."""
    for directory in directories:
        os.utime(directory, ns=(0, time.time_ns() - 60_000_000_000))


class TestSetting:
    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({}, Durability.FSYNC),
            ({"OMNIGRAPH_DURABILITY": "fsync"}, Durability.FSYNC),
            ({"OMNIGRAPH_DURABILITY": "none"}, Durability.NONE),
        ],
    )
    def test_it_is_read_from_the_environment(self, environment, expected):
        assert Durability(read_settings(environment).durability) is expected

    @pytest.mark.parametrize("value", ["", "FSYNC", "full", "0"])
    def test_another_value_is_refused_by_name(self, value):
        with pytest.raises(InputError, match=r"OMNIGRAPH_DURABILITY is .* 'fsync' or 'none'"):
            read_settings({"OMNIGRAPH_DURABILITY": value})


class TestLocalObjects:
    def test_the_file_is_synced_before_it_is_named_and_the_directory_after(self, root, store):
        target = Path(root.join("d/a"))
        named: list[tuple[bool, bool]] = []

        def look(point, context):
            named.append((Path(str(context["path"])).name.startswith("#"), target.exists()))

        durability.BEFORE_FSYNC.set_trap(look)
        try:
            assert store.write_text_if_absent("d/a", "1")
            target.unlink()
            store.write_text("d/a", "2")
        finally:
            durability.BEFORE_FSYNC.remove_trap(look)
        assert [step for step, _ in groupby(named)] == [(True, False), (False, True)] * 2

    def test_new_directories_are_synced_up_to_the_one_that_was_there(self, tmp_path, store):
        with recording() as record:
            store.write_text("a/b/c", "x")
        assert synced(record) == ["#", "b", "a", "graph", tmp_path.name]

    def test_unchanged_directories_are_not_synced_again(self, root, store):
        store.write_text("a/b/c", "x")
        age(root.uri, root.join("a"))
        store.write_text("a/b/c", "y")
        with recording() as record:
            store.write_text("a/b/c", "z")
        assert synced(record) == ["#", "b"]

    def test_a_directory_made_by_another_process_is_synced_with_what_is_put_there(
        self, root, store
    ):
        store.write_text("a/x/1", "x")
        age(root.uri, root.join("a"))
        store.write_text("a/x/2", "x")
        os.mkdir(root.join("a/y"))
        with recording() as record:
            store.write_text("a/y/1", "x")
        assert synced(record) == ["#", "y", "a"]

    def test_files_are_synced_together(self, tmp_path, monkeypatch):
        both = Barrier(2)
        real = os.fsync

        def fsync(handle):
            if stat.S_ISREG(os.fstat(handle).st_mode):
                both.wait(30)
            real(handle)

        paths = [tmp_path / "a", tmp_path / "b"]
        for path in paths:
            path.write_text("x")
        monkeypatch.setattr(os, "fsync", fsync)
        DiskSync(str(tmp_path), Durability.FSYNC).files(map(str, paths))

    def test_a_thread_that_outlives_the_main_one_still_syncs(self, tmp_path):
        code = (
            "import pathlib, sys, threading, time\n"
            "from omnigraph.storage.durability import DiskSync, Durability\n"
            "def work():\n"
            "    threading.main_thread().join()\n"
            "    time.sleep(0.2)\n"
            "    root = pathlib.Path(sys.argv[1])\n"
            "    DiskSync(str(root), Durability.FSYNC).files([str(root / 'a'), str(root / 'b')])\n"
            "    (root / 'done').touch()\n"
            "threading.Thread(target=work).start()\n"
        )
        for name in ("a", "b"):
            (tmp_path / name).write_text("x")
        ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60)
        assert ended.returncode == 0
        assert (tmp_path / "done").exists()

    def test_a_rename_syncs_both_directories(self, root, store):
        store.write_text("a/1", "x")
        store.write_text("b/2", "x")
        age(root.uri)
        store.write_text("a/1", "y")
        with recording() as record:
            store.rename_text("a/1", "b/1")
        assert synced(record) == ["b", "a"]

    def test_a_conditional_update_syncs_like_a_write(self, root, store):
        store.write_text("a/1", "x")
        age(root.uri)
        store.write_text("a/1", "y")
        _, token = store.read_text_versioned("a/1")
        with recording() as record:
            assert store.write_text_if_match("a/1", "z", token)
        assert synced(record) == ["#", "a"]

    def test_reading_and_deleting_sync_nothing(self, store):
        store.write_text("d/a", "x")
        with recording() as record:
            store.read_text("d/a")
            store.list_dir("d")
            store.exists("d")
            store.delete("d/a")
            store.delete_prefix("d")
        assert record.hits == ()

    def test_with_none_nothing_is_synced_and_everything_else_is_the_same(self, root):
        store = open_store(root, Durability.NONE)
        with recording() as record:
            assert store.write_text_if_absent("d/a", "1")
            assert not store.write_text_if_absent("d/a", "2")
            _, token = store.read_text_versioned("d/a")
            assert store.write_text_if_match("d/a", "3", token)
            store.rename_text("d/a", "e/b")
        assert store.read_text("e/b") == "3"
        assert record.hits == ()

    @pytest.mark.parametrize("call", ["write_text", "write_text_if_absent"])
    def test_a_failing_fsync_fails_the_write_and_leaves_nothing(
        self, root, store, call, monkeypatch
    ):
        def fail(descriptor):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(StoreCallFailed, match=r"storage sync failed for .*Input/output error"):
            getattr(store, call)("a", "x")
        assert os.listdir(root.uri) == []


class TestDiskSync:
    """Files somebody else wrote, such as those of a table."""

    @pytest.fixture
    def sync(self, root):
        for name in ("t/data/1", "t/data/2", "t/_versions/1"):
            path = Path(root.join(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        return DiskSync(root.uri, Durability.FSYNC)

    def test_files_come_before_directories_and_nothing_comes_twice(self, root, sync):
        paths = [root.join(f"t/{name}") for name in ("data/1", "data/2", "data/1", "_versions/1")]
        with recording() as record:
            sync.files(paths)
        assert synced(record)[:3] == ["1", "2", "1"]
        assert synced(record)[3:] == ["_versions", "data", "t", "graph"]

    def test_many_files_are_all_on_the_disk_before_their_directory(self, root, sync, monkeypatch):
        names = [f"t/many/{n}" for n in range(20)]
        for name in names:
            path = Path(root.join(name))
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        done = []
        fsync = os.fsync

        def observed(descriptor):
            fsync(descriptor)
            done.append(os.fstat(descriptor).st_ino)

        monkeypatch.setattr(os, "fsync", observed)
        with recording() as record:
            sync.files([root.join(name) for name in names])
        assert set(done[:20]) == {os.stat(root.join(name)).st_ino for name in names}
        assert synced(record)[:20] == [str(n) for n in range(20)]
        assert synced(record)[20:] == ["many", "t", "graph"]

    def test_one_of_many_files_that_cannot_be_synced_fails_them_all(self, root, sync):
        paths = [root.join(f"t/data/{n}") for n in (1, 2)] + [root.join(f"t/{n}") for n in "abc"]
        with pytest.raises(StoreCallFailed, match=r"storage sync failed for '.*/t/a': No such"):
            sync.files(paths)

    def test_a_missing_file_is_an_error(self, root, sync):
        with pytest.raises(
            StoreCallFailed, match=r"storage sync failed for '.*gone': No such file"
        ):
            sync.files([root.join("t/gone")])

    def test_with_none_nothing_is_even_looked_at(self, root):
        sync = DiskSync(root.uri, Durability.NONE)
        sync.files([root.join("gone")])
        sync.directory(root.join("gone"))

    def test_a_directory_that_was_replaced_is_synced_again(self, root, sync):
        """Even if the new one gets the number of the old one."""
        age(root.uri, root.join("t"))
        sync.files([root.join("t/data/1")])
        os.rename(root.join("t"), root.join("old"))
        os.mkdir(root.join("t"))
        os.rename(root.join("old/data"), root.join("t/data"))
        with recording() as record:
            sync.files([root.join("t/data/1")])
        assert synced(record) == ["1", "data", "t", "graph"]
