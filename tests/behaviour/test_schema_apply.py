"""Changing the schema of a graph with rows: what stays, what comes, what goes, and who is in the way."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path
from threading import Thread

import pytest

from omnigraph.engine.graph import Graph, init
from omnigraph.engine.graph import open as open_graph
from omnigraph.errors import (
    EmbeddingNotConfigured,
    HeadMoved,
    HistoryRemoved,
    LoadError,
    OmnigraphError,
    ReadOnlyHandle,
    SchemaApplyBlocked,
    SchemaApplyRunning,
    SchemaMoved,
    TableDrift,
    TypeCheckError,
    UnsupportedMigration,
)
from omnigraph.faults import InjectedFault
from omnigraph.storage.indexes import list_indexes
from omnigraph.storage.stage import commit_staged, stage_restore
from omnigraph.testing.faults import Fail, FailStorage, Pause, armed
from omnigraph.versioning.contract import CONTRACT_FILES, HISTORY_DIR, STAGED
from tests.workshop import WORKSHOP, WORKSHOP_ROWS

MAKER = "node:Maker"
SCORES = "query q() { match { $m: Maker } return { $m.handle, $m.score } order { $m.handle } }"
NICK = WORKSHOP.replace("    score: F64?", '    score: F64?\n    nick: String @backfill("none")')
RATING = WORKSHOP.replace("    score: F64?", '    rating: F64? @rename_from("score")')
WITHOUT_SCORE = WORKSHOP.replace("    score: F64?\n", "")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of which every test gets a copy."""
    root = tmp_path_factory.mktemp("workshop") / "graph"
    init(root, WORKSHOP).load(WORKSHOP_ROWS)
    return root


@pytest.fixture
def graph(workshop: Path, local_uri: str) -> Graph:
    """The workshop, in place of the small graph of the other tests."""
    shutil.copytree(workshop, local_uri)
    return open_graph(local_uri)


def makers(graph: Graph, *properties: str, at: str | None = None) -> list[list[object]]:
    """The makers by handle, with the named properties of each."""
    wanted = ", ".join(f"$m.{name}" for name in ("handle", *properties))
    query = f"query q() {{ match {{ $m: Maker }} return {{ {wanted} }} order {{ $m.handle }} }}"
    return [list(row.values()) for row in graph.query(query, at=at).to_dicts()]


def table_versions(graph: Graph) -> dict[str, tuple[str, int]]:
    return {e.table_id: (e.location, e.version) for e in graph.snapshot().entries.values()}


def staged_files(root: str) -> list[str]:
    return [name for name in CONTRACT_FILES if Path(root, f"{name}{STAGED}").exists()]


# -- adding -------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-044")
def test_a_new_optional_property_is_null_in_rows_that_are_there(graph):
    result = graph.apply_schema(WORKSHOP.replace("score: F64?", "score: F64?\n    nick: String?"))
    assert result.applied
    assert [step.to_json() for step in result.plan.steps] == [
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Maker",
            "property_name": "nick",
            "property_type": {
                "scalar": "String",
                "nullable": True,
                "list": False,
                "enum_values": None,
            },
        }
    ]
    assert makers(graph, "nick") == [["ada", None], ["bo", None], ["cy", None], ["dee", None]]
    graph.mutate('query q() { update Maker set { nick: "a" } where handle = "ada" }')
    assert makers(graph, "nick")[0] == ["ada", "a"]


@pytest.mark.acceptance("L-064")
def test_a_required_property_gets_its_backfill_once(graph):
    steps = graph.apply_schema(NICK).plan.steps
    assert [step.to_json()["backfill"] for step in steps] == ["none"]
    assert [row[1] for row in makers(graph, "nick")] == ["none"] * 4
    with pytest.raises(TypeCheckError, match="T12"):
        graph.mutate('query q() { insert Maker { handle: "eve" } }')
    graph.mutate('query q() { insert Maker { handle: "eve", nick: "e" } }')
    assert makers(graph, "nick")[-1] == ["eve", "e"]


