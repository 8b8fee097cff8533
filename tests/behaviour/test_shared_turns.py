"""Threads that write one branch at the same time: each has its own commit, receipt and error.

Whether the engine commits one change at a time or several in one turn, callers must not see a
difference: the history is linear, every commit shows exactly the changes up to it, and what is refused
is refused alone.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit.writer import WriteRequest
from omnigraph.errors import (
    HeadMoved,
    IdempotencyKeyReused,
    LoadError,
    MergeConflicts,
    MutationError,
    OmnigraphError,
)
from omnigraph.history.commits import Commit, Receipt
from omnigraph.versioning.snapshot import Snapshot
from tests.behaviour.graphs import Backstage
from tests.behaviour.threads import Outcome, Together, together
from tests.support.faults import Call, Pause, armed

THREADS = 16
WAITING_SECONDS = 0.3
"""Long enough for a write to be prepared and to wait for the lock."""

SCHEMA = """
node Person { name: String @key  age: I32?  @range(age, 0..1000) }
node Company { name: String @key  size: I32? }
node Badge { name: String @key  code: String @unique }
edge Knows: Person -> Person
edge WorksAt: Person -> Company @card(0..1) { @unique(src, dst) }
"""
ADD = "query q($name: String, $age: I32) { insert Person { name: $name, age: $age } }"
AGE = "query q($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
HIRE = "query q($who: String, $at: String) { insert WorksAt { from: $who, to: $at } }"
CLOSE = "query q($name: String) { delete Company where name = $name }"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer waits for its turn however slow the machine is."""
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "120000")


@pytest.fixture
def graph(uri: str) -> Graph:
    return init(uri, SCHEMA)


# -- what holds after every test ---------------------------------------------------------------


def names(graph: Graph, type: str = "Person", at: Commit | str | None = None) -> list[str]:
    return sorted(graph.scan(type, columns=["id"], at=at).read_all().column("id").to_pylist())


def history(graph: Graph) -> list[Commit]:
    """All commits of the branch, oldest first, one after the other without a gap."""
    graph.maintenance.wait()
    commits = graph.log(reverse=True)
    assert [commit.number for commit in commits] == list(range(1, len(commits) + 1))
    assert len({commit.id for commit in commits}) == len(commits)
    assert [commit.parents[0] for commit in commits[1:]] == [commit.id for commit in commits[:-1]]
    return commits


def written(graph: Graph, since: Commit) -> list[Commit]:
    """The commits after one, without those of background compaction."""
    return [c for c in history(graph) if c.number > since.number and c.operation != "optimize"]


def check_sound(graph: Graph) -> None:
    """No sidecar is left, nothing had to be recovered, every row keeps every rule."""
    graph.maintenance.wait()
    assert Backstage(graph.uri).objects.list_dir("__recovery") == []
    assert graph.maintenance.recoveries() == []
    assert graph.maintenance.verify().problems == ()


def check_receipt(commit: Commit, receipt: Receipt, *, actor: str | None, message: str) -> None:
    assert receipt.replayed is False
    assert (commit.id, commit.number) == (receipt.graph_commit_id, receipt.manifest_version)
    assert commit.parents[0] == receipt.parent_commit_id
    assert (commit.actor, commit.message) == (actor, message)
    assert receipt.actor_id == actor
    assert commit.counts == receipt.counts


def receipts(outcomes: Sequence[Outcome]) -> list[Receipt]:
    """The receipts of calls that all succeeded."""
    return [outcome.get().receipt for outcome in outcomes]


def refused(outcomes: Sequence[Outcome], error: type[OmnigraphError]) -> list[Any]:
    """The errors of the calls that did not succeed, all of one class."""
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert {type(found) for found in errors} <= {error}, errors
    return errors


# -- different rows ----------------------------------------------------------------------------


def add(graph: Graph, name: str, number: int) -> Any:
    """Add a person as an actor of its own, with a message and an idempotency key."""
    return graph.as_actor(f"actor-{name}").insert(
        "Person", [{"name": name, "age": number}], message=f"add {name}", idempotency_key=name
    )


