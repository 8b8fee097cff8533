"""The check of a whole graph: sound graphs have no problem, and every damage that is planted is found.

Damage is done behind the engine's back, to the files or to the tables, on main and on a branch.
"""

from __future__ import annotations

import base64
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.engine.graph import Graph, init
from omnigraph.engine.graph import open as open_graph
from omnigraph.engine.maintain.verify import verify_graph
from omnigraph.engine.maintain.verify_report import MAX_EXAMPLES, VerifyProblem, VerifyReport
from omnigraph.errors import BranchNotFound
from omnigraph.storage.index_checks import CHECKSUMS
from omnigraph.versioning.contract import CONTRACT_FILES, HISTORY_DIR
from omnigraph.versioning.pins import PINS_DIR
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import (
    MANIFEST_PATH,
    TableVersion,
    rows_table,
    tombstone_row,
    version_row,
)
from tests.behaviour.graphs import Backstage, tree

SCHEMA = """
node Person {
    name: String @key
    mail: String? @unique
    age: I32?
    handle: String?
    mood: enum(calm, cross)?
    score: F64?
    scores: [F64]?
    face: Vector(2)?
    born: DateTime?
    city: String
    picture: Blob?
    notes: String? @index
    @range(age, 0..150)
    @check(handle, "^[a-z]+$")
}
node Place { country: String  town: String  size: F64?  @key(country, town) }
edge Knows: Person -> Person @card(0..3) { since: Date?  @unique(src, dst) }
edge Visited: Person -> Place { how: String? }
"""
PERSON, PLACE, KNOWS, VISITED = "node:Person", "node:Place", "edge:Knows", "edge:Visited"
BRANCHES = ["main", "dev"]
SMALL, LARGE = b"small", bytes(range(256)) * 400


def blob(content: bytes) -> str:
    return "base64:" + base64.b64encode(content).decode()


def person(name: str, **more: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "city": "Rome", **more}}) + "\n"


def place(country: str, town: str, **more: Any) -> str:
    data = {"country": country, "town": town, **more}
    return json.dumps({"type": "Place", "data": data}) + "\n"


def edge(kind: str, source: str, destination: str, **data: Any) -> str:
    return json.dumps({"edge": kind, "from": source, "to": destination, "data": data}) + "\n"


ROME, ACCRA = '["it","Rome"]', '["gh","Accra"]'
ROWS = "".join(
    [
        person("ada", mail="a@x", age=36, handle="ada", mood="calm", score=1.5, face=[0.5, 1]),
        person("bo", scores=[1, 2.5], born="2001-02-03T04:05:06Z", picture=blob(SMALL)),
        person("cy", picture=blob(LARGE), notes="a word or two"),
        place("it", "Rome", size=2.0),
        place("gh", "Accra"),
        edge("Knows", "ada", "bo", since="2020-01-01"),
        edge("Knows", "bo", "cy"),
        edge("Visited", "ada", ROME, how="by train"),
        edge("Visited", "cy", ACCRA),
    ]
)
ON_BRANCH = "".join(
    [
        person("dee", mail="d@x"),
        place("pe", "Lima"),
        edge("Knows", "dee", "ada"),
        edge("Visited", "dee", '["pe","Lima"]'),
    ]
)