@pytest.mark.acceptance("L-065")
def test_a_backfill_that_stays_or_goes_is_no_change(graph):
    graph.apply_schema(NICK)
    before = graph.head()
    for text in (NICK, NICK.replace(' @backfill("none")', "")):
        assert graph.plan_schema(text).steps == ()
        assert not graph.apply_schema(text).applied
    assert graph.head() == before


@pytest.mark.acceptance("L-066")
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ('I32? @backfill("-1")', -1),
        ("Bool @backfill(true)", True),
        ('Date @backfill("2024-05-01")', 19844),
        ('DateTime @backfill("2024-05-01T10:00:00Z")', "2024-05-01T10:00:00"),
        ('[I32] @backfill("[1, null]")', [1, None]),
        ('Vector(2) @backfill("[0.5, 1]")', [0.5, 1.0]),
        ("enum(low, high) @backfill(low)", "low"),
        ('U64 @backfill("18446744073709551615")', 2**64 - 1),
    ],
)
def test_backfills_of_every_type(graph, declared, expected):
    graph.apply_schema(WORKSHOP.replace("score: F64?", f"score: F64?\n    extra: {declared}"))
    entity = graph.entity_at_target("main", MAKER, "ada")
    assert entity is not None
    assert entity["extra"] == expected
    assert entity["score"] == 9.5


def test_rows_keep_their_identity_and_older_commits_their_columns(graph):
    before = graph.head()
    entry = graph.snapshot().entry(MAKER)
    ids = graph.snapshot().open(graph._tables, MAKER).read(["id"], with_row_ids=True)
    graph.apply_schema(NICK)
    now = graph.snapshot().entry(MAKER)
    found = graph.snapshot().open(graph._tables, MAKER).read(["id"], with_row_ids=True)
    assert found.sort_by("id") == ids.sort_by("id")
    assert now.version == entry.version + 1
    assert [row[1] for row in makers(graph, "nick", at=before)] == [None] * 4


@pytest.mark.acceptance("L-054")
def test_an_index_is_built_for_rows_that_are_there(graph):
    text = WORKSHOP.replace("    age: I32?", "    age: I32? @index")
    steps = graph.apply_schema(text).plan.steps
    assert [step.to_json()["constraint"] for step in steps] == [{"Index": ["age"]}]
    table = graph.snapshot().open(graph._tables, MAKER)
    assert ("age",) in [index.columns for index in list_indexes(table)]


@pytest.mark.acceptance("S-136")
def test_an_index_of_two_columns_moves_no_table(graph):
    before = table_versions(graph)
    text = WORKSHOP.replace("    age: I32?", "    age: I32?\n    @index(age, score)")
    assert graph.apply_schema(text).applied
    assert table_versions(graph) == before


def test_new_types_can_be_used_at_once(graph):
    new = "node Guild {\n    name: String @key\n}\nedge MemberOf: Maker -> Guild\n"
    graph.apply_schema(WORKSHOP + new)
    graph.load(
        '{"type":"Guild","data":{"name":"smiths"}}\n{"edge":"MemberOf","from":"ada","to":"smiths"}'
    )
    query = "query q() { match { $m: Maker  $m memberOf $g } return { $m.handle, $g.name } }"
    assert graph.query(query).to_dicts() == [{"m.handle": "ada", "g.name": "smiths"}]


# -- renaming -----------------------------------------------------------------------------------