def check_each_has_its_commit(graph: Graph, since: Commit, outcomes: dict[str, Outcome]) -> None:
    """Every added person has one commit, and is there from this commit on."""
    commits = written(graph, since)
    by_id = {str(commit.id): commit for commit in commits}
    assert len(commits) == len(outcomes)
    of_name = {}
    for name, outcome in outcomes.items():
        receipt = outcome.get().receipt
        commit = by_id[str(receipt.graph_commit_id)]
        check_receipt(commit, receipt, actor=f"actor-{name}", message=f"add {name}")
        of_name[commit.id] = name
    present: list[str] = []
    for commit in commits:
        present.append(of_name[commit.id])
        assert names(graph, at=commit) == sorted(present)
    for commit in random.sample(commits, 2):
        assert graph.at(commit).get("Person", of_name[commit.id]) is not None
        assert graph.at(f"{commit.id}~1").get("Person", of_name[commit.id]) is None
    assert names(graph) == sorted(outcomes)


def test_threads_that_insert_different_rows_have_one_commit_each(graph):
    since, people = graph.head(), [f"p{number}" for number in range(2 * THREADS)]
    outcomes = together([partial(add, graph, name, n) for n, name in enumerate(people)])
    check_each_has_its_commit(graph, since, dict(zip(people, outcomes, strict=True)))
    check_sound(graph)


def test_threads_of_two_handles_have_one_commit_each(graph):
    handles = [graph, open_graph(graph.uri)]
    since, people = graph.head(), [f"p{number}" for number in range(THREADS)]
    calls = [partial(add, handles[n % 2], name, n) for n, name in enumerate(people)]
    outcomes = together(calls)
    check_each_has_its_commit(handles[0], since, dict(zip(people, outcomes, strict=True)))
    assert history(handles[1]) == history(handles[0])
    assert names(handles[1]) == names(handles[0])
    check_sound(graph)


def test_threads_that_write_different_branches_do_not_meet(graph):
    branches = ["main", "left", "right"]
    for name in branches[1:]:
        graph.branches.create(name)
    calls = [
        partial(graph.mutate, ADD, {"name": f"p{n}", "age": n}, branch=branches[n % 3])
        for n in range(THREADS)
    ]
    found = receipts(together(calls))
    assert [receipt.branch for receipt in found] == [branches[n % 3] for n in range(THREADS)]
    for place, branch in enumerate(branches):
        expected = sorted(f"p{n}" for n in range(THREADS) if n % 3 == place)
        assert names(graph, at=branch) == expected
        assert {str(receipt.graph_commit_id) for receipt in found[place::3]} == {
            str(commit.id) for commit in graph.log(branch) if commit.operation == "mutate"
        }
    check_sound(graph)


# -- the same row ------------------------------------------------------------------------------


def test_of_threads_that_insert_the_same_key_exactly_one_succeeds(graph):
    since = graph.head()

    def insert(number: int) -> Any:
        row = {"name": "ada", "age": number}
        return graph.insert("Person", [row], idempotency_key=f"k{number}", message=f"m{number}")

    others = [partial(add, graph, f"p{number}", number) for number in range(4)]
    outcomes = together([*(partial(insert, n) for n in range(THREADS)), *others])
    rivals = outcomes[:THREADS]
    [winner] = [number for number, outcome in enumerate(rivals) if outcome.error is None]
    with pytest.raises(LoadError) as alone:
        insert(THREADS)
    for error in refused(rivals, LoadError):
        assert str(error) == str(alone.value)
    assert graph.get("Person", "ada") == {"id": "ada", "name": "ada", "age": winner}
    made = {commit.message for commit in written(graph, since)}
    assert made == {f"m{winner}", *(f"add p{number}" for number in range(4))}
    assert names(graph) == ["ada", "p0", "p1", "p2", "p3"]
    check_sound(graph)


def test_threads_that_use_the_same_idempotency_key_get_one_commit(graph):
    since = graph.head()
    call = partial(
        graph.insert, "Person", [{"name": "ada"}], idempotency_key="one", message="only once"
    )
    found = receipts(together([call] * THREADS))
    assert sorted(receipt.replayed for receipt in found) == [False] + [True] * (THREADS - 1)
    [commit] = written(graph, since)
    assert {receipt.graph_commit_id for receipt in found} == {commit.id}
    assert names(graph) == ["ada"]
    check_sound(graph)


