"""The same command lines for a local graph and for a server: equal documents, lines and exit codes.

Every story runs on both, one command after the other, so that both graphs stay equal whatever the order of
the stories is. A story removes the branches that it creates.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\b\d{16}\b")
CURSOR = re.compile(r"\bc1\.\d+\.<id>|\b[A-Za-z0-9_-]{60,}\b")
IDS = {"load_id", "next_cursor", "cursor", "next_page_token", "resume_cursor", "etag"}
TIMES = {"created_at", "authored_at", "cached_bytes", "total_ms", "ms", "seconds"}

BY_SLUG = ("query", "@", "--query", "lib.gq", "--name", "by_slug", "--params", '{"slug": "cy"}')
ADD = ("mutate", "@", "--query", "lib.gq", "--name", "add_author", "--params")
SET = ("mutate", "@", "--query", "lib.gq", "--name", "set_born", "--params")
AT = ("--uri", "@")

Words = tuple[str, ...]

STORIES: dict[str, list[Words]] = {
    "query": [
        (*BY_SLUG, "--json"),
        *((*BY_SLUG, "--format", name) for name in ("table", "kv", "csv", "jsonl", "json")),
        ("query", "@", "-e", "query q() { match { $a: Author } return { $a } }", "--json"),
        ("query", "@", "-e", "query q() { match { $a: Author } return { count($a) as n } }"),
        ("query", "@", "-e", "query q() { match { $a: Book } return { $a.isbn } }", "--exact"),
        (*BY_SLUG, "--snapshot", "main~1"),
        (*BY_SLUG, "--set", "ann_nprobes=4"),
    ],
    "query errors": [
        ("query", "@", "--query", "lib.gq"),
        ("query", "@", "--query", "lib.gq", "--name", "nope"),
        ("query", "@", "--query", "lib.gq", "--name", "by_slug"),
        ("query", "@", "--query", "lib.gq", "--name", "by_slug", "--params", '{"slog": "x"}'),
        ("query", "@", "--query", "lib.gq", "--name", "add_author", "--params", "{}"),
        ("query", "@", "--query", "gone.gq"),
        ("query", "@", "-e", ""),
        ("query", "@", "-e", "query q() { match { $a: Nope } return { $a } }"),
        (*BY_SLUG, "--branch", "nope"),
        (*BY_SLUG, "--snapshot", "nope"),
        (*BY_SLUG, "--set", "ann_nprobes=-1"),
        (*BY_SLUG, "--set", "nope=1"),
        (*BY_SLUG, "--params-file", "x", "--json"),
    ],
    "explain": [
        ("explain", *BY_SLUG[1:]),
        ("explain", *BY_SLUG[1:], "--json"),
        ("query", *BY_SLUG[1:], "--explain"),
    ],
    "mutate": [
        ("branch", "create", "m", *AT, "--json"),
        (*ADD, '{"slug": "dee", "born": 1990}', "--branch", "m", "--json"),
        (*ADD, '{"slug": "eve", "born": 1991}', "--branch", "m", "-m", "from a form"),
        (*SET, '{"slug": "nobody", "born": 1}', "--branch", "m", "--json"),
        (*ADD, '{"slug": "dee", "born": "x"}', "--branch", "m"),
        (*ADD, '{"slug": "fay", "born": 1}', "--branch", "m", "--expect-head", "A" * 26),
        (*SET, '{"slug": "dee", "born": 5}', "--branch", "m", "--idempotency-key", "k1"),
        (*SET, '{"slug": "dee", "born": 5}', "--branch", "m", "--idempotency-key", "k1", "--json"),
        ("mutate", "@", "--query", "lib.gq", "--name", "by_slug", "--params", '{"slug": "ada"}'),
        ("log", "@", "--branch", "m"),
        ("changes", "@", "--branch", "m", "--rows", "--limit", "3", "--json"),
        ("branch", "delete", "m", *AT, "--yes"),
    ],
    "branches": [
        ("branch", "create", "feature", *AT),
        ("branch", "create", "feature", *AT),
        ("branch", "create", "a/b", *AT, "--from", "feature", "--json"),
        ("branch", "list", *AT),
        ("branch", "list", *AT, "--json"),
        (*SET, '{"slug": "bob", "born": 1}', "--branch", "feature"),
        ("diff", "main", "feature", *AT),
        ("diff", "main", "feature", *AT, "--rows", "--json"),
        ("diff", "main", "feature", *AT, "--stat"),
        ("diff", "main", "feature", *AT, "--stat", "--json"),
        ("diff", "main", "nope", *AT),
        ("branch", "merge", "feature", *AT, "--into", "a/b", "--json"),
        ("branch", "merge", "feature", *AT, "--into", "a/b"),
        ("branch", "merge", "a/b", *AT, "--into", "a/b"),
        ("branch", "delete", "feature", *AT, "--yes", "--json"),
        ("branch", "delete", "a/b", *AT, "--yes"),
        ("branch", "delete", "nope", *AT, "--yes"),
        ("branch", "delete", "main", *AT, "--yes"),
    ],
    "merges": [
        ("branch", "create", "left", *AT),
        ("branch", "create", "right", *AT),
        (*SET, '{"slug": "ada", "born": 1}', "--branch", "left"),
        (*SET, '{"slug": "ada", "born": 2}', "--branch", "right"),
        ("merge", "left", *AT, "--into", "right"),
        ("merge", "left", *AT, "--into", "right", "--dry-run"),
        ("merge", "left", *AT, "--into", "right", "--dry-run", "--strategy", "ours", "--json"),
        ("merge", "left", *AT, "--into", "right", "--conflicts", "conflicts.json"),
        ("merge", "left", *AT, "--into", "right", "--strategy", "theirs", "--delete-branch"),
        ("log", "@", "--branch", "right", "--graph", "--oneline"),
        ("branch", "delete", "right", *AT, "--yes"),
    ],
    "load": [
        ("load", "@", "--mode", "merge", "--data", "new.jsonl", "--branch", "l", "--json"),
        ("load", "@", "--mode", "merge", "--data", "new.jsonl", "--branch", "l", "--from", "main", "--json"),
        ("load", "@", "--mode", "merge", "--data", "new.jsonl", "--branch", "l"),
        ("load", "@", "--mode", "append", "--data", "new.jsonl", "--branch", "l"),
        ("load", "@", "--mode", "overwrite", "--data", "new.jsonl", "--branch", "l", "--yes", "--cascade"),
        ("load", "@", "--mode", "merge", "--data", "odd.jsonl", "--branch", "l", "--strict"),
        ("load", "@", "--mode", "merge", "--data", "odd.jsonl", "--branch", "l", "--json"),
        ("load", "@", "--mode", "merge", "--data", "bad.jsonl", "--branch", "l"),
        ("load", "@", "--mode", "merge", "--data", "gone.jsonl", "--branch", "l"),
        ("load", "@", "--mode", "merge", "--data", "new.jsonl.gz", "--branch", "l", "--load-id", "x1"),
        ("load", "@", "--mode", "merge", "--data", "new.jsonl.gz", "--branch", "l", "--load-id", "x1"),
        ("ingest", "@", "--data", "new.jsonl", "--branch", "l2", "--json"),
        ("ingest", "@", "--data", "new.jsonl", "--branch", "l2"),
        ("branch", "delete", "l", *AT, "--yes"),
        ("branch", "delete", "l2", *AT, "--yes"),
    ],
    "state": [
        ("snapshot", "@", "--json"),
        ("snapshot", "@"),
        ("snapshot", "@", "--branch", "nope"),
        ("status", "@", "--json"),
        ("status", "@"),
        ("schema", "show", "@"),
        ("schema", "show", "@", "--json"),
        ("export", "@"),
        ("export", "@", "--type", "Author"),
        ("export", "@", "--table", "edge:Cites"),
        ("export", "@", "--type", "Nope"),
        ("export", "@", "--branch", "nope"),
    ],
    "history": [
        ("commit", "list", "@", "--json"),
        ("commit", "list", "@", "--order", "newest", "--limit", "1"),
        ("commit", "list", "@", "--filter", "actor=nobody", "--json"),
        ("commit", "list", "@", "--branch", "nope"),
        ("commit", "show", "main", *AT, "--json"),
        ("commit", "show", "main~1", *AT),
        ("commit", "show", "nope", *AT),
        ("log", "@", "--json"),
        ("changes", "@"),
        ("changes", "@", "--since", "nope"),
        ("changes", "poll", "@", "--start", "beginning", "--limit", "2", "--json"),
        ("changes", "poll", "@", "--start", "beginning", "--type", "Author"),
        ("changes", "poll", "@", "--cursor", "nope"),
        ("changes", "poll", "@", "--limit", "9000"),
        ("changes", "poll", "@", "--start", "now", "--cursor", "x"),
        ("changes", "baseline", "@", "--out", "base.jsonl"),
        ("commit", "changes", "main~1", *AT),
        ("commit", "changes", "main", *AT, "--json"),
    ],
    "schema": [
        ("schema", "apply", "@", "--schema", "same.pg"),
        ("schema", "apply", "@", "--schema", "more.pg", "--json"),
        ("schema", "apply", "@", "--schema", "same.pg"),
        ("schema", "apply", "@", "--schema", "wrong.pg"),
        ("schema", "apply", "@", "--schema", "gone.pg"),
    ],
}  # fmt: skip


@pytest.fixture
def files(here: Path) -> Path:
    import gzip

    from tests.server.serving import SCHEMA

    new = '{"type":"Author","data":{"slug":"new","born":1}}\n'
    (here / "new.jsonl").write_text(new)
    (here / "new.jsonl.gz").write_bytes(gzip.compress(new.encode(), mtime=0))
    (here / "odd.jsonl").write_text('{"type":"Author","data":{"slug":"odd","shoe":1}}\n')
    (here / "bad.jsonl").write_text(new + '{"type":"Author","data":{"slug":"bad","born":"x"}}\n')
    (here / "same.pg").write_text(SCHEMA)
    (here / "more.pg").write_text(SCHEMA.replace("born: I32?", "born: I32?\n    nick: String?"))
    (here / "wrong.pg").write_text(SCHEMA.replace("born: I32?", "born: String?"))
    return here


def plain(value: Any, key: str = "") -> Any:
    """A document without ids, times and addresses."""
    if isinstance(value, dict):
        return {name: plain(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if value is not None and (key in TIMES or key in IDS):
        return f"<{key}>"
    return text_of(value) if isinstance(value, str) else value


def text_of(text: str, *addresses: str) -> str:
    for address in addresses:
        text = text.replace(address, "<uri>")
    text = TIME.sub("<time>", ULID.sub("<id>", text))
    return re.sub(r"(?m)^cursor .*|^page token .*", "<cursor>", text)


def failures(err: str) -> list[str]:
    """The lines of standard error that say what went wrong, and warnings."""
    lines = [line for line in err.splitlines() if not line.startswith(("omnigraph ", "{"))]
    return [ULID.sub("<id>", line) for line in lines if "deprecated" not in line]


@pytest.mark.acceptance("U-063")
@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_here_and_on_a_server(cli, pair, files, name):
    served_uri = str(Path(pair.local).with_name("served"))
    for words in STORIES[name]:
        here = cli(*(pair.local if word == "@" else word for word in words))
        there = cli(*(pair.url if word == "@" else word for word in words))
        shown = " ".join(words)
        assert there.code == here.code, f"{shown}: {here.err} / {there.err}"
        addresses = (pair.local, served_uri, pair.url)
        is_json = "--json" in words or "json" in words
        if here.code == 0 and is_json:
            documents = [json.loads(outcome.out) for outcome in (here, there)]
            for document in documents:
                document.pop("uri", None)
            assert plain(documents[1]) == plain(documents[0]), shown
        elif here.code == 0 or here.out:
            assert text_of(there.out, *addresses) == text_of(here.out, *addresses), shown
        said = [text_of("\n".join(failures(one.err)), *addresses) for one in (here, there)]
        if not is_json and "--data" not in words and "-e" not in words:
            assert said[1] == said[0], shown


@pytest.mark.acceptance("U-063", partly="rows only")
def test_rows_of_every_kind_are_the_same(cli, pair, here):
    values = "$a.slug as s, $a.born as n, now() as t"
    asked = ("-e", f"query q() {{ match {{ $a: Author }} return {{ {values} }} }}", "--json")
    documents = [json.loads(cli("query", graph, *asked).out) for graph in (pair.local, pair.url)]
    for rows in (document["rows"] for document in documents):
        assert all(row["t"].endswith("Z") for row in rows)
        assert {"s", "n", "t"} == set(rows[0])
    assert documents[0]["columns"] == documents[1]["columns"]
