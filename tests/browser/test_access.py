"""Tokens: without one nothing is shown, with one only what it allows."""

from __future__ import annotations

import pytest

from tests.browser.conftest import TOKENS

pytest.importorskip("playwright")
from playwright.sync_api import expect


def test_without_a_token_nothing_is_shown(visit_guarded):
    page = visit_guarded.page
    page.goto(visit_guarded.address + "#/entity/Person/ada.byron%40example.org")
    expect(page.get_by_label("Token")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert "Ada" not in page.content()
    assert "Article" not in page.content()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("The server does not know this token.")).to_be_visible()
    page.get_by_label("Token").fill(TOKENS["reader"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ada Byron-King")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert "Ada" not in page.content()


def test_a_token_in_the_address_is_taken_and_removed(visit_guarded):
    page = visit_guarded.page
    page.goto(f"{visit_guarded.address}#token={TOKENS['emma']}")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert TOKENS["emma"] not in page.url
    assert page.evaluate("history.length") <= 2
    assert page.evaluate("Object.keys(localStorage)") == []
    expect(page.locator(".who .actor")).to_have_text("emma")


def test_who_may_only_read_is_offered_no_change(visit_guarded):
    page = visit_guarded.sign_in("reader")
    expect(page.get_by_role("region", name="State shown")).to_contain_text("read only")
    page.get_by_role("link", name="Console").click()
    page.get_by_role("textbox", name="Query", exact=True).click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text('query q() { insert Place { name: "X" } }')
    expect(page.get_by_text("Your token may not change this branch.")).to_be_visible()
    expect(page.get_by_role("button", name="Commit to")).to_have_count(0)
