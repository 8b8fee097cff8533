"""A policy governs every call that writes: the list of calls is that of the library."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import omnigraph as og
from omnigraph.errors import (
    ActorRequired,
    BranchNotFound,
    InputError,
    PolicyDenied,
    PolicyError,
    PolicyInvalid,
    PolicyUndecided,
)
from omnigraph.policy import gate as gates
from tests.docs.team import SCHEMA, copy_team, make_team
from tests.support.policies import TEAM_POLICY

NOTES = [{"slug": "n9", "text": "Written"}]
ADD = 'query add() { insert Note { slug: "n9", text: "Written" } }'

NOTHING = "{version: 1, groups: {staff: [amy]}, rules: []}"
EVERYTHING = """
version: 1
groups: {staff: [amy]}
rules:
  - id: all
    allow:
      actors: {group: staff}
      actions: [change, schema_apply, branch_create, branch_delete, branch_merge]
"""


class Write(NamedTuple):
    """A call that writes, and what the policy is asked first: action, branch, target branch."""

    call: Callable[[og.Graph], object]
    action: str
    branch: str | None = None
    target: str | None = None


WRITES: Mapping[str, Write] = {
    "Graph.mutate": Write(lambda g: g.mutate(ADD), "change", "main"),
    "Graph.load": Write(lambda g: g.load({"Note": NOTES}, "merge"), "change", "main"),
    "Graph.insert": Write(lambda g: g.insert("Note", NOTES), "change", "main"),
    "Graph.upsert": Write(lambda g: g.upsert("Note", NOTES), "change", "main"),
    "Graph.analyze": Write(
        lambda g: g.analyze("components", edges=["Knows"], write={"component": "name"}),
        "change",
        "main",
    ),
    "Graph.embed": Write(lambda g: g.embed(), "change", "main"),
    "Graph.merge": Write(lambda g: g.merge("draft"), "branch_merge", "draft", "main"),
    "Graph.revert": Write(lambda g: g.revert("main"), "change", "main"),
    "Graph.cherry_pick": Write(lambda g: g.cherry_pick("draft"), "change", "main"),
    "Branches.create": Write(lambda g: g.branches.create("new"), "branch_create", "main", "new"),
    "Branches.delete": Write(lambda g: g.branches.delete("idle"), "branch_delete", None, "idle"),
    "Branches.reset": Write(lambda g: g.branches.reset("main", "main~1"), "change", "main"),
    "Tags.create": Write(lambda g: g.tags.create("v2"), "change", "main"),
    "Tags.delete": Write(lambda g: g.tags.delete("v1"), "change", "main"),
    "Schema.apply": Write(
        lambda g: g.schema.apply(SCHEMA + "node City { name: String @key }"),
        "schema_apply",
        None,
        "main",
    ),
    "Maintenance.optimize": Write(lambda g: g.maintenance.optimize(), "change", "main"),
    "Maintenance.cleanup": Write(
        lambda g: g.maintenance.cleanup(keep_versions=1), "change", "main"
    ),
    "Maintenance.repair": Write(lambda g: g.maintenance.repair(confirm=True), "change", "main"),
    "Maintenance.ensure_indexes": Write(lambda g: g.maintenance.ensure_indexes(), "change", "main"),
}

NOT_ASKED = {
    "Graph": "actor as_actor at blobs branch branches changes checkout close closed commit cursor diff "
    "explain export export_batches get head history log maintenance query read_only scan schema tags uri",
    "GraphAt": "analyze blobs branch catalog commit_id counts explain export export_batches get number "
    "query scan to_json",
    "Branches": "",
    "Tags": "all",
    "Schema": "catalog diagram plan source",
    "Blobs": "open read",
    # Recovery completes or undoes what was permitted before it was interrupted.
    "Maintenance": "recover recoveries status verify wait",
}
"""Calls that write nothing in the name of an actor."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team")
    make_team(folder)
    with og.open(folder / "team.omni") as graph:
        graph.insert("Note", [{"slug": "n2", "text": "Second"}])
        graph.tags.create("v1")
    return folder


