"""Codes of queries that do not fit the schema. The examples go with the example schema.

The messages of T1 to T21 begin with their code, those of T31 to T37 do not.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from omnigraph.error_codes.entry import entry

_code = partial(entry, "compiler")

TYPE_CODES: Final = (
    _code(
        "T1",
        "unknown node type",
        """
        A variable is bound to a type that is not a node type of the schema. Check the spelling and
        the case. Edges are not bound: bind their ends and write the edge between them.
        """,
        """
        query people() {
            match { $p: Persn }
            return { $p }
        }
        """,
    ),
    _code(
        "T2",
        "unknown property in a match",
        """
        The braces after a type name a property that the type does not have. Property names are
        case-sensitive.
        """,
        """
        query by_nick() {
            match { $p: Person { nick: "ada" } }
            return { $p }
        }
        """,
    ),
    _code(
        "T3",
        "value does not fit the property",
        """
        A literal has another type than the property it is matched with or assigned to: text for a
        number, a value outside the enum, a vector of the wrong length, a plain string for a date
        (write `date("2026-01-31")`). A list property is matched with one element, not with a list;
        a blob cannot be matched at all, and gets its value from a String parameter.
        """,
        """
        query bosses() {
            match { $p: Person { role: "boss" } }
            return { $p }
        }
        """,
    ),
    _code(
        "T4",
        "unknown edge type",
        """
        No edge type of the schema has this name. Upper and lower case do not matter here, but
        underscores do: `edge WorksAt` is written `worksAt`, not `works_at`. A variable followed by
        `contains` or `starts_with` and another variable also reads as an edge; compare a property
        instead.
        """,
        """
        query fans() {
            match { $p likes $a }
            return { $p }
        }
        """,
    ),
    _code(
        "T5",
        "edge does not lead there",
        """
        A variable has a type that is not at this end of the edge, or at neither end. The schema
        says which types an edge connects; between different types it may be written in either
        direction.
        """,
        """
        query followers() {
            match {
                $a: Article
                $p follows $a
            }
            return { $p }
        }
        """,
    ),
    _code(
        "T6",
        "unknown property, variable or alias",
        """
        An expression names a property the variable's type does not have, a variable that is not
        bound at this point, or an alias that `return` does not declare (in `return`: not before
        this place). A variable introduced inside `not { … }` does not exist outside of it. The id
        is no property; return the variable itself (`$p`) to get it.
        """,
        """
        query ages() {
            match { $p: Person }
            return { $p.agee }
        }
        """,
    ),
    _code(
        "T7",
        "values that cannot be compared",
        """
        The two sides of a comparison, or a parameter and its property, have types that do not go
        together. Numbers compare with numbers of any kind; text, booleans, dates and datetimes
        only with their own kind. `contains` takes a list or a String on the left and one value on
        the right, `starts_with` takes two Strings. Lists, vectors, blobs, whole nodes and
        aggregates cannot be compared; lists, vectors and blobs cannot be ordered by either.
        """,
        """
        query namesakes() {
            match {
                $p: Person
                $p.age = $p.name
            }
            return { $p }
        }
        """,
    ),
    _code(
        "T8",
        "aggregate over the wrong type",
        """
        `sum` and `avg` need numbers; `min` and `max` need numbers or text. Dates and booleans can
        only be counted; for the earliest or latest date, order by it and take `limit 1`. An
        aggregate cannot be applied to another one.
        """,
        """
        query total() {
            match { $p: Person }
            return { sum($p.name) }
        }
        """,
    ),
    _code(
        "T9",
        "misplaced aggregate or unrelated negation",
        """
        One of three things. A `not` block does not mention, in a clause of its own, any variable
        bound before it; it would remove all rows or none. Or `return` mixes an aggregate with a
        literal or `now()`; beside aggregates only properties, variables, rank and text functions
        are allowed, because they form the groups. Or an `order` key of an aggregate query is not
        one of its columns, or is an aggregate although `return` has none.
        """,
        """
        query lonely() {
            match {
                $p: Person
                not { $a: Article }
            }
            return { $p }
        }
        """,
    ),
    _code(
        "T10",
        "mutation of an unknown type",
        """
        `insert`, `update` or `delete` names a type that the schema does not have. Unlike in
        `match`, edge types are written here exactly as declared: `insert Wrote`, not
        `insert wrote`. (A mutation without assignments has the same code; the grammar rules it
        out.)
        """,
        """
        query add() {
            insert Persn { email: "ada@example.org" }
        }
        """,
    ),
    _code(
        "T11",
        "unknown property in a mutation",
        """
        An assignment or a `where` names a property the type does not have. The id is no property.
        On edges the two ends are called `from` and `to`. A blob exists but cannot be used in
        `where`.
        """,
        """
        query set_nick($email: String) {
            update Person set { nick: "ada" } where email = $email
        }
        """,
    ),
    _code(
        "T12",
        "insert without a required value",
        """
        An insert must give every property that is not marked `?`, and for edges `from` and `to`. A
        required `@embed` vector may be left out if its source text is given. `@backfill` does not
        count: it fills existing rows only.
        """,
        """
        query add() {
            insert Person { email: "ada@example.org" }
        }
        """,
    ),
    _code(
        "T13",
        "property assigned twice",
        """
        One statement assigns the same property twice. Leave one out.
        """,
        """
        query rename($email: String) {
            update Person set { name: "Ada", name: "Bo" } where email = $email
        }
        """,
    ),
    _code(
        "T14",
        "value is not a parameter",
        """
        Values of a mutation, and those in the braces of a match, are literals, `now()` or declared
        parameters. Declare the parameter in the head of the query; to compare with a property of
        another variable in a match, write a filter such as `$p.name = $q.name`.
        """,
        """
        query by_name() {
            match { $p: Person { name: $name } }
            return { $p }
        }
        """,
    ),
    _code(
        "T15",
        "hop bounds or nearest arguments",
        """
        Hop bounds start at 1 and have an upper end that is not below the lower one: `{1,3}`; there
        is no unbounded traversal. `nearest` needs a vector property of a bound variable, and as
        its second argument a list or parameter with as many numbers as the vector, or a text to
        embed.
        """,
        """
        query reachable() {
            match {
                $p: Person { email: "ada@example.org" }
                $p follows{1,} $q
            }
            return { $q.name }
        }
        """,
    ),
    _code(
        "T16",
        "update of an edge type",
        """
        Edges cannot be updated. Insert the edge again if its type has an identity
        (`@unique(src, dst)`), which replaces it; otherwise delete it and insert it anew.
        """,
        """
        query rate($who: String) {
            update Reviewed set { stars: 5 } where from = $who
        }
        """,
    ),
    _code(
        "T17",
        "nearest order without a limit",
        """
        Ordering by `nearest` ranks everything there is, so the query must say how many rows it
        wants. Add `limit`. A distance that is only returned needs none.
        """,
        """
        query similar($v: Vector(3)) {
            match { $a: Article }
            return { $a.title }
            order { nearest($a.vec, $v) }
        }
        """,
    ),
    _code(
        "T18",
        "retired",
        """
        Never reported. It once refused `nearest` beside other order keys, which is allowed now; the
        number will not be used again.
        """,
    ),
    _code(
        "T19",
        "arguments of search or fuzzy",
        """
        `search` and `fuzzy` look into one String property (`$a.title`) for one String. The third
        argument of `fuzzy`, the number of edits, is an integer from 0 to 2.
        """,
        """
        query misspelt() {
            match {
                $a: Article
                fuzzy($a.title, "grpah", 3)
            }
            return { $a.title }
        }
        """,
    ),
    _code(
        "T20",
        "arguments of match_text or bm25",
        """
        `match_text` and `bm25` look into one String property (`$a.title`) for one String.
        """,
        """
        query ranked() {
            match { $a: Article }
            return { bm25($a.title, 5) as score }
        }
        """,
    ),
    _code(
        "T21",
        "rrf order without a limit, or a bad constant",
        """
        Ordering by `rrf` needs a `limit`, like `nearest`. Its optional third argument is an integer
        greater than 0, as a literal or a parameter.
        """,
        """
        query hybrid($v: Vector(3), $q: String) {
            match { $a: Article }
            return { $a.title }
            order { rrf(nearest($a.vec, $v), bm25($a.title, $q)) }
        }
        """,
    ),
    _code(
        "T31",
        "reserved parameter name",
        """
        The name `__nanograph_now` carries the time of `now()` into a running query and cannot be
        declared as a parameter. Use another name.
        """,
        """
        query recent($__nanograph_now: DateTime) {
            match { $p: Person { joined: $__nanograph_now } }
            return { $p }
        }
        """,
    ),
    _code(
        "T32",
        "impossible parameter type",
        """
        A vector parameter has between 1 and 2147483647 dimensions. Use the size of the property it
        is compared with.
        """,
        """
        query similar($v: Vector(0)) {
            match { $a: Article }
            return { nearest($a.vec, $v) }
        }
        """,
    ),
    _code(
        "T33",
        "variable without a meaning",
        """
        A bare `$name` is neither a parameter nor a variable bound before this place. Check the
        spelling, or bind it in `match`.
        """,
        """
        query people() {
            match { $p: Person }
            return { $q }
        }
        """,
    ),
    _code(
        "T34",
        "variable of two types",
        """
        A variable is bound again with another type. Repeating a binding with the same type is fine
        and adds conditions; another type needs another variable.
        """,
        """
        query confused() {
            match {
                $p: Person
                $p: Article
            }
            return { $p }
        }
        """,
    ),
    _code(
        "T35",
        "read and mutation mixed up",
        """
        A mutation was handed to the checker of reads, or a read to that of mutations. Only a
        program that calls the checkers directly can see this; the command line picks the right one
        by itself.
        """,
        """
        query forget($email: String) {
            delete Person where email = $email
        }
        """,
    ),
    _code(
        "T36",
        "date that does not exist",
        """
        The text in `date("…")` or `datetime("…")` cannot be read, or names a day or time that does
        not exist. Write `date("2026-01-31")` or `datetime("2026-01-31T08:00:00Z")`.
        """,
        """
        query leap_day() {
            match {
                $a: Article
                $a.published = date("2026-02-30")
            }
            return { $a }
        }
        """,
    ),
    _code(
        "T37",
        "mixed or nested list",
        """
        The elements of a list literal have one type (integers and floats may be mixed), and none of
        them is a list.
        """,
        """
        query tag($email: String) {
            update Person set { topics: ["graphs", 7] } where email = $email
        }
        """,
    ),
)
