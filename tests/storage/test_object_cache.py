"""What is kept of objects that never change: within bounds, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.limits import CACHED_OBJECT_BYTES
from omnigraph.storage.remote_objects import DiskFolder, ObjectCache


def test_memory_keeps_what_was_used_last_within_its_bound() -> None:
    cache = ObjectCache(memory_bytes=30)
    for name in "abc":
        cache.put(name, name.encode() * 10)
    assert cache.get("a") == b"a" * 10
    cache.put("d", b"d" * 10)
    assert [cache.get(name) is not None for name in "abcd"] == [True, False, True, True]
    cache.put("d", b"new")
    cache.put("e", b"e" * 7)
    assert [cache.get(name) for name in "acde"] == [b"a" * 10, b"c" * 10, b"new", b"e" * 7]


def test_a_large_object_is_not_kept() -> None:
    cache = ObjectCache()
    cache.put("large", b"x" * (CACHED_OBJECT_BYTES + 1))
    assert cache.get("large") is None


def test_a_folder_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ObjectCache().put("before", b"in memory only")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "made" / "here"))
    ObjectCache().put("name", b"content")
    other = ObjectCache()
    assert other.get("name") == b"content"
    assert other.get("before") is None
    assert [path.suffix for path in (tmp_path / "made" / "here").iterdir()] == [".object"]


@pytest.mark.parametrize("damage", [b"", b"short", None, b"\0" * 60])
def test_a_damaged_entry_is_ignored_and_goes(tmp_path: Path, damage: bytes | None) -> None:
    folder = DiskFolder(tmp_path)
    folder.put("name", b"content")
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"!" if damage is None else damage)
    assert folder.get("name") is None
    assert list(tmp_path.iterdir()) == []
    folder.put("name", b"content")
    assert folder.get("name") == b"content"


def test_an_entry_in_the_place_of_another_is_damaged(tmp_path: Path) -> None:
    folder = DiskFolder(tmp_path)
    folder.put("one", b"content")
    [one] = tmp_path.iterdir()
    folder.put("other", b"different")
    [other] = set(tmp_path.iterdir()) - {one}
    os.replace(one, other)
    assert folder.get("other") is None


def test_a_full_folder_loses_what_was_not_used_for_longest(tmp_path: Path) -> None:
    folder = DiskFolder(tmp_path, most_bytes=1000)
    for number in range(9):
        folder.put(f"n{number}", b"x" * 68)  # With its digest, an entry has 100 bytes.
        for age, path in enumerate(sorted(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime_ns)):
            os.utime(path, ns=(age, age))
    assert folder.get("n0") is not None
    folder.put("n9", b"x" * 68)
    folder.put("n10", b"x" * 68)
    used = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert used <= 750
    assert [folder.get(f"n{n}") is not None for n in (0, 1, 2, 9, 10)] == [
        True, False, False, True, True,
    ]  # fmt: skip


def test_a_folder_that_cannot_be_used_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    folder = DiskFolder(tmp_path / "file")
    folder.put("name", b"content")
    assert folder.get("name") is None
