"""What a process of these tests does. Importable by a process that is started for it."""

from __future__ import annotations

import sys

from omnigraph.api.graph import open as open_graph
from omnigraph.testing.faults import arm_from_environment


def open_and_list(uri: str) -> list[str]:
    """Open a graph for writing, with the traps that the environment asks for."""
    arm_from_environment()
    return [str(name) for name in list(open_graph(uri).branches)]


if __name__ == "__main__":
    print(open_and_list(sys.argv[1]))
