from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, chdir
from pathlib import Path

import pytest

import omnigraph as og
from tests.docs.team import copy_team, make_team
from tests.server.serving import serving
from tests.surfaces.parity.implementations import IMPLEMENTATIONS, Implementation


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example graph and its files, which tests copy."""
    folder = tmp_path_factory.mktemp("team")
    make_team(folder)
    return folder


@pytest.fixture
def team_folder(team: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the example graph and its files, which is the working directory."""
    with chdir(tmp_path):
        yield copy_team(team, tmp_path)


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda implementation: implementation.name)
def implementation(request: pytest.FixtureRequest) -> Implementation:
    found: Implementation = request.param
    return found


@pytest.fixture
def graph(implementation: Implementation, team_folder: Path) -> Iterator[og.GraphProtocol]:
    """The example graph through each implementation, in a folder with its files."""
    with implementation.open(team_folder) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_folder(team: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example graph that no test changes."""
    return copy_team(team, tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="session")
def shared_server(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server for that graph."""
    with serving(tmp_path_factory.mktemp("server"), shared_folder, "--unauthenticated") as server:
        yield f"http://{server.address}"


@pytest.fixture
def unchanged(
    implementation: Implementation, shared_folder: Path, request: pytest.FixtureRequest
) -> Iterator[og.GraphProtocol]:
    """A handle on the example graph for tests that change nothing, in the folder of its files."""
    with ExitStack() as opened:
        opened.enter_context(chdir(shared_folder.parent))
        if implementation.is_embedded:
            handle: og.GraphProtocol = og.open(shared_folder)
        else:
            handle = og.connect(request.getfixturevalue("shared_server"))
        yield handle
        handle.close()
