import json
import sys
from pathlib import Path

import omnigraph as og

question = json.loads(Path("question.json").read_text())
archive = og.connect(sys.argv[1], token="rita-token", graph="archive")
print(archive.query("queries.gq", question, name="search"))
try:
    archive.mutate("queries.gq", {"slug": "article-41", "title": "Mine"}, name="retitle")
except og.errors.PolicyError as refused:
    print(f"{type(refused).__name__}: {refused}")
