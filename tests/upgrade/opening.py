"""What a process of these tests does. Importable by a process that is started for it."""

from __future__ import annotations

from omnigraph.api.graph import open as open_graph
from tests.support.faults import arm_from_environment


def print_branches(uri: str) -> None:
    """Open a graph for writing, with the traps that the environment asks for."""
    arm_from_environment()
    print([str(name) for name in list(open_graph(uri).branches)])
