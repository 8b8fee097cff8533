"""Codes of schema files. Each example is a whole schema."""

from __future__ import annotations

from functools import partial
from typing import Final

from omnigraph.error_codes.entry import entry

_code = partial(entry, "compiler")

SCHEMA_CODES: Final = (
    _code(
        "S1",
        "schema syntax",
        """
        The text does not follow the grammar of schema files; the message says what was expected at
        the marked place. Frequent causes: a type name that does not start with an upper-case
        letter or a property name that does not start with a lower-case one, `#` instead of `//`
        for a comment, a list of something other than a plain scalar, or annotations in the wrong
        place (a node's come before `implements`, an edge's after `@card`).
        """,
        "node lamp { watt: I32 }",
    ),
    _code(
        "S2",
        "unknown escape in a string",
        r"""
        A backslash in a string may be followed by `"`, `\`, `n`, `r` or `t` only. In a `@check`
        pattern every backslash of the regular expression is therefore written twice: `"\\d+"`.
        """,
        r'node Lamp { code: String  @check(code, "\d+") }',
    ),
    _code(
        "S3",
        "vector without dimensions",
        """
        A vector has at least one dimension. Write the number that your embedding model produces,
        such as `Vector(384)`.
        """,
        "node Lamp { v: Vector(0) }",
    ),
    _code(
        "S4",
        "vector with too many dimensions",
        """
        A vector cannot have more than 2147483647 dimensions, the longest fixed-size list there is
        in storage. Embedding models stay below a few thousand.
        """,
        "node Lamp { v: Vector(2147483648) }",
    ),
    _code(
        "S5",
        "vector size is not a 32-bit number",
        """
        The number of dimensions does not even fit an unsigned 32-bit integer. Is a digit too many
        in it?
        """,
        "node Lamp { v: Vector(4294967296) }",
    ),
    _code(
        "S6",
        "list of blobs",
        """
        Lists hold text, numbers, booleans, dates and datetimes, no blobs. Make each blob a node of
        its own and connect it with an edge.
        """,
        "node Lamp { manuals: [Blob] }",
    ),
    _code(
        "S7",
        "repeated enum value",
        """
        An enum is a set: each value is listed once. Leave out the repetition.
        """,
        "node Lamp { state: enum(on, off, on) }",
    ),
    _code(
        "S8",
        "cardinality bound out of range",
        """
        A bound of `@card` does not fit an unsigned 32-bit integer. For "no upper bound" leave the
        number out: `@card(0..)`.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp @card(0..4294967296)
        """,
    ),
    _code(
        "S9",
        "cardinality bounds the wrong way round",
        """
        The lower bound of `@card` is greater than the upper one, so no number of edges could meet
        both.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp @card(3..1)
        """,
    ),
    _code(
        "S10",
        "constraint without a property name",
        """
        `@key`, `@unique`, `@index`, `@range` and `@check` name properties, not quoted texts or
        numbers. Behind a property, write the annotation bare (`email: String @unique`); with
        parentheses it counts as a constraint of the whole type.
        """,
        'node Lamp { code: String @unique("code") }',
    ),
    _code(
        "S11",
        "range without property or bounds",
        """
        `@range` stands in the body of a node and takes two arguments, the property and its bounds:
        `@range(watt, 0..100)`. It has no form that follows a property.
        """,
        "node Lamp { watt: I32 @range(0..100) }",
    ),
    _code(
        "S12",
        "range without bounds",
        """
        The second argument of `@range` must be bounds: `0..100`, `0..` or `..100`. Both ends
        belong to the range.
        """,
        "node Lamp { watt: I32  @range(watt, 100) }",
    ),
    _code(
        "S13",
        "check without property or pattern",
        """
        `@check` stands in the body of a node and takes two arguments, the property and a regular
        expression: `@check(code, "^[a-z]+$")`.
        """,
        "node Lamp { code: String  @check(code) }",
    ),
    _code(
        "S14",
        "check without a quoted pattern",
        """
        The second argument of `@check` is a regular expression in double quotes.
        """,
        "node Lamp { code: String  @check(code, 7) }",
    ),
    _code(
        "S15",
        "unknown interface",
        """
        The node implements an interface that the file does not declare. Check the spelling, or
        declare the interface; its place in the file does not matter.
        """,
        "node Lamp implements Tagged { code: String }",
    ),
    _code(
        "S16",
        "property differs from its interface",
        """
        A node may repeat a property of an interface it implements, but only with exactly the same
        type, `?` and enum values included. Otherwise code written for the interface would not fit
        the node. Use the interface's type, or leave the property out; it is then copied.
        """,
        """
        interface Tagged { tag: String }
        node Lamp implements Tagged { tag: String? }
        """,
    ),
    _code(
        "S17",
        "constraint annotation on a node",
        """
        `@key`, `@unique`, `@index` and `@embed` without parentheses belong behind a property. For
        a constraint of the type, put it into the body and name the properties:
        `@index(code, room)`.
        """,
        "node Lamp @index { code: String }",
    ),
    _code(
        "S18",
        "constraint annotation on an edge",
        """
        `@key`, `@unique`, `@index` and `@embed` cannot stand in the head of an edge. Edges take
        `@unique(…)` and `@index(…)` in the body, where `src` and `dst` stand for the two ends.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp @unique
        """,
    ),
    _code(
        "S19",
        "description or instruction not given once",
        """
        `@description` and `@instruction` hold a text for readers and tools. Each may be given once
        and must not be blank.
        """,
        'node Lamp @description(" ") { code: String }',
    ),
    _code(
        "S20",
        "constraint annotation on a list",
        """
        A list cannot be a key, be unique, be embedded or be indexed. Give each element a node of
        its own if you need to look it up.
        """,
        "node Lamp { tags: [String] @index }",
    ),
    _code(
        "S21",
        "vector as a key or unique value",
        """
        Vectors are compared by distance, never for equality, so `@key` and `@unique` make no sense
        on them.
        """,
        "node Lamp { v: Vector(3) @unique }",
    ),
    _code(
        "S22",
        "constraint annotation on a blob",
        """
        The content of a blob is not looked at, so it can be neither key nor unique, indexed nor
        embedded. Keep a digest or a name in a String property beside it.
        """,
        "node Lamp { manual: Blob @index }",
    ),
    _code(
        "S23",
        "instruction on a property",
        """
        `@instruction` tells tools how to use a node or edge type; properties do not take it. Use
        `@description` there.
        """,
        'node Lamp { code: String @instruction("Ask first.") }',
    ),
    _code(
        "S24",
        "key or embedding on an edge property",
        """
        Edges have no key and no embedded vectors. An edge gets an identity from its ends with
        `@unique(src, dst)` in its body, optionally with further properties.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp { label: String @key }
        """,
    ),
    _code(
        "S25",
        "constraint annotation repeated",
        """
        The same annotation stands twice behind one property. Leave out one of them.
        """,
        "node Lamp { code: String @unique @unique }",
    ),
    _code(
        "S26",
        "embedding on a property that is no vector",
        """
        `@embed` fills a vector from a text, so it belongs behind the vector and names the text:
        `vec: Vector(384) @embed(title)`.
        """,
        "node Lamp { title: String @embed(title) }",
    ),
    _code(
        "S27",
        "embedding without a source",
        """
        `@embed` must say which String property the vector is computed from: `@embed(title)`.
        """,
        "node Lamp { title: String  vec: Vector(3) @embed }",
    ),
    _code(
        "S28",
        "embedding with a blank source",
        """
        The name in `@embed` is empty. Name the String property the vector is computed from.
        """,
        'node Lamp { title: String  vec: Vector(3) @embed("") }',
    ),
    _code(
        "S29",
        "embedding of an unknown property",
        """
        `@embed` names a property that the type does not have. Check the spelling.
        """,
        "node Lamp { title: String  vec: Vector(3) @embed(titel) }",
    ),
    _code(
        "S30",
        "embedding of something that is no text",
        """
        A vector can be computed from a single String (or enum) property only.
        """,
        "node Lamp { watt: I32  vec: Vector(3) @embed(watt) }",
    ),
    _code(
        "S31",
        "key on an edge",
        """
        The key of an edge names both of its ends: `@key(@src, @dst)`, with any properties listed
        after them, is another way to write `@unique(src, dst)`. The tuple then identifies the edge.
        Other keys exist for nodes only.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp { label: String  @key(label) }
        """,
    ),
    _code(
        "S32",
        "more than one key",
        """
        A node type has at most one key, however it is written. For a key of several properties
        list them together, `@key(a, b)`; for a second value that must not repeat use `@unique`.
        """,
        "node Lamp { code: String @key  serial: String @key }",
    ),
    _code(
        "S33",
        "constraint on an unknown property",
        """
        A constraint names a property that the type does not have. Check the spelling. In the body
        of an edge `src` and `dst` may be named too.
        """,
        "node Lamp { code: String  @unique(serial) }",
    ),
    _code(
        "S34",
        "nullable key",
        """
        A key identifies every entity, so no part of it may be missing. Remove the `?`.
        """,
        "node Lamp { code: String? @key }",
    ),
    _code(
        "S35",
        "key of a type that cannot be compared",
        """
        Lists, vectors and blobs cannot be part of a key. Use text, numbers, booleans, dates or
        enums.
        """,
        "node Lamp { tags: [String]  @key(tags) }",
    ),
    _code(
        "S36",
        "index on a blob",
        """
        The content of a blob is not looked at, so there is nothing to index.
        """,
        "node Lamp { manual: Blob  @index(manual) }",
    ),
    _code(
        "S37",
        "range or check on an edge",
        """
        `@range` and `@check` exist for nodes only. If the values of an edge need checking, make the
        relation a node with two edges.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp { hours: I32  @range(hours, 0..24) }
        """,
    ),
    _code(
        "S38",
        "range on something that is no number",
        """
        `@range` compares numbers. It does not work on text, dates or booleans.
        """,
        "node Lamp { code: String  @range(code, 0..5) }",
    ),
    _code(
        "S39",
        "check on something that is no text",
        """
        `@check` matches a regular expression against text. Use `@range` for numbers.
        """,
        'node Lamp { watt: I32  @check(watt, "^[0-9]+$") }',
    ),
    _code(
        "S40",
        "type declared twice",
        """
        Two node types, two edge types or two interfaces have the same name. A node type and an
        edge type may share one.
        """,
        """
        node Lamp { code: String }
        node Lamp { watt: I32 }
        """,
    ),
    _code(
        "S41",
        "property declared twice",
        """
        A type declares two properties of the same name. Leave one out, or rename it.
        """,
        "node Lamp { code: String  code: I32 }",
    ),
    _code(
        "S42",
        "edge to an unknown node type",
        """
        An end of an edge is not a node type of this schema. Interfaces cannot be ends. Check the
        spelling, or declare the node type; its place in the file does not matter.
        """,
        """
        node Lamp { code: String }
        edge StandsIn: Lamp -> Room
        """,
    ),
    _code(
        "S43",
        "edge names that differ in case only",
        """
        Queries name edges without regard to upper and lower case, so two edge types whose names
        differ in nothing else could not be told apart. Rename one.
        """,
        """
        node Lamp { code: String }
        edge WiredTo: Lamp -> Lamp
        edge Wiredto: Lamp -> Lamp
        """,
    ),
    _code(
        "S44",
        "misplaced or malformed cardinality",
        """
        `@card` must be the first thing after the target type of an edge and hold bounds:
        `@card(0..1)`, `@card(1..)`.
        """,
        """
        node Lamp { code: String }
        edge Lights: Lamp -> Lamp @card(1)
        """,
    ),
    _code(
        "S45",
        "unusable backfill value",
        """
        The value in `@backfill` cannot become the type of the property, is missing, or is given
        twice. Write negative numbers, dates, lists and vectors as quoted text: `@backfill("-1")`,
        `@backfill("2026-01-31")`, `@backfill("[]")`. An enum takes one of its own values; a blob
        takes none.
        """,
        'node Lamp { code: String  watt: I32 @backfill("many") }',
    ),
    _code(
        "S46",
        "reserved property name",
        """
        Every entity has an `id`, and every edge a `src` and a `dst`, so properties cannot be called
        that; the same holds for names that begin with `__` and for `_rowid`, `_rowaddr`,
        `_rowoffset`, `_row_created_at_version` and `_row_last_updated_at_version`. The rule is
        applied when a graph is created or its schema is changed.
        """,
        "node Lamp { id: String }",
    ),
    _code(
        "S47",
        "unusable argument of an annotation",
        """
        An annotation has a keyword argument that it does not know, has one twice, or without a
        value. Only `@embed` takes one, the model that computes the vector:
        `@embed(text, model="openai/text-embedding-3-large")`.
        """,
        'node Lamp { code: String  v: Vector(4)? @embed(code, modell="openai/x") }',
    ),
)
