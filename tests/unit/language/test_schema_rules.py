"""Every rule of a single schema file: its message, its code, its place, and the order of checks.

The rules across declarations (same names, unknown ends) belong to the catalog's tests.
"""

from __future__ import annotations

import pytest

from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Source
from tests.unit.language.places import raises, refusal, table

BACKFILLS = [
    "I32 «@backfill»",
    "I32 @backfill(1) «@backfill(2)»",
    'Blob «@backfill("base64:")»',
    "enum(a, b) «@backfill(c)»",
    "U32 «@backfill(4294967296)»",
    'U32 «@backfill("-1")»',
    "I32 «@backfill(1.5)»",
    'I32? «@backfill("")»',
    "Bool «@backfill(yes)»",
    'Date «@backfill("soon")»',
    'DateTime «@backfill("2020-02-30")»',
    '[I32] «@backfill("[1, true]")»',
    '[I32] «@backfill("1")»',
    '[I32] «@backfill("[2147483648]")»',
    r'[I32] «@backfill("[\"1\"]")»',
    '[F64] «@backfill("[true]")»',
    '[Date] «@backfill("[18823]")»',
    'Vector(2) «@backfill("[1.0]")»',
    'F64 «@backfill("nan")»',
    '[F64] «@backfill("[NaN]")»',
    'Vector(1) «@backfill("[Infinity]")»',
    'Vector(1) «@backfill("[null]")»',
    'F32 «@backfill("1e39")»',
]


