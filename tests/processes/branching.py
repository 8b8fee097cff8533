"""Writers that make, fork, branch from and delete branches, and cleaners that work beside them.

Importable by a spawned process. A writer notes every step before and after it, and only it writes to
the branches it has made. What was confirmed has to be there in the end; what was only tried may be.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    ExpectedVersionMismatch,
    RecoveryPending,
)
from omnigraph.maintenance.cleanup import MIN_AGE
from tests.processes.writing import exported, short_leases

NAMES = 6
"""How many names a writer gives to its branches, so that names come again."""

MAX_DEPTH = 3


@dataclass(slots=True)
class Branch:
    """What a branch must have, by the notes of its writer."""

    sure: set[str] = field(default_factory=set)
    """Keys of rows that were confirmed."""
    is_sure: bool = True
    """False while the branch may be there or not: its creation or deletion was not confirmed."""
    depth: int = 1
    parent: str | None = None


Branches = dict[str, Branch]


class Notes:
    """One line per step. A line is there as a whole or not at all, whenever the writer dies."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, *step: str) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, (json.dumps(step) + "\n").encode())
        finally:
            os.close(descriptor)

    def replay(self) -> Branches:
        """The branches as the writer was told, main with the rows it wrote there included."""
        branches: Branches = {"main": Branch(depth=0)}
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        for line in lines:
            _apply(branches, *json.loads(line))
        return branches

    def count(self, does: str) -> int:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return sum(json.loads(line)[0] == does for line in lines)


def _apply(branches: Branches, does: str, name: str, other: str = "") -> None:
    match does:
        case "make":
            branches[name] = Branch(is_sure=False)
        case "made":
            source = branches.get(other)
            # Of a branch of another writer, or of main, nobody here knows what it had just then.
            known = set(source.sure) if source is not None and other != "main" else set()
            depth = 1 + (source.depth if source is not None else 1)
            branches[name] = Branch(known, True, depth, other)
        case "put":
            pass
        case "there":
            branches[name].sure.add(other)
        case "delete":
            branches[name].is_sure = False
        case "in use":
            branches[name].is_sure = True
        case "gone":
            del branches[name]
        case _:
            raise AssertionError(does)


def branch_out(uri: str, writer: str, stop: str, notes: str) -> None:
    """Make, write to and delete branches until told to stop, or until something is wrong."""
    with short_leases():
        graph = open_graph(uri)
        _Writer(graph, writer, Notes(Path(notes))).work(Path(stop))


class _Writer:
    def __init__(self, graph: Graph, name: str, notes: Notes) -> None:
        self._graph = graph
        self._name = name
        self._notes = notes
        self._chance = random.Random()
        self._branches = notes.replay()
        self._number = notes.count("put")

    def work(self, stop: Path) -> None:
        self._resolve_doubts()
        while not stop.exists():
            steps = [self._make, self._make, self._put, self._put, self._delete, self._look]
            self._chance.choice(steps)()

    def _note(self, *step: str) -> None:
        self._notes.add(*step)
        _apply(self._branches, *step)

    def _resolve_doubts(self) -> None:
        """A writer was killed before: forget branches of which it was not told what became."""
        for name, branch in list(self._branches.items()):
            if not branch.is_sure:
                self._remove(name)

    def _make(self) -> None:
        free = [n for n in self._names() if n not in self._branches]
        if not free:
            return
        name = self._chance.choice(free)
        own = [n for n, b in self._branches.items() if b.depth < MAX_DEPTH]
        source = self._chance.choice(own)
        if self._chance.random() < 0.25:
            source = self._chance.choice(list(self._graph.branches))
        self._note("make", name)
        try:
            self._graph.branches.create(name, source)
        except BranchNotFound:
            # The source is a branch that another writer has deleted.
            self._note("gone", name)
            return
        self._note("made", name, source)
        self._write(name)

    def _put(self) -> None:
        self._write(self._chance.choice(sorted(self._branches)))

    def _write(self, branch: str) -> None:
        self._number += 1
        key = f"{self._name}-{self._number}"
        kind = self._chance.choice(["Person", "Company"])
        query = f"query q($key: String) {{ insert {kind} {{ name: $key }} }}"
        self._note("put", branch, key)
        _insist(self._graph, lambda: self._graph.mutate(query, {"key": key}, branch=branch))
        self._note("there", branch, key)

    def _delete(self) -> None:
        parents = {branch.parent for branch in self._branches.values()}
        leaves = [n for n in self._branches if n not in parents and n != "main"]
        if leaves:
            self._remove(self._chance.choice(leaves))

    def _remove(self, name: str) -> None:
        self._note("delete", name)
        try:
            self._graph.branches.delete(name)
        except BranchInUse:
            self._note("in use", name)
            return
        except BranchNotFound:
            pass
        self._note("gone", name)

    def _look(self) -> None:
        name = self._chance.choice(sorted(self._branches))
        missing = lost_rows(self._graph, name, self._branches[name])
        assert not missing, f"{name} has lost {sorted(missing)}"

    def _names(self) -> list[str]:
        return [f"{self._name}/{number}" for number in range(NAMES)]


def lost_rows(graph: Graph, name: str, branch: Branch) -> set[str]:
    """The confirmed rows that a branch does not have."""
    rows = map(json.loads, exported(graph, name).splitlines())
    return branch.sure - {row["data"]["name"] for row in rows}


def _insist(graph: Graph, write: Callable[[], object]) -> None:
    while True:
        try:
            write()
            return
        except ExpectedVersionMismatch:
            graph.maintenance.recover()


def clean_up(uri: str, stop: str, report: str, policy: dict[str, int]) -> None:
    """Clean up again and again until told to stop, and say how often, and what went."""
    runs, orphans, versions = 0, 0, 0
    with short_leases():
        graph = open_graph(uri)
        min_age = timedelta(seconds=policy["min_age_s"]) if "min_age_s" in policy else MIN_AGE
        run = partial(
            graph.maintenance.cleanup, keep_versions=policy["keep_versions"], min_age=min_age
        )
        while not Path(stop).exists():
            began = time.monotonic()
            # A writer that was killed may have left something for the next one to recover.
            with suppress(RecoveryPending):
                done = run()
                assert not done.failed, [(t.table_key, t.error) for t in done.failed]
                runs += 1
                orphans += len(done.orphans)
                versions += done.removed.versions
                done_so_far = {"runs": runs, "orphans": orphans, "versions": versions}
                Path(report).write_text(json.dumps(done_so_far))
            # As long as it took, so that the writers have the lock of main half of the time.
            time.sleep(random.uniform(0, 2 * (time.monotonic() - began)))
