"""JSON text to Python values, one at a time: what is accepted, and where reading failed.

This module decides what counts as JSON. Arrow's reader (`omnigraph.load.json_table`) takes the same texts
faster, and leaves every text it cannot take to this one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from omnigraph.limits import MAX_JSON_NESTING

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

    def place_in(self, text: str, start: int) -> tuple[int, int]:
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
