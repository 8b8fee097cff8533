"""All codes in one mapping, family by family, each family in natural order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from omnigraph.error_codes.entry import ErrorCode
from omnigraph.error_codes.exceptions import EXCEPTION_CODES
from omnigraph.error_codes.graphs import GRAPH_CODES
from omnigraph.error_codes.migration import MIGRATION_CODES
from omnigraph.error_codes.query import LINT_CODES, QUERY_CODES
from omnigraph.error_codes.schema import SCHEMA_CODES
from omnigraph.error_codes.type_checker import TYPE_CODES


@dataclass(frozen=True, slots=True)
class Family:
    """Codes that belong together. `language` is that of their examples."""

    title: str
    introduction: str
    codes: tuple[ErrorCode, ...]
    language: str | None = None


FAMILIES: Final = (
    Family(
        "Schema files",
        "Raised while a schema (`.pg`) is read. The first mistake is reported, and mistakes in the "
        "grammar come before all others.",
        SCHEMA_CODES,
        "pg",
    ),
    Family(
        "Query files",
        "Raised while a query file (`.gq`) is read, before the schema is looked at.",
        QUERY_CODES,
        "gq",
    ),
    Family(
        "Queries against the schema",
        "Raised by the type checker. A query is checked from top to bottom and the first mistake "
        "ends the check; the other queries of the file are still checked by `omnigraph lint`.",
        TYPE_CODES,
        "gq",
    ),
    Family(
        "Lint",
        "Reported by `omnigraph lint` about a file as a whole.",
        LINT_CODES,
        "gq",
    ),
    Family(
        "Schema changes",
        "Attached to a change that cannot be made to a graph with data. In the examples the schema "
        "in the comment is the accepted one, the text below it the desired one. Unsupported changes "
        "without a code of their own carry `OG-S-001`.",
        MIGRATION_CODES,
        "pg",
    ),
    Family(
        "Exceptions",
        "Every exception class has a code of its own. An exception about source text also carries "
        "diagnostics, whose codes are those above.",
        tuple(sorted((*EXCEPTION_CODES, *GRAPH_CODES), key=lambda code: code.natural_key)),
    ),
)


def index_codes(codes: Iterable[ErrorCode]) -> Mapping[str, ErrorCode]:
    """The codes by name. Raises `ValueError` when two of them share one."""
    found: dict[str, ErrorCode] = {}
    for code in codes:
        if code.code in found:
            raise ValueError(f"{code.code} is registered twice")
        found[code.code] = code
    return MappingProxyType(found)


REGISTRY: Final = index_codes(code for family in FAMILIES for code in family.codes)