@pytest.mark.acceptance("L-048", "S-179")
def test_renames_touch_no_table_and_keep_rows_index_and_history(graph):
    before, versions = graph.head(), table_versions(graph)
    ids = {n.name: n.type_id for n in graph.catalog.nodes.values()}
    text = RATING.replace("node Maker", 'node Artisan @rename_from("Maker")')
    text = text.replace("Maker ->", "Artisan ->").replace("-> Maker", "-> Artisan")
    result = graph.apply_schema(text)
    assert [step.kind for step in result.plan.steps] == ["rename_type", "rename_property"]
    assert table_versions(graph) == versions
    assert graph.catalog.nodes["Artisan"].type_id == ids["Maker"]
    assert graph.catalog.nodes["Artisan"].properties["rating"].column == "score"
    query = "query q() { match { $a: Artisan  $a mentors $b } return { $a.handle, $b.rating } }"
    now = graph.query(query).to_dicts()
    assert now
    assert graph.query(query, at=before).to_dicts() == now
    assert len(graph.commits()) == 3


@pytest.mark.acceptance("L-049", "L-050")
def test_a_renamed_property_is_read_under_its_new_name_at_earlier_commits(graph):
    before, versions = graph.head(), table_versions(graph)
    prop = graph.catalog.nodes["Maker"].properties["score"]
    graph.apply_schema(RATING)
    assert table_versions(graph) == versions
    renamed = graph.catalog.nodes["Maker"].properties["rating"]
    assert (renamed.prop_id, renamed.column) == (prop.prop_id, prop.column)
    assert makers(graph, "rating", at=before)[0] == ["ada", 9.5]
    assert graph.plan_schema(RATING).steps == ()


@pytest.mark.acceptance("L-070", "S-180")
def test_a_name_that_is_free_again_goes_to_a_new_property(graph):
    graph.apply_schema(RATING)
    both = RATING.replace("    rating:", "    score: F64?\n    rating:")
    graph.apply_schema(both)
    score = graph.catalog.nodes["Maker"].properties["score"]
    assert score.column == f"score__{score.prop_id}"
    assert makers(graph, "rating", "score")[0] == ["ada", 9.5, None]
    graph.mutate('query q() { update Maker set { score: 1.0 } where handle = "ada" }')
    assert makers(graph, "rating", "score")[0] == ["ada", 9.5, 1.0]


def test_two_properties_change_names_while_a_reader_has_them_in_memory(graph):
    graph.apply_schema(WORKSHOP.replace("score: F64?", "score: F64?\n    rank: F64?"))
    graph.mutate('query q() { update Maker set { rank: 1.0 } where handle = "ada" }')
    assert makers(graph, "score", "rank")[0] == ["ada", 9.5, 1.0]
    through = 'tmp: F64? @rename_from("score")\n    rank: F64?'
    graph.apply_schema(WORKSHOP.replace("score: F64?", through))
    swapped = 'rank: F64? @rename_from("tmp")\n    score: F64? @rename_from("rank")'
    with pytest.raises(UnsupportedMigration):
        graph.apply_schema(WORKSHOP.replace("score: F64?", swapped))
    first = 'tmp: F64?\n    score: F64? @rename_from("rank")'
    graph.apply_schema(WORKSHOP.replace("score: F64?", first))
    graph.apply_schema(
        WORKSHOP.replace("score: F64?", 'rank: F64? @rename_from("tmp")\n    score: F64?')
    )
    assert makers(graph, "score", "rank")[0] == ["ada", 1.0, 9.5]


@pytest.mark.acceptance("L-060", "L-069")
def test_a_longer_enum_and_a_rename_touch_no_table(graph):
    versions = table_versions(graph)
    text = WORKSHOP.replace("skilled, master)", "skilled, master, legend)")
    text = text.replace("node Maker", 'node Artisan @rename_from("Maker")')
    text = text.replace("Maker ->", "Artisan ->").replace("-> Maker", "-> Artisan")
    steps = [step.to_json() for step in graph.apply_schema(text).plan.steps]
    assert [step["kind"] for step in steps] == ["rename_type", "extend_enum"]
    assert steps[1]["type_name"] == "Artisan"
    assert table_versions(graph) == versions
    graph.load('{"type":"Artisan","data":{"handle":"eve","level":"legend"}}')
    assert graph.entity_at_target("main", "node:Artisan", "eve")["level"] == "legend"


