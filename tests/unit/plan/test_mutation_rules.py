"""Every rule a mutation must keep, and the statements it becomes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from omnigraph.errors import TypeCheckError
from omnigraph.language.query.ast import Insert, MutationBody, Operator
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Name, Source
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.changes import (
    Assign,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    UpdateNodes,
)
from omnigraph.plan.check_mutation import check_mutation
from omnigraph.plan.describe import describe_expression
from omnigraph.plan.ir import (
    ID_TYPE as TEXT,
)
from omnigraph.plan.ir import (
    ROW,
    Comparison,
    Constant,
    Param,
    ParameterSpec,
    Prop,
)
from tests.unit.language.places import raises, refusal, table
from tests.unit.plan.compiling import E, O, P, W, against, catalog, mutation


def _compared(name: str, operator: Operator, value: Constant | Param, kind: PropType) -> Comparison:
    return Comparison(Prop(ROW, name, kind), operator, value)


def q(statements: str, params: str = "") -> str:
    return f"query q({params}) {{ {statements} }}"


def named(statements: str, params: str = "") -> str:
    """A mutation whose error points at the query's name."""
    return f"query «q»({params}) {{ {statements} }}"


# fmt: off
# One row per line.
WORKSHOP_RULES = table(
    ("T10", q("insert «Gadget» { a: 1 }"), "T10: unknown node/edge type", "L-094"),
    ("T10", q("update «Gadget» set { a: 1 } where b = 2"), "T10: unknown node/edge type"),
    ("T10", q("delete «BORROWS» where a = 1"), "T10: unknown node/edge type"),
    ("T11", q('update Maker set { «colour»: "x" } where handle = "ada"'), "T11: type `Maker` has no property", "L-095"),
    ("T11", q('insert Shed { slug: "a", «id»: "b" }'), "T11: type `Shed` has no property"),
    ("T11", q('insert Borrows { from: "a", to: "b", «src»: "c" }'), "T11: type `Borrows` has no property"),
    ("T11", q('insert Shed { slug: "a", «from»: "b" }'), "T11: type `Shed` has no property"),
    ("T11", q("delete Maker where «id» = \"ada\""), "T11: type `Maker` has no property"),
    ("T11", q("delete Maker where «from» = \"ada\""), "T11: type `Maker` has no property"),
    ("T11", q("delete Borrows where «src» = \"ada\""), "T11: type `Borrows` has no property"),
    ("T11", q("update Maker set { age: 1 } where «colour» = 1"), "T11: type `Maker` has no property"),
    ("T12", named('insert Tool { code: "zz-9" }'), "T12: insert for `Tool` must provide non-nullable property `label`", "L-096"),
    ("T12", named("insert Tool { weight: 1.0 }"), "T12: insert for `Tool` must provide non-nullable property `code`"),
    ("T12", named('insert Shed { slug: "a" }  insert Tool { code: "zz-9" }'), "T12: insert for `Tool`"),
    ("T12", named('insert Borrows { from: "ada" }'), "must provide required endpoint `to`", "L-097"),
    ("T12", named('insert Borrows { to: "ada", note: "x" }'), "must provide required endpoint `from`"),
    ("T13", q('insert Shed { slug: "a", «slug: "b"» }'), "T13: duplicate assignment", "L-098"),
    ("T13", q('insert Borrows { from: "a", to: "b" «from: "c"» }'), "T13: duplicate assignment"),
    ("T13", q('update Maker set { age: 1, «age: $a», } where age = 1', "$a: I32"), "T13: duplicate assignment"),
    ("T14", q("insert Shed { slug: «$nope» }"), "T14: mutation variable", "L-099"),
    ("T14", q("insert Borrows { from: «$nope», to: \"b\" }"), "T14: mutation variable"),
    ("T14", q("delete Maker where age > «$nope»"), "T14: mutation variable"),
    ("T3", q("insert Shed { slug: «3» }"), "T3: property `slug` has type String but got I64"),
    ("T3", q('insert Maker { handle: "a", level: «"guru"» }'), "T3: property `level` expects one of [master, novice, skilled], got 'guru'"),
    ("T3", q('insert Maker { handle: "a", skills: «"lathe"» }'), "T3: property `skills` has type [String]? but got String"),
    ("T3", q('insert Maker { handle: "a", skills: «[1]» }'), "T3: property `skills` has type [String]? but got [I64]"),
    ("T3", q('insert Maker { handle: "a", joined: «"2020-01-01"» }'), "T3: property `joined` has type Date? but got String"),
    ("T3", q("insert Borrows { from: «1», to: \"b\" }"), "T3: property `from` has type String but got I64"),
    ("T3", q('delete Maker where age = «"old"»'), "T3: property `age` has type I32? but got String"),
    ("T3", q('delete Borrows where to = «3»'), "T3: property `to` has type String but got I64"),
    ("T7", q('insert Maker { handle: "a", age: «$a» }', "$a: String"), "T7: cannot assign/compare String with I32? for property"),
    ("T7", q("insert Borrows { from: «$a», to: \"b\" }", "$a: I32"), "T7: cannot assign/compare I32 with String for property"),
    ("T7", q("delete Maker where age = «$a»", "$a: [I32]"), "T7: cannot assign/compare [I32] with I32? for property"),
    ("T7", q('insert Maker { handle: "a", joined: «now()» }'), "cannot assign/compare DateTime with Date?"),
    ("T7", q("delete Maker where handle = «now()»"), "cannot assign/compare DateTime with String"),
    ("T31", q("delete Maker where age = 1", "«$__nanograph_now»: DateTime"), "is reserved for runtime timestamp injection"),
    ("T32", q("delete Maker where age = 1", "$v: «Vector(0)»"), "unknown parameter type"),
)

