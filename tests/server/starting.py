"""The server command in a process of the fork server."""

from __future__ import annotations

import os
import sys

# Imported once, before the processes are forked: what a server imports when it starts or is asked first.
import cedarpy  # noqa: F401
import uvicorn.loops.auto  # noqa: F401

import omnigraph.server.app
import omnigraph.server.boot
import omnigraph.server.cluster_boot
import omnigraph.server.graphs
import omnigraph.server.lifecycle  # noqa: F401
from omnigraph.server.command import run


def start(arguments: list[str], out: str, err: str, folder: str) -> None:
    """Run the command in a folder, with its two streams in files; ends with its exit code."""
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(folder)
    sys.exit(run(arguments))
