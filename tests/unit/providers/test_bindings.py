"""What a binding says about its vector, and the state that follows."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from omnigraph.rows.bindings import bindings, given_bindings, vector_states

COPPER = hashlib.sha256(b"copper").hexdigest()[:32]
STATES = ("ready", "pending", "stale", "empty")


def test_a_binding_is_the_hash_of_the_text_and_the_model():
    texts = pa.array(["copper", "kupfer ü", "", " \t", None])
    umlaut = hashlib.sha256("kupfer ü".encode()).hexdigest()[:32]
    assert bindings(texts, "openai/small:1").to_pylist() == [
        f"{COPPER}:openai/small:1",
        f"{umlaut}:openai/small:1",
        "-:openai/small:1",
        "-:openai/small:1",
        "-:openai/small:1",
    ]


def test_only_vectors_that_are_there_are_bound():
    vectors = pa.array([[1.0], None], pa.list_(pa.float32(), 1))
    texts = pa.array(["copper", "copper"])
    assert given_bindings(vectors, texts).to_pylist() == [f"{COPPER}:given", None]
    assert given_bindings(vectors.slice(1), texts.slice(1)).to_pylist() == [None]


@pytest.mark.parametrize(
    ("text", "has_vector", "binding", "model", "state", "is_given"),
    [
        ("copper", True, f"{COPPER}:m", "m", "ready", False),
        ("copper", True, f"{COPPER}:m", None, "ready", False),
        ("copper", True, f"{COPPER}:m", "other", "stale", False),
        ("copper", True, f"{COPPER}:a:b", "a:b", "ready", False),
        ("copper", True, f"{COPPER}:x:given", "m", "stale", False),
        ("tin", True, f"{COPPER}:m", "m", "stale", False),
        ("tin", True, f"{COPPER}:m", None, "stale", False),
        ("copper", True, f"{COPPER}:given", "m", "ready", True),
        ("tin", True, f"{COPPER}:given", "m", "stale", True),
        (None, True, "-:given", "m", "ready", True),
        (" ", True, "-:given", "m", "ready", True),
        ("copper", True, "-:given", "m", "stale", True),
        ("copper", True, None, "m", "stale", True),
        ("copper", False, None, "m", "pending", False),
        ("copper", False, None, None, "pending", False),
        (" ", False, None, "m", "empty", False),
        (None, False, None, "m", "empty", False),
    ],
)
def test_a_row_is_in_one_state(text, has_vector, binding, model, state, is_given):
    found = vector_states(
        pa.array([text], pa.utf8()), pa.array([has_vector]), pa.array([binding], pa.utf8()), model
    )
    assert {name: getattr(found, name).to_pylist() for name in STATES} == {
        name: [name == state] for name in STATES
    }
    assert found.given.to_pylist() == [is_given]
