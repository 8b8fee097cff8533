"""Which types an export covers, in the order it writes them."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import with_hint
from omnigraph.errors import ExportError


def select_types(catalog: Catalog, wanted: Sequence[str] = ()) -> tuple[EntityType, ...]:
    """All types by table key, or those a type name (nodes and edges) or a table key asks for.

    Raises `ExportError` for a name the schema does not have.
    """
    by_key = {declared.table_key: declared for declared in catalog}
    names = {declared.name for declared in catalog}
    for name in wanted:
        if ":" in name and name not in by_key:
            raise ExportError(with_hint(f"unknown export table '{name}'", name, by_key))
        if ":" not in name and name not in names:
            raise ExportError(with_hint(f"unknown export type '{name}'", name, names))
    return tuple(
        by_key[key]
        for key in sorted(by_key)
        if not wanted or key in wanted or by_key[key].name in wanted
    )
