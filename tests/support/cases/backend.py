"""What a story needs of a graph, and the reference graph behind it.

Everything that crosses this border is text or a value of `tests.support.outcome`. A call that is
refused raises `Refusal`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from omnigraph.catalog.compile import build_declared, build_schema, check_reserved_names
from omnigraph.catalog.migrate import carry_identities, plan_migration, refuse_unsupported
from omnigraph.errors import OmnigraphError
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query
from omnigraph.plan.params import bind_parameters
from tests.support.model import ReferenceGraph
from tests.support.model.load import Mode
from tests.support.model.read.json import JsonRows, json_rows
from tests.support.outcome import (
    Change,
    Json,
    LoadResult,
    MergeResult,
    MutationResult,
    Receipt,
    Refusal,
)


class Backend(Protocol):
    """A graph as stories see it. `target` is a branch name or a commit id."""

    def create(self, schema: str) -> None:
        """Start over with an empty graph of that schema."""

    def load(
        self,
        data: str,
        mode: Mode,
        *,
        branch: str,
        base: str | None,
        actor: str | None,
        message: str | None,
        expected_head: str | None,
        load_id: str | None,
        max_errors: int,
        quarantine: bool,
        cascade: bool,
    ) -> LoadResult: ...

    def mutate(
        self,
        query: str,
        parameters: Mapping[str, Json],
        *,
        branch: str,
        actor: str | None,
        message: str | None,
        expected_head: str | None,
    ) -> MutationResult: ...

    def create_branch(self, name: str, source: str) -> None: ...

    def delete_branch(self, name: str) -> None: ...

    def merge(
        self, source: str, into: str, *, actor: str | None, expected_head: str | None
    ) -> MergeResult: ...

    def apply_schema(self, schema: str, *, actor: str | None) -> Receipt: ...

    def branches(self) -> list[str]: ...

    def commits(self, branch: str) -> list[Receipt]:
        """The receipts of a branch's history, oldest first."""

    def query(self, query: str, parameters: Mapping[str, Json], target: str) -> JsonRows:
        """The rows of a read, in order, each with its columns in order."""

    def export(self, target: str, types: Sequence[str]) -> list[str]: ...

    def diff(self, before: str, after: str) -> tuple[Change, ...]: ...


class ModelBackend:
    """The reference graph, with the compiler in front of it."""

    _graph: ReferenceGraph

    def create(self, schema: str) -> None:
        source = Source("<schema>", schema)
        with _refusing():
            check_reserved_names(source)
            self._graph = ReferenceGraph(build_schema(source))

    def load(
        self,
        data: str,
        mode: Mode,
        *,
        branch: str,
        base: str | None,
        actor: str | None,
        message: str | None,
        expected_head: str | None,
        load_id: str | None,
        max_errors: int,
        quarantine: bool,
        cascade: bool,
    ) -> LoadResult:
        return self._graph.load(
            data,
            mode,
            branch=branch,
            base=base,
            actor=actor,
            message=message,
            expected_head=expected_head,
            load_id=load_id,
            max_errors=max_errors,
            quarantine=quarantine,
            cascade=cascade,
        )

    def mutate(
        self,
        query: str,
        parameters: Mapping[str, Json],
        *,
        branch: str,
        actor: str | None,
        message: str | None,
        expected_head: str | None,
    ) -> MutationResult:
        with _refusing():
            compiled = compile_query(Source("<query>", query), self._graph.catalog)
            plan = compiled.mutation_plan()
            bound = bind_parameters(plan.parameters, parameters)
        return self._graph.mutate(
            plan, bound, branch=branch, actor=actor, message=message, expected_head=expected_head
        )

    def create_branch(self, name: str, source: str) -> None:
        self._graph.create_branch(name, source)

    def delete_branch(self, name: str) -> None:
        self._graph.delete_branch(name)

    def merge(
        self, source: str, into: str, *, actor: str | None, expected_head: str | None
    ) -> MergeResult:
        return self._graph.merge(source, into, actor=actor, expected_head=expected_head)

    def apply_schema(self, schema: str, *, actor: str | None) -> Receipt:
        source = Source("<schema>", schema)
        accepted = self._graph.catalog.ir
        with _refusing():
            check_reserved_names(source)
            desired = build_declared(source)
            plan = plan_migration(accepted, desired)
            refuse_unsupported(plan, source)
            next_schema = accepted
            if plan.steps:
                next_schema = carry_identities(accepted, desired, plan, self._columns_ever())
        return self._graph.apply_schema(next_schema, actor=actor)

    def branches(self) -> list[str]:
        return self._graph.branches()

    def commits(self, branch: str) -> list[Receipt]:
        return [commit.receipt for commit in self._graph.commits(branch)]

    def query(self, query: str, parameters: Mapping[str, Json], target: str) -> JsonRows:
        with _refusing():
            source = Source("<query>", query)
            plan = compile_query(source, self._graph.catalog).read_plan()
            bound = bind_parameters(plan.parameters, parameters)
        return json_rows(self._graph.query(plan, bound, target))

    def export(self, target: str, types: Sequence[str]) -> list[str]:
        return self._graph.export(target, types)

    def diff(self, before: str, after: str) -> tuple[Change, ...]:
        return self._graph.diff(before, after)

    def _columns_ever(self) -> Mapping[int, set[str]]:
        columns: defaultdict[int, set[str]] = defaultdict(set)
        for commit in self._graph.commits():
            for declared in commit.image.catalog:
                columns[declared.type_id] |= {p.column for p in declared.properties.values()}
        return columns


@contextmanager
def _refusing() -> Iterator[None]:
    """Errors of the compiler as refusals."""
    try:
        yield
    except OmnigraphError as error:
        raise Refusal(error.kind, str(error)) from error
