"""What this process, its Java process and Python workers below that use: memory, and time of cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Peaks:
    """Megabytes by kind of process; workers are added up."""

    megabytes: dict[str, float] = field(default_factory=dict)

    def add(self, seen: dict[str, float]) -> None:
        for kind, size in seen.items():
            self.megabytes[kind] = max(self.megabytes.get(kind, 0.0), size)

    def __str__(self) -> str:
        return ", ".join(f"{kind} {size:,.0f} MB" for kind, size in self.megabytes.items())


@contextmanager
def watching(interval: float = 0.1) -> Iterator[Peaks]:
    """Look at all of them every so often."""
    peaks, done = Peaks(), threading.Event()

    def watch() -> None:
        while not done.wait(interval):
            peaks.add(_now())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()
        peaks.add(_now())


def core_seconds() -> dict[str, float]:
    """Seconds that cores have worked for each kind of process. Other work on the machine is not in it."""
    return _by_kind(_worked)


def _now() -> dict[str, float]:
    return _by_kind(_resident)


def _by_kind(measure: Callable[[int], float]) -> dict[str, float]:
    found = {"driver": measure(os.getpid()), "java": 0.0, "workers": 0.0}
    for child in _descendants(os.getpid()):
        kind = "java" if _name(child) == "java" else "workers"
        found[kind] += measure(child)
    return found


def _descendants(process: int) -> Iterator[int]:
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(c) for t in threads for c in (t / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from _descendants(child)


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def _resident(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE / 1e6
    except (OSError, IndexError):
        return 0.0


def _worked(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK
