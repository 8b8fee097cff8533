"""Every public call that writes asks the policy, and changes nothing if it is denied."""

from __future__ import annotations

import io

import pytest

import omnigraph as og
from omnigraph.errors import PolicyDenied, PolicyError
from tests.surfaces.parity.test_protocol import PAIRS, public

SCHEMA = """\
node Doc {
    slug: String @key
    degree: I64?
    title: String
    vector: Vector(4) @embed("title")
}
"""
ADD = 'query add() { insert Doc { slug: "x", title: "x", vector: [1.0, 0.0, 0.0, 0.0] } }'
LINE = b'{"type":"Doc","data":{"slug":"x","title":"x","vector":[1.0,0.0,0.0,0.0]}}\n'
ROW = {"slug": "x", "title": "x", "vector": [1.0, 0.0, 0.0, 0.0]}

WRITES = {
    "Graph.mutate": lambda graph: graph.mutate(ADD),
    "Graph.load": lambda graph: graph.load(LINE, "merge"),
    "Graph.insert": lambda graph: graph.insert("Doc", [ROW]),
    "Graph.upsert": lambda graph: graph.upsert("Doc", [ROW]),
    "Graph.analyze": lambda graph: graph.analyze("degrees", write={"degree": "degree"}),
    "Graph.embed": lambda graph: graph.embed(),
    "Graph.merge": lambda graph: graph.merge("draft"),
    "Graph.revert": lambda graph: graph.revert(graph.head("main").id),
    "Graph.cherry_pick": lambda graph: graph.cherry_pick(graph.head("draft").id),
    "Branches.create": lambda graph: graph.branches.create("other"),
    "Branches.delete": lambda graph: graph.branches.delete("draft"),
    "Branches.reset": lambda graph: graph.branches.reset("draft", "main"),
    "Tags.create": lambda graph: graph.tags.create("v2"),
    "Tags.delete": lambda graph: graph.tags.delete("v1"),
    "Schema.apply": lambda graph: graph.schema.apply(
        SCHEMA.replace("title: String", "title: String\n    more: I32?", 1)
    ),
    "Maintenance.optimize": lambda graph: graph.maintenance.optimize(),
    "Maintenance.cleanup": lambda graph: graph.maintenance.cleanup(keep_versions=1),
    "Maintenance.repair": lambda graph: graph.maintenance.repair(confirm=True),
    "Maintenance.ensure_indexes": lambda graph: graph.maintenance.ensure_indexes(),
}
"""A call of every method that writes."""

READS = {
    "Graph": "uri branch actor read_only closed close checkout as_actor at query explain get scan export "
    "export_batches branches head log commit diff changes cursor history tags schema blobs maintenance",
    "GraphAt": "branch number commit_id catalog counts to_json query explain get scan blobs analyze export "
    "export_batches",
    "Branches": "__iter__ __len__ __contains__",
    "Tags": "all __iter__ __len__ __contains__ __getitem__",
    "Schema": "source catalog diagram plan",
    "Blobs": "open read",
    "BlobsAt": "open read",
    "Maintenance": "status verify recover recoveries wait",
}
"""Methods that write nothing; `recover` completes writes that were allowed when they began."""


class Denier:
    """Denies everything."""

    def check(self, request):
        raise PolicyDenied(
            "no", request.actor, request.action.value, request.branch, request.target_branch
        )


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    root = tmp_path_factory.mktemp("gate") / "g.omni"
    with og.init(root, schema=SCHEMA) as owner:
        owner.insert("Doc", [ROW | {"slug": "first"}])
        draft = owner.branches.create("draft")
        draft.insert("Doc", [ROW | {"slug": "second"}])
        owner.tags.create("v1")
    with og.open(root, actor="eve", policy=Denier()) as denied:
        yield denied


def state(graph):
    """All that a write could change."""
    return (
        {name: graph.head(name).id for name in graph.branches},
        {tag.name: tag for tag in graph.tags.all()},
        graph.schema.source,
        {name: graph.at(name).to_json() for name in graph.branches},
    )


def test_every_public_method_is_listed_as_a_read_or_a_write():
    embedded = [one for one, _ in PAIRS if one.__module__.startswith("omnigraph.api.")]
    assert len(embedded) == len(READS)
    for implementation in embedded:
        name = implementation.__name__
        listed = set(READS[name].split()) | {
            call.partition(".")[2] for call in WRITES if call.startswith(f"{name}.")
        }
        advice = "say in tests/surfaces/parity/test_gate_of_every_call.py whether it writes"
        assert public(implementation) - listed == set(), f"{name}: {advice}"
        assert listed - public(implementation) == set(), f"{name}: no longer public"


@pytest.mark.parametrize("call", WRITES)
def test_a_denied_write_raises_and_changes_nothing(graph, call):
    before = state(graph)
    with pytest.raises(PolicyError):
        WRITES[call](graph)
    assert state(graph) == before


def test_reads_ask_no_gate(graph):
    """The library checks writes; reads are checked where they are served."""
    assert graph.query("query q() { match { $d: Doc } return { $d.slug } }").row_count == 1
    out = io.BytesIO()
    graph.export(out)
    assert out.getvalue().count(b"\n") == 1
