"""`omnigraph ingest`: deprecated form of `load`, which merges and creates the branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import click

from omnigraph.cli.commands.load import MODES, LoadOptions, load_options, load_receipt, run_load
from omnigraph.cli.context import Context, graph_uri
from omnigraph.cli.framework import declare
from omnigraph.cli.output.answers import commit_lines, write_answer
from omnigraph.cli.style import warn


@declare("ingest")
@click.option("--mode", type=click.Choice(MODES), default="merge", show_default=True)
@click.option("--from", "base", default="main", show_default=True, metavar="BRANCH")
@load_options
@click.pass_obj
def command(
    context: Context,
    uri: str | None,
    mode: str,
    base: str,
    as_json: bool,
    **options: Unpack[LoadOptions],
) -> None:
    """Load files into a branch, creating it if needed. Deprecated; use `omnigraph load`."""
    warn("`omnigraph ingest` is deprecated; use `omnigraph load` instead")
    uri = graph_uri(uri, context)
    result = run_load(uri, context, mode, base, options)
    document = {
        "uri": uri,
        "branch": result.branch,
        "base_branch": base,
        "branch_created": result.branch_created,
        "mode": mode,
        "tables": [
            {"table_key": key, "rows_loaded": rows}
            for key, rows in sorted(result.rows_loaded.items())
        ],
        # The document has an actor only if a server reported one.
        "actor_id": None,
    }
    lines = [*_lines(document), *commit_lines(result.receipt)]
    write_answer(document | load_receipt(result), lines, as_json=as_json)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    state = "branch created" if document["branch_created"] else "branch exists"
    yield (
        f"ingested {document['uri']} into branch {document['branch']} "
        f"from {document['base_branch']} with {document['mode']} ({state})"
    )
    for table in document["tables"]:
        yield f"{table['table_key']} rows_loaded={table['rows_loaded']}"