@pytest.fixture
def team(made: Path, tmp_path: Path) -> Path:
    uri = copy_team(made, tmp_path)
    with og.open(uri) as graph:
        graph.branches.create("idle")
        graph.branches.create("draft").insert("Note", [{"slug": "n3", "text": "Draft"}])
    return uri


def state(uri: Path) -> tuple[object, ...]:
    with og.open(uri, read_only=True) as graph:
        heads = {name: graph.checkout(name).head().id for name in graph.branches}
        versions = sorted(str(path.relative_to(uri)) for path in uri.rglob("*.manifest"))
        return heads, [tag.name for tag in graph.tags.all()], graph.schema.source, versions


def public_calls() -> Iterator[str]:
    for cls in (
        og.Graph, og.GraphAt, og.Branches, og.Tags, og.Schema, og.Blobs, og.Maintenance
    ):  # fmt: skip
        yield from (f"{cls.__name__}.{name}" for name in dir(cls) if not name.startswith("_"))


def test_every_public_call_is_listed_as_a_write_or_as_none():
    not_asked = {f"{cls}.{name}" for cls, names in NOT_ASKED.items() for name in names.split()}
    assert not not_asked & set(WRITES)
    assert not_asked | set(WRITES) == set(public_calls())


@pytest.mark.parametrize("name", WRITES)
def test_a_denied_write_changes_nothing(team, name):
    before = state(team)
    write = WRITES[name]
    with og.open(team, actor="amy", policy=NOTHING) as graph:
        with pytest.raises(PolicyDenied) as caught:
            write.call(graph)
        asked = caught.value
        assert (asked.action, asked.branch, asked.target_branch) == write[1:]
        with pytest.raises(PolicyDenied, match="unknown actor 'eve'"):
            write.call(graph.as_actor("eve"))
        with pytest.raises(ActorRequired, match="no actor"):
            write.call(graph.as_actor(None))
    assert state(team) == before


# The team has no property that takes a number; tests/surfaces/parity has one.
@pytest.mark.parametrize("name", sorted(WRITES.keys() - {"Graph.analyze"}))
def test_a_permitted_write_is_made(team, name):
    if name == "Schema.apply":
        with og.open(team) as graph:
            for branch in ("idle", "draft"):
                graph.branches.delete(branch)
    with og.open(team, actor="amy", policy=EVERYTHING) as graph:
        WRITES[name].call(graph)


@pytest.mark.parametrize("name", WRITES)
def test_without_cedarpy_no_write_is_made_and_reads_work(team, name, monkeypatch):
    monkeypatch.setattr(gates, "is_installed", lambda _library: False)
    before = state(team)
    with og.open(team, actor="amy", policy=EVERYTHING) as graph:
        with pytest.raises(PolicyUndecided, match="needs the extra 'policy'"):
            WRITES[name].call(graph)
        assert graph.get("Note", "n1") is not None
    assert state(team) == before


# -- other ways to the same writes ----------------------------------------------------------


@pytest.mark.parametrize(
    "handle",
    [
        lambda graph: graph.checkout("main"),
        lambda graph: graph.as_actor("amy"),
        lambda graph: graph.checkout("draft").checkout("main"),
        lambda graph: pickle.loads(pickle.dumps(graph)),
        lambda graph: pickle.loads(pickle.dumps(graph.checkout("draft"))).checkout("main"),
    ],
    ids=["checkout", "actor", "twice", "pickled", "pickled-branch"],
)
def test_a_handle_made_from_another_has_its_policy(team, handle):
    with og.open(team, actor="amy", policy=TEAM_POLICY) as graph:
        other = handle(graph)
        with pytest.raises(PolicyDenied, match="'change' on branch 'main' for actor 'amy'"):
            other.insert("Note", NOTES)


