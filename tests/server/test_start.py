"""What a server refuses to start with, tokens, and who may do what."""

from __future__ import annotations

import pytest

from tests.server.serving import COMMAND, LIB, H, refused, serving

ONE = "OMNIGRAPH_SERVER_BEARER_TOKEN"
FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
AWS = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
WRITE = {"query": LIB, "name": "add_author", "params": {"slug": "no", "born": 1}}
READ = {"query": LIB, "name": "all_authors"}


def bearer(token, scheme="Bearer "):
    return {"Authorization": f"{scheme}{token}"}


@pytest.fixture(scope="module")
def closed(graph_root, tmp_path_factory):
    """A server with tokens and no policy."""
    folder = tmp_path_factory.mktemp("closed")
    (folder / "tokens.json").write_text('{" amy ": " t-amy ", "root": "t-root"}')
    env = {ONE: "t-default", FILE: str(folder / "tokens.json"), JSON: '{"no": "t-no"}'}
    with serving(folder, graph_root, "--unauthenticated", env=env, command=COMMAND) as running:
        yield running


@pytest.mark.acceptance("U-065", partly="a policy without tokens")
@pytest.mark.acceptance("U-066", partly="`=yes` is in the next test")
def test_nobody_said_who_may_call():
    for env in ({}, {"OMNIGRAPH_UNAUTHENTICATED": "false"}, {"OMNIGRAPH_UNAUTHENTICATED": "0"}):
        assert "--unauthenticated" in refused("nowhere.omni", env=env)


@pytest.mark.acceptance("U-066")
def test_the_environment_may_say_it(graph_root, tmp_path):
    with serving(tmp_path, graph_root, env={"OMNIGRAPH_UNAUTHENTICATED": "yes"}) as server:
        assert server.post("/query", READ).status_code == 200
        assert "without authentication" in server.log


@pytest.mark.acceptance("U-067")
@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({JSON: '{"a": "t-1", "b": "t-1"}'}, "same token"),
        ({ONE: "t-1", JSON: '{"default": "t-2"}'}, "'default'"),
        ({JSON: '{"a": "t-1", "a": "t-2"}'}, "JSON"),
        ({JSON: '{"a": " "}'}, "blank token"),
        ({JSON: '{" ": "t-1"}'}, "blank actor"),
        ({JSON: '{"a": 7}'}, "text"),
        ({JSON: '["t-1"]'}, "object"),
        ({JSON: '{"a": "t-1"'}, "JSON"),
        ({FILE: "/nowhere/tokens.json"}, "cannot read"),
        ({ONE: " "}, "blank token"),
        ({JSON: '{"omnigraph:recovery": "t-1"}'}, "reserved"),
        ({AWS: "arn:x", ONE: "t-1"}, "AWS"),
    ],
)
def test_tokens_that_are_refused(env, said):
    message = refused("nowhere.omni", env=env)
    assert said in message
    assert "t-1" not in message
    assert "t-2" not in message


def test_other_starts_that_are_refused(tmp_path):
    assert "no graph to serve" in refused("--unauthenticated")
    said = refused(tmp_path / "nope.omni", "--unauthenticated")
    assert "no graph at" in said
    assert f"create one with `omnigraph init --schema FILE {tmp_path}/nope.omni`" in said
    assert "og.init" not in said


