"""Values that are stored or printed as JSON: structs whose fields are the keys, in their order.

A text that is not what a struct describes is refused by `msgspec.DecodeError`, a `ValueError` that
names the field.
Tests: tests/formats.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

S = TypeVar("S", bound=Struct)


class Document(Struct, frozen=True):
    """A value whose JSON form has its fields as keys."""

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return document


def json_line(value: object) -> str:
    """JSON on one line, with a space behind every comma and colon."""
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def json_lines(value: object) -> str:
    """Indented JSON that ends with a line break."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def struct_from(made: type[S], source: object, **values: Any) -> S:
    """A struct with the given values, and for its other fields those that the source has too."""
    others = (name for name in made.__struct_fields__ if name not in values)
    found = {name: getattr(source, name) for name in others if hasattr(source, name)}
    return made(**found, **values)


def prepare_structs() -> int:
    """Make all structs of loaded modules ready to be decoded by several threads; how many there are.

    msgspec describes a type at its first use. When two threads come first at once, the process ends with a
    memory error, so a process with threads describes its types before it starts them.
    """
    found = 0
    waiting: list[type[Struct]] = [Struct]
    while waiting:
        for made in waiting.pop().__subclasses__():
            waiting.append(made)
            if made.__module__.partition(".")[0] == "omnigraph":
                # A type whose fields name what only checkers import is never decoded.
                with suppress(NameError, TypeError):
                    msgspec.json.Decoder(made)
                    found += 1
    return found
