"""`omnigraph embed`."""

from __future__ import annotations

import json

import pytest

import omnigraph as og

NOTES = "node Note { slug: String @key  body: String?  vec: Vector(4)? @embed(body) }\n"
MANIFEST = """
sources: {raw_seed: seed.jsonl}
embeddings: {dimension: 2, types: {Author: {target: vec, fields: [slug]}}}
"""
SEED = """\
{"type": "Author", "data": {"slug": "ada", "vec": [1, 0]}}
{"type": "Author", "data": {"slug": "bo"}}
{"edge": "Wrote", "from": "ada", "to": "b1"}
"""


@pytest.fixture
def mocked(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")


@pytest.fixture
def notes(tmp_path):
    """A graph with two texts that wait for a provider."""
    uri = str(tmp_path / "graph")
    rows = ({"type": "Note", "data": {"slug": s, "body": s * 3}} for s in "ab")
    og.init(uri, NOTES).load("\n".join(map(json.dumps, rows)).encode(), "append")
    return uri


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "seed.jsonl").write_text(SEED)
    path = tmp_path / "m.yaml"
    path.write_text(MANIFEST)
    return path


# -- a graph ------------------------------------------------------------------------------------


@pytest.mark.acceptance("U-157")
def test_a_graph_is_counted_and_then_embedded_in_one_commit(cli, notes, mocked):
    head = og.open(notes).head().id
    code, out, err = cli("embed", notes, "--dry-run", "--json")
    assert (code, err) == (0, "")
    counted = json.loads(out)
    assert (counted["uri"], counted["branch"], counted["dry_run"]) == (notes, "main", True)
    assert counted["model"] == "mock/fnv1a-xorshift64"
    (before,) = counted["properties"]
    assert (before["pending"], before["ready"], before["embedded"]) == (2, 0, 0)
    assert counted["graph_commit_id"] is None
    assert og.open(notes).head().id == head
    code, out, err = cli("embed", notes, "--json")
    assert (code, json.loads(err)["stage"]) == (0, "embed node:Note")
    done = json.loads(out)
    (after,) = done["properties"]
    assert (after["embedded"], after["pending"], after["ready"]) == (before["pending"], 0, 2)
    assert done["operation"] == "embed"
    assert done["parent_commit_id"] == head
    assert og.open(notes).head().id == done["graph_commit_id"]
    assert done["counts"] == {"node:Note": {"inserted": 0, "updated": 2, "deleted": 0}}


def test_people_get_a_line_per_vector(cli, notes, mocked):
    code, out, err = cli("embed", "--uri", notes)
    assert (code, err) == (0, "")
    first, line, commit = out.splitlines()
    assert first == f"embed {notes} — branch main, model mock/fnv1a-xorshift64"
    assert line == "node:Note vec  embedded 2, now 2 ready, 0 pending, 0 stale, 0 empty, 0 given"
    assert commit.startswith("commit ")
    code, out, _ = cli("embed", notes, "--dry-run")
    assert out.splitlines()[1:] == ["node:Note vec  2 ready, 0 pending, 0 stale, 0 empty, 0 given"]


def test_without_a_provider_the_setting_is_named(cli, notes):
    code, out, err = cli("embed", notes)
    assert (code, out) == (1, "")
    assert "GEMINI_API_KEY" in err


@pytest.mark.acceptance("U-134", partly="no server")
def test_a_query_that_needs_a_provider_names_the_setting(cli, notes):
    nearest = "match { $n: Note } return { $n.slug } order { nearest($n.vec, $q) } limit 1"
    query = f"query q($q: String) {{ {nearest} }}"
    code, out, err = cli("query", notes, "-e", query, "--params", '{"q": "alpha"}')
    assert (code, out) == (1, "")
    assert "GEMINI_API_KEY" in err


def test_unknown_types_are_told(cli, notes):
    code, _, err = cli("embed", notes, "--type", "Nope", "--dry-run")
    assert code == 1
    assert "unknown node type 'Nope'" in err


def test_options_choose_and_record(cli, notes, mocked):
    options = ["--type", "Note", "--property", "vec", "--pending", "-m", "first", "--as", "ada"]
    code, out, _ = cli("embed", notes, *options, "--json")
    assert code == 0
    commit = og.open(notes).commit(json.loads(out)["graph_commit_id"])
    assert (commit.actor, commit.message) == ("ada", "first")
    code, _, err = cli("embed", notes, "--all", "--expect-head", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert code == 1
    assert "expected 01ARZ3NDEKTSV4RRFFQ69G5FAV" in err


# -- files --------------------------------------------------------------------------------------


@pytest.mark.acceptance("U-061")
def test_rows_of_a_seed_that_lack_a_vector_get_one(cli, manifest, mocked, tmp_path):
    code, out, err = cli("embed", "--seed", str(manifest), "--json")
    assert (code, err) == (0, "")
    done = json.loads(out)
    assert (done["mode"], done["embedded_rows"], done["rows"]) == ("fill_missing", 1, 3)
    ada, bo, edge = (tmp_path / "build/seed.embedded.jsonl").read_text().splitlines()
    assert [ada, edge] == [SEED.splitlines()[0], SEED.splitlines()[2]]
    assert len(json.loads(bo)["data"]["vec"]) == 2


@pytest.mark.acceptance("U-062")
def test_selected_rows_of_a_seed_are_embedded_again_or_all_are_cleaned(
    cli, manifest, monkeypatch, tmp_path
):
    with monkeypatch.context() as with_provider:
        with_provider.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
        _, out, _ = cli("embed", "--seed", str(manifest), "--select", "Author:slug=ada", "--json")
    done = json.loads(out)
    assert (done["mode"], done["embedded_rows"]) == ("reembed_selected", 1)
    code, out, err = cli("embed", "--seed", str(manifest), "--clean", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["mode"] == "clean"
    assert "vec" not in (tmp_path / "build/seed.embedded.jsonl").read_text()


def test_files_can_be_named_one_by_one(cli, manifest, mocked, tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text('{"dimension": 2, "types": {"Author": {"target": "vec", "fields": ["slug"]}}}')
    files = ["--input", str(tmp_path / "seed.jsonl"), "--output", str(tmp_path / "out.jsonl")]
    code, out, err = cli("embed", *files, "--spec", str(spec), "--reembed-all")
    assert (code, err) == (0, "")
    assert out == (
        f"embedded 2 and cleaned 0 of 2 selected rows, 3 in all: {tmp_path}/seed.jsonl → "
        f"{tmp_path}/out.jsonl (reembed_all, 2 dimensions)\n"
    )


@pytest.mark.acceptance("U-158")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["g", "--input", "a.jsonl"], "exclusive"),
        (["--uri", "g", "--seed", "m.yaml"], "exclusive"),
        (["g", "--uri", "g"], "given twice"),
        (["--seed", "m.yaml", "--spec", "s.json"], "leave out"),
        (["--input", "a.jsonl", "--spec", "s.json"], "given together"),
        (["--seed", "m.yaml", "--clean", "--reembed-all"], "exclusive"),
        (["--seed", "m.yaml", "--stale"], "--stale is about a graph"),
        (["g", "--clean"], "--clean is about files"),
        (["g", "--select", "a=b"], "--select is about files"),
        (["g", "--all", "--pending"], "--all takes in"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(cli, arguments, complaint):
    code, out, err = cli("embed", *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