@pytest.mark.acceptance("S-154")
def test_edges_with_identity_keep_it_when_a_property_of_it_is_renamed(local_uri):
    schema = (
        "node P { name: String @key }\nedge K: P -> P { kind: String\n @unique(src, dst, kind) }\n"
    )
    graph = init(local_uri, schema)
    nodes = '{"type":"P","data":{"name":"a"}}\n{"type":"P","data":{"name":"b"}}\n'
    graph.load(nodes + '{"edge":"K","from":"a","to":"b","data":{"kind":"x"}}')
    ids = [json.loads(line)["data"]["id"] for line in exported(graph, "K")]
    renamed = schema.replace("kind: String", 'sort: String @rename_from("kind")')
    graph.apply_schema(renamed.replace("dst, kind", "dst, sort"))
    graph.load('{"edge":"K","from":"a","to":"b","data":{"sort":"x"}}')
    assert [json.loads(line)["data"]["id"] for line in exported(graph, "K")] == ids


def exported(graph: Graph, *types: str) -> list[str]:
    out = StringIO()
    graph.export(out, types=types)
    return out.getvalue().splitlines()


# -- dropping -----------------------------------------------------------------------------------


@pytest.mark.acceptance("L-052", "L-062", "S-191")
def test_a_dropped_property_is_there_at_earlier_commits(graph):
    before = graph.head()
    steps = [step.to_json() for step in graph.apply_schema(WITHOUT_SCORE).plan.steps]
    assert [(step["kind"], step["mode"]) for step in steps] == [("drop_property", "soft")]
    with pytest.raises(TypeCheckError, match="score"):
        graph.query(SCORES)
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    assert makers(open_again(graph), "score", at=before)[0] == ["ada", 9.5]
    graph.mutate('query q() { update Maker set { age: 42 } where handle = "ada" }')
    assert makers(graph, "age")[0] == ["ada", 42]


def open_again(graph: Graph) -> Graph:
    return open_graph(graph.uri)


@pytest.mark.acceptance("S-116")
def test_a_hard_drop_cannot_be_undone_by_going_back(graph):
    before = graph.head()
    graph.load('{"type":"Maker","data":{"handle":"eve","score":1}}')
    result = graph.apply_schema(WITHOUT_SCORE, allow_data_loss=True)
    assert [step.to_json()["mode"] for step in result.plan.steps] == ["hard"]
    for target in (before, result.receipt.parent_commit_id):
        with pytest.raises(HistoryRemoved, match="Maker"):
            makers(open_again(graph), "score", at=target)
    assert len(makers(graph, "age")) == 5
    assert graph.commit(before).graph_commit_id == before
    graph.mutate('query q() { delete Maker where handle = "eve" }')


def test_a_hard_drop_stands_although_the_data_cannot_be_removed_yet(graph):
    before = graph.head()
    with armed("schema_apply.before_removal", FailStorage()):
        assert graph.apply_schema(WITHOUT_SCORE, allow_data_loss=True).applied
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    graph.cleanup(keep_versions=1)
    with pytest.raises(HistoryRemoved):
        makers(open_again(graph), "score", at=before)


@pytest.mark.acceptance("L-056", "S-115")
def test_a_dropped_type_is_there_at_earlier_commits(graph):
    before = graph.head()
    text = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    steps = [step.to_json() for step in graph.apply_schema(text).plan.steps]
    assert [(s["kind"], s["type_kind"], s["mode"]) for s in steps] == [
        ("drop_type", "edge", "soft")
    ]
    assert "edge:Borrows" not in graph.snapshot().entries
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle, $t.code } }"
    with pytest.raises(TypeCheckError):
        graph.query(query)
    assert graph.query(query, at=before).to_dicts()
    graph.mutate('query q() { delete Maker where handle = "ada" }')


def test_a_hard_dropped_type_is_gone_for_good(graph):
    before = graph.head()
    text = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    graph.apply_schema(text, allow_data_loss=True)
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle } }"
    with pytest.raises(HistoryRemoved):
        open_again(graph).query(query, at=before)
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]


