"""The project file `omnigraph.yaml`, which the operator config and `cluster.yaml` replace.

It is found by an option, by `OMNIGRAPH_CONFIG` or in the current directory; folders above are not searched.
Relative paths in it begin at its directory. Unknown keys are ignored. Tests: tests/unit/config/test_legacy.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct, field

from omnigraph.config.operator import (
    OUTPUT_FORMATS,
    CellLayout,
    Display,
    OutputFormat,
    alias_args,
    url_problem,
)
from omnigraph.config.reading import Section, read_config_text
from omnigraph.errors import InputError, LegacyConfigError
from omnigraph.settings import Settings

FILE_NAME: Final = "omnigraph.yaml"

AliasCommand: TypeAlias = Literal["read", "query", "change", "mutate"]

_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED: Final = re.compile(r"""(["'])(.*?)\1\s*(?:#.*)?""")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")

NEW_HOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "project.name": "metadata.name in cluster.yaml",
        "graphs": "graphs in cluster.yaml, or servers in the operator config",
        "server.graph": "nothing; a server serves every graph of its cluster",
        "server.bind": "omnigraph-server --bind",
        "server.policy": "policies in cluster.yaml, applied to cluster",
        "cli.graph": "defaults.store or defaults.server in the operator config",
        "cli.branch": "--branch",
        "cli.output_format": "defaults.output in the operator config",
        "cli.table_max_column_width": "defaults.table_max_column_width in the operator config",
        "cli.table_cell_layout": "defaults.table_cell_layout in the operator config",
        "cli.actor": "operator.actor in the operator config",
        "query.roots": "nothing; pass the path of a query file",
        "auth.env_file": "omnigraph login, or environment variables",
        "aliases": "aliases in the operator config",
        "policy": "policies in cluster.yaml",
        "queries": "graphs.<id>.queries in cluster.yaml",
    }
)
"""Where each key went, in the order in which notices list them."""


class StoredQueryFile(Struct, frozen=True):
    """One entry of a registry of stored queries."""

    file: Path
    expose: bool = True
    tool_name: str | None = None


class LegacyGraph(Struct, frozen=True):
    """A graph with a name."""

    uri: str
    bearer_token_env: str | None = None
    policy_file: Path | None = None
    queries: Mapping[str, StoredQueryFile] = field(default_factory=dict)


class QueryFileAlias(Struct, frozen=True):
    """A short name for a query in a file, with the parameters its positional arguments fill."""

    name: str
    command: AliasCommand
    query: str
    query_name: str | None = None
    args: tuple[str, ...] = ()
    graph: str | None = None
    branch: str | None = None
    format: OutputFormat | None = None

    @property
    def is_mutation(self) -> bool:
        return self.command in ("change", "mutate")


class LegacyConfig(Struct, frozen=True):
    """The file; everything is unset without a file, and paths then begin at the current directory."""

    path: Path | None = None
    project_name: str | None = None
    graphs: Mapping[str, LegacyGraph] = field(default_factory=dict)
    server_graph: str | None = None
    server_bind: str | None = None
    server_policy_file: Path | None = None
    graph: str | None = None
    branch: str | None = None
    display: Display = field(default_factory=Display)
    actor: str | None = None
    query_roots: tuple[Path, ...] = ()
    env_file: Path | None = None
    aliases: Mapping[str, QueryFileAlias] = field(default_factory=dict)
    policy_file: Path | None = None
    queries: Mapping[str, StoredQueryFile] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    """The keys of `NEW_HOMES` that the file has."""

    @property
    def folder(self) -> Path:
        return Path() if self.path is None else self.path.parent

    def find_query_file(self, path: str) -> Path:
        """A query file, searched beside the project file and then in `query.roots`. Raises `InputError`."""
        for folder in (self.folder, *self.query_roots):
            if (found := folder / path).exists():
                return found
        searched = ", ".join(str(root) for root in self.query_roots)
        also = f" (also searched: {searched})" if searched else ""
        raise InputError(f"query file '{path}' not found{also}")

    def notice(self) -> str | None:
        """The deprecation notice, which lists each key with its new home; None if there is nothing to say."""
        if not self.present:
            return None
        homes = "; ".join(f"{key} -> {NEW_HOMES[key]}" for key in self.present)
        return (
            f"{self.path} is deprecated (RFC-008); `omnigraph config migrate` moves its keys: {homes}. "
            "OMNIGRAPH_SUPPRESS_YAML_DEPRECATION=1 silences this notice."
        )


