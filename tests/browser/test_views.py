"""Every view on a real server, in a real browser."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from tests.browser.scene import ATTACK

pytest.importorskip("playwright")
from playwright.sync_api import expect

CONSOLE_ERROR = "query broken() { match { $a: Person  $a.nme = 1 } return { $a } }"


def typed(page, text):
    """Replace the text of the editor."""
    editor = page.get_by_role("textbox", name="Query", exact=True)
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def test_the_overview_counts_and_draws_the_schema(visit):
    page = visit.open("overview")
    expect(page.locator(".view-head .about")).to_contain_text("5,103 nodes of 5 types")
    counts = page.locator("section", has=page.get_by_role("heading", name="Node types"))
    expect(counts.locator("li", has_text="Article")).to_contain_text("5,061")
    diagram = page.get_by_role("img", name=re.compile("Diagram of the schema: Article"))
    expect(diagram.locator(".box")).to_have_count(5)
    expect(page.get_by_text("Indexes and storage")).to_be_visible()
    expect(page.get_by_text("5,000 city briefs")).to_be_visible()


def test_the_nodes_of_a_type_are_listed_in_pages(visit):
    page = visit.open("type/Article")
    expect(page.get_by_role("heading", name="5,061 nodes")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("51–100 of 5,061")).to_be_visible()


def test_an_entity_has_properties_neighbours_and_a_history(visit):
    page = visit.open("entity/Person/ada.byron%40example.org")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ada Byron-King")
    expect(page.get_by_role("link", name="Lisbon")).to_be_visible()
    change = page.locator(".timeline li.update")
    expect(change.locator("td.old")).to_have_text("Ada Byron")
    expect(change.locator("td.new")).to_have_text("Ada Byron-King")
    page.locator(".timeline li.insert").get_by_role("link", name="Go here").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ada Byron")
    expect(page.get_by_role("region", name="State shown")).to_contain_text("as of")


def test_a_hub_has_pages(visit):
    page = visit.open("entity/Topic/city")
    hop = page.get_by_role("region", name="About in")
    expect(hop.locator("h3 .count")).to_have_text("5,000")
    expect(hop.locator(".neighbours li")).to_have_count(10)
    hop.get_by_role("button", name="Next").click()
    expect(hop.get_by_text("11–20 of 5,000")).to_be_visible()


def test_a_query_with_a_mistake_and_its_correction(visit):
    page = visit.open("console")
    typed(page, CONSOLE_ERROR)
    errors = page.get_by_role("list", name="Errors")
    expect(errors).to_contain_text("type `Person` has no property `nme`")
    expect(errors).to_contain_text("did you mean `name`?")
    expect(page.locator(".cm-lintRange-error")).to_have_text("nme")
    typed(
        page,
        'query right() { match { $a: Person  $a.name = "Rita Moreno" } return { $a, $a.name } }',
    )
    expect(errors).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name=re.compile("^1 row in"))).to_be_visible()
    expect(page.get_by_role("cell", name="Rita Moreno")).to_be_visible()
    expect(
        page.get_by_role("cell", name="rita.moreno@example.org").get_by_role("link")
    ).to_be_visible()
    page.get_by_role("button", name="JSON", exact=True).click()
    expect(page.locator(".console-right pre")).to_contain_text('"a.name": "Rita Moreno"')


def test_parameters_have_a_form_and_a_link_shares_all(visit):
    page = visit.open("console")
    typed(
        page, "query born($year: I32) { match { $a: Person  $a.born = $year } return { $a.name } }"
    )
    page.get_by_label("$year").fill("1950")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("cell", name="Ada Byron-King")).to_be_visible()
    page.get_by_label("Name of the saved query").fill("by year")
    page.get_by_role("button", name="Save", exact=True).click()
    page.evaluate(
        "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }"
    )
    page.get_by_role("button", name="Copy link").click()
    copied = page.evaluate("window.copied")
    typed(page, "query other() { match { $p: Place } return { $p } }")
    page.goto(copied)
    expect(page.get_by_label("$year")).to_have_value("1950")
    page.reload()
    expect(page.get_by_role("button", name="by year", exact=True)).to_be_visible()


def test_a_plan_is_a_tree(visit):
    page = visit.open("console")
    typed(
        page, "query q() { match { $a: Person  $a wrote $b } return { $a.name, $b.title } limit 3 }"
    )
    page.get_by_role("button", name="Analyze").click()
    plan = page.locator(".plan")
    expect(plan.locator(".step-op").first).to_have_text("return")
    expect(plan).to_contain_text("20 rows")


def test_completion_knows_the_schema(visit):
    page = visit.open("console")
    typed(page, "query q() { match { $p: Per")
    page.keyboard.type("s")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("Person")
    page.keyboard.press("Enter")
    page.keyboard.type("  $p.bo")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("born")


def test_the_whole_page_travels_to_a_commit(visit):
    page = visit.open("history")
    row = page.locator(".commit-graph li", has_text="Take the spring review")
    expect(row).to_contain_text("merge")
    row.get_by_role("button", name="Go to").click()
    state = page.get_by_role("region", name="State shown")
    expect(state).to_contain_text("You see the graph as of")
    expect(state).to_contain_text("Take the spring review")
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".view-head .about")).to_contain_text("100 nodes")
    page.get_by_role("link", name="Return to now").click()
    expect(page.locator(".view-head .about")).to_contain_text("5,103 nodes")


def test_a_branch_is_another_state(visit):
    page = visit.open("entity/Article/article-7")
    expect(page.get_by_role("heading", level=1)).to_have_text("What main calls it")
    page.get_by_label("Branch").select_option("review/june")
    expect(page.get_by_role("heading", level=1)).to_have_text("What the review calls it")
    assert "branch=review%2Fjune" in page.url


def test_a_commit_shows_its_changes(visit):
    page = visit.open("history")
    page.get_by_role("link", name="Better title for the comet").click()
    expect(page.locator(".changes li")).to_have_count(1)
    expect(page.locator(".changes td.new")).to_have_text("The comet, seen from the harbour")


def test_texts_of_the_graph_stay_texts(visit):
    label = f"odd {ATTACK}"
    for address in ("overview", "schema", "history", "type/Odd", "entity/Odd/other"):
        page = visit.open(address)
        page.wait_for_load_state("networkidle")
        assert "owned" not in page.title()
        assert page.locator("main img, main script").count() == 0
    page.get_by_role("link", name=label).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(label)
    expect(page.locator("table.properties")).to_contain_text(ATTACK)
    assert "owned" not in page.title()
    page = visit.open("history")
    page.get_by_role("link", name=label).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(label)
    assert "owned" not in page.title()


def test_texts_of_an_address_stay_texts(visit):
    attack = quote(ATTACK, safe="")
    for address in (
        f"overview?branch={attack}",
        f"overview?at={attack}",
        f"entity/{attack}/{attack}",
        f"graph/Person/{attack}",
        f"search?q={attack}",
        f"compare?from={attack}&to=main",
        f"commit/{attack}",
    ):
        page = visit.open(address, wait="main :is(h1, [role=alert])")
        page.wait_for_load_state("networkidle")
        assert "owned" not in page.title()
        assert page.locator("main img, main script, .state img").count() == 0


def test_no_branch_has_a_name_with_markup(site):
    refused = site.post13("/branches", {"name": ATTACK, "from": "main"})
    assert refused.status_code == 400


def test_what_is_not_there_is_said(visit):
    page = visit.open("entity/Person/nobody", wait="[role=alert]")
    expect(page.get_by_role("alert").first).to_contain_text("nobody")
    page = visit.open("nowhere")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such view")
    page = visit.open("overview?branch=gone", wait="[role=alert]")
    page.get_by_role("link", name="Go to the newest state of main").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
