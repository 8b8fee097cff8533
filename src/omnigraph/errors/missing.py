"""Errors about named things that do not exist."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class NotFoundError(OmnigraphError):
    """A branch, commit, type, query or entity that does not exist."""

    code = "OG-N-000"
    kind = "not_found"


class GraphNotFound(NotFoundError):
    """There is no graph at this address."""

    code = "OG-N-001"

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(f"no graph at '{uri}'; create one with `omnigraph init`")


class BranchNotFound(NotFoundError):
    """The graph has no branch of this name."""

    code = "OG-N-002"

    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch '{branch}' not found")


class CommitNotFound(NotFoundError):
    """The graph has no commit of this id."""

    code = "OG-N-003"

    def __init__(self, commit_id: str) -> None:
        self.commit_id = commit_id
        super().__init__(f"commit '{commit_id}' not found")


class CommitBranchGone(NotFoundError):
    """The commit is part of the history, but the branch that holds its data was deleted."""

    code = "OG-N-004"

    def __init__(self, commit_id: str, branch: str) -> None:
        self.commit_id = commit_id
        self.branch = branch
        super().__init__(
            f"commit '{commit_id}' not found on any branch: it was made on '{branch}', "
            "which has been deleted"
        )


class UnknownVersion(NotFoundError):
    """A version number the branch does not have."""

    code = "OG-N-005"

    def __init__(self, version: int, head: int) -> None:
        self.version = version
        self.head = head
        super().__init__(f"version {version} not found; the branch has versions 1 to {head}")
