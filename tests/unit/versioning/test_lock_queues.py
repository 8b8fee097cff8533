"""Writers of one process queue for a branch: in order, for a limited time, and leave no trace."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.errors import InputError
from omnigraph.limits import LOCK_WAIT_MS
from omnigraph.settings import read_settings
from omnigraph.versioning.locks.process_lock import LockQueues

KEY = ("graph", None)


@pytest.fixture
def queues():
    return LockQueues()


def length(queues: LockQueues) -> int:
    return len(queues._queues.get(KEY, ()))


def wait_for_length(queues: LockQueues, expected: int) -> None:
    deadline = time.monotonic() + 10
    while length(queues) != expected:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_writers_get_their_turn_in_the_order_of_their_coming(queues):
    served: list[int] = []

    def write(number: int) -> None:
        with queues.join(KEY, f"write {number}") as place:
            assert place.wait(10)
            served.append(number)

    with ThreadPoolExecutor(8) as threads:
        with queues.join(KEY, "first"):
            for number in range(8):
                threads.submit(write, number)
                wait_for_length(queues, number + 2)
        wait_for_length(queues, 0)
    assert served == list(range(8))


def test_only_one_writer_is_at_the_head_at_a_time(queues):
    inside = overlaps = 0

    def write(_number: int) -> None:
        nonlocal inside, overlaps
        with queues.join(KEY, "write") as place:
            assert place.wait(30)
            inside += 1
            overlaps += inside > 1
            time.sleep(0)
            inside -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(400)))
    assert overlaps == 0


def test_a_writer_that_gives_up_is_skipped(queues):
    def patient():
        with queues.join(KEY, "patient") as place:
            return place.wait(10)

    with ThreadPoolExecutor(1) as threads:
        with queues.join(KEY, "first"):
            with queues.join(KEY, "impatient") as place:
                last = threads.submit(patient)
                wait_for_length(queues, 3)
                assert not place.wait(0.01)
            assert queues.first(KEY) == "first"
            assert not last.done()
        assert last.result()


def test_the_writer_at_the_head_takes_what_is_offered_to_it_meanwhile(queues):
    with (
        queues.join(KEY, "head"),
        queues.join(KEY, "one", "a") as one,
        queues.join(KEY, "two", "b") as two,
    ):
        assert queues.take(KEY, 1, lambda _: True) == [one]
        with queues.join(KEY, "three", "c") as three, queues.join(KEY, "four", "d") as four:
            assert queues.take(KEY, 9, lambda offer: offer != "d") == [two, three]
            assert queues.take(KEY, 9, lambda _: True) == [four]
            assert queues.take(KEY, 9, lambda _: True) == []
            queues.give_back(KEY, [one, two, three, four], {one, two, three, four})
    assert length(queues) == 0


def test_without_patience_a_free_lock_is_taken_and_a_held_one_is_not(queues):
    with queues.join(KEY, "first") as first:
        assert first.wait(0)
        with queues.join(KEY, "second") as second:
            assert not second.wait(0)
    with queues.join(KEY, "third") as third:
        assert third.wait(0)


def test_branches_and_graphs_have_queues_of_their_own(queues):
    with queues.join(KEY, "write"):
        for other in [("graph", "feature"), ("other", None)]:
            with queues.join(other, "write") as place:
                assert place.wait(0)


def test_an_interrupted_writer_leaves_the_queue(queues):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with queues.join(KEY, "first"):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt), queues.join(KEY, "second") as place:
                place.wait(10)
            assert length(queues) == 1
        assert length(queues) == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_empty_queues_take_no_memory(queues):
    for number in range(10):
        with queues.join(("graph", f"branch-{number}"), "write"):
            pass
    assert queues._queues == {}


# -- how long writers wait -------------------------------------------------------------------


@pytest.mark.parametrize(("value", "wait"), [("0", 0), ("250", 250), ("999999999", 999_999_999)])
def test_the_environment_says_how_long_to_wait(value, wait):
    assert read_settings({"OMNIGRAPH_LOCK_WAIT_MS": value}).lock_wait_ms == wait


def test_without_a_setting_the_default_applies():
    assert read_settings({}).lock_wait_ms == LOCK_WAIT_MS == 30_000


@pytest.mark.parametrize(
    "value", ["", "soon", "-1", "1.5", "1e3", " 10", "1_000", "٣", "9999999999"]
)
def test_a_wait_that_is_no_number_of_milliseconds_is_refused(value):
    with pytest.raises(InputError, match="OMNIGRAPH_LOCK_WAIT_MS") as caught:
        read_settings({"OMNIGRAPH_LOCK_WAIT_MS": value})
    assert f"'{value}'" in str(caught.value)