class Victim:
    """A graph with a branch that has written to every table, to be damaged in one place."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def graph(self) -> Graph:
        return open_graph(self.root, read_only=True)

    def verify(self, *branches: str) -> VerifyReport:
        return verify_graph(self.graph._parts, branches=branches or None)

    def folder(self, table_key: str, branch: str) -> Path:
        """Where a branch's own line of versions of a table is."""
        if table_key == MANIFEST_PATH:
            location, line = MANIFEST_PATH, None if branch == "main" else branch
        else:
            entry = self.graph.snapshot(branch).entry(table_key)
            location, line = entry.location, entry.branch
        path = self.root / location
        return path if line is None else path / "tree" / line

    def files(self, table_key: str, branch: str, pattern: str = "data/*.lance") -> list[Path]:
        return sorted(self.folder(table_key, branch).glob(pattern))

    def dataset(self, table_key: str, branch: str) -> lance.LanceDataset:
        return lance.dataset(str(self.folder(table_key, branch)))

    def publish(self, table_key: str, branch: str, **changes: Any) -> None:
        """Make the newest stored version of a table that of the branch."""
        backstage = Backstage(self.root)
        entry = self.graph.snapshot(branch).entry(table_key)
        table = backstage.tables.open(entry.location, entry.branch)
        info = table.version_info().to_json()
        version = TableVersion(entry.table_id, table.version, entry.branch, table.row_count(), info)
        publication = Publication(
            backstage.draft(), (replace(version, **changes),), expected={entry.table_id: entry.pin}
        )
        publish(backstage.manifest, backstage.branches.find(branch).physical, publication)

    def add(self, table_key: str, branch: str, *rows: dict[str, Any]) -> None:
        """Rows that no write would take."""
        dataset = self.dataset(table_key, branch)
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=_without_blobs(dataset))
        lance.write_dataset(table, dataset, mode="append")
        self.publish(table_key, branch)

    def rewrite(self, table_key: str, branch: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """All rows anew, under a schema that allows anything."""
        dataset = self.dataset(table_key, branch)
        stored = dataset.to_table(columns=_without_blobs(dataset).names)
        changed = change(stored)
        loose = pa.schema([field.with_nullable(True) for field in changed.schema])
        lance.write_dataset(changed.cast(loose), dataset, mode="overwrite")
        self.publish(table_key, branch)


def _without_blobs(dataset: lance.LanceDataset) -> pa.Schema:
    return pa.schema([f for f in dataset.schema if not isinstance(f.type, pa.ExtensionType)])


def found(report: VerifyReport) -> set[tuple[str, str, str | None]]:
    return {(p.kind.value, p.branch, p.table_key) for p in report.problems}


def only(report: VerifyReport) -> VerifyProblem:
    assert len(report.problems) == 1, report.problems
    return report.problems[0]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        root = tmp_path_factory.mktemp("verify") / "graph"
        graph = init(root, SCHEMA)
        graph.load(ROWS)
        graph.ensure_indices()
        dev = graph.create_branch("dev")
        dev.load(ON_BRANCH)
        dev.ensure_indices()
        graph.load(person("eve"))
        graph.wait_for_upkeep()
        shutil.copytree(root, root.with_name("kept"))
        return root


@pytest.fixture
def victim(kept):
    """The graph, put back in its place: branches know where they were made."""
    shutil.rmtree(kept)
    shutil.copytree(kept.with_name("kept"), kept)
    return Victim(kept)


# -- sound graphs -------------------------------------------------------------------------------


def test_a_sound_graph_has_no_problem_and_nothing_of_it_is_changed(victim):
    before = tree(victim.root)
    report = victim.verify()
    assert report.ok
    assert report.problems == ()
    assert report.branches == ("main", "dev")
    # Four tables on main, and four that the branch has written to.
    assert (report.tables, report.rows) == (8, 10 + 13)
    assert report.files > 8
    assert tree(victim.root) == before


def test_the_report_is_short_and_a_document(victim):
    report = victim.verify()
    shown = f"VerifyReport(ok: 2 branches, 8 tables, 23 rows, {report.files} files)"
    assert repr(report) == shown
    assert json.loads(json.dumps(report.to_json())) == {
        "ok": True,
        "branches": ["main", "dev"],
        "tables": 8,
        "rows": 23,
        "files": report.files,
        "problems": [],
    }


def test_branches_that_share_all_tables_are_checked_once(victim):
    graph = open_graph(victim.root)
    for name in ("one", "two"):
        graph.create_branch(name)
    report = verify_graph(graph._parts)
    assert report.ok
    assert report.branches == ("main", "dev", "one", "two")
    assert (report.tables, report.rows) == (8, 23)


def test_only_named_branches_are_checked(victim):
    assert victim.verify("dev").branches == ("dev",)
    assert victim.verify("main", "main").branches == ("main",)
    with pytest.raises(BranchNotFound, match="did you mean `dev`"):
        victim.verify("dav")


def test_an_empty_graph_is_sound(uri):
    assert verify_graph(init(uri, SCHEMA)._parts).ok


def test_a_graph_stays_sound_whatever_its_owner_does(uri):
    graph = init(uri, SCHEMA)
    graph.load(ROWS)
    graph.mutate('query q() { delete Person where name = "cy" }')
    graph.mutate('query q() { update Person set { age: 37, mail: "b@x" } where name = "ada" }')
    branch = graph.create_branch("work")
    branch.load(ON_BRANCH)
    branch.mutate('query q() { insert Place { country: "fr", town: "Nice" } }')
    graph.load(person("eve", mail="e@x", picture=blob(LARGE)))
    assert _sound(graph)
    graph.merge("work")
    graph.merge("main", into="work")
    assert _sound(graph)
    graph.pin("first", graph.commits()[1].graph_commit_id)
    graph.delete_branch("work")
    graph.optimize()
    graph.ensure_indices()
    assert _sound(graph)
    graph.load(ON_BRANCH, "merge")
    graph.cleanup(keep_versions=1, min_age=timedelta())
    assert _sound(graph)
    changed = SCHEMA.replace("score: F64?", 'points: F64? @rename_from("score")')
    changed = changed.replace("mood: enum(calm, cross)?", 'size: I64 @backfill("7")')
    changed = changed.replace(
        "edge Visited: Person -> Place", 'edge Saw: Person -> Place @rename_from("Visited")'
    )
    graph.apply_schema(changed, allow_data_loss=False)
    graph.load(person("flo", size=1, points=0.5), "append")
    assert _sound(graph)
    graph.optimize()
    graph.create_branch("later").load(person("gus", size=2))
    assert _sound(graph)
    graph.revert(graph.head())
    assert _sound(graph)


def _sound(graph: Graph) -> bool:
    report = verify_graph(graph._parts)
    assert report.problems == ()
    return report.ok


# -- rows ---------------------------------------------------------------------------------------

BAD_ROWS = {
    "an edge from nowhere": (
        KNOWS,
        {"id": '["nix","bo"]', "src": "nix", "dst": "bo"},
        "dangling_edge",
        "edge Knows: src 'nix' not found in Person (edge '[\"nix\",\"bo\"]')",
    ),
    "an edge to nowhere": (
        VISITED,
        {"id": "v1", "src": "ada", "dst": "Rome"},
        "dangling_edge",
        "edge Visited: dst 'Rome' not found in Place (edge 'v1')",
    ),
    "a key twice": (
        PERSON,
        {"id": "bo", "name": "bo", "city": "Oslo"},
        "duplicate_id",
        "@unique violation on Person.id: value 'bo' appears in 'bo' and 'bo'",
    ),
    "a composite key twice": (
        PLACE,
        {"id": ROME, "country": "it", "town": "Rome"},
        "duplicate_id",
        f"@unique violation on Place.id: value '{ROME}' appears in '{ROME}' and '{ROME}'",
    ),
    "an edge twice": (
        KNOWS,
        {"id": '["ada","bo"]', "src": "ada", "dst": "bo"},
        "duplicate_id",
        None,
    ),
    "a generated id twice": (VISITED, None, "duplicate_id", None),
    "a unique value twice": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "mail": "a@x"},
        "duplicate_value",
        "@unique violation on Person.mail: value 'a@x' appears in 'ada' and 'zoe'",
    ),
    "an id that the key does not give": (
        PERSON,
        {"id": "zo", "name": "zoe", "city": "Oslo"},
        "wrong_id",
        "the id by Person.name is 'zoe' (id 'zo')",
    ),
    "an id that the identity does not give": (
        KNOWS,
        {"id": "k1", "src": "cy", "dst": "ada"},
        "wrong_id",
        "the id by Knows.(src, dst) is '[\"cy\",\"ada\"]' (id 'k1')",
    ),
    "a value outside of an enum": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "mood": "glad"},
        "enum",
        "invalid enum value 'glad' for Person.mood (expected: calm, cross) (id 'zoe')",
    ),
    "a value outside of a range": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "age": 151},
        "range",
        "@range violation on Person.age: value 151 > max 150 (id 'zoe')",
    ),
    "a text that does not match": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "handle": "ZOE"},
        "check",
        "@check violation on Person.handle: value 'ZOE' does not match pattern '^[a-z]+$' (id 'zoe')",
    ),
    "a number that is not finite": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "score": math.inf},
        "unfit_value",
        "Person.score is inf, which is not a value of F64? (id 'zoe')",
    ),
    "a number in a list that is not one": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "scores": [1.0, math.nan]},
        "unfit_value",
        None,
    ),
    "a vector with a hole": (
        PERSON,
        {"id": "zoe", "name": "zoe", "city": "Oslo", "face": [1.0, None]},
        "unfit_value",
        None,
    ),
}


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("what", BAD_ROWS)
def test_a_row_that_breaks_a_rule_is_reported(victim, what, branch):
    table_key, row, kind, example = BAD_ROWS[what]
    if row is None:
        (row,) = victim.dataset(table_key, branch).to_table(limit=1).to_pylist()
    victim.add(table_key, branch, row)
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == (kind, branch, table_key)
    assert problem.count == len(problem.examples) == 1
    if example is not None:
        assert problem.examples == (example,)
    assert problem.message.startswith(f"{table_key} on branch {branch}: 1 ")


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_source_with_more_edges_than_allowed_is_reported(victim, branch):
    ends = [("ada", name) for name in ("ada", "cy", "bob")]
    rows = [
        {"id": json.dumps(end, separators=(",", ":")), "src": end[0], "dst": end[1]} for end in ends
    ]
    victim.add(PERSON, branch, {"id": "bob", "name": "bob", "city": "Oslo"})
    victim.add(KNOWS, branch, *rows)
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch) == ("cardinality", branch)
    assert problem.examples == ("@card violation on edge Knows: source 'ada' has 4 edges (max 3)",)


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize(
    ("table_key", "column", "text"),
    [
        (PLACE, "id", "Place has no id"),
        (KNOWS, "src", "Knows has no src"),
        (PLACE, "town", "Place: non-nullable property 'town' has null value"),
    ],
)
def test_a_null_where_a_value_is_required_is_reported(victim, branch, table_key, column, text):
    def empty_first(rows: pa.Table) -> pa.Table:
        values = [None, *rows.column(column).to_pylist()[1:]]
        return rows.set_column(
            rows.schema.get_field_index(column), column, pa.array(values, pa.utf8())
        )

    victim.rewrite(table_key, branch, empty_first)
    kinds = {p.kind.value: p for p in victim.verify(branch).problems}
    assert kinds["missing_value"].count == 1
    assert kinds["missing_value"].examples[0].startswith(text)


