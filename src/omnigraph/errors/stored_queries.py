"""Errors of stored queries."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors.inputs import InputError, NotFoundError


class StoredQueriesInvalid(InputError):
    """The registry of stored queries cannot be read; `problems` lists everything that is wrong."""

    code = "OG-I-050"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(["the stored queries cannot be used:", *_listed(problems)]))


class StoredQueriesBroken(InputError):
    """Stored queries do not match the schema of their graph; `problems` has one line for each."""

    code = "OG-I-051"

    def __init__(self, graph: str, problems: Sequence[str]) -> None:
        self.graph = graph
        self.problems = tuple(problems)
        count = f"{len(problems)} stored {'query' if len(problems) == 1 else 'queries'}"
        said = f"graph '{graph}': {count} failed the schema check; correct or remove them:"
        super().__init__("\n".join([said, *_listed(problems)]))


class StoredQueryNotFound(NotFoundError):
    """No stored query has this name, or the caller may not invoke stored queries."""

    code = "OG-N-030"

    def __init__(self) -> None:
        super().__init__("stored query not found")


def _listed(problems: Sequence[str]) -> list[str]:
    return ["  - " + problem.replace("\n", "\n    ") for problem in problems]
