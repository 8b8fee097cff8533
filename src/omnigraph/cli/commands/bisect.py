"""`omnigraph bisect`: find the commit that made an assertion fail, by halving the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import click

from omnigraph.cli.context import Context
from omnigraph.cli.exits import FAILURE
from omnigraph.cli.framework import declare
from omnigraph.cli.opening import open_any
from omnigraph.cli.options import (
    ChosenQuery,
    QueryOptions,
    chosen_query,
    json_option,
    query_branch_option,
    query_options,
)
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.errors import HistoryRemoved, InputError, LanguageError, UsageError

if TYPE_CHECKING:
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.history.commits import Commit


class State(Enum):
    """What the assertion says about a commit."""

    HOLDS = "holds"
    FAILS = "fails"
    REMOVED = "removed"
    """Cleanup has deleted that state, so nothing can be said."""


class Found(NamedTuple):
    """The first commit at which the assertion fails, and how many were tested.

    `last` is the commit before it, at which the assertion holds; None if that state is not stored.
    """

    first: int
    last: int | None
    tested: int


def find_first_failure(count: int, test: Callable[[int], State]) -> Found | None:
    """Halve commits 0 to `count - 1`, oldest first, to the first that fails.

    None if the assertion holds at the newest one. Removed states are at the beginning of a history, so they
    count as its good end.
    """
    tested: dict[int, State] = {}

    def state(number: int) -> State:
        if number not in tested:
            tested[number] = test(number)
        return tested[number]

    if not count or state(count - 1) is not State.FAILS:
        return None
    good, bad = -1, count - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if state(middle) is State.FAILS:
            bad = middle
        else:
            good = middle
    holds = good >= 0 and tested[good] is State.HOLDS
    return Found(bad, good if holds else None, len(tested))


@declare("bisect")
@query_options
@query_branch_option
@click.option(
    "--good",
    metavar="REF",
    help="Commit, tag or other ref at which the assertion holds.  [default: the first commit]",
)
@click.option(
    "--bad", metavar="REF", help="Ref at which it fails.  [default: the head of the branch]"
)
@click.option(
    "--expect",
    type=click.Choice(["no-rows", "rows"]),
    default="no-rows",
    show_default=True,
    help="What the query returns while the assertion holds.",
)
@json_option
@click.pass_obj
def bisect(
    context: Context,
    branch: str | None,
    good: str | None,
    bad: str | None,
    expect: str,
    as_json: bool,
    **options: Unpack[QueryOptions],
) -> int | None:
    """Find the commit of a branch that made an assertion fail, and who made it.

    The assertion is a read query that returns violations: it holds at a commit if there are no rows, or with
    --expect rows if there are some. About log2(n) of n commits are read. A commit whose schema does not have
    the names of the query counts as one at which the assertion holds.
    """
    query = chosen_query(options, context)
    if not isinstance(query, ChosenQuery):
        raise UsageError("bisect needs the text of a query; pass --query or -e")
    of_alias = None if query.alias is None else query.alias.graph
    graph, _ = open_any(query.uri, context, read_only=True, alias_graph=of_alias)
    branch = query.branch(branch, context)
    commits = _between(graph, branch, good, bad)
    counts: dict[int, int] = {}

    with progress("bisecting", as_json=as_json) as shown:
        shown.stage("testing commits")

        def test(number: int) -> State:
            shown.advance(1)
            try:
                counts[number] = len(
                    graph.query(query.source, query.params, name=query.name, at=commits[number])
                )
            except HistoryRemoved:
                return State.REMOVED
            except LanguageError:
                if number == len(commits) - 1:
                    raise
                return State.HOLDS
            return State.HOLDS if bool(counts[number]) is (expect == "rows") else State.FAILS

        if good is not None and test(0) is State.FAILS:
            raise InputError(f"the assertion fails at '{good}' already; name an older commit")
        found = find_first_failure(len(commits), test)
    document = _document(branch, commits, found, counts)
    write_answer(document, _lines(document), as_json=as_json)
    return FAILURE if found is None else None


def _between(graph: GraphProtocol, branch: str, good: str | None, bad: str | None) -> list[Commit]:
    """The commits of the branch from the good to the bad one, oldest first."""
    commits = graph.log(branch, reverse=True)
    places = {commit.id: place for place, commit in enumerate(commits)}

    def place(ref: str) -> int:
        found = graph.commit(ref)
        if found.id not in places:
            raise InputError(f"'{ref}' is not a commit of branch '{branch}'")
        return places[found.id]

    first = 0 if good is None else place(good)
    last = len(commits) - 1 if bad is None else place(bad)
    if first > last:
        raise InputError(f"'{good}' is newer than '{bad or branch}'; swap --good and --bad")
    return commits[first : last + 1]


def _document(
    branch: str, commits: Sequence[Commit], found: Found | None, counts: Mapping[int, int]
) -> dict[str, Any]:
    document: dict[str, Any] = {"branch": branch, "commits": len(commits), "tested": 1}
    if found is None:
        return document | {"first_failing": None, "last_holding": None, "rows": None}
    last = None if found.last is None else commits[found.last].id
    return document | {
        "tested": found.tested,
        "first_failing": commits[found.first].to_json(),
        "last_holding": last,
        "rows": counts[found.first],
    }


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    from omnigraph.cli.commands.history import log_line

    first = document["first_failing"]
    if first is None:
        yield f"the assertion holds at the newest of {counted(document['commits'], 'commit')}"
        return
    yield f"the assertion fails since {log_line(first)}"
    if document["last_holding"] is None:
        yield "no earlier commit could be tested"
    else:
        yield f"it holds at {document['last_holding']}"
    yield f"returns {counted(document['rows'], 'row')}; tested {document['tested']} of {counted(document['commits'], 'commit')}"
    yield f"`omnigraph commit changes {first['graph_commit_id']}` shows what it changed"
