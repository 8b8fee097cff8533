"""The steps of a migration plan: one frozen value per kind of change, their JSON form, and their codes.

A plan is data: a step carries everything a reader needs and nothing that depends on the process that
made it. Type and property names are those of the desired schema, except where something is dropped or
the old name is the point."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from msgspec import Struct

from omnigraph.catalog.ir import (
    AnnotationIR,
    CardinalityIR,
    CheckIR,
    IndexIR,
    RangeIR,
    TypeKind,
    UniqueIR,
    stored_form,
)
from omnigraph.language.types import PropType


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
    """A change of type that neither widens a number nor adds enum values nor concerns nulls."""

    @property
    def tier(self) -> str:
        """How dangerous the change is."""
        needs_check = (self.REQUIRED_WITHOUT_BACKFILL, self.NULLABLE_TO_REQUIRED)
        return "validated" if self in needs_check else "destructive"


StoredKind = Literal["node", "edge"]
"""The kinds of type that have rows; an interface has none."""

DropMode = Literal["soft", "hard"]
"""Soft keeps old versions readable, hard cleans them up at once."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entity:
    """What a step is about: a type, or a property of it. Shown as `node:Maker.age`."""

    kind: TypeKind
    type_name: str
    property_name: str | None = None

    @property
    def label(self) -> str:
        """The name people use: `Maker` or `Maker.age`."""
        if self.property_name is None:
            return self.type_name
        return f"{self.type_name}.{self.property_name}"

    def __str__(self) -> str:
        return f"{self.kind}:{self.label}"


class _Step(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    def to_json(self) -> Json:
        return stored_form(self)


_NAMES: Final = {"old": "from", "new": "to"}


class AddType(_Step, frozen=True, tag="add_type"):
    type_kind: TypeKind
    name: str


class RenameType(_Step, frozen=True, tag="rename_type", rename=_NAMES):
    type_kind: StoredKind
    old: str
    new: str


class AddProperty(_Step, frozen=True, tag="add_property"):
    """A property existing rows get null or the backfill for.

    A required one without backfill is computed from its `@embed` source when the plan is applied.
    """

    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: PropType
    backfill: str | None = None


class RenameProperty(_Step, frozen=True, tag="rename_property", rename=_NAMES):
    type_kind: TypeKind
    type_name: str
    old: str
    new: str


class ExtendEnum(_Step, frozen=True, tag="extend_enum"):
    """More values for an enum; every stored value stays valid, so no row is looked at."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.added_values or sorted(set(self.added_values)) != list(self.added_values):
            raise ValueError("an enum grows by at least one value; values are sorted and distinct")


class ChangePropertyType(_Step, frozen=True, tag="change_property_type", rename=_NAMES):
    """Wider numbers, or another answer to whether a value is required.

    Wider numbers are written once. To require a value is possible if all stored rows have one.
    """

    type_kind: TypeKind
    type_name: str
    property_name: str
    old: PropType
    new: PropType
    validates: bool = False


RemovableConstraint = UniqueIR | IndexIR | RangeIR | CheckIR
"""All constraints but the key, which ids derive from."""


class DropConstraint(_Step, frozen=True, tag="drop_constraint"):
    """A rule that holds no longer. No row is read."""

    type_kind: StoredKind
    type_name: str
    constraint: RemovableConstraint


class ChangeRange(_Step, frozen=True, tag="change_range", rename=_NAMES):
    """Other bounds of a property; stored rows are validated unless the new ones are wider."""

    type_kind: StoredKind
    type_name: str
    old: RangeIR
    new: RangeIR
    validates: bool = False


class ChangeCardinality(_Step, frozen=True, tag="change_cardinality", rename=_NAMES):
    """Other bounds of edges per source; stored edges are counted unless the new ones are wider."""

    type_name: str
    old: CardinalityIR
    new: CardinalityIR
    validates: bool = False


class AddConstraint(_Step, frozen=True, tag="add_constraint"):
    """A new index, or a new rule that all stored rows are validated against."""

    type_kind: StoredKind
    type_name: str
    constraint: RemovableConstraint
    validates: bool = False


class UpdateTypeMetadata(_Step, frozen=True, tag="update_type_metadata"):
    """The describing annotations the type will have; none means they were removed."""

    type_kind: StoredKind
    name: str
    annotations: tuple[AnnotationIR, ...]


class UpdatePropertyMetadata(_Step, frozen=True, tag="update_property_metadata"):
    """The describing annotations the property will have; none means they were removed."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[AnnotationIR, ...]


class DropType(_Step, frozen=True, tag="drop_type"):
    type_kind: StoredKind
    name: str
    mode: DropMode


class DropProperty(_Step, frozen=True, tag="drop_property"):
    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode


class UnsupportedChange(_Step, frozen=True, tag="unsupported_change"):
    """A difference between the schemas that no step can make; one is enough to stop the plan."""

    entity: Entity
    reason: str
    code: MigrationCode | None = None

    @property
    def message(self) -> str:
        """What the user reads: the reason, behind its code when there is one."""
        return self.reason if self.code is None else f"[{self.code.value}] {self.reason}"

    def to_json(self) -> Json:
        return stored_form(self) | {"entity": str(self.entity)}


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | ExtendEnum
    | ChangePropertyType
    | DropConstraint
    | ChangeRange
    | ChangeCardinality
    | AddConstraint
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropType
    | DropProperty
    | UnsupportedChange
)


@dataclass(frozen=True, slots=True, repr=False)
class MigrationPlan:
    """All steps from an accepted to a desired schema, in order; none when they are equivalent."""

    steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        steps = f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"
        return f"<MigrationPlan: {steps}{'' if self.supported else ', unsupported'}>"

    def __str__(self) -> str:
        from omnigraph.catalog.migrate.report import plan_lines

        return "\n".join(plan_lines(self))

    @property
    def first_unsupported(self) -> UnsupportedChange | None:
        return next((s for s in self.steps if isinstance(s, UnsupportedChange)), None)

    @property
    def supported(self) -> bool:
        return self.first_unsupported is None

    def to_json(self) -> Json:
        return {"supported": self.supported, "steps": [s.to_json() for s in self.steps]}

    def document(self, uri: str) -> Json:
        """What `schema plan` answers for the graph at `uri`."""
        steps = [s.to_json() for s in self.steps]
        return {
            "uri": uri,
            "supported": self.supported,
            "step_count": len(steps),
            "steps": steps,
        }
