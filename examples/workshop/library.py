"""Look at the workshop now and then, compile its queries, and plan next year's schema."""

import json

import omnigraph as og
from omnigraph.catalog.build import build_declared
from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.migrate.plan import plan_migration
from omnigraph.catalog.migrate.render import plan_lines
from omnigraph.engine.source_files import read_source
from omnigraph.plan.compile import QueryCompiler
from omnigraph.plan.describe import describe_plan
from omnigraph.plan.stored import catalogue_entry

graph = og.open("workshop.omni", branch="review/newcomers")
count_makers = "query q() { match { $m: Maker } return { count($m) as makers } }"
for then in (graph.at(1), graph.at("main"), graph.at("review/newcomers")):
    [counted] = then.query(count_makers)
    print(f"version {then.version} of {then.branch}: {counted['makers']} makers")
print()

catalog = compile_schema(read_source("schema.pg"))
compiler = QueryCompiler(catalog)
queries = read_source("queries.gq")

for name in ("taught_by", "like_this", "lend"):
    print(describe_plan(compiler.compile(queries, name).plan))
    print()

print(json.dumps(catalogue_entry(compiler.compile(queries, "like_this")), indent=2))
print()

next_schema = build_declared(read_source("next_schema.pg"))
print("\n".join(plan_lines(plan_migration(catalog.ir, next_schema))))
