"""Reads one YAML document of a policy, or of its cases, and collects everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Final, TypeVar

from omnigraph.diagnostics import shortened, with_hint
from omnigraph.documents import DocumentError, parse_document
from omnigraph.errors import PolicyInvalid

VERSION: Final = 1

E = TypeVar("E", bound=Enum)


class DocumentReader:
    """Reads one document and collects what is wrong with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._problems: list[str] = []
        self.unknown: list[str] = []

    def problem(self, text: str) -> None:
        self._problems.append(text)

    def finish(self) -> None:
        """Raises `PolicyInvalid` if there was a problem."""
        if self._problems:
            raise PolicyInvalid(self._name, self._problems)

    def document(self, text: str, known: Collection[str]) -> Mapping[str, object]:
        """The keys of a document of the supported version."""
        try:
            value = parse_document(text)
        except DocumentError as error:
            raise PolicyInvalid(self._name, [str(error)]) from None
        if not isinstance(value, dict):
            raise PolicyInvalid(self._name, ["the document must have keys and values"])
        found = self.mapping("", value, known)
        version = found.get("version")
        if version != VERSION or isinstance(version, bool):
            said = (
                "is missing" if version is None else f"{shortened(repr(version))} is not supported"
            )
            self.problem(f"version {said}; write `version: {VERSION}`")
        return found

    def mapping(
        self, place: str, value: object, known: Collection[str] | None = None
    ) -> Mapping[str, object]:
        """Keys and values; none is the same as an empty one. Unknown keys are noted."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problem(f"{place} must have keys and values")
            return {}
        if known is not None:
            prefix = f"{place}." if place else ""
            self.unknown += (f"{prefix}{key}" for key in value if key not in known)
        return value

    def sequence(self, place: str, value: object) -> Sequence[object]:
        """A list; none is the same as an empty one."""
        if value is None:
            return ()
        if not isinstance(value, list):
            self.problem(f"{place} must be a list")
            return ()
        return value

    def text(self, place: str, value: object) -> str:
        """A text that is not blank, without spaces around it."""
        if value is None:
            self.problem(f"{place} is missing")
        elif not isinstance(value, str):
            self.problem(f"{place} must be text; put it in quotes")
        elif not value.strip():
            self.problem(f"{place} must not be blank")
        else:
            return value.strip()
        return ""

    def names(self, place: str, value: object, what: str) -> tuple[str, ...]:
        """A list of names, each once."""
        listed = self.sequence(place, value)
        found = (self.text(f"{place}[{at}]: {what}", name) for at, name in enumerate(listed))
        return tuple(dict.fromkeys(name for name in found if name))

    def choice(self, place: str, value: object, words: type[E], what: str) -> E | None:
        """One of the words of an enumeration."""
        known = {word.value: word for word in words}
        if isinstance(value, str) and value in known:
            return known[value]
        said = f"{place}: unknown {what} {shortened(repr(value))}"
        if isinstance(value, str):
            said = with_hint(said, value, known)
        self.problem(f"{said}; use one of {', '.join(known)}")
        return None