def test_edges_of_a_node_that_was_removed_are_counted_and_the_first_are_shown(victim):
    count = MAX_EXAMPLES + 20
    rows = [{"id": f"v{n}", "src": f"nobody{n}", "dst": ROME} for n in range(count)]
    victim.add(VISITED, "main", *rows)
    victim.dataset(PERSON, "main").delete("id = 'cy'")
    victim.publish(PERSON, "main")
    knows, visited = victim.verify().problems
    assert (knows.kind.value, knows.table_key, knows.count) == ("dangling_edge", KNOWS, 1)
    assert (visited.table_key, visited.count) == (VISITED, count + 1)
    assert len(visited.examples) == MAX_EXAMPLES
    assert (
        visited.message
        == f"{VISITED} on branch main: {count + 1} endpoints of edges that no node has"
    )


def test_two_ids_of_one_key_are_both_wrong_ids_and_duplicate_values(victim):
    victim.add(PERSON, "main", {"id": "b", "name": "bo", "city": "Oslo"})
    assert found(victim.verify()) == {
        ("wrong_id", "main", PERSON),
        ("duplicate_value", "main", PERSON),
    }


def test_a_row_count_that_the_commit_does_not_have_is_reported(victim):
    victim.add(PERSON, "main", {"id": "zoe", "name": "zoe", "city": "Oslo"})
    victim.dataset(PERSON, "main").delete("id = 'zoe'")
    victim.publish(PERSON, "main", row_count=17)
    problem = only(victim.verify())
    assert problem.kind.value == "row_count"
    assert problem.examples == ("there are 4 rows, and the commit says 17",)


