"""A process that writes until it is told to stop, whatever interrupts it. Run by a test."""

from __future__ import annotations

import sys
from pathlib import Path

from omnigraph.engine.graph import Graph
from omnigraph.engine.graph import open as open_graph
from omnigraph.errors import ExpectedVersionMismatch
from tests.crash.recovery.situations import HIRE


def write_on(graph: Graph, log: Path, number: list[int]) -> None:
    """Hire one person after the other, and note those of whom the call said that it worked."""
    while not log.with_suffix(".stop").exists():
        number[0] += 1
        try:
            graph.mutate(HIRE, who=f"p{number[0]}", company=f"c{number[0]}")
        except ExpectedVersionMismatch:
            graph.refresh()
            continue
        with log.open("a") as file:
            file.write(f"p{number[0]}\n")


def main(uri: str, log: Path) -> None:
    graph = open_graph(uri)
    log.touch()
    number = [0]
    interrupts = 0
    while True:
        try:
            write_on(graph, log, number)
            break
        except KeyboardInterrupt:
            interrupts += 1
    log.with_suffix(".interrupts").write_text(str(interrupts))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