def test_the_same_idempotency_key_for_different_rows_is_refused(graph):
    since = graph.head()

    def insert(number: int) -> Any:
        return graph.mutate(ADD, {"name": f"p{number}", "age": 1}, idempotency_key="one")

    outcomes = together([partial(insert, number) for number in range(THREADS)])
    [winner] = [number for number, outcome in enumerate(outcomes) if outcome.error is None]
    refused(outcomes, IdempotencyKeyReused)
    [commit] = written(graph, since)
    assert outcomes[winner].get().receipt.graph_commit_id == commit.id
    assert names(graph) == [f"p{winner}"]
    check_sound(graph)


def test_threads_that_update_one_row_all_succeed_and_the_last_commit_decides(graph):
    graph.insert("Person", [{"name": "ada", "age": 0}])
    since = graph.head()
    calls = [
        partial(graph.mutate, AGE, {"name": "ada", "age": n + 1}, message=str(n + 1))
        for n in range(THREADS)
    ]
    found = receipts(together(calls))
    assert len({receipt.graph_commit_id for receipt in found}) == THREADS
    commits = written(graph, since)
    assert sorted(commit.message or "" for commit in commits) == sorted(
        str(n + 1) for n in range(THREADS)
    )
    for commit in commits:
        assert str(graph.at(commit).get("Person", "ada")["age"]) == commit.message
    assert str(graph.get("Person", "ada")["age"]) == commits[-1].message
    check_sound(graph)


# -- writes that are refused -------------------------------------------------------------------


def test_writes_that_violate_a_rule_are_refused_alone(graph):
    since = graph.head()

    def write(number: int) -> Any:
        name, age = f"p{number}", 2000 + number if number % 2 else number
        if number % 4 < 2:
            return graph.mutate(ADD, {"name": name, "age": age}, message=name)
        return graph.insert("Person", [{"name": name, "age": age}], message=name)

    outcomes = together([partial(write, number) for number in range(THREADS)])
    valid = [f"p{number}" for number in range(0, THREADS, 2)]
    for number, outcome in enumerate(outcomes):
        if number % 2 == 0:
            assert outcome.get().commit_id is not None
        else:
            assert isinstance(outcome.error, MutationError if number % 4 < 2 else LoadError)
            assert f"value {2000 + number} > max 1000" in str(outcome.error)
    assert sorted(str(commit.message) for commit in written(graph, since)) == sorted(valid)
    assert names(graph) == sorted(valid)
    check_sound(graph)


def test_of_threads_that_take_the_only_place_of_a_node_one_succeeds(graph):
    """Each edge alone keeps `@card(0..1)`; no two of them do."""
    companies = [f"c{number}" for number in range(THREADS)]
    graph.load({"Person": [{"name": "ada"}], "Company": [{"name": c} for c in companies]}, "append")
    outcomes = together([partial(graph.mutate, HIRE, {"who": "ada", "at": c}) for c in companies])
    [winner] = [number for number, outcome in enumerate(outcomes) if outcome.error is None]
    refused(outcomes, MutationError)
    rows = graph.scan("WorksAt", columns=["src", "dst"]).read_all().to_pylist()
    assert rows == [{"src": "ada", "dst": companies[winner]}]
    check_sound(graph)


def test_of_threads_that_expect_the_same_head_exactly_one_succeeds(graph):
    since = graph.head()
    calls = [
        partial(graph.insert, "Person", [{"name": f"p{n}"}], expected_head=since)
        for n in range(THREADS)
    ]
    outcomes = together(calls)
    [winner] = [number for number, outcome in enumerate(outcomes) if outcome.error is None]
    for error in refused(outcomes, HeadMoved):
        assert error.expected == since.id
    [commit] = written(graph, since)
    assert outcomes[winner].get().receipt.graph_commit_id == commit.id
    assert names(graph) == [f"p{winner}"]
    check_sound(graph)