def test_a_created_branch_has_the_policy(team):
    with og.open(team, actor="amy", policy=TEAM_POLICY) as graph:
        branch = graph.branches.create("mine")
        branch.insert("Note", NOTES)
        with pytest.raises(PolicyDenied):
            branch.insert("Note", NOTES, branch="main")
        with pytest.raises(PolicyDenied, match="branch_merge"):
            branch.merge("mine", into="main")
        with pytest.raises(PolicyDenied, match="branch_delete"):
            graph.branches.delete("mine")


@pytest.mark.parametrize("padded", [" main", "main ", "\tmain\n"])
def test_a_padded_branch_name_is_no_way_around_the_protection(team, padded):
    with og.open(team, actor="amy", policy=TEAM_POLICY) as graph:
        for write in (
            lambda: graph.insert("Note", NOTES, branch=padded),
            lambda: graph.merge("draft", into=padded),
            lambda: graph.branches.reset(padded, "draft"),
        ):
            with pytest.raises(PolicyDenied):
                write()


def test_a_load_that_may_not_write_leaves_no_branch_behind(team):
    creates = EVERYTHING.replace("change, ", "")
    writes = EVERYTHING.replace("branch_create, ", "")
    for policy, action in ((creates, "change"), (writes, "branch_create")):
        with og.open(team, actor="amy", policy=policy) as graph:
            with pytest.raises(PolicyDenied) as caught:
                graph.load({"Note": NOTES}, "merge", branch="new", create_from="main")
            assert caught.value.action == action
            assert "new" not in graph.branches


def test_a_missing_branch_is_reported_before_the_policy_is_asked(team):
    with (
        og.open(team, actor="amy", policy=NOTHING) as graph,
        pytest.raises(BranchNotFound),
    ):
        graph.load({"Note": NOTES}, "merge", branch="new")


def test_a_merge_that_deletes_its_source_needs_both_rights(team):
    merges = EVERYTHING.replace("branch_delete, ", "")
    before = state(team)
    with (
        og.open(team, actor="amy", policy=merges) as graph,
        pytest.raises(PolicyDenied, match="branch_delete"),
    ):
        graph.merge("draft", delete_source=True)
    assert state(team) == before


def test_reads_need_neither_an_actor_nor_a_rule(team):
    with og.open(team, policy=NOTHING) as graph:
        assert len(list(graph.query("query q() { match { $n: Note } return { $n.slug } }"))) == 2
        assert graph.embed(dry_run=True).properties == ()
        assert graph.maintenance.repair().tables is not None


# -- the argument ---------------------------------------------------------------------------


def test_a_policy_is_a_path_or_a_text(team, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(TEAM_POLICY)
    for policy in (path, str(path), TEAM_POLICY):
        with og.open(team, actor="amy", policy=policy) as graph:
            with pytest.raises(PolicyDenied):
                graph.insert("Note", NOTES)
            graph.upsert("Note", NOTES, branch="draft")


@pytest.mark.parametrize("policy", ["", "version: 1\nrules: 7", "{version: 1, groups: {a: []}}"])
def test_a_broken_policy_opens_nothing(team, policy):
    with pytest.raises(PolicyInvalid):
        og.open(team, policy=policy)


def test_a_server_policy_is_none_for_a_graph(team):
    server = EVERYTHING[: EVERYTHING.index("actions:")] + "actions: [graph_list]"
    with pytest.raises(PolicyInvalid, match="server-scoped"):
        og.open(team, policy=server)


@pytest.mark.parametrize("policy", [7, ["a"], {"version": 1}, object()])
def test_an_argument_that_is_no_policy_is_refused(team, policy: Any):
    with pytest.raises(InputError, match="policy must be a path or the text of a policy"):
        og.open(team, policy=policy)


def test_a_gate_of_ones_own_is_asked(team):
    class Nobody:
        def check(self, request: object) -> None:
            raise PolicyError("nobody may do anything")

    with (
        og.open(team, policy=Nobody()) as graph,
        pytest.raises(PolicyError, match="nobody may"),
    ):
        graph.insert("Note", NOTES)
