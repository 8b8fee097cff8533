"""Keyboards, screen readers, small screens, and a server that is away."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from tests.browser.conftest import TOKENS, visitor_of
from tests.browser.tour import STOPS, arrive

pytest.importorskip("playwright")
from playwright.sync_api import expect

PHONE_WIDTH, PHONE_HEIGHT = 390, 844


def violations_of(page, only=None):
    """The serious violations that axe finds on a page, by rule, with the elements."""
    rules = resources.files("axe_playwright_python") / "axe.min.js"
    page.evaluate(rules.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"]} | ({} if only is None else {"runOnly": only})
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return {
        one["id"]: [node["html"] for node in one["nodes"]]
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    }


# Only colours differ in the dark.
@pytest.mark.parametrize(("scheme", "only"), [("light", None), ("dark", ["color-contrast"])])
def test_axe_finds_no_serious_violation(browser, guarded, scheme, only):
    opened = visitor_of(browser, guarded, color_scheme=scheme)
    visitor = next(opened)
    visitor.page.goto(visitor.address)
    visitor.page.get_by_label("Token").wait_for()
    found = {"sign-in": violations_of(visitor.page, only)}
    visitor.sign_in()
    for stop in STOPS:
        found[stop.name] = violations_of(arrive(visitor, stop), only)
    visitor.open("nowhere")
    found["nowhere"] = violations_of(visitor.page, only)
    assert {name: rules for name, rules in found.items() if rules} == {}
    assert next(opened, None) is None


def test_every_view_is_usable_on_a_phone(browser, site):
    opened = visitor_of(browser, site)
    visitor = next(opened)
    visitor.page.set_viewport_size({"width": PHONE_WIDTH, "height": PHONE_HEIGHT})
    for stop in STOPS:
        page = arrive(visitor, stop)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE_WIDTH, f"{stop.name} is {width} pixels wide"
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("region", name="State shown")).to_be_visible()
    assert next(opened, None) is None


def test_a_keyboard_reaches_everything(visit):
    page = visit.open("overview")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_role("link", name="History", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("History")
    page.get_by_role("button", name="Go to").first.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="State shown")).to_contain_text("as of")


def test_a_keyboard_expands_a_neighbourhood_and_leaves_the_editor(visit):
    page = visit.open("graph/Person/ada.byron%40example.org")
    page.locator(".canvas[data-settled=true]").wait_for()
    page.get_by_role("button", name=re.compile("Ben Okafor")).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".view-head .about")).to_contain_text("17 nodes")
    page = visit.open("console")
    page.get_by_role("textbox", name="Query", exact=True).focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Run")).to_be_focused()


def test_the_theme_is_chosen_and_kept(visit):
    page = visit.open("overview")
    ground = "getComputedStyle(document.body).backgroundColor"
    page.get_by_role("button", name="Theme: system").click()
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(ground) != light
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert page.evaluate(ground) != light


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_every_view_has_an_address_that_opens_it_again(browser, site, stop):
    opened = visitor_of(browser, site)
    visitor = next(opened)
    page = arrive(visitor, stop)
    address, heading = page.url, page.get_by_role("heading", level=1).text_content()
    state = page.locator(".state .when a").text_content()
    again = page.context.new_page()
    again.goto(address)
    expect(again.get_by_role("heading", level=1)).to_have_text(heading or "")
    expect(again.locator(".state .when a")).to_have_text(state or "")
    assert next(opened, None) is None


def test_a_server_that_is_away_is_told_and_found_again(visit):
    page = visit.open("overview")
    # The browser names each request that fails; here they are meant to.
    page.context.set_offline(True)
    page.get_by_role("link", name="History", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("Offline")
    expect(page.get_by_role("button", name="Try now")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".commit-graph li").first).to_be_visible()
    visit.problems = [one for one in visit.problems if "ERR_INTERNET_DISCONNECTED" not in one]


def test_a_token_that_ends_asks_for_another(visit_guarded):
    page = visit_guarded.sign_in("reader")
    page.route("**/branches*", lambda route: route.fulfill(status=401, json={"error": "gone"}))
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
    page.unroute("**/branches*")
    page.get_by_label("Token").fill(TOKENS["reader"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
