"""Manifest rows: their columns, one function per kind of row, and the format stamp.

Rows are only ever inserted. `object_id` is the key every publish competes for; `commit_seq` is the
sequence number of the publish that wrote the row. The stamp names the generation of the on-disk format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import pyarrow as pa

from omnigraph.errors import ManifestDamaged, NewerFormat, TornVersion
from omnigraph.json_structs import json_line, struct_from
from omnigraph.limits import FORMAT_STAMP as FORMAT_STAMP
from omnigraph.versioning.commits import CommitRecord, OperationId, TableId

if TYPE_CHECKING:
    from omnigraph.storage.table import Table
    from omnigraph.storage.tables import TableStore
    from omnigraph.versioning.audit import RecoveryAudit


MANIFEST_PATH: Final = "__manifest"
RECOVERY_DIR: Final = "__recovery"
STAMP_KEY: Final = "omnigraph:internal_schema_version"
CONFIG: Final = {"table_version_management": "true"}

Outcome = Literal["committed", "rolled_forward", "rolled_back", "discarded"]
"""What became of an operation."""

PUBLISHED_OUTCOMES: Final[tuple[Outcome, ...]] = ("committed", "rolled_forward")

KEY_COLUMN: Final = "object_id"
KEY_METADATA: Final = {"lance-schema:unenforced-primary-key": "true"}
SCHEMA: Final = pa.schema(
    [
        pa.field(
            KEY_COLUMN,
            pa.utf8(),
            nullable=False,
            metadata=KEY_METADATA,
        ),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.field("item", pa.utf8()))),
        pa.field("table_key", pa.utf8(), nullable=False),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.utf8()),
        pa.field("row_count", pa.uint64()),
        pa.field("commit_seq", pa.uint64(), nullable=False),
    ],
    metadata={STAMP_KEY: str(FORMAT_STAMP)},
)


class RegistrationMetadata(msgspec.Struct, frozen=True):
    """The JSON object in the row of a table."""

    kind: str
    type_id: int
    name: str


class OperationMetadata(msgspec.Struct, frozen=True):
    """The JSON object in the row of an operation."""

    outcome: Outcome


class TableRegistration(msgspec.Struct, frozen=True):
    """A table the graph knows; `name` is the type's name when the table was made."""

    table_id: TableId
    location: str
    kind: str
    type_id: int
    name: str


@dataclass(frozen=True, slots=True)
class VersionRef:
    """The version of a table a writer built on."""

    version: int
    branch: str | None


class TableVersion(msgspec.Struct, frozen=True):
    """The version of a table that belongs to the graph. `branch` None is the main lineage."""

    table_id: TableId
    version: int
    branch: str | None
    row_count: int
    info: str
    """What storage says about the version, as JSON text."""


def sequence_key(sequence: int) -> str:
    return f"seq${sequence:020d}"


def operation_key(operation_id: OperationId) -> str:
    return f"op${operation_id}"


def load_key(branch: str | None, load_id: str) -> str:
    return f"load${load_id}" if branch is None else f"load@{branch}${load_id}"


def write_key(branch: str | None, key: str) -> str:
    return f"key${key}" if branch is None else f"key@{branch}${key}"


def ancestor_key(commit_id: str) -> str:
    return f"ancestor${commit_id}"


def commit_table_key(commit_id: str) -> str:
    return f"commit:{commit_id}"


Row = dict[str, Any]


def registration_row(table: TableRegistration, sequence: int) -> Row:
    return _row(
        sequence,
        table.table_id,
        "table",
        table.table_id,
        location=table.location,
        metadata=json_line(struct_from(RegistrationMetadata, table)),
    )


def version_row(entry: TableVersion, sequence: int) -> Row:
    return _row(
        sequence,
        f"{entry.table_id}${sequence:020d}",
        "table_version",
        entry.table_id,
        metadata=entry.info,
        table_version=entry.version,
        table_branch=entry.branch,
        row_count=entry.row_count,
    )


def tombstone_row(table_id: TableId, last_version: int, sequence: int) -> Row:
    return _row(
        sequence,
        f"{table_id}$tombstone${sequence:020d}",
        "table_tombstone",
        table_id,
        table_version=last_version,
    )


