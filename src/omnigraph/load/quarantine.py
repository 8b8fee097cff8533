"""Quarantine: the invalid records of a load, their text, and the files that report them.

Raw texts are not kept while a load is read. The few that are wanted are fetched by reading their
split once more.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import cut_values
from omnigraph.errors import InputError
from omnigraph.language.values import format_date, format_datetime
from omnigraph.load.json_text import Records, read_blocks
from omnigraph.load.record_validation import RECORD, SOURCE
from omnigraph.load.records import Location, Problem
from omnigraph.load.row_plan import Day, Moment
from omnigraph.load.sources import (
    CsvSource,
    JsonSource,
    Source,
    TableSource,
    csv_records,
    table_batches,
)
from omnigraph.load.splits import Split
from omnigraph.load.table_rows import python_value
from omnigraph.rows.columns import BASE64


@dataclass(frozen=True, slots=True)
class BadRecord:
    """An invalid record, its text and its problems."""

    source: str
    record: int
    line: int | None
    raw: str
    problems: tuple[Problem, ...]

    def to_json(self) -> dict[str, Any]:
        """The object `bad.jsonl` has for this record."""
        document: dict[str, Any] = {"source": self.source, "record": self.record}
        if self.line is not None:
            document["line"] = self.line
        document["errors"] = [_error(problem) for problem in self.problems]
        document["raw"] = self.raw
        return document


def _error(problem: Problem) -> dict[str, Any]:
    document = {"code": problem.code, "message": cut_values(problem.message)}
    return document if problem.property is None else document | {"property": problem.property}


def without_records(rows: pa.Table, bad: Iterable[Location]) -> pa.Table:
    """Located rows without those of the given records."""
    mask = np.zeros(rows.num_rows, np.bool_)
    sources, records = rows.column(SOURCE).to_numpy(), rows.column(RECORD).to_numpy()
    by_source: dict[int, list[int]] = {}
    for location in bad:
        by_source.setdefault(location.source, []).append(location.record)
    for source, numbers in by_source.items():
        mask |= (sources == source) & np.isin(records, numbers)
    return rows.filter(pa.array(~mask)) if mask.any() else rows


def bad_records(
    splits: Sequence[Split], names: Sequence[str], problems: Iterable[Problem]
) -> tuple[BadRecord, ...]:
    """Every invalid record once, in order, with its text and its problems.

    Only splits with such records are read. `names` are those of the sources.
    """
    by_record: dict[Location, list[Problem]] = {}
    for problem in problems:
        for location in dict.fromkeys(problem.bad_records()):
            by_record.setdefault(location, []).append(problem)
    texts: dict[Location, str] = {}
    ordered = sorted(by_record)
    for number, split in enumerate(splits):
        before, end = split.records_before, None
        if number + 1 < len(splits) and splits[number + 1].number == split.number:
            end = splits[number + 1].records_before
        wanted = {
            location.record - before: location
            for location in ordered
            if location.source == split.number
            and location.record > before
            and (end is None or location.record <= end)
        }
        for record, raw in _raw_records(split.source, wanted):
            texts[wanted[record]] = raw
    return tuple(
        BadRecord(names[at.source], at.record, at.line, texts[at], tuple(by_record[at]))
        for at in ordered
    )


def report(load_id: str, records: int, bad: Sequence[BadRecord]) -> dict[str, Any]:
    """The summary `report.json` holds."""
    codes = Counter(problem.code for record in bad for problem in record.problems)
    return {
        "load_id": load_id,
        "records": records,
        "quarantined": len(bad),
        "errors": dict(sorted(codes.items())),
    }


def write_quarantine(folder: Path, load_id: str, records: int, bad: Sequence[BadRecord]) -> None:
    """Keep the invalid records. Raises `InputError` when the folder cannot be written."""
    target = folder / load_id
    lines = (json.dumps(record.to_json(), ensure_ascii=False) for record in bad)
    summary = json.dumps(report(load_id, records, bad), indent=2, ensure_ascii=False)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / "bad.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (target / "report.json").write_text(f"{summary}\n", encoding="utf-8")
    except OSError as error:
        message = f"the quarantine folder '{target}' cannot be written: {error.strerror}"
        raise InputError(f"{message}; nothing was loaded, choose another folder") from error


def _raw_records(source: Source, wanted: Mapping[int, Location]) -> Iterator[tuple[int, str]]:
    if not wanted:
        return
    if isinstance(source, JsonSource):
        with source.open() as stream:
            blocks = (block.read_by_value() for block in read_blocks(stream))
            yield from _raw_texts(blocks, wanted)
    elif isinstance(source, CsvSource):
        yield from _raw_texts(csv_records(source), wanted)
    else:
        yield from _raw_rows(source, wanted)


def _raw_texts(blocks: Iterable[Records], wanted: Container[int]) -> Iterator[tuple[int, str]]:
    before = 1
    for records in blocks:
        for malformed in records.malformed:
            if before + malformed.problem.position() in wanted:
                yield before + malformed.problem.position(), _writable(malformed.raw)
        for row, position in enumerate(records.positions.tolist()):
            if before + position in wanted:
                raw = records.texts[row].as_py().decode("utf-8", "surrogateescape")
                yield before + position, _writable(raw).rstrip()
        before += records.count


def _writable(raw: str) -> str:
    """Text with bytes that are not UTF-8 made visible."""
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _raw_rows(source: TableSource, wanted: Iterable[int]) -> Iterator[tuple[int, str]]:
    before = 1
    for batch in table_batches(source, all_columns=True):
        for record in wanted:
            if before <= record < before + batch.num_rows:
                row = batch.slice(record - before, 1)
                cells = {
                    name: _plain_json(python_value(column[0]))
                    for name, column in zip(row.schema.names, row.columns, strict=True)
                }
                yield record, compact_json(cells)
        before += batch.num_rows


def _plain_json(value: Any) -> Any:
    """A cell for a reader: what JSON does not have is written as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case list():
            return [_plain_json(item) for item in value]
        case Day(days):
            return format_date(days)
        case Moment(millis):
            return format_datetime(millis)
        case bytes():
            return BASE64 + base64.b64encode(value).decode()
        case _:
            return str(value)
