"""Errors about named things that do not exist."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.diagnostics import with_hint
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
        super().__init__(f"no graph at '{uri}'; create it first, or check the address")


class BranchNotFound(NotFoundError):
    """The graph has no branch of this name."""

    code = "OG-N-002"

    def __init__(self, branch: str, known: Iterable[str] = ()) -> None:
        self.branch = branch
        super().__init__(with_hint(f"branch '{branch}' not found", branch, known))


class CommitNotFound(NotFoundError):
    """The graph has no commit of this id."""

    code = "OG-N-003"

    def __init__(self, commit_id: str, meant: str | None = None) -> None:
        self.commit_id = commit_id
        hint = "" if meant is None else f"; did you mean `{meant}`?"
        super().__init__(f"commit '{commit_id}' not found{hint}")


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


class RefNotFound(NotFoundError):
    """A ref that leads to no state: before the first commit of a branch."""

    code = "OG-N-020"

    def __init__(self, ref: str, reason: str) -> None:
        self.ref = ref
        super().__init__(f"ref '{ref}' not found: {reason}")


class TagNotFound(NotFoundError):
    """The graph has no tag of this name."""

    code = "OG-N-021"

    def __init__(self, tag: str, known: Iterable[str] = ()) -> None:
        self.tag = tag
        super().__init__(with_hint(f"tag '{tag}' not found", tag, known))


class HistoryRemoved(NotFoundError):
    """A state of the past whose stored rows were removed, by cleanup or by a hard drop."""

    code = "OG-N-006"

    def __init__(self, table_key: str, version: int) -> None:
        self.table_key = table_key
        self.version = version
        super().__init__(
            f"'{table_key}' is no longer stored as it was at version {version}: "
            "cleanup or a hard drop removed it"
        )


class UnknownVersion(NotFoundError):
    """A version number the branch does not have."""

    code = "OG-N-005"

    def __init__(self, version: int, head: int) -> None:
        self.version = version
        self.head = head
        super().__init__(f"version {version} not found; the branch has versions 1 to {head}")


class UnknownType(NotFoundError):
    """The schema has no type of this name."""

    code = "OG-N-007"

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        super().__init__(with_hint(f"unknown {kind} type '{name}'", name, known))


class UnknownColumn(NotFoundError, KeyError):
    """A type or a result has no column of this name."""

    code = "OG-N-014"

    def __init__(self, column: str, owner: str, known: Iterable[str] = ()) -> None:
        self.column = column
        super().__init__(with_hint(f"{owner} has no column '{column}'", column, known))

    def __str__(self) -> str:
        """The message. A `KeyError` would show it in quotes."""
        return self.message


class EntityNotFound(NotFoundError):
    """A type has no node or edge with this id."""

    code = "OG-N-008"

    def __init__(self, type_name: str, id: str) -> None:
        self.type_name = type_name
        self.id = id
        super().__init__(f"no {type_name} with id '{id}' found")


class BlobMissing(NotFoundError):
    """The entity is there, but its blob is null."""

    code = "OG-N-009"

    def __init__(self, type_name: str, id: str, property: str) -> None:
        self.type_name = type_name
        self.id = id
        self.property = property
        super().__init__(f"{type_name} '{id}' has no blob in '{property}'")
