from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

import omnigraph as og
from tests.docs.team import copy_team, make_team
from tests.surfaces.parity.implementations import IMPLEMENTATIONS


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example graph and its files, which tests copy."""
    folder = tmp_path_factory.mktemp("team")
    make_team(folder)
    return folder


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda implementation: implementation.name)
def graph(request: pytest.FixtureRequest, team: Path, tmp_path: Path) -> Iterator[og.GraphProtocol]:
    """The example graph through each implementation, in a folder with its files."""
    with chdir(tmp_path), request.param.open(copy_team(team, tmp_path)) as opened:
        yield opened
