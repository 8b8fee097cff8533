"""`omnigraph version`: a module of its own, because it loads nothing else."""

from __future__ import annotations

import click

from omnigraph._version import __version__
from omnigraph.cli.framework import declare
from omnigraph.limits import FORMAT_STAMP


@declare("version")
def version() -> None:
    """Print the version, and the format of the graphs that it writes."""
    click.echo(f"omnigraph {__version__}\nstorage format {FORMAT_STAMP}")
