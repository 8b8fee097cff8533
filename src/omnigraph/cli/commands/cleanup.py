"""`omnigraph cleanup`: delete old versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command_table import refuse_remote
from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument
from omnigraph.cli.output.answers import write_answer
from omnigraph.diagnostics import counted
from omnigraph.errors import UsageError
from omnigraph.limits import CLEANUP_MIN_AGE_SECONDS

if TYPE_CHECKING:
    from omnigraph.maintenance.cleanup import CleanupReport

_DURATION = re.compile(r"([0-9]{1,9})([smhdw]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@declare("cleanup")
@uri_argument
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of versions to keep per table; at least 10 is recommended.",
)
@click.option(
    "--older-than", metavar="AGE", help="Only versions older than this: 90s, 30m, 12h, 7d, 4w."
)
@click.option(
    "--min-age",
    default=f"{CLEANUP_MIN_AGE_SECONDS // 3600}h",
    show_default=True,
    metavar="AGE",
    help="Always keep versions replaced within this age, for running readers.",
)
@click.option("--confirm", is_flag=True, help="Delete. Without it nothing is deleted.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would be deleted, and what is kept and why."
)
@json_option
@click.pass_obj
def command(
    context: Context,
    uri: str | None,
    keep: int | None,
    older_than: str | None,
    min_age: str,
    confirm: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete old versions of the graph at URI. Their commits can no longer be read.

    With both --keep and --older-than, both must allow a deletion. Versions that branches need are kept.
    """
    if uri is not None:
        refuse_remote("cleanup", uri)
    uri = graph_uri(uri, context)
    if keep is None and older_than is None:
        raise UsageError("cleanup needs a policy: --keep <n>, --older-than <age> or both")
    age = None if older_than is None else _age(older_than)
    least = _age(min_age)
    policy = _policy(keep, older_than, min_age)
    if not confirm and not dry_run:
        click.echo(
            f"cleanup is destructive ({policy}): run it again with --confirm, or with --dry-run to "
            "see what would go",
            err=True,
        )
        return
    report = open_graph(uri, context).maintenance.cleanup(
        keep_versions=keep,
        older_than=age,
        min_age=least,
        dry_run=dry_run,
    )
    lines = _lines(uri, policy, report)
    write_answer({"uri": uri, **report.to_json()}, lines, as_json=as_json)


def _age(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a valid age; use a number and a unit, such as 12h or 7d")
    number, unit = match.groups()
    return timedelta(seconds=int(number) * _SECONDS[unit])


def _policy(keep: int | None, older_than: str | None, min_age: str) -> str:
    parts = [] if keep is None else [f"keep {keep}"]
    if older_than is not None:
        parts.append(f"older than {older_than}")
    return ", ".join([*parts, f"minimum age {min_age}"])


def _lines(uri: str, policy: str, report: CleanupReport) -> Iterator[str]:
    done = "would remove" if report.dry_run else "removed"
    removed, failed = report.removed, report.failed
    yield (
        f"cleanup {uri} ({policy}) — {done} {counted(removed.versions, 'version')} "
        f"({counted(removed.bytes, 'byte')}) "
        f"across {counted(len(report.tables) - len(failed), 'table')}"
    )
    if report.dry_run:
        for table in report.tables:
            kept = "".join(f", keeps {count} ({reason})" for reason, count in table.kept.items())
            yield f"{table.table_key}: {done} {counted(table.removed.versions, 'version')}{kept}"
    for orphan in report.orphans:
        yield f"{done} unreferenced: {orphan}"
    if report.temporary:
        yield f"{done} {counted(report.temporary, 'temporary file')} of writers that were killed"
    if failed:
        yield f"failed: {', '.join(f'{table.table_key} ({table.error})' for table in failed)}"
