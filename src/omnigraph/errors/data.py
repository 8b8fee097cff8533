"""Errors about schemas that cannot change and data that breaks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from omnigraph.diagnostics import Diagnostic
from omnigraph.errors.base import OmnigraphError
from omnigraph.limits import MAX_LOAD_ERRORS


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


_RECORDS_SHOWN: Final = 5
"""Records named in the line about equal problems."""


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
    """Records of a load are bad. The first ones are listed, all of them counted; nothing was loaded.

    `alike` has the number of equal problems by source and message, where there are several.
    """

    code = "OG-D-001"

    def __init__(
        self,
        load_errors: Sequence[LoadProblem],
        total: int,
        bad_records: int,
        records: int,
        alike: Mapping[tuple[str | None, str], int] | None = None,
    ) -> None:
        self.alike = dict(alike or {})
        self.load_errors = tuple(load_errors)
        self.load_errors_total = total
        self.bad_records = bad_records
        self.records = records
        noun = "bad record" if bad_records == 1 else "bad records"
        lines = [f"load failed: {bad_records} {noun} of {records}, nothing was loaded"]
        told = 0
        for line, problems in self._lines():
            lines.append(f"  {line}")
            told += problems
        if total > told:
            lines.append(f"  … and {total - told} more")
        super().__init__("\n".join(lines))

    def _lines(self) -> Iterator[tuple[str, int]]:
        """A line per problem, one for equal ones, each with the number of problems it tells about."""
        by_message: dict[tuple[str | None, str], list[LoadProblem]] = {}
        for problem in self.load_errors:
            by_message.setdefault((problem.source, problem.message), []).append(problem)
        for (source, message), problems in by_message.items():
            count = max(self.alike.get((source, message), 0), len(problems))
            if count == 1 or problems[0].record is None:
                yield from ((str(problem), 1) for problem in problems)
                continue
            shown = ", ".join(str(problem.record) for problem in problems[:_RECORDS_SHOWN])
            more = count - min(len(problems), _RECORDS_SHOWN)
            noun = "records" if len(problems) > 1 else "record"
            rest = f" and {more:,} more" if more else ""
            yield f"{source} {noun} {shown}{rest}: {message}", count


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownProperty:
    """Something in the input of a load that its type has no property for.

    Of a key of JSON records: how many records have it, and the first of them by source and number. Of a
    column of a table: the name of its source.
    """

    type: str
    property: str
    message: str
    records: int | None = None
    first: tuple[tuple[str, int], ...] = ()
    source: str | None = None

    def __str__(self) -> str:
        if self.records is None:
            return f"{self.source}: {self.message}"
        places = ", ".join(f"{source} record {record}" for source, record in self.first)
        more = ", …" if self.records > len(self.first) else ""
        noun = "record" if self.records == 1 else "records"
        return f"{self.message} ({self.records:,} {noun}: {places}{more})"


class UnknownPropertiesRefused(ConstraintError):
    """A strict load has properties that its types do not have; nothing was loaded.

    `properties` has all of them, with the number of records and the first ones.
    """

    code = "OG-D-004"

    def __init__(self, properties: Sequence[UnknownProperty]) -> None:
        self.properties = tuple(properties)
        shown = self.properties[:MAX_LOAD_ERRORS]
        noun = "unknown property" if len(properties) == 1 else "unknown properties"
        lines = [f"load failed: {len(properties):,} {noun}, nothing was loaded"]
        lines += (f"  {one}" for one in shown)
        if len(properties) > len(shown):
            lines.append(f"  … and {len(properties) - len(shown):,} more")
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
