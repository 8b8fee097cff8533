"""The implementations of a graph that one suite is run against: embedded, and behind a server.

What a remote graph does not offer is in `EMBEDDED_ONLY`; it raises `EmbeddedOnly`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import omnigraph as og
from tests.server.serving import serving


@dataclass(frozen=True)
class Implementation:
    """A way to open the example graph."""

    name: str
    open: Callable[[Path], AbstractContextManager[og.GraphProtocol]]
    is_embedded: bool


@contextmanager
def served(root: Path) -> Iterator[og.GraphProtocol]:
    """The graph behind a server process of its own."""
    with (
        TemporaryDirectory() as folder,
        serving(Path(folder), root, "--unauthenticated") as server,
    ):
        graph = og.connect(f"http://{server.address}")
        try:
            yield graph
        finally:
            graph.close()


EMBEDDED: Final = Implementation("embedded", og.open, is_embedded=True)
REMOTE: Final = Implementation("remote", served, is_embedded=False)
IMPLEMENTATIONS: Final = (EMBEDDED, REMOTE)

EMBEDDED_ONLY: Final[dict[str, Callable[[og.GraphProtocol], object]]] = {
    "analyze": lambda g: g.analyze("degrees"),
    "as_actor": lambda g: g.as_actor("bob"),
    "embed": lambda g: g.embed(dry_run=True),
    "maintenance.cleanup": lambda g: g.maintenance.cleanup(keep_versions=1),
    "maintenance.ensure_indexes": lambda g: g.maintenance.ensure_indexes(),
    "maintenance.optimize": lambda g: g.maintenance.optimize(),
    "maintenance.recover": lambda g: g.maintenance.recover(),
    "maintenance.recoveries": lambda g: g.maintenance.recoveries(),
    "maintenance.repair": lambda g: g.maintenance.repair(),
    "maintenance.verify": lambda g: g.maintenance.verify(),
    "maintenance.wait": lambda g: g.maintenance.wait(),
}
"""Calls that only a graph opened from its storage has."""
