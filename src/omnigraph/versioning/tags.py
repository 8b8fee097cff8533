"""Tags: names for commits, which protect those commits from cleanup.

A tag is one small object. It is created and deleted under the lock of main, which cleanup, branch
creation and branch deletion hold too. A tag of main is stored as pins always were; one of another
branch also has the storage name of that branch.
Tests: tests/behaviour/test_tags.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from omnigraph.errors import (
    InvalidTagName,
    ManifestDamaged,
    ObjectMissing,
    TagExists,
    TagNotFound,
)
from omnigraph.json_structs import Document, described
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.ids import made_at

TAGS_DIR: Final = "__pins"
_FORMAT: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class StoredTag(
    Document,
    frozen=True,
    tag=_FORMAT,
    tag_field="pin_version",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A name for a commit. `version` is the commit's number on the branch it was made on.

    `branch` is the storage name of that branch, None for main.
    """

    name: str
    graph_commit_id: CommitId
    version: int
    created_at: int
    actor_id: str | None
    branch: str | None = None


class Tags:
    """The tags of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def list(self) -> Sequence[StoredTag]:
        """All tags by name."""
        return [self._read(name) for name in self.names()]

    def names(self) -> Sequence[str]:
        """The names of all tags, in order."""
        names = (path.rpartition("/")[2] for path in self._objects.list_dir(TAGS_DIR))
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def find(self, name: str) -> StoredTag | None:
        """The tag of a name, or None. Costs one request, and none for what cannot be a name."""
        if not _NAME.fullmatch(name) or made_at(name) is not None:
            return None
        try:
            return self._read(name)
        except ObjectMissing:
            return None

    def add(self, tag: StoredTag) -> None:
        """Raises `TagExists` when there is a tag of that name."""
        text = json.dumps(tag.to_json(), indent=2)
        if not self._objects.write_text_if_absent(_path(tag.name), text):
            raise TagExists(tag.name)

    def remove(self, name: str) -> None:
        """Raises `TagNotFound` if the tag does not exist."""
        if not _NAME.fullmatch(name) or not self._objects.exists(_path(name)):
            raise TagNotFound(name, self.names())
        self._objects.delete(_path(name))

    def _read(self, name: str) -> StoredTag:
        try:
            return msgspec.json.decode(
                self._objects.read_text(_path(name)), type=described(StoredTag)
            )
        except ValueError as error:
            # What it protects is not known, so nothing may be removed.
            raise ManifestDamaged(f"tag '{name}' cannot be read: {error}") from error


def check_tag_name(name: str) -> str:
    """The name, if a new tag can have it. Raises `InvalidTagName`."""
    if not _NAME.fullmatch(name):
        rule = "use up to 64 letters, digits, '.', '-' and '_', a letter or digit first"
        raise InvalidTagName(name, rule)
    if made_at(name) is not None:
        raise InvalidTagName(name, "a tag cannot be named like a commit id")
    return name


def _path(name: str) -> str:
    return f"{TAGS_DIR}/{name}.json"
