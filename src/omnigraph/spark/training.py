"""The process that makes a file for quicker starts: Java runs a small job and writes down what it loaded.

Run as `python -m omnigraph.spark.training`. It takes a minute of one core and is in nobody's way.
Tests: tests/spark/test_start_cache.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from omnigraph.limits import START_CACHE_SECONDS
from omnigraph.spark.java import find_java
from omnigraph.spark.session import EMBEDDED, new_java, new_session, settings_for
from omnigraph.spark.start_cache import cache_file, give_up_claim, keep
from omnigraph.spark.tasks import Sent, run_exchange


def train(file: Path) -> None:
    """Make the file anew."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = file.with_suffix(f".{os.getpid()}")
    settings = settings_for(EMBEDDED)
    gateway = new_java(settings, [f"-XX:AOTCacheOutput={made}"]).wait()
    try:
        with gateway.offered():
            spark = new_session(settings)
        run_exchange(spark, "train", 2, _send, 1, _judge)
        spark.stop()
    finally:
        # Java writes the file when it ends.
        gateway.close(START_CACHE_SECONDS)
    keep(made, file)


def _send(task: int) -> Iterator[Sent | int]:
    yield Sent(0, b"")
    yield task


def _judge(bucket: int, contents: Iterator[bytes]) -> int:
    return len(list(contents))


def main() -> None:
    file = cache_file(find_java())
    if file is None:
        return
    os.nice(19)
    try:
        train(file)
    finally:
        for left in file.parent.glob(f"{file.stem}.{os.getpid()}*"):
            left.unlink(missing_ok=True)
        give_up_claim(file)


if __name__ == "__main__":
    main()
