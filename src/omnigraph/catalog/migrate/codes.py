"""The diagnostic codes of schema migration, as data that plans, documentation and tests share.

A code names the class of a change, its tier says how dangerous making it would be. Codes marked as
reserved are never emitted; they keep their number so that it cannot come to mean something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Tier(Enum):
    """What making the change would take."""

    SAFE = "safe"
    VALIDATED = "validated"
    DESTRUCTIVE = "destructive"


class Severity(Enum):
    ERROR = "error"
    WARN = "warn"
    INFO = "info"


class MigrationCode(Enum):
    """Every code there is; the value is what people and programs see."""

    DROP_GRAPH_TYPE = "OG-DS-101"
    DROP_NODE_TYPE = "OG-DS-102"
    DROP_EDGE_TYPE = "OG-DS-103"
    DROP_PROPERTY = "OG-DS-104"
    DROP_VECTORS = "OG-DS-105"
    REQUIRED_WITHOUT_BACKFILL = "OG-MF-103"
    NULLABLE_TO_REQUIRED = "OG-MF-104"
    PROPERTY_TYPE_CHANGE = "OG-MF-106"

    @property
    def meaning(self) -> CodeMeaning:
        return CODE_MEANINGS[self]

    @property
    def family(self) -> str:
        """The two letters in the middle: DS for drops, MF for changes of form."""
        return self.value.split("-")[1]


@dataclass(frozen=True, slots=True)
class CodeMeaning:
    """What a code stands for. `emitted` is false for a code that is only reserved."""

    tier: Tier
    text: str
    emitted: bool
    severity: Severity = Severity.ERROR


CODE_MEANINGS: Final[Mapping[MigrationCode, CodeMeaning]] = MappingProxyType(
    {
        MigrationCode.DROP_GRAPH_TYPE: CodeMeaning(
            Tier.DESTRUCTIVE, "drop whole graph type", emitted=False
        ),
        MigrationCode.DROP_NODE_TYPE: CodeMeaning(
            Tier.DESTRUCTIVE, "drop node type with rows", emitted=False
        ),
        MigrationCode.DROP_EDGE_TYPE: CodeMeaning(
            Tier.DESTRUCTIVE, "drop edge type with rows", emitted=False
        ),
        MigrationCode.DROP_PROPERTY: CodeMeaning(
            Tier.DESTRUCTIVE, "drop property with rows", emitted=False
        ),
        MigrationCode.DROP_VECTORS: CodeMeaning(
            Tier.DESTRUCTIVE, "drop populated vector column", emitted=False
        ),
        MigrationCode.REQUIRED_WITHOUT_BACKFILL: CodeMeaning(
            Tier.VALIDATED, "add required property without backfill", emitted=True
        ),
        MigrationCode.NULLABLE_TO_REQUIRED: CodeMeaning(
            Tier.VALIDATED, "nullable → non-nullable", emitted=False
        ),
        # Emitted for every change of type but a growing enum: numeric widening and nullability
        # are type changes too, so the narrower code above stays unused.
        MigrationCode.PROPERTY_TYPE_CHANGE: CodeMeaning(
            Tier.DESTRUCTIVE, "property type change", emitted=True
        ),
    }
)

RESERVED_FAMILIES: Final = ("CD", "BC", "NM", "OW", "NL", "VE", "ED", "LK")
"""Families no code belongs to yet."""
