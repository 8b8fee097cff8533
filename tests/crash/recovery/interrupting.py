"""A process that writes until it is told to stop, whatever interrupts it. Run by a test."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import ExpectedVersionMismatch
from tests.crash.recovery.situations import HIRE


class Interrupts:
    """Counts interrupts; one that arrives during a write is raised there, once."""

    def __init__(self) -> None:
        self.count = 0
        self.is_writing = False
        signal.signal(signal.SIGINT, self._arrived)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.is_writing:
            self.is_writing = False
            raise KeyboardInterrupt


def hire(graph: Graph, number: int, interrupts: Interrupts) -> bool:
    """Whether the call said that it worked."""
    try:
        interrupts.is_writing = True
        graph.mutate(HIRE, {"who": f"p{number}", "company": f"c{number}"})
        interrupts.is_writing = False
    except ExpectedVersionMismatch:
        interrupts.is_writing = False
        graph.maintenance.recover()
        return False
    except KeyboardInterrupt:
        return False
    return True


def main(uri: str, log: Path) -> None:
    graph = open_graph(uri)
    interrupts = Interrupts()
    log.touch()
    number = 0
    while not log.with_suffix(".stop").exists():
        number += 1
        if hire(graph, number, interrupts):
            with log.open("a") as file:
                file.write(f"p{number}\n")
    log.with_suffix(".interrupts").write_text(str(interrupts.count))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
