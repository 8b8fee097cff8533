"""Vectors for the rows of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnigraph.errors import EmbeddingNotConfigured, InputError
from omnigraph.providers.clients import MockProvider, Task
from omnigraph.providers.seed import (
    SeedMode,
    SeedPlan,
    SeedSpec,
    Selector,
    embed_seed,
    read_manifest,
    read_spec,
)
from tests.support.model.values import shortest_float32

SPEC = {
    "dimension": 3,
    "types": {"Author": {"target": "vec", "fields": ["slug", "bio", "tags", "born", "gone"]}},
}
ROWS: list[dict[str, Any]] = [
    {"type": "Author", "data": {"slug": "ada", "bio": "mathematician", "vec": [1, 0, 0]}},
    {"type": "Author", "data": {"slug": "bo", "bio": "", "tags": ["a", "b"], "born": 1970}},
    {"type": "Author", "data": {"slug": "cy", "vec": []}},
    {"type": "Book", "data": {"title": "Notes"}},
    {"edge": "Wrote", "from": "ada", "to": "b1"},
]


@pytest.fixture(autouse=True)
def _mocked(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")


@pytest.fixture
def plan(tmp_path):
    source = tmp_path / "seed.jsonl"
    source.write_text("\n\n".join(json.dumps(row) for row in ROWS))
    return SeedPlan(source, tmp_path / "build" / "out.jsonl", SeedSpec.of(SPEC, "spec"))


def changed(plan, **fields):
    return SeedPlan(
        **{name: getattr(plan, name) for name in ("source", "target", "spec")}, **fields
    )


def written(plan):
    return [json.loads(line) for line in plan.target.read_text().splitlines()]


def mock(text):
    return MockProvider().embed([text], Task.DOCUMENT, 3)[0]


def shortest(vector):
    return [shortest_float32(float(number)) for number in vector]


def test_missing_vectors_are_filled_and_all_else_is_as_it_was(plan):
    done = embed_seed(plan)
    assert done.to_json() == {
        "input": str(plan.source),
        "output": str(plan.target),
        "rows": 5,
        "selected_rows": 3,
        "embedded_rows": 2,
        "cleaned_rows": 0,
        "mode": "fill_missing",
        "dimension": 3,
        "model": "gemini-embedding-2-preview",
    }
    ada, bo, cy, book, edge = written(plan)
    assert (ada, book, edge) == (ROWS[0], ROWS[3], ROWS[4])
    assert bo["data"] == {
        **ROWS[1]["data"],
        "vec": shortest(mock("type: Author\nslug: bo\ntags: a, b\nborn: 1970")),
    }
    assert cy["data"]["vec"] == shortest(mock("type: Author\nslug: cy"))
    assert [path.name for path in plan.target.parent.iterdir()] == ["out.jsonl"]


def test_all_rows_can_be_embedded_again(plan):
    assert embed_seed(changed(plan, mode=SeedMode.REEMBED_ALL)).embedded_rows == 3
    vector = mock("type: Author\nslug: ada\nbio: mathematician")
    assert written(plan)[0]["data"]["vec"] == shortest(vector)


@pytest.mark.parametrize(
    ("selectors", "rows"),
    [
        (["slug=ada"], 1),
        (["Author:slug=ada"], 1),
        (["Book:slug=ada"], 0),
        (["slug=ada", "born=1970"], 2),
        (["title=Notes"], 0),
    ],
)
def test_selected_rows_are_embedded_whether_they_have_a_vector_or_not(plan, selectors, rows):
    chosen = tuple(map(Selector.of, selectors))
    done = embed_seed(changed(plan, mode=SeedMode.REEMBED_SELECTED, selectors=chosen))
    assert (done.selected_rows, done.embedded_rows) == (rows, rows)


def test_vectors_are_taken_away_without_any_provider(plan, monkeypatch):
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    done = embed_seed(changed(plan, mode=SeedMode.CLEAN))
    assert (done.cleaned_rows, done.embedded_rows) == (2, 0)
    assert all("vec" not in row.get("data", {}) for row in written(plan))


def test_only_chosen_types_are_touched(plan):
    assert embed_seed(changed(plan, types=("Book",))).selected_rows == 0


def test_the_file_may_take_its_own_place(plan):
    same = SeedPlan(plan.source, plan.source, plan.spec)
    embed_seed(same)
    assert len(written(same)) == 5


def test_a_failure_leaves_the_output_as_it_was(plan, monkeypatch):
    embed_seed(plan)
    before = plan.target.read_text()
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    with pytest.raises(EmbeddingNotConfigured, match="GEMINI_API_KEY"):
        embed_seed(changed(plan, mode=SeedMode.REEMBED_ALL))
    assert plan.target.read_text() == before
    assert [path.name for path in plan.target.parent.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": 1}\n\n{"type": "Author"}', "line 3: a row with a `type` has an object `data`"),
        ('{"type": "Author", "data": [1]}', "line 1: a row with"),
        ("{", "line 1: not JSON"),
    ],
)
def test_a_bad_line_is_told_by_its_number(plan, text, complaint):
    plan.source.write_text(text)
    with pytest.raises(InputError, match=complaint):
        embed_seed(plan)
    assert not plan.target.exists()


def test_files_that_cannot_be_read_are_told(plan, tmp_path):
    with pytest.raises(InputError, match="nothing"):
        embed_seed(SeedPlan(tmp_path / "nothing", plan.target, plan.spec))
    plan.source.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        embed_seed(plan)


@pytest.mark.parametrize("text", ["slug", "=x", ":slug=x", ""])
def test_a_selector_that_selects_nothing_is_refused(text):
    with pytest.raises(InputError, match="is not a selector"):
        Selector.of(text)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"model": "other", **SPEC}, "the model is `other`; only gemini-embedding-2-preview"),
        ({"types": {}}, "'dimension' is missing"),
        ({"dimension": 3}, "'types' is missing"),
        ({**SPEC, "dimension": 0}, "`dimension` is a whole number above zero"),
        ({**SPEC, "dimension": True}, "`dimension` is a whole number above zero"),
        ({**SPEC, "types": []}, "a mapping of names was expected"),
        ({**SPEC, "types": {"A": {"target": "v"}}}, "'fields' is missing"),
        ({**SPEC, "types": {"A": {"target": "v", "fields": "f"}}}, "a list of `fields`"),
        ([], "a mapping of names was expected"),
    ],
)
def test_a_specification_that_says_too_little_is_refused(tmp_path, spec, complaint):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    with pytest.raises(InputError, match=complaint):
        read_spec(path)


def test_a_manifest_names_files_beside_itself(tmp_path):
    path = tmp_path / "m.yaml"
    embeddings = f"embeddings: {json.dumps(SPEC)}\n"
    path.write_text(f"sources: {{raw_seed: a.jsonl}}\n{embeddings}")
    found = read_manifest(path)
    assert found == (
        tmp_path / "a.jsonl",
        tmp_path / "build/seed.embedded.jsonl",
        SeedSpec.of(SPEC, ""),
    )
    path.write_text(f"seed: {{data: a.jsonl}}\nartifacts: {{embedded_seed: b.jsonl}}\n{embeddings}")
    assert read_manifest(path)[:2] == (tmp_path / "a.jsonl", tmp_path / "b.jsonl")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "`sources.raw_seed` must name a file"),
        ("sources: {raw_seed: a}", "`embeddings` is missing"),
        ("sources: {raw_seed: a}\nembeddings: 3", "a mapping of names was expected"),
        ("a: [", "not YAML"),
    ],
)
def test_a_manifest_that_says_too_little_is_refused(tmp_path, text, complaint):
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_manifest(path)
