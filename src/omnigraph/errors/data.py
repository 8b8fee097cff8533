"""Errors about schemas that cannot change and data that breaks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from omnigraph.diagnostics import Diagnostic
from omnigraph.errors.base import OmnigraphError


class SchemaError(OmnigraphError):
    """A schema change that cannot be made."""

    code = "OG-S-000"
    kind = "bad_request"


class UnsupportedMigration(SchemaError):
    """The plan from the accepted to the desired schema contains an unsupported change.

    `diagnostic` points into the desired schema's text when the change has a place there.
    """

    code = "OG-S-001"
    category: ClassVar[str] = "migration"

    def __init__(self, message: str, diagnostic: Diagnostic | None = None) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.render() if diagnostic else message)


@dataclass(frozen=True, slots=True)
class BrokenQuery:
    """A query that a schema would break, and where; `name` is None for a file nobody can read."""

    name: str | None
    diagnostic: Diagnostic

    def __str__(self) -> str:
        what = "query file" if self.name is None else f"query '{self.name}'"
        return f"{what}: {self.diagnostic.render()}"


class QueriesBroken(SchemaError):
    """Queries that have to go on working do not fit the desired schema. Lists all of them."""

    code = "OG-S-002"

    def __init__(self, queries: Sequence[BrokenQuery]) -> None:
        self.queries = tuple(queries)
        count = "1 query does" if len(queries) == 1 else f"{len(queries)} queries do"
        listed = "\n".join(map(str, queries))
        advice = "change the queries first, or keep what they use"
        super().__init__(
            f"schema check: {count} not fit the new schema; {advice}\n{listed}",
        )


class ConstraintError(OmnigraphError):
    """Data that breaks a rule of the schema; nothing of the write is kept."""

    code = "OG-D-000"
    kind = "bad_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """One thing wrong with the input of a load.

    `record` counts from 1 in its source; it is None when no single record is to blame.
    """

    source: str | None
    record: int | None
    code: str
    message: str
    line: int | None = None
    type: str | None = None
    id: str | None = None
    property: str | None = None

    def __str__(self) -> str:
        place = "" if self.record is None else f"{self.source} record {self.record}: "
        return place + self.message

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"source": self.source, "record": self.record}
        if self.line is not None:
            document["line"] = self.line
        document |= {"code": self.code, "message": self.message}
        optional = {"type": self.type, "id": self.id, "property": self.property}
        return document | {key: value for key, value in optional.items() if value is not None}


class LoadError(ConstraintError):
    """Records of a load are bad. The first ones are listed, all of them counted; nothing was loaded."""

    code = "OG-D-001"

    def __init__(
        self, load_errors: Sequence[LoadProblem], total: int, bad_records: int, records: int
    ) -> None:
        self.load_errors = tuple(load_errors)
        self.load_errors_total = total
        self.bad_records = bad_records
        self.records = records
        noun = "bad record" if bad_records == 1 else "bad records"
        lines = [f"load failed: {bad_records} {noun} of {records}, nothing was loaded"]
        lines += (f"  {problem}" for problem in self.load_errors)
        if total > len(self.load_errors):
            lines.append(f"  … and {total - len(self.load_errors)} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class EdgesOfType:
    """Edges of one type: how many, and the ids of the first few."""

    type: str
    count: int
    ids: tuple[str, ...]

    def __str__(self) -> str:
        noun = "edge" if self.count == 1 else "edges"
        more = ", …" if self.count > len(self.ids) else ""
        return f"{self.type}: {self.count} {noun}, {', '.join(self.ids)}{more}"


class DanglingEdges(ConstraintError):
    """An overwrite removes nodes that edges of other types point to; nothing was loaded.

    `edges` has the types of these edges, with counts and the first ids.
    """

    code = "OG-D-003"

    def __init__(self, edges: Sequence[EdgesOfType]) -> None:
        self.edges = tuple(edges)
        total = sum(part.count for part in edges)
        noun = "edge points" if total == 1 else "edges point"
        lines = [f"load failed: {total} {noun} to nodes that the overwrite removes"]
        lines += (f"  {part}" for part in self.edges)
        lines.append(
            "nothing was loaded; load these edge types too, or cascade to delete the edges"
        )
        super().__init__("\n".join(lines))


class MutationError(ConstraintError):
    """Rows that a mutation would write break rules of the schema; nothing was changed.

    `problems` holds the first of them, all are counted.
    """

    code = "OG-D-002"

    def __init__(self, problems: Sequence[str], total: int) -> None:
        self.problems = tuple(problems)
        self.problems_total = total
        more = total - len(self.problems)
        super().__init__("; ".join(self.problems) + (f"; … and {more} more" if more > 0 else ""))