def test_an_expected_head_refuses_only_the_write_that_names_it(graph):
    """Some name the head, others do not: at most one of the first, all of the others."""
    since = graph.head()
    calls = [
        partial(
            graph.mutate,
            ADD,
            {"name": f"p{n}", "age": n},
            expected_head=since if n % 2 else None,
        )
        for n in range(THREADS)
    ]
    outcomes = together(calls)
    receipts(outcomes[::2])
    assert len(refused(outcomes[1::2], HeadMoved)) >= THREADS // 2 - 1
    landed = [f"p{n}" for n, outcome in enumerate(outcomes) if outcome.error is None]
    assert names(graph) == sorted(landed)
    for number, outcome in enumerate(outcomes):
        if number % 2 and outcome.error is None:
            assert outcome.get().receipt.parent_commit_id == since.id
    check_sound(graph)


@pytest.mark.parametrize("edges_by", ["mutate", "insert"])
def test_a_node_deleted_while_edges_to_it_are_inserted_leaves_no_dangling_edge(graph, edges_by):
    people = [f"p{number}" for number in range(THREADS - 1)]
    rounds = 2
    graph.load({"Person": [{"name": name} for name in people]}, "append")
    for round in range(rounds):
        firm = f"firm{round}"
        graph.insert("Company", [{"name": firm}])
        since = graph.head()

        def hire(name: str, firm: str = firm) -> Any:
            time.sleep(random.uniform(0, 0.05))
            if edges_by == "mutate":
                return graph.mutate(HIRE, {"who": name, "at": firm}, message=name)
            return graph.insert("WorksAt", [{"from": name, "to": firm}], message=name)

        def close(firm: str = firm) -> Any:
            time.sleep(random.uniform(0, 0.05))
            return graph.mutate(CLOSE, {"name": firm}, message="close")

        deleted, *hired = together([close, *(partial(hire, name) for name in people)])
        end = deleted.get().receipt.manifest_version
        commits = {str(commit.message): commit for commit in written(graph, since)}
        landed = {name for name, outcome in zip(people, hired, strict=True) if not outcome.error}
        refused(hired, MutationError if edges_by == "mutate" else LoadError)
        assert set(commits) == {"close", *landed}
        assert all(commits[name].number < end for name in landed)
        before = graph.scan("WorksAt", columns=["src"], at=f"{commits['close'].id}~1").read_all()
        assert set(before.column("src").to_pylist()) == landed
        assert graph.scan("WorksAt", columns=["src"]).read_all().num_rows == 0
        assert names(graph, "Company") == []
        assert deleted.get().receipt.counts["node:Company"].deleted == 1
    check_sound(graph)


# -- prepared before the turn, committed in it -------------------------------------------------


@dataclass(frozen=True)
class Overtaken:
    """Two writes prepared on the same state; the second is committed after the first."""

    first: Callable[[Graph], Any]
    second: Callable[[Graph], Any]
    error: str | None = None
    """What the second is refused with."""
    holds: bool = False
    """Whether what the second prepared can be committed as it is."""


def _age(name: str, age: int) -> Callable[[Graph], Any]:
    return lambda graph: graph.mutate(AGE, {"name": name, "age": age})


def _hire(name: str, firm: str) -> Callable[[Graph], Any]:
    return lambda graph: graph.mutate(HIRE, {"who": name, "at": firm})


def _load(mode: str, type: str, **row: Any) -> Callable[[Graph], Any]:
    return lambda graph: graph.load({type: [row]}, mode)


def _run(text: str) -> Callable[[Graph], Any]:
    return lambda graph: graph.mutate(f"query q() {{ {text} }}")


