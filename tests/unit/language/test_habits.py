"""What users of Cypher and SQL type gets a hint that says what to write here."""

from __future__ import annotations

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import LanguageError
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query

CATALOG = compile_schema(
    Source(
        "<schema>",
        "node Person { name: String @key  age: I32?  tags: [String]? }\n"
        "node City { name: String @key }\n"
        "edge Knows: Person -> Person { since: I32? }\n",
    )
)

LOWER = "keywords are written in lower case"
QUERY = "a query is `match"
ARROW = "an edge is `$a knows $b`"
BRACES = "in braces"
OPTIONAL = "write `optional { … }` as a clause of `match"
INSERT = "write `insert Person {"


def said(text: str) -> str:
    """The message and the hint of the one error of a text that is run at once."""
    with pytest.raises(LanguageError) as caught:
        compile_query(Source("<query>", text), CATALOG)
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.message}\nhint: {diagnostic.hint}"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("MATCH (p:Person) RETURN p.name", QUERY),
        ("MATCH { $p: Person } RETURN { $p.name }", f"{LOWER}: `match`"),
        ("match (p:Person) return p.name", BRACES),
        ("match $p: Person return $p.name", BRACES),
        ("SELECT name FROM Person", QUERY),
        ("select * from Person where age > 3", QUERY),
        ("return { 1 as x }", QUERY),
        ("unwind [1, 2] as x return x", "list parameter"),
        ("with x return x", "no pipelines"),
        ("INSERT INTO Person (name) VALUES ('x')", INSERT),
        ("CREATE (p:Person { name: 'x' })", INSERT),
        ('create Person { name: "x" }', INSERT),
        ('MERGE (p:Person { name: "x" })', "write `upsert Person {"),
        ('INSERT Person { name: "x" }', f"{LOWER}: `insert`"),
        ("UPDATE Person SET age = 3", f"{LOWER}: `update`"),
        ("DELETE FROM Person", "write `delete Person where"),
        ("EXPLAIN match { $p: Person } return { $p }", f"{LOWER}: `explain`"),
        ("OPTIONAL MATCH (p) RETURN p", OPTIONAL),
        ("begin", "one commit"),
        ("drop table Person", "schema apply"),
        ("show tables", "schema show"),
        ("mtach { $p: Person }", "did you mean `match`?"),
    ],
)
def test_a_text_that_begins_in_another_language_says_how_one_begins(text, hint):
    assert hint in said(text)


