"""The JSON documents of the command line: their keys, the order of keys and the plain values in them.

One story is told on one graph. Ids, times and sizes differ from run to run, and texts for people may
be worded better one day; both are masked.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph.cli.main import main
from omnigraph.errors import MergeConflict
from tests.formats.golden import golden

SCHEMA: Final = """\
node Author {
    slug: String @key
    born: I32?
    bio: String?
    about: Vector(4)? @embed(bio)
    photo: Blob?
}

node Book {
    isbn: String @key
    title: String @index
}

edge Wrote: Author -> Book {
    year: I32?
}
"""
LATER: Final = SCHEMA.replace("born: I32?", "born: I32?\n    died: I32?").replace(
    "edge Wrote: Author -> Book", 'edge Authored: Author -> Book @rename_from("Wrote")'
)
ROWS: Final = """\
{"type": "Author", "data": {"slug": "ada", "born": 1815, "bio": "numbers", "photo": "base64:aGk="}}
{"type": "Author", "data": {"slug": "bob", "born": 1970}}
{"type": "Book", "data": {"isbn": "b1", "title": "Notes"}}
{"edge": "Wrote", "from": "ada", "to": "b1", "data": {"year": 1843}}
"""
BAD_ROWS: Final = """\
{"type": "Author", "data": {"slug": "cy", "born": "late"}}
{"type": "Author", "data": {"slug": "dan", "colour": "red"}}
"""
QUERIES: Final = """\
query authors() { match { $a: Author } return { $a.slug, $a.born } order { $a.slug asc } }
query born($slug: String, $born: I32) { update Author set { born: $born } where slug = $slug }
query add($slug: String) { insert Author { slug: $slug } }
query drop_author($slug: String) { delete Author where slug = $slug }
"""
SEED: Final = '{"type": "Author", "data": {"slug": "ada"}}\n'
SEED_SPEC: Final = """
sources: {raw_seed: seed.jsonl}
embeddings: {dimension: 2, types: {Author: {target: vec, fields: [slug]}}}
"""

STORY: Final[list[tuple[str, int, str]]] = [
    ("load", 0, "load --mode append --data rows.jsonl --load-id job-1 -m first G --json"),
    ("load_repeated", 0, "load --mode append --data rows.jsonl --load-id job-1 G --json"),
    (
        "load_quarantine",
        0,
        "load --mode merge --data bad.jsonl --load-id j2 --quarantine Q G --json",
    ),
    ("query", 0, "query --query q.gq --name authors G --json"),
    ("explain", 0, "explain --query q.gq --name authors G --json"),
    ("branch_create", 0, "branch create work --uri G --json"),
    ("branch_list", 0, "branch list --uri G --json"),
    ("mutate", 0, """mutate --query q.gq --name born --params {"slug":"ada","born":1} G --json"""),
    (
        "mutate_on_branch",
        0,
        """mutate --query q.gq --name born --branch work --params {"slug":"ada","born":2} G --json""",
    ),
    (
        "mutate_key",
        0,
        """mutate --query q.gq --name add --idempotency-key k-1 --params {"slug":"eve"} G --json""",
    ),
    (
        "mutate_key_repeated",
        0,
        """mutate --query q.gq --name add --idempotency-key k-1 --params {"slug":"eve"} G --json""",
    ),
    ("diff", 0, "diff main work --uri G --rows --json"),
    ("diff_stat", 0, "diff main work --uri G --stat --json"),
    ("merge_conflicts", 1, "merge work --uri G --conflicts conflicts.json --json"),
    ("merge_dry_run", 0, "merge work --uri G --dry-run --strategy theirs --json"),
    ("merge", 0, "merge work --uri G --strategy theirs --json"),
    ("log", 0, "log G --json"),
    ("commit_list", 0, "commit list G --json"),
    ("commit_show", 0, "commit show main --uri G --json"),
    ("changes", 0, "changes G --rows --json"),
    ("revert", 0, "revert main --uri G --json"),
    ("branch_reset", 0, "branch reset work main --uri G --json"),
    ("branch_delete", 0, "branch delete work --uri G --json"),
    ("tag_create", 0, "tag create v1 main --uri G --json"),
    ("tag_list", 0, "tag list G --json"),
    ("tag_delete", 0, "tag delete v1 --uri G --json"),
    ("pin_create", 0, "pin create p1 --uri G --json"),
    ("pin_list", 0, "pin list G --json"),
    ("pin_delete", 0, "pin delete p1 --uri G --json"),
    ("embed_dry_run", 0, "embed G --dry-run --json"),
    ("embed", 0, "embed G --json"),
    ("embed_file", 0, "embed --seed seed.yaml --json"),
    ("ensure_indices", 0, "ensure-indices G --json"),
    ("optimize", 0, "optimize G --json"),
    ("cleanup", 0, "cleanup --keep 10 --dry-run G --json"),
    ("repair", 0, "repair G --json"),
    ("verify", 0, "verify G --json"),
    ("status", 0, "status G --json"),
    ("snapshot", 0, "snapshot G --json"),
    ("schema_show", 0, "schema show G --json"),
    ("schema_plan", 0, "schema plan --schema later.pg G --json"),
    ("schema_apply", 0, "schema apply --schema later.pg G --json"),
    ("blob_stat", 0, "blob stat Author ada photo --uri G --json"),
    ("lint", 0, "lint --query q.gq --schema s.pg --json"),
    ("lint_wrong", 1, "lint --query wrong.gq --schema s.pg --json"),
    ("errors", 0, "errors OG-D-001 --json"),
]

_ULID: Final = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_TEXT_KEYS: Final = {"message", "reason", "explanation", "text", "title", "meaning", "hint"}
_SIZE: Final = re.compile(r"bytes|size|seconds|took|version$|fragments|created_at|_ms$|_micros$")


def masked(value: Any, key: str = "") -> Any:
    """The value without what differs between runs."""
    if isinstance(value, Mapping):
        return {k: masked(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [masked(item, key) for item in value]
    if isinstance(value, str):
        if key in _TEXT_KEYS and value:
            return "<text>"
        return _TIME.sub("<time>", _ULID.sub("<ulid>", value))
    if isinstance(value, int | float) and not isinstance(value, bool) and _SIZE.search(key):
        return "<number>"
    return value


def run(command: str) -> tuple[int, str]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = main(command.split(" "))
    return code, out.getvalue()


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What each command of the story ended with and printed, and the files it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("story")
        patch.chdir(folder)
        patch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        files = {
            "s.pg": SCHEMA,
            "later.pg": LATER,
            "rows.jsonl": ROWS,
            "bad.jsonl": BAD_ROWS,
            "q.gq": QUERIES,
            "wrong.gq": "query q() { match { $a: Nobody } return { $a.slug } }",
            "seed.jsonl": SEED,
            "seed.yaml": SEED_SPEC,
        }
        for name, text in files.items():
            Path(name).write_text(text)
        assert run("init --schema s.pg G")[0] == 0
        found = {name: run(command) for name, _, command in STORY}
        for path in (Path("conflicts.json"), *Path("Q").rglob("*.json*")):
            found[path.name] = (0, path.read_text())
        return found


def pretty(text: str) -> str:
    return json.dumps(masked(json.loads(text)), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(("name", "code"), [(name, code) for name, code, _ in STORY])
def test_a_document_has_its_keys_in_order(documents, name, code):
    ended, out = documents[name]
    assert ended == code, out
    if name != "merge_conflicts":
        golden(f"documents/{name}.json", pretty(out))


def test_bad_records_are_kept_with_their_problems(documents):
    lines = documents["bad.jsonl"][1].splitlines()
    golden("quarantine/bad.json", "".join(pretty(line) for line in lines))
    golden("quarantine/report.json", pretty(documents["report.json"][1]))


def test_conflicts_are_written_for_a_person_to_resolve(documents):
    golden("conflicts.json", pretty(documents["conflicts.json"][1]))


def test_a_conflict_about_a_row_shows_its_values():
    about_row = MergeConflict("node:A", "a", "divergent_update", "both", {"x": 1}, {"x": 2}, None)
    about_rule = MergeConflict("node:A", None, "unique_violation", "taken")
    found = [about_row.to_json(), about_rule.to_json()]
    golden("merge_conflicts.json", json.dumps(found, indent=2) + "\n")
