"""Random histories, with crashes in them: the engine ends up where the reference graph says.

After a crash the operation has happened, or it has not, or recovery will make it happen; which of
these is known once recovery has been there, and not before. Until then there are several models, one
of which is right.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import OmnigraphError
from omnigraph.faults import FAULT_POINTS
from omnigraph.language.syntax import Source
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.model import operations
from tests.model.operations import SCHEMA, Mode, Operation
from tests.model.worlds import World, content_of, made_by_users, world_of, world_of_model
from tests.support.background import wait_for_compaction
from tests.support.faults import Fail, FailStorage, FaultAction, Hit, InjectedFault, armed
from tests.support.model import ReferenceGraph
from tests.support.outcome import Refusal

ELSEWHERE = (
    "init.", "upgrade.", "bootstrap.", "durability.", "lock.renew", "lock.before_takeover",
    "load.task_", "load.frames_", "merge.task_", "schema_apply.before_removal", "embed.",
    "ensure_indices.", "mutation.post_columns", "tag_", "branch_create.before_later_commits_go",
    "branch_create.before_ref_is_named",
)  # fmt: skip
"""Steps that none of these operations takes on a disk that is not told to sync."""
POINTS = [p.name for p in FAULT_POINTS.all() if not p.name.startswith(ELSEWHERE)]

people, firms = "abc", "XY"
branches = st.sampled_from(["main", "main", "f", "f/g", "h"])
names = st.sampled_from(["f", "f/g", "h"])
handles = st.sampled_from(["first", "second"])
rows = st.one_of(
    st.builds("{}={}".format, st.sampled_from(people), st.integers(0, 2)),
    st.sampled_from([*people, *firms]),
    st.builds("{}>{}".format, st.sampled_from(people), st.sampled_from(firms)),
    st.builds("{}-{}".format, st.sampled_from(people), st.sampled_from(people)),
)
statements = st.one_of(
    rows.map("+{}".format),
    st.builds("{}:={}".format, st.sampled_from(people), st.integers(0, 2)),
    st.builds("!{}{}".format, st.sampled_from(people), st.sampled_from(["", ">", "-"])),
    st.builds("!{}".format, st.sampled_from(firms)),
)


def failures(*near: str) -> st.SearchStrategy[str | None]:
    """Where the operation is made to fail, how, and on which visit there; mostly at a near step."""
    points = [point for point in POINTS if point.startswith(near)]
    return st.none() | st.builds(
        "{} {} @{}".format,
        st.sampled_from([*points * 4, *POINTS]),
        st.sampled_from(["crash", "crash", "storage fails", "storage fails for good"]),
        st.sampled_from([1, 1, 1, 2, 3]),
    )


in_writes = failures("graph_publish.", "mutation.p", "recovery.sidecar_w", "recovery.sidecar_d")
in_merges = failures("graph_publish.", "mutation.post_t", "branch_merge.", "recovery.sidecar_w")
in_reshaping = failures("graph_publish.", "schema_apply.", "recovery.sidecar_w")
in_upkeep = failures("optimize.", "cleanup.")
in_branching = failures("branch_", "fork.", "lock.after")
in_recovery = failures("graph_publish.", "recovery.")

SEVERAL_TABLES = ("a=1", "Y", "a>Y", "b-a")
PARTLY_WRITTEN = "mutation.post_table_commit"
HALF_DONE = (PARTLY_WRITTEN, "mutation.post_finalize_pre_publisher")
"""Where a write dies so that recovery has to take it back, and so that it has to go on with it."""
RESTORED = "recovery.post_table_restore_pre_publish"
CLEANING = "branch_delete.before_table_cleanup"
RECOVERING = (
    "graph_publish.after_manifest_commit",
    "graph_publish.before_manifest_commit",
    "recovery.before_publish",
    RESTORED,
    "recovery.sidecar_delete",
    "recovery.sidecar_list",
)
"""The steps of recovery itself."""
ways_to_recover = st.sampled_from(["refresh", "reopen"])


@dataclass(frozen=True)
class Possible:
    """What the graph may be, and the interrupted operations that recovery may still complete."""

    model: ReferenceGraph
    waiting: tuple[Operation, ...] = ()

    def outcomes(self) -> list[Possible]:
        """This one, and what it becomes by completing any of what waits, in any order."""
        found = [self]
        for operation in self.waiting:
            after = operation.foretell(self.model)
            if not isinstance(after, Refusal):
                rest = tuple(other for other in self.waiting if other is not operation)
                found += Possible(after, rest).outcomes()
        return found


class LookAndFail:
    """Note where it is and look at the graph in the moment of the failure, then fail."""

    def __init__(self, look: Callable[[Hit], None], fail: FaultAction) -> None:
        self._look = look
        self._fail = fail
        self.has_acted = False
        self.found: AssertionError | None = None

    def act(self, hit: Hit) -> None:
        self.has_acted = True
        try:
            self._look(hit)
        except AssertionError as error:
            # It may be that of a thread which nobody hears of.
            self.found = error
            raise
        self._fail.act(hit)


class Histories(RuleBasedStateMachine):
    """One graph, two handles that write to it, and a reader."""

    reached: ClassVar[Counter[str]] = Counter()
    """How often something failed at each point, in all histories."""
    reached_again: ClassVar[Counter[str]] = Counter()
    """The same, where something had failed before and was not recovered yet."""

    def __init__(self) -> None:
        super().__init__()
        self._context = ExitStack()
        folder = tempfile.mkdtemp()
        self._context.callback(shutil.rmtree, folder)
        for setting in (
            patch.dict(os.environ, {"OMNIGRAPH_DURABILITY": "none"}),
            patch("omnigraph.commit.background.MAX_SMALL_FRAGMENTS", 2),
            patch("omnigraph.commit.background.INDEX_LAG_ROWS", 3),
            patch("omnigraph.versioning.manifest_compaction.MANIFEST_SMALL_FRAGMENTS", 4),
            patch("omnigraph.versioning.manifest_compaction.INDEX_LAG_ROWS", 20),
            patch("omnigraph.commit.tables.INDEX_MIN_ROWS", 2),
        ):
            self._context.enter_context(setting)
        self._root = Path(folder) / "graph"
        self._handles = {"first": init(self._root, SCHEMA), "second": open_graph(self._root)}
        self._reader = open_graph(self._root, read_only=True)
        empty = ReferenceGraph(compile_schema(Source("<schema>", SCHEMA)).ir)
        self._possible = [Possible(empty)]
        self._unrecovered = 0
        self._do(operations.load("main", "append", ["a", "b", "X"], None), "first", None)

    def teardown(self) -> None:
        self._context.close()

    # -- what is done -----------------------------------------------------------------------

    @rule(
        on=branches,
        mode=st.sampled_from(["append", "merge", "merge", "patch", "patch", "overwrite"]),
        rows=st.lists(rows, min_size=1, max_size=4),
        load_id=st.sampled_from([None, None, None, "once"]),
        cascades=st.booleans(),
        by=handles,
        fails=in_writes,
    )
    def load(
        self,
        on: str,
        mode: Mode,
        rows: list[str],
        load_id: str | None,
        cascades: bool,
        by: str,
        fails: str | None,
    ) -> None:
        cascade = cascades and mode == "overwrite"
        operation = operations.load(self._there(on), mode, rows, load_id, cascade=cascade)
        self._do(operation, by, fails)

    @rule(on=branches, rows=st.lists(rows, min_size=1, max_size=3), by=handles, fails=in_writes)
    def insert(self, on: str, rows: list[str], by: str, fails: str | None) -> None:
        self._do(operations.mutate(self._there(on), [f"+{row}" for row in rows]), by, fails)

    @rule(
        on=branches, does=st.lists(statements, min_size=1, max_size=3), by=handles, fails=in_writes
    )
    def mutate(self, on: str, does: list[str], by: str, fails: str | None) -> None:
        self._do(operations.mutate(self._there(on), does), by, fails)

    @rule(name=names, of=branches, then=st.booleans(), by=handles, fails=in_branching)
    def create_or_delete_branch(
        self, name: str, of: str, then: bool, by: str, fails: str | None
    ) -> None:
        if self._there(name) != name:
            self._do(operations.create_branch(name, self._there(of)), by, fails)
            if then and self._there(name) == name:
                self._do(operations.load(name, "merge", SEVERAL_TABLES, None), by, None)
            return
        for handle, graph in self._handles.items():
            if graph.branch == name:
                self._handles[handle] = graph.checkout("main")
        self._do(operations.delete_branch(name), by, fails)

    @rule(source=branches, into=branches, by=handles, fails=in_merges)
    def merge(self, source: str, into: str, by: str, fails: str | None) -> None:
        source, into = self._there(source), self._there(into)
        # What recovery took back is a commit the model knows nothing of, and a merge brings it along,
        # also when the merge itself has waited for that recovery.
        known = {commit.id for commit in self._reader.log(into)}
        brought = {commit.id for commit in self._reader.log(source)} - known
        is_up_to_date = not brought and not self._unrecovered
        if is_up_to_date or brought & made_by_users(self._reader, source).keys():
            self._do(operations.merge(source, into), by, fails)

    @rule(to=st.sampled_from(sorted(operations.SHAPES)), by=handles, fails=in_reshaping)
    def reshape(self, to: str, by: str, fails: str | None) -> None:
        self._do(operations.reshape(to), by, fails)

    @rule(cleans=st.booleans(), by=handles, fails=in_upkeep)
    @precondition(lambda self: not self._unrecovered)
    def keep_up(self, cleans: bool, by: str, fails: str | None) -> None:
        # An optimize is a commit the model knows nothing of, and a merge of main would bring it along.
        cleans = cleans or len(self._reader.branches) > 1
        upkeep = _clean_up if cleans else _optimize
        self._do(operations.nothing(upkeep), by, fails)

    @rule(
        on=branches,
        point=st.sampled_from(HALF_DONE),
        by=handles,
        then=st.sampled_from(RECOVERING),
        how=ways_to_recover,
    )
    @precondition(lambda self: not self._unrecovered)
    def die_in_a_write_and_in_its_recovery(
        self, on: str, point: str, by: str, then: str, how: str
    ) -> None:
        load = operations.load(self._there(on), "merge", SEVERAL_TABLES, None)
        self._do(load, by, f"{point} crash @1")
        if self._unrecovered:
            self.recover(how, by, f"{then} crash @1")

    @rule(how=ways_to_recover, by=handles, fails=in_recovery)
    @precondition(lambda self: self._unrecovered)
    def recover(self, how: str, by: str, fails: str | None) -> None:
        if how == "refresh":
            self._do(operations.nothing(_recover), by, fails)
        else:
            self._do(operations.nothing(lambda _: open_graph(self._root)), by, fails)
            self._reopen(by)

    @rule(branch=branches, by=handles)
    @precondition(lambda self: not self._unrecovered)
    def reopen(self, branch: str, by: str) -> None:
        self._reopen(by)
        self._handles[by] = self._handles[by].checkout(self._there(branch))

    def _reopen(self, by: str) -> None:
        self._handles[by] = open_graph(self._root)
        self._reader = open_graph(self._root, read_only=True)

    def _there(self, branch: str) -> str:
        """The branch, or main where there is no such branch."""
        return branch if branch in self._reader.branches else "main"

    # -- how it is checked ------------------------------------------------------------------

    def _do(self, operation: Operation, by: str, fails: str | None) -> None:
        """Do it to the graph and to every model that may be right, and compare them."""
        graph = self._handles[by]
        before = [outcome for known in self._possible for outcome in known.outcomes()]
        after = [operation.foretell(known.model) for known in before]
        grown = [
            Possible(model, known.waiting)
            for known, model in zip(before, after, strict=True)
            if not isinstance(model, Refusal)
        ]
        possible = [*before, *grown]
        trap = self._trap(fails, possible)
        error: OmnigraphError | InjectedFault | None = None
        with ExitStack() as traps:
            if trap is not None:
                traps.enter_context(trap[1])
            try:
                operation.on_engine(graph)
            except (OmnigraphError, InjectedFault) as raised:
                error = raised
            wait_for_compaction()
        if trap is not None and trap[0].found is not None:
            raise trap[0].found
        has_failed = trap is not None and trap[0].has_acted
        if error is None:
            self._possible = grown
            assert grown, f"it was to be refused: {[str(a) for a in after]}"
        elif has_failed:
            interrupted = [Possible(known.model, (*known.waiting, operation)) for known in before]
            self._possible = [*interrupted, *grown]
        else:
            assert isinstance(error, OmnigraphError)
            self._possible = [
                known
                for known, expected in zip(before, after, strict=True)
                if isinstance(expected, Refusal) and expected.kind == error.kind
            ]
            assert self._possible, f"{type(error).__name__}: {error}"
        self._look(possible)
        self._unrecovered = self._unrecovered + 1 if has_failed or self._unrecovered else 0
        if self._unrecovered not in (1, 2):
            self._recover_all(by)

    def _trap(self, fails: str | None, possible: list[Possible]) -> tuple[LookAndFail, Any] | None:
        if fails is None:
            return None
        point, manner = fails.split(" ", 1)
        how, first = manner.rsplit(" @", 1)

        def look(hit: Hit) -> None:
            self.reached[hit.name] += 1
            self.reached_again[hit.name] += bool(self._unrecovered)
            self._look(possible)

        action = LookAndFail(look, Fail() if how == "crash" else FailStorage())
        times = None if how.endswith("for good") else 1
        return action, armed(point, action, first=int(first), times=times)

    def _look(self, possible: list[Possible]) -> None:
        """A reader sees, of every branch, what it holds in one of the models."""
        worlds = [world_of_model(known.model).content for known in possible]
        for branch, found in content_of(self._reader).items():
            assert found in [world[branch] for world in worlds if branch in world], branch

    def _recover_all(self, by: str) -> None:
        """Recovery has been everywhere: one model is left, and nothing else waits or is in the way."""
        if self._unrecovered:
            self._handles[by].maintenance.recover()
        self._unrecovered = 0
        world = world_of(self._reader)
        models = [after.model for known in self._possible for after in known.outcomes()]
        right = [model for model in models if world_of_model(model) == world]
        assert right, _difference(world, [world_of_model(model) for model in models])
        self._possible = [Possible(right[0])]
        assert list((self._root / RECOVERY_DIR).glob("*")) == []
        for ref in self._reader._core.branches.list():
            self._check_branch(ref.public, ref.physical)

    def _check_branch(self, branch: str, physical: str | None) -> None:
        commits = self._reader.log(branch, reverse=True)
        assert [commit.number for commit in commits] == list(range(1, len(commits) + 1))
        parents = [commit.parents[:1] for commit in commits]
        assert parents == [(), *((commit.id,) for commit in commits[:-1])]
        found = self._reader.maintenance.recoveries(branch)
        recovered = [recorded.audit.operation_id for recorded in found]
        assert len(recovered) == len(set(recovered))
        for key, entry in self._reader._snapshot(branch).entries.items():
            if entry.branch == physical:
                head = self._reader._core.tables.open(entry.location, entry.branch)
                assert (key, head.version) == (key, entry.version)


def _clean_up(graph: Graph) -> object:
    return graph.maintenance.cleanup(keep_versions=1, min_age=timedelta())


def _optimize(graph: Graph) -> object:
    return graph.maintenance.optimize()


def _recover(graph: Graph) -> None:
    graph.maintenance.recover()


def _difference(found: World, expected: list[World]) -> str:
    shown = [f"found {found}", *(f"or    {world}" for world in expected)]
    return "\n".join(shown)


RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def test_histories_with_crashes_end_where_the_reference_graph_says():
    run_state_machine_as_test(
        Histories, settings=settings(RELAXED, max_examples=4, stateful_step_count=15)
    )


@pytest.mark.slow
def test_many_more_histories_end_where_the_reference_graph_says():
    Histories.reached.clear()
    Histories.reached_again.clear()
    run_state_machine_as_test(
        Histories, settings=settings(RELAXED, max_examples=400, stateful_step_count=30)
    )
    print(f"failed at {dict(Histories.reached)}, again at {dict(Histories.reached_again)}")
    assert [point for point in POINTS if not Histories.reached[point]] == []
    assert [point for point in RECOVERING if not Histories.reached_again[point]] == []


@pytest.mark.parametrize(
    ("point", "then"),
    [(p, t) for p in HALF_DONE for t in RECOVERING if p == PARTLY_WRITTEN or t != RESTORED],
)
def test_a_recovery_that_dies_is_done_by_the_next(point, then):
    histories = Histories()
    try:
        histories.create_or_delete_branch("f", "main", True, "first", None)
        for on, how in (("main", "refresh"), ("f", "reopen")):
            before = histories.reached_again[then]
            histories.die_in_a_write_and_in_its_recovery(on, point, "first", then, how)
            assert histories.reached_again[then] > before
            histories._recover_all("second")
    finally:
        histories.teardown()


def test_a_branch_with_tables_of_its_own_is_deleted_although_removing_their_files_fails():
    histories = Histories()
    try:
        histories.create_or_delete_branch("f", "main", True, "first", None)
        before = histories.reached[CLEANING]
        histories.create_or_delete_branch("f", "main", False, "first", f"{CLEANING} crash @1")
        assert histories.reached[CLEANING] > before
        histories._recover_all("second")
    finally:
        histories.teardown()
