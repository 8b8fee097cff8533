"""Reads schema and query files as text, for the compiler, which never opens a file.

Tests: tests/unit/cli/test_source_files.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from omnigraph.errors import InputError, SourceUnreadable
from omnigraph.language.syntax import Source
from omnigraph.limits import MAX_SOURCE_BYTES

_BOM = "\ufeff"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_source(path: str | Path) -> Source:
    """The text of a file; the source is named as the path was given.

    Raises `SourceUnreadable`.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            # One byte more than the limit detects a file that is too large, even in a pipe.
            data = file.read(MAX_SOURCE_BYTES + 1)
    except FileNotFoundError:
        raise SourceUnreadable(name, "no such file", "check the path") from None
    except IsADirectoryError:
        raise SourceUnreadable(name, "is a directory", "name a file in it") from None
    except PermissionError:
        raise SourceUnreadable(
            name, "permission denied", "make the file readable for this user"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceUnreadable(name, reason.lower(), "check the path") from None
    return decode_source(name, data)


def schema_source(schema: str | Path) -> Source:
    """A schema given as text or as the path of a `.pg` file."""
    return _text_or_file("schema", schema, ".pg")


def query_source(query: str | Path) -> Source:
    """Queries given as text or as the path of a `.gq` file."""
    return _text_or_file("query", query, ".gq")


def _text_or_file(what: str, given: object, suffix: str) -> Source:
    """A `Path` is a file; a string is text, unless it is one line ending in the suffix."""
    if isinstance(given, Path):
        return read_source(given)
    if not isinstance(given, str):
        kind = "None" if given is None else type(given).__name__
        raise InputError(f"{what} must be text or the path of a {suffix} file, not {kind}")
    if given.endswith(suffix) and "\n" not in given:
        return read_source(given)
    return Source(f"<{what}>", given)


def decode_source(name: str, data: bytes) -> Source:
    """The text of a file's or pipe's bytes. Raises `SourceUnreadable`."""
    if len(data) > MAX_SOURCE_BYTES:
        raise SourceUnreadable(
            name,
            f"larger than {MAX_SOURCE_BYTES // 1024 // 1024} MiB",
            "schema and query files are far smaller; is this a data file?",
        )
    if data.startswith(_UTF16_BOMS):
        raise SourceUnreadable(name, "is UTF-16 text", "save it as UTF-8")
    if b"\0" in data:
        raise SourceUnreadable(
            name,
            f"holds a NUL byte {_location(data, data.index(0))}",
            "it is a binary file, or text in an encoding other than UTF-8",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SourceUnreadable(
            name, f"is not UTF-8 {_location(data, error.start)}", "save it as UTF-8"
        ) from None
    return Source(name, text.removeprefix(_BOM))


def _location(data: bytes, offset: int) -> str:
    line = data.count(b"\n", 0, offset) + 1
    return f"at byte {offset} (line {line})"
