"""Uses every public call with the types it declares; mypy checks this file strictly, a test runs it."""

from __future__ import annotations

import io
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og


def use_graph(graph: og.GraphProtocol) -> None:
    """Everything a graph offers, embedded or remote."""
    location: str = graph.uri
    bound: tuple[str, str | None, bool, bool] = (
        graph.branch,
        graph.actor,
        graph.read_only,
        graph.closed,
    )
    assert location
    assert bound == ("main", None, False, False)

    # reading
    token, budget = og.CancelToken(), og.QueryBudget(max_rows=1000, timeout_s=60)
    rows: og.Result = graph.query(
        Path("team.gq"),
        {"name": "Ada"},
        name="friends_of",
        branch="main",
        view=og.ReadView.ALL,
        budget=budget,
        cancel=token,
        exact=True,
    )
    first: dict[str, Any] = rows[0]
    column: pa.ChunkedArray = rows["friend"]
    assert (first, column.to_pylist(), len(rows)) == ({"friend": "Bo"}, ["Bo"], 1)
    assert pa.table(rows) == rows.to_arrow()
    assert [row["friend"] for row in rows] == ["Bo"]
    plan: og.Explanation = graph.explain(
        "team.gq", {"name": "Ada"}, name="friends_of", analyze=True
    )
    assert plan.steps
    found: dict[str, Any] | None = graph.get("Person", "ada@x.org", at="main")
    assert found is not None
    batches: pa.RecordBatchReader = graph.scan(
        "Person", columns=["name"], where="name = $n", params={"n": "Bo"}, budget=budget
    )
    assert batches.read_all().num_rows == 1
    then: og.GraphAtProtocol = graph.at("main")
    use_state(then)

    # changing
    changed: og.MutationResult = graph.mutate(
        "team.gq",
        {"email": "cy@x.org", "name": "Cy"},
        name="add_person",
        branch="main",
        message="a person",
        expected_head=graph.head(),
        idempotency_key="add-cy",
    )
    receipt: og.Receipt = changed.receipt
    assert receipt.commit_id == changed.commit_id
    loaded: og.LoadResult = graph.load(
        {"Note": [{"slug": "n2", "text": "Fixed"}]},
        "merge",
        branch="june",
        create_from="main",
        load_id="june-1",
        strict=True,
        max_errors=10,
        message="a note",
        engine="inline",
    )
    assert loaded.branch_created
    graph.insert("Wrote", [{"from": "cy@x.org", "to": "n1"}], message="by Cy", strict=True)
    graph.upsert("Person", pa.table({"email": ["cy@x.org"], "name": ["Cyrus"]}), engine="inline")

    # branches
    names: list[str] = list(graph.branches)
    assert (names, "june" in graph.branches, len(graph.branches)) == (["main", "june"], True, 2)
    june = graph.checkout("june")
    assert june.branch == "june"
    merged: og.MergeResult = graph.merge(
        "june", "main", strategy="ours", granularity="property", dry_run=True
    )
    assert merged.dry_run
    graph.merge(june.head(), message="the note", engine="inline", delete_source=False)
    undone: og.AppliedCommit = graph.revert(graph.head(), branch="main", message="not yet")
    assert undone.commit_id != undone.source_commit_id
    picked: og.AppliedCommit = graph.cherry_pick(loaded, dry_run=False)
    assert picked.receipt.counts
    graph.branches.create("scratch", source="main~1").close()
    graph.branches.reset("scratch", "main", message="catch up")
    graph.branches.delete("scratch")

    # history
    head: og.Commit = graph.head()
    log: list[og.Commit] = graph.log("main", limit=2, since=datetime(2020, 1, 1, tzinfo=UTC))
    assert log[0] == head == graph.commit(head.short_id)
    diff: og.Diff = graph.diff("main~1", "main", types=["Note"], kinds=["node"], ops=["insert"])
    assert diff.stats()["types_affected"] == ["Note"]
    cursor: str = graph.cursor()
    told: list[og.CommitChanges] = list(graph.changes("main~1", types=["Note"]))
    assert told[-1].cursor == cursor
    life: list[og.EntityChange] = list(graph.history("Note", "n2"))
    assert life[-1].op.value == "insert"
    tag: og.Tag = graph.tags.create("v1", head)
    assert graph.tags["v1"] == tag
    assert graph.tags.all() == [tag]
    assert list(graph.tags) == ["v1"]
    graph.tags.delete("v1")

    # schema
    catalog: og.Catalog = graph.schema.catalog
    assert "Person" in catalog.nodes
    assert graph.schema.diagram().startswith("classDiagram")
    migration: og.MigrationPlan = graph.schema.plan(graph.schema.source)
    assert migration.steps == ()
    graph.branches.delete("june")
    wider = graph.schema.source + "\nnode City { name: String @key }\n"
    applied: og.SchemaApplyResult = graph.schema.apply(wider, queries=["team.gq"])
    assert applied.applied

    # data out
    assert graph.export("rows.jsonl", format="jsonl", types=["Person"], engine="inline") == 3
    with io.BytesIO() as stream:
        assert graph.export(stream, at="main~1") > 3
    exported: dict[str, pa.RecordBatch] = dict(graph.export_batches(types=["Note"]))
    assert list(exported) == ["Note"]
    blob: og.Blob = graph.blobs.open("Person", "ada@x.org", "photo")
    assert blob.read() == graph.blobs.read("Person", "ada@x.org", "photo", offset=0, length=10)

    # maintenance
    status: og.GraphStatus = graph.maintenance.status()
    assert status.tables


