"""Places in a list of changes, as texts that callers keep and give back without looking inside."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import InputError
from omnigraph.versioning.commits import CommitId

_FEED: Final = "c1."
_FEED_PLACE: Final = re.compile(r"c1\.(\d{1,18})\.(\w+)")
_PLACE: Final = "p1."


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """The last commit that was told. Its id says of which graph, and of which branch of that name."""

    sequence: int
    commit: CommitId

    def __str__(self) -> str:
        return f"{_FEED}{self.sequence}.{self.commit}"


def is_cursor(text: str) -> bool:
    return text.startswith(_FEED)


def read_feed_place(text: str) -> FeedPlace:
    """Raises `InputError` for a text that is no such cursor."""
    match = _FEED_PLACE.fullmatch(text)
    if match is None:
        raise InputError(f"'{text}' is no cursor of a change feed")
    return FeedPlace(int(match[1]), CommitId(match[2]))


def write_place(place: tuple[str, str] | None) -> str | None:
    if place is None:
        return None
    text = json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()
    return _PLACE + base64.urlsafe_b64encode(text).decode().rstrip("=")


def read_place(text: str) -> tuple[str, str]:
    """Raises `InputError` for a text that is no such cursor."""
    body = text.removeprefix(_PLACE)
    try:
        match json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))):
            case [str(key), str(id)]:
                return key, id
    except ValueError:
        pass
    raise InputError(f"'{text}' is no cursor of a diff")
