"""From schema text to catalog in one call."""

from __future__ import annotations

from omnigraph.catalog.build import build_schema
from omnigraph.catalog.model import Catalog
from omnigraph.language.span import Source


def compile_schema(source: Source) -> Catalog:
    """The catalog a new graph with this schema would have. Raises `LanguageError`."""
    return Catalog.from_ir(build_schema(source))
