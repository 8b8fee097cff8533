"""The pictures of docs/user/explorer.md: every view, light and dark.

A run takes them all and compares their size with what the page allows. `OMNIGRAPH_SCREENSHOTS=1` also writes
them into docs/user/images; without it a run changes no file of the repository.
"""

from __future__ import annotations

import base64
import os
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import TOKENS, newsroom, serving_with_policy, visitor_of
from tests.browser.tour import STOPS, arrive
from tests.docs.markdown import ROOT

pytest.importorskip("playwright")

import omnigraph as og

PAGE = ROOT / "docs" / "user" / "explorer.md"
KEPT = ROOT / "docs" / "user" / "images"
WIDTH, HEIGHT = 1280, 800
MAX_BYTES_TOGETHER = 1_500_000
SCHEMES = ("light", "dark")

# Chromium itself writes WebP, which needs a third of the bytes of PNG.
_TO_WEBP = """async (png) => {
    const image = new Image()
    image.src = `data:image/png;base64,${png}`
    await image.decode()
    const canvas = document.createElement("canvas")
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext("2d").drawImage(image, 0, 0)
    return canvas.toDataURL("image/webp", 0.82).split(",")[1]
}"""


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A newsroom without the texts that attack a page, on a server that knows who one is."""
    folder = tmp_path_factory.mktemp("studio")
    root = newsroom(folder, briefs=40, odd=False)
    with serving_with_policy(folder, root) as server:
        yield server


@pytest.fixture
def folder(tmp_path):
    if os.environ.get("OMNIGRAPH_SCREENSHOTS"):
        KEPT.mkdir(exist_ok=True)
        return KEPT
    return tmp_path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_view_has_a_picture(browser, studio, folder, scheme):
    opened = visitor_of(browser, studio, color_scheme=scheme)
    visitor = next(opened)
    visitor.sign_in()
    developing = browser.new_page()
    visitor.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    for stop in STOPS:
        page = arrive(visitor, stop)
        if stop.name == "live":
            _report(studio, page)
        _take(page, developing, folder / f"{stop.name}-{scheme}.webp")
    developing.close()
    assert next(opened, None) is None
    taken = {file.name for file in folder.glob(f"*-{scheme}.webp")}
    assert taken == {f"{stop.name}-{scheme}.webp" for stop in STOPS}


def _report(server: Any, page: Any) -> None:
    """Commits that the page sees as they are made."""
    page.get_by_text("Waiting for the next commit").wait_for()
    with og.connect(f"http://{server.address}", token=TOKENS["emma"]) as graph:
        for title in ("The harbour at night, revisited", "The harbour at night"):
            graph.upsert(
                "Article",
                [{"slug": "article-12", "title": title}],
                message="Another title for the harbour",
            )
    page.locator("section.happened").nth(1).wait_for()


def _take(page: Any, developing: Any, file: Path) -> None:
    page.evaluate("window.scrollTo(0, 0)")
    page.mouse.move(0, 0)
    png = page.screenshot(animations="disabled", caret="hide")
    packed = base64.b64encode(png).decode()
    picture = base64.b64decode(developing.evaluate(_TO_WEBP, packed))
    assert _size_of(picture) == (WIDTH, HEIGHT)
    # A page of one colour needs a tenth of this.
    assert len(picture) > 10_000, f"{file.name} shows next to nothing"
    file.write_bytes(picture)


def _size_of(webp: bytes) -> tuple[int, int]:
    assert webp[:4] == b"RIFF"
    assert webp[8:12] == b"WEBP"
    start = webp.index(b"\x9d\x01\x2a") + 3
    width, height = struct.unpack("<HH", webp[start : start + 4])
    return width & 0x3FFF, height & 0x3FFF


def test_the_documentation_shows_every_view_in_light_and_dark():
    shown = re.findall(r"!\[([^\]]+)\]\(images/([a-z-]+\.webp)", PAGE.read_text(encoding="utf-8"))
    assert {name for _, name in shown} == {
        f"{stop.name}-{scheme}.webp" for stop in STOPS for scheme in SCHEMES
    }
    assert {file.name for file in KEPT.iterdir()} == {name for _, name in shown}
    assert sum((KEPT / name).stat().st_size for _, name in shown) < MAX_BYTES_TOGETHER
    assert all(_size_of((KEPT / name).read_bytes()) == (WIDTH, HEIGHT) for _, name in shown)
