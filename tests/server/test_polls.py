"""The change feed of contract 0.13."""

from __future__ import annotations

from datetime import timedelta

import pytest

import omnigraph as og
from tests.server.serving import LIB, SCHEMA, library, lines, serving

ADD = """\
query add($slug: String, $isbn: String) {
    insert Author { slug: $slug, born: 1 }
    insert Book { isbn: $isbn, title: "T" }
    insert Wrote { from: $slug, to: $isbn }
}
"""


def poll(server, query="", status=200, **given):
    found = server.get13(f"/changes?{query}", params=None, **given)
    assert found.status_code == status, found.text
    return found.json()


def pages(server, query):
    """All pages of a poll."""
    found = [poll(server, query)]
    base = "&".join(part for part in query.split("&") if not part.startswith(("cursor", "start")))
    while "next_page_token" in found[-1]:
        assert "cursor" not in found[-1]
        assert "caught_up" not in found[-1]
        found.append(poll(server, f"{base}&page_token={found[-1]['next_page_token']}"))
    return found


def changes_of(page):
    return [
        (one["kind"], one["id"], one["op"]) for block in page["blocks"] for one in block["changes"]
    ]


def add(server, slug, branch, born=1):
    done = server.mutate("add_author", {"slug": slug, "born": born}, branch=branch)
    assert done.status_code == 200
    return done.json()["graph_commit_id"]


@pytest.mark.acceptance("U-342")
def test_starts_of_a_poll(server):
    server.branch("starts")
    first = add(server, "s1", "starts")
    second = add(server, "s2", "starts")
    nothing = poll(server, "branch=starts")
    assert nothing["blocks"] == []
    assert nothing["caught_up"] is True
    everything = poll(server, "branch=starts&start=beginning")
    assert everything["blocks"][0]["changes"] == []
    assert everything["blocks"][0]["cause"]["parent_commit_id"] is None
    assert everything["blocks"][-1]["cause"]["graph_commit_id"] == second
    assert everything["cursor"] == nothing["cursor"]
    rest = poll(server, f"branch=starts&start=after:{first}")
    assert [block["cause"]["graph_commit_id"] for block in rest["blocks"]] == [second]
    assert poll(server, f"branch=starts&cursor={rest['cursor']}")["blocks"] == []
    poll(server, f"branch=starts&cursor={rest['cursor']}&start=now", 400)
    poll(server, "branch=starts&start=later", 400)
    poll(server, "branch=starts&start=after:bogus", 404)
    poll(server, "branch=nope", 404)


def test_a_change_has_its_cause_type_and_images(server):
    server.branch("images")
    start = poll(server, "branch=images")["cursor"]
    server.mutate("set_born", {"slug": "ada", "born": 1}, branch="images")
    page = poll(server, f"branch=images&cursor={start}")
    [block] = page["blocks"]
    assert block["cause"]["authored_branch"] == "images"
    assert block["cause"]["actor_id"] is None
    [change] = block["changes"]
    assert (change["kind"], change["type"]["name"], change["op"]) == ("node", "Author", "update")
    assert change["before"] == {"properties": {"slug": "ada", "born": 1815}}
    assert change["after"] == {"properties": {"slug": "ada", "born": 1}}


@pytest.mark.acceptance("U-349")
def test_a_property_set_to_null_is_an_explicit_null(server):
    server.branch("nulls")
    text = 'query q($b: I32?) { update Author set { born: $b } where slug = "bob" }'
    body = {"query": text, "params": {"b": None}, "branch": "nulls"}
    done = server.post13("/mutate", body).json()
    found = server.get13(f"/commits/{done['commit']['graph_commit_id']}/changes").json()
    assert found["changes"][0]["after"]["properties"] == {"slug": "bob", "born": None}


@pytest.mark.acceptance("U-343")
def test_pages_inside_a_commit(server):
    server.branch("pages")
    cursor = poll(server, "branch=pages")["cursor"]
    data = (
        '{"type":"Author","data":{"slug":"n1"}}\n{"type":"Author","data":{"slug":"n2"}}\n'
        '{"type":"Book","data":{"isbn":"k1","title":"K"}}\n'
        '{"edge":"Wrote","from":"n1","to":"k1"}\n{"edge":"Cites","from":"k1","to":"b1"}\n'
    )
    done = server.post13("/load", {"data": data, "branch": "pages"}).json()
    found = pages(server, f"branch=pages&cursor={cursor}&limit=2")
    assert [len(changes_of(page)) for page in found] == [2, 2, 1]
    kinds = [kind for page in found for kind, _, _ in changes_of(page)]
    assert kinds == ["node"] * 3 + ["edge"] * 2
    assert found[-1]["caught_up"] is True
    whole = poll(server, f"branch=pages&cursor={cursor}")
    assert changes_of(whole) == [one for page in found for one in changes_of(page)]
    edge = whole["blocks"][0]["changes"][-1]
    assert set(edge["after"]["endpoints"]) == {"from", "to"}
    assert poll(server, f"branch=pages&cursor={cursor}&limit=5").get("cursor")
    path = f"/commits/{done['commit']['graph_commit_id']}/changes"
    first = server.get13(f"{path}?limit=4").json()
    second = server.get13(f"{path}?limit=4&page_token={first['next_page_token']}").json()
    assert first["changes"] + second["changes"] == whole["blocks"][0]["changes"]
    assert "next_page_token" not in second
    assert (
        server.get13(f"{path}?page_token={first['next_page_token']}&kind=node").status_code == 400
    )


