"""Codes of changes to a schema that has data.

The same codes, with tiers, are in `omnigraph.catalog.migrate.codes`, where plans take them from.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from omnigraph.error_codes.entry import entry

_code = partial(entry, "migration")

MIGRATION_CODES: Final = (
    _code(
        "OG-DS-101",
        "drop of a whole graph type",
        """
        Reserved; nothing reports it today.
        """,
    ),
    _code(
        "OG-DS-102",
        "drop of a node type with rows",
        """
        Reserved; nothing reports it today. Leaving a node type out of the schema is a supported
        change: its rows leave the current version and stay readable in older ones, unless data
        loss was allowed.
        """,
    ),
    _code(
        "OG-DS-103",
        "drop of an edge type with rows",
        """
        Reserved; nothing reports it today. Leaving an edge type out of the schema is a supported
        change, like leaving out a node type.
        """,
    ),
    _code(
        "OG-DS-104",
        "drop of a property with values",
        """
        Reserved; nothing reports it today. Leaving a property out of the schema is a supported
        change as long as no constraint names it.
        """,
    ),
    _code(
        "OG-DS-105",
        "drop of a vector property with values",
        """
        Reserved; nothing reports it today.
        """,
    ),
    _code(
        "OG-MF-103",
        "required property without a backfill",
        """
        A new property is required, but rows that already exist have no value for it. Say which
        value they get with `@backfill(value)`, or make the property optional with `?`; for a blob
        only the latter works. Once the property exists the annotation has no effect and may stay.
        """,
        """
        // accepted: node Lamp { code: String @key }
        node Lamp { code: String @key  watt: I32 }
        """,
    ),
    _code(
        "OG-MF-104",
        "optional property made required",
        """
        Reserved; nothing reports it today. Making an optional property required is reported as
        OG-MF-106, like every other change of a property's type.
        """,
    ),
    _code(
        "OG-MF-106",
        "changed property type",
        """
        The type of a property differs from the accepted one. Adding values to an enum is the only
        change of type that can be made, because every stored value stays valid. All others are
        refused: another scalar, more or fewer bits, `?` added or removed, list or not, fewer enum
        values, another vector size. Add a property of the new type under a new name, move the
        values over, then drop the old one.
        """,
        """
        // accepted: node Lamp { watt: I32 }
        node Lamp { watt: I64 }
        """,
    ),
)
