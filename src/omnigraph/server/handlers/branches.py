"""Branches: list, create, delete, merge."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from omnigraph.errors import InputError, NotFoundError, OmnigraphError
from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.language.query.file_statements import BranchAction, BranchStatement
from omnigraph.server.admission import BRANCH_OPERATION_BYTES
from omnigraph.server.call import MAIN, Answer, Call, branch_of
from omnigraph.server.problems import HttpProblem, error_answer
from omnigraph.wire import documents13 as v13
from omnigraph.wire.contracts import CONTRACT_13, applied_07
from omnigraph.wire.documents07 import (
    BranchCreateOutput,
    BranchDeleteOutput,
    BranchListOutput,
    ReadTargetOutput,
    TagDeleteOutput,
    TagListOutput,
    TagOutput,
)
from omnigraph.wire.errors import ErrorOutput13
from omnigraph.wire.requests import (
    ApplyCommitRequest,
    BranchCreateRequest,
    BranchMergeRequest,
    BranchResetRequest,
    TagCreateRequest,
)

if TYPE_CHECKING:
    from omnigraph.history.tags import Tag


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
    if body.delete_source and body.delete_branch:
        raise HttpProblem(400, "delete_source and delete_branch are exclusive")
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
            delete_source=body.delete_source,
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


# -- commits on another branch --------------------------------------------------------------


def revert(call: Call) -> Answer:
    """Undo the changes of a commit as a new commit."""
    return _apply(call, "revert")


def cherry_pick(call: Call) -> Answer:
    """Apply the changes of a commit to a branch as a new commit."""
    return _apply(call, "cherry_pick")


def _apply(call: Call, name: Literal["revert", "cherry_pick"]) -> Answer:
    body: ApplyCommitRequest = call.body
    branch = branch_of(body.branch)
    call.allow(Action.CHANGE, branch)
    graph = call.graph
    call.allow(Action.READ, graph.at(body.ref).branch)
    run = graph.revert if name == "revert" else graph.cherry_pick
    with call.admit(BRANCH_OPERATION_BYTES):
        done = run(
            body.ref,
            branch=branch,
            dry_run=body.dry_run,
            message=body.message,
            expected_head=body.expected_head,
            idempotency_key=call.idempotency_key,
            engine=call.state.engine,
        )
    return Answer(applied_07(call.noted(done)))


def reset_branch(call: Call) -> Answer:
    """Give a branch the rows of another state as a new commit."""
    body: BranchResetRequest = call.body
    name = branch_of(call.path["branch"])
    call.allow(Action.CHANGE, name)
    graph = call.graph
    call.allow(Action.READ, graph.at(body.ref).branch)
    with call.admit(BRANCH_OPERATION_BYTES):
        done = graph.branches.reset(
            name,
            body.ref,
            dry_run=body.dry_run,
            message=body.message,
            expected_head=body.expected_head,
            idempotency_key=call.idempotency_key,
            engine=call.state.engine,
        )
    return Answer(applied_07(call.noted(done)))


# -- tags -----------------------------------------------------------------------------------


def list_tags(call: Call) -> Answer:
    """List the tags by name."""
    call.allow(Action.READ)
    return Answer(TagListOutput(tags=[_tag(one) for one in call.graph.tags.all()]))


def create_tag(call: Call) -> Answer:
    """Name a commit."""
    body: TagCreateRequest = call.body
    call.allow(Action.CHANGE, MAIN)
    with call.admit(BRANCH_OPERATION_BYTES):
        return Answer(_tag(call.graph.tags.create(body.name, body.ref)))


def delete_tag(call: Call) -> Answer:
    """Delete a tag."""
    name = call.path["tag"]
    call.allow(Action.CHANGE, MAIN)
    with call.admit(BRANCH_OPERATION_BYTES):
        call.graph.tags.delete(name)
    return Answer(TagDeleteOutput(uri=call.uri, name=name, actor_id=call.actor))


def _tag(tag: Tag) -> TagOutput:
    return msgspec.convert(tag.to_json(), described(TagOutput))


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
    if statement.action is BranchAction.CREATE:
        _create(call, name, other)
        outcome = v13.BranchCreated(name=name, from_=other)
    elif statement.action is BranchAction.DELETE:
        _delete(call, name)
        outcome = v13.BranchDeleted(name=name)
    else:
        call.allow(Action.BRANCH_MERGE, name, other)
        with call.admit(BRANCH_OPERATION_BYTES):
            merged = call.noted(
                call.graph.merge(
                    name,
                    other,
                    idempotency_key=call.idempotency_key,
                    engine=call.state.engine,
                )
            )
        made = merged.receipt.graph_commit_id
        commit = None if made is None else CONTRACT_13.commit(call.graph.commit(made))
        branch = other
        outcome = v13.BranchMerged(source=name, target=other, merge=merged.outcome.value)
    return v13.ChangeOutput(
        branch=branch,
        query_name=f"branch {statement.action.value}",
        affected_nodes=0,
        affected_edges=0,
        actor_id=call.actor,
        commit=commit,
        outcome=outcome,
    )


def _create(call: Call, name: str, source: str) -> None:
    origin = source
    if source not in call.graph.branches:
        # The policy knows branches, and another ref is on one.
        with suppress(NotFoundError, InputError):
            origin = call.graph.at(source).branch
    call.allow(Action.BRANCH_CREATE, origin, name)
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
