from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

import omnigraph as og
from tests.surfaces.parity.implementations import IMPLEMENTATIONS


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda implementation: implementation.name)
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[og.GraphProtocol]:
    """The example graph through each implementation, in a folder with its files."""
    with chdir(tmp_path), request.param.make(tmp_path) as made:
        yield made
