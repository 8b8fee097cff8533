"""What must be true of a graph after one of its writers has died, whatever it died of."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import AlreadyInitialized, GraphNotFound, TableExists
from omnigraph.storage.durability import Durability
from omnigraph.versioning.audit import RECOVERY_ACTOR
from omnigraph.versioning.commits import OperationId
from omnigraph.versioning.contract import CONTRACT_FILES
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.behaviour.graphs import Backstage, tree
from tests.crash.graphs import SCHEMA, person, rows
from tests.crash.kinds import PUBLISHED, Kind
from tests.crash.power_loss import LOCKS
from tests.support.faults import Hit, recording

Content = dict[str, Sequence[str]]
"""The rows of every branch, and the tags; nothing at all where there is no graph."""

TAGS: Final = "the tags"
"""No branch can have this name."""

_UNDONE = ("RolledBack", "OrphanedBranchDiscarded", "LateCommitDiscarded")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as its users tell it apart from others, with what recovery says it did."""

    id: str
    operation: str
    actor: str | None
    recovered: str | None

    @property
    def kind(self) -> tuple[str, str | None, str | None]:
        return self.operation, self.actor, self.recovered


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything a reader sees of a graph."""

    content: Content
    commits: dict[str, list[Commit]]
    recovered: list[str]
    """The operations that recovery has recovered, on any branch."""


def look(root: str | Path) -> Seen:
    """Read all of a graph without changing anything."""
    try:
        graph = open_graph(root, read_only=True)
    except GraphNotFound:
        return Seen({}, {}, [])
    return look_at(graph)


def look_at(graph: Graph) -> Seen:
    content: Content = {TAGS: [f"{tag.name} {tag.commit_id}" for tag in graph.tags.all()]}
    commits = {}
    recovered: dict[str, str] = {}
    for branch in list(graph.branches):
        out = io.BytesIO()
        graph.export(out, branch=branch)
        content[str(branch)] = sorted(
            map(_without_made_up_id, out.getvalue().decode().splitlines())
        )
        audits = {
            audit.graph_commit_id: audit.audit for audit in graph.maintenance.recoveries(branch)
        }
        commits[str(branch)] = [
            Commit(
                commit.id,
                commit.operation,
                commit.actor,
                audit.kind.value if (audit := audits.get(commit.id)) else None,
            )
            for commit in graph.log(branch, reverse=True)
        ]
        recovered |= {commit: audit.operation_id for commit, audit in audits.items()}
    return Seen(content, commits, list(recovered.values()))


def _without_made_up_id(line: str) -> str:
    row = json.loads(line)
    if row.get("edge") == "Knows":
        del row["data"]["id"]
    return json.dumps(row, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Reference:
    """A writer that was left alone: what was there, what came of it, and the steps it passed."""

    before: Seen
    after: Seen
    halfway: Content | None
    hits: tuple[Hit, ...]

    def counts(self) -> dict[str, int]:
        """How often each point was passed."""
        return dict(sorted(Counter(hit.name for hit in self.hits).items()))

    def is_done(self, kind: Kind, published: int) -> bool:
        """Whether a writer that has published so often may have promised its work to somebody."""
        all_of_them = sum(hit.name == PUBLISHED for hit in self.hits)
        return 0 < (kind.publishes_before_it_is_done or all_of_them) <= published


def run_undisturbed(kind: Kind, root: Path, before: Seen) -> Reference:
    """Let a writer do its work on what it finds."""
    with recording() as record:
        kind.run(str(root))
    return Reference(before, look(root), None, record.hits)


def check_aftermath(kind: Kind, root: Path, reference: Reference, *, done: bool = False) -> None:
    """Everything that must hold once the writer is gone. `done`: it had promised its work.

    Leaves the graph with more rows than it had. Nothing else can go wrong from here on, so nobody
    waits for the disk any more.
    """
    with patch.dict(os.environ, {"OMNIGRAPH_DURABILITY": Durability.NONE.value}):
        _check_aftermath(kind, root, reference, done)


def _check_aftermath(kind: Kind, root: Path, reference: Reference, done: bool) -> None:
    states = [reference.before.content, reference.halfway, reference.after.content]
    pending = [(path.stem, json.loads(path.read_text()).get("owner")) for path in _sidecars(root)]
    untouched = _tree(root)
    at_first = look(root)
    assert _tree(root) == untouched, "a reader has written something"
    assert at_first.content in states, "a reader sees a state that never was"
    if not reference.before.content and not at_first.content:
        check_no_graph(kind, root, reference)
        return
    graph = open_graph(root)
    recovered_tree = _kept(tree(root))
    seen = at_first if recovered_tree == _kept(untouched) else look_at(graph)
    assert seen.content in states[states.index(at_first.content) :], "recovery took something back"
    if done or kind.is_recovery:
        assert seen.content == reference.after.content, "what was promised is not there"
    _check_recovered(root, seen, pending)
    _check_history(kind, reference, seen)
    assert _sidecars(root) == [], "a sidecar is left"
    open_graph(root)
    assert _kept(tree(root)) == recovered_tree, "a second open still finds something to do"
    strayed = _strayed(root)
    assert kind.finds_strayed_tables or not strayed, "a table is not where the graph says it is"
    if strayed or seen.content != reference.after.content:
        kind.run(str(root))
        seen = look(root)
        assert seen.content == reference.after.content, "the work cannot be done again"
        assert (_sidecars(root), _strayed(root)) == ([], {})
    _check_next_writes(root, seen)


def check_no_graph(kind: Kind, root: Path, reference: Reference) -> None:
    """There is no graph, everybody is told so, and one can be made."""
    with pytest.raises(GraphNotFound):
        open_graph(root)
    if any((root / name).exists() for name in CONTRACT_FILES):
        with pytest.raises(AlreadyInitialized, match="unfinished graph"):
            kind.run(str(root))
        try:
            init(root, SCHEMA, force=True)
        except TableExists:
            shutil.rmtree(root)
            kind.run(str(root))
    else:
        kind.run(str(root))
    assert look(root).content == reference.after.content
    assert (_sidecars(root), _strayed(root)) == ([], {})
    _check_next_writes(root, look(root))


def _tree(root: Path) -> dict[str, tuple[int, str]]:
    return tree(root) if root.exists() else {}


def _kept(state: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """All but locks, and the folder itself, in which a writer tries what the disk can do."""
    return {path: found for path, found in state.items() if not path.startswith((".", LOCKS))}


def _sidecars(root: Path) -> list[Path]:
    return sorted((root / RECOVERY_DIR).glob("*.json"))


def _check_recovered(root: Path, seen: Seen, pending: Sequence[tuple[str, str]]) -> None:
    """Each operation that had been left unfinished is recovered, and that is recorded once."""
    assert len(seen.recovered) == len(set(seen.recovered)), "an operation was recovered twice"
    backstage = Backstage(root)
    for operation, owner in pending:
        recorded = [
            outcome[1]
            for ref in backstage.branches.list()
            if (outcome := _outcome(backstage, ref.physical, operation)) is not None
        ]
        if owner == process_identity() and not recorded:
            continue  # Its writer was this process, and had changed nothing: there is no trace.
        assert recorded, f"nothing says what became of {operation}"
        assert (operation in seen.recovered) == (set(recorded) != {"committed"})


def _outcome(backstage: Backstage, branch: str | None, operation: str) -> tuple[str, str] | None:
    return backstage.manifest.operation_outcome(
        backstage.manifest.open(branch), OperationId(operation)
    )


def _check_history(kind: Kind, reference: Reference, seen: Seen) -> None:
    """Nothing of the history is lost, and what is new is what the writer does or recovery did."""
    for branch, found in seen.commits.items():
        before = reference.before.commits.get(branch, [])
        after = reference.after.commits.get(branch, [])
        if before:
            assert found[: len(before)] == before
            found, after = found[len(before) :], after[len(before) :]
        if kind.is_recovery:
            assert [c.kind for c in found] == [c.kind for c in after]
            continue
        assert all((c.actor == RECOVERY_ACTOR) == (c.recovered is not None) for c in found)
        done = [c for c in found if c.recovered not in _UNDONE]
        wanted = [c for c in after if c.recovered not in _UNDONE]
        assert len(found) - len(done) <= 1 + len(after) - len(wanted)
        assert len(done) <= len(wanted)
        for made, meant in zip(done, wanted, strict=False):
            assert made.recovered == "RolledForward" or made.kind == meant.kind


def _strayed(root: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Tables that are ahead of what the graph knows: where they should be, and where they are."""
    graph = open_graph(root, read_only=True)
    found = {}
    for ref in graph._core.branches.list():
        for key, entry in graph._snapshot(ref.public).entries.items():
            if entry.branch == ref.physical:
                head = graph._core.tables.open(entry.location, entry.branch).version
                if head != entry.version:
                    found[str(ref.public), key] = entry.version, head
    return found


def _check_next_writes(root: Path, seen: Seen) -> None:
    """Every branch can be written to, and the rows are the old ones and the new one."""
    graph = open_graph(root)
    for branch in seen.content.keys() - {TAGS}:
        known = seen.content[branch]
        graph.load(rows(person("zoe")), "append", branch=branch)
        out = io.BytesIO()
        assert graph.export(out, branch=branch) == len(known) + 1
        assert '"zoe"' in out.getvalue().decode()
