"""The four planes of commands and the addressing rules that follow from them.

A plane says how a command reaches a graph, and so which addressing options make sense. The rules
are checked before a command does anything. Tests: tests/unit/cli/test_planes.py.
"""

from __future__ import annotations

from enum import Enum

from omnigraph.errors import UsageError


class Plane(Enum):
    """How a command reaches a graph, in the order the help lists them."""

    DATA = "data"
    STORAGE = "storage"
    CONTROL = "control"
    SESSION = "session"


LEGEND = {
    Plane.DATA: "reads and writes a graph, embedded or through a server",
    Plane.STORAGE: "needs the storage of a graph itself: a path or an s3:// address",
    Plane.CONTROL: "manages declared deployments: --config names their directory",
    Plane.SESSION: "works on files and settings of this machine; addresses no graph",
}

_INSTEAD = {
    Plane.STORAGE: "Use --target <name>, a storage URI, or --cluster <dir> --cluster-graph <id>.",
    Plane.CONTROL: "Name the deployment with --config <dir>.",
    Plane.SESSION: "The command addresses no graph.",
}
_INSTEAD_FOR = {"init": "Pass a storage URI."}
"""Commands to which the advice of their plane does not apply."""


def is_remote(uri: str) -> bool:
    """Whether an address is that of a server rather than of storage."""
    return uri.startswith(("http://", "https://"))


def refuse_server(command: str, plane: Plane) -> None:
    """Raise unless `--server` and `--graph` mean something to commands of this plane."""
    if plane is Plane.DATA:
        return
    advice = _INSTEAD_FOR.get(command, _INSTEAD[plane])
    raise UsageError(
        f"`{command}` is a {plane.value}-plane command; --server/--graph address the data plane "
        f"and do not apply. {advice}"
    )


def refuse_remote(command: str, uri: str) -> None:
    """Raise when a storage-plane command is pointed at a server instead of at storage."""
    if is_remote(uri):
        raise UsageError(
            f"`{command}` is a storage-plane command and needs direct storage access; "
            f"{uri} is a remote server"
        )
