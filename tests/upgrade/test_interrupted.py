"""Conversions that die on the way, and several at once."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.rows import MANIFEST_PATH, read_stamp
from tests.behaviour.graphs import Backstage
from tests.support.faults import (
    ENVIRONMENT_VARIABLE,
    Arm,
    Fail,
    InjectedFault,
    Kill,
    armed,
    describe,
)
from tests.support.fork_server import fork_server
from tests.upgrade.old_graphs import OldGraph, with_branches, with_history
from tests.upgrade.seen import check_everything

BRANCHES = ["main", "a/b", "feature", "my_branch"]
STEPS = [
    ("upgrade.after_key_annotation", 1),
    ("upgrade.after_key_stamp", 1),
    ("upgrade.after_run_sweep", 1),
    ("upgrade.after_run_sweep_stamp", 1),
    ("upgrade.after_branch_names", 1),
    ("upgrade.after_schema_written", 1),
    *(("upgrade.before_overwrite", number) for number in range(1, 5)),
    *(("upgrade.after_overwrite", number) for number in range(1, 5)),
]


class Opener:
    """A process that opens a graph for writing and prints its branches."""

    def __init__(self, root: Path, *arms: Arm) -> None:
        self._printed = root.parent / f"printed {uuid.uuid4().hex}"
        self._process = fork_server().start(
            "tests.upgrade.opening:print_branches",
            [str(root)],
            {**os.environ, ENVIRONMENT_VARIABLE: describe(arms)},
            str(self._printed),
        )

    def ended(self) -> int:
        return self._process.wait(120)

    def answer(self) -> str:
        self.ended()
        return self._printed.read_text()


def stamps(root: Path) -> list[int]:
    backstage = Backstage(root)
    branches = [*sorted(backstage.tables.list_branches(MANIFEST_PATH)), None]
    return [read_stamp(backstage.tables.open(MANIFEST_PATH, b).schema) for b in branches]


def check_converted(old: OldGraph) -> None:
    graph = open_graph(old.root)
    assert list(graph.branches) == BRANCHES
    assert stamps(old.root) == [4, 4, 4, 4]
    check_everything(graph, old)
    for name in BRANCHES:
        rows = Backstage(old.root).rows(None if name == "main" else name)
        keys = [row["object_id"] for row in rows]
        assert len(keys) == len(set(keys))
        version = graph._snapshot(name).version
        loaded = graph.load(b'{"type": "Person", "data": {"name": "new"}}', "append", branch=name)
        assert loaded.receipt.manifest_version == version + 1


@pytest.mark.acceptance("S-017")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_process_killed_after_an_overwrite_is_no_loss(branched, number):
    killed = Opener(branched.root, Arm("upgrade.after_overwrite", Kill(), first=number))
    assert killed.ended() == -signal.SIGKILL
    assert [stamp for stamp in stamps(branched.root) if stamp == 4] == [4] * number
    check_everything(open_graph(branched.root, read_only=True), branched)
    check_converted(branched)


@pytest.mark.slow
@pytest.mark.acceptance("S-017")
@pytest.mark.parametrize(("point", "number"), STEPS)
def test_every_step_can_be_repeated(root, point, number):
    old = with_branches(root, 1)
    with armed(point, Fail(), first=number) as record, pytest.raises(InjectedFault):
        open_graph(root)
    assert record.count(point) == number
    check_everything(open_graph(root, read_only=True), old)
    check_converted(old)


@pytest.mark.acceptance("S-017")
def test_two_processes_open_at_the_same_time(branched):
    openers = [Opener(branched.root) for _ in range(2)]
    assert [opener.answer() for opener in openers] == [f"{BRANCHES}\n"] * 2
    check_converted(branched)


@pytest.mark.acceptance("S-017")
def test_one_of_two_processes_dies_and_the_other_one_finishes(branched):
    dying = Opener(branched.root, Arm("upgrade.after_overwrite", Kill(), first=2))
    other = Opener(branched.root)
    assert other.answer() == f"{BRANCHES}\n"
    assert dying.ended() in (-signal.SIGKILL, 0)
    check_converted(branched)


def test_threads_open_at_the_same_time(branched):
    with ThreadPoolExecutor(4) as pool:
        graphs = list(pool.map(lambda _: open_graph(branched.root), range(4)))
    assert [list(graph.branches) for graph in graphs] == [BRANCHES] * 4
    check_converted(branched)


def test_an_overwrite_that_a_power_loss_tore_is_made_again(root):
    old = with_history(root, 2)
    with armed("upgrade.after_overwrite", Fail()), pytest.raises(InjectedFault):
        open_graph(root)
    versions = root / "__manifest" / "_versions"
    newest = min(versions.glob("*.manifest"))
    newest.write_bytes(b"")
    check_everything(open_graph(root, read_only=True), old)
    check_everything(open_graph(root), old)
    assert stamps(root) == [4]


def test_a_schema_written_without_its_record_is_completed(branched, tmp_path):
    """Both compiled files were missing, and the conversion died between writing the two."""
    copy = shutil.copytree(branched.root, tmp_path / "copy")
    open_graph(branched.root)
    shutil.copy(branched.root / "_schema.ir.json", copy)
    shutil.rmtree(branched.root)
    copy.rename(branched.root)
    (branched.root / "__schema_state.json").unlink()
    check_everything(open_graph(branched.root, read_only=True), branched)
    check_converted(branched)
