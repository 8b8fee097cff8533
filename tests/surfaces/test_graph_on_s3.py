"""The same commands on an object store: only the address differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import normalise_root
from tests.contract.objects.moto_server import BUCKET, environment_for

URI = f"s3://{BUCKET}/library"
NOWHERE = "s3://no-such-bucket/library"


@pytest.fixture
def cli(
    s3_endpoint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[int, str, str]]:
    """Run a command next to `library.pg` and `library.jsonl`, with the store at hand."""
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    Path("library.pg").write_text("node Author {\n    slug: String @key\n}\n")
    records = ({"type": "Author", "data": {"slug": slug}} for slug in ("ada", "bob"))
    Path("library.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))

    def run(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(args)
        return code, *capsys.readouterr()

    return run


def test_a_graph_is_created_loaded_branched_changed_and_exported(cli):
    def run(*args: str) -> str:
        code, out, err = cli(*args, "--quiet")
        assert (code, err) == (0, "")
        return str(out)

    assert run("init", "--schema", "library.pg", URI).startswith(f"initialized {URI}\n")
    load = ["load", URI, "--mode", "append", "--data", "library.jsonl"]
    loaded = json.loads(cli(*load, "--branch", "draft", "--from", "main", "--json")[1])
    assert (loaded["uri"], loaded["nodes_loaded"], loaded["branch_created"]) == (URI, 2, True)
    assert run("branch", "list", "--uri", URI) == "draft\nmain\n"
    assert run("export", URI) == ""
    exported = run("export", URI, "--branch", "draft").splitlines()
    assert [json.loads(line)["data"]["slug"] for line in exported] == ["ada", "bob"]
    assert len(run("commit", "list", URI, "--branch", "draft").splitlines()) == 2
    change = 'query q() { insert Author { slug: "cy" }  delete Author where slug = "ada" }'
    assert run("mutate", URI, "--branch", "draft", "-e", change).startswith(
        "changed draft via q: 2"
    )
    exported = run("export", URI, "--branch", "draft").splitlines()
    assert [json.loads(line)["data"]["slug"] for line in exported] == ["bob", "cy"]


def test_writes_are_announced_and_deletions_need_consent(cli):
    place = f"s3://{BUCKET}/announced"
    created = cli("init", "--schema", "library.pg", place)
    assert created[2] == f"omnigraph init → {place} (direct)\n"
    add = ("load", place, "--data", "library.jsonl", "--mode")
    assert f"omnigraph load → {place} (direct)" in cli(*add, "merge")[2]
    code, out, err = cli(*add, "overwrite")
    assert (code, out) == (1, "")
    assert "pass --yes" in err
    assert cli(*add, "overwrite", "--yes")[0] == 0
    assert cli("branch", "create", "x", "--uri", place)[0] == 0
    assert "pass --yes" in cli("branch", "delete", "x", "--uri", place)[2]
    assert cli("branch", "delete", "x", "--uri", place, "--yes")[0] == 0
    assert "pass --yes" in cli("cleanup", place, "--keep", "1", "--confirm")[2]
    assert cli("cleanup", place, "--keep", "1", "--confirm", "--yes")[0] == 0
    assert cli("merge", "main", "--into", "main", "--dry-run", "--uri", place)[0] == 1


def test_a_branch_begins_at_a_tag_and_is_merged_back(cli):
    place = f"s3://{BUCKET}/tagged"
    assert cli("init", "--schema", "library.pg", place)[0] == 0
    graph = og.open(place)
    for slug in ("ada", "bob", "cy"):
        graph.mutate(f'query q() {{ insert Author {{ slug: "{slug}" }} }}')
    assert cli("tag", "create", "v1", "main~2", "--uri", place)[0] == 0
    assert cli("branch", "create", "old", "--from", "v1", "--uri", place)[0] == 0
    graph.mutate('query q() { delete Author where slug = "ada" }', branch="old")
    assert [c.number for c in graph.log("old", reverse=True)] == [1, 2, 3]
    assert cli("merge", "old", "--uri", place)[1].startswith("merged old into main: merged\n")
    slugs = "query q() { match { $a: Author } return { $a.slug } order { $a.slug } }"
    assert [row["a.slug"] for row in graph.query(slugs).to_dicts()] == ["bob", "cy"]
    assert [row["a.slug"] for row in graph.query(slugs, at="v1").to_dicts()] == ["ada"]
    assert cli("branch", "reset", "main", "v1", "--uri", place)[0] == 0
    assert [row["a.slug"] for row in graph.query(slugs).to_dicts()] == ["ada"]


def test_a_blob_beside_the_graph_is_read_in_parts(cli, monkeypatch):
    place, kept = f"s3://{BUCKET}/pictures", f"s3://{BUCKET}/kept"
    open_store(normalise_root(kept), Durability.NONE).write_bytes("ada.bin", b"kept outside")
    Path("pictures.pg").write_text("node Picture {\n    name: String @key\n    pic: Blob?\n}\n")
    record = {"type": "Picture", "data": {"name": "ada", "pic": f"{kept}/ada.bin"}}
    Path("pictures.jsonl").write_text(json.dumps(record))
    load = ["load", place, "--mode", "append", "--data", "pictures.jsonl"]
    assert cli("init", "--schema", "pictures.pg", place)[0] == 0
    assert cli(*load)[0] == 1
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", kept)
    assert cli(*load)[0] == 0
    blob = ["Picture", "ada", "pic", "--uri", place]
    assert cli("blob", "stat", *blob) == (0, f"size: 12\nuri: {kept}/ada.bin\n", "")
    assert cli("blob", "get", *blob, "--offset", "5", "--length", "3") == (0, "out", "")


def test_indexes_are_built_and_searched(cli):
    place = f"s3://{BUCKET}/indexed"
    Path("pages.pg").write_text(
        "node Page {\n    slug: String @key\n    title: String @index\n"
        "    vec: Vector(2)? @index\n}\n"
    )
    pages = [
        {"type": "Page", "data": {"slug": slug, "title": title, "vec": vec}}
        for slug, title, vec in [("a", "copper kettle", [1, 0]), ("b", "garden hose", [0, 1])]
    ]
    Path("pages.jsonl").write_text("\n".join(map(json.dumps, pages)))
    assert cli("init", "--schema", "pages.pg", place)[0] == 0
    assert cli("load", place, "--mode", "append", "--data", "pages.jsonl")[0] == 0
    [table] = json.loads(cli("ensure-indices", place, "--json")[1])["tables"]
    assert [index["column"] for index in table["created"]] == ["id", "slug", "title", "vec"]
    match = '$p: Page  search($p.title, "kettles")'
    query = f"query q() {{ match {{ {match} }} return {{ $p.slug }} }}"
    assert cli("query", place, "--format", "csv", "-e", query) == (0, "p.slug\na\n", "")
    assert json.loads(cli("ensure-indices", place, "--json")[1])["graph_commit_id"] is None


@pytest.mark.parametrize("command", [("init", "--schema", "library.pg"), ("snapshot",)])
def test_a_bucket_that_does_not_exist_is_an_error_that_names_the_address(cli, command):
    code, out, err = cli(*command, NOWHERE)
    assert (code, out) == (1, "")
    assert NOWHERE in err
    assert "internal error" not in err


@pytest.mark.usefixtures("cli")
def test_a_schema_changes_for_good_and_the_past_is_cleaned_up():
    schema = Path("library.pg").read_text()
    graph = og.init(f"s3://{BUCKET}/upkeep", schema)
    graph.schema.apply(schema.replace("@key", "@key\n    pen: String?"))
    graph.branches.create("draft")
    for pen in ("quill", "reed"):
        graph.load([{"type": "Author", "data": {"slug": "ada", "pen": pen}}], "merge")
    graph.merge("main", into="draft")
    graph.load(Path("library.jsonl"), "merge")
    report = graph.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    assert (report.failed, report.removed.versions) == ((), 3)
    query = "query q() { match { $a: Author } return { $a.slug } order { $a.slug } }"
    assert graph.query(query, branch="draft").to_dicts() == [{"a.slug": "ada"}]
    graph.branches.delete("draft")
    graph.schema.apply(schema, allow_data_loss=True)
    again = og.open(graph.uri)
    assert again.query(query).to_dicts() == [{"a.slug": "ada"}, {"a.slug": "bob"}]
    assert again.maintenance.status().advice == ()
