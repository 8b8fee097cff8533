"""Opening graphs, and the handle on one.

A handle is bound to one branch. It is synchronous and thread-safe, starts no event loop and never
forks. Reads always look at storage, so other writers' commits are visible without a refresh."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from omnigraph.api.analytics import Analyses
from omnigraph.api.arguments import kind_of, staleness_argument, text_argument
from omnigraph.api.branches import HasTags
from omnigraph.api.core import GraphCore, head_notes
from omnigraph.api.history import History
from omnigraph.api.maintenance import HasMaintenance
from omnigraph.api.merging import Merges
from omnigraph.api.reading import HasBlobs, Reads
from omnigraph.api.schema import HasSchema
from omnigraph.errors import (
    GraphNotFound,
    InputError,
    ManifestDamaged,
    SchemaContractBroken,
    StoreCallFailed,
    TableMissing,
)
from omnigraph.graph.schema_cache import SchemaCache
from omnigraph.settings import read_settings
from omnigraph.side_by_side import both
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import DirectoryListing, ObjectStore, open_store
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot, normalise_root
from omnigraph.versioning.bootstrap import Bootstrap
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.contract import STAGED, read_listed_files
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.rows import MANIFEST_PATH, RECOVERY_DIR, is_older_graph

if TYPE_CHECKING:
    from omnigraph.graph.gate import Gate
    from omnigraph.read.view import ReadView
    from omnigraph.versioning.locks import WriterLocks


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """What opening a graph has found."""

    manifest: Manifest
    schemas: SchemaCache
    needs_recovery: bool
    """Whether something may have to be completed or undone before the graph is written to."""
    needs_schema_files: bool
    """Whether compiled schema files may be missing."""


def open_manifest(
    root: GraphRoot, objects: ObjectStore, tables: TableStore, *, read_only: bool
) -> OpenedGraph:
    """The manifest and the schemas of a graph, whatever format it is stored in.

    For writing, a graph of an older format is converted first; for reading, it is read as if it had
    been. Raises `GraphNotFound` or `NewerFormat`.
    """
    try:
        if tables.is_remote:
            try:
                return _open_remote(objects, tables, read_only=read_only)
            except ManifestDamaged:
                if not is_older_graph(tables):
                    raise
        if is_older_graph(tables):
            if read_only:
                manifest, schemas = _converted_in_memory(objects, tables)
                return OpenedGraph(manifest, schemas, needs_recovery=False, needs_schema_files=True)
            _convert(root, objects, tables)
        manifest = Manifest(tables, head_notes(objects))
        manifest.current(None)
    except TableMissing as error:
        raise GraphNotFound(root.uri) from error
    except StoreCallFailed as error:
        torn = tables.find_torn(MANIFEST_PATH)
        if torn is None or torn.previous is not None:
            raise
        # Its first moment was not written completely, so there has never been a graph.
        raise GraphNotFound(root.uri) from error
    schemas = SchemaCache(objects)
    return OpenedGraph(manifest, schemas, needs_recovery=not read_only, needs_schema_files=True)


def _open_remote(objects: ObjectStore, tables: TableStore, *, read_only: bool) -> OpenedGraph:
    """The same on an object store, where all that is needed is asked for at once.

    An object store has no folder without objects, so that one listing tells whether any sidecar or
    schema file waits.
    """
    manifest, schemas = Manifest(tables, head_notes(objects)), SchemaCache(objects)

    def is_unfinished(level: DirectoryListing) -> bool:
        waits = any(path.endswith(STAGED) for path in level.objects)
        return not read_only and (RECOVERY_DIR in level.folders or waits)

    def read_schema(level: DirectoryListing | None = None) -> None:
        listed = None if level is None else partial(read_listed_files, objects, level.objects)
        # Missing or broken files are reported or rebuilt once the graph is known to exist.
        with suppress(SchemaContractBroken):
            schemas.contract(listed)

    def look() -> bool:
        if objects.may_have_kept():
            level = objects.list_level("")
            read_schema(level)
            return is_unfinished(level)
        if read_only:
            read_schema()
            return False
        level, _ = both(lambda: objects.list_level(""), read_schema)
        return is_unfinished(level)

    _, needs_recovery = both(lambda: manifest.current(None), look)
    return OpenedGraph(
        manifest, schemas, needs_recovery, needs_schema_files=not schemas.has_compiled_files()
    )


def _convert(root: GraphRoot, objects: ObjectStore, tables: TableStore) -> None:
    from omnigraph.versioning.upgrade.migrate import migrate

    migrate(root, objects, tables)


def _converted_in_memory(objects: ObjectStore, tables: TableStore) -> tuple[Manifest, SchemaCache]:
    from omnigraph.versioning.upgrade.migrate import OldManifest

    old = OldManifest(tables, objects)
    old.current(None)
    return old, SchemaCache(objects, old.contract_files)


def restore_schema(
    objects: ObjectStore,
    manifest: Manifest,
    branches: Branches,
    schemas: SchemaCache,
    locks: WriterLocks | None,
) -> None:
    """Make missing compiled schema files again; without locks only for the eyes of this handle."""
    bootstrap = Bootstrap(objects, manifest, branches)
    if locks is not None:
        bootstrap.restore(locks)
    elif not schemas.is_converted:  # An older graph needs no compiled schema.
        stand_in = bootstrap.stand_in()
        if stand_in is not None:
            schemas.stand_in(stand_in)


class Graph(
    Reads,
    Analyses,
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
    policy: str | Path | Gate | None = None,
    view: ReadView | None = None,
    max_staleness: float | None = None,
) -> Graph:
    """Open a graph.

    `actor` is recorded with its commits; `view` limits what its reads see. Opening for writing
    first completes or undoes interrupted writes. Raises `GraphNotFound` or `BranchNotFound`.

    `policy` is the path or the text of a policy. Every write of this handle, and of the handles made
    from it, then needs an actor whom a rule allows it. Raises `PolicyInvalid`.

    Before every read the handle asks the store whether the branch has moved. With `max_staleness`,
    in seconds, it uses the last known state without asking if it is not older than that. Writes
    always ask.

    >>> og.open("team.omni", actor="ada")
    Graph('...team.omni', branch='main', actor='ada')
    >>> dashboard = og.open("team.omni", read_only=True, max_staleness=5.0)
    >>> dashboard.get("Person", "ada@x.org")["name"]
    'Ada'
    >>> rules = "{version: 1, groups: {staff: [ada]}, rules: []}"
    >>> og.open("team.omni", actor="ada", policy=rules).branches.delete("draft")
    Traceback (most recent call last):
    omnigraph.errors.services.PolicyDenied: policy denied action 'branch_delete' targeting branch 'draft' for actor 'ada'
    """
    gate = _gate(policy)
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
    core = GraphCore(root, objects, tables, manifest=manifest, schemas=schemas, gate=gate)
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
    if core.read_policy is not None:
        core.read_policy.check_reads(core.contract().catalog)
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
    policy: Gate | None,
) -> Graph:
    """A handle that came from another process, opened again."""
    return open(
        uri,
        branch=branch,
        actor=actor,
        policy=policy,
        view=view,
        read_only=read_only,
        max_staleness=max_staleness,
    )


def _gate(policy: object) -> Gate | None:
    if policy is None:
        return None
    if isinstance(policy, str | Path):
        from omnigraph.policy.gate import open_gate

        return open_gate(policy)
    if callable(getattr(policy, "check", None)):
        return cast("Gate", policy)
    raise InputError(f"policy must be a path or the text of a policy, not {kind_of(policy)}")


def _location(uri: object) -> str:
    if not isinstance(uri, str | Path):
        raise InputError(f"uri must be a path or a URI, not {kind_of(uri)}")
    return str(uri)
