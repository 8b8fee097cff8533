"""Steps for the properties, annotations and constraints of a type that exists before and after.

Enum values may be added and numbers widened, because every stored value stays valid. A property may
become optional or required, and constraints may come and go, except those that ids derive from. Steps
that stored rows can break say so (`validates`). Every other change of a property type is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from omnigraph.catalog.ir import (
    AnnotationIR,
    Bound,
    CheckIR,
    ConstraintIR,
    EdgeIR,
    IndexIR,
    InterfaceIR,
    KeyIR,
    NodeIR,
    PropertyIR,
    RangeIR,
    UniqueIR,
)
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    AddProperty,
    ChangePropertyType,
    ChangeRange,
    DropConstraint,
    DropMode,
    DropProperty,
    Entity,
    ExtendEnum,
    MigrationCode,
    RenameProperty,
    Step,
    StoredKind,
    UnsupportedChange,
    UpdatePropertyMetadata,
)
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.language.types import PropType, Scalar

T = TypeVar("T", InterfaceIR, NodeIR, EdgeIR, PropertyIR)


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """A desired item and the accepted one it continues; one with neither origin nor refusal is new."""

    desired: T
    accepted: T | None = None
    refusal: str | None = None

    def __post_init__(self) -> None:
        if self.accepted is not None and self.refusal is not None:
            raise ValueError("a refused match continues nothing")

    @property
    def renamed(self) -> bool:
        return self.accepted is not None and self.accepted.name != self.desired.name


@dataclass(frozen=True, slots=True)
class Matching(Generic[T]):
    """All matches in desired order, and the accepted items that no desired one continues.

    `successors` maps accepted to desired names. An item that is claimed more than once has one
    successor (by name, else the first), so that the plan has no follow-up errors.
    """

    matches: tuple[Match[T], ...]
    leftovers: tuple[T, ...]
    successors: Mapping[str, str]


def match_by_name(
    accepted: Sequence[T],
    desired: Sequence[T],
    noun: str,
    annotations: Callable[[T], tuple[AnnotationIR, ...]],
) -> Matching[T]:
    """Find the accepted item that each desired one continues.

    The same name wins, then the name in `@rename_from`. When several desired items claim one by
    `@rename_from` they are refused, because choosing would silently decide whose data survives.
    `noun` names the items in refusals: `property`, `node type`.
    """
    known = {a.name: a for a in accepted}
    claims: dict[str, list[str]] = {}
    wanted: dict[str, str] = {}
    refusals: dict[str, str] = {}
    for item in desired:
        origins = [item.name] if item.name in known else _old_names(annotations(item))
        match origins:
            case []:
                continue
            case [str(origin)] if origin in known:
                wanted[item.name] = origin
                claims.setdefault(origin, []).append(item.name)
            case [str(origin)]:
                refusals[item.name] = _nothing_to_rename(item.name, origin, noun, known)
            case _:
                refusals[item.name] = f"'{item.name}' needs exactly one old name in @rename_from"

    def match(item: T) -> Match[T]:
        origin = wanted.get(item.name)
        if origin is None:
            return Match(item, refusal=refusals.get(item.name))
        if origin != item.name and len(claims[origin]) > 1:
            return Match(item, refusal=_contested(origin, claims[origin], noun))
        return Match(item, known[origin])

    return Matching(
        matches=tuple(match(item) for item in desired),
        leftovers=tuple(a for a in accepted if a.name not in claims),
        successors={
            origin: origin if origin in claimants else claimants[0]
            for origin, claimants in claims.items()
        },
    )


def _old_names(annotations: Sequence[AnnotationIR]) -> list[str | None]:
    return [a.value for a in annotations if a.name == "rename_from"]


def _nothing_to_rename(name: str, origin: str, noun: str, known: Mapping[str, object]) -> str:
    reason = f"'{name}' declares @rename_from(\"{origin}\") but no accepted {noun} has that name"
    hint = did_you_mean(origin, known)
    return f"{reason}; {hint}" if hint else reason


def _contested(origin: str, claimants: Sequence[str], noun: str) -> str:
    names = ", ".join(f"'{name}'" for name in claimants)
    return f"accepted {noun} '{origin}' is claimed by more than one {noun}: {names}"


# -- properties ---------------------------------------------------------------------------------


def property_steps(
    owner: Entity, matching: Matching[PropertyIR], drop_mode: DropMode
) -> Iterator[Step]:
    """Desired properties by name, then what was dropped. `owner` is the type as desired."""
    desired = {m.desired.name: m.desired.name for m in matching.matches}
    for match in matching.matches:
        entity = Entity(owner.kind, owner.type_name, match.desired.name)
        if match.refusal is not None:
            yield UnsupportedChange(entity, match.refusal)
        elif match.accepted is None:
            yield _addition(entity, match.desired)
        else:
            yield from _changes(entity, match.accepted, match.desired)
            names = matching.successors, desired
            yield from _annotation_changes(entity, match.accepted, match.desired, *names)
    for prop in matching.leftovers:
        yield DropProperty(owner.kind, owner.type_name, prop.name, drop_mode)


def _addition(entity: Entity, prop: PropertyIR) -> Step:
    annotation = prop.annotation("backfill")
    backfill = annotation.value if annotation else None
    # Vectors of existing rows are computed from their source when the plan is applied.
    computed = prop.annotation("embed") is not None
    if prop.type.nullable or backfill is not None or computed:
        return AddProperty(entity.kind, entity.type_name, prop.name, prop.type, backfill)
    reason = f"adding required property '{entity.label}' requires a backfill"
    if prop.type.is_blob:
        reason = f"{reason}, which a Blob cannot have: make the property optional"
    else:
        reason = f"{reason} for existing rows: add @backfill(<value>) to the property"
    return UnsupportedChange(entity, reason, MigrationCode.REQUIRED_WITHOUT_BACKFILL)


def _changes(entity: Entity, before: PropertyIR, after: PropertyIR) -> Iterator[Step]:
    if before.name != after.name:
        yield RenameProperty(entity.kind, entity.type_name, before.name, after.name)
    if before.type == after.type:
        return
    if not _holds_all_values(before.type, after.type):
        reason = (
            f"changing property type for '{entity.label}' "
            f"from {before.type.display} to {after.type.display} is not supported"
        )
        yield UnsupportedChange(entity, reason, MigrationCode.PROPERTY_TYPE_CHANGE)
        return
    added = set(after.type.enum_values or ()) - set(before.type.enum_values or ())
    if added:
        yield ExtendEnum(entity.kind, entity.type_name, after.name, tuple(sorted(added)))
    was = replace(before.type, enum_values=after.type.enum_values)
    if was != after.type:
        requires = entity.kind != "interface" and was.nullable and not after.type.nullable
        yield ChangePropertyType(
            entity.kind, entity.type_name, after.name, was, after.type, requires
        )


_WIDER: Final = {Scalar.I32: Scalar.I64, Scalar.F32: Scalar.F64}


def _holds_all_values(before: PropType, after: PropType) -> bool:
    """Whether every value but null of one type is a value of another."""
    if after.scalar not in (before.scalar, _WIDER.get(before.scalar)):
        return False
    if (before.enum_values is None) != (after.enum_values is None):
        return False
    if not set(before.enum_values or ()) <= set(after.enum_values or ()):
        return False
    kept = {"nullable": after.nullable, "enum_values": after.enum_values}
    return replace(before, scalar=after.scalar, **kept) == after


def _annotation_changes(
    entity: Entity,
    before: PropertyIR,
    after: PropertyIR,
    successors: Mapping[str, str],
    desired: Mapping[str, str],
) -> Iterator[Step]:
    described = describing(after.annotations)
    if with_embed_source(describing(before.annotations), successors.get) != described:
        yield UpdatePropertyMetadata(entity.kind, entity.type_name, after.name, described)
    refusal = refuse_changes(
        entity,
        with_embed_source(fixed(before.annotations), successors.get),
        with_embed_source(fixed(after.annotations), desired.get),
    )
    if refusal:
        yield refusal


# -- annotations -------------------------------------------------------------------------------


Annotations = tuple[AnnotationIR, ...]

_DESCRIBING: Final = frozenset({"description", "instruction"})
_WITHOUT_MEANING_HERE: Final = frozenset({"rename_from", "backfill", "key", "unique", "index"})


def describing(annotations: Annotations) -> Annotations:
    """The annotations a metadata step carries."""
    return tuple(a for a in annotations if a.name in _DESCRIBING or a.arguments)


def fixed(annotations: Annotations) -> Annotations:
    """The annotations that cannot change once a schema with them is accepted."""
    ignored = _DESCRIBING | _WITHOUT_MEANING_HERE
    return tuple(replace(a, arguments=()) for a in annotations if a.name not in ignored)


def refuse_changes(
    entity: Entity, before: Annotations, after: Annotations
) -> UnsupportedChange | None:
    """A refusal that names the fixed annotations in which the two differ, if they do."""
    if before == after:
        return None
    changed = {a.name for a in (*before, *after) if before.count(a) != after.count(a)}
    names = ", ".join(f"@{name}" for name in sorted(changed))
    reason = "changing annotations beyond @description/@instruction is not supported"
    return UnsupportedChange(entity, f"{reason} ({names} on '{entity.label}')")


def with_embed_source(
    annotations: Iterable[AnnotationIR], name_of: Callable[[str], str | None]
) -> Annotations:
    """The annotations with each `@embed` source under the name it has in the desired schema.

    A source that is not a property of the type has no such name: an interface may leave the source
    to the nodes that implement it, and those are compared instead.
    """
    return tuple(
        replace(a, value=name_of(a.value)) if a.name == "embed" and a.value is not None else a
        for a in annotations
    )


# -- constraints -------------------------------------------------------------------------------


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def constraint_steps(
    kind: StoredKind,
    type_name: str,
    before: Sequence[ConstraintIR],
    after: Sequence[ConstraintIR],
    successors: Mapping[str, str],
) -> Iterator[Step]:
    """Steps for the constraints of a type whose properties became their `successors`."""
    entity = Entity(kind, type_name)
    if kind == "edge":
        successors = without_endpoints(successors)
    kept = [renamed_constraint(constraint, successors) for constraint in before]
    removed = [c for c in kept if c not in set(after)]
    added = [c for c in after if c not in set(kept)]
    keys = [c for c in removed if isinstance(c, KeyIR)]
    if keys:
        texts = ", ".join(constraint_text(c) for c in keys)
        reason = f"removing constraints from '{type_name}' is not supported: {texts}"
        yield UnsupportedChange(entity, reason)
    ranges = {c.property: c for c in removed if isinstance(c, RangeIR)}
    changed = [c for c in added if isinstance(c, RangeIR) and c.property in ranges]
    replaced = {ranges[new.property] for new in changed}
    for constraint in removed:
        if not isinstance(constraint, KeyIR) and constraint not in replaced:
            yield DropConstraint(kind, type_name, constraint)
    for new in changed:
        old = ranges[new.property]
        yield ChangeRange(kind, type_name, old, new, not _is_wider(old, new))
    for constraint in added:
        if isinstance(constraint, KeyIR):
            text = constraint_text(constraint)
            reason = f"adding constraint '{text}' to '{type_name}' is not supported"
            yield UnsupportedChange(entity, reason)
        elif constraint not in changed:
            validates = not isinstance(constraint, IndexIR)
            yield AddConstraint(kind, type_name, constraint, validates)


def _is_wider(old: RangeIR, new: RangeIR) -> bool:
    low = new.low is None or (old.low is not None and new.low <= old.low)
    high = new.high is None or (old.high is not None and new.high >= old.high)
    return low and high


def constraint_text(constraint: ConstraintIR) -> str:
    """The constraint in schema syntax: `@index(level)`."""
    match constraint:
        case KeyIR(columns):
            return f"@key({', '.join(columns)})"
        case UniqueIR(columns):
            return f"@unique({', '.join(columns)})"
        case IndexIR(columns):
            return f"@index({', '.join(columns)})"
        case RangeIR(column, low, high):
            return f"@range({column}, {_bound(low)}..{_bound(high)})"
        case CheckIR(column, pattern):
            return f"@check({column}, {quoted(pattern)})"


def quoted(text: str) -> str:
    """The text as a string literal of the schema language, on one line."""
    return f'"{text.translate(_ESCAPES)}"'


def _bound(bound: Bound | None) -> str:
    return "" if bound is None else str(bound)


def without_endpoints(successors: Mapping[str, str]) -> Mapping[str, str]:
    """On an edge `src` and `dst` in a constraint are its endpoints, never properties."""
    return {
        old: new for old, new in successors.items() if old not in ENDPOINTS and new not in ENDPOINTS
    }


def renamed_constraint(constraint: ConstraintIR, names: Mapping[str, str]) -> ConstraintIR:
    """The constraint under new names of its columns; endpoints of an edge keep theirs."""
    match constraint:
        case KeyIR(columns) | UniqueIR(columns) | IndexIR(columns):
            return replace(constraint, columns=tuple(sorted(names.get(c, c) for c in columns)))
        case RangeIR(column) | CheckIR(column):
            return replace(constraint, property=names.get(column, column))
