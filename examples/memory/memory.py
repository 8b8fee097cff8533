"""A company's memory: documents with embeddings, hybrid search, a decision reviewed on a branch.

Run it in this folder: `python memory.py`. It makes `memory.omni`.
"""

import os
from datetime import date

from embedder import serving

import omnigraph as og

with serving() as address:
    os.environ |= {
        "OMNIGRAPH_EMBED_PROVIDER": "openai-compatible",
        "OMNIGRAPH_EMBED_BASE_URL": address,
        "OMNIGRAPH_EMBED_MODEL": "word-stems",
    }
    with og.init("memory.omni", schema="schema.pg") as graph:
        graph.load("data.jsonl", mode="merge", message="what we know in January")

        print("What do we know about leaking seals in cold water?")
        print(graph.query("queries.gq", {"about": "leaking seals in cold water"}, name="recall"))
        print()

        print("The same, from the maintenance team:")
        asked = {"about": "leaking seals in cold water", "team": "maintenance"}
        print(graph.query("queries.gq", asked, name="recall_of_team"))
        print()

        print("Who knows pumps?")
        print(graph.query("queries.gq", {"topic": "pumps"}, name="experts"))
        print()

        draft = graph.branches.create("review/silicone")
        draft.mutate(
            "queries.gq",
            {
                "slug": "d3",
                "what": "Use silicone seals everywhere",
                "decided": date(2026, 2, 1),
                "source": "supplier-review",
                "replaces": "d2",
            },
            name="decide",
            message="silicone costs the same now",
        )
        print("The decision under review:")
        print(graph.diff("main", "review/silicone"))
        graph.merge("review/silicone", delete_source=True)
        print()

        print("In force now, and before the merge:")
        print(graph.query("queries.gq", name="in_force"))
        print(graph.at("main~1").query("queries.gq", name="in_force"))
