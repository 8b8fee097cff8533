"""Earlier schemas under the names of today."""

from __future__ import annotations

from omnigraph.catalog.compile import build_declared, build_schema
from omnigraph.catalog.ir import SchemaIR
from omnigraph.catalog.migrate import carry_identities, plan_migration
from omnigraph.catalog.migrate.identities import under_present_names
from omnigraph.catalog.model import Catalog
from omnigraph.language.syntax import Source

FIRST = """
node Person {
    name: String @key
    nick: String?
    mood: enum(calm)?
    sense: Vector(2)? @embed("nick")
    @index(nick, mood)
}
node Company { name: String @key }
edge WorksAt: Person -> Company { since: Date?
 @unique(src, dst, since) }
"""


def first() -> SchemaIR:
    return build_schema(Source("first", FIRST))


def then(accepted: SchemaIR, text: str) -> SchemaIR:
    desired = build_declared(Source("next", text))
    ever: dict[int, list[str]] = {}
    for declared in Catalog.from_ir(accepted):
        ever[declared.type_id] = [p.column for p in declared.properties.values()]
    return carry_identities(accepted, desired, plan_migration(accepted, desired), ever)


def seen(past: SchemaIR, present: SchemaIR) -> Catalog:
    return Catalog.from_ir(under_present_names(past, present))


def test_a_schema_under_its_own_names_is_itself():
    assert under_present_names(first(), first()) == first()


def test_renamed_types_and_properties_go_by_their_present_names():
    text = FIRST.replace("node Person", 'node Human @rename_from("Person")')
    text = text.replace("Person ->", "Human ->").replace('@embed("nick")', '@embed("alias")')
    text = text.replace("nick: String?", 'alias: String? @rename_from("nick")')
    text = text.replace("@index(nick", "@index(alias").replace("since", "year")
    text = text.replace("year: Date?", 'year: Date? @rename_from("since")')
    now = then(first(), text)
    catalog = seen(first(), now)
    human = catalog.nodes["Human"]
    assert human.properties["alias"].column == "nick"
    assert human.properties["sense"].embed_source == "alias"
    assert ("mood", "alias") in human.index_groups or ("alias", "mood") in human.index_groups
    works = catalog.edges["WorksAt"]
    assert (works.from_type, works.to_type) == ("Human", "Company")
    assert works.identity == ("src", "dst", "year")
    assert "Person" not in catalog.nodes


def test_enums_have_all_values_of_today():
    now = then(first(), FIRST.replace("enum(calm)", "enum(calm, wild)"))
    assert seen(first(), now).nodes["Person"].properties["mood"].type.enum_values == (
        "calm",
        "wild",
    )


def test_numbers_have_the_type_they_were_stored_with():
    first_one = build_schema(Source("first", "node N { n: I32  m: I32? }"))
    now = then(first_one, "node N { n: I64?  m: I32 }")
    properties = seen(first_one, now).nodes["N"].properties
    assert [p.type.display for p in properties.values()] == ["I32?", "I32"]


def test_what_was_dropped_since_keeps_its_name():
    text = FIRST.replace(
        "edge WorksAt: Person -> Company { since: Date?\n @unique(src, dst, since) }", ""
    )
    now = then(first(), text)
    assert "WorksAt" in seen(first(), now).edges
    assert "WorksAt" not in seen(now, now).edges


def test_a_property_that_came_later_can_be_asked_for():
    now = then(first(), FIRST.replace("mood:", "born: Date?\n    mood:"))
    assert "born" in seen(first(), now).nodes["Person"].properties


def test_of_a_name_that_was_used_twice_the_property_of_that_time_is_meant():
    plain = "node Person {\n    name: String @key\n    nick: String?\n}\n"
    old = build_schema(Source("first", plain))
    without = then(old, plain.replace("    nick: String?\n", ""))
    again = then(without, plain)
    known = {p.name: p.prop_id for p in old.nodes[0].properties}
    assert seen(old, again).nodes["Person"].properties["nick"].prop_id == known["nick"]
    assert seen(without, again).nodes["Person"].properties["nick"].prop_id != known["nick"]


def test_a_dropped_name_that_another_has_now_gets_its_number():
    plain = "node Person {\n    name: String @key\n    a: I32?\n    b: I32?\n}\n"
    old = build_schema(Source("first", plain))
    dropped = then(old, plain.replace("    b: I32?\n", ""))
    now = then(dropped, plain.replace("    a: I32?\n    b: I32?", '    b: I32? @rename_from("a")'))
    ids = {p.name: p.prop_id for p in old.nodes[0].properties}
    properties = seen(old, now).nodes["Person"].properties
    assert properties["b"].prop_id == ids["a"]
    assert properties[f"b__{ids['b']}"].column == "b"