@pytest.mark.acceptance("U-344")
def test_a_commit_between_two_pages_waits_for_the_next_poll(server):
    server.branch("between")
    cursor = poll(server, "branch=between")["cursor"]
    add(server, "w1", "between")
    add(server, "w2", "between")
    first = poll(server, f"branch=between&cursor={cursor}&limit=1")
    add(server, "w3", "between")
    last = poll(server, f"branch=between&limit=1&page_token={first['next_page_token']}")
    assert changes_of(first) + changes_of(last) == [
        ("node", "w1", "insert"),
        ("node", "w2", "insert"),
    ]
    assert last["caught_up"] is False
    after = poll(server, f"branch=between&cursor={last['cursor']}")
    assert changes_of(after) == [("node", "w3", "insert")]


@pytest.mark.acceptance("U-346")
def test_tokens_belong_to_what_they_were_made_for(server):
    server.branch("bound")
    cursor = poll(server, "branch=bound")["cursor"]
    add(server, "x1", "bound")
    add(server, "x2", "bound")
    page = poll(server, f"branch=bound&cursor={cursor}&limit=1")
    token = page["next_page_token"]
    for query in (
        f"branch=main&cursor={cursor}",
        f"branch=bound&cursor={cursor}&kind=node",
        f"branch=bound&cursor={token}",
        f"branch=bound&page_token={cursor}",
        "branch=bound&cursor=garbage",
        "branch=bound&cursor=W10",
        "branch=bound&page_token=%C3%A9",
    ):
        refused = poll(server, query, 400)
        assert refused["error"].startswith("change cursor rejected: "), query
    last = poll(server, f"branch=bound&cursor={cursor}")["cursor"]
    assert server.client.delete("/branches/bound").status_code == 200
    server.branch("bound")
    refused = poll(server, f"branch=bound&cursor={last}", 400)
    assert refused["error"].startswith("change cursor rejected: ")
    same = "kind=node&kind=edge&kind=node"
    cursor = poll(server, f"{same}")["cursor"]
    assert poll(server, f"kind=edge&kind=node&cursor={cursor}")["blocks"] == []


@pytest.mark.acceptance("U-348")
def test_limits_of_a_poll(server):
    refused = poll(server, "limit=8193", 413)
    assert refused["resource_limit"] == {"resource": "page_changes", "limit": 8192, "actual": 8193}
    for query in ("limit=0", "x=1", "limit=-1", "kind=thing", "op=upsert", "type=Nope", "set=a=1"):
        poll(server, query, 400)
    assert poll(server, "limit=8192&set=ann_nprobes=3&op=insert&op=delete")["blocks"] == []


@pytest.mark.acceptance("U-350", partly="a commit of a branch that may not be read")
def test_the_first_commit_has_no_changes(server):
    first = server.get("/commits").json()["commits"][0]["graph_commit_id"]
    refused = server.get13(f"/commits/{first}/changes")
    assert refused.status_code == 409
    assert refused.json()["change_diff_refusal"] == {
        "graph_commit_id": first,
        "reason": "parentless_commit",
    }
    assert server.get13("/commits/bogus/changes").status_code == 404
    assert server.get("/commits/bogus/changes").status_code == 404


@pytest.mark.acceptance("U-352")
def test_a_baseline_and_later_polls_equal_an_export(server):
    server.branch("copy")
    answer = server.post13("/changes/baseline", {"branch": "copy"})
    assert answer.status_code == 200
    *entities, last = lines(answer)
    assert last["baseline"]["snapshot_commit_id"] == server.head("copy")
    copy = {(one.get("type") or one["edge"], one["id"]): one for one in entities}
    server.post13("/mutate", {"query": ADD, "params": {"slug": "q", "isbn": "q"}, "branch": "copy"})
    server.mutate("set_born", {"slug": "ada", "born": 2}, branch="copy")
    text = 'query q() { delete Author where slug = "bob" }'
    server.post13("/mutate", {"query": text, "branch": "copy"})
    cursor = last["baseline"]["resume_cursor"]
    for page in pages(server, f"branch=copy&cursor={cursor}&limit=1"):
        for block in page["blocks"]:
            for change in block["changes"]:
                key = change["type"]["name"], change["id"]
                if change["op"] == "delete":
                    del copy[key]
                    continue
                image = change["after"]
                data = {name: v for name, v in image["properties"].items() if v is not None}
                kind = "type" if change["kind"] == "node" else "edge"
                line = {kind: key[0], "id": key[1], **image.get("endpoints", {}), "data": data}
                copy[key] = line
    exported = lines(server.post13("/export", {"branch": "copy"}))
    by_key = {(one.get("type") or one["edge"], one["id"]): one for one in exported}
    assert copy == by_key


