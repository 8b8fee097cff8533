"""`omnigraph status`, `ensure-indices`, `optimize`, `cleanup`, `repair` and `verify`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context, address_or_server, graph_uri, is_local, open_graph
from omnigraph.cli.exits import FAILURE, SUCCESS, Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option,
    cluster_options,
    json_option,
    require_consent,
    uri_argument,
    yes_option,
)
from omnigraph.cli.output.answers import (
    Cell,
    commit_lines,
    receipt_fields,
    warn_of,
    write_answer,
    write_document,
)
from omnigraph.cli.output.results import TableLayout, write_grid
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.errors import RepairRefused, UsageError
from omnigraph.limits import CLEANUP_MIN_AGE_SECONDS

if TYPE_CHECKING:
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexedTable, IndexReport
    from omnigraph.maintenance.optimize import OptimizedTable, OptimizeReport
    from omnigraph.maintenance.repair import RepairedTable, RepairReport
    from omnigraph.maintenance.verify_report import VerifyProblem, VerifyReport


_STATUS_LAYOUT = TableLayout(max_column_width=60, overlong="wrap")
_STATUS_COLUMNS = ("type", "rows", "files", "bytes", "indexes", "vectors")


@declare("status")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def status(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Show sizes, index coverage, embeddings and interrupted writes, with recommended actions."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        found = open_graph(graph, read_only=True).maintenance.status(branch)
        document = found.to_json() | {"uri": graph}
    else:
        document = graph.status(branch)
    if as_json:
        write_document(document, sys.stdout)
    else:
        _write_status(document)


def _write_status(status: Mapping[str, Any]) -> None:
    out = sys.stdout
    out.write(
        f"{status['uri']} on branch {status['branch']}: version {status['manifest_version']}, "
        f"commit {status['graph_commit_id']}, {counted(status['branches'], 'branch', 'branches')}\n"
    )
    rows = [_status_row(table) for table in status["tables"]]
    write_grid(_STATUS_COLUMNS, rows, out, _STATUS_LAYOUT, Style.of(out))
    recovery = status["recovery"]
    out.write(
        f"interrupted writes: {recovery['pending']} pending, "
        f"{recovery['quarantined']} for an operator\n"
    )
    for lease in status["leases"]:
        out.write(f"{lease['name']} is being written by {lease['owner']}\n")
    for line in status["advice"]:
        out.write(f"advice: {line}\n")


def _status_row(table: Mapping[str, Any]) -> list[str]:
    indexes = [f"{i['column']} ({i['unindexed_rows']} behind)" for i in table["indexes"]]
    vectors = [
        f"{v['property']}: {v['ready']} ready, {v['pending']} pending, {v['stale']} stale"
        for v in table["embeddings"]
    ]
    return [
        table["table_key"],
        f"{table['rows']:,}",
        f"{table['fragments']:,}",
        f"{table['bytes']:,}",
        ", ".join(indexes),
        "; ".join(vectors),
    ]


@declare("ensure-indices")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def ensure_indices(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Build the indexes that the schema declares and the branch lacks.

    Results never depend on indexes; they speed up lookups, first searches and `nearest` over many
    vectors. Rows written later are found too, and indexed at the next compaction.
    """
    uri = graph_uri(uri, context)
    graph = open_graph(uri, context)
    with progress("building indexes") as shown:
        report = graph.maintenance.ensure_indexes(branch, progress=shown)
    warn_of(report.receipt)
    if as_json:
        tables = [table.to_json() for table in report.tables]
        document = {"uri": uri, "branch": branch, "tables": tables}
        write_document(document | receipt_fields(report.receipt), sys.stdout)
    else:
        _print_indexes(uri, report)


def _print_indexes(uri: str, report: IndexReport) -> None:
    out = sys.stdout
    out.write(f"ensure-indices {uri} — {counted(len(report.tables), 'table')}\n")
    rows = [row for table in report.tables for row in _index_rows(table)]
    if rows:
        columns = ("table", "column", "kind", "state", "rows not indexed")
        write_grid(columns, rows, out, TableLayout(), Style.of(out))
    out.writelines(f"{line}\n" for line in commit_lines(report.receipt))


def _index_rows(table: IndexedTable) -> Iterator[tuple[Cell, ...]]:
    for word, states in (("created", table.created), ("existing", table.existing)):
        for state in states:
            yield table.table_key, state.column, state.kind.value, word, state.unindexed_rows
    for missing in table.pending:
        yield table.table_key, missing.column, None, f"pending: {missing.reason}", None


_KEY_WIDTH = 40


@declare("optimize")
@uri_argument
@cluster_options
@json_option
@click.pass_obj
def optimize(context: Context, uri: str | None, as_json: bool) -> None:
    """Compact the tables of the graph at URI and refresh its indexes as one commit.

    Rows and results do not change; earlier commits stay readable.
    """
    uri = graph_uri(uri, context)
    report = open_graph(uri, context).maintenance.optimize()
    warn_of(report.receipt)
    document = {"uri": uri, "tables": [table.to_json() for table in report.tables]}
    write_answer(
        document | receipt_fields(report.receipt), _optimize_lines(uri, report), as_json=as_json
    )


def _optimize_lines(uri: str, report: OptimizeReport) -> Iterator[str]:
    yield f"optimize {uri} — {counted(len(report.tables), 'table')}"
    for table in report.tables:
        yield f"{table.table_key:<{_KEY_WIDTH}} {_outcome(table)}"
    yield from commit_lines(report.receipt)


