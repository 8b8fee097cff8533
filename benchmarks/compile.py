"""How long it takes from query text to typed plan, cold and from the compile cache.

Two peers do comparable work on the same machine in the same run: sqlglot parses, resolves and types
a SQL query of the same meaning in pure Python; SQLite parses and plans it in C. Goals: below 2 ms
cold and below 50 µs from the cache for a query of ten clauses.
"""

from __future__ import annotations

import sqlite3

import sqlglot
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from benchmarks.support.timing import median_seconds, readable
from omnigraph.catalog.compile import compile_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.check_read import check_read
from omnigraph.plan.compile import QueryCompiler, compile_query

SCHEMA = """\
node Person { handle: String @key  age: I32?  city: String?  active: Bool?  tags: [String]? }
node Company { code: String @key  label: String @index  founded: Date? }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company { title: String? }
"""

QUERY = """\
query colleagues($city: String, $least: I32, $label: String) {
    match {
        $p: Person { city: $city, active: true }
        $p knows{1,2} $f
        $f worksAt $c
        $c: Company
        $f.age >= $least
        $c.label starts_with $label
        $c.founded < date("2020-01-01")
        $p.tags contains "graph"
        not { $p worksAt $c }
        not { $f knows $p }
    }
    return { $p.handle as who, $c.label as company, count($f) as friends, avg($f.age) as age }
    order { friends desc, who }
    limit 20
}
"""

TABLES = {
    "person": {"handle": "text", "age": "int", "city": "text", "active": "boolean"},
    "company": {"code": "text", "label": "text", "founded": "date"},
    "knows": {"src": "text", "dst": "text", "since": "date"},
    "works_at": {"src": "text", "dst": "text", "title": "text"},
    "tag": {"person": "text", "tag": "text"},
}

SQL = """\
SELECT p.handle AS who, c.label AS company, count(f.handle) AS friends, avg(f.age) AS age
FROM person AS p
JOIN knows AS k ON k.src = p.handle
JOIN person AS f ON f.handle = k.dst
JOIN works_at AS w ON w.src = f.handle
JOIN company AS c ON c.code = w.dst
WHERE p.city = 'Bern' AND p.active = true AND f.age >= 30
  AND c.label LIKE 'Acme%' AND c.founded < '2020-01-01'
  AND EXISTS (SELECT 1 FROM tag AS t WHERE t.person = p.handle AND t.tag = 'graph')
  AND NOT EXISTS (SELECT 1 FROM works_at AS x WHERE x.src = p.handle AND x.dst = c.code)
  AND NOT EXISTS (SELECT 1 FROM knows AS y WHERE y.src = f.handle AND y.dst = p.handle)
GROUP BY p.handle, c.label
ORDER BY friends DESC, who
LIMIT 20
"""


def sqlglot_plan() -> object:
    schema: dict[str, object] = {**TABLES}
    return annotate_types(qualify(sqlglot.parse_one(SQL), schema=schema), schema=schema)


def sqlite_connection() -> sqlite3.Connection:
    # Without its statement cache SQLite compiles the text anew each time, as a cold query does.
    connection = sqlite3.connect(":memory:", cached_statements=0)
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    return connection


def main() -> None:
    catalog = compile_schema(Source("bench.pg", SCHEMA))
    source = Source("bench.gq", QUERY)
    compiler = QueryCompiler(catalog)
    (query,) = parse_queries(source).queries
    database = sqlite_connection()

    cold = median_seconds(lambda: compile_query(source, catalog))
    rows = [
        ("parse", median_seconds(lambda: parse_queries(source))),
        ("check", median_seconds(lambda: check_read(source, catalog, query))),
        ("parse + check", cold),
        ("from the compile cache", median_seconds(lambda: compiler.compile(source))),
        ("schema text to catalog", median_seconds(lambda: compile_schema(Source("x", SCHEMA)))),
        ("peer: sqlglot parse + qualify + types", median_seconds(sqlglot_plan)),
        ("peer: SQLite prepare (C)", median_seconds(lambda: database.execute("EXPLAIN " + SQL))),
    ]
    width = max(len(name) for name, _ in rows)
    print(f"{'compile one query of ten clauses':<{width}}  {'median':>10}  ratio to cold compile")
    for name, seconds in rows:
        print(f"{name:<{width}}  {readable(seconds):>10}  {seconds / cold:8.3f}x")


if __name__ == "__main__":
    main()
