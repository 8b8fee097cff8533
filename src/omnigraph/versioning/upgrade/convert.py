"""Convert one branch of an older graph to rows of the current manifest.

Every old commit becomes a commit with the next sequence number and the tables an old reader saw at it.
Table versions that no commit accounts for go into one extra commit, so nothing visible is lost.

Identities follow from the schema and the table names alone, so every conversion assigns the same ones.
While only some branches are converted, manifests of both formats are read.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from omnigraph.catalog.compile import build_declared
from omnigraph.catalog.identity import IdCounter, allocate_identities
from omnigraph.catalog.ir import IR_VERSION, SchemaIR, schema_from_json
from omnigraph.errors import LanguageError, ManifestDamaged, SchemaContractBroken
from omnigraph.json_structs import described
from omnigraph.language.syntax import Source
from omnigraph.limits import CHECKPOINT_INTERVAL
from omnigraph.storage.filters import Comparison
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.audit import (
    RECOVERY_ACTOR,
    RecoveryAudit,
    RecoveryKind,
    TableOutcome,
)
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
    TableId,
)
from omnigraph.versioning.contract import (
    IR_FILE,
    SOURCE_FILE,
    STATE_FILE,
    ContractFiles,
    SchemaContract,
    declared_hash,
)
from omnigraph.versioning.ids import derived_ulid
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import (
    Outcome,
    RegistrationMetadata,
    Row,
    TableRegistration,
    TableVersion,
    audit_row,
    checkpoint_row,
    commit_rows,
    is_older_format,
    newest_manifest,
    registration_row,
    tombstone_row,
    version_row,
)
from omnigraph.versioning.snapshot import table_keys
from omnigraph.versioning.upgrade.old_layout import IR_VERSION as OLD_IR_VERSION
from omnigraph.versioning.upgrade.old_layout import OldBranch, OldCommit, OldRecovery, OldRow

_KINDS = ("node", "edge")


@dataclass(frozen=True, slots=True)
class UpgradedSchema:
    """The accepted schema with identities, and the durable name of every table by its old key."""

    contract: SchemaContract
    table_ids: Mapping[str, TableId]

    def registration(self, table_key: str, location: str) -> TableRegistration:
        table_id = self.table_ids[table_key]
        kind, name = _split(table_key)
        return TableRegistration(table_id, location, kind, int(table_id.split("#")[1]), name)


def upgraded_schema(files: ContractFiles, known_keys: Iterable[str]) -> UpgradedSchema:
    """Give identities to the accepted schema and to all tables. Raises `SchemaContractBroken`."""
    shape = _accepted_shape(files)
    if shape.hash != declared_hash(files.source):
        cause = f"current {SOURCE_FILE} no longer matches the accepted compiled schema"
        raise SchemaContractBroken(cause)
    allocated = allocate_identities(shape)
    catalog = SchemaContract.accept(files.source, allocated).catalog
    table_ids = {key: table_id for table_id, key in table_keys(catalog).items()}
    # Types that were dropped keep their tables, which old snapshots still show.
    counter = IdCounter(allocated.next_id)
    for key in sorted(set(known_keys) - set(table_ids)):
        table_ids[key] = TableId(f"{_split(key)[0]}#{counter.take()}")
    complete = replace(allocated, next_id=counter.next_id)
    return UpgradedSchema(SchemaContract.accept(files.source, complete), table_ids)


def _accepted_shape(files: ContractFiles) -> SchemaIR:
    if files.ir is None and files.state is None:
        try:
            return build_declared(Source(SOURCE_FILE, files.source))
        except LanguageError as error:
            raise SchemaContractBroken(f"current {SOURCE_FILE} does not compile") from error
    shape, version = _read_shape(files.ir)
    # A converted file without its record is what a crash between the two leaves.
    if files.state is None and version == OLD_IR_VERSION:
        raise SchemaContractBroken(
            f"{IR_FILE} and {STATE_FILE} must either both exist or both be absent"
        )
    return shape


def _read_shape(text: str | None) -> tuple[SchemaIR, int]:
    """A stored schema of either format, and which one; its identities do not matter."""
    if text is None:
        raise SchemaContractBroken(
            f"{IR_FILE} and {STATE_FILE} must either both exist or both be absent"
        )
    try:
        document = json.loads(text)
        version = document["ir_version"]
        if version not in (OLD_IR_VERSION, IR_VERSION):
            raise ValueError(f"unknown schema IR version {version}")
        types = ("interfaces", "nodes", "edges")
        bare = {kind: [_without_identity(t) for t in document[kind]] for kind in types}
        return schema_from_json({"ir_version": IR_VERSION, "next_id": 0, **bare}), version
    except (ValueError, KeyError, TypeError) as error:
        cause = f"accepted compiled schema contract in {IR_FILE} is invalid ({error!r})"
        raise SchemaContractBroken(cause) from error


def _without_identity(declared: Mapping[str, Any]) -> dict[str, Any]:
    properties = [{**p, "prop_id": 0, "column": p["name"]} for p in declared["properties"]]
    return {**declared, "type_id": 0, "properties": properties}


def _split(table_key: str) -> tuple[str, str]:
    kind, _, name = table_key.partition(":")
    if kind not in _KINDS or not name:
        raise ManifestDamaged(f"the manifest names a table '{table_key}' that has no type")
    return kind, name


_OUTCOMES: Mapping[RecoveryKind, Outcome] = {
    RecoveryKind.ROLLED_FORWARD: "rolled_forward",
    RecoveryKind.ROLLED_BACK: "rolled_back",
    RecoveryKind.ORPHANED_BRANCH_DISCARDED: "discarded",
    RecoveryKind.LATE_COMMIT_DISCARDED: "discarded",
}


def converted_rows(branch: OldBranch, schema: UpgradedSchema) -> list[Row]:
    """The manifest of a branch in the present format."""
    steps = list(_steps(branch))
    tables = _Tables(schema)
    rows: list[Row] = []
    fenced: set[OperationId] = set()
    for sequence, step in enumerate(steps, 1):
        # An operation is recovered once; whatever was noted about it again says nothing new.
        audits = [
            _audit(recovery, schema.table_ids)
            for recovery in step.recoveries
            if recovery.operation_id not in fenced
        ]
        fenced |= {audit.operation_id for audit in audits}
        commit = _record(step, sequence, audits, schema)
        rows += tables.apply(step.rows, sequence)
        rows += commit_rows(commit, _OUTCOMES[audits[0].kind] if audits else "committed")
        rows += [audit_row(audit, commit) for audit in audits]
        # Snapshots start from a checkpoint at or before them, so there has to be one at the first.
        if sequence in (1, len(steps)) or sequence % CHECKPOINT_INTERVAL == 0:
            state = tables.state(branch.name, sequence, commit.graph_commit_id)
            rows.append(checkpoint_row(sequence, state.to_checkpoint()))
    return rows


@dataclass(frozen=True, slots=True)
class _Step:
    commit: OldCommit
    rows: Sequence[OldRow]
    recoveries: Sequence[OldRecovery]
    operation: OperationKind


def _steps(branch: OldBranch) -> Iterator[_Step]:
    """The commits in their order, each with the rows that came since the one before it."""
    recoveries = defaultdict(list)
    for recovery in branch.recoveries:
        recoveries[recovery.graph_commit_id].append(recovery)
    done = 0
    for commit in branch.commits:
        end = bisect_right(branch.rows, commit.manifest_version, done, key=_inserted_at)
        own = recoveries[commit.graph_commit_id]
        kind = OperationKind.RECOVERY if own else OperationKind.LOAD
        yield _Step(commit, branch.rows[done:end], own, kind)
        done = end
    rest = branch.rows[done:]
    if rest or not branch.commits:
        yield _Step(_commit_of_the_rest(branch, rest), rest, (), OperationKind.RECOVERY)


def _inserted_at(row: OldRow) -> int:
    return row.inserted_at


def _commit_of_the_rest(branch: OldBranch, rows: Sequence[OldRow]) -> OldCommit:
    """A commit for rows that have none. Its id follows from them, so that all see the same one."""
    last = branch.commits[-1] if branch.commits else None
    named = [last.graph_commit_id if last else None]
    named += [f"{row.table_key}@{row.table_version}#{row.inserted_at}" for row in rows]
    created_at = last.created_at if last else 0
    return OldCommit(
        graph_commit_id=derived_ulid(created_at, json.dumps(named)),
        manifest_branch=branch.name,
        manifest_version=rows[-1].inserted_at if rows else 0,
        parent_commit_id=last.graph_commit_id if last else None,
        merged_parent_commit_id=None,
        created_at=created_at,
        actor_id=RECOVERY_ACTOR,
    )


def _record(
    step: _Step, sequence: int, audits: Sequence[RecoveryAudit], schema: UpgradedSchema
) -> CommitRecord:
    old = step.commit
    # An operation that was recovered stays recorded, so that recovery knows what remains of it.
    operation_id = audits[0].operation_id if audits else OperationId(old.graph_commit_id)
    merged = old.merged_parent_commit_id
    parent = old.parent_commit_id
    draft = CommitDraft(
        graph_commit_id=CommitId(old.graph_commit_id),
        operation=step.operation,
        operation_id=operation_id,
        created_at=old.created_at,
        schema_ir_hash=schema.contract.hash,
        schema_ref=schema.contract.reference,
        merged_parent_commit_id=None if merged is None else CommitId(merged),
        actor_id=old.actor_id,
    )
    return CommitRecord(
        draft, None if parent is None else CommitId(parent), sequence, old.manifest_branch
    )


def _audit(old: OldRecovery, table_ids: Mapping[str, TableId]) -> RecoveryAudit:
    try:
        kind = RecoveryKind(old.recovery_kind)
        outcomes = tuple(
            TableOutcome(
                table_key=o["table_key"],
                table_id=table_ids.get(o["table_key"], TableId(o["table_key"])),
                from_version=o["from_version"],
                to_version=o["to_version"],
            )
            for o in json.loads(old.per_table_outcomes_json)
        )
    except (ValueError, KeyError, TypeError) as error:
        cause = f"the recovery of {old.operation_id} is recorded wrongly: {error!r}"
        raise ManifestDamaged(cause) from error
    return RecoveryAudit(
        kind=kind,
        operation_id=OperationId(old.operation_id),
        for_actor=old.recovery_for_actor,
        writer_kind=old.sidecar_writer_kind,
        outcomes=outcomes,
        created_at=old.created_at,
    )


@dataclass(slots=True)
class _Tables:
    """The tables as an old reader saw them: the highest version, unless a tombstone is as high."""

    schema: UpgradedSchema
    _highest: dict[str, OldRow] = field(default_factory=dict)
    _tombstones: dict[str, int] = field(default_factory=dict)
    _shown: dict[TableId, TableVersion] = field(default_factory=dict)
    _registered: dict[TableId, TableRegistration] = field(default_factory=dict)

    def apply(self, rows: Sequence[OldRow], sequence: int) -> list[Row]:
        """Take in old rows; returns the new rows that have the same effect."""
        made = [
            registration_row(self._register(row), sequence)
            for row in rows
            if row.object_type == "table" and self._is_new(row)
        ]
        for row in rows:
            if row.object_type == "table_version":
                known = self._highest.get(row.table_key)
                if known is None or _number(known) < _number(row):
                    self._highest[row.table_key] = row
            elif row.object_type == "table_tombstone":
                earlier = self._tombstones.get(row.table_key, 0)
                self._tombstones[row.table_key] = max(earlier, _number(row))
        for key in sorted({row.table_key for row in rows}):
            made += self._changes(key, sequence)
        return made

    def _is_new(self, row: OldRow) -> bool:
        return self.schema.table_ids[row.table_key] not in self._registered

    def _register(self, row: OldRow) -> TableRegistration:
        if row.location is None:
            raise ManifestDamaged(f"the registration of table {row.table_key} is incomplete")
        table = self.schema.registration(row.table_key, row.location)
        self._registered[table.table_id] = table
        return table

    def _changes(self, key: str, sequence: int) -> Iterator[Row]:
        """What has become of one table."""
        table_id = self.schema.table_ids.get(key)
        if table_id is None or table_id not in self._registered:
            raise ManifestDamaged(f"the manifest names versions of an unregistered table {key}")
        highest = self._highest.get(key)
        before, now = self._shown.pop(table_id, None), None
        if highest is not None and self._tombstones.get(key, -1) < _number(highest):
            now = self._shown[table_id] = _table_version(table_id, highest)
        if now is not None and now != before:
            yield version_row(now, sequence)
        elif now is None and before is not None:
            yield tombstone_row(table_id, before.version, sequence)

    def state(self, branch: str | None, sequence: int, head: CommitId) -> ManifestState:
        return ManifestState(branch, sequence, head, dict(self._shown), dict(self._registered))


def _number(row: OldRow) -> int:
    if row.table_version is None:
        raise ManifestDamaged(f"a version row of table {row.table_key} is incomplete")
    return row.table_version


def _table_version(table_id: TableId, row: OldRow) -> TableVersion:
    if row.metadata is None or row.row_count is None:
        raise ManifestDamaged(f"a version row of table {row.table_key} is incomplete")
    return TableVersion(table_id, _number(row), row.table_branch, row.row_count, row.metadata)


def known_table_keys(tables: TableStore, branches: Iterable[str]) -> set[str]:
    """The keys (`node:Person`) of all tables that main or one of the branches has or had."""
    keys: set[str] = set()
    for branch in [None, *branches]:
        keys |= _keys(newest_manifest(tables, branch))
    return keys


def _keys(manifest: Table) -> set[str]:
    wanted = Comparison("object_type", "=", "table")
    rows = manifest.read(["table_key", "metadata"], filter=wanted).to_pylist()
    if is_older_format(manifest.schema):
        return {row["table_key"] for row in rows}
    registered = (
        msgspec.json.decode(r["metadata"], type=described(RegistrationMetadata)) for r in rows
    )
    return {f"{table.kind}:{table.name}" for table in registered}