# -- files --------------------------------------------------------------------------------------

HOW = ["missing", "empty", "half", "zeros", "garbage"]


def spoil(path: Path, how: str) -> None:
    whole = path.read_bytes()
    match how:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "zeros":
            path.write_bytes(bytes(len(whole)))
        case "garbage":
            path.write_bytes(bytes(byte ^ 0x5A for byte in whole))


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("how", HOW)
def test_a_damaged_data_file_is_reported_and_the_other_tables_are_checked(victim, branch, how):
    victim.add(VISITED, branch, {"id": "v1", "src": "nobody", "dst": ROME})
    file = victim.files(PLACE, branch)[0]
    victim.add(PERSON, branch, {"id": "zo", "name": "zoe", "city": "Oslo"})
    spoil(file, how)
    report = victim.verify(branch)
    assert found(report) == {
        ("damaged_file", branch, PLACE),
        ("wrong_id", branch, PERSON),
        ("dangling_edge", branch, VISITED),
    }
    (damaged,) = [p for p in report.problems if p.kind.value == "damaged_file"]
    assert file.name in damaged.examples[0]


def test_a_file_that_branches_share_is_reported_for_each_table_version(victim):
    spoil(victim.files(PLACE, "main")[0], "missing")
    assert found(victim.verify()) == {
        ("damaged_file", "main", PLACE),
        ("damaged_file", "dev", PLACE),
    }


