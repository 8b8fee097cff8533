"""`omnigraph cluster …`: check, plan, approve and apply the declaration of a cluster, and watch over it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context
from omnigraph.cli.exits import FAILURE
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.answers import write_answer
from omnigraph.errors import LegacyConfigError, UsageError

if TYPE_CHECKING:
    from omnigraph.cluster.documents import (
        Change,
        Output,
        PlanOutput,
        StateObservations,
        StatusOutput,
    )

deployment_option = click.option(
    "--deployment-id",
    metavar="ID",
    help="With --server, the id to deploy under; otherwise an interrupted deployment to recover first.",
)
timeout_option = click.option(
    "--timeout",
    "seconds",
    metavar="S",
    type=click.IntRange(1, 3600),
    default=300,
    show_default=True,
    help="With --server, how long to wait for the result.",
)
config_option = click.option(
    "--config",
    "folder",
    metavar="DIR",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory of the cluster.yaml.",
)


@declare("cluster validate")
@config_option
@json_option
def cluster_validate(folder: Path, as_json: bool) -> int | None:
    """Check cluster.yaml and the schemas, queries and policies it names. Reads no storage."""
    from omnigraph.cluster.resources import validate

    found = validate(folder)
    counts = f"{len(found.resources)} resource(s), {len(found.dependencies)} dependency edge(s)"
    headline = f"cluster config valid: {counts}" if found.ok else "cluster config invalid"
    return _answer(found, [headline], as_json)


@declare("cluster plan")
@config_option
@json_option
@click.pass_obj
def cluster_plan(context: Context, folder: Path, as_json: bool) -> int | None:
    """Show what apply would change, with the migration of every schema. Changes nothing.

    With --server, the server says what it would change.
    """
    if (target := context.server_target()) is not None:
        from omnigraph.cli.cluster_calls import ClusterCalls

        return _show_plan(ClusterCalls(target, context).plan(folder), as_json)
    from omnigraph.cluster.apply import plan

    return _show_plan(plan(folder), as_json)


def _show_plan(made: PlanOutput, as_json: bool) -> int | None:
    gates = len(made.approvals_required)
    lines = [f"cluster plan: {len(made.changes)} change(s), {gates} approval gate(s)"]
    for change in made.changes:
        lines.append(_change_line(change))
        if change.migration is not None:
            text = json.dumps(change.migration.steps, ensure_ascii=False, indent=2)
            lines += (f"    {line}" for line in text.splitlines())
    if not made.changes:
        lines.append("  no changes")
    return _answer(made, lines if made.ok else ["cluster plan failed"], as_json)


@declare("cluster apply")
@config_option
@deployment_option
@click.option("--no-wait", is_flag=True, help="With --server, do not wait for the result.")
@timeout_option
@json_option
@click.pass_obj
def cluster_apply(
    context: Context,
    folder: Path,
    deployment_id: str | None,
    no_wait: bool,
    seconds: int,
    as_json: bool,
) -> int | None:
    """Create and migrate graphs, and record queries and policies, as the directory declares.

    Graphs that are no longer declared are deleted only after `cluster approve`. What a run could not do is
    reported as blocked or deferred; running it again goes on from there.

    With --server, a running server does it and serves the result; exit 5 if it is not done in time. Deleting a
    graph then needs no approval, but the permission to change its schema.
    """
    if (target := context.server_target()) is not None:
        from omnigraph.cli.cluster_calls import ClusterCalls

        calls = ClusterCalls(target, context)
        return calls.apply(
            folder, deployment_id, wait=not no_wait, seconds=seconds, as_json=as_json
        )
    from omnigraph.cluster.apply import apply

    def announce(deployment_id: str) -> None:
        print(f"deployment {deployment_id}", file=sys.stderr, flush=True)

    done = apply(folder, _actor(context), announce, outstanding=deployment_id)
    counts = f"{done.applied_count} applied, {done.deferred_count} deferred/blocked"
    lines = [f"cluster apply: {counts}" if done.ok else "cluster apply failed"]
    lines += (f"{_change_line(one)} [{_disposition(one)}]" for one in done.changes)
    if (state := done.state_observations) is not None:
        lines.append(
            f"revision {state.state_revision}, converged: {_yes(done.converged)}, "
            f"ledger written: {_yes(done.state_written)}"
        )
    if done.state_written:
        lines.append("running servers pick it up within seconds")
    return _answer(done, lines, as_json)


@declare("cluster approve")
@click.argument("resource")
@config_option
@json_option
@click.pass_obj
def cluster_approve(context: Context, resource: str, folder: Path, as_json: bool) -> int | None:
    """Allow the deletion of RESOURCE, for example graph.team, by the next apply.

    The approval ends when the declaration or the graph's entry in the ledger changes.
    """
    from omnigraph.cluster.apply import approve

    actor = _actor(context)
    if actor is None:
        raise UsageError(
            "an approval needs an actor; pass --as, or set cli.actor or operator.actor"
        )
    given = approve(folder, resource, actor)
    line = f"cluster approve: {given.operation} {given.resource} approved by {actor} (approval {given.approval_id})"
    return _answer(given, [line if given.ok else "cluster approve failed"], as_json)


@declare("cluster status")
@config_option
@click.option("--deployment-id", metavar="ID", help="With --server, the deployment to show.")
@click.option("--wait", is_flag=True, help="Wait for the result of the deployment.")
@timeout_option
@json_option
@click.pass_obj
def cluster_status(
    context: Context,
    folder: Path,
    deployment_id: str | None,
    wait: bool,
    seconds: int,
    as_json: bool,
) -> int | None:
    """Show revision, lock and resource statuses of the ledger. Opens no graph and takes no lock.

    With --server, show its deployments, or one of them.
    """
    if (target := context.server_target()) is not None:
        from omnigraph.cli.cluster_calls import ClusterCalls

        calls = ClusterCalls(target, context)
        if deployment_id is None:
            return calls.status(as_json=as_json)
        return calls.one(deployment_id, seconds=seconds if wait else 0, as_json=as_json)
    if deployment_id is not None or wait:
        raise click.UsageError("--deployment-id and --wait need --server.")
    from omnigraph.cluster.observe import status

    return _status(status(folder), "status", as_json)


@declare("cluster observe")
@config_option
@json_option
def cluster_observe(folder: Path, as_json: bool) -> int | None:
    """Open every declared graph and show how it differs from the ledger. Changes nothing."""
    from omnigraph.cluster.observe import observe

    return _status(observe(folder), "observe", as_json)


@declare("cluster refresh")
@config_option
@json_option
@click.pass_obj
def cluster_refresh(context: Context, folder: Path, as_json: bool) -> int | None:
    """Open every declared graph and record its schema, so that apply repairs what has drifted."""
    from omnigraph.cluster.observe import refresh

    return _status(refresh(folder, context.options.actor), "refresh", as_json)


@declare("cluster import")
@config_option
@json_option
@click.pass_obj
def cluster_import(context: Context, folder: Path, as_json: bool) -> int | None:
    """Create the ledger. Graphs that exist where they are declared are adopted."""
    from omnigraph.cluster.observe import import_

    return _status(import_(folder, context.options.actor), "import", as_json)


@declare("cluster force-unlock")
@click.argument("lock_id")
@config_option
@json_option
def cluster_force_unlock(lock_id: str, folder: Path, as_json: bool) -> int | None:
    """Remove the lock LOCK_ID of a command that has died. `cluster status` shows the id."""
    from omnigraph.cluster.observe import force_unlock

    done = force_unlock(folder, lock_id)
    line = f"cluster force-unlock: removed lock {lock_id}"
    return _answer(done, [line if done.ok else "cluster force-unlock failed"], as_json)


def _actor(context: Context) -> str | None:
    """Who applies or approves; files are read only without --as."""
    try:
        return context.actor
    except LegacyConfigError as error:
        raise UsageError(f"{error}; fix omnigraph.yaml, or pass --as") from None


def _answer(found: Output, lines: Iterable[str], as_json: bool) -> int | None:
    shown = [*lines, *(one.render() for one in found.diagnostics)]
    write_answer(found.to_json(), shown, as_json=as_json)
    return None if found.ok else FAILURE


def _status(found: StatusOutput, command: str, as_json: bool) -> int | None:
    lines = [] if found.ok else [f"cluster {command} failed"]
    if (state := found.state_observations) is not None and (found.ok or state.state_found):
        lines += _state_lines(state, command)
        for address, status in found.resource_statuses.items():
            if status.status != "applied":
                conditions = f" ({', '.join(status.conditions)})" if status.conditions else ""
                lines.append(f"  {address}: {status.status}{conditions}")
    return _answer(found, lines, as_json)


def _state_lines(state: StateObservations, command: str) -> Iterator[str]:
    yield f"cluster {command}: revision {state.state_revision}, {state.resource_count} resource(s)"
    if command in ("status", "observe"):
        yield f"applied config: {state.applied_config_digest or 'none'}"
    else:
        yield f"state: {state.state_cas or 'none'}"
    if state.locked:
        age = "" if state.lock_age_seconds is None else f", {state.lock_age_seconds} s old"
        yield f"lock: {state.lock_id} of `cluster {state.lock_operation}`, process {state.lock_pid}{age}"
    else:
        yield "lock: free"


def _change_line(change: Change) -> str:
    marks = " [bindings]" if change.binding_change else ""
    marks += " [metadata]" if change.metadata_change else ""
    return f"  {change.operation.capitalize()} {change.resource}{marks}"


def _disposition(change: Change) -> str:
    name = (change.disposition or "").capitalize()
    return name if change.reason is None else f"{name}: {change.reason}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
