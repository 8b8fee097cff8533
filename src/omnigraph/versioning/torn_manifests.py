"""Whether a newest version of a manifest that is incomplete can be what a power loss left of a publish.

A writer keeps its sidecar until its publish is on the disk. So where no sidecar waits, an incomplete
version was either acknowledged once and has lost bytes since, or it only stored the same rows in other
files. The tables tell which: a publish moves heads, and without it they are ahead of the state before.
Tests: tests/crash/recovery/test_damage.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.errors import FileDamaged, TableMissing, TornVersion
from omnigraph.storage.lineage import version_file
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commits import TableId
from omnigraph.versioning.rows import RECOVERY_DIR, TableRegistration, TableVersion

if TYPE_CHECKING:
    from omnigraph.storage.torn import Torn


def was_acknowledged(
    tables: TableStore,
    branch: str | None,
    before: Mapping[TableId, TableVersion],
    registered: Mapping[TableId, TableRegistration],
) -> bool:
    """Whether the newest version of a branch's manifest, which is incomplete, was acknowledged.

    `before` are the tables as the version before it has them.
    """
    if tables.has_files(RECOVERY_DIR):
        return False
    own = [entry for entry in before.values() if entry.branch == branch]
    return any(_is_ahead(tables, registered[e.table_id].location, e) for e in own)


def _is_ahead(tables: TableStore, location: str, entry: TableVersion) -> bool:
    try:
        return tables.open(location, entry.branch).version > entry.version
    except (TableMissing, TornVersion):
        return False


def damaged(torn: Torn) -> FileDamaged:
    """An incomplete version that was acknowledged."""
    file = torn.lineage.file(version_file(torn.version))
    return FileDamaged(file, f"version {torn.version} of {torn.lineage.name}", torn.cause)
