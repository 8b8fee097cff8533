"""Why a call to a store failed, as a user reads it."""

from __future__ import annotations

import uuid

import pytest

import omnigraph as og
from omnigraph.errors import StoreCallFailed
from omnigraph.storage.failures import UNREACHABLE, cause_in_words
from tests.contract.objects.moto_server import environment_for

SCHEMA = "node A { k: String @key }"
REQUEST = "Error performing PUT http://x/b/k?partNumber=1 in 1.2s, after 3 retries, max_retries: 3"
ANSWER = f"{REQUEST} - Server returned non-2xx status code"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("LanceError(IO): No space left on device (os error 28), /a/b.rs:1:2", "No space left"),
        (
            "External error: LanceError(IO): Generic LocalFileSystem error: x (os error 30)",
            "Read-only",
        ),
        ("Unable to open file: Permission denied (os error 13)", "Permission denied"),
        (f"{ANSWER}: 404 Not Found: <Code>NoSuchBucket</Code>", "the bucket does not exist"),
        (f"{ANSWER}: 403 Forbidden: <Code>InvalidAccessKeyId</Code>", "credentials were refused"),
        (f"{ANSWER}: 403 Forbidden: ", "access was denied"),
        (
            f"{ANSWER}: 500 Internal Server Error: page\n\nmore",
            "answered 500 Internal Server Error",
        ),
        (f"{REQUEST} - HTTP error: error sending request", UNREACHABLE),
        ("LanceError(IO): failed to fill whole buffer, rust/lance-io/src/x.rs:1", "damaged"),
        ("LanceError(Schema): no field x, location: rust/lance/src/y.rs:10:20", "no field x"),
        ("something else\nwith details", "something else"),
    ],
)
def test_what_libraries_say_becomes_one_sentence(said, words):
    cause = cause_in_words(said)
    assert words in cause
    for part in (".rs", "LanceError", "Generic", "\n", "retries", "http", "<Code>"):
        assert part not in cause


@pytest.mark.parametrize("call", [og.open, lambda uri: og.init(uri, SCHEMA)])
def test_a_missing_bucket_is_named(s3_endpoint, monkeypatch, call):
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreCallFailed, match=r"'s3://[\w-]+/g.*': the bucket does not exist$"):
        call(f"s3://missing-{uuid.uuid4().hex}/g")


@pytest.mark.parametrize("call", [og.open, lambda uri: og.init(uri, SCHEMA)])
def test_a_store_that_cannot_be_reached_is_named(monkeypatch, call):
    for name, value in environment_for("http://127.0.0.1:1").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreCallFailed, match=f"': {UNREACHABLE}$"):
        call("s3://bucket/g")
