"""Which annotations a schema may change freely, which as metadata, and which not at all.

`@description` and `@instruction` describe; changing them is a step of its own. Migration hints and
the annotations that stand for constraints carry no meaning here: the former speak to the planner,
the latter are compared as constraints. The model of an `@embed` may change: its vectors are stale
then. Everything else, `@embed` and custom annotations alike, is taken to mean something to somebody
and cannot change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from omnigraph.catalog.ir import AnnotationIR
from omnigraph.catalog.migrate.steps import Entity, UnsupportedChange

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
    to the nodes that implement it, and it is they who are compared then.
    """
    return tuple(
        replace(a, value=name_of(a.value)) if a.name == "embed" and a.value is not None else a
        for a in annotations
    )
