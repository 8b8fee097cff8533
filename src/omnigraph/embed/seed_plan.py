"""What is to be done with the vectors of a seed file: which rows, from which fields, into which one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from omnigraph.embed.gemini import GEMINI_MODEL
from omnigraph.errors import InputError
from omnigraph.json_text import JsonError, parse_json

_DEFAULT_OUTPUT: Final = "./build/seed.embedded.jsonl"


class SeedMode(Enum):
    """Which of the chosen rows get a vector."""

    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class TypeFields:
    """The fields of a type that are embedded together, and the field that gets the vector."""

    target: str
    fields: tuple[str, ...]

    def text(self, type_name: str, data: Mapping[str, Any]) -> str:
        """What is embedded of a row: its type, then a line for each field that says something."""
        lines = [f"type: {type_name}"]
        for name in self.fields:
            shown = _shown(data.get(name))
            if shown:
                lines.append(f"{name}: {shown}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SeedSpec:
    """How the rows of a seed file are embedded."""

    dimension: int
    types: Mapping[str, TypeFields]

    @classmethod
    def of(cls, document: object, where: str) -> SeedSpec:
        """Read a specification. Raises `InputError`."""
        try:
            given = _mapping(document)
            model = given.get("model", GEMINI_MODEL)
            if model != GEMINI_MODEL:
                raise InputError(f"{where}: the model is `{model}`; only {GEMINI_MODEL} is known")
            dimension = given["dimension"]
            if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
                raise InputError(f"{where}: `dimension` is a whole number above zero")
            types = {str(n): _fields(_mapping(t)) for n, t in _mapping(given["types"]).items()}
        except KeyError as error:
            raise InputError(f"{where}: {error} is missing") from None
        except TypeError as error:
            raise InputError(f"{where}: {error}") from None
        return cls(dimension, types)


@dataclass(frozen=True, slots=True)
class Selector:
    """`field=value` or `Type:field=value`: rows whose field has the value."""

    type_name: str | None
    field: str
    value: str

    @classmethod
    def of(cls, text: str) -> Selector:
        """Read a selector. Raises `InputError`."""
        name, equals, value = text.partition("=")
        type_name, colon, field = name.rpartition(":")
        if not equals or not field or (colon and not type_name):
            raise InputError(f"'{text}' selects nothing; write field=value or Type:field=value")
        return cls(type_name or None, field, value)

    def matches(self, type_name: str, data: Mapping[str, Any]) -> bool:
        if self.type_name not in (None, type_name) or self.field not in data:
            return False
        return _shown(data[self.field]) == self.value


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """One run over a seed file."""

    source: Path
    target: Path
    spec: SeedSpec
    mode: SeedMode = SeedMode.FILL_MISSING
    types: tuple[str, ...] = ()
    selectors: tuple[Selector, ...] = ()

    def selects(self, type_name: str, data: Mapping[str, Any]) -> bool:
        """Whether a row is one of those that were chosen."""
        if type_name not in self.spec.types or (self.types and type_name not in self.types):
            return False
        return not self.selectors or any(s.matches(type_name, data) for s in self.selectors)


def read_spec(path: Path) -> SeedSpec:
    """A specification in a JSON file. Raises `InputError`."""
    try:
        return SeedSpec.of(parse_json(_text(path)), str(path))
    except JsonError as error:
        raise InputError(f"{path}: not JSON: {error}") from None


def read_manifest(path: Path) -> tuple[Path, Path, SeedSpec]:
    """Source, target and specification of a YAML manifest. Raises `InputError`."""
    import yaml

    from omnigraph.documents import yaml_problem

    try:
        document = yaml.safe_load(_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: {yaml_problem(error)}") from None
    sources, legacy, artifacts = (_part(document, p) for p in ("sources", "seed", "artifacts"))
    source = sources.get("raw_seed") or legacy.get("data")
    if not isinstance(source, str):
        raise InputError(f"{path}: `sources.raw_seed` names no file")
    target = artifacts.get("embedded_seed", _DEFAULT_OUTPUT)
    if "embeddings" not in _part({"all": document}, "all"):
        raise InputError(f"{path}: `embeddings` is missing")
    spec = SeedSpec.of(document["embeddings"], f"{path}: embeddings")
    return path.parent / source, path.parent / str(target), spec


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8") from None


def _part(document: object, name: str) -> Mapping[str, Any]:
    part = document.get(name) if isinstance(document, dict) else None
    return part if isinstance(part, dict) else {}


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("a mapping of names was expected")
    return value


def _fields(given: Mapping[str, Any]) -> TypeFields:
    target, fields = given["target"], given["fields"]
    if not isinstance(target, str) or not isinstance(fields, Sequence) or isinstance(fields, str):
        raise TypeError("a type has a `target` and a list of `fields`")
    return TypeFields(target, tuple(map(str, fields)))


def _shown(value: object) -> str:
    """A value as a text; nothing for one that says nothing."""
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return ", ".join(filter(None, map(_shown, value)))
        case _:
            return json.dumps(value, ensure_ascii=False)
