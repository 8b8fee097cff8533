"""The text of a document that people write, JSON or YAML, to plain values, with positions if wanted.

Of YAML's guesses only numbers, `true`, `false` and `null` are kept, and a key is always text: a
column called `on`, a key called `null` and a day like 2021-07-15 are what they look like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

_GUESSED: Final = ("null", "int", "float")


KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes from the top of a document to a value."""


class Place(NamedTuple):
    """Where a key or list item begins; line and column count from 1."""

    line: int
    column: int


class LocatedDocument(NamedTuple):
    """A document and where everything in it stands."""

    value: object
    places: Mapping[KeyPath, Place]


class DocumentError(ValueError):
    """A text that is not a valid document; the message says where, unless `place` does."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


class DuplicateKey(DocumentError):
    """A key that stands twice."""


class _KeyTwice(yaml.MarkedYAMLError):
    pass


class _Loader(yaml.SafeLoader):
    """Reads only what is safe, and guesses less."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(None, None, "a key must be text", key_node.start_mark)
            if key_node.value in found:
                problem = f"key '{key_node.value}' stands twice"
                raise _KeyTwice(None, None, problem, key_node.start_mark)
            found[key_node.value] = self.construct_object(value_node, deep=True)
        return found


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in _GUESSED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), list("tf"))


def parse_document(text: str) -> object:
    """The document in a text. Raises `DocumentError`."""
    with suppress(ValueError, RecursionError):
        # JSON may be indented with tabs, which YAML refuses.
        return json.loads(text)
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DocumentError(yaml_problem(error)) from None


def parse_located(text: str) -> LocatedDocument:
    """The YAML document in a text, with positions. Raises `DocumentError`, with a place if possible."""
    try:
        node = yaml.compose(text, _Loader)
        if node is None:
            return LocatedDocument(None, {})
        places: dict[KeyPath, Place] = {}
        _locate(node, (), places, set())
        return LocatedDocument(yaml.load(text, _Loader), places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = None if mark is None else Place(mark.line + 1, mark.column + 1)
        kind = DuplicateKey if isinstance(error, _KeyTwice) else DocumentError
        raise kind(error.problem or "it is not YAML", place) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DocumentError(yaml_problem(error)) from None


def _locate(node: yaml.Node, path: KeyPath, places: dict[KeyPath, Place], seen: set[int]) -> None:
    # A few lines of references to references would otherwise make billions of paths.
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            places[*path, key.value] = _place(key)
            _locate(value, (*path, key.value), places, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            places[*path, index] = _place(item)
            _locate(item, (*path, index), places, seen)


def _place(node: yaml.Node) -> Place:
    mark = node.start_mark
    return Place(mark.line + 1, mark.column + 1)


def yaml_problem(error: Exception) -> str:
    """What is wrong with a text that was to be YAML, in one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error).partition("\n")[0]
