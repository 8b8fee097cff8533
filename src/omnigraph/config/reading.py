"""Reads a configuration file into sections, whose values are checked with line and column.

A section knows its file and its keys, so that every refusal names the place. Unknown keys are collected
as warnings where the format asks for it. Tests: tests/unit/config/test_reading.py.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import ConfigFileError
from omnigraph.limits import MAX_CONFIG_BYTES

if TYPE_CHECKING:
    from omnigraph.documents import KeyPath, Place

T = TypeVar("T", bound=str)


def read_config_text(path: Path, error: type[ConfigFileError]) -> str | None:
    """The text of a file, or None if there is none. Raises `error`."""
    content = read_config_bytes(path, error)
    return None if content is None else decoded(content, path, error)


def decoded(content: bytes, path: Path, error: type[ConfigFileError]) -> str:
    """The text in the content of a file. Raises `error`."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise error(str(path), "it is not UTF-8 text", line) from None


def read_config_bytes(
    path: Path, error: type[ConfigFileError], *, is_private: bool = False
) -> bytes | None:
    """The content of a file, or None if there is none. Raises `error`.

    A private file is refused when other users can read or write it.
    """
    try:
        # Opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise error(str(path), (problem.strerror or "unreadable").lower()) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise error(str(path), "it is not a regular file")
        if is_private and mode & 0o077:
            raise error(
                str(path),
                f"other users can access it (mode {stat.S_IMODE(mode):04o}); run `chmod 600 {path}`",
            )
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_CONFIG_BYTES:
        raise error(str(path), f"it has more than {MAX_CONFIG_BYTES // 1024} KiB")
    return content


@contextmanager
def exclusive(folder: Path, error: type[ConfigFileError]) -> Iterator[None]:
    """Create a private folder if it is missing, and keep other processes from changing its files."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as problem:
        raise error(str(folder), (problem.strerror or "unusable").lower()) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Section:
    """The keys and values under one key of a file, or of the whole file."""

    file: Path
    values: Mapping[str, object]
    path: KeyPath
    places: Mapping[KeyPath, Place]
    error: type[ConfigFileError]
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of_text(cls, text: str, file: Path, error: type[ConfigFileError]) -> Section:
        """The document in a text. Raises `error`."""
        # Most people have no such file, and every command would wait for YAML.
        from omnigraph.documents import DocumentError, parse_located

        try:
            document = parse_located(text)
        except DocumentError as problem:
            place = problem.place
            raise error(str(file), str(problem), *(() if place is None else place)) from None
        whole = cls(file, {}, (), document.places, error)
        return whole._under(document.value, ())

    def section(self, key: str) -> Section:
        """The section under a key; an empty one if the key is missing."""
        return self._under(self.values.get(key), (*self.path, key))

    def sections(self, key: str) -> Iterator[tuple[str, Section]]:
        """The named sections under a key."""
        named = self.section(key)
        for name in named.values:
            yield name, named.section(name)

    def text(self, key: str) -> str | None:
        """A text that is not blank."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool | int | float):
            raise self.wrong(key, "must be text; put it in quotes")
        if not isinstance(value, str):
            raise self.wrong(key, "must be text")
        if not value.strip():
            raise self.wrong(key, "must not be blank")
        return value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "must be a list of texts")
        return tuple(value)

    def choice(self, key: str, words: Iterable[T]) -> T | None:
        """One of some words."""
        value = self.values.get(key)
        if value is None:
            return None
        for word in words:
            if value == word:
                return word
        raise self.wrong(key, f"must be one of {', '.join(words)}")

    def count(self, key: str) -> int | None:
        """A whole number above 0."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(key, "must be a whole number above 0")
        return value

    def switch(self, key: str, default: bool) -> bool:
        """`true` or `false`."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def warn_unknown(self, known: Iterable[str]) -> None:
        """Note every key that is not known."""
        for key in self.values:
            if key not in known:
                hint = did_you_mean(key, known)
                message = f"unknown key {self.name_of(key)}; ignored"
                self.warn(key, f"{message}; {hint}" if hint else message)

    def warn(self, key: str, message: str) -> None:
        """Note something about a key."""
        place = self.places.get((*self.path, key))
        where = f"{self.file}:{place.line}" if place else str(self.file)
        self.warnings.append(f"{where}: {message}")

    def wrong(self, key: str | None, problem: str) -> ConfigFileError:
        """The error for the value of a key, or for the whole section."""
        path = self.path if key is None else (*self.path, key)
        name = ".".join(map(str, path)) or "the document"
        return self.error(str(self.file), f"{name} {problem}", *self.places.get(path, ()))

    def name_of(self, key: str) -> str:
        """A key with those above it, as in `servers.prod.url`."""
        return ".".join(map(str, (*self.path, key)))

    def _under(self, value: object, path: KeyPath) -> Section:
        found = replace(self, values={}, path=path)
        if value is None:
            return found
        if not isinstance(value, dict):
            raise found.wrong(None, "must have keys and values")
        return replace(found, values=value)
