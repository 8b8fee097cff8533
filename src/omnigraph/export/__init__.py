"""Rows to JSON lines in the form loads read: which types, in which order, and every value's text."""

from omnigraph.export.lines import BlobTexts, export_lines
from omnigraph.export.selection import select_types

__all__ = ["BlobTexts", "export_lines", "select_types"]
