"""The state of a graph: snapshot, schema, commits, status, entities; and of the server."""

from __future__ import annotations

from typing import Literal

import msgspec

from omnigraph._version import __version__
from omnigraph.api.graph_at import entity_document
from omnigraph.api.handle import newest_state
from omnigraph.catalog.migrate.report import step_lines
from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.errors import EntityNotFound, PolicyError, QueriesBroken
from omnigraph.graph.gate import Action, Request
from omnigraph.server.call import MAIN, Answer, Call, branch_of, source_text
from omnigraph.server.counters import MEDIA_TYPE, series
from omnigraph.server.problems import HttpProblem
from omnigraph.versioning.rows import FORMAT_STAMP
from omnigraph.wire import documents07 as v07
from omnigraph.wire import documents13 as v13
from omnigraph.wire.contracts import CONTRACT_07, RELEASE_13, receipt_fields
from omnigraph.wire.requests import SchemaApplyRequest

# -- the server -----------------------------------------------------------------------------


def health(call: Call) -> Answer:
    """Say that the process lives."""
    if call.is_13:
        document = v07.HealthOutput(
            version=RELEASE_13,
            internal_schema_version=FORMAT_STAMP,
            source_version=f"omnigraph-py {__version__}",
        )
    else:
        document = v07.HealthOutput(
            version=__version__,
            internal_schema_version=FORMAT_STAMP,
            source_version=call.state.source_version or msgspec.UNSET,
        )
    return Answer(document, headers={"Cache-Control": "no-store"})


def ready(call: Call) -> Answer:
    """Say whether the server takes requests."""
    served, draining = len(call.state.graphs), call.state.is_draining
    document = v07.ReadyOutput(
        ready=not draining,
        status="draining" if draining else "serving",
        served_graph_count=served,
        ready_graph_count=served,
        loading_graph_count=0,
        blocked_graph_count=0,
        state_revision=0,
        state_cas=None,
        booted_serving_digest=None,
        shutdown_grace_seconds=call.state.shutdown_grace_seconds,
    )
    return Answer(document, status=503 if draining else 200)


def metrics(call: Call) -> Answer:
    """Show the counters of the server for Prometheus."""
    state = call.state
    lines = state.counters.lines(with_graphs=_may_list(call))
    running = {'kind="write"': state.admission.running}
    lines += series("omnigraph_inflight", "gauge", "Requests in progress.", running)
    rejected = {"": state.admission.rejected}
    name = "omnigraph_admission_rejected_total"
    lines += series(name, "counter", "Writes refused with 429.", rejected)
    lines += series("omnigraph_open_graphs", "gauge", "Open graphs.", {"": len(state.graphs)})
    text = "\n".join(lines) + "\n"
    return Answer(content=text.encode(), media_type=MEDIA_TYPE)


def _may_list(call: Call) -> bool:
    gate = call.state.server_gate
    if gate is None or call.actor is None:
        return False
    try:
        gate.check(Request(call.actor, Action.GRAPH_LIST))
    except PolicyError:
        return False
    return True


def protected_resource(call: Call) -> Answer:
    """OAuth metadata, which a server with static tokens has none of."""
    raise HttpProblem(404, "this server uses static tokens; it has no OAuth metadata")


def list_graphs(call: Call) -> Answer:
    """List the graphs of a server for several graphs."""
    state = call.state
    if not state.graphs.is_multi:
        raise HttpProblem(405, "this server serves one graph; only a server for several lists them")
    if state.server_gate is None:
        raise HttpProblem(403, "the list of graphs needs a server policy that allows graph_list")
    state.server_gate.check(Request(call.actor, Action.GRAPH_LIST))
    if call.documents is CONTRACT_07:
        listed = [v07.GraphInfo(graph_id=served.id, uri=served.uri) for served in state.graphs]
        return Answer(v07.GraphListResponse(graphs=listed))
    graphs = [
        v13.GraphInfo(
            graph_id=served.id,
            uri=served.uri,
            state="stopping" if state.is_draining else "ready",
            read_available=True,
            write_available=True,
            action="wait_for_restart" if state.is_draining else "none",
        )
        for served in state.graphs
    ]
    return Answer(v13.GraphListResponse(graphs=graphs))


def discover_graphs(call: Call) -> Answer:
    """Graphs by identity, which static tokens are not."""
    raise HttpProblem(403, "graph discovery requires an admitted identity credential")


def list_runs(call: Call) -> Answer:
    """Runs of an earlier write path: none."""
    call.allow(Action.READ)
    return Answer(v07.RunListOutput(runs=[]))


def find_run(call: Call) -> Answer:
    """A run of an earlier write path: there is none."""
    call.allow(Action.READ)
    raise HttpProblem(404, f"run '{call.path['run_id'][:64]}' not found")


# -- one graph ------------------------------------------------------------------------------


