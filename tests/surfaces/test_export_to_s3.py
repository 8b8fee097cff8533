"""Exports to an object store: a file or a folder that loads back, or a refusal."""

from __future__ import annotations

import uuid

import pytest

import omnigraph as og
from omnigraph.errors import ExportError
from tests.contract.objects.moto_server import BUCKET, environment_for

SCHEMA = "node Author { slug: String @key  born: I32? }\nedge Knows: Author -> Author\n"


@pytest.fixture
def folder(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def new_graph() -> og.Graph:
    return og.init(f"memory://{uuid.uuid4().hex}", SCHEMA)


@pytest.fixture
def graph() -> og.Graph:
    made = new_graph()
    made.load({"Author": [{"slug": f"a{n}", "born": n} for n in range(1000)]}, "append")
    made.insert("Knows", [{"from": "a1", "to": "a2"}])
    return made


@pytest.mark.parametrize(("format", "name"), [("jsonl", "rows.jsonl"), ("parquet", "rows")])
def test_what_is_exported_loads_back(graph, folder, format, name):
    target = f"{folder}/{name}"
    assert graph.export(target, format=format) == 1001
    copy = new_graph()
    copy.load(target, "append")
    assert copy.at("main").counts == {"Knows": 1, "Author": 1000}
    assert copy.get("Author", "a7") == graph.get("Author", "a7")


def test_a_folder_that_is_in_use_is_left_alone(graph, folder):
    graph.export(f"{folder}/rows", format="parquet")
    with pytest.raises(ExportError, match="is not an empty directory"):
        graph.export(f"{folder}/rows", format="parquet", types=["Author"])


def test_a_file_is_replaced_as_a_whole(graph, folder):
    graph.export(f"{folder}/rows.jsonl")
    assert graph.export(f"{folder}/rows.jsonl", types=["Knows"]) == 1


@pytest.mark.parametrize("target", ["s3://no-such-bucket-here/rows.jsonl", f"s3://{BUCKET}/"])
def test_a_target_that_cannot_be_written_is_an_error(graph, folder, target):
    with pytest.raises(ExportError, match="s3://"):
        graph.export(target)
