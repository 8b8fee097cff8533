"""The graph that the examples of the Python API are about."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import omnigraph as og

SCHEMA = """\
node Person {
    email: String @key
    name: String
    born: Date?
    photo: Blob?
}

node Note {
    slug: String @key
    text: String @index
}

edge Wrote: Person -> Note

edge Knows: Person -> Person {
    since: Date?
    @unique(src, dst)
}
"""

QUERIES = """\
query friends_of($name: String) {
    match {
        $p: Person { name: $name }
        $p knows $f
    }
    return { $f.name as friend }
}

query add_person($email: String, $name: String) {
    insert Person { email: $email, name: $name }
}
"""

ROWS = {
    "Person": [
        {"email": "ada@x.org", "name": "Ada", "born": date(1815, 12, 10), "photo": b"a portrait"},
        {"email": "bo@x.org", "name": "Bo"},
    ],
    "Note": [{"slug": "n1", "text": "Pump 2 fails in cold water"}],
    "Wrote": [{"from": "ada@x.org", "to": "n1"}],
    "Knows": [{"from": "ada@x.org", "to": "bo@x.org"}],
}


def make_team(folder: Path) -> None:
    """Create the graph `team.omni` and the files `team.pg` and `team.gq` in a folder."""
    (folder / "team.pg").write_text(SCHEMA)
    (folder / "team.gq").write_text(QUERIES)
    with og.init(folder / "team.omni", schema=folder / "team.pg") as graph:
        graph.load(ROWS, "append", message="first people")


def copy_team(made: Path, folder: Path) -> Path:
    """Copy them to another folder. Returns where the graph is now."""
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder / "team.omni"
