"""What a command line selects, with the configuration files behind it: a graph, or an alias.

A graph is a value: storage that is opened in this process, a graph behind a server, or a graph of a
cluster. Nothing is opened here, and no token is looked up. Tests: tests/unit/config/test_selection.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from omnigraph.config.legacy import LegacyConfig, QueryFileAlias, StoredQueryFile
from omnigraph.config.operator import (
    Binding,
    OperatorConfig,
    StoredQueryAlias,
    is_graph_id,
    url_problem,
)
from omnigraph.diagnostics import with_hint
from omnigraph.errors import UsageError
from omnigraph.json_text import JsonError, parse_json


class AddressOptions(Struct, frozen=True):
    """The options that select a graph, as they were given."""

    uri: str | None = None
    store: str | None = None
    target: str | None = None
    server: str | None = None
    graph: str | None = None
    profile: str | None = None


class EmbeddedTarget(Struct, frozen=True):
    """Storage that this process opens.

    `name` is that of the graph in a project file, if it was selected by it. Then the policy and stored
    queries are those of the named graph, otherwise those at the top of the file.
    """

    uri: str
    origin: str
    name: str | None = None
    policy_file: Path | None = None
    queries: Mapping[str, StoredQueryFile] = field(default_factory=dict)
    ignored: str | None = None
    """The top-level block of the project file that the named graph does not use."""
    policy_text: str | None = None
    """The policy that a cluster has applied to the graph."""

    def write_policy(self) -> Path | str | None:
        """The policy that writes obey, if any. Raises `UsageError` if one would be ignored."""
        if self.ignored is not None:
            raise UsageError(
                f"graph '{self.name}' was selected by name, so `{self.ignored}` at the top of omnigraph.yaml "
                f"would be ignored; move it to graphs.{self.name}.{self.ignored}"
            )
        return self.policy_file or self.policy_text


class RemoteTarget(Struct, frozen=True):
    """A graph behind a server. `graph` is None on a server of a single graph.

    `credentials.find_token(target.url, operator, target.token_variable, dotenv)` finds its token.
    """

    base_url: str
    origin: str
    graph: str | None = None
    server: str | None = None
    token_variable: str | None = None

    @property
    def url(self) -> str:
        """The URL under which the routes of the graph are."""
        return self.base_url if self.graph is None else f"{self.base_url}/graphs/{self.graph}"


class ClusterTarget(Struct, frozen=True):
    """A graph of a cluster whose storage this process opens."""

    root: str
    origin: str
    graph: str | None = None
    cluster: str | None = None


Target: TypeAlias = EmbeddedTarget | RemoteTarget | ClusterTarget


def is_remote(uri: str) -> bool:
    """Whether an address is that of a server rather than of storage."""
    return uri.startswith(("http://", "https://"))


def without_secrets(uri: str) -> str:
    """An address for messages: that of a server without user, password, query and fragment."""
    if not is_remote(uri):
        return uri
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{re.split('[?#]', rest)[0].rpartition('@')[2]}"


def select_target(
    options: AddressOptions,
    operator: OperatorConfig,
    legacy: LegacyConfig,
    *,
    alias_graph: str | None = None,
    environment: str | None = None,
    env_profile: str | None = None,
    find_nearby: Callable[[], str | None] | None = None,
) -> Target | None:
    """The graph that options, environment and files select, or None. Raises `UsageError`.

    An explicit address wins over the graph of an alias, that over a profile, that over `OMNIGRAPH_URI`
    (`environment`), that over a profile of the environment, that over `cli.graph` of the project file, that
    over the defaults of the operator config, and that over a graph in the current folder.
    """
    if options.uri is not None:
        return _at(options.uri, "URI", legacy)
    if options.store is not None:
        return _store(options.store, "--store", legacy)
    if options.target is not None:
        return _named(options.target, f"--target {options.target}", legacy)
    if options.server is not None:
        return _server(options.server, options.graph, f"--server {options.server}", operator)
    if alias_graph is not None:
        return _named(alias_graph, "the alias", legacy)
    if options.profile is not None:
        return _profile(options.profile, f"--profile {options.profile}", options, operator, legacy)
    if environment is not None and options.graph is None:
        return _at(environment, "OMNIGRAPH_URI", legacy)
    if env_profile is not None:
        return _profile(env_profile, "OMNIGRAPH_PROFILE", options, operator, legacy)
    if legacy.graph is not None and options.graph is None:
        return _named(legacy.graph, f"cli.graph in {legacy.path}", legacy)
    if not operator.defaults.is_empty:
        origin = f"defaults in {operator.path}"
        return _bound(operator.defaults, options.graph, origin, operator, legacy)
    nearby = None if find_nearby is None or options.graph is not None else find_nearby()
    return None if nearby is None else _at(nearby, "the current folder", legacy)


_GRAPH_FILE: Final = "_schema.pg"
_MANIFEST: Final = "__manifest"


def find_nearby_graph() -> str | None:
    """The graph that the current folder is, or the only one in it. Raises `UsageError` for several."""
    if _is_graph(Path()):
        return "."
    found = sorted(entry.name for entry in Path().iterdir() if _is_graph(entry))
    if len(found) > 1:
        raise UsageError(f"this folder has several graphs ({', '.join(found)}); name one of them")
    return found[0] if found else None


def _is_graph(folder: Path) -> bool:
    try:
        return (folder / _GRAPH_FILE).is_file() and (folder / _MANIFEST).is_dir()
    except OSError:
        return False


def _at(uri: str, origin: str, legacy: LegacyConfig) -> Target:
    if is_remote(uri):
        return RemoteTarget(_remote_url(uri), origin)
    return EmbeddedTarget(uri, origin, None, legacy.policy_file, legacy.queries)


def _store(uri: str, origin: str, legacy: LegacyConfig) -> Target:
    if is_remote(uri):
        raise UsageError(
            f"{origin} names storage, a path or s3:// address, and {without_secrets(uri)} is a server; "
            "use --server"
        )
    return _at(uri, origin, legacy)


def _named(name: str, origin: str, legacy: LegacyConfig) -> Target:
    graph = legacy.graphs.get(name)
    if graph is None:
        known = sorted(legacy.graphs)
        message = f"graph '{name}' not found in omnigraph.yaml ({_listed(known)})"
        raise UsageError(with_hint(message, name, known))
    if is_remote(graph.uri):
        return RemoteTarget(graph.uri, origin, token_variable=graph.bearer_token_env)
    return EmbeddedTarget(
        graph.uri, origin, name, graph.policy_file, graph.queries, _ignored_block(legacy)
    )


def _ignored_block(legacy: LegacyConfig) -> Literal["policy.file", "queries"] | None:
    if legacy.policy_file is not None:
        return "policy.file"
    return "queries" if legacy.queries else None


def _server(server: str, graph: str | None, origin: str, operator: OperatorConfig) -> RemoteTarget:
    if graph is not None and not is_graph_id(graph):
        raise UsageError(f"invalid graph id '{graph}'; use 1 to 64 letters, digits and '-'")
    if is_remote(server):
        return RemoteTarget(_remote_url(server), origin, graph)
    url = operator.servers.get(server)
    if url is None:
        known = sorted(operator.servers)
        message = f"unknown server '{server}' in {operator.path} ({_listed(known)})"
        raise UsageError(with_hint(message, server, known))
    return RemoteTarget(url, origin, graph, server)


def find_profile(name: str, operator: OperatorConfig) -> Binding:
    """The profile of that name. Raises `UsageError`."""
    profile = operator.profiles.get(name)
    if profile is None:
        known = sorted(operator.profiles)
        message = f"unknown profile '{name}' in {operator.path} ({_listed(known)})"
        raise UsageError(with_hint(message, name, known))
    return profile


def _profile(
    name: str, origin: str, options: AddressOptions, operator: OperatorConfig, legacy: LegacyConfig
) -> Target:
    return _bound(find_profile(name, operator), options.graph, origin, operator, legacy)


def _bound(
    binding: Binding,
    graph: str | None,
    origin: str,
    operator: OperatorConfig,
    legacy: LegacyConfig,
) -> Target:
    if binding.store is not None:
        if graph is not None:
            raise UsageError(
                f"--graph names a graph on a server, and {origin} selects the store {binding.store}"
            )
        return _store(binding.store, origin, legacy)
    graph = graph or binding.default_graph
    if binding.server is not None:
        return _server(binding.server, graph, origin, operator)
    assert binding.cluster is not None
    root = operator.clusters.get(binding.cluster)
    known = None if root is None else binding.cluster
    return ClusterTarget(binding.cluster if root is None else root, origin, graph, known)


def _remote_url(uri: str) -> str:
    url = uri.rstrip("/")
    if problem := url_problem(uri):
        raise UsageError(f"the address {without_secrets(uri)} {problem}")
    return url


def _listed(names: Sequence[str]) -> str:
    return f"defined: {', '.join(names)}" if names else "none is defined"


Alias: TypeAlias = QueryFileAlias | StoredQueryAlias


class StoredQueryCall(Struct, frozen=True):
    """A stored query to run on a server, with its parameters; without any, no body is sent."""

    target: RemoteTarget
    query: str
    params: Mapping[str, object]


def select_alias(
    name: str, operator: OperatorConfig, legacy: LegacyConfig, *, mutating: bool = False
) -> tuple[Alias, str | None]:
    """The alias of that name, and a warning if it hides another. Raises `UsageError`.

    Aliases of the operator config run stored queries, and only reads.
    """
    stored = None if mutating else operator.aliases.get(name)
    of_file = legacy.aliases.get(name)
    if of_file is None:
        if stored is None:
            known = sorted({*legacy.aliases, *(() if mutating else operator.aliases)})
            raise UsageError(with_hint(f"unknown alias '{name}' ({_listed(known)})", name, known))
        return stored, None
    if of_file.is_mutation is not mutating:
        verb = "mutate" if of_file.is_mutation else "query"
        raise UsageError(
            f"alias '{name}' is for `omnigraph {verb}`: its command is {of_file.command}"
        )
    if stored is None:
        return of_file, None
    return of_file, f"alias '{name}' of {legacy.path} hides the one of {operator.path}"


def bind_arguments(
    alias: Alias, arguments: Sequence[str], params: Mapping[str, object]
) -> dict[str, object]:
    """The parameters of a call: `params` over positional arguments over the alias's own.

    An argument is JSON where it can be, and text otherwise. Raises `UsageError` for too many.
    """
    if len(arguments) > len(alias.args):
        takes = f"takes {', '.join(alias.args)}" if alias.args else "takes none"
        raise UsageError(
            f"alias '{alias.name}' got {len(arguments)} positional arguments and {takes}"
        )
    bound = dict(alias.params) if isinstance(alias, StoredQueryAlias) else {}
    bound.update(zip(alias.args, map(parse_argument, arguments), strict=False))
    bound.update(params)
    return bound


def stored_query_call(
    alias: StoredQueryAlias,
    arguments: Sequence[str],
    params: Mapping[str, object],
    operator: OperatorConfig,
) -> StoredQueryCall:
    """The call that an alias of the operator config stands for. Raises `UsageError`."""
    target = _server(alias.server, alias.graph, f"alias '{alias.name}'", operator)
    return StoredQueryCall(target, alias.query, bind_arguments(alias, arguments, params))


def parse_argument(text: str) -> object:
    """A value given as text: JSON where it can be, and text otherwise."""
    try:
        value: object = parse_json(text)
    except JsonError:
        return text
    # The parser takes NaN and Infinity, which are not JSON.
    return text if isinstance(value, float) and not isfinite(value) else value
