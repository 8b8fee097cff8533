"""What is particular to files: directories, links, permissions, locks, and what a crash leaves."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading

import pytest

from omnigraph.errors import StoreCallFailed, UnsafeStore
from omnigraph.storage import local_objects
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import is_addressable, normalise_root
from tests.support.faults import ENVIRONMENT_VARIABLE, Arm, Kill, describe


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "graph"


@pytest.fixture
def store(folder):
    return open_store(normalise_root(str(folder)), Durability.NONE)


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refuse(monkeypatch, function, code, below):
    """Let a call to the system fail for one file; the tests may run as a user who may do all."""
    real = getattr(os, function)

    def call(path, *args, **kwargs):
        if str(path).startswith(str(below)):
            raise OSError(code, os.strerror(code), str(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, function, call)


class TestDirectories:
    @pytest.mark.acceptance("S-134")
    def test_an_empty_directory_does_not_exist_and_one_with_a_file_does(self, folder, store):
        (folder / "d/e").mkdir(parents=True)
        assert not store.exists("d/e")
        assert not store.exists("d")
        (folder / "d/e/f").write_text("x")
        assert store.exists("d/e")
        assert store.exists("d")

    def test_directories_are_not_listed(self, folder, store):
        (folder / "d/e").mkdir(parents=True)
        assert store.list_dir("d") == []

    def test_deleting_a_prefix_removes_its_directories_and_empty_ones_above(self, folder, store):
        store.write_text("t/tree/b/data/1", "x")
        store.write_text("t/data/1", "x")
        (folder / "t/tree/b/empty/deep").mkdir(parents=True)
        store.delete_prefix("t/tree/b")
        assert everything_in(folder) == ["t", "t/data", "t/data/1"]

    def test_the_root_itself_stays(self, folder, store):
        store.write_text("a/b", "x")
        store.delete_prefix("a")
        assert everything_in(folder) == []
        assert folder.is_dir()

    def test_a_prefix_that_is_a_link_goes_without_its_target(self, tmp_path, folder, store):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/keep").write_text("x")
        folder.mkdir()
        (folder / "t").symlink_to(tmp_path / "elsewhere")
        assert store.read_text("t/keep") == "x"
        store.delete_prefix("t")
        assert everything_in(folder) == []
        assert (tmp_path / "elsewhere/keep").exists()

    def test_links_below_a_prefix_are_not_followed(self, tmp_path, folder, store):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/keep").write_text("x")
        (folder / "t").mkdir(parents=True)
        (folder / "t/link").symlink_to(tmp_path / "elsewhere")
        (folder / "t/loop").symlink_to("loop")
        assert store.exists("t")
        store.delete_prefix("t")
        assert (tmp_path / "elsewhere/keep").exists()


class TestFailures:
    def test_a_root_that_is_a_file_is_an_error_for_writers(self, folder, store):
        folder.write_text("not a folder")
        with pytest.raises(StoreCallFailed, match=r"storage create failed .*: Not a directory"):
            store.write_text_if_absent("a", "x")
        with pytest.raises(StoreCallFailed, match=r"storage write failed .*: Not a directory"):
            store.write_text("a", "x")
        assert folder.read_text() == "not a folder"

    def test_a_directory_is_not_overwritten_by_an_object(self, folder, store):
        store.write_text("d/a", "x")
        with pytest.raises(StoreCallFailed, match=r"storage write failed .*: Is a directory"):
            store.write_text("d", "x")
        assert not store.write_text_if_absent("d", "x")
        assert everything_in(folder) == ["d", "d/a"]

    @pytest.mark.parametrize(
        ("call", "function"),
        [
            ("exists", "stat"),
            ("exists", "scandir"),
            ("list_dir", "scandir"),
            ("delete", "unlink"),
            ("delete_prefix", "scandir"),
        ],
    )
    def test_a_missing_permission_is_an_error(self, folder, store, call, function, monkeypatch):
        store.write_text("d/a", "x")
        path = "d/a" if function in ("stat", "unlink") else "d"
        refuse(monkeypatch, function, errno.EACCES, folder / path)
        with pytest.raises(StoreCallFailed, match="Permission denied"):
            getattr(store, call)(path)

    def test_a_path_the_system_cannot_follow_is_an_error(self, folder, store):
        folder.mkdir()
        (folder / "loop").symlink_to("loop")
        for call in (store.exists, store.read_text, store.list_dir):
            with pytest.raises(StoreCallFailed, match="Too many levels of symbolic links"):
                call("loop/a")

    def test_a_name_may_be_as_long_as_the_system_allows_and_no_longer(self, store):
        longest = "n" * 255
        assert store.write_text_if_absent(longest, "1")
        store.write_text(longest, "2")
        _, token = store.read_text_versioned(longest)
        assert store.write_text_if_match(longest, "3", token)
        with pytest.raises(StoreCallFailed, match="File name too long"):
            store.write_text("n" * 256, "x")

    def test_a_write_that_does_not_fit_leaves_the_old_text_and_no_residue(self, folder, store):
        store.write_text("a", "old")
        _, token = store.read_text_versioned("a")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            for write in (
                lambda: store.write_text("a", "n" * 100_000),
                lambda: store.write_text_if_absent("b", "n" * 100_000),
                lambda: store.write_text_if_match("a", "n" * 100_000, token),
            ):
                with pytest.raises(StoreCallFailed, match="File too large"):
                    write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert everything_in(folder) == ["a"]
        assert store.read_text("a") == "old"

    def test_a_file_system_without_hard_links_is_unsafe(self, folder, store, monkeypatch):
        refuse(monkeypatch, "link", errno.EPERM, folder)
        with pytest.raises(UnsafeStore, match="hard links") as caught:
            store.write_text_if_absent("a", "x")
        assert caught.value.uri == str(folder)
        assert everything_in(folder) == []


def test_a_file_gets_the_permissions_of_any_new_file(folder, store):
    old = os.umask(0o027)
    try:
        store.write_text("a", "x")
        store.write_text_if_absent("b", "x")
    finally:
        os.umask(old)
    assert {(folder / name).stat().st_mode & 0o777 for name in "ab"} == {0o640}


def test_no_call_leaves_anything_but_its_object(folder, store):
    store.write_text("a", "1")
    store.write_text("a", "2")
    store.write_text_if_absent("a", "3")
    store.write_text_if_absent("b", "4")
    _, token = store.read_text_versioned("b")
    store.write_text_if_match("b", "5", token)
    store.write_text_if_match("b", "6", token)
    store.rename_text("b", "c")
    store.delete("a")
    store.delete("a")
    assert everything_in(folder) == ["c"]


class TestCrash:
    """A writer killed before its file was complete."""

    @pytest.fixture(params=["write_text", "write_text_if_absent"])
    def residue(self, request, folder):
        program = (
            "import sys\n"
            "from omnigraph.storage.durability import Durability\n"
            "from omnigraph.storage.objects import open_store\n"
            "from omnigraph.storage.uris import normalise_root\n"
            "from tests.support.faults import arm_from_environment\n"
            "arm_from_environment()\n"
            "store = open_store(normalise_root(sys.argv[1]), Durability.FSYNC)\n"
            "getattr(store, sys.argv[2])('d/a', 'text')\n"
        )
        killed = subprocess.run(
            [sys.executable, "-c", program, str(folder), request.param],
            env={
                **os.environ,
                ENVIRONMENT_VARIABLE: describe([Arm("durability.before_fsync", Kill())]),
            },
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        [name] = os.listdir(folder / "d")
        return name

    def test_the_residue_is_invisible_and_unreachable(self, folder, store, residue):
        assert not is_addressable(residue)
        assert store.list_dir("d") == []
        assert not store.exists("d")
        with pytest.raises(StoreCallFailed, match="not a valid object name"):
            store.read_text(f"d/{residue}")
        with pytest.raises(StoreCallFailed, match="not a valid object name"):
            store.delete(f"d/{residue}")

    def test_the_next_writer_succeeds_and_the_prefix_can_be_cleared(self, folder, store, residue):
        assert store.write_text_if_absent("d/a", "text")
        assert store.list_dir("d") == ["d/a"]
        store.delete_prefix("d")
        assert everything_in(folder) == []


class TestLock:
    """Whoever changes an object holds the lock of its directory."""

    @pytest.mark.parametrize("call", ["write_text", "write_text_if_match", "rename_text", "delete"])
    @pytest.mark.parametrize("removed", [False, True], ids=["lock file stays", "lock file goes"])
    def test_a_change_waits_for_it(self, folder, store, call, removed):
        store.write_text("a", "1")
        _, token = store.read_text_versioned("a")
        arguments = {
            "write_text": ("a", "2"),
            "write_text_if_match": ("a", "2", token),
            "rename_text": ("a", "b"),
            "delete": ("a",),
        }[call]
        lock = os.open(folder / "#0", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=getattr(store, call), args=arguments)
        thread.start()
        thread.join(0.05)
        waited = thread.is_alive() and (folder / "a").read_text() == "1"
        if removed:
            # As its holder does; whoever waited for it must lock another one.
            os.unlink(folder / "#0")
        os.close(lock)
        thread.join()
        assert waited
        assert everything_in(folder) == {"rename_text": ["b"], "delete": []}.get(call, ["a"])

    def test_reading_and_creating_do_not(self, folder, store):
        store.write_text("a", "1")
        lock = os.open(folder / "#0", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            assert store.read_text("a") == "1"
            assert store.list_dir("") == ["a"]
            assert store.write_text_if_absent("b", "2")
        finally:
            os.close(lock)

    def test_a_lock_file_left_by_a_crash_is_nothing(self, folder, store):
        folder.mkdir()
        (folder / "#0").touch()
        assert not store.exists("")
        store.write_text("a", "1")
        assert everything_in(folder) == ["a"]


def test_a_stamp_changes_with_any_of_the_files(folder, store, monkeypatch):
    monkeypatch.setattr(local_objects, "CLOCK_SLACK_NS", -(10**9))
    names = ["one", "two"]
    store.write_text("one", "1")
    assert store.stamp(names) is None
    store.write_text("two", "2")
    first = store.stamp(names)
    assert first is not None
    assert store.stamp(names) == first
    (folder / "two").write_text("3")
    second = store.stamp(names)
    assert second not in (None, first)
    store.write_text("one", "4")
    assert store.stamp(names) not in (None, first, second)


def test_files_that_have_just_changed_have_no_stamp(store):
    store.write_text("one", "1")
    assert store.stamp(["one"]) is None
