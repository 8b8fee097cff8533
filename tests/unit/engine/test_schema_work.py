"""What a change of the schema means for tables."""

from __future__ import annotations

from omnigraph.catalog.arrow import IndexKind, IndexSpec
from omnigraph.catalog.compile import build_declared, build_schema
from omnigraph.catalog.migrate import carry_identities, plan_migration
from omnigraph.catalog.model import Catalog
from omnigraph.language.syntax import Source
from omnigraph.schema.tables import SchemaWork, schema_work

FIRST = """
node Person {
    name: String @key
    age: I32?
    text: String?
    sense: Vector(2)? @embed("text")
}
node Company { name: String @key }
edge WorksAt: Person -> Company { since: Date? }
"""


def work(text: str, first: str = FIRST) -> SchemaWork:
    accepted = build_schema(Source("first", first))
    desired = build_declared(Source("next", text))
    after = carry_identities(accepted, desired, plan_migration(accepted, desired))
    return schema_work(Catalog.from_ir(accepted), Catalog.from_ir(after))


def test_renames_longer_enums_and_descriptions_are_no_work():
    text = FIRST.replace("age: I32?", 'years: I32? @rename_from("age")')
    text = text.replace("node Company {", 'node Firm @rename_from("Company") @description("d") {')
    assert work(text.replace("-> Company", "-> Firm")) == SchemaWork((), (), ())


def test_types_come_and_go():
    found = work(
        FIRST.replace(
            "edge WorksAt: Person -> Company { since: Date? }",
            "node Tool {\n    code: String @key\n}",
        )
    )
    assert [declared.table_key for declared in found.added] == ["node:Tool"]
    assert [declared.table_key for declared in found.dropped] == ["edge:WorksAt"]
    assert found.changed == ()


def test_a_dropped_vector_takes_what_binds_it_along():
    [change] = work(FIRST.replace('    sense: Vector(2)? @embed("text")\n', "")).changed
    [vector, bound] = change.dropped
    assert vector == "sense"
    assert bound.startswith("__embed_")
    assert change.added == ()


def test_new_properties_and_indexes_belong_to_the_type_they_are_added_to():
    text = FIRST.replace("age: I32?", "age: I32? @index\n    nick: String?")
    [change] = work(text).changed
    assert change.declared.name == "Person"
    assert [prop.name for prop in change.added] == ["nick"]
    assert change.indexes == (IndexSpec("age", IndexKind.BTREE),)


def test_an_index_of_two_properties_asks_for_nothing():
    assert work(FIRST.replace("age: I32?", "age: I32?\n    @index(age, name)")).changed == ()


def test_wider_numbers_are_written_and_other_flags_are_not():
    text = FIRST.replace("age: I32?", "age: I64?").replace("text: String?", "text: String")
    [change] = work(text).changed
    assert [prop.name for prop in change.widened] == ["age"]
    assert change.nullable == {"text": False}
    assert change.indexes == ()


def test_an_index_on_a_wider_column_is_built_again():
    first = FIRST.replace("age: I32?", "age: I32? @index")
    [change] = work(first.replace("I32", "I64"), first).changed
    assert change.indexes == (IndexSpec("age", IndexKind.BTREE),)
    [change] = work(FIRST, first).changed
    assert (change.indexes, change.unindexed) == ((), ("age",))


def test_rules_are_no_work():
    more = FIRST.replace("age: I32?", "age: I32?\n    @range(age, 0..9)").replace(
        "-> Company", "-> Company @card(0..2)"
    )
    assert work(more) == SchemaWork((), (), ())
    assert work(FIRST, more) == SchemaWork((), (), ())
