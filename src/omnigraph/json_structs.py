"""Values that are stored or printed as JSON: structs whose fields are the keys, in their order.

A text that is not what a struct describes is refused by `msgspec.DecodeError`, a `ValueError` that
names the field.
Tests: tests/formats.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


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


_described: set[object] = set()
_describing = Lock()


def described(kind: T) -> T:
    """The type itself, which several threads can decode at once from now on.

    msgspec describes a struct when it is decoded first. If two threads do so together, one of them may
    use a description that is not complete, and the process ends with a memory error.
    """
    if kind not in _described:
        with _describing:
            msgspec.json.Decoder(kind)
            _described.add(kind)
    return kind
