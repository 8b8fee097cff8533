"""Files of a killed write that a power loss left short: nothing that was acknowledged goes with them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from omnigraph.api.core import GraphCore
from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.storage.compact import extend_indexes
from tests.behaviour.graphs import PERSON, tree
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    EVERYBODY,
    HIRE,
    PUBLISHED,
    check_recovered,
    content,
    ids,
    interrupted,
    new_graph,
    sidecars,
)


class Place:
    """A graph that can be put back as it was: always in the same place, as branches know theirs."""

    def __init__(self, folder: Path) -> None:
        self.root, self._kept = folder / "graph", folder / "kept"

    def keep(self) -> None:
        shutil.copytree(self.root, self._kept)

    def restore(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self._kept, self.root)

    def files(self) -> set[Path]:
        return {path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file()}


def stopped(place, branch, point):
    """A write that came to a fault point; the files it left, without its sidecar and locks."""
    graph = new_graph(str(place.root))
    graph.branches.create("feature").mutate(ADD, {"who": "Fay"})
    before, known = place.files(), content(graph, branch)
    interrupted(point, lambda: graph.mutate(HIRE, {"who": "Eve", "company": "Bolt"}, branch=branch))
    place.keep()
    new = place.files() - before
    return known, sorted(path for path in new if may_be_torn(path, point))


def may_be_torn(path, point):
    """Whether the file may not be on the disk yet at this point; what comes before it always is."""
    if path.parts[0] in ("__recovery", "__locks") or "_refs" in path.parts:
        return False
    return (path.parts[0] == "__manifest") == (point == PUBLISHED)


@pytest.mark.acceptance("S-161")
@pytest.mark.parametrize("left", ["nothing", pytest.param("half", marks=pytest.mark.slow)])
@pytest.mark.parametrize("branch", ["main", "feature"])
@pytest.mark.parametrize("point", [AFTER_TABLE, BEFORE_PUBLISH, PUBLISHED])
def test_a_torn_file_of_a_killed_write_costs_nothing_that_was_promised(
    tmp_path, branch, point, left
):
    place = Place(tmp_path)
    known, files = stopped(place, branch, point)
    assert any("_versions" in path.parts for path in files)
    for file in files:
        place.restore()
        path = place.root / file
        os.truncate(path, 0 if left == "nothing" else os.path.getsize(path) // 2)
        _check(place, branch, known, str(file))


def _check(place, branch, known, what):
    before = tree(place.root)
    reader = open_graph(str(place.root), read_only=True)
    assert content(reader, branch).keys() == known.keys(), what
    _is_whole(content(reader, branch), known, what)
    assert tree(place.root) == before, what
    graph = open_graph(str(place.root))
    seen = content(graph, branch)
    _is_whole(seen, known, what)
    assert sidecars(graph) == [], what
    check_recovered(graph, "feature")
    graph.mutate(ADD, {"who": "Zoe"}, branch=branch)
    assert "Zoe" in ids(graph, branch=branch), what
    assert open_graph(str(place.root), read_only=True)._snapshot(branch).to_json() == (
        graph._snapshot(branch).to_json()
    ), what


def without_zoe(graph, branch):
    return [name for name in ids(graph, branch=branch) if name != "Zoe"]


def _is_whole(seen, known, what):
    """All of the interrupted write or nothing of it, and everything from before."""
    for key, rows in known.items():
        assert set(rows) <= set(seen[key]), what
    added = {key: len(rows) - len(known[key]) for key, rows in seen.items()}
    assert set(added.values()) in ({0}, {0, 1}), what
    assert sum(added.values()) in (0, 3), what


@pytest.mark.acceptance("S-161")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_handle_that_was_open_removes_the_torn_version_when_it_writes(tmp_path, branch):
    place = Place(tmp_path)
    known, files = stopped(place, branch, BEFORE_PUBLISH)
    for file in files:
        if "_versions" not in file.parts or file.suffix != ".manifest":
            continue
        place.restore()
        handle = open_graph(str(place.root), read_only=True)
        assert content(handle, branch) == known
        core = handle._core
        writer = Graph(GraphCore(core.root, core.objects, core.tables), handle._bound)
        os.truncate(place.root / file, 0)
        writer.mutate(ADD, {"who": "Zoe"}, branch=branch)
        assert "Zoe" in ids(writer, branch=branch)
        _is_whole(content(writer, branch) | {PERSON: without_zoe(writer, branch)}, known, str(file))
        check_recovered(writer, "feature")


def test_an_index_of_the_manifest_that_was_torn_goes_before_anybody_builds_on_it(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    place = Place(tmp_path)
    graph = new_graph(str(place.root))
    graph.mutate(ADD, {"who": "Fay"})
    known, before = content(graph), place.files()
    extend_indexes(graph._core.manifest.open(None))
    new = place.files() - before
    place.keep()
    torn = {file.parent for file in new if "_indices" in file.parts}
    assert len(torn) == 3
    for index in torn:
        place.restore()
        for file in new:
            if file.parent == index:
                os.truncate(place.root / file, 0)
        assert content(open_graph(str(place.root), read_only=True)) == known
        writer = open_graph(str(place.root))
        writer.mutate(ADD, {"who": "Zoe"})
        later = open_graph(str(place.root))
        assert [later.commit(c.id) for c in later.log(reverse=True)] == later.log(reverse=True)
        assert later.head().id == writer.head().id
        assert ids(later) == [*EVERYBODY, "Fay", "Zoe"]


def test_of_the_two_versions_of_a_compaction_the_first_may_be_lost(tmp_path):
    place = Place(tmp_path)
    graph = new_graph(str(place.root))
    for name in ("Fay", "Gus"):
        graph.mutate(ADD, {"who": name})
    known, before = content(graph), place.files()
    interrupted("optimize.post_table_fold", graph.maintenance.optimize)
    first, second = sorted(
        (file for file in place.files() - before if file.suffix == ".manifest"), reverse=True
    )
    assert first.parent == second.parent
    (place.root / first).unlink()
    assert content(open_graph(str(place.root), read_only=True)) == known
    later = open_graph(str(place.root))
    assert sidecars(later) == []
    assert content(later) == known
    later.mutate(ADD, {"who": "Zoe"})
    assert ids(open_graph(str(place.root))) == [*EVERYBODY, "Fay", "Gus", "Zoe"]


def test_a_torn_sidecar_is_left_to_an_operator_and_stops_nothing_else(tmp_path):
    place = Place(tmp_path)
    stopped(place, "main", "recovery.sidecar_written")
    (path,) = (place.root / "__recovery").iterdir()
    os.truncate(path, 10)
    graph = open_graph(str(place.root))
    assert [found.name for found in graph._core.recovery.status().quarantined] == [path.name]
    graph.mutate(ADD, {"who": "Zoe"})
    assert ids(graph) == [*EVERYBODY, "Zoe"]
