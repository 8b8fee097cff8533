"""`omnigraph verify`: validate every row and file of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import FAILURE, SUCCESS
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.maintenance.verify_report import VerifyProblem, VerifyReport

_SHOWN = 5
"""Examples shown per problem; the JSON document has up to a hundred."""


@declare("verify")
@uri_argument
@click.option(
    "--branch",
    "branches",
    multiple=True,
    metavar="BRANCH",
    help="Branch to check; may be repeated. Default: all branches.",
)
@json_option
@click.pass_obj
def command(context: Context, uri: str | None, branches: tuple[str, ...], as_json: bool) -> int:
    """Validate every row of the graph at URI against its schema, and every file it needs.

    Nothing is changed. The exit code is 1 when problems were found.
    """
    uri = graph_uri(uri, context)
    graph = open_graph(uri, read_only=True)
    with progress("verifying") as shown:
        report = graph.maintenance.verify(branches or None, progress=shown)
    write_answer({"uri": uri, **report.to_json()}, _lines(uri, report), as_json=as_json)
    return SUCCESS if report.ok else FAILURE


def _lines(uri: str, report: VerifyReport) -> Iterator[str]:
    checked = (
        f"{counted(len(report.branches), 'branch', 'branches')}, "
        f"{counted(report.tables, 'table')}, {counted(report.rows, 'row')}, "
        f"{counted(report.files, 'file')}"
    )
    state = "ok" if report.ok else counted(len(report.problems), "problem")
    yield f"verify {uri} — {checked}: {state}"
    for problem in report.problems:
        yield from _problem(problem)


def _problem(problem: VerifyProblem) -> Iterator[str]:
    yield f"{problem.kind.value}  {problem.message}"
    for example in problem.examples[:_SHOWN]:
        yield f"    {example}"
    if problem.count > _SHOWN:
        yield f"    and {problem.count - min(_SHOWN, len(problem.examples))} more"
