"""How many nodes are expected to have a value, from the declaration of a property."""

from __future__ import annotations

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.cost import Sizes
from omnigraph.plan.ir import Prop

CATALOG = compile_schema(
    Source(
        "schema.pg",
        """
        node Person {
            name: String @key
            email: String? @unique
            city: String? @index
            note: String?
            role: enum(author, editor, reader, reviewer)?
            active: Bool?
        }
        """,
    )
)
SIZES = Sizes({"node:Person": 10_000}, CATALOG)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("name", 1),
        ("email", 1),
        ("city", 100),
        ("note", 500),
        ("role", 2_500),
        ("active", 5_000),
    ],
)
def test_nodes_expected_to_have_a_value(name, found):
    prop = Prop("p", name, CATALOG.nodes["Person"].properties[name].type)
    assert SIZES.equal("Person", prop) * 10_000 == pytest.approx(found)
