"""The log of reads that took long, with their plans.

A plan has the constants of the query text, never the values of its parameters.
Tests: tests/server/test_logs.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import OmnigraphError
from omnigraph.server.call import Call, source_text
from omnigraph.server.logs import fields, slow_log

if TYPE_CHECKING:
    from omnigraph.api.graph_at import GraphAt


def report_slow_query(
    call: Call, state: GraphAt, source: str, name: str | None, seconds: float
) -> None:
    """Log a read that has ended, also one that failed."""
    call.state.metrics.add_slow_query()
    try:
        found = state.explain(source_text(source), name=name)
        name, plan = found.query_name, [step.indented for step in found.steps]
    except OmnigraphError:
        # Its mistake was answered; without a plan there is still its time.
        plan = []
    slow_log.warning(
        "%s on branch %s of graph %s took %.3fs%s",
        "a query" if name is None else f"query {name!a}",
        call.branch,
        call.target.id,
        seconds,
        # Constants of a query must not look like lines of the log.
        "".join(f"\n    {ascii(line)[1:-1]}" for line in plan),
        extra=fields(
            query=name,
            graph=call.target.id,
            branch=call.branch,
            actor=call.actor,
            seconds=round(seconds, 6),
            rows=call.rows,
            plan=plan,
        ),
    )
