"""Diffs and changes by commit, in our own shapes."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from omnigraph.graph.gate import Action
from omnigraph.server.call import Answer, Call, branch_of
from omnigraph.server.problems import HttpProblem
from omnigraph.wire.documents07 import ChangesOutput, DiffOutput
from omnigraph.wire.requests import DiffRequest

DIFF_LIMIT: Final = 1000
CHANGES_LIMIT: Final = 100
MAX_CHANGES_LIMIT: Final = 1000


def diff(call: Call) -> Answer:
    """Compare two states."""
    body: DiffRequest = call.body
    graph = call.graph
    for ref in (body.from_, body.to):
        call.allow(Action.READ, graph.at(ref).branch)
    found = graph.diff(
        body.from_,
        body.to,
        types=body.type_names,
        kinds=body.kinds,
        ops=body.ops,
        engine=call.state.engine,
    )
    document = found.to_json(rows=body.rows, limit=body.limit or DIFF_LIMIT, cursor=body.cursor)
    return Answer(msgspec.convert(document, DiffOutput))


def changes(call: Call) -> Answer:
    """List the changes of each commit after a cursor, oldest first."""
    branch, since = branch_of(call.one("branch")), call.one("since")
    limit, rows = call.integer("limit", CHANGES_LIMIT), call.switch("rows")
    if not 1 <= limit <= MAX_CHANGES_LIMIT:
        raise HttpProblem(400, f"limit must be 1 to {MAX_CHANGES_LIMIT}")
    call.allow(Action.READ, branch)
    types = list(call.query.get("type_name", ()))
    feed = call.graph.changes(since, branch=branch, types=types)
    found = list(islice(feed, limit))
    document = {
        "branch": branch,
        "commits": [one.to_json(rows=rows) for one in found],
        "next_cursor": found[-1].cursor if found else since,
        "at_head": not found or found[-1].at_head,
    }
    return Answer(msgspec.convert(document, ChangesOutput))
