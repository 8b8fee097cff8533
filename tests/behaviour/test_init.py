"""Creating a graph: what it leaves on success, and what it leaves when it fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    AlreadyInitialized,
    GraphNotFound,
    InputError,
    LanguageError,
    StorageError,
    StoreCallFailed,
    TableExists,
    UnsafeStore,
)
from omnigraph.versioning.contract import CONTRACT_FILES, SOURCE_FILE
from omnigraph.versioning.rows import MANIFEST_PATH, STAMP_KEY
from tests.behaviour.graphs import (
    KEYS,
    OTHER_SCHEMA,
    SCHEMA,
    Backstage,
    tree,
    without_write_access,
)
from tests.contract.objects.moto_server import environment_for
from tests.contract.objects.stub_server import stub_server
from tests.support.faults import Fail, InjectedFault, armed

POINTS = [
    "init.after_schema_pg_written",
    "init.after_schema_contract_written",
    "init.after_coordinator_init",
]


@pytest.mark.acceptance("L-038")
def test_a_property_of_a_reserved_name_makes_no_graph(uri):
    with pytest.raises(LanguageError, match="is reserved"):
        init(uri, "node L { id: String }")
    with pytest.raises(GraphNotFound):
        open_graph(uri)


def contract_texts(uri: str) -> dict[str, str | None]:
    objects = Backstage(uri).objects
    return {
        name: objects.read_text(name) if objects.exists(name) else None for name in CONTRACT_FILES
    }


# -- success ---------------------------------------------------------------------------------


@pytest.mark.acceptance("S-001")
def test_a_new_graph_has_the_promised_layout(local_uri):
    init(local_uri, SCHEMA)
    root = Path(local_uri)
    assert {path.name for path in root.iterdir()} == {
        "_schema.pg",
        "_schema.ir.json",
        "__schema_state.json",
        "__schema_history",
        "__manifest",
        "nodes",
        "edges",
    }
    assert {path.name for path in (root / "nodes").iterdir()} == {
        "40d76f1f51639ec0",
        "7cb4e55c59663b1c",
    }
    assert {path.name for path in (root / "edges").iterdir()} == {
        "602a25a3bd0b455b",
        "844eefbe5068b644",
    }
    assert len(list((root / "__schema_history").iterdir())) == 1
    assert (root / "_schema.pg").read_text() == SCHEMA


@pytest.mark.acceptance("S-001")
def test_a_new_graph_is_one_commit_of_empty_tables(graph):
    snapshot = graph._snapshot()
    assert list(snapshot.entries) == KEYS
    assert {entry.row_count for entry in snapshot.entries.values()} == {0}
    assert (snapshot.branch, snapshot.version) == ("main", 1)
    (genesis,) = graph.log(reverse=True)
    assert genesis.id == snapshot.commit_id == graph.head().id
    assert genesis.parents == ()
    assert genesis.actor is None
    assert genesis.operation == "init"
    assert (genesis.number, genesis.branch) == (1, "main")


@pytest.mark.acceptance("S-001")
def test_identities_are_allocated_by_kind_then_by_name(graph):
    ids = {declared.name: declared.type_id for declared in graph.schema.catalog}
    assert ids == {"Company": 1, "Person": 3, "Knows": 6, "WorksAt": 8}
    entries = graph._snapshot().entries
    assert [entries[key].table_id for key in KEYS] == ["edge#6", "edge#8", "node#1", "node#3"]


def test_the_manifest_of_a_new_graph_holds_a_row_of_each_kind(graph, backstage):
    rows = backstage.rows()
    kinds = [row["object_type"] for row in rows]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "table": 4,
        "table_version": 4,
        "graph_commit": 1,
        "operation": 1,
        "checkpoint": 1,
    }
    assert {row["commit_seq"] for row in rows} == {1}
    table = backstage.tables.open(MANIFEST_PATH)
    assert table.schema.metadata[STAMP_KEY.encode()] == b"4"
    assert table.dataset.config()["table_version_management"] == "true"


def test_a_schema_file_can_be_given_by_path(tmp_path, local_uri):
    file = tmp_path / "mine.pg"
    file.write_text(SCHEMA)
    assert init(local_uri, file).schema.source == SCHEMA


# -- a place that is taken -------------------------------------------------------------------


@pytest.mark.acceptance("S-002")
def test_a_second_init_is_refused_and_touches_nothing(local_uri):
    init(local_uri, SCHEMA)
    before = tree(Path(local_uri))
    with pytest.raises(AlreadyInitialized) as caught:
        init(local_uri, OTHER_SCHEMA)
    assert caught.value.uri == local_uri
    assert caught.value.kind == "conflict"
    assert tree(Path(local_uri)) == before


@pytest.mark.parametrize("name", CONTRACT_FILES)
def test_any_schema_file_makes_a_place_taken(uri, name):
    Backstage(uri).objects.write_text(name, "x")
    with pytest.raises(AlreadyInitialized):
        init(uri, SCHEMA)
    assert Backstage(uri).objects.read_text(name) == "x"


@pytest.mark.acceptance("S-003")
def test_a_stray_schema_file_is_overcome_by_force(uri):
    Backstage(uri).objects.write_text(SOURCE_FILE, OTHER_SCHEMA)
    with pytest.raises(AlreadyInitialized):
        init(uri, SCHEMA)
    assert init(uri, SCHEMA, force=True).schema.source == SCHEMA
    assert list(open_graph(uri)._snapshot().entries) == KEYS


def test_force_does_not_harm_a_graph_that_exists(uri):
    init(uri, SCHEMA)
    before = contract_texts(uri)
    with pytest.raises(AlreadyInitialized, match="open it or choose another location"):
        init(uri, OTHER_SCHEMA, force=True)
    assert contract_texts(uri) == before
    assert list(open_graph(uri)._snapshot().entries) == KEYS


def test_a_graph_that_lost_its_schema_files_is_not_built_over(uri):
    init(uri, SCHEMA)
    for name in CONTRACT_FILES:
        Backstage(uri).objects.delete(name)
    for force in (False, True):
        with pytest.raises(TableExists, match="has lost its schema files; restore them"):
            init(uri, OTHER_SCHEMA, force=force)
    assert set(contract_texts(uri).values()) == {None}


@pytest.mark.acceptance("S-004")
def test_of_several_inits_at_once_exactly_one_succeeds(uri):
    schemas = [SCHEMA + f"node Mine{n} {{ name: String @key }}\n" for n in range(4)]
    together = Barrier(len(schemas))

    def attempt(schema: str) -> str | None:
        together.wait()
        try:
            return init(uri, schema).schema.source
        except AlreadyInitialized:
            return None

    with ThreadPoolExecutor(len(schemas)) as threads:
        winners = [schema for schema in threads.map(attempt, schemas) if schema]
    assert len(winners) == 1
    graph = open_graph(uri)
    assert graph.schema.source == winners[0]
    assert graph._snapshot().version == 1
    assert len(graph._snapshot().entries) == 5


# -- failures --------------------------------------------------------------------------------


@pytest.mark.acceptance("S-005")
@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ("node {", "OG-L-001"),
        ("edge Knows: Person -> Nobody\n", "OG-L-002"),
        ("node P { id: String @key }", "OG-L-002"),
        ("node L { v: Vector(0) }", "OG-L-001"),
    ],
)
def test_a_schema_that_does_not_compile_leaves_the_place_empty(local_uri, schema, code):
    with pytest.raises(LanguageError) as raised:
        init(local_uri, schema)
    assert raised.value.code == code
    assert not Path(local_uri).exists()


@pytest.mark.acceptance("S-006")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_failing_init_takes_its_schema_files_away_again(uri, point, force):
    with armed(point, Fail()), pytest.raises(InjectedFault, match=point):
        init(uri, SCHEMA, force=force)
    assert set(contract_texts(uri).values()) == {None}


@pytest.mark.parametrize("point", POINTS)
def test_after_a_failed_init_the_next_one_works(local_uri, point):
    with armed(point, Fail()), pytest.raises(InjectedFault):
        init(local_uri, SCHEMA)
    with pytest.raises(GraphNotFound):
        open_graph(local_uri)
    assert init(local_uri, OTHER_SCHEMA)._snapshot().version == 1


def test_a_failing_init_leaves_tables_alone_that_are_not_its_own(local_uri):
    with armed("init.after_coordinator_init", Fail()), pytest.raises(InjectedFault):
        init(local_uri, SCHEMA)
    backstage = Backstage(local_uri)
    stray = "nodes/40d76f1f51639ec0"
    init(local_uri + "2", SCHEMA)
    (Path(local_uri) / "nodes").mkdir(exist_ok=True)
    (Path(local_uri + "2") / stray).rename(Path(local_uri) / stray)
    with pytest.raises(TableExists):
        init(local_uri, SCHEMA)
    assert backstage.tables.open(stray).version == 1
    assert set(contract_texts(local_uri).values()) == {None}


@pytest.mark.parametrize("below", ["", "deeper/graph"])
def test_a_path_that_is_a_file_is_refused(tmp_path, below):
    file = tmp_path / "file"
    file.write_text("mine")
    for force in (False, True):
        with pytest.raises(InputError, match=r"file' is a file, not a directory"):
            init(file / below, SCHEMA, force=force)
    assert file.read_text() == "mine"


def test_a_link_to_nowhere_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"link' is a link to nowhere"):
        init(tmp_path / "link" / "graph", SCHEMA)
    assert list(tmp_path.iterdir()) == [tmp_path / "link"]


def test_a_link_to_a_directory_is_a_place(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert init(tmp_path / "link" / "graph", SCHEMA)._snapshot().version == 1


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("", InputError),
        ("ftp://host/graph", InputError),
        ("memory://", InputError),
        ("s3://", StoreCallFailed),
        ("file://host/graph", InputError),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(uri, error):
    with pytest.raises(error):
        init(uri, SCHEMA)


def test_a_read_only_place_is_refused_and_stays_empty(open_folder):
    with without_write_access(open_folder):
        with pytest.raises(StorageError, match="Permission denied"):
            init(open_folder, SCHEMA)
        with pytest.raises(StorageError, match="Permission denied"):
            init(open_folder / "graph", SCHEMA)
    assert list(open_folder.iterdir()) == []
    assert init(open_folder, SCHEMA)._snapshot().version == 1


# -- a store that cannot be trusted ----------------------------------------------------------


@pytest.mark.acceptance("S-137")
@pytest.mark.parametrize(
    ("ignored", "check"),
    [("if-none-match", "refuse to create twice"), ("if-match", "refuse to replace a change")],
)
def test_a_server_that_ignores_a_condition_is_refused_and_stays_empty(ignored, check, monkeypatch):
    with stub_server(ignored=frozenset({ignored})) as stub:
        for name, value in environment_for(stub.endpoint).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(UnsafeStore, match="does not honour conditional put") as caught:
            init("s3://bucket/graph", SCHEMA)
        assert caught.value.check == check
        assert stub.objects == {}


@pytest.mark.acceptance("S-137")
def test_a_disk_without_hard_links_is_refused_and_stays_empty(tmp_path, without_hard_links):
    with without_hard_links(), pytest.raises(UnsafeStore, match="hard links"):
        init(tmp_path, SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_missing_parents_are_made(tmp_path):
    assert init(tmp_path / "a" / "b" / "graph", SCHEMA)._snapshot().version == 1
