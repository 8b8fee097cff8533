"""Records that a load sets aside: which they are, their text, and what is written about them.

Raw texts are not kept while a load is read. The few that are wanted are fetched by reading their
source once more.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import cut_values
from omnigraph.language.temporal import format_date, format_datetime
from omnigraph.load.json_text import Records, read_stretches
from omnigraph.load.record_validation import RECORD, SOURCE
from omnigraph.load.records import Finding, Place
from omnigraph.load.sources import CsvFile, JsonFile, JsonObjects, JsonText, Source, TableSource
from omnigraph.load.splits import Piece
from omnigraph.load.table_rows import python_value
from omnigraph.load.values import Day, Moment
from omnigraph.rows.values import BASE64


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record with its text and all that is wrong with it."""

    source: str
    record: int
    line: int | None
    raw: str
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        """The object `bad.jsonl` has for this record."""
        document: dict[str, Any] = {"source": self.source, "record": self.record}
        if self.line is not None:
            document["line"] = self.line
        document["errors"] = [_error(finding) for finding in self.findings]
        document["raw"] = self.raw
        return document


def _error(finding: Finding) -> dict[str, Any]:
    document = {"code": finding.code, "message": cut_values(finding.message)}
    return document if finding.property is None else document | {"property": finding.property}


def split_rows(rows: pa.Table, bad: Iterable[Place]) -> tuple[pa.Table, pa.Table]:
    """The good rows of a table of placed rows, and the bad ones."""
    mask = np.zeros(rows.num_rows, np.bool_)
    sources, records = rows.column(SOURCE).to_numpy(), rows.column(RECORD).to_numpy()
    by_source: dict[int, list[int]] = {}
    for place in bad:
        by_source.setdefault(place.source, []).append(place.record)
    for source, numbers in by_source.items():
        mask |= (sources == source) & np.isin(records, numbers)
    if not mask.any():
        return rows, rows.slice(0, 0)
    return rows.filter(pa.array(~mask)), rows.filter(pa.array(mask))


def set_aside(
    pieces: Sequence[Piece], names: Sequence[str], findings: Iterable[Finding]
) -> tuple[BadRecord, ...]:
    """Every bad record once, in order, with its text and its findings.

    Only pieces with bad records are read. `names` are those of the sources.
    """
    blamed: dict[Place, list[Finding]] = {}
    for finding in findings:
        for place in dict.fromkeys(finding.bad_records()):
            blamed.setdefault(place, []).append(finding)
    texts: dict[Place, str] = {}
    ordered = sorted(blamed)
    for number, piece in enumerate(pieces):
        before, end = piece.records_before, None
        if number + 1 < len(pieces) and pieces[number + 1].number == piece.number:
            end = pieces[number + 1].records_before
        wanted = {
            place.record - before: place
            for place in ordered
            if place.source == piece.number
            and place.record > before
            and (end is None or place.record <= end)
        }
        for record, raw in _raw_records(piece.source, wanted):
            texts[wanted[record]] = raw
    return tuple(
        BadRecord(names[place.source], place.record, place.line, texts[place], tuple(blamed[place]))
        for place in ordered
    )


def report(load_id: str, records: int, bad: Sequence[BadRecord]) -> dict[str, Any]:
    """The summary `report.json` holds."""
    codes: dict[str, int] = {}
    for record in bad:
        for finding in record.findings:
            codes[finding.code] = codes.get(finding.code, 0) + 1
    return {
        "load_id": load_id,
        "records": records,
        "quarantined": len(bad),
        "errors": dict(sorted(codes.items())),
    }


def _raw_records(source: Source, wanted: Mapping[int, Place]) -> Iterator[tuple[int, str]]:
    if not wanted:
        return
    if isinstance(source, JsonText | JsonFile | JsonObjects):
        text = source.stream if isinstance(source, JsonObjects) else source
        with text.open() as stream:
            pieces = (stretch.read_by_value() for stretch in read_stretches(stream))
            yield from _raw_texts(pieces, wanted)
    elif isinstance(source, CsvFile):
        yield from _raw_texts(source.records(), wanted)
    else:
        yield from _raw_rows(source, wanted)


def _raw_texts(pieces: Iterable[Records], wanted: Mapping[int, Place]) -> Iterator[tuple[int, str]]:
    before = 1
    for records in pieces:
        for malformed in records.malformed:
            if before + malformed.position in wanted:
                yield before + malformed.position, _writable(malformed.raw)
        for place, position in enumerate(records.positions.tolist()):
            if before + position in wanted:
                raw = records.texts[place].as_py().decode("utf-8", "surrogateescape")
                yield before + position, _writable(raw).rstrip()
        before += records.count


def _writable(raw: str) -> str:
    """Text with bytes that are no UTF-8 made visible."""
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _raw_rows(source: TableSource, wanted: Mapping[int, Place]) -> Iterator[tuple[int, str]]:
    before = 1
    for batch in source.batches(source.all_columns()):
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
    """A cell for the eyes of a person: what JSON does not have is written as text."""
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
