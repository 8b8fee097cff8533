"""The diagram of a schema names every type, property and edge."""

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import mermaid
from omnigraph.language.syntax import Source


def test_types_are_boxes_and_edges_are_arrows():
    source = """
    node Person { name: String  email: String @key  tags: [String]?  vec: Vector(3)? }
    node City { name: String @key }
    edge LivesIn: Person -> City { since: Date? }
    edge Knows: Person -> Person
    """
    assert mermaid(compile_schema(Source("<schema>", source))) == "\n".join(
        [
            "classDiagram",
            "    class City {",
            "        String name @key",
            "    }",
            "    class Person {",
            "        String email @key",
            "        String name",
            "        [String]? tags",
            "        Vector(3)? vec",
            "    }",
            "    Person --> Person : Knows",
            "    Person --> City : LivesIn (since)",
        ]
    )


def test_a_schema_without_types_has_an_empty_diagram():
    assert mermaid(compile_schema(Source("<schema>", ""))) == "classDiagram"
