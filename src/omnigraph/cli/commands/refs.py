"""`omnigraph branch`, `tag` and `pin`, which is the older name for tags."""

from __future__ import annotations

import click

from omnigraph.cli.context import Context, address_or_server, graph_uri, is_local, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option_of,
    chosen_engine,
    comparing_engine_options,
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
    require_consent,
    uri_argument,
    uri_option,
    yes_option,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.progress import progress
from omnigraph.errors import UsageError


@declare("branch create")
@click.argument("name")
@branch_option_of("--from", "source", "Branch, tag or commit to start from.", metavar="REF")
@uri_option
@json_option
@click.pass_obj
def branch_create(context: Context, name: str, source: str, uri: str | None, as_json: bool) -> None:
    """Create the branch NAME. No data is copied."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        created = open_graph(graph, context).branches.create(name, source).branch
        document = {"uri": graph, "from": source, "name": created, "actor_id": context.actor}
    else:
        document = graph.create_branch(name, source)
    line = f"created branch {document['name']} from {document['from']}"
    write_answer(document, [line], as_json=as_json)


@declare("branch list")
@uri_argument
@json_option
@click.pass_obj
def branch_list(context: Context, uri: str | None, as_json: bool) -> None:
    """List branches by name."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        names = sorted(open_graph(graph, read_only=True).branches)
    else:
        names = graph.branches()["branches"]
    write_answer({"branches": names}, names, as_json=as_json)


@declare("branch delete")
@click.argument("name")
@uri_option
@yes_option
@json_option
@click.pass_obj
def branch_delete(context: Context, name: str, uri: str | None, yes: bool, as_json: bool) -> None:
    """Delete the branch NAME. A branch that others depend on is refused.

    On a server or an object store it asks first, and needs --yes without a terminal.
    """
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        if not is_local(graph):
            require_consent(f"deleting branch {name}", graph, yes=yes)
        open_graph(graph, context).branches.delete(name)
        document = {"uri": graph, "name": name, "actor_id": context.actor}
    else:
        require_consent(f"deleting branch {name}", graph.url, yes=yes)
        document = graph.delete_branch(name)
    write_answer(document, [f"deleted branch {document['name']}"], as_json=as_json)


@declare("graphs list")
@uri_argument
@json_option
@click.pass_obj
def graphs_list(context: Context, uri: str | None, as_json: bool) -> None:
    """List the graphs of a server for several graphs, by id."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        raise UsageError(f"`graphs list` requires a remote multi-graph server URL, not {graph}")
    document = graph.graphs()
    lines = (f"{one['graph_id']}\t{one['uri']}" for one in document["graphs"])
    write_answer(document, lines, as_json=as_json)


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
def branch_reset(
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


@declare("tag create")
@click.argument("name")
@click.argument("ref", default="main")
@uri_option
@json_option
@click.pass_obj
def tag_create(context: Context, name: str, ref: str, uri: str | None, as_json: bool) -> None:
    """Tag the commit of REF (default: the head of main) and protect it from cleanup."""
    uri = graph_uri(uri, context)
    tag = open_graph(uri, context).tags.create(name, ref)
    line = f"tagged {tag.commit_id} on {tag.branch} as {tag.name}"
    write_answer({"uri": uri, **tag.to_json()}, [line], as_json=as_json)


@declare("tag list")
@uri_argument
@json_option
@click.pass_obj
def tag_list(context: Context, uri: str | None, as_json: bool) -> None:
    """List tags by name."""
    tags = open_graph(graph_uri(uri, context), read_only=True).tags.all()
    lines = (f"{tag.name} {tag.commit_id} {tag.branch} version={tag.number}" for tag in tags)
    write_answer({"tags": [tag.to_json() for tag in tags]}, lines, as_json=as_json)


@declare("tag delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def tag_delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Delete the tag NAME; the next cleanup may remove its commit."""
    uri = graph_uri(uri, context)
    open_graph(uri, context).tags.delete(name)
    document = {"uri": uri, "name": name, "actor_id": context.actor}
    write_answer(document, [f"deleted tag {name}"], as_json=as_json)


@declare("pin create")
@click.argument("name")
@click.option("--at", "ref", metavar="REF", help="Commit to pin. Default: the head of main.")
@uri_option
@json_option
@click.pass_obj
def pin_create(
    context: Context, name: str, ref: str | None, uri: str | None, as_json: bool
) -> None:
    """Pin a commit under NAME and protect it from cleanup. Same as `tag create`."""
    uri = graph_uri(uri, context)
    pin = open_graph(uri, context).tags.create(name, ref)
    line = f"pinned {pin.commit_id} as {pin.name}"
    write_answer({"uri": uri, **pin.to_json()}, [line], as_json=as_json)


@declare("pin list")
@uri_argument
@json_option
@click.pass_obj
def pin_list(context: Context, uri: str | None, as_json: bool) -> None:
    """List pins by name. Same as `tag list`."""
    pins = open_graph(graph_uri(uri, context), read_only=True).tags.all()
    lines = (f"{pin.name} {pin.commit_id} version={pin.number}" for pin in pins)
    write_answer({"pins": [pin.to_json() for pin in pins]}, lines, as_json=as_json)


@declare("pin delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def pin_delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Delete the pin NAME; the next cleanup may delete its commit."""
    uri = graph_uri(uri, context)
    open_graph(uri, context).tags.delete(name)
    write_answer({"uri": uri, "name": name}, [f"removed pin {name}"], as_json=as_json)
