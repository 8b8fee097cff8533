"""Applying a schema: what is refused, what crashes leave behind, and who else is at work meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    HeadMoved,
    LoadError,
    OmnigraphError,
    QueriesBroken,
    ReadOnlyHandle,
    SchemaApplyBlocked,
    SchemaApplyRunning,
    SchemaMoved,
    StorageError,
    TableDrift,
    TypeCheckError,
    UnsupportedMigration,
)
from omnigraph.storage.stage import commit_staged, stage_restore
from omnigraph.versioning.contract import CONTRACT_FILES, HISTORY_DIR, STAGED
from tests.behaviour.reshaping import (
    NICK,
    RATING,
    WITHOUT_SCORE,
    makers,
    open_again,
    table_versions,
)
from tests.support.faults import Fail, FailStorage, InjectedFault, Pause, armed
from tests.support.workshop import WORKSHOP


@pytest.fixture
def graph(workshop_graph: Graph) -> Graph:
    """The workshop, in place of the small graph of the other tests."""
    return workshop_graph


def staged_files(root: str) -> list[str]:
    return [name for name in CONTRACT_FILES if Path(root, f"{name}{STAGED}").exists()]


@pytest.mark.acceptance("S-113")
def test_the_same_schema_changes_nothing(graph):
    before = graph._snapshot()
    result = graph.schema.apply(WORKSHOP + "// a remark\n")
    assert (result.applied, result.receipt.manifest_version) == (False, before.version)
    assert graph.schema.source == WORKSHOP
    assert graph.head().id == before.commit_id


@pytest.mark.acceptance("L-045", "L-063", "S-117")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("score: F64?", "score: F64?\n    nick: String", r"\[OG-MF-103\].*@backfill"),
        ("age: I32?", "age: U32?", r"\[OG-MF-106\]"),
        ("    code: String @key\n", "    code: String\n", "removing constraints"),
        (
            "node Shed {\n    slug: String @key",
            "node Shed {\n    slug: String",
            "removing constraints",
        ),
        ("enum(novice, skilled, master)?", "enum(skilled, master)?", r"\[OG-MF-106\]"),
        ("enum(novice, skilled, master)?", "String?", r"\[OG-MF-106\]"),
        ("score: F64?", 'x: F64? @rename_from("nope")', "no accepted property"),
    ],
)
def test_what_cannot_be_done_changes_nothing(graph, old, new, message):
    before, versions = graph._snapshot(), table_versions(graph)
    assert old in WORKSHOP
    with pytest.raises(UnsupportedMigration, match=message):
        graph.schema.apply(WORKSHOP.replace(old, new))
    assert graph._snapshot().version == before.version
    assert table_versions(graph) == versions
    assert graph._core.recovery.status().pending == ()


def test_a_schema_that_would_break_queries_is_refused_with_all_of_them(graph, tmp_path):
    queries = tmp_path / "queries.gq"
    queries.write_text(
        "query ages() { match { $m: Maker } return { $m.age } }\n"
        "query best() {\n    match { $m: Maker  $m.score > 5.0 }\n    return { $m.handle }\n}\n"
        'query rate($s: F64) { update Maker set { score: $s } where handle = "ada" }\n'
    )
    before = graph.head().id
    with pytest.raises(QueriesBroken) as caught:
        graph.schema.apply(WITHOUT_SCORE, queries=[queries, "query q() {"])
    broken = [(query.name, query.diagnostic.position.line) for query in caught.value.queries]
    assert broken == [("best", 3), ("rate", 6), (None, 1)]
    message = str(caught.value)
    assert message.startswith("schema check: 3 queries do not fit the new schema; change")
    assert f"query 'best': {queries}:3:27: type error: " in message
    assert (graph.head().id, staged_files(graph.uri)) == (before, [])
    assert graph.schema.apply(RATING.replace("rating", "score2"), queries=[]).applied


def test_queries_that_fit_the_new_schema_only_are_no_obstacle(graph):
    query = "query q() { match { $m: Maker } return { $m.nick } }"
    assert graph.schema.apply(NICK, queries=[query]).applied
    assert [row["m.nick"] for row in graph.query(query).to_dicts()] == ["none"] * 4


@pytest.mark.acceptance("L-061", "S-114")
def test_branches_are_in_the_way_until_they_are_gone(graph):
    graph.branches.create("draft")
    with pytest.raises(SchemaApplyBlocked, match=r"requires a graph with only main.*draft"):
        graph.schema.apply(NICK)
    assert graph.schema.plan(NICK).supported
    graph.load(b'{"type":"Maker","data":{"handle":"eve"}}', "merge")
    graph.branches.delete("draft")
    assert graph.schema.apply(NICK).applied
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Maker set { nick: "n" } where handle = "ada" }')


def test_a_handle_for_reading_plans_but_does_not_apply(graph):
    reader = open_graph(graph.uri, read_only=True)
    assert reader.schema.plan(NICK).supported
    with pytest.raises(ReadOnlyHandle):
        reader.schema.apply(NICK)


def test_an_expected_head_that_has_moved_is_refused(graph):
    before = graph.head().id
    graph.load(b'{"type":"Maker","data":{"handle":"eve"}}', "merge")
    with pytest.raises(HeadMoved):
        graph.schema.apply(NICK, expected_head=before)
    assert (
        graph.as_actor("ada").schema.apply(NICK, expected_head=graph.head().id, message="m").applied
    )
    made = graph.head()
    assert (made.operation, made.message, made.actor) == ("schema_apply", "m", "ada")


def test_a_table_that_moved_by_itself_is_refused(graph):
    shed = graph._snapshot().open(graph._core.tables, "node:Shed")
    again = stage_restore(shed, shed.version)
    commit_staged(shed, again, operation_id="nobody", writer_kind="Test")
    tables = table_versions(graph)
    text = WORKSHOP.replace("openedAt: DateTime?", "openedAt: DateTime?\n    size: I32?")
    with pytest.raises(TableDrift, match="repair"):
        graph.schema.apply(text)
    assert table_versions(graph) == tables
    assert graph.schema.apply(NICK).applied


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
        graph.schema.apply(text)
    match again:
        case "open":
            graph = open_graph(graph.uri)
        case "write":
            row = (
                b'{"type":"Guild","data":{"name":"g"}}'
                if completes
                else b'{"type":"Shed","data":{"slug":"s"}}'
            )
            graph.load(row, "merge")
        case _:
            graph.maintenance.recover()
    assert staged_files(graph.uri) == []
    assert graph._core.recovery.status().pending == ()
    assert ("nick" in graph.schema.catalog.nodes["Maker"].properties) == completes
    assert ("Guild" in graph.schema.catalog.nodes) == completes
    assert graph.schema.source == (text if completes else WORKSHOP)
    heads = {
        e.table_key: graph._core.tables.open(e.location).version
        for e in graph._snapshot().entries.values()
    }
    assert heads == {key: entry.version for key, entry in graph._snapshot().entries.items()}
    assert graph.schema.apply(text).applied != completes
    assert [row[1] for row in makers(graph, "nick")][:4] == ["none"] * 4
    graph.load(b'{"type":"Guild","data":{"name":"smiths"}}', "merge")


@pytest.mark.parametrize("point", [point for point, _ in POINTS[:4]])
def test_an_apply_that_fails_takes_itself_back(graph, point):
    before = makers(graph, "score")
    with armed(point, FailStorage(), times=1), pytest.raises(StorageError, match=point):
        graph.schema.apply(NICK)
    assert staged_files(graph.uri) == []
    assert graph._core.recovery.status().pending == ()
    assert makers(graph, "score") == before
    assert graph.schema.apply(NICK).applied


def test_a_reader_sees_the_new_schema_from_the_publish_on(graph):
    before = graph.head().id
    with armed("schema_apply.after_manifest_commit", Fail()), pytest.raises(InjectedFault):
        graph.schema.apply(RATING)
    reader = open_graph(graph.uri, read_only=True)
    assert makers(reader, "rating")[0] == ["ada", 9.5]
    assert makers(reader, "rating", at=before)[0] == ["ada", 9.5]
    assert len(staged_files(graph.uri)) == 3


@pytest.mark.acceptance("S-092")
def test_a_load_beside_a_running_apply_waits_and_is_told(graph):
    row = b'{"type":"Maker","data":{"handle":"eve"}}'
    outcome: list[object] = []

    def load() -> None:
        try:
            outcome.append(open_graph(graph.uri).load(row, "merge").receipt.manifest_version)
        except OmnigraphError as error:
            outcome.append(error)

    pause = Pause()
    with armed("schema_apply.after_staging_write", pause):
        applying = Thread(target=graph.schema.apply, args=(NICK,))
        applying.start()
        pause.wait_until_reached()
        reader = open_graph(graph.uri, read_only=True)
        assert makers(reader, "score")[0] == ["ada", 9.5]
        with pytest.raises(SchemaApplyRunning, match="already in progress"):
            graph.schema.apply(WITHOUT_SCORE)
        loading = Thread(target=load)
        loading.start()
        pause.release()
        applying.join()
        loading.join()
    assert makers(graph, "nick")[0] == ["ada", "none"]
    [error] = outcome
    assert "T12" in str(error) or isinstance(error, SchemaMoved | LoadError)
    assert staged_files(graph.uri) == []


@pytest.mark.acceptance("S-093")
def test_after_a_crash_the_same_handle_loads_rows_of_the_new_type(graph):
    text = WORKSHOP + "node Guild {\n    name: String @key\n}\n"
    with armed("schema_apply.after_staging_write", Fail()), pytest.raises(InjectedFault):
        graph.schema.apply(text)
    graph.load(b'{"type":"Guild","data":{"name":"smiths"}}', "merge")
    assert graph.schema.source == text
    [recovery] = graph.maintenance.recoveries()
    assert recovery.audit.kind.value == "RolledForward"


@pytest.mark.parametrize(("point", "completes"), POINTS)
def test_a_branch_made_after_a_crash_has_the_schema_of_main(graph, point, completes):
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.schema.apply(NICK)
    feature = graph.branches.create("feature")
    assert graph._core.recovery.status().pending == ()
    assert ("nick" in feature.schema.catalog.nodes["Maker"].properties) == completes
    assert graph.log(reverse=True) == feature.log(reverse=True)
    eve = {"handle": "eve"} | ({"nick": "e"} if completes else {})
    feature.load(json.dumps({"type": "Maker", "data": eve}).encode(), "merge")
    assert makers(feature, *eve)[-1][1:] == list(eve.values())


@pytest.mark.acceptance("S-069", partly="mutations and merges have their own tests")
def test_an_interrupted_write_is_recovered_first_and_loses_no_row(graph):
    point = "mutation.post_finalize_pre_publisher"
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.load(b'{"type":"Maker","data":{"handle":"eve","score":2}}', "merge")
    assert graph.schema.apply(NICK).applied
    assert makers(graph, "score", "nick")[-1] == ["eve", 2.0, "none"]
    operations = [commit.operation for commit in graph.log(reverse=True)]
    assert operations == ["init", "load", "recovery", "schema_apply"]


def test_a_writer_that_knows_the_old_schema_is_told(graph):
    other = open_again(graph)
    graph.schema.apply(RATING)
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
        graph.schema.apply(text)
    assert len(list(Path(graph.uri, HISTORY_DIR).iterdir())) == 4
