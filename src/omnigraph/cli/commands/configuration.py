"""`omnigraph login`, `logout`, `profile list`, `profile show` and `config migrate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.answers import write_answer
from omnigraph.config.credentials import credentials_path, remove_token, store_token
from omnigraph.config.legacy import FILE_NAME, read_legacy_config
from omnigraph.config.selection import (
    ClusterTarget,
    EmbeddedTarget,
    RemoteTarget,
    Target,
    find_profile,
)
from omnigraph.errors import UsageError
from omnigraph.settings import read_settings

if TYPE_CHECKING:
    from omnigraph.config.migration import Migration
    from omnigraph.config.operator import Binding

_MAX_TOKEN_BYTES = 64 * 1024


@declare("login")
@click.argument("name")
@click.option(
    "--token",
    metavar="TOKEN",
    help="The token. Other users can see it in the list of processes; standard input is safer.",
)
@json_option
@click.pass_obj
def login(context: Context, name: str, token: str | None, as_json: bool) -> None:
    """Store the bearer token for the server NAME of the operator config.

    Without --token one line is read from standard input, hidden on a terminal.
    """
    path = credentials_path(context.operator)
    store_token(path, name, (_read_token(name) if token is None else token).strip())
    declared = name in context.operator.servers
    if not declared:
        print(
            f"note: {context.operator.path} has no server '{name}'; "
            f"the token is used once servers.{name}.url is set",
            file=sys.stderr,
        )
    document = {"server": name, "credentials_path": str(path), "declared": declared}
    write_answer(document, [f"stored the token for {name} in {path}"], as_json=as_json)


def _read_token(name: str) -> str:
    if sys.stdin.isatty():
        prompted: str = click.prompt(
            f"Token for {name}", default="", show_default=False, hide_input=True, err=True
        )
        return prompted
    line = sys.stdin.buffer.readline(_MAX_TOKEN_BYTES + 1)
    if len(line) > _MAX_TOKEN_BYTES:
        raise UsageError(f"the token has more than {_MAX_TOKEN_BYTES // 1024} KiB")
    return line.decode("utf-8", errors="replace")


@declare("logout")
@click.argument("name")
@json_option
@click.pass_obj
def logout(context: Context, name: str, as_json: bool) -> None:
    """Remove the stored token of the server NAME."""
    path = credentials_path(context.operator)
    removed = remove_token(path, name)
    line = f"removed the token for {name} from" if removed else f"there is no token for {name} in"
    document = {"server": name, "credentials_path": str(path)}
    write_answer(document, [f"{line} {path}"], as_json=as_json)


@declare("profile list")
@json_option
@click.pass_obj
def profile_list(context: Context, as_json: bool) -> None:
    """List the profiles of the operator config; `*` marks the one that is selected."""
    selected = context.options.profile or read_settings().profile
    profiles = [
        {"name": name, **_binding(profile), "selected": name == selected}
        for name, profile in context.operator.profiles.items()
    ]
    lines = [
        f"{'*' if profile['selected'] else ' '} {profile['name']}  {_described(profile)}"
        for profile in profiles
    ]
    write_answer({"profiles": profiles}, lines or ["(no profiles)"], as_json=as_json)


@declare("profile show")
@click.argument("name", required=False)
@json_option
@click.pass_obj
def profile_show(context: Context, name: str | None, as_json: bool) -> None:
    """Show the profile NAME, or the graph that commands select now, and why.

    An address on the command line wins over --profile, that over OMNIGRAPH_URI, that over OMNIGRAPH_PROFILE,
    that over cli.graph of the project file, that over the defaults of the operator config, and that over a
    graph in the current folder.
    """
    if name is not None:
        profile = _binding(find_profile(name, context.operator))
        document: dict[str, Any] = {"name": name, **profile}
        write_answer(document, [f"{name}  {_described(profile)}"], as_json=as_json)
        return
    target = context.select(None)
    selected = context.options.profile or read_settings().profile
    document = {"profile": selected, **_target(target)}
    write_answer(document, _target_lines(target, document), as_json=as_json)


def _binding(profile: Binding) -> dict[str, str | None]:
    return {
        "server": profile.server,
        "cluster": profile.cluster,
        "store": profile.store,
        "default_graph": profile.default_graph,
    }


def _described(profile: dict[str, Any]) -> str:
    kind = next(kind for kind in ("server", "cluster", "store") if profile[kind] is not None)
    graph = profile["default_graph"]
    return f"{kind} {profile[kind]}" + ("" if graph is None else f", graph {graph}")


def _target(target: Target | None) -> dict[str, Any]:
    match target:
        case None:
            return {"kind": None, "address": None, "graph": None, "selected_by": None}
        case EmbeddedTarget():
            kind, address, graph = "store", target.uri, None
        case RemoteTarget():
            kind, address, graph = "server", target.base_url, target.graph
        case ClusterTarget():
            kind, address, graph = "cluster", target.root, target.graph
    return {"kind": kind, "address": address, "graph": graph, "selected_by": target.origin}


def _target_lines(target: Target | None, document: dict[str, Any]) -> Iterator[str]:
    if target is None:
        yield "no graph is selected"
        return
    yield f"{document['kind']}: {document['address']}"
    if document["graph"] is not None:
        yield f"graph: {document['graph']}"
    yield f"selected by: {target.origin}"


@declare("config migrate")
@click.option(
    "--config",
    "path",
    metavar="FILE",
    help=f"Project file.  [default: OMNIGRAPH_CONFIG, or {FILE_NAME}]",
)
@click.option("--write", is_flag=True, help="Write the files instead of only proposing them.")
@json_option
@click.pass_obj
def config_migrate(context: Context, path: str | None, write: bool, as_json: bool) -> None:
    """Split a project file omnigraph.yaml into a cluster.yaml and the operator config.

    With --write, keys that the operator config does not have are added to it; the previous file is kept as
    config.yaml.bak. A cluster.yaml that exists is kept, and the proposal is written beside it.
    """
    from omnigraph.config.migration import plan_migration, write_migration

    settings = read_settings()
    named = path or settings.config or FILE_NAME
    if not Path(named).exists():
        raise UsageError(f"nothing to migrate: '{named}' does not exist")
    legacy = read_legacy_config(path, settings)
    plan = plan_migration(legacy)
    report = plan.to_json()
    if not write:
        write_answer(report, _report_lines(plan, report), as_json=as_json)
        return
    written = [str(file) for file in write_migration(plan, context.operator.path)]
    lines = [*_report_lines(plan, report), *(f"wrote {file}" for file in written)]
    write_answer({"report": report, "written": written}, lines, as_json=as_json)


def _report_lines(plan: Migration, report: dict[str, Any]) -> Iterator[str]:
    yield f"migration of {plan.source}"
    if plan.cluster_yaml is not None:
        yield "\nteam half -> cluster.yaml"
        yield from (f"  {line}" for line in plan.cluster_yaml.splitlines())
    if plan.operator:
        yield "\npersonal half -> ~/.omnigraph/config.yaml"
        for key, text in report["operator_merge"].items():
            first, *rest = text.splitlines()
            yield f"  {key}: {first}" if not rest else f"  {key}:"
            yield from (f"    {line}" for line in ([first, *rest] if rest else []))
    if plan.dropped:
        yield "\nno destination"
        yield from (f"  {entry.key}: {entry.reason}" for entry in plan.dropped)
    if plan.manual_steps:
        yield "\nmanual steps"
        yield from (f"  - {step}" for step in plan.manual_steps)
