"""Processes that clean up while others merge, and while others make, write and delete branches."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchLocked
from tests.behaviour.graphs import SCHEMA
from tests.processes.branching import Notes, lost_rows
from tests.processes.children import child
from tests.processes.conftest import Place
from tests.processes.writing import exported, short_leases
from tests.support.faults import Arm, Kill, PauseAcrossProcesses
from tests.support.fork_server import ForkedProcess

MERGED = "branch_merge.post_phase_b_pre_manifest_commit"


def test_nothing_is_cleaned_up_while_a_merge_into_a_branch_is_about_to_be_published(
    local_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = init(local_place.uri, SCHEMA)
    graph.branches.create("f")
    graph.mutate('query q() { insert Person { name: "ada" } }', branch="f")
    graph.mutate('query q() { insert Person { name: "bo" } }')
    pause = PauseAcrossProcesses(tmp_path / "merging")
    uri = local_place.uri
    process = child(local_place, [Arm(MERGED, pause)], "merge_once", uri, "main", "f")
    pause.wait_until_reached()
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "0")
    impatient = open_graph(uri)
    with pytest.raises(BranchLocked, match="main"):
        impatient.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    pause.release()
    assert process.wait(60) == 0
    graph.mutate('query q() { insert Person { name: "cy" } }')
    impatient.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    assert graph.merge("f").outcome.value == "merged"
    query = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    assert [row["p.name"] for row in graph.query(query).to_dicts()] == ["ada", "bo", "cy"]


# -- several cleaners beside writers that make, fork and delete branches ----------------------

KEEP_EVERYTHING = {"keep_versions": 1_000_000}
KEEP_LITTLE = {"keep_versions": 1, "min_age_s": 0}


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "300000")
    with short_leases():
        yield


WRITERS = ("w0", "w1")


class BesideCleaners:
    """Two writers of branches, two cleaners, and what must be true when they have stopped."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place = place
        self._stop = folder / "stop"
        self._notes = {name: folder / f"{name}.notes" for name in WRITERS}
        self._reports = {folder / "cleaner0": KEEP_EVERYTHING, folder / "cleaner1": KEEP_LITTLE}
        self._running: dict[str, ForkedProcess] = {}
        init(place.uri, SCHEMA)

    def work(self, seconds: float, *, kill_every: float) -> None:
        """Let them work, at least until all have done something, and kill a writer now and then."""
        for name in WRITERS:
            self._start_writer(name)
        for report, policy in self._reports.items():
            self._start(report.name, "clean_up", str(self._stop), str(report), policy)
        try:
            hang = time.monotonic() + 600 + seconds
            self._wait(self._have_started, hang)
            for _ in range(int(seconds // kill_every)):
                pause = time.monotonic() + kill_every
                self._wait(partial(_is_past, pause), hang)
                name = random.choice(WRITERS)
                self._running[name].kill()
                self._running[name].wait()
                self._start_writer(name)
            pause = time.monotonic() + seconds % kill_every
            self._wait(partial(_is_past, pause), hang)
            self._stop.touch()
            ends = {name: process.wait(300) for name, process in self._running.items()}
            assert ends == dict.fromkeys(ends, 0)
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()

    def check(self) -> None:
        """Everything that was confirmed is there."""
        graph = open_graph(self._place.uri)
        listed = list(graph.branches)
        lost = []
        for name, path in self._notes.items():
            notes = Notes(path)
            made, gone, rows = (notes.count(does) for does in ("made", "gone", "there"))
            print(f"{name}: {made} branches made, {gone} deleted, {rows} rows")
            for branch, known in notes.replay().items():
                if branch not in listed:
                    lost += [branch] if known.is_sure else []
                elif rows_lost := lost_rows(graph, branch, known):
                    lost.append(f"{branch} without {sorted(rows_lost)}")
        for report in self._reports:
            print(f"{report.name}: {report.read_text()}")
        assert lost == []

    def _start_writer(self, name: str) -> None:
        self._start(name, "branch_out", name, str(self._stop), str(self._notes[name]))

    def _start(self, name: str, work: str, *arguments: object) -> None:
        place = self._place
        self._running[name] = child(place, [], f"branching.{work}", place.uri, *arguments)

    def _have_started(self) -> bool:
        has_branches = all(Notes(path).count("made") > 0 for path in self._notes.values())
        return has_branches and all(report.exists() for report in self._reports)

    def _wait(self, until: Callable[[], bool], hang: float) -> None:
        """Wait until something is so; a process that ends before has found something wrong."""
        while not until():
            assert time.monotonic() < hang, "nobody gets on"
            ended = [name for name, process in self._running.items() if process.poll() is not None]
            assert ended == []
            time.sleep(0.05)


def _is_past(moment: float) -> bool:
    return time.monotonic() > moment


@pytest.mark.usefixtures("patience")
def test_cleaners_take_nothing_from_branches_that_are_made_and_written_meanwhile(
    place: Place, tmp_path: Path
) -> None:
    crew = BesideCleaners(place, tmp_path)
    crew.work(3, kill_every=1.4)
    crew.check()


@pytest.mark.slow
@pytest.mark.usefixtures("patience")
def test_cleaners_take_nothing_from_branches_in_ten_minutes(place: Place, tmp_path: Path) -> None:
    crew = BesideCleaners(place, tmp_path)
    crew.work(600, kill_every=20)
    crew.check()


# -- what killed writers leave ----------------------------------------------------------------


def _kill_writers(place: Place, deaths: Sequence[int]) -> None:
    """Writers that die when they are about to bring so many files onto the disk."""
    for number in deaths:
        arms = [Arm("durability.before_fsync", Kill(), first=number)]
        writer = child(place, arms, "write_once", place.uri, (), f"p{number}", "feature")
        assert writer.wait(300) == -signal.SIGKILL


def _temporary(folder: Path) -> set[Path]:
    """Files under names that only unfinished ones have."""
    return {f for f in folder.rglob("*") if f.is_file() and re.search(r"#\d|\.tmp", f.name)}


def _check_left_files_go(uri: str, deaths: Sequence[int]) -> None:
    place, root = Place(uri, {"OMNIGRAPH_DURABILITY": "fsync"}), Path(uri)
    init(uri, SCHEMA).branches.create("feature")
    _kill_writers(place, deaths)
    graph = open_graph(place.uri)
    graph.maintenance.wait()
    before = {name: exported(graph, name) for name in list(graph.branches)}
    left = _temporary(root)
    print(f"{len(left)} temporary files of {len(deaths)} writers")
    assert left
    assert graph.maintenance.cleanup(keep_versions=1_000_000).temporary == 0
    assert _temporary(root) == left
    for file in left:
        os.utime(file, (time.time() - 2 * 86400,) * 2)
    assert graph.maintenance.cleanup(keep_versions=1_000_000, dry_run=True).temporary == len(left)
    report = graph.maintenance.cleanup(keep_versions=1_000_000)
    assert report.temporary == report.to_json()["temporary_files"] == len(left)
    assert _temporary(root) == set()
    assert graph.maintenance.cleanup(keep_versions=1_000_000).temporary == 0
    again = open_graph(place.uri)
    assert {name: exported(again, name) for name in list(again.branches)} == before


def test_temporary_files_of_killed_writers_go_when_they_are_a_day_old(local_place: Place) -> None:
    _check_left_files_go(local_place.uri, [1, 2])


@pytest.mark.slow
def test_temporary_files_of_writers_killed_anywhere_go(local_place: Place) -> None:
    _check_left_files_go(local_place.uri, range(1, 12))
