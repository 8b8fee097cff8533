"""Reading a JSON stream: values separated by white space or nothing, numbered from 1.

After malformed text reading goes on at the next line that begins with `{`, so that one slip does
not hide the problems behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.testing.outcome import Json

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_OBJECT_LINE = re.compile(r"^\{", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the stream with its text; `problem` says why there is no value."""

    number: int
    line: int
    raw: str
    value: Json = None
    problem: str | None = None


def read_records(text: str) -> Iterator[Record]:
    """Every record of a stream, malformed ones included."""
    number, position = 0, _skip(text, 0)
    while position < len(text):
        number += 1
        line = text.count("\n", 0, position) + 1
        try:
            value, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            end = _resume(text, max(error.pos, position + 1))
            yield Record(number, line, text[position:end].rstrip(), problem=error.msg)
        except (ValueError, RecursionError) as error:
            end = _resume(text, position + 1)
            yield Record(number, line, text[position:end].rstrip(), problem=str(error))
        else:
            yield Record(number, line, text[position:end], value)
        position = _skip(text, end)


def _skip(text: str, position: int) -> int:
    match = _WHITE_SPACE.match(text, position)
    return match.end() if match else position


def _resume(text: str, position: int) -> int:
    match = _OBJECT_LINE.search(text, position)
    return match.start() if match else len(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
