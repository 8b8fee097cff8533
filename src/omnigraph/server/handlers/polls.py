"""The change feed of contract 0.13 over HTTP: polls, the changes of one commit, and the baseline.

Tests: tests/server/test_polls.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

from omnigraph.diff.diff import ChangeFilter
from omnigraph.errors import ChangeFeedGap, CommitNotFound
from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.server.call import Answer, Call, Stream, Write, branch_of
from omnigraph.server.problems import HttpProblem
from omnigraph.wire import feed13
from omnigraph.wire.errors import ChangeFeedGapOutput, ResourceLimitOutput
from omnigraph.wire.feed13 import DEFAULT_LIMIT, MAX_LIMIT
from omnigraph.wire.requests import BaselineRequest, SettingsRequest

_FILTERS: Final = ("limit", "kind", "type", "op", "set")


def poll(call: Call) -> Answer:
    """List changes commit by commit, in pages."""
    call.only("branch", "cursor", "start", "page_token", *_FILTERS)
    start = feed13.Start(*(call.one(name) for name in ("cursor", "start", "page_token")))
    limit, wanted = _limit(call), _wanted(call)
    branch = branch_of(call.one("branch"))
    call.allow(Action.READ, branch)
    try:
        return Answer(feed13.poll(call.graph, branch, start, wanted, limit))
    except ChangeFeedGap as error:
        raise _gap(error, start.cursor) from error


def commit_changes(call: Call) -> Answer:
    """List the changes of one commit, in pages."""
    call.only("page_token", *_FILTERS)
    limit, wanted = _limit(call), _wanted(call)
    commit = call.graph.commit(call.path["commit_id"])
    if not call.may(Action.READ, commit.branch):
        raise CommitNotFound(call.path["commit_id"])
    token = call.one("page_token")
    try:
        return Answer(feed13.commit_changes(call.graph, commit, token, wanted, limit))
    except ChangeFeedGap as error:
        raise _gap(error, None) from error


def baseline(call: Call) -> Stream:
    """Export all entities, then the cursor from which to poll."""
    body: BaselineRequest = call.body
    branch = branch_of(body.branch)
    wanted = ChangeFilter.parse(body.type, body.kind, body.op)
    call.allow(Action.EXPORT, branch)
    found, engine = feed13.Baseline.of(call.graph, branch, wanted), call.state.engine

    def produce(write: Write) -> None:
        found.write(write, engine)

    return Stream(produce, "application/x-ndjson")


def _limit(call: Call) -> int:
    limit = call.integer("limit", DEFAULT_LIMIT)
    if limit == 0:
        raise HttpProblem(400, "limit must be at least 1")
    if limit > MAX_LIMIT:
        exceeded = ResourceLimitOutput(resource="page_changes", limit=MAX_LIMIT, actual=limit)
        raise HttpProblem(
            413, f"limit must be at most {MAX_LIMIT}", details={"resource_limit": exceeded}
        )
    return limit


def _wanted(call: Call) -> ChangeFilter:
    settings = dict(setting.partition("=")[::2] for setting in call.query.get("set", ()))
    try:
        msgspec.convert(settings, described(SettingsRequest), strict=False)
    except msgspec.ValidationError as error:
        raise HttpProblem(400, f"query parameter 'set': {error}") from None
    return ChangeFilter.parse(*(call.query.get(name, ()) for name in ("type", "kind", "op")))


def _gap(error: ChangeFeedGap, cursor: str | None) -> HttpProblem:
    gap = ChangeFeedGapOutput(cursor=cursor, first_unreadable_commit_id=error.commit_id)
    return HttpProblem(410, error.message, details={"change_feed_gap": gap}, cause=error)