def _outcome(table: OptimizedTable) -> str:
    if table.skipped is not None:
        return f"skipped ({table.skipped})"
    if not table.committed:
        return "no-op"
    return f"frags {table.fragments_removed} → {table.fragments_added} ✓"


_DURATION = re.compile(r"([0-9]{1,9})([smhdw]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@declare("cleanup")
@uri_argument
@cluster_options
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
@yes_option
@json_option
@click.pass_obj
def cleanup(
    context: Context,
    uri: str | None,
    keep: int | None,
    older_than: str | None,
    min_age: str,
    confirm: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete old versions of the graph at URI. Their commits can no longer be read.

    With both --keep and --older-than, both must allow a deletion. Versions that branches need are kept.
    """
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
    if not dry_run and not is_local(uri):
        require_consent("deleting old versions", uri, yes=yes)
    report = open_graph(uri, context, writes=not dry_run).maintenance.cleanup(
        keep_versions=keep,
        older_than=age,
        min_age=least,
        dry_run=dry_run,
    )
    lines = _cleanup_lines(uri, policy, report)
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


def _cleanup_lines(uri: str, policy: str, report: CleanupReport) -> Iterator[str]:
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


@declare("repair")
@uri_argument
@cluster_options
@branch_option
@click.option(
    "--confirm", is_flag=True, help="Apply the repair. Without it the findings are only shown."
)
@click.option("--force", is_flag=True, help="Also accept changes that match no known operation.")
@click.option("--rollback", is_flag=True, help="Restore tables to their published version instead.")
@json_option
@click.pass_obj
def repair(
    context: Context,
    uri: str | None,
    branch: str,
    confirm: bool,
    force: bool,
    rollback: bool,
    as_json: bool,
) -> None:
    """Show tables with unpublished changes, and quarantined interrupted writes.

    With --confirm, maintenance-only changes are published; with --confirm --force all others
    too, or with --rollback they are discarded.
    """
    if force and not confirm:
        raise click.UsageError("--force requires --confirm: look at the preview first.")
    if rollback and not force:
        raise click.UsageError(
            "--rollback requires --confirm and --force: it discards what it finds."
        )
    uri = graph_uri(uri, context)
    report = open_graph(uri, context).maintenance.repair(
        branch, confirm=confirm, force=force, rollback=rollback
    )
    write_answer({"uri": uri, **report.to_json()}, _repair_lines(uri, report), as_json=as_json)
    if report.refused:
        raise RepairRefused(tuple(table.table_key for table in report.refused))


def _repair_lines(uri: str, report: RepairReport) -> Iterator[str]:
    mode = "confirm" if report.options.confirm else "preview"
    yield f"repair {uri} — {mode} mode, {counted(len(report.tables), 'table')}"
    for table in report.tables:
        yield _table_line(table)
    for name in report.removed_sidecars:
        yield f"removed sidecar {name}"
    for found in report.quarantined:
        yield f"quarantined sidecar {found.name}: {found.reason}"
    if report.commit is not None:
        yield f"commit {report.commit.id}"
    undecided = any(table.published != table.found for table in report.tables) or report.quarantined
    if not report.options.confirm and undecided:
        yield "nothing was changed; run again with --confirm to act"


def _table_line(table: RepairedTable) -> str:
    moved = table.published != table.found
    versions = f"{table.published} → {table.found}" if moved else f"{table.published}"
    line = f"{table.table_key}  {table.action.value}  {table.drift.value}  {versions}"
    if table.operations:
        line += f"  [{', '.join(table.operations)}]"
    return f"{line}  ({table.error})" if table.error else line


_SHOWN_EXAMPLES = 5
"""Examples shown per problem; the JSON document has up to a hundred."""


@declare("verify")
@uri_argument
@click.option(
    "--branch",
    "branches",
    multiple=True,
    metavar="BRANCH",
    help="Branch to check; may be repeated. Default: all branches.",
)
@json_option
@click.pass_obj
def verify(context: Context, uri: str | None, branches: tuple[str, ...], as_json: bool) -> int:
    """Validate every row of the graph at URI against its schema, and every file it needs.

    Nothing is changed. The exit code is 1 when problems were found.
    """
    uri = graph_uri(uri, context)
    graph = open_graph(uri, read_only=True)
    with progress("verifying") as shown:
        report = graph.maintenance.verify(branches or None, progress=shown)
    write_answer({"uri": uri, **report.to_json()}, _verify_lines(uri, report), as_json=as_json)
    return SUCCESS if report.ok else FAILURE


def _verify_lines(uri: str, report: VerifyReport) -> Iterator[str]:
    checked = (
        f"{counted(len(report.branches), 'branch', 'branches')}, "
        f"{counted(report.tables, 'table')}, {counted(report.rows, 'row')}, "
        f"{counted(report.files, 'file')}"
    )
    state = "ok" if report.ok else counted(len(report.problems), "problem")
    yield f"verify {uri} — {checked}: {state}"
    for problem in report.problems:
        yield from _problem(problem)


def _problem(problem: VerifyProblem) -> Iterator[str]:
    yield f"{problem.kind.value}  {problem.message}"
    for example in problem.examples[:_SHOWN_EXAMPLES]:
        yield f"    {example}"
    if problem.count > _SHOWN_EXAMPLES:
        yield f"    and {problem.count - min(_SHOWN_EXAMPLES, len(problem.examples))} more"
