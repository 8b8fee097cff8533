"""Finds a graph by its cluster and id, and the cluster that manages a graph.

Only the ledger is read, so that maintenance also works on a cluster whose catalog is damaged.
Tests: tests/cluster/test_addressing.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from omnigraph.cluster.config import ClusterConfig, read_config, storage_root
from omnigraph.cluster.documents import ClusterStop, Diagnostics
from omnigraph.cluster.ledger import Ledger, text_digest
from omnigraph.cluster.store import STATE_PATH, ClusterStore
from omnigraph.diagnostics import with_hint
from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.settings import read_settings
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import normalise_root

_MANAGED: Final = re.compile(r"(?P<root>.+)/graphs/(?P<id>[^/]+)\.omni\Z")


def open_cluster(cluster: str) -> ClusterStore:
    """The storage root of a cluster: an address with `://`, or a directory with a `cluster.yaml`.

    The file is consulted only for `storage`; one that is missing or not valid counts as empty. Raises
    `ClusterStop`.
    """
    if "://" in cluster:
        try:
            return ClusterStore(normalise_root(cluster))
        except OmnigraphError as error:
            raise ClusterStop("storage_root_invalid", cluster, str(error)) from None
    config = read_config(Path(cluster), Diagnostics())
    return ClusterStore(storage_root(config or ClusterConfig(), Path(cluster)))


def find_graph(cluster: str, graph: str | None) -> str:
    """The address of an applied graph; without an id, of the only one. Raises `UsageError`."""
    store, ledger = _open_ledger(cluster)
    ids = ledger.graph_ids
    listed = f"applied: {', '.join(ids)}" if ids else "no graph is applied"
    if graph is None:
        if len(ids) != 1:
            raise UsageError(f"name a graph of the cluster {cluster} ({listed})")
        return store.graph_uri(ids[0])
    if graph not in ids:
        message = f"graph '{graph}' is not applied in cluster {cluster} ({listed})"
        raise UsageError(with_hint(message, graph, ids))
    return store.graph_uri(graph)


def applied_policy(cluster: str, graph: str | None) -> str | None:
    """The text of the policy that applies to a graph, if one does. Raises `UsageError`."""
    store, ledger = _open_ledger(cluster)
    scope = f"graph.{graph or ledger.graph_ids[0]}"
    for address, resource in ledger.resources.items():
        if scope not in (resource.applies_to or ()):
            continue
        text = store.read_payload(address, resource.digest)
        if text is None or text_digest(text) != resource.digest:
            raise UsageError(
                f"{address} of the cluster {cluster} is missing or damaged; run `omnigraph cluster "
                "refresh`, then `omnigraph cluster apply`"
            )
        return text
    return None


def applied_queries(cluster: str, graph: str | None) -> dict[str, str]:
    """The texts of the stored queries that are applied for a graph, by name. Raises `UsageError`."""
    from omnigraph.cluster.serving import read_snapshot

    find_graph(cluster, graph)
    served = read_snapshot(cluster).graphs
    chosen = next(one for one in served if graph is None or one.id == graph)
    return dict(chosen.queries)


def _open_ledger(cluster: str) -> tuple[ClusterStore, Ledger]:
    try:
        store = open_cluster(cluster)
        stored = store.read_ledger()
    except ClusterStop as stop:
        found = stop.diagnostic
        raise UsageError(f"cluster {cluster}: [{found.code}] {found.message}") from None
    if stored is None:
        raise UsageError(
            f"{cluster} has no ledger, so no graph of it is known; run `omnigraph cluster apply` first"
        )
    return store, stored.ledger


def managing_cluster(uri: str) -> str | None:
    """The root of the cluster that manages what is at an address, if there is one."""
    try:
        found = _MANAGED.match(normalise_root(uri).uri)
    except OmnigraphError:
        return None  # Opening the graph says what is wrong with the address.
    if found is None:
        return None
    root = normalise_root(found["root"])
    store = open_store(root, Durability(read_settings().durability))
    return root.uri if store.exists(STATE_PATH) else None


def refuse_managed(command: str, uri: str) -> None:
    """Raise if a graph belongs to a cluster, which alone may create it and change its schema."""
    root = managing_cluster(uri)
    if root is not None:
        raise UsageError(
            f"{uri} belongs to the cluster at {root}; `{command}` does not apply there. Change the "
            "declaration and run `omnigraph cluster apply`"
        )
