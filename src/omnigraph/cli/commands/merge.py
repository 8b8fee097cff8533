"""`omnigraph merge` and `omnigraph branch merge`, which is the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import FAILURE
from omnigraph.cli.framework import declare
from omnigraph.cli.operator_config import chosen_engine
from omnigraph.cli.options import (
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
from omnigraph.cli.output.conflicts import conflict_lines, reporting_conflicts, write_report
from omnigraph.cli.progress import progress
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted
from omnigraph.errors import MergeConflicts
from omnigraph.merge.resolution import read_resolutions

if TYPE_CHECKING:
    from omnigraph.merge.merger import MergeResult

_WORDS = ("fail", "ours", "theirs")


def _strategies(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> Mapping[str, str]:
    found = {}
    for text in given:
        name, equals, word = text.rpartition("=")
        if word not in _WORDS:
            raise click.BadParameter(f"'{word}' is not one of {', '.join(_WORDS)}.")
        found[name if equals else "*"] = word
    return found


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("source"),
    click.option(
        "--into",
        default="main",
        show_default=True,
        metavar="BRANCH",
        help="Target branch.",
    ),
    uri_option,
    click.option(
        "--strategy",
        "strategies",
        multiple=True,
        metavar="[NAME=]WORD",
        callback=_strategies,
        help="How to resolve rows that both sides changed: fail, ours (the target) or theirs. With "
        "Type=WORD or Type.property=WORD only there; repeatable.",
    ),
    click.option(
        "--granularity",
        type=click.Choice(["row", "property"]),
        default="row",
        show_default=True,
        help="With property, updates to different properties of a row are combined.",
    ),
    click.option(
        "--resolve",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File with a resolution per row: ours, theirs or base.",
    ),
    click.option(
        "--conflicts",
        "report",
        metavar="FILE",
        help="Write conflicts to this file; fill in each `take` and pass it to --resolve.",
    ),
    full_option,
    click.option("--dry-run", is_flag=True, help="Report the result without changing anything."),
    comparing_engine_options,
    expect_head_option("the target"),
    idempotency_key_option,
    message_option,
    json_option,
    click.pass_obj,
)


@declare("merge")
@with_options(_OPTIONS)
def command(context: Context, **options: Any) -> int | None:
    """Merge the branch SOURCE into another branch as one commit.

    Rows that both branches changed are conflicts, unless a strategy or a resolution decides them.
    All conflicts are reported at once; nothing is changed then.
    """
    return _merge(context, **options)


@declare("branch merge")
@with_options(_OPTIONS)
def branch_command(context: Context, **options: Any) -> int | None:
    """Merge the branch SOURCE into another branch. Same as `merge`."""
    return _merge(context, **options)


def _merge(
    context: Context,
    *,
    source: str,
    into: str,
    uri: str | None,
    strategies: Mapping[str, str],
    granularity: str,
    resolve: Path | None,
    report: str | None,
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
    try:
        with reporting_conflicts(values), progress(f"merging {source}", as_json=as_json) as shown:
            result = graph.merge(
                source,
                into,
                strategy=strategies,
                granularity=granularity,
                resolutions=() if resolve is None else read_resolutions(resolve),
                dry_run=dry_run,
                message=message,
                expected_head=expect_head,
                idempotency_key=idempotency_key,
                progress=shown,
                engine=chosen_engine(engine, master),
            )
    except MergeConflicts as error:
        if report is not None:
            write_report(report, error.conflicts, error.total, full=full)
        raise
    if report is not None and result.conflicts:
        write_report(report, result.conflicts, result.conflicts_total, full=full)
    warn_of(result.receipt)
    write_answer(_document(result), _lines(result, values), as_json=as_json)
    return FAILURE if result.conflicts else None


def _document(result: MergeResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "source": result.source,
        "target": result.target,
        "outcome": result.outcome.value,
        "actor_id": result.receipt.actor_id,
    }
    if result.dry_run:
        counts = {key: count.to_json() for key, count in result.receipt.counts.items()}
        found = [conflict.to_json() for conflict in result.conflicts]
        document |= {"dry_run": True, "conflicts": found, "counts": counts}
        if result.conflicts_total > len(found):
            document["conflicts_total"] = result.conflicts_total
        return document
    return document | receipt_fields(result.receipt)


def _lines(result: MergeResult, values: RowValues) -> Iterator[str]:
    branches = f"{result.source} into {result.target}"
    if result.conflicts:
        yield f"cannot merge {branches}: {counted(result.conflicts_total, 'conflict')}"
        style = Style.of(sys.stdout)
        yield from conflict_lines(result.conflicts, result.conflicts_total, style, values)
        return
    what = "would merge" if result.dry_run else "merged"
    yield f"{what} {branches}: {result.outcome.value}"
    if result.dry_run:
        for key, count in result.receipt.counts.items():
            yield (
                f"{key}  {count.inserted} inserted, {count.updated} updated, {count.deleted} deleted"
            )
    yield from commit_lines(result.receipt)
