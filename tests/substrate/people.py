"""The smallest table that shows a behaviour, made with the library itself."""

from __future__ import annotations

import uuid
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

SCHEMA = pa.schema(
    [
        pa.field(
            "id",
            pa.utf8(),
            nullable=False,
            metadata={"lance-schema:unenforced-primary-key": "true"},
        ),
        pa.field("n", pa.int32()),
    ]
)


def rows(*ids: str, n: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "n": [n] * len(ids)}, schema=SCHEMA)


def memory() -> str:
    """A place of its own in memory."""
    return f"shared-memory://{uuid.uuid4().hex}/t"


def make(*ids: str, uri: str | None = None, **options: Any) -> LanceDataset:
    """A dataset in memory, or at an address."""
    return lance.write_dataset(rows(*ids), uri or memory(), enable_stable_row_ids=True, **options)


def ids(dataset: LanceDataset) -> list[str]:
    return sorted(dataset.to_table(columns=["id"]).column("id").to_pylist())


def again(dataset: LanceDataset) -> LanceDataset:
    """The newest version through a handle of its own."""
    return lance.dataset(dataset.uri)


def appended(dataset: LanceDataset, *names: str) -> Transaction:
    written = write_fragments(rows(*names), dataset)
    return Transaction(dataset.version, LanceOperation.Append(written))


def deleted(dataset: LanceDataset, fragment: int, *offsets: int) -> Transaction:
    part = dataset.get_fragment(fragment)
    assert part is not None
    left = part.delete_rows(offsets)
    removed = [fragment] if left is None else []
    operation = LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=[] if left is None else [left],
        update_mode="rewrite_rows",
    )
    return Transaction(dataset.version, operation)


def overwritten(dataset: LanceDataset, *names: str) -> Transaction:
    written = write_fragments(rows(*names), dataset)
    return Transaction(dataset.version, LanceOperation.Overwrite(dataset.lance_schema, written))


def commit(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, max_retries=0)
