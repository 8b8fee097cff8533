"""Vectors for the rows of a JSON Lines file before it is loaded.

The output file is replaced only after all of it is written. Tests: tests/unit/providers/test_seed_files.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import numpy.typing as npt

from omnigraph.errors import InputError
from omnigraph.json_text import JsonError, parse_json
from omnigraph.providers.clients import GEMINI_MODEL, Task, Vectors
from omnigraph.providers.configured import required_provider

_DEFAULT_OUTPUT: Final = "./build/seed.embedded.jsonl"
_BATCH_ROWS: Final = 512
"""Rows embedded at a time."""


class SeedMode(Enum):
    """Which of the selected rows get a vector."""

    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class TypeFields:
    """The fields of a type that are embedded together, and the field for the vector."""

    target: str
    fields: tuple[str, ...]

    def text(self, type_name: str, data: Mapping[str, Any]) -> str:
        """The text of a row: its type, then a line per non-empty field."""
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
        """Parse a specification. Raises `InputError`."""
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
    """Selects rows by `field=value` or `Type:field=value`."""

    type_name: str | None
    field: str
    value: str

    @classmethod
    def of(cls, text: str) -> Selector:
        """Parse a selector. Raises `InputError`."""
        name, equals, value = text.partition("=")
        type_name, colon, field = name.rpartition(":")
        if not equals or not field or (colon and not type_name):
            raise InputError(f"'{text}' is not a selector; use field=value or Type:field=value")
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
        """Whether a row is selected."""
        if type_name not in self.spec.types or (self.types and type_name not in self.types):
            return False
        return not self.selectors or any(s.matches(type_name, data) for s in self.selectors)


def read_spec(path: Path) -> SeedSpec:
    """Read a specification from a JSON file. Raises `InputError`."""
    try:
        return SeedSpec.of(parse_json(_text(path)), str(path))
    except JsonError as error:
        raise InputError(f"{path}: not JSON: {error}") from None


def read_manifest(path: Path) -> tuple[Path, Path, SeedSpec]:
    """Read source, target and specification from a YAML manifest. Raises `InputError`."""
    import yaml

    from omnigraph.documents import yaml_problem

    try:
        document = yaml.safe_load(_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: {yaml_problem(error)}") from None
    sources, legacy, artifacts = (_part(document, p) for p in ("sources", "seed", "artifacts"))
    source = sources.get("raw_seed") or legacy.get("data")
    if not isinstance(source, str):
        raise InputError(f"{path}: `sources.raw_seed` must name a file")
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
    """A value as text; empty for null."""
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return ", ".join(filter(None, map(_shown, value)))
        case _:
            return json.dumps(value, ensure_ascii=False)


@dataclass(slots=True)
class SeedSummary:
    """Counts of one run."""

    input: str
    output: str
    rows: int = field(default=0, init=False)
    selected_rows: int = field(default=0, init=False)
    embedded_rows: int = field(default=0, init=False)
    cleaned_rows: int = field(default=0, init=False)
    mode: str
    dimension: int
    model: str = GEMINI_MODEL

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class _Row:
    """One line; unchanged lines are written as they were read."""

    line: str
    record: dict[str, Any]
    type_name: str | None
    text: str | None = None
    is_changed: bool = False

    def written(self) -> str:
        return json.dumps(self.record, ensure_ascii=False) if self.is_changed else self.line


def embed_seed(plan: SeedPlan) -> SeedSummary:
    """Run a plan. On `InputError` or `EmbeddingError` the output file is unchanged."""
    done = SeedSummary(str(plan.source), str(plan.target), plan.mode.value, plan.spec.dimension)
    temporary = plan.target.with_name(f"{plan.target.name}.tmp")
    try:
        with plan.source.open(encoding="utf-8") as source:
            plan.target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("w", encoding="utf-8") as target:
                    _embed(plan, source, target, done)
                temporary.replace(plan.target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except UnicodeDecodeError:
        raise InputError(f"{plan.source}: is not UTF-8") from None
    except OSError as error:
        raise InputError(f"{error.filename or plan.source}: {error.strerror}") from None
    return done


def _embed(plan: SeedPlan, source: TextIO, target: TextIO, done: SeedSummary) -> None:
    rows = _rows(plan.source, source)
    while some := list(islice(rows, _BATCH_ROWS)):
        done.rows += len(some)
        for row in some:
            _decide(plan, row, done)
        waiting = [row for row in some if row.text is not None]
        if waiting:
            _fill(plan, waiting)
            done.embedded_rows += len(waiting)
        target.writelines(f"{row.written()}\n" for row in some)


def _decide(plan: SeedPlan, row: _Row, done: SeedSummary) -> None:
    if row.type_name is None or not plan.selects(row.type_name, row.record["data"]):
        return
    done.selected_rows += 1
    fields, data = plan.spec.types[row.type_name], row.record["data"]
    if plan.mode is SeedMode.CLEAN:
        if fields.target in data:
            del data[fields.target]
            row.is_changed = True
            done.cleaned_rows += 1
    elif plan.mode is not SeedMode.FILL_MISSING or data.get(fields.target) in (None, []):
        row.text = fields.text(row.type_name, data)


def _fill(plan: SeedPlan, rows: list[_Row]) -> None:
    texts = list(dict.fromkeys(row.text for row in rows if row.text is not None))
    vectors = required_provider().embed(texts, Task.DOCUMENT, plan.spec.dimension)
    found = dict(zip(texts, _shortest(vectors).tolist(), strict=True))
    for row in rows:
        assert row.text is not None
        assert row.type_name is not None
        row.record["data"][plan.spec.types[row.type_name].target] = found[row.text]
        row.is_changed = True


def _shortest(vectors: Vectors) -> npt.NDArray[np.float64]:
    """The numbers with the fewest digits that read back to the vectors."""
    numbers = vectors.astype(np.str_).astype(np.float64)
    return np.where(numbers.astype(np.float32) == vectors, numbers, vectors)


def _rows(path: Path, source: TextIO) -> Iterator[_Row]:
    for number, line in enumerate(source, 1):
        text = line.strip()
        if not text:
            continue
        try:
            record = parse_json(text)
        except JsonError as error:
            raise InputError(f"{path} line {number}: not JSON: {error}") from None
        type_name = record.get("type") if isinstance(record, dict) else None
        if type_name is not None and not isinstance(record.get("data"), dict):
            raise InputError(f"{path} line {number}: a row with a `type` has an object `data`")
        yield _Row(text, record, None if type_name is None else str(type_name))