@pytest.mark.acceptance("S-119")
def test_a_type_that_comes_back_starts_anew_in_a_place_of_its_own(graph):
    before = graph.head()
    without = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    old = graph.snapshot().entry("edge:Borrows")
    graph.apply_schema(without)
    graph.apply_schema(WORKSHOP)
    new = graph.snapshot().entry("edge:Borrows")
    assert new.location == f"{old.location}-{graph.catalog.edges['Borrows'].type_id}"
    assert (old.row_count > 0, new.row_count) == (True, 0)
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle, $t.code } }"
    assert graph.query(query).to_dicts() == []
    assert graph.query(query, at=before).to_dicts()
    graph.load('{"edge":"Borrows","from":"ada","to":"sa-1","data":{"note":"n"}}', "append")
    assert graph.query(query).to_dicts() == [{"m.handle": "ada", "t.code": "sa-1"}]


@pytest.mark.acceptance("S-181")
def test_a_property_that_comes_back_is_empty_and_has_a_new_number(graph):
    before = graph.head()
    first = graph.catalog.nodes["Maker"].properties["score"].prop_id
    graph.apply_schema(WITHOUT_SCORE)
    low = graph.catalog.ir.next_id
    graph.apply_schema(WORKSHOP)
    again = graph.catalog.nodes["Maker"].properties["score"]
    assert again.prop_id >= low > first
    assert again.column == f"score__{again.prop_id}"
    assert [row[1] for row in makers(graph, "score")] == [None] * 4
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    assert graph.catalog.ir.next_id > low


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.acceptance("S-113")
def test_the_same_schema_changes_nothing(graph):
    before = graph.snapshot()
    result = graph.apply_schema(WORKSHOP + "// a remark\n")
    assert (result.applied, result.receipt.manifest_version) == (False, before.version)
    assert graph.schema == WORKSHOP
    assert graph.head() == before.commit_id


@pytest.mark.acceptance("L-045", "L-046", "L-047", "L-053", "L-055", "L-057", "L-063", "S-117")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("score: F64?", "score: F64?\n    nick: String", r"\[OG-MF-103\].*@backfill"),
        ("age: I32?", "age: I64?", r"\[OG-MF-106\]"),
        ("age: I32?", "age: I32", r"\[OG-MF-106\]"),
        ("    serial: String? @unique\n", "", "removing constraints"),
        ("joined: Date?", "joined: Date? @unique", "adding constraint"),
        ("@card(0..1)", "@card(0..2)", "changing cardinality"),
        ("enum(novice, skilled, master)?", "enum(skilled, master)?", r"\[OG-MF-106\]"),
        ("enum(novice, skilled, master)?", "String?", r"\[OG-MF-106\]"),
        ("score: F64?", 'x: F64? @rename_from("nope")', "no accepted property"),
    ],
)
def test_what_cannot_be_done_changes_nothing(graph, old, new, message):
    before, versions = graph.snapshot(), table_versions(graph)
    assert old in WORKSHOP
    with pytest.raises(UnsupportedMigration, match=message):
        graph.apply_schema(WORKSHOP.replace(old, new))
    assert graph.snapshot().version == before.version
    assert table_versions(graph) == versions
    assert graph.recovery_status().pending == ()


@pytest.mark.acceptance("L-061", "S-114")
def test_branches_are_in_the_way_until_they_are_gone(graph):
    graph.create_branch("draft")
    with pytest.raises(SchemaApplyBlocked, match=r"requires a graph with only main.*draft"):
        graph.apply_schema(NICK)
    assert graph.plan_schema(NICK).supported
    graph.load('{"type":"Maker","data":{"handle":"eve"}}')
    graph.delete_branch("draft")
    assert graph.apply_schema(NICK).applied
    draft = graph.create_branch("draft")
    draft.mutate('query q() { update Maker set { nick: "n" } where handle = "ada" }')


