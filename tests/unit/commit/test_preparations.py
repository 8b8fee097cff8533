"""Preparations: few writes of a process are prepared at a time, and none waits for a slow one."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from omnigraph.commit.change import Preparations

PATIENCE_SECONDS = 10.0


def test_only_so_many_writes_are_prepared_at_a_time():
    slots, guard = Preparations(2, PATIENCE_SECONDS), threading.Lock()
    inside = most = 0

    def prepare(_number: int) -> None:
        nonlocal inside, most
        with slots.begin():
            with guard:
                inside += 1
                most = max(most, inside)
            time.sleep(0.002)
            with guard:
                inside -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(prepare, range(40)))
    assert most == 2
    assert not slots.are_pending


def test_a_preparation_that_takes_long_does_not_keep_others_waiting():
    slots, done = Preparations(1, 0.05), threading.Event()

    def prepare_slowly() -> None:
        with slots.begin():
            assert done.wait(PATIENCE_SECONDS)

    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(prepare_slowly)
        for _ in range(3):
            with slots.begin():
                assert not slow.done()
        done.set()
        slow.result()


def test_a_preparation_that_fails_makes_room():
    slots = Preparations(1, PATIENCE_SECONDS)
    for _ in range(3):
        try:
            with slots.begin():
                assert slots.are_pending
                raise ValueError
        except ValueError:
            continue
    assert not slots.are_pending