def test_rows_beside_a_damaged_fragment_are_checked(victim):
    victim.add(PERSON, "main", {"id": "zo", "name": "zoe", "city": "Oslo"})
    first, *_ = sorted(victim.files(PERSON, "main"), key=lambda path: path.stat().st_mtime_ns)
    spoil(first, "garbage")
    assert found(victim.verify("main")) == {
        ("damaged_file", "main", PERSON),
        ("wrong_id", "main", PERSON),
    }


@pytest.mark.parametrize("how", ["missing", "empty", "zeros"])
@pytest.mark.parametrize("branch", BRANCHES)
def test_a_damaged_deletion_file_is_reported(victim, branch, how):
    victim.dataset(PLACE, branch).delete("country = 'gh'")
    victim.dataset(VISITED, branch).delete("src = 'cy'")
    victim.publish(PLACE, branch)
    victim.publish(VISITED, branch)
    (file,) = victim.files(PLACE, branch, "_deletions/*")
    assert victim.verify().ok
    spoil(file, how)
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == (
        "damaged_file",
        branch,
        PLACE,
    )


def test_a_flipped_byte_never_ends_the_check(victim):
    file = victim.files(PERSON, "main")[0]
    whole = file.read_bytes()
    for position in range(0, len(whole), max(len(whole) // 20, 1)):
        changed = bytearray(whole)
        changed[position] ^= 0xFF
        file.write_bytes(changed)
        report = victim.verify("main")
        assert {p.table_key for p in report.problems} <= {PERSON, KNOWS, VISITED}
        assert report.branches == ("main",)


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_damaged_index_is_reported(tmp_path, branch):
    graph = init(tmp_path / "graph", SCHEMA)
    if branch != "main":
        graph.create_branch(branch)
    people = "".join(person(f"p{n:04}", notes=f"word{n}") for n in range(1100))
    graph.load(people, branch=branch)
    graph.ensure_indices(branch)
    graph.wait_for_upkeep()
    indexed = Victim(tmp_path / "graph")
    assert indexed.verify().ok
    index = indexed.files(PERSON, branch, "_indices/*/page_data.lance")[0]
    assert (index.parent / CHECKSUMS).exists()
    (words,) = indexed.files(PERSON, branch, "_text/notes/*.arrow")
    for how in ("zeros", "half", "missing"):
        for file in (index, words):
            spoil(file, how)
        problem = only(indexed.verify())
        assert (problem.kind.value, problem.branch) == ("damaged_index", branch)
        assert (problem.table_key, problem.count) == (PERSON, 2)
        assert index.parent.name in problem.examples[0] or "id_idx" in problem.examples[0]
        assert words.name in problem.examples[1]


@pytest.mark.parametrize("how", ["missing", "half"])
def test_a_damaged_file_of_blobs_is_reported(victim, how):
    (file,) = victim.files(PERSON, "main", "data/*/*.blob")
    spoil(file, how)
    assert found(victim.verify()) == {
        ("damaged_blob", "main", PERSON),
        ("damaged_blob", "dev", PERSON),
    }


def test_a_blob_outside_of_the_graph_is_looked_for_where_it_may_be_read(victim, monkeypatch):
    outside = victim.root.with_name("outside")
    outside.mkdir(exist_ok=True)
    (outside / "a.bin").write_bytes(b"kept outside")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(outside))
    open_graph(victim.root).load(person("zoe", picture=f"file://{outside}/a.bin"))
    assert victim.verify().ok
    (outside / "a.bin").unlink()
    problem = only(victim.verify())
    assert problem.kind.value == "damaged_blob"
    assert "a.bin" in problem.examples[0]
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    assert victim.verify().ok


# -- what the manifest names --------------------------------------------------------------------


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_table_that_is_gone_is_reported(victim, branch):
    shutil.rmtree(victim.folder(PLACE, branch))
    assert ("missing_table", branch, PLACE) in found(victim.verify())
    assert {p.table_key for p in victim.verify(branch).problems} == {PLACE}


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_version_that_is_gone_is_reported(victim, branch):
    lance.write_dataset(
        victim.dataset(PLACE, branch).to_table().slice(0, 0),
        victim.dataset(PLACE, branch),
        mode="append",
    )
    newest, current, *_ = victim.files(PLACE, branch, "_versions/*.manifest")
    assert victim.verify().ok
    current.unlink()
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == (
        "missing_table",
        branch,
        PLACE,
    )
    newest.unlink()


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("how", ["zeros", "garbage"])
def test_a_damaged_version_is_reported(victim, branch, how):
    spoil(victim.files(PLACE, branch, "_versions/*.manifest")[0], how)
    assert ("damaged_file", branch, PLACE) in found(victim.verify(branch))


def test_a_branch_of_a_table_without_a_ref_is_reported(victim):
    (victim.folder(PLACE, "main") / "_refs" / "branches" / "dev.json").unlink()
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == (
        "missing_table",
        "dev",
        PLACE,
    )
    assert "its ref is missing" in problem.examples[0]


def test_a_branch_whose_manifest_is_gone_is_reported(victim):
    shutil.rmtree(victim.folder(MANIFEST_PATH, "dev"))
    problem = only(victim.verify())
    assert problem.kind.value == "branch"
    assert "'dev'" in problem.examples[0]


@pytest.mark.parametrize("how", ["zeros", "garbage"])
def test_a_branch_whose_manifest_is_damaged_hides_no_other(victim, how):
    victim.add(PERSON, "main", {"id": "zo", "name": "zoe", "city": "Oslo"})
    spoil(victim.files(MANIFEST_PATH, "dev", "_versions/*.manifest")[0], how)
    report = victim.verify()
    assert ("wrong_id", "main", PERSON) in found(report)
    assert ("branch", "dev", None) in found(report)


def _write_manifest(victim: Victim, branch: str, *rows: dict[str, Any]) -> None:
    dataset = victim.dataset(MANIFEST_PATH, branch)
    lance.write_dataset(rows_table(rows), dataset, mode="append")


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_version_that_never_was_is_reported(victim, branch):
    snapshot = victim.graph.snapshot(branch)
    entry = snapshot.entry(PLACE)
    version = TableVersion(entry.table_id, 999, entry.branch, 3, "{}")
    row = version_row(version, snapshot.version) | {"object_id": "planted"}
    _write_manifest(victim, branch, row)
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == (
        "missing_table",
        branch,
        PLACE,
    )


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_type_that_the_manifest_has_no_table_of_is_reported(victim, branch):
    snapshot = victim.graph.snapshot(branch)
    entry = snapshot.entry(VISITED)
    _write_manifest(victim, branch, tombstone_row(entry.table_id, entry.version, snapshot.version))
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == (
        "missing_table",
        branch,
        VISITED,
    )


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_commit_that_is_missing_from_the_history_is_reported(victim, branch):
    commit = victim.graph.commits(branch)[1]
    victim.dataset(MANIFEST_PATH, branch).delete(
        f"table_key = 'commit:{commit.graph_commit_id}' and object_type = 'graph_commit'"
    )
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch) == ("commits", branch)
    assert any("has number 3, and the one before it 1" in text for text in problem.examples)
    assert any(
        f"has parent {commit.graph_commit_id}, which is missing" in t for t in problem.examples
    )


