"""Reading the numbers out of a provider's answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.embed.provider import Vectors
from omnigraph.errors import EmbeddingFailed


def vector_of(values: Any, dimension: int, model: str) -> Vectors:
    """One vector of an answer. Raises `EmbeddingFailed` unless it has just the numbers wanted."""
    try:
        vector = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(f"{model} answered with something other than numbers") from error
    if vector.ndim != 1:
        raise EmbeddingFailed(f"{model} answered with something other than a list of numbers")
    if len(vector) != dimension:
        raise EmbeddingFailed(
            f"embedding dimension mismatch: expected {dimension}, got {len(vector)} from {model}"
        )
    if not np.isfinite(vector).all():
        raise EmbeddingFailed(f"{model} answered with a number that is not finite")
    return vector
