"""Remote graphs against servers with tokens, policies and several graphs, and servers that go away."""

from __future__ import annotations

import pickle
import signal
import threading
import time

import httpx
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import (
    AnswerLost,
    CommitStateUnknown,
    EmbeddedOnly,
    HeadMoved,
    NotFoundError,
    PolicyDenied,
    ServerUnreachable,
    Unauthenticated,
    UnexpectedAnswer,
)
from tests.server.serving import LIB, library, serving
from tests.server.test_policies import POLICY, TOKENS
from tests.server.test_several_graphs import make_project

ADD = {"slug": "x", "born": 1}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "p.yaml").write_text(POLICY)
    (folder / "omnigraph.yaml").write_text("policy:\n  file: p.yaml\n")
    config = ("--config", folder / "omnigraph.yaml")
    with serving(folder, library(folder), *config, env=TOKENS) as server:
        yield f"http://{server.address}"


# -- tokens and policies --------------------------------------------------------------------


def test_the_actor_is_that_of_the_token(guarded):
    with og.connect(guarded, token="t-root") as graph:
        done = graph.mutate(LIB, ADD | {"slug": "r"}, name="add_author")
        assert (graph.actor, done.receipt.actor_id, graph.head().actor) == ("root", "root", "root")


def test_the_token_comes_from_the_environment(guarded, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "t-amy")
    with og.connect(guarded) as graph:
        again = pickle.loads(pickle.dumps(graph))
        assert (graph.actor, again.actor, len(again.branches)) == (
            "amy",
            "amy",
            len(graph.branches),
        )
        again.close()


@pytest.mark.parametrize("token", [None, "wrong"])
def test_a_server_with_tokens_refuses_others(guarded, token):
    with pytest.raises(Unauthenticated, match="bearer token") as caught:
        og.connect(guarded, token=token)
    assert (caught.value.status, caught.value.server) == (401, guarded)


def test_a_handle_that_travels_has_no_token(guarded):
    with og.connect(guarded, token="t-amy") as graph:
        sent = pickle.dumps(graph)
    assert b"t-amy" not in sent
    assert "t-amy" not in repr(graph)
    again = pickle.loads(sent)
    with again, pytest.raises(Unauthenticated):
        again.head()


def test_a_denied_write_is_the_policy_error_with_its_fields(guarded):
    with og.connect(guarded, token="t-amy") as graph, pytest.raises(PolicyDenied) as caught:
        graph.mutate(LIB, ADD, name="add_author")
    found = caught.value
    assert (found.actor, found.action, found.branch) == ("amy", "change", "main")


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.revert("main"),
        lambda g: g.cherry_pick("main"),
        lambda g: g.branches.reset("main", "main~1"),
        lambda g: g.tags.create("v1"),
        lambda g: g.tags.delete("v1"),
        lambda g: g.upsert("Author", [{"slug": "x"}]),
        lambda g: g.load(b"", "merge"),
        lambda g: g.schema.apply(g.schema.source),
    ],
)
def test_an_actor_without_the_right_cannot_write(guarded, call):
    with og.connect(guarded, token="t-amy") as graph, pytest.raises(PolicyDenied):
        call(graph)


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.scan("Author"),
        lambda g: list(g.tags),
        lambda g: g.schema.plan("node A { n: I32 @key }"),
        lambda g: g.at("main"),
        lambda g: g.log(limit=1),
        lambda g: g.maintenance.status(),
        lambda g: g.export("out.jsonl"),
    ],
)
def test_an_actor_without_the_right_cannot_read(guarded, call):
    with og.connect(guarded, token="t-eve") as graph, pytest.raises(PolicyDenied):
        call(graph)


# -- addresses ------------------------------------------------------------------------------


def test_a_graph_of_a_server_for_several(tmp_path):
    with serving(tmp_path, "--config", make_project(tmp_path), "--unauthenticated") as server:
        address = f"http://{server.address}"
        with og.connect(address, graph="alpha") as alpha, og.connect(address, graph="beta") as beta:
            assert alpha.uri == f"{address}/graphs/alpha"
            alpha.branches.create("a/b.c").upsert("Author", [{"slug": "only-alpha"}])
            assert alpha.checkout("a/b.c").get("Author", "only-alpha") is not None
            assert list(beta.branches) == ["main"]
        with (
            og.connect(address, graph="nope") as missing,
            pytest.raises(NotFoundError, match="nope"),
        ):
            missing.head()


def test_a_branch_is_looked_for_when_connecting(guarded):
    with pytest.raises(og.errors.BranchNotFound, match="nope"):
        og.connect(guarded, token="t-root", branch="nope")


def test_a_server_of_contract_13_alone_says_what_it_needs(tmp_path):
    arguments = (library(tmp_path), "--unauthenticated", "--http-api", "0.13")
    with serving(tmp_path, *arguments) as server, pytest.raises(UnexpectedAnswer) as caught:
        og.connect(f"http://{server.address}")
    assert "--http-api both" in str(caught.value)


def test_what_is_not_remote_says_so(guarded, tmp_path):
    table = tmp_path / "Author.csv"
    table.write_text("slug,born\nx,1\n")
    with og.connect(guarded, token="t-root") as graph:
        for call in (
            lambda: graph.load(table, "append"),
            lambda: graph.load(None, "append", mapping={}),
            lambda: graph.load(b"", "append", quarantine=tmp_path / "bad"),
            lambda: graph.load(b"", "append", engine="spark"),
            lambda: graph.export(tmp_path / "out", format="parquet"),
            lambda: graph.query(
                LIB, name="all_authors", view=og.ReadView(hidden_types=frozenset(["Book"]))
            ),
        ):
            with pytest.raises(EmbeddedOnly):
                call()


