"""Setting traps at fault points: fail, fail like the store, kill the process, pause, call back.

    with armed("mutation.post_table_commit", Fail(), first=2) as record:
        ...
    assert record.count() == 2

A trap acts on its hits from number `first` on, `times` times (without end when None). It may be set
in another process: `describe` writes arms as the text of the environment variable
`OMNIGRAPH_FAULTS`, and a child that calls `arm_from_environment` sets them.
Tests: tests/unit/testing/test_faults.py.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

from omnigraph.errors import StorageError
from omnigraph.faults import FAULT_POINTS, FaultPoint, FaultPoints

DECLARED_IN: Final = (
    "omnigraph.cluster.deployment",
    "omnigraph.cluster.run",
    "omnigraph.cluster.store",
    "omnigraph.commit.background",
    "omnigraph.commit.writer",
    "omnigraph.history.tags",
    "omnigraph.load.spark_frames",
    "omnigraph.load.split_tasks",
    "omnigraph.maintenance.cleanup",
    "omnigraph.maintenance.indexes",
    "omnigraph.merge.table_merge",
    "omnigraph.mutation.writes",
    "omnigraph.providers.documents",
    "omnigraph.schema.apply",
    "omnigraph.schema.tables",
    "omnigraph.storage.durability",
    "omnigraph.versioning.bootstrap",
    "omnigraph.versioning.branches",
    "omnigraph.versioning.contract",
    "omnigraph.versioning.genesis",
    "omnigraph.versioning.locks.lease_lock",
    "omnigraph.versioning.locks.writer_locks",
    "omnigraph.versioning.publish",
    "omnigraph.versioning.recovery.act",
    "omnigraph.versioning.recovery.sidecar",
    "omnigraph.versioning.upgrade.migrate",
)
"""The modules that declare points. A graph loads them when they are needed, a trap is set before."""

for _module in DECLARED_IN:
    import_module(_module)

ENVIRONMENT_VARIABLE: Final = "OMNIGRAPH_FAULTS"
_ARM = re.compile(
    r"(?P<name>[a-z0-9_.]+)=(?P<action>fail|storage|kill|pause:(?P<path>[^;]+?))"
    r"(@(?P<first>[1-9][0-9]*))?(\*(?P<times>[1-9][0-9]*))?\Z"
)
_POLL_SECONDS: Final = 0.005


class InjectedFault(BaseException):
    """A test made the step fail.

    It stands for a crash, so the product must not handle it: it is outside the tree of the product's
    errors, and no `except Exception` catches it. Otherwise recovery would have nothing to recover.
    """

    def __init__(self, point: str) -> None:
        self.point = point
        super().__init__(f"injected failpoint triggered: {point}")

    def __reduce__(self) -> tuple[type[InjectedFault], tuple[str]]:
        return InjectedFault, (self.point,)


@dataclass(frozen=True, slots=True)
class Hit:
    """A point that was reached, with what the step said about itself."""

    name: str
    context: Mapping[str, object]


class Record:
    """The hits seen while traps were set, in order. Safe to read while other threads add to it."""

    def __init__(self) -> None:
        self._hits: list[Hit] = []
        self._lock = threading.Lock()

    def add(self, hit: Hit) -> None:
        with self._lock:
            self._hits.append(hit)

    @property
    def hits(self) -> tuple[Hit, ...]:
        with self._lock:
            return tuple(self._hits)

    def count(self, name: str | None = None) -> int:
        """How often a point was reached, or all of them together."""
        return sum(name in (None, hit.name) for hit in self.hits)

    def counts(self) -> dict[str, int]:
        """How often each point that was reached at all was reached, by name."""
        return {name: self.count(name) for name in sorted({hit.name for hit in self.hits})}


class FaultAction(Protocol):
    """What a trap does when its turn has come."""

    def act(self, hit: Hit) -> None: ...


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise the injected error, which a writer treats as a crash."""

    def act(self, hit: Hit) -> None:
        raise InjectedFault(hit.name)


@dataclass(frozen=True, slots=True)
class FailStorage:
    """Raise what a failing call to the store raises; a writer handles it as it would that one."""

    def act(self, hit: Hit) -> None:
        raise StorageError(f"storage: injected failure at {hit.name}")


@dataclass(frozen=True, slots=True)
class Kill:
    """End this process the hard way: no handler, no `finally`, no flush."""

    def act(self, hit: Hit) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Call:
    """Call a function with the hit, in the thread that reached the point."""

    function: Callable[[Hit], None]

    def act(self, hit: Hit) -> None:
        self.function(hit)


@dataclass(frozen=True, slots=True)
class Pause:
    """Hold every thread that arrives until the test lets go."""

    _arrived: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)

    def act(self, hit: Hit) -> None:
        self._arrived.set()
        self._released.wait()

    def wait_until_reached(self, timeout_s: float = 60) -> None:
        """Block until a thread is held here. Raises `TimeoutError`."""
        if not self._arrived.wait(timeout_s):
            raise TimeoutError(f"no thread reached the point within {timeout_s} s")

    def release(self) -> None:
        self._released.set()


