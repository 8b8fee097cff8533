"""Addresses: normal form, joining, identity, and what is refused."""

from __future__ import annotations

import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError, StorageError
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import GraphRoot, normalise_path, normalise_root


@pytest.mark.parametrize(
    ("uri", "normal", "kind"),
    [
        ("/data/g/", "/data/g", "local"),
        ("/data/g", "/data/g", "local"),
        ("/data/g///", "/data/g", "local"),
        ("//data//g", "/data/g", "local"),
        ("///data/g", "/data/g", "local"),
        ("/data/./x/../g", "/data/g", "local"),
        ("/", "/", "local"),
        ("//", "/", "local"),
        ("file:///data/g/", "/data/g", "local"),
        ("file:///data/g", "/data/g", "local"),
        ("file://localhost/data/g", "/data/g", "local"),
        ("file:///", "/", "local"),
        ("file:///my%20data/%C3%BC", "/my data/ü", "local"),
        ("file:///100%25", "/100%", "local"),
        ("/my%20data", "/my%20data", "local"),
        ("/a#b", "/a#b", "local"),
        ("/a?/../b", "/b", "local"),
        ("s3://b/p/", "s3://b/p", "s3"),
        ("s3://b/p/q", "s3://b/p/q", "s3"),
        ("s3://b", "s3://b", "s3"),
        ("s3://b//", "s3://b", "s3"),
        ("s3://b/my data/ü", "s3://b/my data/ü", "s3"),
        ("memory://one", "shared-memory://one", "memory"),
        ("memory://one/", "shared-memory://one", "memory"),
        ("shared-memory://one", "shared-memory://one", "memory"),
    ],
)
def test_an_address_has_one_normal_form(uri, normal, kind):
    root = normalise_root(uri)
    assert (root.uri, root.kind) == (normal, kind)
    assert normalise_root(root.uri) == root


