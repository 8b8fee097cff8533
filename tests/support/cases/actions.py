"""Steps that change the graph, or are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.cases.story import Result, Stage
from tests.support.model.branch_names import MAIN
from tests.support.model.load import Mode
from tests.support.outcome import Json


@dataclass(frozen=True, slots=True)
class Load:
    mode: Mode
    data: str
    branch: str = MAIN
    base: str | None = None
    actor: str | None = None
    message: str | None = None
    head: str | None = None
    id: str | None = None
    max_errors: int = 100
    quarantine: bool = False
    cascade: bool = False

    def perform(self, stage: Stage) -> Result:
        return stage.backend.load(
            self.data,
            self.mode,
            branch=self.branch,
            base=self.base,
            actor=self.actor,
            message=self.message,
            expected_head=stage.commit(self.head),
            load_id=self.id,
            max_errors=self.max_errors,
            quarantine=self.quarantine,
            cascade=self.cascade,
        )


@dataclass(frozen=True, slots=True)
class Mutate:
    query: str
    params: Mapping[str, Json] = field(default_factory=dict)
    branch: str = MAIN
    actor: str | None = None
    message: str | None = None
    head: str | None = None

    def perform(self, stage: Stage) -> Result:
        return stage.backend.mutate(
            self.query,
            self.params,
            branch=self.branch,
            actor=self.actor,
            message=self.message,
            expected_head=stage.commit(self.head),
        )


@dataclass(frozen=True, slots=True)
class CreateBranch:
    name: str
    source: str = MAIN

    def perform(self, stage: Stage) -> Result:
        stage.backend.create_branch(self.name, self.source)
        return None


@dataclass(frozen=True, slots=True)
class DeleteBranch:
    name: str

    def perform(self, stage: Stage) -> Result:
        stage.backend.delete_branch(self.name)
        return None


@dataclass(frozen=True, slots=True)
class Merge:
    source: str
    into: str = MAIN
    actor: str | None = None
    head: str | None = None

    def perform(self, stage: Stage) -> Result:
        head = stage.commit(self.head)
        return stage.backend.merge(self.source, self.into, actor=self.actor, expected_head=head)


@dataclass(frozen=True, slots=True)
class ApplySchema:
    schema: str
    actor: str | None = None

    def perform(self, stage: Stage) -> Result:
        receipt = stage.backend.apply_schema(self.schema, actor=self.actor)
        stage.schema = self.schema
        return receipt
