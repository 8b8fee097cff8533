"""The graph that the original implementation wrote opens, answers and takes further commits."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

import omnigraph
from omnigraph.versioning.rows import MANIFEST_PATH, read_stamp
from tests.behaviour.graphs import Backstage, tree

ORIGINAL = Path(__file__).parents[1] / "fixtures" / "original-2026-06"

FIRST = "01M7N1D8Q8025GV2PNBKAKWBA9"
SECOND = "01M7N1D8WWHQE33CFC46NHKWVP"

# The original wrote an F32 with the digits of a double; an export has the fewest that read back.
F32_OF_THE_ORIGINAL, F32 = '"weight":0.4000000059604645', '"weight":0.4'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with tarfile.open(ORIGINAL / "graph.omni.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "graph.omni"


def exported(view: omnigraph.Graph | omnigraph.GraphAt) -> list[str]:
    written = io.BytesIO()
    count = view.export(written)
    lines = written.getvalue().decode().splitlines()
    assert len(lines) == count
    return sorted(lines)


def original_lines() -> list[str]:
    text = (ORIGINAL / "export.jsonl").read_text()
    assert text.count(F32_OF_THE_ORIGINAL) == 1
    return sorted(text.replace(F32_OF_THE_ORIGINAL, F32).splitlines())


def stamp(root: Path) -> int:
    return read_stamp(Backstage(root).tables.open(MANIFEST_PATH).schema)


def check_history(graph: omnigraph.Graph) -> None:
    assert [(c.id, c.number, c.parents) for c in graph.log(reverse=True)][:2] == [
        (FIRST, 1, ()),
        (SECOND, 2, (FIRST,)),
    ]
    for first in (1, FIRST):
        assert exported(graph.at(first)) == []
    for second in (2, SECOND):
        assert exported(graph.at(second)) == original_lines()


@pytest.mark.acceptance("S-013")
@pytest.mark.parametrize("read_only", [True, False], ids=["read-only", "read-write"])
def test_the_export_and_the_history_are_those_of_the_original(root, read_only):
    before = tree(root)
    with omnigraph.open(root, read_only=read_only) as graph:
        assert exported(graph) == original_lines()
        check_history(graph)
        assert len(graph.log()) == 2
        assert graph.schema.source == (ORIGINAL / "schema.pg").read_text()
        assert graph.maintenance.verify().ok
    if read_only:
        assert tree(root) == before
        assert stamp(root) == 3
    else:
        assert stamp(root) == 4


@pytest.mark.parametrize(
    ("match", "rest", "expected"),
    [
        ('$p: Person { name: "cy" }', "{ $p.age, $p.tags }", [(41, [])]),
        ('$p: Person { name: "ada" } $p knows $q', "{ $q.name } order { $q.name }", ["bob", "cy"]),
        ('$p: Person search($p.bio, "bridges")', "{ $p.name }", ["bob"]),
        (
            "$p: Person",
            "{ $p.name } order { nearest($p.vec, [0.0, 1.0, 0.0]) } limit 3",
            ["bob", "ada"],
        ),
        ('$c: Company { title: "Great Rail" }', "{ $c.employees }", [9_000_000_000]),
    ],
    ids=["key", "edge", "text", "vector", "index"],
)
def test_queries_use_the_tables_of_the_original(root, match, rest, expected):
    with omnigraph.open(root, read_only=True) as graph:
        rows = graph.query(f"query q() {{ match {{ {match} }} return {rest} }}")
        answers = [tuple(row.values()) for row in rows]
        assert [row if len(row) > 1 else row[0] for row in answers] == expected


def test_the_next_commits_follow_those_of_the_original_and_are_there_when_reopened(root):
    row = '{"type":"Person","data":{"name":"eve","age":7}}'
    with omnigraph.open(root) as graph:
        third = graph.load(row.encode(), "append").receipt
        graph.mutate('query m() { update Person set { age: 42 } where name = "cy" }')
    with omnigraph.open(root) as graph:
        check_history(graph)
        log = graph.log(reverse=True)
        assert [c.number for c in log] == [1, 2, 3, 4]
        assert log[2].id == third.commit_id
        assert log[2].parents == (SECOND,)
        kept = [line for line in original_lines() if '"name":"cy"' not in line]
        added = {line for line in exported(graph) if line not in kept}
        assert {
            json.loads(line)["data"]["name"]: json.loads(line)["data"]["age"] for line in added
        } == {
            "eve": 7,
            "cy": 42,
        }
        assert len(exported(graph)) == 12
        assert graph.maintenance.verify().ok
