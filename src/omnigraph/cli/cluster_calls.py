"""`cluster plan|apply|status --server`: a declaration is captured here and carried out by a server.

A deployment is sent at most once. Its id is printed before, so that its result can be asked for whatever
happens to the answer. Tests: tests/surfaces/remote/test_cluster_calls.py.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from omnigraph.cli.context import Context
from omnigraph.cli.exits import FAILURE, NOT_DONE_YET, SUCCESS, CommandFailed
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.server_calls import CONTRACT_13, Document, ServerCalls
from omnigraph.client.transport import Write
from omnigraph.cluster.bundle import Bundle, capture
from omnigraph.cluster.documents import Diagnostics, PlanOutput
from omnigraph.cluster.resources import read_desired
from omnigraph.config.selection import RemoteTarget
from omnigraph.errors import (
    AnswerLost,
    PolicyError,
    ServerUnreachable,
    UnexpectedAnswer,
    UsageError,
)
from omnigraph.json_structs import described
from omnigraph.versioning.ids import new_ulid

_PATH: Final = "/cluster/deployments"
_POLL_SECONDS: Final = 0.2
_UNRECORDED_LOOKS: Final = 10
"""After so many looks a deployment whose answer was lost has not arrived."""


class ClusterCalls(ServerCalls):
    """The cluster that a server serves."""

    def __init__(self, target: RemoteTarget, context: Context) -> None:
        super().__init__(target, context.token_for(target), context)

    def plan(self, folder: Path) -> PlanOutput:
        """What the server would change."""
        body = {"deployment": _document(self._captured(folder, self._root()))}
        found = self._call("POST", "/cluster/plan", body, needs=("ok", "changes"))
        try:
            return msgspec.convert(found, described(PlanOutput))
        except msgspec.ValidationError as error:
            raise UnexpectedAnswer(self.base, f"the plan cannot be read: {error}") from None

    def apply(
        self, folder: Path, deployment_id: str | None, *, wait: bool, seconds: float, as_json: bool
    ) -> int:
        """Deploy, and wait for the result."""
        ends = time.monotonic() + seconds
        status = self._call("GET", _PATH, needs=("status",))["status"]
        bundle = self._captured(folder, status["canonical_root"])
        if deployment_id is None:
            deployment_id = f"{status['ledger_id']}:{status['next_sequence']}:{new_ulid()}"
        print(f"deployment {deployment_id}", file=sys.stderr, flush=True)
        body = {"deployment_id": deployment_id, "deployment": _document(bundle)}
        was_lost = False
        try:
            left = max(0.1, ends - time.monotonic())
            found = self._call("POST", _PATH, body, write=Write(), timeout=left)
        except CommandFailed as failed:
            if not isinstance(failed.error, AnswerLost):
                raise
            found, was_lost = {}, True
        if wait or was_lost:
            return self._followed(deployment_id, ends, as_json=as_json, was_lost=was_lost)
        return self._show(deployment_id, found, as_json=as_json, code=SUCCESS)

    def one(self, deployment_id: str, *, seconds: float, as_json: bool) -> int:
        """Show one deployment, when its result is there or the time is over."""
        if seconds:
            return self._followed(deployment_id, time.monotonic() + seconds, as_json=as_json)
        found = self._look(deployment_id, None)
        return self._show(deployment_id, found, as_json=as_json, code=SUCCESS)

    def status(self, *, as_json: bool) -> int:
        """Show the ledger of the server."""
        found = self._call("GET", _PATH, needs=("status", "active", "in_progress"))
        state = found["status"]
        lines = [
            f"cluster status: revision {state['state_revision']}, next deployment {state['next_sequence']}",
            f"stored at: {state['canonical_root']}",
            f"lock: {state['lock_id'] or 'free'}",
        ]
        if state["outstanding_id"] is not None:
            lines.append(f"outstanding: {state['outstanding_id']}")
        lines.append(f"the server {_serves(found)}")
        write_answer(found, lines, as_json=as_json)
        return SUCCESS

    # -- one deployment ---------------------------------------------------------------------

    def _followed(
        self, deployment_id: str, ends: float, *, as_json: bool, was_lost: bool = False
    ) -> int:
        """Look until there is a result. Answers get lost while a server starts again."""
        looks, found = 0, {}
        while (left := ends - time.monotonic()) > 0:
            try:
                found = self._look(deployment_id, left)
            except CommandFailed as failed:
                if not isinstance(failed.error, ServerUnreachable):
                    raise
            else:
                looks += 1
                status = found["deployment"]["status"]
                is_unknown = status == "not_recorded" and was_lost and looks < _UNRECORDED_LOOKS
                if not found["in_progress"] and status != "outstanding" and not is_unknown:
                    result = found["deployment"].get("result", {})
                    is_done = bool(result.get("converged")) and found["active"]
                    code = SUCCESS if is_done else FAILURE
                    return self._show(deployment_id, found, as_json=as_json, code=code)
            time.sleep(min(_POLL_SECONDS, max(0.0, left)))
        print(
            f"no result in time; `omnigraph cluster status --server {self._context.options.server} "
            f"--deployment-id {deployment_id} --wait` goes on waiting",
            file=sys.stderr,
        )
        return self._show(deployment_id, found, as_json=as_json, code=NOT_DONE_YET)

    def _look(self, deployment_id: str, seconds: float | None) -> Document:
        path = f"{_PATH}/{quote(deployment_id, safe='')}"
        needs = ("deployment", "active", "in_progress")
        return self._call("GET", path, needs=needs, timeout=seconds)

    def _show(self, deployment_id: str, found: Document, *, as_json: bool, code: int) -> int:
        deployment = found.get("deployment", {"status": "unknown"})
        status = deployment["status"]
        lines = [f"deployment {deployment_id}: {status}"]
        result = deployment.get("result")
        graphs = deployment.get("graphs", {}) if result is None else result["graphs"]
        for graph, outcome in sorted(graphs.items()):
            lines.append(f"  {graph}: {outcome if result is None else outcome['outcome']}")
        if result is not None:
            converged = "yes" if result["converged"] else "no"
            lines.append(f"converged: {converged}; the server {_serves(found)}")
        write_answer(found, lines, as_json=as_json)
        return code

    # -- requests ---------------------------------------------------------------------------

    def _call(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        *,
        write: Write | None = None,
        needs: tuple[str, ...] = (),
        timeout: float | None = None,
    ) -> Document:
        return self.call(
            method,
            path,
            body=body,
            write=write,
            contract=CONTRACT_13,
            on_server=True,
            needs=needs,
            timeout=timeout,
        )

    def _root(self) -> str | None:
        """Where the server stores the cluster, if the caller may know."""
        try:
            found = self._call("GET", _PATH, needs=("status",))
        except CommandFailed as failed:
            if isinstance(failed.error, PolicyError):
                return None
            raise
        root: str = found["status"]["canonical_root"]
        return root

    def _captured(self, folder: Path, root: str | None) -> Bundle:
        """The declaration of a directory. Raises `UsageError` with every problem."""
        found = Diagnostics()
        desired = read_desired(folder, found)
        if desired is None:
            listed = "".join(f"\n  {one.render()}" for one in found)
            raise UsageError(f"the declaration is not valid:{listed}")
        return capture(desired, root)


def _serves(found: Document) -> str:
    if found["in_progress"]:
        return "works on it"
    return "serves it" if found["active"] else "does not serve it"


def _document(bundle: Bundle) -> Document:
    document: Document = msgspec.to_builtins(bundle)
    return document
