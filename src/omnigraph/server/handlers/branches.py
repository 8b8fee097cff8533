"""Branches: list, create, delete, merge."""

from __future__ import annotations

import msgspec

from omnigraph.errors import OmnigraphError
from omnigraph.graph.gate import Action
from omnigraph.server.admission import BRANCH_OPERATION_BYTES
from omnigraph.server.call import Answer, Call, branch_of
from omnigraph.server.problems import HttpProblem, error_answer
from omnigraph.server.statements import BranchStatement
from omnigraph.wire import documents13 as v13
from omnigraph.wire.contracts import CONTRACT_13
from omnigraph.wire.documents07 import (
    BranchCreateOutput,
    BranchDeleteOutput,
    BranchListOutput,
    ReadTargetOutput,
)
from omnigraph.wire.errors import ErrorOutput13
from omnigraph.wire.requests import BranchCreateRequest, BranchMergeRequest


def list_branches(call: Call) -> Answer:
    """List the branches by name."""
    call.allow(Action.READ)
    return Answer(BranchListOutput(branches=sorted(call.graph.branches)))


def create_branch(call: Call) -> Answer:
    """Create a branch. No data is copied."""
    body: BranchCreateRequest = call.body
    name, source = branch_of(body.name), branch_of(body.from_)
    _create(call, name, source)
    document = BranchCreateOutput(uri=call.uri, from_=source, name=name, actor_id=call.actor)
    return Answer(document)


def delete_branch(call: Call) -> Answer:
    """Delete a branch."""
    name = branch_of(call.path["branch"])
    _delete(call, name)
    return Answer(BranchDeleteOutput(uri=call.uri, name=name, actor_id=call.actor))


def merge_branches(call: Call) -> Answer:
    """Merge a branch into another one as one commit."""
    body: BranchMergeRequest = call.body
    source, target = branch_of(body.source), branch_of(body.target)
    if body.dry_run and body.delete_branch:
        raise HttpProblem(400, "dry_run and delete_branch are exclusive")
    call.allow(Action.BRANCH_MERGE, source, target)
    graph = call.graph
    with call.admit(BRANCH_OPERATION_BYTES):
        merged = graph.merge(
            source,
            target,
            strategy=body.strategy or "fail",
            granularity=body.granularity or "row",
            resolutions=[msgspec.to_builtins(one) for one in body.resolutions or ()],
            dry_run=body.dry_run,
            message=body.message,
            expected_head=body.expected_head,
            idempotency_key=call.idempotency_key,
            engine=call.state.engine,
        )
        call.noted(merged)
        deleted, failure = _delete_merged(call, source) if body.delete_branch else (None, None)
    made = merged.receipt.graph_commit_id
    commit = None if made is None else graph.commit(made)
    return Answer(call.documents.merge(merged, commit, deleted, failure))


# -- statements -----------------------------------------------------------------------------


def list_as_rows(call: Call) -> v13.ReadOutput:
    """What `branch list` answers."""
    call.allow(Action.READ)
    names = sorted(call.graph.branches)
    return v13.ReadOutput(
        query_name="branch list",
        target=ReadTargetOutput(branch=None, snapshot=None),
        row_count=len(names),
        columns=["name"],
        rows=msgspec.Raw(msgspec.json.encode([{"name": name} for name in names])),
        graph_commit_id=None,
    )


def run_statement(call: Call, statement: BranchStatement) -> v13.ChangeOutput:
    """Run `branch create`, `branch delete` or `branch merge`."""
    name, other = branch_of(statement.name), branch_of(statement.other)
    outcome: v13.BranchCreated | v13.BranchDeleted | v13.BranchMerged
    branch, commit = name, None
    if statement.verb == "create":
        _create(call, name, other)
        outcome = v13.BranchCreated(name=name, from_=other)
    elif statement.verb == "delete":
        _delete(call, name)
        outcome = v13.BranchDeleted(name=name)
    else:
        call.allow(Action.BRANCH_MERGE, name, other)
        with call.admit(BRANCH_OPERATION_BYTES):
            merged = call.noted(call.graph.merge(name, other, engine=call.state.engine))
        made = merged.receipt.graph_commit_id
        commit = None if made is None else CONTRACT_13.commit(call.graph.commit(made))
        branch = other
        outcome = v13.BranchMerged(source=name, target=other, merge=merged.outcome.value)
    return v13.ChangeOutput(
        branch=branch,
        query_name=f"branch {statement.verb}",
        affected_nodes=0,
        affected_edges=0,
        actor_id=call.actor,
        commit=commit,
        outcome=outcome,
    )


def _create(call: Call, name: str, source: str) -> None:
    call.allow(Action.BRANCH_CREATE, source, name)
    with call.admit(BRANCH_OPERATION_BYTES):
        call.graph.branches.create(name, source)


def _delete(call: Call, name: str) -> None:
    call.allow(Action.BRANCH_DELETE, target_branch=name)
    with call.admit(BRANCH_OPERATION_BYTES):
        call.graph.branches.delete(name)


def _delete_merged(call: Call, source: str) -> tuple[bool, ErrorOutput13 | None]:
    """Delete the source of a merge that is made. Its failure does not undo the merge."""
    try:
        call.allow(Action.BRANCH_DELETE, target_branch=source)
        call.graph.branches.delete(source)
    except OmnigraphError as error:
        body = error_answer(error, CONTRACT_13).body
        assert isinstance(body, ErrorOutput13)
        return False, body
    return True, None