# fmt: off
# One row per line.
RULES = table(
    ("S2", r'node Lamp { c: String  @check(c, "«\d»+") }', r"unsupported escape sequence: \d", "L-018"),
    ("S2", r'node Lamp @shelf("a«\x»") { c: String }', r"unsupported escape sequence: \x"),
    ("S3", "node Lamp { v: Vector(«0») }", "Vector dimension must be greater than zero", "L-005"),
    ("S4", "node Lamp { v: Vector(«2147483648») }", "exceeds maximum supported"),
    ("S5", "node Lamp { v: Vector(«4294967296») }", "invalid Vector dimension"),
    ("S5", f"node Lamp {{ v: Vector(«{'9' * 5000}») }}", "invalid Vector dimension"),
    ("S6", "node Lamp { b: [«Blob»] }", "list of Blob is not supported", "L-006"),
    ("S7", "node Lamp { s: enum(on, off, «on») }", "enum type cannot include duplicate values", "L-007"),
    ("S8", "edge Lit: L -> L @card(«4294967296»..)", "invalid cardinality min"),
    ("S8", "edge Lit: L -> L @card(0..«4294967296»)", "invalid cardinality max"),
    ("S9", "node L { a: String }  edge Lit: L -> L «@card(3..1)»", "cardinality min (3) exceeds max (1)", "L-027"),
    ("S10", "node L { a: String @key(«1») }", "expected property name in constraint"),
    ("S10", 'node L { email: String @unique(«"x"») }', "expected property name in constraint"),
    ("S10", "node L { a: String @index(a, «0..1») }", "expected property name in constraint"),
    ("S10", 'node L { a: I32 @range(«"a"», 0..1) }', "expected property name in constraint"),
    ("S10", 'node L { a: String @check(«3», "x") }', "expected property name in constraint"),
    ("S11", "node L { a: I32  «@range(a)» }", "@range requires property name and bounds"),
    ("S11", "node L { a: I32 «@range(0..9)» }", "@range requires property name and bounds"),
    ("S12", "node L { a: I32  @range(a, «9») }", "expected range bounds"),
    ("S12", f"node L {{ a: F64  @range(a, «0..1{'0' * 400}») }}", "expected range bounds"),
    ("S13", "node L { a: String  «@check(a)» }", "@check requires property name and pattern"),
    ("S14", "node L { a: String  @check(a, «b») }", "expected string argument in constraint"),
    ("S15", "node Bin implements «Nope» { a: String }", "implements unknown interface 'Nope'", "L-033"),
    ("S16", "interface Tagged { tag: String }  node Bin implements Tagged { tag: «String?» }", "but interface Tagged declares it as", "L-032"),
    ("S16", "interface T { n: I32 }  node Bin implements T { n: «I64» }", "but interface T declares it as I32"),
    ("S16", "interface T { n: [I32] }  node Bin implements T { n: «I32» }", "but interface T declares it as [I32]"),
    ("S16", "interface T { n: enum(b, a)? }  node Bin implements T { n: «enum(a, c)?» }", "but interface T declares it as enum(a, b)?"),
    ("S17", "node Lamp «@index» { a: String }", "only supported on node properties", "L-012"),
    *(("S17", f"node Lamp «@{word}» {{ }}", "only supported on node properties") for word in ("key", "unique", "embed")),
    *(("S18", f"edge Lit: L -> L «@{word}»", "is not supported on edges") for word in ("key", "unique", "index", "embed")),
    ("S19", 'node Lamp «@description("  ")» { t: String }', "requires a non-empty value", "L-024"),
    ("S19", "node Lamp { t: String «@description» }", "requires a non-empty value"),
    ("S19", 'edge Lit: L -> L «@instruction("\t\n")»', "requires a non-empty value"),
    ("S19", 'node Lamp @description("a") «@description("b")» { t: String }', "declares @description multiple times"),
    ("S19", 'edge Lit: L -> L @instruction("a") «@instruction("b")»', "declares @instruction multiple times"),
    ("S20", "node Lamp { tags: [String] «@index» }", "@index is not supported on list property Lamp.tags", "L-013"),
    *(("S20", f"node Lamp {{ tags: [String] «@{word}» }}", "is not supported on list property Lamp.tags") for word in ("key", "unique", "embed(tags)")),
    ("S20", "edge Lit: L -> L { tags: [I32]? «@index» }", "@index is not supported on list property Lit.tags"),
    *(("S21", f"node Lamp {{ v: Vector(2) «@{word}» }}", f"@{word} is not supported on vector property Lamp.v") for word in ("key", "unique")),
    *(("S22", f"node Lamp {{ b: Blob «@{word}» }}", "is not supported on blob property Lamp.b") for word in ("key", "unique", "index", "embed(b)")),
    ("S23", 'node Lamp { t: String «@instruction("x")» }', "@instruction is only supported on node and edge types", "L-023"),
    ("S24", "edge Lit: L -> L { a: String «@key» }", "is not supported on edge properties"),
    ("S24", "edge Lit: L -> L { a: String  v: Vector(2) «@embed(a)» }", "is not supported on edge properties"),
    *(("S25", f"node Lamp {{ a: String @{word} «@{word}» }}", f"declares @{word} multiple times") for word in ("key", "unique", "index")),
    ("S25", "node Lamp { a: String  v: Vector(2) @embed(a) «@embed(a)» }", "declares @embed multiple times"),
    ("S26", "node Lamp { t: String «@embed(t)» }", "@embed is only supported on vector properties", "L-021"),
    ("S27", "node Lamp { v: Vector(2) «@embed» }", "requires a source property name"),
    ("S28", 'node Lamp { v: Vector(2) «@embed(" ")» }', "requires a non-empty source property name"),
    ("S29", "node Lamp { body: String  v: Vector(2) «@embed(bdy)» }", "references unknown source property"),
    ("S30", 'node Lamp { t: I32  v: Vector(2) «@embed("t")» }', "must be String", "L-022"),
    ("S30", "node Lamp { t: [String]  v: Vector(2) «@embed(t)» }", "must be String"),
    ("S31", "edge Lit: L -> L { a: String  «@key(a)» }", "@key constraint is not supported on edges"),
    ("S31", "edge Lit: L -> L { a: String  «@key(@src, a)» }", "without both ends"),
    ("S31", "edge Lit: L -> L { a: String  «@key(src, dst)» }", "without both ends"),
    ("S33", "edge Lit: L -> L { @key(@src, @dst, «b») }", "references unknown property 'b'"),
    ("S33", "node Lamp { a: String  @key(«@src») }", "references unknown property '@src'"),
    ("S1", "edge Lit: L -> L { @unique(«@»src, @dst) }", "expected a property name"),
    ("S1", "edge Lit: L -> L { @key(@src, @«end») }", "expected `src` or `dst`"),
    ("S32", "node Lamp { a: String @key  b: String «@key» }", "has multiple @key constraints", "L-010"),
    ("S32", "node Lamp { a: String  b: String  @key(a)  «@key(b)» }", "has multiple @key constraints"),
    ("S32", "node Lamp { a: String «@key»  b: String  @key(b) }", "has multiple @key constraints"),
    ("S33", "node L { code: String  @key(«cod») }", "@key on L references unknown property 'cod'"),
    ("S33", "node L { code: String  @unique(code, «cod») }", "@unique on L references unknown property 'cod'"),
    ("S33", "node L { code: String  @index(«cod») }", "@index on L references unknown property 'cod'"),
    ("S33", "node L { code: String  @range(«cod», 0..1) }", "@range on L references unknown property 'cod'"),
    ("S33", 'node L { code: String  @check(«cod», "x") }', "@check on L references unknown property 'cod'"),
    ("S33", "edge Lit: L -> L { w: I32  @unique(src, dst, «v») }", "@unique on Lit references unknown property 'v'"),
    ("S33", "node L { a: String  @unique(«src») }", "@unique on L references unknown property 'src'"),
    ("S34", "node Lamp { «code»: String? @key }", "cannot be nullable", "L-009"),
    ("S34", "node Lamp { a: String  b: I32?  @key(a, «b») }", "cannot be nullable"),
    ("S35", "node Lamp { p: [I32]  @key(«p») }", "@key is not supported on list property"),
    ("S35", "node Lamp { p: Vector(2)  @key(«p») }", "@key is not supported on vector property"),
    ("S35", "node Lamp { p: Blob  @key(«p») }", "@key is not supported on blob property"),
    ("S36", "node Lamp { b: Blob  @index(«b») }", "@index is not supported on blob property"),
    ("S37", "node L { a: String }  edge Lit: L -> L { «@range(x, 0..1)» x: I32 }", "@range constraint is not supported on edges", "L-029"),
    ("S37", 'edge Lit: L -> L { x: String «@check(x, "a")» }', "@check constraint is not supported on edges"),
    ("S38", "node Lamp { w: String  @range(«w», 0..5) }", "requires a numeric type", "L-015"),
    *(("S38", f"node Lamp {{ w: {type}  @range(«w», 0..5) }}", "requires a numeric type") for type in ("Bool", "Date", "enum(a)", "Vector(3)")),
    *(("S39", f'node Lamp {{ w: {type}  @check(«w», "x") }}', "requires String type") for type in ("I32", "DateTime", "[F64]")),
    ("S44", "node L { a: String }  edge Lit: L -> L «@card(1)»", "invalid cardinality", "L-037"),
    ("S44", 'edge Lit: L -> L «@card("x")»', "invalid cardinality"),
    ("S44", "edge Lit: L -> L «@card»", "invalid cardinality"),
    ("S44", "edge Lit: L -> L @hue(warm) «@card(0..1)»", "invalid cardinality"),
    ("S44", "edge Lit: L -> L @card(0..1) «@card(0..2)»", "invalid cardinality"),
    ("S44", "edge Lit: L -> L { w: I32 «@card(0..1)» }", "invalid cardinality"),
    ("S44", "edge Lit: L -> L { w: I32 «@card» }", "invalid cardinality"),
    ("S45", 'node L { a: String  n: I32 «@backfill("x")» }', "invalid @backfill", "L-039"),
    ("S45", "edge Lit: L -> L { p: I32 «@backfill(x)» }", "invalid @backfill"),
    *(("S45", f"node L {{ p: {written} }}", "invalid @backfill") for written in BACKFILLS),
    ("S47", 'node L { a: String  v: Vector(2) @embed(a, «modell»="x") }', "@embed has no argument 'modell'"),
    ("S47", 'node L { a: String  v: Vector(2) @embed(a, model="x", «model»="y") }', "more than once"),
    ("S47", 'node L { a: String  v: Vector(2) @embed(a, «model»=" ") }', "requires a non-empty value"),
    ("S47", 'node L { a: String @hue(warm, «model»="x") }', "@hue has no argument 'model'"),
    ("S47", "edge Lit: L -> L @hue(warm, «deep»=3)", "@hue has no argument 'deep'"),
    ("S1", "node L { a: String  v: Vector(2) @embed(a, model=«x») }", "expected a string, number or boolean"),
    ("S1", 'node L { a: String  v: Vector(2) @embed(a, «"x"») }', "expected the name of an argument"),
    ("S1", 'node L { a: String  v: Vector(2) @embed(model«=»"x") }', "expected `)`"),
)

