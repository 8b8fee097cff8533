"""What the stores promise when several threads or processes meet at one object."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from tests.contract.objects import racing
from tests.contract.objects.moto_server import environment_for
from tests.contract.objects.places import open_place
from tests.contract.objects.racing import shown, text_of

THREADS = 8
PROCESSES = 4


@pytest.fixture
def in_processes(shared_place, processes):
    """Run a function of `racing` in every process at the same moment, on stores of their own."""
    environment = {}
    if shared_place.root.kind == "s3":
        environment = environment_for(shared_place.endpoint)
    # The processes have to be up before the race begins.
    wait([processes.submit(time.sleep, 0.05) for _ in range(PROCESSES)])

    def run(work, *arguments):
        futures = [
            processes.submit(
                racing.in_process, work, shared_place.root.uri, environment, *each, soon()
            )
            for each in arguments
        ]
        return [future.result(timeout=60) for future in futures]

    return run


def soon():
    return time.time() + 0.05


def in_threads(*calls):
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(call, *arguments) for call, *arguments in calls]
        return [future.result(timeout=60) for future in futures]


def assert_one_winner_each(store, rounds, won):
    assert sorted(n for numbers in won for n in numbers) == list(range(rounds))
    for writer, numbers in enumerate(won):
        assert all(store.read_text(f"race/{n}") == text_of(writer) for n in numbers)


class TestThreads:
    def test_one_of_many_creates_and_its_text_stays(self, place, store):
        rounds, start = 5 if place.root.kind == "s3" else 100, soon()
        won = in_threads(*((racing.create_all, store, rounds, n, start) for n in range(THREADS)))
        assert_one_winner_each(store, rounds, won)

    def test_one_of_many_replaces_and_its_text_stays(self, store):
        for _ in range(5):
            store.write_text("race", "before")
            _, token = store.read_text_versioned("race")
            start = soon()
            won = in_threads(
                *((racing.replace_once, store, token, n, start) for n in range(THREADS))
            )
            assert won.count(True) == 1
            assert store.read_text("race") == text_of(won.index(True))

    def test_no_update_is_lost(self, place, store):
        store.write_text("number", "0 start")
        times, start = 3 if place.root.kind == "s3" else 10, soon()
        in_threads(*((racing.count_up, store, times, start) for _ in range(4)))
        assert store.read_text("number").split()[0] == str(4 * times)

    def test_a_reader_sees_one_whole_text_or_the_other(self, store):
        store.write_text("a", text_of(1))
        stop = time.time() + 0.4

        def write():
            writer = 0
            while time.time() < stop:
                writer = 3 - writer if writer else 2
                store.write_text("a", text_of(writer))

        seen = in_threads((write,), *((racing.watch, store, "a", stop) for _ in range(3)))
        assert set() < set().union(*seen[1:]) <= {shown(1), shown(2)}

    def test_a_created_text_appears_whole(self, store):
        stop = time.time() + 0.4

        def create():
            while time.time() < stop:
                store.write_text_if_absent("a", text_of(1))
                store.delete("a")

        seen = in_threads((create,), *((racing.watch, store, "a", stop) for _ in range(3)))
        assert set().union(*seen[1:]) <= {shown(1)}

    def test_an_object_can_be_written_while_its_directory_is_cleared(self, store):
        def write(name):
            for _ in range(30):
                store.write_text_if_absent(f"d/{name}", "x")
                store.delete_prefix(f"d/{name}")

        in_threads(*((write, n) for n in range(4)))
        assert not store.exists("d")


class TestProcesses:
    def test_one_of_many_creates_and_its_text_stays(self, shared_place, in_processes):
        rounds = 10 if shared_place.root.kind == "s3" else 100
        won = in_processes("create_all", *((rounds, n) for n in range(PROCESSES)))
        assert_one_winner_each(open_place(shared_place), rounds, won)

    def test_one_of_many_replaces_and_its_text_stays(self, shared_place, in_processes):
        store = open_place(shared_place)
        for _ in range(3):
            store.write_text("race", "before")
            _, token = store.read_text_versioned("race")
            won = in_processes("replace_once", *((token, n) for n in range(PROCESSES)))
            assert won.count(True) == 1
            assert store.read_text("race") == text_of(won.index(True))

    def test_no_update_is_lost(self, shared_place, in_processes):
        store = open_place(shared_place)
        store.write_text("number", "0 start")
        times = 3 if shared_place.root.kind == "s3" else 25
        in_processes("count_up", *((times,) for _ in range(PROCESSES)))
        assert store.read_text("number").split()[0] == str(PROCESSES * times)
