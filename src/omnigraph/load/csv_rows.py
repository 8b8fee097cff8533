"""CSV records to typed rows: parsed as columns of text, then converted as a plan says.

A record ends at a line end that is not between quotes. Quotes count only around a whole field, so
`12" pipe` is a field like any other: where every quote stands beside a delimiter, a line end or
another quote, the number of quotes before a line end tells whether it is inside; any other block is
parsed field by field. Blank lines are not records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pcsv

from omnigraph.limits import LOAD_BLOCK_BYTES, LOAD_RECORD_BYTES
from omnigraph.load.json_table import content_of, is_utf8
from omnigraph.load.json_text import BYTE_ORDER_MARK, MalformedRecord, Records
from omnigraph.load.records import Mask, Numbers, ParsedRecords, Problem, problem_at
from omnigraph.load.row_plan import RowPlan
from omnigraph.load.table_rows import TextCells, read_cells

Bytes = npt.NDArray[np.uint8]
_Mask = npt.NDArray[np.bool_]

_NEW_LINE, _RETURN = b"\n\r"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV text is written. Delimiter and quote are one ASCII character each."""

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null: tuple[str, ...] = ("",)
    list_separator: str | None = None


def read_columns(stream: BinaryIO, dialect: Dialect) -> tuple[str, ...]:
    """The names in the header, or `c1`, `c2`, … as many as the first record has fields.

    Raises `UnicodeDecodeError` for a header that is not UTF-8.
    """
    first = next(_blocks(stream, dialect), None)
    if first is None or not len(first.texts):
        return ()
    text = first.texts[0].as_py().decode().rstrip("\r\n")
    fields = next(csv.reader([text], delimiter=dialect.delimiter, quotechar=dialect.quote))
    if dialect.header:
        return tuple(fields)
    return tuple(f"c{number}" for number in range(1, len(fields) + 1))


def read_csv_records(stream: BinaryIO, dialect: Dialect) -> Iterator[Records]:
    """The records of a text in blocks of a few megabytes, without the header."""
    header = dialect.header
    for records in _blocks(stream, dialect):
        if not header:
            yield records
        elif records.count:
            header = False
            yield _without_first(records)


def _without_first(records: Records) -> Records:
    is_text = len(records.positions) > 0 and records.positions[0] == 0
    skipped = int(is_text)
    return Records(
        records.texts.slice(skipped),
        records.positions[skipped:] - 1,
        records.lines[1:],
        tuple(
            MalformedRecord(_unparsable(m.problem.position() - 1), m.raw)
            for m in records.malformed[1 - skipped :]
        ),
    )


def _blocks(stream: BinaryIO, dialect: Dialect) -> Iterator[Records]:
    held = stream.read(LOAD_BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK)
    line, wanted = 1, LOAD_BLOCK_BYTES
    ended = False
    while not ended:
        more = stream.read(wanted)
        ended = not more
        held += more
        framed = frame_records(held, line, dialect, ended=ended)
        if not framed.used and len(held) >= LOAD_RECORD_BYTES:
            first = _LINE_END.search(held)
            cut = first.end() if first else len(held)
            framed = frame_records(held[:cut], line, dialect, ended=True)
        if framed.records.count:
            yield framed.records
        # Nothing complete in it: read as much again, so that a long record is not framed for ever.
        wanted = LOAD_BLOCK_BYTES if framed.used else max(len(held), LOAD_BLOCK_BYTES)
        line += framed.line_ends
        held = held[framed.used :]


@dataclass(frozen=True, slots=True)
class Framed:
    """The records a block of text begins with, and how many of its bytes and line ends they take."""

    records: Records
    used: int
    line_ends: int


def frame_records(data: bytes, first_line: int, dialect: Dialect, *, ended: bool) -> Framed:
    """The records of a block of text that begins with one.

    When more of the text follows, a record that lacks its end is left for the next block.
    """
    if ended and data and data[-1] not in (_NEW_LINE, _RETURN):
        data += b"\n"
    content = np.frombuffer(data, np.uint8)
    breaks = line_ends(content, ended=ended)
    outside = outside_quotes(content, breaks, dialect)
    malformed: list[int] = []
    if outside is None:
        ends, malformed = _field_by_field(data, dialect, ended=ended)
    else:
        ends = breaks[outside]
        if ended and len(breaks) and not outside[-1]:
            ends, malformed = _field_by_field(data, dialect, ended=True)
    used = int(ends[-1]) + 1 if len(ends) else 0
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
    lines = first_line + np.searchsorted(breaks, starts)
    filled = ~is_blank(content[starts])
    good = filled.copy()
    good[malformed] = False
    offsets = pa.py_buffer(np.concatenate([[0], ends + 1]).astype(np.int32))
    texts = pa.Array.from_buffers(pa.binary(), len(ends), [None, offsets, pa.py_buffer(data)])
    number = np.cumsum(filled) - 1
    records = Records(
        texts if good.all() else texts.filter(pa.array(good)),
        number[good],
        lines[filled],
        tuple(
            MalformedRecord(_unparsable(int(number[row])), _shown(texts[row].as_py()))
            for row in malformed
        ),
    )
    return Framed(records, used, int(np.searchsorted(breaks, used)))


def line_ends(content: Bytes, *, ended: bool) -> Numbers:
    """The last byte of every line end: `\\n`, `\\r\\n` or `\\r` alone."""
    is_end: _Mask = content == _NEW_LINE
    returns = np.flatnonzero(content == _RETURN)
    if len(returns):
        following = np.append(content, _NEW_LINE if not ended else 0)[returns + 1]
        is_end[returns[following != _NEW_LINE]] = True
    return np.flatnonzero(is_end).astype(np.int64)


