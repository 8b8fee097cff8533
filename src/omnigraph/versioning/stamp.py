"""The format stamp: which generation of the on-disk format a graph was written in."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.errors import ManifestDamaged, NewerFormat
from omnigraph.versioning.rows import FORMAT_STAMP, STAMP_KEY


def check_stamp(schema: pa.Schema) -> None:
    """Refuse a manifest that this version of the product cannot read correctly."""
    stamp = read_stamp(schema)
    if stamp > FORMAT_STAMP:
        raise NewerFormat(stamp, FORMAT_STAMP)
    if stamp < FORMAT_STAMP:
        raise ManifestDamaged(f"the manifest has format stamp {stamp}, expected {FORMAT_STAMP}")


def read_stamp(schema: pa.Schema) -> int:
    """The stamp of a manifest; graphs older than the stamp itself count as 1."""
    text = (schema.metadata or {}).get(STAMP_KEY.encode(), b"1")
    if not text.isdigit():
        raise ManifestDamaged(f"the manifest has the format stamp {text!r}, which is no number")
    return int(text)
