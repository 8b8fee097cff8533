"""JSON text: what counts as a JSON value, and where the records of a stream begin and end.

Arrow's reader (`omnigraph.load.json_table`) takes the same texts faster, and leaves every text it cannot
take to `read_value`, which decides.

A stream is a sequence of JSON values with any white space, or none, between them. Reading it value
by value (`read_values`) is the rule and always right. Most streams have one object per line, and
for those cutting at line ends (`split_lines`) gives the same records much sooner: a line that begins
with `{` in its first column and ends with `}` cannot be continued by another one that does, because
between `}` and `{` JSON wants a comma or a colon, and a string cannot hold a line end. What is in
such a line, one record, several or a malformed one, is found when it is parsed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np
import pyarrow as pa

from omnigraph.limits import LOAD_BLOCK_BYTES, LOAD_RECORD_BYTES, MAX_JSON_NESTING
from omnigraph.load.records import Numbers, Problem, problem_at

_STRING: Final = r'"(?:[^"\\]|\\.)*+"'
_BRACKETS: Final = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_PAIR: Final = re.compile(rf"{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}")
_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")


class MalformedText(ValueError):
    """Text that is not a JSON value.

    `at` is the position of the problem, and `position` the one up to which the text was read.
    """

    def __init__(self, problem: str, at: int, position: int) -> None:
        super().__init__(problem)
        self.at = at
        self.position = position

    def offset_in(self, text: str, start: int) -> tuple[int, int]:
        """Line ends between the start of the value and the problem, and its column from 1."""
        return text.count("\n", start, self.at), self.at - text.rfind("\n", 0, self.at)


class _NotJson(ValueError):
    """A constant that Python reads and JSON does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not a JSON value")
        self.name = name


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJson(name)


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def read_value(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at a position, and where it ends. Raises `MalformedText`.

    Bytes that are not UTF-8 are expected as surrogate escapes. Of equal keys in an object the last one
    counts.
    """
    return _read(_DECODER, text, start)


def read_record(text: str) -> tuple[Any, int, str | None]:
    """As `read_value`, with the first key that an object of the value has twice, if there is one."""
    repeated: list[str] = []

    def joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.append(next(_repeated(pairs)))
        return found

    decoder = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=joined)
    value, end = _read(decoder, text, 0)
    return value, end, repeated[0] if repeated else None


def _repeated(pairs: list[tuple[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            yield key
        seen.add(key)


def _read(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Any, int]:
    try:
        value, end = decoder.raw_decode(text, start)
        _check(text, start, end, value)
    except json.JSONDecodeError as error:
        raise MalformedText(error.msg, error.pos, max(error.pos, start + 1)) from None
    except RecursionError:
        raise _too_deep(start) from None
    except _NotJson as error:
        at = _outside_strings(text, start, re.escape(error.name))
        raise MalformedText(str(error), at, start + 1) from None
    except MalformedText:
        raise
    except ValueError:
        # The one thing left that Python refuses: converting a longer text would take too long.
        digits = sys.get_int_max_str_digits()
        at = _outside_strings(text, start, rf"[0-9]{{{digits + 1}}}")
        raise MalformedText(f"a number has more than {digits:,} digits", at, start + 1) from None
    return value, end


def _too_deep(start: int) -> MalformedText:
    return MalformedText("nested too deeply", start, start + 1)


def _check(text: str, start: int, end: int, value: object) -> None:
    """Raises `MalformedText` for a text that reads well and still cannot be taken."""
    if text.count("{", start, end) + text.count("[", start, end) > MAX_JSON_NESTING:
        _check_nesting(text, start, end)
    raw = text[start:end]
    if raw.isascii():
        if "\\u" not in raw:
            return
    elif found := _ESCAPED_BYTE.search(raw):
        raise MalformedText("invalid UTF-8", start + found.start(), end)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        half = _HALF_PAIR.search(raw)
        at = start + half.start() if half else start
        raise MalformedText("half of a surrogate pair", at, end) from None


def _check_nesting(text: str, start: int, end: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text, start, end):
        if match.lastindex is not None:
            depth += 1 if match.lastindex == 1 else -1
            if depth > MAX_JSON_NESTING:
                raise _too_deep(start)


def _outside_strings(text: str, start: int, pattern: str) -> int:
    """Where the text has the pattern outside of strings."""
    for match in re.compile(rf"{_STRING}|({pattern})", re.DOTALL).finditer(text, start):
        if match.lastindex:
            return match.start()
    return start


BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHITE_SPACE: Final = re.compile(r"[ \t\r\n]*")
_OBJECT_LINE: Final = re.compile(r"^\{", re.MULTILINE)
_NEW_LINE, _RETURN, _BLANK, _TAB = b"\n\r \t"
_OPEN, _CLOSE = b"{}"


@dataclass(frozen=True, slots=True)
class MalformedRecord:
    """A record that cannot be parsed, and its text."""

    problem: Problem
    raw: str


@dataclass(frozen=True, slots=True)
class Records:
    """The texts of records in a block, numbered from 0 by position.

    `texts` ends each record with a line end; `positions` says which record each text is, as
    malformed ones have none. `lines` holds the line each record starts in.
    """

    texts: pa.Array
    positions: Numbers
    lines: Numbers
    malformed: tuple[MalformedRecord, ...] = ()

    @property
    def count(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stream, a few megabytes, that holds whole records only."""

    data: bytes
    first_line: int
    records: Records

    def read_by_value(self) -> Records:
        """The records as the rule has them."""
        records, _ = read_values(self.data, self.first_line, ended=True)
        return records


def read_blocks(stream: BinaryIO) -> Iterator[Block]:
    """The stream in blocks of a few megabytes, more only where a single record is longer."""
    held = stream.read(LOAD_BLOCK_BYTES)
    if held.startswith(BYTE_ORDER_MARK):
        held = held[len(BYTE_ORDER_MARK) :]
    line, wanted = 1, LOAD_BLOCK_BYTES
    ended = False
    while not ended:
        more = stream.read(wanted)
        ended = not more
        held += more
        # Cut before an object at the beginning of a line: whatever stands before it is complete,
        # unless a record is laid out so that one of its inner objects begins a line.
        cut = len(held) if ended else held.rfind(b"\n{", 1) + 1
        if cut == 0 and len(held) < LOAD_RECORD_BYTES:
            wanted = len(held)
            continue
        wanted = LOAD_BLOCK_BYTES
        data, rest = held[:cut] or held, held[cut:] if cut else b""
        records = split_lines(data, line)
        if records is not None:
            yield Block(data, line, records)
        else:
            over = len(held) >= LOAD_RECORD_BYTES
            records, used = read_values(data, line, ended=ended or over)
            if records.count:
                yield Block(data[:used], line, records)
            elif not ended:
                wanted = len(held)
            data, rest = data[:used], data[used:] + rest
        line += data.count(b"\n")
        held = rest


def split_lines(data: bytes, first_line: int) -> Records | None:
    """One record per line that is not blank; None unless all those lines look like objects."""
    if not data.endswith(b"\n"):
        data += b"\n"
    content = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(content == _NEW_LINE).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    last = ends - 1
    # A line may end in a few blanks or, from another system, in a carriage return.
    for _ in range(8):
        final = content[np.maximum(last, 0)]
        trailing = (final == _RETURN) | (final == _BLANK) | (final == _TAB)
        trailing &= last >= starts
        if not trailing.any():
            break
        last = last - trailing
    filled = last >= starts
    fits = (content[starts] == _OPEN) & (content[np.maximum(last, 0)] == _CLOSE)
    if not fits[filled].all():
        return None
    offsets = pa.py_buffer(np.concatenate([[0], ends + 1]).astype(np.int32))
    texts = pa.Array.from_buffers(pa.binary(), len(ends), [None, offsets, pa.py_buffer(data)])
    lines = np.arange(first_line, first_line + len(ends), dtype=np.int64)
    if not filled.all():
        texts, lines = texts.filter(pa.array(filled)), lines[filled]
    return Records(texts, np.arange(len(lines), dtype=np.int64), lines)


def read_values(data: bytes, first_line: int, *, ended: bool) -> tuple[Records, int]:
    """The records of a block, value by value, and how many of its bytes they take.

    After malformed text reading goes on at the next line that begins with `{`. When more of the
    stream follows, a record that lacks only its end is left for the next block.
    """
    text = data.decode("utf-8", "surrogateescape")
    texts: list[bytes] = []
    positions: list[int] = []
    lines: list[int] = []
    malformed: list[MalformedRecord] = []
    line, counted = first_line, 0
    start = _after_white_space(text, 0)
    while start < len(text):
        try:
            _, end = read_value(text, start)
        except MalformedText as error:
            if not ended and error.position >= len(text):
                break
            end = _next_object_line(text, error.position)
            raw = text[start:end].rstrip()
            offset = error.offset_in(text, start)
            problem = problem_at(len(lines), "invalid_json", str(error), offset=offset)
            malformed.append(MalformedRecord(problem, raw))
        else:
            texts.append(text[start:end].encode() + b"\n")
            positions.append(len(lines))
        line += text.count("\n", counted, start)
        counted = start
        lines.append(line)
        start = _after_white_space(text, end)
    records = Records(
        pa.array(texts, pa.binary()),
        np.array(positions, np.int64),
        np.array(lines, np.int64),
        tuple(malformed),
    )
    return records, len(text[:start].encode("utf-8", "surrogateescape"))


def _after_white_space(text: str, position: int) -> int:
    match = _WHITE_SPACE.match(text, position)
    return match.end() if match else position


def _next_object_line(text: str, position: int) -> int:
    match = _OBJECT_LINE.search(text, position)
    return match.start() if match else len(text)
