"""Opening graphs, and the handle on one.

A handle is bound to one branch. It is synchronous and thread-safe, starts no event loop and never
forks. Reads always look at storage, so other writers' commits are visible without a refresh.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.api.arguments import kind_of, staleness_argument, text_argument
from omnigraph.api.blobs import HasBlobs
from omnigraph.api.changing import Changes
from omnigraph.api.core import GraphCore
from omnigraph.api.history import History
from omnigraph.api.maintenance import HasMaintenance
from omnigraph.api.merging import Merges
from omnigraph.api.opening import open_manifest, restore_schema
from omnigraph.api.reading import Reads
from omnigraph.api.schema import HasSchema
from omnigraph.api.tags import HasTags
from omnigraph.errors import GraphNotFound, InputError
from omnigraph.settings import read_settings
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root

if TYPE_CHECKING:
    from omnigraph.read.view import ReadView


class Graph(
    Reads,
    Changes,
    Merges,
    History,
    HasTags,
    HasSchema,
    HasBlobs,
    HasMaintenance,
):
    """An open graph, bound to one branch.

    >>> with og.open("team.omni") as graph:
    ...     graph.query("team.gq", {"name": "Ada"}, name="friends_of").to_dicts()
    [{'friend': 'Bo'}]
    """


def init(
    uri: str | Path, schema: str | Path, *, force: bool = False, actor: str | None = None
) -> Graph:
    """Create a graph and open it.

    `uri` is a path or an `s3://` URI, `schema` is schema text or the path of a `.pg` file. `force`
    replaces what an unfinished init left, never a graph. Raises `AlreadyInitialized`,
    `LanguageError` or `UnsafeStore`.

    >>> og.init("books.omni", schema="node Book { title: String @key }")
    Graph('...books.omni', branch='main')
    """
    from omnigraph.read.source_files import schema_source
    from omnigraph.versioning.genesis import create_graph

    root = normalise_root(_location(uri))
    # A wrong setting is reported before anything is created.
    durability = Durability(read_settings().durability)
    objects, tables = open_store(root, durability), TableStore(root, durability)
    create_graph(root, objects, tables, schema_source(schema), force=force)
    core = GraphCore(root, objects, tables)
    return Graph(core, core.find_branch("main"), actor=actor)


def open(
    uri: str | Path,
    *,
    branch: str = "main",
    read_only: bool = False,
    actor: str | None = None,
    view: ReadView | None = None,
    max_staleness: float | None = None,
) -> Graph:
    """Open a graph.

    `actor` is recorded with its commits; `view` limits what its reads see. Opening for writing
    first completes or undoes interrupted writes. Raises `GraphNotFound` or `BranchNotFound`.

    Before every read the handle asks the store whether the branch has moved. With `max_staleness`,
    in seconds, it uses the last known state without asking if it is not older than that. Writes
    always ask.

    >>> og.open("team.omni", actor="ada")
    Graph('...team.omni', branch='main', actor='ada')
    >>> dashboard = og.open("team.omni", read_only=True, max_staleness=5.0)
    >>> dashboard.get("Person", "ada@x.org")["name"]
    'Ada'
    """
    root = normalise_root(_location(uri))
    # Opening a missing directory through the store would take longer to fail.
    if root.kind == "local" and not Path(root.uri).is_dir():
        raise GraphNotFound(root.uri)
    name = text_argument("branch", branch)
    staleness_argument(max_staleness)
    durability = Durability(read_settings().durability)
    objects, tables = open_store(root, durability), TableStore(root, durability)
    opened = open_manifest(root, objects, tables, read_only=read_only)
    manifest, schemas = opened.manifest, opened.schemas
    core = GraphCore(root, objects, tables, manifest=manifest, schemas=schemas)
    locks = None if read_only else core.locks
    if opened.needs_recovery:
        from omnigraph.storage.objects import probe_hard_links

        probe_hard_links(root)
        core.recovery.recover_everywhere()
    if opened.needs_schema_files:
        restore_schema(objects, manifest, core.branches, schemas, locks)
    if opened.needs_recovery or opened.needs_schema_files:
        schemas.contract()
    bound = core.find_branch(name)
    core.branches.refuse_moved(bound)
    return Graph(
        core, bound, actor=actor, view=view, read_only=read_only, max_staleness=max_staleness
    )


def reopen(
    uri: str,
    branch: str,
    actor: str | None,
    view: ReadView,
    read_only: bool,
    max_staleness: float,
) -> Graph:
    """A handle that came from another process, opened again."""
    return open(
        uri,
        branch=branch,
        actor=actor,
        view=view,
        read_only=read_only,
        max_staleness=max_staleness,
    )


def _location(uri: object) -> str:
    if not isinstance(uri, str | Path):
        raise InputError(f"uri must be a path or a URI, not {kind_of(uri)}")
    return str(uri)
