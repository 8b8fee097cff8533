"""OpenAI, and the many servers that speak its language: a batch of texts per request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from omnigraph.embed.answers import vector_of
from omnigraph.embed.calls import Calls, CallSettings
from omnigraph.embed.provider import Task, Vectors, normalised
from omnigraph.errors import EmbeddingFailed

OPENAI_MODEL: Final = "text-embedding-3-small"
OPENAI_URL: Final = "https://api.openai.com/v1"

_BATCH: Final = 128


class OpenAiProvider:
    """Questions and documents are embedded alike; such models do not tell them apart."""

    def __init__(self, key: str | None, base_url: str, model: str, settings: CallSettings) -> None:
        self.model = f"openai/{model}"
        self._name = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._calls = Calls({} if key is None else {"authorization": f"Bearer {key}"}, settings)

    def embed(self, texts: Sequence[str], task: Task, dimension: int) -> Vectors:
        found = np.empty((len(texts), dimension), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            found[start : start + len(batch)] = self._batch(batch, dimension)
        return normalised(found)

    def _batch(self, texts: list[str], dimension: int) -> Vectors:
        body = {
            "model": self._name,
            "input": texts,
            "dimensions": dimension,
            "encoding_format": "float",
        }
        answer = self._calls.post(self._url, body)
        by_index = self._by_index(answer)
        if sorted(by_index) != list(range(len(texts))):
            raise EmbeddingFailed(
                f"{self.model} was given {len(texts)} texts and answered for {len(by_index)}"
            )
        vectors = [vector_of(by_index[i], dimension, self.model) for i in range(len(texts))]
        return np.stack(vectors)

    def _by_index(self, answer: Any) -> dict[int, Any]:
        try:
            return {int(item["index"]): item["embedding"] for item in answer["data"]}
        except (KeyError, TypeError, ValueError) as error:
            raise EmbeddingFailed(f"{self.model} answered without embeddings") from error
