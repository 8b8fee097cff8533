"""Opening a graph: what has to be set right, or seen differently, before it can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.engine.schema_cache import SchemaCache
from omnigraph.errors import GraphNotFound, StoreCallFailed, TableMissing
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.bootstrap import Bootstrap
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.rows import MANIFEST_PATH
from omnigraph.versioning.stamp import is_older_graph

if TYPE_CHECKING:
    from omnigraph.versioning.locks import WriterLocks


def open_manifest(
    root: GraphRoot, objects: ObjectStore, tables: TableStore, *, read_only: bool
) -> tuple[Manifest, SchemaCache]:
    """The manifest and the schemas of a graph, whatever format it is stored in.

    For writing, a graph of an older format is converted first; for reading, it is read as if it had
    been. Raises `GraphNotFound` or `NewerFormat`.
    """
    try:
        if is_older_graph(tables):
            if read_only:
                return _converted_in_memory(objects, tables)
            _convert(root, objects, tables)
        manifest = Manifest(tables)
        manifest.current(None)
    except TableMissing as error:
        raise GraphNotFound(root.uri) from error
    except StoreCallFailed as error:
        torn = tables.find_torn(MANIFEST_PATH)
        if torn is None or torn.previous is not None:
            raise
        # Its first moment was not written completely, so there has never been a graph.
        raise GraphNotFound(root.uri) from error
    return manifest, SchemaCache(objects)


def _convert(root: GraphRoot, objects: ObjectStore, tables: TableStore) -> None:
    from omnigraph.versioning.upgrade.migrate import migrate

    migrate(root, objects, tables)


def _converted_in_memory(objects: ObjectStore, tables: TableStore) -> tuple[Manifest, SchemaCache]:
    from omnigraph.versioning.upgrade.view import OldManifest

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