ODD_RULES = table(
    ("T11", q('delete Odd where «pic» = "x"'), "cannot be used in WHERE predicates"),
    ("T3", q('update Odd set { pic: «"base64:"» } where code = "a"'), "T3: property `pic` has type Blob? but got String"),
    ("T3", q('update Odd set { required: «[1.0]» } where code = "a"'), "T3: property `required` has type Vector(2) but got vector literal with 1 element"),
    ("T3", q('update Odd set { required: «["a", "b"]» } where code = "a"'), "T3: property `required` has type Vector(2) but got [String]"),
    ("T3", q('delete Odd where kind = «"c"»'), "T3: property `kind` expects one of [a, b], got 'c'"),
    ("T7", q('update Odd set { required: «$v» } where code = "a"', "$v: Vector(3)"), "T7: cannot assign/compare Vector(3) with Vector(2) for property"),
    ("T7", q('update Odd set { moments: «now()» } where code = "a"'), "cannot assign/compare DateTime with [DateTime]?"),
    ("T12", named("insert Odd { code: \"x\" }"), "T12: insert for `Odd` must provide non-nullable property `kind`"),
    ("T12", named('insert Linked { from: "a" }'), "must provide required endpoint `to`"),
)
# fmt: on


@pytest.mark.parametrize(("code", "text", "fragment"), WORKSHOP_RULES)
def test_a_broken_rule_is_named_where_it_is_broken(code, text, fragment):
    raises("type", code, fragment, refusal(against(W), text))


@pytest.mark.parametrize(("code", "text", "fragment"), ODD_RULES)
def test_a_rule_about_blobs_vectors_and_lists_is_named_where_it_is_broken(code, text, fragment):
    raises("type", code, fragment, refusal(against(O), text))


def test_a_required_computed_vector_needs_its_source_or_itself():
    schema = catalog("node Note { slug: String @key body: String? vec: Vector(2) @embed(body) }")
    diagnostic = refusal(against(schema), named('insert Note { slug: "a" }'))
    raises("type", "T12", "must provide non-nullable property `vec`", diagnostic)
    assert "or @embed source `body`" in diagnostic.message
    mutation('insert Note { slug: "a", body: "text" }', schema=schema)
    mutation('insert Note { slug: "a", vec: [1, 2.5] }', schema=schema)