def is_blank(first: Bytes) -> _Mask:
    """Which records, by their first bytes, are blank lines."""
    blank: _Mask = (first == _NEW_LINE) | (first == _RETURN)
    return blank


def quotes_in(content: Bytes, dialect: Dialect) -> Numbers:
    """Where the quotes are."""
    return np.flatnonzero(content == ord(dialect.quote))


def outside_quotes(
    content: Bytes, breaks: Numbers, dialect: Dialect, *, begins_inside: bool = False
) -> _Mask | None:
    """Which line ends are outside of quotes; None when quotes stand where only fields tell.

    The content begins outside of quotes unless said otherwise.
    """
    quotes, before = quotes_in(content, dialect), int(begins_inside)
    borders = np.zeros(256, np.bool_)
    borders[[ord(dialect.delimiter), ord(dialect.quote), _NEW_LINE, _RETURN]] = True
    if len(quotes):
        padded = np.concatenate([[_NEW_LINE], content, [_NEW_LINE]])
        opening, closing = quotes[before::2], quotes[1 - before :: 2]
        if not borders[padded[opening]].all() or not borders[padded[closing + 2]].all():
            return None
    outside: _Mask = (np.searchsorted(quotes, breaks) + before) % 2 == 0
    return outside


@cache
def _record_pattern(delimiter: str, quote: str) -> re.Pattern[bytes]:
    mark, stop = re.escape(quote.encode()), re.escape(delimiter.encode())
    rest = rb"[^%s\r\n]*+" % stop
    field = rb"(?:%s(?:[^%s]|%s%s)*+%s%s|(?!%s)%s)" % (
        *(mark, mark, mark, mark, mark, rest),
        *(mark, rest),
    )
    return re.compile(rb"%s(?:%s%s)*+(?:\r\n|\n|\r)" % (field, stop, field))


def _field_by_field(data: bytes, dialect: Dialect, *, ended: bool) -> tuple[Numbers, list[int]]:
    """The last byte of every record, and those records that have no end."""
    pattern = _record_pattern(dialect.delimiter, dialect.quote)
    ends: list[int] = []
    malformed: list[int] = []
    start = 0
    while start < len(data):
        match = pattern.match(data, start)
        if match is None and not ended:
            break
        if match is None:
            # Where it was meant to end is unknown; parsing goes on with the next line.
            match = _LINE_END.search(data, start)
            assert match is not None, "a text that has ended has a line end"
            malformed.append(len(ends))
        elif match.end() == len(data) and data[-1] == _RETURN and not ended:
            break
        start = match.end()
        ends.append(start - 1)
    return np.array(ends, np.int64), malformed


def _unparsable(position: int) -> Problem:
    return problem_at(position, "bad_record", "a quoted field has no end")


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape").rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class CsvReader:
    """Reads records with the given columns; a value that tasks can share."""

    plan: RowPlan
    names: tuple[str, ...]
    dialect: Dialect
    patches: bool = False

    def read(self, records: Records) -> ParsedRecords:
        """The rows and problems of a block of a CSV text."""
        parsed = ParsedRecords(records.count, records.lines)
        parsed.problems += (malformed.problem for malformed in records.malformed)
        texts, positions = records.texts, records.positions
        if not is_utf8(texts):
            texts, positions = _without_other_text(texts, positions, parsed)
        batch, positions = self._parse(texts, positions, parsed)
        if batch.num_rows:
            cells = TextCells(self.dialect.list_separator)
            given: dict[str, Mask] | None = {} if self.patches else None
            parsed.rows.append(read_cells(self.plan, batch, positions, cells, given))
        return parsed

    def _parse(
        self, texts: pa.Array, positions: Numbers, parsed: ParsedRecords
    ) -> tuple[pa.RecordBatch, Numbers]:
        """The columns of the plan as text, and the records that have all of their fields."""
        wanted = self.plan.sources()
        ragged: list[pcsv.InvalidRow] = []

        def skip(row: pcsv.InvalidRow) -> str:
            ragged.append(row)
            return "skip"

        content = content_of(texts)
        if not content.size:
            return pa.RecordBatch.from_pylist([], pa.schema([])), positions[:0]
        # Columns go by number: a name may be empty, or stand twice where it is not asked for.
        numbers = {name: f"{number}" for number, name in enumerate(self.names)}
        table = pcsv.read_csv(
            pa.BufferReader(content),
            read_options=pcsv.ReadOptions(
                use_threads=False,
                block_size=content.size + 1,
                column_names=[f"{number}" for number in range(len(self.names))],
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=self.dialect.delimiter,
                quote_char=self.dialect.quote,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types={numbers[name]: pa.utf8() for name in wanted},
                include_columns=[numbers[name] for name in wanted],
                null_values=list(self.dialect.null),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
        kept = np.ones(len(positions), np.bool_)
        for row in ragged:
            kept[row.number - 1] = False
            expected, found = _fields(len(self.names)), row.actual_columns
            problem = f"expected {expected}, got {found}"
            position = int(positions[row.number - 1])
            parsed.problems.append(problem_at(position, "bad_record", problem))
        columns = [column.combine_chunks() for column in table.columns]
        batch = pa.RecordBatch.from_arrays(columns, names=wanted)
        assert batch.num_rows == kept.sum(), "records were framed as Arrow reads them"
        return batch, positions[kept]


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _without_other_text(
    texts: pa.Array, positions: Numbers, parsed: ParsedRecords
) -> tuple[pa.Array, Numbers]:
    """The records that are UTF-8; the others become problems."""
    good = np.array([is_utf8(texts.slice(row, 1)) for row in range(len(texts))], np.bool_)
    for position in positions[~good].tolist():
        parsed.problems.append(problem_at(position, "bad_record", "invalid UTF-8"))
    return texts.filter(pa.array(good)), positions[good]
