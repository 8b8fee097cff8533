"""The check of a whole graph: sound graphs have no problem, and every row that breaks a rule is found.

Rows are planted behind the engine's back, on main and on a branch. Damaged files: test_verify_files.py.
"""

from __future__ import annotations

import json
import math
import shutil
from datetime import timedelta
from threading import Thread

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchNotFound
from omnigraph.maintenance import verify
from omnigraph.maintenance.verify import verify_graph
from omnigraph.maintenance.verify_report import MAX_EXAMPLES
from omnigraph.versioning.manifest import Manifest
from tests.behaviour.damaging import (
    BRANCHES,
    KNOWS,
    LARGE,
    ON_BRANCH,
    PERSON,
    PLACE,
    ROME,
    ROWS,
    SCHEMA,
    VISITED,
    Victim,
    blob,
    edge,
    found,
    make_graph,
    only,
    person,
    restored,
    spoil,
)
from tests.behaviour.graphs import tree


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        root = tmp_path_factory.mktemp("verify") / "graph"
        make_graph(root)
        return root


@pytest.fixture
def victim(kept):
    return restored(kept)


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
        graph.branches.create(name)
    report = verify_graph(graph._core.parts)
    assert report.ok
    assert report.branches == ("main", "dev", "one", "two")
    assert (report.tables, report.rows) == (8, 23)


def test_only_named_branches_are_checked(victim):
    assert victim.verify("dev").branches == ("dev",)
    assert victim.verify("main", "main").branches == ("main",)
    with pytest.raises(BranchNotFound, match="did you mean `dev`"):
        victim.verify("dav")


def test_an_empty_graph_is_sound(uri):
    assert verify_graph(init(uri, SCHEMA)._core.parts).ok


def test_a_graph_stays_sound_whatever_its_owner_does(uri):
    graph = init(uri, SCHEMA)
    graph.load(ROWS, "merge")
    graph.mutate('query q() { delete Person where name = "cy" }')
    graph.mutate('query q() { update Person set { age: 37, mail: "b@x" } where name = "ada" }')
    branch = graph.branches.create("work")
    branch.load(ON_BRANCH, "merge")
    branch.mutate('query q() { insert Place { country: "fr", town: "Nice" } }')
    graph.load(person("eve", mail="e@x", picture=blob(LARGE)), "merge")
    assert _sound(graph)
    graph.merge("work")
    graph.merge("main", into="work")
    assert _sound(graph)
    graph.tags.create("first", graph.log(reverse=True)[1].id)
    graph.branches.delete("work")
    graph.maintenance.optimize()
    graph.maintenance.ensure_indexes()
    assert _sound(graph)
    graph.load(ON_BRANCH, "merge")
    graph.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    assert _sound(graph)
    changed = SCHEMA.replace("score: F64?", 'points: F64? @rename_from("score")')
    changed = changed.replace("mood: enum(calm, cross)?", 'size: I64 @backfill("7")')
    changed = changed.replace(
        "edge Visited: Person -> Place", 'edge Saw: Person -> Place @rename_from("Visited")'
    )
    graph.schema.apply(changed, allow_data_loss=False)
    graph.load(person("flo", size=1, points=0.5), "append")
    assert _sound(graph)
    graph.maintenance.optimize()
    graph.branches.create("later").load(person("gus", size=2), "merge")
    assert _sound(graph)
    graph.revert(graph.head().id)
    assert _sound(graph)


def _sound(graph: Graph) -> bool:
    report = verify_graph(graph._core.parts)
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


# -- together -----------------------------------------------------------------------------------


def test_everything_that_is_planted_is_reported_at_once(victim):
    planted: set[tuple[str, str, str | None]] = set()
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
            if name.startswith("dev") and "dev" in list(writer.branches):
                writer.branches.delete("dev")

        def advance(self, rows: int) -> None:
            pass

    report = verify_graph(victim.graph._core.parts, progress=Deleting())
    assert report.ok
    assert report.branches == ("main",)


def test_a_branch_that_is_deleted_and_created_again_meanwhile_is_sound(victim, monkeypatch):
    writer = open_graph(victim.root)

    class Recreating(Manifest):
        """Opens the branch, once, between its deletion and its creation."""

        done = False

        def open(self, branch):
            if branch is None or self.done:
                return super().open(branch)
            self.done = True
            writer.branches.delete("dev")
            try:
                return super().open(branch)
            finally:
                writer.branches.create("dev")

    monkeypatch.setattr(verify, "Manifest", Recreating)
    report = verify_graph(victim.graph._core.parts)
    assert report.problems == ()
    assert report.branches == ("main", "dev")


def test_a_branch_that_is_deleted_created_and_deleted_meanwhile_is_left_out(victim, monkeypatch):
    writer = open_graph(victim.root)

    class Recreating:
        """Replaces the branch, once, when its first table is about to be checked."""

        done = False

        def stage(self, name: str, rows: int | None = None) -> None:
            if name.startswith("dev") and not self.done:
                self.done = True
                writer.branches.delete("dev")
                writer.branches.create("dev")

        def advance(self, rows: int) -> None:
            pass

    class Deleting(Manifest):
        """Deletes the branch when its head is compared with the one that was read."""

        def current(self, branch, *, max_staleness=0.0):
            if "dev" in list(writer.branches):
                writer.branches.delete("dev")
            return super().current(branch, max_staleness=max_staleness)

    monkeypatch.setattr(verify, "Manifest", Deleting)
    report = verify_graph(victim.graph._core.parts, progress=Recreating())
    assert report.problems == ()
    assert report.branches == ("main",)


def test_versions_that_are_cleaned_up_meanwhile_are_no_problem(victim):
    writer = open_graph(victim.root)
    writer.branches.delete("dev")

    class Cleaning:
        """Replaces and removes the versions that are about to be checked, once."""

        done = False

        def stage(self, name: str, rows: int | None = None) -> None:
            if not self.done:
                self.done = True
                writer.load(ROWS, "overwrite")
                writer.maintenance.cleanup(keep_versions=1, min_age=timedelta())

        def advance(self, rows: int) -> None:
            pass

    report = verify_graph(victim.graph._core.parts, progress=Cleaning())
    assert report.problems == ()
    assert report.rows == 9


def test_a_graph_is_sound_while_others_write_to_it(local_uri):
    graph = init(local_uri, SCHEMA)
    graph.load(ROWS, "merge")
    reader = open_graph(local_uri, read_only=True)
    writer = Thread(target=_write_for_a_while, args=(local_uri,))
    writer.start()
    reports = []
    while writer.is_alive():
        reports.append(verify_graph(reader._core.parts))
    writer.join()
    assert [report.problems for report in reports] == [()] * len(reports)
    assert len(graph.log(reverse=True)) > 20


def _write_for_a_while(uri: str) -> None:
    graph = open_graph(uri)
    for number in range(10):
        graph.load(person(f"p{number}") + edge("Visited", f"p{number}", ROME), "merge")
        graph.branches.create("short").load(person(f"q{number}"), "merge")
        graph.merge("short")
        graph.branches.delete("short")
        graph.mutate(f'query q() {{ delete Person where name = "p{number}" }}')
        graph.maintenance.cleanup(keep_versions=1, min_age=timedelta())


def test_a_graph_that_was_moved_says_so_of_its_branches(victim):
    moved = victim.root.with_name("moved")
    shutil.copytree(victim.root, moved)
    problem = only(Victim(moved).verify())
    assert (problem.kind.value, problem.branch) == ("branch", "dev")
    assert str(victim.root) in problem.examples[0]
    shutil.rmtree(moved)
