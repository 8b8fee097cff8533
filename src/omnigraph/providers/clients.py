"""Embedding providers: Gemini, OpenAI and compatible servers, and a mock without a model."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.diagnostics import counted
from omnigraph.errors import EmbeddingFailed, EmbeddingRefused

if TYPE_CHECKING:
    import httpx


Vectors = npt.NDArray[np.float32]
"""One row per text."""

_MIN_NORM: Final = float(np.finfo(np.float32).eps)


class Task(Enum):
    """What a text is embedded for; some models treat queries and documents differently."""

    QUERY = "RETRIEVAL_QUERY"
    DOCUMENT = "RETRIEVAL_DOCUMENT"


class Provider(Hashable, Protocol):
    """Turns texts into vectors of length one."""

    @property
    def model(self) -> str:
        """The name stored with every vector, as `provider/model`."""
        ...

    def embed(self, texts: Sequence[str], task: Task, dimension: int) -> Vectors: ...


def normalize(vectors: Vectors) -> Vectors:
    """Vectors scaled to length one. A vector of nearly no length is unchanged."""
    norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1, keepdims=True))
    norms[norms <= _MIN_NORM] = 1.0
    return np.asarray(vectors / norms.astype(np.float32), np.float32)


_MAX_DOUBLINGS: Final = 10
_TOO_MANY_REQUESTS: Final = 429
_REJECTED_STATUSES: Final = (400, 413, 422)
"""Statuses of requests that would fail again."""
_MAX_RETRY_AFTER_SECONDS: Final = 60.0
"""The longest `Retry-After` to honour; a provider that asks for more counts as down."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Timeout, attempts, backoff and deadline of requests."""

    timeout_s: float = 30.0
    attempts: int = 4
    backoff_s: float = 0.2
    deadline_s: float = 60.0
    """The longest time that all attempts may take together."""


class Pauses(Protocol):
    """How long a provider wants no request, known to all processes that send it some."""

    def pause(self, seconds: float) -> None: ...

    def wait(self) -> None: ...


_pauses: ContextVar[Pauses | None] = ContextVar("_pauses", default=None)


@contextmanager
def pausing(pauses: Pauses) -> Iterator[None]:
    """A while in which requests of this thread share their pauses with others."""
    token = _pauses.set(pauses)
    try:
        yield
    finally:
        _pauses.reset(token)


class Calls:
    """Sends JSON requests to one provider, with retries. Thread-safe."""

    def __init__(self, headers: Mapping[str, str], settings: CallSettings) -> None:
        import httpx

        self._settings = settings
        self._client = httpx.Client(headers=dict(headers), timeout=settings.timeout_s)

    def post(self, url: str, body: Mapping[str, object]) -> Any:
        """The response to a request. Raises `EmbeddingFailed` after the last attempt."""
        import httpx

        settings = self._settings
        pauses = _pauses.get()
        if pauses is not None:
            pauses.wait()
        end = time.monotonic() + settings.deadline_s
        for attempt in range(1, settings.attempts + 1):
            retry_after = 0.0
            timeout_s = min(settings.timeout_s, end - time.monotonic())
            try:
                answer = self._client.post(url, json=body, timeout=timeout_s)
            except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
                raise EmbeddingFailed(f"{url} is not a valid server address: {error}") from error
            except httpx.HTTPError as error:
                failure = f"no answer from {url}: {_reason(error, timeout_s)}"
            else:
                if answer.is_success:
                    return _json(answer)
                failure = f"{url} answered {answer.status_code}: {_message(answer)}"
                if answer.status_code in _REJECTED_STATUSES:
                    raise EmbeddingRefused(failure)
                if answer.status_code != _TOO_MANY_REQUESTS and not answer.is_server_error:
                    raise EmbeddingFailed(failure)
                retry_after = _retry_after(answer)
                if pauses is not None and retry_after:
                    pauses.pause(retry_after)
            if attempt < settings.attempts:
                delay = settings.backoff_s * 2 ** min(attempt - 1, _MAX_DOUBLINGS)
                delay = max(delay, retry_after)
                if time.monotonic() + delay >= end:
                    shown = f"{settings.deadline_s:g} s"
                    raise EmbeddingFailed(
                        f"{failure} (asked {counted(attempt, 'time')}; the deadline is {shown})"
                    )
                time.sleep(delay)
        raise EmbeddingFailed(f"{failure} (asked {settings.attempts} times)")


def _reason(error: httpx.HTTPError, timeout_s: float) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"no response within {timeout_s:g} s"
    return str(error) or type(error).__name__


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise EmbeddingFailed(f"{answer.url} did not answer in JSON: {error}") from error


def _message(answer: httpx.Response) -> str:
    """The error message of a response."""
    try:
        error = answer.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase or answer.text[:200]


def _retry_after(answer: httpx.Response) -> float:
    """Seconds to wait before a retry, if the provider names them."""
    try:
        return min(max(float(answer.headers.get("retry-after", 0)), 0.0), _MAX_RETRY_AFTER_SECONDS)
    except ValueError:
        return 0.0


def vector_of(values: Any, dimension: int, model: str) -> Vectors:
    """Check one vector of a response. Raises `EmbeddingFailed`."""
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
    if not vector.any():
        raise EmbeddingFailed(f"{model} answered with a vector of zeros")
    return vector


GEMINI_MODEL: Final = "gemini-embedding-2-preview"
GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta"

_GEMINI_THREADS: Final = 8


class GeminiProvider:
    """Google Gemini: one text per request, several requests in parallel."""

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
        with ThreadPoolExecutor(min(_GEMINI_THREADS, len(texts))) as pool:
            # Threads have no context of their own, which the pauses of a job are in.
            contexts = [copy_context() for _ in texts]
            asked = pool.map(
                lambda c, text: c.run(self._one, text, task, dimension), contexts, texts
            )
            vectors = list(asked)
        return normalize(np.stack(vectors))

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


OPENAI_MODEL: Final = "text-embedding-3-large"
OPENAI_URL: Final = "https://api.openai.com/v1"
OPENROUTER_MODEL: Final = "openai/text-embedding-3-large"
OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"

_OPENAI_BATCH_TEXTS: Final = 128


class OpenAiProvider:
    """OpenAI and compatible servers: a batch of texts per request, queries and documents alike."""

    def __init__(self, key: str | None, base_url: str, model: str, settings: CallSettings) -> None:
        self.model = f"openai/{model}"
        self._name = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._calls = Calls({} if key is None else {"authorization": f"Bearer {key}"}, settings)

    def embed(self, texts: Sequence[str], task: Task, dimension: int) -> Vectors:
        found = np.empty((len(texts), dimension), np.float32)
        for start in range(0, len(texts), _OPENAI_BATCH_TEXTS):
            batch = list(texts[start : start + _OPENAI_BATCH_TEXTS])
            found[start : start + len(batch)] = self._batch(batch, dimension)
        return normalize(found)

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


_OFFSET_BASIS: Final = 14695981039346656037
_PRIME: Final = 1099511628211
_WORD: Final = 2**64


class MockProvider:
    """Deterministic vectors without a model, for tests and demos. Similar texts are not near."""

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
        return normalize(vectors)


def _hash(text: str) -> int:
    """64-bit FNV-1a."""
    value = _OFFSET_BASIS
    for byte in text.encode():
        value = (value ^ byte) * _PRIME % _WORD
    return value
