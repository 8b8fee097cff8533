"""`omnigraph merge`, `branch merge`, `revert` and `cherry-pick`, and the conflicts they report.

Conflicts are printed, and written to a file that can be edited and passed back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from omnigraph.cli.command_table import refuse_direct
from omnigraph.cli.context import Context, address_or_server, graph_uri, open_graph
from omnigraph.cli.exits import FAILURE, CommandFailed, Style, warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option,
    branch_option_of,
    chosen_engine,
    comparing_engine_options,
    expect_head_option,
    full_option,
    idempotency_key_option,
    json_option,
    message_option,
    set_option,
    uri_option,
    with_options,
)
from omnigraph.cli.output.answers import (
    as_document,
    commit_lines,
    receipt_fields,
    warn_of,
    warn_of_document,
    write_answer,
    written_lines,
)
from omnigraph.cli.output.changes import RowValues, elided, served_types
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError, MergeConflict, MergeConflicts, OmnigraphError
from omnigraph.merge.resolution import read_resolutions
from omnigraph.replace_file import replacing

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.merge.merger import AppliedCommit


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


_MERGE_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("source"),
    branch_option_of("--into", "into", "Target branch."),
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
    click.option(
        "--delete-branch",
        is_flag=True,
        help="Delete SOURCE after the merge; if that fails, a warning says so.",
    ),
    comparing_engine_options,
    expect_head_option("the target"),
    idempotency_key_option,
    message_option,
    set_option,
    json_option,
    click.pass_obj,
)


@declare("merge")
@with_options(_MERGE_OPTIONS)
def merge(context: Context, **options: Any) -> int | None:
    """Merge the branch SOURCE into another branch as one commit.

    Rows that both branches changed are conflicts, unless a strategy or a resolution decides them.
    All conflicts are reported at once; nothing is changed then.
    """
    return _merge(context, **options)


@declare("branch merge")
@with_options(_MERGE_OPTIONS)
def branch_merge(context: Context, **options: Any) -> int | None:
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
    delete_branch: bool,
    engine: str | None,
    master: str | None,
    expect_head: str | None,
    idempotency_key: str | None,
    message: str | None,
    settings: Mapping[str, object],
    as_json: bool,
) -> int | None:
    if dry_run and delete_branch:
        raise click.UsageError("--dry-run and --delete-branch are exclusive; use one of them.")
    graph = address_or_server(uri, context)
    decided = () if resolve is None else read_resolutions(resolve)
    asked: dict[str, Any] = {"granularity": granularity, "resolutions": decided}
    asked |= {"dry_run": dry_run, "message": message, "expected_head": expect_head}
    asked |= {"idempotency_key": idempotency_key, "strategy": strategies}
    try:
        if isinstance(graph, str):
            opened = open_graph(graph, context, writes=not dry_run)
            values = RowValues(lambda: opened.schema.catalog, full=full)
            with progress(f"merging {source}", as_json=as_json) as shown:
                asked |= {"engine": chosen_engine(engine, master), "progress": shown}
                document = _merged_here(opened, source, into, delete_branch, asked)
        else:
            served = graph
            values = RowValues(lambda: served_types(served), full=full)
            for flag, given in (("--engine", engine), ("--master", master)):
                if given is not None:
                    refuse_direct(f"`merge {flag}`", graph.url)
            document = graph.merge(
                source=source,
                target=into,
                delete_branch=delete_branch or None,
                settings=settings or None,
                **asked,
            )
    except (MergeConflicts, CommandFailed) as failed:
        error = failed.error if isinstance(failed, CommandFailed) else failed
        if isinstance(error, MergeConflicts):
            for line in conflict_lines(error.conflicts, error.total, Style.of(sys.stderr), values):
                print(line, file=sys.stderr)
            if report is not None:
                write_report(report, error.conflicts, error.total, full=full)
        raise
    conflicts = merge_conflicts(document.get("conflicts", ()))
    total = document.get("conflicts_total", len(conflicts))
    if report is not None and conflicts:
        write_report(report, conflicts, total, full=full)
    warn_of_document(document)
    if (kept := document.get("branch_delete_error_details")) is not None:
        warn(f"merged, but branch {source} was not deleted: {kept['error']}")
    lines = _merge_lines(document, conflicts, total, values)
    write_answer(_merge_document(document, total), lines, as_json=as_json)
    return FAILURE if conflicts else None


def _merged_here(
    graph: Graph, source: str, into: str, delete_branch: bool, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge in this process; the result is the document of the route."""
    from omnigraph.wire.contracts import CONTRACT_07

    merged = graph.merge(source, into, **asked)
    made = merged.receipt.graph_commit_id
    commit = None if made is None else graph.commit(made)
    document = as_document(CONTRACT_07.merge(merged, commit, None, None))
    if delete_branch:
        try:
            graph.branches.delete(source)
        except OmnigraphError as error:
            # The merge is made; an error would hide it.
            details = {"error": error.message}
            document |= {"branch_deleted": False, "branch_delete_error_details": details}
        else:
            document["branch_deleted"] = True
    return document