def test_filters_of_a_baseline(server):
    *found, last = lines(server.post13("/changes/baseline", {"kind": ["edge"], "op": ["insert"]}))
    assert all("edge" in one for one in found)
    assert found
    cursor = last["baseline"]["resume_cursor"]
    assert poll(server, f"kind=edge&op=insert&cursor={cursor}")["blocks"] == []
    poll(server, f"kind=edge&cursor={cursor}", 400)
    nothing = lines(server.post13("/changes/baseline", {"kind": ["edge"], "type": ["Author"]}))
    assert [list(one) for one in nothing] == [["baseline"]]
    assert server.post13("/changes/baseline", {"type": ["Nope"]}).status_code == 400
    assert server.post13("/changes/baseline", {"branch": "nope"}).status_code == 404


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A server whose graph has 130 commits, a changed schema and a dropped type."""
    folder = tmp_path_factory.mktemp("long")
    root = folder / "long.omni"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        with og.init(root, schema=SCHEMA) as graph:
            for n in range(126):
                graph.mutate(LIB, {"slug": f"a{n}", "born": n}, name="add_author")
            graph.upsert("Book", [{"isbn": "b", "title": "T"}])
            graph.schema.apply(SCHEMA.replace("born: I32?", "born: I32?\n    nick: String?"))
            graph.schema.apply(
                SCHEMA.replace("node Book", "node Note {\n n: String @key\n}\nnode Book")
            )
    with serving(folder, root, "--unauthenticated") as running:
        yield running


@pytest.mark.acceptance("U-345")
def test_commits_per_poll(long):
    first = poll(long, "start=beginning&type=Author")
    assert len(first["blocks"]) == 128
    assert first["caught_up"] is False
    rest = poll(long, f"type=Author&cursor={first['cursor']}")
    assert rest["caught_up"] is True
    assert len(first["blocks"]) + len(rest["blocks"]) == len(long.get("/commits").json()["commits"])


@pytest.mark.acceptance("U-351")
def test_schema_changes_in_the_feed(long):
    first = poll(long, "start=beginning&type=Author")
    assert len(changes_of(first)) == 126
    rest = poll(long, f"type=Author&cursor={first['cursor']}")
    assert [block["changes"] for block in rest["blocks"]][-2:] == [[], []]
    cursor = poll(long, "branch=main")["cursor"]
    long.post("/load", {"data": '{"type":"Note","data":{"n":"x"}}\n'})
    loaded = poll(long, f"cursor={cursor}")["cursor"]
    done = long.post("/schema/apply", {"schema_source": SCHEMA})
    assert done.status_code == 200, done.text
    refused = poll(long, f"cursor={loaded}", 409)
    assert refused["change_diff_refusal"]["reason"] == "schema_boundary"
    assert refused["change_diff_refusal"]["type_name"] == "Note"


def test_the_feed_of_the_older_contract_is_untouched(server):
    assert "commits" in server.get("/changes").json()
    assert server.post("/changes/baseline", {}, headers={}).status_code == 404


@pytest.mark.acceptance("U-347")
def test_a_gap_after_cleanup(tmp_path):
    root = library(tmp_path)
    with serving(tmp_path, root, "--unauthenticated") as server:
        old = poll(server, "")["cursor"]
        first = add(server, "c1", "main")
        second = add(server, "c2", "main")
        add(server, "c3", "main")
        with og.open(root) as graph:
            graph.maintenance.optimize()
            graph.maintenance.cleanup(keep_versions=1, min_age=timedelta(0))
        gone = poll(server, f"cursor={old}", 410)
        assert gone["change_feed_gap"]["cursor"] == old
        assert gone["change_feed_gap"]["first_unreadable_commit_id"] in (first, second)
        assert "code" not in gone
        assert server.get13(f"/commits/{second}/changes").status_code == 410
        *_, last = lines(server.post13("/changes/baseline", {}))
        cursor = last["baseline"]["resume_cursor"]
        assert poll(server, f"cursor={cursor}")["caught_up"] is True
