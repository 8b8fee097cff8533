"""Vectors without a model: the same text gives the same vector, everywhere and for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from omnigraph.embed.provider import Task, Vectors, normalised

_OFFSET_BASIS: Final = 14695981039346656037
_PRIME: Final = 1099511628211
_WORD: Final = 2**64


class MockProvider:
    """For tests, demos and offline work. Near texts get vectors that are not near."""

    model = "mock/fnv1a-xorshift64"

    def embed(self, texts: Sequence[str], task: Task, dimension: int) -> Vectors:
        state = np.array([_hash(text) for text in texts], np.uint64)
        vectors = np.empty((len(texts), dimension), np.float32)
        for column in range(dimension):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            ratio = (state.astype(np.float64) / _WORD).astype(np.float32)
            vectors[:, column] = ratio * np.float32(2) - np.float32(1)
        return normalised(vectors)


def _hash(text: str) -> int:
    """64-bit FNV-1a."""
    value = _OFFSET_BASIS
    for byte in text.encode():
        value = (value ^ byte) * _PRIME % _WORD
    return value
