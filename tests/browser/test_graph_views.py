"""Neighbourhood, search and comparison in a browser."""

from __future__ import annotations

import re

import pytest

from tests.browser.scene import ATTACK

pytest.importorskip("playwright")
from playwright.sync_api import expect


def about(page):
    return page.locator(".view-head .about")


def settled(page):
    page.locator(".canvas[data-settled=true]").wait_for()


def test_a_neighbourhood_expands(visit):
    page = visit.open("graph/Person/ada.byron%40example.org")
    expect(page.get_by_role("heading", level=1)).to_have_text("Around Ada Byron-King")
    expect(about(page)).to_contain_text("9 nodes, 8 edges")
    settled(page)
    assert page.locator(".canvas canvas").count() >= 3
    page.get_by_role("button", name=re.compile("Ben Okafor")).click()
    expect(about(page)).not_to_contain_text("9 nodes")
    expect(page.get_by_role("heading", name="Selected")).to_be_visible()
    settled(page)


def test_types_are_filtered_and_a_path_is_found(visit):
    page = visit.open("graph/Person/ada.byron%40example.org")
    expect(about(page)).to_contain_text("9 nodes")
    page.get_by_role("checkbox", name=re.compile("^Article")).uncheck()
    expect(page.locator(".node-list")).not_to_contain_text("Article")
    page.get_by_label("Type of the other end").select_option("Place")
    page.get_by_label("Id of the other end").fill("Kyoto")
    page.get_by_role("button", name="Find", exact=True).click()
    path = page.locator("ol.path li")
    expect(path.first).to_contain_text("Ada Byron-King")
    expect(path.last).to_contain_text("Kyoto")
    assert 3 <= path.count() <= 7


def test_a_hub_is_drawn_in_steps(visit):
    page = visit.open("graph/Topic/city")
    expect(about(page)).to_contain_text("41 nodes")
    hub = page.locator("aside li", has_text="40 of 5,000")
    hub.get_by_role("button", name="100 more").click()
    expect(about(page)).to_contain_text("141 nodes")
    settled(page)


def test_a_node_to_begin_with_is_found_by_name(visit):
    page = visit.open("graph")
    page.get_by_role("combobox", name="Type", exact=True).select_option("Person")
    page.get_by_label("Name or id").fill("rita")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="Rita Moreno").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Around Rita Moreno")


def test_search_by_words_by_meaning_and_by_both(visit):
    page = visit.open("overview")
    page.get_by_role("searchbox", name="Search the graph").fill("comet")
    page.keyboard.press("Enter")
    hits = page.locator(".hits li")
    expect(hits.first).to_contain_text("comet")
    expect(hits.first.locator(".scores dt").first).to_have_text(re.compile("^in "))
    page.get_by_role("button", name="Both").click()
    expect(hits.first.locator(".scores dt").first).to_have_text("fused")
    page.get_by_role("button", name="Meaning").click()
    expect(hits.first.locator(".scores dt").first).to_have_text("distance")
    assert "mode=vector" in page.url


def test_similar_nodes_are_those_with_near_vectors(visit):
    page = visit.open("entity/Article/article-3")
    page.get_by_role("link", name="Similar").click()
    hits = page.locator(".hits li")
    expect(hits.first).to_contain_text("A new comet")
    expect(hits.first.locator(".scores dd")).to_have_text("0.000")


def test_two_states_are_compared(visit):
    page = visit.open("compare?from=main~5&to=review%2Fjune")
    expect(page.locator(".choose")).to_contain_text("Topic")
    rows = page.locator(".changes > li")
    expect(rows.filter(has_text="What the review calls it").locator("td.new").first).to_be_visible()
    page.get_by_role("button", name="Topic").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("satellite")
    page.get_by_role("button", name="Swap").click()
    expect(page.locator(".op.delete").first).to_have_text("removed")


def test_texts_of_the_graph_stay_texts_in_drawings_and_differences(visit):
    page = visit.open("graph/Odd/other")
    expect(page.locator(".node-list")).to_contain_text(ATTACK)
    settled(page)
    page = visit.open("compare?from=main~2&to=main")
    expect(page.locator(".changes")).to_contain_text(ATTACK)
    page = visit.open("search?q=owned&type=Odd")
    page.wait_for_load_state("networkidle")
    assert "owned" not in page.title()
    assert page.locator("main img, main script").count() == 0
