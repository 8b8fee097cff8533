"""Vectors of query texts. People ask the same thing again, and each asking would cost a call."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from omnigraph.embed.configured import required_provider
from omnigraph.embed.provider import Provider, Task, Vectors

_KEPT: Final = 1024


def query_vector(text: str, dimension: int) -> Vectors:
    """The vector of a query text. Raises `EmbeddingNotConfigured` or `EmbeddingFailed`."""
    return _known(text, dimension, required_provider())


@lru_cache(_KEPT)
def _known(text: str, dimension: int, provider: Provider) -> Vectors:
    vector: Vectors = provider.embed([text], Task.QUERY, dimension)[0]
    vector.flags.writeable = False
    return vector