OVERTAKEN = {
    "other rows of the table are inserted": Overtaken(
        _load("append", "Person", name="new"), _load("append", "Person", name="newer"), holds=True
    ),
    "another row of the table is updated": Overtaken(_age("ada", 1), _age("bob", 2), holds=True),
    "another row of the table is deleted": Overtaken(
        _run('delete Person where name = "ada"'), _age("bob", 2), holds=True
    ),
    "an edge between other nodes is inserted": Overtaken(
        _load("append", "Knows", **{"from": "ada", "to": "ada"}),
        _load("append", "Knows", **{"from": "bob", "to": "cid"}),
        holds=True,
    ),
    "the row is updated": Overtaken(_age("ada", 1), _age("ada", 2)),
    "the row is deleted": Overtaken(_run('delete Person where name = "ada"'), _age("ada", 2)),
    "the row is replaced": Overtaken(
        _load("merge", "Person", name="ada", age=7), _load("merge", "Person", name="ada", age=8)
    ),
    "the key is taken": Overtaken(
        _load("append", "Person", name="new"), _load("append", "Person", name="new"), "new"
    ),
    "a node of the edge is deleted": Overtaken(
        _run('delete Person where name = "ada"'),
        _load("append", "Knows", **{"from": "ada", "to": "bob"}),
        "ada",
    ),
    "an edge of the deleted node is inserted": Overtaken(
        _load("append", "Knows", **{"from": "ada", "to": "bob"}),
        _run('delete Person where name = "ada"'),
    ),
    "the only place of the node is taken": Overtaken(
        _hire("ada", "uno"), _hire("ada", "due"), "WorksAt"
    ),
    "a unique value is taken": Overtaken(
        _load("append", "Badge", name="one", code="x"),
        _load("append", "Badge", name="two", code="x"),
        "code",
    ),
    "a row comes to match a condition": Overtaken(
        _age("ada", 100), _run("update Person set { age: 5 } where age > 1")
    ),
    "a row comes to match a deletion": Overtaken(
        _load("append", "Person", name="new", age=100), _run("delete Person where age > 1")
    ),
}


@pytest.mark.parametrize("case", OVERTAKEN)
def test_a_write_prepared_before_another_commits_is_as_if_it_came_after_it(
    local_uri, monkeypatch, case
):
    """Both wait for the lock with their changes prepared, and share the turn."""
    setting = OVERTAKEN[case]

    def new(name: str) -> Graph:
        graph = init(f"{local_uri}-{name}", SCHEMA)
        people = [
            {"name": name, "age": number} for number, name in enumerate(("ada", "bob", "cid"))
        ]
        graph.load({"Person": people, "Company": [{"name": "uno"}, {"name": "due"}]}, "append")
        return graph

    one_after_the_other, at_once = new("one"), new("two")
    setting.first(one_after_the_other)
    if setting.error is None:
        setting.second(one_after_the_other)

    prepared_again: list[WriteRequest] = []
    prepared_on = WriteRequest.prepared_on

    def note(request: WriteRequest, current: Snapshot) -> WriteRequest:
        prepared_again.append(request)
        return prepared_on(request, current)

    monkeypatch.setattr(WriteRequest, "prepared_on", note)
    pause = Pause()
    with armed("mutation.post_table_commit", pause, times=1), ThreadPoolExecutor(3) as pool:
        holding = pool.submit(at_once.insert, "Company", [{"name": "holds the lock"}])
        pause.wait_until_reached()
        waiting = []
        for write in (setting.first, setting.second):
            waiting.append(pool.submit(write, at_once))
            time.sleep(WAITING_SECONDS)
        pause.release()
        holding.result(timeout=60)
        waiting[0].result(timeout=60)
        if setting.error is None:
            waiting[1].result(timeout=60)
        else:
            with pytest.raises((LoadError, MutationError), match=setting.error):
                waiting[1].result(timeout=60)
    assert bool(prepared_again) is not setting.holds
    for type in ("Person", "Badge", "Knows", "WorksAt"):
        assert _rows(at_once, type) == _rows(one_after_the_other, type)
    check_sound(at_once)


def _rows(graph: Graph, type: str) -> list[dict[str, Any]]:
    """The rows of a type without generated ids, in a fixed order."""
    rows = graph.scan(type).read_all().to_pylist()
    if "src" in graph.scan(type).schema.names:
        rows = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    return sorted(rows, key=repr)


