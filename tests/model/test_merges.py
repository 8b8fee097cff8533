"""Random branches that merge each other, also crosswise and after their sources are gone.

The engine gives the outcome, the conflicts and the rows that the reference graph gives.
"""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from omnigraph.api.graph import init
from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import MergeConflicts, OmnigraphError
from omnigraph.language.syntax import Source
from tests.model import operations
from tests.model.operations import Operation
from tests.model.worlds import content_of, world_of_model
from tests.support.model import ReferenceGraph
from tests.support.outcome import MergeResult, Refusal

SCHEMA = """
node Person { name: String @key  age: I32?  @unique(age) }
node Company { name: String @key }
edge Knows: Person -> Person { @unique(src, dst) }
edge WorksAt: Person -> Company @card(0..1) { @unique(src, dst) }
"""
people, firms = "abcd", "XY"
branches = st.sampled_from(["main", "main", "f", "g", "h"])
rows = st.one_of(
    st.builds("{}={}".format, st.sampled_from(people), st.integers(0, 9)),
    st.sampled_from([*people, *firms]),
    st.builds("{}>{}".format, st.sampled_from(people), st.sampled_from(firms)),
    st.builds("{}-{}".format, st.sampled_from(people), st.sampled_from(people)),
)
statements = st.one_of(
    rows.map("+{}".format),
    st.builds("{}:={}".format, st.sampled_from(people), st.integers(0, 9)),
    st.builds("!{}{}".format, st.sampled_from(people), st.sampled_from(["", ">", "-"])),
)
changes = st.lists(statements, min_size=1, max_size=2)
others = st.sampled_from(["f", "g", "h"])


BEGINNINGS: dict[str, tuple[list[str], list[str]]] = {
    "already_up_to_date": ([], []),
    "cardinality_violation": (["+a>X"], ["+a>Y"]),
    "delete_vs_update": (["!b"], ["b:=3"]),
    "divergent_insert": (["+c=3"], ["+c=4"]),
    "divergent_update": (["a:=3"], ["a:=4"]),
    "fast_forward": ([], ["+c"]),
    "merged": (["+c"], ["+d"]),
    "orphan_edge": (["!X"], ["+a>X"]),
    "unique_violation": (["+c=9"], ["+d=9"]),
}
"""What main and its branch `f` do, by what then comes of merging `f`: every outcome and conflict."""


