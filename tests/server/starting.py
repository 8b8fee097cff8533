"""The server command in a process of the fork server, for starts that are refused."""

from __future__ import annotations

import os
import sys

import omnigraph.server.app
import omnigraph.server.graphs  # noqa: F401 - imported once, before the processes are forked
from omnigraph.server.command import run


def start(arguments: list[str], out: str, err: str) -> None:
    """Run the command with its two streams in files; ends with its exit code."""
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.exit(run(arguments))
