"""How commands call a server: contracts, tokens, exit codes, consent, and what they say when it fails."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.serving import LIB, environment, serving
from tests.surfaces.remote.fakes import Answer, Asked, fake

OMNIGRAPH = Path(sys.executable).with_name("omnigraph")
ALL = ("--query", "lib.gq", "--name", "all_authors")
ADD = ("--query", "lib.gq", "--name", "add_author", "--params", '{"slug": "dan", "born": 1}')
COMMIT_13 = {
    "graph_commit_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "graph_branch": None,
    "graph_manifest_version": 4,
    "parent_commit_id": "01ARZ3NDEKTSV4RRFFQ69G5FAA",
    "merged_parent_commit_id": None,
    "actor_id": "amy",
    "created_at": 1,
}
READ_13 = {
    "query_name": "q",
    "target": {"branch": "main", "snapshot": None},
    "row_count": 2,
    "columns": ["a", "a.born"],
    "rows": [{"a": {"@id": "ada", "born": 1815}, "a.born": 1815}, {"a": {"@id": "cy"}}],
    "graph_commit_id": COMMIT_13["graph_commit_id"],
}


def operator(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)


def slugs(outcome) -> list[str]:
    assert outcome.code == 0, outcome.err
    return [row["a.slug"] for row in json.loads(outcome.out)["rows"]]


# -- contracts ------------------------------------------------------------------------------


def test_a_stamped_server_is_asked_under_its_contract(cli, here):
    with fake("0.13", lambda _: Answer(body={"branches": ["main"]})) as server:
        assert cli("branch", "list", "--uri", server.url).out == "main\n"
    probe, call = server.asked
    assert (probe.method, probe.path) == ("HEAD", "/healthz")
    assert "authorization" not in probe.headers
    assert call.path == "/graphs/default/branches"
    assert call.headers["omnigraph-http-api"] == "0.13"


def test_a_server_without_a_stamp_is_asked_under_contract_07(cli, here):
    with fake(None, lambda _: Answer(body={"branches": ["main"]})) as server:
        assert cli("branch", "list", "--uri", f"{server.url}/graphs/team").out == "main\n"
    [call] = server.calls
    assert call.path == "/graphs/team/branches"
    assert "omnigraph-http-api" not in call.headers


@pytest.mark.acceptance("U-374")
def test_an_older_server_works_and_one_of_another_contract_does_not(
    cli, here, library_graph, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("older")
    shutil.copytree(library_graph, folder / "g")
    with serving(folder, folder / "g", "--unauthenticated", "--http-api", "0.7") as server:
        url = f"http://{server.address}"
        assert slugs(cli("query", url, *ALL, "--json")) == ["ada", "bob", "cy"]
        done = json.loads(cli("mutate", url, *ADD, "--json").out)
        assert done["commit"]["graph_commit_id"] == done["graph_commit_id"]
        lost = cli("mutate", url, *ADD, "--if-commit", "A" * 26, "--json")
        assert lost.code == 4
        assert json.loads(lost.out)["precondition_failure"]["expected"] == "A" * 26
    with fake("0.12", lambda _: Answer()) as other:
        outcome = cli("mutate", other.url, *ADD)
        assert (outcome.code, outcome.out) == (1, "")
        assert "speaks HTTP contract 0.12" in outcome.err
        assert not other.calls


def test_a_server_of_contract_13_alone_works(cli, here, library_graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("newer")
    with serving(folder, library_graph, "--unauthenticated", "--http-api", "0.13") as server:
        url = f"http://{server.address}"
        assert slugs(cli("query", url, *ALL, "--json"))[:1] == ["ada"]
        assert cli("snapshot", url).code == 0
        code, _, err = cli("schema", "apply", url, "--schema", "lib.gq")
        assert code == 1
        assert "header with value 0.13 is required" in err


def test_documents_of_contract_13_are_shown_as_those_of_a_local_graph(cli, here):
    answers = {
        "/query": READ_13,
        "/mutate": {
            "branch": "main", "query_name": "q", "affected_nodes": 1, "affected_edges": 0,
            "actor_id": "amy", "commit": COMMIT_13,
        },
        "/snapshot?branch=main": {
            "graph_branch": "main", "graph_manifest_version": 4, "internal_schema_version": 4,
            "datasets": [{
                "entity_kind": "node", "type_name": "Author", "entity_count": 3,
                "dataset_path": "x", "published_dataset_version": 2, "native_dataset_branch": None,
            }],
        },
        "/commits?branch=main&reverse=true": {"commits": [COMMIT_13]},
        "/load": {
            "uri": "s3://b/g", "branch": "main", "base_branch": None, "branch_created": False,
            "mode": "merge", "nodes": [{"name": "Author", "entities_loaded": 2}], "edges": [],
            "total_entities": 2, "commit": COMMIT_13, "actor_id": "amy", "embedding_generation": None,
        },
    }  # fmt: skip

    def answer(asked: Asked) -> Answer:
        return Answer(body=answers[asked.path.removeprefix("/graphs/default")])

    commit = COMMIT_13["graph_commit_id"]
    (here / "x.jsonl").write_text("{}")
    with fake("0.13", answer) as server:
        read = json.loads(cli("query", server.url, "-e", "query q() {}", "--json").out)
        assert read["rows"] == [{"a": "ada", "a.born": 1815}, {"a": "cy", "a.born": None}]
        changed = json.loads(cli("mutate", server.url, "-e", "query q() {}", "--json").out)
        assert (changed["graph_commit_id"], changed["operation"]) == (commit, "mutate")
        assert (
            cli("snapshot", server.url).out.splitlines()[-1] == "node:Author v2 branch=main rows=3"
        )
        assert (
            cli("commit", "list", server.url).out == f"{commit} branch=main version=4 actor=amy\n"
        )
        loaded = cli("load", server.url, "--mode", "merge", "--data", "x.jsonl").out
        assert loaded.splitlines() == [
            "loaded s3://b/g on branch main with merge: 2 nodes across 1 node type, "
            "0 edges across 0 edge types",
            f"commit {commit}",
        ]


def test_names_are_escaped_in_addresses(cli, here):
    with fake(
        "0.13", lambda _: Answer(body={"uri": "u", "name": "a b/c", "actor_id": None})
    ) as server:
        assert cli("branch", "delete", "a b/c", "--uri", server.url, "--yes").code == 0
    assert server.calls[0].path == "/graphs/default/branches/a%20b%2Fc"


# -- scopes, tokens and stored queries ------------------------------------------------------


@pytest.fixture
def config(team, home):
    """An operator config for the server `team`, with tokens of `amy`."""

    def write(more: str = "") -> None:
        operator(home, f"servers: {{dev: {{url: 'http://{team.address}'}}}}\n{more}")

    write()
    return write


@pytest.fixture
def amy(cli, here, config):
    assert cli("login", "dev", "--token", "t-amy").code == 0


@pytest.mark.acceptance("U-057")
def test_a_token_of_the_environment_wins_and_is_sent_to_no_other_server(
    cli, here, team, config, amy, home, monkeypatch
):
    asked = ("query", "--server", "dev", "--graph", "alpha", *ALL, "--json")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", "wrong")
    code, _, err = cli(*asked)
    assert code == 1
    assert "invalid bearer token" in err
    assert "omnigraph login NAME" in err
    monkeypatch.delenv("OMNIGRAPH_TOKEN_DEV")
    assert slugs(cli(*asked)) == ["ada", "bob", "cy"]
    assert slugs(cli("query", f"http://{team.address}/graphs/alpha", *ALL, "--json"))
    with fake("0.13", lambda _: Answer(401, {"error": "missing bearer token"})) as other:
        by_url = ("query", "--server", other.url, "--graph", "alpha", *ALL)
        assert "missing bearer token" in cli(*by_url).err
        assert all("authorization" not in one.headers for one in other.asked)


@pytest.mark.acceptance("U-059")
def test_an_alias_runs_its_stored_query(cli, here, config, amy):
    config("aliases: {who: {server: dev, graph: alpha, query: by_slug, args: [slug]}}\n")
    assert slugs(cli("query", "--alias", "who", "ada", "--json")) == ["ada"]
    over = ("--params", '{"slug": "bob"}')
    assert slugs(cli("query", "--alias", "who", "ada", *over, "--json")) == ["bob"]
    assert "ada" in cli("alias", "who", "ada").out


def test_an_alias_sends_only_its_parameters(cli, here, home):
    with fake(None, lambda _: Answer(body=READ_13)) as server:
        operator(
            home,
            f"servers: {{dev: {{url: '{server.url}'}}}}\n"
            "aliases: {who: {server: dev, query: by_slug, args: [slug]}, all: {server: dev, query: all}}\n",
        )
        assert cli("query", "--alias", "who", "7", "--branch", "x", "--json").code == 0
        assert cli("alias", "all", "--json").code == 0
    first, second = server.calls
    assert (first.path, json.loads(first.body)) == ("/queries/by_slug", {"params": {"slug": 7}})
    assert (second.path, second.body) == ("/queries/all", b"")


@pytest.mark.acceptance("U-373")
def test_a_stored_query_is_called_by_its_name(cli, here, team, config, amy):
    scope = ("--server", "dev", "--graph", "alpha")
    ada = ("--params", '{"slug": "ada"}')
    assert slugs(cli("query", "by_slug", *ada, *scope, "--json")) == ["ada"]
    assert slugs(cli("query", "all_authors", *scope, "--json")) == ["ada", "bob", "cy"]
    code, out, err = cli("mutate", "by_slug", *ada, *scope)
    assert (code, out) == (1, "")
    assert "stored query 'by_slug' is a read" in err
    assert "stored query not found" in cli("query", "nope", *scope).err
    born = ("--params", '{"slug": "ada", "born": 1}')
    url = f"http://{team.address}/graphs/alpha"
    assert cli("branch", "create", "s", "--uri", url).code == 0
    done = json.loads(cli("mutate", "set_born", *born, *scope, "--branch", "s", "--json").out)
    assert (done["affected_nodes"], done["actor_id"], done["branch"]) == (1, "amy", "s")
    assert "set_born" in cli("query", "set_born", *born, *scope).err
    assert "explain the file" in cli("explain", "by_slug", *scope).err


@pytest.mark.acceptance("U-371", "U-372", partly="servers")
def test_the_nearest_scope_wins(cli, here, team, config, amy, library_graph, monkeypatch):
    config(
        "profiles: {work: {server: dev, default_graph: beta}}\n"
        "defaults: {server: dev, default_graph: alpha}\n"
    )
    shown = ("profile", "show", "--json")
    assert json.loads(cli(*shown).out)["graph"] == "alpha"
    assert cli("branch", "list").code == 0
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "work")
    assert json.loads(cli(*shown).out)["graph"] == "beta"
    assert cli("snapshot").code == 0
    named = json.loads(cli(*shown, "--graph", "alpha").out)
    assert (named["graph"], named["selected_by"]) == ("alpha", "OMNIGRAPH_PROFILE")
    stored = json.loads(cli(*shown, "--store", str(library_graph)).out)
    assert (stored["kind"], stored["selected_by"]) == ("store", "--store")
    assert slugs(cli("query", *ALL, "--json", "--store", library_graph)) == ["ada", "bob", "cy"]
    assert cli("query", *ALL, "--store", library_graph, "--server", "dev").code == 2


@pytest.mark.acceptance("U-048")
def test_graphs_are_listed_by_a_server_for_several(cli, here, config, monkeypatch, pair):
    code, out, err = cli("graphs", "list", "--uri", "/data/x")
    assert (code, out) == (1, "")
    assert "requires a remote multi-graph server URL" in err
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", "t-root")
    listed = json.loads(cli("graphs", "list", "--server", "dev", "--json").out)["graphs"]
    assert [one["graph_id"] for one in listed] == ["alpha", "beta"]
    assert set(listed[0]) == {"graph_id", "uri"}
    assert cli("graphs", "list", "--server", "dev").out.startswith("alpha\t")
    assert "serves one graph" in cli("graphs", "list", "--uri", pair.url).err


# -- conditions and exit codes --------------------------------------------------------------


@pytest.mark.acceptance("U-375")
def test_a_lost_condition_has_its_own_exit_code(cli, here, pair):
    stale = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    for graph in (pair.local, pair.url):
        code, out, err = cli("mutate", graph, *ADD, "--if-commit", stale, "--json")
        assert code == 4
        failure = json.loads(out)["precondition_failure"]
        assert failure["expected"] == stale
        assert failure["actual"] in err
        assert cli("mutate", graph, *ADD, "--if-commit", stale)[:2] == (4, "")
        assert cli("mutate", graph, *ADD, "--if-commit", "main~1").code == 1
        assert cli("mutate", graph, *ADD, "--expect-head", stale).code == 1
        assert cli("mutate", graph, *ADD, "--if-commit", stale, "--expect-head", stale).code == 2
    served = json.loads(cli("mutate", pair.url, *ADD, "--if-commit", stale, "--json").out)
    assert served["command_outcome"] == {
        "execution": "returned", "effects": "none", "action": "refresh",
    }  # fmt: skip


def test_a_condition_that_holds_lets_the_write_through(cli, here, pair):
    for graph in (pair.local, pair.url):
        assert cli("branch", "create", "if", "--uri", graph).code == 0
        head = json.loads(cli("log", graph, "--branch", "if", "--json").out)["commits"][0]
        wanted = ("--if-commit", head["graph_commit_id"], "--branch", "if", "--json")
        done = json.loads(cli("mutate", graph, *ADD, *wanted).out)
        assert done["commit"]["parent_commit_id"] == head["graph_commit_id"]
        assert cli("branch", "delete", "if", "--uri", graph, "--yes").code == 0


@pytest.mark.acceptance("U-377")
def test_a_server_that_is_busy_asks_to_try_later(cli, here, library_graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("busy")
    limits = {"OMNIGRAPH_PER_ACTOR_BYTES_MAX": "1"}
    with serving(folder, library_graph, "--unauthenticated", env=limits) as server:
        url = f"http://{server.address}"
        code, out, err = cli("mutate", url, *ADD, "--json")
        assert code == 75
        assert json.loads(out)["command_outcome"] == {
            "execution": "not_started", "effects": "none", "action": "retry",
        }  # fmt: skip
        assert json.loads(out)["code"] == "too_many_requests"
        assert "byte budget" in err
        assert cli("query", url, *ALL).code == 0


def test_a_served_error_is_printed_as_json_too(cli, here, pair):
    code, out, err = cli("query", pair.url, *ALL, "--branch", "nope", "--format", "json")
    assert code == 1
    document = json.loads(out)
    assert (document["code"], document["error"]) == ("not_found", "branch 'nope' not found")
    assert "command_outcome" not in document
    assert "branch 'nope' not found" in err
    assert cli("query", pair.url, *ALL, "--branch", "nope")[:2] == (1, "")
    assert cli("query", pair.local, *ALL, "--branch", "nope", "--json")[:2] == (1, "")


def test_a_write_whose_answer_is_lost_says_so(cli, here):
    answers = {
        "unstamped": Answer(body={}, is_stamped=False),
        "redirect": Answer(307, headers={"Location": "http://127.0.0.1:9/"}),
    }
    with fake("0.13", lambda _: answers["unstamped"]) as server:
        code, out, err = cli("mutate", server.url, *ADD, "--json")
        assert code == 1
        assert json.loads(out)["command_outcome"]["execution"] == "unknown"
        assert "could not confirm the write" in err
        assert "--idempotency-key" in err
        assert len(server.calls) == 1
    with fake("0.13", lambda _: answers["redirect"]) as server:
        assert "redirects are not followed" in cli("query", server.url, *ALL).err
        assert len(server.calls) == 1


# -- errors that say what to do -------------------------------------------------------------


def test_a_server_that_does_not_run(cli, here):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    code, out, err = cli("query", url, *ALL)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "cannot connect" in err
    assert "check the address and the server" in err
    failed = json.loads(cli("mutate", url, *ADD, "--json").out)
    assert failed["command_outcome"]["execution"] == "not_started"


@pytest.mark.parametrize("status", [200, 404])
def test_a_server_of_another_kind(cli, here, status):
    page = Answer(status, b"<html><body>hello</body></html>", media_type="text/html")
    with fake(None, lambda _: page) as server:
        code, out, err = cli("query", server.url, *ALL)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "OmniGraph server" in err
    if status == 404:
        assert "server returned 404: <html>" in err


@pytest.mark.parametrize("words", [("query", *ALL), ("log",), ("status",), ("mutate", *ADD)])
@pytest.mark.parametrize("stamp", [None, "0.13"])
def test_an_answer_of_another_shape(cli, here, words, stamp):
    with fake(stamp, lambda _: Answer(body={"hello": 1})) as server:
        code, out, err = cli(words[0], server.url, *words[1:])
    assert (code, out) == (1, "")
    assert "not the expected document" in err


def test_a_graph_that_the_server_does_not_have(cli, here, team, config, amy):
    code, _, err = cli("snapshot", "--server", "dev", "--graph", "gamma")
    assert code == 1
    assert "graph 'gamma' not found" in err
    code, _, err = cli("snapshot", "--server", "dev")
    assert code == 1
    assert "pass --graph" in err


@pytest.mark.parametrize(
    "words",
    [
        ("revert", "main", "--uri"),
        ("cherry-pick", "main", "--uri"),
        ("tag", "list"),
        ("branch", "reset", "main", "main~1", "--uri"),
        ("load", "--mode", "merge", "--data", "x.jsonl", "--engine", "inline"),
        ("load", "--mode", "merge", "--data", "x.jsonl", "--master", "local[1]"),
        ("load", "--mode", "merge", "--data", "x.jsonl", "--quarantine", "q"),
        ("load", "--mode", "merge", "--mapping", "m.yaml"),
        ("load", "--mode", "merge", "--data", "Author.csv"),
        ("export", "--out", "x", "--format", "parquet"),
        ("optimize",),
        ("schema", "plan", "--schema", "lib.gq"),
    ],
)
def test_what_needs_storage_is_refused_without_a_request(cli, here, words):
    (here / "x.jsonl").write_text("{}")
    (here / "Author.csv").write_text("slug\nx\n")
    code, out, err = cli(*words, "http://127.0.0.1:9")
    assert (code, out) == (1, "")
    assert "needs direct storage access" in err
    assert "http://127.0.0.1:9 is a remote server" in err


# -- consent and the echo -------------------------------------------------------------------


@pytest.mark.acceptance("U-376")
def test_deleting_on_a_server_needs_consent(cli, here, pair):
    assert cli("branch", "create", "gone", "--uri", pair.url).code == 0
    delete = ("branch", "delete", "gone", "--uri", pair.url)
    code, out, err = cli(*delete)
    assert (code, out) == (1, "")
    assert "--yes" in err
    assert cli(*delete, "--json").code == 1
    assert "gone" in cli("branch", "list", "--uri", pair.url).out
    assert cli(*delete, "--yes").code == 0
    (here / "x.jsonl").write_text('{"type":"Author","data":{"slug":"x"}}\n')
    load = ("load", pair.url, "--mode", "overwrite", "--data", "x.jsonl")
    assert "--yes" in cli(*load).err
    assert "--yes" in cli("cleanup", "s3://127.0.0.1/x", "--keep", "1", "--confirm").err
    assert "--yes" in cli("branch", "delete", "x", "--uri", "s3://127.0.0.1/x").err


def test_writes_name_their_target_unless_told_not_to(cli, here, pair):
    create = ("branch", "create", "echo", "--uri", pair.url)
    assert cli(*create).err == f"omnigraph branch create → {pair.url} (served)\n"
    assert cli("branch", "list", "--uri", pair.url).err == ""
    delete = ("branch", "delete", "echo", "--uri", pair.url, "--yes")
    assert cli(*delete, "--quiet").err == ""
    assert cli("--quiet", *create, "--as", "ada").err.startswith("warning: --as does not apply")
    assert cli(*delete, "--quiet").code == 0
    assert cli("branch", "create", "here", "--uri", pair.local).err == ""
    assert cli("branch", "delete", "here", "--uri", pair.local).code == 0


@pytest.mark.acceptance("U-378")
def test_a_merged_branch_that_may_not_be_deleted_is_a_warning(cli, here, team, config, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", "t-root")
    scope = ("--server", "dev", "--graph", "beta")
    assert cli("branch", "create", "kept", *scope).code == 0
    code, out, err = cli("branch", "merge", "kept", "--delete-branch", *scope, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["outcome"], document["branch_deleted"]) == ("already_up_to_date", False)
    assert document["branch_delete_error_details"]["code"] == "forbidden"
    assert "warning: merged, but branch kept was not deleted" in err


# -- processes ------------------------------------------------------------------------------


def test_a_remote_command_loads_neither_lance_nor_arrow_nor_httpx(pair, here):
    script = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "assert main() == 0\n"
        "print(*{'lance', 'pyarrow', 'httpx', 'numpy', 'pandas'} & set(sys.modules), file=sys.stderr)\n"
    )
    for words in (
        ("query", pair.url, *ALL),
        ("branch", "list", "--uri", pair.url),
        ("log", pair.url),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            capture_output=True, text=True, check=True, env=environment(), timeout=60,
        )  # fmt: skip
        assert done.stderr.split() == [], words


def test_the_installed_command_reads_and_writes_through_a_server(pair, here):
    def omnigraph(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [OMNIGRAPH, *words], capture_output=True, text=True, check=False,
            env=environment({"OMNIGRAPH_HOME": str(here / "home")}), timeout=60,
        )  # fmt: skip

    (here / "q.gq").write_text(LIB)
    read = omnigraph("query", pair.url, "--query", "q.gq", "--name", "all_authors", "--json")
    assert (read.returncode, read.stderr) == (0, "")
    assert json.loads(read.stdout)["row_count"] >= 3
    refused = omnigraph("branch", "delete", "x", "--uri", pair.url)
    assert (refused.returncode, refused.stdout) == (1, "")


@pytest.mark.acceptance("U-379")
def test_a_baseline_that_is_killed_leaves_neither_file_nor_cursor(here):
    """The server sends lines and never ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    line = b'{"type":"Author","id":"a","data":{}}\n'
    sent = threading.Event()

    def serve() -> None:
        for body in (b"", b"%x\r\n%s\r\n" % (len(line) * 9000, line * 9000)):
            client, _ = listener.accept()
            client.recv(65536)
            head = b"HTTP/1.1 200 OK\r\nOmnigraph-Http-Api: 0.13\r\n"
            if not body:
                client.sendall(head + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
                client.close()
                continue
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + body)
            sent.set()
            with suppress(OSError):
                client.recv(1)
            client.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    process = subprocess.Popen(
        [OMNIGRAPH, "changes", "baseline", url, "--out", "base.jsonl"],
        stdout=subprocess.PIPE, env=environment({"OMNIGRAPH_HOME": str(here / "home")}),
    )  # fmt: skip
    assert sent.wait(60)
    deadline = time.monotonic() + 30
    while not list(here.glob(".base.jsonl.*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    out, _ = process.communicate(timeout=60)
    listener.close()
    thread.join(10)
    assert out == b""
    assert not (here / "base.jsonl").exists()


def test_a_baseline_of_a_server_is_a_file_and_a_cursor_to_poll_from(cli, here, pair):
    made = json.loads(cli("changes", "baseline", pair.url, "--out", "b.jsonl", "--json").out)
    lines = Path("b.jsonl").read_text().splitlines()
    assert {json.loads(line).get("type") for line in lines} >= {"Author", "Book"}
    polled = cli("changes", "poll", pair.url, "--cursor", made["resume_cursor"], "--json")
    assert json.loads(polled.out)["blocks"] == []


def test_a_load_that_needs_several_requests_is_one_commit(pair, cli, here):
    name = "".join(f"{number:0200}" for number in range(5))
    with open(here / "large.jsonl", "w") as out:
        for number in range(27_000):
            out.write(f'{{"type":"Author","data":{{"slug":"{name}-{number}"}}}}\n')
    assert cli("branch", "create", "--uri", pair.url, "large").code == 0
    given = ("load", pair.url, "--data", "large.jsonl", "--mode", "append", "--branch", "large")
    done = cli(*given, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    tables = pair.server.get("/snapshot?branch=large").json()["tables"]
    assert {one["table_key"]: one["row_count"] for one in tables}["node:Author"] == 27_003
    assert document["commit"]["graph_branch"] == "large"
    assert cli(*given).code == 1
    assert cli("branch", "delete", "--uri", pair.url, "large", "--yes").code == 0
