"""What a server serves of a cluster: the applied revision, read once, and no file of the declaration.

Problems that concern the whole cluster refuse the start; those of one graph are kept with it, so that the others
can be served. Tests: tests/server/test_cluster_boot.py.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from omnigraph.cluster.addressing import open_cluster
from omnigraph.cluster.config import ProviderDeclaration
from omnigraph.cluster.deployment import recover_at_boot
from omnigraph.cluster.documents import ClusterStop, Diagnostic, Diagnostics
from omnigraph.cluster.ledger import VERSION, AppliedResource, Ledger, LedgerDraft, text_digest
from omnigraph.cluster.resources import CLUSTER_SCOPE
from omnigraph.cluster.store import STATE_PATH, ClusterStore, StoredLedger, is_in_catalog
from omnigraph.errors import ServerConfigError, StorageError
from omnigraph.json_structs import described

log = logging.getLogger(__name__)


class ServingGraph(Struct, frozen=True):
    """An applied graph with its stored queries by name and its policy, all as texts."""

    id: str
    uri: str
    schema_digest: str | None
    queries: Mapping[str, str]
    policy: str | None = None
    provider: ProviderDeclaration | None = None
    external_blobs: tuple[str, ...] | None = None
    problem: Diagnostic | None = None
    """Why it must not be opened."""


class ServingSnapshot(Struct, frozen=True):
    """The applied revision of a cluster."""

    graphs: tuple[ServingGraph, ...]
    server_policy: str | None
    state_revision: int
    state_cas: str
    digest: str
    """Of all applied resources."""
    deployment_id: str | None = None
    """The deployment whose result came last."""

    @property
    def has_policy(self) -> bool:
        return self.server_policy is not None or any(graph.policy for graph in self.graphs)


def read_snapshot(cluster: str) -> ServingSnapshot:
    """What to serve. Raises `ServerConfigError` with every problem that concerns the whole cluster."""
    try:
        return snapshot_of(open_cluster(cluster), cluster)
    except ClusterStop as stop:
        found = Diagnostics()
        found.add(stop.diagnostic)
        raise not_ready(cluster, found) from None


def snapshot_of(store: ClusterStore, cluster: str) -> ServingSnapshot:
    """What to serve of a storage root, after an interrupted deployment was recovered.

    Raises `ServerConfigError`.
    """
    found = Diagnostics()
    snapshot = None
    try:
        stored = store.read_ledger()
        if stored is None:
            message = "there is no ledger; run `cluster apply` first"
            raise ClusterStop("cluster_state_missing", store.where(STATE_PATH), message)
        stored = recover_at_boot(store, _upgraded(store, stored))
        snapshot = _snapshot(store, stored, found)
    except ClusterStop as stop:
        found.add(stop.diagnostic)
    except StorageError as error:
        found.error("catalog_payload_read_error", cluster, str(error))
    if snapshot is None or not found.ok:
        raise not_ready(cluster, found)
    return snapshot


def not_ready(cluster: str, problems: Diagnostics) -> ServerConfigError:
    """The refusal to serve a cluster."""
    listed = "".join(f"\n  [{one.code}] {one.path}: {one.message}" for one in problems)
    return ServerConfigError(f"cluster {cluster} is not ready to serve:{listed}")


def _upgraded(store: ClusterStore, stored: StoredLedger) -> StoredLedger:
    """The ledger in its newest version, unless another command works on it."""
    if stored.ledger.version == VERSION:
        return stored
    try:
        with store.locked("boot", Diagnostics(), is_enabled=True):
            return store.write_ledger(stored, LedgerDraft(stored.ledger).finish())
    except ClusterStop as stop:
        log.info(
            "the ledger stays in version %d: %s", stored.ledger.version, stop.diagnostic.message
        )
        return stored


def _snapshot(store: ClusterStore, stored: StoredLedger, found: Diagnostics) -> ServingSnapshot:
    ledger = stored.ledger
    texts = dict(_payloads(store, ledger.resources, found))
    policies = _policies(ledger, texts, found)
    pending = _outstanding(ledger) | _pending(store, found)
    digest = hashlib.sha256()
    for address, resource in sorted(ledger.resources.items()):
        digest.update(f"{address}\0{resource.digest}\0".encode())
    graphs = tuple(
        ServingGraph(
            graph_id,
            store.graph_uri(graph_id),
            ledger.digest(f"schema.{graph_id}"),
            {
                address.removeprefix(f"query.{graph_id}."): text
                for address, text in texts.items()
                if address.startswith(f"query.{graph_id}.")
            },
            policies.get(f"graph.{graph_id}"),
            _provider(ledger.resources[f"graph.{graph_id}"].embedding_provider, texts, found),
            ledger.resources[f"graph.{graph_id}"].external_blobs,
            pending.get(graph_id),
        )
        for graph_id in ledger.graph_ids
    )
    return ServingSnapshot(
        graphs,
        policies.get(CLUSTER_SCOPE),
        ledger.state_revision,
        stored.cas,
        digest.hexdigest(),
        ledger.deployment_results[-1].id if ledger.deployment_results else None,
    )


def _payloads(
    store: ClusterStore, resources: Mapping[str, AppliedResource], found: Diagnostics
) -> Iterator[tuple[str, str]]:
    for address, resource in resources.items():
        if not is_in_catalog(address):
            continue
        text = store.read_payload(address, resource.digest)
        remedy = "run `cluster refresh`, then `cluster apply`, and start the server again"
        if text is None:
            found.error("catalog_payload_missing", address, f"its content is missing; {remedy}")
        elif text_digest(text) != resource.digest:
            message = f"its content is not the one that was applied; {remedy}"
            found.error("catalog_payload_digest_mismatch", address, message)
        else:
            yield address, text


def _policies(ledger: Ledger, texts: Mapping[str, str], found: Diagnostics) -> dict[str, str]:
    """The text of the policy of each scope."""
    policies: dict[str, str] = {}
    bound: dict[str, str] = {}
    for address, resource in ledger.resources.items():
        if not address.startswith("policy."):
            continue
        if not resource.applies_to:
            message = "the ledger does not say what it applies to; run `cluster apply`"
            found.error("policy_bindings_missing", address, message)
        for scope in resource.applies_to or ():
            if scope in bound:
                message = f"it applies to {scope}, and so does {bound[scope]}; bind one of them"
                found.error("duplicate_policy_binding", address, message)
            bound[scope] = address
            if address in texts:
                policies[scope] = texts[address]
    return policies


def _provider(
    name: str | None, texts: Mapping[str, str], found: Diagnostics
) -> ProviderDeclaration | None:
    text = None if name is None else texts.get(f"provider.{name}")
    if text is None:
        if name is not None:
            message = "a graph needs it, and it is not applied; run `cluster apply`"
            found.error("dangling_provider_reference", f"provider.{name}", message)
        return None
    return msgspec.json.decode(text, type=described(ProviderDeclaration))


def _outstanding(ledger: Ledger) -> dict[str, Diagnostic]:
    """Graphs that another server is changing, or has been changing when it died."""
    outstanding = ledger.outstanding
    if outstanding is None:
        return {}
    message = f"deployment {outstanding.id} has no result yet"
    return {
        graph_id: Diagnostic("deployment_outstanding", "error", f"graph.{graph_id}", message)
        for graph_id, one in outstanding.graphs.items()
        if one.outcome in ("schema", "deleted")
    }


def _pending(store: ClusterStore, found: Diagnostics) -> dict[str, Diagnostic]:
    """Graphs with an interrupted operation. One that names no graph concerns all of them."""
    unreadable = Diagnostics()
    pending = {}
    for stored in store.sidecars(unreadable):
        sidecar = stored.sidecar
        message = f"an interrupted {sidecar.kind} is not recovered; run `cluster apply`"
        path = f"graph.{sidecar.graph_id}"
        pending[sidecar.graph_id] = Diagnostic("cluster_recovery_pending", "error", path, message)
    for one in unreadable:
        found.error("cluster_recovery_pending", one.path, f"{one.code}: {one.message}")
    return pending