def test_a_mutation_built_without_assignments_is_refused():
    source = Source("<query>", q("insert Shed { slug: 1 }"))
    (query,) = parse_queries(source).queries
    empty = replace(query, body=MutationBody((Insert(Name("Shed"), ()),)))
    with pytest.raises(TypeCheckError, match=r"T10: .* requires at least one assignment"):
        check_mutation(source, W, empty)


def test_statements_are_checked_in_their_order():
    text = q("insert Gadget { a: 1 }  delete Nope where a = 1").replace("Gadget", "«Gadget»")
    assert refusal(against(W), text).code == "T10"


@pytest.mark.parametrize(
    ("statements", "params", "schema"),
    [
        pytest.param('insert Maker { handle: "a", score: 5, age: 2.5 }', "", W, id="numbers"),
        pytest.param("insert Shed { slug: $s }", "$s: String?", W, id="nullable for required"),
        pytest.param('insert Maker { handle: "a", skills: [] }', "", W, id="empty list"),
        pytest.param('insert Maker { handle: "a", level: $l }', "$l: String", W, id="enum"),
        pytest.param('insert Shed { slug: "a", openedAt: now() }', "", W, id="now"),
        pytest.param("delete Shed where openedAt < now()", "", W, id="now in a predicate"),
        pytest.param("delete Borrows where from != $f", "$f: String", W, id="end of an edge"),
        pytest.param('delete Mentors where since >= date("2020-01-01")', "", W, id="edge property"),
        pytest.param('insert Page { slug: "a", title: "b", vec: [1, 0, 0.5] }', "", P, id="vector"),
        pytest.param("insert Page { slug: $s title: $s vec: $v }", "$s: String, $v: Vector(3)?", P),
        pytest.param('update Odd set { pic: $p } where code = "a"', "$p: String?", O, id="blob"),
        pytest.param('update Odd set { pic: $p } where code = "a"', "$p: Blob?", O, id="as blob"),
        pytest.param("update Odd set { numbers: $p } where big > 3", "$p: [I64]", O, id="lists"),
        pytest.param('insert Note { slug: "a" }', "", E, id="nullable computed vector"),
        pytest.param("insert Same { a: 1 }  delete Same where a = 1", "", O, id="node wins"),
    ],
)
def test_a_mutation_that_breaks_no_rule_is_accepted(statements, params, schema):
    mutation(statements, params, schema)


def test_statements_become_what_they_say_in_their_order():
    plan = mutation(
        'insert Shed { slug: $s }  insert Borrows { to: "b" note: "n" from: $s }'
        "  update Maker set { age: 1 } where age > 2  delete Maker where age = 3"
        "  delete Borrows where to = $s",
        "$s: String",
    )
    assert plan.parameters == (ParameterSpec("s", TEXT),)
    slug = Param("s", TEXT)
    age = PropType(Scalar.I32, nullable=True)
    one, two, three = (Constant(number, PropType(Scalar.I64)) for number in (1, 2, 3))
    note = Assign("note", Constant("n", TEXT), PropType(Scalar.STRING, nullable=True))
    assert plan.statements == (
        InsertNode("Shed", (Assign("slug", slug, TEXT),)),
        InsertEdge("Borrows", slug, Constant("b", TEXT), (note,)),
        UpdateNodes("Maker", (Assign("age", one, age),), _compared("age", Operator.GT, two, age)),
        DeleteNodes("Maker", _compared("age", Operator.EQ, three, age)),
        DeleteEdges("Borrows", _compared("dst", Operator.EQ, slug, TEXT)),
    )


def test_a_node_type_wins_over_an_edge_type_of_its_name():
    (statement,) = mutation("insert Same { a: 1 }", schema=O).statements
    assert isinstance(statement, InsertNode)


def test_now_is_one_parameter_for_the_whole_query():
    plan = mutation(
        'insert Shed { slug: "a", openedAt: now() }  delete Shed where openedAt < now()'
    )
    insert, delete = plan.statements
    assert isinstance(insert, InsertNode)
    assert isinstance(delete, DeleteNodes)
    assert isinstance(delete.condition, Comparison)
    assert insert.assignments[1].value == delete.condition.right
    assert describe_expression(delete.condition.right) == "now()"
