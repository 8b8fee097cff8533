"""What every error code means. The texts are data: one TOML file per family of codes.

Importing this package reads the files, so only `omnigraph errors`, the generator of the reference
page (`python -m omnigraph.error_codes`) and tests import it. Tests: tests/docs/test_error_codes.py.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import msgspec

from omnigraph.json_structs import described

_CODE: Final = re.compile(r"[STLQ]\d+|OG-[A-Z]+-\d{3}")
_TEXTS: Final = files(__name__)


class ErrorCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A code and its explanation.

    `kind` is the category a caller branches on, as in `OmnigraphError.kind`. `example` is the
    smallest source text that causes the code.
    """

    code: str
    kind: str
    title: str
    explanation: str
    example: str | None = None

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise ValueError(f"'{self.code}' is not a valid error code")
        for text in (self.kind, self.title, self.explanation, self.example):
            if text is not None and (not text or text != text.strip()):
                raise ValueError(f"{self.code}: a text is empty or has surrounding whitespace")

    @property
    def natural_key(self) -> tuple[tuple[str, int], ...]:
        """Sorts T2 before T10."""
        parts = re.findall(r"(\D+)(\d*)", self.code)
        return tuple((word, int(number or 0)) for word, number in parts)


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The codes of one section of the reference page. `language` is that of their examples."""

    title: str
    introduction: str
    codes: tuple[ErrorCode, ...]
    language: str | None = None


def parse_family(text: str) -> Family:
    """One data file. Raises `ValueError` for malformed TOML and for unknown or missing fields."""
    return msgspec.convert(tomllib.loads(text), described(Family))


def index_codes(codes: Iterable[ErrorCode]) -> Mapping[str, ErrorCode]:
    """Map each code to its entry. Raises `ValueError` if a code has two entries."""
    found: dict[str, ErrorCode] = {}
    for code in codes:
        if code.code in found:
            raise ValueError(f"{code.code} is registered twice")
        found[code.code] = code
    return MappingProxyType(found)


def _read(name: str) -> str:
    return (_TEXTS / name).read_text(encoding="utf-8")


EXAMPLE_SCHEMA: Final = _read("example.pg")
"""The schema of the query examples."""

FAMILIES: Final = tuple(
    parse_family(_read(f"{name}.toml"))
    for name in ("schema", "query", "types", "lint", "migration", "exceptions")
)
"""In the order of the reference page; each family is in natural order."""

REGISTRY: Final = index_codes(code for family in FAMILIES for code in family.codes)
