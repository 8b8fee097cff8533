"""Identities for the accepted schema of an older graph, and for tables whose types are gone.

The numbers follow from the schema and the names of the tables alone. Whoever converts, and however
often, gets the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from omnigraph.catalog.compile import build_declared
from omnigraph.catalog.identity import IdCounter, allocate_identities
from omnigraph.catalog.ir import IR_VERSION, SchemaIR, schema_from_json
from omnigraph.errors import LanguageError, ManifestDamaged, SchemaContractBroken
from omnigraph.language.syntax import Source
from omnigraph.versioning.commits import TableId
from omnigraph.versioning.contract import (
    IR_FILE,
    SOURCE_FILE,
    STATE_FILE,
    ContractFiles,
    SchemaContract,
    declared_hash,
)
from omnigraph.versioning.rows import TableRegistration
from omnigraph.versioning.snapshot import table_keys
from omnigraph.versioning.upgrade.old_layout import IR_VERSION as OLD_IR_VERSION

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
            raise ValueError(f"schema IR version {version} is not known")
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
        raise ManifestDamaged(f"the manifest names a table '{table_key}', which is no type")
    return kind, name
