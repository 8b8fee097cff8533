"""`omnigraph init`: create a graph."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.framework import declare
from omnigraph.cli.planes import refuse_remote


@declare("init")
@click.argument("uri")
@click.option("--schema", "schema_path", required=True, metavar="FILE", help="Schema file (.pg).")
@click.option(
    "--force", is_flag=True, help="Overwrite schema files that an unfinished init left behind."
)
def command(uri: str, schema_path: str, force: bool) -> None:
    """Create an empty graph at URI, a path or an s3:// address; directories are made as needed."""
    refuse_remote("init", uri)
    # Only a command that really runs waits for the storage engine to be imported.
    from omnigraph.api.graph import init

    graph = init(uri, Path(schema_path), force=force)
    click.echo(f"initialized {uri}\ncommit {graph.head().id}")
