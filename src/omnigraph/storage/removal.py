"""Removing versions of a table, with the files that nothing else needs.

Which versions may go is for the caller to know. The newest one and those that branches of the table
were made from stay whatever is asked for. Files that belong to no version may be those of a write
that is being prepared; they stay until they are a week old.
Tests: tests/storage/tables/test_removal.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.table import Table
from omnigraph.storage.versions import confirm_newest

_ALL_VERSIONS: Final = timedelta(days=36500)
"""No version is as old as that, so none goes."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version that can be opened, and when it was made."""

    number: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Removed:
    """How much was removed, or would be."""

    versions: int = 0
    bytes: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(self.versions + other.versions, self.bytes + other.bytes)


def stored_versions(table: Table) -> list[StoredVersion]:
    """The versions of a table's line up to the opened one, oldest first."""
    with naming_failures("list the versions", table.lineage.uri):
        found = table.dataset.versions()
    versions = (StoredVersion(v["version"], _moment(v["timestamp"])) for v in found)
    return [version for version in versions if version.number <= table.version]


def remove_versions(table: Table, numbers: Sequence[int], *, dry_run: bool = False) -> Removed:
    """Remove versions of a line that is opened at its newest; only say what would go if `dry_run`."""
    if not numbers:
        return Removed()
    with naming_failures("remove versions", table.lineage.uri):
        if dry_run:
            stats = table.dataset.explain_cleanup_old_versions(
                versions=list(numbers), error_if_tagged_old_versions=False
            ).stats
        else:
            confirm_newest(table.lineage, table.version)
            stats = table.writable_handle().cleanup_old_versions(
                versions=list(numbers), error_if_tagged_old_versions=False
            )
    return Removed(stats.old_versions, stats.bytes_removed)


def remove_leftovers(table: Table, *, dry_run: bool = False) -> Removed:
    """Remove files that belong to no version and are old enough to be nobody's."""
    with naming_failures("remove files", table.lineage.uri):
        if dry_run:
            stats = table.dataset.explain_cleanup_old_versions(older_than=_ALL_VERSIONS).stats
        else:
            stats = table.writable_handle().cleanup_old_versions(older_than=_ALL_VERSIONS)
    return Removed(stats.old_versions, stats.bytes_removed)


def _moment(timestamp: object) -> datetime:
    """The library tells the time of day where it runs, without saying so."""
    assert isinstance(timestamp, datetime)
    return timestamp.astimezone()
