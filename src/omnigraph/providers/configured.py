"""The embedding provider configured by environment variables, read on every call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from omnigraph.errors import EmbeddingModelUnavailable, EmbeddingNotConfigured, InputError
from omnigraph.providers.clients import (
    GEMINI_MODEL,
    GEMINI_URL,
    OPENAI_MODEL,
    OPENAI_URL,
    OPENROUTER_MODEL,
    OPENROUTER_URL,
    CallSettings,
    GeminiProvider,
    MockProvider,
    OpenAiProvider,
    Provider,
    Task,
    Vectors,
)
from omnigraph.settings import Settings, read_settings

_MAX_PROVIDERS: Final = 8


def required_provider() -> Provider:
    """The provider the environment configures.

    Raises `EmbeddingNotConfigured`, which names the missing setting, or `InputError`.
    """
    return _provider(read_settings())


def provider_of(model: str) -> Provider:
    """The provider of a model that a schema names as `provider/model`.

    Raises `EmbeddingModelUnavailable` if only another provider is configured, and
    `EmbeddingNotConfigured` or `InputError` as `required_provider`.
    """
    active = required_or_none()
    if active is not None and active.model == stored_name(model):
        return active
    kind, _, name = model.partition("/")
    settings = read_settings()
    if _chosen(settings) == "openai-compatible" and kind == "openai":
        # That address is the one of another server.
        settings = replace(settings, embed_base_url=None)
    missing = f"'{kind}' is not a provider that can be configured"
    # Mock vectors are only used if the environment asks for them.
    if name and kind in _MAKERS and kind != "mock":
        try:
            return _provider(replace(settings, embeddings_mock=False, embed_provider=kind), name)
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


@lru_cache(_MAX_PROVIDERS)
def _provider(settings: Settings, named: str | None = None) -> Provider:
    """One provider per set of settings, so that connections are kept. A schema may name the model."""
    if settings.embeddings_mock:
        return MockProvider()
    name = _chosen(settings)
    if name not in _MAKERS:
        known = ", ".join(sorted(_MAKERS))
        raise InputError(f"OMNIGRAPH_EMBED_PROVIDER is `{name}`; it can be one of: {known}")
    return _MAKERS[name](settings, named)


def _chosen(settings: Settings) -> str:
    """The provider that is named, or else the first that has a key."""
    if settings.embed_provider is not None:
        return settings.embed_provider.lower()
    if settings.gemini_api_key is None:
        if settings.openrouter_api_key is not None:
            return "openai-compatible"
        if settings.openai_api_key is not None:
            return "openai"
    return "gemini"


def _gemini(settings: Settings, named: str | None) -> Provider:
    key = _required_key(settings.gemini_api_key, "GEMINI_API_KEY")
    url = settings.gemini_base_url or GEMINI_URL
    return GeminiProvider(key, url, _calls(settings), named or GEMINI_MODEL)


def _openai(settings: Settings, named: str | None) -> Provider:
    key = _required_key(settings.openai_api_key, "OPENAI_API_KEY")
    model = named or settings.embed_model or OPENAI_MODEL
    return OpenAiProvider(key, settings.embed_base_url or OPENAI_URL, model, _calls(settings))


def _openai_compatible(settings: Settings, named: str | None) -> Provider:
    """OpenRouter, or any other server; a local one often wants no key."""
    model = named or settings.embed_model
    key = _key(settings.openrouter_api_key, "OPENROUTER_API_KEY")
    if settings.embed_base_url is None:
        if key is None:
            raise EmbeddingNotConfigured("OMNIGRAPH_EMBED_BASE_URL")
        return OpenAiProvider(key, OPENROUTER_URL, model or OPENROUTER_MODEL, _calls(settings))
    if model is None:
        raise EmbeddingNotConfigured("OMNIGRAPH_EMBED_MODEL")
    key = key or _key(settings.openai_api_key, "OPENAI_API_KEY")
    return OpenAiProvider(key, settings.embed_base_url, model, _calls(settings))


def _required_key(given: str | None, name: str) -> str:
    key = _key(given, name)
    if key is None:
        raise EmbeddingNotConfigured(name)
    return key


def _key(key: str | None, name: str) -> str | None:
    """A key, which travels in a header and so has no characters but plain ones."""
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InputError(f"{name} contains characters that are not valid in a key")
    return key


_MAKERS: Final[Mapping[str, Callable[[Settings, str | None], Provider]]] = {
    "gemini": _gemini,
    "openai": _openai,
    "openai-compatible": _openai_compatible,
    "mock": lambda *_: MockProvider(),
}


def _calls(settings: Settings) -> CallSettings:
    return CallSettings(
        settings.embed_timeout_ms / 1000,
        settings.embed_retry_attempts,
        settings.embed_retry_backoff_ms / 1000,
        settings.embed_deadline_ms / 1000 or math.inf,
    )


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