ORDER = table(
    ("S1", r'node L { v: Vector(0) @check(v, "\d") } node «l» { }', "the grammar of the whole file comes first"),
    ("S3", "node A implements Nope { } node B { v: Vector(«0») }", "types before interfaces"),
    ("S12", "node A @index { } edge E: A -> A { x: I32 @range(x, «3») }", "constraint arguments before annotations"),
    ("S2", r'node A @key { } node B @x("«\q»") { }', "escapes before annotations"),
    ("S11", "node A { x: I32 «@range(x)» } node B { v: Vector(0) }", "one declaration after the other"),
    ("S44", "edge E: A -> A «@card(1)» node B { v: Vector(0) }", "cardinality is a check of its declaration"),
    ("S15", "node A @key { } node B implements «Nope» { }", "interfaces before annotations"),
    ("S16", "interface I { a: I32 } node A implements I { a: «I64» } node B implements Nope { }", "interfaces node by node"),
    ("S26", "node A { @key(x) } node B { a: I32 «@embed(a)» }", "annotations before constraints"),
    ("S45", "node A { @key(x) } node B { a: I32 «@backfill(b)» }", "backfill is an annotation"),
    ("S18", "edge E: A -> A «@key» node A @key { }", "annotations in source order, edge first"),
    ("S17", "node A «@key» { } edge E: A -> A @key", "annotations in source order, node first"),
    ("S31", "edge E: A -> A { «@key(x)» } node A { @key(x) }", "constraints in source order"),
    ("S33", "node A { a: String @key(«b») } node A { }", "constraints before names"),
)
# fmt: on


