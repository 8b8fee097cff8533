"""How a merge resolves rows that both sides changed: by strategy per type or property, or row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import with_hint
from omnigraph.errors import InputError, SourceUnreadable
from omnigraph.json_text import JsonError, parse_json


class Strategy(Enum):
    """Which side wins a conflict: ours is the target, theirs the source of the merge."""

    FAIL = "fail"
    OURS = "ours"
    THEIRS = "theirs"


class Granularity(Enum):
    """Whether updates of different properties of one row conflict."""

    ROW = "row"
    PROPERTY = "property"


class Take(Enum):
    """The state that a resolution chooses for one row."""

    OURS = "ours"
    THEIRS = "theirs"
    BASE = "base"


Resolutions = Mapping[tuple[str, str], Take]
"""The chosen state by table key and row id."""


@dataclass(frozen=True)
class ConflictResolution:
    """How a merge resolves conflicts. The most specific setting wins: row, property, type, default."""

    default: Strategy = Strategy.FAIL
    granularity: Granularity = Granularity.ROW
    by_type: Mapping[str, Strategy] = field(default_factory=dict)
    by_property: Mapping[tuple[str, str], Strategy] = field(default_factory=dict)
    resolutions: Resolutions = field(default_factory=dict)

    @classmethod
    def parse(
        cls,
        strategy: str | Mapping[str, str] = "fail",
        granularity: str = "row",
        resolutions: Iterable[Mapping[str, Any]] = (),
    ) -> ConflictResolution:
        """Parse a caller's arguments. Raises `InputError`.

        `strategy` is one word, or a word per `Type` and `Type.property` with `*` for all others.
        """
        given = {"*": strategy} if isinstance(strategy, str) else dict(strategy)
        strategies = {name: _member(Strategy, "strategy", word) for name, word in given.items()}
        grain = _member(Granularity, "granularity", granularity)
        default = strategies.pop("*", Strategy.FAIL)
        by_type, by_property = {}, {}
        for name, chosen in strategies.items():
            type_name, dot, prop = name.partition(".")
            if dot:
                by_property[type_name, prop] = chosen
            else:
                by_type[type_name] = chosen
        if by_property and grain is Granularity.ROW:
            raise InputError(
                "a strategy for a property needs granularity 'property': whole rows are merged"
            )
        return cls(default, grain, by_type, by_property, _resolutions(resolutions))

    def check(self, catalog: Catalog) -> None:
        """Raises `InputError` for a type or property the schema does not have."""
        declared = {found.name: found for found in catalog}
        properties = [f"{found.name}.{prop}" for found in catalog for prop in found.properties]
        keys = {found.table_key for found in catalog}
        for name in self.by_type:
            if name not in declared:
                message = f"unknown type '{name}' in merge strategy"
                raise InputError(with_hint(message, name, declared))
        for name, prop in self.by_property:
            if name not in declared or prop not in declared[name].properties:
                message = f"unknown property '{name}.{prop}' in merge strategy"
                raise InputError(with_hint(message, f"{name}.{prop}", properties))
        for key, _ in self.resolutions:
            if key not in keys:
                raise InputError(with_hint(f"unknown table '{key}' in resolution", key, keys))

    def for_type(self, declared: EntityType) -> Strategy:
        return self.by_type.get(declared.name, self.default)

    def for_property(self, declared: EntityType, name: str) -> Strategy:
        return self.by_property.get((declared.name, name), self.for_type(declared))

    def resolved(self, table_key: str) -> dict[str, Take]:
        """The resolutions of a table's rows, by id."""
        return {id: take for (key, id), take in self.resolutions.items() if key == table_key}


def read_resolutions(path: Path) -> list[Mapping[str, Any]]:
    """Read the resolutions in a JSON file: a list, or a conflict report.

    Conflicts of a report that have no `take` are left out.
    """
    try:
        document = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceUnreadable(str(path), reason, "give the file of a conflict report") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except JsonError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    found = document.get("conflicts") if isinstance(document, dict) else document
    if not isinstance(found, list):
        raise InputError(f"{path} does not hold a list of resolutions")
    return [entry for entry in found if not isinstance(entry, dict) or entry.get("take")]


def _resolutions(given: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Take]:
    found: dict[tuple[str, str], Take] = {}
    for entry in given:
        if not isinstance(entry, Mapping):
            raise InputError("a resolution is an object with table_key, row_id and take")
        key, id = entry.get("table_key"), entry.get("row_id")
        if not isinstance(key, str) or not isinstance(id, str):
            raise InputError("a resolution needs the table_key and the row_id of a conflict")
        take = _member(Take, "take", entry.get("take"))
        if found.setdefault((key, id), take) is not take:
            raise InputError(f"two resolutions of {key}:{id} contradict each other")
    return found


def _member(kind: type[Any], what: str, word: object) -> Any:
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise InputError(f"{what} '{word}' is unknown; it is one of {known}") from None
