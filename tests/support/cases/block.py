"""One step of a case file before its verb is understood, and the questions verbs ask of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.outcome import Json


class BadStep(ValueError):
    """A step that is written wrongly; whoever knows the file adds the place."""


@dataclass(frozen=True, slots=True)
class Block:
    """The words and options behind `---`, and the lines below."""

    line: int
    verb: str
    words: tuple[str, ...]
    options: Mapping[str, Json]
    body: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The lines below without the empty ones at their end."""
        return "\n".join(self.body).rstrip()

    def lines(self) -> Iterator[str]:
        return (line for line in self.body if line.strip())

    def json_lines(self) -> tuple[Json, ...]:
        """One JSON value per line. Raises `BadStep`."""
        values = []
        for line in self.lines():
            try:
                values.append(json.loads(line))
            except ValueError as error:
                raise BadStep(f"not JSON: {line.strip()} ({error})") from error
        return tuple(values)

    def take_words(self, *names: str) -> tuple[str, ...]:
        """As many words as there are names for. Raises `BadStep`."""
        if len(self.words) != len(names):
            wanted = " ".join(name.upper() for name in names) or "no words"
            raise BadStep(f"`{self.verb}` takes {wanted}, got {' '.join(self.words) or 'none'}")
        return self.words

    def allow_options(self, **kinds: type) -> dict[str, Any]:
        """The options, each known and of its kind. Raises `BadStep`."""
        for name, value in self.options.items():
            if name not in kinds:
                known = ", ".join(kinds) or "none"
                raise BadStep(f"`{self.verb}` has no option `{name}`, only {known}")
            if type(value) is not kinds[name]:
                raise BadStep(f"`{name}` takes a value of kind {kinds[name].__name__}")
        return dict(self.options)

    def refuse_body(self) -> None:
        if self.text:
            raise BadStep(f"`{self.verb}` takes no lines below it")

    def require_body(self) -> str:
        if not self.text:
            raise BadStep(f"`{self.verb}` needs text below it")
        return self.text