@pytest.mark.parametrize(("code", "text", "fragment"), RULES)
def test_a_broken_rule_is_named_where_it_is_broken(code, text, fragment):
    raises("parse", code, fragment, refusal(resolve_schema, text))


@pytest.mark.parametrize(("code", "text", "reason"), ORDER)
def test_checks_run_in_their_order(code, text, reason):
    assert refusal(resolve_schema, text).code == code, reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("node L { w: I32 @range(w, -5..) @range(w, ..9) }", id="open bounds"),
        pytest.param("node L { w: F32 @range(w, -1.5..-0.5) }", id="negative float bounds"),
        pytest.param("node L { w: F32 @range(w, 0..1.5) }", id="mixed bounds"),
        pytest.param("node L { v: Vector(2147483647)? w: Vector(007) }", id="dimensions"),
        pytest.param("node L { w: [I32] @range(w, 0..5) }", id="range on a numeric list"),
        pytest.param('node L { w: [String] @check(w, "x") }', id="check on a text list"),
        pytest.param('node L { w: enum(a) @check(w, "x") }', id="check on an enum"),
        pytest.param("node L { l: [I32] v: Vector(2) b: Blob @unique(l, v, b) }", id="odd unique"),
        pytest.param("node L { l: [I32] v: Vector(2) @index(l) @index(v) }", id="odd indexes"),
        pytest.param("node L { v: Vector(2) @index }", id="index on a vector"),
        pytest.param("interface I { a: String } node L implements I, I { }", id="same one twice"),
        pytest.param("interface I { a: I32 @embed(x) @key @key }", id="bad but unused interface"),
        pytest.param("node L { a: String @embed_from(x) }", id="annotation starting like another"),
        pytest.param("node L { s: enum(a) v: Vector(2) @embed(s) }", id="embedding an enum"),
        pytest.param('node L @card("x") { a: String @card }', id="card means nothing on a node"),
        pytest.param("node L { a: String @default(3) }", id="default is an ordinary annotation"),
        pytest.param("node Lit { } edge Lit: Lit -> Lit", id="node and edge share a name"),
        pytest.param("node L { id: String src: String }", id="the parser reserves nothing"),
        pytest.param("edge E: A -> B { @unique(src) @index(dst) @unique(dst, src) }", id="ends"),
        pytest.param("edge E: A -> B @card(0..0) @hue", id="cardinality before annotations"),
        pytest.param("node L { a: enum(x, y) @backfill(y) }", id="backfill with a name"),
        pytest.param('node L { a: I32 @backfill("-1") b: [I32] @backfill("[]") }', id="backfills"),
        pytest.param('node L { d: Date @backfill("2020-02-01") f: F64 @backfill(1) }', id="more"),
    ],
)
def test_what_no_rule_forbids_is_accepted(text):
    resolve_schema(Source("<schema>", text))