class Merges(RuleBasedStateMachine):
    """One graph and the model of it; whatever is done to one is done to the other."""

    def __init__(self, outcomes: Counter[str], beginning: str | None = None) -> None:
        super().__init__()
        self.outcomes = outcomes
        self._small = patch("omnigraph.diff.changes.COMPARED_ROWS", 3)
        self._small.start()
        self.graph = init(f"memory://{uuid.uuid4().hex}", SCHEMA)
        self.model = ReferenceGraph(compile_schema(Source("<schema>", SCHEMA)).ir)
        self._do(operations.load("main", "append", ["a=1", "b=2", "X", "Y", "a-b"], None))
        self._do(operations.create_branch("f", "main"))
        if beginning is not None:
            for branch, does in zip(("main", "f"), BEGINNINGS[beginning], strict=True):
                if does:
                    self._do(operations.mutate(branch, does))
            self._merge("f", "main")

    def teardown(self) -> None:
        self._small.stop()

    @rule(on=branches, does=changes)
    def mutate(self, on: str, does: list[str]) -> None:
        self._do(operations.mutate(self._there(on), does))

    @rule(on=branches, rows=st.lists(rows, min_size=1, max_size=3), cascade=st.booleans())
    def overwrite(self, on: str, rows: list[str], cascade: bool) -> None:
        self._do(operations.load(self._there(on), "overwrite", rows, None, cascade=cascade))

    @rule(name=others, of=branches)
    def branch(self, name: str, of: str) -> None:
        if self._there(name) != name:
            self._do(operations.create_branch(name, self._there(of)))

    @rule(name=others)
    def delete(self, name: str) -> None:
        if self._there(name) == name:
            self._do(operations.delete_branch(name))

    @rule()
    def clean_up(self) -> None:
        """Takes nothing that a branch holds or that a later merge compares with."""
        nothing = timedelta()
        self.graph.maintenance.cleanup(keep_versions=1, older_than=nothing, min_age=nothing)
        self._compare()

    @rule(source=others, one=branches, other=branches, does=changes, then=changes)
    def merge_twice_and_delete(
        self, source: str, one: str, other: str, does: list[str], then: list[str]
    ) -> None:
        """Two branches take the same changes from a third, which is gone when one is merged on."""
        source, one, other = self._there(source), self._there(one), self._there(other)
        if len({source, one, other}) < 3 or source == "main":
            return
        self._do(operations.mutate(source, does))
        self._merge(source, one)
        self._merge(source, other)
        self._do(operations.delete_branch(source))
        self._do(operations.mutate(one, then))
        self._merge(one, other)

    @rule(source=branches, into=branches)
    def merge(self, source: str, into: str) -> None:
        self._merge(self._there(source), self._there(into))

    @rule(one=branches, other=others, here=changes, there=changes, back=st.booleans())
    def part_and_merge(
        self, one: str, other: str, here: list[str], there: list[str], back: bool
    ) -> None:
        """Both sides do something before one is merged into the other, and that one back again."""
        one, other = self._there(one), self._there(other)
        self._do(operations.mutate(one, here))
        self._do(operations.mutate(other, there))
        self._merge(one, other)
        if back:
            self._merge(other, one)

    @rule(one=branches, other=others, here=changes, there=changes, then=changes)
    def merge_crosswise(
        self, one: str, other: str, here: list[str], there: list[str], then: list[str]
    ) -> None:
        """Each side is merged into the other as it was before, so that they have two ancestors."""
        one, other = self._there(one), self._there(other)
        if one == other or "x" in self.model.branches():
            return
        self._do(operations.mutate(one, here))
        self._do(operations.mutate(other, there))
        self._do(operations.create_branch("x", one))
        self._merge(other, one)
        self._merge("x", other)
        self._do(operations.delete_branch("x"))
        self._do(operations.mutate(one, then))
        self._merge(one, other)

    @rule(one=branches, other=branches)
    def diff(self, one: str, other: str) -> None:
        one, other = self._there(one), self._there(other)
        found = self.graph.diff(one, other).to_arrow().to_pylist()
        expected = self.model.diff(one, other)
        assert [(c["table_key"], c["id"], c["op"]) for c in found] == [
            (c.table_key, c.id, c.op) for c in expected
        ]

    def _there(self, branch: str) -> str:
        return branch if branch in self.model.branches() else "main"

    def _merge(self, source: str, into: str) -> bool:
        """Merge both; whether that changed anything."""
        expected = self._foretold(source, into)
        if isinstance(expected, Refusal):
            with pytest.raises(OmnigraphError) as raised:
                self.graph.merge(source, into)
            assert raised.value.kind == expected.kind
            if isinstance(raised.value, MergeConflicts):
                found = [(c.table_key, c.row_id, c.kind) for c in raised.value.conflicts]
                assert found == [(c.table_key, c.row_id, c.kind) for c in expected.conflicts]
                self.outcomes.update(kind for _, _, kind in found)
            self._compare()
            return False
        done = self.graph.merge(source, into)
        assert done.outcome.value == expected.outcome
        assert {key: c.to_json() for key, c in done.receipt.counts.items()} == {
            key: {"inserted": c.inserted, "updated": c.updated, "deleted": c.deleted}
            for key, c in expected.receipt.counts.items()
        }
        self.outcomes[expected.outcome] += 1
        self._compare()
        return expected.receipt.commit is not None

    def _foretold(self, source: str, into: str) -> MergeResult | Refusal:
        try:
            return self.model.merge(source, into)
        except Refusal as refusal:
            return refusal

    def _do(self, operation: Operation) -> None:
        after = operation.foretell(self.model)
        if isinstance(after, Refusal):
            with pytest.raises(OmnigraphError) as raised:
                operation.on_engine(self.graph)
            assert raised.value.kind == after.kind
            return
        operation.on_engine(self.graph)
        self.model = after
        self._compare()

    def _compare(self) -> None:
        assert content_of(self.graph) == world_of_model(self.model).content


RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def run(beginning: str | None, examples: int, steps: int) -> Counter[str]:
    """Random steps, each time after the same beginning; how often which outcome came up."""
    outcomes: Counter[str] = Counter()

    class MergesAfter(Merges):
        def __init__(self) -> None:
            super().__init__(outcomes, beginning)

    run_state_machine_as_test(
        MergesAfter, settings=settings(RELAXED, max_examples=examples, stateful_step_count=steps)
    )
    return outcomes


def test_branches_that_merge_each_other_hold_what_the_reference_graph_says():
    run(None, 4, 10)


@pytest.mark.parametrize("outcome", BEGINNINGS)
def test_every_outcome_and_conflict_comes_up(outcome):
    outcomes: Counter[str] = Counter()
    machine = Merges(outcomes, outcome)
    machine.teardown()
    assert outcomes == {outcome: 1}


@pytest.mark.slow
@pytest.mark.parametrize("beginning", [None, *BEGINNINGS])
def test_many_more_branches_that_merge_each_other(beginning):
    """Every outcome and conflict comes up, each followed by random steps."""
    outcomes = run(beginning, 60 if beginning is None else 12, 25)
    print(dict(outcomes))
    assert beginning is None or outcomes[beginning] > 0
    assert set(outcomes) <= set(BEGINNINGS)
