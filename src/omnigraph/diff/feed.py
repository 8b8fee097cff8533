"""Changes commit by commit: the change feed of a branch, and the history of one entity.

A commit's changes are relative to the commit before it on the branch, also for a merge. The feed lists
commits that changed no rows, without changes. Tests: tests/behaviour/test_change_feed.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.diagnostics import counted, with_hint
from omnigraph.diff.changes import Op
from omnigraph.diff.comparison import Comparison, compare_snapshots
from omnigraph.diff.diff import ChangeFilter, Changes
from omnigraph.errors import ChangeFeedGap, CommitNotFound, HistoryRemoved, InputError
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import Commit
from omnigraph.history.refs import suggest_commit
from omnigraph.read.entities import get_entity, read_entity
from omnigraph.read.view import ReadView
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CONTENT_PRESERVING, CommitId, CommitRecord, TableId
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import VersionRef
from omnigraph.versioning.snapshot import table_id

_CURSOR_PREFIX: Final = "c1."
_CURSOR: Final = re.compile(r"c1\.(\d{1,18})\.(\w+)")


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """The last commit that a caller has seen. Its id identifies the graph and the branch."""

    sequence: int
    commit: CommitId

    def __str__(self) -> str:
        return f"{_CURSOR_PREFIX}{self.sequence}.{self.commit}"

    @classmethod
    def parse(cls, text: str) -> FeedCursor:
        """Raises `InputError` for an invalid cursor."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise InputError(
                f"'{text}' is not a valid change-feed cursor; pass one returned by changes() or cursor()"
            )
        return cls(int(match[1]), CommitId(match[2]))


def is_cursor(text: str) -> bool:
    return text.startswith(_CURSOR_PREFIX)


@dataclass(frozen=True, repr=False)
class CommitChanges:
    """The changes of one commit, and the cursor that continues after it."""

    commit: Commit
    changes: Changes
    cursor: str
    at_head: bool
    """Whether it was the branch head when the feed started."""
    dropped: tuple[str, ...] = ()
    """Types with rows that the commit removed from the schema."""

    def to_json(self, *, rows: bool = False) -> dict[str, Any]:
        return self.commit.change_head() | {"changes": list(self.changes.documents(rows=rows))}

    def __repr__(self) -> str:
        return f"<CommitChanges {self.commit.short_id}: {counted(len(self.changes), 'change')}>"


class ChangeFeed:
    """Follows the branches of one graph."""

    def __init__(self, parts: GraphParts, view: ReadView = ReadView.ALL) -> None:
        self._parts = parts
        self._view = view

    def follow(
        self, branch: BranchRef, since: str | None, wanted: ChangeFilter
    ) -> Iterator[CommitChanges]:
        """Every commit after `since` up to the branch head, oldest first.

        `since` is a commit of the branch, a cursor, or None for the first commit. Raises
        `ChangeFeedGap` if the changes after it are no longer stored.
        """
        start = 0 if since is None else self._sequence(branch, since)
        head = self._parts.manifest.current(branch.physical).sequence
        return self.between(branch, start, head, wanted)

    def between(
        self, branch: BranchRef, start: int, end: int, wanted: ChangeFilter
    ) -> Iterator[CommitChanges]:
        """The commits after number `start` up to number `end`, oldest first.

        Raises `ChangeFeedGap` at the first commit whose changes are no longer stored.
        """
        before: ManifestState | None = None
        for commit, state in self._parts.manifest.states_after(branch.physical, start, end):
            try:
                changes = self._changes(commit, before, state, wanted)
            except HistoryRemoved as error:
                unread = commit.graph_commit_id
                raise ChangeFeedGap(branch.public, error.reason, unread) from error
            before = state
            if commit.sequence > start:
                cursor = FeedCursor(commit.sequence, commit.graph_commit_id)
                catalog = self._parts.snapshot_of(state).catalog
                yield CommitChanges(
                    Commit.of(commit, catalog, self._view),
                    changes,
                    str(cursor),
                    commit.sequence == end,
                    _dropped(changes, catalog),
                )

    def head(self, branch: BranchRef) -> FeedCursor:
        """The place of the newest commit of a branch."""
        state = self._parts.manifest.current(branch.physical)
        return FeedCursor(state.sequence, state.head)

    def commit_at(self, branch: BranchRef, number: int) -> CommitId | None:
        """The commit with a number on a branch."""
        return self._parts.manifest.commit_ids(branch.physical, number, number).get(number)

    def number_of(self, branch: BranchRef, commit: str) -> int | None:
        """The number of a commit on a branch; None if the branch does not have it."""
        found = self._parts.manifest.find_commit(branch.physical, CommitId(commit))
        return None if found is None else found.sequence

    def identity(self, branch: BranchRef) -> str:
        """The graph, by its first commit, and the branch as it is stored."""
        return f"{self.commit_at(BranchRef(MAIN, None), 1)}/{branch.physical or ''}"

    def _changes(
        self,
        commit: CommitRecord,
        before: ManifestState | None,
        after: ManifestState,
        wanted: ChangeFilter,
    ) -> Changes:
        """A commit's changes; none for the first state, which is only the start of the feed."""
        keeps_rows = commit.draft.operation in CONTENT_PRESERVING
        if before is None or keeps_rows or before.tables == after.tables:
            return Changes()
        old, new = self._parts.snapshot_of(before), self._parts.snapshot_of(after)
        return compare_snapshots(Comparison(old, new, self._parts.tables, self._view), wanted)

    def _sequence(self, branch: BranchRef, since: str) -> int:
        """The number of the last commit before the feed."""
        if not is_cursor(since):
            commit = self._parts.manifest.find_commit(branch.physical, CommitId(since))
            if commit is None:
                suggestion = suggest_commit(self._parts.manifest, [branch.physical], since)
                raise CommitNotFound(since, suggestion)
            return commit.sequence
        cursor = FeedCursor.parse(since)
        number = cursor.sequence
        there = self._parts.manifest.commit_ids(branch.physical, number, number)
        if there.get(number) != cursor.commit:
            reason = f"commit {cursor.commit} is not part of its history"
            raise ChangeFeedGap(branch.public, reason)
        return number


