"""Which accepted type or property a desired one continues.

The same name wins; failing that, the accepted thing its `@rename_from` names. An accepted thing is
continued at most once: when several desired ones want it, those that want it by `@rename_from` are
refused, because picking one of them would silently decide whose data survives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from omnigraph.catalog.ir import AnnotationIR, EdgeIR, InterfaceIR, NodeIR, PropertyIR
from omnigraph.diagnostics import did_you_mean

T = TypeVar("T", InterfaceIR, NodeIR, EdgeIR, PropertyIR)


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """A desired thing and the accepted one it continues; neither accepted nor refused is new."""

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
    """All matches in desired order, and the accepted things nobody wants any more.

    `successors` maps accepted to desired names. Something wanted more than once has one successor
    (by name, else the first), which keeps the rest of the plan free of follow-up complaints.
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
    """Match one kind of thing. `noun` names it in refusals: `property`, `node type`."""
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
