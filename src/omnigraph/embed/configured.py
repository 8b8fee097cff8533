"""The embedding provider configured by environment variables, read on every call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from omnigraph.embed.providers import (
    GEMINI_MODEL,
    GEMINI_URL,
    OPENAI_MODEL,
    OPENAI_URL,
    CallSettings,
    GeminiProvider,
    MockProvider,
    OpenAiProvider,
    Provider,
    Task,
    Vectors,
)
from omnigraph.errors import EmbeddingModelUnavailable, EmbeddingNotConfigured, InputError

_MAX_PROVIDERS: Final = 8

PROVIDER: Final = "OMNIGRAPH_EMBED_PROVIDER"
_SCHEMA_MODEL: Final = "named model"
"""Key for the model that a schema names, beside the variables."""
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_VARIABLES: Final = (
    PROVIDER,
    "OMNIGRAPH_EMBEDDINGS_MOCK",
    "OMNIGRAPH_EMBED_BASE_URL",
    "OMNIGRAPH_EMBED_MODEL",
    "OMNIGRAPH_EMBED_TIMEOUT_MS",
    "OMNIGRAPH_EMBED_RETRY_ATTEMPTS",
    "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS",
    "OMNIGRAPH_GEMINI_BASE_URL",
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
)


def required_provider() -> Provider:
    """The provider the environment configures.

    Raises `EmbeddingNotConfigured`, which names the missing setting, or `InputError`.
    """
    return _provider(tuple(sorted(_settings().items())))


def provider_of(model: str) -> Provider:
    """The provider of a model that a schema names as `provider/model`.

    Raises `EmbeddingModelUnavailable` if only another provider is configured, and
    `EmbeddingNotConfigured` or `InputError` as `required_provider`.
    """
    active = required_or_none()
    if active is not None and active.model == stored_name(model):
        return active
    kind, _, name = model.partition("/")
    found = _settings()
    if found.get(PROVIDER, "").lower() == "openai-compatible" and kind == "openai":
        # The base URL belongs to another server.
        found.pop("OMNIGRAPH_EMBED_BASE_URL", None)
    found.pop("OMNIGRAPH_EMBEDDINGS_MOCK", None)
    missing = f"'{kind}' is not a provider that can be configured"
    # Mock vectors are only used if the environment asks for them.
    if name and kind in _MAKERS and kind != "mock":
        try:
            return _provider(tuple(sorted((found | {PROVIDER: kind, _SCHEMA_MODEL: name}).items())))
        except EmbeddingNotConfigured as unset:
            missing = f"{unset.setting} is not set"
    if active is None:
        return required_provider()  # Raises what is missing.
    raise EmbeddingModelUnavailable(model, active.model, missing)


def required_or_none() -> Provider | None:
    """The configured provider, if any. Raises `InputError`."""
    try:
        return required_provider()
    except EmbeddingNotConfigured:
        return None


def stored_name(model: str) -> str:
    """The name stored with vectors of a model; compatible servers count as `openai`."""
    kind, slash, name = model.partition("/")
    return f"openai{slash}{name}" if kind == "openai-compatible" else model


def _settings() -> dict[str, str]:
    return {n: os.environ[n] for n in _VARIABLES if os.environ.get(n)}


@lru_cache(_MAX_PROVIDERS)
def _provider(settings: tuple[tuple[str, str], ...]) -> Provider:
    """One provider per configuration, so that connections are reused."""
    found = dict(settings)
    if found.get("OMNIGRAPH_EMBEDDINGS_MOCK", "").lower() in _TRUE:
        return MockProvider()
    name = found.get(PROVIDER, "gemini").lower()
    if name not in _MAKERS:
        known = ", ".join(sorted(_MAKERS))
        raise InputError(f"{PROVIDER} is `{name}`; it can be one of: {known}")
    return _MAKERS[name](found)


def _gemini(found: Mapping[str, str]) -> Provider:
    key = _required_key(found, "GEMINI_API_KEY")
    url = found.get("OMNIGRAPH_GEMINI_BASE_URL", GEMINI_URL)
    return GeminiProvider(key, url, _calls(found), found.get(_SCHEMA_MODEL, GEMINI_MODEL))


def _openai(found: Mapping[str, str]) -> Provider:
    key = _required_key(found, "OPENAI_API_KEY")
    url = found.get("OMNIGRAPH_EMBED_BASE_URL", OPENAI_URL)
    model = found.get(_SCHEMA_MODEL) or found.get("OMNIGRAPH_EMBED_MODEL", OPENAI_MODEL)
    return OpenAiProvider(key, url, model, _calls(found))


def _openai_compatible(found: Mapping[str, str]) -> Provider:
    """Any compatible server; the key is optional."""
    model = found.get(_SCHEMA_MODEL) or found.get("OMNIGRAPH_EMBED_MODEL")
    if "OMNIGRAPH_EMBED_BASE_URL" not in found:
        raise EmbeddingNotConfigured("OMNIGRAPH_EMBED_BASE_URL")
    if model is None:
        raise EmbeddingNotConfigured("OMNIGRAPH_EMBED_MODEL")
    return OpenAiProvider(
        _key(found, "OPENAI_API_KEY"),
        found["OMNIGRAPH_EMBED_BASE_URL"],
        model,
        _calls(found),
    )


def _required_key(found: Mapping[str, str], name: str) -> str:
    key = _key(found, name)
    if key is None:
        raise EmbeddingNotConfigured(name)
    return key


def _key(found: Mapping[str, str], name: str) -> str | None:
    """An API key, which must be printable ASCII because it is sent in a header."""
    key = found.get(name)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InputError(f"{name} contains characters that are not valid in a key")
    return key


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, str]], Provider]]] = {
    "gemini": _gemini,
    "openai": _openai,
    "openai-compatible": _openai_compatible,
    "mock": lambda _: MockProvider(),
}


def _calls(found: Mapping[str, str]) -> CallSettings:
    default = CallSettings()
    timeout = _number(found, "OMNIGRAPH_EMBED_TIMEOUT_MS")
    attempts = _number(found, "OMNIGRAPH_EMBED_RETRY_ATTEMPTS")
    backoff = _number(found, "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS")
    return CallSettings(
        default.timeout_s if timeout is None else timeout / 1000,
        default.attempts if attempts is None else attempts,
        default.backoff_s if backoff is None else backoff / 1000,
    )


def _number(found: Mapping[str, str], name: str) -> int | None:
    """A positive whole number; anything else counts as not set."""
    text = found.get(name, "").strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


_MAX_QUERY_VECTORS: Final = 1024


def query_vector(text: str, dimension: int, model: str | None = None) -> Vectors:
    """The vector of a query text, by the model that a schema names or the configured one. Cached.

    Raises `EmbeddingNotConfigured`, `EmbeddingModelUnavailable` or `EmbeddingFailed`.
    """
    return _cached_vector(
        text, dimension, required_provider() if model is None else provider_of(model)
    )


@lru_cache(_MAX_QUERY_VECTORS)
def _cached_vector(text: str, dimension: int, provider: Provider) -> Vectors:
    vector: Vectors = provider.embed([text], Task.QUERY, dimension)[0]
    vector.flags.writeable = False
    return vector