@pytest.mark.acceptance("U-068", partly="a server with a policy")
def test_the_token_is_written_exactly(closed):
    missing = [{}, bearer("t-amy", "bearer "), bearer("t-amy", "Basic "), bearer("t-amy", "Bearer")]
    for headers in missing:
        answer = closed.get("/branches", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert answer.json()["error"] == "missing bearer token"
    for token in ("t-AMY", "t-am", "t-amy2", "no", "t-no", " t-amy"):
        answer = closed.get("/branches", headers=bearer(token))
        assert answer.status_code == 401, token
    wrong = closed.get("/branches", headers=bearer("nope"))
    assert wrong.json()["error"] == "invalid bearer token"
    twice = [("Authorization", "Bearer t-amy"), ("Authorization", "Bearer t-root")]
    assert closed.get("/branches", headers=twice).status_code == 401
    for token in ("t-amy", "t-root", "t-default"):
        assert closed.get("/branches", headers=bearer(token)).status_code == 200


@pytest.mark.acceptance("U-064", "U-161")
def test_what_needs_no_token(closed):
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert closed.get(path).status_code == 200
    assert closed.get("/healthz").json()["status"] == "ok"
    for path in ("/metrics", "/graphs", "/snapshot", "/runs"):
        assert closed.get(path).status_code == 401
    assert closed.get("/metrics", headers=bearer("t-amy")).status_code == 200
    assert closed.get("/nope").status_code == 404


@pytest.mark.acceptance("U-074")
def test_tokens_without_a_policy_allow_reads_only(closed):
    given = bearer("t-amy") | {"X-Actor-Id": "root"}
    assert closed.post("/query", READ, headers=given).status_code == 200
    denied = closed.post("/mutate", WRITE, headers=given)
    assert (denied.status_code, denied.json()["code"]) == (403, "forbidden")
    assert "'amy'" in denied.json()["error"]
    for path, body in [
        ("/export", {}),
        ("/load", {"data": ""}),
        ("/branches", {"name": "x"}),
        ("/branches/merge", {"source": "x"}),
        ("/schema/apply", {"schema_source": ""}),
    ]:
        assert closed.post(path, body, headers=given).status_code == 403, path
    assert closed.client.delete("/branches/x", headers=given).status_code == 403
    unknown = closed.post("/queries/x", headers=given)
    assert (unknown.status_code, unknown.json()["error"]) == (404, "stored query not found")


@pytest.mark.acceptance("U-305")
def test_the_token_is_checked_before_the_version(closed):
    wrong = {"Omnigraph-Http-Api": "0.12"}
    assert closed.post("/graphs/x/mutate", WRITE, headers=wrong).status_code == 401
    assert closed.post("/graphs/x/mutate", WRITE, headers=wrong | bearer("no")).status_code == 401
    known = closed.post("/graphs/x/mutate", WRITE, headers=wrong | bearer("t-amy"))
    assert known.json()["code"] == "api_contract_mismatch"
    unauthorized = closed.get("/graphs/default/snapshot", headers=H)
    assert unauthorized.status_code == 401
    assert unauthorized.headers["omnigraph-http-api"] == "0.13"
    denied = closed.post("/graphs/default/mutate", WRITE, headers=H | bearer("t-amy"))
    assert (denied.status_code, denied.headers["omnigraph-http-api"]) == (403, "0.13")


def test_tokens_are_never_logged(closed):
    closed.get("/branches?token=t-amy", headers=bearer("t-secret-nobody"))
    closed.get("/branches", headers=bearer("t-amy"))
    closed.get("/branches%0aforged%20line", headers=bearer("t-amy"))
    log = closed.log
    assert "tokens: env-or-file, 3 actors; " in log
    assert "GET /branches%0aforged%20line 404" in log
    assert "GET /branches 200" in log
    for token in ("t-amy", "t-root", "t-default", "t-secret-nobody"):
        assert token not in log
    with open(f"/proc/{closed.process.pid}/cmdline", "rb") as arguments:
        assert b"t-amy" not in arguments.read()


def test_tokens_are_in_no_answer(closed):
    for path in ("/metrics", "/openapi.json", "/healthz", "/readyz", "/nope", "/snapshot?branch=x"):
        for given in (bearer("t-amy"), bearer("t-secret-nobody"), bearer("t-amy", "bearer ")):
            answer = closed.get(path, headers=given)
            for token in ("t-amy", "t-root", "t-default", "t-secret-nobody"):
                assert token not in answer.text, path
                assert token not in str(answer.headers), path
