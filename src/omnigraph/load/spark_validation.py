"""Suspicious rows of a load on Spark, found by tasks and validated by the driver.

The driver gets the rows with suspicious keys and nothing of all others.
Tests: tests/spark/test_suspects.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from omnigraph.load.records import Problem
from omnigraph.load.split_tasks import SplitTasks
from omnigraph.load.suspects import CommittedBeside, Suspects, joined, replaceable
from omnigraph.load.validation import validate_together
from omnigraph.spark.tasks import value_of

Run = Callable[[str, Sequence[int], Callable[[int], Any]], list[Any]]
"""Runs a kernel for some numbers, one task each."""

_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class Validated:
    """The rows that were validated together, what is left of them, and what is wrong."""

    rows: dict[str, pa.Table]
    left: Mapping[str, pa.Table]
    problems: list[Problem]


def all_rows(run: Run, tasks: SplitTasks, suspects: Suspects | None = None) -> dict[str, pa.Table]:
    """Rows of all splits with what distinguishes them, in order: all, or the suspicious ones."""
    name = "bring rows of a load together" if suspects is None else "bring suspicious rows together"
    kernel = partial(tasks.keys, suspects)
    return joined(value_of(part) for part in run(name, range(len(tasks.splits)), kernel))


def validate_suspects(
    run: Run, tasks: SplitTasks, suspects: Suspects, emptied: Mapping[str, pa.Table]
) -> Validated:
    """Validate rows with suspicious keys as if all rows were here."""
    job, catalog = tasks.job, tasks.job.catalog
    rows = all_rows(run, tasks, suspects)
    if more := suspects.sources_left_out(catalog, rows):
        suspects.update(more)
        rows = all_rows(run, tasks, suspects)
    replaced = _replaced(run, tasks, replaceable(catalog, rows, job.mode, tasks.committed))
    beside = replace(job, committed=CommittedBeside(tasks.committed, replaced))
    absent = {name: suspects.absent.get(name, _NO_IDS) for name in catalog.nodes}
    rows |= {key: table for key, table in emptied.items() if key not in rows}
    problems, left, _ = validate_together(beside, rows, absent)
    return Validated(rows, left, problems)


def _replaced(run: Run, tasks: SplitTasks, wanted: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Those of the wanted ids that any row of the load has."""
    if not wanted:
        return {}
    found: dict[str, list[pa.Array]] = {}
    kernel = partial(tasks.ids_among, wanted)
    for part in run("look for replaced rows", range(len(tasks.splits)), kernel):
        for key, ids in value_of(part).items():
            found.setdefault(key, []).append(ids)
    return {key: pa.concat_arrays(ids) for key, ids in found.items()}
