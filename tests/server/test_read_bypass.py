"""No way around read rules: every route, every MCP tool and every method of the library.

All that is hidden from `root` has `zyx` in its name or value. A new route, tool or method needs a call here.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    EmbeddedOnly,
    InputError,
    LanguageError,
    NotFoundError,
    OmnigraphError,
    PolicyError,
    ReadsRestricted,
)
from omnigraph.mcp.backend import AppBackend
from omnigraph.mcp.resources import RESOURCES
from omnigraph.mcp.session import AgentSession
from omnigraph.mcp.tools import TOOLS
from omnigraph.policy.gate import open_gate
from omnigraph.server.call import ARROW_STREAM
from omnigraph.stored_queries.registry import QueryEntry, read_registry
from tests.server import calls
from tests.server.calls import CHANGE, LIB, MUTATION, READ, TOOL_CALLS
from tests.server.serving import serving
from tests.server.test_bypass import ROOT, TOKEN, Site, every_call
from tests.surfaces.parity.test_protocol import PAIRS, public

HIDDEN = "zyx"

SCHEMA = (
    calls.SCHEMA.replace(
        "photo: Blob?",
        "photo: Blob?\n    zyxpay: String?\n    zyxowner: String?\n    @index(zyxpay)",
    )
    + "node Zyxvault {\n    slug: String @key\n    text: String?\n}\nedge Zyxkeeps: Author -> Zyxvault\n"
)

ROWS = (
    '{"type":"Author","data":{"slug":"ada","photo":"base64:SGVsbG8=","zyxpay":"zyx-pay"}}\n'
    '{"type":"Author","data":{"slug":"bob"}}\n'
    '{"type":"Author","data":{"slug":"zyx-ghost","zyxowner":"zyx-eve"}}\n'
    '{"type":"Book","data":{"isbn":"b1"}}\n'
    '{"type":"Zyxvault","data":{"slug":"zyx-gold","text":"zyx-text"}}\n'
    '{"edge":"Wrote","from":"ada","to":"b1"}\n'
    '{"edge":"Wrote","from":"zyx-ghost","to":"b1"}\n'
    '{"edge":"Zyxkeeps","from":"ada","to":"zyx-gold"}\n'
)

VAULT = "query vault($slug: String) { match { $v: Zyxvault { slug: $slug } } return { $v.text } }\n"

POLICY = """\
version: 1
groups: {team: [root], others: [eve]}
rules:
  - id: all
    allow:
      actors: {group: team}
      actions: [read, export, change, schema_apply, branch_create, branch_delete, branch_merge, invoke_query]
read_rules:
  - id: authors
    allow:
      actors: {group: team}
      types:
        Author: {where: zyxowner is null, except: [zyxpay, zyxowner]}
  - id: vaults
    allow: {actors: {group: others}, types: {Zyxvault: }}
