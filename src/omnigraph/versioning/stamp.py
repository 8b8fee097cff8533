"""The format stamp: which generation of the on-disk format a graph was written in."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.errors import ManifestDamaged, NewerFormat
from omnigraph.versioning.rows import FORMAT_STAMP, STAMP_KEY

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


def read_stamp(schema: pa.Schema) -> int:
    """The stamp of a manifest; graphs older than the stamp itself count as 1."""
    text = (schema.metadata or {}).get(STAMP_KEY.encode(), b"1")
    if not text.isdigit():
        raise ManifestDamaged(f"the manifest has the format stamp {text!r}, which is no number")
    return int(text)