def snapshot(call: Call) -> Answer:
    """Show every table of a branch and its version."""
    branch = branch_of(call.one("branch"))
    call.allow(Action.READ, branch)
    return Answer(call.documents.snapshot(newest_state(call.graph, branch), FORMAT_STAMP))


def schema(call: Call) -> Answer:
    """Show the schema."""
    call.allow(Action.READ)
    return Answer(call.documents.schema(call.graph.schema.source))


def apply_schema(call: Call) -> Answer:
    """Change the schema as one commit on main."""
    body: SchemaApplyRequest = call.body
    call.allow(Action.SCHEMA_APPLY, target_branch=MAIN)
    with call.admit(len(body.schema_source)):
        try:
            done = call.graph.schema.apply(
                source_text(body.schema_source),
                allow_data_loss=body.allow_data_loss,
                message=body.message,
                expected_head=body.expected_head,
                idempotency_key=call.idempotency_key,
                queries=[source_text(text) for text in call.target.queries.sources()],
                engine=call.state.engine,
            )
        except QueriesBroken as error:
            message = f"stored queries failed the schema check: {error.message}"
            raise HttpProblem(400, message, cause=error) from error
    call.noted(done)
    return Answer(
        v07.SchemaApplyOutput(
            uri=call.uri,
            supported=True,
            applied=done.applied,
            step_count=len(done.plan.steps),
            steps=[step.to_json() for step in done.plan.steps],
            actor_id=call.actor,
            lines=step_lines(done.plan),
            **receipt_fields(done.receipt),
        )
    )


def list_commits(call: Call) -> Answer:
    """List the commits of a branch."""
    given = call.one("branch")
    branch = branch_of(given)
    # Without a branch, contract 0.7 asks the policy about no branch in particular.
    call.allow(Action.READ, branch if given is not None or call.is_13 else None)
    limit = call.integer("limit", 0) or None
    found = call.graph.log(
        branch,
        actor=call.one("actor"),
        since=call.one("since"),
        until=call.one("until"),
        merged=call.switch("merged"),
        limit=limit,
        reverse=call.switch("oldest_first"),
    )
    # A limit counts from the end that the caller names; documents have the order of their contract.
    return Answer(call.documents.commits(found[::-1] if call.switch("oldest_first") else found))


def commit(call: Call) -> Answer:
    """Show one commit of any branch."""
    call.allow(Action.READ)
    return Answer(call.documents.commit(call.graph.commit(call.path["commit_id"])))


def status(call: Call) -> Answer:
    """Show sizes, index coverage and interrupted writes."""
    branch = branch_of(call.one("branch"))
    call.allow(Action.READ, branch)
    document = call.graph.maintenance.status(branch).to_json() | {"uri": call.uri}
    return Answer(msgspec.convert(document, v07.StatusOutput))


# -- one entity -----------------------------------------------------------------------------


def entity(call: Call) -> Answer:
    """Show one node or edge."""
    branch, ref = call.one("branch"), call.one("snapshot")
    if branch is not None and ref is not None:
        raise HttpProblem(400, "specify branch or snapshot, not both")
    if ref is not None:
        state = call.graph.at(ref)
        call.allow(Action.READ, state.branch)
    else:
        name = branch_of(branch)
        call.allow(Action.READ, name)
        state = newest_state(call.graph, name)
    type_name, entity_id = call.path["type_name"], call.path["entity_id"]
    kind = _kind(state.catalog, type_name)
    found = entity_document(state, type_name, entity_id)
    if found is None:
        raise EntityNotFound(type_name, entity_id)
    endpoints = {"from": found.pop("src"), "to": found.pop("dst")} if kind == "edge" else None
    return Answer(
        v07.EntityOutput(
            entity_kind=kind,
            type_name=type_name.partition(":")[2] or type_name,
            entity_id=found.pop("id"),
            endpoints=endpoints or msgspec.UNSET,
            properties=found,
            graph_commit_id=state.commit_id,
        )
    )


def entity_history(call: Call) -> Answer:
    """Show the commits that changed one node or edge, oldest first."""
    branch = branch_of(call.one("branch"))
    call.allow(Action.READ, branch)
    type_name, entity_id = call.path["type_name"], call.path["entity_id"]
    graph = call.graph
    kind = _kind(graph.schema.catalog, type_name)
    changes = [
        msgspec.convert(change.to_json(), v07.EntityChangeOutput)
        for change in graph.history(type_name, entity_id, branch=branch)
    ]
    if not changes:
        raise EntityNotFound(type_name, entity_id)
    document = v07.EntityHistoryOutput(
        entity_kind=kind, type_name=type_name, entity_id=entity_id, changes=changes
    )
    return Answer(document)


def _kind(catalog: Catalog, type_name: str) -> Literal["node", "edge"]:
    from omnigraph.read.entities import find_type

    return "edge" if isinstance(find_type(catalog, type_name), EdgeType) else "node"
