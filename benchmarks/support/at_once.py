"""How much more two threads get done than one, and how much two processes do: the machine's limit.

Whoever asks does so several times in a row, as the threads of a server do.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

Ask: TypeAlias = Callable[[], object]

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Gain:
    """What one call takes alone, and how many times as quick two at once are."""

    alone: float
    threads: float
    processes: float


def gain(make_ask: Callable[[], Ask], runs: int) -> Gain:
    """Measured in turns, so that whatever else the machine does falls on all of them.

    `make_ask` is called here and in two new processes, and has to be importable there.
    """
    ask = make_ask()
    ask()
    one, two, one_process, two_processes = [], [], [], []
    with ThreadPoolExecutor(2) as pool, _children(make_ask) as children:
        for _ in range(ROUNDS):
            one.append(_seconds(lambda: _repeat(ask, 2 * runs)))
            two.append(_seconds(lambda: list(pool.map(_repeat, (ask, ask), (runs, runs)))))
            one_process.append(_seconds(lambda: _have_done(children[:1], 2 * runs)))
            two_processes.append(_seconds(lambda: _have_done(children, runs)))
    middle = statistics.median
    return Gain(
        middle(one) / (2 * runs),
        middle(one) / middle(two),
        middle(one_process) / middle(two_processes),
    )


def _repeat(ask: Ask, times: int) -> None:
    for _ in range(times):
        ask()


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@contextmanager
def _children(make_ask: Callable[[], Ask]) -> Iterator[list[Connection]]:
    spawning = multiprocessing.get_context("spawn")
    pipes = [spawning.Pipe() for _ in range(2)]
    processes = [spawning.Process(target=_work, args=(make_ask, there)) for _, there in pipes]
    for process in processes:
        process.start()
    children = [here for here, _ in pipes]
    _have_done(children, 1)
    yield children
    for child, process in zip(children, processes, strict=True):
        child.send(0)
        process.join()


def _work(make_ask: Callable[[], Ask], orders: Connection) -> None:
    ask = make_ask()
    while times := orders.recv():
        _repeat(ask, times)
        orders.send(times)


def _have_done(children: list[Connection], times: int) -> None:
    for child in children:
        child.send(times)
    for child in children:
        child.recv()