_DRY_RUN = ("source", "target", "outcome", "actor_id", "dry_run", "conflicts", "counts")


def _merge_document(document: Mapping[str, Any], total: int) -> Mapping[str, Any]:
    if not document.get("dry_run"):
        return document
    found = {name: document[name] for name in _DRY_RUN if name in document}
    return found | {"conflicts_total": total} if total > len(document["conflicts"]) else found


def merge_conflicts(documents: Iterable[Mapping[str, Any]]) -> tuple[MergeConflict, ...]:
    return tuple(MergeConflict(**one) for one in documents)


def _merge_lines(
    document: Mapping[str, Any],
    conflicts: Sequence[MergeConflict],
    total: int,
    values: RowValues,
) -> Iterator[str]:
    branches = f"{document['source']} into {document['target']}"
    if conflicts:
        yield f"cannot merge {branches}: {counted(total, 'conflict')}"
        yield from conflict_lines(conflicts, total, Style.of(sys.stdout), values)
        return
    dry_run = document.get("dry_run")
    yield f"{'would merge' if dry_run else 'merged'} {branches}: {document['outcome']}"
    if dry_run:
        for key, count in document.get("counts", {}).items():
            yield (
                f"{key}  {count['inserted']} inserted, {count['updated']} updated, "
                f"{count['deleted']} deleted"
            )
    if document.get("branch_deleted"):
        yield f"deleted branch {document['source']}"
    yield from written_lines(document)


_APPLY_OPTIONS: tuple[Callable[[Any], Any], ...] = (
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
@with_options(_APPLY_OPTIONS)
def revert(context: Context, commit: str, branch: str, **options: Any) -> int | None:
    """Undo the changes of COMMIT in a new commit. Rows changed since then are conflicts."""
    return _apply(context, "revert", commit, branch, **options)


@declare("cherry-pick")
@click.argument("commit")
@branch_option_of("--onto", "onto", "Target branch.")
@with_options(_APPLY_OPTIONS)
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
    graph = open_graph(graph_uri(uri, context), context, writes=not dry_run)
    values = RowValues(lambda: graph.schema.catalog, full=full)
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
    write_answer(document, _applied_lines(done, verb, values), as_json=as_json)
    return FAILURE if done.conflicts else None


def _applied_lines(done: AppliedCommit, verb: str, values: RowValues) -> Iterator[str]:
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


@contextmanager
def reporting_conflicts(values: RowValues) -> Iterator[None]:
    """Print the conflicts of a failing block before the error propagates."""
    try:
        yield
    except MergeConflicts as error:
        for line in conflict_lines(error.conflicts, error.total, Style.of(sys.stderr), values):
            print(line, file=sys.stderr)
        raise


def conflict_lines(
    conflicts: Sequence[MergeConflict], total: int, style: Style, values: RowValues
) -> Iterator[str]:
    """A line per conflict, and under it the values on which the two sides differ.

    `total` counts all of them; `conflicts` may hold only the first.
    """
    for conflict in conflicts:
        where = (
            conflict.table_key
            if conflict.row_id is None
            else f"{conflict.table_key} {conflict.row_id}"
        )
        yield style.error(f"{where}: {conflict.kind}") + f"  {conflict.message}"
        if conflict.is_about_a_row:
            yield from _values(conflict, values)
    if total > len(conflicts):
        yield f"… {counted(total - len(conflicts), 'more conflict')}"


def write_report(path: str, conflicts: Sequence[MergeConflict], total: int, *, full: bool) -> None:
    """Write the conflicts to a file that --resolve reads once each `take` is filled in.

    Its values are for people and are not read back; unless all of them are wanted, long ones are
    cut. Raises `InputError` if it cannot be written.
    """
    found: list[dict[str, Any]] = []
    for conflict in conflicts:
        document = conflict.to_json()
        if not full and conflict.is_about_a_row:
            document |= {side: elided(document[side]) for side in ("base", "ours", "theirs")}
        found.append(document | {"take": None} if conflict.is_about_a_row else document)
    document = {"conflicts": found, "conflicts_total": total}
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        with replacing(path) as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _values(conflict: MergeConflict, values: RowValues) -> Iterator[str]:
    base, ours, theirs = conflict.base, conflict.ours, conflict.theirs
    if ours is None or theirs is None:
        gone, kept = ("ours", "theirs") if ours is None else ("theirs", "ours")
        yield f"    {gone} deleted it, {kept} changed it"
        return
    for name in sorted(ours):
        if ours[name] != theirs.get(name):
            states = [row.get(name) for row in (ours, theirs, base) if row is not None]
            mine, other, *before = values.texts(conflict.table_key, name, *states)
            origin = "".join(f"{text} → " for text in before)
            yield f"    {name}: {origin}ours {mine}, theirs {other}"