def test_a_write_that_comes_during_a_turn_is_published_with_it(local_uri, monkeypatch):
    """Three writers share a turn: the third comes when the first two have begun."""
    monkeypatch.setattr("omnigraph.commit.turn.MAX_TURN_SECONDS", 60.0)
    graph, turn, publishes = init(local_uri, SCHEMA), Pause(), list[object]()
    graph.insert("Person", [{"name": "first"}])
    alone, tables = Pause(), "mutation.post_table_commit"
    with ThreadPoolExecutor(4) as pool, armed(tables, alone, times=1):
        waiting = [pool.submit(add, graph, "p0", 0)]
        alone.wait_until_reached()
        waiting += [pool.submit(add, graph, f"p{n}", n) for n in (1, 2)]
        time.sleep(WAITING_SECONDS)
        with armed(tables, turn, times=1):
            alone.release()
            turn.wait_until_reached()
            with armed("graph_publish.before_manifest_commit", Call(publishes.append)):
                waiting.append(pool.submit(add, graph, "p3", 3))
                time.sleep(WAITING_SECONDS)
                turn.release()
                made = [later.result(timeout=60).receipt for later in waiting]
    assert len(publishes) == 1
    present = {"first"}
    for receipt in sorted(made, key=lambda receipt: receipt.manifest_version):
        before, present = present, set(names(graph, at=receipt.graph_commit_id))
        assert before < present
        assert len(present) == len(before) + 1
    assert present == {"first", "p0", "p1", "p2", "p3"}
    check_sound(graph)


# -- writes of every kind ----------------------------------------------------------------------


def _several_kinds(graph: Graph, count: int) -> list[Callable[[], Any]]:
    """Writes of every kind; number `n` leaves the person `p{n}` with the age `n`."""

    def load(number: int) -> Any:
        rows = {"Person": [{"name": f"p{number}", "age": number}]}
        return graph.load(rows, "merge", load_id=f"l{number}", message=f"p{number}")

    def insert(number: int) -> Any:
        rows = [{"name": f"p{number}", "age": number}]
        return graph.insert("Person", rows, message=f"p{number}")

    def upsert(number: int) -> Any:
        rows = [{"name": f"p{number}", "age": number}]
        return graph.upsert("Person", rows, message=f"p{number}")

    def mutate(number: int) -> Any:
        return graph.mutate(ADD, {"name": f"p{number}", "age": number}, message=f"p{number}")

    def merge(number: int) -> Any:
        return graph.merge(f"b{number}", message=f"p{number}")

    kinds = [mutate, insert, upsert, load, merge]
    for number in range(count):
        if kinds[number % 5] is merge:
            branch = graph.branches.create(f"b{number}")
            branch.mutate(ADD, {"name": f"p{number}", "age": number}, message="on the branch")
    return [partial(kinds[number % 5], number) for number in range(count)]


def test_writes_of_every_kind_at_once_all_land(graph):
    count = 20
    calls = _several_kinds(graph, count)
    since = graph.head()
    outcomes = together(calls)
    commits = {str(commit.message): commit for commit in written(graph, since)}
    assert set(commits) == {f"p{number}" for number in range(count)}
    for number, outcome in enumerate(outcomes):
        commit, receipt = commits[f"p{number}"], outcome.get().receipt
        assert (commit.id, commit.number) == (receipt.graph_commit_id, receipt.manifest_version)
        assert len(commit.parents) == (2 if number % 5 == 4 else 1)
    present: list[str] = []
    for commit in sorted(commits.values(), key=lambda commit: commit.number):
        present.append(str(commit.message))
        assert names(graph, at=commit) == sorted(present)
    found = {row["name"]: row["age"] for row in graph.scan("Person").read_all().to_pylist()}
    assert found == {f"p{number}": number for number in range(count)}
    check_sound(graph)


def test_a_merge_that_conflicts_is_refused_alone(graph):
    graph.insert("Person", [{"name": "ada", "age": 0}])
    for number in range(4):
        graph.branches.create(f"b{number}").mutate(AGE, {"name": "ada", "age": number + 1})
    since = graph.head()
    merges = [partial(graph.merge, f"b{number}", message="merge") for number in range(4)]
    outcomes = together([*merges, *(partial(add, graph, f"p{n}", n) for n in range(8))])
    receipts(outcomes[4:])
    refused(outcomes[:4], MergeConflicts)
    [winner] = [number for number, outcome in enumerate(outcomes[:4]) if outcome.error is None]
    assert graph.get("Person", "ada")["age"] == winner + 1
    made = sorted(str(commit.message) for commit in written(graph, since))
    assert made == sorted(["merge", *(f"add p{number}" for number in range(8))])
    check_sound(graph)


