"""Create a graph: schema files first, then empty tables, then the manifest that registers them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.catalog.arrow import physical_schema
from omnigraph.catalog.compile import build_schema, check_reserved_names
from omnigraph.catalog.identity import table_directory
from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.errors import (
    AlreadyInitialized,
    InputError,
    OmnigraphError,
    TableExists,
    TableMissing,
    TornVersion,
)
from omnigraph.faults import declare
from omnigraph.language.syntax import Source
from omnigraph.storage.objects import ObjectStore, probe_store
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
)
from omnigraph.versioning.contract import (
    CONTRACT_FILES,
    SOURCE_FILE,
    SchemaContract,
    write_compiled,
    write_history,
)
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.manifest_compaction import index_manifest
from omnigraph.versioning.rows import (
    CONFIG,
    MANIFEST_PATH,
    SCHEMA,
    TableRegistration,
    TableVersion,
    checkpoint_row,
    commit_rows,
    registration_row,
    rows_table,
    version_row,
)
from omnigraph.versioning.snapshot import table_id

AFTER_SOURCE = declare("init.after_schema_pg_written", "after the schema source is claimed")
AFTER_CONTRACT = declare("init.after_schema_contract_written", "after the compiled schema")
AFTER_TABLES = declare("init.after_coordinator_init", "after tables and manifest exist")

_log = logging.getLogger(__name__)
_FIRST = 1
_WITHOUT_SCHEMA = "the graph has lost its schema files; restore them, or choose another location"


def create_graph(
    root: GraphRoot,
    objects: ObjectStore,
    tables: TableStore,
    schema: Source,
    *,
    force: bool = False,
) -> CommitRecord:
    """Create a graph. A failure removes what this call wrote and leaves no graph."""
    if root.kind == "local":
        _refuse_a_file_in_the_way(root.uri)
    has_schema = any(objects.exists(name) for name in CONTRACT_FILES)
    if has_schema and not force:
        raise AlreadyInitialized(root.uri, is_complete=_has_manifest(tables))
    check_reserved_names(schema)
    contract = SchemaContract.accept(schema.text, build_schema(schema))
    probe_store(objects, root)
    if force:
        # Its tables could not be made anyway, and trying would cost the graph its schema files.
        if _has_manifest(tables):
            lost = TableExists(MANIFEST_PATH, _WITHOUT_SCHEMA)
            raise AlreadyInitialized(root.uri) if has_schema else lost
        objects.write_text(SOURCE_FILE, schema.text)
    elif not objects.write_text_if_absent(SOURCE_FILE, schema.text):
        raise AlreadyInitialized(root.uri)
    # From here on the source file is ours, and so is the duty to take it away again.
    made: list[str] = []
    try:
        AFTER_SOURCE.hit()
        write_history(objects, contract.ir)
        write_compiled(objects, contract)
        AFTER_CONTRACT.hit()
        commit = _create_tables(tables, contract, made)
        AFTER_TABLES.hit()
    except TableExists as error:
        _withdraw(objects, made)
        advice = f"an interrupted init left it; remove '{root.uri}' and init again"
        is_graph = _has_manifest(tables)
        raise TableExists(error.table, _WITHOUT_SCHEMA if is_graph else advice) from error
    except BaseException:
        _withdraw(objects, made)
        raise
    return commit


def _refuse_a_file_in_the_way(path: str) -> None:
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        found = "a file, not a directory" if os.path.exists(path) else "a link to nowhere"
        raise InputError(f"'{path}' is {found}; a graph needs a directory")


def _has_manifest(tables: TableStore) -> bool:
    try:
        tables.open(MANIFEST_PATH)
    except TableMissing:
        return False
    except TornVersion as torn:
        # With nothing before it, what a power loss tore was the graph's first moment.
        return torn.previous is not None
    return True


def _withdraw(objects: ObjectStore, made: list[str]) -> None:
    """Remove what this call made: newest first, and last the source, which keeps others out."""
    for path in [*reversed(made), *reversed(CONTRACT_FILES)]:
        try:
            objects.delete_prefix(path)
        except OmnigraphError as error:
            _log.warning("could not delete %s: %s", path, error)


def _create_tables(tables: TableStore, contract: SchemaContract, made: list[str]) -> CommitRecord:
    registered: list[TableRegistration] = []
    versions: list[TableVersion] = []
    for declared in contract.catalog:
        registration = _registration(declared)
        with _making(registration.location, made):
            table = tables.create(registration.location, physical_schema(declared))
        registered.append(registration)
        info = table.version_info().to_json()
        versions.append(TableVersion(registration.table_id, table.version, None, 0, info))
    draft = CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.INIT,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
    )
    commit = CommitRecord(draft, None, _FIRST, None)
    state = ManifestState(
        branch=None,
        sequence=_FIRST,
        head=commit.graph_commit_id,
        tables={v.table_id: v for v in versions},
        registered={r.table_id: r for r in registered},
        schema_ref=draft.schema_ref,
    )
    rows = [registration_row(r, _FIRST) for r in registered]
    rows += [version_row(v, _FIRST) for v in versions]
    rows += commit_rows(commit, "committed")
    rows.append(checkpoint_row(_FIRST, state.to_checkpoint()))
    with _making(MANIFEST_PATH, made):
        manifest = tables.create(
            MANIFEST_PATH, SCHEMA, rows=rows_table(rows), config=CONFIG, keeps_row_ids=False
        )
    index_manifest(manifest, draft.operation_id)
    return commit


@contextmanager
def _making(path: str, made: list[str]) -> Iterator[None]:
    """What is made here is ours, even in part. What was there before is not."""
    made.append(path)
    try:
        yield
    except TableExists:
        made.remove(path)
        raise


def _registration(declared: EntityType) -> TableRegistration:
    kind = "node" if isinstance(declared, NodeType) else "edge"
    return TableRegistration(
        table_id=table_id(declared),
        location=table_directory(kind, declared.name, declared.type_id),
        kind=kind,
        type_id=declared.type_id,
        name=declared.name,
    )
