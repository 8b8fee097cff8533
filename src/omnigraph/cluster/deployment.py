"""Deployments that a server carries out: accepted in the ledger, done once, recovered when interrupted.

The ledger names an accepted deployment before anything is changed, and its result in the write that also records
what was changed. If a server dies in between, the sidecars tell what has happened to graphs; what was not done is
reported as not attempted and never done later. Tests: tests/cluster/test_deployments.py,
tests/server/test_deployments.py.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping

from msgspec import Struct

from omnigraph.cluster import live
from omnigraph.cluster.bundle import DeploymentId
from omnigraph.cluster.documents import (
    ClusterStop,
    CompleteDeployment,
    Diagnostics,
    ExpiredDeployment,
    ForeignDeployment,
    Lookup,
    OtherDeployment,
    OutstandingDeployment,
    UnrecordedDeployment,
)
from omnigraph.cluster.ledger import (
    Authority,
    DeploymentResult,
    GraphResult,
    Ledger,
    LedgerDraft,
    Outstanding,
)
from omnigraph.cluster.plan import ClusterPlan, make_plan
from omnigraph.cluster.resources import Desired
from omnigraph.cluster.run import Run, graph_results
from omnigraph.cluster.session import Session
from omnigraph.cluster.store import STATE_PATH, ClusterStore, StoredLedger
from omnigraph.cluster.sweep import sweep
from omnigraph.errors import OmnigraphError
from omnigraph.faults import declare

log = logging.getLogger(__name__)

AFTER_ACCEPTANCE = declare(
    "cluster.after_acceptance", "the ledger has the deployment, nothing is changed yet"
)

_DONE = ("created", "deleted", "schema", "query_only")


class Prepared(Struct, frozen=True):
    """A deployment that was checked against a ledger."""

    session: Session
    desired: Desired
    plan: ClusterPlan
    base: StoredLedger

    @property
    def changed_graphs(self) -> dict[str, GraphResult]:
        """What is to happen to graphs, by id."""
        found = graph_results(self.plan.changes)
        return {graph_id: one for graph_id, one in found.items() if one.outcome in _DONE}

    @property
    def closed_graphs(self) -> list[str]:
        """Existing graphs whose schema changes, or that go."""
        return sorted(
            graph_id
            for graph_id, one in self.changed_graphs.items()
            if one.outcome in ("schema", "deleted")
        )


def prepare(store: ClusterStore, desired: Desired, found: Diagnostics) -> Prepared:
    """Compare a declaration with the ledger and check what would fail; problems are in `found`.

    Changes nothing and takes no lock. Raises `ClusterStop`.
    """
    session = Session.of_desired(desired, store, "deploy")
    session.found = found
    session.stored = require_ledger(store)
    made = make_plan(desired, session.ledger, [], needs_approvals=False)
    made = live.with_previews(store, desired, made, found)
    prepared = Prepared(session, desired, made, session.stored)
    for change in made.changes:
        if change.migration is not None and not change.migration.supported:
            message = "the schema change is not supported; `steps` of its migration say why"
            found.error("schema_unsupported", change.resource, message)
        if change.kind == "schema" and change.operation == "update":
            _check_graph(store, change.graph_id, found)
    return prepared


def _check_graph(store: ClusterStore, graph_id: str, found: Diagnostics) -> None:
    try:
        others = live.other_branches(store, graph_id)
    except OmnigraphError as error:
        found.error("graph_observation_error", f"graph.{graph_id}", str(error))
        return
    if others:
        listed = ", ".join(others[:5]) + (" …" if len(others) > 5 else "")
        message = f"its schema cannot change while it has other branches: {listed}"
        found.error("schema_has_branches", f"schema.{graph_id}", message)


def require_ledger(store: ClusterStore) -> StoredLedger:
    """The ledger, in the version that has deployments. Raises `ClusterStop`."""
    stored, where = store.read_ledger(), store.where(STATE_PATH)
    if stored is None:
        raise ClusterStop("state_missing", where, "there is no ledger; run `cluster apply` first")
    if stored.ledger.ledger_id is None:
        message = "the ledger is of version 1; `cluster apply` or the next start makes it version 2"
        raise ClusterStop("unsupported_state_version", where, message)
    return stored


# -- names and results ----------------------------------------------------------------------


def look_up(ledger: Ledger, wanted: DeploymentId) -> Lookup:
    """What the ledger knows of a deployment."""
    if wanted.ledger_id != ledger.ledger_id:
        return ForeignDeployment()
    name, outstanding = str(wanted), ledger.outstanding
    if outstanding is not None and outstanding.id == name:
        return outstanding_document(name, outstanding.graphs)
    for result in ledger.deployment_results:
        if result.id == name:
            return CompleteDeployment(result)
    if wanted.sequence >= ledger.next_sequence:
        return UnrecordedDeployment()
    recorded = [one.id for one in ledger.deployment_results]
    if outstanding is not None:
        recorded.append(outstanding.id)
    known = (DeploymentId.parse(one) for one in recorded)
    if any(one is not None and one.sequence == wanted.sequence for one in known):
        return OtherDeployment()
    return ExpiredDeployment()


def outstanding_document(name: str, graphs: Mapping[str, GraphResult]) -> OutstandingDeployment:
    """A deployment that has begun, and what it is to do to graphs."""
    return OutstandingDeployment(name, {id: one.outcome for id, one in graphs.items()})


def check_new(ledger: Ledger, wanted: DeploymentId) -> None:
    """Raises `ClusterStop` unless an id can name the next deployment."""
    if wanted.ledger_id != ledger.ledger_id:
        message = f"the id names the ledger {wanted.ledger_id}; this one is {ledger.ledger_id}"
        raise ClusterStop("different_ledger", "deployment_id", message)
    if ledger.outstanding is not None:
        raise _unrecovered(ledger.outstanding)
    if wanted.sequence != ledger.next_sequence:
        message = (
            f"the id has sequence number {wanted.sequence}; the next deployment has "
            f"{ledger.next_sequence}"
        )
        raise ClusterStop("stale_sequence", "deployment_id", message)


def _unrecovered(outstanding: Outstanding) -> ClusterStop:
    message = (
        f"deployment {outstanding.id} was accepted and has no result; when its server is gone, run "
        f"`cluster apply --deployment-id {outstanding.id}`"
    )
    return ClusterStop("deployment_outstanding", STATE_PATH, message)


# -- doing it -------------------------------------------------------------------------------


def deploy(
    prepared: Prepared,
    deployment_id: DeploymentId,
    authority: Authority,
    accepted: Callable[[], None],
) -> DeploymentResult:
    """Accept a deployment in the ledger, call `accepted`, and carry it out.

    Raises `ClusterStop`: before `accepted` was called nothing is changed; after it the ledger keeps the
    deployment as outstanding.
    """
    session, desired = prepared.session, prepared.desired
    base = prepared.base
    with session.locked():
        stored = session.stored
        if stored is None or stored.cas != base.cas:
            message = "the ledger has changed since the deployment was checked; send it again"
            raise ClusterStop("state_cas_mismatch", session.store.where(STATE_PATH), message)
        check_new(stored.ledger, deployment_id)
        outstanding = Outstanding(
            id=str(deployment_id),
            input_digest=desired.config_digest,
            authority=authority,
            base=base.cas,
            graphs=prepared.changed_graphs,
            targets={one.resource: one.after_digest for one in prepared.plan.changes},
            lock_id=session.lock_id,
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        draft = LedgerDraft(stored.ledger)
        draft.accept(outstanding)
        session.stored = session.store.write_ledger(stored, draft.finish())
        AFTER_ACCEPTANCE.hit(deployment=outstanding.id)
        accepted()
        run = Run(session, desired, authority.actor, accepted=outstanding)
        run.run()
    if run.result is None:
        problems = "; ".join(one.message for one in session.found if one.severity == "error")
        raise ClusterStop("deployment_outstanding", STATE_PATH, problems)
    return run.result


# -- recovering what was interrupted ----------------------------------------------------------


def recover_outstanding(session: Session, deployment_id: str | None) -> None:
    """In a command that holds the lock: recover the named deployment. Raises `ClusterStop`.

    It also raises if there is one and it is not named, as its server may still work on it.
    """
    outstanding = session.ledger.outstanding
    if outstanding is None or outstanding.id != deployment_id:
        if outstanding is not None:
            raise _unrecovered(outstanding)
        if deployment_id is not None:
            message = "no such deployment is outstanding"
            raise ClusterStop("deployment_not_outstanding", deployment_id, message)
        return
    assert session.stored is not None
    session.stored = _recover(session.store, session.stored, outstanding, session.found)


def recover_at_boot(store: ClusterStore, stored: StoredLedger) -> StoredLedger:
    """The ledger after an interrupted deployment was recovered, if its server is known to be gone."""
    outstanding = stored.ledger.outstanding
    if outstanding is None:
        return stored
    found = Diagnostics()
    try:
        lock = store.read_lock()
        holds = lock is not None and lock.lock_id == outstanding.lock_id
        if (holds or outstanding.lock_id is None) and _may_run(outstanding):
            log.warning("%s", _unrecovered(outstanding))
            return stored
        if holds and lock is not None:
            store.force_unlock(lock.lock_id)
        with store.locked("boot", found, is_enabled=True):
            current = store.read_ledger()
            if current is None or current.ledger.outstanding != outstanding:
                return stored if current is None else current
            recovered = _recover(store, current, outstanding, found)
    except ClusterStop as stop:
        log.warning("deployment %s stays outstanding: %s", outstanding.id, stop)
        return stored
    for one in found:
        log.warning("%s", one.render())
    return recovered


def _may_run(outstanding: Outstanding) -> bool:
    """Whether the process that accepted a deployment may still be there."""
    if outstanding.host != socket.gethostname():
        return True
    if outstanding.pid == os.getpid():
        return False  # A container gives every start the same number.
    try:
        os.kill(outstanding.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _recover(
    store: ClusterStore, stored: StoredLedger, outstanding: Outstanding, found: Diagnostics
) -> StoredLedger:
    """Record what an interrupted deployment has done to graphs.

    While the sidecar of one of its graphs cannot be recovered, the deployment stays outstanding.
    """
    draft = LedgerDraft(stored.ledger)
    swept = sweep(store, draft, found, outstanding.authority.actor)
    if not swept.pending & set(outstanding.graphs):
        draft.complete(_result(draft, outstanding))
    if draft.is_changed:
        stored = store.write_ledger(stored, draft.finish())
    for one in swept.recovered:
        store.remove_sidecar(one, found)
    return stored


def _result(draft: LedgerDraft, outstanding: Outstanding) -> DeploymentResult:
    digests, targets = draft.digests, outstanding.targets

    def is_reached(address: str) -> bool:
        return digests.get(address) == targets[address]

    graphs = {}
    for graph_id, wanted in outstanding.graphs.items():
        prefix = f"query.{graph_id}."
        deciding = [a for a in targets if wanted.outcome == "query_only" and a.startswith(prefix)]
        deciding = (
            deciding or [a for a in (f"schema.{graph_id}", f"graph.{graph_id}") if a in targets][:1]
        )
        is_done = all(map(is_reached, deciding))
        graphs[graph_id] = wanted if is_done else GraphResult("not_attempted")
    revision = draft.preview().applied_revision
    is_converged = all(map(is_reached, targets))
    return DeploymentResult(
        id=outstanding.id,
        input_digest=outstanding.input_digest,
        authority=outstanding.authority,
        base=outstanding.base,
        result_revision=revision.result_revision,
        config_digest=revision.config_digest,
        graphs=graphs,
        converged=is_converged,
    )
