"""One line of versions of a table: its main line, or a branch of it. Where its files are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph.storage.known_values import KnownValues

if TYPE_CHECKING:
    from omnigraph.storage.commit_sync import CommitSync
    from omnigraph.storage.index_checks import IndexChecks

_AUTHORITY: Final = re.compile(r"\A[a-z0-9-]+://[^/]*")
_NEWEST_NAME: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Lineage:
    """The place of one line of versions."""

    path: str
    branch: str | None
    uri: str
    """What the table library opens."""
    is_local: bool
    sync: CommitSync | None = field(compare=False)
    """Brings new files onto the disk; None where an acknowledged write is durable anyway."""
    known: KnownValues = field(default_factory=KnownValues, compare=False)
    checks: IndexChecks | None = field(default=None, compare=False)
    """Tells which indexes are damaged; None where nothing outlives the process."""

    @property
    def is_remote(self) -> bool:
        """Whether it is on an object store, where every look is a request."""
        return self.uri.startswith("s3://")

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.path if self.branch is None else f"{self.path} on branch {self.branch}"

    @property
    def folder(self) -> str:
        """Where its files are, counted from the root of the graph."""
        return self.path if self.branch is None else f"{self.path}/tree/{self.branch}"

    @property
    def path_in_store(self) -> str:
        """The path counted from the root of the disk or the bucket, without a leading slash."""
        return _AUTHORITY.sub("", self.uri).lstrip("/")

    def file(self, relative: str) -> str:
        """The path or address of a file of this line of versions."""
        return f"{self.uri}/{relative}"


def version_file(version: int) -> str:
    """The file that makes a version exist. Names count down, so that listings start with the newest."""
    return f"_versions/{_NEWEST_NAME - version:020d}.manifest"


def version_of_file(name: str) -> int | None:
    """The version a file of `_versions` stands for; None for one that is no version file."""
    match = re.fullmatch(r"(\d{20})\.manifest", name.rpartition("/")[2])
    return _NEWEST_NAME - int(match[1]) if match else None
