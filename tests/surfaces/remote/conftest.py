"""The command line in this process, and the servers that it talks to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import LIB, Server, library, serving
from tests.server.test_policies import POLICY, TOKENS
from tests.server.test_several_graphs import SERVER_POLICY
from tests.unit.cli.conftest import cli as cli
from tests.unit.cli.conftest import home as home


@pytest.fixture
def here(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with `lib.gq`, and an empty operator directory."""
    (tmp_path / "lib.gq").write_text(LIB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Pair:
    """The same graph twice: at a local path, and behind a server."""

    def __init__(self, local: Path, server: Server) -> None:
        self.local = str(local)
        self.url = f"http://{server.address}"
        self.server = server


@pytest.fixture(scope="session")
def library_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def pair(library_graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    for name in ("local", "served"):
        shutil.copytree(library_graph, folder / name)
    with serving(folder, folder / "served", "--unauthenticated") as server:
        yield Pair(folder / "local", server)


INVOKE = """\
  - id: invoke
    allow: {actors: {group: team}, actions: [invoke_query]}
"""
NO_DELETE = POLICY.replace(", branch_delete]", "]") + INVOKE


@pytest.fixture(scope="module")
def team(library_graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the graphs `alpha` and `beta`, with tokens, policies and stored queries.

    Nobody may delete a branch.
    """
    folder = tmp_path_factory.mktemp("team")
    for name in ("a", "b"):
        shutil.copytree(library_graph, folder / name)
    (folder / "lib.gq").write_text(LIB)
    (folder / "p.yaml").write_text(NO_DELETE)
    (folder / "s.yaml").write_text(SERVER_POLICY)
    queries = "{by_slug: {file: lib.gq}, all_authors: {file: lib.gq}, set_born: {file: lib.gq}}"
    (folder / "omnigraph.yaml").write_text(
        "graphs:\n"
        f"  alpha: {{uri: a, policy: {{file: p.yaml}}, queries: {queries}}}\n"
        "  beta: {uri: b, policy: {file: p.yaml}}\n"
        "server: {policy: {file: s.yaml}}\n"
    )
    with serving(folder, "--config", folder / "omnigraph.yaml", env=TOKENS) as server:
        yield server
