"""Pictures are well-formed SVG with every name in them, escaped; results become networkx graphs."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import omnigraph as og
from omnigraph import pictures
from omnigraph.errors import EntityNotFound, InputError, MissingExtra, UnknownColumn

SCHEMA = """
node Person { email: String @key  name: String? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge Likes: Person -> Person
edge LivesIn: Person -> City
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with og.init(str(tmp_path_factory.mktemp("pictures") / "G"), schema=SCHEMA) as graph:
        people = [{"email": f"p{number}<&>@x", "name": "A & B"} for number in range(6)]
        graph.insert("Person", people, message='first <people> & "more"')
        graph.insert("City", [{"name": "Bern"}])
        pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 0)]
        ends = [{"from": f"p{a}<&>@x", "to": f"p{b}<&>@x"} for a, b in pairs]
        graph.insert("Knows", ends)
        graph.insert("LivesIn", [{"from": "p1<&>@x", "to": "Bern"}])
        yield graph


def texts(picture: pictures.Picture | str) -> list[str]:
    """The texts of a picture, which has to be well-formed."""
    root = ElementTree.fromstring(str(picture))
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_schema_has_every_type_property_and_edge(graph):
    found = texts(pictures.schema(graph))
    assert {"Person", "City", "email: String @key", "Knows (since)", "LivesIn"} <= set(found)
    assert graph.schema._repr_svg_() == graph.schema.diagram("svg") == str(pictures.schema(graph))
    assert graph.schema.diagram().startswith("classDiagram")
    with pytest.raises(InputError, match="unknown diagram format 'png'"):
        graph.schema.diagram("png")


def test_the_neighbourhood_grows_by_hops(graph):
    near = texts(pictures.neighbourhood(graph, "Person", "p1<&>@x"))
    assert {"p0<&>@x", "p1<&>@x", "p2<&>@x", "Bern", "LivesIn"} <= set(near)
    assert "p3<&>@x" not in near
    assert "p3<&>@x" in texts(pictures.neighbourhood(graph, "Person", "p1<&>@x", hops=2))
    assert texts(pictures.neighbourhood(graph, "Person", "p5<&>@x")) == ["p5<&>@x", "Person"]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("Persn", "x", 1), InputError, "did you mean `Person`"),
        (("Person", "x", 1), EntityNotFound, "no node:Person"),
        (("Person", "p1<&>@x", 9), InputError, "hops is 1, 2 or 3"),
    ],
)
def test_what_cannot_be_drawn_is_said(graph, arguments, error, said):
    type_name, entity_id, hops = arguments
    with pytest.raises(error, match=said):
        pictures.neighbourhood(graph, type_name, entity_id, hops=hops)


def test_the_history_has_every_commit_and_its_message(graph):
    picture = pictures.history(graph)
    found = texts(picture)
    assert 'first <people> & "more"' in found
    assert {commit.id[-8:] for commit in graph.log()} <= {one.split()[0] for one in found}
    assert repr(picture) == "<picture: 5 commits>"


def test_a_picture_is_saved_as_svg_or_as_a_page(graph, tmp_path: Path):
    picture = pictures.schema(graph)
    picture.save(tmp_path / "schema.svg")
    picture.save(tmp_path / "schema.html")
    assert texts((tmp_path / "schema.svg").read_text()) == texts(picture)
    assert (tmp_path / "schema.html").read_text().startswith("<!doctype html>")


ASK = "query q() { match { $p knows $q } return { $p.email as a, $q.email as b, $p.name as n } }"


def test_a_result_is_a_network_with_an_edge_per_row(graph):
    network = graph.query(ASK).to_networkx()
    assert network.number_of_edges() == 5
    assert network.has_edge("p0<&>@x", "p0<&>@x")
    assert network.get_edge_data("p0<&>@x", "p1<&>@x")[0] == {"n": "A & B"}
    turned = graph.query(ASK).to_networkx("b", "a")
    assert turned.has_edge("p1<&>@x", "p0<&>@x")


def test_columns_of_a_network_have_to_exist(graph):
    with pytest.raises(UnknownColumn):
        graph.query(ASK).to_networkx("x")
    with pytest.raises(InputError, match="two columns"):
        graph.query("query q() { match { $p: Person } return { $p.email } }").to_networkx()


def test_without_networkx_the_error_says_how_to_get_it(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        MissingExtra, match=r"to_networkx\(\) needs the library .networkx.; install it with"
    ):
        graph.query(ASK).to_networkx()
