"""One object for everything that can be done with a graph.

A handle is bound to one branch. It is synchronous and thread-safe, starts no event loop and never
forks. Reads always look at storage, so another writer's commits are seen without a refresh.
"""

from __future__ import annotations

from pathlib import Path

from omnigraph.engine.graph.blobs import Blobs
from omnigraph.engine.graph.comparing import Comparisons
from omnigraph.engine.graph.embeddings import Embeddings
from omnigraph.engine.graph.history import History
from omnigraph.engine.graph.maintenance import Maintenance
from omnigraph.engine.graph.merging import Merges
from omnigraph.engine.graph.pinning import Pinning
from omnigraph.engine.graph.reading import Reads
from omnigraph.engine.graph.schema import Schemas
from omnigraph.engine.graph.writing import Writes
from omnigraph.engine.opening import open_manifest, restore_schema
from omnigraph.errors import (
    GraphNotFound,
)
from omnigraph.storage.durability import durability_from_environment
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root


def init(uri: str | Path, schema: str | Path, *, force: bool = False) -> Graph:
    """Create a graph and open it. `schema` is schema text or the path of a schema file."""
    from omnigraph.engine.source_files import schema_source
    from omnigraph.versioning.genesis import create_graph
    from omnigraph.versioning.locks import lock_wait_from_environment

    root = normalise_root(str(uri))
    durability = durability_from_environment()
    # A wrong setting is reported before anything is made.
    lock_wait_from_environment()
    objects, tables = open_store(root, durability), TableStore(root, durability)
    create_graph(root, objects, tables, schema_source(schema), force=force)
    return Graph(root, objects, tables)


def open(uri: str | Path, *, branch: str = "main", read_only: bool = False) -> Graph:
    """Open a graph. Raises `GraphNotFound`, `BranchNotFound` or `UnsafeStore`."""
    root = normalise_root(str(uri))
    # The store takes its time to find out that a file holds no graph.
    if root.kind == "local" and not Path(root.uri).is_dir():
        raise GraphNotFound(root.uri)
    durability = durability_from_environment()
    objects, tables = open_store(root, durability), TableStore(root, durability)
    manifest, schemas = open_manifest(root, objects, tables, read_only=read_only)
    graph = Graph(root, objects, tables, manifest=manifest, schemas=schemas, read_only=read_only)
    if not read_only:
        from omnigraph.storage.probe import probe_hard_links

        probe_hard_links(root)
        graph._recovery.heal_everywhere()
    locks = None if read_only else graph._locks
    restore_schema(objects, manifest, graph._branches, schemas, locks)
    graph.sync_branch(branch)
    graph._branches.refuse_moved(graph._bound)
    return graph


class Graph(
    Reads,
    Blobs,
    Writes,
    Embeddings,
    Schemas,
    Merges,
    Comparisons,
    History,
    Maintenance,
    Pinning,
):
    """An open graph, bound to one branch."""
