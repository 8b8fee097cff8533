import json
import sys
from pathlib import Path

import omnigraph as og

question = json.loads(Path("question.json").read_text())
with og.open(sys.argv[1]) as graph:
    print(graph.query("queries.gq", question, name="search"))
