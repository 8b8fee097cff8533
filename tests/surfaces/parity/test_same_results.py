"""A remote graph returns what an embedded one returns: the same classes with the same values."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import omnigraph as og
from tests.server.serving import serving

SCHEMA = """\
node Thing {
    slug: String @key
    flag: Bool?
    small: I32?
    large: I64?
    unsigned: U64?
    single: F32?
    double: F64?
    day: Date?
    moment: DateTime?
    words: [String]?
    days: [Date]?
    vec: Vector(3)?
    state: enum(open, closed)?
    file: Blob?
}
edge Near: Thing -> Thing { since: Date? }
"""
MOMENT = datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=UTC)
THINGS = [
    {
        "slug": "a",
        "flag": True,
        "small": -7,
        "large": 2**62,
        "unsigned": 2**62,
        "single": 0.1,
        "double": 1e-300,
        "day": date(1815, 12, 10),
        "moment": MOMENT,
        "words": ["x", "ü", ""],
        "days": [date(2000, 1, 1)],
        "vec": [0.5, -1.0, 0.1],
        "state": "open",
        "file": b"\0\xff" * 3000,
    },
    {"slug": "b/ü ?", "single": 1.5},
    {"slug": "c", "moment": datetime(1969, 12, 31, tzinfo=UTC), "words": []},
]
ALL = "query q() { match { $t: Thing } return { $t.slug, $t.single, $t.day, $t.moment, $t.words, $t.vec, $t.state } order { $t.slug asc } }"
NODES = "query q() { match { $t: Thing } return { $t } order { $t.slug asc } }"
BY_TYPE = """query q($d: Date, $m: DateTime, $f: F64, $w: [String], $i: I64, $s: String) {
    match { $t: Thing { day: $d } }
    return { $t.slug, $d as d, $m as m, $f as f, $i as i, $s as s }
}"""
PARAMS = {
    "d": date(1815, 12, 10),
    "m": MOMENT,
    "f": 0.1,
    "w": ("x", "y"),
    "i": 2**53 + 1,
    "s": UUID(int=7),
}


def make(folder: Path) -> Path:
    root = folder / "things.omni"
    with og.init(root, schema=SCHEMA, actor="ada") as graph:
        graph.insert("Thing", THINGS, message="first things")
        graph.insert("Near", [{"from": "a", "to": "c", "since": date(2020, 1, 2)}])
        june = graph.branches.create("june")
        june.upsert("Thing", [{"slug": "b/ü ?", "state": "closed"}, {"slug": "d"}])
        june.mutate('query q() { delete Thing where slug = "c" }')
        graph.tags.create("v1", "main~1")
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("things"))


@pytest.fixture(scope="module")
def pair(made, tmp_path_factory) -> Iterator[tuple[og.GraphProtocol, og.GraphProtocol]]:
    """The same graph, opened and served. Nothing writes to it."""
    with ExitStack() as opened:
        server = opened.enter_context(
            serving(tmp_path_factory.mktemp("server"), made, "--unauthenticated")
        )
        embedded = opened.enter_context(og.open(made, read_only=True))
        yield embedded, opened.enter_context(og.connect(f"http://{server.address}"))


def plain(value: Any) -> Any:
    """A result as values that can be compared, with the classes of everything in it."""
    match value:
        case pa.Table() | pa.RecordBatch() | pa.ChunkedArray():
            return value
        case og.Result():
            kind = (value.types, value.branch, value.snapshot, value.query_name, value.commit_id)
            return value.to_arrow(), kind, value.entities, value.to_dicts(), value.to_json()
        case og.Diff() | og.CommitChanges():
            own = [value.to_json(rows=rows) for rows in (False, True)]
            changes = value.changes
            types = changes.stats()["types_affected"]
            rows = [changes.values(name) for name in types]
            return type(value), own, changes.stats(), changes.to_arrow(), rows, len(changes)
        case og.Explanation():
            return value.query_name, value.looks_up, [step.text for step in value.steps]
        case og.GraphStatus():
            told = value.to_json() | {"uri": None, "cached_bytes": None}
            return told, value.tables, value.recovery, value.advice, value.snapshot.entries
        case list() | tuple():
            return [plain(one) for one in value]
        case _ if isinstance(value, Iterator):
            return [plain(one) for one in value]
    return type(value), value


READS: dict[str, Callable[[og.GraphProtocol], Any]] = {
    "query": lambda g: g.query(ALL),
    "query: nodes": lambda g: g.query(NODES),
    "query: parameters": lambda g: g.query(BY_TYPE, PARAMS),
    "query: branch": lambda g: g.query(ALL, branch="june"),
    "query: at": lambda g: g.query(ALL, at="v1"),
    "query: at a time": lambda g: g.query(ALL, at=g.commit(2).created_at + timedelta(seconds=0.002)),
    "query: at a number": lambda g: g.query(ALL, at=2),
    "query: no rows": lambda g: g.query(ALL, at=1),
    "query: no columns": lambda g: g.query("query q() { match { $t: Thing } return { count($t) as n } }"),
    "explain": lambda g: g.explain(ALL),
    "explain: analyze": lambda g: [step.measured and step.measured.rows for step in g.explain(ALL, analyze=True).steps],
    "get": lambda g: [g.get("Thing", slug) for slug in ("a", "b/ü ?", "c", "nobody")],
    "get: edge": lambda g: g.get("Near", g.scan("Near").read_all()["id"][0].as_py()),
    "get: at": lambda g: g.get("Thing", "a", at=1),
    "scan": lambda g: g.scan("Thing").read_all(),
    "scan: columns": lambda g: g.scan("Thing", columns=["slug", "file"]).read_all(),
    "scan: where": lambda g: g.scan("Thing", where="day = $d", params={"d": THINGS[0]["day"]}).read_all(),
    "scan: empty": lambda g: g.scan("Thing", at=1).read_all(),
    "scan: edges": lambda g: g.scan("Near", branch="june").read_all(),
    "export_batches": lambda g: [(name, pa.Table.from_batches([b])) for name, b in g.export_batches()],
    "export": lambda g: exported(g.export),
    "export: at": lambda g: exported(g.at("v1").export),
    "at": lambda g: [(s := g.at(ref)).number for ref in ("main", "june", "v1", "june~1", 2)] + [s.branch],
    "at: counts": lambda g: [g.at("june").counts, g.at(1).to_json(), g.at("v1").catalog],
    "at: query": lambda g: g.at("june").query(ALL),
    "at: blobs": lambda g: g.at("v1").blobs.read("Thing", "a", "file", offset=1, length=9),
    "blobs": lambda g: [(b := g.blobs.open("Thing", "a", "file")).size, b.uri, b.read(), b.read(6000)],
    "branches": lambda g: [list(g.branches), len(g.branches), "june" in g.branches, "x" in g.branches],
    "tags": lambda g: [list(g.tags), g.tags.all(), g.tags["v1"]],
    "head": lambda g: [g.head(), g.head("june")],
    "log": lambda g: [g.log(), g.log("june"), g.log(reverse=True, limit=2), g.log(limit=1), g.log(limit=0)],
    "log: filters": lambda g: [g.log(actor="ada"), g.log(operation="load"), g.log(since=g.commit(2).id)],
    "log: times": lambda g: [g.log(until=g.commit(2).created_at), g.log(since=MOMENT), g.log(until="2020-01-01")],
    "log: merged": lambda g: g.log("june", merged=True),
    "commit": lambda g: [g.commit(ref) for ref in ("main", "main~1", 2, "v1", g.head().short_id, g.head())],
    "diff": lambda g: g.diff("main", "june"),
    "diff: back": lambda g: g.diff("june", 1),
    "diff: filters": lambda g: g.diff("main", "june", types=["Thing"], kinds=["node"], ops=["insert"]),
    "diff: pages": lambda g: [
        first := g.diff("main", "june").to_json(rows=True, limit=1),
        g.diff("main", "june").to_json(rows=True, limit=1, cursor=first["next_cursor"]),
    ],
    "changes": lambda g: g.changes(branch="june"),
    "changes: after": lambda g: [g.changes(2), g.changes(g.cursor()), g.changes("main~1", ops=["insert"])],
    "changes: cursors": lambda g: [(one.cursor, one.at_head, one.dropped) for one in g.changes()],
    "cursor": lambda g: [g.cursor(), g.cursor("june")],
    "history": lambda g: g.history("Thing", "b/ü ?", branch="june"),
    "history: json": lambda g: [one.to_json() for one in g.history("Thing", "a")],
    "history: none": lambda g: g.history("Thing", "nobody"),
    "schema": lambda g: [g.schema.source, g.schema.catalog, g.schema.diagram(), str(g.schema)],
    "schema: plan": lambda g: g.schema.plan(SCHEMA.replace("flag: Bool?", "flag: I32?\n    more: String?")),
    "status": lambda g: g.maintenance.status("june"),
    "reprs": lambda g: [repr(g.branches), repr(g.tags), repr(g.schema), repr(g.head()), repr(g.query(ALL))],
}  # fmt: skip


def exported(export: Callable[..., int]) -> tuple[int, bytes]:
    out = io.BytesIO()
    return export(out), out.getvalue()


@pytest.mark.parametrize("case", READS)
def test_a_read_returns_the_same(pair, case):
    embedded, remote = (plain(READS[case](graph)) for graph in pair)
    assert remote == embedded


def test_changes_of_several_pages_are_the_same(pair, monkeypatch):
    monkeypatch.setattr("omnigraph.client.history._PAGE_COMMITS", 1)
    monkeypatch.setattr("omnigraph.client.history._PAGE_CHANGES", 1)
    for case in ("changes", "changes: cursors", "diff"):
        embedded, remote = (plain(READS[case](graph)) for graph in pair)
        assert remote == embedded, case


def test_a_budget_ends_a_remote_scan_while_it_is_read(pair):
    reader = pair[1].scan("Thing", budget=og.QueryBudget(max_rows=1))
    with pytest.raises(og.errors.QueryBudgetExceeded) as caught:
        reader.read_all()
    assert caught.value.resource == "rows"


def test_a_budget_and_a_token_end_a_remote_query(pair):
    with pytest.raises(og.errors.QueryBudgetExceeded):
        pair[1].query(ALL, budget=og.QueryBudget(max_rows=1))
    token = og.CancelToken()
    token.cancel()
    with pytest.raises(og.errors.QueryCancelled):
        pair[1].query(ALL, cancel=token)


# -- writes ---------------------------------------------------------------------------------

UPSERTED = {"slug": "e", "moment": MOMENT, "file": b"bytes", "vec": [1.0, 2.0, 3.0]}
LINES = b'{"type":"Thing","data":{"slug":"f"}}\n{"edge":"Near","from":"a","to":"f"}\n'
MUTATION = "query q($s: String, $d: Date) { update Thing set { day: $d } where slug = $s }"
NOTHING = 'query q() { delete Thing where slug = "nobody" }'


def conflicting(graph: og.GraphProtocol) -> og.MergeResult:
    graph.branches.create("july")
    graph.upsert("Thing", [{"slug": "a", "small": 11}], branch="july")
    graph.upsert("Thing", [{"slug": "a", "small": 12}])
    with pytest.raises(og.errors.MergeConflicts) as caught:
        graph.merge("july")
    ours = caught.value.conflicts[0].ours
    assert ours is not None
    assert ours["small"] == 12
    dry = graph.merge("july", dry_run=True)
    assert dry.conflicts == caught.value.conflicts
    taken = {"table_key": "node:Thing", "row_id": "a", "take": "theirs"}
    return graph.merge("july", resolutions=[taken], delete_source=True, message="settled")


def replayed(graph: og.GraphProtocol) -> list[Any]:
    first, again = (
        graph.upsert("Thing", [{"slug": "z"}], message="once", idempotency_key="k-1")
        for _ in range(2)
    )
    assert (again.replayed, again.commit_id) == (True, first.commit_id)
    key = "k-2"
    one = graph.mutate(MUTATION, {"s": "z", "d": date(2000, 1, 1)}, idempotency_key=key)
    two = graph.mutate(MUTATION, {"s": "z", "d": date(2000, 1, 1)}, idempotency_key=key)
    assert two.receipt.replayed
    assert two.commit_id == one.commit_id
    with pytest.raises(og.errors.IdempotencyKeyReused):
        graph.mutate(MUTATION, {"s": "z", "d": date(2001, 1, 1)}, idempotency_key=key)
    return [again, two]


def ended(graph: og.GraphProtocol) -> og.SchemaApplyResult:
    for name in ("june", "new"):
        graph.branches.delete(name)
    return graph.schema.apply(SCHEMA + "node More { n: I32 @key }", message="more")


WRITES: dict[str, Callable[[og.GraphProtocol], Any]] = {
    "mutate": lambda g: g.mutate(MUTATION, {"s": "a", "d": date(1999, 1, 1)}, message="a day"),
    "mutate: nothing": lambda g: g.mutate(NOTHING),
    "insert": lambda g: g.insert("Thing", [UPSERTED]),
    "upsert: arrow": lambda g: g.upsert("Thing", pa.table({"slug": ["a", "e"], "small": [1, 2]})),
    "upsert: unknown property": lambda g: g.upsert("Thing", [{"slug": "a", "x": 1}], strict=False),
    "load: text": lambda g: g.load(LINES, "merge", load_id="l-1", message="lines"),
    "load: stream": lambda g: g.load(io.BytesIO(LINES), "merge"),
    "load: dicts": lambda g: g.load([{"type": "Thing", "data": {"slug": "g"}}], "append"),
    "load: types": lambda g: g.load({"Thing": [UPSERTED], "Near": [{"from": "a", "to": "e"}]}, "merge"),
    "load: new branch": lambda g: g.load(LINES, "merge", branch="new", create_from="main"),
    "cherry_pick": lambda g: g.cherry_pick("june~1"),
    "merge": lambda g: g.merge("june"),
    "merge: conflicts": conflicting,
    "revert": lambda g: g.revert("main", message="undone"),
    "revert: dry run": lambda g: g.revert("main", dry_run=True),
    "reset": lambda g: g.branches.reset("new", "main"),
    "tag": lambda g: g.tags.create("v2", "main"),
    "keys": replayed,
    "load: overwrite": lambda g: g.load({"Thing": [{"slug": "a"}]}, "overwrite", cascade=True),
    "schema": ended,
}  # fmt: skip
"""One story: each write is made on the state that the one before has left."""


def masked(value: Any) -> Any:
    """A result without ids and times, which differ from graph to graph."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: masked(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return type(value), {
            name: None if name.endswith(("_id", "created_at")) and name != "load_id" else found
            for name, found in fields.items()
        }
    if isinstance(value, list | tuple):
        return [masked(one) for one in value]
    return value


def test_writes_return_the_same_and_leave_the_same(tmp_path):
    (tmp_path / "remote").mkdir()
    with ExitStack() as opened:
        embedded = opened.enter_context(og.open(make(tmp_path)))
        served = opened.enter_context(
            serving(tmp_path, make(tmp_path / "remote"), "--unauthenticated")
        )
        remote = opened.enter_context(og.connect(f"http://{served.address}"))
        for case, write in WRITES.items():
            expected, found = (masked(write(graph)) for graph in (embedded, remote))
            assert without_new_ids(found) == without_new_ids(expected), case
            assert left(remote) == left(embedded), case


def without_new_ids(value: Any) -> Any:
    """A load without an id gets a new one."""
    return re.sub(r"'load_id': '[0-9A-Z]{26}'", "", repr(value))


def left(graph: og.GraphProtocol) -> list[Any]:
    rows = [graph.scan(name).read_all().to_pylist() for name in ("Thing", "Near")]
    things = sorted(map(str, rows[0]))
    edges = sorted((row["src"], row["dst"]) for row in rows[1])
    commits = [(one.operation, one.message, one.counts, one.warnings) for one in graph.log()]
    return [things, edges, commits, list(graph.branches), list(graph.tags)]
