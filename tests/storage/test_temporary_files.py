"""Temporary files of killed writers: which are found, and which stay."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from omnigraph.storage.cleanup import list_temporary_files, remove_temporary_files
from omnigraph.storage.uris import normalise_root

DAY = 86400.0
LEFT = [
    "#4611686018427387904",
    "nodes/a/data/1010.lance#1",
    "nodes/a/_versions/.tmp6AWTXI",
    "nodes/a/tree/b/_versions/latest_version_hint.json.4711",
    "nodes/a/_refs/branches/b.json.tmp.90d5a83816c7432a9092d67f04197d75",
    "__recovery/#17",
    "__recovery/#0",
]
OURS = [
    "_schema.pg",
    "nodes/a/data/1010.lance",
    "nodes/a/_versions/18446744073709551609.manifest",
    "nodes/a/_versions/latest_version_hint.json",
    "nodes/a/_refs/branches/tmp.json",
    "nodes/a/_refs/branches/x.tmp.json",
    "__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json",
    "photos/holiday#1",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*LEFT, *OURS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        _age(path)
    return tmp_path


def _age(path: Path) -> None:
    old = path.stat().st_mtime - 2 * DAY
    os.utime(path, (old, old))


def left(folder: Path) -> list[str]:
    return list_temporary_files(normalise_root(str(folder)), ["nodes", "__recovery", "edges"], DAY)


def remove(folder: Path) -> list[str]:
    return remove_temporary_files(
        normalise_root(str(folder)), ["nodes", "__recovery", "edges"], DAY
    )


def test_exactly_the_temporary_files_go(folder):
    assert left(folder) == sorted(LEFT)
    assert remove(folder) == sorted(LEFT)
    assert left(folder) == []
    assert all((folder / name).read_text() == name for name in OURS)


@pytest.mark.parametrize("name", LEFT)
def test_one_that_a_writer_has_touched_lately_stays(folder, name):
    os.utime(folder / name)
    assert left(folder) == sorted(set(LEFT) - {name})


def test_a_lock_that_is_held_stays(folder):
    with open(folder / "__recovery/#0", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "__recovery/#0" not in remove(folder)
    assert remove(folder) == ["__recovery/#0"]


def test_folders_of_single_writes_go_when_they_are_empty(folder):
    made = [folder / "nodes/a" / name for name in ("_indices/u1", "_indices/u2", "tree/c")]
    for path in made:
        path.mkdir(parents=True)
    (made[1] / "page.lance").touch()
    for path in made:
        _age(path)
    assert set(remove(folder)) - set(LEFT) == {"nodes/a/_indices/u1"}
    assert [path.exists() for path in made] == [False, True, True]


def test_what_goes_meanwhile_is_not_counted(folder, monkeypatch):
    real = os.open

    def late(path, *arguments):
        if str(path).endswith("#17"):
            os.unlink(path)
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", late)
    assert remove(folder) == sorted(set(LEFT) - {"__recovery/#17"})


def test_nothing_is_looked_for_elsewhere():
    assert list_temporary_files(normalise_root("memory://x"), ["nodes"], DAY) == []