# -- large answers and requests -------------------------------------------------------------


def test_a_load_larger_than_one_request_is_sent_in_parts_and_is_one_commit(guarded):
    count = 90_000
    big = pa.table({"slug": [f"{number:0400}" for number in range(count)]})
    with og.connect(guarded, token="t-root", branch="main") as main:
        graph = main.branches.create("large")
        before = graph.head()
        done = graph.insert("Author", big, idempotency_key="large-1")
        assert done.receipt.counts["node:Author"].inserted == count
        assert graph.head().id == done.receipt.graph_commit_id
        assert graph.log(limit=2)[1].id == before.id
        again = graph.insert("Author", big, idempotency_key="large-1")
        assert again.receipt.replayed
        with pytest.raises(og.errors.LoadError):
            graph.insert("Author", big)
        main.branches.delete("large")


def test_parts_of_a_load_need_the_right_to_write_and_fit_together(guarded):
    def send(token, **query):
        return httpx.post(
            f"{guarded}/load/parts",
            params=query,
            content=b"12345",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/msgpack"},
        )

    name = {"upload": "upload-of-one"}
    assert send("t-amy", **name).status_code == 403
    assert send("t-root", upload="../x").status_code == 400
    assert send("t-root", **name, offset=5).status_code == 409
    assert send("t-root", **name).status_code == 204
    assert send("t-root", **name).status_code == 204, "sent again, it is there already"
    assert send("t-root", **name, offset=7).status_code == 409
    assert send("t-root", **name, offset=2**31).status_code == 413
    assert send("t-root", **name, offset=5, last="true").status_code == 409
    assert send("t-root", **name, last="true").status_code == 400


def test_a_conditional_write_that_loses_is_head_moved(guarded):
    with og.connect(guarded, token="t-root") as graph:
        first = graph.commit(1)
        with pytest.raises(HeadMoved) as caught:
            graph.upsert("Author", [{"slug": "x"}], expected_head=first)
        assert (caught.value.expected, caught.value.actual) == (first.id, graph.head().id)


# -- servers that go away -------------------------------------------------------------------


def test_a_write_whose_server_dies_is_repeated_with_its_key(tmp_path):
    root = library(tmp_path)
    with serving(tmp_path, root, "--unauthenticated") as server:
        graph = og.connect(f"http://{server.address}")
        server.process.send_signal(signal.SIGSTOP)
        killing = threading.Timer(0.5, server.process.kill)
        killing.start()
        with pytest.raises(CommitStateUnknown) as caught:
            graph.mutate(LIB, ADD, name="add_author")
        killing.join()
    key = caught.value.idempotency_key
    assert len(key) == 26
    with og.open(root) as embedded:
        done = embedded.mutate(LIB, ADD, name="add_author", idempotency_key=key)
        assert done.affected_nodes == 1


def test_a_branch_whose_answer_is_lost_may_exist(tmp_path):
    with serving(tmp_path, library(tmp_path), "--unauthenticated") as server:
        graph = og.connect(f"http://{server.address}")
        server.process.send_signal(signal.SIGSTOP)
        killing = threading.Timer(0.5, server.process.kill)
        killing.start()
        with pytest.raises(AnswerLost):
            graph.branches.create("dev")
        killing.join()
        with pytest.raises(ServerUnreachable):
            graph.head()


def test_a_query_that_is_cancelled_returns_at_once(tmp_path):
    with serving(tmp_path, library(tmp_path), "--unauthenticated") as server:
        graph = og.connect(f"http://{server.address}")
        token = og.CancelToken()
        server.process.send_signal(signal.SIGSTOP)
        threading.Timer(0.3, token.cancel).start()
        began = time.monotonic()
        with pytest.raises(og.errors.QueryCancelled):
            graph.query(LIB, name="all_authors", cancel=token)
        assert time.monotonic() - began < 5
        server.process.send_signal(signal.SIGCONT)
        assert len(graph.query(LIB, name="all_authors")) == 3
        graph.close()


def test_threads_share_a_handle(guarded):
    with og.connect(guarded, token="t-root") as graph:
        found: list[int] = []

        def read() -> None:
            found.extend(len(graph.query(LIB, name="all_authors")) for _ in range(10))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 40


@pytest.mark.parametrize("text", [LIB, LIB.rstrip("\n"), LIB.replace("\n", " ")])
def test_a_key_is_the_same_write_beside_storage_and_through_a_server(tmp_path, text):
    root = library(tmp_path)
    with (
        og.open(root) as local,
        serving(tmp_path, root, "--unauthenticated") as server,
        og.connect(f"http://{server.address}") as remote,
    ):
        for number, (first, second) in enumerate(((local, remote), (remote, local))):
            params = {"slug": f"k{number}", "born": 1}
            keyed = {"name": "add_author", "idempotency_key": f"once-{number}"}
            one = first.mutate(text, params, **keyed)
            two = second.mutate(text if number else text.rstrip("\n"), params, **keyed)
            assert two.receipt.replayed
            assert two.receipt.graph_commit_id == one.receipt.graph_commit_id
