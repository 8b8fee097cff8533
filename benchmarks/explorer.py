"""What the explorer costs in a browser: the first load, the overview of a large graph, and a hub.

A server runs on a graph of a million edges, one node of which has 5,000 more neighbours; Chromium opens the page.
Goals: the first load transfers less than 500 KB; the overview is complete within two seconds, also the first
one after the start of the server; a hub shows its first ten neighbours, and turns its pages, within two seconds.

Chromium is taken from the path or from `OMNIGRAPH_TEST_BROWSER`; without it, a line says so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.support.http_load import server_process
from benchmarks.support.timing import readable
from omnigraph.api.graph import init

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCHEMA = """\
node Person { number: I64 @key  name: String @index }
node City { name: String @key }
edge Follows: Person -> Person
edge LivesIn: Person -> City
"""
EDGES, HUB_NEIGHBOURS, ROUNDS = 1_000_000, 5_000, 5
EDGES_PER_PERSON = 20
GOAL_BYTES, GOAL_OVERVIEW_SECONDS, GOAL_HUB_SECONDS = 500_000, 2.0, 2.0
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")


@dataclass(frozen=True)
class Figures:
    first_load_bytes: int
    first_overview_seconds: float
    overview_seconds: float
    hub_seconds: float
    hub_page_seconds: float
    neighbourhood_seconds: float


def make_graph(root: Path, edges: int) -> None:
    """Persons who follow others at random, and a city in which 5,000 of them live."""
    persons = max(edges // EDGES_PER_PERSON, HUB_NEIGHBOURS)
    numbers = np.arange(persons)
    generator = np.random.default_rng(7)
    with init(root, schema=SCHEMA) as graph:
        names = pa.array([f"Person {number}" for number in numbers])
        graph.load({"Person": pa.table({"number": numbers, "name": names})}, "append")
        graph.load({"City": pa.table({"name": ["Porto"]})}, "append")
        follows = {
            "from": pa.array(generator.integers(0, persons, edges)).cast(pa.string()),
            "to": pa.array(generator.integers(0, persons, edges)).cast(pa.string()),
        }
        lives = {
            "from": pa.array(numbers[:HUB_NEIGHBOURS]).cast(pa.string()),
            "to": pa.array(["Porto"] * HUB_NEIGHBOURS),
        }
        graph.load({"Follows": pa.table(follows)}, "append")
        graph.load({"LivesIn": pa.table(lives)}, "append")
        graph.maintenance.ensure_indexes()


@contextmanager
def browser_page(executable: str) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser.new_page(viewport={"width": 1360, "height": 860})
        browser.close()


def measure(folder: Path, page: Page, edges: int) -> Figures:
    """Make the graph in `folder`, serve it, and look at it in `page`."""
    root = folder / "graph.omni"
    make_graph(root, edges)
    page.set_default_timeout(120_000)
    with server_process(folder, str(root), "--unauthenticated", env={}) as server:
        address = f"http://127.0.0.1:{server.address[1]}/explore"
        received: list[int] = []
        page.on("requestfinished", lambda one: received.append(one.sizes()["responseBodySize"]))

        def overview() -> None:
            page.goto("about:blank")
            page.goto(address)
            page.locator(
                ".view-head .about", has_text=f"{edges + HUB_NEIGHBOURS:,} edges"
            ).wait_for()
            page.locator(".commits li").first.wait_for()

        first = seconds(overview)
        page.wait_for_load_state("networkidle")
        transferred = sum(received)
        overviews = [seconds(overview) for _ in range(ROUNDS)]

        def hub() -> None:
            page.goto("about:blank")
            page.goto(f"{address}#/entity/City/Porto")
            page.locator(".neighbours li").nth(9).wait_for()

        def turn() -> None:
            page.get_by_role("button", name="Next").click()
            page.get_by_text(f"11–20 of {HUB_NEIGHBOURS:,}").wait_for()

        def neighbourhood() -> None:
            page.goto(f"{address}#/graph/City/Porto")
            page.locator(".canvas[data-settled=true]").wait_for()

        hubs, turns = [], []
        for _ in range(ROUNDS):
            hubs.append(seconds(hub))
            turns.append(seconds(turn))
        return Figures(
            transferred,
            first,
            statistics.median(overviews),
            statistics.median(hubs),
            statistics.median(turns),
            seconds(neighbourhood),
        )


def seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=EDGES)
    options = parser.parse_args()
    executable = os.environ.get("OMNIGRAPH_TEST_BROWSER") or shutil.which("chromium")
    if executable is None:
        print("not measured: Chromium is missing (on Debian: apt-get install chromium)")
        return
    with tempfile.TemporaryDirectory() as folder, browser_page(executable) as page:
        found = measure(Path(folder), page, options.edges)
    goals = [
        ("first load", f"{found.first_load_bytes / 1000:.0f} KB",
         found.first_load_bytes < GOAL_BYTES, "500 KB"),
        (f"overview of {options.edges:,} edges, first", readable(found.first_overview_seconds),
         found.first_overview_seconds < GOAL_OVERVIEW_SECONDS, "2 s"),
        (f"overview of {options.edges:,} edges, again", readable(found.overview_seconds),
         found.overview_seconds < GOAL_OVERVIEW_SECONDS, "2 s"),
        (f"hub of {HUB_NEIGHBOURS:,}: first page", readable(found.hub_seconds),
         found.hub_seconds < GOAL_HUB_SECONDS, "2 s"),
        (f"hub of {HUB_NEIGHBOURS:,}: next page", readable(found.hub_page_seconds),
         found.hub_page_seconds < GOAL_HUB_SECONDS, "2 s"),
    ]  # fmt: skip
    for name, figure, is_met, goal in goals:
        print(f"{name:<40} {figure:>9}   goal {goal}: {'met' if is_met else 'MISSED'}")
    print(f"{'hub drawn and laid out':<40} {readable(found.neighbourhood_seconds):>9}")
    print(f"load average {os.getloadavg()[0]:.1f}")
    sys.exit(not all(is_met for _, _, is_met, _ in goals))


if __name__ == "__main__":
    main()
