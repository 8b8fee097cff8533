"""Opening a graph: what is checked, what is refused, and that reading writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchNotFound,
    GraphNotFound,
    InputError,
    ManifestDamaged,
    NewerFormat,
    NotFoundError,
    ReadOnlyHandle,
    SchemaContractBroken,
    StorageError,
    UnsafeStore,
)
from omnigraph.storage import local_objects
from omnigraph.storage.memory_objects import bucket_of
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.contract import CONTRACT_FILES, IR_FILE, SOURCE_FILE, STATE_FILE
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import KEY_COLUMN, MANIFEST_PATH, STAMP_KEY
from tests.behaviour.graphs import (
    KEYS,
    OTHER_SCHEMA,
    PERSON,
    SCHEMA,
    Backstage,
    tree,
    without_write_access,
)
from tests.support.receipts import receipt_of_commit

READS_UNDER_THE_SCHEMA = [
    lambda graph: graph._snapshot(),
    lambda graph: graph.at(1)._snapshot,
    lambda graph: graph.at(graph.head().id)._snapshot,
    lambda graph: graph.at(1)._snapshot,
    lambda graph: graph.at(1),
    lambda graph: receipt_of_commit(graph, graph.head().id),
    lambda graph: list(graph.branches),
    lambda graph: graph.schema.source,
    lambda graph: graph.schema.catalog,
]
EVERY_READ = [
    *READS_UNDER_THE_SCHEMA,
    lambda graph: graph.log(reverse=True),
    lambda graph: graph.commit(graph.head().id),
]


# -- where there is no graph -----------------------------------------------------------------


@pytest.mark.acceptance("S-007")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_place_without_graph_is_not_found_and_stays_empty(tmp_path, read_only):
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(GraphNotFound) as caught:
            open_graph(place, read_only=read_only)
        assert caught.value.uri == str(place)
        assert isinstance(caught.value, NotFoundError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.acceptance("S-007")
def test_an_unused_name_in_memory_is_no_graph(memory_uri):
    with pytest.raises(GraphNotFound):
        open_graph(memory_uri)


@pytest.mark.parametrize("below", ["", "graph"])
def test_a_path_that_is_a_file_is_no_graph(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(GraphNotFound):
        open_graph(tmp_path / "file" / below)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_half_created_graph_is_no_graph(tmp_path, kept, read_only):
    """A process that died between claiming the place and creating the manifest."""
    init(tmp_path / "whole", SCHEMA)
    (tmp_path / "half").mkdir()
    for name in CONTRACT_FILES[:kept]:
        (tmp_path / "whole" / name).rename(tmp_path / "half" / name)
    with pytest.raises(GraphNotFound):
        open_graph(tmp_path / "half", read_only=read_only)


def test_a_branch_that_does_not_exist_is_not_found(graph):
    with pytest.raises(BranchNotFound) as caught:
        open_graph(graph.uri, branch="nope")
    assert caught.value.branch == "nope"


def test_opening_binds_the_handle_to_the_branch(graph):
    graph.branches.create("review/7")
    assert open_graph(graph.uri).branch == "main"
    assert open_graph(graph.uri, branch="review/7")._snapshot().branch == "review/7"


@pytest.mark.acceptance("S-137")
def test_a_graph_that_was_moved_to_a_disk_without_hard_links_is_only_read(
    local_graph, without_hard_links
):
    before = tree(Path(local_graph.uri))
    with without_hard_links():
        with pytest.raises(UnsafeStore, match="hard links"):
            open_graph(local_graph.uri)
        assert open_graph(local_graph.uri, read_only=True)._snapshot().version == 1
    assert tree(Path(local_graph.uri)).keys() == before.keys()
    assert open_graph(local_graph.uri)._snapshot().version == 1


# -- the same graph under several addresses --------------------------------------------------


@pytest.mark.acceptance("S-018")
def test_every_spelling_of_an_address_opens_the_same_graph(tmp_path, monkeypatch):
    init(tmp_path / "data" / "g", SCHEMA)
    Backstage(tmp_path / "data" / "g").publish()
    monkeypatch.chdir(tmp_path / "data")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    absolute = f"{tmp_path}/data/g"
    spellings = [
        absolute,
        f"{absolute}/",
        f"file://{absolute}",
        f"file://{absolute}/",
        "./g",
        "g",
        "g//",
        "../data/./g",
        f"{tmp_path}/link/g",
    ]
    heads = set()
    for spelling in spellings:
        graph = open_graph(spelling)
        assert graph._snapshot().version == 2
        heads.add(graph.head().id)
        objects = Backstage(spelling).objects
        listed = objects.list_dir("__schema_history")
        assert [len(objects.read_text(path)) > 0 for path in listed] == [True]
    assert len(heads) == 1


def test_an_open_graph_survives_a_change_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = init("g", SCHEMA)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert graph._snapshot().version == 1
    assert os.listdir(".") == []


# -- reading writes nothing ------------------------------------------------------------------


@pytest.mark.acceptance("S-008")
def test_a_read_only_handle_writes_nothing_on_a_disk(local_uri):
    init(local_uri, SCHEMA).branches.create("feature")
    Backstage(local_uri).publish("feature")
    before = tree(Path(local_uri))
    graph = open_graph(local_uri, branch="feature", read_only=True)
    for read in EVERY_READ:
        read(graph)
    assert tree(Path(local_uri)) == before


@pytest.mark.acceptance("S-008")
def test_a_read_only_handle_writes_nothing_in_memory(memory_uri):
    init(memory_uri, SCHEMA)
    shelf = bucket_of(normalise_root(memory_uri))
    before = dict(shelf.objects)
    stored = Backstage(memory_uri).tables.open(MANIFEST_PATH).version
    graph = open_graph(memory_uri, read_only=True)
    for read in EVERY_READ:
        read(graph)
    assert shelf.objects == before
    assert Backstage(memory_uri).tables.open(MANIFEST_PATH).version == stored


@pytest.mark.acceptance("S-008")
def test_a_graph_that_cannot_be_written_can_be_read(open_folder):
    uri = open_folder / "graph"
    graph = init(uri, SCHEMA)
    Backstage(uri).add(graph, PERSON, ["ada"])
    before = tree(uri)
    with without_write_access(uri):
        reader = open_graph(uri, read_only=True)
        for read in EVERY_READ:
            read(reader)
        table = reader._snapshot().open(Backstage(uri).tables, PERSON)
        assert table.read(["id"]).to_pylist() == [{"id": "ada"}]
    assert tree(uri) == before


def test_a_graph_that_cannot_be_written_refuses_changes_and_stays_as_it_is(open_folder):
    uri = open_folder / "graph"
    init(uri, SCHEMA)
    backstage = Backstage(uri)
    with without_write_access(uri):
        graph = open_graph(uri)
        with pytest.raises(StorageError, match="Permission denied"):
            graph.branches.create("feature")
        with pytest.raises(StorageError, match="Permission denied"):
            backstage.publish()
    assert list(graph.branches) == ["main"]
    assert graph._snapshot().version == 1
    assert backstage.publish().sequence == 2
    assert graph.branches.create("feature")._snapshot().version == 2


def test_a_read_only_handle_refuses_every_change(local_uri):
    init(local_uri, SCHEMA).branches.create("feature")
    graph = open_graph(local_uri, read_only=True)
    before = tree(Path(local_uri))
    for change in (
        lambda: graph.branches.create("new"),
        lambda: graph.branches.delete("feature"),
        lambda: graph.branches.delete("no such branch!"),
        lambda: graph.load(b'{"type": "Person", "data": {"name": "Eve"}}', "merge"),
        lambda: graph.load(b"", "merge", branch="new", create_from="main"),
    ):
        with pytest.raises(ReadOnlyHandle) as caught:
            change()
        assert isinstance(caught.value, InputError)
    assert tree(Path(local_uri)) == before


# -- formats ---------------------------------------------------------------------------------


def restamp(backstage: Backstage, stamp: str | None, branch: str | None = None) -> None:
    """Write another format stamp, as a newer release would."""
    handle = backstage.tables.open(MANIFEST_PATH, branch).writable_handle()
    metadata: dict[str, str | None] = {} if stamp is None else {STAMP_KEY: stamp}
    handle.update_schema_metadata(metadata, replace=True)


@pytest.mark.acceptance("S-016")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_graph_of_a_newer_format_is_not_opened(graph, backstage, read_only):
    restamp(backstage, "99")
    with pytest.raises(NewerFormat, match="upgrade omnigraph"):
        open_graph(graph.uri, read_only=read_only)


@pytest.mark.acceptance("S-016")
def test_nothing_is_published_onto_a_newer_format(graph, backstage):
    publication = Publication(backstage.draft())
    restamp(backstage, "99")
    before = backstage.rows()
    with pytest.raises(NewerFormat, match="upgrade omnigraph"):
        publish(backstage.manifest, None, publication)
    with pytest.raises(NewerFormat):
        graph._snapshot()
    assert backstage.rows() == before


@pytest.mark.acceptance("S-016")
def test_a_branch_is_not_made_from_a_newer_format(graph, backstage):
    restamp(backstage, "99")
    with pytest.raises(NewerFormat):
        graph.branches.create("feature")


def test_a_manifest_without_stamp_is_refused(graph, backstage):
    restamp(backstage, None)
    with pytest.raises(ManifestDamaged):
        open_graph(graph.uri)


def test_a_manifest_without_checkpoint_is_refused(graph, backstage):
    handle = backstage.tables.open(MANIFEST_PATH).writable_handle()
    handle.delete(f"{KEY_COLUMN} like 'checkpoint%'")
    with pytest.raises(ManifestDamaged):
        open_graph(graph.uri)


# -- the schema contract of an open graph ----------------------------------------------------


@pytest.mark.acceptance("S-011")
@pytest.mark.parametrize("slack_seconds", [2, -1], ids=["read", "known by their stamp"])
def test_an_open_graph_notices_that_its_schema_file_was_edited(
    graph, backstage, monkeypatch, slack_seconds
):
    monkeypatch.setattr(local_objects, "CLOCK_SLACK_NS", slack_seconds * 10**9)
    graph._snapshot()
    backstage.objects.write_text(SOURCE_FILE, SCHEMA.replace("age: I32?", "age: I64?"))
    for read in READS_UNDER_THE_SCHEMA:
        with pytest.raises(SchemaContractBroken, match="no longer matches"):
            read(graph)


@pytest.mark.acceptance("S-011")
def test_an_edited_schema_file_stops_branch_control_and_opening(graph, backstage):
    graph.branches.create("feature")
    backstage.objects.write_text(SOURCE_FILE, OTHER_SCHEMA)
    for change in (
        lambda: graph.branches.create("another"),
        lambda: graph.branches.delete("feature"),
        lambda: graph.checkout("feature"),
        lambda: open_graph(graph.uri),
        lambda: open_graph(graph.uri, read_only=True),
    ):
        with pytest.raises(SchemaContractBroken, match="no longer matches"):
            change()
    backstage.objects.write_text(SOURCE_FILE, SCHEMA)
    assert list(graph.branches) == ["main", "feature"]


@pytest.mark.acceptance("S-012")
def test_a_comment_in_the_schema_file_is_harmless(graph, backstage):
    edited = "// reviewed\n" + SCHEMA
    backstage.objects.write_text(SOURCE_FILE, edited)
    assert list(graph._snapshot().entries) == KEYS
    assert graph.schema.source == edited
    assert list(open_graph(graph.uri)._snapshot().entries) == KEYS


@pytest.mark.parametrize("lost", [IR_FILE, STATE_FILE])
def test_half_of_the_contract_is_refused(graph, backstage, lost):
    backstage.objects.delete(lost)
    with pytest.raises(SchemaContractBroken, match="must either both exist or both be absent"):
        graph._snapshot()
    with pytest.raises(SchemaContractBroken, match="must either both exist or both be absent"):
        open_graph(graph.uri)


def test_an_open_graph_that_lost_its_contract_says_so(graph, backstage):
    backstage.objects.delete(IR_FILE)
    backstage.objects.delete(STATE_FILE)
    with pytest.raises(SchemaContractBroken, match="missing persisted schema state"):
        graph._snapshot()
