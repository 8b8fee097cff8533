"""What a write brings onto the disk before it is acknowledged, and in which order."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from omnigraph.storage import durability
from tests.crash.recovery.situations import ADD, HIRE, new_graph
from tests.support.faults import Call, armed

PASSING = ("latest_version_hint.json",)
"""Files that may be lost: the hint is only a hint."""


class Disk:
    """What is synced below a graph, in order, and what was there at that moment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.synced: list[Path] = []
        self.present: list[set[Path]] = []
        self._before = self.files()
        self._folders = {p.relative_to(root) for p in root.rglob("*") if p.is_dir()} | {Path()}

    def files(self) -> set[Path]:
        return {path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file()}

    def saw(self, hit) -> None:
        path = Path(str(hit.context["path"]))
        if path == self.root or self.root in path.parents:
            self.synced.append(path.relative_to(self.root))
            self.present.append({path.relative_to(self.root) for path in self.root.rglob("*")})

    @property
    def new(self) -> set[Path]:
        return {
            path
            for path in self.files() - self._before
            if path.name not in PASSING and path.parts[0] != "__locks"
        }

    def changed_folders(self, path: Path) -> list[Path]:
        """Those that got a new entry for a new file: its own, and those above new ones."""
        folders = [path.parent]
        while folders[-1] not in self._folders:
            folders.append(folders[-1].parent)
        return folders

    def first(self, path: Path) -> int:
        assert path in self.synced, f"{path} was not synced"
        return self.synced.index(path)

    def last(self, path: Path) -> int:
        assert path in self.synced, f"{path} was not synced"
        return len(self.synced) - 1 - self.synced[::-1].index(path)


def in_versions(path: Path) -> bool:
    return path.parent.name == "_versions"


@pytest.mark.acceptance("S-159")
@pytest.mark.parametrize("branch", ["main", "feature", "fresh"])
@pytest.mark.parametrize("slack", [durability.CLOCK_SLACK_NS, 0], ids=["usual", "slow machine"])
def test_each_step_of_a_mutation_is_on_the_disk_before_the_next_begins(
    tmp_path, monkeypatch, branch, slack
):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    # Where time passes between the steps, folders that did not change meanwhile are known to be safe.
    monkeypatch.setattr(durability, "CLOCK_SLACK_NS", slack)
    graph = new_graph(str(tmp_path / "graph"))
    graph.branches.create("feature").mutate(HIRE, {"who": "Fay", "company": "Core"})
    graph.branches.create("fresh")
    disk = Disk(tmp_path / "graph")
    with armed("durability.after_fsync", Call(disk.saw)):
        graph.mutate(HIRE, {"who": "Eve", "company": "Bolt"}, branch=branch)
    new = disk.new
    sidecar = next(path for path in disk.synced if path.parent.name == "__recovery")
    # A sidecar is written under another name first; its folder follows.
    assert disk.first(sidecar) == 0
    recovery = disk.first(Path("__recovery"))
    tables = {path for path in new if path.parts[0] in ("nodes", "edges")}
    manifest = {path for path in new if path.parts[0] == "__manifest"}
    assert tables
    assert manifest
    assert new == tables | manifest
    assert recovery < min(map(disk.first, tables))
    assert max(map(disk.first, tables)) < min(map(disk.first, manifest))
    for path in new:
        own, *above = disk.changed_folders(path)
        assert disk.last(own) > disk.first(path), f"{own} was not synced after {path}"
        for entry, folder in pairwise([own, *above]):
            assert entry in disk.present[disk.last(folder)], f"{folder} was synced without {entry}"
    # The publish begins only when the tables are there with their folders.
    publish = min(map(disk.first, manifest))
    for path in tables:
        assert any(folder == path.parent for folder in disk.synced[disk.first(path) : publish]), (
            f"{path.parent} came too late"
        )


@pytest.mark.acceptance("S-159")
def test_what_a_version_names_is_on_the_disk_before_the_version_exists(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    graph = new_graph(str(tmp_path / "graph"))
    disk = Disk(tmp_path / "graph")
    with armed("durability.after_fsync", Call(disk.saw)):
        graph.mutate(HIRE, {"who": "Eve", "company": "Bolt"})
        graph.mutate('query q() { delete Person where name = "Alice" }')
    versions = [p for p in disk.new if in_versions(p) and p.parts[0] != "__manifest"]
    assert len(versions) >= 5
    for version in versions:
        table = version.parent.parent
        born = next(i for i, files in enumerate(disk.present) if version in files)
        for path in disk.new:
            mine = table in path.parents and path.parent.name in ("data", "_deletions")
            if mine and any(path in files for files in disk.present[:born]):
                assert disk.first(path) < born


@pytest.mark.acceptance("S-159")
def test_the_sidecar_is_on_the_disk_before_any_table_moves(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    graph = new_graph(str(tmp_path / "graph"))
    disk = Disk(tmp_path / "graph")
    with armed("durability.after_fsync", Call(disk.saw)):
        graph.mutate(ADD, {"who": "Eve"})
    folder = disk.first(Path("__recovery"))
    known = {p for p in disk.present[folder] if in_versions(p)}
    assert known == {p for p in disk._before if in_versions(p)}
