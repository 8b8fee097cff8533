"""Calls of a provider over HTTP: repeated when that may help, and errors in plain words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import EmbeddingFailed, EmbeddingRefused

if TYPE_CHECKING:
    import httpx

_LAST_DOUBLING: Final = 10
_TOO_MANY: Final = 429
_UNWANTED: Final = (400, 413, 422)
"""How servers say that a request is understood and will never be answered."""
_LONGEST_ADVICE: Final = 60.0
"""Seconds of `Retry-After` that are followed; a provider that asks for more is as good as down."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How long to wait for an answer, and how often to ask."""

    timeout_s: float = 30.0
    attempts: int = 4
    backoff_s: float = 0.2


class Calls:
    """Sends JSON to one provider. Can be used from several threads."""

    def __init__(self, headers: Mapping[str, str], settings: CallSettings) -> None:
        import httpx

        self._settings = settings
        self._client = httpx.Client(headers=dict(headers), timeout=settings.timeout_s)

    def post(self, url: str, body: Mapping[str, object]) -> Any:
        """The answer to a request. Raises `EmbeddingFailed` once repeating has not helped."""
        import httpx

        settings = self._settings
        for attempt in range(1, settings.attempts + 1):
            advice = 0.0
            try:
                answer = self._client.post(url, json=body)
            except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
                raise EmbeddingFailed(f"{url} is no address of a server: {error}") from error
            except httpx.HTTPError as error:
                failure = f"no answer from {url}: {_reason(error, settings.timeout_s)}"
            else:
                if answer.is_success:
                    return _json(answer)
                failure = f"{url} answered {answer.status_code}: {_message(answer)}"
                if answer.status_code in _UNWANTED:
                    raise EmbeddingRefused(failure)
                if answer.status_code != _TOO_MANY and not answer.is_server_error:
                    raise EmbeddingFailed(failure)
                advice = _advice(answer)
            if attempt < settings.attempts:
                delay = settings.backoff_s * 2 ** min(attempt - 1, _LAST_DOUBLING)
                time.sleep(max(delay, advice))
        raise EmbeddingFailed(f"{failure} (asked {settings.attempts} times)")


def _reason(error: httpx.HTTPError, timeout_s: float) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"nothing within {timeout_s:g} s"
    return str(error) or type(error).__name__


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise EmbeddingFailed(f"{answer.url} did not answer in JSON: {error}") from error


def _message(answer: httpx.Response) -> str:
    """What the provider says about its refusal."""
    try:
        error = answer.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase or answer.text[:200]


def _advice(answer: httpx.Response) -> float:
    """Seconds a provider asks to wait, if it says so in seconds."""
    try:
        return min(max(float(answer.headers.get("retry-after", 0)), 0.0), _LONGEST_ADVICE)
    except ValueError:
        return 0.0
