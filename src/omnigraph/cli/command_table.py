"""Which commands there are: name, module, plane and the one line the help shows.

A plain table, so that `--help`, completion and misspelt names are answered without importing a
single command. The order within a plane is the order of the help.
"""

from __future__ import annotations

from typing import NamedTuple

from omnigraph.cli.planes import Plane


class CommandEntry(NamedTuple):
    """One command; `module` is a module of `omnigraph.cli.commands`."""

    name: str
    module: str
    plane: Plane
    help: str


_ENTRIES = (
    CommandEntry("lint", "lint", Plane.STORAGE, "Find mistakes in a query file."),
    CommandEntry("fmt", "fmt", Plane.SESSION, "Lay out schema and query files the standard way."),
    CommandEntry("errors", "errors", Plane.SESSION, "Explain error codes."),
    CommandEntry("version", "version", Plane.SESSION, "Print the version."),
)

COMMANDS = {entry.name: entry for entry in _ENTRIES}
