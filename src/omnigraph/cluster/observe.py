"""`cluster status`, `refresh`, `import`, `observe` and `force-unlock`: what is recorded, and what is really there.

`status` looks at records only. `refresh` and `import` also open every declared graph, read-only, and write what
they see into the ledger; repairing it is left to `apply`. Tests: tests/cluster/test_records.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from omnigraph.cluster.documents import StatusOutput, UnlockOutput
from omnigraph.cluster.ledger import EMPTY, AppliedResource, LedgerDraft, ResourceStatus
from omnigraph.cluster.live import look_at
from omnigraph.cluster.resources import Desired
from omnigraph.cluster.session import Session
from omnigraph.cluster.store import STATE_PATH, is_in_catalog, payload_path
from omnigraph.cluster.sweep import SweepResult, sweep
from omnigraph.errors import StorageError


def status(folder: Path) -> StatusOutput:
    """What the ledger and the lock say, and whether the catalog has all it should."""
    session = Session(folder, "status")
    if session.open_config():
        with session.stops_reported():
            session.stored = session.store.read_ledger()
            if session.stored is None:
                message = "there is no ledger; `cluster apply` or `cluster import` makes one"
                session.found.warning("state_missing", session.store.where(STATE_PATH), message)
            report_pending(session)
            _check_catalog(session, None)
    return _output(session, None)


def report_pending(session: Session) -> None:
    """Warn of operations that were interrupted and are not recovered."""
    for stored in session.store.sidecars(session.found):
        kind, graph_id = stored.sidecar.kind, stored.sidecar.graph_id
        message = f"an interrupted {kind} waits in {session.store.where(stored.path)}"
        session.found.warning(
            "cluster_recovery_pending",
            f"graph.{graph_id}",
            f"{message}; `cluster apply` recovers it if it can",
        )


def refresh(folder: Path, actor: str | None = None) -> StatusOutput:
    """Record what is really there. Changes nothing but the ledger."""
    return _observe(Session(folder, "refresh"), "refresh", actor)


def import_(folder: Path, actor: str | None = None) -> StatusOutput:
    """Make a ledger of what is there. A graph that exists where it is declared is adopted."""
    return _observe(Session(folder, "import"), "import", actor)


def observe(folder: Path) -> StatusOutput:
    """As `refresh`, but takes no lock and writes nothing."""
    session = Session(folder, "observe")
    desired = session.open_declaration()
    if desired is None:
        return _output(session, "observe")
    draft = LedgerDraft(EMPTY)
    with session.stops_reported():
        session.stored = session.store.read_ledger()
        _require_ledger(session)
        draft = LedgerDraft(session.ledger)
        report_pending(session)
        _look(session, desired, draft)
    return replace(
        _output(session, "observe"),
        resource_digests=draft.digests,
        resource_statuses=draft.statuses,
        observations=draft.observations,
    )


def force_unlock(folder: Path, lock_id: str) -> UnlockOutput:
    """Remove the lock of a command that has died."""
    session = Session(folder, "force-unlock")
    is_removed = False
    if session.open_config():
        with session.stops_reported():
            session.store.force_unlock(lock_id)
            is_removed = True
        with session.stops_reported():
            session.stored = session.store.read_ledger()
    observations = session.observations()
    return UnlockOutput(
        ok=session.found.ok,
        config_dir=str(folder),
        state_observations=observations,
        lock_removed=is_removed,
        diagnostics=list(session.found),
    )


def _observe(
    session: Session, operation: Literal["refresh", "import"], actor: str | None
) -> StatusOutput:
    desired = session.open_declaration()
    if desired is None:
        return _output(session, operation)
    swept = SweepResult()
    with session.stops_reported(), session.locked():
        if operation == "refresh":
            _require_ledger(session)
        elif session.stored is not None:
            message = "there is a ledger already; use `cluster refresh`"
            session.found.error("state_already_exists", session.store.where(STATE_PATH), message)
        if session.found.ok:
            draft = LedgerDraft(session.ledger)
            swept = sweep(session.store, draft, session.found, actor)
            _look(session, desired, draft)
            if operation == "import":
                draft.config_digest = desired.config_digest
            if operation == "refresh" or session.found.ok:
                session.stored = session.store.write_ledger(session.stored, draft.finish())
                for stored in swept.recovered:
                    session.store.remove_sidecar(stored, session.found)
                approvals = session.store.approvals(session.found)
                records = session.ledger.approval_records
                session.store.consume_approvals(approvals, records, session.found)
    return _output(session, operation)


def _require_ledger(session: Session) -> None:
    if session.stored is None:
        message = "there is no ledger; run `cluster import` or `cluster apply` first"
        session.found.error("state_missing", session.store.where(STATE_PATH), message)


def _look(session: Session, desired: Desired, draft: LedgerDraft) -> None:
    """Note in a draft what the catalog has and what the declared graphs are."""
    _check_catalog(session, draft)
    for graph_id in desired.config.graphs:
        _look_at_graph(session, desired, draft, graph_id)
    draft.recompute_composites(desired.resources)


def _look_at_graph(session: Session, desired: Desired, draft: LedgerDraft, graph_id: str) -> None:
    graph, schema = f"graph.{graph_id}", f"schema.{graph_id}"
    wanted = desired.schema_digest(graph_id)
    live = look_at(session.store, graph_id)
    draft.observations[graph] = live.observation(session.store, graph_id, wanted)
    if not live.exists:
        for address in (graph, schema):
            draft.resources.pop(address, None)
            draft.statuses[address] = ResourceStatus(
                status="drifted", conditions=("graph_missing",)
            )
        return
    if live.schema_digest is None:
        found = ResourceStatus(
            status="error", conditions=("graph_observation_error",), message=live.error
        )
        draft.statuses[graph] = draft.statuses[schema] = found
        session.found.error("graph_observation_error", graph, live.error or "it does not open")
        return
    draft.resources[schema] = AppliedResource(digest=live.schema_digest)
    draft.resources[graph] = draft.resources.get(graph) or AppliedResource(digest="")
    is_same = live.schema_digest == wanted
    for address in (graph, schema):
        draft.statuses[address] = (
            ResourceStatus(status="applied")
            if is_same
            else ResourceStatus(status="drifted", conditions=("schema_mismatch",))
        )


def _check_catalog(session: Session, draft: LedgerDraft | None) -> None:
    """Compare the catalog with the recorded digests; with a draft, record what is wrong."""
    store, found = session.store, session.found
    for address, resource in session.ledger.resources.items():
        if not is_in_catalog(address):
            continue
        where = store.where(payload_path(address, resource.digest))
        try:
            state = store.payload_state(address, resource.digest)
        except StorageError as error:
            found.error("catalog_payload_read_error", address, str(error))
            if draft is not None:
                draft.statuses[address] = ResourceStatus(
                    status="error", conditions=("payload_read_error",)
                )
            continue
        if state == "present":
            continue
        said = "is missing" if state == "missing" else "does not have the recorded content"
        message = f"{where} {said}; run `cluster refresh`, then `cluster apply`"
        found.warning(f"catalog_payload_{state}", address, message)
        if draft is not None:
            draft.resources.pop(address, None)
            draft.statuses[address] = ResourceStatus(
                status="drifted", conditions=(f"payload_{state}",)
            )


def _output(
    session: Session, operation: Literal["refresh", "import", "observe"] | None
) -> StatusOutput:
    observations = session.observations()
    ledger = session.ledger
    return StatusOutput(
        ok=session.found.ok,
        operation=operation,
        config_dir=str(session.folder),
        state_observations=observations,
        resource_digests={address: one.digest for address, one in ledger.resources.items()},
        resource_statuses=ledger.resource_statuses,
        observations=ledger.observations,
        diagnostics=list(session.found),
    )
