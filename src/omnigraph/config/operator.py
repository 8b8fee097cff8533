"""The operator config: `config.yaml` in `~/.omnigraph` or `OMNIGRAPH_HOME`, one person's preferences.

Only the command line reads it. Options win over environment variables, those over a project file, and that
over this file. Relative paths in it begin at its directory. Tests: tests/unit/config/test_operator.py, tests/unit/cli/test_operator_config.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, TypeVar, get_args
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from omnigraph.config.reading import Section, read_config_text
from omnigraph.errors import OperatorConfigError
from omnigraph.settings import Settings

T = TypeVar("T")

OutputFormat: TypeAlias = Literal["table", "kv", "csv", "jsonl", "json"]
CellLayout: TypeAlias = Literal["truncate", "wrap"]
EngineName: TypeAlias = Literal["auto", "spark", "inline"]

OUTPUT_FORMATS: Final[tuple[OutputFormat, ...]] = get_args(OutputFormat)

_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_GRAPH_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


class Display(Struct, frozen=True):
    """How results are printed; None where nothing is said."""

    output: OutputFormat | None = None
    max_column_width: int | None = None
    cell_layout: CellLayout | None = None


class Binding(Struct, frozen=True):
    """What a profile, or the defaults, select: a server, a cluster or a store; nothing if all are None."""

    server: str | None = None
    cluster: str | None = None
    store: str | None = None
    default_graph: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.server is None and self.cluster is None and self.store is None


class StoredQueryAlias(Struct, frozen=True):
    """A short name for a stored query on a server, with the parameters its positional arguments fill."""

    name: str
    server: str
    query: str
    graph: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    format: OutputFormat | None = None


class OperatorConfig(Struct, frozen=True):
    """The file; everything is unset without a file."""

    path: Path
    actor: str | None = None
    display: Display = Display()
    engine: EngineName | None = None
    defaults: Binding = Binding()
    servers: Mapping[str, str] = field(default_factory=dict)
    """The URL of each server, without a slash at its end."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Binding] = field(default_factory=dict)
    aliases: Mapping[str, StoredQueryAlias] = field(default_factory=dict)
    spark_master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def operator_dir(settings: Settings) -> Path:
    """The directory of `config.yaml` and `credentials`."""
    return Path(os.path.expanduser(settings.home))


def read_operator_config(settings: Settings) -> OperatorConfig:
    """Read the file. Raises `OperatorConfigError`."""
    path = operator_dir(settings) / "config.yaml"
    text = read_config_text(path, OperatorConfigError)
    return OperatorConfig(path) if text is None else parse_operator_config(text, path)


def parse_operator_config(text: str, path: Path) -> OperatorConfig:
    """The settings in a text. Raises `OperatorConfigError`."""
    top = Section.of_text(text, path, OperatorConfigError)
    known = ("operator", "defaults", "servers", "clusters", "profiles", "aliases", "spark")
    top.warn_unknown(known)
    operator, defaults, spark = (top.section(key) for key in ("operator", "defaults", "spark"))
    operator.warn_unknown(("actor",))
    defaults.warn_unknown((
        "output", "table_max_column_width", "table_cell_layout", "engine",
        "server", "store", "default_graph",
    ))  # fmt: skip
    spark.warn_unknown(("master", "conf"))
    conf = spark.section("conf")
    return OperatorConfig(
        path,
        actor=operator.text("actor"),
        display=Display(
            defaults.choice("output", OUTPUT_FORMATS),
            defaults.count("table_max_column_width"),
            defaults.choice("table_cell_layout", get_args(CellLayout)),
        ),
        engine=defaults.choice("engine", get_args(EngineName)),
        defaults=_binding(defaults, ("server", "store")),
        servers=_frozen({name: _server(name, found) for name, found in top.sections("servers")}),
        clusters=_frozen({name: _cluster(found) for name, found in top.sections("clusters")}),
        profiles=_frozen({name: _profile(found) for name, found in top.sections("profiles")}),
        aliases=_frozen({name: _alias(name, found) for name, found in top.sections("aliases")}),
        spark_master=_master(spark),
        spark_conf=_frozen({key: _spark_text(conf, key) for key in conf.values}),
        warnings=tuple(top.warnings),
    )


