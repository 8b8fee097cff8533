"""Several processes change one graph at once; some of them are killed in the middle of it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from tests.behaviour.graphs import Backstage
from tests.crash.graphs import SCHEMA, company, person
from tests.crash.graphs import rows as lines
from tests.processes.children import child
from tests.processes.crew import Crew, Member, check_history, check_pins, random_death
from tests.processes.writing import EPHEMERAL, Job, exported, faults_of, short_leases
from tests.support.faults import Arm, Kill, PauseAcrossProcesses

WRITERS = 4
BRANCHES = ["team", *(f"own/{number}" for number in range(WRITERS))]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Nobody gives up waiting for others, however slow the machine is; leases are short here too."""
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "300000")
    with short_leases():
        yield


def rounds(place, local, remote):
    return local if place.uri.startswith("/") else remote


# -- plans -----------------------------------------------------------------------------------


def one_type(writer, number):
    return Job("person", "main", f"p{writer}-{number // 2}", number)


def different_types(writer, number):
    return Job("person" if writer % 2 else "company", "main", f"p{writer}-{number}")


def branches(writer, number):
    return Job("person", ["team", f"own/{writer}"][number % 2], f"p{writer}-{number // 4}", number)


def all_of_it(writer, number):
    return [one_type, different_types, branches][number % 3](writer, number)


