import sys

import omnigraph as og

with og.open(sys.argv[1]) as graph:
    for commit in reversed(graph.log()):
        then = graph.at(commit.id)
        found = then.query("queries.gq", {"slug": "article-41"}, name="article")
        shown = found[0]["title"] if found else "(not loaded yet)"
        print(f"{commit.number}  {commit.actor or '-':<5} {then.counts['Article']:>6}  {shown}")
