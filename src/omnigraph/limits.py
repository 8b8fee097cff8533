"""Every constant and default of the product, each with its reason."""

from __future__ import annotations

from typing import Final

MAX_NESTING: Final = 64
"""Deepest nesting of blocks, calls and lists in source text. Real queries stay below 5; the limit
keeps the recursive parser far away from the interpreter's own recursion limit."""

MAX_SOURCE_BYTES: Final = 4 * 1024 * 1024
"""Largest schema or query file read from disk. The biggest schema seen in practice has a few hundred
kilobytes; the limit stops a data file handed over by mistake before its tokens fill the memory."""

SNIPPET_COLUMNS: Final = 160
"""Widest excerpt of a source line shown under an error message."""

MAX_VECTOR_DIMENSION: Final = 2_147_483_647
"""A vector column is a fixed-size list, whose length Arrow stores as a signed 32-bit integer."""

COMPILE_CACHE_ENTRIES: Final = 512
"""Compiled queries kept per schema. A served application has tens of stored queries, a notebook
session hundreds of ad-hoc ones."""
