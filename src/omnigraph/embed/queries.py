"""Vectors of query texts. People ask the same thing again, and each asking would cost a call."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from omnigraph.embed.configured import provider_of, required_provider
from omnigraph.embed.provider import Provider, Task, Vectors

_KEPT: Final = 1024


def query_vector(text: str, dimension: int, model: str | None = None) -> Vectors:
    """The vector of a query text, of the model that a schema names or of the configured one.

    Raises `EmbeddingNotConfigured`, `EmbeddingModelUnavailable` or `EmbeddingFailed`.
    """
    return _known(text, dimension, required_provider() if model is None else provider_of(model))


@lru_cache(_KEPT)
def _known(text: str, dimension: int, provider: Provider) -> Vectors:
    vector: Vectors = provider.embed([text], Task.QUERY, dimension)[0]
    vector.flags.writeable = False
    return vector
