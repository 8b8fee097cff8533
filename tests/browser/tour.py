"""A stop at every view of the page, in a state worth looking at. Pictures and checks of all views take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Visitor

_QUERY = """\
// Who wrote about what, newest first
query recent($topic: String) {
    match {
        $p: Person
        $p wrote $a
        $a about $t
        $t.name = $topic
    }
    return { $p, $a, $a.published }
    order { $a.published desc }
    limit 12
}
"""


@dataclass(frozen=True)
class Stop:
    """A view: the name of its picture, its address, and what tells that it is complete."""

    name: str
    address: str
    ready: str
    act: Callable[[Page], None] | None = None
    """What is done there before one looks."""


def _run_query(page: Page) -> None:
    page.get_by_role("textbox", name="Query", exact=True).click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(_QUERY)
    page.get_by_label("$topic").fill("comet")
    page.get_by_role("button", name="Run").click()
    page.locator(".console-right tbody tr").first.wait_for()


def _select_a_neighbour(page: Page) -> None:
    page.locator(".node-list button", has_text="Ben Okafor").first.click()
    page.get_by_role("heading", name="Selected").wait_for()
    page.locator(".canvas[data-settled=true]").wait_for()


def _go_back(page: Page) -> None:
    row = page.locator(".commit-graph li", has_text="Take the spring review")
    row.get_by_role("button", name="Go to").click()
    page.get_by_role("link", name="Overview").click()
    page.get_by_text("You see the graph as of").wait_for()
    page.locator(".box").first.wait_for()


def _open_a_commit(page: Page) -> None:
    page.get_by_role("link", name="Take the spring review").first.click()
    page.locator(".changes li").first.wait_for()


STOPS = (
    Stop("overview", "overview", ".box"),
    Stop("schema", "schema", "main h2"),
    Stop("nodes", "type/Article", "tbody tr"),
    Stop("entity", "entity/Person/ada.byron%40example.org", ".timeline li.update"),
    Stop(
        "neighbourhood",
        "graph/Person/ada.byron%40example.org",
        ".canvas[data-settled=true]",
        _select_a_neighbour,
    ),
    Stop("search", "search?q=comet+harbour&mode=hybrid", ".hits li"),
    Stop("console", "console", ".cm-editor", _run_query),
    Stop("history", "history", ".commit-graph li"),
    Stop("past", "history", ".commit-graph li", _go_back),
    Stop("commit", "history", ".commit-graph li", _open_a_commit),
    Stop("compare", "compare?from=review%2Fspring&to=review%2Fjune", ".changes > li"),
    Stop("merge", "merge?source=review%2Fjune", "section[aria-label^='Conflict in']"),
    Stop("live", "live", "main h1"),
)


def arrive(visitor: Visitor, stop: Stop) -> Page:
    page = visitor.open(stop.address, wait=stop.ready)
    if stop.act is not None:
        stop.act(page)
    page.wait_for_load_state("networkidle")
    return page
