"""A graph of an older format is opened for writing: everything in it stays, in the new format."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import ManifestDamaged, NewerFormat, SchemaApplyBlocked, SchemaContractBroken
from omnigraph.storage.indexes import list_indexes
from omnigraph.versioning.manifest_compaction import INDEXED_COLUMNS
from omnigraph.versioning.rows import MANIFEST_PATH, read_stamp
from omnigraph.versioning.upgrade.old_layout import OLD_TABLES
from tests.behaviour.graphs import Backstage, tree
from tests.upgrade.old_graphs import COMPANY, PERSON, SCHEMA, OldGraph, with_branches, with_history
from tests.upgrade.seen import check_everything, history, tables

ROW = b'{"type": "Person", "data": {"name": "new"}}'


def folders(root: Path) -> dict[str, object]:
    return {name: tree(root / name) for name in ("nodes", "edges")}


def stamps(root: Path) -> set[int]:
    backstage = Backstage(root)
    branches = [None, *backstage.tables.list_branches(MANIFEST_PATH)]
    return {read_stamp(backstage.tables.open(MANIFEST_PATH, b).schema) for b in branches}


# -- the history -----------------------------------------------------------------------------


@pytest.mark.acceptance("S-013")
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_commits_snapshots_and_rows_are_the_same_as_before(root, stamp):
    old = with_history(root, stamp)
    before = folders(root)
    graph = open_graph(root)
    assert stamps(root) == {4}
    assert folders(root) == before
    check_everything(graph, old)
    assert [commit.number for commit in graph.log(reverse=True)] == list(range(1, 21))
    for past in old.history[None]:
        assert tables(graph, graph.at(past.id)._snapshot) == past.tables
    assert graph.schema.source == SCHEMA


@pytest.mark.acceptance("S-013")
def test_recoveries_are_kept_with_their_commits(long_history):
    graph = open_graph(long_history.root)
    (recovery,) = graph.maintenance.recoveries()
    (commit,) = graph.log(operation="recovery", reverse=True)
    assert commit.actor == "omnigraph:recovery"
    assert recovery.graph_commit_id == commit.id
    assert recovery.sequence == commit.number
    assert recovery.audit.kind.value == "RolledForward"
    assert recovery.audit.for_actor == "act-bo"
    assert recovery.audit.writer_kind == "Mutation"
    assert recovery.audit.created_at == commit.to_json()["created_at"]
    (outcome,) = recovery.audit.outcomes
    assert (outcome.table_key, outcome.from_version, outcome.to_version) == (COMPANY, 1, 2)
    assert outcome.table_id == graph._snapshot().entry(COMPANY).table_id
    assert {c.operation for c in graph.log(reverse=True)} == {"load", "recovery"}


def test_a_dropped_type_is_seen_at_its_time_and_its_number_is_not_used_again(long_history):
    graph = open_graph(long_history.root)
    past = long_history.history[None]
    with_type = [number for number, c in enumerate(past, 1) if "node:Gone" in c.tables]
    assert with_type == list(range(1, 12))
    entry = graph.at(11)._snapshot.entry("node:Gone")
    numbers = {declared.type_id for declared in graph.schema.catalog}
    gone = int(entry.table_id.partition("#")[2])
    assert gone not in numbers
    assert json.loads((long_history.root / "_schema.ir.json").read_text())["next_id"] > gone


def test_a_converted_graph_is_written_like_any_other(long_history):
    graph = open_graph(long_history.root)
    receipt = graph.load(ROW, "append").receipt
    assert receipt.manifest_version == 21
    assert receipt.parent_commit_id == long_history.history[None][-1].id
    again = open_graph(long_history.root)
    assert tables(again, again._snapshot())[PERSON].ids[-1] == "new"
    assert history(again)[:20] == long_history.history[None]
    assert graph.branches.create("made/later")._snapshot().version == 21


def test_the_manifest_of_a_converted_graph_is_indexed_and_configured(branched):
    open_graph(branched.root)
    backstage = Backstage(branched.root)
    for branch in [None, *backstage.tables.list_branches(MANIFEST_PATH)]:
        table = backstage.tables.open(MANIFEST_PATH, branch)
        assert {index.columns[0] for index in list_indexes(table)} == set(INDEXED_COLUMNS)
        assert table.dataset.config()["table_version_management"] == "true"


@pytest.mark.acceptance("S-013")
def test_a_graph_is_converted_once(long_history):
    def stored():
        names = [path for path in long_history.root.iterdir() if path.name != "__locks"]
        return {path.name: tree(path) for path in names}

    open_graph(long_history.root)
    before = stored()
    graph = open_graph(long_history.root)
    assert stored() == before
    check_everything(graph, long_history)


# -- branches --------------------------------------------------------------------------------


@pytest.mark.parametrize("stamp", [1, 2])
def test_branches_keep_their_names_and_run_branches_go(root, stamp):
    old = with_branches(root, stamp)
    graph = open_graph(root)
    assert list(graph.branches) == ["main", "a/b", "feature", "my_branch"]
    assert stamps(root) == {4}
    check_everything(graph, old)
    left = list((root / "__manifest" / "tree").iterdir())
    assert sorted(folder.name for folder in left) == ["a", "feature", "my_branch"]


@pytest.mark.parametrize("name", ["feature", "my_branch", "a/b"])
def test_every_branch_can_be_written_branched_and_deleted(branched, name):
    graph = open_graph(branched.root)
    past = branched.history[name]
    receipt = graph.load(ROW, "append", branch=name).receipt
    assert (receipt.branch, receipt.manifest_version) == (name, len(past) + 1)
    again = open_graph(branched.root, branch=name)
    assert tables(again, again._snapshot())[PERSON].ids == (*past[-1].tables[PERSON].ids, "new")
    assert "new" not in tables(again, again._snapshot("main"))[PERSON].ids
    assert again.branches.create("child")._snapshot().version == len(past) + 1
    graph.branches.delete("child")
    if name != "feature":
        graph.branches.delete(name)
        assert name not in list(graph.branches)
        assert graph.branches.create(name)._snapshot().version == graph._snapshot("main").version


@pytest.mark.acceptance("S-014")
def test_after_the_upgrade_only_the_branches_that_are_left_block_a_change_of_the_schema(root):
    old = with_branches(root, 2)
    graph = open_graph(root)
    check_everything(graph, old)
    text = graph.schema.source.replace("age: I32?", "age: I32?  nick: String?")
    with pytest.raises(SchemaApplyBlocked) as refused:
        graph.schema.apply(text)
    assert refused.value.branches == ("a/b", "feature", "my_branch")
    for name in ("a/b", "my_branch", "feature"):
        graph.load(ROW, "append", branch=name)
        graph.branches.delete(name)
    first = graph.log(reverse=True)[1].id
    known = tables(graph, graph.at(first)._snapshot)[PERSON].ids
    assert graph.schema.apply(text).applied
    assert tables(graph, graph.at(first)._snapshot)[PERSON].ids == known
    graph.load(ROW, "append")


def test_from_stamp_three_on_a_run_branch_is_a_branch_like_others(root):
    old = OldGraph(root, 3)
    old.fork("__run__a")
    graph = open_graph(root)
    assert list(graph.branches) == ["main", "__run__a"]


def test_a_run_branch_that_others_were_made_from_stays(root):
    old = OldGraph(root, 2)
    old.fork("__run__a")
    old.fork("mine", "__run__a")
    assert list(open_graph(root).branches) == ["main", "__run__a", "mine"]


@pytest.mark.parametrize("name", ["x_s1", "a__b", "v_i2"])
def test_a_name_that_reads_as_another_one_in_storage_is_kept(root, name):
    old = OldGraph(root, 1)
    old.fork(name)
    old.add(PERSON, ["ada"], branch=name)
    graph = open_graph(root)
    assert list(graph.branches) == ["main", name]
    assert tables(graph, graph._snapshot(name)) == old.history[name][-1].tables
    for other in ("x/1", "a_b", "v"):
        graph.branches.create(other)
    assert len(list(graph.branches)) == 5
    assert graph._snapshot(name).version == 2


def test_a_branch_inside_the_folder_of_another_survives_its_deletion(root):
    old = OldGraph(root, 2)
    old.fork("a")
    old.add(PERSON, ["ada"], branch="a")
    old.fork("a/b")
    old.add(PERSON, ["bo"], branch="a/b")
    graph = open_graph(root)
    check_everything(graph, old)
    graph.branches.delete("a")
    assert list(graph.branches) == ["main", "a/b"]
    assert tables(graph, graph._snapshot("a/b")) == old.history["a/b"][-1].tables
    graph.branches.create("a")
    assert graph.load(ROW, "append", branch="a").receipt.manifest_version == 2
    assert tables(graph, graph._snapshot("a/b")) == old.history["a/b"][-1].tables


# -- what crashes of the old product left ----------------------------------------------------


def test_rows_without_commit_get_one_of_their_own(root):
    old = OldGraph(root, 2)
    old.add(PERSON, ["ada"], actor="act-ada")
    old.publish(PERSON, ["bo"])
    old.publish(COMPANY, ["acme"])
    reading = open_graph(root, read_only=True)
    seen = reading.log(), reading._core.manifest.commits(None)
    graph = open_graph(root)
    assert (graph.log(), graph._core.manifest.commits(None)) == seen
    *known, rest = graph.log(reverse=True)
    assert [c.id for c in known] == [past.id for past in old.history[None]]
    assert (rest.actor, rest.number) == ("omnigraph:recovery", 3)
    assert rest.parents == (old.history[None][-1].id,)
    assert tables(graph, graph._snapshot()) == old._tables[None]
    assert tables(graph, graph.at(2)._snapshot) == old.history[None][-1].tables


def test_rows_without_commit_belong_to_the_next_commit(root):
    old = OldGraph(root, 2)
    old.publish(PERSON, ["ada"])
    old.publish(PERSON, ["bo"])
    old.add(COMPANY, ["acme"])
    check_everything(open_graph(root), old)


def test_a_branch_whose_commits_were_never_branched_has_those_of_its_source(root):
    old = OldGraph(root, 2)
    old.add(PERSON, ["ada"])
    old.fork("feature", with_commits=False)
    old.add(PERSON, ["bo"])
    graph = open_graph(root)
    assert history(graph, "feature") == old.history["feature"]
    assert history(graph) == old.history[None]


def test_a_graph_without_any_commits_starts_with_what_is_there(root):
    old = OldGraph(root, 1)
    old.publish(PERSON, ["ada"])
    for name in ("_graph_commits.lance", "_graph_commit_actors.lance"):
        (root / name).rename(root.parent / name)
    graph = open_graph(root)
    (only,) = graph.log(reverse=True)
    assert (only.parents, only.number) == ((), 1)
    assert tables(graph, graph._snapshot()) == old._tables[None]


# -- the schema ------------------------------------------------------------------------------


def test_a_graph_without_compiled_schema_is_converted_from_its_source(root):
    old = with_branches(root, 2)
    (root / "_schema.ir.json").unlink()
    (root / "__schema_state.json").unlink()
    check_everything(open_graph(root), old)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_source_that_was_edited_is_refused_and_nothing_is_converted(branched, read_only):
    path = branched.root / "_schema.pg"
    path.write_text(SCHEMA.replace("age: I32?", "age: I64?"))
    with pytest.raises(SchemaContractBroken, match="no longer matches"):
        open_graph(branched.root, read_only=read_only)
    assert stamps(branched.root) <= {2, 3}
    path.write_text(SCHEMA)
    check_everything(open_graph(branched.root, read_only=read_only), branched)


@pytest.mark.parametrize("lost", ["_schema.ir.json", "__schema_state.json"])
def test_half_of_the_compiled_schema_is_refused(branched, lost):
    (branched.root / lost).unlink()
    with pytest.raises(SchemaContractBroken, match="must either both exist or both be absent"):
        open_graph(branched.root)


def test_a_damaged_compiled_schema_is_refused(branched):
    (branched.root / "_schema.ir.json").write_text('{"ir_version": 1}')
    with pytest.raises(SchemaContractBroken, match=r"_schema.ir.json is invalid"):
        open_graph(branched.root)


# -- formats that are not converted ----------------------------------------------------------


@pytest.mark.acceptance("S-016")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_stamp_is_refused_whatever_the_columns(root, read_only):
    OldGraph(root, 99)
    before = tree(root)
    with pytest.raises(NewerFormat, match="upgrade omnigraph"):
        open_graph(root, read_only=read_only)
    assert tree(root) == before


@pytest.mark.parametrize("stamp", [4, 0])
def test_a_stamp_that_contradicts_the_columns_is_refused(root, stamp):
    OldGraph(root, 4)
    if stamp == 0:
        manifest = lance.dataset(str(root / "__manifest"))
        manifest.update_schema_metadata({"omnigraph:internal_schema_version": "four"})
    with pytest.raises(ManifestDamaged):
        open_graph(root)


def test_a_cleanup_removes_the_tables_of_the_old_format_and_nothing_else(branched):
    graph = open_graph(branched.root)
    before = [(commit.id, commit.number) for commit in graph.log(reverse=True)]
    rows = folders(branched.root)
    stored = [name for name in sorted(OLD_TABLES) if (branched.root / name).exists()]
    assert "_graph_commits.lance" in stored
    planned = graph.maintenance.cleanup(keep_versions=100, dry_run=True).orphans
    assert list(planned) == stored
    assert all((branched.root / name).exists() for name in stored)
    assert graph.maintenance.cleanup(keep_versions=100).orphans == planned
    assert not any((branched.root / name).exists() for name in stored)
    assert graph.maintenance.cleanup(keep_versions=100).orphans == ()
    again = open_graph(branched.root)
    assert [(commit.id, commit.number) for commit in again.log(reverse=True)] == before
    assert folders(branched.root) == rows
    check_everything(again, branched)
