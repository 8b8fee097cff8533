"""Diffs and changes by commit, in our own shapes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.server.call import ARROW_STREAM, Answer, Call, Stream, branch_of
from omnigraph.server.handlers.scans import arrow_stream
from omnigraph.server.problems import HttpProblem
from omnigraph.wire.contracts import CONTRACT_07
from omnigraph.wire.documents07 import ChangesOutput, DiffOutput
from omnigraph.wire.requests import DiffRequest

if TYPE_CHECKING:
    from omnigraph.diff.diff import Changes

DIFF_LIMIT: Final = 1000
CHANGES_LIMIT: Final = 100
MAX_CHANGES_LIMIT: Final = 1000


def diff(call: Call) -> Answer | Stream:
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
    if _wants_arrow(call):
        return _as_arrow(call, found.changes, body.values)
    document = found.to_json(rows=body.rows, limit=body.limit or DIFF_LIMIT, cursor=body.cursor)
    return Answer(msgspec.convert(document, described(DiffOutput)))


def changes(call: Call) -> Answer | Stream:
    """List the changes of each commit after a cursor, oldest first."""
    branch, since = branch_of(call.one("branch")), call.one("since")
    limit, rows = call.integer("limit", CHANGES_LIMIT), call.switch("rows")
    if not 1 <= limit <= MAX_CHANGES_LIMIT:
        raise HttpProblem(400, f"limit must be 1 to {MAX_CHANGES_LIMIT}")
    call.allow(Action.READ, branch)
    types, kinds, ops = (list(call.query.get(name, ())) for name in ("type_name", "kind", "op"))
    feed = call.graph.changes(since, branch=branch, types=types, kinds=kinds, ops=ops)
    found = list(islice(feed, limit))
    if _wants_arrow(call):
        if len(found) != 1:
            raise HttpProblem(400, "an Arrow stream has the changes of one commit; pass limit=1")
        return _as_arrow(call, found[0].changes, call.one("values"))
    commits = [one.to_json(rows=rows) for one in found]
    if call.switch("details"):
        for document, one in zip(commits, found, strict=True):
            document |= {
                "commit": msgspec.to_builtins(CONTRACT_07.commit(one.commit)),
                "cursor": one.cursor,
                "at_head": one.at_head,
                "dropped": list(one.dropped),
            }
    document = {
        "branch": branch,
        "commits": commits,
        "next_cursor": found[-1].cursor if found else since,
        "at_head": not found or found[-1].at_head,
    }
    return Answer(msgspec.convert(document, described(ChangesOutput)))


def _wants_arrow(call: Call) -> bool:
    return ARROW_STREAM in call.headers.get("accept", "")


def _as_arrow(call: Call, found: Changes, type_name: str | None) -> Stream:
    """One row for each change, or the changed rows of one type."""
    table = found.to_arrow() if type_name is None else found.values(type_name)
    return arrow_stream(table.to_reader(), call.contract)