def find_legacy_file(option: str | None, settings: Settings) -> Path | None:
    """The file to read, if there is one. Raises `LegacyConfigError`.

    A file that an option or a variable names has to exist.
    """
    named = option or settings.config
    path = Path(named or FILE_NAME)
    if not path.exists():
        if named is None:
            return None
        raise LegacyConfigError(str(path), "no such file")
    if settings.no_legacy_config:
        raise LegacyConfigError(
            str(path),
            "OMNIGRAPH_NO_LEGACY_CONFIG is set, so the file is not used; "
            "move its settings with `omnigraph config migrate` and delete it",
        )
    return path


def read_legacy_config(option: str | None, settings: Settings) -> LegacyConfig:
    """Read the file that is in force. Raises `LegacyConfigError`."""
    path = find_legacy_file(option, settings)
    text = None if path is None else read_config_text(path, LegacyConfigError)
    if path is None or text is None:
        return LegacyConfig()
    return parse_legacy_config(text, path)


def parse_legacy_config(text: str, path: Path) -> LegacyConfig:
    """The settings in a text. Raises `LegacyConfigError`."""
    top = Section.of_text(text, path, LegacyConfigError)
    cli, server = top.section("cli"), top.section("server")
    env_file = top.section("auth").text("env_file")
    return LegacyConfig(
        path,
        project_name=top.section("project").text("name"),
        graphs=MappingProxyType(dict(_graphs(top))),
        server_graph=server.text("graph"),
        server_bind=server.text("bind"),
        server_policy_file=_policy_file(server),
        graph=cli.text("graph"),
        branch=cli.text("branch"),
        display=Display(
            cli.choice("output_format", OUTPUT_FORMATS),
            cli.count("table_max_column_width"),
            cli.choice("table_cell_layout", get_args(CellLayout)),
        ),
        actor=cli.text("actor"),
        query_roots=tuple(path.parent / root for root in top.section("query").texts("roots")),
        env_file=None if env_file is None else path.parent / env_file,
        aliases=MappingProxyType(
            {name: _alias(name, found) for name, found in top.sections("aliases")}
        ),
        policy_file=_policy_file(top),
        queries=_queries(top),
        present=tuple(key for key in NEW_HOMES if _has(top, key)),
    )


def read_env_file(config: LegacyConfig) -> Mapping[str, str]:
    """The assignments in `auth.env_file`; none if it does not exist. Raises `LegacyConfigError`."""
    if config.env_file is None:
        return {}
    text = read_config_text(config.env_file, LegacyConfigError)
    return {} if text is None else parse_env(text, config.env_file)


def parse_env(text: str, path: Path) -> Mapping[str, str]:
    """The assignments in a text. Raises `LegacyConfigError`, which never shows a value."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None or "\0" in line:
            raise LegacyConfigError(str(path), "the line is not NAME=value", number)
        name, value = assignment.groups()
        quoted = _QUOTED.fullmatch(value)
        found[name] = quoted[2] if quoted else _COMMENT.sub("", value).strip()
    return MappingProxyType(found)


def _graphs(top: Section) -> Iterator[tuple[str, LegacyGraph]]:
    for name, graph in top.sections("graphs"):
        uri = graph.text("uri")
        if uri is None:
            raise graph.wrong(None, "has no uri")
        if uri.startswith(("http://", "https://")):
            if problem := url_problem(uri):
                raise graph.wrong("uri", problem)
            uri = uri.rstrip("/")
        elif "://" not in uri:
            uri = str(graph.file.parent / uri)
        yield (
            name,
            LegacyGraph(uri, graph.text("bearer_token_env"), _policy_file(graph), _queries(graph)),
        )


def _policy_file(section: Section) -> Path | None:
    file = section.section("policy").text("file")
    return None if file is None else section.file.parent / file


def _queries(section: Section) -> Mapping[str, StoredQueryFile]:
    found = {}
    for name, query in section.sections("queries"):
        file = query.text("file")
        if file is None:
            raise query.wrong(None, "has no file")
        mcp = query.section("mcp")
        found[name] = StoredQueryFile(
            section.file.parent / file, mcp.switch("expose", True), mcp.text("tool_name")
        )
    return MappingProxyType(found)


def _alias(name: str, section: Section) -> QueryFileAlias:
    query = section.text("query")
    if query is None:
        raise section.wrong(None, "has no query")
    return QueryFileAlias(
        name,
        section.choice("command", get_args(AliasCommand)) or "query",
        query,
        section.text("name"),
        alias_args(section),
        section.text("graph"),
        section.text("branch"),
        section.choice("format", OUTPUT_FORMATS),
    )


def _has(top: Section, key: str) -> bool:
    first, _, second = key.partition(".")
    value = top.values.get(first)
    if not second:
        return value is not None
    return isinstance(value, dict) and value.get(second) is not None