@pytest.mark.parametrize("uri", ["g", "./g", "g/", "x/../g", "./x/.././g//"])
def test_a_relative_path_is_taken_from_the_working_directory_once(uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = normalise_root(uri)
    monkeypatch.chdir("/")
    assert root.uri == root.identity == f"{tmp_path}/g"


@pytest.mark.parametrize(
    ("uri", "complaint"),
    [
        ("", "not a valid graph URI"),
        ("/a\0b", "not a valid graph URI"),
        ("/a\nb", "not a valid graph URI"),
        ("/a?b", "question mark"),
        ("/a?/b", "question mark"),
        ("file:///a%3Fb", "question mark"),
        ("/a\udcffb", "UTF-8"),
        ("gs://bucket/g", "not kept at gs://"),
        ("S3://bucket/g", "not kept at S3://"),
        ("http://host/g", "not kept at http://"),
        ("file://host/g", "file:///path"),
        ("file://", "file:///path"),
        ("file://localhost", "file:///path"),
        ("file:///a%FFb", "UTF-8"),
        ("file:///a%00b", "control"),
        ("s3://b/a?b", "prefix"),
        ("s3://b/a#b", "prefix"),
        ("s3://b/a%20b", "prefix"),
        ("s3://b/a\\b", "prefix"),
        ("s3://b/a//b", "prefix"),
        ("s3://b//a", "prefix"),
        ("s3://b/./a", "prefix"),
        ("s3://b/a/..", "prefix"),
        ("s3://user@b/a", "bucket"),
        ("s3://b:80/a", "bucket"),
        ("memory://", "memory://name"),
        ("memory://a//b", "memory://name"),
        ("memory://a b", "memory://name"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(uri, complaint):
    with pytest.raises(InputError, match=complaint):
        normalise_root(uri)


def test_a_question_mark_in_the_working_directory_is_refused_as_well(tmp_path, monkeypatch):
    (tmp_path / "a?b").mkdir()
    monkeypatch.chdir(tmp_path / "a?b")
    with pytest.raises(InputError, match="question mark"):
        normalise_root("g")


@pytest.mark.parametrize("uri", ["s3://", "s3:///", "s3:///prefix"])
def test_s3_without_a_bucket_is_an_error(uri):
    with pytest.raises(StorageError, match="names no bucket"):
        normalise_root(uri)


@pytest.mark.parametrize(
    ("root", "relative", "joined"),
    [
        ("/data/g", "_schema.pg", "/data/g/_schema.pg"),
        ("/data/g/", "nodes/ab/", "/data/g/nodes/ab"),
        ("/data/g", "//nodes/ab", "/data/g/nodes/ab"),
        ("/data/g", "", "/data/g"),
        ("/data/g", "/", "/data/g"),
        ("/", "x", "/x"),
        ("/", "", "/"),
        ("file:///data/g%20h", "x", "/data/g h/x"),
        ("s3://b/p/", "/x/", "s3://b/p/x"),
        ("s3://b", "x", "s3://b/x"),
        ("memory://m", "x", "shared-memory://m/x"),
    ],
)
def test_joining_puts_one_slash_between_and_none_behind(root, relative, joined):
    assert normalise_root(root).join(relative) == joined


def test_an_s3_root_has_a_bucket_and_a_prefix():
    assert normalise_root("s3://b/p/q/").bucket_and_prefix == ("b", "p/q")
    assert normalise_root("s3://b").bucket_and_prefix == ("b", "")


class TestIdentity:
    def test_a_symbolic_link_and_its_target_are_one_place(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        real, link = (normalise_root(str(tmp_path / name / "g")) for name in ("real", "link"))
        assert real != link
        assert real.identity == link.identity == f"{os.path.realpath(tmp_path)}/real/g"

    def test_it_does_not_change_when_the_graph_appears(self, tmp_path):
        root = normalise_root(str(tmp_path / "g"))
        before = root.identity
        (tmp_path / "g").mkdir()
        assert root.identity == before

    def test_different_places_differ(self, tmp_path):
        uris = [str(tmp_path / "a"), str(tmp_path / "b"), "s3://a/g", "s3://b/g", "memory://a"]
        assert len({normalise_root(uri).identity for uri in uris}) == len(uris)

    def test_stores_are_told_apart_by_bucket_and_prefix(self):
        assert normalise_root("s3://b/g/").identity == normalise_root("s3://b/g").identity


def test_three_spellings_of_one_directory_hold_the_same_objects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spellings = [f"{tmp_path}/g/", f"file://{tmp_path}/g", "./g"]
    roots = [normalise_root(uri) for uri in spellings]
    assert len(set(roots)) == 1
    for n, root in enumerate(roots):
        assert bool(open_store(root, Durability.FSYNC).write_text_if_absent("a", "x")) is (n == 0)


@pytest.mark.parametrize(
    ("uri", "kind"),
    [("/data/g/", "local"), ("g", "local"), ("s3://b", "local"), ("/data/g", "s3")],
)
def test_a_root_that_is_not_normal_cannot_be_made(uri, kind):
    with pytest.raises(ValueError, match="not the normal form"):
        GraphRoot(uri, kind)


def test_a_root_crosses_processes():
    root = normalise_root("s3://b/p")
    assert pickle.loads(pickle.dumps(root)) == root


@pytest.mark.parametrize(
    ("path", "normalised"),
    [("a/b", "a/b"), ("/a//b/", "a/b"), ("a/./b/../c", "a/c"), ("", ""), ("a/..", ""), ("/", "")],
)
def test_a_path_is_normalised_by_its_text(path, normalised):
    assert normalise_path(path) == normalised


SEGMENTS = st.sampled_from(["a", "b.json", "ü", "", ".", ".."])


@given(st.lists(SEGMENTS).map("/".join))
def test_normalising_twice_is_normalising_once_and_never_leaves_the_root(path):
    try:
        normalised = normalise_path(path)
    except ValueError:
        assert ".." in path
    else:
        assert normalise_path(normalised) == normalised
        assert not {"", ".", ".."} & set(normalised.split("/")) or normalised == ""


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="?"), min_size=1))
def test_any_path_without_question_marks_and_control_characters_is_a_local_root_in_normal_form(
    path,
):
    root = normalise_root(f"/{path}")
    assert root.kind == "local"
    assert normalise_root(root.uri) == root
    assert "//" not in root.join("x")
