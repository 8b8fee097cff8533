"""Tags as callers see them: create, delete and list names of commits.

Tests: tests/behaviour/test_tags.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from omnigraph.errors import BranchExists, BranchNotFound, CommitNotFound
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import from_micros, short_id, to_micros
from omnigraph.history.refs import ResolvedRef, home_of, refuse_removed
from omnigraph.versioning.branch_names import BranchName, public_name
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.ids import now_micros
from omnigraph.versioning.tags import StoredTag, Tags, check_tag_name

BEFORE_CREATE = declare("tag_create.before_tag_written", "before the tag is written")
BEFORE_DELETE = declare("tag_delete.before_tag_removed", "before the tag is removed")


@dataclass(frozen=True, slots=True, repr=False)
class Tag:
    """A name of a commit that protects it from cleanup. A tag is a ref.

    `number` is the commit's number on `branch`, the branch it was made on.
    """

    name: str
    commit_id: CommitId
    branch: BranchName
    number: int
    created_at: datetime
    actor: str | None

    @classmethod
    def of(cls, stored: StoredTag) -> Tag:
        return cls(
            name=stored.name,
            commit_id=stored.graph_commit_id,
            branch=public_name(stored.branch),
            number=stored.version,
            created_at=from_micros(stored.created_at),
            actor=stored.actor_id,
        )

    def __repr__(self) -> str:
        return (
            f"<Tag {self.name}: commit {short_id(self.commit_id)} #{self.number} on {self.branch}>"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "branch": self.branch,
            "version": self.number,
            "created_at": to_micros(self.created_at),
            "actor_id": self.actor,
        }


def list_tags(parts: GraphParts) -> list[Tag]:
    """All tags by name."""
    return [Tag.of(stored) for stored in Tags(parts.objects).list()]


def create_tag(parts: GraphParts, name: str, target: ResolvedRef, actor: str | None = None) -> Tag:
    """Name a commit, and keep it readable until the tag is deleted.

    Raises `InvalidTagName`, `TagExists`, `BranchExists` for the name of a branch, and `HistoryRemoved`
    if cleanup deleted the commit.
    """
    checked = check_tag_name(name)
    # Main's lock keeps out cleanups, and the creation and deletion of branches.
    with parts.locks.hold(None, "tag create") as lock:
        if any(branch.public == checked for branch in parts.branches.list()):
            raise BranchExists(checked)
        try:
            home = home_of(parts, target)
            commit = parts.manifest.find_commit(home.physical, target.commit_id)
        except BranchNotFound:
            commit = None
        if commit is None:
            raise CommitNotFound(target.commit_id)
        refuse_removed(parts, parts.manifest.at(home.physical, commit.sequence))
        stored = StoredTag(
            checked, commit.graph_commit_id, commit.sequence, now_micros(), actor, home.physical
        )
        BEFORE_CREATE.hit(tag=checked)
        lock.check()
        Tags(parts.objects).add(stored)
    return Tag.of(stored)


def delete_tag(parts: GraphParts, name: str) -> None:
    """Delete a tag; its commit is no longer protected from cleanup. Raises `TagNotFound`."""
    with parts.locks.hold(None, "tag delete") as lock:
        BEFORE_DELETE.hit(tag=name)
        lock.check()
        Tags(parts.objects).remove(name)
