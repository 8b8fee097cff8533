"""Vectors of the texts of one write.

A write may be prepared several times, the last time under the branch lock. Vectors are requested once and
remembered, so no provider call happens while a lock is held. Tests: tests/unit/providers/test_documents.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import (
    EmbeddingError,
    EmbeddingFailed,
    EmbeddingModelUnavailable,
    EmbeddingNotConfigured,
    EmbeddingRefused,
)
from omnigraph.faults import declare
from omnigraph.providers.clients import Provider, Task, Vectors
from omnigraph.providers.configured import provider_of, required_provider, stored_name

BEFORE_REQUEST = declare("embed.before_provider", "before texts are sent to the provider")

_BATCH_TEXTS: Final = 128
"""Texts per request. Vectors received before an outage are kept."""

_MAX_CONSECUTIVE_REFUSALS: Final = 8
"""Refused texts in a row after which the provider counts as down."""

Mask = npt.NDArray[np.bool_]


class TextsToEmbed(Exception):
    """A write under its lock needs vectors that were not requested before."""


class DocumentVectors:
    """Requests the vector of each distinct text once, and remembers it."""

    def __init__(self, named: str | None = None) -> None:
        self.failure: EmbeddingError | None = None
        """Why the last text without a vector has none."""
        self._named = named
        self._others: dict[str, DocumentVectors] = {}
        """Vectors of models that the schema names."""
        self._configured: Provider | EmbeddingError | None = None
        self._known: dict[int, _KnownTexts] = {}
        self._refused = 0
        self._is_down = False
        self._may_request = True

    def under(self, model: str | None) -> DocumentVectors:
        """The vectors of a model that the schema names; without a name, of the configured model."""
        if model is None:
            return self
        if model not in self._others:
            other = self._others[model] = DocumentVectors(model)
            other._may_request, other._is_down = self._may_request, self._is_down
        return self._others[model]

    @property
    def unconfigured(self) -> EmbeddingNotConfigured | None:
        """The missing setting, if no provider is configured. Raises `InputError`."""
        provider = self._provider()
        return provider if isinstance(provider, EmbeddingNotConfigured) else None

    @property
    def model(self) -> str | None:
        """The named or configured model, if any. Raises `InputError`."""
        if self._named is not None:
            return stored_name(self._named)
        provider = self._provider()
        return None if isinstance(provider, EmbeddingError) else provider.model

    def can_answer(self) -> bool:
        """Whether a provider is configured; if not, `failure` names the missing setting.

        Raises `EmbeddingModelUnavailable`.
        """
        provider = self._provider()
        if isinstance(provider, EmbeddingModelUnavailable):
            raise provider
        self.failure = self.unconfigured or self.failure
        return self.unconfigured is None

    def of(self, texts: pa.Array, dimension: int) -> pa.Array:
        """The vector of each text; null if the provider returned none."""
        known = self._known.setdefault(dimension, _KnownTexts(dimension))
        wanted: list[str] = texts.to_pylist()
        asked = known.missing(wanted)
        if asked:
            known.add(asked, *self._request(asked, dimension))
        return known.of(wanted)

    def remember(self, texts: pa.Array, vectors: pa.Array) -> None:
        """Add vectors that the same model computed earlier."""
        dimension = vectors.type.list_size
        known = self._known.setdefault(dimension, _KnownTexts(dimension))
        # Equal texts have equal vectors.
        earlier = dict(zip(texts.to_pylist(), range(len(texts)), strict=True))
        new = known.missing(list(earlier))
        found = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
        known.add(new, found[[earlier[text] for text in new]], np.ones(len(new), np.bool_))

    def take_over(self, texts: pa.Array, vectors: pa.Array, failure: EmbeddingError | None) -> None:
        """Add the results of another process: vectors or nulls, and why there are nulls."""
        answered = vectors.is_valid()
        self.remember(texts.filter(answered), vectors.filter(answered))
        self.failure = failure or self.failure

    @contextmanager
    def only_known(self) -> Iterator[None]:
        """Inside, an unknown text raises `TextsToEmbed` instead of a request: the caller holds a lock."""
        self._set_requests(allowed=False)
        try:
            yield
        finally:
            self._set_requests(allowed=True)

    def _set_requests(self, *, allowed: bool) -> None:
        for vectors in (self, *self._others.values()):
            vectors._may_request = allowed

    def stop(self) -> None:
        """Send no more requests; texts unknown by now stay without a vector."""
        for vectors in (self, *self._others.values()):
            vectors._is_down = True

    def _provider(self) -> Provider | EmbeddingError:
        if self._configured is None:
            try:
                named = self._named
                self._configured = required_provider() if named is None else provider_of(named)
            except (EmbeddingNotConfigured, EmbeddingModelUnavailable) as missing:
                self._configured = missing
        return self._configured

    def _request(self, texts: list[str], dimension: int) -> tuple[Vectors, Mask]:
        """Request vectors; returns them and which texts have one."""
        found = np.zeros((len(texts), dimension), np.float32)
        answered = np.zeros(len(texts), np.bool_)
        provider = self._provider()
        if isinstance(provider, EmbeddingError):
            self.failure = provider
            return found, answered
        if not self._may_request and not self._is_down:
            raise TextsToEmbed
        BEFORE_REQUEST.hit(texts=len(texts))
        for start in range(0, len(texts), _BATCH_TEXTS):
            part = slice(start, start + _BATCH_TEXTS)
            self._request_batch(provider, texts[part], found[part], answered[part])
        return found, answered

    def _request_batch(
        self, provider: Provider, texts: list[str], found: Vectors, answered: Mask
    ) -> None:
        """Request some texts. If the provider refuses a batch, its halves are tried."""
        if self._is_down or not texts:
            return
        try:
            found[:] = provider.embed(texts, Task.DOCUMENT, found.shape[1])
            answered[:] = True
            self._refused = 0
        except EmbeddingRefused as refusal:
            self.failure = refusal
            if len(texts) == 1:
                self._refused += 1
                self._is_down = self._refused >= _MAX_CONSECUTIVE_REFUSALS
                return
            middle = len(texts) // 2
            for part in (slice(middle), slice(middle, None)):
                self._request_batch(provider, texts[part], found[part], answered[part])
        except EmbeddingFailed as failure:
            self.failure = failure
            self._is_down = True


class _KnownTexts:
    """Texts and their vectors, in parts that are never copied."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._numbers: dict[str, int] = {}
        self._parts: list[tuple[Vectors, Mask]] = []
        self._starts: list[int] = []

    def missing(self, texts: list[str]) -> list[str]:
        """The distinct texts that are not known."""
        return [text for text in dict.fromkeys(texts) if text not in self._numbers]

    def add(self, texts: list[str], vectors: Vectors, answered: Mask) -> None:
        """Add unknown texts with their vectors, and which of them have one."""
        start = len(self._numbers)
        self._numbers.update(zip(texts, range(start, start + len(texts)), strict=True))
        self._parts.append((vectors, answered))
        self._starts.append(start)

    def of(self, texts: list[str]) -> pa.Array:
        """The vectors of known texts; null for texts without one."""
        numbers = np.array([self._numbers[text] for text in texts], np.int64)
        found = np.zeros((len(texts), self._dimension), np.float32)
        answered = np.zeros(len(texts), np.bool_)
        parts = np.searchsorted(self._starts, numbers, side="right") - 1
        for part in np.unique(parts):
            here = parts == part
            offsets = numbers[here] - self._starts[part]
            vectors, has_vector = self._parts[part]
            found[here], answered[here] = vectors[offsets], has_vector[offsets]
        item = pa.field("item", pa.float32(), nullable=True)
        return pa.FixedSizeListArray.from_arrays(
            pa.array(found.reshape(-1)),
            type=pa.list_(item, self._dimension),
            mask=pa.array(~answered),
        )
