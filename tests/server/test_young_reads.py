"""A few short reads run at a time, in order of arrival; one that takes long holds up none."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from omnigraph.server.young_reads import YoungReads


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Run:
    """A read that runs until it is told to end."""

    def __init__(
        self, reads: YoungReads, log: list[str], name: str, *, counts: bool = True
    ) -> None:
        self.end = asyncio.Event()
        self.task = asyncio.create_task(self._run(reads, log, name, counts))

    async def _run(self, reads: YoungReads, log: list[str], name: str, counts: bool) -> None:
        with await reads.begin(counts=counts) as read:
            read.when_old = lambda: log.append(f"{name} is old")
            log.append(name)
            await self.end.wait()


def test_reads_begin_in_order_when_there_is_room():
    async def story() -> list[str]:
        log: list[str] = []
        reads = YoungReads(2, 60.0)
        runs = [Run(reads, log, name) for name in "abcd"]
        await settle()
        assert log == ["a", "b"]
        runs[1].end.set()
        await settle()
        assert log == ["a", "b", "c"]
        for run in runs:
            run.end.set()
        await asyncio.gather(*(run.task for run in runs))
        again = [Run(reads, log, name) for name in "ef"]
        await settle()
        for run in again:
            run.end.set()
        await asyncio.gather(*(run.task for run in again))
        return log

    assert asyncio.run(story()) == ["a", "b", "c", "d", "e", "f"]


def test_a_read_that_takes_long_lets_the_next_begin_and_gives_its_room_once():
    async def story() -> None:
        log: list[str] = []
        reads = YoungReads(1, 0.01)
        slow = Run(reads, log, "slow")
        await settle()
        quick, last = Run(reads, log, "quick"), Run(reads, log, "last")
        async with asyncio.timeout(30):
            while "quick" not in log:
                await asyncio.sleep(0.005)
        assert log[:3] == ["slow", "slow is old", "quick"]
        slow.end.set()
        await slow.task
        quick.end.set()
        last.end.set()
        await asyncio.gather(quick.task, last.task)
        assert reads._counted == 0

    asyncio.run(story())


def test_a_read_that_waits_for_something_else_does_not_count():
    async def story() -> list[str]:
        log: list[str] = []
        reads = YoungReads(1, 60.0)
        runs = [Run(reads, log, name, counts=name == "a") for name in "abc"]
        await settle()
        for run in runs:
            run.end.set()
        await asyncio.gather(*(run.task for run in runs))
        assert reads._counted == 0
        return log

    assert asyncio.run(story()) == ["a", "b", "c"]


@pytest.mark.parametrize("has_its_turn", [False, True], ids=["waiting", "called"])
def test_a_read_that_is_cancelled_before_it_began_takes_no_room(has_its_turn):
    async def story() -> list[str]:
        log: list[str] = []
        reads = YoungReads(1, 60.0)
        first, second, third = (Run(reads, log, name) for name in "abc")
        await settle()
        if has_its_turn:
            reads.let_next()
        second.task.cancel()
        with suppress(asyncio.CancelledError):
            await second.task
        first.end.set()
        third.end.set()
        await asyncio.gather(first.task, third.task)
        return log

    assert asyncio.run(story()) == ["a", "c"]
