"""`omnigraph init`: create an empty graph."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.command_table import refuse_remote
from omnigraph.cli.framework import declare


@declare("init")
@click.argument("uri")
@click.option("--schema", "schema_path", required=True, metavar="FILE", help="Schema file (.pg).")
@click.option(
    "--force", is_flag=True, help="Overwrite schema files that an unfinished init left behind."
)
def command(uri: str, schema_path: str, force: bool) -> None:
    """Create an empty graph at URI, a path or s3:// URI. Missing directories are created."""
    refuse_remote("init", uri)
    # Imported here so that help does not wait for the storage engine.
    from omnigraph.api.graph import init

    graph = init(uri, Path(schema_path), force=force)
    click.echo(f"initialized {uri}\ncommit {graph.head().id}")
