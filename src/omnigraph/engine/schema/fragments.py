"""Work on the fragments of a table, one after the other here or shared out to Spark tasks.

Either way it is the same function, called once per fragment: it writes files and commits nothing.
Tests: tests/spark/test_schema_changes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from omnigraph.faults import declare
from omnigraph.limits import LOAD_RANGE_ROWS
from omnigraph.progress import SILENT, Progress
from omnigraph.spark.choice import INLINE, EngineChoice, rewrites_on_spark, session_of
from omnigraph.spark.tasks import Failed, returning, run_tasks, value_of
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore

BEFORE_FRAGMENT = declare("schema_apply.pre_fragment", "before files of a fragment are written")
AFTER_FRAGMENT = declare("schema_apply.post_fragment", "after files of a fragment were written")

Answer = TypeVar("Answer")
Work = Callable[[Table, int], Answer]
"""Works on the fragment of a number. It travels to tasks, and so does its answer."""


@dataclass(frozen=True, slots=True)
class FragmentWork(Generic[Answer]):
    """The work of tasks on one version of a table. It travels as it is."""

    tables: TableStore
    path: str
    version: int
    work: Work[Answer]
    shares: tuple[tuple[int, ...], ...]
    """By task: the numbers of its fragments."""

    def __call__(self, task: int) -> list[Answer] | Failed:
        return returning(lambda: self._answers(task))

    def _answers(self, task: int) -> list[Answer]:
        table = self.tables.open(self.path, version=self.version)
        return [_worked(self.work, table, number) for number in self.shares[task]]


@dataclass(frozen=True, slots=True)
class EachFragment:
    """Does such work where it was asked to be done, and tells how far it is."""

    tables: TableStore
    engine: EngineChoice = INLINE
    progress: Progress = SILENT

    def do(
        self, job: str, table: Table, numbers: Sequence[int], work: Work[Answer]
    ) -> list[Answer]:
        """The answers in the order of the numbers. Raises what the work raises, or `SparkError`."""
        if not numbers:
            return []
        rows = {fragment.id: fragment.stored_rows for fragment in table.fragments()}
        total = sum(rows[number] for number in numbers)
        self.progress.stage(job, total)
        if not rewrites_on_spark(self.engine, total, shared=self.tables.is_shared):
            return list(self._here(table, numbers, work, rows))
        shares = tuple(_shared_out(numbers, rows))
        tasks = FragmentWork(self.tables, table.path, table.version, work, shares)
        found = run_tasks(session_of(self.engine), job, len(shares), tasks)
        self.progress.advance(total)
        return [answer for share in found for answer in value_of(share)]

    def _here(
        self, table: Table, numbers: Sequence[int], work: Work[Answer], rows: dict[int, int]
    ) -> Iterator[Answer]:
        for number in numbers:
            yield _worked(work, table, number)
            self.progress.advance(rows[number])


def _worked(work: Work[Answer], table: Table, number: int) -> Answer:
    BEFORE_FRAGMENT.hit(table=table.path, fragment=number)
    answer = work(table, number)
    AFTER_FRAGMENT.hit(table=table.path, fragment=number)
    return answer


def _shared_out(numbers: Sequence[int], rows: dict[int, int]) -> Iterator[tuple[int, ...]]:
    """Neighbours together, until a task has enough."""
    held: list[int] = []
    for number in numbers:
        if held and sum(rows[n] for n in (*held, number)) > LOAD_RANGE_ROWS:
            yield tuple(held)
            held = []
        held.append(number)
    yield tuple(held)
