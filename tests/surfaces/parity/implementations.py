"""The implementations of a graph that one suite is run against.

A graph behind a server joins the list when there is one; what it does not offer it names in
`embedded_only`, with the error that takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import omnigraph as og


@dataclass(frozen=True)
class Implementation:
    """A way to open the example graph."""

    name: str
    open: Callable[[Path], og.GraphProtocol]
    embedded_only: Mapping[str, type[og.OmnigraphError]] = field(default_factory=dict)


IMPLEMENTATIONS = (Implementation("embedded", og.open),)
