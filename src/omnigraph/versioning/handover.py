"""What a writer leaves in its lock for the next one, if that is another process on the same disk.

Processes that take turns would otherwise read each other's publishes, look for their ids in each other's
files, and prepare their writes again, all of it under the lock. A handover says what the publish left: the
state of the branch, which rows the latest commits touched, and the ids in the latest files.

It is never needed and never trusted by itself. It counts only if the version it names is the newest, by
number and file, and if its commits lead from a state that the reader knows to that one. It ends with a
restart of the machine, so it says nothing about what a power loss has left.
Tests: tests/behaviour/test_handover.py, tests/processes/test_writers.py.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from functools import cache
from typing import Final, TypeAlias

import msgspec

from omnigraph.json_structs import described
from omnigraph.limits import HANDED_OVER_COMMITS, HANDED_OVER_IDS
from omnigraph.storage.lineage import FileValues
from omnigraph.storage.versions import FileIdentity
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.manifest_state import HeadNote
from omnigraph.versioning.recent_commits import RecentCommits

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"

_TouchedLists: TypeAlias = "dict[str, list[str] | None]"


class Handover(msgspec.Struct, frozen=True):
    """The state of a branch at a version of its manifest, and what led to it."""

    boot: str
    """The start of the machine since which this holds."""
    file: FileIdentity
    """What the file of the version looks like."""
    is_synced: bool
    """Whether that version is on the disk with everything it names."""
    head: HeadNote
    commits: list[tuple[CommitId, CommitId, _TouchedLists]]
    """The latest commits with their parents and what they touched, the newest first."""
    files: list[FileValues]
    """Ids and endpoints in the latest small files, the newest first."""

    def to_text(self) -> str:
        text = msgspec.json.encode(self)
        return f"{zlib.crc32(text):08x} {text.decode()}"

    @classmethod
    def parse(cls, text: str) -> Handover | None:
        """A handover of this start of the machine, if it is complete."""
        checksum, _, body = text.partition(" ")
        if checksum != f"{zlib.crc32(body.encode()):08x}":
            return None
        with suppress(msgspec.DecodeError):
            found: Handover = msgspec.json.decode(body, type=described(cls))
            if found.boot == boot_id():
                return found
        return None

    def leads_from(self, earlier: CommitId) -> bool:
        """Whether its commits, one after the other, follow on an earlier head of the branch."""
        expected = self.head.state.head
        for commit, parent, _ in self.commits:
            if commit != expected:
                return False
            if parent == earlier:
                return True
            expected = parent
        return False

    def tell(self, recent: RecentCommits) -> None:
        """Add its commits to those that are known."""
        for commit, parent, touched in reversed(self.commits):
            known = {key: None if ids is None else frozenset(ids) for key, ids in touched.items()}
            recent.add(commit, parent, known)


def latest_commits(
    recent: RecentCommits, head: CommitId
) -> list[tuple[CommitId, CommitId, _TouchedLists]]:
    """The latest commits that lead to a head, as many as are worth handing over."""
    found: list[tuple[CommitId, CommitId, _TouchedLists]] = []
    left = HANDED_OVER_IDS
    for commit, parent, touched in recent.up_to(head, HANDED_OVER_COMMITS):
        left -= sum(len(ids or ()) for ids in touched.values())
        if left < 0:
            break
        lists = {key: None if ids is None else list(ids) for key, ids in touched.items()}
        found.append((commit, parent, lists))
    return found


@cache
def boot_id() -> str | None:
    """Which start of the machine this is; None where that cannot be told."""
    with suppress(OSError), open(_BOOT_ID, encoding="ascii") as file:
        return file.read().strip()
    return None
