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

from tests.support.outcome import Json

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_OBJECT_LINE = re.compile(r"^\{", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the stream with its text; `problem` says why there is no value.

    `repeated` is a key that an object of the value has twice.
    """

    number: int
    line: int
    raw: str
    value: Json = None
    problem: str | None = None
    repeated: str | None = None


def read_records(text: str) -> Iterator[Record]:
    """Every record of a stream, malformed ones included."""
    number, position = 0, _skip(text, 0)
    while position < len(text):
        number += 1
        line = text.count("\n", 0, position) + 1
        repeated: list[str] = []
        try:
            value, end = _decoder(repeated).raw_decode(text, position)
        except json.JSONDecodeError as error:
            end = _resume(text, max(error.pos, position + 1))
            problem = f"{error.msg} (line {error.lineno}, column {error.colno})"
            yield Record(number, line, text[position:end].rstrip(), problem=problem)
        except _Constant as error:
            end = _resume(text, position + 1)
            at = json.JSONDecodeError("", text, _unquoted(text, position, error.name))
            problem = f"{error.name} is not a JSON value (line {at.lineno}, column {at.colno})"
            yield Record(number, line, text[position:end].rstrip(), problem=problem)
        except RecursionError:
            end = _resume(text, position + 1)
            column = position - text.rfind("\n", 0, position)
            problem = f"nested too deeply (line {line}, column {column})"
            yield Record(number, line, text[position:end].rstrip(), problem=problem)
        else:
            first = repeated[0] if repeated else None
            yield Record(number, line, text[position:end], value, repeated=first)
        position = _skip(text, end)


def _skip(text: str, position: int) -> int:
    match = _WHITE_SPACE.match(text, position)
    return match.end() if match else position


def _resume(text: str, position: int) -> int:
    match = _OBJECT_LINE.search(text, position)
    return match.start() if match else len(text)


class _Constant(Exception):
    """A word that Python reads as a number and JSON does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


def _decoder(repeated: list[str]) -> json.JSONDecoder:
    """Reads a value, and notes the keys that one of its objects has twice."""

    def joined(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        keys = [key for key, _ in pairs]
        repeated.extend(key for n, key in enumerate(keys) if key in keys[:n])
        return dict(pairs)

    return json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=joined)


def _unquoted(text: str, position: int, word: str) -> int:
    """Where a word stands outside of strings."""
    quoted = False
    while not text.startswith(word, position) or quoted:
        if quoted and text[position] == "\\":
            position += 1
        elif text[position] == '"':
            quoted = not quoted
        position += 1
    return position
