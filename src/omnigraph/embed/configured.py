"""The provider that the environment asks for. It is asked at each use, not once at the start."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from omnigraph.embed.calls import CallSettings
from omnigraph.embed.gemini import GEMINI_URL, GeminiProvider
from omnigraph.embed.mock import MockProvider
from omnigraph.embed.openai import OPENAI_MODEL, OPENAI_URL, OpenAiProvider
from omnigraph.embed.provider import Provider
from omnigraph.errors import EmbeddingNotConfigured, InputError

_KEPT: Final = 8

PROVIDER: Final = "OMNIGRAPH_EMBED_PROVIDER"
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_USED: Final = (
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
    return _provider(tuple(sorted((n, os.environ[n]) for n in _USED if os.environ.get(n))))


@lru_cache(_KEPT)
def _provider(settings: tuple[tuple[str, str], ...]) -> Provider:
    """One provider per set of settings, so that connections are kept."""
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
    return GeminiProvider(key, found.get("OMNIGRAPH_GEMINI_BASE_URL", GEMINI_URL), _calls(found))


def _openai(found: Mapping[str, str]) -> Provider:
    key = _required_key(found, "OPENAI_API_KEY")
    url = found.get("OMNIGRAPH_EMBED_BASE_URL", OPENAI_URL)
    return OpenAiProvider(key, url, found.get("OMNIGRAPH_EMBED_MODEL", OPENAI_MODEL), _calls(found))


def _openai_compatible(found: Mapping[str, str]) -> Provider:
    """Any server; a local one often wants no key."""
    for setting in ("OMNIGRAPH_EMBED_BASE_URL", "OMNIGRAPH_EMBED_MODEL"):
        if setting not in found:
            raise EmbeddingNotConfigured(setting)
    return OpenAiProvider(
        _key(found, "OPENAI_API_KEY"),
        found["OMNIGRAPH_EMBED_BASE_URL"],
        found["OMNIGRAPH_EMBED_MODEL"],
        _calls(found),
    )


def _required_key(found: Mapping[str, str], name: str) -> str:
    key = _key(found, name)
    if key is None:
        raise EmbeddingNotConfigured(name)
    return key


def _key(found: Mapping[str, str], name: str) -> str | None:
    """A key, which travels in a header and so has no characters but plain ones."""
    key = found.get(name)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InputError(f"{name} holds characters that no key has; was it copied whole?")
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
    """A whole number above zero; anything else counts as not set."""
    text = found.get(name, "").strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None
