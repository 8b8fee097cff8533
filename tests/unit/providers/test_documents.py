"""Vectors of the texts of one write: each text once, and what becomes of texts without one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import EmbeddingFailed, EmbeddingNotConfigured, EmbeddingRefused
from omnigraph.providers import documents
from omnigraph.providers.clients import MockProvider, Task
from omnigraph.providers.documents import DocumentVectors


class Model:
    """A provider that dislikes some texts, and that can be down."""

    model = "test/model"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.disliked: set[str] = set()
        self.is_down = False

    def embed(self, texts, task, dimension):
        self.asked.append(list(texts))
        if self.is_down:
            raise EmbeddingFailed("down")
        if self.disliked & set(texts):
            raise EmbeddingRefused("too long")
        assert task is Task.DOCUMENT
        return MockProvider().embed(texts, task, dimension)


@pytest.fixture
def model(monkeypatch):
    found = Model()
    monkeypatch.setattr(documents, "required_provider", lambda: found)
    return found


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.utf8())


def answered(found: pa.Array) -> list[bool]:
    valid: list[bool] = found.is_valid().to_pylist()
    return valid


def test_vectors_come_in_the_order_of_the_texts(model):
    found = DocumentVectors().of(texts("b", "a", "b"), 3)
    expected = MockProvider().embed(["b", "a", "b"], Task.DOCUMENT, 3)
    assert np.array_equal(np.array(found.to_pylist(), np.float32), expected)
    assert model.asked == [["b", "a"]]


def test_a_text_is_asked_for_once_per_dimension(model):
    vectors = DocumentVectors()
    vectors.of(texts("a", "b"), 3)
    vectors.of(texts("b", "c"), 3)
    vectors.of(texts("a"), 2)
    assert model.asked == [["a", "b"], ["c"], ["a"]]


def test_what_is_remembered_is_not_asked_for(model):
    vectors = DocumentVectors()
    known = pa.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))
    vectors.remember(texts("a", "b", "a"), known)
    found = vectors.of(texts("b", "a"), 2)
    assert found.to_pylist() == [[0.0, 1.0], [1.0, 0.0]]
    assert model.asked == []


def test_texts_are_sent_in_batches(model):
    found = DocumentVectors().of(texts(*map(str, range(300))), 2)
    assert [len(asked) for asked in model.asked] == [128, 128, 44]
    assert all(answered(found))


def test_after_an_outage_no_provider_is_asked_again(model):
    vectors = DocumentVectors()
    model.is_down = True
    assert answered(vectors.of(texts(*map(str, range(300))), 2)) == [False] * 300
    assert answered(vectors.of(texts("1", "more"), 2)) == [False, False]
    assert len(model.asked) == 1
    assert str(vectors.failure) == "embedding provider: down"


@pytest.mark.parametrize("disliked", [{"0"}, {"3", "4"}, {"7"}, {"0", "99"}])
def test_a_disliked_text_costs_no_other_text_its_vector(model, disliked):
    model.disliked = disliked
    vectors = DocumentVectors()
    found = vectors.of(texts(*map(str, range(100))), 2)
    assert answered(found) == [str(n) not in disliked for n in range(100)]
    assert isinstance(vectors.failure, EmbeddingRefused)


def test_a_provider_that_dislikes_everything_is_left_alone(model):
    model.disliked = set(map(str, range(1000)))
    found = DocumentVectors().of(texts(*map(str, range(1000))), 2)
    assert not any(answered(found))
    assert len(model.asked) < 30


def test_without_a_provider_there_are_no_vectors(monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    vectors = DocumentVectors()
    assert vectors.model is None
    assert answered(vectors.of(texts("a"), 2)) == [False]
    assert isinstance(vectors.failure, EmbeddingNotConfigured)
    assert vectors.unconfigured is vectors.failure


def test_once_stopped_it_gives_what_it_knows(model):
    vectors = DocumentVectors()
    vectors.of(texts("a"), 2)
    vectors.stop()
    assert answered(vectors.of(texts("a", "b"), 2)) == [True, False]
    assert model.asked == [["a"]]
