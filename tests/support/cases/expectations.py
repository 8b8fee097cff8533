"""Steps that say what the last action led to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.cases.story import CaseFailure, Stage
from tests.support.outcome import Counts, Json, LoadResult, MergeResult, MutationResult


@dataclass(frozen=True, slots=True)
class Refused:
    """The step before was refused, with that kind, and its message holds every fragment."""

    kind: str
    fragments: tuple[str, ...]

    def check(self, stage: Stage) -> None:
        if stage.refusal is None:
            raise CaseFailure("the step before was not refused")
        message = stage.refusal.message
        if stage.refusal.kind != self.kind:
            raise CaseFailure(f"refused as {stage.refusal.kind}, not {self.kind}: {message}")
        for fragment in self.fragments:
            if fragment not in message:
                raise CaseFailure(f"'{fragment}' is not in the message: {message}")


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A bad record: its number (none when several are to blame), code, and part of the message."""

    record: int | None
    code: str
    fragment: str


@dataclass(frozen=True, slots=True)
class LoadErrors:
    """The errors of a refused load, in order; `total` also counts those not listed."""

    lines: tuple[ErrorLine, ...]
    listed: int | None = None
    total: int | None = None

    def check(self, stage: Stage) -> None:
        if stage.refusal is None:
            raise CaseFailure("the load was not refused")
        errors = stage.refusal.load_errors
        found = "".join(f"\n  {e.record or '-'} {e.code} {e.message}" for e in errors)
        if self.lines and len(self.lines) != len(errors):
            raise CaseFailure(f"expected {len(self.lines)} errors, found {len(errors)}:{found}")
        for line, error in zip(self.lines, errors, strict=False):
            same = (line.record, line.code) == (error.record, error.code)
            if not same or line.fragment not in error.message:
                raise CaseFailure(f"expected {line.record or '-'} {line.code}, found:{found}")
        if self.listed not in (None, len(errors)):
            raise CaseFailure(f"{len(errors)} errors are listed, not {self.listed}")
        if self.total not in (None, stage.refusal.load_errors_total):
            raise CaseFailure(f"{stage.refusal.load_errors_total} errors, not {self.total}")


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The conflicts of a refused merge, in order: table, row (none when not about one), kind."""

    conflicts: tuple[tuple[str, str | None, str], ...]

    def check(self, stage: Stage) -> None:
        found = stage.refusal.conflicts if stage.refusal else ()
        if tuple((c.table_key, c.row_id, c.kind) for c in found) != self.conflicts:
            shown = "".join(f"\n  {c.table_key} {c.row_id or '-'} {c.kind}" for c in found)
            raise CaseFailure(f"the conflicts are{shown or ' none'}")


@dataclass(frozen=True, slots=True)
class ResultIs:
    """Single values the last action returned."""

    values: Mapping[str, Json]

    def check(self, stage: Stage) -> None:
        found = _result(stage)
        for name, value in self.values.items():
            if name not in found:
                raise CaseFailure(f"the result has no '{name}', only {', '.join(found)}")
            if found[name] != value:
                raise CaseFailure(f"{name} is {found[name]}, not {value}")


def _result(stage: Stage) -> dict[str, Json]:
    receipt = stage.receipt()
    values: dict[str, Json] = {"commits": stage.commits_made, "actor": receipt.actor}
    values["version"] = receipt.version
    match stage.result:
        case MutationResult():
            values["affected_nodes"] = stage.result.affected_nodes
            values["affected_edges"] = stage.result.affected_edges
        case MergeResult():
            values["outcome"] = stage.result.outcome
        case LoadResult():
            values["rows_loaded"] = dict(stage.result.rows_loaded)
            values["branch_created"] = stage.result.branch_created
            values["replayed"] = stage.result.replayed
            values["quarantined"] = len(stage.result.quarantined)
    return values


@dataclass(frozen=True, slots=True)
class NetCounts:
    """The net change by table, complete."""

    counts: Mapping[str, Counts]

    def check(self, stage: Stage) -> None:
        found = dict(stage.receipt().counts)
        if found != self.counts:
            raise CaseFailure(f"the net counts are {found}")


@dataclass(frozen=True, slots=True)
class Warnings:
    """The warnings of the receipt: code and number of records or rows."""

    warnings: tuple[tuple[str, int], ...]

    def check(self, stage: Stage) -> None:
        found = tuple((w.code, w.count) for w in stage.receipt().warnings)
        if found != self.warnings:
            raise CaseFailure(f"the warnings are {found}")


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The records a load set aside, with their texts and the codes of their errors."""

    records: tuple[tuple[int, str, str], ...]

    def check(self, stage: Stage) -> None:
        if not isinstance(stage.result, LoadResult):
            raise CaseFailure("the step before was no load")
        found = tuple(
            (bad.record, " ".join(error.code for error in bad.errors), bad.raw)
            for bad in stage.result.quarantined
        )
        if found != self.records:
            raise CaseFailure(f"the quarantined records are {found}")


@dataclass(frozen=True, slots=True)
class Mark:
    """Remember the head of a branch; later steps write it as `@name`."""

    name: str
    branch: str

    def check(self, stage: Stage) -> None:
        head = stage.backend.commits(self.branch)[-1].commit
        assert head is not None
        stage.marks[self.name] = head
