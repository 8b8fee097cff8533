"""Options that every command accepts, anywhere on the command line, and what they and the files select.

`omnigraph --as ada lint …` and `omnigraph lint … --as ada` mean the same; if an option is given twice, the
one after the command wins. Configuration files are read when something asks for them, and the storage
engine is imported when a graph is opened: help, completion and usage errors wait for neither.
Tests: tests/unit/cli/test_address.py, tests/unit/cli/test_scopes.py.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import click

from omnigraph.cli.command_table import Plane, refuse_direct, refuse_remote, refuse_scopes
from omnigraph.cli.exits import echo_write, warn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from omnigraph.api.graph import Graph
    from omnigraph.cli.output.results import Format, TableLayout
    from omnigraph.cli.remote import ServedGraph
    from omnigraph.config.credentials import Token
    from omnigraph.config.legacy import LegacyConfig, StoredQueryFile
    from omnigraph.config.operator import OperatorConfig
    from omnigraph.config.selection import (
        Alias,
        ClusterTarget,
        EmbeddedTarget,
        RemoteTarget,
        Target,
    )


_META = "omnigraph."


class GlobalOptions(NamedTuple):
    """Options that are remembered wherever they stand; those of the project file belong to some commands."""

    actor: str | None = None
    server: str | None = None
    graph: str | None = None
    store: str | None = None
    profile: str | None = None
    project_graph: str | None = None
    project_file: str | None = None
    cluster: str | None = None
    cluster_graph: str | None = None
    quiet: bool | None = None

    @classmethod
    def of(cls, ctx: click.Context) -> GlobalOptions:
        """Collect the values from the root and the command."""
        return cls(*(ctx.meta.get(_META + name) for name in cls._fields))


class Context:
    """One invocation: its global options, and the configuration files, read once when needed."""

    def __init__(
        self, options: GlobalOptions, plane: Plane, command: str, *, takes_server: bool = False
    ) -> None:
        self.options = options
        self.plane = plane
        self.command = command
        self._target: Target | None = None
        refuse_scopes(command, plane, options._asdict(), takes_server=takes_server)

    @cached_property
    def legacy(self) -> LegacyConfig:
        """The project file."""
        from omnigraph.config.legacy import read_legacy_config
        from omnigraph.settings import read_settings

        settings = read_settings()
        legacy = read_legacy_config(self.options.project_file, settings)
        if not settings.suppress_yaml_deprecation and (notice := legacy.notice()):
            warn(notice)
        return legacy

    @cached_property
    def dotenv(self) -> Mapping[str, str]:
        """The variables in `auth.env_file` of the project file."""
        from omnigraph.config.legacy import read_env_file

        file = self.legacy.env_file
        if file is not None and not file.exists():
            warn(f"{self.legacy.path}: auth.env_file names {file}, which does not exist")
        return read_env_file(self.legacy)

    @cached_property
    def operator(self) -> OperatorConfig:
        """The operator config."""
        from omnigraph.config.operator import read_operator_config
        from omnigraph.settings import read_settings

        operator = read_operator_config(read_settings())
        for message in operator.warnings:
            warn(message)
        return operator

    @cached_property
    def actor(self) -> str | None:
        """The actor of writes that go straight to storage."""
        return self.options.actor or self.legacy.actor or self.operator.actor

    @property
    def default_branch(self) -> str:
        return self.legacy.branch or "main"

    @property
    def default_format(self) -> Format | None:
        return self.legacy.display.output or self.operator.display.output

    @property
    def table_layout(self) -> TableLayout:
        from omnigraph.cli.output.results import TableLayout

        first, second, unset = self.legacy.display, self.operator.display, TableLayout()
        return TableLayout(
            first.max_column_width or second.max_column_width or unset.max_column_width,
            first.cell_layout or second.cell_layout or unset.overlong,
        )

    def select(
        self, uri: str | None, alias_graph: str | None = None, *, nearby: bool = True
    ) -> Target | None:
        """The graph that the command line, the environment and the files select, if they do.

        Without `nearby`, a graph in the current folder is not one of them.

        The variables of the project file are in the environment from now on.
        """
        from omnigraph.config.selection import AddressOptions, find_nearby_graph, select_target
        from omnigraph.settings import add_variables, read_settings

        self._refuse_two_addresses(uri)
        if self.options.cluster is not None:
            self._target = self._cluster_target(self.options.cluster)
            return self._target
        add_variables(self.dotenv)
        legacy, options, settings = self.legacy, self.options, read_settings()
        given = AddressOptions(
            uri,
            options.store,
            options.project_graph,
            options.server,
            options.graph,
            options.profile,
        )
        self._target = select_target(
            given,
            self.operator,
            legacy,
            alias_graph=alias_graph,
            environment=settings.uri,
            env_profile=settings.profile,
            find_nearby=find_nearby_graph if nearby else None,
        )
        if self._target is None and options.graph is not None:
            raise click.UsageError("--graph names a graph on a server and requires --server.")
        return self._target

    def _cluster_target(self, cluster: str) -> ClusterTarget:
        from omnigraph.config.selection import ClusterTarget

        root = None if "://" in cluster else self.operator.clusters.get(cluster)
        return ClusterTarget(root or cluster, "--cluster", self.options.cluster_graph)

    def cluster_root(self) -> str | None:
        """The storage root, directory or address of the cluster in `--cluster`, if it is given."""
        if self.options.cluster is None:
            return None
        return self._cluster_target(self.options.cluster).root

    def server_target(self) -> RemoteTarget | None:
        """The server that `--server` names, for commands about a server as a whole."""
        from omnigraph.config.selection import AddressOptions, RemoteTarget, select_target
        from omnigraph.settings import add_variables

        if self.options.server is None:
            return None
        add_variables(self.dotenv)
        given = AddressOptions(server=self.options.server)
        found = select_target(given, self.operator, self.legacy)
        assert isinstance(found, RemoteTarget)
        return found

    def open_cluster(self, target: ClusterTarget) -> EmbeddedTarget:
        """The graph of a cluster as storage. Its policy holds for commands of the data plane."""
        from omnigraph.cluster.addressing import applied_policy, find_graph
        from omnigraph.config.selection import EmbeddedTarget

        uri = find_graph(target.root, target.graph)
        is_data = self.plane is Plane.DATA
        policy = applied_policy(target.root, target.graph) if is_data else None
        found = EmbeddedTarget(uri, target.origin, policy_text=policy)
        self._target = found
        return found

    def _refuse_two_addresses(self, uri: str | None) -> None:
        from omnigraph.config.selection import without_secrets
        from omnigraph.errors import UsageError

        options = self.options
        if (options.cluster is None) != (options.cluster_graph is None):
            raise click.UsageError("--cluster and --cluster-graph go together; give both.")
        address = uri or options.project_graph or options.store
        if options.cluster is not None and address is not None:
            raise click.UsageError("--cluster and another graph address are exclusive.")
        if options.server is not None and (uri is not None or options.project_graph is not None):
            other = "--target" if uri is None else f"the graph address {without_secrets(uri)}"
            raise UsageError(f"--server and {other} are exclusive; use one of them")
        given = {"URI": uri, "--target": options.project_graph, "--server": options.server}
        others = [name for name, value in given.items() if value is not None]
        if options.store is not None and others:
            raise click.UsageError(f"--store and {others[0]} are exclusive; use one of them.")
        if options.graph is not None and (options.store or uri or options.project_graph):
            raise click.UsageError("--graph names a graph on a server and requires --server.")

    def token_for(self, target: RemoteTarget) -> Token | None:
        """The token to send to a server. Raises `CredentialsError`."""
        from omnigraph.config.credentials import find_token

        return find_token(target.url, self.operator, target.token_variable, self.dotenv)

    def alias(self, name: str, *, mutating: bool = False) -> Alias:
        """The alias of that name. Raises `UsageError`."""
        from omnigraph.config.selection import select_alias

        alias, warning = select_alias(name, self.operator, self.legacy, mutating=mutating)
        if warning is not None:
            warn(warning)
        return alias

    def write_policy(self) -> Path | str | None:
        """The policy that writes to the selected graph obey. Raises `UsageError` if one would be ignored."""
        from omnigraph.config.selection import EmbeddedTarget

        return self._target.write_policy() if isinstance(self._target, EmbeddedTarget) else None

    def stored_queries(self) -> Mapping[str, StoredQueryFile]:
        """The registry of the selected graph."""
        from omnigraph.config.selection import EmbeddedTarget

        return self._target.queries if isinstance(self._target, EmbeddedTarget) else {}


def global_options(*, hidden: bool) -> list[click.Parameter]:
    """The global options; the root shows them in its help, the commands only accept them."""
    options: list[click.Parameter] = [
        click.Option(
            [flag, name],
            metavar=metavar,
            help=text,
            hidden=hidden,
            expose_value=False,
            callback=remember,
        )
        for flag, name, metavar, text in (
            ("--as", "actor", "ACTOR", "Actor recorded for writes that go straight to storage."),
            ("--store", "store", "URI", "Graph path or s3:// URI, for any command on a graph."),
            ("--server", "server", "NAME|URL", "Server to address, by its configured name or URL."),
            ("--graph", "graph", "GRAPH_ID", "Graph on that server."),
            ("--profile", "profile", "NAME", "Profile of the operator config to select a graph."),
        )
    ]
    quiet = click.Option(
        ["--quiet"],
        is_flag=True,
        default=None,
        help="Show no progress, and do not name the target of writes that leave this machine.",
        hidden=hidden,
        expose_value=False,
        callback=remember,
    )
    return [*options, quiet]


def remember(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> None:
    """Keep the value of an option of `GlobalOptions`."""
    # click shares `meta` between a command and its parents, and parses the root first.
    if value is not None:
        ctx.meta[f"{_META}{param.name}"] = value


def merge_uri_option(ctx: click.Context) -> None:
    """Put the graph that `--uri` names where the argument URI would be."""
    given = ctx.meta.get(f"{_META}uri_option")
    if given is not None and "uri" in ctx.params:
        if ctx.params["uri"] is not None:
            raise click.UsageError("the graph is given twice; use --uri or URI.")
        ctx.params["uri"] = given


def current_context() -> Context:
    """The context of the command that runs."""
    context = click.get_current_context().find_object(Context)
    assert context is not None
    return context


class BranchOption(click.Option):
    """An option for a branch, which is that of the project file or `main` if it is not given."""


def select_graph(
    uri: str | None, context: Context, alias_graph: str | None = None
) -> EmbeddedTarget | RemoteTarget:
    """The graph that a command was given, if it is one this version can reach."""
    from omnigraph.config.selection import ClusterTarget
    from omnigraph.errors import UsageError

    target = context.select(uri, alias_graph)
    if uri is not None and context.options.project_graph is not None:
        warn(f"a graph address is given, so --target {context.options.project_graph} is ignored")
    if target is None:
        raise UsageError(
            "URI must be provided via <URI>, --target, or config; OMNIGRAPH_URI and a graph in this "
            "folder work too"
        )
    return context.open_cluster(target) if isinstance(target, ClusterTarget) else target


def graph_uri(uri: str | None, context: Context, alias_graph: str | None = None) -> str:
    """The address of the graph that a command was given, which has to be storage."""
    from omnigraph.config.selection import EmbeddedTarget

    target = select_graph(uri, context, alias_graph)
    if isinstance(target, EmbeddedTarget):
        return target.uri
    if context.plane is Plane.STORAGE:
        refuse_remote(context.command, target.url)
    words = click.get_current_context().command_path.partition(" ")[2]
    refuse_direct(f"`{words}`", target.url)


def address_or_server(
    uri: str | None, context: Context, alias_graph: str | None = None
) -> str | ServedGraph:
    """The address of storage, or the graph behind a server, that a command was given."""
    from omnigraph.config.selection import EmbeddedTarget

    target = select_graph(uri, context, alias_graph)
    return target.uri if isinstance(target, EmbeddedTarget) else served_graph(target, context)


def served_graph(target: RemoteTarget, context: Context) -> ServedGraph:
    """The graph behind a server, with the token for it. No request is sent yet."""
    from omnigraph.cli.remote import ServedGraph

    return ServedGraph(target, context.token_for(target), context)


def open_graph(
    uri: str,
    context: Context | None = None,
    *,
    read_only: bool = False,
    writes: bool = True,
    reads_obey: bool = False,
) -> Graph:
    """Open a graph on its main branch, in the name of the actor that the context has.

    `writes` is False for a dry run, which opens the graph for writing and changes nothing. Reads of a
    command obey no policy, unless it says that they do.
    """
    from omnigraph.api.graph import open

    if context is None:
        return open(uri, read_only=read_only)
    policy = None if read_only and not reads_obey else context.write_policy()
    if not read_only and writes and not is_local(uri):
        echo_write(uri, "direct", quiet=bool(context.options.quiet))
    return open(uri, read_only=read_only, actor=context.actor, policy=policy)


def is_local(uri: str) -> bool:
    """Whether an address is on a disk of this machine."""
    return "://" not in uri or uri.startswith("file://")
