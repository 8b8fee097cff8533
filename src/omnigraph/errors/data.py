"""Errors about schema changes, and about data that violates the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from omnigraph.diagnostics import Diagnostic
from omnigraph.errors.base import OmnigraphError
from omnigraph.limits import MAX_LOAD_ERRORS


class SchemaError(OmnigraphError):
    """A schema change is not possible."""

    code = "OG-S-000"
    kind = "bad_request"


class UnsupportedMigration(SchemaError):
    """The migration from the accepted to the desired schema contains an unsupported step.

    `diagnostic` points into the desired schema if the step has a position there.
    """

    code = "OG-S-001"
    category: ClassVar[str] = "migration"

    def __init__(self, message: str, diagnostic: Diagnostic | None = None) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.render() if diagnostic else message)


@dataclass(frozen=True, slots=True)
class BrokenQuery:
    """A query that does not match a new schema; `name` is None for a file that does not parse."""

    name: str | None
    diagnostic: Diagnostic

    def __str__(self) -> str:
        what = "query file" if self.name is None else f"query '{self.name}'"
        return f"{what}: {self.diagnostic.render()}"


class QueriesBroken(SchemaError):
    """The desired schema breaks queries that must keep working; `queries` lists all of them."""

    code = "OG-S-002"

    def __init__(self, queries: Sequence[BrokenQuery]) -> None:
        self.queries = tuple(queries)
        count = "1 query does" if len(queries) == 1 else f"{len(queries)} queries do"
        listed = "\n".join(map(str, queries))
        advice = "change the queries first, or keep the types and properties they use"
        super().__init__(
            f"schema check: {count} not fit the new schema; {advice}\n{listed}",
        )


_MAX_RECORDS_SHOWN: Final = 5
"""Record numbers listed for problems with the same message."""


class ConstraintError(OmnigraphError):
    """Data violates a rule of the schema; nothing was written."""

    code = "OG-D-000"
    kind = "bad_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """One problem in the input of a load.

    `record` is its number within the source, from 1; None if the problem concerns no single record.
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
    """A load has invalid records; nothing was loaded.

    `load_errors` has the first problems, `load_errors_total` counts all of them. `alike` counts
    repeated problems by source and message; `ignored` says which unknown properties of a type that
    lacks values were ignored.
    """

    code = "OG-D-001"

    def __init__(
        self,
        load_errors: Sequence[LoadProblem],
        total: int,
        bad_records: int,
        records: int,
        alike: Mapping[tuple[str | None, str], int] | None = None,
        ignored: Sequence[str] = (),
    ) -> None:
        self.alike = dict(alike or {})
        self.ignored = tuple(ignored)
        self.load_errors = tuple(load_errors)
        self.load_errors_total = total
        self.bad_records = bad_records
        self.records = records
        noun = "bad record" if bad_records == 1 else "bad records"
        lines = [f"load failed: {bad_records} {noun} of {records}, nothing was loaded"]
        covered = 0
        for line, problems in self._lines():
            lines.append(f"  {line}")
            covered += problems
        if total > covered:
            lines.append(f"  … and {total - covered} more")
        lines += (f"  ignored: {message}" for message in self.ignored)
        super().__init__("\n".join(lines))

    def _lines(self) -> Iterator[tuple[str, int]]:
        """One line per distinct problem, with the number of problems it covers."""
        by_message: dict[tuple[str | None, str], list[LoadProblem]] = {}
        for problem in self.load_errors:
            by_message.setdefault((problem.source, problem.message), []).append(problem)
        for (source, message), problems in by_message.items():
            count = max(self.alike.get((source, message), 0), len(problems))
            if count == 1 or problems[0].record is None:
                yield from ((str(problem), 1) for problem in problems)
                continue
            shown = ", ".join(str(problem.record) for problem in problems[:_MAX_RECORDS_SHOWN])
            more = count - min(len(problems), _MAX_RECORDS_SHOWN)
            noun = "records" if len(problems) > 1 else "record"
            rest = f" and {more:,} more" if more else ""
            yield f"{source} {noun} {shown}{rest}: {message}", count


@dataclass(frozen=True, slots=True)
class EdgesOfType:
    """Edges of one type: their number and the first ids."""

    type: str
    count: int
    ids: tuple[str, ...]

    def __str__(self) -> str:
        noun = "edge" if self.count == 1 else "edges"
        more = ", …" if self.count > len(self.ids) else ""
        return f"{self.type}: {self.count} {noun}, {', '.join(self.ids)}{more}"


class DanglingEdges(ConstraintError):
    """An overwrite deletes nodes that edges of other types need; nothing was loaded.

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
            "nothing was loaded; load these edge types too, or pass cascade=True to delete the edges"
        )
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownProperty:
    """A key or column in the input of a load that its type does not declare.

    For a key of JSON records: the number of records that have it, and the first of them by source and
    record number. For a column: the source.
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
    """A strict load has properties that its types do not declare; nothing was loaded.

    `properties` lists all of them, with the number of records and the first ones.
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


class SchemaViolated(ConstraintError):
    """Stored rows violate rules of the desired schema; nothing was changed.

    `problems` has the first problems of each kind and type, `problems_total` counts all of them.
    """

    code = "OG-D-005"

    def __init__(self, problems: Sequence[str], total: int) -> None:
        self.problems = tuple(problems)
        self.problems_total = total
        noun = "violation" if total == 1 else "violations"
        lines = [f"schema apply: {total:,} {noun} of the new schema in stored rows"]
        lines += (f"  {problem}" for problem in self.problems)
        if total > len(self.problems):
            lines.append(f"  … and {total - len(self.problems):,} more")
        lines.append("nothing was changed; change these rows first, or the schema")
        super().__init__("\n".join(lines))


class MutationError(ConstraintError):
    """A mutation would write rows that violate the schema; nothing was changed.

    `problems` has the first problems, `problems_total` counts all of them.
    """

    code = "OG-D-002"

    def __init__(self, problems: Sequence[str], total: int) -> None:
        self.problems = tuple(problems)
        self.problems_total = total
        more = total - len(self.problems)
        super().__init__("; ".join(self.problems) + (f"; … and {more} more" if more > 0 else ""))