@dataclass(frozen=True, slots=True)
class PauseAcrossProcesses:
    """The same for another process, through two files: `<path>.reached` and `<path>.release`."""

    path: Path

    def act(self, hit: Hit) -> None:
        self._file("reached").touch()
        while not self._file("release").exists():
            time.sleep(_POLL_SECONDS)

    def wait_until_reached(self, timeout_s: float = 60) -> None:
        """Block until some process is held here. Raises `TimeoutError`."""
        deadline = time.monotonic() + timeout_s
        while not self._file("reached").exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no process reached the point within {timeout_s} s")
            time.sleep(_POLL_SECONDS)

    def release(self) -> None:
        self._file("release").touch()

    def _file(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")


@dataclass(frozen=True, slots=True)
class Arm:
    """A trap to be set: the point, what to do, and on which of its hits."""

    name: str
    action: FaultAction
    first: int = 1
    times: int | None = None

    def __post_init__(self) -> None:
        if self.first < 1 or (self.times is not None and self.times < 1):
            raise ValueError("hits are counted from 1")


class _Trap:
    """An arm at work: counts the hits of its point and acts on those it is meant for."""

    def __init__(self, arm: Arm, record: Record) -> None:
        self._arm = arm
        self._record = record
        self._seen = 0
        self._lock = threading.Lock()

    def __call__(self, point: FaultPoint, context: Mapping[str, object]) -> None:
        hit = Hit(point.name, dict(context))
        self._record.add(hit)
        with self._lock:
            self._seen += 1
            turn = self._seen - self._arm.first
        # Acting happens outside the lock: it may block for long or never come back.
        if turn >= 0 and (self._arm.times is None or turn < self._arm.times):
            self._arm.action.act(hit)


@contextmanager
def armed(
    name: str,
    action: FaultAction,
    *,
    first: int = 1,
    times: int | None = None,
    points: FaultPoints = FAULT_POINTS,
) -> Iterator[Record]:
    """Set one trap for the length of the block. Raises `KeyError` for a point nobody declared."""
    record = Record()
    point = points[name]
    trap = _Trap(Arm(name, action, first, times), record)
    point.set_trap(trap)
    try:
        yield record
    finally:
        point.remove_trap(trap)


@contextmanager
def recording(points: FaultPoints = FAULT_POINTS) -> Iterator[Record]:
    """Note every hit of every declared point for the length of the block, and let it pass."""
    record = Record()

    def note(point: FaultPoint, context: Mapping[str, object]) -> None:
        record.add(Hit(point.name, dict(context)))

    with ExitStack() as traps:
        for point in points.all():
            point.set_trap(note)
            traps.callback(point.remove_trap, note)
        yield record


def arm_from_environment(
    environment: Mapping[str, str] = os.environ, points: FaultPoints = FAULT_POINTS
) -> Record:
    """Set the traps the environment asks for, until the process ends.

    Call it after the modules that declare the points are imported. Raises `KeyError` for a point
    nobody declared and `ValueError` for text that is no arm: a test that silently arms nothing
    would prove nothing.
    """
    record = Record()
    for arm in parse_arms(environment.get(ENVIRONMENT_VARIABLE, "")):
        points[arm.name].set_trap(_Trap(arm, record))
    return record


def parse_arms(text: str) -> tuple[Arm, ...]:
    """Read `name=kill@2;other=fail*3`: from the second hit on, and three times."""
    return tuple(_parse_arm(part.strip()) for part in text.split(";") if part.strip())


def describe(arms: Sequence[Arm]) -> str:
    """Arms as `parse_arms` reads them. Raises `ValueError` for an action bound to this process."""
    return ";".join(
        f"{arm.name}={_action_text(arm.action)}"
        f"{f'@{arm.first}' if arm.first > 1 else ''}{f'*{arm.times}' if arm.times else ''}"
        for arm in arms
    )


def _parse_arm(text: str) -> Arm:
    match = _ARM.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not of the form point=action[@first][*times]")
    actions: dict[str, FaultAction] = {"fail": Fail(), "storage": FailStorage(), "kill": Kill()}
    path = match["path"]
    action = actions[match["action"]] if path is None else PauseAcrossProcesses(Path(path))
    times = match["times"]
    return Arm(match["name"], action, int(match["first"] or 1), int(times) if times else None)


def _action_text(action: FaultAction) -> str:
    match action:
        case Fail():
            return "fail"
        case FailStorage():
            return "storage"
        case Kill():
            return "kill"
        case PauseAcrossProcesses(path):
            return f"pause:{path}"
        case _:
            raise ValueError(f"{type(action).__name__} cannot be armed in another process")
