"""All commands: name, module, plane and summary; the rules of the planes; deprecated spellings.

A plain table, so that `--help`, completion and misspelt names are answered without importing a
command. The order within a plane is the order of the help. A plane says how a command reaches a graph,
and so which addressing options it takes. Tests: tests/unit/cli/test_planes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple, NoReturn


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


_SCOPES = {
    "server": "--server/--graph",
    "graph": "--server/--graph",
    "store": "--store",
    "profile": "--profile",
}


TAKE_SERVERS = frozenset(["cluster plan", "cluster apply", "cluster status"])
"""Commands of the control plane that a server can carry out."""


def refuse_scopes(
    command: str, plane: Plane, given: Mapping[str, str | None], *, takes_server: bool = False
) -> None:
    """Raise if an option that selects a graph means nothing to a command of this plane."""
    if plane is Plane.DATA or command == "profile":
        return
    for name, flag in _SCOPES.items():
        if given.get(name) is None or (name == "server" and takes_server):
            continue
        advice = _INSTEAD_FOR.get(command, _INSTEAD[plane])
        if name in ("server", "graph"):
            what = f"{flag} address the data plane and do not apply"
        elif plane is Plane.STORAGE and command != "init":
            continue
        else:
            what = f"{flag} does not apply"
        from omnigraph.errors import UsageError

        raise UsageError(f"`{command}` is a {plane.value}-plane command; {what}. {advice}")


def refuse_remote(command: str, uri: str) -> None:
    """Raise when a storage-plane command is pointed at a server instead of at storage."""
    from omnigraph.config.selection import is_remote, without_secrets
    from omnigraph.errors import UsageError

    if is_remote(uri):
        raise UsageError(
            f"`{command}` is a storage-plane command and needs direct storage access; "
            f"{without_secrets(uri)} is a remote server"
        )


def refuse_direct(what: str, uri: str) -> NoReturn:
    """Raise for a command or option that works on storage alone and was pointed at a server."""
    from omnigraph.config.selection import without_secrets
    from omnigraph.errors import UsageError

    raise UsageError(
        f"{what} needs direct storage access; {without_secrets(uri)} is a remote server"
    )


TASKS = {
    "Start": ("init", "load", "embed", "shell", "demo", "spark", "completion", "version"),
    "Look": (
        "query", "explain", "alias", "diff", "log", "commit", "changes", "bisect", "snapshot",
        "status", "export", "blob", "analyze", "explore", "errors",
    ),
    "Change": (
        "mutate", "branch", "merge", "revert", "cherry-pick", "tag", "pin", "schema", "lint", "fmt",
    ),
    "Share": ("login", "logout", "profile", "config", "graphs", "queries", "policy", "mcp"),
    "Maintain": ("optimize", "ensure-indices", "cleanup", "verify", "repair", "cluster"),
}  # fmt: skip
"""What the help lists commands by: the first words of the commands for each task, in order."""


def families_by_task(families: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """The rows of the help; a family that no task names is with the last one."""
    found = {
        task: [(name, families[name]) for name in names if name in families]
        for task, names in TASKS.items()
    }
    named = {name for names in TASKS.values() for name in names}
    *_, last = found.values()
    last += [row for row in families.items() if row[0] not in named]
    return found


_PAGED = frozenset(
    (
        "query", "explain", "alias", "diff", "log", "commit list", "commit show", "commit changes",
        "changes", "changes poll", "snapshot", "status", "errors", "schema show", "schema plan",
        "analyze", "branch list", "tag list", "queries list", "lint", "verify", "bisect",
    )
)  # fmt: skip
_INTERACTIVE = frozenset(("shell", "login", "mcp", "explore"))


class CommandEntry(NamedTuple):
    """One command. Its name is one word, or the word of its family and its own.

    `module` is a module of `omnigraph.cli.commands`; its function has the command's name. A hidden
    command works but is listed nowhere.
    """

    name: str
    module: str
    plane: Plane
    help: str
    hidden: bool = False

    @property
    def is_paged(self) -> bool:
        """Whether output that is longer than a terminal goes through a pager there."""
        return self.name in _PAGED

    @property
    def is_interactive(self) -> bool:
        """Whether the command talks to the terminal by itself."""
        return self.name in _INTERACTIVE

    @property
    def family(self) -> str:
        """The first word of the name, which may be all of it."""
        return self.name.partition(" ")[0]

    @property
    def function(self) -> str:
        """The function of the module: `branch_create` for `branch create`."""
        return self.name.replace(" ", "_").replace("-", "_")

    @property
    def word(self) -> str:
        """The last word of the name, which may be all of it."""
        return self.name.rpartition(" ")[2]


_ENTRIES = (
    CommandEntry("query", "query", Plane.DATA, "Run a read query."),
    CommandEntry("explain", "query", Plane.DATA, "Show a query's execution plan."),
    CommandEntry("alias", "query", Plane.DATA, "Run a read query by its alias."),
    CommandEntry("mutate", "query", Plane.DATA, "Run a mutation query as one commit."),
    CommandEntry("load", "load", Plane.DATA, "Load files into a branch as one commit."),
    CommandEntry("ingest", "load", Plane.DATA, "Deprecated; use `load`.", hidden=True),
    CommandEntry(
        "export", "export", Plane.DATA, "Export nodes and edges to JSON Lines or Parquet."
    ),
    CommandEntry("blob get", "export", Plane.DATA, "Write a blob to a file or standard output."),
    CommandEntry(
        "blob stat", "export", Plane.DATA, "Show a blob's size and, if external, its URI."
    ),
    CommandEntry(
        "snapshot", "query", Plane.DATA, "Show a branch's version and row counts per type."
    ),
    CommandEntry("branch create", "refs", Plane.DATA, "Create a branch."),
    CommandEntry("branch list", "refs", Plane.DATA, "List branches."),
    CommandEntry("branch delete", "refs", Plane.DATA, "Delete a branch."),
    CommandEntry("branch reset", "refs", Plane.DATA, "Reset a branch to the content of a ref."),
    CommandEntry("branch merge", "merge", Plane.DATA, "Merge a branch into another."),
    CommandEntry("merge", "merge", Plane.DATA, "Merge a branch into another."),
    CommandEntry("diff", "history", Plane.DATA, "Compare two branches or commits."),
    CommandEntry("changes", "changes", Plane.DATA, "Show row changes commit by commit."),
    CommandEntry("changes poll", "changes", Plane.DATA, "Show one page of a change feed."),
    CommandEntry(
        "changes baseline", "changes", Plane.DATA, "Write all entities and the cursor to poll from."
    ),
    CommandEntry("log", "history", Plane.DATA, "Show commit history, newest first."),
    CommandEntry("bisect", "bisect", Plane.DATA, "Find the commit that made an assertion fail."),
    CommandEntry("revert", "merge", Plane.DATA, "Undo a commit's changes in a new commit."),
    CommandEntry("cherry-pick", "merge", Plane.DATA, "Apply a commit's changes to another branch."),
    CommandEntry("commit list", "history", Plane.DATA, "List a branch's commits."),
    CommandEntry("commit show", "history", Plane.DATA, "Show a commit."),
    CommandEntry("commit changes", "changes", Plane.DATA, "Show the changes of a commit."),
    CommandEntry("tag create", "refs", Plane.DATA, "Tag a commit and protect it from cleanup."),
    CommandEntry("tag list", "refs", Plane.DATA, "List tags."),
    CommandEntry("tag delete", "refs", Plane.DATA, "Delete a tag."),
    CommandEntry("pin create", "refs", Plane.STORAGE, "Pin a commit under a name."),
    CommandEntry("pin list", "refs", Plane.STORAGE, "List pins."),
    CommandEntry("pin delete", "refs", Plane.STORAGE, "Delete a pin."),
    CommandEntry(
        "status", "maintenance", Plane.DATA, "Show sizes, index coverage and pending work."
    ),
    CommandEntry("graphs list", "refs", Plane.DATA, "List the graphs of a server."),
    CommandEntry("shell", "shell", Plane.DATA, "Ask for queries on a graph that stays open."),
    CommandEntry("schema show", "schema", Plane.DATA, "Print the schema source."),
    CommandEntry("schema apply", "schema", Plane.DATA, "Migrate the graph to a new schema."),
    CommandEntry(
        "schema plan", "schema", Plane.STORAGE, "Show the migration steps to a new schema."
    ),
    CommandEntry("init", "schema", Plane.STORAGE, "Create an empty graph from a schema file."),
    CommandEntry("ensure-indices", "maintenance", Plane.STORAGE, "Build missing indexes."),
    CommandEntry("embed", "embed", Plane.STORAGE, "Compute missing and stale embeddings."),
    CommandEntry("analyze", "analyze", Plane.STORAGE, "Run a graph algorithm."),
    CommandEntry("optimize", "maintenance", Plane.STORAGE, "Compact tables and refresh indexes."),
    CommandEntry("cleanup", "maintenance", Plane.STORAGE, "Delete old versions."),
    CommandEntry(
        "repair", "maintenance", Plane.STORAGE, "Inspect and resolve unpublished table changes."
    ),
    CommandEntry("verify", "maintenance", Plane.STORAGE, "Validate every row and file."),
    CommandEntry("lint", "sources", Plane.STORAGE, "Check a query file against a schema."),
    CommandEntry(
        "queries validate", "queries", Plane.STORAGE, "Validate stored queries against the schema."
    ),
    CommandEntry(
        "cluster validate", "cluster", Plane.CONTROL, "Check a cluster.yaml and its files."
    ),
    CommandEntry("cluster plan", "cluster", Plane.CONTROL, "Show what apply would change."),
    CommandEntry(
        "cluster apply", "cluster", Plane.CONTROL, "Make storage what the directory declares."
    ),
    CommandEntry(
        "cluster approve", "cluster", Plane.CONTROL, "Allow the deletion of a graph by apply."
    ),
    CommandEntry("cluster status", "cluster", Plane.CONTROL, "Show what the ledger records."),
    CommandEntry(
        "cluster observe", "cluster", Plane.CONTROL, "Compare the graphs with the ledger."
    ),
    CommandEntry(
        "cluster refresh", "cluster", Plane.CONTROL, "Record in the ledger what is really there."
    ),
    CommandEntry(
        "cluster import", "cluster", Plane.CONTROL, "Create a ledger from the graphs that exist."
    ),
    CommandEntry(
        "cluster force-unlock", "cluster", Plane.CONTROL, "Remove the lock of a dead command."
    ),
    CommandEntry("explore", "explore", Plane.DATA, "Show a graph in the browser."),
    CommandEntry("mcp", "mcp", Plane.DATA, "Serve a graph to an agent over MCP."),
    CommandEntry("queries list", "queries", Plane.SESSION, "List stored queries."),
    CommandEntry("policy validate", "policy", Plane.SESSION, "Validate a policy file."),
    CommandEntry("policy test", "policy", Plane.SESSION, "Run the test cases of a policy."),
    CommandEntry("policy explain", "policy", Plane.SESSION, "Show the decision for a request."),
    CommandEntry("fmt", "sources", Plane.SESSION, "Format schema and query files."),
    CommandEntry("login", "configuration", Plane.SESSION, "Store a token for a server."),
    CommandEntry("logout", "configuration", Plane.SESSION, "Remove the token of a server."),
    CommandEntry("profile list", "configuration", Plane.SESSION, "List profiles."),
    CommandEntry(
        "profile show", "configuration", Plane.SESSION, "Show the graph that commands select."
    ),
    CommandEntry(
        "config migrate", "configuration", Plane.SESSION, "Move settings out of omnigraph.yaml."
    ),
    CommandEntry(
        "spark warm", "session", Plane.SESSION, "Prepare a cache that makes Spark start faster."
    ),
    CommandEntry("completion", "session", Plane.SESSION, "Print the completion script of a shell."),
    CommandEntry("errors", "session", Plane.SESSION, "Explain error codes."),
    CommandEntry("version", "version", Plane.SESSION, "Print the version."),
)

COMMANDS = {entry.name: entry for entry in _ENTRIES}

ALIASES = {"schema get": "schema show"}
"""Other names of commands, which work but are listed nowhere."""

FAMILIES = {
    "blob": "Read blob properties.",
    "branch": "Create, list, merge, reset and delete branches.",
    "cluster": "Declare graphs, queries and policies, and apply the declaration.",
    "commit": "List and inspect commits.",
    "config": "Change configuration files.",
    "graphs": "List the graphs of a server.",
    "pin": "Protect commits from cleanup.",
    "policy": "Validate, test and explain policies.",
    "profile": "List profiles and show what they select.",
    "queries": "List and validate stored queries.",
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
