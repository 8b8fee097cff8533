"""Bytes of blobs: ranges, conditions, external ones."""

from __future__ import annotations

import base64

import pytest

import omnigraph as og
from tests.server.serving import H, serving

BYTES = b"Hello World"
SCHEMA = """\
node Person {
    name: String @key
    avatar: Blob?
    note: String?
}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blobs")
    outside = folder / "outside.bin"
    outside.write_bytes(b"outside")
    code = base64.b64encode(BYTES).decode()
    rows = (
        f'{{"type":"Person","data":{{"name":"alice","avatar":"base64:{code}"}}}}\n'
        f'{{"type":"Person","data":{{"name":"eve","avatar":"{outside.as_uri()}"}}}}\n'
        '{"type":"Person","data":{"name":"bob"}}\n'
    )
    env = {"OMNIGRAPH_EXTERNAL_BLOBS": folder.as_uri()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", folder.as_uri())
        with og.init(folder / "blobs.omni", schema=SCHEMA) as graph:
            graph.load(rows.encode(), "overwrite")
    with serving(folder, folder / "blobs.omni", "--unauthenticated", env=env) as running:
        yield running


def blob(server, id="alice", method="GET", more="", type="Person", property="avatar", **headers):
    given = H | {name.replace("_", "-"): value for name, value in headers.items()}
    path = f"/graphs/default/blob?entity=node&type={type}&id={id}&property={property}{more}"
    return server.client.request(method, path, headers=given, follow_redirects=False)


@pytest.mark.acceptance("U-354")
def test_a_whole_blob(server):
    found = blob(server)
    assert (found.status_code, found.content) == (200, BYTES)
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-length"] == "11"
    assert found.headers["accept-ranges"] == "bytes"
    assert found.headers["etag"].startswith('"')
    assert found.headers["omnigraph-snapshot-id"]
    head = blob(server, method="HEAD", Range="bytes=1-4")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == "11"
    assert head.headers["etag"] == found.headers["etag"]
    flat = server.get("/blob?entity=node&type=Person&id=alice&property=avatar")
    assert flat.content == BYTES


@pytest.mark.acceptance("U-354")
@pytest.mark.parametrize(
    ("asked", "content", "range"),
    [
        ("bytes=1-4", b"ello", "bytes 1-4/11"),
        ("bytes=6-", b"World", "bytes 6-10/11"),
        ("bytes=-5", b"World", "bytes 6-10/11"),
        ("bytes=0-0", b"H", "bytes 0-0/11"),
        ("bytes=4-999", b"o World", "bytes 4-10/11"),
        ("bytes=-99", BYTES, "bytes 0-10/11"),
    ],
)
def test_a_range(server, asked, content, range):
    found = blob(server, Range=asked)
    assert (found.status_code, found.content) == (206, content)
    assert found.headers["content-range"] == range
    assert found.headers["content-length"] == str(len(content))


@pytest.mark.acceptance("U-354")
@pytest.mark.parametrize(
    "asked", ["bytes=4-1", "bytes=a-b", "items=1-2", "bytes=0-1,3-4", "bytes=-", "bytes", "1-2"]
)
def test_a_range_that_is_none_is_ignored(server, asked):
    found = blob(server, Range=asked)
    assert (found.status_code, found.content) == (200, BYTES)


@pytest.mark.acceptance("U-354")
@pytest.mark.parametrize("asked", ["bytes=11-", "bytes=99-100", "bytes=-0"])
def test_a_range_past_the_end(server, asked):
    found = blob(server, Range=asked)
    assert (found.status_code, found.json()["code"]) == (416, "bad_request")
    assert found.headers["content-range"] == "bytes */11"
    assert found.json()["blob_range"]["length"] == 11


@pytest.mark.acceptance("U-354", "U-303")
def test_conditions(server):
    tag = blob(server).headers["etag"]
    for given in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        found = blob(server, If_None_Match=given)
        assert (found.status_code, found.content) == (304, b"")
        assert found.headers["etag"] == tag
        assert found.headers["omnigraph-http-api"] == "0.13"
        assert found.headers.get("content-length") != "0"
    assert blob(server, If_None_Match='"x"').status_code == 200
    for given in (tag, f'"x", {tag}', "*"):
        assert blob(server, If_Match=given).status_code == 200
    for given in ('"x"', f"W/{tag}"):
        failed = blob(server, If_Match=given)
        assert (failed.status_code, failed.json()["code"]) == (412, "conflict")
        assert failed.headers["etag"] == tag
        head = blob(server, method="HEAD", If_Match=given)
        assert (head.status_code, head.content) == (412, b"")
    assert blob(server, Range="bytes=1-4", If_Range=tag).status_code == 206
    assert blob(server, Range="bytes=1-4", If_Range='"x"').status_code == 200


@pytest.mark.acceptance("U-354")
def test_an_external_blob_is_a_redirect(server):
    found = blob(server, "eve")
    assert found.status_code == 302
    assert found.headers["location"].endswith("outside.bin")
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["omnigraph-snapshot-id"]
    assert blob(server, "eve", Range="bytes=0-1").status_code == 500


@pytest.mark.acceptance("U-354")
def test_blobs_that_are_not_there(server):
    assert blob(server, "nobody").status_code == 404
    assert blob(server, "bob").status_code == 404
    assert blob(server, type="Nope").status_code == 400
    assert blob(server, property="note").status_code == 400
    assert blob(server, property="nope").status_code == 400
    assert blob(server, more="&branch=main&snapshot=x").status_code == 400
    assert blob(server, more="&branch=nope").status_code == 404
    assert blob(server, more="&x=1").status_code == 400
    missing = server.get("/blob?entity=node&type=Person&id=alice")
    assert missing.status_code == 400
