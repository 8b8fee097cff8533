"""Rows in the forms loads read: which types, in which order, as JSON lines or in Parquet files."""

from omnigraph.export.lines import BlobTexts, export_lines
from omnigraph.export.parquet import file_names, part_name, write_parquet
from omnigraph.export.selection import select_types

__all__ = [
    "BlobTexts",
    "export_lines",
    "file_names",
    "part_name",
    "select_types",
    "write_parquet",
]
