"""Opening a graph: what has to be set right, or seen differently, before it can be used."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.api.core import head_notes
from omnigraph.errors import (
    GraphNotFound,
    ManifestDamaged,
    SchemaContractBroken,
    StoreCallFailed,
    TableMissing,
)
from omnigraph.graph.schema_cache import SchemaCache
from omnigraph.side_by_side import both
from omnigraph.storage.objects import DirectoryListing, ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.bootstrap import Bootstrap
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.contract import STAGED, read_listed_files
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.rows import MANIFEST_PATH, RECOVERY_DIR, is_older_graph

if TYPE_CHECKING:
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