def test_a_key_that_the_manifest_has_twice_is_reported(victim):
    (row,) = [r for r in Backstage(victim.root).rows() if r["object_type"] == "load_id"][:1]
    _write_manifest(victim, "main", row)
    problem = only(victim.verify())
    assert problem.kind.value == "commits"
    assert row["object_id"] in problem.examples[0]


@pytest.mark.parametrize("branch", BRANCHES)
def test_columns_that_the_schema_does_not_have_are_reported(victim, branch):
    dataset = victim.dataset(PLACE, branch)
    dataset.drop_columns(["size"])
    dataset.add_columns({"extra": "1"})
    victim.publish(PLACE, branch)
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch, problem.table_key) == ("columns", branch, PLACE)
    assert problem.examples == (
        "column 'size' of type double is missing",
        "column 'extra' belongs to no property",
    )


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_column_of_another_type_is_reported_and_its_values_are_read_as_they_can_be(
    victim, branch
):
    def as_text(rows: pa.Table) -> pa.Table:
        texts = pa.array(["big"] * rows.num_rows, pa.utf8())
        return rows.set_column(rows.schema.get_field_index("size"), "size", texts)

    victim.rewrite(PLACE, branch, as_text)
    report = victim.verify()
    assert found(report) == {("columns", branch, PLACE), ("unfit_value", branch, PLACE)}


