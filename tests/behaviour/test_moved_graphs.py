"""A graph that was moved or copied: main goes on, and its branches say why they cannot."""

from __future__ import annotations

import json
import logging
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow.fs
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchInUse, GraphMoved
from omnigraph.storage.cleanup import stored_versions
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.behaviour.graphs import PERSON, SCHEMA, Backstage
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.support.faults import Fail, InjectedFault, armed

NOW = timedelta()


def person(name: str) -> str:
    return json.dumps({"type": "Person", "data": {"name": name}})


def names(graph: Graph, branch: str | None = None) -> list[str]:
    query = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    return [row["p.name"] for row in graph.query(query, branch=branch).to_dicts()]


def with_branches(uri: str | Path) -> Graph:
    """One branch that has written, one made from that, and one that only reads."""
    graph = init(uri, SCHEMA)
    graph.load(person("ada").encode(), "merge")
    graph.branches.create("feature").load(person("bo").encode(), "merge")
    graph.branches.create("child", "feature").load(person("cy").encode(), "merge")
    graph.branches.create("lazy")
    return graph


@pytest.fixture
def original(tmp_path: Path) -> Path:
    with_branches(tmp_path / "old")
    return tmp_path / "old"


@pytest.fixture(params=["moved", "copied"])
def elsewhere(request: pytest.FixtureRequest, original: Path) -> Path:
    """The graph at another address; a copy could still reach the files of its original."""
    target = original.with_name("new")
    if request.param == "moved":
        original.rename(target)
    else:
        shutil.copytree(original, target)
    return target


def test_main_can_be_read_and_written_and_branched(elsewhere):
    graph = open_graph(elsewhere)
    graph.load(person("dee").encode(), "merge")
    graph.branches.create("new").load(person("eve").encode(), "merge")
    graph.merge("new")
    assert names(open_graph(elsewhere)) == ["ada", "dee", "eve"]
    assert names(graph, "new") == ["ada", "dee", "eve"]
    assert list(graph.branches) == ["main", "child", "feature", "lazy", "new"]


@pytest.mark.parametrize("branch", ["feature", "child", "lazy"])
def test_every_use_of_a_branch_says_where_it_was_made(elsewhere, original, branch):
    graph = open_graph(elsewhere)
    before = _files(original)
    uses = [
        lambda: open_graph(elsewhere, branch=branch),
        lambda: open_graph(elsewhere, branch=branch, read_only=True),
        lambda: names(graph, branch),
        lambda: graph.load(person("eve").encode(), "merge", branch=branch),
        lambda: graph.mutate('query q() { insert Person { name: "eve" } }', branch=branch),
        lambda: graph.branches.create("next", branch),
        lambda: graph.merge(branch),
        lambda: graph.merge("main", into=branch),
        lambda: graph.log(branch, reverse=True),
        lambda: graph.diff("main", branch),
    ]
    for use in uses:
        with pytest.raises(GraphMoved) as caught:
            use()
        assert (caught.value.branch, caught.value.made_at) == (branch, str(original))
        assert str(elsewhere) in str(caught.value)
    assert _files(original) == before


