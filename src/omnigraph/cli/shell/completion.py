"""What may be written next at a place of an input: words of the language, the schema and the graph.

A completion looks at the text before the cursor only. The type of `$x` is found where the text binds
it, `$x: Person`. Tests: tests/unit/cli/test_shell.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from omnigraph.cli.shell.words import TYPE_NAMES, query_words

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog

_WRITTEN: Final = re.compile(r"[A-Za-z0-9_/.@~-]*$")
_WORD: Final = re.compile(r"\$?[A-Za-z0-9_]*$")
_BINDING: Final = re.compile(r"\$([a-z_][A-Za-z0-9_]*)\s*:\s*([A-Za-z_][A-Za-z0-9_]*)")
_VARIABLE: Final = re.compile(r"\$([a-z_][A-Za-z0-9_]*)")
_PROPERTY_OF: Final = re.compile(r"\$([a-z_][A-Za-z0-9_]*)\.[A-Za-z0-9_]*$")
_AFTER_VARIABLE: Final = re.compile(r"\$[a-z_][A-Za-z0-9_]*\s+[A-Za-z0-9_]*$")
_OPEN_TYPE: Final = re.compile(
    r"(?:(?::|\binsert|\bupdate|\bupsert)\s*)([A-Za-z_]\w*)\s*(?:set\s*)?\{([^{}]*)$"
)
_AFTER_STATEMENT: Final = re.compile(r"\b(?:insert|update|delete|upsert)\s+[A-Za-z0-9_]*$")
_AFTER_COLON: Final = re.compile(r":\s*[A-Za-z0-9_]*$")
_WHERE: Final = re.compile(
    r"\b(?:update|delete)\s+([A-Za-z_]\w*)\b[^{}]*(?:\{[^{}]*\})?[^{}]*\bwhere\b[^{}]*$"
)
_PARAMETERS: Final = re.compile(r"\bquery\s+\w+\s*\([^()]*$")
_REF_COMMANDS: Final = (".checkout", ".diff", ".log", ".at")


class Candidate(NamedTuple):
    """A word that may be written, and what it is."""

    text: str
    meaning: str


class Completions:
    """Finds candidates for a place in an input. What may change is asked for each time."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        refs: Callable[[], Iterable[str]],
        queries: Callable[[], Iterable[str]],
        commands: Iterable[str],
    ) -> None:
        self._catalog = catalog
        self._refs = refs
        self._queries = queries
        self._commands = tuple(commands)

    def at(self, before: str) -> tuple[str, list[Candidate]]:
        """What is written of the word at the cursor, and the candidates for it, best first."""
        line = before.rpartition("\n")[2]
        if before.lstrip().startswith(".") and "\n" not in before.strip():
            written = _found(_WRITTEN, line)
            candidates = self._of_command(line.lstrip())
        else:
            written = _found(_WORD, line)
            candidates = self._of_query(before)
        known = dict.fromkeys(one for one in candidates if one.text.startswith(written))
        return written, [one for one in known if one.text != written]

    def _of_command(self, line: str) -> Iterator[Candidate]:
        name, blank, _ = line.partition(" ")
        if not blank:
            yield from (Candidate(command, "command") for command in self._commands)
        elif name in _REF_COMMANDS:
            yield from (Candidate(ref, "branch or tag") for ref in self._refs())
        elif name == ".schema":
            yield from self._types(edges=True)
        elif name in (".run", ".explain", ".analyze"):
            yield from (Candidate(query, "query") for query in self._queries())

    def _of_query(self, before: str) -> Iterator[Candidate]:
        if match := _PROPERTY_OF.search(before):
            yield from self._properties(dict(_BINDING.findall(before)).get(match[1]))
        elif _PARAMETERS.search(before):
            yield from (Candidate(name, "type") for name in TYPE_NAMES)
        elif _AFTER_STATEMENT.search(before):
            yield from self._types(edges=True)
        elif match := _OPEN_TYPE.search(before):
            if not _AFTER_COLON.search(before):
                yield from self._properties(match[1])
                yield from self._endpoints(match[1])
            yield from _variables(before)
        elif _AFTER_COLON.search(before):
            yield from self._types(edges=False)
            yield from (Candidate(name, "type") for name in TYPE_NAMES)
        elif match := _WHERE.search(before):
            yield from self._properties(match[1])
            yield from self._endpoints(match[1])
            yield from _keywords()
        elif _AFTER_VARIABLE.search(before):
            yield from self._edges()
            yield from _keywords()
        else:
            yield from _variables(before)
            yield from _keywords()
            yield from self._edges()

    def _types(self, *, edges: bool) -> Iterator[Candidate]:
        catalog = self._catalog()
        yield from (Candidate(name, "node type") for name in catalog.nodes)
        if edges:
            yield from (Candidate(name, "edge type") for name in catalog.edges)

    def _edges(self) -> Iterator[Candidate]:
        for edge in self._catalog().edges.values():
            name = edge.name[:1].lower() + edge.name[1:]
            yield Candidate(name, f"{edge.from_type} -> {edge.to_type}")

    def _properties(self, type_name: str | None) -> Iterator[Candidate]:
        catalog = self._catalog()
        found = catalog.nodes.get(type_name or "") or catalog.edges.get(type_name or "")
        for declared in [found] if found is not None else catalog:
            for one in declared.properties.values():
                nullable = "?" if one.type.nullable else ""
                yield Candidate(one.name, f"{one.type.display.removesuffix('?')}{nullable}")

    def _endpoints(self, type_name: str) -> Iterator[Candidate]:
        if edge := self._catalog().edges.get(type_name):
            yield Candidate("from", f"id of a {edge.from_type}")
            yield Candidate("to", f"id of a {edge.to_type}")


def _keywords() -> Iterator[Candidate]:
    yield from (Candidate(word, "") for word in query_words())


def _variables(before: str) -> Iterator[Candidate]:
    written = _found(_WORD, before)
    for name in _VARIABLE.findall(before.removesuffix(written)):
        yield Candidate(f"${name}", "variable")


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return "" if match is None else match[0]