@pytest.mark.parametrize(
    ("clause", "hint"),
    [
        ("(p:Person)", "without parentheses"),
        ("($q:Person)-[:KNOWS]->($r)", "without parentheses"),
        ("$p -> $q", ARROW),
        ("$p --> $q", ARROW),
        ("$p -[knows]-> $q", ARROW),
        ("$p -knows-> $q", ARROW),
        ("$p <- $q", "from its source to its destination"),
        ("$p <-[knows]- $q", "from its source to its destination"),
        ("$p [knows] $q", "`$a knows $b`"),
        ("$p Knows $q", "`knows`"),
        ("$p KNOWS $q", "`knows`"),
        ("$p knows* $q", "`$a knows{1,3} $b`"),
        ("$p knows*1..3 $q", "`$a knows{1,3} $b`"),
        ("$p knows{1..3} $q", "bounds are `{1,3}`"),
        ("$p knows{3} $q", "bounds are `{1,3}`"),
        ("$p knows $q: Person", "a clause of its own: `$q: Person`"),
        ("$p knows $q.name", "a clause of its own"),
        ("$p knows Person", "joins two variables"),
        ("shortest $p knows $q", "`$a shortest knows{1,6} $b`"),
        ("$q: Person, $r: Person", "without commas"),
        ("q: Person", "a variable begins with `$`: `$q`"),
        ("@q: Person", "a variable begins with `$`: `$q`"),
        ("?q: Person", "a variable begins with `$`"),
        ("Person", "a binding is `$x: Person`"),
        ("$q Person", "a binding is `$q: Person`"),
        ("$q: Person | City", "one type"),
        ("$q: Person { age > 3 }", "write `$x.age > …` as a clause"),
        ("$q: Person { age = 3 }", "write `age: …`"),
        ("$q: Person { $p.age: 3 }", "without a variable"),
        ("WHERE $p.age > 3", "need no `where`"),
        ("where $p.age > 3", "need no `where`"),
        ("OPTIONAL { $p knows $q }", "`optional { … }`"),
        ("EXISTS { $p knows $q }", "write `exists { … }`"),
    ],
)
def test_a_pattern_of_another_language_says_what_it_is_here(clause, hint):
    assert hint in said(f"match {{ $p: Person  {clause} }} return {{ $p.name }}")


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("$p.age <> 3", "write `!=`"),
        ("$p.age == 3", "equality is one `=`"),
        ("$p.age = 3 && $p.age = 4", "write `and`"),
        ("$p.age = 3 || $p.age = 4", "write `or`"),
        ("$p.age = 3 AND $p.age = 4", f"{LOWER}: `and`"),
        ("$p.age = 3 OR $p.age = 4", f"{LOWER}: `or`"),
        ("$p.age = 3 xor $p.age = 4", "compare with `!=`"),
        ("NOT $p.age = 3", f"{LOWER}: `not`"),
        ("!($p.age = 3)", "write `not`"),
        ("$p.age IS NULL", "`is null` or `is not null`"),
        ("$p.age IS NOT NULL", "`is null` or `is not null`"),
        ("$p.age is NOT NULL", f"{LOWER}: `not`"),
        ("$p.age is not NULL", f"{LOWER}: `null`"),
        ("$p.age = null", "use is null or is not null"),
        ('$p.name LIKE "a%"', "`contains`, `starts_with`, `ends_with` or `matches"),
        ('$p.name like "a%"', "`contains`, `starts_with`, `ends_with` or `matches"),
        ('$p.name ILIKE "a%"', "`lower($x.p)`"),
        ('$p.name STARTS WITH "a"', "write `starts_with`"),
        ('$p.name ends with "a"', "write `ends_with`"),
        ('$p.name CONTAINS "a"', f"{LOWER}: `contains`"),
        ('$p.name =~ "a"', "`matches("),
        ('$p.name ~ "a"', "`matches("),
        ("$p.name = 'x'", "double quotes"),
        ("$p.age IN [1]", f"{LOWER}: `in`"),
        ("$p.age in (1, 2)", "`in [1, 2]`"),
        ("$p.age not in [1, 2]", "write `not ($x.p in …)`"),
        ('$p.name not contains "x"', "write `not ($x.p contains …)`"),
        ("$p.age BETWEEN 1 AND 2", "`$x.p >= low and $x.p <= high`"),
        ("1 < $p.age < 3", "join two of them with `and`"),
        ("age > 3", "filter comparisons require scalar operands"),
        ("exists($p.age)", "`$x.p is not null`"),
        ("$p.age > 3 ? 1", "`case when"),
    ],
)
def test_a_condition_of_another_language_says_what_it_is_here(condition, hint):
    assert hint in said(f"match {{ $p: Person  {condition} }} return {{ $p.name }}")


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("*", "`$p.*`"),
        ("count(*)", "`count($x)`"),
        ("COUNT($p)", f"{LOWER}: `count`"),
        ("UPPER($p.name)", "`upper(…)`"),
        ("p.name", "a variable begins with `$`: `$p`"),
        ("name", "`$p.name`"),
        ("avg(age)", "`$p.age`"),
        ("n: $p.name", "`$p.name as n`"),
        ("$p.name AS n", f"{LOWER}: `as`"),
        ("$p { .name }", "`$p.*`"),
        ("DISTINCT $p.name", f"{LOWER}: `distinct`"),
        ("distinct $p.name", "`return distinct { … }`"),
        ("case $p.age when 3 then 1 end", "`case when"),
        ("CASE WHEN true THEN 1 END", f"{LOWER}: `case`"),
        ("now", "write `now()`"),
        ("1e5", "numbers have no exponents"),
        ("2.5e-3", "numbers have no exponents"),
        ("$p.age::String", "`to_string(…)`"),
        ("cast($p.age as String)", "`to_string(…)`"),
        ("$p.age ** 2", "powers"),
        ("$p.age ^ 2", "powers"),
        ("TRUE", f"{LOWER}: `true`"),
        ("lowr($p.name)", "did you mean `lower`?"),
        ("toUpper($p.name)", "write `upper(…)`"),
        ("substr($p.name, 1)", "write `substring(…)`"),
        ("nvl($p.age, 0)", "write `coalesce(…)`"),
        ("toInteger($p.name)", "write `to_int(…)`"),
        ("group_concat($p.name)", "write `collect(…)`"),
        ("concat($p.name, $p.name)", "join texts with `+`"),
        ("id($p)", "`$x.@id`"),
        ("labels($p)", "`$x.@type`"),
        ("if($p.age > 3, 1, 2)", "`case when"),
    ],
)
def test_a_value_of_another_language_says_what_it_is_here(value, hint):
    assert hint in said(f"match {{ $p: Person }} return {{ {value} }}")