# -- a thread that is interrupted --------------------------------------------------------------


def _interrupt() -> None:
    """Ctrl-C for the main thread. Unlike `interrupt_main`, this also wakes it if it waits."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def _until_interrupted(write: Callable[[], Any], begun: threading.Event) -> Receipt | None:
    """Write until an interrupt comes; the receipt if it came after the write."""
    assert threading.current_thread() is threading.main_thread()
    receipt: Receipt | None = None
    try:
        begun.set()
        receipt = write().receipt
        time.sleep(60)
    except KeyboardInterrupt:
        return receipt
    raise AssertionError("no interrupt came")


class Interrupted:
    """A graph whose main thread is interrupted while it and other threads add people."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._people: set[str] = set()
        self.begun = threading.Event()
        """Set once an interrupt of the main thread is caught."""
        self.rounds = self.without_receipt = self.landed = 0

    def round(self, others: int, interrupting: AbstractContextManager[object]) -> None:
        """One write of the main thread beside some of other threads, and what must hold after."""
        graph, since, self.rounds = self._graph, self._graph.head(), self.rounds + 1
        mine = f"mine{self.rounds}"
        names_of_others = [f"p{self.rounds}-{number}" for number in range(others)]
        threads = Together([partial(self._add_once_begun, name) for name in names_of_others])
        self.begun.clear()
        with interrupting:
            threads.start()
            receipt = _until_interrupted(partial(add, graph, mine, 2), self.begun)
            receipts(threads.outcomes())
        commits = {str(commit.message): commit for commit in written(graph, since)}
        landed = commits.pop(f"add {mine}", None)
        assert set(commits) == {f"add {name}" for name in names_of_others}
        assert (mine in names(graph)) is (landed is not None)
        if landed is None:
            assert receipt is None
        elif receipt is not None:
            check_receipt(landed, receipt, actor=f"actor-{mine}", message=f"add {mine}")
        check_sound(graph)
        repeated = add(graph, mine, 2).receipt
        assert repeated.replayed is (landed is not None)
        assert landed is None or repeated.graph_commit_id == landed.id
        self._people |= {mine, *names_of_others}
        assert names(graph) == sorted(self._people)
        self.without_receipt += receipt is None
        self.landed += landed is not None

    def _add_once_begun(self, name: str) -> Any:
        self.begun.wait()
        return add(self._graph, name, 1)

    def report(self) -> None:
        print(f"{self.rounds} writes: {self.without_receipt} interrupted, {self.landed} landed")


@contextmanager
def _at_a_random_moment(begun: threading.Event) -> Iterator[None]:
    def interrupt_later() -> None:
        begun.wait()
        time.sleep(random.uniform(0, 0.15))
        _interrupt()

    interrupting = threading.Thread(target=interrupt_later)
    interrupting.start()
    yield
    interrupting.join()


def test_a_write_interrupted_at_a_random_moment_is_there_as_a_whole_or_not_at_all(graph):
    interrupted = Interrupted(graph)
    for _ in range(4):
        interrupted.round(6, _at_a_random_moment(interrupted.begun))
    interrupted.report()


STEPS = (
    "lock.after_acquire",
    "recovery.sidecar_written",
    "mutation.pre_table_commit",
    "graph_publish.after_manifest_commit",
)


@pytest.mark.parametrize("step", STEPS)
def test_a_write_interrupted_at_a_step_is_there_as_a_whole_or_not_at_all(local_uri, step):
    """The step is one of the interrupted write, or of one that it waits for."""
    interrupted = Interrupted(init(local_uri, SCHEMA))
    for others in (0, 4):
        interrupted.round(others, armed(step, Call(lambda _: _interrupt()), times=1))
    interrupted.report()