def test_a_table_without_ids_is_reported(victim):
    victim.dataset(PLACE, "main").drop_columns(["id"])
    victim.publish(PLACE, "main")
    assert found(victim.verify()) == {("columns", "main", PLACE)}


@pytest.mark.parametrize("name", CONTRACT_FILES)
def test_a_schema_file_that_is_missing_or_differs_is_reported(victim, name):
    handle = victim.graph
    file = victim.root / name
    whole = file.read_text()
    file.unlink()
    assert found(verify_graph(handle._parts)) == {("schema", "main", None)}
    file.write_text(
        whole.replace("Person", "Persona").replace('"schema_ir_hash": "', '"schema_ir_hash": "0')
    )
    assert found(verify_graph(handle._parts)) == {("schema", "main", None)}
    file.write_text(whole)
    assert verify_graph(handle._parts).ok


def test_schema_files_of_another_schema_are_reported(victim):
    handle = victim.graph
    other = init(victim.root.with_name("other"), SCHEMA.replace("F64", "F32"), force=True)
    for name in CONTRACT_FILES:
        shutil.copy(Path(other.uri, name), victim.root / name)
    report = verify_graph(handle._parts)
    assert found(report) == {("schema", "main", None), ("schema", "dev", None)}
    assert report.rows == 23


