"""A server with the newsroom, and pages of one browser that look at it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.scene import HUB_NEIGHBOURS, make_scene
from tests.server.serving import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
EXECUTABLE = os.environ.get("OMNIGRAPH_TEST_BROWSER") or shutil.which("chromium")
TOKENS = {"emma": "t-emma", "reader": "t-reader"}
PATIENCE_MS = 60_000
"""How long a page may take; nothing waits longer than it has to, and a busy machine is slow."""
POLICY = """\
version: 1
groups:
  writers: [emma]
  readers: [emma, reader]
rules:
  - id: all-read
    allow: {actors: {group: readers}, actions: [read]}
  - id: writers-write
    allow: {actors: {group: writers}, actions: [change, export], branch_scope: any}
  - id: writers-branch
    allow:
      actors: {group: writers}
      actions: [branch_create, branch_delete, branch_merge]
      target_branch_scope: any
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if EXECUTABLE is None:
                item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


def newsroom(folder: Path, *, briefs: int = HUB_NEIGHBOURS, odd: bool = True) -> Path:
    root = folder / "newsroom.omni"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        make_scene(root, briefs, odd=odd)
    return root


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An open server. Its tests change nothing."""
    env = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
    folder = tmp_path_factory.mktemp("site")
    with serving(folder, newsroom(folder), "--unauthenticated", env=env) as server:
        yield server


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with tokens and a policy, on a newsroom of its own that tests may change."""
    folder = tmp_path_factory.mktemp("guarded")
    root = newsroom(folder, briefs=20)
    with serving_with_policy(folder, root) as server:
        yield server


@contextmanager
def serving_with_policy(folder: Path, root: Path) -> Iterator[Server]:
    """A server with `TOKENS` and `POLICY`."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "omnigraph.yaml").write_text("policy:\n  file: policy.yaml\n")
    env = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS),
        "OMNIGRAPH_SUPPRESS_YAML_DEPRECATION": "1",
        "OMNIGRAPH_EMBEDDINGS_MOCK": "1",
    }
    with serving(folder, root, "--config", folder / "omnigraph.yaml", env=env) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=EXECUTABLE, args=flags) as running,
    ):
        yield running


class Visitor:
    """A page, and what went wrong on it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = f"http://{address}/explore"
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._told)

    def _told(self, message: Any) -> None:
        # A refused request is told by the browser; tests of refusals expect it.
        if message.type == "error" and "the server responded with a status of" not in message.text:
            self.problems.append(message.text)

    def sign_in(self, actor: str = "emma") -> Page:
        self.page.goto(self.address)
        self.page.get_by_label("Token").fill(TOKENS[actor])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Overview").wait_for()
        return self.page

    def open(self, address: str = "overview", *, wait: str | None = None) -> Page:
        self.page.goto(f"{self.address}#/{address}")
        self.page.locator(wait or "main h1").first.wait_for()
        return self.page


@pytest.fixture
def visit(browser: Browser, site: Server) -> Iterator[Visitor]:
    yield from visitor_of(browser, site)


@pytest.fixture
def visit_guarded(browser: Browser, guarded: Server) -> Iterator[Visitor]:
    yield from visitor_of(browser, guarded)


def visitor_of(browser: Browser, server: Server, **options: Any) -> Iterator[Visitor]:
    context = browser.new_context(viewport={"width": 1360, "height": 860}, **options)
    context.set_default_timeout(PATIENCE_MS)
    found = Visitor(context.new_page(), server.address)
    yield found
    context.close()
    assert found.problems == []
