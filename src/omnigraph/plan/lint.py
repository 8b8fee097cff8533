"""Lint: every query of a file checked against a schema, and advice about the file as a whole."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.diagnostics import Diagnostic
from omnigraph.errors import LanguageError
from omnigraph.language.query.ast import Query
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.changes import (
    MutationPlan,
    Plan,
    UpdateNodes,
)
from omnigraph.plan.compile import compile_checked

Severity = Literal["error", "warning", "info"]
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What lint found about one query."""

    name: str
    kind: Literal["read", "mutation"]
    warnings: tuple[str, ...] = ()
    diagnostic: Diagnostic | None = None

    @property
    def status(self) -> Literal["ok", "error"]:
        return "error" if self.diagnostic else "ok"

    @property
    def error(self) -> str | None:
        if self.diagnostic is None:
            return None
        return f"{self.diagnostic.category} error: {self.diagnostic.message}"

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self.name, "kind": self.kind, "status": self.status}
        if self.warnings:
            document["warnings"] = list(self.warnings)
        if self.diagnostic is not None:
            document["error"] = self.error
            document |= _place(self.diagnostic)
        return document


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the file that belongs to no single query."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    diagnostic: Diagnostic | None = None

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
        }
        if self.type_name is not None:
            document["type_name"] = self.type_name
        if self.property is not None:
            document["property"] = self.property
        if self.query_names:
            document["query_names"] = list(self.query_names)
        if self.diagnostic is not None:
            document |= _place(self.diagnostic)
        return document


@dataclass(frozen=True, slots=True)
class LintReport:
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]

    @property
    def queries_processed(self) -> int:
        return len(self.results)

    @property
    def errors(self) -> int:
        return self._findings("error") + sum(r.status == "error" for r in self.results)

    @property
    def warnings(self) -> int:
        return self._findings("warning") + sum(len(r.warnings) for r in self.results)

    @property
    def infos(self) -> int:
        return self._findings("info")

    @property
    def status(self) -> Literal["ok", "error"]:
        return "error" if self.errors else "ok"

    def to_json(self, schema_source: dict[str, str], query_path: str) -> dict[str, Any]:
        """The lint document; the caller says where schema and queries came from."""
        return {
            "status": self.status,
            "schema_source": schema_source,
            "query_path": query_path,
            "queries_processed": self.queries_processed,
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [r.to_json() for r in self.results],
            "findings": [f.to_json() for f in self.findings],
        }

    def _findings(self, severity: Severity) -> int:
        return sum(f.severity == severity for f in self.findings)


def lint_queries(source: Source, catalog: Catalog) -> LintReport:
    """Check every query of a source; a file that does not parse is one finding."""
    try:
        file = parse_queries(source)
    except LanguageError as error:
        diagnostic = error.diagnostic
        message = f"{diagnostic.category} error: {diagnostic.message}"
        return LintReport((), (Finding("error", "Q000", message, diagnostic=diagnostic),))
    results: list[QueryResult] = []
    plans: list[Plan] = []
    for query in file.queries:
        try:
            plans.append(compile_checked(source, catalog, query).plan)
        except LanguageError as error:
            results.append(_result(query, error.diagnostic))
        else:
            results.append(_result(query, None))
    findings = sorted(_unset_properties(catalog, plans), key=_finding_order)
    return LintReport(tuple(results), tuple(findings))


def _result(query: Query, diagnostic: Diagnostic | None) -> QueryResult:
    warnings: tuple[str, ...] = ()
    if query.is_mutation and not query.parameters:
        warnings = ("mutation declares no params",)
    kind: Literal["read", "mutation"] = "mutation" if query.is_mutation else "read"
    return QueryResult(query.name.text, kind, warnings, diagnostic)


def _unset_properties(catalog: Catalog, plans: list[Plan]) -> list[Finding]:
    """Nullable properties that no update of their type ever sets (L201)."""
    assigned: dict[str, set[str]] = defaultdict(set)
    queries: dict[str, set[str]] = defaultdict(set)
    for plan in plans:
        if isinstance(plan, MutationPlan):
            for statement in plan.statements:
                if isinstance(statement, UpdateNodes):
                    assigned[statement.node_type] |= {a.property for a in statement.assignments}
                    queries[statement.node_type].add(plan.name)
    return [
        Finding(
            "warning",
            "L201",
            f"{type_name}.{name} exists in schema but no update query sets it",
            type_name=type_name,
            property=name,
            query_names=tuple(sorted(queries[type_name])),
        )
        for type_name, names in assigned.items()
        for name in _settable(catalog.nodes[type_name])
        if name not in names
    ]


def _settable(node_type: NodeType) -> list[str]:
    key = node_type.key or ()
    return [
        p.name
        for p in node_type.properties.values()
        if p.type.nullable and p.name not in key and p.embed_source is None
    ]


def _finding_order(finding: Finding) -> tuple[int, str, str, str]:
    severity = _SEVERITIES.index(finding.severity)
    return severity, finding.type_name or "", finding.property or "", finding.message


def _place(diagnostic: Diagnostic) -> dict[str, Any]:
    document: dict[str, Any] = {"position": diagnostic.position.to_json()}
    if diagnostic.hint:
        document["hint"] = diagnostic.hint
    return document
