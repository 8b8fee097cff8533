"""What every provider of embeddings does, and the shape of what it gives."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""One row per text."""

_SMALLEST_NORM: Final = float(np.finfo(np.float32).eps)


class Task(Enum):
    """What a text is embedded for; some models tell a question from what is to be found."""

    QUERY = "RETRIEVAL_QUERY"
    DOCUMENT = "RETRIEVAL_DOCUMENT"


class Provider(Hashable, Protocol):
    """Turns texts into vectors of length one."""

    @property
    def model(self) -> str:
        """The name that is kept with every vector, provider first."""
        ...

    def embed(self, texts: Sequence[str], task: Task, dimension: int) -> Vectors: ...


def normalised(vectors: Vectors) -> Vectors:
    """Vectors of length one. One that has hardly any length stays as it is."""
    norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1, keepdims=True))
    norms[norms <= _SMALLEST_NORM] = 1.0
    return np.asarray(vectors / norms.astype(np.float32), np.float32)
