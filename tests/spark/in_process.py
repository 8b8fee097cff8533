"""The work of tasks done by this process, in the order of their numbers, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from omnigraph.engine.write import load
from omnigraph.engine.write.bulk import prepare
from omnigraph.spark.tasks import Exchanged, Sent


def travelled(value: Any) -> Any:
    """What arrives of a value in another process."""
    return pickle.loads(pickle.dumps(value))


def run_tasks(_spark: Any, _job: str, count: int, kernel: Callable[[int], Any]) -> list[Any]:
    return [travelled(travelled(kernel)(number)) for number in range(count)]


def run_exchange(
    _spark: Any, _job: str, count: int, kernel: Any, _buckets: int, judge: Any
) -> Exchanged[Any, Any]:
    answers: list[Any] = []
    contents: dict[int, list[bytes]] = {}
    for number in range(count):
        for item in travelled(kernel)(number):
            if isinstance(item, Sent):
                contents.setdefault(item.bucket, []).append(item.content)
            else:
                answers.append(travelled(item))
    verdicts = [travelled(judge)(b, iter(parts)) for b, parts in sorted(contents.items())]
    return Exchanged(answers, travelled(verdicts))


@contextmanager
def tasks_in_this_process(step: int) -> Iterator[None]:
    """The work of tasks without Spark, so that many inputs can be tried."""
    with ExitStack() as patches:
        for module, name, stand_in in (
            (prepare, "run_tasks", run_tasks),
            (prepare, "run_exchange", run_exchange),
            (prepare, "LOAD_RANGE_BYTES", step),
            (load, "session_of", lambda choice: None),
        ):
            patches.enter_context(patch.object(module, name, stand_in))
        yield
