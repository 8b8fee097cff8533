"""`omnigraph version`: a module of its own, because it loads nothing else."""

from __future__ import annotations

import click

from omnigraph._version import __version__
from omnigraph.cli.framework import declare
from omnigraph.limits import FORMAT_STAMP, GQ_LANGUAGE


@declare("version")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def version(as_json: bool) -> None:
    """Print the version, and the format of the graphs that it writes."""
    if as_json:
        import json

        document = {
            "version": __version__,
            "storage_format": FORMAT_STAMP,
            "GQ_LANGUAGE": GQ_LANGUAGE,
        }
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"omnigraph {__version__}\nstorage format {FORMAT_STAMP}")
