"""Bytes of blobs: read whole and in parts, from inside the graph and from allowed places outside."""

from __future__ import annotations

import base64
import json

import pytest

from omnigraph.api.graph import init
from omnigraph.errors import (
    BlobMissing,
    BlobRangeError,
    EntityNotFound,
    ExternalBlobRefused,
    InputError,
    LoadError,
    NotABlob,
    StorageError,
    UnknownType,
)
from omnigraph.limits import BLOB_READ_BYTES
from omnigraph.read.entities import read_entity

PICTURES = """
node Picture { name: String @key  pic: Blob?  note: String? }
edge Shows: Picture -> Picture { proof: Blob?  @unique(src, dst) }
"""
SETTING = "OMNIGRAPH_EXTERNAL_BLOBS"
INSERT = 'query q($p: Blob) { insert Picture { name: "m", pic: $p } }'


def picture(name, **data):
    return json.dumps({"type": "Picture", "data": {"name": name, **data}}).encode()


def text_of(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


@pytest.fixture
def graph(uri):
    return init(uri, PICTURES)


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"kept outside")
    return folder


# -- inside -------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-265")
def test_a_blob_is_null_in_queries_and_its_bytes_are_read_by_name(graph):
    graph.load(picture("a", pic="base64:SGk="), "merge")
    assert graph.blobs.read("Picture", "a", "pic") == b"Hi"
    shown = graph.query("query q() { match { $p: Picture } return { $p.pic } }")
    assert shown.to_dicts() == [{"p.pic": None}]
    assert graph.at("main").get("Picture", "a")["pic"] == b"Hi"
    stored = read_entity(graph._snapshot(), graph._core.tables, "node:Picture", "a")
    assert stored is not None
    assert stored["pic"] == "base64:SGk="


