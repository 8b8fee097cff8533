"""Branch statements given as query text: `branch list`, `branch create "a/b" from main`.

They are calls of the graph, embedded or remote, so its policy and its errors hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph.errors import QuerySelectionError
from omnigraph.language.query.file_statements import BranchAction, BranchStatement, first_word

if TYPE_CHECKING:
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.history.commits import Receipt
    from omnigraph.mutation.run import MutationResult
    from omnigraph.read.result import Result

MAIN: Final = "main"


def branch_statement(source: str | Path) -> BranchStatement | None:
    """The branch statement that a text is; None, at no cost, for a query. Raises `ParseError`."""
    if not isinstance(source, str) or first_word(source) != "branch":
        return None
    from omnigraph.language.query.parse import parse_text
    from omnigraph.read.source_files import query_source

    found = parse_text(query_source(source)).statement
    return found if isinstance(found, BranchStatement) else None


def listed_branches(
    graph: GraphProtocol, statement: BranchStatement, branch: str | None, *options: object
) -> Result:
    """The rows of `branch list`. Raises `QuerySelectionError` for the other statements."""
    import pyarrow as pa

    from omnigraph.plan.ir import ID_TYPE
    from omnigraph.read.result import Result

    _refuse_options(graph, statement, branch, options)
    word = f"branch {statement.action.value}"
    if statement.action is not BranchAction.LIST:
        raise QuerySelectionError(f"{word} is a mutation; run it with `mutate`")
    table = pa.table({"name": pa.array(sorted(graph.branches), pa.utf8())})
    commit = graph.head().id
    return Result(word, table, (ID_TYPE,), branch=graph.branch, snapshot=None, commit_id=commit)


def run_branch_statement(
    graph: GraphProtocol, statement: BranchStatement, branch: str | None, *options: object
) -> MutationResult:
    """Create, delete or merge a branch. Without `from` or `into`, the other branch is main.

    Only a merge has a commit. Raises `QuerySelectionError` for `branch list` and for options.
    """
    from omnigraph.mutation.run import MutationResult

    _refuse_options(graph, statement, branch, options)
    word = f"branch {statement.action.value}"
    name, other = statement.name or "", statement.other or MAIN
    match statement.action:
        case BranchAction.LIST:
            raise QuerySelectionError(f"{word} is a read; run it with `query`")
        case BranchAction.MERGE:
            return MutationResult(graph.merge(name, other).receipt, word, other, 0, 0)
        case BranchAction.CREATE:
            graph.branches.create(name, other)
            return MutationResult(_nothing_committed(graph, name), word, name, 0, 0)
        case BranchAction.DELETE:
            receipt = _nothing_committed(graph, name)
            graph.branches.delete(name)
            return MutationResult(receipt, word, name, 0, 0)


def _refuse_options(
    graph: GraphProtocol,
    statement: BranchStatement,
    branch: str | None,
    options: tuple[object, ...],
) -> None:
    # A command names the default branch in every call.
    if branch not in (None, MAIN, graph.branch) or any(one for one in options if one is not None):
        message = f"branch {statement.action.value} takes no name, parameters, branch or condition"
        raise QuerySelectionError(message)


def _nothing_committed(graph: GraphProtocol, branch: str) -> Receipt:
    """The receipt of a statement that commits nothing."""
    from omnigraph.history.commits import Receipt
    from omnigraph.versioning.branch_names import BranchName
    from omnigraph.versioning.commits import OperationKind
    from omnigraph.versioning.ids import new_ulid, now_micros

    head = graph.head(branch)
    return Receipt(
        graph_commit_id=None,
        parent_commit_id=head.id,
        branch=BranchName(branch),
        manifest_version=head.number,
        operation=OperationKind.MUTATE,
        operation_id=new_ulid(),
        actor_id=graph.actor,
        created_at=now_micros(),
    )
