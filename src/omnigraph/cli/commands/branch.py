"""`omnigraph branch create`, `branch list`, `branch delete` and `branch reset`."""

from __future__ import annotations

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.operator_config import chosen_engine
from omnigraph.cli.options import (
    comparing_engine_options,
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
    uri_option,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.progress import progress


@declare("branch create")
@click.argument("name")
@click.option(
    "--from",
    "source",
    default="main",
    show_default=True,
    metavar="REF",
    help="Branch, tag or commit to start from.",
)
@uri_option
@json_option
@click.pass_obj
def create(context: Context, name: str, source: str, uri: str | None, as_json: bool) -> None:
    """Create the branch NAME. No data is copied."""
    uri = graph_uri(uri, context)
    created = open_graph(uri, context).branches.create(name, source).branch
    write_answer(
        {"uri": uri, "from": source, "name": created, "actor_id": context.actor},
        [f"created branch {created} from {source}"],
        as_json=as_json,
    )


@declare("branch list")
@uri_option
@json_option
@click.pass_obj
def list_names(context: Context, uri: str | None, as_json: bool) -> None:
    """List branches by name."""
    names = sorted(open_graph(graph_uri(uri, context), read_only=True).branches)
    write_answer({"branches": names}, names, as_json=as_json)


@declare("branch delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Delete the branch NAME without confirmation. A branch that others depend on is refused."""
    uri = graph_uri(uri, context)
    open_graph(uri, context).branches.delete(name)
    write_answer(
        {"uri": uri, "name": name, "actor_id": context.actor},
        [f"deleted branch {name}"],
        as_json=as_json,
    )


@declare("branch reset")
@click.argument("name")
@click.argument("ref")
@uri_option
@click.option("--dry-run", is_flag=True, help="Report the result without changing anything.")
@comparing_engine_options
@expect_head_option()
@idempotency_key_option
@message_option
@json_option
@click.pass_obj
def reset(
    context: Context,
    name: str,
    ref: str,
    uri: str | None,
    dry_run: bool,
    engine: str | None,
    master: str | None,
    expect_head: str | None,
    idempotency_key: str | None,
    message: str | None,
    as_json: bool,
) -> None:
    """Reset the branch NAME to the content of REF in a new commit. Its history is kept."""
    graph = open_graph(graph_uri(uri, context), context)
    with progress(f"resetting {name}", as_json=as_json) as shown:
        done = graph.branches.reset(
            name,
            ref,
            dry_run=dry_run,
            message=message,
            expected_head=expect_head,
            idempotency_key=idempotency_key,
            progress=shown,
            engine=chosen_engine(engine, master),
        )
    warn_of(done.receipt)
    document: dict[str, object] = {"branch": done.branch, "reset_to": done.source_commit_id}
    if done.dry_run:
        document["dry_run"] = True
    what = "would reset" if done.dry_run else "reset"
    nothing = "" if done.dry_run or done.receipt.graph_commit_id else ": nothing to change"
    line = f"{what} {done.branch} to {done.source_commit_id}{nothing}"
    lines = [line, *commit_lines(done.receipt)]
    write_answer(document | receipt_fields(done.receipt), lines, as_json=as_json)