def commit_rows(commit: CommitRecord, outcome: Outcome) -> list[Row]:
    """The commit and its operation: the two keys that make lineage linear and writes unique."""
    key = commit_table_key(commit.graph_commit_id)
    rows = [
        _row(
            commit.sequence,
            sequence_key(commit.sequence),
            "graph_commit",
            key,
            metadata=commit.to_metadata(),
            table_branch=commit.branch,
        ),
        operation_row(commit, commit.draft.operation_id, outcome),
    ]
    if commit.draft.load_id is not None:
        note = commit.draft.load_note
        said = {} if note is None else msgspec.structs.asdict(note)
        load = load_key(commit.branch, commit.draft.load_id)
        metadata = json_line({"graph_commit_id": commit.graph_commit_id, **said})
        rows.append(_row(commit.sequence, load, "load_id", key, metadata=metadata))
    chosen = commit.draft.write_key
    if chosen is not None and chosen.key != commit.draft.operation_id:
        own = write_key(commit.branch, chosen.key)
        rows.append(_row(commit.sequence, own, "write_key", key))
    return rows


def operation_row(commit: CommitRecord, operation_id: OperationId, outcome: Outcome) -> Row:
    """What became of an operation. No other publish can record the same operation."""
    return _row(
        commit.sequence,
        operation_key(operation_id),
        "operation",
        commit_table_key(commit.graph_commit_id),
        metadata=json_line(OperationMetadata(outcome)),
    )


def ancestor_row(commit: CommitRecord, sequence: int) -> Row:
    """A commit of another branch that a merge brought along, so that it outlives that branch."""
    return _row(
        sequence,
        ancestor_key(commit.graph_commit_id),
        "ancestor_commit",
        commit_table_key(commit.graph_commit_id),
        metadata=commit.to_metadata(sequence=commit.sequence),
        table_branch=commit.branch,
    )


def audit_row(audit: RecoveryAudit, commit: CommitRecord) -> Row:
    return _row(
        commit.sequence,
        audit.key,
        "recovery_audit",
        commit_table_key(commit.graph_commit_id),
        metadata=audit.to_metadata(commit.graph_commit_id),
        table_branch=commit.branch,
    )


def checkpoint_row(sequence: int, state: object) -> Row:
    text = json_line(state)
    key = f"checkpoint${sequence:020d}"
    return _row(sequence, key, "checkpoint", "checkpoint", metadata=text)


def rows_table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


_EMPTY_ROW: Final[Row] = dict.fromkeys(SCHEMA.names)


def _row(sequence: int, object_id: str, object_type: str, table_key: str, **rest: Any) -> Row:
    """A row with every column, as it would be read back."""
    return {
        **_EMPTY_ROW,
        KEY_COLUMN: object_id,
        "object_type": object_type,
        "table_key": table_key,
        "commit_seq": sequence,
        **rest,
    }


SEQUENCE_COLUMN = "commit_seq"


def check_stamp(schema: pa.Schema) -> None:
    """Refuse a manifest that is not of the present format."""
    if is_older_format(schema):
        stamp = read_stamp(schema)
        raise ManifestDamaged(f"the manifest has format stamp {stamp}, expected {FORMAT_STAMP}")


def is_older_format(schema: pa.Schema) -> bool:
    """Whether a manifest has to be converted before it can be read.

    Raises `NewerFormat`, and `ManifestDamaged` for one whose stamp and columns contradict each other.
    """
    stamp = read_stamp(schema)
    if stamp > FORMAT_STAMP:
        raise NewerFormat(stamp, FORMAT_STAMP)
    is_older = stamp < FORMAT_STAMP
    if is_older == (SEQUENCE_COLUMN in schema.names):
        raise ManifestDamaged(f"the manifest has format stamp {stamp}, and columns of another one")
    return is_older


def is_older_graph(tables: TableStore) -> bool:
    """Whether a graph is stored in an older format. Raises `NewerFormat` or `TableMissing`."""
    return is_older_format(newest_manifest(tables).schema)


def newest_manifest(tables: TableStore, branch: str | None = None) -> Table:
    """The newest version that can be read: one that a power loss has torn is passed over."""
    try:
        return tables.open(MANIFEST_PATH, branch)
    except TornVersion as torn:
        if torn.previous is None:
            raise
        return tables.open(MANIFEST_PATH, branch, torn.previous)


def read_stamp(schema: pa.Schema) -> int:
    """The stamp of a manifest; graphs older than the stamp itself count as 1."""
    text = (schema.metadata or {}).get(STAMP_KEY.encode(), b"1")
    if not text.isdigit():
        raise ManifestDamaged(f"manifest format stamp {text!r} is not a number")
    return int(text)
