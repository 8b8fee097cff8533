"""Vectors for the rows of a file, before any graph has them: JSON lines in, JSON lines out.

The output takes its place only when all of it is written. Tests: tests/unit/embed/test_seed_files.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import numpy.typing as npt

from omnigraph.embed.configured import required_provider
from omnigraph.embed.gemini import GEMINI_MODEL
from omnigraph.embed.provider import Task, Vectors
from omnigraph.embed.seed_plan import SeedMode, SeedPlan
from omnigraph.errors import InputError
from omnigraph.json_text import JsonError, parse_json

_ROWS: Final = 512
"""Rows that are held at a time."""


@dataclass(slots=True)
class SeedSummary:
    """What was done with a file."""

    input: str
    output: str
    mode: str
    dimension: int
    rows: int = 0
    selected_rows: int = 0
    embedded_rows: int = 0
    cleaned_rows: int = 0
    model: str = GEMINI_MODEL

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.input,
            "output": self.output,
            "rows": self.rows,
            "selected_rows": self.selected_rows,
            "embedded_rows": self.embedded_rows,
            "cleaned_rows": self.cleaned_rows,
            "mode": self.mode,
            "dimension": self.dimension,
            "model": self.model,
        }


@dataclass(slots=True)
class _Row:
    """One line. Whatever is not touched is written as it was read."""

    line: str
    record: dict[str, Any]
    type_name: str | None
    text: str | None = None
    is_changed: bool = False

    def written(self) -> str:
        return json.dumps(self.record, ensure_ascii=False) if self.is_changed else self.line


def embed_seed(plan: SeedPlan) -> SeedSummary:
    """Run a plan. Raises `InputError` or `EmbeddingError`; then the output is what it was."""
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
    while some := list(islice(rows, _ROWS)):
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
    """The numbers whose text has the fewest digits that read back to the vectors."""
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