def _dropped(changes: Changes, catalog: Catalog) -> tuple[str, ...]:
    known = {table_id(declared) for declared in catalog}
    return tuple(
        table.declared.name
        for table in changes.tables
        if len(table) and table_id(table.declared) not in known
    )


@dataclass(frozen=True, slots=True, repr=False)
class EntityChange:
    """The change of one entity by one commit.

    `before` and `after` have the values that `Graph.get` returns, or are None if it did not exist.
    """

    commit: Commit
    op: Op
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    _documents: tuple[dict[str, Any] | None, dict[str, Any] | None] = (None, None)

    def to_json(self) -> dict[str, Any]:
        return self.commit.change_head() | {
            "op": self.op.value,
            "before": self._documents[0],
            "after": self._documents[1],
        }

    def __repr__(self) -> str:
        return f"<EntityChange {self.op.value} by commit {self.commit.short_id}>"


def entity_history(
    parts: GraphParts, branch: BranchRef, type_name: str, id: str, view: ReadView = ReadView.ALL
) -> Iterator[EntityChange]:
    """The commits that changed an entity, oldest first. Raises `InputError` for an unknown type."""
    head = parts.manifest.current(branch.physical)
    declared = _declared(view.restrict(parts.snapshot_of(head).catalog), type_name)
    return _changes(parts, head, declared, id, view)


def _changes(
    parts: GraphParts, head: ManifestState, declared: EntityType, id: str, view: ReadView
) -> Iterator[EntityChange]:
    """Read only states whose commit wrote the entity's table, or nodes that decide who sees it."""
    read = [table_id(declared)]
    if isinstance(declared, EdgeType):
        nodes = parts.snapshot_of(head).catalog.nodes
        ends = {declared.from_type, declared.to_type} & view.rows.keys()
        read += [table_id(nodes[name]) for name in sorted(ends)]
    pins: list[VersionRef | None] | None = None
    before = before_document = None
    for commit, state in parts.manifest.states_after(head.branch, 0, head.sequence):
        if pins == (pins := [_pin(state, table) for table in read]):
            continue
        then = parts.snapshot_of(state)
        after_document = read_entity(then, parts.tables, declared.table_key, id, view)
        if after_document == before_document:
            continue
        after = None
        if after_document is not None:
            after = get_entity(then, parts.tables, declared.name, id, view)
        op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
        documents = before_document, after_document
        made = Commit.of(commit, then.catalog, view)
        yield EntityChange(made, op, before, after, documents)
        before, before_document = after, after_document


def _declared(catalog: Catalog, type_name: str) -> EntityType:
    known = {declared.name: declared for declared in catalog}
    if type_name not in known:
        raise InputError(with_hint(f"there is no type '{type_name}'", type_name, known))
    return known[type_name]


def _pin(state: ManifestState, table: TableId) -> VersionRef | None:
    entry = state.tables.get(table)
    return None if entry is None else VersionRef(entry.version, entry.branch)
