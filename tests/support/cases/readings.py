"""Steps that look at the graph and compare it with what is written below them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.cases.matching import expect_same_rows, matches
from tests.support.cases.story import CaseFailure, Stage
from tests.support.model.branch_names import MAIN
from tests.support.outcome import Json

_IDENTITY = frozenset({"id", "from", "to"})


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a type. A property that is not written is null.

    Ids and ends are compared when some row of the step writes them.
    """

    type_name: str
    rows: tuple[Json, ...]
    target: str = MAIN

    def check(self, stage: Stage) -> None:
        found = [_row(record) for record in stage.records(self.target, (self.type_name,))]
        expected = [row for row in self.rows if isinstance(row, dict)]
        written = {column for row in expected for column in row}
        hidden = _IDENTITY - written
        shown = [{k: v for k, v in row.items() if k not in hidden} for row in found]
        nulls = dict.fromkeys(found[0].keys() - _IDENTITY) if found else {}
        expect_same_rows([{**nulls, **row} for row in expected], shown, "row")


def _row(record: dict[str, Json]) -> dict[str, Json]:
    data = record["data"]
    assert isinstance(data, dict)
    return data | {end: record[end] for end in ("from", "to") if end in record}


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows a type has."""

    type_name: str
    number: int
    target: str = MAIN

    def check(self, stage: Stage) -> None:
        found = len(stage.records(self.target, (self.type_name,)))
        if found != self.number:
            raise CaseFailure(f"{self.type_name} has {found} rows, not {self.number}")


@dataclass(frozen=True, slots=True)
class Ask:
    """Run a read; what it answers is for the steps that follow."""

    query: str
    params: Mapping[str, Json] = field(default_factory=dict)
    at: str = MAIN

    def check(self, stage: Stage) -> None:
        stage.answer = None
        target = stage.target(self.at)
        stage.answer = stage.backend.query(self.query, self.params, target)


@dataclass(frozen=True, slots=True)
class AnswerIs:
    """The rows of the last read, with their columns in order; the order of rows only if asked."""

    rows: tuple[Json, ...]
    ordered: bool

    def check(self, stage: Stage) -> None:
        if stage.answer is None:
            raise CaseFailure("no read stands before")
        expected = [row for row in self.rows if isinstance(row, dict)]
        expect_same_rows(expected, stage.answer, "row")
        if self.ordered and not all(map(matches, expected, stage.answer)):
            shown = "".join(f"\n  {json.dumps(row)}" for row in stage.answer)
            raise CaseFailure(f"the order of the rows is{shown}")
        for row in (*expected, *stage.answer):
            if [*row] != [*expected[0]]:
                raise CaseFailure(f"the columns are {' '.join(row)}, not {' '.join(expected[0])}")


@dataclass(frozen=True, slots=True)
class Branches:
    names: tuple[str, ...]

    def check(self, stage: Stage) -> None:
        found = tuple(stage.backend.branches())
        if found != self.names:
            raise CaseFailure(f"the branches are {' '.join(found)}")


@dataclass(frozen=True, slots=True)
class History:
    """The commits of a branch, oldest first: operation and actor, `-` for none."""

    commits: tuple[tuple[str, str], ...]
    branch: str = MAIN

    def check(self, stage: Stage) -> None:
        receipts = stage.backend.commits(self.branch)
        found = tuple((receipt.operation, receipt.actor or "-") for receipt in receipts)
        if found != self.commits:
            shown = ", ".join(" ".join(commit) for commit in found)
            raise CaseFailure(f"the commits of '{self.branch}' are {shown}")


@dataclass(frozen=True, slots=True)
class Export:
    """The whole export, or the given types; without records only that it can be made."""

    types: tuple[str, ...]
    records: tuple[Json, ...]
    target: str = MAIN

    def check(self, stage: Stage) -> None:
        found = stage.records(self.target, self.types)
        places = [_place(record) for record in found]
        if places != sorted(places):
            raise CaseFailure("the records are not ordered by table and id")
        if self.records:
            expect_same_rows(list(self.records), found, "record")


def _place(record: dict[str, Json]) -> tuple[str, str]:
    data = record["data"]
    assert isinstance(data, dict)
    kind = "node:" + str(record["type"]) if "type" in record else "edge:" + str(record["edge"])
    return kind, str(data["id"])


@dataclass(frozen=True, slots=True)
class Diff:
    before: str
    after: str
    changes: tuple[Json, ...]

    def check(self, stage: Stage) -> None:
        changes = stage.backend.diff(stage.target(self.before), stage.target(self.after))
        found: list[dict[str, Json]] = []
        for change in changes:
            shown: dict[str, Json] = {
                "op": change.op,
                "table_key": change.table_key,
                "id": change.id,
            }
            if change.endpoints is not None:
                shown["src"], shown["dst"] = change.endpoints
            found.append(shown)
        expect_same_rows(list(self.changes), found, "change")


@dataclass(frozen=True, slots=True)
class Reload:
    """Load the export into an empty graph of the same schema: it must come out the same."""

    target: str = MAIN

    def check(self, stage: Stage) -> None:
        lines = stage.backend.export(stage.target(self.target), ())
        other = stage.new_backend()
        other.create(stage.schema)
        other.load(
            "\n".join(lines),
            "overwrite",
            branch=MAIN,
            base=None,
            actor=None,
            message=None,
            expected_head=None,
            load_id=None,
            max_errors=100,
            quarantine=False,
            cascade=False,
        )
        if other.export(MAIN, ()) != lines:
            raise CaseFailure("the export changed when it was loaded and exported again")
