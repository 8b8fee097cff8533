"""A graph of an older format is opened for reading: all of it is seen, and nothing is written."""

from __future__ import annotations

import io
import shutil

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import GraphMoved, ReadOnlyHandle
from tests.behaviour.graphs import tree, without_write_access
from tests.upgrade.old_graphs import COMPANY, PERSON, OldGraph, with_branches, with_history
from tests.upgrade.seen import check_everything, history, tables


@pytest.mark.acceptance("S-015")
@pytest.mark.parametrize("stamp", [1, 2, 3])
@pytest.mark.parametrize("build", [with_history, with_branches])
def test_everything_is_seen_and_nothing_is_written(root, stamp, build):
    old = build(root, stamp)
    if stamp == 3:
        old.history = {k: v for k, v in old.history.items() if not (k or "").startswith("__run__")}
        for name in ("__run__b", "__run__a"):
            if build is with_branches:
                old._open("__manifest").branches.delete(name)
    before = tree(root)
    graph = open_graph(root, read_only=True)
    check_everything(graph, old)
    with pytest.raises(ReadOnlyHandle):
        graph.load(b"", "merge")
    assert tree(root) == before


@pytest.mark.acceptance("S-015")
def test_a_place_that_cannot_be_written_is_enough(open_folder):
    old = with_branches(open_folder / "graph", 2)
    with without_write_access(old.root):
        check_everything(open_graph(old.root, read_only=True), old)
        assert open_graph(old.root, read_only=True, branch="a/b").branch == "a/b"


def test_a_reader_and_a_writer_see_the_same_commits_and_rows(long_history):
    reader = open_graph(long_history.root, read_only=True)
    before = (
        reader.log(),
        reader._core.manifest.commits(None),
        reader.maintenance.recoveries(),
        reader._snapshot(),
        reader.schema.catalog,
    )
    graph = open_graph(long_history.root)
    assert (
        graph.log(),
        graph._core.manifest.commits(None),
        graph.maintenance.recoveries(),
        graph._snapshot(),
        graph.schema.catalog,
    ) == before
    out, again = io.BytesIO(), io.BytesIO()
    assert reader.export(out) == graph.export(again) == 19
    assert out.getvalue().decode() == again.getvalue().decode()


def test_an_open_reader_sees_what_the_old_product_goes_on_writing(branched):
    reader = open_graph(branched.root, read_only=True)
    check_everything(reader, branched)
    branched.add(PERSON, ["di"], actor="act-di")
    branched.add(COMPANY, ["late"], branch="feature")
    branched.fork("newer")
    check_everything(reader, branched)


def test_an_open_reader_sees_the_converted_graph(branched):
    reader = open_graph(branched.root, read_only=True)
    graph = open_graph(branched.root)
    check_everything(reader, branched)
    graph.load(b'{"type": "Person", "data": {"name": "new"}}', "append", branch="a/b")
    assert tables(reader, reader._snapshot("a/b"))[PERSON].ids[-1] == "new"
    assert reader.log("a/b", reverse=True) == graph.log("a/b", reverse=True)


def test_a_graph_without_compiled_schema_is_read_from_its_source(branched):
    for name in ("_schema.ir.json", "__schema_state.json"):
        (branched.root / name).unlink()
    before = tree(branched.root)
    check_everything(open_graph(branched.root, read_only=True), branched)
    assert tree(branched.root) == before


def test_a_copy_made_between_two_steps_of_a_conversion_can_be_read(branched, tmp_path):
    """The schema is converted, and some branches are, while others are not."""
    copy = shutil.copytree(branched.root, tmp_path / "copy")
    open_graph(branched.root)
    for part in ("_schema.ir.json", "__schema_history"):
        source, target = branched.root / part, copy / part
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    converted = copy / "__manifest" / "tree" / "my_branch"
    shutil.rmtree(converted)
    shutil.copytree(branched.root / "__manifest" / "tree" / "my_branch", converted)
    # Back to where it was: elsewhere its branches could not be read.
    shutil.rmtree(branched.root)
    copy.rename(branched.root)
    reader = open_graph(branched.root, read_only=True)
    check_everything(reader, branched)
    assert history(open_graph(branched.root), "my_branch") == branched.history["my_branch"]


@pytest.mark.parametrize("read_only", [True, False])
def test_an_older_graph_that_was_moved_is_used_where_its_branches_were_made(
    branched, tmp_path, read_only
):
    moved = branched.root.rename(tmp_path / "moved")
    with pytest.raises(GraphMoved, match="graph"):
        open_graph(moved, read_only=read_only)
    moved.rename(branched.root)
    check_everything(open_graph(branched.root, read_only=read_only), branched)


def test_later_changes_of_the_commits_alone_are_seen(root):
    old = OldGraph(root, 3)
    reader = open_graph(root, read_only=True)
    old.publish(PERSON, ["ada"])
    assert [c.actor for c in reader.log(reverse=True)] == [None, "omnigraph:recovery"]
    old._record(None, "act-ada")
    assert history(reader) == old.history[None]
