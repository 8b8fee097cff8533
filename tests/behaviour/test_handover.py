"""Processes that take turns: what one leaves in the lock, and when the next one does not use it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.commit.writer import WriteRequest
from omnigraph.errors import OmnigraphError
from omnigraph.mutation import prepare_mutation
from omnigraph.versioning import handover, manifest
from omnigraph.versioning.locks import file_lock
from tests.crash.recovery.situations import ADD, AGE, EVERYBODY, ages, ids, new_graph
from tests.support.faults import Hit, armed

LINK = "query link($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
DROP = "query drop($who: String) { delete Person where name = $who }"

AFTER_ACQUIRE = "lock.after_acquire"


class Turns:
    """Two open graphs that see each other as processes do."""

    def __init__(self, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.lock_file = Path(uri) / "__locks" / "main.lock"
        self.first, self.second = open_graph(uri), open_graph(uri)
        self._monkeypatch.setattr(
            self.second._core.locks, "_queue", lambda branch: ("other", branch)
        )
        for graph, name in ((self.first, "w1"), (self.second, "w2"), (self.first, "w3")):
            self.by(graph, ADD, who=name)
        ids(self.second)

    def by(self, graph: Graph, query: str, **values: object) -> object:
        name = "second" if graph is self.second else "first"
        self._monkeypatch.setattr(file_lock, "process_identity", lambda: name)
        try:
            return graph.mutate(query, values)
        finally:
            graph.maintenance.wait()

    def overtaken(self, write: Callable[[], object], other: Callable[[], object]) -> object:
        """The outcome of a write by the second graph that the first one overtakes: it writes after the
        other was prepared, and before that has the lock."""
        begin = self.second._core.writer.begin_early

        def overtake(request: WriteRequest) -> object:
            early = begin(request)
            self._monkeypatch.setattr(self.second._core.writer, "begin_early", begin)
            other()
            self._monkeypatch.setattr(file_lock, "process_identity", lambda: "second")
            return early

        self._monkeypatch.setattr(self.second._core.writer, "begin_early", overtake)
        return write()


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turns:
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    return Turns(new_graph(str(tmp_path / "graph")).uri, monkeypatch)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The heads that mutations were prepared on."""
    found: list[str] = []

    def noting(plan, parameters, snapshot, *others):
        found.append(snapshot.commit_id)
        return prepare_mutation(plan, parameters, snapshot, *others)

    monkeypatch.setattr("omnigraph.mutation.run.prepare_mutation", noting)
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions of the manifest whose rows were read."""
    found: list[int] = []
    newer = manifest._newer_rows

    def noting(known, table):
        found.append(table.version)
        return newer(known, table)

    monkeypatch.setattr(manifest, "_newer_rows", noting)
    return found


def test_a_write_that_another_process_overtook_is_neither_prepared_again_nor_reads_the_manifest(
    turns, prepared, reads
):
    turns.overtaken(
        lambda: turns.by(turns.second, ADD, who="x"), lambda: turns.by(turns.first, ADD, who="y")
    )
    assert (len(prepared), reads) == (2, [])
    assert ids(turns.first) == sorted([*EVERYBODY, "w1", "w2", "w3", "x", "y"])
    assert turns.first.maintenance.verify().problems == ()


def test_the_row_that_another_process_changed_meanwhile_is_looked_at_again(turns, prepared):
    turns.overtaken(
        lambda: turns.by(turns.second, AGE, who="Bob", age=5),
        lambda: turns.by(turns.first, AGE, who="Bob", age=6),
    )
    assert len(prepared) == 3
    assert ages(turns.first)["Bob"] == 5


def test_an_edge_to_a_node_that_another_process_deleted_meanwhile_is_refused(turns):
    with pytest.raises(OmnigraphError, match="w3"):
        turns.overtaken(
            lambda: turns.by(turns.second, LINK, a="w1", b="w3"),
            lambda: turns.by(turns.first, DROP, who="w3"),
        )
    assert turns.first.maintenance.verify().problems == ()


def _cut(text: str) -> str:
    return text[:-7]


def _of_other_bytes(text: str) -> str:
    noted, left = text.split("\n")
    return f"{noted}\n{left.replace('w3', 'w4')}"


def _of_another_file(text: str) -> str:
    return _changed(text, '"file":[', '"file":[1')


def _not_synced(text: str) -> str:
    return _changed(text, '"is_synced":true', '"is_synced":false')


def _changed(text: str, old: str, new: str) -> str:
    noted, left = text.split("\n")
    body = left.partition(" ")[2]
    assert old in body
    body = body.replace(old, new)
    return f"{noted}\n{zlib.crc32(body.encode()):08x} {body}"


@pytest.mark.parametrize(
    "change", [_cut, _of_other_bytes, _of_another_file, _not_synced, lambda text: ""]
)
def test_what_does_not_hold_is_not_used(turns, reads, change):
    def other() -> None:
        turns.by(turns.first, ADD, who="y")
        assert "\n" in turns.lock_file.read_text()
        turns.lock_file.write_text(change(turns.lock_file.read_text()))

    turns.overtaken(lambda: turns.by(turns.second, ADD, who="x"), other)
    assert reads
    assert ids(turns.first) == sorted([*EVERYBODY, "w1", "w2", "w3", "x", "y"])


def test_it_ends_with_a_restart_of_the_machine(turns, reads, monkeypatch):
    def other() -> None:
        turns.by(turns.first, ADD, who="y")
        monkeypatch.setattr(handover, "boot_id", lambda: "another")

    turns.overtaken(lambda: turns.by(turns.second, ADD, who="x"), other)
    assert reads


class Look:
    """Notes what the lock file says at a fault point."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.seen: list[str] = []

    def act(self, hit: Hit) -> None:
        self.seen.append(self._file.read_text())


def test_a_process_that_dies_with_the_lock_leaves_nothing(turns):
    look = Look(turns.lock_file)
    with armed(AFTER_ACQUIRE, look, times=1):
        turns.by(turns.second, ADD, who="x")
    assert [text.partition("\n")[2] for text in look.seen] == [""]
    assert turns.lock_file.read_text().partition("\n")[2]


def test_a_process_that_has_the_graph_to_itself_leaves_nothing(tmp_path):
    graph = new_graph(str(tmp_path / "graph"))
    graph.mutate(ADD, {"who": "x"})
    assert "commits" not in (tmp_path / "graph" / "__locks" / "main.lock").read_text()


def test_a_branch_that_was_made_again_is_not_taken_for_the_one_before(turns, monkeypatch):
    for round_ in range(2):
        monkeypatch.setattr(file_lock, "process_identity", lambda: "first")
        turns.first.branches.create("b")
        turns.first.checkout("b").mutate(ADD, {"who": f"b{round_}-1"})
        monkeypatch.setattr(file_lock, "process_identity", lambda: "second")
        turns.second.checkout("b").mutate(ADD, {"who": f"b{round_}-2"})
        turns.second.maintenance.wait()
        assert set(ids(turns.first.checkout("b"))) == {
            *EVERYBODY, "w1", "w2", "w3", f"b{round_}-1", f"b{round_}-2"
        }  # fmt: skip
        turns.first.branches.delete("b")