def test_a_commit_is_looked_for_on_the_branches_that_can_be_read(elsewhere):
    graph = open_graph(elsewhere)
    made = (
        graph.branches.create("new").load(person("eve").encode(), "merge").receipt.graph_commit_id
    )
    assert made is not None
    assert graph.commit(made).id == made
    with pytest.raises(GraphMoved):
        graph.commit("01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_status_names_the_branches(elsewhere, original):
    status = open_graph(elsewhere, read_only=True).maintenance.status()
    assert [moved.to_json() for moved in status.moved] == [
        {"branch": name, "made_at": str(original)} for name in ("child", "feature", "lazy")
    ]
    assert status.to_json()["moved_branches"] == [moved.to_json() for moved in status.moved]
    advice = status.to_json()["advice"]
    assert [line for line in advice if "branch delete lazy" in line and "old" in line]


def test_opening_such_a_graph_warns_and_opening_others_does_not(elsewhere, original, caplog):
    with caplog.at_level(logging.WARNING):
        open_graph(elsewhere)
        assert str(original) in caplog.text
        caplog.clear()
        with_branches(elsewhere.with_name("other"))
        open_graph(elsewhere.with_name("other"))
        assert caplog.text == ""


def test_branches_are_deleted_and_their_names_can_be_used_again(elsewhere):
    graph = open_graph(elsewhere)
    with pytest.raises(BranchInUse, match="child"):
        graph.branches.delete("feature")
    for name in ("child", "feature", "lazy"):
        graph.branches.delete(name)
    assert list(graph.branches) == ["main"]
    assert graph.maintenance.cleanup(keep_versions=1, min_age=NOW).orphans == ()
    assert graph.maintenance.status().moved == ()
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  nick: String?"))
    again = graph.branches.create("feature")
    again.load(person("eve").encode(), "merge")
    assert names(again) == ["ada", "eve"]


def test_cleaning_up_keeps_what_branches_would_need_where_they_were_made(elsewhere, original):
    graph = open_graph(elsewhere)
    graph.load(person("dee").encode(), "merge")
    location = graph._snapshot().entry(PERSON).location
    kept = len(stored_versions(Backstage(elsewhere).tables.open(location)))
    report = graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    assert (report.failed, report.orphans) == ((), ())
    assert len(stored_versions(Backstage(elsewhere).tables.open(location))) == kept
    people = next(t for t in report.tables if t.table_key == PERSON)
    assert people.kept["a branch made at another address may need it"] > 0
    if original.exists():
        shutil.rmtree(original)
    elsewhere.rename(original)
    back = open_graph(original)
    assert {name: names(back, name) for name in list(back.branches)} == {
        "main": ["ada", "dee"],
        "child": ["ada", "bo", "cy"],
        "feature": ["ada", "bo"],
        "lazy": ["ada"],
    }
    assert back.maintenance.cleanup(keep_versions=1, min_age=NOW).removed.versions > 0
    assert names(back, "lazy") == ["ada"]


def test_a_write_that_was_interrupted_on_a_branch_blocks_no_writer(tmp_path):
    graph = with_branches(tmp_path / "old")
    with armed("mutation.post_table_commit", Fail()), pytest.raises(InjectedFault):
        graph.load(person("eve").encode(), "merge", branch="feature")
    (tmp_path / "old").rename(tmp_path / "new")
    moved = open_graph(tmp_path / "new")
    moved.load(person("dee").encode(), "merge")
    assert len(moved._core.recovery.status().pending) == 1
    assert moved.maintenance.cleanup(keep_versions=1).failed == ()
    (tmp_path / "new").rename(tmp_path / "old")
    back = open_graph(tmp_path / "old")
    assert back._core.recovery.status().pending == ()
    assert set(names(back, "feature")) in ({"ada", "bo"}, {"ada", "bo", "eve"})
    (tmp_path / "old").rename(tmp_path / "new")
    with armed("mutation.post_table_commit", Fail()), pytest.raises(InjectedFault):
        open_graph(tmp_path / "new").load(person("flo").encode(), "merge")
    assert names(open_graph(tmp_path / "new")) == ["ada", "dee", "flo"]


def test_the_sidecar_of_a_branch_goes_with_it(tmp_path):
    graph = with_branches(tmp_path / "old")
    with armed("mutation.post_table_commit", Fail()), pytest.raises(InjectedFault):
        graph.load(person("eve").encode(), "merge", branch="child")
    (tmp_path / "old").rename(tmp_path / "new")
    moved = open_graph(tmp_path / "new")
    moved.branches.delete("child")
    moved.maintenance.recover()
    assert Backstage(tmp_path / "new").objects.list_dir(RECOVERY_DIR) == []
    moved.branches.create("child").load(person("flo").encode(), "merge")
    assert names(moved, "child") == ["ada", "flo"]


def test_another_spelling_of_the_same_address_is_no_move(original):
    link = original.with_name("link")
    link.symlink_to(original)
    graph = open_graph(link)
    assert names(graph, "child") == ["ada", "bo", "cy"]
    graph.branches.create("through", "feature").load(person("dee").encode(), "merge")
    assert names(open_graph(original), "through") == ["ada", "bo", "dee"]
    assert open_graph(original).maintenance.status().moved == ()
    link.unlink()
    # Nothing is at the address any more under which this branch was made.
    with pytest.raises(GraphMoved, match="link"):
        names(open_graph(original), "through")


@pytest.mark.parametrize("name", ["with space", "zwölf%20", "tree/nodes", "__manifest"])
def test_the_address_may_look_like_anything(tmp_path, name):
    old, new = tmp_path / name / "g", tmp_path / f"{name}-2"
    graph = with_branches(old)
    assert names(open_graph(old), "child") == ["ada", "bo", "cy"]
    assert graph.maintenance.status().moved == ()
    old.rename(new)
    assert {moved.made_at for moved in open_graph(new).maintenance.status().moved} == {str(old)}


def test_a_copy_on_an_object_store_is_told_as_well(s3_endpoint, monkeypatch):
    for key, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(key, value)
    with_branches(f"s3://{BUCKET}/old/g")
    _copy_objects(s3_endpoint, "old", "new")
    graph = open_graph(f"s3://{BUCKET}/new/g")
    assert names(graph) == ["ada"]
    with pytest.raises(GraphMoved, match=f"s3://{BUCKET}/old/g"):
        names(graph, "feature")
    assert len(graph.maintenance.status().moved) == 3
    for branch in ("child", "feature", "lazy"):
        graph.branches.delete(branch)
    assert graph.maintenance.cleanup(keep_versions=1).failed == ()
    graph.branches.create("feature").load(person("dee").encode(), "merge")
    assert names(graph, "feature") == ["ada", "dee"]
    assert names(open_graph(f"s3://{BUCKET}/old/g"), "child") == ["ada", "bo", "cy"]


def _files(folder: Path) -> set[str]:
    return {str(file) for file in folder.rglob("*") if file.is_file()}


def _copy_objects(endpoint: str, source: str, target: str) -> None:
    files = pyarrow.fs.S3FileSystem(
        access_key="test",
        secret_key="test",
        region="us-east-1",
        scheme="http",
        endpoint_override=endpoint.removeprefix("http://"),
    )
    listed = files.get_file_info(pyarrow.fs.FileSelector(f"{BUCKET}/{source}", recursive=True))
    for found in listed:
        if found.type == pyarrow.fs.FileType.File:
            files.copy_file(found.path, found.path.replace(f"/{source}/", f"/{target}/", 1))
