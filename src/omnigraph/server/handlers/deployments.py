"""Plans and deployments of the cluster that a server serves."""

from __future__ import annotations

from omnigraph.cluster.bundle import DeploymentRequest, PlanRequest
from omnigraph.server.call import Answer, Call
from omnigraph.server.deployments import Deployments
from omnigraph.server.problems import HttpProblem


def plan(call: Call) -> Answer:
    """Show what a deployment would change."""
    body: PlanRequest = call.body
    return Answer(_deployments(call).plan(body.deployment, call.actor).to_json())


def deploy(call: Call) -> Answer:
    """Begin a deployment, or show the one of that id."""
    body: DeploymentRequest = call.body
    status, document = _deployments(call).deploy(body.deployment_id, body.deployment, call.actor)
    return Answer(document, status)


def status(call: Call) -> Answer:
    """Show what names the next deployment."""
    return Answer(_deployments(call).status(call.actor))


def find(call: Call) -> Answer:
    """Show one deployment."""
    return Answer(_deployments(call).find(call.path["deployment_id"], call.actor))


def _deployments(call: Call) -> Deployments:
    found = call.state.deployments
    if found is None:
        raise HttpProblem(404, "this server does not serve a cluster")
    return found
