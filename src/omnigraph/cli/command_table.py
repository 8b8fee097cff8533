"""All commands: name, module, plane and summary; the rules of the planes; deprecated spellings.

A plain table, so that `--help`, completion and misspelt names are answered without importing a
command. The order within a plane is the order of the help. A plane says how a command reaches a graph,
and so which addressing options it takes. Tests: tests/unit/cli/test_planes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from omnigraph.errors import UsageError


class Plane(Enum):
    """How a command reaches a graph, in the order the help lists them."""

    DATA = "data"
    STORAGE = "storage"
    CONTROL = "control"
    SESSION = "session"


LEGEND = {
    Plane.DATA: "read and write a graph, locally or through a server",
    Plane.STORAGE: "operate on graph storage directly (path or s3:// URI)",
    Plane.CONTROL: "manage declared deployments (--config names their directory)",
    Plane.SESSION: "work on local files and settings; no graph needed",
}

_INSTEAD = {
    Plane.STORAGE: "Use --target <name>, a storage URI, or --cluster <dir> --cluster-graph <id>.",
    Plane.CONTROL: "Name the deployment with --config <dir>.",
    Plane.SESSION: "The command addresses no graph.",
}
_INSTEAD_FOR = {"init": "Pass a storage URI."}
"""Commands to which the advice of their plane does not apply."""


def is_remote(uri: str) -> bool:
    """Whether an address is that of a server rather than of storage."""
    return uri.startswith(("http://", "https://"))


def refuse_server(command: str, plane: Plane) -> None:
    """Raise unless `--server` and `--graph` mean something to commands of this plane."""
    if plane is Plane.DATA:
        return
    advice = _INSTEAD_FOR.get(command, _INSTEAD[plane])
    raise UsageError(
        f"`{command}` is a {plane.value}-plane command; --server/--graph address the data plane "
        f"and do not apply. {advice}"
    )


def refuse_remote(command: str, uri: str) -> None:
    """Raise when a storage-plane command is pointed at a server instead of at storage."""
    if is_remote(uri):
        raise UsageError(
            f"`{command}` is a storage-plane command and needs direct storage access; "
            f"{uri} is a remote server"
        )


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
    CommandEntry("query", "query", Plane.DATA, "Run a read query."),
    CommandEntry("explain", "explain", Plane.DATA, "Show a query's execution plan."),
    CommandEntry("mutate", "mutate", Plane.DATA, "Run a mutation query as one commit."),
    CommandEntry("load", "load", Plane.DATA, "Load files into a branch as one commit."),
    CommandEntry("ingest", "ingest", Plane.DATA, "Deprecated; use `load`.", hidden=True),
    CommandEntry(
        "export", "export", Plane.DATA, "Export nodes and edges to JSON Lines or Parquet."
    ),
    CommandEntry(
        "blob get", "blob", Plane.DATA, "Write a blob to a file or standard output.", "get"
    ),
    CommandEntry(
        "blob stat", "blob", Plane.DATA, "Show a blob's size and, if external, its URI.", "stat"
    ),
    CommandEntry(
        "snapshot", "snapshot", Plane.DATA, "Show a branch's version and row counts per type."
    ),
    CommandEntry("branch create", "branch", Plane.DATA, "Create a branch.", "create"),
    CommandEntry("branch list", "branch", Plane.DATA, "List branches.", "list_names"),
    CommandEntry("branch delete", "branch", Plane.DATA, "Delete a branch.", "delete"),
    CommandEntry(
        "branch reset", "branch", Plane.DATA, "Reset a branch to the content of a ref.", "reset"
    ),
    CommandEntry(
        "branch merge", "merge", Plane.DATA, "Merge a branch into another.", "branch_command"
    ),
    CommandEntry("merge", "merge", Plane.DATA, "Merge a branch into another."),
    CommandEntry("diff", "diff", Plane.DATA, "Compare two branches or commits."),
    CommandEntry("changes", "changes", Plane.DATA, "Show row changes commit by commit."),
    CommandEntry("log", "log", Plane.DATA, "Show commit history, newest first."),
    CommandEntry("revert", "revert", Plane.DATA, "Undo a commit's changes in a new commit."),
    CommandEntry(
        "cherry-pick",
        "revert",
        Plane.DATA,
        "Apply a commit's changes to another branch.",
        "cherry_pick",
    ),
    CommandEntry("commit list", "commit", Plane.DATA, "List a branch's commits.", "list_all"),
    CommandEntry("commit show", "commit", Plane.DATA, "Show a commit.", "show"),
    CommandEntry(
        "tag create", "tag", Plane.DATA, "Tag a commit and protect it from cleanup.", "create"
    ),
    CommandEntry("tag list", "tag", Plane.DATA, "List tags.", "list_all"),
    CommandEntry("tag delete", "tag", Plane.DATA, "Delete a tag.", "delete"),
    CommandEntry("pin create", "pin", Plane.STORAGE, "Pin a commit under a name.", "create"),
    CommandEntry("pin list", "pin", Plane.STORAGE, "List pins.", "list_all"),
    CommandEntry("pin delete", "pin", Plane.STORAGE, "Delete a pin.", "delete"),
    CommandEntry("status", "status", Plane.DATA, "Show sizes, index coverage and pending work."),
    CommandEntry("schema show", "schema", Plane.DATA, "Print the schema source.", "show"),
    CommandEntry(
        "schema apply", "schema", Plane.DATA, "Migrate the graph to a new schema.", "apply"
    ),
    CommandEntry(
        "schema plan", "schema", Plane.STORAGE, "Show the migration steps to a new schema.", "plan"
    ),
    CommandEntry("init", "init", Plane.STORAGE, "Create an empty graph from a schema file."),
    CommandEntry("ensure-indices", "ensure_indices", Plane.STORAGE, "Build missing indexes."),
    CommandEntry("embed", "embed", Plane.STORAGE, "Compute missing and stale embeddings."),
    CommandEntry("optimize", "optimize", Plane.STORAGE, "Compact tables and refresh indexes."),
    CommandEntry("cleanup", "cleanup", Plane.STORAGE, "Delete old versions."),
    CommandEntry(
        "repair", "repair", Plane.STORAGE, "Inspect and resolve unpublished table changes."
    ),
    CommandEntry("verify", "verify", Plane.STORAGE, "Validate every row and file."),
    CommandEntry("lint", "lint", Plane.STORAGE, "Check a query file against a schema."),
    CommandEntry("fmt", "fmt", Plane.SESSION, "Format schema and query files."),
    CommandEntry(
        "spark warm",
        "spark",
        Plane.SESSION,
        "Prepare a cache that makes Spark start faster.",
        "warm",
    ),
    CommandEntry("errors", "errors", Plane.SESSION, "Explain error codes."),
    CommandEntry("version", "version", Plane.SESSION, "Print the version."),
)

COMMANDS = {entry.name: entry for entry in _ENTRIES}

ALIASES = {"schema get": "schema show"}
"""Other names of commands, which work but are listed nowhere."""

FAMILIES = {
    "blob": "Read blob properties.",
    "branch": "Create, list, merge, reset and delete branches.",
    "commit": "List and inspect commits.",
    "pin": "Protect commits from cleanup.",
    "tag": "Name commits and protect them from cleanup.",
    "schema": "Show, plan and apply schema changes.",
    "spark": "Prepare Spark on this machine.",
}
"""The first words that several commands share, with the line the help shows for all of them."""


def label(name: str, commands: Mapping[str, CommandEntry] = COMMANDS) -> str:
    """How messages name a command: by its family, unless members of that are on other planes."""
    entry = commands[name]
    planes = {other.plane for other in commands.values() if other.family == entry.family}
    return entry.family if len(planes) == 1 else entry.name


SPELLINGS = {
    ("change",): "mutate",
    ("check",): "lint",
    ("read",): "query",
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
}


def rewrite(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words with an old spelling at their start replaced, and the warning to print."""
    for old, new in SPELLINGS.items():
        if tuple(words[: len(old)]) == old:
            spelt = " ".join(old)
            warning = f"`omnigraph {spelt}` is deprecated; use `omnigraph {new}` instead"
            return [new, *words[len(old) :]], warning
    return list(words), None
