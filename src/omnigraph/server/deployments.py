"""Live deployments: a new revision of a cluster is checked, carried out and installed while the server serves.

Graphs whose schema changes, and those that go, answer 503 while that happens; all others are served throughout.
What is installed comes from the ledger, so a revision that another process has applied is installed the same way.
Tests: tests/server/test_deployments.py.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph.cluster.addressing import open_cluster
from omnigraph.cluster.apply import plan_output
from omnigraph.cluster.bundle import Bundle, DeploymentId, TooLarge, check_size, read_bundle
from omnigraph.cluster.deployment import (
    Prepared,
    check_new,
    deploy,
    look_up,
    outstanding_document,
    prepare,
    require_ledger,
)
from omnigraph.cluster.documents import (
    ClusterStop,
    CompleteDeployment,
    DeploymentOutput,
    DeploymentStatus,
    DeploymentStatusOutput,
    DesiredRevision,
    Diagnostic,
    Diagnostics,
    Lookup,
    OutstandingDeployment,
    PlanOutput,
    UnrecordedDeployment,
)
from omnigraph.cluster.ledger import Authority, Ledger
from omnigraph.cluster.resources import Desired
from omnigraph.cluster.serving import snapshot_of
from omnigraph.errors import OmnigraphError, ServerConfigError
from omnigraph.graph.gate import Action, Request
from omnigraph.server.cluster_boot import ClusterBoot, Opening, SecretMissing, graph_settings
from omnigraph.server.graphs import Access, ServedGraph, UnavailableGraph, check_graph_id
from omnigraph.server.problems import HttpProblem
from omnigraph.versioning.branch_names import MAIN
from omnigraph.wire.errors import ResourceLimitOutput

if TYPE_CHECKING:
    from omnigraph.server.call import ServerState

log = logging.getLogger("omnigraph.server")

DRAIN_SECONDS: Final = 300.0
"""How long a deployment waits for requests to the graphs that it changes."""


@dataclass(slots=True)
class _Work:
    """A deployment that this process works on."""

    id: DeploymentId
    actor: str | None
    input_digest: str
    withdrawn: list[ServedGraph] = field(default_factory=list)
    decided: threading.Event = field(default_factory=threading.Event)
    """Set when it was accepted, or refused for good."""
    refusal: Exception | None = None


class Deployments:
    """The deployments of a server for a cluster. Thread-safe."""

    def __init__(
        self,
        state: ServerState,
        cluster: str,
        access: Access,
        *,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._state = state
        self._cluster = cluster
        self._access = access
        self._drain_seconds = drain_seconds
        self._store = open_cluster(cluster)
        self._busy = threading.Lock()
        self._work: _Work | None = None
        self._ended = threading.Event()
        self._failed_cas: str | None = None

    # -- requests ---------------------------------------------------------------------------

    def plan(self, bundle: Bundle, actor: str | None) -> PlanOutput:
        """What a deployment would do. Changes nothing."""
        self._allow(actor)
        self._check_size(bundle)
        self._begin()
        try:
            found = Diagnostics()
            try:
                desired = read_bundle(bundle, self._store, found)
                if desired is None:
                    return self._invalid(bundle, found)
                prepared = prepare(self._store, desired, found)
            except ClusterStop as stop:
                raise refusal(stop.diagnostic) from None
            self._allow_changes(prepared, actor)
            self._check_servable(desired, found)
            return plan_output(prepared.session, desired, prepared.plan)
        finally:
            self._busy.release()

    def deploy(
        self, deployment_id: str, bundle: Bundle, actor: str | None
    ) -> tuple[int, DeploymentOutput]:
        """Begin a deployment, or look up one that is known; the status, and what is known of it."""
        self._allow(actor)
        wanted = _parsed(deployment_id)
        self._check_size(bundle)
        known = self._known(wanted, bundle)
        if known is not None:
            return 200, known
        self._begin()
        work = _Work(wanted, actor, bundle.config_digest)
        try:
            # The last one may have ended since.
            known = self._known(wanted, bundle)
            if known is not None:
                self._busy.release()
                return 200, known
            prepared = self._prepared(bundle, actor, wanted)
            self._work = work
            self._close(prepared, work)
            thread = threading.Thread(
                target=self._carry_out, args=(prepared, work), name="omnigraph-deploy"
            )
            thread.start()
        except BaseException:
            self._finish(work)
            raise
        work.decided.wait()
        if work.refusal is not None:
            raise work.refusal
        accepted = outstanding_document(deployment_id, prepared.changed_graphs)
        return 202, DeploymentOutput(accepted, active=False, in_progress=True)

    def status(self, actor: str | None) -> DeploymentStatusOutput:
        """What names the next deployment."""
        self._allow(actor)
        try:
            stored = require_ledger(self._store)
            lock = self._store.read_lock()
        except ClusterStop as stop:
            raise refusal(stop.diagnostic) from None
        ledger, outstanding = stored.ledger, stored.ledger.outstanding
        assert ledger.ledger_id is not None
        status = DeploymentStatus(
            canonical_root=self._store.root.identity,
            ledger_id=ledger.ledger_id,
            state_revision=ledger.state_revision,
            result_revision=ledger.applied_revision.result_revision,
            next_sequence=ledger.next_sequence,
            lock_id=None if lock is None else lock.lock_id,
            outstanding_id=None if outstanding is None else outstanding.id,
        )
        snapshot = self._state.cluster
        is_active = snapshot is not None and snapshot.state_cas == stored.cas and self._all_ready
        return DeploymentStatusOutput(status, is_active, self._work is not None)

    def find(self, deployment_id: str, actor: str | None) -> DeploymentOutput:
        """What is known of a deployment; who began it may ask without `config_manage`."""
        wanted = _parsed(deployment_id)
        ledger = self._ledger()
        found, work = look_up(ledger, wanted), self._work
        if not self._is_initiator(ledger, found, actor, wanted):
            self._allow(actor)
        return self._output(found, wanted, work)

    # -- what a request may do --------------------------------------------------------------

    def _allow(self, actor: str | None) -> None:
        gate = self._state.server_gate
        if gate is None:
            raise HttpProblem(403, "deployments need a server policy that allows config_manage")
        gate.check(Request(actor, Action.CONFIG_MANAGE))

    def _allow_changes(self, prepared: Prepared, actor: str | None) -> None:
        """Raises `PolicyError` unless the policies in force allow to change and delete the graphs."""
        for graph_id in prepared.closed_graphs:
            gate = self._state.graphs.gate_of(graph_id)
            if gate is None:
                raise HttpProblem(409, f"graph '{graph_id}' is not known to this server yet")
            gate.check(Request(actor, Action.READ))
            gate.check(Request(actor, Action.SCHEMA_APPLY, target_branch=MAIN))

    def _is_initiator(
        self, ledger: Ledger, found: Lookup, actor: str | None, wanted: DeploymentId
    ) -> bool:
        authority = None
        work = self._work
        if work is not None and work.id == wanted:
            authority = Authority("authenticated_identity", work.actor)
        elif isinstance(found, CompleteDeployment):
            authority = found.result.authority
        elif isinstance(found, OutstandingDeployment) and ledger.outstanding is not None:
            authority = ledger.outstanding.authority
        return actor is not None and authority == Authority("authenticated_identity", actor)

    def _check_size(self, bundle: Bundle) -> None:
        try:
            check_size(bundle)
        except TooLarge as error:
            limit = ResourceLimitOutput(
                resource=error.resource.replace(" ", "_"), limit=error.limit, actual=error.actual
            )
            raise HttpProblem(413, str(error), details={"resource_limit": limit}) from None

    def _begin(self) -> None:
        if any(one.state == "loading" for one in self._state.graphs.unavailable()):
            raise _busy("graphs are still being opened")
        if self._ended.is_set() or not self._busy.acquire(blocking=False):
            raise _busy("another deployment is in progress")

    def _known(self, wanted: DeploymentId, bundle: Bundle) -> DeploymentOutput | None:
        """A deployment that is recorded already. Raises `HttpProblem` 409 if the id cannot be new."""
        ledger, work = self._ledger(), self._work
        found = look_up(ledger, wanted)
        if isinstance(found, UnrecordedDeployment):
            if work is not None and work.id == wanted:
                raise _busy("this deployment waits for running requests")
            return None
        digest = None
        if isinstance(found, CompleteDeployment):
            digest = found.result.input_digest
        elif isinstance(found, OutstandingDeployment) and ledger.outstanding is not None:
            digest = ledger.outstanding.input_digest
        if digest is None:
            try:
                check_new(ledger, wanted)
            except ClusterStop as stop:
                raise refusal(stop.diagnostic) from None
        if digest != bundle.config_digest:
            message = f"deployment {wanted} was accepted with another input"
            raise refusal(Diagnostic("input_mismatch", "error", "deployment_id", message))
        return self._output(found, wanted, work)

    def _output(self, found: Lookup, wanted: DeploymentId, work: _Work | None) -> DeploymentOutput:
        snapshot = self._state.cluster
        is_installed = snapshot is not None and snapshot.deployment_id == str(wanted)
        return DeploymentOutput(
            found,
            active=isinstance(found, CompleteDeployment) and is_installed and self._all_ready,
            in_progress=work is not None and work.id == wanted,
        )

    @property
    def _all_ready(self) -> bool:
        return not self._state.graphs.unavailable()

    def _ledger(self) -> Ledger:
        try:
            return require_ledger(self._store).ledger
        except ClusterStop as stop:
            raise refusal(stop.diagnostic) from None

    # -- before acceptance ------------------------------------------------------------------

    def _prepared(self, bundle: Bundle, actor: str | None, wanted: DeploymentId) -> Prepared:
        found = Diagnostics()
        try:
            check_new(self._ledger(), wanted)
            desired = read_bundle(bundle, self._store, found)
            _refuse_errors(found)
            assert desired is not None
            prepared = prepare(self._store, desired, found)
        except ClusterStop as stop:
            raise refusal(stop.diagnostic) from None
        self._allow_changes(prepared, actor)
        self._check_servable(desired, found)
        _refuse_errors(found)
        return prepared

    def _check_servable(self, desired: Desired, found: Diagnostics) -> None:
        """Whether this server could serve what is declared."""
        for graph_id, graph in desired.config.graphs.items():
            path = f"graphs.{graph_id}"
            try:
                check_graph_id(graph_id)
                name = graph.embedding_provider
                provider = None if name is None else desired.config.providers[name]
                graph_settings(provider, graph.external_blobs)
            except ServerConfigError as error:
                found.error("invalid_resource_id", path, str(error))
            except SecretMissing as error:
                found.error("provider_secret_missing", path, str(error))

    def _invalid(self, bundle: Bundle, found: Diagnostics) -> PlanOutput:
        """The plan of a declaration with problems."""
        return PlanOutput(
            ok=False,
            config_dir=bundle.canonical_root,
            diagnostics=list(found),
            desired_revision=DesiredRevision(bundle.config_digest),
            resource_digests={},
            dependencies=[],
            state_observations=None,
            changes=(),
            blast_radius=(),
            approvals_required=(),
        )

    def _close(self, prepared: Prepared, work: _Work) -> None:
        """Refuse requests to the graphs that change, and wait for those that run."""
        graphs = self._state.graphs
        for graph_id in prepared.closed_graphs:
            served = graphs.withdraw(graph_id)
            if served is not None:
                work.withdrawn.append(served)
        for served in work.withdrawn:
            if not served.uses.wait_idle(self._drain_seconds):
                message = (
                    f"requests to graph '{served.id}' were still running after "
                    f"{self._drain_seconds:g} seconds; nothing was changed"
                )
                raise refusal(Diagnostic("drain_timeout", "error", f"graph.{served.id}", message))

    # -- carrying it out --------------------------------------------------------------------

    def _carry_out(self, prepared: Prepared, work: _Work) -> None:
        """In a thread: accept, change and install."""
        authority = Authority("authenticated_identity", work.actor)
        log.info("deployment %s of %s begins", work.id, work.actor)
        try:
            result = deploy(prepared, work.id, authority, work.decided.set)
        except BaseException as error:
            if work.decided.is_set():
                log.error("deployment %s has no result: %s", work.id, error, exc_info=error)
                self._block(work.withdrawn)
                work.withdrawn = []
            else:
                work.refusal = (
                    refusal(error.diagnostic) if isinstance(error, ClusterStop) else error  # type: ignore[assignment]
                )
            self._finish(work)
            return
        for one in prepared.session.found:
            log.warning("deployment %s: %s", work.id, one.render())
        try:
            self._install(work.withdrawn)
        except Exception as error:
            log.error("deployment %s could not be installed: %s", work.id, error, exc_info=error)
            self._block(work.withdrawn)
        work.withdrawn = []
        outcome = "converged" if result.converged else "did not converge"
        log.info("deployment %s %s", work.id, outcome)
        self._finish(work)

    def _finish(self, work: _Work) -> None:
        """Serve the graphs again that were not changed, and take the next deployment."""
        for served in work.withdrawn:
            self._state.graphs.add(served)
        self._work = None
        self._busy.release()
        work.decided.set()

    def _block(self, withdrawn: Iterable[ServedGraph]) -> None:
        for served in withdrawn:
            self._state.graphs.block(
                UnavailableGraph(
                    served.id, served.uri, served.gate, "blocked", "invalid_configuration"
                )
            )
            served.graph.close()

    # -- installing -------------------------------------------------------------------------

    def _install(self, withdrawn: Iterable[ServedGraph] = ()) -> None:
        """Serve what the ledger has from now on. Raises `ServerConfigError` or `PolicyInvalid`."""
        state = self._state
        snapshot = snapshot_of(self._store, self._cluster)
        boot = ClusterBoot.of_snapshot(self._cluster, snapshot)
        if self._access is Access.OPEN and snapshot.has_policy:
            raise ServerConfigError(
                "the applied revision has a policy, and this server runs without tokens; start it "
                "again with tokens"
            )
        before = {} if state.cluster is None else {one.id: one for one in state.cluster.graphs}
        open_now = {served.id: served for served in state.graphs}
        opening = Opening(self._access)
        served: list[ServedGraph] = []
        unavailable: list[UnavailableGraph] = []
        for graph in snapshot.graphs:
            current = open_now.get(graph.id)
            if current is not None and before.get(graph.id) == graph:
                served.append(current)
                continue
            opening.waiting(graph)
            opened = opening.open(graph)
            if isinstance(opened, ServedGraph):
                served.append(opened)
            else:
                unavailable.append(opened)
        replaced = state.install(served, unavailable, boot.server_gate, snapshot)
        for one in withdrawn:
            one.graph.close()
        if replaced:
            closing = threading.Thread(
                target=_close_idle, args=(replaced, self._drain_seconds), daemon=True
            )
            closing.start()
        log.info("revision %d is installed", snapshot.state_revision)

    # -- other processes --------------------------------------------------------------------

    def follow(self, seconds: float) -> None:
        """Install what other processes apply, from now on. 0 turns it off."""
        if seconds > 0:
            threading.Thread(target=self._follow, args=(seconds,), daemon=True).start()

    def _follow(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            if not self._busy.acquire(blocking=False):
                continue
            try:
                self._catch_up()
            except Exception as error:
                log.warning("the ledger cannot be followed: %s", error)
            finally:
                self._busy.release()

    def _catch_up(self) -> None:
        """Install the ledger if it has changed and no command works on the cluster."""
        state = self._state
        if any(one.state == "loading" for one in state.graphs.unavailable()):
            return
        stored = self._store.read_ledger()
        known = None if state.cluster is None else state.cluster.state_cas
        if stored is None or stored.cas in (known, self._failed_cas):
            return
        if stored.ledger.outstanding is not None or self._store.read_lock() is not None:
            return
        try:
            self._install()
        except OmnigraphError as error:
            # Tried again when the ledger changes again.
            self._failed_cas = stored.cas
            log.error("the applied revision cannot be served: %s", error)

    def end(self) -> None:
        """Take no more deployments, and wait for the running one."""
        self._ended.set()
        with self._busy:
            pass


def _close_idle(graphs: Iterable[ServedGraph], seconds: float) -> None:
    for served in graphs:
        served.uses.wait_idle(seconds)
        served.graph.close()


def _parsed(text: str) -> DeploymentId:
    found = DeploymentId.parse(text)
    if found is None:
        raise HttpProblem(
            400, "a deployment id is `<ledger id>:<sequence>:<ULID>`, in the canonical spelling"
        )
    return found


def _refuse_errors(found: Diagnostics) -> None:
    for one in found:
        if one.severity == "error":
            raise refusal(one)


def refusal(found: Diagnostic) -> HttpProblem:
    """The answer for a deployment that is refused before it begins."""
    return HttpProblem(409, f"[{found.code}] {found.path}: {found.message}")


def _busy(why: str) -> HttpProblem:
    return refusal(Diagnostic("deployment_busy", "error", "deployment", f"{why}; try again later"))
