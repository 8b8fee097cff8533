"""What a page may change: mutations, a merge with a conflict, a revert; and changes that others make."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

import omnigraph as og
from tests.browser.conftest import TOKENS
from tests.browser.scene import ATTACK


def root_of(server):
    return server.get(
        "/graphs/default/status", headers=authorized() | {"Omnigraph-Http-Api": "0.13"}
    ).json()["uri"]


def authorized():
    return {"Authorization": f"Bearer {TOKENS['emma']}"}


def test_a_mutation_is_a_commit(visit_guarded):
    page = visit_guarded.sign_in()
    page.get_by_role("link", name="Console").click()
    page.get_by_role("textbox", name="Query", exact=True).click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text('query q() { insert Place { name: "Lima" } }')
    page.get_by_label("Commit message").fill("Lima opens")
    page.get_by_role("button", name="Commit to main").click()
    expect(page.get_by_text("1 node and 0 edges changed")).to_be_visible()
    expect(page.get_by_role("region", name="State shown")).to_contain_text("Lima opens")


def test_a_conflict_is_decided_and_merged_and_undone(visit_guarded):
    page = visit_guarded.sign_in()
    page.get_by_role("link", name="Merge").click()
    page.get_by_role("combobox", name="Merge", exact=True).select_option("review/june")
    card = page.get_by_role("region", name="Conflict in Article article-7")
    expect(card).to_contain_text("What main calls it")
    expect(card).to_contain_text("What the review calls it")
    expect(card).to_contain_text("The observatory at night")
    merge = page.get_by_role("button", name="Merge into main")
    expect(merge).to_be_disabled()
    card.get_by_label("Value of title").fill("What both agreed on")
    page.get_by_label("Commit message").fill("June is in")
    merge.click()
    expect(page.get_by_text("review/june is merged into main")).to_be_visible()
    page.goto(visit_guarded.address + "#/entity/Article/article-7")
    expect(page.get_by_role("heading", level=1)).to_have_text("What both agreed on")
    page.get_by_role("link", name="History").click()
    page.get_by_role("link", name="June is in").first.click()
    expect(page.locator(".changes")).to_contain_text("satellite")
    page.get_by_role("button", name="See what a revert would do").click()
    page.get_by_role("button", name="Revert on main").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("revert", ignore_case=True)
    page.goto(visit_guarded.address + "#/entity/Article/article-7")
    expect(page.get_by_role("heading", level=1)).to_have_text("What main calls it")


def test_a_change_appears_while_one_looks(visit_guarded, guarded):
    page = visit_guarded.sign_in()
    page.get_by_role("link", name="Live").click()
    with page.expect_response(re.compile("/changes")):
        expect(page.get_by_text("Waiting for the next commit")).to_be_visible()
    with og.connect(f"http://{guarded.address}", token=TOKENS["emma"]) as graph:
        graph.upsert("Place", [{"name": "Oslo", "country": ATTACK}])
    happened = page.locator("section.happened")
    expect(happened).to_have_count(1)
    expect(happened.locator("h2")).to_contain_text("emma")
    expect(happened.locator("td.old")).to_have_text("Norway")
    expect(happened.locator("td.new")).to_have_text(ATTACK)
    assert "owned" not in page.title()
