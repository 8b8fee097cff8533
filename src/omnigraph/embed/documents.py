"""Vectors of the texts of one write.

A write may be prepared several times, the last time under the lock of its branch. It gets the same
answers every time, so that nobody waits for a provider while holding a lock.
Tests: tests/unit/embed/test_documents.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.configured import provider_of, required_provider, stored_name
from omnigraph.embed.provider import Provider, Task, Vectors
from omnigraph.errors import (
    EmbeddingError,
    EmbeddingFailed,
    EmbeddingModelUnavailable,
    EmbeddingNotConfigured,
    EmbeddingRefused,
)
from omnigraph.faults import declare

BEFORE_ASKING = declare("embed.before_provider", "before texts are sent to the provider")

_BATCH: Final = 128
"""Texts asked for at a time. What was answered before an outage is not lost."""

_REFUSED_IN_A_ROW: Final = 8
"""After so many texts in a row were refused, it is not the texts that the provider dislikes."""

Mask = npt.NDArray[np.bool_]


class TextsToEmbed(Exception):
    """A write under its lock has come upon texts that the provider has not been asked about."""


class DocumentVectors:
    """Asks the configured provider for each distinct text once, and remembers."""

    def __init__(self, named: str | None = None) -> None:
        self.failure: EmbeddingError | None = None
        """Why a text has no vector, if one has none."""
        self._named = named
        self._others: dict[str, DocumentVectors] = {}
        """Those of models that a schema names."""
        self._configured: Provider | EmbeddingError | None = None
        self._known: dict[int, _Known] = {}
        self._refused = 0
        self._is_down = False
        self._asks = True

    def under(self, model: str | None) -> DocumentVectors:
        """The vectors of the model that a schema names; without a name, of the configured one."""
        if model is None:
            return self
        if model not in self._others:
            other = self._others[model] = DocumentVectors(model)
            other._asks, other._is_down = self._asks, self._is_down
        return self._others[model]

    @property
    def unconfigured(self) -> EmbeddingNotConfigured | None:
        """Says which setting is missing, if there is no provider. Raises `InputError`."""
        provider = self._provider()
        return provider if isinstance(provider, EmbeddingNotConfigured) else None

    @property
    def model(self) -> str | None:
        """The named or configured model; None without either. Raises `InputError`."""
        if self._named is not None:
            return stored_name(self._named)
        provider = self._provider()
        return None if isinstance(provider, EmbeddingError) else provider.model

    def can_answer(self) -> bool:
        """Whether there is a provider; if not, `failure` says what is missing.

        Raises `EmbeddingModelUnavailable`.
        """
        provider = self._provider()
        if isinstance(provider, EmbeddingModelUnavailable):
            raise provider
        self.failure = self.unconfigured or self.failure
        return self.unconfigured is None

    def of(self, texts: pa.Array, dimension: int) -> pa.Array:
        """The vector of each text, null where the provider has none to give."""
        known = self._known.setdefault(dimension, _Known(dimension))
        wanted: list[str] = texts.to_pylist()
        asked = known.missing(wanted)
        if asked:
            known.add(asked, *self._ask(asked, dimension))
        return known.of(wanted)

    def remember(self, texts: pa.Array, vectors: pa.Array) -> None:
        """Take note of vectors that were computed by the configured model earlier."""
        dimension = vectors.type.list_size
        known = self._known.setdefault(dimension, _Known(dimension))
        # A text that stands there twice has the same vector twice.
        earlier = dict(zip(texts.to_pylist(), range(len(texts)), strict=True))
        new = known.missing(list(earlier))
        found = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
        known.add(new, found[[earlier[text] for text in new]], np.ones(len(new), np.bool_))

    def take_over(self, texts: pa.Array, vectors: pa.Array, failure: EmbeddingError | None) -> None:
        """What another process was told: a vector for each text, or null, and why there is none."""
        answered = vectors.is_valid()
        self.remember(texts.filter(answered), vectors.filter(answered))
        self.failure = failure or self.failure

    @contextmanager
    def only_known(self) -> Iterator[None]:
        """Within, a text whose vector is not known raises `TextsToEmbed` instead of being sent to
        the provider: the caller holds a lock."""
        self._set_asking(asks=False)
        try:
            yield
        finally:
            self._set_asking(asks=True)

    def _set_asking(self, *, asks: bool) -> None:
        for vectors in (self, *self._others.values()):
            vectors._asks = asks

    def stop(self) -> None:
        """Ask nobody any more: what is known by now is all there is."""
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

    def _ask(self, texts: list[str], dimension: int) -> tuple[Vectors, Mask]:
        """Vectors, and for which of the texts there is one."""
        found = np.zeros((len(texts), dimension), np.float32)
        answered = np.zeros(len(texts), np.bool_)
        provider = self._provider()
        if isinstance(provider, EmbeddingError):
            self.failure = provider
            return found, answered
        if not self._asks and not self._is_down:
            raise TextsToEmbed
        BEFORE_ASKING.hit(texts=len(texts))
        for start in range(0, len(texts), _BATCH):
            part = slice(start, start + _BATCH)
            self._fill(provider, texts[part], found[part], answered[part])
        return found, answered

    def _fill(self, provider: Provider, texts: list[str], found: Vectors, answered: Mask) -> None:
        """Ask for some texts. If the provider dislikes one, the others are asked for without it."""
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
                self._is_down = self._refused >= _REFUSED_IN_A_ROW
                return
            middle = len(texts) // 2
            for part in (slice(middle), slice(middle, None)):
                self._fill(provider, texts[part], found[part], answered[part])
        except EmbeddingFailed as failure:
            self.failure = failure
            self._is_down = True


class _Known:
    """Texts and their vectors, as they came. Nothing is copied when more are added."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._numbers: dict[str, int] = {}
        self._parts: list[tuple[Vectors, Mask]] = []
        self._starts: list[int] = []

    def missing(self, texts: list[str]) -> list[str]:
        """Those of the texts that are not known, each once."""
        return [text for text in dict.fromkeys(texts) if text not in self._numbers]

    def add(self, texts: list[str], vectors: Vectors, answered: Mask) -> None:
        """Take in texts that are not known, and for which of them there is a vector."""
        start = len(self._numbers)
        self._numbers.update(zip(texts, range(start, start + len(texts)), strict=True))
        self._parts.append((vectors, answered))
        self._starts.append(start)

    def of(self, texts: list[str]) -> pa.Array:
        """The vectors of known texts; null for those without one."""
        numbers = np.array([self._numbers[text] for text in texts], np.int64)
        found = np.zeros((len(texts), self._dimension), np.float32)
        answered = np.zeros(len(texts), np.bool_)
        parts = np.searchsorted(self._starts, numbers, side="right") - 1
        for part in np.unique(parts):
            here = parts == part
            places = numbers[here] - self._starts[part]
            vectors, has_vector = self._parts[part]
            found[here], answered[here] = vectors[places], has_vector[places]
        item = pa.field("item", pa.float32(), nullable=True)
        return pa.FixedSizeListArray.from_arrays(
            pa.array(found.reshape(-1)),
            type=pa.list_(item, self._dimension),
            mask=pa.array(~answered),
        )