def use_embedded_graph(graph: og.GraphProtocol) -> None:
    """What only a graph opened from its storage offers."""
    embedded: og.EmbedResult = graph.embed(dry_run=True)
    assert embedded.properties == ()
    ranks: og.Analysis = graph.analyze("pagerank", {"damping": 0.9}, edges=["Knows"], top=1)
    assert (
        graph.at("main").analyze("pagerank", {"damping": 0.9}, edges=["Knows"], top=1) is not None
    )
    assert (len(ranks), ranks.receipt) == (1, None)
    optimized: og.OptimizeReport = graph.maintenance.optimize()
    cleaned: og.CleanupReport = graph.maintenance.cleanup(
        keep_versions=100, older_than=timedelta(days=1), dry_run=True
    )
    repaired: og.RepairReport = graph.maintenance.repair()
    indexed: og.IndexReport = graph.maintenance.ensure_indexes()
    assert optimized.tables
    assert cleaned.dry_run
    assert repaired.tables is not None
    assert indexed.tables is not None
    graph.maintenance.recover()
    audits: list[og.RecordedAudit] = graph.maintenance.recoveries()
    graph.maintenance.wait()
    verified: og.VerifyReport = graph.maintenance.verify(["main"])
    assert verified.ok
    assert audits == []
    assert graph.as_actor("bob").actor == "bob"


def use_state(state: og.GraphAtProtocol) -> None:
    """Everything a graph at one commit offers."""
    assert (state.branch, state.number, state.counts["Person"]) == ("main", 2, 2)
    assert state.commit_id
    assert state.catalog.nodes
    assert state.to_json()["branch"] == "main"
    assert len(state.query("team.gq", {"name": "Ada"}, name="friends_of")) == 1
    assert state.explain("team.gq", name="friends_of").steps
    assert state.get("Note", "n1") is not None
    assert state.scan("Note").read_all().num_rows == 1
    assert state.export("then.jsonl", types=["Note"]) == 1
    assert [name for name, _ in state.export_batches(types=["Note"])] == ["Note"]
    assert state.blobs.open("Person", "ada@x.org", "photo").size == 10
    assert state.blobs.read("Person", "ada@x.org", "photo", length=1) == b"a"


def use_server(url: str) -> None:
    """What connecting to a server offers."""
    with og.connect(url, token=None, graph=None, branch="main", timeout=60.0) as graph:
        again: og.GraphProtocol = pickle.loads(pickle.dumps(graph))
        assert (again.uri, again.branch) == (graph.uri, "main")
        again.close()


def use_package(folder: Path) -> None:
    """What the package offers beside graphs that are open."""
    with og.init(folder / "books.omni", schema="node Book { title: String @key }") as books:
        ref: og.Ref = books.upsert("Book", [{"title": "Emma"}])
        assert books.at(ref).counts == {"Book": 1}
    assert books.closed
    with og.open(folder / "books.omni", branch="main", read_only=True, actor="ada") as books:
        again: og.Graph = pickle.loads(pickle.dumps(books))
        assert (again.actor, again.read_only) == ("ada", True)
        try:
            books.insert("Book", [{"title": "Persuasion"}])
        except og.errors.ReadOnlyHandle as error:
            refused: og.OmnigraphError = error
            assert refused.code == "OG-I-007"
    assert og.Spark(master="local[2]", conf={"spark.ui.enabled": "false"}).master == "local[2]"
    assert og.__version__