def test_a_handle_for_reading_plans_but_does_not_apply(graph):
    reader = open_graph(graph.uri, read_only=True)
    assert reader.plan_schema(NICK).supported
    with pytest.raises(ReadOnlyHandle):
        reader.apply_schema(NICK)


def test_an_expected_head_that_has_moved_is_refused(graph):
    before = graph.head()
    graph.load('{"type":"Maker","data":{"handle":"eve"}}')
    with pytest.raises(HeadMoved):
        graph.apply_schema(NICK, expected_head=before)
    assert graph.apply_schema(NICK, expected_head=graph.head(), message="m", actor="ada").applied
    draft = graph.commit(graph.head()).draft
    assert (draft.operation.value, draft.message, draft.actor_id) == ("schema_apply", "m", "ada")


def test_a_table_that_moved_by_itself_is_refused(graph):
    shed = graph.snapshot().open(graph._tables, "node:Shed")
    again = stage_restore(shed, shed.version)
    commit_staged(shed, again, operation_id="nobody", writer_kind="Test")
    tables = table_versions(graph)
    text = WORKSHOP.replace("openedAt: DateTime?", "openedAt: DateTime?\n    size: I32?")
    with pytest.raises(TableDrift, match="repair"):
        graph.apply_schema(text)
    assert table_versions(graph) == tables
    assert graph.apply_schema(NICK).applied


def test_required_vectors_are_computed_or_nothing_happens(graph, monkeypatch):
    text = WORKSHOP.replace(
        "    label: String @index", '    label: String @index\n    sense: Vector(4) @embed("label")'
    )
    before = graph.head()
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EmbeddingNotConfigured):
        graph.apply_schema(text)
    assert graph.head() == before
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph.apply_schema(text)
    query = "query q() { match { $t: Tool } return { $t.code, $t.sense } }"
    assert all(len(row["t.sense"]) == 4 for row in graph.query(query).to_dicts())
    assert all(not prop.startswith("__") for prop in graph.catalog.nodes["Tool"].properties)


# -- crashes and others -------------------------------------------------------------------------

POINTS = [
    ("schema_apply.pre_table_commit", False),
    ("schema_apply.post_table_commit", False),
    ("schema_apply.before_staging_write", False),
    ("schema_apply.after_source_staged", False),
    ("schema_apply.after_staging_write", True),
    ("schema_apply.after_manifest_commit", True),
    ("schema_apply.before_rename", True),
]


@pytest.mark.acceptance("S-118", "S-182", "S-120")
@pytest.mark.parametrize("again", ["open", "write", "refresh"])
@pytest.mark.parametrize(("point", "completes"), POINTS)
def test_a_crash_leaves_the_old_schema_or_the_new_one(graph, point, completes, again):
    text = NICK + "node Guild {\n    name: String @key\n}\n"
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.apply_schema(text)
    match again:
        case "open":
            graph = open_graph(graph.uri)
        case "write":
            row = (
                '{"type":"Guild","data":{"name":"g"}}'
                if completes
                else '{"type":"Shed","data":{"slug":"s"}}'
            )
            graph.load(row)
        case _:
            graph.refresh()
    assert staged_files(graph.uri) == []
    assert graph.recovery_status().pending == ()
    assert ("nick" in graph.catalog.nodes["Maker"].properties) == completes
    assert ("Guild" in graph.catalog.nodes) == completes
    assert graph.schema == (text if completes else WORKSHOP)
    heads = {
        e.table_key: graph._tables.open(e.location).version
        for e in graph.snapshot().entries.values()
    }
    assert heads == {key: entry.version for key, entry in graph.snapshot().entries.items()}
    assert graph.apply_schema(text).applied != completes
    assert [row[1] for row in makers(graph, "nick")][:4] == ["none"] * 4
    graph.load('{"type":"Guild","data":{"name":"smiths"}}')


