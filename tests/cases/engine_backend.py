"""The engine as stories see it, for the verbs it has: loads, mutations, branches and readings."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import omnigraph as og
from omnigraph.errors import LoadError as EngineLoadError
from omnigraph.errors import MergeConflicts, OmnigraphError
from omnigraph.plan.params import JsonParameters
from tests.support.cases.actions import (
    ApplySchema,
    CreateBranch,
    DeleteBranch,
    Load,
    Merge,
    Mutate,
)
from tests.support.cases.story import Action, Case
from tests.support.outcome import (
    Change,
    Conflict,
    Counts,
    Json,
    LoadError,
    LoadResult,
    MergeResult,
    MutationResult,
    Receipt,
    ReceiptWarning,
    Refusal,
)
from tests.support.receipts import receipt_of_commit

_names = count()


class EngineBackend:
    """A graph in memory. Verbs the engine lacks are never called: see `can_play`."""

    _graph: og.Graph

    def create(self, schema: str) -> None:
        with _refusing():
            self._graph = og.init(f"memory://story-{next(_names)}", schema + "\n")

    def load(
        self,
        data: str,
        mode: str,
        *,
        branch: str,
        base: str | None,
        actor: str | None,
        quarantine: bool,
        **options: Any,
    ) -> LoadResult:
        assert not quarantine, "stories with quarantine are not played"
        with _refusing():
            graph = self._graph.as_actor(actor)
            done = graph.load(data.encode(), mode, branch=branch, create_from=base, **options)
        return LoadResult(
            receipt=_receipt(done.receipt),
            rows_loaded=done.rows_loaded,
            base_branch=done.base_branch,
            branch_created=done.branch_created,
            load_id=done.load_id,
            replayed=done.replayed,
        )

    def mutate(
        self,
        query: str,
        parameters: Mapping[str, Json],
        *,
        branch: str,
        actor: str | None,
        **options: Any,
    ) -> MutationResult:
        # The text of a story has no line break of its own at its end.
        with _refusing():
            given = JsonParameters(parameters)
            graph = self._graph.as_actor(actor)
            done = graph.mutate(query + "\n", given, branch=branch, **options)
        return MutationResult(_receipt(done.receipt), done.affected_nodes, done.affected_edges)

    def create_branch(self, name: str, source: str) -> None:
        with _refusing():
            self._graph.branches.create(name, source)

    def delete_branch(self, name: str) -> None:
        with _refusing():
            self._graph.branches.delete(name)

    def branches(self) -> list[str]:
        return list(self._graph.branches)

    def commits(self, branch: str) -> list[Receipt]:
        with _refusing():
            found = self._graph.log(branch, reverse=True)
            return [_receipt(receipt_of_commit(self._graph, c.id)) for c in found]

    def query(self, query: str, parameters: Mapping[str, Json], target: str):
        with _refusing():
            given = JsonParameters(parameters)
            rows = self._graph.query(query + "\n", given, at=target).to_envelope()["rows"]
        self._assert_same(rows, query, given, target)
        return rows

    def _assert_same(self, rows: Any, query: str, given: JsonParameters, target: str) -> None:
        """The same rows are found in memory and by look-ups."""
        if "limit" in query and "order" not in query:
            return
        for mode in ("csr", "indexed"):
            text = f"set traversal_mode = {mode};\n{query}\n"
            again = self._graph.query(text, given, at=target).to_envelope()["rows"]
            assert sorted(map(repr, again)) == sorted(map(repr, rows)), mode

    def export(self, target: str, types: Sequence[str]) -> list[str]:
        out = io.BytesIO()
        with _refusing():
            self._graph.export(out, at=target, types=types)
        return out.getvalue().decode().splitlines()

    def merge(self, source: str, into: str, *, actor: str | None, **options: Any) -> MergeResult:
        with _refusing():
            done = self._graph.as_actor(actor).merge(source, into, **options)
        return MergeResult(_receipt(done.receipt), done.outcome.value)

    def apply_schema(self, schema: str, *, actor: str | None) -> Receipt:
        with _refusing():
            return _receipt(self._graph.as_actor(actor).schema.apply(schema + "\n").receipt)

    def diff(self, before: str, after: str) -> tuple[Change, ...]:
        with _refusing():
            found = self._graph.diff(before, after)
        return tuple(
            Change(c["table_key"], c["id"], c["op"], c["before"], c["after"])
            for c in found.to_json(rows=True)["changes"]
        )


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except EngineLoadError as error:
        found = tuple(
            LoadError(
                code=p.code,
                message=p.message,
                record=p.record,
                line=p.line,
                type=p.type,
                id=p.id,
                property=p.property,
            )
            for p in error.load_errors
        )
        raise Refusal(
            error.kind,
            str(error),
            load_errors=found,
            load_errors_total=error.load_errors_total,
        ) from error
    except MergeConflicts as error:
        conflicts = (Conflict(c.table_key, c.row_id, c.kind, c.message) for c in error.conflicts)
        raise Refusal(error.kind, str(error), conflicts=tuple(conflicts)) from error
    except OmnigraphError as error:
        raise Refusal(error.kind, str(error)) from error


def _receipt(receipt: og.Receipt) -> Receipt:
    counts: Mapping[str, Counts] = {
        key: Counts(c.inserted, c.updated, c.deleted) for key, c in receipt.counts.items()
    }
    warnings = (ReceiptWarning(w.code, w.message, w.count or 0) for w in receipt.warnings)
    return Receipt(
        commit=receipt.graph_commit_id,
        parent=receipt.parent_commit_id,
        branch=receipt.branch,
        version=receipt.manifest_version,
        operation=receipt.operation.value,
        actor=receipt.actor_id,
        counts=counts,
        warnings=tuple(warnings),
    )


def can_play(case: Case) -> bool:
    """Whether a story needs only what the engine has today."""
    return all(_can_play(step.does) for step in case.steps)


def _can_play(does: object) -> bool:
    if isinstance(does, Load):
        return not does.quarantine
    if isinstance(does, Action):
        return isinstance(does, ApplySchema | CreateBranch | DeleteBranch | Merge | Mutate)
    return True
