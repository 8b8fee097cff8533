"""Which commands there are: name, module, plane and the one line the help shows.

A plain table, so that `--help`, completion and misspelt names are answered without importing a
single command. The order within a plane is the order of the help.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from omnigraph.cli.planes import Plane


class CommandEntry(NamedTuple):
    """One command. Its name is one word, or the word of its family and its own.

    `module` is a module of `omnigraph.cli.commands`, `function` its function for this command. A
    hidden command works but is listed nowhere.
    """

    name: str
    module: str
    plane: Plane
    help: str
    function: str = "command"
    hidden: bool = False

    @property
    def family(self) -> str:
        """The first word of the name, which may be all of it."""
        return self.name.partition(" ")[0]

    @property
    def word(self) -> str:
        """The last word of the name, which may be all of it."""
        return self.name.rpartition(" ")[2]


_ENTRIES = (
    CommandEntry("query", "query", Plane.DATA, "Run a query that reads."),
    CommandEntry("explain", "explain", Plane.DATA, "Show how a query is run."),
    CommandEntry("mutate", "mutate", Plane.DATA, "Run a query that changes a branch."),
    CommandEntry("load", "load", Plane.DATA, "Load files into a branch."),
    CommandEntry("ingest", "ingest", Plane.DATA, "Old form of load.", hidden=True),
    CommandEntry(
        "export", "export", Plane.DATA, "Write all nodes and edges as JSON lines or Parquet files."
    ),
    CommandEntry("blob get", "blob", Plane.DATA, "Write the bytes of a blob.", "get"),
    CommandEntry("blob stat", "blob", Plane.DATA, "Show the size of a blob.", "stat"),
    CommandEntry("snapshot", "snapshot", Plane.DATA, "Show what a branch holds."),
    CommandEntry("branch create", "branch", Plane.DATA, "Create a branch.", "create"),
    CommandEntry("branch list", "branch", Plane.DATA, "List the branches.", "list_names"),
    CommandEntry("branch delete", "branch", Plane.DATA, "Delete a branch.", "delete"),
    CommandEntry(
        "branch reset", "branch", Plane.DATA, "Give a branch the content of a ref.", "reset"
    ),
    CommandEntry(
        "branch merge", "merge", Plane.DATA, "Bring a branch into another.", "branch_command"
    ),
    CommandEntry("merge", "merge", Plane.DATA, "Bring a branch into another."),
    CommandEntry("diff", "diff", Plane.DATA, "Show what differs between two states."),
    CommandEntry("changes", "changes", Plane.DATA, "Show what each commit changed."),
    CommandEntry("log", "log", Plane.DATA, "Show the history, newest first."),
    CommandEntry("revert", "revert", Plane.DATA, "Undo a commit."),
    CommandEntry(
        "cherry-pick", "revert", Plane.DATA, "Do a commit again on a branch.", "cherry_pick"
    ),
    CommandEntry("commit list", "commit", Plane.DATA, "List the history of a branch.", "list_all"),
    CommandEntry("commit show", "commit", Plane.DATA, "Show one commit.", "show"),
    CommandEntry("tag create", "tag", Plane.DATA, "Name a commit and keep it.", "create"),
    CommandEntry("tag list", "tag", Plane.DATA, "List the tags.", "list_all"),
    CommandEntry("tag delete", "tag", Plane.DATA, "Delete a tag.", "delete"),
    CommandEntry("pin create", "pin", Plane.STORAGE, "Keep a commit readable.", "create"),
    CommandEntry("pin list", "pin", Plane.STORAGE, "List the pins.", "list_all"),
    CommandEntry("pin delete", "pin", Plane.STORAGE, "Remove a pin.", "delete"),
    CommandEntry("status", "status", Plane.DATA, "Show how a graph is doing."),
    CommandEntry("schema show", "schema", Plane.DATA, "Print the schema.", "show"),
    CommandEntry("schema apply", "schema", Plane.DATA, "Change the schema.", "apply"),
    CommandEntry("schema plan", "schema", Plane.STORAGE, "Show what a change would do.", "plan"),
    CommandEntry("init", "init", Plane.STORAGE, "Create a graph."),
    CommandEntry(
        "ensure-indices", "ensure_indices", Plane.STORAGE, "Build indexes that are missing."
    ),
    CommandEntry("embed", "embed", Plane.STORAGE, "Compute the vectors of texts."),
    CommandEntry("optimize", "optimize", Plane.STORAGE, "Store the same rows better."),
    CommandEntry("cleanup", "cleanup", Plane.STORAGE, "Remove what is stored of the past."),
    CommandEntry("repair", "repair", Plane.STORAGE, "Decide about tables nobody published."),
    CommandEntry("verify", "verify", Plane.STORAGE, "Check every row and every file."),
    CommandEntry("lint", "lint", Plane.STORAGE, "Find mistakes in a query file."),
    CommandEntry("fmt", "fmt", Plane.SESSION, "Lay out schema and query files the standard way."),
    CommandEntry("spark warm", "spark", Plane.SESSION, "Make Spark start sooner here.", "warm"),
    CommandEntry("errors", "errors", Plane.SESSION, "Explain error codes."),
    CommandEntry("version", "version", Plane.SESSION, "Print the version."),
)

COMMANDS = {entry.name: entry for entry in _ENTRIES}

ALIASES = {"schema get": "schema show"}
"""Other names of commands, which work but are listed nowhere."""

FAMILIES = {
    "blob": "Look at blobs.",
    "branch": "Create, list, merge, reset and delete branches.",
    "commit": "Look at the history.",
    "pin": "Keep commits from being cleaned up.",
    "tag": "Name commits and keep them from being cleaned up.",
    "schema": "Show, plan and change the schema.",
    "spark": "Prepare Spark on this machine.",
}
"""The first words that several commands share, with the line the help shows for all of them."""


def label(name: str, commands: Mapping[str, CommandEntry] = COMMANDS) -> str:
    """How messages name a command: by its family, unless members of that are on other planes."""
    entry = commands[name]
    planes = {other.plane for other in commands.values() if other.family == entry.family}
    return entry.family if len(planes) == 1 else entry.name
