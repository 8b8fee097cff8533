"""`omnigraph analyze`: run a graph algorithm, print its values or write them to the graph."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
    refuse_two_states,
    uri_argument,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.output.results import FORMATS, Format, choose_format, write_result

if TYPE_CHECKING:
    from omnigraph.analytics.run import Analysis
    from omnigraph.history.commits import Receipt

ALGORITHMS = (
    "degrees", "pagerank", "components", "label_propagation", "triangles", "k_core", "betweenness",
    "k_hop",
)  # fmt: skip
"""The names that the package knows; a test compares them. Help must not wait for the package."""


def _pairs(
    _context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """Values given as NAME=VALUE."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise click.UsageError(f"{option.opts[-1]} takes {option.metavar}, not '{word}'.")
        if name in found:
            raise click.UsageError(f"{option.opts[-1]} names '{name}' twice.")
        found[name] = value
    return found


def _value(text: str) -> object:
    """A number or a truth value as it is written in JSON; anything else is refused by the call."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@declare("analyze")
@click.argument("algorithm", type=click.Choice(ALGORITHMS), metavar="ALGORITHM")
@uri_argument
@click.option(
    "-p",
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="Parameter of the algorithm; may be repeated.",
)
@click.option(
    "--node", "nodes", multiple=True, metavar="TYPE", help="Only this node type; may be repeated."
)
@click.option(
    "--edge", "edges", multiple=True, metavar="TYPE", help="Only this edge type; may be repeated."
)
@click.option(
    "--directed/--undirected",
    default=None,
    help="Whether edges lead one way.  [default: see above]",
)
@click.option("--weight", metavar="PROPERTY", help="Edge property with the weights.")
@click.option("--top", type=click.IntRange(min=0), metavar="N", help="Only the N largest values.")
@click.option(
    "--write",
    "write",
    multiple=True,
    metavar="COLUMN=PROPERTY",
    callback=_pairs,
    help="Write a column to a property as one commit; may be repeated.",
)
@click.option(
    "--branch",
    metavar="BRANCH",
    help="Branch to work on.  [default: cli.branch of the project file, or main]",
)
@click.option("--snapshot", metavar="REF", help="Commit, tag or time to read instead of a branch.")
@expect_head_option()
@idempotency_key_option
@message_option
@click.option("--format", type=click.Choice(FORMATS), help="Output format.  [default: table]")
@json_option
@click.pass_obj
def analyze(
    context: Context,
    algorithm: str,
    uri: str | None,
    params: dict[str, str],
    nodes: tuple[str, ...],
    edges: tuple[str, ...],
    directed: bool | None,
    weight: str | None,
    top: int | None,
    write: dict[str, str],
    branch: str | None,
    snapshot: str | None,
    expect_head: str | None,
    idempotency_key: str | None,
    message: str | None,
    format: Format | None,
    as_json: bool,
) -> None:
    """Run a graph algorithm on the graph at URI and print a row for each node.

    ALGORITHM is degrees, pagerank, betweenness or k_hop, which follow the direction of edges;
    components or label_propagation, which by default do not; triangles or k_core, which never do.
    With --write, columns are written to properties of the nodes, and no rows are printed.
    """
    refuse_two_states(branch, snapshot)
    if as_json and format is not None:
        raise click.UsageError("--format and --json are exclusive; use one of them.")
    if write and (snapshot or format or top is not None):
        raise click.UsageError("--write goes with neither --snapshot, --top nor --format.")
    if not write and (message or expect_head or idempotency_key):
        raise click.UsageError("-m, --expect-head and --idempotency-key need --write.")
    uri = graph_uri(uri, context)
    graph = open_graph(uri, context, read_only=not write)
    result = graph.analyze(
        algorithm,
        {name: _value(text) for name, text in params.items()},
        nodes=nodes,
        edges=edges,
        directed=directed,
        weight=weight,
        top=0 if write else top,
        write=write or None,
        branch=None if snapshot else branch or context.default_branch,
        at=snapshot,
        message=message,
        expected_head=expect_head,
        idempotency_key=idempotency_key,
    )
    if result.receipt is not None:
        warn_of(result.receipt)
        document = {"uri": uri, "branch": result.branch, "algorithm": algorithm, "write": write}
        document |= receipt_fields(result.receipt)
        write_answer(document, _lines(uri, result, result.receipt, write), as_json=as_json)
        return
    wanted = choose_format("json" if as_json else None, format, None, context.default_format)
    write_result(result, wanted, sys.stdout, context.table_layout, Style.of(sys.stdout))


def _lines(uri: str, result: Analysis, receipt: Receipt, write: dict[str, str]) -> Iterator[str]:
    columns = ", ".join(f"{column} to {target}" for column, target in write.items())
    yield f"analyze {uri} — {result.query_name} on branch {result.branch}, wrote {columns}"
    yield from commit_lines(receipt)
