"""Bearer tokens: read once when the server starts, kept as hashes, compared in constant time.

The plain tokens are forgotten after hashing and removed from the environment of the process.
Tests: tests/server/test_start.py.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Final

from omnigraph.errors import InputError, ServerConfigError
from omnigraph.graph.gate import check_actor
from omnigraph.json_text import JsonError, parse_json

ONE_TOKEN: Final = "OMNIGRAPH_SERVER_BEARER_TOKEN"
TOKENS_FILE: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
AWS_SECRET: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
DEFAULT_ACTOR: Final = "default"
SCHEME: Final = "Bearer "


class Tokens:
    """The hashes of all tokens, each with its actor."""

    def __init__(self, by_actor: dict[str, str]) -> None:
        self._hashes = tuple((_hash(token), actor) for actor, token in by_actor.items())

    def __len__(self) -> int:
        return len(self._hashes)

    def __repr__(self) -> str:
        return f"<{len(self)} tokens>"

    @property
    def actors(self) -> tuple[str, ...]:
        return tuple(actor for _, actor in self._hashes)

    def actor_of(self, token: str) -> str | None:
        """The actor of a token, or None. Every hash is compared, so the time tells nothing."""
        presented, found = _hash(token), None
        for known, actor in self._hashes:
            if hmac.compare_digest(known, presented):
                found = actor
        return found


def read_tokens(environment: MutableMapping[str, str]) -> Tokens:
    """Read the tokens of all sources and remove them from the environment.

    Raises `ServerConfigError`, which names the variable and never a token.
    """
    if environment.get(AWS_SECRET, "").strip():
        problem = "AWS Secrets Manager is not supported by this installation"
        raise ServerConfigError(
            f"{AWS_SECRET} is set, but {problem}; use {TOKENS_FILE} or {TOKENS_JSON}"
        )
    found: dict[str, str] = {}
    for source, actor, token in _entries(environment):
        name, secret = actor.strip(), token.strip()
        if not name:
            raise ServerConfigError(f"{source} has a blank actor; name every actor")
        if not secret:
            raise ServerConfigError(f"{source} has a blank token for actor '{name}'")
        if name in found:
            raise ServerConfigError(f"actor '{name}' has more than one token; give it one")
        try:
            check_actor(name)
        except InputError as error:
            raise ServerConfigError(f"{source}: {error}") from None
        for other, known in found.items():
            if hmac.compare_digest(known.encode(), secret.encode()):
                problem = f"actors '{other}' and '{name}' have the same token"
                raise ServerConfigError(f"{problem}; give each actor its own")
        found[name] = secret
    for variable in (ONE_TOKEN, TOKENS_JSON):
        environment.pop(variable, None)
    return Tokens(found)


def _entries(environment: MutableMapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Source, actor and token, as they are written."""
    if ONE_TOKEN in environment:
        yield ONE_TOKEN, DEFAULT_ACTOR, environment[ONE_TOKEN]
    if path := environment.get(TOKENS_FILE, "").strip():
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ServerConfigError(f"{TOKENS_FILE}: cannot read '{path}': {reason}") from None
        yield from _from_json(TOKENS_FILE, text)
    elif text := environment.get(TOKENS_JSON, ""):
        yield from _from_json(TOKENS_JSON, text)


def _from_json(source: str, text: str) -> Iterator[tuple[str, str, str]]:
    try:
        document = parse_json(text)
    except JsonError as error:
        # The message of a repeated key shows the key, which is an actor, never a value.
        raise ServerConfigError(f"{source} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise ServerConfigError(f"{source} must be a JSON object of actors and their tokens")
    for actor, token in document.items():
        if not isinstance(token, str):
            raise ServerConfigError(f"{source}: the token of actor '{actor}' must be text")
        yield source, actor, token


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
