"""`omnigraph snapshot`: the current state of a branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument
from omnigraph.cli.output.answers import write_answer


@declare("snapshot")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def command(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Show a branch's version, and the version and row count of every type."""
    graph = open_graph(graph_uri(uri, context), read_only=True)
    document = graph.checkout(branch).at(branch).to_json()
    write_answer(document, _lines(document), as_json=as_json)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"branch: {document['branch']}"
    yield f"manifest_version: {document['manifest_version']}"
    for table in document["tables"]:
        yield (
            f"{table['table_key']} v{table['table_version']} "
            f"branch={table['table_branch'] or 'main'} rows={table['row_count']}"
        )
