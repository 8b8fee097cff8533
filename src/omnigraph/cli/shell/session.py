"""What the shell does with an input: runs queries and dot commands on a graph that stays open.

Knows no terminal: input is text, output goes to a stream, so that piped input and tests use it as the
prompt does. A query may be entered whole, `query q() { … }`, or as its body alone, `match … return …`.
Tests: tests/unit/cli/test_shell.py, tests/surfaces/test_shell.py.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from omnigraph.cli.exits import Style
from omnigraph.cli.output.results import (
    FORMATS,
    Format,
    TableLayout,
    write_explanation,
    write_result,
)
from omnigraph.diagnostics import Diagnostic, counted, did_you_mean, with_hint
from omnigraph.errors import InputError, LanguageError, OmnigraphError, UsageError
from omnigraph.language.query.parse import parse_query_tokens
from omnigraph.language.syntax import Source
from omnigraph.language.tokens import BAD, SYMBOL, WORD, Tokens, tokenize

if TYPE_CHECKING:
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.catalog.model import Catalog
    from omnigraph.language.query.ast import Query
    from omnigraph.read.result import Result

MAX_SHOWN_ROWS: Final = 200
"""Of a longer result a table shows its beginning; every other format shows all rows."""

_INPUT: Final = "<shell>"
_ADHOC: Final = "shell"
_HEADER: Final = f"query {_ADHOC}() {{\n"
_OPENING, _CLOSING = frozenset("{(["), frozenset("})]")


class EndOfSession(Exception):
    """The person wants to leave."""


class Command(NamedTuple):
    """A dot command."""

    arguments: str
    help: str
    run: Callable[[ShellSession, list[str]], None]


class ShellSession:
    """One open graph, the branch that is worked on, and the queries that were entered or read."""

    def __init__(
        self,
        graph: GraphProtocol,
        out: TextIO,
        *,
        layout: TableLayout | None = None,
        format: Format = "table",
        timing: bool = True,
    ) -> None:
        self.graph = graph
        self.out = out
        self.format: Format = format
        self.timing = timing
        self.queries: dict[str, str] = {}
        self._layout = layout or TableLayout()
        self._style = Style.of(out)

    # -- what a prompt asks -----------------------------------------------------------------

    @property
    def branch(self) -> str:
        return self.graph.branch

    def catalog(self) -> Catalog:
        return self.graph.schema.catalog

    def refs(self) -> Iterator[str]:
        yield from self.graph.branches
        yield from _names_of_tags(self.graph)

    def problem(self, text: str) -> str | None:
        """What is wrong with a complete input, in one line; None if nothing is, or it cannot be told."""
        if not text.strip() or text.lstrip().startswith(".") or not is_complete(text):
            return None
        from omnigraph.plan.compile import compile_checked

        try:
            source, queries, _ = _parsed(text)
            for query in queries:
                compile_checked(source, self.catalog(), query)
        except LanguageError as error:
            first = _shifted(error.diagnostic, is_body(text))
            return f"{first.position.line}:{first.position.column} {first.message}"
        except OmnigraphError:
            return None
        return None

    # -- input ------------------------------------------------------------------------------

    def enter(self, text: str) -> bool:
        """Run an input; False if it failed, which has been printed. Raises `EndOfSession`."""
        text = text.strip()
        if not text:
            return True
        started = time.perf_counter()
        try:
            if text.startswith("."):
                self._command(text)
                return True
            self._run_text(text)
        except LanguageError as error:
            for one in error.diagnostics:
                self._fail(_shifted(one, is_body(text)).render())
            return False
        except OmnigraphError as error:
            from omnigraph.cli.exits import hint_for

            hint = hint_for(error)
            self._fail(f"error[{error.code}]: {error}" + (f"\n   hint: {hint}" if hint else ""))
            return False
        if self.timing:
            self.out.write(f"({(time.perf_counter() - started) * 1000:.1f} ms)\n")
        return True

    def _fail(self, text: str) -> None:
        headline, newline, rest = text.partition("\n")
        self.out.write(f"{self._style.error(headline)}{newline}{rest}\n")

    def _run_text(self, text: str) -> None:
        if (words := _statement_words(text)) is not None:
            self._run_statement(text, words)
            return
        source, queries, is_adhoc = _parsed(text)
        if not is_adhoc:
            for query in queries:
                self.queries[query.name.text] = source.text
        if len(queries) > 1:
            names = ", ".join(query.name.text for query in queries)
            self.out.write(f"defined {names}; `.run NAME` runs one\n")
            return
        [query] = queries
        if query.parameters:
            wanted = " ".join(f"{one.name}=…" for one in query.parameters)
            self.out.write(f"defined {query.name}; run it with `.run {query.name} {wanted}`\n")
            return
        self.run_query(source.text, query, {})

    def _run_statement(self, text: str, words: tuple[str, ...]) -> None:
        """Run a text that begins with a statement or a setting."""
        if words[0] == "branch" and words[1:2] != ("list",):
            done = self.graph.mutate(text)
            self.out.write(f"{done.query_name}: {done.branch}\n")
            return
        self._show(self.graph.query(text))

    def run_query(self, text: str, query: Query, params: Mapping[str, object]) -> None:
        """Run one query of a source text and print what it returns or did."""
        name = query.name.text
        if query.is_mutation:
            done = self.graph.mutate(text + "\n", params, name=name)
            nodes, edges = (
                counted(done.affected_nodes, "node"),
                counted(done.affected_edges, "edge"),
            )
            self.out.write(f"changed {done.branch}: {nodes}, {edges}\n")
            if done.receipt.graph_commit_id is not None:
                self.out.write(f"commit {done.receipt.graph_commit_id}\n")
            return
        self._show(self.graph.query(text + "\n", params, name=name))

    def _show(self, result: Result) -> None:
        left_out = len(result) - MAX_SHOWN_ROWS
        write_result(
            result, self.format, self.out, self._layout, self._style, table_rows=MAX_SHOWN_ROWS
        )
        if self.format == "table" and left_out > 0:
            self.out.write(f"… {left_out:,} more rows; `.format csv` shows all\n")

    # -- dot commands -----------------------------------------------------------------------

    def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            hint = did_you_mean(name, COMMANDS) or "`.help` lists the commands"
            raise UsageError(f"unknown command '{name}'; {hint}")
        try:
            words = [rest.strip()] if name in _TAKE_TEXT and rest.strip() else shlex.split(rest)
        except ValueError as error:
            raise InputError(f"{name}: {error}".lower()) from None
        command.run(self, words)

    def help(self, words: list[str]) -> None:
        width = max(len(f"{name} {one.arguments}") for name, one in COMMANDS.items())
        for name, one in COMMANDS.items():
            self.out.write(f"{f'{name} {one.arguments}':<{width}}  {one.help}\n")
        self.out.write(
            "\nEverything else is a query, whole or its body alone:\n"
            "    match { $p: Person } return { $p.name } limit 3\n"
            '    insert Person { name: "Ada" }\n'
        )

    def schema(self, words: list[str]) -> None:
        if not words:
            self.out.write(self.graph.schema.source.rstrip("\n") + "\n")
            return
        [name] = _exactly(words, ".schema", "[TYPE]", 1)
        types = {one.name: one for one in self.catalog()}
        if name not in types:
            raise InputError(with_hint(f"unknown type '{name}'", name, types))
        declared = types[name]
        ends = getattr(declared, "from_type", None)
        head = f"node {name}" if ends is None else f"edge {name}: {ends} -> {declared.to_type}"  # type: ignore[union-attr]
        self.out.write(head + "\n")
        for one in declared.properties.values():
            notes = "".join(f" @{annotation.name}" for annotation in one.annotations)
            self.out.write(f"    {one.name}: {one.type.display}{notes}\n")

    def branches(self, words: list[str]) -> None:
        for name in self.graph.branches:
            self.out.write(f"{'*' if name == self.branch else ' '} {name}\n")

    def checkout(self, words: list[str]) -> None:
        [name] = _exactly(words, ".checkout", "BRANCH", 1)
        self.graph = self.graph.checkout(name)
        self.out.write(f"on branch {name}\n")

    def explain(self, words: list[str], *, analyze: bool = False) -> None:
        [text] = _exactly(words, ".analyze" if analyze else ".explain", "QUERY", 1)
        source, query, params = self._named(text) or self._only(text)
        found = self.graph.explain(
            source + "\n", params, name=query.name.text, analyze=analyze
        ).to_json()
        write_explanation(found, self.out, as_json=False)

    def diff(self, words: list[str]) -> None:
        from omnigraph.cli.commands.history import diff_lines

        if len(words) not in (1, 2):
            raise InputError(".diff takes FROM and, without TO up to this branch: .diff FROM [TO]")
        after = words[1] if len(words) == 2 else self.branch
        found = self.graph.diff(words[0], after)
        for line in diff_lines(found, rows=True, full=False, stat=False, limit=MAX_SHOWN_ROWS):
            self.out.write(line + "\n")

    def log(self, words: list[str]) -> None:
        from omnigraph.cli.commands.history import log_lines

        limit = int(words[0]) if words and words[0].isdigit() else 10
        commits = [one.to_json() for one in self.graph.log(self.branch, limit=limit)]
        for line in log_lines(commits, None, oneline=False):
            self.out.write(line + "\n")

    def run(self, words: list[str]) -> None:
        if not words:
            raise InputError(f".run takes NAME [PARAMETER=VALUE …]; known: {self._known()}")
        started = time.perf_counter()
        text, query, params = self._found(words)
        self.run_query(text, query, params)
        if self.timing:
            self.out.write(f"({(time.perf_counter() - started) * 1000:.1f} ms)\n")

    def read(self, words: list[str]) -> None:
        from omnigraph.read.source_files import read_source

        [path] = _exactly(words, ".read", "FILE", 1)
        source = read_source(Path(path))
        queries = parse_query_tokens(tokenize(source)).queries
        self.queries |= {query.name.text: source.text for query in queries}
        self.out.write(f"read {counted(len(queries), 'query', 'queries')}: {self._known()}\n")

    def list_queries(self, words: list[str]) -> None:
        self.out.write(self._known() + "\n")

    def set_format(self, words: list[str]) -> None:
        [name] = _exactly(words, ".format", "|".join(FORMATS), 1)
        if name not in FORMATS:
            raise InputError(with_hint(f"unknown format '{name}'", name, FORMATS))
        self.format = name

    def set_timing(self, words: list[str]) -> None:
        if words not in (["on"], ["off"]):
            raise InputError(".timing takes on or off")
        self.timing = words == ["on"]

    def quit(self, words: list[str]) -> None:
        raise EndOfSession

    def _known(self) -> str:
        return ", ".join(self.queries) or "no queries; `.read FILE` reads some"

    def _found(self, words: list[str]) -> tuple[str, Query, dict[str, object]]:
        name, *given = words
        if name not in self.queries:
            raise InputError(with_hint(f"unknown query '{name}'", name, self.queries))
        text = self.queries[name]
        queries = parse_query_tokens(tokenize(Source(_INPUT, text))).queries
        query = next(one for one in queries if one.name.text == name)
        return text, query, _bound(query, given)

    def _named(self, text: str) -> tuple[str, Query, dict[str, object]] | None:
        words = shlex.split(text) if "{" not in text else []
        return self._found(words) if words and words[0] in self.queries else None

    def _only(self, text: str) -> tuple[str, Query, dict[str, object]]:
        try:
            source, queries, _ = _parsed(text)
        except LanguageError as error:
            shown = [_shifted(one, is_body(text)) for one in error.diagnostics]
            raise type(error)(shown) from None
        if len(queries) != 1:
            raise InputError("give one query")
        return source.text, queries[0], {}


def _exactly(words: list[str], name: str, arguments: str, count: int) -> list[str]:
    if len(words) != count:
        raise InputError(f"{name} takes {arguments}")
    return words


def _bound(query: Query, given: list[str]) -> dict[str, object]:
    """Parameters given as NAME=VALUE, by the types that the query declares."""
    from omnigraph.cli.options import parameter_value
    from omnigraph.plan.params import JsonParameters

    declared = {one.name: one for one in query.parameters}
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"write a parameter as NAME=VALUE, not '{text}'")
        if name not in declared:
            raise InputError(with_hint(f"{query.name} has no parameter '{name}'", name, declared))
        found[name] = parameter_value(declared[name].type.type, value)
    return JsonParameters(found)


def _names_of_tags(graph: GraphProtocol) -> Iterator[str]:
    try:
        yield from graph.tags
    except OmnigraphError:
        # A server of the older contract has none.
        return


# -- texts ----------------------------------------------------------------------------------


def is_body(text: str) -> bool:
    """Whether an input is the body of a query, without its header."""
    tokens = tokenize(Source(_INPUT, text))
    return not (tokens.kinds[0] == WORD and tokens.texts[0] == "query")


def _statement_words(text: str) -> tuple[str, ...] | None:
    """The words of a text that begins with a statement or a setting, else None."""
    tokens = tokenize(Source(_INPUT, text))
    words = tuple(t for k, t in zip(tokens.kinds, tokens.texts, strict=True) if k == WORD)
    return words if words and tokens.kinds[0] == WORD and words[0] in _STATEMENTS else None


def is_complete(text: str) -> bool:
    """Whether an input can be run: every bracket that was opened is closed, and it has ended."""
    tokens = tokenize(Source(_INPUT, text))
    depth = 0
    for kind, token in zip(tokens.kinds, tokens.texts, strict=True):
        if kind == BAD:
            # A text that is not closed yet; anything else bad is for the parser to report.
            return not token.startswith('"')
        if kind == SYMBOL:
            depth += (token in _OPENING) - (token in _CLOSING)
    return depth <= 0 and not _waits(tokens)


def _waits(tokens: Tokens) -> bool:
    """Whether a read ends before its `return`, or a query before its body."""
    words = [t for k, t in zip(tokens.kinds, tokens.texts, strict=True) if k == WORD]
    if not words:
        return False
    if words[0] == "match":
        return "return" not in words
    return words[0] == "query" and "{" not in tokens.texts


def _parsed(text: str) -> tuple[Source, tuple[Query, ...], bool]:
    """The source of an input, its queries, and whether they were given as a body."""
    is_adhoc = is_body(text)
    source = Source(_INPUT, f"{_HEADER}{text}\n}}" if is_adhoc else text)
    return source, parse_query_tokens(tokenize(source)).queries, is_adhoc


def _shifted(diagnostic: Diagnostic, is_adhoc: bool) -> Diagnostic:
    """A diagnostic with the lines of what was entered."""
    if not is_adhoc or diagnostic.position.line < 2:
        return diagnostic
    where = diagnostic.position
    moved = replace(where, line=where.line - 1, end_line=where.end_line - 1)
    return replace(diagnostic, position=moved)


_STATEMENTS: Final = frozenset({"branch", "explain", "reset", "set", "show"})
_BEGINNINGS: Final = _STATEMENTS | {"match", "query", "insert", "upsert", "update", "delete"}
_TAKE_TEXT: Final = (".explain", ".analyze")

COMMANDS: Final[Mapping[str, Command]] = {
    ".help": Command("", "Show this list.", ShellSession.help),
    ".schema": Command("[TYPE]", "Show the schema, or one type.", ShellSession.schema),
    ".branches": Command("", "List branches; * is the one worked on.", ShellSession.branches),
    ".checkout": Command("BRANCH", "Work on another branch.", ShellSession.checkout),
    ".log": Command("[N]", "Show the newest commits.", ShellSession.log),
    ".diff": Command("FROM [TO]", "Compare two branches or commits.", ShellSession.diff),
    ".explain": Command("QUERY", "Show the execution plan of a query.", ShellSession.explain),
    ".analyze": Command(
        "QUERY",
        "Run a query and show rows and time per step.",
        lambda session, words: session.explain(words, analyze=True),
    ),
    ".read": Command("FILE", "Read the queries of a file.", ShellSession.read),
    ".run": Command("NAME [P=V …]", "Run a query that was read or entered.", ShellSession.run),
    ".queries": Command("", "List the queries that can be run.", ShellSession.list_queries),
    ".format": Command(
        "FORMAT", f"Print results as {', '.join(FORMATS)}.", ShellSession.set_format
    ),
    ".timing": Command("on|off", "Show the time of each answer.", ShellSession.set_timing),
    ".quit": Command("", "Leave; so does Ctrl-D.", ShellSession.quit),
}


def run_stream(session: ShellSession, lines: Iterator[str]) -> bool:
    """Run piped input, one after another as they become complete; False if one of them failed."""
    held: list[str] = []
    is_fine = True
    try:
        for line in lines:
            if not held and not line.strip():
                continue
            if held and _begins_another(line) and is_complete(before := "".join(held)):
                held = []
                is_fine = session.enter(before) and is_fine
            held.append(line)
            text = "".join(held)
            if text.lstrip().startswith(".") or (is_complete(text) and _ends_here(text)):
                held = []
                is_fine = session.enter(text) and is_fine
        if text := "".join(held).strip():
            is_fine = session.enter(text) and is_fine
    except EndOfSession:
        pass
    sys.stdout.flush()
    return is_fine


def _begins_another(line: str) -> bool:
    """Whether no read can go on with this line."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return (word[:1] == "." and word[1:].isalpha()) or word in _BEGINNINGS


def _ends_here(text: str) -> bool:
    """Whether a complete body ends: a read may go on with `order` and `limit` until an empty line."""
    tokens = tokenize(Source(_INPUT, text))
    is_read = tokens.texts[0] == "match"
    return not is_read or text.endswith("\n\n") or not text.strip()
