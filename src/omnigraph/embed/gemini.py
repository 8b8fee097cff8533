"""Google Gemini: one text per request, several requests at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from omnigraph.embed.answers import vector_of
from omnigraph.embed.calls import Calls, CallSettings
from omnigraph.embed.provider import Task, Vectors, normalised
from omnigraph.errors import EmbeddingFailed

GEMINI_MODEL: Final = "gemini-embedding-2-preview"
GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta"

_AT_ONCE: Final = 8


class GeminiProvider:
    def __init__(
        self, key: str, base_url: str, settings: CallSettings, model: str = GEMINI_MODEL
    ) -> None:
        self.model = f"gemini/{model}"
        self._name = model
        self._url = f"{base_url.rstrip('/')}/models/{model}:embedContent"
        self._calls = Calls({"x-goog-api-key": key}, settings)

    def embed(self, texts: Sequence[str], task: Task, dimension: int) -> Vectors:
        if not texts:
            return np.empty((0, dimension), np.float32)
        with ThreadPoolExecutor(min(_AT_ONCE, len(texts))) as pool:
            vectors = list(pool.map(lambda text: self._one(text, task, dimension), texts))
        return normalised(np.stack(vectors))

    def _one(self, text: str, task: Task, dimension: int) -> Vectors:
        answer = self._calls.post(
            self._url,
            {
                "model": f"models/{self._name}",
                "content": {"parts": [{"text": text}]},
                "taskType": task.value,
                "outputDimensionality": dimension,
            },
        )
        try:
            values = answer["embedding"]["values"]
        except (KeyError, TypeError) as error:
            raise EmbeddingFailed(f"{self.model} answered without an embedding") from error
        return vector_of(values, dimension, self.model)