def url_problem(url: str) -> str | None:
    """Why a URL cannot be that of a server, in words that do not repeat it; None if it can be."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a valid URL"
    if parts.scheme not in ("http", "https"):
        return "must begin with http:// or https://"
    if not parts.hostname or re.search(r"[\s\x00-\x1f\x7f\\]", url):
        return "is not a valid URL"
    if "@" in parts.netloc:
        return "must not contain a user or password; store a token with `omnigraph login`"
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        return "must not contain a query or fragment"
    # A client resolves such segments, and would send the token to another path.
    if any(segment in (".", "..") for segment in unquote(parts.path).split("/")):
        return "must not contain the path segments . and .."
    return None


def is_graph_id(text: str) -> bool:
    """Whether a text can be the id of a graph on a server."""
    return _GRAPH_ID.fullmatch(text) is not None


def is_server_name(text: str) -> bool:
    """Whether a text can name a server; the name is a section of `credentials` and part of a variable."""
    return _SERVER_NAME.fullmatch(text) is not None


def _server(name: str, section: Section) -> str:
    section.warn_unknown(("url",))
    if not is_server_name(name):
        raise section.wrong(None, "is not a valid name: use letters, digits, '.', '_' and '-'")
    url = section.text("url")
    if url is None:
        raise section.wrong(None, "has no url")
    if problem := url_problem(url):
        raise section.wrong("url", problem)
    return url.rstrip("/")


def _cluster(section: Section) -> str:
    section.warn_unknown(("root",))
    root = section.text("root")
    if root is None:
        raise section.wrong(None, "has no root")
    return _location(root, section)


def _profile(section: Section) -> Binding:
    section.warn_unknown(("server", "cluster", "store", "default_graph"))
    binding = _binding(section, ("server", "cluster", "store"))
    if binding.is_empty:
        raise section.wrong(None, "must have a server, a cluster or a store")
    return binding


def _binding(section: Section, kinds: tuple[str, ...]) -> Binding:
    given = {kind: text for kind in kinds if (text := section.text(kind)) is not None}
    if len(given) > 1:
        first, second = list(given)[:2]
        raise section.wrong(second, f"and {section.name_of(first)} are exclusive; keep one of them")
    graph = section.text("default_graph")
    if graph is not None:
        if not is_graph_id(graph):
            raise section.wrong("default_graph", "must have 1 to 64 letters, digits and '-'")
        if "store" in given or not given:
            message = "names a graph of a server or cluster, and none is given; ignored"
            section.warn("default_graph", f"{section.name_of('default_graph')} {message}")
            graph = None
    if "store" in given:
        given["store"] = _location(given["store"], section)
    return Binding(**given, default_graph=graph)


def _location(text: str, section: Section) -> str:
    """A path or URI of storage; `~` is the home directory."""
    return text if "://" in text else str(section.file.parent / os.path.expanduser(text))


def _alias(name: str, section: Section) -> StoredQueryAlias:
    section.warn_unknown(("server", "graph", "query", "args", "params", "format"))
    server, query, graph = (section.text(key) for key in ("server", "query", "graph"))
    if server is None or query is None:
        raise section.wrong(None, f"has no {'server' if server is None else 'query'}")
    if graph is not None and not is_graph_id(graph):
        raise section.wrong("graph", "must have 1 to 64 letters, digits and '-'")
    return StoredQueryAlias(
        name,
        server,
        query,
        graph,
        alias_args(section),
        MappingProxyType(dict(section.section("params").values)),
        section.choice("format", OUTPUT_FORMATS),
    )


def alias_args(section: Section) -> tuple[str, ...]:
    """The parameters that positional arguments fill, in their order."""
    args = section.texts("args")
    if len(set(args)) < len(args):
        raise section.wrong("args", "must name each parameter once")
    return args


def _master(spark: Section) -> str | None:
    master = spark.values.get("master")
    if master is not None and not isinstance(master, str):
        raise spark.wrong("master", "must be the address of a master")
    return master


def _spark_text(conf: Section, key: str) -> str:
    """A setting as Spark takes it."""
    value = conf.values[key]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise conf.wrong(key, "must be a text, a number, true or false")


def _frozen(values: dict[str, T]) -> Mapping[str, T]:
    return MappingProxyType(values)