@pytest.mark.parametrize(
    ("tail", "hint"),
    [
        ("RETURN { $p.name }", f"{LOWER}: `return`"),
        ("where $p.age > 3 return { $p }", "need no `where`"),
        ("WHERE $p.age > 3 return { $p }", "need no `where`"),
        ("with $p return { $p }", "no pipelines"),
        ("optional match { $p knows $q } return { $p }", OPTIONAL),
        ("return $p.name", BRACES),
        ("return distinct $p.name", BRACES),
        ("return *", BRACES),
        ("return { $p } ORDER BY $p.name", "`order { $p.name desc }`"),
        ("return { $p } order by $p.name", "`order { $p.name desc }`"),
        ("return { $p } order $p.name", BRACES),
        ("return { $p } order { $p.name DESC }", f"{LOWER}: `desc`"),
        ("return { $p } order { $p.name descending }", "write `desc`"),
        ("return { $p } LIMIT 3", f"{LOWER}: `limit`"),
        ("return { $p } limit (3)", "write `limit 10`"),
        ("return { $p } limit 1, 2", "`limit n offset m`"),
        ("return { $p } SKIP 3", "write `offset n`"),
        ("return { $p } skip 3", "write `offset n`"),
        ("return { $p } OFFSET 3", f"{LOWER}: `offset`"),
        ("return { $p } top 3", "write `limit n`"),
        ("return { $p } GROUP BY $p.name", "no `group by`"),
        ("return { $p } having count($p) > 1", BRACES),
        ("return { $p } union match { $q: Person } return { $q }", "two queries"),
        ("return { $p };", "leave out the `;`"),
        ("return { $p } -- all of them", "a comment is `// …`"),
        ("return { $p } # all of them", "write `//`"),
        ("DETACH DELETE $p", "a node's edges go with it"),
        ("DELETE $p", f"{LOWER}: `delete`"),
        ("SET $p.age = 3", "write `update $x { p: 1 }`"),
        ("REMOVE $p.age", "`update $x { p: null }`"),
        ("update $p set age = 3", BRACES),
    ],
)
def test_a_tail_of_another_language_says_what_it_is_here(tail, hint):
    assert hint in said(f"match {{ $p: Person }} {tail}")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("insert into Person values (1)", INSERT),
        ('insert Person (name: "x")', BRACES),
        ('insert Person { name = "x" }', "write `name: …`"),
        ("insert Person { name: 'x' }", "double quotes"),
        ('update Person set age = 3 where name = "x"', BRACES),
        ('update Person set { age = 3 } where name = "x"', "write `age: …`"),
        ('update Person set { age: 3 } WHERE name = "x"', f"{LOWER}: `where`"),
        ("update Person set { age: age + 1 }", "`where true` selects every row"),
        ("delete Person", "`where true` selects every row"),
        ("delete from Person where true", "write `delete Person where …`"),
        ('delete Person where $p.name = "x"', "without a variable"),
        ('delete Person where Person.name = "x"', "it stands alone"),
    ],
)
def test_a_change_of_another_language_says_what_it_is_here(text, hint):
    assert hint in said(text)


def test_no_hint_is_given_where_the_mistake_is_another_one():
    assert said("match { $p: Person } return { ) }").endswith("hint: None")
    with pytest.raises(LanguageError) as caught:
        compile_query(
            Source("<query>", "query Q() { match { $p: Person } return { $p } }"), CATALOG
        )
    assert caught.value.diagnostic.hint is None
