"""Which addresses outside of a graph lie under a base."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError
from omnigraph.rows.blob_bases import NO_BASES, BlobBases

BASES = BlobBases.of("s3://bucket/pictures/, /data/files ,file:///more%20files, gs://other")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/pictures/a.png",
        "s3://bucket/pictures/deep/er/a.png",
        "file:///data/files/a",
        "file://localhost/data/files/a",
        "file:///data/files/with%20blank",
        "file:///more%20files/a",
        "gs://other/a",
    ],
)
def test_what_lies_under_a_base_is_allowed(uri):
    assert BASES.allow(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/a.png",
        "s3://bucket/pictures",
        "s3://bucket/picturesque/a.png",
        "s3://bucket/pictures/../secret",
        "s3://bucket/pictures/./a",
        "s3://bucket/pictures/%2e%2e/secret",
        "s3://bucket/pictures/%252e%252e/secret",
        "s3://bucket/pictures/a\\b",
        "s3://bucket/pictures/a?versionId=1",
        "s3://bucket/pictures/a#b",
        "s3://bucket/pictures/a\nb",
        "s3://bucket/pictures//a",
        "s3://user@bucket/pictures/a",
        "s3://other/pictures/a",
        "S3://bucket/pictures/a",
        "file:///data/files/../../etc/passwd",
        "file:///data/filesystem/a",
        "file://host/data/files/a",
        "file:/data/files/a",
        "/data/files/a",
        "data/files/a",
        "https://bucket/pictures/a",
        "gs://other",
        "",
    ],
)
def test_nothing_else_is_allowed(uri):
    assert not BASES.allow(uri)
    assert not NO_BASES.allow(uri)


def test_the_root_may_be_a_base():
    assert BlobBases.of("/").allow("file:///anything")
    assert BlobBases.of("file:///").allow("file:///any/thing")


@pytest.mark.parametrize("base", ["pictures", "file://host/x", "s3://", "/data/../etc", "~/x"])
def test_a_base_that_names_no_place_is_refused(base):
    with pytest.raises(
        InputError, match=r"OMNIGRAPH_EXTERNAL_BLOBS: '.*' is not a valid blob base"
    ):
        BlobBases.of(f"/data,{base}")


def test_the_setting_is_read_when_it_is_needed(monkeypatch):
    assert BlobBases.from_environment() == NO_BASES
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", "/data")
    assert BlobBases.from_environment().allow("file:///data/a")


def test_a_link_does_not_lead_out_of_a_base(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "real").touch()
    (inside / "link").symlink_to(outside / "secret")
    (tmp_path / "base").symlink_to(inside)
    bases = BlobBases.of(f"{tmp_path}/base")
    assert bases.allow_reading(f"file://{tmp_path}/base/real")
    assert bases.allow(f"file://{tmp_path}/base/link")
    assert not bases.allow_reading(f"file://{tmp_path}/base/link")
    assert BlobBases.of("s3://b").allow_reading("s3://b/k")
