"""Steps for the properties, annotations and constraints of a type that exists before and after.

Enum values may be added, because every stored value stays valid. Every other change of a property
type would rewrite rows and is refused, numeric widening and nullability included. An index may be
added; no other constraint may come or go.
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
from omnigraph.language.types import PropType

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
    added = _added_enum_values(before.type, after.type)
    if added:
        yield ExtendEnum(entity.kind, entity.type_name, after.name, added)
        return
    reason = (
        f"changing property type for '{entity.label}' "
        f"from {before.type.display} to {after.type.display} is not supported"
    )
    yield UnsupportedChange(entity, reason, MigrationCode.PROPERTY_TYPE_CHANGE)


def _added_enum_values(before: PropType, after: PropType) -> tuple[str, ...]:
    """The new values when the type only gained enum values, otherwise none."""
    if before.enum_values is None or after.enum_values is None:
        return ()
    only_values_differ = replace(before, enum_values=after.enum_values) == after
    if not only_values_differ or not set(before.enum_values) <= set(after.enum_values):
        return ()
    return tuple(sorted(set(after.enum_values) - set(before.enum_values)))


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
        successors = _without_endpoints(successors)
    kept = [renamed_constraint(constraint, successors) for constraint in before]
    wanted, known = set(after), set(kept)
    removed = [c for c in kept if c not in wanted]
    if removed:
        texts = ", ".join(constraint_text(c) for c in removed)
        reason = f"removing constraints from '{type_name}' is not supported: {texts}"
        yield UnsupportedChange(entity, reason)
    for constraint in after:
        if constraint in known:
            continue
        if isinstance(constraint, IndexIR):
            yield AddConstraint(kind, type_name, constraint)
        else:
            text = constraint_text(constraint)
            reason = f"adding constraint '{text}' to '{type_name}' is not supported"
            yield UnsupportedChange(entity, reason)


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


def _without_endpoints(successors: Mapping[str, str]) -> Mapping[str, str]:
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