@pytest.mark.parametrize("how", ["missing", "half", "other"])
def test_a_schema_of_the_past_that_is_missing_or_damaged_is_reported(victim, how):
    (file,) = (victim.root / HISTORY_DIR).iterdir()
    if how == "other":
        file.write_text(file.read_text().replace('"Person"', '"Persona"'))
    else:
        spoil(file, how)
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch) == ("schema", "main")
    assert file.name in problem.examples[0]


# -- tags ---------------------------------------------------------------------------------------


def test_a_tagged_commit_whose_tables_are_gone_is_reported(victim):
    graph = open_graph(victim.root)
    graph.pin("first", graph.commits()[1].graph_commit_id)
    assert victim.verify().ok
    needed = graph.snapshot_at_version(2).entry(PLACE).version
    (removed,) = [
        file
        for file in victim.files(PLACE, "main", "_versions/*.manifest")
        if 2**64 - 1 - int(file.stem) == needed
    ]
    removed.unlink()
    kinds = found(victim.verify())
    assert ("tag", "main", None) in kinds


def test_a_tag_that_cannot_be_read_is_reported(victim):
    open_graph(victim.root).pin("first")
    (victim.root / PINS_DIR / "first.json").write_text("{")
    problem = only(victim.verify())
    assert (problem.kind.value, problem.count) == ("tag", 1)
    assert "'first'" in problem.examples[0]


# -- together -----------------------------------------------------------------------------------


def test_everything_that_is_planted_is_reported_at_once(victim):
    planted = set()
    for branch in BRANCHES:
        for table_key, row, kind, _ in BAD_ROWS.values():
            if row is not None and kind != "duplicate_id":
                row = {**row, "id": f"x{len(planted)}{row['id']}"} if table_key == VISITED else row
                victim.add(table_key, branch, row)
                planted.add((kind, branch, table_key))
    spoil(victim.files(PLACE, "dev")[-1], "missing")
    planted.add(("damaged_file", "dev", PLACE))
    planted.discard(("dangling_edge", "dev", VISITED))
    report = victim.verify()
    assert planted <= found(report)
    assert not report.ok
    document = report.to_json()
    assert [set(problem) for problem in document["problems"]] == [
        {"kind", "branch", "table_key", "count", "examples", "message"}
    ] * len(report.problems)


def test_a_branch_that_is_deleted_meanwhile_is_left_out(victim):
    writer = open_graph(victim.root)

    class Deleting:
        """Deletes the branch when its first table is about to be checked."""

        def stage(self, name: str, rows: int | None = None) -> None:
            if name.startswith("dev") and "dev" in writer.branches():
                writer.delete_branch("dev")

        def advance(self, rows: int) -> None:
            pass

    report = verify_graph(victim.graph._parts, progress=Deleting())
    assert report.ok
    assert report.branches == ("main",)


def test_versions_that_are_cleaned_up_meanwhile_are_no_problem(victim):
    writer = open_graph(victim.root)
    writer.delete_branch("dev")

    class Cleaning:
        """Replaces and removes the versions that are about to be checked, once."""

        done = False

        def stage(self, name: str, rows: int | None = None) -> None:
            if not self.done:
                self.done = True
                writer.load(ROWS, "overwrite")
                writer.cleanup(keep_versions=1, min_age=timedelta())

        def advance(self, rows: int) -> None:
            pass

    report = verify_graph(victim.graph._parts, progress=Cleaning())
    assert report.problems == ()
    assert report.rows == 9


def test_a_graph_that_was_moved_says_so_of_its_branches(victim):
    moved = victim.root.with_name("moved")
    shutil.copytree(victim.root, moved)
    problem = only(Victim(moved).verify())
    assert (problem.kind.value, problem.branch) == ("branch", "dev")
    assert str(victim.root) in problem.examples[0]
    shutil.rmtree(moved)
