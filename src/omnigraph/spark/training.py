"""Processes that `omnigraph.spark.start_cache` starts: one for each session, because Spark allows one per process.

`python -m omnigraph.spark.training make FILE` has Java run a small job and write down what it loaded.
`python -m omnigraph.spark.training start [FLAG…]` prints how many seconds a session takes to start.
Tests: tests/spark/test_start_cache.py.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FrameType

from omnigraph.errors import OmnigraphError
from omnigraph.limits import START_CACHE_SECONDS
from omnigraph.spark.session import EMBEDDED, new_java, new_session, settings_for
from omnigraph.spark.tasks import Sent, run_exchange


def make(file: str) -> None:
    """Have Java write the file."""
    settings = settings_for(EMBEDDED)
    gateway = new_java(settings, [f"-XX:AOTCacheOutput={file}"]).wait()
    try:
        with gateway.offered():
            spark = new_session(settings)
        run_exchange(spark, "train", 2, _send, 1, _reduce)
        spark.stop()
        # Java writes the file when it ends.
        gateway.close(START_CACHE_SECONDS)
    except BaseException:
        # Java leaves the writing to a child of its own, which would outlive it.
        with suppress(ProcessLookupError):
            os.killpg(gateway.process.pid, signal.SIGKILL)
        gateway.end()
        raise


def start(flags: Sequence[str]) -> float:
    """The seconds until a session is there."""
    started = time.perf_counter()
    settings = settings_for(EMBEDDED)
    gateway = new_java(settings, flags).wait()
    try:
        with gateway.offered():
            new_session(settings)
        return time.perf_counter() - started
    finally:
        gateway.end()


def _send(task: int) -> Iterator[Sent | int]:
    yield Sent(0, b"")
    yield task


def _reduce(bucket: int, contents: Iterator[bytes]) -> int:
    return len(list(contents))


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(1)


def main(arguments: Sequence[str]) -> None:
    """Do what was asked for; what goes wrong is one line on standard error."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        match arguments:
            case ["make", file]:
                make(file)
            case ["start", *flags]:
                print(start(flags))
            case _:
                raise SystemExit(f"unknown arguments: {' '.join(arguments)}")
    except OmnigraphError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main(sys.argv[1:])
