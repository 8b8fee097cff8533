"""`omnigraph version`: a module of its own, because it loads nothing else."""

from __future__ import annotations

import click

from omnigraph._version import __version__
from omnigraph.cli.framework import declare


@declare("version")
def version() -> None:
    """Print the version."""
    click.echo(f"omnigraph {__version__}")
