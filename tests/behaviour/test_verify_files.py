"""The check of a whole graph finds every file that is missing or damaged, and what refers to nothing.

Damage is done behind the engine's back, on main and on a branch. Rows: test_verify.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.maintenance.verify import verify_graph
from omnigraph.storage.indexes import CHECKSUMS
from omnigraph.versioning.contract import CONTRACT_FILES, HISTORY_DIR
from omnigraph.versioning.rows import (
    MANIFEST_PATH,
    TableVersion,
    rows_table,
    tombstone_row,
    version_row,
)
from omnigraph.versioning.tags import TAGS_DIR
from tests.behaviour.damaging import (
    BRANCHES,
    KNOWS,
    ON_BRANCH,
    PERSON,
    PLACE,
    ROME,
    ROWS,
    SCHEMA,
    VISITED,
    Victim,
    found,
    make_graph,
    only,
    person,
    restored,
    spoil,
)
from tests.behaviour.graphs import Backstage
from tests.contract.objects.moto_server import BUCKET, environment_for


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


# -- files --------------------------------------------------------------------------------------

HOW = ["missing", "empty", "half", "zeros", "garbage"]


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
        graph.branches.create(branch)
    people = b"".join(person(f"p{n:04}", notes=f"word{n}") for n in range(1100))
    graph.load(people, "merge", branch=branch)
    graph.maintenance.ensure_indexes(branch)
    graph.maintenance.wait()
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
    open_graph(victim.root).load(person("zoe", picture=f"file://{outside}/a.bin"), "merge")
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


def test_a_damaged_ref_of_a_table_is_reported_and_its_rows_are_checked(victim):
    victim.add(PLACE, "dev", {"id": "x", "country": "no", "town": "Oslo"})
    (victim.folder(PLACE, "main") / "_refs" / "branches" / "dev.json").write_text("[]")
    assert found(victim.verify()) == {("damaged_file", "dev", PLACE), ("wrong_id", "dev", PLACE)}


def test_a_damaged_ref_of_a_branch_is_reported_and_main_is_checked(victim):
    victim.add(PLACE, "main", {"id": "x", "country": "no", "town": "Oslo"})
    (victim.root / MANIFEST_PATH / "_refs" / "branches" / "dev.json").write_text("[]")
    report = victim.verify()
    assert found(report) == {("branch", "main", None), ("wrong_id", "main", PLACE)}
    assert report.branches == ("main",)


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_version_that_was_not_written_completely_is_reported(victim, branch):
    newest = victim.files(MANIFEST_PATH, branch, "_versions/*.manifest")[0]
    newest.with_stem(f"{int(newest.stem) - 1:020d}").write_bytes(b"")
    report = victim.verify()
    problem = only(report)
    assert (problem.kind.value, problem.branch) == ("branch", branch)
    assert "so the branch is read as version" in problem.examples[0]
    assert (report.branches, report.rows) == (("main", "dev"), 23)


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
    snapshot = victim.graph._snapshot(branch)
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
    snapshot = victim.graph._snapshot(branch)
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
    commit = victim.graph.log(branch, reverse=True)[1]
    victim.dataset(MANIFEST_PATH, branch).delete(
        f"table_key = 'commit:{commit.id}' and object_type = 'graph_commit'"
    )
    problem = only(victim.verify())
    assert (problem.kind.value, problem.branch) == ("commits", branch)
    assert any("has number 3, and the one before it 1" in text for text in problem.examples)
    assert any(f"has parent {commit.id}, which is missing" in t for t in problem.examples)


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
    assert found(verify_graph(handle._core.parts)) == {("schema", "main", None)}
    file.write_text(
        whole.replace("Person", "Persona").replace('"schema_ir_hash": "', '"schema_ir_hash": "0')
    )
    assert found(verify_graph(handle._core.parts)) == {("schema", "main", None)}
    file.write_text(whole)
    assert verify_graph(handle._core.parts).ok


def test_schema_files_of_another_schema_are_reported(victim):
    handle = victim.graph
    other = init(victim.root.with_name("other"), SCHEMA.replace("F64", "F32"), force=True)
    for name in CONTRACT_FILES:
        shutil.copy(Path(other.uri, name), victim.root / name)
    report = verify_graph(handle._core.parts)
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
    graph.tags.create("first", graph.log(reverse=True)[1].id)
    assert victim.verify().ok
    needed = graph.at(2)._snapshot.entry(PLACE).version
    (removed,) = [
        file
        for file in victim.files(PLACE, "main", "_versions/*.manifest")
        if 2**64 - 1 - int(file.stem) == needed
    ]
    removed.unlink()
    kinds = found(victim.verify())
    assert ("tag", "main", None) in kinds


def test_a_tag_that_cannot_be_read_is_reported(victim):
    open_graph(victim.root).tags.create("first")
    (victim.root / TAGS_DIR / "first.json").write_text("{")
    problem = only(victim.verify())
    assert (problem.kind.value, problem.count) == ("tag", 1)
    assert "'first'" in problem.examples[0]


# -- elsewhere ----------------------------------------------------------------------------------


def test_a_graph_on_an_object_store_is_checked_as_well(s3_endpoint, monkeypatch):
    for key, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(key, value)
    graph = init(f"s3://{BUCKET}/g", SCHEMA)
    graph.load(ROWS, "merge")
    graph.branches.create("dev").load(ON_BRANCH, "merge")
    reader = open_graph(graph.uri, read_only=True)
    report = verify_graph(reader._core.parts)
    assert (report.problems, report.branches) == ((), ("main", "dev"))
    location = graph._snapshot().entry(PLACE).location
    graph._core.objects.delete_prefix(f"{location}/data")
    graph._core.objects.delete_prefix(f"{graph._snapshot().entry(KNOWS).location}/_versions")
    assert {("damaged_file", "main", PLACE), ("missing_table", "main", KNOWS)} <= found(
        verify_graph(reader._core.parts)
    )