def writers(plan, count, mortals=WRITERS, deaths=1):
    """Four writers, some of whom are killed so many times, mostly in the first half of their work."""

    def ends():
        return [random_death(count // (2 * deaths)) for _ in range(deaths)]

    return [
        Member(
            f"writer{writer}",
            [plan(writer, number) for number in range(count)],
            ends() if writer < mortals else [],
        )
        for writer in range(WRITERS)
    ]


def begin(place, tmp_path, *jobs):
    graph = init(place.uri, SCHEMA)
    crew = Crew(place, tmp_path)
    crew.set_up(graph, jobs)
    for name in BRANCHES:
        graph.branches.create(name)
    return crew


# -- writers that are killed -----------------------------------------------------------------


@pytest.mark.acceptance("S-157", "S-144")
def test_killed_writers_lose_nothing_that_was_acknowledged(place, tmp_path):
    crew = begin(place, tmp_path)
    members = writers(all_of_it, rounds(place, 10, 4), mortals=rounds(place, 4, 2))
    crew.work(members)
    assert crew.check(members)["done"] == sum(len(member.jobs) for member in members)


@pytest.mark.slow
@pytest.mark.acceptance("S-157", "S-144")
@pytest.mark.parametrize("plan", [one_type, different_types, branches, all_of_it])
def test_killed_writers_lose_nothing_in_a_long_time(place, tmp_path, plan):
    crew = begin(place, tmp_path)
    members = writers(plan, rounds(place, 250, 40), deaths=5)
    crew.work(members)
    assert crew.check(members)["done"] == sum(len(member.jobs) for member in members)


# -- nodes that go while others connect to them ----------------------------------------------


def demolition(count):
    """Two connect people to companies, one takes companies away and builds new ones, and one makes
    and deletes branches. All but one are killed once."""
    people, companies = range(4), range(3)
    connect = [
        [
            Job("connect", "main", f"ann{number % len(people)}", to=f"co{number % len(companies)}")
            for number in range(offset, offset + count)
        ]
        for offset in (0, 1)
    ]
    replace = [
        Job(does, "main", f"co{number % len(companies)}")
        for number in range(max(1, count // 3))
        for does in ("delete", "company")
    ]
    use = [Job("use branch", "main", f"{EPHEMERAL}{n}", n) for n in range(max(1, count // 6))]
    members = [
        Member("first", connect[0], [random_death(count // 2)], rest_s=0.1),
        Member("second", connect[1], rest_s=0.1),
        Member("wrecker", replace, [random_death(count // 3)]),
        Member("brancher", use, [random_death(len(use) // 2)]),
    ]
    found = [Job("person", "main", f"ann{n}", n) for n in people]
    return members, [*found, *(Job("company", "main", f"co{n}") for n in companies)]


def check_demolition(place, tmp_path, count):
    members, found = demolition(count)
    crew = begin(place, tmp_path, *found)
    crew.work(members)
    outcomes = crew.check(members)
    assert outcomes["passed"] == len(members[-1].jobs)


def test_no_edge_dangles_while_nodes_are_deleted_and_branches_come_and_go(local_place, tmp_path):
    check_demolition(local_place, tmp_path, 12)


@pytest.mark.slow
def test_no_edge_dangles_for_a_long_time(place, tmp_path):
    check_demolition(place, tmp_path, rounds(place, 250, 40))


# -- writers of the same rows ----------------------------------------------------------------


@pytest.mark.acceptance("S-051", "S-052", "S-158")
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rows", ["own", "shared"])
def test_updates_at_the_same_time_all_succeed(place, run, tmp_path, rows, times):
    """Four processes of two threads each, every handle older than what the others write."""
    graph = init(place.uri, SCHEMA)
    processes, threads, count = 4, 2, times * rounds(place, 2, 1)
    keys = [f"p{n}" for n in range(processes * threads)] if rows == "own" else ["p0"]
    graph.load(lines(*(person(key, 0) for key in keys)), "merge")
    before = graph._snapshot().version
    works = [("writing.update_in_rounds", place.uri, str(tmp_path), n, processes, threads, count, keys)
             for n in range(processes)]  # fmt: skip
    made = {commit: value for found in run(place, works) for commit, value in found}
    assert len(made) == processes * threads * count
    found = {key: graph.at("main").get("Person", key) for key in keys}
    history = graph.log(reverse=True)
    assert len(history) - before >= len(made)
    for key, entity in found.items():
        assert entity is not None
        last = [made[c.id] for c in history if made.get(c.id, ("",))[0] == key]
        assert (key, entity["age"]) == last[-1]
    check_pins(graph, "main")
    assert Backstage(place.uri).objects.list_dir("__recovery") == []


# -- a node is deleted and connected at the same time -----------------------------------------

DELETE = 'query q() { delete Company where name = "acme" }'
CONNECT = 'query q() { insert WorksAt { from: "ada", to: "acme" } }'


class Mutating:
    """A process that stops at a point of a mutation until it is told to go on."""

    def __init__(self, place, folder, query, point, *, locked=True):
        self._report = folder / f"{query[12:18]}.report"
        self._pause = PauseAcrossProcesses(folder / f"{query[12:18]}.pause")
        arguments = (place.uri, query, str(self._report), locked)
        arms = [Arm(point, self._pause)]
        self._process = child(place, arms, "writing.mutate_once", *arguments)

    def wait_until_paused(self):
        self._pause.wait_until_reached(60)

    def wait_until_checked(self):
        checked, deadline = Path(f"{self._report}.checked"), time.monotonic() + 60
        while not checked.exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def finish(self):
        """What came of the mutation."""
        self._pause.release()
        assert self._process.wait(60) == 0
        return self._report.read_text()

    def end(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def mutating(place, tmp_path):
    """Starts processes that change the graph, and leaves none of them behind."""
    started = []

    def start(query, point, **options):
        started.append(Mutating(place, tmp_path, query, point, **options))
        return started[-1]

    yield start
    for process in started:
        process.end()


def two_ends(place):
    graph = init(place.uri, SCHEMA)
    graph.load(lines(person("ada"), company("acme")), "merge")
    return graph


def check_recovered(graph, place):
    assert faults_of(exported(graph, "main")) == []
    check_history(graph, "main")
    check_pins(graph, "main")
    assert Backstage(place.uri).objects.list_dir("__recovery") == []


@pytest.mark.acceptance("S-156")
def test_an_edge_whose_end_goes_between_check_and_commit_is_refused(place, mutating):
    graph = two_ends(place)
    deleting = mutating(DELETE, "lock.after_acquire")
    deleting.wait_until_paused()
    connecting = mutating(CONNECT, "lock.after_acquire")
    connecting.wait_until_checked()
    assert deleting.finish() == "commit 3"
    assert connecting.finish().startswith("MutationError")
    assert "acme" not in exported(graph, "main")
    assert graph.maintenance.recoveries() == []
    check_recovered(graph, place)


def test_a_deletion_takes_edges_with_it_that_were_added_after_its_check(place, mutating):
    graph = two_ends(place)
    connecting = mutating(CONNECT, "lock.after_acquire")
    connecting.wait_until_paused()
    deleting = mutating(DELETE, "mutation.pre_table_commit")
    deleting.wait_until_checked()
    assert (connecting.finish(), deleting.finish()) == ("commit 3", "commit 4")
    assert "acme" not in exported(graph, "main")
    check_recovered(graph, place)


@pytest.mark.acceptance("S-156")
def test_an_edge_whose_end_goes_although_its_branch_is_locked_is_taken_back(place, mutating):
    graph = two_ends(place)
    deleting = mutating(DELETE, "recovery.sidecar_write", locked=False)
    deleting.wait_until_paused()
    connecting = mutating(CONNECT, "mutation.post_finalize_pre_publisher")
    connecting.wait_until_paused()
    assert deleting.finish() == "commit 3"
    assert connecting.finish().startswith("MutationError")
    assert [audit.audit.kind.value for audit in graph.maintenance.recoveries()] == ["RolledBack"]
    assert "acme" not in exported(graph, "main")
    check_recovered(graph, place)


# -- openers ---------------------------------------------------------------------------------


@pytest.mark.acceptance("S-165")
@pytest.mark.parametrize(
    ("point", "rows_after", "kind"),
    [
        ("mutation.post_finalize_pre_publisher", 4, "RolledForward"),
        # On an object store, the other table is committed at the same time.
        ("mutation.pre_table_commit", 2, "RolledBack"),
        ("recovery.sidecar_written", 2, "RolledBack"),
    ],
)
@pytest.mark.parametrize("openers", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_that_open_together_recover_an_operation_once(
    place, run, tmp_path, point, rows_after, kind, openers
):
    graph = two_ends(place)
    query = 'query q() { insert Person { name: "cy" } insert WorksAt { from: "cy", to: "acme" } }'
    arguments = (place.uri, query, str(tmp_path / "report"), True)
    killed = child(place, [Arm(point, Kill())], "writing.mutate_once", *arguments)
    assert killed.wait(60) == -signal.SIGKILL
    opened = run(place, [("writing.open_and_count", place.uri)] * openers)
    assert opened == [(3, 1)] * openers
    assert [audit.audit.kind.value for audit in graph.maintenance.recoveries()] == [kind]
    assert len(exported(graph, "main").splitlines()) == rows_after
    check_recovered(graph, place)
