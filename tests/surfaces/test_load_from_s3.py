"""Loads of files on an object store: by address, pattern and folder, whole and in parts."""

from __future__ import annotations

import gzip
import io
import uuid
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.load.sources import JsonSource
from omnigraph.load.splits import split_sources
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import normalise_root
from tests.contract.objects.moto_server import BUCKET, environment_for

SCHEMA = "node Author {\n    slug: String @key\n    born: I32?\n}\n"
ADA = b'{"type": "Author", "data": {"slug": "ada"}}\n'

Put = Callable[[str, bytes], str]


@pytest.fixture
def put(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Store an object in a folder of this test; returns its address."""
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    folder = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    store = open_store(normalise_root(folder), Durability.NONE)

    def write(name: str, content: bytes) -> str:
        store.write_bytes(name, content)
        return f"{folder}/{name}"

    return write


@pytest.fixture
def graph() -> Graph:
    return init(f"memory://{uuid.uuid4().hex}", SCHEMA)


def parquet(**columns: list[object]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def authors(graph: Graph) -> set[str]:
    found = graph.query("query q() { match { $a: Author } return { $a.slug as slug } }")
    return {row["slug"] for row in found}


def test_files_of_every_kind_are_loaded_by_their_address(put, graph):
    given = [
        put("seed.jsonl", ADA),
        put("packed", gzip.compress(ADA.replace(b"ada", b"bob"))),
        put("Author.csv", b"slug,born\ncy,1970\n"),
        put("parts/Author.parquet", parquet(slug=["dee"])),
    ]
    assert graph.load(given, "append").rows_loaded == {"node:Author": 4}
    assert authors(graph) == {"ada", "bob", "cy", "dee"}


def test_a_pattern_stays_within_its_folder_and_a_folder_goes_down(put, graph):
    put("in/a.jsonl", ADA)
    put("in/_SUCCESS", b"")
    deeper = put("in/deep/b.jsonl", ADA.replace(b"ada", b"bob"))
    folder = deeper.removesuffix("/deep/b.jsonl")
    graph.load(f"{folder}/*.jsonl", "merge")
    assert authors(graph) == {"ada"}
    graph.load(folder, "merge")
    assert authors(graph) == {"ada", "bob"}
    with pytest.raises(SourceUnreadable, match="matches no file"):
        graph.load(f"{folder}/*.csv", "merge")


def test_a_mapping_names_objects_too(put, graph):
    address = put("people.csv", b"login\nada\n")
    source = {"path": address, "node": "Author", "columns": {"slug": "login"}}
    graph.load(None, "merge", mapping={"version": 1, "sources": [source]})
    assert authors(graph) == {"ada"}


def test_what_is_not_there_is_named(put, graph):
    missing = put("a", b"").removesuffix("/a") + "/none.jsonl"
    with pytest.raises(SourceUnreadable, match=r"none\.jsonl: does not exist"):
        graph.load(missing, "merge")
    with pytest.raises(SourceUnreadable, match="names no bucket"):
        graph.load("s3://", "merge")


def test_a_large_object_is_cut_and_its_parts_notice_when_it_changes(put, graph):
    lines = [ADA.replace(b"ada", b"ada%d" % number) for number in range(2000)]
    address = put("many.jsonl", b"".join(lines))
    pieces = split_sources([JsonSource(name=address)], 20_000)
    assert len(pieces) > 2
    contents = []
    for piece in pieces:
        assert isinstance(piece.source, JsonSource)
        assert piece.source.range is not None
        with piece.source.open() as stream:
            contents.append(stream.read())
    assert b"".join(contents) == b"".join(lines)
    put("many.jsonl", b"".join(reversed(lines)))
    last = pieces[-1].source
    assert isinstance(last, JsonSource)
    with pytest.raises(LoadSourceError, match="changed while it was loaded"), last.open():
        pass
