"""The diagnostic codes of schema migration."""

from __future__ import annotations

from enum import Enum


class MigrationCode(Enum):
    """The class of a change. Most are reserved: no plan has them, but their numbers stay taken."""

    DROP_GRAPH_TYPE = "OG-DS-101"
    DROP_NODE_TYPE = "OG-DS-102"
    DROP_EDGE_TYPE = "OG-DS-103"
    DROP_PROPERTY = "OG-DS-104"
    DROP_VECTORS = "OG-DS-105"
    REQUIRED_WITHOUT_BACKFILL = "OG-MF-103"
    NULLABLE_TO_REQUIRED = "OG-MF-104"
    PROPERTY_TYPE_CHANGE = "OG-MF-106"
    """Any change of type but a growing enum, numeric widening and nullability included."""

    @property
    def tier(self) -> str:
        """How dangerous the change is."""
        needs_check = (self.REQUIRED_WITHOUT_BACKFILL, self.NULLABLE_TO_REQUIRED)
        return "validated" if self in needs_check else "destructive"
