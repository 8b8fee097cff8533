"""`omnigraph blob get` and `blob stat`."""

from __future__ import annotations

import json

import pytest

import omnigraph as og
from omnigraph.cli.main import main

SCHEMA = "node Picture { name: String @key  pic: Blob?  note: String? }\n"
BLOB = ("Picture", "a", "pic")


@pytest.fixture
def pictures(tmp_path):
    """A picture of ten digits, and of two letters on a branch."""
    uri = str(tmp_path / "graph")
    graph = og.init(uri, SCHEMA)
    graph.load(b'{"type":"Picture","data":{"name":"a","pic":"base64:MDEyMzQ1Njc4OQ=="}}', "append")
    branch = graph.branches.create("draft")
    branch.load(b'{"type":"Picture","data":{"name":"a","pic":"base64:SGk="}}', "merge")
    return uri


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], b"0123456789"),
        (["--offset", "8"], b"89"),
        (["--length", "3"], b"012"),
        (["--offset", "2", "--length", "3"], b"234"),
        (["--branch", "draft"], b"Hi"),
        (["--offset", "10"], b""),
    ],
)
def test_bytes_are_written_to_a_file(cli, pictures, tmp_path, options, found):
    out = tmp_path / "out.bin"
    code, printed, err = cli("blob", "get", *BLOB, "--uri", pictures, "--out", str(out), *options)
    assert (code, printed) == (0, "")
    assert err == f"wrote {len(found)} bytes to {out}\n"
    assert out.read_bytes() == found


def test_bytes_go_to_standard_output_as_they_are(tmp_path, capsysbinary):
    uri = str(tmp_path / "graph")
    graph = og.init(uri, SCHEMA)
    graph.load(b'{"type":"Picture","data":{"name":"a","pic":"base64:AP8KDQ=="}}', "append")
    assert main(["blob", "get", *BLOB, "--uri", uri]) == 0
    assert capsysbinary.readouterr() == (b"\x00\xff\n\r", b"")


def test_an_earlier_commit_is_read(cli, pictures):
    commit = og.open(pictures, read_only=True).head().id
    code, out, _ = cli("blob", "stat", *BLOB, "--uri", pictures, "--snapshot", commit, "--json")
    assert code == 0
    assert json.loads(out) == {
        "type": "Picture",
        "id": "a",
        "property": "pic",
        "size": 10,
        "uri": None,
        "selector": {"entity": "node", "type": "Picture", "id": "a", "property": "pic"},
        "kind": "managed",
        "target": {"snapshot": commit, "resolved_snapshot": commit},
    }
    named = cli("blob", "stat", "node", *BLOB, "--uri", pictures, "--snapshot", commit, "--json")
    assert named.out == out
    assert cli("blob", "stat", "edge", *BLOB, "--uri", pictures).code == 1


def test_a_blob_outside_shows_its_address(cli, pictures, tmp_path, monkeypatch):
    (tmp_path / "x.bin").write_bytes(b"outside")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(tmp_path))
    record = {"type": "Picture", "data": {"name": "x", "pic": f"file://{tmp_path}/x.bin"}}
    og.open(pictures).load(json.dumps(record).encode(), "append")
    code, out, err = cli("blob", "stat", "Picture", "x", "pic", "--uri", pictures)
    assert (code, err) == (0, "")
    assert out == f"size: 7\nuri: file://{tmp_path}/x.bin\n"
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    code, out, err = cli("blob", "stat", "Picture", "x", "pic", "--uri", pictures)
    assert (code, out) == (1, "")
    assert "OMNIGRAPH_EXTERNAL_BLOBS" in err


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["Nope", "a", "pic"], 1, "unknown node type 'Nope'"),
        (["Picture", "a", "note"], 1, "Picture.note is not a Blob"),
        (["Picture", "x", "pic"], 1, "no Picture with id 'x' found"),
        (["Picture", "a", "pic", "--offset", "11"], 1, "past the end of the blob (10 bytes)"),
        (["Picture", "a", "pic", "--offset", "-1"], 2, "--offset"),
        (["Picture", "a", "pic", "--branch", "main", "--snapshot", "x"], 2, "exclusive"),
        (["Picture", "a"], 2, "PROPERTY"),
    ],
)
def test_what_is_not_there_is_told(cli, pictures, arguments, code, complaint):
    found, out, err = cli("blob", "get", *arguments, "--uri", pictures)
    assert (found, out) == (code, "")
    assert complaint in err


def test_a_part_that_is_not_there_leaves_the_file_alone(cli, pictures, tmp_path):
    out = tmp_path / "out.bin"
    out.write_text("old")
    code, _, _ = cli("blob", "get", *BLOB, "--uri", pictures, "--out", str(out), "--offset", "11")
    assert code == 1
    assert out.read_text() == "old"
