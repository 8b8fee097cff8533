"""The reference graph: branches, commits and the operations on them, in plain dictionaries.

Meant to be believed on reading: every commit holds the whole content, every operation copies it,
nothing is indexed. It reads no clock and no random number, so equal calls give equal graphs.
Tests: tests/unit/testing/test_model_*.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from omnigraph.catalog.ir import SchemaIR
from omnigraph.catalog.model import Catalog
from omnigraph.plan.changes import MutationPlan
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    ReadPlan,
)
from tests.support.model.branch_names import MAIN, public_name
from tests.support.model.export import export
from tests.support.model.history import Commit, ancestors, lineage, merge_bases, net_counts
from tests.support.model.image import Image, compare, migrate, restate
from tests.support.model.load import Mode, load
from tests.support.model.merge import Ancestor, combine, merge
from tests.support.model.mutate import mutate
from tests.support.model.read import Answer, View, answer
from tests.support.model.read.expressions import with_defaults
from tests.support.outcome import (
    Change,
    Counts,
    LoadResult,
    MergeResult,
    MutationResult,
    Receipt,
    ReceiptWarning,
    Refusal,
)

_LOAD_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")


def numbered_ids() -> Iterator[str]:
    """Ids for rows without a key: the shape of a ULID, counted up."""
    return (f"{number:026d}" for number in count(1))


class ReferenceGraph:
    """A graph that is easy to believe."""

    def __init__(self, schema: SchemaIR, ids: Iterator[str] | None = None) -> None:
        self._ids = numbered_ids() if ids is None else ids
        genesis = Commit(_commit_id(1), (), MAIN, 1, "init", Image.empty(Catalog.from_ir(schema)))
        self._commits = {genesis.id: genesis}
        self._heads = {MAIN: genesis.id}
        self._created_from: dict[str, str] = {}
        self._loads: dict[str, tuple[Mode, LoadResult]] = {}

    # -- reading ----------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The present schema; all branches share it."""
        return self._commits[self._heads[MAIN]].image.catalog

    def branches(self) -> list[str]:
        return [MAIN, *sorted(self._heads.keys() - {MAIN})]

    def head(self, branch: str = MAIN) -> Commit:
        """The newest commit of a branch. Raises `Refusal` when there is no such branch."""
        name = public_name(branch)
        if name not in self._heads:
            raise Refusal("not_found", f"branch '{name}' not found")
        return self._commits[self._heads[name]]

    def commits(self, branch: str = MAIN) -> list[Commit]:
        """The history of a branch, oldest first; what a merge brought in is not part of it."""
        return lineage(self._commits, self.head(branch).id)

    def commit(self, target: str | int, branch: str = MAIN) -> Commit:
        """The commit a branch name, commit id or version of a branch stands for."""
        if isinstance(target, int):
            history = self.commits(branch)
            if not 1 <= target <= len(history):
                raise Refusal("bad_request", f"branch '{branch}' has no version {target}")
            return history[target - 1]
        if target in self._heads:
            return self.head(target)
        if any(target == known.id for name in self._heads for known in self.commits(name)):
            return self._commits[target]
        if target in ancestors(self._commits, *self._heads.values()):
            raise Refusal("not_found", f"the branch of commit '{target}' is gone")
        raise Refusal("not_found", f"commit '{target}' not found")

    def at(self, target: str | int, branch: str = MAIN) -> Image:
        """The content at a target, under the present names of types and properties."""
        return restate(self.commit(target, branch).image, self.catalog)

    def diff(self, before: str, after: str) -> tuple[Change, ...]:
        """The net change between two targets."""
        left, right = self.commit(before).image, self.commit(after).image
        return compare(left, right, self.catalog)

    def export(self, target: str | int = MAIN, types: Sequence[str] = ()) -> list[str]:
        return export(self.at(target), types)

    def query(
        self,
        plan: ReadPlan,
        parameters: Mapping[str, object] | None = None,
        target: str | int = MAIN,
        *,
        view: View | None = None,
        now_ms: int = 0,
    ) -> Answer:
        """The answer to a read that was checked against the present schema."""
        bound = with_defaults(plan.parameters, {NOW_PARAMETER: now_ms, **(parameters or {})})
        return answer(self.at(target), plan, bound, view)

    # -- rows -------------------------------------------------------------------------------

    def load(
        self,
        text: str,
        mode: Mode = "merge",
        *,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        load_id: str | None = None,
        max_errors: int = 100,
        quarantine: bool = False,
        cascade: bool = False,
    ) -> LoadResult:
        """Load a JSON stream as one commit. A missing branch is made from `base` first."""
        if load_id is not None and not _LOAD_ID.match(load_id):
            raise Refusal("bad_request", f"invalid load id '{load_id}'")
        name = public_name(branch)
        origin = base if base is not None and name not in self._heads else None
        head = self.head(name if origin is None else origin)
        earlier = self._load_of(head, load_id)
        if earlier is not None:
            first_mode, first = earlier
            if first_mode != mode:
                raise Refusal("conflict", f"load id '{load_id}' was already used")
            return replace(first, replayed=True)
        _expect(name, head, expected_head)
        if cascade and mode != "overwrite":
            raise Refusal("bad_request", f"a load in mode {mode} removes no nodes")
        done = load(
            head.image,
            text,
            mode,
            self._ids,
            max_errors,
            quarantine=quarantine,
            cascade=cascade,
        )
        if origin is not None:
            self._created_from[name] = public_name(origin)
        commit = self._publish(
            "load",
            name,
            (head,),
            done.image,
            actor=actor,
            message=message,
            counts=net_counts(head.image, done.image, done.touched),
            warnings=done.warnings,
        )
        result = LoadResult(
            receipt=commit.receipt,
            rows_loaded=done.rows_loaded,
            base_branch=base,
            branch_created=origin is not None,
            load_id=load_id,
            quarantined=done.quarantined,
        )
        self._loads[commit.id] = (mode, result)
        return result

    def mutate(
        self,
        plan: MutationPlan,
        parameters: Mapping[str, object] | None = None,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        now_ms: int = 0,
    ) -> MutationResult:
        """Run a mutation as one commit, or as none when nothing changes in the end."""
        name, head = public_name(branch), self.head(branch)
        _expect(name, head, expected_head)
        bound = with_defaults(plan.parameters, {NOW_PARAMETER: now_ms, **(parameters or {})})
        done = mutate(head.image, plan, bound, self._ids)
        counts = net_counts(head.image, done.image, done.touched)
        receipt = _nothing(name, head, "mutate", actor)
        if counts:
            receipt = self._publish(
                "mutate",
                name,
                (head,),
                done.image,
                actor=actor,
                message=message,
                counts=counts,
                warnings=done.warnings,
            ).receipt
        return MutationResult(receipt, done.affected_nodes, done.affected_edges)

    # -- branches and schema ----------------------------------------------------------------

    def create_branch(self, name: str, source: str = MAIN) -> None:
        new = public_name(name)
        if new == MAIN:
            raise Refusal("bad_request", "cannot create branch 'main'")
        if new in self._heads:
            raise Refusal("conflict", f"branch '{new}' already exists")
        self._heads[new] = self.head(source).id
        self._created_from[new] = public_name(source)

    def delete_branch(self, name: str) -> None:
        gone = public_name(name)
        if gone == MAIN:
            raise Refusal("bad_request", "cannot delete branch 'main'")
        self.head(gone)
        children = sorted(child for child, parent in self._created_from.items() if parent == gone)
        if children:
            raise Refusal("conflict", f"branch '{children[0]}' still depends on it: '{gone}'")
        del self._heads[gone]
        del self._created_from[gone]

    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
    ) -> MergeResult:
        """Bring the changes of one branch into another, as one commit with two parents."""
        name = public_name(into)
        if public_name(source) == name:
            raise Refusal("bad_request", "merge needs distinct source and target branches")
        theirs, ours = self.head(source), self.head(name)
        _expect(name, ours, expected_head)
        bases = self._bases([theirs.id], [ours.id])
        if bases == [theirs.id]:
            return MergeResult(_nothing(name, ours, "merge", actor), "already_up_to_date")
        done = merge(self._ancestor(bases), theirs.image, ours.image)
        commit = self._publish(
            "merge",
            name,
            (ours, theirs),
            done.image,
            actor=actor,
            message=message,
            counts=net_counts(ours.image, done.image, done.written),
        )
        return MergeResult(commit.receipt, "fast_forward" if bases == [ours.id] else "merged")

    def _bases(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        return merge_bases(self._commits, left, right)

    def _ancestor(self, bases: Sequence[str]) -> Ancestor:
        """What branches have in common. After merging each other crosswise, that is a merge itself."""
        first, *others = bases
        found = Ancestor(self._commits[first].image)
        for number, other in enumerate(others, start=1):
            inner = self._ancestor(self._bases(bases[:number], [other]))
            found = combine(inner, self._commits[other].image, found)
        return found

    def apply_schema(
        self, schema: SchemaIR, *, actor: str | None = None, message: str | None = None
    ) -> Receipt:
        """Move the graph to a schema that carries on the identities of the present one.

        Which changes are possible at all is decided by whoever made the schema.
        """
        head = self.head(MAIN)
        if len(self._heads) > 1:
            raise Refusal("conflict", "schema apply requires a graph with only main")
        if schema == head.image.catalog.ir:
            return _nothing(MAIN, head, "schema_apply", actor)
        image = migrate(head.image, Catalog.from_ir(schema))
        commit = self._publish("schema_apply", MAIN, (head,), image, actor=actor, message=message)
        return commit.receipt

    # -- parts ------------------------------------------------------------------------------

    def _publish(
        self,
        operation: str,
        branch: str,
        parents: tuple[Commit, ...],
        image: Image,
        *,
        actor: str | None,
        message: str | None,
        counts: Mapping[str, Counts] | None = None,
        warnings: tuple[ReceiptWarning, ...] = (),
    ) -> Commit:
        """Make a commit the head of its branch."""
        commit = Commit(
            id=_commit_id(len(self._commits) + 1),
            parents=tuple(parent.id for parent in parents),
            branch=branch,
            sequence=parents[0].sequence + 1,
            operation=operation,
            image=image,
            actor=actor,
            message=message,
            counts=counts or {},
            warnings=warnings,
        )
        self._commits[commit.id] = commit
        self._heads[branch] = commit.id
        return commit

    def _load_of(self, head: Commit, load_id: str | None) -> tuple[Mode, LoadResult] | None:
        """The load with that id in the history of a branch."""
        for commit in lineage(self._commits, head.id):
            found = self._loads.get(commit.id)
            if load_id is not None and found is not None and found[1].load_id == load_id:
                return found
        return None


def _commit_id(number: int) -> str:
    return f"c{number:06d}"


def _expect(branch: str, head: Commit, expected: str | None) -> None:
    if expected is not None and expected != head.id:
        raise Refusal("conflict", f"branch '{branch}' is at {head.id}, expected {expected}")


def _nothing(branch: str, head: Commit, operation: str, actor: str | None) -> Receipt:
    """The receipt of a write that had nothing to commit."""
    return Receipt(None, head.id, branch, head.sequence, operation, actor)
