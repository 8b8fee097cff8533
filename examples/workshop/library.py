"""The workshop from Python: query it now and then, work on a branch, plan next year's schema."""

from pathlib import Path

import omnigraph as og

with og.open("workshop.omni", actor="ada") as graph:
    print(graph)
    print(graph.query("queries.gq", {"who": "ada"}, name="taught_by"))
    print()

    for ref in (1, "main~1", "main"):
        then = graph.at(ref)
        print(f"commit {then.number} of {then.branch}: {then.counts['Maker']} makers")
    print()

    trial = graph.branches.create("trial", source="main~1")
    trial.upsert("Maker", [{"handle": "ida", "level": "novice"}], message="a trial")
    print(graph.diff("main~1", "trial"))
    print(graph.merge("trial", dry_run=True))
    graph.branches.delete("trial")
    print()

    print(graph.schema.plan(Path("next_schema.pg")))
