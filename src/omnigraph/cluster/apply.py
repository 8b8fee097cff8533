"""`cluster plan`, `approve` and `apply`: the same plan shown, approved and carried out.

A run writes a sidecar before it creates, migrates or deletes a graph, and one ledger at the end. Whatever stops it in
between, the next run recovers the sidecars and goes on. Tests: tests/cluster/test_apply.py, tests/cluster/test_kills.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omnigraph.cluster import live
from omnigraph.cluster.deployment import recover_outstanding
from omnigraph.cluster.documents import (
    ApplyOutput,
    ApproveOutput,
    ClusterStop,
    PlanOutput,
)
from omnigraph.cluster.ledger import (
    Approval,
    Ledger,
    now,
)
from omnigraph.cluster.observe import report_pending
from omnigraph.cluster.plan import (
    ClusterPlan,
    find_changes,
    gate_reason,
    gated_changes,
    make_plan,
)
from omnigraph.cluster.resources import Desired
from omnigraph.cluster.run import Run, warn_stale
from omnigraph.cluster.session import Session
from omnigraph.versioning.ids import new_ulid

# -- plan and approve -----------------------------------------------------------------------


def plan(folder: Path) -> PlanOutput:
    """What `apply` would do. Writes nothing but the lock."""
    session = Session(folder, "plan")
    desired, made = session.open_declaration(), None
    if desired is not None:
        with session.stops_reported(), session.locked():
            report_pending(session)
            approvals = session.store.approvals(session.found)
            made = make_plan(desired, session.ledger, approvals)
            made = live.with_previews(session.store, desired, made, session.found)
            warn_stale(made, session.found)
    return plan_output(session, desired, made)


def plan_output(session: Session, desired: Desired | None, made: ClusterPlan | None) -> PlanOutput:
    """The document of a plan."""
    observations = session.observations()
    return PlanOutput(
        ok=session.found.ok,
        config_dir=str(session.folder),
        desired_revision=session.revision(),
        resource_digests={} if desired is None else desired.digests,
        dependencies=[] if desired is None else desired.dependencies,
        state_observations=observations,
        changes=() if made is None else made.changes,
        blast_radius=() if made is None else made.blast_radius,
        approvals_required=() if made is None else made.approvals_required,
        diagnostics=list(session.found),
    )


def approve(folder: Path, resource: str, actor: str) -> ApproveOutput:
    """Allow one gated change, as long as neither the declaration nor the state changes."""
    session = Session(folder, "approve")
    desired, approval = session.open_declaration(), None
    if desired is not None:
        with session.stops_reported(), session.locked():
            approval = _approval(desired, session.ledger, resource, actor)
            session.store.write_approval(approval)
    is_given = approval is not None and session.found.ok
    return ApproveOutput(
        ok=session.found.ok,
        config_dir=str(folder),
        approval_id=approval.approval_id if approval is not None and is_given else None,
        resource=resource if is_given else None,
        operation="delete" if is_given else None,
        approved_by=actor if is_given else None,
        diagnostics=list(session.found),
    )


def _approval(desired: Desired, ledger: Ledger, resource: str, actor: str) -> Approval:
    gated = {
        change.resource: change for change in gated_changes(list(find_changes(desired, ledger)))
    }
    change = gated.get(resource)
    if change is None:
        listed = f"; needed for {', '.join(gated)}" if gated else "; no change needs one"
        raise ClusterStop("approval_not_required", resource, f"no approval is needed here{listed}")
    return Approval(
        approval_id=new_ulid(),
        resource=resource,
        operation=change.operation,
        reason=gate_reason(change),
        bound_config_digest=desired.config_digest,
        bound_before_digest=change.before_digest,
        bound_after_digest=change.after_digest,
        approved_by=actor,
        created_at=now(),
    )


# -- apply ----------------------------------------------------------------------------------


def apply(
    folder: Path,
    actor: str | None = None,
    announce: Callable[[str], None] = lambda deployment_id: None,
    *,
    outstanding: str | None = None,
) -> ApplyOutput:
    """Make storage what a directory declares. `announce` gets the deployment id before the work begins.

    `outstanding` is the deployment of a server that was interrupted, which is recovered first.
    """
    session = Session(folder, "apply")
    desired, run = session.open_declaration(), None
    if desired is not None:
        with session.stops_reported(), session.locked():
            recover_outstanding(session, outstanding)
            run = Run(session, desired, actor)
            run.run(announce)
    observations = session.observations()
    changes = () if run is None else run.changes
    return ApplyOutput(
        ok=session.found.ok,
        config_dir=str(folder),
        actor=actor,
        deployment_id=None if run is None or not run.is_written else run.deployment_id,
        desired_revision=session.revision(),
        state_observations=observations,
        changes=changes,
        applied_count=sum(one.disposition in ("applied", "derived") for one in changes),
        deferred_count=sum(one.disposition in ("deferred", "blocked") for one in changes),
        converged=run is not None and run.is_converged and session.found.ok,
        state_written=run is not None and run.is_written,
        resource_statuses=session.ledger.resource_statuses,
        diagnostics=list(session.found),
    )
