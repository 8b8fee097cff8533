"""`omnigraph revert` and `omnigraph cherry-pick`: undo a commit, or apply it to another branch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import FAILURE
from omnigraph.cli.framework import declare
from omnigraph.cli.operator_config import chosen_engine
from omnigraph.cli.options import (
    branch_option,
    comparing_engine_options,
    expect_head_option,
    full_option,
    idempotency_key_option,
    json_option,
    message_option,
    uri_option,
    with_options,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.output.changes import RowValues
from omnigraph.cli.output.conflicts import conflict_lines, reporting_conflicts
from omnigraph.cli.progress import progress
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.merge.merger import AppliedCommit

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    uri_option,
    full_option,
    click.option("--dry-run", is_flag=True, help="Report the result without changing anything."),
    comparing_engine_options,
    expect_head_option(),
    idempotency_key_option,
    message_option,
    json_option,
    click.pass_obj,
)


@declare("revert")
@click.argument("commit")
@branch_option
@with_options(_OPTIONS)
def command(context: Context, commit: str, branch: str, **options: Any) -> int | None:
    """Undo the changes of COMMIT in a new commit. Rows changed since then are conflicts."""
    return _apply(context, "revert", commit, branch, **options)


@declare("cherry-pick")
@click.argument("commit")
@click.option(
    "--onto",
    default="main",
    show_default=True,
    metavar="BRANCH",
    help="Target branch.",
)
@with_options(_OPTIONS)
def cherry_pick(context: Context, commit: str, onto: str, **options: Any) -> int | None:
    """Apply the changes of COMMIT to another branch in a new commit."""
    return _apply(context, "pick", commit, onto, **options)


def _apply(
    context: Context,
    verb: Literal["revert", "pick"],
    commit: str,
    branch: str,
    uri: str | None,
    full: bool,
    dry_run: bool,
    engine: str | None,
    master: str | None,
    expect_head: str | None,
    idempotency_key: str | None,
    message: str | None,
    as_json: bool,
) -> int | None:
    graph = open_graph(graph_uri(uri, context), context)
    values = RowValues(graph.schema.catalog, full=full)
    with reporting_conflicts(values), progress(f"{verb}ing {commit}", as_json=as_json) as shown:
        apply = graph.revert if verb == "revert" else graph.cherry_pick
        done = apply(
            commit,
            branch=branch,
            dry_run=dry_run,
            message=message,
            expected_head=expect_head,
            idempotency_key=idempotency_key,
            progress=shown,
            engine=chosen_engine(engine, master),
        )
    return _answer(done, verb, values, as_json)


def _answer(done: AppliedCommit, verb: str, values: RowValues, as_json: bool) -> int | None:
    warn_of(done.receipt)
    document: dict[str, Any] = {
        "branch": done.branch,
        f"{verb}ed": done.source_commit_id,
        "conflicts": [conflict.to_json() for conflict in done.conflicts],
    }
    if done.conflicts_total > len(done.conflicts):
        document["conflicts_total"] = done.conflicts_total
    if done.dry_run:
        document["dry_run"] = True
    document |= receipt_fields(done.receipt)
    write_answer(document, _lines(done, verb, values), as_json=as_json)
    return FAILURE if done.conflicts else None


def _lines(done: AppliedCommit, verb: str, values: RowValues) -> Iterator[str]:
    where = f"{done.source_commit_id} on {done.branch}"
    if done.conflicts:
        yield f"cannot {verb} {where}: {counted(done.conflicts_total, 'conflict')}"
        style = Style.of(sys.stdout)
        yield from conflict_lines(done.conflicts, done.conflicts_total, style, values)
        return
    what = f"would {verb}" if done.dry_run else f"{verb}ed"
    nothing = "" if done.dry_run or done.receipt.graph_commit_id else ": nothing to change"
    yield f"{what} {where}{nothing}"
    yield from commit_lines(done.receipt)