@pytest.mark.parametrize("point", [point for point, _ in POINTS[:4]])
def test_an_apply_that_fails_takes_itself_back(graph, point):
    before = makers(graph, "score")
    with armed(point, FailStorage(), times=1), pytest.raises(OmnigraphError):
        graph.apply_schema(NICK)
    assert staged_files(graph.uri) == []
    assert graph.recovery_status().pending == ()
    assert makers(graph, "score") == before
    assert graph.apply_schema(NICK).applied


def test_a_reader_sees_the_new_schema_from_the_publish_on(graph):
    before = graph.head()
    with armed("schema_apply.after_manifest_commit", Fail()), pytest.raises(InjectedFault):
        graph.apply_schema(RATING)
    reader = open_graph(graph.uri, read_only=True)
    assert makers(reader, "rating")[0] == ["ada", 9.5]
    assert makers(reader, "rating", at=before)[0] == ["ada", 9.5]
    assert len(staged_files(graph.uri)) == 3


@pytest.mark.acceptance("S-092")
def test_a_load_beside_a_running_apply_waits_and_is_told(graph):
    row = '{"type":"Maker","data":{"handle":"eve"}}'
    outcome: list[object] = []

    def load() -> None:
        try:
            outcome.append(open_graph(graph.uri).load(row).receipt.manifest_version)
        except OmnigraphError as error:
            outcome.append(error)

    pause = Pause()
    with armed("schema_apply.after_staging_write", pause):
        applying = Thread(target=graph.apply_schema, args=(NICK,))
        applying.start()
        pause.wait_until_reached()
        reader = open_graph(graph.uri, read_only=True)
        assert makers(reader, "score")[0] == ["ada", 9.5]
        with pytest.raises(SchemaApplyRunning, match="already in progress"):
            graph.apply_schema(WITHOUT_SCORE)
        loading = Thread(target=load)
        loading.start()
        pause.release()
        applying.join()
        loading.join()
    assert makers(graph, "nick")[0] == ["ada", "none"]
    [told] = outcome
    assert "T12" in str(told) or isinstance(told, SchemaMoved | LoadError)
    assert staged_files(graph.uri) == []


@pytest.mark.acceptance("S-093")
def test_after_a_crash_the_same_handle_loads_rows_of_the_new_type(graph):
    text = WORKSHOP + "node Guild {\n    name: String @key\n}\n"
    with armed("schema_apply.after_staging_write", Fail()), pytest.raises(InjectedFault):
        graph.apply_schema(text)
    graph.load('{"type":"Guild","data":{"name":"smiths"}}')
    assert graph.schema == text
    [recovery] = graph.recoveries()
    assert recovery.audit.kind.value == "RolledForward"


@pytest.mark.acceptance("S-069", partly="mutations and merges have their own tests")
def test_an_interrupted_write_is_settled_first_and_loses_no_row(graph):
    point = "mutation.post_finalize_pre_publisher"
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.load('{"type":"Maker","data":{"handle":"eve","score":2}}')
    assert graph.apply_schema(NICK).applied
    assert makers(graph, "score", "nick")[-1] == ["eve", 2.0, "none"]
    operations = [commit.draft.operation.value for commit in graph.commits()]
    assert operations == ["init", "load", "recovery", "schema_apply"]


def test_a_writer_that_knows_the_old_schema_is_told(graph):
    other = open_again(graph)
    graph.apply_schema(RATING)
    with pytest.raises(TypeCheckError):
        other.mutate('query q() { update Maker set { score: 1.0 } where handle = "ada" }')
    update = 'query q() { update Maker set { rating: 1.0 } where handle = "ada" }'
    try:
        other.mutate(update)
    except SchemaMoved:
        other.mutate(update)
    assert makers(graph, "rating")[0] == ["ada", 1.0]


def test_every_schema_a_graph_ever_had_is_kept(graph):
    for text in (NICK, RATING, WORKSHOP):
        graph.apply_schema(text)
    assert len(list(Path(graph.uri, HISTORY_DIR).iterdir())) == 4