@pytest.mark.parametrize("size", [0, 5, 200_000, BLOB_READ_BYTES + 7])
def test_a_blob_of_any_size_is_read(graph, size):
    data = bytes(range(256)) * (size // 256 + 1)
    graph.load(picture("a", pic=text_of(data[:size])), "merge")
    blob = graph.blobs.open("Picture", "a", "pic")
    assert (blob.size, blob.uri) == (size, None)
    assert blob.read() == data[:size]
    assert max(map(len, blob.parts()), default=0) <= BLOB_READ_BYTES


@pytest.mark.parametrize(
    ("offset", "length", "found"),
    [
        (0, 4, b"0123"),
        (4, None, b"456789"),
        (4, 3, b"456"),
        (8, 100, b"89"),
        (3, 0, b""),
        (10, None, b""),
        (10, 5, b""),
    ],
)
def test_a_part_of_a_blob_is_read(graph, offset, length, found):
    graph.load(picture("a", pic=text_of(b"0123456789")), "merge")
    assert graph.blobs.read("Picture", "a", "pic", offset=offset, length=length) == found


def test_a_part_that_is_not_there_is_refused(graph):
    graph.load(picture("a", pic=text_of(b"0123456789")), "merge")
    with pytest.raises(BlobRangeError, match=r"offset 11 is past the end of the blob \(10 bytes\)"):
        graph.blobs.read("Picture", "a", "pic", offset=11)
    with pytest.raises(InputError, match="must not be negative"):
        graph.blobs.read("Picture", "a", "pic", offset=-1)
    with pytest.raises(InputError, match="must not be negative"):
        graph.blobs.read("Picture", "a", "pic", length=-1)


def test_what_has_no_bytes_is_told(graph):
    graph.load(picture("a", note="no picture"), "merge")
    with pytest.raises(UnknownType, match="unknown node type 'Nope'"):
        graph.blobs.read("Nope", "a", "pic")
    with pytest.raises(NotABlob, match=r"Picture\.note is not a Blob"):
        graph.blobs.read("Picture", "a", "note")
    with pytest.raises(NotABlob, match=r"Picture\.nope is not a Blob"):
        graph.blobs.read("Picture", "a", "nope")
    with pytest.raises(EntityNotFound, match="no Picture with id 'x' found"):
        graph.blobs.read("Picture", "x", "pic")
    with pytest.raises(BlobMissing, match="Picture 'a' has no blob in 'pic'"):
        graph.blobs.read("Picture", "a", "pic")
    with pytest.raises(InputError, match="pass either branch or at, not both"):
        graph.blobs.read("Picture", "a", "pic", branch="main", at=1)


def test_the_blob_of_an_edge_is_read(graph):
    edge = {"edge": "Shows", "from": "a", "to": "b", "data": {"proof": text_of(b"proof")}}
    graph.load(picture("a") + picture("b") + json.dumps(edge).encode(), "merge")
    assert graph.blobs.read("Shows", '["a","b"]', "proof") == b"proof"


def test_a_blob_is_read_as_it_was(graph):
    first = graph.load(picture("a", pic=text_of(b"one")), "merge").receipt.graph_commit_id
    branch = graph.branches.create("draft")
    branch.load(picture("a", pic=text_of(b"two")), "merge")
    assert graph.blobs.read("Picture", "a", "pic") == b"one"
    assert graph.blobs.read("Picture", "a", "pic", branch="draft") == b"two"
    assert branch.blobs.read("Picture", "a", "pic") == b"two"
    assert branch.blobs.read("Picture", "a", "pic", at=first) == b"one"


# -- outside ------------------------------------------------------------------------------------


def test_a_load_keeps_addresses_only_under_an_allowed_base(graph, outside, monkeypatch):
    uri = f"file://{outside}/a.bin"
    head = graph.head().id
    with pytest.raises(LoadError) as error:
        graph.load(picture("a", pic=text_of(b"fine")) + picture("b", pic=uri), "merge")
    (problem,) = error.value.load_errors
    assert (problem.record, problem.code, problem.property) == (2, "bad_value", "pic")
    assert f"'{uri}' is not under a base that {SETTING} allows" in problem.message
    assert graph.head().id == head
    monkeypatch.setenv(SETTING, str(outside))
    graph.load(picture("a", pic=text_of(b"fine")) + picture("b", pic=uri), "merge")
    blob = graph.blobs.open("Picture", "b", "pic")
    assert (blob.size, blob.uri) == (12, uri)
    assert blob.read() == b"kept outside"
    assert blob.read(5, 3) == b"out"


def test_records_with_refused_addresses_can_be_set_aside(graph, outside, monkeypatch, tmp_path):
    monkeypatch.setenv(SETTING, str(outside))
    rows = [f"file://{outside}/a.bin", "file:///etc/hosts", f"file://{outside}/../secret", "x.png"]
    text = b"".join(picture(str(n), pic=uri) for n, uri in enumerate(rows))
    done = graph.load(text, "merge", quarantine=tmp_path / "bad")
    assert (done.quarantined, done.rows_loaded) == (3, {"node:Picture": 1})
    assert graph.blobs.read("Picture", "0", "pic") == b"kept outside"


def test_a_mutation_keeps_addresses_only_under_an_allowed_base(graph, outside, monkeypatch):
    uri = f"file://{outside}/a.bin"
    with pytest.raises(ExternalBlobRefused, match=SETTING):
        graph.mutate(INSERT, {"p": uri})
    monkeypatch.setenv(SETTING, str(outside))
    graph.mutate(INSERT, {"p": uri})
    graph.mutate('query q() { update Picture set { note: "kept" } where name = "m" }')
    assert graph.blobs.read("Picture", "m", "pic") == b"kept outside"
    assert graph.at("main").get("Picture", "m")["pic"] == uri


def test_an_address_is_followed_only_while_its_base_is_allowed(graph, outside, monkeypatch):
    monkeypatch.setenv(SETTING, str(outside))
    graph.load(picture("a", pic=f"file://{outside}/a.bin"), "merge")
    monkeypatch.delenv(SETTING)
    with pytest.raises(ExternalBlobRefused, match=SETTING):
        graph.blobs.read("Picture", "a", "pic")


def test_a_link_is_not_followed_out_of_a_base(graph, outside, monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (outside / "link").symlink_to(tmp_path / "secret")
    monkeypatch.setenv(SETTING, str(outside))
    graph.load(picture("a", pic=f"file://{outside}/link"), "merge")
    with pytest.raises(ExternalBlobRefused):
        graph.blobs.read("Picture", "a", "pic")


def test_a_file_that_is_gone_is_told_by_its_address(graph, outside, monkeypatch):
    uri = f"file://{outside}/a.bin"
    monkeypatch.setenv(SETTING, str(outside))
    graph.load(picture("a", pic=uri), "merge")
    (outside / "a.bin").unlink()
    with pytest.raises(StorageError, match=uri):
        graph.blobs.read("Picture", "a", "pic")


def test_a_wrong_setting_is_told(graph, monkeypatch):
    monkeypatch.setenv(SETTING, "pictures")
    with pytest.raises(InputError, match=f"{SETTING}: 'pictures' is not a valid blob base"):
        graph.load(picture("a"), "merge")
