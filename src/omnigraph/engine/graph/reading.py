"""Questions to a graph, and its rows as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from omnigraph.engine.export import export_snapshot
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.graph.parameters import joined_parameters
from omnigraph.engine.read.budget import QueryBudget
from omnigraph.engine.read.explain import Explanation
from omnigraph.engine.read.reader import Reading
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.result import Result
from omnigraph.errors import (
    InputError,
)


class Reads(GraphHandle):
    """What is asked of a graph."""

    def query(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        **more: object,
    ) -> Result:
        """Run a read on the newest state of a branch, or on an earlier one with `at`.

        `query` is query text or the path of a query file; `name` picks one of several queries in
        it. Parameters come as a mapping, or as keywords where their names are not taken here.
        """
        reading = self._reading(query, name, branch, at, view, budget)
        return self._reader.run(reading, joined_parameters(params, more))

    def explain(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        analyze: bool = False,
        **more: object,
    ) -> Explanation:
        """The steps a read takes, with the rows expected of each. Takes what `query` takes.

        With `analyze` the read is run, and every step also says how many rows it left and how long
        it took.
        """
        reading = self._reading(query, name, branch, at, view, budget)
        return self._reader.explain(reading, joined_parameters(params, more) if analyze else None)

    def _reading(
        self,
        query: str | Path,
        name: str | None,
        branch: str | None,
        at: str | int | None,
        view: ReadView,
        budget: QueryBudget | None,
    ) -> Reading:
        if branch is not None and at is not None:
            raise InputError(
                "a read is of a branch or of a commit; give `branch` or `at`, not both"
            )
        if name is not None and not isinstance(name, str):
            raise InputError(
                "the second argument is the name of a query; parameters come third or as keywords"
            )
        snapshot = self.snapshot(branch) if at is None else self.at(at)
        plan = self._reader.compile(query, name, snapshot.catalog, view)
        target = None if at is None else snapshot.commit_id
        return Reading(plan, snapshot, target, view, budget or QueryBudget.from_environment())

    def export(
        self,
        out: TextIO,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        types: Sequence[str] = (),
        tables: Sequence[str] = (),
    ) -> int:
        """Write the graph as JSON lines that load back into an equal graph; returns the rows.

        `at` is a version, a commit or a branch, as for `Graph.at`; without it the newest state.
        """
        snapshot = self.snapshot(branch) if at is None else self.at(at)
        return export_snapshot(snapshot, self._tables, out, [*types, *tables])
