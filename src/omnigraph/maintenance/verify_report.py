"""The report of a verification: each kind of problem once per table, with its count and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from omnigraph.diagnostics import counted
from omnigraph.json_structs import Document

MAX_EXAMPLES: Final = 100
"""Examples kept per kind of problem and table; all problems are counted."""

Mask = npt.NDArray[np.bool_]


class ProblemKind(Enum):
    """The kinds of problems in a graph."""

    DANGLING_EDGE = "dangling_edge"
    DUPLICATE_ID = "duplicate_id"
    DUPLICATE_VALUE = "duplicate_value"
    WRONG_ID = "wrong_id"
    MISSING_VALUE = "missing_value"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    UNFIT_VALUE = "unfit_value"
    CARDINALITY = "cardinality"
    ROW_COUNT = "row_count"
    COLUMNS = "columns"
    MISSING_TABLE = "missing_table"
    DAMAGED_FILE = "damaged_file"
    DAMAGED_BLOB = "damaged_blob"
    DAMAGED_INDEX = "damaged_index"
    BRANCH = "branch"
    COMMITS = "commits"
    SCHEMA = "schema"
    TAG = "tag"


_NOUNS: Final[Mapping[ProblemKind, tuple[str, str, str]]] = {
    ProblemKind.DANGLING_EDGE: ("endpoint", "endpoints", "of edges that no node has"),
    ProblemKind.DUPLICATE_ID: ("row", "rows", "with the id of another row"),
    ProblemKind.DUPLICATE_VALUE: ("row", "rows", "with unique values that another row has"),
    ProblemKind.WRONG_ID: ("row", "rows", "with another id than the key or identity gives"),
    ProblemKind.MISSING_VALUE: ("null", "nulls", "where a value is required"),
    ProblemKind.ENUM: ("value", "values", "outside of the enum"),
    ProblemKind.RANGE: ("value", "values", "outside of the @range"),
    ProblemKind.CHECK: ("value", "values", "that the @check does not match"),
    ProblemKind.UNFIT_VALUE: ("value", "values", "that the type does not allow"),
    ProblemKind.CARDINALITY: ("source", "sources", "with more or fewer edges than @card allows"),
    ProblemKind.ROW_COUNT: ("row count", "row counts", "different from the commit"),
    ProblemKind.COLUMNS: ("column", "columns", "different from the schema"),
    ProblemKind.MISSING_TABLE: ("table version", "table versions", "missing"),
    ProblemKind.DAMAGED_FILE: ("file", "files", "missing or damaged"),
    ProblemKind.DAMAGED_BLOB: ("file of blobs", "files of blobs", "missing or damaged"),
    ProblemKind.DAMAGED_INDEX: ("index", "indexes", "missing or damaged"),
    ProblemKind.BRANCH: ("branch", "branches", "that cannot be read as it was written"),
    ProblemKind.COMMITS: ("problem", "problems", "in the history"),
    ProblemKind.SCHEMA: ("problem", "problems", "with schema files"),
    ProblemKind.TAG: ("problem", "problems", "with tagged commits"),
}

DAMAGE: Final = frozenset(
    [
        ProblemKind.MISSING_TABLE,
        ProblemKind.DAMAGED_FILE,
        ProblemKind.DAMAGED_BLOB,
        ProblemKind.DAMAGED_INDEX,
        ProblemKind.BRANCH,
    ]
)
"""Kinds that a concurrent cleanup can cause, if it deletes files during the verification."""


class VerifyProblem(Document, frozen=True):
    """One kind of problem in one table, or in a branch as a whole.

    A table version that several branches share is reported with the first of them.
    """

    kind: ProblemKind
    branch: str
    table_key: str | None
    count: int
    examples: tuple[str, ...]
    message: str

    def __repr__(self) -> str:
        return f"VerifyProblem({self.message!r})"


@dataclass(frozen=True, slots=True, repr=False)
class VerifyReport:
    """What was verified, and all problems found."""

    problems: tuple[VerifyProblem, ...]
    branches: tuple[str, ...]
    tables: int
    rows: int
    files: int

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "branches": list(self.branches),
            "tables": self.tables,
            "rows": self.rows,
            "files": self.files,
            "problems": [problem.to_json() for problem in self.problems],
        }

    def __repr__(self) -> str:
        state = "ok" if self.ok else counted(len(self.problems), "problem")
        return (
            f"VerifyReport({state}: {counted(len(self.branches), 'branch', 'branches')}, "
            f"{counted(self.tables, 'table')}, {counted(self.rows, 'row')}, "
            f"{counted(self.files, 'file')})"
        )


@dataclass(slots=True)
class _Found:
    count: int = 0
    examples: list[str] = field(default_factory=list)


class Findings:
    """Collects the problems of one table version, or of a branch as a whole."""

    def __init__(self, table_key: str | None = None) -> None:
        self._table_key = table_key
        self._found: dict[ProblemKind, _Found] = {}

    def add(self, kind: ProblemKind, example: str) -> None:
        """Add one problem."""
        self.extend(kind, 1, [example])

    def extend(self, kind: ProblemKind, count: int, examples: Iterable[str]) -> None:
        """Add problems, with examples up to the limit."""
        if count:
            found = self._found.setdefault(kind, _Found())
            found.count += count
            found.examples += islice(examples, MAX_EXAMPLES - len(found.examples))

    def rows(self, kind: ProblemKind, mask: Mask, example: Callable[[int], str]) -> None:
        """Add the rows of a batch where a mask is true."""
        positions = np.flatnonzero(mask)
        if len(positions):
            # Only examples within the limit are formatted.
            first = positions[:MAX_EXAMPLES].tolist()
            self.extend(kind, len(positions), (example(row) for row in first))

    def take(self, others: Findings) -> None:
        """Add all problems of other findings."""
        for kind, found in others._found.items():
            self.extend(kind, found.count, found.examples)

    @property
    def has_damage(self) -> bool:
        """Whether a concurrent cleanup could have caused a problem."""
        return not DAMAGE.isdisjoint(self._found)

    def on(self, branch: str) -> Iterator[VerifyProblem]:
        """The problems as those of a branch, by kind."""
        for kind in ProblemKind:
            found = self._found.get(kind)
            if found is not None:
                noun, plural, rest = _NOUNS[kind]
                where = f"branch {branch}"
                if self._table_key is not None:
                    where = f"{self._table_key} on {where}"
                message = f"{where}: {counted(found.count, noun, plural)} {rest}"
                yield VerifyProblem(
                    kind, branch, self._table_key, found.count, tuple(found.examples), message
                )