"""


@pytest.fixture(scope="module", autouse=True)
def _quick_writes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.omni"
    with og.init(path, schema=SCHEMA) as graph:
        graph.load(ROWS.encode(), "overwrite")
        graph.mutate('query q() { update Author set { zyxpay: "zyx-2" } where slug = "ada" }')
        graph.mutate('query q() { update Author set { zyxowner: "zyx" } where slug = "zyx-ghost" }')
    return path


@pytest.fixture(scope="module")
def owner(root):
    with og.open(root) as graph:
        yield graph


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    file = tmp_path_factory.mktemp("queries") / "lib.gq"
    file.write_text(LIB + VAULT)
    return read_registry([QueryEntry(name, file) for name in (READ, CHANGE, "vault")])


class RestrictedSite(Site):
    """The branches of calls have hidden changes, too."""

    def values(self):
        found = super().values()
        branch = self.owner.checkout(found["<branch>"])
        slug = found["<branch>"]
        rows = [
            {"type": "Author", "data": {"slug": f"zyx-{slug}", "zyxowner": "zyx-eve"}},
            {"type": "Zyxvault", "data": {"slug": f"zyx-{slug}", "text": "zyx-more"}},
            {"type": "Author", "data": {"slug": "ada", "zyxpay": f"zyx-{slug}"}},
        ]
        done = branch.load("\n".join(map(json.dumps, rows)).encode(), "patch")
        return found | {"<head>": done.receipt.graph_commit_id}


@pytest.fixture(scope="module")
def site(root, stored, owner):
    with RestrictedSite(root, stored, owner, open_gate(POLICY)) as opened:
        yield opened


REFUSED = {"applySchema", "planSchema", "load", "ingest", "loadNdjson", "loadParts", "listGraphs"}
"""Operations that concern what is hidden; `Author` is not wholly visible."""


def test_no_route_shows_what_read_rules_hide(site):
    seen, shared = set(), site.values()
    for call, route, version in every_call():
        values = site.values() if route.is_write else shared
        answer = site.send(call, route, version, values, ROOT)
        where = f"{route.method} {route.path} {version} {call.body}: {answer.text[:2000]}"
        assert HIDDEN not in answer.content.decode("utf-8", "replace").lower(), where
        assert answer.status_code < 500, where
        if answer.status_code == 403:
            assert route.operation in REFUSED | {"discoverGraphs"}, where
        elif call.status == 200:
            seen.add(route.operation)
            assert answer.status_code == 200 or route.operation in REFUSED, where
    assert {"query", "diff", "export", "listCommits", "mergeBranches", "scan", "getStatus"} <= seen


DETAILS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/schema", {"params": {"compiled": "true"}}),
    ("GET", "/entities/Author/ada", {"params": {"typed": "true"}}),
    ("GET", "/entities/Author/zyx-ghost", {}),
    ("GET", "/entities/Author/ada/history", {"params": {"typed": "true"}}),
    ("GET", "/entities/Zyxvault/zyx-gold", {}),
    ("GET", "/changes", {"params": {"rows": "true", "details": "true"}}),
    ("POST", "/diff", {"body": {"from": "main~2", "to": "main", "rows": True}}),
    ("POST", "/diff", {"body": {"from": "main~2", "to": "main"}, "accept": ARROW_STREAM}),
    ("POST", "/query", {"body": {"query": LIB, "name": READ}, "accept": ARROW_STREAM}),
    ("POST", "/explain", {"body": {"query": LIB, "name": READ, "analyze": True}}),
    ("POST", "/query", {"body": {"query": "query q() { match { $a: Athor } return { $a } }"}}),
    (
        "POST",
        "/query",
        {"body": {"query": "query q() { match { $a: Author } return { $a.zyxpa } }"}},
    ),
    ("POST", "/query", {"body": {"query": "query q() { match { $a: Author } return { $a } }"}}),
    ("POST", "/scan", {"body": {"type": "Author", "where": "zyxpay is null"}}),
    ("POST", "/scan", {"body": {"type": "Zyxvaul"}}),
    ("POST", "/export", {"body": {"type_names": ["Zyxvaul"]}}),
    ("POST", "/queries/vault", {"body": {"params": {"slug": "zyx-gold"}}}),
    ("POST", "/mutate", {"body": {"query": 'query q() { insert Zyxvaul { slug: "a" } }'}}),
    ("POST", "/mutate", {"body": {"query": "query q() { delete Author where slug = 1 }"}}),
    ("POST", "/load", {"body": {"data": '{"type":"Zyxvaul","data":{}}', "mode": "append"}}),
]


@pytest.mark.parametrize("version", ["0.7", "0.13"])
def test_details_and_errors_do_not_show_it_either(site, version):
    for method, path, given in DETAILS:
        headers = [*ROOT, ("Content-Type", "application/json")]
        headers += [("Omnigraph-Http-Api", "0.13")] if version == "0.13" else []
        headers += [("Accept", given["accept"])] if "accept" in given else []
        answer = site.request(
            method,
            f"/graphs/default{path}",
            headers=headers,
            params=list(given.get("params", {}).items()),
            content=json.dumps(given["body"]) if "body" in given else None,
        )
        text = answer.content.decode("utf-8", "replace").lower()
        # What the caller wrote may be said again, and no more of it.
        asked = json.dumps(given).lower() + path.lower()
        for written in set(re.findall(r"zyx[a-z-]*", asked)):
            text = re.sub(rf"\b{written}\b(?!-)", "", text)
        assert HIDDEN not in text, (method, path, given, answer.text)
        assert answer.status_code < 500, (method, path, answer.text)


def test_an_unknown_stored_query_and_a_hidden_one_look_alike(site):
    asked = [
        site.request("POST", f"/graphs/default/queries/{name}", headers=ROOT, content=b"{}")
        for name in ("vault", "nothing")
    ]
    assert [one.status_code for one in asked] == [404, 404]
    assert asked[0].json() == asked[1].json()


# -- MCP ----------------------------------------------------------------------------------------

TOOL_ERRORS = {"schema_apply"}


def test_no_tool_shows_what_read_rules_hide(site):
    assert {tool.name for tool in TOOLS} == TOOL_CALLS.keys()
    backend = AppBackend(
        site.app, "default", is_multi=True, authorization=f"Bearer {TOKEN}".encode()
    )
    session = AgentSession(backend, actor="root")
    values = site.values()

    async def run():
        listed = await session.tools()
        assert HIDDEN not in str(listed).lower()
        assert "vault" not in [tool.name for tool in listed]
        for name, arguments in TOOL_CALLS.items():
            if arguments is None:
                continue
            text = json.dumps(arguments)
            for written, value in values.items():
                text = text.replace(written, value)
            result = await session.call(name, json.loads(text))
            assert HIDDEN not in result.text.lower(), (name, result.text)
            assert result.is_error == (name in TOOL_ERRORS), (name, result.text)
        for resource in RESOURCES:
            if resource.uri == "omnigraph://graphs":
                continue  # no server policy allows it
            text, _ = await session.read(resource.uri)
            assert HIDDEN not in text.lower(), resource.uri

    asyncio.run(run())


# -- the library --------------------------------------------------------------------------------


def _exported(state):
    out = io.BytesIO()
    state.export(out)
    return out.getvalue()


METHODS = {
    "Graph.query": lambda g: g.query("query q() { match { $a: Author } return { $a } }").to_dicts(),
    "Graph.explain": lambda g: g.explain("query q() { match { $a: Author } return { $a } }"),
    "Graph.get": lambda g: [g.get("Author", "ada"), g.get("Author", "zyx-ghost")],
    "Graph.scan": lambda g: g.scan("Author").read_all().to_pylist(),
    "Graph.at": lambda g: [g.at("main~1").counts, g.at("main~1").to_json()],
    "Graph.export": _exported,
    "Graph.export_batches": lambda g: [(n, b.to_pylist()) for n, b in g.export_batches()],
    "Graph.head": lambda g: g.head().to_json(),
    "Graph.log": lambda g: [one.to_json() for one in g.log()],
    "Graph.commit": lambda g: g.commit("main").to_json(),
    "Graph.diff": lambda g: g.diff("main~2", "main").to_json(rows=True),
    "Graph.changes": lambda g: [one.to_json(rows=True) for one in g.changes()],
    "Graph.cursor": lambda g: g.cursor(),
    "Graph.history": lambda g: [one.to_json() for one in g.history("Author", "ada")],
    "Graph.merge": lambda g: g.merge("draft", dry_run=True),
    "Graph.revert": lambda g: g.revert("draft", branch="draft", dry_run=True).receipt.to_json(),
    "Graph.cherry_pick": lambda g: g.cherry_pick("draft", dry_run=True).receipt.to_json(),
    "Graph.mutate": lambda g: g.mutate(MUTATION["query"], branch="draft").to_json(),
    "Graph.analyze": lambda g: g.analyze("degrees", nodes=["Author"]).to_dicts(),
    "GraphAt.query": lambda g: g.at("main").query(LIB, name=READ).to_dicts(),
    "GraphAt.explain": lambda g: g.at("main").explain(LIB, name=READ),
    "GraphAt.get": lambda g: g.at("main~1").get("Author", "ada"),
    "GraphAt.scan": lambda g: g.at("main~1").scan("Author").read_all().to_pylist(),
    "GraphAt.catalog": lambda g: [repr(one) for one in g.at("main~1").catalog],
    "GraphAt.counts": lambda g: g.at("main").counts,
    "GraphAt.to_json": lambda g: g.at("main").to_json(),
    "GraphAt.export": lambda g: _exported(g.at("main~1")),
    "GraphAt.export_batches": lambda g: [b.to_pylist() for _, b in g.at("main").export_batches()],
    "GraphAt.analyze": lambda g: g.at("main").analyze("degrees").to_dicts(),
    "GraphAt.blobs": lambda g: g.at("main").blobs.read("Author", "ada", "photo"),
    "Branches.reset": lambda g: g.branches.reset("draft", "main", dry_run=True).receipt.to_json(),
    "Schema.source": lambda g: g.schema.source,
    "Schema.catalog": lambda g: [repr(one) for one in g.schema.catalog],
    "Schema.diagram": lambda g: g.schema.diagram() + g.schema.diagram("svg"),
    "Blobs.open": lambda g: g.blobs.open("Author", "ada", "photo"),
    "Blobs.read": lambda g: g.blobs.read("Author", "ada", "photo"),
    "Maintenance.status": lambda g: g.maintenance.status().to_json(),
}
"""Calls that answer with something of the graph. `repr` of the result is looked at."""

REFUSING = {
    "Schema.plan": lambda g: g.schema.plan(SCHEMA),
    "Schema.apply": lambda g: g.schema.apply(SCHEMA),
    "Graph.load": lambda g: g.load(b'{"type":"Author","data":{"slug":"x"}}', "append"),
    "Graph.insert": lambda g: g.insert("Author", [{"slug": "x"}]),
    "Graph.upsert": lambda g: g.upsert("Author", [{"slug": "x"}]),
    "Graph.embed": lambda g: g.embed(),
    "Maintenance.verify": lambda g: g.maintenance.verify(),
    "Maintenance.optimize": lambda g: g.maintenance.optimize(),
    "Maintenance.cleanup": lambda g: g.maintenance.cleanup(keep_versions=9),
    "Maintenance.repair": lambda g: g.maintenance.repair(),
    "Maintenance.ensure_indexes": lambda g: g.maintenance.ensure_indexes(),
    "Maintenance.recoveries": lambda g: g.maintenance.recoveries(),
}
"""Calls that need an actor who sees everything."""

NAMELESS = {
    "Graph": "uri branch actor read_only closed close checkout as_actor branches tags schema blobs "
    "maintenance",
    "GraphAt": "branch number commit_id",
    "Branches": "__iter__ __len__ __contains__ create delete",
    "Tags": "all create delete __iter__ __len__ __contains__ __getitem__",
    "BlobsAt": "open read",
    "Maintenance": "recover wait",
}
"""Members that show branches, commits, tags, or a part of `Graph` that is listed itself."""


@pytest.fixture(scope="module")
def limited(root, owner):
    draft = owner.branches.create("draft")
    draft.load(ROWS.replace("zyx-pay", "zyx-pay2").encode(), "merge")
    with og.open(root, policy=POLICY, actor="root") as graph:
        yield graph


def test_every_method_is_listed():
    for embedded, _ in PAIRS:
        name = embedded.__name__
        if name.startswith("Remote"):
            continue  # It has the same methods, of which test_protocol.py makes sure.
        listed = {
            method.partition(".")[2]
            for method in (*METHODS, *REFUSING)
            if method.partition(".")[0] == name
        }
        listed |= {*NAMELESS.get(name, "").split()}
        assert listed == public(embedded), f"list a call of each method of {name}"


def test_no_method_of_the_remote_client_shows_it(root, limited, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "omnigraph.yaml").write_text("policy: {file: policy.yaml}\n")
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"root": "t-root"}'}
    given = "--config", tmp_path / "omnigraph.yaml"
    with (
        serving(tmp_path, root, *given, env=tokens) as server,
        og.connect(f"http://{server.address}", token="t-root") as graph,
    ):
        for name, call in (METHODS | REFUSING).items():
            try:
                said = repr(call(graph))
            except (EmbeddedOnly, PolicyError) as error:
                said = str(error)
            assert HIDDEN not in said.lower(), (name, said)


@pytest.mark.parametrize("name", METHODS)
def test_no_method_shows_what_read_rules_hide(limited, name):
    assert HIDDEN not in repr(METHODS[name](limited)).lower()


@pytest.mark.parametrize("name", REFUSING)
def test_methods_that_concern_everything_refuse(limited, name):
    with pytest.raises(ReadsRestricted) as caught:
        REFUSING[name](limited)
    assert HIDDEN not in str(caught.value).lower()


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.scan("Zyxvault"),
        lambda g: g.get("Zyxvault", "zyx-gold"),
        lambda g: list(g.history("Zyxvault", "zyx-gold")),
        lambda g: g.scan("Author", columns=["zyxpay"]),
        lambda g: g.scan("Author", where="zyxpay = 'a'"),
        lambda g: g.query("query q() { match { $v: Zyxvault } return { $v } }"),
        lambda g: g.diff("main~1", "main", types=["Zyxvault"]),
        lambda g: list(g.changes(types=["Zyxvault"])),
        lambda g: g.export(io.BytesIO(), types=["Zyxvault"]),
        lambda g: g.blobs.read("Zyxvault", "zyx-gold", "text"),
        lambda g: g.blobs.read("Author", "zyx-ghost", "photo"),
        lambda g: g.merge("draft", strategy={"Zyxvault": "ours"}),
        lambda g: g.analyze("degrees", nodes=["Zyxvault"]),
        lambda g: g.load(b'{"type":"Zyxvault","data":{"slug":"x"}}', "append"),
    ],
)
def test_a_hidden_name_is_unknown_and_not_suggested(limited, call):
    with pytest.raises((InputError, LanguageError, NotFoundError, OmnigraphError)) as caught:
        call(limited)
    said = str(caught.value)
    assert "did you mean" not in said or HIDDEN not in said.partition("did you mean")[2].lower()
    assert not isinstance(caught.value, ReadsRestricted)
