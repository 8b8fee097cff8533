"""Reads and mutations over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import omnigraph as og
from tests.server.serving import LIB, H, serving


def row_of(response):
    assert response.status_code == 200, response.text
    [row] = response.json()["rows"]
    return row


@pytest.mark.acceptance("U-075")
def test_a_read_answers_rows_in_projection_order(server):
    found = server.read("by_slug", {"slug": "ada"})
    assert found.status_code == 200
    assert found.headers["content-type"] == "application/json"
    assert "deprecation" not in found.headers
    document = found.json()
    assert document["query_name"] == "by_slug"
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert document["row_count"] == 1
    assert document["columns"] == ["a.slug", "a.born"]
    assert document["rows"] == [{"a.slug": "ada", "a.born": 1815}]


@pytest.mark.acceptance("U-076")
def test_the_old_read_route_is_deprecated(server):
    body = {"query_source": LIB, "query_name": "by_slug", "params": {"slug": "ada"}}
    found = server.post("/read", body)
    assert row_of(found) == {"a.slug": "ada", "a.born": 1815}
    assert found.headers["deprecation"] == "true"
    assert found.headers["link"] == '</query>; rel="successor-version"'
    refused = server.post("/read", body | {"query_name": "nope"})
    assert refused.status_code == 400
    assert "deprecation" not in refused.headers


@pytest.mark.acceptance("U-077")
def test_a_mutation_is_no_read(server):
    before = server.head()
    refused = server.read("add_author", {"slug": "eve", "born": 1})
    assert refused.status_code == 400
    assert "contains mutations" in refused.json()["error"]
    assert "POST /mutate" in refused.json()["error"]
    assert server.head() == before


@pytest.mark.acceptance("U-078")
def test_branch_and_snapshot_are_exclusive(server):
    refused = server.read("all_authors", branch="main", snapshot=server.head())
    assert refused.status_code == 400
    assert "branch or snapshot, not both" in refused.json()["error"]


def test_a_snapshot_is_read_as_it_was(server):
    then = server.head()
    assert server.mutate("add_author", {"slug": "later", "born": 1}).status_code == 200
    found = server.read("all_authors", snapshot=then)
    assert found.json()["target"] == {"branch": None, "snapshot": then}
    assert found.json()["graph_commit_id"] == then
    assert {"a.slug": "later"} not in found.json()["rows"]
    assert "later" in server.slugs()


@pytest.mark.acceptance("U-079", "U-164")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"query": "query {"}, "parse error"),
        ({"query": LIB, "name": "by_slug", "params": {"slug": 7}}, "slug"),
        ({"query": LIB, "name": "by_slug"}, "parameter 'slug' not provided"),
        ({"query": LIB, "name": "by_slug", "params": {"slug": None}}, "slug"),
        ({"query": LIB}, "multiple queries"),
        ({"query": LIB, "name": "nope"}, "query 'nope' not found"),
        ({"query": LIB, "name": "all_authors", "branch": "  "}, "branch name"),
    ],
)
def test_a_bad_read_says_what_is_wrong(server, body, said):
    refused = server.post("/query", body)
    assert refused.status_code == 400
    assert refused.json()["code"] == "bad_request"
    assert said in refused.json()["error"]


@pytest.mark.acceptance("U-079")
def test_a_parameter_of_the_wrong_type_is_named(server):
    refused = server.mutate("set_born", {"slug": "ada", "born": "x"})
    assert refused.status_code == 400
    assert "born" in refused.json()["error"]
    assert refused.json()["exception"]["type"] == "ParameterError"


def test_numbers_may_be_text_and_undeclared_parameters_are_warnings(server):
    branch = server.branch("numbers")
    done = server.mutate("set_born", {"slug": "bob", "born": "1971"}, branch=branch)
    assert done.json()["affected_nodes"] == 1
    found = server.read("by_slug", {"slug": "bob", "other": 1}, branch=branch)
    assert row_of(found)["a.born"] == 1971
    assert [one["code"] for one in found.json()["warnings"]] == ["unknown_parameter"]
    strict = server.post13("/query", {"query": LIB, "name": "all_authors", "params": {"x": 1}})
    assert strict.status_code == 400


@pytest.mark.acceptance("U-162")
def test_a_compiler_error_has_diagnostics(server):
    refused = server.post(
        "/query", {"query": "query q() { match { $a: Author } return { $a.borne } }"}
    )
    assert refused.status_code == 400
    [first] = refused.json()["diagnostics"]
    assert (first["line"], first["severity"]) == (1, "error")
    assert first["column"] > 1
    assert "born" in first["hint"]


@pytest.mark.acceptance("U-319")
def test_a_compiler_error_of_013_has_one_diagnostic_with_its_byte(server):
    text = "query q() {\n match { $a: Author } return { $a.borne } }"
    refused = server.post13("/query", {"query": text})
    assert refused.status_code == 400
    diagnostic = refused.json()["diagnostic"]
    assert diagnostic["code"] == "T6"
    assert diagnostic["position"]["line"] == 2
    assert text.encode()[diagnostic["position"]["byte"] :].startswith(b"borne")


# -- mutations ------------------------------------------------------------------------------


@pytest.mark.acceptance("U-080")
def test_old_field_names_of_a_mutation(server):
    branch = server.branch("old-names")
    body = {"query_source": LIB, "query_name": "add_author", "branch": branch}
    done = server.post("/mutate", body | {"params": {"slug": "dee", "born": 1990}})
    assert done.status_code == 200
    assert (done.json()["affected_nodes"], done.json()["affected_edges"]) == (1, 0)
    assert done.json()["actor_id"] is None
    assert done.json()["branch"] == branch
    old = server.post("/change", body | {"params": {"slug": "dan", "born": 1990}})
    assert old.headers["link"] == '</mutate>; rel="successor-version"'
    assert {"dan", "dee"} <= set(server.slugs(branch))


@pytest.mark.parametrize(
    "body",
    [
        {"query": LIB, "query_source": LIB},
        {},
        {"query": LIB, "name": "add_author", "query_name": "add_author"},
        {"query": 7},
        {"query": LIB, "params": []},
    ],
)
def test_a_mutation_body_of_the_wrong_shape(server, body):
    refused = server.post("/mutate", body)
    assert refused.status_code == 422
    assert refused.json()["code"] == "bad_request"


def test_a_read_is_no_mutation(server):
    refused = server.mutate("all_authors")
    assert refused.status_code == 400
    assert "POST /query" in refused.json()["error"]


def test_unknown_branches_are_404(server):
    assert server.read("all_authors", branch="nope").status_code == 404
    assert server.mutate("add_author", {"slug": "x", "born": 1}, branch="nope").status_code == 404


@pytest.mark.acceptance("S-145", "U-140")
def test_a_stale_expected_head_writes_nothing(server):
    branch = server.branch("expected")
    head = server.head(branch)
    first = server.mutate(
        "add_author", {"slug": "one", "born": 1}, branch=branch, expected_head=head
    )
    assert first.status_code == 200
    now = first.json()["graph_commit_id"]
    second = server.mutate(
        "add_author", {"slug": "two", "born": 1}, branch=branch, expected_head=head
    )
    assert second.status_code == 409
    assert second.json()["code"] == "conflict"
    assert second.json()["head_conflict"] == {"branch": branch, "expected": head, "actual": now}
    assert "two" not in server.slugs(branch)


@pytest.mark.acceptance("U-089")
def test_a_write_after_one_of_another_process_succeeds(server, graph_root):
    branch = server.branch("elsewhere")
    assert server.read("by_slug", {"slug": "ada"}, branch=branch).status_code == 200
    with og.open(graph_root, branch=branch) as graph:
        graph.mutate(LIB, {"slug": "ada", "born": 1}, name="set_born")
    assert server.mutate("set_born", {"slug": "ada", "born": 2}, branch=branch).status_code == 200
    assert row_of(server.read("by_slug", {"slug": "ada"}, branch=branch))["a.born"] == 2


@pytest.mark.acceptance("U-090")
def test_parallel_inserts_all_succeed(server):
    branch = server.branch("inserts")
    before = server.slugs(branch)

    def insert(n):
        return server.mutate("add_author", {"slug": f"p{n:02}", "born": n}, branch=branch)

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(insert, range(12)))
    assert [answer.status_code for answer in answers] == [200] * 12
    assert len(server.slugs(branch)) == len(before) + 12
    assert len({answer.json()["graph_commit_id"] for answer in answers}) == 12


@pytest.mark.acceptance("U-091")
def test_parallel_updates_end_in_success_or_conflict(server):
    branch = server.branch("updates")

    def update(n):
        return server.mutate("set_born", {"slug": "ada", "born": 1000 + n}, branch=branch)

    with ThreadPoolExecutor(8) as pool:
        answers = [answer.status_code for answer in pool.map(update, range(8))]
    assert set(answers) <= {200, 409}
    assert 200 in answers


def test_a_repeated_idempotency_key_returns_the_first_receipt(server):
    branch = server.branch("keys")
    body = {"query": LIB, "name": "add_author", "branch": branch}
    body |= {"params": {"slug": "key", "born": 1}}
    headers = {"Idempotency-Key": "k-1"}
    first = server.post("/mutate", body, headers=headers)
    again = server.post("/mutate", body, headers=headers)
    assert first.status_code == again.status_code == 200
    assert again.json()["graph_commit_id"] == first.json()["graph_commit_id"]
    assert again.json()["replayed"] is True
    other = body | {"params": {"slug": "other", "born": 1}}
    refused = server.post("/mutate", other, headers=headers)
    assert refused.status_code == 409
    assert "other" not in server.slugs(branch)


def test_a_mutation_without_effect_makes_no_commit(server):
    head = server.head()
    done = server.mutate("set_born", {"slug": "nobody", "born": 1})
    assert done.json()["affected_nodes"] == 0
    assert done.json()["graph_commit_id"] is None
    assert server.head() == head


# -- contract 0.13 --------------------------------------------------------------------------


@pytest.mark.acceptance("U-311")
def test_nulls_are_left_out_under_013(server):
    body = {"query": LIB, "name": "by_slug", "params": {"slug": "cy"}}
    new = server.post13("/query", body).json()
    assert new["rows"] == [{"a.slug": "cy"}]
    assert new["columns"] == ["a.slug", "a.born"]
    assert server.post("/query", body).json()["rows"] == [{"a.slug": "cy", "a.born": None}]


@pytest.mark.acceptance("U-316")
def test_a_fresh_branch_has_the_commit_of_its_source(server):
    head = server.head()
    server.branch("fresh")
    found = server.post13("/query", {"query": LIB, "name": "all_authors", "branch": "fresh"})
    assert found.json()["graph_commit_id"] == head


@pytest.mark.acceptance("U-317", "U-318")
def test_receipts_have_the_commit_as_it_is_listed(server):
    branch = server.branch("receipts")
    body = {"query": LIB, "name": "add_author", "branch": branch}
    done = server.post13("/mutate", body | {"params": {"slug": "rec", "born": 1}}).json()
    assert done["commit"]["graph_branch"] == branch
    listed = server.get13(f"/commits/{done['commit']['graph_commit_id']}").json()
    assert listed == done["commit"]
    none = server.post13("/mutate", body | {"name": "set_born", "params": {"slug": "?", "born": 1}})
    assert none.json()["commit"] is None
    assert none.json()["affected_nodes"] == 0


@pytest.mark.acceptance("U-320")
def test_only_the_named_query_of_a_mixed_file_counts(server):
    refused = server.post13("/query", {"query": LIB, "name": "set_born"})
    assert refused.status_code == 400
    assert "POST /mutate" in refused.json()["error"]
    assert server.post13("/query", {"query": LIB, "name": "all_authors"}).status_code == 200


@pytest.mark.acceptance("U-323")
def test_settings_are_a_closed_set(server):
    body = {"query": LIB, "name": "all_authors"}
    for settings in ({"ann_nprobes": 0}, {"engine": "v2"}, None, {}):
        assert server.post13("/query", body | {"settings": settings}).status_code == 200
    for settings in ({"pace": 3}, {"ann_nprobes": -1}, {"engine": "v1"}):
        assert server.post13("/query", body | {"settings": settings}).status_code == 400


@pytest.mark.acceptance("U-324")
def test_a_conditional_mutation(server):
    branch = server.branch("condition")
    head = server.head(branch)
    path = "/mutate/if-graph-commit"
    body = {"query": LIB, "name": "add_author", "branch": branch}
    first = body | {"params": {"slug": "c1", "born": 1}}
    done = server.post13(path, first, omnigraph_if_graph_commit=head)
    assert done.status_code == 200
    commit = done.json()["commit"]
    assert commit["parent_commit_id"] == head
    stale = server.post13(
        path, body | {"params": {"slug": "c2", "born": 1}}, omnigraph_if_graph_commit=head
    )
    assert stale.status_code == 412
    assert stale.json()["precondition_failure"] == {
        "expected": head,
        "actual": commit["graph_commit_id"],
    }
    assert "code" not in stale.json()
    assert "c2" not in server.slugs(branch)
    now = commit["graph_commit_id"]
    nothing = body | {"name": "set_born", "params": {"slug": "?", "born": 1}}
    noop = server.post13(path, nothing, omnigraph_if_graph_commit=now)
    assert (noop.status_code, noop.json()["commit"]) == (200, None)
    for value in (f'"{now}"', "*", f"W/{now}", f"{now}, {now}", ""):
        refused = server.post13(path, first, omnigraph_if_graph_commit=value)
        assert refused.status_code == 400, value
    assert server.post13(path, first).status_code == 400
    twice = [*H.items(), ("Omnigraph-If-Graph-Commit", now), ("Omnigraph-If-Graph-Commit", now)]
    assert server.post(f"/graphs/default{path}", first, headers=twice).status_code == 400
    assert server.head(branch) == now


@pytest.mark.acceptance("U-325", partly="stored queries")
def test_the_condition_header_belongs_to_its_own_route(server):
    body = {"query": LIB, "name": "add_author", "params": {"slug": "w", "born": 1}}
    refused = server.post13("/mutate", body, omnigraph_if_graph_commit=server.head())
    assert refused.status_code == 400
    assert "/mutate/if-graph-commit" in refused.json()["error"]


@pytest.mark.acceptance("U-326")
def test_one_of_two_conditional_writers_wins(server):
    branch = server.branch("race")
    head = server.head(branch)

    def write(n):
        body = {"query": LIB, "name": "add_author", "branch": branch}
        body |= {"params": {"slug": f"r{n}", "born": n}}
        return server.post13("/mutate/if-graph-commit", body, omnigraph_if_graph_commit=head)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(one.status_code for one in pool.map(write, range(2))) == [200, 412]


# -- Arrow and plans ------------------------------------------------------------------------


def test_rows_as_an_arrow_stream(server):
    body = {"query": LIB, "name": "by_slug", "params": {"slug": "cy"}}
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    found = server.post("/query", body, headers=accept)
    assert found.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(found.content).read_all()
    assert table.to_pylist() == [{"a.slug": "cy", "a.born": None}]
    assert table.schema.field("a.born").type == pa.int32()
    assert b'"query_name": "by_slug"' in table.schema.metadata[b"omnigraph"]


def test_the_plan_of_a_query(server):
    body = {"query": LIB, "name": "by_slug", "params": {"slug": "cy"}}
    plan = server.post("/explain", body).json()
    assert plan["query_name"] == "by_slug"
    assert plan["plan"]["children"]
    analyzed = server.post("/explain", body | {"analyze": True}).json()
    assert "actual_rows" in analyzed["plan"]


# -- values of contract 0.13 ----------------------------------------------------------------

TYPED = """\
node Event {
    slug: String @key
    at: DateTime?
    day: Date?
    ratio: F32?
    tags: [String]?
    score: Vector(2)?
    pic: Blob?
}
"""


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    rows = (
        '{"type":"Event","data":{"slug":"a","at":"2024-01-01T12:34:56.789Z","ratio":0.99,'
        '"tags":["x"],"score":[0.5,1],"day":"2024-01-01","pic":"base64:SGk="}}\n'
        '{"type":"Event","data":{"slug":"b","at":"2024-01-01T12:34:56Z"}}\n'
    )
    with og.init(folder / "typed.omni", schema=TYPED) as graph:
        graph.load(rows.encode(), "overwrite")
    with serving(folder, folder / "typed.omni", "--unauthenticated") as running:
        yield running


def rows_of(server, text, post="post13"):
    found = getattr(server, post)("/query", {"query": text})
    assert found.status_code == 200, found.text
    return found.json()["rows"]


@pytest.mark.acceptance("U-134")
def test_a_text_search_without_a_provider_names_its_key(typed):
    text = 'query q() { match { $e: Event } return { $e.slug } order { nearest($e.score, "x") } limit 1 }'
    failed = typed.post("/query", {"query": text})
    assert (failed.status_code, failed.json()["code"]) == (500, "internal")
    assert "GEMINI_API_KEY" in failed.json()["error"]
    assert failed.json()["exception"]["type"] == "EmbeddingNotConfigured"


@pytest.mark.acceptance("U-315")
def test_scores_without_an_alias_are_named_after_their_variable(typed):
    head = "query q() { match { $d: Event } return { $d.slug, "
    nearest = "nearest($d.score, [1.0, 0.0])"
    text = f"{head}{nearest} }} order {{ {nearest} }} limit 1 }}"
    found = typed.post13("/query", {"query": text}).json()
    assert found["columns"] == ["d.slug", "d._distance"]
    assert found["rows"][0].keys() == {"d.slug", "d._distance"}
    assert found["rows"][0]["d._distance"] == pytest.approx(1 - 0.5 / 1.25**0.5)
    assert rows_of(typed, text, "post")[0].keys() == {"d.slug", "nearest"}
    text = f'{head}bm25($d.slug, "a") }} order {{ bm25($d.slug, "a") }} limit 1 }}'
    assert typed.post13("/query", {"query": text}).json()["columns"] == ["d.slug", "d._score"]
    text = f"{head}{nearest}, {nearest}, {nearest} as nearest, {nearest} as far }} limit 1 }}"
    columns = typed.post13("/query", {"query": text}).json()["columns"]
    assert columns == ["d.slug", "d._distance", "d._distance_2", "nearest_3", "far"]
    stored = "query q() { match { $d: Event } return { rrf(nearest($d.score, [1.0, 0.0]), "
    text = stored + 'bm25($d.slug, "a")) } limit 1 }'
    assert typed.post13("/query", {"query": text}).json()["columns"] == ["rrf"]


@pytest.mark.acceptance("U-312", partly="a computed float that is not finite")
def test_dates_and_floats(typed):
    text = (
        "query q() { match { $e: Event } return { $e.at, $e.ratio, $e.day } order { $e.slug asc } }"
    )
    assert rows_of(typed, text) == [
        {"e.at": "2024-01-01T12:34:56.789", "e.ratio": 0.99, "e.day": "2024-01-01"},
        {"e.at": "2024-01-01T12:34:56"},
    ]
    old = rows_of(typed, text, "post")
    assert old[1] == {"e.at": "2024-01-01T12:34:56.000Z", "e.ratio": None, "e.day": None}


@pytest.mark.acceptance("U-313", partly="lists with nulls cannot be stored")
@pytest.mark.acceptance("U-314")
def test_a_variable_itself_is_an_object(typed, server):
    text = 'query q() { match { $a: Author { slug: "ada" } } return { $a } }'
    assert rows_of(server, text) == [{"a": {"@id": "ada", "born": 1815, "slug": "ada"}}]
    assert rows_of(server, text, "post") == [{"a": "ada"}]
    null = 'query q() { match { $a: Author { slug: "cy" } } return { $a as who } }'
    assert rows_of(server, null) == [{"who": {"@id": "cy", "slug": "cy"}}]
    text = "query q() { match { $e: Event } return { $e, $e.slug as s } order { $e.slug asc } }"
    first, second = rows_of(typed, text)
    assert first == {
        "e": {
            "@id": "a",
            "at": "2024-01-01T12:34:56.789",
            "day": "2024-01-01",
            "ratio": 0.99,
            "slug": "a",
            "tags": ["x"],
        },
        "s": "a",
    }
    assert second["e"] == {"@id": "b", "at": "2024-01-01T12:34:56", "slug": "b"}
